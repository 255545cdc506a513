/* SPDX-License-Identifier: MIT */
/*
 * users_test.c - who a client is at all nodes of a cluster: passwords that are wrong or change, rights that are missing
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 25
 */
#include "cluster.h"
#include "log.h"
#include "rights.h"
#include "subject.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define OPTIONS "lease=10s&command_timeout=500ms&poll=200ms&retry_max=50ms"

static void refused(int code, const char *url, const char *words)
{
    lk_client_t *client;
    assert_lk(code, lk_client_open(&client, url));
    assert_says(words);
    assert_null(strstr(lk_errortext(), "-pw"));
}

static const char *hosts_of(struct cluster *c)
{
    static char hosts[96];
    snprintf(hosts, sizeof hosts, "127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d", cluster_port(c, 0), cluster_port(c, 1),
             cluster_port(c, 2));
    return hosts;
}

/* One of each kind on each node, all given back. */
static void works(struct world *w, struct cluster *c, lk_client_t *client)
{
    for (const struct subject_kind *kind = subject_kinds; kind->name != NULL; kind++) {
        int node = (int)(kind - subject_kinds) % CLUSTER_MASTERS;
        struct subject *one = world_subject(w, client, kind, cluster_name(c, node, "shop:"));
        assert_lk(0, subject_take(one, PATIENT_MS));
        assert_lk(0, subject_give(one));
    }
}

/* The rule of docs/security.md, as that says it is to be in a cluster. */
static void make_the_user(struct cluster *c, const char *without)
{
    struct words rights;
    rights_documented(&rights);
    cluster_order(c, "ACL SETUSER shop reset on >shop-pw resetkeys resetchannels -@all +cluster|nodes +asking");
    for (int i = 0; i < rights.count; i++) {
        const char *right = rights.at[i];
        right = strcmp(right, "~PREFIX*") == 0       ? "~shop:*"
                : strcmp(right, "+subscribe") == 0   ? "+ssubscribe"
                : strcmp(right, "+unsubscribe") == 0 ? "+sunsubscribe"
                : strcmp(right, "+publish") == 0     ? "+spublish"
                                                     : right;
        if (without == NULL || strcmp(right, without) != 0)
            cluster_order(c, "ACL SETUSER shop %s", right);
    }
    if (without != NULL)
        cluster_order(c, "ACL SETUSER shop -%s", without + 1);
}

/* What has moved already is asked for there, before its slot has. */
static void asks_on_the_way(struct world *w, struct cluster *c, lk_client_t *client)
{
    const char *name = cluster_name(c, 0, "shop:bills");
    int slot = cluster_slot(c, name);
    lk_mutex_t *bills = world_mutex(w, client, name, NULL);
    assert_lk(0, lk_mutex_lock(bills));
    cluster_beginmove(c, slot, 0, 2);
    while (cluster_movekeys(c, slot, 0, 2) > 0)
        ;
    assert_lk(0, lk_mutex_check(bills));
    cluster_endmove(c, slot, 0, 2);
    assert_lk(0, lk_mutex_unlock(bills));
}

