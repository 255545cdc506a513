/* SPDX-License-Identifier: MIT */
/*
 * failover.c - see failover.h
 *
 * The Sentinels know each other and the replicas from their files, so that they need not find them, and their periods are
 * shorter than usual (SENTINEL DEBUG). The first one begins a failover by itself and sooner than the others, so that they
 * do not vote for three leaders, and again after a while. (With a shorter PING-PERIOD no replica is good: it takes those
 * that answered INFO within five of them, and asks once a second while the master is down.) A server that is cut off refuses the user by whom the others come.
 */
#include "failover.h"
#include "subject.h"
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

enum {
    WATCHERS_END = FAILOVER_NODES + FAILOVER_SENTINELS,
    ISOLATED = WATCHERS_END,
    PROCESSES,
    STARTS_WITHIN_MS = 20000
};

#define PASSWORD FAILOVER_PASSWORD
#define SENTINEL_PASSWORD FAILOVER_SENTINEL_PASSWORD
#define USER "app:" PASSWORD "@"
#define RIGHTS "on >" PASSWORD " ~* &* +@all"

struct process { /* the first three are servers, the others Sentinels; the last one knows none of them */
    pid_t pid;
    int port;         /* what it is known by; of TLS, if the world has that */
    int control_port; /* the test's own; the same where there is no TLS */
    char dir[96];
    redisContext *control;
    int64_t *offset_us; /* of its clock, shared */
};

struct failover {
    struct world *world;
    const char *clock;
    const char *certificate; /* of the isolated Sentinel */
    struct process processes[PROCESSES];
};

/* --- processes ------------------------------------------------------------------------------------------------------ */

static bool is_sentinel(int i)
{
    return i >= FAILOVER_NODES;
}

static bool has_tls(const struct failover *f)
{
    return f->world->tls_port != 0;
}

static void hang_up(struct process *p)
{
    if (p->control != NULL)
        redisFree(p->control);
    p->control = NULL;
}

static void take_ports(struct failover *f, struct process *p)
{
    hang_up(p);
    p->port = free_port();
    p->control_port = has_tls(f) ? free_port() : p->port;
}

/* They also reach each other by TLS, and say the port of it where they are. */
static void write_tls(struct failover *f, FILE *config, int i)
{
    const char *dir = f->world->dir, *certificate = i == ISOLATED ? f->certificate : "server";
    fprintf(config, "tls-port %d\ntls-replication yes\ntls-auth-clients no\n", f->processes[i].port);
    fprintf(config, "tls-cert-file %s/%s.pem\ntls-key-file %s/%s.key\n", dir, certificate, dir, certificate);
    fprintf(config, "tls-ca-cert-file %s/ca.pem\n", dir);
}

static void write_sentinel(struct failover *f, FILE *config, int i)
{
    bool leads = i == FAILOVER_NODES;
    fprintf(config, "requirepass " SENTINEL_PASSWORD "\nsentinel sentinel-pass " SENTINEL_PASSWORD "\n");
    fprintf(config, "sentinel myid %040d\n", i);
    fprintf(config, "sentinel monitor " FAILOVER_SERVICE " 127.0.0.1 %d %d\n", f->processes[0].port, leads ? 1 : 2);
    if (i == ISOLATED)
        return;
    fprintf(config, "sentinel auth-user " FAILOVER_SERVICE " watcher\n");
    fprintf(config, "sentinel auth-pass " FAILOVER_SERVICE " " PASSWORD "\n");
    fprintf(config, "sentinel down-after-milliseconds " FAILOVER_SERVICE " %d\n", leads ? 1500 : 3000);
    fprintf(config, "sentinel failover-timeout " FAILOVER_SERVICE " 2000\n");
    fprintf(config, "sentinel parallel-syncs " FAILOVER_SERVICE " 2\n");
    for (int node = 1; node < FAILOVER_NODES; node++)
        fprintf(config, "sentinel known-replica " FAILOVER_SERVICE " 127.0.0.1 %d\n", f->processes[node].port);
    for (int other = FAILOVER_NODES; other < WATCHERS_END; other++)
        if (other != i)
            fprintf(config, "sentinel known-sentinel " FAILOVER_SERVICE " 127.0.0.1 %d %040d\n",
                    f->processes[other].port, other);
}

