# One command each; `make` alone lists them.
.DEFAULT_GOAL := help
.PHONY: help test check lint generate verify fuzz bench crash e2e faults sim soak simcover mutants sdk fmt ready npm

GO       ?= go
LINT     := bin/golangci-lint
BUF      := $(GO) tool -modfile=tools/go.mod buf
TIMEOUT  ?= 10m
FUZZTIME ?= 1m
N        ?= 200
BENCH    ?= .
COUNT    ?= 1

help: ## list the targets
	@awk -F':.*## ' '/^[a-z0-9]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: ready npm ## all tests, raced and uncached, then some inputs for every fuzz target; what CI runs
	CGO_ENABLED=1 $(GO) test -race -count=1 -timeout $(TIMEOUT) ./...
	@GO="$(GO)" FUZZTIME=2000x tools/fuzz
	@GO="$(GO)" tools/sdk try

sdk: ## the TypeScript package: install, build, test against a node of this tree
	@GO="$(GO)" tools/sdk test

check: lint verify test ## everything a commit must pass: lint, vet, generated files, tests

lint: $(LINT) ## golangci-lint, go vet and buf lint
	$(LINT) run
	$(GO) vet ./...
	$(BUF) lint

generate: ## write the generated code (messages/, sdk/) and pages (docs/) again
	$(BUF) generate
	@GO="$(GO)" tools/sdk generate
	$(GO) run ./internal/cmd/docs

verify: ## generated code and pages, and go.mod, are what their sources say; changes nothing
	@GO="$(GO)" tools/verify

fuzz: ## every fuzz target for FUZZTIME (1m): make fuzz FUZZTIME=10m PKG=./sessionlog
	@GO="$(GO)" FUZZTIME=$(FUZZTIME) tools/fuzz $(PKG)

bench: ## benchmarks: make bench BENCH=Append COUNT=10
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) -timeout 60m ./...

crash: ready ## the kill suite: SIGKILL a node N times (200) and audit what it had promised
	@GO="$(GO)" tools/suite TestCrash ./cmd/node PARLEY_CRASH_N=$(N)

e2e: ready ## MCP clients of npm and Go against the built binary, with their real time limits
	@NEEDED=1 tools/npm-ready e2e/mcp
	@GO="$(GO)" tools/suite Test ./e2e PARLEY_E2E=full

faults: ready ## N conversations (200) through a network that cuts, stalls, repeats: make faults N=1 SEED=4711
	@NEEDED=1 tools/npm-ready e2e/mcp
	@GO="$(GO)" PARLEY_FAULTS_SEED=$(SEED) tools/suite TestFaults ./e2e PARLEY_FAULTS_N=$(N) -v

mutants: ## every planted mistake against the simulation: make mutants ONLY=claim SEEDS=10000; writes docs/simulation.md
	$(GO) run ./internal/cmd/mutants -seeds $(or $(SEEDS),10000) -only '$(ONLY)'

sim: ready ## N seeds (20000) of the simulation, every profile in turn, and the same bytes in every process
	@N='$(if $(filter file,$(origin N)),20000,$(N))' GO="$(GO)" tools/sim run

simcover: ## what the simulation never reaches of the machines, and why: SEEDS (4000); writes docs/simulation.md
	$(GO) run ./internal/cmd/simcover -seeds $(or $(SEEDS),4000)

soak: ## as many seeds as SOAK (10m) allows, from FIRST on; writes figures into docs/simulation.md
	@SOAK='$(or $(SOAK),10m)' FIRST='$(or $(FIRST),1000000)' GO="$(GO)" tools/sim soak

fmt: ## gofmt and buf format
	gofmt -w $$(git ls-files -co --exclude-standard '*.go' | grep -v -e '\.pb\.go$$' -e '\.connect\.go$$')
	$(BUF) format -w

ready:
	@GO="$(GO)" tools/ready

npm:
	@tools/npm-ready e2e/mcp

$(LINT): tools/lint/go.mod tools/lint/go.sum
	$(GO) build -modfile=tools/lint/go.mod -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
