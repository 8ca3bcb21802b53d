/* The reader of the text form (print.c shows it).
 *
 * A recursive descent that builds exactly what is written: nothing is folded or shared, so printing
 * what was read gives the text back. A line with a mistake is reported and skipped (with its
 * bodies, when it opens any); its results stay known as values of no type, so that one mistake is
 * one report. Structure and types beyond the grammar are the verifier's business. */
#include "internal.h"

#include <string.h>

enum {
    DEEPEST = 200,        /* bodies within bodies */
    MOST_OPERANDS = 4096, /* of one instruction, and results and arguments */
    OPCODE_SLOTS = 512
};

typedef struct known_name {
    lilac_name name;
    lilac_simt_value value;
} known_name;

typedef struct result_name {
    lilac_name name;
    uint32_t offset;
    bool uniform;
} result_name;

typedef struct reader {
    lilac_scanner scanner;
    lilac_context *context;
    lilac_simt_module *module;
    lilac_simt_kernel *kernel;
    known_name *known; /* names of the kernel's values, open addressing */
    uint32_t known_count, known_capacity;
    lilac_simt_value *operands; /* a stack */
    uint32_t operand_count, operand_capacity;
    result_name *results; /* a stack */
    uint32_t result_count, result_capacity;
    lilac_simt_type types[MOST_OPERANDS]; /* the list read last */
    uint32_t type_count;
    uint16_t opcodes[OPCODE_SLOTS];
    uint32_t depth;
} reader;

static bool fail_at(reader *r, uint32_t offset, const char *id, const char *what, const char *name,
                    size_t length) {
    lilac_position position = {r->scanner.source, offset};
    lilac_error(r->context, position, 0, id, "%s '%.*s'", what, (int)(length > 80 ? 80 : length),
                name);
    return false;
}

static bool fail_here(reader *r, const char *id, const char *what) {
    return fail_at(r, r->scanner.offset, id, what, r->scanner.word, r->scanner.word_length);
}

/* Is there a line break between the token before and this one? */
static bool on_new_line(const reader *r) {
    const lilac_scanner *s = &r->scanner;
    return s->kind == LILAC_TOKEN_END ||
           memchr(s->text + s->previous_end, '\n', s->offset - s->previous_end) != NULL;
}

/* ---- names ------------------------------------------------------------------------------ */

static uint32_t name_slot(const reader *r, lilac_name name) {
    uint64_t hash = (uint64_t)(uintptr_t)name * 0x9E3779B97F4A7C15u;
    uint32_t slot = (uint32_t)(hash >> 32) & (r->known_capacity - 1);
    while (r->known[slot].name != NULL && r->known[slot].name != name) {
        slot = (slot + 1) & (r->known_capacity - 1);
    }
    return slot;
}

static void grow_names(reader *r) {
    known_name *old = r->known;
    uint32_t count = r->known_capacity;
    r->known_capacity = count == 0 ? 256 : count * 2;
    r->known = lilac_heap_grow(NULL, sizeof *r->known * (size_t)r->known_capacity);
    memset(r->known, 0, sizeof *r->known * (size_t)r->known_capacity);
    for (uint32_t k = 0; k < count; k++) {
        if (old[k].name != NULL) {
            r->known[name_slot(r, old[k].name)] = old[k];
        }
    }
    lilac_heap_free(old);
}

static lilac_name take_name(reader *r) {
    lilac_name name = lilac_intern(r->context, r->scanner.word, r->scanner.word_length);
    lilac_scanner_next(&r->scanner);
    return name;
}

static void define(reader *r, const result_name *result, lilac_simt_value value) {
    if ((r->known_count + 1) * 2 > r->known_capacity) {
        grow_names(r);
    }
    uint32_t slot = name_slot(r, result->name);
    if (r->known[slot].name != NULL) {
        fail_at(r, result->offset, "redefined-value", "a second definition of", result->name,
                strlen(result->name));
    } else {
        r->known_count++;
    }
    r->known[slot] = (known_name){result->name, value};
    lilac_simt_value_info *info = &r->kernel->values[value];
    if (result->name[strspn(result->name, "0123456789")] != 0) {
        info->name = result->name;
    }
    info->marked = result->uniform;
}

