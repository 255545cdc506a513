/* SPDX-License-Identifier: MIT */
/*
 * cluster.h - a cluster: three masters with a third of the slots each, and a replica of each
 *
 * All are real servers on ports of 127.0.0.1. Nodes 0 to 2 are masters at first, node n + 3 is the replica of node n. Begin
 * it before the test opens a client. Clients come as CLUSTER_USER, as the default user is off; with LATCHKEY_TEST_TLS=yes
 * over TLS, which the nodes then have between each other, too.
 */
#ifndef TESTS_CLUSTER_H
#define TESTS_CLUSTER_H

#include "world.h"

enum { CLUSTER_MASTERS = 3, CLUSTER_NODES = 6, CLUSTER_WITHIN_MS = 40000 };

#define CLUSTER_USER "app"
#define CLUSTER_PASSWORD "cluster-pw"

struct cluster;

/* `replicas`: with them. It ends with the test. `host`: an address of this machine, where they all listen. */
struct cluster *cluster_begin(struct world *w, bool replicas);
struct cluster *cluster_begin_at(struct world *w, const char *host, bool replicas);
/* Their clocks can be set by the library `clock`. */
struct cluster *cluster_begin_clocks(struct world *w, const char *clock, bool replicas);
void cluster_setclock(struct cluster *c, int node, int64_t ms); /* ahead of ours, or behind */
void cluster_end(struct cluster *c); /* before the test does */

const char *cluster_url(struct cluster *c, const char *options); /* good until the next call */
/* The same for another user, "name:password", or none, "", and with other nodes to begin with, "host:port,host:port". */
const char *cluster_url_of(struct cluster *c, const char *user, const char *hosts, const char *options);
lk_client_t *cluster_client(struct cluster *c, const char *options);
int cluster_port(struct cluster *c, int node);

int cluster_slot(struct cluster *c, const char *key);
/* The master that the slot of a key belongs to, as the cluster's own nodes say; -1: they do not agree. */
int cluster_master(struct cluster *c, const char *key);
/* Which of a node and its replica is the master, as they say themselves; -1: none, or both do. */
int cluster_leader(struct cluster *c, int node);
/* Has each master a replica that has what it has, and does none see anything amiss? There are replicas. */
bool cluster_settled(struct cluster *c);
/* A name with `prefix` whose slot belongs to that master at first; good until the cluster ends. */
const char *cluster_name(struct cluster *c, int node, const char *prefix);

/*
 * A slot goes to another node: first it is migrating, then its keys go one by one, then it is the other one's; or all of
 * it at once, which is repeated until the nodes agree.
 */
void cluster_beginmove(struct cluster *c, int slot, int from, int to);
void cluster_movekey(struct cluster *c, const char *key, int from, int to);
int cluster_movekeys(struct cluster *c, int slot, int from, int to); /* all there are; how many */
void cluster_endmove(struct cluster *c, int slot, int from, int to);
void cluster_move(struct cluster *c, int slot, int from, int to);

/* Returns when a replica of that master has all that it has by now. */
void cluster_replicated(struct cluster *c, int node);

void cluster_kill(struct cluster *c, int node);
void cluster_start(struct cluster *c, int node); /* anew: it knows the cluster, and has no keys */
void cluster_stop(struct cluster *c, int node);
void cluster_cont(struct cluster *c, int node);

/* All have that host name, and know it of each other. */
void cluster_setname(struct cluster *c, const char *name);
/* A command to all of them, in which an error fails the test. */
void cluster_order(struct cluster *c, const char *format, ...);
/* What a node says to a command, as a number or text; good until the eighth next call. */
int64_t cluster_int(struct cluster *c, int node, const char *format, ...);
const char *cluster_str(struct cluster *c, int node, const char *format, ...);
int64_t cluster_queued(struct cluster *c, int node, const char *name); /* waiters in the queue of a mutex */
/* Connections that the library has there. */
int cluster_connections(struct cluster *c, int node);

#endif
