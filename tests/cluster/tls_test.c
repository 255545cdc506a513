/* SPDX-License-Identifier: MIT */
/*
 * tls_test.c - F43: in a cluster each node has to show who it is, and one that cannot is the only one not served
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 25
 */
#include "certificates.h"
#include "cluster.h"
#include "subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS "lease=10s&command_timeout=500ms&poll=500ms&retry_max=50ms"

static void works(lk_mutex_t *mutex)
{
    assert_lk(0, lk_mutex_lockfor(mutex, PATIENT_MS));
    assert_lk(0, lk_mutex_unlock(mutex));
}

static void refused(int code, const char *url, const char *words)
{
    lk_client_t *client;
    assert_lk(code, lk_client_open(&client, url));
    assert_says(words);
    assert_null(strstr(lk_errortext(), "-pw"));
}

/* Held on through a move and a promotion, and a waiter hears, all of it over TLS. */
static void all_of_it_is_encrypted(struct world *w)
{
    struct cluster *c = cluster_begin(w, true);
    lk_client_t *client = cluster_client(c, OPTIONS), *other = cluster_client(c, OPTIONS);
    const char *name = cluster_name(c, 0, "orders");
    lk_mutex_t *orders = world_mutex(w, client, name, NULL), *theirs = world_mutex(w, other, name, NULL);
    struct worker waiter;
    assert_lk(0, lk_mutex_lock(orders));
    worker_start(&waiter, lock_and_unlock, theirs);
    eventually(cluster_queued(c, 0, name) == 1, PATIENT_MS);
    cluster_move(c, cluster_slot(c, name), 0, 1);
    assert_lk(0, lk_mutex_check(orders));
    cluster_replicated(c, 1);
    cluster_kill(c, 1);
    eventually(lk_mutex_check(orders) == 0, CLUSTER_WITHIN_MS);
    assert_lk(0, lk_mutex_unlock(orders));
    assert_int_equal(0, worker_join(&waiter));
    eventually(cluster_master(c, name) == 4, CLUSTER_WITHIN_MS);
}

static void a_node_has_to_show_who_it_is(struct world *w)
{
    struct cluster *c = cluster_begin(w, false);
    certificate_make(w->dir, &(struct certificate){ "elsewhere", "ca", "DNS:cache.example", 0, 0 });
    cluster_str(c, 1, "CONFIG SET tls-cert-file %s/elsewhere.pem tls-key-file %s/elsewhere.key", w->dir, w->dir);
    lk_client_t *client = cluster_client(c, OPTIONS);
    lk_mutex_t *orders = world_mutex(w, client, cluster_name(c, 1, "orders"), NULL);
    works(world_mutex(w, client, cluster_name(c, 0, "bills"), NULL));
    works(world_mutex(w, client, cluster_name(c, 2, "bills"), NULL));
    eventually(lk_mutex_lockfor(orders, 700) == ENOTCONN, PATIENT_MS);
    assert_non_null(strstr(lk_errortext(), "certificate is for cache.example, not for 127.0.0.1"));
    cluster_str(c, 1, "CONFIG SET tls-cert-file %s/server.pem tls-key-file %s/server.key", w->dir, w->dir);
    works(orders);

    char only[32];
    cluster_str(c, 2, "CONFIG SET tls-cert-file %s/stranger.pem tls-key-file %s/stranger.key", w->dir, w->dir);
    snprintf(only, sizeof only, "127.0.0.1:%d", cluster_port(c, 2));
    refused(ENOTCONN, cluster_url_of(c, CLUSTER_USER ":" CLUSTER_PASSWORD, only, OPTIONS),
            "nobody who is trusted here signed");
}

/* By its name, where its certificate has no address. */
static void a_node_with_a_name_is_reached_by_it(struct world *w)
{
    char hosts[64];
    struct cluster *c = cluster_begin(w, false);
    certificate_make(w->dir, &(struct certificate){ "named", "ca", "DNS:localhost", 0, 0 });
    cluster_order(c, "CONFIG SET tls-cert-file %s/named.pem tls-key-file %s/named.key", w->dir, w->dir);
    refused(ENOTCONN, cluster_url(c, OPTIONS), "certificate is for localhost, not for 127.0.0.1");
    cluster_setname(c, "localhost");
    snprintf(hosts, sizeof hosts, "localhost:%d", cluster_port(c, 1));
    lk_client_t *client = world_client_at(w, c, cluster_url_of(c, CLUSTER_USER ":" CLUSTER_PASSWORD, hosts, OPTIONS));
    for (int node = 0; node < CLUSTER_MASTERS; node++)
        works(world_mutex(w, client, cluster_name(c, node, "orders"), NULL));
}

static void the_client_has_to_show_who_it_is(struct world *w)
{
    char options[384];
    struct cluster *c = cluster_begin(w, false);
    cluster_order(c, "CONFIG SET tls-auth-clients yes");
    refused(EACCES, cluster_url(c, OPTIONS), "the server wants a certificate of the client");
    snprintf(options, sizeof options, OPTIONS "&cert=%s/client.pem&key=%s/client.key", w->dir, w->dir);
    lk_client_t *client = cluster_client(c, options);
    for (int node = 0; node < CLUSTER_MASTERS; node++)
        works(world_mutex(w, client, cluster_name(c, node, "orders"), NULL));
}

int main(void)
{
    setenv("LATCHKEY_TEST_TLS", "yes", 1);
    return world_run(all_of_it_is_encrypted, a_node_has_to_show_who_it_is, a_node_with_a_name_is_reached_by_it,
                     the_client_has_to_show_who_it_is);
}
