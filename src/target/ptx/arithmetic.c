/* Arithmetic: one table from operation and type to mnemonic.
 *
 *   fadd f32, flags ftz   →   stem "add.rn" + ".ftz" + suffix ".f32"
 *
 * Floating-point operations name their rounding (.rn), so that ptxas does not fuse a product with
 * a sum where the SIMT IR did not: the simulator and the device then agree bit by bit. Sums of f32
 * do not name it, since all products do: what is left for ptxas to join with them are the products
 * that end its own approximations (of 2^x, of quotients), which are not bits of ours to agree on.
 *
 * 8-bit integers are computed on 16 bits. What depends on low bits only (sums, products, logic,
 * left shifts) takes them as they are; the rest extends them first.
 *
 * 1-bit integers are predicates; their arithmetic is logic (add is xor, mul is and; as a signed
 * number 1 is -1, so the signed minimum is or).
 */
#include "emit.h"

typedef enum suffix_kind { S, U, B, F } suffix_kind;
typedef enum narrow { LOW, SIGN, ZERO } narrow; /* how an i8 operand is extended */

/* Types a stem takes as it is. */
enum {
    I8 = 1 << LILAC_SIMT_I8,
    I16 = 1 << LILAC_SIMT_I16,
    I32 = 1 << LILAC_SIMT_I32,
    I64 = 1 << LILAC_SIMT_I64,
    INTEGERS = I8 | I16 | I32 | I64,
    F16 = 1 << LILAC_SIMT_F16 | 1 << LILAC_SIMT_F16X2,
    BF16 = 1 << LILAC_SIMT_BF16 | 1 << LILAC_SIMT_BF16X2,
    F32 = 1 << LILAC_SIMT_F32,
    F64 = 1 << LILAC_SIMT_F64,
    FLOATS = F16 | BF16 | F32 | F64
};

typedef struct mnemonic {
    const char *stem;
    const char *approximate; /* the stem when the flag is set and the type is f32, or NULL */
    uint8_t suffix;          /* suffix_kind */
    uint8_t narrow;
    uint16_t types;
} mnemonic;

