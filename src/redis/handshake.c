/* SPDX-License-Identifier: MIT */
/*
 * handshake.c - from a connected socket to a server that may be used
 *
 * All commands go out in one write; each answer is judged by itself. A refusal of a command that is not needed is
 * ignored.
 */
#include "redis/stream.h"
#include "redis/scripts.h"
#include "redis/server_clock.h"

#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct talk {
    struct lk__stream *stream;
    const struct lk__options *options;
    struct lk__serverinfo *info;
    bool inspect;
    uint64_t number; /* of the ECHO at the end */
    char *errmsg;
    size_t size;
    enum lk__pubsub_kind pubsub; /* what the server's node needs rights for */
};

/* `detail` may be what the server said: servers and proxies quote commands that they do not know. */
static int complain(const struct talk *talk, int code, const char *what, const char *detail)
{
    char shown[LK__ERRMSG_MAX];
    lk__options_quote(talk->options, detail, shown, sizeof shown);
    snprintf(talk->errmsg, talk->size, "%s%s%s", what, shown[0] != '\0' ? ": " : "", shown);
    return code;
}

/* 0, or the code of an error where there must be none. */
static int judge(const struct talk *talk, const struct lk__reply *reply, const char *what)
{
    bool retry;
    if (reply->type != LK__ERROR)
        return 0;
    int code = lk__reply_error(reply, &retry);
    return complain(talk, code, what, lk__reply_text(reply, 0));
}

/* Fail because rights are missing that all objects need. */
static int lacks(const struct talk *talk, const char *rights)
{
    const char *user = talk->options->user;
    snprintf(talk->errmsg, talk->size, "the access rules (ACL) of the user %s lack %s", user != NULL ? user : "default",
             rights);
    return EACCES;
}

/* A server that does not know AUTH quotes its arguments, in whatever form: only the code of the error is told. */
static int on_auth(const struct talk *talk, const struct lk__reply *reply)
{
    bool retry;
    if (reply->type != LK__ERROR)
        return 0;
    const char *says = lk__reply_text(reply, 0);
    char word[24];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(says, " "), says);
    int code = complain(talk, lk__reply_error(reply, &retry), "the server refuses the user or the password", word);
    return code == EPROTO ? EACCES : code; /* "ERR AUTH called without any password configured" */
}

static int on_select(const struct talk *talk, const struct lk__reply *reply)
{
    int rc = judge(talk, reply, "the server refuses the database");
    return rc == EPROTO ? EINVAL : rc;
}

static int on_role(const struct talk *talk, const struct lk__reply *reply)
{
    bool retry;
    if (reply->type == LK__ERROR) {
        int code = lk__reply_error(reply, &retry);
        /* Without the right to ask, the first script finds out. */
        return code == EACCES && lk__reply_is(reply, "NOPERM")
                   ? 0
                   : judge(talk, reply, "the server does not tell its role");
    }
    if (reply->type != LK__ARRAY || lk__reply_text(reply, 0)[0] == '\0')
        return complain(talk, EPROTO, "what answers is no Redis server", "");
    talk->info->replica = strcmp(lk__reply_text(reply, 0), "master") != 0;
    if (talk->info->replica)
        return complain(talk, ENOTCONN, "the server is a replica and takes no locks; connect to its master", "");
    return 0;
}

static int on_time(const struct talk *talk, const struct lk__reply *reply)
{
    if (lk__reply_is(reply, "NOPERM"))
        return talk->inspect
                   ? 0
                   : lacks(talk, "+time"); /* with `inspect` it is told together with all other missing rights */
    int rc = judge(talk, reply, "the server does not tell the time");
    if (rc != 0)
        return rc;
    long long s = strtoll(lk__reply_text(reply, 0), NULL, 10), us = strtoll(lk__reply_text(reply, 1), NULL, 10);
    bool plausible = s > 0 && s <= INT64_MAX / 2000000 && us >= 0 && us <= 999999;
    if (reply->type != LK__ARRAY || reply->count != 2 || !plausible || !lk__is_servertime(s * 1000000 + us))
        return complain(talk, EPROTO, "what answers is no Redis server", "");
    talk->info->server_us = (int64_t)s * 1000000 + us;
    return 0;
}

static int on_name(const struct talk *talk, const struct lk__reply *reply)
{
    (void)talk;
    (void)reply; /* a server that permits no name works as well */
    return 0;
}

/* The value behind "\nfield:" in an INFO text, or NULL. */
static const char *info_field(const char *info, const char *field)
{
    size_t length = strlen(field);
    for (const char *at = info; (at = strstr(at, field)) != NULL; at += length)
        if ((at == info || at[-1] == '\n') && at[length] == ':')
            return at + length + 1;
    return NULL;
}

