/* SPDX-License-Identifier: MIT */
/*
 * servers_test.c - locks on two servers, of one name and of several: whichever server a program calls the first
 *
 * processors: 4
 * labels: threads noise
 * simulated: yes
 */
#include "world.h"

#include <sched.h>
#include <string.h>

enum { PROCESSES = 6, ROUNDS = SANITIZED || NOISY ? 8 : 20 };

struct shared {
    char urls[2][160];
    int counter, inside; /* only the locks guard them */
    struct gate start;
};

static struct world *other; /* the second server */

static struct shared *open_servers(struct world *w)
{
    struct shared *shared = world_shared(w, sizeof *shared);
    other = world_second(w);
    strcpy(shared->urls[0], world_url(w, "lease=10s"));
    strcpy(shared->urls[1], world_url(other, "lease=10s"));
    return shared;
}

/* A program of its own: `first` is the server that it names first. */
struct party {
    struct shared *shared;
    int first;
    bool alike; /* its locks have one name */
};

struct part {
    lk_client_t *client;
    lk_mutex_t mutex, own;
};

static void open_part(struct part *part, const char *url, const char *own)
{
    assert_lk(0, open_patiently(&part->client, url));
    assert_lk(0, lk_mutex_init(&part->mutex, part->client, "same", NULL));
    assert_lk(0, lk_mutex_init(&part->own, part->client, own, NULL));
}

static void close_part(struct part *part)
{
    assert_lk(0, lk_mutex_destroy(&part->mutex));
    assert_lk(0, lk_mutex_destroy(&part->own));
    assert_lk(0, lk_client_close(part->client));
}

static int be_inside(struct shared *shared)
{
    int counter = shared->counter, wrong = shared->inside != 0 ? 3 : 0;
    shared->inside = 1;
    sched_yield();
    wrong |= shared->inside != 1 || shared->counter != counter ? 4 : 0;
    shared->counter = counter + 1;
    shared->inside = 0;
    return wrong;
}

static int party_main(struct world *w, void *arg)
{
    struct party *party = arg;
    struct part parts[2];
    lk_multi_t s;
    int wrong = 0;
    /* "x" of the one server and "y" of the other: the names say which comes first, whoever calls which the first */
    for (int i = 0; i < 2; i++) {
        int server = i ^ party->first;
        open_part(&parts[i], party->shared->urls[server], server == 0 ? "x" : "y");
    }
    assert_lk(0, lk_multi_init(&s));
    for (int i = 0; i < 2; i++)
        assert_lk(0, lk_multi_addmutex(&s, party->alike ? &parts[i].mutex : &parts[i].own));
    world_ready(w);
    gate_pass(&party->shared->start);
    for (int i = 0; i < ROUNDS && wrong == 0; i++) {
        wrong = lk_multi_lockfor(&s, 40000) != 0 ? 1 : be_inside(party->shared);
        if (wrong == 0 && lk_multi_unlock(&s) != 0)
            wrong = 2;
    }
    assert_lk(0, lk_multi_destroy(&s));
    for (int i = 0; i < 2; i++)
        close_part(&parts[i]);
    return wrong;
}

static void all_at_once(struct world *w, bool alike)
{
    struct shared *shared = open_servers(w);
    struct party parties[PROCESSES];
    pid_t pids[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        parties[i] = (struct party){ .shared = shared, .first = i % 2, .alike = alike };
        pids[i] = world_fork(w, party_main, &parties[i]);
    }
    gate_open(&shared->start);
    for (int i = 0; i < PROCESSES; i++)
        assert_int_equal(0, world_wait(w, pids[i]));
    assert_int_equal(PROCESSES * ROUNDS, shared->counter);
}

static void programs_that_name_the_servers_the_other_way_round_agree(struct world *w)
{
    all_at_once(w, false);
}

/* Nothing tells which of them comes first, so nobody waits for the one while it holds the other. */
static void equal_names_on_two_servers_are_no_trap(struct world *w)
{
    all_at_once(w, true);
}

