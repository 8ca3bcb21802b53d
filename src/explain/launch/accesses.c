/* What the accesses to global memory of a launch touch, where masks and alignments of its programs
 * are those of its arguments.
 *
 * In a sample of programs and, of each loop, one iteration, the address and the predicate of each
 * access are evaluated for each thread:
 *
 *     traffic of an operation   different sectors that its threads access in one execution
 *     active                    the part of its accesses that no predicate turns off
 *     pieces                    lines of 128 bytes, in whole or in part, that no operation before
 *                               it accesses
 *     span                      bytes from its lowest address in a program to its highest
 *     requests                  lines of L2 that the rows of its boxes are in, of a tensor copy
 *
 * Of a box, rows and parts of rows that are outside of the tensor are not accessed.
 *
 * An operation with an address that cannot be evaluated keeps the sectors of its plan. */
#include "internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_EVALUATIONS = 1 << 16, MOST_PROGRAMS = 32, ENOUGH_PROGRAMS = 16, LINE = 128 };

/* Numbers of all operations together, in the table of sectors. */
static const uint32_t LOADS = UINT32_MAX, STORES = UINT32_MAX - 1;

typedef struct tally {
    uint64_t sectors, pieces, lines, requests, active, all;
    uint64_t lowest, highest; /* addresses of the last program */
    double span;              /* the largest of its programs */
    uint32_t programs, last;  /* that reached it; the last one plus 1 */
    bool unknown;
} tally;

/* Of a tensor copy: the last programs in which a thread came to it, and in which one started it. */
typedef struct copy_state {
    uint32_t seen, done;
} copy_state;

typedef struct sampling {
    explain_walker walker;
    lilac_explanation *e;
    uint64_t evaluations;
    tally *tallies;  /* by number of the operation */
    uint64_t *table; /* of hashes of the sectors of a program */
    uint64_t mask;
    uint32_t program;   /* number in the sample, from 1 */
    copy_state *copies; /* by item */
} sampling;

/* Bulk copies, and tensor copies whose map is not known, access what their plans say. */
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

/* Notes the span of the last program. */
static void end_program(tally *t) {
    const double span = t->highest > t->lowest ? (double)(t->highest - t->lowest) : 0;
    t->span = span > t->span ? span : t->span;
    t->lowest = UINT64_MAX;
    t->highest = 0;
}

/* The parameter that an operand is, if it is a tensor map; the number of parameters: it is none. */
static uint32_t map_parameter(const lilac_simt_kernel *kernel, lilac_simt_value value) {
    const lilac_simt_instruction *made = kernel->values[value].definition;
    const bool is_map = made != NULL && made->code == LILAC_SIMT_OP_PARAM &&
                        kernel->parameters[made->immediate].is_tensor_map;
    return is_map ? (uint32_t)made->immediate : kernel->parameter_count;
}

/* The map of a tensor copy, and the coordinates of its box; NULL: they are not known. */
static const lilac_tensor_map *box_of(explain_walker *w, const lilac_simt_instruction *i,
                                      int64_t at[LILAC_TENSOR_RANK]) {
    const lilac_simt_kernel *kernel = w->e->kernel;
    const lilac_simt_value *operand = i->operands, *end = operand + i->operand_count;
    while (operand < end && map_parameter(kernel, *operand) == kernel->parameter_count) {
        operand++;
    }
    const lilac_tensor_map *map =
        operand < end ? &w->e->maps[map_parameter(kernel, *operand)] : NULL;
    for (uint32_t d = 0; map != NULL && d < map->rank; d++) {
        uint64_t bits;
        if (!lilac_simt_evaluation_get(&w->values, operand[1 + d], &bits)) {
            return NULL;
        }
        at[d] = (int32_t)(uint32_t)bits;
    }
    return map != NULL && map->rank > 0 ? map : NULL;
}

/* The sectors and lines of a row of a box, whose first element has this address. */
static void add_row(tally *t, uint64_t sector, const lilac_tensor_map *map, uint64_t address,
                    int64_t first) {
    const int64_t begin = first > 0 ? first : 0, end = first + map->box[0];
    const int64_t stop = end < (int64_t)map->dims[0] ? end : (int64_t)map->dims[0];
    const uint64_t bytes = lilac_tensor_element_bytes(map->element);
    if (begin < stop) {
        const uint64_t low = address + (uint64_t)(begin - first) * bytes;
        const uint64_t high = address + (uint64_t)(stop - first) * bytes - 1;
        t->sectors += high / sector - low / sector + 1;
        t->requests += high / LINE - low / LINE + 1;
    }
}

/* Is the tensor copy executed by this thread? It is unless its predicate is known to be false. */
static bool starts_copy(explain_walker *w, const lilac_simt_instruction *i) {
    const uint32_t at = operand_of(w->user, i, LILAC_SIMT_I1, 0);
    uint64_t bits;
    return at == i->operand_count ||
           !lilac_simt_evaluation_get(&w->values, i->operands[at], &bits) || bits != 0;
}

