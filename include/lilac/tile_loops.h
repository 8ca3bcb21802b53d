/* tile_loops: loops and conditionals of tile IR: operands by name, edits, dependences.
 *
 * Control flow passes values on. A *phi* is a set of sources (operands) and of receivers (arguments
 * and results): a receiver has the value of the source from which control came.
 *
 *     %r = scf.for %i = %lower to %upper step %step iter_args(%a = %init) {
 *       scf.yield %next                                      sources init, next    receivers a, r
 *     }
 *     %r = scf.while (%a = %init) {                          sources init, next    receiver  a
 *       scf.condition(%c) %passed                            source  passed        receivers b, r
 *     } do { ^(%b):
 *       scf.yield %next
 *     }
 *     %r = scf.if %c { scf.yield %x } else { scf.yield %y }  sources x, y          receiver  r
 *
 * Carried value number i of a loop is its init i, its iteration argument i, what the loop yields as
 * value i for the next iteration, and in scf.for result i. Passed value number j of scf.while is
 * value j of scf.condition, argument j of the second region and result j.
 *
 * The functions expect a module that lilac_tile_verify accepts. A number out of range is an error
 * of the caller. Edits keep the operation in place, with its attributes and its locations: pointers
 * to it stay valid. Pointers to its results and operands do not where their number changes. After
 * an edit the ids of lilac_tile_number are out of date. An edit that can be impossible returns NULL
 * when it is done and otherwise the reason, as text; then nothing has changed.
 */
#ifndef LILAC_TILE_LOOPS_H
#define LILAC_TILE_LOOPS_H

#include <lilac/tile.h>

LILAC_BEGIN

/* ---- regions and branches --------------------------------------------------------------- */

/* The last operation of a region of one block; NULL: the region is empty or has more blocks. */
LILAC_API lilac_tile_op *lilac_tile_terminator(const lilac_tile_region *region);
/* Operand i of the terminator of a region of the operation, and its replacement. */
LILAC_API lilac_tile_value *lilac_tile_yielded(const lilac_tile_op *op, uint32_t region,
                                               uint32_t i);
LILAC_API void lilac_tile_set_yielded(lilac_tile_op *op, uint32_t region, uint32_t i,
                                      lilac_tile_value *value);
/* The first operand that is passed on: 3 for scf.for, 1 for scf.condition, 0 for scf.while and
 * scf.yield. */
LILAC_API uint32_t lilac_tile_first_passed(const lilac_tile_op *op);
/* The first operand that cf.br or cf.cond_br passes to the arguments of a successor. */
LILAC_API uint32_t lilac_tile_branch_first(const lilac_tile_op *branch, uint32_t successor);
/* The argument or result that receives the operand where it is passed on: the iteration argument
 * for an init and for what a loop yields, the result of scf.if for what its regions yield, the
 * argument of the second region for what scf.condition passes, the argument of a block for what a
 * branch passes. NULL: the use is another one. */
LILAC_API lilac_tile_value *lilac_tile_receiver(const lilac_tile_use *use);
LILAC_API bool lilac_tile_is_loop(const lilac_tile_op *op); /* scf.for or scf.while */
LILAC_API bool
lilac_tile_is_in_loop(const lilac_tile_op *op); /* in a region of one, at any depth */

/* ---- loops ------------------------------------------------------------------------------ */

/* scf.for. The bounds and the step have the type of the induction variable. */
LILAC_API lilac_tile_value *lilac_tile_lower_bound(const lilac_tile_op *loop);
LILAC_API lilac_tile_value *lilac_tile_upper_bound(const lilac_tile_op *loop);
LILAC_API lilac_tile_value *lilac_tile_step(const lilac_tile_op *loop);
LILAC_API void lilac_tile_set_lower_bound(lilac_tile_op *loop, lilac_tile_value *value);
LILAC_API void lilac_tile_set_upper_bound(lilac_tile_op *loop, lilac_tile_value *value);
LILAC_API void lilac_tile_set_step(lilac_tile_op *loop, lilac_tile_value *value);
LILAC_API lilac_tile_value *lilac_tile_induction_variable(const lilac_tile_op *loop);
/* The trip count of scf.for. False: the bounds and the step are not all constants, or the step is
 * not positive. */
LILAC_API bool lilac_tile_trip_count(const lilac_tile_op *loop, uint64_t *count);

/* scf.for and scf.while: carried values, see above. */
LILAC_API uint32_t lilac_tile_carried_count(const lilac_tile_op *loop);
LILAC_API lilac_tile_value *lilac_tile_init(const lilac_tile_op *loop, uint32_t i);
LILAC_API void lilac_tile_set_init(lilac_tile_op *loop, uint32_t i, lilac_tile_value *value);
LILAC_API lilac_tile_value *lilac_tile_iteration_argument(const lilac_tile_op *loop, uint32_t i);
/* Carried value i of the next iteration. */
LILAC_API lilac_tile_value *lilac_tile_next(const lilac_tile_op *loop, uint32_t i);
LILAC_API void lilac_tile_set_next(lilac_tile_op *loop, uint32_t i, lilac_tile_value *value);

