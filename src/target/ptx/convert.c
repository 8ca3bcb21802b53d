/* Conversions between types, packing and unpacking.
 *
 * Where PTX would round twice, the first rounding is "to odd": towards zero, then the last bit is
 * set when something was lost. A later rounding to fewer bits (two fewer at least) is then that of
 * the exact value. That is how f64 and wide integers become bf16.
 */
#include "emit.h"

static const char *const signed_suffix[LILAC_SIMT_TYPE_COUNT] = {[LILAC_SIMT_I8] = ".s8",
                                                                 [LILAC_SIMT_I16] = ".s16",
                                                                 [LILAC_SIMT_I32] = ".s32",
                                                                 [LILAC_SIMT_I64] = ".s64"};
static const char *const unsigned_suffix[LILAC_SIMT_TYPE_COUNT] = {[LILAC_SIMT_I8] = ".u8",
                                                                   [LILAC_SIMT_I16] = ".u16",
                                                                   [LILAC_SIMT_I32] = ".u32",
                                                                   [LILAC_SIMT_I64] = ".u64"};
static const char *const float_suffix[LILAC_SIMT_TYPE_COUNT] = {[LILAC_SIMT_F16] = ".f16",
                                                                [LILAC_SIMT_BF16] = ".bf16",
                                                                [LILAC_SIMT_F32] = ".f32",
                                                                [LILAC_SIMT_F64] = ".f64"};

static const char *const rounding_modes[] = {[LILAC_ROUND_NEAREST_EVEN] = ".rn",
                                             [LILAC_ROUND_ZERO] = ".rz",
                                             [LILAC_ROUND_DOWN] = ".rm",
                                             [LILAC_ROUND_UP] = ".rp"};

static void cvt(lilac_ptx_emitter *e, const char *mode, const char *to, const char *from,
                lilac_ptx_piece d, lilac_ptx_piece a) {
    lilac_ptx_begin(e, "cvt");
    put_string(&e->code, mode);
    put_string(&e->code, to);
    put_string(&e->code, from);
    lilac_ptx_finish(e, 2, (lilac_ptx_piece[]){d, a});
}

static const char *suffix_of(lilac_simt_type type, bool is_signed) {
    return is_signed ? signed_suffix[type] : unsigned_suffix[type];
}

static void refuse_conversion(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    lilac_ptx_refuse(e, i, "%s has no %s from %s to %s", e->arch->name,
                     lilac_simt_op_info_get((lilac_simt_opcode)i->code)->name,
                     lilac_simt_type_name(type_of(e, i->operands[0])),
                     lilac_simt_type_name(type_of(e, i->result)));
}

/* Sets the last bit of the f32 `rounded` (rounded towards zero) where `lost` holds. */
static lilac_ptx_piece make_odd(lilac_ptx_emitter *e, lilac_ptx_piece rounded,
                                lilac_ptx_piece lost) {
    lilac_ptx_piece last = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
    lilac_ptx_piece odd = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
    lilac_ptx_line4(e, "selp.b32", last, PIECE("1"), PIECE("0"), lost);
    lilac_ptx_line3(e, "or.b32", odd, rounded, last);
    return odd;
}

/* f64 → f32 rounded to odd. A NaN is unequal to itself and stays one. */
static lilac_ptx_piece f64_to_odd_f32(lilac_ptx_emitter *e, lilac_ptx_piece a) {
    lilac_ptx_piece narrow = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
    lilac_ptx_piece back = lilac_ptx_temporary(e, LILAC_PTX_BITS64);
    lilac_ptx_piece lost = lilac_ptx_temporary(e, LILAC_PTX_PREDICATE);
    lilac_ptx_line2(e, "cvt.rz.f32.f64", narrow, a);
    lilac_ptx_line2(e, "cvt.f64.f32", back, narrow);
    lilac_ptx_line3(e, "setp.neu.f64", lost, back, a);
    return make_odd(e, narrow, lost);
}

/* A 32- or 64-bit integer → f32 rounded to odd. */
static lilac_ptx_piece integer_to_odd_f32(lilac_ptx_emitter *e, lilac_simt_type type,
                                          bool is_signed, lilac_ptx_piece a) {
    const char *suffix = suffix_of(type, is_signed);
    lilac_ptx_piece narrow = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
    lilac_ptx_piece back = lilac_ptx_temporary(e, lilac_ptx_class_of(type));
    lilac_ptx_piece lost = lilac_ptx_temporary(e, LILAC_PTX_PREDICATE);
    cvt(e, ".rz", ".f32", suffix, narrow, a);
    cvt(e, ".rzi", suffix, ".f32", back, narrow);
    lilac_ptx_line3(e, type == LILAC_SIMT_I64 ? "setp.ne.s64" : "setp.ne.s32", lost, back, a);
    return make_odd(e, narrow, lost);
}

