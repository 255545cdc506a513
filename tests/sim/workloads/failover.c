/* SPDX-License-Identifier: MIT */
/*
 * failover.c - a master, two replicas and three Sentinels, and machines that lock while one server takes another's
 * place; or three nodes of a cluster, whose slots move, and which are away for a while
 *
 * Judges compare in true time. A holder whose promise stands is alone, but for the documented time after a failover
 * that may lose what no replica had; with wait_replicas of both there is no such time. A hold goes on where the next
 * master has it. A grant that too few replicas acknowledged is no hold. A free mutex that somebody wants is granted soon
 * after the Sentinels' announcement. A cluster without failovers loses nothing: holders go on, and give back while a
 * slot moves; nobody is told of a death where slots move and nobody died.
 */
#include "workload.h"
#include "failover.h"
#include "cluster.h"
#include "certificates.h"

#include <latchkey/latchkey.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MACHINES = 4,
    THREADS = 3,
    NAMES = 3,
    SETTLES_MS = 120000,
    TOLD_MS = 2500,   /* after the announcement: a second to move, one to be told, and some more */
    SERVED_MS = 1500, /* likewise: a second, and some more */
    SYNC_MS = 1000,   /* what is older is at the replicas of a master that is well */
    PATIENT_LIMIT_MS = 60000,
    NOTES = 64
};

#define NS_PER_MS INT64_C(1000000)

enum doing { RESTS, ASKS, HOLDS, GIVES };

/* The calls of a thread. */
struct slot {
    enum doing doing;
    unsigned name;
    bool patient; /* it asks until it is served */
    bool fixed;
    bool kept;          /* each next master has it */
    int64_t wants_ns;   /* since when it asks */
    int64_t entered_ns; /* it was told that it holds */
    int64_t checked_ns; /* its hold had time left then */
    int64_t until_ns;   /* and was good until then at least */
    char holder[160];   /* as the server calls it; "": not asked for */
    int64_t served_ns;
};

struct name {
    int64_t idle_ns;    /* somebody had it then, or gave it back */
    int64_t waited_ns;  /* somebody ended a wait for it then */
    bool lost;          /* a lease of it ended */
    int64_t freed_ns;   /* the last one began to give it back, or learned of its loss */
    int64_t excused_ns; /* what nobody knows of may hold it until then */
    uint64_t token;     /* the largest that anybody was told */
    bool left;          /* somebody stopped waiting, or was served, and the next master may not know */
    bool died;          /* its holder was killed, and nobody was told */
};

/* What calls said last, for who reads why a seed failed. */
struct note {
    int64_t asked_ns, said_ns;
    const char *what;
    char name;
    unsigned machine;
    int code;
};

struct shared {
    struct gate over;
    int replicas; /* wait_replicas */
    bool is_cluster;
    bool is_moving;  /* a slot is, and nothing else is the matter */
    bool only_moves; /* nothing else will ever be */
    int64_t lease_ms, timeout_ms, poll_ms, skew_ms;
    int64_t apart_ms; /* clocks of servers are, at most */
    bool is_fair, is_robust, is_calm, is_lonely, tokens_rise;
    bool is_slow;       /* half of the uses are long */
    bool differ;        /* clocks of servers */
    int64_t longest_ms; /* of a use */
    int64_t pause_ms;   /* between two uses, at most */
    int64_t blow_ns;    /* the first fault since all was well; 0: all is well */
    int64_t excused_ns; /* nobody need be served before; INT64_MAX: who knows */
    int64_t lossy_ns;   /* two may hold until then */
    int64_t few_ns;     /* since then too few replicas answer; 0: enough do */
    int64_t failovers;
    int64_t slowest_ns; /* the longest time that something wanted was free */
    bool stopped[MACHINES];
    struct note notes[NOTES];
    unsigned note_count;
    struct name names[NAMES];
    struct slot slots[MACHINES][THREADS];
};

struct machine {
    const char *url, *const *name_of;
    struct shared *shared;
    unsigned number, threads, names;
    lk_mutex_t mutexes[NAMES];
    lk_client_t *client;
};

struct user {
    struct machine *machine;
    struct slot *slot;
    struct luck luck;
};

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* For who reads why a seed failed. */
static void print_slots(const struct shared *shared)
{
    static const char *const doing[] = { "rests", "asks", "holds", "gives" };
    for (unsigned i = 0; i < MACHINES; i++)
        for (unsigned thread = 0; thread < THREADS; thread++) {
            const struct slot *slot = &shared->slots[i][thread];
            print_message("%u.%u %s %c%s%s: wants %.3f, entered %.3f, checked %.3f, until %.3f\n", i, thread,
                          doing[slot->doing], 'a' + (int)slot->name, slot->patient ? ", patient" : "",
                          slot->fixed ? ", fixed" : "", (double)slot->wants_ns / 1e9, (double)slot->entered_ns / 1e9,
                          (double)slot->checked_ns / 1e9, (double)slot->until_ns / 1e9);
        }
    for (unsigned i = 0; i < NAMES; i++)
        print_message("%c: idle %.3f, freed %.3f, excused %.3f\n", 'a' + (int)i, (double)shared->names[i].idle_ns / 1e9,
                      (double)shared->names[i].freed_ns / 1e9, (double)shared->names[i].excused_ns / 1e9);
    for (unsigned i = shared->note_count > NOTES ? shared->note_count - NOTES : 0; i < shared->note_count; i++) {
        const struct note *note = &shared->notes[i % NOTES];
        print_message("%.6f to %.6f: machine %u, %s %c: %d\n", (double)note->asked_ns / 1e9,
                      (double)note->said_ns / 1e9, note->machine, note->what, note->name, note->code);
    }
    print_message("blow %.3f, excused %.3f, lossy %.3f, few %.3f, replicas %d, lease %lld ms, skew %lld ms\n",
                  (double)shared->blow_ns / 1e9, (double)shared->excused_ns / 1e9, (double)shared->lossy_ns / 1e9,
                  (double)shared->few_ns / 1e9, shared->replicas, (long long)shared->lease_ms,
                  (long long)shared->skew_ms);
}

