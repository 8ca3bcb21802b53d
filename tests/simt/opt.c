/* Passes on SIMT IR: each rule as text before and after. Both sides are bodies of the kernel below;
 * what the pass made of the first must print as the second does, and a second run must change
 * nothing. */
#include <lilac/simt.h>

#include "support/test.h"

typedef bool pass(lilac_simt_kernel *kernel);

typedef struct golden {
    const char *name;
    const char *before, *after;
} golden;

static const char head[] = "simt.module target \"sm_90a\" {\n"
                           "kernel @k(%p: i64 ptr align 16, %n: i32, %x: f32, %y: f32, %h: f16, "
                           "%q: i64) warps 4 ctas 1 shared 1024 {\n";

static bool fold_and_sweep(lilac_simt_kernel *kernel) {
    bool changed = lilac_simt_opt_fold(kernel);
    return lilac_simt_opt_dce(kernel) || changed;
}

static bool contract_and_sweep(lilac_simt_kernel *kernel) {
    bool changed = lilac_simt_opt_contract(kernel);
    return lilac_simt_opt_dce(kernel) || changed;
}

static bool sweep_only(lilac_simt_kernel *kernel) {
    return lilac_simt_opt_dce(kernel);
}

static lilac_simt_module *read_body(lilac_context *context, const char *body) {
    lilac_text text = {0};
    lilac_text_puts(&text, head);
    lilac_text_puts(&text, body);
    lilac_text_puts(&text, "return\n}\n}\n");
    uint32_t source = lilac_source_add(context, "golden", text.bytes, text.length);
    lilac_simt_module *module = lilac_simt_read(context, source);
    if (module == NULL || !lilac_simt_verify(module)) {
        fprintf(stderr, "%s", text.bytes);
        print_diagnostics(context);
        fail();
    }
    lilac_text_clear(&text);
    return module;
}

/* Names are for readers; here only structure counts. */
static void forget_names(lilac_simt_kernel *kernel) {
    for (uint32_t v = 0; v < kernel->value_count; v++) {
        kernel->values[v].name = NULL;
    }
}

/* False, with the reason on standard error, when a case fails. */
static bool check(const golden *g, pass *run) {
    bool good = true;
    lilac_context *context = lilac_context_create();
    lilac_simt_module *before = read_body(context, g->before);
    lilac_simt_module *after = read_body(context, g->after);
    lilac_text got = {0};
    lilac_text wanted = {0};
    bool changed = run(before->kernels);
    forget_names(before->kernels);
    forget_names(after->kernels);
    lilac_simt_print(&got, before);
    lilac_simt_print(&wanted, after);
    if (strcmp(lilac_text_get(&got), lilac_text_get(&wanted)) != 0) {
        fprintf(stderr, "%s: got\n%s\nwanted\n%s\n", g->name, got.bytes, wanted.bytes);
        good = false;
    }
    if (changed != (strcmp(g->before, g->after) != 0)) {
        fprintf(stderr, "%s: says that it %s\n", g->name, changed ? "changed" : "changed nothing");
        good = false;
    }
    if (!lilac_simt_verify(before)) {
        print_diagnostics(context);
        good = false;
    }
    if (run(before->kernels)) {
        fprintf(stderr, "%s: changed again\n", g->name);
        good = false;
    }
    lilac_text_clear(&got);
    lilac_text_clear(&wanted);
    lilac_simt_module_destroy(before);
    lilac_simt_module_destroy(after);
    lilac_context_destroy(context);
    return good;
}

/* Shorthands: declarations of values, and a use that keeps one alive. */
#define N               "%n = param 1 : i32\n"
#define P               "%p = param 0 : i64\n"
#define Q               "%q = param 5 : i64\n"
#define X               "%x = param 2 : f32\n"
#define Y               "%y = param 3 : f32\n"
#define H               "%h = param 4 : f16\n"
#define S               "%s = shared_base : i32\n"
#define L               "%l = lane : i32\n"
#define C(name, value)  "%" name " = const " value " : i32\n"
#define CL(name, value) "%" name " = const " value " : i64\n"
#define CF(name, value) "%" name " = const " value " : f32\n"
#define USE(name)       "st.shared [%s], (%" name ")\n"
#define TWICE(text)     text, text

