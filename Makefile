PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
ORACLE := out/oracle
PYTEST_ARGS ?=
MATRIX ?=
MUTATE ?=
TIMES ?= 3
LOOPS ?= 2

.DEFAULT_GOAL := help
.PHONY: help .venv demo notebooks test lint types format bench bench-kafka bench-rolling bench-spark bench-stream bench-tables bench-seeds bench-nexmark bench-scaling bench-world full kafka soak coverage mutate busy matrix oracle docs docs-serve release clean

help:
	@echo "make demo | notebooks | test | full | lint | types | format | bench | bench-kafka | bench-rolling | bench-spark | bench-stream | bench-tables | bench-seeds | bench-nexmark | bench-scaling | bench-world | kafka | soak | coverage | mutate | busy | matrix | oracle | docs | docs-serve | release | clean"

.venv: $(READY)

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "uncombine needs Python 3.11 or newer, and '$(PYTHON)' is not: run make PYTHON=/path/to/python3.11."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  --upgrade --upgrade-strategy eager -e '.[dev]'
	@touch $@

demo: .venv
	$(BIN)/python -m uncombine.cli.demo

notebooks: .venv
	$(BIN)/python notebooks/run.py

test: lint
	@command -v "$${JAVA_HOME:+$$JAVA_HOME/bin/}java" > /dev/null || \
	  echo "No Java found, so the tests that use Spark will fail: install Java 17 or newer, or leave them out with make test PYTEST_ARGS='-m \"not spark and not soak and not full\"'."
	$(BIN)/python -m pytest -n 2 --draw --durations=20 $(PYTEST_ARGS)

# The rest: what is built of the code, damaged data, and the tools of tests.
full: .venv
	$(BIN)/python -m pytest -n 2 --draw --durations=40 -m "full and not soak" $(PYTEST_ARGS)

# A broker of Kafka on loopback, from jars that Maven copies to out/, and all that reads it.
kafka: .venv
	$(BIN)/python tests/support/kafka/run.py $(PYTEST_ARGS)

lint: .venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv
	$(BIN)/mypy

format: .venv
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv
	$(BIN)/python benchmarks/run.py

bench-rolling: .venv
	$(BIN)/python benchmarks/run.py rollings

bench-spark: .venv
	$(BIN)/python benchmarks/run.py spark udfs

bench-stream: .venv
	$(BIN)/python benchmarks/run.py streams stream_steps

bench-tables: .venv
	$(BIN)/python benchmarks/run.py tables

# MESSAGES=2000000 ROUNDS=3 say how much.
bench-kafka: .venv
	$(BIN)/python benchmarks/run.py topics

bench-seeds: .venv
	$(BIN)/python benchmarks/run.py seeds

bench-nexmark: .venv
	$(BIN)/python benchmarks/run.py nexmark_queries

bench-scaling: .venv
	$(BIN)/python benchmarks/run.py scaling

# Each other system in an environment of its own under out/world/.
bench-world: .venv
	$(BIN)/python benchmarks/run.py world

# No seed is drawn, so that each is left to this run. UNCOMBINE_KILLS=20 UNCOMBINE_MESSAGES=100000000 say how much of topics.
soak: .venv
	UNCOMBINE_SEEDS=none HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest -m "soak or not spark" $(PYTEST_ARGS)
	$(BIN)/python tests/support/kafka/run.py --soak $(PYTEST_ARGS)

# Faults planted in a copy of the code, one at a time, and which of them the tests find.
mutate: .venv
	$(BIN)/python tests/support/mutate.py $(MUTATE)

# Which lines the suite without Spark runs; below the floor it fails.
coverage: .venv
	$(BIN)/python -m pytest -n 2 -m "not spark and not soak and not full" --cov --cov-report=term:skip-covered $(PYTEST_ARGS)

# A machine that has other work: the suite passes there too.
busy: .venv
	$(BIN)/python tests/support/busy.py --times $(TIMES) --loops $(LOOPS) -- $(BIN)/python -m pytest -n 2 --draw $(PYTEST_ARGS)

# The lowest and the newest versions that pyproject.toml allows, each in an environment of its own under out/matrix/.
matrix: .venv
	$(BIN)/python tests/support/matrix/run.py $(MATRIX)

# Beam pins versions of libraries that uncombine uses newer, so it lives in an environment of its own.
oracle: .venv $(ORACLE)/.ready
	$(BIN)/python tests/support/oracle/run.py --beam-python $(ORACLE)/bin/python

$(ORACLE)/.ready:
	$(PYTHON) -m venv $(ORACLE)
	$(ORACLE)/bin/python -m pip install --quiet --disable-pip-version-check apache-beam
	@touch $@

# The theme says at each start that its successor is another program.
docs docs-serve: export NO_MKDOCS_2_WARNING = 1

docs: .venv
	$(BIN)/python docs/generate.py
	$(BIN)/python -m mkdocs build

docs-serve: .venv
	$(BIN)/python -m mkdocs serve

# Builds the wheel and the source archive, checks them, and runs the README from the wheel in an environment of its own.
release: .venv
	rm -rf dist out/release
	$(BIN)/python -m build --outdir dist .
	$(PYTHON) -m venv out/release
	out/release/bin/python -m pip install --quiet --disable-pip-version-check twine
	out/release/bin/python -m twine check --strict dist/*
	out/release/bin/python -m pip install --quiet --disable-pip-version-check "$$(echo dist/*.whl)[spark,plot]"
	cd out/release && bin/uncombine --version && bin/python ../../tests/support/pages.py ../../README.md
	@echo "dist/ has the release; upload it with: twine upload dist/*"

clean:
	rm -rf $(VENV) out build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
