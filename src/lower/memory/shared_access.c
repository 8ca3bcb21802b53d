/* Accesses to shared memory as a plan describes them.
 *
 * The address of instruction number `step` of a thread is linear in the thread and the step:
 *
 *     address  =  base + (thread part ⊕ step part)
 *              =  base + (thread part ⊕ (step part within T)) + (step part outside T)
 *                                                               └ the immediate
 *
 * T is the set of bits that the part of any thread may set. All steps whose parts are equal
 * within T share one address. Most accesses of a thread have a single address. Padding adds
 * shifted copies of an offset to it. A sum of disjoint bits has no carry, so the padding of the
 * immediate is a constant too.
 *
 * A part is the largest aligned run of consecutive registers, up to a word, that is also
 * consecutive in memory. A part of a word is the word itself. Smaller parts are unpacked from
 * words, and packed into the elements of an instruction if those are larger:
 *
 *     words ──unpack──▶ parts ──pack──▶ elements of the instruction, 1, 2 or 4 of 1, 2 or 4 bytes
 */
#include "memory/shared_access.h"
#include "coordinates.h"

#include <string.h>

/* ---- addresses --------------------------------------------------------------------------- */

typedef struct addressing {
    lilac_simt_builder *b;
    const lilac_plan_access *access;
    const lilac_lower_place *place;
    uint32_t scale; /* log2 of the bytes of an element */
    lilac_simt_value shared;
    lilac_simt_value thread; /* the part of the thread, in bytes, without padding */
    uint64_t thread_bits;
    lilac_simt_value rank; /* loads from other blocks: the thread's part of the block's rank */
    lilac_simt_instruction promise;
} addressing;

static lilac_simt_value word_of(lilac_simt_builder *b, uint64_t bits) {
    return lilac_simt_constant(b, LILAC_SIMT_I32, bits);
}

static lilac_simt_value word_op(lilac_simt_builder *b, lilac_simt_opcode code, lilac_simt_value x,
                                lilac_simt_value y) {
    return lilac_simt_op2(b, code, LILAC_SIMT_I32, x, y);
}

static addressing address_threads(lilac_simt_builder *b, const lilac_plan_access *access,
                                  const lilac_lower_place *place) {
    addressing a = {.b = b, .access = access, .place = place};
    a.scale = log2_of(access->element_bytes);
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    uint32_t bits = 0;
    for (uint32_t i = 0; i < access->lane_bits; i++) {
        columns[bits++] = access->lane[i] << a.scale;
    }
    for (uint32_t i = 0; i < access->warp_bits; i++) {
        columns[bits++] = access->warp[i] << a.scale;
    }
    for (uint32_t i = 0; i < bits; i++) {
        a.thread_bits |= columns[i];
    }
    uint64_t block_columns[LILAC_PLAN_MAX_BLOCK_BITS] = {0};
    uint32_t block_bits = place->blocks == NULL ? 0 : log2_of(b->kernel->num_ctas);
    for (uint32_t i = 0; i < block_bits; i++) {
        block_columns[i] = place->blocks[i] << a.scale;
        a.thread_bits |= block_columns[i];
    }
    lilac_simt_instruction base = {.code = LILAC_SIMT_OP_SHARED_BASE};
    lilac_simt_type type = LILAC_SIMT_I32;
    a.shared = lilac_simt_build(b, &base, 0, NULL, 1, &type);
    a.thread = lilac_lower_linear(b, bits, columns, block_bits, block_columns);
    if (place->dynamic_shift != 0) {
        a.thread = word_op(b, LILAC_SIMT_OP_XOR, a.thread, place->dynamic_shift);
        a.thread_bits |= place->dynamic_shift_bits << a.scale;
    }
    const lilac_plan_staging *remote = place->remote;
    if (remote != NULL) {
        memcpy(columns, remote->load_block_lane, access->lane_bits * sizeof *columns);
        memcpy(columns + access->lane_bits, remote->load_block_warp,
               access->warp_bits * sizeof *columns);
        a.rank = lilac_lower_linear(b, bits, columns, log2_of(b->kernel->num_ctas),
                                    remote->load_block_block);
    }
    a.promise.shared_begin = (uint32_t)place->offset;
    a.promise.shared_end = (uint32_t)(place->offset + place->bytes);
    a.promise.shared_partition = place->disjoint_warps;
    return a;
}

