# Everything needs Go, gcc, make and git, and nothing else: what is missing is built from Go modules into bin/.

GO ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

.DEFAULT_GOAL := help

.PHONY: help
help: ## Say what the targets do.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: lab
lab: ## Build the local Kubernetes control plane and Temporal (about 15 minutes once per machine).
	@tools/build.sh kubelab
	@tools/build.sh temporal

.PHONY: build
build: ## Build bin/tenon.
	$(GO) build -trimpath -ldflags "-X main.version=$(VERSION)" -o bin/tenon ./cmd/tenon

.PHONY: demo
demo: lab build ## Tell the whole story on a laboratory of its own, and check it.
	bin/tenon demo

.PHONY: test
test: lab build ## Run every test, the end-to-end tests included.
	$(GO) test -timeout 30m ./...

.PHONY: replay
replay: ## Replay the recorded histories of every workflow with today's code.
	$(GO) test -count=1 -run Replay ./workflows/...

.PHONY: bench
bench: ## Run the benchmarks.
	$(GO) test -run '^$$' -bench . -benchmem ./...
