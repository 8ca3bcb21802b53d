/* pipeline_loops: the operands of matrix products are copied to shared memory some iterations ahead.
 *
 *     scf.for … iter_args(%c = %x, %pa = %a0, %pb = %b0) {
 *       %a = tt.load %pa                                     %ring_a, %ring_b = ttg.local_alloc
 *       %b = tt.load %pb                                     copies for the first D iterations
 *       %am = ttg.local_alloc %a                             scf.for … {
 *       %bm = ttg.local_alloc %b                    →          ttg.async_wait {num = D - 1}
 *       %d = ttng.warp_group_dot %am, %bm, %c                  copies for iteration i + D
 *       scf.yield %d, %pa + …, %pb + …                         %d = ttng.warp_group_dot
 *     }                                                            %ring_a[i], %ring_b[i], %c {isAsync}
 *                                                              ttng.warp_group_dot_wait {pendings = 1}
 *                                                            }
 *                                                            ttng.warp_group_dot_wait {pendings = 0}
 *
 * Terms. A *ring* is an allocation of B buffers; iteration i uses buffer i mod B, its *slot*. The
 * *distance* D is the number of iterations between the start of a copy and its use. pipeline/depth.c
 * chooses D and B from num_stages (the attribute tt.num_stages of the loop, else the option), the
 * shared memory and the registers; pipeline/loads.c the loads; pipeline/products.c the products that
 * stay in flight over the back edge; pipeline/rings.c rewrites.
 *
 * One barrier of the block an iteration orders everything: the lowering puts one behind the wait for
 * the copies, before the next copies start (src/simt/passes/opt_barriers.c removes the others). A copy for
 * iteration i + D overwrites the buffer that iteration i + D − B read. All warps have completed these
 * reads before the barrier of iteration i: D + 1 buffers suffice, and D + 2 for products in flight,
 * whose reads complete one iteration later.
 *
 * The innermost scf.for with a positive constant step is considered. It stays as it is with fewer than
 * two stages or iterations, and if its body has asynchronous operations, barriers, assertions, prints
 * or calls. The attributes tt.disallow_acc_multi_buffer, tt.flatten and tt.warp_specialize change
 * nothing here: accumulators are never copied, and results do not depend on the schedule. */
#include "pipeline/pipeline.h"

#include "layouts/assign.h"

/* What no body may do: effects whose order with the copies matters, or that the host observes. */
enum {
    FOREIGN = LILAC_TILE_TENSOR_MEMORY | LILAC_TILE_BARRIER | LILAC_TILE_COPIES |
              LILAC_TILE_STORES | LILAC_TILE_OUTPUT | LILAC_TILE_TEXT
};

typedef struct body_summary {
    bool loops, foreign;
} body_summary;

static void add_operation(void *data, lilac_tile_op *op) {
    body_summary *sum = data;
    sum->loops |= lilac_tile_is_loop(op);
    if (op->region_count > 0) {
        return; /* the walk visits what is in it */
    }
    const lilac_tile_effect_summary effects = lilac_tile_summarize_effects(op);
    sum->foreign |= ((effects.reads | effects.writes) & FOREIGN) != 0 || effects.waits != 0 ||
                    op->code == LILAC_TILE_OP_TTG_LOCAL_BARRIER ||
                    lilac_tile_find_integer(&op->attributes, "isAsync", 0) != 0;
}

/* The number of stages; below 2: the loop is not pipelined. */
static uint32_t stages_of(const pipeline *p) {
    const lilac_tile_op *loop = p->loop;
    lilac_schedule asked;
    if (lilac_engine_asked(&asked, loop) && asked.has[LILAC_SCHEDULE_DISTANCE]) {
        return asked.values[LILAC_SCHEDULE_DISTANCE] + 1;
    }
    const int64_t stages =
        lilac_tile_find_integer(&loop->attributes, "tt.num_stages", p->target->num_stages);
    return stages < 2 ? 1 : stages > UINT8_MAX ? UINT8_MAX : (uint32_t)stages;
}

/* Is the distance of most_stages iterations a positive number of the counter's type? */
static bool is_counted(pipeline *p, uint32_t stages) {
    const lilac_tile_type *type = lilac_tile_induction_variable(p->loop)->type;
    const uint32_t bits = lilac_tile_element_bits(type);
    p->trip_count_known = lilac_tile_trip_count(p->loop, &p->trip_count);
    return (bits == 32 || bits == 64) && lilac_tile_constant(lilac_tile_step(p->loop), &p->step) &&
           p->step > 0 && p->step <= (INT64_MAX >> (64 - bits)) / stages &&
           (!p->trip_count_known || p->trip_count > 1);
}

static bool has_inner_loop(const lilac_tile_block *body) {
    for (const lilac_tile_op *op = body->first; op != NULL; op = op->next) {
        if (lilac_tile_is_loop(op)) {
            return true;
        }
    }
    return false;
}

static bool visit_loop(pipeline *p) {
    const lilac_tile_region *body = p->loop->regions[0];
    body_summary sum = {false, false};
    const uint32_t stages = stages_of(p);
    if (body->first == NULL || body->first->next != NULL || has_inner_loop(body->first) ||
        stages < 2 || !is_counted(p, stages)) {
        return false;
    }
    lilac_tile_walk(p->loop->regions[0], add_operation, &sum);
    if (sum.loops || sum.foreign || !lilac_pipeline_find_loads(p)) {
        return false;
    }
    lilac_pipeline_find_products(p);
    if (!lilac_pipeline_choose_depth(p, stages)) {
        return false;
    }
    lilac_pipeline_rewrite(p);
    return true;
}

static bool walk(pipeline *outer, lilac_tile_region *region) {
    bool changed = false;
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->first, *next; op != NULL; op = next) {
            next = op->next;
            for (uint32_t r = 0; r < op->region_count; r++) {
                changed |= walk(outer, op->regions[r]);
            }
            if (op->code == LILAC_TILE_OP_SCF_FOR) {
                pipeline p = *outer;
                p.loop = op;
                changed |= visit_loop(&p);
                outer->refused |= p.refused;
            }
        }
    }
    return changed;
}

bool lilac_engine_pipeline_loops(lilac_tile_module *module, const lilac_target *target,
                                 bool *changed) {
    bool good = true;
    *changed = false;
    if (!lilac_arch_has(target->arch, LILAC_HAS_CP_ASYNC)) {
        return true;
    }
    for (lilac_tile_function *function = module->functions; good && function != NULL;
         function = function->next) {
        pipeline p = {.module = module,
                      .function = function,
                      .target = target,
                      .arena = lilac_arena_create()};
        if (function->body != NULL && walk(&p, function->body)) {
            *changed = true;
            good = lilac_assign_memory_layouts(function, target, changed);
            lilac_tile_number(function);
        }
        good = good && !p.refused;
        lilac_arena_destroy(p.arena);
    }
    return good;
}
