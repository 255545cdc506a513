/* SPDX-License-Identifier: MIT */
/*
 * leases.c - what a hold of a mutex promises while it lasts, and when it ends
 *
 * Machines hold shared mutexes, one at a time, and many of their own at once. They extend them, lock them again, keep
 * them for a least time, end threads that hold, and take mutexes away. The driver looks at the server meanwhile, and
 * compares what is there with what each holder was told before.
 *
 * Belief   A holder that is told that its hold is good for some time believes that until then, or until it makes a call
 *          that may change it. All beliefs are in true time. The server has what is believed, for as long, and nobody
 *          else believes it. Where an extend was not sent yet, a renewal asks for its lease: no longer is believed.
 * Excuse   A hold may be lost in a storm, in an outage that lasts for more than a quarter of the shortest lease, when
 *          its key is taken away, when it is fixed or has a limit. Else it may not.
 */
#include "workload.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <latchkey/latchkey.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MACHINES_MAX = 3,
    USERS_MAX = 3, /* threads of a machine that use the shared names */
    NAMES_MAX = 4,
    HANDLES = 3, /* of a name, in each machine */
    MANY_MAX = 200,
    LEFT_MAX = 256,
    GRANTS_MAX = 64, /* of a name, that are remembered */
    NAP_MS = 50,
    CLAIM_MS = 4000,  /* what is handed over lasts as long, until its holder confirms it */
    GHOST_MS = 500,   /* by then what was given back, or not acquired, is not at the server */
    LASTS_MS = 14000, /* an engine's fault, at most */
    SERVED_MS = 10000 /* when all is quiet, each user has its turn within that */
};

#define EVER INT64_MAX

enum fault {
    FORGET,
    CUT_ALL,
    CUT_EARS,
    DELETE,
    OVERWRITE,
    FLUSH,
    FREEZE,
    RESTART,
    FULL_SERVER,
    PAUSE_WRITES,
    STOP_ONE,
    KILL_ONE,
    FAULTS
};

/* The settings that follow from the seed. */
struct plan {
    unsigned machines, users, names, many;
    int64_t lease_ms, timeout_ms, least_lease_ms, hold_ms, wait_ms, storm_ms;
    bool storm, clocks, log_file; /* troubles of the engine; clocks that are wrong; the server has a log */
    bool extends, nests, ends, owners, forces, limits, tries;
    bool busy;  /* owners are asked and extended all the time */
    bool hasty; /* one call follows the other at once: what failed, too, and waits are short */
    bool faults[FAULTS];
    bool any_fault, is_long; /* long: it is seen that all are served once it is quiet */
    unsigned fault_every_ms;
    lk_mutexattr_t attrs[NAMES_MAX][HANDLES], many_attr;
};

enum state { IDLE, CALLING, HELD };

/* What one user has to do with one name. `version` changes with all that a call may change. */
struct hold {
    enum state state;
    uint64_t version, owner, token;
    char prefix[64]; /* of its owner ids */
    int levels, levels_there;
    int changes;        /* calls under way that may change its lease: what is told meanwhile may be so no more */
    int64_t levels_ns;  /* the last call that may have changed them returned */
    int64_t put_off_ms; /* the shortest lease of an extend that failed and may be set by a renewal; 0: none */
    bool levels_known, fixed, limited;
    int64_t lease_most_ms;          /* of those that it may have asked for */
    int64_t began_ns, held_ns;      /* its lock was called, and returned */
    int64_t asked_ns, until_ns;     /* the belief */
    const char *ended_with;         /* idle: the last code */
    int64_t free_by_ns;             /* idle: nothing of it is at the server from then on */
    int64_t keep_ms, kept_until_ns; /* min_hold_ms; no longer than that */
    int64_t lost_ns;                /* the listener was told */
    bool spared;                    /* the last outage ended long before the lease */
};

/* Its thread ended. */
struct left {
    unsigned machine, name;
    struct hold hold;
    int64_t left_ns;
};

enum fate { UNKNOWN, GIVEN_BACK, DIED };
struct grant {
    uint64_t token;
    int code;
    enum fate fate;
};

struct name {
    char text[24];
    bool robust, is_used_wrongly; /* it was of another type */
    int64_t robbed_ns;            /* somebody took it away; EVER while that goes on */
    int64_t kept_until_ns;        /* for nobody before, at least */
    int64_t unrepaired_ns;        /* somebody may have left it unrecoverable */
    unsigned grant_count;
    struct grant grants[GRANTS_MAX];
};

struct shared {
    struct plan plan;
    struct gate over;
    bool quiet;                     /* users only lock and unlock */
    int64_t excuse_ns;              /* end of the last outage; EVER while there is one */
    int64_t away_ns;                /* since then the server is away; 0: it is not */
    int64_t full_ns;                /* out of memory, until then */
    int64_t fault_ns, restarted_ns; /* the last fault began; a server that knew nothing was there */
    struct name names[NAMES_MAX + MANY_MAX];
    struct hold holds[MACHINES_MAX * USERS_MAX * NAMES_MAX + MANY_MAX];
    struct left left[LEFT_MAX];
    unsigned left_count;
    int64_t served_ns[MACHINES_MAX][USERS_MAX];
    unsigned generation[MACHINES_MAX];
};

struct machine {
    struct world *w;
    struct shared *s;
    unsigned number;
    lk_client_t *client, *operator;
    lk_mutex_t mutexes[NAMES_MAX][HANDLES], forced[NAMES_MAX], many[MANY_MAX];
    lk_owner_t *owners[USERS_MAX];
    char id[40];
    int64_t began_ns, began_here_ns;
};

struct user {
    struct machine *machine;
    struct luck luck;
    unsigned number;
    lk_owner_t *owner; /* NULL: its thread */
};

/* --- time --------------------------------------------------------------------------------------------------------- */

static int64_t here_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int64_t longer(const struct plan *plan, int64_t ns)
{
    return plan->clocks ? ns + ns / 240 : ns;
}

static int64_t shorter(const struct plan *plan, int64_t ns)
{
    return plan->clocks ? ns - ns / 240 : ns;
}

/* So much time of this machine in true time, and no more. */
static int64_t in_true_time(const struct machine *machine, int64_t ns)
{
    int64_t took_ns = true_ns() - machine->began_ns, took_here_ns = here_ns() - machine->began_here_ns;
    if (took_ns < 1000000000)
        return shorter(&machine->s->plan, ns);
    return (int64_t)((double)ns * ((double)took_ns / (double)took_here_ns)) - 100000;
}

/* --- what is excused ---------------------------------------------------------------------------------------------- */

static bool was_robbed(const struct name *name, const struct hold *hold)
{
    return name->robbed_ns >= hold->began_ns && name->robbed_ns != 0;
}

/* A robbed holder has to learn it: by its next renewal, and in a storm when its lease is over. */
static int64_t learns_ns(const struct plan *plan, const struct name *name, const struct hold *hold)
{
    if (name->robbed_ns == EVER)
        return EVER;
    int64_t ms = plan->storm || hold->fixed ? hold->lease_most_ms : hold->lease_most_ms / 3;
    return name->robbed_ns + longer(plan, ms * 1000000) + ms * 20000 + (plan->timeout_ms + 300) * 1000000;
}

/* A restart is known a second after the client is connected again, which tries that each tenth of a lease. */
static int64_t restart_known_ms(const struct plan *plan)
{
    return 1000 + plan->lease_ms / 10 + 400;
}

/* What a robbed holder was told before it has to know counts for nothing. */
static bool may_not_know(const struct shared *s, const struct name *name, const struct hold *hold)
{
    if (!was_robbed(name, hold))
        return false;
    if (!s->plan.storm && name->robbed_ns <= s->restarted_ns && s->fault_ns <= s->restarted_ns)
        return hold->asked_ns < s->restarted_ns + longer(&s->plan, restart_known_ms(&s->plan) * 1000000);
    bool was_away =
        s->excuse_ns >= name->robbed_ns && hold->asked_ns < name->robbed_ns + 2 * hold->lease_most_ms * 1000000;
    return was_away || hold->asked_ns < learns_ns(&s->plan, name, hold);
}

static void expect_excuse(const struct machine *machine, unsigned n, const struct hold *hold, bool was_spared,
                          const char *where)
{
    const struct shared *s = machine->s;
    bool excused = s->plan.storm || hold->fixed || hold->limited || was_robbed(&s->names[n], hold) ||
                   (s->excuse_ns >= hold->began_ns && !was_spared);
    must(excused, "%s: lost without a reason, held for %lld ms, says %s", s->names[n].text,
         (long long)(true_ns() - hold->held_ns) / 1000000, where);
}

/* --- beliefs ------------------------------------------------------------------------------------------------------ */

