/* explain: what became of each line of a kernel, why, and at what cost.
 *
 *   source ─ lilac_explain ─▶ explanation ─▶ text for a terminal, JSON for programs
 *
 *   operation   what the line became: tile operations with the layouts of their results
 *   plan        the plan that the engine chose and the lowering executed (plan.h, access.h,
 *               collective.h, dot.h): there is no other model of its cost
 *   emitted     the SIMT instructions that an operation became, by class
 *   loop        how often an operation is executed
 *   budget      what a block uses of each unit of the device, and what bounds its time
 *
 * A count has the name and the meaning of a counter of the simulator (sim.h). It is that of one
 * execution of the operation by one block, where the masks of its accesses are true in all threads.
 * docs/explain.md describes the text and the JSON.
 *
 * The component compiles with the driver and executes nothing. Users: tools, Python.
 */
#ifndef LILAC_EXPLAIN_H
#define LILAC_EXPLAIN_H

#include <lilac/driver.h>
#include <lilac/plan.h>
#include <lilac/schedule.h>

LILAC_BEGIN

/* Classes of SIMT instructions by the unit that executes them. */
typedef enum lilac_explain_class {
    LILAC_EXPLAIN_GLOBAL,  /* loads, stores and atomics of global memory, asynchronous copies */
    LILAC_EXPLAIN_SHARED,  /* of shared memory */
    LILAC_EXPLAIN_SHUFFLE, /* exchanges within warps */
    LILAC_EXPLAIN_TENSOR,  /* mma, wgmma */
    LILAC_EXPLAIN_FLOAT,   /* additions, products, comparisons of floats */
    LILAC_EXPLAIN_SPECIAL, /* exponentials, reciprocals, …: the special function unit */
    LILAC_EXPLAIN_INTEGER, /* arithmetic and logic of integers and predicates */
    LILAC_EXPLAIN_CONVERT, /* conversions of numbers */
    LILAC_EXPLAIN_MOVE,    /* selects, byte permutes, packing */
    LILAC_EXPLAIN_SYNC,    /* barriers, fences, waits, mbarriers */
    LILAC_EXPLAIN_CONTROL, /* loops, branches */
    LILAC_EXPLAIN_CLASS_COUNT
} lilac_explain_class;

/* "global memory", "shared memory", … */
LILAC_API const char *lilac_explain_class_name(lilac_explain_class class_);

enum { LILAC_EXPLAIN_WIDTHS = 6 };

/* Counts of one block. The names are those of lilac_sim_counters. */
typedef struct lilac_explain_counts {
    uint64_t instructions;
    uint64_t global_loads, global_stores, global_load_sectors, global_store_sectors;
    uint64_t global_load_bytes, global_store_bytes;
    uint64_t shared_loads, shared_stores, shared_load_wavefronts, shared_store_wavefronts;
    uint64_t matrix_loads, matrix_stores;
    uint64_t cluster_loads, cluster_stores;
    uint64_t async_copies, async_sectors, async_wavefronts, async_bytes;
    uint64_t mmas, wgmmas, wgmma_cycles, wgmma_bytes;
    uint64_t bulk_copies, bulk_bytes;
    uint64_t shuffles, votes, selects, permutes;
    uint64_t barriers, warp_barriers, group_barriers, cluster_barriers;
    uint64_t atomics;
    uint64_t access_bits[LILAC_EXPLAIN_WIDTHS]; /* global accesses of 8 16 32 64 128 256 bits */
    uint64_t issue[LILAC_EXPLAIN_CLASS_COUNT];  /* warp instructions, by class */
} lilac_explain_counts;

/* A loop of the compiled kernel. */
typedef struct lilac_explain_loop {
    uint32_t operation; /* its number */
    uint32_t parent;    /* the index of the loop around it plus 1; 0: none */
    int64_t trip_count; /* iterations; -1: not known when the kernel is compiled */
    double estimate;    /* iterations in the launch, else those that the engine assumes */
    bool from_launch;   /* `estimate` follows from the arguments of the launch */
} lilac_explain_loop;

