/* SPDX-License-Identifier: MIT */
/*
 * doctor.c - `latchkey doctor`: what of servers and settings puts locks at risk, and what to do
 *
 * Each check has a name that stays, a state, what was found, and what to do. What the server does not tell this user
 * is a note, and no reason to fail.
 */
#include "client.h"
#include "command.h"
#include "terminal.h"
#include "words.h"

#include <latchkey/survey.h>

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROBES = 50, AHEAD_MOST_MS = 1000, FULL_PERCENT = 90, BUFFER_LEAST = 1 << 20, INDENT = 21 };
enum state { STATE_OK, STATE_NOTE, STATE_WARN, STATE_FAIL };

static const struct {
    const char *name, *colour;
} states[] = { { "ok", "\033[32m" }, { "note", "\033[36m" }, { "warn", "\033[33m" }, { "fail", "\033[31m" } };

struct report {
    const struct settings *settings;
    const char *server; /* of which the findings are; "": of all */
    bool headed;        /* it was named */
    enum state worst;
    int width;
    bool colours;
    /* of the answer */
    const json_t *options, *info, *config;
    bool local; /* nobody between here and there */
};

/* --- what is told ------------------------------------------------------------------------------------------ */

static void print_finding(struct report *r, enum state state, const char *check, const char *found, const char *advice)
{
    if (!r->headed && r->server[0] != 0)
        printf("%s\n", r->server);
    r->headed = true;
    const char *colour = r->colours ? states[state].colour : "", *plain = r->colours ? "\033[0m" : "";
    printf("  %s%-4s%s  %-11s  ", colour, states[state].name, plain, check);
    print_wrapped(INDENT, r->width, found);
    if (advice[0] == 0)
        return;
    printf("%*s", INDENT, "");
    print_wrapped(INDENT, r->width, advice);
}