static unsigned name_of(const struct shared *s, const struct hold *hold)
{
    size_t at = (size_t)(hold - s->holds), users = (size_t)MACHINES_MAX * USERS_MAX * NAMES_MAX;
    return at < users ? at % NAMES_MAX : (unsigned)(NAMES_MAX + at - users);
}

/* A call may change what is believed: nothing is, until it returned. */
static void doubt(struct hold *hold)
{
    hold->version++;
    hold->until_ns = 0;
    hold->spared = false;
}

static void begin_change(struct hold *hold)
{
    doubt(hold);
    hold->changes++;
}

static void end_change(struct hold *hold)
{
    hold->changes--;
    hold->version++;
}

/* At `now_ns` this one believes that it holds the name. */
static void judge_others(struct shared *s, struct hold *hold, int64_t now_ns)
{
    struct name *name = &s->names[name_of(s, hold)];
    if (may_not_know(s, name, hold))
        return;
    must(now_ns >= name->kept_until_ns, "%s: held %lld ms before its min_hold_ms is over", name->text,
         (long long)(name->kept_until_ns - now_ns) / 1000000);
    if (name_of(s, hold) >= NAMES_MAX)
        return;
    for (unsigned i = name_of(s, hold); i < MACHINES_MAX * USERS_MAX * NAMES_MAX; i += NAMES_MAX) {
        const struct hold *other = &s->holds[i];
        /* This thread may have slept since now_ns. */
        bool meets = other->asked_ns < hold->until_ns && other->until_ns > now_ns;
        if (other != hold && other->state == HELD && meets && !may_not_know(s, name, other))
            broken("%s: two hold it at once, tokens %llu and %llu", name->text, (unsigned long long)hold->token,
                   (unsigned long long)other->token);
    }
}

/* Ask how long the hold is good for. False: it is lost. */
static bool believe(struct machine *machine, lk_owner_t *owner, lk_mutex_t *mutex, struct hold *hold)
{
    uint64_t version = hold->version;
    int64_t left_ms = 0, asked_ns = true_ns();
    int code = lk_mutex_remainingby(mutex, owner, &left_ms);
    int64_t now_ns = true_ns();
    if (hold->version != version || hold->state != HELD)
        return true;
    if (code == ESTALE)
        return false;
    must(code == 0, "lk_mutex_remaining() of a hold returned %s", code_name(code));
    int64_t lasts_ns = in_true_time(machine, (left_ms - 1) * 1000000);
    if (hold->put_off_ms != 0 && lasts_ns > shorter(&machine->s->plan, hold->put_off_ms * 990000 - 3000000))
        lasts_ns = shorter(&machine->s->plan, hold->put_off_ms * 990000 - 3000000);
    if (hold->version != version || hold->changes > 0)
        return true;
    hold->asked_ns = asked_ns;
    hold->until_ns = asked_ns + lasts_ns;
    if (hold->until_ns > now_ns)
        judge_others(machine->s, hold, now_ns);
    return true;
}

/* --- robust mutexes, and tokens ----------------------------------------------------------------------------------- */

/* Who comes after a dead holder is told. */
static void judge_succession(const struct name *name)
{
    for (unsigned i = 1; i < name->grant_count; i++)
        must(!name->robust || name->grants[i - 1].fate != DIED || name->grants[i].code != 0,
             "%s: its holder died, token %llu, and the next one was not told, token %llu", name->text,
             (unsigned long long)name->grants[i - 1].token, (unsigned long long)name->grants[i].token);
}

static void note_grant(struct name *name, uint64_t token, int code)
{
    unsigned i = name->grant_count;
    if (i == sizeof name->grants / sizeof *name->grants) {
        memmove(name->grants, name->grants + i / 2, (i - i / 2) * sizeof *name->grants);
        i = name->grant_count = i - i / 2;
    }
    for (; i > 0 && name->grants[i - 1].token > token; i--)
        name->grants[i] = name->grants[i - 1];
    must(i == 0 || name->grants[i - 1].token != token, "%s: two have token %llu", name->text,
         (unsigned long long)token);
    name->grants[i] = (struct grant){ .token = token, .code = code };
    name->grant_count++;
    judge_succession(name);
}

static void note_fate(struct name *name, uint64_t token, enum fate fate)
{
    for (unsigned i = 0; i < name->grant_count; i++)
        if (name->grants[i].token == token && name->grants[i].fate == UNKNOWN)
            name->grants[i].fate = fate;
    judge_succession(name);
}

/* The server forgot everything but what rises with its clock. */
static void forget_fates(struct name *name)
{
    for (unsigned i = 0; i < name->grant_count; i++)
        name->grants[i].fate = GIVEN_BACK;
}

/* --- a hold ------------------------------------------------------------------------------------------------------- */

static void begin_call(struct machine *machine, lk_owner_t *owner, struct hold *hold)
{
    uint64_t number = lk_owner_number(owner);
    doubt(hold);
    hold->state = CALLING;
    hold->owner = number;
    snprintf(hold->prefix, sizeof hold->prefix, "%s:%llu:", machine->id, (unsigned long long)number);
    hold->began_ns = true_ns();
    hold->levels = hold->levels_there = 0;
    hold->levels_known = true;
    hold->levels_ns = hold->put_off_ms = 0;
    hold->lost_ns = 0;
    hold->keep_ms = 0;
    hold->token = 0;
}

static void be_idle(struct hold *hold, int code, int64_t settles_ms)
{
    doubt(hold);
    if (code == EPROTO && settles_ms < hold->lease_most_ms)
        settles_ms = hold->lease_most_ms; /* refused: it ends with its lease */
    hold->ended_with = code_name(code);
    hold->state = IDLE;
    int64_t by_ns = true_ns() + settles_ms * 1020000 + (settles_ms > 0 ? 20000000 : 0);
    if (by_ns > hold->free_by_ns) /* what an earlier call left may be there still */
        hold->free_by_ns = by_ns;
}

static void be_held(struct machine *machine, lk_owner_t *owner, lk_mutex_t *mutex, struct hold *hold, int code)
{
    struct name *name = &machine->s->names[name_of(machine->s, hold)];
    hold->levels = hold->levels_there = 1;
    hold->held_ns = true_ns();
    if (lk_mutex_tokenby(mutex, owner, &hold->token) == 0)
        note_grant(name, hold->token, code);
    hold->state = HELD;
    hold->version++;
}

/* The largest token of a hold that anybody believed before the call began. */
static uint64_t token_before(struct shared *s, unsigned n)
{
    uint64_t largest = 0;
    for (unsigned i = 0; i < s->names[n].grant_count; i++)
        if (s->names[n].grants[i].token > largest)
            largest = s->names[n].grants[i].token;
    return largest;
}

static bool is_lock_code(const struct shared *s, const struct name *name, const struct hold *hold, int code)
{
    bool trouble = s->plan.storm || s->plan.any_fault;
    switch (code) {
    case 0:
    case ETIMEDOUT:
    case EBUSY:
        return true;
    case EOWNERDEAD:
        return name->robust && (trouble || s->plan.ends || s->plan.forces || s->plan.limits);
    case ENOTRECOVERABLE:
        return name->robust && name->unrepaired_ns != 0;
    case ENOTCONN:
    case EIO:
        return trouble;
    case ENOSPC:
        return s->full_ns >= hold->began_ns; /* a machine that stands still reads the answer later */
    case EPROTO:
        return name->is_used_wrongly;
    default:
        return false;
    }
}

static bool is_call_code(const struct shared *s, const struct name *name, int code)
{
    bool trouble = s->plan.storm || s->plan.any_fault;
    return code == 0 || code == ESTALE || (trouble && (code == EIO || code == ENOTCONN)) ||
           (code == EPROTO && name->is_used_wrongly);
}

static lk_mutex_t *handle_of(struct user *user, unsigned n, unsigned handle)
{
    return &user->machine->mutexes[n][handle];
}

static struct hold *hold_of(struct user *user, unsigned n)
{
    return &user->machine->s->holds[(user->machine->number * USERS_MAX + user->number) * NAMES_MAX + n];
}

static void nap(void)
{
    rest_ms(NAP_MS);
}

