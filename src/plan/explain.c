/* The explanation of a plan.
 *
 *   kind              one line with the tensor, the device and the kind
 *   moves             for every bit of the source's index: the direction of the tensor that it
 *                     changes, and the bit of the target's index that changes the same direction
 *   steps             the instructions of each step. For a shared-memory exchange also the memory,
 *                     offset bit by offset bit, with the index bits that change this direction on
 *                     both sides; this table shows whether there are conflicts
 *   totals            instructions, wavefronts and their lower bound, the price
 *   other strategies  the price of the strategies that were not chosen
 *
 * A direction is named by bits of the tensor's coordinates ("dim1 bit 2"), a position by bits of
 * the register's and the thread's index ("lane 0"). Both may be sums (⊕).
 */
#include "plan.h"

#include <string.h>

/* ---- names of directions and positions -------------------------------------------------- */

static void put_sum(lilac_text *out, bool *first) {
    if (!*first) {
        lilac_text_puts(out, " ⊕ ");
    }
    *first = false;
}

static void put_direction(lilac_text *out, const lilac_layout *layout, uint64_t direction) {
    bool first = true;
    for (uint32_t i = 0; i < layout->out_count; i++) {
        const uint64_t coordinate = lilac_layout_coordinate(layout, direction, i);
        for (uint64_t rest = coordinate; rest != 0; rest &= rest - 1) {
            put_sum(out, &first);
            lilac_text_printf(out, "%s bit %d", layout->out[i].name, __builtin_ctzll(rest));
        }
    }
    if (first) {
        lilac_text_puts(out, "nothing (copies)");
    }
}

/* Prints an index of a layout that has all four inputs. */
static void put_place(lilac_text *out, const lilac_layout *layout, uint64_t index) {
    bool first = true;
    for (uint32_t i = 0; i < layout->in_count; i++) {
        const uint32_t start = lilac_layout_in_start(layout, i);
        for (uint32_t bit = 0; bit < layout->in[i].bits; bit++) {
            if ((index >> (start + bit) & 1) != 0) {
                put_sum(out, &first);
                lilac_text_printf(out, "%s %u", layout->in[i].name, bit);
            }
        }
    }
    if (first) {
        lilac_text_puts(out, "–");
    }
}

/* Counts characters, not bytes, because columns may contain ⊕ and –. */
static size_t width_of(const char *text) {
    size_t width = 0;
    for (; *text != 0; text++) {
        width += ((unsigned char)*text & 0xC0U) != 0x80U;
    }
    return width;
}

static void put_padded(lilac_text *out, const lilac_text *cell, size_t width) {
    const char *text = lilac_text_get(cell);
    const size_t own = width_of(text);
    lilac_text_puts(out, text);
    lilac_text_repeat(out, ' ', own < width ? width - own : 1);
}

/* The index in `layout` that holds an element; of several, the one in the lowest inputs. */
static uint64_t find_place(const lilac_layout *layout, uint64_t element) {
    lilac_f2_basis columns;
    uint64_t place = 0;
    lilac_f2_basis_init(&columns);
    for (uint32_t i = 0; i < layout->in_bits; i++) {
        (void)lilac_f2_basis_add(&columns, layout->columns[i], UINT64_C(1) << i);
    }
    (void)lilac_f2_basis_reduce(&columns, element, &place);
    return place;
}

/* ---- moves ------------------------------------------------------------------------------ */

