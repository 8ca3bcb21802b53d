/* What the files of the component `explain` share.
 *
 *   compile ─▶ collect.c               the operations and loops, and the plans of each
 *           ─▶ launch/choose_kernel.c  the tensor maps of the launch
 *           ─▶ cost/emitted.c          the SIMT instructions of each operation, by class
 *           ─▶ launch/iterations.c     how often loops and branches are executed
 *           ─▶ cost/plan_counts.c      counters of an operation, from plans and instructions
 *           ─▶ launch/accesses.c       what the launch accesses (walk.c, slices.c)
 *           ─▶ launch/traffic.c        which cache has it
 *           ─▶ cost/budget.c           a block's use of each unit
 *           ─▶ cost/chain.c            the time of a segment
 *           ─▶ cost/predict.c          the time of the launch
 *           ─▶ report/                 text, JSON, what differs
 */
#ifndef LILAC_EXPLAIN_INTERNAL_H
#define LILAC_EXPLAIN_INTERNAL_H

#include <lilac/bits.h>
#include <lilac/engine.h>
#include <lilac/explain.h>
#include <lilac/lower.h>
#include <lilac/occupancy.h>
#include <lilac/tensor_map.h>

/* ---- counters (counters.c) ---------------------------------------------------------------- */

typedef struct explain_counter {
    const char *name; /* of the simulator's counter; spaces for underlines in text */
    size_t offset;
} explain_counter;

/* The counters in the order of the simulator's; `name` NULL ends the list. access_bits and issue
 * are not in it. */
extern const explain_counter explain_counters[];

static inline uint64_t explain_counter_get(const lilac_explain_counts *counts,
                                           const explain_counter *counter) {
    return *(const uint64_t *)(const void *)((const char *)counts + counter->offset);
}

/* sum += factor · part, rounded. */
void explain_counts_add(lilac_explain_counts *sum, const lilac_explain_counts *part, double factor);

/* ---- branches (iterations.c) ------------------------------------------------------------------- */

/* A SIMT instruction with bodies. */
typedef struct explain_branch {
    const lilac_simt_instruction *instruction;
    double entries;     /* executions of it, over the sampled programs */
    double taken[2];    /* executions of its bodies; of a loop: iterations */
    int64_t trip_count; /* of a loop: the trip count without a launch; -1: not known */
    bool known;         /* nothing had to be assumed */
} explain_branch;

/* ---- segments ------------------------------------------------------------------------------ */

/* What a block does in the iterations of a loop, without the loops in it; segment 0: outside of
 * loops. Sums are those of a block, of all iterations. */
typedef struct explain_segment {
    double entries, iterations;
    double clocks;    /* of one iteration, alone on a multiprocessor: chain.c */
    double busy;      /* the part of them in which a scheduler issues */
    uint32_t waits;   /* for copies and products, in one iteration */
    uint32_t program; /* the index of the warp program that it is in plus 1; 0: in none */
    double issue[LILAC_EXPLAIN_CLASS_COUNT];
    double extremes;       /* minima and maxima of floats, which the unit of integers executes */
    double special;        /* instructions of the special function unit */
    double tensor;         /* clocks of the tensor cores */
    double shared, global; /* wavefronts of shared memory, and of accesses to L1 */
    double operands;       /* wavefronts of the operands of wgmma */
    double shuffles;
    double sectors, memory_sectors; /* exchanged with L2, and with memory */
    double unused_sectors;          /* of the lines that memory delivers */
    double partial_sectors;         /* likewise of those that tensor copies request of L2 */
} explain_segment;

/* ---- the explanation ---------------------------------------------------------------------- */

typedef struct explain_plans {
    const lilac_lowered_plan **list;
    uint32_t count;
} explain_plans;

/* Instructions of an operation that access memory, and those among them that load and store shared
 * memory. */
typedef struct explain_emitted {
    uint32_t accesses, loads, stores;
} explain_emitted;

typedef struct explain_file {
    lilac_name name;
    lilac_text text;
    const char **lines; /* `count` of them, each ends with a newline or the text */
    uint32_t count;
} explain_file;

