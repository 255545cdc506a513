/* SPDX-License-Identifier: MIT */
/*
 * queue.c - who waits, in which order, and what wakes them
 *
 * Threads of a few machines wait for locks and permits, for short or long, and machines stand still, die and come
 * back. A court in shared memory knows in true time who waits, who holds and who may be neither. It judges, whatever
 * happens, that no more are in than may be; and with the bounds of the documentation that nothing stays free while
 * somebody waits for it, that nobody is passed, that a wait ends by its limit, how often waiters ask, and that those
 * who left leave nothing.
 *
 * Half of all seeds are of any kind. The others have a theme, because random seeds seldom have all that it takes:
 * - long holds, and machines that die or stand still then
 * - a rush on an object that is never free for long, by some who hear messages and some who do not
 * - clients that come and go for minutes
 * - naps: machines stand still, or subscriptions break, as somebody gives back
 * - crowds that come in together, one round after the other, when one gives back all that there is
 * - a crowd that dies in front of few others
 */
#include "workload.h"

#include <latchkey/latchkey.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_MS INT64_C(1000000)
#define NEVER_NS INT64_MAX

enum { MACHINES_MAX = 12, CALLS_MAX = 400, OBJECTS_MAX = 3, CROWD = 60, GHOSTS_MAX = CALLS_MAX, CLIENTS_MAX = 4096 };

/* Round trips of the slowest network, and what a hand-over takes of them. */
enum {
    WARN_MS = 3000,
    PROMPT_MS = 200,
    NEWCOMER_MS = 800,
    SETTLED_MS = 100,
    QUIET_CLAIM_MS = 300, /* of one that hears nothing, ... */
    QUIET_PAUSE_MS = 200  /* ... and asks so often near the front */
};

enum kind { MUTEX, FAIR_MUTEX, RWLOCK, COUNTING, LEASED, KINDS };
static const char *const kind_names[] = { "mutex", "fair mutex", "read-write lock", "semaphore", "leased semaphore" };

enum state { IDLE, WAITING, HOLDING, LEAVING };
enum life { UNBORN, LIVE, FROZEN, DEAD };

/* What a machine is like. */
struct machine {
    struct world *w;
    struct shared *shared;
    unsigned number, threads, first_call;
    int64_t lease_ms, poll_ms, timeout_ms;
    bool is_heard, is_mute, own_clients, redisson;
    bool wants_all; /* always */
    enum life life;
    int64_t silent_ns, resumed_ns; /* when it died or stood still, and went on, last */
    int64_t wakes_ns;              /* it stands still until then */
    bool waited_for[OBJECTS_MAX];  /* when it fell silent */
    pid_t pid;
    unsigned lives;
    unsigned absences; /* lines of the log that tell of a server that is away */
};

/* A thread, and what it does now. */
struct call {
    unsigned machine;
    enum state state;
    unsigned object, wants;
    bool writes, is_heard;
    int64_t since_ns, limit_ms;
    int64_t able_ns;  /* since when it could come in; 0: it could not */
    int64_t until_ns; /* good until then, as it believes */
    bool unsure;      /* it holds, and its machine stood still: it may have lost it */
    unsigned writers; /* that came in while it waited */
    uint64_t owner;
    int64_t told_ns;   /* a long wait was told */
    int64_t could_ns;  /* since when it could come in; 0: it could not */
    int64_t passed_ns; /* one that came later came in; both may have been let in at once */
};

/* Something may be taken until then by nobody who is there. */
struct ghost {
    int64_t until_ns;
    unsigned wants;
    bool writes;
};

struct object {
    enum kind kind;
    int prefer;
    unsigned total;
    char name[24];
    int64_t open_ns; /* since when somebody who waits could come in; 0: nobody could */
    int64_t ghost_ended_ns;
    int64_t mute_left_ns; /* one that hears nothing left without what was kept for it: somebody has to ask */
    int64_t writer_ns;    /* a writer was in */
    struct ghost ghosts[GHOSTS_MAX];
    unsigned ghost_count;
    bool is_unjudged;
    int64_t held_ns;          /* it was taken */
    int64_t taken_ns;         /* it was taken, or waited for */
};

struct shared {
    struct object objects[OBJECTS_MAX];
    struct machine machines[MACHINES_MAX];
    struct call calls[CALLS_MAX];
    unsigned object_count, machine_count, call_count;
    int64_t end_ms;
    unsigned calls_left;  /* so that a seed takes a second or so */
    int64_t disturbed_ns; /* until then connections and messages may have been lost */
    int64_t changed_ns;   /* the last call that began or ended */
    bool is_calm;         /* no storm, nobody dies or stands still */
    bool is_stormy;
    bool has_mutes;
    unsigned dies; /* that machine alone; 0: any */
    unsigned aims; /* one in so many releases waits for a fault; 0: none does */
    bool is_aimed;
    unsigned cancels, cancelled; /* one in so many waits is; so many were */
    unsigned forged;
    int64_t opened_ns[CLIENTS_MAX], closed_ns[CLIENTS_MAX]; /* clients of a thread of its own */
    unsigned clients;
    /* how threads behave */
    int64_t hold_ms, pause_ms, limit_ms;
    bool is_patient; /* limits are near the longest */
    bool is_steady;  /* so are holds, and the pauses between two calls */
    int64_t nap_ms;  /* so long a machine stands still at most; 0: until somebody brings it back */
    unsigned tries, whole, readers;
};

struct user {
    struct machine *machine;
    struct luck luck;
    unsigned number; /* of its call */
    lk_client_t *client;
    bool has_waited;
    lk_mutex_t mutexes[OBJECTS_MAX];
    lk_rwlock_t rwlocks[OBJECTS_MAX];
    lk_sem_t sems[OBJECTS_MAX];
};

/* --- the court: what is so in true time --------------------------------------------------------------------------- */

static bool is_semaphore(const struct object *object)
{
    return object->kind == COUNTING || object->kind == LEASED;
}

static int64_t claim_ms(const struct object *object, const struct machine *machine)
{
    int64_t ms = 2 * machine->timeout_ms > 3000 ? 2 * machine->timeout_ms : 3000;
    return object->kind != COUNTING && ms > machine->lease_ms ? machine->lease_ms : ms;
}

static int64_t liveness_ms(const struct machine *machine)
{
    int64_t ms = 5000;
    while (ms < 3 * machine->poll_ms && (ms < 20000 || !machine->is_heard))
        ms *= 2;
    return ms;
}

/* By then a waiter of that machine that is told nothing asks again. */
static int64_t asks_within_ms(const struct machine *machine)
{
    int64_t ms = machine->poll_ms;
    if (machine->is_heard && liveness_ms(machine) / 3 > ms)
        ms = liveness_ms(machine) / 3;
    return ms * 6 / 5;
}

struct taken {
    unsigned permits, readers;
    bool writes, unsure;
};

static void count_call(struct taken *taken, const struct call *call)
{
    taken->unsure |= call->unsure;
    taken->permits += call->wants;
    taken->readers += !call->writes;
    taken->writes |= call->writes;
}

static struct taken taken_of(struct shared *shared, unsigned number, int64_t now_ns)
{
    struct object *object = &shared->objects[number];
    struct taken taken = { 0 };
    for (unsigned i = 0; i < shared->call_count; i++) {
        const struct call *call = &shared->calls[i];
        const struct machine *machine = &shared->machines[call->machine];
        if (call->object != number || (call->state != HOLDING && call->state != LEAVING))
            continue;
        if (machine->life == FROZEN && object->kind != COUNTING &&
            now_ns > machine->silent_ns + machine->lease_ms * NS_PER_MS)
            continue; /* its lease is over */
        count_call(&taken, call);
    }
    for (unsigned i = 0; i < object->ghost_count;) {
        struct ghost *ghost = &object->ghosts[i];
        if (ghost->until_ns <= now_ns) {
            object->ghost_ended_ns = now_ns;
            *ghost = object->ghosts[--object->ghost_count];
            continue;
        }
        taken.permits += ghost->wants;
        taken.readers += !ghost->writes;
        taken.writes |= ghost->writes;
        i++;
    }
    return taken;
}

static void add_ghost(struct object *object, const struct call *call, int64_t until_ns)
{
    if (object->ghost_count == GHOSTS_MAX) {
        object->is_unjudged = true;
        return;
    }
    object->ghosts[object->ghost_count++] = (struct ghost){ until_ns, call->wants, call->writes };
}

static bool waits(const struct shared *shared, const struct call *call, unsigned number)
{
    return call->object == number && call->state == WAITING && shared->machines[call->machine].life == LIVE;
}

static int64_t latest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Since when this one waits, and nothing of its own keeps it from being served, if it could come in. */
static int64_t ready_ns(const struct shared *shared, const struct call *call)
{
    int64_t ns = call->since_ns + (call->is_heard ? 0 : NEWCOMER_MS * NS_PER_MS);
    return latest(latest(ns, call->able_ns), shared->machines[call->machine].resumed_ns);
}

/* How much do those want who came before, or as this one did; and how many of all writers wait? */
struct ahead {
    unsigned most_wanted, writers, all_writers;
};

