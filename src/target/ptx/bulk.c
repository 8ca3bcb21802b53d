/* The async proxy in PTX: bulk copies, their groups and fences (PTX ISA 8.0, sm_90).
 *
 *     cp.bulk.store [%s], %p, (%g, %n)   @%p cp.async.bulk.global.shared::cta.bulk_group [%g], [%s], %n;
 *     cp.tensor.load [%s], (%m, %x, %b)  cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::…
 *                                            [%s], [%m, {%x}], [%b];
 *     cp.tensor.load … {multicast}       cp.async.bulk.tensor.….multicast::cluster …, %mask of 16 bits;
 *     bulk.commit                        cp.async.bulk.commit_group;
 *     bulk.wait_read {groups = 1}        cp.async.bulk.wait_group.read 1;
 *     fence.proxy_async shared           fence.proxy.async.shared::cta;
 *
 * Copies that follow each other under one predicate, and the announcements of their bytes, are under one
 * branch instead:
 *
 *         @!%p bra $L_copies_end_1;
 *         mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%b], 32768;
 *         cp.async.bulk.tensor.2d.… [%s], [%m, {%x, %y}], [%b];
 *     $L_copies_end_1:
 *         bar.warp.sync 0xffffffff;
 *
 * The operands of such a copy are in uniform registers. ptxas computes those of a predicated copy in registers
 * of the threads and moves each of them, in all warps (a loop with 5 copies: 117 machine instructions, under a
 * branch 82, which only one warp executes in full). The barrier of the warp makes its lanes converge again, as
 * instructions with .aligned require.
 */
#include "emit.h"

static void fence(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    static const char *const kinds[LILAC_SIMT_FENCE_COUNT] = {
        "fence.proxy.async.shared::cta;\n", "fence.proxy.async.global;\n", "fence.proxy.async;\n"};
    lilac_ptx_begin(e, kinds[i->detail]);
}

static lilac_ptx_piece bracketed(lilac_ptx_emitter *e, lilac_ptx_piece place) {
    return lilac_ptx_concatenate(e, 3, (lilac_ptx_piece[]){PIECE("["), place, PIECE("]")});
}

/* Writes the predicate. False: the copy never starts. */
static bool guard(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    const lilac_ptx_place *predicate = &e->places[i->operands[1]];
    if (type_of(e, i->operands[1]) != LILAC_SIMT_I1) {
        return true;
    }
    if (predicate->constant) {
        return predicate->bits != 0;
    }
    lilac_ptx_predicate(e, i->operands[1]);
    return true;
}

/* ---- copies that one thread starts --------------------------------------------------------- */

/* The predicate in a register under which one thread starts a copy or announces its bytes; 0: none. */
static lilac_simt_value predicate_of(const lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    const lilac_simt_value predicate = lilac_simt_copy_predicate(e->kernel, i);
    return predicate != 0 && !e->places[predicate].constant ? predicate : 0;
}

void lilac_ptx_before_copies(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    const lilac_simt_value predicate = e->branched == 0 ? predicate_of(e, i) : 0;
    const lilac_simt_instruction *last = NULL;
    for (const lilac_simt_instruction *at = i; predicate != 0 && predicate_of(e, at) == predicate;
         at = at->next) {
        last = at->code != LILAC_SIMT_OP_MBARRIER_EXPECT || last != NULL ? at : NULL;
    }
    if (last != NULL) {
        e->branch = e->labels++;
        lilac_ptx_guard(e, lilac_ptx_register(e, predicate), true);
        lilac_ptx_diverging_branch(e, "copies_end", e->branch);
        e->branched = predicate;
        e->branch_last = last;
    }
}

void lilac_ptx_after_copies(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    if (e->branched != 0 && i == e->branch_last) {
        lilac_ptx_label(e, "copies_end", e->branch);
        lilac_ptx_line1(e, "bar.warp.sync", PIECE("0xffffffff"));
        e->branched = 0;
    }
}

/* ---- the instructions ----------------------------------------------------------------------- */

