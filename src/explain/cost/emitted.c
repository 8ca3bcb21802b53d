/* The SIMT instructions that each operation became, by class, and their sums over a block.
 *
 * An instruction counts once for each warp. That of an operation in a loop that a pass moved in
 * front of the loop still counts as one of the operation; in the sums of the block it has the
 * executions of its place. */
#include "internal.h"

#include <lilac/matrix.h>
#include <lilac/tile_loops.h>

/* ---- classes ------------------------------------------------------------------------------ */

static lilac_explain_class class_of_pure(const lilac_simt_instruction *i, uint32_t traits) {
    if (traits & LILAC_SIMT_SPECIAL) {
        return LILAC_EXPLAIN_SPECIAL;
    }
    switch (i->code) {
    case LILAC_SIMT_OP_FADD:
    case LILAC_SIMT_OP_FSUB:
    case LILAC_SIMT_OP_FMUL:
    case LILAC_SIMT_OP_FFMA:
    case LILAC_SIMT_OP_FMIN:
    case LILAC_SIMT_OP_FMAX:
    case LILAC_SIMT_OP_FNEG:
    case LILAC_SIMT_OP_FABS:
        return LILAC_EXPLAIN_FLOAT;
    case LILAC_SIMT_OP_FTF32:
    case LILAC_SIMT_OP_FFLOOR:
    case LILAC_SIMT_OP_FCEIL:
    case LILAC_SIMT_OP_FTRUNC:
    case LILAC_SIMT_OP_FRINT:
    case LILAC_SIMT_OP_FCVT:
    case LILAC_SIMT_OP_S2F:
    case LILAC_SIMT_OP_U2F:
    case LILAC_SIMT_OP_F2S:
    case LILAC_SIMT_OP_F2U:
    case LILAC_SIMT_OP_F8_PACK:
    case LILAC_SIMT_OP_F8_UNPACK:
    case LILAC_SIMT_OP_SEXT:
    case LILAC_SIMT_OP_ZEXT:
    case LILAC_SIMT_OP_TRUNC:
        return LILAC_EXPLAIN_CONVERT;
    case LILAC_SIMT_OP_SELECT:
    case LILAC_SIMT_OP_PRMT:
    case LILAC_SIMT_OP_PACK:
    case LILAC_SIMT_OP_UNPACK:
    case LILAC_SIMT_OP_BITCAST:
        return LILAC_EXPLAIN_MOVE;
    default:
        return LILAC_EXPLAIN_INTEGER;
    }
}

lilac_explain_class explain_class_of(const lilac_simt_instruction *i) {
    const uint32_t traits = lilac_simt_op_info_get((lilac_simt_opcode)i->code)->traits;
    if (i->body_count > 0) {
        return LILAC_EXPLAIN_CONTROL;
    }
    switch (i->code) {
    case LILAC_SIMT_OP_MMA:
    case LILAC_SIMT_OP_WGMMA:
        return LILAC_EXPLAIN_TENSOR;
    case LILAC_SIMT_OP_SHUFFLE:
    case LILAC_SIMT_OP_BALLOT:
    case LILAC_SIMT_OP_VOTE:
    case LILAC_SIMT_OP_MATCH:
    case LILAC_SIMT_OP_REDUX:
    case LILAC_SIMT_OP_ELECT:
        return LILAC_EXPLAIN_SHUFFLE;
    default:
        break;
    }
    if (traits & LILAC_SIMT_MBARRIER) {
        return LILAC_EXPLAIN_SYNC;
    }
    if (traits & LILAC_SIMT_GLOBAL) {
        return LILAC_EXPLAIN_GLOBAL;
    }
    if (traits & LILAC_SIMT_SHARED) {
        return LILAC_EXPLAIN_SHARED;
    }
    return traits & LILAC_SIMT_SYNC ? LILAC_EXPLAIN_SYNC : class_of_pure(i, traits);
}

