/* SPDX-License-Identifier: MIT */
/*
 * words_test.c - failures have words, each thread its own; the log says what was asked for, and errno stays
 *
 * labels: threads memory
 */
#include "assert_lk.h"
#include "base/base.h"
#include "log.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* --- words of the last failure -------------------------------------------------------------------------- */

static int fail_elsewhere(void *arg)
{
    (void)arg;
    if (strcmp(lk_errortext(), "") != 0)
        return 1; /* what others failed at is not ours */
    if (lk__fail(EBUSY, "busy with %s", "something else") != EBUSY)
        return 2;
    return strcmp(lk_errortext(), "busy with something else") != 0;
}

static void each_thread_has_words_of_its_own(void)
{
    assert_lk(EIO, lk__fail(EIO, "mutex %s: %d answers lost", "orders", 3));
    assert_string_equal(lk_errortext(), "mutex orders: 3 answers lost");
    assert_int_equal(in_thread(fail_elsewhere, NULL), 0);
    assert_string_equal(lk_errortext(), "mutex orders: 3 answers lost");
}

/* What a server says is quoted, and may be meant for the terminal of whoever reads the log. */
static void words_are_one_line_without_tricks(void)
{
    lk__fail(EPROTO, "the server says: %s", "ERR \x1b[2J\r\nlatchkey: fine\x7f caf\xc3\xa9");
    assert_string_equal(lk_errortext(), "the server says: ERR ?[2J??latchkey: fine? caf\xc3\xa9");
}

static int fail_often(int index, void *arg)
{
    char expected[64];
    (void)arg;
    for (int i = 0; i < 200; i++) {
        snprintf(expected, sizeof expected, "thread %d failed %d times", index, i);
        lk__fail(EIO, "thread %d failed %d times", index, i);
        if (strcmp(lk_errortext(), expected) != 0)
            return 1;
    }
    return 0;
}

static void words_of_threads_do_not_mix(void)
{
    assert_int_equal(run_threads(8, fail_often, NULL), 0);
}

static void words_stay_until_the_next_failure(void)
{
    lk__fail(EIO, "first");
    const char *errmsg = lk_errortext();
    assert_lk(0, log_to(NULL, LK_LOG_WARNING, NULL)); /* a success */
    assert_ptr_equal(lk_errortext(), errmsg);
    assert_string_equal(errmsg, "first");
    lk__fail(EIO, "second");
    assert_string_equal(lk_errortext(), "second");
}

static void words_too_long_are_cut(void)
{
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_lk(EINVAL, lk__fail(EINVAL, "%s", text));
    assert_int_equal(strlen(lk_errortext()), sizeof((struct lk__thread *)NULL)->errortext - 1);
    lk__fail(EINVAL, "%s%%n", "a word with a %s in it: "); /* what words bring along is no format */
    assert_string_equal(lk_errortext(), "a word with a %s in it: %n");
}

/* --- words for codes ------------------------------------------------------------------------------------ */

static void each_documented_code_has_words_of_its_own(void)
{
    static const int codes[] = { 0,         EBUSY,      ETIMEDOUT,       EPERM,    ESTALE,    EDEADLK, EAGAIN,
                                 EOVERFLOW, EOWNERDEAD, ENOTRECOVERABLE, ENOTCONN, EIO,       EPROTO,  EACCES,
                                 ENOSPC,    ENOTSUP,    ENOENT,          EEXIST,   ECANCELED, EINVAL,  ENOMEM };
    enum { COUNT = sizeof codes / sizeof *codes };
    const char *unknown = lk_strerror(-1);
    for (size_t i = 0; i < COUNT; i++) {
        const char *errmsg = lk_strerror(codes[i]);
        assert_non_null(errmsg);
        assert_string_not_equal(errmsg, "");
        assert_string_not_equal(errmsg, unknown);
        assert_ptr_equal(errmsg, lk_strerror(codes[i])); /* a constant string */
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(errmsg, lk_strerror(codes[j]));
    }
}

static void unknown_codes_have_words_as_well(void)
{
    static const int codes[] = { -1, INT32_MAX, INT32_MIN, ECHILD, 4095 };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        errno = ERRNO_MARK;
        assert_non_null(lk_strerror(codes[i]));
        assert_string_not_equal(lk_strerror(codes[i]), "");
        assert_int_equal(errno, ERRNO_MARK);
    }
}

static void the_version_is_that_of_the_header(void)
{
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", LK_VERSION_MAJOR, LK_VERSION_MINOR, LK_VERSION_PATCH);
    assert_string_equal(lk_version(), version);
}

/* --- a log of the program's own ------------------------------------------------------------------------- */

struct on_message {
    atomic_int lines;
    int level;
    char line[1024];
};

static void hear(void *arg, int level, const char *line)
{
    struct on_message *on_message = arg;
    atomic_fetch_add(&on_message->lines, 1);
    on_message->level = level;
    snprintf(on_message->line, sizeof on_message->line, "%s", line);
    errno = EBADF; /* a sink may do anything */
}

static int hear_nothing(void **state)
{
    (void)state;
    return log_to(NULL, LK_LOG_WARNING, NULL);
}

