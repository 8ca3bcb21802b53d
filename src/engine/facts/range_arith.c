/* range_arith: the range of an operation's results from those of its operands.
 *
 *     %first = arith.muli %pid, 1024       [0, 2^31 - 2]             →  [0, 2^31 - 1024]
 *     %row   = arith.remsi %x, 768         [0, 2^31 - 1], [768, 768] →  [0, 767]
 *
 * The column `range` of operations.def names the function of each operation. Arithmetic that may
 * wrap has an unknown result, with one exception, which the axis facts make too: products and sums
 * of program ids, numbers of programs and constants up to MOST_FACTOR do not overflow, since a
 * launch has no element with a number of 2^31 or more where its indices have 32 bits.
 */
#include "internal.h"

enum { MOST_FACTOR = 1 << 16, MOST_DEPTH = 6 };

uint32_t lilac_range_bits(const lilac_tile_type *type) {
    const lilac_tile_type *element = lilac_tile_element(type);
    if (type->kind == LILAC_TILE_MEMDESC || element->kind != LILAC_TILE_SCALAR ||
        lilac_scalar_is_float(element->scalar) || element->scalar == LILAC_INDEX) {
        return 0;
    }
    uint32_t bits = lilac_scalar_bits(element->scalar);
    return bits <= 64 ? bits : 0;
}

lilac_range lilac_range_of_bits(uint32_t bits) {
    if (bits == 0 || bits >= 64) {
        return (lilac_range){INT64_MIN, INT64_MAX};
    }
    return (lilac_range){-((int64_t)1 << (bits - 1)), ((int64_t)1 << (bits - 1)) - 1};
}

/* One result of an operation. */
typedef struct range_query {
    const lilac_tile_op *op;
    lilac_range a, b, c; /* of operands 0 to 2 */
    uint32_t bits;       /* of the result */
    uint32_t from;       /* of operand 0 */
} range_query;

/* False: nothing is known. */
typedef bool range_function(lilac_range *result, const range_query *in);

static bool both_natural(const range_query *in) {
    return in->a.low >= 0 && in->b.low >= 0;
}

/* All bits at and below the highest one of a number that is not negative. */
static int64_t fill(int64_t number) {
    uint64_t bits = (uint64_t)number;
    for (uint32_t k = 1; k < 64; k *= 2) {
        bits |= bits >> k;
    }
    return (int64_t)bits;
}

/* The largest number of `bits` bits, unsigned; INT64_MAX for 64. */
static int64_t largest_unsigned(uint32_t bits) {
    return bits >= 63 ? INT64_MAX : ((int64_t)1 << bits) - 1;
}

/* ---- sums and products ------------------------------------------------------------------ */

static const bool is_grid_operation[LILAC_TILE_OP_COUNT] = {
#define GRID(code) [LILAC_TILE_OP_##code] = true,
#include <lilac/operations.def>
};

/* Is the value computed from program ids, numbers of programs and small constants by sums and
 * products? */
static bool is_grid_index(const lilac_tile_value *value, uint32_t depth) {
    const lilac_tile_op *op = value->op;
    int64_t number;
    if (op == NULL || depth == 0) {
        return false;
    }
    if (lilac_tile_constant(value, &number)) {
        return number >= 0 && number <= MOST_FACTOR;
    }
    bool all = is_grid_operation[op->code];
    for (uint32_t i = 0; i < op->operand_count && all; i++) {
        all = is_grid_index(op->operands[i].value, depth - 1);
    }
    return all;
}

/* The range of a sum or product of grid indices: up to the largest multiple of a constant factor. */
static bool range_of_grid(lilac_range *result, const range_query *in) {
    if (in->bits != 32 || !both_natural(in) || !is_grid_index(&in->op->results[0], MOST_DEPTH)) {
        return false;
    }
    int64_t factor =
        in->op->code == LILAC_TILE_OP_ARITH_MULI && in->b.low == in->b.high ? in->b.low : 1;
    *result = (lilac_range){0, factor > 0 ? INT32_MAX / factor * factor : 0};
    return true;
}

static bool range_add(lilac_range *result, const range_query *in) {
    bool wraps = __builtin_add_overflow(in->a.low, in->b.low, &result->low);
    wraps |= __builtin_add_overflow(in->a.high, in->b.high, &result->high);
    const lilac_range type = lilac_range_of_bits(in->bits);
    wraps |= result->low < type.low || result->high > type.high;
    return !wraps || range_of_grid(result, in);
}

static bool range_sub(lilac_range *result, const range_query *in) {
    bool wraps = __builtin_sub_overflow(in->a.low, in->b.high, &result->low);
    wraps |= __builtin_sub_overflow(in->a.high, in->b.low, &result->high);
    return !wraps && result->high <= lilac_range_of_bits(in->bits).high;
}

