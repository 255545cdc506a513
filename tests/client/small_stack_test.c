/* SPDX-License-Identifier: MIT */
/*
 * small_stack_test.c - every public call fits on the smallest stack that pthreads allows, whatever its outcome; those of a
 * redlock fit on twice as much
 *
 * A call that the library exports and that is not made here fails the test. tls/client_small_stack is the same over TLS,
 * which needs more of the stack.
 *
 * simulated: yes
 * seconds: 12
 */
#include "quorum.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STACK = 16384, REDLOCK_STACK = 32768, CALLS_MAX = 1000, WAIT_MS = 60, HELD_MS = 250, HELD = 40, WAITERS = 4, QUORUM = 3 };
enum { CALLERS = 512 }; /* bytes of the stack that whoever calls has for itself */
enum { ANY = -1 };

/* --- calls on a small stack ---------------------------------------------------------------------------------------- */

static const char *made[CALLS_MAX]; /* which calls were made, all tests together */
static int made_count;
static char wrong[300]; /* the first outcome that was not expected */

static void note(const char *name)
{
    if (made_count < CALLS_MAX && (made_count == 0 || strcmp(made[made_count - 1], name) != 0))
        made[made_count++] = name;
}

static void check(const char *name, int line, int expected, int code)
{
    if (expected != ANY && code != expected && wrong[0] == '\0')
        snprintf(wrong, sizeof wrong, "%s in line %d: %d for %d: %.120s", name, line, code, expected, lk_errortext());
}

/* CALL(0, lk_mutex_lock, &m); ANY: the outcome is of no interest. SAY: what returns no code. */
#define CALL(expected, name, ...) (note(#name), check(#name, __LINE__, (expected), name(__VA_ARGS__)))
#define SAY(name, ...) (note(#name), (void)name(__VA_ARGS__))

static void *run_it(void *arg)
{
    void (*const *calls)(void) = arg;
    char callers[CALLERS] = "";
    __asm__ volatile("" ::"r"(callers) : "memory");
    (*calls)();
    __asm__ volatile("" ::"r"(callers) : "memory");
    return NULL;
}

static void on_a_stack_of(size_t size, void (*calls)(void))
{
    pthread_attr_t attr;
    pthread_t thread;
    wrong[0] = '\0';
    pthread_attr_init(&attr);
    assert_int_equal(0, pthread_attr_setstacksize(&attr, size));
    assert_int_equal(0, pthread_create(&thread, &attr, run_it, &calls));
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    if (wrong[0] != '\0')
        fail_msg("%s", wrong);
}

static void on_a_small_stack(void (*calls)(void))
{
    on_a_stack_of(STACK, calls);
}

static const struct timespec *soon(clockid_t clock)
{
    static struct timespec moment;
    clock_gettime(clock, &moment);
    moment.tv_nsec += WAIT_MS * 1000000L;
    moment.tv_sec += moment.tv_nsec / 1000000000;
    moment.tv_nsec %= 1000000000;
    return &moment;
}

#define SOON soon(CLOCK_REALTIME)
#define SOON_ON CLOCK_MONOTONIC, soon(CLOCK_MONOTONIC)

/* --- the clients and what they have --------------------------------------------------------------------------------- */

static const char *url, *file, *quorum;
static lk_client_t *a, *b; /* two clients, so two owners on one thread */
static lk_owner_t *owner;
static lk_mutex_t m, others_m;
static lk_rwlock_t rw, others_rw;
static lk_sem_t s, others_s;
static lk_latch_t l;
static lk_barrier_t br, others_br;
static lk_cond_t c;
static lk_once_t o, others_o;
static lk_multi_t multi;
static lk_stripes_t stripes;
static lk_redlock_t r, others_r;
static lk_how_t how;
static lk_waiter_t waiters[WAITERS];
static uint64_t token;
static int64_t ms;
static unsigned count;

static const lk_how_t *by(lk_owner_t *who, int64_t lease_ms)
{
    how = (lk_how_t)LK_HOW_INIT;
    how.timeout_ms = WAIT_MS;
    how.owner = who;
    how.lease_ms = lease_ms;
    how.fixed = lease_ms != 0;
    return &how;
}

/* Another thread, with a stack as usual, does something in a moment. */
static pthread_t helper;

static void *help(void *arg)
{
    void (*const *work)(void) = arg;
    sleep_ms(HELD_MS);
    (*work)();
    return NULL;
}

#define IN_A_MOMENT(work)                                                                                              \
    do {                                                                                                               \
        static void (*const in_a_moment)(void) = (work);                                                               \
        pthread_create(&helper, NULL, help, (void *)(uintptr_t)&in_a_moment);                                          \
    } while (0)
#define HELPED() pthread_join(helper, NULL)

static void begin(void)
{
    CALL(0, lk_client_open, &a, url);
    CALL(0, lk_client_open, &b, url);
    CALL(0, lk_owner_new, a, &owner);
    SAY(lk_owner_number, owner);
}

static void end(void)
{
    CALL(0, lk_owner_free, owner);
    CALL(0, lk_client_close, b);
    CALL(0, lk_client_close, a);
}

/* --- mutexes -------------------------------------------------------------------------------------------------------- */

static void let_go_of_m(void)
{
    (void)lk_mutex_forceunlock(&others_m);
}

