/* ttng.warp_group_dot: products by wgmma. B is in shared memory, A there or in registers.
 *
 *     barrier           what other threads wrote to the operands' memory is there
 *     wgmma.fence       the accumulators are as the instructions before left them
 *     wgmma …           one for each step of K and each block of D
 *     wgmma.commit
 *     wgmma.wait        unless the operation is asynchronous; ttng.warp_group_dot_wait follows then
 *
 * A limit of the terms that wgmma may add (lilac_engine_imprecise_terms) divides the steps into
 * groups; each sum of a block starts from 0, is waited for, and is added to the accumulators.
 *
 * What ordinary stores wrote must be visible to the async proxy: ttng.fence_async_shared after
 * them. */
#include "executed_plans.h"
#include "matrix/fragments.h"
#include "memory/descriptor.h"
#include "operations.h"

#include <lilac/simt_matrix.h>

enum {
    MOST_ACCUMULATORS = 128,
    MOST_SHARED_DESCRIPTORS =
        4, /* products of a block: an assembler has 63 uniform registers, a product 8 descriptors */
    MOST_EXACT_COLUMNS = 128, /* of sums that are added in f32, which take registers of their own */
    WORDS = 4,
    LANE_BITS = 5
};

/* An operand in shared memory: descriptors of one block and one step differ by constants. */
typedef struct memory_operand {
    lilac_plan_dot_memory plan;
    lilac_simt_value
        descriptor;      /* of the warp's own row (column) 0 and inner index 0; 0: registers */
    uint32_t begin, end; /* bytes of the allocation; both 0: registers */
} memory_operand;

typedef struct product {
    lilac_lower_dot dot;
    memory_operand operands[2];
    lilac_simt_matrix_payload payload;
    lilac_simt_value accumulate; /* of the first step */
    bool copies;                 /* the words of A may be values that a loop carries */
    lilac_simt_value base;       /* of shared memory */
    uint32_t exact_steps;        /* steps that wgmma may add; 0: all */
} product;

/* ---- operands in shared memory -------------------------------------------------------------- */

/* The descriptor of the warp's part of an operand. */
static lilac_simt_value describe(const product *p, uint32_t operand,
                                 const lilac_lower_memory *memory) {
    lilac_lowering *l = p->dot.l;
    lilac_simt_builder *b = &l->builder;
    const lilac_layout_columns *d = &p->dot.d->view->columns;
    const memory_operand *o = &p->operands[operand];
    uint64_t columns[LILAC_LAYOUT_MAX_BITS] = {0};
    for (uint32_t i = LANE_BITS; i < d->thread_bits; i++) {
        const uint64_t kept = lilac_plan_dot_coordinate(d, d->threads[i], operand);
        /* the rows of a group's own warps are rows of the instruction */
        const bool own = operand == 0 && i < LANE_BITS + p->dot.plan->row_bits - 4;
        columns[i] = own ? 0 : lilac_plan_dot_memory_start(&o->plan, operand, kept, 0);
    }
    const lilac_simt_type type = LILAC_SIMT_I32;
    lilac_simt_value sum =
        lilac_simt_op2(b, LILAC_SIMT_OP_ADD, type, p->base,
                       lilac_lower_integer(l, type,
                                           (int64_t)memory->begin + memory->constant +
                                               (int64_t)memory->shift * o->plan.element_bytes));
    sum = lilac_simt_op2(b, LILAC_SIMT_OP_ADD, type, sum,
                         lilac_lower_linear(b, d->thread_bits, columns, 0, NULL));
    return lilac_simt_matrix_descriptor(b, sum, memory->dynamic, &o->plan.like);
}

