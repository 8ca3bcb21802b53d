/* step_products: products by multiply-adds whose operands would fill the registers read them from shared
 * memory, in steps along K.
 *
 *     %a = ttg.convert_layout %p              %m = ttg.local_alloc %p
 *     %b = ttg.convert_layout %q              %n = ttg.local_alloc %q
 *     %d = tt.dot %a, %b, %c          →       %m0 = ttg.memdesc_subslice %m[0, 0]    (all rows, STEP columns)
 *                                             %n0 = ttg.memdesc_subslice %n[0, 0]    (STEP rows, all columns)
 *                                             %d0 = tt.dot (ttg.local_load %m0), (ttg.local_load %n0), %c
 *                                             %m1 = ttg.memdesc_subslice %m[0, 4]
 *                                             …
 *
 * A thread of such a product needs its rows of A and its columns of B, whole: for a result of 64 × 64 in the
 * layout of a wgmma, and K = 64, 2 × 64 + 64 × 16 words. The exchange of their layouts goes through shared
 * memory in any case, so that only the number of registers changes. Each element of the result remains the sum
 * along K in its order: the same bits.
 *
 * The operands of several products of a block, such as those of an inverse by blocks, can fill the registers
 * together. They are stored where they were converted, each tensor once, so that one barrier serves many of
 * them, and each product reads its own. Casts of an operand behind the conversion are done before it, once for
 * each element instead of once for each thread that needs it. */
#include "emit.h"
#include "layouts/assign.h"
#include "products/block_demand.h"
#include "products/dot_operands.h"

#include <lilac/bits.h>
#include <lilac/dot.h>

enum {
    MOST_WORDS = 64, /* of both operands, in registers at once */
    STEP_BITS = 2,   /* log2 of the least step: a vector of four words along K */
    MOST_CASTS = 4
};

typedef struct stepping {
    lilac_tile_module *module;
    lilac_tile_function *function;
    const lilac_target *target;
    bool crowded; /* the operands of the block's products fill the registers together */
    bool changed;
} stepping;

/* An operand of the product: the tensor before its conversion, and the casts behind that, the last first. */
typedef struct source {
    lilac_tile_value *tensor;
    lilac_tile_op *conversion;
    const lilac_tile_op *casts[MOST_CASTS];
    uint32_t cast_count;
} source;

static bool is_cast(const lilac_tile_op *op) {
    return op->code == LILAC_TILE_OP_ARITH_EXTF || op->code == LILAC_TILE_OP_ARITH_TRUNCF ||
           op->code == LILAC_TILE_OP_TT_FP_TO_FP;
}

static bool find_source(source *result, const lilac_tile_value *operand) {
    lilac_tile_op *op = operand->op;
    result->cast_count = 0;
    while (op != NULL && is_cast(op) && result->cast_count < MOST_CASTS) {
        result->casts[result->cast_count++] = op;
        op = op->operands[0].value->op;
    }
    if (op == NULL || op->code != LILAC_TILE_OP_TTG_CONVERT_LAYOUT) {
        return false;
    }
    result->tensor = op->operands[0].value;
    result->conversion = op;
    return true;
}

/* Memory that holds the value for an earlier product of the block; NULL: none. */
static lilac_tile_value *find_memory(const lilac_tile_value *value, const lilac_tile_type *type,
                                     const lilac_tile_block *block) {
    for (const lilac_tile_use *use = value->uses; use != NULL; use = use->next) {
        if (use->op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC && use->op->parent == block &&
            use->op->results[0].type == type) {
            return &use->op->results[0];
        }
    }
    return NULL;
}

