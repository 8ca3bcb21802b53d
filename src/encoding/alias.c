/* encoding: the attribute aliases of a text.
 *
 * A trie over the bits of the names' hashes, four ways a level: a name's node is found by walking
 * two hash bits at a time from the root and comparing names on the way, so that a text with very
 * many aliases costs a logarithm for each, with no table to grow.
 */
#include <lilac/encoding.h>

#include <string.h>

struct lilac_encoding_alias {
    uint64_t hash;
    const char *name;
    size_t length;
    const lilac_encoding *encoding;
    struct lilac_encoding_alias *child[4];
};

/* Where the alias is, or where it would hang. The walk uses up the hash after 32 levels and then
 * goes on with zeros, which makes a list of names with equal hashes. */
static struct lilac_encoding_alias *const *find(struct lilac_encoding_alias *const *place,
                                                const char *name, size_t length, uint64_t hash) {
    for (uint64_t rest = hash; *place != NULL; rest >>= 2) {
        const struct lilac_encoding_alias *alias = *place;
        if (alias->hash == hash && alias->length == length &&
            memcmp(alias->name, name, length) == 0) {
            break;
        }
        place = &(*place)->child[rest & 3];
    }
    return place;
}

void lilac_encoding_define(lilac_encoding_aliases *aliases, lilac_context *context,
                           const char *name, size_t length, const lilac_encoding *encoding) {
    uint64_t hash = lilac_hash(name, length, 0);
    aliases->context = context;
    struct lilac_encoding_alias **place =
        (struct lilac_encoding_alias **)find(&aliases->first, name, length, hash);
    if (*place == NULL) {
        *place = lilac_arena_new(lilac_context_arena(context), struct lilac_encoding_alias);
        (*place)->hash = hash;
        (*place)->name = lilac_arena_copy(lilac_context_arena(context), name, length);
        (*place)->length = length;
    }
    (*place)->encoding = encoding;
}

const lilac_encoding *lilac_encoding_lookup(const lilac_encoding_aliases *aliases, const char *name,
                                            size_t length) {
    uint64_t hash = lilac_hash(name, length, 0);
    const struct lilac_encoding_alias *alias = *find(&aliases->first, name, length, hash);
    return alias == NULL ? NULL : alias->encoding;
}
