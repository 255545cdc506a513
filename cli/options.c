/* SPDX-License-Identifier: MIT */
/*
 * options.c - all options, and how they are read
 *
 * An option means the same in each command that takes it. A value that is wrong is told, with the name of its option,
 * before anything is done.
 */
#include "command.h"
#include "words.h"

#include <latchkey/latchkey.h>

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum {
    LONG_BASE = 256,     /* getopt_long() answers this and an option's number */
    LEASE_LEAST_MS = 100, /* as the library has it */
    A_DAY_MS = 24 * 3600 * 1000
};

const struct option_words options[OPT_COUNT] = {
    [OPT_EXCLUSIVE] = { 'x', "exclusive", NULL, NULL, "keep all others out; so it is unless -s or --permits is said" },
    [OPT_SHARED] = { 's', "shared", NULL, NULL, "share NAME with others who say -s, and keep those out who do not" },
    [OPT_FAIR] = { 0, "fair", NULL, NULL, "in the order of arrival; all who use NAME have to say so" },
    [OPT_PERMITS] = { 0, "permits", NULL, "N", "take one of N permits of the semaphore NAME: N may run at once" },
    [OPT_NONBLOCK] = { 'n', "nonblock", NULL, NULL, "do not wait" },
    [OPT_TIMEOUT] = { 'w', "timeout", "wait", "DUR", "wait for at most DUR; without it as long as it takes" },
    [OPT_CONFLICT_EXIT_CODE] = { 'E', "conflict-exit-code", NULL, "N",
                                 "exit with N when it was not to be had, not 75" },
    [OPT_COMMAND] = { 'c', "command", NULL, "LINE", "run LINE by /bin/sh, instead of CMD" },
    [OPT_LEASE] = { 0, "lease", "ttl", "DUR", "length of the lease, renewed at a third of it; 30s, or the URL's" },
    [OPT_HOLD_AT_LEAST] = { 0, "hold-at-least", NULL, "DUR",
                            "keep the name taken for DUR, also after the end: for cron" },
    [OPT_MAX_TIME] = { 0, "max-time", NULL, "DUR", "end CMD after DUR, and exit with 124" },
    [OPT_ON_LOST] = { 0, "on-lost", NULL, "ACTION",
                      "kill (the default), warn or exec:LINE when the lease cannot be kept" },
    [OPT_KILL_AFTER] = { 'k', "kill-after", NULL, "DUR", "KILL comes DUR after the first signal, 5s unless said" },
    [OPT_SIGNAL] = { 0, "signal", NULL, "SIG", "the first signal that ends CMD, TERM unless said" },
    [OPT_KEEP_ENV] = { 0, "keep-env", NULL, NULL, "leave passwords in CMD's environment" },
    [OPT_NO_STDIN] = { 0, "no-stdin", NULL, NULL, "leave standard input alone; CMD reads /dev/null" },
    [OPT_WHY] = { 0, "why", NULL, "TEXT", "say for what, and CMD's arguments, to whoever looks who holds NAME" },
    [OPT_ALERT] = { 0, "alert", NULL, "mean-wait=DUR", "exit with 1 when waits take longer than DUR in the mean" },
    [OPT_FOR] = { 0, "for", NULL, "DUR", "exit with 0 after DUR" },
    [OPT_CHECK] = { 0, "check", NULL, NULL, "exit with 1 if one of the names is free" },
    [OPT_OWNER] = { 0, "owner", NULL, "ID",
                   "only if ID holds it and nobody else, as status or $LATCHKEY_OWNER say it" },
    [OPT_YES] = { 'f', "yes", NULL, NULL, "do not ask" },
    [OPT_INTERVAL] = { 0, "interval", NULL, "DUR", "look again after DUR, 2s unless said" },
    [OPT_ONCE] = { 0, "once", NULL, NULL, "look once; so it is where standard output is no terminal" },
    [OPT_PORT] = { 0, "port", NULL, "PORT", "listen on this port of 127.0.0.1 instead of a socket" },
    [OPT_SECONDS] = { 0, "seconds", NULL, "N", "measure for N seconds in all, 60 unless said" },
    [OPT_URL] = { 'u', "url", NULL, "URL",
                  "the server; else $LATCHKEY_URL, $REDIS_URL, ~/.config/latchkey.json, /etc/latchkey.json" },
    [OPT_CONFIG] = { 0, "config", NULL, "FILE", "the server and its options from a JSON file" },
    [OPT_JSON] = { 0, "json", NULL, NULL, "say it as JSON" },
    [OPT_QUIET] = { 'q', "quiet", NULL, NULL, "no messages, and exit with 0 when it was not to be had" },
    [OPT_VERBOSE] = { 'v', "verbose", NULL, NULL, "say what happens" },
    [OPT_HELP] = { 'h', "help", NULL, NULL, "say this" },
};

