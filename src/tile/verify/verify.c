/* The verifier: structure and visibility. Each operation's own rules are in verify_ops.c.
 *
 * All operations get numbers in the order of the text. A value is visible at a use when, climbing
 * from the use to the operation that stands in the value's region, that operation comes later in
 * the value's block, or stands in a block that the value's block dominates. Dominators are computed
 * only for regions with several blocks, by the iteration of Cooper, Harvey and Kennedy: each
 * block's immediate dominator is where the paths of its predecessors meet, in reverse postorder,
 * until nothing changes.
 */
#include "verify/verify.h"

#include <lilac/bits.h>

#include <string.h>

typedef struct block_info {
    uint32_t order;              /* in postorder, from 1; 0: not reached */
    uint32_t idom;               /* postorder number of the immediate dominator */
    uint32_t edge;               /* how many successors have been visited */
    const struct block_info *up; /* the immediate dominator */
} block_info;

static void fail(tile_verifier *verifier) {
    verifier->good = false;
}

/* ---- types ------------------------------------------------------------------------------ */

/* What is wrong with the layout of a type; NULL: nothing. Of memory it is that of the last
 * dimensions of the allocation. */
static const char *layout_fault(const lilac_tile_type *type) {
    const lilac_layout *layout = type->layout;
    bool memory = type->kind == LILAC_TILE_MEMDESC;
    uint32_t rank = memory ? type->alloc_rank : type->rank;
    const int64_t *shape = memory ? type->alloc_shape : type->shape;
    if (layout->out_count > type->rank || type->rank > rank ||
        type->rank - layout->out_count > memory) {
        return "another number of dimensions";
    }
    shape += rank - layout->out_count;
    for (uint32_t i = 0; i < layout->out_count; i++) {
        char name[16] = "dim";
        size_t n = 3;
        if (i >= 10) {
            name[n++] = (char)('0' + i / 10);
        }
        name[n] = (char)('0' + i % 10);
        if (strcmp(layout->out[i].name, name) != 0 || layout->out[i].bits != log2_of(shape[i])) {
            return "other dimensions";
        }
    }
    return lilac_layout_is_surjective(layout) ? NULL : "elements that are nowhere";
}

/* What the module says of how it is run: bits of an input of its tensors' layouts; -1: nothing. */
static int said_bits(const tile_verifier *verifier, const char *attribute) {
    int64_t count = lilac_tile_find_integer(&verifier->module->attributes, attribute, -1);
    return count < 1 || (count & (count - 1)) ? -1 : (int)log2_of(count);
}

static bool check_threads(tile_verifier *verifier, const lilac_tile_op *op,
                          const lilac_tile_type *type) {
    enum { WARP = 1 };
    static const char *const inputs[][2] = {
        {"lane", "ttg.threads-per-warp"}, {"warp", "ttg.num-warps"}, {"block", "ttg.num-ctas"}};
    for (uint32_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        const bool partition = i == WARP && verifier->partition_warps > 0;
        int said = partition ? (int)log2_of(verifier->partition_warps)
                             : said_bits(verifier, inputs[i][1]),
            at = lilac_layout_in(type->layout, inputs[i][0]);
        int bits = at < 0 ? 0 : type->layout->in[at].bits;
        if (said < 0 || said == bits) {
            continue;
        }
        tile_op_error(verifier->module, op, "layout-of-other-threads",
                      "the layout of '%s' has 2^%d %ss, but '%s' of the %s is %u",
                      tile_type_text(verifier->module, type), bits, inputs[i][0],
                      partition ? "num_warps" : inputs[i][1], partition ? "partition" : "module",
                      1u << said);
        if (type->encoding) {
            lilac_note(verifier->module->context, type->encoding->position, 0,
                       "this is the layout");
        }
        return false;
    }
    return true;
}

