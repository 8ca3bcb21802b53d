/* The rules for kernels with several programs: which program may contain which operation.
 *
 *   - programs stand in the kernel's own body; their windows follow one another from warp 0 to the
 *     last warp
 *   - barriers of the block, of its groups and of the cluster are not in programs
 *   - an id of a hardware barrier is used by barrier (0), by group_barrier (1 + number) or by named
 *     barriers, and by one of them only
 *   - a named barrier's threads are whole warps of the block
 *   - set_max_registers is in a program, all programs with warps of its warpgroups set the same number,
 *     the warpgroups are whole, the registers of all programs together are at most those of a
 *     multiprocessor, and no other programs come before or after
 */
#include "internal.h"

typedef lilac_simt_instruction instruction;

enum { IDS = 16, WARPGROUP = 4, LEAST = 24, MOST = 256, STEP = 8 };

typedef struct checker {
    const lilac_simt_kernel *kernel;
    uint32_t warp_size;
    bool ok;
    const lilac_simt_body *program; /* around the place of the walk, or NULL */
    const instruction *others[IDS]; /* barrier or group_barrier that uses an id */
    const instruction *named[IDS];
    uint32_t forks;          /* operations with programs */
    const instruction *sets; /* the last set_max_registers, or NULL */
    uint64_t registers;      /* of all threads of the programs so far, in registers */
    uint64_t most;           /* of a thread of the program: the largest number that it sets */
} checker;

#define FAIL(c, at, id, ...)                                                                       \
    do {                                                                                           \
        (c)->ok = false;                                                                           \
        lilac_simt_verify_error((c)->kernel, at, id, __VA_ARGS__);                                 \
    } while (0)

static const char *name_of(const instruction *i) {
    return lilac_simt_op_info_get((lilac_simt_opcode)i->code)->name;
}

bool lilac_simt_has_programs(const lilac_simt_kernel *kernel) {
    for (const instruction *i = kernel->body->first; i != NULL; i = i->next) {
        if (i->code == LILAC_SIMT_OP_PROGRAMS) {
            return true;
        }
    }
    return false;
}

/* ---- barriers --------------------------------------------------------------------------- */

static void check_block_barrier(checker *c, const instruction *i) {
    uint64_t number = 0;
    if (c->program != NULL) {
        FAIL(c, i, "simt-programs",
             "%s in a program: programs meet at mbarriers and named barriers", name_of(i));
    }
    if (i->code == LILAC_SIMT_OP_BARRIER) {
        c->others[0] = i;
    } else if (i->code == LILAC_SIMT_OP_GROUP_BARRIER &&
               lilac_simt_constant_bits(c->kernel, i->operands[0], &number)) {
        c->others[number + 1 < IDS ? number + 1 : 0] = i;
    } else if (i->code == LILAC_SIMT_OP_GROUP_BARRIER) {
        for (uint32_t id = 1; id < IDS; id++) {
            c->others[id] = i;
        }
    }
}

static void check_named_barrier(checker *c, const instruction *i) {
    int64_t block = (int64_t)c->kernel->num_warps * c->warp_size;
    if (i->detail >= IDS) {
        FAIL(c, i, "simt-named-barrier", "id %u of %s: 0 to 15 are allowed", i->detail, name_of(i));
        return;
    }
    if (i->immediate <= 0 || i->immediate > block || i->immediate % c->warp_size != 0) {
        FAIL(c, i, "simt-named-barrier",
             "%lld threads at %s: a multiple of %u, at most %lld, is allowed",
             (long long)i->immediate, name_of(i), c->warp_size, (long long)block);
    }
    const instruction *first = c->named[i->detail];
    if (first != NULL && first->immediate != i->immediate) {
        FAIL(c, i, "simt-named-barrier", "%lld threads at barrier %u, which has %lld elsewhere",
             (long long)i->immediate, i->detail, (long long)first->immediate);
    }
    c->named[i->detail] = first != NULL ? first : i;
}

static void check_ids(checker *c) {
    for (uint32_t id = 0; id < IDS; id++) {
        if (c->named[id] != NULL && c->others[id] != NULL) {
            FAIL(c, c->named[id], "simt-named-barrier", "id %u is also used by %s", id,
                 name_of(c->others[id]));
        }
    }
}

/* ---- registers -------------------------------------------------------------------------- */

/* Of a thread when the kernel begins: what a block alone on a multiprocessor gets. */
static uint64_t registers_at_entry(const checker *c) {
    uint64_t threads = (uint64_t)c->kernel->num_warps * c->warp_size;
    uint64_t each = threads > 0 ? c->kernel->module->arch->registers / threads : 0;
    each = each < MOST ? each : MOST;
    return each / STEP * STEP;
}

