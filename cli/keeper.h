/* SPDX-License-Identifier: MIT */
/*
 * keeper.h - a process that ends a process group before a lease runs out, whatever becomes of latchkey
 *
 * latchkey tells it until when the hold is good, in shared memory. When that moment comes near and was not put off, or
 * latchkey is gone, the keeper sends the group the first signal and, before the hold ends, SIGKILL. So a latchkey that was
 * killed, or stands still, leaves nothing running behind the end of its lease.
 *
 * Holds as long as the keeper itself runs in time: it is a process of its own group, blocks all signals, and does nothing
 * but this. Who kills it, too, or stops the whole machine, has to rely on the fencing token. A process that left the
 * group, by setsid(), is out of its reach.
 */
#ifndef CLI_KEEPER_H
#define CLI_KEEPER_H

#include "command.h"

#include <sys/types.h>

enum reason {
    REASON_NONE,
    REASON_LOST,   /* the lease was not renewed in time */
    REASON_TIME,   /* --max-time */
    REASON_LEFT,   /* the command had ended, or was told to, and left others in its group */
    REASON_ORPHAN, /* latchkey is gone */
};

struct keeper {
    pid_t pid;
    int wake;           /* its end tells the keeper that latchkey is gone */
    struct kept *shared;
};

/* Before the client is opened, as a process with one thread is simple to fork. 0, or an exit code: complained. */
int keeper_start(struct keeper *keeper, const struct settings *settings);

void keeper_guard(struct keeper *keeper, pid_t group); /* from now on there is something to end */
void keeper_limit(struct keeper *keeper, int64_t ms); /* end it after so long: REASON_TIME */
/* The hold is good for so long from that moment of boot_ms() on; 0: it is lost. */
void keeper_valid_for(struct keeper *keeper, int64_t since, int64_t ms);
void keeper_end_group(struct keeper *keeper);             /* now: REASON_LEFT */
enum reason keeper_reason(const struct keeper *keeper);   /* why it ended the group */

/* The group is empty, or was never made: the keeper ends, if it has not. */
void keeper_stop(struct keeper *keeper);

#endif
