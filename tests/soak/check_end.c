/* SPDX-License-Identifier: MIT */
/*
 * check_end.c - I14, I15, I18: what is left on the server and in the processes, how these ended, and what
 * their children were told
 */
#include "check.h"

#include <errno.h>

static void check_close(struct report *report, const struct record *opened, const struct record *closed)
{
    if (closed->limit_ms != opened->limit_ms || closed->permits != opened->permits)
        violation(report, I15, closed, opened, "%d threads and %d descriptors, %d and %d before", closed->limit_ms,
                  closed->permits, opened->limit_ms, opened->permits);
    if (closed->code != 0 && closed->code != EIO) /* EIO: something ends with its lease, which I14 sees */
        violation(report, I15, closed, NULL, "the client could not be closed cleanly");
}

static void check_record(struct report *report, const struct record *record, const struct record *opened)
{
    switch (record->op) {
    case OP_CLOSE:
        if (opened != NULL && same_tape(opened, record))
            check_close(report, opened, record);
        break;
    case OP_FORK:
        if (record->return_ns != 0 && record->code != EPERM && record->code != ECANCELED)
            violation(report, I18, record, NULL, "a child could use its parent's hold, or died of it");
        break;
    case OP_LEFT:
        if (record->code == ECANCELED)
            violation(report, I18, record, NULL, "process %d ended with status %d", record->process, record->limit_ms);
        else
            violation(report, I14, record, NULL, "something is left on the server");
        break;
    }
}

void check_end(struct report *report)
{
    const struct history *history = report->history;
    const struct record *opened = NULL;
    for (size_t i = 0; i < history->count; i++) {
        if (history->records[i].op == OP_OPEN)
            opened = &history->records[i];
        check_record(report, &history->records[i], opened);
    }
}
