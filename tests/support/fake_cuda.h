/* A CUDA driver that has no GPU: what the tests' own libcuda exports beside cuInit and the others.
 * What it does and what the rules are stands in fake_cuda.c. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

/* Forgets everything, then sets rules: "cuInit=100 devices=2". */
typedef void fake_cuda_reset_function(const char *rules);
/* More rules, on top of those that there are. */
typedef void fake_cuda_rule_function(const char *rules);
/* A line for each call since the last reset but those that only ask: "cuCtxSynchronize", and of a
 * launch everything that it was given. */
typedef const char *fake_cuda_log_function(void);
/* Contexts, allocations, modules, streams and events that are alive. */
typedef int fake_cuda_alive_function(void);

#endif
