/* The rules of each operation beyond its signature, as a table indexed by opcode.
 *
 *     kinds     `detail` is less than this number; 0: not checked
 *     feature   the device must have it; 0: every device has the operation
 *     floats    float types of the first result
 *     check     a function for what the other columns cannot express, or NULL
 *
 * Traits add rules for whole families: rounded arithmetic, mbarriers, atomics, accesses. */
#include "verify/verify.h"

#include <string.h>

typedef lilac_simt_instruction instruction;

#define fail lilac_simt_verify_fail

/* ---- kinds, types and rounding ---------------------------------------------------------- */

typedef enum float_types { ANY_TYPE, F32, F32_F64 } float_types;

static bool is_f32_or_f64(lilac_simt_type type) {
    return type == LILAC_SIMT_F32 || type == LILAC_SIMT_F64;
}

static void check_kinds(verifier *v, const instruction *i, uint32_t kinds) {
    if (i->detail >= kinds) {
        fail(v, "simt-detail", "detail of %s is %u; 0 to %u are allowed", operation_name(i),
             i->detail, kinds - 1);
    }
}

static void check_feature(verifier *v, const instruction *i, uint32_t feature) {
    const lilac_arch *arch = v->module->arch;
    if (feature != 0 && arch != NULL && !lilac_arch_has(arch, (lilac_feature)feature)) {
        fail(v, "simt-feature", "%s has no %s", arch->name, operation_name(i));
    }
}

static void check_floats(verifier *v, const instruction *i, float_types floats) {
    lilac_simt_type type = type_of(v, i->result);
    if ((floats == F32 && type != LILAC_SIMT_F32) || (floats == F32_F64 && !is_f32_or_f64(type))) {
        fail(v, "simt-operand-type", "the result of %s is %s; %s allowed", operation_name(i),
             lilac_simt_type_name(type), floats == F32 ? "f32 is" : "f32 and f64 are");
    }
}

/* A directed rounding is for f32 and f64, and for correctly rounded results. */
static void check_rounding(verifier *v, const instruction *i) {
    check_kinds(v, i, LILAC_ROUND_UP + 1);
    if (i->detail == LILAC_ROUND_NEAREST_EVEN) {
        return;
    }
    if (!is_f32_or_f64(type_of(v, i->result))) {
        fail(v, "simt-operand-type",
             "the result of %s with a directed rounding is %s; f32 and f64 are allowed",
             operation_name(i), type_name_of(v, i->result));
    }
    if ((i->code == LILAC_SIMT_OP_S2F || i->code == LILAC_SIMT_OP_U2F) &&
        lilac_simt_type_bits(type_of(v, i->operands[0])) < 32) {
        fail(v, "simt-operand-type",
             "the operand of %s with a directed rounding is %s; i32 and i64 are allowed",
             operation_name(i), type_name_of(v, i->operands[0]));
    }
    if (i->flags & (LILAC_SIMT_APPROXIMATE | LILAC_SIMT_SATURATE)) {
        fail(v, "simt-detail", "an approximate or saturated %s has no directed rounding",
             operation_name(i));
    }
}

static void check_compare(verifier *v, const instruction *i) {
    lilac_simt_type type = type_of(v, i->operands[0]);
    if (lilac_simt_type_is_packed(type) ||
        !lilac_simt_compare_fits((lilac_simt_compare)i->detail, lilac_simt_type_is_float(type))) {
        fail(v, "simt-detail", "comparison '%s' does not exist for %s",
             lilac_simt_compare_name((lilac_simt_compare)i->detail), lilac_simt_type_name(type));
    }
}

/* ---- conversions and parts -------------------------------------------------------------- */

static void check_conversion(verifier *v, const instruction *i) {
    if (lilac_simt_type_is_packed(type_of(v, i->operands[0])) ||
        lilac_simt_type_is_packed(type_of(v, i->result))) {
        fail(v, "simt-operand-type", "%s from %s to %s; packed types are not allowed",
             operation_name(i), type_name_of(v, i->operands[0]), type_name_of(v, i->result));
    }
}

static void check_f8(verifier *v, const instruction *i) {
    if (i->scalar != LILAC_F8E4M3FN && i->scalar != LILAC_F8E5M2) {
        fail(v, "simt-detail", "scalar of %s is %s; f8E4M3FN and f8E5M2 are allowed",
             operation_name(i),
             i->scalar < LILAC_SCALAR_COUNT ? lilac_scalar_name((lilac_scalar)i->scalar) : "?");
    }
}

