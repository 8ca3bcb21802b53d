/* How many blocks a multiprocessor is to hold: .minnctapersm.
 *
 * Told nothing, an assembler weighs registers against blocks by rules of its own; told a number, it
 * takes the registers that this number allows, if the schedule gets shorter by them. These kinds of
 * kernels are told one, everything else is left alone; clusters are, too.
 *
 * Kernels with barriers. The assembler may take one register more than leaves room for another
 * block:
 *
 *     66 registers of 512 threads    1 block of 65536 / (72 · 512)
 *     64 registers                   2 blocks
 *
 * That is dear where the threads of a block wait for each other: while they do, only other blocks
 * keep memory busy. What it takes them for is, as a rule, loads issued early that could come late
 * at no cost: those that all blocks make alike, as of weights, for the second-level cache has them.
 * So it is asked how many blocks there is room for when such loads come early and when they come
 * late (lilac_simt_pressure), and where that differs the assembler is told the larger number,
 * unless that is near the most that a multiprocessor holds, where another block is worth little and
 * a register too few much.
 *
 * Kernels that stream through loops. To save registers the assembler breaks up the loads of a turn:
 *
 *     LDG a                LDG a
 *     … work on a          LDG b        instead
 *     LDG b                … work on a
 *     … work on b          … work on b
 *
 * and then a thread waits for memory twice a turn. Where few blocks are at work nothing hides that,
 * and how many there will be nobody knows here; on an H200 whole loads made sums of columns with
 * one block a multiprocessor 1.8 times as fast, others up to 1.6 times, and long rows by 3 to 5
 * percent. So the assembler is told the number of blocks that there is room for with all loads of a
 * turn at once. Fewer blocks are also fewer warps for the arithmetic, which needs about five
 * eighths of the most to have no gaps: if its pipes are to be busy for a share of the time that
 * memory is, the warps may not fall below that share of five eighths. Near the most that a
 * multiprocessor holds nothing is said, as above.
 *
 * The same goes for code without loops and barriers in which a row of loads stands behind exchanges
 * between lanes, as of weights behind the sums of a row: with registers for it the assembler issues
 * the row first, and nobody waits for it then (H200: a Welford norm of short rows 5 percent).
 */
#include "emit.h"

static bool is_barrier(const lilac_simt_instruction *i) {
    return i->code == LILAC_SIMT_OP_BARRIER || i->code == LILAC_SIMT_OP_GROUP_BARRIER;
}

bool lilac_ptx_waits(const lilac_simt_body *body) {
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        if (is_barrier(i)) {
            return true;
        }
        for (uint32_t k = 0; k < i->body_count; k++) {
            if (lilac_ptx_waits(i->bodies[k])) {
                return true;
            }
        }
    }
    return false;
}

enum { ROW = 4 /* loads of a turn that are worth keeping together */ };

/* What a turn of a loop takes of a warp, in 1/16 clocks: of the pipes, and of the bandwidth. */
typedef struct turn {
    uint64_t work, memory;
    uint32_t loads;
} turn;

static bool is_loop(const lilac_simt_instruction *i) {
    return i->code == LILAC_SIMT_OP_LOOP || i->code == LILAC_SIMT_OP_WHILE;
}

static uint32_t bits_of(const lilac_simt_kernel *kernel, lilac_simt_value v) {
    return lilac_simt_type_bits((lilac_simt_type)kernel->values[v].type);
}

static uint64_t work_of(const lilac_simt_kernel *kernel, const lilac_simt_instruction *i) {
    const lilac_costs *costs = kernel->module->arch->costs;
    if (i->result_count > 0 && kernel->values[i->result].uniform) {
        return 0; /* on a pipe of its own */
    }
    switch (i->code) {
    case LILAC_SIMT_OP_CONST:
    case LILAC_SIMT_OP_PARAM:
    case LILAC_SIMT_OP_BITCAST:
        return 0;
    case LILAC_SIMT_OP_FEXP2:
    case LILAC_SIMT_OP_FLOG2:
    case LILAC_SIMT_OP_FRCP:
    case LILAC_SIMT_OP_FRSQRT:
    case LILAC_SIMT_OP_FSQRT:
    case LILAC_SIMT_OP_FSIN:
    case LILAC_SIMT_OP_FCOS:
    case LILAC_SIMT_OP_FTANH:
        return costs->special;
    case LILAC_SIMT_OP_FDIV: /* a reciprocal and scaling */
        return costs->special + UINT64_C(8) * costs->issue;
    default:
        return costs->issue;
    }
}

