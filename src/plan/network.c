/* Renamings, and stages of any map, as operations on words.
 *
 * A stage makes each word of at most two. Words with equal columns are the same and made once. A
 * control (predicate or selector) depends on the stage and on how the word's column moves places,
 * so a stage has few.
 *
 * The selector of a permute is found by trying: for each value of the parities it depends on, take
 * a thread that has them and ask where each byte comes from.
 */
#include "plan.h"
#include "stage.h"

#include <string.h>

static const uint32_t NO_WORD = UINT32_MAX;

typedef lilac_plan_map map;
typedef lilac_plan_stage stage;
typedef lilac_plan_writer writer;
typedef lilac_plan_place place;

/* ---- writing ---------------------------------------------------------------------------- */

uint32_t lilac_plan_control_of(writer *w, const lilac_plan_control *control) {
    lilac_plan_network *network = w->network;
    for (uint32_t i = 0; i < network->control_count; i++) {
        if (memcmp(&network->controls[i], control, sizeof *control) == 0) {
            return i;
        }
    }
    if (network->control_count == w->control_capacity) {
        const uint32_t capacity = w->control_capacity == 0 ? 16 : 2 * w->control_capacity;
        lilac_plan_control *grown = lilac_arena_array(w->arena, lilac_plan_control, capacity);
        if (network->control_count != 0) {
            memcpy(grown, network->controls, network->control_count * sizeof *grown);
        }
        network->controls = grown;
        w->control_capacity = capacity;
    }
    network->controls[network->control_count] = *control;
    return network->control_count++;
}

uint32_t lilac_plan_write(writer *w, lilac_plan_word_kind kind, uint32_t a, uint32_t b,
                          uint32_t control) {
    lilac_plan_network *network = w->network;
    if (network->op_count == w->op_capacity) {
        const uint32_t capacity = w->op_capacity == 0 ? 64 : 2 * w->op_capacity;
        lilac_plan_word_op *grown = lilac_arena_array(w->arena, lilac_plan_word_op, capacity);
        if (network->op_count != 0) {
            memcpy(grown, network->ops, network->op_count * sizeof *grown);
        }
        network->ops = grown;
        w->op_capacity = capacity;
    }
    network->ops[network->op_count] = (lilac_plan_word_op){kind, a, b, control};
    return network->input_count + network->op_count++;
}

uint32_t lilac_plan_independent(uint32_t *masks, uint32_t count) {
    lilac_f2_basis span;
    uint32_t kept = 0;
    lilac_f2_basis_init(&span);
    for (uint32_t i = 0; i < count; i++) {
        if (masks[i] != 0 && lilac_f2_basis_add(&span, masks[i], 0)) {
            masks[kept++] = masks[i];
        }
    }
    return kept;
}

void lilac_plan_place_masks(uint32_t *masks, const map *m) {
    for (uint32_t k = 0; k < m->packed; k++) {
        masks[k] = 0;
        for (uint32_t i = 0; i < m->thread_bits; i++) {
            masks[k] |= (m->thread[i] >> k & 1) << i;
        }
    }
}

/* Threads of which each has other parities under the (independent) masks: thread[k] has bit i of k
 * under masks[i]. */
static void tell_apart(uint32_t *threads, const uint32_t *masks, uint32_t count) {
    lilac_f2_basis span;
    uint32_t thread = 0;
    lilac_f2_basis_init(&span);
    for (uint32_t i = 0; i < count; i++) {
        (void)lilac_f2_basis_add(&span, masks[i], 0);
    }
    do {
        uint32_t parities = 0;
        for (uint32_t i = 0; i < count; i++) {
            parities |= lilac_plan_parity(masks[i] & thread) << i;
        }
        threads[parities] = thread;
        thread = (thread - (uint32_t)span.pivots) & (uint32_t)span.pivots; /* the next subset */
    } while (thread != 0);
}

uint32_t lilac_plan_write_word(writer *w, lilac_plan_word_kind kind, const uint32_t *masks,
                               uint32_t mask_count,
                               place (*place_of)(const void *context, uint32_t thread, uint32_t at),
                               const void *context, const uint32_t *names) {
    const uint32_t places = UINT32_C(1) << w->packed, bytes = 4 / places;
    lilac_plan_control control;
    uint32_t threads[1 << MOST_MASKS], a = NO_WORD, b = NO_WORD;
    tell_apart(threads, masks, mask_count);
    memset(&control, 0, sizeof control); /* padding too: controls are compared as bytes */
    control.mask_count = mask_count;
    for (uint32_t i = 0; i < mask_count; i++) {
        control.masks[i] = masks[i];
    }
    for (uint32_t k = 0; k >> mask_count == 0; k++) {
        for (uint32_t at = 0; at < places; at++) {
            const place from = place_of(context, threads[k], at);
            a = a == NO_WORD ? from.word : a;
            b = from.word != a ? from.word : b;
            for (uint32_t byte = 0; byte < bytes; byte++) {
                const uint32_t source = (from.word != a ? 4 : 0) + from.place * bytes + byte;
                control.selector[k] |= source << 4 * (at * bytes + byte);
            }
        }
    }
    b = b == NO_WORD ? a : b;
    if (kind == LILAC_PLAN_WORD_SELECT) { /* what even parity takes comes second */
        const uint32_t odd = b;
        control.selector[0] = control.selector[1] = 0;
        b = a;
        a = odd;
    }
    return lilac_plan_write(w, kind, names[a], names[b], lilac_plan_control_of(w, &control));
}

/* ---- stages ----------------------------------------------------------------------------- */

