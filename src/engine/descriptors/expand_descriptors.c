/* expand_descriptors: every tensor descriptor becomes its parts, and every access through one an
 * access through pointers (descriptor_accesses.c).
 *
 *     %d = tt.make_tensor_descriptor %p, [%m, %n], [%s, 1]        base %p, shape %m, %n, stride %s
 *     scf.for … {                                                 scf.for … {
 *       %v = tt.descriptor_load %d[%y, %x]                 →        %v = tt.load pointers, mask, other
 *     }                                                           }
 *
 *     tt.func @f(%d: !tt.tensordesc<tensor<8x16xf16>>)    →
 *     tt.func @f(%d: !tt.ptr<f16> {lilac.descriptor = …}, shape: i64, i64, strides: i64, i64, nan: i1)
 *
 * The parameters are those of Triton's launcher for a kernel without metadata about descriptors. The
 * last stride is a parameter that is not read: it is 1.
 *
 * Where control flow passes a descriptor on, it passes on the parts. Parts that never change then
 * leave the loops. A function where another operation than these uses a descriptor, or
 * where tensors have layouts, is not changed; a later pass refuses that operation. */
#include "descriptors/boxes.h"
#include "descriptors/descriptors.h"

#include <lilac/tile_loops.h>

typedef struct expansion {
    lilac_tile_module *module;
    lilac_tile_function *function;
    lilac_arena *arena;
    lilac_descriptor *known;   /* by value id: the parts of descriptors */
    lilac_axis_analysis facts; /* of the values before the pass */
    const bool *mapped;        /* by value id: descriptors of the kernel that become tensor maps */
    bool failed;
} expansion;

static bool is_descriptor(const lilac_tile_value *value) {
    return value->type->kind == LILAC_TILE_DESCRIPTOR;
}

static lilac_descriptor *parts_of(expansion *x, const lilac_tile_value *value) {
    return &x->known[value->id];
}

/* ---- which functions -------------------------------------------------------------------- */

/* The tensor of an access through a descriptor; NULL: another operation. */
static const lilac_tile_type *accessed_tensor(const lilac_tile_op *op) {
    switch (op->code) {
    case LILAC_TILE_OP_TT_DESCRIPTOR_LOAD:
    case LILAC_TILE_OP_TT_DESCRIPTOR_GATHER:
        return op->results[0].type;
    case LILAC_TILE_OP_TT_DESCRIPTOR_STORE:
    case LILAC_TILE_OP_TT_DESCRIPTOR_REDUCE:
        return lilac_tile_operand(op, 1)->type;
    case LILAC_TILE_OP_TT_DESCRIPTOR_SCATTER:
        return lilac_tile_operand(op, 3)->type;
    default:
        return NULL;
    }
}

typedef struct survey {
    uint32_t descriptors; /* values */
    bool other_uses;      /* some value is made or used by what the pass does not replace */
} survey;

static void look_at_use(survey *s, const lilac_tile_use *use) {
    const lilac_tile_type *tensor = accessed_tensor(use->op);
    const bool is_access = tensor != NULL && use->index == 0 && tensor->layout == NULL;
    const bool is_select = use->op->code == LILAC_TILE_OP_ARITH_SELECT;
    const bool is_phi = lilac_tile_receiver(use) != NULL && use->op->successor_count == 0;
    s->other_uses = s->other_uses || !(is_access || is_select || is_phi);
}

static void look_at_value(survey *s, const lilac_tile_value *value) {
    if (!is_descriptor(value)) {
        return;
    }
    const lilac_tile_type *block = value->type->element;
    s->descriptors++;
    s->other_uses = s->other_uses || block->rank == 0 || block->rank > DESCRIPTOR_MOST_RANK ||
                    lilac_tile_element(block)->kind != LILAC_TILE_SCALAR;
    for (const lilac_tile_use *use = value->uses; use != NULL; use = use->next) {
        look_at_use(s, use);
    }
}

static void look_at_op(void *data, lilac_tile_op *op) {
    survey *s = data;
    const bool makes = op->code == LILAC_TILE_OP_TT_MAKE_TENSOR_DESCRIPTOR ||
                       op->code == LILAC_TILE_OP_ARITH_SELECT ||
                       op->code == LILAC_TILE_OP_UB_POISON || lilac_tile_phi_count(op) > 0;
    for (uint32_t i = 0; i < op->result_count; i++) {
        look_at_value(s, &op->results[i]);
        s->other_uses = s->other_uses || (is_descriptor(&op->results[i]) && !makes);
    }
    for (uint32_t r = 0; r < op->region_count; r++) {
        for (const lilac_tile_block *b = op->regions[r]->first; b != NULL; b = b->next) {
            for (uint32_t i = 0; i < b->argument_count; i++) {
                look_at_value(s, b->arguments[i]);
                s->other_uses =
                    s->other_uses || (is_descriptor(b->arguments[i]) && !lilac_tile_is_loop(op));
            }
        }
    }
}

