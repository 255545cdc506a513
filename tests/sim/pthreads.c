/* SPDX-License-Identifier: MIT */
/*
 * pthreads.c - models of what threads share: in the memory of the caller's objects, so that static initializers
 * work, and objects come and go as they do elsewhere
 */
#include "sim.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint32_t *words(const volatile void *object)
{
    return (uint32_t *)(uintptr_t)object;
}

static uint32_t my_name(void)
{
    return sim_me != 0 ? sim_me : UINT32_MAX;
}

/* --- what ThreadSanitizer is told, where a program is built with it: it sees none of these models ----------------- */

#define WEAK extern __attribute__((weak))
WEAK void __tsan_acquire(void *object);
WEAK void __tsan_release(void *object);
WEAK void __tsan_mutex_pre_lock(void *mutex, unsigned flags);
WEAK void __tsan_mutex_post_lock(void *mutex, unsigned flags, int levels);
WEAK int __tsan_mutex_pre_unlock(void *mutex, unsigned flags);
WEAK void __tsan_mutex_post_unlock(void *mutex, unsigned flags);

/* One thread runs at a time, so copies that the simulation itself makes race with nothing. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "called_from_lib:libsim.so";
}

/* A thread that calls sim_acquired() sees the work that others did before sim_released(). */
void sim_acquired(const volatile void *object)
{
    if (sim_on() && __tsan_acquire != NULL)
        __tsan_acquire((void *)(uintptr_t)object);
}

void sim_released(const volatile void *object)
{
    if (sim_on() && __tsan_release != NULL)
        __tsan_release((void *)(uintptr_t)object);
}

enum { TRIED = 1 << 4 }; /* so that it closes no circle of locks */

static void locked(void *mutex, unsigned flags)
{
    if (!sim_on() || __tsan_mutex_pre_lock == NULL)
        return;
    __tsan_mutex_pre_lock(mutex, flags);
    __tsan_mutex_post_lock(mutex, flags, 1);
}

static void unlocks(void *mutex)
{
    if (!sim_on() || __tsan_mutex_pre_unlock == NULL)
        return;
    __tsan_mutex_pre_unlock(mutex, 0);
    __tsan_mutex_post_unlock(mutex, 0);
}

/* --- mutexes: lock, count and owner where glibc has them, the kind, too ------------------------------------------- */

enum { LOCKED, COUNT, OWNER, KIND = 4 };

static int kind_of(const uint32_t *m)
{
    return (int)(m[KIND] & 3);
}

static bool take_mutex(uint32_t *m, unsigned flags)
{
    if (m[LOCKED] != 0)
        return false;
    m[LOCKED] = 1;
    m[OWNER] = my_name();
    m[COUNT] = 1;
    locked(m, flags);
    return true;
}

static int relock(uint32_t *m, bool tries)
{
    if (m[LOCKED] == 0 || m[OWNER] != my_name())
        return -1;
    if (kind_of(m) == PTHREAD_MUTEX_RECURSIVE) {
        m[COUNT]++;
        return 0;
    }
    return tries ? EBUSY : kind_of(m) == PTHREAD_MUTEX_ERRORCHECK ? EDEADLK : -1;
}

static int lock_mutex(pthread_mutex_t *mutex, uint64_t deadline_ns)
{
    uint32_t *m = words(mutex);
    int code = relock(m, false);
    if (code >= 0)
        return code;
    while (!take_mutex(m, 0)) {
        if (!sim_on())
            sim_fail("a thread that has no turn waits for a mutex");
        if (deadline_ns <= world->now_ns || !sim_waitfor("mutex", mutex, deadline_ns, false))
            return m[LOCKED] == 0 ? lock_mutex(mutex, deadline_ns) : ETIMEDOUT;
    }
    return 0;
}

static int unlock_mutex(pthread_mutex_t *mutex)
{
    uint32_t *m = words(mutex);
    if (kind_of(m) != PTHREAD_MUTEX_NORMAL && (m[LOCKED] == 0 || m[OWNER] != my_name()))
        return EPERM;
    if (--m[COUNT] > 0 && kind_of(m) == PTHREAD_MUTEX_RECURSIVE)
        return 0;
    unlocks(m);
    m[LOCKED] = m[OWNER] = m[COUNT] = 0;
    if (sim_on())
        sim_wakeall(sim_proc(), mutex);
    return 0;
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    sim_point("lock", 0);
    return lock_mutex(mutex, NEVER);
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    sim_point("trylock", 0);
    int code = relock(words(mutex), true);
    return code >= 0 ? code : take_mutex(words(mutex), TRIED) ? 0 : EBUSY;
}

