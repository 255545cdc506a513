/* SPDX-License-Identifier: MIT */
/* subject.c - everything that can be held, behind one face */
#include "subject.h"

#include "world_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- mutexes ---------------------------------------------------------------------------------------- */

static int init_mutex(struct subject *s, lk_client_t *client, int64_t lease_ms)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    attr.lease_ms = lease_ms;
    return lk_mutex_init(&s->mutex, client, s->name, &attr);
}

static int init_fair_mutex(struct subject *s, lk_client_t *client, int64_t lease_ms)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    attr.lease_ms = lease_ms;
    attr.fair = 1;
    return lk_mutex_init(&s->mutex, client, s->name, &attr);
}

static int take_mutex(struct subject *s, int64_t timeout_ms)
{
    return lk_mutex_lockfor(&s->mutex, timeout_ms);
}

static int give_mutex(struct subject *s)
{
    return lk_mutex_unlock(&s->mutex);
}

static int mutex_remaining(struct subject *s, int64_t *ms)
{
    return lk_mutex_remaining(&s->mutex, ms);
}

static int mutex_token(struct subject *s, uint64_t *token)
{
    return lk_mutex_token(&s->mutex, token);
}

static int check_mutex(struct subject *s)
{
    return lk_mutex_check(&s->mutex);
}

static int extend_mutex(struct subject *s, int64_t lease_ms)
{
    return lk_mutex_extend(&s->mutex, lease_ms);
}

static int queue_mutex(struct subject *s, lk_waiter_t *waiters, unsigned capacity, unsigned *count)
{
    return lk_mutex_queue(&s->mutex, waiters, sizeof *waiters, capacity, count);
}

static int destroy_mutex(struct subject *s)
{
    return lk_mutex_destroy(&s->mutex);
}

/* --- read-write locks --------------------------------------------------------------------------------- */

static int init_rwlock(struct subject *s, lk_client_t *client, int64_t lease_ms)
{
    lk_rwlockattr_t attr = LK_RWLOCKATTR_INIT;
    attr.lease_ms = lease_ms;
    return lk_rwlock_init(&s->rwlock, client, s->name, &attr);
}

static int take_read(struct subject *s, int64_t timeout_ms)
{
    return lk_rwlock_rdlockfor(&s->rwlock, timeout_ms);
}

static int take_write(struct subject *s, int64_t timeout_ms)
{
    return lk_rwlock_wrlockfor(&s->rwlock, timeout_ms);
}

static int give_rwlock(struct subject *s)
{
    return lk_rwlock_unlock(&s->rwlock);
}

static int rwlock_remaining(struct subject *s, int64_t *ms)
{
    return lk_rwlock_remaining(&s->rwlock, ms);
}

static int rwlock_token(struct subject *s, uint64_t *token)
{
    return lk_rwlock_token(&s->rwlock, token);
}

static int check_rwlock(struct subject *s)
{
    return lk_rwlock_check(&s->rwlock);
}

static int extend_rwlock(struct subject *s, int64_t lease_ms)
{
    return lk_rwlock_extend(&s->rwlock, lease_ms);
}

static int queue_rwlock(struct subject *s, lk_waiter_t *waiters, unsigned capacity, unsigned *count)
{
    return lk_rwlock_queue(&s->rwlock, waiters, sizeof *waiters, capacity, count);
}

static int destroy_rwlock(struct subject *s)
{
    return lk_rwlock_destroy(&s->rwlock);
}

/* --- semaphores of one permit ---------------------------------------------------------------------------- */

static int init_sem(struct subject *s, lk_client_t *client, int64_t lease_ms)
{
    (void)lease_ms;
    return lk_sem_init(&s->sem, client, s->name, 1, NULL);
}

static int init_leased_sem(struct subject *s, lk_client_t *client, int64_t lease_ms)
{
    lk_semattr_t attr = LK_SEMATTR_INIT;
    attr.leased = 1;
    attr.lease_ms = lease_ms;
    return lk_sem_init(&s->sem, client, s->name, 1, &attr);
}

static int take_sem(struct subject *s, int64_t timeout_ms)
{
    return lk_sem_waitfor(&s->sem, timeout_ms);
}

static int give_sem(struct subject *s)
{
    return lk_sem_post(&s->sem);
}

static int sem_remaining(struct subject *s, int64_t *ms)
{
    return lk_sem_remaining(&s->sem, ms);
}

