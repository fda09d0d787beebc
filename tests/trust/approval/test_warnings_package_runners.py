"""Which packages are fetched without a fixed version."""

from __future__ import annotations

import pytest

from toolbridge.trust.approval.warnings import unpinned_package


@pytest.mark.parametrize(
    ("line", "package"),
    [
        ("npx -y pkg", "pkg"),
        ("npx -y pkg@latest", "pkg@latest"),
        ("npx -y pkg@^1.2.3", "pkg@^1.2.3"),
        ("npx -y pkg@1", "pkg@1"),
        ("npx -y @scope/pkg", "@scope/pkg"),
        ("npx -y @scope/pkg@next /home/me", "@scope/pkg@next"),
        ("npx --package=pkg tool", "pkg"),
        ("npx -p pkg@1.0.0 -p other tool", "other"),
        ("npx github:evil/pkg", "github:evil/pkg"),
        ("npx -y -- pkg", "pkg"),
        ("/usr/local/bin/npx pkg", "pkg"),
        ("NPX.CMD pkg", "pkg"),
        ("npm exec -- pkg", "pkg"),
        ("npm --silent exec pkg", "pkg"),
        ("pnpm dlx pkg", "pkg"),
        ("yarn dlx pkg", "pkg"),
        ("bunx pkg", "pkg"),
        ("uvx pkg", "pkg"),
        ("uvx pkg>=1.0", "pkg>=1.0"),
        ("uvx pkg@latest", "pkg@latest"),
        ("uvx --python 3.12 pkg", "pkg"),
        ("uvx --from git+https://example.com/x tool", "git+https://example.com/x"),
        ("uv tool run pkg", "pkg"),
        ("pipx run pkg", "pkg"),
        ("docker run -i --rm -e KEY image", "image"),
        ("docker run -i --rm image:latest", "image:latest"),
        ("docker run --rm image:1.2.3", "image:1.2.3"),
        ("go run example.com/tool@latest", "example.com/tool@latest"),
    ],
)
def test_a_package_without_a_fixed_version_is_found(line: str, package: str) -> None:
    command, *args = line.split()
    found = unpinned_package(command, args)
    assert found is not None
    assert found[0] == package


@pytest.mark.parametrize(
    "line",
    [
        "npx -y pkg@1.2.3",
        "npx -y @scope/pkg@1.2.3-beta.1",
        "npx -y pkg@2025.11.25 --flag loose",
        "npx -p pkg@1.2.3 tool",
        "npx ./local",
        "uvx pkg==1.2.3",
        "uvx pkg@1.2.3",
        "uvx pkg[extra]==1.2.3",
        "uvx --from pkg==1.2.3 tool",
        f"uvx --from git+https://example.com/x@{'a' * 40} tool",
        "uv run server.py",
        "npm run start",
        f"docker run --rm image@sha256:{'0' * 64}",
        "docker compose up",
        "go run ./cmd/server",
        "python server.py",
        "node index.js",
        "npx",
        "docker run",
    ],
)
def test_what_is_fixed_or_not_fetched_is_left_alone(line: str) -> None:
    command, *args = line.split()
    assert unpinned_package(command, args) is None
