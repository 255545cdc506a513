/* SPDX-License-Identifier: MIT */
/*
 * sets.c - threads of a few machines lock sets of mutexes on two servers, of which some have equal names: all of a
 * set or none, no mutex twice, and nobody waits in a circle
 */
#include "fleet.h"

#include <stdio.h>
#include <string.h>

enum { SERVERS = 2, NAMES = 3, LOCKS = SERVERS * NAMES };

struct model {
    uint64_t tokens[LOCKS];
    int64_t good_until_ns[LOCKS]; /* until then somebody believes that it holds that one; 0: nobody */
    int64_t served_ns[FLEET_MACHINES][FLEET_THREADS];
    bool has_fixed;
};

struct objects {
    lk_client_t *other; /* of the second server */
    lk_mutex_t locks[LOCKS];
};

static struct world *second; /* whose server is the second one */

static struct model *model_of(const struct fleet *fleet)
{
    return fleet->shared;
}

/* A set, and which locks are in it. */
struct set {
    lk_multi_t multi;
    unsigned count, which[LOCKS];
    uint64_t tokens[LOCKS];
};

static void draw_set(struct person *person, struct set *set)
{
    struct objects *objects = person->fleet->objects;
    unsigned wanted = 1 + (unsigned)luck_below(&person->luck, 4), first = (unsigned)luck_below(&person->luck, LOCKS);
    unsigned step = luck_onein(&person->luck, 2) ? 1 : 5; /* in one order, or in the other */
    set->count = 0;
    assert_lk(0, lk_multi_init(&set->multi));
    for (unsigned i = 0; i < wanted; i++) {
        set->which[set->count] = (first + i * step) % LOCKS;
        assert_lk(0, lk_multi_addmutex(&set->multi, &objects->locks[set->which[set->count++]]));
    }
}

static void must_hold_none(struct person *person, const struct set *set, int code)
{
    struct objects *objects = person->fleet->objects;
    for (unsigned i = 0; i < set->count; i++) {
        int64_t left_ms;
        int held = lk_mutex_remaining(&objects->locks[set->which[i]], &left_ms);
        must(held == EPERM, "after a lock of several that returned %s, one of them is held: %s", code_name(code),
             code_name(held));
    }
}

static void enter(struct person *person, struct set *set)
{
    struct fleet *fleet = person->fleet;
    struct model *model = model_of(fleet);
    struct objects *objects = fleet->objects;
    for (unsigned i = 0; i < set->count; i++) {
        unsigned which = set->which[i];
        int64_t asked_ns = true_ns(), left_ms = 0;
        set->tokens[i] = 0;
        int code = lk_mutex_remaining(&objects->locks[which], &left_ms);
        must(code == 0 || code == ESTALE, "after a lock of several, one of them is not held: %s", code_name(code));
        must(code == 0 || !fleet->is_faultless, "after a lock of several, one of them is lost without a fault");
        if (code != 0 || lk_mutex_token(&objects->locks[which], &set->tokens[i]) != 0 ||
            true_ns() >= asked_ns + left_ms * 990000)
            continue;
        must(model->good_until_ns[which] <= asked_ns, "two hold lock %u at once", which);
        must(set->tokens[i] > model->tokens[which], "token %llu of lock %u follows %llu",
             (unsigned long long)set->tokens[i], which, (unsigned long long)model->tokens[which]);
        model->tokens[which] = set->tokens[i];
        model->good_until_ns[which] = asked_ns + left_ms * 990000;
    }
}

static void leave(struct person *person, const struct set *set, unsigned i)
{
    struct model *model = model_of(person->fleet);
    if (model->tokens[set->which[i]] == set->tokens[i])
        model->good_until_ns[set->which[i]] = 0;
}

static void must_release(const struct fleet *fleet, int code)
{
    must(code == 0 || (code == ESTALE && model_of(fleet)->has_fixed) ||
             (!fleet->is_faultless && (code == ESTALE || code == EIO || code == ENOTCONN)),
         "an unlock of several returned %s", code_name(code));
}

/* One was given back by itself: then the set is not, as a whole. */
static void unlock_in_part(struct person *person, struct set *set)
{
    struct fleet *fleet = person->fleet;
    struct objects *objects = fleet->objects;
    unsigned odd = (unsigned)luck_below(&person->luck, set->count);
    leave(person, set, odd);
    must_release(fleet, lk_mutex_unlock(&objects->locks[set->which[odd]]));
    int code = lk_multi_unlock(&set->multi);
    must(code == EPERM, "an unlock of several, of which one is not held, returned %s", code_name(code));
    for (unsigned i = 0; i < set->count; i++)
        if (i != odd) {
            leave(person, set, i);
            code = lk_mutex_unlock(&objects->locks[set->which[i]]);
            must(code != EPERM, "an unlock of several that returned EPERM gave one of them back");
            must_release(fleet, code);
        }
}

