/* The verifier: what every pass may rely on and must keep.
 *
 *   - operand and result types as the operation's signature says
 *   - a value is defined once, before its uses, in the same body or one around it
 *   - a body ends with the terminator that its place asks for, and only there
 *   - conditions and loop bounds are uniform
 *   - carried values, yielded values and results agree in number and type
 *   - accesses are of a size the device has, packed parts fill their whole
 *
 * One walk in text order with a mark for each value in reach. An error names the instruction and
 * prints it. */
#include "internal.h"

#include <lilac/simt_matrix.h>

#include <stdarg.h>
#include <string.h>

typedef struct verifier {
    const lilac_simt_module *module;
    const lilac_simt_kernel *kernel;
    uint8_t *reach; /* of each value: 1 in reach, 2 defined but out of reach */
    const lilac_simt_instruction *instruction;
    bool maps; /* the kernel has a parameter that is a tensor map */
    bool ok;
} verifier;

typedef lilac_simt_instruction instruction;

static void fail(verifier *v, const char *id, const char *format, ...) LILAC_PRINTF(3, 4);

static void put_error(const lilac_simt_kernel *kernel, const instruction *i, const char *id,
                      const char *format, va_list arguments) {
    lilac_context *context = kernel->module->context;
    lilac_position nowhere = {0};
    lilac_verror(context, nowhere, i != NULL ? i->location : kernel->location, id, format,
                 arguments);
    if (i != NULL && lilac_error_count(context) <= 64) {
        lilac_text text = {0};
        lilac_simt_print_instruction(&text, kernel, i);
        lilac_note(context, nowhere, 0, "in kernel '%s': %s",
                   kernel->name != NULL ? kernel->name : "", lilac_text_get(&text));
        lilac_text_clear(&text);
    }
}

void lilac_simt_verify_error(const lilac_simt_kernel *kernel, const instruction *i, const char *id,
                             const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    put_error(kernel, i, id, format, arguments);
    va_end(arguments);
}

static void fail(verifier *v, const char *id, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    put_error(v->kernel, v->instruction, id, format, arguments);
    va_end(arguments);
    v->ok = false;
}

static lilac_simt_type type_of(const verifier *v, lilac_simt_value value) {
    return value < v->kernel->value_count ? (lilac_simt_type)v->kernel->values[value].type
                                          : LILAC_SIMT_VOID;
}

static const char *name_of(const verifier *v, lilac_simt_value value) {
    return lilac_simt_type_name(type_of(v, value));
}

/* The rules of matrix.c. */
typedef bool matrix_rule(const lilac_simt_kernel *, const instruction *, lilac_text *);

static bool check_matrix(verifier *v, matrix_rule *rule) {
    lilac_text why = {0};
    bool good = rule(v->kernel, v->instruction, &why);
    if (!good) {
        fail(v, "simt-matrix", "%s", lilac_text_get(&why));
    }
    lilac_text_clear(&why);
    return good;
}

/* ---- signatures ------------------------------------------------------------------------- */

/* One element of a signature: the name of a group and `=`, or nothing; `?` or `*`, or nothing; then a
 * letter, a type, or nothing. */
typedef struct element {
    const char *group; /* its name; NULL: no group */
    uint32_t group_length;
    char repeat; /* 0, ? or * */
    const char *name;
    uint32_t length;
} element;

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

/* Does the type fit, given what the letters before stand for? A letter seen first is bound. */
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

/* Matches the operands from `k` on against a group, number `number`; the operand behind it, or
 * UINT32_MAX after a report. */
static uint32_t match_group(verifier *v, const element *e, uint32_t number, uint32_t k,
                            lilac_simt_type *letters) {
    const instruction *i = v->instruction;
    if (number == 0 && !check_matrix(v, lilac_simt_check_matrix_shape)) {
        return UINT32_MAX;
    }
    uint32_t size = lilac_simt_group_size(i, number), rest = i->operand_count - k;
    if (rest < size) {
        fail(v, "simt-operand-count", "group %.*s has %u operands and needs %u",
             (int)e->group_length, e->group, rest, size);
        return UINT32_MAX;
    }
    for (uint32_t n = 0; n < size; n++, k++) {
        if (!fits(e, type_of(v, i->operands[k]), letters)) {
            fail(v, "simt-operand-type", "operand %u of group %.*s is %s, which is not %.*s", n + 1,
                 (int)e->group_length, e->group, name_of(v, i->operands[k]), (int)e->length,
                 e->name);
            return UINT32_MAX;
        }
    }
    return k;
}

