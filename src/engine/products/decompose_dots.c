/* decompose_dots: products that no matrix instruction computes become products that one does.
 *
 *     %d = tt.dot_scaled %a scale %s, %b, %c          decompose_scaled_dots.c
 *
 *     %d = tt.dot %a, %b, %c,                    →    %ah = cvt.rna.tf32 %a        %al = %a - %ah
 *          inputPrecision = tf32x3                    %bh = cvt.rna.tf32 %b        %bl = %b - %bh
 *                                                     %0 = tt.dot %al, %bh, 0      in tf32
 *                                                     %1 = tt.dot %ah, %bl, %0
 *                                                     %2 = select %1 is NaN, 0, %1
 *                                                     %3 = tt.dot %ah, %bh, %2
 *                                                     %d = %3 + %c
 *
 *     %d = tt.dot %a, %b, %c : f8                →    %d = tt.dot (f16 %a), (f16 %b), %c
 *
 * Splitting. With p pieces, a = a0 + a1 + … + r. Piece a0 is a rounded to tf32 or bf16, a1 is the rest
 * rounded, and so on; the subtractions are exact. The terms ai · bj with the smallest ones left out are
 * accumulated from small to large:
 *
 *     tf32x3, bf16x3    a1 b0, a0 b1, a0 b0
 *     bf16x6            a1 b1, a2 b0, a0 b2, a1 b0, a0 b1, a0 b0
 *
 * If a or b is infinite, so is its first piece, and the others are NaN. Then a0 · b0 alone is the
 * product: the sum of the smaller terms is replaced by zero where it is NaN. `ieee` and `tf32` remain.
 *
 * 8-bit floats. Every kind is a subset of f16. Operands are converted to f16, or to the type of an
 * operand that is wider, if the device has no mma and no wgmma for both of their types.
 *
 * Dots whose tensors have layouts remain as they are. */
#include "products/decompose_dots.h"
#include "products/dot_operands.h"

#include <lilac/matrix.h>

#include <string.h>

/* ---- new operations --------------------------------------------------------------------- */

const lilac_tile_type *lilac_dots_shaped(const dot_builder *b, const lilac_tile_type *type,
                                         uint32_t rank, const int64_t *shape) {
    return lilac_tile_tensor(b->module, lilac_tile_element(type), rank, shape, NULL);
}

const lilac_tile_type *lilac_dots_elements(const dot_builder *b, const lilac_tile_type *type,
                                           lilac_scalar scalar) {
    return lilac_tile_tensor(b->module, lilac_tile_scalar(b->module, scalar), type->rank,
                             type->shape, NULL);
}

static lilac_tile_value *insert(const dot_builder *b, lilac_tile_opcode code,
                                const lilac_tile_type *type, uint32_t count,
                                lilac_tile_value *const *operands) {
    lilac_tile_op *op =
        lilac_tile_op_create(b->module, code, count, operands, 1, &type, 0, b->place->location);
    op->position = b->place->position;
    lilac_tile_insert_before(b->place, op);
    return &op->results[0];
}

lilac_tile_value *lilac_dots_unary(const dot_builder *b, lilac_tile_opcode code,
                                   const lilac_tile_type *type, lilac_tile_value *x) {
    return insert(b, code, type, 1, &x);
}

lilac_tile_value *lilac_dots_binary(const dot_builder *b, lilac_tile_opcode code,
                                    lilac_tile_value *x, lilac_tile_value *y) {
    return insert(b, code, x->type, 2, (lilac_tile_value *[]){x, y});
}

lilac_tile_value *lilac_dots_ternary(const dot_builder *b, lilac_tile_opcode code,
                                     const lilac_tile_type *type,
                                     lilac_tile_value *const operands[3]) {
    return insert(b, code, type, 3, operands);
}

lilac_tile_value *lilac_dots_compare(const dot_builder *b, lilac_tile_opcode code,
                                     const char *predicate, lilac_tile_value *x,
                                     lilac_tile_value *y) {
    const lilac_tile_type *type = lilac_dots_elements(b, x->type, LILAC_I1);
    lilac_tile_value *result = insert(b, code, type, 2, (lilac_tile_value *[]){x, y});
    lilac_dots_text(b, result, LILAC_TILE_ATTR_KEYWORD, "predicate", predicate);
    return result;
}

