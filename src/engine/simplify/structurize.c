/* structurize: branches between blocks become conditionals. A region of several blocks, as early
 * returns produce it, becomes one block with scf.if inside. Branches must go forward; loops are scf
 * operations already.
 *
 * The blocks that a block dominates are placed after its operations or inside of conditionals. A
 * block with one predecessor is placed in the branch of the conditional that leads to it. A block
 * with several predecessors is placed after the conditionals that its immediate dominator became:
 *
 *        a                a
 *       / \               target, x = if c { b; yield … } else { yield … }
 *      b   |     ⟶        r = if target == m { m(x) } else { … }
 *     / \ /               …
 *    n   m
 *
 * The outcome of a piece of code is the list of targets that control may reach next, each with the
 * values of its arguments, and, if there are several targets, the number of the target as a value.
 * Leaving the region is a further target with the returned values. An outcome with one target
 * needs no number, so structured programs keep their form.
 *
 * Each operation is moved once. The results of a conditional are the values that one of its
 * branches defines. */
#include "internal.h"

#include <lilac/tile_loops.h>

typedef struct node {
    lilac_tile_block *block;
    uint32_t ways_in; /* edges from reachable blocks */
    uint32_t order;   /* in reverse postorder; UNREACHED */
    uint32_t dominator;
    uint32_t meets,
        next_meet; /* immediately dominated blocks with several predecessors, in order */
} node;

#define UNREACHED UINT32_MAX

typedef struct structuring {
    lilac_tile_module *module;
    lilac_arena *arena;
    lilac_tile_region *region;
    uint32_t count;
    node *nodes;      /* in reverse postorder, after order_blocks */
    uint32_t reached; /* the number of reachable nodes */
    uint32_t deepest; /* the deepest nesting of conditionals allowed */
    lilac_name value_name, predicate_name;
    lilac_tile_op leave; /* a copy of the last operation that leaves the region */
    bool leaves;
    bool failed;
} structuring;

typedef struct way {
    uint32_t target; /* the number of a node; the count of nodes stands for leaving the region */
    uint32_t count;
    lilac_tile_value **values;
} way;

typedef struct outcome {
    uint32_t count;
    way *ways;                  /* by target, ascending */
    lilac_tile_value *selector; /* the target's number when there are several */
} outcome;

static void refuse(structuring *s, const lilac_tile_op *op, const char *why) {
    if (!s->failed) {
        lilac_error(s->module->context, lilac_tile_position(op), op->location,
                    "unsupported-control-flow", "'%s' cannot be compiled: %s",
                    lilac_tile_op_info_get(op->code)->name, why);
    }
    s->failed = true;
}

/* ---- the graph --------------------------------------------------------------------------- */

static uint32_t number_of(const structuring *s, const lilac_tile_block *block) {
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->nodes[i].block == block) {
            return i;
        }
    }
    return s->count;
}

/* Computes the postorder from the entry with an explicit stack. A branch to a block on the stack
 * is a loop. */
static void order_blocks(structuring *s) {
    typedef struct frame {
        uint32_t at, next;
    } frame;
    frame *stack = lilac_arena_array(s->arena, frame, s->count);
    bool *open = lilac_arena_array(s->arena, bool, s->count);
    uint32_t *post = lilac_arena_array(s->arena, uint32_t, s->count);
    bool *seen = lilac_arena_array(s->arena, bool, s->count);
    uint32_t depth = 1, done = 0;
    stack[0] = (frame){0, 0};
    seen[0] = open[0] = true;
    while (depth > 0) {
        frame *top = &stack[depth - 1];
        const lilac_tile_op *end = s->nodes[top->at].block->last;
        if (end != NULL && top->next < end->successor_count) {
            uint32_t to = number_of(s, end->successors[top->next++]);
            if (to == s->count || open[to]) {
                refuse(s, end, "it branches backward; only forward branches are supported");
                return;
            }
            if (!seen[to]) {
                seen[to] = open[to] = true;
                stack[depth++] = (frame){to, 0};
            }
        } else {
            open[top->at] = false;
            post[done++] = top->at;
            depth--;
        }
    }
    node *sorted = lilac_arena_array(s->arena, node, s->count);
    for (uint32_t i = 0; i < done; i++) {
        sorted[i].block = s->nodes[post[done - 1 - i]].block;
    }
    uint32_t rest = done;
    for (uint32_t i = 0; i < s->count; i++) {
        if (!seen[i]) {
            sorted[rest++].block = s->nodes[i].block;
        }
    }
    s->nodes = sorted;
    s->reached = done;
}

