/* Plans of accesses to global memory against counting: random layouts of every kind, random
 * strides, and facts that are true but may claim less than holds. */

#include <lilac/access.h>
#include <lilac/bits.h>

#include "support/random_layouts.h"
#include "support/test.h"

enum { ROUNDS = 8000, MOST_PLACES = 4096 };

/* Pointers whose addresses are base + bytes · Σ stride · coordinate, and facts about them. */
typedef struct pointers {
    uint32_t rank, bits[RANDOM_MAX_RANK], bytes;
    int64_t base, shape[RANDOM_MAX_RANK], stride[RANDOM_MAX_RANK];
    int64_t contiguity[RANDOM_MAX_RANK], divisibility[RANDOM_MAX_RANK], constancy[RANDOM_MAX_RANK];
    lilac_plan_global_facts facts;
} pointers;

static int64_t power_of_two_in(int64_t value) {
    return value == 0 ? INT64_C(1) << 40 : value & -value;
}

static uint64_t address_of(const pointers *p, uint64_t coordinate) {
    int64_t address = p->base;
    for (uint32_t d = 0; d < p->rank; d++) {
        address += p->bytes * p->stride[d] * (int64_t)(coordinate & low_bits(p->bits[d]));
        coordinate >>= p->bits[d];
    }
    return (uint64_t)address;
}

/* Strides of a tensor whose dimensions follow each other in memory in a random order, with gaps or
 * broadcasts. */
static void random_strides(lilac_random *random, pointers *p) {
    uint64_t order[RANDOM_MAX_RANK] = {0, 1, 2};
    int64_t next = random_below(random, 6) == 0 ? 2 : 1;
    random_shuffle(random, order, p->rank);
    for (uint32_t i = 0; i < p->rank; i++) {
        const uint64_t d = order[i];
        static const int64_t gaps[] = {0, 0, 0, 1, 8, 16, 64};
        p->stride[d] = next;
        next = (next << p->bits[d]) + gaps[random_below(random, sizeof gaps / sizeof *gaps)];
        if (random_below(random, 8) == 0) {
            p->stride[d] = 0;
        } else if (random_below(random, 8) == 0) {
            p->stride[d] = INT64_C(1) << random_below(random, 8); /* rows that overlap */
        }
    }
}

/* True facts. `weak`: some of them claim less than holds. */
static void state_facts(lilac_random *random, pointers *p, bool weak, bool masked) {
    p->facts = (lilac_plan_global_facts){.rank = p->rank,
                                         .shape = p->shape,
                                         .contiguity = p->contiguity,
                                         .divisibility = p->divisibility,
                                         .constancy = masked ? p->constancy : NULL,
                                         .stride = p->stride,
                                         .origin = power_of_two_in(p->base)};
    for (uint32_t d = 0; d < p->rank; d++) {
        const int64_t unit = p->bytes;
        p->contiguity[d] = p->stride[d] == 1 ? p->shape[d] : 1;
        if (weak && random_below(random, 2) == 0) {
            p->contiguity[d] = 1 + (p->contiguity[d] - 1) / 2;
        }
        p->constancy[d] = INT64_C(1) << random_below(random, p->bits[d] + 1);
        int64_t divides = power_of_two_in(p->base);
        for (uint32_t e = 0; e < p->rank; e++) {
            const int64_t step = e == d ? p->contiguity[d] : 1;
            if (step < p->shape[e]) {
                divides = min_i64(divides, power_of_two_in(unit * p->stride[e] * step));
            }
        }
        p->divisibility[d] = divides;
        if (!weak || random_below(random, 3) != 0) {
            p->facts.stride_known |= 1U << d;
        }
    }
}

static pointers random_pointers(lilac_random *random, const random_space *space, bool weak) {
    pointers p = {.rank = space->rank, .bytes = 1U << random_below(random, 4)};
    static const int64_t bases[] = {4096, 4096, 4096, 128, 32, 16, 8};
    p.base = INT64_C(1) << 20;
    p.base += bases[random_below(random, sizeof bases / sizeof *bases)];
    for (uint32_t d = 0; d < p.rank; d++) {
        p.bits[d] = space->bits[d];
        p.shape[d] = INT64_C(1) << p.bits[d];
    }
    random_strides(random, &p);
    state_facts(random, &p, weak, random_below(random, 3) == 0);
    return p;
}

