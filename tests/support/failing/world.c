/* SPDX-License-Identifier: MIT */
/* world.c - every failure of a scenario, and what is left after each: nothing */
#include "failing/failing.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DESCRIPTORS = 256, LEFT_AFTER_MS = 1500, GONE_AFTER_MS = 5000, SETTLED_MS = 100 };

struct run {
    struct world *w;
    void (*scenario)(struct world *w);
    long blocks, serial;
    int descriptors;
};

/* The kernel is asked about all at once, and past the simulation, where each call is a point of its own. */
static int open_descriptors(void)
{
    int count = 0;
    struct pollfd all[DESCRIPTORS];
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        all[fd] = (struct pollfd){ .fd = fd };
    assert_that(syscall(SYS_poll, all, DESCRIPTORS, 0) >= 0);
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        count += (all[fd].revents & POLLNVAL) == 0;
    return count;
}

static bool is_as_before(const struct run *run)
{
    return failing_blocks() == run->blocks && open_descriptors() == run->descriptors;
}

/* What there is before the first failure. A thread that was left in a resolver may have something for a while yet. */
static void note_process(struct run *run)
{
    int64_t since_ms = 0;
    run->blocks = -1;
    while (!is_as_before(run) || now_ms() - since_ms < SETTLED_MS) {
        if (!is_as_before(run))
            since_ms = now_ms();
        run->blocks = failing_blocks();
        run->descriptors = open_descriptors();
        sleep_ms(1);
    }
    run->serial = failing_serial();
}

/* Nothing is left in this process. */
static void check_process(const struct run *run)
{
    int64_t until_ms = now_ms() + GONE_AFTER_MS; /* a rival's connection may have suffered, and comes back */
    while (!is_as_before(run) && now_ms() < until_ms)
        sleep_ms(1);
    if (failing_blocks() != run->blocks)
        failing_print_blocks(run->serial);
    assert_that(is_as_before(run));
}

static void run_and_check(void *arg)
{
    struct run *run = arg;
    run->scenario(run->w);
    failing_end();
    check_process(run);
    if (failing_uncertain())
        eventually(world_left(run->w) == NULL, FAILING_LEASE_MS + LEFT_AFTER_MS);
    else if (world_left(run->w) != NULL)
        assert_failed(__FILE__, __LINE__, "a key is left: %s", world_left(run->w));
}

void each_failure(struct world *w, const char *name, enum failing kind, void (*scenario)(struct world *w))
{
    struct run run = { .w = w, .scenario = scenario };
    failing_plan(&(struct failure){ .kind = kind, .nth = -1 });
    for (int i = 0; i < 2; i++) { /* what is made once in a process, and the world's own */
        scenario(w);
        failing_end();
        for (int j = 0; j < 8; j++)
            (void)world_url(w, ""); /* texts are handed out from a ring of eight */
    }
    (void)world_left(w);               /* the world's connection is there */
    world_at_end(w, NULL, &run, NULL); /* and its list of what ends with it has room */
    world_forget(w, &run);
    note_process(&run);
    int64_t began_ms = now_ms();
    int before = failing_runs();
    each_failure_of(name, kind, run_and_check, &run);
    print_message("%s: %s failed in %d runs, %d ms\n", name, kind == FAIL_CALL ? "calls" : "allocations",
                  failing_runs() - before, (int)(now_ms() - began_ms));
}
