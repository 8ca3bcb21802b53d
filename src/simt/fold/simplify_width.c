/* Simplification of what changes a value's width or type: widening, narrowing, conversions,
 * packing; and of the addresses of memory accesses.
 *
 * A widening steps over operations that promise not to wrap, so that the constants of an address
 * computed in 32 bits reach the 64-bit address's offset. Packing and unpacking undo each other, and
 * byte permutes by constants become one where its bytes come from two words. */
#include "fold/simplify.h"

/* ---- widening and narrowing ------------------------------------------------------------- */

/* Is there a constant inside that a widening could bring out? */
static bool carries_constant(const lilac_simt_builder *b, lilac_simt_value value, uint32_t flag,
                             uint32_t depth) {
    const instruction *d = b->kernel->values[value].definition;
    uint64_t c;
    if (d == NULL || depth == 0 || !(d->flags & flag)) {
        return false;
    }
    switch (d->code) {
    case LILAC_SIMT_OP_ADD:
        return constant(b, d->operands[1], &c) ||
               carries_constant(b, d->operands[0], flag, depth - 1) ||
               carries_constant(b, d->operands[1], flag, depth - 1);
    case LILAC_SIMT_OP_MUL:
    case LILAC_SIMT_OP_SHL:
        return constant(b, d->operands[1], &c) &&
               carries_constant(b, d->operands[0], flag, depth - 1);
    default:
        return false;
    }
}

static lilac_simt_value widen_sum(lilac_simt_builder *b, const instruction *like,
                                  const instruction *sum, lilac_simt_type type, uint32_t flag) {
    lilac_simt_opcode code = (lilac_simt_opcode)like->code;
    lilac_simt_value x = lilac_simt_op1(b, code, type, sum->operands[0]);
    lilac_simt_value y = lilac_simt_op1(b, code, type, sum->operands[1]);
    return lilac_simt_op2_flags(b, LILAC_SIMT_OP_ADD, type, x, y, flag);
}

static lilac_simt_value simplify_extension(lilac_simt_builder *b, instruction *like,
                                           lilac_simt_type type, bool *again) {
    bool is_signed = like->code == LILAC_SIMT_OP_SEXT;
    lilac_simt_value x = like->operands[0];
    lilac_simt_type from = type_of(b, x);
    uint32_t flag = is_signed ? NSW : NUW;
    const instruction *d = b->kernel->values[x].definition;
    uint64_t k;
    if (from == type) {
        return x;
    }
    if (d == NULL) {
        return 0;
    }
    bool promised = (d->flags & flag) != 0;
    switch (d->code) {
    case LILAC_SIMT_OP_SEXT:
        if (is_signed) {
            like->operands[0] = d->operands[0];
            *again = true;
        }
        return 0;
    case LILAC_SIMT_OP_ZEXT: /* the sign is 0, so sext does the same */
        like->code = LILAC_SIMT_OP_ZEXT;
        like->operands[0] = d->operands[0];
        *again = true;
        return 0;
    case LILAC_SIMT_OP_ADD:
        return promised && carries_constant(b, x, flag, 4) ? widen_sum(b, like, d, type, flag) : 0;
    case LILAC_SIMT_OP_MUL:
        if (promised && from == LILAC_SIMT_I32 && type == LILAC_SIMT_I64) {
            return lilac_simt_op2(b, is_signed ? LILAC_SIMT_OP_MULWIDE_S : LILAC_SIMT_OP_MULWIDE_U,
                                  type, d->operands[0], d->operands[1]);
        }
        return 0;
    case LILAC_SIMT_OP_SHL:
        if (promised && from == LILAC_SIMT_I32 && type == LILAC_SIMT_I64 &&
            constant(b, d->operands[1], &k) && k < (is_signed ? 31 : 32)) {
            return lilac_simt_op2(b, is_signed ? LILAC_SIMT_OP_MULWIDE_S : LILAC_SIMT_OP_MULWIDE_U,
                                  type, d->operands[0],
                                  lilac_simt_constant(b, LILAC_SIMT_I32, (uint64_t)1 << k));
        }
        return 0;
    default:
        return 0;
    }
}

static lilac_simt_value simplify_trunc(lilac_simt_builder *b, instruction *like,
                                       lilac_simt_type type, bool *again) {
    const instruction *d = b->kernel->values[like->operands[0]].definition;
    if (type_of(b, like->operands[0]) == type) {
        return like->operands[0];
    }
    if (d == NULL || (d->code != LILAC_SIMT_OP_SEXT && d->code != LILAC_SIMT_OP_ZEXT &&
                      d->code != LILAC_SIMT_OP_TRUNC)) {
        return 0;
    }
    lilac_simt_value x = d->operands[0];
    uint32_t before = lilac_simt_type_bits(type_of(b, x));
    uint32_t width = lilac_simt_type_bits(type);
    if (before == width) {
        return x;
    }
    like->code = before > width ? (uint16_t)LILAC_SIMT_OP_TRUNC : d->code;
    like->operands[0] = x;
    *again = true;
    return 0;
}

