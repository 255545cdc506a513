/* SPDX-License-Identifier: MIT */
/* address.h - what hosts and ports are written with */
#ifndef LK__CONFIG_ADDRESS_H
#define LK__CONFIG_ADDRESS_H

#include "base/base.h"

/* Read a decimal number of `least` to `most`. */
bool lk__read_number(const char *text, int64_t least, int64_t most, int *number);

#endif
