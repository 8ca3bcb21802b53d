/* The plan of an access in a layout: vector, leader, counts, bound, price.
 *
 *   equal     a load reads elements of equal value once for each thread
 *   vector    register bits whose columns are the lowest bits of one dimension, and that no other
 *             register, lane or warp changes; as many as are legal
 *   sectors   of one instruction: the rank of the columns of the vector and of the lanes that
 *             execute it, modulo the bits within a sector. All instructions touch equally many
 *   price     traffic    sectors that the registers and lanes of a warp touch together: the parts
 *                        of a sector that one instruction leaves are in the cache for the next.
 *                        Stores add a quarter of the sectors that single instructions touch beyond
 *                        their bytes: the cache merges the parts, but each is sent. Where a warp's runs
 *                        start within sectors, other warps store the rest of these: such a sector counts
 *                        for each (bench/results/h200_divided_rows.md)
 *             issue      each instruction, and the lines that it touches beyond the fewest
 *             narrow     loads of narrow elements that no vector covers: the bytes of two lines
 *                        that the lanes do not request count as lines
 *             leader     where some warps skip the access: the predicate, the moves that define
 *                        their registers, and the further instructions of each other warp
 */
#include <lilac/access.h>
#include <lilac/bits.h>
#include <lilac/f2.h>

#include <string.h>

typedef lilac_plan_global_access plan;

/* ---- columns ---------------------------------------------------------------------------- */

/* Sets of columns are masks. A mask numbers the register bits, then the lane bits, the warp bits
 * and the block bits. */

static void read_columns(lilac_layout_columns *columns, const lilac_layout *layout,
                         const lilac_target *target) {
    lilac_layout scalar;
    lilac_layout_init(&scalar);
    lilac_layout_columns_fit(columns, layout != NULL ? layout : &scalar,
                             log2_of(target->arch->warp_size), log2_of(target->num_warps),
                             log2_of(target->num_ctas));
}

static uint32_t warp_bits(const lilac_layout_columns *columns) {
    return columns->thread_bits - columns->lane_bits;
}

static uint64_t column_at(const lilac_layout_columns *columns, uint32_t i) {
    if (i < columns->register_bits) {
        return columns->registers[i];
    }
    i -= columns->register_bits;
    return i < columns->thread_bits ? columns->threads[i]
                                    : columns->blocks[i - columns->thread_bits];
}

/* The set of the replicated registers, lanes and warps. */
static uint64_t replicated(const lilac_layout_columns *columns) {
    return (low_bits(columns->register_bits) & ~(uint64_t)columns->distinct) |
           (uint64_t)columns->free_threads << columns->register_bits;
}

/* The rank of the columns in the set `which`, modulo the coordinate bits of `modulo`. */
static uint32_t rank_modulo(const lilac_layout_columns *columns, uint64_t which, uint64_t modulo) {
    lilac_f2_basis basis;
    lilac_f2_basis_init(&basis);
    for (; which != 0; which &= which - 1) {
        (void)lilac_f2_basis_add(&basis, column_at(columns, lowest_bit(which)) & ~modulo, 0);
    }
    return lilac_f2_basis_dimension(&basis);
}

/* The register whose column is this bit, or -1. */
static int find_register(const lilac_layout_columns *columns, uint64_t bit) {
    for (uint32_t i = 0; i < columns->register_bits; i++) {
        if (columns->registers[i] == bit) {
            return (int)i;
        }
    }
    return -1;
}

uint64_t lilac_plan_own_coordinates(const lilac_layout_columns *columns) {
    uint64_t seen = 0, shared = 0;
    for (uint32_t i = 0; i < columns->register_bits; i++) {
        shared |= seen & columns->registers[i];
        seen |= columns->registers[i];
    }
    for (uint32_t i = 0; i < columns->thread_bits; i++) {
        shared |= columns->threads[i];
    }
    for (uint32_t i = 0; i < columns->block_bits; i++) {
        shared |= columns->blocks[i];
    }
    return seen & ~shared;
}

/* ---- vector ----------------------------------------------------------------------------- */

