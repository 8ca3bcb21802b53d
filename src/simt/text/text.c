/* Formats of print: a walk over C's conversion specifications.
 *
 *     %  flags  width  .precision  ll  letter
 *
 * Widths and precisions that are values (`*`) are not among them. */
#include "internal.h"

#include <string.h>

static const char *skip_digits(const char *at) {
    return at + strspn(at, "0123456789");
}

bool lilac_simt_next_conversion(const char **at, lilac_simt_conversion *conversion) {
    const char *begin = strchr(*at, '%');
    if (begin == NULL) {
        return false;
    }
    const char *end = begin + 1 + strspn(begin + 1, "-+ #0");
    const char *digits = end;
    end = skip_digits(end);
    bool wild = end - digits > 3;
    if (*end == '.') {
        digits = end + 1;
        end = skip_digits(digits);
        wild |= end - digits > 3;
    }
    bool wide = strncmp(end, "ll", 2) == 0;
    end += wide ? 2 : 0;
    char letter = *end;
    bool integer = letter != 0 && strchr("diuxX", letter) != NULL;
    bool other = letter != 0 && strchr("fegp%", letter) != NULL && !wide;
    bool percent = letter == '%' && end != begin + 1;
    bool known = (integer || other) && !percent && !wild;
    *conversion = (lilac_simt_conversion){.begin = begin,
                                          .end = letter != 0 ? end + 1 : end,
                                          .letter = known ? letter : (char)0,
                                          .wide = wide || letter == 'p'};
    *at = conversion->end;
    return true;
}
