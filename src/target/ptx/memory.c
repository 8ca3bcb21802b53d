/* Loads and stores, exchanges between threads, barriers and assertions.
 *
 * A predicated load leaves its results alone in inactive threads, so what these get is moved there
 * first:
 *
 *   %a, %b = ld.global %p [%pred] others %x, %y      mov.b32 %a, %x; mov.b32 %b, %y;
 *                                                    @%pred ld.global.v2.b32 {%a, %b}, [%p];
 *
 * A failed assertion ends in __assertfail, which tells the host the message and the line; its
 * block stands behind the kernel's last return.
 */
#include "emit.h"

static const char *const cache_text[] = {"", ".ca", ".cg", ".cs", ".cv", ".wb", ".wt"};
static const char *const evict_text[] = {"", ".L1::evict_first.L2::cache_hint",
                                         ".L1::evict_last.L2::cache_hint"};

/* ---- eviction policies ------------------------------------------------------------------ */

/* An eviction priority concerns both levels of cache. The first level's is a modifier; the second
 * level's is a policy in a register, which the kernel's first lines create once:
 *
 *   createpolicy.fractional.L2::evict_first.b64 %evict_first, 1.0;
 *   …
 *   ld.global.L1::evict_first.L2::cache_hint.b32 %r1, [%rd1], %evict_first;
 *
 * A policy of constant operands is in uniform registers and occupies no register of a thread. */
static const char *const policy_registers[] = {
    [LILAC_SIMT_EVICT_FIRST] = "%evict_first",
    [LILAC_SIMT_EVICT_LAST] = "%evict_last",
};

void lilac_ptx_put_policies(lilac_ptx_emitter *e) {
    static const char *const created[] = {
        [LILAC_SIMT_EVICT_FIRST] = "\t.reg .b64 %evict_first;\n"
                                   "\tcreatepolicy.fractional.L2::evict_first.b64 %evict_first, "
                                   "1.0;\n",
        [LILAC_SIMT_EVICT_LAST] = "\t.reg .b64 %evict_last;\n"
                                  "\tcreatepolicy.fractional.L2::evict_last.b64 %evict_last, "
                                  "1.0;\n",
    };
    for (int k = LILAC_SIMT_EVICT_FIRST; k <= LILAC_SIMT_EVICT_LAST; k++) {
        if (e->policies & 1u << k) {
            lilac_text_puts(e->out, created[k]);
        }
    }
}

/* The eviction priority that the access has in PTX. ".volatile", a cache operator and an eviction
 * priority exclude each other there. A cache operator that only names the default gives way to an
 * eviction priority; any other wins over it. */
static unsigned eviction(const lilac_simt_instruction *i) {
    bool is_default = i->cache == LILAC_SIMT_CACHE_NONE || i->cache == LILAC_SIMT_CACHE_CA ||
                      i->cache == LILAC_SIMT_CACHE_WB;
    bool global = i->code == LILAC_SIMT_OP_LD_GLOBAL || i->code == LILAC_SIMT_OP_ST_GLOBAL;
    return global && is_default && !(i->flags & LILAC_SIMT_VOLATILE) ? i->evict
                                                                     : LILAC_SIMT_EVICT_NORMAL;
}

static bool put_modifiers(lilac_ptx_emitter *e, const lilac_simt_instruction *i, bool load) {
    if (i->flags & LILAC_SIMT_VOLATILE) { /* already in the mnemonic */
        return true;
    }
    unsigned loads = 1u << LILAC_SIMT_CACHE_CA | 1u << LILAC_SIMT_CACHE_CG |
                     1u << LILAC_SIMT_CACHE_CS | 1u << LILAC_SIMT_CACHE_CV;
    unsigned stores = 1u << LILAC_SIMT_CACHE_WB | 1u << LILAC_SIMT_CACHE_CG |
                      1u << LILAC_SIMT_CACHE_CS | 1u << LILAC_SIMT_CACHE_WT;
    if (i->cache > LILAC_SIMT_CACHE_WT || i->evict > LILAC_SIMT_EVICT_LAST ||
        (i->cache && !((load ? loads : stores) >> i->cache & 1))) {
        return false;
    }
    const unsigned evict = eviction(i);
    if (evict != LILAC_SIMT_EVICT_NORMAL) {
        lilac_ptx_need(e, load ? LILAC_PTX_EVICT_LOAD : LILAC_PTX_EVICT_STORE);
        e->policies |= 1u << evict;
    }
    put_string(&e->code, evict ? evict_text[evict] : cache_text[i->cache]);
    return true;
}

