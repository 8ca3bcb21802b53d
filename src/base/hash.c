/* Hashing (a multiply-and-fold mix of 64-bit words, in the family of wyhash and mum-hash) and the
 * generator xoshiro256** of Blackman and Vigna, seeded by splitmix64. */
#include <lilac/base.h>

#include <string.h>

__extension__ typedef unsigned __int128 wide;

static uint64_t fold(uint64_t a, uint64_t b) {
    wide product = (wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t lilac_hash_word(uint64_t word, uint64_t seed) {
    return fold(word ^ 0x9E3779B97F4A7C15u, seed ^ 0xD1B54A32D192ED03u);
}

/* Little-endian whatever the machine, so that hashes are the same everywhere. */
static uint64_t word_at(const unsigned char *bytes, size_t count) {
    uint64_t word = 0;
    for (size_t i = 0; i < count; i++) {
        word |= (uint64_t)bytes[i] << (8 * i);
    }
    return word;
}

uint64_t lilac_hash(const void *bytes, size_t size, uint64_t seed) {
    const unsigned char *at = bytes;
    uint64_t hash = lilac_hash_word(size, seed);
    for (; size >= 8; size -= 8, at += 8) {
        hash = lilac_hash_word(word_at(at, 8), hash);
    }
    if (size) {
        hash = lilac_hash_word(word_at(at, size), hash);
    }
    return hash;
}

static uint64_t splitmix(uint64_t *state) {
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

void lilac_random_seed(lilac_random *random, uint64_t seed) {
    for (int i = 0; i < 4; i++) {
        random->state[i] = splitmix(&seed);
    }
}

static uint64_t rotate(uint64_t x, int by) {
    return (x << by) | (x >> (64 - by));
}

uint64_t lilac_random_next(lilac_random *random) {
    uint64_t *s = random->state;
    uint64_t result = rotate(s[1] * 5, 7) * 9;
    uint64_t shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate(s[3], 45);
    return result;
}

uint64_t lilac_random_below(lilac_random *random, uint64_t bound) {
    /* Values under `reject` would make the low remainders likelier. */
    uint64_t reject = (0 - bound) % bound;
    uint64_t value;
    do {
        value = lilac_random_next(random);
    } while (value < reject);
    return value % bound;
}
