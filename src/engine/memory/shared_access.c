/* Plans of the accesses to memory whose layout the engine chooses.
 *
 * The lowering makes the same plan: vectors, or matrix instructions if they cost less, and for
 * asynchronous copies the widest vectors that both memories allow. A vector must not cross the
 * lowest bit of an offset at which a subslice may begin. */
#include "memory/memory_layouts.h"

#include <string.h>

enum { LEAST_COPY_BYTES = 4, MATRIX_ROW_BYTES = 16 };

static uint32_t bits_of(const memory_node *node) {
    const uint32_t bits = lilac_tile_element_bits(node->value->type);
    return bits < 8 ? 8 : bits;
}

/* ---- the layout of the tensor ------------------------------------------------------------- */

/* Adds a register for each bit of the coordinates that the layout does not reach. */
static bool add_registers(lilac_layout *result, const lilac_layout *part,
                          const lilac_layout *small) {
    lilac_layout made;
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    lilac_layout_init(&made);
    bool good = true;
    for (uint32_t d = 0; good && d < part->out_count; d++) {
        good = lilac_layout_add_out(&made, part->out[d].name, part->out[d].bits, NULL);
    }
    for (uint32_t i = 0; good && i < part->in_count; i++) {
        uint32_t bits = part->in[i].bits;
        const uint32_t start = lilac_layout_in_start(part, i);
        memcpy(columns, part->columns + start, bits * sizeof *columns);
        for (uint32_t d = 0; strcmp(part->in[i].name, "register") == 0 && d < part->out_count;
             d++) {
            for (uint32_t k = small->out[d].bits; k < part->out[d].bits; k++) {
                if (bits == LILAC_LAYOUT_MAX_BITS) {
                    return false;
                }
                uint64_t place[LILAC_LAYOUT_MAX_DIMS] = {0};
                place[d] = UINT64_C(1) << k;
                columns[bits++] = lilac_layout_pack(part, place);
            }
        }
        good = lilac_layout_add_in(&made, part->in[i].name, bits, columns, NULL);
    }
    if (good) {
        *result = made;
    }
    return good;
}

bool lilac_shared_access_layout(lilac_layout *result, const memory_graph *graph,
                                const shared_access *access, bool whole) {
    const memory_node *node = &graph->nodes[access->node];
    const lilac_tile_type *type = node->value->type;
    const lilac_layout *small = access->tensor->layout;
    if (small == NULL || small->out_count != type->rank || node->is_array) {
        return false;
    }
    *result = *small;
    for (uint32_t d = 0; d < small->out_count; d++) {
        const int64_t size = type->alloc_shape[type->alloc_rank - type->rank + d];
        if (power_of_two_in(size) != size ||
            !lilac_layout_resize_out(result, result, small->out[d].name, log2_of(size), NULL)) {
            return false;
        }
    }
    return !whole || add_registers(result, result, small);
}

/* ---- asynchronous copies ------------------------------------------------------------------ */

/* log2 of the elements that the attribute `contiguity` promises: the first registers of the layout
 * hold that many elements along one dimension. */
static uint32_t promised_bits(const lilac_tile_op *op, const lilac_layout *layout) {
    const int64_t contiguity = lilac_tile_find_integer(&op->attributes, "contiguity", 1);
    const int in = lilac_layout_in(layout, "register");
    const uint32_t count = in < 0 ? 0 : layout->in[in].bits;
    const uint64_t *columns =
        layout->columns + (in < 0 ? 0 : lilac_layout_in_start(layout, (uint32_t)in));
    uint32_t bits = 0;
    while (bits < 4 && bits < count && 2LL << bits <= contiguity &&
           columns[bits] == columns[0] << bits) {
        bits++;
    }
    for (uint32_t d = 0; d < layout->out_count && bits > 0; d++) {
        if (columns[0] == UINT64_C(1) << lilac_layout_out_start(layout, d)) {
            return bits < layout->out[d].bits ? bits : layout->out[d].bits;
        }
    }
    return 0;
}

/* The registers of the widest legal vector of the access to global memory. */
static void find_global_vector(lilac_plan_global_access *global, const lilac_tile_op *op,
                               const lilac_axis_analysis *axis, const lilac_target *target) {
    lilac_engine_plan_access(global, op, axis, target);
    const uint32_t promised = promised_bits(op, lilac_tile_operand(op, 0)->type->layout);
    for (uint32_t i = 0; promised > global->vector_bits && i < promised; i++) {
        global->vector_register[i] = (uint8_t)i;
    }
    if (promised > global->vector_bits) {
        global->vector_bits = promised;
    }
}

/* The widest vectors that are contiguous in global memory and in memory of a layout. */
static bool plan_vectors(lilac_plan_access *result, const lilac_plan_global_access *global,
                         const lilac_layout *tensor, const lilac_layout *memory,
                         uint32_t element_bits, lilac_arch *arch, lilac_reason *why) {
    for (;;) {
        if (!lilac_plan_access_init(result, tensor, memory, element_bits, arch, why)) {
            return false;
        }
        uint32_t bits = 0;
        while (bits < result->vector_bits && bits < global->vector_bits &&
               result->vector_register[bits] == global->vector_register[bits]) {
            bits++;
        }
        const uint32_t bytes = element_bits / 8 << bits;
        if (bytes < LEAST_COPY_BYTES) {
            return lilac_layout_refuse(why,
                                       "a thread's elements are contiguous for %u bytes in both "
                                       "memories; a copy has 4, 8 or 16 bytes",
                                       bytes);
        }
        if (bits == result->vector_bits) {
            return true;
        }
        arch->vector_bytes = bytes;
    }
}

