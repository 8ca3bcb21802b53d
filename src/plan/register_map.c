/* A map of registers as stages of operations on two words.
 *
 *   element i of word u of thread t   ←   element s of word v:     v = a·u ⊕ d·i ⊕ g·t
 *                                                                   s = b·u ⊕ k·i ⊕ h·t
 *
 * A select or a byte permute computes one word from two words. A word that depends on 2^k words,
 * where k = dim span(d, g), takes k stages. Each stage computes all words that exist at that point.
 *
 *   selects    One stage for each direction of g beyond those of d: word v of the result is word
 *              v ⊕ direction where a parity of the thread's bits is odd. Directions that leave the
 *              span of the words needed later halve the number of words and come first.
 *   mixing     The rest of g lies in the span of d, whose rank is 0, 1 or 2. Rank 0: places change
 *              within words only; the last select becomes a byte permute that does both. Rank 1:
 *              one stage of byte permutes. Rank 2 (bytes; each byte of a word from another word):
 *              two stages.
 *
 * Rank 2: let d₀, d₁ be the columns of d and y = (y₀, y₁) the coordinates of v's part in their
 * span. Then i = y ⊕ α·u ⊕ g·t, and word u needs byte s = η ⊕ κ·y ⊕ γ·t of word y, where η depends
 * only on u. For each y₁ and η₀, the first stage combines the bytes (y₀, η₁) of the words y₀ = 0,
 * 1. The second stage selects the bytes with the right η₁ from the words y₁ = 0, 1.
 */
#include "register_map.h"
#include "plan.h"

#include <string.h>

typedef lilac_plan_map map;
typedef lilac_plan_stage stage;

void lilac_plan_map_init(map *result, uint32_t packed, uint32_t from_bits, uint32_t to_bits,
                         const uint64_t *columns, uint32_t thread_bits, const uint64_t *thread) {
    result->packed = packed;
    result->from_bits = from_bits > packed ? from_bits : packed;
    result->to_bits = to_bits > packed ? to_bits : packed;
    result->thread_bits = thread_bits;
    for (uint32_t i = 0; i < result->to_bits; i++) {
        /* Places beyond the registers are empty. */
        result->column[i] = i < to_bits ? (uint32_t)columns[i] : UINT32_C(1) << i;
    }
    for (uint32_t i = 0; i < thread_bits; i++) {
        result->thread[i] = (uint32_t)thread[i];
    }
}

/* Composes two maps. Only one of them may read two words. */
static void compose(map *result, const map *first, const map *then) {
    map composed;
    composed.packed = first->packed;
    composed.from_bits = first->from_bits;
    composed.to_bits = then->to_bits;
    composed.thread_bits = then->thread_bits;
    for (uint32_t i = 0; i < then->to_bits; i++) {
        composed.column[i] = lilac_plan_sum(first->column, then->column[i]);
    }
    for (uint32_t i = 0; i < then->thread_bits; i++) {
        composed.thread[i] = lilac_plan_sum(first->column, then->thread[i]) ^ first->thread[i];
    }
    *result = composed;
}

/* Derives the other fields of a stage from its map. */
static void finish(stage *s) {
    const map *m = &s->map;
    const uint32_t packed = m->packed, places = (UINT32_C(1) << packed) - 1;
    s->direction = s->mask = s->place_mask = 0;
    s->plain = true;
    for (uint32_t i = 0; i < packed; i++) {
        const uint32_t word = m->column[i] >> packed;
        s->direction |= word;
        s->place_mask |= (uint32_t)(word != 0) << i;
        s->plain = s->plain && m->column[i] == UINT32_C(1) << i;
    }
    for (uint32_t i = 0; i < m->thread_bits; i++) {
        const uint32_t word = m->thread[i] >> packed;
        s->direction |= word;
        s->mask |= (uint32_t)(word != 0) << i;
        s->plain = s->plain && (m->thread[i] & places) == 0;
    }
}

