/* SIMT IR before and after each pass computes the same thing.
 *
 * A seeded generator writes kernels as text: every pure operation on operands of troublesome
 * values, loops (also of no and of one iteration), ifs, whiles, predicated loads and stores,
 * shuffles and votes. Each runs on the simulator as written and after each pass, and after all of
 * them, and must leave the same bytes in memory. No-wrap flags are set where a range that the
 * generator keeps proves them. A NaN's bits are nobody's promise, so floats are stored with NaN
 * replaced and never looked at as integers. Contraction changes results by definition and has a
 * test of its own. */
#include <lilac/sim.h>

#include "support/test.h"

/* Bytes of a thread: SLOT of the input and of shared memory, OUT of the output. */
enum { THREADS = 64, SLOT = 128, OUT = 512, KERNELS = 100, POOL = 4096 };

/* ---- the generator ---------------------------------------------------------------------- */

/* A value in reach: its number in the text, its type, and, when known, the range it is in. */
typedef struct item {
    uint32_t name;
    lilac_simt_type type;
    bool ranged, uniform;
    int64_t low, high;
} item;

typedef struct generator {
    lilac_text *out;
    lilac_random random;
    item pool[POOL];
    uint32_t count;
    uint32_t next;
    uint32_t depth;
    uint32_t lanes; /* of a warp: 32 or 64 */
} generator;

static const char *name_of(lilac_simt_type type) {
    return lilac_simt_type_name(type);
}

static item *add_item(generator *g, lilac_simt_type type) {
    assert_true(g->count < POOL);
    item *i = &g->pool[g->count++];
    *i = (item){.name = g->next++, .type = type};
    return i;
}

static uint64_t troublesome(generator *g, lilac_simt_type type) {
    static const double numbers[] = {0, -0.0, 1, -1, 2, 0.5, 4, -8, 3, 1e-7, 65504, 1e30, -1.0 / 3};
    static const int64_t integers[] = {0,         1,         -1,        2,   3,  4,  7,
                                       8,         16,        31,        32,  64, -8, INT32_MAX,
                                       INT32_MIN, INT64_MAX, INT64_MIN, 255, 128};
    static const lilac_scalar scalars[LILAC_SIMT_TYPE_COUNT] = {[LILAC_SIMT_F16] = LILAC_F16,
                                                                [LILAC_SIMT_BF16] = LILAC_BF16,
                                                                [LILAC_SIMT_F32] = LILAC_F32,
                                                                [LILAC_SIMT_F64] = LILAC_F64};
    if (lilac_simt_type_is_float(type)) {
        double x = numbers[random_below(&g->random, sizeof numbers / sizeof numbers[0])];
        return lilac_scalar_encode(scalars[type], x, LILAC_ROUND_NEAREST_EVEN, false);
    }
    uint64_t x =
        random_below(&g->random, 3) == 0
            ? lilac_random_next(&g->random)
            : (uint64_t)integers[random_below(&g->random, sizeof integers / sizeof integers[0])];
    uint32_t bits = lilac_simt_type_bits(type);
    return bits == 64 ? x : x & (((uint64_t)1 << bits) - 1);
}

static item *constant(generator *g, lilac_simt_type type, uint64_t bits) {
    item *i = add_item(g, type);
    if (type == LILAC_SIMT_I1) {
        lilac_text_printf(g->out, "%%%u = const %s : i1\n", i->name, bits & 1 ? "true" : "false");
    } else {
        lilac_text_printf(g->out, "%%%u = const 0x%llX : %s\n", i->name, (unsigned long long)bits,
                          name_of(type));
    }
    i->uniform = true;
    if (type == LILAC_SIMT_I32) {
        i->ranged = true;
        i->low = i->high = (int32_t)bits;
    } else if (type == LILAC_SIMT_I64 && (int64_t)bits == (int32_t)bits) {
        i->ranged = true;
        i->low = i->high = (int64_t)bits;
    }
    return i;
}

/* Some value of the type: one in reach, or now and then a new constant. */
static item pick(generator *g, lilac_simt_type type) {
    if (random_below(&g->random, 4) != 0) {
        for (uint32_t tries = 0; tries < 60 && g->count > 0; tries++) {
            uint32_t from = random_below(&g->random, 3) == 0 || g->count < 30 ? 0 : g->count - 30;
            const item *i = &g->pool[from + random_below(&g->random, g->count - from)];
            if (i->type == type) {
                return *i;
            }
        }
    }
    return *constant(g, type, troublesome(g, type));
}

static item pick_ranged(generator *g, lilac_simt_type type) {
    for (uint32_t tries = 0; tries < 60; tries++) {
        const item *i = &g->pool[random_below(&g->random, g->count)];
        if (i->type == type && i->ranged) {
            return *i;
        }
    }
    return *constant(g, type, random_below(&g->random, 200));
}

static item pick_uniform_truth(generator *g) {
    for (uint32_t tries = 0; tries < 60; tries++) {
        const item *i = &g->pool[random_below(&g->random, g->count)];
        if (i->type == LILAC_SIMT_I1 && i->uniform) {
            return *i;
        }
    }
    return *constant(g, LILAC_SIMT_I1, random_below(&g->random, 2));
}

static lilac_simt_type any_integer(generator *g) {
    static const lilac_simt_type types[] = {LILAC_SIMT_I32, LILAC_SIMT_I32, LILAC_SIMT_I64,
                                            LILAC_SIMT_I16, LILAC_SIMT_I8};
    return types[random_below(&g->random, 5)];
}

static lilac_simt_type any_float(generator *g) {
    static const lilac_simt_type types[] = {LILAC_SIMT_F32, LILAC_SIMT_F32, LILAC_SIMT_F16,
                                            LILAC_SIMT_BF16, LILAC_SIMT_F64};
    return types[random_below(&g->random, 5)];
}

static lilac_simt_type any_type(generator *g) {
    return random_below(&g->random, 3) == 0 ? any_float(g) : any_integer(g);
}

#define EMIT(...) lilac_text_printf(g->out, __VA_ARGS__)

static item *unary(generator *g, const char *op, item a, lilac_simt_type type) {
    item *r = add_item(g, type);
    EMIT("%%%u = %s %%%u : %s\n", r->name, op, a.name, name_of(type));
    r->uniform = a.uniform;
    return r;
}

static item *binary(generator *g, const char *op, item a, item c, lilac_simt_type type) {
    item *r = add_item(g, type);
    EMIT("%%%u = %s %%%u, %%%u : %s\n", r->name, op, a.name, c.name, name_of(type));
    r->uniform = a.uniform && c.uniform;
    return r;
}

