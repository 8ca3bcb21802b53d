/* ttg.warp_specialize: the partitions of a function become warp programs.
 *
 *     tt.func {                                programs warps 0 to 4 {        the function's warps
 *       A                                        A
 *       ttg.warp_specialize(%p)                  barrier of all programs
 *       default { D }                            D
 *       partition0(%q) num_warps(2) { P }  →     barrier of all programs
 *       B                                        B
 *     }                                        } warps 4 to 6 {               window of partition 0
 *                                                barrier of all programs
 *                                                P
 *                                                barrier of all programs
 *                                              }
 *
 * The windows of an operation's partitions are disjoint. Partitions of several operations, which
 * follow one another, share windows of their size. A window of at least a warpgroup begins at a
 * warpgroup. Windows without partitions fill the gaps, and the last warpgroup if numbers of
 * registers are requested: setmaxnreg is for whole warpgroups.
 *
 * Barriers of a region are named barriers of its warps. Thread numbers are those within the window.
 *
 * A captured scalar or descriptor is visible in all programs if the kernel's own body defines it:
 * it is a parameter, a constant or an allocation. What few operations compute from such values is
 * computed again. Another one is passed through shared memory in front of the first barrier; a
 * second barrier precedes D and P, which may use the same bytes.
 *
 * Scratch memory of a window begins behind all that the programs before it use, so programs share
 * no bytes but those of allocations. The lifetime of an allocation that is live in any region
 * covers the whole operation (memory/place_buffers.c). */
#include "partitions.h"

#include "coordinates.h"
#include "memory/descriptor.h"
#include "memory/shared_access.h"
#include "operations.h"

#include <lilac/tile_loops.h>

enum { JOINT_BARRIER, DEFAULT_BARRIER, BARRIERS = 16 };
enum { WARPGROUP = 4, LEAST_REGISTERS = 24, MOST_REGISTERS = 248, REGISTER_STEP = 8 };
enum { MOST_WINDOWS = 32, NO_PARTITION = -1, SLOT_BYTES = 8, MOST_COMPUTED = 4 };

/* Of the warps of a program. Window 0 executes the function. */
typedef struct window {
    uint32_t first, warps;
    bool idle;          /* it fills a gap */
    uint32_t registers; /* requested; 0: none */
} window;

/* A ttg.warp_specialize. */
typedef struct fork {
    const lilac_tile_op *op;
    int8_t partitions[MOST_WINDOWS]; /* by window */
    uint32_t slots;                  /* scratch memory of captures: its first byte */
    uint32_t slot_count;
    struct fork *next;
} fork;

struct lilac_lower_partitions {
    window windows[MOST_WINDOWS];
    uint32_t window_count, next_warp;
    uint32_t threads; /* of all windows that are not idle */
    bool requests;    /* a window requests registers */
    fork *forks, **end;
};

typedef struct lilac_lower_partitions partitions;

/* ---- windows ------------------------------------------------------------------------------ */

static window *add_window(partitions *p, uint32_t warps, bool idle) {
    window *w = &p->windows[p->window_count++];
    *w = (window){.first = p->next_warp, .warps = warps, .idle = idle};
    p->next_warp += warps;
    return w;
}

/* Idle windows up to the next warpgroup. Their numbers of warps are powers of two. */
static void fill_warpgroup(partitions *p) {
    while (p->next_warp % WARPGROUP != 0) {
        add_window(p, p->next_warp % 2 == 1 ? 1 : 2, true);
    }
}

/* A window of this size that no partition of the fork has; a new one if there is none. */
static uint32_t find_window(partitions *p, const fork *f, uint32_t warps) {
    for (uint32_t k = 1; k < p->window_count; k++) {
        if (p->windows[k].warps == warps && !p->windows[k].idle &&
            f->partitions[k] == NO_PARTITION) {
            return k;
        }
    }
    if (warps >= WARPGROUP) {
        fill_warpgroup(p);
    }
    add_window(p, warps, false);
    return p->window_count - 1;
}

static uint32_t rounded(uint32_t registers) {
    registers = registers < LEAST_REGISTERS ? LEAST_REGISTERS : registers;
    return (registers + REGISTER_STEP - 1) / REGISTER_STEP * REGISTER_STEP;
}

