/* The rewriting: rings of buffers, copies ahead, and waits.
 *
 *     scf.for %i = %l to %u step %s iter_args(%p = %x) {
 *       %a = tt.load %p, %m
 *       …
 *     }
 *   →
 *     %ring = ttg.local_alloc                                 B buffers
 *     %v = ttg.memdesc_index %ring[0]                         for each iteration d < D:
 *     ttg.async_copy_global_to_local %x, %v mask %m & (%u - %l > d * %s)
 *     ttg.async_commit_group
 *     …
 *     scf.for %i = … iter_args(%slot = 0, %q = %x + D) {
 *       ttg.async_wait {num = D - 1}                          the copies for this iteration
 *       %v = ttg.memdesc_index %ring[%slot]
 *       %w = ttg.memdesc_index %ring[(%slot + D) mod B]       the copies for iteration i + D
 *       ttg.async_copy_global_to_local %q, %w mask %m' & (%u - %i > D * %s)
 *       ttg.async_commit_group
 *       … %v …
 *       scf.yield (%slot + 1) mod B, …
 *     }
 *     ttg.async_wait {num = 0}
 *
 * Each iteration commits one group, also one whose iteration does not exist: then the number of
 * groups in a wait is a constant. No iteration is peeled behind the loop. The comparisons of the
 * remaining distance are unsigned: %u - %i is exact where %i < %u. What the copies need is cloned
 * from the body, with carried values of its own that are D iterations ahead. */
#include "pipeline/pipeline.h"

typedef pipeline_rewriting rewriting;

/* ---- building -------------------------------------------------------------------------------- */

lilac_tile_op *lilac_pipeline_make(const pipeline *p, lilac_tile_opcode code, uint32_t count,
                                   lilac_tile_value *const *operands, const lilac_tile_type *type,
                                   lilac_tile_op *place) {
    lilac_tile_op *op = lilac_tile_op_create(p->module, code, count, operands, type != NULL, &type,
                                             0, place->location);
    op->position = place->position;
    lilac_tile_insert_before(place, op);
    return op;
}

static lilac_tile_value *binary(const pipeline *p, lilac_tile_opcode code, lilac_tile_value *a,
                                lilac_tile_value *b, lilac_tile_op *place) {
    lilac_tile_value *operands[2] = {a, b};
    return &lilac_pipeline_make(p, code, 2, operands, a->type, place)->results[0];
}

static lilac_tile_value *constant(const pipeline *p, const lilac_tile_type *type, int64_t value,
                                  lilac_tile_op *place) {
    return &lilac_engine_make_constant(p->module, place, type, value)->results[0];
}

static lilac_tile_value *index_constant(const pipeline *p, int64_t value, lilac_tile_op *place) {
    return constant(p, lilac_tile_scalar(p->module, LILAC_I32), value, place);
}

lilac_tile_value *lilac_pipeline_compare(const pipeline *p, const char *predicate,
                                         lilac_tile_value *a, lilac_tile_value *b,
                                         lilac_tile_op *place) {
    const lilac_tile_attribute attribute = {
        .kind = LILAC_TILE_ATTR_KEYWORD,
        .name = lilac_intern_string(p->module->context, "predicate"),
        .text = lilac_intern_string(p->module->context, predicate)};
    lilac_tile_value *operands[2] = {a, b};
    lilac_tile_op *op = lilac_pipeline_make(p, LILAC_TILE_OP_ARITH_CMPI, 2, operands,
                                            lilac_tile_scalar(p->module, LILAC_I1), place);
    lilac_tile_set_attribute(p->module, &op->attributes, &attribute);
    return &op->results[0];
}

/* value mod B, for a value below 2 · B. */
static lilac_tile_value *wrap(const pipeline *p, lilac_tile_value *value, lilac_tile_op *place) {
    if ((p->buffers & (p->buffers - 1)) == 0) {
        return binary(p, LILAC_TILE_OP_ARITH_ANDI, value, index_constant(p, p->buffers - 1, place),
                      place);
    }
    lilac_tile_value *most = index_constant(p, p->buffers, place);
    lilac_tile_value *operands[3] = {lilac_pipeline_compare(p, "sge", value, most, place),
                                     binary(p, LILAC_TILE_OP_ARITH_SUBI, value, most, place),
                                     value};
    return &lilac_pipeline_make(p, LILAC_TILE_OP_ARITH_SELECT, 3, operands, value->type, place)
                ->results[0];
}