static int check_sem(struct subject *s)
{
    return lk_sem_check(&s->sem);
}

static int extend_sem(struct subject *s, int64_t lease_ms)
{
    return lk_sem_extend(&s->sem, lease_ms);
}

static int queue_sem(struct subject *s, lk_waiter_t *waiters, unsigned capacity, unsigned *count)
{
    return lk_sem_queue(&s->sem, waiters, sizeof *waiters, capacity, count);
}

static int destroy_sem(struct subject *s)
{
    return lk_sem_destroy(&s->sem);
}

/* --- runs ------------------------------------------------------------------------------------------------------ */

static int init_run(struct subject *s, lk_client_t *client, int64_t lease_ms)
{
    lk_onceattr_t attr = LK_ONCEATTR_INIT;
    attr.lease_ms = lease_ms;
    return lk_once_init(&s->once, client, s->name, &attr);
}

static int take_run(struct subject *s, int64_t timeout_ms)
{
    return lk_once_begin(&s->once, timeout_ms);
}

static int give_run(struct subject *s)
{
    return lk_once_fail(&s->once);
}

static int run_remaining(struct subject *s, int64_t *ms)
{
    return lk_once_remaining(&s->once, ms);
}

static int run_token(struct subject *s, uint64_t *token)
{
    return lk_once_token(&s->once, token);
}

static int check_run(struct subject *s)
{
    return lk_once_check(&s->once);
}

static int destroy_run(struct subject *s)
{
    return lk_once_destroy(&s->once);
}

/* --- all of them ------------------------------------------------------------------------------------------- */

/* Members of a sorted set, scored by server milliseconds, that lie ahead. */
#define AHEAD(key)                                                                                                     \
    "local t = redis.call('TIME') return redis.call('ZCOUNT', '" key                                                   \
    "' .. KEYS[1] .. '}', '(' .. t[1] * 1000 + math.floor(t[2] / "                                                     \
    "1000), '+inf')"

static int sem_token(struct subject *s, uint64_t *token)
{
    return lk_sem_token(&s->sem, token);
}

#define RW_QUEUED                                                                                                      \
    "return redis.call('ZCARD', 'latchkey:queue:readers:{' .. KEYS[1] .. '}') + "                                      \
    "redis.call('ZCARD', 'latchkey:queue:writers:{' .. KEYS[1] .. '}')"

const struct subject_kind subject_kinds[] = {
    { "mutex", true, true, init_mutex, take_mutex, give_mutex, mutex_remaining, check_mutex, extend_mutex, mutex_token,
      queue_mutex, LK_WANTS_LOCK, LK_KIND_MUTEX, destroy_mutex, "return redis.call('EXISTS', KEYS[1])",
      "return redis.call('ZCARD', 'latchkey:queue:mutex:{' .. KEYS[1] .. '}')" },
    { "fair mutex", true, true, init_fair_mutex, take_mutex, give_mutex, mutex_remaining, check_mutex, extend_mutex,
      mutex_token, queue_mutex, LK_WANTS_LOCK, LK_KIND_MUTEX, destroy_mutex, "return redis.call('EXISTS', KEYS[1])",
      "return redis.call('ZCARD', 'latchkey:queue:mutex:{' .. KEYS[1] .. '}')" },
    { "writer", true, true, init_rwlock, take_write, give_rwlock, rwlock_remaining, check_rwlock, extend_rwlock,
      rwlock_token, queue_rwlock, LK_WANTS_WRITE, LK_KIND_RWLOCK, destroy_rwlock, AHEAD("latchkey:rw:{"),
      RW_QUEUED },
    { "reader", true, false, init_rwlock, take_read, give_rwlock, rwlock_remaining, check_rwlock, extend_rwlock, NULL,
      queue_rwlock, LK_WANTS_READ, LK_KIND_RWLOCK, destroy_rwlock, AHEAD("latchkey:rw:{"),
      RW_QUEUED },
    { "semaphore", false, false, init_sem, take_sem, give_sem, NULL, NULL, NULL, NULL, queue_sem, LK_WANTS_PERMITS,
      LK_KIND_SEM, destroy_sem, "return 1 - tonumber(redis.call('GET', KEYS[1]) or 1)",
      "return redis.call('ZCARD', 'latchkey:queue:sem:{' .. KEYS[1] .. '}')" },
    { "leased semaphore", true, false, init_leased_sem, take_sem, give_sem, sem_remaining, check_sem, extend_sem,
      sem_token, queue_sem, LK_WANTS_PERMITS, LK_KIND_PERMITS, destroy_sem, AHEAD("latchkey:permits:{"),
      "return redis.call('ZCARD', 'latchkey:queue:permits:{' .. KEYS[1] .. '}')" },
    { 0 },
};

