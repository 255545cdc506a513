/* SPDX-License-Identifier: MIT */
/*
 * robust_test.c - a robust mutex, or read-write lock, tells that its holder died, until somebody repaired what it guards
 *
 * Readers of one: rwlock/robust_test.c.
 *
 * labels: threads memory
 * simulated: yes
 */
#include "proxy.h"
#include "subject.h"

#include <string.h>

enum { BRIEF_MS = 400 }; /* the lease of who dies */

static const struct subject_kind *plain;
static struct subject_kind robust;
static const char *mark;                      /* its key */
static struct subject *mine, *theirs, *brief; /* one name; theirs: of another client */

static bool is_rw(void)
{
    return plain->number == LK_KIND_RWLOCK;
}

static int init_robust(struct subject *s, lk_client_t *client, int64_t lease_ms)
{
    const lk_mutexattr_t attr = { .size = sizeof attr, .robust = 1, .lease_ms = lease_ms,
                                  .fair = strcmp(plain->name, "fair mutex") == 0 };
    const lk_rwlockattr_t rwattr = { .size = sizeof rwattr, .robust = 1, .lease_ms = lease_ms };
    return is_rw() ? lk_rwlock_init(&s->rwlock, client, s->name, &rwattr)
                   : lk_mutex_init(&s->mutex, client, s->name, &attr);
}

static int consistent(struct subject *s)
{
    return is_rw() ? lk_rwlock_consistent(&s->rwlock) : lk_mutex_consistent(&s->mutex);
}

static int force(struct subject *s)
{
    return is_rw() ? lk_rwlock_forceunlock(&s->rwlock) : lk_mutex_forceunlock(&s->mutex);
}

static int is_recoverable(struct subject *s)
{
    lk_mutexinfo_t info = LK_MUTEXINFO_INIT;
    lk_rwlockinfo_t rwinfo = LK_RWLOCKINFO_INIT;
    assert_lk(0, is_rw() ? lk_rwlock_info(&s->rwlock, &rwinfo) : lk_mutex_info(&s->mutex, &info));
    return is_rw() ? rwinfo.recoverable : info.recoverable;
}

WORK(take, s, subject_take(s, LK_FOREVER))
WORK(take_or_read, s, is_rw() ? lk_rwlock_rdlock(&((struct subject *)s)->rwlock) : take(s))

static bool can_be_robust(const struct subject_kind *kind)
{
    plain = kind;
    robust = *kind;
    robust.init = init_robust;
    mark = is_rw() ? "latchkey:robust:rw:{thing}" : "latchkey:robust:mutex:{thing}";
    return kind->number == LK_KIND_MUTEX || kind->wants == LK_WANTS_WRITE;
}

static void open_all(struct world *w)
{
    lk_client_t *client = world_client(w, "");
    mine = world_subject(w, client, &robust, "thing");
    theirs = world_subject(w, world_client(w, ""), &robust, "thing");
    brief = world_subjectwith(w, client, &robust, "thing", BRIEF_MS);
}

/* It was left in disorder; `s` gets it and repairs it, and the next one finds nothing. */
static void repair(struct subject *s)
{
    assert_lk(EOWNERDEAD, take(s));
    assert_lk(0, consistent(s));
    assert_lk(0, subject_give(s));
    assert_lk(0, subject_visit(s));
}

static int hold_until_killed(struct world *w, void *arg)
{
    open_all(w);
    assert_lk(0, take(brief));
    world_ready(w);
    gate_pass(arg);
    return 0;
}

/* Who comes after a dead holder must not believe that what is guarded is in order. */
static void after_a_dead_holder_it_says_so_until_repaired(struct world *w, const struct subject_kind *kind)
{
    (void)kind;
    world_kill(w, world_fork(w, hold_until_killed, world_shared(w, sizeof(struct gate))));
    open_all(w);
    assert_lk(EOWNERDEAD, take(mine));
    assert_int_equal(1, subject_held(w, mine));
    assert_lk(0, subject_visit(mine)); /* told once */
    assert_lk(0, consistent(mine));
    assert_lk(EINVAL, consistent(mine));
    assert_int_equal(1, is_recoverable(mine));
    assert_lk(0, subject_give(mine));
    assert_lk(0, subject_visit(theirs));
}