static bool look_up(reader *r, lilac_simt_value *value) {
    if (r->scanner.kind != LILAC_TOKEN_VALUE) {
        return lilac_scanner_expected(&r->scanner, "a value");
    }
    lilac_name name = lilac_intern(r->context, r->scanner.word, r->scanner.word_length);
    uint32_t slot = r->known_capacity > 0 ? name_slot(r, name) : 0;
    if (r->known_capacity == 0 || r->known[slot].name == NULL) {
        return fail_here(r, "undefined-value", "no value is called");
    }
    *value = r->known[slot].value;
    lilac_scanner_next(&r->scanner);
    return true;
}

/* ---- lists ------------------------------------------------------------------------------ */

static bool push_operand(reader *r, lilac_simt_value value) {
    if (r->operand_count == r->operand_capacity) {
        r->operand_capacity = r->operand_capacity == 0 ? 64 : r->operand_capacity * 2;
        r->operands =
            lilac_heap_grow(r->operands, sizeof *r->operands * (size_t)r->operand_capacity);
    }
    r->operands[r->operand_count++] = value;
    return true;
}

static bool read_operand(reader *r) {
    lilac_simt_value value;
    return look_up(r, &value) && push_operand(r, value);
}

/* a, b, …: at least one. */
static bool read_operands(reader *r) {
    uint32_t base = r->operand_count;
    do {
        if (!read_operand(r)) {
            return false;
        }
        if (r->operand_count - base > MOST_OPERANDS) {
            return fail_here(r, "too-many-operands", "too many operands before");
        }
    } while (lilac_scanner_accept(&r->scanner, ','));
    return true;
}

/* %name [uniform] */
static bool read_result(reader *r) {
    if (r->scanner.kind != LILAC_TOKEN_VALUE) {
        return lilac_scanner_expected(&r->scanner, "the name of a value");
    }
    if (r->result_count == r->result_capacity) {
        r->result_capacity = r->result_capacity == 0 ? 64 : r->result_capacity * 2;
        r->results = lilac_heap_grow(r->results, sizeof *r->results * (size_t)r->result_capacity);
    }
    result_name *result = &r->results[r->result_count++];
    result->offset = r->scanner.offset;
    result->name = take_name(r);
    result->uniform = lilac_scanner_accept_word(&r->scanner, "uniform");
    return true;
}

static bool read_type(reader *r, lilac_simt_type *type) {
    if (r->scanner.kind != LILAC_TOKEN_WORD) {
        return lilac_scanner_expected(&r->scanner, "a type");
    }
    if (!lilac_simt_type_read(r->scanner.word, r->scanner.word_length, type)) {
        return fail_here(r, "unknown-type", "no type is called");
    }
    lilac_scanner_next(&r->scanner);
    return true;
}

/* [: type, …] */
static bool read_types(reader *r) {
    r->type_count = 0;
    if (!lilac_scanner_accept(&r->scanner, ':')) {
        return true;
    }
    do {
        if (r->type_count == MOST_OPERANDS) {
            return fail_here(r, "too-many-operands", "too many types before");
        }
        if (!read_type(r, &r->types[r->type_count])) {
            return false;
        }
        r->type_count++;
    } while (lilac_scanner_accept(&r->scanner, ','));
    return true;
}

/* ---- strings, numbers, locations -------------------------------------------------------- */

static int hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* The text between quotes with \HH, \n, \t, \", \\ undone. */
static lilac_name unescape(reader *r, const char *bytes, size_t length) {
    char *copy = lilac_heap_grow(NULL, length + 1);
    size_t n = 0;
    for (size_t k = 0; k < length; k++) {
        char c = bytes[k];
        if (c == '\\' && k + 1 < length) {
            char next = bytes[++k];
            int high = hex_digit(next);
            int low = k + 1 < length ? hex_digit(bytes[k + 1]) : -1;
            if (high >= 0 && low >= 0) {
                c = (char)(high * 16 + low);
                k++;
            } else {
                c = next == 'n' ? '\n' : next == 't' ? '\t' : next;
            }
        }
        copy[n++] = c;
    }
    lilac_name name = lilac_intern(r->context, copy, n);
    lilac_heap_free(copy);
    return name;
}

static bool read_string(reader *r, lilac_name *text) {
    if (r->scanner.kind != LILAC_TOKEN_STRING) {
        return lilac_scanner_expected(&r->scanner, "a string");
    }
    *text = unescape(r, r->scanner.word, r->scanner.word_length);
    lilac_scanner_next(&r->scanner);
    return true;
}

