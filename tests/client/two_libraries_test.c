/* SPDX-License-Identifier: MIT */
/*
 * two_libraries_test.c - two libraries of one process use the default client, each with a listener and a log of its own
 *
 * They come and go in all orders, and their code goes with them: what would still call it ends the test.
 *
 * labels: threads memory
 */
#include "world.h"

#include <dlfcn.h>

enum { LIBRARIES = 2 };

struct library {
    void *handle; /* NULL: not loaded */
    int (*begin)(void), (*use)(void), (*heard)(void), (*lines)(void), (*end)(void);
    int (*lose)(int (*drop)(const char *name));
    int losses, failures; /* that it should have heard of since it was loaded */
};

static struct library libraries[LIBRARIES];
static struct world *world;

static int drop(const char *name)
{
    world_redis(world, "DEL %s", name);
    return 0;
}

static void find(const struct library *library, const char *name, void *function)
{
    *(void **)function = dlsym(library->handle, name);
    assert_that(*(void **)function != NULL);
}

static void load(struct library *library, const char *path)
{
    *library = (struct library){ .handle = dlopen(path, RTLD_NOW | RTLD_LOCAL) };
    if (library->handle == NULL)
        assert_failed(__FILE__, __LINE__, "%s", dlerror());
    find(library, "library_begin", &library->begin);
    find(library, "library_use", &library->use);
    find(library, "library_lose", &library->lose);
    find(library, "library_heard", &library->heard);
    find(library, "library_lines", &library->lines);
    find(library, "library_end", &library->end);
    assert_that(library->begin() == 0);
}

static void unload(struct library *library, const char *path)
{
    assert_that(library->end() == 0);
    assert_that(dlclose(library->handle) == 0);
    assert_that(dlopen(path, RTLD_NOW | RTLD_NOLOAD) == NULL); /* or nothing is shown */
    library->handle = NULL;
}

static void note(int losses, int failures)
{
    for (int i = 0; i < LIBRARIES; i++) {
        libraries[i].losses += losses;
        libraries[i].failures += failures;
    }
}

/* Each that is loaded works, and hears of all that happens to both. */
static void use_all(void)
{
    for (int i = 0; i < LIBRARIES; i++) {
        if (libraries[i].handle == NULL)
            continue;
        assert_that(libraries[i].use() == 0);
        assert_that(libraries[i].lose(drop) == 0);
        note(1, 1);
    }
    for (int i = 0; i < LIBRARIES; i++) {
        const struct library *library = &libraries[i];
        eventually(library->handle == NULL || library->heard() == library->losses, 5000);
        eventually(library->handle == NULL || library->lines() == library->failures, 5000);
    }
}

static void go_through(const char *steps)
{
    static const char *const paths[LIBRARIES] = { LK_LIBRARY_A, LK_LIBRARY_B };
    for (; *steps != '\0'; steps++) {
        int which = (*steps | 0x20) - 'a';
        if (*steps < 'a')
            load(&libraries[which], paths[which]);
        else
            unload(&libraries[which], paths[which]);
        use_all();
    }
}

/* In a process of its own, as a log that was added once is never forgotten. A capital loads, the small letter unloads. */
static int come_and_go(struct world *w, void *arg)
{
    static const char *const orders[] = { "ABab", "ABba", "BAab", "BAba", "AaBb", "BbAa", "ABaAbBab" };
    (void)arg;
    world = w;
    use_default(world_url(w, "connect_timeout=10s"));
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        go_through(orders[i]);
    world_ready(w);
    return 0;
}

static void two_libraries_come_and_go(struct world *w)
{
    assert_int_equal(0, world_wait(w, world_fork(w, come_and_go, NULL)));
}

int main(void)
{
    return world_run(two_libraries_come_and_go);
}
