# The targets need Go, gcc, make and git; make test also needs Debian's chromium, tmux, awscli, boto3, jq, envsubst, postgresql and prometheus, and npm. Other tools are built into bin/.

GO ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null)

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: lab
lab: ## Build the local Kubernetes control plane and Temporal (about 15 minutes once per machine).
	@tools/build.sh kubelab
	@tools/build.sh temporal

.PHONY: lab-postgres
lab-postgres: lab ## Build Temporal's released server, and install PostgreSQL (a minute more).
	@tools/build.sh temporal-server
	@tools/build.sh temporal-sql-tool
	@tools/postgresql.sh

# Karpenter is for the tests that hand a cluster over and those that compare it with Tenon, nodeadm for the one in which it
# checks the user data of nodes.
bin/helm bin/workflowcheck bin/karpenter bin/nodeadm: bin/%: tools/%/go.mod tools/%/go.sum tools/build.sh
	@tools/build.sh $*

bin/golangci-lint: tools/golangci/go.mod tools/golangci/go.sum tools/build.sh
	@tools/build.sh golangci-lint

# CycloneDX's own generator of bills of materials.
bin/cyclonedx-gomod: tools/sbom/go.mod tools/sbom/go.sum
	@echo "building cyclonedx-gomod"
	@$(GO) build -C tools/sbom -ldflags "-s -w" -o $(CURDIR)/bin/ tool
	@touch $@

.PHONY: tools
tools: bin/helm bin/golangci-lint bin/workflowcheck bin/cyclonedx-gomod ## Build the tools of make check: helm, golangci-lint, workflowcheck, cyclonedx-gomod.

# Static, and the same to the last bit in any directory: what goes in is the code, go.sum, the version of Go, VERSION and
# COMMIT. The go command could stamp the commit itself, but not where an image is built, which has no .git.
BUILD = CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)"

.PHONY: build
build: ## Build bin/tenon, which runs in production, and bin/tenon-lab, the laboratory.
	$(BUILD) -o bin/ ./cmd/tenon ./cmd/tenon-lab

# What an image contains, for each architecture.
RELEASED := bin/release/tenon-linux-amd64 bin/release/tenon-linux-arm64

$(RELEASED): bin/release/tenon-linux-%: always
	GOOS=linux GOARCH=$* $(BUILD) -o $@ ./cmd/tenon

.PHONY: always
always:

# The bill of materials of a program: what the go command has written into it about its modules, and about Go.
%.cdx.json: % bin/cyclonedx-gomod
	bin/cyclonedx-gomod bin -json -std -noserial -notimestamp -version $(VERSION) -output $@ $<

.PHONY: release
release: $(RELEASED) $(RELEASED:=.cdx.json) ## Build bin/release: tenon for linux/amd64 and linux/arm64, the bills of materials (CycloneDX), and SHA256SUMS.
	cd bin/release && sha256sum tenon-linux-* > SHA256SUMS && cat SHA256SUMS

.PHONY: reproduce
reproduce: build ## Build bin/tenon again in another directory with an empty build cache, and compare (about ten minutes).
	TENON_REBUILD=1 $(GO) test -count=1 -v -timeout 1h -run TestBuildsAreTheSame ./test/binary

.PHONY: demo
demo: lab build ## Demonstrate Tenon from start to finish in a laboratory of its own, and check the results.
	bin/tenon-lab demo

# How long make postgres leaves PostgreSQL dead, and how long it walks.
OUTAGE ?= 60s
WALK ?= 5m

.PHONY: postgres
postgres: lab-postgres build ## Run the demonstration, the walk and the failures of a database with Temporal on PostgreSQL (about a quarter of an hour; OUTAGE=60s WALK=5m).
	bin/tenon-lab demo --postgres
	TENON_POSTGRES_OUTAGE=$(OUTAGE) $(GO) test -count=1 -v -timeout 1h ./test/postgres
	TENON_POSTGRES=1 TENON_WALK=$(WALK) $(GO) test -count=1 -v -timeout 2h -run TestWalk ./test/walk