/* ---- counting ---------------------------------------------------------------------------- */

typedef struct places {
    uint32_t count;
    uint64_t place[MOST_PLACES];
} places;

static void add_place(places *set, uint64_t place) {
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->place[i] == place) {
            return;
        }
    }
    assert_true(set->count < MOST_PLACES);
    set->place[set->count++] = place;
}

typedef struct counting {
    const pointers *p;
    const lilac_layout *layout;
    const lilac_plan_global_access *plan;
    const lilac_arch *arch;
    uint32_t lane_bits, warp_bits, block_bits;
    uint32_t times[1 << 13]; /* that each coordinate is accessed, in all blocks */
    lilac_plan_global_counts counts;
} counting;

static uint64_t coordinate_of(const counting *c, uint32_t reg, uint32_t thread, uint32_t block) {
    const uint32_t registers = lilac_layout_in_bits(c->layout, "register");
    const uint32_t threads = c->lane_bits + c->warp_bits;
    const uint64_t index =
        reg | (uint64_t)thread << registers | (uint64_t)block << (registers + threads);
    uint64_t coordinate = 0;
    for (uint32_t i = 0; i < c->layout->in_bits; i++) {
        coordinate ^= index >> i & 1 ? c->layout->columns[i] : 0;
    }
    return coordinate;
}

/* One thread's vector: legal, and at the registers that the plan names. */
static void count_vector(counting *c, uint32_t reg, uint32_t thread, uint32_t block,
                         places *sectors, places *lines) {
    const lilac_plan_global_access *plan = c->plan;
    const pointers *p = c->p;
    const uint64_t first = coordinate_of(c, reg, thread, block), start = address_of(p, first);
    if (start % (p->bytes << plan->vector_bits) != 0 && plan->vector_bits > 0) {
        fail_msg("the vector at %llu is not aligned", (unsigned long long)start);
    }
    for (uint32_t e = 0; e >> plan->vector_bits == 0; e++) {
        const uint32_t other = lilac_plan_global_register(plan, reg, e);
        uint64_t here = coordinate_of(c, other, thread, block), there = first;
        assert_true(address_of(p, here) == start + e * p->bytes);
        c->times[here]++;
        add_place(sectors, address_of(p, here) / c->arch->sector_bytes);
        add_place(lines, address_of(p, here) / LILAC_PLAN_LINE_BYTES);
        for (uint32_t d = 0; d < p->rank && p->facts.constancy != NULL; d++) {
            const uint64_t mask = low_bits(p->bits[d]), same = (uint64_t)p->constancy[d];
            assert_true((here & mask) / same == (there & mask) / same);
            here >>= p->bits[d];
            there >>= p->bits[d];
        }
    }
}

static void count_block(counting *c, uint32_t block) {
    const lilac_plan_global_access *plan = c->plan;
    const uint32_t registers = 1U << lilac_layout_in_bits(c->layout, "register");
    if ((block & plan->idle_blocks) != 0) {
        return;
    }
    for (uint32_t warp = 0; warp >> c->warp_bits == 0; warp++) {
        for (uint32_t r = 0; r < registers; r++) {
            static places sectors, lines;
            sectors.count = lines.count = 0;
            for (uint32_t lane = 0; lane >> c->lane_bits == 0; lane++) {
                const uint32_t thread = lane | warp << c->lane_bits;
                if ((r & plan->skipped_registers) == 0 && (thread & plan->idle_threads) == 0) {
                    count_vector(c, r, thread, block, &sectors, &lines);
                }
            }
            c->counts.instructions += block == 0 && sectors.count > 0;
            c->counts.sectors += block == 0 ? sectors.count : 0;
            c->counts.lines += block == 0 ? lines.count : 0;
        }
    }
}

