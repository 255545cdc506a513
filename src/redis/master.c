/* SPDX-License-Identifier: MIT */
/* master.c - where is the master now? At the one address, at one of several, or where Sentinels say */
#include "redis/master.h"

/* The next of `left` things to try has its share of the time, so that those behind it have theirs. */
static int64_t share_of(const struct lk__search *search, unsigned left)
{
    int64_t now_us = lk__now_us();
    return search->until_us > now_us ? now_us + (search->until_us - now_us) / left : now_us;
}

void lk__search_begin(struct lk__search *search, struct lk__connector *connector, struct lk__server *server)
{
    *search = (struct lk__search){ .connector = connector,
                                   .server = server,
                                   .until_us = lk__now_us() + server->options.connect_timeout_ms * 1000,
                                   .cancel_fd = connector->cancel_fd };
    if (server->options.service != NULL) {
        lk__sentinels_search(connector->sentinels);
        search->cancel_fd = lk__sentinels_newsfd(connector->sentinels);
    }
}

/* All of the options, the one where it was last before the others. */
static int next_listed(struct lk__search *search)
{
    const struct lk__options *options = &search->server->options;
    unsigned count = options->path != NULL ? 1 : options->server_count;
    if (search->tried == count)
        return ENOENT;
    search->place_until_us = share_of(search, count - search->tried);
    if (options->path == NULL)
        search->place = &options->servers[(search->server->at + search->tried) % count];
    search->tried++;
    return 0;
}

/* What a Sentinel says, unless that was tried; then what the next one says. */
static int next_announced(struct lk__search *search, char *errmsg, size_t size)
{
    int rc = lk__sentinels_next(search->connector->sentinels, search->until_us, &search->place, errmsg, size);
    search->place_until_us = share_of(search, rc == 0 && !lk__sentinels_agree(search->connector->sentinels) ? 2 : 1);
    search->tried += rc == 0;
    return rc == ENOTCONN && search->tried > 0 ? ENOENT : rc;
}

int lk__search_next(struct lk__search *search, char *errmsg, size_t size)
{
    return search->server->options.service != NULL ? next_announced(search, errmsg, size) : next_listed(search);
}

void lk__search_found(const struct lk__search *search)
{
    const struct lk__options *options = &search->server->options;
    if (options->service != NULL)
        lk__sentinels_found(search->connector->sentinels);
    else if (search->place != NULL)
        search->server->at = (unsigned)(search->place - options->servers);
}