/* The server does not tell: accepted, but not with strict=yes. */
static int unknown(const struct talk *talk, const struct lk__reply *reply)
{
    if (!talk->options->strict)
        return 0;
    if (lk__reply_is(reply, "NOPERM"))
        return complain(talk, EACCES,
                        "strict=yes has to know version and maxmemory-policy: the access rules (ACL) lack +info", "");
    return complain(talk, ENOTSUP, "strict=yes has to know version and maxmemory-policy: the server does not tell", "");
}

/* What it says of itself. The run id is good to know, the version is to be known. */
static int on_server(const struct talk *talk, const struct lk__reply *reply)
{
    const char *run_id = info_field(lk__reply_text(reply, 0), "run_id");
    if (run_id != NULL)
        snprintf(talk->info->run_id, sizeof talk->info->run_id, "%.*s", (int)strcspn(run_id, "\r\n"), run_id);
    const char *version = info_field(lk__reply_text(reply, 0), "redis_version");
    if (!talk->inspect)
        return 0;
    if (version == NULL)
        return unknown(talk, reply);
    if (atoi(version) >= 7) /* Valkey calls itself 7.2 there */
        return 0;
    char seen[24];
    snprintf(seen, sizeof seen, "%.*s", (int)strcspn(version, "\r\n"), version);
    return complain(talk, ENOTSUP, "the server is older than Redis 7.0", seen);
}

static int on_policy(const struct talk *talk, const struct lk__reply *reply)
{
    const char *policy = info_field(lk__reply_text(reply, 0), "maxmemory_policy");
    if (policy == NULL)
        return unknown(talk, reply);
    if (strncmp(policy, "noeviction", 10) == 0)
        return 0;
    char seen[32];
    snprintf(seen, sizeof seen, "%.*s", (int)strcspn(policy, "\r\n"), policy);
    if (talk->options->strict)
        return complain(talk, ENOTSUP, "the server may evict live locks (set maxmemory-policy noeviction)", seen);
    snprintf(talk->info->warning, sizeof talk->info->warning,
             "the server may evict live locks: its maxmemory-policy is %s, set noeviction", seen);
    return 0;
}

static int on_probe(const struct talk *talk, const struct lk__reply *reply)
{
    if (lk__reply_is(reply, "NOPERM"))
        return lacks(talk, "+eval");
    int rc = judge(talk, reply, "the server does not run the script that looks at this user's rights");
    if (rc != 0)
        return rc;
    if (lk__reply_text(reply, 0)[0] != '\0' && reply->type == LK__ARRAY)
        return lacks(talk, lk__reply_text(reply, 0));
    snprintf(talk->info->missing, sizeof talk->info->missing, "%s", lk__reply_text(reply, 1));
    return 0;
}

/* The last answer: were all answers in their places? A server without ECHO is believed, with a warning. */
static int on_echo(const struct talk *talk, const struct lk__reply *reply)
{
    talk->stream->no_echo = reply->type == LK__ERROR;
    if (!talk->stream->no_echo)
        return lk__echo_proves(reply, talk->number, NULL)
                   ? 0
                   : complain(talk, EPROTO, "answers of the server are out of their places", "");
    if (!lk__reply_is(reply, "NOPERM") && talk->info->warning[0] == '\0')
        snprintf(talk->info->warning, sizeof talk->info->warning,
                 "the server refuses ECHO: whether an error answers the right request cannot be proven");
    return 0;
}

typedef int (*judge_t)(const struct talk *, const struct lk__reply *);

/* The commands of a handshake, in this order. Returns the number of words in argv; 0: this one is not sent. */
enum question {
    ASK_AUTH,
    ASK_SELECT,
    ASK_ROLE,
    ASK_TIME,
    ASK_NAME,
    ASK_SERVER,
    ASK_POLICY,
    ASK_PROBE,
    ASK_ECHO,
    QUESTIONS
};

enum { WORDS_MAX = 9 };

/* The script that tries what the access rules allow; `id` is in the names of its keys. */
static int probe(const struct talk *talk, const char *argv[WORDS_MAX], const char *id)
{
    const struct lk__options *o = talk->options;
    const struct lk__pubsub *words = &lk__pubsub[talk->pubsub];
    const char *const command[WORDS_MAX] = {
        "EVAL",
        lk__lua_redis_probe.source,
        "0",
        id,
        o->prefix != NULL ? o->prefix : "",
        o->no_pubsub ? "0" : "1",
        words->publish,
        words->subscribe,
        words->unsubscribe,
    };
    memcpy(argv, command, sizeof command);
    return WORDS_MAX;
}

