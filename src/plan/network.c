/* Register permutations, and stages of any map, as operations on words.
 *
 * A stage computes each word from at most two words. Words with equal columns are equal and are
 * computed once. A control (predicate or selector) depends on the stage and on the change of places
 * by the word's column, so a stage has few controls.
 *
 * The selector of a byte permute is found by enumeration: for each combination of the parities that
 * it depends on, one thread with these parities is chosen, and the source of each byte is evaluated
 * for that thread.
 */
#include "plan.h"
#include "register_map.h"

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

/* Finds one thread for each combination of parities under the (independent) masks: bit i of the
 * index k is the parity of threads[k] under masks[i]. */
static void find_representatives(uint32_t *threads, const uint32_t *masks, uint32_t count) {
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
    uint32_t threads[1 << MAX_MASKS], a = NO_WORD, b = NO_WORD;
    find_representatives(threads, masks, mask_count);
    memset(&control, 0, sizeof control); /* padding included: controls are compared bytewise */
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
    if (kind == LILAC_PLAN_WORD_SELECT) { /* the operand for even parity comes second */
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

/* A stage being written: the parity masks that its controls depend on, and the control of each
 * change of places, once known. */
typedef struct stage_writer {
    writer *w;
    const stage *s;
    const uint32_t *from; /* the words that the stage reads */
    uint32_t masks[MAX_MASKS], mask_count;
    uint32_t controls[4];
} stage_writer;

/* Writes the operation that computes the word with this column. The first word of each change of
 * places derives the control from the definition; later ones reuse it. */
static uint32_t write_stage_word(stage_writer *sw, uint32_t column) {
    const stage *s = sw->s;
    writer *w = sw->w;
    const uint32_t places = column & ((UINT32_C(1) << w->packed) - 1);
    const uint32_t first = column >> w->packed, second = first ^ s->direction;
    uint32_t *control = &sw->controls[places];
    lilac_plan_word_kind kind = LILAC_PLAN_WORD_PERMUTE;
    if (s->plain && places == 0) {
        if (s->direction == 0) {
            return sw->from[first];
        }
        kind = LILAC_PLAN_WORD_SELECT;
    }
    if (*control == NO_WORD) {
        const stage_word word = {s, column};
        const uint32_t result =
            lilac_plan_write_word(w, kind, sw->masks, sw->mask_count, stage_place, &word, sw->from);
        *control = w->network->ops[result - w->network->input_count].control;
        return result;
    }
    return kind == LILAC_PLAN_WORD_SELECT
               ? lilac_plan_write(w, kind, sw->from[second], sw->from[first], *control)
               : lilac_plan_write(w, kind, sw->from[first], sw->from[second], *control);
}

void lilac_plan_write_stage(writer *w, const stage *s, const uint32_t *from, uint32_t *to,
                            const bool *wanted) {
    const map *m = &s->map;
    const uint32_t packed = m->packed, words = UINT32_C(1) << (m->to_bits - packed);
    stage_writer sw = {w, s, from, {s->mask}, 0, {NO_WORD, NO_WORD, NO_WORD, NO_WORD}};
    uint32_t *written = lilac_arena_array(w->arena, uint32_t, UINT32_C(1) << m->from_bits);
    lilac_plan_place_masks(sw.masks + 1, m);
    sw.mask_count = lilac_plan_independent(sw.masks, 1 + packed);
    uint32_t column = 0;
    for (uint32_t n = 0; n < words; n++) {
        const uint32_t u = n ^ n >> 1; /* a Gray code: one column changes from word to word */
        column ^= n == 0 ? 0 : m->column[packed + (uint32_t)__builtin_ctz(n)];
        if (wanted != NULL && !wanted[u]) {
            continue;
        }
        if (written[column] == 0) {
            written[column] = 1 + write_stage_word(&sw, column);
        }
        to[u] = written[column] - 1;
    }
}

/* ---- register permutations -------------------------------------------------------------- */

uint32_t lilac_plan_words(uint32_t register_bits, uint32_t element_bits) {
    const uint32_t packed = lilac_plan_packed(element_bits);
    const uint32_t words = register_bits > packed ? register_bits - packed : 0;
    return lilac_plan_parts(element_bits) << words;
}

static uint32_t permutation_stages(stage *stages, const lilac_plan_permutation *permutation,
                                   uint32_t element_bits) {
    map m;
    lilac_plan_map_init(&m, lilac_plan_packed(element_bits), permutation->before_bits,
                        permutation->bits, permutation->from, 0, NULL);
    return lilac_plan_factor(stages, &m, 0, 0);
}

void lilac_plan_price_permutation(lilac_plan_price *price,
                                  const lilac_plan_permutation *permutation, uint32_t element_bits,
                                  uint32_t warps) {
    stage stages[MAX_STAGES];
    if (lilac_plan_packed(element_bits) == 0) {
        return;
    }
    const uint32_t count = permutation_stages(stages, permutation, element_bits);
    for (uint32_t i = 0; i < count; i++) {
        price->permutes += lilac_plan_count_stage(&stages[i]).permutes * warps;
    }
}

bool lilac_plan_expand_permutation(lilac_plan_network *result, lilac_arena *arena,
                                   const lilac_plan_permutation *permutation,
                                   uint32_t element_bits) {
    stage stages[MAX_STAGES];
    const uint32_t parts = lilac_plan_parts(element_bits);
    const uint32_t count = permutation_stages(stages, permutation, element_bits);
    writer w = {.network = result, .arena = arena, .packed = lilac_plan_packed(element_bits)};
    memset(result, 0, sizeof *result);
    result->input_count = lilac_plan_words(permutation->before_bits, element_bits);
    result->output_count = lilac_plan_words(permutation->bits, element_bits);
    result->outputs = lilac_arena_array(arena, uint32_t, result->output_count);
    for (uint32_t part = 0; part < parts; part++) {
        uint32_t *words = lilac_arena_array(arena, uint32_t, result->input_count / parts);
        for (uint32_t i = 0; i < result->input_count / parts; i++) {
            words[i] = i * parts + part;
        }
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t word_bits = stages[i].map.to_bits - w.packed;
            uint32_t *next = lilac_arena_array(arena, uint32_t, UINT32_C(1) << word_bits);
            lilac_plan_write_stage(&w, &stages[i], words, next, NULL);
            words = next;
        }
        for (uint32_t i = 0; i < result->output_count / parts; i++) {
            result->outputs[i * parts + part] = words[i];
        }
    }
    return true;
}