/* It is lost: it stays so, and the listener is told once. */
static void be_lost(struct user *user, lk_mutex_t *mutex, struct hold *hold, const char *where)
{
    struct machine *machine = user->machine;
    int64_t left_ms;
    bool was_spared = hold->spared;
    doubt(hold);
    expect_excuse(machine, name_of(machine->s, hold), hold, was_spared, where);
    for (int naps = (int)luck_about(&user->luck, 20, 80); naps > 0; naps--) {
        int code = lk_mutex_remainingby(mutex, user->owner, &left_ms);
        must(code == ESTALE, "a hold that was lost is held again: %s", code_name(code));
        nap();
    }
    must(hold->lost_ns != 0 || hold->token == 0, "%s: a loss was not told",
         machine->s->names[name_of(machine->s, hold)].text);
    for (; hold->levels > 0; hold->levels--) {
        int code = lk_mutex_unlockby(mutex, user->owner);
        must(code == ESTALE, "an unlock of what was lost returned %s", code_name(code));
    }
    int64_t ms = hold->lease_most_ms + 3 * machine->s->plan.timeout_ms, settles_ms = lk_errorsettles();
    be_idle(hold, ESTALE, settles_ms > ms ? settles_ms : ms);
}

/* While the server is away no renewal succeeds, and the loss is told though nobody asks. */
static void rest_blindly(struct user *user, struct hold *hold, int64_t ms)
{
    struct shared *s = user->machine->s;
    int naps = 0;
    for (int64_t until_ns = true_ns() + ms * 1000000; true_ns() < until_ns && !gate_is_open(&s->over);
         ms > NAP_MS ? nap() : rest_ms(ms)) {
        int64_t away_ns = s->away_ns, over_ns = away_ns + longer(&s->plan, hold->lease_most_ms * 1000000);
        bool over = away_ns != 0 && hold->held_ns < away_ns && true_ns() > over_ns;
        naps = over && s->away_ns == away_ns ? naps + 1 : 0;
        must(naps < 20 || hold->lost_ns != 0 || hold->token == 0, "%s: its lease is over, and nobody was told",
             s->names[name_of(s, hold)].text);
    }
}

static void keep(struct machine *machine, struct hold *hold, unsigned n, unsigned handle)
{
    int64_t ms = machine->s->plan.attrs[n][handle].min_hold_ms;
    if (ms > hold->keep_ms)
        hold->keep_ms = ms;
    int64_t until_ns = hold->held_ns + longer(&machine->s->plan, ms * 1000000) + machine->s->plan.timeout_ms * 1000000;
    if (ms > 0 && until_ns > hold->kept_until_ns)
        hold->kept_until_ns = until_ns;
}

/* A copy of the last call that comes after this one leaves the server with that one's number: docs/keys.md. */
static bool levels_are_sure(const struct shared *s, const struct hold *hold)
{
    return !s->plan.storm || true_ns() - hold->levels_ns > longer(&s->plan, 2 * s->plan.timeout_ms * 1000000);
}

static int one_level_less(struct user *user, struct hold *hold, unsigned n)
{
    struct shared *s = user->machine->s;
    unsigned handle = (unsigned)luck_below(&user->luck, HANDLES);
    bool local = s->plan.attrs[n][handle].nested_local != 0, sure = levels_are_sure(s, hold);
    begin_change(hold);
    int code = lk_mutex_unlockby(handle_of(user, n, handle), user->owner);
    must(is_call_code(s, &s->names[n], code), "%s: an unlock of one level returned %s: %s", s->names[n].text,
         code_name(code), lk_errortext());
    hold->levels--;
    if (!local)
        hold->levels_there = hold->levels;
    hold->levels_known &= code == 0 && sure;
    hold->levels_ns = true_ns();
    end_change(hold);
    return code;
}

/* All levels; the last one gives it back. */
static void give_back(struct user *user, struct hold *hold, unsigned n)
{
    struct shared *s = user->machine->s;
    struct name *name = &s->names[n];
    while (hold->levels > 1)
        if (one_level_less(user, hold, n) == ESTALE) {
            be_lost(user, handle_of(user, n, 0), hold, "an inner unlock");
            return;
        }
    doubt(hold);
    hold->state = CALLING;
    int64_t excuse_ns = s->excuse_ns;
    note_fate(name, hold->token, GIVEN_BACK);
    int code = lk_mutex_unlockby(handle_of(user, n, (unsigned)luck_below(&user->luck, HANDLES)), user->owner);
    int64_t settles_ms = lk_errorsettles();
    must(is_call_code(s, name, code), "%s: an unlock returned %s: %s", name->text, code_name(code), lk_errortext());
    if (code == ESTALE) {
        expect_excuse(user->machine, n, hold, false, "an unlock");
        settles_ms = hold->lease_most_ms + 3 * s->plan.timeout_ms;
    }
    int64_t kept_ns = hold->began_ns + shorter(&s->plan, hold->keep_ms * 1000000) - 2000000;
    bool is_kept = code == 0 && hold->keep_ms > 0 && !was_robbed(name, hold) && s->excuse_ns == excuse_ns;
    if (is_kept && kept_ns > name->kept_until_ns)
        name->kept_until_ns = kept_ns;
    be_idle(hold, code, settles_ms);
}

static int extend(struct user *user, lk_owner_t *owner, struct hold *hold, unsigned n)
{
    struct shared *s = user->machine->s;
    int64_t lease_ms = luck_about(&user->luck, s->plan.least_lease_ms, 3 * s->plan.lease_ms);
    bool alone = hold->changes == 0;
    begin_change(hold);
    if (lease_ms > hold->lease_most_ms)
        hold->lease_most_ms = lease_ms;
    int code = lk_mutex_extendby(handle_of(user, n, (unsigned)luck_below(&user->luck, HANDLES)), owner, lease_ms);
    end_change(hold);
    if (code == 0 && alone && hold->changes == 0)
        hold->put_off_ms = 0;
    else if (code != 0 && (hold->put_off_ms == 0 || lease_ms < hold->put_off_ms))
        hold->put_off_ms = lease_ms;
    must(is_call_code(s, &s->names[n], code) || (owner != NULL && code == EPERM), "an extend returned %s: %s",
         code_name(code), lk_errortext());
    return code;
}

static int nest(struct user *user, struct hold *hold, unsigned n)
{
    struct shared *s = user->machine->s;
    unsigned handle = (unsigned)luck_below(&user->luck, HANDLES);
    const lk_mutexattr_t *attr = &s->plan.attrs[n][handle];
    lk_how_t how = LK_HOW_INIT;
    if (attr->type == LK_MUTEX_NORMAL)
        return 0; /* it would wait for itself */
    how.timeout_ms = 1000;
    how.owner = user->owner;
    how.lease_ms =
        luck_onein(&user->luck, 3) ? luck_about(&user->luck, s->plan.least_lease_ms, 3 * s->plan.lease_ms) : 0;
    bool levels_known = hold->levels_known && levels_are_sure(s, hold);
    begin_change(hold);
    hold->levels_known = false;
    int code = lk_mutex_lockwith(handle_of(user, n, handle), &how);
    hold->levels_known = levels_known && (code == 0 || code == EDEADLK);
    hold->levels_ns = true_ns();
    end_change(hold);
    if (attr->type == LK_MUTEX_ERRORCHECK && code != ESTALE) {
        must(code == EDEADLK, "error checking: locked again, %s", code_name(code));
        return 0;
    }
    must(is_call_code(s, &s->names[n], code), "%s: locked again, %s: %s", s->names[n].text, code_name(code),
         lk_errortext());
    if (code == 0) {
        hold->levels++;
        if (attr->nested_local == 0)
            hold->levels_there = hold->levels;
        keep(user->machine, hold, n, handle);
    }
    return code;
}

/* Someone else's hold. */
static void unlock_as_a_stranger(struct user *user, unsigned n)
{
    int code = lk_mutex_unlockby(handle_of(user, n, 0), user->owner);
    must(code == EPERM, "an unlock of who does not hold it returned %s", code_name(code));
}

/* Take it away from whoever holds it, as an operator does. */
static void rob(struct machine *machine, unsigned n)
{
    struct shared *s = machine->s;
    struct name *name = &s->names[n];
    struct hold *robbed = NULL;
    uint64_t version = 0;
    if (name->robbed_ns == EVER || !fault_happens("%s is taken away", name->text))
        return;
    int64_t began_ns = true_ns();
    for (unsigned i = n; i < MACHINES_MAX * USERS_MAX * NAMES_MAX; i += NAMES_MAX)
        if (s->holds[i].state == HELD && s->holds[i].until_ns > began_ns && !was_robbed(name, &s->holds[i]))
            robbed = &s->holds[i], version = robbed->version;
    name->robbed_ns = EVER;
    name->kept_until_ns = 0;
    int code = lk_mutex_forceunlock(&machine->forced[n]);
    must(code == 0 || code == ENOTCONN || code == EIO || (code == EPROTO && name->is_used_wrongly),
         "forceunlock returned %s", code_name(code));
    int64_t now_ns = true_ns();
    name->robbed_ns = now_ns + (code == EIO ? 2 * s->plan.timeout_ms * 1000000 : 0);
    name->kept_until_ns = 0;
    bool had_it = robbed != NULL && robbed->version == version && robbed->until_ns > now_ns;
    if (code == 0 && had_it)
        note_fate(name, robbed->token, DIED);
}