static void write_server(FILE *config)
{
    fprintf(config, "save \"\"\nappendonly no\nrepl-diskless-sync-delay 0\nrepl-ping-replica-period 1\n");
    fprintf(config, "user default off\nuser app " RIGHTS "\nuser watcher " RIGHTS "\n");
    fprintf(config, "masteruser watcher\nmasterauth " PASSWORD "\nenable-debug-command yes\n");
}

static void write_process(struct failover *f, int i)
{
    char path[128];
    struct process *p = &f->processes[i];
    snprintf(path, sizeof path, "%s/redis.conf", p->dir);
    FILE *config = fopen(path, "w");
    assert_that(config != NULL);
    fprintf(config, "port %d\nbind 127.0.0.1\ndir %s\nlogfile server.log\n", p->control_port, p->dir);
    if (has_tls(f))
        write_tls(f, config, i);
    if (is_sentinel(i))
        write_sentinel(f, config, i);
    else
        write_server(config);
    assert_that(fclose(config) == 0);
}

static void exec_process(struct failover *f, int i)
{
    char path[128];
    struct process *p = &f->processes[i];
    const char *binary = getenv("LATCHKEY_TEST_SERVER");
    if (f->clock != NULL && !is_sentinel(i))
        preload_clock(f->clock, p->dir);
    snprintf(path, sizeof path, "%s/redis.conf", p->dir);
    binary = binary != NULL && binary[0] != 0 ? binary : "redis-server";
    execlp(binary, binary, path, is_sentinel(i) ? "--sentinel" : (char *)NULL, (char *)NULL);
    _exit(126);
}

/* With the file that it has. */
static void launch(struct failover *f, int i)
{
    pid_t parent = getpid();
    struct process *p = &f->processes[i];
    p->pid = fork();
    assert_that(p->pid >= 0);
    if (p->pid != 0)
        return;
    int nothing = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        dup2(nothing, fd);
    die_with_parent(parent);
    exec_process(f, i);
}

static void start(struct failover *f, int i)
{
    write_process(f, i);
    launch(f, i);
}

/* --- commands --------------------------------------------------------------------------------------------------------- */

static redisContext *control_of(struct failover *f, int i)
{
    struct process *p = &f->processes[i];
    const struct timeval patience = { 5, 0 };
    if (p->control != NULL && p->control->err == 0)
        return p->control;
    if (p->control != NULL)
        redisFree(p->control);
    p->control = redisConnectWithTimeout("127.0.0.1", p->control_port, patience);
    assert_that(p->control != NULL);
    redisSetTimeout(p->control, patience);
    freeReplyObject(is_sentinel(i) ? redisCommand(p->control, "AUTH %s", SENTINEL_PASSWORD)
                                   : redisCommand(p->control, "AUTH app %s", PASSWORD));
    return p->control;
}

/* Again: a server that became a master or a replica has ended its connections, maybe more than once. */
static redisReply *ask_with(struct failover *f, int i, const char *format, va_list args)
{
    enum { TRIES = 2, TRIES_ENDED = 5 };
    redisReply *reply = NULL;
    bool ended = false;
    for (int n = 0; n < (ended ? TRIES_ENDED : TRIES) && reply == NULL; n++) {
        redisContext *control = control_of(f, i);
        va_list again;
        va_copy(again, args);
        reply = control->err == 0 ? redisvCommand(control, format, again) : NULL;
        ended = control->err == REDIS_ERR_EOF;
        va_end(again);
    }
    return reply;
}

/* NULL, if it does not answer. */
static redisReply *ask(struct failover *f, int i, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = ask_with(f, i, format, args);
    va_end(args);
    return reply;
}

static void order(struct failover *f, int i, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = ask_with(f, i, format, args);
    va_end(args);
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
        assert_failed(__FILE__, __LINE__, "%s: %s", format, reply != NULL ? reply->str : "no answer");
    freeReplyObject(reply);
}

static bool answers(struct failover *f, int i)
{
    redisReply *reply = ask(f, i, "PING");
    bool does = reply != NULL && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    return does;
}

