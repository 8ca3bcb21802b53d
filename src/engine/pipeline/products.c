/* Products of a loop that stay in flight over the back edge.
 *
 *     %r = scf.for … iter_args(%c = %x) {              %r = scf.if %some {
 *       …                                                %s = scf.for … iter_args(%c = %x) {
 *       %d = ttng.warp_group_dot %a, %b, %c                …
 *       scf.yield %d                              →        %d = ttng.warp_group_dot %a, %b, %c
 *     }                                                         {isAsync = true}
 *                                                          %w = ttng.warp_group_dot_wait %d {pendings = 1}
 *                                                          scf.yield %w
 *                                                        }
 *                                                        %v = ttng.warp_group_dot_wait %s {pendings = 0}
 *                                                        scf.yield %v
 *                                                      } else { scf.yield %x }
 *
 * Accumulators of a product in flight may be used by the next product of the same sum only. So a sum
 * stays in flight if it is a chain: the first product adds to an iteration argument, each further one
 * to the result before it, and the loop yields the last result for the same argument; each of these
 * values has no other use in the body. The type of the accumulators does not matter. Operands must be
 * in memory that the next iteration does not write: in rings, or allocated before the loop. An operand
 * in registers would have to stay in them until the wait of the next iteration; such products wait.
 *
 * With n products of an iteration in flight, `pendings = n` behind the last one waits for the
 * preceding iteration. A path that has executed no product must not meet one with products in flight:
 * where paths with different accumulators meet, the assembler waits for each product (ptxas: C7515).
 * Therefore the loop, unless it is known to execute, is in a conditional with the last wait. */
#include "pipeline/pipeline.h"

enum { MOST_PENDING = 7 }; /* a wait for more groups in flight waits for 7 */

static const lilac_tile_use *only_use(const lilac_tile_value *value) {
    return value->uses != NULL && value->uses->next == NULL ? value->uses : NULL;
}

/* Does the next iteration leave the operand as it is? */
static bool is_kept(const pipeline *p, const lilac_tile_value *operand) {
    return operand->type->kind == LILAC_TILE_MEMDESC &&
           (!lilac_tile_is_inside(operand, p->loop) || lilac_pipeline_load_of(p, operand) != NULL);
}

/* Is the product complete only behind additions to its accumulators? */
static bool has_additions(const pipeline *p, const lilac_tile_op *op) {
    lilac_plan_dot_problem problem;
    lilac_reason why;
    return !lilac_engine_dot_problem(&problem, op, p->target, &why) ||
           lilac_engine_imprecise_terms(op, &problem) != 0;
}

static bool can_fly(const pipeline *p, const lilac_tile_op *op) {
    return op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT && !has_additions(p, op) &&
           op->parent == p->loop->regions[0]->first && is_kept(p, op->operands[0].value) &&
           is_kept(p, op->operands[1].value);
}

/* Adds the products of a sum if they form a chain from carried value k to its next value. */
static void add_sum(pipeline *p, uint32_t k) {
    lilac_tile_value *value = lilac_tile_iteration_argument(p->loop, k);
    const uint32_t before = p->product_count;
    for (;;) {
        const lilac_tile_use *use = only_use(value);
        if (use == NULL) {
            break;
        }
        if (use->op == p->loop->regions[0]->first->last) {
            if (use->index == k && p->product_count > before) {
                p->sums[p->sum_count++] = (pipeline_sum){.carried = k, .last = value};
                return;
            }
            break;
        }
        if (use->index != 2 || !can_fly(p, use->op)) {
            break;
        }
        p->products[p->product_count++] = use->op;
        value = &use->op->results[0];
    }
    p->product_count = before;
}

/* Is it a product that delay_products can delay, of a tile in a ring? */
static bool is_delayed(const pipeline *p, const lilac_tile_op *op) {
    return lilac_engine_can_delay(p->loop, op) &&
           lilac_pipeline_load_of(p, op->operands[1].value) != NULL;
}

/* Registers of a thread for a tensor of this shape in f32. */
static uint32_t words_of_floats(const pipeline *p, const lilac_tile_type *type) {
    const uint32_t threads = p->target->num_warps * p->target->arch->warp_size;
    return (uint32_t)lilac_tile_element_count(type) / threads;
}

