/* Operands of wgmma in shared memory: the descriptor that reads what a layout of memory holds.
 *
 * A descriptor says where element (row, inner) of one instruction is (matrix.h). Its fields follow from
 * the places of a few elements; then the places of all unit vectors and of their sums in pairs must
 * agree. Both maps are linear, so the others agree too.
 *
 * In a cluster each block has the part of the operand that its part of D needs. */
#include <lilac/bits.h>
#include <lilac/dot.h>

enum { UNIT = 16, GROUP = 8 };

typedef struct checking {
    const lilac_plan_dot *plan;
    const lilac_plan_dot_memory *memory;
    uint32_t operand;
    uint32_t shift; /* in bytes */
} checking;

static uint64_t sum_of(const uint64_t *vectors, uint32_t bits, uint32_t index) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < bits; i++) {
        sum ^= index >> i & 1 ? vectors[i] : 0;
    }
    return sum;
}

uint32_t lilac_plan_dot_memory_start(const lilac_plan_dot_memory *memory, uint32_t operand,
                                     uint64_t kept, uint64_t inner) {
    const uint64_t coordinates[2] = {operand == 0 ? kept : inner, operand == 0 ? inner : kept};
    const lilac_layout *offsets = &memory->offsets;
    const uint64_t flat =
        coordinates[0] | coordinates[1] << lilac_layout_in_start(offsets, 1);
    return (uint32_t)lilac_layout_apply(offsets, flat) * memory->element_bytes;
}

static uint32_t kept_bits(const checking *c) {
    return c->operand == 0 ? c->plan->row_bits : c->plan->column_bits;
}

static const uint64_t *kept_of(const checking *c) {
    return c->operand == 0 ? c->plan->row : c->plan->column;
}

/* The byte of an element by the layout. */
static uint32_t place(const checking *c, uint32_t kept, uint32_t inner) {
    return lilac_plan_dot_memory_start(c->memory, c->operand,
                                       sum_of(kept_of(c), kept_bits(c), kept),
                                       sum_of(c->plan->inner, c->plan->inner_bits, inner));
}

static bool agrees_at(const checking *c, uint32_t kept, uint32_t inner) {
    lilac_matrix_descriptor descriptor = c->memory->like;
    descriptor.start = c->shift;
    return (place(c, kept, inner) ^ c->shift) ==
           lilac_matrix_descriptor_address(&descriptor, 8 * c->memory->element_bytes,
                                           c->memory->transposed, kept, inner);
}

static bool agrees(const checking *c) {
    const uint32_t rows = kept_bits(c), bits = rows + c->plan->inner_bits;
    for (uint32_t i = 0; i < bits; i++) {
        for (uint32_t k = 0; k <= i; k++) {
            const uint32_t index = 1U << i | 1U << k;
            if (!agrees_at(c, index & ((1U << rows) - 1), index >> rows)) {
                return false;
            }
        }
    }
    return true;
}

/* Sets the strides for a swizzle. An index beyond the instruction needs none. */
static void set_strides(const checking *c, lilac_plan_dot_memory *memory,
                        lilac_matrix_swizzle swizzle, bool transposed) {
    const uint32_t pattern = lilac_matrix_swizzle_bytes(swizzle);
    const uint32_t along = transposed ? pattern / memory->element_bytes : UNIT / memory->element_bytes;
    const uint32_t rows = 1U << kept_bits(c), inner = 1U << c->plan->inner_bits;
    const uint32_t next_rows = rows > GROUP ? place(c, GROUP, 0) : GROUP * pattern;
    const uint32_t next_inner = inner > GROUP && transposed ? place(c, 0, GROUP) : GROUP * pattern;
    memory->like = (lilac_matrix_descriptor){.swizzle = swizzle};
    memory->transposed = transposed;
    if (swizzle == LILAC_MATRIX_SWIZZLE_NONE) {
        const uint32_t next_column = !transposed && inner > along ? place(c, 0, along) : UNIT;
        memory->like.stride = next_rows;
        memory->like.leading = transposed ? next_inner : next_column;
    } else {
        memory->like.stride = transposed ? next_inner : next_rows;
        memory->like.leading = transposed && rows > along ? place(c, along, 0) : UNIT;
    }
}

/* Coordinates to offsets in the block that has the element. */
static bool find_offsets(lilac_layout *result, const lilac_layout *memory, lilac_reason *why) {
    static const char *const places[] = {"offset", NULL};
    lilac_layout inverse;
    return lilac_layout_is_surjective(memory) && lilac_layout_pseudoinvert(&inverse, memory, why) &&
           lilac_layout_sublayout(result, &inverse, NULL, places, why);
}

/* Does each block have the rows (columns) of its part of D? */
static bool has_parts(const lilac_plan_dot *plan, uint32_t operand, const lilac_layout *memory) {
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    const uint32_t count = lilac_layout_block_columns(columns, memory);
    const uint64_t *parts = operand == 0 ? plan->block_row : plan->block_column;
    const uint32_t start = operand == 0 ? 0 : lilac_layout_out_start(memory, 1);
    for (uint32_t i = 0; i < count || i < plan->block_bits; i++) {
        const uint64_t part = i < plan->block_bits ? parts[i] << start : 0;
        if ((i < count ? columns[i] : 0) != part) {
            return false;
        }
    }
    return true;
}

bool lilac_plan_dot_memory_init(lilac_plan_dot_memory *result, const lilac_plan_dot *plan,
                                uint32_t operand, const lilac_layout *memory, uint64_t shift,
                                lilac_reason *why) {
    static const lilac_matrix_swizzle swizzles[] = {
        LILAC_MATRIX_SWIZZLE_128, LILAC_MATRIX_SWIZZLE_64, LILAC_MATRIX_SWIZZLE_32,
        LILAC_MATRIX_SWIZZLE_NONE};
    static const char *const outputs[] = {"dim0", "dim1", NULL};
    static const char *const inputs[] = {"offset", NULL};
    const uint32_t bits = lilac_matrix_type_bits(operand == 0 ? plan->shape.a : plan->shape.b);
    lilac_layout offsets;
    *result = (lilac_plan_dot_memory){.element_bytes = bits / 8};
    if (memory->out_count != 2 ||
        !lilac_layout_sublayout(&offsets, memory, inputs, outputs, why) ||
        !lilac_layout_is_injective(&offsets) || !find_offsets(&result->offsets, memory, why)) {
        return lilac_layout_refuse(why, "the memory of a matrix must have two dimensions, and one "
                                        "place for each element");
    }
    if (!has_parts(plan, operand, memory)) {
        return lilac_layout_refuse(why,
                                   "the blocks of the cluster have other elements of %s in their "
                                   "memory than their parts of the result need",
                                   operand == 0 ? "A" : "B");
    }
    const checking c = {.plan = plan, .memory = result, .operand = operand,
                        .shift = (uint32_t)shift * result->element_bytes};
    for (uint32_t i = 0; i < sizeof swizzles / sizeof *swizzles; i++) {
        for (uint32_t transposed = 0; transposed <= (bits == 16 ? 1U : 0U); transposed++) {
            set_strides(&c, result, swizzles[i], transposed != 0);
            if (result->like.stride % UNIT == 0 && result->like.leading % UNIT == 0 &&
                agrees(&c)) {
                return true;
            }
        }
    }
    return lilac_layout_refuse(why,
                               "no descriptor of wgmma reads the elements where the layout of the "
                               "memory of %s has them",
                               operand == 0 ? "A" : "B");
}
