# `make` lists the targets. `make demo` and `make test` do all their own set-up; they need
# Python 3.11 or newer with venv, and make.
.DEFAULT_GOAL := help
SHELL := /bin/sh
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$p && break; done)
BIN := .venv/bin
ARGS ?=

.PHONY: help demo install test slow timing docs-check check fix lock campaign chaos fuzz mutants cluster openapi keys pictures dist sbom audit clean

help:  ## list the targets
	@awk -F':.*## ' '/^[a-z][a-z-]*:.*## /{printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/runtime  ## serve the sample resumes from a scratch home; ARGS=--once exits when done
	@$(BIN)/resumes demo $(ARGS)

install: .venv/runtime  ## install only the service, as .venv/bin/resumes
	@echo 'The program is $(BIN)/resumes. In this terminal: export PATH="$$PWD/$(BIN):$$PATH"'

test: .venv/dev  ## run the tests for each change; ARGS="tests/api -k create" selects some, ARGS="-p randomly" shuffles them
	$(IN_MEMORY) $(BIN)/pytest $(SIDE_BY_SIDE) --durations=10 $(ARGS)

slow: .venv/dev  ## run the tests with many processes or large inputs
	$(IN_MEMORY) $(BIN)/pytest $(SIDE_BY_SIDE) --durations=10 -m "slow and not timing and not campaign" $(ARGS)

timing: .venv/dev  ## run the tests that assert on time, one by one, on an otherwise idle machine
	$(IN_MEMORY) $(BIN)/pytest --durations=10 -m "timing and not campaign" $(ARGS)

docs-check: .venv/dev  ## check the docs: commands, links, tables, pictures
	$(IN_MEMORY) $(BIN)/pytest $(SIDE_BY_SIDE) -m "docs and not campaign" $(ARGS)

check: .venv/dev  ## check format, lint, types and import contracts, as CI does
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fix: .venv/dev  ## format, and fix what the linter can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Many of these tests wait for processes, so there are more workers than processors. Modules are given
# out by engine, in the order of tests/conftest.py: the longest first.
campaign: .venv/dev  ## run slow tests, tests on every other engine, and long forms; then alone those that assert on time
	rc=0; $(IN_MEMORY) $(BIN)/pytest -n 3 --dist loadfile --max-worker-restart 0 --no-loadscope-reorder --durations=20 -m "(slow or campaign) and not timing and not chaos" $(ARGS) || rc=$$?; \
	$(IN_MEMORY) $(BIN)/pytest --durations=20 -m "timing and not chaos" $(ARGS) || rc=$$?; exit $$rc

# Hundreds of processes of this tree are started by tests: where no bytecode may be written, each of
# them compiles it again.
unexport PYTHONDONTWRITEBYTECODE

# As tests/conftest.py says, two for each processor. Tests of a module share its fixtures.
SIDE_BY_SIDE := -n auto --dist loadfile --max-worker-restart 0

# A store waits for the disk at each write, and a test's store need not outlive the power. So
# temporary files are in memory if 4 GiB of it are free and programs may be run from there.
IN_MEMORY = $(shell awk '$$2 == "/dev/shm" && $$3 == "tmpfs" && $$4 !~ /noexec/ {found = 1} END {exit !found}' /proc/mounts 2>/dev/null \
	&& test "$$(df -Pk /dev/shm | awk 'NR == 2 {print $$4}')" -gt 4194304 && echo TMPDIR=/dev/shm)

chaos: .venv/dev  ## inject the faults of docs/contributors/faults.md; ARGS="--seed 7 -k disk" repeats some
	$(BIN)/pytest -m chaos tests/chaos $(ARGS)

fuzz: .venv/dev .venv/fuzz/made  ## fuzz each parser of untrusted bytes for 10 minutes; ARGS="--seconds 60 --only parsing"
	$(BIN)/python -m tests.fuzz $(ARGS)

mutants: .venv/dev .venv/mutants/made  ## find changes of the core that no test notices (docs/contributors/mutants.md); ARGS="--areas cursor"
	$(BIN)/python -m tests.mutants $(ARGS)

cluster: .venv/dev .venv/patroni/made  ## test three PostgreSQL nodes under load; ARGS="--events kill-node"
	$(BIN)/python -m benchmarks.cluster $(ARGS)

