/* SPDX-License-Identifier: MIT */
/*
 * provider_test.c - the program says who the client is, to Sentinels and to the master, also in a program that forks
 *
 * labels: memory
 * simulated: yes
 * seconds: 8
 */
#include "failover.h"
#include "log.h"
#include "subject.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define OPTIONS "lease=10s&poll=500ms"

/* What the program knows of the Sentinels, set while the library asks. The first word is stale once there is a second. */
static struct {
    atomic_bool second;
    atomic_int asked, refused; /* for Sentinels */
    atomic_int servers;        /* asked for servers */
} vault;

static int provide(lk_credentials_t *c, void *arg)
{
    (void)arg;
    atomic_fetch_add(c->sentinel ? &vault.asked : &vault.servers, 1);
    atomic_fetch_add(&vault.refused, c->sentinel && c->refused);
    bool second = c->refused && atomic_load(&vault.second);
    snprintf(c->user, sizeof c->user, "%s", c->sentinel ? "reader" : "app");
    snprintf(c->password, sizeof c->password, "%s",
             !c->sentinel ? FAILOVER_PASSWORD
             : second     ? "second-word"
                          : "first-word");
    return 0;
}

static lk_client_t *open_client(struct failover *f)
{
    lk_client_t *client = NULL;
    lk_clientattr_t attr = { .size = sizeof attr, .url = failover_bareurl(f, OPTIONS), .provider = provide };
    assert_lk(0, lk_client_openwith(&client, &attr));
    return client;
}

static struct failover *begin(struct world *w)
{
    struct failover *f = failover_begin(w, NULL);
    failover_ordersentinels(f, FAILOVER_READER " >first-word");
    memset(&vault, 0, sizeof vault);
    return f;
}

/* Sentinels refuse the word that was right: the program is asked anew, and the client hears of the next master. */
static void sentinels_are_told_anew(struct world *w)
{
    struct failover *f = begin(w);
    lk_client_t *client = open_client(f);
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    assert_true(atomic_load(&vault.asked) >= 1 && atomic_load(&vault.servers) >= 1);
    assert_int_equal(0, atomic_load(&vault.refused));
    atomic_store(&vault.second, true);
    failover_ordersentinels(f, "ACL SETUSER reader resetpass >second-word");
    failover_ordersentinels(f, "CLIENT KILL USER reader");
    eventually(atomic_load(&vault.refused) >= FAILOVER_SENTINELS, PATIENT_MS);
    failover_sync(f, 0);
    failover_demand(f);
    int master = failover_await(f, 0, NULL);
    eventually(failover_connections(f, master) >= 2, PATIENT_MS);
    assert_lk(0, lk_mutex_check(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    world_close(w, orders);
    assert_lk(0, close_by_hand(w, client));
    assert_null(strstr(log_kept(), "-word"));
}

/* What the child has of the parent's client asks nobody; a client of its own asks the child's function. */
static int child(struct world *w, void *arg)
{
    struct failover *f = arg;
    lk_mutex_t m;
    int before = atomic_load(&vault.asked) + atomic_load(&vault.servers);
    failover_ordersentinels(f, "CLIENT KILL USER reader"); /* by the test's connection, which the parent leaves alone */
    sleep_ms(200);
    assert_int_equal(before, atomic_load(&vault.asked) + atomic_load(&vault.servers));
    lk_client_t *client = open_client(f);
    assert_true(atomic_load(&vault.asked) + atomic_load(&vault.servers) > before);
    assert_lk(0, lk_mutex_init(&m, client, "bills", NULL));
    assert_lk(0, lk_mutex_lock(&m));
    assert_lk(0, lk_mutex_unlock(&m));
    assert_lk(0, lk_mutex_destroy(&m));
    assert_lk(0, lk_client_close(client));
    world_ready(w);
    return 0;
}

static void a_child_asks_for_itself(struct world *w)
{
    if (THREAD_SANITIZED) /* it does not follow a fork out of a process with threads */
        skip();
    struct failover *f = begin(w);
    lk_client_t *client = open_client(f);
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    int asked = atomic_load(&vault.asked);
    assert_int_equal(0, world_wait(w, world_fork(w, child, f)));
    eventually(atomic_load(&vault.asked) >= asked + FAILOVER_SENTINELS, PATIENT_MS);
    assert_lk(0, lk_mutex_check(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    world_close(w, orders);
    assert_lk(0, close_by_hand(w, client));
}

int main(void)
{
    if (log_keep(LK_LOG_DEBUG) != 0)
        return 1;
    return world_run(sentinels_are_told_anew, a_child_asks_for_itself);
}
