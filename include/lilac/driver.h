/* driver: the whole pipeline as one table of passes.
 *
 *   text ─ read ─▶ tile IR ─ simplify, assign_layouts … ─▶ tile IR with layouts
 *        ─ lower ─▶ SIMT IR ─ fold, cse, licm, dce … ─▶ SIMT IR ─ ptx ─▶ text
 *
 * A pass has one name everywhere: its file, its function, its row in the table
 * (src/driver/pipeline.c) and on the command line. The driver prints nothing: it writes output into
 * texts of the caller and records errors in the context.
 *
 * Programs above the library and the component `runtime` use it.
 */
#ifndef LILAC_DRIVER_H
#define LILAC_DRIVER_H

#include <lilac/ptx.h>
#include <lilac/simt.h>
#include <lilac/tensor_map.h>
#include <lilac/tile.h>

LILAC_BEGIN

/* The form of the program after a pass. A stage ends with its last pass in the table. */
typedef enum lilac_stage {
    LILAC_STAGE_SOURCE, /* tile IR, read and verified */
    LILAC_STAGE_TILE,   /* tile IR with layouts, ready for lowering */
    LILAC_STAGE_SIMT,   /* SIMT IR; at the end of the stage, PTX is written from it */
    LILAC_STAGE_TEXT,   /* PTX */
    LILAC_STAGE_COUNT
} lilac_stage;

/* A layout for the operation of a line, to be compared with the one that the engine chooses. */
typedef struct lilac_forced_layout {
    const char *file;   /* of the user's program; NULL: the text that is compiled */
    uint32_t line;      /* of an access to global memory, a reduction, a scan or a gather */
    const char *layout; /* "#ttg.blocked<{…}>" */
} lilac_forced_layout;

/* A promise about a parameter, as tt.divisibility makes it: a pointer is a multiple of `divisor`
 * bytes, an integer one of `divisor`. */
typedef struct lilac_assumed_divisor {
    const char *parameter;
    uint32_t divisor; /* a power of two */
} lilac_assumed_divisor;

typedef struct lilac_options {
    /* The attributes of a module with layouts ("ttg.num-warps", "ttg.num-ctas", ttg.target) must
     * agree with the fields given here. A field that is NULL or 0 is that of the module, or, if the
     * module has none: sm_90a, 4 warps, 1 block per cluster. */
    lilac_target target;
    const char *kernel;       /* compile only this kernel and its callees; NULL: the module */
    bool verify;              /* check the IR after each pass, not only the source */
    const char *print_after;  /* a pass's name, "all", or NULL */
    lilac_text *printed;      /* the output of print_after; not NULL if that is not NULL */
    lilac_stage stop_at;      /* run the passes of this stage and of those before it */
    const char *stop_after;   /* stop after the last pass of this name, or NULL */
    const char *skip;         /* the passes to skip, such as "licm,schedule", or NULL */
    bool number_operations;   /* before lowering: see lilac_operation_number */
    bool comments, line_info; /* of the PTX */
    uint32_t newest_ptx;      /* the newest PTX ISA version allowed, times ten; 0: any */
    const lilac_forced_layout *forced; /* `forced_count` of them */
    uint32_t forced_count;
    const lilac_assumed_divisor *divisors; /* `divisor_count` of them */
    uint32_t divisor_count;
    const char *const *schedules; /* `schedule_count` requests for loops with products: see
                                     lilac_schedule_ask */
    uint32_t schedule_count;
    bool no_contraction; /* do not contract products and sums to fused multiply-adds */
    struct lilac_lowered_plans *plans; /* of the operations, appended (lower.h); or NULL */
    bool keep_subnormals; /* f32 exp2, sqrt and rsqrt do not flush subnormals to zero */
} lilac_options;

/* Sets the defaults: no device, warps or blocks given, 3 stages, comments and line info on, all
 * passes up to PTX. */
LILAC_API void lilac_options_init(lilac_options *options);

