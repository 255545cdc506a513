/* SPDX-License-Identifier: MIT */
/*
 * rights.c - what surrounds the locks on one server: rights that change under clients, settings that disagree, what
 * clients say of themselves, a server that is full, away or forgets scripts, clients that close
 *
 * Each machine has its own user. What is taken from one user is told to it, and to nobody else.
 */
#include "workload.h"

#include <latchkey/latchkey.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    MACHINES = 3,
    THREADS = 3,
    LEASE_MS = 10000,
    TIMEOUT_MS = 1000,
    POLL_MS = 2000,
    WARN_MS = 3000, /* warn_wait as it is by default */
    LATE_MS = 1000, /* what is to come at once has come by then */
    SERVED_MS = 20000
};

#define NS_PER_MS INT64_C(1000000)

/* What may be wrong. */
enum wrong { NO_SCRIPTS, NO_MESSAGES, FULL, AWAY, CUT, WRONGS };

/* Since when and until when it was, the last time; INT64_MAX: it still is. */
struct spell {
    int64_t from_ns, until_ns;
};

struct hold {
    int64_t until_ns; /* somebody believes that it holds; 0: nobody */
    bool robbed;      /* a robust one was taken away from its holder, or that was killed, and nobody was told yet */
    int grants;       /* so far */
    int code;         /* of the last one */
    bool in_use;      /* and it is not being given back */
    unsigned by;      /* that machine */
};

enum name { ORDERS, ROBUST, NAMES };
static const char *const names[NAMES] = { "orders", "robust" };

struct client {
    bool is_described, may_describe;
    char id[160]; /* of a holder, once it has held; "": not yet */
    long pid;
    int64_t known_ns; /* since then */
    int absent;       /* lines of its log that tell that the server is away */
    int64_t served_ns[THREADS];
    int64_t waits_ns[THREADS]; /* since when; 0: it does not */
    uint64_t owner[THREADS];
    uint64_t long_wait[THREADS]; /* whose wait was told as a long one since that one began */
};

struct shared {
    struct gate over;
    struct spell wrong[MACHINES][WRONGS];
    struct hold holds[NAMES];
    struct client clients[MACHINES];
    int64_t longest_ms;
    bool is_calm, is_quiet;
    bool visiting[MACHINES];
    int visits;         /* begun so far */
    int mark;           /* the settings that the last visitor used: 1 + fair; 0: not known */
    int64_t settled_ns; /* until then a copy of what a visitor asked for may change them */
};

struct machine {
    struct world *w;
    struct shared *shared;
    unsigned number;
    lk_client_t *client;
    lk_mutex_t mutexes[NAMES];
};

struct user {
    struct machine *machine;
    struct luck luck;
    unsigned number;
};

/* Was it wrong at some time since then? A server may answer late. */
static bool was(const struct machine *machine, enum wrong wrong, int64_t since_ns)
{
    const struct spell *spell = &machine->shared->wrong[machine->number][wrong];
    return spell->from_ns != 0 &&
           (spell->until_ns == INT64_MAX || spell->until_ns + TIMEOUT_MS * NS_PER_MS >= since_ns);
}

static bool is_excused(const struct machine *machine, int64_t since_ns)
{
    return !machine->shared->is_calm || was(machine, AWAY, since_ns) || was(machine, NO_SCRIPTS, since_ns);
}

/* All connections of a machine end. */
static void cut(struct world *w, struct shared *shared, unsigned number)
{
    shared->wrong[number][CUT] = (struct spell){ true_ns(), true_ns() };
    world_redis(w, "CLIENT KILL USER user%u", number);
    shared->wrong[number][CUT].until_ns = true_ns();
}

/* --- users -------------------------------------------------------------------------------------------------------- */

static void judge_code(const struct machine *machine, const char *what, int code, int64_t asked_ns)
{
    bool away = was(machine, AWAY, asked_ns) || was(machine, CUT, asked_ns) || !machine->shared->is_calm;
    switch (code) {
    case 0:
    case EOWNERDEAD:
    case ETIMEDOUT:
        return;
    case EACCES:
        must(was(machine, NO_SCRIPTS,
                 asked_ns) || /* what a connection found when it was made holds as long as it does */
                 machine->shared->wrong[machine->number][NO_MESSAGES].from_ns != 0,
             "%s returned EACCES, and all is allowed: %s", what, lk_errortext());
        return;
    case ENOSPC:
        must(was(machine, FULL, asked_ns), "%s returned ENOSPC, and there is room", what);
        return;
    case EIO:
    case ENOTCONN:
        must(away, "%s returned %d, and the server is well: %s", what, code, lk_errortext());
        return;
    default:
        broken("%s returned %d: %s", what, code, lk_errortext());
    }
}

