/* SPDX-License-Identifier: MIT */
/*
 * turns.c - whose turn it is, and what time: see sim.h
 */
#include "sim.h"
#include "diary.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

__thread uint32_t sim_me;
bool sim_is_on;

/* --- random numbers: xoshiro256**, seeded by splitmix64 ----------------------------------------------------------- */

static uint64_t rotate(uint64_t x, int by)
{
    return (x << by) | (x >> (64 - by));
}

void sim_begin_randomness(uint64_t seed)
{
    for (int i = 0; i < STREAMS; i++)
        for (int j = 0; j < 4; j++) {
            uint64_t z = seed = seed + 0x9e3779b97f4a7c15ULL;
            z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
            z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
            world->random[i][j] = z ^ (z >> 31);
        }
}

uint64_t sim_draw(enum stream stream)
{
    uint64_t *s = world->random[stream], result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

uint64_t sim_drawbelow(enum stream stream, uint64_t limit)
{
    return (uint64_t)(((unsigned __int128)sim_draw(stream) * limit) >> 64);
}

/* The number of leading zeros is geometrically distributed; the bits behind them fill in between. */
uint64_t sim_drawabout(enum stream stream, uint64_t mean)
{
    uint64_t drawn = sim_draw(stream);
    unsigned halvings = drawn >> 48 == 0 ? 16 : (unsigned)__builtin_clzll(drawn);
    uint64_t within = (drawn & 0xffff) * mean / 0x10000;
    return (halvings * mean + within) * 2 / 3;
}

/* --- events: a heap ----------------------------------------------------------------------------------------------- */

static bool is_before(const struct event *a, const struct event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->number < b->number;
}

void sim_event(enum event_kind kind, uint64_t at_ns, uint32_t what, uint32_t detail)
{
    struct event event = { at_ns, world->event_number++, what, detail, (uint8_t)kind };
    uint32_t at = world->event_count++;
    if (world->event_count >= EVENTS_MAX)
        sim_fail("more than %d events", EVENTS_MAX);
    for (; at > 0 && is_before(&event, &world->events[(at - 1) / 2]); at = (at - 1) / 2)
        world->events[at] = world->events[(at - 1) / 2];
    world->events[at] = event;
    world->next_ns = world->events[0].at_ns;
}

static struct event first_event(void)
{
    struct event first = world->events[0], last = world->events[--world->event_count];
    uint32_t at = 0, count = world->event_count;
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_before(&world->events[child + 1], &world->events[child]))
            child++;
        if (!is_before(&world->events[child], &last))
            break;
        world->events[at] = world->events[child];
    }
    world->events[at] = last;
    world->next_ns = count > 0 ? world->events[0].at_ns : NEVER;
    return first;
}

static void happen(const struct event *event)
{
    struct thread *thread;
    switch ((enum event_kind)event->kind) {
    case DEADLINE:
        thread = &world->threads[event->what];
        if (thread->state == BLOCKED && thread->generation == event->detail) {
            thread->timed_out = true;
            sim_ready(event->what);
        }
        break;
    case DELIVERY:
        sim_deliver(event->what, event->detail);
        break;
    case CONNECTION:
        sim_connected(event->what, event->detail);
        break;
    case TIMER:
        sim_timerdue(event->what, event->detail);
        break;
    case ALARM:
        sim_alarmdue(event->what, event->detail);
        break;
    case END_PAUSE:
        world->procs[event->what].pauses--;
        break;
    }
}

static void let_happen_what_is_due(void)
{
    while (world->next_ns <= world->now_ns) {
        struct event event = first_event();
        happen(&event);
    }
    if (world->now_ns > world->set.limit_ns)
        sim_fail("the end of time, %llu s, came before the end of the program",
                 (unsigned long long)(world->set.limit_ns / NS_PER_S));
}

/* --- the kernel's part -------------------------------------------------------------------------------------------- */

