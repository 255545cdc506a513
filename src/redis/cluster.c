/* SPDX-License-Identifier: MIT */
/*
 * cluster.c - the nodes of a cluster, and which of them has which slot
 *
 * Guards: cluster->mu where nodes are, and what their lanes are to have; of a place that changes its node also the mutex of
 * the connector that brings its lanes up. It is taken after a connection's, before a connector's.
 * The map is read without a lock: each slot has a number, and a node has its number before any slot does. Only the thread
 * that asks for the map adds nodes; what MOVED and ASK say changes the map at once, and what is asked for later replaces it.
 *
 * The map may be wrong at any time, and nothing relies on it: a node refuses what is not its own before anything is done.
 *
 * A quorum has no map: its nodes are made when it begins, and are all that it ever has.
 *
 * Connections to several nodes are brought up by several threads, so that one that does not answer delays no other: each
 * node of a quorum has a thread of its own, and each of a cluster up to CONNECTORS; of more some share one.
 */
#include "redis/cluster.h"
#include "redis/clocks.h"
#include "redis/node.h"
#include "redis/reach.h"
#include "redis/talk.h"

#include <stdio.h>
#include <string.h>

enum {
    CONNECTORS = 32,
    SOON_US = 100000,       /* the map is not asked for sooner after it was */
    LATER_US = 1000000,     /* nor later than that, while somebody is to be replaced ... */
    RESTLESS_US = 15000000, /* ... which takes so long */
    SHARE_MIN_US = 50000,
    SHARE_MAX_US = 500000, /* one who is asked for the map */
};

/* A node, and where it is. */
struct place {
    struct lk__node node;
    struct lk__address address;
    char host[256]; /* as the others call it, if `address` has its name */
    bool has_slots; /* thread only */
};

struct owner {
    int wake_fd;
    lk__message_t *message;
    void *arg;
};

struct lk__cluster {
    struct lk__lookout lookout;
    struct lk__mu mu;
    pthread_cond_t learned; /* with mu: the map was asked for */
    struct lk__node *way;
    struct lk__connector *connector;              /* asks for the map */
    struct lk__connector *connectors[CONNECTORS]; /* thread only, until they are stopped */
    struct place *places[LK__NODES_MAX + 1];      /* the first one is none; written before `count` */
    atomic_uint count;                            /* how many there are, so the number of the last one */
    _Atomic(uint16_t) at[LK__SLOTS], ask[LK__SLOTS];
    uint16_t told[LK__SLOTS]; /* thread only: what is being read */
    atomic_uint version;
    struct owner owners[LK__LANES]; /* before the first node is met */
    bool known;                     /* under mu, set by its thread: there is a map */
    int64_t began_us;               /* under mu: when the last attempt to ask for it began */
    int code;                       /* under mu: why the last attempt failed; 0: there was none, or it did not */
    char errmsg[LK__ERRMSG_MAX];    /* under mu: words of it */
    _Atomic int64_t due_us;         /* when the map is asked for */
    _Atomic int64_t restless_until_us;
    int64_t pause_us;         /* thread only, as is the next one: before it is asked for again */
    unsigned turn;            /* who is asked first */
    _Atomic int64_t asked_us; /* when it was */
};

/* --- which node ----------------------------------------------------------------------------------------------------- */

struct lk__node *lk__cluster_node(const struct lk__cluster *cluster, const struct lk__command *command, bool asking)
{
    size_t length;
    if (command->place > 0)
        return &cluster->places[command->place]->node;
    const char *key = lk__command_key(command, &length);
    unsigned slot = lk__slot_of(key, length), number = asking ? atomic_load(&cluster->ask[slot]) : 0;
    if (number == 0)
        number = atomic_load(&cluster->at[slot]);
    return &cluster->places[number > 0 ? number : 1]->node;
}

struct lk__node *lk__cluster_nodeforkey(const struct lk__cluster *cluster, const char *key, size_t length)
{
    unsigned number = atomic_load(&cluster->at[lk__slot_of(key, length)]);
    return &cluster->places[number > 0 ? number : 1]->node;
}

