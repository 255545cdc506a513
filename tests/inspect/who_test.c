/* SPDX-License-Identifier: MIT */
/*
 * who_test.c - a client that holds something is described at its servers as long as it is there: with what it was told
 * to say and no more, at nobody's expense, and whatever befalls the server or the rights
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 15
 */
#include "client/client.h"
#include "cluster.h"
#include "failover.h"
#include "log.h"
#include "quorum.h"
#include "rights.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SOON_MS = 10000, LASTS_MS = 90000 };

/* The part of an id that is its client's. */
static const char *client_of(const char *id)
{
    static char clients[4][LK__ID_LENGTH + 1];
    static int next;
    char *client = clients[next++ % 4];
    snprintf(client, sizeof clients[0], "%.32s", id);
    return client;
}

static const char *key_of(const char *id)
{
    static char key[64];
    snprintf(key, sizeof key, "latchkey:who:%.32s", id);
    return key;
}

/* As if a time of `ms` were that after which what hangs at the server ends: it is put up again at a third of it. */
static void hurry(lk_client_t *client, int64_t ms)
{
    lk__watchdog_lock(&client->dog);
    client->dog.notice->lasts_ms = ms;
    lk__mu_unlock(&client->dog.mu);
}

/* Hold it from now on; returns the client's part of its id when it is described. */
static const char *lock_described(struct world *w, lk_mutex_t *mutex, const char *name)
{
    assert_lk(0, lk_mutex_lockfor(mutex, SOON_MS));
    const char *id = client_of(world_owner(w, name));
    eventually(world_exists(w, key_of(id)), SOON_MS);
    return id;
}

static void close_client(void *client)
{
    assert_lk(0, lk_client_close(client));
}

/* A client that ends with the test. */
static lk_client_t *open_with(struct world *w, const lk_clientattr_t *attr)
{
    lk_client_t *client = NULL;
    assert_lk(0, lk_client_openwith(&client, attr));
    world_at_end(w, NULL, client, close_client);
    return client;
}

/* --- what is said ------------------------------------------------------------------------------------------------- */

static void a_client_that_holds_something_is_described(struct world *w)
{
    char host[256] = "";
    lk_who_t who = LK_WHO_INIT;
    lk_client_t *client = world_client(w, "lease=20s&describe=yes"), *other = world_client(w, "lease=20s&describe=yes");
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    lk_holder_t holder;
    unsigned count;
    gethostname(host, sizeof host - 1);
    const char *key = strdupa(key_of(lock_described(w, orders, "orders")));
    assert_lk(0, lk_inspect_holders(other, LK_KIND_MUTEX, "orders", &holder, sizeof holder, 1, &count));
    assert_lk(0, lk_inspect_who(other, holder.id, &who));
    assert_string_equal(host, who.host);
    assert_same(getpid(), who.pid);
    assert_string_equal(program_invocation_short_name, who.program);
    assert_string_equal("", who.arguments);
    assert_string_equal("", who.why);
    assert_lk(0, lk_inspect_who(other, client_of(holder.id), &who)); /* a client's id will do */
    assert_between(world_pttl(w, key), LASTS_MS / 2, LASTS_MS);

    assert_lk(0, lk_mutex_unlock(orders));
    assert_true(world_exists(w, key)); /* it is the client's, not the hold's */
    assert_same(1, world_elements(w, "KEYS latchkey:who:*")); /* who only looks says nothing */
    world_close(w, client);
    eventually(!world_exists(w, key), SOON_MS);
    assert_lk(ENOENT, lk_inspect_who(other, holder.id, &who));
}

/* One that waits is told of, too. */
static void a_client_that_waits_is_described(struct world *w)
{
    struct worker waiter;
    lk_waiter_t first;
    unsigned count;
    lk_who_t who = LK_WHO_INIT;
    lk_client_t *client = world_client(w, "lease=20s&describe=yes"), *other = world_client(w, "lease=20s&program=the%20other&describe=yes");
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    worker_start(&waiter, lock_and_unlock, world_mutex(w, other, "orders", NULL));
    eventually(world_queued(w, "orders") == 1, SOON_MS);
    assert_lk(0, lk_mutex_queue(orders, &first, sizeof first, 1, &count));
    eventually(lk_inspect_who(client, first.id, &who) == 0, SOON_MS);
    assert_string_equal("the other", who.program);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_int_equal(0, worker_join(&waiter));
}