static bool is_expandable(const lilac_tile_function *function) {
    survey s = {0};
    for (uint32_t i = 0; i < function->parameter_count; i++) {
        look_at_value(&s, function->parameters[i]);
    }
    lilac_tile_walk(function->body, look_at_op, &s);
    return s.descriptors > 0 && !s.other_uses && function->body->first->next == NULL;
}

/* ---- operations that make descriptors --------------------------------------------------- */

/* The same value with a promise about its divisibility. */
static lilac_tile_value *promise(const lilac_emitter *e, lilac_tile_value *value, int64_t divisor) {
    const bool pointer = lilac_tile_is_pointer(value->type);
    lilac_tile_value *same = lilac_emit_unary(
        e, pointer ? LILAC_TILE_OP_TT_BITCAST : LILAC_TILE_OP_ARITH_BITCAST, value->type, value);
    lilac_emit_attribute(e, same->op, "tt.divisibility", divisor);
    return same;
}

static void expand_make(expansion *x, lilac_tile_op *op) {
    const lilac_emitter e = {x->module, op};
    lilac_descriptor *d = parts_of(x, &op->results[0]);
    const lilac_tile_type *block = d->block = op->results[0].type->element;
    const uint32_t rank = block->rank;
    const int64_t divisor = lilac_descriptor_unit(block);
    int64_t last = 0;
    if (!lilac_tile_constant(lilac_tile_operand(op, 2 * rank), &last) || last != 1) {
        lilac_error(x->module->context, lilac_tile_position(op), op->location,
                    "unsupported-descriptor",
                    "operand %u of 'tt.make_tensor_descriptor', the last stride, is not the "
                    "constant 1; the last dimension of a descriptor must be contiguous",
                    2 * rank);
        x->failed = true;
        return;
    }
    d->row_divisor = lilac_axis_facts_of(&x->facts, lilac_tile_operand(op, rank))->divisibility[0];
    d->parts[0] = promise(&e, lilac_tile_operand(op, 0), 16);
    for (uint32_t i = 1; i <= rank; i++) {
        d->parts[i] = lilac_emit_i64(&e, lilac_tile_operand(op, i));
    }
    for (uint32_t i = rank + 1; i < 2 * rank; i++) {
        d->parts[i] = promise(&e, lilac_tile_operand(op, i), divisor);
    }
    const bool nan = lilac_tile_find_integer(&op->attributes, "padding", 1) == 2;
    d->parts[2 * rank] = lilac_emit_integer(&e, lilac_tile_scalar(x->module, LILAC_I1), nan);
    d->map = x->mapped[op->results[0].id] ? &op->results[0] : NULL;
}

static void expand_select(expansion *x, lilac_tile_op *op) {
    const lilac_emitter e = {x->module, op};
    const lilac_descriptor *a = parts_of(x, lilac_tile_operand(op, 1));
    const lilac_descriptor *b = parts_of(x, lilac_tile_operand(op, 2));
    lilac_descriptor *d = parts_of(x, &op->results[0]);
    d->block = op->results[0].type->element;
    d->row_divisor = min_i64(a->row_divisor, b->row_divisor);
    for (uint32_t i = 0; i < lilac_descriptor_part_count(d->block); i++) {
        d->parts[i] = lilac_emit_select(&e, lilac_tile_operand(op, 0), a->parts[i], b->parts[i]);
    }
}

static lilac_tile_value *poison(const lilac_emitter *e, const lilac_tile_type *type) {
    return lilac_emit(e, LILAC_TILE_OP_UB_POISON, type, 0, NULL)->results;
}

static void set_poison(expansion *x, const lilac_emitter *e, const lilac_tile_type *block,
                       lilac_tile_value **parts) {
    const uint32_t count = lilac_descriptor_part_count(block);
    for (uint32_t i = 0; i < count; i++) {
        parts[i] = poison(e, lilac_descriptor_part_type(x->module, block, i, count));
    }
}

/* ---- control flow ----------------------------------------------------------------------- */

static void expand_region(expansion *x, lilac_tile_region *region);

/* Results keep their ids when others are added. */
typedef struct saved_ids {
    uint32_t count, *ids;
} saved_ids;