static bool open_memory(product *p, const lilac_tile_op *op, uint32_t operand) {
    lilac_lowering *l = p->dot.l;
    const lilac_tile_value *value = op->operands[operand].value;
    const lilac_lower_memory *memory = l->values[value->id].memory;
    memory_operand *o = &p->operands[operand];
    lilac_reason why = {"its layout is not known"};
    if (memory == NULL || memory->bytes == 0 || value->type->layout == NULL ||
        value->type->is_tensor_memory) {
        return lilac_lower_unsupported(l,
                                       "the memory of %s is not in shared memory, has no layout, "
                                       "or is not derived from a ttg.local_alloc of this kernel",
                                       operand == 0 ? "A" : "B");
    }
    if (memory->dynamic_shift != 0) {
        return lilac_lower_unsupported(l,
                                       "%s is one of several parts of a buffer that control flow "
                                       "chooses; expected a known part",
                                       operand == 0 ? "A" : "B");
    }
    if (!lilac_plan_dot_memory_init(&o->plan, p->dot.plan, operand, value->type->layout,
                                    memory->shift, &why)) {
        return lilac_lower_unsupported(l, "%s", why.text);
    }
    o->descriptor = describe(p, operand, memory);
    o->begin = (uint32_t)memory->begin;
    o->end = (uint32_t)(memory->begin + memory->bytes);
    if (operand == 0) {
        p->payload.transpose_a = o->plan.transposed;
    } else {
        p->payload.transpose_b = o->plan.transposed;
    }
    return true;
}

/* The descriptor of a block and a step. */
static lilac_simt_value descriptor_of(const product *p, uint32_t operand, uint64_t kept,
                                      uint64_t inner) {
    enum { UNIT = 16 };
    const memory_operand *o = &p->operands[operand];
    const uint32_t start = lilac_plan_dot_memory_start(&o->plan, operand, kept, inner);
    lilac_lowering *l = p->dot.l;
    return start == 0
               ? o->descriptor
               : lilac_simt_op2(&l->builder, LILAC_SIMT_OP_ADD, LILAC_SIMT_I64, o->descriptor,
                                lilac_lower_integer(l, LILAC_SIMT_I64, start / UNIT));
}

/* ---- the instructions ------------------------------------------------------------------------ */

/* The registers of A of one block and one step. Ordinary instructions compute them, so they are
 * built in front of wgmma.fence. */
static bool read_words(const product *p, uint32_t base, uint32_t step, lilac_simt_value *words) {
    const lilac_lower_dot *dot = &p->dot;
    const uint64_t row =
        lilac_plan_dot_coordinate(&dot->d->view->columns, dot->d->view->coordinates[base], 0);
    if (!lilac_lower_dot_words(dot, true, 0, row, lilac_lower_dot_step(dot->plan, step), words)) {
        return false;
    }
    /* An assembler would let the next iteration's values have the registers of words that a loop
     * carries, which wgmma still reads; so it gets copies. Packs of two are instructions anyway. */
    for (uint32_t i = 0; i < WORDS && p->copies; i++) {
        lilac_simt_builder *b = &dot->l->builder;
        words[i] =
            lilac_simt_op1(b, LILAC_SIMT_OP_OPAQUE, LILAC_SIMT_I32,
                           lilac_simt_op1(b, LILAC_SIMT_OP_BITCAST, LILAC_SIMT_I32, words[i]));
    }
    return true;
}

/* Promises that a product reads only the allocations of its operands, and what is between them. */
static void promise_bytes(const product *p, lilac_simt_value result) {
    lilac_simt_instruction *made = p->dot.l->builder.kernel->values[result].definition;
    const memory_operand *a = &p->operands[0], *b = &p->operands[1];
    made->shared_begin = a->end > 0 ? min_u32(a->begin, b->begin) : b->begin;
    made->shared_end = max_u32(a->end, b->end);
}

/* Adds one step of K to the accumulators of the block at register `base`, which count if
 * `accumulate`. `words`: the registers of A, if it is in registers. */
static void multiply(const product *p, uint32_t base, uint32_t step, const lilac_simt_value *words,
                     lilac_simt_value accumulate, lilac_simt_value *c) {
    const lilac_lower_dot *dot = &p->dot;
    lilac_lowering *l = dot->l;
    const lilac_layout_columns *d = &dot->d->view->columns;
    const uint64_t flat = dot->d->view->coordinates[base];
    const uint64_t inner = lilac_lower_dot_step(dot->plan, step);
    const uint32_t count = lilac_matrix_d_registers(&dot->plan->shape, 4 * 32);
    const lilac_simt_value a =
        p->payload.registers ? 0
                             : descriptor_of(p, 0, lilac_plan_dot_coordinate(d, flat, 0), inner);
    const lilac_simt_value b = descriptor_of(p, 1, lilac_plan_dot_coordinate(d, flat, 1), inner);
    const lilac_simt_value first = lilac_simt_wgmma(
        &l->builder, &p->payload, c, p->payload.registers ? words : &a, b, accumulate);
    promise_bytes(p, first);
    for (uint32_t i = 0; i < count; i++) {
        c[i] = first + i;
    }
}

