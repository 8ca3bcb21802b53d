/* convert_bytes: bytes and nibbles of words become floats by byte permutes and one sum.
 *
 * A conversion of an integer occupies the unit for special functions, which is eight times as slow as the
 * one for sums. But where the last bits of a float count units, an integer n of few bits is their bits:
 *
 *     0x4B000000 | n   is 2^23 + n as f32, for n < 2^23
 *     0x6400 | n       is 2^10 + n as f16, for n < 2^10
 *     0x4300 | n       is 2^7 + n as bf16, for n < 2^7
 *
 * and a sum with a constant is exact. A signed byte is biased first, all four of a word at once. Let w be a
 * word of bytes that `unpack` takes apart:
 *
 *     value                        n: byte k of                              value = n - bias
 *     byte k, unsigned             w                                         0
 *     byte k, signed               w ^ 0x80808080                            128
 *     low nibble, unsigned         w & 0x0F0F0F0F                            0
 *     low nibble, signed           (w & 0x0F0F0F0F) ^ 0x08080808             8       (x << 4) >> 4
 *     high nibble                  the same of w >> 4                        the same
 *
 * A sum of a nibble and a constant changes the bias. Integers of 16 bits keep their conversions, which read
 * either half of a register without a permute.
 *
 *     %x = s2f %v : f32       →    %m = xor %w, 0x80808080
 *                                  %p = prmt %m, 0x4B000000, 0x7540 + k
 *                                  %x = fadd %p, -(2^23 + 128) : f32
 *
 * Two values that are rounded to f16 or bf16 and packed need one permute and one sum of both halves, or
 * two permutes if they are of different words:
 *
 *     %r = pack %x0, %x1 : i32   →   %p = prmt %m, 0x64646464, 0x4140
 *                                    %r = fadd %p, {-(2^10 + 128), -(2^10 + 128)} : f16x2
 *
 * In bf16 only nibbles fit. The results are the same bits; zero is +0 in both forms. */
#include "internal.h"

#include <lilac/arch.h>

#include <string.h>

typedef lilac_simt_instruction instruction;

enum {
    BYTES = 4,              /* of a word */
    F32_UNITS = 0x4B000000, /* 2^23 */
    F16_UNITS = 0x6400,     /* 2^10 */
    BF16_UNITS = 0x4300,    /* 2^7 */
    F32_INTEGERS = 1 << 23,
    F16_INTEGERS = 1 << 10,
    BF16_INTEGERS = 1 << 7,
    NIBBLE = 4,
    MOST_BIAS = 100 /* 2^7 + bias is exact in bf16 */
};

typedef enum part { WHOLE, LOW, HIGH } part;

/* The number of byte `index` of a word, as the table above says, less the bias. */
typedef struct byte_value {
    lilac_simt_value word;
    uint32_t index;
    part part;
    bool is_signed;
    int32_t bias;
} byte_value;

typedef struct converter {
    lilac_simt_builder b;
    uint32_t *uses;
    uint32_t count; /* entries of `uses`: values made later have none */
    bool changed;
} converter;

static bool has_one_use(const converter *c, lilac_simt_value value) {
    return value < c->count && c->uses[value] == 1;
}

static lilac_simt_value word(converter *c, uint32_t bits) {
    return lilac_simt_constant(&c->b, LILAC_SIMT_I32, bits);
}

/* ---- which values ------------------------------------------------------------------------- */

static bool is_constant(const converter *c, lilac_simt_value value, uint64_t number) {
    uint64_t bits;
    return lilac_simt_constant_bits(c->b.kernel, value, &bits) && (bits & 0xFF) == number;
}