/* Every way to lock tells. */
static void trying_and_waiting_tell_as_well(struct world *w, const struct subject_kind *kind)
{
    (void)kind;
    struct timespec past = { 1, 0 };
    open_all(w);
    lk_mutex_t *m = &mine->mutex;
    lk_rwlock_t *rw = &mine->rwlock;
    for (int i = 0; i < 3; i++) {
        assert_lk(0, in_thread(take, brief));
        eventually(subject_held(w, mine) == 0, 2000);
        assert_lk(EOWNERDEAD, i == 0   ? (is_rw() ? lk_rwlock_trywrlock(rw) : lk_mutex_trylock(m))
                              : i == 1 ? (is_rw() ? lk_rwlock_timedwrlock(rw, &past) : lk_mutex_timedlock(m, &past))
                                       : subject_take(mine, 0));
        assert_lk(0, consistent(mine));
        assert_lk(0, subject_give(mine));
    }
}

/* Who gives it back unrepaired says that it cannot be repaired; nobody gets it any more. */
static void given_back_unrepaired_it_is_refused_to_all(struct world *w, const struct subject_kind *kind)
{
    (void)kind;
    struct worker waiter;
    open_all(w);
    assert_lk(0, in_thread(take, brief));
    assert_lk(EOWNERDEAD, take(mine));
    worker_start(&waiter, take_or_read, theirs);
    eventually(subject_queued(w, theirs) == 1, 5000);
    assert_lk(0, subject_give(mine));
    assert_lk(ENOTRECOVERABLE, worker_join(&waiter)); /* also one that waited already */
    assert_lk(ENOTRECOVERABLE, take(mine));
    assert_lk(ENOTRECOVERABLE, take_or_read(mine));
    assert_lk(ENOTRECOVERABLE, subject_take(mine, 0));
    assert_lk(ENOTRECOVERABLE, subject_take(mine, 5000));
    assert_lk(EPERM, subject_give(mine));
    assert_int_equal(0, is_recoverable(mine));
    assert_int_equal(0, subject_held(w, mine));
    assert_int_equal(0, subject_queued(w, mine));
    assert_int_equal(-1, world_pttl(w, mark)); /* it does not lapse: nobody repaired anything meanwhile */
    assert_lk(0, force(mine)); /* an operator repaired it */
    assert_lk(0, subject_visit(mine));
}

/* All who wait, and by themselves would ask late: those that the release tells tell the others. */
static void a_crowd_is_refused_at_once(struct world *w, const struct subject_kind *kind)
{
    enum { CROWD = 150, AT_ONCE_MS = 4000 };
    struct worker crowd[CROWD];
    if (strcmp(kind->name, "mutex") == 0) /* whose threads wait behind one */
        return;
    open_all(w);
    struct subject *patient = world_subject(w, world_client(w, "lease=60s&poll=20s"), &robust, "thing");
    assert_lk(0, in_thread(take, brief));
    assert_lk(EOWNERDEAD, take(mine));
    for (int i = 0; i < CROWD; i++)
        worker_start(&crowd[i], take, patient);
    eventually(subject_queued(w, mine) == CROWD, 10000);
    eventually(subject_listening(w, mine), 10000);
    assert_lk(0, subject_give(mine));
    int64_t began_ms = now_ms();
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(ENOTRECOVERABLE, worker_join(&crowd[i]));
    assert_between(now_ms() - began_ms, 0, AT_ONCE_MS);
    assert_lk(0, force(mine));
}

/* A second death before the repair is told again. */
static void a_repairer_that_dies_is_told_too(struct world *w, const struct subject_kind *kind)
{
    (void)kind;
    open_all(w);
    assert_lk(0, in_thread(take, brief));
    assert_lk(EOWNERDEAD, in_thread(take, brief));
    repair(mine);
}

