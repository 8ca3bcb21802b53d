/* lower: atomic operations, compared with the same operations executed in order on lists. */
#include "support/lower_harness.h"

#include <lilac/ptx.h>

/* ---- reference --------------------------------------------------------------------------- */

static int64_t sign_extend(uint64_t bits, uint32_t width) {
    return (int64_t)(bits << (64 - width)) >> (64 - width);
}

static uint64_t combine(const char *how, lilac_scalar scalar, uint64_t old, uint64_t value) {
    uint32_t width = lilac_scalar_bits(scalar);
    int64_t a = sign_extend(old, width), b = sign_extend(value, width);
    uint64_t mask = width == 64 ? ~0ULL : (1ULL << width) - 1;
    if (strcmp(how, "fadd") == 0) {
        double sum = lilac_scalar_decode(scalar, old) + lilac_scalar_decode(scalar, value);
        return lilac_scalar_encode(scalar, sum, LILAC_ROUND_NEAREST_EVEN, false);
    }
    return (strcmp(how, "and") == 0    ? old & value
            : strcmp(how, "or") == 0   ? old | value
            : strcmp(how, "xor") == 0  ? old ^ value
            : strcmp(how, "add") == 0  ? old + value
            : strcmp(how, "max") == 0  ? (a > b ? old : value)
            : strcmp(how, "min") == 0  ? (a < b ? old : value)
            : strcmp(how, "umax") == 0 ? (old > value ? old : value)
            : strcmp(how, "umin") == 0 ? (old < value ? old : value)
                                       : value) &
           mask;
}

/* ---- PTX --------------------------------------------------------------------------------- */

static void write_ptx(harness *h, lilac_text *out) {
    lilac_ptx_options options = {0};
    lilac_text_reset(out);
    if (!lilac_ptx_write(out, h->simt, &options)) {
        print_diagnostics(h->context);
        fail_msg("no PTX");
    }
}

/* ---- tensors ----------------------------------------------------------------------------- */

/* o[i] = what x[i % period] was before v[i] was combined with it, for i < n. */
static void tensor_kernel(lilac_text *out, const char *how, const char *type, const char *layout,
                          uint32_t size, uint32_t period, bool wanted, const char *order) {
    lilac_text_reset(out);
    lilac_text_printf(
        out,
        "module {\n  tt.func public @k(%%x: !tt.ptr<%s> {tt.divisibility = 16 : i32}, "
        "%%v: !tt.ptr<%s> {tt.divisibility = 16 : i32}, "
        "%%o: !tt.ptr<%s> {tt.divisibility = 16 : i32}, %%n: i32 {tt.divisibility = 16 : i32}) {\n"
        "    %%i = tt.make_range {end = %u : i32, start = 0 : i32} : tensor<%uxi32%s>\n"
        "    %%p = arith.constant dense<%u> : tensor<%uxi32%s>\n"
        "    %%sn = tt.splat %%n : i32 -> tensor<%uxi32%s>\n"
        "    %%in = arith.cmpi slt, %%i, %%sn : tensor<%uxi32%s>\n"
        "    %%j = arith.remui %%i, %%p : tensor<%uxi32%s>\n",
        type, type, type, size, size, layout, period, size, layout, size, layout, size, layout,
        size, layout);
    const char *names[] = {"x", "v", "o"}, *indices[] = {period < size ? "j" : "i", "i", "i"};
    for (uint32_t k = 0; k < 3; k++) {
        lilac_text_printf(
            out,
            "    %%s%s = tt.splat %%%s : !tt.ptr<%s> -> tensor<%ux!tt.ptr<%s>%s>\n"
            "    %%p%s = tt.addptr %%s%s, %%%s : tensor<%ux!tt.ptr<%s>%s>, tensor<%uxi32%s>\n",
            names[k], names[k], type, size, type, layout, names[k], names[k], indices[k], size,
            type, layout, size, layout);
    }
    lilac_text_printf(out,
                      "    %%w = tt.load %%pv : tensor<%ux!tt.ptr<%s>%s>\n"
                      "    %%r = tt.atomic_rmw %s, %s, gpu, %%px, %%w, %%in : "
                      "(tensor<%ux!tt.ptr<%s>%s>, tensor<%ux%s%s>, tensor<%uxi1%s>) -> "
                      "tensor<%ux%s%s>\n",
                      size, type, layout, how, order, size, type, layout, size, type, layout, size,
                      layout, size, type, layout);
    if (wanted) { /* and every thread has right what is stored */
        lilac_text_printf(
            out,
            "    tt.store %%po, %%r, %%in : tensor<%ux!tt.ptr<%s>%s>\n    gpu.barrier\n"
            "    %%again = tt.load %%po : tensor<%ux!tt.ptr<%s>%s>\n"
            "    %%same = arith.cmp%seq, %%again, %%r : tensor<%ux%s%s>\n"
            "    tt.assert %%same, \"a copy is wrong\" : tensor<%uxi1%s>\n",
            size, type, layout, size, type, layout, type[0] == 'i' ? "i " : "f o", size, type,
            layout, size, layout);
    }
    lilac_text_puts(out, "    tt.return\n  }\n}\n");
}

