/* What the accesses to global memory of a launch touch, where masks and alignments of its programs
 * are those of its arguments.
 *
 * In a sample of programs and, of each loop, one iteration, the address and the predicate of each
 * access are evaluated for each thread:
 *
 *     traffic of an operation   different sectors that its threads access in one execution
 *     active                    the part of its accesses that no predicate turns off
 *
 * In the iteration t of a loop, a value that the loop carries is its initial value plus t times
 * what the first iteration adds to it. An operation with an address that cannot be evaluated keeps
 * the sectors of its plan. */
#include "internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_EVALUATIONS = 1 << 16,
    MOST_PROGRAMS = 32,
    ENOUGH_PROGRAMS = 16,
    MOST_CARRIED = 256,
    LINE = 128
};

/* An instruction that accesses memory, or that has bodies; `end` is the index behind what is in
 * it. */
typedef struct item {
    const lilac_simt_instruction *instruction;
    uint32_t number; /* of the operation, of an access */
    uint32_t body;   /* index of the body that it is in */
    uint32_t end;
} item;

typedef struct tally {
    uint64_t sectors, lines, active, all;
    uint32_t programs, last; /* that reached it; the last one plus 1 */
    bool unknown;
} tally;

typedef struct sampling {
    lilac_explanation *e;
    lilac_simt_evaluation values;
    item *items;
    uint32_t count, accesses;
    uint64_t evaluations;
    tally *tallies;  /* by number of the operation */
    uint64_t *table; /* of hashes of the sectors of a program */
    uint64_t mask;
    uint32_t program; /* number in the sample, from 1 */
    double place;     /* of the iteration in its loop, 0 to 1 */
} sampling;

static bool is_access(const lilac_simt_instruction *i) {
    switch (i->code) {
    case LILAC_SIMT_OP_LD_GLOBAL:
    case LILAC_SIMT_OP_ST_GLOBAL:
    case LILAC_SIMT_OP_ATOMIC_GLOBAL:
    case LILAC_SIMT_OP_CP_ASYNC:
        return true;
    default:
        return false;
    }
}

/* ---- the list ----------------------------------------------------------------------------- */

static void list_items(sampling *s, const lilac_simt_body *body, uint32_t index, bool count_only) {
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        const uint32_t number = is_access(i) ? explain_number(s->e, i->location) : 0;
        if (number == 0 && i->body_count == 0) {
            continue;
        }
        const uint32_t own = s->count++;
        s->accesses += number > 0;
        for (uint32_t b = 0; b < i->body_count; b++) {
            list_items(s, i->bodies[b], b, count_only);
        }
        if (!count_only) {
            s->items[own] = (item){i, number, index, s->count};
        }
    }
}

/* ---- one access of one thread ------------------------------------------------------------- */

static uint64_t bytes_of(const sampling *s, const lilac_simt_instruction *i) {
    const lilac_simt_value_info *values = s->e->kernel->values;
    uint32_t count = i->result_count;
    lilac_simt_value value = i->result;
    if (i->code == LILAC_SIMT_OP_CP_ASYNC) {
        return i->detail;
    }
    if (i->code == LILAC_SIMT_OP_ST_GLOBAL || count == 0) {
        const bool guarded = i->operand_count > 2 && values[i->operands[1]].type == LILAC_SIMT_I1;
        count = i->operand_count - 1u - guarded;
        value = i->operands[i->operand_count - 1];
    }
    return (uint64_t)count * lilac_simt_type_bits((lilac_simt_type)values[value].type) / 8;
}

/* Notes a sector; is it a new one of this program? */
static bool add_sector(sampling *s, uint32_t number, uint64_t sector) {
    const uint64_t key = lilac_hash_word(sector, lilac_hash_word(number, s->program)) | 1;
    uint64_t at = key >> 8 & s->mask;
    for (uint32_t step = 0; step < 64; step++, at = (at + 1) & s->mask) {
        if (s->table[at] == key) {
            return false;
        }
        if (s->table[at] == 0) {
            s->table[at] = key;
            return true;
        }
    }
    return false;
}

/* The operand of a type; the number of operands: there is none. */
static uint32_t operand_of(const sampling *s, const lilac_simt_instruction *i, uint8_t type,
                           uint32_t first) {
    uint32_t k = first;
    while (k < i->operand_count && s->e->kernel->values[i->operands[k]].type != type) {
        k++;
    }
    return k;
}