static void enter(struct user *user, enum name name, int64_t use_ms)
{
    struct machine *machine = user->machine;
    struct hold *hold = &machine->shared->holds[name];
    int64_t asked_ns = true_ns(), left_ms = 0;
    if (lk_mutex_remaining(&machine->mutexes[name], &left_ms) != 0)
        return;
    int64_t until_ns = asked_ns + left_ms * NS_PER_MS * 99 / 100;
    must(hold->until_ns <= asked_ns, "two hold %s at once", names[name]);
    hold->until_ns = until_ns;
    rest_ms(use_ms);
    if (hold->until_ns == until_ns)
        hold->until_ns = 0;
}

static void say_who(struct user *user, enum name name)
{
    struct client *client = &user->machine->shared->clients[user->machine->number];
    lk_mutexinfo_t info = LK_MUTEXINFO_INIT;
    lk_mutex_t *mutex = &user->machine->mutexes[name];
    uint64_t token;
    if (client->id[0] == '\0' && lk_mutex_info(mutex, &info) == 0 && info.holder[0] != '\0' &&
        lk_mutex_token(mutex, &token) == 0 && token == info.token) { /* else it was taken away, and another holds it */
        memcpy(client->id, info.holder, sizeof client->id);
        client->pid = (long)getpid();
        client->known_ns = true_ns();
    }
}

static void give_back(struct user *user, enum name name)
{
    struct machine *machine = user->machine;
    int64_t asked_ns = true_ns();
    machine->shared->holds[name].in_use = false;
    int code = lk_mutex_unlock(&machine->mutexes[name]);
    if (code == ESTALE)
        must(name == ROBUST || is_excused(machine, asked_ns - 2 * LEASE_MS * NS_PER_MS),
             "a hold was lost, and all is well");
    else
        judge_code(machine, "an unlock", code, asked_ns);
    must(code != ENOSPC, "a full server keeps what is given back");
}

static void judge_death(struct user *user, enum name name, int code)
{
    struct hold *hold = &user->machine->shared->holds[name];
    must(!hold->robbed || code == EOWNERDEAD, "who follows a dead or robbed holder of a robust mutex was not told");
    hold->robbed = false;
    hold->grants++;
    hold->code = code;
    hold->in_use = true;
    hold->by = user->machine->number;
    if (code == EOWNERDEAD)
        (void)lk_mutex_consistent(&user->machine->mutexes[name]);
}

static void lock_and_use(struct user *user, enum name name)
{
    struct machine *machine = user->machine;
    struct client *client = &machine->shared->clients[machine->number];
    int64_t asked_ns = true_ns(), use_ms = luck_about(&user->luck, 1, machine->shared->longest_ms);
    bool patient = luck_below(&user->luck, 4) != 0;
    client->long_wait[user->number] = 0;
    client->waits_ns[user->number] = asked_ns;
    int code = lk_mutex_lockfor(&machine->mutexes[name], patient ? 60000 : luck_about(&user->luck, 1, 4000));
    client->waits_ns[user->number] = 0;
    judge_code(machine, "a lock", code, asked_ns);
    if (code == 0 || code == EOWNERDEAD) {
        judge_death(user, name, code);
        client->served_ns[user->number] = true_ns();
        if (name == ORDERS)
            enter(user, name, use_ms);
        else
            rest_ms(use_ms);
        if (!is_excused(machine, asked_ns))
            say_who(user, name);
        give_back(user, name);
    }
}

static int use(void *arg)
{
    struct user *user = arg;
    struct machine *machine = user->machine;
    machine->shared->clients[machine->number].owner[user->number] = lk_owner_number(NULL);
    while (!gate_is_open(&machine->shared->over)) {
        lock_and_use(user, (enum name)luck_below(&user->luck, NAMES));
        rest_ms(luck_about(&user->luck, 1, 500));
    }
    return 0;
}

