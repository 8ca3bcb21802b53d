/* The number of blocks that a multiprocessor shall hold: kernel->min_blocks, .minnctapersm in PTX.
 *
 *     kernel @k(…) warps 16 ctas 1 shared 64 {   →   kernel @k(…) warps 16 ctas 1 shared 64
 *                                                        min_blocks 2 {
 *
 * Without this number an assembler balances registers against blocks by rules of its own. With it,
 * the assembler uses all registers that this number of blocks allows if the schedule gets shorter.
 * Seven kinds of kernels get a number; all others, and clusters, get none.
 *
 * Kernels of a known number of programs, if the blocks of a launch fit on the device at the same time: as many blocks
 * as each multiprocessor gets. More would stay empty, and their registers are better used for loads in flight. The
 * registers must suffice, or the assembler spills: for the live words and two more, or eight more if pure values are
 * computed as soon as they free registers. An eighth of the programs may be too many: the last ones start when the
 * first ones end. Products have rules of their own (bench/results/h200_known_programs.md).
 *
 * Kernels with barriers, of blocks of several warps. The assembler may use one register more than
 * leaves space for another block:
 *
 *     66 registers of 512 threads    1 block of 65536 / (72 · 512)
 *     64 registers                   2 blocks
 *
 * That costs much where the threads of a block wait for each other: meanwhile only other blocks
 * keep memory busy. The extra registers usually hold the results of loads that were issued early
 * and could be issued late at no cost: loads of the same addresses in all blocks, such as weights,
 * which hit the second-level cache. lilac_simt_pressure estimates the registers with such loads
 * early and with such loads late. Where the numbers of blocks differ, the kernel gets the larger
 * one, unless it is close to the most that a multiprocessor holds: there another block gains
 * little, and a register too few costs much.
 *
 * Products of wgmma, of blocks with an eighth of the most warps. All warps of a block wait for
 * copies, for barriers and for products at about the same time; a second block then uses the tensor
 * cores, and its loop runs while this block stores its results. Two blocks are worth a few
 * registers that the assembler would rather have: it takes 130 to 160 of them for loops that need
 * no more than the 128 that two blocks of 8 warps leave. If the live words fit in these, or if the
 * estimate exceeds what two blocks leave by at most a quarter, the kernel gets two. The latter does
 * not hold for products of products, such as attention: their accumulators and operands cannot be
 * spilled while they are in flight, and a limit would serialise them.
 *
 * Kernels that stream through loops. To save registers the assembler separates the loads of one
 * iteration:
 *
 *     LDG a                LDG a
 *     … work on a          LDG b        instead
 *     LDG b                … work on a
 *     … work on b          … work on b
 *
 * Then a thread waits for memory twice in each iteration. Where few blocks run, nothing hides that,
 * and the number of blocks of the launch is not known here. The kernel gets the number of blocks
 * that fit with all loads of one iteration in flight (bench/results has the effect on an H200).
 * Fewer blocks are also fewer warps for arithmetic, which needs about five eighths of the most
 * warps to have no gaps: if the pipes are busy for a share of the time that memory is, the warps
 * must not fall below that share of five eighths. Close to the most blocks no number is given, as
 * above. The warps fill all partitions evenly: 17 blocks of one warp would leave a thread the 96
 * registers of 20, and it would spill.
 *
 * The same holds for code without loops and barriers that has exchanges between lanes and at least
 * ROW loads, such as the sum of a row and a product with weights: the exchange waits for all loads
 * of the row, and with registers for them the assembler issues these and the weights' first. Its
 * registers are estimated in an order that ends values promptly: in a tree of sums (Welford's
 * algorithm) half of them are live otherwise (bench/results/decisions.md). Code whose elements need no others gets no
 * number: some of it is faster with one, some slower (bench/results/h200_kept_kernels.md).
 *
 * Kernels with barriers whose busiest loop keeps the pipes busy for as long as memory, or longer, such
 * as the means and variances of Welford's algorithm. Warps hide the latency of arithmetic; if the live
 * words, estimated in an order that ends values promptly, fit in the registers of the most warps, the
 * kernel gets as many blocks. An assembler that takes a few registers more loses a quarter of the
 * warps (bench/results/h200_kept_kernels.md).
 *
 * Straight-line code of whose blocks the registers hold at most an eighth of the most warps. Such
 * blocks leave gaps in the pipes, and a block that is alone overlaps its loads with nothing. Let w
 * be the time that the pipes need without gaps, and s that of the spills with another block: a
 * store and a load for each word that is too many in the order of the text or, if that is more, in
 * the order of the uses. With b blocks of n warps, of the `full` that have no gaps, arithmetic
 * needs
 *
 *     w · full / (b · n)     instead     (w + s) · full / ((b + 1) · n)
 *
 * If the first one exceeds the time of memory and the second is a fifth less, the kernel gets b + 1
 * blocks.
 *
 * Code whose live words do not fit in the registers of a thread, such as products of f32 without tensor cores.
 * Where a thousand words are spilled, ptxas (12.8, 13.0) leaves a thread the 32 registers of the most warps, and spills
 * several times as many. With one block as the number it takes all (bench/results/decisions.md). Code without products
 * of tensor cores gets the number only if the words do not fit without those that it loads, either: its loads need not
 * be in flight together, as the estimate has them, and without a number ptxas issues them one after another.
 */