/* scf.while: the condition, the values that scf.condition passes, and the arguments of the second
 * region that receive them. */
LILAC_API lilac_tile_value *lilac_tile_while_condition(const lilac_tile_op *loop);
LILAC_API lilac_tile_value *lilac_tile_passed(const lilac_tile_op *loop, uint32_t j);
LILAC_API lilac_tile_value *lilac_tile_passed_argument(const lilac_tile_op *loop, uint32_t j);

/* ---- phis ------------------------------------------------------------------------------- */

typedef struct lilac_tile_phi {
    uint32_t source_count, receiver_count;
    lilac_tile_use *sources[2]; /* operands of the operation or of its regions' terminators */
    lilac_tile_value *receivers[2];
} lilac_tile_phi;

/* The phis of scf.for, scf.while (the carried values, then the passed values) and scf.if; 0 for
 * other operations. */
LILAC_API uint32_t lilac_tile_phi_count(const lilac_tile_op *op);
LILAC_API lilac_tile_phi lilac_tile_phi_get(const lilac_tile_op *op, uint32_t i);

/* Removes phis: operands of the operation and of its regions' terminators, arguments, results. A
 * receiver of a removed phi may be used as a source of removed phis of this operation only. The
 * reason otherwise: "the argument is used" or "the result is used". */
LILAC_API LILAC_MUST_USE const char *lilac_tile_remove_phis(lilac_tile_module *module,
                                                            lilac_tile_op *op, const bool *removed);
/* Adds carried values to scf.for or scf.while, behind those that it has. They keep their inits
 * until lilac_tile_set_next changes that; scf.while passes them on too.
 *
 *     %r = scf.for … iter_args(%a = %x) {           %r:2 = scf.for … iter_args(%a = %x, %b = %y) {
 *       scf.yield %n                         →        scf.yield %n, %b
 *     }                                             }                                           */
LILAC_API void lilac_tile_add_carried(lilac_tile_module *module, lilac_tile_op *loop,
                                      uint32_t count, lilac_tile_value *const *inits);
/* Adds results to scf.if, behind those that it has: what each region yields for them. A missing
 * else region is made. */
LILAC_API void lilac_tile_add_if_results(lilac_tile_module *module, lilac_tile_op *op,
                                         uint32_t count, lilac_tile_value *const *then_values,
                                         lilac_tile_value *const *else_values);

/* ---- copies ----------------------------------------------------------------------------- */

/* A mapping of values. What it has no entry for is mapped to itself. */
typedef struct lilac_tile_mapping lilac_tile_mapping;
LILAC_API lilac_tile_mapping *lilac_tile_mapping_create(void);
LILAC_API void lilac_tile_mapping_destroy(lilac_tile_mapping *mapping);
LILAC_API void lilac_tile_map(lilac_tile_mapping *mapping, const lilac_tile_value *value,
                              lilac_tile_value *to);
LILAC_API lilac_tile_value *lilac_tile_mapped(const lilac_tile_mapping *mapping,
                                              lilac_tile_value *value);
/* A deep copy, detached, whose operands are mapped. The mapping gets the results and all values
 * inside. lilac_tile_clone is the same with an empty mapping. */
LILAC_API lilac_tile_op *lilac_tile_clone_mapped(lilac_tile_module *module, const lilac_tile_op *op,
                                                 lilac_tile_mapping *mapping);
/* Copies all operations of a block but the terminator, and inserts them before `place`, which may
 * be that terminator. Map the arguments of the block first; afterwards lilac_tile_mapped of what
 * the terminator passes on is what the copy computes.
 *
 *     { ^(%a):                                      with a ↦ x:
 *       %b = arith.addi %a, %c               →        %b' = arith.addi %x, %c
 *       scf.yield %b }                                                           b ↦ b'         */
LILAC_API void lilac_tile_clone_body(lilac_tile_module *module, const lilac_tile_block *block,
                                     lilac_tile_mapping *mapping, lilac_tile_op *place);

/* ---- peeling and unrolling of scf.for --------------------------------------------------- */

/* Puts the first `count` iterations before the loop. Each is conditional:
 *
 *                                                   %c = arith.cmpi slt, %l, %u
 *     %r = scf.for %i = %l to %u step %s            %p:2 = scf.if %c {
 *         iter_args(%a = %x) {                        body with i ↦ l, a ↦ x
 *       body                                 →        scf.yield %n', min(%l + %s, %u)
 *       scf.yield %n                                } else { scf.yield %x, %l }
 *     }                                             %r = scf.for %i = %p#1 to %u step %s
 *                                                       iter_args(%a = %p#0) { … }
 *
 * The sum of the induction variable and the step cannot overflow: it is used only where it is below
 * the upper bound. Where the trip count is known the iterations need no condition; if it is `count`
 * at most, the loop is removed, and *removed says so. Cost: linear in the size of the copies.
 * Reason: "scf.while has no induction variable". */
