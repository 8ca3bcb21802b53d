/* Payloads: the fields that only one family of operations has.
 *
 *     opcode ── family ── member of union lilac_simt_payload ── fields ── {name = value, …}
 *
 * The reader, the printer, common subexpression elimination and the hash of the builder go through
 * the tables below. A new family needs a member of the union, a row of `families` for each of its
 * opcodes, and a row of `fields` for each field. Fields are compared one by one, so the
 * bytes of the union that belong to no field may have any value. A payload is copied as a whole,
 * with its instruction. */
#include "internal.h"

#include <lilac/matrix.h>
#include <lilac/tensor_map.h>

#include <stddef.h>

#define NAME(name, text, bits) text,
static const char *const matrix_types[] = {LILAC_MATRIX_TYPES(NAME) NULL};
#undef NAME

static const char *const tensor_elements[] = {"u8",  "u16", "u32", "s32",  "u64", "s64",
                                              "f16", "f32", "f64", "bf16", NULL};
static const char *const tensor_swizzles[] = {"none", "b32", "b64", "b128", NULL};
static const char *const tensor_fills[] = {"zero", "nan", NULL};

#define FIELD(family, kind, member, name, least, most, choices)                                    \
    {                                                                                              \
        LILAC_SIMT_PAYLOAD_##family, LILAC_SIMT_FIELD_##kind,                                      \
            offsetof(union lilac_simt_payload, member),                                            \
            sizeof(((union lilac_simt_payload *)0)->member), name, least, most, choices            \
    }

/* The fields of one family are consecutive.
 *
 *         family  kind    member       name      least      most       choices */
static const lilac_simt_payload_field fields[] = {
    /* clang-format off */
    FIELD(COPY,   NUMBER, copy.source,  "source", INT32_MIN, INT32_MAX, NULL),
    FIELD(MATRIX, CHOICE, matrix.a,           "a", 0, LILAC_MATRIX_TYPE_COUNT - 1, matrix_types),
    FIELD(MATRIX, CHOICE, matrix.b,           "b", 0, LILAC_MATRIX_TYPE_COUNT - 1, matrix_types),
    FIELD(MATRIX, CHOICE, matrix.d,           "d", 0, LILAC_MATRIX_TYPE_COUNT - 1, matrix_types),
    FIELD(MATRIX, NUMBER, matrix.m,           "m", 0, UINT16_MAX, NULL),
    FIELD(MATRIX, NUMBER, matrix.n,           "n", 0, UINT16_MAX, NULL),
    FIELD(MATRIX, NUMBER, matrix.k,           "k", 0, UINT16_MAX, NULL),
    FIELD(MATRIX, FLAG,   matrix.registers,   "registers",   0, 1, NULL),
    FIELD(MATRIX, FLAG,   matrix.transpose_a, "transpose_a", 0, 1, NULL),
    FIELD(MATRIX, FLAG,   matrix.transpose_b, "transpose_b", 0, 1, NULL),
    FIELD(MATRIX, FLAG,   matrix.negate_a,    "negate_a",    0, 1, NULL),
    FIELD(MATRIX, FLAG,   matrix.negate_b,    "negate_b",    0, 1, NULL),
    FIELD(MATRIX, FLAG,   matrix.saturate,    "satfinite",   0, 1, NULL),
    FIELD(WGMMA_WAIT, NUMBER, wgmma_wait.groups, "groups", 0, UINT32_MAX, NULL),
    FIELD(BULK,   NUMBER, bulk.global,  "global", INT32_MIN, INT32_MAX, NULL),
    FIELD(BULK,   NUMBER, bulk.mbarrier, "mbarrier", INT32_MIN, INT32_MAX, NULL),
    FIELD(BULK,   FLAG,   bulk.multicast, "multicast", 0, 1, NULL),
    FIELD(TENSOR_MAP, CHOICE, tensor_map.element, "element", 0, LILAC_TENSOR_ELEMENT_COUNT - 1, tensor_elements),
    FIELD(TENSOR_MAP, CHOICE, tensor_map.swizzle, "swizzle", 0, LILAC_TENSOR_SWIZZLE_COUNT - 1, tensor_swizzles),
    FIELD(TENSOR_MAP, CHOICE, tensor_map.fill,    "fill",    0, LILAC_TENSOR_FILL_COUNT - 1, tensor_fills),
    FIELD(TENSOR_MAP, NUMBER, tensor_map.box[0],  "box0", 0, UINT16_MAX, NULL),
    FIELD(TENSOR_MAP, NUMBER, tensor_map.box[1],  "box1", 0, UINT16_MAX, NULL),
    FIELD(TENSOR_MAP, NUMBER, tensor_map.box[2],  "box2", 0, UINT16_MAX, NULL),
    FIELD(TENSOR_MAP, NUMBER, tensor_map.box[3],  "box3", 0, UINT16_MAX, NULL),
    FIELD(TENSOR_MAP, NUMBER, tensor_map.box[4],  "box4", 0, UINT16_MAX, NULL),
    /* clang-format on */
};