static void wait_for(lilac_lowering *l, uint32_t groups, uint32_t count, lilac_simt_value *values) {
    const lilac_simt_value first = lilac_simt_wgmma_wait(&l->builder, groups, count, values);
    for (uint32_t i = 0; i < count; i++) {
        values[i] = first + i;
    }
}

/* The instructions of a product: `steps` for each of the `blocks` of D, which have `count`
 * registers each. `words`: the registers of A of each block and step. */
typedef struct instructions {
    uint32_t block_registers, blocks, count, steps;
    lilac_simt_value (*words)[WORDS];
} instructions;

/* Some of them: of blocks first_block …, steps first_step … */
typedef struct part {
    uint32_t first_block, blocks, first_step, steps;
} part;

/* One group. `c`: the accumulators of the first block on. */
static void issue_group(const product *p, const instructions *all, const part *some,
                        lilac_simt_value accumulate, lilac_simt_value *c) {
    lilac_lowering *l = p->dot.l;
    const lilac_simt_value further = lilac_simt_constant(&l->builder, LILAC_SIMT_I1, 1);
    lilac_simt_wgmma_fence(&l->builder);
    for (uint32_t i = 0; i < some->blocks; i++) {
        const uint32_t block = some->first_block + i;
        for (uint32_t k = 0; k < some->steps; k++) {
            const uint32_t step = some->first_step + k;
            multiply(p, lilac_lower_deposit(block, all->block_registers), step,
                     all->words[(size_t)block * all->steps + step], k == 0 ? accumulate : further,
                     c + (size_t)i * all->count);
        }
    }
    lilac_simt_wgmma_commit(&l->builder);
}

/* Adds a block's sum of p->exact_steps steps, from 0, to its accumulators in f32. */
static void add_sum(const product *p, const instructions *all, uint32_t block, uint32_t step,
                    lilac_simt_value *c) {
    lilac_lowering *l = p->dot.l;
    const part some = {block, 1, step, p->exact_steps};
    lilac_simt_value sum[MOST_ACCUMULATORS];
    for (uint32_t i = 0; i < all->count; i++) {
        sum[i] = lilac_simt_constant(&l->builder, LILAC_SIMT_F32, 0);
    }
    issue_group(p, all, &some, lilac_simt_constant(&l->builder, LILAC_SIMT_I1, 0), sum);
    wait_for(l, 0, all->count, sum);
    for (uint32_t i = 0; i < all->count; i++) {
        c[i] = lilac_simt_op2(&l->builder, LILAC_SIMT_OP_FADD, LILAC_SIMT_F32, c[i], sum[i]);
    }
}

static void issue_exact(const product *p, const instructions *all, lilac_simt_value *c) {
    lilac_lowering *l = p->dot.l;
    const lilac_simt_value zero = lilac_simt_constant(&l->builder, LILAC_SIMT_F32, 0);
    for (uint32_t i = 0; i < all->blocks * all->count; i++) {
        c[i] = lilac_lower_select(l, p->accumulate, c[i], zero);
    }
    for (uint32_t block = 0; block < all->blocks; block++) {
        for (uint32_t step = 0; step < all->steps; step += p->exact_steps) {
            add_sum(p, all, block, step, c + (size_t)block * all->count);
        }
    }
}

