/* Rules of memory accesses, asynchronous copies, atomics, barriers of groups and mbarriers.
 *
 *   access     1, 2 or 4 elements of at least 8 bits, at most arch->vector_bytes in all
 *   cp.async   4, 8 or 16 bytes, aligned to their number
 *   atomic     the operation exists for the type; several elements only for float additions
 *   interval   only an access to shared memory has one, and it is not empty
 *   mbarrier   8 bytes, aligned to 8; counts from 1 to 2^20 - 1 */
#include "verify/verify.h"

typedef lilac_simt_instruction instruction;

#define fail lilac_simt_verify_fail

/* ---- loads, stores and copies ----------------------------------------------------------- */

void lilac_simt_verify_access(verifier *v, const instruction *i) {
    bool load = lilac_simt_is_load(i->code);
    bool predicated = has_predicate(v, i);
    uint32_t values = i->operand_count - 1u - predicated;
    uint32_t count = load ? i->result_count : values;
    const lilac_arch *arch = v->module->arch;
    if (load && values != 0 && !predicated) {
        fail(v, "simt-access-others", "%s has %u substitute values and no predicate; they need one",
             operation_name(i), values);
        return;
    }
    if (load && values != 0 && values != count) {
        fail(v, "simt-access-others", "%s has %u substitute values; its %u results need %u",
             operation_name(i), values, count, count);
        return;
    }
    if (count != 1 && count != 2 && count != 4) {
        fail(v, "simt-access-size", "%s accesses %u elements; 1, 2 or 4 are allowed",
             operation_name(i), count);
        return;
    }
    lilac_simt_type type = type_of(v, load ? i->result : i->operands[i->operand_count - count]);
    uint32_t bits = lilac_simt_type_bits(type);
    if (bits < 8) {
        fail(v, "simt-access-size", "%s accesses elements of %u bit; at least 8 bits are needed",
             operation_name(i), bits);
    } else if (arch != NULL && bits * count > 8 * arch->vector_bytes) {
        fail(v, "simt-access-size", "%s accesses %u x %s, %u bytes; %s allows at most %u",
             operation_name(i), count, lilac_simt_type_name(type), bits * count / 8, arch->name,
             arch->vector_bytes);
    }
}

/* Constant numbers of bytes and constant addresses are checked; others are the program's duty. */
void lilac_simt_verify_copy(verifier *v, const instruction *i) {
    bool predicated = has_predicate(v, i);
    uint32_t size = i->detail;
    uint64_t bytes = 0;
    if (size != 4 && size != 8 && size != 16) {
        fail(v, "simt-copy", "cp.async copies %u bytes; 4, 8 or 16 are allowed", size);
    } else if (i->evict != 0 || i->flags != 0 ||
               (i->cache != LILAC_SIMT_CACHE_NONE && i->cache != LILAC_SIMT_CACHE_CA &&
                (i->cache != LILAC_SIMT_CACHE_CG || size != 16))) {
        fail(v, "simt-copy",
             "cp.async of %u bytes has a modifier that does not exist for it; cache = ca%s is "
             "allowed",
             size, size == 16 ? " or cg" : "");
    } else if (i->operand_count == 3u + predicated &&
               lilac_simt_constant_bits(v->kernel, i->operands[2u + predicated], &bytes) &&
               bytes > size) {
        fail(v, "simt-copy", "operand %u, the bytes to read, is %llu; at most %u are allowed",
             3u + predicated, (unsigned long long)bytes, size);
    } else if (lilac_simt_constant_bits(v->kernel, i->operands[0], &bytes) &&
               (bytes + (uint64_t)i->immediate) % size != 0) {
        fail(v, "simt-copy",
             "the shared address %llu of cp.async is not a multiple of its %u bytes",
             (unsigned long long)(bytes + (uint64_t)i->immediate), size);
    }
}

void lilac_simt_verify_wait(verifier *v, const instruction *i) {
    if (i->immediate < 0 || i->immediate > INT32_MAX) {
        fail(v, "simt-wait", "groups of %s is %lld; 0 to %d are allowed", operation_name(i),
             (long long)i->immediate, INT32_MAX);
    }
}

/* ---- atomics ---------------------------------------------------------------------------- */

