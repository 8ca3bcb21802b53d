/* ttg.fp4_to_fp: each byte holds two e2m1 numbers s ee m, which are neighbours along `axis`. The
 * low four bits are the first number.
 *
 * s ee m as the f16 s 000ee m000000000 is the number times 2^-14: the exponents' biases are 1
 * and 15. This holds for the subnormal number too, so one multiplication produces the number
 * exactly, and every wider type represents it. As the bf16 s 000000ee m000000 it is the number
 * times 2^-126.
 *
 * First each byte is moved to the threads of both of its numbers. If the lowest bit of `axis` is
 * a register bit, as in the layouts that Triton chooses, no data moves, and a thread decodes both
 * numbers of a byte h l together:
 *
 *     byte · 0x01001000        h l | h l 0 0 0        in each half of the word: number, other bits
 *     & 0x80008000             the signs
 *     & 0x70007000, >> 3 or 6  the magnitudes, at their place in f16 or bf16
 *
 * Where the byte is one of a word w, a permute of the bytes of w and w << 4 makes such halves.
 *
 * Otherwise each thread computes the half that it needs. */
#include "convert_layout.h"
#include "numeric_casts.h"
#include "operations.h"

/* The byte of each register of the result. */
static bool read_bytes(lilac_lowering *l, const lilac_lower_value *from, lilac_lower_value *bytes,
                       uint32_t axis) {
    lilac_lower_map map;
    lilac_lower_map_identity(&map, from->view->columns.out_bits);
    for (uint32_t d = 0; d < from->view->columns.rank; d++) {
        for (uint32_t j = 0; j < from->view->columns.bits[d]; j++) {
            map.bits[from->view->columns.start[d] + j] =
                (int8_t)(bytes->view->columns.start[d] + j + (d == axis ? 1 : 0));
        }
    }
    const uint32_t *source;
    if (!lilac_lower_find_sources(l, from->view, bytes->view, &map, &source)) {
        return lilac_lower_move_value(l, from, &map, 1, &bytes);
    }
    for (uint32_t r = 0; r < bytes->count; r++) {
        bytes->base[r] = lilac_lower_get(l, from, lilac_lower_index(from, source, r));
    }
    return true;
}

/* 4 in the threads whose register 0 has an odd coordinate bit `bit`, 0 in the others. */
static lilac_simt_value shift_of_thread(lilac_lowering *l, const lilac_lower_view *view,
                                        uint32_t bit) {
    uint64_t threads[LILAC_LAYOUT_MAX_BITS], blocks[LILAC_LAYOUT_MAX_BITS];
    for (uint32_t i = 0; i < view->columns.thread_bits; i++) {
        threads[i] = (view->columns.threads[i] >> bit & 1) << 2;
    }
    for (uint32_t i = 0; i < view->columns.block_bits; i++) {
        blocks[i] = (view->columns.blocks[i] >> bit & 1) << 2;
    }
    return lilac_lower_linear(&l->builder, view->columns.thread_bits, threads,
                              view->columns.block_bits, blocks);
}

/* The number in bits `shift` to `shift` + 3 of a byte. */
static lilac_simt_value decode(lilac_lowering *l, lilac_simt_value byte, lilac_simt_value shift) {
    const lilac_simt_type word = LILAC_SIMT_I32;
    lilac_simt_builder *b = &l->builder;
    lilac_simt_value x = lilac_simt_op1(b, LILAC_SIMT_OP_ZEXT, word, byte);
    x = lilac_simt_op2(b, LILAC_SIMT_OP_SHR_U, word, x, shift);
    lilac_simt_value parts[2]; /* the sign, the magnitude */
    for (uint32_t i = 0; i < 2; i++) {
        parts[i] = lilac_simt_op2(b, LILAC_SIMT_OP_AND, word, x,
                                  lilac_simt_constant(b, word, i == 0 ? 8 : 7));
        parts[i] = lilac_simt_op2(b, LILAC_SIMT_OP_SHL, word, parts[i],
                                  lilac_simt_constant(b, word, i == 0 ? 12 : 9));
    }
    x = lilac_simt_op2(b, LILAC_SIMT_OP_OR, word, parts[0], parts[1]);
    x = lilac_simt_op1(b, LILAC_SIMT_OP_TRUNC, LILAC_SIMT_I16, x);
    x = lilac_simt_op1(b, LILAC_SIMT_OP_BITCAST, LILAC_SIMT_F16, x);
    return lilac_simt_op2(b, LILAC_SIMT_OP_FMUL, LILAC_SIMT_F16, x,
                          lilac_lower_float(l, LILAC_SIMT_F16, 0x1p14));
}

/* A word with the second number of a byte in the highest four bits, and with the first one in the highest
 * ones of the lower half. */
static lilac_simt_value spread_pair(lilac_simt_builder *b, lilac_simt_value byte) {
    const lilac_simt_type word = LILAC_SIMT_I32;
    const lilac_simt_instruction *unpack = b->kernel->values[byte].definition;
    if (unpack != NULL && unpack->code == LILAC_SIMT_OP_UNPACK &&
        lilac_simt_type_of(b->kernel, unpack->operands[0]) == word) {
        const lilac_simt_value pairs = unpack->operands[0];
        const uint32_t index = byte - unpack->result, selector = index * 0x1111 + 0x4400;
        const lilac_simt_value first =
            lilac_simt_op2(b, LILAC_SIMT_OP_SHL, word, pairs, lilac_simt_constant(b, word, 4));
        return lilac_simt_op3(b, LILAC_SIMT_OP_PRMT, word, first, pairs,
                              lilac_simt_constant(b, word, selector));
    }
    const lilac_simt_value wide = lilac_simt_op1(b, LILAC_SIMT_OP_ZEXT, word, byte);
    return lilac_simt_op2(b, LILAC_SIMT_OP_MUL, word, wide,
                          lilac_simt_constant(b, word, 0x01001000));
}