/* A tensor copy, which one thread of a program starts. */
static void access_box(explain_walker *w, const explain_item *one) {
    sampling *s = w->user;
    tally *t = &s->tallies[one->number];
    copy_state *state = &s->copies[one - w->items];
    int64_t at[LILAC_TENSOR_RANK];
    uint64_t rows = 1;
    const lilac_tensor_map *map = box_of(w, one->instruction, at);
    if (map == NULL || state->done == s->program) {
        return;
    }
    t->programs += t->last != s->program;
    t->last = s->program;
    t->all += state->seen != s->program;
    state->seen = s->program;
    if (!starts_copy(w, one->instruction)) {
        return;
    }
    t->active++;
    state->done = s->program;
    for (uint32_t d = 1; d < map->rank; d++) {
        rows *= map->box[d];
    }
    s->evaluations += rows;
    for (uint64_t row = 0; row < rows; row++) {
        uint64_t rest = row, bytes = lilac_tensor_element_bytes(map->element);
        uint64_t address = map->address + (uint64_t)at[0] * bytes;
        bool inside = true;
        for (uint32_t d = 1; d < map->rank; rest /= map->box[d++]) {
            const int64_t x = at[d] + (int64_t)(rest % map->box[d]);
            inside &= x >= 0 && x < (int64_t)map->dims[d];
            address += (uint64_t)x * map->strides[d - 1];
        }
        if (inside) {
            add_row(t, w->e->compilation.target.arch->sector_bytes, map, address, at[0]);
        }
    }
}

static void access_memory(explain_walker *w, const explain_item *one) {
    sampling *s = w->user;
    const lilac_simt_instruction *i = one->instruction;
    if (explain_is_tensor_copy(i)) {
        access_box(w, one);
        return;
    }
    if (!is_access(i)) {
        return;
    }
    const bool copy = i->code == LILAC_SIMT_OP_CP_ASYNC;
    const uint32_t at = operand_of(s, i, LILAC_SIMT_I64, copy ? 1 : 0);
    tally *t = &s->tallies[one->number];
    uint64_t bits = 1, address;
    s->evaluations++;
    if (t->last != s->program) {
        end_program(t);
        t->programs++;
        t->last = s->program;
    }
    t->all++;
    if (i->operand_count > 1 && s->e->kernel->values[i->operands[1]].type == LILAC_SIMT_I1 &&
        lilac_simt_evaluation_get(&w->values, i->operands[1], &bits) && bits == 0) {
        return;
    }
    uint64_t bytes = bytes_of(s, i);
    if (copy && at + 1u < i->operand_count &&
        lilac_simt_evaluation_get(&w->values, i->operands[at + 1], &bits)) {
        bytes = bits < bytes ? bits : bytes;
    }
    if (bytes == 0) {
        return;
    }
    t->active++;
    if (at >= i->operand_count ||
        !lilac_simt_evaluation_get(&w->values, i->operands[at], &address)) {
        t->unknown = true;
        return;
    }
    address += (uint64_t)(copy ? i->payload.copy.source : i->immediate);
    t->lowest = address < t->lowest ? address : t->lowest;
    t->highest = address + bytes > t->highest ? address + bytes : t->highest;
    const uint64_t size = s->e->compilation.target.arch->sector_bytes;
    for (uint64_t k = address / size; k <= (address + bytes - 1) / size; k++) {
        t->sectors += add_sector(s, one->number, k);
    }
    const uint64_t warp = w->values.thread / s->e->compilation.target.arch->warp_size;
    for (uint64_t k = address / LINE; k <= (address + bytes - 1) / LINE; k++) {
        t->pieces += add_sector(s, i->code == LILAC_SIMT_OP_ST_GLOBAL ? STORES : LOADS, k);
        t->lines +=
            add_sector(s, (uint32_t)(s->e->count + 1 + (one - w->items)), lilac_hash_word(warp, k));
    }
}

static void sample_program(sampling *s, uint64_t number, double place) {
    const uint32_t threads = s->e->kernel->num_warps * s->e->compilation.target.arch->warp_size;
    for (uint32_t thread = 0; thread < threads; thread++) {
        explain_walk(&s->walker, number, thread, place);
    }
}

/* ---- results ------------------------------------------------------------------------------ */

static void note_results(sampling *s) {
    for (uint32_t n = 1; n <= s->e->count; n++) {
        tally *t = &s->tallies[n];
        const bool atomic = s->e->operations[n - 1].op->code == LILAC_TILE_OP_TT_ATOMIC_RMW;
        if (t->all == 0) {
            continue;
        }
        s->e->active[n - 1] = (double)t->active / (double)t->all;
        end_program(t);
        if (!t->unknown) {
            s->e->span[n - 1] = t->span;
            s->e->lines[n - 1] = (double)t->lines / t->programs;
            s->e->requests[n - 1] = (double)t->requests / t->programs;
            s->e->pieces[n - 1] = (double)t->pieces / t->programs;
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
        sample_program(s, (uint64_t)(fraction(0.6180339887498949 * (k + 1)) * (double)all),
                       fraction(0.7548776662466927 * (k + 0.66)));
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
    if (all == 0) {
        return;
    }
    explain_walker_init(&s.walker, e);
    s.walker.access = access_memory;
    s.walker.user = &s;
    if (s.walker.accesses > 0) {
        s.tallies = lilac_arena_array(e->arena, tally, e->count + 1);
        s.copies = lilac_arena_array(e->arena, copy_state, s.walker.count + 1);
        s.mask = power_above(8 * threads * s.walker.accesses) - 1;
        s.table = lilac_heap_grow(NULL, (size_t)(s.mask + 1) * sizeof *s.table);
        sample_programs(&s, all);
        note_results(&s);
        lilac_heap_free(s.table);
    }
    explain_walker_clear(&s.walker);
}
