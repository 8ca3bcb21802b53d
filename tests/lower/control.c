/* Control flow as Triton's front end writes it, in files that Triton 3.6 wrote
 * (tests/data/control): calls, early returns, loops of every kind, values that loops carry, and
 * maps of elements. The results on the simulator are compared with the same computation in C,
 * with 1 to 32 warps of 32 lanes and with 2 and 16 warps of 64 lanes. */
#include "support/lower_harness.h"

enum { MOST = 4096 };

typedef struct run {
    harness h;
    int32_t x[MOST], y[MOST], wx[MOST], wy[MOST]; /* what the kernel has, and what is wanted */
    int64_t wide[128];
    float fx[MOST], fy[MOST], wfx[MOST], wfy[MOST];
} run;

typedef struct configuration {
    const char *device;
    uint32_t warps;
} configuration;

static const configuration configurations[] = {{"sm_90a", 1},  {"sm_90a", 2}, {"sm_90a", 4},
                                               {"sm_90a", 32}, {"gfx942", 2}, {"gfx950", 16}};
enum { CONFIGURATIONS = sizeof configurations / sizeof *configurations };

static void open_file(run *r, const char *name, configuration on) {
    char path[128];
    snprintf(path, sizeof path, "control/%s.ttir", name);
    char *text = read_data(path, NULL);
    harness_open_for(&r->h, text, on.warps, true, on.device);
    free(text);
}

static void fill(run *r, uint32_t seed) {
    for (int32_t i = 0; i < MOST; i++) {
        r->x[i] = r->wx[i] = (int32_t)((uint32_t)i * 2654435761U * (seed + 1) >> 20) - 2000;
        r->y[i] = r->wy[i] = (int32_t)((uint32_t)(i + 77) * 2246822519U * (seed + 3) >> 21) - 900;
        r->fx[i] = r->wfx[i] = (float)r->x[i] / 64.0F;
        r->fy[i] = r->wfy[i] = (float)r->y[i] / 16.0F;
    }
}

/* One or two buffers of integers, and scalars. */
static void compare(run *r, const char *name, uint32_t grid, uint32_t buffers,
                    const int64_t *scalars, uint32_t count) {
    static int32_t x[MOST], y[MOST];
    memcpy(x, r->x, sizeof x);
    memcpy(y, r->y, sizeof y);
    for (uint32_t w = 0; w < CONFIGURATIONS; w++) {
        memcpy(r->x, x, sizeof x);
        memcpy(r->y, y, sizeof y);
        open_file(r, name, configurations[w]);
        const buffer list[] = {{r->x, sizeof r->x}, {r->y, sizeof r->y}};
        harness_run(&r->h, grid, list, buffers, scalars, count);
        for (uint32_t i = 0; i < MOST; i++) {
            if (r->x[i] != r->wx[i] || r->y[i] != r->wy[i]) {
                print_message("%s\n", lilac_text_get(&r->h.text));
                fail_msg("%s, %s, %u warps, element %u: %d %d, not %d %d", name,
                         configurations[w].device, configurations[w].warps, i, r->x[i], r->y[i],
                         r->wx[i], r->wy[i]);
            }
        }
        harness_close(&r->h);
    }
}

static void compare_floats(run *r, const char *name, uint32_t grid, uint32_t buffers,
                           const int64_t *scalars, uint32_t count) {
    static float x[MOST], y[MOST];
    memcpy(x, r->fx, sizeof x);
    memcpy(y, r->fy, sizeof y);
    for (uint32_t w = 0; w < CONFIGURATIONS; w++) {
        memcpy(r->fx, x, sizeof x);
        memcpy(r->fy, y, sizeof y);
        open_file(r, name, configurations[w]);
        const buffer list[] = {{r->fx, sizeof r->fx}, {r->fy, sizeof r->fy}};
        harness_run(&r->h, grid, list, buffers, scalars, count);
        for (uint32_t i = 0; i < MOST; i++) {
            bool same = fabsf(r->fx[i] - r->wfx[i]) <= 1e-5F * fabsf(r->wfx[i]) &&
                        fabsf(r->fy[i] - r->wfy[i]) <= 1e-5F * fabsf(r->wfy[i]);
            bool unlike = (isnan(r->fy[i]) && isnan(r->wfy[i])) || same;
            if (!unlike) {
                fail_msg("%s, %s, %u warps, element %u: %g %g, not %g %g", name,
                         configurations[w].device, configurations[w].warps, i, (double)r->fx[i],
                         (double)r->fy[i], (double)r->wfx[i], (double)r->wfy[i]);
            }
        }
        harness_close(&r->h);
    }
}

