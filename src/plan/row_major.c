/* Exchanges through memory in the tensor's row-major order, with the widest vectors that this order
 * allows on each side and without a swizzle. They serve for comparison.
 *
 * Row-major bits that select other blocks' parts are left out. The bits of the round are the
 * highest bits that are a single register direction on both sides and that no thread changes.
 */
#include "staging.h"

#include <string.h>

/* The columns of a side as offsets. */
typedef struct side_offsets {
    lilac_f2_basis registers; /* bits 28 and above: the block that a register loads from */
    uint32_t threads;         /* offset bits that some thread changes */
    uint32_t register_bits;
} side_offsets;

static void find_offsets(side_offsets *offsets, const staging_side *side,
                         const lilac_f2_basis *inverse, uint32_t space_mask) {
    lilac_f2_basis_init(&offsets->registers);
    offsets->threads = 0;
    offsets->register_bits = side->register_bits;
    for (uint32_t i = 0; i < side->register_bits; i++) {
        const uint32_t offset = (uint32_t)lilac_f2_basis_tag(inverse, side->reg[i] & space_mask);
        (void)lilac_f2_basis_add(&offsets->registers, offset | (side->reg[i] >> BASIS_BLOCK) << 28,
                                 0);
    }
    for (uint32_t i = 0; i < side->thread_bits; i++) {
        offsets->threads |= (uint32_t)lilac_f2_basis_tag(inverse, side->thread[i] & space_mask);
    }
}

static bool is_register(const side_offsets *offsets, uint32_t bit) {
    return (offsets->threads >> bit & 1) == 0 &&
           lilac_f2_basis_contains(&offsets->registers, UINT32_C(1) << bit);
}

/* Writes the tensor's unit vectors, last output fastest, in the basis; dependent ones are left out.
 * Returns their number. */
static uint32_t row_major(uint32_t *vectors, const staging_work *work, const lilac_layout *source) {
    lilac_f2_basis pair;
    lilac_f2_basis_init(&pair);
    lilac_f2_basis known;
    lilac_f2_basis_init(&known);
    uint32_t count = 0, end = source->out_bits;
    for (uint32_t bit = 0; bit < BASIS_BITS; bit++) {
        if (((work->pair.space_mask | work->blocks) >> bit & 1) != 0) {
            (void)lilac_f2_basis_add(&pair, work->origin[bit], UINT32_C(1) << bit);
        }
    }
    for (uint32_t out = source->out_count; out-- > 0;) {
        const uint32_t start = end - source->out[out].bits;
        for (uint32_t bit = start; bit < end; bit++) {
            const uint32_t vector =
                (uint32_t)lilac_f2_basis_tag(&pair, UINT64_C(1) << bit) & work->pair.space_mask;
            if (lilac_f2_basis_add(&known, vector, 0)) {
                vectors[count++] = vector;
            }
        }
        end = start;
    }
    return count;
}

bool lilac_plan_row_major(staging_choice *choice, const staging_work *work,
                          const lilac_layout *source, lilac_reason *why) {
    const staging_scale *scale = &work->scale;
    uint32_t vectors[BASIS_BITS], rounds = 0;
    lilac_f2_basis inverse;
    lilac_f2_basis_init(&inverse);
    side_offsets side[2];
    const uint32_t count = row_major(vectors, work, source);
    for (uint32_t i = 0; i < count; i++) {
        (void)lilac_f2_basis_add(&inverse, vectors[i], UINT32_C(1) << i);
    }
    memset(&choice->strategy, 0, sizeof choice->strategy);
    memset(&choice->basis, 0, sizeof choice->basis);
    for (uint32_t which = 0; which < 2; which++) {
        find_offsets(&side[which], &work->pair.side[which], &inverse, work->pair.space_mask);
    }
    uint32_t remaining = work->pair.round_bits;
    for (uint32_t bit = count; bit-- > 0 && remaining > 0;) {
        if (is_register(&side[STORE], bit) && is_register(&side[LOAD], bit)) {
            rounds |= UINT32_C(1) << bit;
            remaining--;
        }
    }
    if (remaining != 0) {
        return lilac_layout_refuse(why,
                                   "row-major memory does not divide into 2^%u rounds: the layouts "
                                   "have too few register bits "
                                   "in common",
                                   work->pair.round_bits);
    }
    for (uint32_t which = 0; which < 2; which++) {
        uint32_t *low = &choice->strategy.low[which];
        while ((UINT64_C(2) << *low) * scale->element_bytes <= scale->arch->vector_bytes &&
               *low < count && (rounds >> *low & 1) == 0 && is_register(&side[which], *low)) {
            ++*low;
        }
    }
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < count; i++) {
            if ((rounds >> i & 1) == pass) {
                choice->basis.vector[choice->basis.count++] = vectors[i];
            }
        }
    }
    choice->pair = work->pair;
    choice->in_target_basis = false;
    return true;
}
