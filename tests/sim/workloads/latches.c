/* SPDX-License-Identifier: MIT */
/*
 * latches.c - threads of a few machines set, count down and wait for latches: one opens when its count is used up,
 * for all who waited for it, and not before
 *
 * Each latch has one thread that sets and deletes it. A countdown has begun before it is sent; it is done when it
 * says so. One that is still under way when a latch is deleted and set again may lower the new count.
 */
#include "fleet.h"

#include <stdio.h>
#include <string.h>

enum { LATCHES = 3, COUNTS = 16, NAMES = 64, PROMPT_MS = 700 };
enum { CALLS = 64, COUNTDOWN_MS = 31000, OTHER_MS = 2100 }; /* how long what a dead machine sent may take effect */

enum state { NONE, BEING_SET, IS_SET, UNSURE };

/* A countdown that may take effect until then; INT64_MAX: it is under way. */
struct call {
    unsigned by, machine;
    int64_t until_ns;
};

struct latch {
    struct call calls[CALLS];
    enum state state;
    int64_t settles_ns;          /* until then a set or a delete may take effect */
    unsigned generation, doubts; /* counts that were set; how often it was deleted, or nobody knew */
    unsigned n, begun, done, loss;
    int64_t opened_ns[COUNTS]; /* of a generation */
};

struct model {
    struct latch latches[LATCHES];
    char names[NAMES][64]; /* of anonymous ones */
    unsigned name_count;
    int64_t lease_ms, opened;
    bool has_deletions;
};

struct objects {
    lk_latch_t latches[LATCHES];
};

static struct model *model_of(const struct fleet *fleet)
{
    return fleet->shared;
}

static bool is_unknown(const struct fleet *fleet, int code)
{
    must(code == 0 || !fleet->is_faultless, "a call for a latch returned %s", code_name(code));
    must(code == 0 || code == EIO || code == ENOTCONN, "a call for a latch returned %s", code_name(code));
    return code != 0;
}

/* Until then what a failed call asked for may take effect. */
static int64_t settled_ns(void)
{
    int64_t settles_ms = lk_errorsettles();
    return true_ns() + (settles_ms > 0 ? settles_ms * 101 / 100 + 1 : 0) * 1000000LL;
}

/* --- who sets it -------------------------------------------------------------------------------------------------- */

static void delete_it(struct fleet *fleet, struct latch *latch, lk_latch_t *handle)
{
    latch->state = UNSURE;
    latch->doubts++;
    int code = lk_latch_delete(handle);
    if (code == ENOENT || !is_unknown(fleet, code))
        latch->state = NONE;
    else
        latch->settles_ns = settled_ns();
}

/* How much countdowns that have begun by now may lower the next count. */
static unsigned under_way(const struct latch *latch)
{
    int64_t now_ns = true_ns();
    unsigned sum = 0;
    for (unsigned i = 0; i < CALLS; i++)
        sum += latch->calls[i].until_ns > now_ns ? latch->calls[i].by : 0;
    return sum;
}

static void set_it(struct person *person, struct latch *latch, lk_latch_t *handle)
{
    unsigned n = 1 + (unsigned)luck_below(&person->luck, 5), loss = fleet_loss(person->fleet);
    latch->state = BEING_SET;
    unsigned begun = under_way(latch);
    int code = lk_latch_trysetcount(handle, n);
    bool is_sure = code == 0 && fleet_kept(person->fleet, loss) && latch->state == BEING_SET;
    must(code != EEXIST || !person->fleet->is_faultless, "a latch that is open has a count");
    if (code != EEXIST && is_unknown(person->fleet, code))
        latch->settles_ns = settled_ns();
    if (!is_sure) {
        latch->state = UNSURE;
        latch->doubts++;
        return;
    }
    latch->generation++;
    latch->opened_ns[latch->generation % COUNTS] = 0;
    latch->n = n;
    latch->begun = begun;
    latch->done = 0;
    latch->loss = loss;
    latch->state = IS_SET;
}

