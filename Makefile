# The commands of a day. PYTHON chooses the interpreter of the environment: `make setup PYTHON=python3.13`.
PYTHON ?= python3
BIN := .venv/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: setup check test docs bench

# Create .venv with the package in place and all tools.
setup:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable ".[dev]"

# Lint, types, import rules and the fast tests.
check:
	.ci/check

# The fast tests alone. Run some of them with `make test TESTS=tests/test_debate.py`.
test:
	$(BIN)/pytest --quiet --numprocesses auto $(TESTS)

# The site, in build/site, without drawings of the graphs. Every warning is an error.
docs:
	JURYGRAPH_DRAWINGS=false $(BIN)/python -m mkdocs build --strict --quiet --site-dir build/site

# The share of the processor's time that each stage of a call takes.
bench:
	$(BIN)/python -m benchmarks.profiling
