/* SPDX-License-Identifier: MIT */
/*
 * cluster.c - see cluster.h
 *
 * Nodes are told of each other, and of their slots and epochs, one by one, so that nothing has to be agreed upon at first.
 * A master counts as dead after two seconds: less would be too little on a busy machine. Where the world has TLS, nodes
 * have it between each other, too, and say the port of it to those who come with TLS.
 */
#include "cluster.h"
#include "world_parts.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOTS = 16384, NODE_TIMEOUT_MS = 2000, NAMES_MAX = 128 };

#define WATCHER_PASSWORD "watcher-pw" /* of the test itself, and of the nodes among each other */

struct member {
    pid_t pid;
    int port;         /* what clients come to; of TLS, if the world has that */
    int control_port; /* the test's own; the same where there is no TLS */
    int bus;
    char dir[96], id[41];
    redisContext *control;
    int64_t *offset_us; /* of its clock, shared */
};

struct cluster {
    struct world *world;
    const char *host; /* where they listen */
    const char *clock;
    int count;
    struct member members[CLUSTER_NODES];
    char names[NAMES_MAX][64];
    int name_count;
};

/* --- processes ------------------------------------------------------------------------------------------------------ */

static bool has_tls(const struct cluster *c)
{
    return c->world->tls_port != 0;
}

static void write_tls(struct cluster *c, FILE *config, int i)
{
    const char *dir = c->world->dir;
    fprintf(config, "tls-port %d\ntls-cluster yes\ntls-replication yes\ntls-auth-clients no\n", c->members[i].port);
    fprintf(config, "tls-cert-file %s/server.pem\ntls-key-file %s/server.key\ntls-ca-cert-file %s/ca.pem\n", dir, dir,
            dir);
}

/* Written anew for each start: what was set meanwhile is forgotten with all else. */
static void write_config(struct cluster *c, int i)
{
    char path[128];
    struct member *m = &c->members[i];
    snprintf(path, sizeof path, "%s/redis.conf", m->dir);
    FILE *config = fopen(path, "w");
    assert_that(config != NULL);
    fprintf(config, "port %d\nbind %s\ndir %s\nlogfile server.log\nsave \"\"\nappendonly no\n", m->control_port,
            c->host, m->dir);
    fprintf(config, "cluster-enabled yes\ncluster-port %d\ncluster-node-timeout %d\n", m->bus, NODE_TIMEOUT_MS);
    fprintf(config, "cluster-replica-validity-factor 0\ncluster-allow-replica-migration no\n");
    fprintf(config, "repl-diskless-sync-delay 0\n");
    fprintf(config, "user default off\nuser " CLUSTER_USER " on >" CLUSTER_PASSWORD " ~* &* +@all\n");
    fprintf(config, "user watcher on >" WATCHER_PASSWORD " ~* &* +@all\n");
    fprintf(config, "masteruser watcher\nmasterauth " WATCHER_PASSWORD "\n");
    if (has_tls(c))
        write_tls(c, config, i);
    assert_that(fclose(config) == 0);
}

static void exec_server(const struct cluster *c, struct member *m)
{
    char path[128];
    const char *binary = getenv("LATCHKEY_TEST_SERVER");
    if (c->clock != NULL)
        preload_clock(c->clock, m->dir);
    snprintf(path, sizeof path, "%s/redis.conf", m->dir);
    binary = binary != NULL && binary[0] != 0 ? binary : "redis-server";
    execlp(binary, binary, path, (char *)NULL);
    _exit(126);
}

static void start(struct cluster *c, int i)
{
    pid_t parent = getpid();
    struct member *m = &c->members[i];
    write_config(c, i);
    m->pid = fork();
    assert_that(m->pid >= 0);
    if (m->pid != 0)
        return;
    int nothing = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        dup2(nothing, fd);
    die_with_parent(parent);
    exec_server(c, m);
}

static void hang_up(struct member *m)
{
    if (m->control != NULL)
        redisFree(m->control);
    m->control = NULL;
}

static void end(void *arg)
{
    struct cluster *c = arg;
    for (int i = 0; i < c->count; i++) {
        hang_up(&c->members[i]);
        if (c->members[i].pid != 0)
            world_reap(c->world, c->members[i].pid);
        free_clock(c->members[i].offset_us);
    }
    free(c);
}

/* --- commands --------------------------------------------------------------------------------------------------------- */

static redisContext *control_of(struct cluster *c, struct member *m)
{
    const struct timeval patience = { 5, 0 };
    if (m->control != NULL && m->control->err == 0)
        return m->control;
    hang_up(m);
    m->control = redisConnectWithTimeout(c->host, m->control_port, patience);
    assert_that(m->control != NULL);
    redisSetTimeout(m->control, patience);
    freeReplyObject(redisCommand(m->control, "AUTH watcher " WATCHER_PASSWORD));
    return m->control;
}

static void take_ports(struct cluster *c, struct member *m)
{
    hang_up(m);
    m->port = free_port();
    m->control_port = has_tls(c) ? free_port() : m->port;
    m->bus = free_port();
}

/* NULL, if it does not answer. */
static redisReply *ask_with(struct cluster *c, int i, const char *format, va_list args)
{
    redisContext *control = control_of(c, &c->members[i]);
    return control->err == 0 ? redisvCommand(control, format, args) : NULL;
}

static redisReply *ask(struct cluster *c, int i, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = ask_with(c, i, format, args);
    va_end(args);
    return reply;
}

static bool tell(struct cluster *c, int i, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = ask_with(c, i, format, args);
    va_end(args);
    bool done = reply != NULL && reply->type != REDIS_REPLY_ERROR;
    freeReplyObject(reply);
    return done;
}

int64_t cluster_int(struct cluster *c, int node, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = ask_with(c, node, format, args);
    va_end(args);
    assert_that(reply != NULL && reply->type == REDIS_REPLY_INTEGER);
    int64_t number = reply->integer;
    freeReplyObject(reply);
    return number;
}

const char *cluster_str(struct cluster *c, int node, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = ask_with(c, node, format, args);
    va_end(args);
    const char *text = reply != NULL && reply->str != NULL ? world_keep(reply->str, reply->len) : "";
    freeReplyObject(reply);
    return text;
}

void cluster_order(struct cluster *c, const char *format, ...)
{
    va_list args;
    for (int i = 0; i < c->count; i++) {
        va_start(args, format);
        redisReply *reply = ask_with(c, i, format, args);
        va_end(args);
        if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
            assert_failed(__FILE__, __LINE__, "%s: %s", format, reply != NULL ? reply->str : "no answer");
        freeReplyObject(reply);
    }
}

static bool answers(struct cluster *c, int i)
{
    return tell(c, i, "PING");
}

int64_t cluster_queued(struct cluster *c, int node, const char *name)
{
    return cluster_int(c, node, "ZCARD latchkey:queue:mutex:{%s}", name);
}

int cluster_connections(struct cluster *c, int node)
{
    return library_clients(cluster_str(c, node, "CLIENT LIST"));
}

/* --- the cluster -------------------------------------------------------------------------------------------------------- */

static bool is_ready(struct cluster *c, int i)
{
    char known[40];
    const char *info = cluster_str(c, i, "CLUSTER INFO");
    snprintf(known, sizeof known, "cluster_known_nodes:%d\r", c->count);
    return strstr(info, "cluster_state:ok") != NULL && strstr(info, known) != NULL;
}

/* Its replica is one, and has what it has. */
static bool is_followed(struct cluster *c, int replica)
{
    return strstr(cluster_str(c, replica, "INFO replication"), "master_link_status:up") != NULL;
}

