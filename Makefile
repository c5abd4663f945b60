# Every target installs its own requirements. PYTHON=... selects a Python 3.11.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup demo test checks test-python test-contracts test-hosts test-ape lint fmt model bench gas coverage slither fuzz hardhat clean

PYTHON ?= $(if $(shell command -v python3.11),python3.11,python3)
BIN := .venv/bin
FORGE := forge
# Compiler folder of ape and py-solc-x, and ape's data folder.
export SOLCX_BINARY_PATH := $(CURDIR)/.setup/solcx
export APE_DATA_FOLDER := $(CURDIR)/.build/ape
export PATH := $(CURDIR)/.venv/bin:$(PATH)

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

setup: .setup/python .setup/node .setup/links ## install everything into .venv and node_modules (seconds when nothing changed)

demo: setup ## run the whole protocol live: train, deliver, agree on the roll, audit, charge cheats
	@$(BIN)/opfl demo

test: checks test-python ## lint and run all tests

checks: setup ## lint and test contracts, with Foundry and ape, side by side; each shows its output when it ends
	@$(MAKE) --no-print-directory --jobs=2 $(if $(filter output-sync,$(.FEATURES)),--output-sync=target) lint test-contracts test-ape

test-contracts: setup ## run Foundry unit, fuzz and invariant tests; FOUNDRY_PROFILE=ci fuzzes ten times longer
	$(FORGE) test
	$(FORGE) snapshot --match-contract GasTest --check

test-python: setup ## run the Python tests; three workers, since whole jobs often wait
	$(BIN)/pytest -n 3 --dist loadgroup --no-loadscope-reorder tests

test-hosts: setup ## run whole jobs with every role on its own host (needs root: network namespaces)
	$(BIN)/pytest -m several_hosts tests/e2e

test-ape: setup ## run functional tests of the contracts through ape, on Anvil
	$(BIN)/ape test

lint: setup ## run ruff, mypy, import-linter, codespell, forge fmt
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy opfl_chain
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(FORGE) fmt --check

MODEL_RUNS ?= 20000
model: setup ## play protocol 2 against its model, MODEL_RUNS=20000 random runs of each kind of audit
	OPFL_MODEL_RUNS=$(MODEL_RUNS) $(BIN)/pytest tests/model

bench: setup ## measure gas per role and round
	$(BIN)/opfl bench gas

gas: setup ## update .gas-snapshot and docs/GAS.md
	$(FORGE) snapshot --match-contract GasTest
	$(BIN)/opfl bench gas --markdown docs/GAS.md

coverage: setup ## measure line coverage of the contracts
	$(FORGE) coverage --no-match-coverage tests --report summary

slither: setup ## run static analysis of the contracts (SECURITY.md answers the findings)
	@[ -x .setup/slither/bin/slither ] || { $(PYTHON) -m venv .setup/slither && .setup/slither/bin/pip install --quiet --disable-pip-version-check -c constraints.txt slither-analyzer; }
	FOUNDRY_OUT=.build/slither/out FOUNDRY_CACHE_PATH=.build/slither/cache \
	  .setup/slither/bin/slither . --compile-force-framework foundry --filter-paths "node_modules|tests" --fail-none

FUZZ_SECONDS ?= 60
fuzz: setup ## fuzz all decoders of external input, for FUZZ_SECONDS=60 in total
	@[ -d .setup/fuzz/atheris ] || $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt --target .setup/fuzz atheris
	PYTHONPATH=.setup/fuzz $(BIN)/python tests/fuzz/atheris_decoders.py --seconds $(FUZZ_SECONDS)

hardhat: .setup/hardhat ## install Hardhat and its node 22, for `opfl devnet --chain hardhat`

fmt: setup ## format Python and Solidity
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(FORGE) fmt

clean: ## remove all files made by setup and builds
	rm -rf .venv .setup .build .cache node_modules

.setup/python: pyproject.toml constraints.txt | check-python
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[ape,dev]'
	@mkdir -p .setup && touch $@

.setup/node: package.json package-lock.json | check-node
	npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@mkdir -p .setup && touch $@

# Links to Anvil and the compiler where ape and py-solc-x look for them, also in an activated environment.
.setup/links: .setup/python .setup/node
	@mkdir -p .setup/solcx && ln -sf ../../tools/solc .setup/solcx/solc-v0.8.37
	@for tool in anvil forge; do \
	  for binary in node_modules/@foundry-rs/$$tool-*/bin/$$tool; do \
	    if [ -x $$binary ]; then ln -sf ../../$$binary $(BIN)/$$tool; fi; done; \
	  command -v $$tool >/dev/null || { echo "npm has no $$tool for this platform: install Foundry 1.7, then run make again" >&2; exit 1; }; \
	done
	@grep -q SOLCX_BINARY_PATH $(BIN)/activate || printf 'export %s=%s\n' \
	  SOLCX_BINARY_PATH "$(SOLCX_BINARY_PATH)" APE_DATA_FOLDER "$(APE_DATA_FOLDER)" >> $(BIN)/activate
	@touch $@

# Two passes: npm installs Hardhat's native part only under node 22, which the first pass installs.
HARDHAT_INSTALL := npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error
.setup/hardhat: tools/hardhat/package.json tools/hardhat/package-lock.json | setup
	cd tools/hardhat && $(HARDHAT_INSTALL) && PATH="$$(echo $$PWD/node_modules/node-*/bin):$$PATH" $(HARDHAT_INSTALL)
	@touch $@

.PHONY: check-python check-node
check-python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null \
	  || { echo "Python 3.11 not found, opfl_chain needs it: install python3.11, or run make PYTHON=/path/to/python3.11" >&2; exit 1; }

check-node:
	@command -v npm >/dev/null && node -e 'process.exit(+(process.versions.node.split(".")[0] < 20))' 2>/dev/null \
	  || { echo "Node.js 20 or later with npm not found, opfl_chain needs it: install it, then run make again" >&2; exit 1; }
