/* tt.reduce, with any combine region, over several operands at once.
 *
 * Split a coordinate into what the result keeps (K) and the axis (A). Going through the register,
 * lane and warp bits in that order, each bit either
 *
 *   is new in K            it leads to other elements of the result: nothing to combine
 *   adds nothing in K …    (after xoring earlier bits that cancel its part there)
 *     … and is new in A    its two halves are combined
 *     … and not            its two halves are copies: they must not be combined
 *
 * and the combining goes bit by bit, each in its own way:
 *
 *   register   the thread's values, as a tree
 *   lane       butterflies: shuffle by xor with the bit (and the lane bits that cancel)
 *   warp       one lane for each element writes its warp's partial result to shared memory, and
 *              after a barrier every thread reads all partials of its elements
 *
 * A lane bit whose part in K only a register bit cancels would need another register in each lane;
 * it goes through shared memory as a warp bit does, and from there straight into the result's
 * layout. Where nothing goes through shared memory and no renaming gives that layout, a movement
 * plan does.
 *
 * Before shared memory no two lanes need the same partials. So a butterfly of a thread with several
 * elements gives each lane of a pair half of them to finish (half the shuffles, half the combining,
 * half the stores of each lane):
 *
 *      lane 0:  a b          a of both          lane 0 sends b and keeps a,
 *      lane 1:  a b    ──▶   b of both          lane 1 the other way round
 *
 * In memory, what one thread reads stands lowest, up to a vector: elements that a thread both has
 * and wants, then the partials of one element, then other elements that it wants.
 *
 *        element 0       element 1
 *      | w0 w1 w2 w3 | w0 w1 w2 w3 | …           4 partials of f32: one vector of 16 bytes
 *
 * When each element is wanted in so many registers and threads that to read all its partials
 * everywhere takes more, every thread first finishes its share of the elements, and a plan moves
 * those to where they are wanted. */
#include "lower_internal.h"

#include <string.h>

#define MAX_REGISTER_BITS 16
#define MAX_THREAD_BITS   16
#define IS_SLOT           64

typedef struct plan {
    const lilac_lower_view *in;
    const lilac_lower_view *out; /* NULL: a scalar */
    uint32_t axis, operands;
    uint32_t keep_bits; /* of a coordinate of the result */
    /* registers */
    uint32_t group_bits, group_register[MAX_REGISTER_BITS];
    uint32_t fold_bits, fold_masks[MAX_REGISTER_BITS];
    /* lanes */
    uint32_t lane_steps, lane_masks[MAX_THREAD_BITS], lane_pivots[MAX_THREAD_BITS];
    /* warps (and lanes that need another register) */
    uint32_t slot_bits, slot_thread[MAX_THREAD_BITS];
    uint32_t idle_threads;           /* bits that are 0 in the threads that write */
    bool shared;                     /* warps' results meet in shared memory */
    uint64_t keeps[MAX_THREAD_BITS]; /* what each thread bit keeps, at the writing */
    uint32_t give_steps, give_group[MAX_REGISTER_BITS]; /* lane step i hands on group bit [i] */
    const lilac_lower_view *reader; /* who reads partials: `out`, or threads with a share each */
    /* Where the partial of an element stands: bit j of its coordinate in this basis, and of its
     * slot, gives this bit of the index. */
    lilac_lower_basis basis;
    uint32_t place[LILAC_LAYOUT_MAX_BITS], slot_place[MAX_THREAD_BITS];
    uint32_t write_bits, write_group[4]; /* the bits of a vector that is written: groups' bits */
    uint32_t read_bits, read_register[4]; /* … that is read: registers' bits, or IS_SLOT + a slot */
    /* Otherwise, where the result's registers are among the groups; or `moves`: they stand in other
     * threads. */
    const uint32_t *source;
    bool moves;
} plan;

/* ---- the plan ---------------------------------------------------------------------------- */

/* The part of a coordinate that the result keeps: its own coordinate. */
static uint64_t kept(const plan *p, uint64_t coordinate) {
    uint32_t start = p->in->start[p->axis], bits = p->in->bits[p->axis];
    uint64_t below = coordinate & ((1ULL << start) - 1);
    uint64_t above = start + bits >= 64 ? 0 : coordinate >> (start + bits);
    return below | above << start;
}

static uint64_t along_axis(const plan *p, uint64_t coordinate) {
    uint32_t start = p->in->start[p->axis], bits = p->in->bits[p->axis];
    return coordinate >> start & ((1ULL << bits) - 1);
}

