/* SPDX-License-Identifier: MIT */
/*
 * line.h - everything that can be held, all at once, and somebody who waits for each
 */
#ifndef TESTS_LINE_H
#define TESTS_LINE_H

#include "subject.h"

#include <stdio.h>

enum { KINDS_MAX = 16, LIMIT_MS = 60000 };

struct line {
    struct subject held[KINDS_MAX], wanted[KINDS_MAX];
    struct errand errands[KINDS_MAX];
    int n;
};

static inline void hold_all(struct world *w, struct line *line, lk_client_t *client)
{
    line->n = 0;
    for (const struct subject_kind *kind = subject_kinds; kind->name != NULL; kind++, line->n++) {
        char name[16];
        assert_true(line->n < KINDS_MAX);
        snprintf(name, sizeof name, "thing-%d", line->n);
        subject_init(w, &line->held[line->n], subject_keeper(kind), client, name, 0);
        assert_lk(0, subject_take(&line->held[line->n], 1000));
    }
}

static inline void give_all(struct line *line)
{
    for (int i = 0; i < line->n; i++)
        assert_lk(0, subject_give(&line->held[i]));
}

static inline void want_all(struct world *w, struct line *line, lk_client_t *client)
{
    for (int i = 0; i < line->n; i++) {
        subject_init(w, &line->wanted[i], &subject_kinds[i], client, line->held[i].name, 0);
        errand_start(&line->errands[i], &line->wanted[i], LIMIT_MS);
    }
}

/* It had its turn. */
static inline void join_one(struct line *line, int i)
{
    errand_join(&line->errands[i]);
    assert_lk(0, line->errands[i].took);
    assert_lk(0, line->errands[i].gave);
    assert_lk(0, subject_destroy(&line->wanted[i]));
}

/* Each of them had its turn; returns when the last one had. */
static inline int64_t join_all(struct line *line)
{
    int64_t last_ms = 0;
    for (int i = 0; i < line->n; i++) {
        join_one(line, i);
        last_ms = line->errands[i].took_ms > last_ms ? line->errands[i].took_ms : last_ms;
    }
    return last_ms;
}

/* Each is waited for by `n`. */
static inline void await_queued(struct world *w, struct line *line, int64_t n)
{
    for (int i = 0; i < line->n; i++)
        eventually(subject_queued(w, &line->held[i]) == n, 5000);
}

static inline void end_all(struct line *line)
{
    for (int i = 0; i < line->n; i++)
        assert_lk(0, subject_destroy(&line->held[i]));
}

static inline int64_t asks(struct world *w)
{
    return world_commands(w, "evalsha");
}

#endif
