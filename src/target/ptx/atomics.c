/* Atomic operations, votes, and reductions over the lanes of a warp.
 *
 *   %old = atomic.global add [%a], %p, (%v)      mov.b32 %old, 0;
 *                                                @%p atom.global.gpu.acq_rel.add.u32 %old, [%a], %v;
 *   atomic.global add [%a], (%v)                 atom.global.gpu.release.add.u32 _, [%a], %v;
 *   %old = cas.global [%a], (%c, %n)             atom.global.acq_rel.gpu.cas.b32 %old, [%a], %c, %n;
 *
 * The modifiers have the order in which Triton prints them: state space, scope, memory order; in a
 * compare-and-swap the memory order comes before the scope. An operation whose result is not used
 * has the destination _, or a register that no instruction reads. ptxas assembles both as it
 * assembles red.
 */
#include "emit.h"

static const char *const order_text[LILAC_SIMT_ORDER_COUNT] = {[LILAC_SIMT_RELAXED] = ".relaxed",
                                                               [LILAC_SIMT_ACQUIRE] = ".acquire",
                                                               [LILAC_SIMT_RELEASE] = ".release",
                                                               [LILAC_SIMT_ACQUIRE_RELEASE] =
                                                                   ".acq_rel"};
static const char *const scope_text[LILAC_SIMT_SCOPE_COUNT] = {[LILAC_SIMT_SCOPE_DEVICE] = ".gpu",
                                                               [LILAC_SIMT_SCOPE_BLOCK] = ".cta",
                                                               [LILAC_SIMT_SCOPE_SYSTEM] = ".sys"};

/* "add.noftz.f16x2" and so on, in three parts; NULL: there is none. */
static const char *operation(uint32_t kind, lilac_simt_type type, const char **suffix) {
    bool wide = lilac_simt_type_bits(type) == 64;
    *suffix = wide ? ".b64" : ".b32";
    switch (kind) {
    case LILAC_SIMT_ATOMIC_AND:
        return ".and";
    case LILAC_SIMT_ATOMIC_OR:
        return ".or";
    case LILAC_SIMT_ATOMIC_XOR:
        return ".xor";
    case LILAC_SIMT_ATOMIC_EXCHANGE:
        return ".exch";
    case LILAC_SIMT_ATOMIC_MIN_S:
        *suffix = wide ? ".s64" : ".s32";
        return ".min";
    case LILAC_SIMT_ATOMIC_MAX_S:
        *suffix = wide ? ".s64" : ".s32";
        return ".max";
    case LILAC_SIMT_ATOMIC_MIN_U:
        *suffix = wide ? ".u64" : ".u32";
        return ".min";
    case LILAC_SIMT_ATOMIC_MAX_U:
        *suffix = wide ? ".u64" : ".u32";
        return ".max";
    default:
        break;
    }
    switch (type) {
    case LILAC_SIMT_F16:
        *suffix = ".f16";
        return ".add.noftz";
    case LILAC_SIMT_BF16:
        *suffix = ".bf16";
        return ".add.noftz";
    case LILAC_SIMT_F16X2:
        *suffix = ".f16x2";
        return ".add.noftz";
    case LILAC_SIMT_BF16X2:
        *suffix = ".bf16x2";
        return ".add.noftz";
    case LILAC_SIMT_F32:
        *suffix = ".f32";
        return ".add";
    case LILAC_SIMT_F64:
        *suffix = ".f64";
        return ".add";
    default:
        *suffix = wide ? ".u64" : ".u32";
        return ".add";
    }
}

/* Old values of threads that do nothing. */
static void give_zeros(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    for (uint32_t k = 0; k < i->result_count; k++) {
        lilac_ptx_line2(e, lilac_ptx_mov(type_of(e, i->result + k)), e->places[i->result + k].text,
                        PIECE("0"));
    }
}

/* The instruction up to its operands: "atom.global.gpu.acq_rel.add.v2.f32". */
static void begin_atomic(lilac_ptx_emitter *e, const lilac_simt_instruction *i, uint32_t count,
                         lilac_simt_type type) {
    bool swaps = i->code == LILAC_SIMT_OP_CAS_GLOBAL;
    const char *suffix = "";
    const char *what = swaps ? ".cas" : operation(i->detail, type, &suffix);
    lilac_ptx_begin(e, i->code == LILAC_SIMT_OP_ATOMIC_SHARED ? "atom.shared" : "atom.global");
    put_string(&e->code, swaps ? order_text[i->order] : scope_text[i->scope]);
    put_string(&e->code, swaps ? scope_text[i->scope] : order_text[i->order]);
    put_string(&e->code, what);
    if (swaps) {
        put_string(&e->code, ".b");
        lilac_ptx_put_unsigned(&e->code, lilac_simt_type_bits(type));
    }
    if (count > 1) {
        put_string(&e->code, count == 2 ? ".v2" : ".v4");
    }
    put_string(&e->code, suffix);
}