/* clang-format off */
static const mnemonic mnemonics[LILAC_SIMT_OP_COUNT] = {
    /* operation                stem             approximate     suffix  i8    types */
    [LILAC_SIMT_OP_ADD]     = {"add",            NULL,           S,      LOW,  INTEGERS},
    [LILAC_SIMT_OP_SUB]     = {"sub",            NULL,           S,      LOW,  INTEGERS},
    [LILAC_SIMT_OP_MUL]     = {"mul.lo",         NULL,           S,      LOW,  INTEGERS},
    [LILAC_SIMT_OP_MULHI_S] = {"mul.hi",         NULL,           S,      SIGN, I16 | I32 | I64},
    [LILAC_SIMT_OP_MULHI_U] = {"mul.hi",         NULL,           U,      ZERO, I16 | I32 | I64},
    [LILAC_SIMT_OP_MULWIDE_S] = {"mul.wide.s32", NULL,           S,      LOW,  0},
    [LILAC_SIMT_OP_MULWIDE_U] = {"mul.wide.u32", NULL,           U,      LOW,  0},
    [LILAC_SIMT_OP_DIV_S]   = {"div",            NULL,           S,      SIGN, INTEGERS},
    [LILAC_SIMT_OP_DIV_U]   = {"div",            NULL,           U,      ZERO, INTEGERS},
    [LILAC_SIMT_OP_REM_S]   = {"rem",            NULL,           S,      SIGN, INTEGERS},
    [LILAC_SIMT_OP_REM_U]   = {"rem",            NULL,           U,      ZERO, INTEGERS},
    [LILAC_SIMT_OP_MIN_S]   = {"min",            NULL,           S,      SIGN, INTEGERS},
    [LILAC_SIMT_OP_MIN_U]   = {"min",            NULL,           U,      ZERO, INTEGERS},
    [LILAC_SIMT_OP_MAX_S]   = {"max",            NULL,           S,      SIGN, INTEGERS},
    [LILAC_SIMT_OP_MAX_U]   = {"max",            NULL,           U,      ZERO, INTEGERS},
    [LILAC_SIMT_OP_AND]     = {"and",            NULL,           B,      LOW,  INTEGERS},
    [LILAC_SIMT_OP_OR]      = {"or",             NULL,           B,      LOW,  INTEGERS},
    [LILAC_SIMT_OP_XOR]     = {"xor",            NULL,           B,      LOW,  INTEGERS},
    [LILAC_SIMT_OP_SHL]     = {"shl",            NULL,           B,      LOW,  INTEGERS},
    [LILAC_SIMT_OP_SHR_S]   = {"shr",            NULL,           S,      SIGN, INTEGERS},
    [LILAC_SIMT_OP_SHR_U]   = {"shr",            NULL,           U,      ZERO, INTEGERS},
    [LILAC_SIMT_OP_ABS]     = {"abs",            NULL,           S,      SIGN, INTEGERS},
    [LILAC_SIMT_OP_PRMT]    = {"prmt",           NULL,           B,      LOW,  I32},
    [LILAC_SIMT_OP_FADD]    = {"add.rn",         NULL,           F,      LOW,  FLOATS},
    [LILAC_SIMT_OP_FSUB]    = {"sub.rn",         NULL,           F,      LOW,  FLOATS},
    [LILAC_SIMT_OP_FMUL]    = {"mul.rn",         NULL,           F,      LOW,  FLOATS},
    [LILAC_SIMT_OP_FDIV]    = {"div.rn",         "div.full",     F,      LOW,  F32 | F64},
    [LILAC_SIMT_OP_FFMA]    = {"fma.rn",         NULL,           F,      LOW,  FLOATS},
    [LILAC_SIMT_OP_FMIN]    = {"min",            NULL,           F,      LOW,  FLOATS},
    [LILAC_SIMT_OP_FMAX]    = {"max",            NULL,           F,      LOW,  FLOATS},
    [LILAC_SIMT_OP_FNEG]    = {"neg",            NULL,           F,      LOW,  FLOATS},
    [LILAC_SIMT_OP_FABS]    = {"abs",            NULL,           F,      LOW,  FLOATS},
    [LILAC_SIMT_OP_FSQRT]   = {"sqrt.rn",        "sqrt.approx",  F,      LOW,  F32 | F64},
    [LILAC_SIMT_OP_FRSQRT]  = {"rsqrt.approx",   NULL,           F,      LOW,  F32 | F64},
    [LILAC_SIMT_OP_FRCP]    = {"rcp.rn",         "rcp.approx",   F,      LOW,  F32 | F64},
    [LILAC_SIMT_OP_FEXP2]   = {"ex2.approx",     NULL,           F,      LOW,  F32},
    [LILAC_SIMT_OP_FLOG2]   = {"lg2.approx",     NULL,           F,      LOW,  F32},
    [LILAC_SIMT_OP_FSIN]    = {"sin.approx",     NULL,           F,      LOW,  F32},
    [LILAC_SIMT_OP_FCOS]    = {"cos.approx",     NULL,           F,      LOW,  F32},
    [LILAC_SIMT_OP_FTANH]   = {"tanh.approx",    NULL,           F,      LOW,  F32},
    [LILAC_SIMT_OP_FTF32]   = {"cvt.rna.tf32",   NULL,           F,      LOW,  F32},
};
/* clang-format on */

static const char *const suffixes[4][LILAC_SIMT_TYPE_COUNT] = {
    /*        void  i1      i8      i16     i32     i64     f16     bf16     f32     f64 */
    [S] = {NULL, ".pred", ".s16", ".s16", ".s32", ".s64", ".b16", ".b16", ".b32", ".b64"},
    [U] = {NULL, ".pred", ".u16", ".u16", ".u32", ".u64", ".b16", ".b16", ".b32", ".b64"},
    [B] = {NULL, ".pred", ".b16", ".b16", ".b32", ".b64", ".b16", ".b16", ".b32", ".b64", ".b32",
           ".b32"},
    [F] = {NULL, ".pred", ".b16", ".b16", ".b32", ".b64", ".f16", ".bf16", ".f32", ".f64", ".f16x2",
           ".bf16x2"},
};

