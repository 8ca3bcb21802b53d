/* Reference semantics of operations on integers and pointers, for one element. The column `meaning`
 * of the rows INTEGER in operations.def names the function of each operation. */
#include "interpreter_machine.h"

__extension__ typedef __int128 wide_integer;
__extension__ typedef unsigned __int128 wide_unsigned_integer;

static interpreter_cell exact(uint64_t bits) {
    return (interpreter_cell){bits, 0, 0};
}

static uint64_t bits_of(const interpreter_element *e, uint32_t i) {
    return e->in[i].bits;
}

static int64_t signed_of(const interpreter_element *e, uint32_t i) {
    return lilac_scalar_signed(e->from->scalar, e->in[i].bits);
}

static uint32_t width_of(const interpreter_element *e) {
    return lilac_scalar_bits(e->from->scalar);
}

static void give(interpreter_element *e, uint64_t bits) {
    e->out[0] = exact(lilac_scalar_mask(e->from->scalar, bits));
}

/* ---- sums, products, bits --------------------------------------------------------------- */

/* The result; unspecified if it overflows although the operation's flags exclude that. */
static void give_unless_wrapped(interpreter_element *e, wide_integer wide,
                                wide_integer wide_unsigned) {
    const char *flags = lilac_tile_find_text(&e->op->attributes, "overflowFlags");
    give(e, (uint64_t)wide);
    if (flags != NULL && ((strstr(flags, "nsw") != NULL &&
                           lilac_scalar_signed(e->from->scalar, e->out[0].bits) != wide) ||
                          (strstr(flags, "nuw") != NULL &&
                           e->out[0].bits != (wide_unsigned_integer)wide_unsigned))) {
        e->out[0] = OPEN;
    }
}

static void meaning_add(interpreter_element *e) {
    give_unless_wrapped(e, (wide_integer)signed_of(e, 0) + signed_of(e, 1),
                        (wide_integer)bits_of(e, 0) + bits_of(e, 1));
}

static void meaning_sub(interpreter_element *e) {
    give_unless_wrapped(e, (wide_integer)signed_of(e, 0) - signed_of(e, 1),
                        (wide_integer)bits_of(e, 0) - bits_of(e, 1));
}

static void meaning_mul(interpreter_element *e) {
    give_unless_wrapped(e, (wide_integer)signed_of(e, 0) * signed_of(e, 1),
                        (wide_integer)((wide_unsigned_integer)bits_of(e, 0) * bits_of(e, 1)));
}

static bool is_past_width(interpreter_element *e) {
    e->out[0] = OPEN;
    return bits_of(e, 1) >= width_of(e);
}

static void meaning_shl(interpreter_element *e) {
    if (!is_past_width(e)) {
        give_unless_wrapped(e, signed_of(e, 0) * ((wide_integer)1 << bits_of(e, 1)),
                            (wide_integer)bits_of(e, 0) << bits_of(e, 1));
    }
}

static void meaning_shr_s(interpreter_element *e) {
    if (!is_past_width(e)) {
        give(e, (uint64_t)(signed_of(e, 0) >> bits_of(e, 1)));
    }
}

static void meaning_shr_u(interpreter_element *e) {
    if (!is_past_width(e)) {
        give(e, bits_of(e, 0) >> bits_of(e, 1));
    }
}

static void meaning_and(interpreter_element *e) {
    give(e, bits_of(e, 0) & bits_of(e, 1));
}

static void meaning_or(interpreter_element *e) {
    give(e, bits_of(e, 0) | bits_of(e, 1));
}

static void meaning_xor(interpreter_element *e) {
    give(e, bits_of(e, 0) ^ bits_of(e, 1));
}

static void meaning_mulhi_u(interpreter_element *e) {
    wide_unsigned_integer product = (wide_unsigned_integer)bits_of(e, 0) * bits_of(e, 1);
    give(e, (uint64_t)(product >> width_of(e)));
}

static void extended_product(interpreter_element *e, wide_integer product) {
    give(e, (uint64_t)product);
    e->out[1] = exact(lilac_scalar_mask(e->from->scalar, (uint64_t)(product >> width_of(e))));
}

static void meaning_mul_extended_s(interpreter_element *e) {
    extended_product(e, (wide_integer)signed_of(e, 0) * signed_of(e, 1));
}

static void meaning_mul_extended_u(interpreter_element *e) {
    extended_product(e, (wide_integer)((wide_unsigned_integer)bits_of(e, 0) * bits_of(e, 1)));
}

/* ---- choices and comparisons ------------------------------------------------------------ */

static void meaning_min_s(interpreter_element *e) {
    give(e, bits_of(e, signed_of(e, 0) < signed_of(e, 1) ? 0 : 1));
}

