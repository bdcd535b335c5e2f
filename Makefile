# The single entry point: bare `make` lists what it can do.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo
PYTHON ?= python3
BUILD_VENV := .build
VENV := .venv
EMULATOR_VENV := .emulator
LOCALSTACK_VENV := .localstack
# LocalStack 4.14 fails with any other Python version.
LOCALSTACK_PYTHON ?= python3.13
CHECKOV_VENV := .checkov
BENCH_VENV := .bench
TOOLS := .tools
# The oldest toolchain that the dependencies accept; Cargo.toml's rust-version.
RUST_VERSION := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-15s %s\n", $$1, $$2 }'

# --- Setup ------------------------------------------------------------------------------------

.PHONY: rust
rust:
	@command -v $(CARGO) >/dev/null || { echo "Rust is missing: install it with rustup, or your system's package of Rust $(RUST_VERSION) or later" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "A C compiler is missing: install gcc or clang (Debian: apt-get install gcc)" >&2; exit 1; }
	@have=$$(rustc --version | cut -d ' ' -f 2 | cut -d - -f 1); \
	  [ "$$(printf '%s\n%s\n' $(RUST_VERSION) $$have | sort -V | head -n 1)" = $(RUST_VERSION) ] || \
	  { echo "Rust $$have is too old: install $(RUST_VERSION) or later (rustup toolchain install)" >&2; exit 1; }

.PHONY: python
python:
	@command -v $(PYTHON) >/dev/null || { echo "Python is missing: install Python 3.11 or later (Debian: apt-get install python3 python3-venv)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python is too old: install 3.11 or later" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "Python's venv module is missing (Debian: apt-get install python3-venv)" >&2; exit 1; }

# All packages from PyPI, by the hashes in a lock file, inside the checkout. What builds and deploys
# has an environment of its own, apart from the tests'. The AWS emulator, checkov and the benchmarks
# have theirs, too: they need other versions of the same packages.
PIP_INSTALL := bin/pip install --quiet --disable-pip-version-check --no-deps
LOCKED := --require-hashes --only-binary :all:
$(BUILD_VENV)/installed: infra/build.txt
$(VENV)/installed: tests/python/requirements.txt
$(EMULATOR_VENV)/installed: tests/python/emulator.txt
$(CHECKOV_VENV)/installed: tests/python/checkov.txt
$(BENCH_VENV)/installed: tests/python/bench.txt
$(BUILD_VENV)/installed $(VENV)/installed $(EMULATOR_VENV)/installed $(CHECKOV_VENV)/installed $(BENCH_VENV)/installed: | python
	@echo "Setting up $(@D) ..."
	@$(PYTHON) -m venv --clear $(@D)
	@$(@D)/$(PIP_INSTALL) $(LOCKED) -r $<
	@touch $@

# LocalStack with our plugin, on its own Python. The three packages are published as source only.
LOCALSTACK_PLUGIN := infra/localstack-plugin
$(LOCALSTACK_VENV)/installed: tests/python/localstack.txt $(LOCALSTACK_PLUGIN)/pyproject.toml
	@$(LOCALSTACK_PYTHON) -c 'import ensurepip, sys; sys.exit(sys.version_info[:2] != (3, 13))' 2>/dev/null || \
	  { echo "LocalStack needs Python 3.13 with its venv module, and \`$(LOCALSTACK_PYTHON)\` is not it: install it, or set LOCALSTACK_PYTHON to its path" >&2; exit 1; }
	@echo "Setting up $(@D) (half a gigabyte, a few minutes) ..."
	@$(LOCALSTACK_PYTHON) -m venv --clear $(@D)
	@$(@D)/$(PIP_INSTALL) $(LOCKED) --no-binary airspeed-ext,crontab,jsonpath-rw -r $<
	@$(@D)/$(PIP_INSTALL) --no-build-isolation --editable $(LOCALSTACK_PLUGIN)
	@touch $@