static bool read_count(reader *r, uint32_t *count) {
    int64_t value;
    uint32_t offset = r->scanner.offset;
    if (!lilac_scanner_integer(&r->scanner, &value)) {
        return false;
    }
    if (value < 0 || value > UINT32_MAX) {
        return fail_at(r, offset, "bad-number", "out of range:", r->scanner.text + offset,
                       r->scanner.previous_end - offset);
    }
    *count = (uint32_t)value;
    return true;
}

/* [loc("file":line:column)] */
static bool read_location(reader *r, lilac_location *location) {
    lilac_location_info info = {.kind = LILAC_LOCATION_FILE};
    if (!lilac_scanner_accept_word(&r->scanner, "loc")) {
        return true;
    }
    if (!lilac_scanner_expect(&r->scanner, '(') || !read_string(r, &info.name) ||
        !lilac_scanner_expect(&r->scanner, ':') || !read_count(r, &info.line) ||
        !lilac_scanner_expect(&r->scanner, ':') || !read_count(r, &info.column) ||
        !lilac_scanner_expect(&r->scanner, ')')) {
        return false;
    }
    *location = lilac_location_get(r->context, &info);
    return true;
}

/* ---- constants -------------------------------------------------------------------------- */

typedef struct written_number {
    lilac_token_kind kind;
    bool negative;
    const char *word;
    uint32_t length, offset;
} written_number;

static bool read_literal(reader *r, written_number *literal) {
    lilac_scanner *s = &r->scanner;
    literal->offset = s->offset;
    literal->negative = lilac_scanner_accept(s, '-');
    literal->kind = s->kind;
    literal->word = s->word;
    literal->length = s->word_length;
    bool truth = lilac_scanner_is_word(s, "true") || lilac_scanner_is_word(s, "false");
    if (!(truth && !literal->negative) && s->kind != LILAC_TOKEN_INTEGER &&
        s->kind != LILAC_TOKEN_FLOAT) {
        return lilac_scanner_expected(s, "a number");
    }
    lilac_scanner_next(s);
    return true;
}

/* Digits of an integer token; false when they do not fit. */
static bool integer_value(const written_number *literal, bool *hex, uint64_t *value) {
    uint32_t at = 0;
    *hex = literal->length > 2 && literal->word[1] == 'x';
    *value = 0;
    for (at = *hex ? 2 : 0; at < literal->length; at++) {
        uint64_t base = *hex ? 16 : 10;
        uint64_t digit = (uint64_t)hex_digit(literal->word[at]);
        if (__builtin_mul_overflow(*value, base, value) ||
            __builtin_add_overflow(*value, digit, value)) {
            return false;
        }
    }
    return true;
}

/* A decimal fraction: the quotient of two integers that a double holds exactly. */
static bool fraction_value(const written_number *literal, double *value) {
    uint64_t number = 0;
    double power = 1;
    bool behind = false;
    for (uint32_t at = 0; at < literal->length; at++) {
        char c = literal->word[at];
        if (c == '.') {
            behind = true;
            continue;
        }
        if (c < '0' || c > '9' || number > (UINT64_C(1) << 53) / 10) {
            return false;
        }
        number = number * 10 + (uint64_t)(c - '0');
        power = behind ? power * 10 : power;
    }
    *value = (double)number / power;
    return number <= UINT64_C(1) << 53 && power <= 1e22;
}

static bool literal_bits(reader *r, const written_number *literal, lilac_simt_type type,
                         uint64_t *bits) {
    uint64_t mask = lilac_simt_type_mask(type);
    bool is_float = lilac_simt_type_is_float(type);
    bool hex = false;
    bool good = false;
    double value;
    if (literal->kind == LILAC_TOKEN_WORD) {
        *bits = literal->word[0] == 't';
        good = type == LILAC_SIMT_I1;
    } else if (literal->kind == LILAC_TOKEN_FLOAT) {
        good = is_float && !lilac_simt_type_is_packed(type) && fraction_value(literal, &value);
        if (good) {
            *bits =
                lilac_scalar_encode(lilac_simt_scalar_of(type), literal->negative ? -value : value,
                                    LILAC_ROUND_NEAREST_EVEN, false);
        }
    } else if (integer_value(literal, &hex, bits)) {
        good = is_float ? hex && !literal->negative && *bits <= mask
                        : *bits <= (literal->negative ? (mask >> 1) + 1 : mask);
        *bits = (literal->negative ? -*bits : *bits) & mask;
    }
    return good || fail_at(r, literal->offset, "bad-constant",
                           is_float ? "not the number or the bits (0x…) of such a float:"
                                    : "not a number of this type:",
                           literal->word, literal->length);
}

