/* Scanner: tokens of MLIR's assembly, one at a time, straight from the text. White space and //
 * comments separate tokens. A byte that begins no token is reported once and given as an ERROR
 * token, so that readers stop where it stands. */
#include <lilac/source.h>

#include <inttypes.h>
#include <string.h>

enum {
    LETTER = 1,    /* begins a word */
    DIGIT = 2,     /* begins a number */
    WORD_MORE = 4, /* continues a word */
    SUFFIX = 8,    /* continues a name behind a sigil */
    HEX = 16,
    SPACE = 32,
    SIGIL = 64,
    SIGN = 128 /* is a token of its own */
};

/* The classes of the first 128 bytes; the others have none. */
/* clang-format off */
#define S SPACE,
#define I SIGIL,
#define P SIGN,
#define M (SUFFIX | SIGN),                        /* minus */
#define D (WORD_MORE | SUFFIX | SIGN),            /* dot */
#define C (WORD_MORE | SUFFIX),                   /* dollar */
#define N (DIGIT | WORD_MORE | SUFFIX | HEX),
#define H (LETTER | WORD_MORE | SUFFIX | HEX),
#define L (LETTER | WORD_MORE | SUFFIX),
#define o 0,
static const uint8_t classes[256] = {
    o o o o o o o o o S S o o S o o  o o o o o o o o o o o o o o o o
    /*! " # $ % & ' ( ) * + , - . /  0 1 2 3 4 5 6 7 8 9 : ; < = > ? */
    S I o I C I P o P P P P P M D P  N N N N N N N N N N P P P P P P
    /* @ A … O                       P … Z [ \ ] ^ _ */
    I H H H H H H L L L L L L L L L  L L L L L L L L L L L P o P I L
    /* ` a … o                       p … z { | } ~ */
    o H H H H H H L L L L L L L L L  L L L L L L L L L L L P P P o o
};
#undef S
#undef I
#undef P
#undef M
#undef D
#undef C
#undef N
#undef H
#undef L
#undef o
/* clang-format on */

static unsigned class_at(const lilac_scanner *s, size_t at) {
    return at < s->length ? classes[(unsigned char)s->text[at]] : 0;
}

static size_t skip_space(const lilac_scanner *s, size_t at) {
    for (;;) {
        while (class_at(s, at) & SPACE) {
            at++;
        }
        if (at + 1 < s->length && s->text[at] == '/' && s->text[at + 1] == '/') {
            while (at < s->length && s->text[at] != '\n') {
                at++;
            }
            continue;
        }
        return at;
    }
}

static size_t run_of(const lilac_scanner *s, size_t at, unsigned class) {
    while (class_at(s, at) & class) {
        at++;
    }
    return at;
}

static void set_token(lilac_scanner *s, lilac_token_kind kind, size_t word, size_t word_end,
                      size_t end) {
    s->kind = kind;
    s->word = s->text + word;
    s->word_length = (uint32_t)(word_end - word);
    s->end = (uint32_t)end;
}

static void scan_error(lilac_scanner *s, size_t at, const char *what) {
    set_token(s, LILAC_TOKEN_ERROR, at, at + 1, at + 1);
    lilac_error(s->context, (lilac_position){s->source, (uint32_t)at}, 0, "syntax", "%s", what);
}

static void scan_number(lilac_scanner *s, size_t at) {
    size_t begin = at;
    if (s->text[at] == '0' && at + 1 < s->length && s->text[at + 1] == 'x' &&
        (class_at(s, at + 2) & HEX)) {
        at = run_of(s, at + 2, HEX);
        set_token(s, LILAC_TOKEN_INTEGER, begin, at, at);
        return;
    }
    at = run_of(s, at, DIGIT);
    if (at < s->length && s->text[at] == '.') {
        at = run_of(s, at + 1, DIGIT);
        size_t exponent = at;
        if (exponent < s->length && (s->text[exponent] == 'e' || s->text[exponent] == 'E')) {
            exponent++;
            if (exponent < s->length && (s->text[exponent] == '+' || s->text[exponent] == '-')) {
                exponent++;
            }
            if (class_at(s, exponent) & DIGIT) {
                at = run_of(s, exponent, DIGIT);
            }
        }
        set_token(s, LILAC_TOKEN_FLOAT, begin, at, at);
        return;
    }
    set_token(s, LILAC_TOKEN_INTEGER, begin, at, at);
}

