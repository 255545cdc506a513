/* SPDX-License-Identifier: MIT */
/*
 * cluster.h - the nodes of a cluster, and which of them has which slot
 *
 * A client has one node, which is its server, or the way into a cluster: that one has no connections then, and knows the
 * cluster. Which node a command goes to is asked anew each time it is sent, and costs no lock. Nodes are made when they
 * are told of, and their connections when something is sent to them. They stay as long as the client: one that has no slots
 * any more, and nothing under way, becomes that of the next address that is told of, which is to others as a failover.
 */
#ifndef LK__CLUSTER_H
#define LK__CLUSTER_H

#include "redis/connection.h"

struct lk__cluster;
struct lk__node;

enum { LK__NODES_MAX = 256 /* masters at a time, and those that were left and are still in use */ };

/* --- map.c: in which slot of a cluster a key is --------------------------------------------------------------------- */

enum { LK__SLOTS = 16384 };

/* That of the text between its first brace and the first closing one behind it, if there is any; else of the whole key. */
unsigned lk__slot_of(const char *key, size_t length);

/* --- cluster.c ------------------------------------------------------------------------------------------------------ */

/*
 * A quorum is the same, but that its nodes are those of the options: there is no map, and a command says itself which node
 * it is for.
 */

/* That `way` leads into, found by the addresses in its options. `connector` looks for it from lk__cluster_begin() on. 0 or ENOMEM. */
int lk__cluster_new(struct lk__cluster **cluster, struct lk__node *way, struct lk__connector *connector);
void lk__cluster_begin(struct lk__cluster *cluster);
/* Its nodes' connections are brought up no more. Its own connector was stopped before. */
void lk__cluster_stop(struct lk__cluster *cluster);
void lk__cluster_free(struct lk__cluster *cluster); /* lanes are closed */

/* Until somebody told which slots are where, or could not, or `until_us`. 0, or with an error text why not. */
int lk__cluster_await(struct lk__cluster *cluster, int64_t until_us);

/* Ask for the map anew, and wait for it. 0, or ENOTCONN with an error text: nobody tells it, or not by `until_us`. */
int lk__cluster_renew(struct lk__cluster *cluster, int64_t until_us);

/*
 * The node that has the slot of a command's keys, as far as is known; any that may know, if none has. `asking`: the one to
 * which the slot's keys go, as the last ASK said. There is a map.
 */
struct lk__node *lk__cluster_node(const struct lk__cluster *cluster, const struct lk__command *command, bool asking);
/* The same for a key, or a channel. */
struct lk__node *lk__cluster_nodeforkey(const struct lk__cluster *cluster, const char *key, size_t length);
/* The n-th that was met; NULL: there are no more. */
struct lk__node *lk__cluster_nth(const struct lk__cluster *cluster, unsigned n);
/* How many slots the node of that number has, by the map; the first one met is 1, and 0 is for those that none has. */
unsigned lk__cluster_slotsof(const struct lk__cluster *cluster, unsigned number);
/* The number of the node that has a slot, by the map; 0: none has it. */
unsigned lk__cluster_ownerof(const struct lk__cluster *cluster, unsigned slot);
/* A number that changes with the map. */
unsigned lk__cluster_version(const struct lk__cluster *cluster);

/*
 * `from` said MOVED, or ASK: what was refused is to be sent again, to where lk__cluster_node() says now. False: it names
 * none, or a node that was not met yet, which is looked for.
 */
bool lk__cluster_redirect(struct lk__cluster *cluster, const struct lk__node *from, const char *says, bool moved);
/* The map may be wrong: it is asked for soon; `lasting`: and again and again for a while, as somebody is to be replaced. */
void lk__cluster_doubt(struct lk__cluster *cluster, bool lasting);

/* All nodes have that from now on, those to come, too: see lk__node_own(). */
void lk__cluster_own(struct lk__cluster *cluster, int lane, int wake_fd, lk__message_t *message, void *arg);

/* --- map.c: what a node says of all ------------------------------------------------------------------------------- */

/* A line of CLUSTER NODES: a master with its slots, or a replica. */
struct lk__told {
    char host[256], name[256]; /* its address, "" for that which was asked; and its host name, or "" */
    int port;
    bool myself, replica;
    bool failed;       /* the others agree that it does not answer */
    const char *slots; /* the rest of the line */
};
/* The next line that tells of a node; moves `*text` behind it. False: there is none. */
bool lk__told_next(const char **text, struct lk__told *told);
/* Where to reach it: a certificate is of a name, so that is taken where there is TLS. */
const char *lk__told_host(const struct lk__told *told, const struct lk__options *options);
/* The next of its slots, from one to another; moves `told->slots` behind them. */
bool lk__told_slots(struct lk__told *told, unsigned *first, unsigned *last);
/* "MOVED 3999 10.0.0.7:6381": the slot, and where. False: it says no such thing. `host` is "" for that which was asked. */
bool lk__told_redirect(const char *says, unsigned *slot, char host[256], int *port);

#endif
