/* SPDX-License-Identifier: MIT */
/*
 * output_test.c - a standard output that is full or closed is an error of each command that prints: words, and code 74
 *
 * labels: memory long
 * seconds: 9
 */
#include "command.h"

#include <stdio.h>
#include <string.h>

/* What prints, and with --json likewise; the first word is the command. */
static const char *const lines[] = {
    "status a",          "status --check a",   "ls",
    "top --once",        "watch --for 200ms a", "hold a",
    "sem status p",      "latch status l",     "force-release --yes a",
    "doctor",            "bench --seconds 1",  "server",
    "version",
};

/* These have no --json. */
static const char *const plain[] = { "--help",          "-h",      "--version",      "run --help",
                                     "completion bash", "completion zsh", "completion fish" };

static void expect_complaint(struct world *w, const char *line, const char *option, const char *redirection)
{
    const char *within = strncmp(line, "hold", 4) == 0 || strncmp(line, "bench", 5) == 0 ? "" : "latchkey run a -- ";
    const struct ran *ran = command(w, "%ssh -c 'exec latchkey %s %s %s'", within, line, option, redirection);
    const char *said = strstr(ran->err, "latchkey: standard output: ");
    bool told = said != NULL && strstr(ran->err, strstr(redirection, "full") != NULL ? "No space left" : "Bad file") != NULL;
    bool robbed = strncmp(line, "force", 5) == 0; /* of what the line around it held */
    if (!told || (ran->code != 74 && !(robbed && ran->code == 79)))
        fail_msg("latchkey %s %s %s: code %d, %s", line, option, redirection, ran->code, ran->err);
}

static void output_that_cannot_be_written_is_an_error(struct world *w)
{
    static const char *const redirections[] = { ">/dev/full", ">&-" };
    world_allow(w, "*");
    assert_exits(0, w, "latchkey sem resize p 2 && latchkey latch create l 2");
    for (unsigned r = 0; r < 2; r++) {
        for (unsigned i = 0; i < sizeof lines / sizeof lines[0]; i++) {
            expect_complaint(w, lines[i], "", redirections[r]);
            expect_complaint(w, lines[i], "--json", redirections[r]);
        }
        for (unsigned i = 0; i < sizeof plain / sizeof plain[0]; i++)
            expect_complaint(w, plain[i], "", redirections[r]);
    }
}

/* Each command that --help lists is tried above, but for those that print nothing. */
static void no_command_is_left_out(struct world *w)
{
    char all[4096] = " run sem_resize latch_create latch_count-down latch_wait";
    for (unsigned i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const char *second = strchr(lines[i], ' ');
        bool two = strncmp(lines[i], "sem", 3) == 0 || strncmp(lines[i], "latch", 5) == 0;
        int length = second == NULL ? (int)strlen(lines[i]) : (int)(second - lines[i]);
        snprintf(all + strlen(all), sizeof all - strlen(all), " %.*s%s", length, lines[i], two ? "_status" : "");
    }
    assert_exits(0, w, "for c in $(latchkey --help | sed -n '/^Commands:/,/^$/s/^  \\([a-z-]*\\( [a-z-]\\+\\)\\?\\)  .*/"
                       "\\1/p' | tr ' ' _); do case '%s completion ' in *\" $c \"*) ;; *\\ $c\\ *) ;; *) echo $c; exit 1 ;; "
                       "esac; done", all);
}

/* Those that print nothing have nothing to fail at. */
static void silence_can_be_written_anywhere(struct world *w)
{
    world_allow(w, "*");
    assert_exits(0, w, "for to in /dev/full; do latchkey sem resize p 2 >$to && latchkey latch create l 2 >$to && "
                       "latchkey latch count-down l 2 >$to && latchkey latch wait l >$to && "
                       "latchkey run -v --json a true >$to || exit 1; done");
    assert_exits(1, w, "latchkey latch create m 2 && latchkey latch create m 2 >/dev/full");
}

/* More than a buffer holds: the first of it failed long before the end, and its error is still the one that is told. */
static void a_long_output_says_why_as_well(struct world *w)
{
    assert_exits(0, w, "for i in $(seq 300); do echo \"HSET some-name-that-is-not-so-short:$i x:1 1\"; done | "
                       "redis-cli -s %s >/dev/null", w->socket);
    const struct ran *ran = command(w, "latchkey status $(seq -f 'some-name-that-is-not-so-short:%%g' 300) >/dev/full");
    assert_int_equal(74, ran->code);
    assert_string_equal("latchkey: standard output: No space left on device\n", ran->err);
    ran = command(w, "latchkey ls >/dev/full");
    assert_int_equal(74, ran->code);
    assert_string_equal("latchkey: standard output: No space left on device\n", ran->err);
    world_redis(w, "FLUSHALL");
}

int main(void)
{
    command_options("lease=60s&command_timeout=10s");
    return world_run(output_that_cannot_be_written_is_an_error, no_command_is_left_out, silence_can_be_written_anywhere,
                     a_long_output_says_why_as_well);
}
