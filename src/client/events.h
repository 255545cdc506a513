/* SPDX-License-Identifier: MIT */
/*
 * events.h - events of holds, for a listener and for programs that poll
 */
#ifndef LK__CLIENT_EVENTS_H
#define LK__CLIENT_EVENTS_H

#include "client/hold.h"

#include <latchkey/events.h>

enum { LK__LISTENER, LK__EVENTFD, LK__AUDIENCES };

struct lk__events {
    struct lk__mu mu;                      /* innermost but for a parker's: taken under dog->mu */
    pthread_cond_t news;                   /* with mu: something for the listener, or stop */
    pthread_cond_t quiet;                  /* with mu: the listener returned */
    struct lk__link queues[LK__AUDIENCES]; /* under mu: holds whose news is not fetched yet */
    bool wanted[LK__AUDIENCES];            /* under mu */
    lk_listener_t listener;                /* under mu */
    void *arg;                             /* under mu */
    bool running;                          /* under mu: the listener is being called */
    unsigned calls;                        /* under mu: calls from which it returned */
    bool started, stopping;                /* under mu */
    pthread_t thread;
    int fd; /* -1: not asked for */
};

void lk__events_init(struct lk__events *events);
void lk__events_notify(void *events, const struct lk__lease *lease, int type); /* under dog->mu */
bool lk__events_ishere(struct lk__events *events);                             /* is this the listener's thread? */
/* As lk_client_listen(), lk_client_eventfd() and lk_client_nextevent(); false: there is none. */
int lk__events_listen(struct lk__events *events, lk_listener_t listener, void *arg);
int lk__events_fd(struct lk__events *events, int *fd);
bool lk__events_next(struct lk__events *events, lk_event_t *event);
void lk__events_stop(struct lk__events *events);
void lk__events_destroy(struct lk__events *events);

#endif