static const golden integers[] = {
    {"x + 0", S N C("c", "0") "%r = add %n, %c : i32\n" USE("r"), S N USE("n")},
    {"constants add", S C("a", "40") C("b", "2") "%r = add %a, %b : i32\n" USE("r"),
     S C("r", "42") USE("r")},
    {"constant to the right", S N C("c", "5") "%r = add %c, %n : i32\n" USE("r"),
     S N C("c", "5") "%r = add %n, %c : i32\n" USE("r")},
    {"(x + a) + b",
     S N C("a", "3") C("b", "4") "%i = add %n, %a : i32\n%r = add %i, %b : i32\n" USE("r"),
     S N C("c", "7") "%r = add %n, %c : i32\n" USE("r")},
    {"(x + a) + y", S N L C("a", "3") "%i = add %n, %a : i32\n%r = add %i, %l : i32\n" USE("r"),
     S N L C("a", "3") "%0 = add %n, %l : i32\n%r = add %0, %a : i32\n" USE("r")},
    {"x - c", S N C("c", "4") "%r = sub %n, %c : i32\n" USE("r"),
     S N C("c", "-4") "%r = add %n, %c : i32\n" USE("r")},
    {"x - x", S N "%r = sub %n, %n : i32\n" USE("r"), S C("r", "0") USE("r")},
    {"(x + y) - y", S N L "%i = add %n, %l : i32\n%r = sub %i, %l : i32\n" USE("r"), S N USE("n")},
    {"y + (x - y)", S N L "%i = sub %n, %l : i32\n%r = add %l, %i : i32\n" USE("r"), S N USE("n")},
    {"x * 0", S N C("c", "0") "%r = mul %n, %c : i32\n" USE("r"), S C("c", "0") USE("c")},
    {"x * 1", S N C("c", "1") "%r = mul %n, %c : i32\n" USE("r"), S N USE("n")},
    {"x * 8", S N C("c", "8") "%r = mul %n, %c : i32 {nsw}\n" USE("r"),
     S N C("c", "3") "%r = shl %n, %c : i32 {nsw}\n" USE("r")},
    {"x * -1", S N C("c", "-1") "%r = mul %n, %c : i32\n" USE("r"),
     S N C("c", "0") "%r = sub %c, %n : i32\n" USE("r")},
    {"(x * 3) * 5",
     S N C("a", "3") C("b", "5") "%i = mul %n, %a : i32\n%r = mul %i, %b : i32\n" USE("r"),
     S N C("c", "15") "%r = mul %n, %c : i32\n" USE("r")},
    {"(x + 2) * 12",
     S N C("a", "2") C("b", "12") "%i = add %n, %a : i32\n%r = mul %i, %b : i32\n" USE("r"),
     S N C("b", "12") C("c", "24") "%i = mul %n, %b : i32\n%r = add %i, %c : i32\n" USE("r")},
    {"promises are kept for a widening",
     TWICE(S N C("a", "2") C("b", "12") "%i = add %n, %a : i32 {nsw}\n"
                                        "%r = mul %i, %b : i32 {nsw}\n" USE("r"))},
    {"(x << 2) << 3",
     S N C("a", "2") C("b", "3") "%i = shl %n, %a : i32\n%r = shl %i, %b : i32\n" USE("r"),
     S N C("c", "5") "%r = shl %n, %c : i32\n" USE("r")},
    {"shift out", S N C("a", "32") "%r = shl %n, %a : i32\n" USE("r"), S C("r", "0") USE("r")},
    {"shift right by too much is the sign", S N C("a", "40") "%r = shr_s %n, %a : i32\n" USE("r"),
     S N C("c", "31") "%r = shr_s %n, %c : i32\n" USE("r")},
    {"down and up", S N C("a", "4") "%i = shr_u %n, %a : i32\n%r = shl %i, %a : i32\n" USE("r"),
     S N C("c", "-16") "%r = and %n, %c : i32\n" USE("r")},
    {"up and down", S N C("a", "4") "%i = shl %n, %a : i32\n%r = shr_u %i, %a : i32\n" USE("r"),
     S N C("c", "268435455") "%r = and %n, %c : i32\n" USE("r")},
    {"lane / 32", S L C("a", "5") "%r = shr_u %l, %a : i32\n" USE("r"), S C("r", "0") USE("r")},
    {"signed shift of a positive number", S L C("a", "2") "%r = shr_s %l, %a : i32\n" USE("r"),
     S L C("a", "2") "%r = shr_u %l, %a : i32\n" USE("r")},
    {"unsigned division by 8", S N C("a", "8") "%r = div_u %n, %a : i32\n" USE("r"),
     S N C("c", "3") "%r = shr_u %n, %c : i32\n" USE("r")},
    {"signed division of a positive number", S L C("a", "8") "%r = div_s %l, %a : i32\n" USE("r"),
     S L C("c", "3") "%r = shr_u %l, %c : i32\n" USE("r")},
    {"signed division stays", TWICE(S N C("a", "8") "%r = div_s %n, %a : i32\n" USE("r"))},
    {"remainder by 8", S N C("a", "8") "%r = rem_u %n, %a : i32\n" USE("r"),
     S N C("c", "7") "%r = and %n, %c : i32\n" USE("r")},
    {"remainder by more", S L C("a", "40") "%r = rem_u %l, %a : i32\n" USE("r"), S L USE("l")},
    {"quotient of quotient",
     S N C("a", "6") C("b", "7") "%i = div_u %n, %a : i32\n%r = div_u %i, %b : i32\n" USE("r"),
     S N C("c", "42") "%r = div_u %n, %c : i32\n" USE("r")},
    {"no division by zero is folded", TWICE(S N C("a", "0") "%r = div_s %n, %a : i32\n" USE("r"))},
    {"x & 0", S N C("c", "0") "%r = and %n, %c : i32\n" USE("r"), S C("c", "0") USE("c")},
    {"x & x", S N "%r = and %n, %n : i32\n" USE("r"), S N USE("n")},
    {"x & -1", S N C("c", "-1") "%r = and %n, %c : i32\n" USE("r"), S N USE("n")},
    {"lane & 31", S L C("c", "31") "%r = and %l, %c : i32\n" USE("r"), S L USE("l")},
    {"(x & 12) & 10",
     S N C("a", "12") C("b", "10") "%i = and %n, %a : i32\n%r = and %i, %b : i32\n" USE("r"),
     S N C("c", "8") "%r = and %n, %c : i32\n" USE("r")},
    {"x | -1", S N C("c", "-1") "%r = or %n, %c : i32\n" USE("r"), S C("c", "-1") USE("c")},
    {"lane | 64 is a sum", S L C("c", "64") "%r = or %l, %c : i32\n" USE("r"),
     S L C("c", "64") "%r = add %l, %c : i32 {nsw, nuw}\n" USE("r")},
    {"x ^ x", S N "%r = xor %n, %n : i32\n" USE("r"), S C("r", "0") USE("r")},
    {"x ^ (x ^ y)", S N L "%i = xor %n, %l : i32\n%r = xor %n, %i : i32\n" USE("r"), S L USE("l")},
    {"(lane ^ 4) ^ (x ^ 3)",
     S N L C("a", "4") C("b", "3") "%i = xor %l, %a : i32\n%j = xor %n, %b : i32\n"
                                   "%r = xor %i, %j : i32\n" USE("r"),
     S N L C("c", "7") "%i = xor %l, %n : i32\n%r = xor %i, %c : i32\n" USE("r")},
    {"a bit joined by + leaves through ^",
     S L C("a", "64") C("b", "65") "%i = add %l, %a : i32 {nsw, nuw}\n"
                                   "%r = xor %i, %b : i32\n" USE("r"),
     S L C("c", "1") "%r = xor %l, %c : i32\n" USE("r")},
    {"(lane + 32) >> 4",
     S L C("a", "32") C("b", "4") "%i = add %l, %a : i32 {nsw, nuw}\n"
                                  "%r = shr_u %i, %b : i32\n" USE("r"),
     S L C("b", "4") C("c", "2") "%i = shr_u %l, %b : i32\n"
                                 "%r = add %i, %c : i32 {nsw, nuw}\n" USE("r")},
    {"min(lane, 40)", S L C("a", "40") "%r = min_s %l, %a : i32\n" USE("r"), S L USE("l")},
    {"max(lane, -1)", S L C("a", "-1") "%r = max_s %l, %a : i32\n" USE("r"), S L USE("l")},
    {"min_u(x, 0)", S N C("a", "0") "%r = min_u %n, %a : i32\n" USE("r"), S C("a", "0") USE("a")},
    {"prmt of one word", S N L C("a", "0x3210") "%r = prmt %n, %l, %a : i32\n" USE("r"),
     S N USE("n")},
};

static const golden widths[] = {
    {"sext (x + c)", S N C("a", "5") "%i = add %n, %a : i32 {nsw}\n%r = sext %i : i64\n" USE("r"),
     S N CL("c", "5") "%i = sext %n : i64\n%r = add %i, %c : i64 {nsw}\n" USE("r")},
    {"sext (x + c) may wrap",
     TWICE(S N C("a", "5") "%i = add %n, %a : i32\n%r = sext %i : i64\n" USE("r"))},
    {"zext (x + c)", S N C("a", "5") "%i = add %n, %a : i32 {nuw}\n%r = zext %i : i64\n" USE("r"),
     S N CL("c", "5") "%i = zext %n : i64\n%r = add %i, %c : i64 {nsw, nuw}\n" USE("r")},
    {"sext (x * y)", S N L "%i = mul %n, %l : i32 {nsw}\n%r = sext %i : i64\n" USE("r"),
     S N L "%r = mulwide_s %n, %l : i64\n" USE("r")},
    {"sext x << 3", S N CL("c", "3") "%i = sext %n : i64\n%r = shl %i, %c : i64\n" USE("r"),
     S N C("c", "8") "%r = mulwide_s %n, %c : i64\n" USE("r")},
    {"zext x * 12", S N CL("c", "12") "%i = zext %n : i64\n%r = mul %i, %c : i64\n" USE("r"),
     S N C("c", "12") "%r = mulwide_u %n, %c : i64\n" USE("r")},
    {"mulwide (x + c), k",
     S N C("a", "5") C("k", "-4") "%i = add %n, %a : i32 {nsw}\n"
                                  "%r = mulwide_s %i, %k : i64\n" USE("r"),
     S N C("k", "-4") CL("c", "-20") "%i = mulwide_s %n, %k : i64\n"
                                     "%r = add %i, %c : i64 {nsw}\n" USE("r")},
    {"mulwide (x << 2), k",
     S N C("a", "2") C("k", "6") "%i = shl %n, %a : i32 {nsw}\n"
                                 "%r = mulwide_s %i, %k : i64\n" USE("r"),
     S N C("c", "24") "%r = mulwide_s %n, %c : i64\n" USE("r")},
    {"mulwide x, 1", S N C("c", "1") "%r = mulwide_u %n, %c : i64\n" USE("r"),
     S N "%r = zext %n : i64\n" USE("r")},
    {"trunc of sext", S N "%i = sext %n : i64\n%r = trunc %i : i32\n" USE("r"), S N USE("n")},
    {"trunc of trunc", S P "%i = trunc %p : i32\n%r = trunc %i : i16\n" USE("r"),
     S P "%r = trunc %p : i16\n" USE("r")},
    {"sext of zext", S N "%b = trunc %n : i8\n%i = zext %b : i16\n%r = sext %i : i32\n" USE("r"),
     S N "%b = trunc %n : i8\n%r = zext %b : i32\n" USE("r")},
    {"an integer through a float that holds it",
     S N "%i = s2f %n : f64\n%r = f2s %i : i32\n" USE("r"), S N USE("n")},
    {"not through one that does not", TWICE(S N "%i = s2f %n : f32\n%r = f2s %i : i32\n" USE("r"))},
    {"nor as an unsigned one", TWICE(S N "%i = u2f %n : f64\n%r = f2s %i : i32\n" USE("r"))},
    {"f16 through f32", S H "%i = fcvt %h : f32\n%r = fcvt %i : f16\n" USE("r"), S H USE("h")},
    {"f16 to f64 at once", S H "%i = fcvt %h : f32\n%r = fcvt %i : f64\n" USE("r"),
     S H "%r = fcvt %h : f64\n" USE("r")},
    {"f32 through f16 stays", TWICE(S X "%i = fcvt %x : f16\n%r = fcvt %i : f32\n" USE("r"))},
    {"bitcasts", S X "%i = bitcast %x : i32\n%r = bitcast %i : f32\n" USE("r"), S X USE("x")},
    {"unpack of pack",
     S N L "%w = pack %n, %l : i64\n%a, %b = unpack %w : i32, i32\n" USE("a") USE("b"),
     S N L USE("n") USE("l")},
    {"unpack of pack as another type",
     S N L "%w = pack %n, %l : i64\n%a, %b = unpack %w : f32, f32\n" USE("a") USE("b"),
     S N L "%a = bitcast %n : f32\n%b = bitcast %l : f32\n" USE("a") USE("b")},
    {"pack of unpack", S P "%a, %b = unpack %p : i32, i32\n%r = pack %a, %b : i64\n" USE("r"),
     S P USE("p")},
    {"pack of exchanged parts stays",
     TWICE(S P "%a, %b = unpack %p : i32, i32\n%r = pack %b, %a : i64\n" USE("r"))},
    {"pack of unpack, bytes",
     S N "%a, %b, %c, %d = unpack %n : i8, i8, i8, i8\n%r = pack %a, %b, %c, %d : i32\n" USE("r"),
     S N USE("n")},
    {"pack of unpack, through other types",
     S N "%a, %b = unpack %n : i16, i16\n%c = bitcast %a : f16\n%d = bitcast %b : f16\n"
         "%v = pack %c, %d : f16x2\n%r = bitcast %v : i32\n" USE("r"),
     S N USE("n")},
    {"pack of parts of two words stays",
     TWICE(S N L "%a, %b = unpack %n : i16, i16\n%c, %d = unpack %l : i16, i16\n"
                 "%r = pack %a, %d : i32\n" USE("r"))},
    {"prmt that does nothing", S N L C("a", "0x7654") "%r = prmt %l, %n, %a : i32\n" USE("r"),
     S N USE("n")},
    {"prmt of the second word only", S N L C("a", "0x7645") "%r = prmt %l, %n, %a : i32\n" USE("r"),
     S N C("a", "0x3201") "%r = prmt %n, %n, %a : i32\n" USE("r")},
    {"prmt of prmt is one",
     S N L C("a", "0x5410") C("b", "0x7632")
         C("c", "0x6240") "%v = prmt %n, %l, %a : i32\n%w = prmt %n, %l, %b : i32\n"
                          "%r = prmt %v, %w, %c : i32\n" USE("r"),
     S N L C("c", "0x6420") "%r = prmt %n, %l, %c : i32\n" USE("r")},
    {"prmt of prmt undone",
     S N L C("a", "0x5410") C("b", "0x7632") "%v = prmt %n, %l, %a : i32\n"
                                             "%w = prmt %n, %l, %b : i32\n%r = prmt %v, %w, %a : "
                                             "i32\n%t = prmt %v, %w, %b : i32\n" USE("r") USE("t"),
     S N L USE("n") USE("l")},
    {"prmt of four words stays",
     TWICE(S N L X Y C("a", "0x5410")
               C("b", "0x6420") "%i = bitcast %x : i32\n%j = bitcast %y : i32\n"
                                "%v = prmt %n, %l, %a : i32\n%w = prmt %i, %j, %a : i32\n%r = prmt "
                                "%v, %w, %b : i32\n" USE("r"))},
    {"prmt with signs stays",
     TWICE(S N L C("a", "0xBA98") "%r = prmt %n, %l, %a : i32\n" USE("r"))},
    {"unpack of prmt of packs",
     S N L C(
         "a",
         "0x7610") "%b, %c = unpack %n : i16, i16\n%d, %e = unpack %l : i16, i16\n"
                   "%v = pack %b, %e : i32\n%w = pack %c, %d : i32\n%r = prmt %v, %w, %a : i32\n"
                   "%f, %g = unpack %r : i16, i16\n%h = add %f, %g : i16\n" USE("h"),
     S N L "%b, %c = unpack %n : i16, i16\n%d, %e = unpack %l : i16, i16\n"
           "%h = add %b, %d : i16\n" USE("h")},
    {"unpack of a constant",
     S "%w = const 0x3C004000 : f16x2\n%a, %b = unpack %w : f16, f16\n" USE("a") USE("b"),
     S "%a = const 2.0 : f16\n%b = const 1.0 : f16\n" USE("a") USE("b")},
};

static const golden choices[] = {
    {"compare of constants",
     S N C("a", "-1") C("b", "1") "%c = cmp ult %a, %b : i1\n"
                                  "%r = select %c, %n, %a : i32\n" USE("r"),
     S C("a", "-1") USE("a")},
    {"x + 1 < x + 3, which do not wrap",
     S N C("a", "1") C("b", "3") "%i = add %n, %a : i32 {nsw}\n%j = add %n, %b : i32 {nsw}\n"
                                 "%c = cmp lt %i, %j : i1\n%r = select %c, %n, %a : i32\n" USE("r"),
     S N USE("n")},
    {"x + 1 < x + 3, which may wrap",
     TWICE(S N C("a", "1") C("b", "3") "%i = add %n, %a : i32\n%j = add %n, %b : i32\n"
                                       "%c = cmp lt %i, %j : i1\nst.shared [%s], %c, (%n)\n")},
    {"one of x, x + 1 < one of x + 2, x + 3",
     S N X Y C("a", "1") C("b", "2")
         C("d", "3") "%i = add %n, %a : i32 {nsw}\n%j = add %n, %b : i32 {nsw}\n%k = add %n, %d : "
                     "i32 {nsw}\n"
                     "%g = cmp gt %x, %y : i1\n%u = select %g, %n, %i : i32\n%v = select %g, %j, "
                     "%k : i32\n"
                     "%c = cmp lt %u, %v : i1\n%r = select %c, %n, %a : i32\n" USE("r"),
     S N USE("n")},
    {"one of x, x + 2 < one of x + 1, x + 3",
     TWICE(S N X Y C("a", "2") C("b", "1")
               C("d", "3") "%i = add %n, %a : i32 {nsw}\n%j = add %n, %b : i32 {nsw}\n"
                           "%k = add %n, %d : i32 {nsw}\n%g = cmp gt %x, %y : i1\n"
                           "%u = select %g, %n, %i : i32\n%v = select %g, %j, %k : i32\n"
                           "%c = cmp lt %u, %v : i1\nst.shared [%s], %c, (%n)\n")},
    {"x > y or x = y, of floats",
     S N X Y "%g = cmp gt %x, %y : i1\n%e = cmp eq %x, %y : i1\n%c = or %g, %e : i1\n"
             "st.shared [%s], %c, (%n)\n",
     S N X Y "%c = cmp ge %x, %y : i1\nst.shared [%s], %c, (%n)\n"},
    {"x > y or not x = y stays",
     TWICE(S N X Y "%g = cmp gt %x, %y : i1\n%e = cmp ne %x, %y : i1\n%c = or %g, %e : i1\n"
                   "st.shared [%s], %c, (%n)\n")},
    {"lane < 32", S L N C("a", "32") "%c = cmp lt %l, %a : i1\nst.shared [%s], %c, (%n)\n",
     S N USE("n")},
    {"lane == 64",
     S L N C("a", "64") "%c = cmp eq %l, %a : i1\nst.shared [%s], %c, (%n)\n" USE("n"),
     S N USE("n")},
    {"constant exchanged in a comparison",
     S N C("a", "7") "%c = cmp gt %a, %n : i1\nst.shared [%s], %c, (%n)\n",
     S N C("a", "7") "%c = cmp lt %n, %a : i1\nst.shared [%s], %c, (%n)\n"},
    {"x + 3 < 10",
     S N C("a", "3") C("b", "10") "%i = add %n, %a : i32 {nsw}\n%c = cmp lt %i, %b : i1\n"
                                  "st.shared [%s], %c, (%n)\n",
     S N C("b", "7") "%c = cmp lt %n, %b : i1\nst.shared [%s], %c, (%n)\n"},
    {"x + 3 < 10 may wrap",
     TWICE(S N C("a", "3") C("b", "10") "%i = add %n, %a : i32\n%c = cmp lt %i, %b : i1\n"
                                        "st.shared [%s], %c, (%n)\n")},
    {"comparison of widened numbers",
     S N L "%a = sext %n : i64\n%b = sext %l : i64\n%c = cmp lt %a, %b : i1\n"
           "st.shared [%s], %c, (%n)\n",
     S N L "%c = cmp lt %n, %l : i1\nst.shared [%s], %c, (%n)\n"},
    {"a widened truth",
     S N C("z", "0") "%c = cmp lt %n, %z : i1\n%w = zext %c : i32\n%d = cmp ne %w, %z : i1\n"
                     "st.shared [%s], %d, (%n)\n",
     S N C("z", "0") "%c = cmp lt %n, %z : i1\nst.shared [%s], %c, (%n)\n"},
    {"not (x < y), floats",
     S X Y "%t = const true : i1\n%c = cmp lt %x, %y : i1\n%d = xor %c, %t : i1\n"
           "st.shared [%s], %d, (%x)\n",
     S X Y "%d = cmp fuge %x, %y : i1\nst.shared [%s], %d, (%x)\n"},
    {"a truth other than a bit",
     S N L C("z", "0") C("o", "1") "%b = and %l, %o : i32\n%c = cmp lt %n, %l : i1\n"
                                   "%w = zext %c : i32\n%d = cmp ne %w, %b : i1\n"
                                   "st.shared [%s], %d, (%n)\n",
     S N L C("z", "0") C("o", "1") "%b = and %l, %o : i32\n%c = cmp lt %n, %l : i1\n"
                                   "%q = cmp ne %b, %z : i1\n%d = xor %c, %q : i1\n"
                                   "st.shared [%s], %d, (%n)\n"},
    {"a bit the same as a truth",
     S N L C("z", "0") C("o", "1") "%b = and %l, %o : i32\n%c = cmp lt %n, %l : i1\n"
                                   "%w = zext %c : i32\n%d = cmp eq %b, %w : i1\n"
                                   "st.shared [%s], %d, (%n)\n",
     S N L C("z", "0") C("o", "1") "%b = and %l, %o : i32\n%c = cmp ge %n, %l : i1\n"
                                   "%q = cmp ne %b, %z : i1\n%d = xor %c, %q : i1\n"
                                   "st.shared [%s], %d, (%n)\n"},
    {"a truth other than the opposite of a bit",
     S N L C("z", "0") C("o", "1") "%b = and %l, %o : i32\n%e = xor %b, %o : i32\n"
                                   "%c = cmp lt %n, %l : i1\n"
                                   "%w = zext %c : i32\n%d = cmp ne %w, %e : i1\n"
                                   "st.shared [%s], %d, (%n)\n",
     S N L C("z", "0") C("o", "1") "%b = and %l, %o : i32\n%c = cmp ge %n, %l : i1\n"
                                   "%q = cmp ne %b, %z : i1\n%d = xor %c, %q : i1\n"
                                   "st.shared [%s], %d, (%n)\n"},
    {"a truth other than two bits stays",
     TWICE(S N L C("o", "3") "%b = and %l, %o : i32\n%c = cmp lt %n, %l : i1\n"
                             "%w = zext %c : i32\n%d = cmp ne %w, %b : i1\n"
                             "st.shared [%s], %d, (%n)\n")},
    {"both places of an exchange",
     S N X Y L "%q = cmp gt %x, %y : i1\n%c = cmp gt %n, %l : i1\n%d = xor %c, %q : i1\n"
               "%u = select %d, %l, %n : i32\n%e = cmp le %l, %n : i1\n%f = xor %e, %q : i1\n"
               "%v = select %f, %n, %l : i32\n" USE("u") USE("v"),
     S N X Y L "%q = cmp gt %x, %y : i1\n%c = cmp gt %n, %l : i1\n%d = xor %c, %q : i1\n"
               "%u = select %d, %l, %n : i32\n%v = select %d, %n, %l : i32\n" USE("u") USE("v")},
    {"both places of an exchange of unsigned numbers",
     S N X Y L "%q = cmp gt %x, %y : i1\n%c = cmp ule %n, %l : i1\n%d = xor %q, %c : i1\n"
               "%u = select %d, %l, %n : i32\n%e = cmp uge %l, %n : i1\n%f = xor %q, %e : i1\n"
               "%v = select %f, %n, %l : i32\n" USE("u") USE("v"),
     S N X Y L "%q = cmp gt %x, %y : i1\n%c = cmp ugt %n, %l : i1\n%d = xor %c, %q : i1\n"
               "%u = select %d, %n, %l : i32\n%v = select %d, %l, %n : i32\n" USE("u") USE("v")},
    {"an exchange of floats stays",
     TWICE(S N L X Y "%q = cmp gt %n, %l : i1\n%c = cmp lt %x, %y : i1\n%d = xor %c, %q : i1\n"
                     "%u = select %d, %x, %y : f32\nst.shared [%s], (%u)\n")},
    {"select of equal arms",
     S N L "%c = cmp lt %n, %l : i1\n%r = select %c, %n, %n : i32\n" USE("r"), S N USE("n")},
    {"select in a select by the same",
     S N L C("a", "5") "%c = cmp lt %n, %l : i1\n%v = select %c, %n, %l : i32\n"
                       "%r = select %c, %a, %v : i32\n" USE("r"),
     S N L C("a", "5") "%c = cmp lt %n, %l : i1\n%r = select %c, %a, %l : i32\n" USE("r")},
    {"select in both arms",
     S N L C("a", "5") "%c = cmp lt %n, %l : i1\n%v = select %c, %n, %a : i32\n"
                       "%w = select %c, %a, %l : i32\n%r = select %c, %v, %w : i32\n" USE("r"),
     S N L "%c = cmp lt %n, %l : i1\n%r = select %c, %n, %l : i32\n" USE("r")},
    {"select in a select by the opposite",
     S N L C("a", "5") "%c = cmp lt %n, %l : i1\n%d = cmp ge %n, %l : i1\n"
                       "%v = select %d, %n, %a : i32\n%r = select %c, %v, %l : i32\n" USE("r"),
     S N L C("a", "5") "%c = cmp lt %n, %l : i1\n%r = select %c, %a, %l : i32\n" USE("r")},
    {"select by not p",
     S N L C("a", "5") "%t = const true : i1\n%b = cmp lt %n, %l : i1\n%e = cmp lt %n, %a : i1\n"
                       "%p = and %b, %e : i1\n%q = xor %p, %t : i1\n"
                       "%v = select %p, %n, %l : i32\n%r = select %q, %v, %a : i32\n" USE("r"),
     S N L C("a", "5") "%b = cmp lt %n, %l : i1\n%e = cmp lt %n, %a : i1\n"
                       "%p = and %b, %e : i1\n%r = select %p, %a, %l : i32\n" USE("r")},
    {"select in a select by another stays",
     TWICE(S N L C("a",
                   "5") "%c = cmp lt %n, %l : i1\n%d = cmp lt %n, %a : i1\n"
                        "%v = select %d, %n, %l : i32\n%r = select %c, %a, %v : i32\n" USE("r"))},
    {"shuffle of a uniform value",
     S N C("a", "5") "%v = mul %n, %n : i32\n%r = shuffle idx %v, %a : i32\n" USE("r"),
     S N "%v = mul %n, %n : i32\n" USE("v")},
    {"select of truths",
     S N L "%t = const true : i1\n%f = const false : i1\n%c = cmp lt %n, %l : i1\n"
           "%r = select %c, %f, %t : i1\nst.shared [%s], %r, (%n)\n",
     S N L "%r = cmp ge %n, %l : i1\nst.shared [%s], %r, (%n)\n"},
    {"select of a truth and false",
     S N L "%f = const false : i1\n%c = cmp lt %n, %l : i1\n%d = cmp eq %n, %l : i1\n"
           "%r = select %c, %d, %f : i1\nst.shared [%s], %r, (%n)\n",
     S N L "%c = cmp lt %n, %l : i1\n%d = cmp eq %n, %l : i1\n%r = and %c, %d : i1\n"
           "st.shared [%s], %r, (%n)\n"},
};

