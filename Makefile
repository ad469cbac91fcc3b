# Copyright The Bellwether Authors.
# SPDX-License-Identifier: Apache-2.0

# Everything below needs Go and make, and nothing else: tools and the testbed's
# components are built from Go modules at the versions pinned in this tree.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

BIN := $(CURDIR)/bin
MODULES := . testbed testbed/sigstore
TEST_TIMEOUT ?= 60m
# Test programs are linked without debug information, which takes a fifth less
# time, and are not vetted again: make check does that.
TEST_FLAGS ?= -vet=off -ldflags='-s -w'
# How long each fuzz test runs in make test-long.
FUZZ_TIME ?= 20s
# How many of the testbed's test binaries run at a time. They mostly wait for
# OLM, which allows itself few requests a second.
TESTBED_PARALLEL ?= 3
# How long make test-changed may take.
LIMIT ?= 1h
KEEP ?=
ARGS ?=
# What make chaos plays: the seed, how long, and how long one disturbance lasts.
SEED ?= 0
DURATION ?= 20m
LONGEST ?= 3m
# What make images and make release build: where they push to, the version (by default that of the commit), the image to
# build on (by default one made of nothing), the platforms, the private key that signs, and the folder for files.
REGISTRY ?=
VERSION ?=
BASE ?=
PLATFORMS ?= linux/amd64,linux/arm64
KEY ?=
DIST ?= dist
RELEASE_FLAGS = --registry '$(REGISTRY)' --version '$(VERSION)' --base '$(BASE)' --platforms '$(PLATFORMS)' --key '$(KEY)' $(ARGS)
# The address that make site builds the site for, which is in sitemap.xml. The site works at any other as well.
SITE_URL ?= /
# What make simulate plays.
SEEDS ?= 10000
FIRST ?= 1

# Which test runs when is in testbed/tiers/tests.txt.
TIERS = cd testbed && go run ./cmd/tiers

CONTROLLER_GEN := $(BIN)/controller-gen
CRD_REF_DOCS := $(BIN)/crd-ref-docs
GOLANGCI_LINT := $(BIN)/golangci-lint
GOVULNCHECK := $(BIN)/govulncheck
ACTIONLINT := $(BIN)/actionlint
HUGO := $(BIN)/hugo
HTMLTEST := $(BIN)/htmltest
# The theme is a Go module, which comes from where Go's modules come from.
HUGO_SITE = HUGO_MODULE_PROXY="$$(go env GOPROXY)" $(HUGO) --source internal/tools/site --noBuildLock

export CGO_ENABLED ?= 0
# A cache for each path of a clone, whatever the environment says: findings in it
# name files by their path, and would escape the exclusions of another clone.
export GOLANGCI_LINT_CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/bellwether/golangci-lint/$(shell \
	printf %s '$(CURDIR)' | cksum | cut -d ' ' -f 1)

##@ Everyday

.PHONY: help
help: ## Show this help
	@awk -v tty="$$([[ -t 1 ]] && echo 1 || true)" 'BEGIN {FS = ":.*## "; if (tty) {c = "\033[36m"; b = "\033[1m"; r = "\033[0m"}; \
		print "Usage: make " c "TARGET" r "\n"; \
		print "New here? " c "make demo" r " shows the whole of it. Before you send a change: " c "make test" r ", then " \
			c "make check verify" r "."} \
		/^##@/ {printf "\n%s%s%s\n", b, substr($$0, 5), r} \
		/^[a-zA-Z0-9_-]+:.*## / {printf "  %s%-17s%s %s\n", c, $$1, r, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: demo
demo: ## Start a hub and three clusters, upgrade an operator in waves, clean up (KEEP=1 leaves it running)
	cd testbed && go run ./cmd/run demo $(if $(filter-out 0 no false,$(KEEP)),--keep) $(ARGS)

.PHONY: test
test: ## Test what a change is likely to break (10 minutes on two cores; half an hour the first time)
	@$(TIERS) run test -- $(TEST_FLAGS) -timeout $(TEST_TIMEOUT)

.PHONY: test-cluster
test-cluster: ## Run all other tests that need real clusters (25 minutes)
	@$(TIERS) run cluster --parallel $(TESTBED_PARALLEL) -- $(TEST_FLAGS) -timeout $(TEST_TIMEOUT)

.PHONY: test-long
test-long: test-long-unit test-long-testbed fuzz ## Run what takes too long for `make test`: many random cases, mutants, benchmarks' own tests, long chaos

