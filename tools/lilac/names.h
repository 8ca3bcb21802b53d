/* The names that Triton has for memory layouts. Shared by the command and the Python package. */
#ifndef LILAC_NAMES_H
#define LILAC_NAMES_H

#include <lilac.h>

/* Appends the #ttg.swizzled_shared or #ttg.nvmma_shared attribute whose layout of elements of this
 * width is `memory`. False, with nothing appended, when there is none. Forgets the context's
 * diagnostics. */
bool names_put_triton(lilac_text *out, lilac_context *context, const lilac_layout *memory,
                      uint32_t element_bits);

#endif
