/* SPDX-License-Identifier: MIT */
/*
 * plugin_test.c - a plugin that has liblatchkey.a in it is unloaded, and the threads that used it live on
 *
 * What the library registered with the system, a destructor of thread-specific data and a fork handler, must not be
 * called when its code is gone, and what the library keeps for the thread that unloads it goes with it.
 * (liblatchkey.so stays in memory once it is loaded.)
 *
 * simulated: yes
 */
#include "world.h"

#include <dlfcn.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

struct plugin {
    const char *url;
    int (*use)(const char *url);
    int (*open)(const char *url);
    int (*close)(void);
    struct gate used, unloaded;
};

static int use_and_live_on(void *arg)
{
    struct plugin *plugin = arg;
    int rc = plugin->use(plugin->url);
    gate_open(&plugin->used);
    gate_pass(&plugin->unloaded);
    return rc;
}

static int use_it_once(struct world *w)
{
    struct plugin plugin = { .url = world_url(w, "connect_timeout=10s") };
    struct worker user;
    int status = -1;
    void *handle = dlopen(LK_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    assert_that(handle != NULL);
    *(void **)&plugin.use = dlsym(handle, "plugin_use");
    assert_that(plugin.use != NULL);
    worker_start(&user, use_and_live_on, &plugin);
    gate_pass(&plugin.used);
    assert_lk(0, plugin.use(plugin.url)); /* in this thread, too, which lives on as well */
    assert_that(dlclose(handle) == 0);
    assert_that(dlopen(LK_PLUGIN, RTLD_NOW | RTLD_NOLOAD) == NULL); /* or nothing is shown */
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    assert_that(waitpid(child, &status, 0) == child && status == 0);
    gate_open(&plugin.unloaded);
    return worker_join(&user);
}

static int only_open(void *arg)
{
    struct plugin *plugin = arg;
    return plugin->open(plugin->url);
}

/* The only thread that used it ended, so a thread of the library looks whether the process is at its end. */
static int unload_after_the_last_user(struct world *w, void *arg)
{
    struct plugin plugin = { .url = world_url(w, "connect_timeout=10s") };
    struct worker opener;
    (void)arg;
    void *handle = dlopen(LK_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    assert_that(handle != NULL);
    *(void **)&plugin.open = dlsym(handle, "plugin_open");
    *(void **)&plugin.close = dlsym(handle, "plugin_close");
    worker_start(&opener, only_open, &plugin);
    assert_lk(0, worker_join(&opener));
    sleep_ms(400); /* it sleeps between two looks */
    assert_lk(0, plugin.close());
    assert_that(dlclose(handle) == 0);
    assert_that(dlopen(LK_PLUGIN, RTLD_NOW | RTLD_NOLOAD) == NULL); /* or nothing is shown */
    sleep_ms(1200);
    world_ready(w);
    return 0;
}

static void load_use_and_unload(const char *url)
{
    int (*round)(const char *url);
    void *handle = dlopen(LK_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    assert_that(handle != NULL);
    *(void **)&round = dlsym(handle, "plugin_round");
    assert_that(round != NULL);
    assert_lk(0, round(url));
    assert_that(dlclose(handle) == 0);
    assert_that(dlopen(LK_PLUGIN, RTLD_NOW | RTLD_NOLOAD) == NULL); /* or nothing is shown */
}

/* A server that loads its plugins anew for each job. */
static int load_and_unload_often(struct world *w, void *arg)
{
    enum { ROUNDS = 200, FIRST = 10 };
    const char *url = world_url(w, "connect_timeout=10s");
    size_t before = 0;
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        if (i == FIRST)
            before = mallinfo2().uordblks;
        load_use_and_unload(url);
    }
    print_message("%zu bytes after %d rounds, %zu after %d\n", before, FIRST, mallinfo2().uordblks, ROUNDS);
    /* What was freed stays with a thread for a while, some 20 KB in all; and the last threads may not have ended yet. */
    eventually(SANITIZED || mallinfo2().uordblks < before + (size_t)300 * (ROUNDS - FIRST), 20000);
    world_ready(w);
    return 0;
}

static int load_and_unload(struct world *w, void *arg)
{
    (void)arg;
    assert_lk(0, use_it_once(w));
    assert_lk(0, use_it_once(w));
    world_ready(w);
    return 0;
}

static void threads_outlive_a_plugin(struct world *w)
{
    world_allow(w, "latchkey:*:{orders}");
    assert_int_equal(0, world_wait(w, world_fork(w, load_and_unload, NULL)));
}

static void a_plugin_leaves_no_memory(struct world *w)
{
    world_allow(w, "latchkey:*:{orders}");
    assert_int_equal(0, world_wait(w, world_fork(w, load_and_unload_often, NULL)));
}

static void a_plugin_is_unloaded_after_its_last_user_ended(struct world *w)
{
    assert_int_equal(0, world_wait(w, world_fork(w, unload_after_the_last_user, NULL)));
}

int main(void)
{
    return world_run(threads_outlive_a_plugin, a_plugin_leaves_no_memory,
                     a_plugin_is_unloaded_after_its_last_user_ended);
}
