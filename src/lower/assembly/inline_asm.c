/* Inline assembly: PTX on `packed_element` registers at a time.
 *
 *   i8 x 4, constraints "=r,=r,r"       registers 0 1 2 3 ─▶ one word ─▶ $2
 *                                       $0, $1 ─▶ two words of 2 x f16 ─▶ registers 0 1 2 3
 *
 * Elements under 32 bits of one group are packed into words. The letter of a constraint selects
 * the register of a word: h has 16 bits, r and f have 32, l and d have 64, b is a predicate.
 *
 * If all instructions of the assembly are known, they become SIMT operations. Otherwise the text
 * becomes inline assembly of SIMT IR, which each thread executes once for each group. A scalar
 * result is broadcast from thread 0 if the results of threads may differ. */
#include "inline_asm.h"
#include "memory/access.h"
#include "operations.h"

#include <string.h>

/* ---- constraints ------------------------------------------------------------------------- */

typedef struct constraints {
    uint32_t results, operands;
    lilac_simt_type types[LILAC_LOWER_MOST_ASM]; /* results, then operands */
} constraints;

static bool class_type(char letter, lilac_simt_type *type) {
    switch (letter) {
    case 'b':
        *type = LILAC_SIMT_I1;
        return true;
    case 'h':
        *type = LILAC_SIMT_I16;
        return true;
    case 'r':
        *type = LILAC_SIMT_I32;
        return true;
    case 'l':
        *type = LILAC_SIMT_I64;
        return true;
    case 'f':
        *type = LILAC_SIMT_F32;
        return true;
    case 'd':
        *type = LILAC_SIMT_F64;
        return true;
    default:
        return false;
    }
}

static bool refuse_constraint(lilac_lowering *l, const char *at, size_t length) {
    return lilac_lower_refuse(
        l, "unsupported-operation",
        "inline assembly with the constraint '%.*s' cannot be lowered; expected at "
        "most 64 of =b, =h, =r, =l, =f, =d, then the same letters without =",
        (int)length, at);
}

static bool read_constraints(lilac_lowering *l, const char *text, constraints *c) {
    *c = (constraints){0};
    for (const char *at = text; *at != 0;) {
        at += strspn(at, " ,");
        size_t length = strcspn(at, ",");
        const char *end = at + length;
        if (length == 0) {
            break;
        }
        if (*at == '~') { /* a clobber: inline assembly of PTX has registers of its own */
            at = end;
            continue;
        }
        bool result = *at == '=';
        const char *letter = at + result + (result && at[1] == '&');
        uint32_t number = c->results + c->operands;
        while (end > letter + 1 && end[-1] == ' ') {
            end--;
        }
        if (end != letter + 1 || number == LILAC_LOWER_MOST_ASM || (result && c->operands > 0) ||
            !class_type(*letter, &c->types[number])) {
            return refuse_constraint(l, at, length);
        }
        *(result ? &c->results : &c->operands) += 1;
        at += length;
    }
    return true;
}

/* ---- words ------------------------------------------------------------------------------- */

static lilac_simt_type integer_type(uint32_t bits) {
    return bits == 1    ? LILAC_SIMT_I1
           : bits == 8  ? LILAC_SIMT_I8
           : bits == 16 ? LILAC_SIMT_I16
           : bits == 32 ? LILAC_SIMT_I32
                        : LILAC_SIMT_I64;
}

/* The same bits as a value of this type, zero-extended or truncated. */
static lilac_simt_value as_type(lilac_lowering *l, lilac_simt_value value, lilac_simt_type type) {
    lilac_simt_builder *b = &l->builder;
    lilac_simt_type from = lilac_simt_type_of(l->kernel, value);
    uint32_t bits = lilac_simt_type_bits(from), wanted = lilac_simt_type_bits(type);
    if (from == type) {
        return value;
    }
    if (bits != wanted) {
        if (lilac_simt_type_is_float(from)) {
            value = lilac_simt_op1(b, LILAC_SIMT_OP_BITCAST, integer_type(bits), value);
        }
        value = lilac_simt_op1(b, bits < wanted ? LILAC_SIMT_OP_ZEXT : LILAC_SIMT_OP_TRUNC,
                               integer_type(wanted), value);
        from = integer_type(wanted);
    }
    return from == type ? value : lilac_simt_op1(b, LILAC_SIMT_OP_BITCAST, type, value);
}

/* The number of elements of a type in one word, for groups of `packed` elements. */
static uint32_t elements_of_word(lilac_simt_type type, uint32_t packed) {
    uint32_t bits = lilac_simt_type_bits(type);
    uint32_t most = bits < 8 || bits >= 32 ? 1 : 32 / bits;
    return most < packed ? most : packed;
}

/* ---- groups ------------------------------------------------------------------------------ */

