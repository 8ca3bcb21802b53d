/* An exchange within a warp as operations on words, and its price.
 *
 *   words  ─▶ before: stages ─▶ shfl.sync ─▶ after: stages ─▶ words
 *
 * A word that stays in its lane is not shuffled. The last stage before the shuffle computes it and
 * the first stage after the shuffle reads it. If both stages select by the same predicate, the
 * second stage can read the operands of the first one:
 *
 *   select(p, x, select(p, y, z)) = select(p, x, z)
 *
 * Predicates that the two maps have in common are therefore placed next to the shuffle, and the
 * last stage before it leaves out the words that stay. A swap of a register bit with a lane bit
 * then takes three selects and one shuffle per pair of registers.
 */
#include "plan.h"
#include "register_map.h"

#include <string.h>

typedef lilac_plan_map map;
typedef lilac_plan_stage stage;
typedef lilac_plan_writer writer;
typedef lilac_plan_place place;
typedef lilac_plan_shuffle shuffle;

typedef struct exchange {
    stage before[MAX_STAGES], after[MAX_STAGES];
    uint32_t before_count, after_count;
    uint32_t words; /* log2 of the words between the maps */
    uint32_t distance[MAX_COLUMNS];
    bool own_lane;               /* the source lane is the thread's own lane, up to the distance */
    uint32_t still[MAX_COLUMNS]; /* basis of the words that stay in their lanes */
    uint32_t still_count;
    bool joined;   /* words that stay: the first stage after the shuffle reads the operands of the
                       last stage before it */
    bool permuted; /* these words need byte permutes */
    uint32_t masks[1 + 4 + 1],
        mask_count; /* parities that the control of a joined word depends on */
} exchange;

static uint32_t common_predicate(const map *before, const map *after) {
    uint32_t masks[2 * LILAC_PLAN_MAX_THREAD_BITS];
    const uint32_t count = lilac_plan_predicates(masks, before);
    const uint32_t others = lilac_plan_predicates(masks + count, after);
    lilac_f2_basis span;
    lilac_f2_basis_init(&span);
    for (uint32_t i = 0; i < count; i++) {
        (void)lilac_f2_basis_add(&span, masks[i], UINT64_C(1) << i);
    }
    for (uint32_t i = count; i < count + others; i++) {
        uint64_t used;
        uint32_t common = 0;
        if (lilac_f2_basis_add(&span, masks[i], UINT64_C(1) << i)) {
            continue;
        }
        (void)lilac_f2_basis_reduce(&span, masks[i], &used);
        for (used &= (UINT64_C(1) << count) - 1; used != 0; used &= used - 1) {
            common ^= masks[__builtin_ctzll(used)];
        }
        return common;
    }
    return 0;
}

static void find_still(exchange *x, const shuffle *s, uint32_t packed) {
    lilac_f2_basis span;
    lilac_f2_basis_init(&span);
    x->own_lane = true;
    for (uint32_t i = 0; i < s->lane_bits + s->warp_bits; i++) {
        const uint64_t own = i < s->lane_bits ? UINT64_C(1) << i : 0;
        x->own_lane = x->own_lane && s->lane[i] == own;
    }
    x->still_count = 0;
    for (uint32_t i = 0; i < x->words; i++) {
        uint64_t used = 0;
        x->distance[i] = (uint32_t)s->distance[packed + i];
        if (x->distance[i] != 0 && lilac_f2_basis_add(&span, x->distance[i], UINT64_C(1) << i)) {
            continue;
        }
        (void)lilac_f2_basis_reduce(&span, x->distance[i], &used);
        x->still[x->still_count++] = (uint32_t)used | UINT32_C(1) << i;
    }
    x->still_count = x->own_lane ? x->still_count : 0;
}

static bool moves_places(const stage *s) {
    bool moves = !s->plain;
    for (uint32_t i = s->map.packed; i < s->map.to_bits; i++) {
        moves = moves || (s->map.column[i] & ((UINT32_C(1) << s->map.packed) - 1)) != 0;
    }
    return moves;
}