/* The tensor in shared memory, as the product reads it. */
static lilac_tile_value *store(const stepping *s, lilac_tile_op *dot, const source *from) {
    const lilac_emitter place = {s->module, s->crowded ? from->conversion : dot}, *e = &place;
    lilac_tile_value *value = from->tensor;
    const lilac_layout *layout = value->type->layout;
    for (uint32_t i = from->cast_count; i-- > 0;) {
        lilac_tile_op *cast = lilac_tile_clone(s->module, from->casts[i]);
        lilac_tile_set_operand(cast, 0, value);
        cast->results[0].type = lilac_tile_with_layout(s->module, cast->results[0].type, layout);
        lilac_tile_insert_before(e->place, cast);
        value = &cast->results[0];
    }
    const lilac_tile_type *type = value->type;
    lilac_encoding_memdesc memory = {
        .rank = type->rank, .alloc_rank = type->rank, .scalar = lilac_tile_element(type)->scalar};
    for (uint32_t d = 0; d < type->rank; d++) {
        memory.shape[d] = memory.alloc_shape[d] = type->shape[d];
    }
    const lilac_tile_type *result = lilac_tile_memory(s->module, &memory);
    lilac_tile_value *found = s->crowded ? find_memory(value, result, e->place->parent) : NULL;
    return found != NULL ? found
                         : lilac_emit_unary(e, LILAC_TILE_OP_TTG_LOCAL_ALLOC, result, value);
}

/* A step's part of an operand: `size` elements along `dim` from `first` on, in this layout. */
static lilac_tile_value *load(const stepping *s, const lilac_emitter *e, lilac_tile_value *memory,
                              uint32_t dim, int64_t first, int64_t size,
                              const lilac_layout *layout) {
    const lilac_tile_type *type = memory->type;
    lilac_encoding_memdesc part = {
        .rank = type->rank, .alloc_rank = type->rank, .scalar = type->scalar};
    for (uint32_t d = 0; d < type->rank; d++) {
        part.alloc_shape[d] = type->shape[d];
        part.shape[d] = d == dim ? size : type->shape[d];
    }
    lilac_tile_value *slice = lilac_emit_unary(e, LILAC_TILE_OP_TTG_MEMDESC_SUBSLICE,
                                               lilac_tile_memory(s->module, &part), memory);
    int64_t *offsets = lilac_arena_array(s->module->arena, int64_t, type->rank);
    for (uint32_t d = 0; d < type->rank; d++) {
        offsets[d] = d == dim ? first : 0;
    }
    const lilac_tile_attribute attribute = {.kind = LILAC_TILE_ATTR_INTEGERS,
                                            .name =
                                                lilac_intern_string(s->module->context, "offsets"),
                                            .count = type->rank,
                                            .integers = offsets};
    lilac_tile_set_attribute(s->module, &slice->op->attributes, &attribute);
    const lilac_tile_type *tensor = lilac_tile_tensor(
        s->module, lilac_tile_scalar(s->module, type->scalar), type->rank, part.shape, layout);
    return lilac_emit_unary(e, LILAC_TILE_OP_TTG_LOCAL_LOAD, tensor, slice);
}

/* Layouts of the operands of a product with 1 << bits inner indices, and their words in a thread. */
static bool step_layouts(const stepping *s, const lilac_plan_dot_problem *problem,
                         const lilac_layout_columns *d, const lilac_tile_op *dot, uint32_t bits,
                         const lilac_layout **layouts, uint32_t *words) {
    lilac_plan_dot_problem part = *problem;
    lilac_matrix_shape shape = {.a = LILAC_MATRIX_NONE};
    lilac_layout layout;
    lilac_reason why;
    part.k_bits = bits;
    *words = 0;
    for (uint32_t i = 0; i < 2; i++) {
        if (!lilac_plan_dot_operand_layout(&layout, &part, LILAC_PLAN_DOT_FMA, &shape, d, i,
                                           &why)) {
            return false;
        }
        const int registers = lilac_layout_in(&layout, "register");
        const uint32_t count = registers < 0 ? 0 : layout.in[registers].bits;
        *words += ((1u << count) * lilac_tile_element_bits(dot->operands[i].value->type) + 31) / 32;
        layouts[i] = lilac_tile_intern_layout(s->module, &layout);
    }
    return true;
}

