/* SPDX-License-Identifier: MIT */
/*
 * barriers.c - threads of a few machines meet at barriers: a round opens when all came, for all of them, and one is the
 * serial party; a round of which one died or left breaks
 *
 * Parties go in step: who is told anything else than that all came leaves, and a new series begins when all have.
 */
#include "fleet.h"

#include <stdio.h>
#include <string.h>

enum { ROUNDS = 4096, NAMES = 3, PROMPT_MS = 700, POLL_MS = 1000, LW_MS = 20000 };

struct party {
    bool is_ready;   /* for the next series */
    unsigned series; /* that it takes part in */
    unsigned round;  /* that it came to last, from 1 on */
    int64_t came_ns; /* to that round: its call began */
    bool is_in;      /* its call did not return */
};

/* The round that is under way, and what its parties were told. */
struct round {
    unsigned passed, refused, serial, unknown;
    int64_t last_came_ns;
};

struct model {
    struct party parties[FLEET_MACHINES][FLEET_THREADS];
    struct round rounds[ROUNDS];
    unsigned series, loss;           /* the present one; what the server had lost when it began */
    int is_broken;                   /* 1: somebody left it */
    int64_t died_ns[FLEET_MACHINES]; /* in this series; 0: it lives */
    int64_t passed;                  /* parties, of all rounds */
    int64_t lease_ms;
    unsigned limits; /* of 8 waits */
    bool has_short_limits, destroys;
};

struct objects {
    lk_barrier_t barriers[NAMES];
};

static struct model *model_of(const struct fleet *fleet)
{
    return fleet->shared;
}

static unsigned parties_of(const struct fleet *fleet)
{
    return fleet->machines * fleet->threads;
}

static void make(struct fleet *fleet, unsigned which)
{
    struct objects *objects = fleet->objects;
    char name[16];
    snprintf(name, sizeof name, "meet%u", which);
    assert_lk(0, lk_barrier_init(&objects->barriers[which], fleet->client, name, parties_of(fleet), NULL));
}

/* --- what a code means -------------------------------------------------------------------------------------------- */

/* All came, those that died included: but who died came while its lease lasted. */
static void judge_passed(struct fleet *fleet, struct party *me, const struct round *round)
{
    const struct model *model = model_of(fleet);
    for (unsigned i = 0; i < fleet->machines; i++)
        for (unsigned n = 0; n < fleet->threads; n++) {
            const struct party *party = &model->parties[i][n];
            if (model->died_ns[i] == 0)
                must(party->series == me->series && party->round >= me->round,
                     "a party passed, and party %u of machine %u did not come", n, i);
            else
                must(party->round > me->round ||
                         (party->round == me->round &&
                          round->last_came_ns < model->died_ns[i] + (model->lease_ms * 102 / 100 + 100) * 1000000),
                     "a party passed, and party %u of machine %u was dead before all came", n, i);
        }
    must(round->refused == 0, "a party passed, and another one was told that not all came");
}

static void judge_prompt(struct fleet *fleet, const struct round *round, int64_t now_ns)
{
    must(!fleet->is_faultless || now_ns - round->last_came_ns < PROMPT_MS * 1000000LL,
         "the last party came %lld ms before another one was let go",
         (long long)(now_ns - round->last_came_ns) / 1000000);
}

static bool is_calm(const struct fleet *fleet)
{
    return __atomic_load_n(&fleet->state->calm, __ATOMIC_ACQUIRE) != 0;
}

static bool is_allowed(const struct fleet *fleet, int code)
{
    switch (code) {
    case 0:
    case LK_BARRIER_SERIAL:
    case ETIMEDOUT:
    case ECANCELED:
        return true;
    case ESTALE: /* also of who was silent for a lease, or for two resets, and whose round is gone since */
    case EIO:
    case ENOTCONN:
        return !fleet->is_faultless;
    default:
        return false;
    }
}