/* ---- modifiers -------------------------------------------------------------------------- */

static bool read_choice(reader *r, const char *const *names, uint8_t *choice) {
    for (uint32_t k = 0; names[k] != NULL; k++) {
        if (lilac_scanner_is_word(&r->scanner, names[k])) {
            *choice = (uint8_t)k;
            lilac_scanner_next(&r->scanner);
            return true;
        }
    }
    return fail_here(r, "unknown-modifier", "no such choice:");
}

static bool read_scalar(reader *r, uint8_t *choice) {
    lilac_scalar scalar;
    if (r->scanner.kind != LILAC_TOKEN_WORD ||
        !lilac_scalar_read(r->scanner.word, r->scanner.word_length, &scalar)) {
        return fail_here(r, "unknown-type", "no element type is called");
    }
    *choice = (uint8_t)scalar;
    lilac_scanner_next(&r->scanner);
    return true;
}

static bool read_modifier(reader *r, lilac_simt_instruction *like) {
    lilac_scanner *s = &r->scanner;
    uint32_t count = 0;
    for (uint32_t k = 0; lilac_simt_flag_names[k].name != NULL; k++) {
        if (lilac_scanner_accept_word(s, lilac_simt_flag_names[k].name)) {
            like->flags |= lilac_simt_flag_names[k].flag;
            return true;
        }
    }
    if (lilac_scanner_accept_word(s, "cache")) {
        return lilac_scanner_expect(s, '=') && read_choice(r, lilac_simt_cache_names, &like->cache);
    }
    if (lilac_scanner_accept_word(s, "evict")) {
        return lilac_scanner_expect(s, '=') && read_choice(r, lilac_simt_evict_names, &like->evict);
    }
    if (lilac_scanner_accept_word(s, "round")) {
        return lilac_scanner_expect(s, '=') &&
               read_choice(r, lilac_simt_rounding_names, &like->detail);
    }
    if (lilac_scanner_accept_word(s, "scalar")) {
        return lilac_scanner_expect(s, '=') && read_scalar(r, &like->scalar);
    }
    if (lilac_scanner_accept_word(s, "detail")) {
        uint32_t offset = s->offset;
        if (!lilac_scanner_expect(s, '=') || !read_count(r, &count)) {
            return false;
        }
        like->detail = (uint8_t)count;
        return count <= UINT8_MAX ||
               fail_at(r, offset, "bad-number", "out of range:", s->text + offset, 1);
    }
    if (lilac_scanner_accept_word(s, "immediate")) {
        return lilac_scanner_expect(s, '=') && lilac_scanner_integer(s, &like->immediate);
    }
    if (lilac_scanner_accept_word(s, "text")) {
        return lilac_scanner_expect(s, '=') && read_string(r, &like->text);
    }
    return fail_here(r, "unknown-modifier", "no modifier is called");
}

static bool read_modifiers(reader *r, lilac_simt_instruction *like) {
    if (!lilac_scanner_accept(&r->scanner, '{')) {
        return true;
    }
    do {
        if (!read_modifier(r, like)) {
            return false;
        }
    } while (lilac_scanner_accept(&r->scanner, ','));
    return lilac_scanner_expect(&r->scanner, '}');
}

/* ---- instructions ----------------------------------------------------------------------- */

static bool read_body(reader *r, lilac_simt_body *body);

static bool read_opcode(reader *r, uint16_t *code) {
    lilac_scanner *s = &r->scanner;
    if (s->kind != LILAC_TOKEN_WORD) {
        return lilac_scanner_expected(s, "an operation");
    }
    uint32_t slot = (uint32_t)lilac_hash(s->word, s->word_length, 0) & (OPCODE_SLOTS - 1);
    for (; r->opcodes[slot] != 0; slot = (slot + 1) & (OPCODE_SLOTS - 1)) {
        const char *name = lilac_simt_op_info_get((lilac_simt_opcode)r->opcodes[slot])->name;
        if (strlen(name) == s->word_length && memcmp(name, s->word, s->word_length) == 0) {
            *code = r->opcodes[slot];
            lilac_scanner_next(s);
            return true;
        }
    }
    return fail_here(r, "unknown-operation", "no operation is called");
}