typedef enum role { KEEPS, COMBINES, COPIES } role;

/* What a bit with this column does. *tag comes with the bit's own mark and leaves with the marks of
 * all bits that make up the direction. */
static role classify(const plan *p, lilac_lower_basis *keeps, lilac_lower_basis *combines,
                     uint64_t column, uint64_t *tag) {
    uint64_t key = kept(p, column) | along_axis(p, column) << p->keep_bits;
    uint64_t own = *tag;
    uint64_t rest = lilac_lower_basis_reduce(keeps, key, tag);
    if (rest & ((1ULL << p->keep_bits) - 1)) {
        (void)lilac_lower_basis_add(keeps, key, own);
        return KEEPS;
    }
    return lilac_lower_basis_add(combines, rest, 0) ? COMBINES : COPIES;
}

#define THREAD_MARK 32 /* marks of thread bits stand above those of register bits */

static bool plan_bits(lilac_lowering *l, plan *p) {
    lilac_lower_basis keeps = {0}, combines = {0};
    for (uint32_t i = 0; i < p->in->register_bits; i++) {
        uint64_t tag = 1ULL << i;
        switch (classify(p, &keeps, &combines, p->in->registers[i], &tag)) {
        case KEEPS:
            p->group_register[p->group_bits++] = i;
            break;
        case COMBINES:
            p->fold_masks[p->fold_bits++] = (uint32_t)tag;
            break;
        default:
            break;
        }
    }
    for (uint32_t i = 0; i < p->in->thread_bits; i++) {
        uint64_t tag = 1ULL << (THREAD_MARK + i);
        role what = classify(p, &keeps, &combines, p->in->threads[i], &tag);
        bool needs_registers = (tag & ((1ULL << THREAD_MARK) - 1)) != 0;
        bool shuffles = i < p->in->lane_bits && !needs_registers;
        if (what == COMBINES && shuffles) {
            p->lane_pivots[p->lane_steps] = i;
            p->lane_masks[p->lane_steps++] = (uint32_t)(tag >> THREAD_MARK);
        } else if (what == COMBINES) {
            p->slot_thread[p->slot_bits++] = i;
        }
        if (what == COPIES || (what == COMBINES && shuffles)) {
            p->idle_threads |= 1U << i;
        }
    }
    for (uint32_t i = 0; i < p->in->block_bits; i++) {
        if (along_axis(p, p->in->blocks[i]) != 0) {
            return lilac_lower_unsupported(l, "the axis is spread over the blocks of a cluster");
        }
    }
    return true;
}

/* What a thread has after its registers and lanes are combined: one register for each group. */
static void reduced_view(const plan *p, lilac_lower_view *view) {
    memset(view, 0, sizeof *view);
    view->register_bits = p->group_bits;
    view->count = 1U << p->group_bits;
    view->lane_bits = p->in->lane_bits;
    view->thread_bits = p->in->thread_bits;
    view->block_bits = p->in->block_bits;
    view->layout = p->out->layout;
    view->rank = p->out->rank;
    memcpy(view->start, p->out->start, sizeof view->start);
    memcpy(view->bits, p->out->bits, sizeof view->bits);
    for (uint32_t i = 0; i < p->group_bits; i++) {
        view->registers[i] = kept(p, p->in->registers[p->group_register[i]]);
    }
    for (uint32_t i = 0; i < view->thread_bits; i++) {
        view->threads[i] = kept(p, p->in->threads[i]);
    }
    for (uint32_t i = 0; i < view->block_bits; i++) {
        view->blocks[i] = kept(p, p->in->blocks[i]);
    }
}

/* ---- the plan of what goes through shared memory ------------------------------------------- */

static uint64_t group_column(const plan *p, uint32_t group) {
    return kept(p, p->in->registers[p->group_register[group]]);
}

/* The register bit of the reader's own that leads to the same elements as this bit of the groups,
 * or IS_SLOT. */
static uint32_t wanted_by(const plan *p, uint32_t group) {
    uint32_t own = p->reader == NULL ? 0 : lilac_lower_own_registers(p->reader);
    for (uint32_t i = 0; own != 0 && i < p->reader->register_bits; i++) {
        if (own >> i & 1 && p->reader->registers[i] == group_column(p, group)) {
            return i;
        }
    }
    return IS_SLOT;
}

