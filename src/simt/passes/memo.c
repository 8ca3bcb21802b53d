/* What is already computed, and what is known of its bits.
 *
 * Hash-consing: an expression is looked up by (code, modifiers, immediate, operands, type); the
 * operands of a commutative operation in either order. An entry is good while the body it was built
 * in is open, so that whatever finds it is dominated by it. Operations without operands (constants,
 * parameters, thread numbers) stand at the head of the kernel's body and stay good for ever.
 *
 * Known bits: for each value the mask of bits that are 0 in every thread. From "lane < 32" follow
 * the ranges of sums and products, and so no-wrap flags, redundant masks and comparisons with one
 * answer. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- the table -------------------------------------------------------------------------- */

#define WRAP_FLAGS (LILAC_SIMT_NO_SIGNED_WRAP | LILAC_SIMT_NO_UNSIGNED_WRAP)

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 29);
}

static uint32_t hash_of(const lilac_simt_instruction *like, uint32_t results,
                        lilac_simt_type type) {
    uint64_t head = like->code | (uint64_t)like->detail << 16 | (uint64_t)like->scalar << 24 |
                    (uint64_t)(like->flags & ~WRAP_FLAGS) << 32 | (uint64_t)type << 40 |
                    (uint64_t)results << 48;
    uint64_t hash = mix(mix(0x6C696C6163u, head), (uint64_t)like->immediate);
    hash = lilac_simt_payload_hash(like, hash);
    if (like->operand_count == 2) {
        uint64_t a = like->operands[0];
        uint64_t c = like->operands[1];
        if (a > c && lilac_simt_has_trait(like->code, LILAC_SIMT_COMMUTATIVE)) {
            return (uint32_t)(mix(hash, a << 32 | c) >> 16);
        }
        return (uint32_t)(mix(hash, c << 32 | a) >> 16);
    }
    for (uint32_t k = 0; k < like->operand_count; k++) {
        hash = mix(hash, like->operands[k]);
    }
    return (uint32_t)(hash >> 16);
}

static bool same_operands(const lilac_simt_instruction *a, const lilac_simt_instruction *b) {
    if (a->operand_count != b->operand_count) {
        return false;
    }
    if (a->operand_count == 2 && a->operands[0] == b->operands[1] &&
        a->operands[1] == b->operands[0] && lilac_simt_has_trait(a->code, LILAC_SIMT_COMMUTATIVE)) {
        return true;
    }
    for (uint32_t k = 0; k < a->operand_count; k++) {
        if (a->operands[k] != b->operands[k]) {
            return false;
        }
    }
    return true;
}

static void put_slot(lilac_simt_table *table, uint32_t entry) {
    uint32_t slot = table->entries[entry].hash & (table->slot_count - 1);
    while (table->slots[slot] != 0) {
        slot = (slot + 1) & (table->slot_count - 1);
    }
    table->slots[slot] = entry + 1;
}

static void grow_table(lilac_simt_table *table) {
    table->capacity = table->capacity == 0 ? 256 : table->capacity * 2;
    table->slot_count = table->capacity * 2;
    table->entries =
        lilac_heap_grow(table->entries, sizeof *table->entries * (size_t)table->capacity);
    table->slots = lilac_heap_grow(table->slots, sizeof *table->slots * (size_t)table->slot_count);
    memset(table->slots, 0, sizeof *table->slots * (size_t)table->slot_count);
    for (uint32_t entry = 0; entry < table->count; entry++) {
        put_slot(table, entry);
    }
}

static void clear_table(lilac_simt_table *table) {
    lilac_heap_free(table->entries);
    lilac_heap_free(table->slots);
}

static lilac_simt_table *table_for(const struct lilac_simt_memo *memo,
                                   const lilac_simt_instruction *like) {
    const lilac_simt_table *table = like->operand_count == 0 ? &memo->leaves : &memo->expressions;
    return (lilac_simt_table *)table;
}

