/* A CUDA driver without a GPU. This header declares the functions that the fake libcuda exports
 * in addition to cuInit and the other functions of the driver. fake_cuda.c describes its
 * behaviour and its rules. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

/* Resets the driver to its initial state, then sets rules: "cuInit=100 devices=2". */
typedef void fake_cuda_reset_function(const char *rules);
/* Adds rules to those that are set. */
typedef void fake_cuda_rule_function(const char *rules);
/* The log: one line for each call since the last reset, for example "cuCtxSynchronize". Queries
 * are not logged. The line of a launch has all its arguments. */
typedef const char *fake_cuda_log_function(void);
/* Contexts, allocations, modules, streams and events that are alive. */
typedef int fake_cuda_alive_function(void);

#endif
