/* SPDX-License-Identifier: MIT */
/* news.c - what a client tells of one of its holds, counted */
#include "news.h"

#include <string.h>

static void hear(const lk_event_t *event, void *arg)
{
    struct news *n = arg;
    if (strcmp(event->name, n->name) != 0 || event->type > LK_EVENT_LOST)
        return;
    __atomic_store_n(&n->reason, event->reason, __ATOMIC_SEQ_CST);
    __atomic_store_n(&n->kind, event->kind, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&n->count[event->type], 1, __ATOMIC_SEQ_CST);
}

void news_listen(struct news *n, lk_client_t *client, const char *name)
{
    *n = (struct news){ .name = name };
    assert_lk(0, lk_client_addlistener(client, hear, n, NULL));
}

struct news *news_of(struct world *w, lk_client_t *client, const char *name)
{
    struct news *n = world_shared(w, sizeof *n);
    news_listen(n, client, name);
    return n;
}

int news(const struct news *n, int type)
{
    return __atomic_load_n(&n->count[type], __ATOMIC_SEQ_CST);
}

int news_reason(const struct news *n)
{
    return __atomic_load_n(&n->reason, __ATOMIC_SEQ_CST);
}

int news_kind(const struct news *n)
{
    return __atomic_load_n(&n->kind, __ATOMIC_SEQ_CST);
}
