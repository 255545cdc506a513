/* SPDX-License-Identifier: MIT */
/*
 * vanished_test.c - an absent key is not an open latch: open, deleted, lost and never set are told apart
 *
 * labels: threads memory
 * simulated: yes
 */
#include "world.h"

#include <string.h>

static lk_client_t *client;
static lk_latch_t *gate;

static void open_gate(struct world *w, const char *options)
{
    client = world_client(w, options);
    gate = world_latch(w, client, "gate");
}

static void start_waiting(struct worker *waiter, struct world *w)
{
    int64_t before = world_commands(w, "evalsha") + world_commands(w, "eval");
    worker_start(waiter, await_latch, gate);
    eventually(world_commands(w, "evalsha") + world_commands(w, "eval") >= before + 2, 5000);
    sleep_ms(20);
}

/* Waiting for what nobody set would be waiting for ever, or not at all: it is an error. */
static void never_set_is_enoent(struct world *w)
{
    open_gate(w, "");
    assert_lk(ENOENT, lk_latch_wait(gate));
    assert_lk(ENOENT, lk_latch_waitfor(gate, 1000));
    assert_string_equal("", world_keys(w));
    assert_lk(ENOENT, lk_latch_countdown(gate));
    assert_lk(ENOENT, lk_latch_delete(gate));
    assert_string_equal("latchkey:once:{gate}", world_keys(w)); /* copies of the two do not count later */
}

/* A late comer learns that it opened, as long as the mark is there. */
static void an_opened_one_is_open_for_ten_minutes(struct world *w)
{
    open_gate(w, "");
    assert_lk(0, lk_latch_trysetcount(gate, 1));
    assert_lk(0, lk_latch_countdown(gate));
    assert_between(world_pttl(w, "latchkey:opened:{gate}"), 590000, 600000);
    assert_lk(0, lk_latch_wait(gate));
    world_redis(w, "DEL latchkey:opened:{gate}"); /* ten minutes later */
    assert_lk(ENOENT, lk_latch_wait(gate));
}

/* The server lost its data while we waited: to say "open" would start what must not start. */
static void lost_data_is_estale(struct world *w)
{
    static const char *const losses[] = { "FLUSHALL", "DEL gate", "CLIENT KILL TYPE pubsub" };
    static const char *const options[] = { "poll=200ms", "poll=200ms&pubsub=no" };
    for (int i = 0; i < 2; i++) {
        open_gate(w, options[i]);
        for (int k = 0; k < 2; k++) {
            struct worker waiter;
            assert_lk(0, lk_latch_trysetcount(gate, 1)); /* one opened before: its mark is not for this count */
            assert_lk(0, lk_latch_countdown(gate));
            assert_lk(0, lk_latch_trysetcount(gate, 2));
            start_waiting(&waiter, w);
            world_redis(w, losses[2]);
            world_redis(w, losses[k]);
            int64_t lost_ms = now_ms();
            assert_int_equal(ESTALE, worker_join(&waiter));
            assert_between(now_ms() - lost_ms, 0, 240 + 100 + SLACK_MS);
            assert_lk(ENOENT, lk_latch_wait(gate)); /* who did not see it cannot know that there was one */
            assert_lk(ENOENT, lk_latch_countdown(gate));
        }
        world_close(w, client);
    }
}

/* A server that comes back without its data is the same loss; the waiter notices when it reconnects. */
static void a_restarted_server_is_a_loss(struct world *w)
{
    struct worker waiter;
    open_gate(w, "lease=20s&poll=5s");
    assert_lk(0, lk_latch_trysetcount(gate, 1));
    start_waiting(&waiter, w);
    world_kill_server(w);
    sleep_ms(100);
    world_restart_server(w);
    int64_t back_ms = now_ms();
    assert_int_equal(ESTALE, worker_join(&waiter));
    assert_between(now_ms() - back_ms, 0, 4000);
}

/* One that kept them is not. */
static void a_restarted_server_with_its_data_is_none(struct world *w)
{
    struct worker waiter;
    open_gate(w, "lease=20s&poll=5s");
    assert_lk(0, lk_latch_trysetcount(gate, 1));
    start_waiting(&waiter, w);
    world_redis(w, "SAVE");
    world_kill_server(w);
    world_restart_server(w);
    assert_int_equal(1, world_int(w, "GET gate"));
    int rc;
    eventually((rc = lk_latch_countdown(gate)) != ENOTCONN, 5000);
    assert_true(rc == 0 || rc == EIO); /* then the library goes on, and it is not to be repeated */
    assert_int_equal(0, worker_join(&waiter));
}

/* Scripts are sent again when the server forgot them. */
static void a_script_flush_goes_unnoticed(struct world *w)
{
    struct worker waiter;
    open_gate(w, "poll=200ms");
    world_redis(w, "SCRIPT FLUSH");
    assert_lk(0, lk_latch_trysetcount(gate, 2));
    start_waiting(&waiter, w);
    world_redis(w, "SCRIPT FLUSH");
    assert_lk(0, lk_latch_countdown(gate));
    sleep_ms(300);
    world_redis(w, "SCRIPT FLUSH");
    assert_lk(0, lk_latch_countdown(gate));
    assert_int_equal(0, worker_join(&waiter));
}

int main(void)
{
    return world_run(never_set_is_enoent, an_opened_one_is_open_for_ten_minutes, lost_data_is_estale,
                     a_restarted_server_is_a_loss, a_restarted_server_with_its_data_is_none,
                     a_script_flush_goes_unnoticed);
}
