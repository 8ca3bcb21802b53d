/* encoding: Intel's matrix unit (#ttig.dpas) and its operands.
 *
 * One instruction is repeatCount × executionSize results from operands of systolicDepth ×
 * opsPerChan along K:
 *
 *                                 executionSize = 16
 *                            <- - - - - - - - - - - - ->
 *                            t0  t1  …              t15   |
 *      B                     …   opsPerChan rows a lane   | K = systolicDepth · opsPerChan
 *                            t16 …                        |
 *      A   ( K = 16 )
 *      t0  t1 …  t15         t0  t1  …              t15
 *      t16 …                 t16 …                        repeatCount = 8
 *      t0  …                 t0  …
 *
 * A lane's elements of A are 16 bits wide at least: two of K when opsPerChan is 4. Lanes go along
 * the rows, then on to the next ones, then registers. Instructions are repeated in a thread by
 * repCluster, then over warps (the last dimension the fastest; along K they hold copies), then by
 * registers: an operand's along K first.
 */
#include "matrix.h"

#include <string.h>

/* ---- reading and printing --------------------------------------------------------------- */

enum { REPEAT, DEPTH, EXECUTION, OPERATIONS, THREADS, WARPS, CLUSTER, A, B, C, FIELDS };

/* Elements of A that a lane packs. */
static uint32_t packed(const lilac_encoding *dpas) {
    return dpas->as.intel_dpas.ops_per_channel == 4 ? 2 : 1;
}

static uint32_t k_of(const lilac_encoding *dpas) {
    return dpas->as.intel_dpas.systolic_depth * dpas->as.intel_dpas.ops_per_channel;
}

/* The parameters must describe an instruction that a warp fills exactly. */
static bool check_instruction(const lilac_encoding *dpas, lilac_encoding_fault *fault) {
    static const char id[] = "layout-instruction-shape";
    uint32_t repeat = dpas->as.intel_dpas.repeat_count;
    uint32_t depth = dpas->as.intel_dpas.systolic_depth;
    uint32_t execution = dpas->as.intel_dpas.execution_size;
    uint32_t operations = dpas->as.intel_dpas.ops_per_channel;
    uint32_t threads = dpas->as.intel_dpas.threads_per_warp;
    if (!lilac_encoding_is_matrix(dpas, fault)) {
        return false;
    }
    if (repeat > 8) {
        return lilac_encoding_find_fault(fault, REPEAT, id, "repeatCount is 1, 2, 4 or 8, not %u",
                                         repeat);
    }
    if (depth != 8) {
        return lilac_encoding_find_fault(fault, DEPTH, id, "systolicDepth is 8, not %u", depth);
    }
    if (execution != 8 && execution != 16) {
        return lilac_encoding_find_fault(fault, EXECUTION, id, "executionSize is 8 or 16, not %u",
                                         execution);
    }
    if (operations > 4) {
        return lilac_encoding_find_fault(fault, OPERATIONS, id, "opsPerChan is 1, 2 or 4, not %u",
                                         operations);
    }
    uint32_t row_of_a = k_of(dpas) / packed(dpas);
    uint32_t shorter = execution < row_of_a ? execution : row_of_a;
    uint32_t longer = execution < row_of_a ? row_of_a : execution;
    if (threads < longer || threads > 32) {
        return lilac_encoding_find_fault(fault, THREADS, id,
                                         "threadsPerWarp is %u to 32 for rows of %u elements, not "
                                         "%u",
                                         longer, longer, threads);
    }
    if (threads / shorter > repeat) {
        return lilac_encoding_find_fault(fault, THREADS, id,
                                         "%u lanes hold %u rows, more than repeatCount = %u",
                                         threads, threads / shorter, repeat);
    }
    return true;
}

/* The shapes of the operands and the result in a thread follow from the other parameters; Intel's
 * printer shows them. */
static bool check_shown(lilac_encoding_reader *r, const lilac_encoding_param *param, uint32_t rows,
                        uint32_t columns) {
    const lilac_encoding_list *shown = param->into;
    if (!param->given) {
        return true;
    }
    uint32_t n = shown->count;
    bool same = n >= 2 && shown->at[n - 2] == rows && shown->at[n - 1] == columns;
    for (uint32_t i = 0; i + 2 < n; i++) {
        same = same && shown->at[i] == 1;
    }
    return same ||
           lilac_scanner_refuse(r->scanner, param->position, "layout-instruction-shape",
                                "'%s' is %ux%u by the other fields", param->name, rows, columns);
}