struct lk__node *lk__cluster_nth(const struct lk__cluster *cluster, unsigned n)
{
    return n < atomic_load(&cluster->count) ? &cluster->places[n + 1]->node : NULL;
}

unsigned lk__cluster_slotsof(const struct lk__cluster *cluster, unsigned number)
{
    unsigned count = 0;
    for (unsigned slot = 0; slot < LK__SLOTS; slot++)
        count += atomic_load(&cluster->at[slot]) == number;
    return count;
}

unsigned lk__cluster_ownerof(const struct lk__cluster *cluster, unsigned slot)
{
    return atomic_load(&cluster->at[slot]);
}

unsigned lk__cluster_version(const struct lk__cluster *cluster)
{
    return atomic_load(&cluster->version);
}

static bool is_quorum(const struct lk__cluster *cluster)
{
    return cluster->way->server.options.quorum;
}

/* The number of the node that is there, by its address or its name; 0: none is known. */
static unsigned find_place(struct lk__cluster *cluster, const char *host, int port)
{
    assert(lk__mu_held(&cluster->mu));
    for (unsigned i = 1; i <= atomic_load(&cluster->count); i++) {
        const struct place *place = cluster->places[i];
        if (place->address.port == port &&
            (strcasecmp(place->address.host, host) == 0 || strcasecmp(place->host, host) == 0))
            return i;
    }
    return 0;
}

/* --- what nodes say ------------------------------------------------------------------------------------------------- */

static void ask_at(struct lk__cluster *cluster, int64_t due_us)
{
    int64_t before_us = atomic_load(&cluster->due_us);
    while (due_us < before_us)
        if (atomic_compare_exchange_weak(&cluster->due_us, &before_us, due_us)) {
            lk__mu_lock(&cluster->connector->mu);
            lk__connector_wake(cluster->connector);
            lk__mu_unlock(&cluster->connector->mu);
            return;
        }
}

void lk__cluster_doubt(struct lk__cluster *cluster, bool lasting)
{
    int64_t now_us = lk__now_us(), due_us = atomic_load(&cluster->asked_us) + (lasting ? SOON_US : LATER_US);
    if (is_quorum(cluster))
        return;
    if (lasting)
        atomic_store(&cluster->restless_until_us, now_us + RESTLESS_US);
    ask_at(cluster, due_us > now_us ? due_us : now_us);
}

bool lk__cluster_redirect(struct lk__cluster *cluster, const struct lk__node *from, const char *says, bool moved)
{
    unsigned slot;
    char host[256];
    int port;
    bool changed = false;
    if (!lk__told_redirect(says, &slot, host, &port))
        return false;
    lk__mu_lock(&cluster->mu);
    unsigned number = find_place(cluster, host[0] != '\0' ? host : from->server.options.servers[0].host, port);
    if (number != 0 && moved)
        changed = atomic_exchange(&cluster->at[slot], (uint16_t)number) != number;
    else if (number != 0)
        atomic_store(&cluster->ask[slot], (uint16_t)number);
    lk__mu_unlock(&cluster->mu);
    if (changed)
        atomic_fetch_add(&cluster->version, 1);
    if (changed || number == 0)
        lk__cluster_doubt(cluster, number == 0);
    return number != 0;
}

/* --- nodes are made, by the thread that asks ------------------------------------------------------------------------- */

static void doubt_node(struct lk__server *server)
{
    lk__cluster_doubt(LK__CONTAINER(server, struct lk__node, server)->cluster, true);
}

/* The options of the way, but for where it is. What they point to is the way's. */
static struct lk__options options_at(struct lk__cluster *cluster, struct lk__address *address)
{
    struct lk__options options = cluster->way->server.options;
    options.servers = address;
    options.server_count = 1;
    return options;
}

static void free_place(struct place *place)
{
    lk__free(place->address.host);
    lk__free(place);
}

static void destroy_place(struct place *place)
{
    place->node.server.options = (struct lk__options){ 0 };
    lk__node_destroy(&place->node);
    free_place(place);
}

