# Everything runs from .venv in this folder; `make demo` needs nothing but Python 3.11 or newer.
PYTHON ?= python3
BIN := .venv/bin
export OMP_NUM_THREADS ?= 1

.PHONY: install demo test check bench format clean

install: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q -c constraints.txt -e ".[train,smollm2,humaneval,judge,dev]"
	touch $@

demo: install
	$(BIN)/outpace train recipes/starter.yaml

test: install
	$(BIN)/python -m pytest -n 2 --dist loadgroup

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: install
	$(BIN)/outpace bench sandbox
	$(BIN)/outpace bench timing

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache
