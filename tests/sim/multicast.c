/* Multicast tensor loads on the simulator.
 *
 * A ring of two buffers in each block of a cluster of two is right: each block loads a half of every
 * tile and multicasts it to both. Each mutation of it is reported. Random boxes and masks over
 * clusters of two and four blocks are compared with the model of the walk over the box. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/random_boxes.h"
#include "support/tensor_rig.h"

/* ---- a pipeline ------------------------------------------------------------------------------ */

/* Tile i is rows 16i … 16i + 15 of a tensor of 64 columns of f16, swizzled. Block r loads rows 16i +
 * 8r … 16i + 8r + 7 into both blocks: 1024 bytes at 1024 + 2048 · (i % 2) + 1024 · r. The mbarriers of
 * a block: full at 0 and 8, empty at 16 and 24. The threads of both blocks arrive at both empty ones. */
enum { TILES = 5, ROWS = 16, HALF = 8, COLUMNS = 64, TILE = ROWS * COLUMNS * 2, THREADS = 64 };

#define HEAD "kernel @k(%m: i64 tensor_map, %out: i64 ptr) warps 2 ctas 2 shared 8192"
#define VALUES                                                                                     \
    "%base = shared_base : i32\n%m = param 0 : i64\n%out = param 1 : i64\n%t = thread : i32\n"     \
    "%rank = cta : i32\n%zero = const 0 : i32\n%one = const 1 : i32\n%two = const 2 : i32\n"       \
    "%four = const 4 : i32\n%eight = const 8 : i32\n%sixteen = const 16 : i32\n"                   \
    "%tiles = const 5 : i32\n%size = const 2048 : i32\n%half_size = const 1024 : i32\n"            \
    "%count = const 128 : i32\n%mask = const 3 : i32\n%threads = const 64 : i32\n"                 \
    "%first = cmp eq %t, %zero : i1\n%is_zero = cmp eq %rank, %zero : i1\n"                        \
    "%leads = and %first, %is_zero : i1\n%beyond = add %four, %rank : i32\n"                       \
    "%quarter = mul %t, %four : i32\n%my_rows = mul %rank, %eight : i32\n"                         \
    "%my_half = mul %rank, %half_size : i32\n%before_me = mul %rank, %threads : i32\n"             \
    "%thread_of_cluster = add %before_me, %t : i32\n"                                              \
    "%result = mul %thread_of_cluster, %four : i32\n%wide = zext %result : i64\n"                  \
    "%place = add %out, %wide : i64\n"
#define PLACES(tile)                                                                               \
    "%ring_" tile " = rem_u %" tile ", %two : i32\n"                                               \
    "%full_" tile " = mul %ring_" tile ", %eight : i32\n"                                          \
    "%buffer_" tile " = mul %ring_" tile ", %size : i32\n"                                         \
    "%target_" tile " = add %buffer_" tile ", %my_half : i32\n"                                    \
    "%tile_row_" tile " = mul %" tile ", %sixteen : i32\n"                                         \
    "%row_" tile " = add %tile_row_" tile ", %my_rows : i32\n"
#define FILL(tile)                                                                                 \
    "mbarrier.expect [%full_" tile "], %go_" tile ", (%size)\n"                                    \
    "cp.tensor.load [%target_" tile " + 1024], %go_" tile ", (%m, %zero, %row_" tile               \
    ", %full_" tile ", %mask) {multicast}\n"
#define INIT                                                                                       \
    "mbarrier.init [%base], %first, (%one)\n"                                                      \
    "mbarrier.init [%base + 8], %first, (%one)\n"                                                  \
    "mbarrier.init [%base + 16], %first, (%count)\n"                                               \
    "mbarrier.init [%base + 24], %first, (%count)\n"                                               \
    "fence.mbarrier_init\n"