lilac_simt_value lilac_simt_memo_find(const struct lilac_simt_memo *memo,
                                      const lilac_simt_kernel *kernel,
                                      const lilac_simt_instruction *like, uint32_t results,
                                      lilac_simt_type type, uint32_t *hash) {
    const lilac_simt_table *table = table_for(memo, like);
    *hash = hash_of(like, results, type);
    if (table->slot_count == 0) {
        return 0;
    }
    for (uint32_t slot = *hash & (table->slot_count - 1); table->slots[slot] != 0;
         slot = (slot + 1) & (table->slot_count - 1)) {
        const struct lilac_simt_table_entry *entry = &table->entries[table->slots[slot] - 1];
        if (entry->hash != *hash) {
            continue;
        }
        const lilac_simt_value_info *info = &kernel->values[entry->value];
        const lilac_simt_instruction *found = info->definition;
        if (found->code == like->code && info->type == type && found->result_count == results &&
            found->detail == like->detail && found->scalar == like->scalar &&
            ((found->flags ^ like->flags) & ~WRAP_FLAGS) == 0 &&
            found->immediate == like->immediate && found->text == like->text &&
            lilac_simt_payload_equal(found, like) && same_operands(found, like)) {
            return entry->value;
        }
    }
    return 0;
}

void lilac_simt_memo_add(struct lilac_simt_memo *memo, const lilac_simt_instruction *instruction,
                         uint32_t hash) {
    lilac_simt_table *table = table_for(memo, instruction);
    if (table->count == table->capacity) {
        grow_table(table);
    }
    table->entries[table->count].hash = hash;
    table->entries[table->count].value = instruction->result;
    put_slot(table, table->count++);
}

uint32_t lilac_simt_memo_open(const struct lilac_simt_memo *memo) {
    return memo->expressions.count;
}

void lilac_simt_memo_close(struct lilac_simt_memo *memo, uint32_t mark) {
    lilac_simt_table *table = &memo->expressions;
    while (table->count > mark) {
        uint32_t entry = --table->count;
        uint32_t slot = table->entries[entry].hash & (table->slot_count - 1);
        while (table->slots[slot] != entry + 1) {
            slot = (slot + 1) & (table->slot_count - 1);
        }
        table->slots[slot] = 0;
    }
}

struct lilac_simt_memo *lilac_simt_memo_create(lilac_simt_kernel *kernel) {
    struct lilac_simt_memo *memo = lilac_heap_grow(NULL, sizeof *memo);
    memset(memo, 0, sizeof *memo);
    /* A kernel that is built already shares its leading leaves. */
    lilac_simt_builder b = {.kernel = kernel, .body = kernel->body, .memo = memo};
    for (lilac_simt_instruction *i = kernel->body->first; i != NULL; i = i->next) {
        if (i->operand_count != 0 || i->result_count != 1 ||
            !lilac_simt_has_trait(i->code, LILAC_SIMT_PURE)) {
            break;
        }
        uint32_t hash;
        lilac_simt_type type = (lilac_simt_type)kernel->values[i->result].type;
        if (lilac_simt_memo_find(memo, kernel, i, 1, type, &hash) == 0) {
            lilac_simt_memo_add(memo, i, hash);
        }
        lilac_simt_learn(&b, i);
        memo->last_leaf = i;
    }
    return memo;
}

void lilac_simt_memo_clear(struct lilac_simt_memo *memo) {
    clear_table(&memo->leaves);
    clear_table(&memo->expressions);
    lilac_heap_free(memo->zeros);
}

void lilac_simt_memo_destroy(struct lilac_simt_memo *memo) {
    if (memo != NULL) {
        lilac_simt_memo_clear(memo);
        lilac_heap_free(memo);
    }
}

/* ---- known bits ------------------------------------------------------------------------- */