static void replace(stepping *s, lilac_tile_op *dot, const source *sources,
                    const lilac_layout *const *layouts, uint32_t k_bits, uint32_t step_bits) {
    const lilac_emitter e = {s->module, dot};
    lilac_tile_value *memory[2], *sum = dot->operands[2].value;
    for (uint32_t i = 0; i < 2; i++) {
        memory[i] = store(s, dot, &sources[i]);
    }
    const uint32_t rank = dot->results[0].type->rank;
    for (int64_t k = 0; k < INT64_C(1) << k_bits; k += INT64_C(1) << step_bits) {
        lilac_tile_op *step = lilac_tile_clone(s->module, dot);
        for (uint32_t i = 0; i < 2; i++) {
            lilac_tile_set_operand(step, i,
                                   load(s, &e, memory[i], i == 0 ? rank - 1 : rank - 2, k,
                                        INT64_C(1) << step_bits, layouts[i]));
        }
        lilac_tile_set_operand(step, 2, sum);
        lilac_emit_attribute(&e, step, "lilac.step", k);
        lilac_tile_insert_before(dot, step);
        sum = &step->results[0];
    }
    lilac_tile_replace_uses(&dot->results[0], sum);
    lilac_tile_value *operands[2] = {dot->operands[0].value, dot->operands[1].value};
    lilac_tile_remove(dot);
    for (uint32_t i = 0; i < (operands[0] == operands[1] ? 1 : 2); i++) {
        for (lilac_tile_value *unused = operands[i]; unused->uses == NULL && unused->op != NULL;) {
            lilac_tile_value *next = unused->op->operands[0].value;
            const bool last = unused->op->code == LILAC_TILE_OP_TTG_CONVERT_LAYOUT;
            lilac_tile_remove(unused->op);
            if (last) {
                break;
            }
            unused = next;
        }
    }
    lilac_tile_number(s->function);
    s->changed = true;
}

/* Half of the shared memory is for what else the kernel keeps there. */
static bool fits(const stepping *s, const lilac_tile_op *dot) {
    return 2 * (lilac_engine_bytes(dot->operands[0].value->type) +
                lilac_engine_bytes(dot->operands[1].value->type)) <=
           s->target->arch->shared_bytes;
}

/* A product by multiply-adds whose operands are exchanged. */
typedef struct candidate {
    lilac_plan_dot_problem problem;
    lilac_layout_columns columns; /* of the result */
    source sources[2];
    const lilac_layout *layouts[2]; /* of the whole operands */
    uint32_t words;                 /* of both */
} candidate;

static bool is_candidate(candidate *c, const stepping *s, const lilac_tile_op *dot) {
    lilac_matrix_shape shape;
    lilac_reason why;
    return dot->code == LILAC_TILE_OP_TT_DOT && s->target->num_ctas == 1 &&
           dot->results[0].type->layout != NULL &&
           lilac_engine_dot_problem(&c->problem, dot, s->target, &why) &&
           lilac_plan_dot_choose(&shape, &c->problem, s->target) == LILAC_PLAN_DOT_FMA &&
           lilac_plan_columns_init(&c->columns, dot->results[0].type->layout, s->target, &why) &&
           c->problem.k_bits > STEP_BITS && fits(s, dot) &&
           find_source(&c->sources[0], dot->operands[0].value) &&
           find_source(&c->sources[1], dot->operands[1].value) &&
           step_layouts(s, &c->problem, &c->columns, dot, c->problem.k_bits, c->layouts, &c->words);
}

