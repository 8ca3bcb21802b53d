/* Loops whose copies are tensor copies, from TTIR to the simulator: the product of a block by
 * itself for every trip count, number of stages and form is right, and the simulator reports
 * nothing. It finds each mutation of the waits, the parities, the buffers, the announced bytes and
 * the barriers. */
#include "support/lower_harness.h"

#include <lilac/tile_loops.h>

enum {
    PITCH = 1024,
    MOST_ROWS = 64,
    MOST_STAGES = 5,
    MOST_ITERATIONS = 10 /* more than buffers: each is used twice */
};

/* The block's rows and columns: products of 64 rows by wgmma, others by mma. */
typedef struct loop_form {
    uint32_t rows, columns, warps;
    bool scaled; /* the loop doubles the sum, so that no product by wgmma stays in flight */
    bool last;   /* copies start behind the product, to the buffer that it reads */
} loop_form;

static const loop_form forms[] = {
    {.rows = 64, .columns = 64, .warps = 4},  /* rows of 128 bytes */
    {.rows = 64, .columns = 128, .warps = 4}, /* two boxes */
    {.rows = 64, .columns = 32, .warps = 4, .scaled = true},
    {.rows = 32, .columns = 32, .warps = 2},                /* rows of 64 bytes */
    {.rows = 16, .columns = 16, .warps = 1},                /* rows of 32 bytes */
    {.rows = 16, .columns = 512, .warps = 2, .last = true}, /* a fourth buffer costs a block */
};

enum { FORMS = sizeof forms / sizeof *forms };

static void put_kernel(lilac_text *t, const loop_form *f) {
    const unsigned m = f->rows, k = f->columns;
    lilac_text_printf(
        t,
        "module {\n"
        "  tt.func public @k(%%d: !tt.tensordesc<tensor<%ux%uxf16>>, %%o: !tt.ptr<f32> "
        "{tt.divisibility = 16 : i32}, %%n: i32) {\n"
        "    %%c0 = arith.constant 0 : i32\n"
        "    %%step = arith.constant %u : i32\n"
        "    %%z = arith.constant dense<0.0> : tensor<%ux%uxf32>\n"
        "    %%r = scf.for %%k = %%c0 to %%n step %%step iter_args(%%c = %%z) -> "
        "(tensor<%ux%uxf32>)  : i32 {\n",
        m, k, k, m, m, m, m);
    lilac_text_printf(
        t,
        "      %%a = tt.descriptor_load %%d[%%c0, %%k] : !tt.tensordesc<tensor<%ux%uxf16>> "
        "-> tensor<%ux%uxf16>\n"
        "      %%b = tt.trans %%a {order = array<i32: 1, 0>} : tensor<%ux%uxf16> -> "
        "tensor<%ux%uxf16>\n",
        m, k, m, k, m, k, k, m);
    if (f->scaled) {
        lilac_text_printf(t, "      %%e = arith.addf %%c, %%c : tensor<%ux%uxf32>\n", m, m);
    }
    lilac_text_printf(
        t,
        "      %%s = tt.dot %%a, %%b, %%%s : tensor<%ux%uxf16> * tensor<%ux%uxf16> -> "
        "tensor<%ux%uxf32>\n"
        "      scf.yield %%s : tensor<%ux%uxf32>\n"
        "    }\n",
        f->scaled ? "e" : "c", m, k, k, m, m, m, m, m);
    lilac_text_printf(t,
                      "    %%flat = tt.reshape %%r : tensor<%ux%uxf32> -> tensor<%uxf32>\n"
                      "    %%i = tt.make_range {start = 0 : i32, end = %u : i32} : tensor<%uxi32>\n"
                      "    %%p = tt.splat %%o : !tt.ptr<f32> -> tensor<%ux!tt.ptr<f32>>\n"
                      "    %%q = tt.addptr %%p, %%i : tensor<%ux!tt.ptr<f32>>, tensor<%uxi32>\n"
                      "    tt.store %%q, %%flat : tensor<%ux!tt.ptr<f32>>\n"
                      "    tt.return\n  }\n}\n",
                      m, m, m * m, m * m, m * m, m * m, m * m, m * m, m * m);
}

/* ---- running ------------------------------------------------------------------------------ */

/* Changes the program: its tile IR, or the text of its SIMT IR. */
typedef struct mutation {
    const char *name;
    void (*tile)(lilac_tile_op *loop);
    void (*simt)(lilac_text *out, const char *text);
    enum {
        ANY_FORM,
        SEVERAL_WARPS,
        IN_FLIGHT,
        OTHER_BUFFER
    } needs; /* of the form, for the mutation to be a fault */
} mutation;