static void mutex_with(const lk_mutexattr_t *attr)
{
    static lk_mutexinfo_t info = LK_MUTEXINFO_INIT;
    CALL(0, lk_mutex_init, &m, a, "orders", attr);
    CALL(0, lk_mutex_init, &others_m, b, "orders", attr);
    CALL(0, lk_mutex_lock, &m);
    CALL(0, lk_mutex_trylock, &m);
    CALL(0, lk_mutex_token, &m, &token);
    CALL(0, lk_mutex_remaining, &m, &ms);
    CALL(0, lk_mutex_check, &m);
    CALL(0, lk_mutex_extend, &m, 20000);
    CALL(ANY, lk_mutex_consistent, &m);
    CALL(0, lk_mutex_info, &m, &info);
    CALL(EBUSY, lk_mutex_trylock, &others_m);
    CALL(ETIMEDOUT, lk_mutex_timedlock, &others_m, SOON);
    CALL(ETIMEDOUT, lk_mutex_clocklock, &others_m, SOON_ON);
    CALL(ETIMEDOUT, lk_mutex_lockfor, &others_m, WAIT_MS);
    CALL(ETIMEDOUT, lk_mutex_lockwith, &others_m, by(NULL, 0));
    CALL(EPERM, lk_mutex_unlock, &others_m);
    CALL(0, lk_mutex_queue, &m, waiters, sizeof *waiters, WAITERS, &count);
    CALL(0, lk_mutex_unlock, &m);
    CALL(0, lk_mutex_unlock, &m);
    CALL(0, lk_mutex_lockwith, &m, by(owner, 0));
    CALL(0, lk_mutex_tokenby, &m, owner, &token);
    CALL(0, lk_mutex_remainingby, &m, owner, &ms);
    CALL(0, lk_mutex_checkby, &m, owner);
    CALL(0, lk_mutex_extendby, &m, owner, 20000);
    CALL(ANY, lk_mutex_consistentby, &m, owner);
    CALL(0, lk_mutex_unlockby, &m, owner);
    CALL(0, lk_mutex_lock, &m);
    IN_A_MOMENT(let_go_of_m);
    CALL(0, lk_mutex_lock, &others_m);
    HELPED();
    CALL(ESTALE, lk_mutex_check, &m);
    CALL(ESTALE, lk_mutex_unlock, &m);
    CALL(0, lk_mutex_forceunlock, &m);
    CALL(ANY, lk_mutex_unlock, &others_m);
    CALL(0, lk_mutex_destroy, &others_m);
    CALL(0, lk_mutex_destroy, &m);
}

/* A holder that does not renew is one that died. */
static void mutex_of_the_dead(const lk_mutexattr_t *attr)
{
    CALL(0, lk_mutex_init, &m, a, "bills", attr);
    CALL(0, lk_mutex_init, &others_m, b, "bills", attr);
    CALL(0, lk_mutex_lockwith, &others_m, by(NULL, 100));
    CALL(EOWNERDEAD, lk_mutex_lockfor, &m, 10000);
    CALL(0, lk_mutex_consistent, &m);
    CALL(0, lk_mutex_unlock, &m);
    CALL(ESTALE, lk_mutex_unlock, &others_m);
    CALL(0, lk_mutex_lockwith, &others_m, by(NULL, 100));
    CALL(EOWNERDEAD, lk_mutex_lockfor, &m, 10000);
    CALL(0, lk_mutex_unlock, &m);
    CALL(ENOTRECOVERABLE, lk_mutex_lockfor, &m, WAIT_MS);
    CALL(ESTALE, lk_mutex_unlock, &others_m);
    CALL(0, lk_mutex_destroy, &others_m);
    CALL(0, lk_mutex_destroy, &m);
}

static void mutexes(void)
{
    static lk_mutexattr_t plain = LK_MUTEXATTR_INIT, rich = LK_MUTEXATTR_INIT;
    rich.fair = rich.robust = 1;
    begin();
    mutex_with(&plain);
    rich.lease_ms = 20000;
    mutex_of_the_dead(&rich);
    end();
}

/* --- read-write locks ----------------------------------------------------------------------------------------------- */

static void let_go_of_rw(void)
{
    (void)lk_rwlock_forceunlock(&others_rw);
}