/* Adds the registers of the lowest bits of dimension `dim` to a vector, up to 2^most elements. */
static void extend_vector(plan *p, const lilac_plan_global *global,
                          const lilac_layout_columns *columns, uint64_t own, uint32_t dim,
                          uint32_t most) {
    for (uint32_t j = 0; j < global->bits[dim] && p->vector_bits < most; j++) {
        const uint64_t bit = UINT64_C(1) << (global->start[dim] + j);
        const int found = (bit & own) != 0 ? find_register(columns, bit) : -1;
        if (found < 0) {
            return;
        }
        p->vector_register[p->vector_bits++] = (uint8_t)found;
        p->vector_registers |= UINT32_C(1) << found;
    }
}

/* The widest vector; of equal ones that along the first dimension. */
static void choose_vector(plan *p, const lilac_plan_global *global,
                          const lilac_layout_columns *columns) {
    const uint64_t own = lilac_plan_own_coordinates(columns);
    for (uint32_t d = 0; d < global->rank; d++) {
        plan here = {.vector_bits = 0};
        if (max_u32(global->vector_bits[d], global->across_bits[d]) <= p->vector_bits) {
            continue;
        }
        extend_vector(&here, global, columns, own, d, global->vector_bits[d]);
        if (here.vector_bits == global->bits[d]) {
            extend_vector(&here, global, columns, own, global->next[d], global->across_bits[d]);
        }
        if (here.vector_bits > p->vector_bits) {
            p->vector_bits = here.vector_bits;
            p->vector_registers = here.vector_registers;
            memcpy(p->vector_register, here.vector_register, sizeof here.vector_register);
        }
    }
}

/* ---- who executes ----------------------------------------------------------------------- */

static void choose_leader(plan *p, const lilac_plan_global *global,
                          const lilac_layout_columns *columns, uint32_t idle) {
    p->replicated_registers = (uint32_t)low_bits(columns->register_bits) & ~columns->distinct;
    p->replicated_threads = columns->free_threads;
    p->replicated_blocks = columns->free_blocks;
    for (uint32_t i = 0; i < columns->register_bits && global->same_value != 0; i++) {
        const bool equal = (columns->registers[i] & ~global->same_value) == 0;
        p->equal_registers |= equal ? UINT32_C(1) << i : 0;
    }
    p->equal_registers &= ~(p->vector_registers | p->replicated_registers);
    p->skipped_registers = p->vector_registers | p->replicated_registers | p->equal_registers;
    if (p->kind != LILAC_PLAN_LOAD) {
        p->idle_threads = p->replicated_threads;
        p->idle_blocks = p->replicated_blocks;
    } else if (idle != LILAC_PLAN_IDLE_REPLICAS) {
        p->idle_threads = idle;
    } else if (p->replicated_threads >> columns->lane_bits != 0) {
        p->idle_threads = p->replicated_threads;
    }
}

/* Registers whose bits lead along runs that start within sectors. */
static void find_run_registers(plan *p, const lilac_plan_global *global,
                               const lilac_layout_columns *columns) {
    const uint32_t fast = global->order[0];
    const uint64_t run = (low_bits(global->bits[fast]) << global->start[fast]);
    for (uint32_t i = 0; i < columns->register_bits && global->bytes_before_run > 0; i++) {
        const bool along = columns->registers[i] != 0 && (columns->registers[i] & ~run) == 0;
        p->run_registers |= along ? UINT32_C(1) << i : 0;
    }
    p->run_registers &= p->kind == LILAC_PLAN_STORE ? ~p->skipped_registers : 0;
}

static bool reads(const plan *p) {
    return p->kind == LILAC_PLAN_LOAD || p->kind == LILAC_PLAN_COPY;
}

/* ---- counts ----------------------------------------------------------------------------- */

static uint32_t count_bits(uint64_t mask) {
    return (uint32_t)__builtin_popcountll(mask);
}

/* log2 of the warps that execute the access. */
static uint32_t executing_warps(const plan *p, const lilac_layout_columns *columns) {
    return warp_bits(columns) - count_bits(p->idle_threads >> columns->lane_bits);
}

/* The least for one block of 2^all pieces that 2^blocks blocks share. */
static uint64_t least(uint32_t all, uint32_t blocks) {
    return UINT64_C(1) << (all - min_u32(all, blocks));
}