static void hear(const lk_event_t *event, void *arg)
{
    const struct machine *machine = arg;
    struct client *client = &machine->shared->clients[machine->number];
    for (unsigned i = 0; event->type == LK_EVENT_LONG_WAIT && i < THREADS; i++)
        if (client->owner[i] == event->owner)
            client->long_wait[i] = event->owner;
}

static void note_line(void *arg, int level, const char *line)
{
    const struct machine *machine = arg;
    (void)level;
    if (strstr(line, "waiting for more than") != NULL && strstr(line, "held by") == NULL &&
        strstr(line, "the first") == NULL)
        machine->shared->clients[machine->number].absent++;
}

static const char *url_of(const struct machine *machine, const char *options)
{
    static char url[4][512];
    static unsigned next;
    char *text = url[next++ % 4];
    snprintf(text, sizeof url[0],
             "unix://user%u:secret@%s?lease=%dms&command_timeout=%dms&poll=%dms&retry_max=200ms&describe=%s%s",
             machine->number, machine->w->socket, LEASE_MS, TIMEOUT_MS, POLL_MS,
             machine->shared->clients[machine->number].is_described ? "yes" : "no", options);
    return text;
}

/* --- visitors: who comes with settings of its own, or closes while it holds --------------------------------------- */

static void count_disagreements(const lk_event_t *event, void *arg)
{
    int *count = arg;
    *count += event->type == LK_EVENT_DISAGREES;
}

static int visitors(const struct shared *shared)
{
    int count = 0;
    for (unsigned i = 0; i < MACHINES; i++)
        count += shared->visiting[i];
    return count;
}

/* What the last one used is what this one is compared with, if nobody else looked meanwhile. */
static void visit(struct machine *machine, struct luck *luck)
{
    struct shared *shared = machine->shared;
    lk_client_t *client;
    lk_mutex_t mutex;
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    bool strict = luck_onein(luck, 3);
    int told = 0;
    attr.fair = luck_onein(luck, 2);
    if (lk_client_open(&client, url_of(machine, strict ? "&strict=yes" : "")) != 0)
        return;
    assert_lk(0, lk_client_addlistener(client, count_disagreements, &told, NULL));
    assert_lk(0, lk_mutex_init(&mutex, client, "settings", &attr));
    int64_t asked_ns = true_ns();
    bool first = visitors(shared) == 0; /* an earlier one may use its settings after this one */
    int number = ++shared->visits, mark = first ? shared->mark : 0;
    shared->mark = 0;
    shared->visiting[machine->number] = true;
    int code = lk_mutex_trylock(&mutex);
    shared->visiting[machine->number] = false;
    if (code == EIO)
        shared->settled_ns = true_ns() + (lk_errorsettles() * 101 / 100 + 1) * NS_PER_MS;
    bool alone = mark != 0 && number == shared->visits, agrees = mark == 1 + attr.fair;
    if (code == 0)
        (void)lk_mutex_unlock(&mutex);
    if (alone && strict && !agrees && code != EINVAL)
        judge_code(machine, "the lock of a strict client that disagrees", code, asked_ns);
    must(!alone || !strict || agrees || code != 0, "a strict client that disagrees was let in");
    rest_ms(LATE_MS);
    if (alone && !strict && code == 0 && !is_excused(machine, asked_ns))
        must((told != 0) == !agrees, "settings %s, and a client was told of %d that do not",
             agrees ? "agree" : "disagree", told);
    if (first && number == shared->visits && code == 0 && asked_ns > shared->settled_ns)
        shared->mark = 1 + attr.fair;
    else if (number == shared->visits && code == EINVAL)
        shared->mark = mark;
    assert_lk(0, lk_mutex_destroy(&mutex));
    lk_client_close(client);
}

/* Whoever closes gives back, though its connections end just then. */
static void close_holding(struct machine *machine, struct luck *luck)
{
    lk_client_t *client;
    lk_mutex_t mutex;
    bool ends = luck_onein(luck, 2) && machine->shared->is_calm; /* in a storm this connection would not stand it */
    char name[16];
    snprintf(name, sizeof name, "closing%u", machine->number);
    if (lk_client_open(&client, url_of(machine, "")) != 0)
        return;
    assert_lk(0, lk_mutex_init(&mutex, client, name, NULL));
    int64_t asked_ns = true_ns();
    bool held = lk_mutex_trylock(&mutex) == 0;
    if (held && ends && fault_happens("connections end before a close"))
        cut(machine->w, machine->shared, machine->number);
    int code = lk_client_close(client);
    must(code == 0 || is_excused(machine, asked_ns), "a close returned %d", code);
    if (held && code == 0 && !is_excused(machine, asked_ns))
        must(!world_exists(machine->w, name), "a client was closed, and still holds");
}