/* Byte `index` of a word, or of a half of one. */
static bool is_byte(const converter *c, lilac_simt_value value, byte_value *found) {
    const instruction *d = lilac_simt_defined_by(&c->b, value, LILAC_SIMT_OP_UNPACK);
    if (d == NULL || lilac_simt_type_of(c->b.kernel, value) != LILAC_SIMT_I8 ||
        (lilac_simt_type_of(c->b.kernel, d->operands[0]) != LILAC_SIMT_I32 &&
         lilac_simt_type_of(c->b.kernel, d->operands[0]) != LILAC_SIMT_I16)) {
        return false;
    }
    found->word = d->operands[0];
    found->index = value - d->result;
    return true;
}

/* x >> 4 of a byte x, or of a byte << 4. */
static bool is_nibble(const converter *c, const instruction *shift, byte_value *found) {
    if (!is_constant(c, shift->operands[1], NIBBLE)) {
        return false;
    }
    found->is_signed = shift->code == LILAC_SIMT_OP_SHR_S;
    found->bias = found->is_signed ? 1 << (NIBBLE - 1) : 0;
    const instruction *left = lilac_simt_defined_by(&c->b, shift->operands[0], LILAC_SIMT_OP_SHL);
    if (left != NULL && is_constant(c, left->operands[1], NIBBLE)) {
        found->part = LOW;
        return is_byte(c, left->operands[0], found);
    }
    found->part = HIGH;
    return is_byte(c, shift->operands[0], found);
}

/* x & 15 of a byte x, or of a byte >> 4. */
static bool is_masked(const converter *c, const instruction *mask, byte_value *found) {
    const uint32_t side = is_constant(c, mask->operands[0], 0xF) ? 1 : 0;
    if (!is_constant(c, mask->operands[1 - side], 0xF)) {
        return false;
    }
    const instruction *d = c->b.kernel->values[mask->operands[side]].definition;
    const bool shifts = d != NULL &&
                        (d->code == LILAC_SIMT_OP_SHR_S || d->code == LILAC_SIMT_OP_SHR_U) &&
                        is_constant(c, d->operands[1], NIBBLE);
    found->part = shifts ? HIGH : LOW;
    found->is_signed = false;
    found->bias = 0;
    return is_byte(c, shifts ? d->operands[0] : mask->operands[side], found);
}

/* A value of 8 bits, taken for a signed or an unsigned number. */
static bool find_byte(const converter *c, lilac_simt_value value, bool is_signed,
                      byte_value *found) {
    const instruction *d = c->b.kernel->values[value].definition;
    uint64_t bits;
    if (d == NULL || lilac_simt_type_of(c->b.kernel, value) != LILAC_SIMT_I8) {
        return false;
    }
    switch (d->code) {
    case LILAC_SIMT_OP_UNPACK:
        found->part = WHOLE;
        found->is_signed = is_signed;
        found->bias = is_signed ? 1 << 7 : 0;
        return is_byte(c, value, found);
    case LILAC_SIMT_OP_SHR_S:
        return is_signed && is_nibble(c, d, found);
    case LILAC_SIMT_OP_SHR_U:
        return is_nibble(c, d, found);
    case LILAC_SIMT_OP_AND:
        return is_masked(c, d, found);
    case LILAC_SIMT_OP_ADD:
    case LILAC_SIMT_OP_SUB:
        /* nibble + c, within the numbers of 8 bits and of bf16 */
        if (!is_signed || !lilac_simt_constant_bits(c->b.kernel, d->operands[1], &bits) ||
            !find_byte(c, d->operands[0], true, found) || found->part == WHOLE) {
            return false;
        }
        found->bias -= d->code == LILAC_SIMT_OP_ADD ? (int8_t)bits : -(int8_t)bits;
        return found->bias >= -MOST_BIAS && found->bias <= MOST_BIAS;
    default:
        return false;
    }
}

static bool is_conversion(const instruction *i) {
    return i != NULL && (i->code == LILAC_SIMT_OP_S2F || i->code == LILAC_SIMT_OP_U2F);
}

