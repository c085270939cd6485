# Two commands: `make demo` shows the paper's effect, `make test` checks everything. Both need Python 3.11+ alone.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test lint unit pages clean

demo: $(VENV)/for-demo
	$(BIN)/auxmod demo

test: lint unit

lint: $(VENV)/for-tests
	$(BIN)/ruff check src tests
	$(BIN)/ruff format --check src tests
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(VENV)/for-tests
	$(BIN)/pytest -n 2 --dist loadfile

# Bring the generated parts of README.md and docs/ up to date with results/.
pages: $(VENV)/for-tests
	$(BIN)/python -m auxmod.reporting.pages

# One environment serves both; it is brought up to date whenever the pins or the package's needs change.
$(VENV)/for-demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[plot]'
	touch $@

$(VENV)/for-tests: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist
