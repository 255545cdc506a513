/* SPDX-License-Identifier: MIT */
/*
 * unloaded_test.c - F63: a plugin that uses the library is unloaded and leaves its threads behind
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

#include <dlfcn.h>

struct library {
    void *handle;
    int (*open)(lk_client_t **client, const char *url);
    int (*init)(lk_mutex_t *m, lk_client_t *client, const char *name, const lk_mutexattr_t *attr);
    int (*lock)(lk_mutex_t *m);
};

static void *function(const struct library *library, const char *name)
{
    void *found = dlsym(library->handle, name);
    assert_that(found != NULL);
    return found;
}

static void load(struct library *library)
{
    library->handle = dlopen(LK_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library->handle == NULL)
        assert_failed(__FILE__, __LINE__, "%s", dlerror());
    *(void **)&library->open = function(library, "lk_client_open");
    *(void **)&library->init = function(library, "lk_mutex_init");
    *(void **)&library->lock = function(library, "lk_mutex_lock");
}

/* In a process of its own, which ends as it likes: nothing is closed. */
static int unload_while_holding(struct world *w, void *arg)
{
    struct library library;
    static lk_mutex_t orders; /* it has to stay: the library still knows it */
    lk_client_t *client;
    (void)arg;
    for (int i = 0; i < 3; i++) {
        load(&library);
        assert_lk(0, library.open(&client, world_url(w, "lease=2s&connect_timeout=2s")));
        orders = (lk_mutex_t){ 0 };
        assert_lk(0, library.init(&orders, client, i == 0 ? "orders" : i == 1 ? "bills" : "letters", NULL));
        assert_lk(0, library.lock(&orders));
        assert_that(dlclose(library.handle) == 0);
        sleep_ms(50);
    }
    world_ready(w);
    sleep_ms(2500); /* its threads run on, and renew */
    assert_that(world_exists(w, "orders") && world_exists(w, "letters"));
    return 0;
}

static void an_unloaded_library_does_no_harm(struct world *w)
{
    pid_t child = world_fork(w, unload_while_holding, NULL);
    assert_int_equal(0, world_wait(w, child));
    eventually(!world_exists(w, "orders") && !world_exists(w, "letters"), 5000);
}

int main(void)
{
    return world_run(an_unloaded_library_does_no_harm);
}
