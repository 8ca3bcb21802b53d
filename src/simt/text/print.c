/* The text form.
 *
 *     simt.module target "sm_90a" {
 *       kernel @axpy(%x: i64 ptr align 16, %n: i32) warps 4 ctas 1 shared 0 {
 *         %0 = thread : i32
 *         %x = param 0 : i64
 *         %1 = mulwide_s %0, %c : i64
 *         %2, %3 = ld.global [%1 + 16], %m, (%4, %5) : f32, f32 {cache = cg} loc("k.py":7:3)
 *         %6 = loop %i = %lo to %hi step %s (%acc = %init) : f32 {
 *           yield %acc
 *         }
 *         return
 *       }
 *     }
 *
 * One instruction a line: results, operation, its kind, operands, result types, modifiers,
 * location. A value prints as its hint, made unique by a suffix, or else as its place in the text;
 * the word `uniform` behind the name of a defined value is the lowering's mark. Numbers are given
 * in the order of the text, so that reading and printing again gives the same bytes whatever the
 * values' numbers in memory are. */
#include "internal.h"

#include <math.h>
#include <string.h>

const char *const lilac_simt_cache_names[] = {"none", "ca", "cg", "cs", "cv", "wb", "wt", NULL};
const char *const lilac_simt_evict_names[] = {"normal", "first", "last", NULL};
const char *const lilac_simt_shuffle_names[] = {"idx", "xor", "up", "down", NULL};
const char *const lilac_simt_atomic_names[] = {"and",   "or",    "xor",   "add",  "min_s",
                                               "max_s", "min_u", "max_u", "exch", NULL};
const char *const lilac_simt_order_names[] = {"relaxed", "acquire", "release", "acq_rel", NULL};
const char *const lilac_simt_scope_names[] = {"gpu", "cta", "sys", NULL};
const char *const lilac_simt_vote_names[] = {"any", "all", "some", NULL};
const char *const lilac_simt_timer_names[] = {"global", "clock", NULL};
const char *const lilac_simt_fence_names[] = {"shared", "global", "all", NULL};
const char *const lilac_simt_rounding_names[] = {"even", "zero", "down", "up", NULL};
const struct lilac_simt_flag_name lilac_simt_flag_names[] = {
    {"nsw", LILAC_SIMT_NO_SIGNED_WRAP},
    {"nuw", LILAC_SIMT_NO_UNSIGNED_WRAP},
    {"approximate", LILAC_SIMT_APPROXIMATE},
    {"nan", LILAC_SIMT_PROPAGATE_NAN},
    {"volatile", LILAC_SIMT_VOLATILE},
    {"saturate", LILAC_SIMT_SATURATE},
    {"ftz", LILAC_SIMT_FTZ},
    {"shared", LILAC_SIMT_SHARED_ONLY},
    {NULL, 0},
};

/* ---- names ------------------------------------------------------------------------------ */

/* Where each instruction begins in the text. */
typedef struct instruction_places {
    struct {
        lilac_simt_instruction *instruction;
        size_t offset;
    } * list;
    uint32_t count, capacity;
} instruction_places;

typedef struct printer {
    lilac_text *out;
    instruction_places *places; /* NULL: not asked for */
    const lilac_simt_kernel *kernel;
    lilac_context *context;
    lilac_arena *arena; /* of the names */
    const char **names; /* of each value; NULL: not reached */
    const char **taken; /* a set of names, open addressing */
    uint32_t taken_count, taken_capacity;
    uint32_t next;
} printer;

static bool is_name_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '.' || c == '-';
}

static bool is_number(const char *name) {
    return name[strspn(name, "0123456789")] == 0;
}