static uint64_t padded(const addressing *a, uint64_t bytes) {
    const lilac_plan_padding *padding = &a->access->padding;
    uint64_t sum = bytes;
    for (uint32_t i = 0; i < padding->count; i++) {
        sum += (bytes >> (log2_of(padding->interval[i]) + a->scale))
               << (log2_of(padding->padding[i]) + a->scale);
    }
    return sum;
}

static lilac_simt_value padded_value(const addressing *a, lilac_simt_value bytes) {
    const lilac_plan_padding *padding = &a->access->padding;
    lilac_simt_value sum = bytes;
    for (uint32_t i = 0; i < padding->count; i++) {
        uint32_t interval = log2_of(padding->interval[i]) + a->scale;
        uint32_t size = log2_of(padding->padding[i]) + a->scale;
        lilac_simt_value number =
            word_op(a->b, LILAC_SIMT_OP_SHR_U, bytes, word_of(a->b, interval));
        sum = word_op(a->b, LILAC_SIMT_OP_ADD, sum,
                      word_op(a->b, LILAC_SIMT_OP_SHL, number, word_of(a->b, size)));
    }
    return sum;
}

static lilac_simt_value address_of(const addressing *a, uint64_t step, int64_t *immediate) {
    uint64_t part = a->place->shift << a->scale;
    for (uint32_t i = 0; i < a->access->step_bits; i++) {
        part ^= step >> i & 1 ? a->access->step[i] << a->scale : 0;
    }
    lilac_simt_value base = a->shared;
    if (a->place->remote != NULL) {
        uint64_t rank = 0;
        for (uint32_t i = 0; i < a->access->step_bits; i++) {
            rank ^= step >> i & 1 ? a->place->remote->load_block_step[i] : 0;
        }
        base = lilac_simt_map_shared(
            a->b, base, word_op(a->b, LILAC_SIMT_OP_XOR, a->rank, word_of(a->b, rank)));
    }
    if (a->place->dynamic != 0) {
        base = word_op(a->b, LILAC_SIMT_OP_ADD, base, a->place->dynamic);
    }
    uint64_t within = part & a->thread_bits;
    lilac_simt_value thread = word_op(a->b, LILAC_SIMT_OP_XOR, a->thread, word_of(a->b, within));
    *immediate =
        (int64_t)(padded(a, part & ~a->thread_bits) + a->place->offset) + a->place->constant;
    return word_op(a->b, LILAC_SIMT_OP_ADD, base, padded_value(a, thread));
}

/* ---- sub-word parts ---------------------------------------------------------------------- */

static lilac_simt_type integer_of(uint32_t bits) {
    return bits == 8 ? LILAC_SIMT_I8 : bits == 16 ? LILAC_SIMT_I16 : LILAC_SIMT_I32;
}

static uint32_t log2_per_word(const lilac_lower_words *words) {
    return words->element_bits >= 32 ? 0 : log2_of(32 / words->element_bits);
}

/* log2 of the registers of a part: the lowest vector bits that are the lowest register bits too. */
static uint32_t part_bits(const lilac_plan_access *access, const lilac_lower_words *words) {
    uint32_t bits = 0;
    while (bits < access->vector_bits && bits < log2_per_word(words) &&
           access->vector_register[bits] == bits) {
        bits++;
    }
    return bits;
}

static uint32_t register_of(const addressing *a, uint64_t step, uint32_t element) {
    const lilac_plan_access *access = a->access;
    uint32_t r = a->place->registers;
    for (uint32_t i = 0; i < access->step_bits; i++) {
        r |= (uint32_t)(step >> i & 1) << access->step_register[i];
    }
    for (uint32_t i = 0; i < access->vector_bits; i++) {
        r |= (element >> i & 1) << access->vector_register[i];
    }
    return r;
}

