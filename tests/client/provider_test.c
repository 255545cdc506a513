/* SPDX-License-Identifier: MIT */
/*
 * provider_test.c - the program says who the client is, for each connection, and anew when that is refused
 *
 * labels: threads memory
 * simulated: yes
 */
#include "log.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

/* What the program knows, set by the test while the library asks. */
struct vault {
    pthread_mutex_t mu;
    char user[LK_USER_MAX + 1], stale[32], fresh[32]; /* stale: given unless that was just refused; "": as fresh */
    int code;                                         /* not 0: there is nothing to be had */
    bool endless;                                     /* texts without an end */
    int asked, refused, sentinels;
    int pause_ms;
    bool busy; /* a call is under way */
};

static struct vault vault;

static int provide(lk_credentials_t *c, void *arg)
{
    struct vault *v = arg;
    pthread_mutex_lock(&v->mu);
    bool stale = v->stale[0] != '\0' && !c->refused;
    int code = v->code, pause_ms = v->pause_ms;
    v->asked++;
    v->refused += c->refused;
    v->sentinels += c->sentinel;
    v->busy = true;
    snprintf(c->user, sizeof c->user, "%s", v->user);
    snprintf(c->password, sizeof c->password, "%s", stale ? v->stale : v->fresh);
    if (v->endless)
        memset(c->password, 'x', sizeof c->password);
    if (c->size < sizeof *c)
        code = EINVAL;
    pthread_mutex_unlock(&v->mu);
    sleep_ms(pause_ms);
    pthread_mutex_lock(&v->mu);
    v->busy = false;
    pthread_mutex_unlock(&v->mu);
    return code;
}

static int asked(void)
{
    pthread_mutex_lock(&vault.mu);
    int n = vault.asked;
    pthread_mutex_unlock(&vault.mu);
    return n;
}

static int refused(void)
{
    pthread_mutex_lock(&vault.mu);
    int n = vault.refused;
    pthread_mutex_unlock(&vault.mu);
    return n;
}

static bool is_busy(void)
{
    pthread_mutex_lock(&vault.mu);
    bool busy = vault.busy;
    pthread_mutex_unlock(&vault.mu);
    return busy;
}

/* The program has these from now on. */
static void set_vault(const char *stale, const char *fresh, int code)
{
    pthread_mutex_lock(&vault.mu);
    snprintf(vault.stale, sizeof vault.stale, "%s", stale);
    snprintf(vault.fresh, sizeof vault.fresh, "%s", fresh);
    vault.code = code;
    pthread_mutex_unlock(&vault.mu);
}

static void begin(struct world *w, const char *password)
{
    vault = (struct vault){ .mu = PTHREAD_MUTEX_INITIALIZER, .user = "app" };
    world_redis(w, "ACL SETUSER app on allkeys allchannels +@all resetpass >%s", password);
    set_vault("", password, 0);
}

static void change(struct world *w, const char *password)
{
    world_redis(w, "ACL SETUSER app resetpass >%s", password);
}

static void cut(struct world *w)
{
    world_redis(w, "CLIENT KILL USER app");
}

static int open_with(lk_client_t **client, const char *url)
{
    lk_clientattr_t attr = LK_CLIENTATTR_INIT;
    attr.url = url;
    attr.provider = provide;
    attr.arg = &vault;
    return lk_client_openwith(client, &attr);
}

static const char *url_of(struct world *w)
{
    return world_url(w, "lease=20s&connect_timeout=10s&retry_max=50ms");
}

static void close_all(struct world *w, lk_client_t *client, const void *object)
{
    world_close(w, object);
    assert_lk(0, close_by_hand(w, client));
    assert_null(strstr(log_kept(), "-word"));
    assert_null(strstr(lk_errortext(), "-word"));
}

/* Nobody notices that a token ended: what is refused is asked for anew at once, and holds stay. */
static void what_is_refused_is_asked_for_anew(struct world *w)
{
    lk_client_t *client = NULL;
    begin(w, "first-word");
    assert_lk(0, open_with(&client, url_of(w)));
    lk_mutex_t *kept = world_mutex(w, client, "kept", NULL), *orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(kept));
    eventually(asked() == 2, 5000); /* for callers, and for the watchdog */
    assert_int_equal(0, refused());
    for (int i = 0; i < 5; i++) {
        char stale[32], fresh[32];
        int64_t left_ms;
        int before = refused();
        snprintf(stale, sizeof stale, "last-word-%d", i);
        snprintf(fresh, sizeof fresh, "next-word-%d", i);
        set_vault(stale, fresh, 0);
        change(w, fresh);
        cut(w);
        assert_lk(0, lk_mutex_lockfor(orders, 5000));
        assert_lk(0, lk_mutex_unlock(orders));
        assert_lk(0, lk_mutex_remaining(kept, &left_ms));
        assert_true(refused() > before);
    }
    assert_lk(0, lk_mutex_unlock(kept));
    world_close(w, kept);
    close_all(w, client, orders);
}

