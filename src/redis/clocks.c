/* SPDX-License-Identifier: MIT */
/*
 * clocks.c - do the clocks of servers that replace each other agree?
 *
 * Leases end by the server's clock, at moments that replicas know as dates. A replica whose clock is ahead ends them early
 * when it is promoted, by as much: clock_skew is taken off every validity for that, and covers no more. So whoever opens a
 * client is told when they differ by more. One that does not answer is no reason to fail: it may never be promoted.
 */
#include "redis/clocks.h"
#include "redis/cluster.h"
#include "redis/reach.h"
#include "redis/talk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOST_MAX = 255, PART_OF_TIMEOUT = 4 };

int64_t lk__clocks_differ(const struct lk__ahead *one, const struct lk__ahead *other)
{
    if (other->least_us > one->most_us)
        return other->least_us - one->most_us;
    return other->most_us < one->least_us ? other->most_us - one->least_us : 0;
}

static struct lk__talk talk_of(const struct lk__search *search, struct lk__stream *stream, int64_t until_us, char *why,
                               size_t size)
{
    return (struct lk__talk){ .stream = stream,
                              .options = &search->server->options,
                              .until_us = until_us,
                              .cancel_fd = search->cancel_fd,
                              .errmsg = why,
                              .size = size };
}

static int ask_time(const struct lk__talk *talk, struct lk__ahead *ahead)
{
    const char *time[1] = { "TIME" };
    int64_t before_us = lk__now_us(), there_us = 0;
    int rc = lk__talk_auth(talk);
    if (rc == 0)
        rc = lk__talk_say(talk, 1, time);
    if (rc == 0 && talk->login.password != NULL)
        rc = lk__talk_hear(talk);
    if (rc == 0)
        rc = lk__talk_hear(talk);
    if (rc == 0 && !lk__talk_time(talk->stream->filling, &there_us))
        rc = ENOTCONN;
    *ahead = lk__clocks_ahead(before_us, lk__now_us(), there_us);
    return rc;
}

/* The clock at `address`; `login`: it is told who we are, with the password. */
static int measure(const struct lk__search *search, const struct lk__address *address, bool login, int64_t until_us,
                   struct lk__ahead *ahead)
{
    char why[LK__ERRMSG_MAX];
    struct lk__stream *stream = NULL;
    int rc =
        lk__reach(search->connector, search->server, address, until_us, search->cancel_fd, &stream, why, sizeof why);
    if (rc != 0)
        return rc;
    struct lk__talk talk = talk_of(search, stream, until_us, why, sizeof why);
    if (login)
        talk.login = lk__login_of(search->server, LK__PEER_SERVER);
    rc = ask_time(&talk, ahead);
    lk__stream_unref(stream);
    return rc;
}

/* The clock at `address` differs so much from another one, which is "the master's". */
static int judge(const struct lk__search *search, const struct lk__address *address, int64_t differ_us,
                 const char *other, char *errmsg, size_t size)
{
    const struct lk__options *options = &search->server->options;
    if (llabs(differ_us) <= options->clock_skew_ms * 1000)
        return 0;
    snprintf(errmsg, size, "the clock of %.128s:%d is %lld ms %s %s, more than clock_skew=%lldms", address->host,
             address->port, llabs(differ_us) / 1000, differ_us > 0 ? "ahead of" : "behind", other,
             (long long)options->clock_skew_ms);
    if (options->strict)
        return ENOTSUP;
    lk__log(LK_LOG_WARNING, "%s: after a %s to it leases may end early, or late", errmsg,
            options->cluster ? "failover or a move" : "failover");
    return 0;
}

/* One more server. */
static int compare(const struct lk__search *search, const struct lk__address *address, bool login, int64_t until_us,
                   const struct lk__ahead *master, char *errmsg, size_t size)
{
    struct lk__ahead ahead;
    int rc = measure(search, address, login, until_us, &ahead);
    if (rc == 0)
        return judge(search, address, lk__clocks_differ(master, &ahead), "the master's", errmsg, size);
    return rc == ECANCELED || rc == ENOMEM ? rc : 0;
}

/* Whoever opens the client waits no longer for it. */
static int64_t compared_until(const struct lk__search *search)
{
    int64_t now_us = lk__now_us(), part_us = search->server->options.connect_timeout_ms * 1000 / PART_OF_TIMEOUT;
    int64_t left_us = (search->until_us - now_us) / 2;
    return now_us + (part_us < left_us ? part_us : left_us);
}

static int compare_listed(const struct lk__search *search, int64_t until_us, const struct lk__ahead *master,
                          char *errmsg, size_t size)
{
    const struct lk__options *options = &search->server->options;
    int rc = 0;
    for (unsigned i = 0; i < options->server_count && rc == 0; i++)
        if (&options->servers[i] != search->place) {
            int64_t now_us = lk__now_us();
            rc = compare(search, &options->servers[i], true,
                         now_us + (until_us - now_us) / (options->server_count - i), master, errmsg, size);
        }
    return rc;
}