# make check and make test use the same flags, so that the second finds the results of the first.
TESTFLAGS := -timeout 40m

# The suites that mostly wait, for machines to boot, pauses to pass or processes to return, run beside the others, which mostly
# compute: three of those and two of these at once fill two processors. The longest begin first.
WAITING := docs outside e2e handover oracle walk nodegroups upgrade provider postgres buffers examples drift drain interruption ui why rights live
LONGEST := crash disruption scheduling scale clients overshoot

.PHONY: test
test: SHELL := bash
test: lab-postgres build bin/helm bin/karpenter bin/nodeadm ## Run all tests, including the end-to-end tests.
	@tools/chromium.sh
	@tools/axe.sh
	@tools/prometheus.sh
	@tools/tmux.sh
	@tools/awscli.sh
	@rm -f bin/test.log
	set -o pipefail; packages=$$($(GO) list ./...) || exit; \
	($(GO) test -p 3 $(TESTFLAGS) $(addprefix ./test/,$(WAITING)) | tee -a bin/test.log) & waiting=$$!; \
	$(GO) test -p 2 $(TESTFLAGS) $(addprefix ./test/,$(LONGEST)) \
		$$(echo "$$packages" | grep -vE '/test/($(subst $() ,|,$(WAITING) $(LONGEST)))$$') | tee -a bin/test.log; others=$$?; \
	wait $$waiting && exit $$others
	$(GO) test -C tools/temporal/cliext ./...
	$(GO) test -C tools/nodeadm ./...

.PHONY: test-times
test-times: ## List how long each suite took in the last make test, longest first.
	@test -f bin/test.log || { echo "make test has not run here: there is no bin/test.log"; exit 1; }
	@awk '$$1 == "ok" || $$1 == "FAIL" && NF == 3 { if ($$3 == "(cached)") cached++; else { printf "%8.1f s  %s\n", $$3, $$2; sum += $$3 } } \
		END { printf "%8.1f s  together, beside %d suites whose results were cached\n", sum, cached }' bin/test.log | sort -rn

.PHONY: families
families: ## Ask Karpenter and the kubelet anew what the nodes of each AMI family get (about ten minutes when nothing is cached).
	# go vet would look at all that Karpenter and Kubernetes are made of.
	$(GO) test -C tools/karpenter -vet=off ./...
	$(GO) test -C tools/kubelab -vet=off ./kubeletflags

# How long each turn of Karpenter or Tenon lasts.
EACH ?= 10m

.PHONY: handover
handover: lab bin/karpenter ## Hand one cluster back and forth between Karpenter and Tenon, two turns each of ten minutes (EACH=10m).
	TENON_HANDOVER=$(EACH) $(GO) test -count=1 -v -timeout 3h ./test/handover

# How many nodes drift away in make drift-many. make test has a hundred.
DRIFTING ?= 300

.PHONY: drift-many
drift-many: lab ## Drift three hundred nodes away within their budgets (about ten minutes; DRIFTING=300).
	TENON_DISRUPTION_NODES=$(DRIFTING) $(GO) test -count=1 -v -timeout 1h -run TestDisruption/last/many-nodes ./test/disruption

# A pattern for the names of the scenes that make oracle plays. Make reads a $ itself: write $$.
SCENES ?= .
.PHONY: oracle
oracle: lab bin/karpenter ## Compare what Karpenter and Tenon ask AWS for the same manifests (about twenty minutes; SCENES=reserved plays one).
	TENON_ORACLE='$(SCENES)' $(GO) test -count=1 -v -timeout 1h ./test/oracle

# How long make page-scripting watches for each way to group.
WINDOW ?= 60s

.PHONY: page-scripting
page-scripting: ## Measure how much the page computes in a browser with 2,000 nodes and 20,000 pods (about two minutes; WINDOW=60s).
	@tools/chromium.sh
	TENON_PAGE_WINDOW=$(WINDOW) $(GO) test -count=1 -v -timeout 30m -run 'TestPageScripting$$' ./test/ui

