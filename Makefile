# Everything a fresh machine needs: `make demo` to see it work, `make test` to check it, always the
# same way, and `make test-thorough` to look for trouble.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core-installed
STAMP := $(VENV)/.installed

.PHONY: audit automl-env demo docs fuzz neural-env outputs sbom test test-alone test-bare test-browser test-mlflow test-newest test-oldest test-rest test-service test-thorough test-wheel lint types unit install clean mutants

install: $(STAMP)

# Files of packages are compiled when they are first imported: most never are.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

# What the main job needs, pinned, then this package on top of it.
$(CORE): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
	  || { echo "rareclass needs Python 3.11 to 3.13; name one: make PYTHON=python3.12 test"; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
	  || { echo "Python's venv module is missing; on Debian: apt install python3-venv"; exit 1; }
	$(PIP) --constraint requirements.lock hatchling editables
	$(PIP) --constraint requirements.lock --no-build-isolation --editable ".[cli,boosters]"
	@touch $@

$(STAMP): $(CORE)
	$(PIP) -r requirements.lock
	@touch $@

demo: $(CORE)
	$(BIN)/rareclass demo --overwrite

# The documentation site, in build/docs: what it needs goes into the same environment, pinned.
DOCS_STAMP := $(VENV)/.docs-installed

$(DOCS_STAMP): $(STAMP) requirements-docs.lock
	$(PIP) -r requirements-docs.lock
	@touch $@

# Spelling of the words, then the pages: warnings, links that lead nowhere, and requests to other hosts
# are errors.
docs: $(DOCS_STAMP)
	$(BIN)/codespell docs src README.md CONTRIBUTING.md CHANGELOG.md
	OMP_NUM_THREADS=2 $(BIN)/python -m sphinx -b html -W --keep-going -q -E -d build/docs-pages docs build/docs
	@echo "The site is in build/docs: open build/docs/index.html"

# Outputs on the tutorial and the how-to pages, printed anew by the commands above them (minutes).
outputs: install
	OMP_NUM_THREADS=2 $(BIN)/python -m docs.site_pages.printed_outputs

test: lint types unit

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install
	$(BIN)/mypy

# Tests start processes: each would compile the package again where Python is told to keep nothing.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -q -n 2 --dist worksteal

unit: install
	$(PYTEST)

# The cases that `make test` leaves out of tests with many; together they are whole.
test-rest: install
	$(PYTEST) --cases rest

# Draws anew with many examples, and runs what is slow. SEED=7 repeats a run, TESTS=tests/ranking
# runs a part of it.
SEED ?= $(shell $(PYTHON) -c 'import random; print(random.randrange(2**32))')
TESTS ?=
test-thorough: SEED := $(SEED)
test-thorough: install
	@echo "Drawn with SEED=$(SEED)"
	$(PYTEST) --hypothesis-profile=thorough --hypothesis-seed=$(SEED) $(TESTS)

# Hostile files, tables, journals and commands for so many minutes; findings in build/fuzz/found.
# ONLY="model rankrc" takes targets whose names begin so, CASE=17 repeats one case with its traceback.
MINUTES ?= 10
ONLY ?=
FUZZ_SEED ?=
CASE ?=
fuzz: install
	PYTHONPATH=tests OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m fuzz \
	  --minutes $(MINUTES) $(if $(FUZZ_SEED),--seed $(FUZZ_SEED)) $(if $(ONLY),--only "$(ONLY)") \
	  $(if $(CASE),--case $(CASE))

# Faults put into the core one at a time, to see that its tests catch them: some minutes for ten of
# them. It goes on where it was stopped; `make mutants COUNT=20 MUTANT_SEED=7` draws others, and
# ROOMS="tables model" names the rooms to draw from, AGAIN="tests/model" tests to try gaps with.
# KEEP=1 puts counts and survivors into benchmarks/results/mutants.json.
COUNT ?= 200
MUTANT_SEED ?= 0
mutants: install
	PYTHONPATH=tools $(BIN)/python -m mutants --count $(COUNT) --seed $(MUTANT_SEED) \
	  $(if $(ROOMS),--rooms $(ROOMS)) $(if $(AGAIN),--again $(AGAIN)) $(if $(KEEP),--keep)

# Pages in headless Chromium: Debian's, with axe-core's rules from the npm registry.
AXE := build/browser/node_modules/axe-core/axe.min.js
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)

$(AXE):
	@command -v npm >/dev/null \
	  || { echo "axe-core is fetched by npm, which is missing; on Debian: apt-get install npm"; exit 1; }
	npm install --silent --no-audit --no-fund --prefix build/browser axe-core@4.14.1

test-browser: install $(AXE)
	@command -v chromedriver >/dev/null || { command -v apt-get >/dev/null \
	  && $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq chromium chromium-driver; } \
	  || { echo "Chromium could not be installed: install chromium and chromedriver, and try again"; exit 1; }
	$(BIN)/python -m pytest -q --hypothesis-profile=thorough -m browser tests/browser