/* Matches values against the elements up to ':' or the end. */
static bool match(verifier *v, const char **at, const char *what, uint32_t count,
                  const lilac_simt_value *values, lilac_simt_value first,
                  lilac_simt_type *letters) {
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
            lilac_simt_value value = k < count ? (values != NULL ? values[k] : first + k) : 0;
            bool fit = k < count && fits(&e, type_of(v, value), letters);
            more = fit && e.repeat == '*';
            k += fit;
            if (!fit && e.repeat == 0) {
                if (k >= count) {
                    fail(v, "simt-operand-count", "%s %u is missing (signature %s)", what, k + 1,
                         signature);
                } else {
                    fail(v, "simt-operand-type", "%s %u is %s, which does not fit signature %s",
                         what, k + 1, name_of(v, value), signature);
                }
                return false;
            }
        }
    }
    if (k < count) {
        lilac_simt_value value = values != NULL ? values[k] : first + k;
        fail(v, "simt-operand-type", "%s %u, a %s, does not fit signature %s", what, k + 1,
             name_of(v, value), signature);
        return false;
    }
    return true;
}

static bool check_signature(verifier *v, const instruction *i) {
    const char *at = lilac_simt_op_info_get((lilac_simt_opcode)i->code)->signature;
    lilac_simt_type letters[26] = {LILAC_SIMT_VOID};
    if (!match(v, &at, "operand", i->operand_count, i->operands, 0, letters)) {
        return false;
    }
    at += *at == ':';
    return match(v, &at, "result", i->result_count, NULL, i->result, letters);
}

/* ---- single operations ------------------------------------------------------------------ */

static bool is_fine_float(lilac_simt_type type) {
    return type == LILAC_SIMT_F32 || type == LILAC_SIMT_F64;
}

static void check_access(verifier *v, const instruction *i) {
    bool load = lilac_simt_is_load(i->code);
    bool predicated = i->operand_count > 1 && type_of(v, i->operands[1]) == LILAC_SIMT_I1;
    uint32_t values = i->operand_count - 1u - predicated;
    uint32_t count = load ? i->result_count : values;
    const lilac_arch *arch = v->module->arch;
    if (load && values != 0 && (!predicated || values != count)) {
        fail(v, "simt-access-others", "%u substitutes for %u loaded values%s", values, count,
             predicated ? "" : " and no predicate");
        return;
    }
    if (count != 1 && count != 2 && count != 4) {
        fail(v, "simt-access-size", "an access is of 1, 2 or 4 elements, not %u", count);
        return;
    }
    lilac_simt_type type = type_of(v, load ? i->result : i->operands[i->operand_count - count]);
    uint32_t bits = lilac_simt_type_bits(type);
    if (bits < 8 || (arch != NULL && bits * count > 8 * arch->vector_bytes)) {
        fail(v, "simt-access-size", "%u x %s cannot be accessed at once (at most %u bytes)", count,
             lilac_simt_type_name(type), arch != NULL ? arch->vector_bytes : 16);
    }
}

/* The size and cache operator of a copy, and how many bytes it reads where that is known. */
static void check_copy(verifier *v, const instruction *i) {
    bool predicated = type_of(v, i->operands[1]) == LILAC_SIMT_I1;
    uint32_t size = i->detail;
    uint64_t bytes = 0;
    if (size != 4 && size != 8 && size != 16) {
        fail(v, "simt-copy", "a copy is of 4, 8 or 16 bytes, not %u", size);
    } else if (i->evict != 0 || i->flags != 0 ||
               (i->cache != LILAC_SIMT_CACHE_NONE && i->cache != LILAC_SIMT_CACHE_CA &&
                (i->cache != LILAC_SIMT_CACHE_CG || size != 16))) {
        fail(v, "simt-copy", "a copy of %u bytes has the cache operator ca%s and no other modifier",
             size, size == 16 ? " or cg" : "");
    } else if (i->operand_count == 3u + predicated &&
               lilac_simt_constant_bits(v->kernel, i->operands[2u + predicated], &bytes) &&
               bytes > size) {
        fail(v, "simt-copy", "a copy of %u bytes reads at most as many, not %llu", size,
             (unsigned long long)bytes);
    } else if (lilac_simt_constant_bits(v->kernel, i->operands[0], &bytes) &&
               (bytes + (uint64_t)i->immediate) % size != 0) {
        fail(v, "simt-copy", "the shared address is no multiple of the copy's %u bytes", size);
    }
}

static void check_wait(verifier *v, const instruction *i) {
    if (i->immediate < 0 || i->immediate > INT32_MAX) {
        fail(v, "simt-wait", "%lld groups cannot be incomplete", (long long)i->immediate);
    }
}

