/* SPDX-License-Identifier: MIT */
/*
 * lock.c - taking several locks, all or none, and giving them back
 *
 * All that are not held are tried at once. If one is not free, what comes behind it in the order of the set is given back,
 * and it is waited for; then the rest is tried again. So who waits holds only what stands before that in an order that all
 * have in common, and nobody waits in a circle. Locks of one name on several servers stand side by side in it: while one of
 * them is waited for none of the others is held, and a pause of random length parts those who meet there.
 */
#include "multi/multi.h"

#include <stdio.h>

enum { PAUSE_US = 2000, PAUSE_DOUBLINGS = 5 };

/* "mutex orders", for words. */
struct name {
    char text[LK_NAME_MAX + 32];
};

static struct name name_of(const struct lk__part *part)
{
    struct name name;
    snprintf(name.text, sizeof name.text, "%s %s", lk__kind_names[part->kind->number], lk__handle_name(part->handle));
    return name;
}

/* --- given back on the way ---------------------------------------------------------------------------------------------- */

/* Its last holder died, and the caller was not told: the next one is to be. */
static void leave_dead(const struct lk__part *part, lk_owner_t *owner)
{
    struct lk__op op;
    struct lk__hold *hold;
    if (lk__op_enterholder(&op, part->handle, part->kind, owner) != 0)
        return;
    lk__op_hold(&op, &hold);
    if (hold != NULL)
        hold->untold = true;
    lk__op_leave(&op, 0);
}

static void note_given(struct lk__taking *taking, const struct lk__given *given)
{
    int rc = given->code;
    if (rc == 0 || rc == ESTALE || rc == ECANCELED || rc == EPERM)
        return; /* or it was lost, or given back by the close of its client, or by another thread for the owner */
    taking->unsettled = true;
    lk__taking_noteopen(taking, given->settled_us);
}

/* All from that one on. The words of the failure before stay. Not inlined: what takes locks needs the stack. */
static void __attribute__((noinline)) give_back_from(struct lk__taking *taking, unsigned first)
{
    const struct lk__multi *multi = taking->multi;
    struct lk__given given[LK_MULTI_MAX];
    bool which[LK_MULTI_MAX] = { false };
    struct lk__failure words = { .unlogged = false };
    lk__failure_keep(&words);
    for (unsigned i = first; i < multi->count; i++) {
        which[i] = taking->held[i];
        if (taking->died[i])
            leave_dead(multi->parts[i], taking->how->by);
        taking->held[i] = taking->died[i] = false;
    }
    lk__give_back(multi, which, taking->how->by, given);
    for (unsigned i = first; i < multi->count; i++)
        if (which[i])
            note_given(taking, &given[i]);
    lk__failure_restore(&words);
}

/* Nothing of it is held any more, or something may still be. */
static int __attribute__((noinline)) give_up(struct lk__taking *taking, int code)
{
    give_back_from(taking, 0);
    if (!taking->unsettled || (taking->settled_us != 0 && taking->settled_us <= lk__now_us()))
        return code;
    struct lk__failure words = { .unlogged = false };
    lk__failure_keep(&words);
    if (words.settled_us > taking->settled_us)
        taking->settled_us = words.settled_us;
    lk__fail(EIO, "%.300s; what was taken before is still being given back", words.errortext);
    lk__error_settles(taking->settled_us);
    return EIO;
}

/* --- taken ------------------------------------------------------------------------------------------------------------- */

/* A lease may end while others are waited for: what is behind that one is taken anew, too. True: something was lost. */
static bool drop_lost(struct lk__taking *taking)
{
    const struct lk__multi *multi = taking->multi;
    int64_t ms;
    for (unsigned i = 0; i < multi->count; i++) {
        const struct lk__part *part = multi->parts[i];
        if (taking->held[i] && lk__holder_remaining(__func__, part->handle, part->kind, taking->how->by, &ms) != 0) {
            give_back_from(taking, lk__multi_firstlike(multi, i));
            return true;
        }
    }
    return false;
}