static void explain_moves(lilac_text *out, const lilac_plan_pair *pair) {
    const lilac_layout *source = &pair->source, *target = &pair->target;
    lilac_layout map;
    lilac_text stays, cell;
    if (!lilac_layout_invert_compose(&map, source, target, NULL)) {
        return;
    }
    lilac_text_init(&stays);
    lilac_text_init(&cell);
    lilac_text_puts(out, "moves\n");
    bool any = false;
    for (uint32_t in = 0, at = 0; in < source->in_count; in++) {
        const uint32_t there = lilac_layout_in_start(target, in);
        for (uint32_t bit = 0; bit < source->in[in].bits; bit++, at++) {
            const bool stay =
                bit < target->in[in].bits && target->columns[there + bit] == source->columns[at];
            if (stay) {
                lilac_text_printf(&stays, "%s%s %u", stays.length == 0 ? "" : ", ",
                                  source->in[in].name, bit);
                continue;
            }
            any = true;
            lilac_text_reset(&cell);
            lilac_text_printf(&cell, "  %s %u", source->in[in].name, bit);
            put_padded(out, &cell, 14);
            lilac_text_reset(&cell);
            put_direction(&cell, source, source->columns[at]);
            put_padded(out, &cell, 26);
            lilac_text_puts(out, " → ");
            if (source->columns[at] == 0) {
                lilac_text_puts(out, "not needed");
            } else {
                put_place(out, target, map.columns[at]);
            }
            lilac_text_char(out, '\n');
        }
    }
    if (!any) {
        lilac_text_puts(out, "  nothing\n");
    }
    if (stays.length != 0) {
        lilac_text_printf(out, "  stays: %s\n", lilac_text_get(&stays));
    }
    lilac_text_clear(&stays);
    lilac_text_clear(&cell);
}

/* ---- register permutations and shuffles -------------------------------------------------- */

static void put_mask(lilac_text *out, uint64_t mask) {
    bool first = true;
    for (; mask != 0; mask &= mask - 1) {
        put_sum(out, &first);
        lilac_text_printf(out, "%d", __builtin_ctzll(mask));
    }
    if (first) {
        lilac_text_char(out, '0');
    }
}

static void put_list(lilac_text *out, uint64_t mask) {
    const char *separator = "";
    for (; mask != 0; mask &= mask - 1) {
        lilac_text_printf(out, "%s%d", separator, __builtin_ctzll(mask));
        separator = ", ";
    }
}

static void explain_permutation(lilac_text *out, const lilac_plan_conversion *plan,
                                const lilac_plan_permutation *permutation) {
    lilac_plan_price price = {0};
    lilac_plan_price_permutation(&price, permutation, plan->element_bits, 1);
    lilac_text_puts(out, "registers permuted");
    if (permutation->bits != permutation->before_bits) {
        lilac_text_printf(out, ", %llu of %llu", 1ULL << permutation->bits,
                          1ULL << permutation->before_bits);
    }
    if (price.permutes + price.packs != 0) {
        lilac_text_printf(out, ": %llu byte permutes a warp, because elements move between words",
                          (unsigned long long)(price.permutes + price.packs));
    } else {
        lilac_text_puts(out, ": free, whole words only change their registers");
    }
    lilac_text_puts(out, "\n   bits of the register's number: ");
    bool first = true;
    for (uint32_t i = 0; i < permutation->bits; i++) {
        if (permutation->from[i] != UINT64_C(1) << i) {
            lilac_text_printf(out, "%s%u is ", first ? "" : ", ", i);
            if (permutation->from[i] == 0) {
                lilac_text_puts(out, "a copy");
            } else {
                lilac_text_puts(out, "old ");
                put_mask(out, permutation->from[i]);
            }
            first = false;
        }
    }
    lilac_text_puts(out, first ? "the same\n" : "\n");
}

/* Explains one of the two maps of registers of a shuffle. */
static void explain_map(lilac_text *out, const lilac_plan_shuffle *shuffle, const uint64_t *from,
                        uint32_t bits, const uint64_t *shear, const char *when) {
    bool same = true;
    for (uint32_t i = 0; i < bits; i++) {
        same = same && from[i] == UINT64_C(1) << i;
    }
    if (!same) {
        lilac_text_printf(out, "   %s: %llu registers; bits of their numbers from old bits ", when,
                          1ULL << bits);
        for (uint32_t i = 0; i < bits; i++) {
            lilac_text_puts(out, i == 0 ? "" : ", ");
            put_mask(out, from[i]);
        }
        lilac_text_char(out, '\n');
    }
    for (uint32_t i = 0; i < shuffle->lane_bits + shuffle->warp_bits; i++) {
        if (shear[i] != 0) {
            const bool lane = i < shuffle->lane_bits;
            lilac_text_printf(out,
                              "   %s: where %s bit %u is set, register r is exchanged with "
                              "register r xor %llu (selects)\n",
                              when, lane ? "lane" : "warp", lane ? i : i - shuffle->lane_bits,
                              (unsigned long long)shear[i]);
        }
    }
}

