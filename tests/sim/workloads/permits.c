/* SPDX-License-Identifier: MIT */
/*
 * permits.c - threads of a few machines take permits of a semaphore, leased or counting, and give them back: never
 * are more taken than there are, what the dead held comes back with its lease, and nothing counts twice
 *
 * In some seeds nobody gives back: what a machine took and never heard of comes back by the library alone, and not to
 * the next semaphore of that name. One thread also has a counting semaphore for itself, and knows after each call what
 * it has to say.
 */
#include "fleet.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { HOLDS = 3, TOTAL_MAX = 8, IDS = 16, NAMES = 64, GIVEN_BACK_MS = 31000, SETTLES_MS = 32000 };

struct taken {
    unsigned permits;
    int64_t good_until_ns; /* counting: INT64_MAX */
};

struct model {
    bool is_leased, has_ids, has_deletions, has_resizes;
    bool is_used_up; /* nobody gives back: who finds nothing left deletes it, and the next one is whole */
    unsigned total, total_most;
    struct taken taken[FLEET_MACHINES][FLEET_THREADS][HOLDS];
    unsigned generation; /* odd while it is deleted and made anew */
    /* Of counting ones: permits that a thread gives back, and those whose release got no answer in the last two SETTLES_MS.
       The present semaphore may have `to_next` of these beyond its value, although they were taken from an earlier one. */
    int64_t giving[FLEET_MACHINES][FLEET_THREADS], unanswered[2], settled, to_next;
    int64_t served_ns[FLEET_MACHINES][FLEET_THREADS];
    char ids[IDS][LK_PERMIT_ID];
    unsigned id_machines[IDS];
    char names[NAMES][64]; /* of anonymous ones */
    unsigned id_count, name_count;
    int quiet;
    bool is_out[FLEET_MACHINES][FLEET_THREADS];
    int64_t lease_ms;
};

struct objects {
    lk_sem_t sem, own;
    bool is_own_open;
    unsigned own_number;
    int64_t own_free, own_total;
    unsigned own_loss;
};

static struct model *model_of(const struct fleet *fleet)
{
    return fleet->shared;
}

static void must_allow(const struct fleet *fleet, const char *call, int code, int more)
{
    must(code == 0 || code == more || (!fleet->is_faultless && (code == EIO || code == ENOTCONN)), "%s returned %s",
         call, code_name(code));
}

/* --- of all: at most as many as there are ------------------------------------------------------------------------- */

static unsigned taken_at(const struct model *model, int64_t now_ns)
{
    unsigned permits = 0;
    for (unsigned i = 0; i < FLEET_MACHINES; i++)
        for (unsigned n = 0; n < FLEET_THREADS; n++)
            for (unsigned hold = 0; hold < HOLDS; hold++)
                if (model->taken[i][n][hold].good_until_ns > now_ns)
                    permits += model->taken[i][n][hold].permits;
    return permits;
}

static void note_unanswered(struct model *model, int64_t permits)
{
    int64_t turn = true_ms() / SETTLES_MS;
    if (turn != model->settled)
        model->unanswered[0] = turn == model->settled + 1 ? model->unanswered[1] : 0;
    if (turn != model->settled)
        model->unanswered[1] = 0;
    model->settled = turn;
    model->unanswered[1] += permits;
}

/* The permits that may come back yet. */
static int64_t on_the_way(struct model *model)
{
    note_unanswered(model, 0);
    int64_t permits = model->unanswered[0] + model->unanswered[1];
    for (unsigned i = 0; i < FLEET_MACHINES; i++)
        for (unsigned n = 0; n < FLEET_THREADS; n++)
            permits += model->giving[i][n];
    return permits;
}

static _Thread_local unsigned began_in,
    began_with; /* the generation, and the loss, when this thread began what it does */

