/* A kernel decoded for execution: a straight array of steps with jumps.
 *
 *   kernel bodies ──survey──▶ which values differ between threads, and where their last uses are
 *                 ──decode──▶ steps on byte offsets into one register file
 *
 * Each value has an array in the register file with one entry for each thread (lanes.h). Arrays
 * are reused after the last use of their value. A uniform value is computed in the entry of the
 * first thread, and copied to the other entries only if an operation reads the entry of each
 * thread. The simulator finds uniform values itself: it does not use the marks of the kernel.
 *
 * Arrays have entries for all threads of the block. The steps of a warp program access only the
 * entries of its own threads, so programs share arrays without conflicts.
 */
#ifndef LILAC_SIM_PROGRAM_H
#define LILAC_SIM_PROGRAM_H

#include "lanes/lanes.h"

#include <lilac/sim.h>
#include <lilac/simt_matrix.h>

typedef enum lilac_sim_step_kind {
    STEP_LANES,   /* loop(n, immediate, out, a, b, c) */
    STEP_FLUSHED, /* LANES with f32 operands and result flushed; varies: which are f32 */
    STEP_DIVIDE,  /* LANES; where b is zero, the result is poison (poison.h) */
    STEP_LOAD_GLOBAL,
    STEP_STORE_GLOBAL,
    STEP_LOAD_SHARED,
    STEP_STORE_SHARED,
    STEP_LOAD_CLUSTER,
    STEP_STORE_CLUSTER,
    STEP_LOAD_MATRIX, /* immediate: transposed */
    STEP_STORE_MATRIX,
    STEP_COPY, /* cp.async; others[0]: the bytes to read, values[0]: the global address */
    STEP_COPY_COMMIT,
    STEP_COPY_WAIT, /* immediate: groups that may be incomplete; UINT64_MAX: all copies complete */
    STEP_WGMMA,     /* access: index of lilac_sim_matrix */
    STEP_WGMMA_FENCE,
    STEP_WGMMA_COMMIT,
    STEP_WGMMA_WAIT,  /* immediate: groups that may be incomplete */
    STEP_MMA,         /* access: index of lilac_sim_matrix */
    STEP_FENCE_PROXY, /* immediate: detail */
    STEP_BULK_START,  /* values[0]: the global address, values[1]: the mbarrier of a load;
                          others: the size or the coordinates */
    STEP_BULK_COMMIT,
    STEP_MADE_MAP,  /* tensor_map.set, publish: values[0]: the global address, others: the sizes and
                       strides; acquire: the global address a */
    STEP_BULK_WAIT, /* immediate: groups that may be incomplete */
    STEP_MBARRIER,  /* immediate: lilac_simt_opcode; others[0]: the count, bytes or parity,
                       values[0]: the result of try_wait */
    STEP_MBARRIER_WAIT,
    STEP_SHUFFLE, /* out, value a, lane b; immediate: lilac_simt_shuffle */
    STEP_BALLOT,
    STEP_BARRIER,
    STEP_WARP_BARRIER,
    STEP_GROUP_BARRIER, /* number a; immediate: threads of a group */
    STEP_CLUSTER_BARRIER,
    STEP_NAMED_BARRIER, /* immediate: number of threads; sync or arrive */
    STEP_SET_REGISTERS, /* immediate: registers of a thread */
    STEP_ASSERT,
    STEP_ATOMIC_GLOBAL, /* immediate: lilac_simt_atomic; LILAC_SIMT_ATOMIC_COUNT: compare and swap
                         */
    STEP_ATOMIC_SHARED,
    STEP_VOTE, /* immediate: any of the warp, all of the warp, or some of the block */
    STEP_MATCH,
    STEP_REDUX, /* immediate: lilac_simt_atomic */
    STEP_PRINT, /* values: the operands */
    STEP_TIMER,
    STEP_LOOP_BEGIN, /* out counter, a lower, b upper, c step; immediate: entry bytes; to target
                        when there is no iteration */
    STEP_LOOP_NEXT,  /* the same operands; to target when there is another iteration */
    STEP_FORK,       /* begins n programs, the first is number `access`; when all have ended: to
                        target */
    STEP_JOIN,       /* ends a program */
    STEP_BRANCH,     /* to target when condition a is false */
    STEP_JUMP,
    STEP_JUMP_BACK, /* of a while loop */
    STEP_END
} lilac_sim_step_kind;

