# Switchyard. `make run` and `make test` set up whatever they need on a fresh machine.
.DEFAULT_GOAL := help
.PHONY: help run demo sim quick-build quick test check nightly build fuzz bench bless validation fmt python-test web web-test

CARGO ?= cargo
SEED ?= 0
COUNT ?= 1
YARD := target/release/yard
QUICK := target/quick/yard
PYTHON ?= python3
VENV := target/python-venv
WEB_BUILT := target/web-dist

help: ## List what there is
	@awk -F':.*## ' '/^##@ / {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Try it

build: ## Build the binary, optimised: target/release/yard
	$(CARGO) build --release --locked

quick-build: # The same in less time, less optimised: target/quick/yard
	$(CARGO) build --profile quick --locked -p yard -p yard-live

run: quick-build ## Start everything on this machine: server, agent and API, data under ./.yard
	@$(QUICK) up

demo: quick-build ## The same on pretend devices of two kinds, with a handful of training jobs to watch
	@YARD=$(abspath $(QUICK)) examples/demo-up.sh

sim: YARD := $(QUICK)
sim: quick-build ## Run three policies on a generated day of jobs, and write a report
	@mkdir -p out
	@$(YARD) trace gen --preset philly --jobs 1500 --rate 62.5 --seed 1 > out/day.csv
	@$(YARD) sim --trace out/day.csv --cluster gpu:16x8 --policy fifo,backfill,tiresias --html out/report.html
	@echo
	@echo "The report is out/report.html: open it in a browser. What to try next:"
	@echo "  $(YARD) policies                                  every policy there is"
	@echo "  $(YARD) trace show out/day.csv                    what is in the trace"
	@echo "  $(YARD) sim --trace out/day.csv --cluster gpu:24x8 --policy srtf,las,gittins"
	@echo "                                                             the same day on a larger cluster"

##@ Change it

quick: ## A first answer on a change, in a minute or two: format, then lints and unit tests of the crates that differ from main
	CARGO=$(CARGO) .ci/quick

test: check ## Everything that CI runs: format, lints, all tests, fuzz seeds

check: ## The checks themselves, on a machine that is set up
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) build --workspace --examples --locked --quiet # the keeper that agents' tests start
	$(CARGO) test --workspace --lib --bins --tests --locked --quiet
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --quiet
	$(MAKE) --no-print-directory python-test
	$(MAKE) --no-print-directory web-test

python-test: $(VENV)/.ready ## Format, lints, types and tests of the Python package and the examples
	$(VENV)/bin/ruff format --config python/pyproject.toml --check --quiet python examples
	$(VENV)/bin/ruff check --config python/pyproject.toml --quiet python examples
	cd python && ../$(VENV)/bin/mypy src tests ../examples
	cd python && ../$(VENV)/bin/python -m pytest --quiet

$(VENV)/.ready: python/requirements-test.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r $<
	@touch $@

fmt: ## Format all code
	$(CARGO) fmt --all

bless: ## Accept the present output of all golden tests
	UPDATE_EXPECT=1 $(CARGO) test --workspace --lib --bins --tests --locked --quiet
	$(CARGO) fmt --all

web: web/node_modules/.ready ## Build the dashboard's bundle, web/dist, which is committed
	cd web && npm run --silent build

web-test: web/node_modules/.ready ## The dashboard: types, tests, its bundle against its source, a real browser
	cd web && npx tsc --noEmit && npm test --silent
	cd web && npx vite build --logLevel warn --emptyOutDir --outDir ../$(WEB_BUILT)
	cd web && npx vite build --logLevel warn --config vite.report.ts --outDir ../$(WEB_BUILT)
	diff -r web/dist $(WEB_BUILT) || { echo "web/dist is not what web/src makes: run make web and commit it" >&2; exit 1; }
	web/tests/browsers.sh
	$(CARGO) build --workspace --bins --examples --locked --quiet
	cd web && YARD=$(abspath $(or $(CARGO_TARGET_DIR),target))/debug/yard npm run --silent browser

web/node_modules/.ready: web/package.json web/package-lock.json
	cd web && npm ci --silent
	@touch $@

##@ Measure it

fuzz: build ## Repeat one seed: make fuzz SEED=7; or many: make fuzz SEED=0 COUNT=10000
	$(YARD) fuzz --seed $(SEED) --count $(COUNT)

# Seeds of the night: they follow from the commit and the day, so that every night tries new ones.
NIGHT = $$(( 0x$$(printf '%s %s' "$$(git rev-parse HEAD)" "$$(date +%F)" | sha256sum | cut -c1-8) * 1000000 ))
KILLS ?= 100
FUZZ_SECONDS ?= 3600

nightly: build ## What is too long for CI: 100 kills of the server, live tests three times, an hour of new fuzz seeds
	YARD_TEST_KILLS=$(KILLS) $(CARGO) test -p yard --test live --locked --quiet the_server_may_be_killed_at_any_moment
	for turn in 1 2 3; do $(CARGO) test -p yard --test live --locked --quiet || exit 1; done
	$(YARD) fuzz --seed $(NIGHT) --seconds $(FUZZ_SECONDS)

bench: build ## Measure everything and rewrite bench/RESULTS.md
	$(CARGO) build --release --locked -p yard-solver --example packed
	bench/all.sh

validation: build ## Compare with published results and rewrite docs/validation.md
	bench/validation.sh
