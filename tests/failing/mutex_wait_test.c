/* SPDX-License-Identifier: MIT */
/*
 * mutex_wait_test.c - every allocation and every system call fails while a mutex is waited for: the wait ends in its
 * time, and a grant is taken or goes on to the next one
 *
 * labels: memory
 * simulated: yes
 * seconds: 52
 * support: failing
 */
#include "failing/failing.h"

static void all_of(struct world *w, enum failing kind)
{
    static const struct wait waits[] = {
        { "grant", "mutex", "mutex", false },
        { "timeout", "mutex", "mutex", true },
        { "fair grant", "fair mutex", "fair mutex", false },
        { 0 },
    };
    each_failure_of_waits(w, kind, waits);
}

int main(void)
{
    return all_failures(all_of);
}