/* The operation, the order and the scope are numbers of their enumerations. */
static bool check_atomic_modifiers(verifier *v, const instruction *i, bool swaps) {
    bool ok = true;
    if (i->order >= LILAC_SIMT_ORDER_COUNT) {
        fail(v, "simt-detail", "the memory order of %s is %u; 0 to %d are allowed",
             operation_name(i), i->order, LILAC_SIMT_ORDER_COUNT - 1);
        ok = false;
    }
    if (i->scope >= LILAC_SIMT_SCOPE_COUNT) {
        fail(v, "simt-detail", "the scope of %s is %u; 0 to %d are allowed", operation_name(i),
             i->scope, LILAC_SIMT_SCOPE_COUNT - 1);
        ok = false;
    }
    if (!swaps && i->detail >= LILAC_SIMT_ATOMIC_COUNT) {
        fail(v, "simt-detail", "the operation of %s is %u; 0 to %d are allowed", operation_name(i),
             i->detail, LILAC_SIMT_ATOMIC_COUNT - 1);
        ok = false;
    }
    return ok;
}

static void check_atomic_type(verifier *v, const instruction *i, lilac_simt_type type) {
    uint32_t bits = lilac_simt_type_bits(type);
    bool swaps = i->code == LILAC_SIMT_OP_CAS_GLOBAL;
    bool is_float = lilac_simt_type_is_float(type);
    bool word = bits == 32 || bits == 64;
    bool adds = i->detail == LILAC_SIMT_ATOMIC_ADD;
    bool bitwise = i->detail <= LILAC_SIMT_ATOMIC_XOR || i->detail == LILAC_SIMT_ATOMIC_EXCHANGE;
    if (swaps && !word && bits != 16) {
        fail(v, "simt-operand-type", "cas.global of %s; types of 16, 32 and 64 bits are allowed",
             lilac_simt_type_name(type));
    } else if (!swaps && !(word ? adds || bitwise || !is_float : adds && is_float)) {
        fail(v, "simt-operand-type", "%s %s of %s; %s are allowed", operation_name(i),
             lilac_simt_atomic_names[i->detail], lilac_simt_type_name(type),
             adds      ? "types of 32 and 64 bits and floats of 16 bits"
             : bitwise ? "types of 32 and 64 bits"
                       : "integers of 32 and 64 bits");
    }
}

void lilac_simt_verify_atomic(verifier *v, const instruction *i) {
    bool swaps = i->code == LILAC_SIMT_OP_CAS_GLOBAL;
    bool predicated = has_predicate(v, i);
    uint32_t count = i->operand_count - 1u - predicated, results = swaps ? 1 : count;
    if (!check_atomic_modifiers(v, i, swaps)) {
        return;
    }
    if (count == 0) {
        fail(v, "simt-operand-count", "%s has no values; 1, 2 or 4 are allowed", operation_name(i));
        return;
    }
    if (i->result_count != 0 && i->result_count != results) {
        fail(v, "simt-operand-count", "%s has %u results; 0 or %u are allowed", operation_name(i),
             i->result_count, results);
        return;
    }
    lilac_simt_type type = type_of(v, i->operands[1 + predicated]);
    uint32_t bits = lilac_simt_type_bits(type);
    check_atomic_type(v, i, type);
    if (!swaps && count != 1 &&
        ((count != 2 && count != 4) || i->detail != LILAC_SIMT_ATOMIC_ADD ||
         i->code != LILAC_SIMT_OP_ATOMIC_GLOBAL || !lilac_simt_type_is_float(type) ||
         bits * count > 128 || bits > 32)) {
        fail(v, "simt-access-size",
             "%s %s of %u x %s; several elements are 2 or 4 floats of at most 32 bits, at most 16 "
             "bytes in all, which atomic.global adds",
             operation_name(i), lilac_simt_atomic_names[i->detail], count,
             lilac_simt_type_name(type));
    }
}

/* ---- shared memory ---------------------------------------------------------------------- */