/* A sum, product or shift of ranged numbers that stays small, with the promises that are true. */
static void ranged_operation(generator *g) {
    static const int64_t limit = 1 << 30;
    lilac_simt_type type = random_below(&g->random, 2) ? LILAC_SIMT_I32 : LILAC_SIMT_I64;
    item a = pick_ranged(g, type);
    item c = random_below(&g->random, 3) == 0 ? *constant(g, type, random_below(&g->random, 40))
                                              : pick_ranged(g, type);
    uint32_t kind = random_below(&g->random, 4);
    int64_t corners[4];
    int64_t x[2] = {a.low, a.high};
    int64_t y[2] = {c.low, c.high};
    if (kind == 2 && (c.low < 0 || c.high > 20)) {
        kind = 0;
    }
    for (uint32_t k = 0; k < 4; k++) {
        int64_t p = x[k & 1], q = y[k >> 1];
        corners[k] = kind == 0   ? p + q
                     : kind == 1 ? (llabs(p) < 40000 && llabs(q) < 20000 ? p * q : 2 * limit)
                     : kind == 2 ? (llabs(p) < 1000 ? p * ((int64_t)1 << q) : 2 * limit)
                                 : p - q;
    }
    int64_t low = corners[0], high = corners[0];
    for (uint32_t k = 1; k < 4; k++) {
        low = corners[k] < low ? corners[k] : low;
        high = corners[k] > high ? corners[k] : high;
    }
    static const char *const ops[] = {"add", "mul", "shl", "sub"};
    bool is_small = low > -limit && high < limit && llabs(a.low) < limit && llabs(a.high) < limit &&
                    llabs(c.low) < limit && llabs(c.high) < limit;
    bool positive = is_small && a.low >= 0 && c.low >= 0 && low >= 0;
    item *r = add_item(g, type);
    bool nsw = is_small && random_below(&g->random, 3) != 0;
    bool nuw = positive && random_below(&g->random, 2) != 0;
    EMIT("%%%u = %s %%%u, %%%u : %s%s%s%s%s\n", r->name, ops[kind], a.name, c.name, name_of(type),
         nsw || nuw ? " {" : "", nsw ? "nsw" : "",
         nsw && nuw ? ", nuw"
         : nuw      ? "nuw"
                    : "",
         nsw || nuw ? "}" : "");
    r->uniform = a.uniform && c.uniform;
    r->ranged = is_small;
    r->low = low;
    r->high = high;
}

static void widening(generator *g) {
    item a = pick_ranged(g, LILAC_SIMT_I32);
    bool zero = a.low >= 0 && random_below(&g->random, 2);
    if (random_below(&g->random, 2)) {
        item *r = unary(g, zero ? "zext" : "sext", a, LILAC_SIMT_I64);
        r->ranged = true;
        r->low = a.low;
        r->high = a.high;
    } else {
        binary(g, random_below(&g->random, 2) ? "mulwide_s" : "mulwide_u", a,
               random_below(&g->random, 2) ? pick_ranged(g, LILAC_SIMT_I32)
                                           : pick(g, LILAC_SIMT_I32),
               LILAC_SIMT_I64);
    }
}

static void integer_operation(generator *g) {
    static const char *const ops[] = {
        "add",   "sub",   "mul",   "mulhi_s", "mulhi_u", "and", "or",  "xor", "shl",  "shr_s",
        "shr_u", "min_s", "min_u", "max_s",   "max_u",   "and", "xor", "shl", "shr_u"};
    lilac_simt_type type = any_integer(g);
    const char *op = ops[random_below(&g->random, sizeof ops / sizeof ops[0])];
    item a = random_below(&g->random, 3) == 0 && (type == LILAC_SIMT_I32 || type == LILAC_SIMT_I64)
                 ? pick_ranged(g, type)
                 : pick(g, type);
    item c = pick(g, type);
    if (op[0] == 's' && op[1] == 'h' && random_below(&g->random, 4) != 0) {
        c = *constant(g, type, random_below(&g->random, lilac_simt_type_bits(type) + 3));
    }
    binary(g, op, a, c, type);
}

static void division(generator *g) {
    static const char *const ops[] = {"div_s", "div_u", "rem_s", "rem_u"};
    static const uint64_t divisors[] = {1, 2, 3, 5, 8, 10, 16, 32, 64, 127};
    lilac_simt_type type = any_integer(g);
    item a = random_below(&g->random, 2) && type >= LILAC_SIMT_I32 ? pick_ranged(g, type)
                                                                   : pick(g, type);
    item c = *constant(g, type, divisors[random_below(&g->random, 10)]);
    if (random_below(&g->random, 4) == 0) { /* anything but 0 and -1 */
        item low = pick(g, type);
        item mask = *constant(g, type, 0x3F);
        low = *binary(g, "and", low, mask, type);
        c = *binary(g, "or", low, *constant(g, type, 1), type);
    }
    binary(g, ops[random_below(&g->random, 4)], a, c, type);
}

/* A quotient and a remainder of 64 bits by a value that is not constant; their sum is stored. */
static void store_division(generator *g, uint32_t place) {
    static const char *const ops[] = {"div_s", "div_u", "rem_s", "rem_u"};
    lilac_simt_type type = LILAC_SIMT_I64;
    item a = random_below(&g->random, 2) ? pick_ranged(g, type) : pick(g, type);
    item mask = *constant(g, type, random_below(&g->random, 3) ? 0x3FFFFF : INT64_MAX);
    item low = *binary(g, "and", pick(g, type), mask, type);
    item c = *binary(g, "or", low, *constant(g, type, 1), type);
    item x = *binary(g, ops[random_below(&g->random, 4)], a, c, type);
    item y = *binary(g, ops[random_below(&g->random, 4)], pick(g, type), c, type);
    item sum = *binary(g, "add", x, y, type);
    EMIT("st.global [%%out + %u], (%%%u)\n", 8 * place, sum.name);
}