static void check_width(verifier *v, const instruction *i) {
    uint32_t from = lilac_simt_type_bits(type_of(v, i->operands[0]));
    uint32_t to = lilac_simt_type_bits(type_of(v, i->result));
    bool same = i->code == LILAC_SIMT_OP_BITCAST, narrower = i->code == LILAC_SIMT_OP_TRUNC;
    if (!(same ? from == to : narrower ? to < from : to > from)) {
        fail(v, "simt-width", "%s from %s to %s; the result must %s", operation_name(i),
             type_name_of(v, i->operands[0]), type_name_of(v, i->result),
             same       ? "have the operand's width"
             : narrower ? "be narrower than the operand"
                        : "be wider than the operand");
    }
}

static void check_opaque(verifier *v, const instruction *i) {
    if (lilac_simt_type_bits(type_of(v, i->result)) < 32) {
        fail(v, "simt-width", "the result of opaque is %s; i32 and i64 are allowed",
             type_name_of(v, i->result));
    }
}

/* `count` parts of the type of `part` fill `whole`. */
static void check_parts(verifier *v, lilac_simt_value part, uint32_t count,
                        lilac_simt_value whole) {
    uint32_t bits = lilac_simt_type_bits(type_of(v, part));
    uint32_t width = lilac_simt_type_bits(type_of(v, whole));
    if (count == 0 || bits < 8 || bits * count != width) {
        fail(v, "simt-pack-width", "%u x %s are %u bits; %s has %u, and a part has at least 8 bits",
             count, lilac_simt_type_name(type_of(v, part)), bits * count, type_name_of(v, whole),
             width);
    }
}

static void check_pack(verifier *v, const instruction *i) {
    check_parts(v, i->operand_count > 0 ? i->operands[0] : 0, i->operand_count, i->result);
}

static void check_unpack(verifier *v, const instruction *i) {
    check_parts(v, i->result_count > 0 ? i->result : 0, i->result_count, i->operands[0]);
}

/* ---- text ------------------------------------------------------------------------------- */

/* Every conversion of a print's format has a value of its type, and every value has a conversion. */
static void check_format(verifier *v, const instruction *i) {
    bool predicated = i->operand_count > 0 && type_of(v, i->operands[0]) == LILAC_SIMT_I1;
    uint32_t values = i->operand_count - (uint32_t)predicated, next = 0;
    lilac_simt_conversion c;
    const char *at = i->text != NULL ? i->text : "";
    while (lilac_simt_next_conversion(&at, &c)) {
        if (c.letter == '%') {
            continue;
        }
        int length = (int)(c.end - c.begin);
        if (c.letter == 0) {
            fail(v, "simt-text", "'%.*s' of the format is not a conversion that print supports",
                 length, c.begin);
            return;
        }
        if (next >= values) {
            fail(v, "simt-text", "'%.*s' of the format has no value; print has %u values", length,
                 c.begin, values);
            return;
        }
        lilac_simt_type type = type_of(v, i->operands[next + predicated]);
        lilac_simt_type integer = c.wide ? LILAC_SIMT_I64 : LILAC_SIMT_I32;
        bool is_float = c.letter == 'f' || c.letter == 'e' || c.letter == 'g';
        if (is_float ? !is_f32_or_f64(type) : type != integer) {
            fail(v, "simt-text", "value %u, for '%.*s' of the format, is %s; %s is allowed",
                 next + 1, length, c.begin, lilac_simt_type_name(type),
                 is_float ? "f32 or f64" : lilac_simt_type_name(integer));
            return;
        }
        next++;
    }
    if (next != values) {
        fail(v, "simt-text", "print has %u values; its format has %u conversions", values, next);
    }
}

/* In the text of an assembly, $n refers to result or operand n, and $$ is a dollar sign. */
static void check_assembly(verifier *v, const instruction *i) {
    uint32_t count = (uint32_t)i->result_count + i->operand_count;
    if (i->text == NULL) {
        fail(v, "simt-text", "%s has no text", operation_name(i));
        return;
    }
    for (const char *at = i->text; *at != 0; at++) {
        if (*at != '$') {
            continue;
        }
        char next = *++at;
        if (next == '$') {
            continue;
        }
        if (next < '0' || next > '9') {
            fail(v, "simt-text",
                 "a '$' of the assembly has no number; write $$ for the character itself");
            return;
        }
        uint32_t number = 0;
        while (*at >= '0' && *at <= '9' && number < 65536) {
            number = number * 10 + (uint32_t)(*at++ - '0');
        }
        if (number >= count) {
            fail(v, "simt-text", "the assembly refers to $%u; it has %u results and operands",
                 number, count);
            return;
        }
        at--;
    }
}