/* The amount of a shift, a .u32 that is at or above the width whenever the operand is. */
static lilac_ptx_piece shift_amount(lilac_ptx_emitter *e, lilac_simt_value value) {
    const lilac_ptx_place *place = &e->places[value];
    if (place->constant) {
        return lilac_ptx_decimal(e, place->bits < 64 ? (int64_t)place->bits : 64);
    }
    const char *convert = NULL;
    switch (type_of(e, value)) {
    case LILAC_SIMT_I8:
        convert = "cvt.u32.u8";
        break;
    case LILAC_SIMT_I16:
        convert = "cvt.u32.u16";
        break;
    case LILAC_SIMT_I64:
        convert = "cvt.sat.u32.u64";
        break;
    default:
        return place->text;
    }
    lilac_ptx_piece amount = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
    lilac_ptx_line2(e, convert, amount, place->text);
    return amount;
}

/* bf16 sums and products where only the fused multiply-add exists: each is one, exactly rounded. */
static void bf16_by_fma(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    bool packed = type_of(e, i->result) == LILAC_SIMT_BF16X2;
    const char *mov = packed ? "mov.b32" : "mov.b16";
    const char *fma = packed ? "fma.rn.bf16x2" : "fma.rn.bf16";
    lilac_ptx_piece a = lilac_ptx_register(e, i->operands[0]);
    lilac_ptx_piece b = lilac_ptx_register(e, i->operands[1]);
    lilac_ptx_piece k = lilac_ptx_temporary(e, packed ? LILAC_PTX_BITS32 : LILAC_PTX_BITS16);
    lilac_ptx_piece d = lilac_ptx_define(e, i->result);
    switch (i->code) {
    case LILAC_SIMT_OP_FADD: /* a·1 + b */
        lilac_ptx_line2(e, mov, k, packed ? PIECE("0x3F803F80") : PIECE("0x3F80"));
        lilac_ptx_line4(e, fma, d, a, k, b);
        break;
    case LILAC_SIMT_OP_FSUB: /* b·-1 + a */
        lilac_ptx_line2(e, mov, k, packed ? PIECE("0xBF80BF80") : PIECE("0xBF80"));
        lilac_ptx_line4(e, fma, d, b, k, a);
        break;
    default: /* a·b + -0, which keeps the sign of a zero product */
        lilac_ptx_line2(e, mov, k, packed ? PIECE("0x80008000") : PIECE("0x8000"));
        lilac_ptx_line4(e, fma, d, a, b, k);
        break;
    }
}

/* High half of an 8-bit product: bits 8 to 15 of the 16-bit one. */
static void high_product_of_bytes(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    bool is_signed = i->code == LILAC_SIMT_OP_MULHI_S;
    lilac_ptx_piece a = lilac_ptx_extended(e, i->operands[0], is_signed);
    lilac_ptx_piece b = lilac_ptx_extended(e, i->operands[1], is_signed);
    lilac_ptx_piece product = lilac_ptx_temporary(e, LILAC_PTX_BITS16);
    lilac_ptx_line3(e, "mul.lo.s16", product, a, b);
    lilac_ptx_line3(e, "shr.u16", lilac_ptx_define(e, i->result), product, PIECE("8"));
}

/* f64 minimum or maximum that is NaN when an operand is: PTX has none. */
static void f64_nan_extremum(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    lilac_ptx_piece a = lilac_ptx_operand(e, i->operands[0]);
    lilac_ptx_piece b = lilac_ptx_operand(e, i->operands[1]);
    lilac_ptx_piece number = lilac_ptx_temporary(e, LILAC_PTX_BITS64);
    lilac_ptx_piece nan = lilac_ptx_temporary(e, LILAC_PTX_PREDICATE);
    lilac_ptx_line3(e, i->code == LILAC_SIMT_OP_FMIN ? "min.f64" : "max.f64", number, a, b);
    lilac_ptx_line3(e, "setp.nan.f64", nan, a, b);
    lilac_ptx_line4(e, "selp.f64", lilac_ptx_define(e, i->result), PIECE("0d7FF8000000000000"),
                    number, nan);
}

/* popc and clz: of 32 or 64 bits, narrower values zero-extended. */
static void count_bits(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    lilac_simt_type type = type_of(e, i->operands[0]);
    bool leading = i->code == LILAC_SIMT_OP_CLZ;
    lilac_ptx_piece a = lilac_ptx_register(e, i->operands[0]);
    lilac_ptx_piece d = lilac_ptx_define(e, i->result);
    if (type == LILAC_SIMT_I1) {
        lilac_ptx_line4(e, "selp.b32", d, leading ? PIECE("0") : PIECE("1"),
                        leading ? PIECE("1") : PIECE("0"), a);
        return;
    }
    if (type == LILAC_SIMT_I8 || type == LILAC_SIMT_I16) {
        bool byte = type == LILAC_SIMT_I8;
        lilac_ptx_piece wide = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
        lilac_ptx_line2(e, byte ? "cvt.u32.u8" : "cvt.u32.u16", wide, a);
        if (!leading) {
            lilac_ptx_line2(e, "popc.b32", d, wide);
            return;
        }
        lilac_ptx_piece count = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
        lilac_ptx_line2(e, "clz.b32", count, wide);
        lilac_ptx_line3(e, "add.s32", d, count, byte ? PIECE("-24") : PIECE("-16"));
        return;
    }
    bool wide = type == LILAC_SIMT_I64;
    lilac_ptx_line2(e,
                    leading ? wide ? "clz.b64" : "clz.b32"
                    : wide  ? "popc.b64"
                            : "popc.b32",
                    d, a);
}

/* PTX reverses 32 or 64 bits; a narrower result is the upper bits of the reversed 32. */
static void reverse_bits(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    const lilac_simt_type type = type_of(e, i->result);
    lilac_ptx_piece a = lilac_ptx_register(e, i->operands[0]);
    lilac_ptx_piece d = lilac_ptx_define(e, i->result);
    if (type == LILAC_SIMT_I8 || type == LILAC_SIMT_I16) {
        const bool byte = type == LILAC_SIMT_I8;
        lilac_ptx_piece wide = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
        lilac_ptx_piece reversed = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
        lilac_ptx_piece low = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
        lilac_ptx_line2(e, byte ? "cvt.u32.u8" : "cvt.u32.u16", wide, a);
        lilac_ptx_line2(e, "brev.b32", reversed, wide);
        lilac_ptx_line3(e, "shr.u32", low, reversed, byte ? PIECE("24") : PIECE("16"));
        lilac_ptx_line2(e, "cvt.u16.u32", d, low);
        return;
    }
    lilac_ptx_line2(e, type == LILAC_SIMT_I64 ? "brev.b64" : "brev.b32", d, a);
}

/* A sum or difference of f32 that ptxas may join with products of its own: see the top. */
static bool may_join(const lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    return (i->code == LILAC_SIMT_OP_FADD || i->code == LILAC_SIMT_OP_FSUB) &&
           i->detail == LILAC_ROUND_NEAREST_EVEN && type_of(e, i->result) == LILAC_SIMT_F32 &&
           !e->kernel->no_contraction;
}

/* "add.rn" in another rounding: "add.rz" … */
static void begin_directed(lilac_ptx_emitter *e, const char *stem, lilac_rounding rounding) {
    static const char modes[] = {
        [LILAC_ROUND_ZERO] = 'z', [LILAC_ROUND_DOWN] = 'm', [LILAC_ROUND_UP] = 'p'};
    char text[16] = {0};
    size_t length = strlen(stem);
    memcpy(text, stem, length);
    text[length - 1] = modes[rounding];
    lilac_ptx_begin(e, text);
}

static bool propagates_nan(const lilac_simt_instruction *i) {
    return (i->code == LILAC_SIMT_OP_FMIN || i->code == LILAC_SIMT_OP_FMAX) &&
           (i->flags & LILAC_SIMT_PROPAGATE_NAN) != 0;
}

/* Operations for which PTX has no one instruction of this type. False: none of them. */
static bool is_sequence(lilac_ptx_emitter *e, const lilac_simt_instruction *i,
                        lilac_simt_type type) {
    bool is_bf16 = type == LILAC_SIMT_BF16 || type == LILAC_SIMT_BF16X2;
    if (i->code == LILAC_SIMT_OP_POPC || i->code == LILAC_SIMT_OP_CLZ) {
        count_bits(e, i);
    } else if (type == LILAC_SIMT_I1 && i->operand_count == 1) { /* abs and brev of one bit */
        lilac_ptx_piece a = lilac_ptx_register(e, i->operands[0]);
        lilac_ptx_line2(e, "mov.pred", lilac_ptx_define(e, i->result), a);
    } else if (i->code == LILAC_SIMT_OP_BREV) {
        reverse_bits(e, i);
    } else if (type == LILAC_SIMT_I1) {
        lilac_ptx_boolean(e, i);
    } else if (is_bf16 && !lilac_arch_has(e->arch, LILAC_HAS_BF16_ARITHMETIC) &&
               (i->code == LILAC_SIMT_OP_FADD || i->code == LILAC_SIMT_OP_FSUB ||
                i->code == LILAC_SIMT_OP_FMUL)) {
        bf16_by_fma(e, i);
    } else if (type == LILAC_SIMT_I8 &&
               (i->code == LILAC_SIMT_OP_MULHI_S || i->code == LILAC_SIMT_OP_MULHI_U)) {
        high_product_of_bytes(e, i);
    } else if (type == LILAC_SIMT_F64 && propagates_nan(i)) {
        f64_nan_extremum(e, i);
    } else {
        return false;
    }
    return true;
}

/* The instruction up to its operands: "add.rn.ftz.f32". */
static void begin_arithmetic(lilac_ptx_emitter *e, const lilac_simt_instruction *i,
                             lilac_simt_type type, bool fixed) {
    const mnemonic *rule = &mnemonics[i->code];
    bool approximate =
        rule->approximate && (i->flags & LILAC_SIMT_APPROXIMATE) && type == LILAC_SIMT_F32;
    const char *stem = approximate ? rule->approximate : rule->stem;
    if (may_join(e, i)) {
        stem = i->code == LILAC_SIMT_OP_FADD ? "add" : "sub";
    }
    if (lilac_simt_op_rounds((lilac_simt_opcode)i->code) && i->detail != LILAC_ROUND_NEAREST_EVEN) {
        begin_directed(e, stem, (lilac_rounding)i->detail);
    } else {
        lilac_ptx_begin(e, stem);
    }
    /* As in the simulator, ftz is a word about f32 only. */
    if ((i->flags & LILAC_SIMT_FTZ) && type == LILAC_SIMT_F32 && i->code != LILAC_SIMT_OP_FTANH &&
        i->code != LILAC_SIMT_OP_FTF32) {
        put_string(&e->code, ".ftz");
    }
    if (propagates_nan(i)) {
        put_string(&e->code, ".NaN");
    }
    if (!fixed) {
        put_string(&e->code, suffixes[rule->suffix][type]);
    }
}

