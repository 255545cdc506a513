/* SPDX-License-Identifier: MIT */
/*
 * set.c - making and ending a set of stripes
 *
 * Mutexes are there from the beginning, so that one is found without a step that may fail, but each is bound by its first
 * use: what is never used costs little. Only the last one, which has the longest name, is bound at once where there is
 * a client, so that mistakes are told when the set is made.
 */
#include "stripes/stripes.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(lk_stripes_t) == 8 * sizeof(void *), "ABI");
_Static_assert(LK_STRIPES_MAX <= UINT16_MAX, "struct lk__traits");

/* --- made ----------------------------------------------------------------------------------------------------------- */

/* The set in memory; NULL: ENOMEM. */
static struct lk__stripes *make(const char *name, unsigned n)
{
    size_t length = strlen(name), room = length + sizeof ":16383", mutexes = n * sizeof(lk_mutex_t);
    struct lk__stripes *stripes = lk__alloc(sizeof *stripes + mutexes + length + 1 + n * room);
    if (stripes == NULL)
        return NULL;
    char *at = (char *)(stripes->mutexes + n);
    stripes->set.count = n;
    stripes->name = strcpy(at, name);
    at += length + 1;
    for (unsigned i = 0; i < n; i++, at += room) {
        snprintf(at, room, "%s:%u", name, i);
        stripes->mutexes[i].lk_name = at;
    }
    return stripes;
}

/* Of the names, the longest is the last. */
static lk_mutex_t *last_of(struct lk__stripes *stripes)
{
    return &stripes->mutexes[stripes->set.count - 1];
}

static void set_up(struct lk__stripes *stripes, const struct lk__processstate *here, bool with_attr)
{
    for (unsigned i = 0; i < stripes->set.count; i++) {
        lk_mutex_t *m = &stripes->mutexes[i];
        m->lk_attr = with_attr ? &stripes->attr : NULL;
        lk__handle_setstripe(LK__HANDLE(m), here, &stripes->set);
    }
}

/* The set refers to its client from now on. */
static int bind_last(struct lk__stripes *stripes)
{
    lk_client_t *client = stripes->set.client;
    struct lk__binding *binding;
    int rc = lk__handle_enter(LK__HANDLE(last_of(stripes)), &lk__mutex_kind, LK__NEVER, &binding);
    if (rc != 0)
        return rc;
    atomic_fetch_add(&client->refs, 1);
    lk__binding_unref(binding);
    lk__client_leave(client);
    return 0;
}

static int check_arguments(const lk_stripes_t *s, const char *name, unsigned n)
{
    if (s == NULL || name == NULL)
        return lk__fail(EINVAL, "lk_stripes_init: no %s given", s == NULL ? "stripes were" : "name was");
    if (n < 1 || n > LK_STRIPES_MAX)
        return lk__fail(EINVAL, "%.64s: %u stripes: 1 to %u", name, n, LK_STRIPES_MAX);
    return lk__name_check(name, strlen(name));
}

static int init(lk_stripes_t *s, lk_client_t *client, const char *name, unsigned n, const lk_mutexattr_t *attr)
{
    struct lk__processstate *here = lk__process_state();
    int rc = check_arguments(s, name, n);
    if (rc != 0)
        return rc;
    struct lk__stripes *stripes = here != NULL ? make(name, n) : NULL;
    if (stripes == NULL)
        return lk__fail(ENOMEM, "%s: out of memory for %u stripes", name, n);
    stripes->set.client = client;
    set_up(stripes, here, attr != NULL);
    const char *longest = last_of(stripes)->lk_name;
    rc = attr != NULL ? lk__mutexattr_check(&stripes->attr, attr) : 0;
    if (rc == 0)
        rc = client != NULL ? bind_last(stripes) : lk__name_check(longest, strlen(longest));
    if (rc != 0) {
        lk__free(stripes);
        return rc;
    }
    *s = (lk_stripes_t){ .lk_name = stripes->name, .lk_impl = stripes, .lk_made = lk__handle_stamp(here) };
    return 0;
}

int lk_stripes_init(lk_stripes_t *s, lk_client_t *client, const char *name, unsigned n)
{
    return lk_stripes_initattr(s, client, name, n, NULL);
}

int lk_stripes_initattr(lk_stripes_t *s, lk_client_t *client, const char *name, unsigned n, const lk_mutexattr_t *attr)
{
    struct lk__apistate api = lk__api_enter();
    return lk__api_leave(&api, init(s, client, name, n, attr));
}

/* --- used ----------------------------------------------------------------------------------------------------------- */

int lk__stripes_get(const char *function, const lk_stripes_t *s, struct lk__stripes **stripes)
{
    if (s == NULL || s->lk_name == NULL)
        return lk__fail(EINVAL, "%s: %s", function,
                        s == NULL ? "no stripes were given" : "stripes that were never initialised, or destroyed");
    if (!lk__stamp_isreadable(s->lk_made))
        return lk__fail(ECANCELED, "%s: the stripes belong to another process", function);
    *stripes = s->lk_impl;
    return 0;
}

unsigned lk_stripes_count(lk_stripes_t *s)
{
    struct lk__apistate api = lk__api_enter();
    struct lk__stripes *stripes;
    int rc = lk__stripes_get(__func__, s, &stripes);
    lk__api_leave(&api, rc);
    return rc == 0 ? stripes->set.count : 0;
}

lk_mutex_t *lk_stripes_at(lk_stripes_t *s, unsigned index)
{
    struct lk__apistate api = lk__api_enter();
    struct lk__stripes *stripes;
    int rc = lk__stripes_get(__func__, s, &stripes);
    if (rc == 0 && index >= stripes->set.count)
        rc = lk__fail(EINVAL, "%s: there is no stripe %u of %u", stripes->name, index, stripes->set.count);
    lk__api_leave(&api, rc);
    return rc == 0 ? &stripes->mutexes[index] : NULL;
}

/* --- ended ---------------------------------------------------------------------------------------------------------- */

/* All of them or none, so each is looked at before the first one ends. */
static int end_mutexes(struct lk__stripes *stripes)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < stripes->set.count; i++)
        rc = lk__handle_checkunused(LK__HANDLE(&stripes->mutexes[i]));
    for (unsigned i = 0; rc == 0 && i < stripes->set.count; i++)
        rc = lk__handle_destroy(LK__HANDLE(&stripes->mutexes[i]));
    return rc;
}

static int destroy(lk_stripes_t *s)
{
    struct lk__processstate *here = lk__process_state();
    if (here == NULL || s->lk_name == NULL || !lk__stamp_isreadable(s->lk_made))
        return 0;
    struct lk__stripes *stripes = s->lk_impl;
    int rc = end_mutexes(stripes);
    if (rc != 0 || !lk__stamp_isours(s->lk_made, here)) /* what a fork's child has may be its parent's memory, too */
        return rc;
    if (stripes->set.client != NULL)
        lk__client_unref(stripes->set.client);
    lk__free(stripes);
    *s = (lk_stripes_t){ 0 };
    return 0;
}

int lk_stripes_destroy(lk_stripes_t *s)
{
    if (s == NULL)
        return lk__fail(EINVAL, "%s: no stripes were given", __func__);
    struct lk__apistate api = lk__api_enter();
    return lk__api_leave(&api, destroy(s));
}
