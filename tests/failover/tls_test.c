/* SPDX-License-Identifier: MIT */
/*
 * tls_test.c - F43: where there are Sentinels, they and the master each have to show who they are
 *
 * labels: threads memory
 * seconds: 14
 */
#include "certificates.h"
#include "failover.h"
#include "log.h"
#include "subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS "lease=10s&command_timeout=500ms&poll=500ms"

static void works(struct world *w, struct failover *f, const char *url)
{
    lk_client_t *client = world_client_at(w, f, url);
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    world_close(w, client);
}

/* `url` with the scheme of another one, and without what TLS needs. */
static const char *plain(const char *url)
{
    static char changed[768];
    const char *rest = strstr(url, "://"), *end = strstr(url, "&cacert=");
    assert_true(rest != NULL && end != NULL);
    snprintf(changed, sizeof changed, "redis-sentinel%.*s", (int)(end - rest), rest);
    return changed;
}

static const char *alone(struct failover *f, int port)
{
    static char url[768];
    snprintf(url, sizeof url,
             "rediss-sentinel://app:failover-pw@127.0.0.1:%d/" FAILOVER_SERVICE "?sentinel_password=sentinel-pw&%s%s",
             port, OPTIONS, strstr(failover_url(f, ""), "&cacert="));
    return url;
}

/* One that nobody who is trusted has signed is told nothing, and passed over as one that does not answer. */
static void a_sentinel_has_to_show_who_it_is(struct world *w)
{
    struct failover *f = failover_begin(w, NULL);
    int impostor = failover_isolated(f, "stranger");
    assert_lk(0, log_keep(LK_LOG_DEBUG));
    failover_refused(ENOTCONN, alone(f, impostor), "nobody who is trusted here signed");
    works(w, f, failover_urlwith(failover_url(f, OPTIONS), impostor));
    assert_non_null(strstr(log_kept(), "nobody who is trusted here signed"));
    assert_null(strstr(log_kept(), "-pw"));
    works(w, f, alone(f, failover_port(f, 1)));
    failover_refused(ENOTCONN, plain(failover_url(f, OPTIONS)), "does it want TLS");
}

/* The right certificate of a Sentinel is none of its master's. */
static void the_master_has_to_show_who_it_is(struct world *w)
{
    struct failover *f = failover_begin(w, NULL);
    certificate_make(w->dir, &(struct certificate){ "elsewhere", "ca", "DNS:cache.example", 0, 0 });
    lk_client_t *client = failover_client(f, OPTIONS "&retry_max=50ms");
    lk_mutex_t *kept = world_mutex(w, client, "kept", NULL);
    assert_lk(0, lk_mutex_lock(kept));
    failover_configure(f, "CONFIG SET tls-cert-file %s/elsewhere.pem tls-key-file %s/elsewhere.key");
    failover_refused(ENOTCONN, failover_url(f, OPTIONS), "certificate is for cache.example, not for 127.0.0.1");
    failover_refused(ENOTCONN, failover_listurl(f, OPTIONS), "certificate is for cache.example, not for 127.0.0.1");
    works(w, f, failover_listurl(f, OPTIONS "&sni=cache.example"));

    assert_lk(0, lk_mutex_check(kept)); /* on the connections there are */
    failover_int(f, 0, "CLIENT KILL USER app SKIPME yes");
    lk_mutex_t *others = world_mutex(w, client, "others", NULL);
    eventually(lk_mutex_lockfor(others, 200) == ENOTCONN, PATIENT_MS);
    failover_configure(f, "CONFIG SET tls-cert-file %s/server.pem tls-key-file %s/server.key");
    assert_lk(0, lk_mutex_lockfor(others, PATIENT_MS));
    assert_lk(0, lk_mutex_unlock(others));
    assert_lk(0, lk_mutex_unlock(kept)); /* it was not lost */
}

/* Masters that ask who comes; the certificate of the client is also for the next one. */
static void the_client_has_to_show_who_it_is(struct world *w)
{
    char options[384];
    struct failover *f = failover_begin(w, NULL);
    snprintf(options, sizeof options, OPTIONS "&cert=%s/client.pem&key=%s/client.key", w->dir, w->dir);
    failover_configure(f, "CONFIG SET tls-auth-clients yes");
    failover_refused(EACCES, failover_url(f, OPTIONS), "the server wants a certificate of the client");
    lk_client_t *client = failover_client(f, options);
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    failover_sync(f, 0);
    failover_demand(f);
    int master = failover_await(f, 0, NULL);
    eventually(failover_connections(f, master) >= 2, PATIENT_MS);
    assert_lk(0, lk_mutex_check(orders));
    assert_lk(0, lk_mutex_unlock(orders));
}

int main(void)
{
    setenv("LATCHKEY_TEST_TLS", "yes", 1);
    if (log_keep(LK_LOG_DEBUG) != 0)
        return 1;
    return world_run(a_sentinel_has_to_show_who_it_is, the_master_has_to_show_who_it_is,
                     the_client_has_to_show_who_it_is);
}