void lilac_ptx_arithmetic(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    lilac_simt_type type = type_of(e, i->result);
    const mnemonic *rule = &mnemonics[i->code];
    if (is_sequence(e, i, type)) {
        return;
    }
    bool fixed = i->code == LILAC_SIMT_OP_MULWIDE_S || i->code == LILAC_SIMT_OP_MULWIDE_U;
    if (!fixed && !(rule->types >> type & 1)) {
        lilac_ptx_refuse(e, i, "%s has no %s of %s", e->arch->name,
                         lilac_simt_op_info_get((lilac_simt_opcode)i->code)->name,
                         lilac_simt_type_name(type));
        return;
    }

    lilac_ptx_piece operands[4];
    uint32_t count = i->operand_count;
    bool shift = i->code == LILAC_SIMT_OP_SHL || i->code == LILAC_SIMT_OP_SHR_S ||
                 i->code == LILAC_SIMT_OP_SHR_U;
    for (uint32_t k = 0; k < count; k++) {
        if (shift && k == 1) {
            operands[2] = shift_amount(e, i->operands[1]);
        } else if (type == LILAC_SIMT_I8 && rule->narrow != LOW) {
            operands[k + 1] = lilac_ptx_extended(e, i->operands[k], rule->narrow == SIGN);
        } else {
            operands[k + 1] = lilac_ptx_operand(e, i->operands[k]);
        }
    }
    operands[0] = lilac_ptx_define(e, i->result);
    begin_arithmetic(e, i, type, fixed);
    lilac_ptx_finish(e, count + 1, operands);
}

/* d = (!)a op (!)b on predicates. */
static void logic(lilac_ptx_emitter *e, const char *op, lilac_ptx_piece d, bool not_a,
                  lilac_ptx_piece a, bool not_b, lilac_ptx_piece b) {
    if (not_a) {
        lilac_ptx_piece t = lilac_ptx_temporary(e, LILAC_PTX_PREDICATE);
        lilac_ptx_line2(e, "not.pred", t, a);
        a = t;
    }
    if (not_b) {
        lilac_ptx_piece t = lilac_ptx_temporary(e, LILAC_PTX_PREDICATE);
        lilac_ptx_line2(e, "not.pred", t, b);
        b = t;
    }
    lilac_ptx_line3(e, op, d, a, b);
}

void lilac_ptx_boolean(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    lilac_ptx_piece a = lilac_ptx_register(e, i->operands[0]);
    lilac_ptx_piece b = lilac_ptx_register(e, i->operands[1]);
    lilac_ptx_piece d = lilac_ptx_define(e, i->result);
    switch (i->code) {
    case LILAC_SIMT_OP_ADD:
    case LILAC_SIMT_OP_SUB:
    case LILAC_SIMT_OP_XOR:
        lilac_ptx_line3(e, "xor.pred", d, a, b);
        break;
    case LILAC_SIMT_OP_MUL:
    case LILAC_SIMT_OP_AND:
    case LILAC_SIMT_OP_MIN_U:
    case LILAC_SIMT_OP_MAX_S:
        lilac_ptx_line3(e, "and.pred", d, a, b);
        break;
    case LILAC_SIMT_OP_OR:
    case LILAC_SIMT_OP_MAX_U:
    case LILAC_SIMT_OP_MIN_S:
        lilac_ptx_line3(e, "or.pred", d, a, b);
        break;
    case LILAC_SIMT_OP_DIV_S: /* the only divisor is one (or minus one) */
    case LILAC_SIMT_OP_DIV_U:
    case LILAC_SIMT_OP_SHR_S: /* all bits are the sign */
        lilac_ptx_line2(e, "mov.pred", d, a);
        break;
    case LILAC_SIMT_OP_REM_S:
    case LILAC_SIMT_OP_REM_U:
    case LILAC_SIMT_OP_MULHI_S:
    case LILAC_SIMT_OP_MULHI_U:
        lilac_ptx_line2(e, "mov.pred", d, PIECE("0"));
        break;
    case LILAC_SIMT_OP_SHL:
    case LILAC_SIMT_OP_SHR_U:
        logic(e, "and.pred", d, false, a, true, b);
        break;
    default:
        lilac_ptx_refuse(e, i, "%s has no %s of i1", e->arch->name,
                         lilac_simt_op_info_get((lilac_simt_opcode)i->code)->name);
    }
}

