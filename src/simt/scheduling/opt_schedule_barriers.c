/* Scheduling barriers: loads that the code has in a row are issued in a row.
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
 * kernel asks for (opt_occupancy.c): other warps hide more then, or registers spill.
 * (H200, kept kernels of torch.compile with the options that are fastest under Triton: 1.014 times
 * as fast over 17 kernels of four development models, 0.975 to 1.137, and 1.027 over 77 of the others,
 * beside the rule before, which left out kernels with barriers between threads, rows in front of
 * shuffles, and less than half of the warps.) */
#include "internal.h"

#include <string.h>

enum { WORK = 100, MOST_WORDS = 64 };

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

bool lilac_simt_opt_schedule_barriers(lilac_simt_kernel *kernel) {
    const size_t size = sizeof(uint32_t) * kernel->value_count;
    row_search s = {.kernel = kernel, .rows = lilac_heap_grow(NULL, size)};
    memset(s.rows, 0, size);
    lilac_simt_instruction *last = next_row(&s, kernel->body->first);
    const bool changed = last != NULL && leaves_warps(kernel);
    while (changed && last != NULL) {
        const lilac_simt_instruction like = {.code = LILAC_SIMT_OP_SCHEDULE_BARRIER,
                                             .location = last->location};
        lilac_simt_instruction *next = last->next;
        lilac_simt_link(kernel->body, next, lilac_simt_new_instruction(kernel, &like, 0, NULL));
        last = next_row(&s, next);
    }
    lilac_heap_free(s.rows);
    return changed;
}
