/* SPDX-License-Identifier: MIT */
/*
 * quorum.h - several servers that know nothing of each other, without persistence
 *
 * All are real servers on ports of 127.0.0.1. Begin it before the test opens a client; it ends with the test. A server that
 * has just started has no vote for a while, so most tests say NO_WAIT: longest_lease_ms = -1. With LATCHKEY_TEST_TLS=yes
 * clients come over TLS.
 */
#ifndef TESTS_QUORUM_H
#define TESTS_QUORUM_H

#include "world.h"

enum { QUORUM_NODES = 9, QUORUM_WITHIN_MS = 20000 };

struct quorum;

struct quorum *quorum_begin(struct world *w, int count);
int quorum_port(struct quorum *q, int node);
int quorum_controlport(struct quorum *q, int node); /* where there is TLS: another one, without */

/* "redis-quorum://...?OPTIONS"; good until the eighth next call. */
const char *quorum_url(struct quorum *q, const char *options);
/* The same for "USER:PASSWORD@". */
const char *quorum_url_as(struct quorum *q, const char *user, const char *options);
/* The same with nobody in the place of those whose digits stand in `unseen`. */
const char *quorum_url_without(struct quorum *q, const char *unseen, const char *options);
/* A client that ends with the test. */
lk_client_t *quorum_client(struct quorum *q, const char *options);
lk_redlock_t *quorum_redlock(struct world *w, lk_client_t *client, const char *name, const lk_redlockattr_t *attr);

void quorum_kill(struct quorum *q, int node);
void quorum_start(struct quorum *q, int node); /* anew, with nothing; returns when it answers */
void quorum_stop(struct quorum *q, int node);  /* SIGSTOP */
void quorum_cont(struct quorum *q, int node);

/* Lock it, so often that all servers have it: one that is late may not be waited for. */
void quorum_lockall(struct quorum *q, lk_redlock_t *r, const char *name);

/*
 * As assert_lk(), of a call that a majority of the servers answers: on a busy machine they may be late, and it is made again
 * then. What it says when they do answer is what counts.
 */
#define assert_answer(expected, call)                                                                                  \
    do {                                                                                                               \
        int assert_answer_code;                                                                                        \
        eventually((errno = ERRNO_MARK, assert_answer_code = (call)) != ENOTCONN, QUORUM_WITHIN_MS);                   \
        assert_lk_result((expected), assert_answer_code, errno, #call, __FILE__, __LINE__);                            \
    } while (0)

/* What a node says to a command, as a number (nil: -1) or a text (nil: ""), good until the eighth next call. */
int64_t quorum_int(struct quorum *q, int node, const char *format, ...);
const char *quorum_str(struct quorum *q, int node, const char *format, ...);
/* At how many of those that run is that key? */
int quorum_having(struct quorum *q, const char *key);

#endif