/* Whether `last` does not select the words that `first` reads, or both select by the same
 * predicate. */
static bool selects_agree(const stage *last, const stage *first, uint32_t *mask) {
    const uint32_t places = (UINT32_C(1) << first->map.packed) - 1;
    uint32_t place_mask = 0;
    *mask = last->mask;
    for (uint32_t i = 0; i < first->map.packed; i++) {
        place_mask |= lilac_plan_parity(first->map.column[i] & places & last->place_mask) << i;
    }
    for (uint32_t i = 0; i < first->map.thread_bits; i++) {
        *mask ^= lilac_plan_parity(first->map.thread[i] & places & last->place_mask) << i;
    }
    return (*mask == 0 && place_mask == 0) || first->direction == 0 ||
           (*mask == first->mask && place_mask == first->place_mask);
}

/* Whether no shuffled word is computed as the same word as one that stays. */
static bool still_words_are_separate(const exchange *x, const stage *last, uint32_t *columns) {
    lilac_f2_basis all, still;
    uint32_t rank = 0, still_rank = 0;
    lilac_f2_basis_init(&all);
    lilac_f2_basis_init(&still);
    for (uint32_t i = 0; i < x->words; i++) {
        rank += lilac_f2_basis_add(&all, last->map.column[last->map.packed + i], 0);
    }
    for (uint32_t i = 0; i < x->still_count; i++) {
        columns[i] = lilac_plan_sum(last->map.column + last->map.packed, x->still[i]);
        still_rank += lilac_f2_basis_add(&still, columns[i], 0);
    }
    return rank - still_rank == x->words - x->still_count;
}

static void try_to_join(exchange *x, lilac_plan_count *saved) {
    const stage *last = &x->before[x->before_count - 1], *first = &x->after[0];
    const uint32_t packed = first->map.packed;
    uint32_t columns[MAX_COLUMNS], mask;
    *saved = (lilac_plan_count){0, 0};
    x->joined = x->permuted = false;
    if ((!x->own_lane) || (first->direction == 0 && first->plain) ||
        (last->direction == 0 && !moves_places(last)) || !selects_agree(last, first, &mask) ||
        !still_words_are_separate(x, last, columns)) {
        return;
    }
    x->permuted = moves_places(last);
    x->masks[0] = first->mask;
    x->masks[1] = last->direction != 0 ? mask : 0;
    lilac_plan_place_masks(x->masks + 2, &first->map);
    x->mask_count = lilac_plan_independent(x->masks, 2 + packed);
    if (packed != 0) {
        map composed = first->map;
        uint32_t masks[5 + 2];
        memcpy(masks, x->masks, x->mask_count * sizeof masks[0]);
        for (uint32_t i = 0; i < composed.thread_bits; i++) {
            composed.thread[i] =
                lilac_plan_sum(last->map.column, first->map.thread[i]) ^ last->map.thread[i];
        }
        lilac_plan_place_masks(masks + x->mask_count, &composed);
        x->mask_count = lilac_plan_independent(masks, x->mask_count + packed);
        if (x->mask_count > MAX_MASKS) {
            return;
        }
        memcpy(x->masks, masks, x->mask_count * sizeof masks[0]);
    }
    x->joined = true;
    *saved = lilac_plan_count_words(last, columns, x->still_count);
}

static void exchange_init(exchange *x, const shuffle *s, uint32_t element_bits,
                          lilac_plan_count *saved) {
    const uint32_t packed = lilac_plan_packed(element_bits);
    const uint32_t thread_bits = s->lane_bits + s->warp_bits;
    map before, after;
    lilac_plan_map_init(&before, packed, s->before_bits, s->register_bits, s->kept, thread_bits,
                        s->before);
    lilac_plan_map_init(&after, packed, s->register_bits, s->after_bits, s->taken, thread_bits,
                        s->after);
    const uint32_t common = common_predicate(&before, &after);
    x->before_count = lilac_plan_factor(x->before, &before, 0, common);
    x->after_count = lilac_plan_factor(x->after, &after, common, 0);
    x->words = before.to_bits - packed;
    find_still(x, s, packed);
    try_to_join(x, saved);
}

