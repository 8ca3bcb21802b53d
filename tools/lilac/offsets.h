/* Where a memory layout has an element, as formulas for readers. */
#ifndef LILAC_OFFSETS_H
#define LILAC_OFFSETS_H

#include <lilac.h>

/* The places of a tensor's elements in memory: dim0 … → offset (and block). Refused as
 * lilac_layout_pseudoinvert. */
bool offsets_of(lilac_layout *map, const lilac_layout *memory, lilac_reason *why);
/* The name of dimension `dim` of a tensor of this rank: i; m, n; l, m, n; d0, d1 … */
void offsets_put_name(lilac_text *out, uint32_t rank, uint32_t dim);
/* "32*m + (n ^ 2*m)": terms of one coordinate each; those that share offset bits are xored, the
 * others added. */
void offsets_put_formula(lilac_text *out, const lilac_layout *map);
/* "n0^m1": the coordinates' bits whose xor is that bit of `to`, "offset" or "block"; "0" when there
 * are none. */
void offsets_put_bit(lilac_text *out, const lilac_layout *map, const char *to, uint32_t bit);

#endif
