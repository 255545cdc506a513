/* SPDX-License-Identifier: MIT */
/*
 * children.c - children of a test, stopped, killed and waited for: see world.h
 */
#include "coverage.h"
#include "world_parts.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_WITHIN_MS 100000 /* on a busy machine some take a minute */

/* In a child about to exec: die with the test, leave it its terminal. */
void die_with_parent(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(126);
}

void become_child(pid_t parent)
{
    static const int handled[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS };
    die_with_parent(parent);
    for (size_t i = 0; i < sizeof handled / sizeof handled[0]; i++)
        signal(handled[i], SIG_DFL);
    in_child = true;
}

static bool sleeps(const char *thread)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/stat", thread);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return true; /* it has just ended */
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    const char *state = length > 0 ? strrchr(text, ')') : NULL;
    return state == NULL || state[2] == 'S';
}

static bool others_sleep(void)
{
    char me[16];
    bool all = true;
    snprintf(me, sizeof me, "%d", (int)gettid());
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *entry; tasks != NULL && (entry = readdir(tasks)) != NULL;)
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, me) != 0)
            all = all && sleeps(entry->d_name);
    if (tasks != NULL)
        closedir(tasks);
    return all;
}

void threads_rest(void)
{
    int64_t until_ms = now_ms() + 20000;
    for (int looks = 0; looks < 3 && now_ms() < until_ms; sleep_ms(2))
        looks = others_sleep() ? looks + 1 : 0;
}

/*
 * GCC's AddressSanitizer does not look after its own locks at a fork, as the C library does: were another thread
 * just in its malloc() or its pthread_create(), the child would wait for ever in its own first one. So the others
 * are to sleep, at several looks in a row, as they do soon: in a poll() or in wait for a condition.
 */
void world_rest(void)
{
    if (SANITIZED && !THREAD_SANITIZED)
        threads_rest();
}

pid_t world_fork(struct world *w, int (*fn)(struct world *w, void *arg), void *arg)
{
    int index = w->child_count, *ready = &w->arena->ready[index];
    pid_t parent = getpid(), pid;
    assert_that(index < WORLD_CHILDREN_MAX);
    world_rest();
    fflush(NULL);
    pid = fork();
    assert_that(pid >= 0);
    if (pid == 0) {
        become_child(parent);
        w->me = index;
        w->ending_count = 0; /* nor does it end what is its parent's */
        int status = fn(w, arg);
        if (status == 0)
            world_close(w, NULL);
        fflush(NULL);
        _exit(status);
    }
    w->children[w->child_count++] = pid;
    for (int64_t until_ms = now_ms() + CHILD_WITHIN_MS; __atomic_load_n(ready, __ATOMIC_ACQUIRE) == 0; sleep_ms(1)) {
        siginfo_t ended = { 0 };
        if (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == pid &&
            __atomic_load_n(ready, __ATOMIC_ACQUIRE) == 0)
            assert_failed(__FILE__, __LINE__, "a child ended before it was ready");
        assert_that(now_ms() < until_ms);
    }
    return pid;
}

void world_ready(struct world *w)
{
    coverage_save(); /* what is done from here on is lost if it is killed */
    __atomic_store_n(&w->arena->ready[w->me], 1, __ATOMIC_RELEASE);
}

static void forget(struct world *w, pid_t pid)
{
    for (int i = 0; i < w->child_count; i++)
        if (w->children[i] == pid)
            w->children[i] = 0;
}

void world_reap(struct world *w, pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    forget(w, pid);
}

int world_wait(struct world *w, pid_t pid)
{
    int status;
    for (int64_t until_ms = now_ms() + CHILD_WITHIN_MS; waitpid(pid, &status, WNOHANG) != pid; sleep_ms(2))
        if (now_ms() > until_ms) {
            world_reap(w, pid);
            assert_failed(__FILE__, __LINE__, "a child did not end");
        }
    forget(w, pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void world_kill(struct world *w, pid_t pid)
{
    world_reap(w, pid);
}

int64_t world_killholder(struct world *w, pid_t pid, const char *name)
{
    world_stop(pid);
    int64_t left_ms = world_leaseleft(w, name);
    world_kill(w, pid);
    return left_ms;
}

void world_stop(pid_t pid)
{
    siginfo_t stopped;
    kill(pid, SIGSTOP);
    waitid(P_PID, (id_t)pid, &stopped, WSTOPPED | WNOWAIT);
}

void world_cont(pid_t pid)
{
    kill(pid, SIGCONT);
}

void *world_shared(struct world *w, size_t size)
{
    void *memory = w->arena->bytes + w->arena->used;
    w->arena->used += (size + 15) & ~(size_t)15;
    assert_that(w->arena->used <= ARENA_BYTES);
    return memory;
}

void gate_open(struct gate *gate)
{
    __atomic_store_n(&gate->open, 1, __ATOMIC_RELEASE);
}

bool gate_is_open(const struct gate *gate)
{
    return __atomic_load_n(&gate->open, __ATOMIC_ACQUIRE) != 0;
}

void gate_pass(struct gate *gate)
{
    eventually(gate_is_open(gate), 30000);
}

/* --- clocks ----------------------------------------------------------------------------------------------------------- */

static void print_clock(char path[128], const char *dir)
{
    snprintf(path, 128, "%s/clock", dir);
}

int64_t *make_clock(const char *dir)
{
    char path[128];
    print_clock(path, dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_that(fd >= 0 && ftruncate(fd, sizeof(int64_t)) == 0);
    int64_t *offset_us = mmap(NULL, sizeof *offset_us, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_that(offset_us != MAP_FAILED);
    close(fd);
    return offset_us;
}

void free_clock(int64_t *offset_us)
{
    if (offset_us != NULL)
        munmap(offset_us, sizeof *offset_us);
}

void preload_clock(const char *library, const char *dir)
{
    char path[128];
    print_clock(path, dir);
    setenv("SERVER_CLOCK", path, 1);
    setenv("LD_PRELOAD", library, 1);
}

/* --- many processes ----------------------------------------------------------------------------------------------- */

struct crew {
    const struct processes *all;
    struct gate *start;
};

static int visit_often(int thread, void *arg)
{
    const struct processes *all = arg;
    int rc = 0;
    for (int round = 0; round < all->rounds && rc == 0; round++)
        rc = all->visit(thread, round);
    return rc;
}

static int crew_main(struct world *w, void *arg)
{
    const struct crew *crew = arg;
    crew->all->open(w, world_client(w, crew->all->options));
    world_ready(w);
    gate_pass(crew->start);
    return run_threads(crew->all->threads, visit_often, (void *)crew->all);
}

void world_processes(struct world *w, const struct processes *all)
{
    struct crew crew = { all, world_shared(w, sizeof(struct gate)) };
    pid_t pids[WORLD_CHILDREN_MAX];
    for (int i = 0; i < all->processes; i++)
        pids[i] = world_fork(w, crew_main, &crew);
    gate_open(crew.start);
    for (int i = 0; i < all->processes; i++)
        assert_int_equal(0, world_wait(w, pids[i]));
}
