/* lower: programs in another order than that of their numbers. Each program of a kernel takes a number from a
 * counter and stores its own numbers there; one host thread of the simulator starts programs in the order of a
 * device. */
#include "support/lower_harness.h"

enum { AXES = 3, MOST_PROGRAMS = 3000, SECTION = 512 };

static const char TTIR[] =
    "module {\n"
    "  tt.func public @k(%%counter: !tt.ptr<i32>, %%o: !tt.ptr<i32>) attributes "
    "{lilac.program_order = %d : i32} {\n"
    "    %%true = arith.constant true\n    %%one = arith.constant 1 : i32\n"
    "    %%two = arith.constant 2 : i32\n    %%three = arith.constant 3 : i32\n"
    "    %%x = tt.get_program_id x : i32\n    %%y = tt.get_program_id y : i32\n"
    "    %%z = tt.get_program_id z : i32\n"
    "    %%n = tt.atomic_rmw add, acq_rel, gpu, %%counter, %%one, %%true : (!tt.ptr<i32>, i32, i1) "
    "-> i32\n"
    "    %%at = arith.muli %%n, %%three : i32\n"
    "    %%px = tt.addptr %%o, %%at : !tt.ptr<i32>, i32\n"
    "    %%py = tt.addptr %%px, %%one : !tt.ptr<i32>, i32\n"
    "    %%pz = tt.addptr %%px, %%two : !tt.ptr<i32>, i32\n"
    "    tt.store %%px, %%x : !tt.ptr<i32>\n    tt.store %%py, %%y : !tt.ptr<i32>\n"
    "    tt.store %%pz, %%z : !tt.ptr<i32>\n    tt.return\n  }\n}\n";

/* The order, by counting: sections of 2^s lines of programs, in which the sorted axis is outside. */
static void expect(int32_t order, const uint32_t grid[AXES], int32_t *numbers) {
    const uint32_t sorted = (uint32_t)abs(order) - 1, inner = sorted == 0 ? 1 : 0,
                   outer = AXES - sorted - inner;
    const uint32_t n = grid[sorted], lines = grid[inner] * grid[outer];
    uint32_t width = 1;
    while (width * n < SECTION) {
        width *= 2;
    }
    for (uint32_t first = 0; first < lines; first += width) {
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t line = first; line < lines && line < first + width; line++) {
                numbers[sorted] = (int32_t)(order > 0 ? i : n - 1 - i);
                numbers[inner] = (int32_t)(line % grid[inner]);
                numbers[outer] = (int32_t)(line / grid[inner]);
                numbers += AXES;
            }
        }
    }
}

static void run(harness *h, const uint32_t grid[AXES], int32_t *numbers) {
    int32_t counter = 0;
    lilac_sim_buffer places[2] = {
        {.name = "counter", .bytes = (uint8_t *)&counter, .size = sizeof counter},
        {.name = "numbers",
         .bytes = (uint8_t *)numbers,
         .size = MOST_PROGRAMS * AXES * sizeof *numbers}};
    lilac_sim_place(places, 2);
    const uint64_t arguments[2] = {places[0].address, places[1].address};
    const lilac_sim_launch launch = {.kernel = h->simt->kernels,
                                     .grid = {grid[0], grid[1], grid[2]},
                                     .arguments = arguments,
                                     .argument_count = 2,
                                     .buffers = places,
                                     .buffer_count = 2,
                                     .threads = 1};
    if (!lilac_sim_run(h->context, &launch, &h->counters)) {
        print_diagnostics(h->context);
        fail_msg("the kernel trapped");
    }
    assert_int_equal(counter, grid[0] * grid[1] * grid[2]);
}

static void try_grid(harness *h, int32_t order, const uint32_t grid[AXES]) {
    static int32_t wanted[MOST_PROGRAMS * AXES], got[MOST_PROGRAMS * AXES];
    const size_t size = AXES * sizeof *got * grid[0] * grid[1] * grid[2];
    expect(order, grid, wanted);
    run(h, grid, got);
    if (memcmp(got, wanted, size) != 0) {
        fail_msg("order %d of %u x %u x %u programs", order, grid[0], grid[1], grid[2]);
    }
}

static void orders(void **state) {
    (void)state;
    static const uint32_t edges[][AXES] = {
        {1, 1, 1},    {1, 7, 9},   {512, 2, 1}, {513, 1, 3}, {511, 3, 1},  {256, 5, 2}, {257, 2, 4},
        {1025, 2, 1}, {16, 32, 1}, {16, 33, 1}, {16, 31, 2}, {2047, 1, 1}, {32, 16, 4}};
    lilac_random random;
    lilac_random_seed(&random, 4);
    for (int32_t order = -AXES; order <= AXES; order++) {
        char text[sizeof TTIR + 16];
        harness h;
        if (order == 0) {
            continue;
        }
        (void)snprintf(text, sizeof text, TTIR, order);
        harness_open(&h, text, 1, true);
        const uint32_t sorted = (uint32_t)abs(order) - 1;
        for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
            const uint32_t *of = edges[i];
            uint32_t grid[AXES];
            for (uint32_t axis = 0; axis < AXES; axis++) {
                grid[(sorted + axis) % AXES] = of[axis];
            }
            try_grid(&h, order, grid);
        }
        for (uint32_t i = 0; i < scaled(10); i++) {
            const uint32_t x = 1 + (uint32_t)lilac_random_below(&random, 50),
                           y = 1 + (uint32_t)lilac_random_below(&random, MOST_PROGRAMS / x),
                           z = 1 + (uint32_t)lilac_random_below(&random, MOST_PROGRAMS / (x * y));
            try_grid(&h, order, (const uint32_t[]){x, y, z});
        }
        harness_close(&h);
    }
}

/* Without the attribute, and with no order, programs have the numbers of the device. */
static void no_order(void **state) {
    (void)state;
    static int32_t numbers[MOST_PROGRAMS * AXES];
    char text[sizeof TTIR + 16];
    harness h;
    (void)snprintf(text, sizeof text, TTIR, 0);
    harness_open(&h, text, 1, true);
    run(&h, (const uint32_t[]){5, 4, 3}, numbers);
    for (int32_t i = 0; i < 60; i++) {
        assert_int_equal(numbers[AXES * i], i % 5);
        assert_int_equal(numbers[AXES * i + 1], i / 5 % 4);
        assert_int_equal(numbers[AXES * i + 2], i / 20);
    }
    assert_int_equal(count_text(lilac_text_get(&h.text), "div_u"), 0);
    harness_close(&h);
}

static void invalid_orders(void **state) {
    (void)state;
    static const int32_t wrong[] = {-4, 4, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[sizeof TTIR + 16];
        harness h;
        (void)snprintf(text, sizeof text, TTIR, wrong[i]);
        assert_false(harness_try(&h, text, 1, true, NULL));
        assert_string_equal(lilac_diagnostics(h.context)->id, "unsupported-operation");
        harness_close(&h);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders),
        cmocka_unit_test(no_order),
        cmocka_unit_test(invalid_orders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