/* ---- properties -------------------------------------------------------------------------- */

typedef struct totals {
    uint32_t exact, above_bound, vectors, across, replicated;
} totals;

static void compare(const counting *c, const lilac_plan_global *global, uint32_t round,
                    totals *sum) {
    const lilac_plan_global_access *plan = c->plan;
    const lilac_plan_global_counts *counts = &plan->counts, *bound = &plan->bound;
    assert_int_equal(c->counts.instructions, counts->instructions);
    if (plan->exact && (c->counts.sectors != counts->sectors || c->counts.lines != counts->lines)) {
        fail_msg("round %u: %llu sectors and %llu lines, but the plan has %llu and %llu", round,
                 (unsigned long long)c->counts.sectors, (unsigned long long)c->counts.lines,
                 (unsigned long long)counts->sectors, (unsigned long long)counts->lines);
    }
    /* A run that is not aligned touches one piece more. */
    assert_true(c->counts.sectors <= 2 * counts->sectors && c->counts.lines <= 2 * counts->lines);
    assert_true(counts->instructions >= bound->instructions);
    assert_true(counts->sectors >= bound->sectors && counts->lines >= bound->lines);
    const bool load = plan->kind == LILAC_PLAN_LOAD; /* other kinds have a leader */
    for (uint64_t i = 0; i >> c->layout->out_bits == 0; i++) {
        if (load ? c->times[i] == 0 : c->times[i] != 1) {
            fail_msg("round %u: element %llu is accessed %u times by a %s", round,
                     (unsigned long long)i, c->times[i], lilac_plan_global_kind_name(plan->kind));
        }
    }
    sum->exact += plan->exact;
    sum->above_bound += plan->exact && counts->sectors > bound->sectors;
    sum->vectors += plan->vector_bits > 0;
    sum->replicated += plan->replicated_threads != 0;
    for (uint32_t d = 0; d < global->rank; d++) {
        if (global->across_bits[d] > 0 && plan->vector_bits > global->bits[d]) {
            sum->across++;
            break;
        }
    }
}

static void check_one(lilac_random *random, lilac_context *context, uint32_t round, totals *sum) {
    static counting c;
    random_space space = {.rank = 1 + random_below(random, 3), .register_limit = 6};
    lilac_layout layout;
    lilac_plan_global global;
    lilac_plan_global_access plan;
    memset(&c, 0, sizeof c);
    uint32_t devices = 0;
    while (lilac_arch_at(devices) != NULL) {
        devices++;
    }
    c.arch = lilac_arch_at(random_below(random, devices));
    for (uint32_t d = 0; d < space.rank; d++) {
        space.bits[d] = random_below(random, 11 / space.rank + 1);
    }
    c.lane_bits = space.lane_bits = log2_of(c.arch->warp_size);
    c.warp_bits = space.warp_bits = random_below(random, 4);
    c.block_bits = space.block_bits = random_below(random, 4) == 0;
    const bool blocked = random_below(random, 2) == 0;
    do {
    } while (!random_layout(
        &layout, random, context,
        blocked ? RANDOM_BLOCKED : (random_kind)random_below(random, RANDOM_KINDS), &space));
    const pointers p = random_pointers(random, &space, random_below(random, 3) == 0);
    pointers own = p; /* the facts borrow its arrays */
    own.facts.shape = own.shape;
    own.facts.contiguity = own.contiguity;
    own.facts.divisibility = own.divisibility;
    own.facts.stride = own.stride;
    own.facts.constancy = p.facts.constancy != NULL ? own.constancy : NULL;
    const lilac_target target = {.arch = c.arch,
                                 .num_warps = 1U << c.warp_bits,
                                 .num_ctas = 1U << c.block_bits,
                                 .num_stages = 1};
    const lilac_plan_global_kind kind = (lilac_plan_global_kind)random_below(random, 4);
    const uint32_t idle = random_below(random, 2) == 0 ? LILAC_PLAN_IDLE_REPLICAS : 0;
    lilac_plan_global_init(&global, kind, p.bytes, 0, &own.facts, c.arch);
    lilac_plan_global_access_init(&plan, &global, &layout, idle, &target);
    c.p = &own;
    c.layout = &layout;
    c.plan = &plan;
    for (uint32_t block = 0; block >> c.block_bits == 0; block++) {
        count_block(&c, block);
    }
    compare(&c, &global, round, sum);
}

