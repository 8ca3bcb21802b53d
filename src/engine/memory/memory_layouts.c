/* Layouts of shared memory, chosen by price.
 *
 *     %m = ttg.local_alloc %v : (tensor<64x64xf32, #a>) -> !ttg.memdesc<64x64xf32, #smem>
 *     %w = ttg.local_load %m : !ttg.memdesc<64x64xf32, #smem> -> tensor<64x64xf32, #b>
 *   →
 *     %m = ttg.local_alloc %v {lilac.memory = "…"}
 *              : (tensor<64x64xf32, #a>) -> !ttg.memdesc<64x64xf32, #ttg.shared_linear<{…}>, #smem>
 *
 * One layout determines all layouts of a group (memory_graph.c). If the type of a value of the
 * group has a layout, the group keeps it. Otherwise the candidates are the rows of a table:
 *
 *     row-major            one for each order of the dimensions
 *     swizzled_shared      Triton's form: pieces of a row xored with the number of the row
 *     optimal swizzle      of the plan component, for each pair of a storing and a loading layout
 *     nvmma_shared         the only ones for operands of wgmma: rows of 128, 64 or 32 bytes, swizzled,
 *                          along either dimension
 *
 * In a cluster a candidate is the layout of the part of one block, which all accesses must agree about.
 *
 * The price of a candidate is the sum of the clocks of the plans of all accesses, weighted by the
 * estimated trip counts of the enclosing loops. The first of the cheapest candidates is chosen. A
 * candidate is excluded if one of its accesses cannot be lowered. */
#include "memory/memory_layouts.h"

#include <stdio.h>
#include <string.h>

enum { MOST_ORDERED_RANK = 4, MOST_SIDES = 8, NAME_BYTES = 128 };

typedef struct memory_choice {
    memory_graph *graph;
    uint32_t group;
    uint32_t first;               /* node whose coordinates the candidates have: an allocation */
    const lilac_tile_op *refused; /* an operation that refuses a candidate, and its reason */
    lilac_reason why;
    uint64_t
        blocks[LILAC_LAYOUT_MAX_BITS]; /* columns of the blocks of the cluster: each block stores
                                               and loads its own part of the elements */
    bool found;
    int64_t cycles; /* of the best candidate */
    lilac_layout best;
    const lilac_encoding *encoding; /* its named form; NULL: none */
    char name[NAME_BYTES];
} memory_choice;

/* ---- the price of a candidate ------------------------------------------------------------- */

static bool is_member(const memory_choice *choice, uint32_t node) {
    return lilac_memory_group(choice->graph, node) == choice->group;
}

/* Gives every node of the group its layout. */
static bool install(memory_choice *choice, const lilac_layout *layout,
                    const lilac_encoding *encoding) {
    memory_node *first = &choice->graph->nodes[choice->first];
    lilac_memory_forget(choice->graph, choice->group);
    first->layout = *layout;
    first->encoding = encoding;
    first->has_layout = true;
    const lilac_tile_op *conflict = lilac_memory_spread(choice->graph, choice->group);
    if (conflict != NULL) {
        choice->refused = conflict;
        (void)snprintf(choice->why.text, sizeof choice->why.text,
                       "its memory would need two different layouts");
        return false;
    }
    lilac_memory_find_shifts(choice->graph, choice->group);
    return true;
}

/* The weighted clocks of all accesses of the group. */
static bool price(memory_choice *choice, int64_t *cycles) {
    const memory_graph *graph = choice->graph;
    *cycles = 0;
    for (uint32_t i = 0; i < graph->access_count; i++) {
        const shared_access *access = &graph->access_list[i];
        lilac_plan_access plan;
        if (!is_member(choice, access->node)) {
            continue;
        }
        if (!lilac_shared_access_plan(&plan, graph, access, &choice->why)) {
            choice->refused = access->op;
            return false;
        }
        *cycles +=
            access->weight * lilac_shared_access_cycles(&plan, access->loads, graph->target->arch);
    }
    return true;
}

/* Can all products read their operands? */
static bool check_products(memory_choice *choice) {
    const memory_graph *graph = choice->graph;
    for (uint32_t i = 0; i < graph->product_count; i++) {
        const shared_product *product = &graph->product_list[i];
        if (is_member(choice, product->node) &&
            !lilac_shared_product_fits(graph, product, &choice->why)) {
            choice->refused = product->op;
            return false;
        }
    }
    return true;
}

