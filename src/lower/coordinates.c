/* Coordinates: the linear algebra of the lowering.
 *
 * A thread's register r holds the element at
 *
 *     L(r, thread, block) = L(r, 0, 0) xor L(0, thread, block)
 *
 * The first part is a constant. The second is the same for all registers and is built once. A
 * column sets pairs (bit i of the thread's index, bit p of the coordinate). They are sorted by
 * their distance p - i, and each distance costs one `and` and one shift:
 *
 *     columns e3 e4 e5 e6 e7 of five lanes   →   thread << 3
 *
 * An operand is aligned to a result if each of the result's registers finds its element in a
 * register of the operand in the same thread. With M the map of coordinates, that register s
 * solves
 *
 *     L_operand(s, 0) = M(L_result(r, 0))      and      L_operand(0, t) = M(L_result(0, t)).
 *
 * By linearity the first equation is solved once for each register bit. The second must hold as
 * it is, since a thread cannot choose the register. */
#include "coordinates.h"

/* ---- views ------------------------------------------------------------------------------- */

enum { MAX_REGISTER_BITS = 14 };

/* Computes the registers' tables from the columns. */
static void fill_view(lilac_lowering *l, lilac_lower_view *view) {
    const lilac_layout_columns *columns = &view->columns;
    view->count = 1U << columns->register_bits;
    view->coordinates = lilac_arena_array(l->arena, uint64_t, view->count);
    view->canonical = lilac_arena_array(l->arena, uint32_t, view->count);
    for (uint32_t r = 1; r < view->count; r++) {
        uint32_t top = highest_bit(r);
        uint32_t rest = r ^ (1U << top);
        view->coordinates[r] = view->coordinates[rest] ^ columns->registers[top];
        view->canonical[r] = view->canonical[rest] ^ columns->origin[top];
    }
}

static lilac_lower_view *make_view(lilac_lowering *l, const lilac_layout *layout) {
    lilac_lower_view *view = lilac_arena_new(l->arena, lilac_lower_view);
    lilac_reason why = {0};
    uint32_t register_bits = lilac_layout_in_bits(layout, "register");
    view->layout = layout;
    if (register_bits > MAX_REGISTER_BITS) {
        (void)lilac_lower_refuse(
            l, "unsupported-type",
            "the tensor needs %llu registers in each thread; at most %llu are supported",
            1ULL << register_bits, 1ULL << MAX_REGISTER_BITS);
        return NULL;
    }
    if (!lilac_plan_columns_init(&view->columns, layout, l->target, &why)) {
        (void)lilac_lower_refuse(l, "unsupported-type", "%s", why.text);
        return NULL;
    }
    fill_view(l, view);
    return view;
}

const lilac_lower_view *lilac_lower_view_of(lilac_lowering *l, const lilac_tile_type *type) {
    const lilac_layout *layout = type->layout;
    if (layout == NULL) {
        (void)lilac_lower_refuse(l, "unsupported-type",
                                 "a tensor has no layout; the pass assign_layouts gives it one");
        return NULL;
    }
    for (lilac_lower_view *view = l->views; view != NULL; view = view->next) {
        if (view->layout == layout) {
            return view;
        }
    }
    for (lilac_lower_view *view = l->views; view != NULL; view = view->next) {
        if (lilac_layout_equal(view->layout, layout)) {
            return view;
        }
    }
    lilac_lower_view *view = make_view(l, layout);
    if (view != NULL) {
        view->next = l->views;
        l->views = view;
    }
    return view;
}

const lilac_lower_view *lilac_lower_view_of_columns(lilac_lowering *l,
                                                    const lilac_layout_columns *columns) {
    lilac_lower_view *view = lilac_arena_new(l->arena, lilac_lower_view);
    view->columns = *columns;
    lilac_layout_columns_find_replicated(&view->columns);
    fill_view(l, view);
    return view;
}

/* ---- canonical registers ------------------------------------------------------------------ */

uint32_t lilac_lower_deposit(uint32_t index, uint32_t mask) {
    uint32_t result = 0;
    for (; mask != 0; mask &= mask - 1, index >>= 1) {
        result |= (index & 1) * (mask & (~mask + 1));
    }
    return result;
}

/* ---- the thread's part of a coordinate --------------------------------------------------- */

#define DISTANCES (2 * LILAC_LAYOUT_MAX_BITS)

/* Adds to *sum, for each diagonal, (index & mask) shifted by its distance. *possible: the bits that
 * *sum may have set. *sum 0: nothing has been added. The index has `width` bits; the lower `bits`
 * have columns. */