/* ---- selects ---------------------------------------------------------------------------- */

/* g·t = Σ direction[i] · parity(mask[i] & t), modulo the span of d. */
typedef struct selection {
    uint32_t count;
    uint32_t direction[LILAC_PLAN_MAX_THREAD_BITS], mask[LILAC_PLAN_MAX_THREAD_BITS];
} selection;

static uint32_t mixing_span(lilac_f2_basis *span, const map *m) {
    uint32_t rank = 0;
    lilac_f2_basis_init(span);
    for (uint32_t i = 0; i < m->packed; i++) {
        if (m->column[i] >> m->packed != 0) {
            rank += lilac_f2_basis_add(span, m->column[i] >> m->packed, 0);
        }
    }
    return rank;
}

static void select_directions(selection *result, const map *m, const lilac_f2_basis *mixing) {
    lilac_f2_basis span;
    lilac_f2_basis_copy(&span, mixing);
    result->count = 0;
    for (uint32_t i = 0; i < m->thread_bits; i++) {
        const uint32_t word = m->thread[i] >> m->packed;
        uint64_t used;
        if (word == 0) {
            continue;
        }
        if (lilac_f2_basis_add(&span, word, UINT64_C(1) << result->count)) {
            result->direction[result->count] = word;
            result->mask[result->count++] = UINT32_C(1) << i;
            continue;
        }
        (void)lilac_f2_basis_reduce(&span, word, &used);
        for (; used != 0; used &= used - 1) {
            result->mask[__builtin_ctzll(used)] |= UINT32_C(1) << i;
        }
    }
}

uint32_t lilac_plan_predicates(uint32_t *masks, const map *m) {
    lilac_f2_basis mixing;
    selection s;
    (void)mixing_span(&mixing, m);
    select_directions(&s, m, &mixing);
    memcpy(masks, s.mask, s.count * sizeof masks[0]);
    return s.count;
}

static void exchange(selection *s, uint32_t a, uint32_t b) {
    const uint32_t direction = s->direction[a], mask = s->mask[a];
    s->direction[a] = s->direction[b];
    s->mask[a] = s->mask[b];
    s->direction[b] = direction;
    s->mask[b] = mask;
}

/* Changes the basis so that the predicate at index `at` is `mask`, if the span contains it. */
static void prefer(selection *s, uint32_t mask, uint32_t at) {
    lilac_f2_basis span;
    uint64_t used;
    lilac_f2_basis_init(&span);
    for (uint32_t i = 0; i < s->count; i++) {
        (void)lilac_f2_basis_add(&span, s->mask[i], UINT64_C(1) << i);
    }
    if (mask == 0 || s->count == 0 || lilac_f2_basis_reduce(&span, mask, &used) != 0) {
        return;
    }
    const uint32_t taken = (uint32_t)__builtin_ctzll(used);
    for (used &= used - 1; used != 0; used &= used - 1) {
        s->direction[__builtin_ctzll(used)] ^= s->direction[taken];
    }
    s->mask[taken] = mask;
    exchange(s, taken, at);
}

/* Moves the directions outside of the span of `needed` to the front; returns how many there are. */
static uint32_t narrowing_first(selection *s, const lilac_f2_basis *needed) {
    lilac_f2_basis span;
    selection sorted = {.count = s->count};
    uint32_t narrowing = 0, others = 0;
    bool narrows[LILAC_PLAN_MAX_THREAD_BITS] = {false};
    lilac_f2_basis_copy(&span, needed);
    for (uint32_t i = 0; i < s->count; i++) {
        uint64_t used;
        narrows[i] = lilac_f2_basis_add(&span, s->direction[i], UINT64_C(1) << i);
        if (!narrows[i]) {
            (void)lilac_f2_basis_reduce(&span, s->direction[i], &used);
            for (; used != 0; used &= used - 1) {
                s->direction[i] ^= s->direction[__builtin_ctzll(used)];
                s->mask[__builtin_ctzll(used)] ^= s->mask[i];
            }
        }
        narrowing += narrows[i];
    }
    others = narrowing;
    for (uint32_t i = 0, n = 0; i < s->count; i++) {
        const uint32_t to = narrows[i] ? n++ : others++;
        sorted.direction[to] = s->direction[i];
        sorted.mask[to] = s->mask[i];
    }
    *s = sorted;
    return narrowing;
}

