/* inline: calls become the bodies of the callees.
 *
 *   %r = tt.call @f(%a)        ⟶        the operations of @f with %a for its parameter;
 *                                       %r becomes the value that @f returns
 *
 * Callees are finished before their callers, so every body is final when it is copied. Recursive
 * functions are refused.
 *
 * GPUs have calls. But a called function would be compiled for layouts and registers that it does
 * not see, and Triton's users write `noinline` for faster compilation, not for smaller kernels. A
 * body must be one block, which the pass structurize ensures. Functions that were called and are
 * no kernels are removed. */
#include "internal.h"

#include <lilac/tile_loops.h>

/* The largest total number of copied operations. It bounds calls that double at each level. */
enum { MOST_COPIED = 1 << 18 };

typedef enum progress { UNSEEN, OPEN, DONE } progress;

typedef struct entry {
    lilac_tile_function *function;
    progress progress;
    bool called;
    uint32_t depth; /* nesting of regions after all its calls are inlined */
} entry;

typedef struct inlining {
    lilac_tile_module *module;
    lilac_arena *arena;
    uint32_t count;
    entry *entries;
    uint32_t copied, deepest; /* deepest: the nesting limit */
    bool changed, failed;
} inlining;

static bool refuse(inlining *n, const lilac_tile_op *call, const char *id, const char *what) {
    const lilac_tile_attribute *callee = lilac_tile_find(&call->attributes, "callee");
    lilac_error(n->module->context, lilac_tile_position(call), call->location, id,
                "the function '@%s' %s",
                callee != NULL && callee->text != NULL ? callee->text : "?", what);
    n->failed = true;
    return false;
}

/* ---- copying ----------------------------------------------------------------------------- */

static void count_operation(void *count, lilac_tile_op *op) {
    (void)op;
    ++*(uint32_t *)count;
}

static bool put_body(inlining *n, lilac_tile_op *call, lilac_tile_function *callee) {
    const lilac_tile_block *body = callee->body->first;
    if (body == NULL || body->next != NULL || body->last == NULL ||
        body->last->code != LILAC_TILE_OP_TT_RETURN ||
        body->argument_count != call->operand_count ||
        body->last->operand_count != call->result_count) {
        return refuse(n, call, "unsupported-call",
                      "cannot be inlined: its body must be one block that ends in "
                      "tt.return, with the numbers of parameters and results of the call");
    }
    lilac_tile_walk(callee->body, count_operation, &n->copied);
    n->copied--; /* the terminator is not copied */
    if (n->copied > MOST_COPIED) {
        return refuse(n, call, "too-many-calls",
                      "is called so often that inlining copies more than 262144 operations");
    }
    lilac_tile_mapping *mapping = lilac_tile_mapping_create();
    for (uint32_t i = 0; i < body->argument_count; i++) {
        lilac_tile_map(mapping, body->arguments[i], call->operands[i].value);
    }
    lilac_tile_clone_body(n->module, body, mapping, call);
    for (uint32_t i = 0; i < call->result_count; i++) {
        lilac_tile_value *value = lilac_tile_mapped(mapping, body->last->operands[i].value);
        lilac_tile_replace_uses(&call->results[i], value);
    }
    lilac_tile_mapping_destroy(mapping);
    lilac_tile_remove(call);
    n->changed = true;
    return true;
}

/* ---- calls ------------------------------------------------------------------------------- */

typedef struct calls {
    lilac_arena *arena;
    uint32_t count, capacity;
    lilac_tile_op **list;
} calls;

static void collect(void *data, lilac_tile_op *op) {
    calls *c = (calls *)data;
    if (op->code != LILAC_TILE_OP_TT_CALL) {
        return;
    }
    if (c->count == c->capacity) {
        lilac_tile_op **list = lilac_arena_array(c->arena, lilac_tile_op *, c->capacity * 2 + 8);
        for (uint32_t i = 0; i < c->count; i++) {
            list[i] = c->list[i];
        }
        c->list = list;
        c->capacity = c->capacity * 2 + 8;
    }
    c->list[c->count++] = op;
}