static void consider(memory_choice *choice, const lilac_layout *layout,
                     const lilac_encoding *encoding, const char *name) {
    int64_t cycles;
    if (!lilac_memory_fits(&choice->graph->nodes[choice->first], layout) ||
        !install(choice, layout, encoding) || !check_products(choice) || !price(choice, &cycles) ||
        (choice->found && cycles >= choice->cycles)) {
        return;
    }
    choice->found = true;
    choice->cycles = cycles;
    choice->best = *layout;
    choice->encoding = encoding;
    (void)snprintf(choice->name, sizeof choice->name, "%s", name);
}

/* ---- blocks of a cluster ------------------------------------------------------------------ */

/* The shape of the part of a block. */
static void find_part(int64_t *part, uint32_t rank, const int64_t *shape, uint32_t block_bits,
                      const uint64_t *blocks) {
    uint32_t start = 0;
    for (uint32_t d = 0; d < rank; d++) {
        part[d] = shape[d];
        for (uint32_t i = 0; i < block_bits; i++) {
            part[d] /= (blocks[i] >> start & low_bits(log2_of(shape[d]))) != 0 ? 2 : 1;
        }
        start += log2_of(shape[d]);
    }
}

bool lilac_memory_of_part(lilac_layout *result, lilac_context *context,
                          const lilac_encoding *encoding, uint32_t rank, const int64_t *shape,
                          uint32_t block_bits, const uint64_t *blocks) {
    uint32_t sizes[LILAC_MAX_RANK];
    int64_t part[LILAC_MAX_RANK];
    lilac_reason why;
    if (block_bits == 0) {
        return lilac_encoding_layout(context, result, encoding, rank, shape);
    }
    find_part(part, rank, shape, block_bits, blocks);
    for (uint32_t d = 0; d < rank; d++) {
        sizes[d] = log2_of(shape[d]);
        if (part[d] < 1) {
            return false;
        }
    }
    return lilac_encoding_layout(context, result, encoding, rank, part) &&
           lilac_layout_add_blocks(result, result, sizes, block_bits, blocks, &why);
}

static uint32_t block_bits(const memory_choice *choice) {
    return log2_of(choice->graph->target->num_ctas);
}

static bool layout_of(const memory_choice *choice, lilac_layout *result,
                      const lilac_encoding *encoding, uint32_t rank, const int64_t *shape) {
    return lilac_memory_of_part(result, choice->graph->function->module->context, encoding, rank,
                                shape, block_bits(choice), choice->blocks);
}

/* ---- row-major and Triton's swizzles ------------------------------------------------------ */

/* Pieces of `vec_bytes` of a row are xored with `phases` consecutive values. 0: row-major. */
typedef struct swizzle_row {
    uint32_t vec_bytes, phases;
} swizzle_row;

static const swizzle_row row_major[] = {{0, 1}};
static const swizzle_row swizzles[] = {
    /* vec_bytes | phases */
    {16, 8}, {16, 4}, {16, 2},                 /**/
    {8, 16}, {8, 8},  {8, 4},  {8, 2},         /**/
    {4, 32}, {4, 16}, {4, 8},  {4, 4}, {4, 2}, /**/
    {2, 64}, {2, 32}, {2, 16}, {2, 8},         /**/
};

static void put_name(char *name, uint32_t rank, const uint32_t *order, const uint32_t *numbers) {
    size_t n =
        (size_t)snprintf(name, NAME_BYTES, "%s", numbers[2] > 1 ? "swizzled_shared" : "row-major");
    if (numbers[2] > 1) {
        n += (size_t)snprintf(name + n, NAME_BYTES - n, " vec %u, perPhase %u, maxPhase %u",
                              numbers[0], numbers[1], numbers[2]);
    }
    for (uint32_t d = 0; d < rank; d++) {
        n += (size_t)snprintf(name + n, NAME_BYTES - n, "%s%u", d == 0 ? ", order [" : ", ",
                              order[d]);
    }
    (void)snprintf(name + n, NAME_BYTES - n, "]");
}

