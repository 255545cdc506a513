/* SPDX-License-Identifier: MIT */
/*
 * redis.h - all that the rooms above use of this one: scripts, commands, replies, connections, calls
 */
#ifndef LK__REDIS_H
#define LK__REDIS_H

#include "redis/call.h"
#include "redis/command.h"
#include "redis/node.h"
#include "redis/reply.h"
#include "redis/script.h"
#include "redis/server_clock.h"

#endif
