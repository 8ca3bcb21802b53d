/* numpy's .npy files.
 *
 *   \x93NUMPY major minor length(2 bytes in format 1, 4 in 2 and 3)
 *   {'descr': '<f4', 'fortran_order': False, 'shape': (4, 1000), }   padded with spaces, newline
 *   the elements
 *
 * The header is the literal of a Python dictionary; a small reader for just that literal follows.
 */
#include "command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- element types ---------------------------------------------------------------------- */

void npy_type_name(lilac_text *out, char kind, uint32_t bytes) {
    if (kind == 'b') {
        lilac_text_puts(out, "bool");
        return;
    }
    if (kind == 'V') {
        lilac_text_printf(out, "elements of %u bytes without a type (ml_dtypes)", bytes);
        return;
    }
    const char *word = kind == 'f' ? "float" : kind == 'i' ? "int" : "uint";
    lilac_text_printf(out, "%s%u", word, 8 * bytes);
}

static bool is_numpy_float(lilac_scalar scalar) {
    return scalar == LILAC_F16 || scalar == LILAC_F32 || scalar == LILAC_F64;
}

bool npy_type_for(npy *array, lilac_scalar scalar) {
    const uint32_t bits = lilac_scalar_bits(scalar);
    if (scalar == LILAC_I1) {
        array->kind = 'b';
        array->bytes = 1;
        return true;
    }
    if (bits < 8 || bits > 64 || bits % 8 != 0) {
        return false;
    }
    const bool raw = lilac_scalar_is_float(scalar) && !is_numpy_float(scalar);
    array->kind = is_numpy_float(scalar) ? 'f' : raw && bits == 8 ? 'u' : 'i';
    array->bytes = bits / 8;
    return true;
}

bool npy_holds(const npy *array, lilac_scalar scalar) {
    npy own;
    if (!npy_type_for(&own, scalar) || own.bytes != array->bytes) {
        return false;
    }
    if (array->kind == 'V') { /* raw bits: element types that numpy does not have */
        return lilac_scalar_is_float(scalar) && !is_numpy_float(scalar);
    }
    const bool integer = array->kind == 'i' || array->kind == 'u';
    return own.kind == 'i' || own.kind == 'u' ? integer : array->kind == own.kind;
}

/* ---- the header ------------------------------------------------------------------------- */

typedef struct npy_header {
    const char *at, *end;
    lilac_text *why;
} npy_header;

static bool refuse(lilac_text *why, const char *reason) {
    lilac_text_puts(why, reason);
    return false;
}

static void skip_blanks(npy_header *header) {
    while (header->at < header->end && strchr(" \t\r\n", *header->at) != NULL && *header->at) {
        header->at++;
    }
}

static bool accept(npy_header *header, const char *word) {
    const size_t length = strlen(word);
    skip_blanks(header);
    if ((size_t)(header->end - header->at) < length || memcmp(header->at, word, length) != 0) {
        return false;
    }
    header->at += length;
    return true;
}

/* A quoted string without escapes, into `out` of `size` bytes. */
static bool read_string(npy_header *header, char *out, size_t size) {
    skip_blanks(header);
    if (header->at >= header->end || (*header->at != '\'' && *header->at != '"')) {
        return false;
    }
    const char quote = *header->at++;
    size_t length = 0;
    while (header->at < header->end && *header->at != quote && length + 1 < size) {
        out[length++] = *header->at++;
    }
    out[length] = '\0';
    if (header->at >= header->end || *header->at != quote) {
        return false;
    }
    header->at++;
    return true;
}

static bool read_size(npy_header *header, uint64_t *value) {
    skip_blanks(header);
    const char *start = header->at;
    uint64_t sum = 0;
    for (; header->at < header->end && *header->at >= '0' && *header->at <= '9'; header->at++) {
        const uint64_t digit = (uint64_t)(*header->at - '0');
        if (sum > (INT64_MAX - digit) / 10) {
            return false;
        }
        sum = 10 * sum + digit;
    }
    *value = sum;
    return header->at > start;
}