static entry *find(inlining *n, const lilac_tile_op *call) {
    const lilac_tile_attribute *callee = lilac_tile_find(&call->attributes, "callee");
    for (uint32_t i = 0; callee != NULL && i < n->count; i++) {
        if (n->entries[i].function->name == callee->text) {
            return &n->entries[i];
        }
    }
    return NULL;
}

/* The nesting depth of a region. */
static uint32_t depth_of(const lilac_tile_region *region) {
    uint32_t most = 0;
    for (const lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            for (uint32_t r = 0; r < op->region_count; r++) {
                uint32_t depth = depth_of(op->regions[r]);
                most = depth > most ? depth : most;
            }
        }
    }
    return most + 1;
}

/* The number of regions that contain an operation. */
static uint32_t depth_at(const lilac_tile_op *op) {
    uint32_t depth = 0;
    while (op != NULL && op->parent != NULL && op->parent->parent != NULL) {
        depth++;
        op = op->parent->parent->parent;
    }
    return depth;
}

/* Passes recurse on regions, so the nesting after inlining is limited too. */
static bool check_depth(inlining *n, const lilac_tile_op *call, entry *caller, entry *callee) {
    callee->depth = callee->depth ? callee->depth : depth_of(callee->function->body);
    uint32_t depth = depth_at(call) + callee->depth - 1;
    if (depth > n->deepest) {
        lilac_error(n->module->context, lilac_tile_position(call), call->location,
                    "nested-too-deep",
                    "with the body of '@%s', regions are nested %u deep; the stack of this thread "
                    "allows %u levels",
                    callee->function->name, depth, n->deepest);
        n->failed = true;
        return false;
    }
    caller->depth = depth > caller->depth ? depth : caller->depth;
    return true;
}

/* The deepest chain of calls: `finish` recurses on it. */
enum { MOST_DEEP = 256 };

static bool finish(inlining *n, entry *e, uint32_t depth) {
    if (e->progress == DONE) {
        return true;
    }
    e->progress = OPEN;
    calls found = {.arena = n->arena};
    lilac_tile_walk(e->function->body, collect, &found);
    e->depth = found.count > 0 ? depth_of(e->function->body) : 0;
    for (uint32_t i = 0; i < found.count; i++) {
        lilac_tile_op *call = found.list[i];
        entry *callee = find(n, call);
        if (callee == NULL || callee->function->body == NULL) {
            return refuse(n, call, "unsupported-call", "is declared without a body");
        }
        if (callee->progress == OPEN) {
            return refuse(n, call, "recursive-call", "calls itself");
        }
        if (depth >= MOST_DEEP) {
            return refuse(n, call, "unsupported-call",
                          "is called in a chain of more than 256 calls");
        }
        callee->called = true;
        if (!finish(n, callee, depth + 1) || !check_depth(n, call, e, callee) ||
            !put_body(n, call, callee->function)) {
            return false;
        }
    }
    e->progress = DONE;
    return true;
}

bool lilac_engine_inline(lilac_tile_module *module, const lilac_target *target, bool *changed) {
    (void)target;
    inlining n = {.module = module, .arena = lilac_arena_create()};
    n.deepest = lilac_nesting_limit();
    for (lilac_tile_function *f = module->functions; f != NULL; f = f->next) {
        n.count++;
    }
    n.entries = lilac_arena_array(n.arena, entry, n.count);
    uint32_t i = 0;
    for (lilac_tile_function *f = module->functions; f != NULL; f = f->next) {
        n.entries[i++].function = f;
    }
    for (i = 0; i < n.count && !n.failed; i++) {
        if (n.entries[i].function->body != NULL) {
            (void)finish(&n, &n.entries[i], 0);
        }
    }
    lilac_tile_function **link = &module->functions;
    for (i = 0; i < n.count && !n.failed; i++) {
        lilac_tile_function *f = n.entries[i].function;
        if (n.entries[i].called && !f->is_public) {
            *link = f->next;
        } else {
            link = &f->next;
        }
    }
    lilac_arena_destroy(n.arena);
    *changed = n.changed;
    return !n.failed;
}