/* Without loops, one pass in reverse postorder finds every immediate dominator. */
static void find_dominators(structuring *s) {
    for (uint32_t i = 0; i < s->count; i++) {
        s->nodes[i].dominator = s->nodes[i].meets = s->nodes[i].next_meet = UNREACHED;
    }
    s->nodes[0].dominator = 0;
    for (uint32_t i = 0; i < s->reached; i++) {
        const lilac_tile_op *end = s->nodes[i].block->last;
        for (uint32_t k = 0; end != NULL && k < end->successor_count; k++) {
            node *to = &s->nodes[number_of(s, end->successors[k])];
            to->ways_in++;
            uint32_t a = to->dominator, b = i;
            while (a != UNREACHED && a != b) {
                uint32_t *later = a > b ? &a : &b;
                *later = s->nodes[*later].dominator;
            }
            to->dominator = b;
        }
    }
    for (uint32_t i = s->reached; i-- > 1;) {
        if (s->nodes[i].ways_in > 1) {
            node *over = &s->nodes[s->nodes[i].dominator];
            s->nodes[i].next_meet = over->meets;
            over->meets = i;
        }
    }
}

/* ---- building ---------------------------------------------------------------------------- */

typedef struct operand_list {
    uint32_t count;
    lilac_tile_value *const *values;
} operand_list;

static const operand_list no_operands = {0, NULL};

/* Appends an operation to a block, at the source position of `at`. `type`: of its result; NULL: it
 * has none. */
static lilac_tile_value *build(const structuring *s, lilac_tile_block *into,
                               const lilac_tile_op *at, lilac_tile_opcode code,
                               const operand_list *operands, const lilac_tile_type *type) {
    lilac_tile_op *op = lilac_tile_op_create(s->module, code, operands->count, operands->values,
                                             type != NULL, &type, 0, at->location);
    op->position = at->position;
    lilac_tile_append(into, op);
    return op->results;
}

static lilac_tile_value *build_number(const structuring *s, lilac_tile_block *into,
                                      const lilac_tile_op *at, uint32_t number) {
    const lilac_tile_type *type = lilac_tile_scalar(s->module, LILAC_I32);
    lilac_tile_attribute value = {.kind = LILAC_TILE_ATTR_INTEGER,
                                  .name = s->value_name,
                                  .type = type,
                                  .integer = (int64_t)number};
    lilac_tile_value *constant =
        build(s, into, at, LILAC_TILE_OP_ARITH_CONSTANT, &no_operands, type);
    lilac_tile_set_attribute(s->module, &constant->op->attributes, &value);
    return constant;
}

static lilac_tile_value *build_is(const structuring *s, lilac_tile_block *into,
                                  const lilac_tile_op *at, lilac_tile_value *selector,
                                  uint32_t number) {
    lilac_tile_value *operands[2] = {selector, build_number(s, into, at, number)};
    lilac_tile_attribute predicate = {.kind = LILAC_TILE_ATTR_KEYWORD,
                                      .name = s->predicate_name,
                                      .text = lilac_intern_string(s->module->context, "eq")};
    lilac_tile_value *equal =
        build(s, into, at, LILAC_TILE_OP_ARITH_CMPI, &(operand_list){2, operands},
              lilac_tile_scalar(s->module, LILAC_I1));
    lilac_tile_set_attribute(s->module, &equal->op->attributes, &predicate);
    return equal;
}

/* Moves all operations but the terminator to the end of another block. */
static void move_operations(lilac_tile_block *from, lilac_tile_block *into) {
    lilac_tile_op *end = from->last;
    while (from->first != end) {
        lilac_tile_op *op = from->first;
        lilac_tile_detach(op);
        lilac_tile_append(into, op);
    }
}

/* ---- outcomes ---------------------------------------------------------------------------- */