/* A quoted string that begins at `at`; the text between the quotes is the word. */
static void scan_string(lilac_scanner *s, lilac_token_kind kind, size_t at) {
    size_t begin = at + 1;
    for (at = begin; at < s->length && s->text[at] != '\n'; at++) {
        if (s->text[at] == '\\' && at + 1 < s->length) {
            at++;
        } else if (s->text[at] == '"') {
            set_token(s, kind, begin, at, at + 1);
            return;
        }
    }
    scan_error(s, begin - 1, "this string has no closing quote");
}

static void scan_sigil(lilac_scanner *s, size_t at) {
    char sigil = s->text[at];
    lilac_token_kind kind = sigil == '%'   ? LILAC_TOKEN_VALUE
                            : sigil == '#' ? LILAC_TOKEN_HASH
                            : sigil == '@' ? LILAC_TOKEN_SYMBOL
                            : sigil == '^' ? LILAC_TOKEN_BLOCK
                                           : LILAC_TOKEN_BANG;
    if (kind == LILAC_TOKEN_SYMBOL && at + 1 < s->length && s->text[at + 1] == '"') {
        scan_string(s, kind, at + 1);
        return;
    }
    size_t end = run_of(s, at + 1, kind == LILAC_TOKEN_BANG ? WORD_MORE : SUFFIX);
    /* "-" continues a name, but "%a->" is a name and an arrow. */
    while (end > at + 1 && s->text[end - 1] == '-') {
        end--;
    }
    if (end == at + 1) {
        scan_error(s, at, "a name must follow this sign");
        return;
    }
    set_token(s, kind, at + 1, end, end);
}

static void scan_at(lilac_scanner *s, size_t at) {
    s->offset = (uint32_t)at;
    s->punctuation = 0;
    if (at >= s->length) {
        set_token(s, LILAC_TOKEN_END, s->length, s->length, s->length);
        return;
    }
    char c = s->text[at];
    unsigned class = classes[(unsigned char)c];
    if (class & LETTER) {
        size_t end = run_of(s, at, WORD_MORE);
        set_token(s, LILAC_TOKEN_WORD, at, end, end);
    } else if (class & DIGIT) {
        scan_number(s, at);
    } else if (c == '"') {
        scan_string(s, LILAC_TOKEN_STRING, at);
    } else if (class & SIGIL) {
        scan_sigil(s, at);
    } else if (c == '-' && at + 1 < s->length && s->text[at + 1] == '>') {
        set_token(s, LILAC_TOKEN_ARROW, at, at + 2, at + 2);
    } else if (class & SIGN) {
        s->punctuation = c;
        set_token(s, LILAC_TOKEN_PUNCTUATION, at, at + 1, at + 1);
    } else {
        scan_error(s, at, "this byte begins nothing that is known here");
    }
}

void lilac_scanner_init(lilac_scanner *scanner, lilac_context *context, uint32_t source) {
    *scanner = (lilac_scanner){.context = context, .source = source};
    scanner->text = lilac_source_bytes(context, source, &scanner->length);
    scan_at(scanner, skip_space(scanner, 0));
}

void lilac_scanner_next(lilac_scanner *scanner) {
    scanner->previous_end = scanner->end;
    scan_at(scanner, skip_space(scanner, scanner->end));
}

void lilac_scanner_seek(lilac_scanner *scanner, uint32_t offset) {
    scan_at(scanner, skip_space(scanner, offset));
}

lilac_position lilac_scanner_position(const lilac_scanner *scanner) {
    return (lilac_position){scanner->source, scanner->offset};
}

bool lilac_scanner_is(const lilac_scanner *scanner, char punctuation) {
    return scanner->kind == LILAC_TOKEN_PUNCTUATION && scanner->punctuation == punctuation;
}

bool lilac_scanner_is_word(const lilac_scanner *scanner, const char *word) {
    size_t length = strlen(word);
    return scanner->kind == LILAC_TOKEN_WORD && scanner->word_length == length &&
           memcmp(scanner->word, word, length) == 0;
}

bool lilac_scanner_accept(lilac_scanner *scanner, char punctuation) {
    if (!lilac_scanner_is(scanner, punctuation)) {
        return false;
    }
    lilac_scanner_next(scanner);
    return true;
}

bool lilac_scanner_accept_word(lilac_scanner *scanner, const char *word) {
    if (!lilac_scanner_is_word(scanner, word)) {
        return false;
    }
    lilac_scanner_next(scanner);
    return true;
}

bool lilac_scanner_refuse(lilac_scanner *scanner, lilac_position position, const char *id,
                          const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    lilac_verror(scanner->context, position, 0, id, format, arguments);
    va_end(arguments);
    return false;
}