static lilac_tile_op *loop_found;

static void find_loop(void *data, lilac_tile_op *op) {
    (void)data;
    loop_found = op->code == LILAC_TILE_OP_SCF_FOR ? op : loop_found;
}

/* Compiles for so many stages. */
static lilac_simt_module *compile(lilac_context *context, const loop_form *f, uint32_t stages,
                                  const mutation *mutate) {
    lilac_text text = {0}, mutated = {0};
    const lilac_target target = {.arch = lilac_arch_find("sm_90a"),
                                 .num_warps = f->warps,
                                 .num_ctas = 1,
                                 .num_stages = stages};
    put_kernel(&text, f);
    lilac_tile_module *tile = lilac_tile_read(
        context, lilac_source_add(context, "k.ttir", lilac_text_get(&text), text.length));
    if (tile == NULL || !lilac_tile_verify(tile, false) || !lilac_run_tile_passes(tile, &target)) {
        fail_with_diagnostics(context, "the kernel was refused");
    }
    if (mutate != NULL && mutate->tile != NULL) {
        loop_found = NULL;
        lilac_tile_walk(tile->functions->body, find_loop, NULL);
        mutate->tile(loop_found);
    }
    lilac_simt_module *simt = lilac_lower(tile, &target);
    if (simt == NULL) {
        fail_with_diagnostics(context, "the kernel was refused");
    }
    lilac_run_simt_passes(simt);
    if (mutate != NULL && mutate->simt != NULL) {
        lilac_text_reset(&text);
        lilac_simt_print(&text, simt);
        lilac_simt_module_destroy(simt);
        mutate->simt(&mutated, lilac_text_get(&text));
        simt = lilac_simt_read(
            context, lilac_source_add(context, "k.simt", lilac_text_get(&mutated), mutated.length));
        if (simt == NULL) {
            fail_with_diagnostics(context, "the changed text was refused");
        }
    }
    assert_true(lilac_simt_verify(simt));
    lilac_tile_module_destroy(tile);
    lilac_text_clear(&text);
    lilac_text_clear(&mutated);
    return simt;
}

/* 1, 2 or 3. */
static uint32_t element(uint32_t row, uint32_t column) {
    return 1 + (row * 7 + column * 5 + row * column) % 3;
}

static float expected(const loop_form *f, uint32_t iterations, uint32_t i, uint32_t j) {
    uint32_t sum = 0;
    for (uint32_t t = 0; t < iterations; t++) {
        sum *= f->scaled ? 2 : 1;
        for (uint32_t k = t * f->columns; k < (t + 1) * f->columns; k++) {
            sum += k < PITCH ? element(i, k) * element(j, k) : 0;
        }
    }
    return (float)sum;
}

typedef struct outcome {
    bool right, reported; /* the sums are right; the simulator reports something */
    uint64_t copies;
    uint64_t buffers; /* that the shared memory has place for */
} outcome;

static outcome run(const loop_form *f, uint32_t stages, uint32_t iterations,
                   const mutation *mutate) {
    static uint16_t d[MOST_ROWS * PITCH];
    static float o[MOST_ROWS * MOST_ROWS];
    static const uint16_t halves[] = {0, 0x3C00, 0x4000, 0x4200};
    lilac_context *context = lilac_context_create();
    lilac_simt_module *simt = compile(context, f, stages, mutate);
    for (uint32_t i = 0; i < f->rows * PITCH; i++) {
        d[i] = halves[element(i / PITCH, i % PITCH)];
    }
    memset(o, 0, sizeof o);
    lilac_sim_buffer places[] = {{.name = "d", .bytes = (uint8_t *)d, .size = sizeof d},
                                 {.name = "o", .bytes = (uint8_t *)o, .size = sizeof o}};
    lilac_sim_place(places, 2);
    const uint32_t row = f->columns * 2 < 128 ? f->columns * 2 : 128;
    const lilac_tensor_map map = {.address = places[0].address,
                                  .element = LILAC_TENSOR_F16,
                                  .rank = 2,
                                  .dims = {PITCH, f->rows},
                                  .strides = {PITCH * 2},
                                  .box = {row / 2, f->rows},
                                  .element_strides = {1, 1},
                                  .swizzle = row == 128  ? LILAC_TENSOR_SWIZZLE_128
                                             : row == 64 ? LILAC_TENSOR_SWIZZLE_64
                                                         : LILAC_TENSOR_SWIZZLE_32};
    const uint64_t arguments[] = {0, places[1].address, (uint64_t)iterations * f->columns};
    const lilac_sim_launch launch = {.kernel = simt->kernels,
                                     .grid = {1, 1, 1},
                                     .arguments = arguments,
                                     .argument_count = 3,
                                     .tensor_maps = &map,
                                     .tensor_map_count = 1,
                                     .buffers = places,
                                     .buffer_count = 2,
                                     .threads = 1,
                                     .stall_seconds = 0.2,
                                     .instruction_limit = 1 << 22};
    lilac_sim_counters counters;
    const bool good = lilac_sim_run(context, &launch, &counters);
    outcome result = {.right = good,
                      .copies = counters.bulk_copies,
                      .buffers = simt->kernels->shared_bytes / (f->rows * f->columns * 2)};
    result.reported = !good || counters.races != 0 || lilac_diagnostics(context) != NULL;
    for (uint32_t i = 0; i < f->rows * f->rows; i++) {
        result.right &= o[i] == expected(f, iterations, i / f->rows, i % f->rows);
    }
    if (mutate == NULL && (!result.right || result.reported)) {
        print_diagnostics(context);
        print_message("%u x %u, %u stages, %u iterations\n", f->rows, f->columns, stages,
                      iterations);
    }
    lilac_simt_module_destroy(simt);
    lilac_context_destroy(context);
    return result;
}