static const golden floats[] = {
    {"x + -0", S X CF("c", "-0.0") "%r = fadd %x, %c : f32\n" USE("r"), S X USE("x")},
    {"x + 0 stays", TWICE(S X CF("c", "0.0") "%r = fadd %x, %c : f32\n" USE("r"))},
    {"x - 0", S X CF("c", "0.0") "%r = fsub %x, %c : f32\n" USE("r"), S X USE("x")},
    {"x * 1", S X CF("c", "1.0") "%r = fmul %x, %c : f32\n" USE("r"), S X USE("x")},
    {"x * 0 stays", TWICE(S X CF("c", "0.0") "%r = fmul %x, %c : f32\n" USE("r"))},
    {"x * -1", S X CF("c", "-1.0") "%r = fmul %x, %c : f32\n" USE("r"),
     S X "%r = fneg %x : f32\n" USE("r")},
    {"x / 4", S X CF("c", "4.0") "%r = fdiv %x, %c : f32\n" USE("r"),
     S X CF("c", "0.25") "%r = fmul %x, %c : f32\n" USE("r")},
    {"x / 3 stays", TWICE(S X CF("c", "3.0") "%r = fdiv %x, %c : f32\n" USE("r"))},
    {"x + -0, rounded down, is -0 where x is 0",
     TWICE(S X CF("c", "-0.0") "%r = fadd %x, %c : f32 {round = down}\n" USE("r"))},
    {"x - 0, rounded down, is -0 where x is 0",
     TWICE(S X CF("c", "0.0") "%r = fsub %x, %c : f32 {round = down}\n" USE("r"))},
    {"x / 4, rounded up, may be subnormal",
     TWICE(S X CF("c", "4.0") "%r = fdiv %x, %c : f32 {round = up}\n" USE("r"))},
    {"1 / 3, rounded up, stays",
     TWICE(S CF("a", "1.0") CF("b", "3.0") "%r = fdiv %a, %b : f32 {round = up}\n" USE("r"))},
    {"x / 2^127: the reciprocal is subnormal",
     TWICE(S X CF("c", "0x7F000000") "%r = fdiv %x, %c : f32\n" USE("r"))},
    {"- - x", S X "%i = fneg %x : f32\n%r = fneg %i : f32\n" USE("r"), S X USE("x")},
    {"x + -y", S X Y "%i = fneg %y : f32\n%r = fadd %x, %i : f32\n" USE("r"),
     S X Y "%r = fsub %x, %y : f32\n" USE("r")},
    {"x - -y", S X Y "%i = fneg %y : f32\n%r = fsub %x, %i : f32\n" USE("r"),
     S X Y "%r = fadd %x, %y : f32\n" USE("r")},
    {"-x * -y", S X Y "%i = fneg %x : f32\n%j = fneg %y : f32\n%r = fmul %i, %j : f32\n" USE("r"),
     S X Y "%r = fmul %x, %y : f32\n" USE("r")},
    {"|-x|", S X "%i = fneg %x : f32\n%r = fabs %i : f32\n" USE("r"),
     S X "%r = fabs %x : f32\n" USE("r")},
    {"flushing is left alone", TWICE(S X CF("c", "1.0") "%r = fmul %x, %c : f32 {ftz}\n" USE("r"))},
    {"sums are not reordered",
     TWICE(S X CF("a", "1.5") CF("b", "2.5") "%i = fadd %x, %a : f32\n"
                                             "%r = fadd %i, %b : f32\n" USE("r"))},
};