void lilac_simt_verify_interval(verifier *v, const instruction *i) {
    bool annotated = i->shared_begin != 0 || i->shared_end != 0 || i->shared_partition != 0;
    /* A group barrier has a partition of warps and no interval. */
    bool partitions_only = i->code == LILAC_SIMT_OP_GROUP_BARRIER && i->shared_end == 0;
    if (!annotated || partitions_only) {
        return;
    }
    if (!lilac_simt_is_shared_access(i->code) && i->code != LILAC_SIMT_OP_WGMMA) {
        fail(v, "simt-interval",
             "%s has an interval or partition of shared memory, which it does not access",
             operation_name(i));
    } else if ((i->shared_begin != 0 || i->shared_end != 0) && i->shared_begin >= i->shared_end) {
        fail(v, "simt-interval", "the interval of %s, bytes %u to %u, is empty", operation_name(i),
             i->shared_begin, i->shared_end);
    }
}

/* ---- barriers --------------------------------------------------------------------------- */

void lilac_simt_verify_group_barrier(verifier *v, const instruction *i) {
    enum { GROUPS = 15 };
    const lilac_arch *arch = v->module->arch;
    int64_t warp = arch != NULL ? arch->warp_size : 32;
    int64_t threads = warp * v->kernel->num_warps;
    uint64_t number = 0;
    if (i->immediate <= 0 || i->immediate % warp != 0 || threads % i->immediate != 0) {
        fail(v, "simt-group",
             "group_barrier has groups of %lld threads; a multiple of %lld that divides the "
             "block's %lld threads is allowed",
             (long long)i->immediate, (long long)warp, (long long)threads);
    } else if (threads / i->immediate > GROUPS) {
        fail(v, "simt-group",
             "group_barrier has %lld groups of %lld threads; at most %d groups are "
             "allowed",
             (long long)(threads / i->immediate), (long long)i->immediate, GROUPS);
    } else if (i->shared_partition != 0 && i->shared_partition >= v->kernel->num_warps) {
        fail(v, "simt-group",
             "the partition of group_barrier is 0x%x; bits of warps 0 to %u are "
             "allowed",
             i->shared_partition, v->kernel->num_warps - 1);
    } else if (i->shared_partition != 0 &&
               i->immediate << __builtin_popcount(i->shared_partition) != threads) {
        fail(v, "simt-group",
             "group_barrier has groups of %lld threads; the partition 0x%x makes groups of %lld",
             (long long)i->immediate, i->shared_partition,
             (long long)(threads >> __builtin_popcount(i->shared_partition)));
    } else if (lilac_simt_constant_bits(v->kernel, i->operands[0], &number) && number >= GROUPS) {
        fail(v, "simt-group", "the group of group_barrier is %llu; 0 to %d are allowed",
             (unsigned long long)number, GROUPS - 1);
    }
}

/* Alignment and counts are checked where they are constants. The operands of a wait are uniform. */
void lilac_simt_verify_mbarrier(verifier *v, const instruction *i) {
    enum { OBJECT = 8, MOST = (1 << 20) - 1 };
    uint64_t bits = 0;
    bool waits = i->code == LILAC_SIMT_OP_MBARRIER_WAIT ||
                 i->code == LILAC_SIMT_OP_MBARRIER_TRY_WAIT ||
                 i->code == LILAC_SIMT_OP_MBARRIER_TEST;
    bool predicated = has_predicate(v, i);
    bool counts = i->operand_count > 1u + predicated && !waits;
    if (lilac_simt_constant_bits(v->kernel, i->operands[0], &bits) &&
        (bits + (uint64_t)i->immediate) % OBJECT != 0) {
        fail(v, "simt-mbarrier", "the address %llu of the mbarrier is not a multiple of %d",
             (unsigned long long)bits + (unsigned long long)i->immediate, OBJECT);
    }
    if (counts && lilac_simt_constant_bits(v->kernel, i->operands[1 + predicated], &bits) &&
        (bits == 0 || bits > MOST)) {
        fail(v, "simt-mbarrier", "operand %u of %s is %llu; 1 to %d are allowed", 2u + predicated,
             operation_name(i), (unsigned long long)bits, MOST);
    }
    if (waits) {
        lilac_simt_verify_uniform(v, i->operands[0], "operand 1, the address of the mbarrier,");
        lilac_simt_verify_uniform(v, i->operands[1 + predicated],
                                  predicated ? "operand 3, the parity," : "operand 2, the parity,");
    }
}
