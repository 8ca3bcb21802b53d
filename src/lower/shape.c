/* Shape operations map coordinates. If the layouts agree with the map, each register of the
 * result is a register of the operand and no data moves. Otherwise a conversion plan brings each
 * element to its thread (convert_layout.c).
 *
 *   operation      bit j of the operand's coordinate is …
 *   -----------    -----------------------------------------------------------------
 *   splat          (a scalar: the same value in every register)
 *   expand_dims    the same bit; the numbers of dimensions from `axis` on are one higher
 *   broadcast      the same bit; dimensions of size 1 have none
 *   trans          the same bit of the dimension that `order` assigns
 *   reshape        the bit at the same place of the row-major index
 *   join, split    the same bit; the last dimension is the number of the operand or result
 *   convert        the same bit */
#include "convert_layout.h"
#include "operations.h"

/* Defines the result by the registers of the operand, with their constants and ranges. False: a
 * register needs an element of another thread. */
static bool reuse_registers(lilac_lowering *l, const lilac_lower_value *from,
                            const lilac_lower_map *map, lilac_lower_value *to) {
    const uint32_t *source;
    if (!lilac_lower_find_sources(l, from->view, to->view, map, &source)) {
        return false;
    }
    to->exact = from->exact;
    to->low = from->low, to->high = from->high;
    to->offset_low = from->offset_low, to->offset_high = from->offset_high;
    if (source == NULL) {
        to->base = from->base;
        to->offsets = from->offsets;
        return true;
    }
    int64_t *offsets =
        from->offsets != NULL ? lilac_arena_array(l->arena, int64_t, to->count) : NULL;
    for (uint32_t r = 0; r < to->count; r++) {
        to->base[r] = from->base[source[r]];
        if (offsets != NULL) {
            offsets[r] = from->offsets[source[r]];
        }
    }
    to->offsets = offsets;
    return true;
}

/* Dimension `from` of the operand is dimension `to` of the result. */
static void map_dimension(lilac_lower_map *map, const lilac_lower_view *operand, uint32_t from,
                          const lilac_lower_view *result, uint32_t to) {
    for (uint32_t j = 0; j < operand->columns.bits[from] && j < result->columns.bits[to]; j++) {
        map->bits[operand->columns.start[from] + j] = (int8_t)(result->columns.start[to] + j);
    }
}

static bool transpose_map(lilac_lowering *l, const lilac_tile_op *op, lilac_lower_map *map,
                          const lilac_lower_view *from, const lilac_lower_view *to) {
    const lilac_tile_attribute *order = lilac_tile_find(&op->attributes, "order");
    if (order == NULL || order->count != to->columns.rank ||
        from->columns.rank != to->columns.rank) {
        return lilac_lower_bad_attribute(l, "order", "a permutation of the operand's dimensions");
    }
    for (uint32_t d = 0; d < to->columns.rank; d++) {
        int64_t source = order->integers[d];
        if (source < 0 || source >= from->columns.rank) {
            return lilac_lower_bad_attribute(l, "order",
                                             "a permutation of the operand's dimensions");
        }
        map_dimension(map, from, (uint32_t)source, to, d);
    }
    return true;
}

/* Coordinate bits in row-major order, the last dimension's lowest bit first. */
static uint32_t row_major_bits(const lilac_lower_view *view, uint32_t *places) {
    uint32_t count = 0;
    for (uint32_t d = view->columns.rank; d-- > 0;) {
        for (uint32_t j = 0; j < view->columns.bits[d]; j++) {
            places[count++] = view->columns.start[d] + j;
        }
    }
    return count;
}

static bool reshape_map(lilac_lowering *l, const lilac_tile_op *op, lilac_lower_map *map,
                        const lilac_lower_view *from, const lilac_lower_view *to) {
    (void)op;
    uint32_t from_places[LILAC_LAYOUT_MAX_BITS], to_places[LILAC_LAYOUT_MAX_BITS];
    uint32_t count = row_major_bits(from, from_places);
    uint32_t result_count = row_major_bits(to, to_places);
    if (count != result_count) {
        return lilac_lower_unsupported(l, "the operand has 2^%u elements and the result has 2^%u",
                                       count, result_count);
    }
    for (uint32_t i = 0; i < count; i++) {
        map->bits[from_places[i]] = (int8_t)to_places[i];
    }
    return true;
}

/* The result of an operation on one tensor, if bit j of the operand's coordinate is bit map[j]. */
typedef bool map_function(lilac_lowering *l, const lilac_tile_op *op, lilac_lower_map *map,
                          const lilac_lower_view *from, const lilac_lower_view *to);

