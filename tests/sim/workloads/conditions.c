/* SPDX-License-Identifier: MIT */
/*
 * conditions.c - threads of a few machines wait for a condition variable, and signal: no signal is lost, whoever waits
 * gives the mutex back and comes back with it, as often held as before
 *
 * The model counts debts: a signal that was acknowledged while some certainly waited is owed to one of those. Whoever
 * wakes pays one. Once none of those waits any more nothing is owed. A debt that is not paid once it is calm is a
 * lost signal.
 *
 * A third of all seeds have lulls: some come for a moment, others wait for long and ask seldom, and then nothing happens
 * for up to a minute, or the mutex is held for as long. The server's record outlasts that.
 */
#include "fleet.h"

#include <string.h>

enum {
    DEBTS = 256,
    LEVELS = 3,
    SEATS = FLEET_THREADS,
    LEASE_MS = 2000,
    LW_MS = 5000,
    LW_MOST_MS = 20000,
    PROMPT_MS = 700
};

/* Somebody who waits, or is about to. */
struct seat {
    bool is_taken, is_certain; /* the mutex was given back for sure, as somebody else had it meanwhile */
    uint64_t token;            /* of the hold that is given back */
    int64_t good_until_ns;     /* of that hold */
};

struct debt {
    uint64_t token; /* of whoever signalled, with the mutex; 0: without */
    uint32_t to;    /* one of these, a bit each: they waited before the signal */
    int64_t since_ns;
};

struct model {
    uint64_t token, robbed; /* the largest; the largest of a hold that was taken away */
    int64_t good_until_ns;  /* until then somebody believes that it holds the mutex; 0: nobody */
    unsigned holder;        /* its machine */
    int64_t free_ns;        /* when it was given back last */
    struct seat seats[FLEET_MACHINES][SEATS];
    struct debt debts[DEBTS];
    unsigned debt_count, killing; /* 1: a machine is being killed */
    int quiet;                    /* 1: nobody signals, and nobody begins to wait */
    bool is_busy[FLEET_MACHINES][SEATS];
    bool is_robust, has_robbers, has_long_holds, has_loose_signals, has_broadcasts, has_lulls;
    bool asks_seldom[FLEET_MACHINES];
    unsigned sleepers, wakers; /* of 8 */
    int64_t lease_most_ms, poll_most_ms;
};

struct objects {
    lk_mutex_t mutex;
    lk_cond_t cond;
};

static struct model *model_of(const struct fleet *fleet)
{
    return fleet->shared;
}

static unsigned certain(const struct model *model)
{
    unsigned count = 0;
    for (unsigned i = 0; i < FLEET_MACHINES; i++)
        for (unsigned seat = 0; seat < SEATS; seat++)
            count += model->seats[i][seat].is_taken && model->seats[i][seat].is_certain;
    return count;
}

static uint32_t bit_of(unsigned machine, unsigned seat)
{
    return 1U << (machine * SEATS + seat);
}

static void remove_debt(struct model *model, unsigned i)
{
    memmove(&model->debts[i], &model->debts[i + 1], (model->debt_count - i - 1) * sizeof *model->debts);
    model->debt_count--;
}

/* Somebody waits no more: what was owed to nobody else is not owed. */
static void forget_seat(struct model *model, unsigned machine, unsigned seat)
{
    model->seats[machine][seat] = (struct seat){ 0 };
    for (unsigned i = model->debt_count; i-- > 0;) {
        model->debts[i].to &= ~bit_of(machine, seat);
        if (model->debts[i].to == 0)
            remove_debt(model, i);
    }
}

static void owe(struct model *model, uint64_t token, int64_t now_ns, uint32_t to, bool all)
{
    for (unsigned i = 0; i < FLEET_MACHINES * SEATS && model->debt_count < DEBTS; i++)
        if (!all || (to >> i & 1) != 0) {
            uint32_t these = all ? 1U << i : to;
            model->debts[model->debt_count++] = (struct debt){ .token = token, .to = these, .since_ns = now_ns };
            if (!all)
                break;
        }
}

