/* SPDX-License-Identifier: MIT */
/*
 * server.h - what is known of the server that a node's connections go to
 *
 * A node's epoch is a number that rises whenever a connection finds another server than the one before: at another
 * address, started anew, or a master again that was none. Its clock may then be another one, so dates of two epochs are
 * never compared.
 */
#ifndef LK__SERVER_H
#define LK__SERVER_H

#include "config/options.h"
#include "redis/script.h"
#include "redis/server_clock.h"

#include <sys/socket.h>

enum { LK__RUNID_MAX = 40 };

/* What tells a server from others, and from itself before a restart. */
struct lk__identity {
    struct sockaddr_storage address;
    socklen_t address_size;         /* 0: not known */
    char run_id[LK__RUNID_MAX + 1]; /* "": it does not tell */
};

/* Redis' words for messages of a kind. */
struct lk__pubsub {
    const char *publish, *subscribe, *unsubscribe;
    const char *confirmed, *message; /* what an answer to `subscribe`, and a message, begin with */
};
extern const struct lk__pubsub lk__pubsub[LK__PUBSUB_KINDS];

/* Whom we tell who we are, and what was found for that since the options were read: see login.h. */
enum lk__peer { LK__PEER_SERVER, LK__PEER_SENTINEL, LK__PEERS };
struct lk__found {
    char *user, *password;
};

/* With the option `survey`: what a server said when it was met first. Lines of "name:value"; NULL: it does not tell. */
enum { LK__ACL_MAX = 288 };
struct lk__survey {
    char *info, *config;
    int64_t ahead_us;          /* its clock, of this machine's, at least; below 0: it is behind */
    char missing[LK__ACL_MAX]; /* as struct lk__serverinfo has them */
    char warning[112];
};
void lk__survey_free(struct lk__survey *told); /* accepts NULL */

/* But for the first two, the first epoch and the functions, all this is the connector thread's. */
struct lk__server {
    struct lk__options options;
    enum lk__pubsub_kind pubsub;       /* its node's choice, made before anything is sent */
    int64_t pause_us, not_before_us;   /* back-off after a failure, of all connections to it */
    struct sockaddr_storage last;      /* where it answered, should the resolver fail */
    socklen_t last_size;               /* 0: nowhere yet */
    struct lk__identity met;           /* last */
    bool demoted;                      /* since then it said that it is a replica */
    int64_t born_us;                   /* by then, on our clock, it ran already */
    unsigned epoch, first_epoch;       /* 0: none was met yet; the number of the first one is above the second */
    struct lk__ahead ahead;            /* the clock of the one that was met last */
    unsigned at;                       /* of several addresses the one that was the master's last */
    struct lk__found found[LK__PEERS]; /* beside the options */
    struct lk__survey *told;           /* under the connector's mutex, set before it is up; NULL: it was not asked */
    /* The node's: have those of its connections that belong to another epoch made anew; 0: all. */
    void (*move)(struct lk__server *server, unsigned epoch);
    void (*doubt)(
        struct lk__server *server); /* NULL, or the node's: it may be replaced, as a connection ended or failed */
};

/* A connection came up, and this is what it found: the epoch that it belongs to. What is not known is no difference. */
unsigned lk__server_meet(struct lk__server *server, const struct lk__identity *found);
/*
 * After that, of a server that was `before` that epoch: by when it ran already. The handshake told `told_us`, 0: nothing;
 * but one that took the place of another one, or of itself before a restart, may have begun just now.
 */
int64_t lk__server_born(struct lk__server *server, unsigned before, int64_t told_us);
/* It is elsewhere from now on, as the options say: who is met next is another one. Its connector is not at it. */
void lk__server_leave(struct lk__server *server);
/* Who was found says that it is a replica: what the one that was met last had is lost if that is the same. */
void lk__server_demoted(struct lk__server *server, const struct lk__identity *found);

#endif