static run *fresh(uint32_t seed) {
    run *r = calloc(1, sizeof *r);
    assert_non_null(r);
    fill(r, seed);
    return r;
}

/* ---- calls and returns ------------------------------------------------------------------- */

static int32_t helper_early(int32_t x, int32_t n) {
    return n > 5 ? x + n : x * n;
}

static void calls(void **state) {
    (void)state;
    for (int32_t n = 3; n < 9; n++) {
        const int64_t scalars[] = {n};
        run *r = fresh((uint32_t)n);
        r->wx[0] = 2 * n + 3;
        r->wx[n] = n;
        compare(r, "call_scalar", 1, 1, scalars, 1);
        fill(r, (uint32_t)n);
        r->wx[0] = n * 3;
        r->wx[1] = helper_early(n, n);
        compare(r, "call_early", 1, 1, scalars, 1);
        fill(r, (uint32_t)n);
        for (int32_t i = 0; i < n; i++) {
            r->wx[i] = i * 2 + n + helper_early(n, i);
        }
        compare(r, "call_nested", 1, 1, scalars, 1);
        free(r);
    }
}

static void early_returns(void **state) {
    (void)state;
    for (int32_t n = 0; n < 9; n++) {
        for (int32_t m = 0; m < 12; m += n % 3 + 1) {
            const int64_t scalars[] = {n, m};
            run *r = fresh((uint32_t)n);
            for (int32_t i = 0; i < 128 * n && i < 128 * 4; i++) {
                r->wx[i] = i;
            }
            compare(r, "early_return", 4, 1, scalars, 1);
            fill(r, (uint32_t)m);
            for (int32_t i = 0; i < 128 * n && i < 128 * 4; i++) {
                int32_t v = r->x[i];
                r->wx[i] = m > 10 ? v * 2 : m > 3 ? v + 1 : m == 2 ? v * 3 : v - 7;
            }
            compare(r, "early_return2", 4, 1, scalars, 2);
            fill(r, (uint32_t)m + 5);
            for (int32_t i = 0; i < 128 * 2; i++) {
                int32_t w = m == 0 ? r->x[i] + 1 : i;
                if (m != 0 && n < 4) {
                    r->wx[i] = w;
                } else if (n != 7) {
                    r->wx[i] = w + m * (m - 1) / 2;
                }
            }
            compare(r, "early_return3", 2, 1, scalars, 2);
            fill(r, (uint32_t)m + 8);
            for (int32_t i = 0; i < 128; i++) {
                r->wx[i] = helper_early(helper_early(r->x[i], n), n - 1);
            }
            compare(r, "inl_early_k", 1, 1, scalars, 1);
            free(r);
        }
    }
}

/* ---- loops ------------------------------------------------------------------------------- */