static void note_taken(struct person *person, unsigned hold, unsigned permits, int64_t good_until_ns, int64_t asked_ns)
{
    struct model *model = model_of(person->fleet);
    if (began_in % 2 != 0 || began_in != model->generation || !fleet_kept(person->fleet, began_with))
        return; /* it may be of one that is gone */
    must(taken_at(model, asked_ns) + permits <= model->total_most + model->to_next,
         "%u permits are taken, and %u more, of %u", taken_at(model, asked_ns), permits, model->total_most);
    unsigned kept = model->is_used_up ? model->taken[person->machine][person->number][hold].permits : 0;
    model->taken[person->machine][person->number][hold] = (struct taken){ kept + permits, good_until_ns };
}

static int take(struct person *person, unsigned permits)
{
    struct objects *objects = person->fleet->objects;
    int64_t limit_ms =
        __atomic_load_n(&person->fleet->state->calm, __ATOMIC_ACQUIRE) ? 15000 : luck_about(&person->luck, 1, 20000);
    int code;
    if (permits == 1 && luck_onein(&person->luck, 4))
        code = lk_sem_trywait(&objects->sem);
    else if (permits == 1 && luck_onein(&person->luck, 2))
        code = lk_sem_waitfor(&objects->sem, limit_ms);
    else
        code = lk_sem_acquire(&objects->sem, permits, limit_ms);
    if (code != EAGAIN && code != ECANCELED && !(code == EINVAL && model_of(person->fleet)->has_resizes))
        must_allow(person->fleet, "a wait for permits", code, ETIMEDOUT);
    must(code != ECANCELED || model_of(person->fleet)->has_deletions, "a wait for permits returned ECANCELED");
    return code;
}

/* --- leased ------------------------------------------------------------------------------------------------------- */

/* Permits that this thread took are lost by a fault, or by another thread that deleted the semaphore. */
static bool may_have_lost_it(const struct person *person)
{
    const struct model *model = model_of(person->fleet);
    return !person->fleet->is_faultless || began_in % 2 != 0 || began_in != model->generation;
}

/* What was taken by several calls has the new lease, or the call says that it has not. */
static void extend(struct person *person)
{
    struct objects *objects = person->fleet->objects;
    int64_t lease_ms = luck_about(&person->luck, 500, 60000), left_ms = 0, asked_ns = true_ns();
    memset(model_of(person->fleet)->taken[person->machine][person->number], 0,
           sizeof(struct taken) * HOLDS); /* it may be shorter */
    int code = lk_sem_extend(&objects->sem, lease_ms);
    must_allow(person->fleet, "lk_sem_extend()", code, may_have_lost_it(person) ? ESTALE : 0);
    if (code != 0)
        return;
    code = lk_sem_remaining(&objects->sem, &left_ms);
    int64_t gone_ms = (true_ns() - asked_ns) / 1000000;
    if (code == 0)
        must(left_ms >= lease_ms - lease_ms / 50 - 10 - gone_ms * 101 / 100,
             "%lld ms after a lease of %lld ms was set it is good for %lld ms", (long long)gone_ms, (long long)lease_ms,
             (long long)left_ms);
}

/* The least of all its holds; so a model of the first one may be short by what a later one has. */
static void see_how_long(struct person *person, unsigned holds, const unsigned *permits)
{
    struct model *model = model_of(person->fleet);
    struct objects *objects = person->fleet->objects;
    int64_t asked_ns = true_ns(), left_ms = 0;
    int code = lk_sem_remaining(&objects->sem, &left_ms);
    for (unsigned i = 0; i < holds; i++)
        model->taken[person->machine][person->number][i] = (struct taken){ 0 };
    if (code != 0) {
        must(may_have_lost_it(person), "leased permits are lost without a fault");
        return;
    }
    int64_t until_ns = asked_ns + left_ms * 990000;
    if (true_ns() < until_ns)
        for (unsigned i = 0; i < holds; i++)
            note_taken(person, i, permits[i], until_ns, asked_ns);
}