static void rwlocks(void)
{
    static lk_rwlockattr_t robust = LK_RWLOCKATTR_INIT;
    static lk_rwlockinfo_t info = LK_RWLOCKINFO_INIT;
    begin();
    CALL(0, lk_rwlock_init, &rw, a, "pages", NULL);
    CALL(0, lk_rwlock_init, &others_rw, b, "pages", NULL);
    CALL(0, lk_rwlock_wrlock, &rw);
    CALL(0, lk_rwlock_token, &rw, &token);
    CALL(0, lk_rwlock_remaining, &rw, &ms);
    CALL(0, lk_rwlock_check, &rw);
    CALL(0, lk_rwlock_extend, &rw, 20000);
    CALL(ANY, lk_rwlock_consistent, &rw);
    CALL(0, lk_rwlock_info, &rw, &info);
    CALL(EBUSY, lk_rwlock_tryrdlock, &others_rw);
    CALL(EBUSY, lk_rwlock_trywrlock, &others_rw);
    CALL(ETIMEDOUT, lk_rwlock_timedrdlock, &others_rw, SOON);
    CALL(ETIMEDOUT, lk_rwlock_timedwrlock, &others_rw, SOON);
    CALL(ETIMEDOUT, lk_rwlock_clockrdlock, &others_rw, SOON_ON);
    CALL(ETIMEDOUT, lk_rwlock_clockwrlock, &others_rw, SOON_ON);
    CALL(ETIMEDOUT, lk_rwlock_rdlockfor, &others_rw, WAIT_MS);
    CALL(ETIMEDOUT, lk_rwlock_wrlockfor, &others_rw, WAIT_MS);
    CALL(ETIMEDOUT, lk_rwlock_rdlockwith, &others_rw, by(NULL, 0));
    CALL(ETIMEDOUT, lk_rwlock_wrlockwith, &others_rw, by(NULL, 0));
    CALL(0, lk_rwlock_queue, &rw, waiters, sizeof *waiters, WAITERS, &count);
    CALL(0, lk_rwlock_downgrade, &rw);
    CALL(0, lk_rwlock_rdlock, &others_rw);
    CALL(0, lk_rwlock_unlock, &others_rw);
    CALL(0, lk_rwlock_unlock, &rw);
    CALL(0, lk_rwlock_wrlockwith, &rw, by(owner, 0));
    CALL(0, lk_rwlock_tokenby, &rw, owner, &token);
    CALL(0, lk_rwlock_remainingby, &rw, owner, &ms);
    CALL(0, lk_rwlock_checkby, &rw, owner);
    CALL(0, lk_rwlock_extendby, &rw, owner, 20000);
    CALL(ANY, lk_rwlock_consistentby, &rw, owner);
    CALL(0, lk_rwlock_downgradeby, &rw, owner);
    CALL(0, lk_rwlock_unlockby, &rw, owner);
    CALL(0, lk_rwlock_rdlock, &rw);
    IN_A_MOMENT(let_go_of_rw);
    CALL(0, lk_rwlock_wrlock, &others_rw);
    HELPED();
    CALL(ESTALE, lk_rwlock_unlock, &rw);
    IN_A_MOMENT(let_go_of_rw);
    CALL(0, lk_rwlock_rdlock, &rw);
    HELPED();
    CALL(0, lk_rwlock_forceunlock, &rw);
    CALL(ANY, lk_rwlock_unlock, &rw);
    CALL(ANY, lk_rwlock_unlock, &others_rw);
    CALL(0, lk_rwlock_destroy, &others_rw);
    CALL(0, lk_rwlock_destroy, &rw);
    robust.robust = 1;
    CALL(0, lk_rwlock_init, &rw, a, "books", &robust);
    CALL(0, lk_rwlock_init, &others_rw, b, "books", &robust);
    CALL(0, lk_rwlock_wrlockwith, &others_rw, by(NULL, 100));
    CALL(EOWNERDEAD, lk_rwlock_wrlockfor, &rw, 10000);
    CALL(0, lk_rwlock_unlock, &rw);
    CALL(ENOTRECOVERABLE, lk_rwlock_rdlockfor, &rw, WAIT_MS);
    CALL(ESTALE, lk_rwlock_unlock, &others_rw);
    CALL(0, lk_rwlock_destroy, &others_rw);
    CALL(0, lk_rwlock_destroy, &rw);
    end();
}

/* --- semaphores ------------------------------------------------------------------------------------------------------ */

static void post(void)
{
    (void)lk_sem_post(&others_s);
}

static void let_others_go(void)
{
    (void)lk_sem_addpermits(&others_s, 1);
}

