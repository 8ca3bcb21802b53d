/* The sets of keywords that attributes take in custom assembly, and the integers that generic form
 * writes in their place. */
#include "internal.h"

#include <string.h>

/* set, separator of a list, keyword that is not written, integer of the first word, words; a word
 * "-" is an integer that has none */
static const tile_keywords sets[] = {
    {"axis", NULL, NULL, 0, "x y z"},
    {"cache", NULL, "none", 1, "none ca cg wb cs wt cv"},
    {"cmpf", NULL, NULL, 0, "false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true"},
    {"cmpi", NULL, NULL, 0, "eq ne slt sle sgt sge ult ule ugt uge"},
    {"descriptor_reduce", NULL, NULL, 0, "none add min max inc dec and or xor"},
    {"evict", NULL, "normal", 1, "normal evict_first evict_last"},
    {"fastmath", ",", "none", 0, "none reassoc nnan ninf nsz arcp contract afn fast"},
    {"overflow", ", ", "none", 0, "none nsw nuw"},
    {"precision", NULL, "ieee", 0, "tf32 tf32x3 ieee bf16x3 bf16x6"},
    {"propagate_nan", NULL, NULL, 0, "none all"},
    {"rmw", NULL, NULL, 1, "and or xor add fadd max min umax umin exch"},
    {"rounding", NULL, NULL, 0, "rtz rtne"},
    {"roundingmode", NULL, NULL, 0, "to_nearest_even downward upward toward_zero to_nearest_away"},
    {"scaled", NULL, NULL, 0, "e4m3 e5m2 e2m3 e3m2 e2m1 bf16 fp16"},
    {"scope", NULL, NULL, 1, "gpu cta sys"},
    {"sem", NULL, NULL, 1, "relaxed acquire release acq_rel"},
};

const tile_keywords *tile_keywords_find(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        if (strncmp(sets[i].name, name, length) == 0 && sets[i].name[length] == 0) {
            return &sets[i];
        }
    }
    return NULL;
}

/* The next word of a list at `at`; its length, 0 at the end. */
static size_t next_word(const char **at) {
    while (**at == ' ') {
        ++*at;
    }
    return strcspn(*at, " ");
}

bool tile_keywords_has(const tile_keywords *set, const char *word, size_t length) {
    const char *at = set->words;
    for (size_t n; (n = next_word(&at)) != 0; at += n) {
        if (n == length && memcmp(at, word, n) == 0) {
            return true;
        }
    }
    return false;
}

const char *tile_keywords_of(const tile_keywords *set, int64_t integer, size_t *length) {
    int64_t number = set->first;
    const char *at = set->words;
    if (set->separator && integer != number) {
        return NULL; /* a list of flags is not one integer's word */
    }
    if (strcmp(set->name, "propagate_nan") == 0 && integer == 0xFFFF) {
        integer = 1; /* Triton's `all` is a mask */
    }
    for (size_t n; (n = next_word(&at)) != 0; at += n, number++) {
        if (number == integer) {
            *length = n;
            return at;
        }
    }
    return NULL;
}
