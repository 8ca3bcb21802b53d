/* driver: the whole pipeline as one table of passes.
 *
 *   text ─read→ tile ─simplify, assign_layouts→ tile ─lower→ simt ─fold cse licm dce→ simt ─ptx→ text
 */
#ifndef LILAC_DRIVER_H
#define LILAC_DRIVER_H

#include <lilac/ptx.h>
#include <lilac/simt.h>
#include <lilac/tile.h>

LILAC_BEGIN

typedef struct lilac_options {
    lilac_target target;
    bool verify;             /* check the IR after each pass */
    const char *print_after; /* a pass's name, "all", or NULL */
    lilac_text *printed;     /* where print_after goes */
    bool comments, line_info; /* of the PTX */
} lilac_options;

/* sm_90a, 4 warps, 1 block a cluster, 3 stages, line info on. */
LILAC_API void lilac_options_init(lilac_options *options);

typedef struct lilac_pass_statistics {
    const char *name;
    double seconds;
    uint32_t operations; /* after it */
} lilac_pass_statistics;

#define LILAC_MAX_PASSES 32

/* What one compilation made. The tile and SIMT modules stay readable until clear. */
typedef struct lilac_compilation {
    lilac_context *context;
    lilac_tile_module *tile;
    lilac_simt_module *simt;
    lilac_text ptx;
    uint32_t pass_count;
    lilac_pass_statistics passes[LILAC_MAX_PASSES];
} lilac_compilation;

/* Compiles a registered source up to PTX. False with diagnostics in the context; whatever was made
 * before the error is still there. Call clear in either case. */
LILAC_API LILAC_MUST_USE bool lilac_compile(lilac_compilation *result, lilac_context *context,
                                            uint32_t source, const lilac_options *options);
LILAC_API void lilac_compilation_clear(lilac_compilation *compilation);
/* The metadata a launcher needs and the statistics of each pass, as one JSON value. */
LILAC_API void lilac_compilation_json(lilac_text *out, const lilac_compilation *compilation,
                                      const lilac_options *options);
/* Names of the passes, in order; NULL past the end. */
LILAC_API const char *lilac_pass_name(uint32_t index);

LILAC_END

#endif