struct lilac_explanation {
    lilac_context *context;
    lilac_arena *arena;
    lilac_explain_options options;
    lilac_compilation compilation;
    uint32_t source;
    lilac_tile_function *function;
    const lilac_simt_kernel *kernel;
    lilac_lowered_plans lowered;
    lilac_text ptx;
    lilac_ptx_origins origins;
    uint64_t *arguments; /* of the launch, by parameter */
    bool *known;
    lilac_simt_known_memory *memory; /* that pointers of the launch point to */
    uint32_t memory_count;
    lilac_tensor_map *maps; /* that the launcher makes, by parameter; rank 0: not known, or none */
    uint32_t map_count;     /* that the launcher makes */
    bool without_maps;      /* the launcher starts the kernel that has none */
    uint32_t count;         /* operations */
    lilac_explain_operation *operations;
    explain_plans *plans;     /* by index of the operation, like the next ones */
    double *executions;       /* of a block */
    bool *certain;            /* `executions` is known */
    explain_emitted *emitted; /* of one warp */
    double *traffic;          /* sectors that one execution exchanges with L2, for a block */
    double *lines; /* wavefronts of L1 of one execution's accesses to global memory: accesses.c */
    double *requests; /* lines of L2 that one execution's tensor copies read or write: accesses.c */
    double *pieces;   /* lines of memory that one execution accesses, in whole or in part, and none
                       before it: accesses.c */
    double *span;     /* bytes from its lowest to its highest address, in one program: accesses.c */
    double *cached;   /* the part of its sectors that L1 has: traffic.c */
    double *active;   /* the part of its accesses' threads that no mask turns off: accesses.c */
    uint32_t *again;  /* the number of an earlier operation that loads the same; 0: none */
    double *distinct; /* different addresses of its accesses, over the programs */
    double *footprint; /* sectors from its lowest to its highest address, in all programs */
    double *share;     /* the part of its sectors that memory delivers: traffic.c, like these */
    double *tensor;    /* clocks of the tensor cores of one execution */
    uint32_t loop_count, loop_capacity;
    lilac_explain_loop *loops;
    explain_segment *segments; /* by index of the loop plus 1 */
    double work, most_work;    /* instructions of the sampled programs: their sum, the most */
    double samples;            /* programs in which branches were sampled */
    uint32_t branch_count;
    explain_branch *branches; /* in the order of a walk over the kernel */
    lilac_explain_counts block;
    double issue[LILAC_EXPLAIN_CLASS_COUNT]; /* of a block */
    double tensor_clocks;                    /* likewise */
    uint32_t spilled; /* words of a thread that are not in registers in loops with products */
    lilac_explain_budget budget;
    lilac_axis_analysis *facts;
    lilac_text tile; /* the text of the compiled kernel */
    uint32_t *text_begin;
    struct explain_name *names;
    explain_file *files;
    uint32_t file_count;
};

/* The number of the operation that an instruction was lowered from; 0: none. */
static inline uint32_t explain_number(const lilac_explanation *e, lilac_location location) {
    const uint32_t number = lilac_operation_number(e->context, location);
    return number <= e->count ? number : 0;
}
static inline uint32_t explain_number_of(const lilac_explanation *e, const lilac_tile_op *op) {
    return op != NULL ? explain_number(e, op->location) : 0;
}

static inline bool explain_is_tensor_copy(const lilac_simt_instruction *i) {
    return i->code == LILAC_SIMT_OP_CP_TENSOR_LOAD || i->code == LILAC_SIMT_OP_CP_TENSOR_STORE ||
           i->code == LILAC_SIMT_OP_CP_TENSOR_REDUCE;
}

/* ---- a walk over accesses (walk.c) ---------------------------------------------------------- */

/* An instruction that accesses global memory, or that has bodies; `end` is the index behind what is
 * in it. */
typedef struct explain_item {
    const lilac_simt_instruction *instruction;
    uint32_t number; /* of the operation, of an access */
    uint32_t body;   /* index of the body that it is in */
    uint32_t end;
} explain_item;

typedef struct explain_walker explain_walker;
struct explain_walker {
    lilac_explanation *e;
    explain_item *items;
    uint32_t count, accesses;
    lilac_simt_evaluation values; /* of the thread that is visited */
    double place;                 /* of the iteration in its loop: 0 the first, 1 the last */
    void (*access)(explain_walker *w, const explain_item *item);
    void *user;
};

void explain_walker_init(explain_walker *w, lilac_explanation *e);
void explain_walker_clear(explain_walker *w);
/* Calls `access` for each access of a thread of a program. */
void explain_walk(explain_walker *w, uint64_t program, uint32_t thread, double place);

