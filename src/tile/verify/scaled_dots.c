/* The factors of tt.dot_scaled, and the verifier's rules for it.
 *
 *     tt.dot_scaled %a scale %s, %b scale %t, %c lhs = e2m1 rhs = e4m3
 *
 *     A  M × K numbers      s  M × K/g scales      g = 16 or 32 numbers of a row have one scale
 *     B  K × N numbers      t  N × K/g scales
 *
 * Two e2m1 numbers share a byte, the first in its low four bits: along K, or with lhs_k_pack = false
 * along M, with rhs_k_pack = false along N. */
#include "verify/verify.h"

#include <string.h>

static const struct {
    const char *name;
    lilac_scalar element;
} elements[] = {{"e2m1", LILAC_F4E2M1FN},
                {"e4m3", LILAC_F8E4M3FN},
                {"e5m2", LILAC_F8E5M2},
                {"bf16", LILAC_BF16},
                {"fp16", LILAC_F16}};

bool lilac_tile_scaled_factor_get(lilac_tile_scaled_factor *factor, const lilac_tile_op *op,
                                  uint32_t index) {
    const char *const packs[] = {"lhs_k_pack", "rhs_k_pack"};
    const lilac_tile_attribute *sizes = lilac_tile_find(&op->attributes, "operandSegmentSizes");
    const bool has_a = sizes != NULL ? sizes->integers[3] != 0 : op->operand_count > 3;
    const bool has_b = sizes != NULL ? sizes->integers[4] != 0 : op->operand_count > 4;
    lilac_name name =
        lilac_tile_find_text(&op->attributes, index == 0 ? "a_elem_type" : "b_elem_type");
    *factor = (lilac_tile_scaled_factor){.value = op->operands[index].value};
    if (index == 0 ? has_a : has_b) {
        factor->scale = op->operands[index == 1 && has_a ? 4 : 3].value;
    }
    const uint32_t rank = factor->value->type->rank;
    factor->k_dim = index == 0 ? rank - 1 : rank - 2;
    factor->packed_dim = factor->k_dim;
    for (size_t i = 0; name != NULL && i < sizeof elements / sizeof *elements; i++) {
        if (strcmp(name, elements[i].name) == 0) {
            factor->element = elements[i].element;
            factor->packed = factor->element == LILAC_F4E2M1FN;
            if (!lilac_tile_find_integer(&op->attributes, packs[index], 1)) {
                factor->packed_dim = index == 0 ? rank - 2 : rank - 1;
            }
            return true;
        }
    }
    return false;
}

int64_t lilac_tile_scaled_factor_size(const lilac_tile_scaled_factor *factor, uint32_t dim) {
    return factor->value->type->shape[dim] * (factor->packed && dim == factor->packed_dim ? 2 : 1);
}

/* ---- the rules -------------------------------------------------------------------------- */

static bool refuse(const tile_verifier *verifier, const lilac_tile_op *op, const char *id,
                   const char *message) {
    tile_op_error(verifier->module, op, id, "'tt.dot_scaled' %s", message);
    return false;
}

/* Of numbers of 8 bits, the operand may be bytes. */
static bool has_elements(const lilac_tile_scaled_factor *factor) {
    const lilac_tile_type *element = lilac_tile_element(factor->value->type);
    return element->kind == LILAC_TILE_SCALAR &&
           ((element->scalar == LILAC_I8 && lilac_scalar_bits(factor->element) <= 8) ||
            element->scalar == factor->element);
}

/* The scales of A are M × K/g, those of B are N × K/g. */
static bool check_scale(const tile_verifier *verifier, const lilac_tile_op *op,
                        const lilac_tile_scaled_factor *factor, int64_t *group) {
    if (factor->scale == NULL) {
        return true;
    }
    const lilac_tile_type *scale = factor->scale->type, *element = lilac_tile_element(scale);
    const uint32_t rank = factor->value->type->rank;
    const uint32_t other = 2 * rank - 3 - factor->k_dim; /* M or N */
    if (element->kind != LILAC_TILE_SCALAR ||
        (element->scalar != LILAC_I8 && element->scalar != LILAC_F8E4M3FN)) {
        return refuse(verifier, op, "type-mismatch", "needs scales of type i8 or f8E4M3FN");
    }
    const int64_t depth = lilac_tile_scaled_factor_size(factor, factor->k_dim);
    bool good =
        scale->rank == rank && (rank == 2 || scale->shape[0] == factor->value->type->shape[0]);
    good = good && scale->shape[rank - 2] == lilac_tile_scaled_factor_size(factor, other);
    const int64_t found = good ? depth / scale->shape[rank - 1] : 0;
    good = good && found * scale->shape[rank - 1] == depth && (found == 16 || found == 32) &&
           (*group == 0 || *group == found);
    *group = found;
    if (!good) {
        tile_op_error(
            verifier->module, op, "shape-mismatch",
            "'tt.dot_scaled' has scales of type '%s' for a factor of type '%s'; each row of A "
            "and each column of B needs one scale for 16 or 32 numbers, the same for both",
            tile_type_text(verifier->module, scale),
            tile_type_text(verifier->module, factor->value->type));
    }
    return good;
}

bool tile_verify_dot_scaled(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *d = op->results[0].type;
    const uint32_t rank = d->rank;
    lilac_tile_scaled_factor factors[2];
    int64_t group = 0;
    bool good = rank == 2 || rank == 3;
    for (uint32_t i = 0; i < 2; i++) {
        const lilac_tile_type *type = op->operands[i].value->type;
        good = good && type->rank == rank && (rank == 2 || type->shape[0] == d->shape[0]);
    }
    if (!good) {
        return refuse(verifier, op, "shape-mismatch",
                      "needs factors and a result of rank 2, or of rank 3 and equal batches");
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (!lilac_tile_scaled_factor_get(&factors[i], op, i)) {
            return true; /* e2m3 and e3m2: refused by the pass that replaces the operation */
        }
        if (!has_elements(&factors[i])) {
            return refuse(verifier, op, "type-mismatch",
                          i == 0 ? "has an operand A whose elements are not what 'lhs' names"
                                 : "has an operand B whose elements are not what 'rhs' names");
        }
    }
    if (lilac_tile_scaled_factor_size(&factors[0], rank - 1) !=
            lilac_tile_scaled_factor_size(&factors[1], rank - 2) ||
        lilac_tile_scaled_factor_size(&factors[0], rank - 2) != d->shape[rank - 2] ||
        lilac_tile_scaled_factor_size(&factors[1], rank - 1) != d->shape[rank - 1]) {
        tile_op_error(verifier->module, op, "shape-mismatch",
                      "'tt.dot_scaled' cannot make '%s' of '%s' and '%s'",
                      tile_type_text(verifier->module, d),
                      tile_type_text(verifier->module, factors[0].value->type),
                      tile_type_text(verifier->module, factors[1].value->type));
        return false;
    }
    return check_scale(verifier, op, &factors[0], &group) &&
           check_scale(verifier, op, &factors[1], &group);
}
