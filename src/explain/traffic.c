/* How much of what the blocks access is the same: the part of their sectors that memory must
 * deliver.
 *
 * The address of the first thread of each access is evaluated in neighbouring programs, in the
 * first iteration of its loops. Programs with equal addresses access the same tile, which memory
 * delivers once and L2 to the others:
 *
 *     share of an operation = different addresses / programs
 *
 * An address that the arguments do not determine, a gathered one, counts as different in each
 * program. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_PROGRAMS = 4096, MOST_OPERANDS = 16 };

typedef struct site {
    const lilac_simt_instruction *instruction;
    uint64_t *addresses; /* hashes, by program */
    uint32_t number;     /* of the operation */
    bool unknown;
} site;

typedef struct traffic {
    lilac_explanation *e;
    lilac_simt_evaluation values;
    site *sites;
    uint32_t count, next, programs, program;
} traffic;

static bool moves_global(const lilac_simt_instruction *i) {
    const uint32_t traits = lilac_simt_op_info_get((lilac_simt_opcode)i->code)->traits;
    return (traits & LILAC_SIMT_GLOBAL) && !(traits & LILAC_SIMT_MBARRIER);
}

/* Only the first instruction of an operation: the others access other parts of the same tile. */
static void find_sites(traffic *t, const lilac_simt_body *body, bool *seen) {
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        const uint32_t number = moves_global(i) ? explain_number(t->e, i->location) : 0;
        if (number > 0 && !seen[number]) {
            seen[number] = true;
            t->sites[t->count++] = (site){.instruction = i, .number = number};
        }
        for (uint32_t b = 0; b < i->body_count; b++) {
            find_sites(t, i->bodies[b], seen);
        }
    }
}

/* Global addresses have 64 bits, coordinates of tensor copies 32; predicates have one. */
static uint64_t address_of(traffic *t, site *s) {
    const lilac_simt_instruction *i = s->instruction;
    const lilac_simt_kernel *kernel = t->e->kernel;
    const bool tensor = i->code == LILAC_SIMT_OP_CP_TENSOR_LOAD ||
                        i->code == LILAC_SIMT_OP_CP_TENSOR_STORE ||
                        i->code == LILAC_SIMT_OP_CP_TENSOR_REDUCE;
    /* The last operand of a load is the address of its mbarrier. */
    const uint32_t end = i->operand_count - (i->code == LILAC_SIMT_OP_CP_TENSOR_LOAD);
    uint64_t hash = 0;
    bool found = false;
    for (uint32_t k = 0; k < end && !(found && !tensor); k++) {
        const uint8_t type = kernel->values[i->operands[k]].type;
        const bool address = type == LILAC_SIMT_I64, coordinate = found && type == LILAC_SIMT_I32;
        uint64_t bits;
        if (!address && !(coordinate && k > 0)) {
            continue;
        }
        if (lilac_simt_evaluation_get(&t->values, i->operands[k], &bits)) {
            hash = lilac_hash_word(bits, hash + k);
        } else {
            s->unknown |= address != tensor; /* a map that the kernel makes is the same for all */
        }
        found |= address;
    }
    return hash;
}

/* The carried values and the counter of the first iteration. */
static void enter_loop(traffic *t, const lilac_simt_instruction *i) {
    const uint32_t first = i->code == LILAC_SIMT_OP_LOOP ? 3 : 0;
    for (uint32_t b = 0; b < i->body_count && i->code != LILAC_SIMT_OP_IF; b++) {
        const lilac_simt_body *body = i->bodies[b];
        uint64_t bits;
        if (first > 0 && lilac_simt_evaluation_get(&t->values, i->operands[0], &bits)) {
            lilac_simt_evaluation_set(&t->values, body->argument, bits);
        }
        for (uint32_t k = first; k < i->operand_count; k++) {
            const uint32_t argument = k - first + (first > 0);
            if (argument < body->argument_count &&
                lilac_simt_evaluation_get(&t->values, i->operands[k], &bits)) {
                lilac_simt_evaluation_set(&t->values, body->argument + argument, bits);
            }
        }
    }
}

