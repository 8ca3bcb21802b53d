/* skip_masks: a loop whose tiles are masked leaves the same bytes on the simulator as without the pass,
 * and tiles are masked only where the mask is not true for all elements. A row is row0 + 0 … 63, a column
 * of tile i is column0 + 64 i + 0 … 63, both as numbers of 32 bits: tiles are inside, outside, on the
 * diagonal, at a ragged edge, and where sums wrap. */
#include "support/test.h"

#include <lilac/driver.h>
#include <lilac/sim.h>

#include <math.h>

enum { SIDE = 64, TILE = SIDE * SIDE, MOST_TILES = 4, CASES = 240, SELECTS = TILE / 32 };

/* The operations on %row, %column (64 × 1, 1 × 64, and 64 × 64 as %rows, %columns) and the scalars %n, %far
 * that make the mask %mask. */
typedef struct mask {
    const char *text;
    uint32_t conditions; /* 0: the pass must leave the loop alone */
    struct condition {
        char larger, smaller; /* as in number_of */
        bool strict;
    } condition[4];
} mask;

#define WIDE "tensor<64x64xi32>"

static const mask masks[] = {
    {"%mask = arith.cmpi sge, %rows, %columns : " WIDE "\n", 1, {{'r', 'c', false}}},
    {"%mask = arith.cmpi sgt, %rows, %columns : " WIDE "\n", 1, {{'r', 'c', true}}},
    {"%mask = arith.cmpi sle, %columns, %rows : " WIDE "\n", 1, {{'r', 'c', false}}},
    {"%mask = arith.cmpi slt, %columns, %rows : " WIDE "\n", 1, {{'r', 'c', true}}},
    /* the other way round, and constants in sums */
    {"%mask = arith.cmpi sge, %columns, %shifted : " WIDE "\n", 1, {{'c', 's', false}}},
    {"%mask = arith.cmpi sle, %rows, %farther : " WIDE "\n", 1, {{'f', 'r', false}}},
    /* sums that wrap below, and sums of two scalars */
    {"%mask = arith.cmpi sge, %rows, %nearer : " WIDE "\n", 1, {{'r', 'e', false}}},
    {"%mask = arith.cmpi slt, %columns, %both : " WIDE "\n", 1, {{'b', 'c', true}}},
    /* a length: the mask of columns is broadcast */
    {"%mask0 = arith.cmpi slt, %column, %n1 : tensor<1x64xi32>\n"
     "%mask = tt.broadcast %mask0 : tensor<1x64xi1> -> tensor<64x64xi1>\n",
     1,
     {{'n', 'c', true}}},
    /* conjunctions */
    {"%mask0 = arith.cmpi slt, %columns, %n2 : " WIDE "\n"
     "%mask1 = arith.cmpi sge, %rows, %columns : " WIDE "\n"
     "%mask = arith.andi %mask0, %mask1 : tensor<64x64xi1>\n",
     2,
     {{'n', 'c', true}, {'r', 'c', false}}},
    {"%mask0 = arith.cmpi slt, %column, %n1 : tensor<1x64xi32>\n"
     "%mask1 = tt.broadcast %mask0 : tensor<1x64xi1> -> tensor<64x64xi1>\n"
     "%mask2 = arith.cmpi sge, %rows, %columns : " WIDE "\n"
     "%mask3 = arith.cmpi sgt, %farther, %rows : " WIDE "\n"
     "%mask4 = arith.andi %mask2, %mask3 : tensor<64x64xi1>\n"
     "%mask = arith.andi %mask1, %mask4 : tensor<64x64xi1>\n",
     3,
     {{'n', 'c', true}, {'r', 'c', false}, {'f', 'r', true}}},
    {"%mask0 = arith.cmpi slt, %columns, %n2 : " WIDE "\n"
     "%mask1 = arith.cmpi sge, %rows, %columns : " WIDE "\n"
     "%mask2 = arith.cmpi sgt, %farther, %rows : " WIDE "\n"
     "%mask3 = arith.cmpi sle, %rows, %n2 : " WIDE "\n"
     "%mask4 = arith.andi %mask0, %mask1 : tensor<64x64xi1>\n"
     "%mask5 = arith.andi %mask2, %mask3 : tensor<64x64xi1>\n"
     "%mask = arith.andi %mask4, %mask5 : tensor<64x64xi1>\n",
     4,
     {{'n', 'c', true}, {'r', 'c', false}, {'f', 'r', true}, {'n', 'r', false}}},
    /* more conditions than it reads */
    {"%mask0 = arith.cmpi slt, %columns, %n2 : " WIDE "\n"
     "%mask1 = arith.cmpi sge, %rows, %columns : " WIDE "\n"
     "%mask2 = arith.cmpi sgt, %farther, %rows : " WIDE "\n"
     "%mask3 = arith.cmpi sle, %rows, %n2 : " WIDE "\n"
     "%mask4 = arith.cmpi sgt, %shifted, %columns : " WIDE "\n"
     "%mask5 = arith.andi %mask0, %mask1 : tensor<64x64xi1>\n"
     "%mask6 = arith.andi %mask2, %mask3 : tensor<64x64xi1>\n"
     "%mask7 = arith.andi %mask5, %mask6 : tensor<64x64xi1>\n"
     "%mask = arith.andi %mask7, %mask4 : tensor<64x64xi1>\n",
     0,
     {{0}}},
    /* no order of signed numbers of 32 bits, no conjunction, no sums */
    {"%mask = arith.cmpi ne, %rows, %columns : " WIDE "\n", 0, {{0}}},
    {"%mask = arith.cmpi uge, %rows, %columns : " WIDE "\n", 0, {{0}}},
    {"%mask0 = arith.cmpi slt, %columns, %n2 : " WIDE "\n"
     "%mask1 = arith.cmpi sge, %rows, %columns : " WIDE "\n"
     "%mask = arith.ori %mask0, %mask1 : tensor<64x64xi1>\n",
     0,
     {{0}}},
    {"%mask0 = arith.cmpi slt, %columns, %n2 : " WIDE "\n"
     "%mask1 = arith.cmpi ne, %rows, %columns : " WIDE "\n"
     "%mask = arith.andi %mask0, %mask1 : tensor<64x64xi1>\n",
     0,
     {{0}}},
    {"%wide0 = arith.extsi %rows : " WIDE " to tensor<64x64xi64>\n"
     "%wide1 = arith.extui %columns : " WIDE " to tensor<64x64xi64>\n"
     "%mask = arith.cmpi sge, %wide0, %wide1 : tensor<64x64xi64>\n",
     0,
     {{0}}},
    {"%product = arith.muli %rows, %n2 : " WIDE "\n"
     "%mask = arith.cmpi sge, %product, %columns : " WIDE "\n",
     0,
     {{0}}},
};
enum { MASKS = sizeof masks / sizeof *masks };