static void meaning_max_s(interpreter_element *e) {
    give(e, bits_of(e, signed_of(e, 0) > signed_of(e, 1) ? 0 : 1));
}

static void meaning_min_u(interpreter_element *e) {
    give(e, bits_of(e, bits_of(e, 0) < bits_of(e, 1) ? 0 : 1));
}

static void meaning_max_u(interpreter_element *e) {
    give(e, bits_of(e, bits_of(e, 0) > bits_of(e, 1) ? 0 : 1));
}

static void meaning_absolute(interpreter_element *e) {
    give(e, signed_of(e, 0) < 0 ? 0 - bits_of(e, 0) : bits_of(e, 0));
}

static bool compare_integers(const char *p, const interpreter_element *e) {
    uint64_t a = bits_of(e, 0), b = bits_of(e, 1);
    if (p[0] == 'e' || p[0] == 'n') {
        return (a == b) == (p[0] == 'e');
    }
    bool below = p[0] == 's' ? signed_of(e, 0) < signed_of(e, 1) : a < b;
    if (strcmp(p + 1, "lt") == 0) {
        return below;
    }
    if (strcmp(p + 1, "le") == 0) {
        return below || a == b;
    }
    return strcmp(p + 1, "gt") == 0 ? !below && a != b : !below;
}

static void meaning_compare(interpreter_element *e) {
    e->out[0] = exact(compare_integers(lilac_tile_find_text(&e->op->attributes, "predicate"), e));
}

/* ---- divisions -------------------------------------------------------------------------- */

/* A division by zero traps; the result of the least integer divided by -1 is unspecified. */
static bool can_divide(interpreter_element *e, bool is_signed) {
    e->out[0] = OPEN;
    e->trap = bits_of(e, 1) == 0;
    return !e->trap && !(is_signed && signed_of(e, 1) == -1 &&
                         bits_of(e, 0) == (uint64_t)1 << (width_of(e) - 1));
}

static void meaning_div_s(interpreter_element *e) {
    if (can_divide(e, true)) {
        give(e, (uint64_t)(signed_of(e, 0) / signed_of(e, 1)));
    }
}

static void meaning_rem_s(interpreter_element *e) {
    if (can_divide(e, true)) {
        give(e, (uint64_t)(signed_of(e, 0) % signed_of(e, 1)));
    }
}

static void meaning_div_u(interpreter_element *e) {
    if (can_divide(e, false)) {
        give(e, bits_of(e, 0) / bits_of(e, 1));
    }
}

static void meaning_rem_u(interpreter_element *e) {
    if (can_divide(e, false)) {
        give(e, bits_of(e, 0) % bits_of(e, 1));
    }
}

static void meaning_ceil_div_u(interpreter_element *e) {
    if (can_divide(e, false)) {
        give(e, bits_of(e, 0) / bits_of(e, 1) + (bits_of(e, 0) % bits_of(e, 1) != 0));
    }
}

/* Rounds down if `negative`, else up: an inexact quotient of that sign moves away from zero by one. */
static void divide_rounded(interpreter_element *e, bool negative) {
    if (can_divide(e, true)) {
        int64_t x = signed_of(e, 0), y = signed_of(e, 1);
        bool moves = x % y != 0 && ((x < 0) != (y < 0)) == negative;
        give(e, (uint64_t)(x / y + (!moves ? 0 : negative ? -1 : 1)));
    }
}

static void meaning_ceil_div_s(interpreter_element *e) {
    divide_rounded(e, false);
}

static void meaning_floor_div_s(interpreter_element *e) {
    divide_rounded(e, true);
}

/* ---- pointers --------------------------------------------------------------------------- */

void interpreter_pointer_sum(interpreter_element *e) {
    const lilac_tile_type *offset = lilac_tile_element(e->op->operands[1].value->type);
    uint64_t unit = (lilac_tile_element_bits(e->from->element) + 7) / 8;
    int64_t by = lilac_scalar_signed(offset->scalar, e->in[1].bits);
    e->out[0] = exact(e->in[0].bits + (uint64_t)by * unit);
    e->out[0].error = e->in[0].error + e->in[1].error;
}

/* ---- the table -------------------------------------------------------------------------- */

static interpreter_meaning *const meanings[LILAC_TILE_OP_COUNT] = {
#define INTEGER(code, neutral, narrow, compute, instruction, bits, meaning)                        \
    [LILAC_TILE_OP_##code] = meaning,
#include <lilac/operations.def>
};

interpreter_meaning *interpreter_integer_meaning(lilac_tile_opcode code) {
    return meanings[code];
}
