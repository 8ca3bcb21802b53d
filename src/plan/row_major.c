/* Trips through memory in the tensor's row-major order, with the widest vectors that it allows on
 * each side and nothing against bank conflicts: what a trip is compared with.
 *
 * Row-major bits of other blocks' parts are left out. Round bits are the highest that are one
 * register direction on both sides and that no thread moves.
 */
#include "trip.h"

#include <string.h>

/* Columns of a side as offsets. */
typedef struct side_offsets {
    lilac_f2_basis registers; /* with the block that they load from, from bit 28 on */
    uint32_t threads;         /* offset bits that some thread moves */
    uint32_t register_bits;
} side_offsets;

static void find_offsets(side_offsets *offsets, const trip_side *side,
                         const lilac_f2_basis *inverse, uint32_t whole) {
    lilac_f2_basis_init(&offsets->registers);
    offsets->threads = 0;
    offsets->register_bits = side->register_bits;
    for (uint32_t i = 0; i < side->register_bits; i++) {
        const uint32_t offset = (uint32_t)lilac_f2_basis_tag(inverse, side->reg[i] & whole);
        (void)lilac_f2_basis_add(&offsets->registers, offset | (side->reg[i] >> FRAME_BLOCK) << 28,
                                 0);
    }
    for (uint32_t i = 0; i < side->thread_bits; i++) {
        offsets->threads |= (uint32_t)lilac_f2_basis_tag(inverse, side->thread[i] & whole);
    }
}

static bool is_register(const side_offsets *offsets, uint32_t bit) {
    return (offsets->threads >> bit & 1) == 0 &&
           lilac_f2_basis_contains(&offsets->registers, UINT32_C(1) << bit);
}

/* The tensor's unit vectors, last output fastest, in the frame; `count` of them are independent. */
static uint32_t row_major(uint32_t *vectors, const trip_work *work, const lilac_layout *source) {
    lilac_f2_basis frame, known;
    uint32_t count = 0, end = source->out_bits;
    lilac_f2_basis_init(&frame);
    lilac_f2_basis_init(&known);
    for (uint32_t bit = 0; bit < FRAME_BITS; bit++) {
        if (((work->pair.whole | work->blocks) >> bit & 1) != 0) {
            (void)lilac_f2_basis_add(&frame, work->origin[bit], UINT32_C(1) << bit);
        }
    }
    for (uint32_t out = source->out_count; out-- > 0;) {
        const uint32_t start = end - source->out[out].bits;
        for (uint32_t bit = start; bit < end; bit++) {
            const uint32_t vector =
                (uint32_t)lilac_f2_basis_tag(&frame, UINT64_C(1) << bit) & work->pair.whole;
            if (lilac_f2_basis_add(&known, vector, 0)) {
                vectors[count++] = vector;
            }
        }
        end = start;
    }
    return count;
}

bool lilac_plan_row_major(trip_choice *choice, const trip_work *work, const lilac_layout *source,
                          lilac_reason *why) {
    const trip_scale *scale = &work->scale;
    uint32_t vectors[FRAME_BITS], rounds = 0;
    lilac_f2_basis inverse;
    lilac_f2_basis_init(&inverse);
    side_offsets side[2];
    const uint32_t count = row_major(vectors, work, source);
    for (uint32_t i = 0; i < count; i++) {
        (void)lilac_f2_basis_add(&inverse, vectors[i], UINT32_C(1) << i);
    }
    memset(&choice->way, 0, sizeof choice->way);
    memset(&choice->basis, 0, sizeof choice->basis);
    for (uint32_t which = 0; which < 2; which++) {
        find_offsets(&side[which], &work->pair.side[which], &inverse, work->pair.whole);
    }
    uint32_t left = work->pair.round_bits;
    for (uint32_t bit = count; bit-- > 0 && left > 0;) {
        if (is_register(&side[STORE], bit) && is_register(&side[LOAD], bit)) {
            rounds |= UINT32_C(1) << bit;
            left--;
        }
    }
    if (left != 0) {
        return lilac_plan_trip_refuse(
            why, "row-major memory has no 2^%u rounds of registers that both layouts share",
            work->pair.round_bits);
    }
    for (uint32_t which = 0; which < 2; which++) {
        uint32_t *low = &choice->way.low[which];
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
    choice->frame = work->pair;
    choice->turned = false;
    return true;
}
