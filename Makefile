# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The front door. Every target prints what it does and ends with a non-zero
# status on any surprise. Kernels are kept in ~/.cache/ntcopy (NTCOPY_CACHE).

CARGO ?= cargo
OUT ?= out/demo
NTCOPY = $(or $(CARGO_TARGET_DIR),target)/release/ntcopy

.PHONY: all demo test lint build program manual library daemons install bench report record clean help \
	dist test-dist release apt-repo test-release image test-image test-units test-kernels test-module upstream-tests programs program-suites soak soak-daemons power-loss hostile fuzz mutations memory families free-when-unused check-copy \
	test-watch guide docs check-page check-sockperf copy-share same

help: ## what there is to make
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1@\2/p' $(MAKEFILE_LIST) | \
		awk -F@ '{ printf "%-22s %s\n", $$1, $$2 }'

demo: ## build a kernel with MSG_NTCOPY, measure, say what to set, write report.html
	@scripts/setup.sh build
	@CARGO="$(CARGO)" MAKE="$(MAKE)" scripts/demo.sh $(NTCOPY) $(OUT)

build: ## what the demo needs: the program, and the library of `ntcopy run`, in release mode
	@scripts/setup.sh build
	@$(CARGO) build --release --locked -p ntcopy-cli -p ntcopy-preload --no-default-features
	@crates/ntcopy-preload/link.sh $(dir $(NTCOPY))libntcopy_preload.a $(dir $(NTCOPY))

program: ## the same with surveys and their databases, and TLS
	@scripts/setup.sh build
	@$(CARGO) build --release --locked -p ntcopy-cli -p ntcopy-preload
	@crates/ntcopy-preload/link.sh $(dir $(NTCOPY))libntcopy_preload.a $(dir $(NTCOPY))

manual: ## a manual page of every command, and completions for bash, zsh and fish
	@rm -rf $(dir $(NTCOPY))manual
	@$(CARGO) run -q --release --locked -p ntcopy-cli --example manual -- $(dir $(NTCOPY))manual

all: program manual library daemons ## all of it, in release mode

test: ## unit, property and end-to-end tests, the latter in booted kernels
	@scripts/setup.sh build test kernels
	@$(CARGO) test --workspace --locked --no-run
	@$(or $(CARGO_TARGET_DIR),target)/debug/ntcopy kernel build
	@CARGO=$(CARGO) scripts/test.sh

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

test-dist: ## built twice, the same; in a Debian 12 of their own: used, upgraded, purged without a trace; root
	@scripts/setup.sh build dist
	@scripts/test-dist.sh

release: ## out/release/VERSION: packages for Debian 12 and 13, the tarball, NOTES.md; of what is committed
	@scripts/setup.sh build dist
	@scripts/release.sh

apt-repo: ## a flat apt repository, signed: make apt-repo DIR=/srv/apt KEY=FINGERPRINT PACKAGES=out/dist
	@scripts/setup.sh dist
	@scripts/apt-repo.sh "$(DIR)" "$(KEY)" $(PACKAGES)

test-release: ## in a bare Debian 12 and 13: apt install from the repository, upgrade, purge; what must be refused; root: make test-release PACKAGES=out/dist
	@scripts/setup.sh dist
	@scripts/test-release.sh $(PACKAGES)

image: ## out/image: an OCI image of the packages, with a kernel to measure in; no daemon, no root: make image PACKAGES=out/dist
	@scripts/setup.sh build image
	@scripts/image.sh out/image $(PACKAGES)

test-image: ## that image, run by a user without rights: probe, a measurement, the daemons
	@scripts/setup.sh image
	@scripts/test-image.sh out/image

test-units: ## nginx and HAProxy as Debian has them, under the drop-ins of ntcopy advise --unit, by a booted systemd; root: make test-units PACKAGES=out/dist
	@scripts/setup.sh dist
	@scripts/test-units.sh $(PACKAGES)

test-kernels: build ## the suite in x86 kernels with KASAN, lockdep, KCSAN, failing allocations: make test-kernels KERNELS=x86; packages made and booted; an hour
	@scripts/setup.sh kernels
	@scripts/check-kernels.sh $(NTCOPY) $(KERNELS)
	@$(CARGO) test --locked -p ntcopy-cli --test kernel_qemu --test kernel_package -- --ignored --test-threads 1

upstream-tests: build ## Linux's own network tests, hints ignored and every send hinted: make upstream-tests KERNELS=x86+plain; tables in out/upstream-tests
	@scripts/setup.sh upstream
	@scripts/upstream-tests.sh $(NTCOPY) $(KERNELS)

programs: build ## redis, iperf3 and nginx as they are, without `ntcopy run` and under it, in a booted kernel
	@scripts/setup.sh programs
	@scripts/check-programs.sh $(NTCOPY) $(KERNELS)

program-suites: build ## the test suites of memcached and Redis, without `ntcopy run --mode nt` and under it; make program-suites ARGS="--quick --only redis"; hours without
	@scripts/setup.sh suites
	@scripts/program-suites.sh $(NTCOPY) $(ARGS)

