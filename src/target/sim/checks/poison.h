/* Poison: the bits that depend on an integer division by zero, until they reach memory or control
 * flow.
 *
 * A division by zero does not trap on a device: its result is some number. Threads that hold
 * copies of other threads' elements, or elements that a mask excludes, may divide by zero. The
 * simulator therefore marks every bit of the result as poison, and traps only where poison affects
 * an observable effect: an address, predicate or value of global memory, an atomic's operand, the
 * address or predicate of a shared store, a branch, a loop's bounds, an assertion.
 *
 *     %q = div_s %a, %zero      all bits of %q are poison; its origin is this step, in this thread
 *     %s = select %m, %q, %x    poison where %m holds (or where %m is poison and %q, %x differ)
 *     st.global %p, %s, %m      traps where a thread with %m stores poison
 *
 * The bits of poison have the layout of the registers and of the shared memory that they describe
 * (planes), and follow the rules of Valgrind's Memcheck (Seward and Nethercote, USENIX 2005):
 * exact for moves and bit operations, bounded by the least and greatest possible operands for sums
 * and comparisons, the result of any other operation is poison if an operand is. Planes exist only
 * once a division by zero occurred, and a register array without poison is skipped.
 */
#ifndef LILAC_SIM_POISON_H
#define LILAC_SIM_POISON_H

#include "program.h"

struct lilac_sim_worker;
struct lilac_sim_active;

/* A cluster's poison. */
typedef struct lilac_sim_poison {
    bool live;                /* some register or shared byte may hold poison */
    bool shared_live;         /* some shared byte may */
    uint8_t *planes;          /* of the register files */
    uint32_t *origins;        /* of thread t of an array: at the array's first byte + t */
    uint8_t *dirty;           /* of 64 bytes of the register files, where arrays begin */
    uint8_t *shared;          /* plane of the cluster's shared memory */
    uint32_t *shared_origins; /* one a byte */
} lilac_sim_poison;

void lilac_sim_poison_clear(lilac_sim_poison *poison);
/* At the start of a cluster: no poison anywhere. */
void lilac_sim_poison_forget(struct lilac_sim_worker *worker);

/* Before a step, while poison is live: sets the poison of the step's results. False: a trap, since
 * the step would act on poison. */
LILAC_MUST_USE bool lilac_sim_poison_step(struct lilac_sim_worker *worker,
                                          const lilac_sim_step *step);
/* A division step in which some divisor is zero. */
void lilac_sim_poison_divide(struct lilac_sim_worker *worker, const lilac_sim_step *step);

/* An access to shared memory whose addresses are known and legal. A load's lanes with a poisoned
 * address or predicate are taken out of `lanes`: they read nothing. */
void lilac_sim_poison_shared(struct lilac_sim_worker *worker, const lilac_sim_step *step,
                             const lilac_sim_access *access, struct lilac_sim_active *lanes,
                             bool load);
/* One 16-bit half of a matrix word: register array, index of the half, thread, byte in memory. */
void lilac_sim_poison_half(struct lilac_sim_worker *worker, uint32_t array, uint32_t half,
                           uint32_t thread, uint64_t byte, bool load);
/* Shared bytes that a copy moves to global memory. False: a trap, since one is poison. */
LILAC_MUST_USE bool lilac_sim_poison_bytes(struct lilac_sim_worker *worker,
                                           const lilac_sim_step *step, uint32_t thread, uint64_t at,
                                           uint64_t size);
/* After a trap of an access whose address is poison: replaces it by a trap of the division. Always
 * false. */
bool lilac_sim_poison_blame(struct lilac_sim_worker *worker, const lilac_sim_step *step,
                            const lilac_sim_access *access);

/* ---- rules (poison_rules.c) ------------------------------------------------------------- */

/* An entry of a register and its bits of poison. */
typedef struct lilac_sim_mixed {
    uint64_t value, poison;
} lilac_sim_mixed;

/* The operation that a rule is for. */
typedef struct lilac_sim_operation {
    const lilac_simt_instruction *source;
    lilac_simt_type from, to; /* of the first operand (of a select: the second); of the result */
} lilac_sim_operation;

/* The poison of a pure operation's result. */
uint64_t lilac_sim_poison_rule(const lilac_sim_operation *operation,
                               const lilac_sim_mixed operands[3]);
/* Of a SIMT operation on two integers of 32 bits. */
uint64_t lilac_sim_poison_of_words(lilac_simt_opcode code, lilac_sim_mixed a, lilac_sim_mixed b);

#endif