int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *time)
{
    sim_point("clocklock", 0);
    return lock_mutex(mutex, sim_deadline(clock, time));
}

int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *time)
{
    return pthread_mutex_clocklock(mutex, CLOCK_REALTIME, time);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    int code = unlock_mutex(mutex);
    sim_point("unlock", 0);
    return code;
}

/* --- condition variables: all that is theirs is the clock --------------------------------------------------------- */

int pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr)
{
    clockid_t clock = CLOCK_REALTIME;
    if (attr != NULL)
        pthread_condattr_getclock(attr, &clock);
    memset(cond, 0, sizeof *cond);
    words(cond)[0] = (uint32_t)clock;
    return 0;
}

int pthread_cond_destroy(pthread_cond_t *cond)
{
    (void)cond;
    return 0;
}

static void lock_again(void *mutex)
{
    lock_mutex(mutex, NEVER);
}

static int wait_cond(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t deadline_ns)
{
    bool in_time;
    if (!sim_on())
        sim_fail("a thread that has no turn waits for a condition");
    sim_point("cond", 0);
    pthread_testcancel();
    if (deadline_ns <= world->now_ns) {
        unlock_mutex(mutex);
        sim_point("cond over", 0);
        lock_mutex(mutex, NEVER);
        return ETIMEDOUT;
    }
    unlock_mutex(mutex);
    pthread_cleanup_push(lock_again, mutex);
    in_time = sim_waitfor("cond", cond, deadline_ns, true);
    pthread_testcancel();
    pthread_cleanup_pop(1);
    return in_time ? 0 : ETIMEDOUT;
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    return wait_cond(cond, mutex, NEVER);
}

int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *time)
{
    return wait_cond(cond, mutex, sim_deadline(clock, time));
}

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *time)
{
    return wait_cond(cond, mutex, sim_deadline((int)words(cond)[0], time));
}

int pthread_cond_signal(pthread_cond_t *cond)
{
    sim_point("signal", 0);
    if (sim_on())
        sim_wakeone(cond);
    return 0;
}

int pthread_cond_broadcast(pthread_cond_t *cond)
{
    sim_point("broadcast", 0);
    if (sim_on())
        sim_wakeall(sim_proc(), cond);
    return 0;
}

/* --- semaphores: the count is the first word. Whoever posts touches nothing afterwards ---------------------------- */

int sem_init(sem_t *sem, int shared, unsigned value)
{
    (void)shared;
    memset(sem, 0, sizeof *sem);
    words(sem)[0] = value;
    return 0;
}

int sem_destroy(sem_t *sem)
{
    (void)sem;
    return 0;
}

int sem_getvalue(sem_t *sem, int *value)
{
    *value = (int)words(sem)[0];
    return 0;
}

static int take_sem(sem_t *sem, uint64_t deadline_ns)
{
    sim_point("sem_wait", 0);
    pthread_testcancel();
    while (words(sem)[0] == 0) {
        bool in_time = deadline_ns > world->now_ns && sim_waitfor("sem_wait", sem, deadline_ns, true);
        pthread_testcancel();
        if (words(sem)[0] == 0 && (!in_time || sim_self()->interrupted)) {
            errno = in_time ? EINTR : ETIMEDOUT;
            return -1;
        }
    }
    words(sem)[0]--;
    sim_acquired(sem);
    return 0;
}

int sem_wait(sem_t *sem)
{
    return take_sem(sem, NEVER);
}

int sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *time)
{
    return take_sem(sem, sim_deadline(clock, time));
}

int sem_timedwait(sem_t *sem, const struct timespec *time)
{
    return take_sem(sem, sim_deadline(CLOCK_REALTIME, time));
}

int sem_trywait(sem_t *sem)
{
    sim_point("sem_trywait", 0);
    if (words(sem)[0] == 0) {
        errno = EAGAIN;
        return -1;
    }
    words(sem)[0]--;
    sim_acquired(sem);
    return 0;
}

