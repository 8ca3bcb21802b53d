/* How many blocks of a cluster divide the sums of products of a program (tensor_map.h).
 *
 *     time(S) = ⌈iterations / S⌉ · clocks(S) + exchange(S)
 *     exchange(S) = 0 if S = 1, else EXCHANGE + 2 · bytes · (S - 1) / S / RATE
 *
 * Each block adds up 1/S of the sums of all blocks, and stores it to the first one. An iteration takes
 *
 *     clocks(S) = max(products, loads / SHARE, LEAST) · shared(S)
 *                 max(products, loads · blocks / ALL_LOADS, LEAST)     in kernels for one block
 *
 * shared(S): blocks that run in one multiprocessor at the same time; clusters that do not fit beside each
 * other share multiprocessors. Rings of kernels for one block (target.one_block) hide the latency of their
 * loads, so that these count only where all blocks together load more than the second-level cache
 * delivers. Only launches whose blocks are all resident at the same time are divided, and only if that saves a
 * part of the time that the estimates' errors do not exceed (GAIN). Measured on an H200:
 * bench/results/h200_split_sums.md. */
#include <lilac/tensor_map.h>

enum {
    EXCHANGE = 2000,  /* clocks: the start of a cluster, two barriers of it, the latency of loads */
    RATE = 20,        /* bytes a clock */
    GAIN = 8,         /* the least gain: an eighth of the time */
    SHARE = 46,       /* bytes a clock that a block gets, with the latency that it waits for */
    ALL_LOADS = 6200, /* bytes a clock that the second-level cache delivers to all blocks */
    LEAST = 300       /* clocks of an iteration: it waits for its copies and starts others */
};

static uint64_t up(uint64_t a, uint64_t b) {
    return (a + b - 1) / b;
}

static uint64_t most(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* Clusters of 2^choice blocks that have multiprocessors of their own: the driver counts those that
 * are resident, several blocks to a multiprocessor. */
static uint64_t exclusive_clusters(const lilac_launch_capacity *capacity, uint32_t choice) {
    const uint32_t resident = capacity->clusters[0] / capacity->multiprocessors;
    return capacity->clusters[choice] / (resident > 1 ? resident : 1);
}

typedef struct launch {
    const lilac_launch_split *split;
    const lilac_launch_capacity *capacity, *one_block;
    uint64_t programs, iterations;
} launch;

static uint64_t clocks_of(const launch *l, uint32_t choice) {
    const uint64_t products = most(l->split->clocks, LEAST), loads = l->split->loads;
    if (l->one_block != NULL && l->programs <= exclusive_clusters(l->one_block, choice)) {
        return most(products, (loads * l->programs << choice) / ALL_LOADS);
    }
    return most(products, loads / SHARE) *
           up(l->programs, most(exclusive_clusters(l->capacity, choice), 1));
}

static uint64_t time_of(const launch *l, uint32_t choice) {
    const uint64_t parts = UINT64_C(1) << choice;
    const uint64_t exchange =
        choice == 0 ? 0 : EXCHANGE + 2 * (uint64_t)l->split->bytes * (parts - 1) / parts / RATE;
    return up(l->iterations, parts) * clocks_of(l, choice) + exchange;
}

uint32_t lilac_launch_parts(const lilac_launch_split *split, const lilac_launch_capacity *capacity,
                            const lilac_launch_capacity *one_block, const uint32_t grid[3],
                            const int64_t *values) {
    int64_t sum = 0;
    if (split->divisor == 0 || grid[2] != 1 || capacity->multiprocessors == 0 ||
        !lilac_launch_sum_evaluate(&sum, &split->iterations, values) || sum <= 0) {
        return 1;
    }
    const launch l = {split, capacity, one_block, (uint64_t)grid[0] * grid[1],
                      (uint64_t)sum / split->divisor};
    if (l.iterations > LILAC_LAUNCH_MOST || l.programs > capacity->clusters[0]) {
        return 1;
    }
    const uint64_t whole = time_of(&l, 0);
    uint64_t least = whole - whole / GAIN;
    uint32_t best = 0;
    for (uint32_t i = 1; i < LILAC_LAUNCH_PART_CHOICES; i++) {
        const uint64_t time = time_of(&l, i);
        if (l.programs <= capacity->clusters[i] && time < least) {
            least = time;
            best = i;
        }
    }
    return 1U << best;
}

bool lilac_launch_one_block_fits(const lilac_launch_capacity *capacity, const uint32_t grid[3],
                                 uint32_t parts) {
    uint64_t programs = 1;
    uint32_t choice = 0;
    for (uint32_t d = 0; d < 3 && programs <= capacity->multiprocessors; d++) {
        programs *= grid[d];
    }
    while (1U << choice < parts) {
        choice++;
    }
    return programs <= capacity->multiprocessors &&
           (choice == 0 || programs <= exclusive_clusters(capacity, choice));
}
