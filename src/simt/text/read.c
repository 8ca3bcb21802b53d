/* The reader of the text form (print.c shows it).
 *
 * A recursive descent that builds exactly what is written: nothing is folded or shared, so printing
 * what was read gives the text back. A line with a mistake is reported and skipped (with its
 * bodies, when it opens any); its results stay known as values of no type, so that one mistake is
 * one report. Structure and types beyond the grammar are the verifier's business. */
#include "text/read.h"

#include <string.h>

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
    return lilac_simt_read_fail_here(r, "unknown-operation", "no operation is called");
}

static bool read_kind(reader *r, lilac_simt_instruction *like) {
    static const char *const dimensions[] = {"x", "y", "z", NULL};
    static const char *const directions[] = {"dec", "inc", NULL};
    const char *names[LILAC_SIMT_COMPARE_COUNT + 1];
    switch (like->code) {
    case LILAC_SIMT_OP_CMP:
        for (uint32_t k = 0; k < LILAC_SIMT_COMPARE_COUNT; k++) {
            names[k] = lilac_simt_compare_name((lilac_simt_compare)k);
        }
        names[LILAC_SIMT_COMPARE_COUNT] = NULL;
        return lilac_simt_read_choice(r, names, &like->detail);
    case LILAC_SIMT_OP_SHUFFLE:
        return lilac_simt_read_choice(r, lilac_simt_shuffle_names, &like->detail);
    case LILAC_SIMT_OP_ATOMIC_GLOBAL:
    case LILAC_SIMT_OP_ATOMIC_SHARED:
    case LILAC_SIMT_OP_REDUX:
    case LILAC_SIMT_OP_CP_BULK_REDUCE:
    case LILAC_SIMT_OP_CP_TENSOR_REDUCE:
        return lilac_simt_read_choice(r, lilac_simt_atomic_names, &like->detail);
    case LILAC_SIMT_OP_VOTE:
        return lilac_simt_read_choice(r, lilac_simt_vote_names, &like->detail);
    case LILAC_SIMT_OP_TIMER:
        return lilac_simt_read_choice(r, lilac_simt_timer_names, &like->detail);
    case LILAC_SIMT_OP_FENCE_PROXY_ASYNC:
        return lilac_simt_read_choice(r, lilac_simt_fence_names, &like->detail);
    case LILAC_SIMT_OP_SET_MAX_REGISTERS:
        return lilac_simt_read_choice(r, directions, &like->detail);
    case LILAC_SIMT_OP_LD_MATRIX:
    case LILAC_SIMT_OP_ST_MATRIX:
        like->detail = lilac_scanner_accept_word(&r->scanner, "trans");
        return true;
    case LILAC_SIMT_OP_BLOCK:
    case LILAC_SIMT_OP_GRID:
        return lilac_simt_read_choice(r, dimensions, &like->detail);
    default:
        return true;
    }
}

/* [address + offset] [, predicate] [, (values)] */
static bool read_access(reader *r, lilac_simt_instruction *like) {
    lilac_scanner *s = &r->scanner;
    if (!lilac_scanner_expect(s, '[') || !lilac_simt_read_operand(r)) {
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
            return lilac_simt_read_operands(r) && lilac_scanner_expect(s, ')');
        }
        if (!lilac_simt_read_operand(r)) {
            return false;
        }
    }
    return true;
}