int64_t failover_int(struct failover *f, int node, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = ask_with(f, node, format, args);
    va_end(args);
    if (reply == NULL || reply->type != REDIS_REPLY_INTEGER)
        assert_failed(__FILE__, __LINE__, "%s: %s", format,
                      reply != NULL && reply->str != NULL ? reply->str : "no number");
    int64_t number = reply->integer;
    freeReplyObject(reply);
    return number;
}

const char *failover_str(struct failover *f, int node, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = ask_with(f, node, format, args);
    va_end(args);
    assert_that(reply != NULL);
    const char *text = reply->str != NULL ? world_keep(reply->str, reply->len) : "";
    freeReplyObject(reply);
    return text;
}

static int count_in(const char *text, const char *word)
{
    int count = 0;
    for (; (text = strstr(text, word)) != NULL; text += strlen(word))
        count++;
    return count;
}

int failover_connections(struct failover *f, int node)
{
    return library_clients(failover_str(f, node, "CLIENT LIST"));
}

/* --- the deployment ------------------------------------------------------------------------------------------------- */

static void end(void *arg)
{
    struct failover *f = arg;
    for (int i = PROCESSES - 1; i >= 0; i--) {
        struct process *p = &f->processes[i];
        if (p->control != NULL)
            redisFree(p->control);
        if (p->pid != 0)
            world_reap(f->world, p->pid);
        free_clock(p->offset_us);
    }
    free(f);
}

static void make_dirs(struct failover *f)
{
    for (int i = 0; i < PROCESSES; i++) {
        struct process *p = &f->processes[i];
        snprintf(p->dir, sizeof p->dir, "%s/%s%d", f->world->dir, is_sentinel(i) ? "sentinel" : "node", i);
        assert_that(mkdir(p->dir, 0700) == 0);
        if (f->clock != NULL && !is_sentinel(i))
            p->offset_us = make_clock(p->dir);
    }
}

static bool has_replicas(struct failover *f, int master)
{
    redisReply *reply = ask(f, master, "INFO replication");
    bool all = reply != NULL && reply->str != NULL && count_in(reply->str, "state=online") == FAILOVER_NODES - 1;
    freeReplyObject(reply);
    return all;
}

/* It has the process that answers there, and not another one the port. */
static bool is_itself(struct failover *f, int i)
{
    redisReply *reply = ask(f, i, "INFO server");
    const char *at = reply != NULL && reply->str != NULL ? strstr(reply->str, "process_id:") : NULL;
    bool itself = at != NULL && strtol(at + strlen("process_id:"), NULL, 10) == f->processes[i].pid;
    freeReplyObject(reply);
    return itself;
}

/*
 * Does it serve? One that ended had a port that another server took before, and has another one now; of a Sentinel the
 * others hear that from itself.
 */
static bool has_begun(struct failover *f, int i)
{
    struct process *p = &f->processes[i];
    if (waitpid(p->pid, NULL, WNOHANG) == p->pid) {
        take_ports(f, p);
        start(f, i);
        return false;
    }
    return is_itself(f, i);
}

static void start_servers(struct failover *f)
{
    for (int i = 0; i < FAILOVER_NODES; i++)
        start(f, i);
    for (int i = 0; i < FAILOVER_NODES; i++)
        eventually(has_begun(f, i), STARTS_WITHIN_MS);
    for (int i = 1; i < FAILOVER_NODES; i++)
        order(f, i, "REPLICAOF 127.0.0.1 %d", f->processes[0].port);
    eventually(has_replicas(f, 0), STARTS_WITHIN_MS);
}

/* These periods are written down nowhere. */
static void hurry(struct failover *f, int i)
{
    eventually(answers(f, i), STARTS_WITHIN_MS);
    order(f, i,
          "SENTINEL DEBUG INFO-PERIOD 200 PING-PERIOD 300 ASK-PERIOD 100 PUBLISH-PERIOD 700 TILT-PERIOD 500 "
          "SLAVE-RECONF-TIMEOUT 500 ELECTION-TIMEOUT 1000 MIN-LINK-RECONNECT-PERIOD 500");
}