/* All bits at and below the highest one of x. */
static uint64_t fill_below(uint64_t x) {
    x |= x >> 1;
    x |= x >> 2;
    x |= x >> 4;
    x |= x >> 8;
    x |= x >> 16;
    return x | x >> 32;
}

/* Bits that may be 1 in a number up to `most`. */
static uint64_t up_to(uint64_t most) {
    return fill_below(most);
}

/* Bits that may be 1 in a multiple of 2^k, where k is the number of low zeros of both masks. */
static uint64_t low_zeros(uint64_t possible) {
    return possible == 0 ? 64 : (uint64_t)__builtin_ctzll(possible);
}

static uint64_t multiples(uint64_t zeros) {
    return zeros >= 64 ? 0 : ~(uint64_t)0 << zeros;
}

static uint64_t possible_sum(uint64_t a, uint64_t c, uint64_t mask) {
    uint64_t za = low_zeros(a);
    uint64_t zc = low_zeros(c);
    uint64_t sum;
    bool wraps = __builtin_add_overflow(a, c, &sum) || sum > mask;
    return (wraps ? mask : up_to(sum)) & multiples(za < zc ? za : zc);
}

static uint64_t possible_product(uint64_t a, uint64_t c, uint64_t mask) {
    uint64_t product;
    bool wraps = __builtin_mul_overflow(a, c, &product) || product > mask;
    return (wraps ? mask : up_to(product)) & multiples(low_zeros(a) + low_zeros(c));
}

static uint64_t possible_leaf(const lilac_simt_kernel *kernel, const lilac_simt_instruction *i,
                              uint64_t mask) {
    const lilac_arch *arch = kernel->module->arch;
    uint64_t warp = arch != NULL ? arch->warp_size : 64;
    switch (i->code) {
    case LILAC_SIMT_OP_CONST:
        return (uint64_t)i->immediate & mask;
    case LILAC_SIMT_OP_LANE:
        return up_to(warp - 1);
    case LILAC_SIMT_OP_WARP:
        return up_to(kernel->num_warps > 0 ? kernel->num_warps - 1u : 0);
    case LILAC_SIMT_OP_THREAD:
        return up_to(kernel->num_warps > 0 ? warp * kernel->num_warps - 1 : 0);
    case LILAC_SIMT_OP_CTA:
        return up_to(kernel->num_ctas > 0 ? kernel->num_ctas - 1u : 0);
    case LILAC_SIMT_OP_BLOCK:
    case LILAC_SIMT_OP_GRID:
        return INT32_MAX; /* a grid has at most 2^31 - 1 blocks along x, fewer along y and z */
    case LILAC_SIMT_OP_PARAM: {
        uint64_t index = (uint64_t)i->immediate;
        if (index < kernel->parameter_count && kernel->parameters[index].is_pointer) {
            uint32_t alignment = kernel->parameters[index].alignment;
            return mask & multiples(alignment == 0 ? 0 : low_zeros(alignment));
        }
        return mask;
    }
    default:
        return mask;
    }
}

/* The operands of an operation whose result is looked at. */
typedef struct known_operands {
    uint64_t a, b; /* bits that may be 1 */
    bool constant; /* the second operand is the constant k */
    uint64_t k;
    bool positive;  /* the sign of the first operand is never set */
    uint32_t width; /* of the first operand */
} known_operands;

static uint64_t possible_signed_product(const known_operands *o, uint64_t mask) {
    return o->positive && o->b >> 31 == 0 ? possible_product(o->a, o->b, mask)
                                          : mask & multiples(low_zeros(o->a) + low_zeros(o->b));
}

static uint64_t possible_shl(const known_operands *o, uint64_t mask) {
    return !o->constant ? mask & multiples(low_zeros(o->a))
           : o->k >= 64 ? 0
                        : (o->a << o->k) & mask;
}

static uint64_t possible_shr(const known_operands *o) {
    return !o->constant ? fill_below(o->a) : o->k >= 64 ? 0 : o->a >> o->k;
}

