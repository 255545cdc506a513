/* SPDX-License-Identifier: MIT */
/*
 * runs.c - threads of a few machines have work done once: one runs it at a time, it is done once, and what it
 * resulted in is the same for all, until somebody resets it
 *
 * The model numbers what lies between two resets: a series. What is seen while a reset is under way belongs to none.
 */
#include "fleet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROMPT_MS = 700, POLL_MS = 1000 };

struct model {
    uint64_t token;          /* the largest of a run */
    int64_t good_until_ns;   /* until then somebody believes that it runs; 0: nobody */
    unsigned series, resets; /* resets: that are under way */
    uint64_t done;           /* the token of the run that is done for sure; 0: none */
    uint64_t ends_begun;     /* how often an end was sent that may count in this series */
    uint64_t ending;         /* of these such as may still take effect */
    uint64_t result;         /* what others were told first; 0: nothing yet */
    int64_t done_ns, died_ns, served;
    bool may_reset;
    int64_t lease_ms;
};

struct objects {
    lk_once_t once;
};

struct look {
    unsigned series, loss;
};

static struct model *model_of(const struct fleet *fleet)
{
    return fleet->shared;
}

static struct look look_at(const struct fleet *fleet)
{
    return (struct look){ model_of(fleet)->series, fleet_loss(fleet) };
}

/* No reset since, and no data lost. */
static bool is_same(const struct fleet *fleet, struct look then)
{
    const struct model *model = model_of(fleet);
    return model->resets == 0 && model->series == then.series && fleet_kept(fleet, then.loss);
}

static bool is_known(const struct fleet *fleet, const char *call, int code, int more)
{
    must(code == 0 || code == more || (!fleet->is_faultless && (code == EIO || code == ENOTCONN)), "%s returned %s",
         call, code_name(code));
    return code == 0;
}

static void check_result(struct person *person, struct look then)
{
    struct fleet *fleet = person->fleet;
    struct model *model = model_of(fleet);
    bool was_done = model->done != 0;
    char *text;
    int code = lk_once_result(&((struct objects *)fleet->objects)->once, &text);
    if (code == ENOENT)
        must(!was_done || !is_same(fleet, then), "what is done has no result");
    if (!is_known(fleet, "lk_once_result()", code, ENOENT))
        return;
    uint64_t result = strtoull(text, NULL, 10);
    lk_free(text);
    if (!is_same(fleet, then))
        return;
    must(model->ends_begun > 0, "there is a result, and nobody said one");
    must(model->result == 0 || model->result == result, "the result was %llu, and is %llu",
         (unsigned long long)model->result, (unsigned long long)result);
    must(model->done == 0 || model->done == result, "run %llu is done, and the result is that of run %llu",
         (unsigned long long)model->done, (unsigned long long)result);
    model->result = result;
}

static void end_it(struct person *person, struct look then, uint64_t token)
{
    struct fleet *fleet = person->fleet;
    struct model *model = model_of(fleet);
    lk_once_t *once = &((struct objects *)fleet->objects)->once;
    char text[32];
    bool was_followed = model->token > token, is_kept = is_same(fleet, then);
    model->good_until_ns = model->token == token ? 0 : model->good_until_ns;
    if (luck_onein(&person->luck, 4)) {
        int code = lk_once_fail(once);
        is_known(fleet, "lk_once_fail()", code, fleet->is_faultless ? 0 : ESTALE);
        return;
    }
    snprintf(text, sizeof text, "%llu", (unsigned long long)token);
    model->ends_begun++;
    model->ending++;
    int code = lk_once_end(once, text);
    model->ending -= (code == 0 || code == ESTALE) && model->resets == 0 && model->series == then.series;
    if (!is_known(fleet, "lk_once_end()", code, fleet->is_faultless ? 0 : ESTALE))
        return;
    must(!was_followed || !is_kept, "run %llu was done when run %llu had begun", (unsigned long long)token,
         (unsigned long long)model->token);
    if (!is_same(fleet, then))
        return;
    must(model->done == 0, "it is done twice, by run %llu and by run %llu", (unsigned long long)model->done,
         (unsigned long long)token);
    must(model->result == 0 || model->result == token, "run %llu is done, and the result was %llu",
         (unsigned long long)token, (unsigned long long)model->result);
    model->done = token;
    model->done_ns = true_ns();
}

static void run(struct person *person, struct look then, bool was_done)
{
    struct fleet *fleet = person->fleet;
    struct model *model = model_of(fleet);
    lk_once_t *once = &((struct objects *)fleet->objects)->once;
    uint64_t token = 0;
    int64_t asked_ns = true_ns(), left_ms = 0;
    must(!was_done || !is_same(fleet, then), "what is done is run again");
    if (lk_once_token(once, &token) != 0 || lk_once_remaining(once, &left_ms) != 0) {
        must(!fleet->is_faultless, "a run is lost without a fault");
        lk_once_fail(once);
        return;
    }
    int64_t until_ns = asked_ns + left_ms * 990000;
    if (is_same(fleet, then) && true_ns() < until_ns) {
        must(model->good_until_ns <= asked_ns, "two run it at once");
        must(token > model->token, "run %llu follows run %llu", (unsigned long long)token,
             (unsigned long long)model->token);
        model->good_until_ns = until_ns;
    }
    if (token > model->token)
        model->token = token;
    fleet_rest(person);
    end_it(person, then, token);
}

