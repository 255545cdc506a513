/* SPDX-License-Identifier: MIT */
/*
 * signals.c - children that end, and signals
 *
 * A signal comes where its receiver has the turn: its handler runs there for real. SIGKILL, SIGSTOP and SIGCONT
 * are done to a process between two of its turns.
 */
#include "sim.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* The process that its word for it means; 0: none of this world. */
uint32_t sim_procof(pid_t pid)
{
    int64_t number = (int64_t)pid - SIM_PID;
    return number >= 1 && number <= (int64_t)world->proc_count ? (uint32_t)number : 0;
}

/* --- children and signals ----------------------------------------------------------------------------------------- */

int prctl(int option, ...)
{
    unsigned long arg[4];
    va_list args;
    va_start(args, option);
    for (int i = 0; i < 4; i++)
        arg[i] = va_arg(args, unsigned long);
    va_end(args);
    if (!sim_on() || option != PR_SET_PDEATHSIG)
        return (int)sim_kernel(SYS_prctl, option, arg[0], arg[1], arg[2], arg[3]);
    world->procs[sim_proc()].dies_with_parent = arg[0] != 0;
    return 0;
}

static bool is_child(uint32_t i, pid_t pid)
{
    return world->procs[i].state != NO_PROC && world->procs[i].parent == sim_proc() && !world->procs[i].reaped &&
           (pid == -1 || pid == 0 || sim_procof(pid) == i);
}

/* A child that has something to tell. 0: none has; *any: there is one. */
static uint32_t child_that_tells(pid_t pid, int options, bool *any)
{
    *any = false;
    for (uint32_t i = 1; i <= world->proc_count; i++)
        if (is_child(i, pid)) {
            *any |= world->procs[i].state == LIVES || (options & WEXITED) != 0;
            if ((world->procs[i].state == IS_OVER && (options & WEXITED) != 0) ||
                (world->procs[i].tells_stop && (options & WSTOPPED) != 0))
                return i;
        }
    return 0;
}

static uint32_t wait_for_child(pid_t pid, int options, int *error)
{
    for (;;) {
        bool any;
        uint32_t child = child_that_tells(pid, options, &any);
        *error = any ? 0 : ECHILD;
        if (child != 0 || !any || (options & WNOHANG) != 0)
            return child;
        sim_waitfor("waitpid", &world->procs[sim_proc()], NEVER, true);
        pthread_testcancel();
        if (sim_self()->interrupted) {
            *error = EINTR;
            return 0;
        }
    }
}

/* The kernel's status, if the process is a child of this one for the kernel, too. */
static int reap(uint32_t child)
{
    int status = 0;
    world->procs[child].reaped = true;
    if (sim_kernel(SYS_wait4, world->procs[child].pid, &status, 0, NULL) == world->procs[child].pid)
        return status;
    return world->procs[child].status;
}

pid_t waitpid(pid_t pid, int *status, int options)
{
    int error;
    if (!sim_on())
        return (pid_t)sim_kernel(SYS_wait4, pid, status, options, NULL);
    sim_point("waitpid", (uint64_t)pid);
    pthread_testcancel();
    uint32_t child =
        wait_for_child(pid, (options & WNOHANG) | WEXITED | ((options & WUNTRACED) != 0 ? WSTOPPED : 0), &error);
    if (child == 0) {
        errno = error;
        return error != 0 ? -1 : 0;
    }
    if (world->procs[child].state != IS_OVER) {
        world->procs[child].tells_stop = false;
        if (status != NULL)
            *status = SIGSTOP << 8 | 0x7f;
        return SIM_PID + (pid_t)child;
    }
    int ended = reap(child);
    if (status != NULL)
        *status = ended;
    return SIM_PID + (pid_t)child;
}

pid_t wait(int *status)
{
    return waitpid(-1, status, 0);
}

int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    int error;
    if (!sim_on())
        return (int)sim_kernel(SYS_waitid, type, id, info, options, NULL);
    sim_point("waitid", id);
    uint32_t child = wait_for_child(type == P_PID ? (pid_t)id : -1, options, &error);
    if (info != NULL)
        memset(info, 0, sizeof *info);
    if (error != 0) {
        errno = error;
        return -1;
    }
    if (child == 0)
        return 0;
    const struct proc *proc = &world->procs[child];
    bool over = proc->state == IS_OVER;
    if (info != NULL) {
        info->si_signo = SIGCHLD;
        info->si_pid = SIM_PID + (pid_t)child;
        info->si_code = !over ? CLD_STOPPED : WIFSIGNALED(proc->status) ? CLD_KILLED : CLD_EXITED;
        info->si_status = !over                       ? SIGSTOP
                          : WIFSIGNALED(proc->status) ? WTERMSIG(proc->status)
                                                      : WEXITSTATUS(proc->status);
    }
    if ((options & WNOWAIT) == 0) {
        if (over)
            reap(child);
        else
            world->procs[child].tells_stop = false;
    }
    return 0;
}

