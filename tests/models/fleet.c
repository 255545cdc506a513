/* SPDX-License-Identifier: MIT */
/*
 * fleet.c - a simulation: very many clients of a cluster, each with the library's own acquire machine
 *
 *   bench_fleet CLIENTS NODES [tls]
 *
 * Time is computed, not waited for. A node is a queue with one server, whose service times are those that the bench measures
 * (docs/deployment.md). Each client holds something of its own nearly all the time, renews it, and gives it back now and then; one of
 * SHARED wants what GROUP of them want. After half of the time one node is replaced: all connections to it end, nobody is
 * there for FAILOVER_S, then all come at once, three connections each at most, renewals first. It prints `name value` lines:
 *
 *   fleet.busy.percent         of a node's time, before the failover
 *   fleet.renewals, .acquires  per second, of all nodes
 *   fleet.queue.ms, .max_ms    how long a request waits at a node before the failover, mean and longest
 *   fleet.acquire.ms           of what is free, mean
 *   fleet.herd.max_ms          longest wait of a request at the node that was replaced, afterwards
 *   fleet.herd.attempts        connections that were tried there, and those given up
 *   fleet.herd.given_up
 *   fleet.herd.half_s, .all_s  from the moment it serves until half of its clients, and all, are connected again
 *   fleet.failed, .lost        acquires that gave up; holds whose validity ended
 *   fleet.connections          of the node with most
 */
#include "acquire/fsm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEASE_MS = 30000,
    CLAIM_MS = 3000,
    COMMAND_MS = 3000,
    CONNECT_MS = 2000,
    RETRY_MIN_MS = 20,
    RETRY_MAX_MS = 200, /* as long as there is no master */
    POLL_MS = 1000,
    LIVENESS_MS = 6000,
    LIMIT_MS = 30000,
    TRIP_US = 200, /* one way */
    HELD_MS = 20000,
    PAUSE_MS = 100,
    SHARED = 10, /* one of so many clients, ... */
    GROUP = 10,  /* so many of which want the same, ... */
    HELD_SHARED_MS = 20,
    PAUSE_SHARED_MS = 2000,
    RUN_S = 180,
    SETTLES_S = 60, /* before anything is counted */
    FAILOVER_S = 3,
};

/* Microseconds of a node. */
enum { ASK_US = 45, GIVE_US = 45, RENEW_US = 32, CONNECT_US = 175, CONNECT_TLS_US = 690, ABANDONED_US = 40 };

#define EPOCH_US INT64_C(1700000000000000) /* between the clock of servers and ours */

enum lane { RENEWALS, COMMANDS, MESSAGES, LANES };

struct node {
    int64_t free_us, busy_us;
    bool down;
    unsigned epoch;
    int connections;
};

struct client {
    struct lk__acquirefsm machine;
    struct lk__asked asked; /* what is under way to it */
    int64_t sent_us, deadline_us, began_us, valid_us, renewed_us;
    int64_t pause_us;           /* before it tries to connect again */
    uint32_t turn, timer, line; /* generations: of a round, of the machine's timer, of the connections */
    int node, object, next;     /* next: in the queue of its object; -1: none */
    bool up[LANES], acquiring, held, queued, shared, leaving;
};

struct object {
    int holder, first, last, waiting; /* clients; -1: none */
    int64_t until_us, arrivals;
};

enum kind { BEGIN, TIMER, ANSWER, GRANT, RENEW, RENEWED, GIVE, ATTEMPT, CONNECTED, REFUSED, DOWN, UP };

struct event {
    int64_t at_us;
    enum kind kind;
    int client;
    uint32_t generation;
};

static struct client *clients;
static struct object *objects;
static struct node *nodes;
static int client_count, node_count, connect_us = CONNECT_US;
static int64_t now_us;

static struct {
    int64_t renewals, acquires, free_acquires, requests, waited_us, longest_us, acquire_us, failed, lost;
    int64_t herd_longest_us, attempts, given_up, back_us, half_us, all_us, missing, connections;
} seen;

/* --- random ------------------------------------------------------------------------------------------------------------- */

static uint64_t seed = 1;

/* The library's, so that each run is the same: xorshift64*. */
uint64_t lk__random_below(uint64_t bound)
{
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;
    return bound == 0 ? 0 : (seed * 0x2545f4914f6cdd1dULL >> 11) % bound;
}

int lk__random_id(char id[LK__ID_LENGTH + 1])
{
    memset(id, '0', LK__ID_LENGTH);
    id[LK__ID_LENGTH] = '\0';
    return 0;
}

/* Around that, evenly. */
static int64_t about_us(int64_t ms)
{
    return ms * 500 + (int64_t)lk__random_below((uint64_t)ms * 1000);
}

/* --- what is to happen: a heap ---------------------------------------------------------------------------------------- */

static struct event *heap;
static size_t heap_count, heap_room;

static void at(int64_t at_us, enum kind kind, int client, uint32_t generation)
{
    if (heap_count == heap_room) {
        heap_room = heap_room == 0 ? 1 << 16 : 2 * heap_room;
        heap = realloc(heap, heap_room * sizeof *heap);
        if (heap == NULL)
            exit(1);
    }
    size_t i = heap_count++;
    for (; i > 0 && heap[(i - 1) / 2].at_us > at_us; i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = (struct event){ at_us, kind, client, generation };
}

static struct event next_event(void)
{
    struct event first = heap[0], last = heap[--heap_count];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < heap_count; i = child) {
        child += child + 1 < heap_count && heap[child + 1].at_us < heap[child].at_us;
        if (heap[child].at_us >= last.at_us)
            break;
        heap[i] = heap[child];
    }
    heap[i] = last;
    return first;
}

/* --- a node ------------------------------------------------------------------------------------------------------------- */

static bool counts(void)
{
    return now_us > SETTLES_S * INT64_C(1000000) && seen.back_us == 0 && !nodes[0].down;
}

/* A request that is sent now: when it is done. */
static int64_t serve(struct node *node, int cost_us)
{
    int64_t here_us = now_us + TRIP_US, waits_us = node->free_us > here_us ? node->free_us - here_us : 0;
    node->free_us = here_us + waits_us + cost_us;
    if (counts()) {
        node->busy_us += cost_us;
        seen.requests++;
        seen.waited_us += waits_us;
        seen.longest_us = waits_us > seen.longest_us ? waits_us : seen.longest_us;
    } else if (node == nodes && seen.back_us != 0 && waits_us > seen.herd_longest_us) {
        seen.herd_longest_us = waits_us;
    }
    return node->free_us;
}

static void enqueue(struct object *o, int who)
{
    clients[who].queued = true;
    clients[who].next = -1;
    if (o->first < 0)
        o->first = who;
    else
        clients[o->last].next = who;
    o->last = who;
    o->waiting++;
}

static void dequeue(struct object *o, int who)
{
    int *link = &o->first, before = -1;
    while (*link >= 0 && *link != who) {
        before = *link;
        link = &clients[*link].next;
    }
    if (*link < 0)
        return;
    *link = clients[who].next;
    if (o->last == who)
        o->last = before;
    clients[who].queued = false;
    o->waiting--;
}

static void hand_over(struct object *o, int64_t done_us)
{
    o->holder = o->first;
    if (o->holder < 0)
        return;
    struct client *c = &clients[o->holder];
    dequeue(o, o->holder);
    o->until_us = done_us + CLAIM_MS * 1000;
    if (c->up[MESSAGES])
        at(done_us + TRIP_US, GRANT, (int)(c - clients), c->turn);
}

static void answer_ask(struct client *c, int64_t done_us)
{
    struct object *o = &objects[c->object];
    int who = (int)(c - clients);
    c->asked =
        (struct lk__asked){ .verdict = LK__LATE, .server_us = done_us + EPOCH_US, .epoch = nodes[c->node].epoch };
    if (done_us + EPOCH_US > c->deadline_us)
        return;
    if (o->holder >= 0 && o->until_us < done_us)
        o->holder = -1;
    if (o->holder == who || (o->holder < 0 && (o->first < 0 || o->first == who))) {
        if (c->queued)
            dequeue(o, who);
        o->holder = who;
        o->until_us = done_us + LEASE_MS * 1000;
        c->asked.verdict = LK__GRANTED;
        c->asked.token = ++o->arrivals;
        return;
    }
    if (!c->queued)
        enqueue(o, who);
    if (o->holder < 0)
        hand_over(o, done_us);
    c->asked.verdict = LK__QUEUED;
    c->asked.arrival = ++o->arrivals;
    c->asked.left_ms = (o->until_us - done_us) / 1000;
    c->asked.place = o->waiting - 1;
}

