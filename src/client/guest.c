/* SPDX-License-Identifier: MIT */
/*
 * guest.c - shells that belong to another process
 *
 * The child of a fork finds the static objects of its parent as that has bound them; and in memory that both share,
 * such as a mapping from before the fork, it is the very shell which the parent uses. Nobody can tell the two apart
 * by looking, so a shell that belongs to another process is never written to: what it means here is kept beside it,
 * under its address. Name and type are compared, as the memory may be another object's by now.
 *
 * Guards: the household's mu.
 */
#include "client/client.h"

#include <string.h>

struct guest {
    struct lk__entry entry; /* its key is the address */
    const void *shell;
    struct lk__binding *binding;
};

static struct guest *guest_at(struct lk__household *here, const void *address)
{
    struct lk__entry *entry = lk__map_find(&here->guests, 0, (const char *)&address, sizeof address);
    return entry != NULL ? LK__CONTAINER(entry, struct guest, entry) : NULL;
}

struct lk__binding *lk__guest_find(struct lk__household *here, struct lk__shell shell, const struct lk__shelltype *type)
{
    struct guest *guest = guest_at(here, shell.name);
    if (guest == NULL || strcmp(guest->binding->object->name, *shell.name) != 0 ||
        (type != NULL && guest->binding->type != type))
        return NULL;
    return guest->binding;
}

int lk__guest_set(struct lk__household *here, struct lk__shell shell, struct lk__binding *binding)
{
    struct guest *guest = guest_at(here, shell.name);
    if (guest != NULL) {
        lk__binding_drop(guest->binding);
    } else {
        guest = lk__alloc(sizeof *guest);
        if (guest == NULL)
            return lk__fail(ENOMEM, "%s: out of memory", *shell.name);
        guest->shell = shell.name;
        guest->entry = (struct lk__entry){ .key = (const char *)&guest->shell, .length = sizeof guest->shell };
        lk__map_insert(&here->guests, &guest->entry);
    }
    guest->binding = binding;
    return 0;
}

void lk__guest_forget(struct lk__household *here, struct lk__shell shell)
{
    struct guest *guest = guest_at(here, shell.name);
    if (guest == NULL)
        return;
    lk__map_remove(&here->guests, &guest->entry);
    lk__release(guest);
}
