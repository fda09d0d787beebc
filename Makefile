# `make demo` and `make test` do all of their own set-up: a virtual environment, the guest images, the tests' tools.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
TESTS ?= tests
# More than there are cores: many tests wait, for servers and for time.
JOBS ?= 4
WASMTIME := $(shell grep -oE 'wasmtime==[0-9.]+' pyproject.toml | head -1)

.PHONY: help demo test threats threats-selftest check format reference guest bench wheel lock clean

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

REQUIREMENTS := import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# A user's environment: toolbridge, its requirements and the images, renewed when the requirements change.
$(VENV)/.runtime: pyproject.toml guest/hatch_build.py
	@echo "Setting up $(VENV): guest images for JavaScript, TypeScript and Python, and packages meanwhile."
	@echo "That takes one to three minutes, once; each step says what it does and how long it took."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) --upgrade "pip>=25.1" $(WASMTIME)
	@$(BIN)/python -c '$(REQUIREMENTS)' > $(VENV)/requirements.txt
	@$(PIP) --requirement $(VENV)/requirements.txt & packages=$$!; \
	$(BIN)/python guest/build.py; built=$$?; wait $$packages && exit $$built
	@$(PIP) --editable .
	@touch $@

# A developer's environment: exactly the packages of the lock, by hash.
$(VENV)/.installed: $(VENV)/.runtime requirements-dev.lock
	@echo "Installing the tools of the tests and checks (a minute)."
	@$(PIP) --requirement requirements-dev.lock
	@$(PIP) --no-deps --editable .
	@$(BIN)/python -m compileall -q bridge codegen guest/toolbridge_guest
	@touch $@

guest: $(VENV)/.installed ## Build the guest images
	$(BIN)/python guest/build.py

demo: $(VENV)/.runtime ## Run the demo; the first time sets up .venv in two to three minutes
	@$(BIN)/python guest/build.py
	@$(BIN)/toolbridge demo

test: guest ## Run the tests; TESTS=tests/cli runs some of them
	$(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadfile $(TESTS)

threats: guest ## Run the threat suite; the report is in dist/threats/
	$(BIN)/python tests/threats/run_report.py dist/threats tests/threats --numprocesses $(JOBS) --dist loadfile

threats-selftest: guest ## Remove each mitigation in turn; a test must fail each time
	$(BIN)/python tests/threats/run_selftest.py

check: $(VENV)/.installed ## Lint, check the format, type-check, check the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

format: $(VENV)/.installed ## Format the code, fix what the linter can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

reference: $(VENV)/.installed ## Write docs/python-api.md from the code
	$(BIN)/python docs/python_api.py

bench: guest ## Run the benchmarks beside their peers
	$(BIN)/python bench/run.py

wheel: $(VENV)/.installed ## Build a wheel into dist/
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

lock: $(VENV)/.runtime ## Renew requirements-dev.lock
	@$(PIP) --group maintain
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes --upgrade \
	  --custom-compile-command "make lock" --no-annotate --quiet --output-file requirements-dev.lock

clean: ## Remove everything built
	rm -rf $(VENV) dist guest/.build guest/toolbridge_guest/images guest/toolbridge_guest/licences
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