/* What is masked. */
typedef enum form {
    PLAIN,
    EXCHANGED,  /* elements for which the mask is true are replaced */
    COMPUTED,   /* so are the others, by what the iteration computes */
    PARTS,      /* the others are one of two results, and the other one has another use */
    SHARED,     /* the mask has another use */
    FACTOR,     /* elements times 2, whose maximum is subtracted: the factor leaves the branch */
    NEGATIVE,   /* the same times -2: it does not */
    SCALAR,     /* the same times a parameter: if it is positive and finite */
    CARRIED,    /* the loop carries the sum of the tiles */
    NO_PRODUCT, /* the loop has none */
    FORMS
} form;

typedef struct loop_case {
    const mask *mask;
    form form;
    const char *device; /* NULL: sm_90a */
    bool one_warp;      /* a thread has 128 elements of a tile */
    uint32_t tiles;
    int32_t row0, column0, n;
    float scale; /* SCALAR */
} loop_case;

static bool has_factor(form f) {
    return f == FACTOR || f == NEGATIVE || f == SCALAR;
}

/* ---- the text -------------------------------------------------------------------------------- */

static void put_case(lilac_text *t, const loop_case *c) {
    lilac_text_puts(
        t, "module {\ntt.func public @k(%q_at: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %k_at: "
           "!tt.ptr<f16> {tt.divisibility = 16 : i32}, %o_at: !tt.ptr<f32> {tt.divisibility = 16 : "
           "i32}, %row0: i32, %column0: i32, %n: i32, %tiles: i32, %scale: f32) {\n"
           "%c0 = arith.constant 0 : i32\n%c1 = arith.constant 1 : i32\n"
           "%c64 = arith.constant 64 : i32\n%tile = arith.constant 4096 : i32\n"
           "%zero = arith.constant dense<0.0> : tensor<64x64xf32>\n"
           "%low = arith.constant dense<-1.0e30> : tensor<64x64xf32>\n"
           "%five = arith.constant dense<5> : tensor<64x64xi32>\n"
           "%hundred = arith.constant dense<100> : tensor<64x64xi32>\n"
           "%less = arith.constant dense<-100> : tensor<64x64xi32>\n"
           "%lines = arith.constant dense<64> : tensor<64x1xi32>\n"
           "%r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>\n"
           "%rx = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>\n"
           "%ry = tt.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>\n"
           "%x0 = arith.muli %rx, %lines : tensor<64x1xi32>\n"
           "%x = tt.broadcast %x0 : tensor<64x1xi32> -> tensor<64x64xi32>\n"
           "%y = tt.broadcast %ry : tensor<1x64xi32> -> tensor<64x64xi32>\n"
           "%offsets = arith.addi %x, %y : tensor<64x64xi32>\n"
           "%qs = tt.splat %q_at : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>\n"
           "%qq = tt.addptr %qs, %offsets : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>\n"
           "%q = tt.load %qq : tensor<64x64x!tt.ptr<f16>>\n"
           "%row1 = tt.splat %row0 : i32 -> tensor<64xi32>\n"
           "%row2 = arith.addi %row1, %r : tensor<64xi32>\n"
           "%row = tt.expand_dims %row2 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>\n"
           "%n1 = tt.splat %n : i32 -> tensor<1x64xi32>\n"
           "%n2 = tt.splat %n : i32 -> tensor<64x64xi32>\n");
    lilac_text_puts(t, c->form == SCALAR ? "%factor = tt.splat %scale : f32 -> tensor<64x64xf32>\n"
                       : c->form == NEGATIVE
                           ? "%factor = arith.constant dense<-2.0> : tensor<64x64xf32>\n"
                           : "%factor = arith.constant dense<2.0> : tensor<64x64xf32>\n");
    lilac_text_printf(t, "%sscf.for %%i = %%c0 to %%tiles step %%c1%s : i32 {\n",
                      c->form == CARRIED ? "%all = " : "",
                      c->form == CARRIED ? " iter_args(%sum = %zero) -> (tensor<64x64xf32>)" : "");
    lilac_text_puts(
        t, "%at = arith.muli %i, %tile : i32\n"
           "%k_i = tt.addptr %k_at, %at : !tt.ptr<f16>, i32\n"
           "%ks = tt.splat %k_i : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>\n"
           "%kq = tt.addptr %ks, %offsets : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>\n"
           "%k = tt.load %kq : tensor<64x64x!tt.ptr<f16>>\n");
    lilac_text_puts(t, c->form == NO_PRODUCT
                           ? "%s = arith.extf %k : tensor<64x64xf16> to tensor<64x64xf32>\n"
                           : "%s = tt.dot %q, %k, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> "
                             "tensor<64x64xf32>\n");
    lilac_text_puts(
        t, "%first = arith.muli %i, %c64 : i32\n%column1 = arith.addi %column0, %first : i32\n"
           "%column2 = tt.splat %column1 : i32 -> tensor<1x64xi32>\n"
           "%column = arith.addi %column2, %ry : tensor<1x64xi32>\n"
           "%columns = tt.broadcast %column : tensor<1x64xi32> -> tensor<64x64xi32>\n"
           "%rows = tt.broadcast %row : tensor<64x1xi32> -> tensor<64x64xi32>\n"
           "%shifted = arith.addi %rows, %five : tensor<64x64xi32>\n"
           "%farther = arith.addi %hundred, %columns : tensor<64x64xi32>\n"
           "%nearer = arith.addi %columns, %less : tensor<64x64xi32>\n"
           "%both = arith.addi %n2, %rows : tensor<64x64xi32>\n");
    lilac_text_puts(t, c->mask->text);
    lilac_text_puts(
        t, c->form == PARTS
               ? "%twice = arith.addf %s, %s : tensor<64x64xf32>\n"
                 "%joined = tt.join %twice, %low : tensor<64x64xf32> -> tensor<64x64x2xf32>\n"
                 "%sums = arith.addf %joined, %joined : tensor<64x64x2xf32>\n"
                 "%other, %rest = tt.split %sums : tensor<64x64x2xf32> -> tensor<64x64xf32>\n"
                 "%e0 = arith.select %mask, %s, %other : tensor<64x64xi1>, "
                 "tensor<64x64xf32>\n"
           : c->form == COMPUTED  ? "%other = arith.addf %s, %low : tensor<64x64xf32>\n"
                                    "%e0 = arith.select %mask, %s, %other : tensor<64x64xi1>, "
                                    "tensor<64x64xf32>\n"
           : c->form == EXCHANGED ? "%e0 = arith.select %mask, %low, %s : tensor<64x64xi1>, "
                                    "tensor<64x64xf32>\n"
           : has_factor(c->form)
               ? "%scaled = arith.mulf %s, %factor : tensor<64x64xf32>\n"
                 "%e0 = arith.select %mask, %scaled, %low : tensor<64x64xi1>, tensor<64x64xf32>\n"
               : "%e0 = arith.select %mask, %s, %low : tensor<64x64xi1>, "
                 "tensor<64x64xf32>\n");
    lilac_text_puts(t, c->form == SHARED
                           ? "%m0 = arith.extui %mask : tensor<64x64xi1> to tensor<64x64xi32>\n"
                             "%m1 = arith.sitofp %m0 : tensor<64x64xi32> to tensor<64x64xf32>\n"
                             "%e = arith.addf %e0, %m1 : tensor<64x64xf32>\n"
                       : has_factor(c->form)
                           ? "%h = \"tt.reduce\"(%e0) <{axis = 1 : i32}> ({\n"
                             "^bb0(%h_a: f32, %h_b: f32):\n"
                             "%h_c = arith.maxnumf %h_a, %h_b : f32\n"
                             "tt.reduce.return %h_c : f32\n"
                             "}) : (tensor<64x64xf32>) -> tensor<64xf32>\n"
                             "%h0 = tt.expand_dims %h {axis = 1 : i32} : tensor<64xf32> -> "
                             "tensor<64x1xf32>\n"
                             "%h1 = tt.broadcast %h0 : tensor<64x1xf32> -> tensor<64x64xf32>\n"
                             "%e = arith.subf %e0, %h1 : tensor<64x64xf32>\n"
                       : c->form == PARTS   ? "%e = arith.addf %e0, %rest : tensor<64x64xf32>\n"
                       : c->form == CARRIED ? "%e = arith.addf %e0, %sum : tensor<64x64xf32>\n"
                                            : "%e = arith.addf %e0, %zero : tensor<64x64xf32>\n");
    lilac_text_puts(
        t, "%o_i = tt.addptr %o_at, %at : !tt.ptr<f32>, i32\n"
           "%os = tt.splat %o_i : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>\n"
           "%oq = tt.addptr %os, %offsets : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>\n"
           "tt.store %oq, %e : tensor<64x64x!tt.ptr<f32>>\n");
    lilac_text_puts(t, c->form == CARRIED ? "scf.yield %e : tensor<64x64xf32>\n" : "");
    lilac_text_puts(t, "}\ntt.return\n}\n}\n");
}