void lilac_ptx_float_convert(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    lilac_simt_type from = type_of(e, i->operands[0]);
    lilac_simt_type to = type_of(e, i->result);
    if (!float_suffix[from] || !float_suffix[to] || i->detail > LILAC_ROUND_UP) {
        refuse_conversion(e, i);
        return;
    }
    if (from == to) {
        lilac_ptx_rename(e, i->result, i->operands[0]);
        return;
    }
    const char *mode = rounding_modes[i->detail];
    lilac_ptx_piece a = lilac_ptx_register(e, i->operands[0]);
    if (from == LILAC_SIMT_F32) {
        a = lilac_ptx_flushed(e, i, a);
    }
    bool wider = lilac_simt_type_bits(to) > lilac_simt_type_bits(from);
    if (wider) {
        if (from == LILAC_SIMT_BF16 && to == LILAC_SIMT_F64) {
            a = lilac_ptx_as_f32(e, i->operands[0]);
            from = LILAC_SIMT_F32;
        }
        bool subnormal = from == LILAC_SIMT_BF16 && (i->flags & LILAC_SIMT_FTZ);
        lilac_ptx_piece d = lilac_ptx_define(e, i->result);
        lilac_ptx_piece wide = subnormal ? lilac_ptx_temporary(e, LILAC_PTX_BITS32) : d;
        if (from == LILAC_SIMT_BF16) {
            lilac_ptx_need(e, LILAC_PTX_BF16_TO_F32);
        }
        cvt(e, "", float_suffix[to], float_suffix[from], wide, a);
        if (subnormal) {
            lilac_ptx_line3(e, "mul.rn.ftz.f32", d, wide, PIECE("0f3F800000"));
        }
        return;
    }
    if (from == LILAC_SIMT_F64 && to == LILAC_SIMT_BF16) {
        if (i->detail == LILAC_ROUND_NEAREST_EVEN) {
            a = f64_to_odd_f32(e, a);
        } else { /* directed roundings compose */
            lilac_ptx_piece narrow = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
            cvt(e, mode, ".f32", ".f64", narrow, a);
            a = narrow;
        }
        from = LILAC_SIMT_F32;
    } else if (from != LILAC_SIMT_F64 && from != LILAC_SIMT_F32) { /* f16 ↔ bf16 */
        a = lilac_ptx_as_f32(e, i->operands[0]);
        from = LILAC_SIMT_F32;
    }
    /* Narrowing to f32 is from f64. */
    bool flush = to == LILAC_SIMT_F32 && (i->flags & LILAC_SIMT_FTZ);
    cvt(e, mode, flush ? ".ftz.f32" : float_suffix[to], float_suffix[from],
        lilac_ptx_define(e, i->result), a);
}

/* ---- integer and float ------------------------------------------------------------------ */

static void integer_to_float(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    bool is_signed = i->code == LILAC_SIMT_OP_S2F;
    lilac_simt_type from = type_of(e, i->operands[0]);
    lilac_simt_type to = type_of(e, i->result);
    if (!float_suffix[to]) {
        refuse_conversion(e, i);
        return;
    }
    lilac_ptx_piece a = lilac_ptx_register(e, i->operands[0]);
    if (from == LILAC_SIMT_I1) { /* the signed one is minus one */
        static const char *const ones[LILAC_SIMT_TYPE_COUNT][2] = {
            [LILAC_SIMT_F16] = {"0x3C00", "0xBC00"},
            [LILAC_SIMT_BF16] = {"0x3F80", "0xBF80"},
            [LILAC_SIMT_F32] = {"0x3F800000", "0xBF800000"},
            [LILAC_SIMT_F64] = {"0x3FF0000000000000", "0xBFF0000000000000"}};
        static const char *const selects[LILAC_PTX_CLASS_COUNT] = {[LILAC_PTX_BITS16] = "selp.b16",
                                                                   [LILAC_PTX_BITS32] = "selp.b32",
                                                                   [LILAC_PTX_BITS64] = "selp.b64"};
        const char *one = ones[to][is_signed];
        lilac_ptx_line4(e, selects[lilac_ptx_class_of(to)], lilac_ptx_define(e, i->result),
                        (lilac_ptx_piece){one, (uint32_t)strlen(one)}, PIECE("0"), a);
        return;
    }
    if (from == LILAC_SIMT_I8) {
        a = lilac_ptx_extended(e, i->operands[0], is_signed);
        from = LILAC_SIMT_I16;
    }
    if (to != LILAC_SIMT_BF16) {
        cvt(e, rounding_modes[i->detail], float_suffix[to], suffix_of(from, is_signed),
            lilac_ptx_define(e, i->result), a);
        return;
    }
    lilac_ptx_piece wide;
    if (from == LILAC_SIMT_I16) {
        wide = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
        cvt(e, ".rn", ".f32", suffix_of(from, is_signed), wide, a);
    } else {
        wide = integer_to_odd_f32(e, from, is_signed, a);
    }
    lilac_ptx_line2(e, "cvt.rn.bf16.f32", lilac_ptx_define(e, i->result), wide);
}