/* With nothing to be had, or nothing that the server takes, calls are told so until there is. */
static void calls_are_told_why(struct world *w)
{
    lk_client_t *client = NULL;
    begin(w, "first-word");
    assert_lk(0, open_with(&client, url_of(w)));
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    set_vault("", "first-word", ETIMEDOUT);
    cut(w);
    eventually(lk_mutex_trylock(orders) == EACCES, 5000);
    assert_non_null(strstr(lk_errortext(), "the program gave no credentials: Connection timed out"));
    set_vault("", "wrong-word", 0);
    eventually(lk_mutex_trylock(orders) == EACCES && strstr(lk_errortext(), "WRONGPASS") != NULL, 5000);
    set_vault("", "first-word", 0);
    eventually(lk_mutex_trylock(orders) == 0, 5000);
    assert_lk(0, lk_mutex_unlock(orders));
    close_all(w, client, orders);
}

static void openings_are_told_why(struct world *w)
{
    lk_client_t *client = NULL;
    char path[96];
    lk_clientattr_t attr = { .size = sizeof attr, .provider = provide, .arg = &vault };
    begin(w, "first-word");
    set_vault("", "first-word", ENOENT);
    assert_lk(EACCES, open_with(&client, url_of(w)));
    assert_non_null(strstr(lk_errortext(), "the program gave no credentials: No such file"));
    set_vault("", "wrong-word", 0);
    assert_lk(EACCES, open_with(&client, url_of(w)));
    assert_true(refused() >= 1);
    set_vault("", "", 0);
    assert_lk(EACCES, open_with(&client, url_of(w)));
    assert_non_null(strstr(lk_errortext(), "a user without a password"));
    vault.endless = true;
    assert_lk(EACCES, open_with(&client, url_of(w)));
    assert_non_null(strstr(lk_errortext(), "a text that does not end"));
    vault.endless = false;
    assert_lk(EINVAL, open_with(&client, "redis://app:pw@127.0.0.1:1"));
    assert_non_null(strstr(lk_errortext(), "there is a password already"));
    attr.url = "redis://127.0.0.1";
    attr.json_path = "/nowhere";
    assert_lk(EINVAL, lk_client_openwith(&client, &attr));
    attr.url = NULL;
    assert_lk(ENOENT, lk_client_openwith(&client, &attr));
    attr.size = 0;
    assert_lk(EINVAL, lk_client_openwith(&client, &attr));
    assert_lk(EINVAL, lk_client_openwith(NULL, NULL));
    assert_null(client);

    set_vault("", "first-word", 0);
    snprintf(path, sizeof path, "%s/client.json", w->dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "{ \"path\": \"%s\" }", w->socket);
    fclose(file);
    attr.size = sizeof attr;
    attr.json_path = path;
    assert_lk(0, lk_client_openwith(&client, &attr));
    close_all(w, client, NULL);
}

/* Nobody is named: the server's default user, as without a function. */
static void it_may_name_nobody(struct world *w)
{
    lk_client_t *client = NULL;
    begin(w, "first-word");
    vault.user[0] = '\0';
    set_vault("", "", 0);
    assert_lk(0, open_with(&client, url_of(w)));
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    close_all(w, client, orders);
}

/* A close waits for a function that is running, and none runs afterwards. */
static void a_close_waits_for_it(struct world *w)
{
    lk_client_t *client = NULL;
    begin(w, "first-word");
    assert_lk(0, open_with(&client, url_of(w)));
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    world_close(w, orders);
    eventually(library_clients(world_str(w, "CLIENT LIST")) == 2, 5000); /* the watchdog's is missed at once */
    pthread_mutex_lock(&vault.mu);
    vault.pause_ms = 1500;
    pthread_mutex_unlock(&vault.mu);
    cut(w);
    eventually(is_busy(), 5000);
    assert_lk(0, lk_client_close(client));
    assert_false(is_busy());
    int before = asked();
    sleep_ms(100);
    assert_int_equal(before, asked());
}

int main(void)
{
    if (log_keep(LK_LOG_DEBUG) != 0)
        return 1;
    return world_run(what_is_refused_is_asked_for_anew, calls_are_told_why, openings_are_told_why, it_may_name_nobody,
                     a_close_waits_for_it);
}