static bool check_type(tile_verifier *verifier, const lilac_tile_op *op,
                       const lilac_tile_type *type) {
    if (type->kind != LILAC_TILE_TENSOR && type->kind != LILAC_TILE_MEMDESC) {
        return true;
    }
    void **known = tile_table_at(&verifier->types, type);
    const uintptr_t warps = 1 + (uintptr_t)verifier->partition_warps;
    if ((uintptr_t)*known == warps) {
        return true;
    }
    *known = (void *)warps;
    bool tensor = type->kind == LILAC_TILE_TENSOR;
    /* Without a layout, the first of several dimensions of memory may count buffers. */
    uint32_t first = tensor         ? 0
                     : type->layout ? type->rank - type->layout->out_count
                                    : type->rank > 1;
    for (uint32_t i = first; i < type->rank; i++) {
        if (type->shape[i] < 1 || (type->shape[i] & (type->shape[i] - 1)) != 0) {
            tile_op_error(verifier->module, op, "not-a-power-of-two",
                          "dimension %u of '%s' is not a power of two", i,
                          tile_type_text(verifier->module, type));
            return false;
        }
    }
    if (!type->layout && verifier->layouts) {
        tile_op_error(verifier->module, op, "no-layout", "'%s' has no layout",
                      tile_type_text(verifier->module, type));
        return false;
    }
    const char *fault = type->layout ? layout_fault(type) : NULL;
    if (fault) {
        tile_op_error(verifier->module, op, "layout-does-not-cover", "the layout of '%s' has %s",
                      tile_type_text(verifier->module, type), fault);
    }
    return !fault && (!tensor || !type->layout || check_threads(verifier, op, type));
}

/* ---- dominators ------------------------------------------------------------------------- */

static block_info *info_of(const tile_verifier *verifier, const lilac_tile_block *block) {
    return tile_table_get(&verifier->blocks, block);
}

static uint32_t successor_count(const lilac_tile_block *block) {
    return block->last ? block->last->successor_count : 0;
}

/* Numbers the blocks in postorder, without recursion. */
static uint32_t order_blocks(tile_verifier *verifier, const lilac_tile_region *region,
                             const lilac_tile_block **postorder, const lilac_tile_block **stack) {
    uint32_t depth = 0, count = 0;
    stack[depth++] = region->first;
    info_of(verifier, region->first)->order = UINT32_MAX;
    while (depth) {
        const lilac_tile_block *block = stack[depth - 1];
        block_info *info = info_of(verifier, block);
        if (info->edge < successor_count(block)) {
            const lilac_tile_block *next = block->last->successors[info->edge++];
            block_info *next_info = info_of(verifier, next);
            if (next_info && next_info->order == 0) {
                next_info->order = UINT32_MAX;
                stack[depth++] = next;
            }
            continue;
        }
        postorder[count] = block;
        info->order = ++count;
        depth--;
    }
    return count;
}

static uint32_t meet(tile_verifier *verifier, const lilac_tile_block *const *postorder, uint32_t a,
                     uint32_t b) {
    while (a != b) {
        while (a < b) {
            a = info_of(verifier, postorder[a - 1])->idom;
        }
        while (b < a) {
            b = info_of(verifier, postorder[b - 1])->idom;
        }
    }
    return a;
}

static void find_dominators(tile_verifier *verifier, const lilac_tile_region *region) {
    uint32_t blocks = 0;
    for (const lilac_tile_block *block = region->first; block; block = block->next, blocks++) {
        *tile_table_at(&verifier->blocks, block) = lilac_arena_new(verifier->scratch, block_info);
    }
    const lilac_tile_block **postorder =
        lilac_arena_array(verifier->scratch, const lilac_tile_block *, blocks);
    const lilac_tile_block **stack =
        lilac_arena_array(verifier->scratch, const lilac_tile_block *, blocks);
    uint32_t count = order_blocks(verifier, region, postorder, stack);
    info_of(verifier, region->first)->idom = count;
    for (bool changed = true; changed;) {
        changed = false;
        /* Passes each block's dominator on to its successors, entry first. */
        for (uint32_t n = count; n > 0; n--) {
            const lilac_tile_block *block = postorder[n - 1];
            if (!info_of(verifier, block)->idom) {
                continue;
            }
            for (uint32_t s = 0; s < successor_count(block); s++) {
                block_info *next = info_of(verifier, block->last->successors[s]);
                if (!next || next->order == count) {
                    continue;
                }
                uint32_t idom = next->idom ? meet(verifier, postorder, next->idom, n) : n;
                changed |= idom != next->idom;
                next->idom = idom;
            }
        }
    }
    for (uint32_t n = 1; n <= count; n++) {
        block_info *info = info_of(verifier, postorder[n - 1]);
        info->up = info_of(verifier, postorder[info->idom - 1]);
    }
}

