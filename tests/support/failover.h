/* SPDX-License-Identifier: MIT */
/*
 * failover.h - a master with two replicas, and three Sentinels who watch them
 *
 * All are real, on free ports of 127.0.0.1, and agree on a failover within a second or two. Servers take
 * the user `app`, Sentinels a password of their own: both are in the URLs. Begin it before the test opens a client.
 * With LATCHKEY_TEST_TLS=yes all of them talk TLS, with the certificates of the world.
 */
#ifndef TESTS_FAILOVER_H
#define TESTS_FAILOVER_H

#include "world.h"

enum { FAILOVER_NODES = 3, FAILOVER_SENTINELS = 3, FAILOVER_WITHIN_MS = 20000 };

#define FAILOVER_SERVICE "orders-db"
#define FAILOVER_PASSWORD "failover-pw"          /* of the user `app` */
#define FAILOVER_SENTINEL_PASSWORD "sentinel-pw" /* of the user that has no name */

/* Makes a user at the Sentinels with no more rights than docs/security.md says. */
#define FAILOVER_READER                                                                                                \
    "ACL SETUSER reader on resetkeys resetchannels -@all +sentinel|get-master-addr-by-name +sentinel|master "          \
    "+subscribe "                                                                                                      \
    "+ping &+switch-master &+monitor"

struct failover;

/* `clock`: NULL, or the library that lets failover_setclock() work. It ends with the test. */
struct failover *failover_begin(struct world *w, const char *clock);
void failover_end(struct failover *f); /* before the test ends, and of its clients */

/* "redis-sentinel://...", "redis://host,host,host", good until the next call; a client by the first one. */
const char *failover_url(struct failover *f, const char *options);
const char *failover_listurl(struct failover *f, const char *options);
const char *failover_bareurl(struct failover *f, const char *options); /* as failover_url(), without passwords */
int failover_port(struct failover *f, int sentinel);
int failover_serverport(struct failover *f, int node); /* the one for TLS, if there is TLS */
const char *failover_urlwith(const char *url, int port); /* one more address, which comes first */
lk_client_t *failover_client(struct failover *f, const char *options);

/* Who waits over a failover: a worker's function that locks and unlocks. */
struct failover_visit {
    lk_mutex_t *mutex;
    int64_t held_ms; /* when it was had */
};

int failover_visit(void *arg);
/* No client by `url`: `code`, with `words` and without a password. */
void failover_refused(int code, const char *url, const char *words);

int failover_master(struct failover *f); /* its number, as most Sentinels say; -1: they do not agree */
int64_t failover_epoch(struct failover *f); /* the number of the last failover that a Sentinel knows of */
/* Wait until the Sentinels name another master than `old`. Its number; `at_ms`: when the first one did so, or NULL. */
int failover_await(struct failover *f, int old, int64_t *at_ms);
/*
 * Do all Sentinels agree on a master, see each other, its replicas and nothing amiss, and has it all of these? One that
 * would disagree for ever is begun anew.
 */
bool failover_settled(struct failover *f);
void failover_sync(struct failover *f, int node); /* the replicas have what this master has */
void failover_demand(struct failover *f);         /* SENTINEL FAILOVER */

void failover_kill(struct failover *f, int node);
void failover_start(struct failover *f, int node); /* anew, and empty */
void failover_stop(struct failover *f, int node);
void failover_cont(struct failover *f, int node);
/* The other servers and the Sentinels reach it no more, clients do. */
void failover_cutoff(struct failover *f, int node);
void failover_heal(struct failover *f, int node);
void failover_killsentinel(struct failover *f, int sentinel);
void failover_startsentinel(struct failover *f, int sentinel); /* with what it had written down */
void failover_stopsentinel(struct failover *f, int sentinel);
void failover_contsentinel(struct failover *f, int sentinel);
/*
 * One more, which reaches none of the others, nor the servers, and names the first one for ever. Its port. `certificate`:
 * which one it shows if there is TLS, "server" as the others.
 */
int failover_isolated(struct failover *f, const char *certificate);
void failover_setclock(struct failover *f, int node, int64_t ms); /* ahead of ours, or behind */

/* CONFIG SET `settings` at all servers; where they say %s it is the folder of the certificates, at most two times. */
void failover_configure(struct failover *f, const char *settings);
void failover_ordersentinels(struct failover *f, const char *command);

/* What a server says to a command, as a number or text; good until the eighth next call. */
int64_t failover_int(struct failover *f, int node, const char *format, ...);
const char *failover_str(struct failover *f, int node, const char *format, ...);
/* Connections that the library has there. */
int failover_connections(struct failover *f, int node);

#endif