#include "internal.h"

#include <lilac/occupancy.h>
#include <lilac/simt_matrix.h>

static bool is_barrier(const lilac_simt_instruction *i) {
    return i->code == LILAC_SIMT_OP_BARRIER || i->code == LILAC_SIMT_OP_GROUP_BARRIER;
}

/* Has the body such an instruction, in itself or in a body of its instructions? */
static bool contains(const lilac_simt_body *body, bool (*is)(const lilac_simt_instruction *)) {
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        if (is(i)) {
            return true;
        }
        for (uint32_t k = 0; k < i->body_count; k++) {
            if (contains(i->bodies[k], is)) {
                return true;
            }
        }
    }
    return false;
}

bool lilac_simt_waits(const lilac_simt_body *body) {
    return contains(body, is_barrier);
}

enum {
    ROW = 4,        /* loads of an iteration that are kept together from this number on */
    PARTITIONS = 4, /* of a multiprocessor, with a register file each */
    SPARE = 16, /* registers that an assembler may take besides, where code gets more live words */
    FEW_MISSING = 4, /* a quarter of the registers */
    EARLY_SPARE = 2, /* see above: kernels of a known number of programs */
    PROMPT_SPARE = 8
};

/* The estimates of live words, each computed when it is first needed; 0: not yet. */
typedef struct estimates {
    const lilac_simt_kernel *kernel;
    uint32_t words[LILAC_SIMT_PRESSURE_PROMPT + 1];
} estimates;

static uint32_t words_of(estimates *e, lilac_simt_pressure_order order) {
    if (e->words[order] == 0) {
        e->words[order] = lilac_simt_pressure(e->kernel, order);
    }
    return e->words[order];
}

/* Cost of one iteration of a loop for a warp, in 1/16 clocks: of the pipes and of the bandwidth. */
typedef struct iteration {
    uint64_t work, memory;
    uint32_t loads;
} iteration;

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
    if (lilac_simt_has_trait(i->code, LILAC_SIMT_FREE)) {
        return 0;
    }
    if (i->code == LILAC_SIMT_OP_FDIV) { /* a reciprocal and scaling */
        return costs->special + UINT64_C(8) * costs->issue;
    }
    return lilac_simt_has_trait(i->code, LILAC_SIMT_SPECIAL) ? costs->special : costs->issue;
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

static void add(iteration *t, const lilac_simt_kernel *kernel, const lilac_simt_instruction *i) {
    const lilac_arch *arch = kernel->module->arch;
    t->work += work_of(kernel, i);
    t->loads += i->code == LILAC_SIMT_OP_LD_GLOBAL;
    t->memory += bytes_of(kernel, i) * arch->warp_size * arch->costs->sector / arch->sector_bytes;
}

/* Over the loops without barriers that load or store: the most loads of an iteration, and the work
 * and the traffic of the iteration with the largest ratio of work to traffic. Adds to `all` the
 * cost of one execution of the body without the loops in it. Returns whether it has a barrier. */