/* The parts of all words. */
static lilac_simt_value *cut(lilac_simt_builder *b, lilac_arena *arena,
                             const lilac_lower_words *words, uint32_t bits) {
    uint32_t each = 1U << (log2_per_word(words) - bits);
    if (each == 1) {
        return words->list;
    }
    lilac_simt_value *parts =
        lilac_arena_array(arena, lilac_simt_value, (size_t)words->count * each);
    lilac_simt_type type = integer_of(words->element_bits << bits);
    for (uint32_t w = 0; w < words->count; w++) {
        lilac_simt_unpack(b, type, words->list[w], each, parts + (size_t)w * each);
    }
    return parts;
}

void lilac_lower_join_parts(lilac_simt_builder *b, lilac_arena *arena,
                            const lilac_lower_parts *parts, lilac_lower_words *words) {
    uint32_t each = 1U << (log2_per_word(words) - parts->bits);
    words->list = parts->list;
    if (each == 1) {
        return;
    }
    words->list = lilac_arena_array(arena, lilac_simt_value, words->count);
    lilac_simt_type type = integer_of(words->element_bits << parts->bits);
    uint32_t count = (1U << words->register_bits) >> parts->bits;
    for (uint32_t w = 0; w < words->count; w++) {
        lilac_simt_value word[4];
        for (uint32_t k = 0; k < each; k++) {
            uint32_t i = w * each + k;
            bool there = i < count && parts->list[i] != 0;
            word[k] = there ? parts->list[i] : lilac_simt_constant(b, type, 0);
        }
        words->list[w] = lilac_simt_pack(b, LILAC_SIMT_I32, each, word);
    }
}

/* The packing of one instruction of a thread: `count` elements of `type`, each of `parts` parts. */
typedef struct packing {
    lilac_simt_type type;
    uint32_t count, parts;
    uint32_t per; /* words, or values of 64 bits, of a register: one or more */
} packing;

enum { MOST_PARTS = 16 };

static packing packing_of(const lilac_plan_access *access, const lilac_lower_words *words,
                          uint32_t bits) {
    uint32_t bytes = access->element_bytes << access->vector_bits;
    if (words->wide != LILAC_SIMT_VOID) {
        return (packing){
            .type = words->wide, .count = bytes / 8, .parts = 1, .per = words->element_bits / 64};
    }
    uint32_t unit = bytes < 4 ? bytes : 4;
    uint32_t part = access->element_bytes << bits;
    packing c = {.type = integer_of(8 * unit), .count = bytes / unit, .per = 1};
    c.parts = part < unit ? unit / part : 1;
    c.per = words->element_bits > 32 ? words->element_bits / 32 : 1;
    return c;
}

/* The index of part number `part` of element number `element` of an instruction. */
static size_t part_of(const addressing *a, const packing *c, uint32_t bits, uint64_t step,
                      uint32_t element, uint32_t part) {
    if (c->per > 1) {
        return (size_t)register_of(a, step, element / c->per) * c->per + element % c->per;
    }
    return register_of(a, step, (element * c->parts + part) << bits) >> bits;
}

/* ---- division of stores ------------------------------------------------------------------ */

/* Warps that hold the same elements in the same registers and lanes divide the steps among them.
 * At most two bits of the warp's number are used, because each setting needs a predicate
 * register. Other threads with replicas store nothing. */
typedef struct sharing {
    uint32_t mask, shared; /* bits of the thread's index */
    uint32_t bits;         /* how many are shared */
    lilac_simt_value predicates[4];
} sharing;

static sharing share_stores(const lilac_plan_access *access, const lilac_lower_place *place) {
    sharing s = {.mask = place->replicas};
    for (uint32_t i = 0; i < access->warp_bits && s.bits < 2 && s.bits < access->step_bits; i++) {
        uint32_t bit = 1U << (access->lane_bits + i);
        if ((place->replicas & bit) != 0 && access->warp[i] == 0) {
            s.shared |= bit;
            s.bits++;
        }
    }
    return s;
}