/* Gives the partitions of an operation their windows, the largest ones first. */
static bool place_partitions(lilac_lowering *l, partitions *p, fork *f) {
    for (uint32_t warps = 16; warps > 0; warps /= 2) {
        for (uint32_t k = 0; k < lilac_tile_partition_count(f->op); k++) {
            if (lilac_tile_partition_warps(f->op, k) != warps) {
                continue;
            }
            if (p->window_count + WARPGROUP > MOST_WINDOWS) {
                return lilac_lower_unsupported(l, "the kernel has too many partitions");
            }
            const uint32_t n = find_window(p, f, warps);
            const uint32_t wanted = lilac_tile_partition_registers(f->op, k);
            f->partitions[n] = (int8_t)k;
            if (wanted > 0) {
                const uint32_t registers = rounded(wanted);
                window *w = &p->windows[n];
                w->registers = w->registers > registers ? w->registers : registers;
                p->requests = true;
            }
        }
    }
    return true;
}

/* The operations of the function's own block; they are refused elsewhere. */
static bool find_forks(lilac_lowering *l, partitions *p) {
    for (const lilac_tile_op *op = l->function->body->first->first; op != NULL; op = op->next) {
        if (op->code != LILAC_TILE_OP_TTG_WARP_SPECIALIZE) {
            continue;
        }
        fork *f = lilac_arena_new(l->arena, fork);
        f->op = op;
        for (uint32_t k = 0; k < MOST_WINDOWS; k++) {
            f->partitions[k] = NO_PARTITION;
        }
        *p->end = f;
        p->end = &f->next;
        l->op = op;
        if (!place_partitions(l, p, f)) {
            return false;
        }
    }
    return true;
}

/* All windows of a warpgroup set the number of registers that one of them requests. */
static bool share_registers(lilac_lowering *l, partitions *p) {
    for (uint32_t k = 1; k < p->window_count; k++) {
        for (uint32_t n = 1; n < p->window_count; n++) {
            const window *from = &p->windows[n];
            window *to = &p->windows[k];
            if (from->registers > to->registers &&
                from->first / WARPGROUP == to->first / WARPGROUP) {
                to->registers = from->registers;
            }
        }
    }
    if (p->windows[0].warps % WARPGROUP != 0) {
        return lilac_lower_unsupported(l,
                                       "requested registers need a default region of whole "
                                       "warpgroups; the kernel has %u warps",
                                       p->windows[0].warps);
    }
    return true;
}

/* Registers of a thread when the kernel begins: those of a block alone on a multiprocessor. */
static uint32_t registers_at_entry(const lilac_lowering *l) {
    enum { MOST_AT_ENTRY = 256 };
    const uint32_t threads = l->partitions->next_warp * l->target->arch->warp_size;
    const uint32_t each = l->target->arch->registers / threads / REGISTER_STEP * REGISTER_STEP;
    return each < MOST_AT_ENTRY ? each : MOST_AT_ENTRY;
}

/* What is left of the registers goes to the default region. */
static bool divide_registers(lilac_lowering *l, partitions *p) {
    const uint32_t lanes = l->target->arch->warp_size, entry = registers_at_entry(l);
    const uint32_t all = entry * p->next_warp * lanes; /* those of the block, not of the device */
    uint32_t taken = 0;
    if (!share_registers(l, p)) {
        return false;
    }
    for (uint32_t k = 1; k < p->window_count; k++) {
        window *w = &p->windows[k];
        taken += (w->registers > 0 ? w->registers : entry) * w->warps * lanes;
    }
    uint32_t left = taken < all ? (all - taken) / (p->windows[0].warps * lanes) : 0;
    left = left / REGISTER_STEP * REGISTER_STEP;
    if (left > entry) {
        left = MOST_REGISTERS < entry ? entry : left < MOST_REGISTERS ? left : MOST_REGISTERS;
    }
    if (left < LEAST_REGISTERS) {
        return lilac_lower_unsupported(l,
                                       "its partitions request %u registers, which leaves %u for a "
                                       "thread of the default region; a block on %s has %u",
                                       taken, left, l->target->arch->name, all);
    }
    p->windows[0].registers = left;
    return true;
}

static bool has_forks(const lilac_tile_block *block) {
    for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
        if (op->code == LILAC_TILE_OP_TTG_WARP_SPECIALIZE) {
            return true;
        }
    }
    return false;
}