/* A row of the table for one order of the dimensions, if it fits the shape. */
static void consider_row(memory_choice *choice, const swizzle_row *row, uint32_t rank,
                         const int64_t *shape, const uint32_t *order) {
    const memory_graph *graph = choice->graph;
    const lilac_arch *arch = graph->target->arch;
    const lilac_tile_type *type = graph->nodes[choice->first].value->type;
    const uint32_t bits = max_u32(lilac_tile_element_bits(type), 8);
    int64_t part[LILAC_MAX_RANK];
    find_part(part, rank, shape, block_bits(choice), choice->blocks);
    const uint64_t row_bytes = (uint64_t)part[order[0]] * bits / 8;
    const uint64_t bank_row = (uint64_t)arch->banks * arch->bank_bytes;
    /* vec, perPhase, maxPhase */
    uint32_t numbers[3] = {row->vec_bytes * 8 / bits, 1, row->phases};
    if (row->phases > 1) {
        numbers[1] = row_bytes < bank_row ? (uint32_t)(bank_row / row_bytes) : 1;
        if (numbers[0] == 0 || rank < 2 || (uint64_t)row->vec_bytes * row->phases > row_bytes ||
            (int64_t)numbers[1] * row->phases > part[order[1]]) {
            return;
        }
    } else {
        numbers[0] = 1;
    }
    lilac_encoding encoding;
    lilac_layout layout;
    char name[NAME_BYTES];
    lilac_encoding_swizzled_shared(&encoding, rank, numbers[0], numbers[1], numbers[2], order);
    if (!layout_of(choice, &layout, &encoding, rank, shape)) {
        return;
    }
    put_name(name, rank, order, numbers);
    consider(choice, &layout, NULL, name);
}

/* The next permutation in descending order; false: there is none. */
static bool next_order(uint32_t *order, uint32_t rank) {
    uint32_t i = rank, k = rank;
    while (i > 1 && order[i - 2] <= order[i - 1]) {
        i--;
    }
    if (i <= 1) {
        return false;
    }
    while (order[k - 1] >= order[i - 2]) {
        k--;
    }
    uint32_t swapped = order[i - 2];
    order[i - 2] = order[k - 1];
    order[k - 1] = swapped;
    for (uint32_t a = i - 1, b = rank - 1; a < b; a++, b--) {
        swapped = order[a];
        order[a] = order[b];
        order[b] = swapped;
    }
    return true;
}

static void consider_rows(memory_choice *choice, const swizzle_row *rows, size_t count) {
    const memory_node *first = &choice->graph->nodes[choice->first];
    const lilac_tile_type *type = first->value->type;
    const uint32_t rank = type->rank - first->is_array;
    const int64_t *shape = type->alloc_shape + type->alloc_rank - rank;
    uint32_t order[LILAC_MAX_RANK];
    if (rank == 0) {
        return;
    }
    for (uint32_t d = 0; d < rank; d++) {
        order[d] = rank - 1 - d;
        if (shape[d] < 1 || power_of_two_in(shape[d]) != shape[d]) {
            return;
        }
    }
    do {
        for (size_t i = 0; i < count; i++) {
            consider_row(choice, &rows[i], rank, shape, order);
        }
    } while (rank <= MOST_ORDERED_RANK && next_order(order, rank));
}

/* ---- optimal swizzles --------------------------------------------------------------------- */

typedef struct access_side {
    const lilac_tile_op *op; /* the first with this layout */
    lilac_layout layout;     /* of the tensor, in the coordinates of the first node */
} access_side;

/* The layout of the access's tensor as a tensor of the first node's shape would have it. */
static bool bring_to_first(memory_choice *choice, const shared_access *access,
                           lilac_layout *result) {
    memory_graph *graph = choice->graph;
    memory_node *node = &graph->nodes[access->node];
    lilac_memory_forget(graph, choice->group);
    if (!lilac_shared_access_layout(&node->layout, graph, access, true)) {
        return false;
    }
    node->encoding = NULL;
    node->has_layout = true;
    if (lilac_memory_spread(graph, choice->group) != NULL ||
        !graph->nodes[choice->first].has_layout) {
        return false;
    }
    lilac_layout_drop_free(result, &graph->nodes[choice->first].layout, "register");
    return true;
}

static uint32_t list_sides(memory_choice *choice, bool loads, access_side *sides) {
    const memory_graph *graph = choice->graph;
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->access_count && count < MOST_SIDES; i++) {
        const shared_access *access = &graph->access_list[i];
        if (access->loads != loads || !is_member(choice, access->node) ||
            !bring_to_first(choice, access, &sides[count].layout)) {
            continue;
        }
        bool known = false;
        for (uint32_t k = 0; k < count; k++) {
            known |= lilac_layout_equal(&sides[k].layout, &sides[count].layout);
        }
        if (!known) {
            sides[count++].op = access->op;
        }
    }
    return count;
}