/* ---- what the loop should do ----------------------------------------------------------------- */

/* The number before it wraps. */
static int64_t number_of(const loop_case *c, char name, int32_t tile, int32_t row, int32_t column) {
    const int64_t x = (int64_t)c->row0 + row;
    /* the scalar in front of the range is computed in the kernel, and wraps there */
    const int64_t y = (int32_t)((uint32_t)c->column0 + (uint32_t)(SIDE * tile)) + (int64_t)column;
    switch (name) {
    case 'r':
        return x;
    case 's':
        return x + 5;
    case 'b':
        return x + c->n;
    case 'c':
        return y;
    case 'f':
        return y + 100;
    case 'e':
        return y - 100;
    default:
        return c->n;
    }
}

/* Is the mask true for the whole tile, wraps nothing, and may the factor leave? */
static bool is_inside(const loop_case *c, int32_t tile) {
    bool inside = c->form != SCALAR || (c->scale > 0.0F && c->scale < INFINITY);
    for (uint32_t k = 0; k < c->mask->conditions; k++) {
        for (int32_t i = 0; i < TILE; i++) {
            const int64_t a = number_of(c, c->mask->condition[k].larger, tile, i / SIDE, i % SIDE);
            const int64_t b = number_of(c, c->mask->condition[k].smaller, tile, i / SIDE, i % SIDE);
            inside &=
                (c->mask->condition[k].strict ? a > b : a >= b) && a <= INT32_MAX && b >= INT32_MIN;
        }
    }
    return inside;
}