/* A promise is kept, or all is printed that there is to say. */
#define keep(shared, promise, ...)                                                                                     \
    do {                                                                                                               \
        if (!(promise)) {                                                                                              \
            print_slots(shared);                                                                                       \
            broken(__VA_ARGS__);                                                                                       \
        }                                                                                                              \
    } while (0)

/* --- promises ----------------------------------------------------------------------------------------------------- */

static bool may_lose(const struct shared *shared, const struct slot *slot)
{
    return !slot->kept && shared->lossy_ns >= slot->entered_ns - SYNC_MS * NS_PER_MS;
}

/*
 * A hold that the next master has: it was at the replicas before the first blow, and its lease outlasts what went by
 * since.
 */
static bool goes_on(const struct shared *shared, const struct slot *slot, int64_t now_ns)
{
    int64_t outage_ms = (now_ns - shared->blow_ns) / NS_PER_MS;
    if (!shared->is_calm || shared->blow_ns == 0 || slot->entered_ns > shared->blow_ns - SYNC_MS * NS_PER_MS)
        return false;
    return slot->fixed || outage_ms + shared->skew_ms < shared->lease_ms * 6 / 10 - shared->timeout_ms;
}

/*
 * A server has a hold for longer than its holder trusts it: docs/configuration.md, clock_skew. At the next master, whose clock
 * may be behind, it ends as much later.
 */
static int64_t untrusted_ms(const struct shared *shared)
{
    return shared->lease_ms / 100 + 2 + shared->skew_ms + shared->apart_ms;
}

static void excuse(struct name *name, int64_t ms)
{
    name->excused_ns = later(name->excused_ns, true_ns() + ms * NS_PER_MS);
}

/* A hold is lost: its time is over, or else its promise stood. */
static void judge_loss(struct shared *shared, const struct slot *slot, int64_t now_ns)
{
    if (now_ns >= slot->until_ns) {
        excuse(&shared->names[slot->name], untrusted_ms(shared));
        return;
    }
    keep(shared, may_lose(shared, slot), "a hold was lost %lld ms before its time, and no server had lost anything",
         (long long)(slot->until_ns - now_ns) / NS_PER_MS);
    keep(shared, !goes_on(shared, slot, now_ns), "a hold was lost that the next master has");
}

static void judge_pair(const struct shared *shared, const struct slot *mine, const struct slot *other)
{
    if (other == mine || other->doing != HOLDS || other->name != mine->name)
        return;
    keep(shared, other->checked_ns < mine->entered_ns || other->checked_ns <= shared->lossy_ns,
         "two hold at once, %lld ms after all should have been told",
         (long long)((other->checked_ns - shared->lossy_ns) / NS_PER_MS));
    keep(shared, other->until_ns <= mine->entered_ns || may_lose(shared, other),
         "granted while a promise stands for %lld ms more",
         (long long)((other->until_ns - mine->entered_ns) / NS_PER_MS));
}

static void judge_replicas(const struct shared *shared, const struct slot *slot)
{
    int64_t few_ns = shared->few_ns;
    if (few_ns == 0)
        return;
    int64_t good_ms = (slot->until_ns - few_ns) / NS_PER_MS;
    keep(shared, slot->until_ns <= few_ns + shared->lease_ms * NS_PER_MS,
         "a hold is good for %lld ms after the last replica answered, with a lease of %lld ms", (long long)good_ms,
         (long long)shared->lease_ms);
}

static void note(struct user *user, const char *what, int64_t asked_ns, int code)
{
    struct shared *shared = user->machine->shared;
    shared->notes[shared->note_count++ % NOTES] =
        (struct note){ asked_ns, true_ns(), what, (char)('a' + user->slot->name), user->machine->number, code };
}

/* docs/keys.md has it. */
static int64_t claim_ms(const struct shared *shared)
{
    int64_t ms = later(later(3000, 2 * shared->timeout_ms), 4 * shared->skew_ms);
    return ms < shared->lease_ms ? ms : shared->lease_ms;
}

/* A node was away before what had been handed over was renewed: until then it is as long as a claim. */
static bool was_claimed(const struct shared *shared, const struct slot *slot)
{
    return slot->until_ns <= slot->entered_ns + claim_ms(shared) * NS_PER_MS && shared->excused_ns >= slot->entered_ns;
}

/* Has it time left? What it says is a promise. */
static bool look(struct user *user)
{
    struct shared *shared = user->machine->shared;
    struct slot *slot = user->slot;
    int64_t asked_ns = true_ns(), left_ms = 0;
    int code = lk_mutex_remaining(&user->machine->mutexes[slot->name], &left_ms);
    must(code == 0 || code == ESTALE, "lk_mutex_remaining() returned %d", code);
    if (code != 0) {
        note(user, "look", asked_ns, code);
        keep(shared, !shared->is_cluster || slot->fixed || was_claimed(shared, slot), "a hold was not renewed");
        judge_loss(shared, slot, asked_ns);
        shared->names[slot->name].lost = true;
        shared->names[slot->name].freed_ns = true_ns();
        return false;
    }
    slot->checked_ns = asked_ns;
    slot->until_ns = asked_ns + left_ms * NS_PER_MS * 99 / 100;
    for (unsigned i = 0; i < MACHINES; i++)
        for (unsigned thread = 0; thread < THREADS; thread++)
            judge_pair(shared, slot, &shared->slots[i][thread]);
    judge_replicas(shared, slot);
    return true;
}

/* --- a use -------------------------------------------------------------------------------------------------------- */

static void judge_token(struct user *user, uint64_t before)
{
    uint64_t token = 0;
    struct name *name = &user->machine->shared->names[user->slot->name];
    if (lk_mutex_token(&user->machine->mutexes[user->slot->name], &token) != 0)
        return;
    keep(user->machine->shared, token > before || !user->machine->shared->tokens_rise, "token %llu follows %llu",
         (unsigned long long)token, (unsigned long long)before);
    name->token = token > name->token ? token : name->token;
}

/* Did nobody wait when it was given back? A turn that a waiter let pass counts as a death, too. */
static bool is_first(const struct shared *shared, const struct slot *mine, int64_t asked_ns)
{
    const struct name *name = &shared->names[mine->name];
    for (unsigned i = 0; i < MACHINES; i++)
        for (unsigned thread = 0; thread < THREADS; thread++) {
            const struct slot *slot = &shared->slots[i][thread];
            if (slot != mine && slot->doing == ASKS && slot->name == mine->name)
                return false;
        }
    return name->waited_ns < name->freed_ns && asked_ns > name->idle_ns;
}