bool lilac_lower_find_partitions(lilac_lowering *l) {
    if (!has_forks(l->function->body->first)) {
        return true;
    }
    partitions *p = lilac_arena_new(l->arena, partitions);
    p->end = &p->forks;
    add_window(p, l->target->num_warps, false);
    l->partitions = p;
    if (!find_forks(l, p)) {
        return false;
    }
    l->op = p->forks->op;
    if (l->target->num_ctas > 1) {
        return lilac_lower_unsupported(l,
                                       "the kernel has %u blocks in a cluster; partitions are "
                                       "lowered for one block",
                                       l->target->num_ctas);
    }
    if (p->requests) {
        fill_warpgroup(p);
    }
    if (p->window_count > BARRIERS - DEFAULT_BARRIER || p->next_warp > l->target->arch->max_warps) {
        return lilac_lower_unsupported(l,
                                       "the kernel would have %u warps in %u windows; a block "
                                       "has at most %u warps and %d windows",
                                       p->next_warp, p->window_count, l->target->arch->max_warps,
                                       BARRIERS - DEFAULT_BARRIER);
    }
    if (p->requests && !divide_registers(l, p)) {
        return false;
    }
    for (uint32_t k = 0; k < p->window_count; k++) {
        p->threads += p->windows[k].idle ? 0 : p->windows[k].warps * l->target->arch->warp_size;
    }
    l->op = NULL;
    return true;
}

uint32_t lilac_lower_warps(const lilac_lowering *l) {
    return l->partitions != NULL ? l->partitions->next_warp : l->target->num_warps;
}

/* ---- captures ----------------------------------------------------------------------------- */

static const lilac_simt_instruction *definition(const lilac_lowering *l, lilac_simt_value value) {
    return l->kernel->values[value].definition;
}

static bool is_everywhere(const lilac_lowering *l, lilac_simt_value value) {
    const lilac_simt_instruction *made = definition(l, value);
    return made != NULL && made->parent == l->kernel->body;
}

/* Is the value visible in all programs, or computed by few pure operations from such values? Those
 * are executed again. `left` counts them. */
static bool is_computed(const lilac_lowering *l, lilac_simt_value value, uint32_t *left) {
    const lilac_simt_instruction *made = definition(l, value);
    if (is_everywhere(l, value)) {
        return true;
    }
    if (*left == 0 || made == NULL || made->result_count != 1 || made->body_count > 0 ||
        (lilac_simt_op_info_get((lilac_simt_opcode)made->code)->traits &
         (LILAC_SIMT_PURE | LILAC_SIMT_CONVERGENT)) != LILAC_SIMT_PURE) {
        return false;
    }
    --*left;
    for (uint32_t i = 0; i < made->operand_count; i++) {
        if (!is_computed(l, made->operands[i], left)) {
            return false;
        }
    }
    return true;
}

static bool is_known(const lilac_lowering *l, lilac_simt_value value) {
    uint32_t left = MOST_COMPUTED;
    return is_computed(l, value, &left);
}

/* The known value in this program. */
static lilac_simt_value compute(lilac_lowering *l, lilac_simt_value value) {
    if (is_everywhere(l, value)) {
        return value;
    }
    const lilac_simt_instruction *made = definition(l, value);
    const lilac_simt_type type = lilac_simt_type_of(l->kernel, value);
    lilac_simt_value *operands = lilac_arena_array(l->arena, lilac_simt_value, made->operand_count);
    for (uint32_t i = 0; i < made->operand_count; i++) {
        operands[i] = compute(l, made->operands[i]);
    }
    return lilac_simt_build(&l->builder, made, made->operand_count, operands, 1, &type);
}

/* The SIMT values of a captured value; at most two. */
static uint32_t values_of(const lilac_lower_value *value, lilac_simt_value *list) {
    uint32_t count = 0;
    if (value->kind == LILAC_LOWER_REGISTERS) {
        list[count++] = value->base[0];
    } else if (value->kind == LILAC_LOWER_MEMORY) {
        if (value->memory->dynamic != 0) {
            list[count++] = value->memory->dynamic;
        }
        if (value->memory->dynamic_shift != 0) {
            list[count++] = value->memory->dynamic_shift;
        }
    }
    return count;
}

static bool check_captures(lilac_lowering *l, const lilac_tile_op *op) {
    for (uint32_t i = 0; i < op->operand_count; i++) {
        const lilac_tile_type *type = op->operands[i].value->type;
        if (lilac_tile_is_tensor(type) || type->kind == LILAC_TILE_TOKEN) {
            return lilac_lower_unsupported(
                l,
                "operand %u is a %s; partitions receive scalars, pointers, descriptors and "
                "memory",
                i, lilac_tile_is_tensor(type) ? "tensor" : "token");
        }
    }
    return true;
}

/* Where a value passes through shared memory: i1 as i32. */
static lilac_simt_type slot_type(lilac_simt_type type) {
    return type == LILAC_SIMT_I1 ? LILAC_SIMT_I32 : type;
}

