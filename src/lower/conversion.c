/* Executes conversion plans: lilac_lower_movement, and the kernel that contains one plan only.
 *
 *   values ──pack──▶ words ──▶ step ──▶ step ──▶ … ──▶ words ──unpack──▶ values
 *
 * Register permutations and shuffles are networks on words. Values of 64 bits that are only
 * permuted, stored and loaded are not split. An exchange is, for each of its rounds,
 *
 *   stores  ‖ barrier ‖  loads          and between rounds one more barrier
 *
 * because all rounds use the same bytes. After loads from other blocks the cluster waits once
 * more, so that no block exits or writes again while others read its memory. */
#include "coordinates.h"
#include "memory/shared_access.h"

#include <string.h>

typedef struct walk {
    lilac_simt_builder *b;
    lilac_arena *arena;
    const lilac_plan_conversion *plan;
    uint64_t scratch;
    lilac_lower_words words;
} walk;

/* ---- exchanges -------------------------------------------------------------------------- */

/* Warps that differ in these bits share no byte of the exchange's memory. */
static uint32_t disjoint_warps(const lilac_plan_staging *staging, uint32_t warp_bits) {
    bool disjoint =
        staging->barrier == LILAC_PLAN_BARRIER_WARP || staging->barrier == LILAC_PLAN_BARRIER_GROUP;
    return disjoint ? ((1U << warp_bits) - 1) & ~staging->barrier_warps : 0;
}

/* The largest number of groups with named barriers. With more groups the whole block waits. */
enum { MAX_GROUPS = 8 };

void lilac_lower_staging_barrier(lilac_simt_builder *b, const lilac_plan_staging *staging,
                                 uint32_t lane_bits, uint32_t warp_bits) {
    uint32_t others = ((1U << warp_bits) - 1) & ~staging->barrier_warps;
    uint32_t groups = 1U << __builtin_popcount(others);
    if (staging->barrier == LILAC_PLAN_BARRIER_WARP || (warp_bits == 0 && !staging->remote)) {
        lilac_simt_warp_barrier(b);
    } else if (staging->barrier == LILAC_PLAN_BARRIER_CLUSTER) {
        lilac_simt_cluster_barrier(b);
    } else if (staging->barrier == LILAC_PLAN_BARRIER_GROUP && groups > 1 && groups <= MAX_GROUPS) {
        uint64_t columns[LILAC_LAYOUT_MAX_BITS] = {0};
        uint32_t next = 0;
        for (uint32_t i = 0; i < warp_bits; i++) {
            if (others >> i & 1) {
                columns[lane_bits + i] = 1ULL << next++;
            }
        }
        lilac_simt_value number = lilac_lower_linear(b, lane_bits + warp_bits, columns, 0, NULL);
        lilac_simt_group_barrier_partition(b, number, (1U << (lane_bits + warp_bits)) / groups,
                                           others);
    } else {
        lilac_simt_barrier(b);
    }
}

static void barrier(const walk *w) {
    lilac_lower_staging_barrier(w->b, &w->plan->staging, w->plan->lane_bits, w->plan->warp_bits);
}

static uint32_t registers_of_round(const uint8_t *bits, uint32_t count, uint32_t round) {
    uint32_t registers = 0;
    for (uint32_t i = 0; i < count; i++) {
        registers |= (round >> i & 1) << bits[i];
    }
    return registers;
}

static void execute_staging(walk *w) {
    const lilac_plan_staging *staging = &w->plan->staging;
    const lilac_plan_access *load = &staging->load;
    lilac_lower_words loaded =
        lilac_lower_words_like(load->vector_bits + load->step_bits + staging->round_bits,
                               w->words.element_bits, w->words.wide);
    lilac_lower_parts parts = {0};
    for (uint32_t round = 0; round >> staging->round_bits == 0; round++) {
        if (round > 0) {
            barrier(w);
        }
        lilac_lower_place place = {
            .offset = w->scratch,
            .bytes = staging->bytes,
            .disjoint_warps = disjoint_warps(staging, w->plan->warp_bits),
            .replicas = staging->store_copies << w->plan->lane_bits | staging->store_copy_lanes,
            .registers = registers_of_round(staging->store_round, staging->round_bits, round)};
        lilac_lower_store_access(w->b, w->arena, &staging->store, &place, &w->words);
        barrier(w);
        place.registers = registers_of_round(staging->load_round, staging->round_bits, round);
        place.blocks = staging->load_offset_block;
        place.remote = staging->remote ? staging : NULL;
        lilac_lower_load_access(w->b, w->arena, load, &place, &loaded, &parts);
    }
    if (staging->remote) {
        barrier(w);
    }
    lilac_lower_join_parts(w->b, w->arena, &parts, &loaded);
    w->words = loaded;
}

