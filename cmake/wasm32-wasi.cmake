# Debian's clang, lld and wasi-libc as a toolchain for WebAssembly.
set(CMAKE_SYSTEM_NAME WASI)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
find_program(LILAC_WASM_CLANG NAMES clang clang-14 clang-16 clang-19)
set(CMAKE_C_COMPILER ${LILAC_WASM_CLANG})
set(CMAKE_C_COMPILER_TARGET wasm32-wasi)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
# explorer/wasm has the headers that wasi-libc lacks.
set(CMAKE_C_FLAGS_INIT "-isystem ${CMAKE_CURRENT_LIST_DIR}/../explorer/wasm -ffunction-sections -fdata-sections")
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG" CACHE STRING "flags of release builds")