/* --- the mutex ---------------------------------------------------------------------------------------------------- */

struct hold {
    struct person *person;
    uint64_t token;
    int64_t until_ns;      /* it is good until then, at least */
    unsigned levels, loss; /* what the server had lost before it was asked for */
    bool is_good;
};

/* Others who wait gave the mutex back, if their leases would have been good by now. */
static void note_given_back(struct model *model, uint64_t token, int64_t now_ns)
{
    for (unsigned i = 0; i < FLEET_MACHINES; i++)
        for (unsigned n = 0; n < SEATS; n++) {
            struct seat *seat = &model->seats[i][n];
            if (seat->is_taken && seat->token < token && seat->token > model->robbed && seat->good_until_ns > now_ns)
                seat->is_certain = true;
        }
}

/* Without a fault, a signal arrives as soon as messages do once the mutex is free, as it was until now. */
static void judge_debts(const struct fleet *fleet, int64_t now_ns)
{
    const struct model *model = model_of(fleet);
    for (unsigned i = 0; i < model->debt_count && fleet->is_faultless; i++) {
        int64_t since_ns = model->debts[i].since_ns, free_ns = model->free_ns;
        int64_t ms = (now_ns - (since_ns > free_ns ? since_ns : free_ns)) / 1000000;
        must(ms < PROMPT_MS,
             "somebody was signalled, and the mutex free, for %lld ms, and did not wake without a fault",
             (long long)ms);
    }
}

static void enter(struct hold *hold)
{
    struct person *person = hold->person;
    struct model *model = model_of(person->fleet);
    struct objects *objects = person->fleet->objects;
    int64_t asked_ns = true_ns(), left_ms = 0;
    hold->is_good = false;
    if (lk_mutex_token(&objects->mutex, &hold->token) != 0 || lk_mutex_remaining(&objects->mutex, &left_ms) != 0) {
        must(!person->fleet->is_faultless, "the mutex is lost without a fault");
        return;
    }
    hold->until_ns = asked_ns + left_ms * 990000; /* a clock may be slow by a hundredth */
    int64_t now_ns = true_ns();
    judge_debts(person->fleet, now_ns);
    if (now_ns >= hold->until_ns || hold->token <= model->robbed || !fleet_kept(person->fleet, hold->loss))
        return;
    must(model->good_until_ns <= asked_ns, "two hold the mutex at once");
    must(hold->token > model->token, "token %llu follows %llu", (unsigned long long)hold->token,
         (unsigned long long)model->token);
    model->token = hold->token;
    model->good_until_ns = hold->until_ns;
    model->holder = person->machine;
    hold->is_good = true;
    note_given_back(model, hold->token, now_ns);
}

/* It is given back, or waits: from now on somebody else may have it. */
static void leave(struct hold *hold)
{
    struct model *model = model_of(hold->person->fleet);
    model->free_ns = true_ns();
    if (hold->is_good && model->token == hold->token)
        model->good_until_ns = 0;
}

static void unlock(struct hold *hold)
{
    struct person *person = hold->person;
    struct objects *objects = person->fleet->objects;
    struct model *model = model_of(person->fleet);
    for (; hold->levels > 1; hold->levels--) {
        int code = lk_mutex_unlock(&objects->mutex);
        must(code == 0 || (!person->fleet->is_faultless && (code == ESTALE || code == EIO || code == ENOTCONN)),
             "an unlock of level %u returned %s", hold->levels, code_name(code));
        fleet_rest(person);
    }
    leave(hold);
    int code = lk_mutex_unlock(&objects->mutex);
    must(code == 0 || (!person->fleet->is_faultless && (code == ESTALE || code == EIO || code == ENOTCONN)),
         "the last unlock returned %s", code_name(code));
    model->free_ns = true_ns();
}

