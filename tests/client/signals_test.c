/* SPDX-License-Identifier: MIT */
/*
 * signals_test.c - signals neither end calls nor kill the program
 *
 * labels: threads memory
 */
#include "process.h"
#include "world.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static lk_client_t *client;
static lk_mutex_t *orders;

static void open_orders(struct world *w)
{
    client = world_client(w, "lease=20s&command_timeout=5s");
    orders = world_mutex(w, client, "orders", NULL);
}

/* Signals never end a wait, nor shorten or lengthen its limit. */
static void a_storm_of_signals_is_not_noticed(struct world *w)
{
    open_orders(w);
    world_redis(w, "HSET orders somebody:1 1");
    alarm_each_ms(1, 0);
    int64_t began_ms = now_ms();
    int code = lk_mutex_lockfor(orders, 500);
    int64_t took_ms = now_ms() - began_ms;
    alarm_each_ms(0, 0);
    assert_int_equal(ETIMEDOUT, code);
    assert_between(took_ms, 500, 500 + SLACK_MS);
    assert_true(alarms() > 50);
    world_redis(w, "DEL orders");
    alarm_each_ms(1, 0);
    code = 0;
    for (int i = 0; i < 200 && code == 0; i++) {
        code = lk_mutex_lock(orders);
        if (code == 0)
            code = lk_mutex_unlock(orders);
    }
    alarm_each_ms(0, 0);
    assert_int_equal(0, code);
}

/* A peer that closed is a code, not a SIGPIPE; and the program's own disposition is its own. */
static void a_closed_connection_raises_no_sigpipe(struct world *w)
{
    struct sigaction before, after;
    sigaction(SIGPIPE, NULL, &before);
    open_orders(w);
    for (int i = 0; i < 20; i++) {
        world_killcommands(w);
        assert_lk(0, lk_mutex_lock(orders));
        world_killcommands(w);
        assert_lk(0, lk_mutex_unlock(orders));
    }
    sigaction(SIGPIPE, NULL, &after);
    assert_true(before.sa_handler == SIG_DFL && after.sa_handler == SIG_DFL);
}

/* The library's threads take no signal that was meant for the program's. */
static void the_librarys_threads_block_all_signals(struct world *w)
{
    DIR *dir;
    int seen = 0;
    open_orders(w);
    assert_lk(0, lk_mutex_lock(orders)); /* so that there are threads */
    dir = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[64], line[256];
        unsigned long long blocked = 0;
        if (entry->d_name[0] == '.' || strtol(entry->d_name, NULL, 10) == getpid())
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%.20s/status", entry->d_name);
        FILE *status = fopen(path, "r");
        while (status != NULL && fgets(line, sizeof line, status) != NULL)
            if (strncmp(line, "SigBlk:", 7) == 0)
                blocked = strtoull(line + 7, NULL, 16);
        fclose(status);
        if (blocked == 0 && SANITIZED)
            continue; /* a thread of the sanitizer */
        for (int number = 1; number < 32; number++)
            if (number != SIGKILL && number != SIGSTOP && (blocked & (1ULL << (number - 1))) == 0)
                assert_failed(__FILE__, __LINE__, "a thread of the library does not block signal %d", number);
        seen++;
    }
    closedir(dir);
    assert_true(seen >= 2);
    assert_lk(0, lk_mutex_unlock(orders));
}

int main(void)
{
    return world_run(a_storm_of_signals_is_not_noticed, a_closed_connection_raises_no_sigpipe,
                     the_librarys_threads_block_all_signals);
}
