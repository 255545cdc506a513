/* SPDX-License-Identifier: MIT */
/*
 * plan.c - which faults happen when, from a seed
 */
#include "nemesis.h"

#include "proxy.h"

#include <stdio.h>

#define FIRST_MS 700
#define LULL_EVERY_MS 18000
#define OVER_MS 2500  /* until servers have got over what befell one of them */
#define LULL_LEASES 7 /* two to recover, three to wait for something, two to look at */

/* How long they last, in hundredths of a lease, at most; and how often they are drawn. */
static const struct menu {
    const char *name;
    int weight;
    int longest;
} menu[FAULT_KINDS] = {
    [KILL_PROCESS] = { "kill-process", 6, 50 },
    [STOP_PROCESS] = { "stop-process", 6, 300 },
    [EXIT_THREAD] = { "exit-thread", 4, 30 },
    [FORK_PROCESS] = { "fork-process", 3, 30 },
    [CANCEL_THREAD] = { "cancel-thread", 4, 10 },
    [CUT] = { "cut", 3, 10 },
    [CUT_AFTER] = { "cut-after", 6, 30 },
    [STALL] = { "stall", 6, 200 },
    [DELAY] = { "delay", 4, 150 },
    [DRIBBLE] = { "dribble", 3, 80 },
    [REFUSE] = { "refuse", 4, 150 },
    [CUT_REQUEST] = { "cut-request", 3, 20 },
    [CUT_REPLY] = { "cut-reply", 4, 20 },
    [LOSE_REPLIES] = { "lose-replies", 5, 100 },
    [HOLD_REQUEST] = { "hold-request", 4, 200 },
    [PARK_REQUEST] = { "park-request", 4, 200 },
    [STOP_SERVER] = { "stop-server", 6, 300 },
    [RESTART] = { "restart", 5, 60 },
    [LOSE_DATA] = { "lose-data", 1, 60 },
    [FLUSH_DATA] = { "flush-data", 1, 0 },
    [KILL_CLIENTS] = { "kill-clients", 3, 10 },
    [KILL_LISTENERS] = { "kill-listeners", 4, 10 },
    [FLUSH_SCRIPTS] = { "flush-scripts", 4, 10 },
    [PAUSE_CLIENTS] = { "pause-clients", 3, 150 },
    [NO_MEMORY] = { "no-memory", 4, 100 },
    [BUSY_SCRIPT] = { "busy-script", 4, 120 },
    [READ_ONLY] = { "read-only", 3, 100 },
    [SMALL_BUFFERS] = { "small-buffers", 3, 60 },
    [FEW_CLIENTS] = { "few-clients", 3, 100 },
    [KILL_MASTER] = { "kill-master", 6, 100 },
    [STOP_MASTER] = { "stop-master", 6, 250 },
    [CUT_MASTER] = { "cut-master", 6, 250 },
    [DEMAND_FAILOVER] = { "demand-failover", 4, 0 },
    [KILL_SENTINEL] = { "kill-sentinel", 4, 100 },
    [KILL_NODE] = { "kill-node", 5, 100 },
    [STOP_NODE] = { "stop-node", 5, 250 },
    [DEMAND_NODE] = { "demand-node", 3, 0 },
    [MOVE_SLOT] = { "move-slot", 12, 60 },
    [CUT_NODES] = { "cut-nodes", 5, 0 },
    [LOST_PATIENCE] = { "lost-patience", 0, 0 },
    [SLOW_MACHINE] = { "slow-machine", 0, 0 },
    [BUSY_MACHINE] = { "busy-machine", 0, 0 },
};

const char *fault_name(int kind)
{
    return kind >= 0 && kind < FAULT_KINDS ? menu[kind].name : "?";
}

void fault_text(char *text, unsigned room, const struct fault *fault)
{
    char process[32] = "";
    if (fault->process != EVERYBODY)
        snprintf(process, sizeof process, " of process %d", fault->process);
    snprintf(text, room, "%s%s %d ms (%d)", fault_name(fault->kind), process, fault->length_ms, fault->number);
}

/* Mostly short, sometimes as long as the menu says. */
static int length_of(uint64_t *luck, int kind, int64_t lease_ms)
{
    int64_t longest_ms = menu[kind].longest * lease_ms / 100, part = draw_below(luck, 1000);
    return longest_ms == 0 ? 0 : (int)(10 + longest_ms * part * part / 1000000);
}