.PHONY: page-pictures
page-pictures: ## Take the pictures of docs/page.md.
	@tools/chromium.sh
	TENON_PAGE_PICTURES=$(CURDIR)/docs $(GO) test -count=1 -run 'TestPagePictures$$' ./test/ui

.PHONY: live
live: ## Print what a first run on a real AWS account would do and cost, without calling AWS (test/live/README.md says how to run it).
	@$(GO) run ./test/live --plan

HOURS ?=
.PHONY: walk
walk: lab ## Take random walks for five minutes, or HOURS=3. A failing seed is shrunk.
	TENON_WALK=$(if $(HOURS),$(HOURS)h,5m) TENON_WALK_SHRINK=1 TENON_WALK_CLOCKS=1 $(GO) test -count=1 -v -timeout $(if $(HOURS),$$(($(HOURS) + 3))h,2h) -run TestWalk ./test/walk

# The deploy tests include those of the chart and the policies: lint, render, and a dry run on the lab's API server.
.PHONY: check
check: lab tools build ## Check the code, the generated files, the chart and the program without running the tests.
	@echo "== gofmt"; files=$$(git ls-files '*.go' | xargs gofmt -l); test -z "$$files" || { echo "not formatted:"; echo "$$files"; exit 1; }
	@echo "== golangci-lint"; bin/golangci-lint run ./...
	@echo "== workflowcheck"; why=$$(bin/workflowcheck ./workflows 2>&1) || { echo "$$why" | grep -v '^      '; exit 1; }
	@echo "== generated files"; $(MAKE) --no-print-directory check-generated
	@echo "== directions of imports"; $(GO) test $(TESTFLAGS) ./internal/architecture
	@tools/prometheus.sh
	@echo "== chart, policies, alerts and examples"; $(GO) test $(TESTFLAGS) ./deploy/...
	@echo "== chart with Karpenter's values"; $(GO) test -C tools/helm ./...
	@echo "== the program, and the same built elsewhere"; $(GO) test ./test/binary
	@echo "== bill of materials"; rm -f bin/tenon.cdx.json; $(MAKE) --no-print-directory bin/tenon.cdx.json && $(GO) test -C tools/sbom ./...

.PHONY: generate
generate: ## Generate deep copies and custom resource definitions from the Go types, the tables of instance types, and docs/reference.
	$(GO) run -C tools/gen . -root $(CURDIR)
	$(GO) run -C tools/tables . -root $(CURDIR)
	$(GO) run ./internal/reference

.PHONY: check-generated
check-generated: ## Fail if generated files are stale.
	@$(GO) test -C tools/gen ./...
	@$(GO) test -C tools/tables ./...
	$(GO) run -C tools/gen . -root $(CURDIR) -check
	$(GO) run -C tools/tables . -root $(CURDIR) -check
	$(GO) run ./internal/reference -check

.PHONY: converted
converted: SHELL := bash
converted: ## Compare tenon convert with Karpenter's own code once more, on the golden files' manifests and on Karpenter's published ones.
	$(GO) run -C tools/convert-goldens . -root $(CURDIR) -check
	dir=$$(mktemp -d) && trap "rm -rf $$dir" EXIT && $(GO) run -C tools/convert-goldens . -root $(CURDIR) -published "$$dir" && \
		TENON_PUBLISHED_MANIFESTS="$$dir" $(GO) test -count=1 -run Converted ./api/admission

.PHONY: house
house: ## Print the figures of every package: sizes, widest types, arrows against the reading order, undocumented names.
	@$(GO) run ./internal/architecture/house

.PHONY: replay
replay: ## Replay the recorded histories of every workflow with the current code.
	$(GO) test -count=1 -run Replay ./workflows/...

.PHONY: overshoot
overshoot: lab ## Count nodes while everything is slow, for six kinds of 100 pods that fit in few places, with 700 other pods each (about 20 minutes).
	TENON_OVERSHOOT_PODS=100 $(GO) test -count=1 -timeout 60m -v -run 'Overshoot|NoMoreNodes' ./cluster ./test/overshoot