static bool read_shape(npy_header *header, npy *array) {
    if (!accept(header, "(")) {
        return refuse(header->why, "its header has a shape that is no tuple");
    }
    while (!accept(header, ")")) {
        if (array->rank == NPY_MAX_RANK) {
            return refuse(header->why, "it has more than 32 dimensions");
        }
        if (!read_size(header, &array->shape[array->rank++])) {
            return refuse(header->why, "its header has a size that is no number");
        }
        if (!accept(header, ",")) {
            if (!accept(header, ")")) {
                return refuse(header->why, "its header's shape is not closed");
            }
            break;
        }
    }
    return true;
}

static bool read_descr(npy_header *header, npy *array) {
    char descr[32];
    if (accept(header, "[")) {
        return refuse(header->why, "it holds records; an array of numbers is needed");
    }
    if (!read_string(header, descr, sizeof descr)) {
        return refuse(header->why, "its header has no readable descr");
    }
    const char *type = strchr("<>|=", descr[0]) != NULL && descr[0] ? descr + 1 : descr;
    uint64_t bytes = 0;
    if (type[0] == '\0' || !read_number(type + 1, 1024, &bytes)) {
        bytes = 0;
    }
    const bool known = (type[0] == 'f' && (bytes == 2 || bytes == 4 || bytes == 8)) ||
                       (strchr("iu", type[0]) != NULL && type[0] != '\0' &&
                        (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8)) ||
                       (type[0] == 'b' && bytes == 1) ||
                       /* what ml_dtypes' bfloat16 and 8-bit floats are saved as */
                       (type[0] == 'V' && (bytes == 1 || bytes == 2)) ||
                       (type[0] == 'f' && bytes == 1);
    if (!known) {
        lilac_text_printf(header->why, "it holds elements of type '%s'", descr);
        lilac_text_puts(header->why, "; floats, integers and bool are supported");
        return false;
    }
    if (descr[0] == '>' && bytes > 1) {
        lilac_text_printf(header->why, "its elements ('%s') are big-endian", descr);
        lilac_text_puts(header->why, "; only little-endian files are supported");
        return false;
    }
    array->kind = type[0] == 'f' && bytes == 1 ? 'V' : type[0];
    array->bytes = (uint32_t)bytes;
    return true;
}

static bool read_order(npy_header *header, bool *fortran) {
    *fortran = accept(header, "True");
    if (!*fortran && !accept(header, "False")) {
        return refuse(header->why, "its header's fortran_order is neither True nor False");
    }
    return true;
}

static bool read_entry(npy_header *header, npy *array, const char *key, bool *fortran) {
    if (strcmp(key, "descr") == 0) {
        return read_descr(header, array);
    }
    if (strcmp(key, "fortran_order") == 0) {
        return read_order(header, fortran);
    }
    if (strcmp(key, "shape") == 0) {
        return read_shape(header, array);
    }
    lilac_text_printf(header->why, "its header has an unknown entry '%s'", key);
    return false;
}

static bool read_dictionary(npy_header *header, npy *array) {
    char key[32];
    bool fortran = false;
    uint32_t seen = 0;
    if (!accept(header, "{")) {
        return refuse(header->why, "its header is no dictionary");
    }
    while (!accept(header, "}")) {
        if (!read_string(header, key, sizeof key) || !accept(header, ":")) {
            return refuse(header->why, "its header is malformed");
        }
        seen++;
        if (!read_entry(header, array, key, &fortran)) {
            return false;
        }
        if (!accept(header, ",")) {
            if (!accept(header, "}")) {
                return refuse(header->why, "its header is malformed");
            }
            break;
        }
    }
    if (seen != 3 || array->bytes == 0) {
        return refuse(header->why, "its header needs descr, fortran_order and shape, once each");
    }
    if (fortran && array->rank > 1) {
        return refuse(header->why, "it is in Fortran order; save it in C order "
                                   "(numpy.ascontiguousarray)");
    }
    return true;
}

static bool count_elements(npy *array, lilac_text *why) {
    array->count = 1;
    for (uint32_t i = 0; i < array->rank; i++) {
        const uint64_t size = array->shape[i];
        if (size != 0 && array->count > (UINT64_C(1) << 40) / size) {
            return refuse(why, "it says it holds more than 2^40 elements");
        }
        array->count *= size;
    }
    return true;
}

/* ---- files ------------------------------------------------------------------------------ */