static int come_and_go(void *arg)
{
    struct user *user = arg;
    while (!gate_is_open(&user->machine->shared->over)) {
        if (user->machine->shared->is_quiet)
            ;
        else if (luck_onein(&user->luck, 3))
            close_holding(user->machine, &user->luck);
        else
            visit(user->machine, &user->luck);
        rest_ms(luck_about(&user->luck, 10, 3000));
    }
    return 0;
}

/* In a storm a server may not answer in time. */
static void open_client(struct machine *machine)
{
    int code;
    while ((code = lk_client_open(&machine->client, url_of(machine, ""))) != 0) {
        must(code == ENOTCONN && !machine->shared->is_calm, "lk_client_open() returned %d: %s", code, lk_errortext());
        rest_ms(100);
    }
}

static int run_machine(struct world *w, void *arg)
{
    struct machine *machine = arg;
    struct user users[THREADS], visitor;
    struct worker workers[THREADS], visits;
    lk_mutexattr_t robust = LK_MUTEXATTR_INIT;
    robust.robust = 1;
    machine_begins(machine->number);
    assert_lk(0, lk_addlog(note_line, LK_LOG_WARNING, machine, NULL));
    open_client(machine);
    assert_lk(0, lk_client_addlistener(machine->client, hear, machine, NULL));
    for (enum name name = 0; name < NAMES; name++)
        assert_lk(
            0, lk_mutex_init(&machine->mutexes[name], machine->client, names[name], name == ROBUST ? &robust : NULL));
    world_ready(w);
    for (unsigned i = 0; i < THREADS; i++) {
        users[i] = (struct user){ .machine = machine, .luck = luck_begin(), .number = i };
        worker_start(&workers[i], use, &users[i]);
    }
    visitor = (struct user){ .machine = machine, .luck = luck_begin() };
    worker_start(&visits, come_and_go, &visitor);
    for (unsigned i = 0; i < THREADS; i++)
        assert_that(worker_join(&workers[i]) == 0);
    assert_that(worker_join(&visits) == 0);
    for (enum name name = 0; name < NAMES; name++)
        assert_lk(0, lk_mutex_destroy(&machine->mutexes[name]));
    int64_t asked_ns = true_ns();
    int code = lk_client_close(machine->client);
    must(code == 0 || is_excused(machine, asked_ns), "a close returned %d", code);
    return 0;
}

/* --- faults ------------------------------------------------------------------------------------------------------- */

struct driver {
    struct world *w;
    struct shared *shared;
    struct luck luck;
    lk_client_t *client; /* which looks on */
    lk_mutex_t plain;    /* ROBUST, by somebody who does not know that it is */
    struct machine machines[MACHINES];
    pid_t pids[MACHINES];
    int64_t allowed_ns; /* descriptions may be missing before */
};

static void begin_spell(struct driver *driver, unsigned machine, enum wrong wrong)
{
    driver->shared->wrong[machine][wrong] = (struct spell){ true_ns(), INT64_MAX };
}

static void end_spell(struct driver *driver, unsigned machine, enum wrong wrong)
{
    driver->shared->wrong[machine][wrong].until_ns = true_ns();
    driver->allowed_ns = true_ns() + 35000 * NS_PER_MS; /* the next beat */
}

static void forbid(struct driver *driver, enum wrong wrong, const char *rights, const char *again)
{
    unsigned number = (unsigned)luck_below(&driver->luck, MACHINES);
    int64_t length_ms = luck_about(&driver->luck, 10, 8000);
    bool kill = luck_onein(&driver->luck, 2);
    if (!fault_happens("user%u: %s", number, rights))
        return;
    begin_spell(driver, number, wrong);
    world_redis(driver->w, rights, number);
    rest_ms(length_ms);
    world_redis(driver->w, again, number);
    end_spell(driver, number, wrong);
    if (kill) /* it looks again what it may */
        cut(driver->w, driver->shared, number);
}

static void forbid_scripts(struct driver *driver)
{
    forbid(driver, NO_SCRIPTS, "ACL SETUSER user%u -evalsha -eval", "ACL SETUSER user%u +evalsha +eval");
}

