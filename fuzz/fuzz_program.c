/* Random well-formed tile programs whose choices are the fuzzer's bytes: the whole compiler, as the
 * engine lays tensors out or with random layouts, and the simulator against the interpreter. A
 * wrong result, or a diagnostic that no well-formed program should get, aborts after printing. */
#include "support/random_programs.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_OPERATIONS = 40 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    program p;
    program_choices choices;
    program_choices_seed(&choices, size);
    choices.bytes = data;
    choices.size = size;
    bool layouts = program_below(&choices, 2) != 0;
    uint64_t seed = layouts ? 1 + program_below(&choices, 1 << 16) : 0;
    program_generate(&p, &choices, ~0ULL, MOST_OPERATIONS);
    p.layout_seed = seed;
    program_comparison j = program_check(&p, lilac_text_get(&p.text));
    if (j.outcome == PROGRAM_WRONG || j.outcome == PROGRAM_BROKEN) {
        fprintf(stderr, "%s\n%u warps, %u programs, layouts of seed %llu\n%s", j.why, p.warps,
                p.programs, (unsigned long long)seed, lilac_text_get(&p.text));
        abort();
    }
    program_clear(&p);
    return 0;
}
