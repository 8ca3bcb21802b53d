/* Registers as 32-bit words, the unit of conversion plans (pack_words.c, network.c).
 *
 * A word holds several elements that are narrower than it: the lowest bits of the register index
 * select the element within the word. A wider element occupies several words, the low half
 * first. */
#ifndef LILAC_LOWER_PACK_WORDS_H
#define LILAC_LOWER_PACK_WORDS_H

#include "lower_internal.h"

typedef struct lilac_lower_words {
    uint32_t register_bits; /* 2^register_bits registers */
    uint32_t element_bits;  /* 8 … 128 */
    uint32_t count;
    lilac_simt_value *list;
    /* Elements of 64 and 128 bits may stay in values of this type, of 64 bits each; then `list` and
     * `count` refer to those. LILAC_SIMT_VOID: words of 32 bits. */
    lilac_simt_type wide;
} lilac_lower_words;

/* The bits of an element in a word: an element of less than a byte occupies a byte. */
static inline uint32_t lilac_lower_carried_bits(uint32_t element_bits) {
    return element_bits < 8 ? 8 : element_bits;
}
/* `values`: one for each register, of this type; two i64 for elements of 128 bits. */
void lilac_lower_pack_words(lilac_simt_builder *b, lilac_arena *arena, lilac_simt_type type,
                            uint32_t register_bits, uint32_t element_bits,
                            const lilac_simt_value *values, lilac_lower_words *words);
void lilac_lower_unpack_words(lilac_simt_builder *b, lilac_simt_type type,
                              const lilac_lower_words *words, lilac_simt_value *values);
/* The same, but values of 64 bits are not split. For memory accesses and register permutations
 * only: shuffles need words. */
void lilac_lower_pack_wide(lilac_simt_builder *b, lilac_arena *arena, lilac_simt_type type,
                           uint32_t register_bits, uint32_t element_bits,
                           const lilac_simt_value *values, lilac_lower_words *words);
/* Words that are not filled yet: their number, and whether 64 bits stay together. */
lilac_lower_words lilac_lower_words_like(uint32_t register_bits, uint32_t element_bits,
                                         lilac_simt_type wide);
static inline lilac_simt_type lilac_lower_wide_type(lilac_simt_type type, uint32_t element_bits) {
    return element_bits == 64 ? type : element_bits == 128 ? LILAC_SIMT_I64 : LILAC_SIMT_VOID;
}
/* Executes a network (network.c) and replaces the words by its results. `register_bits`: of the
 * results. */
void lilac_lower_network(lilac_simt_builder *b, lilac_arena *arena,
                         const lilac_plan_network *network, uint32_t thread_bits,
                         uint32_t register_bits, lilac_lower_words *words);

#endif