static struct ahead ahead_of(const struct shared *shared, const struct call *waiter)
{
    struct ahead ahead = { .most_wanted = waiter->wants };
    for (unsigned i = 0; i < shared->call_count; i++) {
        const struct call *call = &shared->calls[i];
        if (call->object != waiter->object || call->state != WAITING)
            continue;
        ahead.all_writers += call->writes;
        if (call->since_ns >= waiter->since_ns + SETTLED_MS * NS_PER_MS)
            continue;
        ahead.writers += call->writes;
        if (call->wants > ahead.most_wanted)
            ahead.most_wanted = call->wants;
    }
    return ahead;
}

static bool could_enter(const struct shared *shared, const struct object *object, const struct call *call,
                        const struct taken *taken)
{
    struct ahead ahead = ahead_of(shared, call);
    if (is_semaphore(object))
        return taken->permits + ahead.most_wanted <= object->total;
    if (object->kind != RWLOCK || (!taken->writes && taken->readers == 0))
        return taken->permits == 0;
    if (taken->writes || call->writes)
        return false;
    return object->prefer == LK_RWLOCK_PREFER_READER || ahead.all_writers == 0 ||
           (object->prefer == LK_RWLOCK_PREFER_FAIR && ahead.writers == 0);
}

/*
 * By how much those who died or stand still may hold up the others: by a claim for each process that stands still,
 * until it was silent for half of its liveness, and until somebody asks. Those of a process that died hear nothing.
 */
static int64_t silence_ms(const struct shared *shared, unsigned number, int64_t now_ns, int64_t asks_ms)
{
    const struct object *object = &shared->objects[number];
    int64_t claims = 0, longest_claim = 0, half = 0, wants_more = 0, died_ms = 0;
    for (unsigned i = 0; i < shared->machine_count; i++) {
        const struct machine *machine = &shared->machines[i];
        int64_t ended_ns = machine->life == LIVE ? machine->resumed_ns : now_ns;
        if (machine->silent_ns == 0 || !machine->waited_for[number] || now_ns > ended_ns + 5000 * NS_PER_MS ||
            now_ns > machine->silent_ns + 100000 * NS_PER_MS)
            continue;
        if (is_semaphore(object) && shared->whole < 1000)
            wants_more = latest(wants_more, liveness_ms(machine) / 2);
        if (machine->life == DEAD) {
            died_ms = 2 * QUIET_CLAIM_MS + asks_ms; /* a newcomer may not have heard yet, and so has a claim */
            continue;
        }
        claims += claim_ms(object, machine);
        longest_claim = latest(longest_claim, claim_ms(object, machine));
        half = latest(half, liveness_ms(machine) / 2);
    }
    if (claims > half + longest_claim)
        claims = half + longest_claim;
    return (claims > 0 || wants_more > 0 ? asks_ms : 0) + claims + wants_more + died_ms;
}

/*
 * How long may it stay free from then on, given those who could come in? What is promised to each counts from when it is
 * ready. A twentieth of that is for how coarsely it is looked at.
 */
static int64_t bound_ms(const struct shared *shared, unsigned number, int64_t since_ns, int64_t now_ns)
{
    const struct object *object = &shared->objects[number];
    int64_t least_ms = INT64_MAX, asks_ms = INT64_MAX;
    int64_t unheard = 0;
    for (unsigned i = 0; i < shared->call_count; i++) {
        const struct call *call = &shared->calls[i];
        const struct machine *machine = &shared->machines[call->machine];
        if (call->object != number || call->state != WAITING)
            continue;
        unheard += !call->is_heard;
        if (machine->life != LIVE)
            continue;
        asks_ms = asks_within_ms(machine) < asks_ms ? asks_within_ms(machine) : asks_ms;
        if (call->able_ns == 0)
            continue;
        int64_t ms = !machine->is_heard ? asks_within_ms(machine) + QUIET_CLAIM_MS : shared->has_mutes ? asks_within_ms(machine) : 0;
        ms += latest(ready_ns(shared, call) - since_ns, 0) / NS_PER_MS;
        least_ms = ms < least_ms ? ms : least_ms;
    }
    int64_t ms = PROMPT_MS + least_ms + unheard * QUIET_CLAIM_MS;
    if (object->open_ns - object->ghost_ended_ns < PROMPT_MS * NS_PER_MS ||
        object->mute_left_ns > object->open_ns - PROMPT_MS * NS_PER_MS)
        ms += asks_ms;
    return (ms + silence_ms(shared, number, now_ns, asks_ms)) * 21 / 20;
}

/* One who tries is told the truth: so long ago somebody had it, or waited for it. */
static void note_taken(struct shared *shared, unsigned number, const struct taken *taken, int64_t now_ns)
{
    struct object *object = &shared->objects[number];
    for (unsigned i = 0; i < shared->call_count; i++) {
        const struct call *call = &shared->calls[i];
        if (call->object != number || call->state != WAITING)
            continue;
        if (call->limit_ms > 0)
            object->taken_ns = now_ns;
    }
    if (taken->permits > 0 || taken->unsure)
        object->held_ns = object->taken_ns = now_ns;
}

/* What the court knows, for who reads of a failure. */
static void tell(const struct shared *shared, unsigned number)
{
    const struct object *object = &shared->objects[number];
    int64_t now_ns = true_ns();
    fprintf(stderr, "%s %s, prefer %d, of %u:\n", kind_names[object->kind], object->name, object->prefer,
            object->total);
    for (unsigned i = 0; i < shared->call_count; i++) {
        const struct call *call = &shared->calls[i];
        const struct machine *machine = &shared->machines[call->machine];
        static const char *const states[] = { "idle", "waits", "holds", "leaves" };
        if (call->object != number || call->state == IDLE)
            continue;
        fprintf(stderr, "  thread %u of machine %u (lease %lld ms, poll %lld ms, %s%s) %s for %lld ms, wants %u%s\n", i,
                call->machine, (long long)machine->lease_ms, (long long)machine->poll_ms,
                call->is_heard      ? "heard"
                : machine->is_heard ? "new"
                                    : "unheard",
                machine->life == LIVE ? "" : ", silent", states[call->state],
                (long long)((now_ns - call->since_ns) / NS_PER_MS), call->wants, call->writes ? ", writes" : "");
    }
}

/* Each of a crowd that may come in does: a script lets in 48, and readers behind one of their client ask then. */
static void judge_each(const struct shared *shared, unsigned number, struct call *call, bool could, int64_t now_ns)
{
    enum { ROUND = 48, TOGETHER_MS = 80 };
    call->could_ns = !could ? 0 : call->could_ns > 0 ? call->could_ns : now_ns;
    if (!could || !shared->is_calm || !call->is_heard || shared->has_mutes || shared->call_count <= CROWD)
        return;
    int64_t ms = (now_ns - latest(call->could_ns, ready_ns(shared, call))) / NS_PER_MS;
    int64_t most_ms = bound_ms(shared, number, call->could_ns, now_ns);
    most_ms += shared->objects[number].kind == RWLOCK ? TOGETHER_MS - PROMPT_MS
                                                      : (int64_t)(shared->call_count / ROUND) * PROMPT_MS;
    if (ms > most_ms)
        tell(shared, number);
    must(ms <= most_ms, "%s %s: one of a crowd could have come in for %lld ms; %lld ms are promised",
         kind_names[shared->objects[number].kind], shared->objects[number].name, (long long)ms, (long long)most_ms);
}

/*
 * One that stands still had asked just before, and its ask was answered: then it has more than a claim, and does not know.
 * The server is asked whether somebody has whom the court does not know.
 */
static bool is_held_unknowingly(const struct shared *shared, unsigned number, const struct taken *taken)
{
    const struct object *object = &shared->objects[number];
    for (unsigned i = 0; i < shared->machine_count; i++) {
        const struct machine *machine = &shared->machines[i];
        if (machine->life != FROZEN || !machine->waited_for[number] || object->kind == COUNTING || object->kind == LEASED)
            continue;
        int64_t held = world_int(machine->w, "EVAL %s 2 %s latchkey:rw:{%s} %lld",
                                 "if redis.call('PTTL', KEYS[1]) > tonumber(ARGV[1]) then return 1 end "
                                 "local t = redis.call('TIME') "
                                 "return redis.call('ZCOUNT', KEYS[2], t[1] * 1000 + t[2] / 1000 + ARGV[1], '+inf')",
                                 object->name, object->name, (long long)claim_ms(object, machine));
        if (held > (int64_t)taken->readers + taken->writes)
            return true;
    }
    return false;
}