static void unlock(struct person *person, struct set *set)
{
    if (set->count > 1 && luck_onein(&person->luck, 6)) {
        unlock_in_part(person, set);
        return;
    }
    for (unsigned i = 0; i < set->count; i++)
        leave(person, set, i);
    must_release(person->fleet, lk_multi_unlock(&set->multi));
}

static int lock(struct person *person, struct set *set)
{
    bool is_calm = __atomic_load_n(&person->fleet->state->calm, __ATOMIC_ACQUIRE) != 0;
    lk_how_t how = LK_HOW_INIT;
    how.timeout_ms = is_calm ? 40000 : luck_about(&person->luck, 1, 30000);
    if (luck_onein(&person->luck, 6))
        return lk_multi_trylock(&set->multi);
    if (model_of(person->fleet)->has_fixed && luck_onein(&person->luck, 2)) {
        how.fixed = 1;
        how.lease_ms = luck_about(&person->luck, 300, 3000);
    }
    return lk_multi_lockwith(&set->multi, &how);
}

static void act(struct person *person)
{
    struct fleet *fleet = person->fleet;
    struct set set;
    draw_set(person, &set);
    int code = lock(person, &set);
    must(code == 0 || code == ETIMEDOUT || code == EBUSY || (!fleet->is_faultless && (code == EIO || code == ENOTCONN)),
         "a lock of several returned %s", code_name(code));
    if (code == 0) {
        model_of(fleet)->served_ns[person->machine][person->number] = true_ns();
        enter(person, &set);
        rest_ms(luck_about(&person->luck, 1, 500));
        unlock(person, &set);
    } else {
        must_hold_none(person, &set, code);
    }
    assert_lk(0, lk_multi_destroy(&set.multi));
    fleet_rest(person);
}

static lk_client_t *open_patient(struct fleet *fleet, const char *url)
{
    lk_client_t *client;
    for (int code; (code = lk_client_open(&client, url)) != 0; rest_ms(100))
        must(code == ENOTCONN && !fleet->is_faultless, "a client opens with code %s", code_name(code));
    return client;
}

static void open_objects(struct fleet *fleet, unsigned machine)
{
    static struct objects objects;
    fleet->objects = &objects;
    objects.other = open_patient(fleet, world_url(second, fleet->options[machine]));
    for (unsigned i = 0; i < LOCKS; i++) {
        char name[16];
        snprintf(name, sizeof name, "stock%u", i % NAMES);
        assert_lk(0, lk_mutex_init(&objects.locks[i], i < NAMES ? fleet->client : objects.other, name, NULL));
    }
}

static void close_objects(struct fleet *fleet, unsigned machine)
{
    struct objects *objects = fleet->objects;
    (void)machine;
    lk_client_close(objects->other);
}

static void nothing(struct fleet *fleet, unsigned machine)
{
    (void)fleet;
    (void)machine;
}

static void lose(struct fleet *fleet)
{
    memset(model_of(fleet)->good_until_ns, 0, sizeof model_of(fleet)->good_until_ns);
}

static const struct game game = { .open = open_objects,
                                  .act = act,
                                  .close = close_objects,
                                  .dies = nothing,
                                  .died = nothing,
                                  .loses = lose,
                                  .lost = lose };

static void workload(struct world *w)
{
    static const char *const options[] = { "lease=2s&command_timeout=500ms", "lease=5s&command_timeout=1s",
                                           "lease=30s" };
    struct model *model = world_shared(w, sizeof *model);
    struct fleet fleet;
    world_redis(w, "PING"); /* its connection is there before those of the second one are counted */
    second = world_begin(NULL);
    world_allow(second, "*");
    fleet_draw(&fleet, w, &game, model);
    fleet.has[LOSSES] = false; /* who holds what is gone would have to be known */
    for (unsigned i = 0; i < fleet.machines; i++)
        strcpy(fleet.options[i], options[luck_below(&fleet.luck, 3)]);
    model->has_fixed = luck_onein(&fleet.luck, 3);
    fleet_begin(&fleet);
    fleet_storm(&fleet);
    int64_t from_ns = true_ns(), longest_ms = 150000 + 5 * fleet.rest_most_ms;
    for (unsigned i = 0; i < fleet.machines; i++)
        for (unsigned n = 0; n < fleet.threads; n++)
            for (; model->served_ns[i][n] < from_ns; rest_ms(200))
                must(true_ns() - from_ns < longest_ms * 1000000, "thread %u of machine %u locked no set for %lld ms", n,
                     i, (long long)longest_ms);
    fleet_end(&fleet);
    world_redis(w, "PING");
    world_end(second);
}

int main(void)
{
    return workload_run("--appendonly yes --appendfsync no", workload);
}
