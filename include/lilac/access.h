/* access: plans of accesses to global memory.
 *
 * Let D be the layout of a tensor of pointers, from registers, lanes and warps to coordinates.
 * Facts about the pointers say which bits of a coordinate lead to another element of the same
 * vector, of the same sector, of the same line. All these bits span subspaces, so every count is a
 * dimension over F2. For a set of columns of D,
 *
 *     distinct sectors  =  2^rank(columns modulo the bits within a sector)
 *
 *     coordinate   … row … | … sector … | element of the sector
 *     columns        warps |    lanes   | lanes, registers of a vector
 *
 * The plan says which registers form a vector, which threads execute the access (one of those that
 * hold an element), how many instructions, sectors and lines that takes, and its price. The engine
 * compares plans of different layouts, and the lowering executes the plan of the layout that was
 * chosen. Accesses to shared memory are in plan.h (lilac_plan_access).
 *
 * Results are values. Nothing here fails or allocates. Users: engine, lower, driver.
 */
#ifndef LILAC_ACCESS_H
#define LILAC_ACCESS_H

#include <lilac/arch.h>
#include <lilac/layout.h>

LILAC_BEGIN

typedef enum lilac_plan_global_kind {
    LILAC_PLAN_LOAD,
    LILAC_PLAN_COPY, /* asynchronous, to shared memory: a load that one holder executes */
    LILAC_PLAN_STORE,
    LILAC_PLAN_ATOMIC
} lilac_plan_global_kind;

/* What is known of the pointers and the mask of an access, along each dimension of the tensor. The
 * arrays have `rank` entries. engine.h defines the terms (lilac_axis_facts). */
typedef struct lilac_plan_global_facts {
    uint32_t rank; /* 0: one pointer, all other fields are ignored */
    const int64_t *shape;
    const int64_t *contiguity;   /* of the pointers, in elements */
    const int64_t *divisibility; /* of the pointers, in bytes */
    const int64_t *constancy;    /* of the mask; NULL: no mask */
    const int64_t *stride; /* of the pointers, in elements, where its bit in stride_known is set */
    uint32_t stride_known;
    uint32_t stride_typical; /* dimensions along which most neighbours differ by `stride` */
    int64_t origin;          /* a power of two that divides the address of the first element */
    /* Bits of flat coordinates that do not change the pointer, and those that do not change the
     * loaded element (0 unless it is a load). */
    uint64_t same_pointer, same_value;
} lilac_plan_global_facts;

/* An access before its tensor has a layout: the widest legal vectors, and which elements share a
 * sector (arch->sector_bytes) or a line (LILAC_PLAN_LINE_BYTES) of memory. Elements whose
 * coordinates differ in the bits of `sector` only share a sector. Coordinates are flat, as in a
 * column of the layout. */
typedef struct lilac_plan_global {
    lilac_plan_global_kind kind;
    uint32_t element_bytes, rank;
    uint32_t order[LILAC_LAYOUT_MAX_DIMS]; /* dimensions, those with the longest runs first */
    uint8_t start[LILAC_LAYOUT_MAX_DIMS], bits[LILAC_LAYOUT_MAX_DIMS]; /* of coordinates */
    int64_t run; /* consecutive elements in memory along order[0] */
    /* The part of the first sector that may lie in front of a run, in bytes, where the facts deny that runs
     * are aligned to 16 bytes; 0: they are, or are shorter than a sector, or continue along another dimension. */
    uint32_t bytes_before_run;
    /* By dimension, log2 of the elements of the widest legal vector along it. A vector that spans
     * all of dimension d continues along `next[d]` up to 2^across_bits[d] elements; across_bits[d]
     * 0: it does not continue. */
    uint8_t vector_bits[LILAC_LAYOUT_MAX_DIMS];
    uint8_t next[LILAC_LAYOUT_MAX_DIMS], across_bits[LILAC_LAYOUT_MAX_DIMS];
    /* Consecutive elements along order[0] that one thread should load: a vector, or more for narrow
     * elements that no vector covers. */
    int64_t thread_run;
    /* Do the lines that a thread's first load of such a run requests serve its other loads? */
    bool runs_share_lines;
    /* Sets of bits of coordinates: those whose change stays within a sector, a line, two lines, and
     * those that do not change the address. */
    uint64_t sector, line, line_pair;
    uint64_t same_address;
    uint64_t same_value; /* of a load: those that do not change the loaded element */
    /* Whether the facts prove which elements share a sector, and which a line. Otherwise `sector`
     * and `line` are right for pointers whose runs are aligned to one and share none with another
     * run. */
    bool exact_sectors, exact_lines;
} lilac_plan_global;