static void stop(struct proc *proc, bool stops)
{
    if (proc->stopped == stops)
        return;
    proc->stopped = stops;
    proc->pauses = stops ? proc->pauses + 1 : proc->pauses - 1;
    if (stops) {
        proc->tells_stop = true;
        sim_wakeall(proc->parent, &world->procs[proc->parent]);
    }
}

/* One of its threads that waits for something hears of it now; else, whichever comes to a point first. */
static void tell_signal(uint32_t number, int signal)
{
    world->procs[number].signals |= 1ULL << signal;
    for (uint32_t i = 1; i <= world->thread_count; i++) {
        struct thread *thread = &world->threads[i];
        if (thread->proc == number && thread->state == BLOCKED && thread->interruptible) {
            thread->interrupted = true;
            sim_ready(i);
            return;
        }
    }
}

int kill(pid_t pid, int signal)
{
    if (!sim_on())
        return (int)sim_kernel(SYS_kill, pid, signal);
    sim_point("kill", (uint64_t)signal);
    uint32_t number = sim_procof(pid);
    if (number == 0 || world->procs[number].state == NO_PROC || world->procs[number].reaped) {
        errno = ESRCH;
        return -1;
    }
    struct proc *proc = &world->procs[number];
    if (signal == 0 || proc->state == IS_OVER)
        return 0;
    switch (signal) {
    case SIGKILL:
        if (number == sim_proc()) {
            pid_t me = proc->pid;
            sim_endproc(number, SIGKILL);
            sim_leave();
            sim_kernel(SYS_kill, me, SIGKILL);
        }
        sim_endproc(number, SIGKILL);
        sim_kernel(SYS_kill, proc->pid, SIGKILL);
        break;
    case SIGSTOP:
        stop(proc, true);
        break;
    case SIGCONT:
        stop(proc, false);
        break;
    default:
        tell_signal(number, signal);
    }
    sim_point("killed", number);
    return 0;
}

/* --- alarms ------------------------------------------------------------------------------------------------------ */

static struct timeval timeval(uint64_t ns)
{
    return (struct timeval){ (time_t)(ns / NS_PER_S), (suseconds_t)(ns % NS_PER_S / NS_PER_US) };
}

int setitimer(__itimer_which_t which, const struct itimerval *restrict new, struct itimerval *restrict old)
{
    if (!sim_on() || which != ITIMER_REAL)
        return (int)sim_kernel(SYS_setitimer, which, new, old);
    struct proc *proc = &world->procs[sim_proc()];
    sim_point("setitimer", 0);
    if (old != NULL) {
        old->it_value = timeval(proc->alarm_ns > world->now_ns ? proc->alarm_ns - world->now_ns : 0);
        old->it_interval = timeval(proc->alarm_interval_ns);
    }
    uint64_t ns = sim_ns(&new->it_value);
    proc->alarm_ns = ns != 0 ? world->now_ns + ns : 0;
    proc->alarm_interval_ns = sim_ns(&new->it_interval);
    proc->alarm_generation++;
    if (ns != 0)
        sim_event(ALARM, proc->alarm_ns, sim_proc(), proc->alarm_generation);
    return 0;
}

unsigned alarm(unsigned seconds)
{
    struct itimerval new = { .it_value.tv_sec = seconds }, old = { 0 };
    setitimer(ITIMER_REAL, &new, &old);
    return (unsigned)old.it_value.tv_sec + (old.it_value.tv_usec != 0);
}

void sim_alarmdue(uint32_t number, uint32_t generation)
{
    struct proc *proc = &world->procs[number];
    if (proc->state != LIVES || proc->alarm_generation != generation)
        return;
    proc->alarm_ns = proc->alarm_interval_ns != 0 ? world->now_ns + proc->alarm_interval_ns : 0;
    if (proc->alarm_ns != 0)
        sim_event(ALARM, proc->alarm_ns, number, generation);
    tell_signal(number, SIGALRM);
}

/* --- signals that come ------------------------------------------------------------------------------------------- */

static bool ends_process(int signal)
{
    struct sigaction action;
    return sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_DFL && signal != SIGCHLD &&
           signal != SIGURG && signal != SIGWINCH && signal != SIGCONT;
}

/* For this thread or its process, and not blocked in this thread: its handler runs now. */
void sim_takesignals(void)
{
    struct proc *proc = &world->procs[sim_proc()];
    uint64_t all = sim_self()->signals | proc->signals, blocked = 0;
    sim_kernel(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &blocked, 8);
    for (int signal = 1; signal < 64; signal++) {
        uint64_t bit = 1ULL << signal;
        if ((all & bit) == 0 || (blocked & bit >> 1) != 0)
            continue;
        sim_self()->signals &= ~bit;
        proc->signals &= ~bit;
        if (ends_process(signal)) {
            pid_t me = proc->pid;
            sim_endproc(sim_proc(), signal);
            sim_leave();
            sim_kernel(SYS_kill, me, signal);
        }
        sim_kernel(SYS_tgkill, proc->pid, sim_self()->tid, signal);
    }
}