static void put_select(stage *result, const map *like, uint32_t from_words, uint32_t words,
                       const uint32_t *columns, uint32_t direction, uint32_t mask) {
    map *m = &result->map;
    m->packed = like->packed;
    m->from_bits = from_words + like->packed;
    m->to_bits = words + like->packed;
    m->thread_bits = like->thread_bits;
    for (uint32_t i = 0; i < like->packed; i++) {
        m->column[i] = UINT32_C(1) << i;
    }
    for (uint32_t i = 0; i < words; i++) {
        m->column[like->packed + i] = columns[i] << like->packed;
    }
    for (uint32_t i = 0; i < like->thread_bits; i++) {
        m->thread[i] = (mask >> i & 1) != 0 ? direction << like->packed : 0;
    }
}

/* ---- mixing ----------------------------------------------------------------------------- */

static uint32_t put_two_mixing(stage *stages, const map *m) {
    const uint32_t d0 = m->column[0] >> 2, d1 = m->column[1] >> 2;
    const uint32_t k0 = m->column[0] & 3, k1 = m->column[1] & 3, words = m->to_bits - 2;
    map *first = &stages[0].map, *second = &stages[1].map;
    lilac_f2_basis span, heads;
    lilac_f2_basis_init(&span);
    lilac_f2_basis_init(&heads);
    uint32_t count = 0, tail[MAX_COLUMNS];
    (void)lilac_f2_basis_add(&span, d0, 1);
    (void)lilac_f2_basis_add(&span, d1, 2);
    *first = (map){.packed = 2, .from_bits = m->from_bits, .thread_bits = m->thread_bits};
    *second = (map){.packed = 2, .to_bits = m->to_bits, .thread_bits = m->thread_bits};
    for (uint32_t u = 0; u < words; u++) {
        uint64_t alpha, known;
        const uint32_t column = m->column[2 + u];
        const uint32_t rest = (uint32_t)lilac_f2_basis_reduce(&span, column >> 2, &alpha);
        const uint32_t eta =
            (column & 3) ^ ((alpha & 1) != 0 ? k0 : 0) ^ ((alpha & 2) != 0 ? k1 : 0);
        const uint32_t head = rest << 1 | (eta & 1);
        if (lilac_f2_basis_add(&heads, head, UINT64_C(1) << count)) {
            first->column[2 + count] = rest << 2 | (eta & 1);
            known = UINT64_C(1) << count++;
        } else {
            (void)lilac_f2_basis_reduce(&heads, head, &known);
        }
        second->column[2 + u] = (uint32_t)known << 2 | (uint32_t)(alpha & 1) | (eta & 2);
        tail[u] = (uint32_t)(alpha >> 1);
    }
    first->column[0] = d0 << 2 | k0;
    first->column[1] = 2;
    first->column[2 + count] = d1 << 2 | k1;
    first->to_bits = second->from_bits = 3 + count;
    second->column[0] = 1;
    second->column[1] = UINT32_C(4) << count;
    for (uint32_t u = 0; u < words; u++) {
        second->column[2 + u] |= tail[u] << (2 + count);
    }
    for (uint32_t i = 0; i < m->thread_bits; i++) {
        uint64_t g;
        (void)lilac_f2_basis_reduce(&span, m->thread[i] >> 2, &g);
        first->thread[i] = (m->thread[i] & 3) ^ ((g & 1) != 0 ? k0 : 0) ^ ((g & 2) != 0 ? k1 : 0);
        second->thread[i] = (uint32_t)(g >> 1) << (2 + count) | (uint32_t)(g & 1);
    }
    return 2;
}

