/* target/ptx: every operation on every type becomes PTX that ptxas accepts on every device, names
 * are legal and unique, control flow and parallel copies are right, and what a device lacks is
 * refused. */
#define _POSIX_C_SOURCE 200809L /* mkstemp, popen */

#include <lilac/ptx.h>

#include "support/assemble.h"
#include "support/test.h"

#include <ctype.h>
#include <unistd.h>

static const char *const devices[] = {"sm_80",   "sm_86",   "sm_89",   "sm_90",  "sm_90a",
                                      "sm_100a", "sm_103a", "sm_120a", "sm_121a"};
enum { DEVICES = sizeof devices / sizeof devices[0] };

static const lilac_simt_type all_types[] = {LILAC_SIMT_I1,    LILAC_SIMT_I8,    LILAC_SIMT_I16,
                                            LILAC_SIMT_I32,   LILAC_SIMT_I64,   LILAC_SIMT_F16,
                                            LILAC_SIMT_BF16,  LILAC_SIMT_F32,   LILAC_SIMT_F64,
                                            LILAC_SIMT_F16X2, LILAC_SIMT_BF16X2};
enum { TYPES = sizeof all_types / sizeof all_types[0] };

static bool is_float(lilac_simt_type type) {
    return lilac_simt_type_is_float(type);
}

static bool is_packed(lilac_simt_type type) {
    return type == LILAC_SIMT_F16X2 || type == LILAC_SIMT_BF16X2;
}

/* ---- building kernels ------------------------------------------------------------------- */

/* A kernel over one pointer; inputs are loads from it and outputs stores to it. */
typedef struct workshop {
    lilac_context *context;
    lilac_simt_module *module;
    lilac_simt_kernel *kernel;
    lilac_simt_builder builder;
    lilac_simt_value pointer;
    int64_t next; /* byte offset of the next input or output */
} workshop;

static void open_module(workshop *w, const char *device) {
    memset(w, 0, sizeof *w);
    w->context = lilac_context_create();
    w->module = lilac_simt_module_create(w->context, lilac_arch_find(device));
}

static void open_kernel(workshop *w, const char *name) {
    w->kernel = lilac_simt_kernel_create(w->module, lilac_intern_string(w->context, name), 1, 4, 1);
    w->kernel->parameters[0] =
        (lilac_simt_parameter){.name = lilac_intern_string(w->context, "data"),
                               .type = LILAC_SIMT_I64,
                               .is_pointer = true,
                               .alignment = 16};
    lilac_simt_builder_init(&w->builder, w->kernel);
    w->pointer = lilac_simt_parameter_value(&w->builder, 0);
    w->next = 0;
}

static void close_kernel(workshop *w) {
    lilac_simt_instruction end = {.code = LILAC_SIMT_OP_RETURN};
    (void)lilac_simt_build(&w->builder, &end, 0, NULL, 0, NULL);
    lilac_simt_builder_clear(&w->builder);
}

static void close_module(workshop *w) {
    lilac_simt_module_destroy(w->module);
    lilac_context_destroy(w->context);
}

static lilac_simt_value input(workshop *w, lilac_simt_type type) {
    lilac_simt_type loaded = type == LILAC_SIMT_I1 ? LILAC_SIMT_I32 : type;
    w->next += 8;
    lilac_simt_value value = lilac_simt_load(&w->builder, LILAC_SIMT_OP_LD_GLOBAL, loaded, 1,
                                             w->pointer, w->next, 0, NULL, NULL);
    if (type != LILAC_SIMT_I1) {
        return value;
    }
    lilac_simt_value zero = lilac_simt_constant(&w->builder, LILAC_SIMT_I32, 0);
    return lilac_simt_compare_values(&w->builder, LILAC_SIMT_NE, value, zero);
}

static void output(workshop *w, lilac_simt_value value) {
    if (lilac_simt_type_of(w->kernel, value) == LILAC_SIMT_I1) {
        value = lilac_simt_op1(&w->builder, LILAC_SIMT_OP_ZEXT, LILAC_SIMT_I32, value);
    }
    w->next += 8;
    lilac_simt_store(&w->builder, LILAC_SIMT_OP_ST_GLOBAL, 1, &value, w->pointer, w->next, 0, NULL);
}

static lilac_simt_value constant(workshop *w, lilac_simt_type type, uint64_t bits) {
    return lilac_simt_constant(&w->builder, type, bits);
}

/* One instruction on fresh inputs, its results stored. */
static lilac_simt_value apply(workshop *w, lilac_simt_instruction like, uint32_t operands,
                              const lilac_simt_type *operand_types, uint32_t results,
                              const lilac_simt_type *result_types) {
    lilac_simt_value values[64];
    for (uint32_t k = 0; k < operands; k++) {
        values[k] = input(w, operand_types[k]);
    }
    lilac_simt_value first =
        lilac_simt_build(&w->builder, &like, operands, values, results, result_types);
    for (uint32_t k = 0; k < results; k++) {
        output(w, first + k);
    }
    return first;
}

static bool write_text(lilac_text *text, const lilac_simt_module *module, bool comments,
                       bool line_info) {
    lilac_ptx_options options = {.comments = comments, .line_info = line_info};
    lilac_text_init(text);
    return lilac_ptx_write(text, module, &options);
}

/* ---- checking text ----------------------------------------------------------------------- */