static void judge(struct fleet *fleet, struct party *me, int code, bool has_limit)
{
    struct model *model = model_of(fleet);
    struct round *round = &model->rounds[me->round % ROUNDS];
    int64_t now_ns = true_ns();
    must(is_allowed(fleet, code) || (code == ESTALE && model->is_broken), "a party was told %s", code_name(code));
    must(has_limit || code != ETIMEDOUT, "a party without a limit was told ETIMEDOUT");
    if (!fleet_kept(fleet, model->loss))
        return;
    if (code == 0 || code == LK_BARRIER_SERIAL) {
        judge_passed(fleet, me, round);
        judge_prompt(fleet, round, now_ns);
        round->passed++;
        round->serial += code == LK_BARRIER_SERIAL;
        must(round->serial <= 1, "a round has two serial parties");
        must(round->serial == 1 || round->passed < parties_of(fleet), "a round has no serial party");
    } else if (code == ETIMEDOUT || code == ECANCELED) {
        must(round->passed == 0, "a party was told %s of a round that others passed", code_name(code));
        must(!fleet->is_faultless || model->limits > 0 || is_calm(fleet),
             "a party was told %s, though none has a limit, without a fault", code_name(code));
        round->refused++;
    } else {
        round->unknown++;
    }
}

/* --- what people do ----------------------------------------------------------------------------------------------- */

static int64_t draw_limit(struct person *person)
{
    const struct fleet *fleet = person->fleet;
    const struct model *model = model_of(fleet);
    if (is_calm(fleet))
        return 15000 + fleet->rest_most_ms;
    bool may_be_unsure = fleet->has[TROUBLES_OF_THE_WORLD] || fleet->has[FREEZES] || fleet->has[BLOWS] ||
                         fleet->has[STANDSTILLS] ||
                         fleet->has[RESTARTS]; /* one who was told EIO may not have come, and then others wait for it */
    if (luck_below(&person->luck, 8) >= model->limits)
        return may_be_unsure ? fleet->rest_most_ms + 40000 : LK_FOREVER;
    if (model->has_short_limits)
        return luck_about(&person->luck, 1, fleet->rest_most_ms);
    return fleet->rest_most_ms + luck_about(&person->luck, 1, 20000);
}

static void meet(struct person *person, struct party *me)
{
    struct fleet *fleet = person->fleet;
    struct model *model = model_of(fleet);
    struct objects *objects = fleet->objects;
    int64_t limit_ms = draw_limit(person);
    unsigned which = (me->round + 1) % NAMES;
    me->came_ns = true_ns();
    me->round++;
    me->is_in = true;
    struct round *round = &model->rounds[me->round % ROUNDS];
    if (me->came_ns > round->last_came_ns)
        round->last_came_ns = me->came_ns;
    int code = limit_ms == LK_FOREVER ? lk_barrier_wait(&objects->barriers[which])
                                      : lk_barrier_waitfor(&objects->barriers[which], limit_ms);
    judge(fleet, me, code, limit_ms != LK_FOREVER);
    me->is_in = false;
    if (code == LK_BARRIER_SERIAL && model->destroys && !model->is_broken) {
        assert_lk(0, lk_barrier_destroy(&objects->barriers[which]));
        make(fleet, which);
    }
    if (code == 0 || code == LK_BARRIER_SERIAL)
        model->passed++;
    else
        model->is_broken = 1;
}

static bool are_all_ready(const struct fleet *fleet)
{
    const struct model *model = model_of(fleet);
    for (unsigned i = 0; i < fleet->machines; i++)
        for (unsigned n = 0; n < fleet->threads; n++)
            if (!model->parties[i][n].is_ready)
                return false;
    return true;
}

/* Also lets those go who wait for one that died elsewhere. */
static void reset(struct fleet *fleet)
{
    struct objects *objects = fleet->objects;
    for (unsigned i = 0; i < NAMES; i++)
        for (int code; (code = lk_barrier_reset(&objects->barriers[i])) != 0; rest_ms(50)) {
            must(!fleet->is_faultless && (code == EIO || code == ENOTCONN), "a reset returned %s", code_name(code));
            int64_t settles_ms = lk_errorsettles();
            rest_ms(settles_ms > 0 ? settles_ms : 0);
        }
}

/* One of them begins the next series, when all are there. */
static void begin_series(struct fleet *fleet)
{
    struct model *model = model_of(fleet);
    unsigned loss = fleet_loss(fleet);
    if (!are_all_ready(fleet) || loss % 2 != 0)
        return;
    memset(model->rounds, 0, sizeof model->rounds);
    memset(model->died_ns, 0, sizeof model->died_ns);
    for (unsigned i = 0; i < fleet->machines; i++)
        for (unsigned n = 0; n < fleet->threads; n++)
            model->parties[i][n] = (struct party){ .series = model->series + 1 };
    model->loss = loss;
    model->is_broken = 0;
    model->series++;
}

