/* Scheduling barriers: loads that the code has in a row are issued in a row.
 *
 * Behind a row
 *
 *     ld.global %a …                       ld.global %a …
 *     ld.global %b …                       ld.global %b …
 *     … long work on a              →      schedule_barrier
 *     … long work on b                     … long work on a
 *                                          … long work on b
 *
 * In long straight-line code ptxas saves registers by issuing a load only where its value is first
 * used; then the thread waits for memory once for each load. It moves nothing across the end of a
 * basic block, and a schedule_barrier ends one.
 *
 * A row is at least two loads with less than WORK operations on what they load between any two. It
 * gets a barrier when at least WORK operations on what it loads follow before a store, a barrier
 * between threads or other control flow; shuffles do not keep the assembler from delaying loads. A
 * barrier costs the registers of the row. So there is none in loops, where registers are short
 * already, none for a row of more than MOST_WORDS words, and none where the registers of all rows
 * leave less than three eighths of the multiprocessor's warps resident, or fewer blocks than the
 * kernel asks for (opt_occupancy.c): other warps hide more then, or registers spill
 * (bench/results/decisions.md).
 *
 * In front of a row
 *
 *     ld.global %p0 + %n                   %a = add %p0, %n   … the same with %p1 to %p4
 *     ld.global %p1 + %n            →      schedule_barrier %a, …
 *     …                                    ld.global %a
 *                                          …
 *
 * A thread reads the kernel's parameters from memory, too, and waits for them by the same six
 * scoreboards as for loads (Jia et al., "Dissecting the NVIDIA Volta GPU Architecture", 2018, on
 * control information). Where these do not suffice, ptxas gives the first load the scoreboard of a
 * pointer that a later address needs, and the loads behind it are only issued when the first has
 * arrived. With the barrier ptxas waits for the pointers before the first load.
 *
 * So the first loads get one if they read through LEAST_POINTERS parameters or more. The threads wait a
 * little before their first load then, and the addresses need registers: it is only for kernels in which
 * all warps of the multiprocessor are resident (bench/results/h200_load_waits.json). */
#include "internal.h"

#include <string.h>

enum { WORK = 100, MOST_WORDS = 64, LEAST_POINTERS = 8, OTHER_WORDS = 8 };

typedef struct row_search {
    const lilac_simt_kernel *kernel;
    uint32_t *rows; /* of values: the last row that they were computed from; 0: none */
    uint32_t row;   /* the current one */
} row_search;

static bool ends_row(const lilac_simt_instruction *i) {
    return lilac_simt_has_trait(i->code, LILAC_SIMT_WRITES | LILAC_SIMT_SYNC | LILAC_SIMT_REGIONS |
                                             LILAC_SIMT_TERMINATOR);
}

static void put_in_row(row_search *s, const lilac_simt_instruction *i) {
    for (uint32_t r = 0; r < i->result_count; r++) {
        s->rows[i->result + r] = s->row;
    }
}

/* Does an operand come from the current row? Then so do the results. */
static bool works_on_row(row_search *s, const lilac_simt_instruction *i) {
    for (uint32_t k = 0; k < i->operand_count; k++) {
        if (s->rows[i->operands[k]] == s->row) {
            put_in_row(s, i);
            return true;
        }
    }
    return false;
}

static uint32_t words_of(const row_search *s, const lilac_simt_instruction *load) {
    lilac_simt_type type = lilac_simt_type_of(s->kernel, load->result);
    return load->result_count * ((lilac_simt_type_bits(type) + 31) / 32);
}

/* The last load of the next row that gets a barrier, from an instruction on; NULL: there is none. */
static lilac_simt_instruction *next_row(row_search *s, lilac_simt_instruction *from) {
    lilac_simt_instruction *last = NULL;
    uint32_t loads = 0, words = 0, work = 0;
    s->row++;
    for (lilac_simt_instruction *i = from; i != NULL; i = i->next) {
        const bool load = i->code == LILAC_SIMT_OP_LD_GLOBAL;
        if (ends_row(i) || (load && work >= WORK)) {
            loads = words = work = 0;
            s->row++;
        }
        if (load) {
            last = i;
            loads++;
            words += words_of(s, i);
            work = 0;
            put_in_row(s, i);
        } else if (works_on_row(s, i) && ++work >= WORK && loads > 1 && words <= MOST_WORDS) {
            return last;
        }
    }
    return NULL;
}

/* With all rows in registers, are three eighths of the multiprocessor's warps resident, more than one
 * block, and the blocks that the kernel asks for? */
static bool leaves_warps(const lilac_simt_kernel *kernel) {
    const uint32_t blocks =
        lilac_simt_resident_blocks(kernel, lilac_simt_pressure(kernel, LILAC_SIMT_PRESSURE_EARLY));
    return blocks > 1 && blocks >= kernel->min_blocks &&
           8 * blocks * kernel->num_warps >= 3 * kernel->module->arch->resident_warps;
}

static void insert_barrier(lilac_simt_kernel *kernel, lilac_simt_instruction *next,
                           lilac_location location, uint32_t count,
                           const lilac_simt_value *operands) {
    const lilac_simt_instruction like = {.code = LILAC_SIMT_OP_SCHEDULE_BARRIER,
                                         .location = location};
    lilac_simt_link(kernel->body, next, lilac_simt_new_instruction(kernel, &like, count, operands));
}