/* ---- loads and stores ------------------------------------------------------------------- */

/* "[%rd1+16]". */
lilac_ptx_piece lilac_ptx_offset(lilac_ptx_emitter *e, lilac_simt_value address, int64_t offset) {
    lilac_ptx_piece base = lilac_ptx_register(e, address);
    bool global = type_of(e, address) == LILAC_SIMT_I64;
    if (global && (offset < INT32_MIN || offset > INT32_MAX)) {
        lilac_ptx_piece sum = lilac_ptx_temporary(e, LILAC_PTX_BITS64);
        lilac_ptx_line3(e, "add.s64", sum, base, lilac_ptx_decimal(e, offset));
        base = sum;
        offset = 0;
    }
    if (!offset) {
        return base;
    }
    lilac_ptx_piece amount = lilac_ptx_decimal(e, global ? offset : (int32_t)offset);
    return lilac_ptx_concatenate(e, 3, (lilac_ptx_piece[]){base, PIECE("+"), amount});
}

lilac_ptx_piece lilac_ptx_address(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    return lilac_ptx_offset(e, i->operands[0], i->immediate);
}

static void put_access(lilac_ptx_emitter *e, const lilac_simt_instruction *i, bool load,
                       uint32_t count, const lilac_ptx_piece *elements, uint32_t bits,
                       lilac_ptx_piece place, const lilac_simt_value *predicate) {
    if (predicate) {
        lilac_ptx_guard(e, lilac_ptx_register(e, *predicate), false);
    }
    bool global = i->code == LILAC_SIMT_OP_LD_GLOBAL || i->code == LILAC_SIMT_OP_ST_GLOBAL;
    bool cluster = i->code == LILAC_SIMT_OP_LD_CLUSTER || i->code == LILAC_SIMT_OP_ST_CLUSTER;
    lilac_ptx_begin(e, load ? "ld" : "st");
    if (i->flags & LILAC_SIMT_VOLATILE) {
        put_string(&e->code, ".volatile");
    }
    put_string(&e->code, global ? ".global" : cluster ? ".shared::cluster" : ".shared");
    if (global && !put_modifiers(e, i, load)) {
        lilac_ptx_refuse(e, i, "%s has no such cache modifier of a %s", e->arch->name,
                         load ? "load" : "store");
        return;
    }
    if (count > 1) {
        put_string(&e->code, ".v");
        lilac_ptx_put_unsigned(&e->code, count);
    }
    put_string(&e->code, ".b");
    lilac_ptx_put_unsigned(&e->code, bits);
    put_char(&e->code, ' ');
    lilac_ptx_buffer *code = &e->code;
    for (int side = 0; side < 2; side++) {
        if (side == load) {
            put_char(code, '[');
            put_piece(code, place);
            put_char(code, ']');
        } else {
            if (count > 1) {
                put_char(code, '{');
            }
            for (uint32_t k = 0; k < count; k++) {
                put_bytes(code, ", ", k ? 2 : 0);
                put_piece(code, elements[k]);
            }
            if (count > 1) {
                put_char(code, '}');
            }
        }
        put_string(code, side == 0 ? ", " : "");
    }
    const unsigned evict = eviction(i);
    if (evict != LILAC_SIMT_EVICT_NORMAL) {
        put_string(code, ", ");
        put_string(code, policy_registers[evict]);
    }
    put_string(code, ";\n");
}