static void check_atomic(verifier *v, const instruction *i) {
    bool swaps = i->code == LILAC_SIMT_OP_CAS_GLOBAL;
    bool predicated = i->operand_count > 1 && type_of(v, i->operands[1]) == LILAC_SIMT_I1;
    uint32_t count = i->operand_count - 1u - predicated;
    if (i->order >= LILAC_SIMT_ORDER_COUNT || i->scope >= LILAC_SIMT_SCOPE_COUNT ||
        (!swaps && i->detail >= LILAC_SIMT_ATOMIC_COUNT)) {
        fail(v, "simt-detail", "there is no such atomic, order or scope");
        return;
    }
    if (count == 0 || (i->result_count != 0 && i->result_count != (swaps ? 1 : count))) {
        fail(v, "simt-operand-count", "%u old values of an atomic of %u values", i->result_count,
             count);
        return;
    }
    lilac_simt_type type = type_of(v, i->operands[1 + predicated]);
    uint32_t bits = lilac_simt_type_bits(type);
    bool is_float = lilac_simt_type_is_float(type);
    bool word = bits == 32 || bits == 64;
    bool adds = i->detail == LILAC_SIMT_ATOMIC_ADD;
    bool bitwise = i->detail <= LILAC_SIMT_ATOMIC_XOR || i->detail == LILAC_SIMT_ATOMIC_EXCHANGE;
    bool good = swaps ? word || bits == 16 : word ? adds || bitwise || !is_float : adds && is_float;
    if (!good) {
        fail(v, "simt-operand-type", "no device has this atomic of %s", lilac_simt_type_name(type));
    }
    if (!swaps && count != 1 &&
        ((count != 2 && count != 4) || !adds || i->code != LILAC_SIMT_OP_ATOMIC_GLOBAL ||
         !is_float || bits * count > 128 || bits > 32)) {
        fail(v, "simt-access-size",
             "atomics of several elements add 2 or 4 floats in global memory, at most 16 bytes");
    }
}

/* The interval that an access promises to stay in. */
static void check_interval(verifier *v, const instruction *i) {
    bool promises = i->shared_begin != 0 || i->shared_end != 0 || i->shared_partition != 0;
    bool meets = i->code == LILAC_SIMT_OP_GROUP_BARRIER && i->shared_end == 0;
    if (!promises || meets) {
        return;
    }
    if (!lilac_simt_is_shared_access(i->code)) {
        fail(v, "simt-interval", "%s promises bytes of shared memory, which it does not access",
             lilac_simt_op_info_get((lilac_simt_opcode)i->code)->name);
    } else if ((i->shared_begin != 0 || i->shared_end != 0) && i->shared_begin >= i->shared_end) {
        fail(v, "simt-interval", "no byte from %u to %u", i->shared_begin, i->shared_end);
    }
}

/* Every conversion of a print's format takes a value of the right type, and all are taken. */
static void check_format(verifier *v, const instruction *i) {
    bool predicated = i->operand_count > 0 && type_of(v, i->operands[0]) == LILAC_SIMT_I1;
    uint32_t next = predicated;
    lilac_simt_conversion c;
    const char *at = i->text != NULL ? i->text : "";
    while (lilac_simt_next_conversion(&at, &c)) {
        if (c.letter == '%') {
            continue;
        }
        lilac_simt_type type =
            next < i->operand_count ? type_of(v, i->operands[next]) : LILAC_SIMT_VOID;
        bool is_float = c.letter == 'f' || c.letter == 'e' || c.letter == 'g';
        bool good =
            is_float ? is_fine_float(type) : type == (c.wide ? LILAC_SIMT_I64 : LILAC_SIMT_I32);
        if (c.letter == 0 || !good) {
            fail(v, "simt-text", "'%.*s' of the format does not print value %u, a %s",
                 (int)(c.end - c.begin), c.begin, next + 1 - predicated,
                 lilac_simt_type_name(type));
            return;
        }
        next++;
    }
    if (next != i->operand_count) {
        fail(v, "simt-text", "%u values and %u conversions in the format",
             i->operand_count - (uint32_t)predicated, next - predicated);
    }
}

/* $n stands for one of the results and operands. */
static void check_assembly(verifier *v, const instruction *i) {
    if (i->text == NULL) {
        fail(v, "simt-text", "no assembly");
        return;
    }
    for (const char *at = i->text; *at != 0; at++) {
        if (*at != '$') {
            continue;
        }
        char next = *++at;
        if (next == '$') {
            continue;
        }
        uint32_t number = 0;
        bool digits = next >= '0' && next <= '9';
        while (*at >= '0' && *at <= '9' && number < 65536) {
            number = number * 10 + (uint32_t)(*at++ - '0');
        }
        if (!digits || number >= (uint32_t)i->result_count + i->operand_count) {
            fail(v, "simt-text", "the assembly's %s is none of %u results and operands",
                 digits ? "number" : "dollar sign", i->result_count + i->operand_count);
            return;
        }
        at--;
    }
}

static void check_feature(verifier *v, const instruction *i, lilac_feature feature) {
    const lilac_arch *arch = v->module->arch;
    if (arch != NULL && !lilac_arch_has(arch, feature)) {
        fail(v, "simt-feature", "%s has no %s", arch->name,
             lilac_simt_op_info_get((lilac_simt_opcode)i->code)->name);
    }
}

static void check_bulk(verifier *v, const instruction *i) {
    lilac_text why = {0};
    if (!lilac_simt_check_bulk(v->kernel, i, &why)) {
        fail(v, "simt-bulk", "%s", lilac_text_get(&why));
    }
    lilac_text_clear(&why);
    check_feature(v, i, LILAC_HAS_TMA);
}