/* Whatever one does while one holds; false: it is lost. */
static bool do_something(struct user *user, struct hold *hold, unsigned n)
{
    const struct plan *plan = &user->machine->s->plan;
    lk_mutex_t *mutex = handle_of(user, n, 0);
    int code = 0;
    uint64_t kinds = plan->hasty && !luck_onein(&user->luck, 8) ? 5 : 8;
    switch (1 + luck_below(&user->luck, kinds)) {
    case 1:
        code = plan->extends ? extend(user, user->owner, hold, n) : 0;
        break;
    case 2:
    case 3:
        code = plan->nests ? nest(user, hold, n) : 0;
        break;
    case 4:
        code = hold->levels > 1 ? one_level_less(user, hold, n) : 0;
        break;
    case 5:
        code = lk_mutex_checkby(mutex, user->owner);
        must(is_call_code(user->machine->s, &user->machine->s->names[n], code), "a check returned %s", code_name(code));
        break;
    case 6:
        rest_blindly(user, hold, luck_about(&user->luck, 1, 2 * plan->hold_ms));
        break;
    default:
        rest_ms(luck_about(&user->luck, 1, plan->hold_ms));
    }
    return code != ESTALE && believe(user->machine, user->owner, mutex, hold);
}

static int take(struct user *user, struct hold *hold, unsigned n, unsigned handle)
{
    const struct plan *plan = &user->machine->s->plan;
    const lk_mutexattr_t *attr = &plan->attrs[n][handle];
    lk_mutex_t *mutex = handle_of(user, n, handle);
    lk_how_t how = LK_HOW_INIT;
    how.owner = user->owner;
    how.timeout_ms =
        luck_about(&user->luck, 1, plan->hasty && !user->machine->s->quiet ? plan->timeout_ms : plan->wait_ms);
    if (luck_onein(&user->luck, 4) && !user->machine->s->quiet) {
        how.lease_ms = luck_about(&user->luck, plan->least_lease_ms, 3 * plan->lease_ms);
        how.fixed = plan->limits ? (int)luck_below(&user->luck, 3) - 1 : 0;
    }
    int64_t usual_ms = attr->lease_ms != 0 ? attr->lease_ms : plan->lease_ms;
    hold->lease_most_ms = how.lease_ms != 0 ? how.lease_ms : usual_ms;
    hold->fixed = how.fixed == 0 ? attr->fixed != 0 : how.fixed > 0;
    hold->limited = attr->max_hold_ms != 0;
    if (user->owner == NULL && plan->tries && luck_onein(&user->luck, 4)) {
        hold->lease_most_ms = usual_ms;
        hold->fixed = attr->fixed != 0;
        return lk_mutex_trylock(mutex);
    }
    return lk_mutex_lockwith(mutex, &how);
}

/* The thread ends and holds it still. */
static void leave(struct user *user, struct hold *hold, unsigned n)
{
    struct shared *s = user->machine->s;
    struct left *left = &s->left[s->left_count % LEFT_MAX];
    int64_t now_ns = true_ns();
    *left = (struct left){ .machine = user->machine->number, .name = n, .hold = *hold, .left_ns = now_ns };
    s->left_count++;
    doubt(hold);
    hold->state = IDLE;
    hold->free_by_ns = 0;
    hold->prefix[0] = 0;
    if (!was_robbed(&s->names[n], hold))
        note_fate(&s->names[n], hold->token, DIED);
}

/* Lock it, use it, give it back. False: this thread is to end, and holds it. */
static bool use(struct user *user, unsigned n)
{
    struct machine *machine = user->machine;
    struct shared *s = machine->s;
    const struct plan *plan = &s->plan;
    struct hold *hold = hold_of(user, n);
    unsigned handle = s->quiet ? 0 : (unsigned)luck_below(&user->luck, HANDLES);
    lk_mutex_t *mutex = handle_of(user, n, handle);
    if (luck_onein(&user->luck, 16))
        unlock_as_a_stranger(user, n);
    begin_call(machine, user->owner, hold);
    uint64_t before = token_before(s, n);
    int code = take(user, hold, n, handle);
    int64_t settles_ms = lk_errorsettles();
    must(is_lock_code(s, &s->names[n], hold, code), "%s: a lock returned %s: %s", s->names[n].text, code_name(code),
         lk_errortext());
    if (code != 0 && code != EOWNERDEAD) {
        be_idle(hold, code, settles_ms);
        if (code == ENOTRECOVERABLE)
            rob(machine, n);
        return true;
    }
    be_held(machine, user->owner, mutex, hold, code);
    must(hold->token == 0 || hold->token > before, "%s: token %llu follows %llu", s->names[n].text,
         (unsigned long long)hold->token, (unsigned long long)before);
    keep(machine, hold, n, handle);
    s->served_ns[machine->number][user->number] = true_ns();
    bool good = believe(machine, user->owner, mutex, hold);
    for (int64_t things = s->quiet ? 1 : luck_about(&user->luck, 1, plan->hasty ? 60 : 12);
         good && things > 0 && !gate_is_open(&s->over); things--)
        good = s->quiet ? (rest_ms(luck_about(&user->luck, 1, 50)), true) : do_something(user, hold, n);
    if (code == EOWNERDEAD && good) {
        if (!luck_onein(&user->luck, 6) || s->quiet) {
            int said = lk_mutex_consistentby(mutex, user->owner);
            must(said == 0 || said == ESTALE, "consistent returned %s", code_name(said));
        } else {
            s->names[n].unrepaired_ns = true_ns();
        }
    }
    if (!good) {
        be_lost(user, mutex, hold, "remaining");
        return true;
    }
    if (plan->ends && user->owner == NULL && !s->quiet && luck_onein(&user->luck, 8)) {
        leave(user, hold, n);
        return false;
    }
    give_back(user, hold, n);
    return true;
}

/* --- a machine ---------------------------------------------------------------------------------------------------- */

static int run_episode(void *arg)
{
    struct user *user = arg;
    struct shared *s = user->machine->s;
    while (!gate_is_open(&s->over)) {
        if (!use(user, (unsigned)luck_below(&user->luck, s->plan.names)))
            return 0;
        if (s->plan.forces && !s->quiet && luck_onein(&user->luck, 30))
            rob(user->machine, (unsigned)luck_below(&user->luck, s->plan.names));
        bool rests = s->plan.hasty && luck_onein(&user->luck, 8); /* so that what it left behind is seen */
        rest_ms(rests ? 2 * GHOST_MS : luck_about(&user->luck, 1, s->quiet ? 200 : s->plan.hasty ? 20 : 1000));
    }
    return 0;
}

/* One thread after another. */
static int run_user(void *arg)
{
    struct user *user = arg;
    struct worker worker;
    while (!gate_is_open(&user->machine->s->over)) {
        worker_start(&worker, run_episode, user);
        worker_join(&worker);
    }
    return 0;
}

/* Asks for the holds of others' owners, and extends them, at any moment. */
static int watch_owners(void *arg)
{
    struct user *watcher = arg;
    struct machine *machine = watcher->machine;
    const struct plan *plan = &machine->s->plan;
    while (!gate_is_open(&machine->s->over)) {
        rest_ms(luck_about(&watcher->luck, 2, plan->busy ? 8 : 200));
        struct user user = { .machine = machine, .luck = watcher->luck };
        user.number = (unsigned)luck_below(&watcher->luck, plan->users);
        unsigned n = (unsigned)luck_below(&watcher->luck, plan->names);
        struct hold *hold = hold_of(&user, n);
        user.owner = machine->owners[user.number];
        if (user.owner == NULL || hold->state != HELD)
            continue;
        believe(machine, user.owner, handle_of(&user, n, 0), hold);
        if (plan->extends && !machine->s->quiet && hold->state == HELD &&
            luck_onein(&watcher->luck, plan->busy ? 3 : 30))
            extend(&user, user.owner, hold, n);
    }
    return 0;
}