/* Just these words: a member more could be anything of the process, its environment say. */
static void nothing_else_is_said(struct world *w)
{
    lk_client_t *client = world_client(w, "lease=20s&describe=yes");
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    const char *id = lock_described(w, orders, "orders");
    json_t *words = json_loads(world_str(w, "GET %s", key_of(id)), 0, NULL);
    assert_same(3, json_object_size(words));
    assert_true(json_is_integer(json_object_get(words, "pid")));
    assert_true(json_is_string(json_object_get(words, "host")));
    assert_true(json_is_string(json_object_get(words, "program")));
    json_decref(words);
    assert_lk(0, lk_mutex_unlock(orders));
}

static void it_says_what_it_is_told_to_say(struct world *w)
{
    lk_who_t who = LK_WHO_INIT;
    lk_clientattr_t attr = LK_CLIENTATTR_INIT;
    lk_client_t *client;
    char long_text[2000];
    memset(long_text, '"', sizeof long_text); /* each takes two bytes */
    long_text[sizeof long_text - 1] = '\0';
    attr.url = world_url(w, "lease=20s&prefix=shop:&program=of%20the%20url&why=likewise&describe=yes");
    attr.program = "nightly";
    attr.arguments = long_text;
    attr.why = "export\n\033[2J\xff \"for\" the \\ board";
    client = open_with(w, &attr);
    memset(long_text, 'x', sizeof long_text - 1); /* it was copied */
    lk_mutex_t *mutex = world_mutex(w, client, "m", NULL);
    const char *id = lock_described(w, mutex, "shop:m");
    assert_lk(0, lk_inspect_who(client, id, &who));
    assert_string_equal("nightly", who.program);
    assert_same(sizeof who.arguments - 1, strlen(who.arguments));
    assert_same(sizeof who.arguments - 1, strspn(who.arguments, "\""));
    assert_string_equal("export??[2J? \"for\" the \\ board", who.why);
    assert_lk(0, lk_mutex_unlock(mutex));
}

/* All at their longest, and each character in the form that takes most. */
static void the_longest_words_fit(struct world *w)
{
    static char text[2000];
    lk_who_t who = LK_WHO_INIT;
    lk_clientattr_t attr = LK_CLIENTATTR_INIT;
    lk_client_t *client;
    memset(text, '\\', sizeof text - 1);
    attr.url = world_url(w, "lease=20s&describe=yes");
    attr.program = attr.arguments = attr.why = text;
    client = open_with(w, &attr);
    lk_mutex_t *mutex = world_mutex(w, client, "m", NULL);
    const char *id = lock_described(w, mutex, "m");
    assert_lk(0, lk_inspect_who(client, id, &who));
    assert_same(sizeof who.program - 1, strspn(who.program, "\\"));
    assert_same(sizeof who.arguments - 1, strspn(who.arguments, "\\"));
    assert_same(sizeof who.why - 1, strspn(who.why, "\\"));
    assert_lk(0, lk_mutex_unlock(mutex));
}

/* What a program says of itself is no reason to fail where the operator wants nothing said. */
static void who_shall_say_nothing_says_nothing(struct world *w)
{
    lk_who_t who = LK_WHO_INIT;
    lk_clientattr_t attr = LK_CLIENTATTR_INIT;
    lk_client_t *client, *other = world_client(w, "lease=20s&describe=yes");
    attr.url = world_url(w, "lease=20s&describe=no");
    attr.program = attr.arguments = attr.why = "a secret";
    client = open_with(w, &attr);
    lk_mutex_t *silent = world_mutex(w, client, "silent", NULL), *said = world_mutex(w, other, "said", NULL);
    assert_lk(0, lk_mutex_lock(silent));
    const char *known = lock_described(w, said, "said"); /* by then the first would be, too */
    const char *unknown = client_of(world_owner(w, "silent"));
    lk__watchdog_lock(&client->dog);
    assert_null(client->dog.notice);
    lk__mu_unlock(&client->dog.mu);
    assert_same(1, world_elements(w, "KEYS latchkey:who:*"));
    assert_lk(ENOENT, lk_inspect_who(client, unknown, &who));
    assert_lk(0, lk_inspect_who(client, known, &who)); /* it may ask after others */
    assert_lk(0, lk_mutex_unlock(silent));
    assert_lk(0, lk_mutex_unlock(said));
}

/* --- as long as it is there ----------------------------------------------------------------------------------------- */