static bool read_kind(reader *r, lilac_simt_instruction *like) {
    static const char *const dimensions[] = {"x", "y", "z", NULL};
    const char *names[LILAC_SIMT_COMPARE_COUNT + 1];
    switch (like->code) {
    case LILAC_SIMT_OP_CMP:
        for (uint32_t k = 0; k < LILAC_SIMT_COMPARE_COUNT; k++) {
            names[k] = lilac_simt_compare_name((lilac_simt_compare)k);
        }
        names[LILAC_SIMT_COMPARE_COUNT] = NULL;
        return read_choice(r, names, &like->detail);
    case LILAC_SIMT_OP_SHUFFLE:
        return read_choice(r, lilac_simt_shuffle_names, &like->detail);
    case LILAC_SIMT_OP_BLOCK:
    case LILAC_SIMT_OP_GRID:
        return read_choice(r, dimensions, &like->detail);
    default:
        return true;
    }
}

/* [address + offset] [, predicate] [, (values)] */
static bool read_access(reader *r, lilac_simt_instruction *like) {
    lilac_scanner *s = &r->scanner;
    if (!lilac_scanner_expect(s, '[') || !read_operand(r)) {
        return false;
    }
    bool minus = lilac_scanner_is(s, '-');
    if (minus || lilac_scanner_accept(s, '+')) { /* a minus belongs to the number */
        if (!lilac_scanner_integer(s, &like->immediate)) {
            return false;
        }
    }
    if (!lilac_scanner_expect(s, ']')) {
        return false;
    }
    while (lilac_scanner_accept(s, ',')) {
        if (lilac_scanner_accept(s, '(')) {
            return read_operands(r) && lilac_scanner_expect(s, ')');
        }
        if (!read_operand(r)) {
            return false;
        }
    }
    return true;
}

static bool read_plain_operands(reader *r, lilac_simt_instruction *like) {
    if (r->scanner.kind == LILAC_TOKEN_VALUE && !on_new_line(r)) {
        do {
            if (like->code == LILAC_SIMT_OP_ASSERT && r->scanner.kind == LILAC_TOKEN_STRING) {
                return read_string(r, &like->text);
            }
            if (!read_operand(r)) {
                return false;
            }
        } while (lilac_scanner_accept(&r->scanner, ','));
    }
    return true;
}

/* Links the instruction with the operands on the stack from `base` and gives it its results. */
static lilac_simt_instruction *finish(reader *r, lilac_simt_body *body,
                                      const lilac_simt_instruction *like, uint32_t base,
                                      uint32_t first_result) {
    uint32_t results = r->result_count - first_result;
    uint32_t operands = r->operand_count - base;
    if (results != r->type_count) {
        lilac_position position = {r->scanner.source, r->scanner.offset};
        lilac_error(r->context, position, 0, "result-count", "%u results and %u result types",
                    results, r->type_count);
        return NULL;
    }
    if (operands > MOST_OPERANDS || results > MOST_OPERANDS) {
        fail_here(r, "too-many-operands", "too many operands before");
        return NULL;
    }
    lilac_simt_instruction *i =
        lilac_simt_new_instruction(r->kernel, like, operands, r->operands + base);
    lilac_simt_link(body, NULL, i);
    lilac_simt_give_results(r->kernel, i, results, r->types);
    return i;
}

static void define_results(reader *r, const lilac_simt_instruction *i, uint32_t first_result) {
    for (uint32_t k = 0; k < i->result_count; k++) {
        define(r, &r->results[first_result + k], i->result + k);
    }
}

static bool read_plain(reader *r, lilac_simt_body *body, lilac_simt_instruction *like,
                       uint32_t first_result) {
    uint32_t base = r->operand_count;
    written_number literal = {.kind = LILAC_TOKEN_END};
    bool good;
    if (!read_kind(r, like)) {
        return false;
    }
    if (like->code == LILAC_SIMT_OP_CONST) {
        good = read_literal(r, &literal);
    } else if (like->code == LILAC_SIMT_OP_PARAM) {
        good = lilac_scanner_integer(&r->scanner, &like->immediate);
    } else if (lilac_simt_is_access(like->code)) {
        good = read_access(r, like);
    } else {
        good = read_plain_operands(r, like);
    }
    if (!good || !read_types(r)) {
        return false;
    }
    if (like->code == LILAC_SIMT_OP_CONST) {
        uint64_t bits = 0;
        if (r->type_count != 1) {
            return lilac_scanner_expected(&r->scanner, "one type");
        }
        if (!literal_bits(r, &literal, r->types[0], &bits)) {
            return false;
        }
        like->immediate = (int64_t)bits;
    }
    if (!read_modifiers(r, like) || !read_location(r, &like->location)) {
        return false;
    }
    lilac_simt_instruction *i = finish(r, body, like, base, first_result);
    if (i == NULL) {
        return false;
    }
    define_results(r, i, first_result);
    return true;
}

