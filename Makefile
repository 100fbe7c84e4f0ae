# Two commands do everything: `make demo` and `make test`. Each makes what it needs, once.
VENV := .venv
BIN := $(VENV)/bin
PIP := PIP_ROOT_USER_ACTION=ignore $(BIN)/python -m pip -qq --disable-pip-version-check --no-input
# The first of these that is new enough; say `make PYTHON=/path/to/python test` to choose another.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)

# What `make oldest` runs: what stands closest to the packages that others make.
# (Not the notebooks, which need more packages.)
OLDEST := tests/core tests/sql tests/cli tests/noise/test_parameters.py tests/mechanisms --ignore=tests/cli/test_learn.py

.PHONY: help demo test check house bench fuzz oldest screens docs release format clean
.DELETE_ON_ERROR:

help:
	@echo "make demo     run the demonstration on sample data"
	@echo "make test     run all tests"
	@echo "make check    run ruff, mypy and the layer contracts"
	@echo "make house    print the figures of the house: imports, types, names, roads"
	@echo "make bench    compare with other libraries, each in an environment of its own"
	@echo "make fuzz     search for failures at random, for ten minutes each"
	@echo "make oldest   run the tests of a selection with the oldest versions that are allowed"
	@echo "make screens  take a picture of every page of the console into screens/"
	@echo "make docs     build the documentation into site/"
	@echo "make release  build the wheel and the source archive into dist/, and check both"
	@echo "make format   format the code"
	@echo "make clean    remove everything these commands made"

demo: $(VENV)/.demo
	@$(BIN)/python examples/demo.py

test: $(VENV)/.test
	@sh tests/system-packages.sh postgresql mariadb-server default-jre-headless chromium
	@$(BIN)/python -m compileall -qq -j 0 src  # once, for every process that a test starts, also where none may write it
	@$(BIN)/python -m pytest --numprocesses=3 --dist=loadfile --no-loadscope-reorder --reruns=1

check: $(VENV)/.test
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-cache >$(VENV)/.layers 2>&1 || { cat $(VENV)/.layers; exit 1; }

house: $(VENV)/.test
	@$(BIN)/python -m tests.house

bench: $(VENV)/.test
	@$(BIN)/python -m benchmarks

fuzz: $(VENV)/.test
	@$(BIN)/python -m fuzz

oldest: .bench/oldest/.installed
	@.bench/oldest/bin/python -m pytest --numprocesses=2 --dist=loadfile -W ignore::DeprecationWarning $(OLDEST)

screens: $(VENV)/.test
	@sh tests/system-packages.sh chromium fonts-noto-cjk
	@$(BIN)/python -m tests.server.make_screens screens

docs: $(VENV)/.test
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

release: $(VENV)/.test
	@$(BIN)/python -m tests.release

format: $(VENV)/.test
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .

clean:
	@rm -rf $(VENV) .bench dist site screens demo-output

$(VENV)/.python:
	@[ -n "$(PYTHON)" ] || { echo "Mosha needs Python 3.11 or newer: install it, or name it: make PYTHON=... " >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || sh tests/system-packages.sh python3-venv
	@echo "making the environment in $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@touch $@

.bench/oldest/.installed: constraints-oldest.txt pyproject.toml | $(VENV)/.python
	@echo "installing the oldest versions that are allowed (once) ..."
	@$(BIN)/python -m venv .bench/oldest
	@PIP_ROOT_USER_ACTION=ignore .bench/oldest/bin/python -m pip -qq --disable-pip-version-check --no-input \
		install --constraint constraints-oldest.txt --editable '.[plot,pandas,polars,arrow,graphs,interop]' \
		hypothesis igraph mpmath networkx psutil pytest pytest-timeout pytest-xdist scikit-learn 'click<8.5'
	@touch $@

$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/.python
	@echo "installing Mosha (once) ..."
	@$(PIP) install --constraint constraints.txt --editable '.[plot]'
	@touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(VENV)/.python
	@echo "installing what the tests need (once) ..."
	@$(PIP) install --constraint constraints.txt torch
	@$(PIP) install --constraint constraints.txt --editable '.[test]'
	@touch $@ $(VENV)/.demo
