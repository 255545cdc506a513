/* SPDX-License-Identifier: MIT */
/*
 * run.c - `latchkey run`: take, run, watch, give back
 *
 * One thread waits for signals, which are forwarded to the command's group, and tells the keeper (keeper.h) until when
 * the hold is good; the library renews it. The group is ended by the keeper alone. What is held is given back when the
 * group is empty.
 */
#include "child.h"
#include "command.h"
#include "found.h"
#include "grant.h"
#include "guard.h"
#include "keeper.h"
#include "terminal.h"
#include "words.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOK_LEAST_MS = 5, LOOK_MOST_MS = 500 };

/* They end a wait, and are forwarded to a command that runs. */
static const int endings[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2 };

/* These are heard only while a command runs. SIGTTOU: whoever has not the terminal may give it on. */
static const int others[] = { SIGHUP,  SIGINT,   SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2,
                              SIGCHLD, SIGWINCH, SIGCONT, SIGTSTP, SIGTTOU };

struct run {
    struct settings *settings;
    struct guard guard;
    struct keeper keeper;
    struct child child;
    int signals;
    int terminal; /* -1: none that is given to the command */
    int status;   /* of the command, once it ended */
    bool ended, told, lost, unkept;
    bool wants_terminal; /* the command was stopped as it read or wrote one that others have */
};

/* --- what is said ------------------------------------------------------------------------------------ */

/* With --json one object a line, on standard error; else only with -v. Takes `facts`, which may be NULL. */
static void tell(const struct run *r, const char *event, json_t *facts)
{
    const struct settings *s = r->settings;
    if (s->json) {
        json_t *object = json_pack("{s:s, s:o}", "event", event, "name", text_of(r->guard.name));
        json_object_update(object, facts);
        json_object_set_new(object, "server", json_string(s->server));
        char *line = json_dumps(object, JSON_COMPACT);
        fprintf(stderr, "%s\n", line != NULL ? line : "");
        free(line);
        json_decref(object);
    } else if (s->verbose) {
        complain("%s: %s", r->guard.name, event);
    }
    json_decref(facts);
}

/* --- the command's group ----------------------------------------------------------------------------- */

static bool group_is_empty(const struct run *r)
{
    return kill(-r->child.pid, 0) != 0 && errno == ESRCH;
}

static void forward(struct run *r, int signal)
{
    kill(-r->child.pid, signal);
    for (unsigned i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (endings[i] == signal && signal != SIGUSR1 && signal != SIGUSR2)
            r->told = true;
}

/* How long the hold is good; the keeper does not act later than that. */
static int64_t renew(struct run *r)
{
    int64_t ms = 0, asked_ms = boot_ms(); /* before the answer, which may be late here */
    if (guard_remaining(&r->guard, &ms) != 0) {
        ms = 0;
        if (!r->lost)
            tell(r, "lost", NULL);
        r->lost = true;
    }
    keeper_valid_for(&r->keeper, asked_ms, ms);
    return ms;
}

/*
 * The command was stopped by the terminal. It is stopped as a shell's job: all of this process, too, so nothing is
 * renewed, and the keeper ends the command before the lease runs out. What goes on goes on with a lease, and with the
 * terminal if that was `lent` to it.
 */
static void stop_with_it(struct run *r, bool lent)
{
    if (lent)
        terminal_give(r->terminal, getpgrp());
    kill(0, SIGTSTP);
    raise(SIGSTOP);
    if (lent && terminal_is_ours(r->terminal))
        terminal_give(r->terminal, r->child.pid);
    if (renew(r) > 0)
        kill(-r->child.pid, SIGCONT);
}

/* The command asked for the terminal: it has it as soon as this process's group does, as after the shell's `fg`. */
static void lend_terminal(struct run *r)
{
    if (!r->wants_terminal || !terminal_is_ours(r->terminal))
        return;
    r->wants_terminal = false;
    terminal_give(r->terminal, r->child.pid);
    kill(-r->child.pid, SIGCONT);
}

static void command_stopped(struct run *r, int signal)
{
    bool lent = terminal_is_of(r->terminal, r->child.pid);
    bool by_terminal = lent || (signal == SIGTSTP && terminal_is_ours(r->terminal)); /* as in a pipeline */
    if (signal == SIGTTIN || signal == SIGTTOU)
        r->wants_terminal = true;
    else if (by_terminal && terminal_has_jobs())
        stop_with_it(r, lent);
    else if (by_terminal && signal == SIGTSTP)
        kill(-r->child.pid, SIGCONT); /* nobody would resume it */
}

/* The command, those that it left behind, which have become this process's children, and the keeper. */
static void reap(struct run *r)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        if (pid == r->keeper.pid && !WIFSTOPPED(status)) {
            r->unkept = keeper_reason(&r->keeper) == REASON_NONE;
            r->keeper.pid = 0;
        } else if (pid == r->child.pid && WIFSTOPPED(status)) {
            command_stopped(r, WSTOPSIG(status));
        } else if (pid == r->child.pid) {
            r->status = status;
            r->ended = true;
        }
    }
}