static void access_memory(sampling *s, const item *one) {
    const lilac_simt_instruction *i = one->instruction;
    const bool copy = i->code == LILAC_SIMT_OP_CP_ASYNC;
    const uint32_t at = operand_of(s, i, LILAC_SIMT_I64, copy ? 1 : 0);
    tally *t = &s->tallies[one->number];
    uint64_t bits = 1, address;
    s->evaluations++;
    t->programs += t->last != s->program;
    t->last = s->program;
    t->all++;
    if (i->operand_count > 1 && s->e->kernel->values[i->operands[1]].type == LILAC_SIMT_I1 &&
        lilac_simt_evaluation_get(&s->values, i->operands[1], &bits) && bits == 0) {
        return;
    }
    uint64_t bytes = bytes_of(s, i);
    if (copy && at + 1u < i->operand_count &&
        lilac_simt_evaluation_get(&s->values, i->operands[at + 1], &bits)) {
        bytes = bits < bytes ? bits : bytes;
    }
    if (bytes == 0) {
        return;
    }
    t->active++;
    if (at >= i->operand_count ||
        !lilac_simt_evaluation_get(&s->values, i->operands[at], &address)) {
        t->unknown = true;
        return;
    }
    address += (uint64_t)(copy ? i->payload.copy.source : i->immediate);
    const uint64_t size = s->e->compilation.target.arch->sector_bytes;
    for (uint64_t k = address / size; k <= (address + bytes - 1) / size; k++) {
        t->sectors += add_sector(s, one->number, k);
    }
    const uint64_t warp = s->values.thread / s->e->compilation.target.arch->warp_size;
    for (uint64_t k = address / LINE; k <= (address + bytes - 1) / LINE; k++) {
        t->lines +=
            add_sector(s, (uint32_t)(s->e->count + 1 + (one - s->items)), lilac_hash_word(warp, k));
    }
}

/* ---- the walk ----------------------------------------------------------------------------- */

static int64_t extended(const sampling *s, lilac_simt_value value, uint64_t bits) {
    const uint32_t width = lilac_simt_type_bits((lilac_simt_type)s->e->kernel->values[value].type);
    return (int64_t)(bits << (64 - width)) >> (64 - width);
}

static bool is_integer(const sampling *s, lilac_simt_value value) {
    const uint8_t type = s->e->kernel->values[value].type;
    return type == LILAC_SIMT_I32 || type == LILAC_SIMT_I64;
}

static void set_carried(sampling *s, const lilac_simt_body *body, const uint64_t *values,
                        const bool *known, uint32_t count) {
    for (uint32_t k = 0; k < count; k++) {
        if (known[k]) {
            lilac_simt_evaluation_set(&s->values, body->argument + 1 + k, values[k]);
        }
    }
}

/* Sets the counter and the carried values of an iteration. False: there is none. */
static bool enter_loop(sampling *s, const lilac_simt_instruction *i) {
    const lilac_simt_body *body = i->bodies[0];
    const uint32_t count = min_u32(i->operand_count - 3u, MOST_CARRIED);
    uint64_t values[MOST_CARRIED], next[MOST_CARRIED];
    bool known[MOST_CARRIED];
    int64_t bounds[3] = {0, 0, 0}, iteration = 0;
    bool all = true;
    for (uint32_t k = 0; k < 3; k++) {
        uint64_t bits = 0;
        all &= lilac_simt_evaluation_get(&s->values, i->operands[k], &bits);
        bounds[k] = extended(s, i->operands[k], bits);
    }
    if (all && bounds[0] >= bounds[1]) {
        return false;
    }
    for (uint32_t k = 0; k < count; k++) {
        known[k] = is_integer(s, i->operands[3 + k]) &&
                   lilac_simt_evaluation_get(&s->values, i->operands[3 + k], &values[k]);
    }
    if (all && bounds[2] > 0) {
        const int64_t trips = (bounds[1] - bounds[0] - 1) / bounds[2] + 1;
        iteration = (int64_t)((double)trips * s->place);
    }
    if (iteration > 0) {
        const uint32_t mark = s->values.seen_count;
        lilac_simt_evaluation_set(&s->values, body->argument, (uint64_t)bounds[0]);
        set_carried(s, body, values, known, count);
        for (uint32_t k = 0; k < count; k++) {
            known[k] = known[k] &&
                       lilac_simt_evaluation_get(&s->values, body->last->operands[k], &next[k]);
        }
        lilac_simt_evaluation_forget(&s->values, mark);
        for (uint32_t k = 0; k < count; k++) {
            values[k] += known[k] ? (uint64_t)iteration * (next[k] - values[k]) : 0;
        }
    }
    if (all) {
        lilac_simt_evaluation_set(&s->values, body->argument,
                                  (uint64_t)(bounds[0] + iteration * bounds[2]));
    }
    set_carried(s, body, values, known, count);
    return true;
}

/* Whether a body of control flow is entered by this thread. */
static bool enters(sampling *s, const lilac_simt_instruction *i, uint32_t b) {
    const lilac_simt_body *body = i->bodies[b];
    const uint32_t warp = s->values.thread / s->e->compilation.target.arch->warp_size;
    uint64_t condition;
    switch (i->code) {
    case LILAC_SIMT_OP_LOOP:
        return true;
    case LILAC_SIMT_OP_IF:
        return !lilac_simt_evaluation_get(&s->values, i->operands[0], &condition) ||
               (condition == 0) == (b == 1);
    case LILAC_SIMT_OP_WHILE: {
        const lilac_simt_value *from = b == 0 ? i->operands : i->bodies[0]->last->operands + 1;
        for (uint32_t k = 0; k < body->argument_count; k++) {
            if (lilac_simt_evaluation_get(&s->values, from[k], &condition)) {
                lilac_simt_evaluation_set(&s->values, body->argument + k, condition);
            }
        }
        return true;
    }
    default:
        return body->end_warp == 0 || (warp >= body->first_warp && warp < body->end_warp);
    }
}