static void semaphores(void)
{
    static lk_semattr_t leased = LK_SEMATTR_INIT;
    static lk_seminfo_t info = LK_SEMINFO_INIT;
    static char id[LK_PERMIT_ID], another[LK_PERMIT_ID];
    int value;
    unsigned expected = 2;
    begin();
    CALL(0, lk_sem_open, &s, a, "gates", O_CREAT, 1, NULL);
    CALL(0, lk_sem_init, &others_s, b, "gates", 1, NULL);
    CALL(0, lk_sem_wait, &s);
    CALL(EAGAIN, lk_sem_trywait, &others_s);
    CALL(ETIMEDOUT, lk_sem_timedwait, &others_s, SOON);
    CALL(ETIMEDOUT, lk_sem_clockwait, &others_s, SOON_ON);
    CALL(ETIMEDOUT, lk_sem_waitfor, &others_s, WAIT_MS);
    CALL(ETIMEDOUT, lk_sem_acquire, &others_s, 1, WAIT_MS);
    CALL(ETIMEDOUT, lk_sem_timedacquire, &others_s, 1, SOON);
    CALL(ETIMEDOUT, lk_sem_clockacquire, &others_s, 1, SOON_ON);
    CALL(ETIMEDOUT, lk_sem_acquirewith, &others_s, 1, by(NULL, 0));
    CALL(0, lk_sem_queue, &s, waiters, sizeof *waiters, WAITERS, &count);
    CALL(0, lk_sem_info, &s, &info);
    CALL(0, lk_sem_getvalue, &s, &value);
    IN_A_MOMENT(post);
    CALL(0, lk_sem_wait, &s);
    HELPED();
    CALL(0, lk_sem_post, &s);
    CALL(0, lk_sem_release, &s, 1);
    CALL(EEXIST, lk_sem_trysetpermits, &s, 2);
    CALL(0, lk_sem_setpermits, &s, &expected, 3);
    CALL(0, lk_sem_addpermits, &s, 1);
    CALL(0, lk_sem_drain, &s, &count);
    CALL(0, lk_sem_delete, &s);
    CALL(0, lk_sem_destroy, &others_s);
    CALL(0, lk_sem_destroy, &s);
    leased.leased = 1;
    CALL(0, lk_sem_init, &s, a, "desks", 1, &leased);
    CALL(0, lk_sem_init, &others_s, b, "desks", 1, &leased);
    CALL(0, lk_sem_wait, &s);
    CALL(0, lk_sem_token, &s, &token);
    CALL(0, lk_sem_remaining, &s, &ms);
    CALL(0, lk_sem_check, &s);
    CALL(0, lk_sem_extend, &s, 20000);
    CALL(ETIMEDOUT, lk_sem_waitfor, &others_s, WAIT_MS);
    CALL(ETIMEDOUT, lk_sem_acquireid, &others_s, WAIT_MS, another);
    CALL(ETIMEDOUT, lk_sem_timedacquireid, &others_s, SOON, another);
    CALL(ETIMEDOUT, lk_sem_clockacquireid, &others_s, SOON_ON, another);
    CALL(ETIMEDOUT, lk_sem_acquireidwith, &others_s, by(NULL, 0), another);
    IN_A_MOMENT(let_others_go);
    CALL(0, lk_sem_wait, &others_s);
    HELPED();
    CALL(0, lk_sem_info, &s, &info);
    CALL(0, lk_sem_queue, &s, waiters, sizeof *waiters, WAITERS, &count);
    CALL(0, lk_sem_post, &others_s);
    CALL(0, lk_sem_post, &s);
    CALL(0, lk_sem_acquireid, &s, WAIT_MS, id);
    CALL(0, lk_sem_tokenid, &s, id, &token);
    CALL(0, lk_sem_remainingid, &s, id, &ms);
    CALL(0, lk_sem_checkid, &s, id);
    CALL(0, lk_sem_extendid, &s, id, 20000);
    CALL(0, lk_sem_releaseid, &s, id);
    CALL(0, lk_sem_acquirewith, &s, 1, by(owner, 0));
    CALL(0, lk_sem_tokenby, &s, owner, &token);
    CALL(0, lk_sem_remainingby, &s, owner, &ms);
    CALL(0, lk_sem_checkby, &s, owner);
    CALL(0, lk_sem_extendby, &s, owner, 20000);
    CALL(0, lk_sem_releaseby, &s, owner, 1);
    CALL(0, lk_sem_delete, &s);
    CALL(0, lk_sem_destroy, &others_s);
    CALL(0, lk_sem_destroy, &s);
    end();
}

/* --- latches, barriers, conditions, what is done once ------------------------------------------------------------------ */

static void count_down(void)
{
    (void)lk_latch_countdown(&l);
}

static void latches(void)
{
    static lk_latchinfo_t info = LK_LATCHINFO_INIT;
    begin();
    CALL(0, lk_latch_init, &l, a, "start", NULL);
    CALL(0, lk_latch_trysetcount, &l, 3);
    CALL(0, lk_latch_setcount, &l, 3);
    CALL(0, lk_latch_countdown, &l);
    CALL(0, lk_latch_countdownby, &l, 1);
    CALL(0, lk_latch_getcount, &l, &count);
    CALL(0, lk_latch_info, &l, &info);
    CALL(ETIMEDOUT, lk_latch_timedwait, &l, SOON);
    CALL(ETIMEDOUT, lk_latch_clockwait, &l, SOON_ON);
    CALL(ETIMEDOUT, lk_latch_waitfor, &l, WAIT_MS);
    IN_A_MOMENT(count_down);
    CALL(0, lk_latch_wait, &l);
    HELPED();
    CALL(0, lk_latch_trysetcount, &l, 1);
    CALL(0, lk_latch_delete, &l);
    CALL(0, lk_latch_destroy, &l);
    end();
}

static void come_to_the_barrier(void)
{
    (void)!lk_barrier_waitfor(&others_br, 10000);
}

static void barriers(void)
{
    static lk_barrierinfo_t info = LK_BARRIERINFO_INIT;
    begin();
    CALL(0, lk_barrier_init, &br, a, "lunch", 2, NULL);
    CALL(0, lk_barrier_init, &others_br, b, "lunch", 2, NULL);
    CALL(ETIMEDOUT, lk_barrier_timedwait, &br, SOON);
    CALL(0, lk_barrier_reset, &br);
    CALL(ETIMEDOUT, lk_barrier_clockwait, &br, SOON_ON);
    CALL(ECANCELED, lk_barrier_waitfor, &br, WAIT_MS);
    CALL(0, lk_barrier_reset, &br);
    CALL(ETIMEDOUT, lk_barrier_waitfor, &br, WAIT_MS);
    CALL(0, lk_barrier_reset, &br);
    CALL(0, lk_barrier_info, &br, &info);
    IN_A_MOMENT(come_to_the_barrier);
    CALL(ANY, lk_barrier_wait, &br);
    HELPED();
    CALL(0, lk_barrier_destroy, &others_br);
    CALL(0, lk_barrier_destroy, &br);
    end();
}

static lk_cond_t others_c;

static void signal_c(void)
{
    (void)lk_cond_signal(&others_c);
}