static void counts(void **state) {
    (void)state;
    const uint32_t rounds = ROUNDS * test_scale();
    lilac_context *context = lilac_context_create();
    lilac_random random;
    totals sum = {0};
    lilac_random_seed(&random, 13);
    for (uint32_t round = 0; round < rounds; round++) {
        check_one(&random, context, round, &sum);
    }
    print_message("%u accesses: %u exact, %u of them above the bound; %u with vectors, %u across "
                  "dimensions; %u replicated\n",
                  rounds, sum.exact, sum.above_bound, sum.vectors, sum.across, sum.replicated);
    assert_true(sum.exact > rounds / 5 && sum.above_bound > rounds / 20);
    assert_true(sum.vectors > rounds / 20 && sum.across > rounds / 400 &&
                sum.replicated > rounds / 10);
    lilac_context_destroy(context);
}

/* ---- examples ---------------------------------------------------------------------------- */

/* The widest legal vector of f32 along the last dimension, and across it. */
static void legal_vectors(void **state) {
    (void)state;
    static const struct {
        int64_t shape[3], stride[3], origin, contiguity, divisibility, constancy[3];
        uint32_t known, vector, across;
    } cases[] = {
        /* shape        stride      origin run  div  constancy     known  log2 vector, across */
        {{1, 8, 64}, {0, 64, 1}, 256, 64, 256, {1, 8, 64}, 7, 2, 0},
        {{1, 8, 64}, {0, 64, 1}, 256, 64, 8, {1, 8, 64}, 7, 1, 0},
        {{1, 8, 64}, {0, 64, 1}, 256, 64, 2, {1, 8, 64}, 7, 0, 0},
        {{1, 8, 64}, {0, 64, 1}, 256, 64, 256, {1, 8, 2}, 7, 1, 0},
        {{1, 8, 2}, {0, 2, 1}, 256, 2, 8, {1, 8, 2}, 7, 1, 2},
        {{1, 8, 2}, {0, 2, 1}, 8, 2, 8, {1, 8, 2}, 7, 1, 0},   /* rows aligned to 8 bytes */
        {{1, 8, 2}, {0, 2, 1}, 256, 2, 8, {1, 1, 2}, 7, 1, 0}, /* a mask value for each row */
        {{1, 8, 2}, {0, 2, 1}, 256, 2, 8, {1, 8, 2}, 1, 1, 0}, /* the row's stride is unknown */
        {{1, 8, 2}, {0, 4, 1}, 256, 2, 8, {1, 8, 2}, 7, 1, 0}, /* a gap between rows */
        {{4, 8, 2}, {16, 2, 1}, 256, 2, 8, {1, 8, 2}, 7, 1, 2},
        {{4, 8, 2}, {18, 2, 1}, 256, 2, 8, {1, 8, 2}, 7, 1, 0}, /* dimension 0 is not aligned */
        {{4, 8, 2}, {16, 2, 1}, 256, 2, 8, {1, 8, 2}, 6, 1, 0}, /* its stride is unknown */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t contiguity[] = {1, 1, cases[i].contiguity};
        const int64_t divisibility[] = {4, 4, cases[i].divisibility};
        const lilac_plan_global_facts facts = {.rank = 3,
                                               .shape = cases[i].shape,
                                               .contiguity = contiguity,
                                               .divisibility = divisibility,
                                               .constancy = cases[i].constancy,
                                               .stride = cases[i].stride,
                                               .stride_known = cases[i].known,
                                               .origin = cases[i].origin};
        lilac_plan_global global;
        lilac_plan_global_init(&global, LILAC_PLAN_LOAD, 4, 0, &facts, lilac_arch_find("sm_90a"));
        if (global.order[0] != 2 || global.vector_bits[2] != cases[i].vector ||
            global.across_bits[2] != cases[i].across ||
            (cases[i].across != 0 && (global.next[2] != 1 || global.order[1] != 1))) {
            fail_msg("case %zu: 2^%u elements, 2^%u across dimension %u", i, global.vector_bits[2],
                     global.across_bits[2], global.next[2]);
        }
    }
}

