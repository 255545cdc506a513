/* SPDX-License-Identifier: MIT */
/* holders.c - who holds an object, by its name */
#include "inspect/inspect.h"
#include "inspect/scripts.h"
#include "object/keys.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 50 }; /* with what stands before them a page is below LK__REPLY_MAX */

/* Where the holders of a kind are. */
struct shelf {
    const char *family; /* of the sorted set; a mutex and a run have none */
    unsigned flags;
};

static const struct shelf shelves[LK__KINDS] = {
#define KIND(number, name, set, flag) [LK_KIND_##number] = { set, flag },
#include "client/kinds.def"
};

static const struct shelf *shelf_of(int kind)
{
    const struct shelf *shelf = kind > 0 && kind < LK__KINDS ? &shelves[kind] : NULL;
    return shelf != NULL && (shelf->family != NULL || shelf->flags != 0) ? shelf : NULL;
}

/* What is asked, and where the answers go. */
struct asking {
    lk_client_t *client;
    const struct shelf *shelf;
    char mutex[LK__KEY_MAX], set[LK__KEY_MAX], run[LK__KEY_MAX]; /* all of one slot */
    unsigned char *holders;
    size_t stride; /* from one to the next */
    unsigned capacity, listed, count, on_page;
    struct lk__reply reply;
    struct lk__value values[LK__REPLY_MAX];
    char text[PAGE * (sizeof((lk_holder_t *)0)->id + 24)];
};

/* 0, or EINVAL: no object may have that name. */
static int write_keys(struct asking *asking, const char *name)
{
    const char *prefix = asking->client->options->prefix;
    char full[2 * LK_NAME_MAX + 2];
    if (name == NULL || strlen(name) > LK_NAME_MAX)
        return lk__fail(EINVAL, "lk_inspect_holders: no name was given, or one that is longer than any may be");
    strcpy(stpcpy(full, prefix != NULL ? prefix : ""), name);
    int rc = lk__name_check(full, strlen(full));
    if (rc != 0)
        return rc;
    strcpy(asking->mutex, full);
    lk__key_ours(asking->set, asking->shelf->family != NULL ? asking->shelf->family : "latchkey:rw", full);
    lk__key_ours(asking->run, "latchkey:run", full);
    return 0;
}

static int ask_page(struct asking *asking, struct lk__inspect_holders_reply *page)
{
    const struct lk__inspect_keys keys = { .mutex = asking->mutex, .holders = asking->set, .run = asking->run };
    const struct lk__inspect_holders_args args = {
        .first = asking->listed, .most = PAGE, .flags = asking->shelf->flags
    };
    const struct lk__command command = { .script = &lk__lua_inspect_holders, .keys = &keys, .args = &args };
    lk__reply_in(&asking->reply, asking->values, LK__REPLY_MAX, asking->text, sizeof asking->text);
    struct lk__call call = { .node = &asking->client->node,
                             .what = "lk_inspect_holders",
                             .command = &command,
                             .reply = &asking->reply };
    int rc = lk__call_run(&call);
    if (rc == 0)
        lk__inspect_holders_read(&asking->reply, page);
    return rc;
}

static void list_page(struct asking *asking, const struct lk__inspect_holders_reply *page)
{
    asking->count = (unsigned)page->count;
    asking->on_page = page->found_count;
    for (unsigned i = 0; i < page->found_count && asking->listed < asking->capacity; i++) {
        lk_holder_t holder = { .remaining_ms = 0 };
        char *id;
        holder.remaining_ms = strtoll(lk__reply_text(&asking->reply, page->found + i), &id, 10);
        strncpy(holder.id, *id == ' ' ? id + 1 : id, sizeof holder.id - 1);
        lk__sized_fill(asking->holders + asking->listed++ * asking->stride, asking->stride, &holder, sizeof holder);
    }
}

static int list(struct asking *asking)
{
    struct lk__inspect_holders_reply page;
    int rc;
    do {
        rc = lk__client_stay(asking->client, "lk_inspect_holders");
        if (rc == 0)
            rc = ask_page(asking, &page);
        if (rc == 0)
            list_page(asking, &page);
    } while (rc == 0 && asking->on_page == PAGE && asking->listed < asking->capacity);
    return rc;
}

static int list_all(struct asking *asking, const char *name, unsigned *count)
{
    int rc = write_keys(asking, name);
    if (rc == 0 && asking->client->options->quorum)
        rc = lk__fail(ENOTSUP, "lk_inspect_holders: each server of a quorum has holders of its own");
    if (rc == 0)
        rc = list(asking);
    if (rc == 0)
        *count = asking->count;
    return rc;
}

static int check(int kind, const lk_holder_t *holders, size_t stride, unsigned capacity, const unsigned *count)
{
    if (shelf_of(kind) == NULL)
        return lk__fail(EINVAL, "lk_inspect_holders: the server does not know holders of the kind %d", kind);
    if (count == NULL || (holders == NULL && capacity > 0))
        return lk__fail(EINVAL, "lk_inspect_holders: nowhere to put the holders");
    if (capacity > 0 && stride < LK__THROUGH(lk_holder_t, remaining_ms))
        return lk__fail(EINVAL, "lk_inspect_holders: the stride is sizeof(lk_holder_t)");
    return 0;
}

int lk_inspect_holders(lk_client_t *client, int kind, const char *name, lk_holder_t *holders, size_t stride,
                       unsigned capacity, unsigned *count)
{
    struct lk__apistate api = lk__api_enter();
    int rc = check(kind, holders, stride, capacity, count);
    struct asking *asking = rc == 0 ? lk__alloc(sizeof *asking) : NULL;
    if (rc == 0 && asking == NULL)
        rc = lk__fail(ENOMEM, "lk_inspect_holders: out of memory for a list of holders");
    if (rc == 0)
        rc = lk__client_enter(client);
    if (rc == 0) {
        asking->client = client;
        asking->shelf = shelf_of(kind);
        asking->holders = (unsigned char *)holders;
        asking->stride = stride;
        asking->capacity = capacity;
        rc = list_all(asking, name, count);
        lk__client_leave(client);
    }
    lk__free(asking);
    return lk__api_leave(&api, rc);
}
