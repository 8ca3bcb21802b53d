/* The layouts of memory operations in ten launches, compared with the layouts that Triton chose. */
#include "support/access_widths.h"

static const struct {
    const char *name;
    uint32_t warps;
} launches[] = {{"vector_add_f32", 4},       {"softmax_float16_4096", 8},
                {"softmax_float32_1000", 4}, {"softmax_bfloat16_8192", 8},
                {"layer_norm_f16_4096", 8},  {"layer_norm_f16_5120", 4},
                {"rms_norm_f16_4096", 8},    {"rms_norm_f16_5120", 8},
                {"swiglu_bf16", 8},          {"cross_entropy_bf16", 8}};

typedef struct survey {
    const lilac_simt_module *lowered;
    const char *launch;
    uint32_t triton; /* elements a thread in Triton's layout */
    uint32_t accesses;
    bool printed;
} survey;

static void look_at_access(void *data, lilac_tile_op *op) {
    survey *s = data;
    bool memory = op->code == LILAC_TILE_OP_TT_LOAD || op->code == LILAC_TILE_OP_TT_STORE;
    if (!memory || !lilac_tile_is_tensor(op->operands[0].value->type)) {
        return;
    }
    const lilac_tile_type *type = op->operands[0].value->type;
    uint32_t bytes = lilac_tile_element_bits(type->element->element) / 8;
    uint32_t ours = access_bytes(s->lowered, op) / bytes;
    uint32_t theirs = s->triton * bytes > 16 ? 16 / bytes : s->triton;
    s->accesses++;
    if (!s->printed) {
        lilac_text text;
        lilac_text_init(&text);
        lilac_layout_print(&text, type->layout);
        printf("  %-22s sizePerThread %u; ours %u × %u bytes, %s\n", s->launch, s->triton, ours,
               bytes, lilac_text_get(&text));
        lilac_text_clear(&text);
        s->printed = true;
    }
    if (ours < theirs) {
        fail_msg("%s: %s moves %u elements at once, Triton %u", s->launch,
                 lilac_tile_op_info_get(op->code)->name, ours, theirs);
    }
}

static void widths(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof launches / sizeof *launches; i++) {
        char name[128];
        size_t length = 0;
        snprintf(name, sizeof name, "corpus/%s.ttgir", launches[i].name);
        char *theirs = read_data(name, &length);
        const char *size = strstr(theirs, "sizePerThread = [");
        assert_non_null(size);
        survey s = {.launch = launches[i].name,
                    .triton = (uint32_t)atoi(size + strlen("sizePerThread = ["))};
        free(theirs);

        snprintf(name, sizeof name, "corpus/%s.ttir", launches[i].name);
        char *text = read_data(name, &length);
        program p;
        program_read(&p, name, text, length, launches[i].warps);
        free(text);
        assert_non_null(p.module);
        assert_true(program_assign(&p, true));
        assert_int_equal(count_ops(&p, LILAC_TILE_OP_TTG_CONVERT_LAYOUT), 0);
        lilac_simt_module *lowered = lilac_lower(p.module, &p.target);
        assert_non_null(lowered);
        s.lowered = lowered;
        lilac_tile_walk(p.module->functions->body, look_at_access, &s);
        assert_true(s.accesses > 0);
        lilac_simt_module_destroy(lowered);
        program_clear(&p);
    }
}

/* One kernel: loads of an f16 and an f32 array, stores of one of them. */
static void read_mixed(program *p, const char *body_end, const char *elements, uint32_t warps) {
    char body[4096];
    snprintf(body, sizeof body,
             "%%r = tt.make_range {end = %s : i32, start = 0 : i32} : tensor<%sxi32>\n"
             "%%ps = tt.splat %%p : !tt.ptr<f32> -> tensor<%sx!tt.ptr<f32>>\n"
             "%%pr = tt.addptr %%ps, %%r : tensor<%sx!tt.ptr<f32>>, tensor<%sxi32>\n"
             "%%qs = tt.splat %%q : !tt.ptr<f16> -> tensor<%sx!tt.ptr<f16>>\n"
             "%%qr = tt.addptr %%qs, %%r : tensor<%sx!tt.ptr<f16>>, tensor<%sxi32>\n"
             "%%x = tt.load %%qr : tensor<%sx!tt.ptr<f16>>\n"
             "%%y = arith.extf %%x : tensor<%sxf16> to tensor<%sxf32>\n%s",
             elements, elements, elements, elements, elements, elements, elements, elements,
             elements, elements, elements, body_end);
    program_body(p, body, warps);
}

