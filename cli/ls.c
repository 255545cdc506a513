/* SPDX-License-Identifier: MIT */
/*
 * ls.c - `latchkey ls` and `latchkey top`: what is locked on the server, once or again and again
 */
#include "client.h"
#include "found.h"
#include "words.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* With what was found, which is printed if `code` is 0; the exit code. */
static int end_look(const struct settings *s, struct found *found, int code)
{
    if (code == 0) {
        code = flush_output();
        tell_unseen(s, &found->stats);
    }
    found_free(found);
    return code;
}

int run_ls(struct settings *s, int count, char **operands)
{
    lk_client_t *client;
    struct found found;
    int code = open_client(s, &client);
    if (code != 0)
        return code;
    code = find_all(s, client, count > 0 ? operands[0] : NULL, 0, &found);
    if (code == 0 && s->json)
        print_found_json(&found);
    else if (code == 0)
        print_found(&found, 0);
    code = end_look(s, &found, code);
    close_client(client);
    return code;
}

/* --- top ---------------------------------------------------------------------------------------------------------- */

/* Lines that the terminal has for objects, below the two of the heading, and above one for what could not be seen. */
static size_t screen_lines(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < 5)
        return 0;
    return size.ws_row - 4U;
}

static void print_heading(const struct found *found)
{
    unsigned long long held = 0, waiters = 0;
    for (size_t i = 0; i < found->count; i++) {
        held += found->each[i].holders > 0;
        waiters += found->each[i].waiters;
    }
    printf("%zu objects, %llu held, %llu waiters\n", found->count, held, waiters);
}

static void print_screen(struct found *found)
{
    fputs("\033[H\033[J", stdout);
    print_heading(found);
    print_found(found, screen_lines());
}

static void sleep_for(int64_t ms)
{
    struct timespec left = { ms / 1000, ms % 1000 * 1000000 };
    nanosleep(&left, NULL);
}

/* One look; `live`: over the last one, on a terminal. */
static int look(const struct settings *s, lk_client_t *client, const char *pattern, bool live)
{
    struct found found;
    int code = find_all(s, client, pattern, 0, &found);
    sort_by_waiting(&found);
    if (code == 0 && s->json) {
        print_found_json(&found);
    } else if (code == 0 && live) {
        print_screen(&found);
    } else if (code == 0) {
        print_heading(&found);
        print_found(&found, 0);
    }
    return end_look(s, &found, code);
}

/* A server that is away for a while is told of, and asked again: who looks wants to see it come back. */
int run_top(struct settings *s, int count, char **operands)
{
    const char *pattern = count > 0 ? operands[0] : NULL;
    bool live = isatty(STDOUT_FILENO) && !s->once && !s->json;
    lk_client_t *client;
    int code = open_client(s, &client);
    if (code != 0)
        return code;
    code = look(s, client, pattern, live);
    while (live && (code == 0 || code == EXIT_UNREACHABLE)) {
        sleep_for(s->interval_ms);
        code = look(s, client, pattern, live);
    }
    close_client(client);
    return code;
}