/* Which of a thread's elements its butterflies hand on: first those that it will not want. */
static void plan_giving(plan *p) {
    for (uint32_t i = 0; i < p->in->thread_bits; i++) {
        p->keeps[i] = kept(p, p->in->threads[i]);
    }
    bool given[MAX_REGISTER_BITS] = {false};
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t q = p->group_bits; q-- > 0 && p->give_steps < p->lane_steps;) {
            if (!given[q] && (pass == 1 || wanted_by(p, q) == IS_SLOT)) {
                given[q] = true;
                /* The steps are taken from the last to the first. */
                uint32_t pivot = p->lane_pivots[p->lane_steps - 1 - p->give_steps];
                p->give_group[p->give_steps++] = q;
                p->keeps[pivot] ^= group_column(p, q);
                p->idle_threads &= ~(1U << pivot);
            }
        }
    }
}

/* The next free bit of the index for this direction of the elements; false when it is not new. */
static bool put_element(plan *p, uint64_t column, uint32_t bit) {
    uint32_t index = p->basis.count;
    if (!lilac_lower_basis_add(&p->basis, column, 1ULL << index)) {
        return false;
    }
    p->place[index] = bit;
    return true;
}

static uint64_t place_of(const plan *p, uint64_t element) {
    uint64_t tags = 0, index = 0;
    (void)lilac_lower_basis_reduce(&p->basis, element, &tags);
    for (uint32_t i = 0; i < p->basis.count; i++) {
        index |= (tags >> i & 1) << p->place[i];
    }
    return index;
}

/* Are these bits of the index 0 for everything that a thread adds to the beginnings of vectors? */
static bool is_aligned(const plan *p, uint32_t groups) {
    uint64_t vector = (1ULL << p->write_bits) - 1, found = 0;
    for (uint32_t i = 0; i < p->in->thread_bits; i++) {
        found |= place_of(p, p->keeps[i]) & vector;
    }
    for (uint32_t i = 0; i < p->write_bits; i++) {
        groups &= ~(1U << p->write_group[i]);
    }
    for (uint32_t q = 0; q < p->group_bits; q++) {
        found |= groups >> q & 1 ? place_of(p, group_column(p, q)) & vector : 0;
    }
    if (p->reader == NULL) {
        return found == 0;
    }
    vector = (1ULL << p->read_bits) - 1;
    for (uint32_t i = 0; i < p->reader->thread_bits; i++) {
        found |= place_of(p, p->reader->threads[i]) & vector;
    }
    uint32_t others = lilac_lower_own_registers(p->reader);
    for (uint32_t i = 0; i < p->read_bits; i++) {
        others &= p->read_register[i] < IS_SLOT ? ~(1U << p->read_register[i]) : UINT32_MAX;
    }
    for (uint32_t i = 0; i < p->reader->register_bits; i++) {
        found |= others >> i & 1 ? place_of(p, p->reader->registers[i]) & vector : 0;
    }
    return found == 0;
}

/* Gives each bit of the index its direction. `most`: elements in a vector, log2, of which `wide`
 * may be bits of elements. `groups`: mask of those that are left. */
static void order_memory(plan *p, uint32_t groups, uint32_t most, uint32_t wide) {
    uint32_t bit = 0, slots = 0;
    p->basis.count = p->write_bits = p->read_bits = 0;
    for (uint32_t q = 0; q < p->group_bits && bit < wide; q++) {
        uint32_t wanted = groups >> q & 1 ? wanted_by(p, q) : IS_SLOT;
        if (wanted != IS_SLOT && put_element(p, group_column(p, q), bit)) {
            p->write_group[p->write_bits++] = q;
            p->read_register[bit++] = wanted;
        }
    }
    for (; slots < p->slot_bits && bit < most; slots++) {
        p->slot_place[slots] = bit;
        p->read_register[bit++] = IS_SLOT + slots;
    }
    uint32_t own = p->reader == NULL ? 0 : lilac_lower_own_registers(p->reader);
    for (uint32_t i = 0; own != 0 && i < p->reader->register_bits && bit < most; i++) {
        if (own >> i & 1 && p->basis.count < wide && put_element(p, p->reader->registers[i], bit)) {
            p->read_register[bit++] = i;
        }
    }
    p->read_bits = bit;
    for (uint32_t i = 0; i < p->in->thread_bits; i++) {
        bit += put_element(p, p->keeps[i], bit);
    }
    for (uint32_t i = 0; p->reader != NULL && i < p->reader->thread_bits; i++) {
        bit += put_element(p, p->reader->threads[i], bit);
    }
    for (uint32_t i = 0; i < p->keep_bits; i++) {
        bit += put_element(p, 1ULL << i, bit);
    }
    for (; slots < p->slot_bits; slots++) {
        p->slot_place[slots] = bit++;
    }
}