/* After EOWNERDEAD. */
static void repair(struct person *person)
{
    struct objects *objects = person->fleet->objects;
    must(model_of(person->fleet)->is_robust, "EOWNERDEAD of a mutex that is not robust");
    must(!person->fleet->is_faultless, "EOWNERDEAD without a fault");
    int code = lk_mutex_consistent(&objects->mutex);
    must(code == 0 || code == ESTALE, "lk_mutex_consistent() returned %s after EOWNERDEAD", code_name(code));
}

static bool lock(struct hold *hold)
{
    struct person *person = hold->person;
    struct objects *objects = person->fleet->objects;
    hold->loss = fleet_loss(person->fleet);
    int code = lk_mutex_lockfor(&objects->mutex, luck_about(&person->luck, 100, 20000));
    if (code == EOWNERDEAD)
        repair(person);
    else if (code != 0) {
        must(code == ETIMEDOUT || (!person->fleet->is_faultless && (code == ENOTCONN || code == EIO)),
             "a lock returned %s", code_name(code));
        return false;
    }
    hold->levels = 1;
    enter(hold);
    while (hold->levels < LEVELS && luck_onein(&person->luck, 4)) {
        code = lk_mutex_lockfor(&objects->mutex, 1000);
        if (code != 0) {
            must(!person->fleet->is_faultless, "a second lock returned %s", code_name(code));
            break;
        }
        hold->levels++;
    }
    return true;
}

/* --- waiting ------------------------------------------------------------------------------------------------------ */

static void sit_down(struct hold *hold)
{
    struct model *model = model_of(hold->person->fleet);
    struct seat *seat = &model->seats[hold->person->machine][hold->person->number];
    *seat =
        (struct seat){ .is_taken = true, .token = hold->token, .good_until_ns = hold->is_good ? hold->until_ns : 0 };
}

/* Somebody woke: one debt less, its own if there is one. */
static void pay(const struct person *person)
{
    struct model *model = model_of(person->fleet);
    uint32_t me = bit_of(person->machine, person->number);
    unsigned i = 0;
    while (i < model->debt_count && (model->debts[i].to & me) == 0)
        i++;
    if (i == model->debt_count)
        i = 0;
    if (model->debt_count > 0)
        remove_debt(model, i);
}

/* The wait ended. Did it wake? Then it had a signal, if one was under way. */
static void get_up(struct hold *hold, bool woke)
{
    struct person *person = hold->person;
    if (woke)
        pay(person);
    forget_seat(model_of(person->fleet), person->machine, person->number);
}

static bool is_held_after(struct fleet *fleet, int code)
{
    must(code == 0 || code == ETIMEDOUT ||
             (!fleet->is_faultless && (code == EOWNERDEAD || code == ESTALE || code == ENOTCONN || code == EIO)) ||
             code == ESTALE,
         "a wait returned %s", code_name(code));
    return code == 0 || code == ETIMEDOUT || code == EOWNERDEAD;
}

static void judge_robbed(struct hold *hold, uint64_t robbed, unsigned loss, int code)
{
    struct fleet *fleet = hold->person->fleet;
    if (hold->token == 0 || hold->token > robbed)
        must(code != ESTALE || !fleet->is_faultless, "a wait returned ESTALE without a fault");
    else if (fleet_kept(fleet, loss) && !fleet->has[TROUBLES_OF_THE_WORLD] && !fleet->has[BLOWS] &&
             !fleet->has[FREEZES] && !fleet->has[STANDSTILLS] &&
             !fleet->has[RESTARTS]) /* else a request may have been sent twice */
        must(code == ESTALE || code == EIO || code == ENOTCONN,
             "a wait for which the mutex was not held any more returned %s, not ESTALE", code_name(code));
}