/* All instructions. `in_flight`: nothing waits for them here. */
static bool issue(const product *p, bool in_flight) {
    const lilac_lower_dot *dot = &p->dot;
    lilac_lowering *l = dot->l;
    const uint32_t block_registers =
        dot->d->view->columns.distinct & ~dot->plan->instruction_registers;
    instructions all = {.block_registers = block_registers,
                        .blocks = 1U << __builtin_popcount(block_registers),
                        .count = lilac_matrix_d_registers(&dot->plan->shape, 4 * 32),
                        .steps = 1U << dot->plan->step_bits};
    lilac_simt_value *c =
        lilac_arena_array(l->arena, lilac_simt_value, (size_t)all.blocks * all.count);
    all.words = lilac_arena_alloc(l->arena, (size_t)all.blocks * all.steps * sizeof *all.words);
    for (uint32_t i = 0; i < all.blocks; i++) {
        const uint32_t base = lilac_lower_deposit(i, block_registers);
        lilac_lower_dot_gather(dot, dot->d->base, base, c + (size_t)i * all.count);
        for (uint32_t s = 0; s < all.steps && p->payload.registers; s++) {
            if (!read_words(p, base, s, all.words[(size_t)i * all.steps + s])) {
                return false;
            }
        }
    }
    if (p->exact_steps > 0) {
        issue_exact(p, &all, c);
    } else {
        const part whole = {0, all.blocks, 0, all.steps};
        issue_group(p, &all, &whole, p->accumulate, c);
        if (!in_flight) {
            wait_for(l, 0, all.blocks * all.count, c);
        }
    }
    for (uint32_t i = 0; i < all.blocks; i++) {
        lilac_lower_dot_scatter(dot, c + (size_t)i * all.count,
                                lilac_lower_deposit(i, block_registers), dot->d->base);
    }
    return true;
}

/* Do the accumulators count? False for a constant 0 and for a constant false. */
static void find_accumulate(product *p, const lilac_tile_op *op) {
    lilac_lowering *l = p->dot.l;
    int64_t number;
    uint64_t bits;
    bool zero = lilac_lower_constant(l, p->dot.c, &number) && number == 0;
    for (uint32_t r = 0; r < p->dot.c->count && !zero; r++) {
        zero =
            lilac_simt_is_constant(l->kernel, lilac_lower_get(l, p->dot.c, r), &bits) && bits == 0;
        if (!zero) {
            break;
        }
    }
    p->accumulate = lilac_simt_constant(&l->builder, LILAC_SIMT_I1, zero ? 0 : 1);
    if (!zero && op->operand_count > 3) {
        p->accumulate = lilac_lower_get(l, lilac_lower_operand(l, op, 3), 0);
    }
}

/* Is the tensor an argument of a region, perhaps transposed? */
static bool is_carried(const lilac_tile_value *value) {
    while (value->op != NULL && value->op->code == LILAC_TILE_OP_TT_TRANS) {
        value = value->op->operands[0].value;
    }
    return value->op == NULL;
}

static bool plan_product(product *p, lilac_plan_dot *plan, lilac_plan_dot_problem *problem,
                         const lilac_tile_op *op) {
    lilac_lowering *l = p->dot.l;
    const lilac_lower_value *a = lilac_lower_operand(l, op, 0);
    lilac_matrix_shape shape;
    lilac_reason why = {"its result has no layout"};
    if (!lilac_engine_dot_problem(problem, op, l->target, &why)) {
        return lilac_lower_unsupported(l, "%s", why.text);
    }
    if (!lilac_plan_dot_choose_wgmma(&shape, problem, l->target)) {
        return lilac_lower_unsupported(l,
                                       "no wgmma of %s computes a product of these types and sizes "
                                       "with %u warps",
                                       l->target->arch->name, l->target->num_warps);
    }
    const uint32_t terms = lilac_engine_imprecise_terms(op, problem);
    p->exact_steps =
        terms == 0 ? 0 : min_u32(max_u32(1, terms / shape.k), (1U << problem->k_bits) / shape.k);
    while (terms != 0 && shape.n > MOST_EXACT_COLUMNS) {
        shape.n /= 2;
    }
    if (p->dot.d->view == NULL || p->dot.c->view != p->dot.d->view ||
        !lilac_plan_dot_init(plan, problem, LILAC_PLAN_DOT_WGMMA, &shape,
                             a->view != NULL ? &a->view->columns : NULL, NULL,
                             &p->dot.d->view->columns, &why)) {
        return lilac_lower_unsupported(l, "%s", why.text);
    }
    p->dot.plan = plan;
    p->payload = lilac_lower_dot_payload(plan);
    if (a->view != NULL) {
        lilac_lower_lookup_init(&p->dot.a, a);
        p->payload.registers = true;
        p->copies =
            plan->word_bits == 0 || (plan->word_bits == 2 && is_carried(op->operands[0].value));
    }
    return true;
}

/* Is it one of a long sequence of products, behind each other in the function's body? */
static bool is_of_many(const lilac_tile_op *op) {
    uint32_t count = 0;
    for (const lilac_tile_op *other = op->parent->first; other != NULL; other = other->next) {
        count += other->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT;
    }
    return count > MOST_SHARED_DESCRIPTORS && op->parent->parent->parent == NULL;
}

