/* SPDX-License-Identifier: MIT */
/*
 * options.h - what a URL or a JSON file says about a server and a client
 */
#ifndef LK__CONFIG_OPTIONS_H
#define LK__CONFIG_OPTIONS_H

#include "base/base.h"

struct lk__options {
    /* the server: a unix socket, or host and port */
    char *path; /* NULL: TCP */
    char *host;
    int port;
    char *user;     /* NULL: none; not without a password */
    char *password; /* NULL: none, which is not ""; never printed */
    int db;
    char *client_name; /* for CLIENT SETNAME; NULL: "latchkey" */
    char *prefix;      /* before every object's name; NULL: none */

    /* times; never 0 after reading */
    int64_t lease_ms;           /* 30 s */
    int64_t command_timeout_ms; /* min(1 s, lease/5) */
    int64_t connect_timeout_ms; /* min(2 s, lease/3) */
    int64_t poll_ms;            /* longest time between two asks of a waiter: min(1 s, lease/2) */
    int64_t retry_min_ms;       /* first pause between attempts to connect: 20 ms */
    int64_t retry_max_ms;       /* longest one: lease/10, at least retry_min */
    int64_t keepalive_ms;       /* idle time before TCP probes the peer: 15 s; -1: off */

    bool no_pubsub; /* pubsub=no: waiters poll */
    bool redisson;  /* redisson=yes: hear Redisson's channels, let Java have its turn */
    bool strict;    /* strict=yes: refuse a server that may evict live locks, and settings that disagree */
};

/*
 * Read a URL (lk__options_url) or a JSON file (lk__options_file) and fill in defaults.
 *
 *   options   any content; filled on success only, then to be freed with lk__options_clear()
 *
 * Returns     0, EINVAL, ENOTSUP (TLS, Sentinel, Cluster: not in this build), ENOENT, ENOMEM; lk_errortext()
 *             names the parameter, or file, line and key; never the password
 */
int lk__options_url(struct lk__options *options, const char *url);
/* The same for a URL that other libraries read, too: what only they know is a warning in the log, once in a process. */
int lk__options_sharedurl(struct lk__options *options, const char *url);
int lk__options_file(struct lk__options *options, const char *path);

/* Free what options hold, the password overwritten first, and leave zeroes, which may be cleared again. */
void lk__options_clear(struct lk__options *options);

/* "redis://user:***@host:6379/0" into `text`, cut to fit: for logs and error texts. */
void lk__options_print(const struct lk__options *options, char *text, size_t size);

/*
 * Copy what the server says into `text`, cut to fit, with *** in place of the password, or of its beginning where the
 * server cut a quotation.
 */
void lk__options_quote(const struct lk__options *options, const char *says, char *text, size_t size);

#endif