/* Prints the bits of a mask over lanes and warps. */
static void put_threads(lilac_text *out, const lilac_plan_shuffle *shuffle, uint64_t mask) {
    bool first = true;
    for (uint32_t i = 0; i < shuffle->lane_bits + shuffle->warp_bits; i++) {
        if ((mask >> i & 1) != 0) {
            const bool lane = i < shuffle->lane_bits;
            put_sum(out, &first);
            lilac_text_printf(out, "%s %u", lane ? "lane" : "warp",
                              lane ? i : i - shuffle->lane_bits);
        }
    }
    if (first) {
        lilac_text_char(out, '0');
    }
}

static bool same_lanes(const lilac_plan_shuffle *shuffle) {
    bool same = true;
    for (uint32_t i = 0; i < shuffle->lane_bits + shuffle->warp_bits; i++) {
        same = same && shuffle->lane[i] == (i < shuffle->lane_bits ? UINT64_C(1) << i : 0);
    }
    return same;
}

static void explain_shuffle(lilac_text *out, const lilac_plan_conversion *plan,
                            const lilac_plan_shuffle *shuffle) {
    lilac_plan_price price = {0};
    lilac_plan_price_shuffle(&price, shuffle, plan->element_bits, 1);
    lilac_text_printf(out,
                      "exchange within each warp: %llu shuffles, %llu selects, %llu byte "
                      "permutes a warp\n",
                      (unsigned long long)price.shuffles, (unsigned long long)price.selects,
                      (unsigned long long)(price.permutes + price.packs));
    explain_map(out, shuffle, shuffle->kept, shuffle->register_bits, shuffle->before, "before");
    if (!same_lanes(shuffle)) {
        lilac_text_puts(out, "   shfl.sync: all registers; the lane to read from is, bit by bit, ");
        for (uint32_t i = 0; i < shuffle->lane_bits; i++) {
            uint64_t row = 0;
            for (uint32_t k = 0; k < shuffle->lane_bits + shuffle->warp_bits; k++) {
                row |= (shuffle->lane[k] >> i & 1) << k;
            }
            lilac_text_puts(out, i == 0 ? "" : ", ");
            put_threads(out, shuffle, row);
        }
        lilac_text_char(out, '\n');
    }
    for (uint32_t i = 0; i < shuffle->register_bits; i++) {
        if (shuffle->distance[i] != 0) {
            lilac_text_printf(out,
                              "   shfl.sync: registers with bit %u set come from %u lanes away "
                              "(xor)\n",
                              i, (uint32_t)shuffle->distance[i]);
        }
    }
    explain_map(out, shuffle, shuffle->taken, shuffle->after_bits, shuffle->after, "after");
}

/* ---- shared-memory exchanges ------------------------------------------------------------- */

static void put_instruction(lilac_text *out, const lilac_plan_access *access, bool store) {
    const uint32_t bytes = access->element_bytes << access->vector_bits;
    const char *transposed = access->instruction == LILAC_PLAN_MATRIX_TRANSPOSED ? ".trans" : "";
    if (access->instruction == LILAC_PLAN_VECTOR) {
        lilac_text_printf(out, "%s.shared of %u byte%s", store ? "st" : "ld", bytes,
                          bytes == 1 ? "" : "s");
    } else {
        lilac_text_printf(out, "%s.x%u%s", store ? "stmatrix" : "ldmatrix",
                          1U << access->matrix_bits, transposed);
    }
}

static const char *why_possible(const lilac_plan_access *access) {
    switch (access->instruction) {
    case LILAC_PLAN_VECTOR:
        return access->vector_bits == 0 ? "no two registers of this side are adjacent"
                                        : "registers of this side that are adjacent in memory";
    case LILAC_PLAN_MATRIX:
        return "rows of 16 bytes are words of lanes 0 … 3, 4 … 7 and so on";
    case LILAC_PLAN_MATRIX_TRANSPOSED:
        break;
    }
    return "rows of 16 bytes are half words of lanes 0, 4 … 28 and so on";
}