static void start_sentinels(struct failover *f)
{
    for (int i = FAILOVER_NODES; i < WATCHERS_END; i++)
        start(f, i);
    for (int i = FAILOVER_NODES; i < WATCHERS_END; i++) {
        eventually(has_begun(f, i), STARTS_WITHIN_MS);
        hurry(f, i);
    }
}

/* Do all see the master and its replicas, and nothing amiss? */
static bool is_healthy(struct failover *f, int i)
{
    redisReply *reply = ask(f, i, "SENTINEL CKQUORUM " FAILOVER_SERVICE);
    bool healthy = reply != NULL && reply->type == REDIS_REPLY_STATUS && strncmp(reply->str, "OK 3", 4) == 0;
    freeReplyObject(reply);
    return healthy;
}

struct failover *failover_begin(struct world *w, const char *clock)
{
    struct failover *f = calloc(1, sizeof *f);
    assert_that(f != NULL);
    f->world = w;
    f->clock = clock;
    world_at_end(w, NULL, f, end);
    for (int i = 0; i < PROCESSES; i++)
        take_ports(f, &f->processes[i]);
    make_dirs(f);
    start_servers(f);
    start_sentinels(f);
    for (int i = FAILOVER_NODES; i < WATCHERS_END; i++)
        eventually(is_healthy(f, i), STARTS_WITHIN_MS);
    return f;
}

void failover_end(struct failover *f)
{
    world_close(f->world, f);
}

static const char *url_of(struct failover *f, int from, int to, const char *kind, const char *user, const char *tail)
{
    static char url[768];
    int used = snprintf(url, sizeof url, "redis%s%s://%s", has_tls(f) ? "s" : "", kind, user);
    for (int i = from; i < to; i++)
        used += snprintf(url + used, sizeof url - (size_t)used, "%s127.0.0.1:%d", i > from ? "," : "",
                         f->processes[i].port);
    used += snprintf(url + used, sizeof url - (size_t)used, "/%s", tail);
    if (has_tls(f))
        used += snprintf(url + used, sizeof url - (size_t)used, "&cacert=%s/ca.pem", f->world->dir);
    assert_that(used < (int)sizeof url);
    return url;
}

const char *failover_url(struct failover *f, const char *options)
{
    char tail[384];
    snprintf(tail, sizeof tail, FAILOVER_SERVICE "?sentinel_password=" SENTINEL_PASSWORD "%s%s",
             options[0] != 0 ? "&" : "", options);
    return url_of(f, FAILOVER_NODES, WATCHERS_END, "-sentinel", USER, tail);
}

const char *failover_bareurl(struct failover *f, const char *options)
{
    char tail[384];
    snprintf(tail, sizeof tail, FAILOVER_SERVICE "?protocol=2%s%s", options[0] != 0 ? "&" : "", options);
    return url_of(f, FAILOVER_NODES, WATCHERS_END, "-sentinel", "", tail);
}

const char *failover_listurl(struct failover *f, const char *options)
{
    char tail[384];
    snprintf(tail, sizeof tail, "?protocol=2%s%s", options[0] != 0 ? "&" : "", options);
    return url_of(f, 0, FAILOVER_NODES, "", USER, tail);
}

int failover_serverport(struct failover *f, int node)
{
    return f->processes[node].port;
}

int failover_port(struct failover *f, int sentinel)
{
    return f->processes[FAILOVER_NODES + sentinel].port;
}

const char *failover_urlwith(const char *url, int port)
{
    static char changed[768];
    const char *at = strchr(url, '@') + 1;
    snprintf(changed, sizeof changed, "%.*s127.0.0.1:%d,%s", (int)(at - url), url, port, at);
    return changed;
}

lk_client_t *failover_client(struct failover *f, const char *options)
{
    return world_client_at(f->world, f, failover_url(f, options));
}

/* --- who is the master ------------------------------------------------------------------------------------------------ */

static const char *field(const redisReply *reply, const char *name)
{
    for (size_t at = 0; reply != NULL && at + 1 < reply->elements; at += 2)
        if (strcmp(reply->element[at]->str, name) == 0)
            return reply->element[at + 1]->str;
    return "";
}

