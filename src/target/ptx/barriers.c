/* Programs, and the operations by which they meet: mbarriers and named barriers.
 *
 *   mbarrier.wait [%b + 8], (%parity)
 *
 *       $L_wait_3:
 *           mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %tp1, [%b+8], %parity;
 *           @!%tp1 bra $L_wait_3;
 *           bar.warp.sync 0xffffffff;
 *
 * mbarrier.try_wait may return false in some lanes and true in others, so that the loop's branch is
 * not uniform; the barrier of the warp makes the lanes converge again, as instructions with .aligned
 * require.
 *
 * Arrivals and waits have the scope of the block, in clusters, too: what a block learns from another
 * block's arrival is that its products have read a buffer, and what it does next is a tensor copy into
 * that buffer. Both are accesses of the asynchronous proxy, complete before the arrival and issued
 * behind the wait. Ordinary accesses to the memory of other blocks are ordered by barriers of the
 * cluster. The scope of the cluster would cost a fence of the device for each arrival, and for each
 * wait the contents of the first-level cache.
 */
#include "emit.h"

/* The operands behind address and predicate. */
typedef struct mbarrier_operands {
    lilac_ptx_piece place; /* "[%r1+8]" */
    lilac_ptx_piece value; /* count, bytes or parity; no bytes: none */
    bool never;            /* the predicate is false in every thread */
} mbarrier_operands;

static bool has_predicate(const lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    return i->operand_count > 1 && type_of(e, i->operands[1]) == LILAC_SIMT_I1;
}

/* Without the predicate. */
static mbarrier_operands take_values(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    const bool predicated = has_predicate(e, i);
    mbarrier_operands operands = {
        .place = lilac_ptx_concatenate(
            e, 3, (lilac_ptx_piece[]){PIECE("["), lilac_ptx_address(e, i), PIECE("]")})};
    if (i->operand_count > 1u + predicated) {
        operands.value = lilac_ptx_operand(e, i->operands[1 + predicated]);
    }
    return operands;
}

static mbarrier_operands take_operands(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    const bool predicated = has_predicate(e, i);
    mbarrier_operands operands = take_values(e, i);
    if (predicated && e->places[i->operands[1]].constant) {
        operands.never = !e->places[i->operands[1]].bits;
    } else if (predicated) {
        lilac_ptx_predicate(e, i->operands[1]);
    }
    return operands;
}

/* mnemonic [place] {, value}; with a sink "_" in front of both for arrivals. */
static void put_operation(lilac_ptx_emitter *e, const lilac_simt_instruction *i,
                          const char *mnemonic, bool arrives) {
    lilac_ptx_piece pieces[3];
    uint32_t count = 0;
    mbarrier_operands operands = take_operands(e, i);
    if (operands.never) {
        return;
    }
    if (arrives) {
        pieces[count++] = PIECE("_");
    }
    pieces[count++] = operands.place;
    if (operands.value.bytes) {
        pieces[count++] = operands.value;
    }
    lilac_ptx_begin(e, mnemonic);
    lilac_ptx_finish(e, count, pieces);
}

static void put_test(lilac_ptx_emitter *e, const char *mnemonic, lilac_ptx_piece done,
                     const mbarrier_operands *operands) {
    lilac_ptx_line3(e, mnemonic, done, operands->place, operands->value);
}

static const char try_wait[] = "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64";

static void wait(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    const bool constant = has_predicate(e, i) && e->places[i->operands[1]].constant;
    const bool predicated = has_predicate(e, i) && !constant;
    if (constant && !e->places[i->operands[1]].bits) {
        return;
    }
    uint32_t number = e->labels++;
    mbarrier_operands operands = take_values(e, i);
    lilac_ptx_piece done = lilac_ptx_temporary(e, LILAC_PTX_PREDICATE);
    if (predicated) {
        lilac_ptx_line2(e, "not.pred", done, lilac_ptx_operand(e, i->operands[1]));
    }
    lilac_ptx_label(e, "wait", number);
    if (predicated) {
        lilac_ptx_guard(e, done, true);
    }
    put_test(e, try_wait, done, &operands);
    lilac_ptx_guard(e, done, true);
    lilac_ptx_diverging_branch(e, "wait", number);
    lilac_ptx_line1(e, "bar.warp.sync", PIECE("0xffffffff"));
}

/* ---- programs, named barriers, registers --------------------------------------------------- */

/* The number of the warp from lane 0, so that ptxas finds it to be uniform:
 *
 *       shfl.sync.idx.b32 %w, %tid.x >> 5, 0, 0x1f, 0xffffffff;
 *       setp.ge.u32 %p, %w, 4;  @%p bra.uni $L_program_1;
 *       … warps 0 to 4
 *       bra.uni $L_programs_end_0;
 *   $L_program_1:
 *       … warps 4 to 12
 *   $L_programs_end_0:
 */
