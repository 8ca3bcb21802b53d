/* What memory allows an access to do, before its tensor has a layout.
 *
 *   order     dimensions by the length of their contiguous runs, ascending or descending; of equal
 *             ones the later dimension first
 *   vectors   along one dimension, or along one whole dimension and then along the dimension whose
 *             stride is that dimension's size:
 *
 *                 p + 4·r + c,  r < 512, c < 4      0 1 2 3 | 4 5 6 7 | 8 …    one run of 2048
 *
 *   sectors   the lowest bits of a run. The run is that of order[0], and continues along another
 *             dimension where vectors do
 */
#include <lilac/access.h>
#include <lilac/bits.h>

#include <string.h>

#define THREAD_RUN_BYTES 8  /* see load_runs */
#define ALIGNED_BYTES    16 /* Triton says of no pointer that it is aligned to more */

typedef lilac_plan_global global_access;
typedef lilac_plan_global_facts access_facts;

static bool knows_stride(const access_facts *facts, uint32_t dim) {
    return facts->stride_known >> dim & 1;
}

/* The largest power of two that divides a number; 2^62 for 0. */
static int64_t power_of_two_in(int64_t value) {
    const uint64_t bits = (uint64_t)value | UINT64_C(1) << 62;
    return (int64_t)(bits & (~bits + 1));
}

/* log2 of the largest power of two that is at most `value`, which is at least 1. */
static uint8_t log2_below(int64_t value) {
    return (uint8_t)highest_bit((uint64_t)max_i64(value, 1));
}

/* ---- order and vectors ------------------------------------------------------------------ */

/* Elements in consecutive places of memory along a dimension. Those of a descending run (p - r), and of
 * a run with gaps (p + r % 49), share sectors as those of an ascending one do, but are no vectors. */
static int64_t run_along(const access_facts *facts, uint32_t dim) {
    const bool descends = knows_stride(facts, dim) && facts->stride[dim] == -1;
    const bool typical = (facts->stride_typical >> dim & 1) != 0 &&
                         (facts->stride[dim] == 1 || facts->stride[dim] == -1);
    return descends || typical ? facts->shape[dim] : facts->contiguity[dim];
}

/* The distance of neighbours along a dimension without runs, in elements; 1 if it is not known. */
static int64_t gap_along(const access_facts *facts, uint32_t dim) {
    const bool known = ((facts->stride_known | facts->stride_typical) >> dim & 1) != 0;
    if (!known || facts->contiguity[dim] > 1 || facts->stride[dim] == 0) {
        return 1;
    }
    return facts->stride[dim] < 0 ? -facts->stride[dim] : facts->stride[dim];
}

/* By what dimensions are sorted: the length of runs, below that how many elements with gaps share a
 * line. */
static int64_t reach_along(const global_access *result, const access_facts *facts, uint32_t dim) {
    const int64_t gap = gap_along(facts, dim), run = run_along(facts, dim);
    return run > 1 || gap == 1 ? run * LILAC_PLAN_LINE_BYTES
                               : LILAC_PLAN_LINE_BYTES / result->element_bytes / gap;
}

static void sort_dimensions(global_access *result, const access_facts *facts) {
    for (uint32_t i = 0; i < facts->rank; i++) {
        const uint32_t d = facts->rank - 1 - i;
        uint32_t at = i;
        while (at > 0 &&
               reach_along(result, facts, result->order[at - 1]) < reach_along(result, facts, d)) {
            result->order[at] = result->order[at - 1];
            at--;
        }
        result->order[at] = d;
    }
}

/* Elements of the widest legal vector along one dimension. */
static int64_t vector_along(const global_access *result, const access_facts *facts, uint32_t dim,
                            int64_t most) {
    int64_t elements = min_i64(facts->contiguity[dim], most);
    elements = min_i64(elements, facts->divisibility[dim] / result->element_bytes);
    if (facts->constancy != NULL) {
        elements = min_i64(elements, facts->constancy[dim]);
    }
    return elements;
}

/* Elements of the widest legal vector along all of `dim` and then along `next`; 1: there is none.
 * Along every other dimension the vectors must stay aligned. */
static int64_t vector_across(const global_access *result, const access_facts *facts, uint32_t dim,
                             uint32_t next, int64_t most) {
    const int64_t unit = result->element_bytes;
    if (dim == next || !knows_stride(facts, dim) || !knows_stride(facts, next) ||
        facts->stride[dim] != 1 || facts->stride[next] != facts->shape[dim]) {
        return 1;
    }
    int64_t elements = min_i64(most, max_i64(facts->origin, 1) / unit);
    elements = min_i64(elements, facts->shape[dim] * facts->shape[next]);
    if (facts->constancy != NULL) {
        elements = min_i64(elements, facts->shape[dim] * facts->constancy[next]);
    }
    for (uint32_t d = 0; d < facts->rank; d++) {
        if (d == dim || d == next || facts->shape[d] == 1) {
            continue;
        }
        if (!knows_stride(facts, d)) {
            return 1;
        }
        elements = min_i64(elements, power_of_two_in(facts->stride[d]));
    }
    return elements;
}