bool lilac_encoding_intel_dpas_read(lilac_encoding_reader *r, lilac_encoding *encoding) {
    lilac_encoding_rank rank = {false, 0};
    lilac_encoding_list a = {0, {0}}, b = {0, {0}}, c = {0, {0}};
    lilac_encoding_param params[FIELDS] = {
        LILAC_ENCODING_REQUIRED("repeatCount", lilac_encoding_read_size,
                                &encoding->as.intel_dpas.repeat_count),
        LILAC_ENCODING_REQUIRED("systolicDepth", lilac_encoding_read_size,
                                &encoding->as.intel_dpas.systolic_depth),
        LILAC_ENCODING_REQUIRED("executionSize", lilac_encoding_read_size,
                                &encoding->as.intel_dpas.execution_size),
        LILAC_ENCODING_REQUIRED("opsPerChan", lilac_encoding_read_size,
                                &encoding->as.intel_dpas.ops_per_channel),
        LILAC_ENCODING_REQUIRED("threadsPerWarp", lilac_encoding_read_size,
                                &encoding->as.intel_dpas.threads_per_warp),
        LILAC_ENCODING_REQUIRED("warpsPerCTA", lilac_encoding_read_sizes,
                                encoding->as.intel_dpas.warps_per_cta),
        LILAC_ENCODING_REQUIRED("repCluster", lilac_encoding_read_sizes,
                                encoding->as.intel_dpas.rep_cluster),
        LILAC_ENCODING_OPTIONAL("A", lilac_encoding_read_sizes_of_any_rank, &a),
        LILAC_ENCODING_OPTIONAL("B", lilac_encoding_read_sizes_of_any_rank, &b),
        LILAC_ENCODING_OPTIONAL("C", lilac_encoding_read_sizes_of_any_rank, &c),
    };
    if (!lilac_encoding_read_attribute(r, encoding->position, params, FIELDS, &rank)) {
        return false;
    }
    encoding->rank = rank.rank;
    lilac_encoding_fault fault;
    if (!check_instruction(encoding, &fault)) {
        return lilac_encoding_refuse_fault(r, encoding, params, &fault);
    }
    uint32_t m =
        encoding->as.intel_dpas.repeat_count * encoding->as.intel_dpas.rep_cluster[rank.rank - 2];
    uint32_t n =
        encoding->as.intel_dpas.execution_size * encoding->as.intel_dpas.rep_cluster[rank.rank - 1];
    return check_shown(r, &params[A], m, k_of(encoding)) &&
           check_shown(r, &params[B], k_of(encoding), n) && check_shown(r, &params[C], m, n);
}

bool lilac_encoding_intel_dpas(lilac_encoding *result, uint32_t rank, uint32_t repeat_count,
                               uint32_t execution_size, uint32_t ops_per_channel,
                               uint32_t threads_per_warp, const uint32_t *warps_per_cta,
                               const uint32_t *rep_cluster, lilac_reason *why) {
    lilac_encoding made;
    lilac_encoding_fault fault;
    lilac_encoding_begin(&made, LILAC_ENCODING_INTEL_DPAS, rank);
    made.as.intel_dpas.repeat_count = repeat_count;
    made.as.intel_dpas.systolic_depth = 8;
    made.as.intel_dpas.execution_size = execution_size;
    made.as.intel_dpas.ops_per_channel = ops_per_channel;
    made.as.intel_dpas.threads_per_warp = threads_per_warp;
    memcpy(made.as.intel_dpas.warps_per_cta, warps_per_cta, rank * sizeof *warps_per_cta);
    memcpy(made.as.intel_dpas.rep_cluster, rep_cluster, rank * sizeof *rep_cluster);
    return lilac_encoding_give(result, &made, check_instruction(&made, &fault) ? NULL : &fault,
                               why);
}

void lilac_encoding_intel_dpas_print(lilac_text *out, const lilac_encoding *encoding) {
    lilac_text_printf(out,
                      "<{repeatCount = %u, systolicDepth = %u, executionSize = %u, opsPerChan = "
                      "%u, threadsPerWarp = %u",
                      encoding->as.intel_dpas.repeat_count, encoding->as.intel_dpas.systolic_depth,
                      encoding->as.intel_dpas.execution_size,
                      encoding->as.intel_dpas.ops_per_channel,
                      encoding->as.intel_dpas.threads_per_warp);
    lilac_encoding_put_list(out, ", warpsPerCTA = ", encoding->as.intel_dpas.warps_per_cta,
                            encoding->rank);
    lilac_encoding_put_list(out, ", repCluster = ", encoding->as.intel_dpas.rep_cluster,
                            encoding->rank);
    lilac_text_puts(out, "}>");
}