/* Many holds of one thread, for a long time. */
static void keep_one(struct user *user, unsigned i)
{
    struct machine *machine = user->machine;
    struct shared *s = machine->s;
    struct hold *hold = &s->holds[MACHINES_MAX * USERS_MAX * NAMES_MAX + i];
    struct name *name = &s->names[NAMES_MAX + i];
    if (hold->state == IDLE) {
        begin_call(machine, NULL, hold);
        lk_how_t how = LK_HOW_INIT;
        how.timeout_ms = 200;
        how.lease_ms = luck_onein(&user->luck, 2) ? 3 * s->plan.lease_ms : 0;
        hold->lease_most_ms = how.lease_ms != 0 ? how.lease_ms : s->plan.lease_ms;
        int code = lk_mutex_lockwith(&machine->many[i], &how);
        int64_t settles_ms = lk_errorsettles();
        must(is_lock_code(s, name, hold, code), "%s: a lock returned %s: %s", name->text, code_name(code),
             lk_errortext());
        if (code != 0)
            be_idle(hold, code, settles_ms);
        else
            be_held(machine, NULL, &machine->many[i], hold, code);
    }
    if (hold->state == HELD && !believe(machine, NULL, &machine->many[i], hold)) {
        expect_excuse(machine, NAMES_MAX + i, hold, hold->spared, "remaining of one of many");
        doubt(hold);
        int code = lk_mutex_unlock(&machine->many[i]);
        must(code == ESTALE, "an unlock of what was lost returned %s", code_name(code));
        be_idle(hold, code, hold->lease_most_ms + 3 * s->plan.timeout_ms);
    }
}

static int keep_many(void *arg)
{
    struct user *user = arg;
    struct shared *s = user->machine->s;
    while (!gate_is_open(&s->over)) {
        for (unsigned i = 0; i < s->plan.many && !gate_is_open(&s->over); i++)
            keep_one(user, i);
        rest_ms(luck_about(&user->luck, 20, s->plan.lease_ms / 2));
    }
    for (unsigned i = 0; i < s->plan.many; i++) {
        struct hold *hold = &s->holds[MACHINES_MAX * USERS_MAX * NAMES_MAX + i];
        if (hold->state != HELD)
            continue;
        doubt(hold);
        hold->state = CALLING;
        int code = lk_mutex_unlock(&user->machine->many[i]);
        must(is_call_code(s, &s->names[NAMES_MAX + i], code), "an unlock of one of many returned %s", code_name(code));
        be_idle(hold, code, code == 0 ? 0 : hold->lease_most_ms + 3 * s->plan.timeout_ms);
    }
    return 0;
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static void judge_risk(const struct machine *machine, const struct hold *hold, const lk_event_t *event)
{
    const struct plan *plan = &machine->s->plan;
    must(plan->storm || plan->any_fault, "%s: at risk, and nothing is wrong", event->name);
    bool late = plan->storm || plan->faults[STOP_ONE]; /* its renewal may come before the event is fetched */
    late |= plan->nests; /* a nested lock makes it good for longer, and its renewal is overdue as before */
    must(late || event->remaining_ms <= hold->lease_most_ms * 55 / 100, "%s: at risk when %lld ms of %lld are left",
         event->name, (long long)event->remaining_ms, (long long)hold->lease_most_ms);
}

static void note_event(const struct machine *machine, struct hold *hold, const lk_event_t *event)
{
    if (event->type == LK_EVENT_AT_RISK)
        judge_risk(machine, hold, event);
    if (event->type != LK_EVENT_LOST)
        return;
    must(hold->lost_ns == 0, "%s: a loss was told twice", event->name);
    hold->lost_ns = true_ns();
}

static void hear(const lk_event_t *event, void *arg)
{
    struct machine *machine = arg;
    struct shared *s = machine->s;
    size_t users = (size_t)MACHINES_MAX * USERS_MAX * NAMES_MAX;
    size_t first = (size_t)machine->number * USERS_MAX * NAMES_MAX, end = first + USERS_MAX * NAMES_MAX;
    if (event->token == 0)
        return;
    for (size_t i = 0; i < users + MANY_MAX; i++) {
        struct hold *hold = &s->holds[i];
        bool mine = (i >= first && i < end) || (i >= users && machine->number == 0);
        if (mine && hold->state != IDLE && hold->token == event->token && hold->owner == event->owner &&
            strcmp(event->name, s->names[name_of(s, hold)].text) == 0)
            note_event(machine, hold, event);
    }
    for (unsigned i = 0; i < LEFT_MAX; i++) {
        struct left *left = &s->left[i];
        if (left->left_ns != 0 && left->machine == machine->number && left->hold.token == event->token &&
            left->hold.owner == event->owner && strcmp(event->name, s->names[left->name].text) == 0)
            note_event(machine, &left->hold, event);
    }
}

/* The client's id, as the server has it. */
static void find_id(struct machine *machine)
{
    lk_mutex_t mine;
    lk_mutexinfo_t info = LK_MUTEXINFO_INIT;
    char name[32];
    snprintf(name, sizeof name, "id:%u:%u", machine->number, machine->s->generation[machine->number]);
    assert_lk(0, lk_mutex_init(&mine, machine->client, name, NULL));
    while (info.holder[0] == 0) {
        int code = lk_mutex_lockfor(&mine, 1000);
        if (code == 0 && lk_mutex_info(&mine, &info) == 0 && info.holder[0] != 0)
            break;
        must(code != EPROTO, "a lock returned EPROTO: %s", lk_errortext());
        if (lk_mutex_unlock(&mine) == EPERM)
            rest_ms(20);
    }
    snprintf(machine->id, sizeof machine->id, "%.*s", (int)strcspn(info.holder, ":"), info.holder);
    while (lk_mutex_unlock(&mine) != EPERM)
        continue;
    lk_mutex_destroy(&mine);
}

static void open_all(struct machine *machine)
{
    struct plan *plan = &machine->s->plan;
    char options[120];
    snprintf(options, sizeof options, "lease=%lldms&command_timeout=%lldms", (long long)plan->lease_ms,
             (long long)plan->timeout_ms);
    while (lk_client_open(&machine->client, world_url(machine->w, options)) != 0)
        rest_ms(100);
    while (lk_client_open(&machine->operator, world_url(machine->w, options)) != 0)
        rest_ms(100);
    for (unsigned n = 0; n < plan->names; n++) {
        assert_lk(0, lk_mutex_init(&machine->forced[n], machine->operator, machine->s->names[n].text, NULL));
        for (unsigned i = 0; i < HANDLES; i++)
            assert_lk(0, lk_mutex_init(&machine->mutexes[n][i], machine->client, machine->s->names[n].text,
                                       &plan->attrs[n][i]));
    }
    for (unsigned i = 0; i < plan->many && machine->number == 0; i++)
        assert_lk(0, lk_mutex_init(&machine->many[i], machine->client, machine->s->names[NAMES_MAX + i].text, NULL));
    assert_lk(0, lk_client_addlistener(machine->client, hear, machine, NULL));
}

static int run_machine(struct world *w, void *arg)
{
    struct machine *machine = arg;
    struct shared *s = machine->s;
    struct user users[USERS_MAX], keeper, watchers[2];
    struct worker workers[USERS_MAX], kept, watch[2];
    machine_begins(machine->number);
    signal(SIGPIPE, SIG_DFL);
    machine->w = w;
    machine->began_ns = true_ns();
    machine->began_here_ns = here_ns();
    open_all(machine);
    find_id(machine);
    for (unsigned i = 0; i < s->plan.users; i++) {
        users[i] = (struct user){ .machine = machine, .luck = luck_begin(), .number = i };
        if (s->plan.owners && luck_onein(&users[i].luck, 2))
            assert_lk(0, lk_owner_new(machine->client, &machine->owners[i]));
        users[i].owner = machine->owners[i];
    }
    for (int i = 0; i < 2; i++)
        watchers[i] = (struct user){ .machine = machine, .luck = luck_begin() };
    keeper = (struct user){ .machine = machine, .luck = luck_begin() };
    world_ready(w);
    for (unsigned i = 0; i < s->plan.users; i++)
        worker_start(&workers[i], run_user, &users[i]);
    for (int i = 0; i < 2; i++)
        worker_start(&watch[i], watch_owners, &watchers[i]);
    if (machine->number == 0 && s->plan.many > 0)
        worker_start(&kept, keep_many, &keeper);
    for (unsigned i = 0; i < s->plan.users; i++)
        worker_join(&workers[i]);
    for (int i = 0; i < 2; i++)
        worker_join(&watch[i]);
    if (machine->number == 0 && s->plan.many > 0)
        worker_join(&kept);
    lk_client_close(machine->client);
    lk_client_close(machine->operator);
    return 0;
}

/* --- what the driver sees at the server --------------------------------------------------------------------------- */

static redisContext *eyes;

/* Moments of the server's clock, each between two of true time. */
static struct {
    int64_t there_us, before_ns, after_ns;
} first_look, last_look;

/* When the server may have stood still last: an answer was late, or the driver had it stand still. Two of them may be one. */
static struct {
    int64_t since_ns, until_ns;
} silence;

/* What it renewed when it went on may be there still when the next one begins. */
static void note_silence(const struct plan *plan, int64_t since_ns, int64_t until_ns)
{
    if (since_ns > silence.until_ns + longer(plan, 3 * plan->lease_ms * 1000000))
        silence.since_ns = since_ns;
    silence.until_ns = until_ns;
}

static const char look[] = "local all = {} for i, key in ipairs(KEYS) do local kind = redis.call('TYPE', key).ok "
                           "if kind == 'hash' then local f = redis.call('HGETALL', key) "
                           "all[i] = { f[1], f[2], redis.call('PTTL', key) } "
                           "else all[i] = { kind == 'none' and '' or '?', '0', 0 } end end "
                           "local time = redis.call('TIME') all[#all + 1] = time[1] * 1000000 + time[2] return all";

static void reconnect(struct world *w)
{
    if (eyes != NULL)
        redisFree(eyes);
    eyes = redisConnectUnixWithTimeout(w->socket, (struct timeval){ 60, 0 });
    assert_that(eyes != NULL && eyes->err == 0);
    redisSetTimeout(eyes, (struct timeval){ 60, 0 });
}

static redisReply *ask(struct world *w, const struct shared *s)
{
    const char *args[3 + NAMES_MAX + MANY_MAX];
    char count[12];
    int n = 0;
    args[n++] = "EVAL_RO";
    args[n++] = look;
    args[n++] = count;
    for (unsigned i = 0; i < s->plan.names; i++)
        args[n++] = s->names[i].text;
    for (unsigned i = 0; i < s->plan.many; i++)
        args[n++] = s->names[NAMES_MAX + i].text;
    snprintf(count, sizeof count, "%d", n - 3);
    if (eyes == NULL || eyes->err != 0)
        reconnect(w);
    redisReply *reply = redisCommandArgv(eyes, n, args, NULL);
    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY) {
        freeReplyObject(reply);
        return NULL;
    }
    return reply;
}

