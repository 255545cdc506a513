/* SPDX-License-Identifier: MIT */
/*
 * rotation_test.c - the Sentinels' password is changed under a client that runs, and it finds the new one in its file
 *
 * labels: memory
 * simulated: yes
 * seconds: 10
 */
#include "failover.h"
#include "log.h"
#include "subject.h"

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

static lk_client_t *open_client(struct world *w, struct failover *f)
{
    char text[512], path[96];
    lk_client_t *client = NULL;
    snprintf(text, sizeof text,
             "{ \"master\": \"" FAILOVER_SERVICE "\", \"nodes\": [\"127.0.0.1:%d\", \"127.0.0.1:%d\"],"
             " \"username\": \"app\", \"password\": \"failover-pw\", \"sentinel_username\": \"reader\","
             " \"sentinel_password_file\": \"%s/password\", \"lease\": \"10s\" }",
             failover_port(f, 0), failover_port(f, 1), w->dir);
    write_file(w, "config.json", text);
    snprintf(path, sizeof path, "%s/config.json", w->dir);
    assert_lk(0, lk_client_open_file(&client, path));
    return client;
}

/* Nobody notices, and the client still hears of the next master. */
static void the_file_is_changed_first(struct world *w)
{
    struct failover *f = failover_begin(w, NULL);
    failover_ordersentinels(f, FAILOVER_READER " >first-word");
    write_file(w, "password", "first-word\n");
    lk_client_t *client = open_client(w, f);
    lk_mutex_t *orders = world_mutex(w, client, "orders", NULL);
    assert_lk(0, lk_mutex_lock(orders));
    write_file(w, "password", "second-word\n");
    failover_ordersentinels(f, "ACL SETUSER reader resetpass >second-word");
    failover_ordersentinels(f, "CLIENT KILL USER reader");
    failover_sync(f, 0);
    failover_demand(f);
    int master = failover_await(f, 0, NULL);
    eventually(failover_connections(f, master) >= 2, PATIENT_MS);
    assert_lk(0, lk_mutex_check(orders));
    assert_lk(0, lk_mutex_unlock(orders));
    world_close(w, orders);
    assert_lk(0, close_by_hand(w, client));
    assert_null(strstr(log_kept(), "-word"));
    assert_null(strstr(log_kept(), "WRONGPASS"));
}

int main(void)
{
    if (log_keep(LK_LOG_DEBUG) != 0)
        return 1;
    return world_run(the_file_is_changed_first);
}