/* "add.noftz.bf16": what a reduction does, and on which elements. */
static void put_reduction(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    static const char *const kinds[LILAC_SIMT_ATOMIC_COUNT] = {
        [LILAC_SIMT_ATOMIC_AND] = ".and.b",   [LILAC_SIMT_ATOMIC_OR] = ".or.b",
        [LILAC_SIMT_ATOMIC_XOR] = ".xor.b",   [LILAC_SIMT_ATOMIC_ADD] = ".add.u",
        [LILAC_SIMT_ATOMIC_MIN_S] = ".min.s", [LILAC_SIMT_ATOMIC_MAX_S] = ".max.s",
        [LILAC_SIMT_ATOMIC_MIN_U] = ".min.u", [LILAC_SIMT_ATOMIC_MAX_U] = ".max.u"};
    switch (i->scalar) {
    case LILAC_F16:
        put_string(&e->code, ".add.noftz.f16");
        return;
    case LILAC_BF16:
        put_string(&e->code, ".add.noftz.bf16");
        return;
    case LILAC_F32:
        put_string(&e->code, ".add.f32");
        return;
    case LILAC_F64:
        put_string(&e->code, ".add.f64");
        return;
    default:
        put_string(&e->code, kinds[i->detail]);
        put_string(&e->code, i->scalar == LILAC_I64 ? "64" : "32");
        return;
    }
}

static void store(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    bool predicated = type_of(e, i->operands[1]) == LILAC_SIMT_I1;
    const lilac_simt_value *rest = i->operands + 1 + predicated;
    lilac_ptx_piece operands[3] = {
        bracketed(e, lilac_ptx_offset(e, rest[0], i->payload.bulk.global)),
        bracketed(e, lilac_ptx_address(e, i)), lilac_ptx_operand(e, rest[1])};
    if (!guard(e, i)) {
        return;
    }
    if (i->code == LILAC_SIMT_OP_CP_BULK_STORE) {
        lilac_ptx_begin(e, "cp.async.bulk.global.shared::cta.bulk_group");
    } else {
        lilac_ptx_begin(e, "cp.reduce.async.bulk.global.shared::cta.bulk_group");
        put_reduction(e, i);
    }
    lilac_ptx_finish(e, 3, operands);
}

static void load(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    bool predicated = type_of(e, i->operands[1]) == LILAC_SIMT_I1;
    const lilac_simt_value *rest = i->operands + 1 + predicated;
    lilac_ptx_piece operands[4] = {
        bracketed(e, lilac_ptx_address(e, i)),
        bracketed(e, lilac_ptx_offset(e, rest[0], i->payload.bulk.global)),
        lilac_ptx_operand(e, rest[1]),
        bracketed(e, lilac_ptx_offset(e, rest[2], i->payload.bulk.mbarrier))};
    if (!guard(e, i)) {
        return;
    }
    lilac_ptx_begin(e, "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes");
    lilac_ptx_finish(e, 4, operands);
}

/* "[%rd1, {%r1, 0}]": the map and the coordinates. */
static lilac_ptx_piece box_of(lilac_ptx_emitter *e, const lilac_simt_value *map, uint32_t rank) {
    lilac_ptx_piece coordinates[5];
    for (uint32_t k = 0; k < rank; k++) {
        coordinates[k] = lilac_ptx_operand(e, map[1 + k]);
    }
    return lilac_ptx_concatenate(
        e, 5,
        (lilac_ptx_piece[]){PIECE("["), lilac_ptx_register(e, map[0]), PIECE(", "),
                            lilac_ptx_tuple(e, rank, coordinates), PIECE("]")});
}

/* The mask of a multicast, an i32, as the 16 bits that PTX needs. */
static lilac_ptx_piece mask_of(lilac_ptx_emitter *e, lilac_simt_value mask) {
    lilac_ptx_piece bits = lilac_ptx_temporary(e, LILAC_PTX_BITS16);
    if (e->places[mask].constant) {
        lilac_ptx_line2(e, "mov.b16", bits, lilac_ptx_decimal(e, (int64_t)e->places[mask].bits));
    } else {
        lilac_ptx_line2(e, "cvt.u16.u32", bits, lilac_ptx_register(e, mask));
    }
    return bits;
}

static void tensor_load(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    bool predicated = type_of(e, i->operands[1]) == LILAC_SIMT_I1;
    bool multicast = i->payload.bulk.multicast;
    uint32_t rank = i->operand_count - 3u - predicated - multicast;
    const lilac_simt_value *map = i->operands + 1 + predicated;
    lilac_ptx_piece operands[4] = {
        bracketed(e, lilac_ptx_address(e, i)), box_of(e, map, rank),
        bracketed(e, lilac_ptx_offset(e, map[1 + rank], i->payload.bulk.mbarrier))};
    if (multicast) {
        operands[3] = mask_of(e, map[2 + rank]);
    }
    if (!guard(e, i)) {
        return;
    }
    lilac_ptx_begin(e, "cp.async.bulk.tensor.");
    lilac_ptx_put_unsigned(&e->code, rank);
    put_string(&e->code, "d.shared::cluster.global.mbarrier::complete_tx::bytes");
    if (multicast) {
        put_string(&e->code, ".multicast::cluster");
    }
    lilac_ptx_finish(e, multicast ? 4 : 3, operands);
}

