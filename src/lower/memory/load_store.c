/* Pointers, loads and stores.
 *
 *   addptr(splat(p), range)    address of register r = (p + thread part * size) + constant
 *
 * so a thread needs one pointer register and uses the constants as immediates.
 *
 * The plan of an access (lilac/access.h) says which registers form a vector and which threads
 * execute the access. Elements of less than 32 bits are packed into words:
 *
 *   8 x f16   ld.global.v4.b32  →  unpack to 8 registers
 */
#include "executed_plans.h"
#include "memory/access.h"
#include "operations.h"

#include <string.h>

/* ---- addresses --------------------------------------------------------------------------- */

/* The size in bytes of the pointers' elements; a predicate occupies one byte. */
static uint32_t pointee_bytes(const lilac_tile_type *pointers) {
    const lilac_tile_type *pointer = lilac_tile_element(pointers);
    uint32_t bits = lilac_tile_element_bits(pointer->element);
    return bits < 8 ? 1 : bits / 8;
}

/* offset * size in 64 bits. */
static lilac_simt_value scale(lilac_lowering *l, lilac_simt_value offset, uint32_t size) {
    lilac_simt_builder *b = &l->builder;
    lilac_simt_type type = lilac_simt_type_of(l->kernel, offset);
    if (type == LILAC_SIMT_I64) {
        return size == 1 ? offset
                         : lilac_simt_op2(b, LILAC_SIMT_OP_MUL, LILAC_SIMT_I64, offset,
                                          lilac_lower_integer(l, LILAC_SIMT_I64, size));
    }
    if (type != LILAC_SIMT_I32) {
        offset = lilac_simt_op1(b, LILAC_SIMT_OP_SEXT, LILAC_SIMT_I32, offset);
    }
    return size == 1 ? lilac_simt_op1(b, LILAC_SIMT_OP_SEXT, LILAC_SIMT_I64, offset)
                     : lilac_simt_op2(b, LILAC_SIMT_OP_MULWIDE_S, LILAC_SIMT_I64, offset,
                                      lilac_lower_integer(l, LILAC_SIMT_I32, size));
}

/* Mask of the register bits that stay within runs of contiguous pointers, according to the axis
 * facts: such a bit adds its coordinate to the address. Runs are limited to the width of a vector
 * access, which relies on the same facts. */
static uint32_t run_bits(lilac_lowering *l, const lilac_tile_value *pointers,
                         const lilac_lower_view *view, uint32_t size) {
    const lilac_axis_facts *facts = lilac_axis_facts_of(&l->facts, pointers);
    if (view == NULL || facts->rank != view->columns.rank) {
        return 0;
    }
    uint64_t inside = 0;
    for (uint32_t d = 0; d < view->columns.rank; d++) {
        uint64_t run = (uint64_t)facts->contiguity[d], most = l->target->arch->vector_bytes / size;
        run = run < most ? run : most;
        for (uint32_t j = 0; j < view->columns.bits[d] && 2ULL << j <= run; j++) {
            inside |= 1ULL << (view->columns.start[d] + j);
        }
    }
    uint64_t own = inside & lilac_plan_own_coordinates(&view->columns);
    uint32_t mask = 0;
    for (uint32_t i = 0; i < view->columns.register_bits; i++) {
        if ((view->columns.registers[i] & ~own) == 0) {
            mask |= 1U << i;
        }
    }
    return mask;
}

/* The distance, in elements, from the first register of a run to register r. */
static int64_t steps_to(const lilac_lower_view *view, uint32_t leader, uint32_t r) {
    uint64_t apart = view->coordinates[r] ^ view->coordinates[leader];
    int64_t steps = 0;
    for (uint32_t d = 0; d < view->columns.rank; d++) {
        steps += (int64_t)(apart >> view->columns.start[d] & ((1ULL << view->columns.bits[d]) - 1));
    }
    return steps;
}

bool lilac_lower_is_step(lilac_lowering *l, lilac_simt_value value, lilac_simt_value from,
                         lilac_simt_value *step) {
    const lilac_simt_instruction *made = l->kernel->values[value].definition;
    if (made == NULL || made->code != LILAC_SIMT_OP_ADD ||
        lilac_simt_type_of(l->kernel, value) != LILAC_SIMT_I64) {
        return false;
    }
    uint32_t other = made->operands[0] == from ? 1 : 0;
    if (made->operands[1 - other] != from) {
        return false;
    }
    *step = made->operands[other];
    return true;
}

