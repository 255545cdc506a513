/* SPDX-License-Identifier: MIT */
/*
 * keeper_test.c - the process that ends a command: what it is told while it sleeps already, it heeds
 *
 * latchkey tells it one thing right after another, and may stand still in between for as long as the machine is busy.
 */
#include "../../cli/keeper.c"
#include "../../cli/words.c"

#include "world.h"

enum { LEASE_MS = 90000, ASLEEP_MS = 300, PATIENT_MS = 20000 };

static const struct settings settings = { .signal = SIGTERM, .kill_ms = 5000 };

/* A group of one process, as CMD is. */
static pid_t begin_group(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setpgid(0, 0);
        for (;;)
            pause();
    }
    assert_true(pid > 0);
    setpgid(pid, pid);
    return pid;
}

static bool ended(pid_t pid)
{
    return waitpid(pid, NULL, WNOHANG) == pid;
}

static void begin(struct keeper *keeper)
{
    world_rest();
    *keeper = (struct keeper){ 0 };
    assert_int_equal(0, keeper_start(keeper, &settings));
    keeper_valid_for(keeper, boot_ms(), LEASE_MS);
}

static void a_limit_is_heeded_by_one_that_sleeps(void)
{
    struct keeper keeper;
    begin(&keeper);
    pid_t group = begin_group();
    keeper_guard(&keeper, group);
    sleep_ms(ASLEEP_MS);
    keeper_limit(&keeper, 10);
    eventually(ended(group), PATIENT_MS);
    assert_int_equal(REASON_TIME, keeper_reason(&keeper));
    keeper_stop(&keeper);
}

static void so_are_a_loss_and_an_end(void)
{
    for (int i = 0; i < 2; i++) {
        struct keeper keeper;
        begin(&keeper);
        pid_t group = begin_group();
        keeper_guard(&keeper, group);
        sleep_ms(ASLEEP_MS);
        i == 0 ? keeper_valid_for(&keeper, boot_ms(), 0) : keeper_end_group(&keeper);
        eventually(ended(group), PATIENT_MS);
        assert_int_equal(i == 0 ? REASON_LOST : REASON_LEFT, keeper_reason(&keeper));
        keeper_stop(&keeper);
    }
}

int main(void)
{
    return plain_run(a_limit_is_heeded_by_one_that_sleeps, so_are_a_loss_and_an_end);
}