static int wait_somehow(struct person *person)
{
    struct objects *objects = person->fleet->objects;
    struct model *model = model_of(person->fleet);
    int64_t ms = luck_about(&person->luck, 1, 8 * person->fleet->rest_most_ms + 1000);
    struct timespec until;
    if (model->has_lulls && !model->asks_seldom[person->machine] && !luck_onein(&person->luck, 8))
        return lk_cond_waitfor(&objects->cond, &objects->mutex, luck_about(&person->luck, 100, 3000));
    if ((model->has_lulls && model->asks_seldom[person->machine]) || luck_below(&person->luck, 8) < model->sleepers)
        return lk_cond_wait(&objects->cond, &objects->mutex);
    if (luck_onein(&person->luck, 2))
        return lk_cond_waitfor(&objects->cond, &objects->mutex, ms);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    return lk_cond_clockwait(&objects->cond, &objects->mutex, CLOCK_MONOTONIC, &until);
}

/* The server has it as often held as it was before. */
static void count_levels(const struct hold *hold)
{
    struct objects *objects = hold->person->fleet->objects;
    lk_mutexinfo_t info = LK_MUTEXINFO_INIT;
    if (hold->levels > 1 && hold->is_good && lk_mutex_info(&objects->mutex, &info) == 0 && info.held &&
        info.token == hold->token)
        must(info.holds == hold->levels, "a wait gave %u levels back and came with %u", hold->levels, info.holds);
}

/* Held before, and after if it returns true. */
static bool wait_once(struct hold *hold)
{
    struct fleet *fleet = hold->person->fleet;
    struct model *model = model_of(fleet);
    struct objects *objects = fleet->objects;
    unsigned loss = fleet_loss(fleet), levels = hold->levels;
    hold->loss = loss;
    uint64_t robbed = model->robbed;
    if (!hold->is_good)
        hold->token = 0;
    sit_down(hold);
    leave(hold);
    int code = wait_somehow(hold->person);
    judge_robbed(hold, robbed, loss, code);
    bool is_held = is_held_after(fleet, code);
    if (code == EOWNERDEAD)
        repair(hold->person);
    if (is_held) {
        hold->levels = levels;
        enter(hold);
        if (code != ETIMEDOUT || fleet->is_faultless) /* else the request that counts them may have been lost */
            count_levels(hold);
    } else {
        int64_t left_ms;
        int after = lk_mutex_remaining(&objects->mutex, &left_ms);
        must(after == EPERM, "after a wait that returned %s a question for the mutex returned %s, not EPERM",
             code_name(code), code_name(after));
    }
    get_up(hold, code == 0 || code == EOWNERDEAD);
    return is_held;
}

/* --- signals ------------------------------------------------------------------------------------------------------ */

static void signal_one(struct person *person, const struct hold *hold)
{
    struct fleet *fleet = person->fleet;
    struct model *model = model_of(fleet);
    struct objects *objects = fleet->objects;
    bool all = model->has_broadcasts && luck_onein(&person->luck, 8);
    unsigned loss = fleet_loss(fleet), killing = model->killing;
    struct seat before[FLEET_MACHINES][SEATS];
    for (unsigned i = 0; i < FLEET_MACHINES; i++)
        for (unsigned n = 0; n < SEATS; n++)
            before[i][n] = model->seats[i][n];
    int code = all ? lk_cond_broadcast(&objects->cond) : lk_cond_signal(&objects->cond);
    must(code == 0 || (!fleet->is_faultless && (code == ENOTCONN || code == EIO)), "a signal returned %s",
         code_name(code));
    int64_t now_ns = true_ns();
    if (code != 0 || !fleet_kept(fleet, loss) || killing != model->killing || killing % 2 != 0)
        return;
    uint32_t still = 0; /* who certainly waited all the time; where anybody left, it may have had this signal */
    for (unsigned i = 0; i < FLEET_MACHINES; i++)
        for (unsigned n = 0; n < SEATS; n++)
            if (before[i][n].is_taken &&
                !(model->seats[i][n].is_taken && model->seats[i][n].token == before[i][n].token))
                return;
            else if (before[i][n].is_taken && before[i][n].is_certain)
                still |= bit_of(i, n);
    if (still != 0)
        owe(model, hold != NULL && hold->is_good && hold->until_ns > now_ns ? hold->token : 0, now_ns, still, all);
}