static void forbid_messages(struct driver *driver)
{
    if (luck_onein(&driver->luck, 2))
        forbid(driver, NO_MESSAGES, "ACL SETUSER user%u -publish -spublish", "ACL SETUSER user%u +publish +spublish");
    else
        forbid(driver, NO_MESSAGES, "ACL SETUSER user%u resetchannels", "ACL SETUSER user%u allchannels");
}

static void fill(struct driver *driver)
{
    int64_t length_ms = luck_about(&driver->luck, 10, 5000);
    if (!fault_happens("the server is full"))
        return;
    for (unsigned i = 0; i < MACHINES; i++)
        begin_spell(driver, i, FULL);
    world_redis(driver->w, "CONFIG SET maxmemory 1");
    rest_ms(length_ms);
    world_redis(driver->w, "CONFIG SET maxmemory 0");
    for (unsigned i = 0; i < MACHINES; i++)
        end_spell(driver, i, FULL);
}

static void forget_scripts(struct driver *driver)
{
    if (fault_happens("scripts are forgotten"))
        world_redis(driver->w, "SCRIPT FLUSH");
}

static void stop_server(struct driver *driver)
{
    int64_t length_ms = luck_about(&driver->luck, 10, 8000);
    int before[MACHINES];
    if (!fault_happens("the server stands still"))
        return;
    for (unsigned i = 0; i < MACHINES; i++) {
        begin_spell(driver, i, AWAY);
        before[i] = driver->shared->clients[i].absent;
    }
    world_stop_server(driver->w);
    rest_ms(length_ms);
    for (unsigned i = 0; i < MACHINES && driver->shared->is_calm; i++)
        must(driver->shared->clients[i].absent - before[i] <= 1,
             "a server that was away once is %d lines of one client's log",
             driver->shared->clients[i].absent - before[i]);
    world_cont_server(driver->w);
    for (unsigned i = 0; i < MACHINES; i++)
        end_spell(driver, i, AWAY);
    rest_ms(2 * TIMEOUT_MS);
}

static bool all_is_well(const struct driver *driver)
{
    for (unsigned i = 0; i < MACHINES; i++)
        for (enum wrong wrong = 0; wrong < CUT; wrong++) /* what a cut leaves unseen is told to the next one */
            if (was(&driver->machines[i], wrong, true_ns() - 2 * LEASE_MS * NS_PER_MS))
                return false;
    return driver->shared->is_calm;
}

static bool is_held(struct driver *driver, enum name name)
{
    return world_exists(driver->w, names[name]);
}

static void take_away(struct driver *driver)
{
    for (int tries = 0; tries < 50 && !is_held(driver, ROBUST); tries++)
        rest_ms(20);
    if (!is_held(driver, ROBUST) || !fault_happens("a robust mutex is taken away"))
        return;
    struct hold *hold = &driver->shared->holds[ROBUST];
    int grants = hold->grants;
    bool used = hold->in_use && all_is_well(driver);
    int code = lk_mutex_forceunlock(&driver->plain);
    must(code == 0 || !driver->shared->is_calm, "lk_mutex_forceunlock() returned %d", code);
    if (!used || code != 0)
        return;
    if (hold->grants == grants) /* it was held all the time, or is so no more as it was taken away */
        hold->robbed = hold->in_use;
}

static void kill_machine(struct driver *driver)
{
    struct shared *shared = driver->shared;
    unsigned number = (unsigned)luck_below(&driver->luck, MACHINES);
    struct hold *hold = &shared->holds[ROBUST];
    if (!fault_happens("machine %u is killed", number))
        return;
    bool well = all_is_well(driver);
    world_stop(driver->pids[number]);
    if (hold->in_use && hold->by == number)
        hold->robbed = well;
    if (hold->by == number)
        hold->in_use = false;
    if (shared->visiting[number]) /* what it sent may still arrive */
        shared->settled_ns = true_ns() + 2 * TIMEOUT_MS * NS_PER_MS;
    shared->visiting[number] = false;
    shared->visits++;
    shared->mark = 0;
    world_kill(driver->w, driver->pids[number]);
    struct client *client = &shared->clients[number];
    *client = (struct client){ .is_described = client->is_described, .may_describe = client->may_describe };
    driver->pids[number] = world_fork(driver->w, run_machine, &driver->machines[number]);
}

