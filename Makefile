# Every target sets up what it needs; `make run` and `make test` work alone on a fresh machine.
PYTHON ?= python3
BIN := .venv/bin
# on two cores a third process works while others wait for browsers and killed sweeps
JOBS ?= 3

.PHONY: run test lint bench docs setup browser clean
.DEFAULT_GOAL := run

setup: .venv/installed

.venv/installed: pyproject.toml
	@echo "Setting up .venv (a few minutes the first time) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

browser:
	@tools/install-browser

# One experiment a paper, then the page; a failed claim is shown in it and fails the target at the end.
run: setup
	@failed=0; \
	$(BIN)/wideflow run caron2023-figure1 --out runs/demo || failed=1; \
	$(BIN)/wideflow run li2020-figure1 --out runs/demo || failed=1; \
	$(BIN)/wideflow run chen2022-figure4 --size smoke --out runs/demo || failed=1; \
	$(BIN)/wideflow run ren2023-figure2 --out runs/demo || failed=1; \
	$(BIN)/wideflow run allenzhu2018-spread --size smoke --out runs/demo || failed=1; \
	$(BIN)/wideflow report --out runs/demo || failed=1; \
	exit $$failed

test: setup browser
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright

bench: setup
	$(BIN)/wideflow bench

# The book into site/, from the sources and what is stored in docs/; needs no network, and opens from disk.
docs: setup
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The book: $(CURDIR)/site/index.html"

clean:
	rm -rf .venv runs site .pytest_cache .ruff_cache