static void count_accesses(plan *p, const lilac_plan_global *global,
                           const lilac_layout_columns *columns, const lilac_arch *arch) {
    const uint64_t lanes = low_bits(columns->lane_bits) & ~(uint64_t)p->idle_threads;
    const uint64_t together = lanes << columns->register_bits | p->vector_registers;
    const uint32_t each = columns->register_bits - count_bits(p->skipped_registers);
    const uint64_t still = global->same_address;
    p->counts.instructions = UINT64_C(1) << (each + executing_warps(p, columns));
    p->counts.sectors = p->counts.instructions
                        << rank_modulo(columns, together, global->sector | still);
    p->counts.lines = p->counts.instructions
                      << rank_modulo(columns, together, global->line | still);
    p->exact = global->exact_sectors && global->exact_lines;

    const uint32_t shared = columns->block_bits - count_bits(p->replicated_blocks);
    const uint32_t widest = lilac_plan_global_widest(global) + log2_of(arch->warp_size);
    uint32_t elements = 0;
    for (uint32_t d = 0; d < global->rank; d++) {
        elements += global->bits[d];
    }
    const uint64_t places = low_bits(elements) & ~still;
    elements -= count_bits(global->same_value);
    p->bound.instructions = least(elements - min_u32(elements, widest), shared);
    p->bound.sectors = least(count_bits(places & ~global->sector), shared);
    p->bound.lines = least(count_bits(places & ~global->line), shared);
}

/* ---- price ------------------------------------------------------------------------------ */

typedef struct pricing {
    const plan *p;
    const lilac_plan_global *global;
    const lilac_layout_columns *columns;
    const lilac_arch *arch;
    uint64_t lanes, registers; /* sets of columns */
} pricing;

/* The runs of memory that a warp stores, where the ends of runs matter. */
static uint64_t runs_of_warp(const pricing *x, uint64_t warp) {
    const lilac_plan_global *global = x->global;
    const uint32_t fast = global->order[0],
                   all = rank_modulo(x->columns, warp, global->same_address);
    uint32_t along = 0; /* bits of a run whose elements the warp has */
    while (global->bytes_before_run > 0 && along < global->bits[fast] &&
           INT64_C(1) << along < global->run) {
        const uint64_t within = low_bits(along + 1) << global->start[fast];
        if (rank_modulo(x->columns, warp, within | global->same_address) + along + 1 != all) {
            break;
        }
        along++;
    }
    return UINT64_C(1) << (all - along);
}

/* Bytes that move between the multiprocessor and the memory behind its cache. */
static uint64_t traffic(const pricing *x) {
    const uint64_t still = x->global->same_address, sector = x->arch->sector_bytes;
    const uint64_t warp = x->lanes | x->registers, distinct = ~replicated(x->columns);
    const uint32_t bits = x->columns->register_bits + x->columns->thread_bits;
    const uint32_t moved = count_bits(low_bits(bits) & distinct);
    const uint32_t of_warp = count_bits(warp & distinct);
    const uint32_t pieces = rank_modulo(x->columns, warp, x->global->sector | still);
    const uint64_t bytes = (sector << pieces) << (moved - of_warp);
    if (reads(x->p)) {
        return bytes;
    }
    const uint64_t sent = x->p->counts.sectors * sector;
    const uint64_t needed = (uint64_t)x->global->element_bytes << moved;
    const uint64_t divided = runs_of_warp(x, warp) * x->global->bytes_before_run
                             << (moved - of_warp);
    return bytes + divided + (sent > needed ? (sent - needed) / 4 : 0);
}

/* A load of 16 bytes is executed for a quarter of the lanes at a time, unless all lanes load the
 * same. */
static bool in_quarters(const pricing *x, uint32_t used_lanes) {
    return reads(x->p) && (x->global->element_bytes << x->p->vector_bits) >= 16 && used_lanes > 0;
}

/* The lines that one instruction looks up beyond the fewest. Lanes of other quarters that hold
 * copies look lines up again. */
