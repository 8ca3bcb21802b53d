/* Every operation on every type, for a GPU to repeat: writes a folder with
 *
 *   kernels.ptx    one kernel for each (operation, types, modifiers), and again with a constant
 *   inputs.bin     THREADS threads × 4 operands × 8 bytes: random bits, edge cases, moderate
 * numbers expected.bin   for each kernel THREADS × its results × 8 bytes: what the simulator
 * computed kernels.txt    one line a kernel: name, result type, results, how to compare
 *
 * bench/arithmetic.py runs the kernels on a GPU and compares. Two implementations of SIMT IR that
 * share no arithmetic (host code here, ptxas and the hardware there) then agree bit by bit.
 */
#include <lilac/driver.h>
#include <lilac/sim.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCKS = 8,
    BLOCK_THREADS = 128,
    THREADS = BLOCKS * BLOCK_THREADS,
    OPERANDS = 4,
    RESULTS = 8
};

typedef struct workshop {
    lilac_context *context;
    lilac_simt_module *module;
    lilac_simt_kernel *kernel;
    lilac_simt_builder builder;
    lilac_simt_value in, out;
    const uint64_t *inputs;
    FILE *list, *expected;
    unsigned kernels;
    bool good;
} workshop;

static const lilac_simt_type all_types[] = {LILAC_SIMT_I1,    LILAC_SIMT_I8,    LILAC_SIMT_I16,
                                            LILAC_SIMT_I32,   LILAC_SIMT_I64,   LILAC_SIMT_F16,
                                            LILAC_SIMT_BF16,  LILAC_SIMT_F32,   LILAC_SIMT_F64,
                                            LILAC_SIMT_F16X2, LILAC_SIMT_BF16X2};
enum { TYPES = sizeof all_types / sizeof all_types[0] };

static bool is_packed(lilac_simt_type type) {
    return type == LILAC_SIMT_F16X2 || type == LILAC_SIMT_BF16X2;
}

/* ---- inputs ----------------------------------------------------------------------------- */

static uint64_t moderate(lilac_random *random, lilac_scalar scalar) {
    double value = ((double)lilac_random_below(random, 1 << 20) / (1 << 19) - 1) *
                   (double)(1 << lilac_random_below(random, 9));
    return lilac_scalar_encode(scalar, value, LILAC_ROUND_NEAREST_EVEN, false);
}

static uint64_t operand_bits(lilac_random *random) {
    static const uint64_t edges16[] = {0,      0x8000, 1,      0xFFFF, 0x7FFF, 0x3C00,
                                       0xBC00, 0x7C00, 0xFC00, 0x7E00, 0x7BFF, 0x03FF,
                                       0x0400, 0x3F80, 0xBF80, 0x7F80, 0xFF80, 0x7FC0,
                                       0x7F7F, 0x0080, 0x0180, 0x00FF, 0x8080};
    static const uint64_t edges32[] = {0,          0x80000000, 1,          0xFFFFFFFF, 0x7FFFFFFF,
                                       0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000,
                                       0x7F7FFFFF, 0x00800000, 0x007FFFFF, 0x477FE000, 0x477FF000,
                                       0x4F000000, 0xCF000000, 0x4F800000, 0x5F000000, 0x33800000};
    static const uint64_t edges64[] = {0,
                                       0x8000000000000000,
                                       1,
                                       UINT64_MAX,
                                       0x7FFFFFFFFFFFFFFF,
                                       0x3FF0000000000000,
                                       0x7FF0000000000000,
                                       0xFFF0000000000000,
                                       0x7FF8000000000000,
                                       0x41E0000000000000,
                                       0x43E0000000000000,
                                       0x000FFFFFFFFFFFFF,
                                       0x3FF0100000000001,
                                       0x3FF0080000000000,
                                       0x0080000000000001,
                                       0x0101000000000001};
#define PICK(array) array[lilac_random_below(random, sizeof(array) / sizeof *(array))]
    switch (lilac_random_below(random, 10)) {
    case 0:
        return PICK(edges16) | PICK(edges16) << 16 | lilac_random_next(random) << 32;
    case 1:
        return PICK(edges32) | lilac_random_next(random) << 32;
    case 2:
        return PICK(edges64);
    case 3:
        return lilac_random_below(random, 70);
    case 4:
        return 0 - lilac_random_below(random, 70);
    case 5:
        return moderate(random, LILAC_F16) | moderate(random, LILAC_F16) << 16;
    case 6:
        return moderate(random, LILAC_BF16) | moderate(random, LILAC_BF16) << 16;
    case 7:
        return moderate(random, LILAC_F32) | lilac_random_next(random) << 32;
    case 8:
        return moderate(random, LILAC_F64);
    default:
        return lilac_random_next(random);
    }
#undef PICK
}