/* An operation on two selects of one condition; its result is stored. */
static void store_masked(generator *g, uint32_t place) {
    static const char *const ops[] = {"add",   "or",   "and",  "xor", "max_s",
                                      "min_u", "fadd", "fmul", "fmax"};
    uint32_t op = random_below(&g->random, 9);
    lilac_simt_type type = op >= 6 ? LILAC_SIMT_F32 : any_integer(g);
    item condition = pick(g, LILAC_SIMT_I1);
    item masked[2];
    for (uint32_t k = 0; k < 2; k++) {
        item a = pick(g, type);
        item c = *constant(g, type, op >= 6 ? 0x3F800000 * (k + 1) : random_below(&g->random, 99));
        item *r = add_item(g, type);
        bool first = random_below(&g->random, 4) == 0;
        EMIT("%%%u = select %%%u, %%%u, %%%u : %s\n", r->name, condition.name,
             first ? c.name : a.name, first ? a.name : c.name, name_of(type));
        masked[k] = *r;
    }
    item sum = *binary(g, ops[op], masked[0], masked[1], type);
    if (type == LILAC_SIMT_F32) { /* NaN payloads may differ */
        item *nan = add_item(g, LILAC_SIMT_I1);
        EMIT("%%%u = cmp uno %%%u, %%%u : i1\n", nan->name, sum.name, sum.name);
        uint32_t name = nan->name;
        item zero = *constant(g, type, 0);
        item *r = add_item(g, type);
        EMIT("%%%u = select %%%u, %%%u, %%%u : f32\n", r->name, name, zero.name, sum.name);
        sum = *r;
    }
    EMIT("st.global [%%out + %u], (%%%u)\n", 8 * place, sum.name);
}

static void odd_integers(generator *g) {
    lilac_simt_type type = any_integer(g);
    item *r;
    switch (random_below(&g->random, 7)) {
    case 0:
        unary(g, "popc", pick(g, type), LILAC_SIMT_I32);
        break;
    case 1:
        unary(g, "clz", pick(g, type), LILAC_SIMT_I32);
        break;
    case 2: {
        item a = pick(g, LILAC_SIMT_I32);
        item c = pick(g, LILAC_SIMT_I32);
        static const uint32_t selectors[] = {0x3210, 0x7654, 0x5410, 0x1032, 0xBA98};
        item s = random_below(&g->random, 3)
                     ? *constant(g, LILAC_SIMT_I32, selectors[random_below(&g->random, 5)])
                     : pick(g, LILAC_SIMT_I32);
        r = add_item(g, LILAC_SIMT_I32);
        EMIT("%%%u = prmt %%%u, %%%u, %%%u : i32\n", r->name, a.name, c.name, s.name);
        break;
    }
    case 3: {
        static const lilac_simt_type wide[] = {LILAC_SIMT_I16, LILAC_SIMT_I32, LILAC_SIMT_I64};
        uint32_t to = random_below(&g->random, 3);
        lilac_simt_type from = (lilac_simt_type)(LILAC_SIMT_I8 + random_below(&g->random, to + 1));
        unary(g, random_below(&g->random, 2) ? "sext" : "zext",
              pick(g, random_below(&g->random, 5) ? from : LILAC_SIMT_I1), wide[to]);
        break;
    }
    case 4:
        unary(g, "brev", pick(g, type), type);
        break;
    case 5:
        unary(g, "abs", pick(g, type), type);
        break;
    default: {
        lilac_simt_type to = (lilac_simt_type)(LILAC_SIMT_I8 + random_below(&g->random, 3));
        lilac_simt_type from =
            (lilac_simt_type)(to + 1 + random_below(&g->random, (uint32_t)LILAC_SIMT_I64 - to));
        unary(g, "trunc", pick(g, from), to);
    }
    }
}

static void comparison(generator *g) {
    static const char *const integers[] = {"eq", "ne",  "lt",  "le",  "gt",
                                           "ge", "ult", "ule", "ugt", "uge"};
    static const char *const floats[] = {"eq",  "ne",   "lt",   "le",   "gt",   "ge",  "ueq",
                                         "une", "fult", "fule", "fugt", "fuge", "ord", "uno"};
    bool is_float = random_below(&g->random, 3) == 0;
    lilac_simt_type type = is_float ? any_float(g) : any_integer(g);
    const char *kind =
        is_float ? floats[random_below(&g->random, 14)] : integers[random_below(&g->random, 10)];
    bool ranged = !is_float && type >= LILAC_SIMT_I32 && random_below(&g->random, 2);
    item a = ranged ? pick_ranged(g, type) : pick(g, type);
    item c = ranged && random_below(&g->random, 2)
                 ? *constant(g, type, random_below(&g->random, 300))
                 : pick(g, type);
    char op[16];
    snprintf(op, sizeof op, "cmp %s", kind);
    binary(g, op, a, c, LILAC_SIMT_I1);
}

static void truths(generator *g) {
    static const char *const ops[] = {"and", "or", "xor", "cmp eq", "cmp ne"};
    item a = pick(g, LILAC_SIMT_I1);
    item c = pick(g, LILAC_SIMT_I1);
    binary(g, ops[random_below(&g->random, 5)], a, c, LILAC_SIMT_I1);
}

static void selection(generator *g) {
    lilac_simt_type type = random_below(&g->random, 4) == 0 ? LILAC_SIMT_I1 : any_type(g);
    item condition = pick(g, LILAC_SIMT_I1);
    item a = pick(g, type);
    item c = random_below(&g->random, 6) == 0 ? a : pick(g, type);
    item *r = add_item(g, type);
    EMIT("%%%u = select %%%u, %%%u, %%%u : %s\n", r->name, condition.name, a.name, c.name,
         name_of(type));
    r->uniform = condition.uniform && a.uniform && c.uniform;
}

static void float_operation(generator *g) {
    static const char *const two[] = {"fadd", "fsub", "fmul", "fmin", "fmax"};
    static const char *const one[] = {"fneg", "fabs", "ffloor", "fceil", "ftrunc", "frint", "fneg"};
    static const char *const fine[] = {"fsqrt", "frcp", "fdiv"};
    lilac_simt_type type = any_float(g);
    item a = pick(g, type);
    item c = pick(g, type);
    switch (random_below(&g->random, 5)) {
    case 0:
    case 1:
        binary(g, two[random_below(&g->random, 5)], a, c, type);
        break;
    case 2:
        unary(g, one[random_below(&g->random, 7)], a, type);
        break;
    case 3:
        if (type == LILAC_SIMT_F32 || type == LILAC_SIMT_F64) {
            uint32_t k = random_below(&g->random, 3);
            if (k == 2) {
                binary(g, fine[k], a, c, type);
            } else {
                unary(g, fine[k], a, type);
            }
        }
        break;
    default: {
        item d = pick(g, type);
        item *r = add_item(g, type);
        EMIT("%%%u = ffma %%%u, %%%u, %%%u : %s\n", r->name, a.name, c.name, d.name, name_of(type));
    }
    }
}