/* Bytes of a thread that an access moves. */
static uint64_t bytes_of(const lilac_simt_kernel *kernel, const lilac_simt_instruction *i) {
    uint64_t bits = 0;
    if (i->code == LILAC_SIMT_OP_LD_GLOBAL) {
        return (uint64_t)i->result_count * bits_of(kernel, i->result) / 8;
    }
    for (uint32_t k = 1; i->code == LILAC_SIMT_OP_ST_GLOBAL && k < i->operand_count; k++) {
        bits += kernel->values[i->operands[k]].type == LILAC_SIMT_I1
                    ? 0
                    : bits_of(kernel, i->operands[k]);
    }
    return bits / 8;
}

static void add(turn *t, const lilac_simt_kernel *kernel, const lilac_simt_instruction *i) {
    const lilac_arch *arch = kernel->module->arch;
    t->work += work_of(kernel, i);
    t->loads += i->code == LILAC_SIMT_OP_LD_GLOBAL;
    t->memory += bytes_of(kernel, i) * arch->warp_size * arch->costs->sector / arch->sector_bytes;
}

/* Over the loops in which no barrier is and something is loaded or stored: the most loads of a
 * turn, and the work and the traffic of the turn in which work is most beside traffic. Adds to
 * `all` what one run of the body costs, loops within it left out. Is there a barrier in it? */
static bool find_busiest(turn *busiest, turn *all, const lilac_simt_kernel *kernel,
                         const lilac_simt_body *body) {
    bool any = false;
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        turn t = {0, 0, 0};
        bool waits = is_barrier(i);
        for (uint32_t k = 0; k < i->body_count; k++) {
            waits |= find_busiest(busiest, &t, kernel, i->bodies[k]);
        }
        any |= waits;
        add(all, kernel, i);
        if (!is_loop(i)) {
            all->work += t.work;
            all->memory += t.memory;
            all->loads += t.loads;
            continue;
        }
        if (waits || t.memory == 0) {
            continue;
        }
        if (busiest->memory == 0 || t.work * busiest->memory > busiest->work * t.memory) {
            busiest->work = t.work;
            busiest->memory = t.memory;
        }
        busiest->loads = t.loads > busiest->loads ? t.loads : busiest->loads;
    }
    return any;
}

/* Loads that stand behind the first exchange between lanes. */
static uint32_t loads_behind_exchanges(const lilac_simt_body *body) {
    uint32_t loads = 0;
    bool behind = false;
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        behind |= (lilac_simt_op_info_get((lilac_simt_opcode)i->code)->traits &
                   LILAC_SIMT_CONVERGENT) != 0;
        loads += behind && i->code == LILAC_SIMT_OP_LD_GLOBAL;
    }
    return loads;
}

static bool is_near_most(const lilac_simt_kernel *kernel, uint32_t blocks) {
    return 4 * blocks * kernel->num_warps > 3 * kernel->module->arch->resident_warps;
}

static uint32_t with_barriers(const lilac_simt_kernel *kernel) {
    uint32_t late = lilac_simt_resident_blocks(kernel, lilac_simt_pressure(kernel, true));
    uint32_t early = lilac_simt_resident_blocks(kernel, lilac_simt_pressure(kernel, false));
    return late > early && late > 1 && !is_near_most(kernel, late) ? late : 0;
}

static uint32_t with_whole_loads(const lilac_simt_kernel *kernel) {
    uint32_t full = 5 * kernel->module->arch->resident_warps / 8; /* warps that fill the pipes */
    turn busiest = {0, 0, 0}, all = {0, 0, 0};
    bool waits = find_busiest(&busiest, &all, kernel, kernel->body);
    if (busiest.memory == 0 && !waits && loads_behind_exchanges(kernel->body) >= ROW) {
        busiest.work += all.work;
        busiest.memory += all.memory;
        busiest.loads += all.loads;
    }
    uint32_t blocks = lilac_simt_resident_blocks(kernel, lilac_simt_pressure(kernel, false));
    if (busiest.loads < ROW || is_near_most(kernel, blocks)) {
        return 0;
    }
    uint64_t warps = (uint64_t)blocks * kernel->num_warps;
    return warps * busiest.memory >= full * busiest.work ? blocks : 0;
}

uint32_t lilac_ptx_blocks(const lilac_simt_kernel *kernel) {
    if (kernel->num_ctas > 1) {
        return 0;
    }
    uint32_t blocks = lilac_ptx_waits(kernel->body) ? with_barriers(kernel) : 0;
    return blocks > 0 ? blocks : with_whole_loads(kernel);
}