static void conditions(void)
{
    static lk_condinfo_t info = LK_CONDINFO_INIT;
    begin();
    CALL(0, lk_mutex_init, &m, a, "orders", NULL);
    CALL(0, lk_cond_init, &c, a, "{orders}:some", NULL);
    CALL(0, lk_cond_init, &others_c, b, "{orders}:some", NULL);
    CALL(0, lk_mutex_lock, &m);
    CALL(0, lk_mutex_lock, &m);
    CALL(ETIMEDOUT, lk_cond_timedwait, &c, &m, SOON);
    CALL(ETIMEDOUT, lk_cond_clockwait, &c, &m, SOON_ON);
    CALL(ETIMEDOUT, lk_cond_waitfor, &c, &m, WAIT_MS);
    IN_A_MOMENT(signal_c);
    CALL(0, lk_cond_wait, &c, &m);
    HELPED();
    CALL(0, lk_cond_signal, &c);
    CALL(0, lk_cond_broadcast, &c);
    CALL(0, lk_cond_info, &c, &info);
    CALL(0, lk_mutex_unlock, &m);
    CALL(0, lk_mutex_unlock, &m);
    CALL(EPERM, lk_cond_waitfor, &c, &m, WAIT_MS);
    CALL(0, lk_cond_destroy, &others_c);
    CALL(0, lk_cond_destroy, &c);
    CALL(0, lk_mutex_destroy, &m);
    end();
}

static int do_it(void *arg)
{
    (void)arg;
    return 0;
}

static void fail_it(void)
{
    (void)!lk_once_failby(&o, owner);
}

static void done_once(void)
{
    static lk_onceinfo_t info = LK_ONCEINFO_INIT;
    static char *text;
    begin();
    CALL(0, lk_once_init, &o, a, "setup", NULL);
    CALL(0, lk_once_init, &others_o, b, "setup", NULL);
    CALL(0, lk_once_begin, &o, WAIT_MS);
    CALL(0, lk_once_token, &o, &token);
    CALL(0, lk_once_remaining, &o, &ms);
    CALL(0, lk_once_check, &o);
    CALL(0, lk_once_info, &o, &info);
    CALL(ETIMEDOUT, lk_once_begin, &others_o, WAIT_MS);
    CALL(ETIMEDOUT, lk_once_timedbegin, &others_o, SOON);
    CALL(ETIMEDOUT, lk_once_clockbegin, &others_o, SOON_ON);
    CALL(ETIMEDOUT, lk_once_beginwith, &others_o, by(NULL, 0));
    CALL(0, lk_once_fail, &o);
    CALL(0, lk_once_beginwith, &o, by(owner, 0));
    CALL(0, lk_once_tokenby, &o, owner, &token);
    CALL(0, lk_once_remainingby, &o, owner, &ms);
    CALL(0, lk_once_checkby, &o, owner);
    IN_A_MOMENT(fail_it);
    CALL(0, lk_once_begin, &others_o, 10000);
    HELPED();
    CALL(0, lk_once_fail, &others_o);
    CALL(EPERM, lk_once_failby, &o, owner);
    CALL(0, lk_once_beginwith, &o, by(owner, 0));
    CALL(0, lk_once_endby, &o, owner, "done");
    CALL(0, lk_once_result, &o, &text);
    SAY(lk_free, text);
    CALL(EALREADY, lk_once_begin, &others_o, WAIT_MS);
    CALL(0, lk_once_reset, &o);
    CALL(0, lk_once_call, &o, do_it, NULL);
    CALL(0, lk_once_reset, &o);
    CALL(0, lk_once_begin, &o, WAIT_MS);
    CALL(0, lk_once_end, &o, NULL);
    CALL(0, lk_once_destroy, &others_o);
    CALL(0, lk_once_destroy, &o);
    end();
}

/* --- several at once ------------------------------------------------------------------------------------------------------ */

static void sets(void)
{
    static lk_multiinfo_t info = LK_MULTIINFO_INIT;
    begin();
    CALL(0, lk_mutex_init, &m, a, "orders", NULL);
    CALL(0, lk_mutex_init, &others_m, b, "orders", NULL);
    CALL(0, lk_rwlock_init, &rw, a, "pages", NULL);
    CALL(0, lk_rwlock_init, &others_rw, a, "books", NULL);
    CALL(0, lk_multi_init, &multi);
    CALL(0, lk_multi_addmutex, &multi, &m);
    CALL(0, lk_multi_addread, &multi, &rw);
    CALL(0, lk_multi_addwrite, &multi, &others_rw);
    CALL(0, lk_multi_lock, &multi);
    CALL(0, lk_multi_remaining, &multi, &ms);
    CALL(0, lk_multi_check, &multi);
    CALL(0, lk_multi_info, &multi, &info);
    CALL(0, lk_multi_unlock, &multi);
    CALL(0, lk_multi_lockwith, &multi, by(owner, 0));
    CALL(0, lk_multi_remainingby, &multi, owner, &ms);
    CALL(0, lk_multi_checkby, &multi, owner);
    CALL(0, lk_multi_unlockby, &multi, owner);
    CALL(0, lk_mutex_lock, &others_m);
    CALL(EBUSY, lk_multi_trylock, &multi);
    CALL(ETIMEDOUT, lk_multi_timedlock, &multi, SOON);
    CALL(ETIMEDOUT, lk_multi_clocklock, &multi, SOON_ON);
    CALL(ETIMEDOUT, lk_multi_lockfor, &multi, WAIT_MS);
    IN_A_MOMENT(let_go_of_m);
    CALL(0, lk_multi_lock, &multi);
    HELPED();
    CALL(0, lk_multi_unlock, &multi);
    CALL(ESTALE, lk_mutex_unlock, &others_m);
    CALL(0, lk_multi_destroy, &multi);
    CALL(0, lk_rwlock_destroy, &others_rw);
    CALL(0, lk_rwlock_destroy, &rw);
    CALL(0, lk_mutex_destroy, &others_m);
    CALL(0, lk_mutex_destroy, &m);
    CALL(0, lk_stripes_init, &stripes, a, "rows", 4);
    SAY(lk_stripes_count, &stripes);
    SAY(lk_stripes_at, &stripes, 1);
    SAY(lk_stripes_of, &stripes, "key", 3);
    SAY(lk_stripes_index, &stripes, "key", 3);
    CALL(0, lk_stripes_trylockany, &stripes, 0, &count);
    CALL(0, lk_mutex_unlock, lk_stripes_at(&stripes, count));
    CALL(0, lk_stripes_trylockanyby, &stripes, owner, 0, &count);
    CALL(0, lk_mutex_unlockby, lk_stripes_at(&stripes, count), owner);
    CALL(0, lk_stripes_destroy, &stripes);
    CALL(0, lk_stripes_initattr, &stripes, a, "rows", 2, NULL);
    CALL(0, lk_stripes_destroy, &stripes);
    end();
}