/* --- what people do ----------------------------------------------------------------------------------------------- */

static void rob(struct hold *hold)
{
    struct fleet *fleet = hold->person->fleet;
    struct objects *objects = fleet->objects;
    if (!fault_happens("the mutex is taken away"))
        return;
    uint64_t token = hold->is_good ? hold->token : 0;
    model_of(fleet)->good_until_ns = 0;
    if (lk_mutex_forceunlock(&objects->mutex) == 0 && token > model_of(fleet)->robbed)
        model_of(fleet)->robbed = token;
}

static void hold_on(struct person *person)
{
    const struct model *model = model_of(person->fleet);
    if (model->has_long_holds && luck_onein(&person->luck, model->has_lulls ? 2 : 6))
        fleet_pause(person, luck_about(&person->luck, 5000, 40000));
    else if (luck_onein(&person->luck, 2))
        fleet_rest(person);
}

static void wait_for_signal(struct person *person)
{
    struct hold hold = { .person = person };
    struct model *model = model_of(person->fleet);
    if (!lock(&hold))
        return;
    if (model->has_robbers && hold.is_good && luck_onein(&person->luck, 6))
        rob(&hold);
    bool is_held = true;
    do
        is_held = wait_once(&hold);
    while (is_held && hold.levels == 1 && luck_onein(&person->luck, 3) && !fleet_isover(person));
    if (is_held) {
        if (luck_onein(&person->luck, 4))
            fleet_rest(person);
        unlock(&hold);
    }
}

static void wake_others(struct person *person)
{
    struct model *model = model_of(person->fleet);
    struct hold hold = { .person = person };
    if (model->has_loose_signals && luck_onein(&person->luck, 2)) {
        signal_one(person, NULL);
        return;
    }
    if (!lock(&hold))
        return;
    do
        signal_one(person, &hold);
    while (luck_onein(&person->luck, 3));
    hold_on(person);
    unlock(&hold);
}

/* In a lull nothing happens for longer than notes last that are made for who asks often. */
static void rest(struct person *person)
{
    const struct model *model = model_of(person->fleet);
    if (!model->has_lulls || luck_onein(&person->luck, 2))
        fleet_rest(person);
    else if (!model->asks_seldom[person->machine])
        fleet_pause(person, 20000 + (int64_t)luck_below(&person->luck, 40000));
}

static void act(struct person *person)
{
    struct model *model = model_of(person->fleet);
    if (__atomic_load_n(&model->quiet, __ATOMIC_ACQUIRE)) {
        rest_ms(500);
        return;
    }
    model->is_busy[person->machine][person->number] = true;
    if (luck_below(&person->luck, 8) < model->wakers || (person->machine == 0 && person->number == 0))
        wake_others(person);
    else
        wait_for_signal(person);
    model->is_busy[person->machine][person->number] = false;
    rest(person);
}

static void open_objects(struct fleet *fleet, unsigned machine)
{
    static struct objects objects;
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    (void)machine;
    attr.robust = model_of(fleet)->is_robust;
    assert_lk(0, lk_mutex_init(&objects.mutex, fleet->client, "{jobs}", &attr));
    assert_lk(0, lk_cond_init(&objects.cond, fleet->client, "{jobs}some", NULL));
    fleet->objects = &objects;
}

static void close_objects(struct fleet *fleet, unsigned machine)
{
    struct objects *objects = fleet->objects;
    (void)machine;
    assert_lk(0, lk_cond_destroy(&objects->cond));
    assert_lk(0, lk_mutex_destroy(&objects->mutex));
}

/* --- faults ------------------------------------------------------------------------------------------------------- */

static void dies(struct fleet *fleet, unsigned machine)
{
    (void)machine;
    model_of(fleet)->killing++;
}