typedef struct group {
    const lilac_tile_op *op;
    const constraints *c;
    const lilac_lower_value *operands[LILAC_LOWER_MOST_ASM];
    const uint32_t *sources[LILAC_LOWER_MOST_ASM];
    lilac_lower_value *results[LILAC_LOWER_MOST_ASM];
    uint32_t packed;
    bool pure;
} group;

/* Does the register of each constraint hold its word, and is there one constraint for each word? */
static bool check_words(lilac_lowering *l, const group *g) {
    uint32_t n = 0;
    for (uint32_t side = 0; side < 2; side++) {
        uint32_t count = side == 0 ? g->op->result_count : g->op->operand_count;
        for (uint32_t k = 0; k < count; k++) {
            lilac_simt_type type = side == 0 ? g->results[k]->simt : g->operands[k]->simt;
            uint32_t each = elements_of_word(type, g->packed);
            for (uint32_t e = 0; e < g->packed; e += each, n++) {
                if (n < g->c->results + g->c->operands &&
                    lilac_simt_type_bits(g->c->types[n]) < lilac_simt_type_bits(type) * each) {
                    return lilac_lower_unsupported(
                        l, "register $%u has %u bits; its elements need %u", n,
                        lilac_simt_type_bits(g->c->types[n]), lilac_simt_type_bits(type) * each);
                }
            }
        }
        if (n != g->c->results + (side == 0 ? 0 : g->c->operands)) {
            bool outputs = side == 0;
            return lilac_lower_unsupported(l, "it needs %u %s registers; its constraints name %u",
                                           outputs ? n : n - g->c->results,
                                           outputs ? "result" : "operand",
                                           outputs ? g->c->results : g->c->operands);
        }
    }
    return true;
}

/* Is every $n one of the words, and every other dollar sign doubled? */
static bool check_text(lilac_lowering *l, const char *text, uint32_t words) {
    for (const char *at = strchr(text, '$'); at != NULL; at = strchr(at, '$')) {
        uint32_t number = 0;
        const char *begin = ++at;
        if (*at == '$') {
            at++;
            continue;
        }
        while (*at >= '0' && *at <= '9' && number < LILAC_LOWER_MOST_ASM) {
            number = number * 10 + (uint32_t)(*at++ - '0');
        }
        if (at == begin) {
            return lilac_lower_unsupported(
                l, "its text has a $ that is followed by neither a number nor another $");
        }
        if (number >= words) {
            return lilac_lower_unsupported(l,
                                           "its text refers to $%u; its constraints name %u "
                                           "registers, counted from $0",
                                           number, words);
        }
    }
    return true;
}

static void gather(lilac_lowering *l, const group *g, uint32_t first, lilac_lower_asm *piece) {
    piece->operands = 0;
    for (uint32_t k = 0; k < g->op->operand_count; k++) {
        const lilac_lower_value *operand = g->operands[k];
        uint32_t last = g->results[0] != NULL ? g->results[0]->count : g->operands[0]->count;
        uint32_t each = elements_of_word(operand->simt, g->packed);
        for (uint32_t e = 0; e < g->packed; e += each) {
            lilac_simt_value parts[4];
            for (uint32_t p = 0; p < each; p++) {
                uint32_t r = first + e + p < last ? first + e + p : last - 1;
                parts[p] =
                    lilac_lower_get(l, operand, lilac_lower_index(operand, g->sources[k], r));
            }
            lilac_simt_value word = parts[0];
            if (each > 1) {
                uint32_t bits = lilac_simt_type_bits(operand->simt) * each;
                word = lilac_simt_pack(&l->builder, integer_type(bits), each, parts);
            }
            lilac_simt_type type = g->c->types[g->c->results + piece->operands];
            piece->values[piece->operands++] = as_type(l, word, type);
        }
    }
}

static void scatter(lilac_lowering *l, const group *g, uint32_t first,
                    const lilac_lower_asm *piece) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < g->op->result_count; k++) {
        lilac_lower_value *result = g->results[k];
        uint32_t each = elements_of_word(result->simt, g->packed);
        uint32_t bits = lilac_simt_type_bits(result->simt);
        for (uint32_t e = 0; e < g->packed; e += each, n++) {
            lilac_simt_value parts[4] = {0};
            if (each > 1) {
                lilac_simt_value word = as_type(l, piece->outcome[n], integer_type(bits * each));
                lilac_simt_unpack(&l->builder, result->simt, word, each, parts);
            } else {
                parts[0] = as_type(l, piece->outcome[n], result->simt);
            }
            for (uint32_t p = 0; p < each && first + e + p < result->count; p++) {
                result->base[first + e + p] = parts[p];
            }
        }
    }
}

