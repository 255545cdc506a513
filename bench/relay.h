/* SPDX-License-Identifier: MIT */
/* relay.h - a server far away: a process between client and server that passes everything on later */
#ifndef BENCH_RELAY_H
#define BENCH_RELAY_H

#include <stdint.h>

struct relay;

/* Begin one to the server at `address`. It listens at relay_path(), a Unix socket. */
struct relay *relay_begin(const char *address);
const char *relay_path(const struct relay *relay);
void relay_delay(struct relay *relay, int64_t ms); /* from now on, each way */
void relay_end(struct relay *relay);

#endif
