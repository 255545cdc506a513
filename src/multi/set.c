/* SPDX-License-Identifier: MIT */
/*
 * set.c - making and ending a set of locks, and adding to it
 *
 * Parts are kept in the order in which they are waited for, which all programs have to agree on. So it is that of what they
 * have in common, kind and key, and not that of servers, which one may know by a name, another by an address.
 */
#include "multi/multi.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(lk_multi_t) == 8 * sizeof(void *), "ABI");

/* --- made ------------------------------------------------------------------------------------------------------------- */

static int init(lk_multi_t *s)
{
    struct lk__processstate *here = lk__process_state();
    struct lk__multi *multi = here != NULL ? lk__alloc(sizeof *multi) : NULL;
    if (multi == NULL)
        return lk__fail(ENOMEM, "out of memory for a set of locks");
    multi->refs = 1;
    *s = (lk_multi_t){ .lk_impl = multi, .lk_made = lk__handle_stamp(here) };
    return 0;
}

int lk_multi_init(lk_multi_t *s)
{
    if (s == NULL)
        return lk__fail(EINVAL, "%s: no set of locks was given", __func__);
    struct lk__apistate api = lk__api_enter();
    return lk__api_leave(&api, init(s));
}

static void free_part(struct lk__part *part)
{
    if (part == NULL)
        return;
    lk__client_unref(part->client);
    lk__free(part);
}

void lk__multi_unref(struct lk__multi *multi)
{
    if (atomic_fetch_sub(&multi->refs, 1) != 1)
        return;
    for (unsigned i = 0; i < multi->count; i++)
        free_part(multi->parts[i]);
    lk__free(multi);
}

static int find(const char *function, const lk_multi_t *s, unsigned least, struct lk__multi **multi)
{
    if (s == NULL || s->lk_impl == NULL)
        return lk__fail(EINVAL, "%s: %s", function,
                        s == NULL ? "no set of locks was given" : "a set of locks that was never made, or destroyed");
    if (!lk__stamp_isreadable(s->lk_made))
        return lk__fail(ECANCELED, "%s: the set of locks belongs to another process", function);
    *multi = s->lk_impl;
    return (*multi)->count >= least ? 0 : lk__fail(EINVAL, "%s: a set of locks without members", function);
}

int lk__multi_enter(struct lk__multicall *call, const char *function, const lk_multi_t *s, unsigned least)
{
    call->api = lk__api_enter();
    int rc = find(function, s, least, &call->multi);
    if (rc != 0)
        return lk__api_leave(&call->api, rc);
    atomic_fetch_add(&call->multi->refs, 1);
    return 0;
}

int lk__multi_leave(struct lk__multicall *call, int code)
{
    lk__multi_unref(call->multi);
    return lk__api_leave(&call->api, code);
}

/* --- added to ----------------------------------------------------------------------------------------------------------- */

static int compare(const struct lk__part *a, const struct lk__part *b)
{
    return a->kind != b->kind ? (a->kind->number < b->kind->number ? -1 : 1) : strcmp(a->key, b->key);
}

unsigned lk__multi_firstlike(const struct lk__multi *multi, unsigned index)
{
    while (index > 0 && compare(multi->parts[index - 1], multi->parts[index]) == 0)
        index--;
    return index;
}