static void the_log_hears_what_it_wants_and_nothing_less_important(void)
{
    for (int wanted = LK_LOG_ERROR; wanted <= LK_LOG_DEBUG; wanted++)
        for (int level = LK_LOG_ERROR; level <= LK_LOG_DEBUG; level++) {
            struct on_message on_message = { 0 };
            assert_lk(0, log_to(hear, wanted, &on_message));
            errno = ERRNO_MARK;
            lk__log(level, "line %d of %s", level, "many");
            assert_int_equal(errno, ERRNO_MARK);
            assert_int_equal(on_message.lines, level <= wanted);
            if (level <= wanted) {
                char line[32];
                snprintf(line, sizeof line, "line %d of many", level);
                assert_int_equal(on_message.level, level);
                assert_string_equal(on_message.line, line);
            }
        }
}

/* Whoever looks for the reason of a failure finds its words in the log, if it hears everything. */
static void failures_are_logged_for_who_debugs(void)
{
    struct on_message on_message = { 0 };
    assert_lk(0, log_to(hear, LK_LOG_DEBUG, &on_message));
    assert_lk(EPROTO, lk__fail(EPROTO, "half an answer"));
    assert_int_equal(on_message.lines, 1);
    assert_string_equal(on_message.line, "half an answer");
    assert_lk(0, log_to(hear, LK_LOG_INFO, &on_message));
    assert_lk(EPROTO, lk__fail(EPROTO, "another half"));
    assert_int_equal(on_message.lines, 1);
}

static void a_level_that_does_not_exist_changes_nothing(void)
{
    static const int levels[] = { 0, -1, LK_LOG_DEBUG + 1, INT32_MAX, INT32_MIN };
    struct on_message first = { 0 }, second = { 0 };
    assert_lk(0, log_to(hear, LK_LOG_INFO, &first));
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        assert_lk(EINVAL, log_to(hear, levels[i], &second));
    lk__log(LK_LOG_INFO, "hello");
    assert_int_equal(first.lines, 1);
    assert_int_equal(second.lines, 0);
}

static void no_log_hears_nothing(void)
{
    struct on_message on_message = { 0 };
    assert_lk(0, log_to(hear, LK_LOG_DEBUG, &on_message));
    assert_lk(0, log_to(NULL, LK_LOG_DEBUG, &on_message));
    lk__log(LK_LOG_ERROR, "nobody is told");
    assert_int_equal(on_message.lines, 0);
}

static void a_line_too_long_is_cut(void)
{
    char text[2000];
    struct on_message on_message = { 0 };
    memset(text, 'y', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_lk(0, log_to(hear, LK_LOG_INFO, &on_message));
    lk__log(LK_LOG_INFO, "%s", text);
    assert_int_equal(on_message.lines, 1);
    assert_between(strlen(on_message.line), 256, sizeof text - 2);
    assert_int_equal(strspn(on_message.line, "y"), strlen(on_message.line));
}

/* --- before any lk_addlog(): stderr, as the environment wants ------------------------------------------- */

static int say_one_line_of_each_level(void)
{
    static const char *const names[] = { "an error", "a warning", "some news", "a detail" };
    for (int level = LK_LOG_ERROR; level <= LK_LOG_DEBUG; level++)
        lk__log(level, "%s", names[level - 1]);
    return 0;
}

/* What this program writes to stderr when it is run with that LATCHKEY_LOG. */
static void say_in_child(const char *wanted, char *said, size_t size)
{
    char program[] = "words", word[] = "speak";
    char *argv[] = { program, word, NULL };
    posix_spawn_file_actions_t actions;
    int ends[2], status;
    size_t length = 0;
    ssize_t more;
    pid_t child;
    if (wanted != NULL)
        setenv("LATCHKEY_LOG", wanted, 1);
    else
        unsetenv("LATCHKEY_LOG");
    assert_int_equal(pipe(ends), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    assert_int_equal(posix_spawn(&child, "/proc/self/exe", &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    while ((more = read(ends[0], said + length, size - 1 - length)) > 0)
        length += (size_t)more;
    said[length] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void until_told_otherwise_stderr_hears_what_the_environment_wants(void)
{
#define ERROR_LINE "latchkey: an error\n"
#define WARNING_LINE ERROR_LINE "latchkey: a warning\n"
#define INFO_LINE WARNING_LINE "latchkey: some news\n"
#define DEBUG_LINE INFO_LINE "latchkey: a detail\n"
    static const struct {
        const char *wanted, *said;
    } table[] = {
        { NULL, WARNING_LINE },  { "off", "" },
        { "error", ERROR_LINE }, { "warning", WARNING_LINE },
        { "info", INFO_LINE },   { "debug", DEBUG_LINE },
        { "", WARNING_LINE },    { "DEBUG", WARNING_LINE },
        { "4", WARNING_LINE },   { "debugs", WARNING_LINE },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char said[1024];
        say_in_child(table[i].wanted, said, sizeof said);
        assert_string_equal(said, table[i].said);
    }
    unsetenv("LATCHKEY_LOG");
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "speak") == 0)
        return say_one_line_of_each_level();
    return plain_run_between(NULL, hear_nothing, each_thread_has_words_of_its_own, words_are_one_line_without_tricks,
                             words_of_threads_do_not_mix, words_stay_until_the_next_failure, words_too_long_are_cut,
                             each_documented_code_has_words_of_its_own, unknown_codes_have_words_as_well,
                             the_version_is_that_of_the_header, the_log_hears_what_it_wants_and_nothing_less_important,
                             failures_are_logged_for_who_debugs, a_level_that_does_not_exist_changes_nothing,
                             no_log_hears_nothing, a_line_too_long_is_cut,
                             until_told_otherwise_stderr_hears_what_the_environment_wants);
}