#define RELEASE "mbarrier.arrive.cluster [%empty_0]\nmbarrier.arrive.cluster [%empty_1]\n"
#define WAIT_EMPTY                                                                                 \
    "%half_n = div_u %n, %two : i32\n"                                                             \
    "%odd = add %half_n, %one : i32\n"                                                             \
    "%empty = rem_u %odd, %two : i32\n"                                                            \
    "mbarrier.wait [%full_n + 16], (%empty)\n"
#define WAIT_FULL                                                                                  \
    "%half = div_u %i, %two : i32\n"                                                               \
    "%parity = rem_u %half, %two : i32\n"                                                          \
    "mbarrier.wait [%full_i], (%parity)\n"
#define CONSUME                                                                                    \
    "%at = add %buffer_i, %quarter : i32\n"                                                        \
    "%upper = ld.shared [%at + 1024] : i32\n"                                                      \
    "%lower = ld.shared [%at + 2048] : i32\n"                                                      \
    "%both = add %upper, %lower : i32\n"                                                           \
    "%next = add %s, %both : i32\n"
#define ADDRESSES                                                                                  \
    "%empty_at = add %full_i, %sixteen : i32\n"                                                    \
    "%empty_0 = map_shared %empty_at, %zero : i32\n"                                               \
    "%empty_1 = map_shared %empty_at, %one : i32\n"
#define START "%go_zero = and %first, %first : i1\n" PLACES("zero") FILL("zero")
#define LOOP                                                                                       \
    "%sum = loop %i = %zero to %tiles step %one (%s = %zero) : i32 {\n" PLACES(                    \
        "i") "%n = add %i, %one : i32\n" PLACES("n") "%more = cmp lt %n, %tiles : i1\n"            \
                                                     "%go_n = and %more, %first : i1\n" WAIT_EMPTY \
                                                         FILL("n")                                 \
                                                             WAIT_FULL CONSUME ADDRESSES RELEASE   \
        "yield %next\n}\n"
#define PIPELINE INIT "cluster_barrier\n" START LOOP "st.global [%place], (%sum)\ncluster_barrier\n"

static uint16_t tensor[TILES * ROWS][COLUMNS];
static uint32_t out[2 * THREADS];

/* Runs the text with the first occurrence of `from` replaced. */
static bool run_pipeline(text_rig *r, const char *from, const char *to) {
    static lilac_tensor_map map;
    char *body = replaced(PIPELINE, from, to);
    text_open(r, HEAD, VALUES, body, NULL);
    free(body);
    for (uint32_t k = 0; k < TILES * ROWS * COLUMNS; k++) {
        tensor[k / COLUMNS][k % COLUMNS] = (uint16_t)(k * 40503u >> 3);
    }
    map = (lilac_tensor_map){.element = LILAC_TENSOR_F16,
                             .rank = 2,
                             .dims = {COLUMNS, TILES * ROWS},
                             .strides = {sizeof *tensor},
                             .box = {COLUMNS, HALF},
                             .element_strides = {1, 1},
                             .swizzle = LILAC_TENSOR_SWIZZLE_128};
    return tensor_rig_run(r, &map, (tensor_rig_memory){"tensor", tensor, sizeof tensor},
                          (tensor_rig_memory){"out", out, sizeof out});
}

/* Thread t adds word t of both halves of each tile: of rows 0 and 1 of the half. */
static void check_sums(const text_rig *r) {
    expect_nothing(r);
    assert_int_equal(r->t.counters.bulk_copies, 2 * 2 * TILES);
    assert_int_equal(r->t.counters.bulk_bytes, 2 * TILES * TILE);
    for (uint32_t t = 0; t < 2 * THREADS; t++) {
        uint32_t sum = 0, row = t % THREADS / 32, chunk = t / 4 % 8 ^ row;
        for (uint32_t half = 0; half < 2 * TILES; half++) {
            const uint16_t *pair = &tensor[half * HALF + row][8 * chunk + 2 * (t % 4)];
            sum += pair[0] | (uint32_t)pair[1] << 16;
        }
        assert_int_equal(out[t], sum);
    }
}