static void lead(struct person *person, unsigned which)
{
    struct fleet *fleet = person->fleet;
    struct model *model = model_of(fleet);
    struct latch *latch = &model->latches[which];
    lk_latch_t *handle = &((struct objects *)fleet->objects)->latches[which];
    if (true_ns() < latch->settles_ns)
        return;
    if (latch->state == UNSURE || latch->state == BEING_SET || !fleet_kept(fleet, latch->loss)) {
        unsigned loss = fleet_loss(fleet);
        delete_it(fleet, latch, handle);
        latch->loss = loss;
    } else if (latch->state == NONE || latch->done >= latch->n) {
        set_it(person, latch, handle);
    } else if (latch->begun >= latch->n || (model->has_deletions && luck_onein(&person->luck, 8))) {
        delete_it(fleet, latch, handle); /* a countdown may have got lost */
    }
}

/* --- who counts, and who waits ------------------------------------------------------------------------------------ */

struct look {
    unsigned generation, doubts;
};

static struct look look_at(const struct latch *latch)
{
    return (struct look){ latch->generation, latch->doubts };
}

static bool is_same(const struct fleet *fleet, const struct latch *latch, struct look then)
{
    return latch->state == IS_SET && latch->generation == then.generation && latch->doubts == then.doubts &&
           fleet_kept(fleet, latch->loss);
}

static struct call *free_call(struct latch *latch, int64_t now_ns)
{
    for (unsigned i = 0; i < CALLS; i++)
        if (latch->calls[i].until_ns <= now_ns)
            return &latch->calls[i];
    return NULL;
}

static void count_down(struct person *person, struct latch *latch, lk_latch_t *handle)
{
    struct fleet *fleet = person->fleet;
    unsigned by = luck_onein(&person->luck, 4) ? 2 : 1;
    struct call *call = free_call(latch, true_ns());
    struct look then = look_at(latch);
    if (call == NULL || !is_same(fleet, latch, then) || latch->begun >= latch->n)
        return;
    *call = (struct call){ by, person->machine, INT64_MAX };
    latch->begun += by;
    int code = by == 1 ? lk_latch_countdown(handle) : lk_latch_countdownby(handle, by);
    call->until_ns = code == EIO ? settled_ns() : 0;
    if (!is_same(fleet, latch, then)) {
        must(code == 0 || code == ENOENT || code == EIO || code == ENOTCONN, "a countdown returned %s",
             code_name(code));
        return;
    }
    if (code == ENOENT) {
        must(latch->begun - by >= latch->n, "a countdown found no count, and %u of %u were counted", latch->begun - by,
             latch->n);
        latch->begun -= by;
    } else if (!is_unknown(fleet, code)) {
        latch->done += by;
        if (latch->done >= latch->n && latch->opened_ns[latch->generation % COUNTS] == 0) {
            latch->opened_ns[latch->generation % COUNTS] = true_ns();
            model_of(fleet)->opened++;
        }
    } else if (code == ENOTCONN) {
        latch->begun -= by;
    }
}

static void wait_for(struct person *person, struct latch *latch, lk_latch_t *handle)
{
    struct fleet *fleet = person->fleet;
    struct look then = look_at(latch);
    if (!is_same(fleet, latch, then))
        return;
    bool was_open = latch->done >= latch->n;
    int64_t began_ns = true_ns();
    bool is_calm = __atomic_load_n(&fleet->state->calm, __ATOMIC_ACQUIRE) != 0;
    int code = lk_latch_waitfor(handle, is_calm ? 5000 : luck_about(&person->luck, 1, 30000));
    int64_t now_ns = true_ns(), opened_ns = latch->opened_ns[then.generation % COUNTS];
    bool is_sure =
        latch->doubts == then.doubts && fleet_kept(fleet, latch->loss) && latch->generation < then.generation + COUNTS;
    must(code == 0 || code == ETIMEDOUT || code == EIO || code == ENOTCONN || !is_sure,
         "a wait for a latch that was set returned %s", code_name(code));
    must(code == 0 || code == ETIMEDOUT || !fleet->is_faultless || !is_sure, "a wait for a latch returned %s",
         code_name(code));
    if (!is_sure)
        return;
    if (code == 0 && is_same(fleet, latch, then))
        must(latch->begun >= latch->n, "a latch opened when %u of %u were counted", latch->begun, latch->n);
    must(code != ETIMEDOUT || !was_open || !is_same(fleet, latch, then), "a latch that was open is not");
    must(!fleet->is_faultless || opened_ns == 0 || now_ns - opened_ns < PROMPT_MS * 1000000LL ||
             opened_ns - began_ns < PROMPT_MS * 1000000LL,
         "a latch opened %lld ms before who waited for it was told", (long long)(now_ns - opened_ns) / 1000000);
}