/* What a conversion of an integer converts, also of one that was extended before. */
static bool find_converted(const converter *c, const instruction *i, byte_value *found) {
    const instruction *d = c->b.kernel->values[i->operands[0]].definition;
    const bool is_signed = i->code == LILAC_SIMT_OP_S2F;
    if (d != NULL && d->code == LILAC_SIMT_OP_ZEXT) {
        return find_byte(c, d->operands[0], false, found);
    }
    if (d != NULL && d->code == LILAC_SIMT_OP_SEXT && is_signed) {
        return find_byte(c, d->operands[0], true, found);
    }
    return find_byte(c, i->operands[0], is_signed, found);
}

/* ---- numbers ------------------------------------------------------------------------------- */

/* The word whose bytes are the numbers. */
static lilac_simt_value numbers_of(converter *c, const byte_value *v) {
    lilac_simt_builder *b = &c->b;
    lilac_simt_value made = v->word;
    if (lilac_simt_type_of(b->kernel, made) == LILAC_SIMT_I16) {
        made = lilac_simt_op1(b, LILAC_SIMT_OP_ZEXT, LILAC_SIMT_I32, made);
    }
    if (v->part == HIGH) {
        made = lilac_simt_op2(b, LILAC_SIMT_OP_SHR_U, LILAC_SIMT_I32, made, word(c, NIBBLE));
    }
    if (v->part != WHOLE) {
        made = lilac_simt_op2(b, LILAC_SIMT_OP_AND, LILAC_SIMT_I32, made, word(c, 0x0F0F0F0F));
    }
    if (v->is_signed) {
        made = lilac_simt_op2(b, LILAC_SIMT_OP_XOR, LILAC_SIMT_I32, made,
                              word(c, v->part == WHOLE ? 0x80808080 : 0x08080808));
    }
    return made;
}

static lilac_simt_value permute(converter *c, lilac_simt_value first, lilac_simt_value second,
                                uint32_t selector) {
    return lilac_simt_op3(&c->b, LILAC_SIMT_OP_PRMT, LILAC_SIMT_I32, first, second,
                          word(c, selector));
}

/* ---- pairs --------------------------------------------------------------------------------- */

/* A number that is converted to f16 or bf16, also by way of f32. */
static bool find_value(const converter *c, lilac_simt_value value, lilac_simt_type type,
                       byte_value *found) {
    const lilac_simt_kernel *kernel = c->b.kernel;
    const instruction *d = kernel->values[value].definition;
    if (d != NULL && d->code == LILAC_SIMT_OP_FCVT && d->flags == 0 &&
        d->detail == LILAC_ROUND_NEAREST_EVEN && has_one_use(c, d->operands[0])) {
        d = kernel->values[d->operands[0]].definition;
    }
    return is_conversion(d) && find_converted(c, d, found) &&
           (type == LILAC_SIMT_F16 || found->part != WHOLE);
}

/* A half of a word that nothing else needs. */
static bool find_half(const converter *c, lilac_simt_value value, lilac_simt_type type,
                      byte_value *found) {
    return lilac_simt_type_of(c->b.kernel, value) == type && has_one_use(c, value) &&
           find_value(c, value, type, found);
}

/* The bytes of two numbers in one word, *places in it. */
static lilac_simt_value join(converter *c, const byte_value *v, uint32_t *places) {
    const lilac_simt_value first = numbers_of(c, &v[0]), second = numbers_of(c, &v[1]);
    if (first == second) {
        places[0] = v[0].index;
        places[1] = v[1].index;
        return first;
    }
    if (v[0].index == v[1].index) { /* two pairs share a permute */
        places[0] = 2 * (v[0].index % 2);
        places[1] = places[0] + 1;
        return permute(c, first, second, v[0].index < 2 ? 0x5140 : 0x7362);
    }
    places[0] = 0;
    places[1] = 1;
    return permute(c, first, second, v[0].index | (BYTES + v[1].index) << 4);
}

