/* SPDX-License-Identifier: MIT */
/*
 * hold.c - `latchkey hold`: for scripts that cannot wrap what they do into one command
 */
#include "command.h"
#include "found.h"
#include "grant.h"
#include "words.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { LOOK_MS = 50 };

static const int endings[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };

/* One line: the token, or an object. */
static int say_held(struct guard *g, const struct settings *s)
{
    char owner[96];
    uint64_t token = 0;
    int rc = guard_token(g, &token);
    if (s->json) {
        name_owner(g->client, g->owner, owner, sizeof owner);
        json_t *object = json_pack("{s:o, s:s, s:s, s:I}", "name", text_of(g->name), "owner", owner, "mode",
                                   mode_name(g->mode), "token", (json_int_t)token);
        print_json(s, object);
    } else if (rc == 0) {
        printf("%llu\n", (unsigned long long)token);
    } else if (rc == EPERM) {
        puts("held"); /* a reader has no token */
    }
    return flush_output();
}

/* Has standard input ended? What it says is for nobody. */
static bool input_ended(void)
{
    char bytes[4096];
    ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
    return n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN);
}

/* 0 at its regular end, or ESTALE. */
static int hold_on(struct guard *g, const struct settings *s, int signals)
{
    int64_t ms;
    struct pollfd both[] = { { signals, POLLIN, 0 }, { s->no_stdin ? -1 : STDIN_FILENO, POLLIN, 0 } };
    for (;;) {
        int rc = guard_remaining(g, &ms);
        if (rc != 0)
            return rc;
        if (poll(both, 2, ms < LOOK_MS ? (int)ms : LOOK_MS) <= 0)
            continue;
        if (both[0].revents != 0 || (both[1].revents != 0 && input_ended()))
            return 0;
    }
}

int run_hold(struct settings *s, int count, char **operands)
{
    struct guard g;
    (void)count;
    signal(SIGPIPE, SIG_IGN);
    int code = guard_open(&g, s, operands[0]);
    if (code != 0)
        return code;
    int signals = hear_signals(endings, sizeof endings / sizeof endings[0]);
    if (signals < 0) {
        guard_close(&g);
        return EXIT_INTERNAL;
    }
    if (await_grant(&g, s, signals, &code) != 0)
        return code;
    int rc = guard_keep(&g);
    if (rc == 0)
        code = say_held(&g, s);
    if (rc == 0 && code == 0)
        rc = hold_on(&g, s, signals);
    int released = guard_release(&g, rc == ESTALE);
    if (rc == 0 && released != 0)
        rc = released;
    if (rc != 0)
        code = complain_of(g.name, rc);
    if (rc != ESTALE || released == 0)
        guard_close(&g);
    else /* what was lost is worth no further wait */
        guard_leave(&g);
    return code;
}
