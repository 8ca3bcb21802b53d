/* few_iterations: from how many iterations on a kernel whose loads describe_loads has described is
 * faster than the plain kernel.
 *
 * Where each program has a multiprocessor for itself, a launch takes as long as one block, and few
 * iterations take little more time than the first data. With tensor copies these come later: the
 * mbarriers are initialised and the maps are fetched first, and the machine code is longer where
 * blocks may divide the sums. In the plain kernel each thread starts its own copies, 16 bytes at a
 * time, in front of the loop for all stages. That takes longer if there are many:
 *
 *     vectors = bytes of an iteration's loads / 16 / threads
 *
 *     products by wgmma    vectors <= 8     faster with maps from 6 iterations on
 *     products by mma      vectors <= 12    faster with maps from 16 iterations on, which is the
 *                                           longest loop that was measured
 *     more vectors                          always faster with maps
 *
 * With more programs, the instructions of the copies of all resident blocks matter, and maps are
 * faster. Measured on an H200: bench/results/h200_few_iterations.md. The attribute
 * lilac.launch_least of the function says how launchers compute the number of iterations
 * (write_launch_maps.c). */
#include "launch_maps/few_iterations.h"

#include "launch_maps/write_launch_maps.h"
#include "products/dot_operands.h"

#include <lilac/tile_loops.h>

enum {
    VECTOR = 16,
    WARP = 32,
    MOST_VECTORS_WGMMA = 8,
    MOST_VECTORS_MMA = 12,
    LEAST_WGMMA = 6,
    LEAST_MMA = 16
};

typedef struct loop_content {
    const lilac_tile_op *product;
    uint32_t products;
    uint64_t bytes;
} loop_content;

static void look_at(void *data, lilac_tile_op *op) {
    loop_content *x = data;
    if (lilac_dot_is_product(op)) {
        x->product = op;
        x->products++;
    } else if (op->code == LILAC_TILE_OP_TT_LOAD || op->code == LILAC_TILE_OP_TT_DESCRIPTOR_LOAD) {
        const lilac_tile_type *type = op->results[0].type;
        x->bytes += (uint64_t)lilac_tile_element_count(type) * lilac_tile_element_bits(type) / 8;
    }
}

/* The least number of iterations with which maps are faster; 0: they always are. */
static uint32_t least_of(const lilac_tile_op *loop, const lilac_target *target) {
    loop_content x = {0};
    lilac_plan_dot_problem problem;
    lilac_matrix_shape shape;
    lilac_reason why;
    lilac_tile_walk(loop->regions[0], look_at, &x);
    if (x.products != 1 || x.product->code != LILAC_TILE_OP_TT_DOT ||
        !lilac_engine_dot_problem(&problem, x.product, target, &why)) {
        return 0;
    }
    const bool wgmma = lilac_plan_dot_choose_wgmma(&shape, &problem, target);
    const uint64_t vectors = x.bytes / VECTOR / (WARP * target->num_warps);
    if (vectors > (wgmma ? MOST_VECTORS_WGMMA : MOST_VECTORS_MMA)) {
        return 0;
    }
    return wgmma ? LEAST_WGMMA : LEAST_MMA;
}

void lilac_few_iterations(lilac_tile_module *module, lilac_tile_function *function,
                          const lilac_target *target, lilac_arena *arena) {
    const lilac_tile_op *loop = lilac_dot_only_loop(function);
    const uint32_t least = loop != NULL ? least_of(loop, target) : 0;
    lilac_launch_iterations iterations = {0};
    uint64_t known;
    int64_t step;
    if (least > 0 && lilac_tile_find(&loop->attributes, "unsignedCmp") == NULL &&
        !lilac_tile_trip_count(loop, &known) && lilac_tile_constant(lilac_tile_step(loop), &step) &&
        step > 0 && lilac_launch_iterations_of(&iterations, loop, step, arena)) {
        lilac_launch_least_put(module, function, &iterations, least);
    }
}