/* ---- memory ---------------------------------------------------------------------------------- */

static lilac_tile_value *make_view(const pipeline *p, const pipeline_load *load,
                                   lilac_tile_value *index, lilac_tile_op *place) {
    lilac_tile_value *operands[2] = {load->ring, index};
    return &lilac_pipeline_make(p, LILAC_TILE_OP_TTG_MEMDESC_INDEX, 2, operands, load->slot, place)
                ->results[0];
}

/* ---- copies ---------------------------------------------------------------------------------- */

static const lilac_tile_type *mask_type(const pipeline *p, const lilac_tile_type *tensor) {
    return lilac_tile_tensor(p->module, lilac_tile_scalar(p->module, LILAC_I1), tensor->rank,
                             tensor->shape, tensor->layout);
}

/* mask & splat(exists), either may be missing. */
static lilac_tile_value *join_masks(const pipeline *p, lilac_tile_value *mask,
                                    lilac_tile_value *exists, const lilac_tile_type *pointers,
                                    lilac_tile_op *place) {
    if (exists == NULL) {
        return mask;
    }
    if (pointers->kind == LILAC_TILE_TENSOR) {
        const lilac_tile_type *type = mask != NULL ? mask->type : mask_type(p, pointers);
        exists =
            &lilac_pipeline_make(p, LILAC_TILE_OP_TT_SPLAT, 1, &exists, type, place)->results[0];
    }
    return mask == NULL ? exists : binary(p, LILAC_TILE_OP_ARITH_ANDI, mask, exists, place);
}

static lilac_tile_value *mapped_operand(const rewriting *r, const lilac_tile_op *op,
                                        uint32_t index) {
    lilac_tile_value *operand = lilac_tile_operand(op, index);
    return operand != NULL ? lilac_tile_mapped(r->mapping, operand) : NULL;
}

void lilac_pipeline_clone_load(rewriting *r, const lilac_tile_op *op, lilac_tile_value *exists,
                               lilac_tile_op *place) {
    const pipeline *p = r->p;
    lilac_tile_op *copy = lilac_tile_clone_mapped(p->module, op, r->mapping);
    lilac_tile_insert_before(place, copy);
    if (exists != NULL) {
        lilac_tile_value *operands[3] = {copy->operands[0].value};
        operands[1] = join_masks(p, lilac_tile_operand(copy, 1), exists, operands[0]->type, copy);
        operands[2] = lilac_tile_operand(copy, 2);
        const lilac_tile_type *type = copy->results[0].type;
        if (operands[2] == NULL && lilac_tile_element(type)->kind == LILAC_TILE_SCALAR) {
            operands[2] = constant(p, type, 0, copy);
        }
        lilac_tile_set_operands(p->module, copy, operands[2] != NULL ? 3 : 2, operands);
    }
}

static void keep_attribute(const pipeline *p, const lilac_tile_op *from, lilac_tile_op *to,
                           const char *name) {
    const lilac_tile_attribute *found = lilac_tile_find(&from->attributes, name);
    if (found != NULL) {
        lilac_tile_set_attribute(p->module, &to->attributes, found);
    }
}

/* Clones what the copies of an iteration need. Loads that the mapping has are not cloned. */
static void clone_addresses(rewriting *r, bool early, lilac_tile_value *exists,
                            lilac_tile_op *place) {
    for (uint32_t i = 0; i < r->op_count; i++) {
        if (r->ops[i]->code != LILAC_TILE_OP_TT_LOAD) {
            lilac_tile_insert_before(place,
                                     lilac_tile_clone_mapped(r->p->module, r->ops[i], r->mapping));
        } else if (early || !lilac_pipeline_is_early(r, r->ops[i])) {
            lilac_pipeline_clone_load(r, r->ops[i], exists, place);
        }
    }
}