/* A predicate that is true in the threads that store step number `step`; 0: all store it. The steps
 * of a warp are consecutive. */
static lilac_simt_value stores_step(lilac_simt_builder *b, sharing *s,
                                    const lilac_plan_access *access, uint64_t step) {
    uint32_t share = (uint32_t)(step >> (access->step_bits - s->bits));
    if (s->mask != 0 && s->predicates[share] == 0) {
        lilac_simt_value thread = lilac_simt_thread(b);
        lilac_simt_value wanted = word_of(b, lilac_lower_deposit(share, s->shared));
        s->predicates[share] = lilac_simt_compare_values(
            b, LILAC_SIMT_EQ, word_op(b, LILAC_SIMT_OP_AND, thread, word_of(b, s->mask)), wanted);
    }
    return s->predicates[share];
}

/* ---- stores and loads -------------------------------------------------------------------- */

/* The values of a vector, from the parts of all words. */
static void pack_step(lilac_simt_builder *b, const addressing *a, const packing *c, uint32_t bits,
                      uint64_t step, const lilac_simt_value *sources, lilac_simt_value *values) {
    for (uint32_t e = 0; e < c->count; e++) {
        lilac_simt_value parts[4];
        for (uint32_t p = 0; p < c->parts; p++) {
            parts[p] = sources[part_of(a, c, bits, step, e, p)];
        }
        values[e] = c->parts == 1 ? parts[0] : lilac_simt_pack(b, c->type, c->parts, parts);
    }
}

void lilac_lower_store_access(lilac_simt_builder *b, lilac_arena *arena,
                              const lilac_plan_access *access, const lilac_lower_place *place,
                              const lilac_lower_words *words) {
    uint32_t bits = part_bits(access, words);
    packing c = packing_of(access, words, bits);
    addressing a = address_threads(b, access, place);
    sharing stores = share_stores(access, place);
    const lilac_simt_value *sources = cut(b, arena, words, bits);
    for (uint64_t step = 0; step >> access->step_bits == 0; step++) {
        lilac_simt_value values[4];
        pack_step(b, &a, &c, bits, step, sources, values);
        int64_t immediate;
        lilac_simt_value address = address_of(&a, step, &immediate);
        lilac_simt_value predicate = stores_step(b, &stores, access, step);
        if (access->instruction == LILAC_PLAN_VECTOR) {
            lilac_simt_store(b, LILAC_SIMT_OP_ST_SHARED, c.count, values, address, immediate,
                             predicate, &a.promise);
        } else {
            lilac_simt_store_matrix(b, access->instruction == LILAC_PLAN_MATRIX_TRANSPOSED, c.count,
                                    values, address, immediate, predicate, &a.promise);
        }
    }
}

/* Both predicates; 0: true. */
static lilac_simt_value both(lilac_simt_builder *b, lilac_simt_value x, lilac_simt_value y) {
    return x == 0 ? y : y == 0 ? x : lilac_simt_op2(b, LILAC_SIMT_OP_AND, LILAC_SIMT_I1, x, y);
}

/* Stores the other words of each vector whose mask is false. */
static void store_others(const addressing *a, lilac_arena *arena, sharing *stores,
                         const lilac_lower_copy_source *sources, const lilac_lower_words *others) {
    lilac_simt_builder *b = a->b;
    uint32_t bits = part_bits(a->access, others);
    packing c = packing_of(a->access, others, bits);
    const lilac_simt_value *parts = cut(b, arena, others, bits);
    for (uint64_t step = 0; step >> a->access->step_bits == 0; step++) {
        lilac_simt_value values[4], mask = sources[register_of(a, step, 0)].mask;
        int64_t immediate;
        if (mask == 0) {
            continue;
        }
        pack_step(b, a, &c, bits, step, parts, values);
        lilac_simt_value address = address_of(a, step, &immediate);
        lilac_simt_value masked = lilac_simt_op2(b, LILAC_SIMT_OP_XOR, LILAC_SIMT_I1, mask,
                                                 lilac_simt_constant(b, LILAC_SIMT_I1, 1));
        lilac_simt_store(b, LILAC_SIMT_OP_ST_SHARED, c.count, values, address, immediate,
                         both(b, masked, stores_step(b, stores, a->access, step)), &a->promise);
    }
}