lilac_tile_value *lilac_dots_constant(const dot_builder *b, const lilac_tile_type *type,
                                      int64_t bits) {
    return &lilac_engine_make_constant(b->module, b->place, type, bits)->results[0];
}

lilac_tile_value *lilac_dots_convert(const dot_builder *b, lilac_tile_value *x, lilac_scalar to) {
    const lilac_scalar from = lilac_tile_element(x->type)->scalar;
    const uint32_t before = lilac_scalar_bits(from), after = lilac_scalar_bits(to);
    if (from == to) {
        return x;
    }
    if (before == after) { /* between bf16 and f16 */
        return lilac_dots_convert(b, lilac_dots_convert(b, x, LILAC_F32), to);
    }
    const lilac_tile_opcode code = before == 8      ? LILAC_TILE_OP_TT_FP_TO_FP
                                   : before < after ? LILAC_TILE_OP_ARITH_EXTF
                                                    : LILAC_TILE_OP_ARITH_TRUNCF;
    return lilac_dots_unary(b, code, lilac_dots_elements(b, x->type, to), x);
}

void lilac_dots_integer(const dot_builder *b, lilac_tile_value *value, const char *name,
                        int64_t integer) {
    lilac_tile_set_attribute(
        b->module, &value->op->attributes,
        &(lilac_tile_attribute){.kind = LILAC_TILE_ATTR_INTEGER,
                                .name = lilac_intern_string(b->module->context, name),
                                .type = lilac_tile_scalar(b->module, LILAC_I32),
                                .integer = integer});
}

void lilac_dots_text(const dot_builder *b, lilac_tile_value *value, lilac_tile_attribute_kind kind,
                     const char *name, const char *text) {
    lilac_tile_set_attribute(
        b->module, &value->op->attributes,
        &(lilac_tile_attribute){.kind = kind,
                                .name = lilac_intern_string(b->module->context, name),
                                .text = lilac_intern_string(b->module->context, text)});
}

void lilac_dots_integers(const dot_builder *b, lilac_tile_value *value, const char *name,
                         uint32_t count, const int64_t *integers) {
    int64_t *copy = lilac_arena_array(b->module->arena, int64_t, count);
    memcpy(copy, integers, count * sizeof *copy);
    lilac_tile_set_attribute(
        b->module, &value->op->attributes,
        &(lilac_tile_attribute){.kind = LILAC_TILE_ATTR_INTEGERS,
                                .name = lilac_intern_string(b->module->context, name),
                                .type = lilac_tile_scalar(b->module, LILAC_I32),
                                .count = count,
                                .integers = copy});
}

/* ---- products of f32 as several products ------------------------------------------------- */

enum { MOST_PIECES = 3, MOST_TERMS = 6 };

/* `terms`: the pieces of A and B in each product, in the order of accumulation. */
typedef struct splitting {
    const char *precision;
    bool tf32; /* or bf16 */
    uint32_t pieces, terms;
    uint8_t term[MOST_TERMS][2];
} splitting;

static const splitting splittings[] = {
    {"tf32x3", true, 2, 3, {{1, 0}, {0, 1}, {0, 0}}},
    {"bf16x3", false, 2, 3, {{1, 0}, {0, 1}, {0, 0}}},
    {"bf16x6", false, 3, 6, {{1, 1}, {2, 0}, {0, 2}, {1, 0}, {0, 1}, {0, 0}}},
};

static lilac_scalar scalar_of(const lilac_tile_value *value) {
    const lilac_tile_type *element = lilac_tile_element(value->type);
    return element->kind == LILAC_TILE_SCALAR ? element->scalar : LILAC_I64;
}

/* NULL: the dot remains one product. */
static const splitting *splitting_of(const lilac_tile_op *op) {
    lilac_name precision = lilac_tile_find_text(&op->attributes, "inputPrecision");
    for (uint32_t i = 0; precision != NULL && i < sizeof splittings / sizeof *splittings; i++) {
        if (strcmp(precision, splittings[i].precision) == 0 &&
            scalar_of(op->operands[0].value) == LILAC_F32 &&
            scalar_of(op->operands[1].value) == LILAC_F32) {
            return &splittings[i];
        }
    }
    return NULL;
}