/* The registers of tt.addptr: pointer + offset · size. */
typedef struct pointer_sum {
    const lilac_lower_value *pointer, *offset;
    const uint32_t *from_pointer, *from_offset; /* register numbers; NULL: the same number */
    uint32_t size;                              /* bytes of the pointee */
    bool splits;     /* the offset's base and constant parts are added separately */
    uint32_t in_run; /* mask of the register bits within a run of contiguous pointers */
    lilac_simt_value addends[2], sum; /* of the previous register; 0: none */
} pointer_sum;

/* Adds a constant step to the previous sum if only one addend changes and by this step. Otherwise
 * computes a new sum, unless both addends are those of the previous one. */
static lilac_simt_value add_pointer(lilac_lowering *l, pointer_sum *p,
                                    const lilac_simt_value *now) {
    lilac_simt_value step;
    const lilac_simt_value *before = p->addends;
    if (p->sum != 0 && now[1] == before[1] && lilac_lower_is_step(l, now[0], before[0], &step)) {
        p->sum = lilac_simt_op2(&l->builder, LILAC_SIMT_OP_ADD, LILAC_SIMT_I64, p->sum, step);
    } else if (p->sum != 0 && now[0] == before[0] &&
               lilac_lower_is_step(l, now[1], before[1], &step)) {
        p->sum = lilac_simt_op2(&l->builder, LILAC_SIMT_OP_ADD, LILAC_SIMT_I64, p->sum,
                                scale(l, step, p->size));
    } else if (p->sum == 0 || now[0] != before[0] || now[1] != before[1]) {
        p->sum = lilac_simt_op2(&l->builder, LILAC_SIMT_OP_ADD, LILAC_SIMT_I64, now[0],
                                scale(l, now[1], p->size));
    }
    memcpy(p->addends, now, sizeof p->addends);
    return p->sum;
}

static void add_pointers(lilac_lowering *l, pointer_sum *p, lilac_lower_value *result,
                         int64_t *offsets) {
    for (uint32_t r = 0; r < result->count; r++) {
        uint32_t leader = r & ~p->in_run;
        if (leader != r) {
            result->base[r] = result->base[leader];
            offsets[r] = offsets[leader] + steps_to(result->view, leader, r) * p->size;
            continue;
        }
        uint32_t i = lilac_lower_index(p->pointer, p->from_pointer, r);
        uint32_t j = lilac_lower_index(p->offset, p->from_offset, r);
        const lilac_simt_value now[2] = {
            p->pointer->base[i], p->splits ? p->offset->base[j] : lilac_lower_get(l, p->offset, j)};
        result->base[r] = add_pointer(l, p, now);
        if (offsets != NULL) {
            offsets[r] = (p->pointer->offsets == NULL ? 0 : p->pointer->offsets[i]) +
                         (p->splits ? p->offset->offsets[j] * p->size : 0);
        }
    }
}

bool lilac_lower_pointer(lilac_lowering *l, const lilac_tile_op *op) {
    lilac_lower_value *result = lilac_lower_result(l, op, 0);
    if (result == NULL) {
        return false;
    }
    const lilac_lower_value *pointer = lilac_lower_operand(l, op, 0);
    const lilac_lower_value *offset = lilac_lower_operand(l, op, 1);
    pointer_sum p = {.pointer = pointer, .offset = offset};
    if (!lilac_lower_align(l, pointer, result->view, &p.from_pointer) ||
        !lilac_lower_align(l, offset, result->view, &p.from_offset)) {
        return false;
    }
    const lilac_tile_type *pointee = lilac_tile_element(result->type)->element;
    if (pointee->kind == LILAC_TILE_INTEGER) {
        return lilac_lower_refuse(
            l, "unsupported-type",
            "'tt.addptr' on pointers to integers of %u bits cannot be lowered; "
            "expected 1, 8, 16, 32, 64 or 128 bits",
            pointee->width);
    }
    p.size = pointee_bytes(result->type);
    /* A 64-bit sum may be split into base and offset even if it wraps, a narrower one only if it
     * does not wrap. */
    p.splits = offset->offsets != NULL && (offset->simt == LILAC_SIMT_I64 || offset->exact);
    p.in_run = run_bits(l, &op->results[0], result->view, p.size);
    int64_t *offsets = pointer->offsets != NULL || p.splits || p.in_run != 0
                           ? lilac_arena_array(l->arena, int64_t, result->count)
                           : NULL;
    add_pointers(l, &p, result, offsets);
    result->offsets = offsets;
    result->exact = true;
    return true;
}

