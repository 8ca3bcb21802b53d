/* Names of kernels in PTX.
 *
 * An identifier of PTX is a letter and then letters, digits, _ and $; or one of _ $ % and at least
 * one of those. A few identifiers cannot name a kernel: ptxas knows them as something else where a
 * name is expected, or the module itself declares them. Opcodes, types and directives can. The test
 * unit/ptx_version gives every word of the PTX manual to ptxas. */
#include "emit.h"

/* ptxas 12.8 to 13.0 refuse these as the names of entries. */
static const char *const reserved[] = {"WARP_SZ", "function_name", "inlined_at", "A7", "_", "$"};

/* What a module declares beside its kernels, and parameters and variables in their scopes
 * (ptxas 13.0 crashes where a kernel has the name of another kernel's parameter): whole names,
 * names that end in a number, and how names begin. */
static const char *const declared[] = {"global_smem",    "vprintf",         "__assertfail",
                                       "global_scratch", "profile_scratch", "arguments",
                                       "printed"};
static const char *const declared_numbered[] = {"assert_message_",  "assert_file_",
                                                "assert_function_", "print_format_",
                                                "parameter_",       "argument"};
static const char *const declared_prefixes[] = {"__assertfail_", "vprintf_", "__nv_reservedSMEM_"};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool is_one_of(const char *name, const char *const *names, size_t count) {
    for (size_t k = 0; k < count; k++) {
        if (strcmp(name, names[k]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_reserved(const char *name) {
    if (is_one_of(name, reserved, COUNT(reserved)) || is_one_of(name, declared, COUNT(declared))) {
        return true;
    }
    for (size_t k = 0; k < COUNT(declared_prefixes); k++) {
        if (strncmp(name, declared_prefixes[k], strlen(declared_prefixes[k])) == 0) {
            return true;
        }
    }
    for (size_t k = 0; k < COUNT(declared_numbered); k++) {
        size_t length = strlen(declared_numbered[k]);
        if (strncmp(name, declared_numbered[k], length) == 0 && name[length] != '\0' &&
            strspn(name + length, "0123456789") == strlen(name + length)) {
            return true;
        }
    }
    return false;
}

void lilac_ptx_kernel_name(lilac_text *out, const char *name) {
    lilac_text_puts(out, is_reserved(name) ? "kernel_" : "");
    lilac_text_puts(out, name);
}

bool lilac_ptx_is_identifier(const char *name) {
    size_t length = strlen(name);
    for (size_t k = 0; k < length; k++) {
        char c = name[k];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        bool sign = c == '_' || c == '$', digit = c >= '0' && c <= '9';
        if (!letter && !(sign && length > 1) && !(digit && k > 0)) {
            return false;
        }
    }
    return length > 0;
}