/* choose_kernel.c: makes the maps of the launch. The kernel that the launcher starts: this one, the one without
 * maps, or the one for launches whose blocks have a multiprocessor each. */
typedef enum explain_kernel { EXPLAIN_THIS, EXPLAIN_PLAIN, EXPLAIN_ONE_BLOCK } explain_kernel;
explain_kernel explain_choose_kernel(lilac_explanation *e);
/* explain.c: sets the arguments, the memory and the grid of the launch. */
void explain_set_launch(const lilac_explanation *e, lilac_simt_evaluation *values);
/* Of an H200. */
enum { EXPLAIN_MULTIPROCESSORS = 132, EXPLAIN_L2_BYTES = 50 << 20 };
/* chain.c: the clocks of each segment. */
void explain_find_chains(lilac_explanation *e);
/* iterations.c: instructions of the longest sampled program over those of the mean one. */
double explain_imbalance(const lilac_explanation *e);
/* chain.c: clocks from an instruction to its use, where no access to global memory is; those of the
 * tensor cores of one warp, or warpgroup; those from the end of a product to its use; of a copy. */
double explain_latency(const lilac_simt_instruction *instruction);
double explain_matrix_clocks(const lilac_simt_instruction *instruction);
enum { EXPLAIN_WGMMA_LATENCY = 60 };
double explain_copy_latency(const lilac_explanation *e);
/* recurrence.c: clocks between iterations of a loop that `warps` execute, if all units were free. */
double explain_recurrence(lilac_explanation *e, const lilac_simt_instruction *loop, double warps);
/* timeline.c: iterations of a loop, by its index, between the start of a tensor copy and its use. */
double explain_copies_ahead(lilac_explanation *e, uint32_t loop);
/* iterations.c: instructions with bodies in a body. */
uint32_t explain_branches_in(const lilac_simt_body *body);
/* emitted.c: the segment of the loop that the instruction is; 0: none. */
uint32_t explain_segment_of(const lilac_explanation *e, const lilac_simt_instruction *instruction);
/* collect.c */
void explain_collect(lilac_explanation *e);
/* iterations.c */
void explain_find_iterations(lilac_explanation *e);
/* emitted.c: counts of the instructions of each operation, and the sums for a block. */
void explain_count_emitted(lilac_explanation *e);
lilac_explain_class explain_class_of(const lilac_simt_instruction *instruction);
/* The rate of mma, over that of wgmma. */
double explain_mma_rate(const lilac_explanation *e);
/* Does the unit of integers execute it? */
bool explain_is_integer(const lilac_simt_instruction *instruction);
bool explain_is_special(const lilac_explanation *e, const lilac_simt_instruction *instruction);
/* Issue slots of its machine code. */
double explain_slots(const lilac_explanation *e, const lilac_simt_instruction *instruction);
/* Does the simulator count it as issued? */
bool explain_is_issued(const lilac_simt_instruction *instruction);
/* plan_counts.c: counts of accesses from the plans of an operation. */
void explain_count_plans(lilac_explanation *e, uint32_t index);
uint64_t explain_shared_cycles(const lilac_explanation *e, const lilac_lowered_shared *plan);
/* accesses.c: `traffic` and `active` of the launch. */
void explain_find_accesses(lilac_explanation *e);
/* slices.c: of an address that is not known: its different values over the programs, at most. */
double explain_varying_part(const lilac_explanation *e, uint32_t index);
/* traffic.c */
void explain_find_traffic(lilac_explanation *e);
/* predict.c: the roof of latency, and the time of the launch. */
void explain_predict(lilac_explanation *e);
/* traffic.c: of what a block loads again, L2 has the part that resident blocks do not displace. */
void explain_find_reuse(lilac_explanation *e);
/* budget.c. The sectors that a block exchanges with L2; with `shared`, with memory. */
double explain_sectors(const lilac_explanation *e, bool shared);
void explain_find_budget(lilac_explanation *e);

/* The axis by whose numbers the programs start, and whether the last one starts first; '\0': programs start in the
 * order of their numbers. (explain.c) */
char explain_sorted_axis(const lilac_explanation *e, bool *descending);
/* The axis facts of the function, computed when they are first asked for. (explain.c) */
const lilac_axis_analysis *explain_facts(lilac_explanation *e);

/* ---- reasons.c ---------------------------------------------------------------------------- */

