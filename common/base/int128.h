/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * int128.h - products of two 64-bit numbers (gcc, "128-bit Integers").
 */
#ifndef JOULE_BASE_INT128_H
#define JOULE_BASE_INT128_H

__extension__ typedef unsigned __int128 joule_u128;

#endif