static void check_group_barrier(verifier *v, const instruction *i) {
    const lilac_arch *arch = v->module->arch;
    int64_t warp = arch != NULL ? arch->warp_size : 32;
    int64_t threads = warp * v->kernel->num_warps;
    uint64_t number = 0;
    if (i->immediate <= 0 || i->immediate % warp != 0 || threads % i->immediate != 0) {
        fail(v, "simt-group", "groups of %lld threads do not make up a block of %lld",
             (long long)i->immediate, (long long)threads);
    } else if (threads / i->immediate > 15) {
        fail(v, "simt-group", "%lld groups; a block has barriers for 15",
             (long long)(threads / i->immediate));
    } else if (i->shared_partition != 0 &&
               (i->shared_partition >= v->kernel->num_warps ||
                i->immediate << __builtin_popcount(i->shared_partition) != threads)) {
        fail(v, "simt-group", "warps told apart by bits 0x%x do not come in groups of %lld threads",
             i->shared_partition, (long long)i->immediate);
    } else if (lilac_simt_constant_bits(v->kernel, i->operands[0], &number) && number > 14) {
        fail(v, "simt-group", "there is no group %llu: they are 0 to 14",
             (unsigned long long)number);
    }
}

static void need_uniform(verifier *v, lilac_simt_value value, const char *what);

/* The object's alignment, numbers that are constants, and uniform operands of a wait. */
static void check_mbarrier(verifier *v, const instruction *i) {
    enum { OBJECT = 8, MOST = (1 << 20) - 1 };
    uint64_t bits = 0;
    bool waits =
        i->code == LILAC_SIMT_OP_MBARRIER_WAIT || i->code == LILAC_SIMT_OP_MBARRIER_TRY_WAIT;
    bool predicated = i->operand_count > 1 && type_of(v, i->operands[1]) == LILAC_SIMT_I1;
    bool counts = i->operand_count > 1u + predicated && !waits;
    check_feature(v, i, LILAC_HAS_TMA);
    if (lilac_simt_constant_bits(v->kernel, i->operands[0], &bits) &&
        (bits + (uint64_t)i->immediate) % OBJECT != 0) {
        fail(v, "simt-mbarrier", "the address %llu of the mbarrier is not a multiple of 8",
             (unsigned long long)bits + (unsigned long long)i->immediate);
    }
    if (counts && lilac_simt_constant_bits(v->kernel, i->operands[1 + predicated], &bits) &&
        (bits == 0 || bits > MOST)) {
        fail(v, "simt-mbarrier", "%s of %llu: 1 to %d are allowed",
             lilac_simt_op_info_get((lilac_simt_opcode)i->code)->name, (unsigned long long)bits,
             MOST);
    }
    if (waits) {
        need_uniform(v, i->operands[0], "the address of the mbarrier");
        need_uniform(v, i->operands[1], "the parity");
    }
}

static void check_parts(verifier *v, lilac_simt_value part, uint32_t count,
                        lilac_simt_value whole) {
    uint32_t bits = lilac_simt_type_bits(type_of(v, part));
    uint32_t width = lilac_simt_type_bits(type_of(v, whole));
    if (count == 0 || bits < 8 || bits * count != width) {
        fail(v, "simt-pack-width", "%u x %s do not make up %s", count, name_of(v, part),
             name_of(v, whole));
    }
}

static void check_width(verifier *v, const instruction *i) {
    uint32_t from = lilac_simt_type_bits(type_of(v, i->operands[0]));
    uint32_t to = lilac_simt_type_bits(type_of(v, i->result));
    bool right = i->code == LILAC_SIMT_OP_BITCAST ? from == to
                 : i->code == LILAC_SIMT_OP_TRUNC ? to < from
                                                  : to > from;
    if (!right) {
        fail(v, "simt-width", "%s from %s to %s",
             lilac_simt_op_info_get((lilac_simt_opcode)i->code)->name, name_of(v, i->operands[0]),
             name_of(v, i->result));
    }
}

static void check_parameter(verifier *v, const instruction *i) {
    if (i->immediate < 0 || (uint64_t)i->immediate >= v->kernel->parameter_count) {
        fail(v, "simt-parameter", "there is no parameter %lld", (long long)i->immediate);
    } else if (v->kernel->parameters[i->immediate].type != type_of(v, i->result)) {
        fail(v, "simt-parameter", "parameter %lld is %s", (long long)i->immediate,
             lilac_simt_type_name(v->kernel->parameters[i->immediate].type));
    }
}

static void check_detail(verifier *v, const instruction *i, uint32_t count) {
    if (i->detail >= count) {
        fail(v, "simt-detail", "there is no kind %u of %s", i->detail,
             lilac_simt_op_info_get((lilac_simt_opcode)i->code)->name);
    }
}

/* A directed rounding is for f32 and f64, and for correctly rounded results. */
static void check_rounding(verifier *v, const instruction *i) {
    check_detail(v, i, 4);
    if (i->detail == LILAC_ROUND_NEAREST_EVEN) {
        return;
    }
    if (!is_fine_float(type_of(v, i->result))) {
        fail(v, "simt-operand-type", "a directed rounding is for f32 and f64, not %s",
             lilac_simt_type_name(type_of(v, i->result)));
    }
    if (i->flags & (LILAC_SIMT_APPROXIMATE | LILAC_SIMT_SATURATE)) {
        fail(v, "simt-detail", "an approximate or saturated %s has no directed rounding",
             lilac_simt_op_info_get((lilac_simt_opcode)i->code)->name);
    }
}

