/* simplify: folds, hoists and merges pure operations, so that later passes process fewer of them.
 *
 *     scf.for %i … {                              %r = tt.make_range {0, 1024}
 *       %r = tt.make_range {0, 1024}              scf.for %i … {
 *       %s = tt.splat %i                            %s = tt.splat %i
 *       %a = arith.addi %s, %r                      %a = arith.addi %s, %r
 *       …                                    →      …
 *     }                                           }
 *     scf.for %j … {                              scf.for %j … {
 *       %r2 = tt.make_range {0, 1024}               … uses %r
 *
 * One walk in program order treats each pure operation without regions:
 *   fold    integer constants, neutral elements and what ranges decide (apply_ranges.c),
 *           divisions to fewer bits (narrow_divisions.c), comparisons of sums (simplify_comparisons.c),
 *   hoist   to the outermost loop whose body defines no operand (it moves once),
 *   merge   with an earlier equal operation whose block is still open there. An open block encloses
 *           the operation, so the earlier operation dominates it.
 * A second walk from the end removes pure operations without uses.
 *
 * Values have a depth, that of the block that defines them; scopes[depth] are the open blocks.
 * Everything is O(1) for an operation (hash table for merging), so the pass is linear.
 */
#include "internal.h"

enum {
    COMPARISON_ROUNDS = 3, /* without a common term, in fewer bits, nothing more */
    OPERATION_VALUES = 9,  /* that an operation becomes at most, constants included */
    COMPARISON_VALUES = 2 * COMPARISON_ROUNDS * LILAC_MOST_NEW_OPERATIONS
};

typedef struct scope {
    uint64_t serial;      /* which block this is, among all that were ever open */
    uint32_t floor;       /* the outermost depth that hoisting reaches from here */
    uint32_t barrier;     /* the outermost depth with which merging may happen */
    uint32_t mark;        /* the conditions that narrow ranges in the block begin here */
    lilac_tile_op *owner; /* the operation whose region the block is in */
} scope;

typedef struct entry {
    lilac_tile_op *op;
    uint64_t hash, serial;
    uint32_t depth;
    struct entry *next;
} entry;

typedef struct simplifier {
    lilac_tile_module *module;
    lilac_arena *arena; /* of the pass */
    uint32_t values, operations, comparisons, deepest;
    uint32_t *depth;     /* of a value, by id */
    lilac_range_walk at; /* the ranges, also by id */
    scope *scopes;
    uint64_t serial;
    entry **table;
    uint64_t table_mask;
    bool changed;
} simplifier;

/* ---- equality --------------------------------------------------------------------------- */

static bool has_traits(const lilac_tile_op *op, uint32_t traits) {
    return (lilac_tile_op_info_get(op->code)->traits & traits) == traits;
}

static bool is_same(const lilac_tile_op *a, const lilac_tile_op *b) {
    if (a->code != b->code || a->operand_count != b->operand_count ||
        a->result_count != b->result_count) {
        return false;
    }
    bool same = true, swapped = has_traits(a, LILAC_TILE_COMMUTATIVE) && a->operand_count == 2;
    if (swapped) {
        swapped = a->operands[0].value == b->operands[1].value &&
                  a->operands[1].value == b->operands[0].value;
    }
    for (uint32_t i = 0; i < a->operand_count; i++) {
        same = same && a->operands[i].value == b->operands[i].value;
    }
    if (!same && !swapped) {
        return false;
    }
    for (uint32_t i = 0; i < a->result_count; i++) {
        if (a->results[i].type != b->results[i].type) {
            return false;
        }
    }
    return lilac_tile_attributes_equal(&a->attributes, &b->attributes);
}

static uint64_t hash_of(const lilac_tile_op *op) {
    uint64_t hash = lilac_hash_word(op->code, op->operand_count);
    if (has_traits(op, LILAC_TILE_COMMUTATIVE) && op->operand_count == 2) {
        uint64_t a = op->operands[0].value->id, b = op->operands[1].value->id;
        hash = lilac_hash_word(a < b ? a << 32 | b : b << 32 | a, hash);
    } else {
        for (uint32_t i = 0; i < op->operand_count; i++) {
            hash = lilac_hash_word(op->operands[i].value->id, hash);
        }
    }
    for (uint32_t i = 0; i < op->attributes.count; i++) {
        const lilac_tile_attribute *attribute = &op->attributes.list[i];
        hash = lilac_hash_word((uint64_t)attribute->integer, hash);
        if (attribute->kind == LILAC_TILE_ATTR_DENSE) {
            hash = lilac_hash(attribute->integers, attribute->count * sizeof(int64_t), hash);
        }
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        hash = lilac_hash_word(op->results[i].type->id, hash);
    }
    return hash;
}

/* ---- folding ---------------------------------------------------------------------------- */