/* Does the device compute pairs of this type, and do the numbers fit? */
static bool has_pairs(const converter *c, lilac_simt_type type) {
    return type == LILAC_SIMT_F16 ||
           (type == LILAC_SIMT_BF16 &&
            lilac_arch_has(c->b.kernel->module->arch, LILAC_HAS_BF16_ARITHMETIC));
}

/* The values as a pair of floats. */
static lilac_simt_value pair_of(converter *c, lilac_simt_type type, const byte_value *v) {
    const bool f16 = type == LILAC_SIMT_F16;
    const uint32_t units = f16 ? F16_UNITS : BF16_UNITS;
    const int32_t integers = f16 ? F16_INTEGERS : BF16_INTEGERS;
    uint32_t places[2], constant = 0;
    const lilac_simt_value joined = join(c, v, places);
    const lilac_simt_value pair =
        permute(c, joined, word(c, (units >> 8) * 0x01010101U),
                places[0] | BYTES << 4 | places[1] << 8 | (uint32_t)BYTES << 12);
    for (uint32_t half = 0; half < 2; half++) {
        const uint64_t bits =
            lilac_scalar_encode(f16 ? LILAC_F16 : LILAC_BF16, -(double)(integers + v[half].bias),
                                LILAC_ROUND_NEAREST_EVEN, false);
        constant |= (uint32_t)bits << (16 * half);
    }
    const lilac_simt_type packed = f16 ? LILAC_SIMT_F16X2 : LILAC_SIMT_BF16X2;
    const lilac_simt_value floats = lilac_simt_op1(&c->b, LILAC_SIMT_OP_BITCAST, packed, pair);
    const lilac_simt_value offset =
        lilac_simt_op1(&c->b, LILAC_SIMT_OP_BITCAST, packed, word(c, constant));
    return lilac_simt_op2(&c->b, LILAC_SIMT_OP_FADD, packed, floats, offset);
}

static void convert_pair(converter *c, instruction *pack) {
    lilac_simt_kernel *kernel = c->b.kernel;
    const lilac_simt_type type = lilac_simt_type_of(kernel, pack->operands[0]);
    byte_value v[2];
    if (lilac_simt_type_of(kernel, pack->result) == LILAC_SIMT_I32 && has_pairs(c, type) &&
        find_half(c, pack->operands[0], type, &v[0]) &&
        find_half(c, pack->operands[1], type, &v[1])) {
        pack->operands[0] = pair_of(c, type, v);
        pack->operand_count = 1;
        pack->code = LILAC_SIMT_OP_BITCAST;
        c->changed = true;
    }
}

/* ---- single values ------------------------------------------------------------------------- */

/* The conversion becomes units - (2^23 + bias). */
static void subtract_units(converter *c, instruction *i, lilac_simt_value units, int32_t bias) {
    const float number = -(float)(F32_INTEGERS + bias);
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    lilac_simt_value *operands = lilac_arena_array(c->b.kernel->module->arena, lilac_simt_value, 2);
    operands[0] = lilac_simt_op1(&c->b, LILAC_SIMT_OP_BITCAST, LILAC_SIMT_F32, units);
    operands[1] = lilac_simt_constant(&c->b, LILAC_SIMT_F32, bits);
    i->operands = operands;
    i->operand_count = 2;
    i->code = LILAC_SIMT_OP_FADD;
    i->detail = LILAC_ROUND_NEAREST_EVEN;
    c->changed = true;
}

/* An integer that `and` with a constant limits to 23 bits. */
static void convert_masked(converter *c, instruction *i) {
    const lilac_simt_kernel *kernel = c->b.kernel;
    uint64_t bits;
    const instruction *mask = lilac_simt_type_of(kernel, i->operands[0]) == LILAC_SIMT_I32
                                  ? lilac_simt_defined_by(&c->b, i->operands[0], LILAC_SIMT_OP_AND)
                                  : NULL;
    if (mask != NULL && !kernel->values[mask->result].uniform &&
        lilac_simt_constant_bits(kernel, mask->operands[1], &bits) && bits < F32_INTEGERS) {
        subtract_units(c, i,
                       lilac_simt_op2(&c->b, LILAC_SIMT_OP_OR, LILAC_SIMT_I32, mask->result,
                                      word(c, F32_UNITS)),
                       0);
    }
}

