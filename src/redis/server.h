/* SPDX-License-Identifier: MIT */
/*
 * server.h - what is known of the server that a node's connections go to
 */
#ifndef LK__SERVER_H
#define LK__SERVER_H

#include "config/options.h"

#include <sys/socket.h>

struct lk__server {
    struct lk__options options;
    /* The connector thread's: */
    int64_t pause_us, not_before_us; /* back-off after a failure, of all connections to it */
    struct sockaddr_storage last;    /* where it answered, should the resolver fail */
    socklen_t last_size;             /* 0: nowhere yet */
};

#endif
