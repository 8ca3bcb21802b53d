/* Signatures: the types of operands and results (simt_ops.def describes the notation).
 *
 *     signature   i64,?i1,*a:*a        operands : results
 *     element     group=  ?  *  type   each part may be absent
 *
 * Elements are matched from left to right. A letter is bound to the type of the first value that it
 * matches; later values with that letter must have that type. An optional or repeated element
 * consumes every value that fits, so no signature needs to be matched in two ways. */
#include "verify/verify.h"

#include <lilac/simt_matrix.h>

#include <string.h>

enum { EXPECTED = 48 }; /* bytes of the description of a type */

typedef struct element {
    const char *group; /* the name of a group of operands; NULL: no group */
    uint32_t group_length;
    char repeat;      /* 0, ? or * */
    const char *name; /* a letter, a type or, with length 0, nothing */
    uint32_t length;
} element;

/* One side of an instruction: its operands or its results. */
typedef struct side {
    const char *what; /* "operand" or "result" */
    uint32_t count;
    const lilac_simt_value *values; /* NULL: consecutive values from `first` */
    lilac_simt_value first;
} side;

static bool next_element(const char **at, element *e) {
    const char *s = *at;
    if (*s == ':' || *s == 0) {
        return false;
    }
    size_t name = strcspn(s, "=,:");
    e->group = s[name] == '=' ? s : NULL;
    e->group_length = (uint32_t)name;
    s += e->group != NULL ? name + 1 : 0;
    e->repeat = 0;
    if (*s == '?' || *s == '*') {
        e->repeat = *s++;
    }
    e->name = s;
    e->length = (uint32_t)strcspn(s, ",:");
    s += e->length;
    *at = *s == ',' ? s + 1 : s;
    return true;
}

/* Does a value of this type match the element? If so, binds the element's letter. */
static bool fits(const element *e, lilac_simt_type type, lilac_simt_type *letters) {
    lilac_simt_type fixed;
    if (type == LILAC_SIMT_VOID) {
        return false;
    }
    if (e->length == 0) {
        return true;
    }
    if (e->length > 1) {
        return lilac_simt_type_read(e->name, e->length, &fixed) && fixed == type;
    }
    char letter = *e->name;
    bool is_integer = lilac_simt_type_is_integer(type);
    bool allowed = letter == 'i' || letter == 'j'   ? is_integer
                   : letter == 'f' || letter == 'g' ? lilac_simt_type_is_float(type)
                   : letter == 'w'                  ? lilac_simt_type_bits(type) == 32
                                                    : true;
    lilac_simt_type *bound = &letters[letter - 'a'];
    if (!allowed || (*bound != LILAC_SIMT_VOID && *bound != type)) {
        return false;
    }
    *bound = type;
    return true;
}

/* Describes the types that the element accepts. */
static const char *expected(const element *e, const lilac_simt_type *letters,
                            char text[static EXPECTED]) {
    if (e->length != 1) {
        size_t length = e->length < EXPECTED ? e->length : EXPECTED - 1;
        memcpy(text, e->name, length);
        text[length] = 0;
        return e->length > 0 ? text : "any type";
    }
    char letter = *e->name;
    if (letters[letter - 'a'] != LILAC_SIMT_VOID) {
        return lilac_simt_type_name(letters[letter - 'a']);
    }
    return letter == 'i' || letter == 'j'   ? "an integer"
           : letter == 'f' || letter == 'g' ? "a float"
           : letter == 'w'                  ? "a type of 32 bits"
                                            : "any type";
}

/* Matches the operands from number `k` on against an element that is a group, the instruction's group
 * `number`. Returns the number of the operand after the group; UINT32_MAX after an error. */
