/* SPDX-License-Identifier: MIT */
/*
 * healthy_server_test.c - no call of any kind says EIO or ENOTCONN because of a server that is well: F03, F09 the idle
 * connections were closed a moment ago, F51 the process stood still for three command timeouts, F78 thousands of threads call
 * at one moment
 *
 * labels: memory
 * seconds: 20
 * processors: 6
 */
#include "client/client.h"
#include "proxy.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 256 };

/* A thread that goes through a row, or all of them, with names of its own. */
struct walker {
    lk_client_t *client;
    void (*before)(struct walker *walker); /* each call, or NULL */
    struct world *w;
    struct proxy *proxy;
    char name[32];
    int failed;        /* calls */
    char first[WORDS]; /* of them, in words */
};

static void called(struct walker *walker, const char *what, int rc, int expected)
{
    if (rc == expected)
        return;
    if (walker->failed++ == 0)
        snprintf(walker->first, sizeof walker->first, "%s: %s is %d, %s", walker->name, what, rc, lk_errortext());
}

#define ENDS(expected, call)                                                                                           \
    do {                                                                                                               \
        if (walker->before != NULL)                                                                                    \
            walker->before(walker);                                                                                    \
        called(walker, #call, (call), (expected));                                                                     \
    } while (0)
#define CALL(call) ENDS(0, call)
#define EXPIRES(call) called(walker, #call, (call), ETIMEDOUT) /* what is cut at its limit may be unknown */

/* --- a function for each kind: all its calls that ask the server --------------------------------------------------- */

enum { LIMIT_MS = 25000, LEASE_MS = 60000 };

static void walk_mutex(struct walker *walker, const lk_mutexattr_t *attr)
{
    lk_mutex_t m;
    lk_mutexinfo_t info = LK_MUTEXINFO_INIT;
    lk_waiter_t waiter;
    unsigned count;
    CALL(lk_mutex_init(&m, walker->client, walker->name, attr));
    CALL(lk_mutex_lock(&m));
    CALL(lk_mutex_lockfor(&m, LIMIT_MS)); /* a level more */
    CALL(lk_mutex_unlock(&m));
    CALL(lk_mutex_check(&m));
    CALL(lk_mutex_extend(&m, LEASE_MS));
    CALL(lk_mutex_info(&m, &info));
    CALL(lk_mutex_queue(&m, &waiter, sizeof waiter, 1, &count));
    CALL(lk_mutex_unlock(&m));
    CALL(lk_mutex_trylock(&m));
    CALL(lk_mutex_forceunlock(&m));
    ENDS(ESTALE, lk_mutex_check(&m));
    ENDS(ESTALE, lk_mutex_unlock(&m));
    CALL(lk_mutex_destroy(&m));
}

static void walk_plain(struct walker *walker)
{
    walk_mutex(walker, NULL);
}

static void walk_fair(struct walker *walker)
{
    lk_mutexattr_t fair = LK_MUTEXATTR_INIT;
    fair.fair = 1;
    walk_mutex(walker, &fair);
}

static void walk_rwlock(struct walker *walker)
{
    lk_rwlock_t rw;
    lk_rwlockinfo_t info = LK_RWLOCKINFO_INIT;
    lk_waiter_t waiter;
    unsigned count;
    CALL(lk_rwlock_init(&rw, walker->client, walker->name, NULL));
    CALL(lk_rwlock_rdlock(&rw));
    CALL(lk_rwlock_check(&rw));
    CALL(lk_rwlock_extend(&rw, LEASE_MS));
    CALL(lk_rwlock_unlock(&rw));
    CALL(lk_rwlock_tryrdlock(&rw));
    CALL(lk_rwlock_unlock(&rw));
    CALL(lk_rwlock_wrlock(&rw));
    CALL(lk_rwlock_extend(&rw, LEASE_MS));
    CALL(lk_rwlock_info(&rw, &info));
    CALL(lk_rwlock_queue(&rw, &waiter, sizeof waiter, 1, &count));
    CALL(lk_rwlock_downgrade(&rw));
    CALL(lk_rwlock_unlock(&rw));
    CALL(lk_rwlock_trywrlock(&rw));
    CALL(lk_rwlock_forceunlock(&rw));
    ENDS(ESTALE, lk_rwlock_check(&rw));
    ENDS(ESTALE, lk_rwlock_unlock(&rw));
    CALL(lk_rwlock_destroy(&rw));
}

static void walk_counting(struct walker *walker)
{
    lk_sem_t s;
    lk_seminfo_t info = LK_SEMINFO_INIT;
    lk_waiter_t waiter;
    unsigned count;
    int value;
    CALL(lk_sem_open(&s, walker->client, walker->name, O_CREAT, 4, NULL));
    CALL(lk_sem_wait(&s));
    CALL(lk_sem_post(&s));
    CALL(lk_sem_trywait(&s));
    CALL(lk_sem_acquire(&s, 2, LIMIT_MS));
    CALL(lk_sem_release(&s, 3));
    CALL(lk_sem_getvalue(&s, &value));
    CALL(lk_sem_addpermits(&s, 2));
    CALL(lk_sem_drain(&s, &count));
    called(walker, "the number of permits", (int)count, 6);
    CALL(lk_sem_setpermits(&s, &(unsigned){ 6 }, 3));
    CALL(lk_sem_info(&s, &info));
    CALL(lk_sem_queue(&s, &waiter, sizeof waiter, 1, &count));
    CALL(lk_sem_delete(&s));
    CALL(lk_sem_trysetpermits(&s, 3));
    CALL(lk_sem_delete(&s));
    CALL(lk_sem_destroy(&s));
}

static void walk_leased(struct walker *walker)
{
    lk_sem_t s;
    const lk_semattr_t attr = { .size = sizeof attr, .leased = 1 };
    lk_seminfo_t info = LK_SEMINFO_INIT;
    int value;
    CALL(lk_sem_init(&s, walker->client, walker->name, 4, &attr));
    CALL(lk_sem_wait(&s));
    CALL(lk_sem_acquire(&s, 2, LIMIT_MS));
    CALL(lk_sem_check(&s));
    CALL(lk_sem_extend(&s, LEASE_MS));
    CALL(lk_sem_post(&s));
    CALL(lk_sem_getvalue(&s, &value));
    CALL(lk_sem_release(&s, 2));
    CALL(lk_sem_info(&s, &info));
    CALL(lk_sem_addpermits(&s, 1));
    CALL(lk_sem_delete(&s));
    CALL(lk_sem_destroy(&s));
}

static void walk_ids(struct walker *walker)
{
    lk_sem_t s;
    const lk_semattr_t attr = { .size = sizeof attr, .leased = 1 };
    char id[LK_PERMIT_ID] = "";
    int64_t ms;
    CALL(lk_sem_init(&s, walker->client, walker->name, 2, &attr));
    CALL(lk_sem_acquireid(&s, LIMIT_MS, id));
    CALL(lk_sem_checkid(&s, id));
    CALL(lk_sem_remainingid(&s, id, &ms));
    CALL(lk_sem_extendid(&s, id, LEASE_MS));
    CALL(lk_sem_releaseid(&s, id));
    CALL(lk_sem_delete(&s));
    CALL(lk_sem_destroy(&s));
}

static void walk_latch(struct walker *walker)
{
    lk_latch_t l;
    lk_latchinfo_t info = LK_LATCHINFO_INIT;
    unsigned count;
    CALL(lk_latch_init(&l, walker->client, walker->name, NULL));
    CALL(lk_latch_trysetcount(&l, 6));
    CALL(lk_latch_countdown(&l));
    CALL(lk_latch_countdownby(&l, 2));
    CALL(lk_latch_getcount(&l, &count));
    called(walker, "the count", (int)count, 3);
    CALL(lk_latch_info(&l, &info));
    EXPIRES(lk_latch_waitfor(&l, 10));
    CALL(lk_latch_setcount(&l, 1));
    CALL(lk_latch_countdown(&l));
    CALL(lk_latch_wait(&l));
    CALL(lk_latch_trysetcount(&l, 1));
    CALL(lk_latch_delete(&l));
    CALL(lk_latch_destroy(&l));
}

static void walk_barrier(struct walker *walker)
{
    lk_barrier_t b;
    lk_barrierinfo_t info = LK_BARRIERINFO_INIT;
    CALL(lk_barrier_init(&b, walker->client, walker->name, 1, NULL));
    ENDS(LK_BARRIER_SERIAL, lk_barrier_wait(&b));
    CALL(lk_barrier_info(&b, &info));
    ENDS(LK_BARRIER_SERIAL, lk_barrier_waitfor(&b, LIMIT_MS));
    CALL(lk_barrier_reset(&b));
    CALL(lk_barrier_destroy(&b));
}

static void walk_cond(struct walker *walker)
{
    lk_cond_t c;
    lk_mutex_t m;
    lk_condinfo_t info = LK_CONDINFO_INIT;
    CALL(lk_mutex_init(&m, walker->client, walker->name, NULL));
    CALL(lk_cond_init(&c, walker->client, walker->name, NULL));
    CALL(lk_cond_signal(&c));
    CALL(lk_cond_broadcast(&c));
    CALL(lk_mutex_lock(&m));
    EXPIRES(lk_cond_waitfor(&c, &m, 10));
    CALL(lk_cond_info(&c, &info));
    CALL(lk_mutex_unlock(&m));
    CALL(lk_cond_destroy(&c));
    CALL(lk_mutex_destroy(&m));
}

static void walk_once(struct walker *walker)
{
    lk_once_t o;
    lk_onceinfo_t info = LK_ONCEINFO_INIT;
    char *result = NULL;
    CALL(lk_once_init(&o, walker->client, walker->name, NULL));
    CALL(lk_once_begin(&o, LIMIT_MS));
    CALL(lk_once_check(&o));
    CALL(lk_once_fail(&o));
    CALL(lk_once_begin(&o, LIMIT_MS));
    CALL(lk_once_end(&o, "done"));
    CALL(lk_once_result(&o, &result));
    lk_free(result);
    CALL(lk_once_info(&o, &info));
    CALL(lk_once_reset(&o));
    CALL(lk_once_destroy(&o));
}

static void walk_stripes(struct walker *walker)
{
    lk_stripes_t s;
    unsigned index = 0;
    CALL(lk_stripes_init(&s, walker->client, walker->name, 2));
    CALL(lk_stripes_trylockany(&s, 1, &index));
    CALL(lk_mutex_unlock(lk_stripes_at(&s, index)));
    CALL(lk_stripes_destroy(&s));
}

static void walk_multi(struct walker *walker)
{
    lk_multi_t s;
    lk_mutex_t m;
    lk_rwlock_t rw;
    lk_multiinfo_t info = LK_MULTIINFO_INIT;
    char name[48];
    snprintf(name, sizeof name, "%s-rw", walker->name);
    CALL(lk_mutex_init(&m, walker->client, walker->name, NULL));
    CALL(lk_rwlock_init(&rw, walker->client, name, NULL));
    CALL(lk_multi_init(&s));
    CALL(lk_multi_addmutex(&s, &m));
    CALL(lk_multi_addwrite(&s, &rw));
    CALL(lk_multi_lock(&s));
    CALL(lk_multi_check(&s));
    CALL(lk_multi_info(&s, &info));
    CALL(lk_multi_unlock(&s));
    CALL(lk_multi_trylock(&s));
    CALL(lk_multi_unlock(&s));
    CALL(lk_multi_destroy(&s));
    CALL(lk_rwlock_destroy(&rw));
    CALL(lk_mutex_destroy(&m));
}

static const struct row {
    const char *name;
    void (*walk)(struct walker *walker);
} rows[] = { { "mutex", walk_plain },     { "fair", walk_fair },       { "rwlock", walk_rwlock },
             { "counting", walk_counting }, { "leased", walk_leased },   { "ids", walk_ids },
             { "latch", walk_latch },     { "barrier", walk_barrier }, { "cond", walk_cond },
             { "once", walk_once },       { "stripes", walk_stripes }, { "multi", walk_multi } };
enum { ROWS = sizeof rows / sizeof rows[0] };

static void walk_row(struct walker *walker, int row, int number)
{
    snprintf(walker->name, sizeof walker->name, "%s-%d", rows[row].name, number);
    rows[row].walk(walker);
}

/* --- the faults ---------------------------------------------------------------------------------------------------- */

static void kill_idle(struct walker *walker)
{
    world_killcommands(walker->w);
    world_killsubscriptions(walker->w);
}

/* By TCP, where what is sent then is taken all the same. */
static void close_idle(struct walker *walker)
{
    proxy_cut(walker->proxy);
}

static void after_idle_connections_were_closed(struct world *w)
{
    static const char options[] = "lease=60s&command_timeout=5s";
    struct proxy *proxy = proxy_begin_tcp(w);
    int failed = 0;
    world_allow(w, "latchkey:*");
    for (int row = 0; row < 2 * ROWS; row++) {
        struct walker walker = { .client = row < ROWS ? world_client(w, options) : proxy_client(proxy, options),
                                 .before = row < ROWS ? kill_idle : close_idle,
                                 .w = w,
                                 .proxy = proxy };
        walk_row(&walker, row % ROWS, row / ROWS);
        if (walker.failed > 0)
            print_message("    %d failed; %s\n", walker.failed, walker.first);
        failed += walker.failed;
    }
    assert_int_equal(0, failed);
}

enum { COMMAND_MS = 1000, STOPS = 3, WALKERS = 8 };

struct stopping {
    struct gate end;
    int rounds, failed;
    char first[WORDS];
};

struct stopped {
    struct stopping *shared;
    struct walker walkers[WALKERS];
};

static int walk_on(int index, void *arg)
{
    struct stopped *stopped = arg;
    struct walker *walker = &stopped->walkers[index];
    for (int i = index; !gate_is_open(&stopped->shared->end); i++) {
        walk_row(walker, i % ROWS, index);
        __atomic_add_fetch(&stopped->shared->rounds, 1, __ATOMIC_SEQ_CST);
    }
    return 0;
}

static int walk_until_the_end(struct world *w, void *arg)
{
    struct stopped stopped = { .shared = arg };
    lk_client_t *client = world_client(w, "lease=60s&command_timeout=1s");
    for (int i = 0; i < WALKERS; i++)
        stopped.walkers[i].client = client;
    world_ready(w);
    run_threads(WALKERS, walk_on, &stopped);
    for (int i = 0; i < WALKERS; i++) {
        stopped.shared->failed += stopped.walkers[i].failed;
        if (stopped.walkers[i].failed > 0)
            memcpy(stopped.shared->first, stopped.walkers[i].first, WORDS);
    }
    return 0;
}

static void after_the_process_stood_still(struct world *w)
{
    world_allow(w, "latchkey:*");
    struct stopping *shared = world_shared(w, sizeof *shared);
    pid_t child = world_fork(w, walk_until_the_end, shared);
    for (int i = 0; i < STOPS; i++) {
        int rounds = __atomic_load_n(&shared->rounds, __ATOMIC_SEQ_CST);
        eventually(__atomic_load_n(&shared->rounds, __ATOMIC_SEQ_CST) > rounds, 10000);
        world_stop(child);
        sleep_ms(3 * COMMAND_MS);
        world_cont(child);
    }
    sleep_ms(COMMAND_MS);
    gate_open(&shared->end);
    assert_int_equal(0, world_wait(w, child));
    if (shared->failed > 0)
        print_message("    %d failed; %s\n", shared->failed, shared->first);
    assert_int_equal(0, shared->failed);
}

/* Two threads: one is about to read the answers of both when the process is stopped. */
struct meeting {
    struct gate asks, reads, goes_on;
    int codes[2];
    unsigned long long connects;
};

static struct meeting *meeting;
static __thread bool stands;

/* In front of the C library's. When the process goes on, the other thread finds before this one that its time is over. */
ssize_t recv(int fd, void *bytes, size_t size, int flags)
{
    if (stands) {
        stands = false;
        gate_open(&meeting->reads);
        while (!gate_is_open(&meeting->goes_on))
            syscall(SYS_nanosleep, &(struct timespec){ 0, 1000000 }, NULL);
        syscall(SYS_nanosleep, &(struct timespec){ 0, 100000000 }, NULL);
    }
    return syscall(SYS_recvfrom, fd, bytes, size, flags, NULL, NULL);
}

static int read_for_both(void *arg)
{
    unsigned count;
    stands = true;
    return lk_latch_getcount(arg, &count);
}

static int meet(struct world *w, void *arg)
{
    meeting = arg;
    struct worker reader;
    unsigned count;
    lk_client_t *client = world_client(w, "command_timeout=1s");
    lk_latch_t *gate = world_latch(w, client, "gate");
    assert_lk(0, lk_latch_getcount(gate, &count)); /* from now on the server knows the script */
    world_ready(w);
    gate_pass(&meeting->asks);
    worker_start(&reader, read_for_both, gate);
    sleep_ms(COMMAND_MS / 20);
    meeting->codes[0] = lk_latch_getcount(gate, &count);
    meeting->codes[1] = worker_join(&reader);
    meeting->connects = lk__node_connects(&client->node, LK__LANE_COMMANDS);
    return 0;
}

/* Its answer lies there, and the thread that is to read it is a bit slower than its own clock. */
static void an_answer_that_came_meanwhile_counts(struct world *w)
{
    struct meeting *shared = world_shared(w, sizeof *shared);
    pid_t child = world_fork(w, meet, shared);
    world_stop_server(w);
    gate_open(&shared->asks);
    sleep_ms(COMMAND_MS / 5);
    world_cont_server(w);
    gate_pass(&shared->reads);
    world_stop(child);
    sleep_ms(COMMAND_MS * 3 / 2);
    gate_open(&shared->goes_on);
    world_cont(child);
    assert_int_equal(0, world_wait(w, child));
    assert_lk(0, shared->codes[0]);
    assert_lk(0, shared->codes[1]);
    assert_int_equal(1, shared->connects);
}

/* --- many threads ------------------------------------------------------------------------------------------------- */

enum { THREADS = 6000, STACK = 128 * 1024 };

static struct {
    struct walker walkers[THREADS];
    pthread_t threads[THREADS];
    pthread_barrier_t ready;
    struct timespec begin;
} crowd;

/* They sleep until a date, so that none wakes another. */
static void *walk_in_a_crowd(void *arg)
{
    int number = (int)((struct walker *)arg - crowd.walkers);
    pthread_barrier_wait(&crowd.ready);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &crowd.begin, NULL) == EINTR)
        ;
    walk_row(arg, number % ROWS, number);
    return NULL;
}