static void whiles(void **state) {
    (void)state;
    for (int32_t n = 0; n < 30; n += 5) {
        const int64_t scalars[] = {n};
        run *r = fresh((uint32_t)n);
        for (int32_t k = n; k > 1;) {
            k = k % 2 == 0 ? k / 2 : 3 * k + 1;
            for (int32_t i = 0; i < 128; i++) {
                r->wx[i] += k;
            }
        }
        compare(r, "while1", 1, 1, scalars, 1);

        fill(r, (uint32_t)n);
        int32_t count = 0;
        for (;; count++) {
            int32_t sum = 0;
            for (int32_t i = 0; i < 128; i++) {
                r->x[i] = r->wx[i] = count == 0 ? abs(r->x[i]) : r->x[i];
                sum += r->wx[i];
            }
            if (count > 0 || n == 0 || sum <= 100) {
                break;
            }
        }
        int32_t now[128];
        memcpy(now, r->x, sizeof now);
        for (count = 0; count < n; count++) {
            int32_t sum = 0;
            for (int32_t i = 0; i < 128; i++) {
                sum += now[i];
            }
            if (sum <= 100) {
                break;
            }
            for (int32_t i = 0; i < 128; i++) {
                now[i] /= 2;
            }
        }
        memcpy(r->wx, now, sizeof now);
        r->wx[128] = count;
        compare(r, "while_tensor", 1, 1, scalars, 1);

        fill(r, (uint32_t)n);
        for (int32_t i = 0; i < 128; i++) {
            r->wy[i] = 0;
        }
        int32_t steps = n / 5 + 1;
        for (int32_t p = 0; p <= steps; p++) {
            r->x[p] = r->wx[p] = p < steps;
            for (int32_t i = 0; i < 128 && p < steps; i++) {
                r->wy[i] += r->y[p * 128 + i];
            }
        }
        compare(r, "while_load", 1, 2, scalars, 1);

        fill(r, (uint32_t)n);
        const int64_t size[] = {n * 37};
        for (int32_t i = 0; i < n * 37; i++) {
            r->wfy[i] = r->fx[i] * 2.0F;
        }
        compare_floats(r, "persistent", 3, 2, size, 1);
        free(r);
    }
}

static void counted_loops(void **state) {
    (void)state;
    for (int32_t n = -3; n < 20; n += 4) {
        run *r = fresh(1);
        const int64_t scalars[] = {n, 11, 3};
        uint32_t v = 0;
        for (int32_t i = n; i > 0; i -= 2) {
            v = v * 3 + (uint32_t)i;
        }
        for (int32_t i = 10; i > -3; i -= 3) {
            v = v * 5 + (uint32_t)i;
        }
        for (int32_t i = 0; i < 128; i++) {
            r->wx[i] = (int32_t)v;
        }
        compare(r, "neg_step", 1, 1, scalars, 1);

        fill(r, 2);
        for (int32_t i = 0; i < 128; i++) {
            uint32_t u = (uint32_t)i;
            for (int32_t k = 0; k < n; k++) {
                u += (uint32_t)k;
            }
            for (int32_t k = 0; k < 11; k++) {
                u += (uint32_t)k * 2;
            }
            for (int32_t k = 0; k < 3; k++) {
                u = u * 3 + (uint32_t)k;
            }
            r->wx[i] = (int32_t)u;
        }
        compare(r, "loop_types", 1, 1, scalars, 3);

        fill(r, 3);
        const int64_t bounds[] = {n, 6};
        for (int32_t i = 0; i < 128; i++) {
            int32_t u = i;
            for (int32_t a = 0; a < n; a++) {
                for (int32_t b = a; b < 6; b++) {
                    u += 3 * b;
                    u = b % 3 == 1 ? u ^ i : u + 1;
                }
                r->wx[a * 128 + i] = u;
            }
        }
        compare(r, "nested", 1, 1, bounds, 2);
        free(r);
    }
}

/* Bounds past 32 bits. */
static void wide_loops(void **state) {
    (void)state;
    for (uint32_t w = 0; w < CONFIGURATIONS; w++) {
        run *r = fresh(1);
        const int64_t step = INT64_C(5) << 33;
        const int64_t scalars[] = {7, step};
        open_file(r, "loop64", configurations[w]);
        const buffer list[] = {{r->wide, sizeof r->wide}};
        harness_run(&r->h, 1, list, 1, scalars, 2);
        for (int64_t i = 0; i < 128; i++) {
            assert_true(r->wide[i] == (i ^ 7 ^ 6 ^ 5 ^ 4 ^ 3 ^ 2 ^ 1));
        }
        harness_close(&r->h);
        free(r);
    }
}

/* ---- what goes round and through --------------------------------------------------------- */