void lilac_lower_copy_access(lilac_simt_builder *b, lilac_arena *arena,
                             const lilac_plan_access *access, const lilac_lower_place *place,
                             const lilac_lower_copy_source *sources,
                             const lilac_lower_words *others) {
    addressing a = address_threads(b, access, place);
    sharing stores = share_stores(access, place);
    uint32_t bytes = access->element_bytes << access->vector_bits;
    lilac_simt_instruction modifiers = a.promise;
    modifiers.cache = bytes == 16 ? LILAC_SIMT_CACHE_CG : LILAC_SIMT_CACHE_CA;
    for (uint64_t step = 0; step >> access->step_bits == 0; step++) {
        const lilac_lower_copy_source *source = &sources[register_of(&a, step, 0)];
        int64_t immediate;
        lilac_simt_value address = address_of(&a, step, &immediate);
        lilac_simt_value predicate = stores_step(b, &stores, access, step);
        lilac_simt_value read = 0;
        if (source->mask != 0 && others == NULL) {
            lilac_simt_value none = word_of(b, 0);
            read = lilac_simt_op3(b, LILAC_SIMT_OP_SELECT, LILAC_SIMT_I32, source->mask,
                                  word_of(b, bytes), none);
        } else {
            predicate = both(b, predicate, source->mask);
        }
        lilac_simt_copy_async(b, bytes, address, immediate, source->address,
                              (int32_t)source->offset, predicate, read, &modifiers);
    }
    if (others != NULL) {
        store_others(&a, arena, &stores, sources, others);
    }
}

void lilac_lower_load_access(lilac_simt_builder *b, lilac_arena *arena,
                             const lilac_plan_access *access, const lilac_lower_place *place,
                             const lilac_lower_words *words, lilac_lower_parts *loaded) {
    uint32_t bits = part_bits(access, words);
    packing c = packing_of(access, words, bits);
    addressing a = address_threads(b, access, place);
    if (loaded->list == NULL) {
        loaded->bits = bits;
        loaded->list = lilac_arena_array(arena, lilac_simt_value,
                                         (size_t)words->count << (log2_per_word(words) - bits));
    }
    lilac_simt_type part_type =
        integer_of((words->element_bits >= 32 ? 32 : words->element_bits) << bits);
    for (uint64_t step = 0; step >> access->step_bits == 0; step++) {
        int64_t immediate;
        lilac_simt_value address = address_of(&a, step, &immediate);
        lilac_simt_value first;
        if (access->instruction == LILAC_PLAN_VECTOR) {
            lilac_simt_opcode code =
                place->remote != NULL ? LILAC_SIMT_OP_LD_CLUSTER : LILAC_SIMT_OP_LD_SHARED;
            first =
                lilac_simt_load(b, code, c.type, c.count, address, immediate, 0, NULL, &a.promise);
        } else {
            first = lilac_simt_load_matrix(b, access->instruction == LILAC_PLAN_MATRIX_TRANSPOSED,
                                           c.type, c.count, address, immediate, &a.promise);
        }
        for (uint32_t e = 0; e < c.count; e++) {
            lilac_simt_value parts[4] = {first + e};
            if (c.parts > 1) {
                lilac_simt_unpack(b, part_type, first + e, c.parts, parts);
            }
            for (uint32_t p = 0; p < c.parts; p++) {
                loaded->list[part_of(&a, &c, bits, step, e, p)] = parts[p];
            }
        }
    }
}