enum { FIELD_COUNT = sizeof fields / sizeof *fields };

static const uint8_t families[LILAC_SIMT_OP_COUNT] = {
    [LILAC_SIMT_OP_CP_ASYNC] = LILAC_SIMT_PAYLOAD_COPY,
    [LILAC_SIMT_OP_MMA] = LILAC_SIMT_PAYLOAD_MATRIX,
    [LILAC_SIMT_OP_WGMMA] = LILAC_SIMT_PAYLOAD_MATRIX,
    [LILAC_SIMT_OP_WGMMA_WAIT] = LILAC_SIMT_PAYLOAD_WGMMA_WAIT,
    [LILAC_SIMT_OP_TENSOR_MAP_SET] = LILAC_SIMT_PAYLOAD_TENSOR_MAP,
    [LILAC_SIMT_OP_CP_BULK_STORE] = LILAC_SIMT_PAYLOAD_BULK,
    [LILAC_SIMT_OP_CP_BULK_REDUCE] = LILAC_SIMT_PAYLOAD_BULK,
    [LILAC_SIMT_OP_CP_BULK_LOAD] = LILAC_SIMT_PAYLOAD_BULK,
    [LILAC_SIMT_OP_CP_TENSOR_LOAD] = LILAC_SIMT_PAYLOAD_BULK,
    [LILAC_SIMT_OP_CP_TENSOR_STORE] = LILAC_SIMT_PAYLOAD_BULK,
    [LILAC_SIMT_OP_CP_TENSOR_REDUCE] = LILAC_SIMT_PAYLOAD_BULK,
};

lilac_simt_payload_family lilac_simt_payload_family_of(lilac_simt_opcode code) {
    return (uint32_t)code < LILAC_SIMT_OP_COUNT ? (lilac_simt_payload_family)families[code]
                                                : LILAC_SIMT_PAYLOAD_NONE;
}

const lilac_simt_payload_field *lilac_simt_payload_next(lilac_simt_opcode code,
                                                        const lilac_simt_payload_field *after) {
    lilac_simt_payload_family family = lilac_simt_payload_family_of(code);
    if (family == LILAC_SIMT_PAYLOAD_NONE) {
        return NULL;
    }
    const lilac_simt_payload_field *field = after != NULL ? after + 1 : fields;
    while (field < fields + FIELD_COUNT && field->family != family) {
        field++;
    }
    return field < fields + FIELD_COUNT ? field : NULL;
}

int64_t lilac_simt_payload_get(const lilac_simt_instruction *instruction,
                               const lilac_simt_payload_field *field) {
    const uint8_t *at = (const uint8_t *)&instruction->payload + field->offset;
    uint64_t bits = 0;
    for (uint32_t k = 0; k < field->size; k++) { /* the order of bytes in memory is little-endian */
        bits |= (uint64_t)at[k] << (8 * k);
    }
    uint32_t unused = 64 - 8 * (uint32_t)field->size;
    return field->least < 0 ? (int64_t)(bits << unused) >> unused : (int64_t)bits;
}

void lilac_simt_payload_set(lilac_simt_instruction *instruction,
                            const lilac_simt_payload_field *field, int64_t value) {
    uint8_t *at = (uint8_t *)&instruction->payload + field->offset;
    for (uint32_t k = 0; k < field->size; k++) {
        at[k] = (uint8_t)((uint64_t)value >> (8 * k));
    }
}

bool lilac_simt_payload_equal(const lilac_simt_instruction *a, const lilac_simt_instruction *b) {
    const lilac_simt_payload_field *field = NULL;
    while ((field = lilac_simt_payload_next((lilac_simt_opcode)a->code, field)) != NULL) {
        if (lilac_simt_payload_get(a, field) != lilac_simt_payload_get(b, field)) {
            return false;
        }
    }
    return true;
}

uint64_t lilac_simt_payload_hash(const lilac_simt_instruction *instruction, uint64_t hash) {
    const lilac_simt_payload_field *field = NULL;
    while ((field = lilac_simt_payload_next((lilac_simt_opcode)instruction->code, field)) != NULL) {
        uint64_t value = (uint64_t)lilac_simt_payload_get(instruction, field);
        hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    return hash;
}
