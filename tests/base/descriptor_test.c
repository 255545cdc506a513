/* SPDX-License-Identifier: MIT */
/*
 * descriptor_test.c - a descriptor of the library is never one that the program prints to
 */
#include "assert_lk.h"
#include "base/base.h"
#include "descriptors.h"

#include <fcntl.h>
#include <unistd.h>

/* As a daemon's: the next descriptor is 0. */
static int without_stdin(void **state)
{
    *state = (void *)(intptr_t)fcntl(0, F_DUPFD_CLOEXEC, 3);
    close(0);
    return 0;
}

static int with_stdin(void **state)
{
    int before = (int)(intptr_t)*state;
    if (before >= 0) {
        dup2(before, 0);
        close(before);
    }
    return 0;
}

static void it_moves_up(void **state)
{
    (void)state;
    assert_int_equal(0, open("/dev/null", O_RDONLY));
    int fd = lk__fd_ours(0);
    assert_true(fd >= 3);
    assert_int_equal(FD_CLOEXEC, fcntl(fd, F_GETFD));
    assert_int_equal(-1, fcntl(0, F_GETFD)); /* for whoever wants it */
    assert_int_equal(fd, lk__fd_ours(fd));
    assert_int_equal(0, close(fd));
}

/* None left: an answer, and nothing stays open. */
static void there_may_be_none_left(void **state)
{
    (void)state;
    assert_int_equal(0, open("/dev/null", O_RDONLY));
    descriptors_most(3);
    int fd = lk__fd_ours(0), error = errno;
    descriptors_lift();
    assert_int_equal(-1, fd);
    assert_int_equal(EMFILE, error);
    assert_int_equal(-1, fcntl(0, F_GETFD));
}

static void what_is_none_stays_none(void **state)
{
    (void)state;
    errno = ENFILE;
    assert_int_equal(-1, lk__fd_ours(-1));
    assert_int_equal(ENFILE, errno);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_moves_up, without_stdin, with_stdin),
        cmocka_unit_test_setup_teardown(there_may_be_none_left, without_stdin, with_stdin),
        cmocka_unit_test(what_is_none_stays_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