typedef struct lilac_sim_access {
    uint32_t address;   /* register offsets */
    uint32_t predicate; /* LILAC_SIM_NONE: always */
    uint32_t values[8]; /* results of a load, operands of a store, old values of an atomic */
    uint32_t others[9]; /* LILAC_SIM_NONE: zero; operands of an atomic */
    uint8_t type;       /* lilac_simt_type, of an atomic's elements */
    uint32_t count;     /* elements for each thread */
    uint32_t width;     /* bytes of an element */
    int64_t offset;
    uint32_t begin, end; /* annotated range of shared memory; 0, 0: no annotation */
} lilac_sim_access;

#define LILAC_SIM_NONE UINT32_MAX
enum { LILAC_SIM_BULK_BYTES = 16 /* sizes and addresses of bulk copies are multiples of it */ };

/* The counter of a step, in addition to `issues`. */
enum { TALLY_OTHER, TALLY_SELECT, TALLY_PERMUTE };

typedef struct lilac_sim_step {
    uint8_t kind;
    uint8_t issues;      /* warp instructions that a warp issues: 0 or 1 */
    uint8_t varies;      /* bit k: operand k may differ between threads; and see STEP_FLUSHED */
    uint8_t entry_bytes; /* of the result, for fill */
    uint8_t tally;
    uint8_t width[4]; /* bytes of an entry of a, b, c, out */
    bool fill;        /* copy the first entry of the result to all others */
    bool in_while;    /* of STEP_LOOP_NEXT: in a while loop */
    uint32_t n;
    uint32_t out, a, b, c;
    uint32_t target; /* step to go to */
    uint32_t
        access; /* index of lilac_sim_access; of a copy between values: to `access`, from `target` */
    lane_loop *loop;
    uint64_t immediate;
    const lilac_simt_instruction *source;
} lilac_sim_step;

/* Values that registers hold before the first step. */
typedef enum lilac_sim_preset_kind {
    PRESET_BITS, /* for the launch */
    PRESET_THREAD,
    PRESET_LANE,
    PRESET_WARP,
    PRESET_ELECTED, /* lane 0 */
    PRESET_BLOCK,   /* for each block; bits: dimension */
    PRESET_CTA
} lilac_sim_preset_kind;

typedef struct lilac_sim_preset {
    uint8_t kind;
    uint8_t entry_bytes;
    uint32_t out;
    uint64_t bits;
} lilac_sim_preset;

/* One of the kernel's programs. */
typedef struct lilac_sim_part {
    uint32_t first; /* step */
    uint32_t first_warp, end_warp;
} lilac_sim_part;

typedef struct lilac_sim_program {
    const lilac_simt_kernel *kernel;
    const lilac_arch *arch;
    uint32_t threads, warps; /* of a block */
    bool shared_atomics;
    bool copies;       /* has cp.async */
    bool wgmmas;       /* has wgmma */
    bool proxies;      /* has operations of the async proxy (proxies.h) */
    bool mbarriers;    /* has operations on mbarriers */
    bool async_clocks; /* writes of copies are ordered by mbarriers: see shared.h */
    bool partial;      /* has barriers that order only some of the warps of a cluster */
    bool parts_wait;   /* has named barriers, register budgets or several programs */
    lilac_sim_part *parts;
    uint32_t part_count;
    uint32_t most_parts; /* greatest number of programs that run at one time */
    lilac_sim_step *steps;
    uint32_t step_count, step_capacity;
    lilac_sim_access *accesses;
    uint32_t access_count, access_capacity;
    lilac_sim_preset *presets;
    uint32_t preset_count, preset_capacity;
    struct lilac_sim_matrix *matrices; /* multiply.h */
    uint32_t matrix_count, matrix_capacity;
    uint32_t scratch[4]; /* arrays of 8-byte entries: three operands and a result */
    uint64_t register_bytes;
} lilac_sim_program;

/* Decodes a verified kernel. False, with a diagnostic: the simulator does not support it. The
 * caller clears the program in both cases. */
LILAC_MUST_USE bool lilac_sim_program_init(lilac_sim_program *program, lilac_context *context,
                                           const lilac_sim_launch *launch);
void lilac_sim_program_clear(lilac_sim_program *program);

#endif
