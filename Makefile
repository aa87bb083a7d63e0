# `make demo` and `make test` need nothing but Python: they create the virtual environment themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# The command is a copy, also in an editable install.
SOURCES := pyproject.toml constraints.txt src/absentia_command.py

.PHONY: demo test quick check fuzz reliability verdicts bench reproduce docs clean

demo: $(VENV)/.demo
	$(BIN)/absentia demo

test: $(VENV)/.test
	$(BIN)/python -m pytest --numprocesses auto

# Without the slow tests, the examples of experiments/, and the checks of axes, which take almost half of the time.
quick: $(VENV)/.test
	$(BIN)/python -m pytest --numprocesses auto -m "not slow" --jaxtyping-packages= tests src

check: $(VENV)/.check test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# Malformed calls and damaged files, for an hour.
fuzz: $(VENV)/.test
	$(BIN)/python tests/fuzz/fuzzing.py --seconds 3600

# The figures of docs/reliability.md: `make reliability NAMES="faults memory"` measures some of them anew.
reliability: $(VENV)/.reliability
	$(BIN)/python benchmarks/reliability.py $(NAMES)

# How far verdicts of audits can be trusted: `make verdicts NAMES="coverage time"` measures some of it anew.
verdicts: $(VENV)/.test
	$(BIN)/python benchmarks/verdicts.py $(NAMES)

bench: $(VENV)/.test
	$(BIN)/python benchmarks/exact.py
	$(BIN)/python benchmarks/learning.py

# The paper's experiments: `make reproduce NAME=tsang` runs one, `make reproduce` all of them, which takes hours.
NAME ?= all
reproduce: $(VENV)/.experiments
	$(BIN)/python -m experiments $(NAME)

# Run every page, which draws the pictures; then build the site. NO_MKDOCS_2_WARNING turns off an advertisement.
docs: $(VENV)/.docs
	$(BIN)/python docs/making/run_pages.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# One stamp for each set of dependencies: install again only if the files that name them change.
$(VENV)/.%: $(SOURCES) | $(VENV)/bin/python
	@echo "installing absentia[$*] into $(VENV) …"
	$(INSTALL) --editable ".[$*]"
	@touch $@

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("absentia needs Python 3.10 or newer: make PYTHON=python3.11 …" if sys.version_info < (3, 10) else 0)'
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV) demo site
