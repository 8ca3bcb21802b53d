/* Compile time of lilac beside ptxas's, in one run.
 *
 * For each TTIR file: the time from its text to PTX text (context, reading, all passes, writing and
 * freeing included; median over many repeats in this process), then ptxas on that very PTX (median
 * wall time of its process). Both on the same machine, one after the other, so that the ratio means
 * something. What ptxas reports of the kernel stands beside it, and what the `lilac` command takes
 * in memory for the same file.
 */
#define _DEFAULT_SOURCE /* wait4, clock_gettime, mkstemp, popen */

#include <lilac/driver.h>

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WIDTHS = 6 }; /* accesses of 1, 2, 4, 8, 16 and 32 bytes */

typedef struct bench_case {
    const char *name;
    char *path, *text;
    size_t length;
    uint32_t num_warps, num_stages;
    /* measured */
    double lilac_us, lilac_least_us, ptxas_ms;
    double pass_us[LILAC_MAX_PASSES]; /* least of all repeats */
    const char *pass_names[LILAC_MAX_PASSES];
    uint32_t pass_operations[LILAC_MAX_PASSES];
    uint32_t pass_count;
    uint32_t instructions, loads[WIDTHS], stores[WIDTHS], barriers;
    unsigned registers, spill_stores, spill_loads, shared;
    bool warned;
    long command_kib; /* 0: not measured */
    size_t ptx_bytes;
} bench_case;

typedef struct settings {
    const char *device, *ptxas, *command, *corpus, *json;
    unsigned repeats, ptxas_repeats;
    bool check, passes;
} settings;

static const char *const default_cases[] = {
    "vector_add_f32",      "softmax_float16_4096", "softmax_float32_1000", "softmax_bfloat16_8192",
    "layer_norm_f16_4096", "rms_norm_f16_4096",    "layer_norm_f16_5120",  "rms_norm_f16_5120",
    "swiglu_bf16",         "cross_entropy_bf16"};
enum { DEFAULT_CASES = sizeof default_cases / sizeof default_cases[0] };

static double seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t count) {
    qsort(values, count, sizeof *values, compare_doubles);
    return count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

static char *read_file(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        return NULL;
    }
    size_t capacity = 1 << 16;
    char *bytes = malloc(capacity);
    *length = 0;
    while (bytes) {
        *length += fread(bytes + *length, 1, capacity - *length - 1, file);
        if (*length < capacity - 1) {
            break;
        }
        char *more = realloc(bytes, capacity *= 2);
        if (!more) {
            free(bytes);
        }
        bytes = more;
    }
    fclose(file);
    if (bytes) {
        bytes[*length] = '\0';
    }
    return bytes;
}

/* The number after "key" in the object of cases.json whose name is `name`. */
static uint32_t case_number(const char *cases, const char *name, const char *key,
                            uint32_t otherwise) {
    char needle[128];
    snprintf(needle, sizeof needle, "\"name\": \"%s\",\n  \"kernel\"", name);
    const char *at = cases ? strstr(cases, needle) : NULL;
    snprintf(needle, sizeof needle, "\"%s\":", key);
    at = at ? strstr(at, needle) : NULL;
    return at ? (uint32_t)strtoul(at + strlen(needle), NULL, 10) : otherwise;
}

/* ---- lilac ------------------------------------------------------------------------------ */

static void print_diagnostics(lilac_context *context) {
    lilac_text text;
    lilac_text_init(&text);
    for (const lilac_diagnostic *d = lilac_diagnostics(context); d; d = d->next) {
        lilac_diagnostic_print(&text, context, d, false);
    }
    fputs(lilac_text_get(&text), stderr);
    lilac_text_clear(&text);
}

