/* SPDX-License-Identifier: MIT */
/*
 * settings_test.c - who uses a name with other settings than others is told, and let in all the same; strict ones are not
 *
 * labels: threads memory
 * simulated: yes
 */
#include "object/handle.h"
#include "proxy.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- whatever is acquired, with either of two settings --------------------------------------------------- */

union any {
    lk_mutex_t mutex;
    lk_rwlock_t rwlock;
    lk_sem_t sem;
};

struct kind {
    const char *words[2]; /* of the two settings */
    const char *key;
    int number[2]; /* LK_KIND_... */
    int (*init)(union any *any, lk_client_t *client, bool second);
    int (*take)(union any *any), (*give)(union any *any), (*destroy)(union any *any);
};

static int lock(union any *any)
{
    return lk_mutex_trylock(&any->mutex);
}

static int unlock(union any *any)
{
    return lk_mutex_unlock(&any->mutex);
}

static int destroy_mutex(union any *any)
{
    return lk_mutex_destroy(&any->mutex);
}

static int init_fair(union any *any, lk_client_t *client, bool second)
{
    const lk_mutexattr_t attr = { .size = sizeof attr, .fair = second };
    return lk_mutex_init(&any->mutex, client, "thing", &attr);
}

static int init_robust(union any *any, lk_client_t *client, bool second)
{
    const lk_mutexattr_t attr = { .size = sizeof attr, .robust = second };
    return lk_mutex_init(&any->mutex, client, "thing", &attr);
}

static int read_lock(union any *any)
{
    return lk_rwlock_tryrdlock(&any->rwlock);
}

static int write_lock(union any *any)
{
    return lk_rwlock_trywrlock(&any->rwlock);
}

static int unlock_rwlock(union any *any)
{
    return lk_rwlock_unlock(&any->rwlock);
}

static int destroy_rwlock(union any *any)
{
    return lk_rwlock_destroy(&any->rwlock);
}

static int init_prefer(union any *any, lk_client_t *client, bool second)
{
    const lk_rwlockattr_t attr = { .size = sizeof attr,
                                   .prefer = second ? LK_RWLOCK_PREFER_WRITER : LK_RWLOCK_PREFER_READER };
    return lk_rwlock_init(&any->rwlock, client, "thing", &attr);
}

static int init_robust_rwlock(union any *any, lk_client_t *client, bool second)
{
    const lk_rwlockattr_t attr = { .size = sizeof attr, .robust = second };
    return lk_rwlock_init(&any->rwlock, client, "thing", &attr);
}

static int acquire(union any *any)
{
    return lk_sem_trywait(&any->sem);
}

static int release(union any *any)
{
    return lk_sem_post(&any->sem);
}

static int destroy_sem(union any *any)
{
    return lk_sem_destroy(&any->sem);
}

static int init_leased(union any *any, lk_client_t *client, bool second)
{
    const lk_semattr_t attr = { .size = sizeof attr, .leased = second };
    return lk_sem_init(&any->sem, client, "thing", 3, &attr);
}

