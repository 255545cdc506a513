/* SPDX-License-Identifier: MIT */
/*
 * handshake.c - from a connected socket to a server that may be used
 *
 * All commands go out in one write; each answer is judged by itself. A refusal of a command that is not needed is
 * ignored.
 */
#include "redis/scripts.h"
#include "redis/server_clock.h"
#include "redis/talk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct talk {
    struct lk__talk on;
    const struct lk__options *options;
    struct lk__serverinfo *info;
    bool inspect;
    uint64_t number;             /* of the ECHO at the end */
    int64_t here_ms;             /* this machine's clock when it began */
    enum lk__pubsub_kind pubsub; /* what the server's node needs rights for */
};

static int complain(const struct talk *talk, int code, const char *what, const char *detail)
{
    return lk__talk_fail(&talk->on, code, what, detail);
}

/* Fail because rights are missing that all objects need. */
static int lacks(const struct talk *talk, const char *rights)
{
    const char *user = talk->on.login.user;
    snprintf(talk->on.errmsg, talk->on.size, "the access rules (ACL) of the user %s lack %s",
             user != NULL ? user : "default", rights);
    return EACCES;
}

static int on_auth(const struct talk *talk, const struct lk__reply *reply)
{
    if (reply->type != LK__ERROR)
        return 0;
    talk->info->refused = true;
    int code = lk__talk_refused(&talk->on, "the server refuses the user or the password");
    return code == EPROTO ? EACCES : code; /* "ERR AUTH called without any password configured" */
}

static int on_select(const struct talk *talk, const struct lk__reply *reply)
{
    int rc = lk__talk_judge(&talk->on, reply, "the server refuses the database");
    return rc == EPROTO ? EINVAL : rc;
}

static int on_role(const struct talk *talk, const struct lk__reply *reply)
{
    if (lk__reply_is(reply, "NOPERM"))
        return 0; /* without the right to ask, the first script finds out */
    int rc = lk__talk_judge(&talk->on, reply, "the server does not tell its role");
    if (rc != 0)
        return rc;
    if (reply->type != LK__ARRAY || lk__reply_text(reply, 0)[0] == '\0')
        return complain(talk, EPROTO, "what answers is no Redis server", "");
    talk->info->replica = strcmp(lk__reply_text(reply, 0), "master") != 0;
    if (talk->info->replica)
        return complain(talk, ENOTCONN, "the server is a replica and takes no locks; connect to its master", "");
    return 0;
}

static int64_t realtime_us(void)
{
    struct timespec here;
    clock_gettime(CLOCK_REALTIME, &here);
    return (int64_t)here.tv_sec * 1000000 + here.tv_nsec / 1000;
}

/* How far the server's clock is ahead of this machine's, or behind, at least: it was read at some moment since then. */
static int64_t ahead_by(const struct lk__serverinfo *info)
{
    int64_t now_us = realtime_us();
    int64_t before_us = now_us - (lk__now_us() - info->before_us);
    if (info->server_us > now_us)
        return info->server_us - now_us;
    return info->server_us < before_us ? info->server_us - before_us : 0;
}