/*
 * One that waited may have had the signal by now, as its thread was on the way back: but not while another machine
 * holds.
 */
static void died(struct fleet *fleet, unsigned machine)
{
    struct model *model = model_of(fleet);
    int64_t now_ns = true_ns();
    bool is_held = model->holder != machine && model->good_until_ns > now_ns;
    unsigned gone = 0;
    for (unsigned i = 0; i < SEATS; i++) {
        gone += model->seats[machine][i].is_taken;
        forget_seat(model, machine, i);
        model->is_busy[machine][i] = false;
    }
    for (unsigned i = 0; i < model->debt_count && gone > 0;)
        if (is_held && model->debts[i].token == model->token) {
            i++;
        } else {
            remove_debt(model, i);
            gone--;
        }
    model->killing++;
}

static void loses(struct fleet *fleet)
{
    model_of(fleet)->good_until_ns = 0;
}

static void lost(struct fleet *fleet)
{
    struct model *model = model_of(fleet);
    model->good_until_ns = 0;
    model->robbed = model->token; /* who holds it now does not, and finds out */
    model->debt_count = 0;
}

/* Somebody signalled and holds the mutex; is there another machine where somebody may have had that signal? */
static bool find_signalled(struct fleet *fleet, unsigned *machine)
{
    const struct model *model = model_of(fleet);
    if (model->good_until_ns <= true_ns() || model->debt_count == 0 ||
        model->debts[model->debt_count - 1].token != model->token)
        return false;
    for (unsigned i = 0; i < fleet->machines; i++)
        if (i != model->holder && !fleet->is_dead[i] &&
            (model->debts[model->debt_count - 1].to >> (i * SEATS) & 15) != 0) {
            *machine = i;
            return true;
        }
    return false;
}

static void kill_who_was_signalled(struct fleet *fleet)
{
    unsigned machine;
    for (int64_t until_ms = true_ms() + fleet->storm_ms / 10; true_ms() < until_ms; rest_ms(20))
        if (find_signalled(fleet, &machine)) {
            rest_ms(model_of(fleet)->has_lulls ? luck_about(&fleet->luck, 5000, 40000)
                                               : luck_about(&fleet->luck, 1, 2 * fleet->rest_most_ms));
            if (find_signalled(fleet, &machine))
                fleet_kill(fleet, machine);
            return;
        }
}

static const struct game game = { .open = open_objects,
                                  .act = act,
                                  .close = close_objects,
                                  .dies = dies,
                                  .died = died,
                                  .loses = loses,
                                  .lost = lost,
                                  .other = kill_who_was_signalled };

static const struct {
    const char *text;
    int64_t lease_ms, poll_ms;
} options[] = { { "lease=2s&command_timeout=500ms", 2000, 1000 },
                { "lease=5s&command_timeout=500ms", 5000, 1000 },
                { "lease=30s", 30000, 1000 },
                { "lease=10s&poll=300ms", 10000, 300 },
                { "lease=60s&poll=60s", 60000, 60000 },
                { "lease=30s&pubsub=no", 30000, 1000 } };
enum { SELDOM = 4, PROMPT_KINDS, KINDS }; /* the last one hears of no signal, and asks */

static void draw_options(struct luck *luck, struct fleet *fleet, struct model *model)
{
    unsigned kinds = fleet->is_faultless || model->has_lulls ? PROMPT_KINDS : KINDS;
    unsigned common = (unsigned)luck_below(luck, kinds);
    bool are_same = !model->has_lulls && luck_onein(luck, 2);
    for (unsigned i = 0; i < fleet->machines; i++) {
        unsigned kind = are_same ? common : (unsigned)luck_below(luck, kinds);
        if (model->has_lulls)
            kind = i == 0 ? common % SELDOM : i == 1 ? SELDOM : kind;
        strcpy(fleet->options[i], options[kind].text);
        model->asks_seldom[i] = options[kind].poll_ms > 1000;
        if (options[kind].lease_ms > model->lease_most_ms)
            model->lease_most_ms = options[kind].lease_ms;
        if (options[kind].poll_ms > model->poll_most_ms)
            model->poll_most_ms = options[kind].poll_ms;
    }
}

