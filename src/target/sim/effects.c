/* Votes of a warp, and print.
 *
 * A worker appends the text of its clusters to one buffer and records the range of each cluster.
 * launch.c concatenates the ranges of all workers in the order of the clusters. */
#include "memory/access.h"

#include <string.h>

enum { VOTE_ALL = 1, VOTE_SOME = 2 };

void lilac_sim_vote(lilac_sim_worker *w, const lilac_sim_step *s) {
    uint32_t size = w->program->arch->warp_size;
    const lane_u8 *conditions = w->registers + s->a;
    const lane_u32 *words = (const void *)(w->registers + s->a);
    uint32_t some = 0;
    for (uint32_t i = w->first_thread; i < w->end_thread && s->kind == STEP_VOTE; i++) {
        some |= conditions[i];
    }
    for (uint32_t first = w->first_thread; first < w->end_thread; first += size) {
        uint32_t any = s->immediate == VOTE_SOME ? some : 0, all = 1,
                 reduced = s->kind == STEP_REDUX ? words[first] : 0;
        for (uint32_t lane = 0; lane < size && s->kind == STEP_VOTE; lane++) {
            any |= conditions[first + lane];
            all &= conditions[first + lane];
        }
        for (uint32_t lane = 1; lane < size && s->kind == STEP_REDUX; lane++) {
            reduced = (uint32_t)lilac_sim_combine(s->immediate, LILAC_SIMT_I32, reduced,
                                                  words[first + lane], false);
        }
        for (uint32_t lane = 0; lane < size; lane++) {
            uint32_t equal = 0;
            for (uint32_t other = 0; other < size && s->kind == STEP_MATCH; other++) {
                equal |= (uint32_t)(words[first + other] == words[first + lane]) << other;
            }
            if (s->kind == STEP_VOTE) {
                w->registers[s->out + first + lane] =
                    (uint8_t)((s->immediate == VOTE_ALL ? all : any) & 1);
            } else {
                ((lane_u32 *)(void *)(w->registers + s->out))[first + lane] =
                    s->kind == STEP_MATCH ? equal : reduced;
            }
        }
    }
    w->counters.votes += w->end_warp - w->first_warp;
}

/* Prints a value by a conversion specification. The verifier has checked the specification. */
static void put_value(lilac_text *out, const lilac_simt_conversion *c, const uint8_t *array,
                      lilac_simt_type type, uint32_t thread) {
    char format[32];
    size_t length = (size_t)(c->end - c->begin);
    if (length >= sizeof format) {
        return;
    }
    memcpy(format, c->begin, length);
    format[length] = 0;
    if (c->letter == 'p') {
        lilac_text_printf(out, "0x%llx",
                          (unsigned long long)((const lane_u64 *)(const void *)array)[thread]);
    } else if (type == LILAC_SIMT_F32) {
        lilac_text_printf(out, format, (double)((const lane_f32 *)(const void *)array)[thread]);
    } else if (type == LILAC_SIMT_F64) {
        lilac_text_printf(out, format, ((const lane_f64 *)(const void *)array)[thread]);
    } else if (type == LILAC_SIMT_I64) {
        lilac_text_printf(out, format,
                          (unsigned long long)((const lane_u64 *)(const void *)array)[thread]);
    } else {
        lilac_text_printf(out, format, ((const lane_u32 *)(const void *)array)[thread]);
    }
}

static void print_thread(lilac_sim_worker *w, const lilac_sim_step *s, uint32_t thread) {
    const lilac_sim_access *access = &w->program->accesses[s->access];
    const lilac_simt_instruction *i = s->source;
    const lilac_simt_value *values = i->operands + (i->operand_count - access->count);
    const char *at = i->text, *literal = at;
    lilac_simt_conversion c;
    for (uint32_t k = 0; lilac_simt_next_conversion(&at, &c); literal = c.end) {
        lilac_text_put(&w->text, literal, (size_t)(c.begin - literal));
        if (c.letter == '%') {
            lilac_text_char(&w->text, '%');
            continue;
        }
        put_value(&w->text, &c, w->registers + access->values[k],
                  (lilac_simt_type)w->program->kernel->values[values[k]].type, thread);
        k++;
    }
    lilac_text_puts(&w->text, literal);
}

void lilac_sim_print(lilac_sim_worker *w, const lilac_sim_step *s) {
    enum { MOST_TEXT = 1 << 20 };
    const lilac_sim_access *access = &w->program->accesses[s->access];
    uint64_t cluster = w->block / w->program->kernel->num_ctas;
    if (w->printed_count == 0 || w->printed[w->printed_count - 1].cluster != cluster) {
        if (w->printed_count == w->printed_capacity) {
            w->printed_capacity = w->printed_capacity * 2 + 16;
            w->printed = lilac_heap_grow(w->printed, sizeof *w->printed * w->printed_capacity);
        }
        w->printed[w->printed_count++] =
            (lilac_sim_printed){.cluster = cluster, .begin = w->text.length, .end = w->text.length};
    }
    lilac_sim_printed *printed = &w->printed[w->printed_count - 1];
    for (uint32_t t = w->first_thread; t < w->end_thread; t++) {
        bool active = access->predicate == LILAC_SIM_NONE || w->registers[access->predicate + t];
        if (active && w->printed_bytes + w->text.length - printed->end < MOST_TEXT) {
            print_thread(w, s, t);
        }
    }
    w->printed_bytes += w->text.length - printed->end;
    printed->end = w->text.length;
}
