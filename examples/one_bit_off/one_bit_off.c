/* A warp transposes a 16 × 32 tensor of 32-bit numbers through shared memory. Where in memory
 * should an element stand? README.md tells the story; this program does its arithmetic.
 *
 *   one_bit_off        the table, the derivation, and what the library finds
 *   one_bit_off all    the formula against counting, for all 2^20 ways to swizzle rows
 *
 * With lilac installed: cc -std=c17 one_bit_off.c $(pkg-config --cflags --libs lilac)
 */
#include <lilac.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROW_BITS = 4, COLUMN_BITS = 5, BITS = ROW_BITS + COLUMN_BITS, BANKS = 32, WORD = 4 };

static void must(bool good, const lilac_reason *why) {
    if (!good) {
        fprintf(stderr, "refused: %s\n", why->text);
        exit(1);
    }
}

/* Directions: element (row, column) as bits, rows lowest, as layouts of (dim0, dim1) have it. */
static uint64_t at(uint32_t row, uint32_t column) {
    return row | (uint64_t)column << ROW_BITS;
}

static void print_direction(uint64_t direction) {
    const char *between = "";
    for (uint32_t i = 0; i < BITS; i++) {
        if ((direction >> i & 1) != 0) {
            const bool row = i < ROW_BITS;
            printf("%s%c%u", between, row ? 'm' : 'n', row ? i : i - ROW_BITS);
            between = "+";
        }
    }
}

static void print_directions(const char *name, const uint64_t *directions, uint32_t count) {
    printf("  %-44s", name);
    for (uint32_t i = 0; i < count; i++) {
        printf(" ");
        print_direction(directions[i]);
    }
    printf("%s\n", count == 0 ? " none" : "");
}

/* ---- layouts ---------------------------------------------------------------------------- */

static void start(lilac_layout *layout) {
    lilac_reason why;
    lilac_layout_init(layout);
    must(lilac_layout_add_out(layout, "dim0", ROW_BITS, &why) &&
             lilac_layout_add_out(layout, "dim1", COLUMN_BITS, &why),
         &why);
}

static void add(lilac_layout *layout, const char *in, const uint64_t *columns, uint32_t bits) {
    lilac_reason why;
    must(lilac_layout_add_in(layout, in, bits, columns, &why), &why);
}

/* One warp: 16 registers of 32 lanes. */
static void distribute(lilac_layout *layout, const uint64_t *registers, const uint64_t *lanes) {
    start(layout);
    add(layout, "register", registers, 4);
    add(layout, "lane", lanes, 5);
    add(layout, "warp", NULL, 0);
    add(layout, "block", NULL, 0);
}

static const uint64_t columns_of_rows[COLUMN_BITS] = {1 << 4, 2 << 4, 4 << 4, 8 << 4, 16 << 4};

/* A lane stores a column, row by row. */
static void make_store(lilac_layout *store) {
    const uint64_t rows[] = {at(1, 0), at(2, 0), at(4, 0), at(8, 0)};
    distribute(store, rows, columns_of_rows);
}

/* Half of the lanes load an even column, half of them the odd one beside it. */
static void make_load(lilac_layout *load) {
    const uint64_t lanes[] = {at(1, 0), at(2, 0), at(4, 0), at(8, 0), at(0, 1)};
    distribute(load, columns_of_rows + 1, lanes);
}

/* Row m stands at 32 m, its columns moved by xor with masks[i] for each set bit i of m. */
static void make_memory(lilac_layout *memory, const uint32_t *masks) {
    uint64_t offsets[BITS];
    memcpy(offsets, columns_of_rows, sizeof columns_of_rows);
    for (uint32_t i = 0; i < ROW_BITS; i++) {
        offsets[COLUMN_BITS + i] = at(UINT32_C(1) << i, masks[i]);
    }
    start(memory);
    add(memory, "offset", offsets, BITS);
}

/* ---- counting --------------------------------------------------------------------------- */

/* By the library: a formula about subspaces. */
static uint64_t by_formula(const lilac_layout *registers, const lilac_layout *memory) {
    lilac_plan_access access;
    lilac_reason why;
    must(lilac_plan_access_init(&access, registers, memory, 8 * WORD, lilac_arch_find("sm_90a"),
                                &why),
         &why);
    return access.wavefronts;
}