/* ---- loop, if, while -------------------------------------------------------------------- */

/* (%a = %x, …): names onto the result stack, initial values onto the operand stack. */
static bool read_carried(reader *r) {
    lilac_scanner *s = &r->scanner;
    if (!lilac_scanner_expect(s, '(')) {
        return false;
    }
    if (lilac_scanner_accept(s, ')')) {
        return true;
    }
    do {
        if (!read_result(r) || !lilac_scanner_expect(s, '=') || !read_operand(r)) {
            return false;
        }
    } while (lilac_scanner_accept(s, ','));
    return lilac_scanner_expect(s, ')');
}

static bool read_loop_head(reader *r) {
    lilac_scanner *s = &r->scanner;
    return read_result(r) && lilac_scanner_expect(s, '=') && read_operand(r) &&
           lilac_scanner_expect_word(s, "to") && read_operand(r) &&
           lilac_scanner_expect_word(s, "step") && read_operand(r) &&
           (!lilac_scanner_is(s, '(') || read_carried(r));
}

static bool read_braces(reader *r, lilac_simt_body *body) {
    return lilac_scanner_expect(&r->scanner, '{') && read_body(r, body) &&
           lilac_scanner_expect(&r->scanner, '}');
}

/* A body whose arguments are named by the result stack from `names` on. */
static lilac_simt_body *open_body(reader *r, lilac_simt_instruction *owner, uint32_t names,
                                  const lilac_simt_type *types) {
    uint32_t count = r->result_count - names;
    lilac_simt_body *body = lilac_simt_new_body(r->kernel, owner, count, types);
    for (uint32_t k = 0; k < count; k++) {
        define(r, &r->results[names + k], body->argument + k);
    }
    r->result_count = names;
    return body;
}

static bool read_do(reader *r, lilac_simt_instruction *loop) {
    lilac_scanner *s = &r->scanner;
    uint32_t names = r->result_count;
    if (!lilac_scanner_expect_word(s, "do") || !lilac_scanner_expect(s, '(')) {
        return false;
    }
    if (!lilac_scanner_accept(s, ')')) {
        do {
            if (!read_result(r)) {
                return false;
            }
        } while (lilac_scanner_accept(s, ','));
        if (!lilac_scanner_expect(s, ')')) {
            return false;
        }
    }
    uint32_t count = r->result_count - names;
    if (count != loop->result_count) {
        return fail_here(r, "result-count", "as many names as results are wanted before");
    }
    lilac_simt_type *types = lilac_arena_array(r->module->arena, lilac_simt_type, count);
    for (uint32_t k = 0; k < count; k++) {
        types[k] = lilac_simt_type_of(r->kernel, loop->result + k);
    }
    loop->bodies[1] = open_body(r, loop, names, types);
    return read_braces(r, loop->bodies[1]);
}

static bool read_else(reader *r, lilac_simt_instruction *branch) {
    branch->bodies[1] = lilac_simt_new_body(r->kernel, branch, 0, NULL);
    if (lilac_scanner_accept_word(&r->scanner, "else")) {
        return read_braces(r, branch->bodies[1]) && read_location(r, &branch->location);
    }
    if (!read_location(r, &branch->location)) {
        return false;
    }
    lilac_simt_instruction like = {.code = LILAC_SIMT_OP_YIELD, .location = branch->location};
    lilac_simt_link(branch->bodies[1], NULL, lilac_simt_new_instruction(r->kernel, &like, 0, NULL));
    return true;
}

