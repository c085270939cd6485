# `make demo` shows the paper's effect; `make test` runs every check that CI runs. Both need only Python 3.11+.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test lint unit pages docs fuzz soak mutants reliability clean

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

# Update the generated parts of README.md and docs/ from results/.
pages: $(VENV)/for-tests
	$(BIN)/python -m auxmod.reporting.documents

# Build the pages as a web site in site/, which can be read without a network; a broken link is an error.
docs: $(VENV)/for-tests
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs site

# Checks that take longer than CI has time for. fuzz: fifty times the cases, new ones each time; soak: a thousand kills,
# 5,000 runs, 50,000 steps; mutants: every small change to the arithmetic; reliability: the figures of
# docs/reliability.md.
fuzz: $(VENV)/for-tests
	FUZZ=50 $(BIN)/pytest tests/trust/test_fuzz.py

soak: $(VENV)/for-tests
	KILLS=1000 BITS=500 $(BIN)/pytest tests/trust/test_crash.py tests/trust/test_damage.py --timeout 7200
	$(BIN)/pytest tests/trust/test_growth.py -m soak

mutants: $(VENV)/for-tests
	$(BIN)/python scripts/mutants.py

reliability: $(VENV)/for-tests
	$(BIN)/python scripts/reliability.py

# The demo and the tests share one environment; it is updated whenever pyproject.toml or the pins change.
$(VENV)/for-demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[plot,report]'
	touch $@

$(VENV)/for-tests: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist site
