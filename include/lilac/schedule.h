/* schedule: how a loop with matrix products is executed, as data.
 *
 *     products=in_flight,rotate=no,copies=last,distance=2,buffers=3
 *
 *   key        values
 *   products   wait        an iteration waits for each product where it is issued
 *              overlap     where its result is used first, or at the end of its block
 *              in_flight   sums stay in flight over the back edge
 *              delay       products of what the iteration computed are executed in the next one
 *   rotate     what a product of the next iteration needs is computed in this one: no, yes
 *   copies     where an iteration starts its copies: first, behind the first product, or last
 *   distance   iterations between the start of a copy and its use
 *   buffers    of each ring
 *   late       what delayed products read is copied one iteration later: no, yes
 *   multicast  blocks of a cluster copy their shares of operands to each other: no, yes
 *   producer   a warp of its own starts the copies: no, yes
 *   registers  of each thread of the producer's warpgroup
 *   decouple   warps wait at mbarriers of the buffers and not for each other: no, yes
 *
 * A loop has two texts of this form as attributes. `lilac.schedule` is the record: the passes that
 * carry a schedule out write what they did (rotate_products, pipeline_loops, specialise_warps,
 * decouple_warps). A key that is missing there is `no`. `lilac.asked_schedule` is a request, which
 * these passes read: it decides the keys that it has, and the passes the other ones.
 *
 * The component engine has the functions; users: driver, explain, tools. */
#ifndef LILAC_SCHEDULE_H
#define LILAC_SCHEDULE_H

#include <lilac/tile.h>

LILAC_BEGIN

typedef enum lilac_schedule_key {
    LILAC_SCHEDULE_PRODUCTS,
    LILAC_SCHEDULE_ROTATE,
    LILAC_SCHEDULE_COPIES,
    LILAC_SCHEDULE_DISTANCE,
    LILAC_SCHEDULE_BUFFERS,
    LILAC_SCHEDULE_LATE,
    LILAC_SCHEDULE_MULTICAST,
    LILAC_SCHEDULE_PRODUCER,
    LILAC_SCHEDULE_REGISTERS,
    LILAC_SCHEDULE_DECOUPLE,
    LILAC_SCHEDULE_KEYS
} lilac_schedule_key;

/* Values of `products`, and of `copies`. */
enum {
    LILAC_PRODUCTS_WAIT,
    LILAC_PRODUCTS_OVERLAP,
    LILAC_PRODUCTS_IN_FLIGHT,
    LILAC_PRODUCTS_DELAY
};
enum { LILAC_COPIES_FIRST, LILAC_COPIES_BEHIND, LILAC_COPIES_LAST };

/* Some keys with their values; the values of the others are 0. */
typedef struct lilac_schedule {
    bool has[LILAC_SCHEDULE_KEYS];
    uint32_t values[LILAC_SCHEDULE_KEYS];
} lilac_schedule;

/* "products", "distance", … */
LILAC_API const char *lilac_schedule_key_name(lilac_schedule_key key);
/* The values of a key: from 0, or from 1 of a number, to this one. */
LILAC_API uint32_t lilac_schedule_most(lilac_schedule_key key);
/* Is the value of the key a number? */
LILAC_API bool lilac_schedule_is_number(lilac_schedule_key key);
/* Adds KEY=VALUE. Both must be valid. */
LILAC_API void lilac_schedule_add(lilac_schedule *schedule, lilac_schedule_key key, uint32_t value);
/* Reads "KEY=VALUE,…". False: `why` is one line that says what is wrong. */
LILAC_API LILAC_MUST_USE bool lilac_schedule_read(lilac_schedule *schedule, const char *text,
                                                  lilac_text *why);
/* Writes the text that reads back. */
LILAC_API void lilac_schedule_print(lilac_text *out, const lilac_schedule *schedule);
/* Are all keys of both the same, where those that one of them does not have count as 0? */
LILAC_API bool lilac_schedule_equal(const lilac_schedule *a, const lilac_schedule *b);

/* The record of a loop. False: it has none. */
LILAC_API bool lilac_schedule_of(lilac_schedule *schedule, const lilac_tile_op *loop);
/* Does the module's function have this as a loop with products: an innermost scf.for? */
LILAC_API bool lilac_schedule_is_for(const lilac_tile_op *loop);
/* Adds a request, "KEY=VALUE,…" or "N:KEY=VALUE,…", to the loops with products of a module that was
 * read, or to number N of them in the order of the text, from 1. False after a diagnostic at the
 * source (`invalid-schedule`). */
LILAC_API LILAC_MUST_USE bool lilac_schedule_ask(lilac_tile_module *module, uint32_t source,
                                                 const char *text);
/* After the passes on tile IR: does each loop with a request have the schedule, and is there a loop
 * for each of `count` requests? False after a diagnostic (`impossible-schedule`). */
LILAC_API LILAC_MUST_USE bool lilac_schedule_check(lilac_tile_module *module, uint32_t source,
                                                   uint32_t count, const char *const *requests);

LILAC_END

#endif
