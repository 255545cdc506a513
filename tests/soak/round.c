/* SPDX-License-Identifier: MIT */
/*
 * round.c - one round of a soak. One thread drives everything: it begins and ends faults when the plan says so, and
 * starts client processes anew.
 */
#include "driver.h"

#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLAN_MAX 512
#define PROGRESS_MS 5000
#define ENDS_WITHIN_MS 30000 /* clients, once they were told to stop */
#define SERVER_ARGS                                                                                                    \
    "--appendonly yes --appendfsync no --auto-aof-rewrite-percentage 0 --busy-reply-threshold 50 "                     \
    "--maxmemory-policy noeviction --enable-debug-command yes"

extern char **environ;

struct round {
    const struct settings *settings;
    struct world *world;
    struct table *table;
    char dir[512];
    struct nemesis nemesis;
    struct fault plan[PLAN_MAX];
    int planned, begun;
    pid_t actors[PROCESSES_MAX];
    int incarnations[PROCESSES_MAX];
    int64_t start_ns, progress_ns;
    struct tape tape; /* what the driver itself has to say */
};

static int64_t since_ms(const struct round *round)
{
    return (now_ns() - round->start_ns) / NS_PER_MS;
}

/* --- client processes --------------------------------------------------------------------------------------------- */

/* Their program lies beside this one. */
static void start_actor(struct round *round, int process)
{
    char program[512], place[16], incarnation[16], parent[16];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 16);
    assert_that(length > 0);
    program[length] = 0;
    strcat(program, "_actor");
    snprintf(place, sizeof place, "%d", process);
    snprintf(incarnation, sizeof incarnation, "%d", round->incarnations[process]++);
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    char *argv[] = { program, round->dir, place, incarnation, parent, NULL };
    assert_that(posix_spawn(&round->actors[process], program, NULL, NULL, argv, environ) == 0);
}