/* Puts the name into the set; false when it is there. */
static bool take(printer *p, const char *name) {
    if ((p->taken_count + 1) * 2 > p->taken_capacity) {
        uint32_t capacity = p->taken_capacity == 0 ? 128 : p->taken_capacity * 2;
        const char **old = p->taken;
        p->taken = lilac_arena_array(p->arena, const char *, capacity);
        uint32_t count = p->taken_capacity;
        p->taken_capacity = capacity;
        p->taken_count = 0;
        for (uint32_t k = 0; k < count; k++) {
            if (old[k] != NULL) {
                take(p, old[k]);
            }
        }
    }
    uint32_t slot = (uint32_t)lilac_hash(name, strlen(name), 0) & (p->taken_capacity - 1);
    while (p->taken[slot] != NULL) {
        if (strcmp(p->taken[slot], name) == 0) {
            return false;
        }
        slot = (slot + 1) & (p->taken_capacity - 1);
    }
    p->taken[slot] = name;
    p->taken_count++;
    return true;
}

/* The hint with nothing in it that a value's name cannot hold, or NULL when there is none. */
static const char *clean_hint(printer *p, const char *hint) {
    if (hint == NULL || is_number(hint)) {
        return NULL;
    }
    char *name = lilac_arena_copy(p->arena, hint, strlen(hint));
    for (char *c = name; *c != 0; c++) {
        if (!is_name_byte(*c)) {
            *c = '_';
        }
    }
    return name;
}

static void name_value(printer *p, lilac_simt_value value) {
    lilac_text text = {0};
    const char *name = clean_hint(p, p->kernel->values[value].name);
    if (name == NULL) {
        lilac_text_unsigned(&text, p->next++);
        name = lilac_arena_copy(p->arena, text.bytes, text.length);
    } else if (!take(p, name)) {
        const char *unique;
        uint32_t suffix = 1;
        do {
            lilac_text_reset(&text);
            lilac_text_printf(&text, "%s_%u", name, suffix++);
            unique = lilac_arena_copy(p->arena, text.bytes, text.length);
        } while (!take(p, unique));
        name = unique;
    }
    p->names[value] = name;
    lilac_text_clear(&text);
}

static void name_body(printer *p, const lilac_simt_body *body) {
    for (uint32_t k = 0; k < body->argument_count; k++) {
        name_value(p, body->argument + k);
    }
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->result_count; k++) {
            name_value(p, i->result + k);
        }
        for (uint32_t k = 0; k < i->body_count; k++) {
            name_body(p, i->bodies[k]);
        }
    }
}

static void start(printer *p, lilac_text *out, const lilac_simt_kernel *kernel) {
    *p = (printer){.out = out, .kernel = kernel, .context = kernel->module->context};
    p->arena = lilac_arena_create();
    p->names = lilac_arena_array(p->arena, const char *, kernel->value_count);
    name_body(p, kernel->body);
}

/* ---- pieces ----------------------------------------------------------------------------- */

static void put(printer *p, const char *string) {
    lilac_text_puts(p->out, string);
}

static void put_value(printer *p, lilac_simt_value value) {
    const char *name = value < p->kernel->value_count ? p->names[value] : NULL;
    lilac_text_char(p->out, '%');
    if (name != NULL) {
        put(p, name);
    } else {
        lilac_text_printf(p->out, "?%u", value);
    }
}

static void put_values(printer *p, const lilac_simt_value *values, uint32_t count) {
    for (uint32_t k = 0; k < count; k++) {
        if (k > 0) {
            put(p, ", ");
        }
        put_value(p, values[k]);
    }
}

static void put_definition(printer *p, lilac_simt_value value) {
    put_value(p, value);
    if (p->kernel->values[value].marked) {
        put(p, " uniform");
    }
}

static void put_types(printer *p, lilac_simt_value first, uint32_t count) {
    for (uint32_t k = 0; k < count; k++) {
        put(p, k == 0 ? " : " : ", ");
        put(p, lilac_simt_type_name(lilac_simt_type_of(p->kernel, first + k)));
    }
}

static void put_string(printer *p, const char *string) {
    static const char digits[] = "0123456789ABCDEF";
    lilac_text_char(p->out, '"');
    for (; *string != 0; string++) {
        unsigned char c = (unsigned char)*string;
        if (c < ' ' || c == '"' || c == '\\' || c >= 127) {
            lilac_text_char(p->out, '\\');
            lilac_text_char(p->out, digits[c >> 4]);
            lilac_text_char(p->out, digits[c & 15]);
        } else {
            lilac_text_char(p->out, (char)c);
        }
    }
    lilac_text_char(p->out, '"');
}

