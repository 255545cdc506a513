/* SPDX-License-Identifier: MIT */
/*
 * report.c - shows a violation with the records around it
 */
#include "check.h"

#include "assert_lk.h"

#include <inttypes.h>
#include <stdarg.h>

#define SHOWN_MAX 8 /* violations with their records */
#define RECORDS_MAX 40

static double ms_of(int64_t ns, int64_t zero_ns)
{
    return ns == 0 ? -1 : ns == INT64_MAX ? 0 : (double)(ns - zero_ns) / NS_PER_MS;
}

static void show(FILE *out, const struct record *record, int64_t zero_ns, char mark)
{
    char name[64];
    object_name(name, sizeof name, record->object, record->instance);
    fprintf(out, "  %c %10.3f..%10.3f  p%u.%u t%-2u %-9s %-18s %s  limit %d, %u, hold %u, token %" PRIu64
            ", valid %.3f\n",
            mark, ms_of(record->invoke_ns, zero_ns), ms_of(record->return_ns, zero_ns), record->process,
            record->incarnation, record->thread, op_name(record->op), name,
            record->return_ns == 0 ? "(never returned)" : code_name(record->code), record->limit_ms, record->permits,
            record->hold, record->token, ms_of(record->valid_ns, zero_ns));
}

/* Records of the same object near that one, and faults over it. */
static void show_around(const struct report *report, const struct record *center, const struct record *other)
{
    const struct history *history = report->history;
    int64_t zero_ns = INT64_MAX, window_ns = 20 * NS_PER_MS;
    int64_t from_ns = (other != NULL && other->invoke_ns < center->invoke_ns ? other : center)->invoke_ns - window_ns;
    int64_t until_ns = (center->return_ns != 0 ? center->return_ns : center->invoke_ns) + window_ns;
    for (size_t i = 0; i < history->count; i++)
        if (history->records[i].invoke_ns < zero_ns)
            zero_ns = history->records[i].invoke_ns;
    for (size_t i = 0, shown = 0; i < history->count && shown < RECORDS_MAX; i++) {
        const struct record *record = &history->records[i];
        if (!same_instance(record, center) || record->invoke_ns > until_ns || end_of(record) < from_ns)
            continue;
        show(report->out, record, zero_ns, record == center || record == other ? '>' : ' ');
        shown++;
    }
    for (size_t i = 0; i < history->fault_count; i++) {
        const struct fault *fault = &history->faults[i];
        if (fault->begin_ns > until_ns || (fault->end_ns != 0 && fault->end_ns < from_ns - 2000 * NS_PER_MS))
            continue;
        fprintf(report->out, "  ! %10.3f..%10.3f  %s of process %d, %d ms (%d)\n", ms_of(fault->begin_ns, zero_ns),
                ms_of(fault->end_ns, zero_ns), fault_name(fault->kind), fault->process, fault->length_ms,
                fault->number);
    }
}

void violation(struct report *report, enum invariant invariant, const struct record *first, const struct record *second,
               const char *format, ...)
{
    va_list args;
    report->violations[invariant]++;
    report->total++;
    if (report->out == NULL || report->total > SHOWN_MAX)
        return;
    fprintf(report->out, "\n%s violated: ", invariant_name(invariant));
    va_start(args, format);
    vfprintf(report->out, format, args);
    va_end(args);
    fputc('\n', report->out);
    show_around(report, first, second);
}