/* Does every value of `narrow` exist in `wide`? */
static bool is_exact(lilac_simt_type narrow, lilac_simt_type wide) {
    return narrow == wide || wide == LILAC_SIMT_F64 ||
           (wide == LILAC_SIMT_F32 && (narrow == LILAC_SIMT_F16 || narrow == LILAC_SIMT_BF16));
}

static lilac_simt_value simplify_fcvt(lilac_simt_builder *b, instruction *like,
                                      lilac_simt_type type, bool *again) {
    lilac_simt_value x = like->operands[0];
    lilac_simt_type middle = type_of(b, x);
    if (like->flags != 0) {
        return 0;
    }
    if (middle == type) {
        return x;
    }
    const instruction *d = lilac_simt_defined_by(b, x, LILAC_SIMT_OP_FCVT);
    if (d == NULL || d->flags != 0) {
        return 0;
    }
    lilac_simt_type from = type_of(b, d->operands[0]);
    if (is_exact(from, middle)) {
        if (from == type) {
            return d->operands[0];
        }
        if (is_exact(middle, type) || is_exact(type, from)) {
            like->operands[0] = d->operands[0];
            *again = true;
        }
    }
    return 0;
}

/* ---- bits regrouped --------------------------------------------------------------------- */

static lilac_simt_value simplify_bitcast(lilac_simt_builder *b, instruction *like,
                                         lilac_simt_type type, bool *again) {
    lilac_simt_value x = like->operands[0];
    if (type_of(b, x) == type) {
        return x;
    }
    const instruction *d = lilac_simt_defined_by(b, x, LILAC_SIMT_OP_BITCAST);
    if (d != NULL) {
        like->operands[0] = d->operands[0];
        *again = true;
        return 0;
    }
    d = lilac_simt_defined_by(b, x, LILAC_SIMT_OP_PACK);
    if (d != NULL && d->operand_count <= 8) {
        return lilac_simt_pack(b, type, d->operand_count, d->operands);
    }
    return 0;
}

/* The value that a chain of bitcasts is of. */
static lilac_simt_value without_bitcast(const lilac_simt_builder *b, lilac_simt_value value) {
    const instruction *d = lilac_simt_defined_by(b, value, LILAC_SIMT_OP_BITCAST);
    return d != NULL ? d->operands[0] : value;
}

/* Four bytes that are those of two different values of 16 bits are a pack of these. */
static lilac_simt_value pack_halves(lilac_simt_builder *b, const instruction *like,
                                    lilac_simt_type type) {
    lilac_simt_value halves[2];
    for (uint32_t k = 0; k < 2; k++) {
        const lilac_simt_value low = without_bitcast(b, like->operands[2 * k]);
        const instruction *d = lilac_simt_defined_by(b, low, LILAC_SIMT_OP_UNPACK);
        if (d == NULL || d->result_count != 2 || low != d->result ||
            without_bitcast(b, like->operands[2 * k + 1]) != low + 1) {
            return 0;
        }
        halves[k] = lilac_simt_op1(b, LILAC_SIMT_OP_BITCAST, LILAC_SIMT_I16, d->operands[0]);
    }
    return halves[0] != halves[1] ? lilac_simt_pack(b, type, 2, halves) : 0;
}

/* Four bytes that were unpacked from two words are one byte permute of these. */
static lilac_simt_value pack_bytes(lilac_simt_builder *b, const instruction *like,
                                   lilac_simt_type type) {
    lilac_simt_value words[2] = {0, 0};
    uint64_t selector = 0;
    for (uint32_t k = 0; k < 4; k++) {
        const lilac_simt_value part = without_bitcast(b, like->operands[k]);
        const instruction *d = lilac_simt_defined_by(b, part, LILAC_SIMT_OP_UNPACK);
        if (d == NULL || d->result_count != 4 ||
            lilac_simt_type_bits(type_of(b, d->operands[0])) != 32) {
            return 0;
        }
        uint32_t at = 0;
        while (at < 2 && words[at] != 0 && words[at] != d->operands[0]) {
            at++;
        }
        if (at == 2) {
            return 0;
        }
        words[at] = d->operands[0];
        selector |= (uint64_t)(4 * at + part - d->result) << 4 * k;
    }
    if (words[1] == 0) {
        return 0;
    }
    for (uint32_t i = 0; i < 2; i++) {
        words[i] = lilac_simt_op1(b, LILAC_SIMT_OP_BITCAST, LILAC_SIMT_I32, words[i]);
    }
    return lilac_simt_op1(b, LILAC_SIMT_OP_BITCAST, type,
                          lilac_simt_op3(b, LILAC_SIMT_OP_PRMT, LILAC_SIMT_I32, words[0], words[1],
                                         lilac_simt_constant(b, LILAC_SIMT_I32, selector)));
}