static void find(struct report *r, enum state state, const char *check, const char *advice, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

static void find(struct report *r, enum state state, const char *check, const char *advice, const char *format, ...)
{
    char found[640];
    va_list words;
    va_start(words, format);
    vsnprintf(found, sizeof found, format, words);
    va_end(words);
    if (state > r->worst)
        r->worst = state;
    if (state == STATE_OK)
        advice = "";
    if (r->settings->quiet && state < STATE_WARN)
        return;
    if (!r->settings->json) {
        print_finding(r, state, check, found, advice);
        return;
    }
    json_t *object = json_pack("{s:s, s:s, s:s, s:s, s:s}", "check", check, "state", states[state].name, "server",
                               r->server, "found", found, "advice", advice);
    json_dumpf(object, stdout, JSON_COMPACT);
    json_decref(object);
    putchar('\n');
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

/* Of INFO and CONFIG all numbers are texts; what is not told is 0. */
static int64_t number_of(const json_t *object, const char *name)
{
    return strtoll(text_of(object, name), NULL, 10);
}

static int64_t option_of(const struct report *r, const char *name)
{
    return json_integer_value(json_object_get(r->options, name));
}

static bool is_kind(const struct report *r, const char *kind)
{
    return strcmp(text_of(r->options, "kind"), kind) == 0;
}

/* --- of one server ----------------------------------------------------------------------------------------- */

static void check_version(struct report *r)
{
    const char *valkey = text_of(r->info, "valkey_version"), *version = text_of(r->info, "redis_version");
    find(r, STATE_OK, "version", "", "%s %s", valkey[0] != 0 ? "Valkey" : "Redis", valkey[0] != 0 ? valkey : version);
}

static void check_eviction(struct report *r)
{
    const char *policy = text_of(r->info, "maxmemory_policy");
    int64_t most = number_of(r->info, "maxmemory"), evicted = number_of(r->info, "evicted_keys");
    if (strcmp(policy, "noeviction") == 0 && evicted == 0)
        find(r, STATE_OK, "eviction", "", "maxmemory-policy is noeviction");
    else if (strcmp(policy, "noeviction") == 0)
        find(r, STATE_WARN, "eviction", "keep maxmemory-policy at noeviction",
             "maxmemory-policy is noeviction now, but the server evicted %" PRId64 " keys since it began", evicted);
    else
        find(r, most > 0 ? STATE_FAIL : STATE_WARN, "eviction", "CONFIG SET maxmemory-policy noeviction",
             "maxmemory-policy is %s: the server may drop a lock that is held%s", policy,
             most > 0 ? "" : ", as soon as it has a limit of memory");
}

static void check_memory(struct report *r)
{
    int64_t most = number_of(r->info, "maxmemory"), used = number_of(r->info, "used_memory");
    if (most == 0)
        find(r, STATE_OK, "memory", "", "no limit");
    else
        find(r, used > most / 100 * FULL_PERCENT ? STATE_WARN : STATE_OK, "memory",
             "raise maxmemory, or keep other data elsewhere: a full server grants no lock (ENOSPC)",
             "%" PRId64 " %% of maxmemory are used", used / (most / 100 + 1));
}

static void check_persistence(struct report *r)
{
    const char *fsync = text_of(r->config, "appendfsync");
    if (number_of(r->info, "aof_enabled") == 0)
        find(r, STATE_WARN, "persistence",
             is_kind(r, "quorum") ? "CONFIG SET appendonly yes; else start it again only a lease later" :
                                    "CONFIG SET appendonly yes, or start it again only a lease later",
             "no append-only file: started again, the server does not know who holds what");
    else if (strcmp(fsync, "always") == 0)
        find(r, STATE_OK, "persistence", "", "an append-only file, written with each command");
    else if (fsync[0] == 0)
        find(r, STATE_NOTE, "persistence", "+config|get for this user", "an append-only file; appendfsync is not told");
    else
        find(r, strcmp(fsync, "no") == 0 ? STATE_WARN : STATE_NOTE, "persistence",
             "CONFIG SET appendfsync always, if the machine may crash",
             "appendfsync is %s: a crash of the machine takes the last grants along, %s", fsync,
             strcmp(fsync, "no") == 0 ? "up to half a minute of them" : "up to a second of them");
}

/* A server that cannot write its files refuses commands, or will not know them again. */
static void check_disk(struct report *r)
{
    const char *aof = text_of(r->info, "aof_last_write_status"), *rdb = text_of(r->info, "rdb_last_bgsave_status");
    bool aof_good = aof[0] == 0 || strcmp(aof, "ok") == 0, rdb_good = rdb[0] == 0 || strcmp(rdb, "ok") == 0;
    if (aof_good && rdb_good)
        find(r, STATE_OK, "disk", "", "the last writes succeeded");
    else
        find(r, aof_good ? STATE_WARN : STATE_FAIL, "disk", "look at the server's log, and at the space that is left",
             "the server cannot write its %s: it may refuse all writes (MISCONF)",
             aof_good ? "snapshot" : "append-only file");
}

static void check_replicas(struct report *r)
{
    int64_t replicas = number_of(r->info, "connected_slaves"), wanted = option_of(r, "wait_replicas");
    bool least_known = r->config != NULL, least = number_of(r->config, "min-replicas-to-write") > 0;
    bool replaced = is_kind(r, "sentinel") || is_kind(r, "several") || is_kind(r, "cluster");
    if (replicas < wanted)
        find(r, STATE_FAIL, "replicas", "start replicas, or lower wait_replicas",
             "%" PRId64 " replicas, and wait_replicas=%" PRId64 ": nothing is granted", replicas, wanted);
    else if (replicas == 0 && replaced)
        find(r, STATE_WARN, "replicas", "add a replica with REPLICAOF", "none: nobody can take this server's place");
    else if (replicas > 0 && is_kind(r, "quorum"))
        find(r, STATE_WARN, "replicas", "the servers of a quorum have no replicas",
             "%" PRId64 ": one that takes this server's place may have forgotten its votes", replicas);
    else if (replicas == 0)
        find(r, STATE_OK, "replicas", "", "none: nothing is lost by a failover");
    else if (wanted == 0)
        find(r, STATE_WARN, "replicas",
             least || !least_known ? "wait_replicas=1 in the URL" :
                                     "wait_replicas=1 in the URL, and CONFIG SET min-replicas-to-write 1",
             "%" PRId64 ", which are not waited for: a failover can forget a lock that is held%s", replicas,
             least || !least_known ? "" : ", and a master that was cut off goes on granting, by itself");
    else
        find(r, STATE_OK, "replicas", "", "%" PRId64 ", and a grant waits for %" PRId64, replicas, wanted);
}

static void check_cluster(struct report *r)
{
    bool is_node = number_of(r->info, "cluster_enabled") != 0;
    if (is_node && !is_kind(r, "cluster"))
        find(r, STATE_FAIL, "cluster", "a URL that begins with redis-cluster://",
             "this is a node of a cluster, which serves only a part of the names");
    else if (is_node)
        find(r, STATE_OK, "cluster", "", "a node of the cluster");
}

static void check_restart(struct report *r)
{
    int64_t up_s = number_of(r->info, "uptime_in_seconds"), lease_ms = option_of(r, "lease_ms");
    bool young = up_s * 1000 < lease_ms && number_of(r->info, "aof_enabled") == 0;
    if (is_kind(r, "quorum") && young)
        find(r, STATE_FAIL, "restart", "wait for as long as the longest lease",
             "it runs for %" PRId64 " s, less than a lease: it may have forgotten its votes", up_s);
    else
        find(r, STATE_OK, "restart", "", "it runs for %" PRId64 " s", up_s);
}

static void check_idle(struct report *r)
{
    int64_t idle_s = number_of(r->config, "timeout"), lease_ms = option_of(r, "lease_ms");
    if (idle_s == 0)
        find(r, STATE_OK, "idle", "", "idle connections stay");
    else
        find(r, idle_s * 1000 < lease_ms ? STATE_WARN : STATE_NOTE, "idle", "CONFIG SET timeout 0",
             "timeout is %" PRId64 " s: connections that are idle for so long are cut, and made again when needed",
             idle_s);
}

/* "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60" */
static void check_buffer(struct report *r)
{
    const char *pubsub = strstr(text_of(r->config, "client-output-buffer-limit"), "pubsub ");
    int64_t most = pubsub != NULL ? strtoll(pubsub + strlen("pubsub "), NULL, 10) : 0;
    if (most == 0 || most >= BUFFER_LEAST)
        find(r, STATE_OK, "buffer", "", "wake-ups have room");
    else
        find(r, STATE_WARN, "buffer", "CONFIG SET client-output-buffer-limit \"pubsub 32mb 8mb 60\"",
             "client-output-buffer-limit for pubsub is %" PRId64 " bytes: who is slow to read is cut, and polls",
             most);
}

static void check_notify(struct report *r)
{
    const char *events = text_of(r->config, "notify-keyspace-events");
    if (events[0] == 0)
        find(r, STATE_OK, "notify", "", "no keyspace events");
    else
        find(r, STATE_NOTE, "notify", "CONFIG SET notify-keyspace-events \"\", if nobody listens",
             "notify-keyspace-events is %s: each lock costs the server messages that Latchkey does not need", events);
}

static void check_rights(struct report *r, const json_t *server)
{
    const char *missing = text_of(server, "missing");
    if (missing[0] == 0)
        find(r, STATE_OK, "rights", "", "this user may do all that locks need");
    else
        find(r, STATE_WARN, "rights", "add them with ACL SETUSER: docs/security.md has the rule",
             "the access rules lack %s", missing);
}

static void check_clock(struct report *r, const json_t *server)
{
    int64_t ms = json_integer_value(json_object_get(server, "ahead_us")) / 1000;
    if (llabs(ms) <= AHEAD_MOST_MS)
        find(r, STATE_OK, "clock", "", "as here, within a second");
    else
        find(r, STATE_WARN, "clock", "let NTP or chrony keep both clocks",
             "%lld ms %s of this machine's: leases do not mind, times in logs do, and a failover to it would",
             llabs(ms), ms > 0 ? "ahead" : "behind");
}

static bool is_local(const char *address)
{
    const char *host = strstr(address, "://"), *user;
    if (host == NULL || strncmp(address, "unix", 4) == 0)
        return true;
    host += 3;
    user = strchr(host, '@');
    if (user != NULL)
        host = user + 1;
    size_t length = strcspn(host, ":/"), digits = strspn(host, "0123456789.");
    if (strncmp(host, "127.", 4) == 0)
        return digits == length;
    return (length == strlen("localhost") && strncmp(host, "localhost", length) == 0) ||
           strncmp(host, "[::1]", 5) == 0 || host[0] == '/';
}

static void check_secrecy(struct report *r)
{
    const char *tls = text_of(r->options, "tls");
    if (strcmp(tls, "yes") == 0)
        find(r, STATE_OK, "tls", "", "on, and the server shows who it is");
    else if (strcmp(tls, "unverified") == 0)
        find(r, STATE_FAIL, "tls", "cacert=FILE in the URL instead of verify=no",
             "verify=no: anybody could answer as this server, and read the password");
    else
        find(r, r->local ? STATE_OK : STATE_WARN, "tls", "rediss:// in the URL, and tls-port at the server",
             r->local ? "off, on this machine" : "off: who is between here and there reads all, and can take locks");
    bool password = json_is_true(json_object_get(r->options, "password"));
    if (password)
        find(r, STATE_OK, "password", "", "one is needed");
    else
        find(r, r->local ? STATE_NOTE : STATE_WARN, "password",
             "ACL SETUSER for the users of locks: docs/security.md has the rule",
             "none: who reaches the server can do everything");
}

static void check_server(struct report *r, const json_t *server)
{
    const char *error = json_string_value(json_object_get(server, "error"));
    r->server = text_of(server, "address");
    r->headed = false;
    r->local = is_local(r->server);
    r->info = json_object_get(server, "info");
    r->config = json_object_get(server, "config");
    if (json_is_null(r->config))
        r->config = NULL;
    if (error != NULL) {
        find(r, is_kind(r, "quorum") ? STATE_WARN : STATE_FAIL, "connect",
             "start it, or look at the network and its log", "%s", error);
        return;
    }
    find(r, STATE_OK, "connect", "", "it answers");
    if (json_is_object(r->info)) {
        check_version(r);
        check_eviction(r);
        check_memory(r);
        check_persistence(r);
        check_disk(r);
        check_replicas(r);
        check_cluster(r);
        check_restart(r);
    } else {
        find(r, STATE_NOTE, "info", "+info for this user",
             "not told: version, eviction, memory, persistence, disk, replicas, cluster and restart are unknown");
    }
    if (r->config != NULL) {
        check_idle(r);
        check_buffer(r);
        check_notify(r);
    } else {
        find(r, STATE_NOTE, "config", "+config|get for this user", "not told: idle, buffer and notify are unknown");
    }
    check_rights(r, server);
    check_clock(r, server);
    check_secrecy(r);
}

/* --- of all together --------------------------------------------------------------------------------------- */

static void check_clocks(struct report *r, const json_t *servers)
{
    int64_t least = INT64_MAX, most = INT64_MIN, skew_ms = option_of(r, "clock_skew_ms");
    size_t i;
    const json_t *server;
    json_array_foreach (servers, i, server) {
        const json_t *ahead = json_object_get(server, "ahead_us");
        if (ahead == NULL)
            continue;
        least = json_integer_value(ahead) < least ? json_integer_value(ahead) : least;
        most = json_integer_value(ahead) > most ? json_integer_value(ahead) : most;
    }
    if (json_array_size(servers) < 2 || least > most)
        return;
    int64_t apart_ms = (most - least) / 1000, allowed_ms = skew_ms > 0 ? skew_ms : AHEAD_MOST_MS;
    find(r, apart_ms > allowed_ms ? STATE_WARN : STATE_OK, "clocks", "let NTP or chrony keep them, or raise clock_skew",
         "the servers' clocks are %" PRId64 " ms apart; %" PRId64 " ms are allowed for", apart_ms, allowed_ms);
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Round trips of a question that changes nothing. */
static int measure(lk_client_t *client, int64_t us[PROBES])
{
    lk_mutex_t mutex;
    lk_mutexinfo_t info = LK_MUTEXINFO_INIT;
    int rc = lk_mutex_init(&mutex, client, "latchkey.doctor", NULL);
    if (rc != 0)
        return rc;
    for (int i = -1; i < PROBES && rc == 0; i++) { /* the first one brings the script */
        int64_t began = boot_us();
        rc = lk_mutex_info(&mutex, &info);
        if (i >= 0)
            us[i] = boot_us() - began;
    }
    lk_mutex_destroy(&mutex);
    return rc;
}

static void check_latency(struct report *r, struct settings *silent)
{
    int64_t us[PROBES], timeout_us = option_of(r, "command_timeout_ms") * 1000;
    lk_client_t *client;
    if (is_kind(r, "quorum")) /* its locks are of another kind: each server has answered already */
        return;
    if (open_client(silent, &client) != 0) {
        find(r, STATE_FAIL, "latency", "", "%s", lk_errortext());
        return;
    }
    int rc = measure(client, us);
    if (rc != 0)
        find(r, STATE_FAIL, "latency", "", "%s", lk_errortext());
    close_client(client);
    if (rc != 0)
        return;
    qsort(us, PROBES, sizeof us[0], by_size);
    int64_t half_us = us[PROBES / 2], most_us = us[PROBES * 9 / 10];
    find(r, most_us > timeout_us / 4 ? STATE_WARN : STATE_OK, "latency",
         "be nearer to the server, look at SLOWLOG GET there, or make lease and command_timeout longer",
         "half of %d questions within %.3f ms, nine of ten within %.3f ms; command_timeout is %" PRId64
         " ms, the lease %" PRId64 " ms",
         PROBES, (double)half_us / 1e3, (double)most_us / 1e3, timeout_us / 1000, option_of(r, "lease_ms"));
}

static int ask(const struct settings *s, char **answer)
{
    lk_clientattr_t attr = LK_CLIENTATTR_INIT;
    attr.url = s->config == NULL ? s->url : NULL;
    attr.json_path = s->config;
    return lk_survey(&attr, answer);
}

static int exit_code(const struct report *r)
{
    static const int codes[] = { EXIT_OK, EXIT_OK, EXIT_NO, EXIT_FAULT };
    int code = flush_output();
    return code != 0 ? code : codes[r->worst];
}

int run_doctor(struct settings *s, int count, char **operands)
{
    struct report r = { .settings = s, .server = "", .width = terminal_width(), .colours = terminal_has_colours() };
    struct settings silent = *s;
    char *answer = NULL;
    (void)count, (void)operands;
    lk_addlog(NULL, LK_LOG_WARNING, NULL, NULL); /* what it warns of is among the findings */
    int rc = ask(s, &answer);
    if (rc != 0) {
        find(&r, STATE_FAIL, "connect", "", "%s", lk_errortext());
        int code = flush_output();
        return code != 0 ? code : open_code_of(rc);
    }
    json_t *root = json_loads(answer, 0, NULL);
    lk_free(answer);
    const json_t *servers = json_object_get(root, "servers"), *server;
    size_t i;
    r.options = json_object_get(root, "options");
    json_array_foreach (servers, i, server)
        check_server(&r, server);
    r.server = "";
    r.headed = false;
    check_clocks(&r, servers);
    silent.quiet = true;
    check_latency(&r, &silent);
    json_decref(root);
    return exit_code(&r);
}