/* Nothing stays free while somebody waits for it. */
static void judge(struct shared *shared, unsigned number)
{
    struct object *object = &shared->objects[number];
    int64_t now_ns = true_ns(), ready_since_ns = INT64_MAX;
    struct taken taken = taken_of(shared, number, now_ns);
    for (unsigned i = 0; i < shared->call_count; i++) {
        struct call *call = &shared->calls[i];
        if (call->object != number)
            continue;
        bool is_able = waits(shared, call, number) && could_enter(shared, object, call, &taken);
        bool is_sure = is_able && !taken.unsure && !object->is_unjudged;
        call->able_ns = !is_able ? 0 : call->able_ns > 0 ? call->able_ns : now_ns;
        judge_each(shared, number, call, is_sure && !shared->is_stormy, now_ns);
        if (!is_able)
            continue;
        if (ready_ns(shared, call) < ready_since_ns)
            ready_since_ns = ready_ns(shared, call);
    }
    note_taken(shared, number, &taken, now_ns);
    if (ready_since_ns == INT64_MAX || taken.unsure || object->is_unjudged || shared->is_stormy) {
        object->open_ns = 0;
        return;
    }
    if (object->open_ns == 0)
        object->open_ns = now_ns;
    int64_t since_ns = latest(latest(object->open_ns, ready_since_ns), shared->disturbed_ns);
    int64_t free_ms = (now_ns - since_ns) / NS_PER_MS, most_ms = bound_ms(shared, number, since_ns, now_ns);
    if (free_ms > most_ms && is_held_unknowingly(shared, number, &taken)) {
        object->open_ns = 0;
        return;
    }
    if (free_ms > most_ms)
        tell(shared, number);
    must(free_ms <= most_ms, "%s %s is free for %lld ms while somebody waits for it; %lld ms are promised",
         kind_names[object->kind], object->name, (long long)free_ms, (long long)most_ms);
}

/* One that came before `call`, hears and is well is still waiting: may `call` come in? */
static void judge_order(struct shared *shared, const struct call *call)
{
    struct object *object = &shared->objects[call->object];
    bool in_order = object->kind == FAIR_MUTEX || is_semaphore(object) ||
                    (object->kind == RWLOCK && object->prefer == LK_RWLOCK_PREFER_FAIR);
    if (!call->is_heard || shared->is_stormy || shared->has_mutes)
        return;
    for (unsigned i = 0; i < shared->call_count; i++) {
        struct call *other = &shared->calls[i];
        const struct machine *machine = &shared->machines[other->machine];
        if (other == call || !waits(shared, other, call->object) || !other->is_heard ||
            other->since_ns + SETTLED_MS * NS_PER_MS > call->since_ns ||
            shared->disturbed_ns + PROMPT_MS * NS_PER_MS > other->since_ns ||
            machine->silent_ns > other->since_ns - 60000 * NS_PER_MS ||
            true_ns() > other->since_ns + (other->limit_ms - PROMPT_MS) * NS_PER_MS)
            continue;
        bool passed = in_order || (object->kind == RWLOCK && other->writes && !call->writes &&
                                   object->writer_ns < other->since_ns && object->prefer != LK_RWLOCK_PREFER_READER);
        if (passed && object->kind != FAIR_MUTEX &&
            (other->passed_ns == 0 || true_ns() - other->passed_ns < PROMPT_MS * NS_PER_MS)) {
            other->passed_ns = other->passed_ns > 0 ? other->passed_ns : true_ns();
            continue;
        }
        if (passed)
            tell(shared, call->object);
        must(!passed, "%s %s: a call that came at %lld ms for %u passed one that came at %lld ms for %u",
             kind_names[object->kind], object->name, (long long)(call->since_ns / NS_PER_MS), call->wants,
             (long long)(other->since_ns / NS_PER_MS), other->wants);
    }
}

/* A reader waits for one writer at most. */
static void judge_phases(struct shared *shared, const struct call *writer)
{
    const struct object *object = &shared->objects[writer->object];
    int64_t now_ns = true_ns();
    if (object->kind != RWLOCK || object->prefer != LK_RWLOCK_PREFER_PHASE_FAIR || !writer->writes)
        return;
    for (unsigned i = 0; i < shared->call_count; i++) {
        struct call *reader = &shared->calls[i];
        if (!waits(shared, reader, writer->object) || reader->writes || !reader->is_heard || shared->is_stormy ||
            shared->has_mutes || shared->disturbed_ns + PROMPT_MS * NS_PER_MS > reader->since_ns ||
            shared->machines[reader->machine].silent_ns != 0 || now_ns < reader->since_ns + SETTLED_MS * NS_PER_MS)
            continue;
        reader->writers++;
        must(reader->writers < 3, "%s: a reader waits for %u writers", object->name, reader->writers);
    }
}

/* Those who hear nothing are served like the others, by claims that they find with the next ask. */
static void judge_unheard(const struct shared *shared, const struct call *call)
{
    const struct object *object = &shared->objects[call->object];
    int64_t waited_ms = (true_ns() - call->since_ns) / NS_PER_MS, others = 0, asks_ms = 0;
    if (!shared->is_calm || shared->is_stormy || shared->machines[call->machine].is_heard || object->kind == RWLOCK ||
        (is_semaphore(object) && shared->whole < 1000))
        return;
    for (unsigned i = 0; i < shared->machine_count; i++) {
        const struct machine *machine = &shared->machines[i];
        others += machine->is_heard ? machine->own_clients ? machine->threads : 0 : machine->threads;
        asks_ms = latest(asks_ms, asks_within_ms(machine));
    }
    int64_t most_ms = 2000 + others * (4000 + asks_ms + 2 * shared->hold_ms);
    must(waited_ms < most_ms, "%s %s: one that hears nothing waits for %lld ms; %lld others do",
         kind_names[object->kind], object->name, (long long)waited_ms, (long long)others);
}

static void begins_to_wait(struct user *user, unsigned number, unsigned wants, bool writes, int64_t limit_ms)
{
    struct shared *shared = user->machine->shared;
    struct call *call = &shared->calls[user->number];
    uint64_t owner = call->owner;
    *call = (struct call){ .owner = owner,
                           .machine = user->machine->number,
                           .object = number,
                           .wants = wants,
                           .writes = writes,
                           .is_heard = user->machine->is_heard && user->has_waited,
                           .since_ns = true_ns(),
                           .limit_ms = limit_ms,
                           .state = WAITING };
    judge(shared, number);
    shared->changed_ns = true_ns();
}

/* It believes to hold until then, and asked for that at `asked_ns`. */
static void believes(struct shared *shared, struct call *call, int64_t asked_ns, int64_t until_ns)
{
    const struct object *object = &shared->objects[call->object];
    unsigned permits = call->wants, readers = 0;
    bool writes = call->writes;
    if (true_ns() >= until_ns)
        return;
    for (unsigned i = 0; i < shared->call_count; i++) {
        const struct call *other = &shared->calls[i];
        if (other == call || other->state != HOLDING || other->object != call->object || other->until_ns <= asked_ns)
            continue;
        permits += other->wants;
        readers += !other->writes;
        must(object->kind != RWLOCK || (!writes && !other->writes), "%s %s: two hold it at once, one writes",
             kind_names[object->kind], object->name);
        must(object->kind != MUTEX && object->kind != FAIR_MUTEX, "%s %s: two hold it at once",
             kind_names[object->kind], object->name);
    }
    must(!is_semaphore(object) || permits <= object->total, "%s %s: %u of %u permits are taken",
         kind_names[object->kind], object->name, permits, object->total);
    call->until_ns = until_ns;
}

static bool is_over(const struct shared *shared)
{
    return true_ms() >= shared->end_ms || shared->calls_left == 0;
}

/* --- a thread ----------------------------------------------------------------------------------------------------- */

static int remaining(struct user *user, unsigned number, int64_t *ms)
{
    switch (user->machine->shared->objects[number].kind) {
    case MUTEX:
    case FAIR_MUTEX:
        return lk_mutex_remaining(&user->mutexes[number], ms);
    case RWLOCK:
        return lk_rwlock_remaining(&user->rwlocks[number], ms);
    case LEASED:
        return lk_sem_remaining(&user->sems[number], ms);
    default:
        *ms = 4 * 3600 * 1000;
        return 0;
    }
}

static int acquire(struct user *user, unsigned number, unsigned wants, bool writes, int64_t limit_ms)
{
    switch (user->machine->shared->objects[number].kind) {
    case MUTEX:
    case FAIR_MUTEX:
        return lk_mutex_lockfor(&user->mutexes[number], limit_ms);
    case RWLOCK:
        return writes ? lk_rwlock_wrlockfor(&user->rwlocks[number], limit_ms)
                      : lk_rwlock_rdlockfor(&user->rwlocks[number], limit_ms);
    default:
        return lk_sem_acquire(&user->sems[number], wants, limit_ms);
    }
}

static int release(struct user *user, unsigned number, unsigned wants)
{
    switch (user->machine->shared->objects[number].kind) {
    case MUTEX:
    case FAIR_MUTEX:
        return lk_mutex_unlock(&user->mutexes[number]);
    case RWLOCK:
        return lk_rwlock_unlock(&user->rwlocks[number]);
    default:
        return lk_sem_release(&user->sems[number], wants);
    }
}

/* Was the world as it should be, for this call, since then? */
static bool was_calm(const struct user *user, int64_t since_ns)
{
    const struct shared *shared = user->machine->shared;
    const struct machine *machine = &shared->machines[user->machine->number];
    return !shared->is_stormy && shared->disturbed_ns < since_ns &&
           latest(machine->silent_ns, machine->resumed_ns) + 60000 * NS_PER_MS < since_ns;
}