/* Starts the tensor copies of an iteration, which complete a phase of the buffers' mbarrier. */
static void start_boxes(rewriting *r, lilac_tile_value *exists, lilac_tile_value *index,
                        lilac_tile_op *place) {
    const pipeline *p = r->p;
    const lilac_emitter e = {p->module, place};
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < p->load_count; i++) {
        bytes += p->loads[i].box != NULL ? p->loads[i].bytes : 0;
    }
    if (exists == NULL) {
        exists = constant(p, lilac_tile_scalar(p->module, LILAC_I1), 1, place);
    }
    lilac_tile_value *barrier = lilac_box_barrier(&e, p->barriers, index);
    lilac_tile_op *expect = lilac_box_expect(&e, barrier, bytes, exists);
    if (p->copies_ordered) {
        lilac_engine_set_integer(p->module, expect, "lilac.ordered", 1);
    }
    for (uint32_t i = 0; i < p->load_count; i++) {
        const pipeline_load *load = &p->loads[i];
        if (load->box != NULL) {
            lilac_tile_op *copy =
                lilac_box_start(&e, lilac_tile_mapped(r->mapping, load->box),
                                make_view(p, load, index, place), barrier, exists);
            if (p->copies_ordered) {
                lilac_engine_set_integer(p->module, copy, "lilac.ordered", 1);
            }
            if (p->multicasts) {
                lilac_pipeline_mark_copy(p, load, copy);
            }
        }
    }
}

/* Copies by threads that are one group. */
typedef struct group {
    lilac_tile_value **tokens;
    uint32_t count;
} group;

static group make_group(const pipeline *p) {
    return (group){.tokens = lilac_arena_array(p->arena, lilac_tile_value *, p->load_count + 1)};
}

/* Starts the copies of an iteration, of the loads that the rewriting is for. A tensor copy starts at
 * once, so it is in front of copies by threads; except behind products in flight: there the threads
 * compute the addresses of their copies while they wait, and the branch for the one thread that starts
 * tensor copies would separate these from the wait (bench/results/decisions.md). */
static void start_copies(rewriting *r, group *g, lilac_tile_value *exists, lilac_tile_value *index,
                         lilac_tile_op *place) {
    const pipeline *p = r->p;
    const lilac_tile_type *token = lilac_tile_token(p->module);
    if (p->box_count > 0 && p->copies != LILAC_COPIES_LAST) {
        start_boxes(r, exists, index, place);
    }
    for (uint32_t i = 0; i < p->load_count; i++) {
        const pipeline_load *load = &p->loads[i];
        if (load->box != NULL || (p->late && load->late) != r->late) {
            continue;
        }
        lilac_tile_value *operands[3] = {mapped_operand(r, load->op, 0),
                                         make_view(p, load, index, place)};
        operands[2] =
            join_masks(p, mapped_operand(r, load->op, 1), exists, operands[0]->type, place);
        lilac_tile_op *copy =
            lilac_pipeline_make(p, LILAC_TILE_OP_TTG_ASYNC_COPY_GLOBAL_TO_LOCAL,
                                operands[2] != NULL ? 3 : 2, operands, token, place);
        copy->location = load->op->location;
        copy->position = load->op->position;
        keep_attribute(p, load->op, copy, "cache");
        keep_attribute(p, load->op, copy, "evict");
        if (p->copies_ordered) {
            lilac_engine_set_integer(p->module, copy, "lilac.ordered", 1);
        }
        if (p->copies == LILAC_COPIES_LAST && !p->in_flight) { /* overlap_products */
            lilac_engine_set_integer(p->module, copy, "lilac.last", 1);
        }
        if (r->late) { /* decouple_warps */
            lilac_engine_set_integer(p->module, copy, "lilac.late", 1);
        }
        g->tokens[g->count++] = &copy->results[0];
    }
    if (p->box_count > 0 && p->copies == LILAC_COPIES_LAST) {
        start_boxes(r, exists, index, place);
    }
}

static void commit(const pipeline *p, const group *g, lilac_tile_op *place) {
    if (p->box_count < p->load_count) {
        (void)lilac_pipeline_make(p, LILAC_TILE_OP_TTG_ASYNC_COMMIT_GROUP, g->count, g->tokens,
                                  lilac_tile_token(p->module), place);
    }
}