static void a_pipeline_is_right(void **state) {
    (void)state;
    text_rig r;
    memset(out, 0, sizeof out);
    if (!run_pipeline(&r, INIT, INIT)) {
        text_fail(&r, "a trap");
    }
    check_sums(&r);
    text_close(&r);
}

/* Each pass keeps the loads and what orders them; offsets of addresses are folded into them, and a
 * barrier stays where the memory of another block may be written behind it. */
static void passes_keep_loads(void **state) {
    (void)state;
    text_rig r;
    lilac_text text = {0};
    assert_true(run_pipeline(
        &r, FILL("n"),
        "barrier {shared}\n%far = add %target_n, %half_size : i32\n"
        "%plus = add %full_n, %eight : i32\nmbarrier.expect [%full_n], %go_n, (%size)\n"
        "cp.tensor.load [%far], %go_n, (%m, %zero, %row_n, %plus, %mask) {mbarrier = -8, "
        "multicast}\n"));
    check_sums(&r);
    tensor_rig_run_passes(&r, check_sums);
    lilac_simt_print(&text, r.t.module);
    const char *printed = lilac_text_get(&text);
    if (strstr(printed, "mbarrier = ") || !strstr(printed, " + 1024]") ||
        !strstr(printed, "multicast") || !strstr(printed, "barrier {shared}")) {
        fail_msg("offsets are not folded, or the barrier is gone:\n%s", printed);
    }
    lilac_text_clear(&text);
    text_close(&r);
}

static void mutations_are_found(void **state) {
    static const mutation cases[] = {
        /* each block releases its own buffer only, and counts all arrivals as its own */
        {RELEASE, "mbarrier.arrive [%full_i + 16], (%two)\n", "copy-in-flight", "ld.shared",
         "cp.tensor.load"},
        {"mbarrier.arrive.cluster [%empty_1]\n", "", "deadlock", "mbarrier.wait [%full_n + 16]",
         "mbarrier.init [%base + 16]"},
        {WAIT_EMPTY, "", "copy-in-flight", "ld.shared", "cp.tensor.load"},
        {"(%size)\ncp.tensor.load [%target_n", "(%half_size)\ncp.tensor.load [%target_n",
         "copy-in-flight", "ld.shared", "cp.tensor.load"},
        {"cluster_barrier\n" START, "barrier\n" START, "shared-lifetime", "cp.tensor.load", NULL},
        {"cluster_barrier\n" START, "barrier\n" START, "mbarrier-missing", "cp.tensor.load", NULL},
        {INIT "cluster_barrier\n", "cluster_barrier\n" INIT "barrier\n", "mbarrier-missing",
         "cp.tensor.load [%target_zero", NULL},
        {"mbarrier.init [%base + 8], %first", "mbarrier.init [%base + 8], %leads",
         "mbarrier-missing", "cp.tensor.load [%target_n", NULL},
        {"%full_n, %mask)", "%full_n, %beyond)", "multicast-mask", "cp.tensor.load [%target_n",
         NULL},
        {"%full_n, %mask)", "%full_n, %one)", "deadlock", "mbarrier.wait",
         "mbarrier.wait [%full_i]"},
        {WAIT_FULL, "", "copy-in-flight", "ld.shared", "cp.tensor.load"},
        {CONSUME, CONSUME "st.shared [%at + 2048], (%zero)\n", "missing-proxy-fence",
         "cp.tensor.load", "st.shared"},
        {"(%sum)\ncluster_barrier\n", "(%sum)\n", "shared-lifetime", "mbarrier.arrive.cluster",
         NULL},
    };
    (void)state;
    tensor_rig_mutate(cases, sizeof cases / sizeof *cases, run_pipeline);
}

/* ---- one load -------------------------------------------------------------------------------- */