/* Each beat has all the words, so a server that lost them has them again. */
static void it_is_said_again(struct world *w)
{
    lk_client_t *client = world_client(w, "lease=20s&describe=yes");
    lk_who_t who = LK_WHO_INIT;
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    hurry(client, 600);
    const char *id = lock_described(w, orders, "orders");
    for (int i = 0; i < 3; i++) {
        world_redis(w, "DEL %s", key_of(id));
        eventually(world_exists(w, key_of(id)), SOON_MS);
        assert_lk(0, lk_inspect_who(client, id, &who));
        assert_same(getpid(), who.pid);
    }
    world_redis(w, "EVAL %s 1 %s", "redis.call('DEL', KEYS[1]) return redis.call('HSET', KEYS[1], 'a', 'b')",
                key_of(id)); /* what others put there is replaced */
    eventually(strcmp(world_str(w, "TYPE %s", key_of(id)), "string") == 0, SOON_MS);
    assert_lk(0, lk_mutex_unlock(orders));
}

/* Not only by the beat: a connection that comes up may be to a server that is another one, or began anew. */
static void a_server_that_lost_it_is_told_at_once(struct world *w)
{
    lk_client_t *client = world_client(w, "lease=20s&describe=yes");
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    const char *id = lock_described(w, orders, "orders");
    world_redis(w, "FLUSHALL");
    world_killcommands(w);
    eventually(world_exists(w, key_of(id)), SOON_MS); /* the beat comes after 27 s */
    world_kill_server(w);
    world_restart_server(w);
    eventually(world_exists(w, key_of(id)), SOON_MS);
    (void)lk_mutex_unlock(orders); /* FLUSHALL took it */
}

static int hold_and_be_described(struct world *w, void *arg)
{
    char *key = arg;
    lk_mutex_t mutex;
    lk_client_t *client = world_open(w, "lease=20s&describe=yes");
    assert_lk(0, lk_mutex_init(&mutex, client, "orders", NULL));
    assert_lk(0, lk_mutex_lock(&mutex));
    strcpy(key, key_of(world_owner(w, "orders")));
    eventually(world_exists(w, key), SOON_MS);
    world_ready(w);
    sleep_ms(60000);
    return 1;
}

/* Nobody takes it back: it ends with its time. */
static void of_a_process_that_was_killed_it_ends_by_itself(struct world *w)
{
    char *key = world_shared(w, 64);
    lk_who_t who = LK_WHO_INIT;
    lk_client_t *other = world_client(w, "lease=20s&describe=yes");
    pid_t pid = world_fork(w, hold_and_be_described, key);
    world_kill(w, pid);
    assert_between(world_pttl(w, key), 1, LASTS_MS);
    const char *id = client_of(world_owner(w, "orders"));
    assert_lk(0, lk_inspect_who(other, id, &who)); /* who was it that died? */
    assert_same(pid, who.pid);
    world_redis(w, "DEL orders");
    world_redis(w, "PEXPIRE %s 1", key);
    eventually(!world_exists(w, key), SOON_MS);
}

static int close_inherited(struct world *w, void *arg)
{
    world_ready(w);
    return lk_client_close(arg);
}

/* The child of a fork is somebody else, who takes nothing back. */
static void a_forks_child_leaves_it_alone(struct world *w)
{
    lk_client_t *client = world_client(w, "lease=20s&describe=yes");
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    const char *id = lock_described(w, orders, "orders");
    assert_int_equal(0, world_wait(w, world_fork(w, close_inherited, client)));
    assert_true(world_exists(w, key_of(id)));
    assert_lk(0, lk_mutex_unlock(orders));
}

/* A server that stands still takes nothing back, and holds up no close that has nothing else to wait for. */
static void no_close_waits_for_it(struct world *w)
{
    lk_client_t *client = world_open(w, "lease=20s&command_timeout=4s&describe=yes");
    lk_mutex_t mutex;
    assert_lk(0, lk_mutex_init(&mutex, client, "orders", NULL));
    const char *key = strdupa(key_of(lock_described(w, &mutex, "orders")));
    assert_lk(0, lk_mutex_unlock(&mutex));
    assert_lk(0, lk_mutex_destroy(&mutex));
    world_stop_server(w);
    int64_t began_ms = now_ms();
    assert_lk(0, lk_client_close(client));
    assert_between(now_ms() - began_ms, 0, SLACK_MS);
    world_cont_server(w);
    eventually(!world_exists(w, key), SOON_MS); /* it was asked, and heard of it late */
}