typedef struct lilac_pass_statistics {
    const char *name;
    double seconds;      /* of the pass, without verification and printing */
    uint32_t operations; /* in the IR after it: tile operations or SIMT instructions */
} lilac_pass_statistics;

#define LILAC_MAX_PASSES 96

/* The results of one compilation. The tile and SIMT modules are valid until
 * lilac_compilation_clear. */
typedef struct lilac_compilation {
    lilac_context *context;
    lilac_tile_module *tile; /* NULL until it was read */
    lilac_simt_module *simt; /* NULL until it was lowered */
    lilac_text ptx;
    uint32_t pass_count;                            /* passes that ran, including one that failed */
    lilac_pass_statistics passes[LILAC_MAX_PASSES]; /* the first ones, if more ran */
    lilac_target target;       /* completed when the source is read; before, as given */
    uint32_t asked_warps;      /* the target's warps before the pass choose_warps */
    lilac_reason warps_reason; /* if that chose another number: why */
    uint32_t malformed; /* a source with the program after a pass that left it malformed; 0: none */
} lilac_compilation;

/* Compiles a registered source up to PTX. False with diagnostics in the context; the results of the
 * passes before the error remain. Call lilac_compilation_clear in either case. Its own ids:
 * `unknown-pass` (print_after, stop_after or skip names none), `pass-order` (a skipped pass
 * produces the IR of a later one), `invalid-target` (a launch shape that the device does not have,
 * or a module for another launch shape or device), `no-kernel` (no public function has a body),
 * `unknown-kernel` (no kernel has the name that the options give), `forced-layout` (a layout of the
 * options is not one of the tensor, or no operation of its line chooses a layout),
 * `unknown-argument` (no parameter has the name of an assumed divisor), `invalid-schedule` (a
 * schedule of the options is malformed, or no loop is one that it is for), `impossible-schedule`
 * (a loop cannot have the schedule that is asked for). Those of lilac_ptx_write:
 * `unsupported-on-target`, `ptx-version`. */
LILAC_API LILAC_MUST_USE bool lilac_compile(lilac_compilation *result, lilac_context *context,
                                            uint32_t source, const lilac_options *options);
/* Which passes lilac_run_passes runs. */
typedef struct lilac_pass_selection {
    lilac_stage after;  /* the text is a program of this stage: run the stages after it */
    const char *passes; /* if not NULL: run exactly these, in this order: "fold,cse,fold" */
} lilac_pass_selection;

/* Runs some passes of the pipeline on the text of tile IR, or of SIMT IR, which starts with
 * "simt.module". The text is read and verified; then the selected passes run under the same
 * options as in lilac_compile. stop_at and stop_after apply to a selection by stage. For SIMT
 * text, result->tile is NULL. More ids: `pass-order` (a pass is for another IR than that of the
 * program), `invalid-target` (SIMT text for another device). */
LILAC_API LILAC_MUST_USE bool lilac_run_passes(lilac_compilation *result, lilac_context *context,
                                               uint32_t source, const lilac_options *options,
                                               const lilac_pass_selection *selection);
/* Is the source SIMT text? */
LILAC_API bool lilac_source_is_simt(const lilac_context *context, uint32_t source);
/* Frees a compilation, but not its context, which belongs to the caller. */
LILAC_API void lilac_compilation_clear(lilac_compilation *compilation);
/* The metadata for a launcher and the statistics of each pass, as one JSON value on one line:
 *
 *   {"name": "softmax", "target": "sm_90a", "num_warps": 8, …,
 *    "parameters": [{"name": "o", "type": "!tt.ptr<f16>"}, …],
 *    "conversions": {"count": 1, "cycles": 138.5, "each": [
 *      {"source": ["kernels.py", 12, 8], "made_by": "tt.load", "wanted_by": "tt.store",
 *       "from": "#ttg.linear<…>", "to": …, "bits": 16, "loops": 0, "kind": "shared",
 *       "cycles": 138.5}]},
 *    "accesses": …,
 *    "passes": [{"name": "read", "seconds": 1.2e-05, "operations": 24}, …]}
 *
 * A parameter that is the base pointer of a tensor descriptor also has "descriptor", its type; the
 * parameters of the shape, the strides and the padding follow (lilac_engine_expand_descriptors).
 * Before that pass, a descriptor is one parameter. The name is the one in the PTX
 * (lilac_ptx_kernel_name), by which a launcher finds the kernel. The kernel is the first one of the
 * module; "more_kernels" has the others, if there are any. A value that is not known yet is null,
 * such as the shared bytes of a module that was not lowered. The module must have been read. */