/* What a Sentinel says of the master. */
struct view {
    int named;     /* as it has announced: not before the failover is over; -1: it does not answer */
    int64_t epoch; /* of the last failover that it has heard of */
    bool moving;   /* a failover of its own is under way, which goes on even when the master is back */
    bool calm;     /* not so, and nothing else is amiss */
};

static struct view view_of(struct failover *f, int i)
{
    redisReply *reply = ask(f, i, "SENTINEL MASTER " FAILOVER_SERVICE);
    struct view view = { .named = -1, .epoch = atoll(field(reply, "config-epoch")) };
    for (int node = 0; node < FAILOVER_NODES; node++)
        if (f->processes[node].port == atoi(field(reply, "port")))
            view.named = node;
    view.moving = strstr(field(reply, "flags"), "failover_in_progress") != NULL;
    view.calm = strcmp(field(reply, "flags"), "master") == 0;
    freeReplyObject(reply);
    return view;
}

int64_t failover_epoch(struct failover *f)
{
    int64_t last = 0;
    for (int i = FAILOVER_NODES; i < WATCHERS_END; i++) {
        int64_t epoch = view_of(f, i).epoch;
        last = epoch > last ? epoch : last;
    }
    return last;
}

int failover_master(struct failover *f)
{
    int votes[FAILOVER_NODES] = { 0 };
    for (int i = FAILOVER_NODES; i < WATCHERS_END; i++) {
        int named = view_of(f, i).named;
        if (named >= 0 && ++votes[named] > FAILOVER_SENTINELS / 2)
            return named;
    }
    return -1;
}

/*
 * Has it seen that the replicas are some? A Sentinel that still takes one for a master that was will have it follow the
 * present one, and that undoes a failover to it that begins meanwhile.
 */
static bool knows_replicas(struct failover *f, int i)
{
    int known = 0;
    redisReply *reply = ask(f, i, "SENTINEL REPLICAS " FAILOVER_SERVICE);
    for (size_t n = 0; reply != NULL && n < reply->elements; n++)
        known += strcmp(field(reply->element[n], "role-reported"), "slave") == 0;
    freeReplyObject(reply);
    return known == FAILOVER_NODES - 1;
}

/*
 * Will it disagree for ever? During a failover of its own it still names the old master. If the others fail over to that
 * one meanwhile, it takes over their epoch alone, and later names its own choice by the same epoch.
 */
static bool is_astray(struct failover *f, const struct view *view, int master)
{
    if (view->named < 0 || view->named == master || view->moving)
        return false;
    for (int i = FAILOVER_NODES; i < WATCHERS_END; i++) {
        struct view other = view_of(f, i);
        if (other.named == master && other.epoch == view->epoch && !other.moving)
            return true;
    }
    return false;
}

/* As an operator would do: it forgets everything, and learns from the others which server is the master. */
static void begin_anew(struct failover *f, int i)
{
    failover_kill(f, i);
    start(f, i);
    hurry(f, i);
}

static bool agrees(struct failover *f, int i, int master)
{
    struct view view = view_of(f, i);
    if (is_astray(f, &view, master))
        begin_anew(f, i);
    return view.named == master && view.calm && is_healthy(f, i) && knows_replicas(f, i);
}

bool failover_settled(struct failover *f)
{
    int master = failover_master(f);
    if (master < 0 || !has_replicas(f, master))
        return false;
    for (int i = FAILOVER_NODES; i < WATCHERS_END; i++)
        if (!agrees(f, i, master))
            return false;
    return true;
}

/* Has one of the Sentinels named another one? */
static bool is_announced(struct failover *f, int old)
{
    for (int i = FAILOVER_NODES; i < WATCHERS_END; i++) {
        int named = view_of(f, i).named;
        if (named >= 0 && named != old)
            return true;
    }
    return false;
}

/* A Sentinel whose clock jumped, as it seems on a busy machine, does nothing for 30 s, and then its clock may jump again. */
enum { ELECTED_WITHIN_MS = FAILOVER_WITHIN_MS + 4 * 30000 };