.PHONY: build
build: ## Build hub, agent and bellwether into ./bin
	CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o $(BIN)/ ./cmd/...

.PHONY: install
install: ## Install the bellwether command, also as a kubectl plugin, into GOBIN
	CGO_ENABLED=0 go install -trimpath -ldflags='-s -w' ./cmd/bellwether
	@dir="$$(go env GOBIN)"; dir="$${dir:-$$(go env GOPATH)/bin}"; \
		ln -sf bellwether "$$dir/kubectl-bellwether" && echo "installed $$dir/bellwether and $$dir/kubectl-bellwether"

.PHONY: check
check: lint lint-rules lint-workflows ## Run the linters, and prove that the dependency rules bite

.PHONY: generate
generate: generate-api generate-rbac generate-go docs ## Write all generated files

.PHONY: verify
verify: verify-generated verify-boilerplate verify-tidy verify-tests ## Fail if a generated file, a convention's file, a go.mod or the table of tests is not current

##@ Tests in parts

.PHONY: test-unit
test-unit: ## Test the product's module
	go test $(TEST_FLAGS) -timeout $(TEST_TIMEOUT) ./...

.PHONY: test-changed
test-changed: ## The part of `make test-cluster` whose inputs changed since it passed on this machine (LIMIT=1h)
	@$(TIERS) changed cluster --limit $(LIMIT) --parallel $(TESTBED_PARALLEL) -- $(TEST_FLAGS) -timeout $(TEST_TIMEOUT)

.PHONY: test-times
test-times: ## Print how long packages and tests took when they ran last on this machine
	@$(TIERS) times $(ARGS)

# What make test-stress runs: packages such as PKG=testbed/paging, by default all of the tier.
PKG ?=
TIER ?= test
N ?= 5

.PHONY: test-stress
test-stress: ## Run tests again and again on a busy machine, and print how often each passed (PKG=testbed/paging N=5 TIER=cluster)
	@$(TIERS) stress $(PKG) --tier $(TIER) -n $(N) -- $(TEST_FLAGS) -timeout $(TEST_TIMEOUT)

.PHONY: test-long-unit
test-long-unit: ## The part of `make test-long` that needs no cluster
	go test $(TEST_FLAGS) -tags long -timeout 2h ./...

.PHONY: test-long-testbed
test-long-testbed: components ## The part of `make test-long` that runs on the testbed
	@$(TIERS) run long --below testbed --parallel $(TESTBED_PARALLEL) -- $(TEST_FLAGS) -tags long -timeout 2h
	@# Of some tests more cases are long.
	cd testbed && go test $(TEST_FLAGS) -tags long -timeout 2h $$(git grep -l 'long\.Cases' -- '*_test.go' | xargs -n1 dirname | sort -u | sed 's|^|./|')
	cd testbed && go test $(TEST_FLAGS) -tags long -timeout 2h -run 'Chaos|Trial' ./e2e \
		-args -chaos.duration 20m -chaos.longest 1m -trial.faults 0

.PHONY: fuzz
fuzz: ## Run every fuzz test for FUZZ_TIME
	@.ci/fuzz $(FUZZ_TIME)

.PHONY: race
race: ## Test the packages that start goroutines or use locks under the race detector (needs a C compiler)
	CGO_ENABLED=1 go test -race -vet=off -timeout $(TEST_TIMEOUT) $$(git grep -lE \
		'^\s*go (func|[a-zA-Z]+[.(])|"(sync|sync/atomic|golang.org/x/sync/.*)"' -- '*.go' ':!*_test.go' ':!testbed' ':!apis' | \
		xargs -n1 dirname | sort -u | sed 's|^|./|')

.PHONY: chaos
chaos: components ## Disturb upgrades and rollbacks at random (SEED=7 DURATION=1h LONGEST=3m; SEED=0 takes another one each time)
	cd testbed && go test -tags long -count=1 -v -timeout 0 -run '^TestChaos$$' ./e2e \
		-args -chaos.seed $(SEED) -chaos.duration $(DURATION) -chaos.longest $(LONGEST)

.PHONY: simulate
simulate: ## Play the rollout simulators (SEEDS=10000 of them, from FIRST=1 on)
	go test -count=1 -v -timeout 0 -run '^(TestSimulator|TestRollbackSimulator)$$' ./rollouts \
		-args -seeds $(SEEDS) -first $(FIRST)