static void write_unasked_end(struct round *round, int process, int status)
{
    struct record *record = tape_begin(&round->tape, OP_LEFT, 0, 0);
    fprintf(stderr, "process %d.%d ended with %s %d\n", process, round->incarnations[process] - 1,
            WIFSIGNALED(status) ? "signal" : "status", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    record->process = (uint16_t)process;
    record->limit_ms = status;
    tape_end(record, ECANCELED);
}

/* Those that the nemesis has killed are replaced; none may end by itself. */
static void look_after_actors(struct round *round)
{
    int status;
    for (int i = 0; i < round->table->processes; i++) {
        if (round->actors[i] != 0 && waitpid(round->actors[i], &status, WNOHANG) == round->actors[i]) {
            write_unasked_end(round, i, status);
            round->actors[i] = 0;
        }
        if (round->actors[i] == 0)
            start_actor(round, i);
    }
}

/* One that does not end by itself hangs: its unfinished record tells where. */
static void end_actors(struct round *round)
{
    int64_t until_ns = now_ns() + ENDS_WITHIN_MS * NS_PER_MS;
    for (int i = 0; i < round->table->processes; i++) {
        int status = 0;
        pid_t ended = 0;
        while ((ended = waitpid(round->actors[i], &status, WNOHANG)) == 0 && now_ns() < until_ns)
            nap();
        if (ended == 0) {
            fprintf(stderr, "process %d (pid %d) hangs\n", i, (int)round->actors[i]);
            if (getenv("SOAK_WAIT_FOR_DEBUGGER") != NULL)
                pause();
            kill(round->actors[i], SIGKILL);
            waitpid(round->actors[i], &status, 0);
        }
        if (status != 0)
            write_unasked_end(round, i, status);
    }
}

/* --- faults ------------------------------------------------------------------------------------------------------- */

/* A server that has two things wrong with it may not be there for the second one. */
static bool may_begin(const struct round *round, const struct fault *fault)
{
    if (fault->at_ms > since_ms(round))
        return false;
    for (int i = 0; i < round->begun; i++)
        if (fault->kind >= STOP_SERVER && round->plan[i].kind >= STOP_SERVER && round->plan[i].end_ns == 0)
            return false;
    return true;
}

static void begin_and_end_faults(struct round *round)
{
    while (round->begun < round->planned && may_begin(round, &round->plan[round->begun]))
        nemesis_begin(&round->nemesis, &round->plan[round->begun++]);
    for (int i = 0; i < round->begun; i++) {
        struct fault *fault = &round->plan[i];
        if (fault->end_ns == 0 && fault->begin_ns + fault->length_ms * NS_PER_MS <= now_ns() &&
            nemesis_end(&round->nemesis, fault))
            assert_that(fault_write(round->dir, fault));
    }
}

static bool has_faults(const struct round *round)
{
    for (int i = 0; i < round->begun; i++)
        if (round->plan[i].end_ns == 0)
            return true;
    return false;
}

/* SIM_WITHOUT=3,7 leaves out those of the plan: so scripts/sim finds the fewest that still break something. */
static void leave_out(struct round *round)
{
    const char *text = getenv("SIM_WITHOUT");
    bool left_out[PLAN_MAX] = { false };
    int kept = 0;
    for (char *end; text != NULL && *text != 0; text = *end == ',' ? end + 1 : "") {
        long number = strtol(text, &end, 10);
        if (number >= 0 && number < PLAN_MAX)
            left_out[number] = true;
    }
    for (int i = 0; i < round->planned; i++)
        if (!left_out[i])
            round->plan[kept++] = round->plan[i];
    round->planned = kept;
}

static void tick(struct round *round)
{
    begin_and_end_faults(round);
    look_after_actors(round);
    if (now_ns() - round->progress_ns >= PROGRESS_MS * NS_PER_MS) {
        round->progress_ns = now_ns();
        printf("  %3d s: %" PRId64 " operations, %d faults\n", (int)(since_ms(round) / 1000),
               __atomic_load_n(&round->table->operations, __ATOMIC_RELAXED), round->begun);
    }
    nap();
}

static void run_for(struct round *round, int64_t ms)
{
    for (int64_t until_ms = since_ms(round) + ms; since_ms(round) < until_ms;)
        tick(round);
}

static void enter(struct round *round, enum phase phase)
{
    __atomic_store_n(&round->table->phase, phase, __ATOMIC_RELEASE);
}

/* --- from the beginning to the end -------------------------------------------------------------------------------- */

/* Clients of every second process say redisson=yes. */
static void begin_options(const struct round *round, int process, char options[160])
{
    const struct table *table = round->table;
    int length = snprintf(options, 160, "lease=%dms%s", (int)table->lease_ms, process % 2 != 0 ? "&redisson=yes" : "");
    if (table->deployment != SINGLE_SERVER)
        length += snprintf(options + length, 160 - (size_t)length, "&command_timeout=%dms&clock_skew=%dms",
                           (int)table->command_ms, (int)table->skew_ms);
    if (round->settings->replicas != 0)
        snprintf(options + length, 160 - (size_t)length, "&wait_replicas=%d", round->settings->replicas);
}

/* One server, and a network for each process; or servers that replace each other, whose clocks are this machine's. */
static void begin_servers(struct round *round)
{
    struct table *table = round->table;
    struct nemesis *nemesis = &round->nemesis;
    if (table->deployment == CLUSTER)
        nemesis->cluster = cluster_begin(round->world, true);
    if (table->deployment == SENTINELS)
        nemesis->failover = failover_begin(round->world, NULL);
    if (table->deployment != SINGLE_SERVER)
        servers_note(nemesis, NULL);
    for (int i = 0; i < table->processes; i++) {
        char options[160];
        const char *url;
        begin_options(round, i, options);
        if (table->deployment == SINGLE_SERVER) {
            nemesis->proxies[i] = proxy_begin(round->world);
            url = proxy_url(nemesis->proxies[i], options);
        } else {
            url = nemesis->cluster != NULL ? cluster_url(nemesis->cluster, options)
                                           : failover_url(nemesis->failover, options);
        }
        snprintf(table->urls[i], sizeof table->urls[i], "%s", url);
    }
}

/* For the tapes: with the server's files, unless they are to be kept. */
static void choose_folder(struct round *round, const struct settings *settings)
{
    snprintf(round->dir, sizeof round->dir, "%s", round->world->dir);
    if (settings->keep == NULL)
        return;
    snprintf(round->dir, sizeof round->dir, "%s/%" PRIu64, settings->keep, settings->seed);
    assert_that(mkdir(round->dir, 0700) == 0 || errno == EEXIST);
    printf("check again: soak --look %s\n", round->dir);
}

static void begin_round(struct round *round, const struct settings *settings)
{
    round->settings = settings;
    round->world = world_begin(SERVER_ARGS);
    world_allow(round->world, "*"); /* ending.c looks at what is left, and says more about it */
    choose_folder(round, settings);
    struct table *table = round->table = table_map(round->dir, true);
    assert_that(table != NULL && tape_open(&round->tape, round->dir, PROCESSES_MAX, 0, 0));
    table->seed = settings->seed;
    table->processes = settings->processes;
    table->threads = settings->threads;
    table->lease_ms = settings->lease_ms;
    table->command_ms = settings->lease_ms / 5;
    table->deployment = settings->deployment;
    table->skew_ms = settings->deployment != SINGLE_SERVER ? settings->lease_ms / 20 : 0;
    round->nemesis =
        (struct nemesis){ .world = round->world, .table = table, .actors = round->actors, .dir = round->dir };
    begin_servers(round);
}

static void end_round(struct round *round)
{
    for (int i = 0; i < round->table->processes && round->nemesis.proxies[i] != NULL; i++)
        proxy_end(round->nemesis.proxies[i]);
    if (round->nemesis.failover != NULL)
        failover_end(round->nemesis.failover);
    if (round->nemesis.cluster != NULL)
        cluster_end(round->nemesis.cluster);
    nemesis_rest(&round->nemesis);
    tape_close(&round->tape);
    table_unmap(round->table);
    world_end(round->world);
}

/* On a busy machine some faults come so late that there is no time left for the last ones. */
static void run_storm(struct round *round, int64_t storm_ms)
{
    round->planned = plan_make(round->plan, PLAN_MAX, round->table, (int)storm_ms);
    leave_out(round);
    round->start_ns = round->progress_ns = now_ns();
    run_for(round, storm_ms);
    round->planned = round->begun;
    while (has_faults(round))
        tick(round);
    run_for(round, 2 * round->table->lease_ms); /* holds of the dead end, everybody connects again */
}

bool round_run(const struct settings *settings, struct totals *totals)
{
    static struct round empty, round;
    int64_t eighth_ms = settings->seconds * 1000 / 8, calm_ms = eighth_ms > 5000 ? 5000 : eighth_ms;
    round = empty;
    begin_round(&round, settings);
    run_storm(&round, settings->seconds * 1000 - calm_ms - 2 * settings->lease_ms);
    nemesis_next_epoch(&round.nemesis);
    enter(&round, CALM);
    round.table->calm_ns = now_ns();
    run_for(&round, calm_ms);
    enter(&round, STOP);
    end_actors(&round);
    if (settings->deployment == SINGLE_SERVER)
        look_at_what_is_left(round.world, round.table, &round.tape);
    else
        servers_note(&round.nemesis, NULL);
    bool good = round_look(round.dir, totals);
    end_round(&round);
    return good;
}

/* --- the checks --------------------------------------------------------------------------------------------------- */

static void add(struct totals *totals, const struct report *report)
{
    const struct history *history = report->history;
    for (size_t i = 0; i < history->count; i++) {
        const struct record *record = &history->records[i];
        bool odd = record->return_ns == 0 || record->code < 0 || record->code >= CODES_MAX;
        if (record->op >= OP_LOST)
            continue;
        totals->operations++;
        totals->codes[kind_of(record->object)][record->op][odd ? CODES_MAX - 1 : record->code]++;
    }
    for (size_t i = 0; i < history->fault_count; i++) {
        totals->faults[history->faults[i].kind]++;
        totals->fault_count += history->faults[i].kind < SLOW_MACHINE;
    }
    for (int i = 0; i < INVARIANTS; i++) {
        totals->sum.violations[i] += report->violations[i];
        totals->sum.seen[i] += report->seen[i];
    }
    for (int i = 0; i < KINDS; i++)
        totals->sum.acquires[i] += report->acquires[i];
    totals->sum.total += report->total;
}

bool round_look(const char *dir, struct totals *totals)
{
    struct table *table = table_map(dir, false);
    struct report report = { .out = stdout };
    assert_that(table != NULL);
    struct history history = { .lease_ms = table->lease_ms,
                               .command_ms = table->command_ms,
                               .slack_ms = SANITIZED ? 2000 : 1000,
                               .calm_ns = table->calm_ns };
    assert_that(history_read(&history, dir));
    history_join(&history);
    check_all(&report, &history);
    add(totals, &report);
    history_free(&history);
    table_unmap(table);
    return report.total == 0;
}