static const struct kind_row {
    const char *how;
    lilac_scalar types[5];
    uint32_t count;
} kinds[] = {
    {"and", {LILAC_I32, LILAC_I64, LILAC_F32, LILAC_F64}, 4},
    {"or", {LILAC_I32, LILAC_I64}, 2},
    {"xor", {LILAC_I32, LILAC_I64}, 2},
    {"add", {LILAC_I32, LILAC_I64}, 2},
    {"max", {LILAC_I32, LILAC_I64}, 2},
    {"min", {LILAC_I32, LILAC_I64}, 2},
    {"umax", {LILAC_I32, LILAC_I64}, 2},
    {"umin", {LILAC_I32, LILAC_I64}, 2},
    {"exch", {LILAC_I32, LILAC_I64, LILAC_F32, LILAC_F64}, 4},
    {"fadd", {LILAC_F16, LILAC_BF16, LILAC_F32, LILAC_F64}, 4},
};

/* Opens a kernel for a device. */
static void open_on(harness *h, const lilac_arch *device, const char *ttir, uint32_t warps,
                    bool engine) {
    if (!harness_try(h, ttir, warps, engine, device->name)) {
        print_message("%s\n", ttir);
        print_diagnostics(h->context);
        fail_msg("the kernel was refused for %s", device->name);
    }
}

/* The devices in order; of `lanes` in a warp, unless that is 0. NULL past the end. */
static const lilac_arch *next_device(size_t *at, uint32_t lanes) {
    const lilac_arch *device;
    while ((device = lilac_arch_at((*at)++)) != NULL) {
        if (lanes == 0 || device->warp_size == lanes) {
            return device;
        }
    }
    return NULL;
}

/* Does the device add bf16 by compare-and-swap? */
static bool swaps_bf16(const lilac_arch *device, const char *how, lilac_scalar scalar) {
    return scalar == LILAC_BF16 && strcmp(how, "fadd") == 0 &&
           !lilac_arch_has(device, LILAC_HAS_BF16_ATOMICS);
}

/* Each element has a place of its own, so that the order does not matter. */
static void check_tensor(const lilac_arch *device, const char *how, lilac_scalar scalar,
                         const char *layout, uint32_t size, uint32_t warps, uint32_t n,
                         bool wanted) {
    lilac_text text = {0}, ptx = {0};
    tensor_kernel(&text, how, lilac_scalar_name(scalar), layout, size, size, wanted, "acq_rel");
    harness h;
    open_on(&h, device, lilac_text_get(&text), warps, layout[0] == 0);
    uint32_t bytes = bytes_of(scalar);
    uint8_t *x = calloc(size, bytes), *v = calloc(size, bytes), *o = calloc(size, bytes);
    uint8_t *want = calloc(size, bytes), *old = calloc(size, bytes);
    lilac_random random;
    lilac_random_seed(&random, size + n);
    for (uint32_t i = 0; i < size; i++) {
        set_element(x, scalar, i, random_element(&random, scalar));
        set_element(v, scalar, i, random_element(&random, scalar));
        uint64_t before = get_element(x, scalar, i);
        uint64_t after = combine(how, scalar, before, get_element(v, scalar, i));
        set_element(want, scalar, i, i < n ? after : before);
        set_element(old, scalar, i, i < n && wanted ? before : 0);
    }
    buffer buffers[] = {
        {x, (size_t)size * bytes}, {v, (size_t)size * bytes}, {o, (size_t)size * bytes}};
    int64_t scalars[] = {n};
    harness_run(&h, 1, buffers, 3, scalars, 1);
    for (uint32_t i = 0; i < size; i++) {
        assert_true(same_float(scalar, get_element(x, scalar, i), get_element(want, scalar, i)) ||
                    get_element(x, scalar, i) == get_element(want, scalar, i));
        assert_int_equal(get_element(o, scalar, i), get_element(old, scalar, i));
    }
    assert_true(n == 0 || h.counters.atomics > 0);
    if (device->vendor == LILAC_NVIDIA) {
        write_ptx(&h, &ptx);
        assert_true(strstr(lilac_text_get(&ptx), swaps_bf16(device, how, scalar)
                                                     ? "atom.global.acq_rel.gpu.cas.b"
                                                     : "atom.global.gpu.acq_rel.") != NULL);
    }
    free(x), free(v), free(o), free(want), free(old);
    harness_close(&h);
    lilac_text_clear(&text);
    lilac_text_clear(&ptx);
}