const struct subject_kind subject_run_kind = {
    "run", true, true, init_run, take_run, give_run, run_remaining, check_run, NULL, run_token,
    NULL, 0, LK_KIND_ONCE, destroy_run, "return redis.call('EXISTS', 'latchkey:run:{' .. KEYS[1] .. '}')", NULL
};

void subject_init(struct world *w, struct subject *s, const struct subject_kind *kind, lk_client_t *client,
                  const char *name, int64_t lease_ms)
{
    static const char *const lasting[] = { "redisson_lock_token:*", "latchkey:once:*", "latchkey:total:*",
                                           "latchkey:permits:*" };
    *s = (struct subject){ .kind = kind };
    snprintf(s->name, sizeof s->name, "%s", name);
    if (w->allowed_count == 0)
        for (size_t i = 0; i < sizeof lasting / sizeof *lasting; i++)
            world_allow(w, lasting[i]);
    if (strcmp(kind->name, "semaphore") == 0)
        world_allow(w, name);
    assert_lk(0, kind->init(s, client, lease_ms));
}

static void end_subject(void *subject)
{
    assert_lk(0, subject_destroy(subject));
    free(subject);
}

struct subject *world_subjectwith(struct world *w, lk_client_t *client, const struct subject_kind *kind,
                                  const char *name, int64_t lease_ms)
{
    struct subject *s = calloc(1, sizeof *s);
    assert_that(s != NULL);
    subject_init(w, s, kind, client, name, lease_ms);
    world_at_end(w, client, s, end_subject);
    return s;
}

struct subject *world_subject(struct world *w, lk_client_t *client, const struct subject_kind *kind, const char *name)
{
    return world_subjectwith(w, client, kind, name, 0);
}

const struct subject_kind *subject_keeper(const struct subject_kind *kind)
{
    const struct subject_kind *keeper = kind;
    if (kind->init == init_rwlock)
        for (keeper = subject_kinds; keeper->take != take_write; keeper++)
            ;
    return keeper;
}

int subject_take(struct subject *s, int64_t timeout_ms)
{
    return s->kind->take(s, timeout_ms);
}

int subject_give(struct subject *s)
{
    return s->kind->give(s);
}

int subject_remaining(struct subject *s, int64_t *ms)
{
    if (s->kind->remaining != NULL)
        return s->kind->remaining(s, ms);
    *ms = LK_FOREVER;
    return 0;
}

int subject_check(struct subject *s)
{
    return s->kind->check(s);
}

int subject_extend(struct subject *s, int64_t lease_ms)
{
    return s->kind->extend(s, lease_ms);
}

uint64_t subject_token(struct subject *s)
{
    uint64_t token = 0;
    if (s->kind->fenced)
        assert_lk(0, s->kind->token(s, &token));
    return token;
}

int subject_queue(struct subject *s, lk_waiter_t *waiters, unsigned capacity, unsigned *count)
{
    return s->kind->queue(s, waiters, capacity, count);
}

int subject_destroy(struct subject *s)
{
    return s->kind->destroy(s);
}

static int run_errand(void *arg)
{
    struct errand *errand = arg;
    __atomic_store_n(&errand->began_ms, now_ms(), __ATOMIC_RELEASE);
    errand->took = subject_take(errand->subject, errand->timeout_ms);
    __atomic_store_n(&errand->took_ms, now_ms(), __ATOMIC_RELEASE);
    if (errand->took == 0)
        errand->gave = subject_give(errand->subject);
    errand->gave_ms = now_ms();
    return 0;
}

void errand_start(struct errand *errand, struct subject *subject, int64_t timeout_ms)
{
    *errand = (struct errand){ .subject = subject, .timeout_ms = timeout_ms };
    worker_start(&errand->worker, run_errand, errand);
}

void errand_join(struct errand *errand)
{
    worker_join(&errand->worker);
}

