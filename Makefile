# A front for CMake: everything is built into build/, the tools are build/bin/mlc-*.
#
#   make              the tools                       make demo         a trained network through the whole pipe
#   make test         quick tests (under 2 minutes)   make check        everything that CI runs
#   make update       bless the outputs of the tests  make bench        speed of reading, printing, and of tools by size
#   make install PREFIX=/usr/local                    make clean
#   make fuzz-onnx    random graphs through all routes against the onnx package (GRAPHS=300 SEED=1)
#   make fuzz         random kernels x random schedules, each step compared (KERNELS=1000 SEED=1)
#   make sanitize     all programs of the tests under ASan and UBSan (hours)
#   make mutants      every mechanical mutant of the tests' kernels: how many do mlc-check and mlc-equiv find?
#   make models       real models from PyPI packages by all routes against ONNX Runtime
#   make deps         what is missing, with apt and pip (the other targets call it)

BUILD  ?= build
PREFIX ?= /usr/local
JOBS   ?= $(shell nproc)
export BUILD

build   = cmake --build $(BUILD) --parallel $(JOBS) --target

all: configure
	@$(build) all

deps:
	@tools/deps test

build-deps:
	@tools/deps build

configure: build-deps
	@[ -e $(BUILD)/cmake_install.cmake ] || cmake -S . -B $(BUILD)

test: deps configure
	@$(build) all unit_tests
	@test/check --quick

check: deps configure
	@$(build) all unit_tests mutants
	@test/check

demo: all
	@test/demo/run.sh

fuzz-onnx: deps all
	@test/fuzz/onnx $(or $(GRAPHS),300) $(SEED)

fuzz: deps all
	@$(BUILD)/venv/bin/python3 test/fuzz/schedules.py --count $(or $(KERNELS),1000) --seed $(or $(SEED),1) --compile 10

mutants: configure
	@$(build) mutants
	@$(BUILD)/bin/mutants $(if $(EVERY),--every $(EVERY)) test/case/*/*.mlc

models: deps all
	@test/onnx/models

sanitize: deps all
	@test/check more-asan all-asan

update: deps all
	@test/run --update
	@test/examples --update

bench: deps configure
	@$(build) all text_bench
	@$(BUILD)/venv/bin/python3 test/bench/scale
	@test/bench/passes
	@$(BUILD)/bin/text_bench $(filter-out test/case/fmt/bad-%,$(wildcard test/case/fmt/*.mlc))

install: all
	@cmake --install $(BUILD) --prefix $(PREFIX)

clean:
	rm -rf $(BUILD)

.NOTPARALLEL:
.PHONY: all deps mutants build-deps configure test check demo update bench fuzz fuzz-onnx models sanitize install clean
