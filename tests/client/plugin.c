/* SPDX-License-Identifier: MIT */
/* plugin.c - what client/plugin loads and unloads: a module with liblatchkey.a in it */
#include <latchkey/latchkey.h>

int plugin_use(const char *url);
int plugin_open(const char *url);
int plugin_close(void);

static lk_client_t *kept;

/* Uses the library, and closes all of it again. */
int plugin_use(const char *url)
{
    lk_client_t *client;
    lk_mutex_t m;
    int rc = lk_client_open(&client, url);
    if (rc != 0)
        return rc;
    rc = lk_mutex_init(&m, client, "orders", NULL);
    if (rc == 0 && (rc = lk_mutex_lock(&m)) == 0)
        rc = lk_mutex_unlock(&m);
    lk_mutex_destroy(&m);
    int closed = lk_client_close(client);
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
