/* SPDX-License-Identifier: MIT */
#include "client.h"
#include "command.h"
#include "found.h"
#include "words.h"

#include <latchkey/latchkey.h>

#include <jansson.h>
#include <stdio.h>

/* One call on a latch: a code of the library, or -1: what was asked is not so. The wait has no use for `n`. */
typedef int latch_call(lk_latch_t *latch, struct settings *settings, unsigned n);

static int with_latch(struct settings *s, const char *name, unsigned n, latch_call *call)
{
    lk_latch_t latch;
    lk_client_t *client;
    int code = open_client(s, &client);
    if (code != 0)
        return code;
    int rc = lk_latch_init(&latch, client, name, NULL);
    if (rc == 0) {
        rc = call(&latch, s, n);
        lk_latch_destroy(&latch);
    }
    bool conflict = rc > 0 && exit_code_of(rc) == EXIT_CONFLICT;
    if (rc < 0)
        code = EXIT_NO;
    else if (rc > 0 && (!conflict || !s->quiet))
        code = complain_of(s->command->name, rc);
    if (conflict)
        code = s->conflict_code;
    close_client(client);
    int written = flush_output();
    return code != 0 ? code : written;
}

static bool read_count(const struct settings *s, const char *text, unsigned *n)
{
    long count;
    if (!read_number(text, 1, 1000000, &count)) {
        complain("%s: '%s' is not a number from 1 to 1000000", s->command->name, text);
        return false;
    }
    *n = (unsigned)count;
    return true;
}

static int create(lk_latch_t *latch, struct settings *s, unsigned n)
{
    (void)s;
    return lk_latch_trysetcount(latch, n);
}

static int count_down(lk_latch_t *latch, struct settings *s, unsigned n)
{
    (void)s;
    return lk_latch_countdownby(latch, n);
}

static int wait_for(lk_latch_t *latch, struct settings *s, unsigned n)
{
    (void)n;
    return lk_latch_waitfor(latch, s->wait_ms);
}

static int look(lk_latch_t *latch, struct settings *s, unsigned n)
{
    lk_latchinfo_t info = LK_LATCHINFO_INIT;
    (void)n;
    int rc = lk_latch_info(latch, &info);
    if (rc != 0)
        return rc;
    const char *state = info.set ? "closed" : info.opened ? "open" : info.deleted ? "deleted" : "none";
    if (s->json) {
        json_t *object = json_pack("{s:o, s:s, s:s, s:I}", "name", text_of(latch->lk_name), "kind", "latch", "state",
                                   state, "count", (json_int_t)info.count);
        print_json(s, object);
    } else if (info.set) {
        printf("closed, count %u\n", info.count);
    } else {
        puts(state);
    }
    return info.set || info.opened ? 0 : -1;
}

int run_latch_create(struct settings *s, int count, char **operands)
{
    unsigned n;
    (void)count;
    return read_count(s, operands[1], &n) ? with_latch(s, operands[0], n, create) : EXIT_USE;
}

int run_latch_countdown(struct settings *s, int count, char **operands)
{
    unsigned n = 1;
    if (count > 1 && !read_count(s, operands[1], &n))
        return EXIT_USE;
    return with_latch(s, operands[0], n, count_down);
}

int run_latch_wait(struct settings *s, int count, char **operands)
{
    (void)count;
    return with_latch(s, operands[0], 0, wait_for);
}

int run_latch_status(struct settings *s, int count, char **operands)
{
    (void)count;
    return with_latch(s, operands[0], 0, look);
}