static bool name_char(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* Is `name` among the registers that the entry around `use` declares, exactly once? */
static unsigned declarations(const char *entry, const char *end, const char *name, size_t length) {
    unsigned found = 0;
    for (const char *line = entry; line && line < end; line = strchr(line, '\n') + 1) {
        if (strncmp(line, "\t.reg ", 6) != 0) {
            continue;
        }
        const char *stop = strchr(line, ';');
        for (const char *at = strchr(line, '%'); at && at < stop; at = strchr(at + 1, '%')) {
            size_t declared = 1;
            while (name_char(at[declared])) {
                declared++;
            }
            if (at[declared] == '<') { /* %r<9> is %r0 … %r8 */
                unsigned long count = strtoul(at + declared + 1, NULL, 10);
                char *rest = NULL;
                if (length > declared && strncmp(at, name, declared) == 0 &&
                    isdigit((unsigned char)name[declared])) {
                    unsigned long number = strtoul(name + declared, &rest, 10);
                    found += rest == name + length && number < count;
                }
            } else if (declared == length && strncmp(at, name, length) == 0) {
                found++;
            }
        }
        line = stop;
    }
    return found;
}

/* Every register an entry uses is declared once; names are legal; one instruction a line. */
static void check_structure(const char *ptx) {
    for (const char *entry = strstr(ptx, ".visible .entry"); entry;) {
        const char *next = strstr(entry + 1, ".visible .entry");
        const char *end = next ? next : entry + strlen(entry);
        for (const char *line = strchr(entry, '{') + 2; line < end;) {
            const char *stop = strchr(line, '\n');
            if (line[0] == '\t' && line[1] != '.' && line[1] != '/') {
                unsigned semicolons = 0;
                for (const char *c = line; c < stop; c++) {
                    semicolons += *c == ';';
                    if (*c != '%' || strncmp(c, "%tid", 4) == 0 || strncmp(c, "%ctaid", 6) == 0 ||
                        strncmp(c, "%nctaid", 7) == 0 || strncmp(c, "%cluster", 8) == 0 ||
                        strncmp(c, "%nclusterid", 11) == 0) {
                        continue;
                    }
                    size_t length = 1;
                    while (name_char(c[length])) {
                        length++;
                    }
                    unsigned found = declarations(entry, end, c, length);
                    if (found != 1) {
                        print_error("%.*s is declared %u times\n", (int)length, c, found);
                    }
                    assert_int_equal(found, 1);
                }
                assert_true(semicolons == 1 || line[1] == '{' || line[1] == '}');
            }
            line = stop + 1;
        }
        entry = next;
    }
}

/* Writes twice (the same both times), checks the structure, assembles when there is a ptxas. */
static void check(workshop *w, const char *ptxas, const char *device) {
    lilac_text first, second;
    bool written = write_text(&first, w->module, true, true);
    for (const lilac_diagnostic *d = lilac_diagnostics(w->context); d; d = d->next) {
        print_error("%s\n", d->message);
    }
    assert_true(written);
    assert_true(write_text(&second, w->module, true, true));
    assert_string_equal(lilac_text_get(&first), lilac_text_get(&second));
    check_structure(lilac_text_get(&first));
    if (ptxas) {
        assert_true(assembles(ptxas, device, lilac_text_get(&first), "-v"));
    }
    lilac_text_clear(&first);
    lilac_text_clear(&second);
}

/* Runs `build` for each device; visibly skips the assembler's part when there is none. */
static void on_each_device(void (*build)(workshop *w, const lilac_arch *arch)) {
    const char *ptxas = find_ptxas();
    for (int k = 0; k < DEVICES; k++) {
        workshop w;
        open_module(&w, devices[k]);
        build(&w, w.module->arch);
        check(&w, ptxas, devices[k]);
        close_module(&w);
    }
    if (!ptxas) {
        print_message("skipped: no ptxas here, so nothing was assembled\n");
        skip();
    }
}

/* ---- every operation on every type ------------------------------------------------------ */

/* The types that an operation has on NVIDIA devices, beyond what its signature says. */
static bool has(lilac_simt_opcode code, lilac_simt_type type) {
    switch (code) {
    case LILAC_SIMT_OP_FDIV:
    case LILAC_SIMT_OP_FSQRT:
    case LILAC_SIMT_OP_FRSQRT:
    case LILAC_SIMT_OP_FRCP:
        return type == LILAC_SIMT_F32 || type == LILAC_SIMT_F64;
    case LILAC_SIMT_OP_FEXP2:
    case LILAC_SIMT_OP_FLOG2:
    case LILAC_SIMT_OP_FSIN:
    case LILAC_SIMT_OP_FCOS:
    case LILAC_SIMT_OP_FTANH:
    case LILAC_SIMT_OP_FTF32:
        return type == LILAC_SIMT_F32;
    case LILAC_SIMT_OP_OPAQUE:
        return type == LILAC_SIMT_I32 || type == LILAC_SIMT_I64;
    default:
        return true;
    }
}

/* Operands and results that are all of one type (popc and clz give an i32). */
static uint32_t plain_operands(const char *signature, bool *floats) {
    static const struct {
        const char *signature;
        uint32_t operands;
        bool floats;
    } plain[] = {{"i,i:i", 2, false}, {"i:i32", 1, false}, {"i:i", 1, false},
                 {"f:f", 1, true},    {"f,f:f", 2, true},  {"f,f,f:f", 3, true}};
    for (size_t k = 0; k < sizeof plain / sizeof plain[0]; k++) {
        if (strcmp(plain[k].signature, signature) == 0) {
            *floats = plain[k].floats;
            return plain[k].operands;
        }
    }
    return 0;
}

static void build_arithmetic(workshop *w, const lilac_arch *arch) {
    (void)arch;
    static const uint8_t flag_sets[] = {0, LILAC_SIMT_FTZ, LILAC_SIMT_APPROXIMATE,
                                        LILAC_SIMT_PROPAGATE_NAN | LILAC_SIMT_FTZ,
                                        LILAC_SIMT_APPROXIMATE | LILAC_SIMT_FTZ};
    unsigned applied = 0;
    for (uint32_t code = 1; code < LILAC_SIMT_OP_COUNT; code++) {
        const lilac_simt_op_info *info = lilac_simt_op_info_get((lilac_simt_opcode)code);
        bool floats = false;
        uint32_t operands = plain_operands(info->signature, &floats);
        if (!operands) {
            continue;
        }
        char name[64];
        snprintf(name, sizeof name, "%s_kernel", info->name);
        open_kernel(w, name);
        for (int t = 0; t < TYPES; t++) {
            lilac_simt_type type = all_types[t];
            if (is_float(type) != floats || !has((lilac_simt_opcode)code, type)) {
                continue;
            }
            lilac_simt_type types[3] = {type, type, type};
            lilac_simt_type result = strstr(info->signature, ":i32") ? LILAC_SIMT_I32 : type;
            for (size_t k = 0; k < (floats ? sizeof flag_sets : 1); k++) {
                lilac_simt_instruction like = {.code = (uint16_t)code, .flags = flag_sets[k]};
                apply(w, like, operands, types, 1, &result);
                applied++;
            }
            if (operands == 2) { /* a constant on either side */
                uint64_t bits = floats ? 0x4040404040404040 : 3;
                for (int side = 0; side < 2; side++) {
                    lilac_simt_value values[2];
                    values[side] = input(w, type);
                    values[!side] = constant(w, type, bits);
                    lilac_simt_instruction like = {.code = (uint16_t)code};
                    output(w, lilac_simt_build(&w->builder, &like, 2, values, 1, &type));
                }
            }
        }
        close_kernel(w);
    }
    assert_true(applied > 200);
}

static void arithmetic(void **state) {
    (void)state;
    on_each_device(build_arithmetic);
}

static void build_other_values(workshop *w, const lilac_arch *arch) {
    /* comparisons and selects */
    open_kernel(w, "compare_select");
    for (int t = 0; t < TYPES; t++) {
        lilac_simt_type type = all_types[t];
        lilac_simt_type select[3] = {LILAC_SIMT_I1, type, type};
        apply(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_SELECT}, 3, select, 1, &type);
        lilac_simt_value mixed[3] = {input(w, LILAC_SIMT_I1), constant(w, type, 1), input(w, type)};
        lilac_simt_instruction like = {.code = LILAC_SIMT_OP_SELECT};
        output(w, lilac_simt_build(&w->builder, &like, 3, mixed, 1, &type));
        for (unsigned kind = 0; kind < LILAC_SIMT_COMPARE_COUNT; kind++) {
            bool fits = kind <= LILAC_SIMT_GE || (kind >= LILAC_SIMT_UEQ) == is_float(type);
            if (is_packed(type) || !fits) {
                continue;
            }
            lilac_simt_type operands[2] = {type, type}, result = LILAC_SIMT_I1;
            apply(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_CMP, .detail = (uint8_t)kind},
                  2, operands, 1, &result);
            output(w, lilac_simt_compare_values(&w->builder, (lilac_simt_compare)kind,
                                                input(w, type), constant(w, type, 1)));
        }
    }
    close_kernel(w);

    /* conversions */
    open_kernel(w, "convert");
    for (int f = 0; f < TYPES; f++) {
        for (int t = 0; t < TYPES; t++) {
            lilac_simt_type from = all_types[f], to = all_types[t];
            if (is_packed(from) || is_packed(to)) {
                continue;
            }
            uint32_t from_bits = lilac_simt_type_bits(from), to_bits = lilac_simt_type_bits(to);
            lilac_simt_opcode codes[2] = {LILAC_SIMT_OP_NONE, LILAC_SIMT_OP_NONE};
            if (!is_float(from) && !is_float(to)) {
                if (from_bits < to_bits) {
                    codes[0] = LILAC_SIMT_OP_SEXT;
                    codes[1] = LILAC_SIMT_OP_ZEXT;
                } else if (from_bits > to_bits) {
                    codes[0] = LILAC_SIMT_OP_TRUNC;
                }
            } else if (!is_float(from)) {
                codes[0] = LILAC_SIMT_OP_S2F;
                codes[1] = LILAC_SIMT_OP_U2F;
            } else if (!is_float(to)) {
                codes[0] = LILAC_SIMT_OP_F2S;
                codes[1] = LILAC_SIMT_OP_F2U;
            } else if (from != to) {
                codes[0] = LILAC_SIMT_OP_FCVT;
            }
            for (int k = 0; k < 2; k++) {
                if (codes[k] == LILAC_SIMT_OP_NONE) {
                    continue;
                }
                unsigned roundings = codes[k] == LILAC_SIMT_OP_FCVT && from_bits >= to_bits ? 4 : 1;
                for (unsigned rounding = 0; rounding < roundings; rounding++) {
                    apply(w,
                          (lilac_simt_instruction){.code = (uint16_t)codes[k],
                                                   .detail = (uint8_t)rounding},
                          1, &from, 1, &to);
                }
            }
        }
    }
    close_kernel(w);

    /* bitcasts, packing */
    open_kernel(w, "repack");
    for (int f = 0; f < TYPES; f++) {
        for (int t = 0; t < TYPES; t++) {
            lilac_simt_type part = all_types[f], whole = all_types[t];
            uint32_t part_bits = lilac_simt_type_bits(part);
            uint32_t whole_bits = lilac_simt_type_bits(whole);
            if (part_bits == whole_bits) {
                apply(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_BITCAST}, 1, &part, 1,
                      &whole);
                continue;
            }
            uint32_t count = whole_bits / part_bits;
            if (count < 2 || part_bits < 8) {
                continue;
            }
            lilac_simt_type parts[64];
            for (uint32_t k = 0; k < count; k++) {
                parts[k] = part;
            }
            apply(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_PACK}, count, parts, 1, &whole);
            apply(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_UNPACK}, 1, &whole, count,
                  parts);
            if (count <= 4) {
                lilac_simt_value mixed[4];
                for (uint32_t k = 0; k < count; k++) {
                    mixed[k] = k ? input(w, part) : constant(w, part, 1);
                }
                lilac_simt_instruction like = {.code = LILAC_SIMT_OP_PACK};
                output(w, lilac_simt_build(&w->builder, &like, count, mixed, 1, &whole));
            }
        }
    }
    close_kernel(w);

    if (lilac_arch_has(arch, LILAC_HAS_F8_CONVERSIONS)) {
        open_kernel(w, "float8");
        static const lilac_scalar kinds[] = {LILAC_F8E4M3FN, LILAC_F8E5M2};
        lilac_simt_type words[2] = {LILAC_SIMT_F32, LILAC_SIMT_F32}, bytes = LILAC_SIMT_I16;
        lilac_simt_type pair = LILAC_SIMT_F16X2;
        for (int k = 0; k < 2; k++) {
            apply(w,
                  (lilac_simt_instruction){.code = LILAC_SIMT_OP_F8_PACK,
                                           .scalar = (uint8_t)kinds[k]},
                  2, words, 1, &bytes);
            apply(w,
                  (lilac_simt_instruction){.code = LILAC_SIMT_OP_F8_UNPACK,
                                           .scalar = (uint8_t)kinds[k]},
                  1, &bytes, 1, &pair);
        }
        close_kernel(w);
    }

    /* what the launch gives, exchanges, the rest */
    open_kernel(w, "launch");
    lilac_simt_type i32 = LILAC_SIMT_I32;
    static const lilac_simt_opcode specials[] = {LILAC_SIMT_OP_THREAD, LILAC_SIMT_OP_LANE,
                                                 LILAC_SIMT_OP_WARP, LILAC_SIMT_OP_CTA,
                                                 LILAC_SIMT_OP_SHARED_BASE};
    for (size_t k = 0; k < sizeof specials / sizeof specials[0]; k++) {
        apply(w, (lilac_simt_instruction){.code = (uint16_t)specials[k]}, 0, NULL, 1, &i32);
    }
    for (uint8_t axis = 0; axis < 3; axis++) {
        apply(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_BLOCK, .detail = axis}, 0, NULL, 1,
              &i32);
        apply(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_GRID, .detail = axis}, 0, NULL, 1,
              &i32);
    }
    static const lilac_simt_type words[] = {LILAC_SIMT_I32, LILAC_SIMT_F32, LILAC_SIMT_F16X2,
                                            LILAC_SIMT_BF16X2};
    for (int k = 0; k < 4; k++) {
        for (uint8_t kind = 0; kind < 4; kind++) {
            lilac_simt_instruction like = {.code = LILAC_SIMT_OP_SHUFFLE, .detail = kind};
            lilac_simt_type operands[2] = {words[k], i32};
            apply(w, like, 2, operands, 1, &words[k]);
            lilac_simt_value fixed[2] = {input(w, words[k]), constant(w, i32, 16)};
            output(w, lilac_simt_build(&w->builder, &like, 2, fixed, 1, &words[k]));
        }
    }
    lilac_simt_type i1 = LILAC_SIMT_I1, i64 = LILAC_SIMT_I64;
    lilac_simt_type three[3] = {i32, i32, i32};
    apply(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_BALLOT}, 1, &i1, 1, &i32);
    apply(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_PRMT}, 3, three, 1, &i32);
    apply(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_MULWIDE_S}, 2, three, 1, &i64);
    apply(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_MULWIDE_U}, 2, three, 1, &i64);
    apply(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_BARRIER}, 0, NULL, 0, NULL);
    apply(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_WARP_BARRIER}, 0, NULL, 0, NULL);
    apply(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_SCHEDULE_BARRIER}, 0, NULL, 0, NULL);
    lilac_simt_type addresses[2] = {i64, i64};
    apply(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_SCHEDULE_BARRIER}, 2, addresses, 0,
          NULL);
    apply(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_OPAQUE}, 1, &i32, 1, &i32);
    apply(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_OPAQUE}, 1, &i64, 1, &i64);
    apply(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_ASSERT, .text = "x > \"0\"\n"}, 1, &i1,
          0, NULL);
    apply(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_ASSERT}, 1, &i1, 0, NULL);
    close_kernel(w);
}