static void every_kind(void **state) {
    (void)state;
    const lilac_arch *device;
    for (size_t at = 0; (device = next_device(&at, 0)) != NULL;) {
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            for (uint32_t t = 0; t < kinds[k].count; t++) {
                for (int wanted = 0; wanted < 2; wanted++) {
                    check_tensor(device, kinds[k].how, kinds[k].types[t], "", 512, 4, 512, wanted);
                    check_tensor(device, kinds[k].how, kinds[k].types[t], "", 256, 2, 208, wanted);
                }
            }
        }
    }
}

#define LINEAR(registers, lanes, warps)                                                            \
    ", #ttg.linear<{register = " registers ", lane = " lanes ", warp = " warps ", block = []}>"

/* Copies in registers, lanes and warps, and lanes and warps whose columns are sums: every element
 * is combined once, and all copies get what was there. */
static void copies(void **state) {
    (void)state;
    static const struct {
        const char *layout;
        uint32_t size, warps;
    } rows[] = {
        {LINEAR("[[1], [2]]", "[[4], [8], [16], [32], [64]]", "[[0], [0]]"), 128, 4},
        {LINEAR("[[0], [1]]", "[[2], [4], [0], [8], [0]]", "[]"), 16, 1},
        {LINEAR("[[1], [0], [2]]", "[[4], [0], [0], [8], [16]]", "[[0], [32]]"), 64, 4},
        {LINEAR("[]", "[[1], [2], [4], [8], [16]]", "[[3], [1]]"), 32, 4},
        {LINEAR("[[1]]", "[[2], [3], [4], [6], [8]]", "[[5], [16]]"), 32, 4},
        {LINEAR("[]", "[[1], [2], [3], [4], [7]]", "[]"), 8, 1},
        {LINEAR("[]", "[[0], [0], [0], [0], [0]]", "[[0], [0], [0]]"), 1, 8},
        {LINEAR("[[1], [2], [4]]", "[[8], [16], [32], [64], [128]]", "[[256], [512]]"), 1024, 4},
    };
    const lilac_arch *device;
    for (size_t at = 0; (device = next_device(&at, 32)) != NULL;) {
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            for (int wanted = 0; wanted < 2; wanted++) {
                const char *layout = rows[k].layout;
                uint32_t size = rows[k].size, warps = rows[k].warps;
                check_tensor(device, "add", LILAC_I32, layout, size, warps, size, wanted);
                check_tensor(device, "fadd", LILAC_F16, layout, size, warps, size, wanted);
                check_tensor(device, "fadd", LILAC_BF16, layout, size, warps, size, wanted);
                check_tensor(device, "xor", LILAC_I64, layout, size, warps, size * 3 / 4, wanted);
            }
        }
    }
}

/* ", #ttg.linear<{…}>" of 2^bits elements: unit columns in some of the slots, anything in the
 * others, all of them through an invertible map. */
static void random_layout(lilac_random *random, lilac_text *out, uint32_t bits, uint32_t registers,
                          uint32_t lanes, uint32_t warps) {
    uint32_t slots = registers + lanes + warps, columns[24], taken[24] = {0};
    assert_true(bits <= slots && slots <= 24);
    for (uint32_t s = 0; s < slots; s++) {
        bool zero = lilac_random_below(random, 3) == 0;
        columns[s] = zero ? 0 : (uint32_t)lilac_random_below(random, UINT64_C(1) << bits);
    }
    for (uint32_t b = 0; b < bits; b++) {
        uint32_t s = (uint32_t)lilac_random_below(random, slots);
        while (taken[s]) {
            s = (s + 1) % slots;
        }
        taken[s] = 1;
        columns[s] = 1U << b;
    }
    for (uint32_t k = 0; bits > 1 && k < lilac_random_below(random, 8); k++) {
        uint32_t from = (uint32_t)lilac_random_below(random, bits);
        uint32_t to = (from + 1 + (uint32_t)lilac_random_below(random, bits - 1)) % bits;
        for (uint32_t s = 0; s < slots; s++) {
            columns[s] ^= (columns[s] >> from & 1) << to;
        }
    }
    lilac_text_reset(out);
    lilac_text_puts(out, ", #ttg.linear<{register = [");
    for (uint32_t s = 0; s < slots; s++) {
        lilac_text_puts(out, s == registers           ? "], lane = ["
                             : s == registers + lanes ? "], warp = ["
                                                      : "");
        bool first = s == 0 || s == registers || s == registers + lanes;
        lilac_text_printf(out, "%s[%u]", first ? "" : ", ", columns[s]);
    }
    lilac_text_printf(out, "%s], block = []}>", warps == 0 ? "], warp = [" : "");
}