/* One tile operation. */
typedef struct lilac_explain_operation {
    const lilac_tile_op *op;
    uint32_t parent; /* number of the operation whose region it is in; 0: the kernel's body */
    uint32_t depth;  /* of its region */
    uint32_t loop;   /* the index of the innermost loop around it plus 1; 0: none */
    bool rare;       /* in a branch that is rarely taken */
    lilac_explain_counts counts;
    uint64_t cycles; /* 1/16 clocks: the price of its plan; 0: it has none */
} lilac_explain_operation;

/* The value of a parameter of the launch: the bits of a number; or what the memory that a pointer
 * points to contains, as the lengths of sequences, on which trip counts depend. */
typedef struct lilac_explain_argument {
    const char *name;
    uint64_t bits;
    const void *contents; /* NULL: a number */
    uint64_t length;      /* bytes of the contents */
} lilac_explain_argument;

/* The mean trip count of the loops of a line of the user's program, where it depends on data. */
typedef struct lilac_explain_trip_count {
    uint32_t line;
    double count;
} lilac_explain_trip_count;

/* The launch, if it is known: what trip counts and a prediction need. */
typedef struct lilac_explain_launch {
    uint32_t grid[3];        /* programs; 0: not known */
    uint32_t argument_count; /* known arguments, of any parameters */
    const lilac_explain_argument *arguments;
    uint32_t given_loop_count; /* of loops whose trip count does not follow from the arguments */
    const lilac_explain_trip_count *given_loops;
} lilac_explain_launch;

typedef struct lilac_explain_options {
    lilac_options compile; /* stop_at is ignored: the kernel is compiled to PTX */
    lilac_explain_launch launch;
    uint32_t registers; /* of a thread, from the assembler; 0: estimated */
    bool advice;        /* compile variants, and report those that are predicted faster */
} lilac_explain_options;

/* Sets the defaults: those of lilac_options_init, no launch, no registers given. */
LILAC_API void lilac_explain_options_init(lilac_explain_options *options);

/* What bounds a kernel. */
typedef enum lilac_explain_roof {
    LILAC_EXPLAIN_ROOF_MEMORY,  /* bytes of global memory at its bandwidth */
    LILAC_EXPLAIN_ROOF_LATENCY, /* latencies that follow each other, over the resident blocks */
    LILAC_EXPLAIN_ROOF_L2,      /* sectors that multiprocessors exchange with L2 */
    LILAC_EXPLAIN_ROOF_SHARED,  /* wavefronts of shared memory, shuffles */
    LILAC_EXPLAIN_ROOF_TENSOR,  /* tensor cores */
    LILAC_EXPLAIN_ROOF_ISSUE,   /* issue slots */
    LILAC_EXPLAIN_ROOF_SPECIAL, /* special function unit */
    LILAC_EXPLAIN_ROOF_COUNT
} lilac_explain_roof;

/* "memory", "latency", … */
LILAC_API const char *lilac_explain_roof_name(lilac_explain_roof roof);

/* The parts of the predicted time, in seconds. The longest of memory, L2 and multiprocessors
 * determines it; docs/explain.md. */
typedef struct lilac_explain_time {
    double launch;          /* of any kernel */
    double memory, l2;      /* all bytes at the bandwidth */
    double multiprocessors; /* the waves of blocks one after another */
    double imbalance;       /* the longest block, beyond the mean one */
    double power;           /* what a lower clock adds if tensor cores are busy for long */
    double waves;           /* blocks over those that are resident on the device, rounded up */
} lilac_explain_time;