static bool range_mul(lilac_range *result, const range_query *in) {
    const int64_t x[2] = {in->a.low, in->a.high}, y[2] = {in->b.low, in->b.high};
    const lilac_range type = lilac_range_of_bits(in->bits);
    bool wraps = false;
    for (uint32_t k = 0; k < 4; k++) {
        int64_t product = 0;
        wraps |= __builtin_mul_overflow(x[k / 2], y[k % 2], &product);
        result->low = k == 0 || product < result->low ? product : result->low;
        result->high = k == 0 || product > result->high ? product : result->high;
    }
    wraps |= result->low < type.low || result->high > type.high;
    return !wraps || range_of_grid(result, in);
}

static bool range_shl(lilac_range *result, const range_query *in) {
    if (in->b.low != in->b.high || in->b.low < 0 || in->b.low > 62) {
        return false;
    }
    range_query product = *in;
    product.b.low = product.b.high = (int64_t)1 << in->b.low;
    return range_mul(result, &product);
}

/* ---- divisions -------------------------------------------------------------------------- */

/* a / b rounded towards zero, b > 0 (0 is undefined). */
static bool range_div_s(lilac_range *result, const range_query *in) {
    int64_t least = in->b.low < 1 ? 1 : in->b.low, most = in->b.high;
    if (in->b.low < 0 || most < 1) {
        return false;
    }
    result->low = in->a.low / (in->a.low < 0 ? least : most);
    result->high = in->a.high / (in->a.high < 0 ? most : least);
    return true;
}

static bool range_div_u(lilac_range *result, const range_query *in) {
    if (both_natural(in)) {
        return range_div_s(result, in);
    }
    if (in->b.low < 2 || in->bits > 63) {
        return false;
    }
    *result = (lilac_range){0, largest_unsigned(in->bits) / in->b.low};
    return true;
}

/* a / b rounded down or up, b > 0. */
static int64_t divide_rounded(int64_t a, int64_t b, bool up) {
    return a / b + (up ? a % b > 0 : -(a % b < 0));
}

/* Rounded down or up, b > 0 (0 is undefined); of unsigned numbers, both natural. */
static bool range_div_rounded(lilac_range *result, const range_query *in) {
    const bool up = in->op->code != LILAC_TILE_OP_ARITH_FLOORDIVSI;
    const int64_t least = in->b.low < 1 ? 1 : in->b.low, most = in->b.high;
    if (in->b.low < 0 || most < 1 ||
        (in->op->code == LILAC_TILE_OP_ARITH_CEILDIVUI && !both_natural(in))) {
        return false;
    }
    result->low = divide_rounded(in->a.low, in->a.low < 0 ? least : most, up);
    result->high = divide_rounded(in->a.high, in->a.high < 0 ? most : least, up);
    return true;
}

/* |remainder| < |b|, |remainder| <= |a|, with the sign of a. */
static bool range_rem_s(lilac_range *result, const range_query *in) {
    *result = (lilac_range){in->a.low < 0 ? in->a.low : 0, in->a.high < 0 ? 0 : in->a.high};
    if (in->b.low >= 0 && in->b.high > 0) {
        int64_t most = in->b.high - 1;
        result->low = result->low < -most ? -most : result->low;
        result->high = result->high > most ? most : result->high;
    }
    return true;
}

static bool range_rem_u(lilac_range *result, const range_query *in) {
    int64_t most = INT64_MAX;
    if (in->b.low >= 0 && in->b.high > 0) {
        most = in->b.high - 1;
    }
    if (in->a.low >= 0 && in->a.high < most) {
        most = in->a.high;
    }
    *result = (lilac_range){0, most};
    return most != INT64_MAX;
}

/* ---- bits ------------------------------------------------------------------------------- */

static bool range_and(lilac_range *result, const range_query *in) {
    if (in->a.low < 0 && in->b.low < 0) {
        return false;
    }
    int64_t a = in->a.low >= 0 ? in->a.high : INT64_MAX;
    int64_t b = in->b.low >= 0 ? in->b.high : INT64_MAX;
    *result = (lilac_range){0, a < b ? a : b};
    return true;
}

static bool range_or(lilac_range *result, const range_query *in) {
    *result = (lilac_range){0, fill(in->a.high | in->b.high)};
    return both_natural(in);
}

static bool range_shr_s(lilac_range *result, const range_query *in) {
    int64_t least = in->b.low < 0 ? 0 : in->b.low, most = in->b.high;
    if (in->b.low < 0 || most > 63) {
        least = 0;
        most = 63;
    }
    least = least > 63 ? 63 : least;
    /* division by 2^63 is not one of signed numbers; the shift rounds down */
    result->low = in->a.low >= 0 ? in->a.low >> most : ~(~in->a.low >> least);
    result->high = in->a.high >= 0 ? in->a.high >> least : ~(~in->a.high >> most);
    return true;
}

static bool range_shr_u(lilac_range *result, const range_query *in) {
    if (in->a.low >= 0) {
        return range_shr_s(result, in);
    }
    if (in->b.low < 1 || in->b.low > 62 || in->bits > 63) {
        return false;
    }
    *result = (lilac_range){0, largest_unsigned(in->bits) >> in->b.low};
    return true;
}