/* Both numbers of a byte, as f16 or bf16. */
static void decode_pair(lilac_lowering *l, lilac_simt_value byte, bool bf16,
                        lilac_simt_value *numbers) {
    const uint32_t signs = 0x80008000, above = 0x70007000;
    const lilac_simt_type word = LILAC_SIMT_I32, pair = bf16 ? LILAC_SIMT_BF16X2 : LILAC_SIMT_F16X2;
    const lilac_simt_type number = bf16 ? LILAC_SIMT_BF16 : LILAC_SIMT_F16;
    lilac_simt_builder *b = &l->builder;
    lilac_simt_value x = spread_pair(b, byte);
    lilac_simt_value magnitudes =
        lilac_simt_op2(b, LILAC_SIMT_OP_AND, word, x, lilac_simt_constant(b, word, above));
    magnitudes = lilac_simt_op2(b, LILAC_SIMT_OP_SHR_U, word, magnitudes,
                                lilac_simt_constant(b, word, bf16 ? 6 : 3));
    x = lilac_simt_op2(b, LILAC_SIMT_OP_AND, word, x, lilac_simt_constant(b, word, signs));
    x = lilac_simt_op2(b, LILAC_SIMT_OP_OR, word, x, magnitudes);
    const lilac_simt_value factor = lilac_lower_float(l, number, bf16 ? 0x1p126 : 0x1p14);
    const lilac_simt_value factors[2] = {factor, factor};
    const lilac_simt_value scale = lilac_simt_pack(b, pair, 2, factors);
    x = lilac_simt_op2(b, LILAC_SIMT_OP_FMUL, pair,
                       lilac_simt_op1(b, LILAC_SIMT_OP_BITCAST, pair, x), scale);
    lilac_simt_unpack(b, number, x, 2, numbers);
}

/* The register bit that is the lowest bit of the axis, which no thread has; -1: none. */
static int register_of(const lilac_layout_columns *columns, uint32_t bit) {
    int found = -1;
    for (uint32_t i = 0; i < columns->register_bits; i++) {
        const uint64_t column = columns->registers[i];
        if ((column >> bit & 1) != 0 && (found >= 0 || column != UINT64_C(1) << bit)) {
            return -1;
        }
        found = column >> bit & 1 ? (int)i : found;
    }
    for (uint32_t i = 0; i < columns->thread_bits; i++) {
        found = columns->threads[i] >> bit & 1 ? -1 : found;
    }
    for (uint32_t i = 0; i < columns->block_bits; i++) {
        found = columns->blocks[i] >> bit & 1 ? -1 : found;
    }
    return found;
}

/* Decodes the registers with and without a register bit together. */
static void decode_pairs(lilac_lowering *l, const lilac_lower_value *bytes, lilac_lower_value *to,
                         uint32_t bit) {
    const bool bf16 = to->simt == LILAC_SIMT_BF16;
    for (uint32_t r = 0; r < to->count; r++) {
        lilac_simt_value numbers[2];
        if ((r >> bit & 1) != 0) {
            continue;
        }
        decode_pair(l, bytes->base[r], bf16, numbers);
        for (uint32_t k = 0; k < 2; k++) {
            to->base[r | k << bit] =
                lilac_lower_convert(l, numbers[k], to->simt, LILAC_ROUND_NEAREST_EVEN);
        }
    }
}

bool lilac_lower_fp4_to_fp(lilac_lowering *l, const lilac_tile_op *op) {
    const lilac_lower_value *from = lilac_lower_operand(l, op, 0);
    lilac_lower_value *to = lilac_lower_result(l, op, 0);
    if (to == NULL) {
        return false;
    }
    if (!lilac_simt_type_is_float(to->simt)) {
        return lilac_lower_refuse(l, "unsupported-type",
                                  "'ttg.fp4_to_fp' to 8-bit floats cannot be lowered; the result "
                                  "must be f16, bf16, f32 or f64");
    }
    uint32_t axis = (uint32_t)lilac_tile_find_integer(&op->attributes, "axis", 0);
    lilac_lower_value bytes = *to;
    bytes.simt = from->simt;
    bytes.base = lilac_arena_array(l->arena, lilac_simt_value, to->count);
    if (!read_bytes(l, from, &bytes, axis)) {
        return false;
    }
    uint32_t bit = to->view->columns.start[axis];
    const int pair = register_of(&to->view->columns, bit);
    if (pair >= 0) {
        decode_pairs(l, &bytes, to, (uint32_t)pair);
        return true;
    }
    lilac_simt_value thread = shift_of_thread(l, to->view, bit);
    for (uint32_t r = 0; r < to->count; r++) {
        int64_t of_register = (int64_t)(to->view->coordinates[r] >> bit & 1) << 2;
        lilac_simt_value shift =
            lilac_simt_op2(&l->builder, LILAC_SIMT_OP_XOR, LILAC_SIMT_I32, thread,
                           lilac_lower_integer(l, LILAC_SIMT_I32, of_register));
        to->base[r] = lilac_lower_convert(l, decode(l, bytes.base[r], shift), to->simt,
                                          LILAC_ROUND_NEAREST_EVEN);
    }
    return true;
}