static void wait_for_copies(const pipeline *p, uint32_t left, lilac_tile_op *place) {
    if (p->box_count == p->load_count) {
        return; /* there are tensor copies only */
    }
    lilac_tile_op *wait = lilac_pipeline_make(p, LILAC_TILE_OP_TTG_ASYNC_WAIT, 0, NULL,
                                              lilac_tile_token(p->module), place);
    lilac_engine_set_integer(p->module, wait, "num", left);
}

/* ---- before the loop ------------------------------------------------------------------------- */

/* lower + d · step */
static lilac_tile_value *iteration(const pipeline *p, uint32_t d) {
    lilac_tile_value *lower = lilac_tile_lower_bound(p->loop);
    int64_t first;
    if (d == 0) {
        return lower;
    }
    if (lilac_tile_constant(lower, &first)) {
        return constant(p, lower->type, (int64_t)((uint64_t)first + (uint64_t)(d * p->step)),
                        p->loop);
    }
    return binary(p, LILAC_TILE_OP_ARITH_ADDI, lower,
                  constant(p, lower->type, d * p->step, p->loop), p->loop);
}

/* Has the loop more than d iterations? NULL: it has. */
static lilac_tile_value *has_iteration(const pipeline *p, uint32_t d) {
    lilac_tile_value *lower = lilac_tile_lower_bound(p->loop);
    lilac_tile_value *upper = lilac_tile_upper_bound(p->loop);
    if (p->trip_count_known || (d == 0 && p->guarded)) {
        return NULL;
    }
    lilac_tile_value *any =
        p->guarded ? NULL : lilac_pipeline_compare(p, "slt", lower, upper, p->loop);
    if (d == 0) {
        return any;
    }
    lilac_tile_value *size = binary(p, LILAC_TILE_OP_ARITH_SUBI, upper, lower, p->loop);
    lilac_tile_value *more = lilac_pipeline_compare(
        p, "ugt", size, constant(p, lower->type, d * p->step, p->loop), p->loop);
    return any == NULL ? more : binary(p, LILAC_TILE_OP_ARITH_ANDI, any, more, p->loop);
}

static void make_rings(pipeline *p) {
    for (uint32_t i = 0; i < p->load_count; i++) {
        pipeline_load *load = &p->loads[i];
        lilac_tile_op *ring =
            lilac_pipeline_make(p, LILAC_TILE_OP_TTG_LOCAL_ALLOC, 0, NULL,
                                lilac_pipeline_memory_type(p, load->slot, p->buffers), p->loop);
        ring->location = load->op->location;
        ring->position = load->op->position;
        ring->results[0].name = load->op->results[0].name;
        load->ring = &ring->results[0];
    }
    if (p->multicasts) {
        lilac_pipeline_divide_shares(p);
    }
    if (p->box_count > 0) {
        p->barriers = lilac_box_make_barriers(&(lilac_emitter){p->module, p->loop},
                                              p->target->num_ctas, p->buffers, 1);
    }
    if (p->multicasts) {
        lilac_pipeline_make_empty_barriers(p);
    }
}

/* Maps the counter and the carried values to those of iteration d. */
static void map_iteration(rewriting *r, uint32_t d) {
    const pipeline *p = r->p;
    lilac_tile_value *counter = lilac_tile_induction_variable(p->loop);
    if (p->ahead[counter->id]) {
        lilac_tile_map(r->mapping, counter, iteration(p, d));
    }
    for (uint32_t i = 0; i < r->carried_count; i++) {
        lilac_tile_map(r->mapping, lilac_tile_iteration_argument(p->loop, r->carried[i]),
                       r->current[i]);
    }
}

/* The carried values of the iteration behind the one that was cloned last. */
static void advance(rewriting *r) {
    for (uint32_t i = 0; i < r->carried_count; i++) {
        r->current[i] = lilac_tile_mapped(r->mapping, lilac_tile_next(r->p->loop, r->carried[i]));
    }
}

/* The copies of iteration d, to the buffer d. */
static void start_iteration(rewriting *r, group *g, uint32_t d) {
    const pipeline *p = r->p;
    lilac_tile_value *exists = has_iteration(p, d);
    map_iteration(r, d);
    clone_addresses(r, true, exists, p->loop);
    start_copies(r, g, exists, index_constant(p, d, p->loop), p->loop);
    advance(r);
}

