/* SPDX-License-Identifier: MIT */
/*
 * mu_test.c - a mutex knows who holds it, and taking two in the wrong order is noticed, contended or not
 *
 * labels: threads memory
 */
#include "world.h"

#include "base/base.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef NDEBUG

_Static_assert(sizeof(struct lk__mu) == sizeof(pthread_mutex_t), "users get a pthread_mutex_t and nothing more");

static void nothing_is_checked(void)
{
    struct lk__mu inner = LK__MU_INITIALIZER(LK__MU_PARKER), outer = LK__MU_INITIALIZER(LK__MU_CLIENT);
    lk__mu_lock(&inner);
    lk__mu_lock(&outer);
    lk__mu_unlock(&outer);
    lk__mu_unlock(&inner);
}

int main(void)
{
    return plain_run(nothing_is_checked);
}

#else

static struct lk__mu client, hub, other_hub, parker;
static pthread_cond_t cond;

static int make(void **state)
{
    (void)state;
    lk__mu_init(&client, LK__MU_CLIENT);
    lk__mu_init(&hub, LK__MU_HUB);
    lk__mu_init(&other_hub, LK__MU_HUB);
    lk__mu_init(&parker, LK__MU_PARKER);
    lk__cond_init(&cond);
    return 0;
}

static int unmake(void **state)
{
    (void)state;
    lk__mu_destroy(&client);
    lk__mu_destroy(&hub);
    lk__mu_destroy(&other_hub);
    lk__mu_destroy(&parker);
    pthread_cond_destroy(&cond);
    return 0;
}

/* Does an assertion end a process that does this? Its words go nowhere. */
static bool is_caught(void (*mistake)(void))
{
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
        signal(SIGABRT, SIG_DFL);
        close(STDERR_FILENO);
        mistake();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void in_order(void)
{
    lk__mu_lock(&client);
    lk__mu_lock(&hub);
    lk__mu_lock(&parker);
    lk__mu_unlock(&hub); /* in any order */
    lk__mu_unlock(&client);
    lk__mu_unlock(&parker);
    lk__mu_lock(&client);
    lk__mu_unlock(&client);
}

static void inverted(void)
{
    lk__mu_lock(&parker);
    lk__mu_lock(&hub);
}

static void inverted_by_two(void)
{
    lk__mu_lock(&client);
    lk__mu_lock(&parker);
    lk__mu_lock(&hub);
}

static void two_of_a_rank(void)
{
    lk__mu_lock(&hub);
    lk__mu_lock(&other_hub);
}

static void twice(void)
{
    lk__mu_lock(&hub);
    lk__mu_lock(&hub);
}

static void not_held(void)
{
    lk__mu_lock(&hub);
    lk__mu_unlock(&other_hub);
}

static void waited_for_without(void)
{
    lk__cond_wait(&cond, &hub, lk__now_us());
}

/* Nobody who wants `client` could go on meanwhile, not even the one who ends this wait. */
static void waited_for_with_another(void)
{
    lk__mu_lock(&client);
    lk__mu_lock(&hub);
    lk__cond_wait(&cond, &hub, lk__now_us());
}

static void destroyed_while_held(void)
{
    lk__mu_lock(&hub);
    lk__mu_destroy(&hub);
}

static void never_made(void)
{
    static struct lk__mu zeroes;
    lk__mu_lock(&zeroes);
}

static void an_inverted_order_is_noticed(void)
{
    assert_false(is_caught(in_order));
    assert_true(is_caught(inverted));
    assert_true(is_caught(inverted_by_two));
    assert_true(is_caught(two_of_a_rank));
    assert_true(is_caught(twice));
}

static void other_mistakes_are_noticed(void)
{
    assert_true(is_caught(not_held));
    assert_true(is_caught(waited_for_without));
    assert_true(is_caught(waited_for_with_another));
    assert_true(is_caught(destroyed_while_held));
    assert_true(is_caught(never_made));
}

static int is_held_here(void *arg)
{
    return lk__mu_held(arg);
}

static void a_mutex_is_held_by_the_thread_that_took_it(void)
{
    assert_false(lk__mu_held(&hub));
    lk__mu_lock(&hub);
    assert_true(lk__mu_held(&hub));
    assert_false(lk__mu_held(&other_hub)); /* of the same rank */
    assert_false(in_thread(is_held_here, &hub));
    lk__mu_unlock(&hub);
    assert_false(lk__mu_held(&hub));
}

static void a_wait_ends_with_the_mutex_held(void)
{
    lk__mu_lock(&hub);
    assert_int_equal(lk__cond_wait(&cond, &hub, lk__now_us() + 1000), ETIMEDOUT);
    assert_true(lk__mu_held(&hub));
    lk__mu_unlock(&hub);
}

static volatile sig_atomic_t seen_held;

static void look_at_mutexes(int number)
{
    (void)number;
    seen_held = !lk__mu_holdsnone();
}

static int take_and_leave(void *mu)
{
    lk__mu_lock(mu);
    lk__mu_unlock(mu);
    return 0;
}

/* It may run when the mutex is taken already, and the call that takes it has not returned. */
static void a_signal_handler_finds_a_mutex_that_its_thread_takes(void)
{
    struct worker worker;
    struct sigaction before, action = { .sa_handler = look_at_mutexes };
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    seen_held = 0;
    lk__mu_lock(&hub);
    worker_start(&worker, take_and_leave, &hub);
    threads_rest();
    assert_int_equal(pthread_kill(worker.thread, SIGUSR1), 0);
    lk__mu_unlock(&hub);
    assert_int_equal(worker_join(&worker), 0);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    assert_true(seen_held);
}

static void unlock_hub(void *arg)
{
    *(bool *)arg = lk__mu_held(&hub);
    lk__mu_unlock(&hub);
}

static void *wait_for_ever(void *was_held)
{
    lk__mu_lock(&hub);
    pthread_cleanup_push(unlock_hub, was_held);
    for (;;)
        lk__cond_wait(&cond, &hub, LK__NEVER);
    pthread_cleanup_pop(0);
    return NULL;
}

/* POSIX: its cleanup handlers find the mutex locked. */
static void a_thread_that_is_cancelled_in_a_wait_holds_the_mutex(void)
{
    pthread_t thread;
    bool was_held = false;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_ever, &was_held), 0);
    assert_int_equal(pthread_cancel(thread), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    lk__mu_lock(&hub);
    lk__mu_unlock(&hub);
    assert_true(was_held);
}

static void gives_back_after_a_fork(void)
{
    if (lk__mu_held(&hub))
        lk__mu_unlock(&hub);
    in_order();
}

/* The child has the forking thread's copies: what that held is held there, too. */
static void the_child_of_a_fork_holds_what_its_thread_held(void)
{
    lk__mu_lock(&hub);
    assert_false(is_caught(gives_back_after_a_fork));
    assert_true(lk__mu_held(&hub));
    lk__mu_unlock(&hub);
}

int main(void)
{
    return plain_run_between(make, unmake, an_inverted_order_is_noticed, other_mistakes_are_noticed,
                             a_mutex_is_held_by_the_thread_that_took_it, a_wait_ends_with_the_mutex_held,
                             a_signal_handler_finds_a_mutex_that_its_thread_takes,
                             a_thread_that_is_cancelled_in_a_wait_holds_the_mutex,
                             the_child_of_a_fork_holds_what_its_thread_held);
}

#endif
