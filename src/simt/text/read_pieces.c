/* The small pieces of the text form: names, lists, strings, numbers, constants, modifiers; see
 * read.c for the whole. */
#include "text/read.h"

#include <string.h>

bool lilac_simt_read_fail_at(reader *r, uint32_t offset, const char *id, const char *what,
                             const char *name, size_t length) {
    lilac_position position = {r->scanner.source, offset};
    lilac_error(r->context, position, 0, id, "%s '%.*s'", what, (int)(length > 80 ? 80 : length),
                name);
    return false;
}

bool lilac_simt_read_fail_here(reader *r, const char *id, const char *what) {
    return lilac_simt_read_fail_at(r, r->scanner.offset, id, what, r->scanner.word,
                                   r->scanner.word_length);
}

/* Is there a line break between the token before and this one? */
bool lilac_simt_read_on_new_line(const reader *r) {
    const lilac_scanner *s = &r->scanner;
    return s->kind == LILAC_TOKEN_END ||
           memchr(s->text + s->previous_end, '\n', s->offset - s->previous_end) != NULL;
}

/* ---- names ------------------------------------------------------------------------------ */

uint32_t lilac_simt_read_name_slot(const reader *r, lilac_name name) {
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
            r->known[lilac_simt_read_name_slot(r, old[k].name)] = old[k];
        }
    }
    lilac_heap_free(old);
}

lilac_name lilac_simt_read_take_name(reader *r) {
    lilac_name name = lilac_intern(r->context, r->scanner.word, r->scanner.word_length);
    lilac_scanner_next(&r->scanner);
    return name;
}