/* Proxies stand before one server; those that replace each other have faults of their own. */
static bool is_at_hand(const struct table *table, int kind)
{
    static const int first[] = { [SINGLE_SERVER] = CUT, [SENTINELS] = KILL_MASTER, [CLUSTER] = KILL_NODE };
    static const int behind[] = { [SINGLE_SERVER] = KILL_MASTER, [SENTINELS] = KILL_NODE, [CLUSTER] = LOST_PATIENCE };
    return kind < CUT || (kind >= first[table->deployment] && kind < behind[table->deployment]);
}

static int weight_of(const struct table *table, int kind)
{
    if (!is_at_hand(table, kind))
        return 0;
    if (kind == CANCEL_THREAD && SANITIZED && !THREAD_SANITIZED)
        return 0; /* AddressSanitizer takes the frames that a cancelled thread left for live ones */
    return menu[kind].weight;
}

static int draw_kind(uint64_t *luck, const struct table *table, int first, int last)
{
    int total = 0, kind;
    for (kind = first; kind <= last; kind++)
        total += weight_of(table, kind);
    int left = (int)draw_below(luck, (unsigned)total);
    for (kind = first; left >= weight_of(table, kind); kind++)
        left -= weight_of(table, kind);
    return kind;
}

static struct fault draw_fault(uint64_t *luck, const struct table *table, int kind)
{
    struct fault fault = { .kind = kind,
                           .process = EVERYBODY,
                           .length_ms = length_of(luck, kind, table->lease_ms),
                           .thread = (int)draw_below(luck, (unsigned)table->threads) };
    int process = (int)draw_below(luck, (unsigned)table->processes);
    bool all = draw_below(luck, 3) == 0;
    unsigned number = draw_below(luck, 4000);
    if (kind < CUT || (kind < STOP_SERVER && !all))
        fault.process = process;
    if (kind == STALL || kind == CUT_AFTER)
        fault.number = (int)(number % 3) + 1; /* which direction */
    if (kind == CUT_AFTER)
        fault.number = (int)(number & ~1u) | (int)(number % 3 != 0); /* bytes; odd: downwards */
    if (kind == DELAY)
        fault.number = (int)(number % (unsigned)(table->lease_ms / 4)) + 1;
    if (kind >= KILL_NODE)
        fault.number = (int)number; /* of which node or slot */
    if (kind >= CUT_REQUEST && kind <= PARK_REQUEST)
        fault.number = (int)(number % 20) + 1; /* which request */
    return fault;
}

int plan_make(struct fault *plan, int room, const struct table *table, int storm_ms)
{
    uint64_t luck = table->seed ^ 0x6e656d65736973;
    int count = 0, at_ms = FIRST_MS, lull_ms = LULL_EVERY_MS;
    while (count + 2 <= room) {
        int made = 1, kind = draw_kind(&luck, table, 0, SLOW_MACHINE - 1), longest_ms;
        plan[count] = draw_fault(&luck, table, kind);
        longest_ms = plan[count].length_ms;
        if (draw_below(&luck, 4) == 0) { /* two at once: never two of the server, which may not be able to answer */
            bool server = kind >= STOP_SERVER;
            int other = server ? draw_kind(&luck, table, 0, STOP_SERVER - 1)
                               : draw_kind(&luck, table, STOP_SERVER, SLOW_MACHINE - 1);
            plan[count + 1] = draw_fault(&luck, table, other);
            if (plan[count + 1].length_ms > longest_ms)
                longest_ms = plan[count + 1].length_ms;
            made = 2;
        }
        if (at_ms > lull_ms) {
            at_ms += LULL_LEASES * (int)table->lease_ms;
            lull_ms = at_ms + LULL_EVERY_MS;
        }
        if (at_ms + longest_ms > storm_ms)
            break;
        for (int i = 0; i < made; i++)
            plan[count++].at_ms = at_ms;
        bool failover = fault_is_failover(&plan[count - 1]) || fault_is_failover(&plan[count - made]);
        at_ms += longest_ms + (failover ? OVER_MS : 100) + (int)draw_below(&luck, 700);
    }
    return count;
}