static bool find_busiest(iteration *busiest, iteration *all, const lilac_simt_kernel *kernel,
                         const lilac_simt_body *body) {
    bool any = false;
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        iteration t = {0, 0, 0};
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

/* Is there an exchange between lanes, other than a matrix product? */
static bool has_exchanges(const lilac_simt_body *body) {
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        if (lilac_simt_has_trait(i->code, LILAC_SIMT_CONVERGENT) &&
            !lilac_simt_has_trait(i->code, LILAC_SIMT_SYNC) && i->code != LILAC_SIMT_OP_MMA) {
            return true;
        }
    }
    return false;
}

static bool is_near_most(const lilac_simt_kernel *kernel, uint32_t blocks) {
    return 4 * blocks * kernel->num_warps > 3 * kernel->module->arch->resident_warps;
}

/* The resident blocks whose warps divide evenly among the partitions. The assembler limits
 * registers to what the fullest partition has: 21 blocks of one warp have the registers of 24. */
static uint32_t even_blocks(const lilac_simt_kernel *kernel, uint32_t pressure) {
    const uint32_t warps = lilac_simt_resident_blocks(kernel, pressure) * kernel->num_warps;
    return warps / PARTITIONS * PARTITIONS / kernel->num_warps;
}

/* The same, or as many as fill the partitions evenly, if these leave a register for each live word:
 * the resident blocks count some that an assembler may need besides. */
static uint32_t nearly_even_blocks(const lilac_simt_kernel *kernel, uint32_t pressure) {
    const lilac_arch *arch = kernel->module->arch;
    const uint32_t blocks = lilac_simt_resident_blocks(kernel, pressure);
    const uint32_t warps = blocks * kernel->num_warps + PARTITIONS - 1;
    const uint32_t more = warps / PARTITIONS * PARTITIONS / kernel->num_warps;
    return more > blocks && pressure <= lilac_registers_for_blocks(arch, kernel->num_warps, more)
               ? more
               : even_blocks(kernel, pressure);
}

static bool is_product(const lilac_simt_instruction *i) {
    return i != NULL && i->code == LILAC_SIMT_OP_WGMMA;
}

static bool is_any_product(const lilac_simt_instruction *i) {
    return is_product(i) || i->code == LILAC_SIMT_OP_MMA;
}

/* As many blocks as each multiprocessor gets, if all programs run at the same time; 0: no. */
static uint32_t with_known_programs(estimates *e) {
    const lilac_simt_kernel *kernel = e->kernel;
    const lilac_arch *arch = kernel->module->arch;
    const uint64_t eighths = UINT64_C(8) * kernel->programs,
                   device = UINT64_C(9) * arch->multiprocessors;
    const uint64_t blocks = (eighths + device - 1) / device;
    if (blocks == 0 || blocks > lilac_simt_resident_blocks(kernel, 0) ||
        contains(kernel->body, is_any_product)) {
        return 0;
    }
    const uint32_t registers =
        lilac_registers_for_blocks(arch, kernel->num_warps, (uint32_t)blocks);
    const bool suffice = words_of(e, LILAC_SIMT_PRESSURE_EARLY) + EARLY_SPARE <= registers ||
                         words_of(e, LILAC_SIMT_PRESSURE_PROMPT) + PROMPT_SPARE <= registers;
    return suffice ? (uint32_t)blocks : 0;
}

static uint32_t with_barriers(estimates *e) {
    const lilac_simt_kernel *kernel = e->kernel;
    const uint32_t early = even_blocks(kernel, words_of(e, LILAC_SIMT_PRESSURE_EARLY));
    if (even_blocks(kernel, 0) <= early) {
        return 0; /* registers do not limit the blocks */
    }
    const uint32_t late = even_blocks(kernel, words_of(e, LILAC_SIMT_PRESSURE_LATE));
    return late > early && late > 1 && !is_near_most(kernel, late) ? late : 0;
}