/* "slave0:ip=10.0.0.7,port=6379,state=online,...": false: that is none. */
static bool read_replica(const char *line, char host[HOST_MAX + 1], int *port)
{
    const char *ip = strstr(line, ":ip="), *end = strchr(line, '\n'), *digits = strstr(line, ",port=");
    if (ip == NULL || digits == NULL || (end != NULL && digits > end))
        return false;
    size_t length = strcspn(ip + 4, ",");
    if (length == 0 || length > HOST_MAX)
        return false;
    memcpy(host, ip + 4, length);
    host[length] = '\0';
    *port = atoi(digits + 6);
    return *port > 0 && *port <= UINT16_MAX;
}

/*
 * The master tells which replicas it has, unless the access rules keep that back. Anybody who may replicate can have it name
 * any address. So the password goes there only where a certificate of the user's own authority proves who is there.
 */
static int compare_replicas(const struct lk__search *search, struct lk__stream *stream, int64_t until_us,
                            const struct lk__ahead *master, char *errmsg, size_t size)
{
    const struct lk__tlsoptions *tls = &search->server->options.tls;
    const struct lk__talk talk = talk_of(search, stream, until_us, errmsg, size);
    bool proven = tls->on && !tls->unverified && (tls->cacert != NULL || tls->capath != NULL);
    const char *info[2] = { "INFO", "replication" };
    char host[HOST_MAX + 1];
    struct lk__address address = { .host = host };
    int rc = lk__talk_say(&talk, 2, info);
    if (rc == 0)
        rc = lk__talk_hear(&talk);
    if (rc != 0)
        return rc;
    const char *line = lk__reply_text(stream->filling, 0);
    while (rc == 0 && (line = strstr(line, "\nslave")) != NULL && lk__now_us() < until_us) {
        line++;
        if (strncmp(line, "slave_", 6) != 0 && read_replica(line, host, &address.port))
            rc = compare(search, &address, proven, until_us, master, errmsg, size);
    }
    return rc;
}

int lk__clocks_compare(const struct lk__search *search, struct lk__stream *stream, const struct lk__ahead *master,
                       char *errmsg, size_t size)
{
    int64_t until_us = compared_until(search);
    if (search->server->options.service != NULL)
        return compare_replicas(search, stream, until_us, master, errmsg, size);
    return compare_listed(search, until_us, master, errmsg, size);
}

/* --- a cluster's ---------------------------------------------------------------------------------------------------- */

/* A node whose clock was read. */
struct reading {
    struct lk__ahead ahead; /* no node yet: all 0 */
    char whose[160];
};

/* Of those that were read. */
struct furthest {
    struct reading ahead, behind;
};

/* With both ends of what was seen; 0: it agrees with them, as far as they are known. */
static int compare_node(const struct lk__search *search, const struct lk__address *address,
                        const struct lk__ahead *ahead, struct furthest *seen, char *errmsg, size_t size)
{
    struct reading this = { .ahead = *ahead };
    snprintf(this.whose, sizeof this.whose, "that of %.128s:%d", address->host, address->port);
    if (seen->ahead.whose[0] == '\0')
        seen->ahead = seen->behind = this;
    int64_t above_us = lk__clocks_differ(&seen->behind.ahead, ahead);
    int64_t below_us = lk__clocks_differ(&seen->ahead.ahead, ahead);
    bool leads = llabs(above_us) >= llabs(below_us);
    int rc = judge(search, address, leads ? above_us : below_us, leads ? seen->behind.whose : seen->ahead.whose,
                   errmsg, size);
    if (ahead->least_us > seen->ahead.ahead.least_us)
        seen->ahead = this;
    if (ahead->most_us < seen->behind.ahead.most_us)
        seen->behind = this;
    return rc;
}

/* The next one that may answer. */
static bool next_node(const char **nodes, const char *host, struct lk__told *told)
{
    while (lk__told_next(nodes, told)) {
        if (told->host[0] == '\0')
            snprintf(told->host, sizeof told->host, "%s", host);
        if (!told->failed)
            return true;
    }
    return false;
}

int lk__clocks_comparenodes(const struct lk__search *search, const char *nodes, const char *host, char *errmsg,
                            size_t size)
{
    const struct lk__options *options = &search->server->options;
    int64_t until_us = compared_until(search);
    struct furthest seen = { 0 };
    struct lk__told told;
    int rc = 0, left = 0;
    for (const char *text = nodes; next_node(&text, host, &told);)
        left++;
    for (; rc == 0 && next_node(&nodes, host, &told); left--) {
        char at[sizeof told.host];
        struct lk__address address = { at, told.port };
        struct lk__ahead ahead;
        int64_t now_us = lk__now_us();
        snprintf(at, sizeof at, "%s", lk__told_host(&told, options));
        rc = now_us < until_us ? measure(search, &address, true, now_us + (until_us - now_us) / left, &ahead) : ENOTCONN;
        if (rc == 0)
            rc = compare_node(search, &address, &ahead, &seen, errmsg, size);
        else if (rc != ECANCELED && rc != ENOMEM)
            rc = 0;
    }
    return rc;
}