/* --- clients ----------------------------------------------------------------------------------------------------------------- */

static void hear(const lk_event_t *event, void *arg)
{
    (void)event, (void)arg;
}

static void ignore(void *arg, int level, const char *text)
{
    (void)level, (void)text, (void)arg;
}

static void of_the_client(void)
{
    static lk_event_t event = LK_EVENT_INIT;
    static lk_inspected_t found = LK_INSPECTED_INIT;
    static lk_inspectstats_t stats = LK_INSPECTSTATS_INIT;
    static lk_who_t who = LK_WHO_INIT;
    static lk_holder_t holder;
    static lk_clientattr_t attr = LK_CLIENTATTR_INIT;
    static lk_inspect_t *walk;
    static lk_events_t *queue;
    static char *text;
    static uint64_t handle;
    int fd;
    SAY(lk_version);
    SAY(lk_strerror, EIO);
    SAY(lk_errortext);
    SAY(lk_errorleft);
    SAY(lk_errorsettles);
    CALL(0, lk_addlog, ignore, LK_LOG_ERROR, NULL, &handle);
    CALL(0, lk_removelog, handle);
    begin();
    CALL(0, lk_mutex_init, &m, a, "orders", NULL);
    CALL(0, lk_client_addlistener, a, hear, NULL, &handle);
    CALL(0, lk_events_open, a, &queue);
    CALL(0, lk_events_fd, queue, &fd);
    CALL(ANY, lk_events_next, queue, &event);
    CALL(0, lk_mutex_lock, &m);
    CALL(0, lk_client_stats, a, &text);
    SAY(lk_free, text);
    CALL(0, lk_client_metrics, a, LK_METRICS_OBJECTS_MAX, &text);
    SAY(lk_free, text);
    CALL(0, lk_inspect_holders, a, LK_KIND_MUTEX, "orders", &holder, sizeof holder, 1, &count);
    CALL(ANY, lk_inspect_who, a, holder.id, &who);
    CALL(0, lk_inspect_open, &walk, a, NULL);
    CALL(0, lk_inspect_next, walk, &found);
    CALL(0, lk_inspect_stats, walk, &stats);
    SAY(lk_inspect_close, walk);
    CALL(0, lk_mutex_forceunlock, &m);
    CALL(ESTALE, lk_mutex_unlock, &m);
    CALL(0, lk_events_close, queue);
    CALL(0, lk_client_removelistener, a, handle);
    CALL(0, lk_mutex_destroy, &m);
    end();
    attr.url = url;
    CALL(0, lk_survey, &attr, &text);
    SAY(lk_free, text);
    CALL(0, lk_client_openwith, &a, &attr);
    CALL(0, lk_client_setdefault, a);
    CALL(0, lk_client_close, a);
    CALL(0, lk_client_setdefaulturl, url);
    CALL(0, lk_client_default, &a);
    CALL(0, lk_client_close, a);
    CALL(0, lk_client_open_file, &a, file);
    CALL(0, lk_client_close, a);
}

/* A client that is closed releases what it holds, many of these at once. */
static void closed_with_holds(void)
{
    static lk_mutex_t many[HELD];
    begin();
    for (int i = 0; i < HELD; i++) {
        char name[16];
        snprintf(name, sizeof name, "many:%d", i);
        CALL(0, lk_mutex_init, &many[i], a, name, NULL);
        CALL(0, lk_mutex_lock, &many[i]);
    }
    end();
    for (int i = 0; i < HELD; i++)
        CALL(0, lk_mutex_destroy, &many[i]);
}

/* --- without a server --------------------------------------------------------------------------------------------------------- */

static void hold_all(void)
{
    static lk_semattr_t leased = LK_SEMATTR_INIT;
    leased.leased = 1;
    begin();
    CALL(0, lk_mutex_init, &m, a, "orders", NULL);
    CALL(0, lk_mutex_init, &others_m, a, "bills", NULL);
    CALL(0, lk_rwlock_init, &rw, a, "pages", NULL);
    CALL(0, lk_sem_init, &s, a, "desks", 2, &leased);
    CALL(0, lk_sem_init, &others_s, a, "gates", 2, NULL);
    CALL(0, lk_once_init, &o, a, "setup", NULL);
    CALL(0, lk_latch_init, &l, a, "start", NULL);
    CALL(0, lk_barrier_init, &br, a, "lunch", 2, NULL);
    CALL(0, lk_cond_init, &c, a, "{orders}:some", NULL);
    CALL(0, lk_latch_setcount, &l, 2);
    CALL(0, lk_mutex_lock, &m);
    CALL(0, lk_rwlock_wrlock, &rw);
    CALL(0, lk_sem_wait, &s);
    CALL(0, lk_sem_wait, &others_s);
    CALL(0, lk_once_begin, &o, WAIT_MS);
}