static void forget_taken(struct person *person)
{
    memset(model_of(person->fleet)->taken[person->machine][person->number], 0, sizeof(struct taken) * HOLDS);
}

static void use_leased(struct person *person)
{
    struct fleet *fleet = person->fleet;
    struct model *model = model_of(fleet);
    struct objects *objects = fleet->objects;
    unsigned permits[HOLDS] = { 0 }, holds = 0, all = 0, most = 1 + (unsigned)luck_below(&person->luck, HOLDS);
    while (holds < most) {
        permits[holds] = luck_onein(&person->luck, 2) ? 1 : 1 + (unsigned)luck_below(&person->luck, model->total);
        if (holds > 0 && (permits[holds] > 1 || lk_sem_trywait(&objects->sem) != 0))
            break; /* who has some does not wait for more */
        if (holds == 0 && take(person, permits[holds]) != 0)
            return;
        all += permits[holds++];
        model->served_ns[person->machine][person->number] = true_ns();
        see_how_long(person, holds, permits);
    }
    if (luck_onein(&person->luck, 3)) {
        extend(person);
        see_how_long(person, holds, permits);
    }
    fleet_rest(person);
    if (luck_onein(&person->luck, 4))
        see_how_long(person, holds, permits);
    forget_taken(person);
    int code = lk_sem_release(&objects->sem, all);
    must_allow(fleet, "a release of leased permits", code, may_have_lost_it(person) ? ESTALE : 0);
}

/* One that belongs to nobody; others who know its id ask for less time than it has. */
static void use_id(struct person *person)
{
    struct fleet *fleet = person->fleet;
    struct model *model = model_of(fleet);
    struct objects *objects = fleet->objects;
    char id[LK_PERMIT_ID];
    unsigned which = (unsigned)luck_below(&person->luck, model->id_count == 0    ? 1
                                                         : model->id_count < IDS ? model->id_count
                                                                                 : IDS);
    if (model->id_count > 0 && model->id_machines[which] != person->machine && luck_onein(&person->luck, 2)) {
        memcpy(id, model->ids[which], sizeof id);
        int code = lk_sem_extendid(&objects->sem, id, luck_about(&person->luck, 100, 3000));
        must(code == EPERM || code == ESTALE || code == 0 || !fleet->is_faultless, "lk_sem_extendid() returned %s",
             code_name(code));
        return;
    }
    int code = lk_sem_acquireid(&objects->sem, luck_about(&person->luck, 1, 20000), id);
    if (code != ECANCELED)
        must_allow(fleet, "lk_sem_acquireid()", code, ETIMEDOUT);
    if (code != 0)
        return;
    model->id_machines[model->id_count % IDS] = person->machine;
    memcpy(model->ids[model->id_count++ % IDS], id, sizeof id);
    model->served_ns[person->machine][person->number] = true_ns();
    for (unsigned i = 0; i < 3; i++) {
        int64_t asked_ns = true_ns(), left_ms = 0;
        forget_taken(person);
        if (lk_sem_remainingid(&objects->sem, id, &left_ms) == 0 && true_ns() < asked_ns + left_ms * 990000)
            note_taken(person, 0, 1, asked_ns + left_ms * 990000, asked_ns);
        fleet_rest(person);
    }
    forget_taken(person);
    code = lk_sem_releaseid(&objects->sem, id);
    must(code == 0 || may_have_lost_it(person), "lk_sem_releaseid() returned %s", code_name(code));
}

/* --- counting ----------------------------------------------------------------------------------------------------- */