bool lilac_scanner_expected(lilac_scanner *scanner, const char *what) {
    lilac_position position = lilac_scanner_position(scanner);
    if (scanner->kind == LILAC_TOKEN_ERROR) {
        return false; /* reported when it was scanned */
    }
    if (scanner->kind == LILAC_TOKEN_END) {
        lilac_error(scanner->context, position, 0, "syntax",
                    "expected %s, found the end of the text", what);
        return false;
    }
    uint32_t length = scanner->end - scanner->offset;
    lilac_error(scanner->context, position, 0, "syntax", "expected %s, found '%.*s'", what,
                (int)(length > 40 ? 40 : length), scanner->text + scanner->offset);
    return false;
}

bool lilac_scanner_expect(lilac_scanner *scanner, char punctuation) {
    if (lilac_scanner_accept(scanner, punctuation)) {
        return true;
    }
    char what[] = {'\'', punctuation, '\'', 0};
    return lilac_scanner_expected(scanner, what);
}

bool lilac_scanner_expect_word(lilac_scanner *scanner, const char *word) {
    if (lilac_scanner_accept_word(scanner, word)) {
        return true;
    }
    return lilac_scanner_expected(scanner, word);
}

int lilac_hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c |= 32; /* lower case */
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool digit_value(char c, unsigned base, unsigned *value) {
    int digit = lilac_hex_digit(c);
    *value = (unsigned)digit;
    return digit >= 0 && *value < base;
}

/* Magnitude of digits; false when it needs more than 64 bits. */
static bool read_digits(const char *digits, size_t length, uint64_t *value) {
    unsigned base = 10, digit;
    size_t at = 0;
    if (length > 2 && digits[0] == '0' && digits[1] == 'x') {
        base = 16;
        at = 2;
    }
    uint64_t sum = 0;
    for (; at < length && digit_value(digits[at], base, &digit); at++) {
        if (sum > (UINT64_MAX - digit) / base) {
            return false;
        }
        sum = sum * base + digit;
    }
    *value = sum;
    return true;
}

bool lilac_scanner_integer(lilac_scanner *scanner, int64_t *value) {
    lilac_position position = lilac_scanner_position(scanner);
    bool negative = lilac_scanner_accept(scanner, '-');
    if (scanner->kind != LILAC_TOKEN_INTEGER) {
        return lilac_scanner_expected(scanner, "an integer");
    }
    uint64_t magnitude = 0;
    bool fits = read_digits(scanner->word, scanner->word_length, &magnitude);
    /* Unsigned 64-bit constants are written as they are and kept as bits. */
    if (!fits || (negative && magnitude > (uint64_t)INT64_MAX + 1)) {
        lilac_error(scanner->context, position, 0, "integer-too-large",
                    "this integer does not fit 64 bits");
        return false;
    }
    *value = (int64_t)(negative ? 0 - magnitude : magnitude);
    lilac_scanner_next(scanner);
    return true;
}

bool lilac_scanner_shape(lilac_scanner *scanner, int64_t *shape, uint32_t max, uint32_t *rank) {
    *rank = 0;
    for (;;) {
        if (lilac_scanner_is(scanner, '?') || lilac_scanner_is(scanner, '*')) {
            lilac_error(scanner->context, lilac_scanner_position(scanner), 0, "unknown-dimension",
                        "dimensions must be known numbers");
            return false;
        }
        if (scanner->kind != LILAC_TOKEN_INTEGER) {
            return true;
        }
        /* Digits up to the x: "0x16" here is a zero, not a hexadecimal number. */
        size_t digits = run_of(scanner, scanner->offset, DIGIT);
        uint64_t size = 0;
        bool fits = read_digits(scanner->text + scanner->offset, digits - scanner->offset, &size);
        if (!fits || size == 0 || size > (uint64_t)INT64_MAX) {
            lilac_error(scanner->context, lilac_scanner_position(scanner), 0, "bad-dimension",
                        "a dimension must be between 1 and 2^63 - 1");
            return false;
        }
        if (*rank == max) {
            lilac_error(scanner->context, lilac_scanner_position(scanner), 0, "rank-too-large",
                        "at most %u dimensions are supported", max);
            return false;
        }
        shape[(*rank)++] = (int64_t)size;
        size_t x = skip_space(scanner, digits);
        if (x >= scanner->length || scanner->text[x] != 'x') {
            scanner->end = (uint32_t)digits;
            lilac_scanner_next(scanner);
            return lilac_scanner_expected(scanner, "'x' after a dimension");
        }
        lilac_scanner_seek(scanner, (uint32_t)x + 1);
    }
}