static void from_many_threads_at_once(struct world *w)
{
    if (SANITIZED)
        skip(); /* threads are too dear there */
    world_allow(w, "*");
    lk_client_t *client = world_client(w, "lease=60s&command_timeout=15s");
    pthread_attr_t attr;
    int began = 0, failed = 0;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    pthread_barrier_init(&crowd.ready, NULL, THREADS + 1);
    for (; began < THREADS; began++) {
        crowd.walkers[began] = (struct walker){ .client = client };
        if (pthread_create(&crowd.threads[began], &attr, walk_in_a_crowd, &crowd.walkers[began]) != 0)
            break;
    }
    assert_int_equal(THREADS, began);
    clock_gettime(CLOCK_MONOTONIC, &crowd.begin);
    crowd.begin.tv_sec += 1;
    pthread_barrier_wait(&crowd.ready);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(crowd.threads[i], NULL);
        if (crowd.walkers[i].failed > 0 && failed++ < 5)
            print_message("    %d failed; %s\n", crowd.walkers[i].failed, crowd.walkers[i].first);
    }
    pthread_attr_destroy(&attr);
    pthread_barrier_destroy(&crowd.ready);
    assert_int_equal(0, failed);
    assert_int_equal(1, lk__node_connects(&client->node, LK__LANE_COMMANDS));
}

int main(void)
{
    return world_run(after_idle_connections_were_closed, after_the_process_stood_still,
                     an_answer_that_came_meanwhile_counts, from_many_threads_at_once);
}