static void add_diagonals(lilac_simt_builder *b, lilac_simt_value index, uint32_t width,
                          uint32_t bits, const uint64_t *columns, lilac_simt_value *sum,
                          uint64_t *possible) {
    uint64_t masks[DISTANCES] = {0};
    uint32_t first = DISTANCES, last = 0;
    for (uint32_t i = 0; i < bits; i++) {
        for (uint64_t rest = columns[i]; rest != 0; rest &= rest - 1) {
            uint32_t distance = (uint32_t)__builtin_ctzll(rest) + LILAC_LAYOUT_MAX_BITS - i;
            masks[distance] |= 1ULL << i;
            first = distance < first ? distance : first;
            last = distance > last ? distance : last;
        }
    }
    uint64_t all = (1ULL << width) - 1;
    for (uint32_t distance = first; distance <= last; distance++) {
        uint64_t mask = masks[distance];
        if (mask == 0) {
            continue;
        }
        bool left = distance >= LILAC_LAYOUT_MAX_BITS;
        uint32_t shift = left ? distance - LILAC_LAYOUT_MAX_BITS : LILAC_LAYOUT_MAX_BITS - distance;
        uint64_t survives = left ? all : all & ~((1ULL << shift) - 1);
        lilac_simt_value part = index;
        if (mask != survives) {
            part = lilac_simt_op2(b, LILAC_SIMT_OP_AND, LILAC_SIMT_I32, part,
                                  lilac_simt_constant(b, LILAC_SIMT_I32, mask));
        }
        if (shift != 0) {
            part = lilac_simt_op2(b, left ? LILAC_SIMT_OP_SHL : LILAC_SIMT_OP_SHR_U, LILAC_SIMT_I32,
                                  part, lilac_simt_constant(b, LILAC_SIMT_I32, shift));
        }
        uint64_t bits_of_part = left ? mask << shift : mask >> shift;
        if (*sum == 0) {
            *sum = part;
        } else {
            bool disjoint = (*possible & bits_of_part) == 0;
            *sum = lilac_simt_op2(b, disjoint ? LILAC_SIMT_OP_OR : LILAC_SIMT_OP_XOR,
                                  LILAC_SIMT_I32, *sum, part);
        }
        *possible |= bits_of_part;
    }
}

lilac_simt_value lilac_lower_linear(lilac_simt_builder *b, uint32_t bits, const uint64_t *columns,
                                    uint32_t block_bits, const uint64_t *block_columns) {
    lilac_simt_value sum = 0;
    uint64_t possible = 0;
    uint64_t touched = 0, touched_by_blocks = 0;
    const lilac_simt_kernel *kernel = b->kernel;
    for (uint32_t i = 0; i < bits; i++) {
        touched |= columns[i];
    }
    for (uint32_t i = 0; i < block_bits; i++) {
        touched_by_blocks |= block_columns[i];
    }
    if (touched != 0) {
        add_diagonals(b, lilac_simt_thread(b), log2_of(lilac_simt_threads(b)), bits, columns, &sum,
                      &possible);
    }
    if (touched_by_blocks != 0) {
        lilac_simt_instruction cta = {.code = LILAC_SIMT_OP_CTA};
        lilac_simt_type type = LILAC_SIMT_I32;
        lilac_simt_value index = lilac_simt_build(b, &cta, 0, NULL, 1, &type);
        add_diagonals(b, index, log2_of(kernel->num_ctas), block_bits, block_columns, &sum,
                      &possible);
    }
    return sum != 0 ? sum : lilac_simt_constant(b, LILAC_SIMT_I32, 0);
}

static lilac_simt_value bits_are_zero(lilac_lowering *l, lilac_simt_value index, uint32_t mask,
                                      uint32_t bits) {
    lilac_simt_builder *b = &l->builder;
    if (mask != (uint32_t)((1ULL << bits) - 1)) {
        index = lilac_simt_op2(b, LILAC_SIMT_OP_AND, LILAC_SIMT_I32, index,
                               lilac_simt_constant(b, LILAC_SIMT_I32, mask));
    }
    return lilac_simt_compare_values(b, LILAC_SIMT_EQ, index,
                                     lilac_simt_constant(b, LILAC_SIMT_I32, 0));
}

lilac_simt_value lilac_lower_elect_holder(lilac_lowering *l, uint32_t free_threads,
                                          uint32_t free_blocks) {
    lilac_simt_value predicate = 0;
    if (free_threads != 0) {
        uint32_t bits = log2_of(l->target->arch->warp_size) + log2_of(l->target->num_warps);
        predicate = bits_are_zero(l, lilac_simt_thread(&l->builder), free_threads, bits);
    }
    if (free_blocks != 0) {
        const lilac_simt_instruction cta = {.code = LILAC_SIMT_OP_CTA};
        const lilac_simt_type type = LILAC_SIMT_I32;
        lilac_simt_value index = lilac_simt_build(&l->builder, &cta, 0, NULL, 1, &type);
        lilac_simt_value first = bits_are_zero(l, index, free_blocks, log2_of(l->target->num_ctas));
        predicate = lilac_lower_both(l, predicate, first);
    }
    return predicate;
}