/* Granted just now, to who asked at `asked_ns`. */
static void judge_grant(struct user *user, int64_t asked_ns, int code)
{
    struct shared *shared = user->machine->shared;
    struct name *name = &shared->names[user->slot->name];
    keep(shared, shared->few_ns == 0 || asked_ns < shared->few_ns, "granted without the replicas");
    keep(shared, shared->few_ns == 0 || name->freed_ns < shared->few_ns, "handed over without the replicas");
    keep(shared, !name->died || code == EOWNERDEAD, "who follows a dead holder was not told");
    keep(shared,
         code != EOWNERDEAD || !shared->is_cluster || name->lost ||
             !(shared->only_moves || is_first(shared, user->slot, asked_ns)),
         "told of a dead holder, and nobody died");
    name->died = name->lost = false;
}

/* Of a fixed lease that ran out, which nobody may have noticed until the unlock. */
static bool ran_out(const struct slot *slot, int64_t now_ns)
{
    return slot->fixed && now_ns >= slot->until_ns;
}

/*
 * While a slot moves, the mark of a robust mutex is another step than its release, and is sent only while both take effect
 * before the lease ends: see docs/faults.md.
 */
static bool ends_with_its_lease(const struct shared *shared, const struct slot *slot, int64_t now_ns)
{
    return shared->is_robust && slot->fixed && now_ns >= slot->until_ns - shared->timeout_ms * NS_PER_MS;
}

static void give_back(struct user *user)
{
    struct shared *shared = user->machine->shared;
    struct slot *slot = user->slot;
    struct name *name = &shared->names[slot->name];
    slot->doing = GIVES;
    name->freed_ns = name->idle_ns = true_ns();
    int64_t asked_ns = true_ns();
    bool was_moving = shared->is_moving;
    int code = lk_mutex_unlock(&user->machine->mutexes[slot->name]);
    must(code == 0 || code == ESTALE || code == EIO || code == ENOTCONN, "an unlock returned %d", code);
    note(user, "unlock", asked_ns, code);
    keep(shared,
         code == 0 || !was_moving || !shared->is_moving ||
             (code == ESTALE ? ran_out(slot, true_ns()) : ends_with_its_lease(shared, slot, true_ns())),
         "while a slot moves an unlock returned %d", code);
    if (code == ESTALE)
        judge_loss(shared, slot, asked_ns);
    name->lost |= code != 0;
    if (code == EIO || code == ENOTCONN)
        excuse(name, later(lk_errorsettles(), code == ENOTCONN ? shared->lease_ms : 0));
    name->idle_ns = true_ns();
    slot->doing = RESTS;
}

static void use_it(struct user *user, int code)
{
    struct shared *shared = user->machine->shared;
    struct slot *slot = user->slot;
    lk_mutex_t *mutex = &user->machine->mutexes[slot->name];
    int64_t length_ms = shared->is_slow && (slot->fixed || luck_onein(&user->luck, 2))
                            ? (int64_t)luck_below(&user->luck, (uint64_t)shared->longest_ms)
                            : luck_about(&user->luck, 1, shared->longest_ms);
    int64_t end_ns = true_ns() + length_ms * NS_PER_MS;
    if (code == EOWNERDEAD)
        (void)lk_mutex_consistent(mutex);
    while (true_ns() < end_ns && !gate_is_open(&shared->over) && look(user))
        rest_ms(luck_about(&user->luck, 1, 40));
    give_back(user);
}

static void ask(struct user *user)
{
    struct shared *shared = user->machine->shared;
    struct slot *slot = user->slot;
    struct name *name = &shared->names[slot->name];
    uint64_t before = name->token;
    int64_t asked_ns = true_ns();
    lk_how_t how = LK_HOW_INIT;
    how.timeout_ms = slot->patient ? PATIENT_LIMIT_MS : luck_about(&user->luck, 1, 3000);
    how.fixed = slot->fixed;
    slot->doing = ASKS;
    int code = lk_mutex_lockwith(&user->machine->mutexes[slot->name], &how);
    note(user, "lock", asked_ns, code);
    must(code == 0 || code == EOWNERDEAD || code == ETIMEDOUT || code == ENOTCONN || code == EIO, "a lock returned %d",
         code);
    bool is_held = code == 0 || code == EOWNERDEAD;
    if (is_held)
        judge_grant(user, asked_ns, code);
    name->waited_ns = true_ns();
    if (is_held) {
        slot->served_ns = slot->entered_ns = true_ns();
        slot->checked_ns = slot->until_ns = 0;
        slot->kept = false;
        slot->doing = HOLDS;
        judge_token(user, before);
        use_it(user, code);
        slot->patient = false;
    } else if (code == EIO) {
        excuse(name, lk_errorsettles());
    }
    name->lost |= code == EIO;
    name->left |= shared->excused_ns == INT64_MAX;
    slot->doing = RESTS;
}

static int use(void *arg)
{
    struct user *user = arg;
    struct slot *slot = user->slot;
    struct shared *shared = user->machine->shared;
    while (!gate_is_open(&shared->over)) {
        if (!slot->patient) {
            slot->name = (unsigned)luck_below(&user->luck, user->machine->names);
            slot->patient = luck_below(&user->luck, 4) != 0 || shared->only_moves;
            slot->fixed = luck_onein(&user->luck, shared->is_slow ? 2 : 4);
            slot->wants_ns = true_ns();
        }
        ask(user);
        rest_ms(shared->only_moves ? (int64_t)luck_below(&user->luck, (uint64_t)shared->pause_ms)
                                   : luck_about(&user->luck, 1, slot->patient ? 20 : shared->pause_ms));
    }
    return 0;
}

/* One that begins while there is no master tries again. */
static void open_machine(struct machine *machine)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    attr.fair = machine->shared->is_fair;
    attr.robust = machine->shared->is_robust;
    int64_t until_ms = true_ms() + SETTLES_MS;
    int code;
    while ((code = lk_client_open(&machine->client, machine->url)) != 0) {
        must(code == ENOTCONN && true_ms() < until_ms, "lk_client_open() returned %d: %s", code, lk_errortext());
        rest_ms(20);
    }
    for (unsigned i = 0; i < machine->names; i++)
        assert_lk(0, lk_mutex_init(&machine->mutexes[i], machine->client, machine->name_of[i], &attr));
}

