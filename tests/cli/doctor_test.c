/* SPDX-License-Identifier: MIT */
/*
 * doctor_test.c - `latchkey doctor` finds each thing that puts locks at risk, and nothing where there is none
 *
 * processors: 3
 */
#include "cluster.h"
#include "command.h"
#include "failover.h"
#include "quorum.h"

#include <stdio.h>
#include <string.h>

/* Is that finding, in that state, among what the last line told? */
static bool found(const struct ran *ran, const char *check, const char *state)
{
    char words[96];
    snprintf(words, sizeof words, "{\"check\":\"%s\",\"state\":\"%s\",", check, state);
    return strstr(ran->out, words) != NULL;
}

#define assert_found(ran, check, state)                                                                                \
    do {                                                                                                               \
        if (!found(ran, check, state))                                                                                 \
            assert_failed(__FILE__, __LINE__, "no %s of %s in:\n%s%s", state, check, (ran)->out, (ran)->err);           \
    } while (0)

/* A machine that stands still for a second is not taken for a slow server. */
#define PATIENT "lease=60s&command_timeout=8s"

/* A server with everything as it should be. */
static const struct ran *healthy(struct world *w)
{
    command_options(PATIENT);
    world_redis(w, "CONFIG SET appendonly yes");
    world_redis(w, "CONFIG SET appendfsync always");
    return command(w, "latchkey doctor --json");
}

static void what_is_well_is_well(struct world *w)
{
    static const char *const checks[] = { "connect", "version", "eviction", "memory", "persistence", "disk",
                                          "replicas", "restart", "idle",    "buffer", "notify",      "rights",
                                          "clock",    "tls",     "latency" };
    const struct ran *ran = healthy(w);
    for (unsigned i = 0; i < sizeof checks / sizeof checks[0]; i++)
        assert_found(ran, checks[i], "ok");
    assert_int_equal(0, ran->code);
    assert_string_equal("", ran->err);
    assert_string_equal("", command(w, "latchkey doctor -q")->out);
    assert_string_equal("", world_keys(w));
}

/* One setting is wrong at a time. */
static void each_risk_is_found(struct world *w)
{
    static const struct {
        const char *setting, *value, *healed, *check, *state;
        int code;
    } risks[] = {
        { "maxmemory-policy", "allkeys-lru", "noeviction", "eviction", "warn", 1 },
        { "appendfsync", "everysec", "always", "persistence", "note", 0 },
        { "appendfsync", "no", "always", "persistence", "warn", 1 },
        { "appendonly", "no", "yes", "persistence", "warn", 1 },
        { "timeout", "7", "0", "idle", "warn", 1 },
        { "timeout", "3600", "0", "idle", "note", 0 },
        { "client-output-buffer-limit", "pubsub 10000 0 0", "pubsub 33554432 8388608 60", "buffer", "warn", 1 },
        { "notify-keyspace-events", "KEA", "", "notify", "note", 0 },
    };
    (void)healthy(w);
    for (unsigned i = 0; i < sizeof risks / sizeof risks[0]; i++) {
        world_redis(w, "CONFIG SET %s %s", risks[i].setting, risks[i].value);
        const struct ran *ran = command(w, "latchkey doctor --json");
        assert_found(ran, risks[i].check, risks[i].state);
        assert_int_equal(risks[i].code, ran->code);
        world_redis(w, "CONFIG SET %s %s", risks[i].setting, risks[i].healed);
    }
    world_redis(w, "CONFIG SET maxmemory 500mb");
    world_redis(w, "CONFIG SET maxmemory-policy volatile-ttl");
    const struct ran *ran = command(w, "latchkey doctor --json");
    assert_found(ran, "eviction", "fail");
    assert_int_equal(2, ran->code);
    world_redis(w, "CONFIG SET maxmemory-policy noeviction");
    world_redis(w, "CONFIG SET maxmemory %d", (int)(world_counter(w, "used_memory") * 21 / 20));
    assert_found(command(w, "latchkey doctor --json"), "memory", "warn");
    world_redis(w, "CONFIG SET maxmemory 0");
    command_options(PATIENT "&wait_replicas=1");
    ran = command(w, "latchkey doctor --json");
    assert_found(ran, "replicas", "fail");
    assert_int_equal(2, ran->code);
    command_options(COMMAND_PATIENT);
}

