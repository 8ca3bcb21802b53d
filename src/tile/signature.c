/* Signatures: a little language of types (see tile_ops.def), interpreted. The reader computes from
 * it the types that are not written, the verifier checks all of them by it, and both say the same
 * things about what does not fit.
 *
 *   "P:ptr, i1(P)?, of(P)? -> of(P)"      tt.load
 *    item    item    item    result item
 */
#include "internal.h"

#include <assert.h>
#include <string.h>

/* Constraints: the words of the language and the letters they are kept as. */
static const struct {
    const char *word;
    char kind;
} constraint_words[] = {
    {"int", 'n'},    {"float", 'f'},    {"ptr", 'p'},   {"tensor", 't'},   {"single", '1'},
    {"desc", 'd'},   {"blockptr", 'b'}, {"shape", 's'}, {"elem", 'e'},     {"of", 'o'},
    {"i1", 'i'},     {"bits", '='},     {"wider", '>'}, {"narrower", '<'}, {"memory", 'm'},
    {"shared", 'M'}, {"mutable", 'w'},
};

static bool is_variable(char c) {
    return c >= 'A' && c <= 'Z';
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* "word" or "word(T)" at *at; the variable or 0. */
static char parse_call(const char **at, const char **word, size_t *length) {
    const char *p = *at;
    *word = p;
    while (is_word(*p)) {
        p++;
    }
    *length = (size_t)(p - *word);
    char of = 0;
    if (p[0] == '(' && is_variable(p[1]) && p[2] == ')') {
        of = p[1];
        p += 3;
    }
    *at = p;
    return of;
}

static const char *parse_constraint(tile_item *item, const char *at) {
    const char *word;
    size_t length;
    char of = parse_call(&at, &word, &length);
    for (size_t i = 0; i < sizeof constraint_words / sizeof *constraint_words; i++) {
        if (strncmp(constraint_words[i].word, word, length) != 0 ||
            constraint_words[i].word[length] != 0) {
            continue;
        }
        assert(item->constraint_count < TILE_MAX_CONSTRAINTS);
        item->constraints[item->constraint_count].kind = constraint_words[i].kind;
        item->constraints[item->constraint_count++].of = of;
        return at;
    }
    assert(false && "a constraint that is in the language");
    return at;
}

static const char *parse_item(tile_item *item, const char *at) {
    if (is_variable(*at)) {
        item->variable = *at++;
    } else {
        const char *word;
        size_t length;
        item->of = parse_call(&at, &word, &length);
        if (item->of) {
            item->derive = word[0]; /* i1, of, elem */
        } else if (length == 5 && memcmp(word, "token", 5) == 0) {
            item->derive = 't';
        } else {
            item->derive = 's';
            bool known = lilac_scalar_read(word, length, &item->scalar);
            assert(known && "a scalar type");
            (void)known;
        }
    }
    while (*at == ':') {
        at = parse_constraint(item, at + 1);
    }
    if (*at == '?' || *at == '*') {
        item->many = *at++;
    }
    return at;
}

void tile_signature_parse(tile_signature *signature, const char *text) {
    memset(signature, 0, sizeof *signature);
    uint32_t count = 0;
    bool results = false;
    for (const char *at = text; *at;) {
        if (*at == ' ' || *at == ',') {
            at++;
        } else if (*at == '-') {
            at += 2;
            results = true;
        } else {
            assert(count < TILE_MAX_ITEMS);
            at = parse_item(&signature->items[count++], at);
            ++*(results ? &signature->result_items : &signature->operand_items);
        }
    }
}

/* ---- groups ----------------------------------------------------------------------------- */

static bool groups_by_segments(const tile_signature *signature, uint32_t count,
                               const lilac_tile_attribute *segments, tile_groups *groups) {
    if (segments->kind != LILAC_TILE_ATTR_INTEGERS || segments->count != signature->operand_items) {
        return false;
    }
    uint32_t at = 0;
    for (uint32_t i = 0; i < segments->count; i++) {
        int64_t size = segments->integers[i];
        char many = signature->items[i].many;
        if (size < 0 || size > count - at || (size != 1 && !many) || (size > 1 && many == '?')) {
            return false;
        }
        groups->starts[i] = at;
        at += (uint32_t)size;
    }
    groups->starts[segments->count] = at;
    return at == count;
}

bool tile_signature_groups(const tile_signature *signature, uint32_t count,
                           const lilac_tile_attributes *attributes, tile_groups *groups) {
    const lilac_tile_attribute *segments =
        attributes->count ? lilac_tile_find(attributes, "operandSegmentSizes") : NULL;
    if (segments) {
        return groups_by_segments(signature, count, segments, groups);
    }
    uint32_t fixed = 0, stars = 0;
    for (uint32_t i = 0; i < signature->operand_items; i++) {
        fixed += signature->items[i].many == 0;
        stars += signature->items[i].many == '*';
    }
    if (count < fixed || (stars && (count - fixed) % stars != 0)) {
        return false;
    }
    uint32_t each = stars ? (count - fixed) / stars : 0;
    uint32_t optional = stars ? 0 : count - fixed;
    uint32_t at = 0;
    for (uint32_t i = 0; i < signature->operand_items; i++) {
        groups->starts[i] = at;
        char many = signature->items[i].many;
        if (many == '*') {
            at += each;
        } else if (many == 0) {
            at++;
        } else if (optional) {
            at++;
            optional--;
        }
    }
    groups->starts[signature->operand_items] = at;
    return at == count;
}

int tile_signature_list(const tile_signature *signature, char variable) {
    uint32_t count = signature->operand_items + signature->result_items;
    for (uint32_t i = 0; i < count; i++) {
        if (signature->items[i].variable == variable && signature->items[i].many == '*') {
            return (int)i;
        }
    }
    return -1;
}

/* ---- types of items --------------------------------------------------------------------- */

static const lilac_tile_type *bound(const tile_binding *binding, char variable) {
    return binding->types[variable - 'A'];
}

/* What the pointer, or each pointer of the tensor, points to; NULL: not of pointers. */
static const lilac_tile_type *pointees(lilac_tile_module *module, const lilac_tile_type *type) {
    const lilac_tile_type *element = lilac_tile_element(type);
    if (element->kind != LILAC_TILE_POINTER) {
        return NULL;
    }
    if (type->kind == LILAC_TILE_TENSOR && element->element->kind != LILAC_TILE_SCALAR &&
        element->element->kind != LILAC_TILE_POINTER) {
        return NULL; /* a tensor of block pointers has no tensor of pointees */
    }
    return tile_with_element(module, type, element->element);
}

/* Tensors of i1 of the shape of a tensor; for a block pointer, of its block. */
static const lilac_tile_type *booleans(lilac_tile_module *module, const lilac_tile_type *type) {
    if (type->kind == LILAC_TILE_POINTER && type->element->kind == LILAC_TILE_TENSOR) {
        type = type->element;
    }
    return tile_with_element(module, type, lilac_tile_scalar(module, LILAC_I1));
}

static const lilac_tile_type *derive(lilac_tile_module *module, char how,
                                     const lilac_tile_type *type) {
    switch (how) {
    case 'i':
        return booleans(module, type);
    case 'o':
        return pointees(module, type);
    default:
        return lilac_tile_element(type);
    }
}

const lilac_tile_type *tile_item_type(lilac_tile_module *module, const tile_item *item,
                                      const tile_binding *binding) {
    if (item->variable) {
        return bound(binding, item->variable);
    }
    if (item->derive == 's') {
        return lilac_tile_scalar(module, item->scalar);
    }
    if (item->derive == 't') {
        return tile_type_intern(module, &(lilac_tile_type){.kind = LILAC_TILE_TOKEN});
    }
    const lilac_tile_type *of = bound(binding, item->of);
    return of ? derive(module, item->derive, of) : NULL;
}

static bool is_number(const lilac_tile_type *type) {
    return type->kind != LILAC_TILE_MEMDESC && lilac_tile_element(type)->kind == LILAC_TILE_SCALAR;
}

static bool is_integer(const lilac_tile_type *type) {
    return is_number(type) && !lilac_scalar_is_float(lilac_tile_element(type)->scalar);
}

static bool is_float(const lilac_tile_type *type) {
    return is_number(type) && lilac_scalar_is_float(lilac_tile_element(type)->scalar);
}

/* The constraints that look at one type. NULL: satisfied. */
static const char *misses_alone(char kind, const lilac_tile_type *type) {
    switch (kind) {
    case 'n':
        return is_integer(type) ? NULL : "integers";
    case 'f':
        return is_float(type) ? NULL : "floating-point numbers";
    case 'p':
        return lilac_tile_is_pointer(type) ? NULL : "a pointer or a tensor of pointers";
    case 't':
        return type->kind == LILAC_TILE_TENSOR ? NULL : "a tensor";
    case '1':
        return type->kind == LILAC_TILE_SCALAR || type->kind == LILAC_TILE_POINTER
                   ? NULL
                   : "a single number or pointer";
    case 'd':
        return type->kind == LILAC_TILE_DESCRIPTOR ? NULL : "a tensor descriptor";
    case 'b':
        return type->kind == LILAC_TILE_POINTER && type->element->kind == LILAC_TILE_TENSOR
                   ? NULL
                   : "a pointer to a tensor";
    case 'm':
        return type->kind == LILAC_TILE_MEMDESC ? NULL : "memory";
    case 'M':
        return type->kind == LILAC_TILE_MEMDESC && !type->is_tensor_memory ? NULL : "shared memory";
    case 'w':
        return type->is_mutable ? NULL : "mutable memory";
    default:
        return NULL;
    }
}

/* The constraints that compare with another type. */
static const char *misses_beside(lilac_tile_module *module, char kind, const lilac_tile_type *type,
                                 const lilac_tile_type *of) {
    uint32_t bits = lilac_tile_element_bits(type), of_bits = lilac_tile_element_bits(of);
    switch (kind) {
    case 's':
        return tile_same_shape(type, of) ? NULL : "the shape and layout of";
    case 'e':
        return lilac_tile_element(type) == lilac_tile_element(of) ? NULL : "the element type of";
    case 'o':
        return type == pointees(module, of) ? NULL : "what is pointed to by";
    case 'i':
        return type == booleans(module, of) ? NULL : "elements i1 and the shape of";
    case '=':
        return bits == of_bits ? NULL : "elements of as many bits as";
    case '>':
        return bits > of_bits ? NULL : "wider elements than";
    default:
        return bits < of_bits ? NULL : "narrower elements than";
    }
}

const char *tile_item_misses(lilac_tile_module *module, const tile_item *item,
                             const tile_binding *binding, const lilac_tile_type *type,
                             const lilac_tile_type **other) {
    *other = NULL;
    for (uint32_t i = 0; i < item->constraint_count; i++) {
        char of = item->constraints[i].of;
        const char *missed;
        if (!of) {
            missed = misses_alone(item->constraints[i].kind, type);
        } else {
            *other = bound(binding, of);
            if (!*other) {
                continue;
            }
            missed = misses_beside(module, item->constraints[i].kind, type, *other);
        }
        if (missed) {
            return missed;
        }
    }
    return NULL;
}

/* ---- whole operations ------------------------------------------------------------------- */

static void report_type(lilac_tile_module *module, const lilac_tile_op *op, const char *what,
                        uint32_t index, const lilac_tile_type *type, const char *wanted,
                        const lilac_tile_type *other) {
    tile_op_error(module, op, "type-mismatch",
                  "%s %u of '%s' has type '%s', but %s%s%s%s is needed", what, index + 1,
                  lilac_tile_op_info_get(op->code)->name, tile_type_text(module, type), wanted,
                  other ? " '" : "", other ? tile_type_text(module, other) : "", other ? "'" : "");
}

static bool check_value(lilac_tile_module *module, const lilac_tile_op *op, const tile_item *item,
                        const tile_binding *binding, const lilac_tile_type *type, const char *what,
                        uint32_t index) {
    bool listed = item->variable && item->many == '*';
    const lilac_tile_type *expected = listed ? NULL : tile_item_type(module, item, binding);
    if (!listed && type != expected) {
        if (expected) {
            report_type(module, op, what, index, type, "", expected);
        } else {
            report_type(module, op, what, index, type, "something else", NULL);
        }
        return false;
    }
    const lilac_tile_type *other;
    const char *missed = tile_item_misses(module, item, binding, type, &other);
    if (missed) {
        report_type(module, op, what, index, type, missed, other);
    }
    return !missed;
}

/* Variables take the type of the first value that stands for them alone. */
static void bind(tile_binding *binding, const tile_item *item, const lilac_tile_type *type) {
    if (item->variable && item->many != '*' && !binding->types[item->variable - 'A']) {
        binding->types[item->variable - 'A'] = type;
    }
}

/* A list variable that both operands and results have lists the same types in both. */
static bool check_lists(lilac_tile_module *module, const lilac_tile_op *op,
                        const tile_signature *signature, const tile_groups *groups) {
    const tile_item *result = &signature->items[signature->operand_items];
    if (signature->result_items != 1 || result->many != '*' || !result->variable) {
        return true;
    }
    for (uint32_t i = 0; i < signature->operand_items; i++) {
        if (signature->items[i].variable != result->variable) {
            continue;
        }
        uint32_t start = groups->starts[i], count = groups->starts[i + 1] - start;
        if (count != op->result_count) {
            tile_op_error(module, op, "count-mismatch", "'%s' has %u results for %u values",
                          lilac_tile_op_info_get(op->code)->name, op->result_count, count);
            return false;
        }
        for (uint32_t r = 0; r < count; r++) {
            const lilac_tile_type *type = op->operands[start + r].value->type;
            if (type != op->results[r].type) {
                report_type(module, op, "result", r, op->results[r].type, "", type);
                return false;
            }
        }
    }
    return true;
}

bool tile_signature_check(lilac_tile_module *module, const lilac_tile_op *op) {
    const lilac_tile_op_info *info = lilac_tile_op_info_get(op->code);
    tile_signature signature;
    tile_signature_parse(&signature, info->signature);
    tile_groups groups;
    const tile_item *results = &signature.items[signature.operand_items];
    bool list = signature.result_items == 1 && results->many == '*';
    if (!tile_signature_groups(&signature, op->operand_count, &op->attributes, &groups)) {
        tile_op_error(module, op, "count-mismatch", "'%s' cannot have %u operands", info->name,
                      op->operand_count);
        return false;
    }
    if (!list && op->result_count != signature.result_items) {
        tile_op_error(module, op, "count-mismatch", "'%s' has %u results, not %u", info->name,
                      signature.result_items, op->result_count);
        return false;
    }
    tile_binding binding = {0};
    for (uint32_t i = 0; i < signature.operand_items; i++) {
        if (groups.starts[i + 1] > groups.starts[i]) {
            bind(&binding, &signature.items[i], op->operands[groups.starts[i]].value->type);
        }
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        bind(&binding, &results[list ? 0 : i], op->results[i].type);
    }
    for (uint32_t i = 0; i < signature.operand_items; i++) {
        for (uint32_t k = groups.starts[i]; k < groups.starts[i + 1]; k++) {
            if (!check_value(module, op, &signature.items[i], &binding, op->operands[k].value->type,
                             "operand", k)) {
                return false;
            }
        }
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        if (!check_value(module, op, &results[list ? 0 : i], &binding, op->results[i].type,
                         "result", i)) {
            return false;
        }
    }
    return check_lists(module, op, &signature, &groups);
}