static void random_layouts(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 17);
    static const char *const devices[] = {"sm_90a", "gfx942", "sm_80", "gfx950", "gfx1201"};
    for (uint32_t k = 0; k < 150; k++) {
        const lilac_arch *device = lilac_arch_find(devices[k % (sizeof devices / sizeof *devices)]);
        lilac_text layout = {0};
        uint32_t registers = 1 + (uint32_t)lilac_random_below(&random, 4);
        uint32_t warps = (uint32_t)lilac_random_below(&random, 4);
        uint32_t bits = 4 + (uint32_t)lilac_random_below(&random, registers + warps + 2);
        random_layout(&random, &layout, bits, registers, log2_of(device->warp_size), warps);
        const struct kind_row *row =
            &kinds[lilac_random_below(&random, sizeof kinds / sizeof *kinds)];
        lilac_scalar scalar = row->types[lilac_random_below(&random, row->count)];
        uint32_t n = 16 * (uint32_t)lilac_random_below(&random, (1U << bits) / 16 + 1);
        check_tensor(device, row->how, scalar, lilac_text_get(&layout), 1U << bits, 1U << warps, n,
                     lilac_random_below(&random, 3) != 0);
        lilac_text_clear(&layout);
    }
}

/* Many elements meet in few places: sums are right, and the old values are those of some order. */
static void collisions(void **state) {
    (void)state;
    enum { SIZE = 256, PERIOD = 5 };
    lilac_text text = {0};
    tensor_kernel(&text, "add", "i32", "", SIZE, PERIOD, true, "relaxed");
    harness h;
    harness_open(&h, lilac_text_get(&text), 4, true);
    uint32_t x[PERIOD] = {0}, v[SIZE], o[SIZE];
    for (uint32_t i = 0; i < SIZE; i++) {
        v[i] = 1;
    }
    buffer buffers[] = {{x, sizeof x}, {v, sizeof v}, {o, sizeof o}};
    int64_t scalars[] = {SIZE};
    harness_run(&h, 1, buffers, 3, scalars, 1);
    bool seen[PERIOD][SIZE] = {{false}};
    for (uint32_t i = 0; i < SIZE; i++) {
        uint32_t count = SIZE / PERIOD + (i % PERIOD < SIZE % PERIOD);
        assert_int_equal(x[i % PERIOD], count);
        assert_true(o[i] < count);
        assert_false(seen[i % PERIOD][o[i]]);
        seen[i % PERIOD][o[i]] = true;
    }
    harness_close(&h);
    lilac_text_clear(&text);
}

/* Blocks on several host threads add to five neighbouring elements of 16 bits, some of which share
 * a word with one that nobody touches: sums are exact, old values are those of some order, and the
 * neighbours stay. */
static void collisions_in_words(void **state) {
    (void)state;
    enum { SIZE = 256, PERIOD = 5, GRID = 4 };
    static const struct {
        const char *type;
        lilac_scalar scalar;
    } types[] = {{"f16", LILAC_F16}, {"bf16", LILAC_BF16}};
    const lilac_arch *device;
    for (size_t at = 0; (device = next_device(&at, 0)) != NULL;) {
        for (size_t t = 0; t < 2; t++) {
            lilac_scalar scalar = types[t].scalar;
            lilac_text text = {0};
            tensor_kernel(&text, "fadd", types[t].type, "", SIZE, PERIOD, true, "relaxed");
            /* Programs write their old values over one another's: only the sums are looked at. */
            harness h;
            open_on(&h, device, lilac_text_get(&text), 4, true);
            uint16_t x[PERIOD + 3], v[SIZE], o[SIZE];
            uint64_t one = lilac_scalar_encode(scalar, 1.0, LILAC_ROUND_NEAREST_EVEN, false);
            for (uint32_t i = 0; i < SIZE; i++) {
                v[i] = (uint16_t)one;
            }
            memset(x, 0, sizeof x);
            x[PERIOD] = 0x1234;
            x[1] = 0x8000; /* -0 is not 0 to a swap, and counts as 0 */
            lilac_sim_buffer places[] = {{.name = "x", .bytes = (uint8_t *)x, .size = sizeof x},
                                         {.name = "v", .bytes = (uint8_t *)v, .size = sizeof v},
                                         {.name = "o", .bytes = (uint8_t *)o, .size = sizeof o}};
            lilac_sim_place(places, 3);
            uint64_t arguments[] = {places[0].address, places[1].address, places[2].address, SIZE};
            lilac_sim_launch launch = {.kernel = h.simt->kernels,
                                       .grid = {1, 1, 1},
                                       .arguments = arguments,
                                       .argument_count = 4,
                                       .buffers = places,
                                       .buffer_count = 3,
                                       .threads = 1,
                                       .instruction_limit = 1 << 22};
            bool seen[PERIOD][GRID * SIZE] = {{false}};
            for (uint32_t program = 0; program < GRID; program++) {
                assert_true(lilac_sim_run(h.context, &launch, &h.counters));
                for (uint32_t i = 0; i < SIZE; i++) {
                    double old = lilac_scalar_decode(scalar, o[i]);
                    assert_true(old >= 0 && old < GRID * SIZE && old == (uint32_t)old);
                    assert_false(seen[i % PERIOD][(uint32_t)old]);
                    seen[i % PERIOD][(uint32_t)old] = true;
                }
            }
            for (uint32_t i = 0; i < PERIOD; i++) {
                uint32_t count = GRID * (SIZE / PERIOD + (i < SIZE % PERIOD));
                assert_true(lilac_scalar_decode(scalar, x[i]) == count);
            }
            assert_int_equal(x[PERIOD], 0x1234);
            harness_close(&h);
            lilac_text_clear(&text);
        }
    }
}

