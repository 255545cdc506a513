/* SPDX-License-Identifier: MIT */
/*
 * grant.c - the wait is on a thread, as signals end none of the library's waits; closing the client does
 */
#include "grant.h"
#include "words.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

struct wait {
    struct guard *guard;
    lk_how_t how;
    int done; /* eventfd: the thread is through */
    int rc;
    char words[512]; /* of the failure: they are the thread's */
};

static void *wait_for_it(void *arg)
{
    struct wait *w = arg;
    w->rc = guard_take(w->guard, &w->how);
    strncpy(w->words, lk_errortext(), sizeof w->words - 1);
    eventfd_write(w->done, 1);
    return NULL;
}

/* The signal that came first, or 0: the thread is through. */
static int await_either(int done, int signals)
{
    struct signalfd_siginfo info;
    struct pollfd both[] = { { done, POLLIN, 0 }, { signals, POLLIN, 0 } };
    for (;;) {
        if (poll(both, 2, -1) < 0)
            continue;
        if (both[0].revents != 0)
            return 0;
        if (both[1].revents != 0 && read(signals, &info, sizeof info) == sizeof info)
            return (int)info.ssi_signo;
    }
}

static int explain(const struct settings *s, const struct wait *w)
{
    bool conflict = exit_code_of(w->rc) == EXIT_CONFLICT;
    if (!conflict || !s->quiet)
        complain("%s: %s", s->command->name, w->words[0] != 0 ? w->words : lk_strerror(w->rc));
    return conflict ? s->conflict_code : exit_code_of(w->rc);
}

int await_grant(struct guard *g, const struct settings *s, int signals, int *code)
{
    pthread_t thread;
    struct wait w = { .guard = g, .how = LK_HOW_INIT, .done = eventfd(0, EFD_CLOEXEC) };
    w.how.timeout_ms = s->wait_ms;
    w.how.lease_ms = s->lease_ms;
    w.how.owner = g->owner;
    if (w.done < 0 || pthread_create(&thread, NULL, wait_for_it, &w) != 0) {
        complain("%s: no thread: %s", s->command->name, strerror(errno));
        guard_close(g);
        *code = EXIT_INTERNAL;
        return -1;
    }
    int signal = await_either(w.done, signals);
    if (signal != 0)
        guard_cancel(g);
    pthread_join(thread, NULL);
    close(w.done);
    if (signal == 0 && w.rc == 0)
        return 0;
    *code = signal != 0 ? EXIT_BY_SIGNAL + signal : explain(s, &w);
    guard_close(g);
    return -1;
}

int hear_signals(const int *signals, unsigned count)
{
    sigset_t set;
    sigemptyset(&set);
    for (unsigned i = 0; i < count; i++)
        if (!is_ignored(signals[i]))
            sigaddset(&set, signals[i]);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        complain("no descriptor for signals: %s", strerror(errno));
    return fd;
}