/* Do delayed products alone read the loaded tensor, as their second operand in memory? */
static bool feeds_delayed(const pipeline *p, const lilac_tile_value *value) {
    for (const lilac_tile_use *use = value->uses; use != NULL; use = use->next) {
        const lilac_tile_op *op = use->op;
        const bool view = op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC ||
                          op->code == LILAC_TILE_OP_TTG_MEMDESC_TRANS;
        if (view ? !feeds_delayed(p, &op->results[0]) : use->index != 1 || !is_delayed(p, op)) {
            return false;
        }
    }
    return value->uses != NULL;
}

/* Need addresses or masks of the copies loads? Their results would be needed for two iterations. */
static bool loads_addresses(const pipeline *p) {
    const lilac_tile_op *op = p->loop->regions[0]->first->first;
    while (op != NULL && !(op->code == LILAC_TILE_OP_TT_LOAD && lilac_pipeline_is_ahead(p, op))) {
        op = op->next;
    }
    return op != NULL;
}

/* The loads that can be copied late: all that delayed products read, and nothing else does. */
static void find_late_loads(pipeline *p) {
    const lilac_tile_block *body = p->loop->regions[0]->first;
    p->can_be_late = p->delays && p->box_count == 0 && !loads_addresses(p);
    for (const lilac_tile_op *op = body->first; p->can_be_late && op != NULL; op = op->next) {
        const pipeline_load *load =
            is_delayed(p, op) ? lilac_pipeline_load_of(p, op->operands[1].value) : NULL;
        p->can_be_late = load == NULL || feeds_delayed(p, &load->op->results[0]);
    }
    for (uint32_t i = 0; p->can_be_late && i < p->load_count; i++) {
        p->loads[i].late = feeds_delayed(p, &p->loads[i].op->results[0]);
    }
}

void lilac_pipeline_find_products(pipeline *p) {
    const lilac_tile_block *body = p->loop->regions[0]->first;
    const uint32_t carried = lilac_tile_carried_count(p->loop);
    uint32_t most = 0;
    for (const lilac_tile_op *op = body->first; op != NULL; op = op->next) {
        most += op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT;
    }
    p->products = lilac_arena_array(p->arena, lilac_tile_op *, most + 1);
    p->sums = lilac_arena_array(p->arena, pipeline_sum, carried + 1);
    p->product_count = p->sum_count = 0;
    for (uint32_t k = 0; most > 0 && k < carried; k++) {
        add_sum(p, k);
    }
    p->in_flight = p->product_count > 0 && p->product_count <= MOST_PENDING;
    for (lilac_tile_op *op = body->first; p->in_flight && op != NULL; op = op->next) {
        for (uint32_t i = 0; i < p->product_count; i++) {
            p->last_product = p->products[i] == op ? op : p->last_product;
        }
    }
    for (const lilac_tile_op *op = body->first; !p->in_flight && op != NULL; op = op->next) {
        if (is_delayed(p, op)) {
            p->delays = true; /* the first operand is carried in f32 */
            p->delayed_words += words_of_floats(p, op->operands[0].value->type);
        }
    }
    find_late_loads(p);
}

void lilac_pipeline_mark_delayed(const pipeline *p) {
    for (lilac_tile_op *op = p->loop->regions[0]->first->first; op != NULL; op = op->next) {
        if (is_delayed(p, op)) {
            lilac_engine_set_integer(p->module, op, "lilac.delayed", 1);
        }
    }
}

/* ---- the conditional ------------------------------------------------------------------------ */

static lilac_tile_op *make_yield(const pipeline *p, uint32_t count,
                                 lilac_tile_value *const *values) {
    lilac_tile_op *yield = lilac_tile_op_create(p->module, LILAC_TILE_OP_SCF_YIELD, count, values,
                                                0, NULL, 0, p->loop->location);
    yield->position = p->loop->position;
    return yield;
}

/* lower < upper */
static lilac_tile_value *make_condition(const pipeline *p) {
    lilac_tile_value *bounds[2] = {lilac_tile_lower_bound(p->loop),
                                   lilac_tile_upper_bound(p->loop)};
    return lilac_pipeline_compare(p, "slt", bounds[0], bounds[1], p->loop);
}