/* log2 of the words that the first of the two stages computes. */
static uint32_t first_mixing_words(const map *m) {
    const uint32_t k0 = m->column[0] & 3, k1 = m->column[1] & 3;
    lilac_f2_basis span, heads;
    uint32_t count = 0;
    lilac_f2_basis_init(&span);
    lilac_f2_basis_init(&heads);
    (void)lilac_f2_basis_add(&span, m->column[0] >> 2, 1);
    (void)lilac_f2_basis_add(&span, m->column[1] >> 2, 2);
    for (uint32_t i = 2; i < m->to_bits; i++) {
        uint64_t alpha;
        const uint64_t rest = lilac_f2_basis_reduce(&span, m->column[i] >> 2, &alpha);
        const uint32_t eta =
            m->column[i] ^ ((alpha & 1) != 0 ? k0 : 0) ^ ((alpha & 2) != 0 ? k1 : 0);
        count += lilac_f2_basis_add(&heads, rest << 1 | (eta & 1), 0);
    }
    return count + 1;
}

/* ---- factorization ---------------------------------------------------------------------- */

/* The map without the selects, in the coordinates of the words that the selects leave. */
static void remainder_of(map *result, const map *m, const selection *s, const lilac_f2_basis *basis,
                         uint32_t words) {
    const uint32_t packed = m->packed, places = (UINT32_C(1) << packed) - 1;
    *result = *m;
    result->from_bits = words + packed;
    for (uint32_t i = 0; i < m->to_bits; i++) {
        uint64_t at;
        (void)lilac_f2_basis_reduce(basis, m->column[i] >> packed, &at);
        result->column[i] = (uint32_t)at << packed | (m->column[i] & places);
    }
    for (uint32_t i = 0; i < m->thread_bits; i++) {
        uint32_t word = m->thread[i] >> packed;
        uint64_t at;
        for (uint32_t k = 0; k < s->count; k++) {
            word ^= (s->mask[k] >> i & 1) != 0 ? s->direction[k] : 0;
        }
        (void)lilac_f2_basis_reduce(basis, word, &at);
        result->thread[i] = (uint32_t)at << packed | (m->thread[i] & places);
    }
}

static uint32_t put_selects(stage *stages, map *rest, const map *m, selection *s, uint32_t first,
                            uint32_t last) {
    uint32_t vectors[MAX_COLUMNS + LILAC_PLAN_MAX_THREAD_BITS];
    uint32_t direction[LILAC_PLAN_MAX_THREAD_BITS];
    uint32_t words = 0;
    lilac_f2_basis needed, basis;
    if (first != 0) {
        prefer(s, first, 0);
    }
    if (last != 0) {
        prefer(s, last, s->count - 1);
    }
    lilac_f2_basis_init(&needed);
    lilac_f2_basis_init(&basis);
    for (uint32_t n = 0; n < m->to_bits;
         n++) { /* places last, which keeps the coordinates simple */
        const uint32_t i = (n + m->packed) % m->to_bits, word = m->column[i] >> m->packed;
        if (word != 0 && lilac_f2_basis_add(&basis, word, UINT64_C(1) << words)) {
            vectors[words++] = word;
            (void)lilac_f2_basis_add(&needed, word, 0);
        }
    }
    const uint32_t narrowing = narrowing_first(s, &needed);
    /* Words between stages: the needed words, then the remaining narrowing directions, the next one
     * last. */
    for (uint32_t i = 0; i < narrowing; i++) {
        vectors[words + i] = s->direction[narrowing - 1 - i];
        direction[i] = UINT32_C(1) << (words + narrowing - 1 - i);
    }
    for (uint32_t i = narrowing; i < s->count; i++) {
        uint64_t at;
        (void)lilac_f2_basis_reduce(&basis, s->direction[i], &at);
        direction[i] = (uint32_t)at;
    }
    uint32_t from = m->from_bits - m->packed;
    for (uint32_t i = 0; i < s->count; i++) {
        const uint32_t remaining = words + (i < narrowing ? narrowing - 1 - i : 0);
        uint32_t units[MAX_COLUMNS];
        for (uint32_t k = 0; k < remaining; k++) {
            units[k] = i == 0 ? vectors[k] : UINT32_C(1) << k;
        }
        put_select(&stages[i], m, from, remaining, units, i == 0 ? s->direction[0] : direction[i],
                   s->mask[i]);
        from = remaining;
    }
    remainder_of(rest, m, s, &basis, words);
    return s->count;
}