static bool dominates(const tile_verifier *verifier, const lilac_tile_block *a,
                      const lilac_tile_block *b) {
    if (a == b) {
        return true;
    }
    const block_info *above = info_of(verifier, a), *below = info_of(verifier, b);
    if (!above || !below || !below->order) {
        return above && below; /* nothing runs in a block that is not reached */
    }
    /* Numbers grow towards the entry. */
    while (below->order < above->order) {
        below = below->up;
    }
    return below == above;
}

/* ---- visibility ------------------------------------------------------------------------- */

static uint32_t ordinal(const tile_verifier *verifier, const lilac_tile_op *op) {
    return (uint32_t)(uintptr_t)tile_table_get(&verifier->ordinals, op);
}

/* The blocks of the regions that are open have their depths in a table; the path has, for each
 * depth, the operation there that contains the one being checked, or is it. */
static bool is_visible(const tile_verifier *verifier, const lilac_tile_value *value) {
    const lilac_tile_block *home = value->op ? value->op->parent : value->block;
    if (!home || !home->parent) {
        return false;
    }
    uint32_t depth = (uint32_t)(uintptr_t)tile_table_get(&verifier->depths, home->parent);
    if (depth == 0 || depth > verifier->depth || depth < verifier->isolated) {
        return false;
    }
    const lilac_tile_op *at = verifier->path[depth - 1];
    if (!at->parent || at->parent->parent != home->parent) {
        return false;
    }
    if (at->parent != home) {
        return dominates(verifier, home, at->parent);
    }
    return !value->op || ordinal(verifier, value->op) < ordinal(verifier, at);
}

static bool check_operands(tile_verifier *verifier, const lilac_tile_op *op) {
    for (uint32_t i = 0; i < op->operand_count; i++) {
        const lilac_tile_use *use = &op->operands[i];
        if (!use->value || use->op != op || use->index != i || *use->previous != use) {
            tile_op_error(verifier->module, op, "broken-use",
                          "operand %u of '%s' is not in its value's list of uses", i + 1,
                          lilac_tile_op_info_get(op->code)->name);
            return false;
        }
        if (!is_visible(verifier, use->value)) {
            tile_op_error(verifier->module, op, "not-visible",
                          "operand %u of '%s'%s%s is not defined on every way here", i + 1,
                          lilac_tile_op_info_get(op->code)->name, use->value->name ? ", %" : "",
                          use->value->name ? use->value->name : "");
            return false;
        }
    }
    return true;
}

/* ---- structure -------------------------------------------------------------------------- */

static void number_ops(tile_verifier *verifier, const lilac_tile_region *region) {
    for (const lilac_tile_block *block = region->first; block; block = block->next) {
        for (const lilac_tile_op *op = block->first; op; op = op->next) {
            *tile_table_at(&verifier->ordinals, op) = (void *)(uintptr_t)++verifier->next_ordinal;
            for (uint32_t r = 0; r < op->region_count; r++) {
                number_ops(verifier, op->regions[r]);
            }
        }
    }
}

static bool check_successors(tile_verifier *verifier, const lilac_tile_op *op) {
    uint32_t wanted = op->code == LILAC_TILE_OP_CF_BR        ? 1
                      : op->code == LILAC_TILE_OP_CF_COND_BR ? 2
                                                             : 0;
    if (op->successor_count != wanted) {
        tile_op_error(verifier->module, op, "count-mismatch", "'%s' has %u successors, not %u",
                      lilac_tile_op_info_get(op->code)->name, wanted, op->successor_count);
        return false;
    }
    for (uint32_t i = 0; i < op->successor_count; i++) {
        const lilac_tile_block *to = op->successors[i];
        if (to->parent != op->parent->parent || to == op->parent->parent->first) {
            tile_op_error(verifier->module, op, "bad-branch",
                          "a branch goes to a later block of its own region");
            return false;
        }
    }
    return true;
}

static bool check_counts(tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_op_info *info = lilac_tile_op_info_get(op->code);
    if (info->regions == (int)op->region_count || (info->regions < 0 && op->region_count > 0)) {
        return true;
    }
    tile_op_error(verifier->module, op, "count-mismatch", "'%s' has %d regions, not %u", info->name,
                  info->regions, op->region_count);
    return false;
}

