/* Suggestions for misspelt names: the edit distance of Wagner and Fischer. */
#include <lilac/base.h>
#include <lilac/bits.h>

#include <string.h>

enum { LONGEST = 63 };

/* Insertions, deletions and replacements that turn one string into the other. */
static uint32_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length) {
    uint32_t row[LONGEST + 1];
    if (b_length > LONGEST) {
        return UINT32_MAX;
    }
    for (uint32_t j = 0; j <= b_length; j++) {
        row[j] = j;
    }
    for (uint32_t i = 1; i <= a_length; i++) {
        uint32_t diagonal = row[0];
        row[0] = i;
        for (uint32_t j = 1; j <= b_length; j++) {
            const uint32_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = min_u32(replaced, min_u32(row[j] + 1, row[j - 1] + 1));
        }
    }
    return row[b_length];
}

const char *lilac_nearest_name(const char *wanted, size_t length, const char *const *names,
                               size_t count) {
    const char *nearest = NULL;
    if (length == 0 || length > LONGEST) {
        return NULL;
    }
    uint32_t best = (uint32_t)length / 3 + 1; /* a name further away is no help */
    for (size_t i = 0; i < count; i++) {
        const uint32_t distance = edit_distance(wanted, length, names[i], strlen(names[i]));
        if (distance <= best && (nearest == NULL || distance < best)) {
            best = distance;
            nearest = names[i];
        }
    }
    return nearest;
}