static void compare_booleans(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    lilac_ptx_piece a = lilac_ptx_register(e, i->operands[0]);
    lilac_ptx_piece b = lilac_ptx_register(e, i->operands[1]);
    lilac_ptx_piece d = lilac_ptx_define(e, i->result);
    switch (i->detail) {
    case LILAC_SIMT_EQ:
        logic(e, "xor.pred", d, true, a, false, b);
        break;
    case LILAC_SIMT_NE:
        logic(e, "xor.pred", d, false, a, false, b);
        break;
    case LILAC_SIMT_LT: /* signed: 1 is -1, below 0 */
    case LILAC_SIMT_UGT:
        logic(e, "and.pred", d, false, a, true, b);
        break;
    case LILAC_SIMT_GT:
    case LILAC_SIMT_ULT:
        logic(e, "and.pred", d, true, a, false, b);
        break;
    case LILAC_SIMT_LE:
    case LILAC_SIMT_UGE:
        logic(e, "or.pred", d, false, a, true, b);
        break;
    default:
        logic(e, "or.pred", d, true, a, false, b);
        break;
    }
}

void lilac_ptx_compare(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    static const struct {
        const char *text;
        uint8_t suffix;
    } kinds[LILAC_SIMT_COMPARE_COUNT] = {
        [LILAC_SIMT_EQ] = {".eq", S},    [LILAC_SIMT_NE] = {".ne", S},
        [LILAC_SIMT_LT] = {".lt", S},    [LILAC_SIMT_LE] = {".le", S},
        [LILAC_SIMT_GT] = {".gt", S},    [LILAC_SIMT_GE] = {".ge", S},
        [LILAC_SIMT_ULT] = {".lt", U},   [LILAC_SIMT_ULE] = {".le", U},
        [LILAC_SIMT_UGT] = {".gt", U},   [LILAC_SIMT_UGE] = {".ge", U},
        [LILAC_SIMT_UEQ] = {".equ", F},  [LILAC_SIMT_UNE] = {".neu", F},
        [LILAC_SIMT_FULT] = {".ltu", F}, [LILAC_SIMT_FULE] = {".leu", F},
        [LILAC_SIMT_FUGT] = {".gtu", F}, [LILAC_SIMT_FUGE] = {".geu", F},
        [LILAC_SIMT_ORD] = {".num", F},  [LILAC_SIMT_UNO] = {".nan", F},
    };
    lilac_simt_type type = type_of(e, i->operands[0]);
    bool is_float = lilac_simt_type_is_float(type);
    bool both = i->detail <= LILAC_SIMT_GE;
    if (i->detail >= LILAC_SIMT_COMPARE_COUNT || type == LILAC_SIMT_F16X2 ||
        type == LILAC_SIMT_BF16X2 || (!both && is_float != (kinds[i->detail].suffix == F))) {
        lilac_ptx_refuse(e, i, "%s has no such comparison of %s", e->arch->name,
                         lilac_simt_type_name(type));
        return;
    }
    if (type == LILAC_SIMT_I1) {
        compare_booleans(e, i);
        return;
    }
    uint8_t suffix = is_float ? F : kinds[i->detail].suffix;
    lilac_ptx_piece operands[3];
    if (type == LILAC_SIMT_BF16 && !lilac_arch_has(e->arch, LILAC_HAS_BF16_ARITHMETIC)) {
        operands[1] = lilac_ptx_as_f32(e, i->operands[0]);
        operands[2] = lilac_ptx_as_f32(e, i->operands[1]);
        type = LILAC_SIMT_F32;
    } else {
        operands[1] = lilac_ptx_extended(e, i->operands[0], suffix == S);
        operands[2] = lilac_ptx_extended(e, i->operands[1], suffix == S);
    }
    bool flush = (i->flags & LILAC_SIMT_FTZ) && type_of(e, i->operands[0]) == LILAC_SIMT_F32;
    operands[0] = lilac_ptx_define(e, i->result);
    lilac_ptx_begin(e, "setp");
    put_string(&e->code, kinds[i->detail].text);
    if (flush) {
        put_string(&e->code, ".ftz");
    }
    put_string(&e->code, suffixes[suffix][type]);
    lilac_ptx_finish(e, 3, operands);
}