/* A group for each iteration d; `late` copies are those of iteration d - 1. */
static void start_first_copies(rewriting *r, rewriting *late) {
    const pipeline *p = r->p;
    for (uint32_t d = 0; d < p->distance; d++) {
        group g = make_group(p);
        start_iteration(r, &g, d);
        if (p->late && d > 0) {
            start_iteration(late, &g, d - 1);
        }
        commit(p, &g, p->loop);
    }
    if (r->early_count > 0) {
        map_iteration(r, p->distance);
        lilac_pipeline_clone_early(r, has_iteration(p, p->distance), p->loop);
    }
}

/* ---- in the loop ------------------------------------------------------------------------------ */

/* Does iteration i + distance exist? `left` is upper − i, and *far the distance times the step. */
static lilac_tile_value *is_left(const pipeline *p, lilac_tile_value *left, uint32_t distance,
                                 lilac_tile_value **far, lilac_tile_op *place) {
    *far = constant(p, left->type, distance * p->step, place);
    return lilac_pipeline_compare(p, "ugt", left, *far, place);
}

static void map_counter(const rewriting *r, lilac_tile_value *far, lilac_tile_op *place) {
    lilac_tile_value *counter = lilac_tile_induction_variable(r->p->loop);
    if (r->p->ahead[counter->id]) {
        lilac_tile_map(r->mapping, counter,
                       binary(r->p, LILAC_TILE_OP_ARITH_ADDI, counter, far, place));
    }
}

/* The early loads of iteration i + D + 1, which the copies of the next iteration need. */
static void start_early_loads(rewriting *r, lilac_tile_value *left, uint32_t first,
                              lilac_tile_op *place) {
    const pipeline *p = r->p;
    lilac_tile_value *far;
    lilac_tile_value *exists = is_left(p, left, p->distance + 1, &far, place);
    map_counter(r, far, place);
    for (uint32_t i = 0; i < r->carried_count; i++) {
        lilac_tile_map(r->mapping, lilac_tile_iteration_argument(p->loop, r->carried[i]),
                       r->current[i]);
    }
    lilac_pipeline_clone_early(r, exists, place);
    for (uint32_t i = 0; i < r->early_count; i++) {
        lilac_tile_set_next(p->loop, first + i,
                            lilac_tile_mapped(r->mapping, &r->early[i]->results[0]));
    }
}

/* The copies for iteration i + D, before `place`; `slot` is i mod B, and `left` is upper - i. The
 * carried values from r->first_carried on are those of iteration i + D, then the results of early
 * loads. */
static void start_next_copies(rewriting *r, group *g, lilac_tile_value *slot,
                              lilac_tile_value *left, lilac_tile_op *place) {
    const pipeline *p = r->p;
    const uint32_t first = r->first_carried;
    lilac_tile_value *far;
    lilac_tile_value *exists = is_left(p, left, r->distance, &far, place);
    lilac_tile_value *index = wrap(
        p, binary(p, LILAC_TILE_OP_ARITH_ADDI, slot, index_constant(p, r->distance, place), place),
        place);
    map_counter(r, far, place);
    for (uint32_t i = 0; i < r->carried_count; i++) {
        lilac_tile_map(r->mapping, lilac_tile_iteration_argument(p->loop, r->carried[i]),
                       lilac_tile_iteration_argument(p->loop, first + i));
    }
    for (uint32_t i = 0; i < r->early_count; i++) {
        lilac_tile_map(r->mapping, &r->early[i]->results[0],
                       lilac_tile_iteration_argument(p->loop, first + r->carried_count + i));
    }
    clone_addresses(r, false, exists, place);
    start_copies(r, g, exists, index, place);
    advance(r);
    for (uint32_t i = 0; i < r->carried_count; i++) {
        lilac_tile_set_next(p->loop, first + i, r->current[i]);
    }
}

/* The group of copies that an iteration starts. */
static void start_group(rewriting *r, rewriting *late, lilac_tile_value *slot,
                        lilac_tile_op *place) {
    const pipeline *p = r->p;
    group g = make_group(p);
    lilac_tile_value *left = binary(p, LILAC_TILE_OP_ARITH_SUBI, lilac_tile_upper_bound(p->loop),
                                    lilac_tile_induction_variable(p->loop), place);
    start_next_copies(r, &g, slot, left, place);
    if (p->late) {
        start_next_copies(late, &g, slot, left, place);
    }
    commit(p, &g, place);
    if (r->early_count > 0) {
        start_early_loads(r, left, r->first_carried + r->carried_count, place);
    }
}