static void hear(struct run *r)
{
    struct signalfd_siginfo info;
    while (read(r->signals, &info, sizeof info) == sizeof info)
        switch (info.ssi_signo) {
        case SIGCHLD: reap(r); break;
        case SIGTTOU: break;
        case SIGCONT:
            if (renew(r) > 0)
                forward(r, SIGCONT);
            break;
        default: forward(r, (int)info.ssi_signo);
        }
}

static void watch_over(struct run *r)
{
    bool asked = false;
    struct pollfd one = { r->signals, POLLIN, 0 };
    for (;;) {
        int64_t pause_ms = renew(r) / 20;
        pause_ms = pause_ms < LOOK_LEAST_MS ? LOOK_LEAST_MS : pause_ms > LOOK_MOST_MS ? LOOK_MOST_MS : pause_ms;
        poll(&one, 1, r->ended ? LOOK_LEAST_MS : (int)pause_ms);
        hear(r);
        lend_terminal(r);
        if (r->ended && group_is_empty(r))
            return;
        if (r->unkept) /* somebody killed the keeper */
            kill(-r->child.pid, SIGKILL);
        if (r->ended && !asked && (r->told || WIFSIGNALED(r->status))) {
            keeper_end_group(&r->keeper);
            asked = true;
        }
    }
}

/* --- one run ----------------------------------------------------------------------------------------- */

static int exit_code(const struct run *r, int trouble)
{
    enum reason reason = keeper_reason(&r->keeper);
    if (trouble != 0)
        return trouble == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
    if (reason == REASON_LOST || (r->lost && r->settings->on_lost != ON_LOST_WARN))
        return EXIT_LOST;
    if (r->unkept)
        return EXIT_INTERNAL;
    if (reason == REASON_TIME)
        return EXIT_TIME;
    return WIFSIGNALED(r->status) ? EXIT_BY_SIGNAL + WTERMSIG(r->status) : WEXITSTATUS(r->status);
}

/* Exit code: that of the command, unless the lease turns out to be lost. */
static int give_back(struct run *r, int code)
{
    bool lost = r->lost || keeper_reason(&r->keeper) == REASON_LOST;
    int rc = guard_release(&r->guard, lost);
    if (rc == ESTALE && r->settings->on_lost != ON_LOST_WARN)
        code = EXIT_LOST;
    lost |= rc == ESTALE;
    if (lost)
        complain("%s: the lease could not be kept%s", r->guard.name,
                 r->child.pid == 0 ? "; nothing was run" : code == EXIT_LOST ? "; the command was ended" : "");
    else if (rc != 0)
        complain("%s: not given back, it ends with its lease: %s", r->guard.name, lk_errortext());
    tell(r, "released", json_pack("{s:i}", "exit", code));
    if (!lost || rc == 0)
        guard_close(&r->guard);
    else /* what was lost is worth no further wait */
        guard_leave(&r->guard);
    return code;
}

static void describe(struct run *r, struct grant_words *words, char *owner, unsigned size)
{
    *words = (struct grant_words){ .name = r->guard.name, .owner = owner, .mode = mode_name(r->guard.mode) };
    name_owner(r->guard.client, r->guard.owner, owner, size);
    if (guard_token(&r->guard, &words->token) != 0)
        words->token = 0;
    words->lease_ms = renew(r);
    tell(r, "held", json_pack("{s:s, s:s, s:I, s:I}", "owner", owner, "mode", words->mode, "token",
                              (json_int_t)words->token, "lease_ms", (json_int_t)words->lease_ms));
}

