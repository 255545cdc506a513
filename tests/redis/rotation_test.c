/* SPDX-License-Identifier: MIT */
/*
 * rotation_test.c - a password is changed under clients that run, and they find the new one where the old one was
 *
 * labels: threads memory
 * simulated: yes
 */
#include "log.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

static void write_file(struct world *w, const char *name, const char *text)
{
    char path[96];
    snprintf(path, sizeof path, "%s/%s", w->dir, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void set_password(struct world *w, const char *password)
{
    world_redis(w, "ACL SETUSER app on allkeys allchannels +@all resetpass >%s", password);
}

static void cut(struct world *w)
{
    world_redis(w, "CLIENT KILL USER app");
}

/* A client whose password is in a file. */
static lk_client_t *open_client(struct world *w)
{
    char text[256], path[96];
    lk_client_t *client = NULL;
    set_password(w, "first-word");
    write_file(w, "password", "first-word\n");
    snprintf(text, sizeof text,
             "{ \"path\": \"%s\", \"username\": \"app\", \"password_file\": \"%s/password\", \"lease\": \"20s\","
             " \"retry\": { \"max\": \"50ms\" } }",
             w->socket, w->dir);
    write_file(w, "config.json", text);
    snprintf(path, sizeof path, "%s/config.json", w->dir);
    assert_lk(0, lk_client_open_file(&client, path));
    return client;
}

static void end(struct world *w, lk_client_t *client)
{
    assert_lk(0, close_by_hand(w, client));
    assert_null(strstr(log_kept(), "-word"));
}

/* Nobody notices, but the server. */
static void the_file_is_changed_first(struct world *w)
{
    lk_client_t *client = open_client(w);
    lk_mutex_t *kept = world_mutex(w, client, "kept", NULL), *orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(kept));
    for (int i = 0; i < 5; i++) {
        char password[32];
        int64_t left_ms;
        snprintf(password, sizeof password, "next-word-%d", i);
        write_file(w, "password", password);
        cut(w); /* the old one counts as long as the server takes it */
        assert_lk(0, lock_and_unlock(orders));
        set_password(w, password);
        cut(w);
        assert_lk(0, lock_and_unlock(orders));
        assert_lk(0, lk_mutex_remaining(kept, &left_ms));
    }
    assert_lk(0, lk_mutex_unlock(kept));
    world_close(w, kept);
    world_close(w, orders);
    end(w, client);
}

/* Between the two, calls are told why; a file that is of no use changes nothing. */
static void the_server_is_changed_first(struct world *w)
{
    static const char *const useless[] = { "first-word\n", "", "\n", "another-word" };
    lk_client_t *client = open_client(w);
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    set_password(w, "second-word");
    cut(w);
    eventually(lk_mutex_trylock(orders) == EACCES, 2000);
    for (size_t i = 0; i < sizeof useless / sizeof *useless; i++) {
        write_file(w, "password", useless[i]);
        sleep_ms(100);
        assert_lk(EACCES, lk_mutex_trylock(orders));
        assert_non_null(strstr(lk_errortext(), "WRONGPASS"));
        assert_null(strstr(lk_errortext(), "-word"));
    }
    write_file(w, "password", "second-word\r\n");
    eventually(lk_mutex_trylock(orders) == 0, 2000);
    assert_lk(0, lk_mutex_unlock(orders));
    world_close(w, orders);
    end(w, client);
}

int main(void)
{
    if (log_keep(LK_LOG_DEBUG) != 0)
        return 1;
    return world_run(the_file_is_changed_first, the_server_is_changed_first);
}