#define ONE_HEAD "kernel @k(%m: i64 tensor_map, %out: i64 ptr) warps 1 ctas 2 shared 2048"
#define ONE_VALUES                                                                                 \
    "%base = shared_base : i32\n%m = param 0 : i64\n%out = param 1 : i64\n%t = thread : i32\n"     \
    "%rank = cta : i32\n%zero = const 0 : i32\n%one = const 1 : i32\n%four = const 4 : i32\n"      \
    "%mask = const 3 : i32\n%size = const 1024 : i32\n%first = cmp eq %t, %zero : i1\n"            \
    "%at = mul %t, %four : i32\n%is_zero = cmp eq %rank, %zero : i1\n"                             \
    "%is_one = cmp eq %rank, %one : i1\n"
#define ONE_INIT          "mbarrier.init [%base], %first, (%one)\nfence.mbarrier_init\n"
#define EXPECT            "mbarrier.expect [%base], %first, (%size)\n"
#define SEND              "cp.tensor.load [%base + 1024], %first, (%m, %zero, %zero, %base, %mask) {multicast}\n"
#define WAIT              "mbarrier.wait [%base], (%zero)\n"
#define READ              "%word = ld.shared [%at + 1024] : i32\n"
#define ONLY(rank, lines) "if %is_" rank " {\n" lines "yield\n} else {\nyield\n}\n"

static void rules_of_one_load(void **state) {
    static const struct {
        const char *body, *id, *at, *other; /* id NULL: it is right */
    } cases[] = {
        /* the block that starts the load may end first */
        {ONE_INIT "cluster_barrier\n" EXPECT ONLY("zero", SEND) WAIT READ, NULL, NULL, NULL},
        {ONE_INIT "cluster_barrier\n" EXPECT ONLY("one", SEND) WAIT READ, NULL, NULL, NULL},
        {"%other = const 2 : i32\n" ONE_INIT "cluster_barrier\n" ONLY(
             "zero", "cp.tensor.load [%base + 1024], %first, (%m, %zero, %zero, %base, %other) "
                     "{multicast}\n") ONLY("one", EXPECT WAIT READ),
         NULL, NULL, NULL},
        /* the mbarrier may be invalidated behind the wait */
        {ONE_INIT "cluster_barrier\n" EXPECT ONLY("one", SEND) WAIT
         "mbarrier.invalidate [%base], %first\n",
         NULL, NULL, NULL},
        /* the announced bytes may follow the load */
        {ONE_INIT "cluster_barrier\n" ONLY("zero", SEND) EXPECT WAIT READ, NULL, NULL, NULL},
        /* a destination does not wait, or has ended before the load */
        {ONE_INIT "cluster_barrier\n" EXPECT ONLY("zero", SEND WAIT READ), "copy-not-awaited",
         "cp.tensor.load", NULL},
        {ONE_INIT "cluster_barrier\n" EXPECT ONLY("one", SEND WAIT READ), "shared-lifetime",
         "cp.tensor.load", NULL},
        /* a destination reads too early */
        {ONE_INIT "cluster_barrier\n" EXPECT ONLY("zero", SEND) READ WAIT, "copy-in-flight",
         "ld.shared", "cp.tensor.load"},
        {ONE_INIT "st.shared [%at + 1024], (%t)\ncluster_barrier\n" EXPECT ONLY("zero", SEND)
             WAIT READ,
         "missing-proxy-fence", "cp.tensor.load", "st.shared"},
        {ONE_INIT "st.shared [%at + 1024], (%t)\nfence.proxy_async shared\n"
                  "cluster_barrier\n" EXPECT ONLY("zero", SEND) WAIT READ,
         NULL, NULL, NULL},
        {"cluster_barrier\n" ONE_INIT ONLY("one", SEND) EXPECT WAIT READ, "shared-race",
         "cp.tensor.load", "mbarrier.init"},
        /* two loads into the same bytes */
        {ONE_INIT "cluster_barrier\n" EXPECT SEND WAIT READ, "copy-in-flight", "cp.tensor.load",
         "cp.tensor.load"},
        /* the read of another block is not ordered before the load */
        {ONE_INIT "st.shared [%at + 1024], (%t)\nfence.proxy_async shared\ncluster_barrier\n" ONLY(
             "zero", READ) EXPECT ONLY("one", SEND) WAIT,
         "shared-race", "cp.tensor.load", "ld.shared"},
    };
    static lilac_tensor_map map;
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        text_rig r;
        text_open(&r, ONE_HEAD, ONE_VALUES, cases[k].body, NULL);
        map = (lilac_tensor_map){.element = LILAC_TENSOR_F16,
                                 .rank = 2,
                                 .dims = {COLUMNS, TILES * ROWS},
                                 .strides = {sizeof *tensor},
                                 .box = {COLUMNS, HALF},
                                 .element_strides = {1, 1}};
        bool done = tensor_rig_run(&r, &map, (tensor_rig_memory){"tensor", tensor, sizeof tensor},
                                   (tensor_rig_memory){"out", out, sizeof out});
        if (cases[k].id) {
            expect_finding(&r, cases[k].id, cases[k].at, cases[k].other);
        } else if (!done) {
            text_fail(&r, "a trap");
        } else {
            expect_nothing(&r);
        }
        text_close(&r);
    }
}