long sim_kernel(long number, ...)
{
    long arg[6];
    va_list args;
    va_start(args, number);
    for (int i = 0; i < 6; i++)
        arg[i] = va_arg(args, long);
    va_end(args);
    register long r10 __asm__("r10") = arg[3], r8 __asm__("r8") = arg[4], r9 __asm__("r9") = arg[5];
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(arg[0]), "S"(arg[1]), "d"(arg[2]), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

static long futex(uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
    return sim_kernel(SYS_futex, word, op, value, timeout, NULL, 0);
}

/*
 * If who began all this is gone, nobody will give this thread its turn. The first thread of each process looks,
 * because a wait with an end costs the kernel a timer.
 */
static void wait_for_turn(struct thread *me)
{
    static const struct timespec patience = { 2, 0 };
    bool looks = me->tid == world->procs[me->proc].pid;
    while (__atomic_load_n(&me->turn, __ATOMIC_ACQUIRE) == 0)
        if (futex(&me->turn, FUTEX_WAIT, 0, looks ? &patience : NULL) != 0 && errno == ETIMEDOUT &&
            sim_kernel(SYS_kill, world->launcher, 0) != 0)
            sim_kernel(SYS_exit_group, 125);
    me->turn = 0;
}

/* All are woken, because a killed thread that had this number before may still stand in the kernel's queue. */
static void give_turn(struct thread *to)
{
    __atomic_store_n(&to->turn, 1, __ATOMIC_RELEASE);
    futex(&to->turn, FUTEX_WAKE, INT_MAX, NULL);
}

/* The kernel and libc still work on an ended thread: nobody else runs until they are through. */
static void wait_for_ended(void)
{
    uint32_t tid = world->ended_tid, pid = world->ended_pid;
    world->ended_tid = 0;
    while (tid != 0 && sim_kernel(SYS_tgkill, pid, tid, 0) == 0)
        sim_kernel(SYS_sched_yield);
}

void sim_fail(const char *format, ...)
{
    if (!world->over) {
        va_list args;
        va_start(args, format);
        vsnprintf(world->why, sizeof world->why, format, args);
        va_end(args);
        world->over = true;
    }
    __atomic_store_n(&world->over_futex, 1, __ATOMIC_RELEASE);
    futex(&world->over_futex, FUTEX_WAKE, 1, NULL);
    for (;;) /* the launcher ends all */
        futex(&world->threads[0].turn, FUTEX_WAIT, 0, NULL);
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

uint32_t sim_newthread(uint32_t proc)
{
    uint32_t number = 1;
    while (number <= world->thread_count && world->threads[number].state != FREE)
        number++;
    if (number >= THREADS_MAX)
        sim_fail("more than %d threads", THREADS_MAX);
    if (number > world->thread_count)
        world->thread_count = number;
    struct thread *thread = &world->threads[number];
    uint32_t generation = thread->generation;
    memset(thread, 0, sizeof *thread);
    thread->generation = generation + 1;
    thread->proc = proc;
    thread->state = BLOCKED;
    thread->priority = sim_draw(TURNS) | 1ULL << 63;
    world->procs[proc].threads++;
    return number;
}

static uint32_t *bucket_of(uint32_t proc, const void *address)
{
    uint64_t hash = ((uint64_t)(uintptr_t)address >> 2) * 0x9e3779b97f4a7c15ULL + proc;
    return &world->buckets[(hash ^ (hash >> 29)) % BUCKETS];
}

static void enter_bucket(uint32_t number, const void *address)
{
    struct thread *thread = &world->threads[number];
    uint32_t *bucket = bucket_of(thread->proc, address);
    thread->address = address;
    thread->bucket_previous = 0;
    thread->bucket_next = *bucket;
    if (*bucket != 0)
        world->threads[*bucket].bucket_previous = number;
    *bucket = number;
}

static void leave_bucket(uint32_t number)
{
    struct thread *thread = &world->threads[number];
    if (thread->address == NULL)
        return;
    if (thread->bucket_previous != 0)
        world->threads[thread->bucket_previous].bucket_next = thread->bucket_next;
    else
        *bucket_of(thread->proc, thread->address) = thread->bucket_next;
    if (thread->bucket_next != 0)
        world->threads[thread->bucket_next].bucket_previous = thread->bucket_previous;
    thread->address = NULL;
}

static void leave_files(struct thread *thread)
{
    while (thread->waits != 0) {
        uint32_t number = thread->waits;
        struct wait *wait = &world->waits[number];
        thread->waits = wait->next_of_thread;
        if (wait->previous_of_file != 0)
            world->waits[wait->previous_of_file].next_of_file = wait->next_of_file;
        else
            world->files[wait->file].waits = wait->next_of_file;
        if (wait->next_of_file != 0)
            world->waits[wait->next_of_file].previous_of_file = wait->previous_of_file;
        wait->next_of_thread = world->free_wait;
        world->free_wait = number;
    }
}

void sim_ready(uint32_t number)
{
    struct thread *thread = &world->threads[number];
    if (thread->state != BLOCKED)
        return;
    leave_bucket(number);
    leave_files(thread);
    thread->state = READY;
    thread->generation++;
    thread->ready_at = world->ready_count;
    world->ready[world->ready_count++] = number;
    world->is_new_ready = true;
}

static void unready(struct thread *thread)
{
    uint32_t last = world->ready[--world->ready_count];
    world->ready[thread->ready_at] = last;
    world->threads[last].ready_at = thread->ready_at;
}

/* Whatever it was doing: a process was killed, or a thread has ended. */
void sim_endthread(uint32_t number)
{
    struct thread *thread = &world->threads[number];
    if (thread->state == READY)
        unready(thread);
    leave_bucket(number);
    leave_files(thread);
    thread->generation++;
    thread->state = ENDED;
    world->procs[thread->proc].threads--;
}

static bool may_run(const struct thread *thread)
{
    return world->procs[thread->proc].pauses == 0;
}

/* --- the choice --------------------------------------------------------------------------------------------------- */

static uint32_t walk(uint32_t able)
{
    uint32_t lot = (uint32_t)sim_drawbelow(TURNS, able);
    if (able == world->ready_count)
        return world->ready[lot];
    for (uint32_t i = 0;; i++)
        if (may_run(&world->threads[world->ready[i]]) && lot-- == 0)
            return world->ready[i];
}

static uint32_t highest(void)
{
    uint32_t best = 0;
    for (uint32_t i = 0; i < world->ready_count; i++) {
        uint32_t number = world->ready[i];
        if (may_run(&world->threads[number]) &&
            (best == 0 || world->threads[number].priority > world->threads[best].priority))
            best = number;
    }
    return best;
}

static bool stands_one_still(void)
{
    for (uint32_t i = 1; i <= world->proc_count; i++)
        if (world->procs[i].state == LIVES && world->procs[i].pauses > 0)
            return true;
    return false;
}

static uint32_t count_able(void)
{
    uint32_t able = 0;
    if (world->ready_count > world->proc_count && !stands_one_still())
        return world->ready_count;
    for (uint32_t i = 0; i < world->ready_count; i++)
        able += may_run(&world->threads[world->ready[i]]);
    return able;
}

/* Nobody waits with an end: then it is not time that is missing. */
static void stand_still(void)
{
    sim_fail("all threads wait, and nothing will ever wake one of them");
}

/* Time jumps where nobody is able to run. */
static uint32_t choose(void)
{
    uint32_t able;
    while ((able = count_able()) == 0) {
        if (world->next_ns == NEVER)
            stand_still();
        if (world->next_ns > world->now_ns)
            world->now_ns = world->next_ns;
        let_happen_what_is_due();
    }
    uint32_t chosen = world->set.schedule == PRIORITIES ? highest() : walk(able);
    world->choose_at =
        world->steps + (world->set.schedule == PRIORITIES ? 512 : 1 + sim_drawabout(TURNS, world->set.stay));
    world->is_new_ready = false;
    return chosen;
}

static void go_on_with(uint32_t next)
{
    struct thread *me = &world->threads[sim_me];
    if (next == sim_me)
        return;
    world->switches++;
    world->current = next;
    give_turn(&world->threads[next]);
    wait_for_turn(me);
    wait_for_ended();
}

static void choose_and_go(void)
{
    uint32_t next = choose();
    unready(&world->threads[next]);
    go_on_with(next);
    sim_self()->state = RUNS;
}

void sim_choose_and_go(void)
{
    uint32_t next = choose();
    unready(&world->threads[next]);
    world->current = next;
    give_turn(&world->threads[next]);
}

static void stay_ready(void)
{
    struct thread *me = sim_self();
    me->state = BLOCKED;
    sim_ready(sim_me);
}

/* A thread that runs long falls behind, else one that looks again and again would starve the rest. */
static void change_priority(void)
{
    if (world->steps < world->change_at)
        sim_self()->priority = sim_draw(TURNS) | 1ULL << 63;
    else
        sim_self()->priority = --world->lowest_priority;
    if (world->steps >= world->change_at)
        world->change_at = world->steps + 1 + sim_drawabout(TURNS, 20000);
}

static bool is_to_choose(void)
{
    if (!may_run(sim_self()))
        return true;
    if (world->set.schedule == PRIORITIES) {
        bool is_long = world->steps >= world->choose_at || world->steps >= world->change_at;
        if (is_long)
            change_priority();
        return is_long || world->is_new_ready;
    }
    return world->steps >= world->choose_at;
}

/* A launcher that was killed ended nobody. The processes of its world see that it is gone, and end. */
static void look_for_launcher(void)
{
    if (sim_kernel(SYS_kill, world->launcher, 0) != 0)
        sim_kernel(SYS_exit_group, 125);
}

void sim_point(const char *call, uint64_t detail)
{
    if (!sim_on())
        return;
    int error = errno;
    world->now_ns += NS_PER_US;
    world->steps++;
    if (__builtin_expect((world->steps & 0xffff) == 0, 0))
        look_for_launcher();
    diary_point(call, detail);
    if (world->now_ns >= world->next_ns)
        let_happen_what_is_due();
    if (__builtin_expect(world->is_storm, 0))
        sim_pausehere();
    if (is_to_choose()) {
        stay_ready();
        choose_and_go();
    }
    if (__builtin_expect((sim_self()->signals | world->procs[sim_proc()].signals) != 0, 0))
        sim_takesignals();
    errno = error;
}

bool sim_block(const char *call, uint64_t deadline_ns, bool interruptible)
{
    int error = errno;
    struct thread *me = sim_self();
    me->state = BLOCKED;
    me->timed_out = me->interrupted = false;
    me->interruptible = interruptible;
    me->deadline_ns = deadline_ns;
    strncpy(me->call, call, sizeof me->call - 1);
    diary_block(call, deadline_ns);
    if (interruptible && (me->signals | world->procs[me->proc].signals) != 0) {
        me->interrupted = true;
        sim_ready(sim_me);
    } else if (deadline_ns != NEVER) {
        sim_event(DEADLINE, deadline_ns > world->now_ns ? deadline_ns : world->now_ns, sim_me, me->generation);
    }
    choose_and_go();
    me->interruptible = false;
    diary_woken(call, me->timed_out);
    if ((me->signals | world->procs[me->proc].signals) != 0)
        sim_takesignals();
    errno = error;
    return !me->timed_out;
}

void sim_park(void)
{
    struct thread *me = sim_self();
    wait_for_turn(me);
    wait_for_ended();
    me->state = RUNS;
}

void sim_leave(void)
{
    struct thread *me = sim_self();
    const struct proc *proc = &world->procs[me->proc];
    if (world->procs[1].state == IS_OVER) {
        sim_me = 0;
        world->over = true;
        __atomic_store_n(&world->over_futex, 1, __ATOMIC_RELEASE);
        futex(&world->over_futex, FUTEX_WAKE, 1, NULL);
        return;
    }
    if (proc->state == LIVES && me->tid != proc->pid) {
        world->ended_tid = (uint32_t)me->tid;
        world->ended_pid = (uint32_t)proc->pid;
    }
    uint32_t next = choose();
    unready(&world->threads[next]);
    world->current = next;
    sim_me = 0;
    give_turn(&world->threads[next]);
}

/* --- waiting for an address --------------------------------------------------------------------------------------- */

bool sim_waitfor(const char *call, const void *address, uint64_t deadline_ns, bool interruptible)
{
    sim_self()->state = BLOCKED;
    enter_bucket(sim_me, address);
    return sim_block(call, deadline_ns, interruptible);
}

static bool waits_for(uint32_t number, uint32_t proc, const void *address)
{
    return world->threads[number].address == address && world->threads[number].proc == proc;
}

void sim_wakeall(uint32_t proc, const void *address)
{
    for (uint32_t next, number = *bucket_of(proc, address); number != 0; number = next) {
        next = world->threads[number].bucket_next;
        if (waits_for(number, proc, address))
            sim_ready(number);
    }
}

bool sim_wakeone(const void *address)
{
    uint32_t count = 0, chosen = 0;
    for (uint32_t number = *bucket_of(sim_proc(), address); number != 0; number = world->threads[number].bucket_next)
        if (waits_for(number, sim_proc(), address) && sim_drawbelow(WAKES, ++count) == 0)
            chosen = number;
    if (chosen != 0)
        sim_ready(chosen);
    return chosen != 0;
}

/* --- clocks ------------------------------------------------------------------------------------------------------- */

#define EPOCH_S 1798000000ULL /* what CLOCK_REALTIME says when the world begins, less what the others say */

/* All clocks were right when the world began. */
static int64_t wrong_by(const struct proc *proc, uint64_t true_ns)
{
    return (int64_t)((__int128)((int64_t)true_ns - (int64_t)BEGIN_NS) * proc->rate_ppb / 1000000000);
}

static bool is_of_the_day(int clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
}

uint64_t sim_clock(int clock, uint64_t true_ns)
{
    const struct proc *proc = &world->procs[sim_proc()];
    if (clock == CLOCK_TAI) /* which no program of ours uses: the true time, for who judges */
        return true_ns;
    uint64_t ns = true_ns + (uint64_t)wrong_by(proc, true_ns);
    if (is_of_the_day(clock))
        return ns + EPOCH_S * NS_PER_S + (uint64_t)sim_servershift_us() * NS_PER_US;
    return ns + (uint64_t)proc->offset_ns;
}

uint64_t sim_clockback(int clock, uint64_t ns)
{
    const struct proc *proc = &world->procs[sim_proc()];
    if (is_of_the_day(clock))
        ns = ns > EPOCH_S * NS_PER_S ? ns - EPOCH_S * NS_PER_S : 0;
    else
        ns = ns > (uint64_t)proc->offset_ns ? ns - (uint64_t)proc->offset_ns : 0;
    if (clock == CLOCK_TAI || proc->rate_ppb == 0 || ns <= BEGIN_NS)
        return ns;
    return BEGIN_NS + (uint64_t)((__int128)(ns - BEGIN_NS) * 1000000000 / (1000000000 + proc->rate_ppb)) + 1;
}

uint64_t sim_deadline(int clock, const struct timespec *time)
{
    if (time == NULL)
        return NEVER;
    if (time->tv_sec < 0)
        return 0;
    if (time->tv_sec > 9000000000)
        return NEVER;
    return sim_clockback(clock, (uint64_t)time->tv_sec * NS_PER_S + (uint64_t)time->tv_nsec);
}

uint64_t sim_after(const struct timespec *time)
{
    if (time == NULL)
        return NEVER;
    if (time->tv_sec > 9000000000)
        return NEVER;
    uint64_t ns = (uint64_t)time->tv_sec * NS_PER_S + (uint64_t)time->tv_nsec;
    int64_t rate = world->procs[sim_proc()].rate_ppb;
    return world->now_ns + (uint64_t)((__int128)ns * 1000000000 / (1000000000 + rate)) + (rate != 0);
}

struct timespec sim_timespec(uint64_t ns)
{
    return (struct timespec){ (time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S) };
}