static uint64_t more_lines(const pricing *x) {
    const lilac_layout_columns *columns = x->columns;
    const uint32_t fast = x->global->order[0], lanes = columns->lane_bits;
    const uint64_t copies = columns->free_threads & low_bits(lanes);
    const uint32_t used = lanes - count_bits(copies);
    const bool quarters = in_quarters(x, used);
    const uint64_t set = x->lanes | x->p->vector_registers;
    uint32_t looked_up = rank_modulo(columns, set, x->global->line | x->global->same_address);
    looked_up += quarters ? count_bits(copies >> (lanes - 2)) : 0;
    uint64_t run = UINT64_C(1) << x->p->vector_bits;
    for (uint32_t j = 0; x->global->runs_share_lines && j < x->global->bits[fast] &&
                         INT64_C(2) << j <= x->global->thread_run &&
                         find_register(columns, UINT64_C(1) << (x->global->start[fast] + j)) >= 0;
         j++) {
        run = max_u64(run, UINT64_C(2) << j);
    }
    const uint64_t bytes = run * x->global->element_bytes << used;
    const uint64_t fewest = max_u64(bytes / LILAC_PLAN_LINE_BYTES, quarters ? 4 : 1);
    const uint64_t lines = UINT64_C(1) << looked_up;
    return lines > fewest ? lines - fewest : 0;
}

/* Of two lines, the bytes that the lanes of a warp and the runs of a thread leave out. */
static uint64_t left_out(const pricing *x) {
    const lilac_plan_global *global = x->global;
    const uint32_t fast = global->order[0];
    if (!global->runs_share_lines || global->thread_run == INT64_C(1)
                                                               << global->vector_bits[fast]) {
        return 0;
    }
    const uint64_t within = (uint64_t)(global->thread_run - 1) << global->start[fast];
    uint64_t set = x->lanes;
    for (uint32_t i = 0; i < x->columns->register_bits; i++) {
        set |= (x->columns->registers[i] & ~within) == 0 ? UINT64_C(1) << i : 0;
    }
    const uint32_t covered =
        rank_modulo(x->columns, set, 0) - rank_modulo(x->columns, set, global->line_pair);
    const uint64_t bytes = (uint64_t)global->element_bytes << covered;
    return bytes < 2 * LILAC_PLAN_LINE_BYTES ? 2 * LILAC_PLAN_LINE_BYTES - bytes : 0;
}

/* The price in all warps of letting some of them skip the access: the predicate, and the moves that
 * define the results of a load, two words at a time; and the instructions that a warp executes one
 * after another and several warps would execute together. */
static uint64_t leader_price(const pricing *x) {
    const lilac_layout_columns *columns = x->columns;
    if (x->p->idle_threads >> columns->lane_bits == 0) {
        return 0;
    }
    const uint32_t each = columns->register_bits - count_bits(x->p->replicated_registers);
    const uint64_t bytes = (uint64_t)x->global->element_bytes << each;
    const uint64_t words = x->p->kind == LILAC_PLAN_LOAD ? max_u64(bytes / 4, 1) : 0;
    const uint64_t of_warp = x->p->counts.instructions >> executing_warps(x->p, columns);
    return ((x->arch->costs->issue * (1 + (words + 1) / 2)) << warp_bits(columns)) +
           (max_u64(of_warp, 1) - 1) * x->arch->costs->global;
}

static uint64_t price(const pricing *x) {
    const lilac_costs *costs = x->arch->costs;
    uint64_t instruction = costs->global;
    if (x->global->rank > 0) {
        instruction +=
            more_lines(x) * costs->line + left_out(x) * costs->line / LILAC_PLAN_LINE_BYTES;
    }
    return traffic(x) * costs->sector / x->arch->sector_bytes +
           x->p->counts.instructions * instruction + leader_price(x);
}

void lilac_plan_global_access_init(lilac_plan_global_access *result,
                                   const lilac_plan_global *global, const lilac_layout *layout,
                                   uint32_t idle, const lilac_target *target) {
    lilac_layout_columns columns;
    read_columns(&columns, layout, target);
    *result = (plan){.kind = global->kind, .element_bytes = global->element_bytes};
    choose_vector(result, global, &columns);
    choose_leader(result, global, &columns, idle);
    find_run_registers(result, global, &columns);
    count_accesses(result, global, &columns, target->arch);
    const pricing x = {.p = result,
                       .global = global,
                       .columns = &columns,
                       .arch = target->arch,
                       .lanes = low_bits(columns.lane_bits) << columns.register_bits,
                       .registers = low_bits(columns.register_bits)};
    result->cycles = price(&x);
}
