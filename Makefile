# SPDX-License-Identifier: Apache-2.0
# Short names for what people do often. CMake does the work; see CMakePresets.json.
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
BUILD := build/release

.PHONY: all build-tests test quick test-long test-debian13 python wheel docs asan tsan tidy install bench fuzz reference format format-check check clean help

all:  ## build the program and the library
	@scripts/build.sh --native --packages build ch

build-tests:  ## build everything that is tested
	@scripts/install_packages.sh build test
	@scripts/python_tools.sh
	@scripts/build.sh --packages "build test" -DMASE_TESTS=ON -DMASE_INSTRUCTION_SETS=all all

test: build-tests  ## build and run all tests
	@ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS)

quick:  ## build and run the tests of the folders that changed (SINCE=main)
	@scripts/quick.sh $(or $(SINCE),main)

test-long: test  ## the tests and those that take minutes (accuracies, a million jets)
	@ctest --test-dir $(BUILD) --output-on-failure -C long -L long

test-debian13:  ## both commands of the README on a bare Debian 13, in a root of its own (FOLDER=...; as root)
	@scripts/test_debian13.sh $(or $(FOLDER),build/debian13)

python:  ## build the Python package and install it into build/python, an environment of its own
	@scripts/install_packages.sh python
	@scripts/python_tools.sh --needed
	@scripts/build.sh --packages build mase
	@scripts/python_wheel.sh $(BUILD)

wheel:  ## the package to install elsewhere: mase, chop and the program ch in build/wheels
	@scripts/install_packages.sh python
	@scripts/python_tools.sh --needed
	@scripts/build.sh --packages build -DMASE_INSTRUCTION_SETS=all ch
	@scripts/wheel.sh $(BUILD)

docs:  ## the documentation's site, searchable offline, in build/docs
	@scripts/install_packages.sh docs
	@scripts/docs.sh
	@echo "open build/docs/index.html"

asan:  ## the tests under the address and undefined-behaviour sanitizers (clang)
	@scripts/python_tools.sh
	@scripts/build.sh --preset asan --packages "build test check" all
	@ctest --test-dir build/asan --output-on-failure -j $(JOBS)

tsan:  ## the tests under the thread sanitizer (clang)
	@scripts/build.sh --preset tsan --packages "build test check" all
	@scripts/tsan_environment.sh ctest --test-dir build/tsan --output-on-failure -j $(JOBS)

install:  ## install under PREFIX (default /usr/local)
	@scripts/build.sh --packages build -DMASE_INSTRUCTION_SETS=all ch
	@cmake --install $(BUILD) --prefix "$(DESTDIR)$(PREFIX)" >/dev/null
	@echo "installed under $(DESTDIR)$(PREFIX)"

bench:  ## build and run the benchmarks (bench/README.md), against PyTorch too if it is installed
	@scripts/build.sh --packages "build test bench" -DMASE_BENCH=ON all
	@$(BUILD)/bin/bench_dense
	@bench/compare_pytorch || [ $$? = 77 ]

fuzz:  ## build the fuzz targets (clang) and run each for a minute (SECONDS=600 TARGETS="mz csv")
	@scripts/build.sh --preset fuzz --packages "build test check" fuzz_targets
	@scripts/fuzz.sh $(or $(SECONDS),60) $(TARGETS)

reference: all  ## rewrite docs/reference/ from the program's registries
	@rm -rf docs/reference && $(BUILD)/bin/ch reference --output docs/reference

format:  ## format all sources
	@git ls-files '*.h' '*.cpp' | xargs clang-format-14 -i

format-check:
	@git ls-files '*.h' '*.cpp' | xargs clang-format-14 --dry-run --Werror

tidy:  ## clang-tidy over the library and the program (.clang-tidy), a folder at a time
	@scripts/build.sh --preset asan --packages "build test check" ch
	@sed -n 's/^ *"file": "\(.*build/asan/units.*\|.*kernels.*\)",*$$/\1/p' build/asan/compile_commands.json | sort -u | \
	  xargs -n 1 -P $(JOBS) clang-tidy-14 -p build/asan --quiet 2>/dev/null

check: format-check  ## format, include directions, generated reference
	@python3 scripts/check_includes.py
	@rm -rf build/reference && $(BUILD)/bin/ch reference --output build/reference
	@diff -r docs/reference build/reference >/dev/null || \
	  { echo "docs/reference/ is not current: make reference" >&2; exit 1; }

clean:  ## remove everything built
	@rm -rf build

help:  ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*##/\1:/p' Makefile | column -t -s:
