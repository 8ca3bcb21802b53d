/* A conversion between two tensor types of the command line: planned, generated, simulated. */
#ifndef LILAC_CONVERSION_H
#define LILAC_CONVERSION_H

#include "plan_check.h"
#include "types.h"

/* The options of a plan. */
typedef struct conversion_device {
    const lilac_arch *arch; /* NULL: a device that has the first type's lanes */
    uint32_t
        vector_bytes; /* a thread's widest access, and no matrix instructions; 0: all there is */
} conversion_device;

typedef struct conversion {
    const type_pair *types;
    lilac_plan_conversion plan;
    lilac_simt_module *module; /* a kernel that carries it out and nothing else */
    plan_check checked;
} conversion;

/* False with diagnostics. Clear in either case. */
bool conversion_make(conversion *c, lilac_context *context, const type_pair *types,
                     const lilac_plan_options *options, const conversion_device *device);
/* Runs the kernel. False if the simulation differs from the plan; standard error has the report. */
bool conversion_check(conversion *c, lilac_context *context);
/* The passes that compiled kernels go through, on its kernel. */
void conversion_improve(conversion *c);
void conversion_clear(conversion *c);
/* Reads --scratch (NULL: absent). Returns -1, or STATUS_USAGE after a report. */
int conversion_scratch(const subcommand *command, lilac_plan_options *options, const char *bytes);
/* Checks --vector. Returns -1, or STATUS_USAGE after a report. */
int conversion_vector_check(const subcommand *command, const conversion_device *device);
/* Checks the scope and answers the pairs of types that the operands name (pairs_run). */
int conversion_pairs_run(const subcommand *command, const string_list *operands, type_scope *scope,
                         pair_answer *answer, void *data);

#endif
