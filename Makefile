# Each target does everything it needs on a fresh machine: venv, install, run.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: evaluate study readme coverage test test-all lint types benchmark clean

evaluate: $(VENV)/installed
	$(BIN)/python -m icl_estimators.evaluate --out icl-results --force
	$(BIN)/python -m icl_estimators.evaluate --dataset elnino --out icl-results/elnino --force

test: lint types $(VENV)/installed-test
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow" tests
	$(BIN)/python -m pytest --doctest-modules icl_estimators --doctest-glob='*.md' README.md docs

test-all: lint types $(VENV)/installed-test
	$(BIN)/python -m pytest -n auto --dist loadfile tests
	$(BIN)/python -m pytest --doctest-modules icl_estimators --doctest-glob='*.md' README.md docs

lint: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed-test
	$(BIN)/mypy

study: $(VENV)/installed
	$(BIN)/python -m analysis.study

# The tables in data/readme, one training run among them, and the numbers of README.md: a quarter of an hour.
readme: $(VENV)/installed-test
	$(BIN)/python -m analysis.readme_numbers

# 300 small studies of each design, whose true values are known: half an hour of one core.
coverage: $(VENV)/installed
	$(BIN)/python -m analysis.coverage

benchmark: $(VENV)/installed-test
	$(BIN)/python -m analysis.benchmark

clean:
	rm -rf $(VENV) build dist *.egg-info

# A plain install (not editable) works in any path and any locale; it is made again when a source file changes.
SOURCES := $(shell find icl_estimators data -type f -not -path '*/__pycache__/*' 2>/dev/null)

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml constraints.txt $(SOURCES) | $(VENV)/bin/python
	$(PIP) install --quiet -c constraints.txt '.[report]'
	touch $@

$(VENV)/installed-test: $(VENV)/installed
	$(PIP) install --quiet -c constraints.txt '.[test]'
	touch $@