/* Whichever of the two somebody has: while it is waited for the other one is free. */
static void of_equal_names_none_is_held_while_another_is_waited_for(struct world *w)
{
    struct shared *shared = open_servers(w);
    struct part parts[2];
    for (int i = 0; i < 2; i++)
        open_part(&parts[i], shared->urls[i], i == 0 ? "x" : "y");
    for (int held = 0; held < 2; held++) {
        struct worker waiter;
        lk_multi_t s;
        lk_client_t *stranger;
        lk_mutex_t m;
        assert_lk(0, open_patiently(&stranger, shared->urls[held]));
        assert_lk(0, lk_mutex_init(&m, stranger, "same", NULL));
        assert_lk(0, lk_mutex_lock(&m));
        assert_lk(0, lk_multi_init(&s));
        assert_lk(0, lk_multi_addmutex(&s, &parts[0].mutex));
        assert_lk(0, lk_multi_addmutex(&s, &parts[1].mutex));
        worker_start(&waiter, lock_and_unlock_all, &s);
        eventually(world_queued(held == 0 ? w : other, "same") == 1, 20000);
        assert_int_equal(-1, world_holds(held == 0 ? other : w, "same"));
        assert_lk(0, lk_mutex_unlock(&m));
        assert_int_equal(0, worker_join(&waiter));
        assert_lk(0, lk_multi_destroy(&s));
        assert_lk(0, lk_mutex_destroy(&m));
        assert_lk(0, lk_client_close(stranger));
    }
    for (int i = 0; i < 2; i++)
        close_part(&parts[i]);
}

/* Names say what is held while the other is waited for, and not servers: whichever server has the first of them. */
static void the_first_name_is_held_while_the_second_is_waited_for(struct world *w)
{
    struct shared *shared = open_servers(w);
    for (int first = 0; first < 2; first++) {
        struct world *of_x = first == 0 ? w : other, *of_y = first == 0 ? other : w;
        struct part parts[2];
        struct worker waiter;
        lk_client_t *stranger;
        lk_mutex_t m;
        lk_multi_t s;
        open_part(&parts[0], shared->urls[first], "x");
        open_part(&parts[1], shared->urls[1 - first], "y");
        assert_lk(0, open_patiently(&stranger, shared->urls[1 - first]));
        assert_lk(0, lk_mutex_init(&m, stranger, "y", NULL));
        assert_lk(0, lk_mutex_lock(&m));
        assert_lk(0, lk_multi_init(&s));
        assert_lk(0, lk_multi_addmutex(&s, &parts[1].own));
        assert_lk(0, lk_multi_addmutex(&s, &parts[0].own));
        worker_start(&waiter, lock_and_unlock_all, &s);
        eventually(world_queued(of_y, "y") == 1, 20000);
        assert_int_equal(1, world_holds(of_x, "x"));
        assert_lk(0, lk_mutex_unlock(&m));
        assert_int_equal(0, worker_join(&waiter));
        assert_lk(0, lk_multi_destroy(&s));
        assert_lk(0, lk_mutex_destroy(&m));
        assert_lk(0, lk_client_close(stranger));
        close_part(&parts[0]);
        close_part(&parts[1]);
    }
}

/* One of the servers is away: what the other one granted is given back, and the words say which it was. */
static void a_server_that_is_away_leaves_nothing_on_the_other(struct world *w)
{
    struct shared *shared = open_servers(w);
    struct part parts[2];
    lk_multi_t s;
    for (int i = 0; i < 2; i++)
        open_part(&parts[i], shared->urls[i], i == 0 ? "x" : "y");
    assert_lk(0, lk_multi_init(&s));
    assert_lk(0, lk_multi_addmutex(&s, &parts[1].own));
    assert_lk(0, lk_multi_addmutex(&s, &parts[0].own));
    world_kill_server(other);
    assert_lk(ENOTCONN, lk_multi_trylock(&s));
    assert_non_null(strstr(lk_errortext(), "mutex y"));
    assert_int_equal(-1, world_holds(w, "x"));
    assert_lk(ENOTCONN, lk_multi_lockfor(&s, 300));
    assert_int_equal(-1, world_holds(w, "x"));
    world_restart_server(other);
    assert_lk(0, lk_multi_lockfor(&s, 20000));
    assert_lk(0, lk_multi_unlock(&s));
    assert_lk(0, lk_multi_destroy(&s));
    for (int i = 0; i < 2; i++)
        close_part(&parts[i]);
}

int main(void)
{
    return world_run(programs_that_name_the_servers_the_other_way_round_agree, equal_names_on_two_servers_are_no_trap,
                     of_equal_names_none_is_held_while_another_is_waited_for,
                     the_first_name_is_held_while_the_second_is_waited_for,
                     a_server_that_is_away_leaves_nothing_on_the_other);
}