static void conversion(generator *g) {
    lilac_simt_type f = any_float(g);
    lilac_simt_type i = any_integer(g);
    item *r;
    switch (random_below(&g->random, 5)) {
    case 0: {
        item a = pick(g, f);
        lilac_simt_type to = any_float(g);
        static const char *const rounds[] = {"", "", "", " {round = zero}", " {round = up}"};
        r = add_item(g, to);
        EMIT("%%%u = fcvt %%%u : %s%s\n", r->name, a.name, name_of(to),
             rounds[random_below(&g->random, 5)]);
        break;
    }
    case 1:
        unary(g, random_below(&g->random, 2) ? "s2f" : "u2f", pick(g, i), f);
        break;
    case 2:
        unary(g, random_below(&g->random, 2) ? "f2s" : "f2u", pick(g, f), i);
        break;
    case 3: {
        item a = pick(g, LILAC_SIMT_I16);
        item *halves = add_item(g, LILAC_SIMT_F16X2);
        EMIT("%%%u = f8_unpack %%%u : f16x2 {scalar = %s}\n", halves->name, a.name,
             random_below(&g->random, 2) ? "f8E4M3FN" : "f8E5M2");
        uint32_t name = halves->name;
        item *low = add_item(g, LILAC_SIMT_F16);
        item *high = add_item(g, LILAC_SIMT_F16);
        EMIT("%%%u, %%%u = unpack %%%u : f16, f16\n", low->name, high->name, name);
        break;
    }
    default: {
        item a = pick(g, LILAC_SIMT_F32);
        item c = pick(g, LILAC_SIMT_F32);
        r = add_item(g, LILAC_SIMT_I16);
        EMIT("%%%u = f8_pack %%%u, %%%u : i16 {scalar = %s}\n", r->name, a.name, c.name,
             random_below(&g->random, 2) ? "f8E4M3FN" : "f8E5M2");
    }
    }
}

/* Bits regrouped; integers only, or integers to floats. */
static void regrouping(generator *g) {
    item *r;
    switch (random_below(&g->random, 5)) {
    case 0: {
        item a = pick(g, LILAC_SIMT_I32);
        unary(g, "bitcast", a, LILAC_SIMT_F32);
        break;
    }
    case 1: {
        item a = pick(g, LILAC_SIMT_I32);
        item c = pick(g, LILAC_SIMT_I32);
        r = binary(g, "pack", a, c, LILAC_SIMT_I64);
        item whole = *r;
        bool floats = random_below(&g->random, 3) == 0;
        item *low = add_item(g, floats ? LILAC_SIMT_F32 : LILAC_SIMT_I32);
        item *high = add_item(g, floats ? LILAC_SIMT_F32 : LILAC_SIMT_I32);
        EMIT("%%%u, %%%u = unpack %%%u : %s, %s\n", low->name, high->name, whole.name,
             name_of(low->type), name_of(high->type));
        if (!floats) {
            item parts[2] = {*low, *high};
            bool swapped = random_below(&g->random, 2);
            binary(g, "pack", parts[swapped], parts[!swapped], LILAC_SIMT_I64);
        }
        break;
    }
    case 2: {
        item parts[4];
        for (uint32_t k = 0; k < 4; k++) {
            parts[k] = pick(g, LILAC_SIMT_I16);
        }
        r = add_item(g, LILAC_SIMT_I64);
        EMIT("%%%u = pack %%%u, %%%u, %%%u, %%%u : i64\n", r->name, parts[0].name, parts[1].name,
             parts[2].name, parts[3].name);
        break;
    }
    case 3: {
        item a = pick(g, LILAC_SIMT_F16);
        item c = pick(g, LILAC_SIMT_F16);
        item x = *binary(g, "pack", a, c, LILAC_SIMT_F16X2);
        item y = *binary(g, "pack", c, a, LILAC_SIMT_F16X2);
        static const char *const ops[] = {"fadd", "fmul", "fsub"};
        item sum = *binary(g, ops[random_below(&g->random, 3)], x, y, LILAC_SIMT_F16X2);
        item *low = add_item(g, LILAC_SIMT_F16);
        item *high = add_item(g, LILAC_SIMT_F16);
        EMIT("%%%u, %%%u = unpack %%%u : f16, f16\n", low->name, high->name, sum.name);
        break;
    }
    default: {
        item a = pick(g, LILAC_SIMT_I64);
        item *low = add_item(g, LILAC_SIMT_I32);
        item *high = add_item(g, LILAC_SIMT_I32);
        EMIT("%%%u, %%%u = unpack %%%u : i32, i32\n", low->name, high->name, a.name);
    }
    }
}

/* What movements of data in registers are made of: words permuted again and again by constants,
 * selections by one predicate and its opposite, words split and joined. */
static void words(generator *g) {
    static const uint32_t selectors[] = {0x3210, 0x7654, 0x5410, 0x7632, 0x6420,
                                         0x7531, 0x1032, 0x2301, 0x5140, 0x7362};
    item pool[6];
    item p = pick(g, LILAC_SIMT_I1);
    item other = *binary(g, "xor", p, *constant(g, LILAC_SIMT_I1, 1), LILAC_SIMT_I1);
    for (uint32_t k = 0; k < 2; k++) {
        pool[k] = pick(g, LILAC_SIMT_I32);
    }
    for (uint32_t k = 2; k < 6; k++) {
        item a = pool[random_below(&g->random, k)], c = pool[random_below(&g->random, k)];
        item *r;
        if (random_below(&g->random, 3) == 0) {
            r = add_item(g, LILAC_SIMT_I32);
            EMIT("%%%u = select %%%u, %%%u, %%%u : i32\n", r->name,
                 random_below(&g->random, 2) ? p.name : other.name, a.name, c.name);
        } else if (random_below(&g->random, 4) == 0) {
            bool bytes = random_below(&g->random, 2);
            lilac_simt_type type = bytes ? LILAC_SIMT_I8 : LILAC_SIMT_I16;
            item parts[4];
            for (uint32_t j = 0; j < (bytes ? 4 : 2); j++) {
                parts[j] = *add_item(g, type);
                EMIT("%s%%%u", j ? ", " : "", parts[j].name);
            }
            EMIT(" = unpack %%%u : %s\n", a.name, bytes ? "i8, i8, i8, i8" : "i16, i16");
            bool swapped = random_below(&g->random, 3) == 0;
            r = add_item(g, LILAC_SIMT_I32);
            EMIT("%%%u = pack %%%u, %%%u", r->name, parts[swapped].name, parts[!swapped].name);
            if (bytes) {
                EMIT(", %%%u, %%%u", parts[2].name, parts[3].name);
            }
            EMIT(" : i32\n");
        } else {
            item s = *constant(g, LILAC_SIMT_I32, selectors[random_below(&g->random, 10)]);
            r = add_item(g, LILAC_SIMT_I32);
            EMIT("%%%u = prmt %%%u, %%%u, %%%u : i32\n", r->name, a.name, c.name, s.name);
        }
        pool[k] = *r;
    }
}