static void check_float_type(verifier *v, lilac_simt_value value, bool f64_too) {
    lilac_simt_type type = type_of(v, value);
    if (f64_too ? !is_fine_float(type) : type != LILAC_SIMT_F32) {
        fail(v, "simt-operand-type", "%s is for %s, not %s",
             lilac_simt_op_info_get((lilac_simt_opcode)v->instruction->code)->name,
             f64_too ? "f32 and f64" : "f32", lilac_simt_type_name(type));
    }
}

static void check_scalar_conversion(verifier *v, const instruction *i) {
    if (lilac_simt_type_is_packed(type_of(v, i->operands[0])) ||
        lilac_simt_type_is_packed(type_of(v, i->result))) {
        fail(v, "simt-operand-type", "packed values are not converted");
    }
}

static void check_one(verifier *v, const instruction *i) {
    lilac_simt_type type;
    switch (i->code) {
    case LILAC_SIMT_OP_PARAM:
        check_parameter(v, i);
        break;
    case LILAC_SIMT_OP_BLOCK:
    case LILAC_SIMT_OP_GRID:
        check_detail(v, i, 3);
        break;
    case LILAC_SIMT_OP_SHUFFLE:
        check_detail(v, i, 4);
        break;
    case LILAC_SIMT_OP_VOTE:
        check_detail(v, i, 3);
        break;
    case LILAC_SIMT_OP_TIMER:
        check_detail(v, i, 2);
        break;
    case LILAC_SIMT_OP_REDUX:
        check_detail(v, i, LILAC_SIMT_ATOMIC_EXCHANGE);
        break;
    case LILAC_SIMT_OP_PRINT:
        check_format(v, i);
        break;
    case LILAC_SIMT_OP_ASM:
    case LILAC_SIMT_OP_ASM_VOLATILE:
        check_assembly(v, i);
        break;
    case LILAC_SIMT_OP_GROUP_BARRIER:
        check_group_barrier(v, i);
        break;
    case LILAC_SIMT_OP_SET_MAX_REGISTERS:
        check_detail(v, i, 2);
        break;
    case LILAC_SIMT_OP_ELECT:
    case LILAC_SIMT_OP_FENCE_MBARRIER_INIT:
        check_feature(v, i, LILAC_HAS_TMA);
        break;
    case LILAC_SIMT_OP_MBARRIER_ARRIVE_CLUSTER:
    case LILAC_SIMT_OP_MAP_SHARED:
    case LILAC_SIMT_OP_CLUSTER_BARRIER:
    case LILAC_SIMT_OP_LD_CLUSTER:
    case LILAC_SIMT_OP_ST_CLUSTER:
        check_feature(v, i, LILAC_HAS_CLUSTERS);
        break;
    case LILAC_SIMT_OP_WGMMA:
    case LILAC_SIMT_OP_WGMMA_FENCE:
    case LILAC_SIMT_OP_WGMMA_COMMIT:
    case LILAC_SIMT_OP_WGMMA_WAIT:
        check_feature(v, i, LILAC_HAS_WGMMA);
        check_matrix(v, lilac_simt_check_matrix);
        break;
    case LILAC_SIMT_OP_MMA:
        check_matrix(v, lilac_simt_check_matrix);
        break;
    case LILAC_SIMT_OP_CP_ASYNC_WAIT:
        check_wait(v, i);
        check_feature(v, i, LILAC_HAS_CP_ASYNC);
        break;
    case LILAC_SIMT_OP_CP_ASYNC:
        check_copy(v, i);
        check_feature(v, i, LILAC_HAS_CP_ASYNC);
        break;
    case LILAC_SIMT_OP_CP_ASYNC_COMMIT:
    case LILAC_SIMT_OP_CP_ASYNC_WAIT_ALL:
        check_feature(v, i, LILAC_HAS_CP_ASYNC);
        break;
    case LILAC_SIMT_OP_BULK_WAIT:
    case LILAC_SIMT_OP_BULK_WAIT_READ:
        check_wait(v, i);
        check_feature(v, i, LILAC_HAS_TMA);
        break;
    case LILAC_SIMT_OP_FENCE_PROXY_ASYNC:
    case LILAC_SIMT_OP_CP_BULK_STORE:
    case LILAC_SIMT_OP_CP_BULK_REDUCE:
    case LILAC_SIMT_OP_CP_BULK_LOAD:
    case LILAC_SIMT_OP_CP_TENSOR_LOAD:
    case LILAC_SIMT_OP_CP_TENSOR_STORE:
    case LILAC_SIMT_OP_CP_TENSOR_REDUCE:
    case LILAC_SIMT_OP_BULK_COMMIT:
    case LILAC_SIMT_OP_PREFETCH_TENSOR_MAP:
        check_bulk(v, i);
        break;
    case LILAC_SIMT_OP_LD_MATRIX:
    case LILAC_SIMT_OP_ST_MATRIX:
        check_detail(v, i, 2);
        check_feature(v, i,
                      i->code == LILAC_SIMT_OP_LD_MATRIX ? LILAC_HAS_LDMATRIX : LILAC_HAS_STMATRIX);
        break;
    case LILAC_SIMT_OP_CMP:
        type = type_of(v, i->operands[0]);
        if (lilac_simt_type_is_packed(type) ||
            !lilac_simt_compare_fits((lilac_simt_compare)i->detail,
                                     lilac_simt_type_is_float(type))) {
            fail(v, "simt-detail", "no comparison '%s' of %s",
                 lilac_simt_compare_name((lilac_simt_compare)i->detail),
                 lilac_simt_type_name(type));
        }
        break;
    case LILAC_SIMT_OP_FADD:
    case LILAC_SIMT_OP_FSUB:
    case LILAC_SIMT_OP_FMUL:
    case LILAC_SIMT_OP_FFMA:
        check_rounding(v, i);
        break;
    case LILAC_SIMT_OP_FDIV:
    case LILAC_SIMT_OP_FSQRT:
    case LILAC_SIMT_OP_FRCP:
        check_rounding(v, i);
        check_float_type(v, i->result, true);
        break;
    case LILAC_SIMT_OP_FRSQRT:
        check_float_type(v, i->result, true);
        break;
    case LILAC_SIMT_OP_FEXP2:
    case LILAC_SIMT_OP_FLOG2:
    case LILAC_SIMT_OP_FSIN:
    case LILAC_SIMT_OP_FCOS:
    case LILAC_SIMT_OP_FTANH:
        check_float_type(v, i->result, false);
        break;
    case LILAC_SIMT_OP_FCVT:
        check_detail(v, i, 4);
        check_scalar_conversion(v, i);
        break;
    case LILAC_SIMT_OP_S2F:
    case LILAC_SIMT_OP_U2F:
    case LILAC_SIMT_OP_F2S:
    case LILAC_SIMT_OP_F2U:
        check_scalar_conversion(v, i);
        break;
    case LILAC_SIMT_OP_F8_UNPACK:
    case LILAC_SIMT_OP_F8_PACK:
        if (i->scalar != LILAC_F8E4M3FN && i->scalar != LILAC_F8E5M2) {
            fail(v, "simt-detail", "the 8-bit float is f8E4M3FN or f8E5M2");
        }
        break;
    case LILAC_SIMT_OP_SEXT:
    case LILAC_SIMT_OP_ZEXT:
    case LILAC_SIMT_OP_TRUNC:
    case LILAC_SIMT_OP_BITCAST:
        check_width(v, i);
        break;
    case LILAC_SIMT_OP_OPAQUE:
        if (lilac_simt_type_bits(type_of(v, i->result)) < 32) {
            fail(v, "simt-width", "opaque copies i32 and i64, not %s", name_of(v, i->result));
        }
        break;
    case LILAC_SIMT_OP_PACK:
        check_parts(v, i->operand_count > 0 ? i->operands[0] : 0, i->operand_count, i->result);
        break;
    case LILAC_SIMT_OP_UNPACK:
        check_parts(v, i->result_count > 0 ? i->result : 0, i->result_count, i->operands[0]);
        break;
    default:
        break;
    }
    if (lilac_simt_has_trait(i->code, LILAC_SIMT_MBARRIER)) {
        check_mbarrier(v, i);
    } else if (lilac_simt_is_atomic(i->code)) {
        check_atomic(v, i);
    } else if (lilac_simt_is_access(i->code) &&
               !lilac_simt_has_trait(i->code, LILAC_SIMT_ASYNCHRONOUS)) {
        check_access(v, i);
    }
    check_interval(v, i);
}