# A new environment in folder $(1), with what pip makes of the words $(2).
define environment
rm -rf $(1)
$(PYTHON) -m venv $(1)
$(1)/bin/python -m pip install --quiet --disable-pip-version-check $(2)
endef

# Environments with pins of their own, and this package on top of them.
build/%/.installed: requirements-%.lock pyproject.toml
	$(call environment,build/$*,-r $<)
	build/$*/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $@

# What `pip install rareclass` alone can do: an environment with its dependencies and nothing else.
test-alone: install
	$(BIN)/rareclass demo --out build/alone-demo --overwrite
	$(call environment,build/alone,-c requirements.lock .)
	build/alone/bin/python tests/alone/score_a_table.py build/alone-demo

# What is shipped: wheel and sdist, each installed in an empty environment, run the demo in an empty folder.
define demo_of
$(call environment,build/from-$(1),-c requirements.lock "$$(echo build/dist/*.$(1))[cli]")
mkdir build/from-$(1)/empty
cd build/from-$(1)/empty && ../bin/rareclass demo
endef

test-wheel: install
	rm -rf build/dist
	$(BIN)/python -m hatchling build -d build/dist
	$(call demo_of,whl)
	$(call demo_of,tar.gz)

# The wheel where there is no compiler, git or libgomp: they are hidden from it (Linux alone).
test-bare: install
	rm -rf build/dist build/bare build/bare-empty
	$(BIN)/python -m hatchling build -d build/dist -t wheel
	$(PYTHON) -m venv build/bare
	mkdir build/bare-empty
	unshare --user --map-root-user --mount sh tests/alone/without_compiler.sh sh -e -c '\
	  build/bare/bin/python -m pip install --quiet --disable-pip-version-check \
	    -c requirements.lock "$$(echo build/dist/*.whl)[cli,boosters]"; \
	  cd build/bare-empty; ../bare/bin/rareclass demo; \
	  ../bare/bin/rareclass report rareclass-demo/model.rareclass --out report.html'

# A software bill of materials (CycloneDX) of what the lock installs, with licences: build/sbom.json.
sbom: install
	$(call environment,build/sbom,cyclonedx-bom==7.5.0)
	build/sbom/bin/cyclonedx-py environment $(BIN)/python --pyproject pyproject.toml \
	  --output-reproducible --of JSON -o build/sbom.json
	@echo "The bill of materials is in build/sbom.json"

# MLflow pins other versions of what we test with: it has an environment of its own.
test-mlflow: build/mlflow/.installed
	build/mlflow/bin/python -m pytest -q --noconftest -c /dev/null --rootdir . tests/with_mlflow

# A running service, asked from its OpenAPI for so many minutes. ASK_SEED=7 draws other requests.
ASK_SEED ?= 0
test-service: install build/service/.installed
	OMP_NUM_THREADS=1 $(BIN)/python tests/with_schemathesis/ask_the_service.py \
	  --schemathesis $(abspath build/service/bin/schemathesis) --minutes $(MINUTES) --seed $(ASK_SEED)

build/service/.installed: requirements-service.lock
	$(call environment,build/service,-r $<)
	@touch $@

# Libraries that `python -m benchmarks.run tabular` asks: AutoGluon and FLAML, without their neural
# networks, pin other versions of what we use; RealMLP needs PyTorch.
automl-env: build/automl/.installed
neural-env: build/neural/.installed

build/automl/.installed build/neural/.installed: build/%/.installed: requirements-%.lock
	$(call environment,build/$*,-r $<)
	@touch $@

# The suite with the oldest releases that pyproject.toml allows (Python 3.11, Linux), which warn of
# what newer ones beside them have renamed. TESTS=tests/rows runs a part of it.
test-oldest: build/oldest/.installed
	build/oldest/bin/python -m pytest -q -n 2 --dist worksteal \
	  -W default::DeprecationWarning -W default::FutureWarning $(TESTS)

# The suite with the newest releases that pip finds today: prints those that differ from the lock.
test-newest:
	$(call environment,build/newest,-e '.[dev]')
	build/newest/bin/python -m pip freeze --exclude-editable >build/newest/releases
	@sed 's/ *;.*//' requirements.lock | grep -vxFf - build/newest/releases || true
	build/newest/bin/python -m pytest -q -n 2 --dist worksteal $(TESTS)

# Known weaknesses of the pinned releases, asked of PyPI over the network: strictly, as a release that
# cannot be looked up is otherwise passed over, and none found of those that are left.
audit:
	$(call environment,build/audit,pip-audit)
	build/audit/bin/pip-audit --strict --no-deps --disable-pip -r requirements.lock \
	  || { echo "Above is a weakness, or a release that could not be looked up: then nothing is known" \
	  "of any, and the advisories of pypi.org may not be reachable from here."; exit 1; }

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .mypy_cache build dist docs/generated
