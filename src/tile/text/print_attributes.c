/* Printing attributes: numbers with their types, strings, symbols, types, lists, dictionaries,
 * arrays of integers and dense tensors. read_attributes.c reads them. */
#include "internal.h"

#include <string.h>

static void print_name(lilac_text *out, lilac_name name) {
    bool bare =
        (name[0] >= 'a' && name[0] <= 'z') || (name[0] >= 'A' && name[0] <= 'Z') || name[0] == '_';
    for (const char *at = name; *at; at++) {
        bare &= (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                (*at >= '0' && *at <= '9') || *at == '_' || *at == '.' || *at == '$';
    }
    if (!bare) {
        lilac_text_char(out, '"');
    }
    lilac_text_puts(out, name);
    if (!bare) {
        lilac_text_char(out, '"');
    }
}

void tile_print_symbol(lilac_text *out, lilac_name name) {
    lilac_text_char(out, '@');
    print_name(out, name);
}

/* The bits of one element of a scalar type. */
static void print_bits(lilac_text *out, lilac_scalar scalar, int64_t bits) {
    if (scalar == LILAC_I1) {
        lilac_text_puts(out, bits & 1 ? "true" : "false");
    } else if (lilac_scalar_is_float(scalar)) {
        tile_print_float(out, scalar, (uint64_t)bits);
    } else if (lilac_scalar_bits(scalar) >= 64) {
        lilac_text_signed(out, bits);
    } else {
        lilac_text_signed(out, lilac_scalar_signed(scalar, (uint64_t)bits));
    }
}

/* Nested lists in the shape of the tensor; returns the elements printed. */
static uint32_t print_lists(lilac_text *out, const lilac_tile_attribute *dense, uint32_t dimension,
                            uint32_t at) {
    const lilac_tile_type *type = dense->type;
    if (dimension == type->rank) {
        print_bits(out, type->scalar, dense->integers[at]);
        return at + 1;
    }
    lilac_text_char(out, '[');
    for (int64_t i = 0; i < type->shape[dimension]; i++) {
        if (i) {
            lilac_text_puts(out, ", ");
        }
        at = print_lists(out, dense, dimension + 1, at);
    }
    lilac_text_char(out, ']');
    return at;
}

static void print_value(lilac_text *out, const lilac_tile_attribute *attribute, bool elide);

static void print_attribute(lilac_text *out, const lilac_tile_attribute *attribute) {
    print_name(out, attribute->name);
    if (attribute->kind == LILAC_TILE_ATTR_UNIT) {
        return;
    }
    lilac_text_puts(out, " = ");
    print_value(out, attribute, true);
}

/* A number and its type; `elide`: no type where MLIR supposes it, i64 and f64. */
static void print_number(lilac_text *out, const lilac_tile_attribute *attribute, bool elide) {
    lilac_scalar scalar = attribute->type->scalar;
    print_bits(out, scalar, attribute->integer);
    if (scalar == LILAC_I1 || (elide && (scalar == LILAC_I64 || scalar == LILAC_F64))) {
        return;
    }
    lilac_text_puts(out, " : ");
    lilac_tile_print_type(out, attribute->type);
}

static void print_types(lilac_text *out, const lilac_tile_attribute *types, bool parentheses) {
    if (parentheses) {
        lilac_text_char(out, '(');
    }
    for (uint32_t i = 0; i < types->count; i++) {
        if (i) {
            lilac_text_puts(out, ", ");
        }
        lilac_tile_print_type(out, types->elements[i].type);
    }
    if (parentheses) {
        lilac_text_char(out, ')');
    }
}

/* "array<i32: 1, 2>" */
static void print_integers(lilac_text *out, const lilac_tile_attribute *attribute) {
    lilac_text_puts(out, "array<");
    lilac_tile_print_type(out, attribute->type);
    for (uint32_t i = 0; i < attribute->count; i++) {
        lilac_text_puts(out, i ? ", " : ": ");
        print_bits(out, attribute->type->scalar, attribute->integers[i]);
    }
    lilac_text_char(out, '>');
}

/* "dense<1> : tensor<4xi32>" */
static void print_dense(lilac_text *out, const lilac_tile_attribute *attribute) {
    lilac_text_puts(out, "dense<");
    if (attribute->count == 1) {
        print_bits(out, attribute->type->scalar, attribute->integers[0]);
    } else {
        print_lists(out, attribute, 0, 0);
    }
    lilac_text_puts(out, "> : ");
    lilac_tile_print_type(out, attribute->type);
}

static void print_value(lilac_text *out, const lilac_tile_attribute *attribute, bool elide) {
    switch (attribute->kind) {
    case LILAC_TILE_ATTR_UNIT:
        lilac_text_puts(out, "unit");
        return;
    case LILAC_TILE_ATTR_BOOL:
    case LILAC_TILE_ATTR_INTEGER:
    case LILAC_TILE_ATTR_FLOAT:
        print_number(out, attribute, elide);
        return;
    case LILAC_TILE_ATTR_STRING:
        lilac_text_char(out, '"');
        lilac_text_puts(out, attribute->text);
        lilac_text_char(out, '"');
        return;
    case LILAC_TILE_ATTR_KEYWORD:
    case LILAC_TILE_ATTR_LLVM:
        lilac_text_puts(out, attribute->text);
        return;
    case LILAC_TILE_ATTR_SYMBOL:
        tile_print_symbol(out, attribute->text);
        return;
    case LILAC_TILE_ATTR_TYPE:
        lilac_tile_print_type(out, attribute->type);
        return;
    case LILAC_TILE_ATTR_INTEGERS:
        print_integers(out, attribute);
        return;
    case LILAC_TILE_ATTR_DENSE:
        print_dense(out, attribute);
        return;
    case LILAC_TILE_ATTR_ARRAY:
        lilac_text_char(out, '[');
        for (uint32_t i = 0; i < attribute->count; i++) {
            if (i) {
                lilac_text_puts(out, ", ");
            }
            print_value(out, &attribute->elements[i], true);
        }
        lilac_text_char(out, ']');
        return;
    case LILAC_TILE_ATTR_FUNCTION:
        print_types(out, &attribute->elements[0], true);
        lilac_text_puts(out, " -> ");
        print_types(out, &attribute->elements[1], attribute->elements[1].count != 1);
        return;
    case LILAC_TILE_ATTR_DICTIONARY:
        lilac_text_char(out, '{');
        for (uint32_t i = 0; i < attribute->count; i++) {
            if (i) {
                lilac_text_puts(out, ", ");
            }
            print_attribute(out, &attribute->elements[i]);
        }
        lilac_text_char(out, '}');
        return;
    }
}

void tile_print_attribute_value(lilac_text *out, const lilac_tile_attribute *attribute) {
    print_value(out, attribute, false);
}

static bool is_hidden(const char *const *hidden, lilac_name name) {
    for (; hidden && *hidden; hidden++) {
        if (strcmp(*hidden, name) == 0) {
            return true;
        }
    }
    return false;
}

void tile_print_dictionary(tile_printer *printer, const char *before,
                           const lilac_tile_attributes *attributes, const char *const *hidden) {
    bool any = false;
    for (uint32_t i = 0; i < attributes->count; i++) {
        if (is_hidden(hidden, attributes->list[i].name)) {
            continue;
        }
        lilac_text_puts(printer->out, any ? ", " : before);
        if (!any) {
            lilac_text_char(printer->out, '{');
        }
        any = true;
        print_attribute(printer->out, &attributes->list[i]);
    }
    if (any) {
        lilac_text_char(printer->out, '}');
    }
}