static void check_registers(checker *c, const instruction *i) {
    const lilac_simt_body *program = c->program;
    const lilac_arch *arch = c->kernel->module->arch;
    if (arch == NULL || (!lilac_arch_has(arch, LILAC_HAS_WGMMA) &&
                         !lilac_arch_has(arch, LILAC_HAS_TENSOR_MEMORY))) {
        FAIL(c, i, "simt-feature", "%s has no %s", arch != NULL ? arch->name : "the target",
             name_of(i));
        return;
    }
    if (i->immediate < LEAST || i->immediate > MOST || i->immediate % STEP != 0) {
        FAIL(c, i, "simt-registers", "%lld registers: a multiple of 8 from 24 to 256 is allowed",
             (long long)i->immediate);
    }
    c->sets = i;
    if (i->immediate <= MOST && (uint64_t)i->immediate > c->most) {
        c->most = (uint64_t)i->immediate;
    }
    if (program == NULL || c->kernel->num_warps % WARPGROUP != 0) {
        FAIL(c, i, "simt-registers",
             "%s is for programs of a kernel of whole warpgroups, not for %u warps%s", name_of(i),
             c->kernel->num_warps, program == NULL ? " of one program" : "");
    }
    if (c->kernel->min_blocks != 1) {
        FAIL(c, i, "simt-registers", "the kernel has min_blocks %u; %s needs min_blocks 1",
             c->kernel->min_blocks, name_of(i));
    }
}

/* ---- the walk --------------------------------------------------------------------------- */

static void check_body(checker *c, const lilac_simt_body *body);

/* The largest number of registers that the program sets; 0: it sets none. */
static uint64_t most_set(const lilac_simt_body *body) {
    uint64_t most = 0;
    for (const instruction *i = body->first; i != NULL; i = i->next) {
        uint64_t set = i->code == LILAC_SIMT_OP_SET_MAX_REGISTERS ? (uint64_t)i->immediate : 0;
        for (uint32_t k = 0; k < i->body_count; k++) {
            const uint64_t inner = most_set(i->bodies[k]);
            set = inner > set ? inner : set;
        }
        most = set > most ? set : most;
    }
    return most;
}

/* Programs that share a warpgroup set the same number of registers, or none. */
static void check_warpgroups(checker *c, const instruction *programs) {
    for (uint32_t k = 0; k + 1 < programs->body_count; k++) {
        const lilac_simt_body *body = programs->bodies[k], *next = programs->bodies[k + 1];
        if (body->end_warp % WARPGROUP != 0 && most_set(body) != most_set(next)) {
            FAIL(c, programs, "simt-registers",
                 "the programs of the warps %u to %u and %u to %u share a warpgroup and set %llu "
                 "and "
                 "%llu registers",
                 body->first_warp, body->end_warp, next->first_warp, next->end_warp,
                 (unsigned long long)most_set(body), (unsigned long long)most_set(next));
        }
    }
}

static void check_programs(checker *c, const instruction *programs) {
    uint32_t next = 0;
    c->registers = 0;
    c->forks++;
    bool sets = false;
    if (programs->parent != c->kernel->body) {
        FAIL(c, programs, "simt-programs", "programs stand in a kernel's own body only");
    }
    for (uint32_t k = 0; k < programs->body_count; k++) {
        const lilac_simt_body *body = programs->bodies[k], *around = c->program;
        if (body->first_warp != next || body->end_warp <= next) {
            FAIL(c, programs, "simt-programs",
                 "program %u has the warps %u to %u; it begins at warp %u and has at least one", k,
                 body->first_warp, body->end_warp, next);
        }
        next = body->end_warp;
        c->most = 0;
        c->program = body;
        check_body(c, body);
        c->program = around;
        uint64_t each = c->most > 0 ? c->most : registers_at_entry(c);
        c->registers += each * c->warp_size * (body->end_warp - body->first_warp);
        sets |= c->most > 0;
    }
    check_warpgroups(c, programs);
    if (next != c->kernel->num_warps) {
        FAIL(c, programs, "simt-programs", "the programs have %u warps, the kernel has %u", next,
             c->kernel->num_warps);
    }
    /* What a block has at entry and not what its multiprocessor has: an increase waits for registers
     * of the block. */
    const uint64_t all = registers_at_entry(c) * c->kernel->num_warps * c->warp_size;
    if (sets && c->registers > all) {
        FAIL(c, programs, "simt-registers", "the programs need %llu registers; the block has %llu",
             (unsigned long long)c->registers, (unsigned long long)all);
    }
}

static void check_instruction(checker *c, const instruction *i) {
    switch (i->code) {
    case LILAC_SIMT_OP_BARRIER:
    case LILAC_SIMT_OP_GROUP_BARRIER:
    case LILAC_SIMT_OP_CLUSTER_BARRIER:
        check_block_barrier(c, i);
        break;
    case LILAC_SIMT_OP_NAMED_BARRIER_SYNC:
    case LILAC_SIMT_OP_NAMED_BARRIER_ARRIVE:
        check_named_barrier(c, i);
        break;
    case LILAC_SIMT_OP_SET_MAX_REGISTERS:
        check_registers(c, i);
        break;
    case LILAC_SIMT_OP_PROGRAMS:
        check_programs(c, i);
        break;
    default:
        for (uint32_t k = 0; k < i->body_count; k++) {
            check_body(c, i->bodies[k]);
        }
        break;
    }
}

static void check_body(checker *c, const lilac_simt_body *body) {
    for (const instruction *i = body->first; i != NULL; i = i->next) {
        check_instruction(c, i);
    }
}

bool lilac_simt_verify_programs(const lilac_simt_kernel *kernel) {
    const lilac_arch *arch = kernel->module->arch;
    checker c = {.kernel = kernel, .warp_size = arch != NULL ? arch->warp_size : 32, .ok = true};
    check_body(&c, kernel->body);
    check_ids(&c);
    if (c.sets != NULL && c.forks > 1) {
        FAIL(&c, c.sets, "simt-registers",
             "%u operations have programs; a kernel with set_max_registers has one", c.forks);
    }
    return c.ok;
}