static void use_counting(struct person *person)
{
    struct fleet *fleet = person->fleet;
    struct model *model = model_of(fleet);
    struct objects *objects = fleet->objects;
    unsigned permits = luck_onein(&person->luck, 2) ? 1 : 1 + (unsigned)luck_below(&person->luck, model->total);
    unsigned generation = model->generation, loss = fleet_loss(fleet);
    int64_t asked_ns = true_ns();
    if (take(person, permits) != 0)
        return;
    model->served_ns[person->machine][person->number] = true_ns();
    bool is_sure = generation % 2 == 0 && generation == model->generation && fleet_kept(fleet, loss);
    if (!is_sure)
        return; /* of which one is not known: it is not given back */
    note_taken(person, 0, permits, INT64_MAX, asked_ns);
    if (model->is_used_up)
        return;
    fleet_rest(person);
    if (generation != model->generation || !fleet_kept(fleet, loss)) {
        forget_taken(person);
        return;
    }
    forget_taken(person);
    model->giving[person->machine][person->number] = permits;
    int code = lk_sem_release(&objects->sem, permits);
    if (code == EIO)
        note_unanswered(model, permits);
    model->giving[person->machine][person->number] = 0;
    must_allow(fleet, "a release", code, 0);
}

/* Permits given back to a semaphore that was deleted count for the next one: see lk_sem_delete(). */
static void delete_it(struct person *person)
{
    struct fleet *fleet = person->fleet;
    struct model *model = model_of(fleet);
    struct objects *objects = fleet->objects;
    if (model->generation % 2 != 0)
        return;
    int64_t given = on_the_way(model);
    model->generation++;
    model->to_next += given;
    memset(model->taken, 0, sizeof model->taken);
    int code = lk_sem_delete(&objects->sem);
    must_allow(fleet, "lk_sem_delete()", code, ENOENT);
    if (code == 0 || code == ENOENT)
        model->to_next = given;
    int64_t settles_ms = lk_errorsettles();
    if (code == EIO)
        rest_ms(settles_ms);
    memset(model->taken, 0, sizeof model->taken);
    model->generation++;
}

/* The number that is free, with what is taken for sure, is no more than there are. */
static void count(struct person *person)
{
    struct fleet *fleet = person->fleet;
    struct model *model = model_of(fleet);
    struct objects *objects = fleet->objects;
    unsigned generation = model->generation, loss = fleet_loss(fleet);
    lk_seminfo_t info = LK_SEMINFO_INIT;
    int code = lk_sem_info(&objects->sem, &info);
    must_allow(fleet, "lk_sem_info()", code, 0);
    if (code != 0 || generation % 2 != 0 || generation != model->generation || !fleet_kept(fleet, loss))
        return;
    must(info.available <= (int64_t)model->total_most + model->to_next, "%lld permits are free, of %u",
         (long long)info.available, model->total_most);
}

/* --- one's own: each call says what follows from those before ----------------------------------------------------- */

static void open_own(struct fleet *fleet)
{
    struct objects *objects = fleet->objects;
    char name[64];
    objects->own_loss = fleet_loss(fleet);
    snprintf(name, sizeof name, "own%u.%u", fleet->state->life[0], objects->own_number++);
    int code = lk_sem_open(&objects->own, fleet->client, name, O_CREAT | O_EXCL, 3, NULL);
    must_allow(fleet, "lk_sem_open()", code, 0);
    objects->is_own_open = code == 0;
    objects->own_free = objects->own_total = 3;
}