/* A client gives nothing back in the name of a thread that died. */
static void a_close_does_not_hide_a_death(struct world *w, const struct subject_kind *kind)
{
    (void)kind;
    for (int i = 0; i < 2; i++) {
        struct subject s;
        lk_client_t *mortal = world_open(w, "");
        subject_init(w, &s, &robust, mortal, "thing", BRIEF_MS);
        assert_lk(i == 0 ? 0 : EOWNERDEAD, in_thread(take, &s));
        assert_lk(0, lk_client_close(mortal));
        assert_lk(0, subject_destroy(&s));
    }
    open_all(w);
    repair(mine);
}

/* Whose answer was lost was not told of the death: what it gives back unseen tells the next one. */
static void who_was_not_told_leaves_it_to_the_next(struct world *w, const struct subject_kind *kind)
{
    (void)kind;
    struct proxy *p = proxy_begin(w);
    struct subject *unheard = world_subject(w, proxy_client(p, "command_timeout=500ms"), &robust, "thing");
    open_all(w);
    assert_lk(0, subject_visit(unheard)); /* from now on the server knows the scripts */
    assert_lk(0, in_thread(take, brief));
    eventually(subject_held(w, mine) == 0, 5000);
    proxy_stall(p, PROXY_DOWN);
    assert_lk(EIO, subject_take(unheard, 0));
    proxy_resume(p);
    eventually(subject_held(w, mine) == 0, 5000);
    repair(mine);
}

/* Who was robbed may have been in the middle of it, too. */
static void who_was_robbed_counts_as_dead(struct world *w, const struct subject_kind *kind)
{
    (void)kind;
    open_all(w);
    assert_lk(0, take(mine));
    assert_lk(0, force(theirs));
    assert_lk(EOWNERDEAD, take(theirs));
    assert_lk(0, consistent(theirs));
    assert_lk(ESTALE, subject_give(mine));
    assert_lk(0, subject_check(theirs));
    assert_lk(0, subject_give(theirs));
}

/* An operator need not know that it is robust: its mark tells, also for those who wait already. */
static void taken_away_by_who_does_not_know_it_is_told(struct world *w, const struct subject_kind *kind)
{
    (void)kind;
    struct worker waiter;
    open_all(w);
    struct subject *operator = world_subject(w, world_client(w, ""), plain, "thing");
    assert_lk(0, take(mine));
    worker_start(&waiter, take_or_read, theirs);
    eventually(subject_queued(w, theirs) == 1 && subject_listening(w, theirs), 5000); /* else it asks, and the mark is looked at then */
    assert_lk(0, force(operator));
    assert_lk(EOWNERDEAD, worker_join(&waiter)); /* its thread ends unrepaired: it died, too */
    assert_lk(ESTALE, subject_give(mine));
    assert_lk(0, force(operator));
    assert_lk(EOWNERDEAD, take(mine));
    assert_lk(0, subject_give(mine));
    assert_lk(ENOTRECOVERABLE, take_or_read(theirs));
    assert_lk(0, force(operator));
    assert_lk(0, subject_visit(mine));
}

/* Repairing what is not broken is a mistake, as POSIX says. */
static void there_is_nothing_to_repair(struct world *w, const struct subject_kind *kind)
{
    (void)kind;
    open_all(w);
    struct subject *other = world_subject(w, world_client(w, ""), plain, "plain");
    assert_lk(EPERM, consistent(mine));
    assert_lk(0, take(mine));
    assert_lk(EINVAL, consistent(mine));
    assert_lk(0, subject_give(mine));
    assert_lk(0, take(other));
    assert_lk(EINVAL, consistent(other));
    assert_lk(0, subject_give(other));
}

int main(void)
{
    return subject_run_for(can_be_robust, after_a_dead_holder_it_says_so_until_repaired, trying_and_waiting_tell_as_well,
                           given_back_unrepaired_it_is_refused_to_all, a_crowd_is_refused_at_once,
                           a_repairer_that_dies_is_told_too, a_close_does_not_hide_a_death,
                           who_was_not_told_leaves_it_to_the_next, who_was_robbed_counts_as_dead,
                           taken_away_by_who_does_not_know_it_is_told, there_is_nothing_to_repair);
}