static void other_values(void **state) {
    (void)state;
    on_each_device(build_other_values);
}

/* ---- memory ----------------------------------------------------------------------------- */

static void build_memory(workshop *w, const lilac_arch *arch) {
    open_kernel(w, "memory");
    lilac_simt_builder *b = &w->builder;
    w->kernel->shared_bytes = 1024;
    lilac_simt_type i32 = LILAC_SIMT_I32;
    lilac_simt_instruction base = {.code = LILAC_SIMT_OP_SHARED_BASE};
    lilac_simt_value shared = lilac_simt_build(b, &base, 0, NULL, 1, &i32);
    for (int t = 1; t < TYPES; t++) {
        for (uint32_t count = 1; count <= 4; count *= 2) {
            lilac_simt_type type = all_types[t];
            uint32_t bytes = count * lilac_simt_type_bits(type) / 8;
            if (bytes > arch->vector_bytes) {
                continue;
            }
            lilac_simt_value p = input(w, LILAC_SIMT_I1), others[4];
            for (uint32_t k = 0; k < count; k++) {
                others[k] = k == 1 ? input(w, type) : constant(w, type, 7);
            }
            for (int space = 0; space < 2; space++) {
                lilac_simt_value address = space ? shared : w->pointer;
                lilac_simt_opcode ld = space ? LILAC_SIMT_OP_LD_SHARED : LILAC_SIMT_OP_LD_GLOBAL;
                lilac_simt_opcode st = space ? LILAC_SIMT_OP_ST_SHARED : LILAC_SIMT_OP_ST_GLOBAL;
                lilac_simt_value plain =
                    lilac_simt_load(b, ld, type, count, address, 0, 0, NULL, NULL);
                lilac_simt_value zeros =
                    lilac_simt_load(b, ld, type, count, address, 16, p, NULL, NULL);
                lilac_simt_value filled =
                    lilac_simt_load(b, ld, type, count, address, 32, p, others, NULL);
                lilac_simt_value first[3] = {plain, zeros, filled};
                for (int which = 0; which < 3; which++) {
                    lilac_simt_value values[4];
                    for (uint32_t k = 0; k < count; k++) {
                        values[k] = first[which] + k;
                    }
                    lilac_simt_store(b, st, count, values, address, 64 + 16 * which, which ? p : 0,
                                     NULL);
                }
                lilac_simt_store(b, st, count, others, address, 512, 0, NULL);
            }
        }
    }
    /* modifiers, alone and together; offsets at and beyond 32 bits */
    static const lilac_simt_cache loads[] = {LILAC_SIMT_CACHE_NONE, LILAC_SIMT_CACHE_CA,
                                             LILAC_SIMT_CACHE_CG, LILAC_SIMT_CACHE_CS,
                                             LILAC_SIMT_CACHE_CV};
    static const lilac_simt_cache stores[] = {LILAC_SIMT_CACHE_NONE, LILAC_SIMT_CACHE_WB,
                                              LILAC_SIMT_CACHE_CG, LILAC_SIMT_CACHE_CS,
                                              LILAC_SIMT_CACHE_WT};
    for (int k = 0; k < 5; k++) {
        for (uint8_t evict = 0; evict <= LILAC_SIMT_EVICT_LAST; evict++) {
            for (int is_volatile = 0; is_volatile < 2; is_volatile++) {
                lilac_simt_instruction like = {.cache = (uint8_t)loads[k],
                                               .evict = evict,
                                               .flags = is_volatile ? LILAC_SIMT_VOLATILE : 0};
                lilac_simt_value loaded = lilac_simt_load(
                    b, LILAC_SIMT_OP_LD_GLOBAL, LILAC_SIMT_F32, 4, w->pointer, -16, 0, NULL, &like);
                lilac_simt_value values[4] = {loaded, loaded + 1, loaded + 2, loaded + 3};
                like.cache = (uint8_t)stores[k];
                lilac_simt_store(b, LILAC_SIMT_OP_ST_GLOBAL, 4, values, w->pointer, 4096, 0, &like);
            }
        }
    }
    static const int64_t offsets[] = {INT32_MAX - 3, INT32_MIN, (int64_t)1 << 31,
                                      -((int64_t)1 << 40)};
    for (int k = 0; k < 4; k++) {
        lilac_simt_value v = lilac_simt_load(b, LILAC_SIMT_OP_LD_GLOBAL, i32, 1, w->pointer,
                                             offsets[k], 0, NULL, NULL);
        lilac_simt_store(b, LILAC_SIMT_OP_ST_GLOBAL, 1, &v, w->pointer, offsets[k], 0, NULL);
    }
    close_kernel(w);
}