static void put_location(printer *p, lilac_location location) {
    lilac_name file;
    uint32_t line, column;
    if (location != 0 && lilac_location_file(p->context, location, &file, &line, &column)) {
        put(p, " loc(");
        put_string(p, file);
        lilac_text_printf(p->out, ":%u:%u)", line, column);
    }
}

/* A float as a decimal fraction when one of at most nine digits behind the point and 2^53 without
 * it gives the same bits: such a fraction is the quotient of two exact doubles. */
static bool put_decimal(printer *p, lilac_scalar scalar, uint64_t bits) {
    double value = lilac_scalar_decode(scalar, bits);
    double magnitude = fabs(value);
    double power = 1;
    if (!(magnitude < 1e9)) {
        return false;
    }
    for (uint32_t digits = 0; digits <= 9; digits++, power *= 10) {
        double scaled = floor(magnitude * power + 0.5);
        double back = scaled / power;
        if (scaled > 9007199254740992.0) {
            return false;
        }
        if (lilac_scalar_encode(scalar, signbit(value) ? -back : back, LILAC_ROUND_NEAREST_EVEN,
                                false) != bits) {
            continue;
        }
        uint64_t number = (uint64_t)scaled;
        uint64_t unit = (uint64_t)power;
        lilac_text_printf(p->out, "%s%llu.", signbit(value) ? "-" : "",
                          (unsigned long long)(number / unit));
        if (digits == 0) {
            lilac_text_char(p->out, '0');
        } else {
            lilac_text_printf(p->out, "%0*llu", (int)digits, (unsigned long long)(number % unit));
        }
        return true;
    }
    return false;
}

static void put_constant(printer *p, lilac_simt_type type, int64_t immediate) {
    uint64_t bits = (uint64_t)immediate;
    if (type == LILAC_SIMT_I1) {
        put(p, bits ? " true" : " false");
        return;
    }
    lilac_text_char(p->out, ' ');
    if (lilac_simt_type_is_integer(type)) {
        lilac_text_signed(p->out, lilac_simt_signed(type, bits));
    } else if (lilac_simt_type_is_packed(type) ||
               !put_decimal(p, lilac_simt_scalar_of(type), bits)) {
        lilac_text_printf(p->out, "0x%0*llX", (int)lilac_simt_type_bits(type) / 4,
                          (unsigned long long)bits);
    }
}

/* ---- instructions ----------------------------------------------------------------------- */

/* The word behind the operation's name that says which of its kinds this is. False: it has none. */
static bool put_kind(printer *p, const lilac_simt_instruction *i) {
    static const char dimensions[] = "xyz";
    switch (i->code) {
    case LILAC_SIMT_OP_CMP:
        lilac_text_char(p->out, ' ');
        put(p, lilac_simt_compare_name((lilac_simt_compare)i->detail));
        return true;
    case LILAC_SIMT_OP_SHUFFLE:
        lilac_text_char(p->out, ' ');
        put(p, i->detail < 4 ? lilac_simt_shuffle_names[i->detail] : "?");
        return true;
    case LILAC_SIMT_OP_ATOMIC_GLOBAL:
    case LILAC_SIMT_OP_ATOMIC_SHARED:
    case LILAC_SIMT_OP_REDUX:
    case LILAC_SIMT_OP_CP_BULK_REDUCE:
    case LILAC_SIMT_OP_CP_TENSOR_REDUCE:
        lilac_text_char(p->out, ' ');
        put(p, i->detail < LILAC_SIMT_ATOMIC_COUNT ? lilac_simt_atomic_names[i->detail] : "?");
        return true;
    case LILAC_SIMT_OP_VOTE:
    case LILAC_SIMT_OP_TIMER:
        lilac_text_char(p->out, ' ');
        put(p, i->detail > (i->code == LILAC_SIMT_OP_VOTE ? 2 : 1) ? "?"
               : i->code == LILAC_SIMT_OP_VOTE ? lilac_simt_vote_names[i->detail]
                                               : lilac_simt_timer_names[i->detail]);
        return true;
    case LILAC_SIMT_OP_FENCE_PROXY_ASYNC:
        lilac_text_char(p->out, ' ');
        put(p, i->detail < 3 ? lilac_simt_fence_names[i->detail] : "?");
        return true;
    case LILAC_SIMT_OP_SET_MAX_REGISTERS:
        put(p, i->detail == 0 ? " dec" : i->detail == 1 ? " inc" : " ?");
        return true;
    case LILAC_SIMT_OP_LD_MATRIX:
    case LILAC_SIMT_OP_ST_MATRIX:
        put(p, i->detail == 0 ? "" : i->detail == 1 ? " trans" : " ?");
        return true;
    case LILAC_SIMT_OP_BLOCK:
    case LILAC_SIMT_OP_GRID:
        lilac_text_char(p->out, ' ');
        lilac_text_char(p->out, i->detail < 3 ? dimensions[i->detail] : '?');
        return true;
    default:
        return false;
    }
}