int sem_post(sem_t *sem)
{
    sim_point("sem_post", 0);
    sim_released(sem);
    words(sem)[0]++;
    if (sim_on())
        sim_wakeall(sim_proc(), sem);
    return 0;
}

/* --- read-write locks, barriers, once ----------------------------------------------------------------------------- */

enum { READERS, WRITER };

static int lock_rw(pthread_rwlock_t *lock, bool writes, bool tries)
{
    uint32_t *l = words(lock);
    sim_point(writes ? "wrlock" : "rdlock", 0);
    while (l[WRITER] != 0 || (writes && l[READERS] != 0)) {
        if (tries)
            return EBUSY;
        sim_waitfor("rwlock", lock, NEVER, false);
    }
    l[writes ? WRITER : READERS]++;
    sim_acquired(lock);
    return 0;
}

int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    return lock_rw(lock, false, false);
}

int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    return lock_rw(lock, true, false);
}

int pthread_rwlock_tryrdlock(pthread_rwlock_t *lock)
{
    return lock_rw(lock, false, true);
}

int pthread_rwlock_trywrlock(pthread_rwlock_t *lock)
{
    return lock_rw(lock, true, true);
}

int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
    uint32_t *l = words(lock);
    sim_released(lock);
    if (l[WRITER] != 0)
        l[WRITER] = 0;
    else
        l[READERS]--;
    if (sim_on())
        sim_wakeall(sim_proc(), lock);
    sim_point("rwunlock", 0);
    return 0;
}

enum { NEEDED, ARRIVED, ROUND };

int pthread_barrier_init(pthread_barrier_t *barrier, const pthread_barrierattr_t *attr, unsigned count)
{
    (void)attr;
    memset(barrier, 0, sizeof *barrier);
    words(barrier)[NEEDED] = count;
    return count == 0 ? EINVAL : 0;
}

int pthread_barrier_destroy(pthread_barrier_t *barrier)
{
    (void)barrier;
    return 0;
}

int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    uint32_t *b = words(barrier), round = b[ROUND];
    sim_point("barrier", 0);
    sim_released(barrier);
    if (++b[ARRIVED] == b[NEEDED]) {
        b[ARRIVED] = 0;
        b[ROUND]++;
        sim_wakeall(sim_proc(), barrier);
        sim_acquired(barrier);
        return PTHREAD_BARRIER_SERIAL_THREAD;
    }
    while (b[ROUND] == round)
        sim_waitfor("barrier", barrier, NEVER, false);
    sim_acquired(barrier);
    return 0;
}

enum { NOT_DONE, IN_WORK, DONE };

int pthread_once(pthread_once_t *once, void (*init)(void))
{
    uint32_t *o = words(once);
    if (o[0] != DONE)
        sim_point("once", o[0]);
    while (o[0] == IN_WORK)
        sim_waitfor("once", once, NEVER, false);
    sim_acquired(once);
    if (o[0] == DONE)
        return 0;
    o[0] = IN_WORK;
    init();
    sim_released(once);
    o[0] = DONE;
    if (sim_on())
        sim_wakeall(sim_proc(), once);
    return 0;
}

/* --- threads: real ones ------------------------------------------------------------------------------------------- */

struct start {
    void *(*run)(void *arg);
    void *arg;
    uint32_t number, stands;
};

static pthread_key_t ending;

/* The library's own destructors are through in the third round. */
static void end_of_thread(void *rounds)
{
    if ((uintptr_t)rounds < 4) {
        pthread_setspecific(ending, (void *)((uintptr_t)rounds + 1));
        return;
    }
    if (!sim_on())
        return;
    struct thread *me = sim_self();
    uint32_t proc = me->proc;
    sim_point("ends", 0);
    sim_endthread(sim_me);
    sim_wakeall(proc, (void *)(uintptr_t)me->pthread);
    if (me->detached)
        me->state = FREE;
    if (world->procs[proc].threads == 0)
        sim_endproc(proc, 0);
    sim_leave();
}

void sim_watchend(void)
{
    pthread_setspecific(ending, (void *)1);
}

void sim_beginthreads(void)
{
    pthread_key_create(&ending, end_of_thread);
}