static bool legal_access(lilac_ptx_emitter *e, const lilac_simt_instruction *i, uint32_t count,
                         uint32_t bits) {
    bool global = i->code == LILAC_SIMT_OP_LD_GLOBAL || i->code == LILAC_SIMT_OP_ST_GLOBAL;
    uint32_t widest = global && e->arch->vector_bytes > 16 ? e->arch->vector_bytes : 16;
    bool legal = (count == 1 || count == 2 || count == 4 || (count == 8 && bits == 32)) &&
                 bits >= 8 && count * bits / 8 <= widest;
    if (!legal) {
        lilac_ptx_refuse(e, i, "%s has no access of %u elements of %u bits", e->arch->name, count,
                         bits);
    }
    return legal;
}

static void load(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    lilac_simt_type type = type_of(e, i->result);
    uint32_t count = i->result_count, bits = lilac_simt_type_bits(type);
    if (!legal_access(e, i, count, bits)) {
        return;
    }
    const lilac_simt_value *predicate = i->operand_count > 1 ? &i->operands[1] : NULL;
    const lilac_simt_value *others = i->operand_count > 2 ? i->operands + 2 : NULL;
    bool never = false;
    if (predicate && e->places[*predicate].constant) {
        never = !e->places[*predicate].bits;
        predicate = never ? predicate : NULL;
    }
    lilac_ptx_piece elements[8];
    lilac_ptx_piece place = never ? PIECE("") : lilac_ptx_address(e, i);
    for (uint32_t k = 0; k < count; k++) {
        elements[k] = lilac_ptx_define(e, i->result + k);
        if (predicate) {
            lilac_ptx_line2(e, lilac_ptx_mov(type), elements[k],
                            others ? lilac_ptx_bits(e, others[k]) : PIECE("0"));
        }
    }
    if (!never) {
        put_access(e, i, true, count, elements, bits, place, predicate);
    }
}

static void store(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    uint32_t first = i->operand_count > 1 && type_of(e, i->operands[1]) == LILAC_SIMT_I1 ? 2 : 1;
    const lilac_simt_value *predicate = first == 2 ? &i->operands[1] : NULL;
    uint32_t count = i->operand_count - first;
    uint32_t bits = count ? lilac_simt_type_bits(type_of(e, i->operands[first])) : 0;
    if (!legal_access(e, i, count, bits)) {
        return;
    }
    if (predicate && e->places[*predicate].constant) {
        if (!e->places[*predicate].bits) {
            return;
        }
        predicate = NULL;
    }
    lilac_ptx_piece elements[8];
    lilac_ptx_piece place = lilac_ptx_address(e, i);
    for (uint32_t k = 0; k < count; k++) {
        elements[k] = lilac_ptx_register(e, i->operands[first + k]);
    }
    put_access(e, i, false, count, elements, bits, place, predicate);
}

void lilac_ptx_memory(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    if (i->code == LILAC_SIMT_OP_LD_GLOBAL || i->code == LILAC_SIMT_OP_LD_SHARED ||
        i->code == LILAC_SIMT_OP_LD_CLUSTER) {
        load(e, i);
    } else {
        store(e, i);
    }
}

