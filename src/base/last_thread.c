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
 * A thread of the library counts itself once it runs and until it returns. The count is never above the number of
 * those that exist, so an unknown thread of the program, or one that is being made, is never taken for one of them.
 */
#include "base/base.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAUSE_MIN_MS = 50, PAUSE_MAX_MS = 1000 };

static atomic_int users, helpers;
static atomic_bool looking;
static _Atomic(void (*)(void)) onend_handler;

void lk__process_onend(void (*end)(void))
{
    atomic_store(&onend_handler, end);
}

static void pause_ms(int ms)
{
    nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL);
}

/* The first thread is there, without life, as long as there are others. */
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
    return atomic_load(&users) == 0 && is_main_over() && count_threads() == 1 + atomic_load(&helpers);
}

/* Threads come and go while they are counted: look twice. */
static bool is_surely_ours_alone(void)
{
    if (!is_ours_alone())
        return false;
    pause_ms(PAUSE_MIN_MS);
    return is_ours_alone();
}

static void end_process(void)
{
    void (*end)(void) = atomic_load(&onend_handler);
    sigset_t none;
    if (end != NULL)
        end();
    if (!is_ours_alone())
        return; /* a listener was called meanwhile and made a thread */
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL); /* what came meanwhile ends the process its own way */
    exit(0);
}

/* Until there is a user again, or no thread of the library but this one. */
static void look(void)
{
    for (int ms = PAUSE_MIN_MS; atomic_load(&users) == 0 && atomic_load(&helpers) > 1;
         ms = ms < PAUSE_MAX_MS / 2 ? 2 * ms : PAUSE_MAX_MS) {
        pause_ms(ms);
        if (is_surely_ours_alone())
            end_process();
    }
}

static void *run(void *arg)
{
    (void)arg;
    do {
        look();
        atomic_store(&looking, false); /* the last user may end now, and have found it true */
    } while (atomic_load(&users) == 0 && atomic_load(&helpers) > 1 && !atomic_exchange(&looking, true));
    return NULL;
}

void lk__user_begins(void)
{
    atomic_fetch_add(&users, 1);
}

void lk__user_ends(void)
{
    pthread_t thread;
    if (atomic_fetch_sub(&users, 1) != 1 || atomic_load(&helpers) == 0 || atomic_exchange(&looking, true))
        return;
    if (lk__thread_start(&thread, "lk-last", run, NULL) == 0)
        pthread_detach(thread);
    else
        atomic_store(&looking, false); /* no memory: the next one that ends tries again */
}

void lk__helper_begins(void)
{
    atomic_fetch_add(&helpers, 1);
}

void lk__helper_ends(void)
{
    atomic_fetch_sub(&helpers, 1);
}

void lk__last_thread_forget(void)
{
    atomic_store(&users, 0);
    atomic_store(&helpers, 0);
    atomic_store(&looking, false);
}