static bool read_plain_operands(reader *r, lilac_simt_instruction *like) {
    if (r->scanner.kind == LILAC_TOKEN_VALUE && !lilac_simt_read_on_new_line(r)) {
        do {
            if (like->code == LILAC_SIMT_OP_ASSERT && r->scanner.kind == LILAC_TOKEN_STRING) {
                return lilac_simt_read_string(r, &like->text);
            }
            if (!lilac_simt_read_operand(r)) {
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
        lilac_simt_read_fail_here(r, "too-many-operands", "too many operands before");
        return NULL;
    }
    lilac_simt_instruction *i = lilac_simt_new_instruction(
        r->kernel, like, operands, operands > 0 ? r->operands + base : NULL);
    lilac_simt_link(body, NULL, i);
    lilac_simt_give_results(r->kernel, i, results, r->types);
    return i;
}

static void define_results(reader *r, const lilac_simt_instruction *i, uint32_t first_result) {
    for (uint32_t k = 0; k < i->result_count; k++) {
        lilac_simt_read_define(r, &r->results[first_result + k], i->result + k);
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
        good = lilac_simt_read_literal(r, &literal);
    } else if (like->code == LILAC_SIMT_OP_PARAM) {
        good = lilac_scanner_integer(&r->scanner, &like->immediate);
    } else if (lilac_simt_is_access(like->code)) {
        good = read_access(r, like);
    } else {
        good = read_plain_operands(r, like);
    }
    if (!good || !lilac_simt_read_types(r)) {
        return false;
    }
    if (like->code == LILAC_SIMT_OP_CONST) {
        uint64_t bits = 0;
        if (r->type_count != 1) {
            return lilac_scanner_expected(&r->scanner, "one type");
        }
        if (!lilac_simt_read_literal_bits(r, &literal, r->types[0], &bits)) {
            return false;
        }
        like->immediate = (int64_t)bits;
    }
    if (!lilac_simt_read_modifiers(r, like) || !lilac_simt_read_location(r, &like->location)) {
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
        if (!lilac_simt_read_result(r) || !lilac_scanner_expect(s, '=') ||
            !lilac_simt_read_operand(r)) {
            return false;
        }
    } while (lilac_scanner_accept(s, ','));
    return lilac_scanner_expect(s, ')');
}

static bool read_loop_head(reader *r) {
    lilac_scanner *s = &r->scanner;
    return lilac_simt_read_result(r) && lilac_scanner_expect(s, '=') &&
           lilac_simt_read_operand(r) && lilac_scanner_expect_word(s, "to") &&
           lilac_simt_read_operand(r) && lilac_scanner_expect_word(s, "step") &&
           lilac_simt_read_operand(r) && (!lilac_scanner_is(s, '(') || read_carried(r));
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
        lilac_simt_read_define(r, &r->results[names + k], body->argument + k);
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
            if (!lilac_simt_read_result(r)) {
                return false;
            }
        } while (lilac_scanner_accept(s, ','));
        if (!lilac_scanner_expect(s, ')')) {
            return false;
        }
    }
    uint32_t count = r->result_count - names;
    if (count != loop->result_count) {
        return lilac_simt_read_fail_here(r, "result-count",
                                         "as many names as results are wanted before");
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
        return read_braces(r, branch->bodies[1]) && lilac_simt_read_location(r, &branch->location);
    }
    if (!lilac_simt_read_location(r, &branch->location)) {
        return false;
    }
    lilac_simt_instruction like = {.code = LILAC_SIMT_OP_YIELD, .location = branch->location};
    lilac_simt_link(branch->bodies[1], NULL, lilac_simt_new_instruction(r->kernel, &like, 0, NULL));
    return true;
}

/* warps 0 to 4 { … } warps 4 to 12 { … } */
static bool read_programs(reader *r, lilac_simt_body *body, const lilac_simt_instruction *like,
                          uint32_t first_result) {
    enum { MOST = 64 };
    lilac_scanner *s = &r->scanner;
    lilac_simt_body *bodies[MOST];
    r->type_count = 0;
    lilac_simt_instruction *i = finish(r, body, like, r->operand_count, first_result);
    if (i == NULL) {
        return false;
    }
    uint32_t count = 0;
    do {
        uint32_t first, end;
        if (count == MOST) {
            return lilac_simt_read_fail_here(r, "too-many-operands",
                                             "more than 64 programs before");
        }
        if (!lilac_scanner_expect_word(s, "warps") || !lilac_simt_read_count(r, &first) ||
            !lilac_scanner_expect_word(s, "to") || !lilac_simt_read_count(r, &end)) {
            return false;
        }
        bodies[count] = lilac_simt_new_body(r->kernel, i, 0, NULL);
        bodies[count]->first_warp = first;
        bodies[count]->end_warp = end;
        if (!read_braces(r, bodies[count++])) {
            return false;
        }
    } while (lilac_scanner_is_word(s, "warps"));
    i->bodies = lilac_arena_array(r->module->arena, lilac_simt_body *, count);
    memcpy(i->bodies, bodies, sizeof *bodies * count);
    i->body_count = (uint16_t)count;
    return lilac_simt_read_location(r, &i->location);
}

static bool read_structured(reader *r, lilac_simt_body *body, const lilac_simt_instruction *like,
                            uint32_t first_result) {
    uint32_t base = r->operand_count;
    uint32_t names = r->result_count;
    bool good = like->code == LILAC_SIMT_OP_LOOP    ? read_loop_head(r)
                : like->code == LILAC_SIMT_OP_WHILE ? read_carried(r)
                                                    : lilac_simt_read_operand(r);
    if (!good || !lilac_simt_read_types(r)) {
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
    if (like->code != LILAC_SIMT_OP_IF &&
        lilac_scanner_accept_word(&r->scanner, "keep_invariants")) {
        i->detail = LILAC_SIMT_KEEP_INVARIANTS;
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
        good = (is_loop || read_do(r, i)) && lilac_simt_read_location(r, &i->location);
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
            if (!lilac_simt_read_result(r)) {
                return false;
            }
        } while (lilac_scanner_accept(&r->scanner, ','));
        if (!lilac_scanner_expect(&r->scanner, '=')) {
            return false;
        }
    }
    lilac_position position = lilac_scanner_position(&r->scanner);
    if (!read_opcode(r, &like.code)) {
        return false;
    }
    like.location = lilac_location_of_text(r->context, position); /* unless there is loc(…) */
    if (like.code == LILAC_SIMT_OP_PROGRAMS) {
        return read_programs(r, body, &like, first_result);
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
        if (open == 0 && lilac_simt_read_on_new_line(r)) {
            return;
        }
        open += lilac_scanner_is(s, '{');
        open -= lilac_scanner_is(s, '}') && open > 0;
        lilac_scanner_next(s);
    }
}