/* ---- structure -------------------------------------------------------------------------- */

static void define(verifier *v, lilac_simt_value first, uint32_t count, const instruction *by,
                   const lilac_simt_body *body) {
    for (uint32_t k = 0; k < count; k++) {
        lilac_simt_value value = first + k;
        if (value == 0 || value >= v->kernel->value_count) {
            fail(v, "simt-dominance", "a result that is no value of the kernel");
            continue;
        }
        const lilac_simt_value_info *info = &v->kernel->values[value];
        if (v->reach[value] != 0 || info->definition != by || info->body != body) {
            fail(v, "simt-dominance", "a value is defined twice, or its definition is elsewhere");
        }
        v->reach[value] = 1;
    }
}

static void need_uniform(verifier *v, lilac_simt_value value, const char *what) {
    if (value < v->kernel->value_count && !v->kernel->values[value].uniform) {
        fail(v, "simt-not-uniform", "%s may differ between threads", what);
    }
}

/* `count` values agree in number and type with those from `first` on. */
static void need_same(verifier *v, const char *what, uint32_t count, const lilac_simt_value *values,
                      uint32_t wanted, lilac_simt_value first) {
    if (count != wanted) {
        fail(v, "simt-carried-type", "%s: %u values where %u are wanted", what, count, wanted);
        return;
    }
    for (uint32_t k = 0; k < count; k++) {
        if (type_of(v, values[k]) != type_of(v, first + k)) {
            fail(v, "simt-carried-type", "%s: value %u is %s where %s is wanted", what, k + 1,
                 name_of(v, values[k]), name_of(v, first + k));
        }
    }
}

