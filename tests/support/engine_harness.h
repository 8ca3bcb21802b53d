/* The harness of the tests of the engine: it reads programs from text, finds values by name and
 * runs passes. */
#ifndef LILAC_TESTS_ENGINE_HARNESS_H
#define LILAC_TESTS_ENGINE_HARNESS_H

#include <lilac/engine.h>

#include "support/test.h"

typedef struct program {
    lilac_context *context;
    lilac_tile_module *module; /* NULL if the reader refused the text */
    lilac_target target;
} program;

static inline void program_read(program *p, const char *name, const char *text, size_t length,
                                uint32_t warps) {
    p->context = lilac_context_create();
    p->target = (lilac_target){
        .arch = lilac_arch_find("sm_90a"), .num_warps = warps, .num_ctas = 1, .num_stages = 3};
    p->module = lilac_tile_read(p->context, lilac_source_add(p->context, name, text, length));
}

/* The body of a function with parameters of most kinds:
 *   %p %q pointers to f32 and f16, 16 bytes; %w pointer of unknown alignment; %n %m multiples of 16
 *   and 8; %u unknown; %wide an i64 multiple of 4; %ints pointer to i32, 16 bytes */
static inline void program_body(program *p, const char *body, uint32_t warps) {
    lilac_text text;
    lilac_text_init(&text);
    lilac_text_printf(
        &text,
        "module {\n tt.func public @k(%%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, "
        "%%q: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %%w: !tt.ptr<f32>, "
        "%%n: i32 {tt.divisibility = 16 : i32}, %%m: i32 {tt.divisibility = 8 : i32}, "
        "%%u: i32, %%wide: i64 {tt.divisibility = 4 : i32}, %%b: i1, "
        "%%ints: !tt.ptr<i32> {tt.divisibility = 16 : i32}) {\n%s\n tt.return\n }\n}\n",
        body);
    program_read(p, "body", lilac_text_get(&text), text.length, warps);
    lilac_text_clear(&text);
    if (p->module == NULL) {
        fail_with_diagnostics(p->context, "the program was refused");
    }
    if (!lilac_tile_verify(p->module, false)) {
        fail_with_diagnostics(p->context, "the program was refused");
    }
}

static inline void program_clear(program *p) {
    if (p->module != NULL) {
        lilac_tile_module_destroy(p->module);
    }
    lilac_context_destroy(p->context);
}

/* Runs simplify (if requested) and assign_layouts, and verifies the result of each. Returns
 * false if assign_layouts refused the program. */
static inline bool program_assign(program *p, bool simplify) {
    bool changed;
    if (simplify) {
        assert_true(lilac_engine_simplify(p->module, &p->target, &changed));
        if (!lilac_tile_verify(p->module, false)) {
            fail_with_diagnostics(p->context, "after simplify");
        }
    }
    if (!lilac_engine_assign_layouts(p->module, &p->target, &changed)) {
        return false;
    }
    if (!lilac_tile_verify(p->module, true)) {
        fail_with_diagnostics(p->context, "after assign_layouts");
    }
    return true;
}

typedef struct search {
    const char *name;
    uint32_t code, count;
    lilac_tile_value *value;
    lilac_tile_op *last;
} search;

static inline void look_at(void *data, lilac_tile_op *op) {
    search *s = data;
    if (s->code == op->code) {
        s->count++;
        s->last = op;
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        if (s->name != NULL && op->results[i].name != NULL &&
            strcmp(op->results[i].name, s->name) == 0) {
            s->value = &op->results[i];
        }
    }
    for (uint32_t r = 0; r < op->region_count; r++) {
        for (lilac_tile_block *block = op->regions[r]->first; block != NULL; block = block->next) {
            for (uint32_t i = 0; i < block->argument_count; i++) {
                if (s->name != NULL && block->arguments[i]->name != NULL &&
                    strcmp(block->arguments[i]->name, s->name) == 0) {
                    s->value = block->arguments[i];
                }
            }
        }
    }
}

static inline lilac_tile_value *value_named(const program *p, const char *name) {
    search s = {.name = name};
    lilac_tile_walk(p->module->functions->body, look_at, &s);
    if (s.value == NULL) {
        fail_msg("no value %%%s", name);
    }
    return s.value;
}

static inline uint32_t count_ops(const program *p, lilac_tile_opcode code) {
    search s = {.code = code};
    for (lilac_tile_function *f = p->module->functions; f != NULL; f = f->next) {
        if (f->body != NULL) {
            lilac_tile_walk(f->body, look_at, &s);
        }
    }
    return s.count;
}

static inline lilac_tile_op *last_op(const program *p, lilac_tile_opcode code) {
    search s = {.code = code};
    lilac_tile_walk(p->module->functions->body, look_at, &s);
    if (s.last == NULL) {
        fail_msg("no such operation");
    }
    return s.last;
}

#endif