/* --- at nobody's expense ---------------------------------------------------------------------------------------------- */

static void calls_take_no_more_commands(struct world *w)
{
    enum { PAIRS = 50 };
    lk_client_t *client = world_client(w, "lease=60s&command_timeout=9s&describe=yes");
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    lock_described(w, orders, "orders");
    assert_lk(0, lk_mutex_unlock(orders));
    int64_t before = world_commands(w, "evalsha") + world_commands(w, "eval");
    for (int i = 0; i < PAIRS; i++)
        assert_lk(0, lock_and_unlock(orders));
    assert_same(2 * PAIRS, world_commands(w, "evalsha") + world_commands(w, "eval") - before);
}

/* Refusals are left at that, and at the next beat it is tried again; what is held stays held. */
static void a_server_that_refuses_it_is_asked_again(struct world *w)
{
    lk_client_t *client = world_client(w, "lease=20s&describe=yes");
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    hurry(client, 300);
    const char *id = lock_described(w, orders, "orders");
    world_redis(w, "CONFIG SET maxmemory 1");
    world_redis(w, "DEL %s", key_of(id));
    world_redis(w, "CONFIG RESETSTAT");
    eventually(strstr(world_str(w, "INFO errorstats"), "OOM") != NULL, SOON_MS);
    assert_false(world_exists(w, key_of(id)));
    assert_lk(0, lk_mutex_check(orders));
    world_redis(w, "CONFIG SET maxmemory 0");
    eventually(world_exists(w, key_of(id)), SOON_MS);
    assert_lk(0, lk_mutex_unlock(orders));
}

static int64_t count_of(const char *text, const char *words)
{
    int64_t count = 0;
    for (const char *at = text; (at = strstr(at, words)) != NULL; at++)
        count++;
    return count;
}

/* Each attempt would be a line in ACL LOG: one is made for each connection, and the log has one line for all. */
static void a_user_that_may_not_goes_on(struct world *w)
{
    struct words rights;
    rights_documented(&rights);
    rights_user(w, &rights, "~shop:*", NULL);
    lk_client_t *client = world_client_at(w, NULL, rights_url(w, "lease=20s&prefix=shop:&describe=yes"));
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    lk_who_t who = LK_WHO_INIT;
    world_redis(w, "ACL SETUSER app resetkeys ~shop:* ~redisson_lock_token:* ~latchkey:*:mutex:*");
    world_redis(w, "ACL LOG RESET");
    world_redis(w, "CONFIG RESETSTAT");
    assert_lk(0, log_keep(LK_LOG_INFO));
    hurry(client, 300);
    assert_lk(0, lk_mutex_lock(orders));
    eventually(strstr(world_str(w, "INFO errorstats"), "NOPERM") != NULL, SOON_MS);
    eventually(count_of(log_kept(), "description of this client") == 1, SOON_MS);
    const char *id = client_of(world_owner(w, "shop:orders"));
    assert_lk(EACCES, lk_inspect_who(client, id, &who));
    assert_non_null(strstr(world_str(w, "INFO errorstats"), "NOPERM:count=2")); /* the second was ours, just now */
    world_redis(w, "ACL LOG RESET");
    sleep_ms(500); /* five beats */
    assert_same(0, world_elements(w, "ACL LOG"));

    world_killcommands(w);
    eventually(world_elements(w, "ACL LOG") == 1, SOON_MS);
    world_redis(w, "ACL SETUSER app ~latchkey:*");
    world_killcommands(w);
    eventually(world_exists(w, key_of(id)), SOON_MS);
    assert_lk(0, lk_inspect_who(client, id, &who));
    assert_same(1, count_of(log_kept(), "description of this client"));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_lk(0, log_to(NULL, LK_LOG_INFO, NULL));
}

/* --- servers ------------------------------------------------------------------------------------------------------------ */

