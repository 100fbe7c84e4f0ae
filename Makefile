# Two commands do everything: `make demo` and `make test`. Each makes what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.PHONY: demo test check bench docs format clean
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	@$(BIN)/python examples/demo.py

test: $(VENV)/.test system
	@$(BIN)/python -m pytest

check: $(VENV)/.test
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

bench: $(VENV)/.test
	@$(BIN)/python -m benchmarks

docs: $(VENV)/.test
	@$(BIN)/mkdocs build --quiet --strict

format: $(VENV)/.test
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

clean:
	@rm -rf $(VENV) .bench site demo-output

.PHONY: system
system:
	@PYTHON=$(BIN)/python sh tests/system-packages.sh

$(VENV)/.python:
	@echo "making the environment in $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.demo: pyproject.toml | $(VENV)/.python
	@$(PIP) install --editable '.[plot]'
	@touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/.python
	@echo "installing what the tests need (once) ..."
	@$(PIP) install --editable '.[test]'
	@touch $@ $(VENV)/.demo
