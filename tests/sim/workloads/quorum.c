/* SPDX-License-Identifier: MIT */
/*
 * quorum.c - machines lock and unlock redlocks on 3 or 5 servers that fail
 *
 * Rounds   Each round has faults of servers and machines, in some rounds also the storm. Then all is repaired:
 *          everybody is served, everybody rests, and nothing of what was released or given up is left at any server.
 * Judges   Of one name no two hold at once, and tokens rise. No hold is good for longer than a majority of the servers
 *          has it. A server that started a moment ago grants nothing. Codes are those of the header, for what the
 *          servers do.
 * Exams    A client of its own meets servers that are dead, silent, or refuse, and nothing else happens: each call has
 *          the code that follows from that, in time.
 * Excused  Where a server forgets and votes at once, two may hold. What such a server does beyond that is judged.
 */
#include "quorum.h"
#include "workload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    SERVERS_MOST = 5,
    MACHINES_MOST = 3,
    THREADS_MOST = 2,
    NAMES_MOST = 2,
    RETRY_MS = 50,
    TICK_MS = 50,
    FORKS_MOST = 40
};
enum { KNOWN_MS = 3500 }; /* by then a client knows how a server is, if it asks: connect_timeout, and once more */
enum { LATE_MS = 60, SETTLE_MS = 400 }; /* for threads that have to wait for their turn */

/* What a server does to its clients. */
enum state { WELL, DEAD, FROZEN, DENIES, LOCKED_OUT, FULL_UP, REPLICA };

enum fault {
    RESTART,
    RESTART_TWICE,
    KILL,
    FREEZE,
    SLOW,
    CUT,
    FORGET_SCRIPTS,
    FLUSH,
    DENY,
    LOCK_OUT,
    FILL_UP,
    DEMOTE,
    KILL_MACHINE,
    FREEZE_MACHINE,
    FAULTS
};

/* Of one server, as the driver knows it. Times are true ones; 0: never. */
struct server {
    enum state state;
    int64_t repair_ns;  /* when the state is to end */
    int64_t began_ns;   /* its process */
    int64_t lost_ns;    /* its memory; it had no vote after that */
    int64_t refused_ns; /* it refused until then at least */
    int64_t sample_true_ns, sample_us;
    bool undated; /* it forgot when a client first met it, or was never told */
};

/* Of one redlock: who believes to hold it, and until when. */
struct name {
    char text[16];
    uint64_t number;       /* of the belief */
    int64_t called_ns;     /* the call that got it */
    int64_t good_until_ns; /* as far as its holder was told; 0: nobody */
    unsigned extends;      /* each may have made that less for a while */
    uint64_t doubted;      /* a belief of which the servers know too little */
    int64_t served_ns;
    uint64_t token;
    int64_t token_ns;
};

/* A client of its own asks what follows from how the servers are. */
struct exam {
    enum { FREE, HELD, BUSY, SET } is; /* its name: by nobody, by itself, by another one; or it is a set of mutexes */
    enum state states[SERVERS_MOST];
    bool young[SERVERS_MOST];
    bool ready, applied; /* for the states; they are there */
    bool starves;        /* before that */
    unsigned shift;      /* of a set: of names, against servers */
    int wanted;          /* by somebody else, at that server; -1: none */
    int gone;            /* at that server somebody deletes it just before the unlock; -1: none */
    bool deletes, deleted;
    bool off; /* some server was late, and does not have it */
};

/* What all machines share. */
struct shared {
    struct gate over;
    bool rests, storms, takes_its_time;
    int servers, majority;
    unsigned machines, threads, names;
    bool with_user, fenced, comes_and_goes, described;
    int64_t longest_ms, command_ms, node_ms;
    int64_t drift_ppm;
    int64_t forgot_ns;                       /* a server that voted on */
    int64_t calm_ns;                         /* since then no server or machine has failed; 0: they fail */
    int64_t killed_ns;                       /* a machine, or it could not give back what it held */
    int64_t disturbed_ns[MACHINES_MOST + 1]; /* a machine stood still until then */
    bool skewed, stepped;                    /* clocks of servers */
    struct server at[SERVERS_MOST];
    struct name name[NAMES_MOST];
    unsigned resting;
    struct exam exam;
    int64_t served_ns[MACHINES_MOST][THREADS_MOST];
    char url[512], single_urls[SERVERS_MOST][256];
    char two_names_url[256], two_spellings_url[256]; /* of one server, in a list of three */
};

struct machine {
    struct shared *shared;
    unsigned number;
    lk_client_t *client;
    lk_redlock_t redlocks[NAMES_MOST];
    bool leaves;
    int64_t mono_ns, true_ns; /* at one moment */
};

struct user {
    struct machine *machine;
    struct luck luck;
    unsigned number;
};

/* For who wants to know what a seed does. It is no point, and asks for no time. */
__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...)
{
    char text[240];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "~ %s\n", text);
}

/* --- time --------------------------------------------------------------------------------------------------------- */

static int64_t mono_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* So many milliseconds of this machine's clock, in true nanoseconds. */
static int64_t true_length(const struct machine *machine, int64_t ms)
{
    int64_t mono = mono_ns() - machine->mono_ns, real = true_ns() - machine->true_ns;
    return (int64_t)((__int128)ms * 1000000 * real / (mono > 0 ? mono : 1));
}

/* --- a user ------------------------------------------------------------------------------------------------------- */

/* So many servers refused since then that the others are no majority. */
static bool refusal_is_due(const struct shared *shared, int64_t since_ns)
{
    int refusing = 0;
    for (int i = 0; i < shared->servers; i++)
        refusing += shared->at[i].refused_ns >= since_ns - (shared->storms ? TROUBLE_MS : KNOWN_MS) * 1000000LL ||
                    shared->at[i].state >= DENIES;
    return refusing > shared->servers - shared->majority;
}

static bool is_refusal(int code)
{
    return code == EACCES || code == ENOSPC || code == EPROTO;
}

static void judge_code(const struct shared *shared, const char *call, int code, int64_t began_ns, const int *codes)
{
    for (; *codes >= 0; codes++)
        if (code == *codes)
            return;
    must(is_refusal(code), "%s returned %d: %s", call, code, lk_errortext());
    must(refusal_is_due(shared, began_ns), "%s returned %d, though a majority refuses nothing: %s", call, code,
         lk_errortext());
}

#define judge_code(shared, call, code, began_ns, ...)                                                                  \
    judge_code((shared), (call), (code), (began_ns), (const int[]){ __VA_ARGS__, -1 })

/* Of a call of a machine that did not stand still, while there is no storm. */
static void judge_length(struct user *user, const char *call, int64_t began_ns, int64_t most_ms)
{
    const struct shared *shared = user->machine->shared;
    int64_t took_ms = (true_ns() - began_ns) / 1000000;
    if (shared->storms || shared->disturbed_ns[user->machine->number] >= began_ns)
        return;
    must(took_ms <= most_ms * 101 / 100 + LATE_MS, "%s took %lld ms, not %lld", call, (long long)took_ms,
         (long long)most_ms);
}

/* What forgot since then may be why a hold was lost; its holder is told when it asks again. */
static bool memory_was_lost(const struct shared *shared, int64_t since_ns)
{
    bool lost = shared->forgot_ns >= since_ns;
    for (int i = 0; i < shared->servers; i++)
        lost |= shared->at[i].lost_ns >= since_ns || shared->at[i].state == DEAD;
    return lost;
}

/*
 * Time that is left, from before it was asked for. False: the hold was lost. What was lost once stays so: who is good
 * now was so all the time.
 */
static bool believe(struct user *user, struct name *name, uint64_t number, int64_t called_ns)
{
    struct machine *machine = user->machine;
    struct shared *shared = machine->shared;
    int64_t asked_ns = true_ns(), left_ms = 0;
    int code = lk_redlock_remaining(&machine->redlocks[name - shared->name], &left_ms);
    must(code == 0 || code == ESTALE || code == ECANCELED, "lk_redlock_remaining() returned %d", code);
    int64_t until_ns = asked_ns + (code == 0 ? true_length(machine, left_ms) : 0);
    if (code != 0 || true_ns() >= until_ns) {
        if (name->number == number)
            name->good_until_ns = 0;
        return false;
    }
    bool excused = shared->forgot_ns >= called_ns;
    must(name->number == number || excused, "two hold %s at once: the first one has %lld ms more", name->text,
         (long long)left_ms);
    must(name->doubted != number || excused, "%s was at too few servers, and is said to be good for %lld ms more",
         name->text, (long long)left_ms);
    if (name->number != number)
        return false;
    name->good_until_ns = until_ns;
    return true;
}