static void find_vectors(global_access *result, const access_facts *facts, int64_t most) {
    for (uint32_t d = 0; d < facts->rank; d++) {
        result->vector_bits[d] = log2_below(vector_along(result, facts, d, most));
        result->across_bits[d] = 0;
        result->next[d] = 0;
        const bool whole = result->bits[d] > 0 && result->vector_bits[d] == result->bits[d];
        for (uint32_t i = 0; whole && i < facts->rank && result->across_bits[d] == 0; i++) {
            const uint32_t next = result->order[i];
            const uint8_t bits = log2_below(vector_across(result, facts, d, next, most));
            if (bits > result->vector_bits[d]) {
                result->across_bits[d] = bits;
                result->next[d] = (uint8_t)next;
            }
        }
    }
}

/* The dimension along which vectors of order[0] continue becomes order[1]. */
static void move_next(global_access *result) {
    const uint32_t fast = result->order[0];
    for (uint32_t i = 1; result->across_bits[fast] > 0 && i < result->rank; i++) {
        if (result->order[i] == result->next[fast]) {
            result->order[i] = result->order[1];
            result->order[1] = result->next[fast];
            return;
        }
    }
}

uint32_t lilac_plan_global_widest(const lilac_plan_global *global) {
    uint32_t widest = 0;
    for (uint32_t d = 0; d < global->rank; d++) {
        widest = max_u32(widest, max_u32(global->vector_bits[d], global->across_bits[d]));
    }
    return widest;
}

/* Narrow elements that no vector covers are loaded in runs of 8 bytes per thread. Where memory has
 * two whole lines in a run, the first load of a thread's run requests both for the warp, and the
 * others find them in the cache. Lanes with neighbouring elements would request 64 bytes at a time.
 *
 * In shorter runs of memory a warp reads several: each of its loads then looks up the lines of all
 * of them for a quarter of their bytes, which prices count. Of runs of memory within a sector one load
 * brings all. Both were measured: bench/results/decisions.md. */
static void load_runs(global_access *result, const lilac_arch *arch) {
    const uint32_t fast = result->order[0];
    const int64_t vector = INT64_C(1) << result->vector_bits[fast];
    const int64_t bytes = result->run * result->element_bytes;
    result->thread_run = vector;
    result->runs_share_lines = bytes <= arch->sector_bytes || bytes >= 2 * LILAC_PLAN_LINE_BYTES;
    if (result->kind == LILAC_PLAN_LOAD && result->element_bytes < 4 &&
        result->across_bits[fast] == 0) {
        result->thread_run =
            max_i64(vector, min_i64(result->run, THREAD_RUN_BYTES / result->element_bytes));
    }
}

/* ---- sectors and lines ------------------------------------------------------------------ */

/* The dimensions along which memory is one run, at most order[0] and order[1], each with log2 of
 * its part of the run. */
typedef struct memory_run {
    uint32_t count;
    uint32_t dim[2], bits[2];
    uint64_t dims; /* the set of these dimensions */
    int64_t elements;
    bool whole; /* every part is the whole dimension, or its stride is 0 */
} memory_run;

static memory_run find_run(const global_access *result, const access_facts *facts) {
    const uint32_t fast = result->order[0], next = result->next[fast];
    memory_run run = {.count = 1, .dim = {fast, next}, .dims = UINT64_C(1) << fast};
    run.bits[0] = gap_along(facts, fast) > 1 ? result->bits[fast] : log2_below(result->run);
    run.whole = run.bits[0] == result->bits[fast] ||
                (knows_stride(facts, fast) && facts->stride[fast] == 0);
    if (result->across_bits[fast] > 0) {
        run.count = 2;
        run.bits[1] = result->bits[next];
        run.dims |= UINT64_C(1) << next;
    }
    run.elements = INT64_C(1) << (run.bits[0] + run.bits[1]);
    return run;
}

/* The coordinate bits of the first `elements` of a run. */
static uint64_t bits_within(const global_access *result, const memory_run *run, int64_t elements) {
    uint32_t left = elements > 1 ? log2_below(elements) : 0;
    uint64_t mask = 0;
    for (uint32_t i = 0; i < run->count; i++) {
        const uint32_t here = min_u32(left, run->bits[i]);
        mask |= low_bits(here) << result->start[run->dim[i]];
        left -= here;
    }
    return mask;
}