struct seen {
    const char *owner;
    int64_t count, left_ms;
    int64_t before_ns, after_ns; /* the server was asked between these */
};

/* So much time of the server lasts at most as long. */
static int64_t there_at_most(const struct plan *plan, int64_t ns)
{
    int64_t there_us = last_look.there_us - first_look.there_us, most_ns = longer(plan, ns);
    if (there_us < 2000000)
        return most_ns;
    int64_t took_ns =
        (int64_t)((double)ns * (double)(last_look.after_ns - first_look.before_ns) / 1000.0 / (double)there_us);
    return took_ns < most_ns ? took_ns : most_ns;
}

static int64_t least_end_ns(const struct plan *plan, const struct seen *seen)
{
    return seen->before_ns + shorter(plan, seen->left_ms * 1000000);
}

static int64_t latest_end_ns(const struct plan *plan, const struct seen *seen)
{
    return seen->after_ns + there_at_most(plan, (seen->left_ms + 1) * 1000000);
}

static void note_time(const struct seen *seen, int64_t there_us)
{
    last_look.there_us = there_us;
    last_look.before_ns = seen->before_ns;
    last_look.after_ns = seen->after_ns;
    if (first_look.there_us == 0)
        first_look = last_look;
}

/* A server that stood still goes on with all that it was sent: a lease that it renews begins then, and so does a claim. */
static int64_t latest_free_ns(const struct plan *plan, const struct hold *hold)
{
    int64_t most_ms = hold->lease_most_ms > CLAIM_MS ? hold->lease_most_ms : CLAIM_MS;
    int64_t renewed_ns = silence.until_ns + longer(plan, most_ms * 1000000);
    return silence.since_ns <= hold->free_by_ns && renewed_ns > hold->free_by_ns ? renewed_ns : hold->free_by_ns;
}

/* `was` is what the hold was before the server was asked. */
static void judge_hold(const struct shared *s, const struct name *name, const struct hold *was, const struct hold *is,
                       const struct seen *seen)
{
    const struct plan *plan = &s->plan;
    bool same = was->version == is->version;
    bool mine = was->prefix[0] != 0 && strncmp(seen->owner, was->prefix, strlen(was->prefix)) == 0;
    bool knows = !may_not_know(s, name, is) && !may_not_know(s, name, was);
    if (same && was->state == HELD && knows && was->until_ns > seen->after_ns) {
        must(mine && seen->count > 0, "%s: said to be good for %lld ms more, and the server has %s, count %lld",
             name->text, (long long)(was->until_ns - seen->after_ns) / 1000000, seen->owner, (long long)seen->count);
        must(latest_end_ns(plan, seen) >= was->until_ns,
             "%s: said to be good until %lld us after its end at the server", name->text,
             (long long)(was->until_ns - latest_end_ns(plan, seen)) / 1000);
    }
    if (!mine || !same)
        return;
    if (seen->count == 0)
        must(least_end_ns(plan, seen) <= was->kept_until_ns, "%s: kept for %lld ms longer than its min_hold_ms",
             name->text, (long long)(least_end_ns(plan, seen) - was->kept_until_ns) / 1000000);
    if (was->state == HELD && was->until_ns > seen->after_ns && knows && was->levels_known)
        must(seen->count == was->levels_there, "%s: %d levels are %lld at the server", name->text, was->levels_there,
             (long long)seen->count);
    if (was->state == HELD && was->until_ns > seen->after_ns && seen->count > 0)
        must(seen->left_ms <= (was->lease_most_ms > CLAIM_MS ? was->lease_most_ms : CLAIM_MS),
             "%s: a lease of %lld ms has %lld left", name->text, (long long)was->lease_most_ms,
             (long long)seen->left_ms);
    int64_t free_by_ns = latest_free_ns(plan, was);
    if (was->state == IDLE && seen->count > 0 && !name->is_used_wrongly)
        must(seen->before_ns <= free_by_ns + GHOST_MS * 1000000LL,
             "%s: the server has it %lld ms after it has to be free, since %s: %s", name->text,
             (long long)(seen->before_ns - free_by_ns) / 1000000, was->ended_with, seen->owner);
}

static void judge_left(const struct shared *s, unsigned n, const struct left *left, const struct seen *seen)
{
    int64_t lease_ns = (left->hold.lease_most_ms > CLAIM_MS ? left->hold.lease_most_ms : CLAIM_MS) * 1000000;
    int64_t bound_ns = left->left_ns + longer(&s->plan, lease_ns) + 2 * s->plan.timeout_ms * 1000000 + 50000000;
    if (left->left_ns == 0 || left->name != n)
        return;
    bool mine = strncmp(seen->owner, left->hold.prefix, strlen(left->hold.prefix)) == 0 && seen->count > 0;
    must(!mine || seen->before_ns < bound_ns, "%s: its thread ended, and it is held on", s->names[n].text);
    if (!s->plan.storm && s->excuse_ns < left->hold.began_ns && left->hold.token != 0)
        must(left->hold.lost_ns != 0 || seen->before_ns < bound_ns + 3000000000,
             "%s: its thread ended, and the loss was not told", s->names[n].text);
}

static struct hold before[MACHINES_MAX * USERS_MAX * NAMES_MAX + MANY_MAX];

static void look_at_server(struct world *w, struct shared *s)
{
    unsigned users = MACHINES_MAX * USERS_MAX * NAMES_MAX;
    struct seen seen;
    memcpy(before, s->holds, sizeof before);
    static struct left left[LEFT_MAX];
    memcpy(left, s->left, sizeof left);
    seen.before_ns = true_ns();
    redisReply *reply = ask(w, s);
    seen.after_ns = true_ns();
    if (seen.after_ns - seen.before_ns > GHOST_MS * 500000LL)
        note_silence(&s->plan, last_look.after_ns, seen.after_ns);
    if (reply != NULL)
        note_time(&seen, reply->element[reply->elements - 1]->integer);
    for (unsigned i = 0; reply != NULL && i + 1 < reply->elements; i++) {
        const redisReply *one = reply->element[i];
        seen.owner = one->element[0]->str;
        seen.count = strtoll(one->element[1]->str, NULL, 10);
        seen.left_ms = one->element[2]->integer;
        if (i >= s->plan.names) {
            unsigned at = users + i - s->plan.names;
            judge_hold(s, &s->names[NAMES_MAX + i - s->plan.names], &before[at], &s->holds[at], &seen);
            continue;
        }
        for (unsigned at = i; at < users; at += NAMES_MAX)
            judge_hold(s, &s->names[i], &before[at], &s->holds[at], &seen);
        for (unsigned at = 0; at < LEFT_MAX; at++)
            judge_left(s, i, &left[at], &seen);
    }
    freeReplyObject(reply);
}

/* --- faults ------------------------------------------------------------------------------------------------------- */