static void exchange(generator *g) {
    static const char *const kinds[] = {"idx", "xor", "up", "down"};
    if (random_below(&g->random, 3) == 0 && g->lanes == 32) { /* its result has 32 bits */
        unary(g, "ballot", pick(g, LILAC_SIMT_I1), LILAC_SIMT_I32)->uniform = false;
        return;
    }
    item a = pick(g, random_below(&g->random, 2) ? LILAC_SIMT_I32 : LILAC_SIMT_F32);
    item c = *constant(g, LILAC_SIMT_I32, random_below(&g->random, g->lanes));
    item *r = add_item(g, a.type);
    EMIT("%%%u = shuffle %s %%%u, %%%u : %s\n", r->name, kinds[random_below(&g->random, 4)], a.name,
         c.name, name_of(a.type));
}

/* Of the thread's own slot in the input (%in) or in shared memory (%slot). */
static void memory_operation(generator *g) {
    lilac_simt_type type = random_below(&g->random, 2) ? LILAC_SIMT_I32 : any_integer(g);
    uint32_t bytes = lilac_simt_type_bits(type) / 8;
    uint32_t offset = random_below(&g->random, SLOT / bytes) * bytes;
    item condition = pick(g, LILAC_SIMT_I1);
    bool predicated = random_below(&g->random, 2);
    if (random_below(&g->random, 3) == 0) {
        item a = pick(g, type);
        EMIT("st.shared [%%slot + %u]%s", offset, predicated ? "" : ", ");
        if (predicated) {
            EMIT(", %%%u, ", condition.name);
        }
        EMIT("(%%%u)\n", a.name);
        return;
    }
    item other = pick(g, type);
    item *r = add_item(g, type);
    EMIT("%%%u = ld.%s + %u]", r->name,
         random_below(&g->random, 2) ? "shared [%slot" : "global [%in", offset);
    if (predicated) {
        EMIT(", %%%u", condition.name);
        if (random_below(&g->random, 2)) {
            EMIT(", (%%%u)", other.name);
        }
    }
    EMIT(" : %s\n", name_of(type));
}

/* A few integer operations on top of each other, most with a constant: what the rules look at. */
static item chain(generator *g) {
    static const char *const ops[] = {"add",   "add",   "sub",   "mul",  "shl", "shr_u",
                                      "shr_s", "and",   "or",    "xor",  "xor", "min_s",
                                      "max_u", "div_u", "rem_u", "div_s"};
    static const int64_t small[] = {1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 32, 33, 63, 64, -1, -2, -4};
    static const lilac_simt_type wide[] = {LILAC_SIMT_I16, LILAC_SIMT_I32, LILAC_SIMT_I64};
    lilac_simt_type type = random_below(&g->random, 5) ? LILAC_SIMT_I32 : any_integer(g);
    item at = type >= LILAC_SIMT_I32 && random_below(&g->random, 3) ? pick_ranged(g, type)
                                                                    : pick(g, type);
    uint32_t length = 2 + random_below(&g->random, 5);
    for (uint32_t k = 0; k < length; k++) {
        uint32_t kind = random_below(&g->random, 13);
        type = at.type;
        if ((kind == 0 || kind > 10) && type != LILAC_SIMT_I64) {
            lilac_simt_type to =
                wide[random_below(&g->random, 2) ? 2 : random_below(&g->random, 3)];
            if (to > type) {
                at = *unary(g, random_below(&g->random, 2) ? "sext" : "zext", at, to);
            }
        } else if (kind == 1 && type != LILAC_SIMT_I8) {
            at = *unary(
                g, "trunc", at,
                (lilac_simt_type)(LILAC_SIMT_I8 + random_below(&g->random, type - LILAC_SIMT_I8)));
        } else if (kind <= 3 && type == LILAC_SIMT_I32) {
            item c = *constant(g, type, (uint32_t)small[random_below(&g->random, 17)]);
            at = *binary(g, random_below(&g->random, 2) ? "mulwide_s" : "mulwide_u", at, c,
                         LILAC_SIMT_I64);
        } else {
            const char *op = ops[random_below(&g->random, 16)];
            bool shift = op[0] == 's' && op[1] == 'h';
            bool divides = strncmp(op, "div", 3) == 0 || strncmp(op, "rem", 3) == 0;
            uint64_t mask = ((uint64_t)1 << (lilac_simt_type_bits(type) - 1)) * 2 - 1;
            uint64_t number = (uint64_t)small[random_below(&g->random, 17)] & mask;
            if (shift) {
                number = random_below(
                    &g->random,
                    lilac_simt_type_bits(type) / (random_below(&g->random, 4) ? 4 : 1) + 1);
            } else if (divides) {
                number = 1 + random_below(&g->random, 40);
            } else if (random_below(&g->random, 8) == 0) {
                number = troublesome(g, type);
            }
            item c = *constant(g, type, number);
            if (!shift && !divides && random_below(&g->random, 4) == 0) {
                c = random_below(&g->random, 2) && type >= LILAC_SIMT_I32 ? pick_ranged(g, type)
                                                                          : pick(g, type);
            }
            at = random_below(&g->random, 5) || shift || divides ? *binary(g, op, at, c, type)
                                                                 : *binary(g, op, c, at, type);
        }
    }
    if (random_below(&g->random, 3) == 0) {
        static const char *const kinds[] = {"cmp eq", "cmp ne",  "cmp lt",  "cmp le",  "cmp gt",
                                            "cmp ge", "cmp ult", "cmp ule", "cmp ugt", "cmp uge"};
        uint64_t mask = ((uint64_t)1 << (lilac_simt_type_bits(at.type) - 1)) * 2 - 1;
        item c = *constant(g, at.type, (uint64_t)small[random_below(&g->random, 17)] & mask);
        item truth = *binary(g, kinds[random_below(&g->random, 10)], at, c, LILAC_SIMT_I1);
        at = *unary(g, "zext", truth, LILAC_SIMT_I32);
    }
    return at;
}