/* As many blocks as have the most warps, for loops that are bound by arithmetic; 0: no. */
static uint32_t with_busy_loops(estimates *e) {
    const lilac_simt_kernel *kernel = e->kernel;
    const lilac_arch *arch = kernel->module->arch;
    const uint32_t blocks = arch->resident_warps / kernel->num_warps;
    iteration busiest = {0, 0, 0}, all = {0, 0, 0};
    (void)find_busiest(&busiest, &all, kernel, kernel->body);
    if (busiest.memory == 0 || busiest.work < busiest.memory ||
        blocks > lilac_simt_resident_blocks(kernel, 0)) {
        return 0;
    }
    const uint32_t registers = lilac_registers_for_blocks(arch, kernel->num_warps, blocks);
    return words_of(e, LILAC_SIMT_PRESSURE_PROMPT) <= registers ? blocks : 0;
}

static uint32_t with_whole_loads(estimates *e) {
    const lilac_simt_kernel *kernel = e->kernel;
    uint32_t full = 5 * kernel->module->arch->resident_warps / 8; /* warps that fill the pipes */
    iteration busiest = {0, 0, 0}, all = {0, 0, 0};
    bool waits = find_busiest(&busiest, &all, kernel, kernel->body);
    uint32_t words = words_of(e, LILAC_SIMT_PRESSURE_EARLY);
    if (busiest.memory == 0 && !waits && all.loads >= ROW && has_exchanges(kernel->body)) {
        const uint32_t prompt = words_of(e, LILAC_SIMT_PRESSURE_PROMPT);
        words = prompt < words ? prompt : words;
        busiest.work += all.work;
        busiest.memory += all.memory;
        busiest.loads += all.loads;
    }
    const uint32_t blocks = nearly_even_blocks(kernel, words);
    if (busiest.loads < ROW || is_near_most(kernel, blocks)) {
        return 0;
    }
    uint64_t warps = (uint64_t)blocks * kernel->num_warps;
    return warps * busiest.memory >= full * busiest.work ? blocks : 0;
}

/* The largest number of 32-bit registers of a thread, up to `words`, with which this number of
 * blocks is resident; 0: there is none. */
static uint32_t words_for(const lilac_simt_kernel *kernel, uint32_t blocks, uint32_t words) {
    while (words > 0 && lilac_simt_resident_blocks(kernel, words) < blocks) {
        words--;
    }
    return words;
}

/* More blocks than the registers suffice for, where few warps leave gaps that cost more than
 * spills. */
static uint32_t with_spills(estimates *e) {
    const lilac_simt_kernel *kernel = e->kernel;
    const lilac_arch *arch = kernel->module->arch;
    const uint32_t full = 5 * arch->resident_warps / 8;
    const uint32_t pressure = words_of(e, LILAC_SIMT_PRESSURE_EARLY);
    const uint32_t blocks = lilac_simt_resident_blocks(kernel, pressure);
    iteration busiest = {0, 0, 0}, all = {0, 0, 0};
    if (blocks == 0 || 8 * blocks * kernel->num_warps > arch->resident_warps ||
        contains(kernel->body, is_loop) || find_busiest(&busiest, &all, kernel, kernel->body)) {
        return 0;
    }
    const uint32_t words = words_for(kernel, blocks + 1, pressure);
    const uint32_t text = words_of(e, LILAC_SIMT_PRESSURE_TEXT);
    const uint32_t spilled = (text > pressure ? text : pressure) - words;
    const uint64_t spills = UINT64_C(2) * spilled * arch->costs->global;
    const uint64_t gaps = all.work * full * (blocks + 1);
    const uint64_t fewer = (all.work + spills) * full * blocks;
    const bool busy = all.work * full > all.memory * blocks * kernel->num_warps;
    return busy && 2 * spilled <= words && 5 * fewer <= 4 * gaps ? blocks + 1 : 0;
}

/* The registers that the products of wgmma of one body may have at the same time: accumulators,
 * once for the products that add to the same ones, and operands; the most of all bodies. */