struct driver {
    struct world *w;
    struct shared *s;
    struct luck luck;
    struct machine machines[MACHINES_MAX];
    pid_t pids[MACHINES_MAX];
    unsigned born;
};

static void watch_for(struct driver *d, int64_t ms)
{
    for (int64_t until_ms = true_ms() + ms; true_ms() < until_ms;) {
        bool often = d->s->plan.busy && !d->s->quiet; /* a wrong belief is short where it is renewed all the time */
        int64_t left_ms = until_ms - true_ms();
        int64_t rests_ms = often ? luck_about(&d->luck, 1, 20) : luck_about(&d->luck, 5, d->s->quiet ? 2000 : 400);
        rest_ms(rests_ms < left_ms ? rests_ms : left_ms > 0 ? left_ms : 1);
        look_at_server(d->w, d->s);
    }
}

/* Too long for some lease? */
static void begin_outage(struct driver *d, bool excuses)
{
    for (size_t i = 0; i < sizeof d->s->holds / sizeof *d->s->holds; i++)
        d->s->holds[i].spared = false;
    if (excuses)
        d->s->excuse_ns = EVER;
}

/* Its renewal goes out as soon as a connection is there again. */
static void spare(struct driver *d, struct hold *hold)
{
    const struct plan *plan = &d->s->plan;
    int64_t ms = plan->lease_ms / 10 + 2 * plan->timeout_ms + 500;
    hold->spared = hold->state == HELD && !hold->fixed && !hold->limited && hold->until_ns > true_ns() + ms * 1000000;
}

static void end_outage(struct driver *d, bool excuses)
{
    for (size_t i = 0; i < sizeof d->s->holds / sizeof *d->s->holds && !d->s->plan.storm; i++)
        spare(d, &d->s->holds[i]);
    if (excuses)
        d->s->excuse_ns = true_ns() + 3000000000;
}

/* Until about the end of some lease. */
static int64_t aim(struct driver *d)
{
    const struct plan *plan = &d->s->plan;
    size_t holds = MACHINES_MAX * USERS_MAX * NAMES_MAX + plan->many, first = luck_below(&d->luck, holds);
    int64_t off_ms = luck_about(&d->luck, 2, plan->lease_ms / 8);
    off_ms = luck_onein(&d->luck, 2) ? off_ms : -off_ms;
    for (size_t i = 0; i < holds; i++) {
        const struct hold *hold = &d->s->holds[(first + i) % holds];
        int64_t ms = (hold->until_ns - true_ns()) / 1000000 + off_ms;
        if (hold->state == HELD && ms > 0)
            return ms < 3 * plan->lease_ms ? ms : 3 * plan->lease_ms;
    }
    return 1;
}

static int64_t draw_outage(struct driver *d, bool *excuses)
{
    const struct plan *plan = &d->s->plan;
    int64_t ms = luck_about(&d->luck, 20, plan->least_lease_ms / 5);
    *excuses = luck_onein(&d->luck, 3);
    if (*excuses)
        ms = luck_onein(&d->luck, 2) ? aim(d) : luck_about(&d->luck, plan->least_lease_ms / 2, 3 * plan->lease_ms);
    return ms;
}

static void rob_all(struct driver *d, int64_t ns, bool forgets)
{
    for (unsigned i = 0; i < NAMES_MAX + d->s->plan.many; i++) {
        d->s->names[i].robbed_ns = ns;
        d->s->names[i].kept_until_ns = 0;
        if (forgets)
            forget_fates(&d->s->names[i]);
    }
}

static unsigned draw_name(struct driver *d)
{
    const struct plan *plan = &d->s->plan;
    if (plan->many > 0 && luck_onein(&d->luck, 2))
        return NAMES_MAX + (unsigned)luck_below(&d->luck, plan->many);
    return (unsigned)luck_below(&d->luck, plan->names);
}

static void delete_one(struct driver *d, bool overwrites)
{
    struct name *name = &d->s->names[draw_name(d)];
    if (name->robbed_ns == EVER)
        return;
    name->robbed_ns = EVER;
    if (overwrites) {
        name->is_used_wrongly = true;
        world_redis(d->w, "SET %s wrong", name->text);
        watch_for(d, luck_about(&d->luck, 10, 2 * d->s->plan.lease_ms));
    }
    world_redis(d->w, "DEL %s", name->text);
    name->robbed_ns = true_ns();
    name->kept_until_ns = 0;
}

static void freeze(struct driver *d)
{
    bool excuses;
    int64_t ms = draw_outage(d, &excuses);
    begin_outage(d, excuses);
    int64_t since_ns = true_ns();
    world_stop_server(d->w);
    d->s->away_ns = since_ns;
    rest_ms(ms);
    d->s->away_ns = 0;
    world_cont_server(d->w);
    note_silence(&d->s->plan, since_ns, true_ns());
    end_outage(d, excuses);
}

static void restart(struct driver *d)
{
    bool excuses, forgets = !d->s->plan.log_file;
    int64_t ms = draw_outage(d, &excuses);
    begin_outage(d, excuses);
    if (d->s->plan.storm)
        storm_end();
    if (forgets)
        rob_all(d, EVER, true);
    world_kill_server(d->w);
    d->s->away_ns = true_ns();
    rest_ms(ms);
    d->s->away_ns = 0;
    world_restart_server(d->w);
    if (forgets) {
        rob_all(d, true_ns(), true);
        d->s->restarted_ns = true_ns();
    }
    end_outage(d, excuses);
    if (forgets && !d->s->plan.storm)
        watch_for(d, restart_known_ms(&d->s->plan) + d->s->plan.lease_ms / 3); /* with nothing else amiss */
    if (d->s->plan.storm)
        storm_begin();
}

static void fill(struct driver *d)
{
    d->s->full_ns = EVER;
    world_redis(d->w, "CONFIG SET maxmemory 1");
    watch_for(d, luck_about(&d->luck, 50, 2 * d->s->plan.lease_ms));
    world_redis(d->w, "CONFIG SET maxmemory 0");
    d->s->full_ns = true_ns();
}

static void pause_writes(struct driver *d)
{
    bool excuses;
    int64_t ms = draw_outage(d, &excuses);
    begin_outage(d, excuses);
    int64_t since_ns = true_ns();
    world_redis(d->w, "CLIENT PAUSE %lld %s", (long long)ms, luck_onein(&d->luck, 2) ? "WRITE" : "ALL");
    rest_ms(ms + ms / 50 + 1);
    note_silence(&d->s->plan, since_ns, true_ns());
    end_outage(d, excuses);
}

static void stop_one(struct driver *d)
{
    bool excuses;
    pid_t pid = d->pids[luck_below(&d->luck, d->s->plan.machines)];
    int64_t ms = draw_outage(d, &excuses);
    begin_outage(d, true);
    world_stop(pid);
    watch_for(d, ms);
    world_cont(pid);
    end_outage(d, true);
}

static void start_machine(struct driver *d, unsigned number)
{
    d->machines[number] = (struct machine){ .w = d->w, .s = d->s, .number = number };
    d->pids[number] = world_fork(d->w, run_machine, &d->machines[number]);
    d->born++;
}

/* Another one comes in its place. */
static void kill_one(struct driver *d)
{
    struct shared *s = d->s;
    unsigned number = (unsigned)luck_below(&d->luck, s->plan.machines), first = number * USERS_MAX * NAMES_MAX;
    if (d->born >= 40 || (number == 0 && s->plan.many > 0))
        return;
    if (s->plan.storm)
        storm_end();
    world_stop(d->pids[number]);
    for (unsigned i = first; i < first + USERS_MAX * NAMES_MAX; i++) {
        struct hold *hold = &s->holds[i];
        struct name *name = &s->names[i % NAMES_MAX];
        if (hold->state == HELD && hold->token != 0 && !was_robbed(name, hold))
            note_fate(name, hold->token, DIED);
        doubt(hold);
        hold->changes = 0;
        hold->state = IDLE;
        hold->prefix[0] = 0;
    }
    for (unsigned i = 0; i < LEFT_MAX; i++)
        if (s->left[i].machine == number)
            s->left[i].left_ns = 0;
    world_kill(d->w, d->pids[number]);
    s->generation[number]++;
    rest_ms(luck_about(&d->luck, 1, 1000));
    start_machine(d, number);
    if (s->plan.storm)
        storm_begin();
}