static const way *find_way(const outcome *o, uint32_t target) {
    for (uint32_t i = 0; i < o->count; i++) {
        if (o->ways[i].target == target) {
            return &o->ways[i];
        }
    }
    return NULL;
}

static outcome single(structuring *s, uint32_t target, const lilac_tile_op *op, uint32_t first,
                      uint32_t count) {
    outcome o = {.count = 1, .ways = lilac_arena_new(s->arena, way)};
    o.ways->target = target;
    o.ways->count = count;
    o.ways->values = lilac_arena_array(s->arena, lilac_tile_value *, count);
    for (uint32_t i = 0; i < count; i++) {
        o.ways->values[i] = op->operands[first + i].value;
    }
    return o;
}

/* The outcome without one of its targets. */
static outcome without(structuring *s, const outcome *o, uint32_t target) {
    outcome rest = {.selector = o->count > 2 ? o->selector : NULL};
    rest.ways = lilac_arena_array(s->arena, way, o->count);
    for (uint32_t i = 0; i < o->count; i++) {
        if (o->ways[i].target != target) {
            rest.ways[rest.count++] = o->ways[i];
        }
    }
    return rest;
}

/* A conditional whose results do not exist yet. */
typedef struct conditional {
    lilac_tile_op *op;
    lilac_tile_block *sides[2];
    uint32_t count; /* of results */
    lilac_tile_value **yields[2];
    lilac_tile_value ***users; /* of each result: the variable that it is stored in */
} conditional;

static conditional open_conditional(structuring *s, lilac_tile_block *into, const lilac_tile_op *at,
                                    lilac_tile_value *condition) {
    conditional c = {0};
    c.op = lilac_tile_op_create(s->module, LILAC_TILE_OP_SCF_IF, 1, &condition, 0, NULL, 2,
                                at->location);
    c.op->position = at->position;
    lilac_tile_append(into, c.op);
    for (uint32_t i = 0; i < 2; i++) {
        c.sides[i] = lilac_tile_block_create(s->module, c.op->regions[i]);
    }
    return c;
}

static uint32_t values_of(const outcome *o) {
    uint32_t count = 1; /* the selector */
    for (uint32_t i = 0; i < o->count; i++) {
        count += o->ways[i].count;
    }
    return count;
}

/* Selects `a` or `b` by the branch taken; NULL: that branch has no such value. A value from outside
 * needs no result if both branches have it, or only one branch has a value. end_sides stores the
 * results in *value. */
static void select_value(structuring *s, conditional *c, lilac_tile_value *a, lilac_tile_value *b,
                         const lilac_tile_op *at, lilac_tile_value **value) {
    lilac_tile_value *values[2] = {a, b};
    *value = a != NULL ? a : b;
    if ((a == b || b == NULL || a == NULL) && !lilac_tile_is_inside(*value, c->op)) {
        return;
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (values[i] == NULL) {
            values[i] = build(s, c->sides[i], at, LILAC_TILE_OP_UB_POISON, &no_operands,
                              values[1 - i]->type);
        }
        c->yields[i][c->count] = values[i];
    }
    c->users[c->count++] = value;
}

/* Ends both sides with the values that they yield. An empty side without values is removed. */
static void end_sides(structuring *s, conditional *c, const lilac_tile_op *at) {
    for (uint32_t i = 0; i < 2; i++) {
        if (i == 1 && c->count == 0 && c->sides[1]->first == NULL) {
            c->op->regions[1]->first = NULL;
        } else {
            (void)build(s, c->sides[i], at, LILAC_TILE_OP_SCF_YIELD, &no_operands, NULL);
        }
    }
    if (c->count > 0) {
        lilac_tile_add_if_results(s->module, c->op, c->count, c->yields[0], c->yields[1]);
    }
    for (uint32_t i = 0; i < c->count; i++) {
        *c->users[i] = &c->op->results[i];
    }
}

