/* narrow_floats: an operation of f32 between conversions from and to a narrower float is one of the
 * narrower float.
 *
 *     %x = fcvt %a : f32
 *     %y = fcvt %b : f32                           →   %r = fadd %a, %b : bf16
 *     %s = fadd %x, %y : f32
 *     %r = fcvt %s : bf16
 *
 * Two such operations whose results are packed, and whose operands are the halves of packed words,
 * become one operation of both halves:
 *
 *     %a0, %a1 = unpack %a : bf16, bf16            →   %s = fadd %a, %b : bf16x2
 *     %b0, %b1 = unpack %b : bf16, bf16                %r = bitcast %s : i32
 *     … %r = pack %r0, %r1 : i32
 *
 * The results are the same bits. Let p be the precision of the narrow float (f16: 11, bf16: 8), and 24
 * that of f32.
 *
 *   sums, differences   Rounding to 24 and then to p bits is rounding to p bits, because 24 >= 2p + 2
 *                       (S. A. Figueroa, "When is double rounding innocuous?", 1995). This assumes
 *                       exponents without bounds. Operands are multiples of the least subnormal number
 *                       of the narrow float, and so is their sum: where it is subnormal it is exact in
 *                       both. A sum beyond the largest f32 rounds to infinity in both.
 *   products            have 2p <= 22 bits. An f16 product is above 2^-49, so it is exact in f32, and there
 *                       is one rounding. A bf16 product that is not exact in f32 has a bit below 2^-149
 *                       and 16 bits, so it is below 2^-134, half of the least subnormal bf16: it rounds
 *                       to zero in one step, and in two, because 2^-134 itself rounds to even.
 *   extrema             are one of the operands, or NaN.
 *
 * A NaN result is the canonical NaN of the narrow float in both forms. The pass follows contraction: a
 * narrow operation never becomes part of a fused one, which would skip a rounding of the program. */
#include "internal.h"

#include <string.h>

typedef lilac_simt_instruction instruction;

typedef struct narrower {
    lilac_simt_builder b;
    uint32_t *uses;
    uint32_t count; /* entries of `uses`: values made later have none */
    bool changed;
} narrower;

static bool has_one_use(const narrower *n, lilac_simt_value value) {
    return value < n->count && n->uses[value] == 1;
}

static bool is_narrow(lilac_simt_type type) {
    return type == LILAC_SIMT_F16 || type == LILAC_SIMT_BF16;
}

static bool is_allowed(const instruction *i) {
    switch (i->code) {
    case LILAC_SIMT_OP_FADD:
    case LILAC_SIMT_OP_FSUB:
    case LILAC_SIMT_OP_FMUL:
        return i->flags == 0 && i->detail == LILAC_ROUND_NEAREST_EVEN;
    case LILAC_SIMT_OP_FMIN:
    case LILAC_SIMT_OP_FMAX:
        return (i->flags & ~LILAC_SIMT_PROPAGATE_NAN) == 0;
    default:
        return false;
    }
}

/* The operation of f32 whose only use is this conversion; NULL: there is none, or it may not become
 * narrow. */
static const instruction *wide_operation(const narrower *n, lilac_simt_value value) {
    const lilac_simt_kernel *kernel = n->b.kernel;
    const instruction *out = kernel->values[value].definition;
    if (out == NULL || out->code != LILAC_SIMT_OP_FCVT || out->flags != 0 ||
        out->detail != LILAC_ROUND_NEAREST_EVEN) {
        return NULL;
    }
    const instruction *i = kernel->values[out->operands[0]].definition;
    const lilac_simt_type type = lilac_simt_type_of(kernel, value);
    const bool good = i != NULL && is_narrow(type) && i->parent == out->parent &&
                      lilac_simt_type_of(kernel, out->operands[0]) == LILAC_SIMT_F32 &&
                      has_one_use(n, out->operands[0]) && is_allowed(i);
    return good ? i : NULL;
}

/* The operand in the narrow type: what it is converted from, or a constant. 0: it is neither. */
static lilac_simt_value narrow_operand(narrower *n, lilac_simt_value value, lilac_simt_type type) {
    const lilac_simt_kernel *kernel = n->b.kernel;
    const instruction *d = kernel->values[value].definition;
    uint64_t bits;
    if (d != NULL && d->code == LILAC_SIMT_OP_FCVT && d->flags == 0 &&
        lilac_simt_type_of(kernel, d->operands[0]) == type) {
        return d->operands[0];
    }
    if (!lilac_simt_constant_bits(kernel, value, &bits)) {
        return 0;
    }
    const lilac_scalar scalar = type == LILAC_SIMT_F16 ? LILAC_F16 : LILAC_BF16;
    const double number = lilac_scalar_decode(LILAC_F32, bits);
    const uint64_t narrow = lilac_scalar_encode(scalar, number, LILAC_ROUND_NEAREST_EVEN, false);
    return lilac_scalar_decode(scalar, narrow) == number ? lilac_simt_constant(&n->b, type, narrow)
                                                         : 0;
}

/* ---- pairs ------------------------------------------------------------------------------ */

static lilac_simt_value without_bitcast(const lilac_simt_builder *b, lilac_simt_value value) {
    const instruction *d = lilac_simt_defined_by(b, value, LILAC_SIMT_OP_BITCAST);
    return d != NULL ? d->operands[0] : value;
}