bool errand_waits(struct world *w, const struct errand *errand)
{
    enum { ASKED_MS = 50 };
    int64_t began_ms = __atomic_load_n(&errand->began_ms, __ATOMIC_ACQUIRE);
    if (errand->subject->kind->queued != NULL)
        return subject_queued(w, errand->subject) == 1;
    return began_ms != 0 && now_ms() - began_ms >= ASKED_MS;
}

bool errand_took(const struct errand *errand)
{
    return __atomic_load_n(&errand->took_ms, __ATOMIC_ACQUIRE) != 0;
}

int give_subject(void *subject)
{
    return subject_give(subject);
}

int subject_visit(void *subject)
{
    int rc = subject_take(subject, PATIENT_MS);
    return rc != 0 ? rc : subject_give(subject);
}

int await_latch_patiently(void *latch)
{
    return lk_latch_waitfor(latch, PATIENT_MS);
}

int64_t subject_held(struct world *w, const struct subject *s)
{
    return world_int(w, "EVAL %s 1 %s", s->kind->held, s->name);
}

int64_t subject_queued(struct world *w, const struct subject *s)
{
    return s->kind->queued != NULL ? world_int(w, "EVAL %s 1 %s", s->kind->queued, s->name) : 0;
}

bool subject_listening(struct world *w, const struct subject *s)
{
    static const char *const families[] = { "mutex", "rw", "sem", "permits" };
    char object[64];
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        snprintf(object, sizeof object, "%s:{%s}", families[i], s->name);
        if (!world_listening(w, object))
            return false;
    }
    return true;
}

void subject_forget_queues(struct world *w)
{
    static const char script[] = "local kept = 0 "
                                 "for _, prefix in ipairs({ 'latchkey:queue:*', 'latchkey:alive:*' }) do "
                                 "for _, key in ipairs(redis.call('KEYS', prefix)) do "
                                 "if redis.call('PTTL', key) < 0 then kept = kept + 1 end redis.call('DEL', key) "
                                 "end end return kept";
    assert_int_equal(0, world_int(w, "EVAL %s 0", script));
}

static void run_for(const struct subject_kind *kind, const char *server_args, subject_test_fn *body)
{
    print_message("             %s\n", kind->name);
    struct world *w = world_begin(server_args);
    body(w, kind);
    world_end(w);
}

void for_each_subject(const char *server_args, void (*body)(struct world *w, const struct subject_kind *kind))
{
    for (const struct subject_kind *kind = subject_kinds; kind->name != NULL; kind++)
        run_for(kind, server_args, body);
}

/* It ends by exit(): so a sanitizer looks for what is left. */
static pid_t begin_for(const struct subject_kind *kind, const char *server_args, subject_test_fn *body)
{
    pid_t parent = getpid(), pid;
    fflush(NULL);
    pid = fork();
    assert_that(pid >= 0);
    if (pid == 0) {
        become_child(parent);
        run_for(kind, server_args, body);
        exit(0);
    }
    return pid;
}

static int failed_for(const struct subject_kind *kind, pid_t pid)
{
    int status;
    assert_that(waitpid(pid, &status, 0) == pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    print_error("failed for a %s, as process %d\n", kind->name, (int)pid);
    return 1;
}

void for_subjects_at_once(const char *server_args, void (*body)(struct world *w, const struct subject_kind *kind))
{
    pid_t pids[sizeof subject_kinds / sizeof *subject_kinds];
    int failed = 0;
    for (const struct subject_kind *kind = subject_kinds; kind->name != NULL; kind++)
        pids[kind - subject_kinds] = begin_for(kind, server_args, body);
    for (const struct subject_kind *kind = subject_kinds; kind->name != NULL; kind++)
        failed += failed_for(kind, pids[kind - subject_kinds]);
    assert_int_equal(0, failed);
}

bool subject_isleased(const struct subject_kind *kind)
{
    return kind->leased;
}

static subject_filter_fn *filter; /* a group's; NULL: all */

static void run_for_those(void **state)
{
    subject_test_fn *const *test = *state;
    for (const struct subject_kind *kind = subject_kinds; kind->name != NULL; kind++)
        if (filter == NULL || filter(kind))
            run_for(kind, NULL, *test);
}

int subject_run_tests(subject_filter_fn *of, const char *names, subject_test_fn *const tests[])
{
    filter = of;
    return run_group(names, tests, run_for_those, NULL, NULL);
}