static int on_time(const struct talk *talk, const struct lk__reply *reply)
{
    if (lk__reply_is(reply, "NOPERM"))
        return talk->inspect
                   ? 0
                   : lacks(talk, "+time"); /* with `inspect` it is told together with all other missing rights */
    int rc = lk__talk_judge(&talk->on, reply, "the server does not tell the time");
    if (rc != 0)
        return rc;
    if (!lk__talk_time(reply, &talk->info->server_us))
        return complain(talk, EPROTO, "what answers is no Redis server", "");
    if (talk->info->told != NULL)
        talk->info->told->ahead_us = ahead_by(talk->info);
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

/* By when it ran already: it says how many seconds that is, of two moments without their fractions. */
static int64_t born_by(const struct lk__reply *reply)
{
    const char *uptime = info_field(lk__reply_text(reply, 0), "uptime_in_seconds");
    if (uptime == NULL)
        return 0;
    long long seconds = atoll(uptime);
    int64_t now_us = lk__now_us();
    return seconds > 1 && seconds < 1000000000 ? now_us - (seconds - 1) * 1000000 : now_us;
}

/* What it says of itself. The run id is good to know, the version is to be known. */
static int on_server(const struct talk *talk, const struct lk__reply *reply)
{
    const char *run_id = info_field(lk__reply_text(reply, 0), "run_id");
    if (run_id != NULL)
        snprintf(talk->info->run_id, sizeof talk->info->run_id, "%.*s", (int)strcspn(run_id, "\r\n"), run_id);
    talk->info->born_us = born_by(reply);
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

/*
 * Of a server of a quorum. Its uptime follows its wall clock, which may be set at any moment. So it counts as no older than the
 * time since a client first met it, which clients' clocks measure. Without an answer, that is this moment.
 */
static int on_since(const struct talk *talk, const struct lk__reply *reply)
{
    int64_t met_us = lk__now_us(), met_ms = atoll(lk__reply_text(reply, 0));
    if (reply->type == LK__TEXT && met_ms > 0 && met_ms < talk->here_ms)
        met_us -= (talk->here_ms - met_ms) * 1000;
    if (talk->info->born_us != 0 && met_us > talk->info->born_us)
        talk->info->born_us = met_us;
    return 0;
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

/* Of replicas, those that are up to date or will be. A server whose replicas are too few grants nothing that counts. */
static int on_replicas(const struct talk *talk, const struct lk__reply *reply)
{
    const char *count = info_field(lk__reply_text(reply, 0), "connected_slaves");
    int wanted = talk->options->wait_replicas;
    if (count == NULL || atoi(count) >= wanted)
        return count == NULL ? unknown(talk, reply) : 0;
    char words[80];
    snprintf(words, sizeof words, "the server has %d replicas, fewer than wait_replicas=%d", atoi(count), wanted);
    if (talk->options->strict)
        return complain(talk, ENOTSUP, words, "");
    snprintf(talk->info->warning, sizeof talk->info->warning, "%s: until it has more it grants nothing", words);
    return 0;
}

/* All that it says of itself. */
static int on_info(const struct talk *talk, const struct lk__reply *reply)
{
    if (reply->type != LK__TEXT)
        return 0;
    talk->info->told->info = lk__strdup(lk__reply_text(reply, 0));
    return talk->info->told->info != NULL ? 0 : ENOMEM;
}

/* Names and values by turns, as lines. */
static int on_config(const struct talk *talk, const struct lk__reply *reply)
{
    size_t size = 1;
    if (reply->type != LK__ARRAY)
        return 0;
    for (unsigned i = 0; i < reply->count; i++)
        size += strlen(lk__reply_text(reply, i)) + 1;
    char *text = talk->info->told->config = lk__alloc(size);
    if (text == NULL)
        return ENOMEM;
    text[0] = '\0';
    for (unsigned i = 0; i < reply->count; i++)
        text = stpcpy(stpcpy(text, lk__reply_text(reply, i)), i % 2 == 0 ? ":" : "\n");
    return 0;
}

/* May this user have replicas acknowledge anything? Of none that is done at once. */
static int on_wait(const struct talk *talk, const struct lk__reply *reply)
{
    if (lk__reply_is(reply, "NOPERM"))
        return lacks(talk, "+wait");
    return lk__talk_judge(&talk->on, reply, "the server does not know WAIT");
}

static int on_probe(const struct talk *talk, const struct lk__reply *reply)
{
    if (lk__reply_is(reply, "NOPERM"))
        return lacks(talk, "+eval");
    int rc = lk__talk_judge(&talk->on, reply, "the server does not run the script that looks at this user's rights");
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
    int code = lk__talk_judge(&talk->on, reply, "the server does not answer ECHO");
    if (lk__error_passes(code))
        return code;
    talk->on.stream->no_echo = reply->type == LK__ERROR;
    if (!talk->on.stream->no_echo)
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
    ASK_SINCE,
    ASK_POLICY,
    ASK_REPLICAS,
    ASK_WAIT,
    ASK_INFO,
    ASK_CONFIG,
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
        lk__lua_redis_probe.pieces[0],
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

/* The settings that matter to locks, and are no secrets. */
static int settings(const char *argv[WORDS_MAX])
{
    static const char *const command[WORDS_MAX] = {
        "CONFIG",  "GET", "appendfsync", "save", "timeout", "min-replicas-to-write", "client-output-buffer-limit",
        "appendonly", "notify-keyspace-events",
    };
    memcpy(argv, command, sizeof command);
    return WORDS_MAX;
}

static int command_of(const struct talk *talk, enum question question, const char *argv[WORDS_MAX], char scratch[40])
{
    const struct lk__options *o = talk->options;
    const struct lk__login *login = &talk->on.login;
    int argc = 0;
    switch (question) {
    case ASK_AUTH:
        if (login->password == NULL)
            return 0;
        argv[argc++] = "AUTH";
        if (login->user != NULL)
            argv[argc++] = login->user;
        argv[argc++] = login->password;
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
    case ASK_SINCE:
        if (!o->quorum)
            return 0;
        snprintf(scratch, 40, "%lld", (long long)talk->here_ms);
        argv[argc++] = "EVAL";
        argv[argc++] = lk__lua_redis_since.pieces[0];
        argv[argc++] = "0";
        argv[argc++] = scratch;
        return argc;
    case ASK_SERVER:
    case ASK_POLICY:
    case ASK_REPLICAS:
        if ((!talk->inspect && question != ASK_SERVER) || (o->wait_replicas == 0 && question == ASK_REPLICAS))
            return 0;
        argv[argc++] = "INFO";
        argv[argc++] = question == ASK_SERVER ? "server" : question == ASK_POLICY ? "memory" : "replication";
        return argc;
    case ASK_WAIT:
        if (!talk->inspect || o->wait_replicas == 0)
            return 0;
        argv[argc++] = "WAIT";
        argv[argc++] = "0";
        argv[argc++] = "1";
        return argc;
    case ASK_INFO:
        if (talk->info->told == NULL)
            return 0;
        argv[argc++] = "INFO";
        return argc;
    case ASK_CONFIG:
        return talk->info->told != NULL ? settings(argv) : 0;
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

int lk__handshake(struct lk__stream *stream, const struct lk__server *server, bool inspect, int64_t until_us,
                  int cancel_fd, struct lk__serverinfo *info, char *errmsg, size_t size)
{
    static const judge_t judges[QUESTIONS] = { on_auth,  on_select, on_role,     on_time, on_name, on_server, on_since,
                                               on_policy, on_replicas, on_wait, on_info, on_config, on_probe,  on_echo };
    struct talk talk = {
        .on = { stream, &server->options, lk__login_of(server, LK__PEER_SERVER), until_us, cancel_fd, errmsg, size },
        .options = &server->options,
        .info = info,
        .inspect = inspect,
        .number = lk__random_below(INT64_MAX),
        .here_ms = realtime_us() / 1000,
        .pubsub = server->pubsub,
    };
    bool asked[QUESTIONS];
    int rc = 0;

    if (inspect && server->options.survey) {
        info->told = lk__alloc(sizeof *info->told);
        rc = info->told != NULL ? 0 : ENOMEM;
    }
    info->before_us = lk__now_us();
    for (int q = 0; q < QUESTIONS && rc == 0; q++) {
        const char *argv[WORDS_MAX];
        char scratch[40];
        int argc = command_of(&talk, q, argv, scratch);
        asked[q] = argc > 0;
        if (asked[q])
            rc = lk__talk_say(&talk.on, argc, argv);
    }
    for (int q = 0; q < QUESTIONS && rc == 0; q++) {
        if (!asked[q])
            continue;
        rc = lk__talk_hear(&talk.on);
        if (rc == 0)
            rc = judges[q](&talk, stream->filling);
    }
    stream->filling->text_used = 0;
    if (rc == ENOMEM)
        complain(&talk, ENOMEM, "out of memory while connecting", "");
    return rc;
}