static void memory(void **state) {
    (void)state;
    on_each_device(build_memory);
}

/* Matrices, groups of warps and other blocks: what the device has of them; the text of it. */
static void build_exchanges(workshop *w, const lilac_arch *arch) {
    bool clusters = lilac_arch_has(arch, LILAC_HAS_CLUSTERS);
    open_kernel(w, "exchanges");
    w->kernel->num_ctas = clusters ? 2 : 1;
    lilac_simt_builder *b = &w->builder;
    lilac_simt_type i32 = LILAC_SIMT_I32;
    lilac_simt_value shared = input(w, i32), p = input(w, LILAC_SIMT_I1);
    for (uint32_t count = 1; count <= 4; count *= 2) {
        for (int trans = 0; trans < 2; trans++) {
            lilac_simt_value loaded =
                lilac_simt_load_matrix(b, trans, LILAC_SIMT_BF16X2, count, shared, 16, NULL);
            lilac_simt_value values[4] = {constant(w, i32, 5), loaded, loaded, loaded};
            for (uint32_t k = 0; k < count; k++) {
                output(w, loaded + k);
            }
            for (uint32_t k = 1; k < 4; k++) {
                values[k] = input(w, i32);
            }
            if (!lilac_arch_has(arch, LILAC_HAS_STMATRIX)) {
                continue;
            }
            lilac_simt_store_matrix(b, trans, count, values, shared, -32, 0, NULL);
            lilac_simt_store_matrix(b, trans, count, values, shared, 0, p, NULL);
            lilac_simt_store_matrix(b, trans, count, values, shared, 0,
                                    constant(w, LILAC_SIMT_I1, 1), NULL);
        }
    }
    if (lilac_arch_has(arch, LILAC_HAS_CP_ASYNC)) {
        for (uint32_t size = 4; size <= 16; size *= 2) {
            lilac_simt_instruction cg = {.cache = size == 16 ? LILAC_SIMT_CACHE_CG : 0};
            lilac_simt_value bytes = input(w, i32);
            lilac_simt_copy_async(b, size, shared, 0, w->pointer, 0, 0, 0, &cg);
            lilac_simt_copy_async(b, size, shared, 32, w->pointer, -64, p, 0, NULL);
            lilac_simt_copy_async(b, size, shared, -48, w->pointer, 16, 0, bytes, &cg);
            lilac_simt_copy_async(b, size, shared, 16, w->pointer, 0, p, constant(w, i32, 3), NULL);
            lilac_simt_copy_async(b, size, shared, 0, w->pointer, 0, constant(w, LILAC_SIMT_I1, 0),
                                  0, NULL);
            lilac_simt_copy_commit(b);
        }
        lilac_simt_copy_wait(b, 2);
        lilac_simt_copy_wait(b, 0);
        lilac_simt_copy_wait_all(b);
    }
    lilac_simt_group_barrier(b, input(w, i32), 64);
    lilac_simt_group_barrier(b, constant(w, i32, 1), 64);
    if (clusters) {
        lilac_simt_value mapped = lilac_simt_map_shared(b, shared, input(w, i32));
        lilac_simt_cluster_barrier(b);
        lilac_simt_value values[4];
        for (uint32_t k = 0; k < 4; k++) {
            values[k] = input(w, LILAC_SIMT_F32);
        }
        lilac_simt_store(b, LILAC_SIMT_OP_ST_CLUSTER, 4, values, mapped, 16, p, NULL);
        lilac_simt_cluster_barrier(b);
        output(w, lilac_simt_load(b, LILAC_SIMT_OP_LD_CLUSTER, LILAC_SIMT_F32, 2, mapped, 0, p,
                                  NULL, NULL));
        output(w, lilac_simt_map_shared(b, shared, constant(w, i32, 1)));
        lilac_simt_cluster_barrier(b);
    }
    close_kernel(w);
}

