/* SPDX-License-Identifier: MIT */
/* raw.h - the yardsticks: a bare round trip on the same server, clocks, medians */
#ifndef BENCH_RAW_H
#define BENCH_RAW_H

#include <stdint.h>

int raw_connect(const char *socket_path); /* exits when that fails */
void raw_ping(int fd);                    /* one round trip */
int64_t now_ns(void);
double median_us(int64_t *ns, int count); /* sorts */
void fail(const char *what);              /* what, lk_errortext(), exit 1 */

#endif