static void put_modifier(printer *p, bool *any, const char *name, const char *value) {
    put(p, *any ? ", " : " {");
    *any = true;
    put(p, name);
    if (value != NULL) {
        put(p, " = ");
        put(p, value);
    }
}

static void put_number_modifier(printer *p, bool *any, const char *name, int64_t value) {
    put_modifier(p, any, name, "");
    lilac_text_signed(p->out, value);
}

/* The fields of the payload that are not 0. */
static void put_payload(printer *p, bool *any, const lilac_simt_instruction *i) {
    const lilac_simt_payload_field *field = NULL;
    while ((field = lilac_simt_payload_next((lilac_simt_opcode)i->code, field)) != NULL) {
        int64_t value = lilac_simt_payload_get(i, field);
        if (value == 0) {
            continue;
        }
        switch (field->kind) {
        case LILAC_SIMT_FIELD_NUMBER:
            put_number_modifier(p, any, field->name, value);
            break;
        case LILAC_SIMT_FIELD_CHOICE:
            put_modifier(p, any, field->name,
                         value < field->most + 1 ? field->choices[value] : "?");
            break;
        case LILAC_SIMT_FIELD_SCALAR:
            put_modifier(p, any, field->name, lilac_scalar_name((lilac_scalar)value));
            break;
        case LILAC_SIMT_FIELD_FLAG:
            put_modifier(p, any, field->name, NULL);
            break;
        }
    }
}

static void put_modifiers(printer *p, const lilac_simt_instruction *i, bool detail_said,
                          bool immediate_said) {
    bool any = false;
    for (uint32_t k = 0; lilac_simt_flag_names[k].name != NULL; k++) {
        if (i->flags & lilac_simt_flag_names[k].flag) {
            put_modifier(p, &any, lilac_simt_flag_names[k].name, NULL);
        }
    }
    if (i->cache > 0 && i->cache <= LILAC_SIMT_CACHE_WT) {
        put_modifier(p, &any, "cache", lilac_simt_cache_names[i->cache]);
    }
    if (i->evict > 0 && i->evict <= LILAC_SIMT_EVICT_LAST) {
        put_modifier(p, &any, "evict", lilac_simt_evict_names[i->evict]);
    }
    if (i->order > 0 && i->order < LILAC_SIMT_ORDER_COUNT) {
        put_modifier(p, &any, "order", lilac_simt_order_names[i->order]);
    }
    if (i->scope > 0 && i->scope < LILAC_SIMT_SCOPE_COUNT) {
        put_modifier(p, &any, "scope", lilac_simt_scope_names[i->scope]);
    }
    if (i->scalar != 0) {
        put_modifier(p, &any, "scalar", lilac_scalar_name((lilac_scalar)i->scalar));
    }
    if (lilac_simt_op_rounds((lilac_simt_opcode)i->code) && i->detail > 0 &&
        i->detail <= LILAC_ROUND_UP) {
        put_modifier(p, &any, "round", lilac_simt_rounding_names[i->detail]);
    } else if (i->detail != 0 && !detail_said) {
        put_number_modifier(p, &any,
                            i->code == LILAC_SIMT_OP_CP_ASYNC      ? "size"
                            : lilac_simt_is_named_barrier(i->code) ? "id"
                                                                   : "detail",
                            i->detail);
    }
    if (i->immediate != 0 && !immediate_said) {
        put_number_modifier(p, &any,
                            i->code == LILAC_SIMT_OP_GROUP_BARRIER ||
                                    lilac_simt_is_named_barrier(i->code)
                                ? "threads"
                            : i->code == LILAC_SIMT_OP_SET_MAX_REGISTERS ? "registers"
                            : lilac_simt_awaits_groups(i->code)          ? "groups"
                                                                         : "immediate",
                            i->immediate);
    }
    put_payload(p, &any, i);
    if (i->shared_begin != 0 || i->shared_end != 0) {
        put_number_modifier(p, &any, "bytes", i->shared_begin);
        lilac_text_printf(p->out, " to %u", i->shared_end);
    }
    if (i->shared_partition != 0) {
        put_number_modifier(p, &any, "partition", i->shared_partition);
    }
    if (i->text != NULL && i->code != LILAC_SIMT_OP_ASSERT) {
        put_modifier(p, &any, "text", "");
        put_string(p, i->text);
    }
    if (any) {
        lilac_text_char(p->out, '}');
    }
}