/* ---- choices ---------------------------------------------------------------------------- */

static bool range_min_s(lilac_range *result, const range_query *in) {
    *result = (lilac_range){min_i64(in->a.low, in->b.low), min_i64(in->a.high, in->b.high)};
    return true;
}

static bool range_max_s(lilac_range *result, const range_query *in) {
    *result = (lilac_range){max_i64(in->a.low, in->b.low), max_i64(in->a.high, in->b.high)};
    return true;
}

/* At most an operand that is not negative, as unsigned numbers. */
static bool range_min_u(lilac_range *result, const range_query *in) {
    return both_natural(in) ? range_min_s(result, in) : range_and(result, in);
}

static bool range_max_u(lilac_range *result, const range_query *in) {
    return both_natural(in) && range_max_s(result, in);
}

static bool range_choice(lilac_range *result, const range_query *in) {
    *result = (lilac_range){min_i64(in->b.low, in->c.low), max_i64(in->b.high, in->c.high)};
    return true;
}

static bool range_magnitude(lilac_range *result, const range_query *in) {
    if (in->a.low <= lilac_range_of_bits(in->bits).low) {
        return false;
    }
    *result = (lilac_range){in->a.low > 0 ? in->a.low : 0, max_i64(-in->a.low, in->a.high)};
    return true;
}

/* ---- conversions, shapes and sources ------------------------------------------------------ */

static bool range_same(lilac_range *result, const range_query *in) {
    *result = in->a;
    return true;
}

static bool range_union(lilac_range *result, const range_query *in) {
    *result = (lilac_range){min_i64(in->a.low, in->b.low), max_i64(in->a.high, in->b.high)};
    return true;
}

static bool range_extend_unsigned(lilac_range *result, const range_query *in) {
    *result = in->a.low >= 0 ? in->a : (lilac_range){0, largest_unsigned(in->from)};
    return in->from != 0 && in->from < 64;
}

static bool range_truncate(lilac_range *result, const range_query *in) {
    const lilac_range type = lilac_range_of_bits(in->bits);
    *result = in->a;
    return in->from != 0 && in->a.low >= type.low && in->a.high <= type.high;
}

static bool range_range(lilac_range *result, const range_query *in) {
    result->low = lilac_tile_find_integer(&in->op->attributes, "start", INT64_MIN);
    result->high = lilac_tile_find_integer(&in->op->attributes, "end", INT64_MIN);
    bool known = result->low != INT64_MIN && result->high > result->low;
    result->high -= known;
    return known;
}

/* A grid has at most 2³¹ - 1 programs along x, 65,535 along y and z (CUDA C++ Programming Guide, compute
 * capabilities). */
static int64_t most_programs(const lilac_tile_op *op) {
    return lilac_tile_program_axis(op) == 0 ? INT32_MAX : UINT16_MAX;
}

static bool range_program(lilac_range *result, const range_query *in) {
    *result = (lilac_range){0, most_programs(in->op) - 1};
    return true;
}

static bool range_programs(lilac_range *result, const range_query *in) {
    *result = (lilac_range){1, most_programs(in->op)};
    return true;
}

static bool range_constant(lilac_range *result, const range_query *in) {
    int64_t number;
    if (lilac_tile_constant(&in->op->results[0], &number)) {
        *result = (lilac_range){number, number};
        return true;
    }
    return false;
}

/* ---- all of them ------------------------------------------------------------------------ */

/* NULL: nothing is known of the results. */
static range_function *const range_functions[LILAC_TILE_OP_COUNT] = {
#define OPERATION(code, cost, layout, facts, strides, range, fold, lower, reference)               \
    [LILAC_TILE_OP_##code] = range,
#include <lilac/operations.def>
};

/* A range that leaves the type is that of a result that may wrap: unknown. */
static lilac_range within(lilac_range found, uint32_t bits) {
    const lilac_range type = lilac_range_of_bits(bits);
    bool inside = found.low >= type.low && found.low <= found.high;
    found.high = min_i64(found.high, type.high);
    return inside ? found : type;
}

void lilac_range_note(lilac_range *ranges, const lilac_tile_op *op) {
    const lilac_range unknown = {INT64_MIN, INT64_MAX};
    range_query in = {.op = op, .a = unknown, .b = unknown, .c = unknown};
    lilac_range *const places[3] = {&in.a, &in.b, &in.c};
    for (uint32_t i = 0; i < op->operand_count && i < 3; i++) {
        *places[i] = ranges[op->operands[i].value->id];
    }
    in.from = op->operand_count > 0 ? lilac_range_bits(op->operands[0].value->type) : 0;
    for (uint32_t i = 0; i < op->result_count; i++) {
        in.bits = lilac_range_bits(op->results[i].type);
        lilac_range found;
        bool known = in.bits > 1 && range_functions[op->code] != NULL &&
                     range_functions[op->code](&found, &in);
        ranges[op->results[i].id] = known ? within(found, in.bits) : lilac_range_of_bits(in.bits);
    }
}