/* Threads may add to a direction that a vector has, where they hold copies or their columns are
 * sums: then vectors have fewer elements, and still all the partials of one. */
static void plan_memory(plan *p, uint32_t groups, uint32_t most) {
    uint32_t wide = most;
    do {
        order_memory(p, groups, most, wide);
    } while (!is_aligned(p, groups) && wide-- > 0);
}

/* Accesses that read 2^bits partials of each of `elements`. */
static uint32_t reads(uint32_t elements, uint32_t bits, uint32_t most) {
    uint64_t all = (uint64_t)elements << bits >> most;
    return all == 0 ? 1 : (uint32_t)all;
}

/* A barrier and what else a second trip takes, in accesses. */
#define SECOND_TRIP 8

/* Every thread has its share of the elements. */
static lilac_lower_view *shares(lilac_lowering *l, const plan *p) {
    lilac_lower_view *view = lilac_arena_array(l->arena, lilac_lower_view, 1);
    *view = *p->out;
    memset(view->registers, 0, sizeof view->registers);
    memset(view->threads, 0, sizeof view->threads);
    uint32_t threads = p->keep_bits < view->thread_bits ? p->keep_bits : view->thread_bits;
    view->register_bits = p->keep_bits - threads;
    view->count = 1U << view->register_bits;
    for (uint32_t i = 0; i < threads; i++) {
        view->threads[i] = 1ULL << i;
    }
    for (uint32_t i = 0; i < view->register_bits; i++) {
        view->registers[i] = 1ULL << (threads + i);
    }
    lilac_lower_find_copies(l, view);
    return view;
}

static void plan_shared(lilac_lowering *l, plan *p, uint32_t size) {
    uint32_t most = lilac_lower_log2(l->target->arch->vector_bytes / size);
    p->reader = p->out;
    if (p->out != NULL && p->out->block_bits == 0) {
        uint32_t own = 1U << __builtin_popcount(lilac_lower_own_registers(p->out));
        lilac_lower_view *few = shares(l, p);
        uint32_t there = reads(few->count, p->slot_bits, most) + 1 + reads(own, 0, most);
        if (reads(own, p->slot_bits, most) > there + SECOND_TRIP) {
            p->reader = few;
        }
    }
    plan_giving(p);
    uint32_t groups = (1U << p->group_bits) - 1;
    for (uint32_t i = 0; i < p->give_steps; i++) {
        groups &= ~(1U << p->give_group[i]);
    }
    plan_memory(p, groups, most);
}

static bool make_plan(lilac_lowering *l, const lilac_tile_op *op, plan *p) {
    memset(p, 0, sizeof *p);
    const lilac_tile_type *type = lilac_tile_operand(op, 0)->type;
    p->in = lilac_lower_view_of(l, type);
    p->operands = op->operand_count;
    int64_t axis = lilac_tile_find_integer(&op->attributes, "axis", 0);
    if (p->in == NULL) {
        return false;
    }
    if (axis < 0 || axis >= p->in->rank || op->result_count != p->operands) {
        return lilac_lower_unsupported(l, "its axis or results do not fit");
    }
    p->axis = (uint32_t)axis;
    p->keep_bits = p->in->layout->out_bits - p->in->bits[p->axis];
    if (!plan_bits(l, p)) {
        return false;
    }
    p->shared = p->slot_bits > 0;
    uint32_t size = 1;
    for (uint32_t i = 0; i < p->operands; i++) {
        lilac_simt_type element;
        if (!lilac_lower_type(l, lilac_tile_operand(op, i)->type, &element)) {
            return false;
        }
        uint32_t bytes = lilac_lower_memory_bytes(element);
        size = bytes > size ? bytes : size;
    }
    if (!lilac_tile_is_tensor(op->results[0].type)) {
        if (p->shared) {
            plan_shared(l, p, size);
        }
        return true;
    }
    p->out = lilac_lower_view_of(l, op->results[0].type);
    if (p->out == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < p->in->block_bits; i++) {
        if (kept(p, p->in->blocks[i]) != p->out->blocks[i]) {
            return lilac_lower_refuse(l, "layout-conversion",
                                      "the result of a reduction stands in another block");
        }
    }
    if (p->shared) {
        plan_shared(l, p, size);
    } else {
        lilac_lower_view reduced;
        lilac_lower_map map;
        reduced_view(p, &reduced);
        lilac_lower_map_identity(&map, p->keep_bits);
        p->moves = !lilac_lower_rename(l, &reduced, p->out, &map, &p->source);
    }
    return true;
}