/* [address + offset] [, predicate] [, (values)] */
static void put_access(printer *p, const lilac_simt_instruction *i) {
    put(p, " [");
    put_value(p, i->operands[0]);
    if (i->immediate != 0) {
        uint64_t magnitude = i->immediate < 0 ? -(uint64_t)i->immediate : (uint64_t)i->immediate;
        put(p, i->immediate < 0 ? " - " : " + ");
        lilac_text_unsigned(p->out, magnitude);
    }
    lilac_text_char(p->out, ']');
    uint32_t next = 1;
    if (i->operand_count > 1 && i->operands[1] < p->kernel->value_count &&
        lilac_simt_type_of(p->kernel, i->operands[1]) == LILAC_SIMT_I1) {
        put(p, ", ");
        put_value(p, i->operands[next++]);
    }
    if (next < i->operand_count) {
        put(p, ", (");
        put_values(p, i->operands + next, i->operand_count - next);
        lilac_text_char(p->out, ')');
    }
}

static void put_carried(printer *p, const lilac_simt_value *inits, uint32_t count,
                        lilac_simt_value first) {
    lilac_text_char(p->out, '(');
    for (uint32_t k = 0; k < count; k++) {
        put(p, k > 0 ? ", " : "");
        put_definition(p, first + k);
        put(p, " = ");
        put_value(p, inits[k]);
    }
    lilac_text_char(p->out, ')');
}

/* What stands between the name of a structured operation and its first body. */
static void put_head(printer *p, const lilac_simt_instruction *i) {
    const lilac_simt_body *body = i->body_count > 0 ? i->bodies[0] : NULL;
    switch (i->code) {
    case LILAC_SIMT_OP_LOOP:
        if (i->operand_count < 3 || body == NULL || body->argument_count + 2u != i->operand_count) {
            break;
        }
        lilac_text_char(p->out, ' ');
        put_definition(p, body->argument);
        put(p, " = ");
        put_value(p, i->operands[0]);
        put(p, " to ");
        put_value(p, i->operands[1]);
        put(p, " step ");
        put_value(p, i->operands[2]);
        if (i->operand_count > 3) {
            lilac_text_char(p->out, ' ');
            put_carried(p, i->operands + 3, i->operand_count - 3u, body->argument + 1);
        }
        put_types(p, i->result, i->result_count);
        return;
    case LILAC_SIMT_OP_WHILE:
        if (body == NULL || body->argument_count != i->operand_count) {
            break;
        }
        lilac_text_char(p->out, ' ');
        put_carried(p, i->operands, i->operand_count, body->argument);
        put_types(p, i->result, i->result_count);
        return;
    case LILAC_SIMT_OP_PROGRAMS:
        return;
    default:
        break;
    }
    lilac_text_char(p->out, ' ');
    put_values(p, i->operands, i->operand_count);
    put_types(p, i->result, i->result_count);
}