static bool plan_copy(lilac_plan_access *result, const memory_graph *graph,
                      const shared_access *access, const lilac_layout *layout, lilac_arch *arch,
                      lilac_reason *why) {
    const memory_node *node = &graph->nodes[access->node];
    lilac_plan_global_access global;
    find_global_vector(&global, access->op, &graph->axis, graph->target);
    return plan_vectors(result, &global, layout, &node->layout, bits_of(node), arch, why);
}

bool lilac_shared_copy_exists(const lilac_tile_op *copy, const lilac_layout *memory,
                              const lilac_axis_analysis *axis, const lilac_target *target) {
    const lilac_tile_type *pointers = lilac_tile_operand(copy, 0)->type;
    const uint32_t bits = (uint32_t)lilac_axis_unit(pointers) * 8;
    lilac_arch arch = *target->arch;
    lilac_plan_global_access global;
    lilac_plan_access plan;
    lilac_reason why;
    find_global_vector(&global, copy, axis, target);
    return plan_vectors(&plan, &global, pointers->layout, memory, bits, &arch, &why);
}

/* ---- stores and loads --------------------------------------------------------------------- */

static uint64_t cost_of(const lilac_plan_access *access) {
    return 8 * access->wavefronts + access->instructions;
}

/* Chooses a matrix instruction if it costs less. Its rows must be contiguous and aligned. */
static void try_matrices(lilac_plan_access *plan, const lilac_layout *layout,
                         const lilac_layout *memory, uint64_t shift, uint32_t element_bits,
                         const lilac_arch *arch) {
    static const lilac_plan_instruction instructions[2] = {LILAC_PLAN_MATRIX,
                                                           LILAC_PLAN_MATRIX_TRANSPOSED};
    const uint32_t bytes = element_bits / 8;
    uint64_t size = bytes;
    for (uint32_t d = 0; d < memory->out_count; d++) {
        size <<= memory->out[d].bits;
    }
    const bool aligned = shift * bytes % MATRIX_ROW_BYTES == 0 && size >= MATRIX_ROW_BYTES;
    for (uint32_t i = 0; aligned && i < 2; i++) {
        lilac_plan_access matrix;
        lilac_reason why;
        if (lilac_plan_access_init_matrix(&matrix, layout, memory, instructions[i], element_bits,
                                          arch, &why) &&
            cost_of(&matrix) < cost_of(plan)) {
            *plan = matrix;
        }
    }
}

/* Threads that hold replicas do not store. Those that fill warps or transactions cost nothing. All
 * lanes of a warp execute a matrix instruction. */
static void skip_replicas(lilac_plan_access *plan, const lilac_layout *layout) {
    const uint64_t lanes = lilac_layout_free_bits(layout, "lane");
    uint32_t skipped = (uint32_t)__builtin_popcountll(lilac_layout_free_bits(layout, "warp"));
    plan->instructions >>= skipped;
    plan->wavefronts >>= skipped;
    skipped = 0;
    for (uint32_t i = 0; plan->instruction == LILAC_PLAN_VECTOR && i < plan->lane_bits; i++) {
        skipped += (lanes >> i & 1) != 0 && 1U << i >= plan->transaction_lanes;
    }
    plan->wavefronts >>= skipped;
}

bool lilac_shared_access_plan(lilac_plan_access *result, const memory_graph *graph,
                              const shared_access *access, lilac_reason *why) {
    const memory_node *node = &graph->nodes[access->node];
    const bool copies = access->op->code == LILAC_TILE_OP_TTG_ASYNC_COPY_GLOBAL_TO_LOCAL;
    lilac_arch arch = *graph->target->arch;
    lilac_layout layout;
    if (!lilac_shared_access_layout(&layout, graph, access, false)) {
        return lilac_layout_refuse(why, "the tensor and the memory have different dimensions");
    }
    const uint64_t straight = node->shift & (~node->shift + 1);
    if (straight != 0 && straight * bits_of(node) / 8 < arch.vector_bytes) {
        arch.vector_bytes = (uint32_t)straight * bits_of(node) / 8;
    }
    if (copies
            ? !plan_copy(result, graph, access, &layout, &arch, why)
            : !lilac_plan_access_init(result, &layout, &node->layout, bits_of(node), &arch, why)) {
        return false;
    }
    if (access->loads) {
        lilac_plan_access_as_load(result, graph->target->arch);
    }
    if (!copies && lilac_arch_has(graph->target->arch,
                                  access->loads ? LILAC_HAS_LDMATRIX : LILAC_HAS_STMATRIX)) {
        try_matrices(result, &layout, &node->layout, node->shift, bits_of(node),
                     graph->target->arch);
    }
    if (!access->loads) {
        skip_replicas(result, &layout);
    }
    return true;
}

int64_t lilac_shared_access_cycles(const lilac_plan_access *plan, bool loads,
                                   const lilac_arch *arch) {
    lilac_plan_price price = {0};
    if (loads) {
        price.loads = plan->instructions;
        price.load_wavefronts = plan->wavefronts;
    } else {
        price.stores = plan->instructions;
        price.store_wavefronts = plan->wavefronts;
    }
    return (int64_t)lilac_plan_price_cycles(&price, LILAC_PLAN_BARRIER_WARP, arch);
}

int64_t lilac_shared_read_cycles(const lilac_layout *tensor, const lilac_layout *memory,
                                 uint32_t element_bits, const lilac_arch *arch) {
    lilac_plan_access plan;
    lilac_reason why;
    if (!lilac_plan_access_init(&plan, tensor, memory, element_bits, arch, &why)) {
        return INT64_MAX;
    }
    lilac_plan_access_as_load(&plan, arch);
    try_matrices(&plan, tensor, memory, 0, element_bits, arch);
    return lilac_shared_access_cycles(&plan, true, arch);
}