bool explain_is_issued(const lilac_simt_instruction *i) {
    switch (i->code) {
    case LILAC_SIMT_OP_CONST:
    case LILAC_SIMT_OP_PARAM:
    case LILAC_SIMT_OP_THREAD:
    case LILAC_SIMT_OP_LANE:
    case LILAC_SIMT_OP_WARP:
    case LILAC_SIMT_OP_ELECT:
    case LILAC_SIMT_OP_BLOCK:
    case LILAC_SIMT_OP_GRID:
    case LILAC_SIMT_OP_CTA:
    case LILAC_SIMT_OP_SHARED_BASE:
    case LILAC_SIMT_OP_GLOBAL_SCRATCH:
    case LILAC_SIMT_OP_SCHEDULE_ACCESSES:
    case LILAC_SIMT_OP_SCHEDULE_BARRIER:
    case LILAC_SIMT_OP_FENCE_MBARRIER_INIT:
        return false;
    default:
        return !(lilac_simt_op_info_get((lilac_simt_opcode)i->code)->traits &
                 LILAC_SIMT_TERMINATOR);
    }
}

static uint32_t bits_of(const lilac_explanation *e, lilac_simt_value value) {
    return lilac_simt_type_bits((lilac_simt_type)e->kernel->values[value].type);
}

static bool is_float(const lilac_explanation *e, lilac_simt_value value) {
    return lilac_simt_type_is_float((lilac_simt_type)e->kernel->values[value].type);
}

/* ptxas multiplies by the reciprocal of a constant, and computes that of a uniform value once. */
static bool divides_by_uniform(const lilac_explanation *e, const lilac_simt_instruction *i) {
    const lilac_simt_value_info *divisor = &e->kernel->values[i->operands[1]];
    return (i->flags & LILAC_SIMT_APPROXIMATE) &&
           (divisor->uniform ||
            (divisor->definition != NULL && divisor->definition->code == LILAC_SIMT_OP_CONST));
}

/* Of a function of floats: one instruction of the special function unit if subnormal numbers are
 * flushed; else its argument and its result are scaled. Exact ones are refined by multiply-adds.
 * (Counted in what ptxas 13.0 makes of each for sm_90a; of the branches, the usual one.) */
static double function_slots(const lilac_explanation *e, const lilac_simt_instruction *i) {
    const bool flushes = i->flags & LILAC_SIMT_FTZ, approximate = i->flags & LILAC_SIMT_APPROXIMATE;
    switch (i->code) {
    case LILAC_SIMT_OP_FEXP2:
    case LILAC_SIMT_OP_FLOG2:
    case LILAC_SIMT_OP_FRSQRT:
        return flushes ? 1 : 4;
    case LILAC_SIMT_OP_FSQRT:
        return !approximate ? 8 : flushes ? 1 : 4;
    case LILAC_SIMT_OP_FRCP:
        return approximate && flushes ? 1 : 8;
    case LILAC_SIMT_OP_FDIV:
        return !approximate ? 10 : divides_by_uniform(e, i) ? 2 : 6;
    default:
        return 1;
    }
}

/* A pair of halves is packed by the instruction that rounds them, if that is one. */
static double pack_slots(const lilac_explanation *e, const lilac_simt_instruction *i) {
    if (bits_of(e, i->operands[0]) >= 32) {
        return 0;
    }
    const lilac_simt_instruction *made = e->kernel->values[i->operands[0]].definition;
    const bool rounded = made != NULL && made->code == LILAC_SIMT_OP_FCVT;
    return rounded ? 0.5 * (i->operand_count - 1u) : i->operand_count - 1u;
}

/* A load that a predicate guards has its results set before. */
static double load_slots(const lilac_explanation *e, const lilac_simt_instruction *i) {
    const bool guarded =
        i->operand_count > 1 && e->kernel->values[i->operands[1]].type == LILAC_SIMT_I1;
    const double words = i->result_count * bits_of(e, i->result) / 32.0;
    return 1 + (!guarded ? 0 : words < 2 ? 1 : words / 2);
}

/* Issue slots of a warp's scheduler that one instruction takes as machine code: moves between
 * whole registers take none; arithmetic of 64 bits takes two, and divisions take many. */
