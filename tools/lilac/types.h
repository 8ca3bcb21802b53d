/* A TYPE on a command line: whatever has a linear layout, in one form for all subcommands. */
#ifndef LILAC_TYPES_H
#define LILAC_TYPES_H

#include "command.h"

/* Outputs of the layout are dim0 … of the shape; its inputs say what it lays out over (register,
 * lane, warp, block for a distributed tensor; offset … for memory). */
typedef struct laid_out_type {
    uint32_t rank;
    int64_t shape[LILAC_MAX_RANK];
    uint32_t element_bits; /* of an element; a pointer's are 64 */
    lilac_layout layout;
} laid_out_type;

/* The type that the scanner's text is, to its very end. False: diagnostics say why. */
bool type_read(lilac_scanner *scanner, laid_out_type *type);
/* The same for argument number `number` of a command line, which diagnostics name so. */
bool type_read_argument(lilac_context *context, const char *text, uint32_t number,
                        laid_out_type *type);

#endif