/* ---- layouts ---------------------------------------------------------------------------- */

/* `lanes` on rows of `row` elements: along `inner`, what is left along `outer`, where registers
 * then complete `rows`. */
static void place_rows(lilac_encoding_tile *tile, uint32_t lanes, uint32_t inner, uint32_t row,
                       uint32_t outer, uint32_t rows) {
    uint32_t at_once = lanes / row;
    lilac_encoding_tile_step(tile, LILAC_ENCODING_LANE, inner, lilac_encoding_log2(row));
    lilac_encoding_tile_step(tile, LILAC_ENCODING_LANE, outer, lilac_encoding_log2(at_once));
    lilac_encoding_tile_step(tile, LILAC_ENCODING_REGISTER, outer,
                             lilac_encoding_log2(rows / at_once));
}

bool lilac_encoding_intel_dpas_layout(lilac_context *context, lilac_layout *result,
                                      const lilac_encoding *encoding,
                                      const lilac_encoding_shape *shape) {
    const uint32_t *cluster = encoding->as.intel_dpas.rep_cluster;
    uint32_t m = encoding->rank - 2, n = encoding->rank - 1;
    uint32_t order[3] = {n, m, 0};
    lilac_encoding_tile tile;
    lilac_encoding_tile_init(&tile, encoding->rank);
    place_rows(&tile, encoding->as.intel_dpas.threads_per_warp, n,
               encoding->as.intel_dpas.execution_size, m, encoding->as.intel_dpas.repeat_count);
    lilac_encoding_tile_step(&tile, LILAC_ENCODING_REGISTER, n, lilac_encoding_log2(cluster[n]));
    lilac_encoding_tile_step(&tile, LILAC_ENCODING_REGISTER, m, lilac_encoding_log2(cluster[m]));
    lilac_encoding_tile_sizes(&tile, LILAC_ENCODING_WARP, encoding->as.intel_dpas.warps_per_cta,
                              order, -1);
    return lilac_encoding_tile_fit(context, result, encoding, &tile, shape, order, NULL);
}

/* kWidth is what the instruction packs in a lane. */
static bool check_k_width(lilac_context *context, const lilac_encoding *dot) {
    uint32_t operations = dot->as.dot.parent->as.intel_dpas.ops_per_channel;
    uint32_t width = dot->as.dot.operand == 0 && operations > 1 ? operations / 2 : operations;
    if (dot->as.dot.k_width == width) {
        return true;
    }
    return lilac_encoding_refuse(context, dot, "layout-dot-k-width",
                                 "operand %u of dpas with opsPerChan = %u has kWidth %u, not %u",
                                 dot->as.dot.operand, operations, width, dot->as.dot.k_width);
}

bool lilac_encoding_intel_dpas_dot_layout(lilac_context *context, lilac_layout *result,
                                          const lilac_encoding *dot,
                                          const lilac_encoding_shape *shape) {
    const lilac_encoding *parent = dot->as.dot.parent;
    uint32_t threads = parent->as.intel_dpas.threads_per_warp;
    uint32_t m = dot->rank - 2, n = dot->rank - 1; /* the last two dimensions */
    uint32_t k = dot->as.dot.operand == 0 ? n : m, other = dot->as.dot.operand == 0 ? m : n;
    uint32_t order[3] = {k, other, 0}, warp_order[3] = {n, m, 0};
    lilac_encoding_tile tile;
    if (!check_k_width(context, dot)) {
        return false;
    }
    lilac_encoding_tile_init(&tile, dot->rank);
    if (dot->as.dot.operand == 0) {
        lilac_encoding_tile_step(&tile, LILAC_ENCODING_REGISTER, k,
                                 lilac_encoding_log2(packed(parent)));
        place_rows(&tile, threads, k, k_of(parent) / packed(parent), other,
                   parent->as.intel_dpas.repeat_count);
    } else {
        lilac_encoding_tile_step(&tile, LILAC_ENCODING_REGISTER, k,
                                 lilac_encoding_log2(parent->as.intel_dpas.ops_per_channel));
        place_rows(&tile, threads, other, parent->as.intel_dpas.execution_size, k,
                   parent->as.intel_dpas.systolic_depth);
    }
    lilac_encoding_tile_step(&tile, LILAC_ENCODING_REGISTER, other,
                             lilac_encoding_log2(parent->as.intel_dpas.rep_cluster[other]));
    lilac_encoding_tile_sizes(&tile, LILAC_ENCODING_WARP, parent->as.intel_dpas.warps_per_cta,
                              warp_order, (int)k);
    return lilac_encoding_tile_fit(context, result, dot, &tile, shape, order, NULL);
}