/* The address of shared memory. Descriptors that many products share would live from the first to the last of them, in
 * registers of each thread where the uniform ones do not suffice. So each has a copy of the previous one's address,
 * which an assembler does not recognise. */
static lilac_simt_value base_of(lilac_lowering *l, const lilac_tile_op *op) {
    const lilac_simt_instruction base = {.code = LILAC_SIMT_OP_SHARED_BASE};
    const lilac_simt_type type = LILAC_SIMT_I32;
    if (!is_of_many(op)) {
        return lilac_simt_build(&l->builder, &base, 0, NULL, 1, &type);
    }
    if (l->product_base == 0) {
        l->product_base = lilac_simt_build(&l->builder, &base, 0, NULL, 1, &type);
    }
    l->product_base = lilac_simt_op1(&l->builder, LILAC_SIMT_OP_OPAQUE, type, l->product_base);
    return l->product_base;
}

bool lilac_lower_warp_group_dot(lilac_lowering *l, const lilac_tile_op *op) {
    lilac_plan_dot plan;
    lilac_plan_dot_problem problem;
    product p = {
        .dot = {.l = l, .c = lilac_lower_operand(l, op, 2), .d = lilac_lower_result(l, op, 0)}};
    if (p.dot.d == NULL || !plan_product(&p, &plan, &problem, op)) {
        return false;
    }
    /* delay_products marks products behind another one of the same iteration */
    if (lilac_tile_find_integer(&op->attributes, "lilac.ordered", 0) == 0) {
        lilac_lower_barrier(l);
    }
    p.base = base_of(l, op);
    if ((!p.payload.registers && !open_memory(&p, op, 0)) || !open_memory(&p, op, 1)) {
        return false;
    }
    lilac_lower_note_dot(
        l, &plan, &problem,
        (const lilac_plan_dot_memory *const[2]){p.payload.registers ? NULL : &p.operands[0].plan,
                                                &p.operands[1].plan});
    find_accumulate(&p, op);
    for (uint32_t r = 0; r < p.dot.d->count; r++) {
        p.dot.d->base[r] = lilac_lower_get(l, p.dot.c, r);
    }
    /* Packed accumulators are unpacked, so they must be complete. */
    const bool in_flight = lilac_tile_find_integer(&op->attributes, "isAsync", 0) != 0 &&
                           plan.shape.d != LILAC_MATRIX_F16;
    return issue(&p, in_flight);
}

/* Passes on tensors and memory after a wait. */
bool lilac_lower_warp_group_dot_wait(lilac_lowering *l, const lilac_tile_op *op) {
    uint32_t count = 0, at = 0;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        count += lilac_tile_is_tensor(op->operands[i].value->type)
                     ? lilac_lower_operand(l, op, i)->count
                     : 0;
    }
    lilac_simt_value *values = lilac_arena_array(l->arena, lilac_simt_value, count + 1);
    for (uint32_t i = 0; i < op->operand_count; i++) {
        const lilac_lower_value *value = lilac_lower_operand(l, op, i);
        for (uint32_t r = 0; lilac_tile_is_tensor(op->operands[i].value->type) && r < value->count;
             r++) {
            values[at++] = lilac_lower_get(l, value, r);
        }
    }
    wait_for(l, (uint32_t)lilac_tile_find_integer(&op->attributes, "pendings", 0), count, values);
    at = 0;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        const lilac_tile_value *from = op->operands[i].value, *to = &op->results[i];
        if (!lilac_tile_is_tensor(from->type)) {
            l->values[to->id] = l->values[from->id];
            continue;
        }
        lilac_lower_value *result = lilac_lower_result(l, op, i);
        if (result == NULL) {
            return false;
        }
        for (uint32_t r = 0; r < result->count; r++) {
            result->base[r] = values[at++];
        }
    }
    return true;
}

bool lilac_lower_fence_async_shared(lilac_lowering *l, const lilac_tile_op *op) {
    (void)op;
    const lilac_simt_instruction fence = {.code = LILAC_SIMT_OP_FENCE_PROXY_ASYNC};
    lilac_simt_build(&l->builder, &fence, 0, NULL, 0, NULL);
    return true;
}