static void use_own(struct person *person)
{
    struct fleet *fleet = person->fleet;
    struct objects *objects = fleet->objects;
    unsigned n = 1 + (unsigned)luck_below(&person->luck, 4), expected, drained = 0;
    if (!objects->is_own_open)
        open_own(fleet);
    if (!objects->is_own_open)
        return;
    unsigned loss = objects->own_loss;
    int64_t known_total = objects->own_free > objects->own_total ? objects->own_free : objects->own_total;
    int code, value;
    int64_t free_after = objects->own_free, total_after = objects->own_total;
    switch (luck_below(&person->luck, 6)) {
    case 0:
        code = lk_sem_release(&objects->own, n);
        free_after += n;
        break;
    case 1:
        code = lk_sem_acquire(&objects->own, n, 0);
        if (code == ETIMEDOUT && fleet_kept(fleet, loss)) {
            must(objects->own_free < n, "%u permits are not to be had, though %lld are free", n,
                 (long long)objects->own_free);
            return;
        }
        free_after -= n;
        break;
    case 2:
        code = lk_sem_addpermits(&objects->own, n);
        free_after += n;
        total_after = known_total + n;
        break;
    case 3:
        expected = (unsigned)objects->own_total + (unsigned)luck_below(&person->luck, 2);
        if (expected != known_total) {
            code = lk_sem_setpermits(&objects->own, &expected, n);
            if (code == EEXIST && fleet_kept(fleet, loss)) {
                must(expected == known_total, "the total is said to be %u, and is %lld", expected,
                     (long long)known_total);
                return;
            }
            must(code != 0 || !fleet_kept(fleet, loss), "a total that is %lld counts as %u", (long long)known_total,
                 expected);
        } else {
            code = lk_sem_setpermits(&objects->own, &expected, (unsigned)known_total + n);
            free_after += n;
            total_after = known_total + n;
        }
        break;
    case 4:
        code = lk_sem_drain(&objects->own, &drained);
        if (code == 0 && fleet_kept(fleet, loss))
            must(drained == objects->own_free, "%u were drained, and %lld are free", drained,
                 (long long)objects->own_free);
        free_after = 0;
        break;
    default:
        code = lk_sem_getvalue(&objects->own, &value);
        if (code == 0 && fleet_kept(fleet, loss))
            must(value == objects->own_free, "%d are said to be free, and %lld are", value,
                 (long long)objects->own_free);
        break;
    }
    if (code != 0 || !fleet_kept(fleet, loss)) {
        must(!fleet->is_faultless, "a call for a semaphore of one's own returned %s", code_name(code));
        lk_sem_destroy(&objects->own);
        objects->is_own_open = false;
        return;
    }
    if (free_after > 1000)
        return;
    objects->own_free = free_after;
    objects->own_total = total_after;
}

/* One without a name: gone with its last user. */
static void use_anonymous(struct person *person)
{
    struct fleet *fleet = person->fleet;
    struct model *model = model_of(fleet);
    lk_semattr_t attr = LK_SEMATTR_INIT;
    lk_sem_t sem, again;
    char name[64];
    attr.anonymous = 1;
    attr.leased = luck_onein(&person->luck, 3);
    assert_lk(0, lk_sem_init(&sem, fleet->client, NULL, 2, &attr));
    snprintf(name, sizeof name, "%s", sem.lk_name);
    if (model->name_count < NAMES)
        memcpy(model->names[model->name_count++], name, sizeof name);
    for (unsigned i = 0; i < 4; i++) {
        int code = lk_sem_waitfor(&sem, 100);
        fleet_rest(person);
        if (code == 0)
            code = lk_sem_post(&sem);
        must(code == 0 || !fleet->is_faultless, "a call for an anonymous semaphore returned %s", code_name(code));
    }
    if (lk_sem_destroy(&sem) != 0 || !fleet->is_faultless)
        return;
    rest_ms(1000);
    attr.anonymous = 0; /* else it is begun anew */
    int code = lk_sem_open(&again, fleet->client, name, 0, 0, &attr);
    must(code == ENOENT, "a second after its end an anonymous semaphore is found: %s", code_name(code));
}

/* --- what people do ----------------------------------------------------------------------------------------------- */