/* Are the two values the halves of a word, constants, or one value? */
static bool is_word(const narrower *n, const lilac_simt_value *parts) {
    const lilac_simt_value low = without_bitcast(&n->b, parts[0]);
    const lilac_simt_value high = without_bitcast(&n->b, parts[1]);
    const instruction *d = lilac_simt_defined_by(&n->b, low, LILAC_SIMT_OP_UNPACK);
    uint64_t bits;
    return low == high ||
           (d != NULL && d->result_count == 2 && low == d->result && high == d->result + 1) ||
           (lilac_simt_constant_bits(n->b.kernel, low, &bits) &&
            lilac_simt_constant_bits(n->b.kernel, high, &bits));
}

static bool narrow_pair(narrower *n, instruction *pack) {
    const lilac_simt_type type = lilac_simt_type_of(n->b.kernel, pack->operands[0]);
    const instruction *wide[2];
    lilac_simt_value parts[2][2], words[2];
    for (uint32_t half = 0; half < 2; half++) {
        const lilac_simt_value out = pack->operands[half];
        wide[half] = wide_operation(n, out);
        if (wide[half] == NULL || !has_one_use(n, out) ||
            lilac_simt_type_of(n->b.kernel, out) != type) {
            return false;
        }
        for (uint32_t side = 0; side < 2; side++) {
            parts[side][half] = narrow_operand(n, wide[half]->operands[side], type);
        }
    }
    if (wide[0]->code != wide[1]->code || wide[0]->flags != wide[1]->flags) {
        return false;
    }
    for (uint32_t side = 0; side < 2; side++) {
        if (parts[side][0] == 0 || parts[side][1] == 0 || !is_word(n, parts[side])) {
            return false;
        }
    }
    const lilac_simt_type packed = type == LILAC_SIMT_F16 ? LILAC_SIMT_F16X2 : LILAC_SIMT_BF16X2;
    for (uint32_t side = 0; side < 2; side++) {
        words[side] = lilac_simt_pack(&n->b, packed, 2, parts[side]);
    }
    pack->operands[0] = lilac_simt_op2_flags(&n->b, (lilac_simt_opcode)wide[0]->code, packed,
                                             words[0], words[1], wide[0]->flags);
    pack->operand_count = 1;
    pack->code = LILAC_SIMT_OP_BITCAST;
    return true;
}

/* ---- single operations ------------------------------------------------------------------ */

/* Gains if a conversion of an operand is not needed any more. */
static bool narrow_single(narrower *n, instruction *out) {
    lilac_simt_kernel *kernel = n->b.kernel;
    const instruction *wide = wide_operation(n, out->result);
    const lilac_simt_type type = lilac_simt_type_of(kernel, out->result);
    lilac_simt_value operands[2];
    bool gains = false;
    if (wide == NULL || out->result >= n->count || n->uses[out->result] == 0) {
        return false;
    }
    for (uint32_t side = 0; side < 2; side++) {
        uint64_t bits;
        operands[side] = narrow_operand(n, wide->operands[side], type);
        gains |= has_one_use(n, wide->operands[side]) &&
                 !lilac_simt_constant_bits(kernel, wide->operands[side], &bits);
    }
    if (operands[0] == 0 || operands[1] == 0 || !gains) {
        return false;
    }
    out->operands = lilac_arena_array(kernel->module->arena, lilac_simt_value, 2);
    memcpy(out->operands, operands, sizeof operands);
    out->operand_count = 2;
    out->code = wide->code;
    out->flags = wide->flags;
    out->detail = wide->detail;
    return true;
}

/* ---- the pass --------------------------------------------------------------------------- */

static void visit(narrower *n, lilac_simt_body *body, bool pairs) {
    const uint32_t mark = lilac_simt_memo_open(n->b.memo);
    for (instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->body_count; k++) {
            visit(n, i->bodies[k], pairs);
        }
        n->b.body = body;
        n->b.memo->before = i;
        n->b.location = i->location;
        if (pairs && i->code == LILAC_SIMT_OP_PACK && i->operand_count == 2) {
            n->changed |= narrow_pair(n, i);
        } else if (!pairs && i->code == LILAC_SIMT_OP_FCVT) {
            n->changed |= narrow_single(n, i);
        }
    }
    lilac_simt_memo_close(n->b.memo, mark);
}

/* Has the kernel a conversion to a narrow float? */
static bool converts(const lilac_simt_kernel *kernel) {
    for (uint32_t v = 1; v < kernel->value_count; v++) {
        const instruction *d = kernel->values[v].definition;
        if (d != NULL && d->code == LILAC_SIMT_OP_FCVT &&
            is_narrow(lilac_simt_type_of(kernel, v))) {
            return true;
        }
    }
    return false;
}

bool lilac_simt_opt_narrow_floats(lilac_simt_kernel *kernel) {
    narrower n = {.b = {.kernel = kernel}};
    if (!converts(kernel)) {
        return false;
    }
    lilac_simt_builder_init(&n.b, kernel);
    for (uint32_t pass = 0; pass < 2; pass++) {
        n.count = kernel->value_count;
        n.uses = lilac_heap_grow(n.uses, sizeof *n.uses * n.count);
        memset(n.uses, 0, sizeof *n.uses * n.count);
        lilac_simt_count_uses(kernel->body, n.uses);
        visit(&n, kernel->body, pass == 0);
    }
    lilac_simt_builder_clear(&n.b);
    lilac_heap_free(n.uses);
    return n.changed;
}