static int run_machine(struct world *w, void *arg)
{
    struct machine *machine = arg;
    struct user users[THREADS];
    struct worker workers[THREADS];
    machine_begins(machine->number);
    world_ready(w);
    open_machine(machine);
    for (unsigned i = 0; i < machine->threads; i++) {
        users[i] = (struct user){ machine, &machine->shared->slots[machine->number][i], luck_begin() };
        worker_start(&workers[i], use, &users[i]);
    }
    for (unsigned i = 0; i < machine->threads; i++)
        assert_that(worker_join(&workers[i]) == 0);
    for (unsigned i = 0; i < machine->names; i++)
        assert_lk(0, lk_mutex_destroy(&machine->mutexes[i]));
    lk_client_close(machine->client);
    return 0;
}

/* --- who watches -------------------------------------------------------------------------------------------------- */

/* Since when somebody wants it, who is not stopped; 0: nobody. */
static int64_t wanted_since(const struct shared *shared, unsigned name)
{
    int64_t since_ns = 0;
    for (unsigned i = 0; i < MACHINES; i++)
        for (unsigned thread = 0; thread < THREADS && !shared->stopped[i]; thread++) {
            const struct slot *slot = &shared->slots[i][thread];
            if (slot->patient && slot->doing != HOLDS && slot->doing != GIVES && slot->name == name)
                since_ns = since_ns == 0 || slot->wants_ns < since_ns ? slot->wants_ns : since_ns;
        }
    return since_ns;
}

static bool is_had(const struct shared *shared, unsigned name)
{
    for (unsigned i = 0; i < MACHINES; i++)
        for (unsigned thread = 0; thread < THREADS; thread++) {
            const struct slot *slot = &shared->slots[i][thread];
            if (slot->name == name && (slot->doing == HOLDS || slot->doing == GIVES))
                return true;
        }
    return false;
}

static struct failover *the_servers; /* of the first process; NULL: it has a cluster */

/* What the master says of it, which only its clients should know: for who reads why a seed failed. */
static void print_master(unsigned number)
{
    const char name[] = { 'm', (char)('a' + number), 0 };
    int master = failover_master(the_servers);
    if (master >= 0)
        print_message(
            "at node %d: %s\n", master,
            failover_str(the_servers, master, "EVAL %s 1 %s",
                         "return (redis.call('HKEYS', KEYS[1])[1] or 'free') .. ', ' .. redis.call('PTTL', KEYS[1])",
                         name));
}

/*
 * A waiter that stands still keeps what it was handed for as long as a claim. Then another waiter has to ask.
 */
static int64_t claims_ms(const struct shared *shared, unsigned number)
{
    int64_t ms = 0;
    for (unsigned i = 0; i < MACHINES; i++) {
        bool waits = false;
        for (unsigned thread = 0; thread < THREADS; thread++)
            waits |= shared->slots[i][thread].doing == ASKS && shared->slots[i][thread].name == number;
        ms += shared->stopped[i] && waits ? claim_ms(shared) : 0;
    }
    return ms > 0 ? ms + shared->poll_ms * 12 / 10 : 0;
}

static void judge_service(struct shared *shared, unsigned number)
{
    struct name *name = &shared->names[number];
    int64_t now_ns = true_ns(), since_ns = wanted_since(shared, number),
            most_ms = SERVED_MS + claims_ms(shared, number);
    if (is_had(shared, number))
        name->idle_ns = now_ns;
    if (since_ns == 0 || !shared->is_calm)
        return;
    since_ns = later(later(since_ns, name->idle_ns), later(shared->excused_ns, name->excused_ns));
    shared->slowest_ns = later(shared->slowest_ns, now_ns - since_ns);
    if (now_ns - since_ns > most_ms * NS_PER_MS && the_servers != NULL)
        print_master(number);
    keep(shared, now_ns - since_ns <= most_ms * NS_PER_MS, "%c is free and wanted, and nobody has had it for %lld ms",
         'a' + (int)number, (long long)most_ms);
}

static int watch(void *arg)
{
    struct shared *shared = arg;
    while (!gate_is_open(&shared->over)) {
        for (unsigned i = 0; i < NAMES; i++)
            judge_service(shared, i);
        rest_ms(20);
    }
    return 0;
}

/* --- faults ------------------------------------------------------------------------------------------------------- */

enum kind {
    KILL,
    CUT_AND_KILL,
    STOP,
    CUT_OFF,
    DEMAND,
    LOSE_REPLICAS,
    STOP_MACHINE,
    KILL_MACHINE,
    KILL_SENTINEL,
    KINDS
};

struct driver {
    struct world *w;
    struct failover *failover;
    struct cluster *cluster;
    struct shared *shared;
    const char *url;
    const char *names[NAMES];
    unsigned name_count;
    struct luck luck;
    bool kinds[KINDS];
    bool has_few;  /* other kinds are rare */
    bool replaced; /* since all was well another server may have become the master */
    unsigned machine_count;
    struct machine machines[MACHINES];
    pid_t pids[MACHINES];
};

static int64_t silent_ms(const struct shared *shared)
{
    return shared->lease_ms + shared->skew_ms + 10000 + 4 * shared->poll_ms;
}

/* The next master may still hand something to who is not there any more. */
static void excuse_the_dead(struct shared *shared, bool replaced)
{
    for (unsigned i = 0; i < NAMES; i++) {
        if (shared->names[i].left && replaced)
            excuse(&shared->names[i], 10000 + 4 * shared->poll_ms);
        shared->names[i].left = false;
    }
}

/* Fixed leases that the replicas have at a first blow. A second blow may come before the next master has replicas. */
static void keep_fixed(struct shared *shared)
{
    for (unsigned i = 0; i < MACHINES; i++)
        for (unsigned thread = 0; thread < THREADS; thread++) {
            struct slot *slot = &shared->slots[i][thread];
            slot->kept = shared->is_calm && shared->blow_ns == 0 && slot->doing == HOLDS && slot->fixed &&
                         slot->entered_ns < true_ns() - SYNC_MS * NS_PER_MS;
        }
}