# A lock file has every package that its .in file leads to, with the hashes of all its files. Versions
# change only if the .in file asks for it, or with UPGRADE=1.
LOCK = cd $(1) && $(CURDIR)/$(VENV)/bin/uv pip compile --quiet --no-python-downloads $(3) \
  --generate-hashes --custom-compile-command 'make lock' \
  $(if $(UPGRADE),--upgrade) --output-file $(2).txt $(2).in
.PHONY: lock
lock: $(VENV)/installed ## Compile the lock files of the Python packages (UPGRADE=1: newer versions)
	@$(call LOCK,infra,build,--universal --python-version 3.11)
	@for name in requirements emulator checkov bench; do \
	   ($(call LOCK,tests/python,$$name,--universal --python-version 3.11)); \
	 done
	@$(call LOCK,tests/python,localstack,--python-version 3.13)

# The rules of axe-core, from npm, by the hash in the lock file.
PAGE := tests/page
$(PAGE)/node_modules/.package-lock.json: $(PAGE)/package-lock.json
	@cd $(PAGE) && npm ci --silent --ignore-scripts --no-audit --no-fund
	@touch $@

# What the page is shown with. Where one of them is missing, the tests that need it are skipped.
.PHONY: browser
browser:
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory $(PAGE)/node_modules/.package-lock.json; else \
	   echo "No npm: the page's accessibility is not tested (Debian: apt-get install npm)"; fi
	@command -v chromium >/dev/null || echo "No Chromium: the tests of the page are skipped (Debian: apt-get install chromium)"

# cargo-deny, pinned, inside the checkout. Not optimized: it runs for seconds, and optimizing it takes
# minutes.
CARGO_DENY := 0.20.2
$(TOOLS)/cargo-deny-$(CARGO_DENY): | rust
	@echo "Installing cargo-deny $(CARGO_DENY) into $(TOOLS) (once, a few minutes) ..."
	@$(CARGO) install --quiet --debug --locked --version $(CARGO_DENY) --root $(TOOLS) --no-default-features cargo-deny
	@touch $@

# cargo-deb, pinned, inside the checkout. Without its features, it compresses with Debian's xz.
CARGO_DEB := 3.8.0
$(TOOLS)/cargo-deb-$(CARGO_DEB): | rust
	@echo "Installing cargo-deb $(CARGO_DEB) into $(TOOLS) (once, a few minutes) ..."
	@$(CARGO) install --quiet --locked --version $(CARGO_DEB) --root $(TOOLS) --no-default-features cargo-deb
	@touch $@

# cargo-fuzz, pinned, inside the checkout.
CARGO_FUZZ := 0.13.2
$(TOOLS)/cargo-fuzz-$(CARGO_FUZZ): | rust
	@command -v c++ >/dev/null || { echo "A C++ compiler is missing: install g++ or clang (Debian: apt-get install g++)" >&2; exit 1; }
	@echo "Installing cargo-fuzz $(CARGO_FUZZ) into $(TOOLS) (once, a few minutes) ..."
	@$(CARGO) install --quiet --locked --version $(CARGO_FUZZ) --root $(TOOLS) cargo-fuzz
	@touch $@

# cargo-cyclonedx, pinned, inside the checkout.
CARGO_CYCLONEDX := 0.5.9
$(TOOLS)/cargo-cyclonedx-$(CARGO_CYCLONEDX): | rust
	@echo "Installing cargo-cyclonedx $(CARGO_CYCLONEDX) into $(TOOLS) (once, a few minutes) ..."
	@$(CARGO) install --quiet --locked --version $(CARGO_CYCLONEDX) --root $(TOOLS) cargo-cyclonedx
	@touch $@

# --- Packages -------------------------------------------------------------------------------------

PROCESSORS ?= x86_64 aarch64
DIST = PATH="$$PWD/$(BUILD_VENV)/bin:$$PWD/$(TOOLS)/bin:$$PATH"

.PHONY: dist
dist: rust $(BUILD_VENV)/installed $(TOOLS)/cargo-deb-$(CARGO_DEB) ## Build archives and Debian packages of the command (PROCESSORS="x86_64 aarch64")
	@$(DIST) packaging/dist.sh $(PROCESSORS)