double explain_slots(const lilac_explanation *e, const lilac_simt_instruction *i) {
    const bool wide = i->result_count > 0 && bits_of(e, i->result) == 64;
    if (!explain_is_issued(i)) {
        return 0;
    }
    switch (i->code) {
    case LILAC_SIMT_OP_BITCAST:
    case LILAC_SIMT_OP_TRUNC:
    case LILAC_SIMT_OP_ZEXT:
    case LILAC_SIMT_OP_OPAQUE:
        return 0;
    case LILAC_SIMT_OP_PACK:
        return pack_slots(e, i);
    case LILAC_SIMT_OP_LD_GLOBAL:
        return load_slots(e, i);
    case LILAC_SIMT_OP_S2F:
    case LILAC_SIMT_OP_U2F: /* narrow integers are extended */
        return bits_of(e, i->operands[0]) < 32 ? 2 : 1;
    case LILAC_SIMT_OP_FCVT:
        return bits_of(e, i->result) == 16 && bits_of(e, i->operands[0]) == 32 ? 0.5 : 1;
    case LILAC_SIMT_OP_UNPACK:
        return bits_of(e, i->result) >= 32 ? 0 : bits_of(e, i->result) == 8 ? i->result_count : 1;
    case LILAC_SIMT_OP_DIV_S:
    case LILAC_SIMT_OP_DIV_U:
    case LILAC_SIMT_OP_REM_S:
    case LILAC_SIMT_OP_REM_U:
        return wide ? 80 : 18;
    case LILAC_SIMT_OP_MUL:
        return wide ? 4 : 1;
    case LILAC_SIMT_OP_ADD:
    case LILAC_SIMT_OP_SUB:
    case LILAC_SIMT_OP_SHL:
    case LILAC_SIMT_OP_SELECT:
        return wide ? 2 : 1;
    case LILAC_SIMT_OP_AND:
    case LILAC_SIMT_OP_OR:
    case LILAC_SIMT_OP_XOR: /* comparisons combine predicates */
        return wide ? 2 : bits_of(e, i->result) == 1 ? 0 : 1;
    case LILAC_SIMT_OP_CMP: /* integers of 16 bits are extended */
        return bits_of(e, i->operands[0]) == 16 && !is_float(e, i->operands[0]) ? 3
               : bits_of(e, i->operands[0]) == 64                               ? 2
                                                                                : 1;
    default:
        return function_slots(e, i);
    }
}

static bool is_extreme(const lilac_simt_instruction *i) {
    return i->code == LILAC_SIMT_OP_FMIN || i->code == LILAC_SIMT_OP_FMAX;
}

/* Comparisons, minima and maxima have the rate of integers, also of floats (CUDA C++ programming
 * guide, throughput of arithmetic). */
bool explain_is_integer(const lilac_simt_instruction *i) {
    const lilac_explain_class class_ = explain_class_of(i);
    return class_ == LILAC_EXPLAIN_INTEGER || class_ == LILAC_EXPLAIN_CONVERT ||
           class_ == LILAC_EXPLAIN_MOVE || is_extreme(i);
}

/* Does the special function unit execute it? It also converts between integers and floats. */
bool explain_is_special(const lilac_explanation *e, const lilac_simt_instruction *i) {
    switch (i->code) {
    case LILAC_SIMT_OP_FDIV:
        return !divides_by_uniform(e, i);
    case LILAC_SIMT_OP_S2F:
    case LILAC_SIMT_OP_U2F:
    case LILAC_SIMT_OP_F2S:
    case LILAC_SIMT_OP_F2U:
        return true;
    default:
        return explain_class_of(i) == LILAC_EXPLAIN_SPECIAL;
    }
}

/* ---- counters ----------------------------------------------------------------------------- */

/* Each warpgroup reads rows of 32 bytes: those of B and, if A is in shared memory, those of A. */
static uint64_t wgmma_bytes(const lilac_simt_matrix_payload *m) {
    return UINT64_C(32) * (m->n + (m->registers ? 0u : 64u));
}

static void count_matrix(lilac_explain_counts *c, const lilac_simt_instruction *i, uint64_t warps) {
    if (i->code == LILAC_SIMT_OP_MMA) {
        c->mmas += warps;
        return;
    }
    c->wgmmas += warps;
    c->wgmma_cycles += warps / 4 * lilac_wgmma_cycles(i->payload.matrix.n);
    c->wgmma_bytes += warps / 4 * wgmma_bytes(&i->payload.matrix);
}