/* It is where its slot is, whatever is held elsewhere, and is found from there. */
static void in_a_cluster(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    lk_client_t *client = cluster_client(c, "lease=20s"), *other = cluster_client(c, "lease=20s");
    lk_who_t who = LK_WHO_INIT;
    lk_holder_t holder;
    unsigned count;
    for (int node = 0; node < CLUSTER_MASTERS; node++) {
        const char *name = cluster_name(c, node, "orders");
        lk_mutex_t *mutex = world_mutex(w, client, name, NULL);
        assert_lk(0, lk_mutex_lockfor(mutex, SOON_MS));
        assert_lk(0, lk_inspect_holders(other, LK_KIND_MUTEX, name, &holder, sizeof holder, 1, &count));
        eventually(lk_inspect_who(other, holder.id, &who) == 0, SOON_MS);
        assert_same(getpid(), who.pid);
        assert_lk(0, lk_mutex_unlock(mutex));
    }
    const char *key = key_of(holder.id);
    int slot = cluster_slot(c, key), from = cluster_master(c, key), to = (from + 1) % CLUSTER_MASTERS;
    hurry(client, 600);
    assert_same(1, cluster_int(c, from, "DEL %s", key));
    cluster_move(c, slot, from, to); /* the next beat is told so, and goes there */
    lk__watchdog_lock(&client->dog);
    client->dog.notice->sheets[0].due_us = 0;
    lk__watchdog_wake(&client->dog);
    lk__mu_unlock(&client->dog.mu);
    eventually(cluster_int(c, to, "EXISTS %s", key) == 1, SOON_MS);
    eventually(lk_inspect_who(other, holder.id, &who) == 0, SOON_MS);
    world_close(w, client);
    eventually(lk_inspect_who(other, holder.id, &who) == ENOENT, SOON_MS);
}

/* Each server is told, and one that lost it, or came late. One that knows is enough for who asks. */
static void in_a_quorum(struct world *w)
{
    enum { NODES = 3 };
    static const lk_redlockattr_t no_wait = { .size = sizeof no_wait, .longest_lease_ms = -1,
                                              .node_timeout_ms = 5000 };
    struct quorum *q = quorum_begin(w, NODES);
    lk_client_t *client = quorum_client(q, "lease=40s&command_timeout=5s"), *other = quorum_client(q, "lease=20s");
    lk_redlock_t *jobs = quorum_redlock(w, client, "jobs", &no_wait);
    hurry(client, 600);
    lk_who_t who = LK_WHO_INIT;
    quorum_lockall(q, jobs, "jobs");
    const char *id = client_of(quorum_str(q, 0, "HRANDFIELD jobs"));
    assert_same(LK__ID_LENGTH, strlen(id));
    eventually(quorum_having(q, key_of(id)) == NODES, SOON_MS);
    assert_lk(0, lk_inspect_who(other, id, &who));
    assert_same(getpid(), who.pid);
    quorum_kill(q, 0);
    assert_lk(0, lk_inspect_who(other, id, &who));
    assert_lk(ENOTCONN, lk_inspect_who(other, "0123456789abcdef0123456789abcdef", &who)); /* the third may know */
    quorum_start(q, 0);
    eventually(quorum_having(q, key_of(id)) == NODES, SOON_MS);
    eventually(lk_inspect_who(other, "0123456789abcdef0123456789abcdef", &who) == ENOENT, SOON_MS);
    assert_lk(0, lk_redlock_unlock(jobs));
    const char *key = strdupa(key_of(id));
    world_close(w, client);
    eventually(quorum_having(q, key) == 0, SOON_MS);
}

/* The next master may lack it, and is told. */
static void after_a_failover(struct world *w)
{
    struct failover *f = failover_begin(w, NULL);
    lk_client_t *client = failover_client(f, "lease=20s");
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    int master = failover_master(f);
    assert_lk(0, lk_mutex_lockfor(orders, SOON_MS));
    const char *key = strdupa(key_of(failover_str(f, master, "HRANDFIELD orders")));
    eventually(failover_int(f, master, "EXISTS %s", key) == 1, SOON_MS);
    failover_int(f, master, "DEL %s", key);
    failover_sync(f, master);
    failover_kill(f, master);
    int next = failover_await(f, master, NULL);
    eventually(failover_int(f, next, "EXISTS %s", key) == 1, 20000);
    (void)lk_mutex_unlock(orders);
}

/* --- what is read --------------------------------------------------------------------------------------------------------- */