/* On a busy machine some do not meet within the time for that, and have to be told again. */
static bool have_met(struct cluster *c)
{
    bool ready = true;
    for (int i = 1; i < c->count; i++)
        tell(c, 0, "CLUSTER MEET %s %d %d", c->host, c->members[i].port, c->members[i].bus);
    for (int n = 0; n < 20; n++) {
        ready = true;
        for (int i = 0; i < c->count; i++)
            ready &= is_ready(c, i);
        if (ready)
            break;
        sleep_ms(200);
    }
    return ready;
}

/* It has the process that answers there, and not another one the port. */
static bool is_itself(struct cluster *c, int i)
{
    const char *at = strstr(cluster_str(c, i, "INFO server"), "process_id:");
    return at != NULL && strtol(at + strlen("process_id:"), NULL, 10) == c->members[i].pid;
}

/* Does it serve? One that ended had a port that another server took before, and has another one now. */
static bool has_begun(struct cluster *c, int i)
{
    struct member *m = &c->members[i];
    if (waitpid(m->pid, NULL, WNOHANG) == m->pid) {
        take_ports(c, m);
        start(c, i);
        return false;
    }
    return is_itself(c, i);
}

static void introduce(struct cluster *c)
{
    for (int i = 0; i < c->count; i++) {
        eventually(has_begun(c, i), CLUSTER_WITHIN_MS);
        snprintf(c->members[i].id, sizeof c->members[i].id, "%s", cluster_str(c, i, "CLUSTER MYID"));
        assert_that(tell(c, i, "CLUSTER SET-CONFIG-EPOCH %d", i + 1));
    }
    for (int i = 0; i < CLUSTER_MASTERS; i++)
        assert_that(tell(c, i, "CLUSTER ADDSLOTSRANGE %d %d", i * SLOTS / CLUSTER_MASTERS,
                         (i + 1) * SLOTS / CLUSTER_MASTERS - 1));
    eventually(have_met(c), CLUSTER_WITHIN_MS);
}

static struct cluster *begin(struct world *w, const char *host, const char *clock, bool replicas)
{
    struct cluster *c = calloc(1, sizeof *c);
    assert_that(c != NULL);
    c->world = w;
    c->host = host;
    c->clock = clock;
    c->count = replicas ? CLUSTER_NODES : CLUSTER_MASTERS;
    world_at_end(w, NULL, c, end);
    for (int i = 0; i < c->count; i++) {
        struct member *m = &c->members[i];
        take_ports(c, m);
        snprintf(m->dir, sizeof m->dir, "%s/node%d", w->dir, i);
        assert_that(mkdir(m->dir, 0700) == 0);
        m->offset_us = clock != NULL ? make_clock(m->dir) : NULL;
        start(c, i);
    }
    introduce(c);
    for (int i = CLUSTER_MASTERS; i < c->count; i++) {
        eventually(tell(c, i, "CLUSTER REPLICATE %s", c->members[i - CLUSTER_MASTERS].id), CLUSTER_WITHIN_MS);
        eventually(is_followed(c, i), CLUSTER_WITHIN_MS);
    }
    return c;
}

void cluster_end(struct cluster *c)
{
    world_close(c->world, c);
}

struct cluster *cluster_begin(struct world *w, bool replicas)
{
    return begin(w, "127.0.0.1", NULL, replicas);
}

struct cluster *cluster_begin_at(struct world *w, const char *host, bool replicas)
{
    return begin(w, host, NULL, replicas);
}

struct cluster *cluster_begin_clocks(struct world *w, const char *clock, bool replicas)
{
    return begin(w, "127.0.0.1", clock, replicas);
}

void cluster_setclock(struct cluster *c, int node, int64_t ms)
{
    assert_that(c->members[node].offset_us != NULL);
    __atomic_store_n(c->members[node].offset_us, ms * 1000, __ATOMIC_SEQ_CST);
}