/* ---- parameters ------------------------------------------------------------------------- */

static void check_parameter(verifier *v, const instruction *i) {
    const lilac_simt_kernel *kernel = v->kernel;
    if (i->immediate < 0 || (uint64_t)i->immediate >= kernel->parameter_count) {
        fail(v, "simt-parameter", "param refers to parameter %lld; the kernel has %u, from 0 on",
             (long long)i->immediate, kernel->parameter_count);
    } else if (kernel->parameters[i->immediate].type != type_of(v, i->result)) {
        fail(v, "simt-parameter", "the result is %s; parameter %lld is %s",
             type_name_of(v, i->result), (long long)i->immediate,
             lilac_simt_type_name(kernel->parameters[i->immediate].type));
    }
}

/* ---- rules of other files that give a reason -------------------------------------------- */

typedef bool reasoned_rule(const lilac_simt_kernel *, const instruction *, lilac_text *);

static void check_reasoned(verifier *v, const instruction *i, reasoned_rule *rule, const char *id) {
    lilac_text why = {0};
    if (!rule(v->kernel, i, &why)) {
        fail(v, id, "%s", lilac_text_get(&why));
    }
    lilac_text_clear(&why);
}

static void check_matrix(verifier *v, const instruction *i) {
    check_reasoned(v, i, lilac_simt_check_matrix, "simt-matrix");
}

static void check_bulk(verifier *v, const instruction *i) {
    check_reasoned(v, i, lilac_simt_check_bulk, "simt-bulk");
}

static void check_scratch(verifier *v, const instruction *i) {
    if (v->kernel->scratch_bytes == 0) {
        fail(v, "simt-scratch", "%s: the kernel has no scratch memory", operation_name(i));
    }
}

/* ---- the table -------------------------------------------------------------------------- */

typedef struct rule {
    uint8_t kinds;
    uint16_t feature;
    uint8_t floats;
    lilac_simt_verify_rule *check;
} rule;