static void explain_access(lilac_text *out, const lilac_plan_conversion *plan, bool store) {
    const lilac_plan_staging *staging = &plan->staging;
    const lilac_plan_access *access = store ? &staging->store : &staging->load;
    lilac_text_printf(out, "   %s ", store ? "store:" : "load: ");
    put_instruction(out, access, store);
    const uint64_t rounds = UINT64_C(1) << staging->round_bits;
    lilac_text_printf(out, ", %llu a warp: %s\n", (unsigned long long)(rounds << access->step_bits),
                      why_possible(access));
    lilac_text_printf(out, "          each in %u transaction%s of %u wavefront%s%s\n",
                      access->transactions, access->transactions == 1 ? "" : "s",
                      access->transaction_wavefronts,
                      access->transaction_wavefronts == 1 ? "" : "s",
                      access->conflicts == 0 ? ", free of conflicts" : "");
    if (store && staging->store_copy_lanes != 0) {
        lilac_text_puts(out, "          lanes with any of the bits ");
        put_list(out, staging->store_copy_lanes);
        lilac_text_puts(out, " set hold copies and do not store\n");
    }
    if (store && staging->store_copies != 0) {
        lilac_text_puts(out, "          warps with any of the bits ");
        put_list(out, staging->store_copies);
        lilac_text_puts(out, " set hold copies and do not store\n");
    }
}

static void explain_barrier(lilac_text *out, const lilac_plan_conversion *plan) {
    const lilac_plan_staging *staging = &plan->staging;
    lilac_text_printf(out, "   barrier of the %s: ", lilac_plan_barrier_name(staging->barrier));
    switch (staging->barrier) {
    case LILAC_PLAN_BARRIER_WARP:
        lilac_text_puts(out, "every warp loads what it stored itself\n");
        break;
    case LILAC_PLAN_BARRIER_GROUP:
    case LILAC_PLAN_BARRIER_BLOCK:
        lilac_text_puts(out, "elements cross warps that differ in bits ");
        put_list(out, staging->barrier_warps);
        if (staging->barrier == LILAC_PLAN_BARRIER_GROUP) {
            lilac_text_puts(out, " only; each group of warps has its own memory");
        } else if (staging->barrier_warps != (1U << plan->warp_bits) - 1) {
            lilac_text_printf(out, " only, but on %s a barrier of some warps takes longer",
                              plan->arch->name);
        }
        lilac_text_char(out, '\n');
        break;
    case LILAC_PLAN_BARRIER_CLUSTER:
        lilac_text_puts(out, "elements cross blocks\n");
        break;
    }
}

/* The part of the address that an offset bit belongs to: byte of a word, bank, segment or round. */
static const char *part_of(const lilac_plan_conversion *plan, uint32_t bit) {
    const lilac_plan_staging *staging = &plan->staging;
    const uint32_t bits = lilac_layout_in_bits(&staging->memory, "offset");
    const uint64_t bytes = (uint64_t)staging->store.element_bytes << bit;
    if (bit >= bits - staging->round_bits) {
        return "round";
    }
    if (bytes < plan->arch->bank_bytes) {
        return "byte";
    }
    return bytes < (uint64_t)plan->arch->banks * plan->arch->bank_bytes ? "bank" : "segment";
}