static void read_count(struct fleet *fleet, struct latch *latch, lk_latch_t *handle)
{
    struct look then = look_at(latch);
    unsigned done = latch->done, count;
    if (!is_same(fleet, latch, then) || is_unknown(fleet, lk_latch_getcount(handle, &count)) ||
        !is_same(fleet, latch, then))
        return;
    must(count + latch->begun >= latch->n, "%u are left of %u, and %u were counted", count, latch->n, latch->begun);
    must(count <= (latch->n > done ? latch->n - done : 0), "%u are left of %u, though %u were counted", count, latch->n,
         done);
}

/* Of one that nobody ever set nothing is known. Threads have names of their own, because none is destroyed while one waits. */
static void ask_for_none(struct person *person)
{
    lk_latch_t latch;
    char name[32];
    snprintf(name, sizeof name, "never%u-%u", person->number, (unsigned)luck_below(&person->luck, 1000));
    assert_lk(0, lk_latch_init(&latch, person->fleet->client, name, NULL));
    int code = luck_onein(&person->luck, 2) ? lk_latch_waitfor(&latch, 50) : lk_latch_countdown(&latch);
    must(code == ENOENT || (!person->fleet->is_faultless && (code == EIO || code == ENOTCONN)),
         "of a latch without a count is said %s", code_name(code));
    assert_lk(0, lk_latch_destroy(&latch));
}

/* One without a name: gone with its last user. */
static void use_anonymous(struct person *person)
{
    struct fleet *fleet = person->fleet;
    struct model *model = model_of(fleet);
    lk_latchattr_t attr = LK_LATCHATTR_INIT;
    lk_latch_t latch, again;
    char name[64];
    attr.anonymous = 1;
    assert_lk(0, lk_latch_init(&latch, fleet->client, NULL, &attr));
    snprintf(name, sizeof name, "%s", latch.lk_name);
    if (model->name_count < NAMES)
        memcpy(model->names[model->name_count++], name, sizeof name);
    for (unsigned i = 0; i < 3; i++) {
        int code = luck_onein(&person->luck, 2) ? lk_latch_trysetcount(&latch, 1) : lk_latch_setcount(&latch, 1);
        fleet_rest(person);
        if (code == 0)
            code = lk_latch_countdown(&latch);
        if (code == 0)
            code = lk_latch_waitfor(&latch, 100);
        must(code == 0 || !fleet->is_faultless, "a call for an anonymous latch returned %s", code_name(code));
    }
    assert_lk(0, lk_latch_destroy(&latch));
    if (!fleet->is_faultless)
        return;
    rest_ms(1000);
    assert_lk(0, lk_latch_init(&again, fleet->client, name, NULL));
    int code = lk_latch_waitfor(&again, 0);
    must(code == ENOENT, "a second after its end an anonymous latch is known: %s", code_name(code));
    assert_lk(0, lk_latch_destroy(&again));
}

