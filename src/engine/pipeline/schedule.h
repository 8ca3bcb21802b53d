/* What the passes that carry a schedule out share (schedule.c). Private to the engine. */
#ifndef LILAC_ENGINE_SCHEDULE_H
#define LILAC_ENGINE_SCHEDULE_H

#include <lilac/schedule.h>
#include <lilac/tile_loops.h>

/* The request of a loop; false: it has none. */
bool lilac_engine_asked(lilac_schedule *asked, const lilac_tile_op *loop);
/* Does the request of a loop have this value of the key? */
bool lilac_engine_is_asked(const lilac_tile_op *loop, lilac_schedule_key key, uint32_t value);
/* Starts the record of a loop that is pipelined. It keeps what rotate_products wrote; the text of a
 * module may have a record of an earlier compilation. */
void lilac_engine_begin_record(lilac_tile_module *module, lilac_tile_op *loop);
/* Writes a key into the record of a loop. */
void lilac_engine_record(lilac_tile_module *module, lilac_tile_op *loop, lilac_schedule_key key,
                         uint32_t value);

#endif
