/* SPDX-License-Identifier: MIT */
/*
 * any.c - taking whichever stripe is free
 *
 * One try after another: two at once might take two, and keys of several slots have no script in common.
 */
#include "stripes/stripes.h"

struct search {
    struct lk__stripes *stripes;
    lk_owner_t *owner;
    bool busy;        /* somebody else holds one */
    int64_t until_us; /* the first lease that was in the way ends by then; 0: none is known */
    int code;         /* of a stripe that was passed by for another reason */
};

static int try_one(lk_mutex_t *m, lk_owner_t *owner)
{
    if (owner == NULL)
        return lk_mutex_trylock(m);
    lk_how_t how = LK_HOW_INIT;
    how.timeout_ms = 0;
    how.owner = owner;
    int rc = lk_mutex_lockwith(m, &how);
    return rc == ETIMEDOUT ? EBUSY : rc;
}

static void note_busy(struct search *search)
{
    const struct lk__thread *thread = lk__thread_known();
    int64_t until_us = thread != NULL ? thread->others_until_us : 0;
    search->busy = true;
    if (until_us != 0 && (search->until_us == 0 || until_us < search->until_us))
        search->until_us = until_us;
}

/* After such a code the next stripe may do; any other would be that of the next one as well, or wants to be told. */
static bool goes_on(struct search *search, int code)
{
    switch (code) {
    case EBUSY:
        note_busy(search);
        return true;
    case ESTALE: /* this thread has lost it, and is told when it gives it back */
    case EAGAIN: /* this thread has it too often */
    case ENOTRECOVERABLE:
        search->code = code;
        return true;
    default:
        return false;
    }
}

static int fail(const struct search *search)
{
    const char *name = search->stripes->name;
    unsigned n = search->stripes->set.count;
    if (!search->busy)
        return lk__fail(search->code, "%s: none of %u stripes can be had: %s", name, n, lk_strerror(search->code));
    lk__fail(EBUSY, "%s: none of %u stripes is free", name, n);
    lk__error_leaves(search->until_us);
    return EBUSY;
}

static int run(struct search *search, unsigned hint, unsigned *index)
{
    struct lk__failure before = { .unlogged = false };
    unsigned n = search->stripes->set.count, tried = 0;
    unsigned first = hint == LK_STRIPES_ANY ? (unsigned)lk__random_below(n) : hint % n;
    int rc;
    lk__failure_keep(&before);
    do {
        unsigned at = (first + tried) % n;
        rc = try_one(&search->stripes->mutexes[at], search->owner);
        if (rc == 0 || rc == EOWNERDEAD) {
            *index = at;
            if (rc == 0)
                lk__failure_restore(&before);
            return rc;
        }
    } while (goes_on(search, rc) && ++tried < n);
    return tried == n ? fail(search) : rc;
}

int lk_stripes_trylockany(lk_stripes_t *s, unsigned hint, unsigned *index)
{
    return lk_stripes_trylockanyby(s, NULL, hint, index);
}

int lk_stripes_trylockanyby(lk_stripes_t *s, lk_owner_t *owner, unsigned hint, unsigned *index)
{
    struct lk__apistate api = lk__api_enter();
    struct search search = { .owner = owner };
    int rc = lk__stripes_get("lk_stripes_trylockany", s, &search.stripes);
    if (rc == 0 && index == NULL)
        rc = lk__fail(EINVAL, "%s: nowhere to put the index", search.stripes->name);
    return lk__api_leave(&api, rc == 0 ? run(&search, hint, index) : rc);
}