static int make_node(struct lk__cluster *cluster, struct place *place, unsigned number)
{
    struct lk__connector **connector = &cluster->connectors[number % CONNECTORS];
    int rc = *connector == NULL ? lk__connector_start(connector) : 0;
    if (rc != 0)
        return rc;
    struct lk__options options = options_at(cluster, &place->address);
    rc = lk__node_init(&place->node, *connector, &options);
    if (rc != 0)
        return rc;
    place->node.cluster = cluster;
    place->node.server.first_epoch = number << LK__EPOCHS_BITS; /* so that no two nodes have one in common */
    place->node.server.doubt = doubt_node;
    place->node.server.pubsub = is_quorum(cluster) ? LK__PUBSUB_PLAIN : LK__PUBSUB_SHARDED;
    return 0;
}

/* How often a lane of the node came up. */
static unsigned long long connects_of(struct lk__node *node)
{
    unsigned long long connects = 0;
    for (int lane = 0; lane < node->lane_count; lane++)
        connects += lk__node_connects(node, lane);
    return connects;
}

/* Are all lanes down? Those on which nothing is under way are, from now on. */
static bool is_down(struct lk__node *node)
{
    bool down = true;
    for (int lane = 0; lane < node->lane_count; lane++) {
        lk__conn_rest(&node->lanes[lane]);
        down &= !lk__conn_isup(&node->lanes[lane]);
    }
    return down;
}

/* Does a slot belong to that node, as far as is known, or is being read? */
static bool has_any(const struct lk__cluster *cluster, unsigned number)
{
    assert(lk__mu_held(&cluster->mu));
    for (unsigned slot = 0; slot < LK__SLOTS; slot++)
        if (atomic_load(&cluster->at[slot]) == number || cluster->told[slot] == number)
            return true;
    return false;
}

/* The place is that of another node from then on; `address` has the one of before. */
static void put(struct place *place, const struct lk__told *told, struct lk__address *address)
{
    struct lk__address before = place->address;
    bool by_name = strcmp(address->host, told->host) != 0;
    place->address = *address;
    snprintf(place->host, sizeof place->host, "%s", by_name ? told->host : told->name);
    *address = before;
}

/*
 * A place that a node has left is another one's, if nothing of the first one is under way: its lanes are down, and no thread
 * makes them anew. Who still has the place finds another server there, as after a failover: that has an epoch of its own.
 */
static bool take_over(struct lk__cluster *cluster, unsigned number, const struct lk__told *told,
                      struct lk__address *address)
{
    struct place *place = cluster->places[number];
    struct lk__server *server = &place->node.server;
    struct lk__connector *connector = place->node.lanes[0].connector;
    unsigned long long connects = connects_of(&place->node);
    if (!is_down(&place->node))
        return false;
    lk__mu_lock(&cluster->mu);
    lk__mu_lock(&connector->mu);
    bool is_free = connects_of(&place->node) == connects && !lk__connector_serves(connector, server) &&
                   !has_any(cluster, number) &&
                   (server->epoch == 0 || lk__node_numberof(server->epoch + 1) == number);
    if (is_free) {
        put(place, told, address);
        lk__server_leave(server);
    }
    lk__mu_unlock(&connector->mu);
    lk__mu_unlock(&cluster->mu);
    return is_free;
}

static bool is_left(struct lk__cluster *cluster, unsigned number)
{
    lk__mu_lock(&cluster->mu);
    bool left = !cluster->places[number]->has_slots && !has_any(cluster, number);
    lk__mu_unlock(&cluster->mu);
    return left;
}

/* One that was left, if there is any: its number, or 0. */
static unsigned take_left(struct lk__cluster *cluster, const struct lk__told *told, struct lk__address *address)
{
    for (unsigned number = 1; number <= atomic_load(&cluster->count); number++)
        if (is_left(cluster, number) && take_over(cluster, number, told, address))
            return number;
    return 0;
}