static void carried_tensors(void **state) {
    (void)state;
    for (int32_t n = 0; n < 7; n++) {
        const int64_t scalars[] = {n};
        run *r = fresh((uint32_t)n);
        for (int32_t i = 0; i < 256; i++) {
            r->wfy[i] = 0.0F;
            for (int32_t k = 0; k < n; k++) {
                bool first = k % 2 == 0;
                const float *from = first == (n > 3) ? r->fx : r->fy;
                r->wfy[i] += from[first ? i : 2 * i];
            }
        }
        compare_floats(r, "ptr_carry_if", 1, 2, scalars, 1);

        fill(r, (uint32_t)n + 1);
        float sum = 0.0F;
        for (int32_t i = 0; i < 256; i++) {
            r->fx[i] = r->wfx[i] = fabsf(r->fx[i]);
            sum += r->fx[i];
        }
        float old[256];
        memcpy(old, r->fx, sizeof old);
        for (int32_t i = 0; i < 256; i++) {
            int32_t at = n == 1 ? i : n == 2 ? 3 * i : i + 1;
            r->wfx[at] = n == 1 ? old[i] * 2 + sum : n == 2 ? sqrtf(old[i]) + 1.0F : old[i];
        }
        compare_floats(r, "if_tensors", 1, 1, scalars, 1);
        free(r);
    }
}

/* Returns one after another, and loops in conditionals in loops. */
static void mixtures(void **state) {
    (void)state;
    for (int32_t n = 0; n < 9; n++) {
        const int64_t scalars[] = {n, n % 5};
        run *r = fresh((uint32_t)n);
        for (int32_t i = 0; i < 64; i++) {
            r->wfx[i] = n == 0 ? r->fx[i] + (float)(n % 5) : (float)(n > 4 ? 5 : n);
        }
        compare_floats(r, "static_unroll_return", 1, 1, scalars, 2);

        fill(r, (uint32_t)n);
        int32_t count = 0;
        memset(r->wfy, 0, 128 * sizeof(float));
        for (int32_t i = 0; i < n; i++) {
            for (int32_t j = 0; j < i && i % 2 == 0; j++) {
                count += j == 3;
                for (int32_t k = 0; k < 128; k++) {
                    r->wfy[k] += r->fx[j * 128 + k];
                    r->wfy[k] -= j == 3 ? (float)count : 0.0F;
                }
            }
            for (int32_t j = i; j > 0 && i % 2 == 1; j -= 3) {
                for (int32_t k = 0; k < 128; k++) {
                    r->wfy[k] += (float)j;
                }
            }
        }
        r->wfy[128] = (float)count;
        compare_floats(r, "loop_in_if_in_loop", 1, 2, scalars, 1);

        fill(r, (uint32_t)n);
        float a = 0.0F, b = 1.0F;
        for (int32_t i = 0; i < n; i++) {
            float sum = a + b;
            a = b, b = sum;
        }
        for (int32_t i = 0; i < 128; i++) {
            r->wfy[i] = a;
        }
        compare_floats(r, "tuple_state", 1, 2, scalars, 1);
        free(r);
    }
}

/* Predicates go round loops and through conditionals. */
static void carried_predicates(void **state) {
    (void)state;
    for (int32_t n = 0; n < 8; n++) {
        for (uint32_t w = 0; w < CONFIGURATIONS; w++) {
            run *r = fresh(1);
            uint8_t in[128] = {0}, out[128], want[128];
            for (int32_t i = 0; i < 128; i++) {
                bool m = i < n;
                uint8_t k = 0;
                for (int32_t j = 0; j < n; j++) {
                    m ^= i % 3 == j;
                    k += m;
                }
                m ^= n > 4;
                out[i] = 99;
                want[i] = m ? k : 99;
            }
            open_file(r, "i1carry", configurations[w]);
            const buffer list[] = {{in, sizeof in}, {out, sizeof out}};
            const int64_t scalars[] = {n};
            harness_run(&r->h, 1, list, 2, scalars, 1);
            assert_memory_equal(out, want, sizeof out);
            harness_close(&r->h);

            uint16_t half[128], made[128];
            for (uint32_t i = 0; i < 128; i++) {
                half[i] = (uint16_t)lilac_scalar_encode(LILAC_F16, (double)i,
                                                        LILAC_ROUND_NEAREST_EVEN, false);
            }
            open_file(r, "f16carry", configurations[w]);
            const buffer halves[] = {{half, sizeof half}, {made, sizeof made}};
            harness_run(&r->h, 1, halves, 2, scalars, 1);
            for (uint32_t i = 0; i < 128; i++) {
                double v = (double)i;
                for (int32_t k = 0; k < n; k++) {
                    v = k % 2 == 0 ? v * 2.0 : v + 1.0;
                }
                assert_true(fabs(lilac_scalar_decode(LILAC_F16, made[i]) - v) <= v / 512.0);
            }
            harness_close(&r->h);
            free(r);
        }
    }
}