/* ---- price ------------------------------------------------------------------------------ */

static uint64_t shuffles_of(const exchange *x) {
    return (UINT64_C(1) << x->words) - (x->own_lane ? UINT64_C(1) << x->still_count : 0);
}

/* Whether a map moves whole words only, makes no copies and selects among the words that it keeps.
 * Then each of its stages computes all words. */
static bool of_whole_words(const uint64_t *columns, uint32_t to_bits, const uint64_t *shear,
                           uint32_t thread_bits, uint32_t packed, lilac_f2_basis *words) {
    const uint64_t places = (UINT64_C(1) << packed) - 1;
    lilac_f2_basis_init(words);
    for (uint32_t i = 0; i < to_bits; i++) {
        const uint64_t own = i < packed ? UINT64_C(1) << i : 0;
        if ((columns[i] & places) != own || (i < packed && columns[i] != own)) {
            return false;
        }
        if (i >= packed && !lilac_f2_basis_add(words, columns[i], 0)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < thread_bits; i++) {
        if ((shear[i] & places) != 0 ||
            (shear[i] != 0 && !lilac_f2_basis_contains(words, shear[i]))) {
            return false;
        }
    }
    return true;
}

/* Inserts the rows of a shear, which are the masks of its predicates; returns how many were
 * independent. */
static uint32_t add_rows(lilac_f2_basis *rows, const uint64_t *shear, uint32_t thread_bits,
                         uint32_t register_bits) {
    uint32_t rank = 0;
    for (uint32_t k = 0; k < register_bits; k++) {
        uint64_t row = 0;
        for (uint32_t i = 0; i < thread_bits; i++) {
            row |= (shear[i] >> k & 1) << i;
        }
        rank += row != 0 && lilac_f2_basis_add(rows, row, 0);
    }
    return rank;
}

static uint32_t rank_of(const uint64_t *vectors, uint32_t count) {
    lilac_f2_basis span;
    uint32_t rank = 0;
    lilac_f2_basis_init(&span);
    for (uint32_t i = 0; i < count; i++) {
        rank += vectors[i] != 0 && lilac_f2_basis_add(&span, vectors[i], 0);
    }
    return rank;
}

/* The common case in closed form. R words and shears of rank g and h take (g + h) R selects, minus
 * one select for each word that stays in its lane if the shears have a predicate in common. */
static bool price_whole_words(lilac_plan_price *price, const shuffle *s, uint32_t packed,
                              uint64_t factor) {
    const uint32_t thread_bits = s->lane_bits + s->warp_bits;
    lilac_f2_basis words, rows;
    if (s->register_bits < packed || s->after_bits < packed || s->before_bits < packed ||
        !of_whole_words(s->kept, s->register_bits, s->before, thread_bits, packed, &words) ||
        !of_whole_words(s->taken, s->after_bits, s->after, thread_bits, packed, &words)) {
        return false;
    }
    bool own_lane = true;
    for (uint32_t i = 0; i < thread_bits; i++) {
        own_lane = own_lane && s->lane[i] == (i < s->lane_bits ? UINT64_C(1) << i : 0);
    }
    const uint32_t g = rank_of(s->before, thread_bits), h = rank_of(s->after, thread_bits);
    const uint64_t between = UINT64_C(1) << (s->register_bits - packed);
    const uint64_t still = own_lane ? between >> rank_of(s->distance, s->register_bits) : 0;
    uint64_t selects = g * between + h * (UINT64_C(1) << (s->after_bits - packed));
    if (g != 0 && h != 0 && still != 0) {
        lilac_f2_basis_init(&rows);
        (void)add_rows(&rows, s->before, thread_bits, s->before_bits);
        selects -= add_rows(&rows, s->after, thread_bits, s->register_bits) < h ? still : 0;
    }
    price->selects += factor * selects;
    price->shuffles += factor * (between - still);
    return true;
}

static void price_by_stages(lilac_plan_price *price, const shuffle *s, uint32_t element_bits,
                            uint64_t factor) {
    exchange x;
    lilac_plan_count saved, sum = {0, 0};
    exchange_init(&x, s, element_bits, &saved);
    for (uint32_t i = 0; i < x.before_count + x.after_count; i++) {
        const bool joined = i == x.before_count && x.joined && x.permuted;
        const lilac_plan_count count = lilac_plan_count_stage(
            i < x.before_count ? &x.before[i] : &x.after[i - x.before_count]);
        sum.selects += joined ? 0 : count.selects;
        sum.permutes += count.permutes + (joined ? count.selects : 0);
    }
    price->selects += factor * (sum.selects - saved.selects);
    price->permutes += factor * (sum.permutes - saved.permutes);
    price->shuffles += factor * shuffles_of(&x);
}

void lilac_plan_price_shuffle(lilac_plan_price *price, const shuffle *s, uint32_t element_bits,
                              uint32_t warps) {
    const uint64_t factor = (uint64_t)warps * lilac_plan_parts(element_bits);
    if (!price_whole_words(price, s, lilac_plan_packed(element_bits), factor)) {
        price_by_stages(price, s, element_bits, factor);
    }
}

/* ---- expansion -------------------------------------------------------------------------- */

typedef struct joined_word {
    const stage *last, *first;
    const bool *still;
    uint32_t column,
        sources; /* sources: number of words that `last` reads; shuffled words are numbered
                                 after them */
} joined_word;

static place joined_place(const void *context, uint32_t thread, uint32_t at) {
    const joined_word *word = context;
    const map *first = &word->first->map, *last = &word->last->map;
    const uint32_t packed = first->packed, places = (UINT32_C(1) << packed) - 1;
    const uint32_t between =
        word->column ^ lilac_plan_sum(first->column, at) ^ lilac_plan_sum(first->thread, thread);
    if (!word->still[between >> packed]) {
        return (place){word->sources + (between >> packed), between & places};
    }
    const uint32_t source =
        lilac_plan_sum(last->column, between) ^ lilac_plan_sum(last->thread, thread);
    return (place){source >> packed, source & places};
}

/* Writes the first stage after the shuffle. For words that stay, it reads the operands of the last
 * stage before the shuffle. `names` holds those operands, then the words between the maps. */
static void write_joined(writer *w, const exchange *x, const bool *still, const uint32_t *names,
                         uint32_t *to) {
    const stage *first = &x->after[0], *last = &x->before[x->before_count - 1];
    const map *m = &first->map;
    const uint32_t packed = m->packed, places = (UINT32_C(1) << packed) - 1;
    uint32_t *written = lilac_arena_array(w->arena, uint32_t, UINT32_C(1) << m->from_bits);
    uint32_t column = 0;
    for (uint32_t n = 0; n >> (m->to_bits - packed) == 0; n++) {
        const uint32_t u = n ^ n >> 1;
        column ^= n == 0 ? 0 : m->column[packed + (uint32_t)__builtin_ctz(n)];
        if (written[column] == 0) {
            const bool moves = x->permuted || !first->plain || (column & places) != 0;
            const joined_word word = {last, first, still, column,
                                      UINT32_C(1) << (last->map.from_bits - packed)};
            written[column] = 1 + lilac_plan_write_word(
                                      w, moves ? LILAC_PLAN_WORD_PERMUTE : LILAC_PLAN_WORD_SELECT,
                                      x->masks, x->mask_count, joined_place, &word, names);
        }
        to[u] = written[column] - 1;
    }
}

/* Replaces each word between the maps that does not stay in its lane by its shuffle. */
static void write_shuffles(writer *w, const exchange *x, const shuffle *s, const bool *still,
                           uint32_t *words) {
    uint32_t controls[1 << LILAC_PLAN_MAX_LANE_BITS] = {0};
    for (uint32_t u = 0; u >> x->words == 0; u++) {
        const uint32_t distance = lilac_plan_sum(x->distance, u);
        if (still[u]) {
            continue;
        }
        if (controls[distance] == 0) {
            lilac_plan_control control;
            memset(&control, 0, sizeof control);
            memcpy(control.lane, s->lane, (s->lane_bits + s->warp_bits) * sizeof s->lane[0]);
            control.constant = distance;
            control.identity = x->own_lane;
            controls[distance] = 1 + lilac_plan_control_of(w, &control);
        }
        words[u] = lilac_plan_write(w, LILAC_PLAN_WORD_SHUFFLE, words[u], words[u],
                                    controls[distance] - 1);
    }
}

static const uint32_t *write_stages(writer *w, const stage *stages, uint32_t count,
                                    const uint32_t *words) {
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t word_bits = stages[i].map.to_bits - w->packed;
        uint32_t *next = lilac_arena_array(w->arena, uint32_t, UINT32_C(1) << word_bits);
        lilac_plan_write_stage(w, &stages[i], words, next, NULL);
        words = next;
    }
    return words;
}