void lilac_ptx_select(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    lilac_simt_type type = type_of(e, i->result);
    lilac_ptx_piece p = lilac_ptx_register(e, i->operands[0]);
    if (type == LILAC_SIMT_I1) { /* (p and a) or (not p and b) */
        lilac_ptx_piece a = lilac_ptx_register(e, i->operands[1]);
        lilac_ptx_piece b = lilac_ptx_register(e, i->operands[2]);
        lilac_ptx_piece yes = lilac_ptx_temporary(e, LILAC_PTX_PREDICATE);
        lilac_ptx_piece no = lilac_ptx_temporary(e, LILAC_PTX_PREDICATE);
        lilac_ptx_line3(e, "and.pred", yes, p, a);
        logic(e, "and.pred", no, true, p, false, b);
        lilac_ptx_line3(e, "or.pred", lilac_ptx_define(e, i->result), yes, no);
        return;
    }
    bool number = type == LILAC_SIMT_F32 || type == LILAC_SIMT_F64;
    lilac_ptx_piece operands[4] = {
        [1] = lilac_ptx_bits(e, i->operands[1]), [2] = lilac_ptx_bits(e, i->operands[2]), [3] = p};
    operands[0] = lilac_ptx_define(e, i->result);
    lilac_ptx_begin(e, "selp");
    put_string(&e->code, suffixes[number ? F : B][type]);
    lilac_ptx_finish(e, 4, operands);
}

void lilac_ptx_round(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    static const char *const modes[4] = {".rmi", ".rpi", ".rzi", ".rni"};
    const char *mode = modes[i->code - LILAC_SIMT_OP_FFLOOR];
    lilac_simt_type type = type_of(e, i->result);
    bool packed = type == LILAC_SIMT_F16X2 || type == LILAC_SIMT_BF16X2;
    lilac_simt_type element = type == LILAC_SIMT_F16X2    ? LILAC_SIMT_F16
                              : type == LILAC_SIMT_BF16X2 ? LILAC_SIMT_BF16
                                                          : type;
    bool by_f32 = element == LILAC_SIMT_BF16 && !lilac_arch_has(e->arch, LILAC_HAS_BF16_ARITHMETIC);
    lilac_ptx_piece from[2], to[2];
    from[0] = lilac_ptx_register(e, i->operands[0]);
    to[0] = lilac_ptx_define(e, i->result);
    lilac_ptx_piece whole = to[0];
    if (packed) {
        lilac_ptx_piece source = from[0];
        for (int k = 0; k < 2; k++) {
            from[k] = lilac_ptx_temporary(e, LILAC_PTX_BITS16);
            to[k] = lilac_ptx_temporary(e, LILAC_PTX_BITS16);
        }
        lilac_ptx_line2(e, "mov.b32", lilac_ptx_tuple(e, 2, from), source);
    }
    for (int k = 0; k < 1 + packed; k++) {
        if (by_f32) { /* integral values of a bf16 are bf16: the last conversion is exact */
            lilac_ptx_piece wide = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
            lilac_ptx_piece rounded = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
            lilac_ptx_widen(e, element, wide, from[k]);
            lilac_ptx_begin(e, "cvt");
            put_string(&e->code, mode);
            put_string(&e->code, ".f32.f32");
            lilac_ptx_finish(e, 2, (lilac_ptx_piece[]){rounded, wide});
            lilac_ptx_line2(e, "cvt.rn.bf16.f32", to[k], rounded);
            continue;
        }
        lilac_ptx_begin(e, "cvt");
        put_string(&e->code, mode);
        if ((i->flags & LILAC_SIMT_FTZ) && element == LILAC_SIMT_F32) {
            put_string(&e->code, ".ftz");
        }
        put_string(&e->code, suffixes[F][element]);
        put_string(&e->code, suffixes[F][element]);
        lilac_ptx_finish(e, 2, (lilac_ptx_piece[]){to[k], from[k]});
    }
    if (packed) {
        lilac_ptx_line2(e, "mov.b32", whole, lilac_ptx_tuple(e, 2, to));
    }
}