/* The operation that decides the layout of a value that is made, or used; NULL: none is found. */
const lilac_tile_op *explain_producer(const lilac_tile_value *value);
const lilac_tile_op *explain_consumer(const lilac_tile_value *value);
/* The plan of an access to global memory in another layout. False: another operation, or shape. */
bool explain_access_in(lilac_explanation *e, const lilac_tile_op *op, const lilac_layout *layout,
                       lilac_plan_global_access *plan);
/* Why an anchor has one layout and not the other; `makes`: of its result. */
void explain_reason(lilac_text *out, lilac_explanation *e, const lilac_tile_op *anchor,
                    const lilac_layout *own, const lilac_layout *other, bool makes);

/* What bounds the vectors of an access to global memory: consecutive elements, alignment, the mask;
 * one line. False: another operation. */
bool explain_vector_limits(lilac_text *out, lilac_explanation *e, uint32_t index);

enum { EXPLAIN_MOST_ALTERNATIVES = 8 };

typedef enum explain_alternative_kind {
    EXPLAIN_OTHER_CONVERSION,
    EXPLAIN_OTHER_ACCESS,
    EXPLAIN_OTHER_REDUCTION,
    EXPLAIN_OTHER_PRODUCT
} explain_alternative_kind;

/* A plan that was not chosen. */
typedef struct explain_alternative {
    explain_alternative_kind kind;
    const char *name;
    uint32_t number; /* the operation that it is about; 0: none */
    uint64_t cycles;
    uint64_t saved;         /* of an access: the cycles of the conversion that it replaces */
    lilac_plan_price price; /* of a conversion, of a reduction */
    uint32_t bytes;         /* of an access, with `sectors` */
    uint64_t sectors;
    const char *refused; /* why it does not exist */
} explain_alternative;

typedef struct explain_alternatives {
    explain_alternative list[EXPLAIN_MOST_ALTERNATIVES];
    uint32_t count;
} explain_alternatives;

/* alternatives.c */
void explain_alternatives_of(lilac_explanation *e, uint32_t index, explain_alternatives *list);

/* ---- names (layout_names.c) ---------------------------------------------------------------- */

/* The shortest name of a layout of a tensor, the named one that a type was read with if there is
 * one; and the linear layout. Strings of the arena. NULL for types without a layout. */
const char *explain_layout_name(lilac_explanation *e, const lilac_tile_type *type);
const char *explain_linear_name(lilac_explanation *e, const lilac_layout *layout);
/* The text of an operation, up to its regions. */
const char *explain_operation_text(lilac_explanation *e, uint32_t index, size_t *length);
/* "%x" of a value; "" if it has none. */
void explain_value_name(lilac_text *out, const lilac_tile_value *value);

/* ---- timeline.c ---------------------------------------------------------------------------- */

typedef struct explain_event {
    uint32_t number; /* of the operation */
    const char *kind;
    int64_t pending;                     /* groups that a wait leaves incomplete; -1: none */
    int32_t buffer;                      /* index in the list of buffers; -1: none */
    uint32_t awaited[16], awaited_count; /* operations that a wait completes */
} explain_event;

/* The event of an operation; false: it is none. */
bool explain_event_of(lilac_explanation *e, uint32_t index, explain_event *event);
/* Allocations of shared memory with several buffers or of any size: the index of the operation. */
uint32_t explain_buffers(lilac_explanation *e, uint32_t *list, uint32_t most);

/* plan_text.c: what a plan does, as lines of text; and as JSON. */
void explain_plan_text(lilac_text *out, lilac_explanation *e, const lilac_lowered_plan *plan);
void explain_plan_json(lilac_text *out, lilac_explanation *e, const lilac_lowered_plan *plan);
const char *explain_plan_kind(const lilac_lowered_plan *plan);
uint64_t explain_plan_cycles(const lilac_explanation *e, const lilac_lowered_plan *plan);
/* "wgmma.m64n128k16.f32.f16", with its operands' places. */
void explain_dot_name(lilac_text *out, const lilac_lowered_dot *dot);

/* places.c: the place of an operation in the user's program: a file's index, line, column. False:
 * none. `explain_input` is the place in the text that was compiled. */
bool explain_place(const lilac_explanation *e, const lilac_tile_op *op, uint32_t *file,
                   uint32_t *line, uint32_t *column);
bool explain_input(const lilac_explanation *e, const lilac_tile_op *op, uint32_t *line,
                   uint32_t *column);
void explain_find_files(lilac_explanation *e);
void explain_clear_files(lilac_explanation *e);

#endif
