/* Fragments and descriptors of matrix instructions against the library's named layouts, which have
 * another source (Triton's definitions): every element of every instruction is at the same place. */

#include <lilac/encoding.h>
#include <lilac/matrix.h>

#include "support/test.h"

/* Where the encoding has register r of a lane and a warp. */
static void place_of(const lilac_layout *layout, uint32_t r, uint32_t lane, uint32_t warp,
                     uint32_t place[2]) {
    uint32_t lanes = lilac_layout_in_start(layout, (uint32_t)lilac_layout_in(layout, "lane"));
    uint32_t warps = lilac_layout_in_start(layout, (uint32_t)lilac_layout_in(layout, "warp"));
    uint64_t flat =
        lilac_layout_apply(layout, r | (uint64_t)lane << lanes | (uint64_t)warp << warps);
    place[0] = (uint32_t)lilac_layout_coordinate(layout, flat, 0);
    place[1] = (uint32_t)lilac_layout_coordinate(layout, flat, 1);
}

typedef struct fixture {
    lilac_context *context;
    lilac_encoding mma, dot;
    lilac_layout layout;
} fixture;

static void set_layout(fixture *f, const lilac_encoding *encoding, uint32_t rows,
                       uint32_t columns) {
    const int64_t shape[] = {rows, columns};
    if (!lilac_encoding_layout(f->context, &f->layout, encoding, 2, shape)) {
        fail_msg("%s", lilac_diagnostics(f->context)->message);
    }
}

static void check_d(fixture *f, const lilac_matrix_shape *s, uint32_t warps, uint32_t rows) {
    set_layout(f, &f->mma, s->m, s->n);
    assert_int_equal(1 << lilac_layout_in_bits(&f->layout, "register"), rows * s->n / 32);
    for (uint32_t t = 0; t < 32 * warps; t++) {
        for (uint32_t e = 0; e < rows * s->n / 32; e++) {
            uint32_t wanted[2], row, column;
            place_of(&f->layout, e, t % 32, t / 32, wanted);
            lilac_matrix_d_place(rows, t % 32, e, &row, &column);
            assert_int_equal(row + t / 32 * rows, wanted[0]);
            assert_int_equal(column, wanted[1]);
        }
    }
}

/* A or B (operand 0 or 1) from registers. */
static void check_operand(fixture *f, const lilac_matrix_shape *s, uint32_t operand, uint32_t warps,
                          uint32_t rows) {
    uint32_t bits = lilac_matrix_type_bits(s->a), each = bits >= 32 ? 1 : 32 / bits;
    lilac_encoding_dot_operand(&f->dot, operand, &f->mma, each);
    set_layout(f, &f->dot, operand ? s->k : s->m, operand ? s->n : s->k);
    uint32_t count =
        operand ? lilac_matrix_b_registers(s, 32) : lilac_matrix_a_registers(s, 32 * warps);
    for (uint32_t t = 0; t < 32 * warps; t++) {
        for (uint32_t r = 0; r < count * each; r++) {
            uint32_t wanted[2], outer, word;
            place_of(&f->layout, r, t % 32, t / 32, wanted);
            if (operand) {
                lilac_matrix_b_place(t % 32, r / each, &outer, &word);
            } else {
                lilac_matrix_a_place(rows, t % 32, r / each, &outer, &word);
            }
            assert_int_equal(word * each + r % each, wanted[!operand]);
            assert_int_equal(outer + (operand ? 0 : t / 32 * rows), wanted[operand]);
        }
    }
}

static void test_fragments_of_mma(void **state) {
    (void)state;
    const lilac_mma *row;
    for (size_t r = 0; (row = lilac_mma_at(r)) != NULL; r++) {
        fixture f = {.context = lilac_context_create()};
        const lilac_matrix_shape s = {row->kind, row->kind, row->d, row->m, row->n, row->k};
        const uint32_t warps[] = {1, 1}, instr[] = {row->m, row->n};
        lilac_encoding_nvidia_mma(&f.mma, 2, 0, 2, warps, instr);
        check_d(&f, &s, 1, row->m);
        check_operand(&f, &s, 0, 1, row->m);
        check_operand(&f, &s, 1, 1, row->m);
        lilac_context_destroy(f.context);
    }
}