const char *cluster_url_of(struct cluster *c, const char *user, const char *hosts, const char *options)
{
    static char url[768];
    int used = snprintf(url, sizeof url, "redis%s-cluster://%s%s%s/?%s", has_tls(c) ? "s" : "", user,
                        user[0] != 0 ? "@" : "", hosts, options);
    if (has_tls(c))
        used += snprintf(url + used, sizeof url - (size_t)used, "%scacert=%s/ca.pem", options[0] != 0 ? "&" : "",
                         c->world->dir);
    assert_that(used < (int)sizeof url);
    return url;
}

const char *cluster_url(struct cluster *c, const char *options)
{
    char hosts[160];
    const char *open = strchr(c->host, ':') != NULL ? "[" : "", *close = open[0] != 0 ? "]" : "";
    int used = 0;
    for (int i = 0; i < CLUSTER_MASTERS; i++)
        used += snprintf(hosts + used, sizeof hosts - (size_t)used, "%s%s%s%s:%d", i > 0 ? "," : "", open, c->host,
                         close, c->members[i].port);
    return cluster_url_of(c, CLUSTER_USER ":" CLUSTER_PASSWORD, hosts, options);
}

lk_client_t *cluster_client(struct cluster *c, const char *options)
{
    return world_client_at(c->world, c, cluster_url(c, options));
}

int cluster_port(struct cluster *c, int node)
{
    return c->members[node].port;
}

int cluster_slot(struct cluster *c, const char *key)
{
    for (int i = 0; i < c->count; i++)
        if (c->members[i].pid != 0 && answers(c, i))
            return (int)cluster_int(c, i, "CLUSTER KEYSLOT %s", key);
    return -1;
}

/* The port of the master that this node names for a slot; 0: none. */
static int named_by(struct cluster *c, int i, int slot)
{
    int port = 0;
    redisReply *reply = ask(c, i, "CLUSTER SLOTS");
    for (size_t n = 0; reply != NULL && reply->type == REDIS_REPLY_ARRAY && n < reply->elements; n++) {
        redisReply *row = reply->element[n];
        if (slot >= row->element[0]->integer && slot <= row->element[1]->integer)
            port = (int)row->element[2]->element[1]->integer;
    }
    freeReplyObject(reply);
    return port;
}

static int number_of(struct cluster *c, int port)
{
    for (int i = 0; i < c->count; i++)
        if (c->members[i].port == port || c->members[i].control_port == port)
            return i;
    return -1;
}

static int master_of(struct cluster *c, int slot)
{
    int port = -1;
    for (int i = 0; i < c->count; i++) {
        int named = c->members[i].pid != 0 ? named_by(c, i, slot) : port;
        if (port != -1 && named != port)
            return -1;
        port = named;
    }
    return number_of(c, port);
}

int cluster_master(struct cluster *c, const char *key)
{
    return master_of(c, cluster_slot(c, key));
}

const char *cluster_name(struct cluster *c, int node, const char *prefix)
{
    assert_that(c->name_count < NAMES_MAX);
    char *name = c->names[c->name_count++];
    int i = 0;
    do
        snprintf(name, sizeof c->names[0], "%s%d", prefix, i++);
    while (cluster_slot(c, name) * CLUSTER_MASTERS / SLOTS != node);
    return name;
}

static bool is_master(struct cluster *c, int i)
{
    return c->members[i].pid != 0 && strstr(cluster_str(c, i, "INFO replication"), "role:master") != NULL;
}

int cluster_leader(struct cluster *c, int node)
{
    int first = node % CLUSTER_MASTERS, second = first + CLUSTER_MASTERS;
    bool one = is_master(c, first), other = is_master(c, second);
    return one == other ? -1 : one ? first : second;
}

bool cluster_settled(struct cluster *c)
{
    for (int i = 0; i < c->count; i++)
        if (!is_ready(c, i) || strstr(cluster_str(c, i, "CLUSTER NODES"), "fail") != NULL)
            return false;
    for (int i = 0; i < CLUSTER_MASTERS; i++) {
        int leader = cluster_leader(c, i);
        if (leader < 0 || !is_followed(c, (leader + CLUSTER_MASTERS) % CLUSTER_NODES) ||
            strstr(cluster_str(c, leader, "INFO replication"), "state=online") == NULL)
            return false;
    }
    return true;
}

