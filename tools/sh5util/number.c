/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/sh5util/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char pairs[] = "00010203040506070809"
                            "10111213141516171819"
                            "20212223242526272829"
                            "30313233343536373839"
                            "40414243444546474849"
                            "50515253545556575859"
                            "60616263646566676869"
                            "70717273747576777879"
                            "80818283848586878889"
                            "90919293949596979899";

char *joule_number_u64(char *at, uint64_t value)
{
    char text[20];
    size_t i = sizeof(text);

    while (value >= 100) {
        i -= 2;
        memcpy(text + i, pairs + value % 100 * 2, 2);
        value /= 100;
    }
    if (value >= 10) {
        i -= 2;
        memcpy(text + i, pairs + value * 2, 2);
    } else {
        text[--i] = (char)('0' + value);
    }
    memcpy(at, text + i, sizeof(text) - i);
    return at + (sizeof(text) - i);
}

char *joule_number_i64(char *at, int64_t value)
{
    if (value >= 0)
        return joule_number_u64(at, (uint64_t)value);
    *at++ = '-';
    return joule_number_u64(at, -(uint64_t)value);
}

char *joule_number_fixed(char *at, double value)
{
    double size = fabs(value), scaled, rest, error;
    uint64_t whole, micro;

    if (isnan(value)) {
        memcpy(at, "nan", 3);
        return at + 3;
    }
    /* Up to here, a double of millionths has its units digit. */
    if (!(size < 4e9))
        return at + sprintf(at, "%.6f", value);
    if (signbit(value))
        *at++ = '-';
    /*
     * The exact product is scaled + error (fma gives the error exactly), its
     * fraction rest + error; both are exact, so the comparison with one half
     * is, too, and a tie goes to the even digit as printf has it.
     */
    scaled = size * 1e6;
    error = fma(size, 1e6, -scaled);
    whole = (uint64_t)scaled;
    rest = scaled - (double)whole - 0.5;
    if (rest + error > 0 || (rest + error == 0 && (whole & 1)))
        whole++;
    at = joule_number_u64(at, whole / 1000000);
    micro = whole % 1000000;
    *at++ = '.';
    memcpy(at, pairs + micro / 10000 * 2, 2);
    memcpy(at + 2, pairs + micro / 100 % 100 * 2, 2);
    memcpy(at + 4, pairs + micro % 100 * 2, 2);
    return at + 6;
}

char *joule_number_json(char *at, double value)
{
    if (!isfinite(value)) {
        memcpy(at, "null", 4);
        return at + 4;
    }
    for (int digits = 15; digits < 17; digits++) {
        int n = sprintf(at, "%.*g", digits, value);

        if (strtod(at, NULL) == value)
            return at + n;
    }
    return at + sprintf(at, "%.17g", value);
}

char *joule_number_u128(char *at, unsigned __int128 value)
{
    const uint64_t part = UINT64_C(1000000000000000000);
    char text[24];

    if (value <= UINT64_MAX)
        return joule_number_u64(at, (uint64_t)value);
    at = joule_number_u128(at, value / part);
    sprintf(text, "%018llu", (unsigned long long)(value % part));
    memcpy(at, text, 18);
    return at + 18;
}

char *joule_number_i128(char *at, __int128 value)
{
    if (value >= 0)
        return joule_number_u128(at, (unsigned __int128)value);
    *at++ = '-';
    return joule_number_u128(at, -(unsigned __int128)value);
}
