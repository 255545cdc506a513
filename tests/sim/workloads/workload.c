/* SPDX-License-Identifier: MIT */
/* workload.c - see workload.h */
#include "workload.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* Of libsim.so; NULL outside of the simulation. */
__attribute__((weak)) void sim_storm(bool on);
__attribute__((weak)) bool sim_fault(const char *what);
__attribute__((weak)) void sim_clocks(int64_t ppb);
__attribute__((weak)) void sim_machine(uint64_t name);
__attribute__((weak)) void sim_isolate(pid_t pid, int64_t ms);
__attribute__((weak)) void sim_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

struct luck luck_begin(void)
{
    struct luck luck;
    assert_that(getrandom(&luck.state, sizeof luck.state, 0) == sizeof luck.state);
    return luck;
}

static uint64_t draw(struct luck *luck)
{
    uint64_t z = luck->state += 0x9e3779b97f4a7c15ULL;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
    return z ^ z >> 31;
}

uint64_t luck_below(struct luck *luck, uint64_t limit)
{
    return draw(luck) % limit;
}

bool luck_onein(struct luck *luck, unsigned n)
{
    return draw(luck) % n == 0;
}

int64_t luck_about(struct luck *luck, int64_t least, int64_t most)
{
    int64_t limit = least;
    unsigned doublings = 0, chosen;
    while (limit < most) {
        limit *= 2;
        doublings++;
    }
    chosen = (unsigned)luck_below(luck, doublings + 1);
    limit = (least << chosen) < most ? least << chosen : most;
    return chosen == 0 ? least : limit / 2 + (int64_t)luck_below(luck, (uint64_t)(limit - limit / 2) + 1);
}

int64_t true_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_TAI, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int64_t true_ms(void)
{
    return true_ns() / 1000000;
}

void rest_ms(int64_t ms)
{
    struct timespec time = { ms / 1000, ms % 1000 * 1000000 };
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &time, &time) == EINTR)
        continue;
}

void storm_begin(void)
{
    sim_storm(true);
}

void storm_end(void)
{
    sim_storm(false);
}

bool fault_happens(const char *format, ...)
{
    char what[160];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return sim_fault(what);
}

void clocks_are_wrong(int64_t ppm)
{
    sim_clocks(ppm * 1000);
}

void machine_isolated(pid_t pid, int64_t ms)
{
    sim_isolate(pid, ms);
}

void machine_begins(unsigned number)
{
    sim_machine(number + 1);
}

void broken(const char *format, ...)
{
    char what[400];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    sim_fail("broken: %s", what);
    for (;;)
        pause();
}

static void (*the_workload)(struct world *w);
static const char *its_server;

static void run_it(void **state)
{
    (void)state;
    struct world *w = world_begin(its_server);
    world_allow(w, "*");
    the_workload(w);
    world_end(w);
}

int workload_run(const char *server_args, void (*workload)(struct world *w))
{
    if (sim_storm == NULL) {
        fprintf(stderr, "this runs in the simulation: scripts/sim -- %s\n", program_invocation_short_name);
        return 77;
    }
    the_workload = workload;
    its_server = server_args;
    const struct CMUnitTest tests[] = { cmocka_unit_test(run_it) };
    return cmocka_run_group_tests_name(program_invocation_short_name, tests, NULL, NULL);
}