static void count_instruction(lilac_explain_counts *c, const lilac_simt_instruction *i,
                              uint64_t warps) {
    switch (i->code) {
    case LILAC_SIMT_OP_MMA:
    case LILAC_SIMT_OP_WGMMA:
        count_matrix(c, i, warps);
        break;
    case LILAC_SIMT_OP_SHUFFLE:
        c->shuffles += warps;
        break;
    case LILAC_SIMT_OP_BALLOT:
    case LILAC_SIMT_OP_VOTE:
    case LILAC_SIMT_OP_MATCH:
        c->votes += warps;
        break;
    case LILAC_SIMT_OP_SELECT:
        c->selects += warps;
        break;
    case LILAC_SIMT_OP_PRMT:
        c->permutes += warps;
        break;
    case LILAC_SIMT_OP_BARRIER:
        c->barriers++;
        break;
    case LILAC_SIMT_OP_WARP_BARRIER:
        c->warp_barriers += warps;
        break;
    case LILAC_SIMT_OP_GROUP_BARRIER:
        c->group_barriers += warps;
        break;
    case LILAC_SIMT_OP_CLUSTER_BARRIER:
        c->cluster_barriers++;
        break;
    default:
        break;
    }
}

/* mma.sync feeds the tensor cores at 5/8 of the rate of wgmma on Hopper
 * (bench/results/h200_dots.md). */
double explain_mma_rate(const lilac_explanation *e) {
    return lilac_arch_has(e->compilation.target.arch, LILAC_HAS_WGMMA) ? 0.625 : 1;
}

/* Clocks of the tensor cores of a multiprocessor. */
static double tensor_clocks(const lilac_explanation *e, const lilac_simt_instruction *i,
                            uint64_t warps) {
    const lilac_simt_matrix_payload *m = &i->payload.matrix;
    if (i->code == LILAC_SIMT_OP_WGMMA) {
        return (double)(warps / 4 * lilac_wgmma_cycles(m->n));
    }
    if (i->code != LILAC_SIMT_OP_MMA) {
        return 0;
    }
    const double bits = lilac_matrix_type_bits((lilac_matrix_type)m->a);
    return (double)warps * m->m * m->n * m->k * bits / (16 * 2048 * explain_mma_rate(e));
}

static bool accesses_memory(const lilac_simt_instruction *i) {
    const uint32_t traits = lilac_simt_op_info_get((lilac_simt_opcode)i->code)->traits;
    return (traits & (LILAC_SIMT_GLOBAL | LILAC_SIMT_SHARED)) && !(traits & LILAC_SIMT_MBARRIER);
}

static void count_accesses(explain_emitted *emitted, const lilac_simt_instruction *i) {
    emitted->accesses += accesses_memory(i);
    emitted->loads += i->code == LILAC_SIMT_OP_LD_SHARED || i->code == LILAC_SIMT_OP_LD_CLUSTER ||
                      i->code == LILAC_SIMT_OP_LD_MATRIX;
    emitted->stores += i->code == LILAC_SIMT_OP_ST_SHARED || i->code == LILAC_SIMT_OP_ST_CLUSTER ||
                       i->code == LILAC_SIMT_OP_ST_MATRIX;
}

uint32_t explain_segment_of(const lilac_explanation *e, const lilac_simt_instruction *i) {
    if (i->code != LILAC_SIMT_OP_LOOP && i->code != LILAC_SIMT_OP_WHILE) {
        return 0;
    }
    const uint32_t number = explain_number(e, i->location);
    for (uint32_t l = 0; l < e->loop_count && number > 0; l++) {
        if (e->loops[l].operation == number) {
            return l + 1;
        }
    }
    return 0;
}

/* Wavefronts of an atomic on shared memory whose addresses depend on data: the most of 32 lanes, at
 * random, in one of 32 banks. */
static const double CONFLICTS = 3.53;

typedef struct walk {
    lilac_explanation *e;
    uint32_t next; /* index of the next branch */
} walk;

/* Of a function, one slot is that of the special function unit, the others are arithmetic; of a
 * load, one is an access, the others are moves. */
static void add_slots(explain_segment *s, lilac_explain_class class_, bool special, double slots,
                      double issued) {
    const bool function = class_ == LILAC_EXPLAIN_SPECIAL, load = class_ == LILAC_EXPLAIN_GLOBAL;
    if (function || load) {
        const double own = function && !special ? 0 : issued;
        s->issue[function ? LILAC_EXPLAIN_FLOAT : LILAC_EXPLAIN_MOVE] += slots - own;
        slots = own;
    }
    s->issue[class_] += slots;
}

