/* SPDX-License-Identifier: MIT */
/*
 * talk.h - questions and answers on a connection that is nobody's yet, by the thread that makes it
 */
#ifndef LK__TALK_H
#define LK__TALK_H

#include "redis/login.h"
#include "redis/stream.h"

struct lk__talk {
    struct lk__stream *stream;
    const struct lk__options *options;
    struct lk__login login; /* what is said to whom is there; its password is never told */
    int64_t until_us;
    int cancel_fd; /* readable: it is over */
    char *errmsg;  /* why it failed */
    size_t size;
};

/* Append a command. What is appended goes out with the first wait for an answer. 0 or ENOMEM. */
int lk__talk_say(const struct lk__talk *talk, int argc, const char *argv[]);
/* The same of AUTH, if there is a password. */
int lk__talk_auth(const struct lk__talk *talk);
/* The next answer is in stream->filling: 0, ENOMEM, or with words ECANCELED, ENOTCONN, EPROTO, or why TLS ended it. */
int lk__talk_hear(const struct lk__talk *talk);
/* Return `code` with words. `detail` may be what the server said: servers and proxies quote what they do not know. */
int lk__talk_fail(const struct lk__talk *talk, int code, const char *what, const char *detail);
/*
 * The same of an answer to AUTH or from who wants one: a server that does not know AUTH quotes its arguments, in whatever
 * form, so only the code of the error is told.
 */
int lk__talk_refused(const struct lk__talk *talk, const char *what);
/* 0, or the code of an error where there must be none, told with its words. */
int lk__talk_judge(const struct lk__talk *talk, const struct lk__reply *reply, const char *what);

/* The moment that an answer to TIME says, if it does. */
bool lk__talk_time(const struct lk__reply *reply, int64_t *server_us);

#endif