lilac_simt_value lilac_lower_elect_holder_of(lilac_lowering *l, const lilac_lower_view *view) {
    if (view != NULL) {
        return lilac_lower_elect_holder(l, view->columns.free_threads, view->columns.free_blocks);
    }
    uint32_t threads = l->target->num_warps * l->target->arch->warp_size;
    return lilac_lower_elect_holder(l, threads - 1, l->target->num_ctas - 1);
}

void lilac_lower_replicate(const lilac_lower_view *view, lilac_simt_value *registers) {
    for (uint32_t r = 0; r < view->count; r++) {
        registers[r] = registers[view->canonical[r]];
    }
}

/* ---- maps of coordinates ----------------------------------------------------------------- */

void lilac_lower_map_identity(lilac_lower_map *map, uint32_t bits) {
    map->count = bits;
    map->constant = 0;
    for (uint32_t i = 0; i < bits; i++) {
        map->bits[i] = (int8_t)i;
    }
}

uint64_t lilac_lower_map_apply(const lilac_lower_map *map, uint64_t coordinate) {
    uint64_t result = 0;
    for (uint32_t j = 0; j < map->count; j++) {
        if (map->bits[j] >= 0) {
            result |= (coordinate >> map->bits[j] & 1) << j;
        }
    }
    return result;
}

bool lilac_lower_find_sources(lilac_lowering *l, const lilac_lower_view *operand,
                              const lilac_lower_view *result, const lilac_lower_map *map,
                              const uint32_t **source) {
    for (uint32_t i = 0; i < operand->columns.thread_bits; i++) {
        if (lilac_lower_map_apply(map, result->columns.threads[i]) != operand->columns.threads[i]) {
            return false;
        }
    }
    for (uint32_t i = 0; i < operand->columns.block_bits; i++) {
        if (lilac_lower_map_apply(map, result->columns.blocks[i]) != operand->columns.blocks[i]) {
            return false;
        }
    }
    lilac_f2_basis span;
    lilac_f2_basis_init(&span);
    for (uint32_t i = 0; i < operand->columns.register_bits; i++) {
        (void)lilac_f2_basis_add(&span, operand->columns.registers[i], 1ULL << i);
    }
    uint64_t origin = 0;
    if (lilac_f2_basis_reduce(&span, map->constant, &origin) != 0) {
        return false;
    }
    uint64_t steps[LILAC_LAYOUT_MAX_BITS];
    bool same = operand->columns.register_bits == result->columns.register_bits && origin == 0;
    for (uint32_t i = 0; i < result->columns.register_bits; i++) {
        steps[i] = 0;
        if (lilac_f2_basis_reduce(&span, lilac_lower_map_apply(map, result->columns.registers[i]),
                                  &steps[i]) != 0) {
            return false;
        }
        same &= steps[i] == 1ULL << i;
    }
    if (same) {
        *source = NULL;
        return true;
    }
    uint32_t *list = lilac_arena_array(l->arena, uint32_t, result->count);
    list[0] = (uint32_t)origin;
    for (uint32_t r = 1; r < result->count; r++) {
        uint32_t top = highest_bit(r);
        list[r] = list[r ^ (1U << top)] ^ (uint32_t)steps[top];
    }
    *source = list;
    return true;
}

bool lilac_lower_align(lilac_lowering *l, const lilac_lower_value *operand,
                       const lilac_lower_view *view, const uint32_t **source) {
    *source = NULL;
    if (operand->view == view || operand->view == NULL || view == NULL) {
        return true;
    }
    lilac_lower_map map;
    lilac_lower_map_identity(&map, operand->view->columns.out_bits);
    if (operand->view->columns.rank == view->columns.rank &&
        operand->view->columns.out_bits == view->columns.out_bits &&
        lilac_lower_find_sources(l, operand->view, view, &map, source)) {
        return true;
    }
    uint32_t index = 0;
    while (index < l->op->operand_count &&
           &l->values[l->op->operands[index].value->id] != operand) {
        index++;
    }
    return lilac_lower_refuse(l, "layout-conversion",
                              "the layout of operand %u of '%s' places elements in other threads "
                              "than the operation needs",
                              index, lilac_tile_op_info_get(l->op->code)->name);
}

/* A register bit whose column has only bits that change no element does not change the value. */
uint32_t lilac_lower_constant_bits(lilac_lowering *l, const lilac_tile_value *value,
                                   const lilac_lower_view *view) {
    const lilac_axis_facts *facts = lilac_axis_facts_of(&l->facts, value);
    if (view == NULL || facts->rank != view->columns.rank) {
        return 0;
    }
    const uint64_t inside = lilac_axis_same_coordinates(facts, value->type);
    uint32_t mask = 0;
    for (uint32_t i = 0; i < view->columns.register_bits; i++) {
        if ((view->columns.registers[i] & ~inside) == 0) {
            mask |= 1U << i;
        }
    }
    return mask;
}