static void act(struct person *person)
{
    struct model *model = model_of(person->fleet);
    bool is_first = person->machine == 0 && person->number == 0;
    began_in = model->generation;
    began_with = fleet_loss(person->fleet);
    if (__atomic_load_n(&model->quiet, __ATOMIC_ACQUIRE)) {
        model->is_out[person->machine][person->number] = true;
        rest_ms(500);
        return;
    }
    if (is_first && luck_onein(&person->luck, 2)) {
        for (unsigned i = 0; i < 5; i++)
            use_own(person);
    } else if (luck_onein(&person->luck, 24)) {
        use_anonymous(person);
    } else if (model->has_deletions && is_first && luck_onein(&person->luck, model->is_used_up ? 1 : 6)) {
        delete_it(person);
    } else if (luck_onein(&person->luck, 6)) {
        count(person);
    } else if (!model->is_leased) {
        use_counting(person);
    } else if (model->has_ids && luck_onein(&person->luck, 2)) {
        use_id(person);
    } else {
        use_leased(person);
    }
    fleet_rest(person);
}

static void open_objects(struct fleet *fleet, unsigned machine)
{
    static struct objects objects;
    const struct model *model = model_of(fleet);
    lk_semattr_t attr = LK_SEMATTR_INIT;
    (void)machine;
    attr.leased = model->is_leased;
    assert_lk(0, lk_sem_init(&objects.sem, fleet->client, "printers", model->total, &attr));
    fleet->objects = &objects;
}

static void close_objects(struct fleet *fleet, unsigned machine)
{
    struct objects *objects = fleet->objects;
    (void)machine;
    if (objects->is_own_open)
        lk_sem_destroy(&objects->own);
    assert_lk(0, lk_sem_destroy(&objects->sem));
}

/* A counting semaphore's permits go with who dies; that of a deletion that is under way ends it. */
static void dies(struct fleet *fleet, unsigned machine)
{
    (void)machine;
    (void)fleet;
}

static void died(struct fleet *fleet, unsigned machine)
{
    struct model *model = model_of(fleet);
    if (!model->is_leased)
        memset(model->taken[machine], 0, sizeof model->taken[machine]);
    for (unsigned n = 0; n < FLEET_THREADS; n++) {
        note_unanswered(model, model->giving[machine][n]);
        model->giving[machine][n] = 0;
    }
    if (machine == 0 && model->generation % 2 != 0)
        model->generation += 2; /* and stays unsure */
}

static void lost(struct fleet *fleet)
{
    memset(model_of(fleet)->taken, 0, sizeof model_of(fleet)->taken);
}

static void loses(struct fleet *fleet)
{
    model_of(fleet)->to_next = on_the_way(model_of(fleet));
    lost(fleet);
}

/* One that takes permits does not hear of it. The first machine, which deletes, is spared. */
static void isolate(struct fleet *fleet)
{
    unsigned machine = fleet->machines > 1 ? 1 + (unsigned)luck_below(&fleet->luck, fleet->machines - 1) : 0;
    int64_t length_ms = luck_about(&fleet->luck, 100, TROUBLE_MS);
    if (!fleet->is_dead[machine] && fault_happens("machine %u is isolated", machine))
        machine_isolated(fleet->pids[machine], length_ms);
}

static const struct game game = { .open = open_objects,
                                  .act = act,
                                  .close = close_objects,
                                  .dies = dies,
                                  .died = died,
                                  .loses = loses,
                                  .lost = lost,
                                  .other = isolate };

/* Nobody gives back but the library, for answers that got lost: none of that may come to the next semaphore. */
static void draw_use_up(struct fleet *fleet)
{
    memset(fleet->has, 0, sizeof fleet->has);
    fleet->has[OTHERS] = true;
    fleet->is_faultless = false;
    fleet->machines = 2 + (unsigned)luck_below(&fleet->luck, FLEET_MACHINES - 1);
    fleet->rest_least_ms = 10;
    fleet->rest_most_ms = 1000;
    fleet->storm_ms = 60000;
}