static void walk(sampling *s, uint32_t first, uint32_t end) {
    for (uint32_t k = first; k < end; k = s->items[k].end) {
        const lilac_simt_instruction *i = s->items[k].instruction;
        if (i->body_count == 0) {
            access_memory(s, &s->items[k]);
            continue;
        }
        if (i->code == LILAC_SIMT_OP_LOOP && !enter_loop(s, i)) {
            continue;
        }
        uint32_t inner = k + 1;
        for (uint32_t b = 0; b < i->body_count; b++) {
            uint32_t stop = inner;
            while (stop < s->items[k].end && s->items[stop].body == b) {
                stop = s->items[stop].end;
            }
            if (enters(s, i, b)) {
                walk(s, inner, stop);
            }
            inner = stop;
        }
    }
}

static void sample_program(sampling *s, uint64_t number) {
    const uint32_t *grid = s->e->options.launch.grid;
    const uint32_t threads = s->e->kernel->num_warps * s->e->compilation.target.arch->warp_size;
    s->values.program[0] = (uint32_t)(number % grid[0]);
    s->values.program[1] = (uint32_t)(number / grid[0] % grid[1]);
    s->values.program[2] = (uint32_t)(number / grid[0] / grid[1]);
    for (s->values.thread = 0; s->values.thread < threads; s->values.thread++) {
        lilac_simt_evaluation_reset(&s->values);
        walk(s, 0, s->count);
    }
}

/* ---- results ------------------------------------------------------------------------------ */

static void note_results(sampling *s) {
    for (uint32_t n = 1; n <= s->e->count; n++) {
        const tally *t = &s->tallies[n];
        const bool atomic = s->e->operations[n - 1].op->code == LILAC_TILE_OP_TT_ATOMIC_RMW;
        if (t->all == 0) {
            continue;
        }
        s->e->active[n - 1] = (double)t->active / (double)t->all;
        if (!t->unknown) {
            s->e->lines[n - 1] = (double)t->lines / t->programs;
            s->e->traffic[n - 1] = (atomic ? 2.0 : 1.0) * (double)t->sectors / t->programs;
        } else {
            s->e->traffic[n - 1] *= s->e->active[n - 1];
        }
    }
}

static uint64_t power_above(uint64_t n) {
    uint64_t power = 1024;
    while (power < n) {
        power *= 2;
    }
    return power;
}

static double fraction(double x) {
    return x - floor(x);
}

/* Programs and places in loops, spread by multiples of irrational numbers; at least two programs
 * that access memory. */
static void sample_programs(sampling *s, uint64_t all) {
    uint32_t useful = 0;
    for (uint32_t k = 0; k < MOST_PROGRAMS && k < all && useful < ENOUGH_PROGRAMS; k++) {
        const uint64_t before = s->evaluations;
        if (useful >= 2 && before > MOST_EVALUATIONS) {
            break;
        }
        memset(s->table, 0, (size_t)(s->mask + 1) * sizeof *s->table);
        s->program = k + 1;
        s->place = fraction(0.7548776662466927 * (k + 0.66));
        sample_program(s, (uint64_t)(fraction(0.6180339887498949 * (k + 1)) * (double)all));
        useful += s->evaluations > before;
    }
}

void explain_find_accesses(lilac_explanation *e) {
    const uint32_t *grid = e->options.launch.grid;
    const uint64_t all = (uint64_t)grid[0] * grid[1] * grid[2];
    const uint64_t threads = (uint64_t)e->kernel->num_warps * e->compilation.target.arch->warp_size;
    sampling s = {.e = e};
    for (uint32_t i = 0; i < e->count; i++) {
        e->active[i] = 1;
    }
    list_items(&s, e->kernel->body, 0, true);
    if (all == 0 || s.accesses == 0) {
        return;
    }
    s.items = lilac_arena_array(e->arena, item, s.count);
    s.tallies = lilac_arena_array(e->arena, tally, e->count + 1);
    s.mask = power_above(8 * threads * s.accesses) - 1;
    s.table = lilac_heap_grow(NULL, (size_t)(s.mask + 1) * sizeof *s.table);
    s.count = s.accesses = 0;
    list_items(&s, e->kernel->body, 0, false);
    lilac_simt_evaluation_init(&s.values, e->kernel);
    explain_set_launch(e, &s.values);
    s.values.thread_known = true;
    sample_programs(&s, all);
    note_results(&s);
    lilac_simt_evaluation_clear(&s.values);
    lilac_heap_free(s.table);
}