static outcome close_conditional(structuring *s, conditional *c, const outcome *a, const outcome *b,
                                 const lilac_tile_op *at) {
    uint32_t most = values_of(a) + values_of(b);
    c->users = lilac_arena_array(s->arena, lilac_tile_value **, most);
    c->yields[0] = lilac_arena_array(s->arena, lilac_tile_value *, most);
    c->yields[1] = lilac_arena_array(s->arena, lilac_tile_value *, most);
    outcome o = {.ways = lilac_arena_array(s->arena, way, a->count + b->count)};
    for (uint32_t i = 0, j = 0; i < a->count || j < b->count;) {
        uint32_t left = i < a->count ? a->ways[i].target : UNREACHED;
        uint32_t right = j < b->count ? b->ways[j].target : UNREACHED;
        uint32_t target = left < right ? left : right;
        const way *one = left == target ? &a->ways[i++] : NULL;
        const way *other = right == target ? &b->ways[j++] : NULL;
        way *both = &o.ways[o.count++];
        both->target = target;
        both->count = one != NULL ? one->count : other->count;
        both->values = lilac_arena_array(s->arena, lilac_tile_value *, both->count);
        for (uint32_t k = 0; k < both->count; k++) {
            select_value(s, c, one != NULL ? one->values[k] : NULL,
                         other != NULL ? other->values[k] : NULL, at, &both->values[k]);
        }
    }
    if (o.count > 1) {
        lilac_tile_value *numbers[2] = {a->selector, b->selector};
        for (uint32_t i = 0; i < 2; i++) {
            const outcome *side = i == 0 ? a : b;
            if (numbers[i] == NULL) {
                numbers[i] = build_number(s, c->sides[i], at, side->ways[0].target);
            }
        }
        select_value(s, c, numbers[0], numbers[1], at, &o.selector);
    }
    end_sides(s, c, at);
    return o;
}

/* ---- blocks ------------------------------------------------------------------------------ */

static outcome put_block(structuring *s, uint32_t number, lilac_tile_block *into, uint32_t depth);

static void bind(const node *n, const way *w) {
    for (uint32_t i = 0; i < n->block->argument_count && i < w->count; i++) {
        lilac_tile_replace_uses(n->block->arguments[i], w->values[i]);
    }
}

/* Follows an edge. A successor without other predecessors is placed here. */
static outcome put_edge(structuring *s, const lilac_tile_op *end, uint32_t successor,
                        lilac_tile_block *into, uint32_t depth) {
    uint32_t target = number_of(s, end->successors[successor]);
    uint32_t count = end->successors[successor]->argument_count;
    uint32_t first = lilac_tile_branch_first(end, successor);
    if (first + count > end->operand_count) {
        refuse(s, end, "the numbers of its operands and of the arguments of its successors differ");
        return (outcome){0};
    }
    outcome o = single(s, target, end, first, count);
    if (s->nodes[target].ways_in > 1) {
        return o;
    }
    bind(&s->nodes[target], &o.ways[0]);
    return put_block(s, target, into, depth);
}

static outcome put_end(structuring *s, lilac_tile_op *end, lilac_tile_block *into, uint32_t depth) {
    if (end->code == LILAC_TILE_OP_CF_BR) {
        return put_edge(s, end, 0, into, depth);
    }
    if (end->code != LILAC_TILE_OP_CF_COND_BR) {
        s->leave = *end;
        s->leaves = true;
        return single(s, s->count, end, 0, end->operand_count);
    }
    if (depth >= s->deepest) {
        refuse(s, end, "conditions are nested too deep");
        return (outcome){0};
    }
    conditional c = open_conditional(s, into, end, end->operands[0].value);
    outcome yes = put_edge(s, end, 0, c.sides[0], depth + 1);
    outcome no = s->failed ? yes : put_edge(s, end, 1, c.sides[1], depth + 1);
    return s->failed ? no : close_conditional(s, &c, &yes, &no, end);
}

/* Places a block with several predecessors after the code that leads to it. */
static outcome put_meet(structuring *s, uint32_t number, const outcome *before,
                        lilac_tile_block *into, const lilac_tile_op *at, uint32_t depth) {
    const way *here = find_way(before, number);
    if (here == NULL) {
        return *before;
    }
    if (before->count == 1) {
        bind(&s->nodes[number], here);
        return put_block(s, number, into, depth);
    }
    if (depth >= s->deepest) {
        refuse(s, at, "conditions are nested too deep");
        return *before;
    }
    conditional c = open_conditional(s, into, at, build_is(s, into, at, before->selector, number));
    bind(&s->nodes[number], here);
    outcome yes = put_block(s, number, c.sides[0], depth + 1);
    outcome no = without(s, before, number);
    return s->failed ? no : close_conditional(s, &c, &yes, &no, at);
}

