/* SPDX-License-Identifier: MIT */
/*
 * server_clock.h - moments of a server's clock
 */
#ifndef LK__SERVER_CLOCK_H
#define LK__SERVER_CLOCK_H

#include "base/base.h"

/* Could a server's clock show that? What could not is left alone, so that sums of times stay in range. */
bool lk__is_servertime(int64_t server_us);

#endif
