/* How much of what the blocks access is the same: the parts of their sectors that L1 has, and that
 * memory must deliver.
 *
 * The address of the first instruction of each operation is evaluated in neighbouring programs, in
 * the first and in the last iteration of its loops:
 *
 *     footprint   bytes from the lowest address to the highest one
 *     distinct    different addresses in the first iterations / programs
 *     again       the same addresses as those of an earlier operation, in each program
 *
 * What several blocks access is delivered by memory once, and by L2 to the others. So memory
 * delivers the least of
 *
 *     all sectors;  the footprint;  the distinct part of those of the longest programs
 *
 * What a block loads again is in L1 if that is large enough for what the resident blocks load in
 * between; otherwise in L2, but for the part that the resident blocks displace there. An address
 * that the arguments do not determine, a gathered one, counts as different in each program, but
 * for those along an axis of the grid that it does not depend on (slices.c). */
#include "internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PROGRAMS = 4096, MOST_LAST = 256, MOST_COORDINATES = 5, MOST_THREADS = 8 };

/* L1 and shared memory have the same bytes; a block has 1024 of them in addition to its own. */
static const double L1_BYTES = 256 * 1024, BLOCK_BYTES = 1024;

typedef struct range {
    uint64_t lowest, highest;
} range;

/* The first instruction of an operation: the others access other parts of the same tile. */
typedef struct site {
    const lilac_simt_instruction *instruction;
    uint64_t *addresses;            /* hashes, by program */
    range ranges[MOST_COORDINATES]; /* of the address, or of the coordinates of a tensor copy */
    bool unknown, seen;
} site;

typedef struct traffic {
    lilac_explanation *e;
    explain_walker walker;
    site *sites; /* by number of the operation, minus 1 */
    uint32_t programs, program;
    bool first; /* iterations are visited, not the last ones */
} traffic;

/* ---- addresses ---------------------------------------------------------------------------- */

static void extend(range *r, uint64_t value) {
    r->lowest = value < r->lowest ? value : r->lowest;
    r->highest = value > r->highest ? value : r->highest;
}

/* What an instruction adds to its address. */
static uint64_t offset_of(const lilac_simt_instruction *i) {
    return (uint64_t)(i->code == LILAC_SIMT_OP_CP_ASYNC ? i->payload.copy.source : i->immediate);
}

/* The map of the launch that an operand is; NULL: it is none. */
static const lilac_tensor_map *map_of(const traffic *t, lilac_simt_value value) {
    const lilac_simt_instruction *made = t->e->kernel->values[value].definition;
    const bool is_parameter = made != NULL && made->code == LILAC_SIMT_OP_PARAM;
    const lilac_tensor_map *map = is_parameter ? &t->e->maps[made->immediate] : NULL;
    return map != NULL && map->rank > 0 ? map : NULL;
}

static uint64_t stride_of(const lilac_tensor_map *map, uint32_t dimension) {
    return dimension == 0 ? lilac_tensor_element_bytes(map->element) : map->strides[dimension - 1];
}

/* Notes the address, or the coordinates; returns a hash of them: of the first element of a box, if
 * the map is known. A coordinate has 32 bits, and an address 64; that of a tensor map which the
 * kernel makes is the same for all. */
static uint64_t note_address(traffic *t, site *s) {
    const lilac_simt_instruction *i = s->instruction;
    const bool tensor = explain_is_tensor_copy(i);
    /* The last operand of a load is the address of its mbarrier. */
    const uint32_t end = i->operand_count - (i->code == LILAC_SIMT_OP_CP_TENSOR_LOAD);
    const lilac_tensor_map *map = NULL;
    uint64_t hash = 0, first = 0, bits;
    uint32_t coordinates = 0;
    bool found = false;
    for (uint32_t k = 0; k < end && !(found && !tensor); k++) {
        const uint8_t type = t->e->kernel->values[i->operands[k]].type;
        const bool address = type == LILAC_SIMT_I64;
        if (!address && !(found && type == LILAC_SIMT_I32)) {
            continue;
        }
        if (!lilac_simt_evaluation_get(&t->walker.values, i->operands[k], &bits)) {
            s->unknown |= address != tensor;
        } else {
            bits += address && !tensor ? offset_of(i) : 0;
            if (address) {
                map = map_of(t, i->operands[k]);
                first = map != NULL ? map->address : bits;
            } else if (map != NULL) {
                first += (uint64_t)(int32_t)bits * stride_of(map, coordinates);
            }
            hash = lilac_hash_word(bits, hash + k);
            if (address != tensor && coordinates < MOST_COORDINATES) {
                extend(&s->ranges[coordinates], bits);
            }
        }
        coordinates += address != tensor;
        found |= address;
    }
    return tensor && map == NULL ? hash : lilac_hash_word(first, 0);
}

static void visit(explain_walker *w, const explain_item *item) {
    traffic *t = w->user;
    site *s = &t->sites[item->number - 1];
    if (s->instruction != item->instruction || s->seen) {
        return;
    }
    const uint64_t hash = note_address(t, s);
    s->seen = true;
    if (t->first) {
        s->addresses[t->program] = hash;
    }
}