static void blow(struct driver *driver)
{
    struct shared *shared = driver->shared;
    keep_fixed(shared);
    shared->blow_ns = shared->blow_ns != 0 ? shared->blow_ns : true_ns();
    shared->excused_ns = INT64_MAX;
}

static void may_be_lost(struct driver *driver)
{
    driver->replaced = true;
    if (driver->shared->replicas < FAILOVER_NODES - 1)
        driver->shared->lossy_ns = INT64_MAX;
}

static void announced(struct driver *driver, int64_t at_ms)
{
    struct shared *shared = driver->shared;
    if (shared->lossy_ns == INT64_MAX && shared->is_calm)
        shared->lossy_ns = (at_ms + TOLD_MS) * NS_PER_MS;
    if (shared->replicas == 0) {
        shared->excused_ns = at_ms * NS_PER_MS;
        excuse_the_dead(shared, true);
    }
    shared->failovers++;
}

/* In a storm the Sentinels have faults, too, and need not agree. */
static void await_next(struct driver *driver, int old)
{
    int64_t at_ms, until_ms = true_ms() + FAILOVER_WITHIN_MS;
    int master = old;
    while (!driver->shared->is_calm && (master == old || master < 0) && true_ms() < until_ms) {
        rest_ms(20);
        master = failover_master(driver->failover);
    }
    if (!driver->shared->is_calm)
        return;
    failover_await(driver->failover, old, &at_ms);
    announced(driver, at_ms);
}

static void kill_master(struct driver *driver, int master, bool cut)
{
    int64_t cut_ms = luck_about(&driver->luck, 10, 3000);
    if (!fault_happens("the master is %s", cut ? "cut off and killed" : "killed"))
        return;
    blow(driver);
    may_be_lost(driver);
    if (cut) {
        failover_cutoff(driver->failover, master);
        rest_ms(cut_ms);
    }
    failover_kill(driver->failover, master);
    await_next(driver, master);
    rest_ms(luck_about(&driver->luck, 10, 3000));
    failover_start(driver->failover, master);
}

static void stop_master(struct driver *driver, int master)
{
    int64_t more_ms = luck_about(&driver->luck, 10, 5000);
    if (!fault_happens("the master stands still"))
        return;
    blow(driver);
    may_be_lost(driver);
    failover_stop(driver->failover, master);
    await_next(driver, master);
    rest_ms(more_ms);
    failover_cont(driver->failover, master);
}

static void cut_master_off(struct driver *driver, int master)
{
    int64_t more_ms = luck_about(&driver->luck, 10, 20000);
    if (!fault_happens("the master is cut off"))
        return;
    blow(driver);
    may_be_lost(driver);
    failover_cutoff(driver->failover, master);
    await_next(driver, master);
    rest_ms(more_ms);
    failover_heal(driver->failover, master);
}

static void demand(struct driver *driver, int master)
{
    if (!driver->shared->is_calm || !fault_happens("a failover is demanded"))
        return;
    blow(driver);
    may_be_lost(driver);
    failover_demand(driver->failover);
    await_next(driver, master);
}

/* One replica or both stand still. */
static void lose_replicas(struct driver *driver, int master)
{
    struct shared *shared = driver->shared;
    int64_t longest_ms = shared->lease_ms * 3 / 2, length_ms = luck_about(&driver->luck, 1000, longest_ms);
    if (driver->has_few)
        length_ms = longest_ms / 2 + (int64_t)luck_below(&driver->luck, (uint64_t)longest_ms / 2);
    bool both = luck_onein(&driver->luck, 2);
    int first = (master + 1) % FAILOVER_NODES, second = (master + 2) % FAILOVER_NODES;
    if (!fault_happens("%s", both ? "the replicas stand still" : "a replica stands still"))
        return;
    blow(driver);
    failover_stop(driver->failover, first);
    if (both)
        failover_stop(driver->failover, second);
    if (shared->replicas > (both ? 0 : 1))
        shared->few_ns = true_ns();
    rest_ms(length_ms);
    shared->few_ns = 0;
    failover_cont(driver->failover, first);
    if (both)
        failover_cont(driver->failover, second);
}

/* One that holds something whose lease ends, if clocks differ: it sets no lease anew at a master whose clock is ahead. */
static unsigned draw_machine(struct driver *driver)
{
    unsigned first = (unsigned)luck_below(&driver->luck, driver->machine_count);
    for (unsigned i = 0; i < driver->machine_count && driver->shared->differ; i++)
        for (unsigned thread = 0; thread < THREADS; thread++) {
            unsigned number = (first + i) % driver->machine_count;
            const struct slot *slot = &driver->shared->slots[number][thread];
            if (slot->doing == HOLDS && slot->fixed)
                return number;
        }
    return first;
}

static void stop_machine(struct driver *driver, void (*again)(struct driver *driver))
{
    struct shared *shared = driver->shared;
    unsigned number = draw_machine(driver);
    int64_t length_ms = luck_about(&driver->luck, 100, 2 * shared->lease_ms);
    if (!fault_happens("machine %u stands still", number))
        return;
    shared->stopped[number] = true;
    world_stop(driver->pids[number]);
    if (shared->differ || luck_onein(&driver->luck, 2))
        again(driver);
    rest_ms(length_ms);
    if (shared->lossy_ns != 0 && shared->replicas < FAILOVER_NODES - 1)
        shared->lossy_ns = later(shared->lossy_ns, true_ns() + TOLD_MS * NS_PER_MS);
    world_cont(driver->pids[number]);
    shared->stopped[number] = false;
    for (unsigned i = 0; i < NAMES; i++)
        excuse(&shared->names[i], silent_ms(shared));
}

/* The holds of a machine at the moment when it was killed. */
static void bury(struct driver *driver, unsigned number)
{
    struct shared *shared = driver->shared;
    for (unsigned thread = 0; thread < THREADS; thread++) {
        struct slot *slot = &shared->slots[number][thread];
        if (slot->doing == HOLDS && slot->until_ns > true_ns() && shared->is_robust &&
            shared->replicas == FAILOVER_NODES - 1 && shared->is_calm)
            shared->names[slot->name].died = true;
        memset(slot, 0, sizeof *slot);
    }
    for (unsigned i = 0; i < NAMES; i++)
        excuse(&shared->names[i], silent_ms(shared));
}

