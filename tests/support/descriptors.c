/* SPDX-License-Identifier: MIT */
/* descriptors.c - few descriptors: see descriptors.h */
#include "descriptors.h"
#include "assert_lk.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

static struct rlimit before; /* while `limited` */
static bool limited;

void descriptors_most(int most)
{
    struct rlimit limit;
    assert_int_equal(0, getrlimit(RLIMIT_NOFILE, &limit));
    if (!limited)
        before = limit;
    limited = true;
    limit.rlim_cur = (rlim_t)most;
    assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &limit));
}

void descriptors_more(int more)
{
    int lowest = fcntl(0, F_DUPFD, 0); /* all below are taken */
    assert_true(lowest >= 0);
    close(lowest);
    descriptors_most(lowest + more);
}

void descriptors_lift(void)
{
    if (limited)
        assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &before));
    limited = false;
}