static lilac_simt_value simplify_pack(lilac_simt_builder *b, const instruction *like,
                                      lilac_simt_type type) {
    if (like->operand_count == 1) {
        return lilac_simt_op1(b, LILAC_SIMT_OP_BITCAST, type, like->operands[0]);
    }
    const instruction *d =
        lilac_simt_defined_by(b, without_bitcast(b, like->operands[0]), LILAC_SIMT_OP_UNPACK);
    bool whole = d != NULL && d->result_count == like->operand_count;
    for (uint32_t k = 0; k < like->operand_count && whole; k++) {
        whole = without_bitcast(b, like->operands[k]) == d->result + k;
    }
    if (whole) {
        return lilac_simt_op1(b, LILAC_SIMT_OP_BITCAST, type, d->operands[0]);
    }
    if (like->operand_count != 4 || lilac_simt_type_bits(type) != 32) {
        return 0;
    }
    const lilac_simt_value halves = pack_halves(b, like, type);
    return halves != 0 ? halves : pack_bytes(b, like, type);
}

/* ---- byte permutes ---------------------------------------------------------------------- */

/* Bits of a selector that ask for a copy of the sign. */
enum { SIGNS = 0x8888 };

/* Which byte of which word a byte is: through permutes by constants. */
typedef struct byte_source {
    lilac_simt_value word;
    uint32_t byte;
} byte_source;

static byte_source find_byte(const lilac_simt_builder *b, const lilac_simt_value *words,
                             uint64_t selector, uint32_t index) {
    uint32_t nibble = (uint32_t)(selector >> 4 * index & 7);
    byte_source source = {without_bitcast(b, words[nibble / 4]), nibble % 4};
    const instruction *d;
    uint64_t inner;
    while ((d = lilac_simt_defined_by(b, source.word, LILAC_SIMT_OP_PRMT)) != NULL &&
           constant(b, d->operands[2], &inner) && !(inner & SIGNS)) {
        nibble = (uint32_t)(inner >> 4 * source.byte & 7);
        source.word = without_bitcast(b, d->operands[nibble / 4]);
        source.byte = nibble % 4;
    }
    return source;
}

/* One permute of at most two words, the first of which gives byte 0. */
static lilac_simt_value simplify_prmt(lilac_simt_builder *b, instruction *like, bool *again) {
    uint64_t selector, new_selector = 0;
    if (!constant(b, like->operands[2], &selector) || (selector & SIGNS)) {
        return 0;
    }
    lilac_simt_value words[2] = {0, 0};
    for (uint32_t k = 0; k < 4; k++) {
        byte_source source = find_byte(b, like->operands, selector, k);
        uint32_t which = source.word == words[0] ? 0 : 1;
        if (words[0] == 0) {
            words[0] = source.word;
            which = 0;
        } else if (which == 1 && words[1] != 0 && words[1] != source.word) {
            return 0;
        } else if (which == 1) {
            words[1] = source.word;
        }
        new_selector |= (uint64_t)(4 * which + source.byte) << 4 * k;
    }
    words[1] = words[1] != 0 ? words[1] : words[0];
    for (uint32_t k = 0; k < 2; k++) {
        words[k] = lilac_simt_op1(b, LILAC_SIMT_OP_BITCAST, LILAC_SIMT_I32, words[k]);
    }
    if (new_selector == 0x3210) {
        return words[0];
    }
    if (words[0] != like->operands[0] || words[1] != like->operands[1] ||
        new_selector != selector) {
        like->operands[0] = words[0];
        like->operands[1] = words[1];
        like->operands[2] = lilac_simt_constant(b, LILAC_SIMT_I32, new_selector);
        *again = true;
    }
    return 0;
}