static void kill_machine(struct driver *driver)
{
    unsigned number = (unsigned)luck_below(&driver->luck, driver->machine_count);
    int64_t length_ms = luck_about(&driver->luck, 10, 3000);
    if (!fault_happens("machine %u is killed", number))
        return;
    driver->shared->stopped[number] = true;
    world_stop(driver->pids[number]);
    bury(driver, number);
    world_kill(driver->w, driver->pids[number]);
    rest_ms(length_ms);
    driver->shared->stopped[number] = false;
    driver->pids[number] = world_fork(driver->w, run_machine, &driver->machines[number]);
}

static void kill_sentinel(struct driver *driver)
{
    int number = (int)luck_below(&driver->luck, FAILOVER_SENTINELS);
    int64_t length_ms = luck_about(&driver->luck, 10, 3000);
    if (!fault_happens("Sentinel %d is killed", number))
        return;
    failover_killsentinel(driver->failover, number);
    rest_ms(length_ms);
    failover_startsentinel(driver->failover, number);
}

/* One of the kinds below `limit` that this seed has; `limit`: it has none. */
static unsigned draw_kind(struct driver *driver, unsigned limit)
{
    unsigned kinds[KINDS], count = 0;
    for (unsigned kind = 0; kind < limit; kind++)
        if (driver->kinds[kind])
            kinds[count++] = kind;
    return count > 0 ? kinds[luck_below(&driver->luck, count)] : limit;
}

static void strike_master(struct driver *driver, unsigned kind)
{
    static void (*const blows[])(struct driver * driver, int master) = {
        [STOP] = stop_master, [CUT_OFF] = cut_master_off, [DEMAND] = demand, [LOSE_REPLICAS] = lose_replicas
    };
    int master = failover_master(driver->failover);
    if (master < 0)
        return;
    if (kind == KILL || kind == CUT_AND_KILL)
        kill_master(driver, master, kind == CUT_AND_KILL);
    else
        blows[kind](driver, master);
}

static void strike_servers(struct driver *driver)
{
    unsigned kind = draw_kind(driver, LOSE_REPLICAS + 1);
    if (kind <= LOSE_REPLICAS)
        strike_master(driver, kind);
}

static void strike(struct driver *driver)
{
    unsigned kind = draw_kind(driver, KINDS);
    if (kind <= LOSE_REPLICAS)
        strike_master(driver, kind);
    else if (kind == STOP_MACHINE)
        stop_machine(driver, strike_servers);
    else if (kind == KILL_MACHINE)
        kill_machine(driver);
    else if (kind == KILL_SENTINEL)
        kill_sentinel(driver);
}

/* All is well again: nothing is lost any more, and everybody is served. */
static void settle(struct driver *driver)
{
    struct shared *shared = driver->shared;
    eventually(failover_settled(driver->failover), SETTLES_MS);
    if (shared->excused_ns == INT64_MAX)
        shared->excused_ns = true_ns();
    excuse_the_dead(shared, driver->replaced);
    driver->replaced = false;
    if (shared->lossy_ns == INT64_MAX)
        shared->lossy_ns = true_ns() + TOLD_MS * NS_PER_MS;
    rest_ms(SYNC_MS);
    shared->blow_ns = 0;
}

/* --- a cluster ---------------------------------------------------------------------------------------------------- */

static bool has_some(struct driver *driver, int slot, int node)
{
    return cluster_int(driver->cluster, node, "CLUSTER COUNTKEYSINSLOT %d", slot) > 0;
}

/* The move is given up as soon as nothing is at the other node any more. Those who wait learn of that from nobody. */
static bool give_up_move(struct driver *driver, int slot, int from, int to)
{
    for (int64_t until_ms = true_ms() + (int64_t)luck_below(&driver->luck, 5000); has_some(driver, slot, to);) {
        if (true_ms() >= until_ms)
            return false;
        rest_ms(50);
    }
    cluster_str(driver->cluster, to, "CLUSTER SETSLOT %d STABLE", slot);
    assert_that(!has_some(driver, slot, to));
    cluster_str(driver->cluster, from, "CLUSTER SETSLOT %d STABLE", slot);
    driver->shared->is_moving = false;
    driver->shared->excused_ns = true_ns();
    return true;
}

/* Part of its keys go first: the hold, or those of who waits. */
static void move_slot(struct driver *driver)
{
    struct cluster *c = driver->cluster;
    const char *name = driver->names[luck_below(&driver->luck, driver->name_count)];
    int slot = cluster_slot(c, name), from = cluster_master(c, name),
        to = (from + 1 + (int)luck_below(&driver->luck, 2)) % 3;
    char key[96];
    int64_t before_ms = luck_about(&driver->luck, 10, 3000), after_ms = luck_about(&driver->luck, 10, 10000);
    bool gives_up = driver->shared->only_moves && luck_below(&driver->luck, 4) != 0;
    unsigned first = gives_up ? 0 : (unsigned)luck_below(&driver->luck, 4);
    if (from < 0 || !fault_happens("the slot of %s goes from %d to %d", name, from, to))
        return;
    blow(driver);
    driver->shared->is_moving = true;
    cluster_beginmove(c, slot, from, to);
    rest_ms(before_ms);
    snprintf(key, sizeof key, "latchkey:%s:mutex:{%s}", first == 1 ? "queue" : first == 2 ? "robust" : "token", name);
    if (first != 3)
        cluster_movekey(c, first == 0 ? name : key, from, to);
    if (gives_up && give_up_move(driver, slot, from, to))
        return;
    rest_ms(after_ms);
    while (cluster_movekeys(c, slot, from, to) > 0)
        continue;
    cluster_endmove(c, slot, from, to);
    driver->shared->is_moving = false;
    driver->shared->excused_ns = true_ns();
    eventually(cluster_master(c, name) == to, CLUSTER_WITHIN_MS);
}

/* How long a node may be away, and all that was held is renewed in time. */
static int64_t unnoticed_ms(const struct shared *shared)
{
    return shared->lease_ms * 6 / 10 - shared->skew_ms - 3 * shared->timeout_ms - 1500;
}

