/* What the two walks of decoding share; see program.c. */
#ifndef LILAC_SIM_DECODER_H
#define LILAC_SIM_DECODER_H

#include "program.h"

typedef struct lilac_sim_value {
    uint32_t offset;   /* of its array */
    uint32_t defined;  /* number of the definition */
    uint32_t last_use; /* number after which the array is free */
    uint32_t next;     /* of the values that die at the same number */
    bool placed;
    bool varies; /* may differ between threads */
    bool fill;   /* uniform, and something per thread reads it */
} lilac_sim_value;

typedef struct lilac_sim_span {
    uint32_t begin, end;
} lilac_sim_span;

typedef struct lilac_sim_decoder {
    lilac_context *context;
    const lilac_sim_launch *launch;
    const lilac_simt_kernel *kernel;
    lilac_sim_program *program;
    lilac_sim_value *values;
    uint32_t *ends;        /* ends[number where a region operation begins] */
    uint32_t *dying;       /* first value that dies at a number; 0: none */
    uint32_t numbers;      /* instructions and ends of regions */
    uint32_t number;       /* of the walk */
    lilac_sim_span *loops; /* around the place of the walk */
    uint32_t loop_depth;   /* of the walk */
    uint32_t depth;        /* deepest */
    uint32_t whiles;       /* while loops around the place of the walk */
    uint32_t threads;      /* of the program around the place of the walk, or of the block */
    bool changed;
    bool failed;
    uint32_t *free_arrays[4]; /* by size class */
    uint32_t free_count[4], free_capacity[4];
} lilac_sim_decoder;

/* First walk: fills values (but offsets), ends, dying and loops, which are the decoder's to free.
 */
void lilac_sim_survey(lilac_sim_decoder *decoder);

#endif