static void move_before(lilac_tile_op *place, lilac_tile_op *op) {
    lilac_tile_detach(op);
    lilac_tile_insert_before(place, op);
}

static void replace(simplifier *pass, lilac_tile_op *op, lilac_tile_value *with) {
    lilac_tile_replace_uses(&op->results[0], with);
    lilac_tile_remove(op);
    pass->changed = true;
}

static const uint8_t neutral_of[LILAC_TILE_OP_COUNT] = {
#define INTEGER(code, neutral, narrow, compute, instruction, bits, meaning)                        \
    [LILAC_TILE_OP_##code] = LILAC_TILE_NEUTRAL_##neutral,
#include <lilac/operations.def>
};

/* The operand that equals the result because the other operand is neutral: x + 0, x * 1, x << 0,
 * p + 0 …; also the operand of a conversion, which the caller uses only if the types are equal.
 * NULL: none. */
static lilac_tile_value *neutral(const lilac_tile_op *op) {
    if (op->code == LILAC_TILE_OP_TTG_CONVERT_LAYOUT) {
        return lilac_tile_movement_of(op) == LILAC_TILE_MOVEMENT_ANY ? op->operands[0].value : NULL;
    }
    if (op->operand_count != 2 || op->result_count != 1) {
        return NULL;
    }
    if (neutral_of[op->code] == LILAC_TILE_NEUTRAL_NONE) {
        return NULL;
    }
    int64_t unit = neutral_of[op->code] == LILAC_TILE_NEUTRAL_ONE;
    int64_t value;
    if (lilac_tile_constant(op->operands[1].value, &value) && value == unit) {
        return op->operands[0].value;
    }
    if (has_traits(op, LILAC_TILE_COMMUTATIVE) &&
        lilac_tile_constant(op->operands[0].value, &value) && value == unit) {
        return op->operands[1].value;
    }
    return NULL;
}

/* Replaces an operation by a constant, all of whose elements are `value`. */
static lilac_tile_op *fold_to_constant(simplifier *pass, lilac_tile_op *op, int64_t value,
                                       uint32_t depth) {
    const lilac_tile_type *type = op->results[0].type;
    lilac_tile_op *made = lilac_engine_make_constant(pass->module, op, type, value);
    made->results[0].name = op->results[0].name;
    made->results[0].id = pass->values++;
    pass->depth[made->results[0].id] = depth;
    replace(pass, op, &made->results[0]);
    return made;
}

/* Folds an operation. Returns the operation itself, the constant that replaces it, or NULL if an
 * operand replaces it. */
static lilac_tile_op *fold(simplifier *pass, lilac_tile_op *op, uint32_t depth) {
    int64_t value;
    pass->changed |= lilac_engine_recognise_extreme(op);
    lilac_range_result found =
        lilac_engine_apply_ranges(op, pass->at.ranges); /* it may be unsigned */
    pass->changed |= found.changed;
    lilac_tile_value *same = neutral(op);
    if (same == NULL && op->code == LILAC_TILE_OP_ARITH_SELECT &&
        lilac_tile_constant(op->operands[0].value, &value)) {
        same = op->operands[value != 0 ? 1 : 2].value;
    }
    if (same != NULL && same->type == op->results[0].type) {
        replace(pass, op, same);
        return NULL;
    }
    if (lilac_engine_fold_constant(op, &value)) {
        return fold_to_constant(pass, op, value, depth);
    }
    if (found.same != NULL && found.same->type == op->results[0].type) {
        replace(pass, op, found.same);
        return NULL;
    }
    return found.constant ? fold_to_constant(pass, op, found.value, depth) : op;
}

/* ---- hoisting and merging --------------------------------------------------------------- */

/* May the operation run where the program would not run it? A division by a possible zero may
 * not. */
static bool may_run_early(const lilac_tile_op *op) {
    int64_t divisor;
    return !lilac_tile_divides(op->code) ||
           (lilac_tile_constant(op->operands[1].value, &divisor) && divisor != 0 && divisor != -1);
}

static uint32_t hoist(simplifier *pass, lilac_tile_op *op, uint32_t depth) {
    uint32_t target = pass->scopes[depth].floor;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        uint32_t needed = pass->depth[op->operands[i].value->id];
        target = needed > target ? needed : target;
    }
    if (target < depth && may_run_early(op)) {
        move_before(pass->scopes[target + 1].owner, op);
        lilac_range_expose(&pass->at, op, pass->scopes[target + 1].mark);
        pass->changed = true;
        depth = target;
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        pass->depth[op->results[i].id] = depth;
    }
    return depth;
}