static void consider_pair(memory_choice *choice, const access_side *store,
                          const access_side *load) {
    const memory_graph *graph = choice->graph;
    const lilac_arch *arch = graph->target->arch;
    const lilac_tile_type *type = graph->nodes[choice->first].value->type;
    const uint32_t bits = max_u32(lilac_tile_element_bits(type), 8);
    const lilac_plan_options options = {.scratch_bytes = arch->shared_bytes};
    lilac_plan_staging_step step;
    lilac_reason why;
    if (!lilac_plan_staging_init(&step, &store->layout, &load->layout, bits, &options, arch,
                                 &why) ||
        !lilac_layout_is_bijective(&step.staging.memory)) {
        return;
    }
    char name[NAME_BYTES];
    (void)snprintf(name, sizeof name, "optimal swizzle of %s and %s",
                   lilac_tile_op_info_get(store->op->code)->name,
                   lilac_tile_op_info_get(load->op->code)->name);
    consider(choice, &step.staging.memory, NULL, name);
}

static void consider_pairs(memory_choice *choice) {
    access_side *stores = lilac_arena_array(choice->graph->arena, access_side, 2 * MOST_SIDES + 2);
    access_side *loads = stores + MOST_SIDES + 1;
    const uint32_t store_count = list_sides(choice, false, stores);
    const uint32_t load_count = list_sides(choice, true, loads);
    for (uint32_t s = 0; s < store_count; s++) {
        for (uint32_t l = 0; l < load_count; l++) {
            consider_pair(choice, &stores[s], &loads[l]);
        }
    }
}

/* Sets the blocks of the first node: those of the tensors that are stored and loaded. False: they differ. */
static bool find_blocks(memory_choice *choice) {
    const memory_graph *graph = choice->graph;
    bool known = block_bits(choice) == 0;
    for (uint32_t i = 0; i < graph->access_count && block_bits(choice) > 0; i++) {
        const shared_access *access = &graph->access_list[i];
        lilac_layout layout;
        uint64_t columns[LILAC_LAYOUT_MAX_BITS] = {0};
        if (!is_member(choice, access->node) || !bring_to_first(choice, access, &layout)) {
            continue;
        }
        (void)lilac_layout_block_columns(columns, &layout);
        if (known && memcmp(columns, choice->blocks, block_bits(choice) * sizeof *columns) != 0) {
            choice->refused = access->op;
            (void)snprintf(choice->why.text, sizeof choice->why.text,
                           "the blocks of the cluster would hold other parts of the tensor than of "
                           "its memory");
            return false;
        }
        memcpy(choice->blocks, columns, sizeof columns);
        known = true;
    }
    return true;
}

/* ---- operands of wgmma -------------------------------------------------------------------- */

static bool has_products(const memory_choice *choice) {
    for (uint32_t i = 0; i < choice->graph->product_count; i++) {
        if (is_member(choice, choice->graph->product_list[i].node)) {
            return true;
        }
    }
    return false;
}

/* Rows of `width` bytes along the last dimension, or (transposed) the one before it. */
static void consider_matrix(memory_choice *choice, uint32_t width, bool transposed) {
    const memory_node *first = &choice->graph->nodes[choice->first];
    lilac_tile_module *module = choice->graph->function->module;
    const lilac_tile_type *type = first->value->type;
    const uint32_t rank = type->rank - first->is_array;
    const int64_t *shape = type->alloc_shape + type->alloc_rank - rank;
    const uint32_t bits = lilac_tile_element_bits(type);
    lilac_encoding *encoding = lilac_arena_new(module->arena, lilac_encoding);
    lilac_layout layout;
    char name[NAME_BYTES];
    int64_t part[LILAC_MAX_RANK];
    find_part(part, rank, shape, block_bits(choice), choice->blocks);
    if (rank != 2 || part[transposed ? 0 : 1] * bits / 8 < width || part[transposed ? 1 : 0] < 8) {
        return;
    }
    lilac_encoding_nvmma_shared(encoding, rank, width, transposed, bits, false);
    if (!layout_of(choice, &layout, encoding, rank, shape)) {
        return;
    }
    (void)snprintf(name, sizeof name, "nvmma_shared of %u bytes%s", width,
                   transposed ? ", transposed" : "");
    consider(choice, &layout, block_bits(choice) == 0 ? encoding : NULL, name);
}

/* The widest swizzle first: it has the fewest bank conflicts. */
static void consider_matrices(memory_choice *choice) {
    for (uint32_t width = 128; width >= 32; width /= 2) {
        consider_matrix(choice, width, false);
        consider_matrix(choice, width, true);
    }
}

