/* SPDX-License-Identifier: MIT */
/* listen.c - the public calls for events: listen, eventfd, nextevent */
#include "client/client.h"

int lk_client_listen(lk_client_t *client, lk_listener_t listener, void *arg)
{
    struct lk__apistate api = lk__api_enter();
    int rc = lk__client_enter(client);
    if (rc == 0) {
        rc = lk__events_listen(&client->events, listener, arg);
        lk__client_leave(client);
    }
    return lk__api_leave(&api, rc);
}

int lk_client_eventfd(lk_client_t *client, int *fd)
{
    if (fd == NULL)
        return lk__fail(EINVAL, "lk_client_eventfd: nowhere to put the descriptor");
    struct lk__apistate api = lk__api_enter();
    int rc = lk__client_enter(client);
    if (rc == 0) {
        rc = lk__events_fd(&client->events, fd);
        lk__client_leave(client);
    }
    return lk__api_leave(&api, rc);
}

int lk_client_nextevent(lk_client_t *client, lk_event_t *event)
{
    lk_event_t found;
    struct lk__apistate api = lk__api_enter();
    int rc = lk__sized_check(event, LK__THROUGH(lk_event_t, name), "an event");
    if (rc == 0)
        rc = lk__client_enter(client);
    if (rc == 0) {
        rc = lk__events_next(&client->events, &found) ? 0 : EAGAIN;
        lk__client_leave(client);
    }
    if (rc == 0)
        lk__sized_write(event, &found, sizeof found);
    return lk__api_leave(&api, rc);
}