/* The immediate of a machine instruction is a signed number of 24 bits. */
#define MAX_IMMEDIATE ((int64_t)1 << 23)

lilac_simt_value lilac_lower_address(lilac_lowering *l, const lilac_lower_value *pointer,
                                     uint32_t r, int64_t *immediate) {
    int64_t offset = pointer->offsets == NULL ? 0 : pointer->offsets[r];
    if (offset >= -MAX_IMMEDIATE && offset < MAX_IMMEDIATE) {
        *immediate = offset;
        return pointer->base[r];
    }
    *immediate = 0;
    return lilac_simt_op2(&l->builder, LILAC_SIMT_OP_ADD, LILAC_SIMT_I64, pointer->base[r],
                          lilac_lower_integer(l, LILAC_SIMT_I64, offset));
}

/* ---- packed words ------------------------------------------------------------------------ */

static lilac_simt_type integer_of(uint32_t bytes) {
    return bytes == 1 ? LILAC_SIMT_I8 : bytes == 2 ? LILAC_SIMT_I16 : LILAC_SIMT_I32;
}

/* The packing of a vector for its access: `words` values of `type`, each of `parts` elements. */
typedef struct packing {
    lilac_simt_type type;
    uint32_t words, parts;
} packing;

static packing packing_of(lilac_simt_type type, uint32_t count) {
    uint32_t size = lilac_lower_memory_bytes(type);
    if (size >= 4 || count == 1) {
        return (packing){type == LILAC_SIMT_I1 ? LILAC_SIMT_I8 : type, count, 1};
    }
    uint32_t bytes = size * count;
    return bytes <= 4 ? (packing){integer_of(bytes), 1, count}
                      : (packing){LILAC_SIMT_I32, bytes / 4, 4 / size};
}

static lilac_simt_value to_memory(lilac_lowering *l, lilac_simt_value value) {
    return lilac_simt_type_of(l->kernel, value) == LILAC_SIMT_I1
               ? lilac_simt_op1(&l->builder, LILAC_SIMT_OP_ZEXT, LILAC_SIMT_I8, value)
               : value;
}

static lilac_simt_value from_memory(lilac_lowering *l, lilac_simt_type type,
                                    lilac_simt_value value) {
    return type == LILAC_SIMT_I1
               ? lilac_simt_compare_values(&l->builder, LILAC_SIMT_NE, value,
                                           lilac_lower_integer(l, LILAC_SIMT_I8, 0))
               : value;
}

static void pack_words(lilac_lowering *l, packing how, const lilac_simt_value *values,
                       lilac_simt_value *words) {
    for (uint32_t w = 0; w < how.words; w++) {
        lilac_simt_value parts[4];
        for (uint32_t p = 0; p < how.parts; p++) {
            parts[p] = to_memory(l, values[w * how.parts + p]);
        }
        words[w] =
            how.parts == 1 ? parts[0] : lilac_simt_pack(&l->builder, how.type, how.parts, parts);
    }
}

void lilac_lower_load_vector(lilac_lowering *l, const lilac_lower_access *access,
                             const lilac_simt_value *others, lilac_simt_value *results) {
    packing how = packing_of(access->type, access->count);
    lilac_simt_value words[4];
    if (others != NULL) {
        pack_words(l, how, others, words);
    }
    lilac_simt_value first = lilac_simt_load(&l->builder, access->code, how.type, how.words,
                                             access->address, access->offset, access->predicate,
                                             others != NULL ? words : NULL, access->modifiers);
    lilac_simt_type part = access->type == LILAC_SIMT_I1 ? LILAC_SIMT_I8 : access->type;
    for (uint32_t w = 0; w < how.words; w++) {
        lilac_simt_value parts[4] = {first + w};
        if (how.parts > 1) {
            lilac_simt_unpack(&l->builder, part, first + w, how.parts, parts);
        }
        for (uint32_t p = 0; p < how.parts; p++) {
            results[w * how.parts + p] = from_memory(l, access->type, parts[p]);
        }
    }
}