static uint32_t elements_a_thread(const program *p, lilac_tile_opcode code) {
    const lilac_tile_op *op = last_op(p, code);
    return 1U << lilac_layout_consecutive(op->operands[0].value->type->layout, NULL);
}

/* Accesses of two widths share one layout: eight elements a thread halve the narrow accesses, four let
 * the wide ones take whole lines, and what there is more of decides. */
static void one_layout_for_two_widths(void **state) {
    (void)state;
    program p;
    read_mixed(&p,
               "%w2 = tt.load %pr : tensor<4096x!tt.ptr<f32>>\n"
               "%z = arith.addf %y, %w2 : tensor<4096xf32>\n"
               "%h = arith.truncf %z : tensor<4096xf32> to tensor<4096xf16>\n"
               "tt.store %qr, %h : tensor<4096x!tt.ptr<f16>>\n"
               "%again = tt.load %qr : tensor<4096x!tt.ptr<f16>>\n"
               "%sum = arith.addf %again, %h : tensor<4096xf16>\n"
               "tt.store %qr, %sum : tensor<4096x!tt.ptr<f16>>",
               "4096", 4);
    assert_true(program_assign(&p, true));
    assert_int_equal(elements_a_thread(&p, LILAC_TILE_OP_TT_STORE), 8);
    assert_int_equal(count_ops(&p, LILAC_TILE_OP_TTG_CONVERT_LAYOUT), 0);
    program_clear(&p);

    read_mixed(&p, "tt.store %pr, %y : tensor<4096x!tt.ptr<f32>>", "4096", 4);
    assert_true(program_assign(&p, true));
    assert_int_equal(elements_a_thread(&p, LILAC_TILE_OP_TT_STORE), 4);
    assert_int_equal(count_ops(&p, LILAC_TILE_OP_TTG_CONVERT_LAYOUT), 0);
    program_clear(&p);
}

/* A tensor that is too small for a full vector in every thread is spread over all of them when
 * there is something to compute; a mere copy keeps its vectors whole, and some warps have nothing
 * to do. */
static void small_tensors(void **state) {
    (void)state;
    static const struct {
        const char *elements;
        bool computes;
        uint32_t warps, expected;
    } sizes[] = {{"1024", true, 4, 8}, {"512", true, 4, 4},  {"256", true, 4, 2},
                 {"128", true, 4, 1},  {"32", true, 4, 1},   {"1024", false, 4, 8},
                 {"512", false, 4, 8}, {"256", false, 4, 8}, {"32", false, 4, 1}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        program p;
        char end[1024];
        const char *n = sizes[i].elements;
        if (sizes[i].computes) {
            snprintf(end, sizeof end,
                     "%%s = math.exp2 %%x : tensor<%sxf16>\n"
                     "%%t = arith.addf %%s, %%x : tensor<%sxf16>\n"
                     "tt.store %%qr, %%t : tensor<%sx!tt.ptr<f16>>",
                     n, n, n);
        } else {
            snprintf(end, sizeof end, "tt.store %%qr, %%x : tensor<%sx!tt.ptr<f16>>", n);
        }
        read_mixed(&p, end, sizes[i].elements, sizes[i].warps);
        assert_true(program_assign(&p, true));
        assert_int_equal(elements_a_thread(&p, LILAC_TILE_OP_TT_STORE), sizes[i].expected);
        program_clear(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(widths),
                                       cmocka_unit_test(one_layout_for_two_widths),
                                       cmocka_unit_test(small_tensors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