static const uint32_t *write_exchange(writer *w, const exchange *x, const shuffle *s,
                                      const bool *still, const bool *moving,
                                      const uint32_t *words) {
    const stage *last = &x->before[x->before_count - 1];
    const uint32_t sources = UINT32_C(1) << (last->map.from_bits - w->packed);
    const uint32_t count = UINT32_C(1) << x->words;
    uint32_t *names = lilac_arena_array(w->arena, uint32_t, sources + count);
    uint32_t *between = names + sources;
    words = write_stages(w, x->before, x->before_count - 1, words);
    memcpy(names, words, sources * sizeof names[0]);
    lilac_plan_write_stage(w, last, words, between, x->joined ? moving : NULL);
    write_shuffles(w, x, s, still, between);
    if (!x->joined) {
        return write_stages(w, x->after, x->after_count, between);
    }
    uint32_t *after =
        lilac_arena_array(w->arena, uint32_t, UINT32_C(1) << (x->after[0].map.to_bits - w->packed));
    write_joined(w, x, still, names, after);
    return write_stages(w, x->after + 1, x->after_count - 1, after);
}

bool lilac_plan_expand_shuffle(lilac_plan_network *result, lilac_arena *arena, const shuffle *s,
                               uint32_t element_bits) {
    exchange x;
    lilac_plan_count saved;
    exchange_init(&x, s, element_bits, &saved);
    const uint32_t parts = lilac_plan_parts(element_bits);
    writer w = {.network = result, .arena = arena, .packed = lilac_plan_packed(element_bits)};
    memset(result, 0, sizeof *result);
    result->input_count = lilac_plan_words(s->before_bits, element_bits);
    result->output_count = lilac_plan_words(s->after_bits, element_bits);
    result->outputs = lilac_arena_array(arena, uint32_t, result->output_count);
    bool *still = lilac_arena_array(arena, bool, UINT32_C(1) << x.words);
    bool *moving = lilac_arena_array(arena, bool, UINT32_C(1) << x.words);
    for (uint32_t u = 0; u >> x.words == 0; u++) {
        still[u] = x.own_lane && lilac_plan_sum(x.distance, u) == 0;
        moving[u] = !still[u];
    }
    for (uint32_t part = 0; part < parts; part++) {
        uint32_t *words = lilac_arena_array(arena, uint32_t, result->input_count / parts);
        for (uint32_t i = 0; i < result->input_count / parts; i++) {
            words[i] = i * parts + part;
        }
        const uint32_t *results = write_exchange(&w, &x, s, still, moving, words);
        for (uint32_t i = 0; i < result->output_count / parts; i++) {
            result->outputs[i * parts + part] = results[i];
        }
    }
    return true;
}
