/* SPDX-License-Identifier: MIT */
/*
 * procs.c - processes: how they enter the world and leave it
 *
 * A process is its own machine: it has a clock, and can be stopped or killed without a word. What it sends to
 * another one takes time.
 */
#include "sim.h"
#include "diary.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

void *sim_real(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL)
        sim_fail("libc has no %s()", name);
    return found;
}

pid_t sim_kernelpid(void)
{
    return (pid_t)sim_kernel(SYS_getpid);
}

/* --- to enter ----------------------------------------------------------------------------------------------------- */

static uint32_t find_proc(pid_t pid)
{
    for (uint32_t i = 1; i <= world->proc_count; i++)
        if (world->procs[i].state == LIVES && world->procs[i].pid == pid)
            return i;
    return 0;
}

static void read_name(char name[32])
{
    char path[] = "/proc/self/comm";
    int fd = (int)sim_kernel(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    long length = fd >= 0 ? sim_kernel(SYS_read, fd, name, 31) : 0;
    name[length > 0 ? length - 1 : 0] = 0;
    sim_kernel(SYS_close, fd);
}

static uint32_t new_proc(pid_t pid, pid_t parent)
{
    if (world->proc_count + 1 >= PROCS_MAX)
        sim_fail("more than %d processes", PROCS_MAX);
    uint32_t number = ++world->proc_count;
    struct proc *proc = &world->procs[number];
    proc->state = LIVES;
    proc->pid = pid;
    proc->parent = find_proc(parent);
    read_name(proc->name);
    return number;
}

static void tell_attached(struct proc *proc)
{
    __atomic_store_n(&proc->attached, 1, __ATOMIC_RELEASE);
}

/* A thread of a new process, which waits for its first turn. */
static void enter(uint32_t proc)
{
    uint32_t number = sim_newthread(proc);
    sim_me = number;
    sim_self()->tid = (pid_t)sim_kernel(SYS_gettid);
    sim_self()->pthread = (uint64_t)pthread_self();
    sim_watchend();
    sim_ready(number);
    tell_attached(&world->procs[proc]);
    sim_park();
}

/* It had the turn as it called exec(), and has it now. Descriptors that the kernel closed are closed here, too. */
static void go_on_after_exec(uint32_t proc)
{
    uint32_t mine = world->current;
    for (uint32_t i = 1; i <= world->thread_count; i++)
        if (world->threads[i].proc == proc && i != mine && world->threads[i].state != FREE) {
            if (world->threads[i].state != ENDED)
                sim_endthread(i);
            world->threads[i].state = FREE;
        }
    sim_me = mine;
    sim_self()->pthread = (uint64_t)pthread_self();
    sim_watchend();
    read_name(world->procs[proc].name);
    for (int fd = 0; fd < FDS_MAX; fd++)
        if (world->procs[proc].fds[fd] != 0 && sim_kernel(SYS_fcntl, fd, F_GETFD) < 0) {
            uint32_t file = world->procs[proc].fds[fd];
            world->procs[proc].fds[fd] = 0;
            sim_unref(file);
        }
}

/* The allocator's own handlers run between these: the child's must not be taken for the parent's. */
static uint32_t forking;

static void before_fork(void)
{
    forking = sim_me;
    sim_me = 0;
}

static void in_parent(void)
{
    sim_me = forking;
}

static void in_child(void)
{
    if (forking == 0)
        return;
    uint32_t parent = world->threads[forking].proc, number = new_proc(sim_kernelpid(), 0);
    struct proc *proc = &world->procs[number];
    proc->parent = parent;
    proc->offset_ns = world->procs[parent].offset_ns;
    proc->rate_ppb = world->procs[parent].rate_ppb;
    for (int fd = 0; fd < FDS_MAX; fd++)
        if ((proc->fds[fd] = world->procs[parent].fds[fd]) != 0)
            world->files[proc->fds[fd]].refs++;
    enter(number);
}

/* The child enters while its parent has the turn, and does nothing else. */
static uint32_t wait_until_attached(pid_t pid)
{
    for (;;) {
        siginfo_t info = { 0 };
        uint32_t number = find_proc(pid);
        if (number != 0 && __atomic_load_n(&world->procs[number].attached, __ATOMIC_ACQUIRE) != 0)
            return number;
        if (sim_kernel(SYS_waitid, P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT, NULL) == 0 && info.si_pid == pid) {
            number = new_proc(pid, sim_kernelpid());
            world->procs[number].state = IS_OVER;
            return number;
        }
        sim_kernel(SYS_nanosleep, &(struct timespec){ 0, 20000 }, NULL);
    }
}

static pid_t child_of(pid_t pid)
{
    if (pid <= 0)
        return pid;
    uint32_t number = wait_until_attached(pid);
    sim_point("forked", number);
    return SIM_PID + (pid_t)number;
}

pid_t fork(void)
{
    if (!sim_on())
        return REAL(fork)();
    sim_point("fork", 0);
    return child_of(REAL(fork)());
}

static int spawned(int code, pid_t *pid, pid_t real)
{
    if (code != 0)
        return code;
    if (sim_on())
        real = child_of(real);
    if (pid != NULL)
        *pid = real;
    return 0;
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr,
                char *const argv[], char *const envp[])
{
    pid_t real = 0;
    sim_point("posix_spawn", 0);
    int code = REAL(posix_spawn)(&real, path, actions, attr, argv, envp);
    return spawned(code, pid, real);
}

int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr,
                 char *const argv[], char *const envp[])
{
    pid_t real = 0;
    sim_point("posix_spawn", 0);
    int code = REAL(posix_spawnp)(&real, file, actions, attr, argv, envp);
    return spawned(code, pid, real);
}