static lilac_tile_value *round_to_tf32(const dot_builder *b, lilac_tile_value *x) {
    lilac_tile_value *rounded =
        lilac_dots_unary(b, LILAC_TILE_OP_TT_ELEMENTWISE_INLINE_ASM, x->type, x);
    lilac_dots_text(b, rounded, LILAC_TILE_ATTR_STRING, "asm_string", "cvt.rna.tf32.f32 $0, $1;");
    lilac_dots_text(b, rounded, LILAC_TILE_ATTR_STRING, "constraints", "=r,r");
    lilac_dots_integer(b, rounded, "packed_element", 1);
    lilac_tile_set_attribute(
        b->module, &rounded->op->attributes,
        &(lilac_tile_attribute){.kind = LILAC_TILE_ATTR_BOOL,
                                .name = lilac_intern_string(b->module->context, "pure"),
                                .type = lilac_tile_scalar(b->module, LILAC_I1),
                                .integer = 1});
    return rounded;
}

static void split(const dot_builder *b, const splitting *how, lilac_tile_value *x,
                  lilac_tile_value *pieces[MOST_PIECES]) {
    for (uint32_t i = 0; i < how->pieces; i++) {
        const bool last = i + 1 == how->pieces;
        lilac_tile_value *wide = NULL;
        if (how->tf32) { /* the instruction truncates the last piece */
            pieces[i] = wide = last ? x : round_to_tf32(b, x);
        } else {
            pieces[i] = lilac_dots_convert(b, x, LILAC_BF16);
            wide = last ? NULL : lilac_dots_convert(b, pieces[i], LILAC_F32);
        }
        x = last ? x : lilac_dots_binary(b, LILAC_TILE_OP_ARITH_SUBF, x, wide);
    }
}

/* A dot with the attributes of the original one except for its precision. */
static lilac_tile_value *piece_product(const dot_builder *b, const splitting *how,
                                       lilac_tile_value *const operands[3]) {
    lilac_tile_value *dot =
        lilac_dots_ternary(b, LILAC_TILE_OP_TT_DOT, operands[2]->type, operands);
    for (uint32_t i = 0; i < b->place->attributes.count; i++) {
        const lilac_tile_attribute *attribute = &b->place->attributes.list[i];
        if (strcmp(attribute->name, "inputPrecision") != 0) {
            lilac_tile_set_attribute(b->module, &dot->op->attributes, attribute);
        }
    }
    if (how->tf32) {
        lilac_dots_text(b, dot, LILAC_TILE_ATTR_KEYWORD, "inputPrecision", "tf32");
    }
    return dot;
}

static lilac_tile_value *product_of_pieces(const dot_builder *b, const splitting *how) {
    lilac_tile_value *x[2][MOST_PIECES], *c = b->place->operands[2].value;
    for (uint32_t i = 0; i < 2; i++) {
        split(b, how, b->place->operands[i].value, x[i]);
    }
    lilac_tile_value *zero = lilac_dots_constant(b, c->type, 0), *sum = zero;
    for (uint32_t t = 0; t < how->terms; t++) {
        if (t + 1 == how->terms) {
            lilac_tile_value *is_nan =
                lilac_dots_compare(b, LILAC_TILE_OP_ARITH_CMPF, "uno", sum, sum);
            sum = lilac_dots_ternary(b, LILAC_TILE_OP_ARITH_SELECT, sum->type,
                                     (lilac_tile_value *[]){is_nan, zero, sum});
        }
        sum = piece_product(
            b, how, (lilac_tile_value *[]){x[0][how->term[t][0]], x[1][how->term[t][1]], sum});
    }
    return lilac_dots_binary(b, LILAC_TILE_OP_ARITH_ADDF, sum, c);
}

/* ---- 8-bit floats ------------------------------------------------------------------------ */

static bool is_narrow(lilac_scalar scalar) {
    return lilac_scalar_is_float(scalar) && lilac_scalar_bits(scalar) == 8;
}

static lilac_matrix_type matrix_type_of(lilac_scalar scalar) {
    switch (scalar) {
    case LILAC_F8E4M3FN:
        return LILAC_MATRIX_E4M3;
    case LILAC_F8E5M2:
        return LILAC_MATRIX_E5M2;
    case LILAC_F16:
        return LILAC_MATRIX_F16;
    case LILAC_F32:
        return LILAC_MATRIX_F32;
    default:
        return LILAC_MATRIX_NONE;
    }
}

