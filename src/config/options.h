/* SPDX-License-Identifier: MIT */
/*
 * options.h - what a URL or a JSON file says about a server and a client
 */
#ifndef LK__CONFIG_OPTIONS_H
#define LK__CONFIG_OPTIONS_H

#include "base/base.h"

#include <latchkey/client.h>

#include <sys/stat.h>

enum { LK__LIVENESS_MIN_MS = 5000 }; /* Lw is never less, unless claims are short: see waiters.c */

/* What is said of TLS. The files are read at each connection, so one that was replaced counts from the next on. */
struct lk__tlsoptions {
    bool on;                 /* rediss:// or valkeys://; else all others are as zeroes */
    bool unverified;         /* verify=no: whoever answers is taken for the server */
    char *cacert, *capath;   /* who is trusted, a file and a folder; both NULL: whom the system trusts */
    char *certificate, *key; /* of the client, files; NULL, both: none */
    char *sni;               /* name to ask for, and to find in the certificate; NULL: the host */
};

enum { LK__REPLICAS_MAX = 100 };
enum { LK__QUORUM_LEAST = 3, LK__QUORUM_MAX = 9 /* nodes of a quorum, an odd number */ };
enum { LK__SERVERS_MAX = 16, LK__SKEWS_MIN = 4 /* a lease is so many times as long as clock_skew, or longer */ };

/* Where somebody listens. */
struct lk__address {
    char *host;
    int port;
};

struct lk__options {
    /*
     * the server: a unix socket, one address, several of which the master has one, or Sentinels who know where it is; or a
     * cluster, some of whose nodes are named; or a quorum, all of whose nodes are
     */
    char *path;                  /* NULL: TCP */
    struct lk__address *servers; /* NULL: a unix socket */
    unsigned server_count;
    bool cluster;
    bool quorum;                  /* the servers know nothing of each other, and a majority of them decides */
    char *service;                /* what the Sentinels at `servers` call the master; NULL: no Sentinels */
    char *sentinel_user;          /* as `user`, for the Sentinels */
    char *sentinel_password;      /* as `password` */
    char *sentinel_password_file; /* as `password_file` */
    char *user;                   /* NULL: none; not without a password */
    char *password;               /* NULL: none, which is not ""; never printed */
    char *password_file;          /* where it was found, and may be found anew; NULL: elsewhere */
    lk_provider_t provider;       /* NULL, or the program says who we are, and no user nor password is here */
    void *provider_arg;
    int db;
    int protocol;      /* 2, if it was given */
    int wait_replicas; /* a grant or a renewal counts when so many acknowledged it; 0: at once */
    char *client_name; /* for CLIENT SETNAME; NULL: "latchkey" */
    char *prefix;      /* before every object's name; NULL: none */
    char *program;     /* what a client says of itself, for people; NULL: the name that the program was called by */
    char *arguments;   /* likewise; NULL: they are not said */
    char *why;         /* likewise; NULL: nothing */
    struct lk__tlsoptions tls;

    /* times; never 0 after reading */
    int64_t lease_ms;           /* 30 s */
    int64_t command_timeout_ms; /* min(1 s, lease/5) */
    int64_t connect_timeout_ms; /* min(2 s, lease/3) */
    int64_t poll_ms;            /* longest time between two asks of a waiter: min(1 s, lease/2) */
    int64_t retry_min_ms;       /* first pause between attempts to connect: 20 ms */
    int64_t retry_max_ms;       /* longest one: lease/10, at least retry_min */
    int64_t keepalive_ms;       /* idle time before TCP probes the peer: 15 s; -1: off */
    int64_t warn_wait_ms;       /* a wait that is longer is told: 3 s; -1: none is */
    int64_t warn_hold_ms;       /* a hold that is longer is told; -1: none is, the default */
    int64_t clock_skew_ms;      /* clocks of servers that replace each other differ by less: 500 ms; of one server 0 */

    bool no_pubsub;     /* pubsub=no: waiters poll */
    bool redisson;      /* redisson=yes: hear Redisson's channels, let Java have its turn */
    bool survey;        /* ask each server what it says of itself: never of a URL or file */
    bool undescribed;   /* describe=no: the client says nothing of itself */
    bool strict;        /* strict=yes: refuse a server that may evict live locks, and settings that disagree */
};

/*
 * Read a URL (lk__options_url) or a JSON file (lk__options_file) and fill in defaults.
 *
 *   options   any content; filled on success only, then to be freed with lk__options_clear()
 *
 * Returns     0, EINVAL, ENOENT, ENOMEM; lk_errortext() names the parameter, or file, line and key; never the password
 */
int lk__options_url(struct lk__options *options, const char *url);
/* The same for a URL that other libraries read, too: what only they know is a warning in the log, once in a process. */
int lk__options_sharedurl(struct lk__options *options, const char *url);
int lk__options_file(struct lk__options *options, const char *path);

/* Free what options hold, the password overwritten first, and leave zeroes, which may be cleared again. */
void lk__options_clear(struct lk__options *options);

/* May the master be at one place now and at another one later? In a cluster, that of a slot. */
static inline bool lk__options_failover(const struct lk__options *options)
{
    return !options->quorum && (options->server_count > 1 || options->service != NULL || options->cluster);
}

/* Forget where servers are. */
void lk__options_clearservers(struct lk__options *options);

/* "redis://user:***@host:6379/0", or rediss:// with TLS, into `text`, cut to fit: for logs and error texts. */
void lk__options_print(const struct lk__options *options, char *text, size_t size);

/*
 * Copy what the server says into `text`, cut to fit, with *** in place of the password, or of its beginning where the
 * server cut a quotation. `password`: NULL for none.
 */
void lk__secret_hide(const char *password, const char *says, char *text, size_t size);

/*
 * The password that its file holds now, if that is another one than `old`, to be freed by lk__wipe(). NULL: it is not, there
 * is no file (`path` NULL), it cannot be read or is of no use, or no memory.
 */
char *lk__password_reread(const char *path, const char *old);

/* A file that may hold a secret. */
struct lk__file {
    char *text; /* with a NUL at its end */
    size_t length;
    mode_t mode; /* type and permissions */
};

/*
 * Read a file of at most 1 MiB. 0; ENOMEM (memory, descriptors), else another errno for
 * lk__file_errmsg(), EFBIG when it is too large.
 */
int lk__file_read(struct lk__file *file, const char *path);
void lk__file_wipe(struct lk__file *file); /* overwrites and frees; accepts zeroes */
const char *lk__file_errmsg(int code);

#endif