static const golden contractions[] = {
    {"x * y + x", S X Y "%m = fmul %x, %y : f32\n%r = fadd %m, %x : f32\n" USE("r"),
     S X Y "%r = ffma %x, %y, %x : f32\n" USE("r")},
    {"x + x * y", S X Y "%m = fmul %x, %y : f32\n%r = fadd %x, %m : f32\n" USE("r"),
     S X Y "%r = ffma %x, %y, %x : f32\n" USE("r")},
    {"x * y - x", S X Y "%m = fmul %x, %y : f32\n%r = fsub %m, %x : f32\n" USE("r"),
     S X Y "%n = fneg %x : f32\n%r = ffma %x, %y, %n : f32\n" USE("r")},
    {"x - x * y", S X Y "%m = fmul %x, %y : f32\n%r = fsub %x, %m : f32\n" USE("r"),
     S X Y "%n = fneg %x : f32\n%r = ffma %n, %y, %x : f32\n" USE("r")},
    {"a product rounded up",
     TWICE(S X Y "%m = fmul %x, %y : f32 {round = up}\n%r = fadd %m, %x : f32\n" USE("r"))},
    {"a sum rounded up",
     TWICE(S X Y "%m = fmul %x, %y : f32\n%r = fadd %m, %x : f32 {round = up}\n" USE("r"))},
    {"a product used twice",
     S X Y "%m = fmul %x, %y : f32\n%r = fadd %m, %x : f32\n" USE("r") USE("m"),
     S X Y "%m = fmul %x, %y : f32\n%r = ffma %x, %y, %x : f32\n" USE("r") USE("m")},
    {"that of fewer uses",
     S X Y "%m = fmul %x, %y : f32\n%n = fmul %y, %y : f32\n%r = fadd %m, %n : f32\n" USE("r")
         USE("m"),
     S X Y "%m = fmul %x, %y : f32\n%r = ffma %y, %y, %m : f32\n" USE("r") USE("m")},
    {"not into another body",
     TWICE(S N X Y C("z", "0") C("o", "1") "%m = fmul %x, %y : f32\n"
                                           "%q = loop %i = %z to %n step %o (%a = %x) : f32 {\n"
                                           "%r = fadd %m, %a : f32\nyield %r\n}\n" USE("q"))},
};

static const golden addresses[] = {
    {"global address", P X CL("c", "16") "%a = add %p, %c : i64\nst.global [%a + 4], (%x)\n",
     P X "st.global [%p + 20], (%x)\n"},
    {"shared address, through promises",
     S X L C("a", "3") C("k", "12") "%i = add %l, %a : i32\n%j = mul %i, %k : i32\n"
                                    "%b = add %j, %s : i32\nst.shared [%b], (%x)\n",
     S X L C("k", "12") "%j = mul %l, %k : i32 {nsw, nuw}\n%b = add %j, %s : i32\n"
                        "st.shared [%b + 36], (%x)\n"},
    {"an offset that does not fit stays",
     TWICE(P X CL("c", "0x100000000") "%a = add %p, %c : i64\nst.global [%a], (%x)\n")},
    {"always active",
     P X "%t = const true : i1\n%v = ld.global [%p], %t, (%x) : f32\n"
         "st.global [%p + 4], %t, (%v)\n",
     P "%v = ld.global [%p] : f32\nst.global [%p + 4], (%v)\n"},
    {"never active",
     S P X Y "%f = const false : i1\n%v, %w = ld.global [%p], %f, (%x, %y) : f32, f32\n"
             "%u = ld.global [%p], %f : f32\nst.global [%p + 4], %f, (%v)\n" USE("w") USE("u"),
     S Y CF("u", "0.0") USE("y") USE("u")},
};

static const golden structure[] = {
    {"if true",
     S N "%t = const true : i1\n%r = if %t : i32 {\n%i = add %n, %n : i32\nyield %i\n} else {\n"
         "yield %n\n}\n" USE("r"),
     S N "%i = add %n, %n : i32\n" USE("i")},
    {"if false", S N "%t = const false : i1\nif %t {\n" USE("n") "yield\n}\n" USE("n"),
     S N USE("n")},
    {"loop over nothing",
     S X C("a", "4") C("o", "1") "%r = loop %i = %a to %a step %o (%c = %x) : f32 {\n"
                                 "%d = fadd %c, %c : f32\nyield %d\n}\n" USE("r"),
     S X USE("x")},
    {"loop run once",
     S X C("a", "4") C("b", "7")
         C("o", "3") "%r = loop %i = %a to %b step %o (%c = %x) : f32 {\n"
                     "%d = fadd %c, %c : f32\n" USE("i") "yield %d\n}\n" USE("r"),
     S X C("a", "4") "%d = fadd %x, %x : f32\n" USE("a") USE("d")},
    {"a carried value that never changes",
     S N X Y C("a", "0")
         C("o", "1") "%r, %t = loop %i = %a to %n step %o (%c = %x, %e = %y) : f32, f32 {\n"
                     "%d = fadd %c, %e : f32\nyield %d, %e\n}\n" USE("r") USE("t"),
     S N X Y C("a", "0") C("o", "1") "%r = loop %i = %a to %n step %o (%c = %x) : f32 {\n"
                                     "%d = fadd %c, %y : f32\nyield %d\n}\n" USE("r") USE("y")},
    {"a counter below its bound",
     S N C("a", "0") C("o", "1") "loop %i = %a to %n step %o {\n%m = cmp lt %i, %n : i1\n"
                                 "%w = zext %m : i32\n" USE("w") "yield\n}\n",
     S N C("a", "0") C("o", "1") "loop %i = %a to %n step %o {\n" USE("o") "yield\n}\n"},
};