/* One resets: a party that is told of several resets at once cannot know how its round ended. */
static bool is_first_ready(const struct person *person)
{
    const struct model *model = model_of(person->fleet);
    for (unsigned i = 0; i < person->machine; i++)
        if (model->parties[i][0].is_ready)
            return false;
    return person->number == 0;
}

static void act(struct person *person)
{
    struct model *model = model_of(person->fleet);
    struct party *me = &model->parties[person->machine][person->number];
    if (me->series == model->series && me->series > 0 && !model->is_broken && !me->is_ready) {
        fleet_rest(person);
        if (!model->is_broken && me->series == model->series && !fleet_isover(person))
            meet(person, me);
        return;
    }
    me->is_ready = true;
    if (is_first_ready(person)) {
        bool are_ready = person->machine == 0 && are_all_ready(person->fleet);
        reset(person->fleet);
        if (are_ready)
            begin_series(person->fleet);
        else
            rest_ms(1000);
    }
    rest_ms(20);
}

static void open_objects(struct fleet *fleet, unsigned machine)
{
    static struct objects objects;
    (void)machine;
    fleet->objects = &objects;
    for (unsigned i = 0; i < NAMES; i++)
        make(fleet, i);
}

static void close_objects(struct fleet *fleet, unsigned machine)
{
    struct objects *objects = fleet->objects;
    (void)machine;
    for (unsigned i = 0; i < NAMES; i++)
        assert_lk(0, lk_barrier_destroy(&objects->barriers[i]));
}

/* --- faults ------------------------------------------------------------------------------------------------------- */

static void dies(struct fleet *fleet, unsigned machine)
{
    model_of(fleet)->is_broken = 1;
    model_of(fleet)->died_ns[machine] = INT64_MAX / 2;
    for (unsigned n = 0; n < fleet->threads; n++)
        model_of(fleet)->parties[machine][n].is_ready = false;
}

static void died(struct fleet *fleet, unsigned machine)
{
    model_of(fleet)->died_ns[machine] = true_ns();
    for (unsigned n = 0; n < fleet->threads; n++)
        model_of(fleet)->parties[machine][n].is_ready = model_of(fleet)->parties[machine][n].is_in = false;
}

static void lose(struct fleet *fleet)
{
    model_of(fleet)->is_broken = 1;
}

static const struct game game = {
    .open = open_objects, .act = act, .close = close_objects, .dies = dies, .died = died, .loses = lose, .lost = lose
};

static void draw(struct fleet *fleet, struct model *model)
{
    static const struct {
        const char *text;
        int64_t lease_ms;
    } options[] = { { "lease=2s&command_timeout=500ms", 2000 },
                    { "lease=5s&command_timeout=1s", 5000 },
                    { "lease=30s", 30000 } };
    unsigned kind = (unsigned)luck_below(&fleet->luck, 3);
    for (unsigned i = 0; i < fleet->machines; i++)
        strcpy(fleet->options[i], options[kind].text);
    model->lease_ms = options[kind].lease_ms;
    model->limits = luck_onein(&fleet->luck, 3) ? 0 : (unsigned)luck_below(&fleet->luck, 9);
    model->has_short_limits = luck_onein(&fleet->luck, 3);
    model->destroys = luck_onein(&fleet->luck, 2);
    if (model->has_short_limits && fleet->rest_most_ms > 5000)
        fleet->rest_most_ms = 5000;
}

static void workload(struct world *w)
{
    struct model *model = world_shared(w, sizeof *model);
    struct fleet fleet;
    fleet_draw(&fleet, w, &game, model);
    draw(&fleet, model);
    fleet_begin(&fleet);
    fleet_storm(&fleet);
    int64_t passed = model->passed,
            longest_ms = 2 * model->lease_ms + POLL_MS * 2 + 2 * LW_MS + 3 * fleet.rest_most_ms + 70000;
    for (int64_t until_ms = true_ms() + longest_ms; model->passed < passed + 2 * (int64_t)parties_of(&fleet);
         rest_ms(100))
        must(true_ms() < until_ms, "no round passed for %lld ms", (long long)longest_ms);
    fleet_end(&fleet);
}

int main(void)
{
    return workload_run("--appendonly yes --appendfsync no", workload);
}