/* ENOMEM. */
static int make_place(struct lk__cluster *cluster, const struct lk__told *told, struct lk__address *address,
                      unsigned *number)
{
    unsigned count = atomic_load(&cluster->count);
    struct place *place = count < LK__NODES_MAX ? lk__alloc(sizeof *place) : NULL;
    if (place == NULL)
        return ENOMEM;
    put(place, told, address);
    int rc = make_node(cluster, place, count + 1);
    if (rc != 0) {
        free_place(place);
        return rc;
    }
    for (int lane = 0; lane < place->node.lane_count; lane++)
        if (cluster->owners[lane].wake_fd >= 0)
            lk__conn_own(&place->node.lanes[lane], cluster->owners[lane].wake_fd, cluster->owners[lane].message,
                         cluster->owners[lane].arg);
    lk__mu_lock(&cluster->mu);
    cluster->places[count + 1] = place;
    atomic_store(&cluster->count, count + 1);
    lk__mu_unlock(&cluster->mu);
    *number = count + 1;
    return 0;
}

/* ENOMEM. The nodes of a quorum have no slots, and none of them is ever left. */
static int add_place(struct lk__cluster *cluster, const struct lk__told *told, unsigned *number)
{
    struct lk__address address = { lk__strdup(lk__told_host(told, &cluster->way->server.options)), told->port };
    if (address.host == NULL)
        return ENOMEM;
    *number = is_quorum(cluster) ? 0 : take_left(cluster, told, &address);
    int rc = *number == 0 ? make_place(cluster, told, &address, number) : 0;
    lk__free(address.host);
    return rc;
}

void lk__cluster_own(struct lk__cluster *cluster, int lane, int wake_fd, lk__message_t *message, void *arg)
{
    lk__mu_lock(&cluster->mu);
    assert(atomic_load(&cluster->count) == 0);
    cluster->owners[lane] = (struct owner){ wake_fd, message, arg };
    lk__mu_unlock(&cluster->mu);
}

/* --- the map ------------------------------------------------------------------------------------------------------------ */

static unsigned met(struct lk__cluster *cluster, const struct lk__told *told)
{
    lk__mu_lock(&cluster->mu);
    unsigned number = find_place(cluster, told->host, told->port);
    lk__mu_unlock(&cluster->mu);
    return number;
}

/* One line of it. */
static int take_master(struct lk__cluster *cluster, struct lk__told *told, bool *any)
{
    unsigned first, last, number = 0;
    while (lk__told_slots(told, &first, &last)) {
        int rc = 0;
        if (number == 0 && (number = met(cluster, told)) == 0)
            rc = add_place(cluster, told, &number);
        if (rc != 0)
            return rc;
        for (unsigned slot = first; slot <= last; slot++)
            cluster->told[slot] = (uint16_t)number;
        *any = true;
    }
    return 0;
}

/* A node without slots is of no use: who waits for it looks elsewhere. */
static void retire(struct lk__cluster *cluster)
{
    bool has[LK__NODES_MAX + 1] = { false };
    for (unsigned slot = 0; slot < LK__SLOTS; slot++)
        has[cluster->told[slot]] = true;
    for (unsigned i = 1; i <= atomic_load(&cluster->count); i++) {
        struct place *place = cluster->places[i];
        for (int lane = 0; place->has_slots && !has[i] && lane < place->node.lane_count; lane++)
            lk__conn_retire(&place->node.lanes[lane], "the cluster has no slots there any more");
        place->has_slots = has[i];
    }
}

static void replace_map(struct lk__cluster *cluster)
{
    bool changed = false;
    for (unsigned slot = 0; slot < LK__SLOTS; slot++)
        changed |= atomic_exchange(&cluster->at[slot], cluster->told[slot]) != cluster->told[slot];
    if (changed)
        atomic_fetch_add(&cluster->version, 1);
    retire(cluster);
}

/* `host` told it. */
static int read_map(struct lk__cluster *cluster, const char *text, const char *host, char *why, size_t size)
{
    struct lk__told told;
    bool any = false;
    memset(cluster->told, 0, sizeof cluster->told);
    while (lk__told_next(&text, &told)) {
        if (told.host[0] == '\0')
            snprintf(told.host, sizeof told.host, "%s", host);
        if (take_master(cluster, &told, &any) != 0) {
            snprintf(why, size, "out of memory for the nodes of a cluster, or there are more than %d", LK__NODES_MAX);
            return ENOMEM;
        }
    }
    if (!any) {
        snprintf(why, size, "the cluster there has no slots yet");
        return ENOTCONN;
    }
    replace_map(cluster);
    return 0;
}