static void refuse_clients(struct driver *driver)
{
    struct shared *shared = driver->shared;
    int node = (int)luck_below(&driver->luck, CLUSTER_MASTERS);
    int64_t most_ms = later(unnoticed_ms(shared), 100), length_ms = luck_about(&driver->luck, 50, most_ms);
    if (shared->is_lonely && luck_onein(&driver->luck, 2))
        length_ms = most_ms;
    if (unnoticed_ms(shared) < 100 || !fault_happens("node %d takes no connections", node))
        return;
    blow(driver);
    cluster_str(driver->cluster, node, "CONFIG SET maxclients 1");
    cluster_str(driver->cluster, node, "CLIENT KILL TYPE pubsub");
    cluster_str(driver->cluster, node, "CLIENT KILL TYPE normal SKIPME yes");
    rest_ms(length_ms);
    cluster_str(driver->cluster, node, "CONFIG SET maxclients 1000");
    shared->excused_ns = true_ns() + shared->poll_ms * 12 / 10 * NS_PER_MS;
    rest_ms(shared->lease_ms / 3 + shared->timeout_ms); /* whoever was away is renewed before it is away again */
}

static void stop_node(struct driver *driver)
{
    struct shared *shared = driver->shared;
    int node = (int)luck_below(&driver->luck, CLUSTER_MASTERS);
    int64_t length_ms = luck_about(&driver->luck, 50, later(unnoticed_ms(shared), 100));
    if (unnoticed_ms(shared) < 100 || !fault_happens("node %d stands still", node))
        return;
    blow(driver);
    cluster_stop(driver->cluster, node);
    rest_ms(length_ms);
    cluster_cont(driver->cluster, node);
    shared->excused_ns = true_ns() + shared->poll_ms * 12 / 10 * NS_PER_MS;
    rest_ms(shared->lease_ms / 3 + shared->timeout_ms);
}

static void cut_connections(struct driver *driver)
{
    if (!fault_happens("all connections are cut"))
        return;
    blow(driver);
    cluster_order(driver->cluster, "CLIENT KILL TYPE pubsub");
    cluster_order(driver->cluster, "CLIENT KILL TYPE normal SKIPME yes");
    driver->shared->excused_ns = true_ns();
}

static void strike_cluster(struct driver *driver)
{
    static void (*const blows[])(struct driver * driver) = { move_slot, move_slot, refuse_clients, stop_node,
                                                             cut_connections };
    const unsigned count = sizeof blows / sizeof *blows;
    unsigned kind = draw_kind(driver, count);
    if (kind < count)
        blows[kind](driver);
}

/* --- a run -------------------------------------------------------------------------------------------------------- */

/* Slots move, and all else is well: holds are long and the others wait, or people are few and seldom there. */
static void draw_moves(struct shared *shared, struct luck *luck, struct driver *driver)
{
    bool is_busy = !luck_onein(luck, 3);
    shared->only_moves = shared->is_lonely = shared->is_slow = true;
    shared->is_robust = !is_busy || luck_onein(luck, 2);
    shared->lease_ms = 20000 + (int64_t)luck_below(luck, 40000);
    shared->poll_ms = luck_about(luck, 1000, 5000);
    shared->skew_ms = luck_about(luck, 200, 4000);
    shared->longest_ms = is_busy ? 20000 : 4000;
    shared->pause_ms = 10000;
    driver->kinds[0] = driver->kinds[1] = true;
}

/* In half of these seeds threads are few and hold for long, so that only renewals find a node again that was away. */
static void draw_cluster(struct shared *shared, struct luck *luck, struct driver *driver)
{
    shared->is_cluster = shared->is_calm = true;
    shared->replicas = 0;
    shared->is_robust = luck_onein(luck, 2);
    shared->is_lonely = luck_onein(luck, 2);
    if (luck_onein(luck, 3))
        draw_moves(shared, luck, driver);
    if (!shared->is_lonely || shared->only_moves)
        return;
    shared->longest_ms = luck_onein(luck, 2) ? 20000 : 2 * shared->lease_ms;
    driver->has_few = true;
    driver->kinds[luck_onein(luck, 2) ? 2 : 0] = true; /* a node takes no connections, or a slot moves */
}

/*
 * A hold lasts for some renewals or until its lease ends, and one kind of fault meets it: replicas are away, masters
 * grant while they are cut off, or a clock is ahead of that of the last master.
 */
static void draw_long_uses(struct shared *shared, struct luck *luck, struct driver *driver)
{
    driver->has_few = shared->is_slow = shared->is_calm = true;
    shared->longest_ms = 2 * shared->lease_ms;
    if (shared->replicas > 0)
        driver->kinds[LOSE_REPLICAS] = true;
    else
        driver->kinds[luck_onein(luck, 3) ? CUT_OFF : DEMAND] = true;
    shared->differ = driver->kinds[STOP_MACHINE] = driver->kinds[DEMAND];
}

static void draw_settings(struct shared *shared, struct luck *luck, struct driver *driver)
{
    static const int replicas[] = { 0, 0, 0, 0, 2, 2, 2, 1 };
    shared->replicas = replicas[luck_below(luck, 8)];
    shared->lease_ms = luck_about(luck, 4000, 60000);
    shared->timeout_ms = luck_about(luck, 300, 800);
    shared->poll_ms = luck_about(luck, 500, shared->lease_ms < 5000 ? shared->lease_ms : 5000);
    shared->skew_ms = luck_about(luck, 200, shared->lease_ms / 4);
    shared->longest_ms = luck_about(luck, 50, 2 * shared->lease_ms);
    shared->pause_ms = 500;
    shared->is_slow = luck_onein(luck, 3);
    shared->is_fair = luck_onein(luck, 2);
    shared->is_robust = luck_onein(luck, 3);
    shared->is_calm = luck_below(luck, 4) != 0;
    if (driver->w->tls_port != 0 || luck_onein(luck, 3))
        draw_cluster(shared, luck, driver);
    else if (luck_below(luck, 4) < (shared->replicas > 0 ? 3 : 2))
        draw_long_uses(shared, luck, driver);
    for (enum kind kind = 0; kind < KINDS && !shared->only_moves; kind++)
        driver->kinds[kind] |= luck_onein(luck, driver->has_few ? 8 : 2);
}

