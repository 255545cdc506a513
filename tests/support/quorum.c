/* SPDX-License-Identifier: MIT */
/* quorum.c - see quorum.h */
#include "quorum.h"
#include "world_parts.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct member {
    pid_t pid;        /* 0: not running */
    int port;         /* what clients come to; of TLS, if the world has that */
    int control_port; /* the test's own; the same where there is no TLS */
    bool stopped;
    redisContext *control;
};

struct quorum {
    struct world *world;
    int count;
    int nowhere[QUORUM_NODES]; /* ports on which nobody listens */
    struct member members[QUORUM_NODES];
};

/* --- processes ------------------------------------------------------------------------------------------------------ */

static bool has_tls(const struct quorum *q)
{
    return q->world->tls_port != 0;
}

static void exec_server(struct quorum *q, const struct member *m)
{
    char port[16], tls_port[16], certificate[96], key[96], trusted[96];
    const char *binary = getenv("LATCHKEY_TEST_SERVER"), *dir = q->world->dir;
    snprintf(port, sizeof port, "%d", m->control_port);
    snprintf(tls_port, sizeof tls_port, "%d", m->port);
    snprintf(certificate, sizeof certificate, "%s/server.pem", dir);
    snprintf(key, sizeof key, "%s/server.key", dir);
    snprintf(trusted, sizeof trusted, "%s/ca.pem", dir);
    binary = binary != NULL && binary[0] != 0 ? binary : "redis-server";
    execlp(binary, binary, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir,
           has_tls(q) ? "--tls-port" : (char *)NULL, tls_port, "--tls-auth-clients", "no", "--tls-cert-file",
           certificate, "--tls-key-file", key, "--tls-ca-cert-file", trusted, (char *)NULL);
    _exit(126);
}

static void launch(struct quorum *q, struct member *m)
{
    pid_t parent = getpid();
    m->pid = fork();
    assert_that(m->pid >= 0);
    if (m->pid != 0)
        return;
    int nothing = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        dup2(nothing, fd);
    die_with_parent(parent);
    exec_server(q, m);
}

static void hang_up(struct member *m)
{
    if (m->control != NULL)
        redisFree(m->control);
    m->control = NULL;
}

static redisContext *control_of(struct member *m)
{
    const struct timeval patience = { 30, 0 }; /* a simulated machine may stand still for so long */
    if (m->control != NULL && m->control->err == 0)
        return m->control;
    hang_up(m);
    m->control = redisConnectWithTimeout("127.0.0.1", m->control_port, patience);
    assert_that(m->control != NULL);
    redisSetTimeout(m->control, patience);
    return m->control;
}

static bool answers(struct member *m)
{
    redisReply *reply = redisCommand(control_of(m), "PING");
    bool up = reply != NULL && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    return up;
}

static void take_ports(struct quorum *q, struct member *m)
{
    hang_up(m);
    m->port = free_port();
    m->control_port = has_tls(q) ? free_port() : m->port;
}

/* It has the process that answers there, and not another one the port. */
static bool is_itself(struct member *m)
{
    redisReply *reply = redisCommand(control_of(m), "INFO server");
    const char *at = reply != NULL && reply->str != NULL ? strstr(reply->str, "process_id:") : NULL;
    bool itself = at != NULL && strtol(at + strlen("process_id:"), NULL, 10) == m->pid;
    freeReplyObject(reply);
    return itself;
}

/* Does it serve? One that ended had a port that another server took before, and has another one now. */
static bool has_begun(struct quorum *q, struct member *m)
{
    if (waitpid(m->pid, NULL, WNOHANG) == m->pid) {
        take_ports(q, m);
        launch(q, m);
        return false;
    }
    return is_itself(m);
}

static void end(void *arg)
{
    struct quorum *q = arg;
    for (int i = 0; i < q->count; i++) {
        hang_up(&q->members[i]);
        if (q->members[i].pid != 0)
            world_reap(q->world, q->members[i].pid);
    }
    free(q);
}

struct quorum *quorum_begin(struct world *w, int count)
{
    struct quorum *q = calloc(1, sizeof *q);
    assert_that(q != NULL && count <= QUORUM_NODES);
    q->world = w;
    q->count = count;
    world_at_end(w, NULL, q, end);
    for (int i = 0; i < count; i++) {
        take_ports(q, &q->members[i]);
        q->nowhere[i] = free_port();
    }
    for (int i = 0; i < count; i++)
        launch(q, &q->members[i]);
    for (int i = 0; i < count; i++)
        eventually(has_begun(q, &q->members[i]), QUORUM_WITHIN_MS);
    return q;
}

void quorum_kill(struct quorum *q, int node)
{
    struct member *m = &q->members[node];
    world_reap(q->world, m->pid);
    m->pid = 0;
    m->stopped = false;
    hang_up(m);
}