uint32_t lilac_plan_factor(stage *stages, const map *m, uint32_t first, uint32_t last) {
    lilac_f2_basis mixing;
    selection s;
    map rest;
    uint32_t count = 0;
    const uint32_t rank = mixing_span(&mixing, m);
    select_directions(&s, m, &mixing);
    if (s.count != 0) {
        count = put_selects(stages, &rest, m, &s, first, last);
    } else {
        rest = *m;
    }
    if (rank == 0 && count != 0) {
        compose(&stages[count - 1].map, &stages[count - 1].map, &rest);
    } else if (rank < 2) {
        stages[count++].map = rest;
    } else {
        count += put_two_mixing(stages + count, &rest);
    }
    for (uint32_t i = 0; i < count; i++) {
        finish(&stages[i]);
    }
    return count;
}

/* ---- counting --------------------------------------------------------------------------- */

lilac_plan_count lilac_plan_count_words(const stage *s, const uint32_t *columns, uint32_t count) {
    const uint32_t places = (UINT32_C(1) << s->map.packed) - 1;
    lilac_plan_count result = {0, 0};
    lilac_f2_basis span, moved;
    uint32_t rank = 0, moving = 0;
    lilac_f2_basis_init(&span);
    lilac_f2_basis_init(&moved);
    for (uint32_t i = 0; i < count; i++) {
        rank += lilac_f2_basis_add(&span, columns[i], 0);
        if ((columns[i] & places) != 0) {
            moving += lilac_f2_basis_add(&moved, columns[i] & places, 0);
        }
    }
    const uint64_t all = UINT64_C(1) << rank;
    const uint64_t still =
        s->plain ? all >> moving : 0; /* words whose elements keep their places */
    result.permutes = all - still;
    result.selects = s->direction != 0 ? still : 0;
    return result;
}

lilac_plan_count lilac_plan_count_stage(const stage *s) {
    return lilac_plan_count_words(s, s->map.column + s->map.packed, s->map.to_bits - s->map.packed);
}

lilac_plan_count lilac_plan_estimate(const map *m) {
    const uint32_t packed = m->packed;
    lilac_plan_count result = {0, 0};
    lilac_f2_basis mixing, needed;
    selection s;
    stage last;
    uint32_t words = 0, narrowing = 0;
    const uint32_t rank = mixing_span(&mixing, m);
    select_directions(&s, m, &mixing);
    lilac_f2_basis_init(&needed);
    for (uint32_t i = 0; s.count != 0 && i < m->to_bits; i++) {
        const uint32_t word = m->column[i] >> packed;
        words += word != 0 && lilac_f2_basis_add(&needed, word, 0);
    }
    for (uint32_t i = 0; i < s.count; i++) {
        narrowing += lilac_f2_basis_add(&needed, s.direction[i], 0);
    }
    if (s.count != 0) {
        const uint64_t others = s.count - narrowing + (UINT64_C(1) << narrowing) - 1;
        result.selects = (others - (rank == 0)) << words;
    }
    last.map = *m;
    finish(&last);
    const lilac_plan_count count = lilac_plan_count_stage(&last);
    const uint64_t all = count.selects + count.permutes;
    result.selects += rank == 0 ? count.selects : 0;
    result.permutes += rank == 0 ? count.permutes : all;
    result.permutes += rank == 2 ? UINT64_C(1) << first_mixing_words(m) : 0;
    return result;
}