/* ---- kernels ---------------------------------------------------------------------------- */

static lilac_simt_value constant(workshop *w, lilac_simt_type type, uint64_t bits) {
    return lilac_simt_constant(&w->builder, type, bits);
}

static void open_kernel(workshop *w) {
    char name[32];
    snprintf(name, sizeof name, "k%u", w->kernels++);
    w->kernel = lilac_simt_kernel_create(w->module, lilac_intern_string(w->context, name), 2, 4, 1);
    for (int k = 0; k < 2; k++) {
        w->kernel->parameters[k] = (lilac_simt_parameter){
            lilac_intern_string(w->context, k ? "out" : "in"), LILAC_SIMT_I64, true, 16};
    }
    lilac_simt_builder *b = &w->builder;
    lilac_simt_builder_init(b, w->kernel);
    lilac_simt_type i32 = LILAC_SIMT_I32;
    lilac_simt_instruction block = {.code = LILAC_SIMT_OP_BLOCK},
                           thread = {.code = LILAC_SIMT_OP_THREAD};
    lilac_simt_value index = lilac_simt_op2(
        b, LILAC_SIMT_OP_ADD, i32,
        lilac_simt_op2(b, LILAC_SIMT_OP_MUL, i32, lilac_simt_build(b, &block, 0, NULL, 1, &i32),
                       constant(w, i32, BLOCK_THREADS)),
        lilac_simt_build(b, &thread, 0, NULL, 1, &i32));
    lilac_simt_value places[2];
    for (uint32_t k = 0; k < 2; k++) {
        lilac_simt_value offset = lilac_simt_op2(b, LILAC_SIMT_OP_MULWIDE_S, LILAC_SIMT_I64, index,
                                                 constant(w, i32, 8 * (k ? RESULTS : OPERANDS)));
        places[k] = lilac_simt_op2(b, LILAC_SIMT_OP_ADD, LILAC_SIMT_I64,
                                   lilac_simt_parameter_value(b, k), offset);
    }
    w->in = places[0];
    w->out = places[1];
}

/* The thread's operand number `slot`; an i1 is the lowest bit. */
static lilac_simt_value input(workshop *w, lilac_simt_type type, uint32_t slot) {
    lilac_simt_type loaded = type == LILAC_SIMT_I1 ? LILAC_SIMT_I32 : type;
    lilac_simt_value value = lilac_simt_load(&w->builder, LILAC_SIMT_OP_LD_GLOBAL, loaded, 1, w->in,
                                             8 * slot, 0, NULL, NULL);
    return type == LILAC_SIMT_I1 ? lilac_simt_op1(&w->builder, LILAC_SIMT_OP_TRUNC, type, value)
                                 : value;
}

static void close_kernel(workshop *w, const char *what, const char *compare,
                         lilac_simt_value result, uint32_t results) {
    lilac_simt_type type = lilac_simt_type_of(w->kernel, result);
    for (uint32_t k = 0; k < results; k++) {
        lilac_simt_value value = result + k;
        if (type == LILAC_SIMT_I1) {
            value = lilac_simt_op1(&w->builder, LILAC_SIMT_OP_ZEXT, LILAC_SIMT_I32, value);
        }
        lilac_simt_store(&w->builder, LILAC_SIMT_OP_ST_GLOBAL, 1, &value, w->out, 8 * k, 0, NULL);
    }
    lilac_simt_instruction end = {.code = LILAC_SIMT_OP_RETURN};
    (void)lilac_simt_build(&w->builder, &end, 0, NULL, 0, NULL);
    lilac_simt_builder_clear(&w->builder);

    static uint64_t output[THREADS * RESULTS];
    memset(output, 0, sizeof output);
    lilac_sim_buffer buffers[2] = {
        {.name = "in",
         .bytes = (uint8_t *)w->inputs,
         .size = 8 * THREADS * OPERANDS,
         .read_only = true},
        {.name = "out", .bytes = (uint8_t *)output, .size = sizeof output}};
    lilac_sim_place(buffers, 2);
    uint64_t arguments[2] = {buffers[0].address, buffers[1].address};
    lilac_sim_launch launch = {.kernel = w->kernel,
                               .grid = {BLOCKS, 1, 1},
                               .arguments = arguments,
                               .argument_count = 2,
                               .buffers = buffers,
                               .buffer_count = 2};
    lilac_sim_counters counters;
    if (!lilac_sim_run(w->context, &launch, &counters)) {
        fprintf(stderr, "%s: the simulator refuses it: %s\n", what,
                lilac_diagnostics(w->context) ? lilac_diagnostics(w->context)->message : "?");
        w->good = false;
        lilac_diagnostics_reset(w->context);
    }
    for (size_t thread = 0; thread < THREADS; thread++) {
        fwrite(output + thread * RESULTS, sizeof *output, results, w->expected);
    }
    fprintf(w->list, "%s %s %u %s %s\n", w->kernel->name, lilac_simt_type_name(type), results,
            compare, what);
}

