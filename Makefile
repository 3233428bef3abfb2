# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The front door. Every target prints what it does and ends with a non-zero
# status on any surprise. Kernels are kept in ~/.cache/ntcopy (NTCOPY_CACHE).

CARGO ?= cargo
OUT ?= out/demo
NTCOPY = $(or $(CARGO_TARGET_DIR),target)/release/ntcopy

# Parts of test-all, and what is too long for it.
TESTS = test-612 test-c test-library test-miri test-programs test-page test-mutants test-module \
	test-series test-kernels \
	test-module-suite test-module-kasan test-upstream test-suites test-power test-dist

.PHONY: $(TESTS) all demo test test-all lint build program manual library daemons install bench report record clean help \
	dist release soak soak-daemons hostile fuzz mutations memory free-when-unused docs same

help: ## what there is to make
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1@\2/p' $(MAKEFILE_LIST) | \
		awk -F@ '{ printf "%-22s %s\n", $$1, $$2 }'

demo: ## build a kernel with MSG_NTCOPY, measure, say what to set, write report.html
	@scripts/setup.sh build
	@CARGO="$(CARGO)" MAKE="$(MAKE)" scripts/demo.sh $(NTCOPY) $(OUT)

build: ## what the demo needs: the program, and the library of `ntcopy run`, in release mode
	@scripts/setup.sh build
	@$(CARGO) build --release --locked -p ntcopy-cli -p ntcopy-preload --no-default-features
	@crates/ntcopy-preload/link.sh $(dir $(NTCOPY))libntcopy_preload.a $(dir $(NTCOPY))

program: ## the same with surveys and their databases
	@scripts/setup.sh build
	@$(CARGO) build --release --locked -p ntcopy-cli -p ntcopy-preload
	@crates/ntcopy-preload/link.sh $(dir $(NTCOPY))libntcopy_preload.a $(dir $(NTCOPY))

manual: ## a manual page of every command, and completions for bash, zsh and fish
	@rm -rf $(dir $(NTCOPY))manual
	@$(CARGO) run -q --release --locked -p ntcopy-cli --example manual -- $(dir $(NTCOPY))manual

all: program manual library daemons ## all of it, in release mode

test: ## every test that one user-mode kernel is enough for
	@scripts/setup.sh build test
	@$(CARGO) xtask test

test-all: ## the rest, but for what takes hours, which it names; one alone: make test-612
	@scripts/setup.sh build
	@$(CARGO) xtask test-all

# What each is: cargo xtask test-all list. ARGS goes to the scripts: make test-kernels ARGS=x86
$(TESTS):
	@scripts/setup.sh build
	@$(CARGO) xtask test-all $@ -- $(ARGS)

library: ## libntcopy for C and C++, in release mode
	@scripts/setup.sh build
	@$(CARGO) build --release --locked -p ntcopy-capi

daemons: ## storaged and proxyd, in release mode
	@scripts/setup.sh build
	@$(CARGO) build --release --locked -p storaged -p proxyd

install: all ## all of it: make install PREFIX=/usr/local DESTDIR=; docs/guide/install.md
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" scripts/install.sh

dist: ## out/dist/: Debian packages and a source tarball that builds offline; packaging/README.md
	@scripts/setup.sh build dist
	@scripts/dist.sh

release: ## out/release/VERSION: packages for Debian 12 and 13, the tarball, NOTES.md; of what is committed
	@scripts/setup.sh build dist
	@scripts/release.sh

soak: soak-daemons ## random send programs, compared between settings, races on the module, and soak-daemons: make soak MINUTES=10 SEED=1
	@scripts/setup.sh build kernels
	@$(CARGO) xtask soak $(or $(MINUTES),10) $(SEED)

soak-daemons: ## storaged behind proxyd: backends killed, clients that vanish, drip, send bad bytes; no leak, no lost object
	@scripts/setup.sh build
	@SOAK_SECONDS=$$(($(or $(MINUTES),10) * 60)) $(if $(SEED),SOAK_SEED=$(SEED)) $(CARGO) test -q --locked \
		-p proxyd --test soak -- --ignored --nocapture --exact both_daemons_stand_ten_minutes_of_it

hostile: ## hostile requests, asked of proxyd and of the distribution's HAProxy and nginx
	@scripts/setup.sh build
	@scripts/hostile.sh

holes: ## 100,000 gathered sends from memory in which pages are missing, plain against hinted: make holes CASES=1000
	@scripts/setup.sh build
	@$(CARGO) xtask holes $(CASES)

fuzz: ## random bytes through what proxyd reads, for SECONDS=120
	@scripts/setup.sh build
	@scripts/fuzz.sh $(or $(SECONDS),120)

mutations: ## all deliberate mistakes in the kernel change: would the suite notice?
	@scripts/setup.sh build kernels
	@$(CARGO) xtask mutations

memory: ## the library under AddressSanitizer, valgrind and a fuzzer, and without std: make memory SECONDS=30
	@crates/ntcopy/tests/memory.sh $(or $(SECONDS),30)

series: ## the kernel patches, whole, as git am takes them: make series DIR=out/series
	@scripts/series.sh $(or $(DIR),out/series)
	@echo "series: in $(or $(DIR),out/series); git am takes unix, net and mm, in this order"

free-when-unused: ## the send path before and after the series, instruction by instruction
	@scripts/setup.sh build kernels
	@scripts/free-when-unused.sh

same: ## what every record, and every driver on lanes that fail on cue, comes to, byte for byte as at an earlier commit: make same BASE=main
	@scripts/same.sh $(BASE)

docs: ## docs/results, README's picture and every figure of a document, from bench/record/INDEX.toml
	@scripts/setup.sh build
	@$(CARGO) xtask docs

lint: ## formatting, clippy, documentation, shell, man pages, links, words, header
	@scripts/setup.sh build lint
	@scripts/lint.sh

bench: build ## make bench NAME=unix ARGS="--kernel um --sockets 1,64"
	@$(NTCOPY) bench $(or $(NAME),unix) $(ARGS)

report: build ## make report RECORD=DIR: report.html from a record
	@$(NTCOPY) report $(RECORD) --out report.html

record: program daemons ## a full record of this machine into bench/record/: make record PARTS="net pingpong" KERNEL=host; 90 minutes
	@KERNEL="$(KERNEL)" scripts/record.sh $(NTCOPY) $(PARTS)

clean: ## what was built here; the kernels stay: ntcopy kernel clean --all
	@$(CARGO) clean
	@rm -rf out report.html
