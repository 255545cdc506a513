/* SPDX-License-Identifier: MIT */
/* still.c - a thread stands still in a signal handler: see still.h */
#include "still.h"
#include "world.h"

#include "base/mu.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STILL_MS = 40000, COMES_MS = 20000 };

enum { NOT_YET, STANDS, HAS_A_LOCK }; /* where the thread is */
static int stands, goes_on;           /* atomic builtins */

/* It rested when it was looked at, but may have gone on before the signal came. */
static bool has_a_lock(void)
{
#ifdef NDEBUG
    return false; /* nobody knows */
#else
    return !lk__mu_holdsnone();
#endif
}

static void stand_still(int number)
{
    int before = errno;
    (void)number;
    if (has_a_lock()) {
        __atomic_store_n(&stands, HAS_A_LOCK, __ATOMIC_SEQ_CST);
        return;
    }
    __atomic_store_n(&stands, STANDS, __ATOMIC_SEQ_CST);
    for (int ms = 0; ms < STILL_MS && __atomic_load_n(&goes_on, __ATOMIC_SEQ_CST) == 0; ms += 5)
        syscall(SYS_nanosleep, &(struct timespec){ 0, 5000000 }, NULL);
    __atomic_store_n(&stands, NOT_YET, __ATOMIC_SEQ_CST);
    errno = before;
}

void still_begin(struct worker *worker)
{
    struct sigaction action = { .sa_handler = stand_still };
    assert_int_equal(0, sigaction(SIGUSR1, &action, NULL));
    __atomic_store_n(&goes_on, 0, __ATOMIC_SEQ_CST);
    do {
        __atomic_store_n(&stands, NOT_YET, __ATOMIC_SEQ_CST);
        threads_rest();
        assert_int_equal(0, pthread_kill(worker->thread, SIGUSR1));
        eventually(__atomic_load_n(&stands, __ATOMIC_SEQ_CST) != NOT_YET, COMES_MS);
    } while (__atomic_load_n(&stands, __ATOMIC_SEQ_CST) == HAS_A_LOCK);
}

void still_end(void)
{
    __atomic_store_n(&goes_on, 1, __ATOMIC_SEQ_CST);
    eventually(__atomic_load_n(&stands, __ATOMIC_SEQ_CST) == NOT_YET, COMES_MS);
}