static void loops_are_right(void **state) {
    (void)state;
    for (uint32_t n = 0; n < FORMS * MOST_STAGES; n++) {
        const loop_form *f = &forms[n % FORMS];
        for (uint32_t iterations = n % 2; iterations <= MOST_ITERATIONS; iterations += 2) {
            const uint32_t stages = 1 + n / FORMS;
            const outcome result = run(f, stages, iterations, NULL);
            assert_true(result.right && !result.reported);
            /* no copy of an iteration that does not exist */
            assert_int_equal(result.copies, (f->columns + 63) / 64 * iterations);
            if (f->last && stages == 4) {
                assert_int_equal(result.buffers, stages - 1);
            }
        }
    }
}

/* ---- mutations of tile IR ------------------------------------------------------------------ */

static lilac_tile_op *find(lilac_tile_op *loop, lilac_tile_opcode code, uint32_t number) {
    for (lilac_tile_op *op = loop->regions[0]->first->first; op != NULL; op = op->next) {
        if (op->code == code && number-- == 0) {
            return op;
        }
    }
    fail_msg("the loop has no such operation");
    return NULL;
}

static lilac_tile_op *find_wait(lilac_tile_op *loop) {
    return find(loop, LILAC_TILE_OP_TTNG_WAIT_BARRIER, 0);
}

static void drop_wait(lilac_tile_op *loop) {
    lilac_tile_remove(find_wait(loop));
}

/* The number of the carried value that is the parity. */
static uint32_t parity_of(lilac_tile_op *loop) {
    return find_wait(loop)->operands[1].value->index - 1;
}

/* A constant in front of the loop whose last bit is this. */
static lilac_tile_value *number_before(lilac_tile_op *loop, const lilac_tile_type *type,
                                       int64_t wanted) {
    for (lilac_tile_op *op = loop->previous; op != NULL; op = op->previous) {
        int64_t value;
        if (op->result_count == 1 && op->results[0].type == type &&
            lilac_tile_constant(&op->results[0], &value) && (value & 1) == wanted) {
            return &op->results[0];
        }
    }
    fail_msg("there is no such constant");
    return NULL;
}

static void swap_parity(lilac_tile_op *loop) {
    const lilac_tile_type *type = find_wait(loop)->operands[1].value->type;
    lilac_tile_set_init(loop, parity_of(loop), number_before(loop, type, 1));
}

static void keep_parity(lilac_tile_op *loop) {
    const uint32_t parity = parity_of(loop);
    lilac_tile_set_next(loop, parity, lilac_tile_iteration_argument(loop, parity));
}

/* The copies write the buffer that this iteration reads, as if there were one buffer less. */
static void copy_to_read_buffer(lilac_tile_op *loop) {
    const lilac_tile_op *read = find(loop, LILAC_TILE_OP_TTG_MEMDESC_INDEX, 1);
    lilac_tile_set_operand(find(loop, LILAC_TILE_OP_TTG_MEMDESC_INDEX, 3), 1,
                           read->operands[1].value);
}

/* The bytes arrive at the mbarrier of this iteration. */
static void signal_other_barrier(lilac_tile_op *loop) {
    const lilac_tile_op *waited = find(loop, LILAC_TILE_OP_TTG_MEMDESC_INDEX, 0);
    lilac_tile_set_operand(find(loop, LILAC_TILE_OP_TTG_MEMDESC_INDEX, 2), 1,
                           waited->operands[1].value);
}

