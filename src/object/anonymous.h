/* SPDX-License-Identifier: MIT */
/*
 * anonymous.h - objects that leave nothing at the server
 *
 * What others keep there until somebody deletes it has an end here, which each client that uses the object puts off as
 * it renews a hold. With the last handle of a client that client leaves; the last one takes the object along.
 *
 * A primitive sets the trait, brings the scripts of its kind to keep and to end it, and one that begins: `sent: id
 * deadline_us lease_ms`, answers DONE. Its other scripts make no number without an end for such an object.
 */
#ifndef LK__OBJECT_ANONYMOUS_H
#define LK__OBJECT_ANONYMOUS_H

#include "object/op.h"

/* Of an anonymous object: its life at the server; the primitive's object has it. NULL before the first use. */
struct lk__presence {
    _Atomic(struct lk__lease *) lease;
};

/* As lk__handle_init(); an anonymous object may have NULL for a name, and gets one that nobody else has. */
int lk__anonymous_init(struct lk__handle handle, const struct lk__kind *kind, lk_client_t *client, const char *name,
                       const void *attr, bool anonymous);

/*
 * Before the first request of a call: the object is there, and this client uses it; by the first call it is asked to
 * `begin`. 0 · ESTALE its lease was lost, and it may be gone · why it could not be begun. With an error text.
 */
int lk__anonymous_use(const struct lk__op *op, struct lk__presence *presence, const struct lk__command *begin);

/*
 * What a wait ended with that was told that there is nothing to wait for any more. `code`, for it was deleted; or, with an
 * error text, ESTALE: this client was cut off for a lease.
 */
int lk__anonymous_waited(const struct lk__object *object, struct lk__presence *presence, int code);

/* When the object stops: this client uses it no longer, and at the server it may go. Under client->mu. */
void lk__anonymous_leave(struct lk__object *object, struct lk__presence *presence);

#endif