void lilac_simt_read_define(reader *r, const result_name *result, lilac_simt_value value) {
    if ((r->known_count + 1) * 2 > r->known_capacity) {
        grow_names(r);
    }
    uint32_t slot = lilac_simt_read_name_slot(r, result->name);
    if (r->known[slot].name != NULL) {
        lilac_simt_read_fail_at(r, result->offset, "redefined-value", "a second definition of",
                                result->name, strlen(result->name));
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
    uint32_t slot = r->known_capacity > 0 ? lilac_simt_read_name_slot(r, name) : 0;
    if (r->known_capacity == 0 || r->known[slot].name == NULL) {
        return lilac_simt_read_fail_here(r, "undefined-value", "no value is called");
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

bool lilac_simt_read_operand(reader *r) {
    lilac_simt_value value = 0;
    return look_up(r, &value) && push_operand(r, value);
}

/* a, b, …: at least one. */
bool lilac_simt_read_operands(reader *r) {
    uint32_t base = r->operand_count;
    do {
        if (!lilac_simt_read_operand(r)) {
            return false;
        }
        if (r->operand_count - base > MOST_OPERANDS) {
            return lilac_simt_read_fail_here(r, "too-many-operands", "too many operands before");
        }
    } while (lilac_scanner_accept(&r->scanner, ','));
    return true;
}

/* %name [uniform] */
bool lilac_simt_read_result(reader *r) {
    if (r->scanner.kind != LILAC_TOKEN_VALUE) {
        return lilac_scanner_expected(&r->scanner, "the name of a value");
    }
    if (r->result_count == r->result_capacity) {
        r->result_capacity = r->result_capacity == 0 ? 64 : r->result_capacity * 2;
        r->results = lilac_heap_grow(r->results, sizeof *r->results * (size_t)r->result_capacity);
    }
    result_name *result = &r->results[r->result_count++];
    result->offset = r->scanner.offset;
    result->name = lilac_simt_read_take_name(r);
    result->uniform = lilac_scanner_accept_word(&r->scanner, "uniform");
    return true;
}

bool lilac_simt_read_type(reader *r, lilac_simt_type *type) {
    if (r->scanner.kind != LILAC_TOKEN_WORD) {
        return lilac_scanner_expected(&r->scanner, "a type");
    }
    if (!lilac_simt_type_read(r->scanner.word, r->scanner.word_length, type)) {
        return lilac_simt_read_fail_here(r, "unknown-type", "no type is called");
    }
    lilac_scanner_next(&r->scanner);
    return true;
}

/* [: type, …] */
bool lilac_simt_read_types(reader *r) {
    r->type_count = 0;
    if (!lilac_scanner_accept(&r->scanner, ':')) {
        return true;
    }
    do {
        if (r->type_count == MOST_OPERANDS) {
            return lilac_simt_read_fail_here(r, "too-many-operands", "too many types before");
        }
        if (!lilac_simt_read_type(r, &r->types[r->type_count])) {
            return false;
        }
        r->type_count++;
    } while (lilac_scanner_accept(&r->scanner, ','));
    return true;
}

/* ---- strings, numbers, locations -------------------------------------------------------- */

/* The text between quotes with \HH, \n, \t, \", \\ undone. */
lilac_name lilac_simt_read_unescape(reader *r, const char *bytes, size_t length) {
    char *copy = lilac_heap_grow(NULL, length + 1);
    size_t n = 0;
    for (size_t k = 0; k < length; k++) {
        char c = bytes[k];
        if (c == '\\' && k + 1 < length) {
            char next = bytes[++k];
            int high = lilac_hex_digit(next);
            int low = k + 1 < length ? lilac_hex_digit(bytes[k + 1]) : -1;
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

bool lilac_simt_read_string(reader *r, lilac_name *text) {
    if (r->scanner.kind != LILAC_TOKEN_STRING) {
        return lilac_scanner_expected(&r->scanner, "a string");
    }
    *text = lilac_simt_read_unescape(r, r->scanner.word, r->scanner.word_length);
    lilac_scanner_next(&r->scanner);
    return true;
}

bool lilac_simt_read_count(reader *r, uint32_t *count) {
    int64_t value;
    uint32_t offset = r->scanner.offset;
    if (!lilac_scanner_integer(&r->scanner, &value)) {
        return false;
    }
    if (value < 0 || value > UINT32_MAX) {
        return lilac_simt_read_fail_at(r, offset, "bad-number",
                                       "out of range:", r->scanner.text + offset,
                                       r->scanner.previous_end - offset);
    }
    *count = (uint32_t)value;
    return true;
}

/* [loc("file":line:column)] */
bool lilac_simt_read_location(reader *r, lilac_location *location) {
    lilac_location_info info = {.kind = LILAC_LOCATION_FILE};
    if (!lilac_scanner_accept_word(&r->scanner, "loc")) {
        return true;
    }
    if (!lilac_scanner_expect(&r->scanner, '(') || !lilac_simt_read_string(r, &info.name) ||
        !lilac_scanner_expect(&r->scanner, ':') || !lilac_simt_read_count(r, &info.line) ||
        !lilac_scanner_expect(&r->scanner, ':') || !lilac_simt_read_count(r, &info.column) ||
        !lilac_scanner_expect(&r->scanner, ')')) {
        return false;
    }
    *location = lilac_location_get(r->context, &info);
    return true;
}

/* ---- constants -------------------------------------------------------------------------- */

bool lilac_simt_read_literal(reader *r, written_number *literal) {
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
        uint64_t digit = (uint64_t)lilac_hex_digit(literal->word[at]);
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

bool lilac_simt_read_literal_bits(reader *r, const written_number *literal, lilac_simt_type type,
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
    return good ||
           lilac_simt_read_fail_at(r, literal->offset, "bad-constant",
                                   is_float ? "not the number or the bits (0x…) of such a float:"
                                            : "not a number of this type:",
                                   literal->word, literal->length);
}

/* ---- modifiers -------------------------------------------------------------------------- */

bool lilac_simt_read_choice(reader *r, const char *const *names, uint8_t *choice) {
    for (uint32_t k = 0; names[k] != NULL; k++) {
        if (lilac_scanner_is_word(&r->scanner, names[k])) {
            *choice = (uint8_t)k;
            lilac_scanner_next(&r->scanner);
            return true;
        }
    }
    return lilac_simt_read_fail_here(r, "unknown-modifier", "no such choice:");
}

static bool read_scalar(reader *r, uint8_t *choice) {
    lilac_scalar scalar;
    if (r->scanner.kind != LILAC_TOKEN_WORD ||
        !lilac_scalar_read(r->scanner.word, r->scanner.word_length, &scalar)) {
        return lilac_simt_read_fail_here(r, "unknown-type", "no element type is called");
    }
    *choice = (uint8_t)scalar;
    lilac_scanner_next(&r->scanner);
    return true;
}

/* A number of the payload, at least field->least and at most field->most. */
static bool read_payload_number(reader *r, const lilac_simt_payload_field *field, int64_t *value) {
    lilac_scanner *s = &r->scanner;
    uint32_t at = s->offset;
    if (!lilac_scanner_integer(s, value)) {
        return false;
    }
    if (*value < field->least || *value > field->most) {
        return lilac_simt_read_fail_at(r, at, "bad-number", "out of range:", s->text + at,
                                       s->previous_end - at);
    }
    return true;
}

/* [= value] of a field whose name is passed. */
static bool read_payload_value(reader *r, lilac_simt_instruction *like,
                               const lilac_simt_payload_field *field) {
    int64_t value = 1;
    uint8_t choice = 0;
    bool good = field->kind == LILAC_SIMT_FIELD_FLAG || lilac_scanner_expect(&r->scanner, '=');
    if (good && field->kind == LILAC_SIMT_FIELD_NUMBER) {
        good = read_payload_number(r, field, &value);
    } else if (good && field->kind == LILAC_SIMT_FIELD_CHOICE) {
        good = lilac_simt_read_choice(r, field->choices, &choice);
        value = choice;
    } else if (good && field->kind == LILAC_SIMT_FIELD_SCALAR) {
        good = read_scalar(r, &choice);
        value = choice;
    }
    if (good) {
        lilac_simt_payload_set(like, field, value);
    }
    return good;
}

/* The word for the immediate of an operation. */
static bool accept_immediate(lilac_scanner *s, uint32_t code) {
    const char *word = lilac_simt_is_named_barrier(code)         ? "threads"
                       : code == LILAC_SIMT_OP_GROUP_BARRIER     ? "threads"
                       : code == LILAC_SIMT_OP_SET_MAX_REGISTERS ? "registers"
                       : lilac_simt_awaits_groups(code)          ? "groups"
                                                                 : "immediate";
    return lilac_scanner_accept_word(s, word) || lilac_scanner_accept_word(s, "immediate");
}

static bool read_modifier(reader *r, lilac_simt_instruction *like) {
    lilac_scanner *s = &r->scanner;
    const struct {
        const char *word, *const *names;
        uint8_t *choice;
    } choices[] = {{"cache", lilac_simt_cache_names, &like->cache},
                   {"evict", lilac_simt_evict_names, &like->evict},
                   {"order", lilac_simt_order_names, &like->order},
                   {"scope", lilac_simt_scope_names, &like->scope},
                   {"round", lilac_simt_rounding_names, &like->detail}};
    uint32_t count = 0;
    const lilac_simt_payload_field *field = NULL;
    while ((field = lilac_simt_payload_next((lilac_simt_opcode)like->code, field)) != NULL) {
        if (lilac_scanner_accept_word(s, field->name)) {
            return read_payload_value(r, like, field);
        }
    }
    for (uint32_t k = 0; lilac_simt_flag_names[k].name != NULL; k++) {
        if (lilac_scanner_accept_word(s, lilac_simt_flag_names[k].name)) {
            like->flags |= lilac_simt_flag_names[k].flag;
            return true;
        }
    }
    for (size_t k = 0; k < sizeof choices / sizeof *choices; k++) {
        if (lilac_scanner_accept_word(s, choices[k].word)) {
            return lilac_scanner_expect(s, '=') &&
                   lilac_simt_read_choice(r, choices[k].names, choices[k].choice);
        }
    }
    if (lilac_scanner_accept_word(s, "scalar")) {
        return lilac_scanner_expect(s, '=') && read_scalar(r, &like->scalar);
    }
    bool copy = like->code == LILAC_SIMT_OP_CP_ASYNC;
    bool named = lilac_simt_is_named_barrier(like->code);
    if (lilac_scanner_accept_word(s, "detail") || (copy && lilac_scanner_accept_word(s, "size")) ||
        (named && lilac_scanner_accept_word(s, "id"))) {
        uint32_t offset = s->offset;
        if (!lilac_scanner_expect(s, '=') || !lilac_simt_read_count(r, &count)) {
            return false;
        }
        like->detail = (uint8_t)count;
        return count <= UINT8_MAX || lilac_simt_read_fail_at(r, offset, "bad-number",
                                                             "out of range:", s->text + offset, 1);
    }
    if (lilac_scanner_accept_word(s, "bytes")) {
        return lilac_scanner_expect(s, '=') && lilac_simt_read_count(r, &like->shared_begin) &&
               lilac_scanner_expect_word(s, "to") && lilac_simt_read_count(r, &like->shared_end);
    }
    if (lilac_scanner_accept_word(s, "partition")) {
        return lilac_scanner_expect(s, '=') && lilac_simt_read_count(r, &like->shared_partition);
    }
    if (accept_immediate(s, like->code)) {
        return lilac_scanner_expect(s, '=') && lilac_scanner_integer(s, &like->immediate);
    }
    if (lilac_scanner_accept_word(s, "text")) {
        return lilac_scanner_expect(s, '=') && lilac_simt_read_string(r, &like->text);
    }
    return lilac_simt_read_fail_here(r, "unknown-modifier", "no modifier is called");
}

bool lilac_simt_read_modifiers(reader *r, lilac_simt_instruction *like) {
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