static bool reindex(lilac_lowering *l, const lilac_tile_op *op, map_function *fill) {
    const lilac_lower_value *from = lilac_lower_operand(l, op, 0);
    lilac_lower_value *to = lilac_lower_result(l, op, 0);
    lilac_lower_map map;
    if (to == NULL) {
        return false;
    }
    lilac_lower_map_identity(&map, from->view->columns.out_bits);
    return fill(l, op, &map, from->view, to->view) &&
           (reuse_registers(l, from, &map, to) || lilac_lower_move_value(l, from, &map, 1, &to));
}

bool lilac_lower_trans(lilac_lowering *l, const lilac_tile_op *op) {
    return reindex(l, op, transpose_map);
}

bool lilac_lower_reshape(lilac_lowering *l, const lilac_tile_op *op) {
    return reindex(l, op, reshape_map);
}

/* The dimensions from `axis` on have a number that is one higher. */
static bool dimensions_map(lilac_lowering *l, lilac_lower_map *map, const lilac_lower_view *from,
                           const lilac_lower_view *to, uint32_t axis) {
    for (uint32_t d = 0; d < from->columns.rank; d++) {
        uint32_t target = d >= axis ? d + 1 : d;
        if (target >= to->columns.rank) {
            return lilac_lower_unsupported(l, "the operand has %u dimensions and the result has %u",
                                           from->columns.rank, to->columns.rank);
        }
        map_dimension(map, from, d, to, target);
    }
    return true;
}

static bool expand_map(lilac_lowering *l, const lilac_tile_op *op, lilac_lower_map *map,
                       const lilac_lower_view *from, const lilac_lower_view *to) {
    uint32_t axis = (uint32_t)lilac_tile_find_integer(&op->attributes, "axis", 0);
    return dimensions_map(l, map, from, to, axis);
}

bool lilac_lower_expand_dims(lilac_lowering *l, const lilac_tile_op *op) {
    return reindex(l, op, expand_map);
}

static bool same_dimensions_map(lilac_lowering *l, const lilac_tile_op *op, lilac_lower_map *map,
                                const lilac_lower_view *from, const lilac_lower_view *to) {
    (void)op;
    return dimensions_map(l, map, from, to, from->columns.rank);
}

/* tt.broadcast and ttg.convert_layout. */
bool lilac_lower_same_dimensions(lilac_lowering *l, const lilac_tile_op *op) {
    return reindex(l, op, same_dimensions_map);
}

bool lilac_lower_splat(lilac_lowering *l, const lilac_tile_op *op) {
    const lilac_lower_value *from = lilac_lower_operand(l, op, 0);
    lilac_lower_value *to = lilac_lower_result(l, op, 0);
    if (to == NULL) {
        return false;
    }
    lilac_simt_value value = lilac_lower_get(l, from, 0);
    for (uint32_t r = 0; r < to->count; r++) {
        to->base[r] = value;
    }
    to->low = from->low;
    to->high = from->high;
    return true;
}

/* Every thread holds the one element, so the value is the same in all of them. */
bool lilac_lower_unsplat(lilac_lowering *l, const lilac_tile_op *op) {
    const lilac_lower_value *from = lilac_lower_operand(l, op, 0);
    lilac_lower_value *to = lilac_lower_result(l, op, 0);
    if (to == NULL) {
        return false;
    }
    if (from->view->columns.out_bits != 0) {
        return lilac_lower_unsupported(l, "the operand has 2^%u elements; expected one",
                                       from->view->columns.out_bits);
    }
    to->base[0] = lilac_lower_get(l, from, 0);
    lilac_simt_mark_uniform(l->kernel, to->base[0]);
    return true;
}

/* Register r of the result belongs to the operand that the last coordinate names. */
static bool join_registers(lilac_lowering *l, const lilac_tile_op *op, lilac_lower_value *to) {
    const lilac_lower_view *view = to->view;
    uint64_t last = 1ULL << view->columns.start[view->columns.rank - 1];
    for (uint32_t i = 0; i < view->columns.thread_bits + view->columns.block_bits; i++) {
        uint64_t column = i < view->columns.thread_bits
                              ? view->columns.threads[i]
                              : view->columns.blocks[i - view->columns.thread_bits];
        if (column & last) {
            return false;
        }
    }
    for (uint32_t half = 0; half < 2; half++) {
        const lilac_lower_value *from = lilac_lower_operand(l, op, half);
        lilac_lower_map map;
        lilac_lower_map_identity(&map, from->view->columns.out_bits);
        for (uint32_t d = 0; d < from->view->columns.rank; d++) {
            map_dimension(&map, from->view, d, view, d);
        }
        const uint32_t *source;
        if (!lilac_lower_find_sources(l, from->view, view, &map, &source)) {
            return false;
        }
        for (uint32_t r = 0; r < to->count; r++) {
            if (((view->coordinates[r] & last) != 0) == (half == 1)) {
                to->base[r] = lilac_lower_get(l, from, lilac_lower_index(from, source, r));
            }
        }
    }
    return true;
}

