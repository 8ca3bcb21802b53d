/* choose_warps: four warps or eight for a kernel with products of wgmma in loops.
 *
 * num_warps is the program's guess at how many threads share a tile. A warpgroup, four warps, computes
 * 64 rows of a product at a time; several divide the rows, and where there are none left the columns.
 * Let W be the most 32-bit words of tensors that are live in such a loop in a thread of four warps
 * (block_demand.h, before layouts are known), and m the fewest rows of a product:
 *
 *     m ≥ 128   eight if W + 2 F > 255: threads of four have no registers for what overlaps with products;
 *               four if W + F allows three resident blocks of four warps, which hide latencies from each
 *               other better than warps that share barriers; else what the program says
 *     m < 128   a second warpgroup divides columns, and both read all rows of A: four unless W + 2 F > 255.
 *               If products are operands of others, rows that are reduced or multiplied again are also
 *               exchanged between the warpgroups: four unless they spill, W + F > 255
 *
 * with the F registers that an assembler takes for addresses and temporary values
 * (LILAC_ENGINE_FREE_REGISTERS). Persistent programs, beside which no others are resident, keep eight.
 *
 * Where all products that start from 0, and are operands of others, have 32 columns or fewer, an iteration of one
 * block is short against the latencies between its products. Two blocks of four warps hide these from each other,
 * one of eight does not: four, asked for, stay four unless they spill, W + F > 255 (bench/results/decisions.md).
 * With one stage, an iteration waits for its loads, which only another block hides: where eight warps would divide
 * columns or have short iterations, four stay four unless W alone exceeds 255.
 *
 * One or two warps do not execute wgmma, and spill where four do not: they become four, or eight by the
 * table, if W is at least that of a tile of 64 × 64. More than eight leave a thread at most 128
 * registers: they become eight, or four by the table, if half of W and F are in 255.
 *
 * Times by the number of warps: bench/results/h200_warp_counts.md. */
#include "products/block_demand.h"
#include "products/dot_operands.h"

#include <lilac/bits.h>
#include <lilac/tile_loops.h>

enum {
    NARROW_BITS = 5, /* columns of a short iteration's products */
    FEW = 4,
    MANY = 8,
    ROW_BITS_OF_TWO_GROUPS = 7,
    BLOCKS_OF_FEW = 3,
    LEAST_WORDS = 32 /* for FEW warps in place of fewer */
};

typedef struct survey {
    const lilac_target *target;
    const lilac_tile_function *function;
    const lilac_tile_op *loop; /* the last one that was measured */
    uint32_t words, row_bits;  /* of a thread of FEW warps; of the product with the fewest rows */
    uint32_t column_bits;      /* of the widest product that starts from 0; 0: there is none */
    bool fits;                 /* wgmma computes all products of loops with both numbers of warps */
    bool chained;              /* products are operands of others */
    bool persistent;           /* such a loop is in one over the work of several programs */
    bool counts_threads;       /* inline assembly may depend on the number of threads */
} survey;

static bool is_wgmma(survey *s, const lilac_tile_op *product) {
    lilac_target with = *s->target;
    lilac_plan_dot_problem problem;
    lilac_matrix_shape shape;
    lilac_reason why;
    bool wgmma = true;
    for (with.num_warps = FEW; wgmma && with.num_warps <= MANY; with.num_warps *= 2) {
        wgmma = lilac_engine_dot_problem(&problem, product, &with, &why) &&
                lilac_plan_dot_choose_wgmma(&shape, &problem, &with);
    }
    s->row_bits = wgmma ? min_u32(s->row_bits, problem.m_bits) : s->row_bits;
    if (wgmma && lilac_tile_is_zero(product->operands[2].value)) {
        s->column_bits = max_u32(s->column_bits, problem.n_bits);
    }
    return wgmma;
}