int system(const char *line)
{
    char shell[] = "sh", option[] = "-c", *argv[] = { shell, option, (char *)(uintptr_t)line, NULL };
    pid_t pid;
    int status;
    if (!sim_on() || line == NULL)
        return REAL(system)(line);
    if (posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ) != 0)
        return -1;
    return waitpid(pid, &status, 0) == pid ? status : -1;
}

/* --- to leave ----------------------------------------------------------------------------------------------------- */

void sim_endproc(uint32_t number, int status)
{
    struct proc *proc = &world->procs[number];
    if (proc->state != LIVES)
        return;
    if (world->set.trace)
        diary_write("%s.%u is over, status %d", proc->name, number, status);
    proc->state = IS_OVER;
    proc->status = status;
    sim_closeall(number);
    for (uint32_t i = 1; i <= world->thread_count; i++)
        if (world->threads[i].proc == number && world->threads[i].state != FREE) {
            if (world->threads[i].state != ENDED)
                sim_endthread(i);
            world->threads[i].state = FREE;
        }
    for (uint32_t i = 1; i <= world->proc_count; i++)
        if (world->procs[i].state == LIVES && world->procs[i].parent == number) {
            world->procs[i].parent = 0;
            if (world->procs[i].dies_with_parent) {
                sim_endproc(i, SIGKILL);
                sim_kernel(SYS_kill, world->procs[i].pid, SIGKILL);
            }
        }
    sim_wakeall(proc->parent, &world->procs[proc->parent]);
}

static void leave_world(int status)
{
    if (!sim_on())
        return;
    sim_point("exit", (uint64_t)status);
    sim_endproc(sim_proc(), status);
    sim_leave();
}

static void at_exit(int status, void *arg)
{
    (void)arg;
    leave_world((status & 0xff) << 8);
}

void _exit(int status)
{
    leave_world((status & 0xff) << 8);
    for (;;)
        sim_kernel(SYS_exit_group, status);
}

void _Exit(int status)
{
    _exit(status);
}

/* A program that ends by itself so ends in the world, too. */
void abort(void)
{
    signal(SIGABRT, SIG_DFL);
    if (sim_on()) {
        pid_t me = sim_kernelpid();
        sim_point("abort", 0);
        sim_endproc(sim_proc(), SIGABRT);
        sim_leave();
        sim_kernel(SYS_kill, me, SIGABRT);
    }
    REAL(abort)();
    for (;;)
        ;
}

__attribute__((noreturn)) void __assert_fail(const char *what, const char *file, unsigned line, const char *function);
void __assert_fail(const char *what, const char *file, unsigned line, const char *function)
{
    fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, what);
    abort();
}

/* The hash of its command line: a program that starts again on the same folder runs on the same machine. */
static uint64_t name_of_command(void)
{
    char bytes[4096];
    uint64_t name = 0;
    int fd = (int)sim_kernel(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC, 0);
    long length = fd >= 0 ? sim_kernel(SYS_read, fd, bytes, sizeof bytes) : 0;
    for (long i = 0; i < length; i++)
        name = name * 31 + (unsigned char)bytes[i];
    sim_kernel(SYS_close, fd);
    return name;
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("SIM_WORLD");
    if (path == NULL)
        return;
    int fd = (int)sim_kernel(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
    void *at =
        mmap(WORLD_AT, WORLD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_NORESERVE, fd, 0);
    if (fd < 0 || at != WORLD_AT) {
        fprintf(stderr, "sim: no world at %s\n", path);
        sim_kernel(SYS_exit_group, 125);
    }
    sim_kernel(SYS_close, fd);
    sim_beginthreads();
    sim_beginshift();
    pthread_atfork(before_fork, in_parent, in_child);
    on_exit(at_exit, NULL); /* before the program's: so it is the last one */
    sim_is_on = true;
    uint32_t known = find_proc(sim_kernelpid());
    if (known != 0)
        go_on_after_exec(known);
    else
        enter(new_proc(sim_kernelpid(), (pid_t)sim_kernel(SYS_getppid)));
    sim_beginmachine(name_of_command());
}

void sim_isolate(pid_t pid, int64_t ms)
{
    if (sim_on())
        sim_isolateproc(&world->procs[sim_procof(pid)], (uint64_t)ms * NS_PER_MS);
}