typedef struct stage_word {
    const stage *s;
    uint32_t column;
} stage_word;

static place stage_place(const void *context, uint32_t thread, uint32_t at) {
    const stage_word *word = context;
    const map *m = &word->s->map;
    const uint32_t source =
        word->column ^ lilac_plan_sum(m->column, at) ^ lilac_plan_sum(m->thread, thread);
    return (place){source >> m->packed, source & ((UINT32_C(1) << m->packed) - 1)};
}

/* The operation that makes a word, whose column is given: the first time through by its definition,
 * later ones with the control found then. */
static uint32_t write_stage_word(writer *w, const stage *s, const uint32_t *from, uint32_t column,
                                 lilac_plan_word_kind kind, const uint32_t *masks,
                                 uint32_t mask_count, uint32_t *control) {
    const uint32_t first = column >> w->packed, second = first ^ s->direction;
    const stage_word word = {s, column};
    if (*control == NO_WORD) {
        const uint32_t made =
            lilac_plan_write_word(w, kind, masks, mask_count, stage_place, &word, from);
        *control = w->network->ops[made - w->network->input_count].control;
        return made;
    }
    return kind == LILAC_PLAN_WORD_SELECT
               ? lilac_plan_write(w, kind, from[second], from[first], *control)
               : lilac_plan_write(w, kind, from[first], from[second], *control);
}

void lilac_plan_write_stage(writer *w, const stage *s, const uint32_t *from, uint32_t *to,
                            const bool *wanted) {
    const map *m = &s->map;
    const uint32_t packed = m->packed, words = UINT32_C(1) << (m->to_bits - packed);
    const uint32_t places = (UINT32_C(1) << packed) - 1;
    uint32_t masks[MOST_MASKS], controls[4] = {NO_WORD, NO_WORD, NO_WORD, NO_WORD};
    uint32_t *made = lilac_arena_array(w->arena, uint32_t, UINT32_C(1) << m->from_bits);
    masks[0] = s->mask;
    lilac_plan_place_masks(masks + 1, m);
    const uint32_t mask_count = lilac_plan_independent(masks, 1 + packed);
    uint32_t column = 0;
    for (uint32_t n = 0; n < words; n++) {
        const uint32_t u = n ^ n >> 1; /* one column more or less than the word before */
        column ^= n == 0 ? 0 : m->column[packed + (uint32_t)__builtin_ctz(n)];
        if (wanted != NULL && !wanted[u]) {
            continue;
        }
        if (made[column] == 0) {
            uint32_t word = from[column >> packed];
            if (!s->plain || (column & places) != 0) {
                word = write_stage_word(w, s, from, column, LILAC_PLAN_WORD_PERMUTE, masks,
                                        mask_count, &controls[column & places]);
            } else if (s->direction != 0) {
                word = write_stage_word(w, s, from, column, LILAC_PLAN_WORD_SELECT, masks,
                                        mask_count, &controls[column & places]);
            }
            made[column] = 1 + word;
        }
        to[u] = made[column] - 1;
    }
}

/* ---- renamings -------------------------------------------------------------------------- */

uint32_t lilac_plan_words(uint32_t register_bits, uint32_t element_bits) {
    const uint32_t packed = lilac_plan_packed(element_bits);
    const uint32_t words = register_bits > packed ? register_bits - packed : 0;
    return lilac_plan_parts(element_bits) << words;
}

static uint32_t renaming_stages(stage *stages, const lilac_plan_permutation *renaming,
                                uint32_t element_bits) {
    map m;
    lilac_plan_map_init(&m, lilac_plan_packed(element_bits), renaming->before_bits, renaming->bits,
                        renaming->from, 0, NULL);
    return lilac_plan_factor(stages, &m, 0, 0);
}

void lilac_plan_price_permutation(lilac_plan_price *price, const lilac_plan_permutation *renaming,
                                  uint32_t element_bits, uint32_t warps) {
    stage stages[MOST_STAGES];
    if (lilac_plan_packed(element_bits) == 0) {
        return;
    }
    const uint32_t count = renaming_stages(stages, renaming, element_bits);
    for (uint32_t i = 0; i < count; i++) {
        price->permutes += lilac_plan_count_stage(&stages[i]).permutes * warps;
    }
}

bool lilac_plan_expand_permutation(lilac_plan_network *result, lilac_arena *arena,
                                   const lilac_plan_permutation *renaming, uint32_t element_bits) {
    stage stages[MOST_STAGES];
    const uint32_t parts = lilac_plan_parts(element_bits);
    const uint32_t count = renaming_stages(stages, renaming, element_bits);
    writer w = {.network = result, .arena = arena, .packed = lilac_plan_packed(element_bits)};
    memset(result, 0, sizeof *result);
    result->input_count = lilac_plan_words(renaming->before_bits, element_bits);
    result->output_count = lilac_plan_words(renaming->bits, element_bits);
    result->outputs = lilac_arena_array(arena, uint32_t, result->output_count);
    for (uint32_t part = 0; part < parts; part++) {
        uint32_t *words = lilac_arena_array(arena, uint32_t, result->input_count / parts);
        for (uint32_t i = 0; i < result->input_count / parts; i++) {
            words[i] = i * parts + part;
        }
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t made = stages[i].map.to_bits - w.packed;
            uint32_t *next = lilac_arena_array(arena, uint32_t, UINT32_C(1) << made);
            lilac_plan_write_stage(&w, &stages[i], words, next, NULL);
            words = next;
        }
        for (uint32_t i = 0; i < result->output_count / parts; i++) {
            result->outputs[i * parts + part] = words[i];
        }
    }
    return true;
}