/* Conditions and loops where elements are combined: the greatest common divisor of all. */
static void combined_by_loops(void **state) {
    (void)state;
    static const char text[] =
        "module {\n"
        "  tt.func public @k(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>) {\n"
        "    %o = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>\n"
        "    %a = tt.splat %x : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>>\n"
        "    %b = tt.addptr %a, %o : tensor<256x!tt.ptr<i32>>, tensor<256xi32>\n"
        "    %v = tt.load %b : tensor<256x!tt.ptr<i32>>\n"
        "    %c0 = arith.constant 0 : i32\n"
        "    %r = \"tt.reduce\"(%v) <{axis = 0 : i32}> ({\n"
        "    ^bb0(%p: i32, %q: i32):\n"
        "      %w:2 = scf.while (%i = %p, %j = %q) : (i32, i32) -> (i32, i32) {\n"
        "        %go = arith.cmpi ne, %j, %c0 : i32\n"
        "        scf.condition(%go) %i, %j : i32, i32\n"
        "      } do {\n"
        "      ^bb0(%i: i32, %j: i32):\n"
        "        %m = arith.remsi %i, %j : i32\n"
        "        scf.yield %j, %m : i32, i32\n"
        "      }\n"
        "      tt.reduce.return %w#0 : i32\n"
        "    }) : (tensor<256xi32>) -> i32\n"
        "    tt.store %y, %r : !tt.ptr<i32>\n"
        "    tt.return\n  }\n}\n";
    for (uint32_t w = 0; w < CONFIGURATIONS; w++) {
        run *r = fresh(w);
        harness_open_for(&r->h, text, configurations[w].warps, true, configurations[w].device);
        for (int32_t i = 0; i < 256; i++) {
            r->x[i] = 42 * (i * 7 % 91 + 1);
        }
        const buffer list[] = {{r->x, sizeof r->x}, {r->y, sizeof r->y}};
        harness_run(&r->h, 1, list, 2, NULL, 0);
        assert_int_equal(r->y[0], 42);
        harness_close(&r->h);
        free(r);
    }
}

static void block_pointers(void **state) {
    (void)state;
    for (int32_t n = 60; n < 200; n += 45) {
        const int32_t m = 50, stride = 80;
        const int64_t scalars[] = {m > 19 ? 19 : m, n > stride ? stride : n, stride};
        run *r = fresh((uint32_t)n);
        for (int32_t i = 0; i < scalars[0]; i++) {
            for (int32_t j = 0; j < scalars[1]; j++) {
                r->wfy[i * stride + j] = r->fx[i * stride + j] * 2.0F;
            }
        }
        compare_floats(r, "block_ptr", 2, 2, scalars, 3);
        /* Columns of a transposed matrix: x[i + stride * (j + 3)], NaN past column n. */
        fill(r, (uint32_t)n);
        const int64_t few[] = {32, n / 5, 40};
        for (int32_t i = 0; i < 32; i++) {
            for (int32_t j = 0; j < 64; j++) {
                r->wfy[i * 64 + j] = j + 3 < few[1] ? r->fx[i + 40 * (j + 3)] : NAN;
            }
        }
        compare_floats(r, "block_ptr_nan", 1, 2, few, 3);
        free(r);
    }
}

/* ---- elements ---------------------------------------------------------------------------- */