static void act(struct person *person)
{
    struct fleet *fleet = person->fleet;
    struct objects *objects = fleet->objects;
    unsigned which = (unsigned)luck_below(&person->luck, LATCHES);
    struct latch *latch = &model_of(fleet)->latches[which];
    if (person->number == 0)
        for (unsigned i = 0; i < LATCHES; i++)
            if (i % fleet->machines == person->machine)
                lead(person, i);
    switch (luck_below(&person->luck, 16)) {
    case 0:
        ask_for_none(person);
        break;
    case 1:
        use_anonymous(person);
        break;
    case 2:
    case 3:
        read_count(fleet, latch, &objects->latches[which]);
        break;
    case 4:
    case 5:
    case 6:
    case 7:
    case 8:
        wait_for(person, latch, &objects->latches[which]);
        break;
    default:
        count_down(person, latch, &objects->latches[which]);
        break;
    }
    fleet_rest(person);
}

static void open_objects(struct fleet *fleet, unsigned machine)
{
    static struct objects objects;
    (void)machine;
    for (unsigned i = 0; i < LATCHES; i++) {
        char name[16];
        snprintf(name, sizeof name, "loaded%u", i);
        assert_lk(0, lk_latch_init(&objects.latches[i], fleet->client, name, NULL));
    }
    fleet->objects = &objects;
}

static void close_objects(struct fleet *fleet, unsigned machine)
{
    (void)machine;
    for (unsigned i = 0; i < LATCHES; i++)
        assert_lk(0, lk_latch_destroy(&((struct objects *)fleet->objects)->latches[i]));
}

/* What was under way of it is not known. */
static void doubt(struct fleet *fleet, unsigned machine)
{
    int64_t now_ns = true_ns();
    for (struct latch *latch = model_of(fleet)->latches; latch < model_of(fleet)->latches + LATCHES; latch++)
        for (unsigned i = 0; i < CALLS; i++)
            if (latch->calls[i].machine == machine && latch->calls[i].until_ns == INT64_MAX)
                latch->calls[i].until_ns = now_ns + COUNTDOWN_MS * 1000000LL;
    for (unsigned i = 0; i < LATCHES; i++)
        if (i % fleet->machines == machine && model_of(fleet)->latches[i].state != IS_SET) {
            model_of(fleet)->latches[i].state = UNSURE;
            model_of(fleet)->latches[i].settles_ns = now_ns + OTHER_MS * 1000000LL;
            model_of(fleet)->latches[i].doubts++;
        }
}

static void doubt_all(struct fleet *fleet)
{
    for (unsigned i = 0; i < LATCHES; i++) {
        model_of(fleet)->latches[i].state = UNSURE;
        model_of(fleet)->latches[i].doubts++;
    }
}

static const struct game game = { .open = open_objects,
                                  .act = act,
                                  .close = close_objects,
                                  .dies = doubt,
                                  .died = doubt,
                                  .loses = doubt_all,
                                  .lost = doubt_all };

static void workload(struct world *w)
{
    static const char *const options[] = { "lease=2s&command_timeout=500ms", "lease=5s&command_timeout=1s",
                                           "lease=30s" };
    static const char *const lasting = "local k=redis.call('KEYS',ARGV[1])for i=1,#k do if redis.call('PTTL',k[i])==-1 "
                                       "then return k[i]end end return''";
    struct model *model = world_shared(w, sizeof *model);
    struct fleet fleet;
    fleet_draw(&fleet, w, &game, model);
    for (unsigned i = 0; i < fleet.machines; i++)
        strcpy(fleet.options[i], options[luck_below(&fleet.luck, 3)]);
    model->has_deletions = luck_onein(&fleet.luck, 3);
    fleet_begin(&fleet);
    fleet_storm(&fleet);
    int64_t opened = model->opened, longest_ms = 60000 + 200 * fleet.rest_most_ms;
    for (int64_t until_ms = true_ms() + longest_ms; model->opened == opened; rest_ms(100))
        must(true_ms() < until_ms, "no latch opened for %lld ms", (long long)longest_ms);
    fleet_end(&fleet);
    rest_ms(30000 + 62000);
    for (unsigned i = 0; i < model->name_count; i++) {
        const char *left = world_str(w, "EVAL %s 0 *%s*", lasting, model->names[i]);
        must(left[0] == 0, "of an anonymous latch this is left for ever: %s", left);
    }
}

int main(void)
{
    return workload_run("--appendonly yes --appendfsync no", workload);
}