/* The same sums from blocks that run concurrently on several host threads. No old value is used. */
static void collisions_of_blocks(void **state) {
    (void)state;
    enum { SIZE = 128, PERIOD = 3, GRID = 5 };
    static const char *const devices[] = {"sm_80", "sm_90a", "gfx942"};
    for (size_t d = 0; d < 3; d++) {
        lilac_text text = {0};
        tensor_kernel(&text, "fadd", "bf16", "", SIZE, PERIOD, false, "relaxed");
        harness h;
        open_on(&h, lilac_arch_find(devices[d]), lilac_text_get(&text), 2, true);
        uint16_t x[PERIOD + 1] = {0, 0, 0, 0x7777}, v[SIZE], o[SIZE];
        for (uint32_t i = 0; i < SIZE; i++) {
            v[i] = 0x3F80;
        }
        lilac_sim_buffer places[] = {{.name = "x", .bytes = (uint8_t *)x, .size = sizeof x},
                                     {.name = "v", .bytes = (uint8_t *)v, .size = sizeof v},
                                     {.name = "o", .bytes = (uint8_t *)o, .size = sizeof o}};
        lilac_sim_place(places, 3);
        uint64_t arguments[] = {places[0].address, places[1].address, places[2].address, SIZE};
        lilac_sim_launch launch = {.kernel = h.simt->kernels,
                                   .grid = {GRID, 1, 1},
                                   .arguments = arguments,
                                   .argument_count = 4,
                                   .buffers = places,
                                   .buffer_count = 3,
                                   .threads = 4};
        assert_true(lilac_sim_run(h.context, &launch, &h.counters));
        for (uint32_t i = 0; i < PERIOD; i++) {
            uint32_t count = GRID * (SIZE / PERIOD + (i < SIZE % PERIOD));
            assert_true(lilac_scalar_decode(LILAC_BF16, x[i]) == count);
        }
        assert_int_equal(x[PERIOD], 0x7777);
        harness_close(&h);
        lilac_text_clear(&text);
    }
}

#define FOURS  LINEAR("[[1], [2], [512]]", "[[4], [8], [16], [32], [64]]", "[[128], [256]]")
#define EIGHTS LINEAR("[[1], [2], [4]]", "[[8], [16], [32], [64], [128]]", "[[256], [512]]")

/* Adjacent floats go four words at a time where the device can; without a use of the result
 * they have no destination. */
static void vectors(void **state) {
    (void)state;
    static const struct {
        const char *device, *type, *layout, *what;
        uint32_t count;
    } rows[] = {{"sm_90a", "f32", FOURS, "add.v4.f32 ", 2},
                {"sm_90a", "f16", EIGHTS, "add.noftz.v4.f16x2 ", 1},
                {"sm_90a", "bf16", EIGHTS, "add.noftz.v4.bf16x2 ", 1},
                {"sm_90a", "f16", FOURS, "add.noftz.v2.f16x2 ", 2},
                {"sm_90a", "f64", EIGHTS, "add.f64 ", 8},
                {"sm_80", "f32", EIGHTS, "add.f32 ", 8},
                {"sm_80", "f16", EIGHTS, "add.noftz.f16x2 ", 4}};
    static const char *const orders[] = {"relaxed", "release", "acquire", "acq_rel"};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        for (size_t order = 0; order < 4; order++) {
            lilac_text text = {0}, ptx = {0}, wanted = {0};
            tensor_kernel(&text, "fadd", rows[k].type, rows[k].layout, 1024, 1024, false,
                          orders[order]);
            harness h;
            assert_true(harness_try(&h, lilac_text_get(&text), 4, false, rows[k].device));
            write_ptx(&h, &ptx);
            lilac_text_printf(&wanted, "atom.global.gpu.%s.%s%s", orders[order], rows[k].what,
                              strcmp(rows[k].type, "bf16") == 0 ? "{%tr" /* not _: see PTX */
                                                                : "_, [");
            assert_int_equal(count_text(lilac_text_get(&ptx), lilac_text_get(&wanted)),
                             rows[k].count);
            harness_close(&h);
            lilac_text_clear(&text);
            lilac_text_clear(&ptx);
            lilac_text_clear(&wanted);
        }
    }
}