static void exchanges(void **state) {
    (void)state;
    on_each_device(build_exchanges);
}

static void exchange_text(void **state) {
    static const char *const wanted[] = {
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r",
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r",
        "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r",
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%r",
        "cp.async.cg.shared.global [%r",
        "cp.async.ca.shared.global [%r",
        "-64], 4;\n",
        "+16], 16, %r",
        "], 8, 3;\n",
        "\tcp.async.commit_group;\n",
        "\tcp.async.wait_group 2;\n",
        "\tcp.async.wait_all;\n",
        "\tbar.sync %tr",
        "\tbar.sync 2, 64;\n",
        "mapa.shared::cluster.u32 %r",
        "\tbarrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;\n",
        "st.shared::cluster.v4.b32 [%r",
        "ld.shared::cluster.v2.b32 {%f"};
    workshop w;
    lilac_text text;
    (void)state;
    open_module(&w, "sm_90a");
    build_exchanges(&w, w.module->arch);
    assert_true(write_text(&text, w.module, false, false));
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++) {
        if (strstr(lilac_text_get(&text), wanted[k]) == NULL) {
            fail_msg("no '%s'", wanted[k]);
        }
    }
    lilac_text_clear(&text);
    close_module(&w);
}

/* ---- kernels' signatures ---------------------------------------------------------------- */

static void signature(void **state) {
    (void)state;
    static const struct {
        lilac_simt_type type;
        bool pointer;
        const char *declared;
    } parameters[] = {{LILAC_SIMT_I64, true, ".param .u64 .ptr .global .align 1 parameter_0,"},
                      {LILAC_SIMT_I1, false, ".param .u8 parameter_1,"},
                      {LILAC_SIMT_I8, false, ".param .u8 parameter_2,"},
                      {LILAC_SIMT_I16, false, ".param .u16 parameter_3,"},
                      {LILAC_SIMT_I32, false, ".param .u32 parameter_4,"},
                      {LILAC_SIMT_I64, false, ".param .u64 parameter_5,"},
                      {LILAC_SIMT_F16, false, ".param .align 2 .b8 parameter_6[2],"},
                      {LILAC_SIMT_BF16, false, ".param .align 2 .b8 parameter_7[2],"},
                      {LILAC_SIMT_F32, false, ".param .f32 parameter_8,"},
                      {LILAC_SIMT_F64, false, ".param .f64 parameter_9,"}};
    enum { COUNT = sizeof parameters / sizeof parameters[0] };
    const char *ptxas = find_ptxas();
    workshop w;
    open_module(&w, "sm_90a");
    w.kernel =
        lilac_simt_kernel_create(w.module, lilac_intern_string(w.context, "all"), COUNT, 8, 2);
    for (uint32_t k = 0; k < COUNT; k++) {
        w.kernel->parameters[k] =
            (lilac_simt_parameter){.name = lilac_intern_string(w.context, "odd name\n"),
                                   .type = parameters[k].type,
                                   .is_pointer = parameters[k].pointer,
                                   .alignment = 1};
    }
    lilac_simt_builder_init(&w.builder, w.kernel);
    w.pointer = lilac_simt_parameter_value(&w.builder, 0);
    for (uint32_t k = 0; k < COUNT; k++) {
        lilac_simt_value value = lilac_simt_parameter_value(&w.builder, k);
        output(&w, value);
    }
    lilac_simt_type i32 = LILAC_SIMT_I32;
    static const lilac_simt_opcode specials[] = {LILAC_SIMT_OP_BLOCK, LILAC_SIMT_OP_GRID,
                                                 LILAC_SIMT_OP_CTA};
    for (int k = 0; k < 3; k++) {
        apply(&w, (lilac_simt_instruction){.code = (uint16_t)specials[k]}, 0, NULL, 1, &i32);
    }
    close_kernel(&w);
    lilac_text text;
    assert_true(write_text(&text, w.module, false, false));
    const char *ptx = lilac_text_get(&text);
    const char *at = ptx;
    for (uint32_t k = 0; k < COUNT; k++) {
        at = strstr(at, parameters[k].declared);
        assert_non_null(at);
    }
    assert_non_null(strstr(at, ".param .u64 .ptr .global .align 1 global_scratch,\n"
                               "\t.param .u64 .ptr .global .align 1 profile_scratch\n)\n"
                               ".reqntid 256\n.explicitcluster\n.reqnctapercluster 2\n"));
    assert_non_null(strstr(ptx, ".target sm_90a\n.address_size 64\n"));
    assert_non_null(strstr(ptx, "%clusterid.x"));
    assert_non_null(strstr(ptx, "%nclusterid.x"));
    assert_non_null(strstr(ptx, "%cluster_ctarank"));
    assert_null(strstr(ptx, "global_smem"));
    lilac_text_clear(&text);
    check(&w, ptxas, "sm_90a");
    close_module(&w);
    if (!ptxas) {
        print_message("skipped: no ptxas here, so nothing was assembled\n");
        skip();
    }
}

/* ---- source lines and names ------------------------------------------------------------- */

static void lines_and_names(void **state) {
    (void)state;
    workshop w;
    open_module(&w, "sm_90a");
    open_kernel(&w, "names");
    lilac_location_info info = {.kind = LILAC_LOCATION_FILE,
                                .name = lilac_intern_string(w.context, "a \"b\"\\c.py"),
                                .line = 12,
                                .column = 7};
    w.builder.location = lilac_location_get(w.context, &info);
    lilac_simt_value values[4];
    static const char *const names[4] = {"mean", "mean", "x.y-z", "\xC3\xA9t\xC3\xA9"};
    for (int k = 0; k < 4; k++) {
        values[k] = input(&w, LILAC_SIMT_F32);
        w.kernel->values[values[k]].name = lilac_intern_string(w.context, names[k]);
    }
    for (int k = 0; k < 4; k++) {
        output(&w, values[k]);
    }
    close_kernel(&w);
    lilac_text text;
    assert_true(write_text(&text, w.module, true, true));
    const char *ptx = lilac_text_get(&text);
    assert_non_null(strstr(ptx, "\t.loc 1 12 7\n"));
    assert_non_null(strstr(ptx, "\t// a \"b\"\\c.py:12:7\n"));
    assert_non_null(strstr(ptx, "\t.file 1 \"a 'b'\\c.py\"\n"));
    char expected[64];
    for (int k = 0; k < 2; k++) {
        snprintf(expected, sizeof expected, "%%f%u_mean", values[k]);
        assert_non_null(strstr(ptx, expected));
    }
    snprintf(expected, sizeof expected, "%%f%u_x_y_z", values[2]);
    assert_non_null(strstr(ptx, expected));
    lilac_text_clear(&text);
    assert_true(write_text(&text, w.module, false, false));
    assert_null(strstr(lilac_text_get(&text), ".loc"));
    assert_null(strstr(lilac_text_get(&text), ".file"));
    assert_null(strstr(lilac_text_get(&text), "//"));
    lilac_text_clear(&text);
    const char *ptxas = find_ptxas();
    check(&w, ptxas, "sm_90a");
    close_module(&w);
    if (!ptxas) {
        print_message("skipped: no ptxas here, so nothing was assembled\n");
        skip();
    }
}