typedef struct lilac_explain_budget {
    lilac_explain_counts counts; /* of a block: operations times the estimates of their loops */
    bool exact;                  /* all trip counts are known, and no operation is in a branch */
    uint32_t shared_bytes, registers;
    bool registers_estimated;
    uint32_t resident_blocks, resident_warps;
    const char *limited_by; /* "registers", "shared memory", "warps", "blocks" */
    double
        unique_bytes; /* of a block: bytes of global memory that no other block of the launch accesses */
    double clocks[LILAC_EXPLAIN_ROOF_COUNT]; /* of a block, on a multiprocessor that is shared by
                                                the resident blocks */
    lilac_explain_roof bound;                /* the largest */
    lilac_explain_time time;                 /* for the grid */
    double seconds; /* predicted for the grid; 0: no grid, or a device without a model */
} lilac_explain_budget;

typedef struct lilac_explanation lilac_explanation;

/* Compiles the first kernel of a source (or options->compile.kernel) and explains it. NULL after
 * diagnostics in the context: those of lilac_compile; `no-operations`, the source is SIMT text;
 * `unknown-argument`, the launch has a value for a parameter that the kernel does not have. The
 * caller keeps the strings and the arrays of the options. */
LILAC_API LILAC_MUST_USE lilac_explanation *lilac_explain(lilac_context *context, uint32_t source,
                                                          const lilac_explain_options *options);
LILAC_API void lilac_explanation_destroy(lilac_explanation *explanation);

/* Operations in program order, numbered from 1: number n is operations[n - 1]. */
LILAC_API const lilac_explain_operation *
lilac_explain_operations(const lilac_explanation *explanation, uint32_t *count);
/* Are the sectors and wavefronts of operation number `number` those of every launch? Not where they
 * depend on the alignment of unknown addresses, or on data. */
LILAC_API bool lilac_explain_is_exact(const lilac_explanation *explanation, uint32_t number);
LILAC_API const lilac_explain_loop *lilac_explain_loops(const lilac_explanation *explanation,
                                                        uint32_t *count);
LILAC_API const lilac_explain_budget *
lilac_explain_budget_get(const lilac_explanation *explanation);
LILAC_API const lilac_compilation *lilac_explain_compilation(const lilac_explanation *explanation);

/* ---- schedules --------------------------------------------------------------------------- */

/* What an iteration of a loop reserves. */
typedef enum lilac_explain_unit {
    LILAC_EXPLAIN_UNIT_TENSOR,   /* tensor cores */
    LILAC_EXPLAIN_UNIT_OPERANDS, /* wavefronts of shared memory for operands of wgmma */
    LILAC_EXPLAIN_UNIT_SHARED,   /* wavefronts of shared memory and L1, shuffles */
    LILAC_EXPLAIN_UNIT_L2,       /* bytes exchanged with L2 */
    LILAC_EXPLAIN_UNIT_MEMORY,   /* bytes exchanged with memory */
    LILAC_EXPLAIN_UNIT_SPECIAL,  /* special function unit */
    LILAC_EXPLAIN_UNIT_INTEGER,  /* arithmetic of integers, conversions, moves, minima, maxima */
    LILAC_EXPLAIN_UNIT_FLOAT,    /* arithmetic of floats */
    LILAC_EXPLAIN_UNIT_ISSUE,    /* issue slots */
    LILAC_EXPLAIN_UNITS
} lilac_explain_unit;

/* "tensor cores", … */
LILAC_API const char *lilac_explain_unit_name(lilac_explain_unit unit);

/* The schedule of a loop with products. Numbers are clocks of a multiprocessor for an iteration of
 * one block. */
typedef struct lilac_explain_schedule {
    uint32_t loop; /* its index */
    lilac_schedule schedule;
    uint32_t joined; /* loops of the source that it is (LILAC_JOINED_LOOPS); 1: one */
    double clocks[LILAC_EXPLAIN_UNITS]; /* that each unit is busy */
    lilac_explain_unit bound;           /* the busiest */
    double recurrences;                 /* bound by cycles of values that the loop carries */
    double copies;                      /* bound by the latency of copies: over the distance */
    double alone;    /* predicted, for a block that has the multiprocessor for itself */
    double resident; /* blocks */
    double interval; /* predicted, for one of the resident blocks */
} lilac_explain_schedule;

