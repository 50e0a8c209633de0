/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * number.h - numbers as text, several times faster than printf and to the same
 * digits.
 *
 * All write at [at] without a NUL and return what is behind the last digit.
 */
#ifndef JOULE_SH5UTIL_NUMBER_H
#define JOULE_SH5UTIL_NUMBER_H

#include <stdint.h>

/* The longest of them: a double of 309 digits and six decimals. */
#define JOULE_NUMBER_MAX 336

char *joule_number_u64(char *at, uint64_t value);
char *joule_number_i64(char *at, int64_t value);

/* As "%.6f" in the C locale; "nan" whatever its sign. */
char *joule_number_fixed(char *at, double value);

/* The shortest text that strtod reads as this value; JSON has no infinity and
 * no NaN: "null". */
char *joule_number_json(char *at, double value);

/* Of 128 bits: sums do not wrap. */
char *joule_number_u128(char *at, unsigned __int128 value);
char *joule_number_i128(char *at, __int128 value);

#endif