static bool put_behind_rows(lilac_simt_kernel *kernel) {
    const size_t size = sizeof(uint32_t) * kernel->value_count;
    row_search s = {.kernel = kernel, .rows = lilac_heap_grow(NULL, size)};
    memset(s.rows, 0, size);
    lilac_simt_instruction *last = next_row(&s, kernel->body->first);
    const bool changed = last != NULL && leaves_warps(kernel);
    while (changed && last != NULL) {
        lilac_simt_instruction *next = last->next;
        insert_barrier(kernel, next, last->location, 0, NULL);
        last = next_row(&s, next);
    }
    lilac_heap_free(s.rows);
    return changed;
}

/* What a value is computed from: parameters of 64 bits (pointers, as a rule), a bit for each, and loads. */
enum { MOST_BITS = 63 };
#define LOADED (UINT64_C(1) << MOST_BITS)

static uint64_t origin_of(const lilac_simt_kernel *kernel, const uint64_t *origins,
                          const lilac_simt_instruction *i) {
    if (i->code == LILAC_SIMT_OP_PARAM) {
        const bool pointer = lilac_simt_type_of(kernel, i->result) == LILAC_SIMT_I64;
        return pointer && i->immediate < MOST_BITS ? UINT64_C(1) << i->immediate : 0;
    }
    uint64_t origin = 0;
    for (uint32_t k = 0; k < i->operand_count; k++) {
        origin |= origins[i->operands[k]];
    }
    return origin;
}

/* The first loads of a kernel: from one on, and to the last that waits for none of them. */
typedef struct first_loads {
    lilac_simt_instruction *first, *last;
    uint64_t pointers; /* that they read through */
    uint32_t count;    /* of the addresses below: the first through each pointer */
    lilac_simt_value addresses[MOST_BITS];
} first_loads;

static void find_first_loads(const lilac_simt_kernel *kernel, uint64_t *origins,
                             first_loads *found) {
    for (lilac_simt_instruction *i = kernel->body->first; i != NULL && !ends_row(i); i = i->next) {
        uint64_t origin = origin_of(kernel, origins, i);
        if (i->code == LILAC_SIMT_OP_LD_GLOBAL) {
            if ((origin & LOADED) != 0) {
                break;
            }
            found->first = found->first != NULL ? found->first : i;
            found->last = i;
            if ((origin & ~found->pointers) != 0) {
                found->addresses[found->count++] = i->operands[0];
            }
            found->pointers |= origin;
            origin = LOADED;
        }
        for (uint32_t r = 0; r < i->result_count; r++) {
            origins[i->result + r] = origin;
        }
    }
}

/* Moves what the addresses are computed from in front of the first load. `needed`: of values, zeros
 * at first. */
static void move_addresses(lilac_simt_kernel *kernel, const first_loads *loads, bool *needed) {
    for (uint32_t k = 0; k < loads->count; k++) {
        needed[loads->addresses[k]] = true;
    }
    lilac_simt_instruction *place = loads->first, *i = loads->last;
    while (i != loads->first) {
        lilac_simt_instruction *before = i->previous;
        bool moves = false;
        for (uint32_t r = 0; r < i->result_count; r++) {
            moves = moves || needed[i->result + r];
        }
        for (uint32_t k = 0; moves && k < i->operand_count; k++) {
            needed[i->operands[k]] = true;
        }
        if (moves) {
            lilac_simt_move(kernel, i, place);
            place = i;
        }
        i = before;
    }
}

/* Are all warps of the multiprocessor resident, with the addresses or the loads in registers? */
static bool fills_warps(const lilac_simt_kernel *kernel, uint32_t addresses) {
    const uint32_t loaded = lilac_simt_pressure(kernel, LILAC_SIMT_PRESSURE_EARLY);
    const uint32_t before = 2 * addresses + OTHER_WORDS;
    const uint32_t blocks = lilac_simt_resident_blocks(kernel, loaded > before ? loaded : before);
    return (blocks + 1) * kernel->num_warps > kernel->module->arch->resident_warps;
}

static bool put_before_first(lilac_simt_kernel *kernel) {
    const size_t size = sizeof(uint64_t) * kernel->value_count;
    uint64_t *origins = lilac_heap_grow(NULL, size);
    memset(origins, 0, size);
    first_loads loads = {0};
    find_first_loads(kernel, origins, &loads);
    lilac_heap_free(origins);
    if (loads.count < LEAST_POINTERS || !fills_warps(kernel, loads.count) ||
        (loads.first->previous != NULL &&
         loads.first->previous->code == LILAC_SIMT_OP_SCHEDULE_BARRIER)) {
        return false;
    }
    bool *needed = lilac_heap_grow(NULL, kernel->value_count);
    memset(needed, 0, kernel->value_count);
    move_addresses(kernel, &loads, needed);
    lilac_heap_free(needed);
    insert_barrier(kernel, loads.first, loads.first->location, loads.count, loads.addresses);
    return true;
}

bool lilac_simt_opt_schedule_barriers(lilac_simt_kernel *kernel) {
    const bool behind = put_behind_rows(kernel);
    return put_before_first(kernel) || behind;
}