/* Builds the operations or the inline assembly. Inline assembly has uniform results if it is
 * pure, its operands are uniform and its text names no special register. */
static void run(lilac_lowering *l, const group *g, lilac_lower_asm *piece) {
    lilac_simt_builder before = l->builder;
    if (lilac_lower_translate_asm(l, piece)) {
        return;
    }
    l->builder.body = before.body;
    lilac_simt_instruction like = {.code = g->pure ? LILAC_SIMT_OP_ASM : LILAC_SIMT_OP_ASM_VOLATILE,
                                   .text = piece->text};
    lilac_simt_value made = lilac_simt_build(&l->builder, &like, piece->operands, piece->values,
                                             piece->results, piece->types);
    bool uniform = g->pure && strchr(piece->text, '%') == NULL;
    for (uint32_t k = 0; k < piece->operands; k++) {
        uniform &= l->kernel->values[piece->values[k]].uniform;
    }
    for (uint32_t k = 0; k < piece->results; k++) {
        piece->outcome[k] = made + k;
        if (uniform) {
            lilac_simt_mark_uniform(l->kernel, made + k);
        }
    }
}

/* Defines the results and aligns the operands. *view: the layout of all, or NULL for scalars. */
static bool read_values(lilac_lowering *l, group *g, const lilac_lower_view **view) {
    const lilac_tile_op *op = g->op;
    *view = NULL;
    for (uint32_t k = 0; k < op->result_count; k++) {
        g->results[k] = lilac_lower_result(l, op, k);
        if (g->results[k] == NULL) {
            return false;
        }
        *view = g->results[0]->view;
        if (g->results[k]->view != *view) {
            return lilac_lower_refuse(
                l, "layout-conversion",
                "result %u of inline assembly has another layout than result 0", k);
        }
    }
    for (uint32_t k = 0; k < op->operand_count; k++) {
        g->operands[k] = lilac_lower_operand(l, op, k);
        if (op->result_count == 0 && k == 0) {
            *view = g->operands[0]->view;
        }
        if (!lilac_lower_align(l, g->operands[k], *view, &g->sources[k])) {
            return false;
        }
    }
    return true;
}

static bool has_uses(const lilac_tile_op *op) {
    for (uint32_t k = 0; k < op->result_count; k++) {
        if (op->results[k].uses != NULL) {
            return true;
        }
    }
    return false;
}

bool lilac_lower_inline_asm(lilac_lowering *l, const lilac_tile_op *op) {
    constraints c;
    lilac_name list = lilac_tile_find_text(&op->attributes, "constraints");
    lilac_name text = lilac_lower_text(l, op, "asm_string");
    int64_t packed = lilac_tile_find_integer(&op->attributes, "packed_element", 1);
    if (list == NULL || text == NULL) {
        return lilac_lower_bad_attribute(l, list == NULL ? "constraints" : "asm_string",
                                         "a string");
    }
    if (packed < 1 || packed > 32) {
        return lilac_lower_bad_attribute(l, "packed_element", "a number from 1 to 32");
    }
    if (op->operand_count > LILAC_LOWER_MOST_ASM || op->result_count > LILAC_LOWER_MOST_ASM) {
        return lilac_lower_unsupported(
            l, "it has %u operands and %u results; expected at most %d of each", op->operand_count,
            op->result_count, LILAC_LOWER_MOST_ASM);
    }
    if (!read_constraints(l, list, &c)) {
        return false;
    }
    group g = {.op = op,
               .c = &c,
               .packed = (uint32_t)packed,
               .pure = lilac_tile_find_integer(&op->attributes, "pure", 0) != 0};
    const lilac_lower_view *view;
    if (!read_values(l, &g, &view)) {
        return false;
    }
    if (!check_words(l, &g) || !check_text(l, text, c.results + c.operands)) {
        return false;
    }
    lilac_lower_asm piece = {.text = text, .results = c.results};
    memcpy(piece.types, c.types, sizeof *c.types * c.results);
    uint32_t count = view == NULL ? 1 : view->count;
    for (uint32_t r = 0; r < count; r += g.packed) {
        if (g.packed == 1 && g.pure && view != NULL && view->canonical[r] != r) {
            for (uint32_t k = 0; k < op->result_count; k++) {
                g.results[k]->base[r] = g.results[k]->base[view->canonical[r]];
            }
            continue;
        }
        gather(l, &g, r, &piece);
        run(l, &g, &piece);
        scatter(l, &g, r, &piece);
    }
    for (uint32_t k = 0; view == NULL && has_uses(op) && k < op->result_count; k++) {
        lilac_simt_value *value = &g.results[k]->base[0];
        if (!l->kernel->values[*value].uniform && !lilac_lower_broadcast_copies(l, NULL, value)) {
            return false;
        }
    }
    return true;
}
