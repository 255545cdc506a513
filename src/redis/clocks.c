/* SPDX-License-Identifier: MIT */
/*
 * clocks.c - do the clocks of servers that replace each other agree?
 *
 * Leases end by the server's clock, at moments that replicas know as dates. A replica whose clock is ahead ends them early
 * when it is promoted, by as much: clock_skew is taken off every validity for that, and covers no more. So whoever opens a
 * client is told when they differ by more. One that does not answer is no reason to fail: it may never be promoted.
 */
#include "redis/clocks.h"
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
                              .login = lk__login_of(search->server, LK__PEER_SERVER),
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

static int measure(const struct lk__search *search, const struct lk__address *address, int64_t until_us,
                   struct lk__ahead *ahead)
{
    char why[LK__ERRMSG_MAX];
    struct lk__stream *stream = NULL;
    int rc =
        lk__reach(search->connector, search->server, address, until_us, search->cancel_fd, &stream, why, sizeof why);
    if (rc != 0)
        return rc;
    const struct lk__talk talk = talk_of(search, stream, until_us, why, sizeof why);
    rc = ask_time(&talk, ahead);
    lk__stream_unref(stream);
    return rc;
}

static int judge(const struct lk__search *search, const struct lk__address *address, int64_t differ_us, char *errmsg,
                 size_t size)
{
    const struct lk__options *options = &search->server->options;
    if (llabs(differ_us) <= options->clock_skew_ms * 1000)
        return 0;
    snprintf(errmsg, size, "the clock of %.128s:%d is %lld ms %s the master's, more than clock_skew=%lldms",
             address->host, address->port, llabs(differ_us) / 1000, differ_us > 0 ? "ahead of" : "behind",
             (long long)options->clock_skew_ms);
    if (options->strict)
        return ENOTSUP;
    lk__log(LK_LOG_WARNING, "%s: after a failover to it leases may end early, or late", errmsg);
    return 0;
}

/* One more server. */
static int compare(const struct lk__search *search, const struct lk__address *address, int64_t until_us,
                   const struct lk__ahead *master, char *errmsg, size_t size)
{
    struct lk__ahead ahead;
    int rc = measure(search, address, until_us, &ahead);
    if (rc == 0)
        return judge(search, address, lk__clocks_differ(master, &ahead), errmsg, size);
    return rc == ECANCELED || rc == ENOMEM ? rc : 0;
}

static int compare_listed(const struct lk__search *search, int64_t until_us, const struct lk__ahead *master,
                          char *errmsg, size_t size)
{
    const struct lk__options *options = &search->server->options;
    int rc = 0;
    for (unsigned i = 0; i < options->server_count && rc == 0; i++)
        if (&options->servers[i] != search->place) {
            int64_t now_us = lk__now_us();
            rc = compare(search, &options->servers[i], now_us + (until_us - now_us) / (options->server_count - i),
                         master, errmsg, size);
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

/* The master tells which replicas it has, unless the access rules keep that back. */
static int compare_replicas(const struct lk__search *search, struct lk__stream *stream, int64_t until_us,
                            const struct lk__ahead *master, char *errmsg, size_t size)
{
    const struct lk__talk talk = talk_of(search, stream, until_us, errmsg, size);
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
            rc = compare(search, &address, until_us, master, errmsg, size);
    }
    return rc;
}

int lk__clocks_compare(const struct lk__search *search, struct lk__stream *stream, const struct lk__ahead *master,
                       char *errmsg, size_t size)
{
    const struct lk__options *options = &search->server->options;
    int64_t now_us = lk__now_us(), until_us = now_us + options->connect_timeout_ms * 1000 / PART_OF_TIMEOUT;
    if (until_us > now_us + (search->until_us - now_us) / 2) /* whoever opens the client waits no longer than that */
        until_us = now_us + (search->until_us - now_us) / 2;
    if (options->service != NULL)
        return compare_replicas(search, stream, until_us, master, errmsg, size);
    return compare_listed(search, until_us, master, errmsg, size);
}