/* 1024 f32 in a layout with 4 consecutive elements per thread, twice. */
static lilac_plan_global_access in_example_layout(lilac_plan_global_kind kind,
                                                  const lilac_plan_global_facts *facts,
                                                  uint32_t most) {
    static const uint64_t registers[] = {1, 2, 512}, lanes[] = {4, 8, 16, 32, 64},
                          warps[] = {128, 256};
    const lilac_target target = {
        .arch = lilac_arch_find("sm_90a"), .num_warps = 4, .num_ctas = 1, .num_stages = 1};
    lilac_layout layout;
    lilac_plan_global global;
    lilac_plan_global_access plan;
    lilac_layout_init(&layout);
    assert_true(lilac_layout_add_out(&layout, "dim0", 10, NULL));
    assert_true(lilac_layout_add_in(&layout, "register", 3, registers, NULL));
    assert_true(lilac_layout_add_in(&layout, "lane", 5, lanes, NULL));
    assert_true(lilac_layout_add_in(&layout, "warp", 2, warps, NULL));
    assert_true(lilac_layout_add_in(&layout, "block", 0, NULL, NULL));
    lilac_plan_global_init(&global, kind, 4, most, facts, target.arch);
    lilac_plan_global_access_init(&plan, &global, &layout, 0, &target);
    return plan;
}

/* Consecutive and aligned. */
static lilac_plan_global_access example(lilac_plan_global_kind kind, int64_t constancy,
                                        uint32_t most) {
    static const int64_t shape[] = {1024}, divisibility[] = {4096}, stride[] = {1};
    const lilac_plan_global_facts facts = {.rank = 1,
                                           .shape = shape,
                                           .contiguity = shape,
                                           .divisibility = divisibility,
                                           .constancy = constancy != 0 ? &constancy : NULL,
                                           .stride = stride,
                                           .stride_known = 1,
                                           .origin = 4096};
    return in_example_layout(kind, &facts, most);
}

/* Elements whose coordinates differ in the bits of `same` only are equal. */
static void equal_elements(void **state) {
    (void)state;
    static const int64_t shape[] = {1024}, one[] = {1}, element[] = {4}, aligned[] = {4096};
    static const struct {
        lilac_plan_global_kind kind;
        const int64_t *contiguity, *divisibility;
        uint64_t same;
        uint32_t equal, vector_bits, instructions, sectors;
    } cases[] = {
        {LILAC_PLAN_LOAD, one, element, 0, 0, 0, 32, 1024},
        {LILAC_PLAN_LOAD, one, element, 1 + 2 + 512, 7, 0, 4, 128},
        {LILAC_PLAN_LOAD, one, element, 1 + 2 + 4 + 8, 3, 0, 8, 64}, /* lanes with equal elements */
        {LILAC_PLAN_LOAD, shape, aligned, 512, 4, 2, 4, 64},
        {LILAC_PLAN_STORE, one, element, 1 + 2 + 512, 0, 0, 32, 1024},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bool load = cases[i].kind == LILAC_PLAN_LOAD;
        const lilac_plan_global_facts facts = {.rank = 1,
                                               .shape = shape,
                                               .contiguity = cases[i].contiguity,
                                               .divisibility = cases[i].divisibility,
                                               .same_pointer = cases[i].same,
                                               .same_value = load ? cases[i].same : 0};
        const lilac_plan_global_access plan = in_example_layout(cases[i].kind, &facts, 0);
        assert_int_equal(plan.equal_registers, cases[i].equal);
        assert_int_equal(plan.skipped_registers, cases[i].equal | plan.vector_registers);
        assert_int_equal(plan.vector_bits, cases[i].vector_bits);
        assert_int_equal(plan.counts.instructions, cases[i].instructions);
        assert_int_equal(plan.counts.sectors, cases[i].sectors);
        assert_true(plan.bound.instructions <= plan.counts.instructions);
        assert_true(plan.bound.sectors <= plan.counts.sectors);
    }
}

