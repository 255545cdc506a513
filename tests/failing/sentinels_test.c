/* SPDX-License-Identifier: MIT */
/*
 * sentinels_test.c - every allocation and every system call fails while Sentinels are asked where the master is
 *
 * labels: memory
 * simulated: yes
 * seconds: 15
 * processors: 2
 * support: failing
 */
#include "failing/failing.h"
#include "failover.h"

#include <string.h>

static struct failover *servers;

/* A client that cannot be opened takes its whole time to say so. A lease is four times clock_skew at least. */
static const char *options(void)
{
    return failing_lasts() ? "lease=1500ms&clock_skew=100ms&connect_timeout=300ms"
                           : "lease=3s&clock_skew=100ms&connect_timeout=3s&command_timeout=900ms";
}

static const char *patient(void)
{
    return "lease=3s&clock_skew=100ms&connect_timeout=3s&command_timeout=900ms";
}

static int provide(lk_credentials_t *credentials, void *arg)
{
    (void)arg;
    strcpy(credentials->user, credentials->sentinel ? "" : "app");
    strcpy(credentials->password, credentials->sentinel ? FAILOVER_SENTINEL_PASSWORD : FAILOVER_PASSWORD);
    return 0;
}

static int open_provided(lk_client_t **client, const char *options)
{
    lk_clientattr_t attr = { .size = sizeof attr, .url = failover_bareurl(servers, options), .provider = provide };
    return lk_client_openwith(client, &attr);
}

/* It works, and all is given back. */
static void use(lk_client_t *client)
{
    lk_mutex_t m;
    assert_lk(0, lk_mutex_init(&m, client, "m", NULL));
    assert_lk(0, lk_mutex_lockfor(&m, FAILING_LONG_MS));
    assert_lk(0, lk_mutex_unlock(&m));
    assert_lk(0, lk_mutex_destroy(&m));
    assert_lk(0, lk_client_close(client));
}

static void open_url(struct world *w)
{
    (void)w;
    lk_client_t *client = NULL;
    const char *url = failover_url(servers, options());
    failing_begin();
    int rc = tried(0, lk_client_open(&client, url), ENOMEM, ENOTCONN);
    failing_end();
    if (rc != 0)
        assert_lk(0, lk_client_open(&client, failover_url(servers, patient())));
    use(client);
}

/* The program's function says who the client is, to the Sentinels and to the master. */
static void open_with_function(struct world *w)
{
    (void)w;
    lk_client_t *client = NULL;
    failing_begin();
    int rc = tried(0, open_provided(&client, options()), ENOMEM, ENOTCONN);
    failing_end();
    if (rc != 0)
        assert_lk(0, open_provided(&client, patient()));
    use(client);
}

enum { ASKED_WITHIN_MS = 20 };

static int cut_sentinels(void)
{
    failover_ordersentinels(servers, "CLIENT KILL TYPE pubsub");
    return 0;
}

/* Their connections go, and are made anew in the background; whoever locks meanwhile notices nothing. */
static void asked_anew(struct world *w)
{
    (void)w;
    lk_client_t *client = NULL;
    lk_mutex_t m;
    assert_lk(0, lk_client_open(&client, failover_url(servers, patient())));
    assert_lk(0, lk_mutex_init(&m, client, "m", NULL));
    failing_begin();
    spared(cut_sentinels());
    sleep_ms(ASKED_WITHIN_MS);
    if (tried(0, lk_mutex_lockfor(&m, failing_patience_ms()), ENOMEM, UNREACHABLE, ETIMEDOUT) == 0)
        tried(0, lk_mutex_unlock(&m), UNREACHABLE, ESTALE);
    failing_end();
    assert_lk(0, lk_mutex_lockfor(&m, FAILING_LONG_MS));
    assert_lk(0, lk_mutex_unlock(&m));
    assert_lk(0, lk_mutex_destroy(&m));
    use(client);
}

static void all_of(struct world *w, enum failing kind)
{
    servers = failover_begin(w, NULL);
    each_failure(w, "open", kind, open_url);
    each_failure(w, "open provided", kind, open_with_function);
    each_failure(w, "asked anew", kind, asked_anew);
    failover_end(servers);
}

int main(void)
{
    failing_sparsely(SANITIZED ? 6 : 3);
    return all_failures(all_of);
}