static void forget_descriptions(struct driver *driver)
{
    char key[64];
    if (!fault_happens("descriptions are forgotten, and connections end"))
        return;
    for (unsigned i = 0; i < MACHINES; i++)
        if (driver->shared->clients[i].id[0] != '\0') {
            snprintf(key, sizeof key, "latchkey:who:%.32s", driver->shared->clients[i].id);
            world_redis(driver->w, "DEL %s", key);
        }
    for (unsigned i = 0; i < MACHINES; i++)
        cut(driver->w, driver->shared, i);
    rest_ms(2 * LATE_MS);
}

/* --- what is looked at -------------------------------------------------------------------------------------------- */

/* A client whose description was refused tries again with its next connection, as each attempt is a line in ACL LOG. */
static bool may_be_refused(const struct machine *machine)
{
    const struct spell *wrong = machine->shared->wrong[machine->number];
    return wrong[NO_SCRIPTS].from_ns != 0 && wrong[CUT].from_ns < wrong[NO_SCRIPTS].until_ns;
}

/* Who is known to have held is described while it lives, and says who it is. A description that a cut took returns after a second. */
static void judge_description(struct driver *driver, unsigned number)
{
    const struct client *client = &driver->shared->clients[number];
    const struct machine *machine = &driver->machines[number];
    lk_who_t who = LK_WHO_INIT;
    int64_t now_ns = true_ns();
    if (client->id[0] == '\0' || now_ns < client->known_ns + LATE_MS * NS_PER_MS || now_ns < driver->allowed_ns ||
        is_excused(machine, now_ns - LATE_MS * NS_PER_MS) || was(machine, FULL, now_ns - LATE_MS * NS_PER_MS) ||
        was(machine, CUT, now_ns - 2 * LATE_MS * NS_PER_MS))
        return;
    int code = lk_inspect_who(driver->client, client->id, &who);
    bool said = client->is_described && client->may_describe;
    must(said == (code == 0) || (said && may_be_refused(machine)),
         "a client that %s described is so: lk_inspect_who() returned %d", said ? "is to be" : "is not to be", code);
    must(code != 0 || who.pid == client->pid, "a client says that it is process %ld, and is %ld", who.pid, client->pid);
}

static void judge_long_waits(struct driver *driver, unsigned number)
{
    const struct client *client = &driver->shared->clients[number];
    for (unsigned i = 0; i < THREADS && driver->shared->is_calm; i++) {
        int64_t now_ns = true_ns(), since_ns = client->waits_ns[i];
        must(since_ns == 0 || now_ns - since_ns < (WARN_MS + LATE_MS) * NS_PER_MS || client->long_wait[i] != 0,
             "a wait of %lld ms was not told of", (long long)((now_ns - since_ns) / NS_PER_MS));
    }
}

/* An object is found, sometimes twice: not by each of its keys. */
static void judge_walk(struct driver *driver)
{
    lk_inspect_t *walk;
    lk_inspected_t found = LK_INSPECTED_INIT;
    unsigned count[NAMES] = { 0 };
    int code, before = driver->shared->holds[ORDERS].grants;
    bool held = driver->shared->holds[ORDERS].in_use;
    assert_lk(0, lk_inspect_open(&walk, driver->client, NULL));
    while ((code = lk_inspect_next(walk, &found)) == 0)
        for (enum name name = 0; name < NAMES; name++)
            count[name] += found.kind == LK_KIND_MUTEX && strcmp(found.name, names[name]) == 0;
    lk_inspect_close(walk);
    for (enum name name = 0; name < NAMES && driver->shared->is_calm; name++)
        must(count[name] <= 2, "a walk tells of %s %u times", names[name], count[name]);
    held = held && driver->shared->holds[ORDERS].in_use && before == driver->shared->holds[ORDERS].grants;
    must(!held || code != ENOENT || count[ORDERS] > 0 || !all_is_well(driver), "a walk does not tell of what is held");
}

static void watch(struct driver *driver, int64_t ms)
{
    for (int64_t until_ms = true_ms() + ms; true_ms() < until_ms; rest_ms(200))
        for (unsigned i = 0; i < MACHINES; i++) {
            judge_description(driver, i);
            judge_long_waits(driver, i);
        }
}

/* --- a run -------------------------------------------------------------------------------------------------------- */