enum { LILAC_PLAN_LINE_BYTES = 128, LILAC_PLAN_MAX_VECTOR = 16 /* elements */ };

/* `most_elements`: the most that one instruction of this kind accesses per thread; 0: as many as
 * fit in arch->vector_bytes. A vector is legal where its elements are consecutive, aligned to its
 * size and under one value of the mask. Cost: rank². */
LILAC_API void lilac_plan_global_init(lilac_plan_global *result, lilac_plan_global_kind kind,
                                      uint32_t element_bytes, uint32_t most_elements,
                                      const lilac_plan_global_facts *facts, const lilac_arch *arch);
/* log2 of the elements of the widest legal vector of any layout. */
LILAC_API uint32_t lilac_plan_global_widest(const lilac_plan_global *global);

typedef struct lilac_plan_global_counts {
    uint64_t instructions; /* of all warps of a block that executes the access */
    uint64_t sectors;      /* that each instruction touches, summed over the instructions */
    uint64_t lines;        /* likewise */
} lilac_plan_global_counts;

/* The access in a layout. Element e of the vector of register r is in the register with the bits of
 * e deposited at vector_register. A thread executes the instructions of the registers r whose bits
 * of `skipped_registers` are all 0. */
typedef struct lilac_plan_global_access {
    lilac_plan_global_kind kind;
    uint32_t element_bytes;
    uint32_t vector_bits;          /* log2 of the elements of a vector */
    uint8_t vector_register[4];    /* register bits, that of the lowest element bit first */
    uint32_t vector_registers;     /* mask of these register bits */
    uint32_t replicated_registers; /* masks of the bits that lead to elements that others hold */
    uint32_t replicated_threads;   /* bits of a thread's index: of the lane, then of the warp */
    uint32_t replicated_blocks;
    uint32_t equal_registers;   /* of a load: bits that lead to elements with an equal value */
    uint32_t skipped_registers; /* vector_registers, replicated_registers and equal_registers */
    /* Of a store with bytes_before_run: bits that lead along a run. Stores that follow each other along it
     * share sectors, which are merged while a warp stores one after the other. */
    uint32_t run_registers;
    /* The leader predicate: a thread executes the access if these bits of its index and of its
     * block's rank are all 0. */
    uint32_t idle_threads, idle_blocks;
    /* Where the mask is true. Exact counts are those of the hardware. */
    lilac_plan_global_counts counts;
    lilac_plan_global_counts bound; /* the minimum over all layouts */
    bool exact;
    uint64_t cycles; /* estimated clocks of a multiprocessor, times 16, of all warps of a block */
} lilac_plan_global_access;

/* Threads that hold replicas and whole warps of them skip the load. */
#define LILAC_PLAN_IDLE_REPLICAS UINT32_MAX

/* The plan in `layout` (inputs register, lane, warp, block); NULL: a scalar, which every thread
 * holds. One of the threads that hold an element stores or copies it. `idle`: idle_threads of a
 * load; the caller has proved that these threads hold replicas that no operation reads. Or
 * LILAC_PLAN_IDLE_REPLICAS. Cost: four eliminations of the layout's columns. */
LILAC_API void lilac_plan_global_access_init(lilac_plan_global_access *result,
                                             const lilac_plan_global *global,
                                             const lilac_layout *layout, uint32_t idle,
                                             const lilac_target *target);
/* The register of an element of a vector. */
static inline uint32_t lilac_plan_global_register(const lilac_plan_global_access *access,
                                                  uint32_t first, uint32_t element) {
    for (uint32_t i = 0; i < access->vector_bits; i++) {
        first |= (element >> i & 1) << access->vector_register[i];
    }
    return first;
}
/* Mask of the coordinate bits that exactly one register bit changes, and no thread or block bit. */
LILAC_API uint64_t lilac_plan_own_coordinates(const lilac_layout_columns *columns);
/* Text for people, one line for each question: the vector, who executes, counts and bound, price.
 * The second function prints one JSON object on one line. */
LILAC_API void lilac_plan_global_access_explain(lilac_text *out,
                                                const lilac_plan_global_access *access);
LILAC_API void lilac_plan_global_access_json(lilac_text *out,
                                             const lilac_plan_global_access *access);
/* "load", "copy", "store", "atomic" */
LILAC_API const char *lilac_plan_global_kind_name(lilac_plan_global_kind kind);

LILAC_END

#endif