/* ---- combining --------------------------------------------------------------------------- */

/* Combines `count` (a power of two) elements standing one after another into the first: neighbours
 * first, so that what came earlier stays on the left and of an arg-max's indices the order is
 * known.
 */
static bool combine_tree(lilac_lowering *l, const lilac_tile_op *op, lilac_simt_value *elements,
                         uint32_t count) {
    uint32_t stride = op->operand_count;
    for (uint32_t apart = 1; apart < count; apart *= 2) {
        for (uint32_t i = 0; i < count; i += 2 * apart) {
            if (!lilac_lower_combine(l, op, elements + (size_t)i * stride,
                                     elements + (size_t)(i + apart) * stride)) {
                return false;
            }
        }
    }
    return true;
}

/* Is each result one commutative operation of its own two elements? Then partners in a butterfly
 * get the same bits; otherwise which of them was first may show. */
static bool is_commutative(const lilac_tile_op *op) {
    const lilac_tile_block *block = op->regions[0]->first;
    const lilac_tile_op *end = block->last;
    for (uint32_t i = 0; i < op->operand_count && i < end->operand_count; i++) {
        const lilac_tile_op *made_by = end->operands[i].value->op;
        if (made_by == NULL || made_by->parent != block || made_by->operand_count != 2 ||
            !(lilac_tile_op_info_get(made_by->code)->traits & LILAC_TILE_COMMUTATIVE)) {
            return false;
        }
        const lilac_tile_value *first = made_by->operands[0].value;
        const lilac_tile_value *second = made_by->operands[1].value;
        const lilac_tile_value *a = block->arguments[i];
        const lilac_tile_value *b = block->arguments[i + op->operand_count];
        if (!(first == a && second == b) && !(first == b && second == a)) {
            return false;
        }
    }
    return true;
}

/* ---- registers --------------------------------------------------------------------------- */

/* One element for each group. */
static lilac_simt_value *fold_registers(lilac_lowering *l, const lilac_tile_op *op, const plan *p) {
    uint32_t groups = 1U << p->group_bits, folds = 1U << p->fold_bits, n = p->operands;
    lilac_simt_value *results = lilac_arena_array(l->arena, lilac_simt_value, (size_t)groups * n);
    lilac_simt_value *list = lilac_arena_array(l->arena, lilac_simt_value, (size_t)folds * n);
    for (uint32_t g = 0; g < groups; g++) {
        uint32_t start = 0;
        for (uint32_t i = 0; i < p->group_bits; i++) {
            start |= (g >> i & 1) << p->group_register[i];
        }
        for (uint32_t t = 0; t < folds; t++) {
            uint32_t r = start;
            for (uint32_t i = 0; i < p->fold_bits; i++) {
                r ^= t >> i & 1 ? p->fold_masks[i] : 0;
            }
            for (uint32_t i = 0; i < n; i++) {
                list[(size_t)t * n + i] = lilac_lower_get(l, lilac_lower_operand(l, op, i), r);
            }
        }
        if (!combine_tree(l, op, list, folds)) {
            return NULL;
        }
        memcpy(results + (size_t)g * n, list, n * sizeof *list);
    }
    return results;
}

/* ---- lanes ------------------------------------------------------------------------------- */

/* A butterfly after which each lane has the elements with one setting of a bit of the groups: those
 * with the other setting go to its partner. */