void lilac_lower_store_vector(lilac_lowering *l, const lilac_lower_access *access,
                              const lilac_simt_value *values) {
    packing how = packing_of(access->type, access->count);
    lilac_simt_value words[4];
    pack_words(l, how, values, words);
    lilac_simt_store(&l->builder, access->code, how.words, words, access->address, access->offset,
                     access->predicate, access->modifiers);
}

/* ---- modifiers --------------------------------------------------------------------------- */

static bool read_modifiers(lilac_lowering *l, const lilac_tile_op *op,
                           lilac_simt_instruction *modifiers) {
    static const char *const caches[] = {
        [LILAC_SIMT_CACHE_NONE] = "none", [LILAC_SIMT_CACHE_CA] = "ca",
        [LILAC_SIMT_CACHE_CG] = "cg",     [LILAC_SIMT_CACHE_CS] = "cs",
        [LILAC_SIMT_CACHE_CV] = "cv",     [LILAC_SIMT_CACHE_WB] = "wb",
        [LILAC_SIMT_CACHE_WT] = "wt",
    };
    static const char *const policies[] = {[LILAC_SIMT_EVICT_NORMAL] = "normal",
                                           [LILAC_SIMT_EVICT_FIRST] = "evict_first",
                                           [LILAC_SIMT_EVICT_LAST] = "evict_last"};
    int cache = lilac_lower_word(op, "cache", 7, caches, LILAC_SIMT_CACHE_NONE);
    int evict = lilac_lower_word(op, "evict", 3, policies, LILAC_SIMT_EVICT_NORMAL);
    if (cache < 0) {
        return lilac_lower_bad_attribute(l, "cache", "none, ca, cg, cs, cv, wb or wt");
    }
    if (evict < 0) {
        return lilac_lower_bad_attribute(l, "evict", "normal, evict_first or evict_last");
    }
    memset(modifiers, 0, sizeof *modifiers);
    modifiers->cache = (uint8_t)cache;
    modifiers->evict = (uint8_t)evict;
    if (lilac_tile_find_integer(&op->attributes, "isVolatile", 0) != 0) {
        modifiers->flags |= LILAC_SIMT_VOLATILE;
    }
    return true;
}

/* ---- loads and stores -------------------------------------------------------------------- */

typedef lilac_lower_aligned aligned;
typedef lilac_plan_global_access access_plan;

bool lilac_lower_align_operand(lilac_lowering *l, const lilac_tile_op *op, uint32_t index,
                               const lilac_lower_view *view, aligned *c) {
    c->value = lilac_lower_operand(l, op, index);
    c->source = NULL;
    return c->value == NULL || lilac_lower_align(l, c->value, view, &c->source);
}

lilac_simt_value lilac_lower_aligned_get(lilac_lowering *l, const aligned *c, uint32_t r) {
    return lilac_lower_get(l, c->value, lilac_lower_index(c->value, c->source, r));
}

static bool memory_type(lilac_lowering *l, const lilac_tile_type *pointers, lilac_simt_type *type) {
    return lilac_lower_type(l, lilac_tile_element(pointers)->element, type);
}

/* What a load and a store through pointers, operand 0, have in common. */
typedef struct pointer_access {
    const lilac_lower_value *pointer;
    lilac_simt_type type;
    lilac_simt_instruction modifiers;
    access_plan plan;
    lilac_simt_value leader; /* the predicate of the threads that access */
} pointer_access;

/* Sets all but the plan and the leader. */
static bool read_access(pointer_access *a, lilac_lowering *l, const lilac_tile_op *op) {
    const lilac_tile_attribute *checks = lilac_tile_find(&op->attributes, "boundaryCheck");
    if (checks != NULL && checks->count != 0) {
        return lilac_lower_unsupported(
            l, "operand 0 is a block pointer (boundaryCheck); expected a pointer or "
               "a tensor of pointers");
    }
    a->pointer = lilac_lower_operand(l, op, 0);
    return memory_type(l, a->pointer->type, &a->type) && read_modifiers(l, op, &a->modifiers);
}

static void plan_access(pointer_access *a, lilac_lowering *l, const lilac_tile_op *op) {
    lilac_engine_plan_access(&a->plan, op, &l->facts, l->target);
    lilac_lower_note_access(l, &a->plan);
    a->leader = lilac_lower_elect_holder(l, a->plan.idle_threads, a->plan.idle_blocks);
}