/* What an f32 or f64 that is converted to 32 or 64 bits was before it was rounded to a whole number, and
 * that rounding: one conversion does both. */
static lilac_simt_value rounded_source(const lilac_ptx_emitter *e, const lilac_simt_instruction *i,
                                       const char **mode) {
    static const char *const modes[] = {[LILAC_SIMT_OP_FFLOOR - LILAC_SIMT_OP_FFLOOR] = ".rmi",
                                        [LILAC_SIMT_OP_FCEIL - LILAC_SIMT_OP_FFLOOR] = ".rpi",
                                        [LILAC_SIMT_OP_FTRUNC - LILAC_SIMT_OP_FFLOOR] = ".rzi",
                                        [LILAC_SIMT_OP_FRINT - LILAC_SIMT_OP_FFLOOR] = ".rni"};
    const lilac_simt_instruction *d = e->kernel->values[i->operands[0]].definition;
    const lilac_simt_type from = type_of(e, i->operands[0]), to = type_of(e, i->result);
    if (d == NULL || d->code < LILAC_SIMT_OP_FFLOOR || d->code > LILAC_SIMT_OP_FRINT ||
        d->flags != 0 || (from != LILAC_SIMT_F32 && from != LILAC_SIMT_F64) ||
        (to != LILAC_SIMT_I32 && to != LILAC_SIMT_I64)) {
        return i->operands[0];
    }
    *mode = modes[d->code - LILAC_SIMT_OP_FFLOOR];
    return d->operands[0];
}

static void float_to_integer(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    bool is_signed = i->code == LILAC_SIMT_OP_F2S;
    lilac_simt_type from = type_of(e, i->operands[0]);
    lilac_simt_type to = type_of(e, i->result);
    if (!float_suffix[from]) {
        refuse_conversion(e, i);
        return;
    }
    const char *mode = ".rzi";
    const lilac_simt_value source = rounded_source(e, i, &mode);
    lilac_ptx_piece a;
    if (from == LILAC_SIMT_BF16 || (to == LILAC_SIMT_I1 && from != LILAC_SIMT_F64)) {
        a = lilac_ptx_as_f32(e, i->operands[0]);
        from = LILAC_SIMT_F32;
    } else {
        a = lilac_ptx_register(e, source);
    }
    /* Towards zero a subnormal is 0 in any case, so ftz changes nothing. */
    if (to == LILAC_SIMT_I1) { /* signed: -1 or 0; unsigned: 0 or 1 */
        bool wide = from == LILAC_SIMT_F64;
        lilac_ptx_piece bound =
            wide        ? is_signed ? PIECE("0dBFF0000000000000") : PIECE("0d3FF0000000000000")
                   : is_signed ? PIECE("0fBF800000")
                        : PIECE("0f3F800000");
        lilac_ptx_begin(e, is_signed ? "setp.le" : "setp.ge");
        put_string(&e->code, float_suffix[from]);
        lilac_ptx_finish(e, 3, (lilac_ptx_piece[]){lilac_ptx_define(e, i->result), a, bound});
        return;
    }
    /* bits above the 8 of a byte's register mean nothing */
    const lilac_simt_type whole = to == LILAC_SIMT_I8 ? LILAC_SIMT_I16 : to;
    cvt(e, mode, suffix_of(whole, is_signed), float_suffix[from], lilac_ptx_define(e, i->result),
        a);
}

/* ---- integers --------------------------------------------------------------------------- */

