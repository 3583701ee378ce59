# Every target is one line or a script; `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := check

GO            ?= go
VERSION       ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS       := -s -w -X main.version=$(VERSION)
GOLANGCI      := .bin/golangci-lint
GOFUMPT       := .bin/gofumpt
GOLANGCI_VERSION := v2.15.0
GOFUMPT_VERSION  := v0.12.0
FUZZTIME      ?= 10s

.PHONY: help run build test test-user race lint fmt fmt-check vet cross check fuzz trace golden sandbox-test conformance smoke bench bench-sandbox docs docs-check tidy-check dist tools

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

run: build ## build, check this machine, serve the current folder over HTTP
	@scripts/run.sh

build: ## build the static binary into bin/
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/zeph-mcp-tools ./cmd/zeph-mcp-tools

test: ## run every test
	$(GO) test ./...

test-user: ## run every test as an ordinary user (needs root to switch)
	scripts/test-user.sh

race: ## run every test under the race detector
	CGO_ENABLED=1 $(GO) test -race ./...

check: fmt-check vet cross lint test docs-check tidy-check ## what a commit must pass

lint: $(GOLANGCI) ## run the pinned linters
	$(GOLANGCI) run ./...

fmt: $(GOLANGCI) ## format the tree
	$(GOLANGCI) fmt ./...

fmt-check: $(GOFUMPT)
	@out=$$($(GOFUMPT) -extra -l .); if [ -n "$$out" ]; then echo "not formatted (make fmt):"; echo "$$out"; exit 1; fi

vet:
	$(GO) vet ./...

cross: ## build for the systems that cannot be tested here, and vet for macOS
	GOOS=windows GOARCH=amd64 $(GO) build ./...
	GOOS=linux GOARCH=arm64 $(GO) build ./...
	GOOS=darwin GOARCH=arm64 $(GO) vet ./...

fuzz: ## run each fuzz target for FUZZTIME
	scripts/fuzz.sh $(FUZZTIME)

trace: ## hold the analysis of commands against a real bash (a few minutes)
	ZEPH_TRACE_ALL=1 $(GO) test -count=1 -timeout 30m -tags trace -run 'TestBash|FuzzRelations' ./internal/shellast

golden: ## rewrite golden files
	$(GO) test ./... -update

sandbox-test: ## sandbox tests that fail where the kernel lacks something
	ZEPH_REQUIRE_SANDBOX=1 $(GO) test -count=1 ./sandbox/... ./tools/bash/... ./cmd/...

conformance: build ## official MCP conformance suite, both revisions
	scripts/conformance.sh

smoke: build ## other people's clients against the binary
	scripts/smoke.sh

bench: build ## measure against a bare server in one run; writes docs/benchmarks.md
	$(GO) run ./internal/bench -bin bin/zeph-mcp-tools -out docs/benchmarks.md

bench-sandbox: ## measure what confining costs, beside bubblewrap if it is installed (apt-get install bubblewrap)
	$(GO) run ./internal/bench/sandbox -out docs/benchmarks.md

docs: build ## regenerate what is generated in docs/
	scripts/docs.sh docs

docs-check: build
	scripts/docs.sh check

tidy-check:
	$(GO) mod tidy -diff

dist: ## reproducible release archives for linux and darwin
	scripts/dist.sh $(VERSION)

tools: $(GOLANGCI) $(GOFUMPT)

$(GOLANGCI):
	GOBIN=$(CURDIR)/.bin $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)

$(GOFUMPT):
	GOBIN=$(CURDIR)/.bin $(GO) install mvdan.cc/gofumpt@$(GOFUMPT_VERSION)
