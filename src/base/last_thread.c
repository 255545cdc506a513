/* SPDX-License-Identifier: MIT */
/*
 * last_thread.c - a process ends with its last thread, and threads of the library do not count
 *
 * POSIX ends a process as if by exit(0) when its last thread ended. A program whose main() calls pthread_exit()
 * relies on it, but the library's threads live on, and no signal ends them. So users, the threads of the program that
 * called the library, are counted. While there is one nothing happens here. When the last of them ended, a thread
 * begins to look which other threads the process has: if main() is over and all the rest is the library's, it has
 * the clients closed and calls exit(0). It goes away when the program has a user again.
 *
 * Guards: mu the thread that looks. A plugin that is unloaded takes its code with it, so it is told, and joined.
 */
#include "base/base.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAUSE_MIN_MS = 50, PAUSE_MAX_MS = 1000 };

static _Atomic(void (*)(void)) onend_handler;

static struct lk__mu mu = LK__MU_INITIALIZER(LK__MU_LAST_THREAD);
static pthread_cond_t told; /* with mu: unloaded */
static bool looking;        /* under mu: the looking thread runs */
static bool ending;         /* under mu: that thread ends the process */
static bool unjoined;       /* under mu: that thread ended, and was not joined */
static bool unloaded;       /* under mu: nobody looks any more */
static pthread_t looker;    /* under mu */

static void pause_ms(int ms)
{
    int64_t until_us = lk__now_us() + ms * 1000;
    lk__mu_lock(&mu);
    while (!unloaded && lk__cond_wait(&told, &mu, until_us) != ETIMEDOUT)
        ;
    lk__mu_unlock(&mu);
}

/* A main thread that ended stays in /proc as a zombie as long as others run. */
static bool is_main_over(void)
{
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    size_t length = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[length] = '\0';
    const char *name_end = strrchr(line, ')');
    return name_end != NULL && name_end[1] == ' ' && (name_end[2] == 'Z' || name_end[2] == 'X');
}

static int count_threads(void)
{
    DIR *dir = opendir("/proc/self/task");
    struct dirent *entry;
    int count = 0;
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        count += entry->d_name[0] != '.';
    if (dir != NULL)
        closedir(dir);
    return count;
}

static bool is_ours_alone(void)
{
    return lk__thread_users() == 0 && is_main_over() && count_threads() == 1 + lk__thread_helpers();
}

/* Threads come and go while they are counted: look twice. */
static bool is_surely_ours_alone(void)
{
    if (!is_ours_alone())
        return false;
    pause_ms(PAUSE_MIN_MS);
    return is_ours_alone();
}

/* False: the library is being unloaded, and waits for this thread. */
static bool set_ending(bool value)
{
    lk__mu_lock(&mu);
    ending = value && !unloaded;
    bool is_so = ending == value;
    lk__mu_unlock(&mu);
    return is_so;
}

static void end_process(void)
{
    void (*end)(void) = atomic_load(&onend_handler);
    sigset_t none;
    if (!set_ending(true))
        return;
    if (end != NULL)
        end();
    if (!is_ours_alone()) { /* a listener was called meanwhile and made a thread */
        set_ending(false);
        return;
    }
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL); /* what came meanwhile ends the process its own way */
    exit(0);
}

/* Looking ends when there is a user again, or no thread of the library but this one. */
static bool is_to_look(void)
{
    lk__mu_lock(&mu);
    looking = !unloaded && lk__thread_users() == 0 && lk__thread_helpers() > 1;
    bool is_so = looking;
    lk__mu_unlock(&mu);
    return is_so;
}

static void *run(void *arg)
{
    (void)arg;
    for (int ms = PAUSE_MIN_MS; is_to_look(); ms = ms < PAUSE_MAX_MS / 2 ? 2 * ms : PAUSE_MAX_MS) {
        pause_ms(ms);
        if (is_surely_ours_alone())
            end_process();
    }
    return NULL;
}

/* Without a thread to be had, the next user that ends tries again. */
static void begin_to_look(void)
{
    assert(lk__mu_held(&mu));
    if (unjoined)
        pthread_join(looker, NULL); /* at its last instruction */
    lk__cond_init(&told);
    looking = unjoined = lk__thread_spawn(&looker, "lk-last", run, NULL) == 0;
}

/* The last user ended. */
static void look(void)
{
    lk__mu_lock(&mu);
    if (!looking && !unloaded)
        begin_to_look();
    lk__mu_unlock(&mu);
}

/* At the end of a process, too, but for one that the thread itself ends. */
__attribute__((destructor)) static void unload(void)
{
    lk__mu_lock(&mu);
    unloaded = true;
    bool join = unjoined && !ending;
    if (join)
        pthread_cond_signal(&told);
    lk__mu_unlock(&mu);
    if (join)
        pthread_join(looker, NULL);
}

/* In the child of a fork there is no other thread, which ThreadSanitizer does not see: it knows those of the parent. */
__attribute__((no_sanitize("thread"))) static void forget(void)
{
    mu = (struct lk__mu)LK__MU_INITIALIZER(LK__MU_LAST_THREAD); /* the parent's thread may have it */
    looking = ending = unjoined = false;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget);
}

void lk__process_onend(void (*end)(void))
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    atomic_store(&onend_handler, end);
    lk__thread_onlast(look);
}

/* --- a thread of the library, or words for why there is none ------------------------------------------------------ */

int lk__thread_start(pthread_t *thread, const char *name, void *(*begin)(void *), void *arg)
{
    int rc = lk__thread_spawn(thread, name, begin, arg);
    return rc == 0 ? 0 : lk__fail(ENOMEM, "no thread could be started for %s: %s", name, strerrordesc_np(rc));
}