/* Of two of one name: does the server of one know what is held of the other? Then they are one lock. */
static bool __attribute__((noinline))
is_known_to(const struct lk__part *other, const struct lk__part *held, lk_owner_t *owner)
{
    struct lk__op op;
    struct lk__hold *hold;
    char id[LK__OWNER_ID];
    if (lk__op_enterholder(&op, held->handle, held->kind, owner) != 0)
        return false;
    int rc = lk__op_hold(&op, &hold);
    if (rc == 0)
        snprintf(id, sizeof id, "%s", hold->lease.id);
    lk__op_leave(&op, rc);
    if (rc != 0 || lk__op_enter(&op, other->handle, other->kind) != 0)
        return false;
    const struct lk__command command = lk__object_command(op.object, op.object->kind->check_script, NULL);
    struct lk__call call = { .node = lk__object_node(op.object),
                             .what = op.object->what,
                             .command = &command,
                             .sent = { .id = id } };
    rc = lk__call_run(&call);
    bool known = rc == 0 && call.answer.verdict == LK__TAKEN;
    lk__op_leave(&op, rc);
    return known;
}

/* Let others of that name go on: in a pause of random length, longer each time. */
static void pause_a_little(const struct lk__taking *taking, unsigned *meetings)
{
    struct lk__parker parker;
    unsigned doublings = *meetings < PAUSE_DOUBLINGS ? *meetings : PAUSE_DOUBLINGS;
    int64_t until_us = lk__now_us() + 1 + (int64_t)lk__random_below((uint64_t)PAUSE_US << doublings);
    ++*meetings;
    lk__parker_init(&parker);
    lk__parker_park(&parker, until_us < taking->how->limit_us ? until_us : taking->how->limit_us);
    lk__parker_destroy(&parker);
}

/* That one is to be waited for: hold only what stands before it. 0, or EINVAL: two members are one lock. */
static int __attribute__((noinline)) step_back(struct lk__taking *taking, unsigned index, unsigned *meetings)
{
    const struct lk__multi *multi = taking->multi;
    unsigned from = lk__multi_firstlike(multi, index);
    const struct lk__part *met = NULL;
    for (unsigned i = from; i < multi->count && lk__multi_firstlike(multi, i) == from; i++)
        if (taking->held[i])
            met = multi->parts[i];
    if (met != NULL && is_known_to(multi->parts[index], met, taking->how->by))
        return lk__fail(EINVAL, "%s: twice in the set, by clients that spell its server differently",
                        name_of(met).text);
    give_back_from(taking, from);
    if (met != NULL)
        pause_a_little(taking, meetings);
    return 0;
}

static int wait_for(struct lk__taking *taking, unsigned i)
{
    int rc = lk__part_lock(taking->multi->parts[i], taking->how);
    taking->held[i] = rc == 0 || rc == EOWNERDEAD;
    taking->died[i] = rc == EOWNERDEAD;
    return taking->held[i] ? 0 : rc;
}

/* A signal handler ended the thread while it waited for one of them: all that it has of the others is given back. */
static void ended(void *arg)
{
    struct lk__taking *taking = arg;
    give_back_from(taking, 0);
    lk__try_end(taking);
    atomic_fetch_sub(&taking->multi->locking, 1);
    lk__multi_unref(taking->multi);
}

/* 0: that one is held, and what stands before it. */
static int go_on_with(struct lk__taking *taking, unsigned index, unsigned *meetings)
{
    int code;
    pthread_cleanup_push(ended, taking);
    code = step_back(taking, index, meetings);
    if (code == 0)
        code = wait_for(taking, index);
    pthread_cleanup_pop(0);
    return code;
}