static void look_at(void *data, lilac_tile_op *op) {
    survey *s = data;
    s->counts_threads |= op->code == LILAC_TILE_OP_TT_ELEMENTWISE_INLINE_ASM &&
                         lilac_tile_find_integer(&op->attributes, "pure", 0) == 0;
    const lilac_tile_op *loop = lilac_dot_is_product(op) ? lilac_dot_loop(op, NULL) : NULL;
    if (loop == NULL) {
        return;
    }
    s->fits = s->fits && is_wgmma(s, op);
    s->chained |= lilac_dot_is_chained(op);
    if (s->fits && loop != s->loop) {
        const uint32_t threads = FEW * s->target->arch->warp_size;
        s->loop = loop;
        s->persistent |= lilac_engine_is_persistent(loop);
        s->words = max_u32(s->words, lilac_engine_live_words_of(s->function, loop, threads));
    }
}

static bool divides_columns(const survey *s) {
    return s->row_bits < ROW_BITS_OF_TWO_GROUPS;
}

static bool is_narrow(const survey *s) {
    return s->column_bits > 0 && s->column_bits <= NARROW_BITS;
}

static bool needs_many(const survey *s, lilac_reason *why) {
    const bool waits = s->target->num_stages == 1, few = divides_columns(s) || is_narrow(s);
    const uint32_t parts = waits && few ? 0 : s->chained && few ? 1 : 2;
    (void)lilac_layout_refuse(why, "tensors take %u registers of each thread of %u warps", s->words,
                              FEW);
    return s->words + parts * LILAC_ENGINE_FREE_REGISTERS > LILAC_MOST_REGISTERS;
}

static bool suits_few(const survey *s, lilac_reason *why) {
    if (divides_columns(s)) {
        const bool suits = !s->persistent && !needs_many(s, why);
        (void)lilac_layout_refuse(why, "%u warps compute all %u rows of a product", FEW,
                                  1U << s->row_bits);
        return suits;
    }
    (void)lilac_layout_refuse(why, "%u blocks of %u warps have enough registers", BLOCKS_OF_FEW,
                              FEW);
    return !s->persistent && s->words + LILAC_ENGINE_FREE_REGISTERS <=
                                 lilac_registers_for_blocks(s->target->arch, FEW, BLOCKS_OF_FEW);
}

/* For what asks for FEW warps or less, or for MANY or more. */
static uint32_t of_few(const survey *s, lilac_reason *why) {
    if (needs_many(s, why)) {
        return MANY;
    }
    (void)lilac_layout_refuse(why, "%u warps compute products by wgmma", FEW);
    return s->words >= LEAST_WORDS ? FEW : s->target->num_warps;
}

static uint32_t of_many(const survey *s, lilac_reason *why) {
    const uint32_t asked = s->target->num_warps;
    if (suits_few(s, why)) {
        return FEW;
    }
    (void)lilac_layout_refuse(why, "threads of %u warps have at most %u registers", asked,
                              lilac_registers_for_blocks(s->target->arch, asked, 1));
    return !s->persistent && s->words / 2 + LILAC_ENGINE_FREE_REGISTERS <= LILAC_MOST_REGISTERS
               ? MANY
               : asked;
}

static uint32_t choose(lilac_tile_function *function, const lilac_target *target,
                       lilac_reason *why) {
    survey s = {.target = target, .function = function, .row_bits = UINT32_MAX, .fits = true};
    lilac_tile_number(function);
    lilac_tile_walk(function->body, look_at, &s);
    if (s.loop == NULL || !s.fits || s.counts_threads) {
        return target->num_warps;
    }
    return target->num_warps <= FEW ? of_few(&s, why) : of_many(&s, why);
}

uint32_t lilac_engine_choose_warps(lilac_tile_module *module, const lilac_target *target,
                                   lilac_reason *why) {
    lilac_tile_function *kernel = module->functions;
    const bool free = lilac_arch_has(target->arch, LILAC_HAS_WGMMA) && !target->keep_warps &&
                      target->num_ctas == 1 &&
                      lilac_tile_find(&module->attributes, "ttg.num-warps") == NULL;
    return free && kernel != NULL && kernel->next == NULL && kernel->body != NULL
               ? choose(kernel, target, why)
               : target->num_warps;
}
