/* Reads of a ring's buffer in vectors, where threads would read its elements one by one.
 *
 * A buffer of a tensor copy has the layout that the copy writes. Threads may read vectors of it and exchange
 * their elements within warps:
 *
 *     %f = ttg.convert_layout %a               →     %l = ttg.local_load %v
 *                                                    %f = ttg.convert_layout %l
 *
 * What a price leaves out, the latency of the exchanges in front of a product and the issue slots that the
 * products' other warps need, is worth half of it (bench/results/decisions.md). */
#include "memory/memory_layouts.h"
#include "pipeline/pipeline.h"

/* Is it one bit of the coordinates? */
static bool is_unit(uint64_t column) {
    return column != 0 && (column & (column - 1)) == 0;
}

/* The bits of the dimension that has this bit of the coordinates. */
static uint64_t dimension_of(const lilac_layout *layout, uint64_t bit) {
    uint64_t found = 0;
    for (uint32_t d = 0; d < layout->out_count; d++) {
        const uint64_t bits = low_bits(layout->out[d].bits) << lilac_layout_out_start(layout, d);
        found |= (bits & bit) != 0 ? bits : 0;
    }
    return found;
}

/* The registers or lanes of a layout. */
typedef struct input {
    uint64_t *columns;
    uint32_t bits, count; /* those that are set */
} input;

/* The registers or lanes, if their bits are units that no other of `all` is; adds them. */
static bool find_units(input *in, lilac_layout *layout, const char *name, uint64_t *all) {
    const int index = lilac_layout_in(layout, name);
    bool units = index >= 0;
    *in = (input){0};
    if (units) {
        in->bits = layout->in[index].bits;
        in->columns = layout->columns + lilac_layout_in_start(layout, (uint32_t)index);
    }
    for (uint32_t i = 0; i < in->bits; i++) {
        units = units && is_unit(in->columns[i]) && (*all & in->columns[i]) == 0;
        *all |= in->columns[i];
    }
    return units;
}

/* A layout for reads of a buffer: log2 of the elements of a vector, along a row; lanes hold the same bits of
 * coordinates as before, as far as vectors leave them, or the next bits along the row. */
typedef struct reading {
    uint32_t vector;
    bool keeps_lanes;
} reading;

/* The layout in which each warp has the same elements as in another one, read like that. False: elements are
 * replicated, or are not in a row. */
static bool layout_of(lilac_layout *result, const lilac_layout *to, const lilac_layout *memory,
                      const reading *how) {
    input registers, lanes;
    uint64_t left = 0;
    *result = *to;
    if (!find_units(&registers, result, "register", &left) ||
        !find_units(&lanes, result, "lane", &left) || registers.bits < how->vector) {
        return false;
    }
    const uint64_t along = dimension_of(memory, memory->columns[0]);
    for (; registers.count < how->vector; registers.count++) {
        const uint64_t next = memory->columns[registers.count];
        if (!is_unit(next) || (left & next) == 0) {
            return false;
        }
        registers.columns[registers.count] = next;
        left &= ~next;
    }
    for (uint32_t i = 0; i < lanes.bits && how->keeps_lanes; i++) {
        if ((left & lanes.columns[i]) != 0) {
            left &= ~lanes.columns[i];
            lanes.columns[lanes.count++] = lanes.columns[i];
        }
    }
    while (left != 0) {
        const uint64_t row = left & along, next = row != 0 ? row & -row : left & -left;
        input *to_fill = lanes.count < lanes.bits ? &lanes : &registers;
        to_fill->columns[to_fill->count++] = next;
        left &= ~next;
    }
    return true;
}

/* The price of reading the buffer in a layout and exchanging the elements within warps. */
static int64_t price_of(const lilac_layout *vectors, const lilac_layout *to,
                        const lilac_layout *memory, uint32_t bits, const lilac_arch *arch) {
    lilac_plan_conversion plan;
    lilac_reason why;
    const int64_t read = lilac_shared_read_cycles(vectors, memory, bits, arch);
    return read == INT64_MAX ||
                   !lilac_plan_conversion_init(&plan, vectors, to, bits, NULL, arch, &why) ||
                   plan.price.barriers > 0
               ? INT64_MAX
               : read + (int64_t)plan.price.cycles;
}

const lilac_layout *lilac_pipeline_vector_reads(const pipeline *p, const pipeline_load *load,
                                                const lilac_layout *to) {
    enum { VECTOR = 16, WORD = 4 };
    const lilac_arch *arch = p->target->arch;
    const lilac_layout *memory = load->slot->layout;
    const uint32_t bits = max_u32(lilac_tile_element_bits(load->tensor), 8);
    const uint32_t word = log2_of(WORD * 8 / min_u32(bits, WORD * 8));
    lilac_layout best, tried;
    bool found = false;
    lilac_plan_access direct;
    lilac_reason why;
    if (load->box == NULL || memory == NULL ||
        !lilac_plan_access_init(&direct, to, memory, bits, arch, &why) ||
        direct.vector_bits >= word) {
        return NULL;
    }
    const int64_t most = lilac_shared_read_cycles(to, memory, bits, arch) / 2;
    int64_t least = INT64_MAX;
    for (uint32_t i = 0; i < 2 * (log2_of(VECTOR / WORD) + 1); i++) {
        const reading how = {word + i / 2, i % 2 == 0};
        const int64_t price = layout_of(&tried, to, memory, &how)
                                  ? price_of(&tried, to, memory, bits, arch)
                                  : INT64_MAX;
        if (price <= most && price < least) {
            least = price;
            best = tried;
            found = true;
        }
    }
    return found ? lilac_tile_intern_layout(p->module, &best) : NULL;
}
