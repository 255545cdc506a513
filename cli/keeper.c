/* SPDX-License-Identifier: MIT */
#include "keeper.h"
#include "words.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SAFETY_MS = 100, /* SIGKILL comes so long before the end, or a quarter of the window where that is shorter */
    LOOK_MS = 50,    /* an orphan looks so often whether the group is empty */
    LONG_MS = 60000
};

/* Shared with the keeper; reached with atomic builtins. Moments are those of boot_ms(). */
struct kept {
    int64_t group;      /* 0: none yet */
    int64_t valid_until;
    int64_t window;     /* the first signal comes so long before that */
    int64_t max_until;  /* 0: no limit */
    int64_t asked;      /* 1: end the group now */
    int64_t reason;
    int64_t kill_ms;    /* --kill-after */
};

/* What the keeper has by itself. */
struct watch {
    struct kept *kept;
    const struct settings *settings;
    int wake;
    bool orphan;
    int64_t ending_since; /* 0: not yet */
};

static int64_t get(const int64_t *field)
{
    return __atomic_load_n(field, __ATOMIC_ACQUIRE);
}

static void set(int64_t *field, int64_t value)
{
    __atomic_store_n(field, value, __ATOMIC_RELEASE);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static enum reason reason_now(const struct watch *w, int64_t now)
{
    bool keeps_lease = w->settings->on_lost != ON_LOST_WARN;
    if (w->orphan)
        return REASON_ORPHAN;
    if (keeps_lease && now >= get(&w->kept->valid_until) - get(&w->kept->window))
        return REASON_LOST;
    if (get(&w->kept->max_until) != 0 && now >= get(&w->kept->max_until))
        return REASON_TIME;
    return get(&w->kept->asked) ? REASON_LEFT : REASON_NONE;
}

static void run_line(const char *line, pid_t group)
{
    char text[24];
    if (fork() != 0)
        return;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    snprintf(text, sizeof text, "%d", (int)group);
    setenv("LATCHKEY_GROUP", text, 1);
    execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    _exit(EXIT_NOT_FOUND);
}

/* A stopped group hears the signal only when it goes on. */
static void begin_to_end(struct watch *w, pid_t group, enum reason reason, int64_t now)
{
    w->ending_since = now;
    set(&w->kept->reason, reason);
    if (reason == REASON_LOST && w->settings->on_lost == ON_LOST_EXEC) {
        run_line(w->settings->on_lost_command, group);
        return;
    }
    kill(-group, w->settings->signal);
    kill(-group, SIGCONT);
}

/* Not after the end of the hold, which may have come nearer since the first signal. */
static int64_t kill_at(const struct watch *w)
{
    int64_t at = w->ending_since + w->settings->kill_ms;
    if (w->settings->on_lost == ON_LOST_WARN)
        return at;
    return least(at, get(&w->kept->valid_until) - least(SAFETY_MS, get(&w->kept->window) / 4));
}

static int64_t next_look(const struct watch *w, int64_t now)
{
    if (w->orphan)
        return now + LOOK_MS;
    if (w->ending_since != 0)
        return least(kill_at(w), now + LOOK_MS);
    int64_t at = now + LONG_MS;
    if (w->settings->on_lost != ON_LOST_WARN)
        at = least(at, get(&w->kept->valid_until) - get(&w->kept->window));
    return get(&w->kept->max_until) != 0 ? least(at, get(&w->kept->max_until)) : at;
}

/* Sleep until there may be something to do; true: latchkey is gone. */
static bool sleep_until(int wake, int64_t at)
{
    char bytes[64];
    struct pollfd one = { wake, POLLIN, 0 };
    int64_t ms = at - boot_ms();
    if (poll(&one, 1, ms < 0 ? 0 : (int)least(ms, LONG_MS)) <= 0)
        return false;
    return read(wake, bytes, sizeof bytes) == 0;
}

/* One look; false: there is nothing more to do. */
static bool look(struct watch *w)
{
    pid_t group = (pid_t)get(&w->kept->group);
    int64_t now = boot_ms();
    if (group == 0)
        return !w->orphan;
    if (w->orphan && kill(-group, 0) != 0 && errno == ESRCH)
        return false;
    enum reason reason = w->ending_since != 0 ? REASON_NONE : reason_now(w, now);
    if (reason != REASON_NONE)
        begin_to_end(w, group, reason, now);
    if (w->ending_since == 0 || boot_ms() < kill_at(w))
        return true;
    kill(-group, SIGKILL);
    return false;
}

/* Nothing of the terminal, of pipes or of a folder is kept in use; what --on-lost runs may speak. */
static void let_go(bool speaks)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, 0);
    if (!speaks) {
        dup2(null, 1);
        dup2(null, 2);
        (void)!chdir("/");
    }
}