/* All of a plain instruction; of a structured one what stands before its first body. */
static void put_line(printer *p, const lilac_simt_instruction *i) {
    for (uint32_t k = 0; k < i->result_count; k++) {
        put(p, k > 0 ? ", " : "");
        put_definition(p, i->result + k);
    }
    put(p, i->result_count > 0 ? " = " : "");
    put(p, lilac_simt_op_info_get((lilac_simt_opcode)i->code)->name);
    if (i->body_count > 0) {
        put_head(p, i);
        put(p, i->detail == LILAC_SIMT_KEEP_INVARIANTS ? " keep_invariants" : "");
        return;
    }
    bool detail_said = put_kind(p, i);
    bool immediate_said = true;
    if (lilac_simt_is_access(i->code) && i->operand_count > 0) {
        put_access(p, i);
    } else if (i->code == LILAC_SIMT_OP_CONST && i->result_count == 1) {
        put_constant(p, lilac_simt_type_of(p->kernel, i->result), i->immediate);
    } else if (i->code == LILAC_SIMT_OP_PARAM) {
        lilac_text_char(p->out, ' ');
        lilac_text_signed(p->out, i->immediate);
    } else {
        put(p, i->operand_count > 0 ? " " : "");
        put_values(p, i->operands, i->operand_count);
        immediate_said = false;
    }
    if (i->code == LILAC_SIMT_OP_ASSERT && i->text != NULL) {
        put(p, ", ");
        put_string(p, i->text);
    }
    put_types(p, i->result, i->result_count);
    put_modifiers(p, i, detail_said, immediate_said);
}

static void put_body(printer *p, const lilac_simt_body *body, uint32_t depth);

/* Are both written alike? Places in texts are not written. */
static bool same_location(const printer *p, lilac_location a, lilac_location b) {
    lilac_position text;
    return a == b || ((a == 0 || lilac_location_text(p->context, a, &text)) &&
                      (b == 0 || lilac_location_text(p->context, b, &text)));
}

static bool only_ends(const printer *p, const lilac_simt_body *body) {
    const lilac_simt_instruction *end = body->first;
    return end != NULL && end->next == NULL && end->code == LILAC_SIMT_OP_YIELD &&
           end->operand_count == 0 && same_location(p, end->location, body->parent->location);
}

static void add_place(instruction_places *places, const lilac_simt_instruction *i, size_t offset) {
    if (places->count == places->capacity) {
        places->capacity = places->capacity > 0 ? 2 * places->capacity : 64;
        places->list = lilac_heap_grow(places->list, places->capacity * sizeof *places->list);
    }
    places->list[places->count].instruction = (lilac_simt_instruction *)(uintptr_t)i;
    places->list[places->count++].offset = offset;
}

static void put_instruction(printer *p, const lilac_simt_instruction *i, uint32_t depth) {
    lilac_text_repeat(p->out, ' ', 2 * (size_t)depth);
    if (p->places != NULL) {
        add_place(p->places, i, p->out->length);
    }
    put_line(p, i);
    for (uint32_t k = 0; k < i->body_count; k++) {
        const lilac_simt_body *body = i->bodies[k];
        if (i->code == LILAC_SIMT_OP_PROGRAMS) {
            lilac_text_printf(p->out, " warps %u to %u", body->first_warp, body->end_warp);
        } else if (k > 0 && i->code == LILAC_SIMT_OP_IF) {
            if (only_ends(p, body)) {
                break;
            }
            put(p, " else");
        } else if (k > 0) {
            put(p, " do (");
            for (uint32_t a = 0; a < body->argument_count; a++) {
                put(p, a > 0 ? ", " : "");
                put_definition(p, body->argument + a);
            }
            lilac_text_char(p->out, ')');
        }
        put(p, " {\n");
        put_body(p, body, depth + 1);
        lilac_text_repeat(p->out, ' ', 2 * (size_t)depth);
        lilac_text_char(p->out, '}');
    }
    put_location(p, i->location);
    lilac_text_char(p->out, '\n');
}

