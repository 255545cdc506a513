/* SPDX-License-Identifier: MIT */
/*
 * totals.c - counts what happened, and prints it as tables
 */
#include "round.h"

#include <inttypes.h>

static int slot_of(const struct record *record)
{
    return record->return_ns == 0 || record->code < 0 || record->code >= CODES_MAX ? CODES_MAX - 1 : record->code;
}

void totals_add(struct totals *totals, const struct report *report)
{
    const struct history *history = report->history;
    for (size_t i = 0; i < history->count; i++) {
        const struct record *record = &history->records[i];
        if (record->op == OP_OPEN || record->op >= OP_CLOSE)
            continue;
        totals->operations++;
        totals->codes[kind_of(record->object)][record->op][slot_of(record)]++;
    }
    for (size_t i = 0; i < history->fault_count; i++) {
        totals->faults[history->faults[i].kind]++;
        totals->fault_count += history->faults[i].kind < SLOW_MACHINE;
    }
    for (int i = 0; i < INVARIANTS; i++)
        totals->violations[i] += report->violations[i];
    totals->grants += report->grants;
    totals->tokens += report->tokens;
    totals->pairs += report->pairs;
    totals->accounts += report->accounts;
    totals->latches += report->latches;
    totals->heirs += report->heirs;
    totals->items += report->items;
    totals->sleeps += report->sleeps;
    totals->meetings += report->meetings;
    totals->runs += report->runs;
    for (int i = 0; i < KINDS; i++)
        totals->acquires[i] += report->acquires[i];
    totals->failed += report->failed;
    totals->writes += report->writes;
    totals->overlaps += report->overlaps;
    if (report->longest_ns > totals->longest_ns)
        totals->longest_ns = report->longest_ns;
}

static void print_codes(const char *kind, enum op op, const int64_t *codes)
{
    int64_t all = 0;
    for (int code = 0; code < CODES_MAX; code++)
        all += codes[code];
    if (all == 0)
        return;
    printf("  %-9s %-6s %9" PRId64 " ", kind, op_name(op), all);
    for (int code = 0; code < CODES_MAX; code++)
        if (codes[code] != 0 && (code != 0 || codes[code] != all))
            printf(" %s %" PRId64,
                   code == CODES_MAX - 1 ? "unfinished"
                   : code == 0           ? "ok"
                                         : code_name(code),
                   codes[code]);
    putchar('\n');
}

int64_t totals_acquires(const struct totals *totals)
{
    int64_t least = INT64_MAX;
    for (int kind = 0; kind < KINDS; kind++)
        if (is_lock(object_of((enum kind)kind, 0)) && totals->acquires[kind] < least)
            least = totals->acquires[kind];
    return least;
}

static void print_acquires(const struct totals *totals)
{
    printf("acquires with time and no faults\n ");
    for (int kind = 0; kind < KINDS; kind++)
        if (is_lock(object_of((enum kind)kind, 0)))
            printf(" %s %" PRId64, kind_name((enum kind)kind), totals->acquires[kind]);
    printf("; %" PRId64 " failed\n", totals->failed);
}

void totals_print(const struct totals *totals)
{
    printf("\noperations\n");
    for (int kind = 0; kind < KINDS; kind++)
        for (int op = 1; op < OPS; op++)
            print_codes(kind_name((enum kind)kind), (enum op)op, totals->codes[kind][op]);
    printf("faults\n ");
    for (int kind = 0; kind < FAULT_KINDS; kind++)
        if (totals->faults[kind] != 0)
            printf(" %s %" PRId64, fault_name(kind), totals->faults[kind]);
    printf("\nchecked\n  %" PRId64 " grants, %" PRId64 " tokens, %" PRId64 " pairs in fair queues, %" PRId64
           " semaphores at the end, %" PRId64 " latches, %" PRId64 " heirs of robust mutexes\n",
           totals->grants, totals->tokens, totals->pairs, totals->accounts, totals->latches, totals->heirs);
    printf("  %" PRId64 " items of buffers, %" PRId64 " sleeps beside signals, %" PRId64 " meetings, %" PRId64
           " runs that completed\n",
           totals->items, totals->sleeps, totals->meetings, totals->runs);
    printf("  %" PRId64 " writes with a token, %" PRId64 " overlaps by failovers, the longest of %.1f ms\n",
           totals->writes, totals->overlaps, (double)totals->longest_ns / NS_PER_MS);
    print_acquires(totals);
    printf("%" PRId64 " operations, %" PRId64 " faults\n", totals->operations, totals->fault_count);
    printf("violations");
    int all = 0;
    for (int i = 0; i < INVARIANTS; i++)
        if (totals->violations[i] != 0)
            printf(" %s: %d", invariant_name((enum invariant)i), totals->violations[i]), all += totals->violations[i];
    printf(all == 0 ? ": 0\n" : "\n");
}