/* The parts of a permute by a constant of words whose parts are known, when each is a whole one. */
static bool known_permuted_parts(lilac_simt_builder *b, const instruction *prmt,
                                 lilac_simt_type part, uint32_t count, lilac_simt_value *parts) {
    enum { MOST = 4 };
    lilac_simt_value known[2][MOST];
    uint64_t selector;
    uint32_t bytes = 4 / count;
    if (count > MOST || !constant(b, prmt->operands[2], &selector) || (selector & SIGNS)) {
        return false;
    }
    for (uint32_t k = 0; k < 4; k++) {
        uint32_t first = (uint32_t)(selector >> 4 * (k / bytes * bytes) & 7);
        if ((selector >> 4 * k & 7) != first + k % bytes || first % bytes != 0) {
            return false;
        }
    }
    for (uint32_t k = 0; k < 2; k++) { /* one step: a network of permutes is not searched */
        lilac_simt_value word = without_bitcast(b, prmt->operands[k]);
        if (lilac_simt_defined_by(b, word, LILAC_SIMT_OP_PRMT) != NULL ||
            !lilac_simt_known_parts(b, word, part, count, known[k])) {
            return false;
        }
    }
    for (uint32_t k = 0; k < count; k++) {
        uint32_t first = (uint32_t)(selector >> 4 * k * bytes & 7);
        parts[k] = known[first / 4][first % 4 / bytes];
    }
    return true;
}

bool lilac_simt_known_parts(lilac_simt_builder *b, lilac_simt_value value, lilac_simt_type part,
                            uint32_t count, lilac_simt_value *parts) {
    uint64_t bits;
    if (count == 1) {
        parts[0] = lilac_simt_op1(b, LILAC_SIMT_OP_BITCAST, part, value);
        return true;
    }
    if (constant(b, value, &bits)) {
        uint32_t width = lilac_simt_type_bits(part);
        for (uint32_t k = 0; k < count; k++) {
            parts[k] = lilac_simt_constant(b, part, bits >> (width * k));
        }
        return true;
    }
    const instruction *d = lilac_simt_defined_by(b, value, LILAC_SIMT_OP_BITCAST);
    if (d != NULL) {
        value = d->operands[0];
    }
    d = lilac_simt_defined_by(b, value, LILAC_SIMT_OP_PRMT);
    if (d != NULL) {
        return known_permuted_parts(b, d, part, count, parts);
    }
    d = lilac_simt_defined_by(b, value, LILAC_SIMT_OP_PACK);
    if (d == NULL || d->operand_count != count) {
        return false;
    }
    for (uint32_t k = 0; k < count; k++) {
        parts[k] = d->operands[k];
    }
    for (uint32_t k = 0; k < count; k++) {
        parts[k] = lilac_simt_op1(b, LILAC_SIMT_OP_BITCAST, part, parts[k]);
    }
    return true;
}

/* ---- addresses -------------------------------------------------------------------------- */

/* The constant within a sum of products of `value`'s own width (where arithmetic is a ring, so no
 * promise is needed). */
static uint64_t constant_within(const lilac_simt_builder *b, lilac_simt_value value,
                                uint32_t depth) {
    const instruction *d = b->kernel->values[value].definition;
    uint64_t c;
    if (d == NULL || depth == 0) {
        return 0;
    }
    switch (d->code) {
    case LILAC_SIMT_OP_ADD:
        return (constant(b, d->operands[1], &c) ? c
                                                : constant_within(b, d->operands[1], depth - 1)) +
               constant_within(b, d->operands[0], depth - 1);
    case LILAC_SIMT_OP_MUL:
        return constant(b, d->operands[1], &c) ? constant_within(b, d->operands[0], depth - 1) * c
                                               : 0;
    case LILAC_SIMT_OP_SHL:
        return constant(b, d->operands[1], &c) && c < 64
                   ? constant_within(b, d->operands[0], depth - 1) << c
                   : 0;
    default:
        return 0;
    }
}

/* The value less that constant. */
static lilac_simt_value without_constant(lilac_simt_builder *b, lilac_simt_value value,
                                         uint32_t depth) {
    const instruction *d = b->kernel->values[value].definition;
    lilac_simt_type type = type_of(b, value);
    uint64_t c;
    if (d == NULL || depth == 0 || constant_within(b, value, depth) == 0) {
        return value;
    }
    if (d->code == LILAC_SIMT_OP_ADD) {
        lilac_simt_value x = without_constant(b, d->operands[0], depth - 1);
        return constant(b, d->operands[1], &c)
                   ? x
                   : lilac_simt_op2(b, LILAC_SIMT_OP_ADD, type, x,
                                    without_constant(b, d->operands[1], depth - 1));
    }
    return lilac_simt_op2(b, (lilac_simt_opcode)d->code, type,
                          without_constant(b, d->operands[0], depth - 1), d->operands[1]);
}