static bool give_lanes(lilac_lowering *l, const lilac_tile_op *op, const plan *p, uint32_t step,
                       uint32_t groups, uint32_t bit, lilac_simt_value mask,
                       lilac_simt_value *elements, lilac_simt_value *others) {
    uint32_t n = p->operands, count = 0;
    uint64_t column[LILAC_LAYOUT_MAX_BITS] = {0};
    column[p->lane_pivots[step]] = 1;
    lilac_simt_value upper = lilac_simt_compare_values(
        &l->builder, LILAC_SIMT_NE,
        lilac_lower_linear(&l->builder, p->in->thread_bits, column, 0, NULL),
        lilac_simt_constant(&l->builder, LILAC_SIMT_I32, 0));
    for (uint32_t g = 0; g < 1U << p->group_bits; g++) {
        if (g & ~groups || g >> bit & 1) {
            continue;
        }
        lilac_simt_value *low = elements + (size_t)g * n;
        lilac_simt_value *high = elements + (size_t)(g | 1U << bit) * n;
        for (uint32_t i = 0; i < n; i++) {
            others[(size_t)count * n + i] = lilac_lower_select(l, upper, low[i], high[i]);
            low[i] = lilac_lower_select(l, upper, high[i], low[i]);
        }
        count++;
    }
    for (uint32_t i = 0; i < n; i++) {
        lilac_lower_shuffle_row(l, LILAC_SIMT_SHFL_XOR, mask, count, n, others + i, others + i);
    }
    count = 0;
    for (uint32_t g = 0; g < 1U << p->group_bits; g++) {
        if (!(g & ~groups) && !(g >> bit & 1) &&
            !lilac_lower_combine(l, op, elements + (size_t)g * n, others + (size_t)count++ * n)) {
            return false;
        }
    }
    return true;
}

/* Elements whose group has a bit set that was given away are no longer there. */
static bool fold_lanes(lilac_lowering *l, const lilac_tile_op *op, const plan *p,
                       lilac_simt_value *elements) {
    uint32_t groups = 1U << p->group_bits, n = p->operands;
    lilac_simt_value *others = lilac_arena_array(l->arena, lilac_simt_value, (size_t)groups * n);
    uint32_t left = groups - 1;
    for (uint32_t step = p->lane_steps; step-- > 0;) {
        lilac_simt_value mask =
            lilac_simt_constant(&l->builder, LILAC_SIMT_I32, p->lane_masks[step]);
        uint32_t number = p->lane_steps - 1 - step;
        if (number < p->give_steps) {
            uint32_t bit = p->give_group[number];
            if (!give_lanes(l, op, p, step, left, bit, mask, elements, others)) {
                return false;
            }
            left &= ~(1U << bit);
            continue;
        }
        /* All groups that are left, or, where any were given, there is but one. */
        uint32_t count = left == groups - 1 ? groups : 1;
        for (uint32_t i = 0; i < n; i++) {
            lilac_lower_shuffle_row(l, LILAC_SIMT_SHFL_XOR, mask, count, n, elements + i,
                                    others + i);
        }
        for (uint32_t g = 0; g < count; g++) {
            if (!lilac_lower_combine(l, op, elements + (size_t)g * n, others + (size_t)g * n)) {
                return false;
            }
        }
    }
    return true;
}

/* Gives all lanes that combined their values the bits of one of them. */
static void agree(lilac_lowering *l, const plan *p, lilac_simt_value *elements) {
    uint64_t columns[LILAC_LAYOUT_MAX_BITS] = {0};
    for (uint32_t i = 0; i < p->in->lane_bits; i++) {
        columns[i] = 1ULL << i;
    }
    for (uint32_t step = 0; step < p->lane_steps; step++) {
        uint32_t pivot = p->lane_pivots[step];
        columns[pivot] = p->lane_masks[step] ^ (1ULL << pivot);
    }
    lilac_simt_value lane = lilac_lower_linear(&l->builder, p->in->lane_bits, columns, 0, NULL);
    for (uint32_t i = 0; i < p->operands; i++) {
        lilac_lower_shuffle_row(l, LILAC_SIMT_SHFL_IDX, lane, 1U << p->group_bits, p->operands,
                                elements + i, elements + i);
    }
}

/* ---- warps ------------------------------------------------------------------------------- */

