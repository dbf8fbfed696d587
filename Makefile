# The verbs of perfquarry; `make help` lists them.
PYTHON  ?= python3
REPO    ?= demo
ARGS    ?=
WORKERS ?= 3
# AGAIN=1: of the tests only those that failed last time
AGAIN   ?=
HOSTILE := tests/system/hostile

VENV := .venv
BIN  := $(VENV)/bin
TESTS = $(BIN)/python -m pytest -n $(WORKERS) --durations 20 --dist loadfile --no-loadscope-reorder --ignore $(HOSTILE)
# $(call lane,NAME,COMMAND): a lane that has passed is not run AGAIN, and one that came to no end is run whole
PASSED = .pytest_cache/$(1).passed
ENDED = .pytest_cache/$(1).ended
lane = $(if $(AGAIN),test -e $(PASSED) ||) { failed=$$($(if $(AGAIN),test -e $(ENDED) && echo --last-failed)); \
	rm -f $(PASSED) $(ENDED); $(2) $$failed; code=$$?; test $$code -gt 1 || touch $(ENDED); test $$code = 0 && touch $(PASSED); }
UV   := $(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --no-deps

.DEFAULT_GOAL := help
# without bytecode, each start of the command compiles all its libraries: four seconds
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help setup setup-dev curate test test-rooms test-unit test-sandbox test-system hostile test-all check docs ui doctor gc base-image lock bench-statistics bench-mining bench-judge bench-aa bench-agreement bench-gradings bench-cheats bench-consumers bench-released bench-intent bench-builds bench-sandboxes bench-pulls bench-scale bench-review

help: ## list the verbs
	@echo "make VERB [REPO=name|url|path] [ARGS='more options']"
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /|/' | awk -F'|' '{printf "  %-18s %s\n", $$1, $$2}'

setup: $(VENV)/.runtime ## prepare .venv; the command is .venv/bin/perfquarry

setup-dev: $(VENV)/.dev ## the same, with what the tests and the documentation need

curate: setup ## curate REPO (default: the demo repository) into verified tasks
	@$(BIN)/perfquarry curate "$(REPO)" $(ARGS)

test: setup-dev ## format, lint, types, import rules, and the tests of the rooms
	$(MAKE) --no-print-directory --jobs 3 --keep-going check hostile test-rooms

test-rooms: WORKERS = 4
test-rooms: setup-dev
	$(call lane,rooms,$(TESTS) -m "not slow and not system")

test-unit: setup-dev ## the tests that run no program of a repository
	$(call lane,unit,$(TESTS) -m "not slow and unit")

test-sandbox: setup-dev ## the tests that build, run, time or grade programs
	$(call lane,sandbox,$(TESTS) -m "not slow and sandbox")

test-system: setup-dev ## the tests of whole commands, builds, sessions of timings, pages, servers and workers
	$(call lane,system,$(TESTS) -m "not slow and system")

hostile: setup-dev  # in a process of their own, which they look at; most of them wait for their limits
	$(call lane,hostile,$(BIN)/python -m pytest -o cache_dir=.pytest_cache/hostile -m "not slow" $(HOSTILE))

test-all: setup-dev check ## all tests, the slow ones too
	$(BIN)/python -m pytest

check: setup-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	@rooms=$$(mktemp -d) && trap 'rm -rf "$$rooms"' EXIT && cp -rL perfquarry "$$rooms" && cd "$$rooms" && \
		"$(CURDIR)/$(BIN)/lint-imports" --config "$(CURDIR)/pyproject.toml" --no-cache  # it follows no links

docs: setup-dev ## build the documentation into build/site, to be read without a server
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "open build/site/index.html"

ui: setup ## open the page of the local Prefect server
	@$(BIN)/perfquarry ui

doctor: setup ## what is missing on this machine, and what that costs
	@$(BIN)/perfquarry doctor

gc: setup ## free the disk of what can be made again (ARGS: --keep 5GiB, --all, --dry-run)
	@$(BIN)/perfquarry gc $(ARGS)

base-image: setup ## make the image of Docker sandboxes (root, debootstrap; ARGS: --package NAME, --anew)
	$(BIN)/python -m perfquarry.harness.images.base $(ARGS)

lock: setup ## pin the requirements anew
	requirements/compile.sh

bench-statistics: setup-dev ## error rates, power and coverage of the acceptance rule
	$(BIN)/python -m benchmarks.statistics

bench-mining: setup-dev ## speed of mine and judge beside git log (ARGS: path of a clone and its name; numpy)
	$(BIN)/python -m benchmarks.mining $(ARGS)

bench-judge: setup-dev ## fit and evaluate the heuristic judge (ARGS: paths of clones)
	$(BIN)/python -m benchmarks.judge $(ARGS)

bench-aa: setup-dev ## false acceptance, power and spread, really measured (ARGS: tornado=CLONE sympy=CLONE ...)
	$(BIN)/python -m benchmarks.aa $(ARGS)

bench-cheats: setup-dev ## the corpus of cheats and honest changes, graded by perfquarry evaluate
	$(BIN)/python -m benchmarks.cheats $(ARGS)

bench-gradings: setup-dev ## four models that are written by hand, graded twice on real tasks (ARGS: FOLDER NAME=HOME=CLONE ...)
	$(BIN)/python -m benchmarks.gradings $(ARGS)

bench-consumers: setup-dev ## whether Harbor, verifiers, NeMo Gym, inspect_harbor, datasets, GSO and SWE-Perf load a release
	$(BIN)/python -m benchmarks.consumers $(ARGS)

bench-released: setup-dev ## the tasks of a release with their classes, and what Harbor's runs gave (ARGS: RELEASE JOBS ...)
	$(BIN)/python -m benchmarks.released $(ARGS)

bench-agreement: setup-dev ## GSO's and SWE-Perf's own code on our timings (ARGS: REPORT gso=CLONE sweperf=CLONE)
	$(BIN)/python -m benchmarks.agreement $(ARGS)

bench-wild: setup-dev ## curate on the repositories of a list that was written down first (ARGS: CLONES FOLDER --half opened)
	$(BIN)/python -m benchmarks.wild $(ARGS)

bench-intent: setup-dev ## classes of tasks by the heuristic and by a model, beside two readings
	$(BIN)/python -m benchmarks.intent $(ARGS)

bench-builds: setup-dev ## share of commits that build and run tests (ARGS: name=CLONE ...)
	$(BIN)/python -m benchmarks.builds $(ARGS)

bench-review: setup-dev ## seconds a page of the review queue with 10,000 candidates
	$(BIN)/python -m benchmarks.review $(ARGS)

bench-sandboxes: setup-dev ## what a start costs in each sandbox
	$(BIN)/python -m benchmarks.sandboxes $(ARGS)

bench-pulls: setup-dev ## the crawl of pull requests at SWE-Perf's scale, with faults and a kill
	$(BIN)/python -m benchmarks.pulls $(ARGS)

bench-scale: setup-dev ## what many changes, batches and workers cost (ARGS: orchestration tables workers faults)
	$(BIN)/python -m benchmarks.scale $(ARGS)

$(VENV)/.bootstrap: requirements/bootstrap.txt
	@command -v git >/dev/null || { echo "git is missing: install it (Debian, Ubuntu: apt-get install git)"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Python 3.11 or newer is needed; name one with: make PYTHON=python3.12 ..."; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "a virtual environment cannot be made (Debian, Ubuntu: apt-get install python3-venv)"; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.txt
	@touch $@

$(VENV)/.runtime: $(VENV)/.bootstrap requirements/runtime.txt pyproject.toml
	@echo "preparing $(VENV) ..."
	@$(UV) -r requirements/runtime.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements/dev.txt
	@$(UV) -r requirements/dev.txt
	@touch $@
