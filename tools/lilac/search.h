/* lilac explain --search-schedules (search.c). */
#ifndef LILAC_SEARCH_H
#define LILAC_SEARCH_H

#include "launch.h"

/* What the command line says. The launch has the file, the arguments and the grid. */
typedef struct search_request {
    const launch_request *launch;
    const lilac_explain_options *options;
    bool json;
} search_request;

/* Prints the schedules that the loops with products can have, with predicted times. Small launches
 * whose buffers are given also run on the simulator; a schedule that gives other results than the
 * usual one is an error. Returns the exit status. */
int search_schedules(const search_request *request);

#endif