/* Hold it, and look now and then whether it is held still. */
static void hold(struct user *user, unsigned number, struct call *call, int64_t ms)
{
    struct shared *shared = user->machine->shared;
    int64_t began_ns = true_ns(), slice_ms = user->machine->lease_ms / 8;
    for (int64_t until_ms = true_ms() + ms;;) {
        int64_t asked_ns = true_ns(), left_ms = 0;
        int code = remaining(user, number, &left_ms);
        must(code == 0 || code == ESTALE, "what is left is %d", code);
        must(code == 0 || !was_calm(user, began_ns - 60000 * NS_PER_MS), "%s %s was lost though nothing happened",
             kind_names[shared->objects[number].kind], shared->objects[number].name);
        if (code != 0) {
            call->unsure = true;
            return;
        }
        believes(shared, call, asked_ns, asked_ns + left_ms * 990000);
        int64_t rest = until_ms - true_ms();
        if (rest <= 0 || is_over(shared))
            return;
        rest_ms(rest < slice_ms ? rest : slice_ms);
    }
}

static int64_t hold_time(struct user *user)
{
    int64_t most_ms = user->machine->shared->hold_ms;
    switch (user->machine->shared->is_steady ? 2 : luck_below(&user->luck, 3)) {
    case 0:
        return 0;
    case 1:
        return luck_about(&user->luck, 1, most_ms);
    default:
        return most_ms / 2 + (int64_t)luck_below(&user->luck, (uint64_t)most_ms / 2 + 1);
    }
}

static void enter(struct user *user, unsigned number)
{
    struct shared *shared = user->machine->shared;
    struct call *call = &shared->calls[user->number];
    struct object *object = &shared->objects[number];
    judge(shared, number);
    judge_unheard(shared, call);
    judge_order(shared, call);
    judge_phases(shared, call);
    if (call->writes)
        object->writer_ns = true_ns();
    call->state = HOLDING;
    object->open_ns = 0;
    judge(shared, number);
    shared->changed_ns = true_ns();
    hold(user, number, call, hold_time(user));
    if (shared->aims > 0 && luck_onein(&user->luck, shared->aims)) {
        shared->is_aimed = true;
        rest_ms((int64_t)luck_below(&user->luck, 20));
    }
    int64_t began_ns = true_ns();
    call->until_ns = 0;
    call->state = LEAVING;
    if (call->writes)
        object->writer_ns = true_ns();
    int code = release(user, number, call->wants);
    must(code == 0 || code == ESTALE || code == EIO || code == ENOTCONN, "a release returned %d: %s", code,
         lk_errortext());
    must(code == 0 || call->unsure || !was_calm(user, began_ns - 60000 * NS_PER_MS),
         "a release returned %d though nothing happened: %s", code, lk_errortext());
    if (code == ENOTCONN && object->kind == COUNTING)
        add_ghost(object, call, NEVER_NS); /* nothing was done: it has them still */
    else if (code == EIO || code == ENOTCONN)
        add_ghost(object, call, true_ns() + lk_errorsettles() * 1010000 + NS_PER_MS);
    if (call->writes)
        object->writer_ns = true_ns();
}

/* Was it free for all of the time that this try took, with nobody else there? */
static bool is_tried_in_vain(struct user *user, const struct call *call)
{
    struct shared *shared = user->machine->shared;
    struct object *object = &shared->objects[call->object];
    judge(shared, call->object);
    for (unsigned i = 0; i < shared->call_count; i++)
        if (&shared->calls[i] != call && shared->calls[i].object == call->object && shared->calls[i].state != IDLE)
            return false; /* another one may have it by now */
    return shared->is_calm && was_calm(user, call->since_ns) && object->taken_ns < call->since_ns &&
           !object->is_unjudged;
}

/* Its machine stood still past its limit. Was what it wants free when it went on, with nobody else there? */
static bool is_overslept(struct user *user, const struct call *call)
{
    struct shared *shared = user->machine->shared;
    const struct machine *machine = &shared->machines[user->machine->number];
    const struct object *object = &shared->objects[call->object];
    judge(shared, call->object);
    if (machine->silent_ns < call->since_ns + NEWCOMER_MS * NS_PER_MS ||
        machine->resumed_ns < call->since_ns + (call->limit_ms + 20) * NS_PER_MS ||
        object->held_ns + PROMPT_MS * NS_PER_MS > machine->resumed_ns || object->is_unjudged || shared->is_stormy ||
        !call->is_heard || shared->has_mutes || shared->disturbed_ns > call->since_ns)
        return false;
    for (unsigned i = 0; i < shared->machine_count; i++)
        if (i != call->machine && shared->machines[i].silent_ns > 0)
            return false;
    for (unsigned i = 0; i < shared->call_count; i++)
        if (&shared->calls[i] != call && shared->calls[i].object == call->object && shared->calls[i].state != IDLE)
            return false;
    return true;
}

/* Who waits for longer than three seconds is told of at that moment, and nobody else is. */
static void judge_told(const struct user *user, const struct call *call, int64_t over_ns)
{
    int64_t waited_ms = (over_ns - call->since_ns) / NS_PER_MS, slack_ms = PROMPT_MS + waited_ms / 100;
    int64_t told_ms = call->told_ns > 0 ? (call->told_ns - call->since_ns) / NS_PER_MS : 0;
    const char *name = user->machine->shared->objects[call->object].name;
    if (!was_calm(user, call->since_ns))
        return;
    must(waited_ms < WARN_MS + slack_ms || told_ms > 0, "%s: a wait of %lld ms was not told", name,
         (long long)waited_ms);
    must(told_ms == 0 || (told_ms > WARN_MS - slack_ms && told_ms < WARN_MS + slack_ms),
         "%s: a long wait was told after %lld ms", name, (long long)told_ms);
}

struct victim {
    struct user *user;
    struct call *call;
    int code;
    bool is_done;
};

static void *wait_as_victim(void *arg)
{
    struct victim *victim = arg;
    struct call *call = victim->call;
    call->owner = lk_owner_number(NULL);
    victim->code = acquire(victim->user, call->object, call->wants, call->writes, call->limit_ms);
    victim->is_done = true;
    return NULL;
}

/* In a thread that is cancelled. ECANCELED: it was, while it waited. */
static int acquire_and_cancel(struct user *user, struct call *call)
{
    struct victim victim = { .user = user, .call = call };
    pthread_t thread;
    assert_that(pthread_create(&thread, NULL, wait_as_victim, &victim) == 0);
    for (int64_t until_ms = true_ms() + luck_about(&user->luck, 1, 2 * call->limit_ms);
         !victim.is_done && true_ms() < until_ms;)
        rest_ms(2);
    pthread_cancel(thread);
    assert_that(pthread_join(thread, NULL) == 0);
    return victim.is_done ? victim.code : ECANCELED;
}

/* Where somebody died with permits, nobody else gives them back: a wait ends soon after all else. */
static int64_t limit_of(struct user *user)
{
    const struct shared *shared = user->machine->shared;
    if (!shared->is_patient)
        return luck_about(&user->luck, 10, shared->limit_ms);
    int64_t ms = shared->limit_ms / 2 + (int64_t)luck_below(&user->luck, (uint64_t)shared->limit_ms / 2);
    int64_t left_ms = latest(shared->end_ms - true_ms(), 0) + 20000;
    return ms < left_ms ? ms : left_ms;
}

static void use_one(struct user *user)
{
    struct shared *shared = user->machine->shared;
    struct call *call = &shared->calls[user->number];
    unsigned number = (unsigned)luck_below(&user->luck, shared->object_count);
    struct object *object = &shared->objects[number];
    bool all = user->machine->wants_all,
         writes = object->kind == RWLOCK && (luck_onein(&user->luck, shared->readers) || all);
    unsigned wants = is_semaphore(object) && (luck_onein(&user->luck, shared->whole) || all) ? object->total : 1;
    bool tries = luck_onein(&user->luck, shared->tries);
    int64_t limit_ms = tries ? 0 : limit_of(user);
    begins_to_wait(user, number, wants, writes || object->kind == MUTEX || object->kind == FAIR_MUTEX, limit_ms);
    int64_t began_ns = call->since_ns;
    shared->calls_left -= shared->calls_left > 0;
    bool cancels =
        !tries && object->kind == COUNTING && shared->cancels > 0 && luck_onein(&user->luck, shared->cancels);
    if (cancels)
        call->until_ns = 0;
    else
        call->owner = lk_owner_number(NULL);
    int code = cancels ? acquire_and_cancel(user, call) : acquire(user, number, wants, writes, limit_ms);
    judge_told(user, call, true_ns());
    if (code == ECANCELED && cancels) {
        code = ETIMEDOUT;
        shared->cancelled++;
    }
    must(code == 0 || code == ETIMEDOUT || code == EIO || code == ENOTCONN, "%s %s: a call returned %d: %s",
         kind_names[object->kind], object->name, code, lk_errortext());
    int64_t late_ms = (true_ns() - began_ns) / NS_PER_MS - limit_ms;
    must(cancels || !was_calm(user, began_ns) || late_ms <= limit_ms / 200 + user->machine->timeout_ms + PROMPT_MS,
         "a call returned %lld ms after its limit", (long long)late_ms);
    if (code == 0) {
        enter(user, number);
    } else {
        must(code == ETIMEDOUT || !was_calm(user, began_ns), "a call returned %d though nothing happened: %s", code,
             lk_errortext());
        if (code != ETIMEDOUT)
            add_ghost(object, call, true_ns() + lk_errorsettles() * 1010000 + NS_PER_MS);
        must(code != ETIMEDOUT || !tries || !is_tried_in_vain(user, call), "%s %s: a try failed though it was free",
             kind_names[object->kind], object->name);
        must(code != ETIMEDOUT || tries || cancels || !is_overslept(user, call),
             "%s %s: a wait that slept over its limit left though it was free", kind_names[object->kind], object->name);
        if (!tries)
            judge(shared, number);
        judge_unheard(shared, call);
        if (!call->is_heard)
            object->mute_left_ns = true_ns();
    }
    call->state = IDLE;
    judge(shared, number);
    shared->changed_ns = true_ns();
    user->has_waited |= limit_ms > 0 && true_ns() - began_ns > SETTLED_MS * NS_PER_MS; /* its client is heard by now */
}

