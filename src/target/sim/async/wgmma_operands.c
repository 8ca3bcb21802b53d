/* The operands of wgmma: through descriptors from shared memory, and from registers (wgmma.h). */
#include "async/wgmma.h"
#include "lanes/number.h"
#include "memory/access.h"

#include <string.h>

enum { ROW_BYTES = 32, CHUNK = 16, GROUP_THREADS = 128, ROWS = 64 };

static uint32_t row_count(const lilac_sim_matrix *m, bool b) {
    return b ? m->shape.n : ROWS;
}

/* ---- agreement -------------------------------------------------------------------------- */

/* The entry that all threads of the warpgroup have; traps where they differ. */
static bool common_entry(lilac_sim_worker *w, const lilac_sim_step *s, uint32_t array,
                         uint32_t bytes, uint32_t group, uint64_t *entry) {
    uint32_t first = group * GROUP_THREADS;
    *entry = read_entry(w->registers + array, bytes, first);
    for (uint32_t t = first + 1; t < first + GROUP_THREADS; t++) {
        if (read_entry(w->registers + array, bytes, t) != *entry) {
            return lilac_sim_worker_trap(w, TRAP_WARPGROUP, s, t);
        }
    }
    return true;
}

bool lilac_sim_operands_agree(lilac_sim_worker *w, const lilac_sim_step *s, uint32_t group,
                              uint64_t descriptors[2], bool *accumulate) {
    const lilac_sim_matrix *m = &w->program->matrices[s->access];
    uint64_t bit = 0;
    descriptors[0] = 0;
    bool good = (m->payload->registers || common_entry(w, s, m->a[0], 8, group, &descriptors[0])) &&
                common_entry(w, s, m->b[0], 8, group, &descriptors[1]) &&
                common_entry(w, s, m->accumulate, 1, group, &bit);
    *accumulate = bit != 0;
    return good;
}

/* ---- shared memory ---------------------------------------------------------------------- */

/* One operand in shared memory. */
typedef struct source {
    lilac_matrix_descriptor descriptor;
    uint32_t bits, rows;
    bool transposed;
    uint8_t *to; /* rows of 32 bytes along k */
} source;

/* Chunk number c of 16 contiguous bytes: its row or piece of 8 rows, and its k. */
static void chunk_place(const source *from, uint32_t c, uint32_t *row, uint32_t *k) {
    if (from->transposed) {
        *row = c / 16 * 8;
        *k = c % 16;
    } else {
        *row = c / 2;
        *k = c % 2 * (CHUNK * 8 / from->bits);
    }
}

/* Moves a chunk to where its elements are in rows along k. */
static void move_chunk(const source *from, uint32_t row, uint32_t k, const uint8_t *bytes) {
    if (!from->transposed) {
        memcpy(from->to + (size_t)row * ROW_BYTES + k * from->bits / 8, bytes, CHUNK);
        return;
    }
    for (uint32_t e = 0; e < 8; e++) { /* elements of 16 bits along the rows */
        memcpy(from->to + (size_t)(row + e) * ROW_BYTES + 2 * k, bytes + 2 * e, 2);
    }
}

/* The accounts of 16-byte chunks that all warps of the warpgroup read. */
static void account(lilac_sim_worker *w, const lilac_sim_step *s, lilac_sim_active *lanes,
                    uint32_t group, bool first, bool *proxied) {
    for (uint32_t warp = 0; warp < LILAC_SIM_GROUP_WARPS; warp++) {
        for (uint32_t l = 0; l < lanes->count; l++) {
            lanes->thread[l] = group * GROUP_THREADS + warp * 32;
        }
        for (uint32_t l = 0; l < lanes->count && first && *proxied; l++) {
            *proxied = lilac_sim_proxies_access(w, s, lanes->thread[l], lanes->address[l], CHUNK);
        }
        lilac_sim_account_shared(w, s, lanes, CHUNK, true);
    }
    lanes->count = 0;
}

/* Findings about a swizzled operand: its start is not where the base offset says that the pattern
 * begins, or its groups of 8 rows overlap. */
static void check_descriptor(lilac_sim_worker *w, const lilac_sim_step *s, const source *from,
                             bool in_b) {
    const lilac_matrix_descriptor *d = &from->descriptor;
    const lilac_simt_group operand = lilac_simt_group_of(s->source, in_b ? 2 : 1);
    const uint32_t span = lilac_matrix_swizzle_bytes(d->swizzle);
    const uint32_t row = d->start >> 7 & (span / CHUNK - 1);
    lilac_sim_finding finding = {
        .at = s->source,
        .other = w->program->kernel->values[operand.values[0]].definition,
        .block = w->block,
    };
    if (d->swizzle == LILAC_MATRIX_SWIZZLE_NONE) {
        return;
    }
    if (row != (d->base_offset & (span / CHUNK - 1))) {
        finding.kind = FINDING_WGMMA_BASE;
        finding.address = row;
        finding.width = d->base_offset;
        w->counters.races++;
        lilac_sim_worker_find(w, finding);
    }
    if (d->stride < 8 * span) {
        finding.kind = FINDING_WGMMA_STRIDE;
        finding.address = d->stride;
        finding.width = 8 * span;
        w->counters.races++;
        lilac_sim_worker_find(w, finding);
    }
}

static bool trap_at(lilac_sim_worker *w, const lilac_sim_step *s, lilac_sim_trap_kind kind,
                    uint64_t address, uint32_t group) {
    w->trap.global = false;
    w->trap.rank = w->rank;
    w->trap.address = address;
    w->trap.size = CHUNK;
    return lilac_sim_worker_trap(w, kind, s, group * GROUP_THREADS);
}