/* Whoever may write the key may write anything: it is read as words of a client or not at all. */
static void forged_words_do_no_harm(struct world *w)
{
    static const char id[] = "0123456789abcdef0123456789abcdef";
    static const char *const bad[] = { "", "x", "7", "[1]", "\"a\"", "{", "{}x", "null", "{\"host\":\"\\ud800\"}",
                                       "[[[[[[[[[]]]]]]]]]" };
    static const char references[] = "{\"host\":\"\\u00239999999\",\"why\":\"#7\",\"program\":\"\\u0023\"}";
    lk_who_t who = LK_WHO_INIT;
    lk_client_t *client = world_client(w, "command_timeout=9s&describe=yes"); /* one is of three megabytes */
    world_allow(w, "latchkey:who:*");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        world_redis(w, "SET latchkey:who:%s %s", id, bad[i]);
        assert_lk(EPROTO, lk_inspect_who(client, id, &who));
    }
    world_redis(w, "EVAL %s 1 latchkey:who:%s",
                "redis.call('SET', KEYS[1], '{\"why\":\"' .. string.rep('x', 3000000) .. '\"}')", id);
    assert_lk(EPROTO, lk_inspect_who(client, id, &who));
    world_redis(w, "SET latchkey:who:%s %s", id, "{\"host\":7,\"pid\":-1,\"why\":\"a\\u001b[2J\\u20ac\"}");
    memset(&who, 'x', sizeof who);
    who.size = sizeof who;
    assert_lk(0, lk_inspect_who(client, id, &who));
    assert_string_equal("", who.host);
    assert_same(0, who.pid);
    assert_string_equal("", who.program);
    assert_memory_equal("a?[2J", who.why, 5);
    assert_null(strpbrk(who.why, "\033\n"));
    world_redis(w, "SET latchkey:who:%s %s", id, references);
    assert_lk(0, lk_inspect_who(client, id, &who));
    assert_string_equal("#9999999", who.host);
    assert_string_equal("#7", who.why);
    assert_string_equal("#", who.program);
    world_redis(w, "DEL latchkey:who:%s", id);
    world_redis(w, "HSET latchkey:who:%s a b", id);
    assert_lk(EPROTO, lk_inspect_who(client, id, &who));
    world_redis(w, "DEL latchkey:who:%s", id);
}

static void who_asks_wrongly_is_told(struct world *w)
{
    static const char id[] = "0123456789abcdef0123456789abcdef";
    static const char *const others[] = { "", "x", "285475da-9152-4c83-822a-67ee2f116a79:1",
                                          "0123456789abcdef0123456789abcdef0", "0123456789ABCDEF0123456789ABCDEF" };
    lk_who_t who = LK_WHO_INIT;
    lk_client_t *client = world_client(w, "describe=yes");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_lk(ENOENT, lk_inspect_who(client, others[i], &who));
    assert_lk(ENOENT, lk_inspect_who(client, id, &who));
    assert_lk(EINVAL, lk_inspect_who(client, NULL, &who));
    assert_lk(EINVAL, lk_inspect_who(client, id, NULL));
    assert_lk(EINVAL, lk_inspect_who(NULL, id, &who));
    who.size = 4;
    assert_lk(EINVAL, lk_inspect_who(client, id, &who));
    who.size = sizeof who;
    world_stop_server(w);
    assert_lk(EIO, lk_inspect_who(client, id, &who));
    world_cont_server(w);
}

/* A program that was compiled when these attributes were not there yet. */
static void attributes_of_before_are_read(struct world *w)
{
    lk_who_t who = LK_WHO_INIT;
    lk_client_t *client;
    lk_clientattr_t attr = LK_CLIENTATTR_INIT;
    attr.size = offsetof(lk_clientattr_t, program);
    attr.url = world_url(w, "lease=20s&describe=yes");
    attr.why = "not to be looked at";
    client = open_with(w, &attr);
    lk_mutex_t *mutex = world_mutex(w, client, "m", NULL);
    const char *id = lock_described(w, mutex, "m");
    assert_lk(0, lk_inspect_who(client, id, &who));
    assert_string_equal("", who.why);
    assert_lk(0, lk_mutex_unlock(mutex));
}

int main(void)
{
    return world_run(a_client_that_holds_something_is_described, a_client_that_waits_is_described, nothing_else_is_said,
                     it_says_what_it_is_told_to_say, the_longest_words_fit, who_shall_say_nothing_says_nothing,
                     it_is_said_again, a_server_that_lost_it_is_told_at_once,
                     of_a_process_that_was_killed_it_ends_by_itself, a_forks_child_leaves_it_alone,
                     no_close_waits_for_it, calls_take_no_more_commands, a_server_that_refuses_it_is_asked_again,
                     a_user_that_may_not_goes_on,
                     in_a_cluster, in_a_quorum, after_a_failover, forged_words_do_no_harm, who_asks_wrongly_is_told,
                     attributes_of_before_are_read);
}
