/* The planes of poison in registers, and the checks that trap (poison.c). */
#ifndef LILAC_SIM_POISON_PLANES_H
#define LILAC_SIM_POISON_PLANES_H

#include "memory/access.h"

/* ---- planes ----------------------------------------------------------------------------- */
/* Allocates the planes of the registers. They need no initial value: only dirty arrays are read. */
void lilac_sim_poison_enable(lilac_sim_worker *w);
/* Allocates the plane of shared memory, if there is none yet. */
void lilac_sim_poison_enable_shared(lilac_sim_worker *w);
/* The offset of an array in the planes of the cluster. */
size_t lilac_sim_plane_place(const lilac_sim_worker *w, uint32_t array);
/* The array may hold poison. */
bool lilac_sim_plane_is_dirty(const lilac_sim_worker *w, uint32_t array);
void lilac_sim_plane_set_dirty(lilac_sim_worker *w, uint32_t array, bool dirty);
/* Removes the poison of the threads in execution from the array. */
void lilac_sim_plane_clean(lilac_sim_worker *w, uint32_t array, uint32_t bytes);
/* The bits of poison in the entry of a thread. */
uint64_t lilac_sim_plane_read(const lilac_sim_worker *w, uint32_t array, uint32_t bytes,
                              uint32_t thread);
/* The origin of a poisoned entry: the step and the thread of the division. */
uint32_t *lilac_sim_plane_origin(lilac_sim_worker *w, uint32_t array, uint32_t thread);
/* Marks the array as dirty. A clean array becomes one without poison. */
uint8_t *lilac_sim_plane_open(lilac_sim_worker *w, uint32_t array, uint32_t bytes);
/* Sets the poison and the origin of an entry. */
void lilac_sim_plane_write(lilac_sim_worker *w, uint32_t array, uint32_t bytes, uint32_t thread,
                           uint64_t poison, uint32_t origin);
/* Copies the poison of the first entry to the others, if the step fills its result. */
void lilac_sim_plane_fill(lilac_sim_worker *w, const lilac_sim_step *s);

/* ---- traps ------------------------------------------------------------------------------ */

/* The origin of poison that this step creates in a thread. */
uint32_t lilac_sim_poison_new_origin(const lilac_sim_worker *w, const lilac_sim_step *step,
                                     uint32_t thread);
/* Poison reaches operand `what` of the step in a thread: a trap. Always false. */
bool lilac_sim_poison_trap(lilac_sim_worker *w, const lilac_sim_step *s, uint32_t thread,
                           uint32_t origin, const char *what);
/* Traps if one of the first n threads in execution is active and has poison in the array. array
 * LILAC_SIM_NONE: there is nothing to check. */
bool lilac_sim_poison_check(lilac_sim_worker *w, const lilac_sim_step *s, uint32_t array,
                            uint32_t bytes, uint32_t n, uint32_t predicate, const char *what);
/* Traps if the predicate, or the address of an active thread, is poison. */
bool lilac_sim_poison_check_places(lilac_sim_worker *w, const lilac_sim_step *s,
                                   const lilac_sim_access *access, uint32_t address_bytes);

/* ---- rows of the table ------------------------------------------------------------------ */

/* Each sets the poison of the step's results before the step is executed. False: a trap. */
bool lilac_sim_poison_pure(lilac_sim_worker *w, const lilac_sim_step *s);
bool lilac_sim_poison_shuffle(lilac_sim_worker *w, const lilac_sim_step *s);
bool lilac_sim_poison_exchange(lilac_sim_worker *w, const lilac_sim_step *s);
bool lilac_sim_poison_mma(lilac_sim_worker *w, const lilac_sim_step *s);
bool lilac_sim_poison_wgmma(lilac_sim_worker *w, const lilac_sim_step *s);
bool lilac_sim_poison_access(lilac_sim_worker *w, const lilac_sim_step *s);

#endif