static void what_is_not_told_is_a_note(struct world *w)
{
    world_redis(w, "ACL SETUSER app on >pw ~* &* +@all -info -config");
    const struct ran *ran = command(w, "latchkey doctor --json -u 'unix://app:pw@%s?" PATIENT "'", w->socket);
    assert_found(ran, "info", "note");
    assert_found(ran, "config", "note");
    assert_found(ran, "password", "ok");
    assert_int_equal(0, ran->code);
    world_redis(w, "ACL SETUSER app -zcount");
    ran = command(w, "latchkey doctor --json -u 'unix://app:pw@%s?" PATIENT "'", w->socket);
    assert_found(ran, "rights", "warn");
    assert_true(strstr(ran->out, "lack +zcount") != NULL);
}

static void who_cannot_connect_hears_why(struct world *w)
{
    const struct ran *ran = command(w, "latchkey doctor --json -u redis://127.0.0.1:1");
    assert_found(ran, "connect", "fail");
    assert_int_equal(69, ran->code);
    assert_exits(78, w, "latchkey doctor -u redis://127.0.0.1?leese=3s");
    world_redis(w, "CONFIG SET requirepass SECRET");
    assert_exits(77, w, "latchkey doctor");
    world_redis(w, "CONFIG SET requirepass \"\"");
    assert_exits(74, w, "latchkey doctor >/dev/full");
}

/* The table fits the terminal, and has colours there alone. */
static void the_table_fits_the_terminal(struct world *w)
{
    command_options(PATIENT);
    assert_exits(1, w, "latchkey doctor >table; code=$?; awk 'length > 80' table | grep . && exit 9; "
                       "grep -q '^  warn  persistence  ' table || exit 8; grep -q '\033' table && exit 7; exit $code");
    if (command(w, "command -v script")->code != 0)
        return;
    assert_exits(0, w, "export TERM=xterm; " ON_TERMINAL("stty cols 60; latchkey doctor", "shown") "; "
                       "grep -q '\033\\[33mwarn' shown || exit 9; "
                       "sed 's/\033\\[[0-9]*m//g; s/\\r//' shown | awk 'length > 60' | grep . && exit 8; "
                       "NO_COLOR=1 " ON_TERMINAL("latchkey doctor", "shown") "; grep -q '\033' shown && exit 7; exit 0");
    assert_exits(0, w, "NO_COLOR=1 " ON_TERMINAL("stty cols 40; latchkey doctor", "told") "; tr -d '\r' <told >shown; "
                       "grep -q '^  warn  persistence  ' shown || exit 9; grep '^ ' shown | awk 'length > 40' | grep . && exit 8; "
                       "exit 0");
}

static void servers_that_replace_each_other_are_looked_at(struct world *w)
{
    struct failover *f = failover_begin(w, NULL);
    const struct ran *ran = command(w, "latchkey doctor --json -u '%s'", failover_url(f, "lease=30s"));
    assert_found(ran, "replicas", "warn");
    assert_true(strstr(ran->out, "2, which are not waited for") != NULL);
    assert_true(strstr(ran->out, FAILOVER_PASSWORD) == NULL);
    assert_found(command(w, "latchkey doctor --json -u '%s'", failover_url(f, "wait_replicas=1")), "replicas", "ok");
    failover_end(f);
}

static void all_masters_of_a_cluster_are_looked_at(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    const struct ran *ran = command(w, "latchkey doctor --json -u '%s' | tee told; "
                                       "grep -c '\"check\":\"version\"' told >count", cluster_url(c, PATIENT));
    assert_found(ran, "cluster", "ok");
    assert_found(ran, "clocks", "ok");
    assert_found(ran, "replicas", "warn"); /* nobody can take their places */
    assert_found(ran, "latency", "ok");
    assert_int_equal(CLUSTER_MASTERS, command_number(w, "count"));
    assert_exits(2, w, "latchkey doctor -u redis://" CLUSTER_USER ":" CLUSTER_PASSWORD "@127.0.0.1:%d | "
                       "grep 'fail  cluster' && exit 2", cluster_port(c, 0));
}

static void a_quorum_says_who_is_missing_and_who_is_new(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    const struct ran *ran = command(w, "latchkey doctor --json -u '%s'", quorum_url(q, "lease=1h"));
    assert_found(ran, "restart", "fail");
    assert_found(ran, "clocks", "ok");
    assert_int_equal(2, ran->code);
    quorum_kill(q, 2);
    ran = command(w, "latchkey doctor --json -u '%s'", quorum_url(q, "lease=30s"));
    assert_found(ran, "connect", "warn");
    assert_found(ran, "connect", "ok");
}

int main(void)
{
    return world_run(what_is_well_is_well, each_risk_is_found, what_is_not_told_is_a_note, who_cannot_connect_hears_why,
                     the_table_fits_the_terminal, servers_that_replace_each_other_are_looked_at,
                     all_masters_of_a_cluster_are_looked_at, a_quorum_says_who_is_missing_and_who_is_new);
}