static _Noreturn void keep(struct watch *w)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setpgid(0, 0);
    prctl(PR_SET_NAME, "latchkey-keeper");
    let_go(w->settings->on_lost == ON_LOST_EXEC);
    int wake = fcntl(w->wake, F_DUPFD_CLOEXEC, 3);
    dup2(wake, 3);
    fcntl(3, F_SETFD, FD_CLOEXEC);
    close_range(4, ~0u, 0);
    w->wake = 3;
    while (look(w)) {
        pid_t group = (pid_t)get(&w->kept->group);
        int64_t at = group == 0 ? boot_ms() + LONG_MS : next_look(w, boot_ms());
        /* A pipe whose other end is closed would end each sleep at once. */
        if (w->orphan)
            poll(NULL, 0, LOOK_MS);
        else
            w->orphan = sleep_until(w->wake, at);
    }
    _exit(0);
}

int keeper_start(struct keeper *k, const struct settings *s)
{
    int pipe[2];
    void *memory = mmap(NULL, sizeof(struct kept), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || pipe2(pipe, O_CLOEXEC) != 0 || (k->pid = fork()) < 0) {
        complain("%s: no process: %s", s->command->name, strerror(errno));
        return EXIT_INTERNAL;
    }
    k->shared = memory;
    if (k->pid == 0) {
        struct watch watch = { .kept = memory, .settings = s, .wake = pipe[0] };
        close(pipe[1]);
        keep(&watch);
    }
    close(pipe[0]);
    k->wake = pipe[1];
    set(&k->shared->kill_ms, s->kill_ms);
    return 0;
}

static void wake(struct keeper *k)
{
    (void)!write(k->wake, "", 1);
}

void keeper_guard(struct keeper *k, pid_t group)
{
    set(&k->shared->group, group);
    wake(k);
}

void keeper_limit(struct keeper *k, int64_t ms)
{
    set(&k->shared->max_until, boot_ms() + ms);
    wake(k); /* it may sleep by the lease already */
}

/* Of what a renewal brought, a third at most is for ending, and some of it even without -k. */
static int64_t window_of(int64_t ms, int64_t kill_ms)
{
    int64_t window = least(ms / 3, kill_ms), safety = least(SAFETY_MS, ms / 4);
    return window > safety ? window : safety;
}

/* The moment first: the window that belongs to a later moment may be longer than what the earlier one had left. */
void keeper_valid_for(struct keeper *k, int64_t since, int64_t ms)
{
    int64_t until = ms > 0 ? since + ms : 0, had = get(&k->shared->valid_until);
    set(&k->shared->valid_until, until);
    if (until > had + LOOK_MS)
        set(&k->shared->window, window_of(ms, get(&k->shared->kill_ms)));
    if (until < had - LOOK_MS)
        wake(k);
}

void keeper_end_group(struct keeper *k)
{
    set(&k->shared->asked, 1);
    wake(k);
}

enum reason keeper_reason(const struct keeper *k)
{
    return (enum reason)get(&k->shared->reason);
}

void keeper_stop(struct keeper *k)
{
    if (k->pid == 0)
        return;
    kill(k->pid, SIGKILL);
    waitpid(k->pid, NULL, 0);
    close(k->wake);
    k->pid = 0;
}
