/* Registers of any type ⇄ 32-bit words.
 *
 *   8 bits      | r3 r2 r1 r0 | r7 r6 r5 r4 |      one word for four registers
 *   64 bits     | r0 low | r0 high | r1 low | …    two words for one register
 *
 * Values of 64 bits that are only stored, loaded and permuted are not split into words, which saves
 * the moves to and from pairs of 32-bit registers.
 *
 * A last word that registers fill only in part has zeros above. The builder cancels a pack of an
 * unpack, so packing costs nothing if the values were words before. */
#include "pack_words.h"
#include "coordinates.h"

#include <string.h>

static uint32_t log2_per_word(uint32_t element_bits) {
    return element_bits >= 32 ? 0 : log2_of(32 / element_bits);
}

/* The bits of an element in memory and in words. */
static lilac_simt_value to_bits(lilac_simt_builder *b, lilac_simt_type type,
                                lilac_simt_value value) {
    return type == LILAC_SIMT_I1 ? lilac_simt_op1(b, LILAC_SIMT_OP_ZEXT, LILAC_SIMT_I8, value)
                                 : value;
}

static lilac_simt_value from_bits(lilac_simt_builder *b, lilac_simt_type type,
                                  lilac_simt_value value) {
    return type == LILAC_SIMT_I1
               ? lilac_simt_compare_values(b, LILAC_SIMT_NE, value,
                                           lilac_simt_constant(b, LILAC_SIMT_I8, 0))
               : value;
}

static lilac_simt_type stored_type(lilac_simt_type type) {
    return type == LILAC_SIMT_I1 ? LILAC_SIMT_I8 : type;
}

lilac_lower_words lilac_lower_words_like(uint32_t register_bits, uint32_t element_bits,
                                         lilac_simt_type wide) {
    lilac_lower_words words = {
        .register_bits = register_bits, .element_bits = element_bits, .wide = wide};
    words.count = lilac_plan_words(register_bits, element_bits);
    words.count /= wide != LILAC_SIMT_VOID ? 2 : 1;
    return words;
}

void lilac_lower_pack_wide(lilac_simt_builder *b, lilac_arena *arena, lilac_simt_type type,
                           uint32_t register_bits, uint32_t element_bits,
                           const lilac_simt_value *values, lilac_lower_words *words) {
    if (element_bits < 64) {
        lilac_lower_pack_words(b, arena, type, register_bits, element_bits, values, words);
        return;
    }
    *words = lilac_lower_words_like(register_bits, element_bits,
                                    lilac_lower_wide_type(type, element_bits));
    words->list = lilac_arena_array(arena, lilac_simt_value, words->count);
    memcpy(words->list, values, words->count * sizeof *values);
}

void lilac_lower_pack_words(lilac_simt_builder *b, lilac_arena *arena, lilac_simt_type type,
                            uint32_t register_bits, uint32_t element_bits,
                            const lilac_simt_value *values, lilac_lower_words *words) {
    uint32_t bits = lilac_lower_carried_bits(element_bits);
    *words = lilac_lower_words_like(register_bits, bits, LILAC_SIMT_VOID);
    words->list = lilac_arena_array(arena, lilac_simt_value, words->count);
    uint32_t registers = 1U << register_bits;
    if (bits >= 64) {
        for (uint32_t i = 0; i < words->count / 2; i++) {
            lilac_simt_unpack(b, LILAC_SIMT_I32, values[i], 2, words->list + 2 * i);
        }
        return;
    }
    uint32_t each = 1U << log2_per_word(bits);
    for (uint32_t w = 0; w < words->count; w++) {
        lilac_simt_value parts[4];
        for (uint32_t k = 0; k < each; k++) {
            uint32_t r = w * each + k;
            parts[k] = r < registers ? to_bits(b, type, values[r])
                                     : lilac_simt_constant(b, stored_type(type), 0);
        }
        words->list[w] = lilac_simt_pack(b, LILAC_SIMT_I32, each, parts);
    }
}

void lilac_lower_unpack_words(lilac_simt_builder *b, lilac_simt_type type,
                              const lilac_lower_words *words, lilac_simt_value *values) {
    uint32_t registers = 1U << words->register_bits;
    if (words->wide != LILAC_SIMT_VOID) {
        memcpy(values, words->list, words->count * sizeof *values);
        return;
    }
    if (words->element_bits >= 64) {
        lilac_simt_type half = words->element_bits == 64 ? type : LILAC_SIMT_I64;
        for (uint32_t i = 0; i < words->count / 2; i++) {
            values[i] = lilac_simt_pack(b, half, 2, words->list + 2 * i);
        }
        return;
    }
    uint32_t each = 1U << log2_per_word(words->element_bits);
    for (uint32_t w = 0; w < words->count; w++) {
        lilac_simt_value parts[4];
        lilac_simt_unpack(b, stored_type(type), words->list[w], each, parts);
        for (uint32_t k = 0; k < each && w * each + k < registers; k++) {
            values[w * each + k] = from_bits(b, type, parts[k]);
        }
    }
}
