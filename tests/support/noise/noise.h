/* SPDX-License-Identifier: MIT */
/*
 * noise.h - an unkind scheduler: each lock, unlock, wake-up and atomic operation may be delayed at random
 *
 * The build option LATCHKEY_NOISE has this included in front of every source of the library, and of nothing
 * else. What it delays are the moments at which a thread could be overtaken, so that orders which a
 * scheduler brings about once in a million times come once in a thousand.
 *
 * Seed     $LATCHKEY_NOISE_SEED, a number; else one drawn by the first process and inherited by its
 *          children. A program that ends badly prints it. It repeats the delays of each thread, and with
 *          them mostly the failure.
 * Amount   $LATCHKEY_NOISE, in percent: 100 unless said, 0 for none.
 */
#ifndef TESTS_NOISE_H
#define TESTS_NOISE_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

/* Mostly nothing, sometimes sched_yield(), seldom a sleep. Leaves errno alone, is no cancellation point. */
void lk__noise(void);

/* A macro does not expand its own name again: below, each name means the function behind it. */
#define LK__NOISY(call)                                                                                                \
    __extension__({                                                                                                    \
        lk__noise();                                                                                                   \
        __auto_type lk__noisy = (call);                                                                                \
        lk__noise();                                                                                                   \
        lk__noisy;                                                                                                     \
    })
#define LK__NOISY_VOID(call)                                                                                           \
    __extension__({                                                                                                    \
        lk__noise();                                                                                                   \
        call;                                                                                                          \
        lk__noise();                                                                                                   \
    })

#define pthread_mutex_lock(mu) LK__NOISY(pthread_mutex_lock(mu))
#define pthread_mutex_trylock(mu) LK__NOISY(pthread_mutex_trylock(mu))
#define pthread_mutex_unlock(mu) LK__NOISY(pthread_mutex_unlock(mu))
#define pthread_cond_wait(cond, mu) LK__NOISY(pthread_cond_wait(cond, mu))
#define pthread_cond_timedwait(cond, mu, until) LK__NOISY(pthread_cond_timedwait(cond, mu, until))
#define pthread_cond_signal(cond) LK__NOISY(pthread_cond_signal(cond))
#define pthread_cond_broadcast(cond) LK__NOISY(pthread_cond_broadcast(cond))
#define sem_post(sem) LK__NOISY(sem_post(sem))
#define sem_wait(sem) LK__NOISY(sem_wait(sem))
#define sem_clockwait(sem, clock, until) LK__NOISY(sem_clockwait(sem, clock, until))

/* What <stdatomic.h> and the library call: gcc's builtins, and clang's. */
#define __atomic_load(at, to, order) LK__NOISY_VOID(__atomic_load(at, to, order))
#define __atomic_load_n(at, order) LK__NOISY(__atomic_load_n(at, order))
#define __atomic_store(at, from, order) LK__NOISY_VOID(__atomic_store(at, from, order))
#define __atomic_store_n(at, value, order) LK__NOISY_VOID(__atomic_store_n(at, value, order))
#define __atomic_exchange(at, from, to, order) LK__NOISY_VOID(__atomic_exchange(at, from, to, order))
#define __atomic_exchange_n(at, value, order) LK__NOISY(__atomic_exchange_n(at, value, order))
#define __atomic_fetch_add(at, value, order) LK__NOISY(__atomic_fetch_add(at, value, order))
#define __atomic_fetch_sub(at, value, order) LK__NOISY(__atomic_fetch_sub(at, value, order))
#define __atomic_fetch_or(at, value, order) LK__NOISY(__atomic_fetch_or(at, value, order))
#define __atomic_fetch_and(at, value, order) LK__NOISY(__atomic_fetch_and(at, value, order))
#define __atomic_add_fetch(at, value, order) LK__NOISY(__atomic_add_fetch(at, value, order))
#define __atomic_sub_fetch(at, value, order) LK__NOISY(__atomic_sub_fetch(at, value, order))
#define __atomic_compare_exchange(at, expected, from, weak, yes, no)                                                   \
    LK__NOISY(__atomic_compare_exchange(at, expected, from, weak, yes, no))
#define __atomic_compare_exchange_n(at, expected, value, weak, yes, no)                                                \
    LK__NOISY(__atomic_compare_exchange_n(at, expected, value, weak, yes, no))

#define __c11_atomic_load(at, order) LK__NOISY(__c11_atomic_load(at, order))
#define __c11_atomic_store(at, value, order) LK__NOISY_VOID(__c11_atomic_store(at, value, order))
#define __c11_atomic_exchange(at, value, order) LK__NOISY(__c11_atomic_exchange(at, value, order))
#define __c11_atomic_fetch_add(at, value, order) LK__NOISY(__c11_atomic_fetch_add(at, value, order))
#define __c11_atomic_fetch_sub(at, value, order) LK__NOISY(__c11_atomic_fetch_sub(at, value, order))
#define __c11_atomic_fetch_or(at, value, order) LK__NOISY(__c11_atomic_fetch_or(at, value, order))
#define __c11_atomic_fetch_and(at, value, order) LK__NOISY(__c11_atomic_fetch_and(at, value, order))
#define __c11_atomic_compare_exchange_strong(at, expected, value, yes, no)                                             \
    LK__NOISY(__c11_atomic_compare_exchange_strong(at, expected, value, yes, no))
#define __c11_atomic_compare_exchange_weak(at, expected, value, yes, no)                                               \
    LK__NOISY(__c11_atomic_compare_exchange_weak(at, expected, value, yes, no))

#endif