static void store_out(generator *g, uint32_t place) {
    bool chained = random_below(&g->random, 4) != 0;
    lilac_simt_type type = any_type(g);
    item a = chained ? chain(g) : pick(g, type);
    if (!chained && lilac_simt_type_is_float(type)) {
        item zero = *constant(g, type, 0);
        item *nan = add_item(g, LILAC_SIMT_I1);
        uint32_t name = nan->name;
        EMIT("%%%u = cmp uno %%%u, %%%u : i1\n", name, a.name, a.name);
        item *r = add_item(g, type);
        EMIT("%%%u = select %%%u, %%%u, %%%u : %s\n", r->name, name, zero.name, a.name,
             name_of(type));
        a = *r;
    }
    item wide = *constant(g, LILAC_SIMT_I64, 8 * place);
    item *address = add_item(g, LILAC_SIMT_I64);
    uint32_t name = address->name;
    EMIT("%%%u = add %%out, %%%u : i64\n", name, wide.name);
    EMIT("st.global [%%%u], (%%%u)\n", name, a.name);
}

static void body(generator *g, uint32_t size);

static void loop(generator *g) {
    lilac_simt_type types[2] = {any_type(g), any_type(g)};
    item inits[2] = {pick(g, types[0]), pick(g, types[1])};
    bool wide = random_below(&g->random, 4) == 0;
    lilac_simt_type counter = wide ? LILAC_SIMT_I64 : LILAC_SIMT_I32;
    uint32_t low = random_below(&g->random, 3);
    item lower = *constant(g, counter, low);
    uint32_t high = low + random_below(&g->random, 4);
    item upper = *constant(g, counter, high);
    item step = *constant(g, counter, 1 + random_below(&g->random, 2));
    uint32_t bound = g->next;
    if (!wide && random_below(&g->random, 2)) {
        upper.name = 1; /* the parameter, 0 … 5 */
        high = 5;
    }
    uint32_t results = g->next;
    g->next += 2;
    EMIT("%%%u, %%%u = loop ", results, results + 1);
    uint32_t outer = g->count;
    item *i = add_item(g, counter);
    i->uniform = true;
    i->ranged = true;
    i->low = low;
    i->high = high;
    item *a = add_item(g, types[0]);
    item *c = add_item(g, types[1]);
    item arguments[2] = {*a, *c};
    EMIT("%%%u = %%%u to %%%u step %%%u (%%%u = %%%u, %%%u = %%%u) : %s, %s {\n", i->name,
         lower.name, upper.name, step.name, a->name, inits[0].name, c->name, inits[1].name,
         name_of(types[0]), name_of(types[1]));
    g->depth++;
    body(g, 4 + random_below(&g->random, 8));
    g->depth--;
    item next[2];
    for (uint32_t k = 0; k < 2; k++) {
        next[k] = random_below(&g->random, 4) == 0 ? arguments[k] : pick(g, types[k]);
    }
    EMIT("yield %%%u, %%%u\n}\n", next[0].name, next[1].name);
    g->count = outer;
    assert_true(bound <= results);
    for (uint32_t k = 0; k < 2; k++) {
        assert_true(g->count < POOL);
        g->pool[g->count++] = (item){.name = results + k, .type = types[k]};
    }
}

static void branch(generator *g) {
    lilac_simt_type type = any_type(g);
    item condition = pick_uniform_truth(g);
    bool has_result = random_below(&g->random, 4) != 0;
    uint32_t result = g->next++;
    uint32_t outer = g->count;
    if (has_result) {
        EMIT("%%%u = if %%%u : %s {\n", result, condition.name, name_of(type));
    } else {
        EMIT("if %%%u {\n", condition.name);
    }
    for (uint32_t side = 0; side < 2; side++) {
        g->depth++;
        body(g, 2 + random_below(&g->random, 6));
        g->depth--;
        if (has_result) {
            item a = pick(g, type);
            EMIT("yield %%%u\n", a.name);
        } else {
            EMIT("yield\n");
        }
        EMIT(side == 0 ? "} else {\n" : "}\n");
        g->count = outer;
    }
    if (has_result) {
        g->pool[g->count++] = (item){.name = result, .type = type};
    }
}

/* Counts down from a small number, carrying something. */
static void while_loop(generator *g) {
    lilac_simt_type type = any_type(g);
    item init = pick(g, type);
    item start = *constant(g, LILAC_SIMT_I32, random_below(&g->random, 4));
    item zero = *constant(g, LILAC_SIMT_I32, 0);
    item one = *constant(g, LILAC_SIMT_I32, 1);
    uint32_t name = g->next;
    g->next += 7;
    uint32_t outer = g->count;
    EMIT("%%%u, %%%u = while (%%%u = %%%u, %%%u = %%%u) : i32, %s {\n", name, name + 1, name + 2,
         start.name, name + 3, init.name, name_of(type));
    g->pool[g->count++] = (item){.name = name + 3, .type = type};
    g->depth++;
    body(g, 3);
    item passed = pick(g, type);
    EMIT("%%%u = cmp gt %%%u, %%%u : i1\n", name + 4, name + 2, zero.name);
    EMIT("condition %%%u, %%%u, %%%u\n} do (%%%u, %%%u) {\n", name + 4, name + 2, passed.name,
         name + 5, name + 6);
    g->count = outer;
    g->pool[g->count++] = (item){.name = name + 6, .type = type};
    body(g, 3);
    item next = pick(g, type);
    uint32_t down = g->next++;
    EMIT("%%%u = sub %%%u, %%%u : i32\nyield %%%u, %%%u\n}\n", down, name + 5, one.name, down,
         next.name);
    g->depth--;
    g->count = outer;
    g->pool[g->count++] = (item){.name = name + 1, .type = type};
}

static void body(generator *g, uint32_t size) {
    static void (*const plain[])(generator *) = {
        integer_operation, integer_operation, integer_operation,
        ranged_operation,  ranged_operation,  ranged_operation,
        widening,          division,          odd_integers,
        comparison,        comparison,        truths,
        selection,         float_operation,   float_operation,
        conversion,        regrouping,        exchange,
        memory_operation,  memory_operation,  words};
    for (uint32_t k = 0; k < size; k++) {
        uint32_t kind = random_below(&g->random, 40);
        if (kind < 3 && g->depth < 2) {
            (kind == 0 ? loop : kind == 1 ? branch : while_loop)(g);
        } else {
            plain[random_below(&g->random, sizeof plain / sizeof plain[0])](g);
        }
    }
}