/* A predicate is the same in all lanes of the warp, so the whole warp runs or skips the line. */
void lilac_ptx_matrix(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    bool load = i->code == LILAC_SIMT_OP_LD_MATRIX;
    bool predicated = !load && i->operand_count > 1 && type_of(e, i->operands[1]) == LILAC_SIMT_I1;
    uint32_t first = 1u + predicated;
    uint32_t count = load ? i->result_count : i->operand_count - first;
    if ((count != 1 && count != 2 && count != 4) || i->detail > 1 ||
        !lilac_arch_has(e->arch, load ? LILAC_HAS_LDMATRIX : LILAC_HAS_STMATRIX)) {
        lilac_ptx_refuse(e, i, "%s has no such access of %u matrices", e->arch->name, count);
        return;
    }
    if (predicated && e->places[i->operands[1]].constant) {
        if (!e->places[i->operands[1]].bits) {
            return;
        }
        predicated = false;
    }
    lilac_ptx_piece words[4];
    lilac_ptx_piece place = lilac_ptx_concatenate(
        e, 3, (lilac_ptx_piece[]){PIECE("["), lilac_ptx_address(e, i), PIECE("]")});
    for (uint32_t k = 0; k < count; k++) {
        words[k] = load ? lilac_ptx_define(e, i->result + k)
                        : lilac_ptx_register(e, i->operands[first + k]);
    }
    lilac_ptx_piece tuple = lilac_ptx_tuple(e, count, words);
    if (predicated) {
        lilac_ptx_guard(e, lilac_ptx_register(e, i->operands[1]), false);
    }
    lilac_ptx_begin(e, load ? "ldmatrix" : "stmatrix");
    put_string(&e->code, ".sync.aligned.m8n8.x");
    lilac_ptx_put_unsigned(&e->code, count);
    put_string(&e->code, i->detail ? ".trans.shared.b16" : ".shared.b16");
    lilac_ptx_finish(e, 2,
                     load ? (lilac_ptx_piece[]){tuple, place} : (lilac_ptx_piece[]){place, tuple});
}

/* ---- asynchronous copies ---------------------------------------------------------------- */

static lilac_ptx_piece bracketed(lilac_ptx_emitter *e, lilac_ptx_piece place) {
    return lilac_ptx_concatenate(e, 3, (lilac_ptx_piece[]){PIECE("["), place, PIECE("]")});
}

/* cp.async.ca.shared.global [to], [from], size {, bytes to read}; */
static void start_copy(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    bool predicated = type_of(e, i->operands[1]) == LILAC_SIMT_I1;
    const lilac_simt_value *rest = i->operands + 1 + predicated;
    uint32_t count = i->operand_count - 1u - predicated;
    if (predicated && e->places[i->operands[1]].constant) {
        if (!e->places[i->operands[1]].bits) {
            return;
        }
        predicated = false;
    }
    lilac_ptx_piece operands[4];
    operands[0] = bracketed(e, lilac_ptx_address(e, i));
    operands[1] = bracketed(e, lilac_ptx_offset(e, rest[0], i->payload.copy.source));
    operands[2] = lilac_ptx_decimal(e, i->detail);
    if (count > 1) {
        operands[3] = lilac_ptx_operand(e, rest[1]);
    }
    if (predicated) {
        lilac_ptx_guard(e, lilac_ptx_register(e, i->operands[1]), false);
    }
    lilac_ptx_begin(e, i->cache == LILAC_SIMT_CACHE_CG ? "cp.async.cg.shared.global"
                                                       : "cp.async.ca.shared.global");
    lilac_ptx_finish(e, 2 + count, operands);
}

void lilac_ptx_copy(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    if (!lilac_arch_has(e->arch, LILAC_HAS_CP_ASYNC)) {
        lilac_ptx_refuse(e, i, "%s has no asynchronous copies", e->arch->name);
        return;
    }
    switch (i->code) {
    case LILAC_SIMT_OP_CP_ASYNC:
        start_copy(e, i);
        return;
    case LILAC_SIMT_OP_CP_ASYNC_COMMIT:
        lilac_ptx_begin(e, "cp.async.commit_group;\n");
        return;
    case LILAC_SIMT_OP_CP_ASYNC_WAIT:
        lilac_ptx_line1(e, "cp.async.wait_group", lilac_ptx_decimal(e, i->immediate));
        return;
    default:
        lilac_ptx_begin(e, "cp.async.wait_all;\n");
        return;
    }
}

void lilac_ptx_map_shared(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    if (!lilac_arch_has(e->arch, LILAC_HAS_CLUSTERS)) {
        lilac_ptx_refuse(e, i, "%s has no clusters", e->arch->name);
        return;
    }
    lilac_ptx_piece own = lilac_ptx_register(e, i->operands[0]);
    lilac_ptx_piece rank = lilac_ptx_operand(e, i->operands[1]);
    lilac_ptx_line3(e, "mapa.shared::cluster.u32", lilac_ptx_define(e, i->result), own, rank);
}