/* ---- plans ------------------------------------------------------------------------------- */

static bool execute_step(walk *w, uint32_t step) {
    const lilac_plan_conversion *plan = w->plan;
    uint32_t index = plan->step[step].index;
    uint32_t thread_bits = plan->lane_bits + plan->warp_bits;
    lilac_plan_network network;
    uint32_t register_bits;
    switch (plan->step[step].kind) {
    case LILAC_PLAN_STEP_PERMUTATION:
        if (!lilac_plan_expand_permutation(&network, w->arena, &plan->permutation[index],
                                           w->words.element_bits)) {
            return false;
        }
        register_bits = plan->permutation[index].bits;
        break;
    case LILAC_PLAN_STEP_SHUFFLE:
        if (!lilac_plan_expand_shuffle(&network, w->arena, &plan->shuffle[index],
                                       w->words.element_bits)) {
            return false;
        }
        register_bits = plan->shuffle[index].after_bits;
        break;
    default:
        execute_staging(w);
        return true;
    }
    lilac_lower_network(w->b, w->arena, &network, thread_bits, register_bits, &w->words);
    return true;
}

/* Do values of 64 bits stay whole? Matrices and shuffles move words. */
static bool stays_whole(const lilac_plan_conversion *plan) {
    for (uint32_t i = 0; i < plan->step_count; i++) {
        bool staging = plan->step[i].kind == LILAC_PLAN_STEP_STAGING;
        if (plan->step[i].kind == LILAC_PLAN_STEP_SHUFFLE ||
            (staging && (plan->staging.store.instruction != LILAC_PLAN_VECTOR ||
                         plan->staging.load.instruction != LILAC_PLAN_VECTOR))) {
            return false;
        }
    }
    return true;
}

bool lilac_lower_movement(lilac_simt_builder *builder, lilac_arena *arena,
                          const lilac_plan_conversion *plan, lilac_simt_type type,
                          const lilac_simt_value *values, uint64_t scratch,
                          lilac_simt_value *results) {
    walk w = {.b = builder, .arena = arena, .plan = plan, .scratch = scratch};
    (stays_whole(plan) ? lilac_lower_pack_wide : lilac_lower_pack_words)(
        builder, arena, type, plan->register_bits, plan->element_bits, values, &w.words);
    for (uint32_t i = 0; i < plan->step_count; i++) {
        if (!execute_step(&w, i)) {
            return false;
        }
    }
    lilac_lower_unpack_words(builder, type, &w.words, results);
    return true;
}

/* ---- a kernel of one plan ---------------------------------------------------------------- */

/* The address of a thread's registers: base + ((block << thread bits) + thread) * bytes. */
static lilac_simt_value address_of_thread(lilac_simt_builder *b, const lilac_plan_conversion *plan,
                                          uint32_t parameter, uint64_t bytes) {
    const lilac_simt_instruction like = {.code = LILAC_SIMT_OP_CTA};
    lilac_simt_type word = LILAC_SIMT_I32;
    lilac_simt_value index = lilac_simt_thread(b);
    if (plan->block_bits > 0) {
        lilac_simt_value block = lilac_simt_build(b, &like, 0, NULL, 1, &word);
        block = lilac_simt_op2(b, LILAC_SIMT_OP_SHL, word, block,
                               lilac_simt_constant(b, word, plan->lane_bits + plan->warp_bits));
        index = lilac_simt_op2(b, LILAC_SIMT_OP_ADD, word, block, index);
    }
    lilac_simt_value offset = lilac_simt_op2(b, LILAC_SIMT_OP_MULWIDE_U, LILAC_SIMT_I64, index,
                                             lilac_simt_constant(b, word, bytes));
    return lilac_simt_op2(b, LILAC_SIMT_OP_ADD, LILAC_SIMT_I64,
                          lilac_simt_parameter_value(b, parameter), offset);
}

/* A thread's bytes in global memory, as accesses of up to 16: `unit` bytes an element of an access,
 * `count` elements. */
typedef struct piece {
    lilac_simt_type type;
    uint32_t unit, count, accesses;
} piece;

static piece piece_of(uint64_t bytes) {
    piece p = {.unit = bytes < 4 ? (uint32_t)bytes : 4};
    p.type = p.unit == 1 ? LILAC_SIMT_I8 : p.unit == 2 ? LILAC_SIMT_I16 : LILAC_SIMT_I32;
    p.count = bytes < 16 ? (uint32_t)bytes / p.unit : 4;
    p.accesses = (uint32_t)(bytes / ((uint64_t)p.unit * p.count));
    return p;
}

