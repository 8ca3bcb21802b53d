/* WebAssembly rounds to nearest even and has no other mode. The page simulates conversion plans only,
 * which have no arithmetic; an instruction with another rounding traps. */
#ifndef LILAC_WASM_FENV_H
#define LILAC_WASM_FENV_H

enum { FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD };

static inline int fegetround(void) {
    return FE_TONEAREST;
}
static inline int fesetround(int mode) {
    if (mode != FE_TONEAREST) {
        __builtin_trap();
    }
    return 0;
}

#endif