/* ---- exchanges and barriers ------------------------------------------------------------- */

void lilac_ptx_exchange(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    switch (i->code) {
    case LILAC_SIMT_OP_BARRIER:
        lilac_ptx_line1(e, "bar.sync", PIECE("0"));
        return;
    case LILAC_SIMT_OP_WARP_BARRIER:
    case LILAC_SIMT_OP_SCHEDULE_ACCESSES:
        lilac_ptx_line1(e, "bar.warp.sync", PIECE("0xffffffff"));
        return;
    case LILAC_SIMT_OP_GROUP_BARRIER: {
        const lilac_ptx_place *number = &e->places[i->operands[0]];
        lilac_ptx_piece barrier;
        if (number->constant) { /* barrier 0 is the whole block's */
            barrier = lilac_ptx_decimal(e, (int64_t)number->bits + 1);
        } else {
            barrier = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
            lilac_ptx_line3(e, "add.s32", barrier, number->text, PIECE("1"));
        }
        lilac_ptx_line2(e, "bar.sync", barrier, lilac_ptx_decimal(e, i->immediate));
        return;
    }
    case LILAC_SIMT_OP_CLUSTER_BARRIER:
        if (!lilac_arch_has(e->arch, LILAC_HAS_CLUSTERS)) {
            lilac_ptx_refuse(e, i, "%s has no clusters", e->arch->name);
            return;
        }
        lilac_ptx_need(e, LILAC_PTX_CLUSTER_BARRIER);
        lilac_ptx_begin(e, "barrier.cluster.arrive.release.aligned;\n");
        lilac_ptx_begin(e, "barrier.cluster.wait.acquire.aligned;\n");
        return;
    case LILAC_SIMT_OP_BALLOT: {
        lilac_ptx_piece p = lilac_ptx_register(e, i->operands[0]);
        lilac_ptx_line3(e, "vote.sync.ballot.b32", lilac_ptx_define(e, i->result), p,
                        PIECE("0xffffffff"));
        return;
    }
    default:
        break;
    }
    static const char *const kinds[] = {[LILAC_SIMT_SHFL_IDX] = "shfl.sync.idx.b32",
                                        [LILAC_SIMT_SHFL_XOR] = "shfl.sync.bfly.b32",
                                        [LILAC_SIMT_SHFL_UP] = "shfl.sync.up.b32",
                                        [LILAC_SIMT_SHFL_DOWN] = "shfl.sync.down.b32"};
    if (i->detail > LILAC_SIMT_SHFL_DOWN) {
        lilac_ptx_refuse(e, i, "%s has no such shuffle", e->arch->name);
        return;
    }
    lilac_ptx_piece a = lilac_ptx_register(e, i->operands[0]);
    lilac_ptx_piece lane = lilac_ptx_operand(e, i->operands[1]);
    /* The clamp is the last lane, or the first when values come from below. */
    lilac_ptx_piece clamp = i->detail == LILAC_SIMT_SHFL_UP ? PIECE("0x0") : PIECE("0x1f");
    lilac_ptx_begin(e, kinds[i->detail]);
    lilac_ptx_finish(
        e, 5,
        (lilac_ptx_piece[]){lilac_ptx_define(e, i->result), a, lane, clamp, PIECE("0xffffffff")});
}

/* ---- assertions ------------------------------------------------------------------------- */

void lilac_ptx_declare_string(lilac_ptx_emitter *e, const char *kind, uint32_t number,
                              const char *string) {
    lilac_ptx_buffer *head = &e->head;
    size_t length = strlen(string) + 1;
    lilac_ptx_append(head, ".global .align 1 .b8 ");
    lilac_ptx_append(head, kind);
    lilac_ptx_append_unsigned(head, number);
    lilac_ptx_append(head, "[");
    lilac_ptx_append_unsigned(head, length);
    lilac_ptx_append(head, "] = {");
    for (size_t k = 0; k < length; k++) {
        lilac_ptx_append(head, k ? ", " : "");
        lilac_ptx_append_unsigned(head, (uint8_t)string[k]);
    }
    lilac_ptx_append(head, "};\n");
}

