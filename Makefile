# Operant: the everyday commands. `make` alone lists them.
# Needs make and Python 3.11 or newer. Uses uv when it is on PATH, else venv and pip; all goes into .venv.

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core-installed
DEV := $(VENV)/.dev-installed
CANDIDATES := python3 python3.14 python3.13 python3.12 python3.11 python
PINS := pyproject.toml constraints.txt
WORKERS ?= 2

comma := ,
NEW_ENOUGH := 'import sys; sys.exit(sys.version_info < (3, 11))'

# Installs $(1) into the environment, which it makes when there is none that works. The target, touched by the
# last line of each rule, is the stamp: an interrupted installation is done again.
define install
	@set -e; \
	if ! $(BIN)/python -c $(NEW_ENOUGH) 2>/dev/null; then \
	  rm -rf $(VENV); \
	  if command -v uv >/dev/null 2>&1; then \
	    echo 'Making $(VENV) with uv'; uv venv --quiet --python '$(or $(PYTHON),>=3.11)' $(VENV); \
	  else \
	    python=; \
	    for candidate in $(or $(PYTHON),$(CANDIDATES)); do \
	      if $$candidate -c $(NEW_ENOUGH) 2>/dev/null; then python=$$candidate; break; fi; \
	    done; \
	    if [ -z "$$python" ]; then \
	      echo 'Operant needs Python 3.11 or newer and found none: install it, or name it: make PYTHON=/path/to/python' >&2; \
	      exit 1; \
	    fi; \
	    if ! $$python -c 'import ensurepip, venv' 2>/dev/null; then \
	      echo "$$python cannot make a virtual environment: install python3-venv (Debian, Ubuntu) or uv" >&2; \
	      exit 1; \
	    fi; \
	    echo "Making $(VENV) with $$($$python --version)"; $$python -m venv $(VENV); \
	  fi; \
	fi; \
	echo 'Installing $(1); this is done once, and again when $(PINS) change'; \
	if command -v uv >/dev/null 2>&1; then \
	  uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --editable '$(1)'; \
	else \
	  $(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null; \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '$(1)'; \
	fi; \
	echo 'The command is $(BIN)/operant; `. $(BIN)/activate` puts `operant` on PATH'
endef

.PHONY: help install run test check fmt docs bench
.DEFAULT_GOAL := help

help: ## List these targets
	@echo 'Operant: make <target>'; echo
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1|\2/p' Makefile | while IFS='|' read -r name text; do printf '%-10s %s\n' "$$name" "$$text"; done
	@echo; echo '  ARGS="…" goes on to run, test and bench: make run ARGS="doctor", make test ARGS="tests/kernel -x"'

install: $(DEV) ## Make .venv with everything that development needs

run: $(CORE) ## Start Operant (installs on the first run)
	@exec $(BIN)/operant $(ARGS)

test: $(DEV) ## Run the whole test suite
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(ARGS)

check: $(DEV) ## Lint, formatting, types, import contracts, shape and generated docs
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python scripts/shape.py
	@$(BIN)/python scripts/page.py
	@[ ! -e scripts/docs.py ] || $(BIN)/python scripts/docs.py --check
	@$(BIN)/python scripts/wire.py --check

fmt: $(DEV) ## Format the code and mend what ruff can mend
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .

docs: $(DEV) ## Write the generated tables of docs/ anew
	@$(BIN)/python scripts/docs.py
	@$(BIN)/python scripts/wire.py

bench: $(DEV) ## Measure, and print one table
	@$(BIN)/python -m bench $(ARGS)

$(CORE): $(PINS) $(BIN)/python
	$(call install,.)
	@touch $@

$(DEV): $(PINS) $(BIN)/python
	$(call install,.[dev$(comma)speed$(comma)web$(comma)browser$(comma)files])
	@touch $(CORE) $@

# No recipe: where the interpreter has gone (a new checkout, an upgraded system), the stamps are stale.
$(BIN)/python:
