/* The number of blocks: what late loads of weights relieve of registers becomes another block, in whole warps
 * of each partition, and only where warps of a block wait for each other; and two blocks for products. */
#include <lilac/bits.h>
#include <lilac/occupancy.h>
#include <lilac/simt.h>

#include "support/test.h"

enum { ELEMENTS = 48, PARTITIONS = 4 };

/* Loads, a barrier, and products with weights, which are the same in all blocks and loaded first. */
static void generate(lilac_text *out, uint32_t warps, uint32_t elements) {
    lilac_text_printf(
        out,
        "simt.module target \"sm_90a\" {\n"
        "kernel @k(%%i: i64 ptr align 16, %%w: i64 ptr align 16, %%o: i64 ptr align 16) "
        "warps %u ctas 1 shared 64 {\n"
        "%%t = thread : i32\n%%b = block x : i32\n%%k = const 256 : i32\n"
        "%%m = mulwide_u %%b, %%k : i64\n%%n = mulwide_u %%t, %%k : i64\n"
        "%%p = param 0 : i64\n%%q = param 1 : i64\n%%r = param 2 : i64\n"
        "%%a = add %%m, %%n : i64\n%%in = add %%p, %%a : i64\n"
        "%%weights = add %%q, %%n : i64\n%%out = add %%r, %%a : i64\n"
        "%%s0 = const 0.5 : f32\n",
        warps);
    for (uint32_t e = 0; e < elements; e++) {
        lilac_text_printf(out, "%%x%u = ld.global [%%in + %u] : f32\n", e, 4 * e);
    }
    lilac_text_puts(out, "barrier\n");
    for (uint32_t e = 0; e < elements; e++) {
        lilac_text_printf(out, "%%w%u = ld.global [%%weights + %u] : f32\n", e, 4 * e);
    }
    for (uint32_t e = 0; e < elements; e++) {
        lilac_text_printf(out, "%%s%u = ffma %%x%u, %%x%u, %%s%u : f32\n", e + 1, e, e, e);
    }
    for (uint32_t e = 0; e < elements; e++) {
        lilac_text_printf(out, "%%y%u = fmul %%x%u, %%s%u : f32\n", e, e, elements);
        lilac_text_printf(out, "%%z%u = fmul %%y%u, %%w%u : f32\n", e, e, e);
    }
    for (uint32_t e = 0; e < elements; e++) {
        lilac_text_printf(out, "st.global [%%out + %u], (%%z%u)\n", 4 * e, e);
    }
    lilac_text_puts(out, "return\n}\n}\n");
}

/* A loop that adds `elements` loads of an iteration to as many sums. */
static void generate_stream(lilac_text *out, uint32_t warps, uint32_t elements) {
    lilac_text_printf(out,
                      "simt.module target \"sm_90a\" {\n"
                      "kernel @k(%%i: i64 ptr align 16, %%o: i64 ptr align 16, %%c: i32) "
                      "warps %u ctas 1 shared 0 {\n"
                      "%%t = thread : i32\n%%b = block x : i32\n%%k = const 256 : i32\n"
                      "%%m = mulwide_u %%b, %%k : i64\n%%n = mulwide_u %%t, %%k : i64\n"
                      "%%p = param 0 : i64\n%%r = param 1 : i64\n%%count = param 2 : i32\n"
                      "%%a = add %%m, %%n : i64\n%%in = add %%p, %%a : i64\n"
                      "%%out = add %%r, %%a : i64\n%%zero = const 0 : i32\n%%one = const 1 : i32\n"
                      "%%s = const 0.0 : f32\n",
                      warps);
    for (uint32_t e = 0; e < elements; e++) {
        lilac_text_printf(out, "%s%%z%u", e > 0 ? ", " : "", e);
    }
    lilac_text_puts(out, " = loop %j = %zero to %count step %one (");
    for (uint32_t e = 0; e < elements; e++) {
        lilac_text_printf(out, "%s%%s%u = %%s", e > 0 ? ", " : "", e);
    }
    lilac_text_puts(out, ") : ");
    for (uint32_t e = 0; e < elements; e++) {
        lilac_text_puts(out, e > 0 ? ", f32" : "f32");
    }
    lilac_text_puts(out, " {\n%d = mulwide_s %j, %k : i64\n%at = add %in, %d : i64\n");
    for (uint32_t e = 0; e < elements; e++) {
        lilac_text_printf(out, "%%x%u = ld.global [%%at + %u] : f32\n", e, 4 * e);
    }
    for (uint32_t e = 0; e < elements; e++) {
        lilac_text_printf(out, "%%y%u = fadd %%s%u, %%x%u : f32\n", e, e, e);
    }
    lilac_text_puts(out, "yield ");
    for (uint32_t e = 0; e < elements; e++) {
        lilac_text_printf(out, "%s%%y%u", e > 0 ? ", " : "", e);
    }
    lilac_text_puts(out, "\n}\n");
    for (uint32_t e = 0; e < elements; e++) {
        lilac_text_printf(out, "st.global [%%out + %u], (%%z%u)\n", 4 * e, e);
    }
    lilac_text_puts(out, "return\n}\n}\n");
}

typedef struct outcome {
    uint32_t blocks, late, early;
    uint32_t words; /* live, with early loads */
    uint32_t left;  /* registers of a thread with this number of blocks */
} outcome;

typedef struct loaded {
    lilac_context *context;
    lilac_simt_module *module;
    lilac_simt_kernel *kernel;
} loaded;

/* The kernel of a text, which is freed. */
static loaded load(lilac_text *text) {
    loaded l = {.context = lilac_context_create()};
    const uint32_t source = lilac_source_add(l.context, "occupancy", text->bytes, text->length);
    l.module = lilac_simt_read(l.context, source);
    if (l.module == NULL || !lilac_simt_verify(l.module)) {
        print_diagnostics(l.context);
        fail();
    }
    l.kernel = l.module->kernels;
    lilac_text_clear(text);
    return l;
}

static void unload(loaded *l) {
    lilac_simt_module_destroy(l->module);
    lilac_context_destroy(l->context);
}

/* The number that the pass sets. */
static uint32_t blocks_of(lilac_text *text) {
    loaded l = load(text);
    (void)lilac_simt_opt_occupancy(l.kernel);
    const uint32_t blocks = l.kernel->min_blocks;
    unload(&l);
    return blocks;
}

static outcome run(void (*generator)(lilac_text *, uint32_t, uint32_t), uint32_t warps,
                   uint32_t elements) {
    lilac_text text = {0};
    generator(&text, warps, elements);
    loaded l = load(&text);
    outcome o = {.late = lilac_simt_resident_blocks(
                     l.kernel, lilac_simt_pressure(l.kernel, LILAC_SIMT_PRESSURE_LATE)),
                 .early = lilac_simt_resident_blocks(
                     l.kernel, lilac_simt_pressure(l.kernel, LILAC_SIMT_PRESSURE_EARLY))};
    lilac_simt_opt_occupancy(l.kernel);
    assert_false(lilac_simt_opt_occupancy(l.kernel));
    o.blocks = l.kernel->min_blocks;
    o.words = lilac_simt_pressure(l.kernel, LILAC_SIMT_PRESSURE_EARLY);
    o.left = lilac_registers_for_blocks(l.module->arch, warps, o.blocks);
    unload(&l);
    return o;
}

/* A number of blocks is at most what fits with late loads, and its warps fill all partitions evenly. The
 * program has one for several warps and none for one. */
static void whole_partitions(void **state) {
    (void)state;
    uint32_t numbers = 0, odd = 0;
    for (uint32_t warps = 1; warps <= 16; warps *= 2) {
        for (uint32_t elements = 8; elements <= ELEMENTS; elements++) {
            outcome o = run(generate, warps, elements);
            if (o.blocks > 0) {
                assert_true(o.blocks <= o.late);
                assert_int_equal(o.blocks * warps % PARTITIONS, 0);
                assert_true(warps > 1);
                numbers++;
                odd += o.blocks < o.late;
            }
        }
    }
    assert_true(numbers > 0 && odd > 0);
}

/* A loop whose loads are kept together gets a number of blocks that fills all partitions evenly: an
 * assembler limits registers to those of the fullest one. Blocks that are added to that end leave a
 * register for each live word. */
static void streams_fill_partitions(void **state) {
    (void)state;
    uint32_t more = 0, fewer = 0;
    for (uint32_t warps = 1; warps <= 4; warps *= 2) {
        for (uint32_t elements = 8; elements <= ELEMENTS; elements++) {
            const outcome o = run(generate_stream, warps, elements);
            if (o.blocks > 0) {
                assert_int_equal(o.blocks * warps % PARTITIONS, 0);
                assert_true(o.blocks < o.early + PARTITIONS && o.early < o.blocks + PARTITIONS);
                assert_true(o.blocks <= o.early || o.words <= o.left);
                more += o.blocks > o.early;
                fewer += o.blocks < o.early;
            }
        }
    }
    assert_true(more > 0 && fewer > 0);
}

/* What is computed from the sum of a row: a square, a sum over the lanes, or a product of matrices. */
typedef enum row_kind { SQUARE, EXCHANGE, PRODUCT } row_kind;

/* Loads of a row from global or shared memory, what is computed from its sum, and a store of each element. */
static void generate_row(lilac_text *out, uint32_t elements, row_kind kind, bool shared) {
    lilac_text_puts(out,
                    "simt.module target \"sm_90a\" {\n"
                    "kernel @k(%i: i64 ptr align 16, %o: i64 ptr align 16) "
                    "warps 1 ctas 1 shared 4096 {\n"
                    "%t = thread : i32\n%b = block x : i32\n%k = const 256 : i32\n"
                    "%m = mulwide_u %b, %k : i64\n%n = mulwide_u %t, %k : i64\n"
                    "%p = param 0 : i64\n%r = param 1 : i64\n%a = add %m, %n : i64\n"
                    "%in = add %p, %a : i64\n%out = add %r, %a : i64\n"
                    "%s0 = const 0.0 : f32\n%one = const 1 : i32\n%base = shared_base : i32\n");
    for (uint32_t e = 0; e < elements; e++) {
        lilac_text_printf(out, "%%x%u = ld.%s + %u] : f32\n", e,
                          shared ? "shared [%base" : "global [%in", 4 * e);
    }
    for (uint32_t e = 0; e < elements; e++) {
        lilac_text_printf(out, "%%s%u = fadd %%s%u, %%x%u : f32\n", e + 1, e, e);
    }
    switch (kind) {
    case SQUARE:
        lilac_text_printf(out, "%%other = fmul %%s%u, %%s%u : f32\n", elements, elements);
        break;
    case EXCHANGE:
        lilac_text_printf(out, "%%other = shuffle xor %%s%u, %%one : f32\n", elements);
        break;
    case PRODUCT:
        lilac_text_printf(out,
                          "%%d0, %%d1, %%d2, %%other = mma %%one, %%one, %%one, %%one, %%one, "
                          "%%one, %%s0, %%s0, %%s0, %%s%u : f32, f32, f32, f32 "
                          "{a = f16, b = f16, d = f32, m = 16, n = 8, k = 16}\n",
                          elements);
        break;
    }
    for (uint32_t e = 0; e < elements; e++) {
        lilac_text_printf(out, "%%y%u = fadd %%x%u, %%other : f32\n", e, e);
        lilac_text_printf(out, "st.global [%%out + %u], (%%y%u)\n", 4 * e, e);
    }
    lilac_text_puts(out, "return\n}\n}\n");
}

static void generate_sum(lilac_text *out, uint32_t warps, uint32_t elements) {
    (void)warps;
    generate_row(out, elements, EXCHANGE, false);
}

static void generate_line(lilac_text *out, uint32_t warps, uint32_t elements) {
    (void)warps;
    generate_row(out, elements, SQUARE, false);
}

static void generate_shared_line(lilac_text *out, uint32_t warps, uint32_t elements) {
    (void)warps;
    generate_row(out, elements, SQUARE, true);
}

static void generate_line_with_product(lilac_text *out, uint32_t warps, uint32_t elements) {
    (void)warps;
    generate_row(out, elements, PRODUCT, false);
}

/* A sum over lanes waits for all loads of the row, which have registers then, if there are four or
 * more. Code without exchanges gets no number, nor does that which nearly fills a multiprocessor. */
static void rows_are_loaded_at_once(void **state) {
    (void)state;
    uint32_t numbers = 0;
    for (uint32_t elements = 1; elements <= 96; elements++) {
        const outcome line = run(generate_line, 1, elements), sum = run(generate_sum, 1, elements);
        assert_int_equal(line.blocks, 0);
        if (sum.blocks > 0) {
            assert_true(elements >= 4);
            assert_int_equal(sum.blocks % PARTITIONS, 0);
            assert_true(sum.left >= elements);
            numbers++;
        }
    }
    assert_true(numbers > 60);
}

/* Products of `columns` columns, `chain` of them one after another into the same accumulators, while `others`
 * more words are live. */
static void generate_products(lilac_text *out, uint32_t warps, uint32_t columns, uint32_t chain,
                              uint32_t others) {
    const uint32_t words = columns / 2;
    lilac_text_printf(out,
                      "simt.module target \"sm_90a\" {\n"
                      "kernel @k(%%i: i64 ptr align 16, %%o: i64 ptr align 16) "
                      "warps %u ctas 1 shared 32768 {\n"
                      "%%t = thread : i32\n%%k = const 2048 : i32\n%%n = mulwide_u %%t, %%k : i64\n"
                      "%%p = param 0 : i64\n%%r = param 1 : i64\n%%in = add %%p, %%n : i64\n"
                      "%%out = add %%r, %%n : i64\n%%d = const 4611686293305294848 : i64\n"
                      "%%y = const 1 : i1\n",
                      warps);
    for (uint32_t e = 0; e < words + others; e++) {
        lilac_text_printf(out, "%%a0_%u = ld.global [%%in + %u] : f32\n", e, 4 * e);
    }
    lilac_text_puts(out, "wgmma.fence\n");
    for (uint32_t c = 0; c < chain; c++) {
        for (uint32_t e = 0; e < words; e++) {
            lilac_text_printf(out, "%s%%a%u_%u", e > 0 ? ", " : "", c + 1, e);
        }
        lilac_text_puts(out, " = wgmma ");
        for (uint32_t e = 0; e < words; e++) {
            lilac_text_printf(out, "%%a%u_%u, ", c, e);
        }
        lilac_text_puts(out, "%d, %d, %y : ");
        for (uint32_t e = 0; e < words; e++) {
            lilac_text_puts(out, e > 0 ? ", f32" : "f32");
        }
        lilac_text_printf(out, " {a = f16, b = f16, d = f32, m = 64, n = %u, k = 16}\n", columns);
    }
    lilac_text_puts(out, "wgmma.commit\n");
    for (uint32_t e = 0; e < words; e++) {
        lilac_text_printf(out, "%s%%w%u", e > 0 ? ", " : "", e);
    }
    lilac_text_puts(out, " = wgmma.wait ");
    for (uint32_t e = 0; e < words; e++) {
        lilac_text_printf(out, "%s%%a%u_%u", e > 0 ? ", " : "", chain, e);
    }
    lilac_text_puts(out, " : ");
    for (uint32_t e = 0; e < words; e++) {
        lilac_text_puts(out, e > 0 ? ", f32" : "f32");
    }
    lilac_text_puts(out, " {groups = 0}\n");
    for (uint32_t e = 0; e < words + others; e++) {
        lilac_text_printf(out, "st.global [%%out + %u], (%%%s%u)\n", 4 * e, e < words ? "w" : "a0_",
                          e);
    }
    lilac_text_puts(out, "return\n}\n}\n");
}

static uint32_t blocks_of_products(uint32_t warps, uint32_t columns, uint32_t chain,
                                   uint32_t others) {
    lilac_text text = {0};
    generate_products(&text, warps, columns, chain, others);
    return blocks_of(&text);
}

/* Products of blocks of eight warps: two blocks where two have the registers, or nearly; none
 * where many are missing, where the products have most of the registers and not all live words
 * fit, and in smaller blocks. */
static void two_blocks_of_products(void **state) {
    (void)state;
    for (uint32_t chain = 1; chain <= 4; chain += 3) {
        assert_int_equal(blocks_of_products(8, 128, chain, 30), 2);
        assert_int_equal(blocks_of_products(8, 128, chain, 65), 2);
        assert_int_equal(blocks_of_products(8, 128, chain, 100), 0);
        assert_int_equal(blocks_of_products(8, 256, chain, 4), 0);
        assert_int_equal(blocks_of_products(8, 160, chain, 8), 2);
        assert_int_equal(blocks_of_products(8, 224, chain, 8), 2);
        assert_int_equal(blocks_of_products(8, 224, chain, 24), 0);
        assert_int_equal(blocks_of_products(4, 128, chain, 65), 0);
    }
}

/* Where live words of products, or words that are not loaded from global memory, do not fit in the registers of a
 * thread, one block is enough, however small it is. Other code gets no number. */
static void one_block_for_code_that_spills(void **state) {
    (void)state;
    assert_int_equal(blocks_of_products(4, 256, 1, 100), 0);
    assert_int_equal(blocks_of_products(4, 256, 1, 200), 1);
    static const struct {
        void (*put)(lilac_text *, uint32_t, uint32_t);
        uint32_t blocks;
    } cases[] = {{generate_line, 0}, {generate_shared_line, 1}, {generate_line_with_product, 1}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const outcome few = run(cases[c].put, 1, 96), many = run(cases[c].put, 1, 300);
        assert_true(few.words <= LILAC_MOST_REGISTERS && many.words > LILAC_MOST_REGISTERS);
        assert_int_equal(few.blocks, 0);
        assert_int_equal(many.blocks, cases[c].blocks);
    }
}

/* Two sums in a tree of 2^`levels` loads: a mean of the loads, and of the squares of the differences that
 * the first sum computes at every node. The loads are stored at the end. */
static void generate_tree(lilac_text *out, uint32_t levels) {
    lilac_text_puts(out, "simt.module target \"sm_90a\" {\n"
                         "kernel @k(%i: i64 ptr align 16, %o: i64 ptr align 16) "
                         "warps 4 ctas 1 shared 0 {\n"
                         "%t = thread : i32\n%k = const 256 : i32\n%n = mulwide_u %t, %k : i64\n"
                         "%p = param 0 : i64\n%r = param 1 : i64\n%in = add %p, %n : i64\n"
                         "%out = add %r, %n : i64\n%half = const 0.5 : f32\n");
    for (uint32_t e = 0; e < 1U << levels; e++) {
        lilac_text_printf(out, "%%m0_%u = ld.global [%%in + %u] : f32\n", e, 4 * e);
        lilac_text_printf(out, "%%s0_%u = const 0.0 : f32\n", e);
    }
    for (uint32_t l = 1; l <= levels; l++) {
        for (uint32_t e = 0; e < 1U << (levels - l); e++) {
            const uint32_t a = 2 * e, b = 2 * e + 1, below = l - 1;
            lilac_text_printf(out, "%%d%u_%u = fsub %%m%u_%u, %%m%u_%u : f32\n", l, e, below, b,
                              below, a);
            lilac_text_printf(out, "%%m%u_%u = ffma %%d%u_%u, %%half, %%m%u_%u : f32\n", l, e, l, e,
                              below, a);
            lilac_text_printf(out, "%%q%u_%u = ffma %%d%u_%u, %%d%u_%u, %%s%u_%u : f32\n", l, e, l,
                              e, l, e, below, a);
            lilac_text_printf(out, "%%s%u_%u = fadd %%q%u_%u, %%s%u_%u : f32\n", l, e, l, e, below,
                              b);
        }
    }
    lilac_text_printf(out, "st.global [%%out], (%%m%u_0)\nst.global [%%out + 4], (%%s%u_0)\n",
                      levels, levels);
    for (uint32_t e = 0; e < 1U << levels; e++) {
        lilac_text_printf(out, "st.global [%%out + %u], (%%m0_%u)\n", 8 + 4 * e, e);
    }
    lilac_text_puts(out, "return\n}\n}\n");
}