/* A node that is asked for the map. */
struct asked {
    const struct lk__address *address;
    char host[256]; /* of that */
    int64_t until_us;
    bool refused;              /* it knows no such user, or another password */
    struct lk__stream *stream; /* NULL, or it told, and its answer is there */
};

static int hear_nodes(const struct lk__talk *talk, bool *refused)
{
    const char *nodes[2] = { "CLUSTER", "NODES" };
    int rc = lk__talk_auth(talk);
    if (rc == 0)
        rc = lk__talk_say(talk, 2, nodes);
    const struct lk__reply *reply = talk->stream->filling;
    if (rc == 0 && talk->login.password != NULL) {
        rc = lk__talk_hear(talk);
        *refused = rc == 0 && reply->type == LK__ERROR;
        if (*refused)
            return lk__talk_refused(talk, "the server refuses the user or the password");
    }
    if (rc == 0)
        rc = lk__talk_hear(talk);
    if (rc != 0 || reply->type == LK__TEXT)
        return rc;
    rc = lk__talk_refused(talk, "what is there does not tell of a cluster (CLUSTER NODES): is it one?");
    return rc == EPROTO ? ENOTSUP : rc;
}

/* ECANCELED: nothing may be touched any more. */
static int ask_there(struct lk__cluster *cluster, struct asked *asked, char *why, size_t size)
{
    struct lk__connector *connector = cluster->connector;
    struct lk__server *server = &cluster->way->server;
    int rc = lk__login_ask(server, LK__PEER_SERVER, why, size);
    if (rc == 0)
        rc = lk__reach(connector, server, asked->address, asked->until_us, connector->cancel_fd, &asked->stream, why,
                       size);
    if (rc != 0)
        return rc;
    const struct lk__talk talk = { .stream = asked->stream,
                                   .options = &server->options,
                                   .login = lk__login_of(server, LK__PEER_SERVER),
                                   .until_us = asked->until_us,
                                   .cancel_fd = connector->cancel_fd,
                                   .errmsg = why,
                                   .size = size };
    rc = hear_nodes(&talk, &asked->refused);
    if (rc == 0)
        rc = read_map(cluster, lk__reply_text(asked->stream->filling, 0), asked->host, why, size);
    if (rc != 0) {
        lk__stream_unref(asked->stream);
        asked->stream = NULL;
    }
    return rc;
}

/* The same; a password that is refused may have been replaced meanwhile. */
static int ask(struct lk__cluster *cluster, struct asked *asked, char *why, size_t size)
{
    int rc = ask_there(cluster, asked, why, size);
    if (!asked->refused || !lk__login_renew(&cluster->way->server, LK__PEER_SERVER))
        return rc;
    return ask_there(cluster, asked, why, size);
}

/* The n-th to be asked: those that are connected, the others, those of the options; by turns. NULL: that were all. */
static const struct lk__address *whom_to_ask(struct lk__cluster *cluster, unsigned n)
{
    const struct lk__options *options = &cluster->way->server.options;
    unsigned count = atomic_load(&cluster->count);
    for (int up = 1; up >= 0; up--)
        for (unsigned i = 0; i < count; i++) {
            struct place *place = cluster->places[(i + cluster->turn) % count + 1];
            if (lk__conn_isup(&place->node.lanes[LK__LANE_COMMANDS]) == up && n-- == 0)
                return &place->address;
        }
    return n < options->server_count ? &options->servers[(n + cluster->turn) % options->server_count] : NULL;
}

static int64_t share_of(const struct lk__cluster *cluster)
{
    int64_t share_us = cluster->way->server.options.connect_timeout_ms * 1000 / 4;
    share_us = share_us < SHARE_MAX_US ? share_us : SHARE_MAX_US;
    return share_us > SHARE_MIN_US ? share_us : SHARE_MIN_US;
}