/* Stores of 32 rows of 32 floats. Where rows do not start at sectors, the part of a sector in front of each run of a
 * warp is sent by another warp, too, and stores follow each other along rows. */
static void divided_rows(void **state) {
    (void)state;
    static const struct {
        uint64_t registers[3], warps[2];            /* lanes have 8 columns of 4 rows */
        uint32_t runs;                              /* of all warps */
        uint32_t along;                             /* registers whose bits lead along a row */
    } cases[] = {{{512, 8, 16}, {128, 256}, 32, 6}, /* whole rows */
                 {{256, 8, 512}, {16, 128}, 64, 2},
                 {{128, 256, 512}, {8, 16}, 128, 0},
                 {{16, 256, 512}, {8, 128}, 128, 1}}; /* every second 8 columns */
    static const uint64_t lanes[] = {1, 2, 4, 32, 64};
    static const int64_t shape[] = {32, 32}, contiguity[] = {32, 1}, runs_of_16_bytes[] = {4, 1};
    const lilac_target target = {
        .arch = lilac_arch_find("sm_90a"), .num_warps = 4, .num_ctas = 1, .num_stages = 1};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t cycles[6];
        lilac_layout layout;
        lilac_layout_init(&layout);
        assert_true(lilac_layout_add_out(&layout, "dim0", 10, NULL));
        assert_true(lilac_layout_add_in(&layout, "register", 3, cases[i].registers, NULL));
        assert_true(lilac_layout_add_in(&layout, "lane", 5, lanes, NULL));
        assert_true(lilac_layout_add_in(&layout, "warp", 2, cases[i].warps, NULL));
        assert_true(lilac_layout_add_in(&layout, "block", 0, NULL, NULL));
        for (uint32_t bits = 5; bits >= 2; bits--) { /* aligned to 2^bits bytes */
            const int64_t divisibility[] = {INT64_C(1) << bits, 4};
            lilac_plan_global_facts facts = {
                .rank = 2, .shape = shape, .contiguity = contiguity, .divisibility = divisibility};
            lilac_plan_global global;
            lilac_plan_global_access plan;
            lilac_plan_global_init(&global, LILAC_PLAN_STORE, 4, 1, &facts, target.arch);
            lilac_plan_global_access_init(&plan, &global, &layout, 0, &target);
            cycles[bits] = plan.cycles;
            const uint32_t before =
                bits < 4 ? 32 - (1U << bits) : 0; /* nothing is known beyond 16 */
            assert_int_equal(cycles[bits] - cycles[5],
                             cases[i].runs * before * target.arch->costs->sector / 32);
            assert_int_equal(plan.run_registers, before > 0 ? cases[i].along : 0);
            lilac_plan_global_init(&global, LILAC_PLAN_LOAD, 4, 1, &facts, target.arch);
            lilac_plan_global_access_init(&plan, &global, &layout, 0, &target);
            assert_int_equal(plan.run_registers, 0);
            facts.contiguity = runs_of_16_bytes;
            lilac_plan_global_init(&global, LILAC_PLAN_STORE, 4, 1, &facts, target.arch);
            assert_int_equal(global.bytes_before_run, 0);
        }
    }
}