/* ---- running --------------------------------------------------------------------------------- */

static uint16_t operands[2][MOST_TILES * TILE];
static uint32_t results[2][MOST_TILES * TILE];

static void count_branches(void *data, lilac_tile_op *op) {
    *(uint32_t *)data += op->code == LILAC_TILE_OP_SCF_IF;
}

/* Compiles without the pass or with it and runs it. The selects that it executes. */
static uint64_t execute(const loop_case *c, const char *text, bool skip, uint32_t *branches) {
    lilac_context *context = lilac_context_create();
    lilac_compilation made;
    lilac_options options;
    lilac_options_init(&options);
    options.target =
        (lilac_target){.arch = lilac_arch_find(c->device != NULL ? c->device : "sm_90a"),
                       .num_warps = c->one_warp ? 1 : 4,
                       .num_ctas = 1,
                       .num_stages = 2};
    options.verify = true;
    options.skip = skip ? NULL : "skip_masks";
    options.stop_at = LILAC_STAGE_SIMT;
    if (!lilac_compile(&made, context, lilac_source_add(context, "k.ttir", text, strlen(text)),
                       &options)) {
        fputs(text, stderr);
        fail_with_diagnostics(context, "the kernel was refused");
    }
    *branches = 0;
    lilac_tile_walk(made.tile->functions->body, count_branches, branches);
    memset(results[skip], 0x5A, sizeof results[skip]);
    lilac_sim_buffer places[3] = {
        {.name = "q", .bytes = (uint8_t *)operands[0], .size = sizeof operands[0]},
        {.name = "k", .bytes = (uint8_t *)operands[1], .size = sizeof operands[1]},
        {.name = "o", .bytes = (uint8_t *)results[skip], .size = sizeof results[skip]}};
    lilac_sim_place(places, 3);
    uint32_t scale;
    memcpy(&scale, &c->scale, sizeof scale);
    const uint64_t arguments[8] = {
        places[0].address,    places[1].address, places[2].address, (uint32_t)c->row0,
        (uint32_t)c->column0, (uint32_t)c->n,    c->tiles,          scale};
    const lilac_sim_launch launch = {.kernel = made.simt->kernels,
                                     .grid = {1, 1, 1},
                                     .arguments = arguments,
                                     .argument_count = 8,
                                     .buffers = places,
                                     .buffer_count = 3,
                                     .threads = 1,
                                     .instruction_limit = 1 << 24};
    lilac_sim_counters counters;
    if (!lilac_sim_run(context, &launch, &counters) || lilac_diagnostics(context) != NULL) {
        fputs(text, stderr);
        fail_with_diagnostics(context, "findings");
    }
    lilac_compilation_clear(&made);
    lilac_context_destroy(context);
    return counters.selects;
}