/* The operation that must end the only block of each region of an operation. */
static const uint16_t terminators[LILAC_TILE_OP_COUNT][2] = {
#define REGION(code, first, second)                                                                \
    [LILAC_TILE_OP_##code] = {LILAC_TILE_OP_##first, LILAC_TILE_OP_##second},
#include <lilac/operations.def>
};

/* A map's region may have several, which end in its return or a branch. */
static bool check_map_ends(tile_verifier *verifier, const lilac_tile_region *region) {
    for (const lilac_tile_block *block = region->first; block; block = block->next) {
        const lilac_tile_op *last = block->last;
        if (last && (last->code == LILAC_TILE_OP_TT_MAP_ELEMENTWISE_RETURN ||
                     last->code == LILAC_TILE_OP_CF_BR || last->code == LILAC_TILE_OP_CF_COND_BR)) {
            continue;
        }
        tile_op_error(verifier->module, last ? last : region->parent, "bad-terminator",
                      "a block of 'tt.map_elementwise' ends in no return and no branch");
        return false;
    }
    return true;
}

/* Regions of operations have one block with the terminator of the operation; scf.if may lack an
 * else. */
static bool check_regions(tile_verifier *verifier, const lilac_tile_op *op) {
    for (uint32_t r = 0; r < op->region_count; r++) {
        const lilac_tile_block *block = op->regions[r]->first;
        if (!block && op->code == LILAC_TILE_OP_SCF_IF && r == 1 && op->result_count == 0) {
            continue;
        }
        lilac_tile_opcode end = (lilac_tile_opcode)terminators[op->code][r > 0];
        if (block && block->next && op->code == LILAC_TILE_OP_TT_MAP_ELEMENTWISE) {
            if (!check_map_ends(verifier, op->regions[r])) {
                return false;
            }
            continue;
        }
        if (!block || block->next) {
            tile_op_error(verifier->module, op, "bad-region", "region %u of '%s' must be one block",
                          r + 1, lilac_tile_op_info_get(op->code)->name);
            return false;
        }
        if (!block->last || block->last->code != end) {
            tile_op_error(verifier->module, block->last ? block->last : op, "bad-terminator",
                          "region %u of '%s' must end in '%s'", r + 1,
                          lilac_tile_op_info_get(op->code)->name,
                          lilac_tile_op_info_get(end)->name);
            return false;
        }
    }
    return true;
}

static void check_region(tile_verifier *verifier, const lilac_tile_region *region);

/* A partition sees nothing from outside, and its tensors have the layouts of its warps. */
static void check_partition(tile_verifier *verifier, const lilac_tile_op *op, uint32_t region) {
    verifier->isolated = verifier->depth + 1;
    verifier->partition_warps = lilac_tile_partition_warps(op, region - 1);
    check_region(verifier, op->regions[region]);
    verifier->isolated = 0;
    verifier->partition_warps = 0;
}

static void check_op(tile_verifier *verifier, const lilac_tile_op *op) {
    bool good = op->code > LILAC_TILE_OP_NONE && op->code < LILAC_TILE_OP_COUNT;
    if (!good) {
        tile_op_error(verifier->module, op, "unknown-operation", "an operation of no known kind");
    }
    good = good && check_counts(verifier, op) && check_successors(verifier, op) &&
           check_operands(verifier, op);
    for (uint32_t i = 0; good && i < op->result_count; i++) {
        good = check_type(verifier, op, op->results[i].type);
    }
    const bool partitions = op->code == LILAC_TILE_OP_TTG_WARP_SPECIALIZE; /* operands' types */
    for (uint32_t r = 0; good && r < op->region_count && !partitions; r++) {
        if (op->regions[r]->first) {
            for (uint32_t i = 0; good && i < op->regions[r]->first->argument_count; i++) {
                good = check_type(verifier, op, op->regions[r]->first->arguments[i]->type);
            }
        }
    }
    good = good && tile_signature_check(verifier->module, op) && check_regions(verifier, op) &&
           tile_verify_op_rules(verifier, op);
    if (!good) {
        fail(verifier);
    }
    for (uint32_t r = 0; good && r < op->region_count; r++) {
        if (partitions && r > 0) {
            check_partition(verifier, op, r);
        } else {
            check_region(verifier, op->regions[r]);
        }
    }
}

static void check_block(tile_verifier *verifier, const lilac_tile_block *block) {
    for (const lilac_tile_op *op = block->first; op; op = op->next) {
        verifier->path[verifier->depth - 1] = op;
        bool terminator = (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_TERMINATOR) != 0;
        if (terminator && op->next) {
            tile_op_error(verifier->module, op, "bad-terminator",
                          "'%s' must be the last operation of its block",
                          lilac_tile_op_info_get(op->code)->name);
            fail(verifier);
        }
        check_op(verifier, op);
    }
}

static void check_region(tile_verifier *verifier, const lilac_tile_region *region) {
    if (region->first && region->first->next) {
        find_dominators(verifier, region);
    }
    if (verifier->depth == verifier->path_capacity) {
        verifier->path_capacity = verifier->path_capacity ? verifier->path_capacity * 2 : 16;
        verifier->path = lilac_heap_grow(verifier->path,
                                         sizeof *verifier->path * (size_t)verifier->path_capacity);
    }
    *tile_table_at(&verifier->depths, region) = (void *)(uintptr_t)++verifier->depth;
    for (const lilac_tile_block *block = region->first; block; block = block->next) {
        check_block(verifier, block);
    }
    verifier->depth--;
}

static void function_error(tile_verifier *verifier, const lilac_tile_function *function,
                           const char *id, const char *message) {
    lilac_error(verifier->module->context, function->position, function->location, id,
                "function '@%s' %s", function->name, message);
    fail(verifier);
}

/* A function's blocks end in a return or a branch. */
static bool check_ends(tile_verifier *verifier, const lilac_tile_function *function) {
    for (const lilac_tile_block *block = function->body->first; block; block = block->next) {
        const lilac_tile_op *last = block->last;
        if (last && (last->code == LILAC_TILE_OP_TT_RETURN || last->code == LILAC_TILE_OP_CF_BR ||
                     last->code == LILAC_TILE_OP_CF_COND_BR)) {
            continue;
        }
        if (!last) {
            function_error(verifier, function, "bad-terminator", "has an empty block");
            return false;
        }
        tile_op_error(verifier->module, last, "bad-terminator",
                      "'%s' cannot end a block of a function: no return and no branch",
                      lilac_tile_op_info_get(last->code)->name);
        fail(verifier);
        return false;
    }
    return true;
}

static void check_function(tile_verifier *verifier, const lilac_tile_function *function) {
    void **same = tile_table_at(&verifier->functions, function->name);
    if (*same) {
        function_error(verifier, function, "redefinition", "is defined twice");
    }
    *same = (void *)(uintptr_t)function;
}

static void check_body(tile_verifier *verifier, const lilac_tile_function *function) {
    if (!function->body) {
        return;
    }
    const lilac_tile_block *entry = function->body->first;
    bool same = entry && entry->argument_count == function->parameter_count;
    for (uint32_t i = 0; same && i < function->parameter_count; i++) {
        same = entry->arguments[i] == function->parameters[i];
    }
    if (!same) {
        function_error(verifier, function, "bad-region",
                       "has parameters that are not the arguments of its first block");
        return;
    }
    if (!check_ends(verifier, function)) {
        return;
    }
    number_ops(verifier, function->body);
    check_region(verifier, function->body);
    for (uint32_t i = 0; i < function->parameter_count; i++) {
        if (!check_type(verifier, entry->first, function->parameters[i]->type)) {
            fail(verifier);
        }
    }
}

bool lilac_tile_verify(const lilac_tile_module *module, bool layouts) {
    /* Types that rules compare with may have to be made: the interner grows, the IR stays. */
    tile_verifier verifier = {.module = module->functions ? module->functions->module : NULL,
                              .layouts = layouts,
                              .good = true,
                              .scratch = lilac_arena_create()};
    for (const lilac_tile_function *f = module->functions; f; f = f->next) {
        check_function(&verifier, f);
    }
    for (const lilac_tile_function *f = module->functions; f && verifier.good; f = f->next) {
        check_body(&verifier, f);
    }
    tile_table_clear(&verifier.ordinals);
    tile_table_clear(&verifier.blocks);
    tile_table_clear(&verifier.depths);
    lilac_heap_free(verifier.path);
    tile_table_clear(&verifier.types);
    tile_table_clear(&verifier.functions);
    lilac_arena_destroy(verifier.scratch);
    return verifier.good;
}