static void make_fault(struct driver *d)
{
    static const char *const words[FAULTS] = {
        "scripts are forgotten", "connections are cut",  "subscriptions are cut",   "a key is deleted",
        "a key is overwritten",  "all keys are deleted", "the server stands still", "the server is killed",
        "the server is full",    "the server pauses",    "a machine stands still",  "a machine is killed"
    };
    enum fault fault = (enum fault)luck_below(&d->luck, FAULTS);
    if (!d->s->plan.any_fault)
        return;
    while (!d->s->plan.faults[fault])
        fault = (enum fault)luck_below(&d->luck, FAULTS);
    if (!fault_happens("%s", words[fault]))
        return;
    d->s->fault_ns = true_ns();
    switch (fault) {
    case FORGET:
        world_redis(d->w, "SCRIPT FLUSH");
        break;
    case CUT_ALL:
        world_killcommands(d->w);
        break;
    case CUT_EARS:
        world_killsubscriptions(d->w);
        break;
    case DELETE:
        delete_one(d, false);
        break;
    case OVERWRITE:
        delete_one(d, true);
        break;
    case FLUSH:
        rob_all(d, EVER, true);
        world_redis(d->w, "FLUSHALL");
        rob_all(d, true_ns(), true);
        break;
    case FREEZE:
        freeze(d);
        break;
    case RESTART:
        restart(d);
        break;
    case FULL_SERVER:
        fill(d);
        break;
    case PAUSE_WRITES:
        pause_writes(d);
        break;
    case STOP_ONE:
        stop_one(d);
        break;
    case KILL_ONE:
        kill_one(d);
        break;
    case FAULTS:
        break;
    }
}

/* --- the plan ----------------------------------------------------------------------------------------------------- */

static void draw_attrs(struct plan *plan, struct shared *s, struct luck *luck)
{
    for (unsigned n = 0; n < NAMES_MAX; n++) {
        int fair = luck_onein(luck, 3);
        s->names[n].robust = luck_onein(luck, 2);
        snprintf(s->names[n].text, sizeof s->names[n].text, "shared%u", n);
        for (unsigned i = 0; i < HANDLES; i++) {
            lk_mutexattr_t *attr = &plan->attrs[n][i];
            *attr = (lk_mutexattr_t)LK_MUTEXATTR_INIT;
            attr->fair = fair;
            attr->robust = s->names[n].robust;
            if (i == 0)
                continue;
            attr->type = luck_onein(luck, 3) ? (int)luck_below(luck, 3) : 0;
            attr->nested_local = luck_onein(luck, 4);
            attr->lease_ms = luck_onein(luck, 2) ? luck_about(luck, plan->least_lease_ms, 3 * plan->lease_ms) : 0;
            attr->fixed = plan->limits && luck_onein(luck, 3);
            attr->min_hold_ms = plan->limits && luck_onein(luck, 2) ? luck_about(luck, 100, 2 * plan->lease_ms) : 0;
            attr->max_hold_ms = plan->limits && luck_onein(luck, 3) ? luck_about(luck, 200, 3 * plan->lease_ms) : 0;
            if (attr->max_hold_ms != 0 && attr->max_hold_ms < attr->min_hold_ms)
                attr->max_hold_ms = attr->min_hold_ms;
        }
    }
    for (unsigned i = 0; i < MANY_MAX; i++)
        snprintf(s->names[NAMES_MAX + i].text, sizeof s->names[0].text, "many%u", i);
}

static void draw_plan(struct shared *s, struct luck *luck)
{
    struct plan *plan = &s->plan;
    plan->machines = 1 + (unsigned)luck_below(luck, MACHINES_MAX);
    plan->users = 1 + (unsigned)luck_below(luck, USERS_MAX);
    plan->names = 1 + (unsigned)luck_below(luck, NAMES_MAX);
    plan->many = luck_onein(luck, 2) ? (unsigned)luck_about(luck, 8, MANY_MAX) : 0;
    plan->storm = !luck_onein(luck, 3);
    int64_t least_ms = plan->storm ? 300 : 1000; /* where it is calm, a network that is slow harms no lease */
    plan->lease_ms = luck_onein(luck, 2) ? luck_about(luck, least_ms, 1500) : luck_about(luck, 1000, 10000);
    plan->timeout_ms = luck_about(luck, least_ms / 10, plan->lease_ms / 5);
    plan->least_lease_ms = plan->lease_ms / (1 + (int64_t)luck_below(luck, 3));
    if (plan->least_lease_ms < least_ms)
        plan->least_lease_ms = least_ms;
    plan->hold_ms = luck_about(luck, 20, 2 * plan->lease_ms);
    plan->wait_ms = luck_about(luck, 500, 2 * plan->lease_ms);
    plan->storm_ms = 12000 + 2 * plan->lease_ms;
    plan->clocks = luck_onein(luck, 2);
    plan->log_file = luck_onein(luck, 2);
    plan->extends = luck_onein(luck, 2);
    plan->nests = luck_onein(luck, 2);
    plan->ends = luck_onein(luck, 3);
    plan->owners = luck_onein(luck, 2);
    plan->forces = luck_onein(luck, 4);
    plan->limits = luck_onein(luck, 2);
    plan->tries = luck_onein(luck, 2);
    plan->busy = plan->owners && luck_onein(luck, 2);
    plan->extends |= plan->busy;
    plan->hasty = luck_onein(luck, 3);
    plan->fault_every_ms = (unsigned)luck_about(luck, 200, 5000);
    for (unsigned kinds = luck_onein(luck, 4) ? 0 : 1 + (unsigned)luck_below(luck, 4); kinds > 0; kinds--)
        plan->any_fault = plan->faults[luck_below(luck, FAULTS)] = true;
    if (!plan->storm && luck_onein(luck, 2))
        plan->any_fault = plan->faults[luck_onein(luck, 2) ? FREEZE : RESTART] = true;
    plan->is_long = luck_onein(luck, 4);
    draw_attrs(plan, s, luck);
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static int64_t longest_lease(const struct plan *plan)
{
    return 3 * plan->lease_ms;
}

static void judge_service(struct driver *d, int64_t since_ns)
{
    for (unsigned i = 0; i < d->s->plan.machines; i++)
        for (unsigned user = 0; user < d->s->plan.users; user++)
            must(d->s->served_ns[i][user] > since_ns, "user %u of machine %u was not served for %d ms", user, i,
                 SERVED_MS);
}

static void see_service(struct driver *d)
{
    watch_for(d, LASTS_MS + longest_lease(&d->s->plan) + 2 * d->s->plan.hold_ms);
    int64_t since_ns = true_ns();
    watch_for(d, SERVED_MS);
    judge_service(d, since_ns);
}

static void run_storm(struct driver *d)
{
    const struct plan *plan = &d->s->plan;
    if (plan->storm)
        storm_begin();
    for (int64_t until_ms = true_ms() + plan->storm_ms; true_ms() < until_ms;) {
        watch_for(d, luck_about(&d->luck, 10, plan->fault_every_ms));
        make_fault(d);
    }
    storm_end();
}

static void say_plan(const struct plan *plan)
{
    printf("plan: %u machines of %u users, %u names, %u more; lease %lld ms, %lld at least, timeout %lld "
           "ms%s%s%s%s%s%s%s%s%s; faults",
           plan->machines, plan->users, plan->names, plan->many, (long long)plan->lease_ms,
           (long long)plan->least_lease_ms, (long long)plan->timeout_ms, plan->storm ? ", storm" : "",
           plan->clocks ? ", wrong clocks" : "", plan->extends ? ", extends" : "", plan->nests ? ", nests" : "",
           plan->ends ? ", ends" : "",
           plan->busy     ? ", busy owners"
           : plan->owners ? ", owners"
                          : "",
           plan->forces ? ", forces" : "", plan->limits ? ", limits" : "", plan->hasty ? ", hasty" : "");
    for (int i = 0; i < FAULTS; i++)
        if (plan->faults[i])
            printf(" %d", i);
    printf("\n");
}

static void workload(struct world *w)
{
    struct shared *s = world_shared(w, sizeof *s);
    struct driver d = { .w = w, .s = s, .luck = luck_begin() };
    signal(SIGPIPE, SIG_IGN); /* the driver's connection is cut as others are */
    draw_plan(s, &d.luck);
    say_plan(&s->plan);
    clocks_are_wrong(s->plan.clocks ? 4000 : 0);
    if (s->plan.log_file) {
        snprintf(w->server_args, sizeof w->server_args, "--appendonly yes --appendfsync always");
        world_kill_server(w);
        world_restart_server(w);
    }
    for (unsigned i = 0; i < s->plan.machines; i++)
        start_machine(&d, i);
    run_storm(&d);
    s->quiet = true;
    if (s->plan.is_long)
        see_service(&d);
    gate_open(&s->over);
    for (unsigned i = 0; i < s->plan.machines; i++)
        assert_int_equal(0, world_wait(w, d.pids[i]));
    redisFree(eyes);
}

int main(void)
{
    return workload_run(NULL, workload);
}
