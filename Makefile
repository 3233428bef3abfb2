# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The front door. Every target prints what it does and ends with a non-zero
# status on any surprise. Kernels are kept in ~/.cache/ntcopy (NTCOPY_CACHE).

CARGO ?= cargo
OUT ?= out/demo
NTCOPY = $(or $(CARGO_TARGET_DIR),target)/release/ntcopy

.PHONY: demo test lint build bench report record clean help

help: ## what there is to make
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1@\2/p' $(MAKEFILE_LIST) | \
		awk -F@ '{ printf "%-16s %s\n", $$1, $$2 }'

demo: build ## build a kernel with MSG_NTCOPY, measure, say who won, write report.html
	@scripts/demo.sh $(NTCOPY) $(OUT)

build: ## the program, in release mode
	@scripts/setup.sh build
	@$(CARGO) build --release --locked -p ntcopy-cli

test: ## unit, property and end-to-end tests, the latter in the booted kernel
	@scripts/setup.sh build
	@$(CARGO) run --locked -q -p ntcopy-cli -- kernel build
	@scripts/check-series.sh
	@$(CARGO) test --workspace --locked --no-fail-fast

lint: ## formatting, clippy, shell, header, the kernel patches
	@scripts/setup.sh build lint
	@scripts/lint.sh

bench: build ## make bench NAME=unix ARGS="--kernel um --sockets 1,64"
	@$(NTCOPY) bench $(or $(NAME),unix) $(ARGS)

report: build ## make report RECORD=DIR: report.html from a record
	@$(NTCOPY) report $(RECORD) --out report.html

record: build ## a full record of this machine into bench/record/, and README's table from it
	@scripts/record.sh $(NTCOPY)

clean: ## what was built here; the kernels stay: ntcopy kernel clean --all
	@$(CARGO) clean
	@rm -rf out report.html