static bool read_structured(reader *r, lilac_simt_body *body, const lilac_simt_instruction *like,
                            uint32_t first_result) {
    uint32_t base = r->operand_count;
    uint32_t names = r->result_count;
    bool good = like->code == LILAC_SIMT_OP_LOOP    ? read_loop_head(r)
                : like->code == LILAC_SIMT_OP_WHILE ? read_carried(r)
                                                    : read_operand(r);
    if (!good || !read_types(r)) {
        return false;
    }
    /* The names of arguments stand above those of results; finish() counts results only. */
    uint32_t arguments = r->result_count - names;
    r->result_count = names;
    lilac_simt_instruction *i = finish(r, body, like, base, first_result);
    r->result_count = names + arguments;
    if (i == NULL) {
        return false;
    }
    bool is_loop = like->code == LILAC_SIMT_OP_LOOP;
    i->body_count = is_loop ? 1 : 2;
    i->bodies = lilac_arena_array(r->module->arena, lilac_simt_body *, 2);
    lilac_simt_type *types = lilac_arena_array(r->module->arena, lilac_simt_type, arguments);
    for (uint32_t k = 0; k < arguments; k++) { /* a loop's counter is like its lower bound */
        uint32_t operand = is_loop && k > 0 ? k + 2 : k;
        types[k] = lilac_simt_type_of(r->kernel, i->operands[operand]);
    }
    i->bodies[0] = open_body(r, i, names, types);
    good = read_braces(r, i->bodies[0]);
    if (good && like->code == LILAC_SIMT_OP_IF) {
        good = read_else(r, i);
    } else if (good) {
        good = (is_loop || read_do(r, i)) && read_location(r, &i->location);
    }
    if (good) {
        define_results(r, i, first_result);
    }
    return good;
}

static bool read_instruction(reader *r, lilac_simt_body *body) {
    lilac_simt_instruction like = {0};
    uint32_t first_result = r->result_count;
    if (r->scanner.kind == LILAC_TOKEN_VALUE) {
        do {
            if (!read_result(r)) {
                return false;
            }
        } while (lilac_scanner_accept(&r->scanner, ','));
        if (!lilac_scanner_expect(&r->scanner, '=')) {
            return false;
        }
    }
    if (!read_opcode(r, &like.code)) {
        return false;
    }
    return lilac_simt_has_trait(like.code, LILAC_SIMT_REGIONS)
               ? read_structured(r, body, &like, first_result)
               : read_plain(r, body, &like, first_result);
}

/* Skips the rest of a line that has a mistake, and the bodies it opens. */
static void skip_line(reader *r, uint32_t start) {
    lilac_scanner *s = &r->scanner;
    uint32_t open = 0;
    if (s->offset == start) {
        open += lilac_scanner_is(s, '{');
        lilac_scanner_next(s);
    }
    while (s->kind != LILAC_TOKEN_END) {
        if (open == 0 && (on_new_line(r) || lilac_scanner_is(s, '}'))) {
            return;
        }
        open += lilac_scanner_is(s, '{');
        open -= lilac_scanner_is(s, '}') && open > 0;
        lilac_scanner_next(s);
    }
}

static bool read_body(reader *r, lilac_simt_body *body) {
    if (++r->depth > DEEPEST) {
        r->depth--;
        return fail_here(r, "too-deep", "bodies are nested too deep at");
    }
    while (r->scanner.kind != LILAC_TOKEN_END && !lilac_scanner_is(&r->scanner, '}')) {
        uint32_t start = r->scanner.offset;
        uint32_t operands = r->operand_count;
        uint32_t results = r->result_count;
        if (!read_instruction(r, body)) {
            lilac_simt_type none = LILAC_SIMT_VOID;
            for (uint32_t k = results; k < r->result_count; k++) {
                result_name *result = &r->results[k];
                if (r->known_capacity == 0 || r->known[name_slot(r, result->name)].name == NULL) {
                    define(r, result, lilac_simt_new_values(r->kernel, 1, &none, NULL, body));
                }
            }
            skip_line(r, start);
        }
        r->operand_count = operands;
        r->result_count = results;
    }
    r->depth--;
    return true;
}

/* ---- kernels and the module ------------------------------------------------------------- */

/* %name: type [ptr] [align n] */
static bool read_parameter(reader *r, lilac_simt_parameter *parameter) {
    lilac_scanner *s = &r->scanner;
    *parameter = (lilac_simt_parameter){.alignment = 1};
    if (s->kind != LILAC_TOKEN_VALUE) {
        return lilac_scanner_expected(s, "a parameter");
    }
    lilac_name name = take_name(r);
    parameter->name = name[strspn(name, "0123456789")] != 0 ? name : NULL;
    if (!lilac_scanner_expect(s, ':') || !read_type(r, &parameter->type)) {
        return false;
    }
    parameter->is_pointer = lilac_scanner_accept_word(s, "ptr");
    return !lilac_scanner_accept_word(s, "align") || read_count(r, &parameter->alignment);
}

