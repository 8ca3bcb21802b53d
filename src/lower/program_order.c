/* Programs in another order than that of their numbers (src/engine/programs/order_programs.c).
 *
 * Of a grid of n programs along the sorted axis and m along the two others together, the device starts program
 *
 *     i = x + X (y + Y z)      as number i, where the grid is X × Y × Z
 *
 * and it gets the numbers of place i in the order in which the sorted axis is outside. The others are divided
 * into sections of 2^s, for the sake of the caches: what programs that run together read, such as the keys of
 * the heads of attention, is that of a section.
 *
 *     SECTION <= 2^s n < 2 SECTION, or s = 0       programs of a section: 2^s n, of the last one fewer
 *     q = i / (2^s n),  r = i mod (2^s n),  w = min(2^s, m - 2^s q)
 *     sorted axis:  r / w, or n - 1 - r / w        others:  2^s q + r mod w
 *
 * The length of sections was measured: bench/results/h200_program_order.md. Grids of 2^32 programs or more keep
 * their order. */
#include "operations.h"

enum { AXES = 3, SECTION_BITS = 9 };

typedef struct ordering {
    lilac_simt_builder *builder;
    lilac_simt_value count[AXES]; /* programs along each axis */
} ordering;

static lilac_simt_value place(const ordering *o, lilac_simt_opcode code, uint32_t axis) {
    const lilac_simt_instruction like = {.code = (uint16_t)code, .detail = (uint8_t)axis};
    const lilac_simt_type type = LILAC_SIMT_I32;
    return lilac_simt_build(o->builder, &like, 0, NULL, 1, &type);
}

static lilac_simt_value op(const ordering *o, lilac_simt_opcode code, lilac_simt_value a,
                           lilac_simt_value b) {
    return lilac_simt_op2(o->builder, code, LILAC_SIMT_I32, a, b);
}

static lilac_simt_value number(const ordering *o, uint32_t value) {
    return lilac_simt_constant(o->builder, LILAC_SIMT_I32, value);
}

/* a - quotient · b. */
static lilac_simt_value remainder_of(const ordering *o, lilac_simt_value a, lilac_simt_value b,
                                     lilac_simt_value quotient) {
    const lilac_simt_value product = op(o, LILAC_SIMT_OP_MUL, quotient, b);
    return op(o, LILAC_SIMT_OP_SUB, a, product);
}

/* The number of the program that the device starts in this place. */
static lilac_simt_value start_number(const ordering *o) {
    lilac_simt_value made = place(o, LILAC_SIMT_OP_BLOCK, AXES - 1);
    for (uint32_t axis = AXES - 1; axis-- > 0;) {
        const lilac_simt_value lines = op(o, LILAC_SIMT_OP_MUL, o->count[axis], made);
        const lilac_simt_value along = place(o, LILAC_SIMT_OP_BLOCK, axis);
        made = op(o, LILAC_SIMT_OP_ADD, along, lines);
    }
    return made;
}

/* The number of bits of programs of the other axes in a section of lines of n programs. */
static lilac_simt_value section_bits(const ordering *o, lilac_simt_value n) {
    const lilac_simt_value zeros = lilac_simt_op1(o->builder, LILAC_SIMT_OP_CLZ, LILAC_SIMT_I32, n);
    const lilac_simt_value most = number(o, 31 - SECTION_BITS);
    const lilac_simt_value bits = op(o, LILAC_SIMT_OP_SUB, zeros, most);
    return op(o, LILAC_SIMT_OP_MAX_S, bits, number(o, 0));
}

/* Are there fewer than 2^32 programs? `m` is the product of the counts of `inner` and `outer`. */
static lilac_simt_value is_numbered(const ordering *o, uint32_t inner, uint32_t outer,
                                    lilac_simt_value m, lilac_simt_value n) {
    const lilac_simt_value others = op(o, LILAC_SIMT_OP_MULHI_U, o->count[inner], o->count[outer]);
    const lilac_simt_value all = op(o, LILAC_SIMT_OP_MULHI_U, m, n);
    const lilac_simt_value beyond = op(o, LILAC_SIMT_OP_OR, others, all);
    return lilac_simt_compare_values(o->builder, LILAC_SIMT_EQ, beyond, number(o, 0));
}

lilac_simt_value lilac_lower_ordered_program(lilac_lowering *l, int64_t order, uint32_t axis) {
    ordering o = {.builder = &l->builder};
    const uint32_t sorted = (uint32_t)(order < 0 ? -order : order) - 1;
    const uint32_t inner = sorted == 0 ? 1 : 0, outer = AXES - sorted - inner;
    for (uint32_t i = 0; i < AXES; i++) {
        o.count[i] = place(&o, LILAC_SIMT_OP_GRID, i);
    }
    const lilac_simt_value n = o.count[sorted], one = number(&o, 1);
    const lilac_simt_value m = op(&o, LILAC_SIMT_OP_MUL, o.count[inner], o.count[outer]);
    const lilac_simt_value fits = is_numbered(&o, inner, outer, m, n);

    const lilac_simt_value s = section_bits(&o, n);
    const lilac_simt_value section = op(&o, LILAC_SIMT_OP_SHL, n, s), i = start_number(&o);
    const lilac_simt_value q = op(&o, LILAC_SIMT_OP_DIV_U, i, section);
    const lilac_simt_value r = remainder_of(&o, i, section, q);
    const lilac_simt_value first = op(&o, LILAC_SIMT_OP_SHL, q, s);
    const lilac_simt_value left = op(&o, LILAC_SIMT_OP_SUB, m, first);
    const lilac_simt_value whole = op(&o, LILAC_SIMT_OP_SHL, one, s);
    const lilac_simt_value least = op(&o, LILAC_SIMT_OP_MIN_U, whole, left);
    const lilac_simt_value w = op(&o, LILAC_SIMT_OP_MAX_U, least, one); /* 0 where nothing fits */
    const lilac_simt_value t = op(&o, LILAC_SIMT_OP_DIV_U, r, w);
    lilac_simt_value made = t;
    if (axis != sorted) {
        const lilac_simt_value line = remainder_of(&o, r, w, t);
        const lilac_simt_value others = op(&o, LILAC_SIMT_OP_ADD, first, line);
        made = op(&o, LILAC_SIMT_OP_DIV_U, others, o.count[inner]);
        made = axis == outer ? made : remainder_of(&o, others, o.count[inner], made);
    } else if (order < 0) {
        const lilac_simt_value last = op(&o, LILAC_SIMT_OP_SUB, n, one);
        made = op(&o, LILAC_SIMT_OP_SUB, last, t);
    }
    const lilac_simt_value own = place(&o, LILAC_SIMT_OP_BLOCK, axis);
    return lilac_simt_op3(&l->builder, LILAC_SIMT_OP_SELECT, LILAC_SIMT_I32, fits, made, own);
}