/* Do all say the name of all? */
static bool are_named(struct cluster *c, const char *name)
{
    int count = 0;
    char word[80];
    snprintf(word, sizeof word, ",%s", name);
    for (int i = 0; i < c->count; i++)
        for (const char *at = cluster_str(c, i, "CLUSTER NODES"); (at = strstr(at, word)) != NULL; at++)
            count++;
    return count == c->count * c->count;
}

void cluster_setname(struct cluster *c, const char *name)
{
    cluster_order(c, "CONFIG SET cluster-announce-hostname %s", name);
    eventually(are_named(c, name), CLUSTER_WITHIN_MS);
}

/* --- slots move ----------------------------------------------------------------------------------------------------------- */

void cluster_beginmove(struct cluster *c, int slot, int from, int to)
{
    assert_that(tell(c, to, "CLUSTER SETSLOT %d IMPORTING %s", slot, c->members[from].id));
    assert_that(tell(c, from, "CLUSTER SETSLOT %d MIGRATING %s", slot, c->members[to].id));
}

void cluster_movekey(struct cluster *c, const char *key, int from, int to)
{
    redisReply *reply =
        ask(c, from, "MIGRATE %s %d %s 0 5000 AUTH2 watcher " WATCHER_PASSWORD, c->host, c->members[to].port, key);
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR) /* what is left behind is lost with the end of the move */
        assert_failed(__FILE__, __LINE__, "MIGRATE %s: %s", key, reply != NULL ? reply->str : "no answer");
    freeReplyObject(reply);
}

int cluster_movekeys(struct cluster *c, int slot, int from, int to)
{
    int count = 0;
    redisReply *reply = ask(c, from, "CLUSTER GETKEYSINSLOT %d 100", slot);
    assert_that(reply != NULL && reply->type == REDIS_REPLY_ARRAY);
    for (size_t i = 0; i < reply->elements; i++, count++)
        cluster_movekey(c, reply->element[i]->str, from, to);
    freeReplyObject(reply);
    return count;
}

void cluster_endmove(struct cluster *c, int slot, int from, int to)
{
    assert_that(tell(c, to, "CLUSTER SETSLOT %d NODE %s", slot, c->members[to].id));
    assert_that(tell(c, from, "CLUSTER SETSLOT %d NODE %s", slot, c->members[to].id));
}

void cluster_move(struct cluster *c, int slot, int from, int to)
{
    cluster_beginmove(c, slot, from, to);
    while (cluster_movekeys(c, slot, from, to) > 0)
        ;
    cluster_endmove(c, slot, from, to);
    eventually(master_of(c, slot) == to, CLUSTER_WITHIN_MS);
}

/* What INFO says of replication behind `key`; -1: nothing. */
static int64_t offset_of(struct cluster *c, int node, const char *key)
{
    const char *at = strstr(cluster_str(c, node, "INFO replication"), key);
    return at != NULL ? strtoll(at + strlen(key), NULL, 10) : -1;
}

void cluster_replicated(struct cluster *c, int node)
{
    int64_t written = offset_of(c, node, "master_repl_offset:");
    eventually(offset_of(c, node, ",offset=") >= written, CLUSTER_WITHIN_MS);
}

/* --- blows ------------------------------------------------------------------------------------------------------------- */

void cluster_kill(struct cluster *c, int node)
{
    struct member *m = &c->members[node];
    world_reap(c->world, m->pid);
    m->pid = 0;
    hang_up(m);
}

void cluster_start(struct cluster *c, int node)
{
    start(c, node);
    eventually(answers(c, node), CLUSTER_WITHIN_MS);
}

void cluster_stop(struct cluster *c, int node)
{
    world_stop(c->members[node].pid);
}

void cluster_cont(struct cluster *c, int node)
{
    world_cont(c->members[node].pid);
}