static void unserved(void)
{
    static lk_inspect_t *walk;
    static char *text;
    static lk_clientattr_t attr = LK_CLIENTATTR_INIT;
    attr.url = url;
    CALL(ANY, lk_mutex_check, &m);
    CALL(ANY, lk_mutex_extend, &m, 2000);
    CALL(ANY, lk_cond_waitfor, &c, &m, WAIT_MS);
    CALL(ANY, lk_cond_signal, &c);
    CALL(ANY, lk_mutex_lockfor, &others_m, WAIT_MS);
    CALL(ANY, lk_mutex_trylock, &others_m);
    CALL(ANY, lk_mutex_unlock, &m);
    CALL(ANY, lk_rwlock_downgrade, &rw);
    CALL(ANY, lk_rwlock_unlock, &rw);
    CALL(ANY, lk_rwlock_rdlockfor, &rw, WAIT_MS);
    CALL(ANY, lk_sem_post, &s);
    CALL(ANY, lk_sem_waitfor, &s, WAIT_MS);
    CALL(ANY, lk_sem_post, &others_s);
    CALL(ANY, lk_sem_waitfor, &others_s, WAIT_MS);
    CALL(ANY, lk_once_end, &o, "x");
    CALL(ANY, lk_once_begin, &o, WAIT_MS);
    CALL(ANY, lk_latch_countdown, &l);
    CALL(ANY, lk_latch_waitfor, &l, WAIT_MS);
    CALL(ANY, lk_barrier_waitfor, &br, WAIT_MS);
    CALL(ANY, lk_inspect_open, &walk, a, NULL);
    CALL(ANY, lk_survey, &attr, &text);
    CALL(ANY, lk_owner_free, owner);
    CALL(ANY, lk_client_close, b);
    CALL(ANY, lk_client_close, a);
    CALL(ENOTCONN, lk_client_open, &a, url);
}

/* There is no replica that could acknowledge what is granted. */
/* ENOTCONN, or EIO on a busy machine. */
static void unacknowledged(void)
{
    static lk_semattr_t leased = LK_SEMATTR_INIT;
    leased.leased = 1;
    begin();
    CALL(0, lk_mutex_init, &m, a, "orders", NULL);
    CALL(0, lk_rwlock_init, &rw, a, "pages", NULL);
    CALL(0, lk_sem_init, &s, a, "desks", 2, &leased);
    CALL(0, lk_sem_init, &others_s, a, "gates", 2, NULL);
    CALL(0, lk_once_init, &o, a, "setup", NULL);
    CALL(0, lk_multi_init, &multi);
    CALL(0, lk_multi_addmutex, &multi, &m);
    CALL(0, lk_multi_addread, &multi, &rw);
    CALL(ANY, lk_mutex_lockfor, &m, WAIT_MS);
    CALL(ANY, lk_mutex_trylock, &m);
    CALL(ANY, lk_rwlock_wrlockfor, &rw, WAIT_MS);
    CALL(ANY, lk_rwlock_rdlockfor, &rw, WAIT_MS);
    CALL(ANY, lk_sem_waitfor, &s, WAIT_MS);
    CALL(ANY, lk_sem_waitfor, &others_s, WAIT_MS);
    CALL(ANY, lk_once_begin, &o, WAIT_MS);
    CALL(ANY, lk_multi_lockfor, &multi, WAIT_MS);
    CALL(0, lk_multi_destroy, &multi);
    CALL(0, lk_once_destroy, &o);
    CALL(0, lk_sem_destroy, &others_s);
    CALL(0, lk_sem_destroy, &s);
    CALL(0, lk_rwlock_destroy, &rw);
    CALL(0, lk_mutex_destroy, &m);
    end();
}

static void end_all(void)
{
    CALL(0, lk_mutex_destroy, &m);
    CALL(0, lk_mutex_destroy, &others_m);
    CALL(0, lk_rwlock_destroy, &rw);
    CALL(0, lk_sem_destroy, &s);
    CALL(0, lk_sem_destroy, &others_s);
    CALL(0, lk_once_destroy, &o);
    CALL(0, lk_latch_destroy, &l);
    CALL(0, lk_barrier_destroy, &br);
    CALL(0, lk_cond_destroy, &c);
}

/* --- quorums ------------------------------------------------------------------------------------------------------------------- */

static void let_go_of_r(void)
{
    (void)!lk_redlock_unlockby(&r, owner);
}