LILAC_API LILAC_MUST_USE const char *lilac_tile_peel_first(lilac_tile_module *module,
                                                           lilac_tile_op *loop, uint32_t count,
                                                           bool *removed);
/* Puts the last iteration behind the loop. Its results are the loop's.
 *
 *     %r = scf.for %i = %l to %u step 2             %last = %l + (%u - %l - 1) / 2 * 2
 *         iter_args(%a = %x) {                      %q = scf.for %i = %l to %last step 2
 *       body                                 →          iter_args(%a = %x) { … }
 *       scf.yield %n                                %r = scf.if %l < %u { body with i ↦ last, a ↦ q
 *     }                                                 scf.yield %n' } else { scf.yield %q }
 *
 * Where the trip count is known the iteration needs no condition; a loop of one iteration is
 * removed, and *removed says so. A loop that is known not to run stays as it is. Reasons:
 * "scf.while has no induction variable", "the step is not a positive constant". */
LILAC_API LILAC_MUST_USE const char *lilac_tile_peel_last(lilac_tile_module *module,
                                                          lilac_tile_op *loop, bool *removed);
/* A known trip count of `factor` at most: the iterations in sequence, and the loop is removed.
 * Otherwise a loop whose iterations are `factor` of the old ones, and a loop for the iterations
 * that remain:
 *
 *     %r = scf.for %i = %l to %u step 1             %m = %l + (%u - %l) / 4 * 4
 *         iter_args(%a = %x) {                      %q = scf.for %i = %l to %m step 4
 *       body                                            iter_args(%a = %x) {
 *       scf.yield %n                                  body; body with i ↦ i + 1, a ↦ n; …
 *     }                                      →        scf.yield %n'''
 *                                                   }
 *                                                   %r = scf.for %i = %m to %u step 1
 *                                                       iter_args(%a = %q) { body … }
 *
 * `loop` is the first of the two; where the factor divides a known trip count there is no second.
 * Reasons: "scf.while has no induction variable", "the factor is 0", "the step is not a positive
 * constant", "the factor times the step exceeds the type of the induction variable". */
LILAC_API LILAC_MUST_USE const char *
lilac_tile_unroll(lilac_tile_module *module, lilac_tile_op *loop, uint32_t factor, bool *removed);

/* ---- dependences ------------------------------------------------------------------------ */

/* The order of two operations matters where one uses a result of the other, or where their effects
 * conflict (lilac_tile_effects_conflict): one writes a resource that the other accesses. Operations
 * in regions count as the operation of the block that holds them. Addresses are not compared. */

/* May two operations of one block be exchanged, where nothing is between them? A terminator may not
 * be. */
LILAC_API bool lilac_tile_may_exchange(const lilac_tile_op *a, const lilac_tile_op *b);
/* Moves an operation before another one of its block. NULL: done. Otherwise the first operation on
 * the way with which it may not be exchanged; then nothing has changed. */
LILAC_API LILAC_MUST_USE const lilac_tile_op *lilac_tile_move_before(lilac_tile_op *op,
                                                                     lilac_tile_op *place);

/* Operation `to` of iteration n + distance must follow operation `from` of iteration n. */
typedef struct lilac_tile_dependence {
    uint32_t from, to;             /* numbers of operations of the body */
    uint32_t distance;             /* in iterations; 0: within one iteration */
    const lilac_tile_value *value; /* the result of `from` that `to` uses; NULL: effects */
    uint32_t resources;            /* of the effects: the resources that conflict */
} lilac_tile_dependence;

/* The direct dependences between the operations of a loop's body, sorted by `to`. */
typedef struct lilac_tile_dependences {
    uint32_t op_count; /* operations of the body in order, without the terminator */
    lilac_tile_op **ops;
    uint32_t count;
    lilac_tile_dependence *list;
} lilac_tile_dependences;

/* The dependences of scf.for, allocated on `arena`. Between two operations there is one through
 * values and one through effects at most: the one with the smallest distance, which implies the
 * others.
 *
 *     %a1 = arith.addi %x, %c      a1 → n, distance 0      %n is yielded as the next %x:
 *     %n  = arith.muli %a1, %d                             n → a1, distance 1
 *
 * A value that passes through k carried values has distance k. Conflicting effects have distance 0
 * in the order of the body, and distance 1 in the other order. Cost: quadratic in the operations
 * with effects, linear in the operands. */
LILAC_API void lilac_tile_find_dependences(lilac_tile_dependences *result, lilac_arena *arena,
                                           const lilac_tile_op *loop);
/* A schedule of a pipelined loop: operation k of iteration n executes at time n + stage[k]; at one
 * time, operations execute by ascending order[k] (NULL: in the order of the body). The first
 * dependence that the schedule violates; NULL: it is legal. */
LILAC_API const lilac_tile_dependence *
lilac_tile_find_violation(const lilac_tile_dependences *dependences, const uint32_t *stage,
                          const uint32_t *order);

LILAC_END

#endif