static bool read_preamble(FILE *file, uint32_t *length, lilac_text *why) {
    uint8_t bytes[12];
    if (fread(bytes, 1, 8, file) != 8 || memcmp(bytes, "\x93NUMPY", 6) != 0) {
        return refuse(why, "it is no .npy file");
    }
    if (bytes[6] < 1 || bytes[6] > 3) {
        lilac_text_printf(why, "it has format %u.%u; 1, 2 and 3 are supported", bytes[6], bytes[7]);
        return false;
    }
    const size_t width = bytes[6] == 1 ? 2 : 4;
    if (fread(bytes + 8, 1, width, file) != width) {
        return refuse(why, "it is cut short in its header");
    }
    *length = 0;
    for (size_t i = width; i > 0; i--) {
        *length = *length << 8 | bytes[7 + i];
    }
    if (*length > 1 << 20) {
        return refuse(why, "its header is longer than 1 MiB");
    }
    return true;
}

static bool read_header(FILE *file, npy *array, lilac_text *why) {
    uint32_t length;
    if (!read_preamble(file, &length, why)) {
        return false;
    }
    char *text = lilac_heap_grow(NULL, (size_t)length + 1);
    bool good = fread(text, 1, length, file) == length;
    if (good) {
        npy_header header = {.at = text, .end = text + length, .why = why};
        good = read_dictionary(&header, array) && count_elements(array, why);
    } else {
        refuse(why, "it is cut short in its header");
    }
    lilac_heap_free(text);
    return good;
}

/* Grows with what the file really holds, so that a header that lies costs nothing. */
static bool read_elements(FILE *file, npy *array, lilac_text *why) {
    const uint64_t size = array->count * array->bytes;
    uint64_t have = 0, capacity = 0;
    array->data = lilac_heap_grow(NULL, 1);
    while (have < size) {
        if (have == capacity) {
            capacity = capacity == 0 ? 1 << 16 : 2 * capacity;
            capacity = capacity < size ? capacity : size;
            array->data = lilac_heap_grow(array->data, capacity);
        }
        const size_t got = fread(array->data + have, 1, capacity - have, file);
        if (got == 0) {
            lilac_text_printf(why,
                              "it is cut short: its shape needs %" PRIu64 " bytes, it has %" PRIu64,
                              size, have);
            return false;
        }
        have += got;
    }
    return true;
}

bool npy_read(npy *array, const char *path, lilac_text *why) {
    *array = (npy){0};
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        lilac_text_printf(why, "it cannot be read: %s", strerror(errno));
        return false;
    }
    const bool good = read_header(file, array, why) && read_elements(file, array, why);
    fclose(file);
    if (!good) {
        npy_clear(array);
    }
    return good;
}

void npy_clear(npy *array) {
    lilac_heap_free(array->data);
    array->data = NULL;
}

static void put_header(lilac_text *out, const npy *array) {
    enum { PREAMBLE = 10, ALIGNMENT = 64 };
    lilac_text dictionary;
    lilac_text_init(&dictionary);
    lilac_text_printf(&dictionary, "{'descr': '%c%c%u', 'fortran_order': False, 'shape': (",
                      array->bytes == 1 ? '|' : '<', array->kind, array->bytes);
    for (uint32_t i = 0; i < array->rank; i++) {
        lilac_text_printf(&dictionary, "%s%" PRIu64, i == 0 ? "" : ", ", array->shape[i]);
    }
    lilac_text_puts(&dictionary, array->rank == 1 ? ",), }" : "), }");
    while ((PREAMBLE + dictionary.length + 1) % ALIGNMENT != 0) {
        lilac_text_char(&dictionary, ' ');
    }
    lilac_text_char(&dictionary, '\n');
    lilac_text_put(out, "\x93NUMPY\x01\x00", 8);
    lilac_text_char(out, (char)(dictionary.length & 0xFF));
    lilac_text_char(out, (char)(dictionary.length >> 8));
    lilac_text_put(out, lilac_text_get(&dictionary), dictionary.length);
    lilac_text_clear(&dictionary);
}

bool npy_write(const npy *array, const char *path) {
    lilac_text text;
    lilac_text_init(&text);
    put_header(&text, array);
    lilac_text_put(&text, (const char *)array->data, array->count * array->bytes);
    const bool good = file_write(path, lilac_text_get(&text), text.length);
    lilac_text_clear(&text);
    return good;
}
