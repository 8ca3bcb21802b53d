/* driver: the whole pipeline as one table of passes.
 *
 *   text ─read→ tile ─simplify, assign_layouts→ tile ─lower→ simt ─fold cse licm dce→ simt ─ptx→
 * text
 *
 * A pass has one name everywhere: its file, its function, its row in the table (src/driver/
 * pipeline.c) and on the command line. Nothing here prints: what a caller wants to see goes into
 * texts of the caller's, errors into the context.
 *
 * Any program above the library may use it; no room of the library does.
 */
#ifndef LILAC_DRIVER_H
#define LILAC_DRIVER_H

#include <lilac/ptx.h>
#include <lilac/simt.h>
#include <lilac/tile.h>

LILAC_BEGIN

/* What the program is after a pass. A stage ends with its last pass in the table. */
typedef enum lilac_stage {
    LILAC_STAGE_SOURCE, /* tile IR as it was read, verified */
    LILAC_STAGE_TILE,   /* tile IR with layouts, as it is lowered */
    LILAC_STAGE_SIMT,   /* SIMT IR; at the end of the stage, what the PTX is written from */
    LILAC_STAGE_TEXT,   /* PTX */
    LILAC_STAGE_COUNT
} lilac_stage;

typedef struct lilac_options {
    /* A module with layouts says what it was made for ("ttg.num-warps", "ttg.num-ctas",
     * ttg.target); what is given here must agree with that. Not given, NULL and 0, is what the
     * module says, or else sm_90a, 4 warps, 1 block a cluster. */
    lilac_target target;
    const char *kernel;       /* compile this kernel and what it calls only; NULL: the module */
    bool verify;              /* check the IR after each pass, not only what was read */
    const char *print_after;  /* a pass's name, "all", or NULL */
    lilac_text *printed;      /* where print_after goes; not NULL when that is given */
    lilac_stage stop_at;      /* run the passes of this stage and of those before it */
    const char *stop_after;   /* run nothing after the last pass of this name, or NULL */
    const char *skip;         /* passes that are not run, "licm,schedule", or NULL */
    bool comments, line_info; /* of the PTX */
    uint32_t newest_ptx;      /* PTX ISA version, times ten, that may be written at most; 0: any */
    bool no_contraction;      /* no fused multiply-add is made of the source's products and sums */
} lilac_options;

/* No device, warps or blocks given, 3 stages, comments and line info on; up to PTX. */
LILAC_API void lilac_options_init(lilac_options *options);

typedef struct lilac_pass_statistics {
    const char *name;
    double seconds;      /* of the pass alone: neither its verification nor its printing */
    uint32_t operations; /* of the IR after it: tile operations or SIMT instructions */
} lilac_pass_statistics;

#define LILAC_MAX_PASSES 32

/* What one compilation made. The tile and SIMT modules stay readable until clear. */
typedef struct lilac_compilation {
    lilac_context *context;
    lilac_tile_module *tile; /* NULL until it was read */
    lilac_simt_module *simt; /* NULL until it was lowered */
    lilac_text ptx;
    uint32_t pass_count; /* passes that ran, the one that failed included */
    lilac_pass_statistics passes[LILAC_MAX_PASSES]; /* of a longer selection, the first ones */
    lilac_target target; /* what it was compiled for; what was given, until it was read */
    uint32_t malformed;  /* the source with the program that a pass left malformed; 0: none did */
} lilac_compilation;

/* Compiles a registered source up to PTX. False with diagnostics in the context; whatever was made
 * before the error is still there. Call clear in either case. Ids of its own: `unknown-pass`
 * (print_after, stop_after or skip names none), `pass-order` (a pass that makes the IR of a later one
 * was skipped), `invalid-target` (a launch shape that the device does not
 * have, or a module that is for another one or another device), `no-kernel` (no public function
 * with a body), `unknown-kernel` (none of the name that the options give). Those of
 * lilac_ptx_write: `unsupported-on-target`, `ptx-version`. */
LILAC_API LILAC_MUST_USE bool lilac_compile(lilac_compilation *result, lilac_context *context,
                                            uint32_t source, const lilac_options *options);
/* Which passes lilac_run_passes runs. */
typedef struct lilac_pass_selection {
    lilac_stage after;  /* the text is a program of this stage: those of the stages after it */
    const char *passes; /* or, when not NULL, exactly these in this order: "fold,cse,fold" */
} lilac_pass_selection;

/* Some passes of the pipeline on the text of tile IR or SIMT IR, which starts with "simt.module":
 * the text is read and verified, then the selected passes run under the same options as in
 * lilac_compile; stop_at and stop_after apply to a selection by stage. SIMT text has no tile
 * module: result->tile is NULL then. More ids: `pass-order` (a pass is for another IR than the
 * program is), `invalid-target` (SIMT text that is for another device). */
LILAC_API LILAC_MUST_USE bool lilac_run_passes(lilac_compilation *result, lilac_context *context,
                                               uint32_t source, const lilac_options *options,
                                               const lilac_pass_selection *selection);
/* Is the source SIMT text? */
LILAC_API bool lilac_source_is_simt(const lilac_context *context, uint32_t source);
/* Frees what a compilation owns; the context is the caller's. */
LILAC_API void lilac_compilation_clear(lilac_compilation *compilation);
/* The metadata a launcher needs and the statistics of each pass, as one JSON value on one line:
 *
 *   {"name": "softmax", "target": "sm_90a", "num_warps": 8, …, "parameters": [{"name": "o",
 *    "type": "!tt.ptr<f16>"}, …], "conversions": {"count": 1, "cycles": 138.5, "each": [{"source":
 *    ["kernels.py", 12, 8], "made_by": "tt.load", "wanted_by": "tt.store", "from":
 * "#ttg.linear<…>", "to": …, "bits": 16, "loops": 0, "kind": "shared", "cycles": 138.5}]},
 * "passes":
 * [{"name": "read", "seconds": 1.2e-05, "operations": 24}, …]}
 *
 * The name is the one in the PTX (lilac_ptx_kernel_name), by which a launcher finds the kernel. The
 * kernel is the module's first; others, when there are any, stand in "more_kernels". What is
 * not known yet (the shared bytes of a module that was not lowered) is null. Needs a module that
 * was read. */
LILAC_API void lilac_compilation_json(lilac_text *out, const lilac_compilation *compilation,
                                      const lilac_options *options);
/* Names of the passes, in order; NULL past the end. A pass that runs twice is listed twice. */
LILAC_API const char *lilac_pass_name(uint32_t index);
/* The stage of the pass at that index. */
LILAC_API lilac_stage lilac_pass_stage(uint32_t index);

/* ---- the passes of one stage, without the rest of the pipeline ---------------------------- */

/* All passes on tile IR that come after `verify`, in order: the module is then ready for
 * lilac_lower. False after diagnostics. */
LILAC_API LILAC_MUST_USE bool lilac_run_tile_passes(lilac_tile_module *module,
                                                    const lilac_target *target);
/* All passes on SIMT IR, in order, on every kernel: the module is then what lilac_ptx_write and the
 * simulator are given for a compiled kernel. */
LILAC_API void lilac_run_simt_passes(lilac_simt_module *module);

LILAC_END

#endif
