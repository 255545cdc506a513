/* SPDX-License-Identifier: MIT */
/*
 * reconnect_test.c - a connection that ends at each request is made anew, but not without a pause: that a
 * handshake succeeds is no success
 *
 * labels: threads memory
 * simulated: yes
 * seconds: 8
 */
#include "fake_server.h"
#include "redis/vocabulary.h"

#include <stdio.h>
#include <sys/time.h>

/* A script's answer of this verdict, and a token if it has one. */
static void answer_scripts(struct fake *f, enum lk__verdict verdict)
{
    char reply[128];
    struct timeval now;
    gettimeofday(&now, NULL);
    snprintf(reply, sizeof reply, "*%d\r\n:%d\r\n:%lld\r\n:#\r\n%s", verdict == LK__GRANTED ? 4 : 3, verdict,
             (long long)now.tv_sec * 1000000 + now.tv_usec, verdict == LK__GRANTED ? ":4711\r\n" : "");
    fake_answer(f, "EVALSHA", reply);
}

static int64_t connections(struct fake *f)
{
    return fake_asked(f, "ROLE"); /* one in each handshake */
}

static void a_call_that_is_cut_each_time(struct world *w)
{
    struct fake *f = fake_begin(w);
    lk_client_t *client;
    lk_mutex_t m;
    assert_lk(0, open_patiently(&client, fake_url(f, "lease=10s&command_timeout=1s")));
    assert_lk(0, lk_mutex_init(&m, client, "m", NULL));
    fake_answer(f, "EVALSHA", FAKE_CLOSE);
    assert_int_not_equal(0, lk_mutex_lockfor(&m, 2000));
    assert_between(connections(f), 3, 100); /* a few at once, then eight in a second */
    assert_lk(0, lk_mutex_destroy(&m));
    (void)!lk_client_close(client);
}

static void a_renewal_that_is_cut_each_time(struct world *w)
{
    struct fake *f = fake_begin(w);
    lk_client_t *client;
    lk_mutex_t m;
    int64_t left_ms;
    assert_lk(0, open_patiently(&client, fake_url(f, "lease=3s&command_timeout=400ms")));
    assert_lk(0, lk_mutex_init(&m, client, "m", NULL));
    answer_scripts(f, LK__GRANTED);
    assert_lk(0, lk_mutex_trylock(&m));
    fake_answer(f, "EVALSHA", FAKE_CLOSE);
    eventually(fake_asked(f, "EVALSHA") >= 3, 5000); /* it is tried again */
    eventually(lk_mutex_remaining(&m, &left_ms) == ESTALE, 5000);
    assert_between(connections(f), 4, 300); /* eight in a command timeout */
    (void)!lk_mutex_unlock(&m);
    assert_lk(0, lk_mutex_destroy(&m));
    (void)!lk_client_close(client);
}

int main(void)
{
    return world_run(a_call_that_is_cut_each_time, a_renewal_that_is_cut_each_time);
}