.PHONY: dist-again
dist-again: dist ## Build them again in another folder, and compare the bytes
	@rm -rf target/again; git clone --quiet . target/again
	@$(DIST) target/again/packaging/dist.sh $(PROCESSORS) > /dev/null
	@diff target/dist/SHA256SUMS target/again/target/dist/SHA256SUMS

# It writes a file beside each Cargo.toml of the workspace.
SHIPPED = offhours $(FUNCTIONS)
.PHONY: sbom
sbom: rust $(TOOLS)/cargo-cyclonedx-$(CARGO_CYCLONEDX) ## List what the programs of a release are made of (CycloneDX)
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) PATH="$$PWD/$(TOOLS)/bin:$$PATH" \
	   $(CARGO) cyclonedx --quiet --format json --spec-version 1.5 --no-build-deps --target all \
	   --override-filename sbom
	@mkdir -p target/dist; for name in $(SHIPPED); do \
	   cp crates/$${name/#offhours/cli}/sbom.json target/dist/$$name.cdx.json; \
	 done; rm crates/*/sbom.json tests/sbom.json

# --- On AWS ---------------------------------------------------------------------------------------

FUNCTIONS := dispatch poll-status stop start publish
# The processor that the functions are built for, as a value of the template's Architecture.
ARCH ?= $(if $(filter aarch64 arm64,$(shell uname -m)),arm64,x86_64)

.PHONY: build
build: rust $(BUILD_VENV)/installed ## Build the functions for AWS (ARCH=x86_64 or arm64)
	@case "$(ARCH)" in x86_64 | arm64) ;; *) echo "ARCH is x86_64 or arm64, not $(ARCH)" >&2; exit 1 ;; esac
	@echo "Building $(FUNCTIONS) for $(ARCH) (a few minutes the first time) ..."
	@export PATH="$$PWD/$(BUILD_VENV)/bin:$$PATH"; \
	 $(CARGO) lambda build --release --locked --lambda-dir target/lambda \
	   $(if $(filter arm64,$(ARCH)),--arm64,--x86-64) $(addprefix --package ,$(FUNCTIONS))
	@ls -l $(FUNCTIONS:%=target/lambda/%/bootstrap)

# The template and the functions for both processors, for those who deploy a release with the AWS CLI.
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
AWS_PACKAGE = target/package-aws/offhours-aws-$(VERSION)
.PHONY: package
package: $(BUILD_VENV)/installed ## Package the functions and the template for a release
	@rm -rf $(dir $(AWS_PACKAGE))
	@for arch in x86_64 arm64; do \
	   $(MAKE) --no-print-directory build ARCH=$$arch; \
	   $(BUILD_VENV)/bin/python infra/package.py $(AWS_PACKAGE); \
	 done
	@cp LICENSE $(AWS_PACKAGE); mkdir -p target/dist
	@tar --create --directory $(dir $(AWS_PACKAGE)) --sort=name --owner=0 --group=0 --numeric-owner \
	   --mtime="@$$(git log -1 --format=%ct)" --mode=u=rwX,go=rX $(notdir $(AWS_PACKAGE)) | \
	   gzip -9 --no-name > target/dist/$(notdir $(AWS_PACKAGE)).tar.gz

.PHONY: deploy
deploy: $(BUILD_VENV)/installed ## Deploy what was built (asks the first time, and with GUIDED=1)
	@export PATH="$$PWD/$(BUILD_VENV)/bin:$$PATH" SAM_CLI_TELEMETRY=$${SAM_CLI_TELEMETRY:-0}; \
	 python infra/deploy.py $(if $(GUIDED),--guided)

# The programs for this machine. Always builds the whole workspace: with one set of features, every
# dependency is compiled once, for programs and tests alike.
PROGRAMS = $${CARGO_TARGET_DIR:-target}/debug
.PHONY: programs
programs: rust
	@$(CARGO) build --workspace --locked --bins

REHEARSAL = PYTHONPATH=infra $(VENV)/bin/python -m
.PHONY: rehearsal
rehearsal: build programs $(VENV)/installed $(EMULATOR_VENV)/installed

# What LocalStack needs without Docker: its environment and a DynamoDB engine.
.PHONY: localstack
localstack: $(LOCALSTACK_VENV)/installed rust
	@$(CARGO) build --workspace --locked --example engine

SOAK_MINUTES ?= 60
EMULATOR ?= ministack
# What each emulator needs besides the programs.
NEEDED_ministack := $(EMULATOR_VENV)/installed
NEEDED_localstack := localstack
NEEDED_localstack-docker :=
.PHONY: emulator
emulator:
	@case "$(EMULATOR)" in ministack | localstack | localstack-docker) ;; \
	  *) echo "EMULATOR is ministack, localstack or localstack-docker, not $(EMULATOR)" >&2; exit 1 ;; esac

.PHONY: stack
stack: emulator $(NEEDED_$(EMULATOR)) build programs $(VENV)/installed ## Deploy to an emulator and watch real minutes (EMULATOR=localstack, KEEP=1)
	@$(REHEARSAL) rehearsal --emulator $(EMULATOR) $(if $(KEEP),--keep) --programs $(PROGRAMS) \
	   --sam $(BUILD_VENV)/bin/sam --ministack $(EMULATOR_VENV)/bin/ministack \
	   --localstack $(LOCALSTACK_VENV)/bin/python

.PHONY: soak
soak: rehearsal ## Check the deployed stack's invariants under faults for an hour (SOAK_MINUTES=60, SEED=)
	@PYTHONPATH=infra:tests $(VENV)/bin/python -m soak --programs $(PROGRAMS) \
	   --sam $(BUILD_VENV)/bin/sam --ministack $(EMULATOR_VENV)/bin/ministack \
	   --minutes $(SOAK_MINUTES) $(if $(SEED),--seed $(SEED))

.PHONY: sizes
sizes: rehearsal ## Print each function's archive size, and its memory for a thousand resources
	@$(REHEARSAL) rehearsal.sizes --programs $(PROGRAMS) \
	   --sam $(BUILD_VENV)/bin/sam --ministack $(EMULATOR_VENV)/bin/ministack

# --- Development ----------------------------------------------------------------------------------

.PHONY: run
run: rust ## Build, then show a simulated day of the example fleet in about a minute
	@$(CARGO) build --workspace --locked --bin offhours
	@target=$${CARGO_TARGET_DIR:-target}; \
	 env -u OFFHOURS_DATA -u OFFHOURS_SIMULATE $$target/debug/offhours local --simulate

.PHONY: test
test: programs browser $(VENV)/installed $(CHECKOV_VENV)/installed ## Set up everything, and test the programs and the template
	@[ -x /usr/sbin/sshd ] || echo "No SSH server: the tests that need one are skipped (Debian: apt-get install openssh-server)"
# Many tests wait for processes and real minutes: twice as many run as there are processors.
	@export PATH="$$PWD/$(VENV)/bin:$$PATH" OFFHOURS_PYTHON="$$PWD/$(VENV)/bin/python" \
	   RUST_TEST_THREADS=$$((2 * $$(getconf _NPROCESSORS_ONLN))); \
	 log=$$(mktemp); trap 'rm -f "$$log"' EXIT; \
	 PYTHONPATH=infra pytest --quiet -rs tests/infra tests/page tests/rehearsal tests/soak tests/bench tests/mutants > "$$log" 2>&1 & python=$$!; \
	 result=0; $(CARGO) test --workspace --locked --no-fail-fast --tests || result=$$?; \
	 wait $$python || result=$$?; cat "$$log"; exit $$result

.PHONY: test-stack
test-stack: rehearsal ## Build the functions for AWS, and test them deployed to an emulator, in real minutes
	@export PATH="$$PWD/$(VENV)/bin:$$PATH"; \
	 $(CARGO) test --workspace --locked --test offhours -- --ignored; \
	 PYTHONPATH=infra OFFHOURS_PROGRAMS=$(PROGRAMS) OFFHOURS_SAM=$(BUILD_VENV)/bin/sam \
	   OFFHOURS_MINISTACK=$(EMULATOR_VENV)/bin/ministack pytest --quiet tests/stack

# Nights compute rather than wait, so they have a profile of their own with optimized code.
NIGHTS = $(CARGO) build --package nights --profile nights --locked; $${CARGO_TARGET_DIR:-target}/nights/nights
.PHONY: nights
nights: rust ## Play simulated weeks of the whole service under faults (N=500, FROM=1: the first seed)
	@$(NIGHTS) run --count $(or $(N),500) --from $(or $(FROM),1)

.PHONY: night
night: rust ## Print everything in one night (SEED=1, or the file of a night that failed)
	@$(NIGHTS) replay $(or $(SEED),1)

.PHONY: test-localstack
test-localstack: localstack build programs $(VENV)/installed ## Run those tests of the deployed stack that LocalStack can pass
	@PYTHONPATH=infra OFFHOURS_PROGRAMS=$(PROGRAMS) OFFHOURS_SAM=$(BUILD_VENV)/bin/sam \
	   OFFHOURS_LOCALSTACK=$(LOCALSTACK_VENV)/bin/python $(VENV)/bin/pytest --quiet -rs tests/stack

.PHONY: mutants
mutants: rust $(VENV)/installed ## Break one guard at a time and see which test notices: an hour or two (ONLY=pattern)
	@$(VENV)/bin/python tests/mutants/run.py $(if $(ONLY),--only '$(ONLY)')

.PHONY: readme
readme: programs $(VENV)/installed ## Update the commands' output in README.md and docs, and the pictures
	@OFFHOURS_UPDATE_README=1 $(CARGO) test --workspace --quiet --locked --test offhours -- evening help_page
	@OFFHOURS_UPDATE_README=1 PYTHONPATH=infra $(VENV)/bin/pytest --quiet -rs tests/page/test_pictures.py

.PHONY: check
check: fmt lines clippy doc deny lint-template lint-python ## Formatting, size, lints, docs, dependencies and template

.PHONY: fmt
fmt: rust ## Check the formatting
	@$(CARGO) fmt --all --check

.PHONY: clippy
clippy: rust ## Lint, warnings denied
	@$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

.PHONY: doc
doc: rust ## Build the documentation, warnings denied
	@RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked

.PHONY: deny
deny: rust $(TOOLS)/cargo-deny-$(CARGO_DENY) ## Check licenses, bans and sources of the dependencies
	@$(CARGO) fetch --quiet --locked
	@$(TOOLS)/bin/cargo-deny --offline check licenses bans sources

.PHONY: lint-template
lint-template: $(VENV)/installed $(CHECKOV_VENV)/installed ## Lint the template for AWS
	@$(VENV)/bin/cfn-lint --config-file infra/cfnlint.yaml
	@$(VENV)/bin/python tests/infra/resolved.py > $(CHECKOV_VENV)/template.json
# A clean environment: neither a platform's key nor the user's own checkov settings apply.
	@found=$$(env -i HOME="$$PWD/$(CHECKOV_VENV)" PATH="$$PATH" $(CHECKOV_VENV)/bin/checkov \
	   --config-file infra/checkov.yaml --file $(CHECKOV_VENV)/template.json 2>&1) || \
	 { printf '%s\n' "$$found" "Fix infra/template.yaml, or add an exception with its reason to infra/checkov.yaml" >&2; exit 1; }

.PHONY: lint-python
lint-python: $(VENV)/installed ## Check the Python: formatting and lints
	@$(VENV)/bin/ruff format --quiet --check infra tests
	@$(VENV)/bin/ruff check --quiet infra tests

.PHONY: advisories
advisories: rust $(TOOLS)/cargo-deny-$(CARGO_DENY) ## Check for published advisories (needs the network)
	@$(TOOLS)/bin/cargo-deny check advisories

# No sanitizer: it would need a nightly toolchain, and our code has no unsafe code to check.
# Inputs that the search finds worth keeping stay in fuzz/corpus, apart from the corpus in git.
FUZZ := crates/fuzz-targets
SECONDS ?= 60
.PHONY: fuzz
fuzz: rust $(TOOLS)/cargo-fuzz-$(CARGO_FUZZ) ## Search for input that breaks a parser (TARGET=schedule, SECONDS=60 for each)
	@cp Cargo.lock $(FUZZ)/fuzz/Cargo.lock
	@export PATH="$$PWD/$(TOOLS)/bin:$$PATH"; cd $(FUZZ); \
	 for target in $(or $(TARGET),$$(ls corpus)); do \
	   [ -d "corpus/$$target" ] || { echo "TARGET is one of these, not $$target:" $$(ls corpus) >&2; exit 1; }; \
	   mkdir -p "fuzz/corpus/$$target"; \
	   echo "Searching in $$target for $(SECONDS) s (the first time after a build of many minutes) ..."; \
	   $(CARGO) fuzz run --sanitizer none "$$target" "fuzz/corpus/$$target" "corpus/$$target" \
	     -- -max_total_time=$(SECONDS) -timeout=10 -max_len=8192 -print_final_stats=1; \
	 done

# The functions as shipped, and the examples built the same way, with the same features of the same
# dependencies; everything that they reach is an optimized build.
ROUNDS ?= 20
BENCH_TARGET = $${CARGO_TARGET_DIR:-target}
.PHONY: bench
bench: build $(BENCH_VENV)/installed ## Measure the functions beside their peers, into BENCHMARKS.md (ROUNDS=20, TLS=1)
	@export PATH="$$PWD/$(BUILD_VENV)/bin:$$PATH"; \
	 $(CARGO) lambda build --release --locked --lambda-dir target/lambda \
	   $(addprefix --package ,$(FUNCTIONS) domain environment) \
	   --features environment/lambda \
	   --example floor-dispatch --example floor-asking --example evaluations
	@$(CARGO) build --profile bench --locked --workspace \
	   --example engine --example seed --bin cloud-simulator
	@PYTHONPATH=infra:tests $(BENCH_VENV)/bin/python -m bench --rounds $(ROUNDS) \
	   --functions target/lambda --programs $(BENCH_TARGET)/release $(if $(TLS),--tls) \
	   --command 'make bench ROUNDS=$(ROUNDS)$(if $(TLS), TLS=1)'

# Optimized builds; the functions run in one process, beside the engine and the clouds.
.PHONY: scale
scale: rust $(BENCH_VENV)/installed ## Measure an edge of up to 10,000 resources, into BENCHMARKS.md and docs/costs.md (SIZES=0 100 ...)
	@$(CARGO) build --profile bench --locked --workspace \
	   --example engine --bin cloud-simulator --bin offhours
	@PYTHONPATH=infra:tests $(BENCH_VENV)/bin/python -m bench.scale \
	   --programs $(BENCH_TARGET)/release $(if $(SIZES),--sizes $(SIZES)) \
	   --command 'make scale$(if $(SIZES), SIZES="$(SIZES)")'

.PHONY: idle
idle: rust $(BENCH_VENV)/installed ## Measure a service that has nothing to do, for twenty minutes
	@$(CARGO) build --profile bench --locked --workspace --bin cloud-simulator --bin offhours
	@PYTHONPATH=infra:tests $(BENCH_VENV)/bin/python -m bench.idle --programs $(BENCH_TARGET)/release

.PHONY: paint
paint: programs browser $(VENV)/installed ## Measure when a browser first paints a page of 500 resources
	@PYTHONPATH=infra $(VENV)/bin/pytest --quiet -rs --capture=no tests/page/test_page.py -k first_paint

.PHONY: microbench
microbench: rust ## Measure schedule evaluation, and the commands on large stores
	@$(CARGO) bench --locked --package domain --package offhours --bench evaluate --bench commands

.PHONY: lines
lines: python ## Count the lines of Rust outside tests, and hold them to lines.toml
	@$(PYTHON) tests/python/lines.py

.PHONY: clean
clean: ## Remove everything that was built or set up
	@rm -rf $(BUILD_VENV) $(VENV) $(EMULATOR_VENV) $(LOCALSTACK_VENV) $(CHECKOV_VENV) $(BENCH_VENV) $(TOOLS) $(FUZZ)/fuzz/target $(PAGE)/node_modules
	@$(CARGO) clean
