/* SPDX-License-Identifier: MIT */
/*
 * binding.c - what a handle is bound to: an object of a client, and the attributes of this handle
 *
 * Guards: the process state's mu, the bindings that this process keeps beside handles.
 */
#include "object/handle.h"

int lk__binding_make(const struct lk__kind *kind, lk_client_t *client, const char *name, const void *given,
                     unsigned stripes, struct lk__binding **made)
{
    struct lk__traits traits = { 0 };
    static const union lk__attributes defaults; /* all zeroes, for the many handles without attributes */
    struct lk__binding *binding = lk__alloc(sizeof *binding + (given != NULL ? kind->attr_size : 0));
    if (binding == NULL)
        return lk__fail(ENOMEM, "%s: out of memory", name);
    assert(kind->attr_size <= sizeof defaults);
    void *attr = binding + 1;
    int rc = given != NULL ? kind->check(attr, given) : 0;
    binding->kind = kind;
    binding->attr = given != NULL ? attr : &defaults;
    if (rc == 0 && kind->variant != NULL)
        kind = kind->variant(binding->attr);
    if (rc == 0)
        rc = lk__acl_check(&client->node, name, kind->commands);
    if (rc == 0 && kind->traits != NULL)
        traits = kind->traits(binding->attr);
    traits.stripes = (uint16_t)stripes;
    if (rc == 0)
        rc = lk__object_get(client, kind, name, traits, &binding->object);
    binding->refs = 1;
    if (rc != 0)
        lk__free(binding);
    else
        *made = binding;
    return rc;
}

void lk__binding_free(struct lk__binding *binding)
{
    lk__object_unref(binding->object);
    lk__free(binding);
}

struct lk__bindings *lk__bindings_here(struct lk__processstate *here)
{
    assert(lk__mu_held(&here->mu));
    if (here->bindings == NULL)
        here->bindings = lk__alloc(sizeof *here->bindings);
    if (here->bindings == NULL)
        lk__fail(ENOMEM, "out of memory for a handle");
    return here->bindings;
}

int lk__binding_retire(struct lk__processstate *here, struct lk__binding *binding)
{
    assert(lk__mu_held(&here->mu));
    struct lk__bindings *bindings = lk__bindings_here(here);
    if (bindings == NULL)
        return ENOMEM;
    binding->older = bindings->retired;
    bindings->retired = binding;
    return 0;
}

void lk__binding_dropretired(struct lk__processstate *here)
{
    assert(lk__mu_held(&here->mu));
    struct lk__binding **place = here->bindings != NULL ? &here->bindings->retired : NULL;
    while (place != NULL && *place != NULL) {
        struct lk__binding *binding = *place;
        if (lk__thread_follows(binding)) {
            place = &binding->older;
        } else {
            *place = binding->older;
            lk__binding_unref(binding);
        }
    }
}