/* The first thread, and that of each warp program. */
static uint32_t list_threads(const traffic *t, uint32_t *threads) {
    uint32_t count = 1;
    threads[0] = 0;
    for (uint32_t k = 0; k < t->walker.count; k++) {
        const lilac_simt_instruction *i = t->walker.items[k].instruction;
        for (uint32_t b = 0; b < i->body_count && count < MOST_THREADS; b++) {
            const lilac_simt_body *body = i->bodies[b];
            if (body->end_warp > 0 && body->first_warp > 0) {
                threads[count++] = body->first_warp * t->e->compilation.target.arch->warp_size;
            }
        }
    }
    return count;
}

static void visit_programs(traffic *t, uint64_t all) {
    uint32_t threads[MOST_THREADS];
    const uint32_t thread_count = list_threads(t, threads);
    const uint32_t count = t->first ? t->programs : min_u32(t->programs, MOST_LAST);
    for (t->program = 0; t->program < count; t->program++) {
        const uint64_t number =
            t->first ? t->program : t->program * (all - 1) / max_u32(count - 1, 1);
        for (uint32_t k = 0; k < t->e->count; k++) {
            t->sites[k].seen = false;
        }
        for (uint32_t k = 0; k < thread_count; k++) {
            explain_walk(&t->walker, number, threads[k], t->first ? 0 : 1);
        }
    }
}

/* ---- results ------------------------------------------------------------------------------ */