static void maps(void **state) {
    (void)state;
    for (uint32_t seed = 0; seed < 3; seed++) {
        run *r = fresh(seed);
        for (int32_t i = 0; i < 256; i++) {
            r->wy[i] = r->x[i] > r->y[i] ? r->x[i] - r->y[i] : r->y[i] * 2;
        }
        compare(r, "map_el", 1, 2, NULL, 0);
        fill(r, seed + 10);
        for (int32_t i = 0; i < 256; i++) {
            r->wy[i] = r->x[i] + r->y[i];
            r->wx[i] = r->x[i] * r->y[i];
        }
        compare(r, "map_el2", 1, 2, NULL, 0);
        fill(r, seed + 20);
        for (int32_t i = 0; i < 256; i++) {
            int32_t steps = 0;
            for (int32_t v = r->x[i]; v > 1; v /= 2) {
                steps++;
            }
            r->wy[i] = steps;
        }
        compare(r, "map_while", 1, 2, NULL, 0);
        free(r);
    }
    /* In groups of two of a thread, in the order of its registers, which is for the layout to say:
     * one of each group is added, the other subtracted. */
    run *r = fresh(4);
    for (int32_t i = 0; i < 1024; i++) {
        r->x[i] |= 1;
        r->y[i] = -r->x[i];
    }
    open_file(r, "map_pack", configurations[2]);
    const buffer list[] = {{r->x, sizeof r->x}, {r->y, sizeof r->y}};
    harness_run(&r->h, 1, list, 2, NULL, 0);
    uint32_t added = 0;
    for (int32_t i = 0; i < 1024; i++) {
        assert_true(r->y[i] == 0 || r->y[i] == 2 * r->x[i]);
        added += r->y[i] == 0;
    }
    assert_int_equal(added, 512);
    harness_close(&r->h);
    free(r);
}

/* A loop and conditions inside of conditions, by element: a lane that is not meant would never
 * leave the loop. */
static void element_control(void **state) {
    (void)state;
    static const char text[] =
        "module {\n"
        "  tt.func public @k(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>) {\n"
        "    %o = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>\n"
        "    %a = tt.splat %x : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>>\n"
        "    %b = tt.addptr %a, %o : tensor<256x!tt.ptr<i32>>, tensor<256xi32>\n"
        "    %v = tt.load %b : tensor<256x!tt.ptr<i32>>\n"
        "    %c0 = arith.constant 0 : i32\n    %c1 = arith.constant 1 : i32\n"
        "    %c3 = arith.constant 3 : i32\n"
        "    %r = \"tt.map_elementwise\"(%v) <{pack = 1 : i32}> ({\n"
        "    ^bb0(%e: i32):\n"
        "      %p = arith.cmpi sgt, %e, %c0 : i32\n"
        "      %s = scf.if %p -> (i32) {\n"
        "        %w:2 = scf.while (%i = %e, %n = %c0) : (i32, i32) -> (i32, i32) {\n"
        "          %go = arith.cmpi ne, %i, %c0 : i32\n"
        "          scf.condition(%go) %i, %n : i32, i32\n"
        "        } do {\n"
        "        ^bb0(%i: i32, %n: i32):\n"
        "          %h = arith.shrsi %i, %c1 : i32\n"
        "          %f = scf.for %k = %c0 to %h step %c3 iter_args(%q = %n) -> (i32)  : i32 {\n"
        "            %odd = arith.andi %k, %c1 : i32\n"
        "            %is = arith.cmpi eq, %odd, %c1 : i32\n"
        "            %z = scf.if %is -> (i32) {\n"
        "              %z0 = arith.addi %q, %k : i32\n"
        "              scf.yield %z0 : i32\n"
        "            } else {\n"
        "              %z1 = arith.xori %q, %k : i32\n"
        "              scf.yield %z1 : i32\n"
        "            }\n"
        "            scf.yield %z : i32\n"
        "          }\n"
        "          scf.yield %h, %f : i32, i32\n"
        "        }\n"
        "        scf.yield %w#1 : i32\n"
        "      } else {\n"
        "        scf.yield %e : i32\n"
        "      }\n"
        "      tt.map_elementwise.return %s : i32\n"
        "    }) : (tensor<256xi32>) -> tensor<256xi32>\n"
        "    %c = tt.splat %y : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>>\n"
        "    %d = tt.addptr %c, %o : tensor<256x!tt.ptr<i32>>, tensor<256xi32>\n"
        "    tt.store %d, %r : tensor<256x!tt.ptr<i32>>\n"
        "    tt.return\n  }\n}\n";
    for (uint32_t w = 0; w < CONFIGURATIONS; w++) {
        run *r = fresh(w);
        harness_open_for(&r->h, text, configurations[w].warps, true, configurations[w].device);
        for (int32_t i = 0; i < 256; i++) {
            r->x[i] = i % 3 == 0 ? -i : i % 50;
            int32_t n = r->x[i] > 0 ? 0 : r->x[i];
            for (int32_t v = r->x[i]; v > 0; v >>= 1) {
                for (int32_t k = 0; k < v >> 1; k += 3) {
                    n = k & 1 ? n + k : n ^ k;
                }
            }
            r->wy[i] = n;
        }
        const buffer list[] = {{r->x, sizeof r->x}, {r->y, sizeof r->y}};
        harness_run(&r->h, 1, list, 2, NULL, 0);
        assert_memory_equal(r->y, r->wy, 256 * sizeof(int32_t));
        harness_close(&r->h);
        free(r);
    }
}