/* A listener, on a thread of the library. */
static void hear(const lk_event_t *event, void *arg)
{
    struct machine *machine = arg;
    struct shared *shared = machine->shared;
    for (unsigned i = 0; event->type == LK_EVENT_LONG_WAIT && i < machine->threads; i++) {
        struct call *call = &shared->calls[machine->first_call + i];
        if (call->owner == event->owner && call->state == WAITING)
            call->told_ns = true_ns();
    }
}

static void begin_objects(struct user *user)
{
    struct shared *shared = user->machine->shared;
    for (unsigned i = 0; i < shared->object_count; i++) {
        const struct object *object = &shared->objects[i];
        lk_mutexattr_t mutex = { .size = sizeof mutex, .fair = object->kind == FAIR_MUTEX };
        lk_rwlockattr_t rwlock = { .size = sizeof rwlock, .prefer = object->prefer };
        lk_semattr_t sem = { .size = sizeof sem, .leased = object->kind == LEASED };
        if (object->kind <= FAIR_MUTEX)
            assert_lk(0, lk_mutex_init(&user->mutexes[i], user->client, object->name, &mutex));
        else if (object->kind == RWLOCK)
            assert_lk(0, lk_rwlock_init(&user->rwlocks[i], user->client, object->name, &rwlock));
        else
            assert_lk(0, lk_sem_init(&user->sems[i], user->client, object->name, object->total, &sem));
    }
}

static void open_client(struct machine *machine, lk_client_t **client)
{
    char options[256], url[1024];
    snprintf(options, sizeof options, "lease=%lldms&poll=%lldms%s%s", (long long)machine->lease_ms,
             (long long)machine->poll_ms, machine->is_heard || machine->is_mute ? "" : "&pubsub=no",
             machine->redisson ? "&redisson=yes" : "");
    snprintf(url, sizeof url, "%s", world_url(machine->w, options));
    if (machine->is_mute)
        snprintf(url, sizeof url, "unix://mute:secret@%s", world_url(machine->w, options) + strlen("unix://"));
    int code = ENOTCONN;
    while (code == ENOTCONN || code == EIO)
        code = lk_client_open(client, url);
    assert_lk(0, code);
    uint64_t handle;
    assert_lk(0, lk_client_addlistener(*client, hear, machine, &handle));
}

static int64_t pause_time(struct user *user)
{
    int64_t most_ms = user->machine->shared->pause_ms;
    return user->machine->shared->is_steady ? most_ms / 2 + (int64_t)luck_below(&user->luck, (uint64_t)most_ms / 2 + 1)
                                            : luck_about(&user->luck, 1, most_ms);
}

static int use(void *arg)
{
    struct user *user = arg;
    struct shared *shared = user->machine->shared;
    unsigned slot = 0;
    while (!is_over(shared)) {
        unsigned rounds = user->machine->own_clients ? (unsigned)luck_about(&user->luck, 1, 4) : 1;
        if (user->machine->own_clients) {
            open_client(user->machine, &user->client);
            user->has_waited = false;
            slot = shared->clients < CLIENTS_MAX ? shared->clients++ : CLIENTS_MAX - 1;
            shared->opened_ns[slot] = true_ns();
            begin_objects(user);
        }
        for (unsigned i = 0; i < rounds && !is_over(shared); i++) {
            use_one(user);
            rest_ms(pause_time(user));
        }
        if (user->machine->own_clients) {
            lk_client_close(user->client);
            shared->closed_ns[slot] = true_ns();
        }
    }
    return 0;
}

static int run_machine(struct world *w, void *arg)
{
    struct machine *machine = arg;
    struct user *users = calloc(machine->threads, sizeof *users);
    struct worker *workers = calloc(machine->threads, sizeof *workers);
    lk_client_t *client = NULL;
    machine_begins(machine->number);
    if (!machine->own_clients)
        open_client(machine, &client);
    world_ready(w);
    for (unsigned i = 0; i < machine->threads; i++) {
        users[i] = (struct user){
            .machine = machine, .luck = luck_begin(), .number = machine->first_call + i, .client = client
        };
        if (!machine->own_clients)
            begin_objects(&users[i]);
        worker_start(&workers[i], use, &users[i]);
    }
    for (unsigned i = 0; i < machine->threads; i++)
        assert_that(worker_join(&workers[i]) == 0);
    lk_client_close(client);
    free(users);
    free(workers);
    return 0;
}

/* --- what a seed is like ------------------------------------------------------------------------------------------ */

enum fault { SUBSCRIPTIONS, CONNECTIONS, SCRIPTS, FREEZES, KILLS, FORGES, FAULTS };

struct plan {
    bool storms, faults[FAULTS];
    int64_t length_ms, every_ms, first_ms; /* 0: as the others */
};

static int64_t one_of(struct luck *luck, const int64_t *all, unsigned count)
{
    return all[luck_below(luck, count)];
}
#define ONE_OF(luck, ...)                                                                                              \
    one_of((luck), (const int64_t[]){ __VA_ARGS__ }, sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t))

static void draw_objects(struct luck *luck, struct shared *shared)
{
    shared->object_count = luck_onein(luck, 2) ? 1 : 1 + (unsigned)luck_below(luck, OBJECTS_MAX);
    for (unsigned i = 0; i < shared->object_count; i++) {
        struct object *object = &shared->objects[i];
        object->kind = (enum kind)luck_below(luck, KINDS);
        object->prefer = object->kind == RWLOCK ? (int)luck_below(luck, 4) : 0;
        object->total = is_semaphore(object) ? (unsigned)ONE_OF(luck, 1, 2, 3, 100) : 1;
        snprintf(object->name, sizeof object->name, "object-%u", i);
    }
}

static void draw_machine(struct luck *luck, struct machine *machine, const struct machine *like)
{
    if (like != NULL && !luck_onein(luck, 3)) {
        machine->lease_ms = like->lease_ms;
        machine->poll_ms = like->poll_ms;
    } else {
        machine->lease_ms = ONE_OF(luck, 1000, 2000, 6000, 10000, 30000, 30000);
        machine->poll_ms = ONE_OF(luck, 200, 1000, 1000, 1000, 3000, 10000);
        if (machine->poll_ms > machine->lease_ms / 2)
            machine->poll_ms = machine->lease_ms / 2;
    }
    machine->timeout_ms = machine->lease_ms / 5 < 1000 ? machine->lease_ms / 5 : 1000;
}

/* Each thread has a call. */
static void seat_threads(struct shared *shared)
{
    shared->call_count = 0;
    shared->has_mutes = false;
    for (unsigned i = 0; i < shared->machine_count; i++) {
        struct machine *machine = &shared->machines[i];
        machine->first_call = shared->call_count;
        shared->call_count += machine->threads;
        shared->has_mutes |= machine->is_mute;
    }
}

static void draw_machines(struct luck *luck, struct world *w, struct shared *shared)
{
    unsigned unheard = (unsigned)ONE_OF(luck, 0, 0, 0, 1, 1, 2), most = (unsigned)ONE_OF(luck, 1, 2, 3, 8);
    unsigned own = (unsigned)ONE_OF(luck, 0, 0, 1, 3), mutes = luck_onein(luck, 8) ? 2 : 0;
    bool redisson = luck_onein(luck, 6);
    unsigned crowd = luck_onein(luck, 8) ? 60 + (unsigned)luck_below(luck, 140) : 0;
    shared->machine_count = 2 + (unsigned)luck_below(luck, luck_onein(luck, 3) && crowd == 0 ? MACHINES_MAX - 1 : 3);
    for (unsigned i = 0; i < MACHINES_MAX; i++)
        shared->machines[i] = (struct machine){ .w = w, .shared = shared, .number = i };
    for (unsigned i = 0; i < shared->machine_count; i++) {
        struct machine *machine = &shared->machines[i];
        draw_machine(luck, machine, i > 0 ? &shared->machines[0] : NULL);
        machine->is_heard = unheard == 0 || (unheard == 1 && !luck_onein(luck, 2));
        machine->is_mute = mutes > 0 && luck_onein(luck, mutes);
        machine->is_heard &= !machine->is_mute;
        machine->own_clients = own > 0 && luck_onein(luck, own) && !machine->is_mute;
        machine->redisson = redisson;
        machine->threads = 1 + (unsigned)luck_below(luck, most);
        if (i == 1 && crowd > 0) {
            machine->threads = crowd;
            machine->own_clients = false;
        }
    }
    seat_threads(shared);
}

/* Many wait for one object, and come in at once when somebody gives back all that there is. */
static void draw_crowd(struct luck *luck, struct shared *shared)
{
    static const int64_t kinds[] = { FAIR_MUTEX, RWLOCK, RWLOCK, COUNTING, LEASED, COUNTING, LEASED };
    shared->object_count = 1;
    shared->objects[0].kind = (enum kind)one_of(luck, kinds, 7);
    shared->objects[0].prefer = shared->objects[0].kind == RWLOCK ? (int)luck_below(luck, 4) : 0;
    shared->objects[0].total = is_semaphore(&shared->objects[0]) ? 100 : 1;
    shared->calls_left = 1000;
    shared->hold_ms = ONE_OF(luck, 200, 2000, 20000);
    shared->pause_ms = ONE_OF(luck, 20, 2000);
    shared->limit_ms = 100000;
    shared->whole = shared->readers = 100;
}

static void draw_behavior(struct luck *luck, struct shared *shared, struct plan *plan)
{
    shared->calls_left = (unsigned)ONE_OF(luck, 150, 400, 1000);
    shared->hold_ms = ONE_OF(luck, 1, 20, 200, 200, 2000, 20000, 100000);
    shared->pause_ms = ONE_OF(luck, 1, 20, 200, 2000, 20000);
    shared->limit_ms = ONE_OF(luck, 100, 2000, 20000, 100000);
    shared->tries = (unsigned)ONE_OF(luck, 3, 20, 1000);
    shared->whole = (unsigned)ONE_OF(luck, 3, 10, 1000);
    shared->readers = (unsigned)ONE_OF(luck, 2, 2, 5, 20);
    if (shared->call_count > CROWD)
        draw_crowd(luck, shared);
    plan->length_ms = latest(20000, 3 * shared->hold_ms);
    if (shared->pause_ms >= 2000)
        plan->length_ms = latest(plan->length_ms, 100000);
    plan->storms = luck_onein(luck, 8);
    unsigned kinds =
        (unsigned)ONE_OF(luck, 0, 0, 1, 1, 1, 3); /* many seeds have one kind of faults alone, others none */
    for (unsigned i = 0; i < kinds; i++)
        plan->faults[luck_below(luck, FAULTS)] = true;
    shared->aims = luck_onein(luck, 2) ? (unsigned)ONE_OF(luck, 2, 8) : 0;
    shared->cancels = luck_onein(luck, 3) ? (unsigned)ONE_OF(luck, 2, 8) : 0;
    plan->every_ms = ONE_OF(luck, 200, 1000, 5000, 20000);
}

static void only_fault(struct plan *plan, enum fault fault)
{
    memset(plan->faults, 0, sizeof plan->faults);
    plan->storms = false;
    if (fault < FAULTS)
        plan->faults[fault] = true;
}

/* Processes with one thread want one mutex, and the first of those that wait stands still as it is given back. */
static void draw_sleepers(struct luck *luck, struct shared *shared, struct plan *plan)
{
    shared->object_count = 1;
    shared->objects[0].kind = luck_onein(luck, 4) ? FAIR_MUTEX : MUTEX;
    shared->is_steady = true;
    shared->hold_ms = shared->pause_ms = 20000;
    shared->aims = 1;
    only_fault(plan, FREEZES);
    shared->machine_count = 3 + (unsigned)luck_below(luck, 2);
    for (unsigned i = 0; i < shared->machine_count; i++) {
        struct machine *machine = &shared->machines[i];
        machine->is_heard = true;
        machine->is_mute = machine->own_clients = false;
        machine->threads = 1;
        machine->poll_ms = 1000;
        machine->lease_ms = 30000;
        machine->timeout_ms = 1000;
    }
}

/* Somebody has it for long, and some of the others die or stand still. */
static void draw_long_holds(struct luck *luck, struct shared *shared, struct plan *plan)
{
    shared->hold_ms = ONE_OF(luck, 20000, 60000);
    shared->pause_ms = ONE_OF(luck, 20, 2000);
    shared->limit_ms = 8 * shared->hold_ms;
    shared->calls_left = 100;
    shared->aims = 2;
    shared->nap_ms = 40000;
    plan->length_ms = 5 * shared->hold_ms;
    plan->every_ms = 60000;
    only_fault(plan, (enum fault)ONE_OF(luck, FAULTS, KILLS, FREEZES, FREEZES));
    int64_t poll_ms = ONE_OF(luck, 200, 1000, 1000, 1000, 3000);
    for (unsigned i = 0; i < shared->machine_count; i++) {
        struct machine *machine = &shared->machines[i];
        machine->is_heard = true;
        machine->is_mute = machine->own_clients = false;
        machine->threads = 1 + (unsigned)luck_below(luck, 3);
        machine->poll_ms = luck_onein(luck, 8) ? 200 : poll_ms;
        machine->lease_ms = ONE_OF(luck, 10000, 30000);
        machine->timeout_ms = 1000;
    }
    if (luck_onein(luck, 2))
        draw_sleepers(luck, shared, plan);
}

/* It is wanted all the time, by some who hear and some who do not. */
static void draw_rush(struct luck *luck, struct shared *shared, struct plan *plan)
{
    shared->object_count = 1;
    shared->hold_ms = ONE_OF(luck, 5, 20, 50);
    shared->pause_ms = ONE_OF(luck, 1, 20);
    shared->limit_ms = 100000;
    shared->calls_left = 3000;
    shared->aims = 0;
    plan->length_ms = 25000;
    only_fault(plan, FAULTS);
    for (unsigned i = 0; i < shared->machine_count; i++) {
        struct machine *machine = &shared->machines[i];
        machine->is_heard = i > 0;
        machine->is_mute = machine->own_clients = false;
        machine->threads = i > 0 ? 4 : 1;
        machine->poll_ms = machine->poll_ms > 1000 ? 1000 : machine->poll_ms;
    }
}

/* Clients come and go, for longer than the record keeps who they were. */
static void draw_churn(struct luck *luck, struct shared *shared, struct plan *plan)
{
    shared->object_count = 1;
    shared->objects[0].kind = COUNTING;
    shared->objects[0].total = 3;
    shared->hold_ms = ONE_OF(luck, 1, 20, 200);
    shared->pause_ms = 2000;
    shared->limit_ms = 20000;
    shared->calls_left = 2000;
    shared->machine_count = 2;
    plan->length_ms = 240000;
    for (unsigned i = 0; i < shared->machine_count; i++) {
        shared->machines[i].is_mute = false;
        shared->machines[i].own_clients = true;
        shared->machines[i].threads = 1 + (unsigned)luck_below(luck, 2);
    }
}

/* Claims are as short as the leases of those who stand still, and others wait behind them. */
static void draw_short_claims(struct luck *luck, struct shared *shared, struct plan *plan)
{
    static const int64_t kinds[] = { FAIR_MUTEX, RWLOCK, LEASED }; /* a claim of a number has no lease */
    shared->objects[0].kind = (enum kind)one_of(luck, kinds, 3);
    shared->objects[0].prefer = shared->objects[0].kind == RWLOCK ? (int)luck_below(luck, 4) : 0;
    shared->objects[0].total = 1;
    shared->readers = 1;
    shared->limit_ms = 20000;
    shared->nap_ms = 8000;
    only_fault(plan, FREEZES);
    shared->machine_count = 3;
    for (unsigned i = 0; i < shared->machine_count; i++) {
        struct machine *machine = &shared->machines[i];
        machine->is_heard = true;
        machine->is_mute = machine->own_clients = false;
        machine->threads = i == 0 ? 2 : 4;
        machine->poll_ms = ONE_OF(luck, 200, 500);
        machine->lease_ms = i == 0 ? 30000 : ONE_OF(luck, 1000, 1000, 2000);
        machine->timeout_ms = i == 0 ? 1000 : machine->lease_ms / 5;
    }
}

/* As somebody gives back, one who waits does not hear of it: close to its limit, or with others of its machine. */
static void draw_naps(struct luck *luck, struct shared *shared, struct plan *plan)
{
    bool close = luck_onein(luck, 2);
    shared->object_count = 1;
    shared->hold_ms = ONE_OF(luck, 200, 2000);
    shared->pause_ms = ONE_OF(luck, 200, 2000, 2000);
    shared->limit_ms = close ? shared->hold_ms * 6 / 5 : 20000;
    shared->calls_left = 150;
    shared->aims = 1;
    shared->nap_ms = close ? 2000 : 20000;
    plan->length_ms = 60000;
    plan->every_ms = 60000;
    only_fault(plan, (enum fault)ONE_OF(luck, FREEZES, SUBSCRIPTIONS));
    shared->machine_count = shared->machine_count > 2 && !close ? 3 : 2;
    for (unsigned i = 0; i < shared->machine_count; i++) {
        struct machine *machine = &shared->machines[i];
        machine->is_heard = true;
        machine->is_mute = machine->own_clients = false;
        machine->threads = close ? 1 : 1 + (unsigned)luck_below(luck, 4);
    }
    if (luck_onein(luck, 2))
        draw_short_claims(luck, shared, plan);
}

