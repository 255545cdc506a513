/* SPDX-License-Identifier: MIT */
/*
 * rwlock_wait_test.c - every allocation and every system call fails while a read-write lock is waited for
 *
 * labels: memory
 * simulated: yes
 * seconds: 33
 * support: failing
 */
#include "failing/failing.h"

static void all_of(struct world *w, enum failing kind)
{
    static const struct wait waits[] = {
        { "grant", "reader", "writer", false },
        { "timeout", "writer", "reader", true },
        { 0 },
    };
    each_failure_of_waits(w, kind, waits);
}

int main(void)
{
    return all_failures(all_of);
}