.PHONY: trial
trial: components ## Inject faults into a fleet and check what users are told (ARGS="-trial.faults 0": all of them; ARGS="-trial.only veto": by name)
	cd testbed && go test -count=1 -v -timeout $(TEST_TIMEOUT) -run Trial ./e2e $(if $(ARGS),-args $(ARGS))

.PHONY: corpus
corpus: ## Lint the corpus of published bundles, and print the precision of each rule (CORPUS=DIR: those of a folder)
	go test -count=1 $(TEST_FLAGS) -v -run '^TestCorpus' ./bundles/lint $(if $(CORPUS)$(ARGS),-args) \
		$(if $(CORPUS),-corpus '$(abspath $(CORPUS))') $(ARGS)

.PHONY: bench
bench: components ## Measure the figures of docs/benchmarks.md
	cd testbed && go run ./cmd/bench $(ARGS)

.PHONY: bench-scale
bench-scale: components ## Measure large fleets with hollow agents, and write the figures into docs/benchmarks.md (hours)
	cd testbed && go run ./cmd/bench $(if $(findstring --only,$(ARGS)),,--only scale,scale-placements,scale-trouble,scale-recovery,scale-scan) \
		-o $(CURDIR)/docs/benchmarks.md $(ARGS)

##@ Testbed

.PHONY: pictures
pictures: components ## Record a run of the demo, and draw the pictures of dashboards in docs/ from it (10 minutes)
	cd testbed && go run ./cmd/pictures
	go generate ./dashboards

.PHONY: components
components: ## Build the testbed's components into the user's cache (minutes the first time, then nothing)
	cd testbed && go run ./cmd/run components

.PHONY: testbed
testbed: ## Start a hub and a fleet of clusters; Ctrl-C stops them (ARGS='--clusters a,b')
	cd testbed && go run ./cmd/testbed up $(ARGS)