/* Where bf16 has no additions, pairs are swapped as words, and elements that do not stand one after
 * another by themselves. */
static void swapped_bf16(void **state) {
    (void)state;
    static const struct {
        const char *layout, *what;
        uint32_t count;
    } rows[] = {{EIGHTS, "cas.b32 ", 4},
                {FOURS, "cas.b32 ", 4},
                {LINEAR("[[512], [256], [128]]", "[[1], [2], [4], [8], [16]]", "[[32], [64]]"),
                 "cas.b16 ", 8}};
    static const char *const devices[] = {"sm_80", "sm_86", "sm_89"};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        for (size_t d = 0; d < 3; d++) {
            lilac_text text = {0}, ptx = {0};
            tensor_kernel(&text, "fadd", "bf16", rows[k].layout, 1024, 1024, false, "release");
            harness h;
            assert_true(harness_try(&h, lilac_text_get(&text), 4, false, devices[d]));
            write_ptx(&h, &ptx);
            assert_int_equal(count_text(lilac_text_get(&ptx), rows[k].what), rows[k].count);
            assert_int_equal(count_text(lilac_text_get(&ptx), "atom.global.release.gpu."),
                             rows[k].count);
            harness_close(&h);
            lilac_text_clear(&text);
            lilac_text_clear(&ptx);
        }
    }
}

/* ---- compare and swap -------------------------------------------------------------------- */

static void swaps_on(const lilac_arch *device) {
    static const lilac_scalar types[] = {LILAC_I16, LILAC_F16, LILAC_BF16, LILAC_I32,
                                         LILAC_F32, LILAC_I64, LILAC_F64};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        const char *type = lilac_scalar_name(types[t]);
        bool is_float = lilac_scalar_is_float(types[t]);
        lilac_text text = {0}, ptx = {0};
        lilac_text_printf(
            &text,
            "module {\n  tt.func public @k(%%x: !tt.ptr<%s>, %%o: !tt.ptr<%s>) {\n"
            "    %%i = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>\n"
            "    %%c = arith.constant dense<%s> : tensor<128x%s>\n"
            "    %%n = arith.constant dense<%s> : tensor<128x%s>\n"
            "    %%sx = tt.splat %%x : !tt.ptr<%s> -> tensor<128x!tt.ptr<%s>>\n"
            "    %%px = tt.addptr %%sx, %%i : tensor<128x!tt.ptr<%s>>, tensor<128xi32>\n"
            "    %%so = tt.splat %%o : !tt.ptr<%s> -> tensor<128x!tt.ptr<%s>>\n"
            "    %%po = tt.addptr %%so, %%i : tensor<128x!tt.ptr<%s>>, tensor<128xi32>\n"
            "    %%r = tt.atomic_cas acquire, sys, %%px, %%c, %%n : (tensor<128x!tt.ptr<%s>>, "
            "tensor<128x%s>, tensor<128x%s>) -> tensor<128x%s>\n"
            "    tt.store %%po, %%r : tensor<128x!tt.ptr<%s>>\n    tt.return\n  }\n}\n",
            type, type, is_float ? "0.0" : "0", type, is_float ? "3.0" : "3", type, type, type,
            type, type, type, type, type, type, type, type, type);
        harness h;
        open_on(&h, device, lilac_text_get(&text), 4, true);
        uint8_t x[128 * 8], o[128 * 8], before[128 * 8];
        uint32_t bytes = bytes_of(types[t]);
        uint64_t three = is_float ? lilac_scalar_encode(types[t], 3.0, LILAC_ROUND_ZERO, false) : 3;
        uint64_t negative_zero = 1ULL << (lilac_scalar_bits(types[t]) - 1);
        for (uint32_t i = 0; i < 128; i++) { /* by bits: -0 is not 0 */
            set_element(x, types[t], i, i % 3 == 0 ? 0 : i % 3 == 1 ? negative_zero : 5);
        }
        memcpy(before, x, sizeof x);
        buffer buffers[] = {{x, 128 * (size_t)bytes}, {o, 128 * (size_t)bytes}};
        harness_run(&h, 1, buffers, 2, NULL, 0);
        assert_memory_equal(o, before, 128 * (size_t)bytes);
        for (uint32_t i = 0; i < 128; i++) {
            uint64_t old = get_element(before, types[t], i);
            assert_int_equal(get_element(x, types[t], i), old == 0 ? three : old);
        }
        if (device->vendor == LILAC_NVIDIA) {
            write_ptx(&h, &ptx);
            assert_true(strstr(lilac_text_get(&ptx), "atom.global.acquire.sys.cas.b") != NULL);
        }
        harness_close(&h);
        lilac_text_clear(&text);
        lilac_text_clear(&ptx);
    }
}