static uint32_t product_registers(const lilac_simt_kernel *kernel, const lilac_simt_body *body) {
    uint32_t own = 0, most = 0;
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->body_count; k++) {
            const uint32_t inner = product_registers(kernel, i->bodies[k]);
            most = inner > most ? inner : most;
        }
        if (is_product(i)) {
            const lilac_simt_group d = lilac_simt_group_of(i, 0), a = lilac_simt_group_of(i, 1);
            own += is_product(kernel->values[d.values[0]].definition) ? 0 : i->result_count;
            own += i->payload.matrix.registers ? a.count : 0;
        }
    }
    return own > most ? own : most;
}

/* Two blocks for products of wgmma, if all live words (`pressure`) fit in their registers, or if few
 * are missing and the products leave a quarter of them. */
static uint32_t with_products(const lilac_simt_kernel *kernel, uint32_t pressure) {
    const lilac_arch *arch = kernel->module->arch;
    const uint32_t words = words_for(kernel, 2, LILAC_MOST_REGISTERS);
    const uint32_t products = product_registers(kernel, kernel->body);
    const uint32_t blocks = lilac_simt_resident_blocks(kernel, pressure);
    const bool considered =
        8 * kernel->num_warps == arch->resident_warps && products > 0 && words > 0 && blocks <= 2;
    const bool fits =
        blocks < 2 && pressure <= lilac_registers_for_blocks(arch, kernel->num_warps, 2);
    const uint32_t missing = pressure > words ? pressure - words : 0;
    const bool few_missing = 4 * products <= 3 * words && FEW_MISSING * missing <= words;
    return considered && (fits || few_missing) ? 2 : 0;
}

bool lilac_simt_has_registers(const lilac_simt_kernel *kernel, uint32_t more) {
    const uint32_t now = lilac_simt_pressure(kernel, LILAC_SIMT_PRESSURE_EARLY);
    const uint32_t then = now + more + SPARE;
    return then <= LILAC_MOST_REGISTERS &&
           lilac_simt_resident_blocks(kernel, then) == lilac_simt_resident_blocks(kernel, now) &&
           with_products(kernel, then) == with_products(kernel, now);
}

static uint64_t loaded_words(const lilac_simt_kernel *kernel, const lilac_simt_body *body) {
    uint64_t words = 0;
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        words += i->code == LILAC_SIMT_OP_LD_GLOBAL ? (bytes_of(kernel, i) + 3) / 4 : 0;
        for (uint32_t k = 0; k < i->body_count; k++) {
            words += loaded_words(kernel, i->bodies[k]);
        }
    }
    return words;
}

/* Do the live words not fit in a thread's registers: of products of tensor cores, or in any order of the loads? */
static bool must_spill(estimates *e) {
    const lilac_simt_kernel *kernel = e->kernel;
    const uint32_t early = words_of(e, LILAC_SIMT_PRESSURE_EARLY);
    if (early <= LILAC_MOST_REGISTERS || contains(kernel->body, is_any_product)) {
        return early > LILAC_MOST_REGISTERS;
    }
    const uint32_t text = words_of(e, LILAC_SIMT_PRESSURE_TEXT);
    return (text < early ? text : early) >
           LILAC_MOST_REGISTERS + loaded_words(kernel, kernel->body);
}

bool lilac_simt_opt_occupancy(lilac_simt_kernel *kernel) {
    estimates e = {.kernel = kernel};
    uint32_t blocks = 0;
    if (lilac_simt_has_programs(kernel)) {
        return false; /* their registers are budgeted: see set_max_registers */
    }
    if (kernel->num_ctas == 1) {
        const bool waits = kernel->num_warps > 1 && lilac_simt_waits(kernel->body);
        blocks = with_known_programs(&e);
        blocks = blocks == 0 && waits ? with_barriers(&e) : blocks;
        if (blocks == 0 && waits) {
            blocks = with_busy_loops(&e);
        }
        if (blocks == 0) {
            blocks = with_products(kernel, words_of(&e, LILAC_SIMT_PRESSURE_EARLY));
        }
        blocks = blocks > 0 ? blocks : with_whole_loads(&e);
        blocks = blocks > 0 ? blocks : with_spills(&e);
        blocks = blocks == 0 && must_spill(&e) ? 1 : blocks;
    }
    const bool changed = kernel->min_blocks != blocks;
    kernel->min_blocks = blocks;
    return changed;
}
