# A short front for CMake. `make help` lists the targets.

BUILD    ?= build/release
JOBS     ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX   ?= /usr/local

.PHONY: all demo explorer check check-asan bench fuzz install format clean help core

all: core                ## build the library and the command
core: $(BUILD)/CMakeCache.txt
	@cmake --build $(BUILD) -j $(JOBS) --target lilac lilac_static lilac_shared

$(BUILD)/CMakeCache.txt:
	@scripts/need CORE
	@cmake -S . -B $(BUILD) -DCMAKE_BUILD_TYPE=Release -DLILAC_TESTS=OFF >/dev/null

demo: core               ## compile a softmax of Triton's and run it on the simulator
	@sh examples/softmax/demo.sh $(BUILD)/tools/lilac/lilac

explorer:                ## the explorer's page, build/wasm/explorer/explorer.html (needs clang, lld and wasi-libc)
	@scripts/need EXPLORER
	@cmake -S . -B build/wasm --toolchain cmake/wasm32-wasi.cmake -DCMAKE_BUILD_TYPE=Release >/dev/null
	@cmake --build build/wasm -j $(JOBS)

check:                   ## build and run all tests
	@scripts/need TESTS
	@cmake -S . -B build/check -DCMAKE_BUILD_TYPE=Release -DLILAC_TESTS=ON >/dev/null
	@cmake --build build/check -j $(JOBS)
	@cd build/check && ctest --output-on-failure -j $(JOBS)

check-asan:              ## the same under the address, undefined-behaviour and leak sanitizers
	@scripts/need TESTS
	@cmake --preset asan >/dev/null
	@cmake --build build/asan -j $(JOBS)
	@cd build/asan && ctest --output-on-failure -j $(JOBS)

bench: core              ## compile time beside ptxas, layout algebra, planner (GPU benchmarks: bench/README.md)
	@cmake --build $(BUILD) -j $(JOBS) --target compile_time bench_layout bench_plan explain_time
	@$(BUILD)/bench/compile_time
	@$(BUILD)/bench/layout
	@$(BUILD)/bench/plan
	@$(BUILD)/bench/explain_time tests/data/ttir tests/data/corpus tests/data/ttgir tests/data/control

FUZZ_SECONDS ?= 600
fuzz:                    ## run each fuzz target for FUZZ_SECONDS (needs clang)
	@cmake --preset fuzz >/dev/null
	@cmake --build build/fuzz -j $(JOBS)
	@for target in build/fuzz/fuzz/fuzz_*; do [ -x $$target ] && [ -f $$target ] || continue; \
	  name=$$(basename $$target | sed 's/^fuzz_//'); mkdir -p build/fuzz/found/$$name; \
	  echo "fuzzing $$name for $(FUZZ_SECONDS) s"; \
	  $$target -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 -verbosity=0 \
	    build/fuzz/found/$$name fuzz/corpus/$$name || exit 1; done

install: core            ## install under PREFIX
	@cmake --install $(BUILD) --prefix $(PREFIX)

format:                  ## clang-format over all C files
	@git ls-files '*.c' '*.h' | xargs clang-format -i

clean:                   ## remove build/
	@rm -rf build

help:                    ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 22