static void answer_leave(struct client *c, int64_t done_us)
{
    struct object *o = &objects[c->object];
    int who = (int)(c - clients);
    if (c->queued)
        dequeue(o, who);
    if (o->holder == who)
        hand_over(o, done_us);
}

/* --- a client: acquiring ---------------------------------------------------------------------------------------------- */

static void rest(struct client *c)
{
    c->acquiring = c->held = false;
    at(now_us + about_us(c->shared ? PAUSE_SHARED_MS : PAUSE_MS), BEGIN, (int)(c - clients), ++c->turn);
}

static void finish(struct client *c)
{
    const struct lk__acquirefsm_result *result = &c->machine.result;
    int who = (int)(c - clients);
    c->acquiring = false;
    if (result->code != 0) {
        seen.failed++;
        rest(c);
        return;
    }
    if (counts()) {
        seen.acquires++;
        seen.free_acquires += !c->shared;
        seen.acquire_us += c->shared ? 0 : now_us - c->began_us;
    }
    c->held = true;
    c->valid_us = result->valid_until_us;
    at(result->first_us, RENEW, who, c->turn);
    at(now_us + about_us(c->shared ? HELD_SHARED_MS : HELD_MS), GIVE, who, c->turn);
}

static struct lk__step send_request(struct client *c, struct lk__step step)
{
    struct node *node = &nodes[c->node];
    c->leaving = step.act == LK__LEAVE;
    int64_t done_us = serve(node, c->leaving ? GIVE_US : ASK_US);
    c->sent_us = now_us;
    if (!c->leaving)
        c->deadline_us = now_us + EPOCH_US + COMMAND_MS * 1000;
    if (c->leaving)
        answer_leave(c, done_us);
    else
        answer_ask(c, done_us);
    at(done_us + TRIP_US, ANSWER, (int)(c - clients), c->line);
    const struct lk__until until = { { c->deadline_us, node->epoch }, now_us + COMMAND_MS * 1000 };
    return lk__acquirefsm_sent(&c->machine, now_us, c->leaving ? NULL : &until);
}

/* Do what the machine says, until it waits for something. */
static void follow(struct client *c, struct lk__step step)
{
    while (step.act == LK__ASK || step.act == LK__LEAVE)
        step = c->up[COMMANDS] ? send_request(c, step) : lk__acquirefsm_unsent(&c->machine, now_us);
    c->timer++;
    if (step.act == LK__FINISHED)
        finish(c);
    else if (step.until_us != LK__NEVER)
        at(step.until_us, TIMER, (int)(c - clients), c->timer);
}

static void begin(struct client *c)
{
    const struct lk__acquirefsm_settings settings = { .limit_us = now_us + LIMIT_MS * 1000,
                                                      .lease_ms = LEASE_MS,
                                                      .poll_ms = POLL_MS,
                                                      .liveness_ms = LIVENESS_MS,
                                                      .command_us = COMMAND_MS * 1000,
                                                      .retry_min_ms = RETRY_MIN_MS,
                                                      .retry_max_ms = RETRY_MAX_MS };
    c->acquiring = true;
    c->began_us = now_us;
    lk__acquirefsm_init(&c->machine, &settings);
    c->machine.heard = true;
    follow(c, lk__acquirefsm_start(&c->machine, now_us));
}

static void take_answer(struct client *c)
{
    const struct lk__answer left = { LK__DONE, now_us + EPOCH_US };
    follow(c, c->leaving ? lk__acquirefsm_left(&c->machine, now_us, nodes[c->node].epoch, &left)
                         : lk__acquirefsm_answered(&c->machine, now_us, c->sent_us, &c->asked));
}

static void take_grant(struct client *c)
{
    const struct lk__grant grant = { now_us - TRIP_US + EPOCH_US, CLAIM_MS, 1, false, nodes[c->node].epoch };
    follow(c, lk__acquirefsm_granted(&c->machine, now_us, &grant));
}

/* --- a client: holding ------------------------------------------------------------------------------------------------- */

static bool is_lost(struct client *c)
{
    if (c->valid_us > now_us)
        return false;
    seen.lost++;
    rest(c);
    return true;
}

static void renew(struct client *c)
{
    int who = (int)(c - clients);
    if (is_lost(c) || !c->up[RENEWALS])
        return; /* connecting brings it up again */
    c->renewed_us = now_us;
    seen.renewals += counts();
    int64_t done_us = serve(&nodes[c->node], RENEW_US);
    if (objects[c->object].holder == who)
        objects[c->object].until_us = done_us + LEASE_MS * 1000;
    at(done_us + TRIP_US, RENEWED, who, c->turn);
}