static void redlocks(void)
{
    static lk_redlockinfo_t info = LK_REDLOCKINFO_INIT;
    static lk_redlockattr_t attr = LK_REDLOCKATTR_INIT;
    attr.fenced = 1;
    attr.longest_lease_ms = -1;
    CALL(0, lk_client_open, &a, quorum);
    CALL(0, lk_client_open, &b, quorum);
    CALL(0, lk_owner_new, a, &owner);
    CALL(0, lk_redlock_init, &r, a, "orders", &attr);
    CALL(0, lk_redlock_init, &others_r, b, "orders", &attr);
    CALL(0, lk_redlock_lock, &r);
    CALL(0, lk_redlock_token, &r, &token);
    CALL(0, lk_redlock_remaining, &r, &ms);
    CALL(ANY, lk_redlock_check, &r);
    CALL(ANY, lk_redlock_extend, &r, 20000);
    CALL(ANY, lk_redlock_info, &r, &info);
    CALL(ANY, lk_redlock_trylock, &others_r);
    CALL(ANY, lk_redlock_timedlock, &others_r, SOON);
    CALL(ANY, lk_redlock_clocklock, &others_r, SOON_ON);
    CALL(ANY, lk_redlock_lockfor, &others_r, WAIT_MS);
    CALL(ANY, lk_redlock_lockwith, &others_r, by(NULL, 0));
    CALL(ANY, lk_redlock_unlock, &r);
    how = *by(owner, 0);
    how.timeout_ms = 10000;
    CALL(0, lk_redlock_lockwith, &r, &how);
    CALL(0, lk_redlock_tokenby, &r, owner, &token);
    CALL(0, lk_redlock_remainingby, &r, owner, &ms);
    CALL(ANY, lk_redlock_checkby, &r, owner);
    CALL(ANY, lk_redlock_extendby, &r, owner, 20000);
    IN_A_MOMENT(let_go_of_r);
    CALL(0, lk_redlock_lockfor, &others_r, 20000);
    HELPED();
    CALL(EPERM, lk_redlock_unlockby, &r, owner);
    CALL(ANY, lk_redlock_unlock, &others_r);
    CALL(0, lk_redlock_lock, &r);
    CALL(0, lk_owner_free, owner);
    CALL(ANY, lk_client_close, b);
    CALL(ANY, lk_client_close, a);
    CALL(0, lk_redlock_destroy, &others_r);
    CALL(0, lk_redlock_destroy, &r);
}

/* --- the test ---------------------------------------------------------------------------------------------------------------- */

static void begin_world(struct world *w, const char *options)
{
    if (SANITIZED)
        skip(); /* sanitizers need more stack than that for themselves */
    static char kept[1200];
    snprintf(kept, sizeof kept, "%s", world_url(w, options));
    url = kept;
    world_allow(w, "*");
}

#define FITS(calls)                                                                                                    \
    static void calls##_fit(struct world *w)                                                                           \
    {                                                                                                                  \
        begin_world(w, "lease=30s&connect_timeout=20s&command_timeout=8s");                                                               \
        on_a_small_stack(calls);                                                                                       \
    }

FITS(mutexes)
FITS(rwlocks)
FITS(semaphores)
FITS(latches)
FITS(barriers)
FITS(conditions)
FITS(done_once)
FITS(sets)
FITS(closed_with_holds)

static void calls_of_a_client_fit(struct world *w)
{
    static char path[128];
    begin_world(w, "lease=30s&connect_timeout=20s&command_timeout=8s");
    snprintf(path, sizeof path, "%s/client.json", w->dir);
    FILE *json = fopen(path, "we");
    fprintf(json, "{\"path\": \"%s\"}", w->socket);
    fclose(json);
    file = path;
    on_a_small_stack(of_the_client);
}

static void failures_without_a_server_fit(struct world *w)
{
    begin_world(w, "lease=2s&connect_timeout=600ms&command_timeout=200ms");
    on_a_small_stack(hold_all);
    world_kill_server(w);
    on_a_small_stack(unserved);
    on_a_small_stack(end_all);
    world_restart_server(w);
}

static void failures_at_a_server_that_stands_still_fit(struct world *w)
{
    begin_world(w, "lease=2s&connect_timeout=600ms&command_timeout=200ms");
    on_a_small_stack(hold_all);
    world_stop_server(w);
    on_a_small_stack(unserved);
    world_cont_server(w);
    on_a_small_stack(end_all);
}

static void failures_without_replicas_fit(struct world *w)
{
    begin_world(w, "lease=30s&connect_timeout=20s&command_timeout=400ms&wait_replicas=1");
    on_a_small_stack(unacknowledged);
}

static void redlocks_fit(struct world *w)
{
    begin_world(w, "lease=30s");
    struct quorum *q = quorum_begin(w, QUORUM);
    static char kept[1200];
    snprintf(kept, sizeof kept, "%s", quorum_url(q, "lease=30s&connect_timeout=20s&command_timeout=8s"));
    quorum = kept;
    on_a_stack_of(REDLOCK_STACK, redlocks);
}

static bool was_made(const char *name)
{
    for (int i = 0; i < made_count; i++)
        if (strcmp(made[i], name) == 0)
            return true;
    return false;
}

static void no_call_is_missing(struct world *w)
{
    char name[128];
    int missing = 0;
    begin_world(w, "");
    FILE *symbols = fopen(LK_SYMBOLS, "re");
    assert_non_null(symbols);
    while (fscanf(symbols, "%127s", name) == 1)
        if (!was_made(name))
            missing += fprintf(stderr, "%s is not tried\n", name) > 0;
    fclose(symbols);
    assert_int_equal(0, missing);
}

int main(void)
{
    return world_run(mutexes_fit, rwlocks_fit, semaphores_fit, latches_fit, barriers_fit, conditions_fit, done_once_fit,
                     sets_fit, calls_of_a_client_fit, closed_with_holds_fit, failures_without_a_server_fit,
                     failures_at_a_server_that_stands_still_fit, failures_without_replicas_fit, redlocks_fit, no_call_is_missing);
}