static void write_partials(lilac_lowering *l, const plan *p, uint32_t operand, uint32_t start,
                           const lilac_simt_instruction *promise,
                           const lilac_simt_value *elements) {
    lilac_simt_type type = lilac_simt_type_of(l->kernel, elements[operand]);
    uint32_t scale = lilac_lower_log2(lilac_lower_memory_bytes(type));
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    for (uint32_t i = 0; i < p->in->thread_bits; i++) {
        columns[i] = place_of(p, p->keeps[i]) << scale;
    }
    for (uint32_t s = 0; s < p->slot_bits; s++) {
        columns[p->slot_thread[s]] ^= 1ULL << p->slot_place[s] << scale;
    }
    uint32_t others = 0; /* groups that begin no vector, or were given to other lanes */
    for (uint32_t i = 0; i < p->write_bits; i++) {
        others |= 1U << p->write_group[i];
    }
    for (uint32_t i = 0; i < p->give_steps; i++) {
        others |= 1U << p->give_group[i];
    }
    lilac_lower_addressing a = lilac_lower_address_threads(l, p->in->thread_bits, columns);
    lilac_simt_value writes = lilac_lower_one_copy(l, p->idle_threads, 0);
    for (uint32_t g = 0; g < 1U << p->group_bits; g++) {
        if (g & others) {
            continue;
        }
        uint64_t part = 0;
        for (uint32_t i = 0; i < p->group_bits; i++) {
            part ^= g >> i & 1 ? group_column(p, i) : 0;
        }
        lilac_simt_value values[16];
        for (uint32_t k = 0; k < 1U << p->write_bits; k++) {
            uint32_t member = g;
            for (uint32_t i = 0; i < p->write_bits; i++) {
                member |= (k >> i & 1) << p->write_group[i];
            }
            values[k] = elements[(size_t)member * p->operands + operand];
        }
        int64_t immediate;
        lilac_simt_value address =
            lilac_lower_address_of(l, &a, place_of(p, part) << scale, &immediate);
        lilac_lower_store_vector(l, LILAC_SIMT_OP_ST_SHARED, type, 1U << p->write_bits, values,
                                 address, immediate + start, writes, promise);
    }
}

/* The partials of the reader's registers: of each register 2^slot_bits, `operands` apart. */
static void read_partials(lilac_lowering *l, const plan *p, uint32_t operand, uint32_t start,
                          lilac_simt_type type, const lilac_simt_instruction *promise,
                          lilac_simt_value *partials) {
    uint32_t scale = lilac_lower_log2(lilac_lower_memory_bytes(type));
    uint64_t columns[LILAC_LAYOUT_MAX_BITS] = {0};
    uint32_t bits = p->reader == NULL ? 0 : p->reader->thread_bits;
    for (uint32_t i = 0; i < bits; i++) {
        columns[i] = place_of(p, p->reader->threads[i]) << scale;
    }
    lilac_lower_addressing a = lilac_lower_address_threads(l, bits, columns);
    uint32_t later_registers = 0, later_slots = 0; /* bits of those that begin no vector */
    for (uint32_t i = 0; i < p->read_bits; i++) {
        uint32_t from = p->read_register[i];
        later_registers |= from < IS_SLOT ? 1U << from : 0;
        later_slots |= from >= IS_SLOT ? 1U << (from - IS_SLOT) : 0;
    }
    uint32_t count = p->reader == NULL ? 1 : p->reader->count, slots = 1U << p->slot_bits;
    for (uint32_t i = 0; i < count * slots; i++) {
        uint32_t r = i / slots, slot = i % slots;
        if (r & later_registers || slot & later_slots ||
            (p->reader != NULL && p->reader->canonical[r] != r)) {
            continue;
        }
        uint64_t part = p->reader == NULL ? 0 : place_of(p, p->reader->coordinates[r]);
        for (uint32_t s = 0; s < p->slot_bits; s++) {
            part ^= (uint64_t)(slot >> s & 1) << p->slot_place[s];
        }
        int64_t immediate;
        lilac_simt_value address = lilac_lower_address_of(l, &a, part << scale, &immediate);
        lilac_simt_value loaded[16];
        lilac_lower_load_vector(l, LILAC_SIMT_OP_LD_SHARED, type, 1U << p->read_bits, address,
                                immediate + start, 0, NULL, promise, loaded);
        for (uint32_t k = 0; k < 1U << p->read_bits; k++) {
            uint32_t member = r, partial = slot;
            for (uint32_t j = 0; j < p->read_bits; j++) {
                uint32_t from = p->read_register[j];
                member |= from < IS_SLOT ? (k >> j & 1) << from : 0;
                partial |= from >= IS_SLOT ? (k >> j & 1) << (from - IS_SLOT) : 0;
            }
            partials[((size_t)member * slots + partial) * p->operands + operand] = loaded[k];
        }
    }
}

