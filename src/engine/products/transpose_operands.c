/* transpose_operands: an operand of 8-bit or 32-bit elements that memory holds the other way round
 * than the load is transposed in registers instead of element by element.
 *
 *     %m = ttg.local_alloc %v          →     %w = ttg.convert_layout %v
 *                                            %m = ttg.local_alloc %w
 *
 * wgmma reads such operands with contiguous inner indices only. Let f be the dimension along which
 * the memory is contiguous and s the other one, along which the loaded tensor is. %w has
 *
 *                  8 bits                       32 bits
 *     registers    f 1, f 2, s 1                f 1, f 2, s 1, s 2       then the rest of f and s
 *     lanes        f 4, f 8, s 2, s 4, s 8      f 4, f 8, f 16, s 4, s 8
 *     warps        along s, then along f
 *
 * 8 bits: ldmatrix with transposition reads two elements along s as one of 16 bits, so a thread
 * holds s 1 and f 1 in a word; byte permutes exchange both, and stmatrix stores words along f.
 * 32 bits: a thread loads four elements along s and stores four along f; eight lanes store a row of
 * 128 bytes. pipeline_loops turns the conversion of a copied tensor into a load from its ring; the
 * attribute lilac.transposes keeps it from copying 32-bit elements one by one to %m. The conversion is inserted where its price and that of the store are below the price of the store as it
 * was, and only for memory whose layout assign_layouts chose. */
#include "memory/memory_layouts.h"

#include "emit.h"

#include <lilac/bits.h>

#include <string.h>

enum { LEAST_BITS = 4 };

typedef struct transposing {
    lilac_tile_module *module;
    const lilac_target *target;
    bool changed;
} transposing;

/* The dimension along which the first elements lie; rank: none. */
static uint32_t contiguous_dimension(const lilac_layout *layout, const char *in) {
    const int number = lilac_layout_in(layout, in);
    if (number >= 0 && layout->in[number].bits > 0) {
        const uint64_t column = layout->columns[lilac_layout_in_start(layout, (uint32_t)number)];
        for (uint32_t d = 0; d < layout->out_count; d++) {
            if (column == UINT64_C(1) << lilac_layout_out_start(layout, d)) {
                return d;
            }
        }
    }
    return layout->out_count;
}

/* A layout in the making: the next bit of the dimensions f (0) and s (1). */
typedef struct making {
    uint32_t bits[2], start[2], next[2];
    uint64_t columns[3][LILAC_LAYOUT_MAX_BITS];
    uint32_t count[3];
} making;

enum { REGISTERS, LANES, WARPS, ALONG_F = 0, ALONG_S = 1 };

static bool take(making *m, uint32_t level, uint32_t dim) {
    if (m->next[dim] == m->bits[dim]) {
        return false;
    }
    m->columns[level][m->count[level]++] = UINT64_C(1) << (m->start[dim] + m->next[dim]++);
    return true;
}

/* The first bits, in this order. */
typedef struct place {
    uint8_t level, dim;
} place;

enum { FIRST_BITS = 9 };

static const place first_bits[2][FIRST_BITS] = {
    /* 8 bits */
    {{REGISTERS, ALONG_F},
     {REGISTERS, ALONG_F},
     {LANES, ALONG_F},
     {LANES, ALONG_F},
     {REGISTERS, ALONG_S},
     {LANES, ALONG_S},
     {LANES, ALONG_S},
     {LANES, ALONG_S},
     {REGISTERS, ALONG_F}},
    /* 32 bits */
    {{REGISTERS, ALONG_F},
     {REGISTERS, ALONG_F},
     {REGISTERS, ALONG_S},
     {REGISTERS, ALONG_S},
     {LANES, ALONG_F},
     {LANES, ALONG_F},
     {LANES, ALONG_F},
     {LANES, ALONG_S},
     {LANES, ALONG_S}},
};

static bool transposed_layout(lilac_layout *result, const lilac_layout *like, uint32_t fast,
                              uint32_t element_bits, uint32_t warp_bits) {
    const place *first = first_bits[element_bits == 32];
    making m = {.count = {0}};
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t dim = i == ALONG_F ? fast : 1 - fast;
        m.bits[i] = like->out[dim].bits;
        m.start[i] = lilac_layout_out_start(like, dim);
    }
    for (uint32_t i = 0; i < FIRST_BITS; i++) {
        (void)take(&m, first[i].level, first[i].dim);
    }
    for (uint32_t i = 0; i < warp_bits; i++) {
        if (!take(&m, WARPS, ALONG_S) && !take(&m, WARPS, ALONG_F)) {
            return false; /* fewer elements than threads */
        }
    }
    while (take(&m, REGISTERS, ALONG_F) || take(&m, REGISTERS, ALONG_S)) {
    }
    lilac_layout_init(result);
    for (uint32_t d = 0; d < like->out_count; d++) {
        if (!lilac_layout_add_out(result, like->out[d].name, like->out[d].bits, NULL)) {
            return false;
        }
    }
    return lilac_layout_add_in(result, "register", m.count[REGISTERS], m.columns[REGISTERS],
                               NULL) &&
           lilac_layout_add_in(result, "lane", m.count[LANES], m.columns[LANES], NULL) &&
           lilac_layout_add_in(result, "warp", m.count[WARPS], m.columns[WARPS], NULL) &&
           lilac_layout_add_in(result, "block", 0, NULL, NULL);
}