/* The tiles that are not masked. */
static uint32_t try_case(const loop_case *c) {
    lilac_text text = {0};
    uint32_t branches[2], inside = 0;
    put_case(&text, c);
    const uint64_t all = execute(c, lilac_text_get(&text), false, &branches[0]);
    const uint64_t some = execute(c, lilac_text_get(&text), true, &branches[1]);
    const bool changes = c->mask->conditions > 0 && c->form != NO_PRODUCT;
    for (uint32_t i = 0; changes && i < c->tiles; i++) {
        inside += is_inside(c, (int32_t)i);
    }
    if (branches[1] != branches[0] + changes ||
        memcmp(results[0], results[1], sizeof results[0]) != 0 ||
        all != some + (uint64_t)inside * SELECTS) {
        fputs(lilac_text_get(&text), stderr);
        fail_msg("rows from %d, columns from %d, n %d, %u tiles: %u of %u branches, %llu of %llu "
                 "selects, %u inside, results %s",
                 c->row0, c->column0, c->n, c->tiles, branches[1], branches[0],
                 (unsigned long long)some, (unsigned long long)all, inside,
                 memcmp(results[0], results[1], sizeof results[0]) == 0 ? "equal" : "differ");
    }
    lilac_text_clear(&text);
    return inside;
}

static void fill_operands(void) {
    lilac_random random;
    lilac_random_seed(&random, 5);
    for (uint32_t i = 0; i < 2; i++) {
        for (uint32_t k = 0; k < MOST_TILES * TILE; k++) {
            const double value = (double)lilac_random_below(&random, 4001) / 1000.0 - 2.0;
            operands[i][k] =
                (uint16_t)lilac_scalar_encode(LILAC_F16, value, LILAC_ROUND_NEAREST_EVEN, true);
        }
    }
}

