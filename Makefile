# Sluice. `make help` lists what there is to do.

RUNSC_VERSION         := v0.0.0-20260905035102-160fafc42237
CHDB_VERSION          := 26.7.3-stable.1
KAFKA_VERSION         := 4.4.0
BUF_VERSION           := 1.75.0
PROTOC_GEN_GO_VERSION := v1.36.12
GOLANGCI_VERSION      := v2.12.2
APT_PACKAGES          := python3 python3-numpy python3-sympy erofs-utils
export RUNSC_VERSION CHDB_VERSION KAFKA_VERSION BUF_VERSION PROTOC_GEN_GO_VERSION GOLANGCI_VERSION APT_PACKAGES

STAMPS  := .tools/stamps
INSTALL := topology/tools/install.sh
# Every folder with a main.go where commands live becomes a binary of that name.
MAINS   := $(dir $(wildcard topology/cmd/*/main.go sandboxd/cmd/*/main.go stages/*/main.go stages/*/*/cmd/*/main.go))
export PATH := $(CURDIR)/.tools/bin:$(PATH)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

##@ Use

.PHONY: help
help: ## Print this list
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-zA-Z_-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '\nOptions go through ARGS: make demo ARGS="--steps 5 --seed 7"; bin/sluice up --help lists them.\n'

.PHONY: demo
demo: tools build ## Run the whole loop on this machine and watch it learn (a minute or two)
	@bin/sluice up $(ARGS)

.PHONY: tools
tools: $(STAMPS)/apt $(STAMPS)/runsc-$(RUNSC_VERSION) $(STAMPS)/libchdb-$(CHDB_VERSION) ## Install what running needs: gVisor, ClickHouse, Python (into .tools/, and apt packages)

.PHONY: build
build: ## Build all binaries into bin/
	@CGO_ENABLED=0 go build -o bin/ $(addprefix ./,$(MAINS))

##@ Develop

.PHONY: test
test: tools kafka chromium generated build vet trainer-test ## What CI runs: tools, build, vet, generated code, unit tests with the race detector, integration
	go test -race -tags synctests -timeout 30m $(TESTARGS) $$(go list ./... | grep -v /integration)
	go test -count=1 -timeout 30m ./integration/...

# Tests in virtual time need the Kafka client's locks to be such that a bubble's clock
# can pass them; its build tag synctests makes them so.

.PHONY: vet
vet: ## go vet and gofmt
	go vet ./...
	@unformatted=$$(gofmt -l $(wildcard *.go) dashboards integration sandboxd schemas stages topology); \
	if [ -n "$$unformatted" ]; then printf 'not formatted; run gofmt -w on:\n%s\n' "$$unformatted"; exit 1; fi

.PHONY: lint
lint: $(STAMPS)/golangci-lint-$(GOLANGCI_VERSION) $(STAMPS)/buf-$(BUF_VERSION) ## go.mod, golangci-lint with the import rules, buf's rules and breaking changes against BASE
	go mod tidy -diff
	golangci-lint run ./...
	buf lint schemas
	buf breaking schemas --against '.git#ref=$(BASE),subdir=schemas'

# What breaking changes are measured against.
BASE ?= $(shell git rev-parse --verify -q origin/main || git rev-parse HEAD)

.PHONY: generate
generate: $(STAMPS)/buf-$(BUF_VERSION) $(STAMPS)/protoc-gen-go-$(PROTOC_GEN_GO_VERSION) $(STAMPS)/python ## Write the Go and Python code of the contracts
	cd schemas && buf generate
	PYTHON=$(CURDIR)/.tools/python/bin/python stages/trainer/generate.sh

.PHONY: generated
generated: $(STAMPS)/buf-$(BUF_VERSION) $(STAMPS)/protoc-gen-go-$(PROTOC_GEN_GO_VERSION) $(STAMPS)/python ## Fail if the generated code is not what the contracts say
	@before=$$(mktemp -d) && cp -r schemas/sluicev1 stages/trainer/sluice_trainer/proto "$$before/" && \
	(cd schemas && buf lint) && $(MAKE) --no-print-directory generate && \
	if ! diff -r "$$before/sluicev1" schemas/sluicev1 >/dev/null || \
		! diff -r -x __pycache__ "$$before/proto" stages/trainer/sluice_trainer/proto >/dev/null; then \
		rm -rf "$$before"; echo 'generated code was not up to date; it is now: commit it'; exit 1; \
	fi; rm -rf "$$before"

.PHONY: trainer-test
trainer-test: build $(STAMPS)/python ## The Python trainer: ruff, mypy and its tests
	cd stages/trainer && $(CURDIR)/.tools/python/bin/ruff check . && $(CURDIR)/.tools/python/bin/ruff format --check . && \
		$(CURDIR)/.tools/python/bin/mypy sluice_trainer && $(CURDIR)/.tools/python/bin/python -m pytest -q -rs

.PHONY: trainer-wheel
trainer-wheel: ## Build the Python trainer's wheel into stages/trainer/dist
	cd stages/trainer && python3 -m pip wheel --no-deps --quiet --wheel-dir dist .

.PHONY: kafka
kafka: $(STAMPS)/kafka-$(KAFKA_VERSION) ## Install Apache Kafka for tests against the real broker (into .tools/kafka; Java and Maven from apt)

.PHONY: chromium
chromium: $(STAMPS)/chromium ## Install Chromium, in which tests drive the pages (from apt)

.PHONY: integration
integration: tools kafka build ## Drive the built binaries: embedded services, and containers where Docker has the images
	go test -count=1 -v -timeout 60m ./integration/... $(ARGS)

.PHONY: vectors
vectors: ## Compare with a folder of reference cases: make vectors DIR=path
	@[ -n "$(DIR)" ] || { echo 'name the folder: make vectors DIR=path'; exit 2; }
	SLUICE_VECTORS="$(abspath $(DIR))" go test -count=1 -v -run "^TestVectors$$" ./stages/internal/testkit/vectors

.PHONY: bench
bench: tools build ## Benchmarks beside the code, then the whole pipeline
	go test -run '^$$' -bench . -benchmem $(ARGS) ./...

.PHONY: bench-sandbox
bench-sandbox: tools build ## Sandbox calls side by side: bare subprocess, docker, cold gVisor, the warm pool
	go run ./sandboxd/bench --binary bin/sandboxd $(ARGS)

.PHONY: bench-reward
bench-reward: ## Comparisons per kind; with PYTHON=… that has math-verify, beside it on the same pairs
	go test -run '^$$' -bench Compare -benchmem ./stages/reward-scorer/mathverify
	MATH_VERIFY_PYTHON="$(PYTHON)" BENCH_CASES="$(FILE)" go test -count=1 -run TestAgainstMathVerify -v ./stages/reward-scorer/mathverify

.PHONY: reward-cases
reward-cases: ## Compare with a folder of labelled answers: make reward-cases DIR=path [PROFILE=compat]
	@[ -n "$(DIR)" ] || { echo 'name the folder: make reward-cases DIR=path'; exit 2; }
	REWARD_CASES="$(abspath $(DIR))" REWARD_CASES_PROFILE="$(PROFILE)" go test -count=1 -run '^TestCases$$' -v ./stages/reward-scorer/mathverify

.PHONY: token-cases
token-cases: ## Compare with ids of a model's own tokenizer: make token-cases TOKENIZER=folder FILE=cases.jsonl
	@[ -n "$(TOKENIZER)" ] && [ -n "$(FILE)" ] || { echo 'name the folder and the file'; exit 2; }
	TOKENIZER="$(abspath $(TOKENIZER))" TOKEN_CASES="$(abspath $(FILE))" go test -count=1 -run '^TestCases$$' -v ./stages/sampler/tokenizer

.PHONY: template-cases
template-cases: ## Compare with renders of Python's jinja2: make template-cases TEMPLATE=file NAME=name FILE=renders.jsonl
	@[ -n "$(TEMPLATE)" ] && [ -n "$(NAME)" ] && [ -n "$(FILE)" ] || { echo 'name the template, its name in the file, and the file'; exit 2; }
	TEMPLATE="$(abspath $(TEMPLATE))" TEMPLATE_NAME="$(NAME)" TEMPLATE_CASES="$(abspath $(FILE))" go test -count=1 -run '^TestCases$$' -v ./stages/sampler/template

.PHONY: clean
clean: ## Remove bin/ and the data of demo runs (.sluice/); tools stay
	@[ ! -e .sluice/demo/lock ] || flock -n .sluice/demo/lock true || \
		{ echo "a run is at work in .sluice/demo (process $$(cat .sluice/demo/lock)): stop it first"; exit 1; }
	rm -rf bin .sluice

# Tools, one by one; the targets above call them.

$(STAMPS)/apt: Makefile
	@$(INSTALL) apt && mkdir -p $(@D) && touch $@

$(STAMPS)/runsc-$(RUNSC_VERSION): topology/tools/gvisor/runsc.patch topology/tools/gvisor/seccomp.go
	@$(INSTALL) runsc && mkdir -p $(@D) && touch $@

$(STAMPS)/libchdb-$(CHDB_VERSION):
	@$(INSTALL) libchdb && mkdir -p $(@D) && touch $@

$(STAMPS)/chromium:
	@$(INSTALL) chromium && mkdir -p $(@D) && touch $@

$(STAMPS)/kafka-$(KAFKA_VERSION):
	@$(INSTALL) kafka && mkdir -p $(@D) && touch $@

$(STAMPS)/buf-$(BUF_VERSION):
	@$(INSTALL) buf && mkdir -p $(@D) && touch $@

$(STAMPS)/protoc-gen-go-$(PROTOC_GEN_GO_VERSION):
	@$(INSTALL) protoc-gen-go && mkdir -p $(@D) && touch $@

$(STAMPS)/python: stages/trainer/requirements.txt
	@$(INSTALL) python && mkdir -p $(@D) && touch $@

$(STAMPS)/golangci-lint-$(GOLANGCI_VERSION):
	@$(INSTALL) golangci-lint && mkdir -p $(@D) && touch $@