void lilac_pipeline_guard(pipeline *p) {
    lilac_tile_op *loop = p->loop;
    uint32_t count = 0;
    if (p->trip_count_known) {
        return;
    }
    lilac_tile_value *condition = make_condition(p);
    const lilac_tile_type **types =
        lilac_arena_array(p->arena, const lilac_tile_type *, loop->result_count + 1);
    lilac_tile_value **used =
        lilac_arena_array(p->arena, lilac_tile_value *, loop->result_count + 1);
    lilac_tile_value **inits =
        lilac_arena_array(p->arena, lilac_tile_value *, loop->result_count + 1);
    for (uint32_t i = 0; i < loop->result_count; i++) {
        if (loop->results[i].uses != NULL) {
            used[count] = &loop->results[i];
            types[count] = loop->results[i].type;
            inits[count++] = lilac_tile_init(loop, i);
        }
    }
    lilac_tile_op *guard = lilac_tile_op_create(p->module, LILAC_TILE_OP_SCF_IF, 1, &condition,
                                                count, types, 2, loop->location);
    guard->position = loop->position;
    for (uint32_t i = 0; i < count; i++) {
        guard->results[i].name = used[i]->name;
        lilac_tile_replace_uses(used[i], &guard->results[i]);
    }
    lilac_tile_insert_before(loop, guard);
    lilac_tile_block *then = lilac_tile_block_create(p->module, guard->regions[0]);
    lilac_tile_block *otherwise = lilac_tile_block_create(p->module, guard->regions[1]);
    lilac_tile_append(otherwise, make_yield(p, count, inits));
    lilac_tile_detach(loop);
    lilac_tile_append(then, loop);
    lilac_tile_append(then, make_yield(p, count, used));
    p->guarded = true;
}

/* ---- waits ---------------------------------------------------------------------------------- */

static void set_asynchronous(const pipeline *p, lilac_tile_op *product) {
    const lilac_tile_attribute attribute = {.kind = LILAC_TILE_ATTR_BOOL,
                                            .name =
                                                lilac_intern_string(p->module->context, "isAsync"),
                                            .type = lilac_tile_scalar(p->module, LILAC_I1),
                                            .integer = 1};
    lilac_tile_set_attribute(p->module, &product->attributes, &attribute);
}

/* A wait that hands on these values, detached. */
static lilac_tile_op *make_wait(const pipeline *p, uint32_t pending, lilac_tile_value **values) {
    const lilac_tile_type **types =
        lilac_arena_array(p->arena, const lilac_tile_type *, p->sum_count);
    for (uint32_t i = 0; i < p->sum_count; i++) {
        types[i] = values[i]->type;
    }
    lilac_tile_op *wait =
        lilac_tile_op_create(p->module, LILAC_TILE_OP_TTNG_WARP_GROUP_DOT_WAIT, p->sum_count,
                             values, p->sum_count, types, 0, p->loop->location);
    wait->position = p->loop->position;
    lilac_engine_set_integer(p->module, wait, "pendings", pending);
    return wait;
}

lilac_tile_op *lilac_pipeline_start_products(pipeline *p) {
    if (!p->in_flight) {
        return NULL;
    }
    lilac_tile_value **values = lilac_arena_array(p->arena, lilac_tile_value *, p->sum_count);
    for (uint32_t i = 0; i < p->product_count; i++) {
        set_asynchronous(p, p->products[i]);
    }
    for (uint32_t i = 0; i < p->sum_count; i++) {
        values[i] = p->sums[i].last;
    }
    lilac_tile_op *inside = make_wait(p, p->product_count, values);
    lilac_tile_insert_after(p->last_product, inside);
    for (uint32_t i = 0; i < p->sum_count; i++) {
        lilac_tile_set_next(p->loop, p->sums[i].carried, &inside->results[i]);
        values[i] = &p->loop->results[p->sums[i].carried];
    }
    lilac_tile_op *behind = make_wait(p, 0, values);
    for (uint32_t i = 0; i < p->sum_count; i++) {
        lilac_tile_replace_uses(values[i], &behind->results[i]);
        lilac_tile_set_operand(behind, i, values[i]);
    }
    lilac_tile_insert_after(p->loop, behind);
    return inside;
}