/* How results are compared: exact bits (any NaN is a NaN), or near for what PTX approximates. */
static const char *comparison(lilac_simt_opcode code, uint8_t flags) {
    switch (code) {
    case LILAC_SIMT_OP_FEXP2:
    case LILAC_SIMT_OP_FLOG2:
    case LILAC_SIMT_OP_FTANH:
    case LILAC_SIMT_OP_FRSQRT:
        return "near";
    case LILAC_SIMT_OP_FSIN:
    case LILAC_SIMT_OP_FCOS:
        return "angle";
    default:
        return flags & LILAC_SIMT_APPROXIMATE ? "near" : "exact";
    }
}

/* One kernel: the operation on the thread's operands; `fixed` ≥ 0 makes operand 1 that constant. */
static void one(workshop *w, lilac_simt_instruction like, uint32_t operands,
                const lilac_simt_type *types, uint32_t results, const lilac_simt_type *result_types,
                int fixed) {
    static const uint64_t constants[] = {3, UINT64_MAX, 0x3C003C003F803F80};
    lilac_simt_opcode code = (lilac_simt_opcode)like.code;
    open_kernel(w);
    lilac_simt_value values[OPERANDS];
    for (uint32_t k = 0; k < operands; k++) {
        values[k] =
            fixed >= 0 && k == 1 ? constant(w, types[k], constants[fixed]) : input(w, types[k], k);
    }
    bool divides = code >= LILAC_SIMT_OP_DIV_S && code <= LILAC_SIMT_OP_REM_U;
    if (divides && fixed < 0) { /* no division by zero */
        values[1] = lilac_simt_op2(&w->builder, LILAC_SIMT_OP_OR, types[1], values[1],
                                   constant(w, types[1], 1));
    }
    lilac_simt_value result =
        lilac_simt_build(&w->builder, &like, operands, values, results, result_types);
    char what[128];
    snprintf(what, sizeof what, "%s %s->%s detail %u flags %u fixed %d",
             lilac_simt_op_info_get(code)->name, operands ? lilac_simt_type_name(types[0]) : "",
             lilac_simt_type_name(result_types[0]), like.detail, like.flags, fixed);
    close_kernel(w, what, comparison(code, like.flags), result, results);
}

static void each_fixed(workshop *w, lilac_simt_instruction like, uint32_t operands,
                       const lilac_simt_type *types, lilac_simt_type result) {
    bool divides = like.code >= LILAC_SIMT_OP_DIV_S && like.code <= LILAC_SIMT_OP_REM_U;
    for (int fixed = -1; fixed < (operands == 2 ? 3 : 0); fixed++) {
        if (!divides || fixed < 2) {
            one(w, like, operands, types, 1, &result, fixed);
        }
    }
}

static bool only_wide(lilac_simt_opcode code) {
    return code == LILAC_SIMT_OP_FDIV || code == LILAC_SIMT_OP_FSQRT ||
           code == LILAC_SIMT_OP_FRSQRT || code == LILAC_SIMT_OP_FRCP;
}

static bool only_f32(lilac_simt_opcode code) {
    return code >= LILAC_SIMT_OP_FEXP2 && code <= LILAC_SIMT_OP_FTANH;
}