/* Adds the slot, the values that the addresses of the copies need, and the parity of the buffers'
 * mbarriers to what the loop carries. Returns the number of the parity. */
static uint32_t add_carried(rewriting *r, rewriting *late) {
    const pipeline *p = r->p;
    uint32_t count = 1;
    lilac_tile_value **inits =
        lilac_arena_array(p->arena, lilac_tile_value *, 2 * r->carried_count + r->early_count + 2);
    r->first_carried = lilac_tile_carried_count(p->loop) + count;
    inits[0] = index_constant(p, 0, p->loop);
    for (uint32_t i = 0; i < r->carried_count; i++) {
        inits[count++] = r->current[i];
    }
    for (uint32_t i = 0; i < r->early_count; i++) {
        inits[count++] = lilac_tile_mapped(r->mapping, &r->early[i]->results[0]);
    }
    late->first_carried = lilac_tile_carried_count(p->loop) + count;
    for (uint32_t i = 0; p->late && i < late->carried_count; i++) {
        inits[count++] = late->current[i];
    }
    const uint32_t phase = lilac_tile_carried_count(p->loop) + count;
    if (p->box_count > 0) {
        inits[count++] = inits[0];
    }
    lilac_tile_add_carried(p->module, p->loop, count, inits);
    return phase;
}

static void rewrite_body(rewriting *r, rewriting *late) {
    pipeline *p = r->p;
    const uint32_t before = lilac_tile_carried_count(p->loop);
    lilac_tile_op *first = p->loop->regions[0]->first->first;
    const uint32_t phase = add_carried(r, late);
    lilac_tile_value *slot = lilac_tile_iteration_argument(p->loop, before);
    wait_for_copies(p, p->distance - 1, first);
    if (p->box_count > 0) {
        const lilac_emitter e = {p->module, first};
        lilac_box_wait(&e, lilac_box_barrier(&e, p->barriers, slot),
                       lilac_tile_iteration_argument(p->loop, phase));
    }
    for (uint32_t i = 0; i < p->load_count; i++) {
        p->loads[i].view = make_view(p, &p->loads[i], slot, first);
    }
    lilac_tile_op *products = lilac_pipeline_start_products(p);
    lilac_tile_op *place = first;
    if (p->copies == LILAC_COPIES_LAST) {
        place = products != NULL ? products->next : p->loop->regions[0]->first->last;
    } else if (p->copies == LILAC_COPIES_BEHIND) { /* while it is in flight: overlap_products */
        place = lilac_pipeline_first_product(p)->next;
    }
    p->copies_ordered = p->copies == LILAC_COPIES_BEHIND &&
                        lilac_pipeline_begins_with_barrier(p, lilac_pipeline_first_product(p));
    if (p->multicasts) {
        lilac_pipeline_release(p, slot, lilac_tile_iteration_argument(p->loop, phase), place);
    }
    start_group(r, late, slot, place);
    for (uint32_t i = 0; i < p->load_count; i++) {
        lilac_pipeline_replace_load(p, &p->loads[i]);
    }
    lilac_tile_op *last = p->loop->regions[0]->first->last;
    lilac_tile_value *following =
        binary(p, LILAC_TILE_OP_ARITH_ADDI, slot, index_constant(p, 1, last), last);
    following = wrap(p, following, last);
    lilac_tile_set_next(p->loop, before, following);
    if (p->box_count > 0) {
        const lilac_emitter e = {p->module, last};
        lilac_tile_value *parity = lilac_tile_iteration_argument(p->loop, phase);
        lilac_tile_set_next(p->loop, phase, lilac_box_next_parity(&e, parity, following));
    }
}

/* ---- behind the loop --------------------------------------------------------------------------- */