/* One takes all that there is, and some dozens come in together when that one gives back. */
static void draw_rounds(struct luck *luck, struct shared *shared, struct plan *plan)
{
    static const int64_t kinds[] = { RWLOCK, RWLOCK, COUNTING, LEASED };
    int64_t poll_ms = ONE_OF(luck, 3000, 10000), threads = ONE_OF(luck, 140, 280);
    shared->object_count = 1;
    shared->objects[0].kind = (enum kind)one_of(luck, kinds, 4);
    shared->objects[0].prefer = shared->objects[0].kind == RWLOCK ? (int)luck_below(luck, 4) : 0;
    shared->objects[0].total = is_semaphore(&shared->objects[0]) ? 300 : 1;
    shared->hold_ms = 2000;
    shared->pause_ms = ONE_OF(luck, 20, 500);
    shared->limit_ms = 100000;
    shared->calls_left = 1000;
    shared->readers = 1000000;
    shared->aims = 0;
    shared->is_steady = true;
    plan->length_ms = 40000;
    only_fault(plan, FAULTS);
    shared->machine_count = 2 + (unsigned)luck_below(luck, 3);
    for (unsigned i = 0; i < shared->machine_count; i++) {
        struct machine *machine = &shared->machines[i];
        machine->is_heard = true;
        machine->is_mute = machine->own_clients = false;
        machine->wants_all = i == 0;
        machine->threads = i == 0 ? 1 : (unsigned)threads / (shared->machine_count - 1);
        machine->poll_ms = poll_ms;
        machine->lease_ms = 30000;
        machine->timeout_ms = 1000;
    }
}

/* Many that wait die at once, and few others stand behind them or come later. */
static void draw_many_dead(struct luck *luck, struct shared *shared, struct plan *plan)
{
    static const int64_t kinds[] = { FAIR_MUTEX, RWLOCK, LEASED };
    int64_t lease_ms = ONE_OF(luck, 2000, 4000);
    shared->object_count = 1;
    shared->objects[0].kind = (enum kind)one_of(luck, kinds, 3);
    shared->objects[0].prefer = shared->objects[0].kind == RWLOCK ? (int)luck_below(luck, 4) : 0;
    shared->objects[0].total = 1;
    shared->hold_ms = 10000;
    shared->pause_ms = 2000;
    shared->limit_ms = 100000;
    shared->calls_left = 1000;
    shared->readers = 1;
    shared->aims = 0;
    shared->is_steady = true;
    plan->length_ms = 25000;
    plan->every_ms = 60000;
    plan->first_ms = 1000 + (int64_t)luck_below(luck, 3000);
    shared->dies = 1;
    only_fault(plan, KILLS);
    shared->machine_count = 3;
    for (unsigned i = 0; i < shared->machine_count; i++) {
        struct machine *machine = &shared->machines[i];
        machine->is_heard = true;
        machine->is_mute = machine->own_clients = false;
        machine->threads = i == 1 ? 280 + (unsigned)luck_below(luck, 100) : 1;
        machine->lease_ms = lease_ms;
        machine->poll_ms = 1000;
        machine->timeout_ms = lease_ms / 5;
    }
}

static void draw_theme(struct luck luck, struct shared *shared, struct plan *plan)
{
    static void (*const themes[])(struct luck *, struct shared *, struct plan *) = { draw_long_holds, draw_rush,
                                                                                     draw_churn,      draw_naps,
                                                                                     draw_rounds,     draw_many_dead };
    if (luck_onein(&luck, 2))
        return;
    shared->cancels = 0;
    shared->tries = shared->whole = 1000000;
    shared->is_patient = true;
    themes[shared->call_count > CROWD ? 4 + luck_below(&luck, 2) : luck_below(&luck, 6)](&luck, shared, plan);
    seat_threads(shared);
}

/* --- the driver, who makes faults --------------------------------------------------------------------------------- */

static void judge_all(struct shared *shared)
{
    for (unsigned i = 0; i < shared->object_count; i++)
        judge(shared, i);
}

/* How often may those who wait ask while nothing changes? */
struct quiet {
    int64_t since_ns, asked, forged;
};

static int64_t may_ask(const struct shared *shared, const struct call *call, int64_t ms)
{
    const struct machine *machine = &shared->machines[call->machine];
    if (call->state == HOLDING)
        return shared->objects[call->object].kind == COUNTING ? 0 : 3 * ms / machine->lease_ms + 2;
    int64_t pause_ms = machine->is_heard || machine->poll_ms < QUIET_PAUSE_MS ? machine->poll_ms : QUIET_PAUSE_MS;
    return call->state == WAITING ? ms / (pause_ms * 8 / 10) + 2 : 2;
}

static void judge_asks(struct world *w, struct shared *shared, struct quiet *quiet)
{
    enum { CALMS_MS = 8000, QUIET_MS = 15000 };
    int64_t now_ns = true_ns();
    if (!shared->is_calm || quiet->since_ns < shared->changed_ns + CALMS_MS * NS_PER_MS || quiet->since_ns == 0) {
        quiet->since_ns = now_ns;
        quiet->asked = -1;
    } else if (quiet->asked == -1) {
        quiet->since_ns = now_ns;
        quiet->asked = world_commands(w, "evalsha");
        quiet->forged = shared->forged;
    } else if (now_ns - quiet->since_ns > QUIET_MS * NS_PER_MS) {
        int64_t asked = world_commands(w, "evalsha") - quiet->asked;
        int64_t most = 5 + shared->forged - quiet->forged; /* whoever is told asks */
        for (unsigned i = 0; i < shared->call_count; i++)
            most += may_ask(shared, &shared->calls[i], QUIET_MS);
        must(asked <= most, "%lld requests in %d ms while nothing changes; at most %lld are promised", (long long)asked,
             QUIET_MS, (long long)most);
        quiet->since_ns = 0;
    }
}

static bool are_lost(const struct object *object)
{
    unsigned lost = 0;
    for (unsigned i = 0; i < object->ghost_count; i++)
        lost += object->ghosts[i].until_ns == NEVER_NS ? object->ghosts[i].wants : 0;
    return lost >= object->total;
}

/*
 * The record has an entry for each thread that made a request in the last minute and a half, and some that are older.
 * One that got no answer is the last of its name: a wait that was cancelled. Nobody counts them where connections were
 * lost, and nobody deletes old ones where all permits are lost, as nobody new takes one.
 */
static void judge_record(struct world *w, const struct shared *shared)
{
    int64_t most = 10 + shared->cancelled, now_ns = true_ns();
    for (unsigned i = 0; i < shared->clients; i++)
        most += shared->closed_ns[i] == 0 || shared->closed_ns[i] > now_ns - 75000 * NS_PER_MS;
    for (unsigned i = 0; i < shared->machine_count; i++)
        most += (1 + (int64_t)shared->machines[i].lives) * 2 * shared->machines[i].threads;
    for (unsigned i = 0; i < shared->object_count; i++) {
        if (are_lost(&shared->objects[i]))
            continue;
        int64_t kept = world_int(w, "HLEN latchkey:once:{%s}", shared->objects[i].name);
        must(kept <= most * 5 / 4, "the record of %s has %lld entries of %lld requests at once",
             shared->objects[i].name, (long long)kept, (long long)most);
    }
}

static void falls_silent(struct shared *shared, struct machine *machine)
{
    machine->silent_ns = true_ns();
    memset(machine->waited_for, 0, sizeof machine->waited_for);
    for (unsigned i = 0; i < shared->call_count; i++) {
        struct call *call = &shared->calls[i];
        if (call->machine != machine->number)
            continue;
        machine->waited_for[call->object] |= call->state != IDLE;
        call->unsure |= call->state == HOLDING && shared->objects[call->object].kind != COUNTING;
    }
}

/* What a machine that was killed had, or may have been granted. */
static void leave_ghosts(struct shared *shared, struct machine *machine, int64_t lasts_ms)
{
    for (unsigned i = 0; i < shared->call_count; i++) {
        struct call *call = &shared->calls[i];
        struct object *object = &shared->objects[call->object];
        if (call->machine != machine->number)
            continue;
        int64_t until_ns = object->kind == COUNTING ? NEVER_NS : true_ns() + lasts_ms * NS_PER_MS;
        if (call->state == WAITING && object->kind == COUNTING)
            object->is_unjudged = true;
        else if (call->state != IDLE)
            add_ghost(object, call, until_ns);
        call->state = IDLE;
        call->unsure = false;
    }
}

/* Half of the time one of those who hold, or who wait. */
static struct machine *victim_of(struct luck *luck, struct shared *shared, enum state state)
{
    const struct call *call = &shared->calls[luck_below(luck, shared->call_count)];
    if (luck_onein(luck, 2))
        for (unsigned i = 0; i < shared->call_count && call->state != state; i++)
            call = &shared->calls[i];
    return &shared->machines[call->machine];
}

/* Does it wait, and hold nothing? */
static bool has_waiter(const struct shared *shared, unsigned number)
{
    bool waits = false;
    for (unsigned i = 0; i < shared->call_count; i++) {
        const struct call *call = &shared->calls[i];
        if (call->machine == number && call->state != IDLE && call->state != WAITING)
            return false;
        waits |= call->machine == number && call->state == WAITING;
    }
    return waits;
}

static void kill_one(struct luck *luck, struct shared *shared)
{
    struct machine *machine = shared->dies > 0 ? &shared->machines[shared->dies] : victim_of(luck, shared, HOLDING);
    if (machine->life != LIVE || machine->lives > 3 || !fault_happens("machine %u dies", machine->number))
        return;
    world_kill(machine->w, machine->pid);
    machine->life = DEAD;
    falls_silent(shared, machine);
    leave_ghosts(shared, machine, machine->lease_ms + PROMPT_MS);
}