static int compare(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Different addresses, for each program. */
static double distinct_part(const traffic *t, const site *s) {
    uint64_t *list = lilac_arena_array(t->e->arena, uint64_t, t->programs);
    uint32_t different = 0;
    memcpy(list, s->addresses, t->programs * sizeof *list);
    qsort(list, t->programs, sizeof *list, compare);
    for (uint32_t i = 0; i < t->programs; i++) {
        different += i == 0 || list[i] != list[i - 1];
    }
    return (double)different / t->programs;
}

/* Sectors from the lowest address to the highest one; of a tensor copy, those of the boxes between
 * the lowest coordinates and the highest ones. */
static double footprint_sectors(const traffic *t, const site *s, uint32_t index) {
    const lilac_explanation *e = t->e;
    const double sector = e->compilation.target.arch->sector_bytes;
    if (!explain_is_tensor_copy(s->instruction)) {
        return ((double)(s->ranges[0].highest - s->ranges[0].lowest) + e->span[index]) / sector;
    }
    const lilac_tile_op *op = e->operations[index].op;
    const lilac_tile_type *box = op->operands[0].value->type->element; /* of the descriptor */
    double sectors = e->traffic[index];
    for (uint32_t k = 0; box != NULL && k < box->rank && k < MOST_COORDINATES; k++) {
        const int64_t length =
            (int64_t)(uint32_t)s->ranges[k].highest - (int64_t)(uint32_t)s->ranges[k].lowest;
        const int64_t size = box->shape[box->rank - 1 - k];
        sectors *= (double)(length + size) / (double)size;
    }
    return sectors;
}

static bool loads(const lilac_simt_instruction *i) {
    return i->code == LILAC_SIMT_OP_LD_GLOBAL || i->code == LILAC_SIMT_OP_CP_ASYNC ||
           i->code == LILAC_SIMT_OP_CP_TENSOR_LOAD;
}

/* Blocks store different results. */
static bool stores(const lilac_simt_instruction *i) {
    return i->code == LILAC_SIMT_OP_ST_GLOBAL || i->code == LILAC_SIMT_OP_CP_TENSOR_STORE ||
           i->code == LILAC_SIMT_OP_CP_BULK_STORE;
}

/* The number of an earlier operation that loads the same; 0: there is none. */
static uint32_t loaded_before(const traffic *t, uint32_t index) {
    const site *one = &t->sites[index];
    for (uint32_t k = 0; k < index && loads(one->instruction) && !one->unknown; k++) {
        const site *before = &t->sites[k];
        if (before->instruction != NULL && loads(before->instruction) && !before->unknown &&
            t->e->traffic[k] == t->e->traffic[index] &&
            memcmp(before->addresses, one->addresses, t->programs * sizeof *one->addresses) == 0) {
            return k + 1;
        }
    }
    return 0;
}

static void note_results(traffic *t) {
    lilac_explanation *e = t->e;
    for (uint32_t k = 0; k < e->count; k++) {
        const site *s = &t->sites[k];
        if (s->instruction == NULL) {
            continue;
        }
        if (s->unknown) {
            e->distinct[k] = explain_varying_part(e, k);
            continue;
        }
        e->distinct[k] = distinct_part(t, s);
        e->footprint[k] = stores(s->instruction) ? HUGE_VAL : footprint_sectors(t, s, k);
        e->again[k] = loaded_before(t, k);
    }
}

void explain_find_traffic(lilac_explanation *e) {
    const uint32_t *grid = e->options.launch.grid;
    const uint64_t all = (uint64_t)grid[0] * grid[1] * grid[2];
    traffic t = {.e = e, .programs = (uint32_t)(all < MOST_PROGRAMS ? all : MOST_PROGRAMS)};
    for (uint32_t i = 0; i < e->count; i++) {
        e->share[i] = e->distinct[i] = 1;
        e->footprint[i] = HUGE_VAL;
    }
    if (all == 0) {
        return;
    }
    explain_walker_init(&t.walker, e);
    t.walker.access = visit;
    t.walker.user = &t;
    t.sites = lilac_arena_array(e->arena, site, e->count + 1);
    for (uint32_t k = 0; k < t.walker.count; k++) {
        const explain_item *item = &t.walker.items[k];
        site *s = &t.sites[item->number > 0 ? item->number - 1 : e->count];
        if (item->number > 0 && s->instruction == NULL) {
            s->instruction = item->instruction;
            s->addresses = lilac_arena_array(e->arena, uint64_t, t.programs);
            for (uint32_t c = 0; c < MOST_COORDINATES; c++) {
                s->ranges[c] = (range){UINT64_MAX, 0};
            }
        }
    }
    t.first = true;
    visit_programs(&t, all);
    t.first = false;
    visit_programs(&t, all);
    note_results(&t);
    explain_walker_clear(&t.walker);
}

/* ---- caches ------------------------------------------------------------------------------- */

/* The part that is displaced from a cache by `bytes` of accesses: none up to `first` of its size,
 * all from `last` on. */
static double displaced(double bytes, double size, double first, double last) {
    const double part = (bytes / size - first) / (last - first);
    return part < 0 ? 0 : part > 1 ? 1 : part;
}

static bool uses_l1(const lilac_explanation *e, uint32_t index) {
    return e->operations[index].op->code == LILAC_TILE_OP_TT_LOAD;
}

/* Bytes that resident blocks of a multiprocessor load through L1 between two loads of the same: in
 * an iteration of their loop, or in all. What several blocks load counts once. */
static double bytes_in_l1(const lilac_explanation *e, uint32_t index) {
    const uint32_t loop = e->operations[index].loop, resident = e->budget.resident_blocks;
    const bool near = e->again[index] > 0 && loop == e->operations[e->again[index] - 1].loop;
    double sectors = 0;
    for (uint32_t i = 0; i < e->count; i++) {
        const double blocks = e->share[i] * resident;
        if (uses_l1(e, i) && e->again[i] == 0 && (!near || e->operations[i].loop == loop)) {
            sectors += (near ? 1 : e->executions[i]) * e->traffic[i] * (blocks > 1 ? blocks : 1);
        }
    }
    return sectors * e->compilation.target.arch->sector_bytes;
}

/* Bytes that a block accesses in L2 between two loads of the same. */
static double bytes_in_l2(const lilac_explanation *e, uint32_t index) {
    const uint32_t loop = e->operations[index].loop;
    const bool near = loop == e->operations[e->again[index] - 1].loop;
    double sectors = 0;
    for (uint32_t i = 0; i < e->count; i++) {
        if (e->again[i] == 0 && (!near || e->operations[i].loop == loop)) {
            sectors += (near ? 1 : e->executions[i]) * e->traffic[i] * e->share[i];
        }
    }
    return sectors * e->compilation.target.arch->sector_bytes;
}

/* The part of a load's sectors that L1 has: what the block has loaded before, or another one on the
 * same multiprocessor. */
static double cached_part(const lilac_explanation *e, uint32_t index, double l1) {
    const double repeats = 1 / (e->share[index] * EXPLAIN_MULTIPROCESSORS);
    const double again = e->again[index] > 0 ? 1 : repeats > 1 ? 1 - 1 / repeats : 0;
    return uses_l1(e, index) && l1 > 0 && again > 0
               ? again * (1 - displaced(bytes_in_l1(e, index), l1, 0.8, 1.2))
               : 0;
}

/* `share` and `cached`, from executions and occupancy. */
void explain_find_reuse(lilac_explanation *e) {
    const uint32_t *grid = e->options.launch.grid;
    const double blocks = (double)grid[0] * grid[1] * grid[2] * e->compilation.target.num_ctas;
    const double resident = e->budget.resident_blocks;
    const double device = resident * EXPLAIN_MULTIPROCESSORS;
    const double l1 = L1_BYTES - resident * (e->budget.shared_bytes + BLOCK_BYTES);
    const double longest = explain_imbalance(e);
    for (uint32_t i = 0; i < e->count; i++) {
        const double all = blocks * e->executions[i] * e->traffic[i];
        if (all > 0 && e->again[i] == 0) {
            double unique = all < e->footprint[i] ? all : e->footprint[i];
            unique =
                e->distinct[i] * longest * all < unique ? e->distinct[i] * longest * all : unique;
            e->share[i] = unique / all;
        }
    }
    for (uint32_t i = 0; i < e->count; i++) {
        e->cached[i] = cached_part(e, i, l1);
        if (e->again[i] > 0) {
            e->share[i] = e->share[e->again[i] - 1] * (1 - e->cached[i]) *
                          displaced(bytes_in_l2(e, i) * (blocks < device ? blocks : device),
                                    EXPLAIN_L2_BYTES, 0.5, 1);
        }
    }
}