/* cp.tensor.store and cp.tensor.reduce. */
static void tensor_store(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    static const char *const reductions[] = {
        [LILAC_SIMT_ATOMIC_AND] = "d.global.shared::cta.and.bulk_group",
        [LILAC_SIMT_ATOMIC_OR] = "d.global.shared::cta.or.bulk_group",
        [LILAC_SIMT_ATOMIC_XOR] = "d.global.shared::cta.xor.bulk_group",
        [LILAC_SIMT_ATOMIC_ADD] = "d.global.shared::cta.add.bulk_group",
        [LILAC_SIMT_ATOMIC_MIN_S] = "d.global.shared::cta.min.bulk_group",
        [LILAC_SIMT_ATOMIC_MAX_S] = "d.global.shared::cta.max.bulk_group",
        [LILAC_SIMT_ATOMIC_MIN_U] = "d.global.shared::cta.min.bulk_group",
        [LILAC_SIMT_ATOMIC_MAX_U] = "d.global.shared::cta.max.bulk_group"};
    bool predicated = type_of(e, i->operands[1]) == LILAC_SIMT_I1;
    bool reduces = i->code == LILAC_SIMT_OP_CP_TENSOR_REDUCE;
    uint32_t rank = i->operand_count - 2u - predicated;
    lilac_ptx_piece shared = bracketed(e, lilac_ptx_address(e, i));
    lilac_ptx_piece box = box_of(e, i->operands + 1 + predicated, rank);
    if (!guard(e, i)) {
        return;
    }
    lilac_ptx_begin(e, reduces ? "cp.reduce.async.bulk.tensor." : "cp.async.bulk.tensor.");
    lilac_ptx_put_unsigned(&e->code, rank);
    put_string(&e->code, reduces ? reductions[i->detail] : "d.global.shared::cta.bulk_group");
    lilac_ptx_finish(e, 2, (lilac_ptx_piece[]){box, shared});
}

bool lilac_ptx_tensor_map(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    if (!e->kernel->parameters[i->immediate].is_tensor_map) {
        return false;
    }
    lilac_ptx_piece place = lilac_ptx_temporary(e, LILAC_PTX_BITS64);
    lilac_ptx_need(e, LILAC_PTX_ASYNC_PROXY);
    lilac_ptx_line2(
        e, "mov.b64", place,
        lilac_ptx_concatenate(
            e, 2, (lilac_ptx_piece[]){PIECE("parameter_"), lilac_ptx_decimal(e, i->immediate)}));
    lilac_ptx_line2(e, "cvta.param.u64", lilac_ptx_define(e, i->result), place);
    return true;
}

void lilac_ptx_bulk(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    if (!lilac_arch_has(e->arch, LILAC_HAS_TMA)) {
        lilac_ptx_refuse(e, i, "%s has no %s", e->arch->name,
                         lilac_simt_op_info_get((lilac_simt_opcode)i->code)->name);
        return;
    }
    lilac_ptx_need(e, LILAC_PTX_ASYNC_PROXY);
    switch (i->code) {
    case LILAC_SIMT_OP_CP_BULK_STORE:
    case LILAC_SIMT_OP_CP_BULK_REDUCE:
        store(e, i);
        return;
    case LILAC_SIMT_OP_CP_BULK_LOAD:
        load(e, i);
        return;
    case LILAC_SIMT_OP_CP_TENSOR_LOAD:
        tensor_load(e, i);
        return;
    case LILAC_SIMT_OP_CP_TENSOR_STORE:
    case LILAC_SIMT_OP_CP_TENSOR_REDUCE:
        tensor_store(e, i);
        return;
    case LILAC_SIMT_OP_BULK_COMMIT:
        lilac_ptx_begin(e, "cp.async.bulk.commit_group;\n");
        return;
    case LILAC_SIMT_OP_BULK_WAIT:
        lilac_ptx_line1(e, "cp.async.bulk.wait_group", lilac_ptx_decimal(e, i->immediate));
        return;
    case LILAC_SIMT_OP_BULK_WAIT_READ:
        lilac_ptx_line1(e, "cp.async.bulk.wait_group.read", lilac_ptx_decimal(e, i->immediate));
        return;
    case LILAC_SIMT_OP_PREFETCH_TENSOR_MAP:
        lilac_ptx_line1(e, "prefetch.tensormap",
                        bracketed(e, lilac_ptx_register(e, i->operands[0])));
        return;
    default:
        fence(e, i);
        return;
    }
}