static const golden merges[] = {
    {"equal products, operands exchanged",
     S N L "%a = mul %n, %l : i32\n%b = mul %l, %n : i32\n" USE("a") USE("b"),
     S N L "%a = mul %n, %l : i32\n" USE("a") USE("a")},
    {"differences are ordered",
     TWICE(S N L "%a = sub %n, %l : i32\n%b = sub %l, %n : i32\n" USE("a") USE("b"))},
    {"into a loop, promises weakened",
     S N L C("z", "0") C("o", "1") "%a = mul %n, %l : i32 {nsw}\nloop %i = %z to %n step %o {\n"
                                   "%b = mul %n, %l : i32 {nuw}\n" USE("b") "yield\n}\n" USE("a"),
     S N L C("z", "0") C("o", "1") "%a = mul %n, %l : i32\nloop %i = %z to %n step %o {\n" USE(
         "a") "yield\n}\n" USE("a")},
    {"not from one side of an if to the other",
     TWICE(S N L C("z", "0") "%c = cmp lt %n, %z : i1\nif %c {\n%a = mul %n, %l : i32\n" USE(
         "a") "yield\n} else {\n%b = mul %n, %l : i32\n" USE("b") "yield\n}\n")},
    {"reads are not merged",
     TWICE(S "%a = ld.shared [%s] : i32\n%b = ld.shared [%s] : i32\n" USE("a") USE("b"))},
    {"shuffles are not merged",
     TWICE(S L C("o", "1") "%a = shuffle xor %l, %o : i32\n%b = shuffle xor %l, %o : i32\n" USE("a")
               USE("b"))},
    {"different modifiers",
     TWICE(S X Y "%a = fdiv %x, %y : f32\n%b = fdiv %x, %y : f32 {approximate}\n" USE("a")
               USE("b"))},
    {"different roundings",
     TWICE(S X Y "%a = fdiv %x, %y : f32\n%b = fdiv %x, %y : f32 {round = down}\n" USE("a")
               USE("b"))},
    {"leaves to the head, parts together",
     S N P C("z", "0") C("o", "1") "%a, %b = unpack %p : i32, i32\nloop %i = %z to %n step %o {\n"
                                   "%f = const 5 : i32\n%c, %d = unpack %p : i32, i32\n" USE("d")
                                       USE("f") "yield\n}\n" USE("a"),
     S N P C("z", "0") C("o", "1") C("f", "5") "%a, %b = unpack %p : i32, i32\n"
                                               "loop %i = %z to %n step %o {\n" USE("b")
                                                   USE("f") "yield\n}\n" USE("a")},
};

#define LOOP(body) "loop %i = %z to %n step %o {\n" body "yield\n}\n"

static const golden hoists[] = {
    {"a chain",
     S N L C("z", "0") C("o", "1") LOOP("%a = mul %n, %l : i32\n%b = add %a, %n : i32\n"
                                        "%c = add %b, %i : i32\n" USE("c")),
     S N L C("z", "0") C("o", "1") "%a = mul %n, %l : i32\n%b = add %a, %n : i32\n" LOOP(
         "%c = add %b, %i : i32\n" USE("c"))},
    {"out of two loops",
     S N L C("z", "0") C("o", "1") LOOP("loop %j = %z to %n step %o {\n%a = mul %n, %l : i32\n"
                                        "%b = mul %n, %i : i32\n" USE("a") USE("b") "yield\n}\n"),
     S N L C("z", "0") C("o", "1") "%a = mul %n, %l : i32\n" LOOP(
         "%b = mul %n, %i : i32\nloop %j = %z to %n step %o {\n" USE("a") USE("b") "yield\n}\n")},
    {"a division that may trap stays",
     TWICE(S N L C("z", "0") C("o", "1") LOOP("%a = div_s %l, %n : i32\n" USE("a")))},
    {"a division that cannot trap",
     S N L C("z", "0") C("o", "1") C("d", "3") LOOP("%a = div_s %n, %d : i32\n" USE("a")),
     S N L C("z", "0") C("o", "1") C("d", "3") "%a = div_s %n, %d : i32\n" LOOP(USE("a"))},
    {"reads stay",
     TWICE(S N P C("z", "0") C("o", "1") LOOP("%a = ld.global [%p] : i32\n" USE("a")))},
    {"what stands in an if stays",
     TWICE(S N L C("z", "0") C("o", "1") LOOP("%c = cmp lt %i, %o : i1\nif %c {\n"
                                              "%a = mul %n, %l : i32\n" USE("a") "yield\n}\n"))},
};

static const golden dead[] = {
    {"unused operations and reads",
     S N L P "%a = mul %n, %l : i32\n%b = add %a, %n : i32\n%c = ld.global [%p] : i32\n"
             "%d = shuffle idx %n, %l : i32\n" USE("n"),
     S N USE("n")},
    {"volatile reads stay", TWICE(P "%c = ld.global [%p] : i32 {volatile}\n")},
    {"an empty if",
     S N L "%c = cmp lt %n, %n : i1\nif %c {\n%a = mul %n, %l : i32\nyield\n}\n" USE("n"),
     S N USE("n")},
    {"a loop without effects",
     S N X C("z", "0") C("o", "1") "%r = loop %i = %z to %n step %o (%a = %x) : f32 {\n"
                                   "%b = fadd %a, %a : f32\nyield %b\n}\n" USE("n"),
     S N USE("n")},
    {"a while stays",
     TWICE("%t = const true : i1\nwhile () {\ncondition %t\n} do () {\nyield\n}\n")},
    {"dead slots of a loop",
     S N X Y C("z", "0") C(
         "o", "1") "%r, %u, %t = loop %i = %z to %n step %o (%a = %x, %b = %y, %c = %y) : f32, "
                   "f32, f32 {\n"
                   "%d = fadd %a, %c : f32\n%e = fmul %b, %b : f32\nyield %d, %e, %a\n}\n" USE("r"),
     S N X Y C("z", "0")
         C("o", "1") "%r, %t = loop %i = %z to %n step %o (%a = %x, %c = %y) : f32, f32 {\n"
                     "%d = fadd %a, %c : f32\nyield %d, %a\n}\n" USE("r")},
    {"dead results of an if",
     S N X Y C("z", "0") "%c = cmp lt %n, %z : i1\n%r, %t = if %c : f32, f32 {\nyield %x, %y\n"
                         "} else {\n%a = fadd %x, %y : f32\nyield %a, %y\n}\n" USE("t"),
     S N Y C("z", "0") "%c = cmp lt %n, %z : i1\n%t = if %c : f32 {\nyield %y\n} else {\n"
                       "yield %y\n}\n" USE("t")},
    {"dead slots of a while",
     S N X C("z", "0") "%r, %t = while (%a = %n, %b = %x) : i32, f32 {\n%c = cmp gt %a, %z : i1\n"
                       "condition %c, %a, %b\n} do (%d, %e) {\n%f = add %d, %d : i32\n"
                       "yield %f, %e\n}\n" USE("r"),
     S N C("z", "0") "%r = while (%a = %n) : i32 {\n%c = cmp gt %a, %z : i1\ncondition %c, %a\n"
                     "} do (%d) {\n%f = add %d, %d : i32\nyield %f\n}\n" USE("r")},
    {"asserts and barriers stay", TWICE(N "%c = cmp lt %n, %n : i1\nassert %c, \"m\"\nbarrier\n")},
};

