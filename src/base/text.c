/* Text: a string that grows by half its size, always NUL-terminated once it holds anything. */
#include <lilac/base.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

void lilac_text_init(lilac_text *text) {
    *text = (lilac_text){0};
}

void lilac_text_clear(lilac_text *text) {
    lilac_heap_free(text->bytes);
    lilac_text_init(text);
}

void lilac_text_reset(lilac_text *text) {
    text->length = 0;
    if (text->bytes) {
        text->bytes[0] = 0;
    }
}

/* Reserves `more` bytes and the NUL; returns their address. */
static char *reserve(lilac_text *text, size_t more) {
    size_t needed = text->length + more + 1;
    if (needed > text->capacity) {
        size_t capacity = text->capacity + text->capacity / 2;
        if (capacity < needed) {
            capacity = needed < 64 ? 64 : needed;
        }
        text->bytes = lilac_heap_grow(text->bytes, capacity);
        text->capacity = capacity;
    }
    return text->bytes + text->length;
}

void lilac_text_put(lilac_text *text, const char *bytes, size_t length) {
    char *to = reserve(text, length);
    if (length) {
        memcpy(to, bytes, length);
    }
    to[length] = 0;
    text->length += length;
}

void lilac_text_puts(lilac_text *text, const char *string) {
    lilac_text_put(text, string, strlen(string));
}

void lilac_text_char(lilac_text *text, char c) {
    lilac_text_put(text, &c, 1);
}

void lilac_text_repeat(lilac_text *text, char c, size_t count) {
    char *to = reserve(text, count);
    memset(to, c, count);
    to[count] = 0;
    text->length += count;
}

void lilac_text_unsigned(lilac_text *text, uint64_t value) {
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    lilac_text_put(text, digits + at, sizeof digits - at);
}

void lilac_text_signed(lilac_text *text, int64_t value) {
    if (value < 0) {
        lilac_text_char(text, '-');
        lilac_text_unsigned(text, 0 - (uint64_t)value);
    } else {
        lilac_text_unsigned(text, (uint64_t)value);
    }
}

void lilac_text_vprintf(lilac_text *text, const char *format, va_list arguments) {
    assert(format);
    va_list again;
    va_copy(again, arguments);
    size_t space = 64;
    char *to = reserve(text, space);
    int length = vsnprintf(to, space + 1, format, arguments);
    if (length > (int)space) {
        space = (size_t)length;
        to = reserve(text, space);
        vsnprintf(to, space + 1, format, again);
    }
    text->length += length > 0 ? (size_t)length : 0;
    va_end(again);
}

void lilac_text_printf(lilac_text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    lilac_text_vprintf(text, format, arguments);
    va_end(arguments);
}

/* Length of the well-formed UTF-8 sequence that starts here, or 0. */
static size_t utf8_length(const unsigned char *bytes, size_t left) {
    size_t length = bytes[0] < 0x80   ? 1
                    : bytes[0] < 0xC2 ? 0
                    : bytes[0] < 0xE0 ? 2
                    : bytes[0] < 0xF0 ? 3
                    : bytes[0] < 0xF5 ? 4
                                      : 0;
    if (length > left) {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    if ((bytes[0] == 0xE0 && bytes[1] < 0xA0) || (bytes[0] == 0xED && bytes[1] > 0x9F) ||
        (bytes[0] == 0xF0 && bytes[1] < 0x90) || (bytes[0] == 0xF4 && bytes[1] > 0x8F)) {
        return 0;
    }
    return length;
}

void lilac_text_json(lilac_text *text, const char *bytes, size_t length) {
    lilac_text_char(text, '"');
    for (size_t i = 0; i < length;) {
        unsigned char c = (unsigned char)bytes[i];
        size_t width = utf8_length((const unsigned char *)bytes + i, length - i);
        if (c == '"' || c == '\\') {
            lilac_text_char(text, '\\');
            lilac_text_char(text, (char)c);
        } else if (c == '\n') {
            lilac_text_puts(text, "\\n");
        } else if (c == '\t') {
            lilac_text_puts(text, "\\t");
        } else if (c < 0x20) {
            lilac_text_printf(text, "\\u%04x", c);
        } else if (width == 0) { /* not UTF-8: the replacement character */
            lilac_text_puts(text, "\\ufffd");
        } else {
            lilac_text_put(text, bytes + i, width);
            i += width - 1;
        }
        i++;
    }
    lilac_text_char(text, '"');
}

const char *lilac_text_get(const lilac_text *text) {
    return text->bytes ? text->bytes : "";
}