/* Bits of the first result that may be 1. */
static uint64_t possible_result(const lilac_simt_builder *builder, const lilac_simt_instruction *i,
                                uint64_t mask) {
    const lilac_simt_kernel *kernel = builder->kernel;
    if (i->operand_count == 0) {
        return possible_leaf(kernel, i, mask);
    }
    const uint64_t a = lilac_simt_possible(builder, i->operands[0]);
    const uint64_t b = i->operand_count > 1 ? lilac_simt_possible(builder, i->operands[1]) : 0;
    known_operands o = {.a = a, .b = b};
    o.width = lilac_simt_type_bits((lilac_simt_type)kernel->values[i->operands[0]].type);
    o.positive = a >> (o.width - 1) == 0;
    o.constant = i->operand_count > 1 && lilac_simt_constant_bits(kernel, i->operands[1], &o.k);
    switch (i->code) {
#define INTEGER(opcode, value, possible)                                                           \
    case LILAC_SIMT_OP_##opcode:                                                                   \
        return (possible);
#define FLOAT(opcode, value)
#include "arithmetic.def"
#undef INTEGER
#undef FLOAT
    case LILAC_SIMT_OP_SELECT:
        return b | lilac_simt_possible(builder, i->operands[2]);
    default:
        return mask;
    }
}

void lilac_simt_learn(lilac_simt_builder *b, const lilac_simt_instruction *instruction) {
    struct lilac_simt_memo *memo = b->memo;
    lilac_simt_value value = instruction->result;
    lilac_simt_type type = (lilac_simt_type)b->kernel->values[value].type;
    if (!lilac_simt_type_is_integer(type)) {
        return;
    }
    uint64_t mask = lilac_simt_type_mask(type);
    uint64_t zeros = ~possible_result(b, instruction, mask) & mask;
    if (zeros == 0) {
        return;
    }
    if (value >= memo->zeros_count) {
        uint32_t count = memo->zeros_count == 0 ? 512 : memo->zeros_count;
        while (count <= value) {
            count *= 2;
        }
        memo->zeros = lilac_heap_grow(memo->zeros, sizeof *memo->zeros * (size_t)count);
        memset(memo->zeros + memo->zeros_count, 0,
               sizeof *memo->zeros * (size_t)(count - memo->zeros_count));
        memo->zeros_count = count;
    }
    memo->zeros[value] = zeros;
}

uint64_t lilac_simt_possible_bits(const lilac_simt_builder *b, lilac_simt_value value) {
    return lilac_simt_possible(b, value);
}

void lilac_simt_infer_wrap(const lilac_simt_builder *b, lilac_simt_instruction *like,
                           lilac_simt_type type) {
    if (like->code != LILAC_SIMT_OP_ADD && like->code != LILAC_SIMT_OP_MUL &&
        like->code != LILAC_SIMT_OP_SHL) {
        return;
    }
    uint64_t mask = lilac_simt_type_mask(type);
    uint64_t a = lilac_simt_possible(b, like->operands[0]);
    uint64_t c = lilac_simt_possible(b, like->operands[1]);
    uint64_t most;
    bool wraps;
    if (like->code == LILAC_SIMT_OP_ADD) {
        wraps = __builtin_add_overflow(a, c, &most);
    } else if (like->code == LILAC_SIMT_OP_MUL) {
        wraps = __builtin_mul_overflow(a, c, &most);
    } else {
        wraps = !lilac_simt_constant_bits(b->kernel, like->operands[1], &c) || c >= 64 ||
                a > UINT64_MAX >> c;
        most = wraps ? 0 : a << c;
    }
    if (!wraps && most <= mask) {
        like->flags |= LILAC_SIMT_NO_UNSIGNED_WRAP;
        if (most <= mask >> 1) {
            like->flags |= LILAC_SIMT_NO_SIGNED_WRAP;
        }
    }
}