/* Elements that stand as `from` says, moved where the results want them. */
static bool take_results(lilac_lowering *l, const plan *p, const lilac_lower_view *from,
                         uint32_t count, const lilac_simt_value *elements,
                         lilac_lower_value *const *results) {
    lilac_simt_value *values = lilac_arena_array(l->arena, lilac_simt_value, count);
    for (uint32_t i = 0; i < p->operands; i++) {
        for (uint32_t r = 0; r < count; r++) {
            values[r] = elements[(size_t)r * p->operands + i];
        }
        if (from == p->out) {
            memcpy(results[i]->base, values, count * sizeof *values);
        } else if (!lilac_lower_move(l, results[i]->simt, from, p->out, LILAC_MOVEMENT_ANY, values,
                                     results[i]->base)) {
            return false;
        }
    }
    return true;
}

static bool through_shared(lilac_lowering *l, const lilac_tile_op *op, const plan *p,
                           const lilac_simt_value *elements, lilac_lower_value *const *results) {
    uint32_t n = p->operands, slots = 1U << p->slot_bits, bytes = 0, scratch;
    uint32_t *starts = lilac_arena_array(l->arena, uint32_t, n);
    lilac_lower_barrier(l);
    for (uint32_t i = 0; i < n; i++) {
        starts[i] = (bytes + 15) / 16 * 16;
        bytes = starts[i] +
                (lilac_lower_memory_bytes(results[i]->simt) << p->slot_bits << p->keep_bits);
    }
    scratch = lilac_lower_scratch_again(l, bytes);
    lilac_simt_instruction promise = {.shared_begin = scratch, .shared_end = scratch + bytes};
    for (uint32_t i = 0; i < n; i++) {
        starts[i] += scratch;
        write_partials(l, p, i, starts[i], &promise, elements);
    }
    lilac_lower_barrier(l);
    const lilac_lower_view *reader = p->reader;
    uint32_t registers = reader == NULL ? 1 : reader->count;
    lilac_simt_value *partials =
        lilac_arena_array(l->arena, lilac_simt_value, (size_t)registers * slots * n);
    for (uint32_t i = 0; i < n; i++) {
        read_partials(l, p, i, starts[i], results[i]->simt, &promise, partials);
    }
    lilac_simt_value *ends = lilac_arena_array(l->arena, lilac_simt_value, (size_t)registers * n);
    for (uint32_t r = 0; r < registers; r++) {
        uint32_t same = reader == NULL ? r : reader->canonical[r];
        lilac_simt_value *list = partials + (size_t)r * slots * n;
        if (same == r && !combine_tree(l, op, list, slots)) {
            return false;
        }
        memcpy(ends + (size_t)r * n, same == r ? list : ends + (size_t)same * n, n * sizeof *ends);
    }
    return take_results(l, p, reader, registers, ends, results);
}

/* ---- the whole --------------------------------------------------------------------------- */

bool lilac_lower_reduce(lilac_lowering *l, const lilac_tile_op *op) {
    plan p;
    if (!make_plan(l, op, &p)) {
        return false;
    }
    lilac_lower_value **results = lilac_arena_array(l->arena, lilac_lower_value *, p.operands);
    for (uint32_t i = 0; i < p.operands; i++) {
        results[i] = lilac_lower_result(l, op, i);
        if (results[i] == NULL) {
            return false;
        }
        if (results[i]->view != p.out || lilac_lower_operand(l, op, i)->view != p.in) {
            return lilac_lower_refuse(l, "layout-conversion",
                                      "the operands of a reduction have different layouts");
        }
    }
    lilac_simt_value *elements = fold_registers(l, op, &p);
    if (elements == NULL || !fold_lanes(l, op, &p, elements)) {
        return false;
    }
    if (p.shared) {
        if (!through_shared(l, op, &p, elements, results)) {
            return false;
        }
    } else {
        if (p.lane_steps > 0 && !is_commutative(op)) {
            agree(l, &p, elements);
        }
        if (p.moves) {
            lilac_lower_view reduced;
            reduced_view(&p, &reduced);
            lilac_lower_find_copies(l, &reduced);
            if (!take_results(l, &p, &reduced, reduced.count, elements, results)) {
                return false;
            }
        }
        for (uint32_t i = 0; i < p.operands && !p.moves; i++) {
            for (uint32_t r = 0; r < results[i]->count; r++) {
                uint32_t group = p.source != NULL ? p.source[r] : r;
                results[i]->base[r] = elements[(size_t)group * p.operands + i];
            }
        }
    }
    for (uint32_t i = 0; i < p.operands && p.out == NULL; i++) {
        lilac_simt_mark_uniform(l->kernel, results[i]->base[0]);
    }
    return true;
}