static void arithmetic(workshop *w) {
    static const struct {
        const char *signature;
        uint32_t operands;
        bool floats;
    } plain[] = {{"i,i:i", 2, false},
                 {"i:i32", 1, false},
                 {"f:f", 1, true},
                 {"f,f:f", 2, true},
                 {"f,f,f:f", 3, true}};
    static const uint8_t flag_sets[] = {0, LILAC_SIMT_FTZ, LILAC_SIMT_APPROXIMATE,
                                        LILAC_SIMT_PROPAGATE_NAN};
    for (uint32_t code = 1; code < LILAC_SIMT_OP_COUNT; code++) {
        lilac_simt_opcode op = (lilac_simt_opcode)code;
        const char *signature = lilac_simt_op_info_get(op)->signature;
        size_t row = 0;
        while (row < 5 && strcmp(plain[row].signature, signature) != 0) {
            row++;
        }
        for (int t = 0; row < 5 && t < TYPES; t++) {
            lilac_simt_type type = all_types[t];
            if (lilac_simt_type_is_float(type) != plain[row].floats ||
                (only_wide(op) && type != LILAC_SIMT_F32 && type != LILAC_SIMT_F64) ||
                (only_f32(op) && type != LILAC_SIMT_F32)) {
                continue;
            }
            lilac_simt_type types[3] = {type, type, type};
            lilac_simt_type result = strstr(signature, ":i32") ? LILAC_SIMT_I32 : type;
            for (size_t f = 0; f < (plain[row].floats ? sizeof flag_sets : 1); f++) {
                bool extremum = op == LILAC_SIMT_OP_FMIN || op == LILAC_SIMT_OP_FMAX;
                if ((flag_sets[f] == LILAC_SIMT_PROPAGATE_NAN && !extremum) ||
                    (flag_sets[f] == LILAC_SIMT_APPROXIMATE && !only_wide(op))) {
                    continue;
                }
                lilac_simt_instruction like = {.code = (uint16_t)code, .flags = flag_sets[f]};
                if (op == LILAC_SIMT_OP_FTANH && flag_sets[f]) {
                    continue;
                }
                each_fixed(w, like, plain[row].operands, types, result);
            }
        }
    }
}