static void finish(const pipeline *p) {
    lilac_tile_op *place = p->in_flight ? p->loop->next->next : p->loop->next;
    wait_for_copies(p, 0, place);
    if (p->multicasts) {
        lilac_pipeline_remove_empty_barriers(p, place);
    }
    if (p->box_count > 0) {
        lilac_box_remove_barriers(&(lilac_emitter){p->module, place}, p->barriers, p->buffers);
    }
    for (uint32_t i = 0; i < p->load_count; i++) {
        lilac_tile_value *ring = p->loads[i].ring;
        (void)lilac_pipeline_make(p, LILAC_TILE_OP_TTG_LOCAL_DEALLOC, 1, &ring, NULL, place);
    }
}

/* ---- the rewriting ----------------------------------------------------------------------------- */

static void list_ahead(rewriting *r) {
    const pipeline *p = r->p;
    const lilac_tile_block *body = p->loop->regions[0]->first;
    const uint32_t carried = lilac_tile_carried_count(p->loop);
    uint32_t count = 0;
    for (const lilac_tile_op *op = body->first; op != NULL; op = op->next) {
        count++;
    }
    r->ops = lilac_arena_array(p->arena, lilac_tile_op *, count + 1);
    for (lilac_tile_op *op = body->first; op != NULL; op = op->next) {
        if (lilac_pipeline_is_ahead(p, op)) {
            r->ops[r->op_count++] = op;
        }
    }
    r->carried = lilac_arena_array(p->arena, uint32_t, carried + 1);
    r->current = lilac_arena_array(p->arena, lilac_tile_value *, carried + 1);
    for (uint32_t k = 0; k < carried; k++) {
        if (p->ahead[lilac_tile_iteration_argument(p->loop, k)->id]) {
            r->current[r->carried_count] = lilac_tile_init(p->loop, k);
            r->carried[r->carried_count++] = k;
        }
    }
}

/* Writes what is done into the loop's record. */
static void record(const pipeline *p) {
    const uint32_t products =
        p->in_flight ? LILAC_PRODUCTS_IN_FLIGHT
        : p->delays  ? LILAC_PRODUCTS_DELAY
        : lilac_pipeline_first_product(p) == NULL ||
                lilac_engine_is_asked(p->loop, LILAC_SCHEDULE_PRODUCTS, LILAC_PRODUCTS_WAIT)
            ? LILAC_PRODUCTS_WAIT
            : LILAC_PRODUCTS_OVERLAP;
    lilac_engine_begin_record(p->module, p->loop);
    lilac_engine_record(p->module, p->loop, LILAC_SCHEDULE_PRODUCTS, products);
    lilac_engine_record(p->module, p->loop, LILAC_SCHEDULE_COPIES, p->copies);
    lilac_engine_record(p->module, p->loop, LILAC_SCHEDULE_DISTANCE, p->distance);
    lilac_engine_record(p->module, p->loop, LILAC_SCHEDULE_BUFFERS, p->buffers);
    if (p->late) {
        lilac_engine_record(p->module, p->loop, LILAC_SCHEDULE_LATE, 1);
    }
    if (p->multicasts) {
        lilac_engine_record(p->module, p->loop, LILAC_SCHEDULE_MULTICAST, 1);
    }
}

void lilac_pipeline_rewrite(pipeline *p) {
    p->late &= p->delays;
    record(p);
    rewriting r = {.p = p, .mapping = lilac_tile_mapping_create(), .distance = p->distance};
    rewriting late = {
        .p = p, .mapping = lilac_tile_mapping_create(), .distance = p->distance - 1, .late = true};
    list_ahead(&r);
    list_ahead(&late);
    lilac_pipeline_find_early_loads(&r);
    if (p->in_flight || p->delays) {
        lilac_pipeline_guard(p);
    }
    if (p->delays) {
        lilac_pipeline_mark_delayed(p);
    }
    if (p->box_count == p->load_count) { /* specialise_warps */
        lilac_engine_set_integer(p->module, p->loop, "lilac.tensor_copies", 1);
    }
    make_rings(p);
    const lilac_tile_op *end = p->guarded ? p->loop->parent->parent->parent : p->loads[0].ring->op;
    start_first_copies(&r, &late);
    rewrite_body(&r, &late);
    finish(p);
    lilac_pipeline_remove_dead(p);
    lilac_pipeline_remove_fences(p);
    lilac_pipeline_sink_waits(p, end);
    lilac_tile_mapping_destroy(r.mapping);
    lilac_tile_mapping_destroy(late.mapping);
}
