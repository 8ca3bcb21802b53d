/* Layouts that can be scanned as they are, and one near a layout that cannot.
 *
 *     lane   0 1 2 3 4                    lane   0 1 2 3 4
 *            e0+e1 e1 e2 e3 e4     →             e0 e1 e2 e3 e4
 *
 * Every column that brings a new direction keeps its place and becomes a unit vector: itself if it
 * is one, else the pivot of what the columns before it leave of it. Then the lanes and warps that
 * have bits of the axis put those in order, the lanes the lower ones. */
#include "scan.h"

uint64_t lilac_scan_axis(const lilac_lower_view *view, uint32_t axis) {
    return ((1ULL << view->bits[axis]) - 1) << view->start[axis];
}

static bool is_unit(uint64_t column) {
    return column != 0 && (column & (column - 1)) == 0;
}

bool lilac_scan_fits(const lilac_lower_view *view, uint32_t axis) {
    uint32_t own = lilac_lower_own_registers(view);
    uint64_t along = lilac_scan_axis(view, axis), seen = 0, lanes = 0, warps = 0;
    for (uint32_t i = 0; i < view->register_bits + view->thread_bits; i++) {
        bool in_register = i < view->register_bits;
        uint32_t thread = i - view->register_bits;
        uint64_t column = in_register ? view->registers[i] : view->threads[thread];
        if ((in_register && !(own >> i & 1)) || (column & along) == 0) {
            continue;
        }
        if (!is_unit(column) || (seen & column) != 0) {
            return false;
        }
        seen |= column;
        lanes |= !in_register && thread < view->lane_bits ? column : 0;
        warps |= !in_register && thread >= view->lane_bits ? column : 0;
    }
    return warps == 0 || lanes < (warps & (~warps + 1));
}

/* One column's new unit vector: itself if it is one, else the pivot of what is left of it. */
static uint64_t take_pivot(lilac_f2_basis *span, uint64_t column) {
    const uint64_t before = span->pivots;
    (void)lilac_f2_basis_add(span, column, 0);
    return span->pivots ^ before;
}

/* Of the columns that lanes and warps have along the axis, the lower ones go to the lanes. */
static void order_threads(lilac_lower_view *view, uint64_t along) {
    uint32_t places[LILAC_LAYOUT_MAX_BITS], count = 0;
    for (uint32_t i = 0; i < view->thread_bits; i++) {
        if (view->threads[i] & along) {
            places[count++] = i;
        }
    }
    for (uint32_t i = 1; i < count; i++) {
        for (uint32_t k = i; k > 0 && view->threads[places[k]] < view->threads[places[k - 1]];
             k--) {
            uint64_t higher = view->threads[places[k - 1]];
            view->threads[places[k - 1]] = view->threads[places[k]];
            view->threads[places[k]] = higher;
        }
    }
}

const lilac_lower_view *lilac_scan_near(lilac_lowering *l, const lilac_lower_view *from,
                                        uint32_t axis) {
    lilac_lower_view *view = lilac_arena_new(l->arena, lilac_lower_view);
    lilac_f2_basis span;
    lilac_f2_basis_init(&span);
    uint32_t own = lilac_lower_own_registers(from), registers = 0;
    *view = *from;
    view->free_threads = view->free_blocks = 0;
    view->next = NULL;
    for (uint32_t i = 0; i < from->block_bits; i++) {
        (void)lilac_f2_basis_add(&span, from->blocks[i], 0);
    }
    /* Unit vectors first, so that they stay where they are. */
    for (uint32_t pass = 0; pass < 2; pass++) {
        registers = 0;
        for (uint32_t i = 0; i < from->register_bits; i++) {
            if (!(own >> i & 1)) {
                continue;
            }
            if (is_unit(from->registers[i]) == (pass == 0)) {
                view->registers[registers] = take_pivot(&span, from->registers[i]);
            }
            registers++;
        }
        for (uint32_t i = 0; i < from->thread_bits; i++) {
            if (is_unit(from->threads[i]) == (pass == 0)) {
                view->threads[i] = take_pivot(&span, from->threads[i]);
            }
        }
    }
    /* A register that a thread has too is no longer needed. */
    view->register_bits = 0;
    for (uint32_t i = 0; i < registers; i++) {
        if (view->registers[i] != 0) {
            view->registers[view->register_bits++] = view->registers[i];
        }
    }
    view->count = 1U << view->register_bits;
    if (!lilac_scan_fits(view, axis)) {
        order_threads(view, lilac_scan_axis(view, axis));
    }
    lilac_lower_find_copies(l, view);
    return view;
}