static void extend(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    bool is_signed = i->code == LILAC_SIMT_OP_SEXT;
    lilac_simt_type from = type_of(e, i->operands[0]);
    lilac_simt_type to = type_of(e, i->result);
    lilac_ptx_piece a = lilac_ptx_register(e, i->operands[0]);
    lilac_ptx_piece d = lilac_ptx_define(e, i->result);
    if (from == LILAC_SIMT_I1) {
        const char *select = lilac_ptx_class_of(to) == LILAC_PTX_BITS16   ? "selp.b16"
                             : lilac_ptx_class_of(to) == LILAC_PTX_BITS32 ? "selp.b32"
                                                                          : "selp.b64";
        lilac_ptx_line4(e, select, d, is_signed ? PIECE("-1") : PIECE("1"), PIECE("0"), a);
        return;
    }
    cvt(e, "", suffix_of(to, is_signed), suffix_of(from, is_signed), d, a);
}

static void truncate(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    lilac_simt_type from = type_of(e, i->operands[0]);
    lilac_simt_type to = type_of(e, i->result);
    if (to == LILAC_SIMT_I1) { /* the low bit */
        lilac_ptx_class class = lilac_ptx_class_of(from);
        static const char *const ands[] = {"", "and.b16", "and.b32", "and.b64"};
        static const char *const tests[] = {"", "setp.ne.b16", "setp.ne.b32", "setp.ne.b64"};
        lilac_ptx_piece low = lilac_ptx_temporary(e, class);
        lilac_ptx_line3(e, ands[class], low, lilac_ptx_register(e, i->operands[0]), PIECE("1"));
        lilac_ptx_line3(e, tests[class], lilac_ptx_define(e, i->result), low, PIECE("0"));
        return;
    }
    if (e->places[i->operands[0]].constant || lilac_ptx_class_of(from) == lilac_ptx_class_of(to)) {
        lilac_ptx_rename(e, i->result, i->operands[0]);
        return;
    }
    cvt(e, "", unsigned_suffix[to == LILAC_SIMT_I8 ? LILAC_SIMT_I16 : to], unsigned_suffix[from],
        lilac_ptx_define(e, i->result), e->places[i->operands[0]].text);
}

void lilac_ptx_convert(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    switch (i->code) {
    case LILAC_SIMT_OP_SEXT:
    case LILAC_SIMT_OP_ZEXT:
        extend(e, i);
        break;
    case LILAC_SIMT_OP_TRUNC:
        truncate(e, i);
        break;
    case LILAC_SIMT_OP_BITCAST:
        lilac_ptx_rename(e, i->result, i->operands[0]);
        break;
    case LILAC_SIMT_OP_S2F:
    case LILAC_SIMT_OP_U2F:
        integer_to_float(e, i);
        break;
    default:
        float_to_integer(e, i);
        break;
    }
}

/* ---- 8-bit floats ----------------------------------------------------------------------- */

void lilac_ptx_f8(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    bool e5m2 = i->scalar == LILAC_F8E5M2;
    if ((!e5m2 && i->scalar != LILAC_F8E4M3FN) ||
        !lilac_arch_has(e->arch, LILAC_HAS_F8_CONVERSIONS)) {
        lilac_ptx_refuse(e, i, "%s converts no %s", e->arch->name,
                         lilac_scalar_name((lilac_scalar)i->scalar));
        return;
    }
    if (e->arch->capability < 90) {
        lilac_ptx_need(e, LILAC_PTX_F8_ON_ADA);
    }
    lilac_ptx_piece a = lilac_ptx_register(e, i->operands[0]);
    if (i->code == LILAC_SIMT_OP_F8_UNPACK) {
        lilac_ptx_line2(e, e5m2 ? "cvt.rn.f16x2.e5m2x2" : "cvt.rn.f16x2.e4m3x2",
                        lilac_ptx_define(e, i->result), a);
        return;
    }
    lilac_ptx_piece high = lilac_ptx_register(e, i->operands[1]); /* PTX names the high one first */
    lilac_ptx_line3(e, e5m2 ? "cvt.rn.satfinite.e5m2x2.f32" : "cvt.rn.satfinite.e4m3x2.f32",
                    lilac_ptx_define(e, i->result), high, a);
}

/* ---- packing ---------------------------------------------------------------------------- */