/* ---- control flow ----------------------------------------------------------------------- */

static void build_control(workshop *w, const lilac_arch *arch) {
    (void)arch;
    open_kernel(w, "control");
    lilac_simt_builder *b = &w->builder;
    static const lilac_simt_type types[] = {LILAC_SIMT_I32, LILAC_SIMT_I64};
    for (int t = 0; t < 2; t++) {
        lilac_simt_value step = constant(w, types[t], 2), zero = constant(w, types[t], 0);
        lilac_simt_instruction grid = {.code = LILAC_SIMT_OP_GRID};
        lilac_simt_type i32 = LILAC_SIMT_I32;
        lilac_simt_value upper = lilac_simt_build(b, &grid, 0, NULL, 1, &i32);
        if (t == 1) {
            upper = lilac_simt_op1(b, LILAC_SIMT_OP_ZEXT, LILAC_SIMT_I64, upper);
        }
        lilac_simt_value inits[3] = {input(w, LILAC_SIMT_F32), constant(w, LILAC_SIMT_F32, 0),
                                     input(w, LILAC_SIMT_I1)};
        lilac_simt_value variable;
        lilac_simt_instruction *loop =
            lilac_simt_loop_begin(b, zero, upper, step, 3, inits, &variable);
        lilac_simt_value next[3] = {variable + 2, variable + 1, variable + 3};
        lilac_simt_value half = lilac_simt_op2(b, LILAC_SIMT_OP_DIV_S, types[t], upper, step);
        lilac_simt_value early = lilac_simt_compare_values(b, LILAC_SIMT_LT, variable, half);
        lilac_simt_type result = LILAC_SIMT_F32;
        lilac_simt_instruction *branch = lilac_simt_if_begin(b, early, 1, &result);
        lilac_simt_value sum =
            lilac_simt_op2(b, LILAC_SIMT_OP_FADD, result, variable + 1, variable + 2);
        lilac_simt_if_else(b, branch, &sum);
        lilac_simt_value other = variable + 1;
        next[0] = lilac_simt_if_end(b, branch, &other);
        lilac_simt_value done = lilac_simt_loop_end(b, loop, next);
        for (int k = 0; k < 3; k++) {
            output(w, done + (uint32_t)k);
        }
        /* the results start a while loop */
        lilac_simt_value starts[2] = {done, done + 1}, before, after;
        lilac_simt_type passed_types[2] = {LILAC_SIMT_F32, LILAC_SIMT_F32};
        lilac_simt_instruction *again =
            lilac_simt_while_begin(b, 2, starts, 2, passed_types, &before);
        lilac_simt_value go = lilac_simt_compare_values(b, LILAC_SIMT_LT, upper, step);
        lilac_simt_value passed[2] = {before + 1, before};
        lilac_simt_while_condition(b, again, go, passed, &after);
        lilac_simt_value back[2] = {after + 1, after};
        lilac_simt_value last = lilac_simt_while_end(b, again, back);
        output(w, last);
        output(w, last + 1);
    }
    close_kernel(w);
}

static void control(void **state) {
    (void)state;
    on_each_device(build_control);
}

/* Where a register stands among those of the loop's carried values, or -1. */
static int register_index(char registers[][32], int count, const char *text, size_t length) {
    for (int k = 0; k < count; k++) {
        if (strlen(registers[k]) == length && strncmp(registers[k], text, length) == 0) {
            return k;
        }
    }
    return -1;
}

/* Random parallel copies: the moves at the end of a loop's body, run one after another, have the
 * effect of all at once. */
static void parallel_copies(void **state) {
    (void)state;
    enum { MOST = 12, TEMPORARIES = 16 };
    lilac_random random;
    lilac_random_seed(&random, 11);
    for (int round = 0; round < 400; round++) {
        int count = 1 + (int)lilac_random_below(&random, MOST);
        workshop w;
        open_module(&w, "sm_90a");
        open_kernel(&w, "copies");
        lilac_simt_builder *b = &w.builder;
        lilac_simt_value inits[MOST], variable, next[MOST];
        for (int k = 0; k < count; k++) {
            inits[k] = input(&w, LILAC_SIMT_I32);
        }
        lilac_simt_value outside = input(&w, LILAC_SIMT_I32);
        lilac_simt_value zero = constant(&w, LILAC_SIMT_I32, 0);
        lilac_simt_value ten = constant(&w, LILAC_SIMT_I32, 10);
        lilac_simt_value one = constant(&w, LILAC_SIMT_I32, 1);
        lilac_simt_instruction *loop =
            lilac_simt_loop_begin(b, zero, ten, one, (uint32_t)count, inits, &variable);
        int expected[MOST]; /* ≥ 0: that carried value; -1: outside; -2: the constant */
        for (int k = 0; k < count; k++) {
            int pick = (int)lilac_random_below(&random, (uint64_t)count + 2);
            expected[k] = pick < count ? pick : pick == count ? -1 : -2;
            next[k] = pick < count ? variable + 1 + (uint32_t)pick : pick == count ? outside : ten;
        }
        lilac_simt_value done = lilac_simt_loop_end(b, loop, next);
        for (int k = 0; k < count; k++) {
            output(&w, done + (uint32_t)k);
        }
        close_kernel(&w);
        lilac_text text;
        assert_true(write_text(&text, w.module, false, false));

        char registers[MOST + TEMPORARIES][32], outside_register[32], counter[32];
        int holds[MOST + TEMPORARIES]; /* what each holds: an initial index, or as `expected` */
        for (int k = 0; k < count; k++) {
            snprintf(registers[k], sizeof registers[k], "%%r%u", variable + 1 + (uint32_t)k);
            holds[k] = k;
        }
        snprintf(outside_register, sizeof outside_register, "%%r%u", outside);
        snprintf(counter, sizeof counter, "\tadd.s32 %%r%u,", variable);
        int known = count;
        const char *line = strstr(lilac_text_get(&text), "$L_loop_0:\n");
        assert_non_null(line);
        line = strchr(line, '\n') + 1;
        unsigned moves = 0;
        for (; strncmp(line, counter, strlen(counter)) != 0; line = strchr(line, '\n') + 1) {
            char target[32], source[32];
            assert_int_equal(sscanf(line, "\tmov.b32 %31[^,], %31[^;];", target, source), 2);
            int to = register_index(registers, known, target, strlen(target));
            if (to < 0) {
                to = known++;
                assert_true(known <= MOST + TEMPORARIES);
                snprintf(registers[to], sizeof registers[to], "%s", target);
            }
            int from = register_index(registers, known, source, strlen(source));
            holds[to] = from >= 0 ? holds[from] : strcmp(source, outside_register) == 0 ? -1 : -2;
            moves++;
        }
        for (int k = 0; k < count; k++) {
            assert_int_equal(holds[k], expected[k]);
        }
        assert_true(moves <= (unsigned)count + (unsigned)count / 2);
        lilac_text_clear(&text);
        close_module(&w);
    }
}

