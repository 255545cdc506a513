/* SPDX-License-Identifier: MIT */
/*
 * handoff.c - how long a contended mutex lies between two holders
 *
 * P processes loop on one fair mutex, holding it for no time. The gap runs from just before unlock is called to
 * just after the next holder's lock returned; its median is given in units of a bare round trip, and with it
 * the commands that each acquire cost the server.
 */
#include "raw.h"

#include <latchkey/latchkey.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ACQUIRES = 3000, PINGS = 2000 };

/* Shared by all processes; all but `started` only touched inside the mutex. */
struct track {
    atomic_int started;
    int64_t released_ns;
    int count;
    int64_t gap_ns[ACQUIRES];
};

static void loop(const char *url, struct track *track)
{
    lk_mutexattr_t fair = LK_MUTEXATTR_INIT;
    lk_client_t *client;
    lk_mutex_t m;
    fair.fair = 1;
    if (lk_client_open(&client, url) != 0 || lk_mutex_init(&m, client, "bench", &fair) != 0)
        fail("open");
    atomic_fetch_add(&track->started, 1);
    for (bool more = true; more;) {
        if (lk_mutex_lock(&m) != 0)
            fail("lock");
        int64_t got_ns = now_ns();
        if (track->released_ns != 0 && track->count < ACQUIRES)
            track->gap_ns[track->count++] = got_ns - track->released_ns;
        more = track->count < ACQUIRES;
        track->released_ns = now_ns();
        if (lk_mutex_unlock(&m) != 0)
            fail("unlock");
    }
    exit(lk_client_close(client) == 0 ? 0 : 1);
}

/* Scripts that the server ran so far. */
static long scripts_run(int raw)
{
    static char info[65536];
    size_t got = 0, whole = sizeof info - 1;
    send(raw, "INFO commandstats\r\n", 19, MSG_NOSIGNAL);
    while (got < whole) {
        ssize_t more = recv(raw, info + got, sizeof info - 1 - got, 0);
        if (more <= 0)
            fail("info");
        got += (size_t)more;
        info[got] = '\0';
        const char *line = strstr(info, "\r\n"); /* "$<length>" */
        if (line != NULL)
            whole = (size_t)(line - info) + 2 + strtoul(info + 1, NULL, 10) + 2;
    }
    const char *at = strstr(info, "cmdstat_evalsha:calls=");
    return at == NULL ? 0 : strtol(at + strlen("cmdstat_evalsha:calls="), NULL, 10);
}

static void measure(const char *path, const char *url, int processes)
{
    static int64_t bare[PINGS];
    int raw = raw_connect(path);
    struct track *track = mmap(NULL, sizeof *track, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < PINGS; i++) {
        int64_t began = now_ns();
        raw_ping(raw);
        bare[i] = now_ns() - began;
    }
    long before = scripts_run(raw);
    fflush(NULL); /* or each child prints it once more */
    int64_t began = now_ns();
    for (int i = 0; i < processes; i++)
        if (fork() == 0)
            loop(url, track);
    int bad = 0, status;
    while (wait(&status) > 0)
        bad += status != 0;
    double seconds = (double)(now_ns() - began) / 1e9, bare_us = median_us(bare, PINGS);
    double gap_us = median_us(track->gap_ns, track->count);
    printf("  %3d processes: gap %6.1f us = %.2f round trips, %6.0f acquires/s, %.2f scripts each%s\n", processes,
           gap_us, gap_us / bare_us, track->count / seconds, (double)(scripts_run(raw) - before) / track->count,
           bad ? "  (a process failed)" : "");
    munmap(track, sizeof *track);
    close(raw);
}

int main(int argc, char **argv)
{
    char url[160];
    if (argc != 2) {
        fprintf(stderr, "usage: %s SOCKET    (scripts/bench starts a server and calls this)\n", argv[0]);
        return 64;
    }
    snprintf(url, sizeof url, "unix://%s", argv[1]);
    printf("one fair mutex, no hold time\n");
    for (int processes = 2; processes <= 32; processes *= 2)
        measure(argv[1], url, processes);
    return 0;
}
