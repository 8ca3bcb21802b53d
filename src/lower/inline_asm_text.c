/* Assembly whose instructions all have an operation of their own in SIMT IR. */
#include "inline_asm.h"
bool lilac_lower_translate_asm(lilac_lowering *l, lilac_lower_asm *piece) {
    (void)l, (void)piece;
    return false;
}