static void draw(struct fleet *fleet, struct model *model)
{
    static const struct {
        const char *text;
        int64_t lease_ms;
    } options[] = { { "lease=2s&command_timeout=500ms", 2000 },
                    { "lease=5s&command_timeout=1s", 5000 },
                    { "lease=30s", 30000 } };
    for (unsigned i = 0; i < fleet->machines; i++) {
        unsigned kind = (unsigned)luck_below(&fleet->luck, 3);
        strcpy(fleet->options[i], options[kind].text);
        if (options[kind].lease_ms > model->lease_ms)
            model->lease_ms = options[kind].lease_ms;
    }
    model->is_leased = luck_onein(&fleet->luck, 2);
    model->has_ids = luck_onein(&fleet->luck, 2);
    model->has_deletions = luck_onein(&fleet->luck, 4);
    model->is_used_up = model->has_deletions && !model->is_leased && luck_onein(&fleet->luck, 2);
    if (model->is_used_up)
        draw_use_up(fleet);
    model->total = model->total_most = 1 + (unsigned)luck_below(&fleet->luck, TOTAL_MAX);
}

static void judge_progress(struct fleet *fleet)
{
    struct model *model = model_of(fleet);
    int64_t from_ns = true_ns(), longest_ms = 3 * model->lease_ms + 60000 + 40 * fleet->rest_most_ms;
    for (unsigned i = 0; i < fleet->machines; i++)
        for (unsigned n = 0; n < fleet->threads; n++)
            while (model->served_ns[i][n] < from_ns) {
                must(true_ns() - from_ns < longest_ms * 1000000, "thread %u of machine %u had no permit for %lld ms", n,
                     i, (long long)longest_ms);
                rest_ms(200);
            }
}

/* When all gave back what they have, all are free: but for those that died with some. */
static void judge_sum(struct fleet *fleet)
{
    struct model *model = model_of(fleet);
    __atomic_store_n(&model->quiet, 1, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < fleet->machines; i++)
        for (unsigned n = 0; n < fleet->threads; n++)
            while (!model->is_out[i][n])
                rest_ms(200);
    rest_ms(GIVEN_BACK_MS + model->lease_ms * 2);
    lk_client_t *client;
    lk_sem_t sem;
    lk_semattr_t attr = LK_SEMATTR_INIT;
    lk_seminfo_t info = LK_SEMINFO_INIT;
    attr.leased = model->is_leased;
    assert_lk(0, lk_client_open(&client, world_url(fleet->w, "lease=30s")));
    assert_lk(0, lk_sem_init(&sem, client, "printers", model->total, &attr));
    assert_lk(0, lk_sem_info(&sem, &info));
    must(info.available <= (int64_t)model->total + model->to_next, "%lld are free in the end, of %u",
         (long long)info.available, model->total);
    must((!model->is_leased && !fleet->is_faultless) || model->has_deletions || info.available == model->total,
         "%lld are free in the end, of %u", (long long)info.available, model->total);
    assert_lk(0, lk_sem_destroy(&sem));
    assert_lk(0, lk_client_close(client));
}

/* What anonymous ones left has an end. */
static void judge_rest(struct fleet *fleet)
{
    struct model *model = model_of(fleet);
    static const char *const lasting = "local k=redis.call('KEYS',ARGV[1])for i=1,#k do if redis.call('PTTL',k[i])==-1 "
                                       "then return k[i]end end return''";
    rest_ms(model->lease_ms + 62000);
    for (unsigned i = 0; i < model->name_count; i++) {
        const char *left = world_str(fleet->w, "EVAL %s 0 *%s*", lasting, model->names[i]);
        must(left[0] == 0, "of an anonymous semaphore this is left for ever: %s", left);
    }
}

static void workload(struct world *w)
{
    struct model *model = world_shared(w, sizeof *model);
    struct fleet fleet;
    fleet_draw(&fleet, w, &game, model);
    draw(&fleet, model);
    fleet_begin(&fleet);
    fleet_storm(&fleet);
    if (model->is_leased || fleet.is_faultless)
        judge_progress(&fleet);
    judge_sum(&fleet);
    fleet_end(&fleet);
    judge_rest(&fleet);
}

int main(void)
{
    return workload_run("--appendonly yes --appendfsync no", workload);
}
