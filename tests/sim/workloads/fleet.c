/* SPDX-License-Identifier: MIT */
/* fleet.c - see fleet.h */
#include "fleet.h"

#include <stdio.h>
#include <string.h>

enum { FORKS_MAX = 24 };

void fleet_draw(struct fleet *fleet, struct world *w, const struct game *game, void *shared)
{
    static const struct {
        int64_t storm_ms, rest_least_ms, rest_most_ms;
    } paces[] = { { 15000, 1, 100 }, { 30000, 10, 1000 }, { 120000, 100, 8000 }, { 400000, 1000, 30000 } };
    *fleet = (struct fleet){ .w = w, .game = game, .shared = shared, .luck = luck_begin() };
    fleet->state = world_shared(w, sizeof *fleet->state);
    fleet->machines = 1 + (unsigned)luck_below(&fleet->luck, FLEET_MACHINES);
    fleet->threads = 1 + (unsigned)luck_below(&fleet->luck, FLEET_THREADS);
    unsigned pace = (unsigned)luck_below(&fleet->luck, 4);
    fleet->storm_ms = paces[pace].storm_ms;
    fleet->rest_least_ms = paces[pace].rest_least_ms;
    fleet->rest_most_ms = paces[pace].rest_most_ms;
    fleet->is_faultless = luck_onein(&fleet->luck, 4);
    for (enum fleet_fault fault = 0; fault < FLEET_FAULTS; fault++)
        fleet->has[fault] =
            luck_onein(&fleet->luck, fault == LOSSES || fault == RESTARTS ? 4 : 2) && !fleet->is_faultless;
    clocks_are_wrong(luck_onein(&fleet->luck, 2) ? 0 : 4000);
}

unsigned fleet_loss(const struct fleet *fleet)
{
    return __atomic_load_n(&fleet->state->loss, __ATOMIC_ACQUIRE);
}

bool fleet_kept(const struct fleet *fleet, unsigned since)
{
    return since % 2 == 0 && fleet_loss(fleet) == since;
}

bool fleet_isover(const struct person *person)
{
    return gate_is_open(&person->fleet->state->over);
}

void fleet_rest(struct person *person)
{
    fleet_pause(person, luck_about(&person->luck, person->fleet->rest_least_ms, person->fleet->rest_most_ms));
}

void fleet_pause(const struct person *person, int64_t ms)
{
    for (; ms > 0 && !fleet_isover(person); ms -= 2000)
        rest_ms(ms < 2000 ? ms : 2000);
}

static int live(void *arg)
{
    struct person *person = arg;
    while (!fleet_isover(person))
        person->fleet->game->act(person);
    return 0;
}

struct birth {
    struct fleet *fleet;
    unsigned machine;
};

static int run_machine(struct world *w, void *arg)
{
    const struct birth *birth = arg;
    struct fleet *fleet = birth->fleet;
    struct person people[FLEET_THREADS];
    struct worker workers[FLEET_THREADS];
    machine_begins(birth->machine);
    world_ready(w);
    for (int code; (code = lk_client_open(&fleet->client, world_url(w, fleet->options[birth->machine]))) != 0;
         rest_ms(100))
        must(code == ENOTCONN && !fleet->is_faultless, "a client opens with code %s", code_name(code));
    fleet->game->open(fleet, birth->machine);
    for (unsigned i = 0; i < fleet->threads; i++) {
        people[i] = (struct person){ .fleet = fleet, .machine = birth->machine, .number = i, .luck = luck_begin() };
        worker_start(&workers[i], live, &people[i]);
    }
    for (unsigned i = 0; i < fleet->threads; i++)
        worker_join(&workers[i]);
    fleet->game->close(fleet, birth->machine);
    lk_client_close(fleet->client);
    return 0;
}

static void start(struct fleet *fleet, unsigned machine)
{
    fleet->state->life[machine]++;
    fleet->is_dead[machine] = false;
    fleet->pids[machine] = world_fork(fleet->w, run_machine, &(struct birth){ fleet, machine });
}

void fleet_begin(struct fleet *fleet)
{
    for (unsigned i = 0; i < fleet->machines; i++)
        start(fleet, i);
}