static void swaps(void **state) {
    (void)state;
    const lilac_arch *device;
    for (size_t at = 0; (device = next_device(&at, 0)) != NULL;) {
        swaps_on(device);
    }
}

/* ---- scalars ----------------------------------------------------------------------------- */

/* A scalar acts once a program, and its result steers the whole block. */
static void scalars(void **state) {
    (void)state;
    static const char *const ttir =
        "module {\n"
        "  tt.func public @k(%c: !tt.ptr<i32>, %o: !tt.ptr<i32>) {\n"
        "    %true = arith.constant true\n"
        "    %one = arith.constant 1 : i32\n"
        "    %old = tt.atomic_rmw add, acq_rel, gpu, %c, %one, %true : (!tt.ptr<i32>, i32, i1) -> "
        "i32\n"
        "    %two = arith.constant 2 : i32\n"
        "    %odd = arith.remui %old, %two : i32\n"
        "    %is = arith.cmpi eq, %odd, %one : i32\n"
        "    scf.if %is {\n"
        "      %i = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>\n"
        "      %s = tt.splat %old : i32 -> tensor<256xi32>\n"
        "      %size = arith.constant 256 : i32\n"
        "      %at = arith.muli %old, %size : i32\n"
        "      %p = tt.addptr %o, %at : !tt.ptr<i32>, i32\n"
        "      %sp = tt.splat %p : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>>\n"
        "      %pp = tt.addptr %sp, %i : tensor<256x!tt.ptr<i32>>, tensor<256xi32>\n"
        "      tt.store %pp, %s : tensor<256x!tt.ptr<i32>>\n"
        "    }\n"
        "    tt.return\n  }\n}\n";
    for (uint32_t warps = 1; warps <= 32; warps *= 2) {
        harness h;
        harness_open(&h, ttir, warps, true);
        uint32_t counter = 0, o[6 * 256] = {0};
        buffer buffers[] = {{&counter, sizeof counter}, {o, sizeof o}};
        harness_run(&h, 6, buffers, 2, NULL, 0);
        assert_int_equal(counter, 6);
        assert_int_equal(h.counters.atomics, 6);
        for (uint32_t i = 0; i < 6 * 256; i++) {
            assert_int_equal(o[i], i / 256 % 2 == 1 ? i / 256 : 0);
        }
        harness_close(&h);
    }
}

/* Every program adds a float to one element once, and all its threads get what was there. */
static void scalar_floats(void **state) {
    (void)state;
    static const lilac_scalar types[] = {LILAC_F16, LILAC_BF16, LILAC_F32, LILAC_F64};
    enum { GRID = 6 };
    const lilac_arch *device;
    for (size_t at = 0; (device = next_device(&at, 0)) != NULL;) {
        for (size_t t = 0; t < 4; t++) {
            const char *type = lilac_scalar_name(types[t]);
            lilac_text text = {0};
            lilac_text_printf(
                &text,
                "module {\n  tt.func public @k(%%x: !tt.ptr<%s>, %%o: !tt.ptr<%s>, %%n: i32) {\n"
                "    %%one = arith.constant 1.0 : %s\n"
                "    %%p = tt.get_program_id x : i32\n"
                "    %%m = arith.cmpi slt, %%p, %%n : i32\n"
                "    %%v = tt.atomic_rmw fadd, acq_rel, gpu, %%x, %%one, %%m : (!tt.ptr<%s>, %s, "
                "i1) "
                "-> %s\n"
                "    %%i = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>\n"
                "    %%c = arith.constant 128 : i32\n"
                "    %%b = arith.muli %%p, %%c : i32\n"
                "    %%q = tt.addptr %%o, %%b : !tt.ptr<%s>, i32\n"
                "    %%s = tt.splat %%q : !tt.ptr<%s> -> tensor<128x!tt.ptr<%s>>\n"
                "    %%a = tt.addptr %%s, %%i : tensor<128x!tt.ptr<%s>>, tensor<128xi32>\n"
                "    %%w = tt.splat %%v : %s -> tensor<128x%s>\n"
                "    tt.store %%a, %%w : tensor<128x!tt.ptr<%s>>\n    tt.return\n  }\n}\n",
                type, type, type, type, type, type, type, type, type, type, type, type, type);
            harness h;
            open_on(&h, device, lilac_text_get(&text), 4, true);
            uint8_t x[2 * 8] = {0}, o[GRID * 128 * 8];
            set_element(x, types[t], 1, 0x77); /* a neighbour */
            buffer buffers[] = {{x, sizeof x}, {o, GRID * 128 * (size_t)bytes_of(types[t])}};
            int64_t scalars[] = {GRID - 1};
            harness_run(&h, GRID, buffers, 2, scalars, 1);
            assert_true(lilac_scalar_decode(types[t], get_element(x, types[t], 0)) == GRID - 1);
            assert_int_equal(get_element(x, types[t], 1), 0x77);
            for (uint32_t i = 0; i < GRID * 128; i++) {
                double old = lilac_scalar_decode(types[t], get_element(o, types[t], i));
                assert_true(old == (i / 128 < GRID - 1 ? i / 128 : 0));
            }
            harness_close(&h);
            lilac_text_clear(&text);
        }
    }
}

