/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/fletcher.h"

#include <string.h>

#define MODULUS UINT64_C(65535)

/* So many times 8 bytes, no sum of 32 bits overflows: 361 * 360 / 2 * 0xFFFF.
 */
#define BLOCK 360

#define EVEN_WORDS UINT64_C(0x0000FFFF0000FFFF)

/* Both sums, reduced; any: one word at least is not zero. */
struct sums {
    uint64_t one, two;
    uint64_t any;
};

/*
 * 8 bytes at a time, as four words of the machine's own byte order.  Word l of
 * each goes to a sum of its own, two of them in a number of 64 bits:
 * a[l] is their sum, b[l] the sum of all a[l] on the way.  A word counts as
 * often in the second sum as there are words from it to the end, which is
 * 4 * b[l] - l * a[l].
 */
static void add_block(struct sums *s, const unsigned char *data, size_t count)
{
    uint64_t even = 0, odd = 0, evens = 0, odds = 0;
    uint64_t a[4], b[4], one = 0, two = 0;
    size_t i;

    for (i = 0; i < count; i++, data += 8) {
        uint64_t words;

        memcpy(&words, data, 8);
        even += words & EVEN_WORDS;
        odd += words >> 16 & EVEN_WORDS;
        evens += even;
        odds += odd;
    }
    a[0] = even & UINT32_MAX, a[1] = odd & UINT32_MAX;
    a[2] = even >> 32, a[3] = odd >> 32;
    b[0] = evens & UINT32_MAX, b[1] = odds & UINT32_MAX;
    b[2] = evens >> 32, b[3] = odds >> 32;
    for (i = 0; i < 4; i++) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        size_t l = i;
#else
        size_t l = 3 - i;
#endif
        one += a[i];
        two += 4 * b[i] - l * a[i];
    }
    s->any |= one;
    s->two = (s->two + 4 * count * s->one + two) % MODULUS;
    s->one = (s->one + one) % MODULUS;
}

static void add_word(struct sums *s, const unsigned char *data, size_t len)
{
    uint16_t word = 0;

    memcpy(&word, data, len);
    s->any |= word;
    s->one = (s->one + word) % MODULUS;
    s->two = (s->two + s->one) % MODULUS;
}

/* As folding leaves it. */
static uint32_t folded(uint64_t sum, uint64_t any)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    /* Bytes swapped: modulo 2^16 - 1 that is a multiplication. */
    sum = sum * 256 % MODULUS;
#endif
    return (uint32_t)(sum == 0 && any ? MODULUS : sum);
}

uint32_t joule_fletcher32(const void *data, size_t len)
{
    const unsigned char *at = data;
    struct sums s = {0};

    while (len >= 8) {
        size_t count = len / 8 < BLOCK ? len / 8 : BLOCK;

        add_block(&s, at, count);
        at += count * 8;
        len -= count * 8;
    }
    for (; len > 0; at += 2) {
        size_t n = len < 2 ? len : 2;

        add_word(&s, at, n);
        len -= n;
    }
    return folded(s.two, s.any) << 16 | folded(s.one, s.any);
}

void joule_fletcher_put(unsigned char *data, size_t len)
{
    uint32_t sum = joule_fletcher32(data, len);

    for (int i = 0; i < JOULE_FLETCHER_SIZE; i++)
        data[len + (size_t)i] = (unsigned char)(sum >> 8 * i);
}

bool joule_fletcher_check(const unsigned char *data, size_t len)
{
    uint32_t sum;

    if (len < JOULE_FLETCHER_SIZE)
        return false;
    len -= JOULE_FLETCHER_SIZE;
    sum = (uint32_t)data[len] | (uint32_t)data[len + 1] << 8 |
          (uint32_t)data[len + 2] << 16 | (uint32_t)data[len + 3] << 24;
    return sum == joule_fletcher32(data, len);
}
