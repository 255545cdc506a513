/* SPDX-License-Identifier: MIT */
/*
 * java.h - processes that run the real Redisson, for the tests of tests/interop
 *
 * Jar      $LATCHKEY_REDISSON_JAR, else where scripts/interop puts it. Without one, or without java, the test program is
 *          skipped, and says how to get them. Nothing here downloads anything.
 * Process  runs tests/interop/Peer.java, which tells what it can be told: a line each, to one of its threads, that answers
 *          with a line. It dies with the test program.
 * Server   Redisson gets to it by TCP: the world's has a port of 127.0.0.1 from the first java_open() on.
 * Threads  everything here is for the thread that runs the test.
 */
#ifndef TESTS_JAVA_H
#define TESTS_JAVA_H

#include "cluster.h"
#include "quorum.h"
#include "world.h"

/* In main(), before the first world: start the process that all tests of the program share. Exits 77 without Redisson. */
void java_begin(void);

struct java;

/* That process, connected to the world's server; its earlier threads and what they held are forgotten. */
struct java *java_open(struct world *w, int watchdog_ms);

/* That process, connected to a cluster. */
struct java *java_join(struct cluster *c, int watchdog_ms);

/* One of the test's own, to be killed; it ends with the test at the latest. */
struct java *java_start(struct world *w, int watchdog_ms);

/* It is connected to these servers as well, for RedLocks. */
void java_quorum(struct java *java, struct quorum *q, int watchdog_ms);

/* SIGKILL, reaped. With the name of what it holds: what was left of the lease, read when it stood still. */
int64_t java_kill(struct world *w, struct java *java, const char *name);

/* Tell thread `who`, a letter, what to do: "lock orders -1". */
void java_tell(struct java *java, char who, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* What `who` answers within `ms`, good until its next answer; "" if it does not. */
const char *java_says(struct java *java, char who, int64_t ms);

/* Tell it, and wait for the answer. */
const char *java_does(struct java *java, char who, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