/* A lock around a sum, taken by blocks on several threads of the host. */
static void locks(void **state) {
    (void)state;
    static const char *const ttir =
        "module {\n"
        "  tt.func public @k(%lock: !tt.ptr<i32>, %data: !tt.ptr<f32>) {\n"
        "    %true = arith.constant true\n"
        "    %zero = arith.constant 0 : i32\n"
        "    %one = arith.constant 1 : i32\n"
        "    %ones = arith.constant dense<1.0> : tensor<128xf32>\n"
        "    %i = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>\n"
        "    %s = tt.splat %data : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>\n"
        "    %p = tt.addptr %s, %i : tensor<128x!tt.ptr<f32>>, tensor<128xi32>\n"
        "    scf.while : () -> () {\n"
        "      %old = tt.atomic_cas acquire, gpu, %lock, %zero, %one : (!tt.ptr<i32>, i32, i32) -> "
        "i32\n"
        "      %again = arith.cmpi eq, %old, %one : i32\n"
        "      scf.condition(%again)\n"
        "    } do {\n      scf.yield\n    }\n"
        "    %x = tt.load %p : tensor<128x!tt.ptr<f32>>\n"
        "    %y = arith.addf %x, %ones : tensor<128xf32>\n"
        "    tt.store %p, %y : tensor<128x!tt.ptr<f32>>\n"
        "    %was = tt.atomic_rmw exch, release, gpu, %lock, %zero, %true : (!tt.ptr<i32>, i32, "
        "i1) "
        "-> i32\n"
        "    tt.return\n  }\n}\n";
    enum { PROGRAMS = 400 };
    harness h;
    harness_open(&h, ttir, 4, true);
    uint32_t lock = 0;
    float data[128] = {0};
    lilac_sim_buffer buffers[] = {{.name = "lock", .bytes = (uint8_t *)&lock, .size = sizeof lock},
                                  {.name = "data", .bytes = (uint8_t *)data, .size = sizeof data}};
    lilac_sim_place(buffers, 2);
    uint64_t arguments[] = {buffers[0].address, buffers[1].address};
    lilac_sim_launch launch = {.kernel = h.simt->kernels,
                               .grid = {PROGRAMS, 1, 1},
                               .arguments = arguments,
                               .argument_count = 2,
                               .buffers = buffers,
                               .buffer_count = 2,
                               .threads = 2};
    assert_true(lilac_sim_run(h.context, &launch, &h.counters));
    assert_int_equal(lock, 0);
    for (uint32_t i = 0; i < 128; i++) {
        assert_true(data[i] == (float)PROGRAMS);
    }
    harness_close(&h);
}

/* ---- refusals ---------------------------------------------------------------------------- */

static void refusals(void **state) {
    (void)state;
    static const struct {
        const char *how, *type;
    } rows[] = {{"add", "i8"}, {"add", "i16"}, {"xor", "i16"}, {"exch", "i8"}, {"exch", "f16"}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        lilac_text text = {0};
        tensor_kernel(&text, rows[k].how, rows[k].type, "", 128, 128, true, "relaxed");
        harness h;
        assert_false(harness_try(&h, lilac_text_get(&text), 4, true, NULL));
        assert_string_equal(lilac_diagnostics(h.context)->id, "unsupported-type");
        harness_close(&h);
        lilac_text_clear(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_kind),
                                       cmocka_unit_test(copies),
                                       cmocka_unit_test(collisions),
                                       cmocka_unit_test(collisions_in_words),
                                       cmocka_unit_test(collisions_of_blocks),
                                       cmocka_unit_test(swapped_bf16),
                                       cmocka_unit_test(random_layouts),
                                       cmocka_unit_test(vectors),
                                       cmocka_unit_test(swaps),
                                       cmocka_unit_test(scalars),
                                       cmocka_unit_test(scalar_floats),
                                       cmocka_unit_test(locks),
                                       cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