static void convert_single(converter *c, instruction *i) {
    byte_value v;
    if (lilac_simt_type_of(c->b.kernel, i->result) != LILAC_SIMT_F32 || i->result >= c->count ||
        c->uses[i->result] == 0) {
        return;
    }
    if (find_converted(c, i, &v)) {
        const lilac_simt_value numbers = numbers_of(c, &v), units = word(c, F32_UNITS);
        subtract_units(c, i, permute(c, numbers, units, 0x7540 + v.index), v.bias);
    } else {
        convert_masked(c, i);
    }
}

/* A half of a pair of neighbours: the other one usually needs it, too. */
static void convert_narrow(converter *c, instruction *i) {
    const lilac_simt_kernel *kernel = c->b.kernel;
    const lilac_simt_type type = lilac_simt_type_of(kernel, i->result);
    byte_value v[2];
    if (!has_pairs(c, type) || i->result >= c->count || c->uses[i->result] == 0 ||
        !find_value(c, i->result, type, &v[0])) {
        return;
    }
    const uint32_t half = v[0].index % 2;
    v[1] = v[0];
    v[0].index -= half;
    v[1].index = v[0].index + 1;
    lilac_simt_value parts[2];
    lilac_simt_unpack(
        &c->b, type,
        lilac_simt_op1(&c->b, LILAC_SIMT_OP_BITCAST, LILAC_SIMT_I32, pair_of(c, type, v)), 2,
        parts);
    i->operands[0] = parts[half];
    i->operand_count = 1;
    i->code = LILAC_SIMT_OP_BITCAST;
    i->detail = 0;
    c->changed = true;
}

/* ---- the pass ------------------------------------------------------------------------------ */

/* Pairs first, then what is rounded to 16 bits, then f32. */
typedef enum stage { PAIRS, NARROW, SINGLE, STAGES } stage;

static void visit(converter *c, lilac_simt_body *body, stage now) {
    const uint32_t mark = lilac_simt_memo_open(c->b.memo);
    for (instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->body_count; k++) {
            visit(c, i->bodies[k], now);
        }
        c->b.body = body;
        c->b.memo->before = i;
        c->b.location = i->location;
        if (now == PAIRS && i->code == LILAC_SIMT_OP_PACK && i->operand_count == 2) {
            convert_pair(c, i);
        } else if (now == NARROW && (is_conversion(i) || i->code == LILAC_SIMT_OP_FCVT)) {
            convert_narrow(c, i);
        } else if (now == SINGLE && is_conversion(i)) {
            convert_single(c, i);
        }
    }
    lilac_simt_memo_close(c->b.memo, mark);
}

static bool converts(const lilac_simt_kernel *kernel) {
    for (uint32_t v = 1; v < kernel->value_count; v++) {
        if (is_conversion(kernel->values[v].definition)) {
            return true;
        }
    }
    return false;
}

bool lilac_simt_opt_convert_bytes(lilac_simt_kernel *kernel) {
    converter c = {.b = {.kernel = kernel}};
    if (!converts(kernel)) {
        return false;
    }
    lilac_simt_builder_init(&c.b, kernel);
    for (uint32_t now = 0; now < STAGES; now++) {
        c.count = kernel->value_count;
        c.uses = lilac_heap_grow(c.uses, sizeof *c.uses * c.count);
        memset(c.uses, 0, sizeof *c.uses * c.count);
        lilac_simt_count_uses(kernel->body, c.uses);
        visit(&c, kernel->body, (stage)now);
    }
    lilac_simt_builder_clear(&c.b);
    lilac_heap_free(c.uses);
    return c.changed;
}
