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
#include "internal.h"

#include <inttypes.h>
#include <string.h>

/* ---- reading and printing --------------------------------------------------------------- */

static uint32_t smaller(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* Elements of A that a lane packs. */
static uint32_t packed(const lilac_encoding *dpas) {
    return dpas->as.intel_dpas.ops_per_channel == 4 ? 2 : 1;
}

static uint32_t k_of(const lilac_encoding *dpas) {
    return dpas->as.intel_dpas.systolic_depth * dpas->as.intel_dpas.ops_per_channel;
}

/* The parameters must describe an instruction that a warp fills exactly. */
static bool check_instruction(lilac_encoding_reader *r, const lilac_encoding *dpas,
                              const lilac_encoding_param *params) {
    uint32_t repeat = dpas->as.intel_dpas.repeat_count;
    uint32_t execution = dpas->as.intel_dpas.execution_size;
    uint32_t operations = dpas->as.intel_dpas.ops_per_channel;
    uint32_t threads = dpas->as.intel_dpas.threads_per_warp;
    if (repeat > 8)
        return lilac_encoding_refuse_at(r, params[0].position, "layout-instruction-shape",
                                        "repeatCount is 1, 2, 4 or 8, not %u", repeat);
    if (dpas->as.intel_dpas.systolic_depth != 8)
        return lilac_encoding_refuse_at(r, params[1].position, "layout-instruction-shape",
                                        "systolicDepth is 8, not %u",
                                        dpas->as.intel_dpas.systolic_depth);
    if (execution != 8 && execution != 16)
        return lilac_encoding_refuse_at(r, params[2].position, "layout-instruction-shape",
                                        "executionSize is 8 or 16, not %u", execution);
    if (operations > 4)
        return lilac_encoding_refuse_at(r, params[3].position, "layout-instruction-shape",
                                        "opsPerChan is 1, 2 or 4, not %u", operations);
    if (threads < execution || threads < k_of(dpas) / packed(dpas) || threads > 32)
        return lilac_encoding_refuse_at(r, params[4].position, "layout-instruction-shape",
                                        "a row of %u elements is not held by %u lanes",
                                        threads < execution ? execution : k_of(dpas) / packed(dpas),
                                        threads);
    uint32_t row = smaller(execution, k_of(dpas) / packed(dpas));
    if (threads / row > repeat)
        return lilac_encoding_refuse_at(r, params[4].position, "layout-instruction-shape",
                                        "%u lanes hold %u rows, more than repeatCount = %u",
                                        threads, threads / row, repeat);
    return true;
}

/* The shapes of the operands and the result in a thread follow from the other parameters; Intel's
 * printer shows them. */
static bool check_shown(lilac_encoding_reader *r, const lilac_encoding_param *param, uint32_t rows,
                        uint32_t columns) {
    const lilac_encoding_list *shown = param->into;
    if (!param->given)
        return true;
    uint32_t n = shown->count;
    bool same = n >= 2 && shown->at[n - 2] == rows && shown->at[n - 1] == columns;
    for (uint32_t i = 0; i + 2 < n; i++)
        same = same && shown->at[i] == 1;
    return same || lilac_encoding_refuse_at(r, param->position, "layout-instruction-shape",
                                            "'%s' is %ux%u by the other fields", param->name, rows,
                                            columns);
}

bool lilac_encoding_intel_dpas_read(lilac_encoding_reader *r, lilac_encoding *encoding) {
    lilac_encoding_rank rank = {false, 0};
    lilac_encoding_list a = {0, {0}}, b = {0, {0}}, c = {0, {0}};
    lilac_encoding_param params[] = {
        {.name = "repeatCount",
         .read = lilac_encoding_read_size,
         .into = &encoding->as.intel_dpas.repeat_count},
        {.name = "systolicDepth",
         .read = lilac_encoding_read_size,
         .into = &encoding->as.intel_dpas.systolic_depth},
        {.name = "executionSize",
         .read = lilac_encoding_read_size,
         .into = &encoding->as.intel_dpas.execution_size},
        {.name = "opsPerChan",
         .read = lilac_encoding_read_size,
         .into = &encoding->as.intel_dpas.ops_per_channel},
        {.name = "threadsPerWarp",
         .read = lilac_encoding_read_size,
         .into = &encoding->as.intel_dpas.threads_per_warp},
        {.name = "warpsPerCTA",
         .read = lilac_encoding_read_sizes,
         .into = encoding->as.intel_dpas.warps_per_cta},
        {.name = "repCluster",
         .read = lilac_encoding_read_sizes,
         .into = encoding->as.intel_dpas.rep_cluster},
        {.name = "A", .read = lilac_encoding_read_sizes_of_any_rank, .into = &a, .optional = true},
        {.name = "B", .read = lilac_encoding_read_sizes_of_any_rank, .into = &b, .optional = true},
        {.name = "C", .read = lilac_encoding_read_sizes_of_any_rank, .into = &c, .optional = true},
    };
    if (!lilac_encoding_read_attribute(r, encoding->position, params,
                                       sizeof params / sizeof params[0], &rank))
        return false;
    encoding->rank = rank.rank;
    if (rank.rank != 2 && rank.rank != 3)
        return lilac_encoding_refuse_at(r, encoding->position, "layout-rank",
                                        "layouts of kind '#ttig.dpas' have 2 or 3 dimensions, not "
                                        "%u",
                                        rank.rank);
    if (!check_instruction(r, encoding, params))
        return false;
    uint32_t m =
        encoding->as.intel_dpas.repeat_count * encoding->as.intel_dpas.rep_cluster[rank.rank - 2];
    uint32_t n =
        encoding->as.intel_dpas.execution_size * encoding->as.intel_dpas.rep_cluster[rank.rank - 1];
    return check_shown(r, &params[7], m, k_of(encoding)) &&
           check_shown(r, &params[8], k_of(encoding), n) && check_shown(r, &params[9], m, n);
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
    if (dot->as.dot.k_width == width)
        return true;
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
    if (!check_k_width(context, dot))
        return false;
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