static void the_documented_rights_are_enough(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    make_the_user(c, NULL);
    assert_lk(0, log_keep(LK_LOG_DEBUG));
    lk_client_t *client = world_client_at(w, c, cluster_url_of(c, "shop:shop-pw", hosts_of(c), OPTIONS)),
                *other = world_client_at(w, c, cluster_url_of(c, "shop:shop-pw", hosts_of(c), OPTIONS));
    works(w, c, client);
    const char *name = cluster_name(c, 1, "shop:orders");
    lk_mutex_t *orders = world_mutex(w, client, name, NULL), *theirs = world_mutex(w, other, name, NULL);
    struct worker waiter;
    assert_lk(0, lk_mutex_lock(orders));
    worker_start(&waiter, lock_and_unlock, theirs);
    eventually(cluster_queued(c, 1, name) == 1, PATIENT_MS);
    cluster_move(c, cluster_slot(c, name), 1, 2);
    assert_lk(0, lk_mutex_check(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    assert_int_equal(0, worker_join(&waiter));
    asks_on_the_way(w, c, client);
    assert_null(strstr(log_kept(), "NOPERM"));
    make_the_user(c, "+cluster|nodes");
    refused(EACCES, cluster_url_of(c, "shop:shop-pw", hosts_of(c), OPTIONS), "NOPERM");
}

static void a_wrong_password_is_refused(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    refused(EACCES, cluster_url_of(c, CLUSTER_USER ":wrong-pw", hosts_of(c), OPTIONS), "WRONGPASS");
    refused(EACCES, cluster_url_of(c, "", hosts_of(c), OPTIONS), "NOAUTH");
    /* At one node alone: what is elsewhere is served. */
    lk_client_t *client = cluster_client(c, OPTIONS);
    cluster_str(c, 2, "ACL SETUSER " CLUSTER_USER " resetpass >other-pw");
    cluster_str(c, 2, "CLIENT KILL USER " CLUSTER_USER);
    lk_mutex_t *bills = world_mutex(w, client, cluster_name(c, 0, "bills"), NULL),
               *orders = world_mutex(w, client, cluster_name(c, 2, "orders"), NULL);
    eventually(lk_mutex_lockfor(orders, 500) == EACCES, PATIENT_MS);
    assert_non_null(strstr(lk_errortext(), "WRONGPASS"));
    assert_lk(0, lk_mutex_lockfor(bills, PATIENT_MS));
    assert_lk(0, lk_mutex_unlock(bills));
    cluster_str(c, 2, "ACL SETUSER " CLUSTER_USER " resetpass >" CLUSTER_PASSWORD);
    eventually(lk_mutex_lockfor(orders, 500) == 0, PATIENT_MS);
    assert_lk(0, lk_mutex_unlock(orders));
}

/* --- the password is changed under a client that runs ---------------------------------------------------------------- */

static void write_password(struct world *w, const char *text)
{
    char path[96];
    snprintf(path, sizeof path, "%s/password", w->dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(0, fclose(file));
}

static lk_client_t *open_by_file(struct world *w, struct cluster *c)
{
    char text[512], path[96];
    lk_client_t *client = NULL;
    snprintf(path, sizeof path, "%s/config.json", w->dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    snprintf(text, sizeof text,
             "{ \"mode\": \"cluster\", \"nodes\": [\"127.0.0.1:%d\", \"127.0.0.1:%d\"], \"username\": \"app\","
             " \"password_file\": \"%s/password\", \"lease\": \"8s\", \"retry\": { \"max\": \"50ms\" } }",
             cluster_port(c, 0), cluster_port(c, 1), w->dir);
    fputs(text, file);
    assert_int_equal(0, fclose(file));
    assert_lk(0, lk_client_open_file(&client, path));
    return client;
}

/* Node by node, the file first: holds of all nodes stay, and so do nodes that still know the old one. */
static void a_file_is_read_anew(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    write_password(w, CLUSTER_PASSWORD "\n");
    lk_client_t *client = open_by_file(w, c);
    lk_mutex_t *held[CLUSTER_MASTERS], *others[CLUSTER_MASTERS];
    for (int node = 0; node < CLUSTER_MASTERS; node++) {
        held[node] = world_mutex(w, client, cluster_name(c, node, "held"), NULL);
        others[node] = world_mutex(w, client, cluster_name(c, node, "other"), NULL);
        assert_lk(0, lk_mutex_lock(held[node]));
    }
    assert_lk(0, log_keep(LK_LOG_DEBUG));
    cluster_order(c, "ACL SETUSER app >second-pw");
    write_password(w, "second-pw\n");
    for (int node = 0; node < CLUSTER_MASTERS; node++) {
        cluster_str(c, node, "ACL SETUSER app <" CLUSTER_PASSWORD);
        cluster_str(c, node, "CLIENT KILL USER app");
        for (int i = 0; i < CLUSTER_MASTERS; i++) {
            assert_lk(0, lk_mutex_lockfor(others[i], PATIENT_MS));
            assert_lk(0, lk_mutex_unlock(others[i]));
        }
    }
    sleep_ms(9000); /* more than the lease: renewals know it, too */
    for (int node = 0; node < CLUSTER_MASTERS; node++) {
        int64_t left_ms;
        assert_lk(0, lk_mutex_remaining(held[node], &left_ms));
        assert_lk(0, lk_mutex_unlock(held[node]));
    }
    for (int node = 0; node < CLUSTER_MASTERS; node++)
        world_close(w, held[node]), world_close(w, others[node]);
    assert_lk(0, close_by_hand(w, client));
    assert_null(strstr(log_kept(), "-pw"));
}

/* What the program gives, which each node may ask for at the same time. */
static atomic_int asked, again;
static atomic_bool renewed;

static int provide(lk_credentials_t *credentials, void *arg)
{
    (void)arg;
    atomic_fetch_add(&asked, 1);
    atomic_fetch_add(&again, credentials->refused);
    snprintf(credentials->user, sizeof credentials->user, CLUSTER_USER);
    snprintf(credentials->password, sizeof credentials->password, "%s",
             atomic_load(&renewed) && credentials->refused ? "second-pw" : CLUSTER_PASSWORD);
    return 0;
}

/* Tokens that end, at nodes that are connected and at those that are not yet. */
static void a_function_is_asked_anew(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    lk_client_t *client = NULL;
    lk_clientattr_t attr = LK_CLIENTATTR_INIT;
    attr.url = cluster_url_of(c, "", hosts_of(c), OPTIONS);
    attr.provider = provide;
    assert_lk(0, lk_client_openwith(&client, &attr));
    lk_mutex_t *first = world_mutex(w, client, cluster_name(c, 0, "first"), NULL),
               *second = world_mutex(w, client, cluster_name(c, 1, "second"), NULL);
    assert_lk(0, lk_mutex_lock(first));
    atomic_store(&renewed, true);
    cluster_order(c, "ACL SETUSER app resetpass >second-pw");
    cluster_order(c, "CLIENT KILL USER app");
    assert_lk(0, lk_mutex_lockfor(second, PATIENT_MS));
    assert_lk(0, lk_mutex_unlock(second));
    eventually(lk_mutex_check(first) == 0, PATIENT_MS);
    assert_lk(0, lk_mutex_unlock(first));
    assert_true(atomic_load(&again) >= 2 && atomic_load(&asked) > atomic_load(&again));
    world_close(w, first);
    world_close(w, second);
    assert_lk(0, close_by_hand(w, client));
    assert_null(strstr(log_kept(), "-pw"));
}

int main(void)
{
    if (log_keep(LK_LOG_DEBUG) != 0)
        return 1;
    return world_run(the_documented_rights_are_enough, a_wrong_password_is_refused, a_file_is_read_anew,
                     a_function_is_asked_anew);
}