/* The schedules of the pipelined loops with products, `*count` of them, in program order. */
LILAC_API const lilac_explain_schedule *lilac_explain_schedules(lilac_explanation *explanation,
                                                                uint32_t *count);

enum { LILAC_EXPLAIN_MOST_SCHEDULES = 400 };

/* A schedule of all loops with products, compiled. */
typedef struct lilac_explain_candidate {
    double seconds; /* predicted for the launch; 0: no grid */
    bool is_chosen; /* the passes choose it */
    uint32_t loop_count;
    lilac_schedule *schedules; /* by loop with products */
    uint32_t request_count;
    const char **requests; /* that ask for it (lilac_options.schedules) */
} lilac_explain_candidate;

typedef struct lilac_explain_search {
    uint32_t count;
    lilac_explain_candidate *list; /* the fastest first */
    double chosen;                 /* seconds of the passes' choice */
    uint32_t refused;              /* requests that are not possible */
    bool exhaustive;               /* there are no others, but for what src/explain/search.c names */
} lilac_explain_search;

typedef void (*lilac_explain_progress)(void *data, uint32_t compiled, uint32_t refused);

/* Compiles the kernel with the schedules that its loops with products can have, at most
 * LILAC_EXPLAIN_MOST_SCHEDULES, and predicts their times. The memory is the arena's. `progress`:
 * called after each; or NULL. False after diagnostics: those of lilac_explain for the kernel as it
 * is. */
LILAC_API LILAC_MUST_USE bool
lilac_explain_search_schedules(lilac_explain_search *result, lilac_arena *arena,
                               lilac_context *context, uint32_t source,
                               const lilac_explain_options *options,
                               lilac_explain_progress progress, void *data);

/* ---- source texts ------------------------------------------------------------------------ */

/* Name number `index` of a file that locations name; NULL: there is none. File 0 is the text that
 * was compiled. */
LILAC_API const char *lilac_explain_file(const lilac_explanation *explanation, uint32_t index);
/* The contents of a file that locations name. Lines of files without contents are not shown. */
LILAC_API void lilac_explain_add_text(lilac_explanation *explanation, uint32_t index,
                                      const char *bytes, size_t length);

/* The file whose lines are shown: that of the kernel's operations, if its contents are known;
 * otherwise 0, the text that was compiled. */
LILAC_API uint32_t lilac_explain_main_file(const lilac_explanation *explanation);
/* The number of warps that layouts of the kernel's tensors are for. */
LILAC_API uint32_t lilac_explain_warps(const lilac_explanation *explanation);

/* ---- output ------------------------------------------------------------------------------ */

typedef struct lilac_explain_view {
    uint32_t line; /* only this line of the kernel's file, with alternatives and prices; 0: all */
    bool colour;
} lilac_explain_view;

/* The source with what became of each line, then the budget. False with a diagnostic
 * (`unknown-line`): the line has no operations. */
LILAC_API LILAC_MUST_USE bool lilac_explain_text(lilac_text *out, lilac_explanation *explanation,
                                                 const lilac_explain_view *view);
/* One JSON value on one line: docs/explain.md. */
LILAC_API void lilac_explain_json(lilac_text *out, lilac_explanation *explanation);
/* How the plans, prices and counts of `other` differ from those of `base`, as text and as JSON. */
LILAC_API void lilac_explain_compare(lilac_text *out, lilac_explanation *base,
                                     lilac_explanation *other, const char *what);
LILAC_API void lilac_explain_compare_json(lilac_text *out, lilac_explanation *base,
                                          lilac_explanation *other, const char *what);

LILAC_END

#endif