static void test_fragments_of_wgmma(void **state) {
    (void)state;
    const lilac_wgmma *row;
    for (size_t r = 0; (row = lilac_wgmma_at(r)) != NULL; r++) {
        for (uint32_t n = 8; n <= 256; n *= 2) {
            fixture f = {.context = lilac_context_create()};
            const lilac_matrix_shape s = {row->kind, row->kind, row->d, 64, n, row->k};
            const uint32_t warps[] = {4, 1}, instr[] = {16, n, row->k};
            lilac_encoding_nvidia_mma(&f.mma, 3, 0, 2, warps, instr);
            check_d(&f, &s, 4, 16);
            if (row->kind != LILAC_MATRIX_B1) { /* Triton has no operand of single bits */
                check_operand(&f, &s, 0, 4, 16);
            }
            lilac_context_destroy(f.context);
        }
    }
}

/* ---- descriptors ------------------------------------------------------------------------ */

/* A matrix in shared memory: `outer` rows (or columns of B) by `k`, in the layout nvmma_shared. */
typedef struct tile {
    uint32_t span, bits, outer, k; /* span: bytes of the swizzle, 0: none */
    bool transposed;               /* outer is contiguous */
} tile;

static lilac_matrix_swizzle swizzle_of(uint32_t span) {
    return span == 128  ? LILAC_MATRIX_SWIZZLE_128
           : span == 64 ? LILAC_MATRIX_SWIZZLE_64
           : span == 32 ? LILAC_MATRIX_SWIZZLE_32
                        : LILAC_MATRIX_SWIZZLE_NONE;
}

/* The descriptor of the tile's instruction at element (outer, k) of its corner, packed:
 * groups of 8 rows one behind the other, then columns of the swizzle's width. */
static lilac_matrix_descriptor descriptor_of(const tile *t, uint32_t outer, uint32_t k) {
    uint32_t width = t->span ? t->span : 16, group = 8 * width;
    uint32_t contiguous = width * 8 / t->bits; /* elements of a row of the pattern */
    lilac_matrix_descriptor d = {.swizzle = swizzle_of(t->span)};
    uint32_t along = t->transposed ? outer : k, across = t->transposed ? k : outer;
    uint32_t column = (t->transposed ? t->k : t->outer) / 8 * group; /* bytes */
    d.start = along / contiguous * column + along % contiguous * t->bits / 8 + across / 8 * group;
    bool plain = t->span == 0;
    d.stride = plain && t->transposed ? column : group;
    d.leading = plain && t->transposed ? group : column;
    return d;
}

/* Without a swizzle, nvmma_shared is plain rows: the tile is columns of 16 bytes, each of them an
 * nvmma_shared of its own. With one, all of it is. */
static void check_tile(const tile *t) {
    lilac_context *context = lilac_context_create();
    lilac_encoding shared;
    lilac_layout layout;
    int64_t shape[] = {t->outer, t->k};
    if (t->span == 0) {
        shape[!t->transposed] = 128 / t->bits;
    }
    lilac_encoding_nvmma_shared(&shared, 2, t->span, t->transposed, t->bits, false);
    if (!lilac_encoding_layout(context, &layout, &shared, 2, shape)) {
        fail_msg("%s", lilac_diagnostics(context)->message);
    }
    uint32_t step = 256 / t->bits; /* k of an instruction: 32 bytes */
    uint32_t piece = t->transposed ? (t->span ? t->span : 16) * 8 / t->bits : 8;
    uint32_t each = (uint32_t)(shape[0] * shape[1]);
    for (uint32_t offset = 0; offset < t->outer * t->k; offset++) {
        uint64_t flat = lilac_layout_apply(&layout, offset % each);
        uint32_t outer = (uint32_t)lilac_layout_coordinate(&layout, flat, 0);
        uint32_t k = (uint32_t)lilac_layout_coordinate(&layout, flat, 1);
        outer += t->transposed ? offset / each * (uint32_t)shape[0] : 0;
        k += t->transposed ? 0 : offset / each * (uint32_t)shape[1];
        for (uint32_t corner = 0; corner <= outer; corner += piece) {
            lilac_matrix_descriptor d = descriptor_of(t, corner, k / step * step);
            d = lilac_matrix_descriptor_decode(lilac_matrix_descriptor_encode(&d));
            uint32_t byte = lilac_matrix_descriptor_address(&d, t->bits, t->transposed,
                                                            outer - corner, k % step);
            assert_int_equal(byte, offset * t->bits / 8);
        }
    }
    lilac_context_destroy(context);
}

