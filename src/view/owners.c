/* The owners of an element: all x with L·x = element.
 *
 * The columns are reduced once to independent vectors, each with a pivot bit that no other has and
 * with the inputs it is made of. An element is then the sum of the vectors whose pivots it has, or
 * nobody holds it. The smallest input comes from this sum, since the reduction prefers early
 * columns; the others differ from it by the kernel. Each kernel vector has a highest bit that is in
 * no other one and in no smallest input, so copy number k, the sum of the kernel vectors at the set
 * bits of k, ascends with k.
 */
#include "grid.h"

#include <lilac/f2.h>

void lilac_view_owners_init(lilac_view_owners *owners, const lilac_layout *layout) {
    lilac_f2_matrix matrix = {.rows = layout->out_bits, .columns = layout->in_bits};
    lilac_f2_echelon echelon;
    memcpy(matrix.column, layout->columns, layout->in_bits * sizeof *layout->columns);
    lilac_f2_reduce(&echelon, &matrix);
    *owners = (lilac_view_owners){.rank = echelon.rank, .copy_bits = echelon.kernel_count};
    for (uint32_t i = 0; i < echelon.rank; i++) {
        owners->vector[i] = echelon.vector[i];
        owners->combination[i] = echelon.combination[i];
        owners->pivot[i] = echelon.pivot[i];
    }
    for (uint32_t i = 0; i < echelon.kernel_count; i++) {
        uint32_t at = i; /* insertion by value, which is by highest bit */
        for (; at > 0 && owners->copies[at - 1] > echelon.kernel[i]; at--) {
            owners->copies[at] = owners->copies[at - 1];
        }
        owners->copies[at] = echelon.kernel[i];
    }
}

bool lilac_view_owner(const lilac_view_owners *owners, uint64_t element, uint64_t copy,
                      uint64_t *index) {
    uint64_t rest = element, sum = 0;
    for (uint32_t i = 0; i < owners->rank; i++) {
        if ((element >> owners->pivot[i] & 1) != 0) {
            rest ^= owners->vector[i];
            sum ^= owners->combination[i];
        }
    }
    for (; copy != 0; copy &= copy - 1) {
        sum ^= owners->copies[lowest_bit(copy)];
    }
    if (rest == 0) {
        *index = sum;
    }
    return rest == 0;
}