/* By hand: the depth of the fullest bank for each register. `words` has the word of each element.
 */
static uint64_t by_counting(const lilac_layout *registers, const uint32_t *words) {
    uint64_t sum = 0;
    for (uint32_t step = 0; step < 16; step++) {
        uint32_t depth[BANKS] = {0}, most = 0;
        for (uint32_t lane = 0; lane < 32; lane++) {
            const uint64_t element = lilac_layout_apply(registers, step | lane << 4);
            uint32_t *bank = &depth[words[element] % BANKS];
            most = ++*bank > most ? *bank : most;
        }
        sum += most;
    }
    return sum;
}

/* Where the C expression 32 * m + (n ^ factor * m) puts the elements. */
static void swizzle(uint32_t *words, uint32_t factor) {
    for (uint32_t m = 0; m < 16; m++) {
        for (uint32_t n = 0; n < 32; n++) {
            words[at(m, n)] = 32 * m + (n ^ factor * m);
        }
    }
}

static void compare_swizzles(const lilac_layout *store, const lilac_layout *load) {
    static const char *const names[] = {"32*m + n", "32*m + (n ^ m)", "32*m + (n ^ 2*m)"};
    printf("%-18s %12s %12s\n", "offset of (m, n)", "formula", "counted");
    for (uint32_t factor = 0; factor < 3; factor++) {
        const uint32_t masks[] = {factor, 2 * factor, 4 * factor, 8 * factor};
        uint32_t words[1 << BITS];
        lilac_layout memory;
        make_memory(&memory, masks);
        swizzle(words, factor);
        printf("%-18s %4u + %-5u %4u + %u\n", names[factor], (unsigned)by_formula(store, &memory),
               (unsigned)by_formula(load, &memory), (unsigned)by_counting(store, words),
               (unsigned)by_counting(load, words));
    }
}

/* ---- deriving --------------------------------------------------------------------------- */

static const uint64_t *columns_of(const lilac_layout *layout, const char *in) {
    const uint64_t *columns = layout->columns;
    for (uint32_t i = 0; i < layout->in_count; columns += layout->in[i++].bits) {
        if (strcmp(layout->in[i].name, in) == 0) {
            return columns;
        }
    }
    return NULL;
}

/* The directions of a that b has too (or has not). */
static uint32_t choose(uint64_t *chosen, const uint64_t *a, uint32_t a_count, const uint64_t *b,
                       uint32_t b_count, bool in_both) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < a_count; i++) {
        bool found = false;
        for (uint32_t k = 0; k < b_count; k++) {
            found = found || a[i] == b[k];
        }
        if (found == in_both) {
            chosen[count++] = a[i];
        }
    }
    return count;
}

static void derive(lilac_layout *memory, const lilac_layout *store, const lilac_layout *load) {
    const uint64_t *stored = columns_of(store, "lane"), *loaded = columns_of(load, "lane");
    uint64_t found[BITS], only_stored[BITS], only_loaded[BITS], offsets[BITS];
    printf("\nstep by step\n");
    print_directions(
        "registers of both: the vector", found,
        choose(found, columns_of(store, "register"), 4, columns_of(load, "register"), 4, true));
    print_directions("lanes of both: no segment", found, choose(found, stored, 5, loaded, 5, true));
    const uint32_t e = choose(only_stored, stored, 5, loaded, 5, false);
    const uint32_t f = choose(only_loaded, loaded, 5, stored, 5, false);
    print_directions("lanes of the store only", only_stored, e);
    print_directions("lanes of the load only", only_loaded, f);
    memcpy(offsets, columns_of_rows, sizeof columns_of_rows);
    for (uint32_t i = 0; i < e && i < f; i++) {
        offsets[COLUMN_BITS + i] = only_stored[i] ^ only_loaded[i];
    }
    print_directions("segments: sums of one of each", offsets + COLUMN_BITS, ROW_BITS);
    print_directions("banks: what completes them", offsets, COLUMN_BITS);
    start(memory);
    add(memory, "offset", offsets, BITS);
}

