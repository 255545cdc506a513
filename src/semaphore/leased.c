/* SPDX-License-Identifier: MIT */
/*
 * leased.c - taking and giving permits that have leases
 *
 * Each call that takes makes one hold, renewed by the watchdog, of one permit or several. Given back in
 * parts, the hold shrinks; with its last part it ends before the release is sent, as that of a mutex.
 */
#include "semaphore/scripts.h"
#include "semaphore/semaphore.h"

#include <stdio.h>
#include <string.h>

/* Hole of permit_release.lua, where others have LK__RELEASE_KEEP, which is 0 for permits. */
enum { RELEASE_KEPT };
/* Hole of permit_renew.lua, behind those of every renewal. */
enum { RENEW_PARTS = LK__RENEW_DEADLINE + 1 };

struct leased {
    struct lk__take take;
    const struct lk__semcall *call;
    const char *id; /* the permit's own, or NULL */
    unsigned parts;
    char n[16];
};

static int seal(struct lk__take *take)
{
    struct leased *leased = take->arg;
    const struct lk__semcall *call = leased->call;
    const struct lk__sem *sem = call->sem;
    struct lk__hold *hold = take->hold;
    const char *n = leased->n, *id = leased->id;
    size_t length = strlen(hold->id);
    char letters[8];
    lk__sem_letters(letters, sem, take->try_only);
    snprintf(hold->id + length, sizeof hold->id - length, ":%s%s%s", n, id != NULL ? ":" : "", id != NULL ? id : "");

    const char *ask[] = {
        hold->id, n, take->lease, call->initial, letters, sem->terms.liveness_text, sem->terms.claim_text, NULL, NULL, NULL
    };
    const char *release[] = { hold->id, n, sem->terms.claim_text, NULL, NULL }; /* the holes of every hold's release */
    const char *renew[] = { hold->id, NULL, NULL, NULL };
    int rc = lk__command_seal(&take->waiter.ask, &lk__lua_semaphore_permit_take, sem->keys, ask, 10);
    if (rc == 0)
        rc = lk__command_seal(&hold->release, &lk__lua_semaphore_permit_release, sem->keys, release, 5);
    if (rc == 0)
        rc = lk__command_seal(&hold->nest, &lk__lua_semaphore_permit_release, sem->keys, release, 5);
    if (rc == 0)
        rc = lk__command_seal(&hold->renew, &lk__lua_semaphore_permit_renew, sem->keys, renew, 4);
    if (rc == 0)
        lk__command_fill(&hold->renew, RENEW_PARTS, leased->parts);
    return rc;
}

static void unwind(struct lk__take *take)
{
    struct leased *leased = take->arg;
    lk__sem_leave(leased->call, ECANCELED);
}

/* As one acquisition; ESTALE: parts of it were taken away before it was known here, and the others went back. */
static int take_once(const struct lk__semcall *call, unsigned n, int64_t limit_us, const char *id)
{
    struct lk__thread *self = call->frame.self;
    struct leased leased = {
        .take = { .frame = &call->frame,
                  .owner = id == NULL ? self->owner : 0,
                  .tied = id == NULL,
                  .lease_ms = call->attr->lease_ms,
                  .max_hold_ms = call->attr->max_hold_ms,
                  .seal = seal,
                  .unwind = unwind },
        .call = call,
        .id = id,
        .parts = n,
    };
    leased.take.arg = &leased;
    snprintf(leased.n, sizeof leased.n, "%u", n);
    int rc = lk__take_run(&leased.take, limit_us);
    if (rc == 0) {
        leased.take.hold->holds = (int)n;
        self->holds += id == NULL;
    }
    return rc;
}

int lk__leased_take(const struct lk__semcall *call, unsigned n, int64_t limit_us, const char *id)
{
    for (int numbers = 0; numbers < LK__NUMBERS_MAX; numbers++) {
        int rc = take_once(call, n, limit_us, id);
        if (rc != ESTALE)
            return rc;
    }
    return lk__once_overtaken(call->frame.object);
}

/* --- giving back ------------------------------------------------------------------------------------------- */

int lk__leased_end(const struct lk__semcall *call, struct lk__hold *hold)
{
    int rc = lk__give(call->frame.object, hold);
    lk__object_drophold(call->frame.object, hold);
    return rc;
}

/* Give back all but `kept` of what a hold has. */
static int shrink(const struct lk__semcall *call, struct lk__hold *hold, int kept)
{
    hold->holds = kept;
    if (!lk__watchdog_good(hold->dog, hold, NULL))
        return lk__gone(call->frame.object);
    lk__watchdog_refill(hold->dog, hold, RENEW_PARTS, kept);
    lk__command_fill(&hold->nest, RELEASE_KEPT, kept);
    int rc = lk__call(&call->sem->object.client->conn, call->what, &hold->nest, -1, true, &hold->call, NULL);
    if (rc == 0 && !lk__reply_integers(hold->call->reply, 2))
        rc = lk__fail(EPROTO, "%s: the server's answer has the wrong shape", call->what);
    if (rc != 0) { /* the other parts are renewed no more */
        lk__settles(lk__hold_endsby(hold));
        return rc;
    }
    if (hold->call->reply->values[0].number == 1)
        return 0;
    lk__watchdog_lose(hold->dog, hold, LK_REASON_GONE);
    return lk__gone(call->frame.object);
}

int lk__leased_give(const struct lk__semcall *call, unsigned n)
{
    struct lk__object *object = call->frame.object;
    struct lk__thread *self = call->frame.self;
    int worst = 0;
    unsigned held = lk__object_count(object, self->owner, n);
    if (held < n)
        return lk__fail(EPERM, "%s: this thread holds %u permits, not %u", call->what, held, n);
    while (n > 0) {
        struct lk__hold *hold = lk__object_hold(object, self->owner); /* the oldest */
        unsigned part = (unsigned)hold->holds;
        int rc;
        if (part > n) {
            rc = shrink(call, hold, (int)(part - n));
            n = 0;
        } else {
            n -= part;
            rc = lk__leased_end(call, hold);
            self->holds--;
        }
        if (worst == 0)
            worst = rc;
    }
    return worst;
}