static void check_body(verifier *v, const lilac_simt_body *body, lilac_simt_opcode terminator);

/* Checks a body and that its terminator, from operand `skip` on, gives values like `first` …. */
static void check_side(verifier *v, const instruction *owner, uint32_t index,
                       lilac_simt_opcode terminator, uint32_t skip, uint32_t count,
                       lilac_simt_value first, const char *what) {
    const lilac_simt_body *body = owner->bodies[index];
    check_body(v, body, terminator);
    const instruction *end = body->last;
    if (end != NULL && end->code == terminator && end->operand_count >= skip) {
        v->instruction = end;
        need_same(v, what, end->operand_count - skip, end->operands + skip, count, first);
    }
    v->instruction = owner;
}

static bool need_bodies(verifier *v, const instruction *i, uint32_t count) {
    if (i->body_count != count || i->bodies == NULL) {
        fail(v, "simt-bodies", "%u bodies where %u are wanted", i->body_count, count);
        return false;
    }
    return true;
}

static void check_loop(verifier *v, const instruction *i) {
    if (!need_bodies(v, i, 1) || i->operand_count < 3) {
        return;
    }
    const lilac_simt_body *body = i->bodies[0];
    uint32_t carried = i->operand_count - 3u;
    lilac_simt_type type = type_of(v, i->operands[0]);
    if (type != LILAC_SIMT_I32 && type != LILAC_SIMT_I64) {
        fail(v, "simt-operand-type", "a loop counts in i32 or i64, not %s",
             lilac_simt_type_name(type));
    }
    need_uniform(v, i->operands[0], "the loop's lower bound");
    need_uniform(v, i->operands[1], "the loop's upper bound");
    need_uniform(v, i->operands[2], "the loop's step");
    need_same(v, "initial values and results", carried, i->operands + 3, i->result_count,
              i->result);
    if (body->argument_count != carried + 1) {
        fail(v, "simt-carried-type", "the body has %u arguments where %u are wanted",
             body->argument_count, carried + 1);
        return;
    }
    need_same(v, "the counter", 1, i->operands, 1, body->argument);
    need_same(v, "initial values", carried, i->operands + 3, carried, body->argument + 1);
    check_side(v, i, 0, LILAC_SIMT_OP_YIELD, 0, carried, body->argument + 1, "next values");
}

static void check_if(verifier *v, const instruction *i) {
    if (!need_bodies(v, i, 2) || i->operand_count < 1) {
        return;
    }
    need_uniform(v, i->operands[0], "the condition");
    for (uint32_t side = 0; side < 2; side++) {
        if (i->bodies[side]->argument_count != 0) {
            fail(v, "simt-carried-type", "a side of an if has no arguments");
        }
        check_side(v, i, side, LILAC_SIMT_OP_YIELD, 0, i->result_count, i->result, "results");
    }
}

static void check_while(verifier *v, const instruction *i) {
    if (!need_bodies(v, i, 2)) {
        return;
    }
    const lilac_simt_body *before = i->bodies[0];
    const lilac_simt_body *after = i->bodies[1];
    need_same(v, "initial values", i->operand_count, i->operands, before->argument_count,
              before->argument);
    check_side(v, i, 0, LILAC_SIMT_OP_CONDITION, 1, i->result_count, i->result, "results");
    if (before->last != NULL && before->last->code == LILAC_SIMT_OP_CONDITION &&
        before->last->operand_count > 0) {
        v->instruction = before->last;
        need_uniform(v, before->last->operands[0], "the condition");
        need_same(v, "values passed on", before->last->operand_count - 1u,
                  before->last->operands + 1, after->argument_count, after->argument);
        v->instruction = i;
    }
    check_side(v, i, 1, LILAC_SIMT_OP_YIELD, 0, before->argument_count, before->argument,
               "next values");
}

/* Tensor maps are operands of tensor operations, and nothing else is. */
static void check_maps(verifier *v, const instruction *i) {
    for (uint32_t k = 0; k < i->operand_count; k++) {
        bool is_map = lilac_simt_tensor_map_of(v->kernel, i->operands[k]) != NULL;
        if (is_map && k != lilac_simt_map_operand(v->kernel, i)) {
            fail(v, "simt-parameter", "operand %u is a tensor map, which only tensor copies take",
                 k + 1);
        }
    }
}