/* Few people, who do little. Half of the time, those who were signalled die. */
static void draw_lulls(struct luck *luck, struct fleet *fleet, struct model *model)
{
    model->has_lulls = true;
    fleet->is_faultless = luck_onein(luck, 2);
    fleet->machines = 2 + (unsigned)luck_below(luck, 2);
    fleet->threads = 2;
    fleet->storm_ms = 400000;
    fleet->rest_least_ms = 1000;
    fleet->rest_most_ms = 10000;
    for (enum fleet_fault fault = 0; fault < FLEET_FAULTS; fault++)
        fleet->has[fault] = fault == OTHERS && !fleet->is_faultless;
}

static void draw(struct fleet *fleet, struct model *model)
{
    struct luck luck = { ~fleet->luck.state }; /* a stream of its own */
    if (luck_onein(&luck, 3))
        draw_lulls(&luck, fleet, model);
    draw_options(&fleet->luck, fleet, model);
    model->is_robust = luck_onein(&fleet->luck, 3);
    model->has_robbers = !fleet->is_faultless && !model->has_lulls && luck_onein(&fleet->luck, 4);
    model->has_long_holds = luck_onein(&fleet->luck, 2);
    model->has_loose_signals = luck_onein(&fleet->luck, 2);
    model->has_broadcasts = luck_onein(&fleet->luck, 4); /* they end what is owed */
    model->sleepers = 2 + (unsigned)luck_below(&fleet->luck, 7);
    model->wakers = luck_onein(&fleet->luck, 2) ? 0 : 1 + (unsigned)luck_below(&fleet->luck, 3);
}

/* By then whoever waits has what it is owed: the lease of a dead holder, and two silences. */
static int64_t bound_ms(const struct model *model)
{
    int64_t poll_ms = model->poll_most_ms;
    return model->lease_most_ms + 2 * (LW_MOST_MS + poll_ms * 6 / 5);
}

static void workload(struct world *w)
{
    struct model *model = world_shared(w, sizeof *model);
    struct fleet fleet;
    fleet_draw(&fleet, w, &game, model);
    draw(&fleet, model);
    fleet_begin(&fleet);
    fleet_storm(&fleet);
    __atomic_store_n(&model->quiet, 1, __ATOMIC_RELEASE);
    int64_t longest_ms = bound_ms(model) + 40000 + fleet.rest_most_ms; /* and somebody may hold it just now */
    for (int64_t until_ms = true_ms() + longest_ms; model->debt_count > 0; rest_ms(200))
        must(true_ms() < until_ms, "%u signals arrived nowhere for %lld ms, though %u wait", model->debt_count,
             (long long)longest_ms, certain(model));
    gate_open(&fleet.state->over);
    lk_client_t *client;
    lk_cond_t cond;
    assert_lk(0, lk_client_open(&client, world_url(w, "lease=30s")));
    assert_lk(0, lk_cond_init(&cond, client, "{jobs}some", NULL));
    for (int64_t until_ms = true_ms() + longest_ms;; rest_ms(500)) {
        unsigned count = 0;
        for (unsigned i = 0; i < FLEET_MACHINES; i++)
            for (unsigned n = 0; n < SEATS; n++)
                count += model->is_busy[i][n];
        if (count == 0)
            break;
        must(true_ms() < until_ms, "%u wait or lock, whatever is broadcast", count);
        assert_lk(0, lk_cond_broadcast(&cond));
    }
    assert_lk(0, lk_cond_destroy(&cond));
    assert_lk(0, lk_client_close(client));
    fleet_end(&fleet);
}

int main(void)
{
    return workload_run("--appendonly yes --appendfsync no", workload);
}