static void *run_thread(void *arg)
{
    struct start *start = arg, mine = *start;
    sim_me = mine.number;
    sim_self()->tid = (pid_t)sim_kernel(SYS_gettid);
    sim_self()->pthread = (uint64_t)pthread_self();
    sim_watchend();
    __atomic_store_n(&start->stands, 1, __ATOMIC_RELEASE);
    sim_kernel(SYS_futex, &start->stands, FUTEX_WAKE, 1, NULL, NULL, 0);
    sim_park();
    return mine.run(mine.arg);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    if (!sim_on())
        return REAL(pthread_create)(thread, attr, run, arg);
    sim_point("create", 0);
    struct start start = { run, arg, sim_newthread(sim_proc()), 0 };
    struct thread *created = &world->threads[start.number];
    int code = REAL(pthread_create)(thread, attr, run_thread, &start), detached = PTHREAD_CREATE_JOINABLE;
    if (code != 0) {
        sim_endthread(start.number);
        created->state = FREE;
        return code;
    }
    while (__atomic_load_n(&start.stands, __ATOMIC_ACQUIRE) == 0)
        sim_kernel(SYS_futex, &start.stands, FUTEX_WAIT, 0, NULL, NULL, 0);
    if (attr != NULL)
        pthread_attr_getdetachstate(attr, &detached);
    created->detached = detached == PTHREAD_CREATE_DETACHED;
    sim_ready(start.number);
    sim_point("created", start.number);
    return 0;
}

static struct thread *thread_of(pthread_t handle)
{
    for (uint32_t i = 1; i <= world->thread_count; i++) {
        struct thread *thread = &world->threads[i];
        if (thread->state != FREE && thread->proc == sim_proc() && thread->pthread == (uint64_t)handle)
            return thread;
    }
    return NULL;
}

static int join_until(pthread_t handle, void **result, uint64_t deadline_ns)
{
    sim_point("join", 0);
    pthread_testcancel();
    struct thread *thread = thread_of(handle);
    if (thread == NULL)
        return ESRCH;
    while (thread->state != ENDED) {
        bool in_time =
            deadline_ns > world->now_ns && sim_waitfor("join", (void *)(uintptr_t)thread->pthread, deadline_ns, true);
        pthread_testcancel();
        if (thread->state != ENDED && !in_time)
            return deadline_ns == 0 ? EBUSY : ETIMEDOUT;
    }
    thread->state = FREE;
    return REAL(pthread_join)(handle, result);
}

int pthread_join(pthread_t handle, void **result)
{
    return sim_on() ? join_until(handle, result, NEVER) : REAL(pthread_join)(handle, result);
}

int pthread_tryjoin_np(pthread_t handle, void **result)
{
    return join_until(handle, result, 0);
}

int pthread_timedjoin_np(pthread_t handle, void **result, const struct timespec *time)
{
    return join_until(handle, result, sim_deadline(CLOCK_REALTIME, time));
}

int pthread_detach(pthread_t handle)
{
    sim_point("detach", 0);
    struct thread *thread = sim_on() ? thread_of(handle) : NULL;
    if (thread != NULL && thread->state == ENDED)
        thread->state = FREE;
    else if (thread != NULL)
        thread->detached = true;
    return REAL(pthread_detach)(handle);
}

static void interrupt(struct thread *thread)
{
    if (thread->state != BLOCKED || !thread->interruptible)
        return;
    thread->interrupted = true;
    sim_ready((uint32_t)(thread - world->threads));
}

int pthread_cancel(pthread_t handle)
{
    sim_point("cancel", 0);
    int code = REAL(pthread_cancel)(handle);
    struct thread *thread = sim_on() ? thread_of(handle) : NULL;
    if (thread != NULL)
        interrupt(thread);
    return code;
}

int pthread_kill(pthread_t handle, int signal)
{
    sim_point("pthread_kill", (uint64_t)signal);
    struct thread *thread = sim_on() ? thread_of(handle) : NULL;
    if (thread == NULL)
        return REAL(pthread_kill)(handle, signal);
    if (thread->state == ENDED)
        return ESRCH;
    if (signal == 0)
        return 0;
    thread->signals |= 1ULL << signal;
    if (thread == sim_self())
        sim_takesignals();
    else
        interrupt(thread);
    return 0;
}