# How many random worlds make fuzz generates for each property.
CHECKS ?= 500

.PHONY: fuzz
fuzz: ## Test the planner's properties on many more random worlds than make test, new ones each time (about half an hour; CHECKS=500).
	$(GO) test ./plan -count=1 -timeout 4h -rapid.seed=0 -rapid.checks=$(CHECKS)

.PHONY: bench
bench: bench-planner bench-disruption bench-lab ## Run all comparisons with Karpenter (about an hour), and write bench/out.
	$(GO) test -C bench -count=1 -timeout 30m ./...

.PHONY: bench-planner
bench-planner: ## Compare the planner with Karpenter's (about 15 minutes), write bench/out/planner.json, and fail if a figure is missed.
	$(GO) run -C bench .

.PHONY: bench-tables
bench-tables: ## Print the tables of plans in docs/figures.md from bench/out/planner.json, which make bench-planner writes.
	@$(GO) run -C bench . -markdown

.PHONY: ablate
ablate: ## Print the price that each search strategy of the planner saves and the time it costs (about 20 minutes).
	$(GO) run -C bench . -ablate

.PHONY: bench-disruption
bench-disruption: ## Compare disruption evaluations of large clusters and simulated days (about 20 minutes), and write bench/out/disruption.json.
	$(GO) run -C bench ./disruption -only '^(evaluation|day|spot-day)'

.PHONY: bench-lab
bench-lab: lab ## Compare Karpenter and Tenon on the same work in a laboratory (about half an hour), and write bench/out/disruption.json.
	$(GO) run -C bench ./disruption -only '^end-to-end'

# For make bench-burst: pod counts, boot time of machines, requests per second of the kube-scheduler, and what keeps large pods apart.
LARGE ?= 400
SMALL ?= 3600
BOOT ?= 10s
SCHEDULER_QPS ?= 5
APART ?= anti-affinity

.PHONY: bench-burst
bench-burst: lab ## Count the nodes that Tenon and Karpenter buy while everything is slow (about 20 minutes each; LARGE=40 SMALL=360 takes ten for both).
	$(GO) run -C bench ./burst -apart $(APART) -large $(LARGE) -small $(SMALL) -boot $(BOOT) -scheduler-qps $(SCHEDULER_QPS) -out out/burst.json

# The sizes of make bench-scale: of the cluster on the laboratory, of the one fed without an API server, and of the one with
# blocked drains. REPLICAS=1 or 2 runs the laboratory only with one worker or only with two. Pods are created STEP at a time, the next
# when the previous ones are Ready. BUDGET is the share of the nodes that may drift at once.
NODES ?= 2000
PODS ?= 20000
STEP ?= 2500
REPLICAS ?= 0
BUDGET ?= 25
FED_NODES ?= 10000
FED_PODS ?= 100000
DRAINS ?= 300
SAMPLES ?= 40

.PHONY: bench-scale
bench-scale: lab ## Measure workers with 2,000 nodes on the laboratory, with 10,000 fed nodes, and beside 300 blocked drains, and write bench/out/scale.json (about two hours; NODES=200 PODS=2000 takes twenty minutes).
	TENON_SCALE_OUT=$(CURDIR)/bench/out/scale.json TENON_SCALE_STRICT=1 TENON_SCALE_NODES=$(NODES) TENON_SCALE_PODS=$(PODS) TENON_SCALE_STEP=$(STEP) TENON_SCALE_REPLICAS=$(REPLICAS) \
		TENON_SCALE_BUDGET=$(BUDGET) TENON_SCALE_BOOT=10 TENON_SCALE_FED_NODES=$(FED_NODES) TENON_SCALE_FED_PODS=$(FED_PODS) TENON_SCALE_DRAINS=$(DRAINS) TENON_SCALE_SAMPLES=$(SAMPLES) \
		$(GO) test -count=1 -v -timeout 6h ./test/scale

.PHONY: bench-go
bench-go: ## Run the Go benchmarks.
	$(GO) test -run '^$$' -bench . -benchmem ./...