void lilac_ptx_pass_string(lilac_ptx_emitter *e, const char *kind, uint32_t number,
                           uint32_t argument) {
    lilac_ptx_piece global = lilac_ptx_temporary(e, LILAC_PTX_BITS64);
    lilac_ptx_piece generic = lilac_ptx_temporary(e, LILAC_PTX_BITS64);
    lilac_ptx_begin(e, "mov.b64 ");
    put_piece(&e->code, global);
    put_string(&e->code, ", ");
    put_string(&e->code, kind);
    lilac_ptx_put_unsigned(&e->code, number);
    put_string(&e->code, ";\n");
    lilac_ptx_line2(e, "cvta.global.u64", generic, global);
    lilac_ptx_begin(e, "st.param.b64 [argument");
    lilac_ptx_put_unsigned(&e->code, argument);
    put_string(&e->code, "], ");
    put_piece(&e->code, generic);
    put_string(&e->code, ";\n");
}

void lilac_ptx_assert(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    static const char *const message = "assert_message_", *const file_name = "assert_file_",
                             *const function = "assert_function_";
    const lilac_ptx_place *condition = &e->places[i->operands[0]];
    if (condition->constant && condition->bits) {
        return;
    }
    if (i->text != NULL && i->text[0] == '\0') {
        lilac_ptx_guard(e, lilac_ptx_register(e, i->operands[0]), true);
        lilac_ptx_begin(e, "trap;\n");
        return;
    }
    if (!e->assertions) {
        lilac_ptx_append(&e->head, ".extern .func __assertfail\n(\n"
                                   "\t.param .b64 __assertfail_message,\n"
                                   "\t.param .b64 __assertfail_file,\n"
                                   "\t.param .b32 __assertfail_line,\n"
                                   "\t.param .b64 __assertfail_function,\n"
                                   "\t.param .b64 __assertfail_char_bytes\n"
                                   ")\n.noreturn;\n");
    }
    lilac_name file = "unknown";
    uint32_t line = 0, column = 0;
    if (!lilac_location_file(e->module->context, i->location, &file, &line, &column)) {
        file = "unknown";
    }
    lilac_ptx_declare_string(e, message, e->assertions, i->text ? i->text : "assertion failed");
    lilac_ptx_declare_string(e, file_name, e->assertions, file);
    lilac_ptx_declare_string(e, function, e->assertions, e->kernel->name);

    lilac_ptx_piece failed = lilac_ptx_register(e, i->operands[0]);
    lilac_ptx_guard(e, failed, true);
    lilac_ptx_begin(e, "bra $L_assert_");
    lilac_ptx_put_unsigned(&e->code, e->assertions);
    put_string(&e->code, ";\n");

    lilac_ptx_buffer in_line = e->code;
    e->code = e->out_of_line;
    lilac_ptx_label(e, "assert", e->assertions);
    lilac_ptx_append(&e->code, "\t{\n\t.param .b64 argument0;\n\t.param .b64 argument1;\n"
                               "\t.param .b32 argument2;\n\t.param .b64 argument3;\n"
                               "\t.param .b64 argument4;\n");
    lilac_ptx_pass_string(e, message, e->assertions, 0);
    lilac_ptx_pass_string(e, file_name, e->assertions, 1);
    lilac_ptx_line2(e, "st.param.b32", PIECE("[argument2]"), lilac_ptx_decimal(e, line));
    lilac_ptx_pass_string(e, function, e->assertions, 3);
    lilac_ptx_line2(e, "st.param.b64", PIECE("[argument4]"), PIECE("1"));
    lilac_ptx_append(&e->code, "\tcall __assertfail, (argument0, argument1, argument2, argument3, "
                               "argument4);\n\t}\n\ttrap;\n");
    e->out_of_line = e->code;
    e->code = in_line;
    e->assertions++;
}