static bool is_alike(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* Do both name one address at least? */
static bool share_address(const struct lk__options *a, const struct lk__options *b)
{
    for (unsigned i = 0; i < a->server_count; i++)
        for (unsigned j = 0; j < b->server_count; j++)
            if (a->servers[i].port == b->servers[j].port && strcmp(a->servers[i].host, b->servers[j].host) == 0)
                return true;
    return false;
}

/* As far as their URLs tell; see also is_twice() of lock.c. */
static bool have_one_server(const lk_client_t *a, const lk_client_t *b)
{
    const struct lk__options *one = a->options, *other = b->options;
    if (a == b)
        return true;
    if (one->db != other->db || !is_alike(one->service, other->service))
        return false;
    return one->path != NULL ? is_alike(one->path, other->path) : share_address(one, other);
}

/* Where it belongs; EINVAL if the lock is there already. */
static int find_place(const struct lk__multi *multi, const struct lk__part *part, const char *what, unsigned *place)
{
    *place = 0;
    for (unsigned i = 0; i < multi->count; i++) {
        int order = compare(multi->parts[i], part);
        if (order == 0 && have_one_server(multi->parts[i]->client, part->client))
            return lk__fail(EINVAL, "%s: the set has it already%s", what,
                            multi->parts[i]->write != part->write ? ", to be locked in the other way" : "");
        *place += order <= 0;
    }
    return 0;
}

static const char *key_of(const struct lk__object *object)
{
    return object->kind->number == LK_KIND_MUTEX ? LK__CONTAINER(object->block, struct lk__mutexblock, block)->keys.mutex
                                                 : lk__rwlock_block(object)->keys.holders;
}

static int make_part(const struct lk__op *op, const struct lk__part *like, struct lk__part **made)
{
    const char *key = key_of(op->object);
    size_t size = strlen(key) + 1;
    struct lk__part *part = lk__alloc(sizeof *part + size);
    if (part == NULL)
        return lk__fail(ENOMEM, "%s: out of memory for it in a set of locks", op->object->what);
    *part = *like;
    part->client = op->object->client;
    atomic_fetch_add(&part->client->refs, 1);
    memcpy(part->key, key, size);
    *made = part;
    return 0;
}

static int insert(struct lk__multi *multi, struct lk__part *part, const char *what)
{
    unsigned place;
    int rc = find_place(multi, part, what, &place);
    if (rc != 0)
        return rc;
    memmove(&multi->parts[place + 1], &multi->parts[place], (multi->count - place) * sizeof(struct lk__part *));
    multi->parts[place] = part;
    multi->count++;
    return 0;
}

static int check_part(const struct lk__multi *multi, const struct lk__op *op)
{
    const char *what = op->object->what;
    if (atomic_load(&multi->used))
        return lk__fail(EINVAL, "%s: the set was locked before, and is complete", what);
    if (multi->count == LK_MULTI_MAX)
        return lk__fail(EINVAL, "%s: a set has %u locks at most", what, LK_MULTI_MAX);
    if (op->object->kind->number == LK_KIND_MUTEX && lk__mutex_attr(op)->min_hold_ms != 0)
        return lk__fail(EINVAL, "%s: it has min_hold_ms, so it would stay taken where the others are not free", what);
    return 0;
}

static int add_to(struct lk__multi *multi, const struct lk__part *like)
{
    struct lk__op op;
    struct lk__part *part = NULL;
    int rc = lk__op_enter(&op, like->handle, like->kind);
    if (rc != 0)
        return rc;
    rc = check_part(multi, &op);
    if (rc == 0)
        rc = make_part(&op, like, &part);
    if (rc == 0)
        rc = insert(multi, part, op.object->what);
    if (rc != 0)
        free_part(part);
    return lk__op_leave(&op, rc);
}

static int add(const char *function, lk_multi_t *s, const struct lk__part *like)
{
    struct lk__multicall call;
    int rc = lk__multi_enter(&call, function, s, 0);
    return rc != 0 ? rc : lk__multi_leave(&call, add_to(call.multi, like));
}

int lk_multi_addmutex(lk_multi_t *s, lk_mutex_t *m)
{
    return add(__func__, s, &(struct lk__part){ .lock = m, .handle = LK__HANDLE(m), .kind = &lk__mutex_kind });
}

int lk_multi_addread(lk_multi_t *s, lk_rwlock_t *rw)
{
    return add(__func__, s, &(struct lk__part){ .lock = rw, .handle = LK__HANDLE(rw), .kind = &lk__rwlock_kind });
}

int lk_multi_addwrite(lk_multi_t *s, lk_rwlock_t *rw)
{
    return add(__func__, s,
               &(struct lk__part){ .lock = rw, .handle = LK__HANDLE(rw), .kind = &lk__rwlock_kind, .write = true });
}

/* --- ended -------------------------------------------------------------------------------------------------------------- */

static int destroy(lk_multi_t *s)
{
    struct lk__processstate *here = lk__process_state();
    if (here == NULL || s->lk_impl == NULL || !lk__stamp_isours(s->lk_made, here))
        return 0; /* what a fork's child has may be its parent's memory, too */
    struct lk__multi *multi = s->lk_impl;
    if (atomic_load(&multi->locking) > 0)
        return lk__fail(EBUSY, "lk_multi_destroy: a thread is locking the set");
    lk__multi_unref(multi);
    *s = (lk_multi_t){ 0 };
    return 0;
}

int lk_multi_destroy(lk_multi_t *s)
{
    if (s == NULL)
        return lk__fail(EINVAL, "%s: no set of locks was given", __func__);
    struct lk__apistate api = lk__api_enter();
    return lk__api_leave(&api, destroy(s));
}