static void explain_memory(lilac_text *out, const lilac_plan_conversion *plan,
                           const lilac_layout *source, uint32_t step) {
    const lilac_layout *memory = &plan->staging.memory;
    lilac_layout before, after;
    lilac_text cell;
    lilac_plan_conversion_layout(&before, plan, source, step);
    lilac_plan_conversion_layout(&after, plan, source, step + 1);
    lilac_text_init(&cell);
    lilac_text_puts(out, "   offset bit    direction                    stored by              "
                         "       loaded by\n");
    for (uint32_t bit = 0; bit < lilac_layout_in_bits(memory, "offset"); bit++) {
        const uint64_t direction = lilac_layout_column(memory, "offset", bit);
        lilac_text_reset(&cell);
        lilac_text_printf(&cell, "   %2u %s", bit, part_of(plan, bit));
        put_padded(out, &cell, 17);
        lilac_text_reset(&cell);
        put_direction(&cell, memory, direction);
        put_padded(out, &cell, 29);
        lilac_text_reset(&cell);
        put_place(&cell, &before, find_place(&before, direction));
        put_padded(out, &cell, 30);
        put_place(out, &after, find_place(&after, direction));
        lilac_text_char(out, '\n');
    }
    lilac_text_clear(&cell);
    if (plan->bound.met && plan->staging.store.conflicts + plan->staging.load.conflicts == 0) {
        lilac_text_puts(out, "   No two lanes of a transaction differ by a sum of the segments' "
                             "directions, on\n   either side: two lanes that share a bank share "
                             "the word.\n");
    }
    if (plan->staging.family_bits != 0) {
        lilac_text_printf(out, "   2^%u choices of segments reach these wavefronts.\n",
                          plan->staging.family_bits);
    }
}

static void explain_staging(lilac_text *out, const lilac_plan_conversion *plan,
                            const lilac_layout *source, uint32_t step) {
    const lilac_plan_staging *staging = &plan->staging;
    const unsigned long long rounds = 1ULL << staging->round_bits;
    lilac_text_printf(out, "exchange through %llu bytes of shared memory",
                      (unsigned long long)staging->bytes);
    if (rounds > 1) {
        lilac_text_printf(out, " in %llu rounds, so that it fits", rounds);
    }
    lilac_text_puts(out, staging->remote ? ", loads from other blocks' memory\n" : "\n");
    explain_access(out, plan, true);
    explain_barrier(out, plan);
    explain_access(out, plan, false);
    explain_memory(out, plan, source, step);
}

/* ---- the explanation -------------------------------------------------------------------- */

static const char *why_kind(const lilac_plan_conversion *plan) {
    switch (plan->kind) {
    case LILAC_PLAN_NONE:
        return "nothing moves: every register holds its element already";
    case LILAC_PLAN_REGISTERS:
        return "registers are permuted: no element leaves its thread";
    case LILAC_PLAN_SHUFFLES:
        return "shuffles: no element leaves its warp";
    case LILAC_PLAN_SHARED:
        return plan->staging.barrier == LILAC_PLAN_BARRIER_WARP
                   ? "shared memory, although no element leaves its warp: it costs less than "
                     "shuffles"
                   : "shared memory: elements leave their warps";
    case LILAC_PLAN_CLUSTER:
        break;
    }
    return "the cluster's shared memory: elements leave their blocks";
}

static void explain_head(lilac_text *out, const lilac_plan_conversion *plan,
                         const lilac_layout *source) {
    for (uint32_t i = 0; i < source->out_count; i++) {
        lilac_text_printf(out, "%s%llu", i == 0 ? "" : "×", 1ULL << source->out[i].bits);
    }
    lilac_text_printf(out, "%s elements of %u bits, %u warp%s", source->out_count == 0 ? "no" : "",
                      plan->element_bits, 1U << plan->warp_bits, plan->warp_bits == 0 ? "" : "s");
    if (plan->block_bits != 0) {
        lilac_text_printf(out, " in each of %u blocks", 1U << plan->block_bits);
    }
    lilac_text_printf(out, ", %s\n%s\n\n", plan->arch->name, why_kind(plan));
}

static void put_row(lilac_text *out, const char *name, uint64_t count) {
    if (count != 0) {
        lilac_text_printf(out, "  %-14s%12llu\n", name, (unsigned long long)count);
    }
}

static void put_memory_row(lilac_text *out, const char *name, uint64_t count, uint64_t wavefronts,
                           uint64_t least) {
    lilac_text_printf(out, "  %-14s%12llu%12llu%12llu\n", name, (unsigned long long)count,
                      (unsigned long long)wavefronts, (unsigned long long)least);
}

