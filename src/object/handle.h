/* SPDX-License-Identifier: MIT */
/*
 * handle.h - from the user's struct to the object behind it
 */
#ifndef LK__OBJECT_HANDLE_H
#define LK__OBJECT_HANDLE_H

#include "client/process.h"
#include "object/object.h"

/* --- binding.c: what a handle is bound to ---------------------------------------------------------------------- */

/* In a handle's process: it was made for an explicitly opened client. */
enum { LK__EXPLICIT = 1 };

/* The fields of a handle, whatever its primitive. */
struct lk__handle {
    const char **name;
    void *attr; /* address of the pointer to the attributes, whose type is the primitive's */
    void **impl;
    uintptr_t *process;
    uintptr_t *spare; /* LK__SPARE_... */
};

/* What the spare words of a handle hold; 0 where there is no such thing. */
enum {
    LK__SPARE_NAME,  /* a copied name */
    LK__SPARE_STAMP, /* when that was made: lk__handle_stamp() */
    LK__SPARE_OWN,   /* the primitive's own */
    LK__SPARE_SET,   /* of a stripe: the struct lk__stripeset that it belongs to */
    LK__SPARES
};

/* What many handles have in common; it stays as long as they do. */
struct lk__stripeset {
    lk_client_t *client; /* to which its first use binds each; NULL: the default one */
    unsigned count;
};

/* The fields of a user's object, which may be NULL. */
#define LK__HANDLE(object)                                                                                             \
    ((object) == NULL ? (struct lk__handle){ NULL }                                                                    \
                      : (struct lk__handle){ &(object)->lk_name, (void *)&(object)->lk_attr, &(object)->lk_impl,       \
                                             &(object)->lk_process, (object)->lk_spare })

/* The attributes of any primitive. */
union lk__attributes {
    max_align_t aligned;
    unsigned char bytes[128];
};

/*
 * What a handle's impl points to: one for each handle, so that two of one name may differ. A thread that is let in by
 * a call may destroy the handle before that call returns, so each call has a reference of its own.
 */
struct lk__binding {
    atomic_int refs; /* the handle's, and one for each call under way */
    struct lk__object *object;
    const struct lk__kind *kind; /* as it was bound; not the variant */
    struct lk__binding *older;   /* under the process state's mu: in the list of retired ones */
    const void *attr;            /* the primitive's attributes, after this struct; or shared zeroes */
};

/* `given`: the user's attributes, or NULL. 0 or why not, with an error text. */
int lk__binding_make(const struct lk__kind *kind, lk_client_t *client, const char *name, const void *given,
                     unsigned stripes, struct lk__binding **made);
void lk__binding_free(struct lk__binding *binding); /* with its reference to the object */

/* With a reference, and its client is entered, if there is one that is open. */
static inline bool lk__binding_enter(struct lk__binding *binding)
{
    if (binding == NULL || !lk__client_tryenter(binding->object->client))
        return false;
    atomic_fetch_add(&binding->refs, 1);
    return true;
}

static inline void lk__binding_unref(struct lk__binding *binding)
{
    if (atomic_fetch_sub(&binding->refs, 1) == 1)
        lk__binding_free(binding);
}

/*
 * Both under the process state's mu. A handle is about to lead to another binding than this one: another thread may be
 * about to follow it, and find its client closed. So it is kept as long as one does. 0 or ENOMEM, with an error text.
 */
int lk__binding_retire(struct lk__processstate *here, struct lk__binding *binding);
void lk__binding_dropretired(struct lk__processstate *here); /* those that no thread follows any more */

/* Bindings that a process keeps beside handles. */
struct lk__bindings {
    struct lk__binding *retired; /* bindings of handles that were bound anew after the default client was closed */
    struct lk__map inherited;    /* bindings of handles that belong to another process */
};

/* Under the process state's mu. NULL: ENOMEM, with an error text. */
struct lk__bindings *lk__bindings_here(struct lk__processstate *here);

/* --- handle.c -------------------------------------------------------------------------------------------------- */

int lk__handle_init(struct lk__handle handle, const struct lk__kind *kind, lk_client_t *client, const char *name,
                    const void *attr);
/* The binding of a handle, made on its first use, with a reference; its client is entered. The limit is the call's. */
int lk__handle_enter(struct lk__handle handle, const struct lk__kind *kind, int64_t limit_us,
                     struct lk__binding **binding);
int lk__handle_destroy(struct lk__handle handle);
/* Of one that nobody has used: whoever holds its object does so by another handle. The error text stays. */
void lk__handle_abandon(struct lk__handle handle);
/*
 * Make the handle, all zeroes but for its name and attributes, a stripe: one of many, so each is bound by its first use,
 * and by the next one after it was destroyed. Name and attributes stay as long as the handle is used.
 */
void lk__handle_setstripe(struct lk__handle handle, const struct lk__processstate *here,
                          const struct lk__stripeset *set);
/* 0, or the code with which lk__handle_destroy() would refuse. */
int lk__handle_checkunused(struct lk__handle handle);

/*
 * This process and its number of forks now, as one word: what is copied now is there in this process, and in children
 * that are forked later.
 */
uintptr_t lk__handle_stamp(const struct lk__processstate *here);
bool lk__stamp_isours(uintptr_t stamp, const struct lk__processstate *here); /* made by this process itself */
bool lk__stamp_isreadable(uintptr_t stamp); /* or by one that it was forked from, before that */

/* Is it bound to a client of another process, such as the parent of a fork? */
bool lk__handle_isinherited(struct lk__handle handle);
/* Do name and attributes point to memory that this process has, too? */
bool lk__handle_isreadable(struct lk__handle handle);
const char *lk__handle_name(struct lk__handle handle); /* for words */

/* --- handles that belong to another process ------------------------------------------------------- */

/*
 * These three: under the process state's mu. The binding that this process has for the handle; NULL: none of that name
 * and, if given, that type.
 */
struct lk__binding *lk__inherited_find(struct lk__processstate *here, struct lk__handle handle,
                                       const struct lk__kind *kind);
/* Set the binding, which is taken; an older one is replaced. 0 or ENOMEM, with an error text. */
int lk__inherited_set(struct lk__processstate *here, struct lk__handle handle, struct lk__binding *binding);
void lk__inherited_forget(struct lk__processstate *here,
                          struct lk__handle handle); /* the binding is the caller's then */

/* --- acquire.c: attributes --------------------------------------------------------------------------------------- */

enum { LK__LEASE_MIN_MS = 100 };

/* Leases that a hold can have, 0 for the default: 0 or EINVAL. */
int lk__attr_leases(int64_t lease_ms, int64_t max_hold_ms);
/* EINVAL, with words: too short a lease for servers that replace each other, of which clock_skew is not trusted. */
int lk__object_leasecheck(const struct lk__object *object, int64_t lease_ms);

#endif
