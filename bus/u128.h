/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RINGBUS_BUS_U128_H
#define RINGBUS_BUS_U128_H
/*
 * bus/u128.h - for products of two words: gcc and clang have it on every 64-bit target.
 */
__extension__ typedef unsigned __int128 rbi_u128;

#endif
