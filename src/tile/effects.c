/* The effects of operations: the rows of tile_effects.def as data, and queries.
 *
 * The rows are sorted by opcode, so those of one opcode are found by bisection. */
#include "internal.h"

enum {
    ALL = LILAC_TILE_ALL,
    RESULT = LILAC_TILE_RESULT,
    READS = LILAC_TILE_READS,
    WRITES = LILAC_TILE_WRITES,
    WAITS = LILAC_TILE_WAITS,
    ISSUE = LILAC_TILE_NO_RESOURCE,
    GLOBAL = LILAC_TILE_GLOBAL_MEMORY,
    SHARED = LILAC_TILE_SHARED_MEMORY,
    TENSOR_MEMORY = LILAC_TILE_TENSOR_MEMORY,
    BARRIER = LILAC_TILE_BARRIER,
    COPIES = LILAC_TILE_COPIES,
    STORES = LILAC_TILE_STORES,
    DOTS = LILAC_TILE_DOTS,
    OUTPUT = LILAC_TILE_OUTPUT,
    TEXT = LILAC_TILE_TEXT,
    EVERYTHING = GLOBAL | SHARED | TENSOR_MEMORY | BARRIER | COPIES | STORES | DOTS | OUTPUT | TEXT
};

static const lilac_tile_effect rows[] = {
#define EFFECT(op_code, op_operand, op_access, op_resources, op_completion)                        \
    {.code = LILAC_TILE_OP_##op_code,                                                              \
     .operand = (op_operand),                                                                      \
     .access = (op_access),                                                                        \
     .resources = (op_resources),                                                                  \
     .completion = (op_completion)},
#include <lilac/tile_effects.def>
#undef EFFECT
};

enum { ROWS = sizeof rows / sizeof *rows };

const lilac_tile_effect *lilac_tile_effects(lilac_tile_opcode code, uint32_t *count) {
    uint32_t low = 0, high = ROWS;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (rows[middle].code < code) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    while (high < ROWS && rows[high].code == code) {
        high++;
    }
    *count = high - low;
    return rows + low;
}

/* Does the text of the operation's inline assembly have no effect? */
static bool is_pure_text(const lilac_tile_op *op) {
    return op->code == LILAC_TILE_OP_TT_ELEMENTWISE_INLINE_ASM &&
           lilac_tile_find_integer(&op->attributes, "pure", 0) != 0;
}

static void add_row(lilac_tile_effect_summary *sum, const lilac_tile_effect *effect) {
    sum->reads |= effect->access & READS ? effect->resources : 0;
    sum->writes |= effect->access & WRITES ? effect->resources : 0;
}

/* A wait is ordered like the accesses that it completes. */
static void add_waits(lilac_tile_effect_summary *sum, const lilac_tile_effect *wait) {
    sum->waits |= wait->resources;
    for (uint32_t i = 0; i < ROWS; i++) {
        if (rows[i].completion & wait->resources) {
            add_row(sum, &rows[i]);
        }
    }
}

static void add_effects(lilac_tile_effect_summary *sum, const lilac_tile_op *op) {
    uint32_t count;
    const lilac_tile_effect *effects = lilac_tile_effects(op->code, &count);
    for (uint32_t i = 0; i < count && !is_pure_text(op); i++) {
        add_row(sum, &effects[i]);
        sum->pending |= effects[i].completion;
        if (effects[i].access & WAITS) {
            add_waits(sum, &effects[i]);
        }
    }
}

static void visit_effects(void *sum, lilac_tile_op *op) {
    add_effects(sum, op);
}

lilac_tile_effect_summary lilac_tile_summarize_effects(const lilac_tile_op *op) {
    lilac_tile_effect_summary sum = {0};
    add_effects(&sum, op);
    for (uint32_t i = 0; i < op->region_count; i++) {
        lilac_tile_walk(op->regions[i], visit_effects, &sum);
    }
    return sum;
}

bool lilac_tile_effects_conflict(const lilac_tile_effect_summary *a,
                                 const lilac_tile_effect_summary *b) {
    return (a->writes & (b->reads | b->writes)) != 0 || (b->writes & a->reads) != 0;
}

/* Can the value name a part of a resource? */
static bool names_memory(const lilac_tile_type *type) {
    return type->kind == LILAC_TILE_MEMDESC || type->kind == LILAC_TILE_DESCRIPTOR ||
           lilac_tile_is_pointer(type);
}

/* A product without isAsync is complete when the operation ends. */
static const lilac_tile_effect *complete_effect(const lilac_tile_op *op,
                                                const lilac_tile_effect *effect) {
    static const lilac_tile_effect reads = {.code = LILAC_TILE_OP_TTNG_WARP_GROUP_DOT,
                                            .operand = 0,
                                            .access = LILAC_TILE_READS,
                                            .resources = SHARED,
                                            .completion = LILAC_TILE_NO_RESOURCE};
    const bool complete = op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT &&
                          lilac_tile_find_integer(&op->attributes, "isAsync", 0) == 0;
    return complete ? &reads : effect;
}

const lilac_tile_effect *lilac_tile_operand_effect(const lilac_tile_op *op, uint32_t index) {
    uint32_t count;
    const lilac_tile_effect *effects = lilac_tile_effects(op->code, &count);
    if (count == 0 || index >= op->operand_count ||
        !names_memory(op->operands[index].value->type)) {
        return NULL;
    }
    tile_signature signature;
    tile_groups groups;
    tile_signature_parse(&signature, lilac_tile_op_info_get(op->code)->signature);
    if (!tile_signature_groups(&signature, op->operand_count, &op->attributes, &groups)) {
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        int32_t group = effects[i].operand;
        if (group >= 0 && groups.starts[group] <= index && index < groups.starts[group + 1]) {
            return complete_effect(op, &effects[i]);
        }
    }
    return NULL;
}

/* ---- shared memory ----------------------------------------------------------------------- */

static const struct {
    bool accesses;
    int8_t memory, tensor;
} shared_accesses[LILAC_TILE_OP_COUNT] = {
#define SHARED(code, memory, tensor) [LILAC_TILE_OP_##code] = {true, memory, tensor},
#include <lilac/operations.def>
};

static const struct {
    uint8_t first, end;
} views[LILAC_TILE_OP_COUNT] = {
#define VIEW(code, first, last) [LILAC_TILE_OP_##code] = {first, (last) + 1},
#include <lilac/operations.def>
};

static lilac_tile_value *value_of(lilac_tile_op *op, int8_t index) {
    return index == RESULT                       ? &op->results[0]
           : (uint32_t)index < op->operand_count ? op->operands[index].value
                                                 : NULL;
}

bool lilac_tile_shared_access(lilac_tile_op *op, lilac_tile_value **memory,
                              lilac_tile_value **tensor) {
    if (!shared_accesses[op->code].accesses) {
        return false;
    }
    *memory = value_of(op, shared_accesses[op->code].memory);
    *tensor = value_of(op, shared_accesses[op->code].tensor);
    return *memory != NULL && *tensor != NULL;
}

bool lilac_tile_view_operands(const lilac_tile_op *op, uint32_t *first, uint32_t *end) {
    *first = views[op->code].first;
    *end = views[op->code].end;
    return *end > 0;
}
