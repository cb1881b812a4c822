# Everything that people and CI run on this project. `make` alone lists the targets.

PYTHON ?= python3
BIN := .venv/bin
UV := UV_PYTHON_DOWNLOADS=never UV_SYSTEM_CERTS=1 .tools/bin/uv
COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes

ASK ?= We deploy the checkout service today. What share of the traffic goes to the canary first, and how long is the soak?
SKILLS ?= skills
# Taken unexpanded and handed over in the environment, so that quotes and dollars in a question stay what they are.
export RUN_ASK := $(value ASK)
export RUN_SKILLS := $(value SKILLS)

.PHONY: help run setup test check fmt lock clean
.DEFAULT_GOAL := help

help:
	@echo "make run     ask the embedded model a question that only a bundled skill answers"
	@echo "             (make run ASK='your question' SKILLS=folder-of-skills)"
	@echo "make test    all tests, the real model included"
	@echo "make check   format, lint, types, import contracts, sizes, docs, tests: what CI runs"
	@echo "make setup   only the environment for work on Satchel (.venv)"
	@echo "make fmt     format the sources and fix what ruff can fix"
	@echo "make lock    rebuild locks/ from pyproject.toml (UPGRADE=--upgrade: to the newest versions)"
	@echo "make clean   remove environments and caches (downloaded weights stay)"

run:
	@$(PYTHON) scripts/setup.py run
	@printf 'question  %s\n' "$$RUN_ASK" >&2
	@$(BIN)/satchel run "$$RUN_ASK" --skills-dir "$$RUN_SKILLS"
	@printf '%s\n' "" "Next: make run ASK='another question'" \
		"      make run ASK='...' SKILLS=path/to/your/skills" \
		"      $(BIN)/satchel serve --skills-dir skills     (a gateway for any OpenAI client)" >&2

setup:
	@$(PYTHON) scripts/setup.py dev

# The tests with the real model run alone afterwards: its threads and another worker's would starve each other.
define TESTS
@printf '\n== weights of the embedded model\n'
$(BIN)/satchel model fetch
@printf '\n== tests\n'
$(BIN)/pytest -n 2 -m "not model" $(1)
@printf '\n== tests with the embedded model\n'
$(BIN)/pytest -m model $(1)
endef

test: setup
	$(call TESTS)

check: setup
	@printf '\n== format\n'
	$(BIN)/ruff format --check .
	@printf '\n== lint\n'
	$(BIN)/ruff check .
	@printf '\n== types\n'
	$(BIN)/basedpyright
	@printf '\n== import contracts\n'
	$(BIN)/lint-imports --no-cache --no-logo
	@printf '\n== sizes\n'
	$(BIN)/loq check src tests scripts benchmarks skills docs_src
	@printf '\n== docs and house rules\n'
	$(BIN)/pytest -n 2 tests/project
	$(call TESTS,--ignore tests/project)
	@printf '\n== all checks passed\n'

fmt: setup
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

lock: setup
	$(COMPILE) $(UPGRADE) --group tools -o locks/tools.txt
	$(COMPILE) $(UPGRADE) --group build -o locks/build.txt
	$(COMPILE) $(UPGRADE) --all-extras --group dev pyproject.toml -o locks/dev.txt
	$(COMPILE) $(UPGRADE) --extra all pyproject.toml -o locks/run.txt
	@if grep -nE '://|^--(index|extra-index|find-links|trusted-host)' locks/*.txt; then \
		echo "A lock holds an address; remove the line above and see docs/adr/0002." >&2; exit 1; fi

clean:
	rm -rf .venv .tools .cache dist build .pytest_cache .ruff_cache .hypothesis .import_linter_cache .loq_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
