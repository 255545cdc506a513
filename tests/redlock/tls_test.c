/* SPDX-License-Identifier: MIT */
/*
 * tls_test.c - a quorum over TLS: each server has to show who it is, and one that cannot is one that is away
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 9
 */
#include "certificates.h"
#include "news.h"
#include "quorum.h"

#include <stdio.h>
#include <stdlib.h>

#define TIMES "lease=2500ms&command_timeout=800ms&retry_max=50ms"

static const lk_redlockattr_t no_wait = { .size = sizeof no_wait, .fenced = 1, .longest_lease_ms = -1,
                                          .node_timeout_ms = 400 };

static void works(lk_redlock_t *r)
{
    uint64_t token;
    assert_lk(0, lk_redlock_lockfor(r, QUORUM_WITHIN_MS));
    assert_lk(0, lk_redlock_token(r, &token));
    assert_lk(0, lk_redlock_check(r));
    assert_lk(0, lk_redlock_unlock(r));
}

/* From now on it shows that one, also to those that were connected. */
static void show(struct world *w, struct quorum *q, int node, const char *certificate)
{
    quorum_str(q, node, "CONFIG SET tls-cert-file %s/%s.pem tls-key-file %s/%s.key", w->dir, certificate, w->dir,
               certificate);
    quorum_int(q, node, "CLIENT KILL TYPE normal SKIPME yes");
}

/* Held for longer than its lease, and waited for. */
static void all_of_it_is_encrypted(struct world *w)
{
    struct quorum *q = quorum_begin(w, 3);
    lk_client_t *client = quorum_client(q, TIMES), *rival = quorum_client(q, TIMES);
    lk_redlock_t *r = quorum_redlock(w, client, "jobs", &no_wait), *other = quorum_redlock(w, rival, "jobs", &no_wait);
    struct news *n = news_of(w, client, "jobs");
    quorum_lockall(q, r, "jobs");
    for (int64_t until_ms = now_ms() + 3000; now_ms() < until_ms; sleep_ms(200)) {
        assert_answer(0, lk_redlock_check(r));
        assert_answer(EBUSY, lk_redlock_trylock(other));
    }
    assert_same(0, news(n, LK_EVENT_LOST));
    assert_lk(0, lk_redlock_unlock(r));
    works(other);
}

static void who_cannot_show_who_it_is_is_away(struct world *w)
{
    lk_client_t *refused = NULL;
    struct quorum *q = quorum_begin(w, 3);
    certificate_make(w->dir, &(struct certificate){ "elsewhere", "ca", "DNS:cache.example", 0, 0 });
    show(w, q, 0, "elsewhere"); /* before anybody came */
    lk_client_t *client = quorum_client(q, TIMES);
    lk_redlock_t *r = quorum_redlock(w, client, "jobs", &no_wait);
    struct news *n = news_of(w, client, "jobs");
    works(r);
    assert_lk(0, lk_redlock_lock(r));
    assert_same(0, quorum_int(q, 0, "EXISTS jobs"));
    show(w, q, 0, "server");
    eventually(lk_redlock_check(r) == 0, QUORUM_WITHIN_MS);
    assert_lk(0, lk_redlock_unlock(r));
    quorum_lockall(q, r, "jobs"); /* it is back */
    show(w, q, 2, "stranger");    /* while it is held */
    for (int64_t until_ms = now_ms() + 3000; now_ms() < until_ms; sleep_ms(200))
        assert_answer(0, lk_redlock_check(r));
    assert_same(0, news(n, LK_EVENT_LOST));
    assert_lk(0, lk_redlock_unlock(r));

    show(w, q, 1, "elsewhere"); /* no majority shows who it is */
    eventually(lk_redlock_trylock(r) == ENOTCONN, QUORUM_WITHIN_MS);
    assert_lk(ENOTCONN, lk_redlock_lockfor(r, 200));
    assert_lk(ENOTCONN, open_patiently(&refused, quorum_url(q, TIMES)));
    assert_says("nobody who is trusted here signed");
    show(w, q, 1, "server");
    show(w, q, 2, "server");
    quorum_lockall(q, r, "jobs");
    assert_lk(0, lk_redlock_unlock(r));
    eventually(quorum_having(q, "jobs") == 0, QUORUM_WITHIN_MS);
}

/* What speaks without TLS there, and does not answer a handshake, is away as well. */
static void who_has_no_tls_is_away(struct world *w)
{
    char url[384];
    struct quorum *q = quorum_begin(w, 3);
    lk_client_t *client;
    snprintf(url, sizeof url, "rediss-quorum://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d?" TIMES "&cacert=%s/ca.pem",
             quorum_controlport(q, 0), quorum_port(q, 1), quorum_port(q, 2), w->dir);
    client = world_client_at(w, q, url);
    works(quorum_redlock(w, client, "jobs", &no_wait));
    eventually(quorum_having(q, "jobs") == 0, QUORUM_WITHIN_MS);
}

static void the_client_has_to_show_who_it_is(struct world *w)
{
    char options[384];
    lk_client_t *refused = NULL;
    struct quorum *q = quorum_begin(w, 3);
    for (int node = 0; node < 3; node++)
        quorum_str(q, node, "CONFIG SET tls-auth-clients yes");
    assert_lk(EACCES, open_patiently(&refused, quorum_url(q, TIMES)));
    assert_says("the server wants a certificate of the client");
    snprintf(options, sizeof options, TIMES "&cert=%s/client.pem&key=%s/client.key", w->dir, w->dir);
    works(quorum_redlock(w, quorum_client(q, options), "jobs", &no_wait));
}

int main(void)
{
    setenv("LATCHKEY_TEST_TLS", "yes", 1);
    return world_run(all_of_it_is_encrypted, who_cannot_show_who_it_is_is_away, who_has_no_tls_is_away,
                     the_client_has_to_show_who_it_is);
}