/* Clocks of servers differ by less than clock_skew, drift of a minute or two included. */
static void draw_clocks(struct driver *driver, struct luck *luck)
{
    struct shared *shared = driver->shared;
    shared->tokens_rise = true;
    if (driver->failover == NULL)
        return;
    bool differ = shared->differ || luck_onein(luck, 2);
    int64_t most_ms = shared->skew_ms - 60;
    shared->apart_ms = differ ? most_ms : 0;
    for (int node = 0; node < FAILOVER_NODES && differ; node++)
        failover_setclock(driver->failover, node, (int64_t)luck_below(luck, (uint64_t)most_ms + 1) - most_ms / 2);
    shared->tokens_rise = !differ || shared->replicas == FAILOVER_NODES - 1;
}

/* Nodes that have a name, and certificates of that alone, are reached by it. */
static const char *named_url(struct driver *driver, const char *options)
{
    struct cluster *c = driver->cluster;
    const char *dir = driver->w->dir;
    char hosts[64];
    certificate_make(dir, &(struct certificate){ "named", "ca", "DNS:localhost", 0, 0 });
    cluster_order(c, "CONFIG SET tls-cert-file %s/named.pem tls-key-file %s/named.key", dir, dir);
    cluster_setname(c, "localhost");
    snprintf(hosts, sizeof hosts, "localhost:%d", cluster_port(c, 1));
    return cluster_url_of(c, CLUSTER_USER ":" CLUSTER_PASSWORD, hosts, options);
}

static const char *url_with(struct driver *driver, const char *options)
{
    if (!driver->shared->is_cluster)
        return failover_url(driver->failover, options);
    return driver->w->tls_port != 0 ? named_url(driver, options) : cluster_url(driver->cluster, options);
}

static void make_url(struct driver *driver)
{
    const struct shared *shared = driver->shared;
    char options[256];
    snprintf(options, sizeof options, "lease=%lldms&command_timeout=%lldms&poll=%lldms&clock_skew=%lldms",
             (long long)shared->lease_ms, (long long)shared->timeout_ms, (long long)shared->poll_ms,
             (long long)shared->skew_ms);
    if (shared->replicas > 0)
        snprintf(options + strlen(options), sizeof options - strlen(options), "&wait_replicas=%d", shared->replicas);
    driver->url = strdup(url_with(driver, options));
}

static void make_names(struct driver *driver)
{
    static const char *const plain[NAMES] = { "ma", "mb", "mc" };
    driver->name_count = driver->shared->only_moves ? 1 : 1 + (unsigned)luck_below(&driver->luck, NAMES);
    for (unsigned i = 0; i < NAMES; i++)
        driver->names[i] = driver->shared->is_cluster ? cluster_name(driver->cluster, (int)i, plain[i]) : plain[i];
}

static void begin_servers(struct driver *driver)
{
    if (driver->shared->is_cluster)
        driver->cluster = cluster_begin(driver->w, false);
    else
        driver->failover = the_servers = failover_begin(driver->w, "");
}

static void begin_machines(struct driver *driver)
{
    unsigned threads = driver->shared->is_lonely ? 1 : 1 + (unsigned)luck_below(&driver->luck, THREADS);
    driver->machine_count = 2 + (unsigned)luck_below(&driver->luck, MACHINES - 1);
    for (unsigned i = 0; i < driver->machine_count; i++) {
        driver->machines[i] = (struct machine){ .url = driver->url,
                                                .name_of = driver->names,
                                                .shared = driver->shared,
                                                .number = i,
                                                .threads = threads,
                                                .names = driver->name_count };
        driver->pids[i] = world_fork(driver->w, run_machine, &driver->machines[i]);
    }
}

static void strike_and_settle(struct driver *driver)
{
    struct shared *shared = driver->shared;
    if (!shared->is_cluster)
        strike(driver);
    else
        strike_cluster(driver);
    if (shared->is_cluster)
        shared->blow_ns = 0;
    else if (shared->is_calm && luck_below(&driver->luck, 4) != 0)
        settle(driver);
}

static void end_storm(struct driver *driver)
{
    storm_end();
    rest_ms(TROUBLE_MS);
    driver->shared->is_calm = true;
}

static void run(struct driver *driver)
{
    struct shared *shared = driver->shared;
    bool storm = !shared->is_calm;
    if (storm) {
        driver->replaced = true;
        shared->lossy_ns = INT64_MAX;
        storm_begin();
    }
    unsigned rounds = 3 + (unsigned)luck_below(&driver->luck, 4);
    for (rounds *= shared->only_moves ? 3 : 1; rounds > 0; rounds--) {
        rest_ms(luck_about(&driver->luck, 100, 8000));
        strike_and_settle(driver);
    }
    if (storm)
        end_storm(driver);
    if (!shared->is_cluster)
        settle(driver);
    rest_ms(3 * SERVED_MS);
}

static void workload(struct world *w)
{
    struct shared *shared = world_shared(w, sizeof *shared);
    struct driver driver = { .w = w, .shared = shared, .luck = luck_begin() };
    struct luck luck = luck_begin();
    struct worker watcher;
    draw_settings(shared, &luck, &driver);
    begin_servers(&driver);
    draw_clocks(&driver, &luck);
    make_url(&driver);
    make_names(&driver);
    begin_machines(&driver);
    rest_ms(1000);
    worker_start(&watcher, watch, shared);
    run(&driver);
    gate_open(&shared->over);
    assert_that(worker_join(&watcher) == 0);
    for (unsigned i = 0; i < driver.machine_count; i++)
        assert_int_equal(0, world_wait(w, driver.pids[i]));
    print_message("%s, replicas %d, lease %lld ms: %lld failovers, slowest %lld ms\n",
                  shared->is_cluster ? "cluster" : "Sentinels", shared->replicas, (long long)shared->lease_ms,
                  (long long)shared->failovers, (long long)(shared->slowest_ns / NS_PER_MS));
}

int main(void)
{
    struct luck luck = luck_begin();
    if (luck_onein(&luck, 24)) /* a cluster by TLS */
        setenv("LATCHKEY_TEST_TLS", "yes", 1);
    return workload_run(NULL, workload);
}