/* ---- random boxes ---------------------------------------------------------------------------- */

enum { CASES = 300, MOST_BLOCKS = 4 };

static uint8_t memory[MEMORY], image[MOST_BLOCKS][SHARED], wanted[MOST_BLOCKS][SHARED];
static uint8_t *wanted_block;

static void load_element(const box *b, uint32_t shared, int64_t global) {
    uint32_t size = lilac_tensor_element_bytes(b->map.element);
    if (global >= 0) {
        memcpy(wanted_block + shared, memory + global, size);
    } else {
        memset(wanted_block + shared, b->map.fill ? 0xFF : 0, size);
    }
    if (global < 0 && b->map.fill) {
        wanted_block[shared + size - 1] = 0x7F;
    }
}

typedef struct multicast {
    box box;
    uint32_t blocks, sender, mask;
} multicast;

static const char *const coordinate_list[] = {"%c0", "%c0, %c1", "%c0, %c1, %c2",
                                              "%c0, %c1, %c2, %c3", "%c0, %c1, %c2, %c3, %c4"};

/* Shared memory from byte 1024 on, word by word: copied from the block's image, or back. */
static void put_copy(lilac_text *body, uint32_t back) {
    lilac_text_printf(body,
                      "loop %%i%u = %%zero to %%words step %%one {\n"
                      "%%j%u = mul %%i%u, %%warp : i32\n%%k%u = add %%j%u, %%t : i32\n"
                      "%%a%u = mul %%k%u, %%four : i32\n%%w%u = zext %%a%u : i64\n"
                      "%%p%u = add %%mine, %%w%u : i64\n",
                      back, back, back, back, back, back, back, back, back, back, back);
    lilac_text_puts(body, back ? "%read = ld.shared [%a1 + 1024] : i32\n"
                                 "st.global [%p1 + 1024], (%read)\nyield\n}\n"
                               : "%word = ld.global [%p0 + 1024] : i32\n"
                                 "st.shared [%a0 + 1024], (%word)\nyield\n}\n");
}