/* 0: all are held. Otherwise some may be. */
static int take_all(struct lk__taking *taking)
{
    bool only_try = taking->how->only_try;
    unsigned meetings = 0;
    for (;;) {
        int code = 0;
        unsigned first = lk__try_all(taking, &code);
        bool lost = drop_lost(taking);
        if (first == taking->multi->count && !lost)
            return 0;
        if (lost && lk__now_us() >= taking->how->limit_us)
            return lk__fail(only_try ? EBUSY : ETIMEDOUT, "several locks: the lease of one ended before all were held");
        if (lost)
            continue;
        if (lk__now_us() >= taking->how->limit_us)
            return code == EBUSY && !only_try ? ETIMEDOUT : code;
        lk__taking_noteopen(taking, lk__thread_self()->settled_us);
        code = go_on_with(taking, first, &meetings);
        if (code != 0)
            return code;
    }
}

/* EOWNERDEAD if it was so for one of them, which the words name. */
static int __attribute__((noinline)) tell_dead(const struct lk__taking *taking)
{
    for (unsigned i = 0; i < taking->multi->count; i++)
        if (taking->died[i])
            return lk__fail(EOWNERDEAD, "%s: held with all others, but its previous holder died holding it",
                            name_of(taking->multi->parts[i]).text);
    return 0;
}

static int take(struct lk__multi *multi, const struct lk__how *how)
{
    struct lk__taking taking = { .multi = multi, .how = how };
    if (multi->count == 0)
        return lk__fail(EINVAL, "lk_multi_lock: a set of locks without members");
    int rc = lk__try_prepare(&taking);
    if (rc != 0)
        return rc;
    lk__failure_keep(taking.before);
    rc = take_all(&taking);
    if (rc != 0) {
        rc = give_up(&taking, rc);
    } else {
        lk__failure_restore(taking.before);
        rc = tell_dead(&taking);
    }
    lk__try_end(&taking);
    return rc;
}

static int lock(lk_multi_t *s, const struct lk__how *how)
{
    struct lk__multicall call;
    int rc = lk__multi_enter(&call, "lk_multi_lock", s, 0);
    if (rc != 0)
        return rc;
    atomic_store(&call.multi->used, true);
    atomic_fetch_add(&call.multi->locking, 1);
    rc = take(call.multi, how);
    atomic_fetch_sub(&call.multi->locking, 1);
    return lk__multi_leave(&call, rc);
}

LK__LOCK_CALLS(multi, lock, lock)

/* --- given back -------------------------------------------------------------------------------------------------------- */

/* Does the owner hold it, well or lost? 0, EPERM, EINVAL; of a closed client ECANCELED: the close gave it back. */
static int check_holder(const struct lk__part *part, lk_owner_t *owner)
{
    struct lk__op op;
    int rc = lk__op_enterholder(&op, part->handle, part->kind, owner);
    if (rc == ECANCELED && lk__handle_isinherited(part->handle))
        return lk__fail(EPERM, "%s: held by another process, not by this one", name_of(part).text);
    if (rc != 0)
        return rc;
    if (lk__object_hold(op.object, lk__op_owner(&op)) == NULL)
        rc = lk__fail(EPERM, "%s: not held by %s", op.object->what, lk__op_holder(&op));
    return lk__op_leave(&op, rc);
}

static int check_holders(const struct lk__multi *multi, lk_owner_t *owner)
{
    for (unsigned i = 0; i < multi->count; i++) {
        int rc = check_holder(multi->parts[i], owner);
        if (rc != 0 && rc != ECANCELED)
            return rc;
    }
    return 0;
}

static int unlock(const struct lk__multi *multi, lk_owner_t *owner)
{
    struct lk__given given[LK_MULTI_MAX];
    bool all[LK_MULTI_MAX];
    for (unsigned i = 0; i < multi->count; i++)
        all[i] = true;
    return lk__give_back(multi, all, owner, given);
}

int lk_multi_unlock(lk_multi_t *s)
{
    return lk_multi_unlockby(s, NULL);
}

int lk_multi_unlockby(lk_multi_t *s, lk_owner_t *owner)
{
    struct lk__multicall call;
    int rc = lk__multi_enter(&call, "lk_multi_unlock", s, 1);
    if (rc != 0)
        return rc;
    rc = check_holders(call.multi, owner);
    return lk__multi_leave(&call, rc != 0 ? rc : unlock(call.multi, owner));
}