static int command_of(const struct talk *talk, enum question question, const char *argv[WORDS_MAX], char scratch[40])
{
    const struct lk__options *o = talk->options;
    int argc = 0;
    switch (question) {
    case ASK_AUTH:
        if (o->password == NULL)
            return 0;
        argv[argc++] = "AUTH";
        if (o->user != NULL)
            argv[argc++] = o->user;
        argv[argc++] = o->password;
        return argc;
    case ASK_SELECT:
        if (o->db == 0)
            return 0;
        snprintf(scratch, 40, "%d", o->db);
        argv[argc++] = "SELECT";
        argv[argc++] = scratch;
        return argc;
    case ASK_ROLE:
        argv[argc++] = "ROLE";
        return argc;
    case ASK_TIME:
        argv[argc++] = "TIME";
        return argc;
    case ASK_NAME:
        argv[argc++] = "CLIENT";
        argv[argc++] = "SETNAME";
        argv[argc++] = o->client_name != NULL ? o->client_name : "latchkey";
        return argc;
    case ASK_SERVER:
    case ASK_POLICY:
        if (!talk->inspect && question == ASK_POLICY)
            return 0;
        argv[argc++] = "INFO";
        argv[argc++] = question == ASK_SERVER ? "server" : "memory";
        return argc;
    case ASK_PROBE:
        if (!talk->inspect || lk__random_id(scratch) != 0)
            return 0;
        return probe(talk, argv, scratch);
    case ASK_ECHO:
        snprintf(scratch, 40, "%020llu", (unsigned long long)talk->number);
        argv[argc++] = "ECHO";
        argv[argc++] = scratch;
        return argc;
    default:
        return 0;
    }
}

static int append(struct lk__stream *stream, int argc, const char *argv[])
{
    char *bytes = NULL;
    int length = redisFormatCommandArgv(&bytes, argc, argv, NULL);
    if (length < 0)
        return ENOMEM;
    int rc = lk__stream_append(stream, bytes, (size_t)length);
    explicit_bzero(bytes, (size_t)length); /* a password may be in it */
    redisFreeCommand(bytes);
    return rc;
}

static int next_reply(const struct talk *talk, int64_t until_us, int cancel_fd)
{
    for (;;) {
        int rc = lk__stream_next(talk->stream);
        if (rc == EPROTO)
            return complain(talk, EPROTO, "what answers does not speak Redis' protocol", "");
        if (rc != EAGAIN)
            return rc;
        if (lk__stream_give(talk->stream) != 0)
            return complain(talk, ENOTCONN, "the server closed the connection", "");
        struct pollfd polled[2] = {
            { talk->stream->fd, (short)(POLLIN | (lk__stream_pending(talk->stream) ? POLLOUT : 0)), 0 },
            { cancel_fd, POLLIN, 0 },
        };
        int ready = poll(polled, 2, lk__ms_until(until_us, lk__now_us()));
        if (ready > 0 && polled[1].revents != 0)
            return complain(talk, ECANCELED, "the client was closed", "");
        if (ready < 0 && errno != EINTR)
            return ENOMEM; /* the only other error of poll() */
        if (ready <= 0 && lk__now_us() >= until_us)
            return complain(talk, ENOTCONN, "the server accepts connections but does not answer in time", "");
        rc = ready > 0 ? lk__stream_take(talk->stream) : 0;
        if (rc == ENOMEM)
            return rc;
        if (rc == EIO)
            return complain(talk, ENOTCONN, "the server closed the connection", "");
    }
}

int lk__handshake(struct lk__stream *stream, const struct lk__server *server, bool inspect, int64_t until_us,
                  int cancel_fd, struct lk__serverinfo *info, char *errmsg, size_t size)
{
    static const judge_t judges[QUESTIONS] = { on_auth,   on_select, on_role,  on_time, on_name,
                                               on_server, on_policy, on_probe, on_echo };
    struct talk talk = { stream, &server->options, info, inspect, lk__random_below(INT64_MAX), errmsg,
                         size,   server->pubsub };
    bool asked[QUESTIONS];
    int rc = 0;

    info->before_us = lk__now_us();
    for (int q = 0; q < QUESTIONS && rc == 0; q++) {
        const char *argv[WORDS_MAX];
        char scratch[40];
        int argc = command_of(&talk, q, argv, scratch);
        asked[q] = argc > 0;
        if (asked[q])
            rc = append(stream, argc, argv);
    }
    for (int q = 0; q < QUESTIONS && rc == 0; q++) {
        if (!asked[q])
            continue;
        rc = next_reply(&talk, until_us, cancel_fd);
        if (rc == 0)
            rc = judges[q](&talk, stream->filling);
    }
    stream->filling->text_used = 0;
    if (rc == ENOMEM)
        complain(&talk, ENOMEM, "out of memory while connecting", "");
    return rc;
}