static void put_body(printer *p, const lilac_simt_body *body, uint32_t depth) {
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        put_instruction(p, i, depth);
    }
}

/* ---- kernels ---------------------------------------------------------------------------- */

static void put_symbol(printer *p, const char *name) {
    bool plain = name[0] != 0 && !(name[0] >= '0' && name[0] <= '9');
    for (const char *c = name; *c != 0; c++) {
        plain &= is_name_byte(*c);
    }
    lilac_text_char(p->out, '@');
    if (plain) {
        put(p, name);
    } else {
        put_string(p, name);
    }
}

static void put_kernel(lilac_text *out, const lilac_simt_kernel *kernel,
                       instruction_places *places) {
    printer p;
    start(&p, out, kernel);
    p.places = places;
    put(&p, "  kernel ");
    put_symbol(&p, kernel->name != NULL ? kernel->name : "");
    lilac_text_char(out, '(');
    for (uint32_t k = 0; k < kernel->parameter_count; k++) {
        const lilac_simt_parameter *parameter = &kernel->parameters[k];
        const char *name = clean_hint(&p, parameter->name);
        put(&p, k > 0 ? ", %" : "%");
        if (name != NULL) {
            put(&p, name);
        } else {
            lilac_text_unsigned(out, k);
        }
        put(&p, ": ");
        put(&p, lilac_simt_type_name(parameter->type));
        put(&p, parameter->is_pointer ? " ptr" : parameter->is_tensor_map ? " tensor_map" : "");
        if (parameter->alignment > 1) {
            lilac_text_printf(out, " align %u", parameter->alignment);
        }
    }
    lilac_text_printf(out, ") warps %u ctas %u shared %u", kernel->num_warps, kernel->num_ctas,
                      kernel->shared_bytes);
    if (kernel->scratch_bytes > 0) {
        lilac_text_printf(out, " scratch %u", kernel->scratch_bytes);
    }
    if (kernel->min_blocks > 0) {
        lilac_text_printf(out, " min_blocks %u", kernel->min_blocks);
    }
    if (kernel->programs > 0) {
        lilac_text_printf(out, " programs %u", kernel->programs);
    }
    put(&p, kernel->no_contraction ? " no_contraction {\n" : " {\n");
    put_body(&p, kernel->body, 2);
    put(&p, "  }");
    put_location(&p, kernel->location);
    lilac_text_char(out, '\n');
    lilac_arena_destroy(p.arena);
}

static void put_module(lilac_text *out, const lilac_simt_module *module,
                       instruction_places *places) {
    lilac_text_puts(out, "simt.module target \"");
    lilac_text_puts(out, module->arch != NULL ? module->arch->name : "none");
    lilac_text_puts(out, "\" {\n");
    for (const lilac_simt_kernel *k = module->kernels; k != NULL; k = k->next) {
        put_kernel(out, k, places);
    }
    lilac_text_puts(out, "}\n");
}

void lilac_simt_print(lilac_text *out, const lilac_simt_module *module) {
    put_module(out, module, NULL);
}

uint32_t lilac_simt_print_source(lilac_simt_module *module, const char *name) {
    lilac_context *context = module->context;
    instruction_places places = {0};
    lilac_text text;
    lilac_text_init(&text);
    put_module(&text, module, &places);
    const uint32_t source = lilac_source_add(context, name, lilac_text_get(&text), text.length);
    for (uint32_t i = 0; source != 0 && i < places.count; i++) {
        const lilac_position position = {source, (uint32_t)places.list[i].offset};
        places.list[i].instruction->location = lilac_location_of_text(context, position);
    }
    lilac_heap_free(places.list);
    lilac_text_clear(&text);
    return source;
}

void lilac_simt_print_instruction(lilac_text *out, const lilac_simt_kernel *kernel,
                                  const lilac_simt_instruction *instruction) {
    printer p;
    start(&p, out, kernel);
    put_line(&p, instruction);
    lilac_arena_destroy(p.arena);
}