static void explain_totals(lilac_text *out, const lilac_plan_conversion *plan) {
    const lilac_plan_price *price = &plan->price;
    const lilac_plan_bound *bound = &plan->bound;
    const bool staging = price->stores + price->loads != 0;
    lilac_text_printf(out, "totals        instructions%s\n",
                      staging ? "  wavefronts       least" : "");
    put_row(out, "shuffles", price->shuffles);
    put_row(out, "selects", price->selects);
    put_row(out, "byte permutes", price->permutes);
    put_row(out, "packed", price->packs);
    if (staging) {
        put_memory_row(out, "stores", price->stores, price->store_wavefronts,
                       bound->store_wavefronts);
        put_memory_row(out, "loads", price->loads, price->load_wavefronts, bound->load_wavefronts);
        put_row(out, "barriers", price->barriers);

        lilac_text_printf(out,
                          "  No memory layout reaches fewer wavefronts than the least with any\n  "
                          "instructions of %s%s.\n  Every byte once in each direction, all banks "
                          "busy: %llu.\n",
                          plan->arch->name,
                          bound->met        ? "; this plan reaches it"
                          : bound->by_price ? "; the plans that reach it take longer"
                                            : "; this plan needs more",
                          (unsigned long long)bound->floor_wavefronts);
    }
    lilac_text_printf(out, "  about %.1f clocks of a multiprocessor\n", (double)price->cycles / 16);
}

static void explain_other(lilac_text *out, const char *name, const lilac_plan_conversion *plan,
                          const lilac_layout *source, const lilac_layout *target,
                          lilac_plan_strategy strategy) {
    const lilac_plan_options options = {.strategy = strategy};
    lilac_plan_conversion other;
    lilac_reason why = {.text = ""};
    lilac_text_printf(out, "  %-22s", name);
    if (lilac_plan_conversion_init(&other, source, target, plan->element_bits, &options, plan->arch,
                                   &why)) {
        lilac_text_printf(out, "%8.1f clocks", (double)other.price.cycles / 16);
        const uint64_t wavefronts = other.price.store_wavefronts + other.price.load_wavefronts;
        if (wavefronts != 0) {
            lilac_text_printf(out, ", %llu wavefronts", (unsigned long long)wavefronts);
        }
        lilac_text_char(out, '\n');
    } else {
        lilac_text_printf(out, "not possible: %s\n", why.text);
    }
}

static void explain_others(lilac_text *out, const lilac_plan_conversion *plan,
                           const lilac_layout *source, const lilac_layout *target) {
    lilac_text_puts(out, "other strategies\n");
    explain_other(out, "shuffles", plan, source, target, LILAC_PLAN_BY_SHUFFLES);
    explain_other(out, "shared memory", plan, source, target, LILAC_PLAN_BY_SHARED);
    explain_other(out, "unswizzled memory", plan, source, target, LILAC_PLAN_UNSWIZZLED);
}

void lilac_plan_conversion_explain(lilac_text *out, const lilac_plan_conversion *plan,
                                   const lilac_layout *source, const lilac_layout *target) {
    lilac_plan_pair pair;
    if (!lilac_plan_pair_init(&pair, source, target, plan->element_bits, plan->arch, NULL)) {
        return; /* these are not the layouts of the plan */
    }
    explain_head(out, plan, source);
    if (plan->kind == LILAC_PLAN_NONE) {
        return;
    }
    explain_moves(out, &pair);
    lilac_text_puts(out, "\nsteps\n");
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const uint32_t index = plan->step[i].index;
        lilac_text_printf(out, "%u. ", i + 1);
        switch (plan->step[i].kind) {
        case LILAC_PLAN_STEP_PERMUTATION:
            explain_permutation(out, plan, &plan->permutation[index]);
            break;
        case LILAC_PLAN_STEP_SHUFFLE:
            explain_shuffle(out, plan, &plan->shuffle[index]);
            break;
        case LILAC_PLAN_STEP_STAGING:
            explain_staging(out, plan, &pair.full_source, i);
            break;
        }
    }
    lilac_text_char(out, '\n');
    explain_totals(out, plan);
    if (plan->kind != LILAC_PLAN_REGISTERS) {
        lilac_text_char(out, '\n');
        explain_others(out, plan, source, target);
    }
}