/* The command has the terminal where it is used for both ways, else when it asks for it. */
static void share_terminal(struct run *r)
{
    r->terminal = terminal_open();
    if (terminal_is_ours(r->terminal) && !r->settings->no_stdin && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
        terminal_give(r->terminal, r->child.pid);
}

/* It was lost since the grant: nothing is run. */
static int not_kept(struct run *r, int rc)
{
    child_drop(&r->child);
    (void)renew(r);
    return give_back(r, exit_code_of(rc));
}

static int run_held(struct run *r, char **operands, const sigset_t *mask)
{
    char owner[96];
    struct grant_words words;
    describe(r, &words, owner, sizeof owner);
    if (r->lost)
        return give_back(r, EXIT_LOST);
    r->signals = hear_signals(others, sizeof others / sizeof others[0]);
    int trouble = r->signals < 0 ? errno : child_prepare(&r->child, r->settings, operands, &words, mask);
    if (trouble != 0) {
        complain("run: no process: %s", strerror(trouble));
        give_back(r, EXIT_INTERNAL);
        return EXIT_INTERNAL;
    }
    int rc = guard_keep(&r->guard);
    if (rc != 0)
        return not_kept(r, rc);
    keeper_guard(&r->keeper, r->child.pid);
    if (r->settings->max_ms != 0)
        keeper_limit(&r->keeper, r->settings->max_ms);
    share_terminal(r);
    trouble = child_go(&r->child);
    if (trouble != 0)
        complain("run: %s: %s", r->settings->shell_line != NULL ? "/bin/sh" : operands[0], strerror(trouble));
    watch_over(r);
    if (terminal_is_of(r->terminal, r->child.pid))
        terminal_give(r->terminal, getpgrp());
    int code = exit_code(r, trouble);
    keeper_stop(&r->keeper); /* the group's number may be another's soon */
    return give_back(r, code);
}

static int check_command(const struct settings *s, int count, char **command, bool divided)
{
    if (count > 0 && !divided && command[0][0] == '-') {
        complain("run: %s: options go before NAME, and -- before a command like that", command[0]);
        return -1;
    }
    if ((count > 0) != (s->shell_line != NULL))
        return 0;
    complain(count > 0 ? "run: a command and --command" : "run: a command is missing");
    return -1;
}

/* With a keeper. */
static int take_and_run(struct run *r, const char *name, char **command)
{
    sigset_t mask;
    int code = guard_open(&r->guard, r->settings, name);
    if (code != 0)
        return code;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    int signals = hear_signals(endings, sizeof endings / sizeof endings[0]);
    if (signals < 0) {
        guard_close(&r->guard);
        return EXIT_INTERNAL;
    }
    if (await_grant(&r->guard, r->settings, signals, &code) != 0)
        return code;
    close(signals);
    return run_held(r, command, &mask);
}

/* The words behind the first, with blanks between; NULL: there are none, or no memory. */
static char *joined(char **words)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = words[0] != NULL && words[1] != NULL ? open_memstream(&text, &size) : NULL;
    for (int i = 1; out != NULL && words[i] != NULL; i++)
        fprintf(out, "%s%s", i > 1 ? " " : "", words[i]);
    if (out != NULL)
        fclose(out);
    return text;
}

/* For whoever looks who holds the name. Arguments may be secrets: they are said only where somebody says why. */
static char *describe_command(struct settings *s, char **command)
{
    const char *folder = s->shell_line == NULL ? strrchr(command[0], '/') : NULL;
    char *arguments = NULL;
    s->program = s->shell_line != NULL ? "sh" : folder != NULL ? folder + 1 : command[0];
    if (s->why != NULL && s->shell_line != NULL)
        s->arguments = s->shell_line;
    else if (s->why != NULL)
        s->arguments = arguments = joined(command);
    return arguments;
}

int run_run(struct settings *s, int count, char **operands)
{
    struct run r = { .settings = s };
    int command_at = count > 1 && strcmp(operands[1], "--") == 0 ? 2 : 1, code;
    if (check_command(s, count - command_at, operands + command_at, command_at == 2) != 0)
        return EXIT_USE;
    signal(SIGCHLD, SIG_DFL); /* a parent may have ignored it */
    s->ignores_pipe = is_ignored(SIGPIPE);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if ((code = keeper_start(&r.keeper, s)) != 0)
        return code;
    char *arguments = describe_command(s, operands + command_at);
    code = take_and_run(&r, operands[0], operands + command_at);
    keeper_stop(&r.keeper);
    free(arguments);
    return code;
}