/* `depth`: that of the operation; `from`: that of the walk. */
static void merge(simplifier *pass, lilac_tile_op *op, uint32_t depth, uint32_t from) {
    uint64_t hash = hash_of(op);
    entry **head = &pass->table[hash & pass->table_mask];
    for (entry *old = *head; old != NULL; old = old->next) {
        if (old->hash != hash || !is_same(old->op, op)) {
            continue;
        }
        bool open = old->depth <= depth && pass->scopes[old->depth].serial == old->serial;
        if (open && old->depth >= pass->scopes[from].barrier) {
            for (uint32_t i = 0; i < op->result_count; i++) {
                lilac_tile_replace_uses(&op->results[i], &old->op->results[i]);
            }
            lilac_tile_remove(op);
            pass->changed = true;
        } else if (!open) {
            old->op = op;
            old->depth = depth;
            old->serial = pass->scopes[depth].serial;
        } else {
            continue;
        }
        return;
    }
    entry *made = lilac_arena_new(pass->arena, entry);
    *made = (entry){op, hash, pass->scopes[depth].serial, depth, *head};
    *head = made;
}

static bool is_mergeable(const lilac_tile_op *op) {
    return has_traits(op, LILAC_TILE_PURE) && op->region_count == 0 && op->result_count > 0;
}

static void open_block(simplifier *pass, const lilac_tile_block *block, lilac_tile_op *owner,
                       uint32_t depth) {
    scope *here = &pass->scopes[depth];
    here->serial = ++pass->serial;
    here->owner = owner;
    here->floor = depth;
    here->barrier = 0;
    for (uint32_t i = 0; i < block->argument_count; i++) {
        pass->depth[block->arguments[i]->id] = depth;
    }
    if (owner == NULL) {
        return;
    }
    here->barrier = pass->scopes[depth - 1].barrier;
    bool structured = owner->code == LILAC_TILE_OP_SCF_FOR || owner->code == LILAC_TILE_OP_SCF_IF ||
                      owner->code == LILAC_TILE_OP_SCF_WHILE;
    if (!structured) { /* no merging out of a region that runs once for each element */
        here->barrier = depth;
    } else if (owner->code != LILAC_TILE_OP_SCF_IF && block->next == NULL &&
               !lilac_tile_keeps_invariants(owner)) {
        here->floor = pass->scopes[depth - 1].floor;
    }
}

/* Numbers the new operations. */
static void number(simplifier *pass, lilac_tile_op *const *made, uint32_t count, uint32_t depth) {
    pass->changed = true;
    for (uint32_t i = 0; i < count; i++) {
        made[i]->results[0].id = pass->values++;
        pass->depth[made[i]->results[0].id] = depth;
        lilac_range_note(pass->at.ranges, made[i]);
    }
}

/* Hoists and merges folded operations; NULL: an operand replaces it. */
static void place(simplifier *pass, lilac_tile_op *const *made, uint32_t count, uint32_t depth) {
    for (uint32_t i = 0; i < count; i++) {
        if (made[i] != NULL) {
            lilac_range_note(pass->at.ranges, made[i]);
            merge(pass, made[i], hoist(pass, made[i], depth), depth);
        }
    }
}

/* Folds new operations, one after the other: each may use those before it. */
static void add(simplifier *pass, lilac_tile_op **made, uint32_t count, uint32_t depth) {
    number(pass, made, count, depth);
    for (uint32_t i = 0; i < count; i++) {
        made[i] = fold(pass, made[i], depth);
        place(pass, &made[i], 1, depth);
    }
}

static void simplify_comparison(simplifier *pass, lilac_tile_op *op, uint32_t depth) {
    lilac_tile_op *made[LILAC_MOST_NEW_OPERATIONS];
    uint32_t count;
    for (uint32_t i = 0;
         i < COMPARISON_ROUNDS &&
         lilac_engine_simplify_comparison(pass->module, op, pass->at.ranges, made, &count);
         i++) {
        add(pass, made, count, depth);
    }
}

/* Folds, hoists and merges a pure operation. */
static void simplify_op(simplifier *pass, lilac_tile_op *op, uint32_t depth) {
    lilac_tile_op *made[LILAC_MOST_NEW_OPERATIONS] = {fold(pass, op, depth)};
    uint32_t count = 1;
    if (made[0] != NULL &&
        lilac_engine_narrow(pass->module, made[0], pass->at.ranges, made, &count)) {
        number(pass, made, count, depth);
        for (uint32_t i = 0; i < count; i++) {
            made[i] = fold(pass, made[i], depth);
        }
    } else if (made[0] != NULL && (made[0]->code == LILAC_TILE_OP_ARITH_CMPI ||
                                   made[0]->code == LILAC_TILE_OP_ARITH_ANDI)) {
        simplify_comparison(pass, made[0], depth);
        made[0] = fold(pass, made[0], depth);
    }
    place(pass, made, count, depth);
}