static void take_renewal(struct client *c)
{
    if (is_lost(c))
        return;
    c->valid_us = c->renewed_us + LEASE_MS * 990;
    at(c->renewed_us + LEASE_MS * 1000 / 3, RENEW, (int)(c - clients), c->turn);
}

/* What cannot be sent is the outbox's, and goes with the next connection. */
static void give(struct client *c)
{
    if (!c->up[COMMANDS]) {
        at(now_us + RETRY_MAX_MS * 1000, GIVE, (int)(c - clients), c->turn);
        return;
    }
    answer_leave(c, serve(&nodes[c->node], GIVE_US));
    rest(c);
}

/* --- a client: connecting ---------------------------------------------------------------------------------------------- */

/* The one to be made next, by what is needed. */
static enum lane missing(const struct client *c)
{
    enum lane lane = RENEWALS;
    while (lane < LANES && c->up[lane])
        lane++;
    return lane == MESSAGES && !c->shared ? LANES : lane;
}

static void attempt(struct client *c)
{
    struct node *node = &nodes[c->node];
    int who = (int)(c - clients);
    int64_t waits_us = node->free_us - now_us - TRIP_US;
    if (missing(c) == LANES)
        return;
    if (node->down) {
        at(now_us + 2 * TRIP_US, REFUSED, who, c->line);
        return;
    }
    seen.attempts += seen.back_us != 0;
    if (waits_us > CONNECT_MS * 1000) { /* it is gone when its turn comes */
        seen.given_up += seen.back_us != 0;
        serve(node, ABANDONED_US);
        at(now_us + CONNECT_MS * 1000, REFUSED, who, c->line);
        return;
    }
    at(serve(node, connect_us) + TRIP_US, CONNECTED, who, c->line);
}

static void try_again(struct client *c)
{
    c->pause_us = c->pause_us == 0 ? RETRY_MIN_MS * 1000 : 2 * c->pause_us;
    if (c->pause_us > RETRY_MAX_MS * 1000)
        c->pause_us = RETRY_MAX_MS * 1000;
    int64_t spread_us = (int64_t)lk__random_below((uint64_t)c->pause_us / 4 + 1);
    at(now_us + c->pause_us - spread_us, ATTEMPT, (int)(c - clients), c->line);
}

static void use_connection(struct client *c, enum lane lane)
{
    if (lane == RENEWALS && c->held)
        renew(c);
    if (lane == COMMANDS && c->acquiring)
        follow(c, lk__acquirefsm_connected(&c->machine, now_us, 0));
    if (lane == MESSAGES && c->acquiring)
        follow(c, lk__acquirefsm_hinted(&c->machine, now_us));
}

static void connected(struct client *c)
{
    enum lane lane = missing(c);
    struct node *node = &nodes[c->node];
    if (lane == LANES)
        return;
    c->pause_us = 0;
    c->up[lane] = true;
    node->connections++;
    seen.connections = node->connections > seen.connections ? node->connections : seen.connections;
    attempt(c);
    use_connection(c, lane);
    if (seen.back_us == 0 || node != nodes || missing(c) != LANES)
        return;
    seen.missing--;
    if (seen.missing <= client_count / node_count / 2 && seen.half_us == 0)
        seen.half_us = now_us - seen.back_us;
    if (seen.missing == 0)
        seen.all_us = now_us - seen.back_us;
}

static void disconnect(struct client *c)
{
    bool sent = c->acquiring && c->up[COMMANDS];
    memset(c->up, 0, sizeof c->up);
    c->line++;
    c->pause_us = 0;
    at(now_us + (int64_t)lk__random_below(RETRY_MIN_MS * 1000), ATTEMPT, (int)(c - clients), c->line);
    if (sent && c->sent_us + 1000 > now_us && !c->queued) /* it was under way */
        follow(c, lk__acquirefsm_cut(&c->machine, now_us, LK__CUT));
}

static void node_down(void)
{
    nodes[0].down = true;
    nodes[0].connections = 0;
    for (int i = 0; i < client_count; i += node_count) {
        disconnect(&clients[i]);
        seen.missing++;
    }
    at(now_us + FAILOVER_S * INT64_C(1000000), UP, 0, 0);
}