static int wrong(const struct settings *s, enum option_id option, const char *value, const char *expected)
{
    complain("%s: --%s: '%s' is not %s", s->command->name, options[option].name, value, expected);
    return -1;
}

static int duration(const struct settings *s, enum option_id option, const char *value, int64_t least_ms,
                    int64_t most_ms, int64_t *ms)
{
    if (!read_duration(value, ms))
        return wrong(s, option, value, "a duration, such as 1.5s, 200ms or 2m");
    if (*ms < least_ms)
        return wrong(s, option, value, "long enough");
    return *ms <= most_ms ? 0 : wrong(s, option, value, "short enough");
}

static int number(const struct settings *s, enum option_id option, const char *value, long least, long most,
                  long *result)
{
    char expected[64];
    snprintf(expected, sizeof expected, "a number from %ld to %ld", least, most);
    return read_number(value, least, most, result) ? 0 : wrong(s, option, value, expected);
}

static int on_lost(struct settings *s, const char *value)
{
    if (strcmp(value, "kill") == 0)
        s->on_lost = ON_LOST_KILL;
    else if (strcmp(value, "warn") == 0)
        s->on_lost = ON_LOST_WARN;
    else if (strncmp(value, "exec:", 5) == 0 && value[5] != 0)
        s->on_lost = ON_LOST_EXEC, s->on_lost_command = value + 5;
    else
        return wrong(s, OPT_ON_LOST, value, "kill, warn or exec:LINE");
    return 0;
}

static int alert(struct settings *s, const char *value)
{
    static const char measure[] = "mean-wait=";
    if (strncmp(value, measure, strlen(measure)) != 0)
        return wrong(s, OPT_ALERT, value, "mean-wait=DUR");
    return duration(s, OPT_ALERT, value + strlen(measure), 1, A_DAY_MS, &s->alert_ms);
}

static int take_option(struct settings *s, enum option_id option, const char *value)
{
    long n = 0;
    int rc = 0;
    s->given |= UINT64_C(1) << option;
    switch (option) {
    case OPT_EXCLUSIVE: s->mode = MODE_EXCLUSIVE; break;
    case OPT_SHARED: s->mode = MODE_SHARED; break;
    case OPT_FAIR: s->fair = true; break;
    case OPT_PERMITS:
        rc = number(s, option, value, 1, LK_SEM_PERMITS_MAX, &n);
        s->mode = MODE_PERMIT;
        s->permits = (unsigned)n;
        break;
    case OPT_NONBLOCK: s->wait_ms = 0; break;
    case OPT_TIMEOUT: rc = duration(s, option, value, 0, INT64_MAX, &s->wait_ms); break;
    case OPT_CONFLICT_EXIT_CODE:
        rc = number(s, option, value, 0, 255, &n);
        s->conflict_code = (int)n;
        break;
    case OPT_COMMAND: s->shell_line = value; break;
    case OPT_LEASE: rc = duration(s, option, value, LEASE_LEAST_MS, A_DAY_MS, &s->lease_ms); break;
    case OPT_HOLD_AT_LEAST: rc = duration(s, option, value, 1, A_DAY_MS, &s->hold_ms); break;
    case OPT_MAX_TIME: rc = duration(s, option, value, 1, INT64_MAX, &s->max_ms); break;
    case OPT_ON_LOST: rc = on_lost(s, value); break;
    case OPT_KILL_AFTER: rc = duration(s, option, value, 0, A_DAY_MS, &s->kill_ms); break;
    case OPT_SIGNAL:
        s->signal = read_signal(value);
        rc = s->signal != 0 ? 0 : wrong(s, option, value, "a signal, such as TERM or INT");
        break;
    case OPT_KEEP_ENV: s->keep_env = true; break;
    case OPT_NO_STDIN: s->no_stdin = true; break;
    case OPT_WHY: s->why = value[0] != 0 ? value : NULL; break;
    case OPT_ALERT: rc = alert(s, value); break;
    case OPT_FOR: rc = duration(s, option, value, 1, INT64_MAX, &s->for_ms); break;
    case OPT_CHECK: s->check = true; break;
    case OPT_OWNER: s->owner = value; break;
    case OPT_YES: s->yes = true; break;
    case OPT_INTERVAL: rc = duration(s, option, value, 100, A_DAY_MS, &s->interval_ms); break;
    case OPT_ONCE: s->once = true; break;
    case OPT_PORT:
        rc = number(s, option, value, 1, 65535, &n);
        s->port = (int)n;
        break;
    case OPT_SECONDS:
        rc = number(s, option, value, 1, 3600, &n);
        s->seconds = n;
        break;
    case OPT_URL: s->url = value; break;
    case OPT_CONFIG: s->config = value; break;
    case OPT_JSON: s->json = true; break;
    case OPT_QUIET: s->quiet = true; break;
    case OPT_VERBOSE: s->verbose = true; break;
    case OPT_HELP:
    case OPT_COUNT: break;
    }
    return rc;
}