##@ Checks in parts

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run golangci-lint on every module
	@status=0; for module in $(MODULES); do \
		echo "golangci-lint $$module"; \
		(cd $$module && $(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yml ./...) || status=1; \
	done; exit $$status

.PHONY: lint-rules
lint-rules: $(GOLANGCI_LINT) $(ACTIONLINT) ## Prove that each rule of .golangci.yml about imports fails code that breaks it, and check what conventions render
	GOLANGCI_LINT=$(GOLANGCI_LINT) go test -count=1 -tags lint ./internal/tools/lintrules
	GOLANGCI_LINT=$(GOLANGCI_LINT) ACTIONLINT=$(ACTIONLINT) \
		go test -count=1 -tags lint -run '^TestTools$$' ./boilerplate/conventions

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## Format all Go code
	@for module in $(MODULES); do (cd $$module && $(GOLANGCI_LINT) fmt --config $(CURDIR)/.golangci.yml ./...); done

.PHONY: vuln
vuln: $(GOVULNCHECK) ## Look the dependencies up in Go's vulnerability database
	@go run ./internal/tools/vuln $(GOVULNCHECK) $(MODULES)

.PHONY: verify-generated
verify-generated: ## Fail if `make generate` would change a file
	@.ci/verify-generated

# With the flags of verify-generated, so that one program is built for both.
.PHONY: verify-boilerplate
verify-boilerplate: ## Fail if this repository has drifted from the conventions in .boilerplate.yaml
	@GOFLAGS="$${GOFLAGS:-} -trimpath" go run ./cmd/bellwether boilerplate check

.PHONY: verify-tidy
verify-tidy: ## Fail if `go mod tidy` would change a go.mod or go.sum
	@status=0; for module in $(MODULES); do \
		echo "go mod tidy -diff $$module"; (cd $$module && go mod tidy -diff) || status=1; \
	done; exit $$status

.PHONY: verify-tests
verify-tests: ## Fail if a test is not in the table of tests, or has left it without a word
	@$(TIERS) verify

.PHONY: tidy
tidy: ## Tidy every go.mod
	@for module in $(MODULES); do (cd $$module && go mod tidy); done

.PHONY: lint-workflows
lint-workflows: $(ACTIONLINT) ## Check the workflows of GitHub
	$(ACTIONLINT)

##@ Release

.PHONY: images
images: require-registry ## Build the container images for amd64 and arm64, and push them (REGISTRY=registry.example.com/bellwether)
	go run ./release images $(RELEASE_FLAGS)

.PHONY: release
release: require-registry ## Build a release into ./dist, and push images and chart (VERSION=1.2.3 REGISTRY=registry.example.com/bellwether)
	@[[ -n '$(VERSION)' ]] || { echo 'say which version is released: make release VERSION=1.2.3 REGISTRY=registry.example.com/bellwether' >&2; exit 2; }
	go run ./release all --output '$(DIST)' $(RELEASE_FLAGS)

.PHONY: require-registry
require-registry:
	@[[ -n '$(REGISTRY)' ]] || { echo 'say where the images go: make images REGISTRY=registry.example.com/bellwether' >&2; exit 2; }

##@ Generated files, one by one

.PHONY: generate-api
generate-api: $(CONTROLLER_GEN) ## Deep copies and CRDs from apis/
	$(CONTROLLER_GEN) object:headerFile=internal/tools/header.go.txt crd:maxDescLen=1024 \
		paths=./apis/... output:crd:dir=charts/bellwether/files/crds

.PHONY: generate-rbac
generate-rbac: $(CONTROLLER_GEN) ## The chart's permissions, from the markers on the controllers
	internal/tools/rbac/generate $(CONTROLLER_GEN)

.PHONY: generate-go
generate-go: ## Everything with a go:generate directive, such as the sample operator's bundles
	@for module in $(MODULES); do (cd $$module && go generate ./...); done

.PHONY: docs
docs: docs-api docs-cli ## The references under docs/reference

.PHONY: docs-api
docs-api: $(CRD_REF_DOCS) ## docs/reference/api.md from the API's types
	$(CRD_REF_DOCS) --source-path=apis --config=docs/reference/config.yaml --renderer=markdown \
		--output-path=docs/reference/api.md --max-depth=12

.PHONY: docs-cli
docs-cli: ## The references of commands, lint rules and reasons, from the program itself
	go run ./cmd/bellwether docs docs/reference

##@ Site

# Pages about single commands and lint rules are only on the site.
.PHONY: site-pages
site-pages:
	@rm -rf build/pages && go run ./cmd/bellwether docs --pages build/pages

.PHONY: site
site: $(HUGO) $(HTMLTEST) site-pages ## Build the documentation as a site into ./build/site, and check its links (SITE_URL=https://docs.example.com/)
	$(HUGO_SITE) build --destination $(CURDIR)/build/site --cleanDestinationDir --minify --panicOnWarning --baseURL '$(SITE_URL)'
	$(HTMLTEST) --conf internal/tools/site/htmltest.yaml --skip-external build/site

.PHONY: site-serve
site-serve: $(HUGO) site-pages ## Serve the site on http://127.0.0.1:1313, and build it again when a page changes; Ctrl-C stops it
	$(HUGO_SITE) server --bind 127.0.0.1 --port 1313 --renderToMemory

##@ Housekeeping

.PHONY: clean
clean: ## Remove ./bin and ./build (the testbed's cache stays; its folder is shown)
	rm -rf $(BIN) build
	@echo "components built by the testbed are kept in the user's cache folder under bellwether/testbed"

# Tools live in modules of their own, so that they do not decide the versions
# of the product's dependencies.
$(CONTROLLER_GEN): internal/tools/modules/go.mod
	@mkdir -p $(BIN) && cd internal/tools/modules && go build -o $@ sigs.k8s.io/controller-tools/cmd/controller-gen

$(CRD_REF_DOCS): internal/tools/modules/go.mod
	@mkdir -p $(BIN) && cd internal/tools/modules && go build -o $@ github.com/elastic/crd-ref-docs

$(ACTIONLINT): internal/tools/modules/go.mod
	@mkdir -p $(BIN) && cd internal/tools/modules && go build -o $@ github.com/rhysd/actionlint/cmd/actionlint

$(GOLANGCI_LINT): internal/tools/modules/lint/go.mod
	@mkdir -p $(BIN) && echo "building golangci-lint (the first time this takes minutes)" && \
		cd internal/tools/modules/lint && go build -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(GOVULNCHECK): internal/tools/modules/vulncheck/go.mod
	@mkdir -p $(BIN) && cd internal/tools/modules/vulncheck && go build -o $@ golang.org/x/vuln/cmd/govulncheck

$(HUGO): internal/tools/modules/site/go.mod
	@mkdir -p $(BIN) && echo "building Hugo (the first time this takes minutes)" && \
		cd internal/tools/modules/site && go build -o $@ github.com/gohugoio/hugo

$(HTMLTEST): internal/tools/modules/site/go.mod
	@mkdir -p $(BIN) && cd internal/tools/modules/site && go build -o $@ github.com/wjdp/htmltest
