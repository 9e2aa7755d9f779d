# Two commands on a fresh machine: `make bench` and `make test`. Each makes what it needs, once.

VENV ?= .venv
PYTHON ?= python3
PYTEST_ARGS ?=
BENCH_ARGS ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet --constraint constraints.txt
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

.DEFAULT_GOAL := help
.PHONY: help bench test test-slow lint clean

help:  ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

bench: $(VENV)/.installed  ## run the default benchmark: a table, plots and a report under runs/
	$(BIN)/protgraph bench $(BENCH_ARGS)

test: $(VENV)/.installed-test  ## run the tests
	$(PYTEST) -m "not slow" $(PYTEST_ARGS)

test-slow: $(VENV)/.installed-test  ## run the tests that take long
	$(PYTEST) -m slow $(PYTEST_ARGS)

lint: $(VENV)/.installed-test  ## check the style
	$(BIN)/ruff check .

clean:  ## remove the environment, builds and caches (results in runs/ stay)
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find protgraph plugins datasets tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: an environment is made again only where what it was made from has changed.
$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing protgraph into $(VENV) (some minutes the first time)"
	$(INSTALL) --editable .
	@touch $@

# torch-scatter compiles against the torch that is there already, hence no build isolation.
$(VENV)/.installed-test: $(VENV)/.installed
	@echo "installing the test extras; torch-scatter is compiled (some minutes the first time)"
	$(INSTALL) 'setuptools>=77' wheel ninja
	$(INSTALL) --editable '.[test]'
	$(INSTALL) --no-build-isolation --editable '.[scatter]'
	@touch $@