static outcome put_block(structuring *s, uint32_t number, lilac_tile_block *into, uint32_t depth) {
    lilac_tile_block *block = s->nodes[number].block;
    lilac_tile_op *end = block->last;
    if (end == NULL) {
        s->failed = true;
        return (outcome){0};
    }
    if (block != into) {
        move_operations(block, into);
    }
    /* The terminator is detached, so that operations can be appended; it keeps its operands. */
    lilac_tile_detach(end);
    outcome o = put_end(s, end, into, depth);
    for (uint32_t m = s->nodes[number].meets; m != UNREACHED && !s->failed;
         m = s->nodes[m].next_meet) {
        o = put_meet(s, m, &o, into, end, depth);
    }
    lilac_tile_remove(end);
    return o;
}

/* Empties an unreachable block. */
static void drop_block(structuring *s, lilac_tile_block *block) {
    while (block->last != NULL) {
        lilac_tile_op *op = block->last;
        for (uint32_t i = 0; i < op->result_count; i++) {
            if (op->results[i].uses != NULL) {
                const lilac_tile_type *type = op->results[i].type;
                lilac_tile_op *any = lilac_tile_op_create(s->module, LILAC_TILE_OP_UB_POISON, 0,
                                                          NULL, 1, &type, 0, op->location);
                lilac_tile_replace_uses(&op->results[i], any->results);
            }
        }
        lilac_tile_remove(op);
    }
}

static void structure_region(structuring *s) {
    s->count = s->reached = 0;
    s->leaves = false;
    for (lilac_tile_block *b = s->region->first; b != NULL; b = b->next) {
        s->count++;
    }
    s->nodes = lilac_arena_array(s->arena, node, s->count);
    uint32_t i = 0;
    for (lilac_tile_block *b = s->region->first; b != NULL; b = b->next) {
        s->nodes[i++].block = b;
    }
    order_blocks(s);
    if (s->failed) {
        return;
    }
    for (i = s->reached; i < s->count; i++) {
        drop_block(s, s->nodes[i].block);
    }
    find_dominators(s);
    lilac_tile_block *entry = s->nodes[0].block;
    entry->next = NULL;
    outcome o = put_block(s, 0, entry, 0);
    if (s->failed || !s->leaves || o.count != 1) {
        s->failed = true;
        return;
    }
    const operand_list returned = {o.ways[0].count, o.ways[0].values};
    (void)build(s, entry, &s->leave, s->leave.code, &returned, NULL);
}

/* ---- the pass ---------------------------------------------------------------------------- */

typedef struct visit {
    structuring s;
    bool changed;
} visit;

static void visit_region(visit *v, lilac_tile_region *region);

static void visit_operation(void *data, lilac_tile_op *op) {
    visit *v = (visit *)data;
    for (uint32_t i = 0; i < op->region_count; i++) {
        if (op->regions[i]->first != NULL && op->regions[i]->first->next != NULL) {
            visit_region(v, op->regions[i]);
        }
    }
}

static void visit_region(visit *v, lilac_tile_region *region) {
    v->s.region = region;
    if (!v->s.failed) {
        structure_region(&v->s);
        v->changed = true;
    }
}

bool lilac_engine_structurize(lilac_tile_module *module, const lilac_target *target,
                              bool *changed) {
    (void)target;
    visit v = {.s = {.module = module}};
    v.s.arena = lilac_arena_create();
    v.s.deepest = lilac_nesting_limit() / 2;
    v.s.value_name = lilac_intern_string(module->context, "value");
    v.s.predicate_name = lilac_intern_string(module->context, "predicate");
    for (lilac_tile_function *f = module->functions; f != NULL && !v.s.failed; f = f->next) {
        if (f->body == NULL) {
            continue;
        }
        lilac_tile_walk(f->body, visit_operation, &v);
        if (f->body->first != NULL && f->body->first->next != NULL) {
            visit_region(&v, f->body);
        }
    }
    lilac_arena_destroy(v.s.arena);
    *changed = v.changed;
    return !v.s.failed;
}