static bool read_body(reader *r, lilac_simt_body *body) {
    if (r->depth >= LILAC_MIN_NESTING && r->deepest == 0) {
        r->deepest = lilac_nesting_limit() + LILAC_MIN_NESTING / 2;
    }
    if (r->depth >= LILAC_MIN_NESTING && r->depth >= r->deepest) {
        return lilac_simt_read_fail_here(r, "too-deep", "bodies are nested too deep at");
    }
    r->depth++;
    while (r->scanner.kind != LILAC_TOKEN_END && !lilac_scanner_is(&r->scanner, '}')) {
        uint32_t start = r->scanner.offset;
        uint32_t operands = r->operand_count;
        uint32_t results = r->result_count;
        if (!read_instruction(r, body)) {
            lilac_simt_type none = LILAC_SIMT_VOID;
            for (uint32_t k = results; k < r->result_count; k++) {
                result_name *result = &r->results[k];
                if (r->known_capacity == 0 ||
                    r->known[lilac_simt_read_name_slot(r, result->name)].name == NULL) {
                    lilac_simt_read_define(r, result,
                                           lilac_simt_new_values(r->kernel, 1, &none, NULL, body));
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

/* %name: type [ptr | tensor_map] [align n] */
static bool read_parameter(reader *r, lilac_simt_parameter *parameter) {
    lilac_scanner *s = &r->scanner;
    *parameter = (lilac_simt_parameter){.alignment = 1};
    if (s->kind != LILAC_TOKEN_VALUE) {
        return lilac_scanner_expected(s, "a parameter");
    }
    lilac_name name = lilac_simt_read_take_name(r);
    parameter->name = name[strspn(name, "0123456789")] != 0 ? name : NULL;
    if (!lilac_scanner_expect(s, ':') || !lilac_simt_read_type(r, &parameter->type)) {
        return false;
    }
    parameter->is_pointer = lilac_scanner_accept_word(s, "ptr");
    parameter->is_tensor_map = !parameter->is_pointer && lilac_scanner_accept_word(s, "tensor_map");
    return !lilac_scanner_accept_word(s, "align") ||
           lilac_simt_read_count(r, &parameter->alignment);
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
    lilac_name name = lilac_simt_read_unescape(r, s->word, s->word_length);
    lilac_scanner_next(s);
    lilac_simt_parameter *parameters = NULL;
    uint32_t count = 0;
    bool good = read_parameters(r, &parameters, &count);
    r->kernel = lilac_simt_kernel_create(r->module, name, count, 1, 1);
    if (count > 0) {
        memcpy(r->kernel->parameters, parameters, sizeof *parameters * count);
    }
    lilac_heap_free(parameters);
    good = good && lilac_scanner_expect_word(s, "warps") &&
           lilac_simt_read_count(r, &r->kernel->num_warps) &&
           lilac_scanner_expect_word(s, "ctas") && lilac_simt_read_count(r, &r->kernel->num_ctas) &&
           lilac_scanner_expect_word(s, "shared") &&
           lilac_simt_read_count(r, &r->kernel->shared_bytes);
    if (good && lilac_scanner_accept_word(s, "scratch")) {
        good = lilac_simt_read_count(r, &r->kernel->scratch_bytes);
    }
    if (good && lilac_scanner_accept_word(s, "min_blocks")) {
        good = lilac_simt_read_count(r, &r->kernel->min_blocks);
    }
    if (good && lilac_scanner_accept_word(s, "programs")) {
        good = lilac_simt_read_count(r, &r->kernel->programs);
    }
    r->kernel->no_contraction = lilac_scanner_accept_word(s, "no_contraction");
    return good;
}

static bool read_kernel(reader *r) {
    r->known_count = 0;
    if (r->known_capacity > 0) {
        memset(r->known, 0, sizeof *r->known * (size_t)r->known_capacity);
    }
    if (!read_kernel_head(r) || !read_braces(r, r->kernel->body) ||
        !lilac_simt_read_location(r, &r->kernel->location)) {
        return false;
    }
    return true;
}

static bool read_module(reader *r, uint32_t errors) {
    lilac_scanner *s = &r->scanner;
    lilac_name target = NULL;
    if (!lilac_scanner_expect_word(s, "simt.module") || !lilac_scanner_expect_word(s, "target")) {
        return false;
    }
    uint32_t offset = s->offset;
    if (!lilac_simt_read_string(r, &target)) {
        return false;
    }
    const lilac_arch *arch = lilac_arch_find(target);
    if (arch == NULL) {
        return lilac_simt_read_fail_at(r, offset, "unknown-target", "no device is called", target,
                                       strlen(target));
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