static void check_instruction(verifier *v, const instruction *i, const lilac_simt_body *body,
                              lilac_simt_opcode terminator) {
    v->instruction = i;
    if (i->code == LILAC_SIMT_OP_NONE || i->code >= LILAC_SIMT_OP_COUNT) {
        fail(v, "simt-operation", "there is no operation %u", i->code);
        return;
    }
    bool in_reach = true;
    for (uint32_t k = 0; k < i->operand_count; k++) {
        lilac_simt_value value = i->operands[k];
        if (value == 0 || value >= v->kernel->value_count || v->reach[value] != 1) {
            fail(v, "simt-dominance", "operand %u is not defined before this use%s", k + 1,
                 value < v->kernel->value_count && v->reach[value] == 2
                     ? " in this body or one around it"
                     : "");
            in_reach = false;
        }
    }
    if (in_reach && v->maps) {
        check_maps(v, i);
    }
    bool ends = lilac_simt_has_trait(i->code, LILAC_SIMT_TERMINATOR);
    if (i->parent != body) {
        fail(v, "simt-links", "the instruction's body is not the one it stands in");
    }
    if (ends != (i->next == NULL) || (ends && i->code != terminator)) {
        fail(v, "simt-terminator", "a body ends with one '%s' and has no other terminator",
             lilac_simt_op_info_get(terminator)->name);
    }
    if (in_reach && check_signature(v, i)) {
        check_one(v, i);
        switch (i->code) {
        case LILAC_SIMT_OP_LOOP:
            check_loop(v, i);
            break;
        case LILAC_SIMT_OP_IF:
            check_if(v, i);
            break;
        case LILAC_SIMT_OP_WHILE:
            check_while(v, i);
            break;
        case LILAC_SIMT_OP_PROGRAMS:
            for (uint32_t k = 0; k < i->body_count; k++) {
                check_side(v, i, k, LILAC_SIMT_OP_YIELD, 0, 0, 0, "results");
            }
            break;
        default:
            break;
        }
    }
    v->instruction = i;
    define(v, i->result, i->result_count, i, body);
}

static void check_body(verifier *v, const lilac_simt_body *body, lilac_simt_opcode terminator) {
    define(v, body->argument, body->argument_count, NULL, body);
    if (body->first == NULL) {
        fail(v, "simt-terminator", "an empty body: it ends with '%s'",
             lilac_simt_op_info_get(terminator)->name);
    }
    for (const instruction *i = body->first; i != NULL; i = i->next) {
        check_instruction(v, i, body, terminator);
    }
    /* What the body defined goes out of reach. */
    for (uint32_t k = 0; k < body->argument_count; k++) {
        if (body->argument + k < v->kernel->value_count) {
            v->reach[body->argument + k] = 2;
        }
    }
    for (const instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->result_count; k++) {
            if (i->result + k < v->kernel->value_count) {
                v->reach[i->result + k] = 2;
            }
        }
    }
}

static void check_kernel(verifier *v) {
    const lilac_simt_kernel *kernel = v->kernel;
    const lilac_arch *arch = v->module->arch;
    bool programs = lilac_simt_has_programs(kernel);
    if ((programs ? kernel->num_warps == 0 : !is_power_of_two(kernel->num_warps)) ||
        (arch != NULL && kernel->num_warps > arch->max_warps)) {
        fail(v, "simt-launch-shape", "%u warps: %s at most %u, is wanted", kernel->num_warps,
             programs ? "a number," : "a power of two,", arch != NULL ? arch->max_warps : 32);
    }
    if (!is_power_of_two(kernel->num_ctas)) {
        fail(v, "simt-launch-shape", "%u blocks in a cluster: a power of two is wanted",
             kernel->num_ctas);
    }
    if (arch != NULL && kernel->shared_bytes > arch->shared_bytes) {
        fail(v, "simt-launch-shape", "%u bytes of shared memory: %s has %u a block",
             kernel->shared_bytes, arch->name, arch->shared_bytes);
    }
    for (uint32_t k = 0; k < kernel->parameter_count; k++) {
        const lilac_simt_parameter *parameter = &kernel->parameters[k];
        if (parameter->type == LILAC_SIMT_VOID ||
            ((parameter->is_pointer || parameter->is_tensor_map) &&
             parameter->type != LILAC_SIMT_I64) ||
            (parameter->is_pointer && parameter->is_tensor_map) ||
            !is_power_of_two(parameter->alignment)) {
            fail(v, "simt-parameter",
                 "parameter %u: a pointer or tensor map is an i64, an alignment a power of two", k);
        }
    }
    check_body(v, kernel->body, LILAC_SIMT_OP_RETURN);
    v->ok = v->ok && lilac_simt_verify_programs(kernel);
}

bool lilac_simt_verify(const lilac_simt_module *module) {
    bool ok = true;
    for (const lilac_simt_kernel *kernel = module->kernels; kernel != NULL; kernel = kernel->next) {
        verifier v = {.module = module, .kernel = kernel, .ok = true};
        lilac_arena *arena = lilac_arena_create();
        v.reach = lilac_arena_array(arena, uint8_t, kernel->value_count);
        for (uint32_t k = 0; k < kernel->parameter_count; k++) {
            v.maps |= kernel->parameters[k].is_tensor_map;
        }
        check_kernel(&v);
        lilac_arena_destroy(arena);
        ok &= v.ok;
    }
    return ok;
}
