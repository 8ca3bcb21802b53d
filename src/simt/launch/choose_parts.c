/* How many blocks of a cluster divide the sums of products of a program (tensor_map.h).
 *
 *     time(S) = ⌈iterations / S⌉ · clocks · shared(S) + exchange(S)
 *     exchange(S) = 0 if S = 1, else EXCHANGE + 2 · bytes · (S - 1) / S / RATE
 *
 * Each block adds up 1/S of the sums of all blocks, and stores it to the first one. shared(S):
 * blocks that run in one multiprocessor at the same time; clusters that do not fit beside each
 * other share multiprocessors. Only launches whose blocks are all resident at the same time are
 * divided, and only if that saves a part of the time that the estimates' errors do not exceed
 * (GAIN). Measured on an H200: bench/results/h200_split_sums.md. */
#include <lilac/tensor_map.h>

enum {
    EXCHANGE = 2000, /* clocks: the start of a cluster, two barriers of it, the latency of loads */
    RATE = 20,       /* bytes a clock */
    GAIN = 8         /* the least gain: an eighth of the time */
};

static uint64_t up(uint64_t a, uint64_t b) {
    return (a + b - 1) / b;
}

/* Clusters of 2^choice blocks that have multiprocessors of their own: the driver counts those that
 * are resident, several blocks to a multiprocessor. */
static uint64_t apart(const lilac_launch_capacity *capacity, uint32_t choice) {
    const uint32_t resident = capacity->clusters[0] / capacity->multiprocessors;
    return capacity->clusters[choice] / (resident > 1 ? resident : 1);
}

static uint64_t time_of(const lilac_launch_split *split, const lilac_launch_capacity *capacity,
                        uint64_t programs, uint64_t iterations, uint32_t choice) {
    const uint64_t parts = UINT64_C(1) << choice, alone = apart(capacity, choice);
    const uint64_t shared = up(programs, alone > 0 ? alone : 1);
    const uint64_t exchange =
        choice == 0 ? 0 : EXCHANGE + 2 * (uint64_t)split->bytes * (parts - 1) / parts / RATE;
    return up(iterations, parts) * split->clocks * shared + exchange;
}

uint32_t lilac_launch_parts(const lilac_launch_split *split, const lilac_launch_capacity *capacity,
                            const uint32_t grid[3], const int64_t *values) {
    int64_t sum = 0;
    if (split->divisor == 0 || grid[2] != 1 || capacity->multiprocessors == 0 ||
        !lilac_launch_sum_evaluate(&sum, &split->iterations, values) || sum <= 0) {
        return 1;
    }
    const uint64_t programs = (uint64_t)grid[0] * grid[1];
    const uint64_t iterations = (uint64_t)sum / split->divisor;
    if (iterations > LILAC_LAUNCH_MOST || programs > capacity->clusters[0]) {
        return 1;
    }
    const uint64_t whole = time_of(split, capacity, programs, iterations, 0);
    uint64_t least = whole - whole / GAIN;
    uint32_t best = 0;
    for (uint32_t i = 1; i < LILAC_LAUNCH_PART_CHOICES; i++) {
        const uint64_t time = time_of(split, capacity, programs, iterations, i);
        if (programs <= capacity->clusters[i] && time < least) {
            least = time;
            best = i;
        }
    }
    return 1U << best;
}

bool lilac_launch_is_apart(const lilac_launch_capacity *capacity, const uint32_t grid[3],
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
           (choice == 0 || programs <= apart(capacity, choice));
}