static void visit_product(stepping *s, lilac_tile_op *dot) {
    candidate c;
    const lilac_layout *found[2];
    uint32_t words, step_bits = STEP_BITS;
    if (!is_candidate(&c, s, dot) || (c.words <= MOST_WORDS && !s->crowded)) {
        return;
    }
    if (c.words <= MOST_WORDS) {
        replace(s, dot, c.sources, c.layouts, c.problem.k_bits, c.problem.k_bits);
        return;
    }
    if (!step_layouts(s, &c.problem, &c.columns, dot, step_bits, c.layouts, &words)) {
        return;
    }
    while (step_layouts(s, &c.problem, &c.columns, dot, step_bits + 1, found, &words) &&
           words <= MOST_WORDS) {
        step_bits++;
        c.layouts[0] = found[0];
        c.layouts[1] = found[1];
    }
    replace(s, dot, c.sources, c.layouts, c.problem.k_bits, step_bits);
}

/* The conversions of a block for its products. */
typedef struct crowd {
    uint32_t *words; /* by value: of a conversion */
    uint32_t *last;  /* by value: the place of the last product that reads the conversion */
    bool *stored;    /* by value: the tensor is counted in `bytes` */
    uint64_t bytes;  /* of the tensors */
} crowd;

static void count_operands(crowd *w, const lilac_tile_op *dot, const candidate *c, uint32_t place) {
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t conversion = c->sources[i].conversion->results[0].id,
                       tensor = c->sources[i].tensor->id;
        w->bytes += w->stored[tensor] ? 0 : lilac_engine_bytes(dot->operands[i].value->type);
        w->stored[tensor] = true;
        w->words[conversion] = lilac_engine_words(dot->operands[i].value->type);
        w->last[conversion] = place;
    }
}

/* The most words of converted operands that are live at once. */
static uint32_t most_words(const crowd *w, const stepping *s, const lilac_tile_block *block) {
    uint32_t place = 0, live = 0, most = 0;
    candidate c;
    for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
        place++;
        if (op->code == LILAC_TILE_OP_TTG_CONVERT_LAYOUT) {
            live += w->words[op->results[0].id];
            most = max_u32(most, live);
        }
        for (uint32_t i = 0; i < 2 && is_candidate(&c, s, op); i++) {
            const lilac_tile_op *conversion = c.sources[i].conversion;
            if (conversion->parent == block && w->last[conversion->results[0].id] == place) {
                live -= w->words[conversion->results[0].id];
                w->last[conversion->results[0].id] = 0; /* both operands may be one */
            }
        }
    }
    return most;
}

/* Do the operands of several products fill the registers together, and is there memory for all of them? */
static bool is_crowded(const stepping *s, const lilac_tile_block *block) {
    lilac_arena *arena = lilac_arena_create();
    const size_t count = s->function->value_count + 1;
    crowd w = {.words = lilac_arena_array(arena, uint32_t, count),
               .last = lilac_arena_array(arena, uint32_t, count),
               .stored = lilac_arena_array(arena, bool, count)};
    uint32_t place = 0, products = 0;
    candidate c;
    for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
        place++;
        if (is_candidate(&c, s, op)) {
            count_operands(&w, op, &c, place);
            products++;
        }
    }
    const bool crowded = products > 1 && 2 * w.bytes <= s->target->arch->shared_bytes &&
                         most_words(&w, s, block) > MOST_WORDS;
    lilac_arena_destroy(arena);
    return crowded;
}

static void visit_region(stepping *s, const lilac_tile_region *region) {
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            for (uint32_t r = 0; r < op->region_count; r++) {
                visit_region(s, op->regions[r]);
            }
        }
        s->crowded = is_crowded(s, block);
        for (lilac_tile_op *op = block->first, *next; op != NULL; op = next) {
            next = op->next;
            visit_product(s, op);
        }
    }
}

bool lilac_engine_step_products(lilac_tile_module *module, const lilac_target *target,
                                bool *changed) {
    stepping s = {.module = module, .target = target};
    bool good = true;
    for (s.function = module->functions; good && s.function != NULL;
         s.function = s.function->next) {
        if (s.function->body != NULL) {
            s.changed = false;
            lilac_tile_number(s.function);
            visit_region(&s, s.function->body);
            good = !s.changed || lilac_assign_memory_layouts(s.function, target, changed);
        }
    }
    return good;
}