/* A token that a clock gave which was ahead may be larger than that of a server that forgot. */
static bool tokens_may_fall(const struct shared *shared, const struct name *name)
{
    int64_t lost_ns = shared->forgot_ns, now_ns = true_ns();
    for (int i = 0; i < shared->servers; i++)
        lost_ns = shared->at[i].lost_ns > lost_ns ? shared->at[i].lost_ns : lost_ns;
    if (shared->skewed || shared->stepped)
        return lost_ns > 0;
    return lost_ns > 0 && now_ns - name->token_ns < now_ns / 1000000 * 2 * shared->drift_ppm;
}

static void judge_token(struct user *user, struct name *name)
{
    struct shared *shared = user->machine->shared;
    uint64_t token = 0;
    int code = lk_redlock_token(&user->machine->redlocks[name - shared->name], &token);
    if (!shared->fenced)
        must(code == ENOTSUP || code == ESTALE || code == ECANCELED, "lk_redlock_token() returned %d without tokens",
             code);
    if (code != 0)
        return;
    must(token > name->token || tokens_may_fall(shared, name), "token %llu of %s follows %llu",
         (unsigned long long)token, name->text, (unsigned long long)name->token);
    name->token = token;
    name->token_ns = true_ns();
}

static bool enter(struct user *user, struct name *name, int64_t called_ns, uint64_t *number)
{
    struct shared *shared = user->machine->shared;
    int64_t asked_ns = true_ns(), left_ms = 0;
    int code = lk_redlock_remaining(&user->machine->redlocks[name - shared->name], &left_ms);
    must(code == 0 || code == ESTALE || code == ECANCELED, "lk_redlock_remaining() returned %d", code);
    if (code == ESTALE && !memory_was_lost(shared, called_ns))
        must(true_ns() - called_ns > shared->longest_ms * 450000, "%s was locked, and not held", name->text);
    if (code != 0 || true_ns() >= asked_ns + true_length(user->machine, left_ms))
        return false;
    must(name->good_until_ns <= asked_ns || memory_was_lost(shared, name->called_ns),
         "two hold %s at once: the first one for %lld us more", name->text,
         (long long)(name->good_until_ns - asked_ns) / 1000);
    *number = ++name->number;
    name->called_ns = called_ns;
    name->good_until_ns = asked_ns + true_length(user->machine, left_ms);
    name->served_ns = asked_ns;
    tell("machine %u, thread %u enters %s, %llu, for %lld ms", user->machine->number, user->number, name->text,
         (unsigned long long)*number, (long long)left_ms);
    judge_token(user, name);
    return true;
}

static void ask_about(struct user *user, struct name *name, uint64_t number)
{
    struct shared *shared = user->machine->shared;
    lk_redlock_t *redlock = &user->machine->redlocks[name - shared->name];
    lk_redlockinfo_t info = LK_REDLOCKINFO_INIT;
    int64_t began_ns = true_ns();
    int code;
    switch (luck_below(&user->luck, 4)) {
    case 0:
        code = lk_redlock_check(redlock);
        judge_length(user, "lk_redlock_check()", began_ns, shared->command_ms);
        judge_code(shared, "lk_redlock_check()", code, began_ns, 0, ESTALE, ENOTCONN, ECANCELED);
        break;
    case 1:
        if (name->number == number)
            name->good_until_ns = 0; /* it may become less */
        name->extends++;
        code = lk_redlock_extend(redlock, luck_about(&user->luck, shared->longest_ms / 2, shared->longest_ms));
        judge_length(user, "lk_redlock_extend()", began_ns, shared->command_ms);
        judge_code(shared, "lk_redlock_extend()", code, began_ns, 0, ESTALE, EIO, ECANCELED);
        break;
    case 2:
        code = lk_redlock_info(redlock, &info);
        judge_length(user, "lk_redlock_info()", began_ns, shared->command_ms);
        judge_code(shared, "lk_redlock_info()", code, began_ns, 0, ENOTCONN, ECANCELED);
        break;
    }
}

/* Hold it for a while, and look. */
static void stay(struct user *user, struct name *name, uint64_t number, int64_t called_ns)
{
    struct shared *shared = user->machine->shared;
    int64_t length_ms =
        luck_about(&user->luck, 1, luck_onein(&user->luck, 4) && !shared->calm_ns ? 3 * shared->longest_ms : 200);
    for (int64_t until_ns = true_ns() + length_ms * 1000000;
         true_ns() < until_ns && !user->machine->leaves && !shared->rests;) {
        if (!believe(user, name, number, called_ns))
            return;
        if (luck_onein(&user->luck, 4))
            ask_about(user, name, number);
        int64_t now_ns = true_ns(), left_ms = (until_ns - now_ns) / 1000000;
        if (shared->calm_ns != 0 && left_ms > 200)
            return;
        left_ms = left_ms < 1000 ? left_ms : 1000;
        rest_ms(left_ms > 0 ? luck_about(&user->luck, 1 + left_ms / 16, 1 + left_ms) : 1);
    }
}

/* How long a try waits for a server that does not answer. */
static int64_t node_timeout(const struct shared *shared, int64_t lease_ms)
{
    int64_t ms = shared->node_ms != 0 ? shared->node_ms : lease_ms / 20 > 20 ? lease_ms / 20 : 20;
    return (ms < shared->command_ms ? ms : shared->command_ms) * (shared->fenced ? 2 : 1);
}

static int lock(struct user *user, lk_redlock_t *redlock)
{
    struct shared *shared = user->machine->shared;
    lk_how_t how = LK_HOW_INIT;
    int64_t began_ns = true_ns(), limit_ms = luck_about(&user->luck, 1, 4 * shared->longest_ms);
    int code;
    switch (luck_below(&user->luck, 4)) {
    case 0:
        code = lk_redlock_trylock(redlock);
        judge_length(user, "lk_redlock_trylock()", began_ns, node_timeout(shared, shared->longest_ms));
        judge_code(shared, "lk_redlock_trylock()", code, began_ns, 0, EBUSY, ENOTCONN, ECANCELED);
        break;
    case 1:
        how.timeout_ms = limit_ms;
        how.lease_ms = luck_about(&user->luck, shared->longest_ms / 2, shared->longest_ms);
        how.fixed = luck_onein(&user->luck, 2) ? 1 : 0;
        code = lk_redlock_lockwith(redlock, &how);
        judge_length(user, "lk_redlock_lockwith()", began_ns, limit_ms + 2 * node_timeout(shared, how.lease_ms));
        judge_code(shared, "lk_redlock_lockwith()", code, began_ns, 0, ETIMEDOUT, ENOTCONN, ECANCELED);
        break;
    default:
        code = lk_redlock_lockfor(redlock, limit_ms);
        judge_length(user, "lk_redlock_lockfor()", began_ns, limit_ms + 2 * node_timeout(shared, shared->longest_ms));
        judge_code(shared, "lk_redlock_lockfor()", code, began_ns, 0, ETIMEDOUT, ENOTCONN, ECANCELED);
    }
    return code;
}

static void take_turn(struct user *user)
{
    struct shared *shared = user->machine->shared;
    struct name *name = &shared->name[luck_below(&user->luck, shared->names)];
    lk_redlock_t *redlock = &user->machine->redlocks[name - shared->name];
    uint64_t number = 0;
    int64_t called_ns = true_ns();
    int code = lock(user, redlock);
    tell("machine %u, thread %u: %s is %d", user->machine->number, user->number, name->text, code);
    if (code != 0)
        return;
    if (enter(user, name, called_ns, &number))
        stay(user, name, number, called_ns);
    shared->served_ns[user->machine->number][user->number] = true_ns();
    if (name->number == number)
        name->good_until_ns = 0;
    tell("machine %u, thread %u leaves %s, %llu", user->machine->number, user->number, name->text,
         (unsigned long long)number);
    int64_t began_ns = true_ns();
    code = lk_redlock_unlock(redlock);
    tell("machine %u, thread %u: %s is unlocked, %d", user->machine->number, user->number, name->text, code);
    judge_length(user, "lk_redlock_unlock()", began_ns, shared->command_ms);
    must(code == 0 || code == ESTALE || code == EIO || code == ECANCELED || (code == EPERM && user->machine->leaves),
         "lk_redlock_unlock() returned %d: %s", code, lk_errortext());
}