/* Moves the constant part of an address into the offset, if the sum fits 32 bits. */
static bool fold_offset(lilac_simt_builder *b, lilac_simt_value *address, int64_t *offset) {
    enum { DEPTH = 5 };
    lilac_simt_type type = type_of(b, *address);
    if (type != LILAC_SIMT_I32 && type != LILAC_SIMT_I64) {
        return false;
    }
    int64_t constant_part = lilac_simt_signed(type, constant_within(b, *address, DEPTH)), sum;
    if (constant_part == 0 || __builtin_add_overflow(*offset, constant_part, &sum) ||
        sum < INT32_MIN || sum > INT32_MAX) {
        return false;
    }
    *address = without_constant(b, *address, DEPTH);
    *offset = sum;
    return true;
}

/* The global address of a copy, and the address of the mbarrier at which it completes. */
static bool fold_second_address(lilac_simt_builder *b, instruction *like) {
    bool bulk = lilac_simt_is_bulk_copy(like->code), changed = false;
    if (!bulk && like->code != LILAC_SIMT_OP_CP_ASYNC) {
        return false;
    }
    bool predicated = type_of(b, like->operands[1]) == LILAC_SIMT_I1;
    if (!lilac_simt_is_tensor_copy(like->code)) { /* whose second address is a map's */
        int32_t *global = bulk ? &like->payload.bulk.global : &like->payload.copy.source;
        int64_t offset = *global;
        changed = fold_offset(b, &like->operands[1 + predicated], &offset);
        *global = (int32_t)offset;
    }
    if (lilac_simt_completes_at_mbarrier(like->code)) {
        int64_t offset = like->payload.bulk.mbarrier;
        changed |= fold_offset(b, &like->operands[lilac_simt_mbarrier_operand(like)], &offset);
        like->payload.bulk.mbarrier = (int32_t)offset;
    }
    return changed;
}

bool lilac_simt_simplify_access(lilac_simt_builder *b, instruction *like) {
    uint64_t c;
    bool changed = fold_offset(b, &like->operands[0], &like->immediate);
    changed |= fold_second_address(b, like);
    /* always active: no predicate, no substitutes */
    if (like->operand_count > 1 && type_of(b, like->operands[1]) == LILAC_SIMT_I1 &&
        constant(b, like->operands[1], &c) && c == 1) {
        if (lilac_simt_is_load(like->code)) {
            like->operand_count = 1;
        } else {
            for (uint32_t k = 2; k < like->operand_count; k++) {
                like->operands[k - 1] = like->operands[k];
            }
            like->operand_count--;
        }
        changed = true;
    }
    return changed;
}

/* Has the float a bit for each bit of the integers? */
static bool holds(lilac_simt_type number, lilac_simt_type integer) {
    const uint32_t bits = number == LILAC_SIMT_F64   ? 53
                          : number == LILAC_SIMT_F32 ? 24
                          : number == LILAC_SIMT_F16 ? 11
                                                     : 8;
    return integer != LILAC_SIMT_I1 && lilac_simt_type_bits(integer) <= bits;
}

/* An integer that became a float, and again that integer. */
static lilac_simt_value simplify_to_integer(const lilac_simt_builder *b, const instruction *like,
                                            lilac_simt_type type) {
    const lilac_simt_opcode back =
        like->code == LILAC_SIMT_OP_F2S ? LILAC_SIMT_OP_S2F : LILAC_SIMT_OP_U2F;
    const instruction *d = lilac_simt_defined_by(b, like->operands[0], back);
    return d != NULL && type_of(b, d->operands[0]) == type &&
                   holds(type_of(b, like->operands[0]), type)
               ? d->operands[0]
               : 0;
}

lilac_simt_value lilac_simt_simplify_width(lilac_simt_builder *b, instruction *like,
                                           lilac_simt_type type, bool *again) {
    switch (like->code) {
    case LILAC_SIMT_OP_SEXT:
    case LILAC_SIMT_OP_ZEXT:
        return simplify_extension(b, like, type, again);
    case LILAC_SIMT_OP_TRUNC:
        return simplify_trunc(b, like, type, again);
    case LILAC_SIMT_OP_FCVT:
        return simplify_fcvt(b, like, type, again);
    case LILAC_SIMT_OP_F2S:
    case LILAC_SIMT_OP_F2U:
        return simplify_to_integer(b, like, type);
    case LILAC_SIMT_OP_BITCAST:
        return simplify_bitcast(b, like, type, again);
    case LILAC_SIMT_OP_PACK:
        return simplify_pack(b, like, type);
    case LILAC_SIMT_OP_PRMT:
        return simplify_prmt(b, like, again);
    default:
        return 0;
    }
}
