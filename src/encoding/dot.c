/* encoding: operands of tt.dot.
 *
 * How an operand lies is its parent's business, so the row of the parent's kind says it. The
 * contracted dimension K is the last of operand 0 and the last but one of operand 1; blocks do not
 * split it, since each needs all of it.
 */
#include "internal.h"

bool lilac_encoding_dot_operand_read(lilac_encoding_reader *r, lilac_encoding *encoding) {
    lilac_encoding_rank none = {false, 0};
    lilac_encoding_param params[] = {
        LILAC_ENCODING_REQUIRED("opIdx", lilac_encoding_read_number, &encoding->as.dot.operand),
        LILAC_ENCODING_REQUIRED("parent", lilac_encoding_read_parent, &encoding->as.dot.parent),
        LILAC_ENCODING_OPTIONAL("kWidth", lilac_encoding_read_size, &encoding->as.dot.k_width),
    };
    if (!lilac_encoding_read_attribute(r, encoding->position, params, 3, &none)) {
        return false;
    }
    const lilac_encoding *parent = encoding->as.dot.parent;
    if (encoding->as.dot.operand > 1) {
        return lilac_scanner_refuse(r->scanner, params[0].position, "layout-dot-operand",
                                    "there is no operand %u, only 0 and 1",
                                    encoding->as.dot.operand);
    }
    if (lilac_encoding_row_of(parent->kind)->dot_layout == NULL) {
        return lilac_scanner_refuse(r->scanner, params[1].position, "layout-dot-parent",
                                    "a layout of kind '#%s' has no operands",
                                    lilac_encoding_row_of(parent->kind)->spelling);
    }
    if (parent->rank < 2) {
        return lilac_scanner_refuse(r->scanner, params[1].position, "layout-rank",
                                    "a dot operand has two dimensions at least, its parent %u",
                                    parent->rank);
    }
    bool blocked = parent->kind == LILAC_ENCODING_BLOCKED;
    if (blocked == params[2].given) {
        return lilac_scanner_refuse(r->scanner, encoding->position, "layout-dot-k-width",
                                    blocked ? "operands of a blocked layout have no kWidth"
                                            : "operands of this parent need a kWidth");
    }
    encoding->rank = parent->rank;
    return true;
}

void lilac_encoding_dot_operand_print(lilac_text *out, const lilac_encoding *encoding) {
    lilac_text_printf(out, "<{opIdx = %u, parent = ", encoding->as.dot.operand);
    lilac_encoding_print(out, encoding->as.dot.parent);
    if (encoding->as.dot.k_width != 0) {
        lilac_text_printf(out, ", kWidth = %u", encoding->as.dot.k_width);
    }
    lilac_text_puts(out, "}>");
}

bool lilac_encoding_dot_operand_layout(lilac_context *context, lilac_layout *result,
                                       const lilac_encoding *encoding,
                                       const lilac_encoding_shape *shape) {
    return lilac_encoding_row_of(encoding->as.dot.parent->kind)
        ->dot_layout(context, result, encoding, shape);
}

uint32_t lilac_encoding_dot_k(const lilac_encoding *dot) {
    return dot->as.dot.operand == 0 ? dot->rank - 1 : dot->rank - 2;
}

void lilac_encoding_dot_blocks(lilac_encoding_blocks *result, const lilac_encoding *dot) {
    *result = dot->as.dot.parent->blocks;
    for (uint32_t k = 0; k < result->bits; k++) {
        result->basis[k][lilac_encoding_dot_k(dot)] = 0;
    }
}