static int use(void *arg)
{
    struct user *user = arg;
    struct shared *shared = user->machine->shared;
    while (!gate_is_open(&shared->over) && !user->machine->leaves) {
        if (!shared->rests) {
            take_turn(user);
            rest_ms(shared->takes_its_time ? 1000 : luck_about(&user->luck, 1, 500));
            continue;
        }
        shared->resting++;
        while (shared->rests && !gate_is_open(&shared->over))
            rest_ms(10);
        shared->resting--;
    }
    return 0;
}

/* --- a machine ---------------------------------------------------------------------------------------------------- */

static void open_client(struct machine *machine)
{
    const struct shared *shared = machine->shared;
    const lk_redlockattr_t attr = { .size = sizeof attr,
                                    .fenced = shared->fenced,
                                    .longest_lease_ms = shared->longest_ms,
                                    .node_timeout_ms = shared->node_ms };
    int code;
    int64_t began_ns = true_ns();
    while ((code = lk_client_open(&machine->client, shared->url)) != 0) {
        must(code == ENOTCONN || is_refusal(code), "lk_client_open() returned %d: %s", code, lk_errortext());
        rest_ms(100);
    }
    (void)began_ns;
    for (unsigned i = 0; i < shared->names; i++)
        assert_lk(0, lk_redlock_init(&machine->redlocks[i], machine->client, shared->name[i].text, &attr));
}

/* With threads inside of calls, some of them holding. */
static void close_client(struct machine *machine)
{
    struct shared *shared = machine->shared;
    int64_t began_ns = true_ns();
    for (unsigned i = 0; i < shared->names; i++)
        (void)lk_redlock_destroy(&machine->redlocks[i]);
    int code = lk_client_close(machine->client);
    if (code == EIO)
        shared->killed_ns = true_ns();
    must(code == 0 || code == EIO, "lk_client_close() returned %d: %s", code, lk_errortext());
    judge_length(&(struct user){ .machine = machine }, "lk_client_close()", began_ns, 2 * shared->command_ms);
}

/* With threads inside of calls where it does not wait for them. */
static void live(struct machine *machine, struct luck *luck)
{
    struct shared *shared = machine->shared;
    struct user users[THREADS_MOST];
    struct worker workers[THREADS_MOST];
    int64_t until_ns = shared->comes_and_goes ? true_ns() + luck_about(luck, 20, 10000) * 1000000 : INT64_MAX;
    machine->leaves = false;
    open_client(machine);
    for (unsigned i = 0; i < shared->threads; i++) {
        users[i] = (struct user){ .machine = machine, .luck = luck_begin(), .number = i };
        worker_start(&workers[i], use, &users[i]);
    }
    while (!gate_is_open(&shared->over) && (true_ns() < until_ns || shared->rests))
        rest_ms(20);
    machine->leaves = true;
    for (unsigned i = 0; i < shared->threads; i++)
        assert_that(worker_join(&workers[i]) == 0);
    close_client(machine);
}

static int run_machine(struct world *w, void *arg)
{
    struct machine *machine = arg;
    struct luck luck;
    machine_begins(machine->number);
    world_ready(w);
    luck = luck_begin();
    machine->mono_ns = mono_ns();
    machine->true_ns = true_ns();
    rest_ms(1000); /* by which a millionth is a microsecond */
    while (!gate_is_open(&machine->shared->over))
        live(machine, &luck);
    return 0;
}

/* --- memory that is not there ------------------------------------------------------------------------------------- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void __libc_free(void *memory);

static long blocks;               /* allocated in this process, of all threads */
static __thread unsigned refused; /* which of the next allocations of this thread fails; 0: none */

static bool is_refused(void)
{
    if (refused == 0 || --refused > 0)
        return false;
    errno = ENOMEM;
    return true;
}

static void *count_block(void *memory)
{
    if (memory != NULL)
        __atomic_add_fetch(&blocks, 1, __ATOMIC_RELAXED);
    return memory;
}