static void generate(lilac_text *out, uint64_t seed) {
    generator *g = calloc(1, sizeof *g);
    g->out = out;
    lilac_random_seed(&g->random, seed);
    g->lanes = seed % 4 == 3 ? 64 : 32;
    EMIT("simt.module target \"%s\" {\nkernel @k(%%i: i64 ptr align 16, %%n: i32, "
         "%%o: i64 ptr align 16) warps %u ctas 1 shared %d no_contraction {\n"
         "%%base_in = param 0 : i64\n%%1 = param 1 : i32\n%%base_out = param 2 : i64\n"
         "%%0 = thread : i32\n%%2 = lane : i32\n%%3 = warp : i32\n%%shared = shared_base : i32\n"
         "%%4 = const %d : i32\n%%5 = mul %%0, %%4 : i32\n%%6 = sext %%5 : i64\n"
         "%%in = add %%base_in, %%6 : i64\n%%7 = const %d : i32\n%%8 = mulwide_u %%0, %%7 : i64\n"
         "%%out = add %%base_out, %%8 : i64\n"
         "%%slot = add %%shared, %%5 : i32\n",
         g->lanes == 64 ? "gfx942" : "sm_90a", THREADS / g->lanes, THREADS * SLOT, SLOT, OUT);
    g->next = 9;
    g->pool[0] = (item){0, LILAC_SIMT_I32, true, false, 0, THREADS - 1};
    g->pool[1] = (item){1, LILAC_SIMT_I32, true, true, 0, 5};
    g->pool[2] = (item){2, LILAC_SIMT_I32, true, false, 0, g->lanes - 1};
    g->pool[3] = (item){3, LILAC_SIMT_I32, true, false, 0, THREADS / g->lanes - 1};
    g->count = 4;
    for (uint32_t k = 0; k < SLOT; k += 16) { /* fill the slot in shared memory */
        EMIT("%%f%u, %%g%u = ld.global [%%in + %u] : i64, i64\n", k, k, k);
        EMIT("st.shared [%%slot + %u], (%%f%u, %%g%u)\n", k, k, k);
    }
    body(g, 50);
    for (uint32_t place = 0; place < OUT / 8; place++) {
        uint32_t kind = random_below(&g->random, 8);
        (kind == 0 ? store_division : kind == 1 ? store_masked : store_out)(g, place);
        if (random_below(&g->random, 8) == 0) {
            body(g, 2);
        }
    }
    EMIT("return\n}\n}\n");
    free(g);
}

/* ---- running ---------------------------------------------------------------------------- */

static void show(lilac_context *context, const char *text) {
    fprintf(stderr, "%s\n", text);
    print_diagnostics(context);
}

static bool execute(lilac_context *context, const lilac_simt_module *module, uint64_t seed,
                    uint8_t *output) {
    uint8_t *input = malloc(THREADS * SLOT);
    lilac_random random;
    lilac_random_seed(&random, seed);
    for (size_t k = 0; k < THREADS * SLOT; k += 4) {
        static const uint32_t words[] = {0, 1, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 0x3F800000, 32};
        uint32_t word = lilac_random_below(&random, 2) ? (uint32_t)lilac_random_next(&random)
                                                       : words[lilac_random_below(&random, 7)];
        memcpy(input + k, &word, 4);
    }
    memset(output, 0x5A, THREADS * OUT);
    lilac_sim_buffer buffers[2] = {
        {.name = "in", .bytes = input, .size = THREADS * SLOT, .read_only = true},
        {.name = "out", .bytes = output, .size = THREADS * OUT}};
    lilac_sim_place(buffers, 2);
    uint64_t arguments[3] = {buffers[0].address, seed % 6, buffers[1].address};
    lilac_sim_launch launch = {.kernel = module->kernels,
                               .grid = {1, 1, 1},
                               .arguments = arguments,
                               .argument_count = 3,
                               .buffers = buffers,
                               .buffer_count = 2,
                               .threads = 1};
    lilac_sim_counters counters = {0};
    bool good = lilac_sim_run(context, &launch, &counters);
    free(input);
    return good;
}

static bool all_passes(lilac_simt_kernel *kernel) {
    bool changed = false;
    for (uint32_t round = 0; round < 2; round++) {
        changed |= lilac_simt_opt_tail_masks(kernel);
        changed |= lilac_simt_opt_fold(kernel);
        changed |= lilac_simt_opt_sink_selects(kernel);
        changed |= lilac_simt_opt_narrow_divisions(kernel);
        changed |= lilac_simt_opt_expand_divisions(kernel);
        changed |= lilac_simt_opt_merge_range_tests(kernel);
        changed |= lilac_simt_opt_convert_bytes(kernel);
        changed |= lilac_simt_opt_cse(kernel);
        changed |= lilac_simt_opt_licm(kernel);
        changed |= lilac_simt_opt_narrow_floats(kernel);
        changed |= lilac_simt_opt_dce(kernel);
    }
    return changed;
}

static const struct {
    const char *name;
    bool (*run)(lilac_simt_kernel *kernel);
} passes[] = {
    {"fold", lilac_simt_opt_fold},
    {"cse", lilac_simt_opt_cse},
    {"licm", lilac_simt_opt_licm},
    {"dce", lilac_simt_opt_dce},
    {"sink_selects", lilac_simt_opt_sink_selects},
    {"narrow_divisions", lilac_simt_opt_narrow_divisions},
    {"expand_divisions", lilac_simt_opt_expand_divisions},
    {"all", all_passes},
};
enum { PASSES = sizeof passes / sizeof passes[0] };

/* One kernel, all passes. False with the text on standard error when one changes what it computes.
 */
