/* SPDX-License-Identifier: MIT */
/*
 * open_test.c - what a client is opened with reaches the server, at the first connection and at each later one
 *
 * labels: memory
 */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Take and give something, so that the connection is used; tells in which database it lay meanwhile. */
static int database_of(struct world *w, lk_client_t *client)
{
    lk_mutex_t m;
    int found = -1;
    assert_lk(0, lk_mutex_init(&m, client, "thing", NULL));
    assert_lk(0, lk_mutex_lock(&m));
    for (int db = 0; db < 16 && found < 0; db++) {
        world_redis(w, "SELECT %d", db);
        if (world_exists(w, "thing"))
            found = db;
    }
    assert_lk(0, lk_mutex_unlock(&m));
    world_redis(w, "FLUSHDB");
    world_redis(w, "SELECT 0");
    assert_lk(0, lk_mutex_destroy(&m));
    return found;
}

static const char *write_file(struct world *w, const char *text)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/latchkey.json", w->dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    return path;
}

static void a_file_does_what_a_url_does(struct world *w)
{
    lk_client_t *client = NULL;
    char text[256];
    snprintf(text, sizeof text, "{\"path\": \"%s\", \"db\": 3, \"lease\": \"20s\", \"client_name\": \"billing\"}",
             w->socket);
    assert_lk(0, lk_client_open_file(&client, write_file(w, text)));
    assert_non_null(strstr(world_str(w, "CLIENT LIST"), "name=billing"));
    assert_int_equal(3, database_of(w, client));
    assert_lk(0, lk_client_close(client));

    client = NULL;
    assert_lk(ENOENT, lk_client_open_file(&client, "/nowhere/latchkey.json"));
    assert_lk(EINVAL, lk_client_open_file(&client, write_file(w, "{\"leese\": \"1s\"}")));
    assert_non_null(strstr(lk_errortext(), "leese"));
    assert_lk(EINVAL, lk_client_open_file(&client, NULL));
    assert_lk(EINVAL, lk_client_open_file(NULL, write_file(w, "{}")));
    assert_null(client);
}

/* A reconnect begins in database 0: without a new SELECT, holds would be kept in two places. */
static void a_database_is_chosen_at_each_connect(struct world *w)
{
    lk_client_t *client = world_open(w, "db=5&lease=20s&connect_timeout=10s");
    lk_mutex_t kept;
    int64_t left_ms;
    assert_lk(0, lk_mutex_init(&kept, client, "kept", NULL));
    assert_lk(0, lk_mutex_lock(&kept));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(5, database_of(w, client));
        world_redis(w, "SELECT 5");
        world_redis(w, "SET redisson_lock_token:{kept} 1"); /* whatever database_of() flushed */
        world_redis(w, "SELECT 0");
        world_killcommands(w);
    }
    assert_lk(ESTALE, lk_mutex_check(&kept)); /* that was flushed, too; asked for where it was */
    assert_lk(ESTALE, lk_mutex_remaining(&kept, &left_ms));
    assert_lk(ESTALE, lk_mutex_unlock(&kept));
    assert_lk(0, lk_mutex_destroy(&kept));
    assert_lk(0, lk_client_close(client));
    world_redis(w, "SELECT 5");
    world_redis(w, "FLUSHDB");
    world_redis(w, "SELECT 0");

    assert_lk(EINVAL, lk_client_open(&client, world_url(w, "db=99")));
    assert_non_null(strstr(lk_errortext(), "database"));
}

static void users_and_passwords(struct world *w)
{
    lk_client_t *client;
    char url[256];
    world_redis(w, "ACL SETUSER app on >opensesame ~* &* +@all");
    snprintf(url, sizeof url, "unix://app:opensesame@%s?lease=20s&connect_timeout=10s", w->socket);
    assert_lk(0, lk_client_open(&client, url));
    assert_non_null(strstr(world_str(w, "CLIENT LIST"), "user=app"));
    assert_int_equal(0, database_of(w, client));
    world_redis(w, "CLIENT KILL USER app");
    assert_int_equal(0, database_of(w, client)); /* the next connection says who it is, too */
    assert_lk(0, lk_client_close(client));

    snprintf(url, sizeof url, "unix://app:somethingelse@%s", w->socket);
    assert_lk(EACCES, lk_client_open(&client, url));
    assert_null(strstr(lk_errortext(), "somethingelse"));
    snprintf(url, sizeof url, "unix://:opensesame@%s", w->socket);
    assert_lk(EACCES, lk_client_open(&client, url)); /* the default user has none */
}

/* Without a URL: $LATCHKEY_URL, then $REDIS_URL, then the usual port of this machine. */
static void the_environment_says_where(struct world *w)
{
    lk_client_t *client;
    setenv("REDIS_URL", world_url(w, "db=2&lease=20s&connect_timeout=10s"), 1);
    assert_lk(0, lk_client_open(&client, NULL));
    assert_int_equal(2, database_of(w, client));
    assert_lk(0, lk_client_close(client));
    setenv("LATCHKEY_URL", world_url(w, "db=4&lease=20s&connect_timeout=10s"), 1);
    assert_lk(0, lk_client_open(&client, NULL));
    assert_int_equal(4, database_of(w, client));
    assert_lk(0, lk_client_close(client));
    setenv("LATCHKEY_URL", "redis://127.0.0.1:1", 1);
    assert_lk(ENOTCONN, lk_client_open(&client, NULL));
    assert_non_null(strstr(lk_errortext(), "127.0.0.1"));
    unsetenv("LATCHKEY_URL");
    setenv("REDIS_URL", "", 1); /* none, as where a template had nothing to fill in */
    if (lk_client_open(&client, NULL) == 0)
        assert_lk(0, lk_client_close(client));
    else
        assert_non_null(strstr(lk_errortext(), "redis://127.0.0.1:6379"));
    unsetenv("REDIS_URL");
}

int main(void)
{
    return world_run(a_file_does_what_a_url_does, a_database_is_chosen_at_each_connect, users_and_passwords,
                     the_environment_says_where);
}