static void visit(walk *w, const lilac_simt_body *body, double weight, uint64_t warps,
                  uint32_t segment) {
    lilac_explanation *e = w->e;
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        const uint32_t number = explain_number(e, i->location);
        const explain_branch *branch = i->body_count > 0 ? &e->branches[w->next++] : NULL;
        const lilac_explain_class class_ = explain_class_of(i);
        double issued = explain_is_issued(i) ? weight : 0;
        if (number > 0) {
            lilac_explain_counts *counts = &e->operations[number - 1].counts;
            counts->instructions += issued > 0 || explain_is_issued(i) ? warps : 0;
            counts->issue[class_] += explain_is_issued(i) ? warps : 0;
            count_instruction(counts, i, warps);
            count_accesses(&e->emitted[number - 1], i);
            e->tensor[number - 1] += tensor_clocks(e, i, warps);
        }
        if (branch != NULL && (i->code == LILAC_SIMT_OP_LOOP || i->code == LILAC_SIMT_OP_WHILE)) {
            issued = i->code == LILAC_SIMT_OP_LOOP
                         ? (branch->entries + branch->taken[0]) / e->samples
                         : branch->taken[0] / e->samples; /* one for each test of the condition */
        }
        e->issue[class_] += issued * (double)warps;
        e->tensor_clocks += weight * tensor_clocks(e, i, warps);
        const uint32_t inside = explain_segment_of(e, i);
        add_slots(&e->segments[inside > 0 ? inside : segment], class_, explain_is_special(e, i),
                  (branch == NULL ? explain_slots(e, i) * weight : issued) * (double)warps,
                  issued * (double)warps);
        e->segments[segment].special += explain_is_special(e, i) ? weight * (double)warps : 0;
        e->segments[segment].tensor += weight * tensor_clocks(e, i, warps);
        e->segments[segment].extremes += is_extreme(i) ? weight * (double)warps : 0;
        if (i->code == LILAC_SIMT_OP_ATOMIC_SHARED) {
            e->segments[segment].shared += CONFLICTS * weight * (double)warps;
        }
        for (uint32_t b = 0; b < i->body_count; b++) {
            const lilac_simt_body *inner = i->bodies[b];
            const uint64_t own = inner->end_warp > 0 ? inner->end_warp - inner->first_warp : warps;
            visit(w, inner, branch->taken[b < 2 ? b : 1] / e->samples, own,
                  inside > 0 ? inside : segment);
        }
    }
}

/* ---- executions of operations ------------------------------------------------------------- */

static const explain_branch *branch_of(const lilac_explanation *e, uint32_t number,
                                       lilac_tile_opcode code) {
    const uint16_t wanted = code == LILAC_TILE_OP_SCF_FOR     ? LILAC_SIMT_OP_LOOP
                            : code == LILAC_TILE_OP_SCF_WHILE ? LILAC_SIMT_OP_WHILE
                                                              : LILAC_SIMT_OP_IF;
    for (uint32_t b = 0; b < e->branch_count; b++) {
        const explain_branch *branch = &e->branches[b];
        if (branch->instruction->code == wanted &&
            explain_number(e, branch->instruction->location) == number) {
            return branch;
        }
    }
    return NULL;
}

/* The index of a region that an operation is in. */
static uint32_t region_of(const lilac_tile_op *parent, const lilac_tile_op *op) {
    uint32_t r = 0;
    while (r + 1 < parent->region_count && parent->regions[r] != op->parent->parent) {
        r++;
    }
    return r;
}

static void find_executions(lilac_explanation *e) {
    for (uint32_t i = 0; i < e->count; i++) {
        const lilac_explain_operation *o = &e->operations[i];
        e->executions[i] = 1;
        e->certain[i] = true;
        if (o->parent == 0) {
            continue;
        }
        const lilac_tile_op *parent = e->operations[o->parent - 1].op;
        const bool control = lilac_tile_is_loop(parent) || parent->code == LILAC_TILE_OP_SCF_IF;
        const explain_branch *branch = control ? branch_of(e, o->parent, parent->code) : NULL;
        const uint32_t region = region_of(parent, o->op);
        e->executions[i] =
            branch != NULL ? branch->taken[region > 0] / e->samples : e->executions[o->parent - 1];
        e->certain[i] = e->certain[o->parent - 1] && (branch == NULL || branch->known);
    }
}

void explain_count_emitted(lilac_explanation *e) {
    walk w = {.e = e};
    find_executions(e);
    visit(&w, e->kernel->body, 1, e->kernel->num_warps, 0);
}
