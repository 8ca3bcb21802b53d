/* replication: the input bits of a layout that make copies only. Internal: not installed.
 *
 * A bit is *replicated* when its column is a sum of columns of lower bits (a zero column is the
 * empty sum): setting it leads to elements that the other indices hold already. Each element is
 * held once by the indices whose replicated bits are 0.
 *
 *      bit      0   1   2   3   4
 *      column   a   b   0  a+b  c      replicated 01100     origin[3] = 00011, origin[4] = 10000
 *
 * Who may use it: layout, plan, lower. Others read the mask by lilac_layout_free_mask.
 */
#ifndef LILAC_LAYOUT_REPLICATION_H
#define LILAC_LAYOUT_REPLICATION_H

#include <lilac/layout.h>

LILAC_BEGIN

typedef struct lilac_replication {
    uint64_t replicated; /* mask of the bits */
    /* Mask of the bits that are not replicated and whose columns have this bit's column as their
     * sum; for one that is not replicated the bit itself. */
    uint64_t origin[LILAC_LAYOUT_MAX_BITS];
} lilac_replication;

/* `count` columns, at most LILAC_LAYOUT_MAX_BITS. Cost: about count × rank steps. */
void lilac_layout_find_replication(lilac_replication *result, const uint64_t *columns,
                                   uint32_t count);

LILAC_END

#endif
