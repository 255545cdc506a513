/* SPDX-License-Identifier: MIT */
/* list.c - a circle of links with the list's own head in it, so that removing needs no cases */
#include "base/base.h"

void lk__list_init(struct lk__link *list)
{
    list->next = list->prev = list;
}

bool lk__list_empty(const struct lk__link *list)
{
    return list->next == list;
}

void lk__list_append(struct lk__link *list, struct lk__link *link)
{
    assert(!lk__listed(link));
    link->prev = list->prev;
    link->next = list;
    list->prev->next = link;
    list->prev = link;
}

void lk__list_remove(struct lk__link *link)
{
    if (!lk__listed(link))
        return;
    link->prev->next = link->next;
    link->next->prev = link->prev;
    link->next = link->prev = NULL;
}

struct lk__link *lk__list_first(const struct lk__link *list)
{
    return list->next == list ? NULL : list->next;
}

struct lk__link *lk__list_last(const struct lk__link *list)
{
    return list->prev == list ? NULL : list->prev;
}

struct lk__link *lk__list_next(const struct lk__link *list, const struct lk__link *link)
{
    return link->next == list ? NULL : link->next;
}