/* Near each other, so that edges are in tiles. */
static int32_t near(lilac_random *random, int32_t place, uint32_t spread) {
    const int64_t sum = (int64_t)place + (int64_t)lilac_random_below(random, spread) - spread / 2;
    return sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : (int32_t)sum;
}

static void random_tiles(void **state) {
    (void)state;
    /* Powers of two, whose products are exact: a fused multiply-add gives the same bits. */
    static const float scales[] = {2.0F, 0.25F, 1.0F,     16.0F, 0x1p-100F,
                                   0.0F, -0.0F, INFINITY, -2.0F, NAN};
    static const int32_t places[] = {0, 0, 0, 1000, -70, INT32_MAX - 100, INT32_MIN + 100};
    lilac_random random;
    uint32_t inside = 0, tiles = 0;
    lilac_random_seed(&random, 7);
    fill_operands();
    for (uint32_t i = 0; i < scaled(CASES); i++) {
        const int32_t place = places[lilac_random_below(&random, 7)];
        const loop_case c = {.mask = &masks[i % MASKS],
                             .form = (form)lilac_random_below(&random, NO_PRODUCT),
                             .device = lilac_random_below(&random, 3) == 0 ? "sm_80" : NULL,
                             .one_warp = lilac_random_below(&random, 4) == 0,
                             .tiles = (uint32_t)lilac_random_below(&random, MOST_TILES + 1),
                             .row0 = near(&random, place, 400),
                             .column0 = near(&random, place, 400),
                             .n = near(&random, place, 600),
                             .scale = scales[lilac_random_below(&random, 10)]};
        inside += try_case(&c);
        tiles += c.tiles;
    }
    print_message("%u of %u tiles inside\n", inside, tiles);
    assert_true(inside > tiles / 10 && inside < tiles / 2);
}

/* The first and the last place at which a tile is inside, and those next to them. */
static void edges(void **state) {
    (void)state;
    fill_operands();
    const loop_case c = {.mask = &masks[0], .tiles = 3, .row0 = 127, .n = 0};
    loop_case d = c;
    assert_int_equal(try_case(&d), 2); /* columns to 127 */
    d.row0--;
    assert_int_equal(try_case(&d), 1);
    d.mask = &masks[1]; /* strict */
    d.row0 += 2;
    assert_int_equal(try_case(&d), 2);
    d.row0--;
    assert_int_equal(try_case(&d), 1);
    d.mask = &masks[8]; /* a length */
    d.n = 128;
    assert_int_equal(try_case(&d), 2);
    d.n--; /* the last column is ragged */
    assert_int_equal(try_case(&d), 1);
    d.n = 0; /* all outside */
    assert_int_equal(try_case(&d), 0);
    /* the last rows that are numbers, and rows that wrap */
    d = (loop_case){.mask = &masks[0], .tiles = 1, .row0 = INT32_MAX - 63};
    assert_int_equal(try_case(&d), 1);
    d.row0++;
    assert_int_equal(try_case(&d), 0);
    d = (loop_case){.mask = &masks[0], .tiles = 1, .row0 = 0, .column0 = INT32_MIN};
    assert_int_equal(try_case(&d), 1);
    d.column0 = INT32_MAX - 62; /* the last column wraps */
    d.row0 = INT32_MAX - 63;
    assert_int_equal(try_case(&d), 0);
    d.mask = &masks[4]; /* row + 5 is far below */
    d.row0 = INT32_MIN;
    d.column0 = 0;
    assert_int_equal(try_case(&d), 1);
    d.mask = &masks[6]; /* column - 100 */
    d.row0 = 0;
    d.column0 = INT32_MIN + 100;
    assert_int_equal(try_case(&d), 1);
    d.column0--;
    assert_int_equal(try_case(&d), 0);
    d.mask = &masks[7]; /* row + n */
    d.column0 = 0;
    d.row0 = d.n = INT32_MAX / 2 - 31;
    assert_int_equal(try_case(&d), 1);
    d.n += 2;
    assert_int_equal(try_case(&d), 0);
}

static void refusals(void **state) {
    (void)state;
    fill_operands();
    for (uint32_t m = 0; m < MASKS; m++) {
        const loop_case c = {
            .mask = &masks[m], .form = NO_PRODUCT, .tiles = 2, .row0 = 100, .n = 1000};
        assert_int_equal(try_case(&c), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_tiles),
        cmocka_unit_test(edges),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
