# Needs Python 3.11 or newer and make; all else is installed into .venv from the locks in requirements/.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
SERVICES := orchestrator gateway convergence ratings memory edge

# The small model that answers `make run` where no key is set: qwen2.5-0.5b is fetched once (470 MB). Empty: what comes along.
# A variable of the environment with this name belongs to another program.
ifneq ($(origin LOCAL_MODEL),command line)
LOCAL_MODEL :=
endif
export LOCAL_MODEL

# What `make run` asks. Taken as it was typed: neither make nor the shell reads anything in it.
Q ?= Should a small team start with one service or with several?
QUESTION := $(value Q)
export QUESTION

# The contract that today's must not break: that of the last release. And more words for pytest or the lock.
AGAINST ?= $(shell ls tests/data/contracts/*.binpb 2>/dev/null | sort --version-sort | tail -n 1)
ARGS ?=
# Tests wait more than they compute. What takes long begins first, so that nothing is left over at the end.
WORKERS ?= 8
LONGEST_FIRST := tests/chaos tests/contract tests/e2e tests/integration tests/unit

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# If uv reaches nothing, pip installs: it need not try for long.
export UV_HTTP_RETRIES ?= 1
# Each process of a test would else compile all of it again: a third of the time that it takes to start.
export PYTHONDONTWRITEBYTECODE :=
# Runs pip of an environment, $(1). What it says is shown only if it fails: its warnings mean nothing to a reader.
run_pip = said=$$($(1)/bin/python -m pip --quiet $(2) 2>&1) || { code=$$?; printf '%s\n' "$$said" >&2; exit $$code; }
pip = $(call run_pip,$(1),install $(2))
# Wheels only: an install that would have to compile fails at once and says so. $(3): more options.
install_lock = $(call pip,$(1),$(3) --no-deps --only-binary :all: --require-hashes --requirement requirements/$(2).txt)
# Tools and tests import a fifth of the modules that come along: each is compiled when it is first imported. uv takes a sixth
# of pip's time for it, but does not read pip's configuration: if it finds no packages, pip installs.
install_tools = { $(call uv,$(1),--only-binary :all: --require-hashes --requirement requirements/$(2).txt) \
	|| { $(call install_lock,$(1),$(2),--no-compile); }; }
uv = $(BIN)/uv pip install --quiet --no-config --python $(1)/bin/python --no-deps $(2) 2>/dev/null
# The lock holds the build backend, so that nothing unnamed is downloaded to install parley itself.
install_parley = { $(call uv,$(VENV),$(editable)) || { $(call pip,$(VENV),--no-deps $(editable)); }; }
editable := --no-build-isolation --editable .

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

##@ Use

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":[^#]*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z][a-z0-9-]*:.*## / { printf "  %-12s %s\n", $$1, $$2 }' Makefile

.PHONY: setup
setup: $(VENV)/.run ## Install into .venv; the command is then .venv/bin/parley

.PHONY: demo
demo: $(VENV)/.run ## Play an example debate: no key, no model, ten seconds
	@$(BIN)/parley demo

.PHONY: run
run: $(VENV)/.run ## Run one debate and print the answer (Q="your question", LOCAL_MODEL=qwen2.5-0.5b)
	@if [ -n "$$LOCAL_MODEL" ]; then export PARLEY_LOCAL_MODEL="$$LOCAL_MODEL"; \
		$(BIN)/python -P -m parley.gateway.local_model.fetch "$$LOCAL_MODEL" >/dev/null || exit 1; fi; \
		printf 'Question: %s\n' "$$QUESTION" >&2; \
		exec $(BIN)/parley debate "$$QUESTION" --agents architect,performance,simplicity --rounds 1

.PHONY: up
up: $(VENV)/.run ## Run the whole system on loopback ports until stopped
	@$(BIN)/parley up

##@ Check

# Three checks at a time: that of types takes one core, and most of the time, and others wait for what they install.
.PHONY: check
check: $(VENV)/.all ## Check everything but the tests: format, lint, types, imports, contract, chart
	@$(MAKE) --no-print-directory --jobs 3 $(if $(filter output-sync,$(.FEATURES)),--output-sync=line) \
		check-python check-licences check-deploy check-protos check-console

.PHONY: check-python
check-python: $(VENV)/.all ## Check the Python: ruff, mypy, import-linter, names of functions, versions, growth of rooms
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/pytest -q tests/unit/test_plain_names.py
	$(BIN)/python -m tests.support.versions
	$(BIN)/python -m tests.support.count_lines --check

.PHONY: check-protos
check-protos: $(VENV)/.all ## Check the contract: lint, format, breaking changes, generated code
	$(BIN)/buf lint
	$(BIN)/buf format --diff --exit-code
	@if [ -z '$(AGAINST)' ]; then echo "buf breaking: there is no release to compare with yet (tests/data/contracts)"; \
	else echo "$(BIN)/buf breaking --against $(AGAINST)"; $(BIN)/buf breaking --against '$(AGAINST)'; fi
	@rm -rf $(VENV)/generated && mkdir $(VENV)/generated
	@$(call generate,$(VENV)/generated)
	@diff -r -x __init__.py -x __pycache__ $(VENV)/generated/parley/v1 services/parley/v1 \
		|| { echo "services/parley/v1 is not what protos/ says: run make protos" >&2; exit 1; }
	@$(BIN)/python -P -m parley.config.schema | diff - services/parley/config/schema.json \
		|| { echo "services/parley/config/schema.json is not what the configuration reads: run make protos" >&2; exit 1; }
	@rm -rf $(VENV)/reference && $(BIN)/python -m tests.support.contract_reference $(VENV)/reference
	@diff -r $(VENV)/reference docs/reference \
		|| { echo "docs/reference is not what protos/ says: run make protos" >&2; exit 1; }
	@$(BIN)/python -m tests.support.made_parts --check

.PHONY: check-licences
check-licences: $(VENV)/.all ## Check that THIRD_PARTY.md lists what comes along, and that all of it may
	$(BIN)/python -m tests.support.third_party --check

.PHONY: check-console
check-console: ## Check the types of the console's scripts, if npm can install their checker
	@if npm install --silent --no-save --prefix $(VENV)-console typescript@7.0.2; then \
		$(VENV)-console/node_modules/.bin/tsc --allowJs --checkJs --noEmit --strict --target es2022 --module es2022 \
			--moduleResolution bundler --lib es2022,dom,dom.iterable services/parley/edge/console/static/*.js; \
	else echo "npm could not install typescript: the types of the console's scripts are not checked" >&2; fi

.PHONY: check-deploy
check-deploy: $(VENV)/.deploy ## Check what installs Parley: chart, images, dashboards, local cluster
	$(BIN)/pytest -q -n 2 --dist loadfile --no-loadscope-reorder tests/deploy

.PHONY: test
test: $(VENV)/.all ## Run every test (ARGS="-k breaker" for some)
ifdef ARGS
	$(BIN)/pytest $(ARGS)
else
	$(BIN)/pytest -n $(WORKERS) --collect-once --dist loadfile --no-loadscope-reorder --durations=10 $(LONGEST_FIRST)
endif

TESTS := unit contract integration e2e chaos
.PHONY: $(TESTS)
unit: ## Test the rooms one by one
contract: ## Test that every storage adapter keeps its port's contract
integration: ## Test whole services, as their callers see them
e2e: ## Test whole processes, as a person runs them
chaos: ## Test what survives kills and faults, every case of it
chaos: MARKED := -m ""
chaos: export PARLEY_TEST_ODD_REQUESTS ?= 20000
chaos: export PARLEY_TEST_ODD_ANSWERS ?= 2000
$(TESTS): $(VENV)/.all
	$(BIN)/pytest tests/$@ $(MARKED) $(ARGS)

.PHONY: long
long: $(VENV)/.all ## Run the tests that take too long for every change
	$(BIN)/pytest -m long $(ARGS)

.PHONY: coverage
coverage: $(VENV)/.deploy ## Run every test and print the lines that none reaches
	$(BIN)/pytest --cov --cov-report=term-missing:skip-covered $(ARGS)

# Model servers that others wrote, each in an environment of its own; nothing else needs them.
OTHERS := build/others
PYTHON_SERVERS := fakellm==0.3.5 llmock==0.2.2 mockllm==0.0.8
LITELLM := litellm[proxy]==1.106.2
.PHONY: others
others: $(VENV)/.all ## Install model servers that others wrote (some minutes) and hold a debate over each
	@test -d $(OTHERS)/python || $(PYTHON) -m venv $(OTHERS)/python
	@test -d $(OTHERS)/litellm || $(PYTHON) -m venv $(OTHERS)/litellm
	@$(call pip,$(OTHERS)/python,$(PYTHON_SERVERS))
	@$(call pip,$(OTHERS)/litellm,'$(LITELLM)')
	npm install --silent --no-save --prefix $(OTHERS) @copilotkit/aimock@1.43.0 \
		|| echo "npm could not install aimock: its tests are skipped" >&2
	$(BIN)/pytest tests/e2e/test_servers_of_others.py $(ARGS)

.PHONY: bench
bench: $(VENV)/.all ## Measure, and print the numbers of docs/benchmarks.md
	$(BIN)/python -m tests.bench $(ARGS)

.PHONY: mutants
mutants: $(VENV)/.mutants ## Change the code a little, and print the changes that no test notices (ARGS="convergence --number 40")
	$(BIN)/python -m tests.mutants $(ARGS)

.PHONY: first-runs
first-runs: $(VENV)/.all ## Run `make run` ten times as for the first time, print the answers and check them
	$(BIN)/python -m tests.bench.first_runs $(ARGS) $(if $(LOCAL_MODEL),--local-model '$(LOCAL_MODEL)')

SITE := build/site-tools
.PHONY: docs
docs: $(SITE)/.made ## Make a site of the pages in build/site, with a search, every link checked; needs no network
	@$(PYTHON) -m tests.support.site build/docs
	@$(SITE)/bin/zensical build --strict --clean

##@ Install

VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
CONTAINERS ?= docker
IMAGES := $(addprefix image-,$(SERVICES))
.PHONY: images $(IMAGES)
images: $(IMAGES) ## Build the images of all services (CONTAINERS=buildah, BASE_DIGEST=sha256:..., IMAGE_ARGS: docker/README.md)
$(IMAGES): image-%:
	$(CONTAINERS) build --file docker/Dockerfile --build-arg SERVICE=$* --build-arg VERSION=$(VERSION) \
		--build-arg REVISION=$$(git rev-parse HEAD) --build-arg CREATED=$$(git log -1 --format=%cI) \
		$(if $(BASE_DIGEST),--build-arg BUILD_BASE_DIGEST=$(BASE_DIGEST)) $(IMAGE_ARGS) --tag parley-$*:$(VERSION) .

# One date for all files in it: the same checkout gives the same wheel. What an earlier one left would come along.
.PHONY: wheel
wheel: $(VENV)/.made ## Build the wheel in dist/ with the build tools of requirements/build.txt
	@$(call install_tools,$(VENV),build)
	@rm -rf build/lib build/bdist.* dist/parley-*.whl
	@export SOURCE_DATE_EPOCH=315532800; $(call run_pip,$(VENV),wheel --no-deps --no-build-isolation --wheel-dir dist .)
	@rm -rf build/lib build/bdist.*
	@ls dist/*.whl

LOCKS := $(filter-out excludes,$(basename $(notdir $(wildcard requirements/*.txt))))
SUPPLY := build/supply
.PHONY: sbom
sbom: $(SUPPLY)/.made $(VENV)/.all ## List what is in each lock and with the wheel, as CycloneDX, in build/sbom/
	@mkdir -p build/sbom
	for lock in $(LOCKS); do $(SUPPLY)/bin/cyclonedx-py requirements --output-format JSON --output-reproducible \
		--output-file build/sbom/parley-$$lock.cdx.json requirements/$$lock.txt || exit 1; done
	$(SUPPLY)/bin/cyclonedx-py requirements --output-format JSON --output-reproducible --mc-type application \
		--pyproject pyproject.toml --output-file build/sbom/parley.cdx.json requirements/run.txt
	$(BIN)/pytest -q tests/unit/test_supply.py

# Images need a builder, and are no files: what it built is said, and not summed up.
.PHONY: release
release: $(VENV)/.all ## Build wheel, source, chart, contract, lists and checksums of what is committed, in dist/VERSION/; images if it can
	@$(BIN)/python -m tests.support.release --check
	@$(MAKE) --no-print-directory sbom
	@$(BIN)/python -m tests.support.release
	@if $(CONTAINERS) info >/dev/null 2>&1; then $(MAKE) --no-print-directory images; \
	else echo "$(CONTAINERS) builds nothing here, so there are no images (CONTAINERS=buildah names another builder)."; fi

.PHONY: version
version: $(VENV)/.all ## Set the version wherever it stands (TO=0.2.0)
	@$(BIN)/python -m tests.support.versions '$(TO)'
	@echo "Now: make protos, and python -m tests.deploy.rendered_examples"

# Packages without a lock: the weights of models on demand, and servers of others in `make others`.
UNLOCKED := $(SUPPLY)/unlocked.txt
.PHONY: audit
audit: $(SUPPLY)/.made ## Ask whether a flaw is known of what is installed by a lock or by name; needs the network
	@printf '%s\n' $(PYTHON_SERVERS) '$(LITELLM)' >$(UNLOCKED)
	@PYTHONPATH=services $(PYTHON) -P -m parley.gateway.local_model.catalogue >>$(UNLOCKED)
	@for list in $(LOCKS:%=requirements/%.txt) $(UNLOCKED); do \
		case $$list in requirements/*) pinned=--require-hashes ;; *) pinned=--no-deps ;; esac; \
		if found=$$($(SUPPLY)/bin/pip-audit --strict --disable-pip $$pinned --progress-spinner off \
			--requirement $$list 2>&1); then echo "$$list: no known flaw"; \
		elif printf '%s' "$$found" | grep -q '^Found '; then echo "$$list: $$found" >&2; flawed=1; \
		else printf '%s\n' "$$found" | tail -n 1 >&2; echo "audit: the list of known flaws cannot be reached from here (or did not" \
			"answer), so $$list and what comes after it were not checked" >&2; exit 2; fi; \
	done; exit $${flawed:-0}

.PHONY: cluster-up
cluster-up: images ## Make a cluster on this machine with kind, install everything, hold a debate without a model
	@for tool in kind kubectl helm; do command -v $$tool >/dev/null || { echo "$$tool is not installed" >&2; exit 1; }; done
	kind get clusters | grep -qx parley || kind create cluster --config k8s/kind.yaml
	for service in $(SERVICES); do kind load docker-image --name parley parley-$$service:$(VERSION) || exit 1; done
	kubectl apply --filename k8s/dependencies/namespaces.yaml
	kubectl --namespace observability create configmap parley-rules --from-file=charts/parley/files/rules.yaml \
		--dry-run=client --output yaml | kubectl apply --filename -
	kubectl --namespace observability create configmap parley-dashboard --from-file=charts/parley/files/dashboard.json \
		--dry-run=client --output yaml | kubectl apply --filename -
	kubectl --namespace parley create secret generic parley-store --dry-run=client --output yaml \
		--from-literal=uri='mongodb://mongodb.databases.svc:27017/?replicaSet=parley' | kubectl apply --filename -
	kubectl apply --filename k8s/dependencies
	kubectl --namespace databases rollout status --timeout 10m statefulset/mongodb statefulset/qdrant
	helm upgrade --install parley charts/parley --namespace parley --values k8s/values.yaml --wait --timeout 10m
	helm test parley --namespace parley --logs

.PHONY: cluster-down
cluster-down: ## Take that cluster away
	kind delete cluster --name parley

##@ Make

.PHONY: protos
protos: $(VENV)/.all ## Make services/parley/v1, schema.json, docs/reference, and parts of other files, from protos/
	@rm -f services/parley/v1/*_pb2.py services/parley/v1/*_pb2.pyi \
		services/parley/v1/*_pb2_grpc.py services/parley/v1/*_pb2_grpc.pyi
	$(call generate,services)
	$(BIN)/python -P -m parley.config.schema >$(VENV)/schema.json && mv $(VENV)/schema.json services/parley/config/schema.json
	$(BIN)/python -m tests.support.contract_reference docs/reference
	$(BIN)/python -m tests.support.made_parts

.PHONY: agreement-head
agreement-head: $(VENV)/.all ## Train the head of an agreement encoder (ARGS="--encoder FILE …")
	$(BIN)/python -m tests.bench.train_agreement_head $(ARGS)

.PHONY: support-head
support-head: $(VENV)/.all ## Train the head of the same encoder that tells what supports a claim (ARGS="--encoder FILE …")
	$(BIN)/python -m tests.bench.train_support_head $(ARGS)

.PHONY: format
format: $(VENV)/.all ## Format the code and the contract, and mend what ruff can
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	$(BIN)/buf format --write

.PHONY: lock
lock: $(VENV)/.all ## Pin the dependencies anew in requirements/ (ARGS=--upgrade for newer ones)
	$(call lock,all) --extra dev $(ARGS)
	$(call lock,run) --extra local --extra build --constraints requirements/all.txt
	$(call lock,deploy) --extra deploy --constraints requirements/all.txt
	$(call lock,mutants) --extra mutants --constraints requirements/all.txt
	$(call lock,supply) --extra supply --constraints requirements/all.txt
	$(call lock,docs) --extra docs --constraints requirements/all.txt
	echo 'setuptools>=77' | $(BIN)/uv pip compile - --quiet --no-config --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --no-header --constraints requirements/all.txt --output-file requirements/build.txt
	for service in $(SERVICES); do \
		$(call lock,$$service) --extra $$service --constraints requirements/all.txt || exit 1; done
	@$(MAKE) --no-print-directory third-party

.PHONY: third-party
third-party: $(VENV)/.all ## Make THIRD_PARTY.md from the locks: what comes along, and under which licence
	$(BIN)/python -m tests.support.third_party

.PHONY: lines
lines: $(VENV)/.all ## Count the hand-written lines of each room anew, in docs/architecture/README.md
	$(BIN)/python -m tests.support.count_lines

.PHONY: setup-dev
setup-dev: $(VENV)/.all ## Install the tools for checks and tests too

.PHONY: clean
clean: ## Remove what was installed, built and cached
	rm -rf $(VENV) .venv-* build dist .cache .coverage .coverage.* \
		.hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} + -o -name '*.egg-info' -prune -exec rm -rf {} +

# The stubs are for grpc.aio alone, which is all that is used here.
generate = PATH="$(BIN):$$PATH" $(BIN)/python -m grpc_tools.protoc --proto_path=protos \
	--python_out=$(1) --grpc_python_out=$(1) --mypy_out=quiet:$(1) --mypy_grpc_out=quiet,only_async:$(1) \
	protos/parley/v1/*.proto

lock = $(BIN)/uv pip compile pyproject.toml --quiet --no-config --universal --python-version 3.11 \
	--fork-strategy fewest --generate-hashes --no-emit-index-url --no-annotate --no-header \
	--excludes requirements/excludes.txt --output-file requirements/$(1).txt

$(VENV)/.made:
	@$(if $(PYTHON),,$(error There is no python3.11 or python3 here: install Python 3.11 or newer))true
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Parley needs Python 3.11 or newer, and \
	$(PYTHON) is " + sys.version.split()[0] + ": make PYTHON=/path/to/python3.11")'
	@$(PYTHON) -m venv $(VENV)
	@touch $@

# Each stamp stands for its lock, installed. requirements/all.txt holds all of run.txt, at the same versions.
$(VENV)/.run: requirements/run.txt pyproject.toml | $(VENV)/.made
	@echo "Installing into $(VENV) (once, a minute or two)" >&2
	@$(call install_lock,$(VENV),run)
	@$(install_parley)
	@touch $@

$(VENV)/.uv: requirements/all.txt | $(VENV)/.made
	@sed -n '/^uv==/,/[^\\]$$/p' requirements/all.txt >$(VENV)/uv.txt
	@$(call pip,$(VENV),--no-deps --only-binary :all: --require-hashes --requirement $(VENV)/uv.txt)
	@touch $@

# What looks at the locks is not among what it looks at: an environment of its own.
$(SUPPLY)/.made: requirements/supply.txt | $(VENV)/.uv
	@$(PYTHON) -m venv $(SUPPLY)
	@$(call install_tools,$(SUPPLY),supply)
	@touch $@

$(SITE)/.made: requirements/docs.txt | $(VENV)/.uv
	@$(PYTHON) -m venv $(SITE)
	@$(call install_tools,$(SITE),docs)
	@touch $@

# Helm's library has no wheel for every machine, so nothing else depends on it.
$(VENV)/.deploy: requirements/deploy.txt $(VENV)/.all
	@echo "Installing what checks the chart into $(VENV) (once)" >&2
	@$(call install_tools,$(VENV),deploy)
	@touch $@

$(VENV)/.mutants: requirements/mutants.txt $(VENV)/.all
	@echo "Installing what makes mutants into $(VENV) (once)" >&2
	@$(call install_tools,$(VENV),mutants)
	@touch $@

$(VENV)/.all: requirements/all.txt pyproject.toml | $(VENV)/.uv
	@echo "Installing into $(VENV), tools too (once, a minute or two)" >&2
	@$(call install_tools,$(VENV),all)
	@$(install_parley)
	@touch $(VENV)/.run $@