void quorum_start(struct quorum *q, int node)
{
    launch(q, &q->members[node]);
    eventually(answers(&q->members[node]), 5 * QUORUM_WITHIN_MS); /* a simulated machine may stand still again and again */
}

void quorum_stop(struct quorum *q, int node)
{
    world_stop(q->members[node].pid);
    q->members[node].stopped = true;
}

void quorum_cont(struct quorum *q, int node)
{
    world_cont(q->members[node].pid);
    q->members[node].stopped = false;
}

/* --- clients -------------------------------------------------------------------------------------------------------- */

int quorum_port(struct quorum *q, int node)
{
    return q->members[node].port;
}

int quorum_controlport(struct quorum *q, int node)
{
    return q->members[node].control_port;
}

static const char *url_of(struct quorum *q, const char *user, const char *unseen, const char *options)
{
    char url[640];
    snprintf(url, sizeof url, "redis%s-quorum://%s", has_tls(q) ? "s" : "", user);
    for (int i = 0; i < q->count; i++) {
        size_t length = strlen(url);
        bool seen = strchr(unseen, '0' + i) == NULL;
        snprintf(url + length, sizeof url - length, "%s127.0.0.1:%d", i > 0 ? "," : "",
                 seen ? q->members[i].port : q->nowhere[i]);
    }
    size_t length = strlen(url);
    if (has_tls(q))
        snprintf(url + length, sizeof url - length, "?%s&cacert=%s/ca.pem", options, q->world->dir);
    else
        snprintf(url + length, sizeof url - length, "?%s", options);
    return world_keep(url, strlen(url));
}

const char *quorum_url_without(struct quorum *q, const char *unseen, const char *options)
{
    return url_of(q, "", unseen, options);
}

const char *quorum_url_as(struct quorum *q, const char *user, const char *options)
{
    return url_of(q, user, "", options);
}

const char *quorum_url(struct quorum *q, const char *options)
{
    return url_of(q, "", "", options);
}

lk_client_t *quorum_client(struct quorum *q, const char *options)
{
    return world_client_at(q->world, q, quorum_url(q, options));
}

static void destroy(void *redlock)
{
    assert_lk(0, lk_redlock_destroy(redlock));
    free(redlock);
}

lk_redlock_t *quorum_redlock(struct world *w, lk_client_t *client, const char *name, const lk_redlockattr_t *attr)
{
    lk_redlock_t *r = malloc(sizeof *r);
    assert_that(r != NULL);
    assert_lk(0, lk_redlock_init(r, client, name, attr));
    world_at_end(w, client, r, destroy);
    return r;
}

/* --- commands ------------------------------------------------------------------------------------------------------- */

static redisReply *say(struct quorum *q, int node, const char *format, va_list args)
{
    redisReply *reply = redisvCommand(control_of(&q->members[node]), format, args);
    assert_that(reply != NULL && reply->type != REDIS_REPLY_ERROR);
    return reply;
}

int64_t quorum_int(struct quorum *q, int node, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = say(q, node, format, args);
    va_end(args);
    int64_t number = reply->type == REDIS_REPLY_INTEGER ? reply->integer
                     : reply->type == REDIS_REPLY_NIL   ? -1
                                                        : strtoll(reply->str, NULL, 10);
    freeReplyObject(reply);
    return number;
}

const char *quorum_str(struct quorum *q, int node, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = say(q, node, format, args);
    va_end(args);
    const char *text = reply->str != NULL ? world_keep(reply->str, reply->len) : "";
    freeReplyObject(reply);
    return text;
}

int quorum_having(struct quorum *q, const char *key)
{
    int having = 0;
    for (int i = 0; i < q->count; i++)
        if (q->members[i].pid != 0 && !q->members[i].stopped)
            having += quorum_int(q, i, "EXISTS %s", key) == 1;
    return having;
}

void quorum_lockall(struct quorum *q, lk_redlock_t *r, const char *name)
{
    enum { PATIENCE_MS = 500 };
    int64_t patience_ms = 20; /* one that is not connected yet is not asked, and one that is may be slow */
    for (int64_t until_ms = now_ms() + QUORUM_WITHIN_MS; now_ms() < until_ms;) {
        assert_lk(0, lk_redlock_lockfor(r, QUORUM_WITHIN_MS));
        for (int64_t seen_ms = now_ms() + patience_ms; now_ms() < seen_ms; sleep_ms(2))
            if (quorum_having(q, name) == q->count)
                return;
        (void)lk_redlock_unlock(r); /* whose answers may be late as well */
        eventually(quorum_having(q, name) == 0, QUORUM_WITHIN_MS); /* what comes late there would be taken for the next one */
        patience_ms = 2 * patience_ms < PATIENCE_MS ? 2 * patience_ms : PATIENCE_MS;
    }
    assert_failed(__FILE__, __LINE__, "never at all servers: %s", name);
}
