/* The common part of reductions and scans: combining elements by a region, moving values between
 * the lanes of a warp, and addressing scratch memory by coordinates.
 *
 * A combine region is lowered once for each pair of elements, on scalars. The builder reuses
 * equal instructions. */
#include "collective/region.h"

/* ---- operations ---------------------------------------------------------------------------- */

bool lilac_lower_read_axis(lilac_lowering *l, const lilac_tile_op *op, const lilac_lower_view *view,
                           uint32_t *axis) {
    int64_t number = lilac_tile_find_integer(&op->attributes, "axis", 0);
    uint32_t rank = view == NULL ? 0 : view->columns.rank;
    if (number < 0 || number >= rank) {
        return lilac_lower_unsupported(l, "the axis is %lld; operand 0 has %u dimensions",
                                       (long long)number, rank);
    }
    *axis = (uint32_t)number;
    return true;
}

bool lilac_lower_check_results(lilac_lowering *l, const lilac_tile_op *op) {
    return op->result_count == op->operand_count ||
           lilac_lower_unsupported(l, "it has %u operands and %u results; expected equal numbers",
                                   op->operand_count, op->result_count);
}

/* ---- regions ----------------------------------------------------------------------------- */

bool lilac_lower_combine(lilac_lowering *l, const lilac_tile_op *op, lilac_simt_value *a,
                         const lilac_simt_value *b) {
    const lilac_tile_block *block = op->regions[0]->first;
    uint32_t count = op->operand_count;
    if (block == NULL || block->argument_count != 2 * count) {
        return lilac_lower_unsupported(l, "the region has %u arguments; %u operands need %u",
                                       block == NULL ? 0 : block->argument_count, count, 2 * count);
    }
    for (uint32_t i = 0; i < 2 * count; i++) {
        lilac_lower_value *argument = lilac_lower_define(l, block->arguments[i]);
        if (argument == NULL) {
            return false;
        }
        argument->base[0] = i < count ? a[i] : b[i - count];
    }
    const lilac_tile_op *end = lilac_lower_block(l, block);
    l->op = op;
    l->builder.location = op->location;
    if (end == NULL) {
        return false;
    }
    if (end->operand_count != count) {
        return lilac_lower_unsupported(l, "the region returns %u values; %u operands need %u",
                                       end->operand_count, count, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        a[i] = lilac_lower_get(l, lilac_lower_operand(l, end, i), 0);
    }
    return true;
}

/* ---- lanes ------------------------------------------------------------------------------- */

static lilac_simt_value shuffle_word(lilac_lowering *l, lilac_simt_shuffle kind,
                                     lilac_simt_value word, lilac_simt_value lane) {
    lilac_simt_instruction like = {.code = LILAC_SIMT_OP_SHUFFLE, .detail = (uint8_t)kind};
    lilac_simt_type type = lilac_simt_type_of(l->kernel, word);
    lilac_simt_value operands[2] = {word, lane};
    return lilac_simt_build(&l->builder, &like, 2, operands, 1, &type);
}

lilac_simt_value lilac_lower_shuffle(lilac_lowering *l, lilac_simt_shuffle kind,
                                     lilac_simt_value value, lilac_simt_value lane) {
    lilac_simt_builder *b = &l->builder;
    lilac_simt_type type = lilac_simt_type_of(l->kernel, value);
    uint32_t bits = lilac_simt_type_bits(type);
    if (bits == 32) {
        return shuffle_word(l, kind, value, lane);
    }
    if (bits == 64) {
        lilac_simt_value halves[2];
        lilac_simt_unpack(b, LILAC_SIMT_I32, value, 2, halves);
        for (uint32_t i = 0; i < 2; i++) {
            halves[i] = shuffle_word(l, kind, halves[i], lane);
        }
        return lilac_simt_pack(b, type, 2, halves);
    }
    bool is_float = lilac_simt_type_is_float(type);
    lilac_simt_value narrow =
        is_float ? lilac_simt_op1(b, LILAC_SIMT_OP_BITCAST, LILAC_SIMT_I16, value) : value;
    lilac_simt_value word = lilac_simt_op1(b, LILAC_SIMT_OP_ZEXT, LILAC_SIMT_I32, narrow);
    word = shuffle_word(l, kind, word, lane);
    if (type == LILAC_SIMT_I1) {
        return lilac_simt_compare_values(b, LILAC_SIMT_NE, word,
                                         lilac_simt_constant(b, LILAC_SIMT_I32, 0));
    }
    narrow = lilac_simt_op1(b, LILAC_SIMT_OP_TRUNC, is_float ? LILAC_SIMT_I16 : type, word);
    return is_float ? lilac_simt_op1(b, LILAC_SIMT_OP_BITCAST, type, narrow) : narrow;
}

void lilac_lower_shuffle_row(lilac_lowering *l, lilac_simt_shuffle kind, lilac_simt_value lane,
                             uint32_t count, uint32_t stride, const lilac_simt_value *in,
                             lilac_simt_value *out) {
    lilac_simt_type type = lilac_simt_type_of(l->kernel, in[0]);
    bool pairs = lilac_simt_type_bits(type) == 16 && count % 2 == 0;
    for (uint32_t i = 0; i < count; i += pairs ? 2 : 1) {
        if (!pairs) {
            out[(size_t)i * stride] = lilac_lower_shuffle(l, kind, in[(size_t)i * stride], lane);
            continue;
        }
        lilac_simt_value pair[2] = {in[(size_t)i * stride], in[(size_t)(i + 1) * stride]};
        lilac_simt_value word = lilac_simt_pack(&l->builder, LILAC_SIMT_I32, 2, pair);
        word = shuffle_word(l, kind, word, lane);
        lilac_simt_unpack(&l->builder, type, word, 2, pair);
        out[(size_t)i * stride] = pair[0];
        out[(size_t)(i + 1) * stride] = pair[1];
    }
}

/* ---- addresses --------------------------------------------------------------------------- */

lilac_lower_addressing lilac_lower_address_threads(lilac_lowering *l, uint32_t bits,
                                                   const uint64_t *columns) {
    lilac_simt_instruction shared = {.code = LILAC_SIMT_OP_SHARED_BASE};
    lilac_simt_type type = LILAC_SIMT_I32;
    lilac_lower_addressing a = {.base = lilac_simt_build(&l->builder, &shared, 0, NULL, 1, &type)};
    a.thread = lilac_lower_linear(&l->builder, bits, columns, 0, NULL);
    for (uint32_t i = 0; i < bits; i++) {
        a.thread_bits |= columns[i];
    }
    return a;
}

lilac_simt_value lilac_lower_address_of(lilac_lowering *l, const lilac_lower_addressing *a,
                                        uint64_t part, int64_t *immediate) {
    lilac_simt_value thread = a->thread;
    *immediate = (int64_t)part;
    if (part & a->thread_bits) {
        thread = lilac_simt_op2(&l->builder, LILAC_SIMT_OP_XOR, LILAC_SIMT_I32, thread,
                                lilac_lower_integer(l, LILAC_SIMT_I32, (int64_t)part));
        *immediate = 0;
    }
    return lilac_simt_op2(&l->builder, LILAC_SIMT_OP_ADD, LILAC_SIMT_I32, a->base, thread);
}