static void test_descriptors_read_nvmma_shared(void **state) {
    (void)state;
    static const uint32_t spans[] = {0, 32, 64, 128};
    for (uint32_t s = 0; s < 4; s++) {
        for (uint32_t bits = 8; bits <= 32; bits *= 2) {
            uint32_t least = (spans[s] ? spans[s] : 32) * 8 / bits;
            for (uint32_t outer = 64; outer <= 256; outer *= 2) {
                for (uint32_t k = 256 / bits > least ? 256 / bits : least; k * bits <= 2048;
                     k *= 2) {
                    check_tile(&(tile){spans[s], bits, outer, k, false});
                }
                for (uint32_t k = 16; k <= 64 && bits == 16; k *= 2) {
                    check_tile(&(tile){spans[s], bits, outer, k, true});
                }
            }
        }
    }
}

/* ---- tables ----------------------------------------------------------------------------- */

static void test_rows_are_found(void **state) {
    (void)state;
    const lilac_mma *row;
    const lilac_wgmma *wide;
    for (size_t r = 0; (row = lilac_mma_at(r)) != NULL; r++) {
        lilac_matrix_shape s = {row->kind, row->kind, row->d, row->m, row->n, row->k};
        assert_ptr_equal(lilac_mma_find(&s), row);
        assert_int_equal(lilac_matrix_a_registers(&s, 32) * 32 *
                             (lilac_matrix_type_bits(s.a) == 64 ? 64 : 32),
                         s.m * s.k * lilac_matrix_type_bits(s.a));
        s.n = 16;
        assert_null(lilac_mma_find(&s));
    }
    for (size_t r = 0; (wide = lilac_wgmma_at(r)) != NULL; r++) {
        lilac_matrix_shape s = {wide->kind, wide->kind, wide->d, 64, 8, wide->k};
        assert_ptr_equal(lilac_wgmma_find(&s), wide);
        assert_int_equal(wide->k * lilac_matrix_type_bits(wide->kind), 256);
    }
    const lilac_matrix_shape mixed = {
        LILAC_MATRIX_F16, LILAC_MATRIX_BF16, LILAC_MATRIX_F32, 16, 8, 16};
    assert_null(lilac_mma_find(&mixed));
    assert_null(lilac_wgmma_find(&mixed));
}

static void test_columns(void **state) {
    (void)state;
    const lilac_matrix_shape f16 = {
        LILAC_MATRIX_F16, LILAC_MATRIX_F16, LILAC_MATRIX_F32, 64, 8, 16};
    const lilac_matrix_shape s8 = {LILAC_MATRIX_S8, LILAC_MATRIX_U8, LILAC_MATRIX_S32, 64, 8, 32};
    uint32_t floats = 0, integers = 0;
    for (uint32_t n = 0; n <= 300; n++) {
        floats += lilac_wgmma_has_columns(lilac_wgmma_find(&f16), n);
        integers += lilac_wgmma_has_columns(lilac_wgmma_find(&s8), n);
    }
    assert_int_equal(floats, 32);
    assert_int_equal(integers, 18); /* 8, 16, 24, 32, 48, …, 256 */
    assert_true(lilac_wgmma_has_columns(lilac_wgmma_find(&s8), 24));
    assert_false(lilac_wgmma_has_columns(lilac_wgmma_find(&s8), 40));
    assert_int_equal(lilac_wgmma_cycles(8), 19);
    assert_int_equal(lilac_wgmma_cycles(256), 128);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fragments_of_mma),
        cmocka_unit_test(test_fragments_of_wgmma),
        cmocka_unit_test(test_descriptors_read_nvmma_shared),
        cmocka_unit_test(test_rows_are_found),
        cmocka_unit_test(test_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
