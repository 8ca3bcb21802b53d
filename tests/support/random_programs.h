/* Random well-formed tile programs, and one plan_check of any program: compiled by the whole
 * pipeline, run on the simulator, and compared with the interpreter.
 *
 * A program has one input buffer for each type and one output buffer for each store. Its choices
 * come from a seed or from bytes (of a fuzzer); the same choices make the same program. */
#ifndef LILAC_TESTS_RANDOM_PROGRAMS_H
#define LILAC_TESTS_RANDOM_PROGRAMS_H

#include "interpreter.h"

#include <lilac/driver.h>
#include <lilac/sim.h>

enum { PROGRAM_MOST_PARAMETERS = 40 };

/* Where choices come from: the bytes first, then the generator. */
typedef struct program_choices {
    lilac_random random;
    const uint8_t *bytes;
    size_t size, at;
} program_choices;

void program_choices_seed(program_choices *choices, uint64_t seed);
uint32_t program_below(program_choices *choices, uint32_t bound);

typedef struct program_parameter {
    lilac_scalar scalar; /* of a buffer: its elements' */
    bool is_buffer, is_output;
    uint64_t count; /* elements of a buffer */
    uint64_t bits;  /* of a scalar */
} program_parameter;

typedef struct program {
    lilac_text text;
    const lilac_arch *device; /* NULL: sm_90a */
    uint32_t warps, programs; /* in the grid, along x */
    uint32_t stages;          /* of software pipelines; 0: 1 */
    uint32_t blocks;          /* of a cluster; 0: 1 */
    uint64_t data_seed;       /* of what is in the buffers */
    bool plain_data;          /* no NaN, no infinity, no zero among the integers */
    uint64_t layout_seed;     /* not 0: random layouts on all tensors, conversions between them */
    uint64_t used;            /* a bit for each feature that it has */
    uint32_t parameter_count;
    program_parameter parameters[PROGRAM_MOST_PARAMETERS];
} program;

/* Names of the kinds of operations, NULL past the end. A generator can exclude some kinds. */
const char *program_feature(uint32_t index);
/* `features`: a bit for each that may be used; `most`: about how many operations. */
void program_generate(program *p, program_choices *choices, uint64_t features, uint32_t most);
/* The same with matrix products of all types, in loops, branches and chains; tt.dot_scaled only if
 * `scaled`. */
void program_generate_dots(program *p, program_choices *choices, uint64_t features, uint32_t most,
                           bool scaled);
void program_clear(program *p);

/* Compiles for this row, modulo the length of the table of devices. The block of a device has at
 * most `max_warps` warps. */
void program_set_device(program *p, uint64_t row);

/* The parameters of a kernel as buffers of `elements` elements and small scalars, for kernels that
 * come as text. False: it has parameters of other kinds. */
bool program_of_text(program *p, const char *text, size_t length, uint32_t warps,
                     uint64_t elements);

typedef enum program_outcome {
    PROGRAM_SAME,
    PROGRAM_REFUSED,      /* by the compiler, as not supported: `why` names it */
    PROGRAM_UNDETERMINED, /* the interpreter's run is no test: `why` says how it ended */
    PROGRAM_WRONG,        /* another result, or a trap, or a race */
    PROGRAM_BROKEN        /* a diagnostic that no well-formed program should get */
} program_outcome;

typedef struct program_comparison {
    program_outcome outcome;
    char why[256];
    uint64_t exact, within, open; /* elements compared */
    double worst;
} program_comparison;

/* Checks the program's text, or another text with the same parameters. A tensor's random layout
 * depends on the seed and on the names of what it is computed from, not on the rest of the text. */
program_comparison program_check(const program *p, const char *text);
/* Interprets the program's text and another module on equal buffers. SAME: they leave the same
 * bytes; UNDETERMINED: the text's run is no test. */
program_comparison program_compare(const program *p, const lilac_tile_module *other);
/* The same, but floats may differ by what the interpreter allows them: the module's results are those
 * of one right execution. */
program_comparison program_compare_within(const program *p, const lilac_tile_module *other);
/* Runs a kernel that was compiled from the program's text on the simulator, on the program's data. False: it
 * has diagnostics. */
bool program_run(const program *p, lilac_context *context, const lilac_simt_kernel *kernel,
                 lilac_sim_profile *profile, lilac_sim_counters *counters);
/* The text with the random layouts that it is compared with, as far as a text can say them. */
void program_print_layouts(lilac_text *out, const program *p, const char *text);
/* Removes operations as long as the outcome stays the same, and returns the remaining text. */
void program_minimise(lilac_text *out, const program *p, const char *text);

#endif
