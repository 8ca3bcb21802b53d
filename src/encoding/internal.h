/* What the files of the room `encoding` share. */
#ifndef LILAC_ENCODING_INTERNAL_H
#define LILAC_ENCODING_INTERNAL_H

#include <lilac/encoding.h>

/* The log2 of each size; refused when a size is no power of two or there are more than 2^64
 * elements. */
LILAC_MUST_USE bool lilac_encoding_check_shape(lilac_context *context, lilac_position position,
                                               uint32_t rank, const int64_t *shape, uint32_t *bits);

#endif