static int64_t nap_time(struct luck *luck, const struct shared *shared)
{
    return shared->is_steady ? shared->nap_ms / 2 + (int64_t)luck_below(luck, (uint64_t)shared->nap_ms / 2)
                             : luck_about(luck, 50, shared->nap_ms);
}

static void freeze_one(struct luck *luck, struct shared *shared, struct machine *machine)
{
    if (machine->life != LIVE || !fault_happens("machine %u stands still", machine->number))
        return;
    world_stop(machine->pid);
    machine->life = FROZEN;
    machine->wakes_ns = shared->nap_ms == 0 ? NEVER_NS : true_ns() + nap_time(luck, shared) * NS_PER_MS;
    falls_silent(shared, machine);
}

static void wake_up(struct machine *machine)
{
    machine->life = LIVE;
    machine->resumed_ns = true_ns();
    world_cont(machine->pid);
}

/* Those who napped for long enough. */
static void wake_some(struct shared *shared)
{
    for (unsigned i = 0; i < shared->machine_count; i++)
        if (shared->machines[i].life == FROZEN && true_ns() >= shared->machines[i].wakes_ns)
            wake_up(&shared->machines[i]);
}

/* Its user loses all channels: it hears nothing from then on, and what it publishes is refused. */
static void begin_machine(struct world *w, struct machine *machine)
{
    if (machine->is_mute)
        world_redis(w, "ACL SETUSER mute on >secret ~* allchannels +@all");
    machine->life = LIVE;
    machine->lives++;
    machine->pid = world_fork(w, run_machine, machine);
    if (machine->is_mute)
        world_redis(w, "ACL SETUSER mute resetchannels");
}

static void bring_back(struct luck *luck, struct world *w, struct shared *shared, bool all)
{
    for (unsigned i = 0; i < shared->machine_count; i++) {
        struct machine *machine = &shared->machines[i];
        if (machine->life == LIVE || (!all && !luck_onein(luck, 3)))
            continue;
        if (machine->life == FROZEN) {
            if (all || machine->wakes_ns == NEVER_NS)
                wake_up(machine);
        } else if (!all) {
            begin_machine(w, machine);
        }
    }
}

static const char *const queues[] = { "mutex", "mutex", "writers", "sem", "permits" };

/* A message such as an attacker could have seen, or may make up: none of these grants anything. */
static void forge_one(struct luck *luck, struct world *w, struct shared *shared)
{
    const struct object *object = &shared->objects[luck_below(luck, shared->object_count)];
    const char *queue = object->kind == RWLOCK && luck_onein(luck, 2) ? "readers" : queues[object->kind];
    char id[160], channel[64], grant[300];
    int64_t now_us = world_int(w, "EVAL %s 0", "local t = redis.call('TIME') return t[1] * 1000000 + t[2]");
    int64_t queued = world_int(w, "ZCARD latchkey:queue:%s:{%s}", queue, object->name);
    if (queued <= 0 || !fault_happens("a message is forged"))
        return;
    char key[96];
    snprintf(key, sizeof key, "latchkey:queue:%s:{%s}", queue, object->name);
    snprintf(id, sizeof id, "%s",
             world_str(w, "EVAL %s 1 %s %lld", "return redis.call('ZRANGE', KEYS[1], ARGV[1], ARGV[1])[1] or ''", key,
                       (long long)luck_below(luck, (uint64_t)queued)));
    if (strlen(id) < 34)
        return;
    snprintf(channel, sizeof channel, "latchkey:client:%.32s", id);
    char *rest = strchr(id + 33, ':');
    if (rest == NULL)
        return;
    char *tail;
    long long acquisition = strtoll(rest + 1, &tail, 10);
    switch (luck_below(luck, 3)) {
    case 0: /* of an earlier wait of that thread */
        snprintf(grant, sizeof grant, "G %.*s:%lld%s %lld 20000 %lld 0", (int)(rest - id), id,
                 acquisition - 1 - (long long)luck_below(luck, 2), tail, (long long)now_us, (long long)now_us);
        break;
    case 1: /* one that is over */
        snprintf(grant, sizeof grant, "G %s %lld %lld %lld 0", id,
                 (long long)(now_us - 100000 - luck_about(luck, 1, 10000000)), (long long)luck_about(luck, 1, 100),
                 (long long)now_us);
        break;
    default:
        snprintf(grant, sizeof grant, "F %s", id);
    }
    shared->forged++;
    world_redis(w, "PUBLISH %s %s", channel, grant);
}

static void lose_connections(struct shared *shared, struct world *w, bool all)
{
    if (!fault_happens(all ? "connections are cut" : "subscriptions are cut"))
        return;
    shared->disturbed_ns = latest(shared->disturbed_ns, true_ns() + 60 * NS_PER_MS);
    if (all)
        world_killcommands(w);
    else
        world_killsubscriptions(w);
    shared->disturbed_ns = latest(shared->disturbed_ns, true_ns() + (all ? 500 : 60) * NS_PER_MS);
}

/* Those who left are in no queue. */
static void judge_left(struct world *w, const struct shared *shared)
{
    for (unsigned i = 0; i < shared->object_count; i++) {
        const struct object *object = &shared->objects[i];
        int64_t left = world_int(w, "ZCARD latchkey:queue:%s:{%s}", queues[object->kind], object->name);
        if (object->kind == RWLOCK)
            left += world_int(w, "ZCARD latchkey:queue:readers:{%s}", object->name);
        must(left == 0, "%lld wait for %s when all have left", (long long)left, object->name);
    }
}

static void make_fault(struct luck *luck, struct world *w, struct shared *shared, const struct plan *plan)
{
    enum fault kinds[FAULTS];
    unsigned count = 0;
    for (enum fault fault = 0; fault < FAULTS; fault++)
        if (plan->faults[fault])
            kinds[count++] = fault;
    bring_back(luck, w, shared, false);
    switch (count > 0 ? kinds[luck_below(luck, count)] : FAULTS) {
    case SUBSCRIPTIONS:
        lose_connections(shared, w, false);
        break;
    case CONNECTIONS:
        lose_connections(shared, w, true);
        break;
    case SCRIPTS:
        if (fault_happens("scripts are forgotten"))
            world_redis(w, "SCRIPT FLUSH");
        break;
    case FREEZES:
        freeze_one(luck, shared, victim_of(luck, shared, WAITING));
        for (unsigned i = 0; i < shared->machine_count && shared->nap_ms > 0; i++)
            if (luck_onein(luck, 4) && has_waiter(shared, i))
                freeze_one(luck, shared, &shared->machines[i]);
        break;
    case KILLS:
        kill_one(luck, shared);
        break;
    case FORGES:
        forge_one(luck, w, shared);
        break;
    case FAULTS:
        break;
    }
}

static void workload(struct world *w)
{
    struct shared *shared = world_shared(w, sizeof *shared);
    struct luck luck = luck_begin();
    struct plan plan = { 0 };
    draw_objects(&luck, shared);
    draw_machines(&luck, w, shared);
    draw_behavior(&luck, shared, &plan);
    draw_theme((struct luck){ ~luck.state }, shared, &plan); /* a stream of its own */
    clocks_are_wrong(luck_onein(&luck, 2) ? 0 : 2000);
    shared->is_calm = !plan.storms && !plan.faults[SUBSCRIPTIONS] && !plan.faults[CONNECTIONS] &&
                      !plan.faults[FREEZES] && !plan.faults[KILLS];
    shared->end_ms = true_ms() + plan.length_ms;
    for (unsigned i = 0; i < shared->machine_count; i++)
        begin_machine(w, &shared->machines[i]);
    if (plan.storms) {
        shared->is_stormy = true;
        storm_begin();
    }
    int64_t next_ms = true_ms() + (plan.first_ms > 0 ? plan.first_ms : luck_about(&luck, 10, plan.every_ms));
    struct quiet quiet = { 0 };
    while (!is_over(shared)) {
        rest_ms(shared->aims > 0 ? 5 : shared->hold_ms < 20000 ? 20 : 50);
        judge_all(shared);
        judge_asks(w, shared, &quiet);
        wake_some(shared);
        if (plan.storms && shared->is_stormy && true_ms() > shared->end_ms - plan.length_ms / 2) {
            storm_end();
            plan.storms = false;
            shared->disturbed_ns = true_ns() + (TROUBLE_MS + 2000) * NS_PER_MS;
        }
        if (!plan.storms && shared->is_stormy && true_ns() > shared->disturbed_ns)
            shared->is_stormy = false;
        if (true_ms() >= next_ms || shared->is_aimed) {
            shared->is_aimed = false;
            next_ms = true_ms() + luck_about(&luck, 10, plan.every_ms);
            make_fault(&luck, w, shared, &plan);
        }
    }
    storm_end();
    bring_back(&luck, w, shared, true);
    for (unsigned i = 0; i < shared->machine_count; i++)
        if (shared->machines[i].life == LIVE)
            assert_int_equal(0, world_wait(w, shared->machines[i].pid));
    if (shared->disturbed_ns == 0)
        judge_record(w, shared);
    if (shared->is_calm)
        judge_left(w, shared);
}

int main(void)
{
    return workload_run(NULL, workload);
}
