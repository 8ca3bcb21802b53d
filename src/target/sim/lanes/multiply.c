/* Numerics of matrix instructions, and mma (multiply.h). */
#include "lanes/multiply.h"

#include "block.h"
#include "lanes/number.h"

/* ---- elements --------------------------------------------------------------------------- */

double lilac_sim_matrix_number(lilac_matrix_type type, uint64_t bits) {
    switch (type) {
    case LILAC_MATRIX_F16:
        return (double)float_of_half((uint16_t)bits);
    case LILAC_MATRIX_BF16:
        return (double)float_of_bfloat((uint16_t)bits);
    case LILAC_MATRIX_TF32:
        return (double)float_of_bits((uint32_t)bits & ~UINT32_C(0x1FFF));
    case LILAC_MATRIX_F32:
        return (double)float_of_bits((uint32_t)bits);
    case LILAC_MATRIX_F64:
        return double_of_bits(bits);
    case LILAC_MATRIX_E4M3:
        return lilac_scalar_decode(LILAC_F8E4M3FN, bits & 0xFF);
    case LILAC_MATRIX_E5M2:
        return lilac_scalar_decode(LILAC_F8E5M2, bits & 0xFF);
    case LILAC_MATRIX_S8:
        return (double)(int8_t)bits;
    case LILAC_MATRIX_S32:
        return (double)(int32_t)bits;
    default: /* u8, b1 */
        return (double)(bits & (type == LILAC_MATRIX_B1 ? 1 : 0xFF));
    }
}

void lilac_sim_matrix_word(lilac_matrix_type type, uint64_t word, double *to) {
    uint32_t bits = lilac_matrix_type_bits(type), count = bits >= 32 ? 1 : 32 / bits;
    for (uint32_t k = 0; k < count; k++) {
        to[k] = lilac_sim_matrix_number(type, bits >= 32 ? word : word >> (k * bits));
    }
}

/* The bits of a sum of integers. */
static uint64_t integer_bits(double sum, bool saturate) {
    if (saturate) {
        sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
    }
    return (uint32_t)(int64_t)sum;
}

uint64_t lilac_sim_matrix_dot(const lilac_sim_matrix *m, const lilac_sim_factors *f, uint32_t row,
                              uint32_t column, uint64_t c) {
    const double *a = f->a + (size_t)row * m->shape.k, *b = f->b + (size_t)column * m->shape.k;
    double sum = 0, before = lilac_sim_matrix_number(m->shape.d, c);
    if (m->shape.d == LILAC_MATRIX_F64) {
        for (uint32_t k = 0; k < m->shape.k; k++) {
            before = fma(a[k], b[k], before);
        }
        return bits_of_double(clean_double(before));
    }
    for (uint32_t k = 0; k < m->shape.k; k++) {
        sum += a[k] * b[k];
    }
    if (m->payload->negate_a != m->payload->negate_b) {
        sum = -sum;
    }
    sum = before + sum;
    switch (m->shape.d) {
    case LILAC_MATRIX_F16:
        return half_of_double(sum);
    case LILAC_MATRIX_S32:
        return integer_bits(sum, m->payload->saturate);
    default:
        return bits_of_float(clean_float((float)sum));
    }
}

/* ---- accumulators ----------------------------------------------------------------------- */

uint64_t lilac_sim_read_accumulator(const uint8_t *registers, const uint32_t *arrays,
                                    lilac_matrix_type type, uint32_t e, uint32_t thread) {
    if (type != LILAC_MATRIX_F16) {
        return read_entry(registers + arrays[e], type == LILAC_MATRIX_F64 ? 8 : 4, thread);
    }
    return read_entry(registers + arrays[e / 2], 4, thread) >> (e % 2 * 16) & 0xFFFF;
}

void lilac_sim_write_accumulator(uint8_t *registers, const uint32_t *arrays, lilac_matrix_type type,
                                 uint32_t e, uint32_t thread, uint64_t bits) {
    if (type != LILAC_MATRIX_F16) {
        write_entry(registers + arrays[e], type == LILAC_MATRIX_F64 ? 8 : 4, thread, bits);
        return;
    }
    uint64_t other = read_entry(registers + arrays[e / 2], 4, thread);
    uint32_t shift = e % 2 * 16;
    write_entry(registers + arrays[e / 2], 4, thread,
                (other & ~(UINT64_C(0xFFFF) << shift)) | bits << shift);
}

/* ---- mma -------------------------------------------------------------------------------- */

/* The elements of A and B that the warp from thread `first` on holds. */
static void gather(const uint8_t *r, const lilac_sim_matrix *m, uint32_t first,
                   lilac_sim_factors *f) {
    uint32_t bits = lilac_matrix_type_bits(m->shape.a), width = bits == 64 ? 8 : 4;
    uint32_t each = bits >= 32 ? 1 : 32 / bits, row, word;
    for (uint32_t lane = 0; lane < 32; lane++) {
        for (uint32_t i = 0; i < m->a_count; i++) {
            lilac_matrix_a_place(m->shape.m, lane, i, &row, &word);
            lilac_sim_matrix_word(m->shape.a, read_entry(r + m->a[i], width, first + lane),
                                  f->a + (size_t)row * m->shape.k + word * each);
        }
        for (uint32_t i = 0; i < m->b_count; i++) {
            lilac_matrix_b_place(lane, i, &row, &word);
            lilac_sim_matrix_word(m->shape.b, read_entry(r + m->b[i], width, first + lane),
                                  f->b + (size_t)row * m->shape.k + word * each);
        }
    }
}

void lilac_sim_mma(lilac_sim_worker *w, const lilac_sim_step *s) {
    const lilac_sim_matrix *m = &w->program->matrices[s->access];
    uint8_t *r = w->registers;
    uint32_t elements = m->shape.m * m->shape.n / 32, row, column;
    lilac_sim_factors *f = lilac_heap_grow(NULL, sizeof *f);
    for (uint32_t warp = w->first_warp; warp < w->end_warp; warp++) {
        gather(r, m, warp * 32, f);
        for (uint32_t lane = 0; lane < 32; lane++) {
            for (uint32_t e = 0; e < elements; e++) {
                uint32_t thread = warp * 32 + lane;
                uint64_t c = lilac_sim_read_accumulator(r, m->c, m->shape.d, e, thread);
                lilac_matrix_d_place(m->shape.m, lane, e, &row, &column);
                lilac_sim_write_accumulator(r, m->d, m->shape.d, e, thread,
                                            lilac_sim_matrix_dot(m, f, row, column, c));
            }
        }
    }
    w->counters.mmas += w->end_warp - w->first_warp;
    lilac_heap_free(f);
}