/* Options that say different things of one matter. */
static int find_contradiction(const struct settings *s)
{
    static const enum option_id either[][2] = {
        { OPT_EXCLUSIVE, OPT_SHARED },     { OPT_EXCLUSIVE, OPT_PERMITS },      { OPT_SHARED, OPT_PERMITS },
        { OPT_NONBLOCK, OPT_TIMEOUT },     { OPT_URL, OPT_CONFIG },             { OPT_QUIET, OPT_VERBOSE },
        { OPT_HOLD_AT_LEAST, OPT_SHARED }, { OPT_HOLD_AT_LEAST, OPT_PERMITS },
    };
    for (unsigned i = 0; i < sizeof either / sizeof either[0]; i++)
        if ((s->given >> either[i][0] & 1) && (s->given >> either[i][1] & 1)) {
            complain("%s: --%s does not go with --%s", s->command->name, options[either[i][0]].name,
                     options[either[i][1]].name);
            return -1;
        }
    return 0;
}

/* What getopt_long() wants, of the options that the command takes. */
static void list_options(const struct command *command, char *letters, struct option *names)
{
    if (command->runs)
        *letters++ = '+';
    for (int i = 0; i < OPT_COUNT; i++) {
        if (!(command->options >> i & 1))
            continue;
        int has = options[i].argument != NULL ? required_argument : no_argument;
        *names++ = (struct option){ options[i].name, has, NULL, LONG_BASE + i };
        if (options[i].synonym != NULL)
            *names++ = (struct option){ options[i].synonym, has, NULL, LONG_BASE + i };
        if (options[i].letter != 0)
            *letters++ = options[i].letter;
        if (options[i].letter != 0 && has == required_argument)
            *letters++ = ':';
    }
    *letters = 0;
    *names = (struct option){ 0 };
}

/* The number of what getopt_long() answered. */
static enum option_id option_of(int answer)
{
    if (answer >= LONG_BASE)
        return (enum option_id)(answer - LONG_BASE);
    int i = 0;
    while (options[i].letter != answer)
        i++;
    return (enum option_id)i;
}

static void set_defaults(struct settings *s)
{
    const struct command *command = s->command;
    *s = (struct settings){ .command = command };
    s->wait_ms = LK_FOREVER;
    s->conflict_code = EXIT_CONFLICT;
    s->kill_ms = 5000;
    s->signal = SIGTERM;
    s->interval_ms = 2000;
}

static int check_operands(const struct settings *s, int count)
{
    if (count >= s->command->least && (s->command->most < 0 || count <= s->command->most))
        return 0;
    complain("%s: usage: latchkey %s [OPTION...] %s", s->command->name, s->command->name, s->command->arguments);
    return -1;
}

int read_options(struct settings *s, int argc, char **argv)
{
    char letters[2 * OPT_COUNT + 2], title[64];
    struct option names[2 * OPT_COUNT + 1];
    int answer, rc = 0;
    set_defaults(s);
    list_options(s->command, letters, names);
    snprintf(title, sizeof title, "latchkey: %s", s->command->name); /* getopt_long() says it before its complaints */
    char *named = argv[0];
    argv[0] = title;
    while (rc == 0 && (answer = getopt_long(argc, argv, letters, names, NULL)) != -1)
        rc = answer == '?' ? -1 : take_option(s, option_of(answer), optarg);
    argv[0] = named;
    if (rc == 0 && !(s->given >> OPT_HELP & 1))
        rc = find_contradiction(s) != 0 ? -1 : check_operands(s, argc - optind);
    if (rc != 0)
        fprintf(stderr, "Try 'latchkey %s --help'.\n", s->command->name);
    if (s->quiet && !(s->given >> OPT_CONFLICT_EXIT_CODE & 1))
        s->conflict_code = EXIT_OK;
    return rc == 0 ? optind : -1;
}