/* Text to text, once. When `ptx` is given the text is copied there. */
static bool compile(bench_case *c, const lilac_options *options, lilac_text *ptx) {
    lilac_context *context = lilac_context_create();
    uint32_t source = lilac_source_add(context, c->path, c->text, c->length);
    lilac_compilation compilation;
    bool good = lilac_compile(&compilation, context, source, options);
    if (!good) {
        print_diagnostics(context);
    }
    c->pass_count = compilation.pass_count;
    for (uint32_t k = 0; k < compilation.pass_count; k++) {
        const lilac_pass_statistics *pass = &compilation.passes[k];
        double us = 1e6 * pass->seconds;
        if (!c->pass_names[k] || us < c->pass_us[k]) {
            c->pass_us[k] = us;
        }
        c->pass_names[k] = pass->name;
        c->pass_operations[k] = pass->operations;
    }
    if (good && ptx) {
        lilac_text_puts(ptx, lilac_text_get(&compilation.ptx));
        c->shared = compilation.simt->kernels->shared_bytes;
    }
    lilac_compilation_clear(&compilation);
    lilac_context_destroy(context);
    return good;
}

static bool measure_lilac(bench_case *c, const settings *s, lilac_text *ptx) {
    lilac_options options;
    lilac_options_init(&options);
    options.target.arch = lilac_arch_find(s->device);
    options.target.num_warps = c->num_warps;
    options.target.num_stages = c->num_stages;
    if (!compile(c, &options, ptx)) {
        return false;
    }
    double *times = malloc(s->repeats * sizeof *times);
    if (!times) {
        return false;
    }
    for (unsigned k = 0; k < s->repeats / 10; k++) {
        (void)compile(c, &options, NULL);
    }
    for (unsigned k = 0; k < s->repeats; k++) {
        double start = seconds();
        (void)compile(c, &options, NULL);
        times[k] = 1e6 * (seconds() - start);
    }
    c->lilac_us = median(times, s->repeats);
    c->lilac_least_us = times[0];
    free(times);
    return true;
}

/* ---- what is in the PTX ----------------------------------------------------------------- */

/* Bytes that a line's access moves in one thread: v4.b32 is 16. */
static uint32_t access_bytes(const char *line, const char *end) {
    uint32_t count = 1, bits = 0;
    for (const char *dot = line; dot < end && *dot != ' '; dot++) {
        if (dot[0] == '.' && dot[1] == 'v' && isdigit((unsigned char)dot[2])) {
            count = (uint32_t)strtoul(dot + 2, NULL, 10);
        }
        if (dot[0] == '.' && dot[1] == 'b' && isdigit((unsigned char)dot[2])) {
            bits = (uint32_t)strtoul(dot + 2, NULL, 10);
        }
    }
    return count * bits / 8;
}

static void count_access(uint32_t *widths, const char *line, const char *end) {
    uint32_t bytes = access_bytes(line, end), k = 0;
    while (bytes > 1 && k + 1 < WIDTHS) {
        bytes /= 2;
        k++;
    }
    widths[k]++;
}

static void count_instructions(bench_case *c, const char *ptx) {
    for (const char *line = ptx; *line;) {
        const char *end = line + strcspn(line, "\n");
        if (line[0] == '\t' && isalpha((unsigned char)(line[1] == '@' ? 'a' : line[1]))) {
            const char *code = line + 1;
            if (*code == '@') {
                code += strcspn(code, " ") + 1;
            }
            c->instructions++;
            bool load = strncmp(code, "ld.", 3) == 0, store = strncmp(code, "st.", 3) == 0;
            const char *global = strstr(code, ".global");
            if ((load || store) && global && global < end) {
                count_access(load ? c->loads : c->stores, code, end);
            }
            c->barriers += strncmp(code, "bar.sync", 8) == 0;
        }
        line = *end ? end + 1 : end;
    }
}

/* ---- processes -------------------------------------------------------------------------- */

