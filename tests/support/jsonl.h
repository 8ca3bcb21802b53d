/* The JSON that the golden files hold: one object a line, with strings that have no escapes, whole
 * numbers, arrays and objects. Values are pointers into the line, at their first byte. */
#ifndef LILAC_TESTS_JSONL_H
#define LILAC_TESTS_JSONL_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline const char *json_space(const char *at) {
    return at + strspn(at, " \t\r\n");
}

/* One past the end of a value. */
static inline const char *json_skip(const char *value) {
    int depth = 0;
    do {
        if (*value == '"') {
            value = strchr(value + 1, '"');
            if (value == NULL) {
                return "";
            }
        } else if (*value == '[' || *value == '{') {
            depth++;
        } else if (*value == ']' || *value == '}') {
            depth--;
        } else if (depth == 0) {
            return value + strcspn(value, ",]} \r\n");
        }
        value++;
    } while (depth > 0 && *value != '\0');
    return value;
}

/* The value of a member of the object, or NULL. */
static inline const char *json_member(const char *object, const char *key) {
    size_t length = strlen(key);
    for (const char *at = json_space(object + 1); *at == '"';) {
        const char *name = at + 1;
        const char *end = strchr(name, '"');
        if (end == NULL) {
            return NULL;
        }
        const char *value = json_space(json_space(end + 1) + 1);
        if ((size_t)(end - name) == length && memcmp(name, key, length) == 0) {
            return value;
        }
        at = json_space(json_skip(value));
        if (*at == ',') {
            at = json_space(at + 1);
        }
    }
    return NULL;
}

/* The first element of an array, and the one after an element; NULL when there is none. */
static inline const char *json_first(const char *array) {
    const char *at = json_space(array + 1);
    return *at == ']' ? NULL : at;
}

static inline const char *json_after(const char *element) {
    const char *at = json_space(json_skip(element));
    return *at == ',' ? json_space(at + 1) : NULL;
}

static inline int64_t json_number(const char *value) {
    return strtoll(value, NULL, 10);
}

/* The text of a string value, in memory that the caller frees. */
static inline char *json_string(const char *value) {
    size_t length = strcspn(value + 1, "\"");
    char *copy = malloc(length + 1);
    memcpy(copy, value + 1, length);
    copy[length] = '\0';
    return copy;
}

/* The next line of the file in a buffer that grows; NULL at the end. */
typedef struct json_lines {
    FILE *file;
    char *line;
    size_t capacity;
} json_lines;

static inline const char *json_next_line(json_lines *lines) {
    size_t length = 0;
    for (;;) {
        if (lines->capacity < length + 4096) {
            lines->capacity = length + 65536;
            lines->line = realloc(lines->line, lines->capacity);
        }
        if (fgets(lines->line + length, (int)(lines->capacity - length), lines->file) == NULL) {
            return length == 0 ? NULL : lines->line;
        }
        length += strlen(lines->line + length);
        if (length != 0 && lines->line[length - 1] == '\n') {
            return lines->line;
        }
    }
}

#endif