/* Accesses to two intervals, to any address, and to an interval with disjoint parts for each
 * warp; barriers. */
#define ST1         "st.shared [%s], (%l) {bytes = 0 to 512}\n"
#define LD1         "%a = ld.shared [%s] : i32 {bytes = 0 to 512}\n"
#define ST2         "st.shared [%s + 512], (%l) {bytes = 512 to 1024}\n"
#define LD2         "%b = ld.shared [%s + 512] : i32 {bytes = 512 to 1024}\n"
#define STA         "st.shared [%s], (%l)\n"
#define LDA         "%c = ld.shared [%s] : i32\n"
#define STW         "st.shared [%s], (%l) {bytes = 0 to 512, partition = 3}\n"
#define LDW         "%d = ld.shared [%s] : i32 {bytes = 0 to 512, partition = 3}\n"
#define STG         "st.shared [%s], (%l) {bytes = 0 to 512, partition = 2}\n"
#define LDG         "%e = ld.shared [%s] : i32 {bytes = 0 to 512, partition = 2}\n"
#define B           "barrier {shared}\n"
#define BALL        "barrier\n"
#define BW          "warp_barrier {shared}\n"
#define BG          "group_barrier %g {shared, threads = 64, partition = 2}\n"
#define SLZO        S L C("z", "0") C("o", "1") C("g", "1") N
#define ROUND(body) "loop %i = %z to %n step %o {\n" body "yield\n}\n"

static const golden barriers[] = {
    {"two scratches in turn", SLZO ROUND(B ST1 B LD1 B ST2 B LD2), SLZO ROUND(ST1 B LD1 ST2 B LD2)},
    {"one scratch twice",
     TWICE(SLZO ROUND(B ST1 B LD1 B ST1 B "%h = ld.shared [%s] : i32 {bytes = 0 to 512}\n"))},
    {"nothing before the first", SLZO B ST1 B LD1, SLZO ST1 B LD1},
    {"nothing after the last", SLZO ST1 B LD1 B, SLZO ST1 B LD1},
    {"one after another", SLZO ST1 B B LD1, SLZO ST1 B LD1},
    {"reads only", SLZO LD1 B LDA, SLZO LD1 LDA},
    {"any bytes are all bytes", TWICE(SLZO ST1 B LDA B ST2)},
    {"other bytes", SLZO ST1 B ST2 B LD2, SLZO ST1 ST2 B LD2},
    {"another one orders it already", SLZO ST1 B ST2 B LD1 LD2, SLZO ST1 ST2 B LD1 LD2},
    {"for all memory: stays, and orders", SLZO ST1 BALL B LD1 BALL, SLZO ST1 BALL LD1 BALL},
    {"of the cluster: the same", SLZO ST1 "cluster_barrier\n" B LD1,
     SLZO ST1 "cluster_barrier\n" LD1},
    {"on one side only",
     TWICE(SLZO "%q = cmp lt %n, %o : i1\n" ST1 "if %q {\n" B "yield\n}\n" LD1)},
    {"on both sides",
     SLZO "%q = cmp lt %n, %o : i1\n" ST1 "if %q {\n" B "yield\n} else {\n" B "yield\n}\n" B LD1,
     SLZO "%q = cmp lt %n, %o : i1\n" ST1 "if %q {\nyield\n} else {\nyield\n}\n" B LD1},
    {"needed around the loop", TWICE(SLZO ROUND(LD1 B ST1 B))},
    {"a loop that may not run", SLZO ST1 ROUND(B LD2) B LD1, SLZO ST1 ROUND(LD2) B LD1},
    {"a loop that may run", TWICE(SLZO ST1 ROUND(B LD2) LD1)},
    {"around a while",
     TWICE(SLZO "%r = while (%h = %n) : i32 {\n" ST1 "%q = cmp lt %h, %o : i1\ncondition %q, %h\n"
                "} do (%j) {\n" B LD1 B "yield %j\n}\n")},
    {"within a warp", SLZO STW B BW LDW, SLZO STW BW LDW},
    {"within a warp, a wide one alone", TWICE(SLZO STW B LDW)},
    {"a narrow one beside a wide one", SLZO STA BW B LDA, SLZO STA B LDA},
    {"a narrow one is not enough", TWICE(SLZO STA BW LDA)},
    {"within a group", SLZO STG B BG LDG, SLZO STG BG LDG},
    {"a group of other warps is not known",
     TWICE(SLZO STG B "group_barrier %g {shared, threads = 64}\n" LDG)},
    {"a warp's own within a group's barrier", SLZO STW BG BW LDW, SLZO STW BW LDW},
    {"the same bytes, kept apart otherwise", TWICE(SLZO STG B LDW)},
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define TABLE(name, table, run)                                                                    \
    static void name(void **state) {                                                               \
        (void)state;                                                                               \
        uint32_t failures = 0;                                                                     \
        for (size_t k = 0; k < COUNT(table); k++) {                                                \
            failures += !check(&(table)[k], run);                                                  \
        }                                                                                          \
        assert_int_equal(failures, 0);                                                             \
    }

TABLE(fold_integers, integers, fold_and_sweep)
TABLE(fold_widths, widths, fold_and_sweep)
TABLE(fold_choices, choices, fold_and_sweep)
TABLE(fold_floats, floats, fold_and_sweep)
TABLE(contract, contractions, contract_and_sweep)
TABLE(fold_addresses, addresses, fold_and_sweep)
TABLE(fold_structure, structure, fold_and_sweep)
TABLE(cse, merges, lilac_simt_opt_cse)
TABLE(licm, hoists, lilac_simt_opt_licm)
TABLE(dce, dead, sweep_only)
TABLE(opt_barriers, barriers, lilac_simt_opt_barriers)

/* With the source's word against it nothing contracts. */
static void no_contraction(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_simt_module *module = read_body(context, contractions[0].before);
    module->kernels->no_contraction = true;
    assert_false(lilac_simt_opt_contract(module->kernels));
    module->kernels->no_contraction = false;
    assert_true(lilac_simt_opt_contract(module->kernels));
    lilac_simt_module_destroy(module);
    lilac_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fold_integers),  cmocka_unit_test(fold_widths),
        cmocka_unit_test(fold_choices),   cmocka_unit_test(fold_floats),
        cmocka_unit_test(contract),       cmocka_unit_test(fold_addresses),
        cmocka_unit_test(fold_structure), cmocka_unit_test(cse),
        cmocka_unit_test(licm),           cmocka_unit_test(dce),
        cmocka_unit_test(opt_barriers),   cmocka_unit_test(no_contraction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
