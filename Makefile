# acescope: build, try, test and measure. Needs Go and make, nothing else.

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X acescope/cmd/acescope/internal/cli.version=$(VERSION)
BIN     := bin/acescope
# Linking without debug information takes a quarter less. Vet is part of lint.
TEST    := go test -vet=off -ldflags='-s -w' -timeout 30m

# The packages whose tests start goroutines and that do not link the server. Skipped are tests that take long with the
# detector and start none: those that draw every size, and the seeds of the fuzzers.
RACE := ./engine/activities ./engine/agents/observe/... ./engine/agents/session/host ./engine/internal/process \
	./engine/learning/dataset ./engine/learning/model/llm ./engine/learning/playbook ./engine/store/... \
	./engine/tasks/executor ./engine/tasks/mcp ./engine/tasks/runner/host ./engine/temporal/operation \
	./engine/temporal/webui \
	./sources/... ./tui ./views
RACELESS := observe/hooks|sources/(experiments|runners|sessions|system|triage)

.PHONY: help build demo test race storm fuzz bench lint golden docs pictures questions dev clean

help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## Build bin/acescope and bin/acescope-hook (the first time takes minutes: it holds a Temporal server)
	@bash docs/dev/build.sh '$(LDFLAGS)'

demo: build ## Open the console on an experiment that learns, on an embedded server
	$(BIN) demo

test: ## Run all tests: units, goldens, replays, scripts of every command, the end-to-end run
	$(TEST) ./...
	$(MAKE) race

race: ## Run the tests of the packages where goroutines meet, with the race detector (needs a C compiler)
	@if [ "$$(go env CGO_ENABLED)" != 1 ] || ! command -v "$$(go env CC)" >/dev/null; then echo "race: skipped, there is no C compiler"; exit 0; fi; \
	set -x; $(TEST) -race -short -skip 'Every[A-Za-z]*Size|^Fuzz|^TestNearDuplicatesFindsAll$$' \
		$$(go list $(RACE) | grep -Ev '($(RACELESS))$$')

storm: ## Kill processes of an experiment at random moments, KILLS (60) times, seed SEED (the time), during gc; compare its result
	@export ACESCOPE_STORM_KILLS=$(or $(KILLS),60) ACESCOPE_STORM_SEED=$(or $(SEED),$$(date +%s)); \
	echo "storm: KILLS=$$ACESCOPE_STORM_KILLS SEED=$$ACESCOPE_STORM_SEED"; \
	$(TEST) -count=1 -v ./cmd/acescope -run '^TestStorm$$'

fuzz: ## Fuzz every parser of outside input, FUZZTIME (30s) each
	@bash docs/dev/fuzz.sh $(or $(FUZZTIME),30s)

bench: build ## Measure against the temporal command and a bare worker; prints ratios
	@bash docs/dev/bench.sh

lint: ## Check format, vet, words and the determinism of workflow code
	@test -z "$$(gofmt -l cmd engine sources theme tui views)" || { gofmt -l cmd engine sources theme tui views; exit 1; }
	go vet -composites=false ./...
	go vet -composites=false -tags bench ./cmd/acescope-bench
	go run ./docs/dev/words cmd engine sources theme tui views
	go tool workflowcheck -config engine/workflows/workflowcheck.yaml ./engine/workflows
	go tool workflowcheck -config engine/temporal/operation/workflowcheck.yaml ./engine/temporal/operation/...
	go tool workflowcheck -config engine/flow/workflowcheck.yaml ./engine/flow
	@! go tool workflowcheck -config engine/workflows/workflowcheck.yaml ./engine/workflows/testdata/wild 2>/dev/null || { echo "workflowcheck does not find what engine/workflows/testdata/wild does"; exit 1; }

golden: ## Update the golden screens in testdata; read the difference before you commit
	go test ./tui ./views -update

docs: ## Generate docs/reference: json.md, keys.md and the table of config.md
	go test ./cmd/acescope/internal/cli ./cmd/acescope/internal/admin -run TestReference -update

pictures: build ## Draw the console's screens on the demo's data into docs/pictures, as SVG, dark and light
	go run ./docs/dev/pictures $(BIN) docs/pictures

questions: build ## Measure how long the console takes to answer the questions of docs/guides/watch.md, at three sizes
	go run ./docs/dev/pictures $(BIN)

dev: ## Build without stripping and open the console on the development data directory
	@mkdir -p bin
	go build -o $(BIN) ./cmd/acescope
	$(BIN) --data-dir .cache/dev

clean: ## Remove what was built; data directories stay
	rm -rf bin