void lilac_ptx_atomic(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    bool swaps = i->code == LILAC_SIMT_OP_CAS_GLOBAL;
    bool predicated = i->operand_count > 1 && type_of(e, i->operands[1]) == LILAC_SIMT_I1;
    const lilac_simt_value *values = i->operands + 1 + predicated;
    uint32_t count = swaps ? 1 : i->operand_count - 1u - predicated;
    lilac_simt_type type = type_of(e, values[0]);
    bool bfloat = type == LILAC_SIMT_BF16 || type == LILAC_SIMT_BF16X2;
    if ((count > 1 && e->arch->capability < 90) ||
        (bfloat && !swaps && !lilac_arch_has(e->arch, LILAC_HAS_BF16_ATOMICS))) {
        lilac_ptx_refuse(e, i, "%s has no atomics of %s%s", e->arch->name,
                         count > 1 ? "vectors of " : "", lilac_simt_type_name(type));
        return;
    }
    if (count > 1) {
        lilac_ptx_need(e, LILAC_PTX_VECTOR_ATOMICS);
    }
    lilac_ptx_piece olds[4], elements[4];
    for (uint32_t k = 0; k < i->result_count; k++) {
        olds[k] = lilac_ptx_define(e, i->result + k);
    }
    if (predicated && e->places[i->operands[1]].constant) {
        if (!e->places[i->operands[1]].bits) {
            give_zeros(e, i);
            return;
        }
        predicated = false;
    }
    for (uint32_t k = 0; k < count; k++) {
        elements[k] = lilac_ptx_register(e, values[swaps + k]);
    }
    lilac_ptx_piece compare = swaps ? lilac_ptx_register(e, values[0]) : PIECE("");
    lilac_ptx_piece place = lilac_ptx_concatenate(
        e, 3, (lilac_ptx_piece[]){PIECE("["), lilac_ptx_address(e, i), PIECE("]")});
    /* ptxas 12 and 13 crash on additions of bf16 with no destination. */
    bool nowhere = i->result_count == 0 && (swaps || !bfloat);
    for (uint32_t k = 0; k < count && !nowhere && i->result_count == 0; k++) {
        olds[k] = lilac_ptx_temporary(e, lilac_ptx_class_of(type));
    }
    if (predicated) {
        give_zeros(e, i);
        lilac_ptx_guard(e, lilac_ptx_register(e, i->operands[1]), false);
    }
    begin_atomic(e, i, count, type);
    lilac_ptx_piece operands[4];
    uint32_t n = 0;
    operands[n++] = nowhere ? PIECE("_") : count > 1 ? lilac_ptx_tuple(e, count, olds) : olds[0];
    operands[n++] = place;
    if (swaps) {
        operands[n++] = compare;
    }
    operands[n++] = count > 1 ? lilac_ptx_tuple(e, count, elements) : elements[0];
    lilac_ptx_finish(e, n, operands);
}

void lilac_ptx_vote(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    static const char *const reductions[] = {[LILAC_SIMT_ATOMIC_AND] = "redux.sync.and.b32",
                                             [LILAC_SIMT_ATOMIC_OR] = "redux.sync.or.b32",
                                             [LILAC_SIMT_ATOMIC_XOR] = "redux.sync.xor.b32",
                                             [LILAC_SIMT_ATOMIC_ADD] = "redux.sync.add.u32",
                                             [LILAC_SIMT_ATOMIC_MIN_S] = "redux.sync.min.s32",
                                             [LILAC_SIMT_ATOMIC_MAX_S] = "redux.sync.max.s32",
                                             [LILAC_SIMT_ATOMIC_MIN_U] = "redux.sync.min.u32",
                                             [LILAC_SIMT_ATOMIC_MAX_U] = "redux.sync.max.u32"};
    const char *mnemonic = i->code == LILAC_SIMT_OP_MATCH ? "match.any.sync.b32"
                           : i->code == LILAC_SIMT_OP_VOTE
                               ? (i->detail == 1 ? "vote.sync.all.pred" : "vote.sync.any.pred")
                               : reductions[i->detail];
    lilac_ptx_piece a = lilac_ptx_register(e, i->operands[0]);
    lilac_ptx_line3(e, mnemonic, lilac_ptx_define(e, i->result), a, PIECE("0xffffffff"));
}