void *malloc(size_t size)
{
    return is_refused() ? NULL : count_block(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
    return is_refused() ? NULL : count_block(__libc_calloc(count, size));
}

void *realloc(void *memory, size_t size)
{
    if (is_refused())
        return NULL;
    return memory == NULL ? count_block(__libc_malloc(size)) : __libc_realloc(memory, size);
}

void free(void *memory)
{
    if (memory != NULL)
        __atomic_sub_fetch(&blocks, 1, __ATOMIC_RELAXED);
    __libc_free(memory);
}

/* --- an exam ------------------------------------------------------------------------------------------------------ */

struct examinee {
    struct shared *shared;
    lk_client_t *client, *other;
    lk_events_t *events; /* of the client */
    lk_redlock_t redlock, others;
    struct user user; /* for the length of calls */
    struct machine machine;
};

static int count_states(const struct shared *shared, unsigned states)
{
    int count = 0;
    for (int i = 0; i < shared->servers; i++)
        count += !shared->exam.young[i] && (states >> shared->exam.states[i] & 1) != 0;
    return count;
}

static int count_young(const struct shared *shared)
{
    int count = 0;
    for (int i = 0; i < shared->servers; i++)
        count += shared->exam.young[i];
    return count;
}

/*
 * The code of servers that serve nobody, or have no memory for a call that needs some; 0: the other servers are a
 * majority.
 */
static int refusal(const struct shared *shared, unsigned states)
{
    if (count_states(shared, states) <= shared->servers - shared->majority)
        return 0;
    for (int i = 0; i < shared->servers; i++)
        if (!shared->exam.young[i] && (states >> shared->exam.states[i] & 1) != 0)
            return shared->exam.states[i] == FULL_UP ? ENOSPC : EACCES;
    return 0;
}

enum { REFUSES = 1 << DENIES | 1 << LOCKED_OUT, SERVES = 1 << WELL | 1 << FULL_UP };

static int code_of_a_try(const struct shared *shared)
{
    bool is_free = shared->exam.is == FREE;
    if (count_states(shared, is_free ? 1 << WELL : SERVES) >= shared->majority)
        return is_free ? 0 : EBUSY;
    int code = refusal(shared, is_free ? REFUSES | 1 << FULL_UP : REFUSES);
    return code != 0 ? code : ENOTCONN;
}

static int code_of_a_check(const struct shared *shared)
{
    if (count_states(shared, SERVES) >= shared->majority)
        return 0;
    if (count_young(shared) > shared->servers - shared->majority)
        return ESTALE;
    int code = refusal(shared, REFUSES);
    return code != 0 ? code : ENOTCONN;
}

static int code_of_an_unlock(const struct shared *shared)
{
    if (count_states(shared, SERVES) >= shared->majority)
        return 0;
    return count_young(shared) > shared->servers - shared->majority ? ESTALE : EIO;
}

static void expect(int expected, const char *call, int code)
{
    must(code == expected, "%s returned %d, not %d: %s", call, code, expected, lk_errortext());
}

static lk_client_t *open_for_exam(const struct shared *shared, lk_redlock_t *redlock)
{
    const lk_redlockattr_t attr = { .size = sizeof attr,
                                    .fenced = shared->fenced,
                                    .longest_lease_ms = shared->longest_ms,
                                    .node_timeout_ms = shared->node_ms };
    lk_client_t *client;
    int code = lk_client_open(&client, shared->url);
    must(code == 0, "lk_client_open() returned %d, with all servers well: %s", code, lk_errortext());
    assert_lk(0, lk_redlock_init(redlock, client, "exam", &attr));
    return client;
}

/* A server that is listed twice would have two votes. One that is late is met after the open, and votes once. */
static void list_one_twice(const char *url)
{
    lk_client_t *client;
    int code = 0;
    for (int tries = 0; tries < 10 && code == 0; tries++) {
        code = lk_client_open(&client, url);
        if (code == 0)
            (void)lk_client_close(client);
    }
    must(code == EINVAL, "lk_client_open() of a server that is listed twice returned %d: %s", code, lk_errortext());
}

/* Nobody else wants it. A server that is late may be asked for more than one try. */
static void lock_for_exam(const struct shared *shared, lk_redlock_t *redlock)
{
    int code = lk_redlock_lockfor(redlock, 2000 + shared->longest_ms);
    must(code == 0, "lk_redlock_lockfor() returned %d, with all servers well: %s", code, lk_errortext());
}

/* Somebody who holds is known at each server that was well all the time. */
static void ask_who(struct examinee *examinee)
{
    struct shared *shared = examinee->shared;
    lk_redlockinfo_t info = LK_REDLOCKINFO_INIT;
    lk_who_t who = LK_WHO_INIT;
    if (!shared->described || count_states(shared, SERVES) < shared->majority)
        return;
    int code = lk_redlock_info(&examinee->redlock, &info);
    must(code == 0 && info.holder[0] != '\0', "lk_redlock_info() returned %d, and no holder", code);
    code = lk_inspect_who(examinee->client, info.holder, &who);
    must(code == 0, "lk_inspect_who() returned %d of a holder: %s", code, lk_errortext());
}

/* So many servers lost it that no majority has it. */
static bool exam_is_lost(const struct shared *shared)
{
    return count_young(shared) > shared->servers - shared->majority;
}

static void examine_hold(struct examinee *examinee)
{
    struct shared *shared = examinee->shared;
    lk_redlock_t *redlock = &examinee->redlock;
    lk_event_t event = LK_EVENT_INIT;
    int64_t left_ms, began_ns;
    int lost = 0;
    if (exam_is_lost(shared)) {
        rest_ms(shared->longest_ms * 35 / 100 + shared->command_ms + 1100); /* by the next renewals it is seen */
        int code = lk_redlock_remaining(redlock, &left_ms);
        must(code == ESTALE, "%d servers restarted, and the hold is not lost", count_young(shared));
    }
    began_ns = true_ns();
    int code = lk_redlock_check(redlock);
    judge_length(&examinee->user, "lk_redlock_check()", began_ns, shared->command_ms);
    expect(code_of_a_check(shared), "lk_redlock_check()", code);
    began_ns = true_ns();
    code = lk_redlock_unlock(redlock);
    judge_length(&examinee->user, "lk_redlock_unlock()", began_ns, shared->command_ms);
    expect(code_of_an_unlock(shared), "lk_redlock_unlock()", code);
    while (lk_events_next(examinee->events, &event) == 0)
        lost += event.type == LK_EVENT_LOST;
    must(lost == exam_is_lost(shared), "of a hold that was%s lost there are %d such events",
         exam_is_lost(shared) ? "" : " not", lost);
}

/* A server that is slower than node_timeout_ms, as it may be, counts as away: then the next try has the code. */
static void try_it(struct examinee *examinee, bool waits)
{
    struct shared *shared = examinee->shared;
    lk_redlock_t *redlock = &examinee->redlock;
    int64_t node_ms = node_timeout(shared, shared->longest_ms);
    int expected = code_of_a_try(shared), code = -1;
    expected = waits && expected == EBUSY ? ETIMEDOUT : expected;
    for (int tries = 0; tries < 10 && code != expected; tries++) {
        int64_t began_ns = true_ns();
        code = waits ? lk_redlock_lockfor(redlock, 30) : lk_redlock_trylock(redlock);
        judge_length(&examinee->user, "a try", began_ns, waits ? 30 + 2 * node_ms : node_ms);
        if (code == 0)
            expect(0, "lk_redlock_unlock()", lk_redlock_unlock(redlock));
        rest_ms(code == expected ? 0 : 100);
    }
    expect(expected, waits ? "lk_redlock_lockfor()" : "lk_redlock_trylock()", code);
}

static void examine(struct examinee *examinee)
{
    if (examinee->shared->exam.is == HELD) {
        examine_hold(examinee);
        return;
    }
    if (examinee->shared->exam.is == BUSY)
        ask_who(examinee);
    try_it(examinee, false);
    try_it(examinee, true);
}

static void close_after_exam(struct examinee *examinee, lk_client_t *client, lk_redlock_t *redlock)
{
    int64_t began_ns = true_ns();
    (void)lk_redlock_destroy(redlock);
    int code = lk_client_close(client);
    must(code == 0 || code == EIO, "lk_client_close() returned %d: %s", code, lk_errortext());
    if (code == EIO)
        examinee->shared->killed_ns = true_ns();
    judge_length(&examinee->user, "lk_client_close()", began_ns, 2 * examinee->shared->command_ms);
}

/* A set of mutexes, one at each of the servers, and somebody who waits for one of them alone. */
struct set {
    const struct shared *shared;
    lk_client_t *clients[SERVERS_MOST], *rival_client;
    lk_mutex_t mutexes[SERVERS_MOST], wanted;
    lk_multi_t multi;
    int64_t had_ns;
};

static int want(void *arg)
{
    struct set *set = arg;
    int code = lk_mutex_lockfor(&set->wanted, 4 * set->shared->longest_ms);
    if (code == 0)
        set->had_ns = true_ns();
    return code == 0 ? lk_mutex_unlock(&set->wanted) : code;
}

static void make_set(struct set *set)
{
    const struct shared *shared = set->shared;
    char name[16];
    assert_lk(0, lk_multi_init(&set->multi));
    for (int i = 0; i < shared->servers; i++) {
        snprintf(name, sizeof name, "set-%d", (i + (int)shared->exam.shift) % shared->servers);
        assert_lk(0, lk_client_open(&set->clients[i], shared->single_urls[i]));
        assert_lk(0, lk_mutex_init(&set->mutexes[i], set->clients[i], name, NULL));
        assert_lk(0, lk_multi_addmutex(&set->multi, &set->mutexes[i]));
        if (i != shared->exam.wanted)
            continue;
        assert_lk(0, lk_client_open(&set->rival_client, shared->single_urls[i]));
        assert_lk(0, lk_mutex_init(&set->wanted, set->rival_client, name, NULL));
    }
}

static void judge_set(struct examinee *examinee, struct set *set)
{
    const struct shared *shared = examinee->shared;
    int64_t left_ms, began_ns;
    bool lost = false, bad = count_states(shared, 1 << WELL) + count_young(shared) < shared->servers;
    for (int i = 0; i < shared->servers; i++)
        lost |= lk_mutex_remaining(&set->mutexes[i], &left_ms) == ESTALE || i == shared->exam.gone;
    began_ns = true_ns();
    int code = lk_multi_unlock(&set->multi);
    judge_length(&examinee->user, "lk_multi_unlock()", began_ns, shared->command_ms);
    must(code == ESTALE || !lost, "lk_multi_unlock() returned %d, though a member was lost: %s", code, lk_errortext());
    must(code == ESTALE || code == EIO || code == ENOTCONN || code == EACCES || !bad,
         "lk_multi_unlock() returned %d, though a server is away", code);
    must(code == 0 || lost || bad || count_young(shared) > 0,
         "lk_multi_unlock() returned %d, with all servers well: %s", code, lk_errortext());
    rest_ms(2 * shared->command_ms + SETTLE_MS);
    if (set->rival_client != NULL)
        must(set->had_ns != 0 && set->had_ns - began_ns < 150000000,
             "what was unlocked at a server that is well was had after %lld ms",
             (long long)(set->had_ns - began_ns) / 1000000);
}

static void wait_for(const bool *that)
{
    while (!*that)
        rest_ms(5);
}

static void examine_set(struct examinee *examinee)
{
    struct shared *shared = examinee->shared;
    struct set set = { .shared = shared };
    struct worker rival;
    make_set(&set);
    assert_lk(0, lk_multi_lockfor(&set.multi, 10000));
    if (set.rival_client != NULL)
        worker_start(&rival, want, &set);
    rest_ms(SETTLE_MS);
    shared->exam.ready = true;
    wait_for(&shared->exam.applied);
    rest_ms(1100); /* by when a hold is lost of which a server that restarted knows nothing */
    shared->exam.deletes = true;
    wait_for(&shared->exam.deleted);
    judge_set(examinee, &set);
    if (set.rival_client != NULL)
        assert_that(worker_join(&rival) == 0);
}

static bool try_without_memory(lk_redlock_t *redlock, struct luck *luck)
{
    refused = 1 + (unsigned)luck_below(luck, 12);
    int code = lk_redlock_trylock(redlock);
    refused = 0;
    if (code == 0)
        (void)lk_redlock_unlock(redlock);
    must(code == 0 || code == ENOMEM || code == EBUSY || code == ENOTCONN,
         "lk_redlock_trylock() without memory returned %d", code);
    return code == ENOMEM;
}

/* A call that finds no memory keeps none. */
static void run_out_of_memory(struct examinee *examinee)
{
    enum { TRIES = 80 };
    struct luck luck = luck_begin();
    long before = 0;
    int failed = 0;
    for (int i = 0; i < 2 * TRIES; i++) {
        if (i == TRIES) { /* what is kept for the next calls is there by now */
            rest_ms(2 * examinee->shared->command_ms + SETTLE_MS);
            before = blocks;
            failed = 0;
        }
        failed += try_without_memory(&examinee->redlock, &luck);
    }
    rest_ms(2 * examinee->shared->command_ms + SETTLE_MS);
    must(failed < 10 || blocks - before < 2 * failed, "after %d calls without memory %ld blocks more are allocated",
         failed, blocks - before);
}

static int run_exam(struct world *w, void *arg)
{
    struct examinee *examinee = arg;
    struct shared *shared = examinee->shared;
    machine_begins(MACHINES_MOST);
    world_ready(w);
    examinee->machine = (struct machine){ .shared = shared, .number = MACHINES_MOST };
    examinee->user.machine = &examinee->machine;
    if (shared->exam.is == SET) {
        examine_set(examinee);
        return 0;
    }
    list_one_twice(shared->two_names_url);
    examinee->client = open_for_exam(shared, &examinee->redlock);
    assert_lk(0, lk_events_open(examinee->client, &examinee->events));
    examinee->other = open_for_exam(shared, &examinee->others);
    rest_ms(SETTLE_MS); /* all are connected */
    if (shared->exam.starves)
        run_out_of_memory(examinee);
    if (shared->exam.is != FREE)
        lock_for_exam(shared, shared->exam.is == HELD ? &examinee->redlock : &examinee->others);
    rest_ms(2 * node_timeout(shared, shared->longest_ms) + SETTLE_MS); /* it is known where all have it */
    shared->exam.ready = true;
    wait_for(&shared->exam.applied);
    if (shared->exam.off)
        return 0;
    if (shared->exam.is == HELD && !exam_is_lost(shared))
        (void)lk_redlock_check(&examinee->redlock); /* and finds out who is how */
    else if (shared->exam.is != HELD && lk_redlock_trylock(&examinee->redlock) == 0)
        (void)lk_redlock_unlock(&examinee->redlock);
    rest_ms(SETTLE_MS);
    examine(examinee);
    list_one_twice(shared->two_spellings_url);
    assert_lk(0, lk_events_close(examinee->events));
    close_after_exam(examinee, examinee->client, &examinee->redlock);
    if (shared->exam.is == BUSY)
        (void)lk_redlock_unlock(&examinee->others); /* of the thread that holds it */
    close_after_exam(examinee, examinee->other, &examinee->others);
    return 0;
}

/* --- the driver: servers ------------------------------------------------------------------------------------------ */

struct driver {
    struct world *w;
    struct quorum *q;
    struct shared *shared;
    struct luck luck;
    struct machine machines[MACHINES_MOST];
    pid_t pids[MACHINES_MOST];
    int64_t thaw_ns[MACHINES_MOST]; /* 0: it is not frozen */
    unsigned forks;
    unsigned most_bad;
    int64_t *clocks_us[SERVERS_MOST]; /* of servers that have another one than the world */
    char clock_paths[SERVERS_MOST][96];
    int64_t step_ns[SERVERS_MOST]; /* when a clock is set that was an hour behind; 0: never */
    bool has[FAULTS];
};

static void make_user(struct driver *d, int i)
{
    if (d->shared->with_user)
        quorum_str(d->q, i, "ACL SETUSER app reset on >secret ~* &* +@all");
}

static void take_sample(struct driver *d, int i)
{
    struct server *server = &d->shared->at[i];
    server->sample_us = quorum_int(d->q, i, "EVAL %s 0", "local t = redis.call('TIME') return t[1] * 1000000 + t[2]");
    server->sample_true_ns = true_ns();
}

static void make_clock(struct driver *d, int i)
{
    char *path = d->clock_paths[i];
    snprintf(path, sizeof d->clock_paths[i], "%s/clock-%d", d->w->dir, i);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_that(fd >= 0 && ftruncate(fd, sizeof(int64_t)) == 0);
    d->clocks_us[i] = mmap(NULL, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_that(d->clocks_us[i] != MAP_FAILED);
    close(fd);
}

/* Some begin before their clock is set. */
static void start(struct driver *d, int i)
{
    struct server *server = &d->shared->at[i];
    server->began_ns = true_ns();
    if (d->clocks_us[i] != NULL)
        setenv("SERVER_CLOCK", d->clock_paths[i], 1);
    if (d->shared->stepped) {
        *d->clocks_us[i] = -3600000000LL;
        d->step_ns[i] = server->began_ns + luck_about(&d->luck, 20, d->shared->longest_ms) * 1000000;
    }
    quorum_start(d->q, i);
    unsetenv("SERVER_CLOCK");
    make_user(d, i);
    server->state = WELL;
}

static void end_server(struct driver *d, int i)
{
    struct server *server = &d->shared->at[i];
    server->state = DEAD;
    quorum_kill(d->q, i);
    server->lost_ns = true_ns();
    server->began_ns = 0;
}

static void repair(struct driver *d, int i)
{
    struct server *server = &d->shared->at[i];
    switch (server->state) {
    case DEAD:
        start(d, i);
        return;
    case FROZEN:
        quorum_cont(d->q, i);
        break;
    case DENIES:
    case LOCKED_OUT:
        make_user(d, i);
        server->refused_ns = true_ns();
        break;
    case FULL_UP:
        quorum_str(d->q, i, "CONFIG SET maxmemory 0");
        server->refused_ns = true_ns();
        break;
    case REPLICA:
        quorum_str(d->q, i, "REPLICAOF NO ONE");
        server->refused_ns = true_ns();
        break;
    default:
        break;
    }
    /* who met it meanwhile may have left no date, and stays connected: docs/keys.md, latchkey:since */
    server->undated |= quorum_int(d->q, i, "EXISTS latchkey:since") == 0;
    server->state = WELL;
}

static unsigned bad_servers(const struct driver *d)
{
    unsigned bad = 0;
    for (int i = 0; i < d->shared->servers; i++)
        bad += d->shared->at[i].state != WELL;
    return bad;
}

static void restart(struct driver *d, int i, int times)
{
    for (; times > 0; times--) {
        end_server(d, i);
        if (luck_onein(&d->luck, 2))
            rest_ms(luck_about(&d->luck, 1, 300));
        start(d, i);
    }
}

static void deny(struct driver *d, int i)
{
    static const char *const rights[] = { "-evalsha -eval", "-hset", "-pexpire", "-set", "-@all" };
    d->shared->at[i].state = DENIES;
    quorum_str(d->q, i, "ACL SETUSER app %s",
               luck_onein(&d->luck, 2) ? "-evalsha" : rights[1 + luck_below(&d->luck, 4)]);
    if (luck_onein(&d->luck, 3))
        quorum_str(d->q, i, "CLIENT KILL TYPE normal SKIPME yes");
}

static void lock_out(struct driver *d, int i)
{
    d->shared->at[i].state = LOCKED_OUT;
    quorum_str(d->q, i, "ACL SETUSER app resetpass >another");
    quorum_str(d->q, i, "CLIENT KILL TYPE normal SKIPME yes");
}

static void do_fault(struct driver *d, enum fault fault, int i)
{
    struct shared *shared = d->shared;
    struct server *server = &shared->at[i];
    server->repair_ns = true_ns() + luck_about(&d->luck, 1, 2 * shared->longest_ms) * 1000000;
    switch (fault) {
    case RESTART:
        restart(d, i, 1);
        break;
    case RESTART_TWICE:
        restart(d, i, 2);
        break;
    case KILL:
        end_server(d, i);
        break;
    case FREEZE:
        server->state = FROZEN;
        quorum_stop(d->q, i);
        break;
    case SLOW:
        quorum_str(d->q, i, "CLIENT PAUSE %lld %s", (long long)luck_about(&d->luck, 1, shared->longest_ms / 4),
                   luck_onein(&d->luck, 2) ? "WRITE" : "ALL");
        break;
    case CUT:
        quorum_str(d->q, i, "CLIENT KILL TYPE normal SKIPME yes");
        break;
    case FORGET_SCRIPTS:
        quorum_str(d->q, i, "SCRIPT FLUSH");
        break;
    case FLUSH:
        quorum_str(d->q, i, "FLUSHALL");
        shared->forgot_ns = true_ns();
        server->undated = true;
        break;
    case DENY:
        deny(d, i);
        break;
    case LOCK_OUT:
        lock_out(d, i);
        break;
    case FILL_UP:
        server->state = FULL_UP;
        quorum_str(d->q, i, "CONFIG SET maxmemory 1");
        break;
    case DEMOTE:
        server->state = REPLICA;
        quorum_str(d->q, i, "REPLICAOF 127.0.0.1 1");
        break;
    default:
        break;
    }
}

/* --- the driver: machines ----------------------------------------------------------------------------------------- */

static void start_machine(struct driver *d, unsigned number)
{
    d->machines[number] = (struct machine){ .shared = d->shared, .number = number };
    d->pids[number] = world_fork(d->w, run_machine, &d->machines[number]);
    d->forks++;
}

static void thaw(struct driver *d, unsigned number)
{
    if (d->thaw_ns[number] != 0)
        world_cont(d->pids[number]);
    if (d->thaw_ns[number] != 0)
        d->shared->disturbed_ns[number] = true_ns();
    d->thaw_ns[number] = 0;
}

static void do_machine_fault(struct driver *d, enum fault fault, unsigned number)
{
    thaw(d, number);
    d->shared->disturbed_ns[number] = INT64_MAX;
    if (fault == KILL_MACHINE) {
        world_kill(d->w, d->pids[number]);
        d->shared->killed_ns = d->shared->disturbed_ns[number] = true_ns();
        start_machine(d, number);
    } else {
        world_stop(d->pids[number]);
        d->thaw_ns[number] = true_ns() + luck_about(&d->luck, 10, 2 * d->shared->longest_ms) * 1000000;
    }
}

/* --- the driver: judges ------------------------------------------------------------------------------------------- */

/* Whose: "<client id>:<owner>:<acquisition>" without the server. */
static void read_holder(struct driver *d, int i, const char *name, char holder[160])
{
    snprintf(holder, 160, "%s", quorum_str(d->q, i, "HRANDFIELD %s", name));
    char *colon = strrchr(holder, ':');
    if (colon != NULL)
        *colon = '\0';
}

/* When a key with that time to live ends at the latest. */
static int64_t ends_by(struct driver *d, int i, int64_t pttl_ms)
{
    const struct server *server = &d->shared->at[i];
    int64_t now_us = quorum_int(d->q, i, "EVAL %s 0", "local t = redis.call('TIME') return t[1] * 1000000 + t[2]");
    int64_t now_ns = true_ns(), real_ns = now_ns - server->sample_true_ns, its_ns = (now_us - server->sample_us) * 1000;
    if (d->shared->stepped)
        return now_ns + (pttl_ms + 1) * 1000000;
    if (real_ns <= 0 || its_ns <= 0)
        return INT64_MAX;
    return now_ns + (int64_t)((__int128)(pttl_ms + 1) * 1000000 * real_ns / its_ns) + (pttl_ms + 1) * 1000 / 4;
}

static bool is_deaf(const struct server *server)
{
    return server->state == DEAD || server->state == FROZEN;
}

/* At least a majority has it for as long as its holder is told; a server that forgot it a moment ago may count. */
static void look_at_lease(struct driver *d, struct name *name)
{
    struct shared *shared = d->shared;
    char holders[SERVERS_MOST][160];
    int64_t ends_ns[SERVERS_MOST] = { 0 }, until_ns = name->good_until_ns, now_ns = true_ns();
    uint64_t number = name->number;
    unsigned extends = name->extends;
    int excused = 0, have = 0;
    if (until_ns <= now_ns || shared->forgot_ns >= name->called_ns)
        return;
    for (int i = 0; i < shared->servers; i++) {
        holders[i][0] = '\0';
        if (is_deaf(&shared->at[i]) || shared->at[i].lost_ns > now_ns - shared->longest_ms * 1000000) {
            excused++;
            continue;
        }
        read_holder(d, i, name->text, holders[i]);
        int64_t pttl_ms = quorum_int(d->q, i, "PTTL %s", name->text);
        ends_ns[i] = ends_by(d, i, pttl_ms > 0 ? pttl_ms : 0);
    }
    for (int i = 0; i < shared->servers; i++) {
        int same = 0;
        for (int j = 0; j < shared->servers && holders[i][0] != '\0'; j++)
            same += strcmp(holders[i], holders[j]) == 0 && ends_ns[j] >= until_ns;
        have = same > have ? same : have;
    }
    if (true_ns() >= until_ns || name->number != number || name->extends != extends || name->good_until_ns < until_ns ||
        have + excused >= shared->majority)
        return;
    name->doubted = number;
    for (int i = 0; i < shared->servers; i++)
        tell("server %d: state %d, %s for %lld ms", i, shared->at[i].state, holders[i],
             (long long)(ends_ns[i] - now_ns) / 1000000);
    if (!memory_was_lost(shared, name->called_ns))
        broken("%s is said to be held for %lld us more, and %d servers have it so long, %d may", name->text,
               (long long)(until_ns - now_ns) / 1000, have, excused);
}

/* Whatever was there, a server that started a moment ago grants nothing. */
static void look_at_young(struct driver *d, int i)
{
    static const char others[] = "for _, key in ipairs(redis.call('KEYS', '*')) do "
                                 "if not string.find(key, '^latchkey:') and not string.find(key, 'set-', 1, true) then "
                                 "return key end end return ''";
    const struct server *server = &d->shared->at[i];
    if (server->began_ns == 0 || is_deaf(server))
        return;
    const char *key = quorum_str(d->q, i, "EVAL %s 0", others);
    int64_t age_ms = (true_ns() - server->began_ns) / 1000000;
    must(key[0] == '\0' || age_ms >= d->shared->longest_ms, "server %d has %s, %lld ms after it began", i, key,
         (long long)age_ms);
}

static void look(struct driver *d)
{
    for (unsigned i = 0; i < d->shared->names; i++)
        look_at_lease(d, &d->shared->name[i]);
    for (int i = 0; i < d->shared->servers; i++)
        if (true_ns() - d->shared->at[i].began_ns < d->shared->longest_ms * 1000000)
            look_at_young(d, i);
}

/* --- the driver: rounds ------------------------------------------------------------------------------------------- */

/* A server that is old enough to vote loses what it has: its leases end an hour early. */
static void set_clock(struct driver *d, int i)
{
    struct shared *shared = d->shared;
    if (true_ns() - shared->at[i].began_ns >= shared->longest_ms * 1000000)
        shared->forgot_ns = true_ns();
    *d->clocks_us[i] = 0;
    d->step_ns[i] = 0;
}

static void end_faults(struct driver *d, bool all)
{
    int64_t now_ns = true_ns();
    for (int i = 0; i < d->shared->servers; i++)
        if (d->step_ns[i] != 0 && (all || d->step_ns[i] <= now_ns))
            set_clock(d, i);
    for (int i = 0; i < d->shared->servers; i++)
        if (d->shared->at[i].state != WELL && (all || d->shared->at[i].repair_ns <= now_ns))
            repair(d, i);
    for (unsigned i = 0; i < d->shared->machines; i++)
        if (d->thaw_ns[i] != 0 && (all || d->thaw_ns[i] <= now_ns))
            thaw(d, i);
}

static const char *const fault_names[FAULTS] = { "restart",      "restart twice", "kill",           "freeze",
                                                 "slow",         "cut",           "forget scripts", "flush",
                                                 "deny",         "lock out",      "fill up",        "demote",
                                                 "kill machine", "freeze machine" };

static void maybe_fault(struct driver *d)
{
    enum fault fault = luck_below(&d->luck, FAULTS);
    int i = (int)luck_below(&d->luck, (uint64_t)d->shared->servers);
    unsigned machine = (unsigned)luck_below(&d->luck, d->shared->machines);
    bool of_machine = fault == KILL_MACHINE || fault == FREEZE_MACHINE;
    if (!d->has[fault] || (of_machine && d->forks >= FORKS_MOST))
        return;
    if (!of_machine && (d->shared->at[i].state != WELL || bad_servers(d) >= d->most_bad))
        return;
    if (!fault_happens("%s %d", fault_names[fault], of_machine ? (int)machine : i))
        return;
    tell("%s %d", fault_names[fault], of_machine ? (int)machine : i);
    if (of_machine)
        do_machine_fault(d, fault, machine);
    else
        do_fault(d, fault, i);
}

static void let_faults_happen(struct driver *d, int64_t length_ms, int64_t between_ms)
{
    int64_t next_ns = true_ns(), until_ns = next_ns + length_ms * 1000000;
    while (true_ns() < until_ns) {
        rest_ms(luck_about(&d->luck, 1, TICK_MS));
        end_faults(d, false);
        if (true_ns() >= next_ns) {
            maybe_fault(d);
            next_ns = true_ns() + luck_about(&d->luck, 1, between_ms) * 1000000;
        }
        look(d);
    }
}

static void watch(struct driver *d, int64_t ms)
{
    for (int64_t until_ns = true_ns() + ms * 1000000; true_ns() < until_ns; rest_ms(4 * TICK_MS))
        look(d);
}

/* The next connection leaves a date: docs/keys.md, latchkey:since. */
static bool date_anew(struct driver *d, int i)
{
    if (!d->shared->at[i].undated)
        return false;
    quorum_str(d->q, i, "CLIENT KILL TYPE normal SKIPME yes");
    d->shared->at[i].undated = false;
    return true;
}

/*
 * Until all have a vote, and what dead machines held has ended. A server is as old as a client knows: from its first
 * visit on, and of its seconds up to two do not count.
 */
static void grow_old(struct driver *d)
{
    struct shared *shared = d->shared;
    int64_t now_ns = true_ns(), age_ms = shared->longest_ms * 103 / 100 + 2500;
    bool wait = now_ns - shared->killed_ns < age_ms * 1000000;
    for (int i = 0; i < shared->servers; i++)
        wait |= date_anew(d, i) || now_ns - shared->at[i].began_ns < age_ms * 1000000;
    shared->takes_its_time = true;
    if (wait)
        watch(d, age_ms);
    shared->takes_its_time = false;
}

enum { CALM_MS = 20000 };

static void all_are_served(struct driver *d)
{
    struct shared *shared = d->shared;
    int64_t since_ns = shared->calm_ns = true_ns();
    tell("it is calm");
    for (;;) {
        unsigned served = 0;
        for (unsigned machine = 0; machine < shared->machines; machine++)
            for (unsigned thread = 0; thread < shared->threads; thread++)
                served += shared->served_ns[machine][thread] > since_ns;
        if (served == shared->machines * shared->threads)
            return;
        must(true_ns() - since_ns < CALM_MS * 1000000LL, "only %u threads were served within %d ms of calm", served,
             CALM_MS);
        rest_ms(TICK_MS);
        look(d);
    }
}

static void all_rest(struct driver *d)
{
    struct shared *shared = d->shared;
    int64_t began_ns = true_ns();
    shared->rests = true;
    while (shared->resting < shared->machines * shared->threads) {
        must(true_ns() - began_ns < 10 * shared->longest_ms * 1000000 + CALM_MS * 1000000LL,
             "somebody does not come to rest");
        rest_ms(10);
        end_faults(d, false);
    }
}

/*
 * All threads rest, and all servers are well. No server has a hold that was released or given up. One exception: a lease
 * has just ended at the client, and ends later at a server that began it late.
 */
static void nothing_is_left(struct driver *d)
{
    struct shared *shared = d->shared;
    int64_t most_ms = shared->longest_ms / 40 + shared->command_ms;
    for (int i = 0; i < shared->servers; i++)
        quorum_str(d->q, i, "CLIENT UNPAUSE"); /* a paused server executes no release */
    rest_ms(2 * shared->command_ms + RETRY_MS + 200);
    for (unsigned n = 0; n < shared->names; n++)
        for (int i = 0; i < shared->servers; i++) {
            int64_t left_ms = quorum_int(d->q, i, "PTTL %s", shared->name[n].text);
            if (left_ms != -2)
                tell("server %d has %s", i, quorum_str(d->q, i, "HRANDFIELD %s", shared->name[n].text));
            must(left_ms <= most_ms, "%s was released, and server %d has it for %lld ms more", shared->name[n].text, i,
                 (long long)left_ms);
        }
}

static void take_a_break(struct driver *d)
{
    all_rest(d);
    end_faults(d, true);
    if (true_ns() - d->shared->killed_ns > d->shared->longest_ms * 1010000)
        nothing_is_left(d);
    d->shared->rests = false;
}

/* States of some servers, often of just so many that a majority is left, or is not. */
static void draw_exam(struct driver *d)
{
    static const enum state states[] = { DEAD, FROZEN, DENIES, LOCKED_OUT, FULL_UP, REPLICA };
    struct shared *shared = d->shared;
    struct exam *exam = &shared->exam;
    unsigned bad = (unsigned)shared->majority - (unsigned)luck_below(&d->luck, 2);
    static const int kinds_of_exams[] = { FREE, HELD, HELD, BUSY, BUSY, SET, SET, SET };
    int kind = shared->longest_ms >= 4000 ? kinds_of_exams[luck_below(&d->luck, 8)] : FREE;
    *exam = (struct exam){ .is = (unsigned)kind,
                           .shift = (unsigned)luck_below(&d->luck, SERVERS_MOST),
                           .wanted = -1,
                           .gone = -1,
                           .starves = luck_onein(&d->luck, 3) };
    if (luck_onein(&d->luck, 4))
        bad = (unsigned)luck_below(&d->luck, (uint64_t)shared->servers + 1);
    unsigned kinds = luck_onein(&d->luck, 3) ? 1 : luck_onein(&d->luck, 2) ? 2 : 7;
    unsigned first = (unsigned)luck_below(&d->luck, 7);
    if (shared->with_user && luck_onein(&d->luck, 2))
        first = 2, kinds = 1 + (unsigned)luck_below(&d->luck, 2); /* DENIES, LOCKED_OUT */
    for (int i = 0; i < shared->servers; i++) {
        if (luck_below(&d->luck, (uint64_t)(shared->servers - i)) >= bad)
            continue;
        bad--;
        unsigned which = (first + (unsigned)luck_below(&d->luck, kinds)) % 7;
        if (exam->is == SET)
            which = (unsigned[]){ 0, 1, 2, 6 }[luck_below(&d->luck, 4)]; /* dead, frozen, denies, young */
        if (which == 6)
            exam->young[i] = true;
        else if ((states[which] == DENIES || states[which] == LOCKED_OUT) && !shared->with_user)
            exam->states[i] = DEAD;
        else if (states[which] == REPLICA && exam->is != FREE)
            exam->states[i] = FROZEN;
        else
            exam->states[i] = states[which];
    }
    if (exam->is == BUSY && shared->described &&
        luck_onein(&d->luck, 2)) { /* the first one, which is asked first, alone */
        memset(exam->states, 0, sizeof exam->states);
        memset(exam->young, 0, sizeof exam->young);
        exam->states[0] = luck_onein(&d->luck, 2) ? DEAD : FROZEN;
    }
    int wanted = (int)luck_below(&d->luck, (uint64_t)shared->servers);
    int gone = (int)luck_below(&d->luck, (uint64_t)shared->servers);
    if (exam->is == SET && exam->states[wanted] == WELL && !exam->young[wanted])
        exam->wanted = wanted;
    if (exam->is == SET && exam->states[gone] == WELL && !exam->young[gone] && gone != wanted &&
        shared->command_ms >= 300)
        exam->gone = gone;
}

static void apply(struct driver *d, int i)
{
    struct shared *shared = d->shared;
    tell("exam: server %d is %d%s", i, shared->exam.states[i], shared->exam.young[i] ? ", young" : "");
    if (shared->exam.young[i]) {
        end_server(d, i);
        start(d, i);
        return;
    }
    switch (shared->exam.states[i]) {
    case WELL:
        if (shared->exam.is == SET && shared->exam.shift % 2 == 0)
            quorum_str(d->q, i, "SCRIPT FLUSH");
        break;
    case DEAD:
        end_server(d, i);
        break;
    case DENIES:
        shared->at[i].state = DENIES;
        quorum_str(d->q, i, "ACL SETUSER app -evalsha -eval");
        break;
    case FROZEN:
        do_fault(d, FREEZE, i);
        break;
    case LOCKED_OUT:
        lock_out(d, i);
        break;
    case FULL_UP:
        do_fault(d, FILL_UP, i);
        break;
    case REPLICA:
        do_fault(d, DEMOTE, i);
        break;
    default:
        break;
    }
}

/* A member is gone, and its server is a little slow to say so. */
static void delete_one(struct driver *d)
{
    struct exam *exam = &d->shared->exam;
    wait_for(&exam->deletes);
    if (exam->gone >= 0) {
        quorum_str(d->q, exam->gone, "DEL set-%d", (exam->gone + (int)exam->shift) % d->shared->servers);
        quorum_str(d->q, exam->gone, "CLIENT PAUSE %lld ALL", (long long)d->shared->command_ms / 4);
    }
    exam->deleted = true;
}

static void hold_exam(struct driver *d)
{
    struct shared *shared = d->shared;
    struct examinee examinee = { .shared = shared };
    if (d->forks >= FORKS_MOST + 10)
        return;
    draw_exam(d);
    tell("exam: %d", shared->exam.is);
    pid_t pid = world_fork(d->w, run_exam, &examinee);
    d->forks++;
    wait_for(&shared->exam.ready);
    shared->exam.off =
        (shared->exam.is == HELD || shared->exam.is == BUSY) && quorum_having(d->q, "exam") < shared->servers;
    for (int i = 0; i < shared->servers && !shared->exam.off; i++)
        apply(d, i);
    shared->exam.applied = true;
    if (shared->exam.is == SET)
        delete_one(d);
    assert_int_equal(0, world_wait(d->w, pid));
    end_faults(d, true);
    if (shared->exam.off)
        shared->killed_ns = true_ns(); /* it ended, and gave nothing back */
}

static void run_round(struct driver *d, bool storm)
{
    struct shared *shared = d->shared;
    int parts = storm ? 1 : 1 + (int)luck_below(&d->luck, 5);
    int64_t between_ms = luck_about(&d->luck, 10, 3000);
    shared->calm_ns = 0;
    shared->storms = storm;
    if (storm)
        storm_begin();
    for (int part = 0; part < parts; part++) {
        let_faults_happen(d, luck_about(&d->luck, 200, 8000) / parts + 100, between_ms);
        if (!storm)
            take_a_break(d);
    }
    end_faults(d, true);
    if (storm) {
        storm_end();
        watch(d, TROUBLE_MS);
        shared->storms = false;
    }
    grow_old(d);
    all_are_served(d);
    all_rest(d);
    nothing_is_left(d);
    for (int exams = 1 + (int)luck_below(&d->luck, 3); exams > 0; exams--) {
        hold_exam(d);
        shared->rests = false;
        grow_old(d);
        all_are_served(d);
        all_rest(d);
    }
    shared->rests = false;
}

static void draw(struct driver *d)
{
    struct shared *shared = d->shared;
    struct luck *luck = &d->luck;
    shared->servers = luck_onein(luck, 2) ? 3 : 5;
    shared->majority = shared->servers / 2 + 1;
    shared->machines = 1 + (unsigned)luck_below(luck, MACHINES_MOST);
    shared->threads = 1 + (unsigned)luck_below(luck, THREADS_MOST);
    shared->names = 1 + (unsigned)luck_below(luck, NAMES_MOST);
    shared->longest_ms = luck_onein(luck, 2) ? luck_about(luck, 600, 10000) : luck_about(luck, 4000, 8000);
    shared->command_ms = luck_about(luck, 50, shared->longest_ms / 6 < 1000 ? shared->longest_ms / 6 : 1000);
    shared->node_ms =
        luck_onein(luck, 3) ? 0 : luck_about(luck, 20, shared->longest_ms / 10); /* some leases are half as long */
    shared->fenced = luck_onein(luck, 2);
    shared->with_user = luck_onein(luck, 2);
    shared->described = luck_onein(luck, 2);
    shared->comes_and_goes = luck_onein(luck, 4);
    shared->skewed = luck_onein(luck, 4);
    shared->stepped = !shared->skewed && luck_onein(luck, 4);
    shared->comes_and_goes |= shared->stepped && luck_onein(luck, 2);
    shared->drift_ppm = shared->stepped || luck_onein(luck, 2) ? 0 : 4900;
    d->most_bad = 1 + (unsigned)luck_below(luck, (uint64_t)shared->servers);
    for (int fault = 0; fault < FAULTS; fault++)
        d->has[fault] = luck_onein(luck, 2);
    d->has[DENY] = d->has[DENY] && shared->with_user;
    d->has[LOCK_OUT] = d->has[LOCK_OUT] && shared->with_user;
    d->has[FLUSH] = d->has[FLUSH] && luck_onein(luck, 4);
    if (shared->skewed && luck_onein(luck, 2)) { /* then tokens rise whatever happens */
        shared->fenced = true;
        d->has[RESTART] = d->has[RESTART_TWICE] = d->has[KILL] = d->has[FLUSH] = false;
        d->has[FREEZE] = d->has[SLOW] = true;
    }
    for (unsigned i = 0; i < shared->names; i++)
        snprintf(shared->name[i].text, sizeof shared->name[i].text, "jobs-%u", i);
}

static void make_urls_of_two(struct driver *d, const char *options)
{
    const char *user = d->shared->with_user ? "app:secret@" : "";
    int port = quorum_port(d->q, 0), another = quorum_port(d->q, 1);
    snprintf(d->shared->two_names_url, sizeof d->shared->two_names_url,
             "redis-quorum://%s127.0.0.1:%d,localhost:%d,127.0.0.1:%d?%s", user, port, port, another, options);
    snprintf(d->shared->two_spellings_url, sizeof d->shared->two_spellings_url,
             "redis-quorum://%slocalhost:%d,LOCALHOST:%d,127.0.0.1:%d?%s", user, port, port, another, options);
}

static void begin(struct driver *d)
{
    struct shared *shared = d->shared;
    char options[160];
    clocks_are_wrong(shared->drift_ppm);
    d->q = quorum_begin(d->w, shared->servers);
    for (int i = 0; i < shared->servers && (shared->skewed || shared->stepped); i++) {
        quorum_kill(d->q, i);
        make_clock(d, i);
        if (shared->skewed)
            *d->clocks_us[i] = (int64_t)luck_below(&d->luck, 20000000) - 10000000;
        start(d, i);
    }
    for (int i = 0; i < shared->servers; i++) {
        shared->at[i].began_ns = shared->at[i].began_ns != 0 ? shared->at[i].began_ns : true_ns() - 1000000000;
        make_user(d, i);
        take_sample(d, i);
    }
    snprintf(options, sizeof options, "lease=%lldms&command_timeout=%lldms&retry_max=%dms%s",
             (long long)shared->longest_ms, (long long)shared->command_ms, RETRY_MS,
             shared->described ? "" : "&describe=no");
    snprintf(shared->url, sizeof shared->url, "%s",
             shared->with_user ? quorum_url_as(d->q, "app:secret@", options) : quorum_url(d->q, options));
    make_urls_of_two(d, options);
    for (int i = 0; i < shared->servers; i++)
        snprintf(shared->single_urls[i], sizeof shared->single_urls[i], "redis://%s127.0.0.1:%d?%s",
                 shared->with_user ? "app:secret@" : "", quorum_port(d->q, i), options);
    for (unsigned i = 0; i < shared->machines; i++)
        start_machine(d, i);
}

static void workload(struct world *w)
{
    struct driver *d = calloc(1, sizeof *d);
    assert_that(d != NULL);
    d->w = w;
    d->shared = world_shared(w, sizeof *d->shared);
    d->luck = luck_begin();
    draw(d);
    begin(d);
    int rounds = 1 + (int)luck_below(&d->luck, 2);
    bool storms = luck_onein(&d->luck, 2);
    for (int round = 0; round < rounds; round++)
        run_round(d, storms && luck_onein(&d->luck, 2));
    gate_open(&d->shared->over);
    for (unsigned i = 0; i < d->shared->machines; i++)
        assert_int_equal(0, world_wait(w, d->pids[i]));
    free(d);
}

int main(void)
{
    return workload_run(NULL, workload);
}