soak: soak-daemons build ## random send programs, compared between settings, races on the module, and soak-daemons: make soak MINUTES=10 SEED=1
	@scripts/setup.sh kernels
	@scripts/soak.sh $(NTCOPY) --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED))
	@scripts/soak-module.sh $(NTCOPY) --minutes $(or $(MINUTES),5) $(if $(SEED),--seed $(SEED))

soak-daemons: ## storaged behind proxyd: backends killed, clients that vanish, drip, send bad bytes; no leak, no lost object
	@scripts/setup.sh build
	@scripts/soak-daemons.sh --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED))

power-loss: program daemons ## ext4 and xfs at every point where power may go: what storaged, advise --apply and survey acknowledged is there; make power-loss ARGS="--fs xfs --seed 1"
	@scripts/setup.sh kernels power
	@scripts/power-loss.sh $(NTCOPY) --self-test
	@scripts/power-loss.sh $(NTCOPY) $(ARGS)

hostile: ## hostile requests, asked of proxyd and of the distribution's HAProxy and nginx
	@scripts/setup.sh build
	@scripts/hostile.sh

holes: build ## 100,000 gathered sends from memory in which pages are missing, plain against hinted: make holes CASES=1000
	@scripts/setup.sh kernels
	@scripts/holes.sh $(NTCOPY) $(CASES)

fuzz: ## the daemons' fuzz targets, each for SECONDS=120
	@scripts/setup.sh build
	@scripts/fuzz.sh $(or $(SECONDS),120)

test-module: build ## ntcopy.ko: sparse, checkpatch, the suite through it on stock kernels and with KASAN: make test-module KERNELS="stock x86+module"; an hour
	@scripts/setup.sh kernels lint
	@scripts/check-module.sh $(NTCOPY) $(KERNELS)

test-watch: build ## the counters in the distribution's Prometheus: its alerts, every query of the dashboard; a minute and a half
	@scripts/setup.sh watch
	@scripts/check-watch.sh $(NTCOPY)

mutations: build ## deliberate mistakes in the kernel change: would the suite notice?
	@scripts/mutations.sh $(NTCOPY)

memory: ## the library under AddressSanitizer, valgrind and a fuzzer, and without std: make memory SECONDS=30
	@crates/ntcopy/tests/memory.sh $(or $(SECONDS),30)

families: build ## docs/results/families.md: which sockets honour the hint, as the kernel counted it: make families KERNELS="um um:6.12"
	@scripts/families.sh $(NTCOPY) $(KERNELS)

copy-share: build ## how much of a plain send is the copy: perf's samples of a user-mode kernel; make copy-share ARGS="--family tcp"
	@scripts/setup.sh build perf
	@scripts/copy-share.py $(NTCOPY) $(ARGS)

check-copy: build ## that hinted copies bypass the cache and are fenced: by the machine code of the built kernel, and by the cache
	@scripts/setup.sh kernels
	@scripts/check-fences.py "$$($(NTCOPY) kernel build)"
	@scripts/check-cache.py $(NTCOPY)

series: ## the kernel patches, whole, as git am takes them: make series DIR=out/series
	@scripts/series.sh $(or $(DIR),out/series)
	@echo "series: in $(or $(DIR),out/series); git am takes x86, net and mm, in this order"

free-when-unused: ## the send path before and after the series, instruction by instruction
	@scripts/setup.sh build kernels
	@scripts/free-when-unused.sh

guide: ## docs/ as pages for a browser, out/guide/book; without mdbook, compiles one into the cache, once
	@scripts/setup.sh guide
	@scripts/guide.sh

same: ## what every record, and every driver on lanes that fail on cue, comes to, byte for byte as at an earlier commit: make same BASE=main
	@scripts/same.sh $(BASE)

docs: ## docs/results, README's picture and every figure of a document, from bench/record/INDEX.toml
	@scripts/setup.sh build
	@$(CARGO) run -q --locked -p ntcopy-report --example documents

lint: ## formatting, clippy, shell, links, header, man page, the kernel patches of both series
	@scripts/setup.sh build lint
	@scripts/lint.sh

check-page: program ## report, comparison and survey, or FILE=page.html, under axe-core in Chromium, and by keyboard; axe-core comes by npm
	@scripts/setup.sh build page
	@NTCOPY_NEED_BROWSER=1 $(CARGO) test --locked -p ntcopy-report --test browser
	@scripts/check-page.sh $(NTCOPY) $(FILE)

check-sockperf: build ## ntcopy bench pingpong beside the distribution's sockperf: medians within 10 %; docs/design/methodology.md
	@scripts/setup.sh build sockperf
	@scripts/check-sockperf.sh $(NTCOPY)

bench: build ## make bench NAME=unix ARGS="--kernel um --sockets 1,64"
	@$(NTCOPY) bench $(or $(NAME),unix) $(ARGS)

report: build ## make report RECORD=DIR: report.html from a record
	@$(NTCOPY) report $(RECORD) --out report.html

record: program daemons ## a full record of this machine into bench/record/: make record PARTS="net pingpong" KERNEL=host; 90 minutes
	@KERNEL="$(KERNEL)" scripts/record.sh $(NTCOPY) $(PARTS)

clean: ## what was built here; the kernels stay: ntcopy kernel clean --all
	@$(CARGO) clean
	@rm -rf out report.html