static void vectors_and_price(void **state) {
    (void)state;
    const lilac_costs *costs = lilac_arch_find("sm_90a")->costs;
    lilac_plan_global_access plan = example(LILAC_PLAN_LOAD, 0, 0);
    assert_int_equal(plan.vector_bits, 2);
    assert_int_equal(plan.vector_registers, 3);
    assert_int_equal(plan.counts.instructions, 8);
    assert_int_equal(plan.counts.sectors, 128);
    assert_int_equal(plan.counts.lines, 32);
    assert_true(plan.exact);
    assert_int_equal(plan.cycles, 128 * costs->sector + 8 * costs->global);
    /* The mask is constant over pairs. */
    plan = example(LILAC_PLAN_LOAD, 2, 0);
    assert_int_equal(plan.vector_bits, 1);
    assert_int_equal(plan.counts.instructions, 16);
    assert_int_equal(plan.counts.sectors, 256);
    /* Copies move what loads move. */
    assert_int_equal(example(LILAC_PLAN_COPY, 2, 0).cycles, plan.cycles);
    /* Stores send parts of sectors: (256 - 128) / 4 sectors more. */
    plan = example(LILAC_PLAN_STORE, 2, 0);
    assert_int_equal(plan.cycles,
                     (128 + 32) * costs->sector + 16 * (costs->global + 2 * costs->line));
    /* An atomic instruction of one element. */
    plan = example(LILAC_PLAN_ATOMIC, 0, 1);
    assert_int_equal(plan.vector_bits, 0);
    assert_int_equal(plan.counts.instructions, 32);
}

static void text(void **state) {
    (void)state;
    lilac_plan_global_access plan = example(LILAC_PLAN_STORE, 2, 0);
    lilac_text out = {0};
    plan.idle_threads = plan.replicated_threads = 24;
    lilac_plan_global_access_explain(&out, &plan);
    assert_string_equal(lilac_text_get(&out),
                        "store: 8 bytes per thread and instruction, register bits 0\n"
                        "  replicated: thread bits 3 4\n"
                        "  executed where these are 0: thread bits 3 4\n"
                        "  instructions 16, at least 16 in any layout\n"
                        "  sectors 256, at least 128 in any layout\n"
                        "  lines 64, at least 32 in any layout\n"
                        "  counts: exact where the mask is true\n"
                        "  price: 376.0 clocks\n");
    lilac_text_clear(&out);
}

/* ---- runs that are no vectors ----------------------------------------------------------------- */

/* Typical, descending and wide strides along the first of two dimensions, 49 along the second: which
 * elements share a sector and a line. None is a proof, and none makes vectors. */
static void runs_without_vectors(void **state) {
    (void)state;
    static const int64_t shape[] = {64, 64}, contiguity[] = {1, 1}, divisibility[] = {4, 4};
    static const struct {
        int64_t stride;
        bool is_exact;
        uint32_t sector_bits, line_bits; /* log2 of the elements that share one */
    } cases[] = {
        {1, false, 3, 5}, {-1, false, 3, 5}, {-1, true, 3, 5},
        {3, true, 1, 3},  {8, false, 0, 2},  {64, true, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t stride[] = {cases[i].stride, 49};
        const lilac_plan_global_facts facts = {.rank = 2,
                                               .shape = shape,
                                               .contiguity = contiguity,
                                               .divisibility = divisibility,
                                               .stride = stride,
                                               .stride_known = cases[i].is_exact ? 3 : 2,
                                               .stride_typical = cases[i].is_exact ? 0 : 1,
                                               .origin = 16};
        lilac_plan_global global;
        lilac_plan_global_init(&global, LILAC_PLAN_LOAD, 4, 0, &facts, lilac_arch_find("sm_90a"));
        assert_int_equal(lilac_plan_global_widest(&global), 0);
        assert_false(global.exact_sectors);
        if (cases[i].stride != 64) {
            assert_int_equal(global.order[0], 0);
        }
        assert_int_equal(global.sector, low_bits(cases[i].sector_bits));
        assert_int_equal(global.line, low_bits(cases[i].line_bits));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts),
                                       cmocka_unit_test(legal_vectors),
                                       cmocka_unit_test(equal_elements),
                                       cmocka_unit_test(runs_without_vectors),
                                       cmocka_unit_test(divided_rows),
                                       cmocka_unit_test(vectors_and_price),
                                       cmocka_unit_test(text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