static void begin(struct person *person)
{
    struct fleet *fleet = person->fleet;
    struct model *model = model_of(fleet);
    lk_once_t *once = &((struct objects *)fleet->objects)->once;
    struct look then = look_at(fleet);
    bool was_done = model->done != 0 && model->resets == 0;
    bool is_calm = __atomic_load_n(&fleet->state->calm, __ATOMIC_ACQUIRE) != 0;
    int64_t began_ns = true_ns();
    int code = lk_once_begin(once, is_calm ? 5000 : luck_about(&person->luck, 1, 30000));
    int64_t now_ns = true_ns();
    if (code == 0) {
        model->served = now_ns;
        run(person, then, was_done);
        return;
    }
    must(code == EALREADY || code == ETIMEDOUT || (!fleet->is_faultless && (code == EIO || code == ENOTCONN)),
         "lk_once_begin() returned %s", code_name(code));
    if (code == EALREADY) {
        model->served = now_ns;
        if (!is_same(fleet, then))
            return;
        must(model->ends_begun > 0, "it is said to be done, and nobody said so");
        must(!fleet->is_faultless || model->done == 0 || model->done_ns < began_ns ||
                 now_ns - model->done_ns < PROMPT_MS * 1000000LL,
             "it was done %lld ms before who waited was told", (long long)(now_ns - model->done_ns) / 1000000);
    } else if (code == ETIMEDOUT && is_same(fleet, then)) {
        must(!was_done, "somebody is said to run what is done");
    }
}

/* A reset that was done forgets what was said before. What is still on its way counts. */
static void begin_series(struct model *model, bool is_forgotten)
{
    model->done = model->result = 0;
    if (is_forgotten)
        model->ends_begun = model->ending;
    model->good_until_ns = 0;
    model->series++;
}

static void reset(struct person *person)
{
    struct fleet *fleet = person->fleet;
    struct model *model = model_of(fleet);
    if (model->resets > 0)
        return;
    model->resets++;
    int code = lk_once_reset(&((struct objects *)fleet->objects)->once);
    is_known(fleet, "lk_once_reset()", code, ENOENT);
    if (code == EIO)
        rest_ms(35000); /* a copy may still come; perhaps none does */
    if (code == ENOTCONN)
        model->series++; /* nothing was done */
    else
        begin_series(model, code != EIO);
    model->resets--;
}

static void act(struct person *person)
{
    struct model *model = model_of(person->fleet);
    if (model->may_reset && person->machine == 0 && person->number == 0 && luck_onein(&person->luck, 2))
        reset(person);
    else if (luck_onein(&person->luck, 4))
        check_result(person, look_at(person->fleet));
    else
        begin(person);
    fleet_rest(person);
}

static void open_objects(struct fleet *fleet, unsigned machine)
{
    static struct objects objects;
    (void)machine;
    assert_lk(0, lk_once_init(&objects.once, fleet->client, "migrated", NULL));
    fleet->objects = &objects;
}

static void close_objects(struct fleet *fleet, unsigned machine)
{
    (void)machine;
    assert_lk(0, lk_once_destroy(&((struct objects *)fleet->objects)->once));
}

static void nothing(struct fleet *fleet, unsigned machine)
{
    (void)fleet;
    (void)machine;
}

/* Its reset may still come. */
static void died(struct fleet *fleet, unsigned machine)
{
    struct model *model = model_of(fleet);
    if (machine != 0 || model->resets == 0)
        return;
    rest_ms(35000);
    begin_series(model, false);
    model->resets = 0;
}

static void lose(struct fleet *fleet)
{
    begin_series(model_of(fleet), true);
}

static const struct game game = {
    .open = open_objects, .act = act, .close = close_objects, .dies = nothing, .died = died, .loses = lose, .lost = lose
};

static void workload(struct world *w)
{
    static const struct {
        const char *text;
        int64_t lease_ms;
    } options[] = { { "lease=2s&command_timeout=500ms", 2000 },
                    { "lease=5s&command_timeout=1s", 5000 },
                    { "lease=30s", 30000 } };
    struct model *model = world_shared(w, sizeof *model);
    struct fleet fleet;
    fleet_draw(&fleet, w, &game, model);
    for (unsigned i = 0; i < fleet.machines; i++) {
        unsigned kind = (unsigned)luck_below(&fleet.luck, 3);
        strcpy(fleet.options[i], options[kind].text);
        if (options[kind].lease_ms > model->lease_ms)
            model->lease_ms = options[kind].lease_ms;
    }
    model->may_reset = !luck_onein(&fleet.luck, 4);
    fleet_begin(&fleet);
    fleet_storm(&fleet);
    int64_t from_ns = true_ns(), longest_ms = model->lease_ms + 20 * POLL_MS + 20 * fleet.rest_most_ms + 40000;
    for (; model->served < from_ns; rest_ms(100))
        must(true_ns() - from_ns < longest_ms * 1000000, "nobody ran it or was told that it is done for %lld ms",
             (long long)longest_ms);
    fleet_end(&fleet);
}

int main(void)
{
    return workload_run("--appendonly yes --appendfsync no", workload);
}