int failover_await(struct failover *f, int old, int64_t *at_ms)
{
    int master;
    eventually(is_announced(f, old), ELECTED_WITHIN_MS);
    if (at_ms != NULL)
        *at_ms = now_ms();
    eventually((master = failover_master(f)) >= 0 && master != old, FAILOVER_WITHIN_MS);
    return master;
}

/* WAIT is for what the same connection wrote. */
static bool is_synced(struct failover *f, int node)
{
    order(f, node, "INCR failover-sync");
    return failover_int(f, node, "WAIT 2 1000") == 2;
}

void failover_sync(struct failover *f, int node)
{
    eventually(is_synced(f, node), STARTS_WITHIN_MS);
}

static bool is_taken_up(struct failover *f)
{
    redisReply *reply = ask(f, FAILOVER_NODES, "SENTINEL FAILOVER " FAILOVER_SERVICE);
    bool taken = reply != NULL && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    return taken;
}

void failover_configure(struct failover *f, const char *settings)
{
    for (int node = 0; node < FAILOVER_NODES; node++)
        order(f, node, settings, f->world->dir, f->world->dir);
}

void failover_ordersentinels(struct failover *f, const char *command)
{
    for (int i = FAILOVER_NODES; i < WATCHERS_END; i++)
        order(f, i, command);
}

void failover_demand(struct failover *f)
{
    eventually(is_taken_up(f), STARTS_WITHIN_MS); /* it may not know yet that the replicas are fine */
}

/* --- blows ------------------------------------------------------------------------------------------------------------- */

void failover_kill(struct failover *f, int node)
{
    struct process *p = &f->processes[node];
    world_reap(f->world, p->pid);
    p->pid = 0;
    hang_up(p);
}

void failover_start(struct failover *f, int node)
{
    start(f, node);
    eventually(answers(f, node), STARTS_WITHIN_MS);
}

void failover_stop(struct failover *f, int node)
{
    world_stop(f->processes[node].pid);
}

void failover_cont(struct failover *f, int node)
{
    world_cont(f->processes[node].pid);
}

void failover_cutoff(struct failover *f, int node)
{
    order(f, node, "ACL DELUSER watcher");
}

/* A Sentinel whose password was refused keeps its connection, on which each PING is refused, too: so that is ended. */
void failover_heal(struct failover *f, int node)
{
    order(f, node, "ACL SETUSER watcher on >%s ~* &* +@all", PASSWORD);
    order(f, node, "CLIENT KILL USER default");
}

void failover_killsentinel(struct failover *f, int sentinel)
{
    failover_kill(f, FAILOVER_NODES + sentinel);
}

void failover_startsentinel(struct failover *f, int sentinel)
{
    launch(f, FAILOVER_NODES + sentinel);
    hurry(f, FAILOVER_NODES + sentinel);
}

void failover_stopsentinel(struct failover *f, int sentinel)
{
    failover_stop(f, FAILOVER_NODES + sentinel);
}

int failover_isolated(struct failover *f, const char *certificate)
{
    f->certificate = certificate;
    if (f->processes[ISOLATED].pid == 0)
        start(f, ISOLATED);
    eventually(has_begun(f, ISOLATED), STARTS_WITHIN_MS);
    return f->processes[ISOLATED].port;
}

void failover_contsentinel(struct failover *f, int sentinel)
{
    failover_cont(f, FAILOVER_NODES + sentinel);
}

void failover_setclock(struct failover *f, int node, int64_t ms)
{
    assert_that(f->processes[node].offset_us != NULL);
    __atomic_store_n(f->processes[node].offset_us, ms * 1000, __ATOMIC_SEQ_CST);
}

/* --- what tests do with clients --------------------------------------------------------------------------------------- */

int failover_visit(void *arg)
{
    struct failover_visit *visit = arg;
    int rc = lk_mutex_lockfor(visit->mutex, PATIENT_MS);
    visit->held_ms = now_ms();
    return rc != 0 ? rc : lk_mutex_unlock(visit->mutex);
}

void failover_refused(int code, const char *url, const char *words)
{
    lk_client_t *client;
    assert_lk(code, lk_client_open(&client, url));
    assert_says(words);
    assert_null(strstr(lk_errortext(), "-pw"));
}
