/* SPDX-License-Identifier: MIT */
/* plugin.c - what client/plugin loads and unloads: a module with liblatchkey.a in it */
#include <latchkey/latchkey.h>

#include <errno.h>

int plugin_use(const char *url);
int plugin_vote(const char *url);
int plugin_open(const char *url);
int plugin_close(void);
int plugin_round(const char *url);

static lk_client_t *kept;

/* A mutex, and a wait for its condition, which listens to messages. */
static int wait_in_vain(lk_client_t *client)
{
    lk_mutex_t m;
    lk_cond_t c = { 0 };
    int rc = lk_mutex_init(&m, client, "orders", NULL);
    if (rc != 0)
        return rc;
    rc = lk_cond_init(&c, client, "orders", NULL);
    if (rc == 0 && (rc = lk_mutex_lock(&m)) == 0) {
        rc = lk_cond_waitfor(&c, &m, 1);
        if (rc == ETIMEDOUT || rc == 0)
            rc = lk_mutex_unlock(&m);
    }
    lk_cond_destroy(&c);
    lk_mutex_destroy(&m);
    return rc;
}

/* A run, and a round of one party, either of which has a lease. */
static int run_and_meet(lk_client_t *client)
{
    lk_once_t o;
    lk_barrier_t b = { 0 };
    int rc = lk_once_init(&o, client, "orders", NULL);
    if (rc != 0)
        return rc;
    rc = lk_barrier_init(&b, client, "orders", 1, NULL);
    if (rc == 0 && (rc = lk_once_begin(&o, 10000)) == 0)
        rc = lk_once_fail(&o);
    if (rc == 0 && lk_barrier_wait(&b) != LK_BARRIER_SERIAL)
        rc = -1;
    lk_barrier_destroy(&b);
    lk_once_destroy(&o);
    return rc;
}

static lk_inspect_t *walk;

/* What operators use. A walk is left in the middle, and open. */
static int look_around(lk_client_t *client, const char *url)
{
    const lk_clientattr_t attr = { .size = sizeof attr, .url = url };
    lk_inspected_t found = LK_INSPECTED_INIT;
    char *text;
    int rc = lk_survey(&attr, &text);
    if (rc != 0)
        return rc;
    lk_free(text);
    rc = lk_client_metrics(client, 10, &text);
    if (rc != 0)
        return rc;
    lk_free(text);
    rc = lk_inspect_open(&walk, client, NULL);
    if (rc == 0)
        rc = lk_inspect_next(walk, &found);
    return rc == ENOENT ? 0 : rc;
}

/* Uses the library, and closes all of it again but for a walk, which keeps no thread. */
int plugin_use(const char *url)
{
    lk_client_t *client;
    int rc = lk_client_open(&client, url);
    if (rc != 0)
        return rc;
    rc = wait_in_vain(client);
    if (rc == 0)
        rc = run_and_meet(client);
    if (rc == 0)
        rc = look_around(client, url);
    int closed = lk_client_close(client);
    return rc != 0 ? rc : closed;
}

/* The same with a client of a quorum. */
int plugin_vote(const char *url)
{
    const lk_redlockattr_t attr = { .size = sizeof attr, .longest_lease_ms = -1, .node_timeout_ms = 300 };
    lk_client_t *client;
    lk_redlock_t r;
    int rc = lk_client_open(&client, url);
    if (rc != 0)
        return rc;
    rc = lk_redlock_init(&r, client, "orders", &attr);
    if (rc == 0 && (rc = lk_redlock_lockfor(&r, 20000)) == 0)
        rc = lk_redlock_unlock(&r);
    int closed = lk_client_close(client);
    lk_redlock_destroy(&r);
    return rc != 0 ? rc : closed;
}

int plugin_open(const char *url)
{
    return lk_client_open(&kept, url);
}

int plugin_close(void)
{
    return lk_client_close(kept);
}

static void ignore(void *arg, int level, const char *text)
{
    (void)arg;
    (void)level;
    (void)text;
}

/* Uses the library, and leaves nothing. */
int plugin_round(const char *url)
{
    uint64_t handle;
    int rc = lk_addlog(ignore, LK_LOG_WARNING, NULL, &handle);
    if (rc != 0)
        return rc;
    rc = plugin_use(url);
    lk_inspect_close(walk);
    walk = NULL;
    int removed = lk_removelog(handle);
    return rc != 0 ? rc : removed;
}