static lilac_simt_value shared_base(lilac_lowering *l) {
    const lilac_simt_instruction base = {.code = LILAC_SIMT_OP_SHARED_BASE};
    const lilac_simt_type type = LILAC_SIMT_I32;
    return lilac_simt_build(&l->builder, &base, 0, NULL, 1, &type);
}

static lilac_simt_instruction slot_access(const fork *f) {
    return (lilac_simt_instruction){.shared_begin = f->slots,
                                    .shared_end = f->slots + f->slot_count * SLOT_BYTES};
}

/* Visits the SIMT values that pass through shared memory, in the order of the slots. */
static void store_captures(lilac_lowering *l, fork *f) {
    lilac_simt_value list[2];
    f->slot_count = 0;
    for (uint32_t i = 0; i < f->op->operand_count; i++) {
        const uint32_t count = values_of(lilac_lower_operand(l, f->op, i), list);
        for (uint32_t k = 0; k < count; k++) {
            f->slot_count += !is_known(l, list[k]);
        }
    }
    if (f->slot_count == 0) {
        return;
    }
    f->slots = lilac_lower_scratch(l, (uint64_t)f->slot_count * SLOT_BYTES);
    const lilac_simt_instruction like = slot_access(f);
    lilac_simt_builder *b = &l->builder;
    lilac_lower_barrier(l);
    lilac_simt_value zero = lilac_lower_integer(l, LILAC_SIMT_I32, 0);
    lilac_simt_value first =
        lilac_simt_compare_values(b, LILAC_SIMT_EQ, lilac_simt_thread(b), zero);
    for (uint32_t i = 0, slot = 0; i < f->op->operand_count; i++) {
        const uint32_t count = values_of(lilac_lower_operand(l, f->op, i), list);
        for (uint32_t k = 0; k < count; k++) {
            if (is_known(l, list[k])) {
                continue;
            }
            lilac_simt_value value = list[k];
            if (lilac_simt_type_of(l->kernel, value) == LILAC_SIMT_I1) {
                value = lilac_simt_op1(b, LILAC_SIMT_OP_ZEXT, LILAC_SIMT_I32, value);
            }
            lilac_simt_store(b, LILAC_SIMT_OP_ST_SHARED, 1, &value, shared_base(l),
                             (int64_t)f->slots + SLOT_BYTES * slot++, first, &like);
        }
    }
}

/* The value in this program, of one that the default region's program computes. */
static lilac_simt_value receive(lilac_lowering *l, const fork *f, lilac_simt_value value,
                                uint32_t *slot) {
    if (is_known(l, value)) {
        return compute(l, value);
    }
    const lilac_simt_instruction like = slot_access(f);
    const lilac_simt_type type = lilac_simt_type_of(l->kernel, value);
    lilac_simt_builder *b = &l->builder;
    lilac_simt_value loaded =
        lilac_simt_load(b, LILAC_SIMT_OP_LD_SHARED, slot_type(type), 1, shared_base(l),
                        (int64_t)f->slots + SLOT_BYTES * (*slot)++, 0, NULL, &like);
    return type == LILAC_SIMT_I1
               ? lilac_simt_compare_values(b, LILAC_SIMT_NE, loaded,
                                           lilac_lower_integer(l, LILAC_SIMT_I32, 0))
               : loaded;
}

static void receive_memory(lilac_lowering *l, const fork *f, const lilac_lower_value *from,
                           const lilac_tile_value *argument, uint32_t *slot) {
    lilac_lower_memory *memory = lilac_arena_new(l->arena, lilac_lower_memory);
    *memory = *from->memory;
    if (memory->dynamic != 0) {
        memory->dynamic = receive(l, f, memory->dynamic, slot);
    }
    if (memory->dynamic_shift != 0) {
        memory->dynamic_shift = receive(l, f, memory->dynamic_shift, slot);
    }
    lilac_lower_define_reference(l, argument)->memory = memory;
}

static bool receive_captures(lilac_lowering *l, const fork *f, const lilac_tile_block *block) {
    uint32_t slot = 0;
    for (uint32_t i = 0; i < block->argument_count; i++) {
        const lilac_lower_value *from = lilac_lower_operand(l, f->op, i);
        const lilac_tile_value *argument = block->arguments[i];
        if (from->kind == LILAC_LOWER_MEMORY) {
            receive_memory(l, f, from, argument, &slot);
            continue;
        }
        lilac_lower_value *to = argument->type->kind == LILAC_TILE_DESCRIPTOR
                                    ? lilac_lower_define_map(l, argument)
                                    : lilac_lower_define(l, argument);
        if (to == NULL) {
            return false;
        }
        const bool constant = from->offsets != NULL && from->offsets[0] != 0;
        to->base[0] = receive(l, f, from->base[0], &slot);
        if (constant) {
            to->base[0] = lilac_simt_op2(&l->builder, LILAC_SIMT_OP_ADD, to->simt, to->base[0],
                                         lilac_lower_integer(l, to->simt, from->offsets[0]));
        }
    }
    return true;
}