/* Has the device a matrix instruction for these types? */
static bool has_instruction(const lilac_arch *arch, const lilac_tile_op *op) {
    const lilac_matrix_type a = matrix_type_of(scalar_of(op->operands[0].value));
    const lilac_matrix_type b = matrix_type_of(scalar_of(op->operands[1].value));
    const lilac_matrix_type d = matrix_type_of(scalar_of(&op->results[0]));
    const lilac_matrix_type kind = lilac_matrix_type_class(a);
    if (a == LILAC_MATRIX_NONE || kind != lilac_matrix_type_class(b)) {
        return false;
    }
    for (size_t i = 0; lilac_mma_at(i) != NULL; i++) {
        const lilac_mma *row = lilac_mma_at(i);
        if (row->kind == kind && row->d == d && lilac_mma_has(arch, row)) {
            return true;
        }
    }
    for (size_t i = 0; lilac_arch_has(arch, LILAC_HAS_WGMMA) && lilac_wgmma_at(i) != NULL; i++) {
        if (lilac_wgmma_at(i)->kind == kind && lilac_wgmma_at(i)->d == d) {
            return true;
        }
    }
    return false;
}

/* The type that both operands are converted to. False: they remain. */
static bool wider_type(const lilac_tile_op *op, const lilac_target *target, lilac_scalar *result) {
    const lilac_scalar a = scalar_of(op->operands[0].value), b = scalar_of(op->operands[1].value);
    if ((!is_narrow(a) && !is_narrow(b)) || has_instruction(target->arch, op)) {
        return false;
    }
    *result = !is_narrow(a) ? a : !is_narrow(b) ? b : LILAC_F16;
    return lilac_scalar_is_float(*result);
}

static lilac_tile_value *widened(const dot_builder *b, lilac_scalar to) {
    lilac_tile_op *dot = lilac_tile_clone(b->module, b->place);
    for (uint32_t i = 0; i < 2; i++) {
        lilac_tile_set_operand(dot, i, lilac_dots_convert(b, b->place->operands[i].value, to));
    }
    lilac_tile_insert_before(b->place, dot);
    return &dot->results[0];
}

/* ---- the pass ---------------------------------------------------------------------------- */

/* The dots without layouts, in program order. */
typedef struct dot_list {
    lilac_arena *arena;
    lilac_tile_op **ops;
    uint32_t count, capacity;
} dot_list;

static void list_dot(void *data, lilac_tile_op *op) {
    dot_list *list = data;
    if (!lilac_dot_is_product(op) || op->results[0].type->layout != NULL) {
        return;
    }
    if (list->count == list->capacity) {
        const uint32_t capacity = 2 * list->capacity + 16;
        lilac_tile_op **ops = lilac_arena_array(list->arena, lilac_tile_op *, capacity);
        if (list->count > 0) {
            memcpy(ops, list->ops, list->count * sizeof *ops);
        }
        list->ops = ops;
        list->capacity = capacity;
    }
    list->ops[list->count++] = op;
}

/* Replaces one operation. `with`: NULL, after a diagnostic; the operation's own result, if it
 * remains. */
static bool rewrite(lilac_tile_op *op, lilac_tile_value *with, bool *changed) {
    if (with == NULL) {
        return false;
    }
    if (with != &op->results[0]) {
        with->name = op->results[0].name;
        lilac_tile_replace_uses(&op->results[0], with);
        lilac_tile_remove(op);
        *changed = true;
    }
    return true;
}

static lilac_tile_value *decomposed(lilac_tile_module *module, const lilac_target *target,
                                    lilac_tile_op *op) {
    const dot_builder b = {module, op};
    lilac_scalar wider;
    if (op->code == LILAC_TILE_OP_TT_DOT_SCALED) {
        return lilac_dots_unscaled(&b, op);
    }
    const splitting *how = splitting_of(op);
    if (how != NULL) {
        return product_of_pieces(&b, how);
    }
    return wider_type(op, target, &wider) ? widened(&b, wider) : &op->results[0];
}

bool lilac_engine_decompose_dots(lilac_tile_module *module, const lilac_target *target,
                                 bool *changed) {
    dot_list list = {.arena = lilac_arena_create()};
    bool good = true;
    *changed = false;
    for (lilac_tile_function *f = module->functions; f != NULL; f = f->next) {
        if (f->body != NULL) {
            lilac_tile_walk(f->body, list_dot, &list);
        }
    }
    for (uint32_t i = 0; i < list.count; i++) {
        good = rewrite(list.ops[i], decomposed(module, target, list.ops[i]), changed) && good;
    }
    lilac_arena_destroy(list.arena);
    return good;
}