/* 2 or 4 bytes → the low bytes of a 32-bit register, by byte permutes. */
static lilac_ptx_piece pack_bytes(lilac_ptx_emitter *e, const lilac_simt_value *values,
                                  uint32_t count) {
    lilac_ptx_piece parts[4], pairs[2];
    for (uint32_t k = 0; k < count; k++) {
        parts[k] = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
        lilac_ptx_line2(e, "cvt.u32.u16", parts[k], lilac_ptx_register(e, values[k]));
    }
    for (uint32_t k = 0; k < count / 2; k++) {
        pairs[k] = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
        lilac_ptx_line4(e, "prmt.b32", pairs[k], parts[2 * k], parts[2 * k + 1], PIECE("0x0040"));
    }
    if (count == 2) {
        return pairs[0];
    }
    lilac_ptx_piece word = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
    lilac_ptx_line4(e, "prmt.b32", word, pairs[0], pairs[1], PIECE("0x5410"));
    return word;
}

/* One 16-, 32- or 64-bit value from words of 32 bits (16: the low half of one). */
static void join_words(lilac_ptx_emitter *e, lilac_simt_value result, uint32_t bits,
                       const lilac_ptx_piece *words) {
    lilac_ptx_piece d = lilac_ptx_define(e, result);
    if (bits == 64) {
        lilac_ptx_line2(e, "mov.b64", d, lilac_ptx_tuple(e, 2, words));
    } else {
        lilac_ptx_line2(e, bits == 32 ? "mov.b32" : "cvt.u16.u32", d, words[0]);
    }
}

/* Nothing to write: one part is the whole, or parts of other sizes are refused. */
static bool settles_parts(lilac_ptx_emitter *e, const lilac_simt_instruction *i, uint32_t whole,
                          uint32_t part, uint32_t count) {
    if (count == 1 && whole == part) {
        lilac_ptx_rename(e, i->result, i->operands[0]);
        return true;
    }
    if (part >= 8 && whole == part * count) {
        return false;
    }
    refuse_conversion(e, i);
    return true;
}

void lilac_ptx_pack(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    lilac_simt_type part = type_of(e, i->operands[0]);
    uint32_t bits = lilac_simt_type_bits(type_of(e, i->result));
    uint32_t part_bits = lilac_simt_type_bits(part);
    uint32_t count = i->operand_count;
    if (settles_parts(e, i, bits, part_bits, count)) {
        return;
    }
    if (part_bits == 8) {
        lilac_ptx_piece words[2];
        uint32_t each = bits > 32 ? count / 2 : count;
        for (uint32_t k = 0; k < count / each; k++) {
            words[k] = pack_bytes(e, i->operands + k * each, each);
        }
        join_words(e, i->result, bits, words);
        return;
    }
    lilac_ptx_piece parts[4];
    for (uint32_t k = 0; k < count; k++) {
        parts[k] = lilac_ptx_register(e, i->operands[k]);
    }
    lilac_ptx_line2(e, bits == 64 ? "mov.b64" : "mov.b32", lilac_ptx_define(e, i->result),
                    lilac_ptx_tuple(e, count, parts));
}

void lilac_ptx_unpack(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    lilac_simt_type whole = type_of(e, i->operands[0]);
    uint32_t bits = lilac_simt_type_bits(whole);
    uint32_t part_bits = lilac_simt_type_bits(type_of(e, i->result));
    uint32_t count = i->result_count;
    if (settles_parts(e, i, bits, part_bits, count)) {
        return;
    }
    lilac_ptx_piece source = lilac_ptx_register(e, i->operands[0]);
    const char *mov = bits == 64 ? "mov.b64" : "mov.b32";
    lilac_ptx_piece parts[4];
    if (part_bits >= 16) {
        for (uint32_t k = 0; k < count; k++) {
            parts[k] = lilac_ptx_define(e, i->result + k);
        }
        lilac_ptx_line2(e, mov, lilac_ptx_tuple(e, count, parts), source);
        return;
    }
    /* Bytes: the even ones are the low halves of 16-bit parts, the odd ones a shift away. */
    for (uint32_t k = 0; k < count / 2; k++) {
        parts[k] = lilac_ptx_define(e, i->result + 2 * k);
    }
    if (bits == 16) {
        lilac_ptx_line2(e, "mov.b16", parts[0], source);
    } else {
        lilac_ptx_line2(e, mov, lilac_ptx_tuple(e, count / 2, parts), source);
    }
    for (uint32_t k = 0; k < count / 2; k++) {
        lilac_ptx_line3(e, "shr.u16", lilac_ptx_define(e, i->result + 2 * k + 1), parts[k],
                        PIECE("8"));
    }
}
