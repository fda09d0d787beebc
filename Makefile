# `make demo` and `make test` do all of their own set-up: a virtual environment, the guest images, the tests' tools.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
TESTS ?= tests
# More than there are cores: many tests wait, for servers and for time.
JOBS ?= 4
WASMTIME := $(shell grep -oE 'wasmtime==[0-9.]+' pyproject.toml | head -1)

.PHONY: help demo test threats threats-selftest check format guest bench wheel clean

help: ## List what there is to make
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

REQUIREMENTS := import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# What a user has: toolbridge, its requirements, and the images. It is renewed whenever the requirements change.
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

# What a developer has besides.
$(VENV)/.installed: $(VENV)/.runtime
	@echo "Installing the tools of the tests and checks (a minute)."
	@$(PIP) --editable . --group dev
	@$(BIN)/python -m compileall -q bridge codegen guest/toolbridge_guest
	@touch $@

guest: $(VENV)/.installed ## Build the guest images
	$(BIN)/python guest/build.py

demo: $(VENV)/.runtime ## See it run: the first time two to three minutes of set-up, then seconds
	@$(BIN)/python guest/build.py
	@$(BIN)/toolbridge demo

test: guest ## Run the test suite
	$(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadfile $(TESTS)

threats: guest ## Try every threat, and write a report into dist/threats/
	$(BIN)/python tests/threats/run_report.py dist/threats tests/threats --numprocesses $(JOBS) --dist loadfile

threats-selftest: guest ## Switch each mitigation off in turn, and see that a test notices
	$(BIN)/python tests/threats/run_selftest.py

check: $(VENV)/.installed ## Lint, type-check, and check the dependency rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

format: $(VENV)/.installed ## Put the code into the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: guest ## Measure, side by side with other ways, in one run
	$(BIN)/python bench/run.py

wheel: $(VENV)/.installed ## Build a wheel into dist/
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

clean: ## Remove everything that was built
	rm -rf $(VENV) dist guest/.build guest/toolbridge_guest/images guest/toolbridge_guest/licences
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