static void node_up(void)
{
    nodes[0].down = false;
    nodes[0].epoch++;
    nodes[0].free_us = now_us;
    seen.back_us = now_us;
}

/* --- all of it --------------------------------------------------------------------------------------------------------- */

static void happen(const struct event *event)
{
    struct client *c = &clients[event->client];
    bool of_turn = event->generation == c->turn, of_line = event->generation == c->line;
    switch (event->kind) {
    case BEGIN:
        return of_turn ? begin(c) : (void)0;
    case TIMER:
        return event->generation == c->timer && c->acquiring ? follow(c, lk__acquirefsm_tick(&c->machine, now_us))
                                                             : (void)0;
    case ANSWER:
        return of_line && c->acquiring ? take_answer(c) : (void)0;
    case GRANT:
        return of_turn && c->acquiring && c->up[MESSAGES] ? take_grant(c) : (void)0;
    case RENEW:
        return of_turn && c->held ? renew(c) : (void)0;
    case RENEWED:
        return of_turn && c->held && c->up[RENEWALS] ? take_renewal(c) : (void)0;
    case GIVE:
        return of_turn && c->held ? give(c) : (void)0;
    case ATTEMPT:
        return of_line ? attempt(c) : (void)0;
    case CONNECTED:
        return of_line ? connected(c) : (void)0;
    case REFUSED:
        return of_line ? try_again(c) : (void)0;
    case DOWN:
        return node_down();
    case UP:
        return node_up();
    }
}

/* Each client's objects are at one node; they come one after another, within the time before anything is counted. */
static void make(void)
{
    clients = calloc((size_t)client_count, sizeof *clients);
    objects = calloc((size_t)client_count, sizeof *objects);
    nodes = calloc((size_t)node_count, sizeof *nodes);
    if (clients == NULL || objects == NULL || nodes == NULL)
        exit(1);
    for (int i = 0; i < client_count; i++) {
        struct client *c = &clients[i];
        int number = i / node_count; /* among those of its node */
        c->node = i % node_count;
        c->shared = number % SHARED == 0;
        c->object = c->shared ? number / SHARED / GROUP * GROUP * SHARED * node_count + c->node : i;
        objects[i] = (struct object){ -1, -1, -1, 0, 0, 0 };
        int64_t at_us = (int64_t)lk__random_below(SETTLES_S * UINT64_C(500000));
        at(at_us, ATTEMPT, i, 0);
        at(at_us + 1000, BEGIN, i, 0);
    }
    at(RUN_S * INT64_C(500000), DOWN, 0, 0);
}

static void tell(const char *name, double value)
{
    printf("fleet.%s %.3f\n", name, value);
}

static void tell_all(double counted_s)
{
    int64_t busy_us = 0;
    for (int i = 0; i < node_count; i++)
        busy_us += nodes[i].busy_us;
    tell("busy.percent", (double)busy_us / node_count / counted_s / 1e4);
    tell("renewals", (double)seen.renewals / counted_s);
    tell("acquires", (double)seen.acquires / counted_s);
    tell("queue.ms", (double)seen.waited_us / (double)(seen.requests + 1) / 1e3);
    tell("queue.max_ms", (double)seen.longest_us / 1e3);
    tell("acquire.ms", (double)seen.acquire_us / (double)(seen.free_acquires + 1) / 1e3);
    tell("herd.max_ms", (double)seen.herd_longest_us / 1e3);
    tell("herd.attempts", (double)seen.attempts);
    tell("herd.given_up", (double)seen.given_up);
    tell("herd.half_s", (double)seen.half_us / 1e6);
    tell("herd.all_s", (double)seen.all_us / 1e6);
    tell("failed", (double)seen.failed);
    tell("lost", (double)seen.lost);
    tell("connections", (double)seen.connections);
}

int main(int argc, char **argv)
{
    client_count = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0;
    node_count = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;
    if (client_count < 1 || node_count < 1 || client_count < node_count) {
        fprintf(stderr, "usage: %s CLIENTS NODES [tls]\n", argv[0]);
        return 64;
    }
    if (argc > 3 && strcmp(argv[3], "tls") == 0)
        connect_us = CONNECT_TLS_US;
    make();
    while (heap_count > 0 && now_us < RUN_S * INT64_C(1000000)) {
        struct event event = next_event();
        now_us = event.at_us;
        happen(&event);
    }
    tell_all(RUN_S / 2 - SETTLES_S);
    return 0;
}
