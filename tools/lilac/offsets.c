/* Where a memory layout has an element, as formulas for readers.
 *
 * The map is a bit matrix: bit i of coordinate d is xored into some bits of the offset. The bits of
 * one coordinate that all move by the same distance make one term, a part of the coordinate times a
 * power of two. Terms that share offset bits must be xored; groups of them share none, so they may
 * as well be added, as people write strides:
 *
 *     m0 → 5, 1   m1 → 6, 2 …   n0 → 0   n1 → 1 …       32*m + (n ^ 2*m)
 */
#include "offsets.h"

typedef struct term {
    uint32_t dim;
    int distance;     /* from the coordinate's bit to the offset's */
    uint64_t mask;    /* of the coordinate's bits */
    uint64_t reaches; /* of the offset's bits */
    uint32_t group;
} term;

/* No more than pairs of bits. */
enum { MOST_TERMS = LILAC_LAYOUT_MAX_BITS * LILAC_LAYOUT_MAX_BITS };

bool offsets_of(lilac_layout *map, const lilac_layout *memory, lilac_reason *why) {
    return lilac_layout_pseudoinvert(map, memory, why);
}

void offsets_put_name(lilac_text *out, uint32_t rank, uint32_t dim) {
    static const char *const names[3] = {"i", "mn", "lmn"};
    if (rank <= 3) {
        lilac_text_char(out, names[rank - 1][dim]);
    } else {
        lilac_text_printf(out, "d%u", dim);
    }
}

/* Column of bit `bit` of coordinate `dim`: where it moves along `to`. */
static uint64_t moves(const lilac_layout *map, const char *to, uint32_t dim, uint32_t bit) {
    const int out = lilac_layout_out(map, to);
    return out < 0 ? 0
                   : lilac_layout_coordinate(
                         map, map->columns[lilac_layout_in_start(map, dim) + bit], (uint32_t)out);
}

static uint32_t find_terms(term *terms, const lilac_layout *map) {
    const int bits = (int)lilac_layout_out_bits(map, "offset");
    uint32_t count = 0;
    for (uint32_t back = map->in_count; back > 0; back--) {
        const uint32_t dim = back - 1;
        for (int distance = -(int)map->in[dim].bits + 1; distance < bits; distance++) {
            term t = {.dim = dim, .distance = distance};
            for (uint32_t i = 0; i < map->in[dim].bits; i++) {
                const int to = (int)i + distance;
                if (to >= 0 && to < bits && (moves(map, "offset", dim, i) >> to & 1) != 0) {
                    t.mask |= UINT64_C(1) << i;
                    t.reaches |= UINT64_C(1) << to;
                }
            }
            if (t.mask != 0) {
                t.group = count;
                terms[count++] = t;
            }
        }
    }
    return count;
}

/* Terms that share bits, or share them with a third, are of one group. */
static void join_groups(term *terms, uint32_t count) {
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < count; i++) {
            for (uint32_t j = 0; j < count; j++) {
                if ((terms[i].reaches & terms[j].reaches) != 0 && terms[j].group > terms[i].group) {
                    terms[j].group = terms[i].group;
                    changed = true;
                }
            }
        }
    }
}

static void put_term(lilac_text *out, const lilac_layout *map, const term *t) {
    const uint64_t whole = (UINT64_C(1) << map->in[t->dim].bits) - 1;
    const uint32_t lowest = (uint32_t)__builtin_ctzll(t->mask);
    /* Division drops the low bits by itself. */
    const bool divides = t->distance < 0 && (uint32_t)-t->distance == lowest;
    const bool all = t->mask == whole || (divides && t->mask == (whole >> lowest << lowest));
    if (t->distance > 0) {
        lilac_text_printf(out, "%llu*", 1ULL << t->distance);
    }
    if (!all) {
        lilac_text_char(out, '(');
    }
    offsets_put_name(out, map->in_count, t->dim);
    if (!all) {
        lilac_text_printf(out, " & %llu)", (unsigned long long)t->mask);
    }
    if (t->distance < 0) {
        lilac_text_printf(out, "/%llu", 1ULL << -t->distance);
    }
}

static uint64_t group_reaches(const term *terms, uint32_t count, uint32_t group) {
    uint64_t reaches = 0;
    for (uint32_t i = 0; i < count; i++) {
        reaches |= terms[i].group == group ? terms[i].reaches : 0;
    }
    return reaches;
}

static void put_group(lilac_text *out, const lilac_layout *map, const term *terms, uint32_t count,
                      uint32_t group, bool alone) {
    uint32_t size = 0;
    for (uint32_t i = 0; i < count; i++) {
        size += terms[i].group == group;
    }
    const bool parentheses = size > 1 && !alone;
    if (parentheses) {
        lilac_text_char(out, '(');
    }
    const char *separator = "";
    for (uint32_t i = 0; i < count; i++) {
        if (terms[i].group == group) {
            lilac_text_puts(out, separator);
            put_term(out, map, &terms[i]);
            separator = " ^ ";
        }
    }
    if (parentheses) {
        lilac_text_char(out, ')');
    }
}

void offsets_put_formula(lilac_text *out, const lilac_layout *map) {
    term *terms = lilac_heap_grow(NULL, MOST_TERMS * sizeof *terms);
    const uint32_t count = find_terms(terms, map);
    join_groups(terms, count);
    uint64_t all = 0, done = 0;
    for (uint32_t i = 0; i < count; i++) {
        all |= terms[i].reaches;
    }
    if (count == 0) {
        lilac_text_char(out, '0');
    }
    /* The group that reaches highest comes first. */
    while (done != all) {
        uint64_t reaches = 0;
        uint32_t next = 0;
        for (uint32_t i = 0; i < count; i++) {
            const uint64_t mine = group_reaches(terms, count, terms[i].group);
            if ((mine & done) == 0 && mine > reaches) {
                reaches = mine;
                next = i;
            }
        }
        if (done != 0) {
            lilac_text_puts(out, " + ");
        }
        put_group(out, map, terms, count, terms[next].group, reaches == all);
        done |= reaches;
    }
    lilac_heap_free(terms);
}

void offsets_put_bit(lilac_text *out, const lilac_layout *map, const char *to, uint32_t bit) {
    bool any = false;
    for (uint32_t back = map->in_count; back > 0; back--) {
        const uint32_t dim = back - 1;
        for (uint32_t i = 0; i < map->in[dim].bits; i++) {
            if ((moves(map, to, dim, i) >> bit & 1) != 0) {
                if (any) {
                    lilac_text_char(out, '^');
                }
                offsets_put_name(out, map->in_count, dim);
                lilac_text_unsigned(out, i);
                any = true;
            }
        }
    }
    if (!any) {
        lilac_text_char(out, '0');
    }
}
