# Two commands: `make demo` shows the paper's effect, `make test` checks everything. Both need Python 3.11+ alone.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: demo test lint unit pages clean

demo: $(VENV)/installed
	$(BIN)/auxmod demo

test: lint unit

lint: $(VENV)/installed
	$(BIN)/ruff check src tests
	$(BIN)/ruff format --check src tests
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(VENV)/installed
	$(BIN)/pytest -n 2 --dist loadfile

# Bring the generated parts of README.md and docs/ up to date with results/.
pages: $(VENV)/installed
	$(BIN)/python -m auxmod.reporting.pages
	$(BIN)/python -c "import json, pathlib; from auxmod.reporting import bench_figure; \
	    bench_figure.save(json.loads(pathlib.Path('results/bench-h200.json').read_text()), pathlib.Path('docs/bench-h200.png'))"

# One environment serves both: made anew whenever the pins or the package's needs change.
$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist
