/* SPDX-License-Identifier: MIT */
/*
 * world_parts.h - what world.c, commands.c, children.c and subject.c share of a world
 */
#ifndef TESTS_WORLD_PARTS_H
#define TESTS_WORLD_PARTS_H

#include "world.h"

#define ARENA_BYTES (1 << 20)

/* What a world's processes share. */
struct world_arena {
    size_t used;
    int ready[WORLD_CHILDREN_MAX]; /* atomic builtins: written by children */
    _Alignas(16) char bytes[ARENA_BYTES];
};

/* A copy of a text, good until the eighth next call: tests need not free it. */
char *world_keep(const char *text, size_t length);

/* The reply to a command, to be freed; an error fails the test. */
struct redisReply *world_reply(struct world *w, const char *format, ...);

/* In a child: to end with the test, and leave it its terminal. */
void die_with_parent(pid_t parent);

/* Likewise in one that goes on with the test's code: it keeps no handlers that jump back into the runner. */
void become_child(pid_t parent);

/*
 * A wall clock of its own for a server: by how much it is ahead, in microseconds, which its process maps that has the
 * library preloaded, built of tests/faults/server_clock.c.
 */
int64_t *make_clock(const char *dir);
void free_clock(int64_t *offset_us); /* accepts NULL */
void preload_clock(const char *library, const char *dir);

void world_reap(struct world *w, pid_t pid); /* SIGKILL, and it is gone */

#endif
