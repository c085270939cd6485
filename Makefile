# Two commands: `make demo` shows the paper's effect, `make test` checks everything. Both need Python 3.11+ alone.
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

# Bring the generated parts of README.md and docs/ up to date with results/.
pages: $(VENV)/for-tests
	$(BIN)/python -m auxmod.reporting.documents

# The pages as a web site in site/, which needs no network to read; a broken link is an error.
docs: $(VENV)/for-tests
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs site

# For longer than CI has time: fifty times the cases, new ones each time; a thousand kills, 5,000 runs, 50,000 steps;
# every small change to the arithmetic. `reliability` measures what docs/reliability.md says.
fuzz: $(VENV)/for-tests
	FUZZ=50 $(BIN)/pytest tests/trust/test_fuzz.py

soak: $(VENV)/for-tests
	KILLS=1000 BITS=500 $(BIN)/pytest tests/trust/test_crash.py tests/trust/test_damage.py --timeout 7200
	$(BIN)/pytest tests/trust/test_growth.py -m soak

mutants: $(VENV)/for-tests
	$(BIN)/python scripts/mutants.py

reliability: $(VENV)/for-tests
	$(BIN)/python scripts/reliability.py

# One environment serves both; it is brought up to date whenever the pins or the package's needs change.
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