static bool read_shared(lilac_sim_worker *w, const lilac_sim_step *s, const source *from,
                        uint32_t group, bool first) {
    const lilac_simt_instruction *product = s->source;
    lilac_sim_active lanes = {.count = 0};
    bool proxied = true;
    for (uint32_t c = 0; c < 2 * from->rows; c++) {
        uint32_t row, k;
        chunk_place(from, c, &row, &k);
        uint64_t address = lilac_matrix_descriptor_address(&from->descriptor, from->bits,
                                                           from->transposed, row, k);
        if (w->shared.size < CHUNK || address > w->shared.size - CHUNK) {
            return trap_at(w, s, TRAP_SHARED_BOUNDS, address, group);
        }
        if (product->shared_end > 0 &&
            (address < product->shared_begin || address + CHUNK > product->shared_end)) {
            return trap_at(w, s, TRAP_INTERVAL, address, group);
        }
        address += (uint64_t)w->rank * w->shared.stride;
        move_chunk(from, row, k, w->shared.bytes + address);
        lanes.address[lanes.count] = address;
        lanes.host[lanes.count++] = w->shared.bytes + address;
        if (lanes.count == MAX_LANES) {
            account(w, s, &lanes, group, first, &proxied);
        }
    }
    if (lanes.count > 0) {
        account(w, s, &lanes, group, first, &proxied);
    }
    if (first) {
        w->counters.wgmma_bytes += (uint64_t)from->rows * ROW_BYTES;
    }
    return true;
}

/* ---- registers -------------------------------------------------------------------------- */

static void read_registers(const lilac_sim_worker *w, const lilac_sim_matrix *m, uint32_t group,
                           uint8_t *to) {
    for (uint32_t t = 0; t < GROUP_THREADS; t++) {
        for (uint32_t i = 0; i < m->a_count; i++) {
            uint32_t row, word;
            lilac_matrix_a_place(16, t % 32, i, &row, &word);
            uint32_t bits =
                (uint32_t)read_entry(w->registers + m->a[i], 4, group * GROUP_THREADS + t);
            memcpy(to + (size_t)(row + t / 32 * 16) * ROW_BYTES + word * 4, &bits, sizeof bits);
        }
    }
}

bool lilac_sim_operands_read(lilac_sim_worker *w, const lilac_sim_step *s,
                             const uint64_t descriptors[2], uint32_t group, bool first,
                             lilac_sim_operands *to) {
    const lilac_sim_matrix *m = &w->program->matrices[s->access];
    const lilac_simt_matrix_payload *p = m->payload;
    for (uint32_t b = 0; b < 2; b++) {
        if (b == 0 && p->registers) {
            read_registers(w, m, group, to->bytes);
            continue;
        }
        source from = {.descriptor = lilac_matrix_descriptor_decode(descriptors[b]),
                       .bits = lilac_matrix_type_bits(m->shape.a),
                       .rows = row_count(m, b),
                       .transposed = b ? p->transpose_b : p->transpose_a,
                       .to = to->bytes + b * ROWS * ROW_BYTES};
        if (first) {
            check_descriptor(w, s, &from, b);
        }
        if (!read_shared(w, s, &from, group, first)) {
            return false;
        }
    }
    return true;
}

bool lilac_sim_operands_differ(const lilac_sim_matrix *m, const lilac_sim_operands *a,
                               const lilac_sim_operands *b, bool *in_b, uint32_t *at) {
    uint32_t bytes = (ROWS + m->shape.n) * ROW_BYTES;
    for (uint32_t k = 0; k < bytes; k++) {
        if (a->bytes[k] != b->bytes[k]) {
            *in_b = k >= ROWS * ROW_BYTES;
            *at = *in_b ? k - ROWS * ROW_BYTES : k;
            return true;
        }
    }
    return false;
}

/* ---- the product ------------------------------------------------------------------------ */

static void decode(lilac_matrix_type type, const uint8_t *bytes, uint32_t rows, double *to) {
    uint32_t each = 32 / lilac_matrix_type_bits(type); /* elements of a word */
    for (uint32_t k = 0; k < rows * 8; k++) {
        uint32_t word;
        memcpy(&word, bytes + 4 * (size_t)k, sizeof word);
        lilac_sim_matrix_word(type, word, to + (size_t)k * each);
    }
}

void lilac_sim_operands_multiply(const lilac_sim_matrix *m, const lilac_sim_operands *operands,
                                 uint32_t (*accumulators)[128]) {
    lilac_sim_factors *f = lilac_heap_grow(NULL, sizeof *f);
    uint32_t pair = m->shape.d == LILAC_MATRIX_F16 ? 2 : 1, row, column;
    decode(m->shape.a, operands->bytes, ROWS, f->a);
    decode(m->shape.b, operands->bytes + ROWS * ROW_BYTES, m->shape.n, f->b);
    for (uint32_t t = 0; t < GROUP_THREADS; t++) {
        for (uint32_t e = 0; e < m->d_count * pair; e++) {
            uint32_t *word = &accumulators[e / pair][t], shift = e % pair * 16;
            uint32_t mask = (pair == 2 ? UINT32_C(0xFFFF) : UINT32_MAX) << shift;
            lilac_matrix_d_place(16, t % 32, e, &row, &column);
            uint64_t c = operands->accumulate ? (*word & mask) >> shift : 0;
            uint64_t d = lilac_sim_matrix_dot(m, f, row + t / 32 * 16, column, c);
            *word = (*word & ~mask) | (uint32_t)d << shift;
        }
    }
    lilac_heap_free(f);
}