static bool read_parameters(reader *r, lilac_simt_parameter **parameters, uint32_t *count) {
    lilac_scanner *s = &r->scanner;
    if (!lilac_scanner_expect(s, '(')) {
        return false;
    }
    if (lilac_scanner_accept(s, ')')) {
        return true;
    }
    uint32_t capacity = 0;
    do {
        if (*count == capacity) {
            capacity = capacity == 0 ? 16 : capacity * 2;
            *parameters = lilac_heap_grow(*parameters, sizeof **parameters * (size_t)capacity);
        }
        if (!read_parameter(r, &(*parameters)[*count])) {
            return false;
        }
        ++*count;
    } while (lilac_scanner_accept(s, ','));
    return lilac_scanner_expect(s, ')');
}

static bool read_kernel_head(reader *r) {
    lilac_scanner *s = &r->scanner;
    if (s->kind != LILAC_TOKEN_SYMBOL) {
        return lilac_scanner_expected(s, "a kernel's name");
    }
    lilac_name name = unescape(r, s->word, s->word_length);
    lilac_scanner_next(s);
    lilac_simt_parameter *parameters = NULL;
    uint32_t count = 0;
    bool good = read_parameters(r, &parameters, &count);
    r->kernel = lilac_simt_kernel_create(r->module, name, count, 1, 1);
    if (count > 0) {
        memcpy(r->kernel->parameters, parameters, sizeof *parameters * count);
    }
    lilac_heap_free(parameters);
    good = good && lilac_scanner_expect_word(s, "warps") && read_count(r, &r->kernel->num_warps) &&
           lilac_scanner_expect_word(s, "ctas") && read_count(r, &r->kernel->num_ctas) &&
           lilac_scanner_expect_word(s, "shared") && read_count(r, &r->kernel->shared_bytes);
    r->kernel->no_contraction = lilac_scanner_accept_word(s, "no_contraction");
    return good;
}

static bool read_kernel(reader *r) {
    r->known_count = 0;
    if (r->known_capacity > 0) {
        memset(r->known, 0, sizeof *r->known * (size_t)r->known_capacity);
    }
    if (!read_kernel_head(r) || !read_braces(r, r->kernel->body) ||
        !read_location(r, &r->kernel->location)) {
        return false;
    }
    return true;
}

static bool read_module(reader *r, uint32_t errors) {
    lilac_scanner *s = &r->scanner;
    lilac_name target;
    if (!lilac_scanner_expect_word(s, "simt.module") || !lilac_scanner_expect_word(s, "target")) {
        return false;
    }
    uint32_t offset = s->offset;
    if (!read_string(r, &target)) {
        return false;
    }
    const lilac_arch *arch = lilac_arch_find(target);
    if (arch == NULL) {
        return fail_at(r, offset, "unknown-target", "no device is called", target, strlen(target));
    }
    r->module = lilac_simt_module_create(r->context, arch);
    if (!lilac_scanner_expect(s, '{')) {
        return false;
    }
    while (lilac_scanner_accept_word(s, "kernel")) {
        if (!read_kernel(r)) {
            return false;
        }
        if (lilac_error_count(r->context) == errors) {
            lilac_simt_infer_uniform(r->kernel);
        }
    }
    if (!lilac_scanner_expect(s, '}')) {
        return false;
    }
    return s->kind == LILAC_TOKEN_END || lilac_scanner_expected(s, "the end of the text");
}

lilac_simt_module *lilac_simt_read(lilac_context *context, uint32_t source) {
    uint32_t errors = lilac_error_count(context);
    reader *r = lilac_heap_grow(NULL, sizeof *r);
    memset(r, 0, sizeof *r);
    r->context = context;
    for (uint32_t code = 1; code < LILAC_SIMT_OP_COUNT; code++) {
        const char *name = lilac_simt_op_info_get((lilac_simt_opcode)code)->name;
        uint32_t slot = (uint32_t)lilac_hash(name, strlen(name), 0) & (OPCODE_SLOTS - 1);
        while (r->opcodes[slot] != 0) {
            slot = (slot + 1) & (OPCODE_SLOTS - 1);
        }
        r->opcodes[slot] = (uint16_t)code;
    }
    lilac_scanner_init(&r->scanner, context, source);
    bool good = read_module(r, errors) && lilac_error_count(context) == errors;
    lilac_simt_module *module = r->module;
    lilac_heap_free(r->known);
    lilac_heap_free(r->operands);
    lilac_heap_free(r->results);
    lilac_heap_free(r);
    if (!good) {
        lilac_simt_module_destroy(module);
        module = NULL;
    }
    return module;
}