/* Whether all addresses are different for different coordinates along `dims`, and no run of
 * `reached` elements meets another. */
static bool strides_are_injective(const global_access *result, const access_facts *facts,
                                  uint64_t dims, int64_t reached) {
    while (dims != 0) {
        uint32_t least = lowest_bit(dims);
        for (uint64_t rest = dims; rest != 0; rest &= rest - 1) {
            const uint32_t d = lowest_bit(rest);
            least = facts->stride[d] < facts->stride[least] ? d : least;
        }
        if (facts->stride[least] < reached ||
            facts->stride[least] > INT64_MAX >> result->bits[least]) {
            return false;
        }
        reached = facts->stride[least] << result->bits[least];
        dims &= ~(UINT64_C(1) << least);
    }
    return true;
}

/* Whether the facts prove that runs start at multiples of `bytes` and that no two of them share
 * such a piece of memory. */
static bool runs_are_separate(const global_access *result, const access_facts *facts,
                              const memory_run *run, int64_t bytes) {
    const uint32_t fast = result->order[0];
    uint64_t others = 0;
    if (!run->whole ||
        (run->elements > 1 && (!knows_stride(facts, fast) || facts->stride[fast] != 1))) {
        return false;
    }
    for (uint32_t d = 0; d < facts->rank; d++) {
        if ((run->dims >> d & 1) != 0 || result->bits[d] == 0) {
            continue;
        }
        if (!knows_stride(facts, d) ||
            power_of_two_in(facts->stride[d]) < bytes / result->element_bytes) {
            return false;
        }
        others |= facts->stride[d] == 0 ? 0 : UINT64_C(1) << d;
    }
    const bool one = run->elements == 1 && others == 0;
    return one || (facts->origin % bytes == 0 &&
                   strides_are_injective(result, facts, others, run->elements));
}

static void find_pieces(global_access *result, const access_facts *facts, const lilac_arch *arch) {
    const memory_run run = find_run(result, facts);
    const int64_t unit = result->element_bytes * gap_along(facts, result->order[0]);
    result->sector = bits_within(result, &run, arch->sector_bytes / unit);
    result->line = bits_within(result, &run, LILAC_PLAN_LINE_BYTES / unit);
    result->line_pair = bits_within(result, &run, 2 * LILAC_PLAN_LINE_BYTES / unit);
    for (uint32_t d = 0; d < facts->rank; d++) {
        if (knows_stride(facts, d) && facts->stride[d] == 0) {
            result->same_address |= low_bits(result->bits[d]) << result->start[d];
        }
    }
    if (result->kind == LILAC_PLAN_LOAD || result->kind == LILAC_PLAN_COPY) {
        result->same_address |= facts->same_pointer;
    }
    const uint32_t fast = result->order[0];
    const bool is_long = facts->contiguity[fast] * result->element_bytes >= arch->sector_bytes;
    if (run.count == 1 && is_long && facts->divisibility[fast] < ALIGNED_BYTES) {
        result->bytes_before_run = arch->sector_bytes - (uint32_t)facts->divisibility[fast];
    }
    result->same_value = facts->same_value;
    result->exact_sectors = runs_are_separate(result, facts, &run, arch->sector_bytes);
    result->exact_lines = runs_are_separate(result, facts, &run, LILAC_PLAN_LINE_BYTES);
}

void lilac_plan_global_init(lilac_plan_global *result, lilac_plan_global_kind kind,
                            uint32_t element_bytes, uint32_t most_elements,
                            const lilac_plan_global_facts *facts, const lilac_arch *arch) {
    uint32_t start = 0;
    memset(result, 0, sizeof *result);
    result->kind = kind;
    result->element_bytes = element_bytes;
    result->rank = facts->rank;
    result->run = result->thread_run = 1;
    result->runs_share_lines = true;
    result->exact_sectors = result->exact_lines = true;
    if (facts->rank == 0) {
        return;
    }
    for (uint32_t d = 0; d < facts->rank; d++) {
        result->start[d] = (uint8_t)min_u32(start, LILAC_LAYOUT_MAX_BITS - 1);
        result->bits[d] = (uint8_t)log2_of((uint64_t)facts->shape[d]);
        start += result->bits[d];
    }
    sort_dimensions(result, facts);
    result->run = run_along(facts, result->order[0]);
    int64_t most = min_i64(arch->vector_bytes / element_bytes, LILAC_PLAN_MAX_VECTOR);
    find_vectors(result, facts, most_elements == 0 ? most : min_i64(most, most_elements));
    move_next(result);
    load_runs(result, arch);
    find_pieces(result, facts, arch);
}