static saved_ids save_ids(expansion *x, const lilac_tile_op *op) {
    saved_ids s = {op->result_count, lilac_arena_array(x->arena, uint32_t, op->result_count)};
    for (uint32_t i = 0; i < s.count; i++) {
        s.ids[i] = op->results[i].id;
    }
    return s;
}

static void restore_ids(const saved_ids *s, lilac_tile_op *op) {
    for (uint32_t i = 0; i < s->count; i++) {
        op->results[i].id = s->ids[i];
    }
}

/* A list of parts of several descriptors. */
typedef struct part_list {
    uint32_t count;
    lilac_tile_value **values;
} part_list;

static part_list make_list(expansion *x, uint32_t descriptors) {
    return (part_list){
        0, lilac_arena_array(x->arena, lilac_tile_value *, descriptors * DESCRIPTOR_MOST_PARTS)};
}

static void put_parts(part_list *list, lilac_tile_value *const *parts, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        list->values[list->count++] = parts[i];
    }
}

/* The parts of descriptors that results are, in order: the results from `first` on. */
static void set_result_parts(expansion *x, lilac_tile_op *op, uint32_t first) {
    for (uint32_t i = 0, at = first; i < first; i++) {
        if (!is_descriptor(&op->results[i])) {
            continue;
        }
        lilac_descriptor *d = parts_of(x, &op->results[i]);
        d->block = op->results[i].type->element;
        for (uint32_t k = 0; k < lilac_descriptor_part_count(d->block); k++) {
            d->parts[k] = &op->results[at++];
        }
    }
}

static void expand_if(expansion *x, lilac_tile_op *op) {
    part_list lists[2];
    for (uint32_t r = 0; r < 2; r++) {
        lists[r] = make_list(x, op->result_count);
        expand_region(x, op->regions[r]);
        for (uint32_t i = 0; i < op->result_count && !x->failed; i++) {
            if (is_descriptor(&op->results[i])) {
                const lilac_descriptor *d = parts_of(x, lilac_tile_yielded(op, r, i));
                put_parts(&lists[r], d->parts, lilac_descriptor_part_count(d->block));
            }
        }
    }
    if (lists[0].count > 0 && !x->failed) {
        const saved_ids ids = save_ids(x, op);
        lilac_tile_add_if_results(x->module, op, lists[0].count, lists[0].values, lists[1].values);
        restore_ids(&ids, op);
        set_result_parts(x, op, ids.count);
    }
}

/* The parts of a descriptor that is an argument of a block: its arguments from `at` on. */
static uint32_t set_argument_parts(expansion *x, const lilac_tile_value *argument, uint32_t at) {
    lilac_descriptor *d = parts_of(x, argument);
    d->block = argument->type->element;
    for (uint32_t k = 0; k < lilac_descriptor_part_count(d->block); k++) {
        d->parts[k] = argument->block->arguments[at++];
    }
    return at;
}

/* Makes the parts of what a loop passes on for carried value i the carried values from `at` on. */
static uint32_t set_next_parts(expansion *x, lilac_tile_op *op, uint32_t i, uint32_t at) {
    const lilac_descriptor *d = parts_of(x, lilac_tile_next(op, i));
    for (uint32_t k = 0; k < lilac_descriptor_part_count(d->block); k++) {
        lilac_tile_set_next(op, at++, d->parts[k]);
    }
    return at;
}

static void expand_for(expansion *x, lilac_tile_op *op) {
    const uint32_t carried = lilac_tile_carried_count(op);
    part_list inits = make_list(x, carried);
    for (uint32_t i = 0; i < carried; i++) {
        if (is_descriptor(lilac_tile_init(op, i))) {
            const lilac_descriptor *d = parts_of(x, lilac_tile_init(op, i));
            put_parts(&inits, d->parts, lilac_descriptor_part_count(d->block));
        }
    }
    if (inits.count > 0) {
        const saved_ids ids = save_ids(x, op);
        lilac_tile_add_carried(x->module, op, inits.count, inits.values);
        restore_ids(&ids, op);
    }
    for (uint32_t i = 0, at = 1 + carried; i < carried; i++) {
        if (is_descriptor(lilac_tile_iteration_argument(op, i))) {
            at = set_argument_parts(x, lilac_tile_iteration_argument(op, i), at);
        }
    }
    expand_region(x, op->regions[0]);
    for (uint32_t i = 0, at = carried; i < carried && !x->failed; i++) {
        at = is_descriptor(lilac_tile_next(op, i)) ? set_next_parts(x, op, i, at) : at;
    }
    if (inits.count > 0 && !x->failed) {
        set_result_parts(x, op, carried);
    }
}