/* The second sum waits for the first one, which leaves the differences of all nodes; or each square
 * is added as soon as its difference is there. */
static void prompt_sums_leave_no_differences(void **state) {
    (void)state;
    for (uint32_t levels = 3; levels <= 6; levels++) {
        const uint32_t leaves = 1U << levels;
        lilac_text text = {0};
        generate_tree(&text, levels);
        loaded l = load(&text);
        const uint32_t early = lilac_simt_pressure(l.kernel, LILAC_SIMT_PRESSURE_EARLY);
        const uint32_t prompt = lilac_simt_pressure(l.kernel, LILAC_SIMT_PRESSURE_PROMPT);
        assert_true(early >= 2 * leaves - 1);
        assert_in_range(prompt, leaves, leaves + 2 * levels + 6);
        unload(&l);
    }
}

/* Loads that are multiplied behind a branch, or not: one body computes the products, the other chooses the
 * loads. `first`: the one that computes is the first. */
static void generate_choice(lilac_text *out, uint32_t count, bool first) {
    lilac_text_puts(out, "simt.module target \"sm_90a\" {\n"
                         "kernel @k(%i: i64 ptr align 16, %o: i64 ptr align 16) "
                         "warps 4 ctas 1 shared 0 {\n"
                         "%t = thread : i32\n%k = const 256 : i32\n%n = mulwide_u %t, %k : i64\n"
                         "%p = param 0 : i64\n%r = param 1 : i64\n%in = add %p, %n : i64\n"
                         "%out = add %r, %n : i64\n%half = const 0.5 : f32\n");
    for (uint32_t e = 0; e < count; e++) {
        lilac_text_printf(out, "%%x%u = ld.global [%%in + %u] : f32\n", e, 4 * e);
    }
    lilac_text_puts(out, "%less = cmp lt %x0, %half : i1\n%any = vote some %less : i1\n");
    for (uint32_t e = 0; e < count; e++) {
        lilac_text_printf(out, "%s%%y%u", e > 0 ? ", " : "", e);
    }
    lilac_text_puts(out, " = if %any : ");
    for (uint32_t e = 0; e < count; e++) {
        lilac_text_puts(out, e > 0 ? ", f32" : "f32");
    }
    for (uint32_t side = 0; side < 2; side++) {
        const bool computes = (side == 0) == first;
        lilac_text_puts(out, side == 0 ? " {\n" : "} else {\n");
        for (uint32_t e = 0; e < count && computes; e++) {
            lilac_text_printf(out, "%%z%u = fmul %%x%u, %%half : f32\n", e, e);
        }
        lilac_text_puts(out, "yield ");
        for (uint32_t e = 0; e < count; e++) {
            lilac_text_printf(out, "%s%%%c%u", e > 0 ? ", " : "", computes ? 'z' : 'x', e);
        }
        lilac_text_puts(out, "\n");
    }
    lilac_text_puts(out, "}\n");
    for (uint32_t e = 0; e < count; e++) {
        lilac_text_printf(out, "st.global [%%out + %u], (%%y%u)\n", 4 * e, e);
    }
    lilac_text_puts(out, "return\n}\n}\n");
}

