# make demo   a comparison on a real network, from nothing but Python 3.11 and make
# make test   the tests          make test-all   the slow ones too    make bench   speed and quality
# make test-exhaustive   also those that repeat slow ones at more sizes and seeds, and each kernel in Python
# make lint   style, types, layers of imports and words
# make docs   the documentation as a site, in out/docs; warnings are errors
# make bounds-check   a fuzz of all systems with every index of the compiled kernels checked
# make pack   compile the kernels of all systems into a pack that a wheel carries, and build the wheel
# make lock   renew requirements/*.lock from setup.cfg

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
# the environment with what planner needs, and with everything for its development
BASE := $(VENV)/base
READY := $(VENV)/ready
# a test that hangs ends with its worker: all its threads are printed, it fails by name, the others go on
FAST_HANG_S := 600
SLOW_HANG_S ?= 7200
# the slow tests wait for browsers and servers a third of their time
SLOW_WORKERS := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input -q
DOCS_VENV := .venv-docs
DEMO := out/demo

# without compiled modules every command of the tests would compile them again
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-slow test-all test-exhaustive docs bounds-check lint bench pack lock clean

demo: $(BASE)
	$(BIN)/planner compare traffic/germany50 --out $(DEMO) --table-format csv
	@echo "plans: $(DEMO)/<design>/plan/   report: $(DEMO)/report.txt   scenario: $(DEMO)/scenario.toml"

test: $(READY)
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" -o faulthandler_timeout=$(FAST_HANG_S)

test-slow: $(READY) $(DOCS_VENV)/ready
	$(BIN)/python -m pytest -n $(SLOW_WORKERS) --dist worksteal -m slow -o faulthandler_timeout=$(SLOW_HANG_S)

test-all: test
	$(MAKE) --no-print-directory test-slow

test-exhaustive: test $(DOCS_VENV)/ready
	$(BIN)/python -m pytest -n $(SLOW_WORKERS) --dist worksteal -m "slow or exhaustive" --compare-kernels

# the generator asks planner, and Sphinx has a small environment of its own, without planner
docs: $(READY) $(DOCS_VENV)/ready
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/execute.py
	$(DOCS_VENV)/bin/sphinx-build -q -W --keep-going -E docs out/docs
	@echo "documentation: out/docs/index.html"

$(DOCS_VENV)/ready: docs/requirements.txt | $(READY)
	$(PYTHON) -m venv --without-pip $(DOCS_VENV)
	$(PIP) --python $(DOCS_VENV) install -r docs/requirements.txt
	@touch $@

# kernels are compiled again with checks, into a cache of their own
bounds-check: $(READY)
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/.numba-bounds $(BIN)/python -m pytest tests/test_fuzz.py -m slow

# kernels for the processors of the last ten years; a wheel without a pack compiles them at first use
pack: $(READY)
	$(BIN)/planner doctor --pack
	$(PIP) wheel --no-deps --no-build-isolation -w dist .

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --config setup.cfg
	$(BIN)/python -m benchmarks.imports

bench: $(READY)
	$(BIN)/python -m benchmarks.model_building
	$(BIN)/python -m benchmarks.traffic_peers
	$(BIN)/python -m benchmarks.traffic_designs --quick
	$(BIN)/python -m benchmarks.traffic_optimum --quick
	$(BIN)/python -m benchmarks.traffic_failures --quick
	$(BIN)/python -m benchmarks.multicast_channels --quick
	$(BIN)/python -m benchmarks.multicast_dynamics --quick
	$(BIN)/python -m benchmarks.multicast_million --quick
	$(BIN)/python -m benchmarks.circuits_schedules --quick
	$(BIN)/python -m benchmarks.circuits_execution --quick
	$(BIN)/python -m benchmarks.packets --quick
	$(BIN)/python -m benchmarks.brokering_market --quick
	$(BIN)/python -m benchmarks.livevideo_scale --quick
	$(BIN)/python -m benchmarks.sweeps --quick
	$(BIN)/python -m benchmarks.first_use
	$(BIN)/python -m benchmarks.time_limits --quick

# all.lock has every extra of the project; base.lock the same versions of what `make demo` needs
LOCK := $(BIN)/uv pip compile -q --python-version 3.11 --generate-hashes --no-header --no-annotate
lock: $(READY)
	echo uv | $(LOCK) -o requirements/installer.lock -
	$(LOCK) --extra all --extra test --extra lint --extra bench -o requirements/all.lock setup.cfg
	$(LOCK) -c requirements/all.lock -o requirements/base.lock setup.cfg

# uv downloads and unpacks several times as fast as pip, but reads none of pip's settings: the address of an
# index, a proxy, a certificate. Where it cannot install, pip does, and a line says so.
define install
	@$(BIN)/uv pip install -q --python $(BIN)/python $(1) || \
	  { echo "uv cannot install (it reads no settings of pip): pip does, which takes minutes" >&2; $(PIP) install $(1); }
endef

# planner and what it needs: enough for everything but the dashboard, documents, clusters and development
$(BASE): requirements/base.lock requirements/installer.lock setup.cfg pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "planner needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --no-compile -r requirements/installer.lock
	$(call install,-r requirements/base.lock)
	$(call install,--no-deps -e .)
	@touch $@

$(READY): $(BASE) requirements/all.lock
	$(call install,-r requirements/all.lock)
	@touch $@

clean:
	rm -rf $(VENV) $(DOCS_VENV) out build dist *.egg-info .numba-bounds .mypy_cache .pytest_cache .ruff_cache .hypothesis