openapi: .venv/runtime  ## update openapi.json, the description of the API
	$(BIN)/python -m server.openapi openapi.json

keys: .venv/runtime  ## update docs/keys.md, the keys of the terminal UI
	$(BIN)/python docs/pictures/keys_page.py docs/keys.md

pictures: .venv/runtime  ## update docs/pictures: the three surfaces, and PDFs of the samples; the API's page needs Chromium
	$(BIN)/python docs/pictures/draw.py
	$(BIN)/python docs/pictures/draw_layouts.py
	$(BIN)/python docs/pictures/draw_page.py

dist: .venv/runtime  ## build the wheel and the source distribution into dist/
	$(BIN)/python -m hatchling build --clean

# A lock is a list and says not which package needs which, so the tool warns that it cannot tell.
sbom: .venv/audit/made  ## write build/sbom.json: the locked packages of the service, as CycloneDX
	@mkdir -p build
	PYTHONWARNINGS="ignore:The Component this BOM is describing" .venv/audit/bin/cyclonedx-py requirements --pyproject pyproject.toml --mc-type application --output-reproducible --output-file build/sbom.json requirements/runtime.txt

audit: .venv/audit/made  ## check the locked packages for known vulnerabilities; no answer is an error
	.venv/audit/bin/pip-audit --strict --disable-pip --require-hashes --requirement requirements/runtime.txt

lock: .venv/dev  ## lock the newest versions that pyproject.toml allows
	$(BIN)/uv pip compile pyproject.toml requirements/build.in --upgrade $(LOCK) -o requirements/runtime.txt
	$(BIN)/uv pip compile pyproject.toml requirements/build.in --upgrade --group dev $(LOCK) -c requirements/runtime.txt -o requirements/dev.txt
	$(BIN)/uv pip compile requirements/cluster.in --upgrade $(LOCK) -c requirements/runtime.txt -o requirements/cluster.txt
	$(BIN)/uv pip compile requirements/fuzz.in --upgrade $(LOCK) -c requirements/dev.txt -o requirements/fuzz.txt
	$(BIN)/uv pip compile requirements/mutants.in --upgrade $(LOCK) -c requirements/dev.txt -o requirements/mutants.txt
	$(BIN)/uv pip compile requirements/audit.in --upgrade $(LOCK) -o requirements/audit.txt
LOCK := --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header

clean:  ## remove the environment and what tools left
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

# The project itself is installed last and without its dependencies: they are in the lock.
.venv/runtime: requirements/runtime.txt pyproject.toml | .venv/bin/python
	@echo 'Installing the service and what it needs. This takes about a minute.'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/runtime.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@test -e .venv/dev || $(SATISFIED)
	@touch $@

.venv/dev: requirements/dev.txt .venv/runtime
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(SATISFIED)
	@touch $@

# What is installed without its dependencies does not say by itself that the lock lacks one. Packages
# of an older dev.txt are looked at when the newer ones are there.
SATISFIED := { said=$$($(BIN)/python -m pip check --disable-pip-version-check) || { echo "$$said" >&2; \
	echo "make: requirements/*.txt are not what pyproject.toml asks for: run make lock" >&2; exit 1; }; }

# Beside the environment, not in it: the service needs none of it, and other users have to read it.
.venv/patroni/made: requirements/cluster.txt | .venv/bin/python
	rm -rf .venv/patroni
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --target .venv/patroni -r requirements/cluster.txt
	@touch $@

# What few runs need, and brings more than it is worth to the environment of everybody.
.venv/fuzz/made .venv/mutants/made: .venv/%/made: requirements/%.txt | .venv/bin/python
	rm -rf .venv/$*
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --target .venv/$* -r requirements/$*.txt
	@touch $@

# Beside it too: what looks at packages should not be among them.
.venv/audit/made: requirements/audit.txt | .venv/bin/python
	rm -rf .venv/audit
	$(BIN)/python -m venv --without-pip .venv/audit
	$(BIN)/python -m pip --python .venv/audit install --quiet --disable-pip-version-check --require-hashes -r requirements/audit.txt
	@touch $@

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "make: Python 3.11 or newer with the venv module is needed (Debian: python3 python3-venv)" >&2; exit 1; }
	$(PYTHON) -m venv .venv