/* The layout of both operands as one tensor: the number of the operand is one more register bit. */
static const lilac_lower_view *joined_view(lilac_lowering *l, const lilac_lower_view *half,
                                           const lilac_lower_view *result) {
    const lilac_layout_columns *from = &half->columns;
    lilac_layout_columns columns = result->columns;
    lilac_lower_map map;
    lilac_lower_map_identity(&map, columns.out_bits);
    for (uint32_t i = 0; i < map.count; i++) {
        map.bits[i] = -1;
    }
    for (uint32_t d = 0; d < from->rank; d++) {
        map_dimension(&map, result, d, half, d);
    }
    columns.register_bits = from->register_bits + 1;
    for (uint32_t i = 0; i < from->register_bits; i++) {
        columns.registers[i] = lilac_lower_map_apply(&map, from->registers[i]);
    }
    columns.registers[from->register_bits] = 1ULL << columns.start[columns.rank - 1];
    for (uint32_t i = 0; i < from->thread_bits; i++) {
        columns.threads[i] = lilac_lower_map_apply(&map, from->threads[i]);
    }
    for (uint32_t i = 0; i < from->block_bits; i++) {
        columns.blocks[i] = lilac_lower_map_apply(&map, from->blocks[i]);
    }
    return lilac_lower_view_of_columns(l, &columns);
}

/* Converts both operands, as one tensor, to the layout of the result. */
static bool join_by_movement(lilac_lowering *l, const lilac_tile_op *op, lilac_lower_value *to) {
    const lilac_lower_value *halves[2] = {lilac_lower_operand(l, op, 0),
                                          lilac_lower_operand(l, op, 1)};
    const lilac_lower_view *half = halves[0]->view;
    const lilac_lower_view *view = joined_view(l, half, to->view);
    lilac_simt_value *values = lilac_arena_array(l->arena, lilac_simt_value, view->count);
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t *source;
        if (!lilac_lower_align(l, halves[i], half, &source)) {
            return false;
        }
        for (uint32_t r = 0; r < half->count; r++) {
            values[(size_t)i * half->count + r] =
                lilac_lower_get(l, halves[i], lilac_lower_index(halves[i], source, r));
        }
    }
    const lilac_lower_conversion conversion = {to->simt, view, to->view, values, to->base};
    return lilac_lower_move(l, LILAC_PLAN_ANY, &conversion);
}

bool lilac_lower_join(lilac_lowering *l, const lilac_tile_op *op) {
    lilac_lower_value *to = lilac_lower_result(l, op, 0);
    return to != NULL && (join_registers(l, op, to) || join_by_movement(l, op, to));
}

bool lilac_lower_split(lilac_lowering *l, const lilac_tile_op *op) {
    const lilac_lower_value *from = lilac_lower_operand(l, op, 0);
    lilac_lower_value *to[2] = {lilac_lower_result(l, op, 0), NULL};
    to[1] = to[0] == NULL ? NULL : lilac_lower_result(l, op, 1);
    if (to[1] == NULL) {
        return false;
    }
    if (to[0]->view != to[1]->view) {
        return lilac_lower_unsupported(l, "result 1 has another layout than result 0");
    }
    uint32_t last = from->view->columns.rank - 1;
    lilac_lower_map map;
    lilac_lower_map_identity(&map, from->view->columns.out_bits);
    for (uint32_t d = 0; d < last; d++) {
        map_dimension(&map, from->view, d, to[0]->view, d);
    }
    map.bits[from->view->columns.start[last]] = -1;
    bool reused = true;
    for (uint32_t half = 0; half < 2 && reused; half++) {
        map.constant = (uint64_t)half << from->view->columns.start[last];
        reused = reuse_registers(l, from, &map, to[half]);
    }
    if (reused) {
        return true;
    }
    map.constant = 1ULL << from->view->columns.start[last];
    return lilac_lower_move_value(l, from, &map, 2, to);
}