/* A product takes the register of the load that it replaces. */
static void choices_take_no_registers(void **state) {
    (void)state;
    for (uint32_t first = 0; first < 2; first++) {
        lilac_text text = {0};
        generate_choice(&text, 40, first != 0);
        loaded l = load(&text);
        assert_in_range(lilac_simt_pressure(l.kernel, LILAC_SIMT_PRESSURE_EARLY), 40, 48);
        unload(&l);
    }
}

/* A loop of one load, `work` products of it and a sum; then a barrier. */
static void generate_busy(lilac_text *out, uint32_t warps, uint32_t work, uint32_t others) {
    lilac_text_printf(out,
                      "simt.module target \"sm_90a\" {\n"
                      "kernel @k(%%i: i64 ptr align 16, %%o: i64 ptr align 16, %%c: i32) "
                      "warps %u ctas 1 shared 0 {\n"
                      "%%t = thread : i32\n%%k = const 4 : i32\n%%n = mulwide_u %%t, %%k : i64\n"
                      "%%p = param 0 : i64\n%%r = param 1 : i64\n%%count = param 2 : i32\n"
                      "%%in = add %%p, %%n : i64\n%%out = add %%r, %%n : i64\n"
                      "%%zero = const 0 : i32\n%%one = const 1 : i32\n%%f = const 0.5 : f32\n",
                      warps);
    for (uint32_t e = 0; e < others; e++) {
        lilac_text_printf(out, "%%h%u = ld.global [%%in + %u] : f32\n", e, 256 * e);
    }
    lilac_text_puts(out, "%z = loop %j = %zero to %count step %one (%s = %f) : f32 {\n"
                         "%d = mulwide_s %j, %k : i64\n%at = add %in, %d : i64\n"
                         "%y0 = ld.global [%at] : f32\n");
    for (uint32_t w = 0; w < work; w++) {
        lilac_text_printf(out, "%%y%u = fmul %%y%u, %%s : f32\n", w + 1, w);
    }
    lilac_text_printf(
        out, "%%u = fadd %%s, %%y%u : f32\nyield %%u\n}\nbarrier\nst.global [%%out], (%%z)\n",
        work);
    for (uint32_t e = 0; e < others; e++) {
        lilac_text_printf(out, "st.global [%%out + %u], (%%h%u)\n", 256 * e + 128, e);
    }
    lilac_text_puts(out, "return\n}\n}\n");
}

static uint32_t blocks_of_busy(uint32_t warps, uint32_t work, uint32_t others) {
    lilac_text text = {0};
    generate_busy(&text, warps, work, others);
    return blocks_of(&text);
}

/* A sector costs as much as 8 instructions of a warp, and a load is 4 sectors. Loops that work longer get
 * the most warps, if the live words fit in 32 registers. */
static void busy_loops_have_most_warps(void **state) {
    (void)state;
    for (uint32_t warps = 1; warps <= 32; warps *= 2) {
        const uint32_t most = warps == 1 ? 0 : 64 / warps; /* 64 blocks of one warp are too many */
        assert_int_equal(blocks_of_busy(warps, 64, 4), most);
        assert_int_equal(blocks_of_busy(warps, 64, 40), 0);
        assert_int_equal(blocks_of_busy(warps, 4, 4), 0);
    }
}

/* How many blocks leave the live words of a kernel two registers more, and how many leave eight more in the order that
 * ends values promptly. */
typedef struct fitting {
    uint32_t early, prompt;
} fitting;

static uint32_t most_blocks(const lilac_simt_kernel *kernel, uint32_t registers) {
    const lilac_arch *arch = kernel->module->arch;
    uint32_t blocks = 0;
    while (lilac_registers_for_blocks(arch, kernel->num_warps, blocks + 1) >= registers) {
        blocks++;
    }
    return blocks;
}

