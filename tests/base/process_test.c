/* SPDX-License-Identifier: MIT */
/*
 * process_test.c - no process is taken for another after a fork, no thread for one that ended before
 *
 * labels: threads memory
 */
#include "assert_lk.h"
#include "base/base.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WAVES = SANITIZED ? 20 : 100, THREADS = 20 };

/* The exit status of a child that runs `work`, as the parent sees it. */
static int in_fork(int (*work)(void *arg), void *arg)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0)
        _exit(work(arg));
    if (child < 0 || waitpid(child, &status, 0) != child)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* --- owners --------------------------------------------------------------------------------------------- */

static uint64_t owners[WAVES * THREADS + 1];

static int note_owner(int index, void *arg)
{
    uint64_t *wave = arg;
    struct lk__thread *self = lk__thread_self();
    if (self == NULL || lk__thread_known() != self || lk__thread_self() != self)
        return 1;
    wave[index] = self->owner;
    return 0;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The system reuses ids of ended threads; whose hold is whose must not depend on them. */
static void owner_numbers_are_never_used_again(void)
{
    enum { COUNT = WAVES * THREADS + 1 };
    for (int i = 0; i < WAVES; i++)
        assert_int_equal(run_threads(THREADS, note_owner, &owners[i * THREADS]), 0);
    owners[COUNT - 1] = lk__thread_self()->owner;
    qsort(owners, COUNT, sizeof *owners, by_number);
    assert_true(owners[0] != 0);
    for (int i = 1; i < COUNT; i++)
        assert_true(owners[i - 1] < owners[i]);
}

static int know_nothing_at_first(void *arg)
{
    (void)arg;
    if (lk__thread_known() != NULL)
        return 1;
    struct lk__thread *self = lk__thread_self();
    if (self == NULL || lk__thread_known() != self)
        return 2;
    return self->holds != 0 || self->errortext[0] != '\0' || self->process != lk__process();
}

static void looking_for_a_thread_makes_none(void)
{
    assert_int_equal(in_thread(know_nothing_at_first, NULL), 0);
}

/* --- processes ------------------------------------------------------------------------------------------ */

static uintptr_t numbers[THREADS];

static int note_process(int index, void *arg)
{
    (void)arg;
    numbers[index] = lk__process();
    return 0;
}

static int note_processes(void *arg)
{
    uintptr_t parents = *(uintptr_t *)arg;
    uintptr_t mine = lk__process();
    if (!THREAD_SANITIZED || parents == 0)
        run_threads(THREADS, note_process, NULL);
    else /* it does not follow threads behind a fork */
        for (int i = 0; i < THREADS; i++)
            note_process(i, NULL);
    for (int i = 0; i < THREADS; i++)
        if (numbers[i] != mine)
            return 1;
    if (mine == 0 || mine % 2 != 0)
        return 2;
    return mine == parents ? 3 : 0;
}

static void all_threads_see_one_number_of_their_process(void)
{
    uintptr_t none = 0;
    assert_int_equal(note_processes(&none), 0);
    assert_int_equal(lk__process(), numbers[0]);
}

static int note_grandchild(void *arg)
{
    uintptr_t mine = lk__process(); /* before the fork: what is known is what could be mistaken */
    int rc = note_processes(arg);
    return rc != 0 ? rc : in_fork(note_processes, &mine);
}

static void a_forked_child_has_another_number(void)
{
    uintptr_t mine = lk__process();
    assert_int_equal(in_fork(note_processes, &mine), 0);
    assert_int_equal(in_fork(note_grandchild, &mine), 0);
    assert_int_equal(lk__process(), mine);
}

static int be_somebody_else(void *arg)
{
    const struct lk__thread *parents = arg;
    struct lk__thread before = *parents, *self = lk__thread_self();
    if (self->owner == before.owner)
        return 1;
    if (self->process == before.process || self->process != lk__process())
        return 2;
    return self->holds != 0 ? 3 : 0;
}

/* What the parent holds is not the child's, though its memory says so. */
static void a_forked_child_is_another_owner_that_holds_nothing(void)
{
    struct lk__thread *self = lk__thread_self();
    uint64_t owner = self->owner;
    self->holds = 2;
    assert_int_equal(in_fork(be_somebody_else, self), 0);
    assert_int_equal(lk__thread_self()->owner, owner);
    assert_int_equal(self->holds, 2);
    self->holds = 0;
}

/* --- threads that end ----------------------------------------------------------------------------------- */

static atomic_int exits;
static _Atomic uint64_t last_exited;

static void note_exit(uint64_t owner)
{
    atomic_fetch_add(&exits, 1);
    atomic_store(&last_exited, owner);
}

struct leaver {
    unsigned holds;
    uint64_t owner;
};

static int end_with_holds(void *arg)
{
    struct leaver *leaver = arg;
    struct lk__thread *self = lk__thread_self();
    self->holds = leaver->holds;
    leaver->owner = self->owner;
    return 0;
}

static int end_unknown(void *arg)
{
    (void)arg;
    return 0;
}

static void a_thread_that_ends_with_holds_is_told_of_once(void)
{
    static const unsigned holds[] = { 1, 0, 3 };
    int expected = 0;
    atomic_store(&exits, 0);
    for (size_t i = 0; i < sizeof holds / sizeof *holds; i++) {
        struct leaver leaver = { holds[i], 0 };
        assert_int_equal(in_thread(end_with_holds, &leaver), 0);
        expected += holds[i] > 0;
        assert_int_equal(atomic_load(&exits), expected);
        if (holds[i] > 0)
            assert_int_equal(atomic_load(&last_exited), leaver.owner);
    }
    assert_int_equal(in_thread(end_unknown, NULL), 0);
    assert_int_equal(atomic_load(&exits), expected);
}

static pthread_key_t last_key;

/* Runs when the thread's data was taken down once, and once more when the library's is gone as well. */
static void exit_after_all(void *times)
{
    if (times == (void *)&exits)
        pthread_setspecific(last_key, &last_exited);
    else
        _exit(atomic_load(&exits));
}

static int end_thread_of_child(void *arg)
{
    struct lk__thread *self = lk__thread_self();
    int status = 0;
    (void)arg;
    self->holds = 1;
    pid_t child = fork();
    if (child == 0) { /* only this thread lives on here, and it ends without a call of the library */
        pthread_setspecific(last_key, &exits);
        pthread_exit(NULL);
    }
    self->holds = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The end of the child's copy of a thread must not give up what the parent's thread holds. */
static void a_thread_that_ends_in_a_child_gives_up_nothing(void)
{
    atomic_store(&exits, 0);
    assert_int_equal(in_thread(end_thread_of_child, NULL), 0);
}

static int note_exits(void **state)
{
    (void)state;
    lk__thread_onexit(note_exit);
    return pthread_key_create(&last_key, exit_after_all);
}

static int note_no_exits(void **state)
{
    (void)state;
    lk__thread_onexit(NULL);
    return pthread_key_delete(last_key);
}

/* --- threads of the library ----------------------------------------------------------------------------- */

struct signals {
    sigset_t mask;
    void *arg;
};

static void *note_signals(void *arg)
{
    struct signals *signals = arg;
    signals->arg = arg;
    pthread_sigmask(SIG_SETMASK, NULL, &signals->mask);
    return NULL;
}

/* A signal is the program's business: its handler must not run on a thread the program does not know. */
static void a_thread_of_the_library_blocks_all_signals(void)
{
    static const int handled[] = { SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGALRM, SIGCHLD, SIGPIPE, SIGIO };
    struct signals signals;
    sigset_t before, after;
    pthread_t thread;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_int_equal(lk__thread_start(&thread, "lk-test", note_signals, &signals), 0);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    pthread_join(thread, NULL);
    assert_ptr_equal(signals.arg, &signals);
    for (size_t i = 0; i < sizeof handled / sizeof *handled; i++) {
        assert_int_equal(sigismember(&signals.mask, handled[i]), 1);
        assert_int_equal(sigismember(&before, handled[i]), sigismember(&after, handled[i]));
    }
}

static void *wait_for_gate(void *arg)
{
    pthread_barrier_wait(arg);
    return NULL;
}

static void a_thread_of_the_library_bears_its_name(void)
{
    pthread_barrier_t gate;
    pthread_t thread;
    char name[16] = "";
    pthread_barrier_init(&gate, NULL, 2);
    assert_int_equal(lk__thread_start(&thread, "lk-fifteen-long", wait_for_gate, &gate), 0);
    int rc = pthread_getname_np(thread, name, sizeof name);
    pthread_barrier_wait(&gate);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&gate);
    assert_int_equal(rc, 0);
    assert_string_equal(name, "lk-fifteen-long");
}

int main(void)
{
    int failed = plain_run(owner_numbers_are_never_used_again, looking_for_a_thread_makes_none,
                           all_threads_see_one_number_of_their_process, a_forked_child_has_another_number,
                           a_forked_child_is_another_owner_that_holds_nothing);
    failed += plain_run_between(note_exits, note_no_exits, a_thread_that_ends_with_holds_is_told_of_once,
                                a_thread_that_ends_in_a_child_gives_up_nothing);
    return failed + plain_run(a_thread_of_the_library_blocks_all_signals, a_thread_of_the_library_bears_its_name);
}