void lilac_ptx_programs(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    lilac_ptx_piece thread = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
    lilac_ptx_piece own = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
    lilac_ptx_piece warp = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
    uint32_t end = e->labels++;
    lilac_ptx_line2(e, "mov.u32", thread, PIECE("%tid.x"));
    lilac_ptx_line3(e, "shr.u32", own, thread, PIECE("5"));
    lilac_ptx_begin(e, "shfl.sync.idx.b32");
    lilac_ptx_finish(
        e, 5, (lilac_ptx_piece[]){warp, own, PIECE("0"), PIECE("0x1f"), PIECE("0xffffffff")});
    for (uint32_t k = 0; k < i->body_count && e->ok; k++) {
        const lilac_simt_body *body = i->bodies[k];
        uint32_t next = e->labels++;
        bool last = k + 1u == i->body_count;
        if (!last) {
            lilac_ptx_piece beyond = lilac_ptx_temporary(e, LILAC_PTX_PREDICATE);
            lilac_ptx_line3(e, "setp.ge.u32", beyond, warp, lilac_ptx_decimal(e, body->end_warp));
            lilac_ptx_guard(e, beyond, false);
            lilac_ptx_branch(e, "program", next);
        }
        lilac_ptx_body(e, body);
        if (!last) {
            lilac_ptx_branch(e, "programs_end", end);
            lilac_ptx_label(e, "program", next);
        }
    }
    lilac_ptx_label(e, "programs_end", end);
}

void lilac_ptx_named_barrier(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    lilac_ptx_line2(e, i->code == LILAC_SIMT_OP_NAMED_BARRIER_SYNC ? "bar.sync" : "bar.arrive",
                    lilac_ptx_decimal(e, i->detail), lilac_ptx_decimal(e, i->immediate));
}

void lilac_ptx_set_max_registers(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    lilac_ptx_line1(
        e, i->detail ? "setmaxnreg.inc.sync.aligned.u32" : "setmaxnreg.dec.sync.aligned.u32",
        lilac_ptx_decimal(e, i->immediate));
}

void lilac_ptx_elect(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    if (!lilac_arch_has(e->arch, LILAC_HAS_TMA)) {
        lilac_ptx_refuse(e, i, "%s has no elect", e->arch->name);
        return;
    }
    lilac_ptx_need(e, LILAC_PTX_MBARRIER);
    lilac_ptx_piece lane = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
    lilac_ptx_piece both = lilac_ptx_concatenate(
        e, 3, (lilac_ptx_piece[]){lane, PIECE("|"), lilac_ptx_define(e, i->result)});
    lilac_ptx_line2(e, "elect.sync", both, PIECE("0xffffffff"));
}

/* ---- mbarriers ----------------------------------------------------------------------------- */

void lilac_ptx_mbarrier(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    if (!lilac_arch_has(e->arch, LILAC_HAS_TMA)) {
        lilac_ptx_refuse(e, i, "%s has no %s", e->arch->name,
                         lilac_simt_op_info_get((lilac_simt_opcode)i->code)->name);
        return;
    }
    lilac_ptx_need(e, LILAC_PTX_MBARRIER);
    mbarrier_operands operands;
    switch (i->code) {
    case LILAC_SIMT_OP_MBARRIER_INIT:
        put_operation(e, i, "mbarrier.init.shared::cta.b64", false);
        return;
    case LILAC_SIMT_OP_MBARRIER_INVALIDATE:
        put_operation(e, i, "mbarrier.inval.shared::cta.b64", false);
        return;
    case LILAC_SIMT_OP_MBARRIER_ARRIVE:
        put_operation(e, i, "mbarrier.arrive.release.cta.shared::cta.b64", true);
        return;
    case LILAC_SIMT_OP_MBARRIER_ARRIVE_CLUSTER:
        put_operation(e, i, "mbarrier.arrive.release.cta.shared::cluster.b64", true);
        return;
    case LILAC_SIMT_OP_MBARRIER_EXPECT:
        put_operation(e, i, "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64", true);
        return;
    case LILAC_SIMT_OP_CP_ASYNC_MBARRIER_ARRIVE:
        put_operation(e, i, "cp.async.mbarrier.arrive.noinc.shared::cta.b64", false);
        return;
    case LILAC_SIMT_OP_FENCE_MBARRIER_INIT:
        lilac_ptx_begin(e, "fence.mbarrier_init.release.cluster;\n");
        return;
    case LILAC_SIMT_OP_MBARRIER_TRY_WAIT:
        operands = take_operands(e, i);
        put_test(e, try_wait, lilac_ptx_define(e, i->result), &operands);
        return;
    case LILAC_SIMT_OP_MBARRIER_TEST:
        operands = take_operands(e, i);
        put_test(e, "mbarrier.test_wait.parity.acquire.cta.shared::cta.b64",
                 lilac_ptx_define(e, i->result), &operands);
        return;
    default:
        wait(e, i);
        return;
    }
}