/* The number for a kernel of a text, which is freed, when its launch has that many programs. */
static uint32_t blocks_of_launch(lilac_text *text, uint32_t programs, fitting *fits) {
    loaded l = load(text);
    fits->early =
        most_blocks(l.kernel, lilac_simt_pressure(l.kernel, LILAC_SIMT_PRESSURE_EARLY) + 2);
    fits->prompt =
        most_blocks(l.kernel, lilac_simt_pressure(l.kernel, LILAC_SIMT_PRESSURE_PROMPT) + 8);
    l.kernel->programs = programs;
    (void)lilac_simt_opt_occupancy(l.kernel);
    const uint32_t blocks = l.kernel->min_blocks;
    unload(&l);
    return blocks;
}

static uint32_t blocks_of_stream(uint32_t warps, uint32_t elements, uint32_t programs,
                                 fitting *fits) {
    lilac_text text = {0};
    generate_stream(&text, warps, elements);
    return blocks_of_launch(&text, programs, fits);
}

static uint32_t blocks_of_tree(uint32_t levels, uint32_t programs, fitting *fits) {
    lilac_text text = {0};
    generate_tree(&text, levels);
    return blocks_of_launch(&text, programs, fits);
}

/* Where all programs run at the same time, a multiprocessor gets as many blocks as it has of them, but for an
 * eighth that waits; not where so many blocks leave too few registers, nor where there are more programs. */
static void known_programs(void **state) {
    (void)state;
    const uint32_t device = lilac_arch_find("sm_90a")->multiprocessors;
    uint32_t limited = 0, promptly = 0;
    fitting f;
    for (uint32_t warps = 1; warps <= 8; warps *= 2) {
        for (uint32_t elements = 8; elements <= ELEMENTS; elements++) {
            const uint32_t usual = blocks_of_stream(warps, elements, 0, &f);
            const uint32_t fits = max_u32(f.early, f.prompt), resident = min_u32(64 / warps, 32);
            for (uint32_t blocks = 1; blocks <= resident; blocks++) {
                const uint32_t most = blocks * device * 9 / 8; /* an eighth of them waits */
                const uint32_t expected = blocks <= fits ? blocks : usual;
                const uint32_t after = blocks + 1 <= min_u32(fits, resident) ? blocks + 1 : usual;
                assert_int_equal(blocks_of_stream(warps, elements, most, &f), expected);
                assert_int_equal(blocks_of_stream(warps, elements, most - device / 2, &f),
                                 expected);
                assert_int_equal(blocks_of_stream(warps, elements, most + 1, &f), after);
            }
            limited += fits < resident;
            assert_int_equal(blocks_of_stream(warps, elements, 1, &f), 1);
            assert_int_equal(blocks_of_stream(warps, elements, UINT32_MAX, &f), usual);
        }
    }
    for (uint32_t levels = 2; levels <= 6; levels++) { /* trees of sums, by four warps */
        const uint32_t usual = blocks_of_tree(levels, 0, &f);
        for (uint32_t blocks = 1; blocks <= 16; blocks++) {
            const uint32_t set = blocks_of_tree(levels, blocks * device, &f);
            const uint32_t asked = (8 * blocks + 8) / 9;
            assert_int_equal(set, asked <= max_u32(f.early, f.prompt) ? asked : usual);
            promptly += asked > f.early && set == asked && set != usual;
        }
    }
    assert_true(limited > 60 && promptly > 0);
    assert_int_equal(blocks_of_stream(32, 200, 1, &f), 0); /* too many words for the registers */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(whole_partitions),
                                       cmocka_unit_test(streams_fill_partitions),
                                       cmocka_unit_test(rows_are_loaded_at_once),
                                       cmocka_unit_test(prompt_sums_leave_no_differences),
                                       cmocka_unit_test(choices_take_no_registers),
                                       cmocka_unit_test(busy_loops_have_most_warps),
                                       cmocka_unit_test(known_programs),
                                       cmocka_unit_test(two_blocks_of_products),
                                       cmocka_unit_test(one_block_for_code_that_spills)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