/* Ask one after another, until somebody tells. ECANCELED: as ask_there(). */
static int ask_all(struct lk__cluster *cluster, struct asked *asked, char *errmsg, size_t size)
{
    const struct lk__options *options = &cluster->way->server.options;
    const struct lk__address *address;
    int64_t until_us = lk__now_us() + options->connect_timeout_ms * 1000, share_us = share_of(cluster);
    char where[128], why[LK__ERRMSG_MAX];
    int told = ENOTCONN;
    lk__options_print(options, where, sizeof where);
    for (unsigned n = 0; (address = whom_to_ask(cluster, n)) != NULL && (n == 0 || lk__now_us() < until_us); n++) {
        int port = address->port;
        *asked = (struct asked){ .address = address, .until_us = lk__now_us() + share_us };
        snprintf(asked->host, sizeof asked->host, "%s", address->host);
        int rc = ask(cluster, asked, why, sizeof why);
        if (rc == 0 || rc == ECANCELED)
            return rc;
        if (n > 0 && told != ENOTCONN)
            continue; /* what fails for good tells most */
        told = rc;
        snprintf(errmsg, size, "%s: %.128s:%d: %.160s", where, asked->host, port, why);
    }
    return told;
}

/* When to ask again, after an attempt: as long as somebody is to be replaced, or nobody knows. */
static void plan_next(struct lk__cluster *cluster, int rc)
{
    int64_t now_us = lk__now_us();
    bool goes_on = rc != 0 || now_us < atomic_load(&cluster->restless_until_us);
    if (!goes_on) {
        cluster->pause_us = 0;
        return;
    }
    cluster->pause_us = cluster->pause_us == 0 ? SOON_US : 2 * cluster->pause_us;
    if (cluster->pause_us > LATER_US)
        cluster->pause_us = LATER_US;
    ask_at(cluster, now_us + cluster->pause_us - (int64_t)lk__random_below((uint64_t)cluster->pause_us / 4 + 1));
}

static int64_t map_due(const struct lk__lookout *lookout)
{
    return atomic_load(&LK__CONTAINER(lookout, struct lk__cluster, lookout)->due_us);
}

/* When the client is opened the clocks of all nodes are compared, as far as they answer soon. ECANCELED: likewise. */
static int compare_clocks(struct lk__cluster *cluster, const struct asked *told, char *errmsg, size_t size)
{
    struct lk__server *server = &cluster->way->server;
    char where[128], why[LK__ERRMSG_MAX];
    const struct lk__search search = { .connector = cluster->connector,
                                       .server = server,
                                       .until_us = lk__now_us() + server->options.connect_timeout_ms * 1000,
                                       .cancel_fd = cluster->connector->cancel_fd };
    int rc = lk__clocks_comparenodes(&search, lk__reply_text(told->stream->filling, 0), told->host, why, sizeof why);
    if (rc == 0 || rc == ECANCELED)
        return rc;
    lk__options_print(&server->options, where, sizeof where);
    snprintf(errmsg, size, "%s: %s", where, why);
    return rc;
}

/* The cluster may be gone afterwards if the connector was stopped meanwhile. */
static void look(const struct lk__lookout *lookout)
{
    struct lk__cluster *cluster = LK__CONTAINER(lookout, struct lk__cluster, lookout);
    char errmsg[LK__ERRMSG_MAX] = "";
    atomic_store(&cluster->due_us, LK__NEVER);
    struct asked told = { 0 };
    int64_t began_us = lk__now_us();
    int rc = ask_all(cluster, &told, errmsg, sizeof errmsg);
    if (rc == 0 && !cluster->known)
        rc = compare_clocks(cluster, &told, errmsg, sizeof errmsg);
    lk__stream_unref(told.stream);
    if (rc == ECANCELED)
        return;
    atomic_store(&cluster->asked_us, lk__now_us());
    cluster->turn++;
    lk__mu_lock(&cluster->mu);
    if (rc != 0 && cluster->code == 0)
        lk__log(LK_LOG_INFO, "the map of the cluster: %s", errmsg);
    cluster->known |= rc == 0;
    cluster->began_us = began_us;
    cluster->code = rc;
    memcpy(cluster->errmsg, errmsg, sizeof errmsg);
    pthread_cond_broadcast(&cluster->learned);
    lk__mu_unlock(&cluster->mu);
    plan_next(cluster, rc);
}