/* ---- programs ----------------------------------------------------------------------------- */

static void joint_barrier(lilac_lowering *l) {
    lilac_simt_named_barrier(&l->builder, true, JOINT_BARRIER, l->partitions->threads);
}

static void open_window(lilac_lowering *l, uint32_t number) {
    const window *w = &l->partitions->windows[number];
    const uint32_t entry = registers_at_entry(l);
    l->builder.window = (lilac_simt_window){
        .first_warp = w->first, .warps = w->warps, .barrier = DEFAULT_BARRIER + number};
    if (w->registers > 0 && w->registers != entry) {
        lilac_simt_set_max_registers(&l->builder, w->registers > entry, w->registers);
    }
}

/* What the programs before computed is not visible in this one, and its scratch memory is its own.
 * */
static void begin_window(lilac_lowering *l) {
    l->scratch_floor = l->shared_bytes;
    l->scratch_begin = l->scratch_next = l->reused_begin = l->reused_end = 0;
    lilac_lower_place_scratch(l);
}

static bool lower_partition(lilac_lowering *l, const fork *f, uint32_t partition) {
    const lilac_tile_block *block = f->op->regions[1 + partition]->first;
    const lilac_target *around = l->target;
    lilac_target target = *around;
    target.num_warps = lilac_tile_partition_warps(f->op, partition);
    l->target = &target;
    const bool good = lilac_lower_block(l, block) != NULL;
    l->target = around;
    return good;
}

static bool lower_window(lilac_lowering *l, uint32_t number) {
    for (const fork *f = l->partitions->forks; f != NULL; f = f->next) {
        const int partition = f->partitions[number];
        joint_barrier(l);
        l->op = f->op;
        if (partition != NO_PARTITION &&
            !receive_captures(l, f, f->op->regions[1 + partition]->first)) {
            return false;
        }
        if (f->slot_count > 0) {
            joint_barrier(l);
        }
        if (partition != NO_PARTITION && !lower_partition(l, f, (uint32_t)partition)) {
            return false;
        }
        joint_barrier(l);
    }
    return true;
}

const lilac_tile_op *lilac_lower_programs(lilac_lowering *l) {
    partitions *p = l->partitions;
    uint32_t warps[MOST_WINDOWS];
    for (uint32_t k = 0; k < p->window_count; k++) {
        warps[k] = p->windows[k].warps;
    }
    lilac_simt_instruction *programs =
        lilac_simt_programs_begin(&l->builder, p->window_count, warps);
    open_window(l, 0);
    const lilac_tile_op *end = lilac_lower_block(l, l->function->body->first);
    for (uint32_t k = 1; end != NULL && k < p->window_count; k++) {
        lilac_simt_programs_next(&l->builder, programs);
        open_window(l, k);
        begin_window(l);
        if (!p->windows[k].idle && !lower_window(l, k)) {
            end = NULL;
        }
    }
    if (end != NULL) {
        lilac_simt_programs_end(&l->builder, programs);
        l->builder.window = (lilac_simt_window){0};
        l->kernel->min_blocks = p->requests ? 1 : l->kernel->min_blocks;
    }
    return end;
}

/* The default region, in the function's own program. */
bool lilac_lower_warp_specialize(lilac_lowering *l, const lilac_tile_op *op) {
    fork *f = l->partitions != NULL ? l->partitions->forks : NULL;
    while (f != NULL && f->op != op) {
        f = f->next;
    }
    if (f == NULL) {
        return lilac_lower_unsupported(l, "it is inside a loop or a conditional; partitions are "
                                          "lowered in the function's own block");
    }
    if (!check_captures(l, op)) {
        return false;
    }
    store_captures(l, f);
    joint_barrier(l);
    if (f->slot_count > 0) {
        joint_barrier(l);
    }
    const lilac_tile_op *end = lilac_lower_block(l, op->regions[0]->first);
    if (end == NULL) {
        return false;
    }
    l->op = op;
    for (uint32_t i = 0; i < op->result_count; i++) {
        l->values[op->results[i].id] = *lilac_lower_operand(l, end, i);
    }
    joint_barrier(l);
    return true;
}
