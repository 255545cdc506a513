/* SPDX-License-Identifier: MIT */
/*
 * stalled.c - a leader that stands still loses its role
 *
 * A leader is a thread of the program, and may stand still: in a signal handler, under a debugger. A follower that
 * sees bytes lie there and nobody read takes the role. A leader that was in poll() finds on its return that its
 * term is over, and follows; one that was in the parser loses the stream, as nobody else can go on with it.
 */
#include "redis/connection_inside.h"

enum { LOOKS = 8 }; /* at its leader, that a follower takes within a command timeout */

int64_t lk__conn_lookevery(const struct lk__conn *conn)
{
    return conn->server->options.command_timeout_ms * 1000 / LOOKS;
}

/*
 * Does the leader stand still? With a stream that could be read for two looks; a parser is given twice that, as its
 * stream ends with it. A look that comes late counts for nothing: where this thread did not run in time, because the process
 * was stopped or has too many threads, the leader may not have run either.
 */
bool lk__conn_standsstill(const struct lk__conn *conn, struct lk__leaderlook *look)
{
    assert(lk__mu_held(&conn->mu));
    int64_t now_us = lk__now_us(), every_us = lk__conn_lookevery(conn);
    bool late = now_us - look->looked_us > 2 * every_us;
    bool idle = look->since_us != 0 && !late && look->moves == conn->moves && conn->stream != NULL &&
                (conn->dispatching || lk__stream_readable(conn->stream));
    look->looked_us = now_us;
    if (idle)
        return now_us - look->since_us >= (conn->dispatching ? 4 : 2) * every_us;
    look->moves = conn->moves;
    look->since_us = now_us;
    return false;
}

/* The role is free. What the leader may be in the middle of, the parser, goes with its stream. */
void lk__conn_replaceleader(struct lk__conn *conn)
{
    assert(lk__mu_held(&conn->mu));
    bool dispatching = conn->dispatching;
    conn->term++;
    conn->leader = NULL;
    conn->leading = conn->dispatching = false;
    if (dispatching)
        lk__conn_replacestream(conn, conn->stream, LK__CUT, "the thread that read the server's answers stands still");
}