/* The price of storing a tensor; -1: it cannot be stored. */
static int64_t price_of_store(const lilac_layout *tensor, const lilac_layout *memory,
                              uint32_t element_bits, const lilac_arch *arch) {
    lilac_plan_access plan;
    lilac_reason why;
    if (!lilac_plan_access_init(&plan, tensor, memory, element_bits, arch, &why)) {
        return -1;
    }
    int64_t least = lilac_shared_access_cycles(&plan, false, arch);
    if (lilac_plan_access_init_matrix(&plan, tensor, memory, LILAC_PLAN_MATRIX, element_bits, arch,
                                      &why)) {
        const int64_t matrices = lilac_shared_access_cycles(&plan, false, arch);
        least = matrices < least ? matrices : least;
    }
    return least;
}

static int64_t price_of_conversion(const lilac_layout *from, const lilac_layout *to,
                                   uint32_t element_bits, const lilac_arch *arch) {
    lilac_plan_conversion plan;
    lilac_reason why;
    return lilac_plan_conversion_init(&plan, from, to, element_bits, NULL, arch, &why)
               ? (int64_t)plan.price.cycles
               : -1;
}

/* The layout in which the tensor is stored for less; false: the one that it has. */
static bool find_layout(lilac_layout *result, const transposing *t, const lilac_tile_op *alloc) {
    const lilac_tile_type *tensor = alloc->operands[0].value->type;
    const lilac_tile_type *memory = alloc->results[0].type;
    const lilac_arch *arch = t->target->arch;
    const uint32_t bits = lilac_tile_element_bits(tensor);
    if (lilac_tile_find_text(&alloc->attributes, "lilac.memory") == NULL ||
        tensor->layout == NULL || memory->layout == NULL || tensor->rank != 2 ||
        (bits != 8 && bits != 32) || tensor->layout->out[0].bits < LEAST_BITS ||
        tensor->layout->out[1].bits < LEAST_BITS) {
        return false;
    }
    const uint32_t fast = contiguous_dimension(memory->layout, "offset");
    if (fast > 1 || contiguous_dimension(tensor->layout, "register") != 1 - fast ||
        !transposed_layout(result, tensor->layout, fast, bits, log2_of(t->target->num_warps))) {
        return false;
    }
    const int64_t before = price_of_store(tensor->layout, memory->layout, bits, arch),
                  after = price_of_store(result, memory->layout, bits, arch),
                  conversion = price_of_conversion(tensor->layout, result, bits, arch);
    return before >= 0 && after >= 0 && conversion >= 0 && conversion + after < before;
}

/* Does a product read the memory, perhaps through transpositions of it? */
static bool is_multiplied(const lilac_tile_value *memory) {
    for (const lilac_tile_use *use = memory->uses; use != NULL; use = use->next) {
        if (use->op->code == LILAC_TILE_OP_TTG_MEMDESC_TRANS
                ? is_multiplied(&use->op->results[0])
                : use->op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT) {
            return true;
        }
    }
    return false;
}

static void visit_op(transposing *t, lilac_tile_op *op) {
    lilac_layout layout;
    if (op->code != LILAC_TILE_OP_TTG_LOCAL_ALLOC || op->operand_count != 1 ||
        !is_multiplied(&op->results[0]) || !find_layout(&layout, t, op)) {
        return;
    }
    const lilac_emitter e = {t->module, op};
    lilac_tile_value *value = op->operands[0].value;
    const lilac_tile_type *type =
        lilac_tile_tensor(t->module, value->type->element, 2, value->type->shape,
                          lilac_tile_intern_layout(t->module, &layout));
    lilac_tile_value *converted =
        lilac_emit_unary(&e, LILAC_TILE_OP_TTG_CONVERT_LAYOUT, type, value);
    converted->name = value->name;
    lilac_emit_attribute(&e, converted->op, "lilac.transposes", 1);
    lilac_tile_set_operand(op, 0, converted);
    t->changed = true;
}

static void visit_region(transposing *t, lilac_tile_region *region) {
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            for (uint32_t r = 0; r < op->region_count; r++) {
                visit_region(t, op->regions[r]);
            }
            visit_op(t, op);
        }
    }
}

bool lilac_engine_transpose_operands(lilac_tile_module *module, const lilac_target *target,
                                     bool *changed) {
    transposing t = {.module = module, .target = target};
    for (lilac_tile_function *function = module->functions; function != NULL;
         function = function->next) {
        if (function->body != NULL) {
            visit_region(&t, function->body);
            lilac_tile_number(function);
        }
    }
    *changed = t.changed;
    return true;
}