/* ---- exact text ------------------------------------------------------------------------- */

static void chosen_instructions(void **state) {
    (void)state;
    static const struct {
        lilac_simt_opcode code;
        lilac_simt_type type;
        uint8_t flags;
        const char *device, *expected;
    } rows[] = {
        {LILAC_SIMT_OP_ADD, LILAC_SIMT_I8, 0, "sm_90a", "add.s16"},
        {LILAC_SIMT_OP_ADD, LILAC_SIMT_I1, 0, "sm_90a", "xor.pred"},
        {LILAC_SIMT_OP_MUL, LILAC_SIMT_I64, 0, "sm_90a", "mul.lo.s64"},
        {LILAC_SIMT_OP_MULHI_U, LILAC_SIMT_I32, 0, "sm_90a", "mul.hi.u32"},
        {LILAC_SIMT_OP_DIV_S, LILAC_SIMT_I8, 0, "sm_90a", "cvt.s16.s8"},
        {LILAC_SIMT_OP_DIV_U, LILAC_SIMT_I8, 0, "sm_90a", "cvt.u16.u8"},
        {LILAC_SIMT_OP_SHL, LILAC_SIMT_I64, 0, "sm_90a", "cvt.sat.u32.u64"},
        {LILAC_SIMT_OP_FADD, LILAC_SIMT_F16X2, 0, "sm_90a", "add.rn.f16x2"},
        {LILAC_SIMT_OP_FADD, LILAC_SIMT_BF16, 0, "sm_90a", "add.rn.bf16"},
        {LILAC_SIMT_OP_FADD, LILAC_SIMT_BF16, 0, "sm_80", "fma.rn.bf16"},
        {LILAC_SIMT_OP_FMUL, LILAC_SIMT_BF16X2, 0, "sm_80", "mov.b32 %tr0, 0x80008000;"},
        {LILAC_SIMT_OP_FADD, LILAC_SIMT_F32, LILAC_SIMT_FTZ, "sm_90a", "add.ftz.f32"},
        {LILAC_SIMT_OP_FSUB, LILAC_SIMT_F32, 0, "sm_90a", "\tsub.f32"},
        {LILAC_SIMT_OP_FMUL, LILAC_SIMT_F32, 0, "sm_90a", "mul.rn.f32"},
        {LILAC_SIMT_OP_FADD, LILAC_SIMT_F64, 0, "sm_90a", "add.rn.f64"},
        {LILAC_SIMT_OP_FDIV, LILAC_SIMT_F32, LILAC_SIMT_APPROXIMATE, "sm_90a", "div.full.f32"},
        {LILAC_SIMT_OP_FDIV, LILAC_SIMT_F32, 0, "sm_90a", "div.rn.f32"},
        {LILAC_SIMT_OP_FDIV, LILAC_SIMT_F64, LILAC_SIMT_APPROXIMATE, "sm_90a", "div.rn.f64"},
        {LILAC_SIMT_OP_FMAX, LILAC_SIMT_F32, LILAC_SIMT_PROPAGATE_NAN, "sm_90a", "max.NaN.f32"},
        {LILAC_SIMT_OP_FMAX, LILAC_SIMT_F64, LILAC_SIMT_PROPAGATE_NAN, "sm_90a", "setp.nan.f64"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        workshop w;
        open_module(&w, rows[k].device);
        open_kernel(&w, "one");
        lilac_simt_type types[2] = {rows[k].type, rows[k].type};
        apply(&w, (lilac_simt_instruction){.code = (uint16_t)rows[k].code, .flags = rows[k].flags},
              2, types, 1, types);
        close_kernel(&w);
        lilac_text text;
        assert_true(write_text(&text, w.module, false, false));
        if (!strstr(lilac_text_get(&text), rows[k].expected)) {
            print_error("no %s in\n%s", rows[k].expected, lilac_text_get(&text));
        }
        assert_non_null(strstr(lilac_text_get(&text), rows[k].expected));
        lilac_text_clear(&text);
        close_module(&w);
    }
}

/* Conversions of integers round in every direction, and a rounding in front of a conversion to a 32- or 64-bit integer
 * is part of it, but not where it flushes subnormal numbers or the number has 16 bits. */
static void conversions_round(void **state) {
    (void)state;
    static const struct {
        const char *lines, *expected, *other; /* other: must be absent */
    } rows[] = {
        {"%i = param 1 : i32\n%r = s2f %i : f32 {round = zero}\n", "cvt.rz.f32.s32", "cvt.rn"},
        {"%i = param 1 : i32\n%r = u2f %i : f64 {round = up}\n", "cvt.rp.f64.u32", "cvt.rn"},
        {"%i = param 2 : i64\n%r = s2f %i : f32 {round = down}\n", "cvt.rm.f32.s64", "cvt.rn"},
        {"%i = param 2 : i64\n%r = u2f %i : f32\n", "cvt.rn.f32.u64", "cvt.rz"},
        {"%x = param 3 : f32\n%y = ffloor %x : f32\n%r = f2s %y : i32\n", "cvt.rmi.s32.f32",
         "cvt.rzi"},
        {"%x = param 3 : f32\n%y = fceil %x : f32\n%r = f2u %y : i64\n", "cvt.rpi.u64.f32",
         "cvt.rzi"},
        {"%x = param 4 : f64\n%y = frint %x : f64\n%r = f2s %y : i64\n", "cvt.rni.s64.f64",
         "cvt.rzi"},
        {"%x = param 4 : f64\n%y = ftrunc %x : f64\n%r = f2s %y : i32\n", "cvt.rzi.s32.f64",
         "cvt.rni"},
        {"%x = param 3 : f32\n%y = ffloor %x : f32 {ftz}\n%r = f2s %y : i32\n", "cvt.rzi.s32.f32",
         "cvt.rmi.s32"},
        {"%x = param 3 : f32\n%y = ffloor %x : f32\n%r = f2s %y : i16\n", "cvt.rzi.s16.f32",
         "cvt.rmi.s16"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        lilac_text source = {0}, text;
        lilac_text_printf(&source,
                          "simt.module target \"sm_90a\" {\nkernel @k(%%p: i64 ptr, %%a: i32, %%b: "
                          "i64, %%c: f32, %%d: f64) warps 1 ctas 1 shared 0 {\n%sreturn\n}\n}\n",
                          rows[k].lines);
        lilac_context *context = lilac_context_create();
        lilac_simt_module *module = lilac_simt_read(
            context, lilac_source_add(context, "k.simt", lilac_text_get(&source), source.length));
        if (module == NULL) {
            fail_with_diagnostics(context, lilac_text_get(&source));
        }
        assert_true(write_text(&text, module, false, false));
        if (strstr(lilac_text_get(&text), rows[k].expected) == NULL ||
            strstr(lilac_text_get(&text), rows[k].other) != NULL) {
            fail_msg("%s: %s", rows[k].expected, lilac_text_get(&text));
        }
        lilac_text_clear(&text);
        lilac_text_clear(&source);
        lilac_simt_module_destroy(module);
        lilac_context_destroy(context);
    }
}

/* Every operation that has a rounding, in every rounding, of f32 and f64. */
static void directed_roundings(void **state) {
    (void)state;
    static const struct {
        lilac_simt_opcode code;
        uint32_t operands;
        const char *stem;
    } rows[] = {
        {LILAC_SIMT_OP_FADD, 2, "add"}, {LILAC_SIMT_OP_FSUB, 2, "sub"},
        {LILAC_SIMT_OP_FMUL, 2, "mul"}, {LILAC_SIMT_OP_FDIV, 2, "div"},
        {LILAC_SIMT_OP_FFMA, 3, "fma"}, {LILAC_SIMT_OP_FSQRT, 1, "sqrt"},
        {LILAC_SIMT_OP_FRCP, 1, "rcp"},
    };
    static const char *const modes[] = {
        [LILAC_ROUND_ZERO] = "rz", [LILAC_ROUND_DOWN] = "rm", [LILAC_ROUND_UP] = "rp"};
    workshop w;
    open_module(&w, "sm_90a");
    open_kernel(&w, "one");
    for (size_t k = 0; k < 6 * sizeof rows / sizeof rows[0]; k++) {
        lilac_simt_type type = k % 2 ? LILAC_SIMT_F64 : LILAC_SIMT_F32;
        lilac_simt_type types[3] = {type, type, type};
        apply(&w,
              (lilac_simt_instruction){.code = (uint16_t)rows[k / 6].code,
                                       .detail = (uint8_t)(LILAC_ROUND_ZERO + k / 2 % 3)},
              rows[k / 6].operands, types, 1, types);
    }
    close_kernel(&w);
    lilac_text text;
    assert_true(write_text(&text, w.module, false, false));
    for (size_t k = 0; k < 6 * sizeof rows / sizeof rows[0]; k++) {
        char expected[32];
        snprintf(expected, sizeof expected, "\t%s.%s.%s ", rows[k / 6].stem,
                 modes[LILAC_ROUND_ZERO + k / 2 % 3], k % 2 ? "f64" : "f32");
        if (!strstr(lilac_text_get(&text), expected)) {
            print_error("no %s in\n%s", expected, lilac_text_get(&text));
        }
        assert_non_null(strstr(lilac_text_get(&text), expected));
    }
    lilac_text_clear(&text);
    close_module(&w);
}

/* Where the source forbids fused operations, ptxas does not fuse sums either. */
static void sums_kept_apart(void **state) {
    (void)state;
    for (int separate = 0; separate < 2; separate++) {
        workshop w;
        open_module(&w, "sm_90a");
        open_kernel(&w, "one");
        w.kernel->no_contraction = separate;
        lilac_simt_type types[2] = {LILAC_SIMT_F32, LILAC_SIMT_F32};
        apply(&w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_FADD}, 2, types, 1, types);
        close_kernel(&w);
        lilac_text text;
        assert_true(write_text(&text, w.module, false, false));
        assert_non_null(strstr(lilac_text_get(&text), separate ? "add.rn.f32" : "add.f32"));
        lilac_text_clear(&text);
        close_module(&w);
    }
}

/* ---- refusals --------------------------------------------------------------------------- */

static void expect_refused(workshop *w) {
    lilac_text text;
    assert_false(write_text(&text, w->module, true, true));
    assert_int_equal(text.length, 0);
    const lilac_diagnostic *d = lilac_diagnostics(w->context);
    assert_non_null(d);
    assert_string_equal(d->id, "unsupported-on-target");
    lilac_text_clear(&text);
    close_module(w);
}

static void refusals(void **state) {
    (void)state;
    workshop w;
    lilac_simt_type f16[2] = {LILAC_SIMT_F16, LILAC_SIMT_F16};
    static const lilac_simt_opcode f32_only[] = {LILAC_SIMT_OP_FDIV, LILAC_SIMT_OP_FSQRT,
                                                 LILAC_SIMT_OP_FEXP2, LILAC_SIMT_OP_FTANH};
    for (int k = 0; k < 4; k++) {
        open_module(&w, "sm_90a");
        open_kernel(&w, "half");
        apply(&w, (lilac_simt_instruction){.code = (uint16_t)f32_only[k]}, k ? 1 : 2, f16, 1, f16);
        close_kernel(&w);
        expect_refused(&w);
    }
    /* 8-bit floats on Ampere; one inside a loop's body */
    open_module(&w, "sm_80");
    open_kernel(&w, "float8");
    lilac_simt_type words[2] = {LILAC_SIMT_F32, LILAC_SIMT_F32}, bytes = LILAC_SIMT_I16;
    lilac_simt_value zero = constant(&w, LILAC_SIMT_I32, 0), ten = constant(&w, LILAC_SIMT_I32, 10);
    lilac_simt_value one = constant(&w, LILAC_SIMT_I32, 1), variable;
    lilac_simt_value init = input(&w, LILAC_SIMT_I16);
    lilac_simt_instruction *loop =
        lilac_simt_loop_begin(&w.builder, zero, ten, one, 1, &init, &variable);
    lilac_simt_value next =
        apply(&w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_F8_PACK, .scalar = LILAC_F8E4M3FN},
              2, words, 1, &bytes);
    output(&w, lilac_simt_loop_end(&w.builder, loop, &next));
    close_kernel(&w);
    expect_refused(&w);
    /* a conversion of a format that no NVIDIA device has */
    open_module(&w, "sm_90a");
    open_kernel(&w, "float8");
    apply(&w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_F8_PACK, .scalar = LILAC_F8E5M2FNUZ},
          2, words, 1, &bytes);
    close_kernel(&w);
    expect_refused(&w);
    /* a cache modifier of stores on a load */
    open_module(&w, "sm_90a");
    open_kernel(&w, "cache");
    lilac_simt_instruction like = {.cache = LILAC_SIMT_CACHE_WT};
    output(&w, lilac_simt_load(&w.builder, LILAC_SIMT_OP_LD_GLOBAL, LILAC_SIMT_I32, 1, w.pointer, 0,
                               0, NULL, &like));
    close_kernel(&w);
    expect_refused(&w);
    /* clusters on Ampere, too much shared memory, too many warps, an odd name */
    for (int k = 0; k < 4; k++) {
        open_module(&w, "sm_80");
        open_kernel(&w, k == 3 ? "not a name" : "launch");
        w.kernel->num_ctas = k == 0 ? 2 : 1;
        w.kernel->shared_bytes = k == 1 ? 1 << 20 : 0;
        w.kernel->num_warps = k == 2 ? 64 : 4;
        close_kernel(&w);
        expect_refused(&w);
    }
    /* PTX is NVIDIA's */
    open_module(&w, "gfx942");
    open_kernel(&w, "amd");
    close_kernel(&w);
    expect_refused(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arithmetic),
        cmocka_unit_test(other_values),
        cmocka_unit_test(memory),
        cmocka_unit_test(exchanges),
        cmocka_unit_test(exchange_text),
        cmocka_unit_test(signature),
        cmocka_unit_test(lines_and_names),
        cmocka_unit_test(control),
        cmocka_unit_test(parallel_copies),
        cmocka_unit_test(chosen_instructions),
        cmocka_unit_test(conversions_round),
        cmocka_unit_test(directed_roundings),
        cmocka_unit_test(sums_kept_apart),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests_name("ptx", tests, NULL, NULL);
}