/* The offset of each element is the inverse of the memory's layout. */
static bool is_two_m(const lilac_layout *memory) {
    lilac_layout inverse;
    lilac_reason why;
    uint32_t words[1 << BITS];
    bool same = true;
    must(lilac_layout_invert(&inverse, memory, &why), &why);
    swizzle(words, 2);
    for (uint64_t element = 0; element < 1 << BITS; element++) {
        same = same && lilac_layout_apply(&inverse, element) == words[element];
    }
    return same;
}

static void find(const lilac_layout *store, const lilac_layout *load, const lilac_layout *derived,
                 const lilac_arch *arch, const char *name) {
    const lilac_plan_options options = {.strategy = LILAC_PLAN_BY_SHARED};
    lilac_plan_conversion plan;
    lilac_reason why;
    must(lilac_plan_conversion_init(&plan, store, load, 8 * WORD, &options, arch, &why), &why);
    const bool same = memcmp(plan.staging.memory.columns, derived->columns,
                             BITS * sizeof derived->columns[0]) == 0;
    printf("  %-22s %2u + %-2u instructions, %2u + %u wavefronts, least %u + %u%s\n", name,
           (unsigned)plan.price.stores, (unsigned)plan.price.loads,
           (unsigned)plan.price.store_wavefronts, (unsigned)plan.price.load_wavefronts,
           (unsigned)plan.bound.store_wavefronts, (unsigned)plan.bound.load_wavefronts,
           same ? ", the memory derived above" : "");
}

/* ---- all of them ------------------------------------------------------------------------ */

static uint32_t lowest_bit(uint32_t number) {
    uint32_t bit = 0;
    for (; (number & 1) == 0; number >>= 1) {
        bit++;
    }
    return bit;
}

/* A toggle for each pair of a row bit and a column bit. All steps of a load are alike, so one is
 * counted: 16 rows of columns 0 and 1. Storing a row never conflicts. */
static int check_all(void) {
    const lilac_arch *arch = lilac_arch_find("sm_90a");
    uint32_t how_many[BANKS + 1] = {0};
    for (uint32_t toggles = 0; toggles < 1 << (ROW_BITS * COLUMN_BITS); toggles++) {
        uint64_t lanes[5] = {0, 0, 0, 0, WORD};
        uint64_t word = 0;
        uint32_t depth[BANKS] = {0}, most = 0;
        for (uint32_t i = 0; i < ROW_BITS; i++) {
            lanes[i] = WORD * ((32u << i) | (toggles >> COLUMN_BITS * i & 31));
        }
        for (uint32_t lane = 0; lane < 32; lane++) {
            if (lane != 0) { /* the lanes in an order in which one bit changes at a time */
                word ^= lanes[lowest_bit(lane)] / WORD;
            }
            uint32_t *bank = &depth[word % BANKS];
            most = ++*bank > most ? *bank : most;
        }
        if (lilac_plan_transaction_wavefronts(arch, WORD, lanes, 5) != most) {
            printf("toggles %05x: the formula is wrong\n", (unsigned)toggles);
            return 1;
        }
        how_many[most]++;
    }
    printf("%10s %10s\n", "swizzles", "load");
    for (uint32_t depth = 1; depth <= BANKS; depth++) {
        if (how_many[depth] != 0) {
            printf("%10u %10u\n", (unsigned)how_many[depth], (unsigned)(16 * depth));
        }
    }
    return 0;
}

int main(int count, char **arguments) {
    lilac_layout store, load, derived;
    lilac_arch words_only = *lilac_arch_find("sm_90a");
    if (count > 1 && strcmp(arguments[1], "all") == 0) {
        return check_all();
    }
    make_store(&store);
    make_load(&load);
    compare_swizzles(&store, &load);
    derive(&derived, &store, &load);
    printf("  offset = 32*m + (n ^ 2*m) everywhere: %s\n", is_two_m(&derived) ? "yes" : "no");
    printf("  wavefronts: %u + %u\n", (unsigned)by_formula(&store, &derived),
           (unsigned)by_formula(&load, &derived));
    printf("\nwhat the library finds\n");
    words_only.vector_bytes = WORD;
    words_only.features = 0;
    find(&store, &load, &derived, &words_only, "a word at a time");
    find(&store, &load, &derived, lilac_arch_find("sm_90a"), "all instructions");
    return 0;
}