static const struct kind kinds[] = {
    { { "protocol=1 fair=no robust=no", "protocol=1 fair=yes robust=no" },
      "latchkey:settings:mutex:{thing}",
      { LK_KIND_MUTEX, LK_KIND_MUTEX },
      init_fair,
      lock,
      unlock,
      destroy_mutex },
    { { "protocol=1 fair=no robust=no", "protocol=1 fair=no robust=yes" },
      "latchkey:settings:mutex:{thing}",
      { LK_KIND_MUTEX, LK_KIND_MUTEX },
      init_robust,
      lock,
      unlock,
      destroy_mutex },
    { { "protocol=1 prefer=reader robust=no", "protocol=1 prefer=writer robust=no" },
      "latchkey:settings:rw:{thing}",
      { LK_KIND_RWLOCK, LK_KIND_RWLOCK },
      init_prefer,
      read_lock,
      unlock_rwlock,
      destroy_rwlock },
    { { "protocol=1 prefer=fair robust=no", "protocol=1 prefer=fair robust=yes" },
      "latchkey:settings:rw:{thing}",
      { LK_KIND_RWLOCK, LK_KIND_RWLOCK },
      init_robust_rwlock,
      write_lock,
      unlock_rwlock,
      destroy_rwlock },
    { { "protocol=1 leased=no", "protocol=1 leased=yes" },
      "latchkey:settings:sem:{thing}",
      { LK_KIND_SEM, LK_KIND_PERMITS },
      init_leased,
      acquire,
      release,
      destroy_sem },
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static const struct kind *kind;

static void end_any(void *any)
{
    assert_lk(0, kind->destroy(any));
    free(any);
}

static union any *world_any(struct world *w, lk_client_t *client, bool second)
{
    union any *any = calloc(1, sizeof *any);
    assert_that(any != NULL);
    assert_lk(0, kind->init(any, client, second));
    world_at_end(w, client, any, end_any);
    return any;
}

static void use(union any *any)
{
    assert_lk(0, kind->take(any));
    assert_lk(0, kind->give(any));
}

/* What the log was told; a thread of the library's writes it. */
static struct {
    pthread_mutex_t mu;
    char text[8192];
} told = { .mu = PTHREAD_MUTEX_INITIALIZER };

static void keep(void *arg, int level, const char *line)
{
    (void)arg;
    (void)level;
    pthread_mutex_lock(&told.mu);
    snprintf(told.text + strlen(told.text), sizeof told.text - strlen(told.text), "%s\n", line);
    pthread_mutex_unlock(&told.mu);
}

static bool logging;

/* How often the log has these words. */
static int said(const char *words)
{
    int count = 0;
    pthread_mutex_lock(&told.mu);
    for (const char *at = told.text; (at = strstr(at, words)) != NULL; at++)
        count++;
    pthread_mutex_unlock(&told.mu);
    return count;
}

static void expect_warnings(int count)
{
    eventually(said("give all who use this name the same settings") == count, 5000);
    assert_int_equal(count, said("\n"));
}

/* With a server that knows nothing, and no warnings so far. */
static void begin(struct world *w, const struct kind *tested)
{
    kind = tested;
    world_allow(w, "thing");
    world_allow(w, "latchkey:total:{thing}");
    world_allow(w, "latchkey:permits:{thing}");
    world_redis(w, "FLUSHALL");
    pthread_mutex_lock(&told.mu);
    told.text[0] = '\0';
    pthread_mutex_unlock(&told.mu);
    if (!logging)
        assert_lk(0, lk_addlog(keep, LK_LOG_WARNING, NULL, NULL));
    logging = true;
}

/* As if half an hour had passed since the object looked last. */
static void half_an_hour_passes(union any *any)
{
    const struct lk__binding *binding = any->mutex.lk_impl;
    lk__settings_makedue(binding->object);
}

static void expect_event(lk_events_t *queue, int number)
{
    lk_event_t event = LK_EVENT_INIT;
    assert_lk(0, lk_events_next(queue, &event));
    assert_int_equal(LK_EVENT_DISAGREES, event.type);
    assert_int_equal(number, event.kind);
    assert_string_equal("thing", event.name);
    assert_int_equal(1, event.count);
    assert_int_equal(LK_REASON_NONE, event.reason);
    assert_true(event.token == 0 && event.owner == 0 && event.remaining_ms == 0);
    assert_lk(EAGAIN, lk_events_next(queue, &event));
}

static void expect_no_event(lk_events_t *queue)
{
    lk_event_t event = LK_EVENT_INIT;
    assert_lk(EAGAIN, lk_events_next(queue, &event));
}

/* --- tests --------------------------------------------------------------------------------------------------- */

/* The first acquire is one command, and so are those that follow. */
static void agreement_costs_no_command(struct world *w)
{
    for (const struct kind *k = kinds; k < kinds + KINDS; k++) {
        begin(w, k);
        lk_client_t *one = world_client(w, ""), *two = world_client(w, "strict=yes");
        union any *first = world_any(w, one, false), *second = world_any(w, two, false);
        use(first);
        use(second);
        assert_string_equal(k->words[0], world_str(w, "GET %s", k->key));
        union any *third = world_any(w, world_client(w, ""), false);
        world_redis(w, "CONFIG RESETSTAT");
        use(third);
        assert_int_equal(2, world_commands(w, "evalsha") + world_commands(w, "eval"));
        expect_warnings(0);
        world_close(w, NULL);
    }
}

/* Both sides are told once: who comes later at once, the others when they look again. Nobody is kept out. */
static void each_side_is_told_once(struct world *w)
{
    for (const struct kind *k = kinds; k < kinds + KINDS; k++) {
        begin(w, k);
        lk_client_t *one = world_client(w, ""), *two = world_client(w, "");
        lk_events_t *ones = world_events(w, one), *twos = world_events(w, two);
        union any *first = world_any(w, one, false), *second = world_any(w, two, true);
        use(first);
        use(second);
        expect_warnings(1);
        assert_int_equal(1, said(k->words[0]));
        assert_int_equal(1, said(k->words[1]));
        expect_event(twos, k->number[1]);
        expect_no_event(ones);
        use(second);
        use(first);
        expect_warnings(1);
        half_an_hour_passes(first);
        use(first);
        expect_warnings(2);
        expect_event(ones, k->number[0]);
        half_an_hour_passes(second);
        use(second);
        expect_warnings(2); /* it knows */
        expect_no_event(twos);
        world_close(w, NULL);
    }
}

/* A rolling deployment: once the last of the old ones is gone, nobody is told any more, but of the next disagreement. */
static void the_last_one_who_looked_is_compared_with(struct world *w)
{
    begin(w, &kinds[0]);
    union any *old = world_any(w, world_client(w, ""), false);
    union any *new = world_any(w, world_client(w, ""), true);
    use(old);
    use(new);
    expect_warnings(1);
    union any *next = world_any(w, world_client(w, ""), true);
    use(next);
    expect_warnings(1);
    half_an_hour_passes(new);
    use(new); /* all agree, as far as it sees */
    half_an_hour_passes(old);
    use(old);
    expect_warnings(2);
    half_an_hour_passes(new);
    use(new);
    expect_warnings(3);
}

static void a_mark_in_use_lasts(struct world *w)
{
    begin(w, &kinds[0]);
    union any *one = world_any(w, world_client(w, ""), false);
    use(one);
    assert_between(world_pttl(w, kind->key), 3590000, 3600000);
    world_redis(w, "EXPIRE %s 1800", kind->key);
    use(one);
    assert_between(world_pttl(w, kind->key), 1, 1800000);
    half_an_hour_passes(one);
    use(one);
    assert_between(world_pttl(w, kind->key), 3590000, 3600000);
    world_redis(w, "DEL %s", kind->key); /* an hour without use */
    use(world_any(w, world_client(w, "strict=yes"), true));
    expect_warnings(0);
}

/* Nothing is taken, each time; told once. When the mark has ended, it is let in. */
static void a_strict_client_is_refused(struct world *w)
{
    for (const struct kind *k = kinds; k < kinds + KINDS; k++) {
        begin(w, k);
        lk_client_t *one = world_client(w, ""), *two = world_client(w, "strict=yes");
        lk_events_t *twos = world_events(w, two);
        union any *first = world_any(w, one, false), *second = world_any(w, two, true);
        use(first);
        const char *before = world_keys(w);
        for (int i = 0; i < 2; i++) {
            assert_lk(EINVAL, k->take(second));
            assert_non_null(strstr(lk_errortext(), k->words[0]));
            assert_non_null(strstr(lk_errortext(), k->words[1]));
            assert_int_equal(0, lk_errorsettles());
        }
        assert_string_equal(before, world_keys(w));
        assert_string_equal(k->words[0], world_str(w, "GET %s", k->key));
        expect_warnings(1);
        expect_event(twos, k->number[1]);
        world_redis(w, "DEL %s", k->key);
        use(second);
        assert_string_equal(k->words[1], world_str(w, "GET %s", k->key));
        world_close(w, NULL);
    }
}

/* Another version of the library, before its protocol had a number, or after the next one: nothing is taken. */
static void another_protocol_is_refused(struct world *w)
{
    static const char *const others[] = { "fair=no robust=no", "protocol=10 leased=no", "protocol=2 prefer=fair robust=no" };
    for (const struct kind *k = kinds; k < kinds + KINDS; k++) {
        begin(w, k);
        const char *other = others[(k - kinds) % 3];
        union any *mine = world_any(w, world_client(w, ""), false);
        world_redis(w, "SET %s %s EX 3600", k->key, other);
        const char *before = world_keys(w);
        for (int i = 0; i < 2; i++) {
            assert_lk(EINVAL, k->take(mine));
            assert_non_null(strstr(lk_errortext(), other));
            assert_non_null(strstr(lk_errortext(), "end all programs with one of them"));
            assert_int_equal(0, lk_errorsettles());
        }
        assert_string_equal(before, world_keys(w));
        assert_string_equal(other, world_str(w, "GET %s", k->key));
        eventually(said("another version of Latchkey") == 1, 5000);
        world_redis(w, "DEL %s", k->key);
        use(mine);
        assert_string_equal(k->words[0], world_str(w, "GET %s", k->key));
        world_close(w, NULL);
    }
}

/* A name that is held by others: who waits is told at once, and not when it gets it. */
static void who_waits_is_told_first(struct world *w)
{
    begin(w, &kinds[0]);
    union any *holder = world_any(w, world_client(w, ""), false);
    union any *late = world_any(w, world_client(w, ""), true);
    struct worker waiter;
    assert_lk(0, kind->take(holder));
    assert_lk(EBUSY, kind->take(late));
    expect_warnings(1);
    worker_start(&waiter, lock_and_unlock, &late->mutex);
    eventually(world_queued(w, "thing") == 1, 5000);
    assert_lk(0, kind->give(holder));
    assert_int_equal(0, worker_join(&waiter));
    expect_warnings(1);
}

/* The same of another process, which is not told, and a listener. */
static int hold_until_killed(struct world *w, void *arg)
{
    (void)arg;
    union any *mine = world_any(w, world_client(w, "lease=10s"), true);
    assert_lk(0, kind->take(mine));
    world_ready(w);
    pause();
    return 0;
}

static atomic_int heard;

static void hear(const lk_event_t *event, void *arg)
{
    (void)arg;
    if (event->type == LK_EVENT_DISAGREES)
        atomic_fetch_add(&heard, 1);
}

static void another_process_is_found(struct world *w)
{
    begin(w, &kinds[1]);
    pid_t holder = world_fork(w, hold_until_killed, NULL);
    lk_client_t *client = world_client(w, "");
    atomic_store(&heard, 0);
    assert_lk(0, lk_client_addlistener(client, hear, NULL, NULL));
    assert_lk(0, lk_client_addlistener(client, hear, NULL, NULL));
    union any *mine = world_any(w, client, false);
    assert_lk(EBUSY, kind->take(mine));
    expect_warnings(1);
    eventually(atomic_load(&heard) == 2, 5000);
    world_kill(w, holder);
    world_redis(w, "PEXPIRE thing 1");
    assert_lk(0, lk_mutex_lockfor(&mine->mutex, 10000));
    assert_lk(0, kind->give(mine));
    world_redis(w, "DEL latchkey:robust:mutex:{thing}");
}

/* Whatever is lost on the way: one hold, one warning. */
static void lost_answers_change_nothing(struct world *w)
{
    static const enum proxy_fault faults[] = { PROXY_CUT_REQUEST, PROXY_CUT_REPLY, PROXY_DROP_REPLY };
    struct proxy *p = proxy_begin(w);
    for (int i = 0; i < 3; i++)
        for (int k = 1; k <= 2; k++) {
            begin(w, &kinds[0]);
            union any *first = world_any(w, world_client(w, ""), false);
            union any *second = world_any(w, proxy_client(p, "lease=5s&command_timeout=300ms"), true);
            use(first); /* now the server knows the scripts */
            proxy_once(p, faults[i], k, "latchkey:settings");
            assert_lk(0, lk_mutex_lock(&second->mutex));
            assert_int_equal(1, world_int(w, "HLEN thing"));
            assert_lk(0, kind->give(second));
            expect_warnings(1);
            world_close(w, NULL);
            p = proxy_begin(w);
        }
}

static int take_and_give(void *mutex)
{
    int rc = lk_mutex_lock(mutex);
    return rc != 0 ? rc : lk_mutex_unlock(mutex);
}

/* All of them may be the first: the object is what is told. */
static void threads_are_told_together(struct world *w)
{
    enum { THREADS = 8 };
    struct worker workers[THREADS];
    begin(w, &kinds[0]);
    use(world_any(w, world_client(w, ""), false));
    union any *mine = world_any(w, world_client(w, ""), true);
    for (int i = 0; i < THREADS; i++)
        worker_start(&workers[i], take_and_give, &mine->mutex);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(0, worker_join(&workers[i]));
    expect_warnings(1);
}

/* What somebody else wrote there is quoted, and no more of it than a line has room for. */
static void whatever_the_mark_says_is_a_warning(struct world *w)
{
    char longest[2001];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    memcpy(longest, "protocol=1 ", 11);
    begin(w, &kinds[0]);
    world_redis(w, "SET %s %s", kind->key, longest);
    union any *mine = world_any(w, world_client(w, ""), false);
    use(mine);
    expect_warnings(1);
    begin(w, &kinds[0]);
    world_redis(w, "SET %s %s", kind->key, "protocol=1 a\nb");
    half_an_hour_passes(mine);
    use(mine); /* it has been told that others differ */
    expect_warnings(0);
    use(world_any(w, world_client(w, ""), false));
    expect_warnings(0);
}

int main(void)
{
    return world_run(agreement_costs_no_command, each_side_is_told_once, the_last_one_who_looked_is_compared_with,
                     a_mark_in_use_lasts, a_strict_client_is_refused, another_protocol_is_refused,
                     who_waits_is_told_first, another_process_is_found, lost_answers_change_nothing,
                     threads_are_told_together, whatever_the_mark_says_is_a_warning);
}