static void load_words(lilac_simt_builder *b, lilac_simt_value address, uint64_t bytes,
                       lilac_simt_value *words) {
    piece p = piece_of(bytes);
    for (uint32_t i = 0; i < p.accesses; i++) {
        lilac_simt_value first =
            lilac_simt_load(b, LILAC_SIMT_OP_LD_GLOBAL, p.type, p.count, address,
                            (int64_t)i * p.unit * p.count, 0, NULL, NULL);
        for (uint32_t k = 0; k < p.count; k++) {
            words[i * p.count + k] = first + k;
        }
    }
    if (p.unit < 4) {
        words[0] = lilac_simt_op1(b, LILAC_SIMT_OP_ZEXT, LILAC_SIMT_I32, words[0]);
    }
}

static void store_words(lilac_simt_builder *b, lilac_simt_value address, uint64_t bytes,
                        lilac_simt_value *words) {
    piece p = piece_of(bytes);
    if (p.unit < 4) {
        words[0] = lilac_simt_op1(b, LILAC_SIMT_OP_TRUNC, p.type, words[0]);
    }
    for (uint32_t i = 0; i < p.accesses; i++) {
        lilac_simt_store(b, LILAC_SIMT_OP_ST_GLOBAL, p.count, words + (size_t)i * p.count, address,
                         (int64_t)i * p.unit * p.count, 0, NULL);
    }
}

static bool build_kernel(lilac_simt_builder *b, lilac_arena *arena,
                         const lilac_plan_conversion *plan) {
    uint32_t bits = lilac_lower_carried_bits(plan->element_bits);
    lilac_simt_type type = bits == 8    ? LILAC_SIMT_I8
                           : bits == 16 ? LILAC_SIMT_I16
                           : bits == 32 ? LILAC_SIMT_I32
                                        : LILAC_SIMT_I64;
    uint64_t bytes = (uint64_t)(bits / 8) << plan->register_bits;
    uint32_t halves = bits == 128 ? 2 : 1;
    lilac_lower_words words = {.register_bits = plan->register_bits, .element_bits = bits};
    words.count = lilac_plan_words(words.register_bits, bits);
    words.list = lilac_arena_array(arena, lilac_simt_value, words.count);
    load_words(b, address_of_thread(b, plan, 0, bytes), bytes, words.list);
    lilac_simt_value *values =
        lilac_arena_array(arena, lilac_simt_value, (size_t)halves << plan->register_bits);
    lilac_simt_value *results =
        lilac_arena_array(arena, lilac_simt_value, (size_t)halves << plan->target_register_bits);
    lilac_lower_unpack_words(b, type, &words, values);
    if (!lilac_lower_movement(b, arena, plan, type, values, 0, results)) {
        return false;
    }
    lilac_lower_pack_words(b, arena, type, plan->target_register_bits, bits, results, &words);
    bytes = (uint64_t)(bits / 8) << plan->target_register_bits;
    store_words(b, address_of_thread(b, plan, 1, bytes), bytes, words.list);
    lilac_simt_instruction leave = {.code = LILAC_SIMT_OP_RETURN};
    (void)lilac_simt_build(b, &leave, 0, NULL, 0, NULL);
    return true;
}

lilac_simt_module *lilac_lower_movement_kernel(lilac_context *context,
                                               const lilac_plan_conversion *plan) {
    static const char *const names[2] = {"source", "target"};
    lilac_simt_module *module = lilac_simt_module_create(context, plan->arch);
    lilac_simt_kernel *kernel =
        lilac_simt_kernel_create(module, lilac_intern_string(context, "convert"), 2,
                                 1U << plan->warp_bits, 1U << plan->block_bits);
    for (uint32_t i = 0; i < 2; i++) {
        kernel->parameters[i] =
            (lilac_simt_parameter){.name = lilac_intern_string(context, names[i]),
                                   .type = LILAC_SIMT_I64,
                                   .is_pointer = true,
                                   .alignment = 16};
    }
    for (uint32_t i = 0; i < plan->step_count; i++) {
        if (plan->step[i].kind == LILAC_PLAN_STEP_STAGING) {
            kernel->shared_bytes = (uint32_t)plan->staging.bytes;
        }
    }
    lilac_simt_builder builder;
    lilac_simt_builder_init(&builder, kernel);
    lilac_arena *arena = lilac_arena_create();
    bool done = build_kernel(&builder, arena, plan);
    lilac_simt_builder_clear(&builder);
    lilac_arena_destroy(arena);
    if (!done) {
        lilac_simt_module_destroy(module);
        return NULL;
    }
    return module;
}