/* ---- refusals ---------------------------------------------------------------------------- */

static void refusals(void **state) {
    (void)state;
    static const struct {
        const char *id, *text;
    } cases[] = {
        {"recursive-call",
         "module {\n  tt.func public @k(%n: i32) {\n    tt.call @f(%n) : (i32) -> ()\n"
         "    tt.return\n  }\n"
         "  tt.func private @f(%n: i32) {\n    tt.call @g(%n) : (i32) -> ()\n    tt.return\n  }\n"
         "  tt.func private @g(%n: i32) {\n    tt.call @f(%n) : (i32) -> ()\n    tt.return\n  }\n"
         "}\n"},
        {"unsupported-control-flow",
         "module {\n  tt.func public @k(%n: i32, %c: i1) {\n    cf.br ^bb1\n  ^bb1:\n"
         "    cf.cond_br %c, ^bb1, ^bb2\n  ^bb2:\n    tt.return\n  }\n}\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        harness h;
        bool taken = harness_try(&h, cases[i].text, 4, true, NULL);
        const lilac_diagnostic *d = lilac_diagnostics(h.context);
        if (taken || d == NULL || strcmp(d->id, cases[i].id) != 0) {
            print_diagnostics(h.context);
            fail_msg("case %zu", i);
        }
        assert_true(d->position.source != 0 && d->position.offset > 0);
        harness_close(&h);
    }
}

/* Calls that double at every level end in an error, not in all of memory. */
static void doubling_calls(void **state) {
    (void)state;
    lilac_text text = {0};
    lilac_text_printf(&text, "module {\n  tt.func public @k(%%n: i32) {\n"
                             "    %%a = tt.call @f39(%%n) : (i32) -> i32\n    tt.return\n  }\n");
    for (int i = 39; i > 0; i--) {
        lilac_text_printf(&text,
                          "  tt.func private @f%d(%%n: i32) -> i32 {\n"
                          "    %%a = tt.call @f%d(%%n) : (i32) -> i32\n"
                          "    %%b = tt.call @f%d(%%a) : (i32) -> i32\n"
                          "    tt.return %%b : i32\n  }\n",
                          i, i - 1, i - 1);
    }
    lilac_text_printf(&text, "  tt.func private @f0(%%n: i32) -> i32 {\n"
                             "    %%a = arith.muli %%n, %%n : i32\n    tt.return %%a : i32\n"
                             "  }\n}\n");
    harness h;
    assert_false(harness_try(&h, lilac_text_get(&text), 4, true, NULL));
    assert_string_equal(lilac_diagnostics(h.context)->id, "too-many-calls");
    harness_close(&h);
    lilac_text_clear(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls),
        cmocka_unit_test(early_returns),
        cmocka_unit_test(whiles),
        cmocka_unit_test(counted_loops),
        cmocka_unit_test(wide_loops),
        cmocka_unit_test(carried_tensors),
        cmocka_unit_test(block_pointers),
        cmocka_unit_test(maps),
        cmocka_unit_test(element_control),
        cmocka_unit_test(refusals),
        cmocka_unit_test(mixtures),
        cmocka_unit_test(carried_predicates),
        cmocka_unit_test(combined_by_loops),
        cmocka_unit_test(doubling_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