static void put_values(lilac_text *values, const multicast *m) {
    lilac_text_puts(values,
                    "%base = shared_base : i32\n%m = param 0 : i64\n%image = param 1 : i64\n"
                    "%t = thread : i32\n%rank = cta : i32\n%zero = const 0 : i32\n"
                    "%one = const 1 : i32\n%four = const 4 : i32\n%warp = const 32 : i32\n"
                    "%first = cmp eq %t, %zero : i1\n");
    lilac_text_printf(
        values,
        "%%bytes = const %llu : i32\n%%words = const %u : i32\n%%at = const %u : i32\n"
        "%%mask = const %u : i32\n%%sender = const %u : i32\n%%image_bytes = const %u "
        ": i32\n",
        (unsigned long long)lilac_tensor_map_bytes(&m->box.map), (SHARED - 1024) / 128, m->box.at,
        m->mask, m->sender, SHARED);
    for (uint32_t k = 0; k < m->box.map.rank; k++) {
        lilac_text_printf(values, "%%c%u = const %d : i32\n", k, (int)m->box.coordinates[k]);
    }
    lilac_text_puts(values, "%sends = cmp eq %rank, %sender : i1\n%go = and %sends, %first : i1\n"
                            "%shifted = shr_u %mask, %rank : i32\n%bit = and %shifted, %one : i32\n"
                            "%receives = cmp eq %bit, %one : i1\n"
                            "%before_me = mul %rank, %image_bytes : i32\n"
                            "%before = zext %before_me : i64\n%mine = add %image, %before : i64\n");
}

/* The image of each block goes to its shared memory, one block loads the box for those of the mask,
 * and the images are stored again. */
static void run_multicast(text_rig *r, const multicast *m) {
    static lilac_tensor_map map;
    lilac_text values = {0}, body = {0}, head = {0};
    lilac_text_printf(&head,
                      "kernel @k(%%m: i64 tensor_map, %%image: i64 ptr) warps 1 ctas %u shared %u",
                      m->blocks, SHARED);
    put_values(&values, m);
    put_copy(&body, 0);
    lilac_text_printf(&body,
                      "mbarrier.init [%%base], %%first, (%%one)\nfence.mbarrier_init\n"
                      "fence.proxy_async shared\ncluster_barrier\n"
                      "cp.tensor.load [%%at], %%go, (%%m, %s, %%base, %%mask) {multicast}\n"
                      "if %%receives {\nmbarrier.expect [%%base], %%first, (%%bytes)\n"
                      "mbarrier.wait [%%base], (%%zero)\nyield\n} else {\nyield\n}\n",
                      coordinate_list[m->box.map.rank - 1]);
    put_copy(&body, 1);
    text_open(r, lilac_text_get(&head), lilac_text_get(&values), lilac_text_get(&body), NULL);
    map = m->box.map;
    if (!tensor_rig_run(r, &map, (tensor_rig_memory){"memory", memory, sizeof memory},
                        (tensor_rig_memory){"image", image, sizeof image})) {
        text_fail(r, "a trap");
    }
    lilac_text_clear(&values);
    lilac_text_clear(&body);
    lilac_text_clear(&head);
}

static void boxes_are_those_of_the_model(void **state) {
    (void)state;
    for (uint32_t n = 0; n < CASES; n++) {
        text_rig r;
        multicast m = {.blocks = n % 2 ? 4 : 2};
        while (!choose(&m.box)) {
            continue;
        }
        m.sender = below(m.blocks);
        m.mask = 1 + below((1u << m.blocks) - 1);
        for (uint32_t k = 0; k < MEMORY; k++) {
            memory[k] = (uint8_t)below(256);
        }
        for (uint32_t block = 0; block < MOST_BLOCKS; block++) {
            for (uint32_t k = 0; k < SHARED; k++) {
                image[block][k] = wanted[block][k] = (uint8_t)below(256);
            }
            wanted_block = wanted[block];
            if (m.mask >> block & 1) {
                walk(&m.box, load_element);
            }
        }
        run_multicast(&r, &m);
        expect_nothing(&r);
        uint64_t copies = (uint64_t)__builtin_popcount(m.mask);
        assert_memory_equal(image, wanted, sizeof image);
        assert_int_equal(r.t.counters.bulk_copies, copies);
        assert_int_equal(r.t.counters.bulk_bytes, copies * lilac_tensor_map_bytes(&m.box.map));
        text_close(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipeline_is_right),          cmocka_unit_test(passes_keep_loads),
        cmocka_unit_test(mutations_are_found),          cmocka_unit_test(rules_of_one_load),
        cmocka_unit_test(boxes_are_those_of_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
