/* The table of operations as data, and finding an operation by its name. */
#include "internal.h"

#include <lilac/operation_classes.h>

#include <string.h>

enum {
    PURE = LILAC_TILE_PURE,
    ELEMENTWISE = LILAC_TILE_ELEMENTWISE,
    TERMINATOR = LILAC_TILE_TERMINATOR,
    SHAPE = LILAC_TILE_SHAPE,
    COMMUTATIVE = LILAC_TILE_COMMUTATIVE,
    GENERIC = LILAC_TILE_GENERIC,
    LISTS = LILAC_TILE_LISTS
};

static const lilac_tile_op_info infos[LILAC_TILE_OP_COUNT] = {
    [LILAC_TILE_OP_NONE] = {.name = "none", .signature = "->", .format = "", .doc = "no operation"},
#define OP(code, op_name, op_traits, op_operands, op_results, op_regions, op_signature, op_format, \
           op_doc)                                                                                 \
    [LILAC_TILE_OP_##code] = {.name = (op_name),                                                   \
                              .traits = (op_traits),                                               \
                              .operands = (op_operands),                                           \
                              .results = (op_results),                                             \
                              .regions = (op_regions),                                             \
                              .signature = (op_signature),                                         \
                              .format = (op_format),                                               \
                              .doc = (op_doc)},
#include <lilac/tile_ops.def>
#undef OP
};

/* Lengths of the names, so that a search compares few of them. */
static const uint8_t lengths[LILAC_TILE_OP_COUNT] = {
#define OP(code, op_name, ...) [LILAC_TILE_OP_##code] = sizeof(op_name) - 1,
#include <lilac/tile_ops.def>
#undef OP
};

const lilac_tile_op_info *lilac_tile_op_info_get(lilac_tile_opcode code) {
    return &infos[code];
}

lilac_tile_opcode tile_opcode_find(const char *name, size_t length) {
    for (int code = LILAC_TILE_OP_NONE + 1; code < LILAC_TILE_OP_COUNT; code++) {
        if (lengths[code] == length && memcmp(infos[code].name, name, length) == 0) {
            return (lilac_tile_opcode)code;
        }
    }
    return LILAC_TILE_OP_NONE;
}

const char *tile_opcode_nearest(const char *name, size_t length) {
    const char *names[LILAC_TILE_OP_COUNT];
    uint32_t count = 0;
    for (int code = LILAC_TILE_OP_NONE + 1; code < LILAC_TILE_OP_COUNT; code++) {
        names[count++] = infos[code].name;
    }
    return lilac_nearest_name(name, length, names, count);
}

static const uint8_t costs[LILAC_TILE_OP_COUNT] = {
#define OPERATION(code, cost, layout, facts, strides, range, fold, lower, reference)               \
    [LILAC_TILE_OP_##code] = LILAC_TILE_COST_##cost,
#include <lilac/operations.def>
};

bool lilac_tile_divides(lilac_tile_opcode code) {
    return costs[code] == LILAC_TILE_COST_DIVIDE;
}