static uint32_t match_group(verifier *v, const element *e, uint32_t number, uint32_t k,
                            lilac_simt_type *letters) {
    const lilac_simt_instruction *i = v->instruction;
    if (number == 0) {
        lilac_text why = {0};
        bool exists = lilac_simt_check_matrix_shape(v->kernel, i, &why);
        if (!exists) {
            lilac_simt_verify_fail(v, "simt-matrix", "%s", lilac_text_get(&why));
        }
        lilac_text_clear(&why);
        if (!exists) {
            return UINT32_MAX;
        }
    }
    uint32_t size = lilac_simt_group_size(i, number), remaining = i->operand_count - k;
    if (remaining < size) {
        lilac_simt_verify_fail(v, "simt-operand-count",
                               "group %.*s of %s has %u operands; it needs %u",
                               (int)e->group_length, e->group, operation_name(i), remaining, size);
        return UINT32_MAX;
    }
    for (uint32_t n = 0; n < size; n++, k++) {
        if (!fits(e, type_of(v, i->operands[k]), letters)) {
            char text[EXPECTED];
            lilac_simt_verify_fail(v, "simt-operand-type",
                                   "operand %u of group %.*s is %s; %s is allowed", n + 1,
                                   (int)e->group_length, e->group, type_name_of(v, i->operands[k]),
                                   expected(e, letters, text));
            return UINT32_MAX;
        }
    }
    return k;
}

/* Reports that value number `k` of the side does not match an element that needs one. */
static void fail_at(verifier *v, const side *s, uint32_t k, const element *e,
                    const lilac_simt_type *letters, const char *signature) {
    const char *name = operation_name(v->instruction);
    char text[EXPECTED];
    if (k >= s->count) {
        lilac_simt_verify_fail(v, "simt-operand-count",
                               "%s has %u %ss; %s %u is missing (signature %s)", name, s->count,
                               s->what, s->what, k + 1, signature);
        return;
    }
    lilac_simt_value value = s->values != NULL ? s->values[k] : s->first + k;
    lilac_simt_verify_fail(v, "simt-operand-type",
                           "%s %u of %s is %s; %s is allowed (signature %s)", s->what, k + 1, name,
                           type_name_of(v, value), expected(e, letters, text), signature);
}

/* Matches one side against the elements up to ':' or the end. */
static bool match(verifier *v, const char **at, const side *s, lilac_simt_type *letters) {
    const char *signature =
        lilac_simt_op_info_get((lilac_simt_opcode)v->instruction->code)->signature;
    uint32_t k = 0, number = 0;
    element e;
    while (next_element(at, &e)) {
        if (e.group != NULL) {
            k = match_group(v, &e, number++, k, letters);
            if (k == UINT32_MAX) {
                return false;
            }
            continue;
        }
        for (bool more = true; more;) {
            lilac_simt_value value =
                k < s->count ? (s->values != NULL ? s->values[k] : s->first + k) : 0;
            bool fit = k < s->count && fits(&e, type_of(v, value), letters);
            more = fit && e.repeat == '*';
            k += fit;
            if (!fit && e.repeat == 0) {
                fail_at(v, s, k, &e, letters, signature);
                return false;
            }
        }
    }
    if (k < s->count) {
        lilac_simt_value value = s->values != NULL ? s->values[k] : s->first + k;
        lilac_simt_verify_fail(
            v, "simt-operand-type", "%s %u of %s is %s, which no element of signature %s accepts",
            s->what, k + 1, operation_name(v->instruction), type_name_of(v, value), signature);
        return false;
    }
    return true;
}

bool lilac_simt_verify_signature(verifier *v, const lilac_simt_instruction *i) {
    const char *at = lilac_simt_op_info_get((lilac_simt_opcode)i->code)->signature;
    lilac_simt_type letters[26] = {LILAC_SIMT_VOID};
    side operands = {.what = "operand", .count = i->operand_count, .values = i->operands};
    side results = {.what = "result", .count = i->result_count, .first = i->result};
    if (!match(v, &at, &operands, letters)) {
        return false;
    }
    at += *at == ':';
    return match(v, &at, &results, letters);
}