/* Runs a program with its output thrown away or into `output`; its wall time, peak memory. */
static bool run(char *const arguments[], const char *output, double *wall, long *kib) {
    double start = seconds();
    pid_t child = fork();
    if (child < 0) {
        return false;
    }
    if (child == 0) {
        int handle = open(output ? output : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (handle >= 0) {
            dup2(handle, 1);
            dup2(handle, 2);
        }
        execvp(arguments[0], arguments);
        _exit(127);
    }
    int status = 0;
    struct rusage usage;
    if (wait4(child, &status, 0, &usage) < 0) {
        return false;
    }
    if (wall) {
        *wall = seconds() - start;
    }
    if (kib) {
        *kib = usage.ru_maxrss;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static unsigned number_before(const char *report, const char *words) {
    const char *at = report ? strstr(report, words) : NULL;
    if (!at) {
        return 0;
    }
    while (at > report && at[-1] == ' ') {
        at--;
    }
    while (at > report && isdigit((unsigned char)at[-1])) {
        at--;
    }
    return (unsigned)strtoul(at, NULL, 10);
}

static bool measure_ptxas(bench_case *c, const settings *s, const char *ptx) {
    char source[] = "lilac-bench-XXXXXX", report[64], device[64];
    int handle = mkstemp(source);
    if (handle < 0) {
        return false;
    }
    FILE *file = fdopen(handle, "w");
    bool good = file && fputs(ptx, file) >= 0;
    good = (!file || fclose(file) == 0) && good;
    snprintf(report, sizeof report, "%s.report", source);
    snprintf(device, sizeof device, "-arch=%s", s->device);
    char *arguments[] = {(char *)s->ptxas, device, "-v", source, "-o", "/dev/null", NULL};
    double *times = malloc((s->ptxas_repeats + 1) * sizeof *times);
    for (unsigned k = 0; good && times && k < s->ptxas_repeats + 1; k++) { /* the first warms up */
        good = run(arguments, report, &times[k], NULL);
    }
    if (good && times) {
        c->ptxas_ms = 1e3 * median(times + 1, s->ptxas_repeats);
    }
    size_t length;
    char *said = read_file(report, &length);
    c->registers = number_before(said, " registers");
    c->spill_stores = number_before(said, " bytes spill stores");
    c->spill_loads = number_before(said, " bytes spill loads");
    c->warned = said && strstr(said, "warning");
    if (!good) {
        fprintf(stderr, "%s: ptxas: %s\n", c->name, said ? said : "cannot run it");
    }
    free(said);
    free(times);
    remove(report);
    remove(source);
    return good;
}

/* ---- reports ---------------------------------------------------------------------------- */

/* "16B:4 4B:1". */
static const char *widths_text(char *text, size_t size, const uint32_t *widths) {
    size_t length = 0;
    text[0] = '\0';
    for (int k = WIDTHS - 1; k >= 0; k--) {
        if (widths[k] && length + 24 < size) {
            length += (size_t)snprintf(text + length, size - length, "%s%dB:%u", length ? " " : "",
                                       1 << k, widths[k]);
        }
    }
    return length ? text : "-";
}

static void print_table(const bench_case *cases, size_t count, const settings *s) {
    printf("%-24s %9s %9s %9s %7s %6s %5s %6s %7s %4s  %-14s %-14s %9s\n", "case", "lilac us",
           "least us", "ptxas ms", "ratio", "instr", "regs", "spills", "shared", "bars", "loads",
           "stores", "command");
    for (size_t k = 0; k < count; k++) {
        const bench_case *c = &cases[k];
        char loads[96], stores[96], command[32] = "-", ratio[32] = "-";
        if (c->command_kib) {
            snprintf(command, sizeof command, "%.1f MiB", (double)c->command_kib / 1024);
        }
        if (c->ptxas_ms > 0) {
            snprintf(ratio, sizeof ratio, "1/%.0f", 1e3 * c->ptxas_ms / c->lilac_us);
        }
        printf("%-24s %9.0f %9.0f %9.1f %7s %6u %5u %6u %7u %4u  %-14s %-14s %9s%s\n", c->name,
               c->lilac_us, c->lilac_least_us, c->ptxas_ms, ratio, c->instructions, c->registers,
               c->spill_stores + c->spill_loads, c->shared, c->barriers,
               widths_text(loads, sizeof loads, c->loads),
               widths_text(stores, sizeof stores, c->stores), command,
               c->warned ? "  ptxas warned" : "");
        for (uint32_t p = 0; s->passes && p < c->pass_count; p++) {
            printf("    %-16s %7.1f us %6u operations\n", c->pass_names[p], c->pass_us[p],
                   c->pass_operations[p]);
        }
    }
    printf("lilac: TTIR text to PTX text, median and least of %u; ptxas: median of %u, its process "
           "alone;\ninstr, bars: in the PTX; loads, stores: global accesses by bytes a thread; "
           "command: peak memory of `lilac compile`\n",
           s->repeats, s->ptxas_repeats);
}

/* The first line of a command's output. */
static void first_line(const char *command, char *line, size_t size) {
    line[0] = '\0';
    FILE *pipe = popen(command, "r");
    if (!pipe) {
        return;
    }
    char rest[256];
    if (!fgets(line, (int)size, pipe)) {
        line[0] = '\0';
    }
    while (fgets(rest, sizeof rest, pipe)) {
    }
    pclose(pipe);
    line[strcspn(line, "\n")] = '\0';
}

static void put_pair(lilac_text *out, const char *key, const char *value) {
    lilac_text_printf(out, "  \"%s\": ", key);
    lilac_text_json(out, value, strlen(value));
    lilac_text_puts(out, ",\n");
}

static void put_widths(lilac_text *out, const char *key, const uint32_t *widths) {
    lilac_text_printf(out, ", \"%s\": {", key);
    bool first = true;
    for (int k = 0; k < WIDTHS; k++) {
        if (widths[k]) {
            lilac_text_printf(out, "%s\"%d\": %u", first ? "" : ", ", 1 << k, widths[k]);
            first = false;
        }
    }
    lilac_text_puts(out, "}");
}

static bool write_json(const bench_case *cases, size_t count, const settings *s) {
    lilac_text out;
    lilac_text_init(&out);
    char line[256], command[512];
    lilac_text_puts(&out, "{\n");
    put_pair(&out, "lilac", LILAC_VERSION);
    first_line("git -C \"" LILAC_SOURCE_DIR "\" rev-parse HEAD 2>/dev/null", line, sizeof line);
    put_pair(&out, "commit", line);
    put_pair(&out, "compiler", __VERSION__);
    snprintf(command, sizeof command, "%s --version 2>/dev/null | grep release", s->ptxas);
    first_line(command, line, sizeof line);
    put_pair(&out, "ptxas", line);
    first_line("grep -m1 'model name' /proc/cpuinfo 2>/dev/null | sed 's/.*: //'", line,
               sizeof line);
    put_pair(&out, "processor", line);
    first_line("date -u +%Y-%m-%dT%H:%M:%SZ", line, sizeof line);
    put_pair(&out, "date", line);
    put_pair(&out, "device", s->device);
    lilac_text_printf(&out, "  \"repeats\": %u,\n  \"ptxas_repeats\": %u,\n  \"cases\": [",
                      s->repeats, s->ptxas_repeats);
    for (size_t k = 0; k < count; k++) {
        const bench_case *c = &cases[k];
        lilac_text_puts(&out, k ? ",\n    {\"name\": " : "\n    {\"name\": ");
        lilac_text_json(&out, c->name, strlen(c->name));
        lilac_text_printf(&out,
                          ", \"num_warps\": %u, \"lilac_us\": %.1f, \"lilac_least_us\": %.1f, "
                          "\"ptxas_ms\": %.2f, \"instructions\": %u, \"ptx_bytes\": %zu, "
                          "\"registers\": %u, \"spill_bytes\": %u, \"shared\": %u, "
                          "\"barriers\": %u, \"command_peak_kib\": %ld",
                          c->num_warps, c->lilac_us, c->lilac_least_us, c->ptxas_ms,
                          c->instructions, c->ptx_bytes, c->registers,
                          c->spill_stores + c->spill_loads, c->shared, c->barriers, c->command_kib);
        put_widths(&out, "loads", c->loads);
        put_widths(&out, "stores", c->stores);
        lilac_text_puts(&out, ", \"passes\": [");
        for (uint32_t p = 0; p < c->pass_count; p++) {
            lilac_text_printf(&out, "%s{\"name\": \"%s\", \"us\": %.1f, \"operations\": %u}",
                              p ? ", " : "", c->pass_names[p], c->pass_us[p],
                              c->pass_operations[p]);
        }
        lilac_text_puts(&out, "]}");
    }
    lilac_text_puts(&out, "\n  ]\n}\n");
    FILE *file = fopen(s->json, "w");
    bool good = file && fputs(lilac_text_get(&out), file) >= 0;
    good = file && fclose(file) == 0 && good;
    if (!good) {
        fprintf(stderr, "cannot write %s\n", s->json);
    }
    lilac_text_clear(&out);
    return good;
}

/* The bounds that the project promises: 1 ms, a twentieth of ptxas, 16 MiB, no spill or warning. */
static bool keeps_bounds(const bench_case *cases, size_t count) {
    bool good = true;
    for (size_t k = 0; k < count; k++) {
        const bench_case *c = &cases[k];
        const char *broken = c->lilac_us >= 1000                    ? "takes 1 ms or more"
                             : 20 * c->lilac_us > 1e3 * c->ptxas_ms ? "over ptxas / 20"
                             : c->command_kib >= 16 * 1024          ? "16 MiB or more"
                             : c->spill_stores + c->spill_loads     ? "spills"
                             : c->warned                            ? "ptxas warns"
                                                                    : NULL;
        if (broken) {
            printf("%s: %s\n", c->name, broken);
            good = false;
        }
    }
    return good;
}

/* ---- the program ------------------------------------------------------------------------ */

static int usage(void) {
    fputs("usage: compile_time [options] [FILE.ttir[:WARPS]]...\n"
          "  (no file: the ten launches of the corpus, with the warps that cases.json gives)\n"
          "  --json FILE      write the results as data\n"
          "  --check          exit with 1 when a bound is not kept\n"
          "  --passes         also the least time of each pass\n"
          "  --repeat N       compilations of each file (200)\n"
          "  --ptxas-repeat N runs of ptxas on each PTX (7)\n"
          "  --target ARCH    sm_90a\n"
          "  --ptxas PATH     the assembler\n"
          "  --command PATH   the lilac command, for its memory\n"
          "  --corpus DIR     where the launches are\n",
          stderr);
    return 2;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* "dir/name.ttir:8" → path, name, warps. */
static bool open_case(bench_case *c, const char *argument, const char *cases) {
    c->path = strdup(argument);
    if (!c->path) {
        return false;
    }
    char *colon = strrchr(c->path, ':');
    c->num_warps = 0;
    if (colon && isdigit((unsigned char)colon[1])) {
        c->num_warps = (uint32_t)strtoul(colon + 1, NULL, 10);
        *colon = '\0';
    }
    char *name = strdup(base_name(c->path));
    if (!name) {
        return false;
    }
    name[strcspn(name, ".")] = '\0';
    c->name = name;
    if (!c->num_warps) {
        c->num_warps = case_number(cases, name, "num_warps", 4);
    }
    c->num_stages = case_number(cases, name, "num_stages", 3);
    c->text = read_file(c->path, &c->length);
    if (!c->text) {
        fprintf(stderr, "cannot read %s\n", c->path);
    }
    return c->text != NULL;
}

static void measure_command(bench_case *c, const settings *s) {
    char warps[16];
    snprintf(warps, sizeof warps, "%u", c->num_warps);
    char *arguments[] = {(char *)s->command, "compile",     c->path, "-o",
                         "/dev/null",        "--num-warps", warps,   "--target",
                         (char *)s->device,  NULL};
    if (!run(arguments, NULL, NULL, &c->command_kib)) {
        fprintf(stderr, "%s: `%s compile` failed; its memory is not measured\n", c->name,
                s->command);
        c->command_kib = 0;
    }
}

int main(int argc, char **argv) {
    settings s = {.device = "sm_90a",
                  .ptxas = access("/usr/local/cuda/bin/ptxas", X_OK) == 0
                               ? "/usr/local/cuda/bin/ptxas"
                               : "ptxas",
                  .command = LILAC_COMMAND,
                  .corpus = LILAC_CORPUS,
                  .repeats = 200,
                  .ptxas_repeats = 7};
    const char *files[256];
    size_t count = 0;
    for (int k = 1; k < argc; k++) {
        const char *value = k + 1 < argc ? argv[k + 1] : NULL;
        if (strcmp(argv[k], "--check") == 0) {
            s.check = true;
        } else if (strcmp(argv[k], "--passes") == 0) {
            s.passes = true;
        } else if (argv[k][0] != '-') {
            if (count == sizeof files / sizeof files[0]) {
                return usage();
            }
            files[count++] = argv[k];
        } else if (!value) {
            return usage();
        } else {
            const struct {
                const char *name;
                const char **text;
                unsigned *number;
            } options[] = {{"--json", &s.json, NULL},
                           {"--target", &s.device, NULL},
                           {"--ptxas", &s.ptxas, NULL},
                           {"--command", &s.command, NULL},
                           {"--corpus", &s.corpus, NULL},
                           {"--repeat", NULL, &s.repeats},
                           {"--ptxas-repeat", NULL, &s.ptxas_repeats}};
            size_t found = 0;
            while (found < 7 && strcmp(options[found].name, argv[k]) != 0) {
                found++;
            }
            if (found == 7) {
                return usage();
            }
            if (options[found].text) {
                *options[found].text = value;
            } else {
                *options[found].number = (unsigned)strtoul(value, NULL, 10);
            }
            k++;
        }
    }
    if (!lilac_arch_find(s.device) || s.repeats < 1 || s.ptxas_repeats < 1) {
        return usage();
    }

    char path[4096];
    size_t length = 0;
    snprintf(path, sizeof path, "%s/cases.json", s.corpus);
    char *cases_json = read_file(path, &length);
    bench_case *cases = calloc(count ? count : DEFAULT_CASES, sizeof *cases);
    if (!cases) {
        return 1;
    }
    bool all_defaults = count == 0;
    if (all_defaults) {
        count = DEFAULT_CASES;
    }
    for (size_t k = 0; k < count; k++) {
        if (all_defaults) {
            snprintf(path, sizeof path, "%s/%s.ttir", s.corpus, default_cases[k]);
        } else {
            snprintf(path, sizeof path, "%s", files[k]);
        }
        if (!open_case(&cases[k], path, cases_json)) {
            return 1;
        }
    }
    /* First the command: a child's peak memory counts what its parent had when it forked. */
    for (size_t k = 0; k < count; k++) {
        measure_command(&cases[k], &s);
    }
    bool good = true;
    for (size_t k = 0; k < count; k++) {
        lilac_text ptx;
        lilac_text_init(&ptx);
        bench_case *c = &cases[k];
        if (measure_lilac(c, &s, &ptx)) {
            c->ptx_bytes = ptx.length;
            count_instructions(c, lilac_text_get(&ptx));
            good &= measure_ptxas(c, &s, lilac_text_get(&ptx));
        } else {
            good = false;
        }
        lilac_text_clear(&ptx);
    }
    print_table(cases, count, &s);
    if (s.json) {
        good &= write_json(cases, count, &s);
    }
    if (s.check) {
        good &= keeps_bounds(cases, count);
    }
    for (size_t k = 0; k < count; k++) {
        free((char *)cases[k].name);
        free(cases[k].path);
        free(cases[k].text);
    }
    free(cases);
    free(cases_json);
    return good ? 0 : 1;
}