static void comparisons_and_conversions(workshop *w) {
    for (int f = 0; f < TYPES; f++) {
        lilac_simt_type from = all_types[f];
        bool from_float = lilac_simt_type_is_float(from);
        lilac_simt_type pair[3] = {from, from, from};
        lilac_simt_type select[3] = {LILAC_SIMT_I1, from, from};
        one(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_SELECT}, 3, select, 1, &from, -1);
        one(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_SELECT}, 3, select, 1, &from, 2);
        for (unsigned kind = 0; kind < LILAC_SIMT_COMPARE_COUNT && !is_packed(from); kind++) {
            if (kind <= LILAC_SIMT_GE || (kind >= LILAC_SIMT_UEQ) == from_float) {
                each_fixed(
                    w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_CMP, .detail = (uint8_t)kind},
                    2, pair, LILAC_SIMT_I1);
            }
        }
        for (int t = 0; t < TYPES; t++) {
            lilac_simt_type to = all_types[t];
            uint32_t from_bits = lilac_simt_type_bits(from), to_bits = lilac_simt_type_bits(to);
            bool to_float = lilac_simt_type_is_float(to);
            if (from_bits == to_bits) {
                one(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_BITCAST}, 1, &from, 1, &to,
                    -1);
            }
            uint32_t count = from_bits >= 8 ? to_bits / from_bits : 0;
            if (count > 1 && count <= OPERANDS) {
                lilac_simt_type parts[OPERANDS] = {from, from, from, from};
                one(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_PACK}, count, parts, 1, &to,
                    -1);
            }
            if (count > 1 && count <= RESULTS) {
                lilac_simt_type parts[RESULTS];
                for (uint32_t k = 0; k < count; k++) {
                    parts[k] = from;
                }
                one(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_UNPACK}, 1, &to, count, parts,
                    -1);
            }
            if (is_packed(from) || is_packed(to) || from == to) {
                continue;
            }
            lilac_simt_opcode codes[2] = {LILAC_SIMT_OP_NONE, LILAC_SIMT_OP_NONE};
            unsigned roundings = 1;
            if (!from_float && !to_float) {
                codes[0] = from_bits < to_bits ? LILAC_SIMT_OP_SEXT : LILAC_SIMT_OP_TRUNC;
                codes[1] = from_bits < to_bits ? LILAC_SIMT_OP_ZEXT : LILAC_SIMT_OP_NONE;
            } else if (!from_float || !to_float) {
                codes[0] = to_float ? LILAC_SIMT_OP_S2F : LILAC_SIMT_OP_F2S;
                codes[1] = to_float ? LILAC_SIMT_OP_U2F : LILAC_SIMT_OP_F2U;
            } else {
                codes[0] = LILAC_SIMT_OP_FCVT;
                roundings = from_bits >= to_bits ? 4 : 1;
            }
            bool f32 = from == LILAC_SIMT_F32 || to == LILAC_SIMT_F32;
            for (int k = 0; k < 2; k++) {
                for (unsigned r = 0; codes[k] != LILAC_SIMT_OP_NONE && r < roundings; r++) {
                    for (int ftz = 0; ftz < 1 + f32; ftz++) {
                        one(w,
                            (lilac_simt_instruction){.code = (uint16_t)codes[k],
                                                     .detail = (uint8_t)r,
                                                     .flags = ftz ? LILAC_SIMT_FTZ : 0},
                            1, &from, 1, &to, -1);
                    }
                }
            }
        }
    }
    static const lilac_scalar kinds[] = {LILAC_F8E4M3FN, LILAC_F8E5M2};
    lilac_simt_type words[3] = {LILAC_SIMT_F32, LILAC_SIMT_F32}, bytes = LILAC_SIMT_I16;
    lilac_simt_type pair = LILAC_SIMT_F16X2, i32 = LILAC_SIMT_I32, i64 = LILAC_SIMT_I64;
    lilac_simt_type i1 = LILAC_SIMT_I1, three[3] = {i32, i32, i32};
    for (int k = 0; k < 2; k++) {
        uint8_t scalar = (uint8_t)kinds[k];
        one(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_F8_PACK, .scalar = scalar}, 2, words,
            1, &bytes, -1);
        one(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_F8_UNPACK, .scalar = scalar}, 1,
            &bytes, 1, &pair, -1);
    }
    one(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_PRMT}, 3, three, 1, &i32, -1);
    one(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_MULWIDE_S}, 2, three, 1, &i64, -1);
    one(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_MULWIDE_U}, 2, three, 1, &i64, -1);
    one(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_BALLOT}, 1, &i1, 1, &i32, -1);
    for (uint8_t kind = 0; kind < 4; kind++) {
        each_fixed(w, (lilac_simt_instruction){.code = LILAC_SIMT_OP_SHUFFLE, .detail = kind}, 2,
                   three, i32);
    }
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fputs("usage: arithmetic FOLDER\n", stderr);
        return 2;
    }
    char path[4096];
    FILE *files[4];
    static const char *const names[4] = {"kernels.ptx", "inputs.bin", "expected.bin",
                                         "kernels.txt"};
    for (int k = 0; k < 4; k++) {
        snprintf(path, sizeof path, "%s/%s", argv[1], names[k]);
        if (!(files[k] = fopen(path, "wb"))) {
            perror(path);
            return 1;
        }
    }
    static uint64_t inputs[THREADS * OPERANDS];
    lilac_random random;
    lilac_random_seed(&random, 20);
    for (size_t k = 0; k < THREADS * OPERANDS; k++) {
        inputs[k] = operand_bits(&random);
    }
    fwrite(inputs, 1, sizeof inputs, files[1]);
    workshop w = {.context = lilac_context_create(),
                  .inputs = inputs,
                  .expected = files[2],
                  .list = files[3],
                  .good = true};
    w.module = lilac_simt_module_create(w.context, lilac_arch_find("sm_90a"));
    arithmetic(&w);
    comparisons_and_conversions(&w);
    lilac_text text;
    lilac_text_init(&text);
    lilac_ptx_options options = {0};
    if (!lilac_ptx_write(&text, w.module, &options)) {
        fprintf(stderr, "%s\n", lilac_diagnostics(w.context)->message);
        w.good = false;
    }
    fputs(lilac_text_get(&text), files[0]);
    for (int k = 0; k < 4; k++) {
        w.good &= fclose(files[k]) == 0;
    }
    printf("%u kernels\n", w.kernels);
    lilac_text_clear(&text);
    lilac_simt_module_destroy(w.module);
    lilac_context_destroy(w.context);
    return w.good ? 0 : 1;
}