static bool same_after_passes(uint64_t seed, uint32_t *changes) {
    lilac_text text = {0};
    generate(&text, seed);
    lilac_context *context = lilac_context_create();
    uint32_t source = lilac_source_add(context, "random", text.bytes, text.length);
    lilac_simt_module *module = lilac_simt_read(context, source);
    static uint8_t wanted[THREADS * OUT], got[THREADS * OUT];
    bool good =
        module != NULL && lilac_simt_verify(module) && execute(context, module, seed, wanted);
    if (!good) {
        show(context, text.bytes);
    }
    for (uint32_t p = 0; good && p < PASSES; p++) {
        lilac_simt_module *copy = lilac_simt_read(context, source);
        changes[p] += passes[p].run(copy->kernels);
        good = lilac_simt_verify(copy) && execute(context, copy, seed, got) &&
               memcmp(wanted, got, sizeof wanted) == 0;
        if (!good) {
            lilac_text after = {0};
            lilac_simt_print(&after, copy);
            size_t at = 0;
            while (at < sizeof wanted && wanted[at] == got[at]) {
                at++;
            }
            show(context, text.bytes);
            fprintf(stderr, "seed %llu, pass %s, byte %zu (thread %zu, place %zu):\n%s",
                    (unsigned long long)seed, passes[p].name, at, at / OUT, at % OUT / 8,
                    after.bytes);
            lilac_text_clear(&after);
        }
        /* the text of what a pass leaves reads back, too */
        lilac_text once = {0}, twice = {0};
        lilac_simt_print(&once, copy);
        lilac_simt_module *again =
            lilac_simt_read(context, lilac_source_add(context, "again", once.bytes, once.length));
        if (again == NULL || !lilac_simt_verify(again)) {
            show(context, once.bytes);
            good = false;
        } else {
            lilac_simt_print(&twice, again);
            good = good && strcmp(once.bytes, twice.bytes) == 0;
        }
        lilac_text_clear(&once);
        lilac_text_clear(&twice);
        lilac_simt_module_destroy(again);
        lilac_simt_module_destroy(copy);
    }
    lilac_simt_module_destroy(module);
    lilac_context_destroy(context);
    lilac_text_clear(&text);
    return good;
}

static void passes_keep_results(void **state) {
    (void)state;
    const char *more = getenv("LILAC_TEST_MULTIPLIER");
    uint64_t count = KERNELS * (more != NULL ? strtoull(more, NULL, 10) : 1);
    uint32_t changes[PASSES] = {0};
    uint32_t failures = 0;
    for (uint64_t seed = 1; seed <= count && failures < 1; seed++) {
        failures += !same_after_passes(seed, changes);
    }
    assert_int_equal(failures, 0);
    for (uint32_t p = 0; p < PASSES; p++) {
        assert_true(changes[p] > count / 2); /* or the test would show nothing */
    }
}

/* ---- contraction ------------------------------------------------------------------------ */

/* a*b + c, a*b - c, c - a*b as contracted are what one rounding gives. */
static void contraction_rounds_once(void **state) {
    (void)state;
    static const struct {
        const char *name;
        lilac_scalar scalar;
    } types[] = {{"f32", LILAC_F32}, {"f64", LILAC_F64}, {"f16", LILAC_F16}, {"bf16", LILAC_BF16}};
    for (size_t t = 0; t < 4; t++) {
        uint32_t bytes = lilac_scalar_bits(types[t].scalar) / 8;
        lilac_text text = {0};
        lilac_text_printf(
            &text,
            "simt.module target \"sm_90a\" {\nkernel @k(%%i: i64 ptr align 16, %%n: i32, "
            "%%o: i64 ptr align 16) warps 2 ctas 1 shared 0 {\n%%t = thread : i32\n"
            "%%k = const %d : i32\n%%p = param 0 : i64\n%%q = param 2 : i64\n"
            "%%w = mulwide_u %%t, %%k : i64\n%%in = add %%p, %%w : i64\n%%out = add %%q, %%w : "
            "i64\n",
            SLOT);
        for (uint32_t k = 0; k < 3; k++) {
            lilac_text_printf(&text, "%%x%u = ld.global [%%in + %u] : %s\n", k, 8 * k,
                              types[t].name);
        }
        static const char *const sums[] = {"fadd %m0, %x2", "fsub %m1, %x2", "fsub %x2, %m2"};
        for (uint32_t k = 0; k < 3; k++) {
            lilac_text_printf(&text, "%%m%u = fmul %%x0, %%x1 : %s\n%%r%u = %s : %s\n", k,
                              types[t].name, k, sums[k], types[t].name);
            lilac_text_printf(&text, "st.global [%%out + %u], (%%r%u)\n", 8 * k, k);
        }
        lilac_text_puts(&text, "return\n}\n}\n");
        lilac_context *context = lilac_context_create();
        lilac_simt_module *module =
            lilac_simt_read(context, lilac_source_add(context, "fma", text.bytes, text.length));
        assert_non_null(module);
        assert_true(lilac_simt_opt_contract(module->kernels));
        assert_true(lilac_simt_verify(module));
        uint8_t input[THREADS * SLOT], output[THREADS * SLOT];
        memset(output, 0, sizeof output);
        lilac_random random;
        lilac_random_seed(&random, 5);
        for (size_t k = 0; k < sizeof input; k += 8) { /* numbers near 1, so that sums cancel */
            double x = 1 + (double)(lilac_random_next(&random) >> 12) / 4503599627370496.0;
            uint64_t bits = lilac_scalar_encode(types[t].scalar, x * (k % 16 ? 1 : -1),
                                                LILAC_ROUND_NEAREST_EVEN, false);
            memcpy(input + k, &bits, 8);
        }
        lilac_sim_buffer buffers[2] = {{.name = "in", .bytes = input, .size = sizeof input},
                                       {.name = "out", .bytes = output, .size = sizeof output}};
        lilac_sim_place(buffers, 2);
        uint64_t arguments[3] = {buffers[0].address, 0, buffers[1].address};
        lilac_sim_launch launch = {.kernel = module->kernels,
                                   .grid = {1, 1, 1},
                                   .arguments = arguments,
                                   .argument_count = 3,
                                   .buffers = buffers,
                                   .buffer_count = 2,
                                   .threads = 1};
        lilac_sim_counters counters = {0};
        assert_true(lilac_sim_run(context, &launch, &counters));
        uint64_t sign = (uint64_t)1 << (8 * bytes - 1);
        for (uint32_t thread = 0; thread < THREADS; thread++) {
            uint64_t x[3] = {0}, r[3] = {0};
            for (uint32_t k = 0; k < 3; k++) {
                memcpy(&x[k], input + thread * SLOT + 8 * k, bytes);
                memcpy(&r[k], output + thread * SLOT + 8 * k, bytes);
            }
            assert_true(r[0] == lilac_scalar_fma(types[t].scalar, x[0], x[1], x[2]));
            assert_true(r[1] == lilac_scalar_fma(types[t].scalar, x[0], x[1], x[2] ^ sign));
            assert_true(r[2] == lilac_scalar_fma(types[t].scalar, x[0] ^ sign, x[1], x[2]));
        }
        lilac_simt_module_destroy(module);
        lilac_context_destroy(context);
        lilac_text_clear(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_keep_results),
        cmocka_unit_test(contraction_rounds_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