static const rule rules[LILAC_SIMT_OP_COUNT] = {
/* clang-format off */
#define RULE(code, kinds, feature, floats, check)                                                  \
    [LILAC_SIMT_OP_##code] = {kinds, feature, floats, check},
    /*   code                     kinds feature             floats    check */
    RULE(PARAM,                   0,    0,                  ANY_TYPE, check_parameter)
    RULE(BLOCK,                   3,    0,                  ANY_TYPE, NULL)
    RULE(GRID,                    3,    0,                  ANY_TYPE, NULL)
    RULE(GLOBAL_SCRATCH,          0,    0,                  ANY_TYPE, check_scratch)
    RULE(MAP_SHARED,              0,    LILAC_HAS_CLUSTERS, ANY_TYPE, NULL)

    RULE(FDIV,                    0,    0,                  F32_F64,  NULL)
    RULE(FSQRT,                   0,    0,                  F32_F64,  NULL)
    RULE(FRSQRT,                  0,    0,                  F32_F64,  NULL)
    RULE(FRCP,                    0,    0,                  F32_F64,  NULL)
    RULE(FEXP2,                   0,    0,                  F32,      NULL)
    RULE(FLOG2,                   0,    0,                  F32,      NULL)
    RULE(FSIN,                    0,    0,                  F32,      NULL)
    RULE(FCOS,                    0,    0,                  F32,      NULL)
    RULE(FTANH,                   0,    0,                  F32,      NULL)
    RULE(FTF32,                   0,    0,                  F32,      NULL)

    RULE(CMP,                     0,    0,                  ANY_TYPE, check_compare)
    RULE(SEXT,                    0,    0,                  ANY_TYPE, check_width)
    RULE(ZEXT,                    0,    0,                  ANY_TYPE, check_width)
    RULE(TRUNC,                   0,    0,                  ANY_TYPE, check_width)
    RULE(BITCAST,                 0,    0,                  ANY_TYPE, check_width)
    RULE(FCVT,                    4,    0,                  ANY_TYPE, check_conversion)
    RULE(S2F,                     0,    0,                  ANY_TYPE, check_conversion)
    RULE(U2F,                     0,    0,                  ANY_TYPE, check_conversion)
    RULE(F2S,                     0,    0,                  ANY_TYPE, check_conversion)
    RULE(F2U,                     0,    0,                  ANY_TYPE, check_conversion)
    RULE(F8_UNPACK,               0,    0,                  ANY_TYPE, check_f8)
    RULE(F8_PACK,                 0,    0,                  ANY_TYPE, check_f8)
    RULE(PACK,                    0,    0,                  ANY_TYPE, check_pack)
    RULE(UNPACK,                  0,    0,                  ANY_TYPE, check_unpack)
    RULE(OPAQUE,                  0,    0,                  ANY_TYPE, check_opaque)

    RULE(LD_CLUSTER,              0,    LILAC_HAS_CLUSTERS, ANY_TYPE, NULL)
    RULE(ST_CLUSTER,              0,    LILAC_HAS_CLUSTERS, ANY_TYPE, NULL)
    RULE(LD_MATRIX,               2,    LILAC_HAS_LDMATRIX, ANY_TYPE, NULL)
    RULE(ST_MATRIX,               2,    LILAC_HAS_STMATRIX, ANY_TYPE, NULL)
    RULE(CP_ASYNC,                0,    LILAC_HAS_CP_ASYNC, ANY_TYPE, lilac_simt_verify_copy)
    RULE(CP_ASYNC_COMMIT,         0,    LILAC_HAS_CP_ASYNC, ANY_TYPE, NULL)
    RULE(CP_ASYNC_WAIT,           0,    LILAC_HAS_CP_ASYNC, ANY_TYPE, lilac_simt_verify_wait)
    RULE(CP_ASYNC_WAIT_ALL,       0,    LILAC_HAS_CP_ASYNC, ANY_TYPE, NULL)

    RULE(MMA,                     0,    0,                  ANY_TYPE, check_matrix)
    RULE(WGMMA,                   0,    LILAC_HAS_WGMMA,    ANY_TYPE, check_matrix)
    RULE(WGMMA_FENCE,             0,    LILAC_HAS_WGMMA,    ANY_TYPE, check_matrix)
    RULE(WGMMA_COMMIT,            0,    LILAC_HAS_WGMMA,    ANY_TYPE, check_matrix)
    RULE(WGMMA_WAIT,              0,    LILAC_HAS_WGMMA,    ANY_TYPE, check_matrix)

    RULE(CP_BULK_STORE,           0,    LILAC_HAS_TMA,      ANY_TYPE, check_bulk)
    RULE(CP_BULK_REDUCE,          0,    LILAC_HAS_TMA,      ANY_TYPE, check_bulk)
    RULE(CP_BULK_LOAD,            0,    LILAC_HAS_TMA,      ANY_TYPE, check_bulk)
    RULE(CP_TENSOR_LOAD,          0,    LILAC_HAS_TMA,      ANY_TYPE, check_bulk)
    RULE(CP_TENSOR_STORE,         0,    LILAC_HAS_TMA,      ANY_TYPE, check_bulk)
    RULE(CP_TENSOR_REDUCE,        0,    LILAC_HAS_TMA,      ANY_TYPE, check_bulk)
    RULE(BULK_COMMIT,             0,    LILAC_HAS_TMA,      ANY_TYPE, check_bulk)
    RULE(BULK_WAIT,               0,    LILAC_HAS_TMA,      ANY_TYPE, lilac_simt_verify_wait)
    RULE(BULK_WAIT_READ,          0,    LILAC_HAS_TMA,      ANY_TYPE, lilac_simt_verify_wait)
    RULE(PREFETCH_TENSOR_MAP,     0,    LILAC_HAS_TMA,      ANY_TYPE, check_bulk)
    RULE(TENSOR_MAP_SET,          0,    LILAC_HAS_TENSOR_MAPS, ANY_TYPE, check_bulk)
    RULE(TENSOR_MAP_PUBLISH,      0,    LILAC_HAS_TENSOR_MAPS, ANY_TYPE, check_bulk)
    RULE(TENSOR_MAP_ACQUIRE,      0,    LILAC_HAS_TENSOR_MAPS, ANY_TYPE, check_bulk)
    RULE(FENCE_PROXY_ASYNC,       0,    LILAC_HAS_TMA,      ANY_TYPE, check_bulk)

    RULE(SHUFFLE,                 4,    0,                  ANY_TYPE, NULL)
    RULE(VOTE,                    3,    0,                  ANY_TYPE, NULL)
    RULE(REDUX, LILAC_SIMT_ATOMIC_EXCHANGE, 0,              ANY_TYPE, NULL)
    RULE(ELECT,                   0,    LILAC_HAS_TMA,      ANY_TYPE, NULL)
    RULE(GROUP_BARRIER,           0,    0,                  ANY_TYPE, lilac_simt_verify_group_barrier)
    RULE(CLUSTER_BARRIER,         0,    LILAC_HAS_CLUSTERS, ANY_TYPE, NULL)
    RULE(MBARRIER_INIT,           0,    LILAC_HAS_TMA,      ANY_TYPE, NULL)
    RULE(MBARRIER_INVALIDATE,     0,    LILAC_HAS_TMA,      ANY_TYPE, NULL)
    RULE(MBARRIER_ARRIVE,         0,    LILAC_HAS_TMA,      ANY_TYPE, NULL)
    RULE(MBARRIER_ARRIVE_CLUSTER, 0,    LILAC_HAS_CLUSTERS, ANY_TYPE, NULL)
    RULE(MBARRIER_EXPECT,         0,    LILAC_HAS_TMA,      ANY_TYPE, NULL)
    RULE(MBARRIER_WAIT,           0,    LILAC_HAS_TMA,      ANY_TYPE, NULL)
    RULE(MBARRIER_TRY_WAIT,       0,    LILAC_HAS_TMA,      ANY_TYPE, NULL)
    RULE(MBARRIER_TEST,           0,    LILAC_HAS_TMA,      ANY_TYPE, NULL)
    RULE(CP_ASYNC_MBARRIER_ARRIVE, 0,   LILAC_HAS_TMA,      ANY_TYPE, NULL)
    RULE(FENCE_MBARRIER_INIT,     0,    LILAC_HAS_TMA,      ANY_TYPE, NULL)
    RULE(SET_MAX_REGISTERS,       2,    0,                  ANY_TYPE, NULL)

    RULE(PRINT,                   0,    0,                  ANY_TYPE, check_format)
    RULE(ASM,                     0,    0,                  ANY_TYPE, check_assembly)
    RULE(ASM_VOLATILE,            0,    0,                  ANY_TYPE, check_assembly)
    RULE(TIMER,                   2,    0,                  ANY_TYPE, NULL)

    RULE(LOOP,                    0,    0,                  ANY_TYPE, lilac_simt_verify_loop)
    RULE(IF,                      0,    0,                  ANY_TYPE, lilac_simt_verify_if)
    RULE(WHILE,                   0,    0,                  ANY_TYPE, lilac_simt_verify_while)
    RULE(PROGRAMS,                0,    0,                  ANY_TYPE, lilac_simt_verify_program_bodies)
#undef RULE
    /* clang-format on */
};

/* The rules of families that have a trait. A conversion rounds to narrower types too, so its rule
 * is in the table. */
static void check_family(verifier *v, const instruction *i) {
    if (lilac_simt_has_trait(i->code, LILAC_SIMT_ROUNDED) && i->code != LILAC_SIMT_OP_FCVT) {
        check_rounding(v, i);
    }
    if (lilac_simt_has_trait(i->code, LILAC_SIMT_MBARRIER)) {
        lilac_simt_verify_mbarrier(v, i);
    } else if (lilac_simt_is_atomic(i->code)) {
        lilac_simt_verify_atomic(v, i);
    } else if (lilac_simt_is_access(i->code) &&
               !lilac_simt_has_trait(i->code, LILAC_SIMT_ASYNCHRONOUS)) {
        lilac_simt_verify_access(v, i);
    }
}

void lilac_simt_verify_operation(verifier *v, const instruction *i) {
    const rule *r = &rules[i->code];
    if (r->kinds != 0) {
        check_kinds(v, i, r->kinds);
    }
    check_feature(v, i, r->feature);
    check_floats(v, i, (float_types)r->floats);
    check_family(v, i);
    lilac_simt_verify_interval(v, i);
    if (r->check != NULL) {
        r->check(v, i);
    }
}