/* The loop gets the parts of its carried descriptors and behind them those of the descriptors that
 * scf.condition passes on. Of the latter, the carried values are not read: they are poison. */
static void expand_while(expansion *x, lilac_tile_op *op) {
    const uint32_t carried = lilac_tile_carried_count(op), passed = op->result_count;
    const lilac_emitter e = {x->module, op};
    part_list inits = make_list(x, carried + passed);
    for (uint32_t i = 0; i < carried; i++) {
        if (is_descriptor(lilac_tile_init(op, i))) {
            const lilac_descriptor *d = parts_of(x, lilac_tile_init(op, i));
            put_parts(&inits, d->parts, lilac_descriptor_part_count(d->block));
        }
    }
    const uint32_t own = inits.count;
    for (uint32_t j = 0; j < passed; j++) {
        if (is_descriptor(&op->results[j])) {
            const lilac_tile_type *block = op->results[j].type->element;
            set_poison(x, &e, block, inits.values + inits.count);
            inits.count += lilac_descriptor_part_count(block);
        }
    }
    if (inits.count > 0) {
        const saved_ids ids = save_ids(x, op);
        lilac_tile_add_carried(x->module, op, inits.count, inits.values);
        restore_ids(&ids, op);
    }
    for (uint32_t i = 0, at = carried; i < carried; i++) {
        if (is_descriptor(lilac_tile_iteration_argument(op, i))) {
            at = set_argument_parts(x, lilac_tile_iteration_argument(op, i), at);
        }
    }
    expand_region(x, op->regions[0]);
    lilac_tile_op *condition = lilac_tile_terminator(op->regions[0]);
    for (uint32_t j = 0, at = passed + own; j < passed && !x->failed; j++) {
        if (is_descriptor(&op->results[j])) {
            const lilac_descriptor *d = parts_of(x, lilac_tile_passed(op, j));
            const uint32_t count = lilac_descriptor_part_count(d->block);
            for (uint32_t k = 0; k < count; k++) {
                lilac_tile_set_operand(condition, 1 + at + k, d->parts[k]);
            }
            at = set_argument_parts(x, lilac_tile_passed_argument(op, j), at);
            lilac_descriptor *result = parts_of(x, &op->results[j]);
            result->block = d->block;
            for (uint32_t k = 0; k < count; k++) {
                result->parts[k] = &op->results[at - count + k];
            }
        }
    }
    if (x->failed) {
        return;
    }
    expand_region(x, op->regions[1]);
    for (uint32_t i = 0, at = carried; i < carried && !x->failed; i++) {
        at = is_descriptor(lilac_tile_next(op, i)) ? set_next_parts(x, op, i, at) : at;
    }
}

/* ---- the walk --------------------------------------------------------------------------- */

static void expand_op(expansion *x, lilac_tile_op *op) {
    const bool makes = op->result_count == 1 && is_descriptor(&op->results[0]);
    switch (op->code) {
    case LILAC_TILE_OP_TT_MAKE_TENSOR_DESCRIPTOR:
        expand_make(x, op);
        return;
    case LILAC_TILE_OP_ARITH_SELECT:
        if (makes) {
            expand_select(x, op);
        }
        return;
    case LILAC_TILE_OP_UB_POISON:
        if (makes) {
            lilac_descriptor *d = parts_of(x, &op->results[0]);
            d->block = op->results[0].type->element;
            set_poison(x, &(lilac_emitter){x->module, op}, d->block, d->parts);
        }
        return;
    case LILAC_TILE_OP_SCF_IF:
        expand_if(x, op);
        return;
    case LILAC_TILE_OP_SCF_FOR:
        expand_for(x, op);
        return;
    case LILAC_TILE_OP_SCF_WHILE:
        expand_while(x, op);
        return;
    default:
        break;
    }
    if (accessed_tensor(op) != NULL) {
        x->failed = !lilac_descriptor_expand(x->module, op, parts_of(x, lilac_tile_operand(op, 0)),
                                             &x->facts);
        return;
    }
    for (uint32_t r = 0; r < op->region_count; r++) {
        expand_region(x, op->regions[r]);
    }
}

static void expand_region(expansion *x, lilac_tile_region *region) {
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->first, *next; op != NULL && !x->failed; op = next) {
            next = op->next;
            expand_op(x, op);
        }
    }
}

/* ---- afterwards ------------------------------------------------------------------------- */

typedef struct cleaning {
    lilac_tile_value *nothing[DESCRIPTOR_MOST_PARTS]; /* poison, one for each type */
    uint32_t count;
    lilac_emitter at;
} cleaning;