static void visit(traffic *t, const lilac_simt_body *body) {
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        if (t->next < t->count && t->sites[t->next].instruction == i) {
            site *s = &t->sites[t->next++];
            s->addresses[t->program] = address_of(t, s);
        }
        if (i->body_count > 0) {
            enter_loop(t, i);
        }
        for (uint32_t b = 0; b < i->body_count; b++) {
            visit(t, i->bodies[b]);
        }
    }
}

static int compare(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Different addresses, for each program. */
static double different_share(const traffic *t, const site *s) {
    uint64_t *list = lilac_arena_array(t->e->arena, uint64_t, t->programs);
    uint32_t different = 0;
    memcpy(list, s->addresses, t->programs * sizeof *list);
    qsort(list, t->programs, sizeof *list, compare);
    for (uint32_t i = 0; i < t->programs; i++) {
        different += i == 0 || list[i] != list[i - 1];
    }
    return (double)different / t->programs;
}

/* Does an earlier site load the same tiles? Then they are in L2. */
static bool loads_again(const traffic *t, const site *one, uint32_t count) {
    for (uint32_t s = 0; s < count && one->instruction->code == LILAC_SIMT_OP_LD_GLOBAL; s++) {
        const site *before = &t->sites[s];
        if (before->instruction->code == LILAC_SIMT_OP_LD_GLOBAL && !before->unknown &&
            memcmp(before->addresses, one->addresses, t->programs * sizeof *one->addresses) == 0) {
            return true;
        }
    }
    return false;
}

void explain_find_traffic(lilac_explanation *e) {
    const uint32_t *grid = e->options.launch.grid;
    const uint64_t all = (uint64_t)grid[0] * grid[1] * grid[2];
    traffic t = {.e = e, .programs = (uint32_t)(all < MOST_PROGRAMS ? all : MOST_PROGRAMS)};
    for (uint32_t i = 0; i < e->count; i++) {
        e->share[i] = 1;
    }
    if (all == 0) {
        return;
    }
    t.sites = lilac_arena_array(e->arena, site, e->count + 1);
    find_sites(&t, e->kernel->body, lilac_arena_array(e->arena, bool, e->count + 1));
    for (uint32_t s = 0; s < t.count; s++) {
        t.sites[s].addresses = lilac_arena_array(e->arena, uint64_t, t.programs);
    }
    lilac_simt_evaluation_init(&t.values, e->kernel);
    explain_set_launch(e, &t.values);
    t.values.thread_known = true;
    for (t.program = 0; t.program < t.programs; t.program++) {
        lilac_simt_evaluation_reset(&t.values);
        t.values.program[0] = t.program % grid[0];
        t.values.program[1] = t.program / grid[0] % grid[1];
        t.values.program[2] = t.program / grid[0] / grid[1];
        t.next = 0;
        visit(&t, e->kernel->body);
    }
    for (uint32_t s = 0; s < t.count; s++) {
        const site *one = &t.sites[s];
        const bool again = !one->unknown && loads_again(&t, one, s);
        e->share[one->number - 1] = one->unknown ? 1 : different_share(&t, one);
        e->again[one->number - 1] = again;
    }
    lilac_simt_evaluation_clear(&t.values);
}

/* A block loads the tile again after it has accessed the others of its tiles; meanwhile other blocks
 * have accessed theirs. */
void explain_find_reuse(lilac_explanation *e) {
    const uint32_t *grid = e->options.launch.grid;
    const double blocks = (double)grid[0] * grid[1] * grid[2] * e->compilation.target.num_ctas;
    const double resident = (double)e->budget.resident_blocks * EXPLAIN_MULTIPROCESSORS;
    double sectors = 0;
    for (uint32_t i = 0; i < e->count; i++) {
        sectors += e->again[i] ? 0 : e->executions[i] * e->traffic[i] * e->share[i];
    }
    const double bytes = sectors * e->compilation.target.arch->sector_bytes *
                         (blocks < resident ? blocks : resident);
    const double missing = (bytes / EXPLAIN_L2_BYTES - 0.5) / 0.5;
    for (uint32_t i = 0; i < e->count; i++) {
        if (e->again[i]) {
            e->share[i] *= missing < 0 ? 0 : missing > 1 ? 1 : missing;
        }
    }
}