static void make_user(struct driver *driver, unsigned number)
{
    world_redis(driver->w, "ACL SETUSER user%u reset on >secret resetchannels allchannels +@all", number);
    if (driver->shared->clients[number].may_describe)
        world_redis(driver->w, "ACL SETUSER user%u allkeys", number);
    else
        world_redis(driver->w, "ACL SETUSER user%u ~[^l]* ~latchkey:[^w]*", number);
}

static void begin_machines(struct driver *driver)
{
    for (unsigned i = 0; i < MACHINES; i++) {
        driver->shared->clients[i].is_described = luck_below(&driver->luck, 4) != 0;
        driver->shared->clients[i].may_describe = luck_below(&driver->luck, 4) != 0;
        make_user(driver, i);
        driver->machines[i] = (struct machine){ .w = driver->w, .shared = driver->shared, .number = i };
        driver->pids[i] = world_fork(driver->w, run_machine, &driver->machines[i]);
    }
}

static void judge_service(const struct shared *shared)
{
    for (unsigned i = 0; i < MACHINES; i++)
        for (unsigned thread = 0; thread < THREADS; thread++)
            must(true_ns() - shared->clients[i].served_ns[thread] < 3 * SERVED_MS * NS_PER_MS,
                 "thread %u of machine %u was not served for a minute", thread, i);
}

/* What a client said of itself goes with it. */
static void judge_end(struct driver *driver)
{
    lk_who_t who = LK_WHO_INIT;
    rest_ms(LATE_MS);
    for (unsigned i = 0; i < MACHINES && driver->shared->is_calm; i++)
        if (driver->shared->clients[i].id[0] != '\0')
            must(lk_inspect_who(driver->client, driver->shared->clients[i].id, &who) == ENOENT,
                 "a client that is closed is described");
}

static void run(struct driver *driver)
{
    static void (*const faults[])(struct driver * driver) = { forbid_scripts, forbid_messages,     fill,
                                                              forget_scripts, stop_server,         take_away,
                                                              take_away,      forget_descriptions, kill_machine };
    enum { FAULTS = sizeof faults / sizeof *faults };
    unsigned has[FAULTS], count = 0;
    for (unsigned i = 0; i < FAULTS; i++)
        if (luck_onein(&driver->luck, 3))
            has[count++] = i;
    for (unsigned rounds = 4 + (unsigned)luck_below(&driver->luck, 8); rounds > 0; rounds--) {
        watch(driver, luck_about(&driver->luck, 100, 6000));
        judge_walk(driver);
        if (count > 0)
            faults[has[luck_below(&driver->luck, count)]](driver);
    }
}

static void workload(struct world *w)
{
    struct shared *shared = world_shared(w, sizeof *shared);
    struct driver driver = { .w = w, .shared = shared, .luck = luck_begin() };
    bool storm = luck_onein(&driver.luck, 4), quiet = luck_onein(&driver.luck, 4);
    shared->is_calm = !storm;
    shared->longest_ms = luck_about(&driver.luck, 10, 2500);
    assert_lk(0, lk_client_open(&driver.client, world_url(w, "lease=10s")));
    assert_lk(0, lk_mutex_init(&driver.plain, driver.client, names[ROBUST], NULL));
    begin_machines(&driver);
    if (storm)
        storm_begin();
    run(&driver);
    if (quiet) {                 /* longer than a description lasts, and nothing happens */
        shared->is_quiet = true; /* nobody opens a client */
        rest_ms(10000);
        world_redis(w, "ACL LOG RESET");
        watch(&driver, 200000);
        must(!shared->is_calm || world_elements(w, "ACL LOG") == 0,
             "a description that is forbidden is said again, by the connection that was refused it: %s",
             world_str(w, "ACL LOG 1"));
        shared->is_quiet = false;
    }
    storm_end();
    rest_ms(storm ? TROUBLE_MS + 3 * SERVED_MS : 0);
    if (true_ms() - driver.shared->wrong[0][AWAY].until_ns / NS_PER_MS > 0)
        rest_ms(3 * SERVED_MS);
    judge_service(shared);
    gate_open(&shared->over);
    for (unsigned i = 0; i < MACHINES; i++)
        assert_int_equal(0, world_wait(w, driver.pids[i]));
    judge_end(&driver);
    assert_lk(0, lk_mutex_destroy(&driver.plain));
    assert_lk(0, lk_client_close(driver.client));
}

int main(void)
{
    return workload_run(NULL, workload);
}