/* ---- decisions ---------------------------------------------------------------------------- */

static bool refuse(const memory_choice *choice, const lilac_tile_op *op, const char *id,
                   const char *why) {
    lilac_error(choice->graph->function->module->context, lilac_tile_position(op), op->location, id,
                "'%s': %s", lilac_tile_op_info_get(op->code)->name, why);
    return false;
}

/* Does the operation use memory of this group? */
static bool uses_group(const memory_choice *choice, const lilac_tile_op *op) {
    bool uses = false;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        const uint32_t node = choice->graph->node_of[op->operands[i].value->id];
        uses |= node != 0 && is_member(choice, node - 1);
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        const uint32_t node = choice->graph->node_of[op->results[i].id];
        uses |= node != 0 && is_member(choice, node - 1);
    }
    return uses;
}

static bool check_operations(const memory_choice *choice) {
    for (uint32_t i = 0; i < choice->graph->other_count; i++) {
        const lilac_tile_op *op = choice->graph->other_list[i];
        if (uses_group(choice, op)) {
            return refuse(choice, op, "memory-without-layout",
                          "it uses memory whose type has no layout; layouts are chosen for memory "
                          "that only local_alloc, local_store, local_load and "
                          "async_copy_global_to_local access");
        }
    }
    return true;
}

/* The layouts that types of the group have; whether there is one. */
static bool install_pinned(memory_choice *choice) {
    memory_graph *graph = choice->graph;
    bool pinned = false;
    lilac_memory_forget(graph, choice->group);
    for (uint32_t i = 0; i < graph->node_count; i++) {
        memory_node *node = &graph->nodes[i];
        const lilac_tile_type *type = node->value->type;
        if (is_member(choice, i) && type->layout != NULL) {
            node->layout = *type->layout;
            node->encoding = type->encoding;
            node->has_layout = pinned = true;
        }
    }
    return pinned;
}

static bool choose(memory_choice *choice) {
    if (!find_blocks(choice)) {
        return refuse(choice, choice->refused, "memory-without-layout", choice->why.text);
    }
    if (has_products(choice)) {
        consider_matrices(choice);
    } else {
        consider_rows(choice, row_major, sizeof row_major / sizeof *row_major);
        consider_rows(choice, swizzles, sizeof swizzles / sizeof *swizzles);
        consider_pairs(choice);
    }
    if (choice->found) {
        return install(choice, &choice->best, choice->encoding);
    }
    const lilac_tile_value *value = choice->graph->nodes[choice->first].value;
    if (choice->refused != NULL) {
        return refuse(choice, choice->refused, "memory-without-layout", choice->why.text);
    }
    lilac_error(choice->graph->function->module->context,
                value->op != NULL ? lilac_tile_position(value->op)
                                  : choice->graph->function->position,
                value->op != NULL ? value->op->location : value->location, "shape",
                "no layout covers memory of this shape: the dimensions of a buffer must be powers "
                "of two");
    return false;
}

/* ---- rewriting ---------------------------------------------------------------------------- */

static void set_type(lilac_tile_module *module, memory_node *node) {
    const lilac_tile_type *type = node->value->type;
    lilac_encoding_memdesc memory = {.rank = type->rank,
                                     .alloc_rank = type->alloc_rank,
                                     .scalar = type->scalar,
                                     .is_mutable = type->is_mutable,
                                     .encoding = node->encoding,
                                     .layout = node->layout};
    memcpy(memory.shape, type->shape, type->rank * sizeof *type->shape);
    memcpy(memory.alloc_shape, type->alloc_shape, type->alloc_rank * sizeof *type->alloc_shape);
    node->value->type = lilac_tile_memory(module, &memory);
}

static void apply(const memory_choice *choice, bool pinned) {
    lilac_tile_module *module = choice->graph->function->module;
    for (uint32_t i = 0; i < choice->graph->node_count; i++) {
        memory_node *node = &choice->graph->nodes[i];
        if (!is_member(choice, i) || node->value->type->layout != NULL || !node->has_layout) {
            continue;
        }
        set_type(module, node);
        lilac_tile_op *op = node->value->op;
        if (!pinned && op != NULL && op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC) {
            const lilac_tile_attribute name = {
                .kind = LILAC_TILE_ATTR_STRING,
                .name = lilac_intern_string(module->context, "lilac.memory"),
                .text = lilac_intern_string(module->context, choice->name)};
            lilac_tile_set_attribute(module, &op->attributes, &name);
        }
    }
}

