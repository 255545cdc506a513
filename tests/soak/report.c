/* SPDX-License-Identifier: MIT */
/*
 * report.c - runs the checks, and shows a violation with the records around it
 */
#include "check.h"

#include "assert_lk.h"

#include <inttypes.h>
#include <stdarg.h>

#define SHOWN_MAX 8 /* violations with their records */
#define RECORDS_MAX 40

static const char *const names[INVARIANTS] = { "I1",  "I2",  "I3",  "I4",  "I5",  "I6",  "I7",  "I8", "I9",
                                               "I10", "I11", "I12", "I13", "I14", "I15", "I16", "I17", "I18", "I19", "I20" };

const char *invariant_name(enum invariant invariant)
{
    return names[invariant];
}

static int64_t first_ns(const struct history *history)
{
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < history->count; i++)
        if (history->records[i].invoke_ns < first)
            first = history->records[i].invoke_ns;
    return first;
}

static double ms_of(int64_t ns, int64_t zero_ns)
{
    return ns == 0 ? -1 : ns == INT64_MAX ? 0 : (double)(ns - zero_ns) / NS_PER_MS;
}

static void show(const struct report *report, const struct record *record, int64_t zero_ns, char mark)
{
    char name[64];
    object_name(name, sizeof name, record->object, record->instance);
    fprintf(report->out,
            "  %c %10.3f..%10.3f  p%u.%u t%-2u %-6s %-18s %s  limit %d, %u, hold %u, token %" PRIu64 ", valid %.3f\n",
            mark, ms_of(record->invoke_ns, zero_ns), ms_of(record->return_ns, zero_ns), record->process,
            record->incarnation, record->thread, op_name(record->op), name,
            record->return_ns == 0 ? "(never returned)" : code_name(record->code), record->limit_ms, record->permits,
            record->hold, record->token, ms_of(record->valid_ns, zero_ns));
}

/* Records of the same object near that one, and faults over it. */
static void show_around(const struct report *report, const struct record *center, const struct record *other)
{
    const struct history *history = report->history;
    int64_t zero_ns = first_ns(history), window_ns = 20 * NS_PER_MS;
    int64_t from_ns = center->invoke_ns - window_ns;
    int64_t until_ns = (center->return_ns != 0 ? center->return_ns : center->invoke_ns) + window_ns;
    if (other != NULL && other->invoke_ns < center->invoke_ns)
        from_ns = other->invoke_ns - window_ns;
    int shown = 0;
    for (size_t i = 0; i < history->count && shown < RECORDS_MAX; i++) {
        const struct record *record = &history->records[i];
        if (!same_instance(record, center) || record->invoke_ns > until_ns ||
            (record->return_ns != 0 && record->return_ns < from_ns))
            continue;
        show(report, record, zero_ns, record == center || record == other ? '>' : ' ');
        shown++;
    }
    for (size_t i = 0; i < history->fault_count; i++) {
        const struct fault *fault = &history->faults[i];
        char text[96];
        if (fault->begin_ns > until_ns || (fault->end_ns != 0 && fault->end_ns < from_ns - 2000 * NS_PER_MS))
            continue;
        fault_text(text, sizeof text, fault);
        fprintf(report->out, "  ! %10.3f..%10.3f  %s\n", ms_of(fault->begin_ns, zero_ns), ms_of(fault->end_ns, zero_ns),
                text);
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
    if (first != NULL)
        show_around(report, first, second);
}

size_t group_end(const struct history *history, size_t first)
{
    size_t end = first;
    while (end < history->hold_count && same_instance(history->holds[end].take, history->holds[first].take))
        end++;
    return end;
}

int check_all(struct report *report, const struct history *history)
{
    report->history = history;
    report->grants = (int64_t)history->hold_count;
    check_exclusion(report);
    check_totals(report);
    check_tokens(report);
    check_fair(report);
    check_robust(report);
    check_lease(report);
    check_account(report);
    check_latches(report);
    check_calm(report);
    check_rate(report);
    check_time(report);
    check_failures(report);
    check_lost(report);
    check_end(report);
    check_buffer(report);
    check_barrier(report);
    check_once(report);
    return report->total;
}