void fleet_kill(struct fleet *fleet, unsigned machine)
{
    if (fleet->is_dead[machine] || !fault_happens("machine %u is killed", machine))
        return;
    fleet->game->dies(fleet, machine);
    world_kill(fleet->w, fleet->pids[machine]);
    fleet->is_dead[machine] = true;
    fleet->game->died(fleet, machine);
}

static void freeze(struct fleet *fleet, unsigned machine)
{
    if (fleet->is_dead[machine] || !fault_happens("machine %u stands still", machine))
        return;
    world_stop(fleet->pids[machine]);
    rest_ms(luck_about(&fleet->luck, 100, 30000));
    world_cont(fleet->pids[machine]);
}

static void lose_data(struct fleet *fleet)
{
    if (!fault_happens("the server loses its data"))
        return;
    fleet->game->loses(fleet);
    __atomic_add_fetch(&fleet->state->loss, 1, __ATOMIC_ACQ_REL);
    world_redis(fleet->w, "FLUSHALL");
    __atomic_add_fetch(&fleet->state->loss, 1, __ATOMIC_ACQ_REL);
    fleet->game->lost(fleet);
}

static void restart_server(struct fleet *fleet)
{
    if (!fault_happens("the server restarts"))
        return;
    world_kill_server(fleet->w);
    rest_ms(luck_about(&fleet->luck, 1, 3000));
    storm_end(); /* a server that starts is not paused again and again */
    world_restart_server(fleet->w);
    if (fleet->has[TROUBLES_OF_THE_WORLD])
        storm_begin();
}

static void stop_server(struct fleet *fleet)
{
    if (!fault_happens("the server stands still"))
        return;
    world_stop_server(fleet->w);
    rest_ms(luck_about(&fleet->luck, 10, 5000));
    world_cont_server(fleet->w);
}

static void do_fault(struct fleet *fleet, enum fleet_fault fault)
{
    unsigned machine = (unsigned)luck_below(&fleet->luck, fleet->machines);
    switch (fault) {
    case KILLS:
        fleet_kill(fleet, machine);
        break;
    case FREEZES:
        freeze(fleet, machine);
        break;
    case BLOWS:
        if (fault_happens("scripts are forgotten, or connections end"))
            world_blow(fleet->w, (int)luck_below(&fleet->luck, WORLD_BLOWS));
        break;
    case STANDSTILLS:
        stop_server(fleet);
        break;
    case RESTARTS:
        restart_server(fleet);
        break;
    case LOSSES:
        lose_data(fleet);
        break;
    case OTHERS:
        if (fleet->game->other != NULL)
            fleet->game->other(fleet);
        break;
    default:
        break;
    }
}

/* One of those that this seed has; TROUBLES_OF_THE_WORLD, which happen by themselves, where it has none. */
static enum fleet_fault draw_fault(struct fleet *fleet)
{
    enum fleet_fault has[FLEET_FAULTS] = { TROUBLES_OF_THE_WORLD };
    unsigned count = 0;
    for (enum fleet_fault fault = KILLS; fault < FLEET_FAULTS; fault++)
        if (fleet->has[fault])
            has[count++] = fault;
    return has[luck_below(&fleet->luck, count == 0 ? 1 : count)];
}

void fleet_storm(struct fleet *fleet)
{
    unsigned forks = 0;
    if (fleet->has[TROUBLES_OF_THE_WORLD])
        storm_begin();
    for (int64_t until_ms = true_ms() + fleet->storm_ms; true_ms() < until_ms;) {
        rest_ms(luck_about(&fleet->luck, fleet->storm_ms / 500, fleet->storm_ms / 10));
        for (unsigned i = 0; i < fleet->machines; i++)
            if (fleet->is_dead[i] && forks < FORKS_MAX && luck_onein(&fleet->luck, 3)) {
                forks++;
                start(fleet, i);
            }
        do_fault(fleet, draw_fault(fleet));
    }
    storm_end();
    for (unsigned i = 0; i < fleet->machines; i++)
        if (fleet->is_dead[i])
            start(fleet, i);
    if (!fleet->is_faultless)
        rest_ms(2 * TROUBLE_MS);
    __atomic_store_n(&fleet->state->calm, 1, __ATOMIC_RELEASE);
}

void fleet_end(struct fleet *fleet)
{
    gate_open(&fleet->state->over);
    for (unsigned i = 0; i < fleet->machines; i++)
        must(world_wait(fleet->w, fleet->pids[i]) == 0, "machine %u failed", i);
}