/* The access to the vector that register `place` of the pointers begins, without its predicate. */
static lilac_lower_access vector_at(const pointer_access *a, lilac_lowering *l,
                                    lilac_simt_opcode code, uint32_t place) {
    lilac_lower_access access = {.code = code,
                                 .type = a->type,
                                 .count = 1U << a->plan.vector_bits,
                                 .modifiers = &a->modifiers};
    access.address = lilac_lower_address(l, a->pointer, place, &access.offset);
    return access;
}

static void load_vector(const pointer_access *a, lilac_lowering *l, const lilac_lower_value *result,
                        const aligned *mask, const aligned *other, lilac_lower_access *access,
                        uint32_t r) {
    lilac_simt_value others[LILAC_PLAN_MAX_VECTOR], loaded[LILAC_PLAN_MAX_VECTOR];
    for (uint32_t e = 0; e < access->count && other->value != NULL; e++) {
        others[e] = lilac_lower_aligned_get(l, other, lilac_plan_global_register(&a->plan, r, e));
    }
    const lilac_simt_value masked = mask->value != NULL ? lilac_lower_aligned_get(l, mask, r) : 0;
    const bool need_others = masked != 0 && other->value != NULL;
    access->predicate = lilac_lower_both(l, masked, a->leader);
    lilac_lower_load_vector(l, access, need_others ? others : NULL, loaded);
    for (uint32_t e = 0; e < access->count; e++) {
        result->base[lilac_plan_global_register(&a->plan, r, e)] = loaded[e];
    }
}

bool lilac_lower_load(lilac_lowering *l, const lilac_tile_op *op) {
    pointer_access a;
    aligned place, mask, other;
    if (!read_access(&a, l, op)) {
        return false;
    }
    lilac_lower_value *result = lilac_lower_result(l, op, 0);
    if (result == NULL || !lilac_lower_align_operand(l, op, 0, result->view, &place) ||
        !lilac_lower_align_operand(l, op, 1, result->view, &mask) ||
        !lilac_lower_align_operand(l, op, 2, result->view, &other)) {
        return false;
    }
    plan_access(&a, l, op);
    for (uint32_t r = 0; r < result->count; r++) {
        if ((r & a.plan.skipped_registers) == 0) {
            lilac_lower_access access = vector_at(&a, l, LILAC_SIMT_OP_LD_GLOBAL,
                                                  lilac_lower_index(a.pointer, place.source, r));
            load_vector(&a, l, result, &mask, &other, &access, r);
        }
    }
    for (uint32_t r = 0; r < result->count && a.plan.equal_registers != 0; r++) {
        result->base[r] = result->base[r & ~a.plan.equal_registers];
    }
    if (result->view == NULL) {
        lilac_simt_mark_uniform(l->kernel, result->base[0]);
    } else if (a.plan.replicated_registers != 0) {
        lilac_lower_replicate(result->view, result->base);
    }
    return true;
}

/* The register that is stored as number i of 2^n: those along a run of memory one after another. */
static uint32_t stored_register(const lilac_plan_global_access *plan, uint32_t i) {
    const uint32_t run = plan->run_registers, along = (uint32_t)__builtin_popcount(run);
    return lilac_lower_deposit(i, run) | lilac_lower_deposit(i >> along, ~run);
}

bool lilac_lower_store(lilac_lowering *l, const lilac_tile_op *op) {
    pointer_access a;
    aligned value, mask;
    if (!read_access(&a, l, op) || !lilac_lower_align_operand(l, op, 1, a.pointer->view, &value) ||
        !lilac_lower_align_operand(l, op, 2, a.pointer->view, &mask)) {
        return false;
    }
    plan_access(&a, l, op);
    for (uint32_t i = 0; i < a.pointer->count; i++) {
        const uint32_t r = stored_register(&a.plan, i);
        if ((r & a.plan.skipped_registers) != 0) {
            continue;
        }
        lilac_lower_access access = vector_at(&a, l, LILAC_SIMT_OP_ST_GLOBAL, r);
        lilac_simt_value values[LILAC_PLAN_MAX_VECTOR];
        for (uint32_t e = 0; e < access.count; e++) {
            values[e] =
                lilac_lower_aligned_get(l, &value, lilac_plan_global_register(&a.plan, r, e));
        }
        const lilac_simt_value masked =
            mask.value != NULL ? lilac_lower_aligned_get(l, &mask, r) : 0;
        access.predicate = lilac_lower_both(l, masked, a.leader);
        lilac_lower_store_vector(l, &access, values);
    }
    return true;
}