static lilac_tile_value *nothing_of(cleaning *c, const lilac_tile_type *type) {
    for (uint32_t i = 0; i < c->count; i++) {
        if (c->nothing[i]->type == type) {
            return c->nothing[i];
        }
    }
    lilac_tile_value *made = poison(&c->at, type);
    if (c->count < DESCRIPTOR_MOST_PARTS) {
        c->nothing[c->count++] = made;
    }
    return made;
}

/* Nothing reads a descriptor any more but tensor copies and what passes it on: that becomes poison. */
static void forget(void *data, lilac_tile_op *op) {
    const bool copies = op->code == LILAC_TILE_OP_LILAC_TENSOR_BOX ||
                        op->code == LILAC_TILE_OP_TT_DESCRIPTOR_STORE ||
                        op->code == LILAC_TILE_OP_TT_DESCRIPTOR_REDUCE;
    for (uint32_t i = 0; i < op->operand_count && !copies; i++) {
        lilac_tile_value *value = op->operands[i].value;
        if (is_descriptor(value)) {
            lilac_tile_set_operand(op, i, nothing_of(data, value->type));
        }
    }
}

static void remove_makers(lilac_tile_region *region) {
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->last, *previous; op != NULL; op = previous) {
            previous = op->previous;
            for (uint32_t r = 0; r < op->region_count; r++) {
                remove_makers(op->regions[r]);
            }
            const bool makes = op->result_count == 1 && op->region_count == 0 &&
                               is_descriptor(&op->results[0]) && op->results[0].uses == NULL;
            if (makes) {
                lilac_tile_remove(op);
            }
        }
    }
}

static void clean(expansion *x) {
    lilac_tile_region *body = x->function->body;
    cleaning c = {.at = {x->module, body->first->first}};
    lilac_tile_walk(body, forget, &c);
    lilac_engine_forward_invariants(body);
    lilac_engine_remove_unused_phis(x->module, body);
    remove_makers(body);
}

/* ---- descriptors that become tensor maps ------------------------------------------------- */

typedef struct maker_list {
    lilac_tile_op **ops; /* NULL: they are counted only */
    uint32_t count;
} maker_list;

static void add_maker(void *data, lilac_tile_op *op) {
    maker_list *list = data;
    if (op->code == LILAC_TILE_OP_TT_MAKE_TENSOR_DESCRIPTOR) {
        if (list->ops != NULL) {
            list->ops[list->count] = op;
        }
        list->count++;
    }
}

/* Numbers the values, sets `mapped`, and moves those that the kernel makes out of loops. */
static void find_maps(expansion *x, const lilac_target *target) {
    maker_list list = {0};
    lilac_tile_walk(x->function->body, add_maker, &list);
    list.ops = lilac_arena_array(x->arena, lilac_tile_op *, list.count + 1);
    list.count = 0;
    lilac_tile_walk(x->function->body, add_maker, &list);
    lilac_engine_axis_facts(&x->facts, x->arena, x->function); /* numbers the values */
    bool *mapped = lilac_arena_array(x->arena, bool, x->function->value_count);
    for (uint32_t i = 0; i < list.count; i++) {
        const lilac_tile_value *descriptor = &list.ops[i]->results[0];
        mapped[descriptor->id] = lilac_descriptor_is_mapped(x->function, descriptor, target);
    }
    for (uint32_t i = 0; i < list.count; i++) {
        if (mapped[list.ops[i]->results[0].id]) {
            lilac_descriptor_hoist(list.ops[i]);
        }
    }
    x->mapped = mapped;
}

static bool expand_function(lilac_tile_function *function, const lilac_target *target) {
    expansion x = {.module = function->module, .function = function, .arena = lilac_arena_create()};
    find_maps(&x, target);
    x.known = lilac_arena_array(x.arena, lilac_descriptor, function->value_count);
    lilac_descriptor_expand_parameters(function, x.known, target);
    expand_region(&x, function->body);
    if (!x.failed) {
        clean(&x);
        lilac_tile_number(function);
    }
    lilac_arena_destroy(x.arena);
    return !x.failed;
}

bool lilac_engine_expand_descriptors(lilac_tile_module *module, const lilac_target *target,
                                     bool *changed) {
    bool good = true;
    *changed = false;
    for (lilac_tile_function *f = module->functions; f != NULL; f = f->next) {
        if (f->body != NULL && is_expandable(f)) {
            *changed = true;
            good = expand_function(f, target) && good;
        }
    }
    return good;
}