static void walk(simplifier *pass, lilac_tile_region *region, uint32_t depth) {
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        open_block(pass, block, region->parent, depth);
        pass->scopes[depth].mark = lilac_range_enter(&pass->at, region->parent, block);
        if (region->first->next != NULL) { /* several blocks: not a plain loop body */
            pass->scopes[depth].floor = depth;
        }
        for (lilac_tile_op *op = block->first, *next; op != NULL; op = next) {
            next = op->next;
            for (uint32_t i = 0; i < op->result_count; i++) {
                pass->depth[op->results[i].id] = depth;
            }
            for (uint32_t r = 0; r < op->region_count; r++) {
                walk(pass, op->regions[r], depth + 1);
            }
            if (op->region_count > 0) {
                lilac_range_leave(&pass->at, op);
            } else if (is_mergeable(op)) {
                simplify_op(pass, op, depth);
            } else {
                lilac_range_note(pass->at.ranges, op);
                lilac_range_pass(&pass->at, op);
            }
        }
        lilac_range_close(&pass->at, region->parent, block, pass->scopes[depth].mark);
    }
}

/* ---- dead code -------------------------------------------------------------------------- */

static bool is_dead(const lilac_tile_op *op) {
    if (!has_traits(op, LILAC_TILE_PURE) || op->result_count == 0) {
        return false;
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        if (op->results[i].uses != NULL) {
            return false;
        }
    }
    return true;
}

static void empty(lilac_tile_op *op) {
    for (uint32_t r = 0; r < op->region_count; r++) {
        for (lilac_tile_block *block = op->regions[r]->first; block != NULL; block = block->next) {
            for (lilac_tile_op *last = block->last, *previous; last != NULL; last = previous) {
                previous = last->previous;
                empty(last);
                lilac_tile_remove(last);
            }
        }
    }
}

static void sweep_region(simplifier *pass, lilac_tile_region *region);

static void sweep_block(simplifier *pass, lilac_tile_block *block) {
    for (lilac_tile_op *op = block->last, *previous; op != NULL; op = previous) {
        previous = op->previous;
        bool branches = op->region_count > 0 && op->regions[0]->first != NULL &&
                        op->regions[0]->first->next != NULL;
        if (is_dead(op) && !branches) {
            empty(op);
            lilac_tile_remove(op);
            pass->changed = true;
            continue;
        }
        for (uint32_t r = 0; r < op->region_count; r++) {
            sweep_region(pass, op->regions[r]);
        }
    }
}

/* Later blocks first, so that users are removed before the definitions. */
static void sweep_region(simplifier *pass, lilac_tile_region *region) {
    uint32_t count = 0, i = 0;
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        count++;
    }
    if (count == 1) {
        sweep_block(pass, region->first);
        return;
    }
    lilac_tile_block **blocks = lilac_arena_array(pass->arena, lilac_tile_block *, count);
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        blocks[i++] = block;
    }
    while (count > 0) {
        sweep_block(pass, blocks[--count]);
    }
}

/* ---- the pass --------------------------------------------------------------------------- */

static void measure(simplifier *pass, const lilac_tile_region *region, uint32_t depth) {
    pass->deepest = depth > pass->deepest ? depth : pass->deepest;
    for (const lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            pass->operations++;
            pass->comparisons += op->code == LILAC_TILE_OP_ARITH_CMPI;
            for (uint32_t r = 0; r < op->region_count; r++) {
                measure(pass, op->regions[r], depth + 1);
            }
        }
    }
}

static void simplify_function(lilac_tile_function *function, bool *changed) {
    simplifier pass = {.module = function->module, .arena = lilac_arena_create()};
    lilac_tile_number(function);
    measure(&pass, function->body, 0);
    uint64_t buckets = 16;
    while (buckets < 2 * (uint64_t)pass.operations) {
        buckets *= 2;
    }
    pass.values = function->value_count;
    const uint32_t most_values =
        pass.values + OPERATION_VALUES * pass.operations + COMPARISON_VALUES * pass.comparisons;
    pass.depth = lilac_arena_array(pass.arena, uint32_t, most_values);
    pass.scopes = lilac_arena_array(pass.arena, scope, pass.deepest + 1);
    pass.table = lilac_arena_array(pass.arena, entry *, buckets);
    pass.table_mask = buckets - 1;
    lilac_range_walk_start(&pass.at, lilac_arena_array(pass.arena, lilac_range, most_values),
                           function);
    walk(&pass, function->body, 0);
    lilac_range_walk_end(&pass.at);
    sweep_region(&pass, function->body);
    lilac_tile_number(function);
    *changed = *changed || pass.changed;
    lilac_arena_destroy(pass.arena);
}

bool lilac_engine_simplify(lilac_tile_module *module, const lilac_target *target, bool *changed) {
    (void)target;
    *changed = false;
    for (lilac_tile_function *function = module->functions; function != NULL;
         function = function->next) {
        if (function->body != NULL) {
            simplify_function(function, changed);
        }
    }
    return true;
}