static bool assign_group(memory_graph *graph, uint32_t group) {
    memory_choice choice = {.graph = graph, .group = group, .first = group};
    bool missing = false;
    for (uint32_t i = graph->node_count; i-- > 0;) {
        const lilac_tile_value *value = graph->nodes[i].value;
        if (is_member(&choice, i)) {
            missing |= value->type->layout == NULL;
            if (value->op != NULL && value->op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC) {
                choice.first = i;
            }
        }
    }
    if (!missing) {
        return true;
    }
    if (!check_operations(&choice)) {
        return false;
    }
    const bool pinned = install_pinned(&choice);
    if (pinned) {
        const lilac_tile_op *conflict = lilac_memory_spread(graph, group);
        if (conflict != NULL) {
            return refuse(&choice, conflict, "layout-mismatch",
                          "the layouts of its memory do not follow from those that the types of "
                          "other values have");
        }
    } else if (!choose(&choice)) {
        return false;
    }
    apply(&choice, pinned);
    return true;
}

static void find_missing(void *data, lilac_tile_op *op) {
    bool *missing = data;
    for (uint32_t i = 0; i < op->result_count; i++) {
        const lilac_tile_type *type = op->results[i].type;
        *missing |= type->kind == LILAC_TILE_MEMDESC && type->layout == NULL;
    }
}

bool lilac_assign_memory_layouts(lilac_tile_function *function, const lilac_target *target,
                                 bool *changed) {
    bool missing = false, good = true;
    for (uint32_t i = 0; i < function->parameter_count; i++) {
        const lilac_tile_type *type = function->parameters[i]->type;
        missing |= type->kind == LILAC_TILE_MEMDESC && type->layout == NULL;
    }
    lilac_tile_walk(function->body, find_missing, &missing);
    if (!missing) {
        return true;
    }
    *changed = true;
    memory_graph graph;
    lilac_arena *arena = lilac_arena_create();
    lilac_memory_graph_init(&graph, arena, function, target);
    for (uint32_t i = 0; good && i < graph.node_count; i++) {
        good = lilac_memory_group(&graph, i) != i || assign_group(&graph, i);
    }
    lilac_arena_destroy(arena);
    return good;
}

/* ---- report ------------------------------------------------------------------------------- */

static void describe(lilac_memory_layout *result, memory_graph *graph, uint32_t node) {
    const uint32_t group = lilac_memory_group(graph, node);
    lilac_memory_find_shifts(graph, group);
    for (uint32_t i = 0; i < graph->access_count; i++) {
        const shared_access *access = &graph->access_list[i];
        lilac_plan_access plan;
        lilac_reason why;
        if (lilac_memory_group(graph, access->node) != group ||
            !lilac_shared_access_plan(&plan, graph, access, &why)) {
            continue;
        }
        const uint64_t wavefronts = plan.wavefronts * (uint64_t)access->weight;
        *(access->loads ? &result->load_wavefronts : &result->store_wavefronts) += wavefronts;
        result->cycles +=
            access->weight * lilac_shared_access_cycles(&plan, access->loads, graph->target->arch);
    }
}

void lilac_engine_memory_layouts(lilac_memory_layout_report *result, lilac_arena *arena,
                                 lilac_tile_function *function, const lilac_target *target) {
    *result = (lilac_memory_layout_report){.count = 0};
    if (function->body == NULL) {
        return;
    }
    memory_graph graph;
    lilac_memory_graph_init(&graph, arena, function, target);
    lilac_memory_layout *list = lilac_arena_array(arena, lilac_memory_layout, graph.node_count + 1);
    bool *described = lilac_arena_array(arena, bool, graph.node_count + 1);
    for (uint32_t i = 0; i < graph.node_count; i++) {
        memory_node *node = &graph.nodes[i];
        node->has_layout = node->value->type->layout != NULL;
        if (node->has_layout) {
            node->layout = *node->value->type->layout;
        }
    }
    for (uint32_t i = 0; i < graph.node_count; i++) {
        const lilac_tile_op *op = graph.nodes[i].value->op;
        const lilac_name name =
            op == NULL ? NULL : lilac_tile_find_text(&op->attributes, "lilac.memory");
        const uint32_t group = lilac_memory_group(&graph, i);
        if (name != NULL && graph.nodes[i].has_layout && !described[group]) {
            described[group] = true;
            list[result->count] = (lilac_memory_layout){.op = op, .name = name};
            describe(&list[result->count++], &graph, i);
        }
    }
    result->layouts = list;
}