LILAC_API void lilac_compilation_json(lilac_text *out, const lilac_compilation *compilation,
                                      const lilac_options *options);
/* The tensor maps that the launcher of a compiled kernel makes, in the order of its parameters,
 * and the conditions of a launch, from attributes of the function:
 *
 *   of a parameter   lilac.launch_map = {base = 0 : i32, offset = [array<i64: 64, 3>],
 *                                        sizes = [[array<i64: 1, 3>], …], strides = [[…], …],
 *                                        pitch = 32 : i32, multiples = array<i64: 1, 32>}
 *   of the function  lilac.launch_conditions = array<i64: GRID X, Y, Z, PARAMETER, …>
 *                    lilac.launch_split = {iterations = [array<i64: 1, 5>, …], divisor = 64 : i32,
 *                                          clocks = 512 : i32, loads = 32768 : i32,
 *                                          bytes = 65536 : i32}
 *                    lilac.launch_least = {iterations = …, divisor = 64 : i32, least = 6 : i32}
 *                    lilac.launch_one_block
 *
 * A sum is a list of terms, and a term array<i64: FACTOR, PARAMETER, …> or, with quotients of
 * parameters, [array<i64: FACTOR, PARAMETER, …>, array<i64: PARAMETER, DIVISOR>, …]. The multiples, to
 * which sizes are rounded up, may be missing: 1. Without any map, the count is 0. The memory is the arena's.
 * False after an error of id `launch-map`: an attribute that the text of the module has is malformed. */
LILAC_API LILAC_MUST_USE bool lilac_launch_maps_get(lilac_launch_maps *result, lilac_arena *arena,
                                                    const lilac_tile_function *function);
/* The tile module as TTGIR text that Triton's parser and verifier accept: with the device and the
 * launch shape as attributes of the module, and named layouts (lilac_tile_name_layouts). This
 * changes the module. Of a compilation whose layouts are assigned. */
LILAC_API void lilac_compilation_ttgir(lilac_text *out, lilac_compilation *compilation,
                                       bool locations);
/* The number of the tile operation from which a SIMT instruction with this location was lowered, if
 * the options had number_operations; 0: there is none. The operations of a function are numbered
 * from 1 in the order of lilac_tile_walk. The pass `lower` wraps the location of each operation in
 * one that holds the number; file, line and column stay the same. */
LILAC_API uint32_t lilac_operation_number(const lilac_context *context, lilac_location location);
/* Names of the passes, in order; NULL past the end. A pass that runs twice is listed twice. */
LILAC_API const char *lilac_pass_name(uint32_t index);
/* The stage of the pass at that index. */
LILAC_API lilac_stage lilac_pass_stage(uint32_t index);

/* ---- the passes of one stage, without the rest of the pipeline ---------------------------- */

/* Runs all passes on tile IR after `verify`, in order. The module is then ready for lilac_lower.
 * False after diagnostics. */
LILAC_API LILAC_MUST_USE bool lilac_run_tile_passes(lilac_tile_module *module,
                                                    const lilac_target *target);
/* Runs all passes on SIMT IR, in order, on every kernel. The module is then the one that
 * lilac_ptx_write and the simulator get for a compiled kernel. */
LILAC_API void lilac_run_simt_passes(lilac_simt_module *module);

LILAC_END

#endif