int lk__cluster_await(struct lk__cluster *cluster, int64_t until_us)
{
    int rc = 0;
    lk__mu_lock(&cluster->mu);
    while (!cluster->known && cluster->code == 0 && rc != ETIMEDOUT)
        rc = lk__cond_wait(&cluster->learned, &cluster->mu, until_us);
    if (cluster->known)
        rc = 0;
    else if (cluster->code != 0)
        rc = lk__fail(cluster->code, "%s", cluster->errmsg);
    else
        rc = lk__fail(ENOTCONN, "no node of the cluster answers in time (connect_timeout)");
    lk__mu_unlock(&cluster->mu);
    return rc;
}

int lk__cluster_renew(struct lk__cluster *cluster, int64_t until_us)
{
    int64_t since_us = lk__now_us();
    int rc = 0;
    ask_at(cluster, since_us);
    lk__mu_lock(&cluster->mu);
    while (cluster->began_us < since_us && rc != ETIMEDOUT)
        rc = lk__cond_wait(&cluster->learned, &cluster->mu, until_us);
    if (cluster->began_us < since_us)
        rc = lk__fail(ENOTCONN, "no node of the cluster tells in time which slots are where");
    else
        rc = cluster->code != 0 ? lk__fail(ENOTCONN, "%s", cluster->errmsg) : 0;
    lk__mu_unlock(&cluster->mu);
    return rc;
}

/* --- life ----------------------------------------------------------------------------------------------------------------- */

int lk__cluster_new(struct lk__cluster **cluster, struct lk__node *way, struct lk__connector *connector)
{
    struct lk__cluster *fresh = lk__alloc(sizeof *fresh);
    if (fresh == NULL)
        return lk__fail(ENOMEM, "out of memory for a client");
    fresh->way = way;
    fresh->connector = connector;
    fresh->due_us = LK__NEVER;
    fresh->lookout = (struct lk__lookout){ map_due, look };
    for (int lane = 0; lane < LK__LANES; lane++)
        fresh->owners[lane].wake_fd = -1;
    lk__mu_init(&fresh->mu, LK__MU_CLUSTER);
    lk__cond_init(&fresh->learned);
    *cluster = fresh;
    return 0;
}

/* Of a quorum: all nodes that there will be. 0 or ENOMEM. */
static int add_all(struct lk__cluster *cluster)
{
    const struct lk__options *options = &cluster->way->server.options;
    struct lk__told told = { .port = 0 };
    unsigned number;
    int rc = 0;
    for (unsigned i = 0; i < options->server_count && rc == 0; i++) {
        snprintf(told.host, sizeof told.host, "%s", options->servers[i].host);
        told.port = options->servers[i].port;
        rc = add_place(cluster, &told, &number);
    }
    return rc;
}

static void begin_quorum(struct lk__cluster *cluster)
{
    int rc = add_all(cluster);
    lk__mu_lock(&cluster->mu);
    cluster->code = rc;
    cluster->known = rc == 0;
    snprintf(cluster->errmsg, sizeof cluster->errmsg, "out of memory for the nodes of a quorum");
    lk__mu_unlock(&cluster->mu);
}

void lk__cluster_begin(struct lk__cluster *cluster)
{
    if (is_quorum(cluster)) {
        begin_quorum(cluster);
        return;
    }
    lk__mu_lock(&cluster->connector->mu);
    cluster->connector->lookout = &cluster->lookout;
    atomic_store(&cluster->due_us, lk__now_us());
    lk__connector_wake(cluster->connector);
    lk__mu_unlock(&cluster->connector->mu);
}

void lk__cluster_stop(struct lk__cluster *cluster)
{
    for (int i = 0; i < CONNECTORS; i++)
        if (cluster->connectors[i] != NULL)
            lk__connector_stop(cluster->connectors[i]);
}

void lk__cluster_free(struct lk__cluster *cluster)
{
    for (unsigned i = 1; i <= atomic_load(&cluster->count); i++)
        destroy_place(cluster->places[i]);
    for (int i = 0; i < CONNECTORS; i++)
        if (cluster->connectors[i] != NULL)
            lk__connector_unref(cluster->connectors[i]);
    pthread_cond_destroy(&cluster->learned);
    lk__mu_destroy(&cluster->mu);
    lk__free(cluster);
}