static void add_bytes(lilac_tile_op *loop, int64_t more) {
    lilac_tile_op *expect = find(loop, LILAC_TILE_OP_TTNG_BARRIER_EXPECT, 0);
    for (uint32_t i = 0; i < expect->attributes.count; i++) {
        expect->attributes.list[i].integer += more;
    }
}

static void announce_less(lilac_tile_op *loop) {
    add_bytes(loop, -16);
}

static void announce_more(lilac_tile_op *loop) {
    add_bytes(loop, 16);
}

static void drop_announcement(lilac_tile_op *loop) {
    lilac_tile_remove(find(loop, LILAC_TILE_OP_TTNG_BARRIER_EXPECT, 0));
}

/* The copies of iterations that do not exist start too, and nothing waits for them. */
static void copy_always(lilac_tile_op *loop) {
    lilac_tile_op *copy = find(loop, LILAC_TILE_OP_TTNG_ASYNC_TMA_COPY_GLOBAL_TO_LOCAL, 0);
    lilac_tile_op *expect = find(loop, LILAC_TILE_OP_TTNG_BARRIER_EXPECT, 0);
    lilac_tile_value *yes = number_before(loop, copy->operands[5].value->type, 1);
    lilac_tile_set_operand(copy, 5, yes);
    lilac_tile_set_operand(expect, 1, yes);
}

/* ---- mutations of SIMT IR ------------------------------------------------------------------- */

/* The text without the last line before `at` that has the word. */
static void put_without(lilac_text *out, const char *text, const char *at, const char *word) {
    const size_t length = strlen(word);
    while (at > text && strncmp(at, word, length) != 0) {
        at--;
    }
    const char *begin = at, *end = strchr(at, '\n') + 1;
    assert_true(at > text);
    while (begin[-1] != '\n') {
        begin--;
    }
    lilac_text_printf(out, "%.*s%s", (int)(begin - text), text, end);
}

static const char *wait_in(const char *text) {
    const char *wait = strstr(text, "mbarrier.wait");
    assert_non_null(wait);
    return wait;
}

/* Other warps may still read the buffer that the copies write. */
static void drop_barrier_before_copies(lilac_text *out, const char *text) {
    const char *copy = strstr(wait_in(text), "cp.tensor.load");
    assert_non_null(copy);
    put_without(out, text, copy, "barrier {shared}");
}

/* Threads may wait before the first one has initialised the mbarriers.
 * One barrier orders all inits before it, so that all barriers are dropped. */
static void drop_barriers_behind_inits(lilac_text *out, const char *text) {
    const char *init = strstr(text, "mbarrier.init"), *wait = wait_in(text);
    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
        const size_t indent = strspn(line, " "), length = (size_t)(strchr(line, '\n') + 1 - line);
        const bool barrier = strncmp(line + indent, "barrier", 7) == 0;
        if (!barrier || line < init || line > wait) {
            lilac_text_printf(out, "%.*s", (int)length, line);
        }
    }
}

static void mutations_are_found(void **state) {
    static const mutation mutations[] = {
        {"drop_wait", drop_wait, NULL, ANY_FORM},
        {"swap_parity", swap_parity, NULL, ANY_FORM},
        {"keep_parity", keep_parity, NULL, ANY_FORM},
        {"copy_to_read_buffer", copy_to_read_buffer, NULL, OTHER_BUFFER},
        {"signal_other_barrier", signal_other_barrier, NULL, OTHER_BUFFER},
        {"announce_less", announce_less, NULL, ANY_FORM},
        {"announce_more", announce_more, NULL, ANY_FORM},
        {"drop_announcement", drop_announcement, NULL, ANY_FORM},
        {"copy_always", copy_always, NULL, IN_FLIGHT},
        {"drop_barrier_before_copies", NULL, drop_barrier_before_copies, SEVERAL_WARPS},
        {"drop_barriers_behind_inits", NULL, drop_barriers_behind_inits, SEVERAL_WARPS},
    };
    (void)state;
    for (size_t m = 0; m < sizeof mutations / sizeof *mutations; m++) {
        for (uint32_t form = 0; form < FORMS; form++) {
            const loop_form *f = &forms[form];
            if ((mutations[m].needs == SEVERAL_WARPS && f->warps == 1) ||
                (mutations[m].needs == IN_FLIGHT && (f->warps < 4 || f->scaled)) ||
                (mutations[m].needs == OTHER_BUFFER && f->last)) {
                continue;
            }
            if (!run(f, 2 + form % 3, MOST_ITERATIONS, &mutations[m]).reported) {
                fail_msg("%s, form %u: the simulator reports nothing", mutations[m].name, form);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_are_right),
        cmocka_unit_test(mutations_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
