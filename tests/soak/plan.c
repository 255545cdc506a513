/* SPDX-License-Identifier: MIT */
/*
 * plan.c - which faults happen when, from a seed
 */
#include "driver.h"

#define FIRST_MS 700
#define OVER_MS 2500 /* until servers have got over what befell one of them */
#define LULL_EVERY_MS 18000
#define LULL_LEASES 4 /* in which dead holders have heirs */

#define MENU(name, weight, longest) { #name, weight, longest },
static const struct menu {
    const char *name;
    int weight, longest;
} menu[FAULT_KINDS] = { FAULTS_ALL(MENU) };

const char *fault_name(int kind)
{
    return kind >= 0 && kind < FAULT_KINDS ? menu[kind].name : "?";
}

/* Proxies stand before one server; those that replace each other have faults of their own. */
static int weight_of(const struct table *table, int kind)
{
    static const int first[] = { [SINGLE_SERVER] = CUT, [SENTINELS] = KILL_MASTER, [CLUSTER] = KILL_NODE };
    static const int behind[] = { [SINGLE_SERVER] = KILL_MASTER, [SENTINELS] = KILL_NODE, [CLUSTER] = LOST_PATIENCE };
    if (kind >= CUT && (kind < first[table->deployment] || kind >= behind[table->deployment]))
        return 0;
    if (kind == CANCEL_THREAD && SANITIZED && !THREAD_SANITIZED)
        return 0; /* AddressSanitizer takes the frames that a cancelled thread left for live ones */
    return menu[kind].weight;
}

static int draw_kind(uint64_t *luck, const struct table *table, int first, int behind)
{
    int total = 0, kind;
    for (kind = first; kind < behind; kind++)
        total += weight_of(table, kind);
    int left = (int)draw_below(luck, (unsigned)total);
    for (kind = first; left >= weight_of(table, kind); kind++)
        left -= weight_of(table, kind);
    return kind;
}

/* Mostly short, sometimes as long as the menu says. */
static int length_of(uint64_t *luck, int kind, int64_t lease_ms)
{
    int64_t longest_ms = menu[kind].longest * lease_ms / 100, part = draw_below(luck, 1000);
    return longest_ms == 0 ? 0 : (int)(10 + longest_ms * part * part / 1000000);
}

static struct fault draw_fault(uint64_t *luck, const struct table *table, int kind)
{
    struct fault fault = { .kind = kind,
                           .process = EVERYBODY,
                           .length_ms = length_of(luck, kind, table->lease_ms),
                           .thread = (int)draw_below(luck, (unsigned)table->threads) };
    int process = (int)draw_below(luck, (unsigned)table->processes);
    bool all = draw_below(luck, 3) == 0;
    int number = (int)draw_below(luck, 4000);
    fault.number = number; /* of which node or slot */
    if (kind < CUT || (kind < STOP_SERVER && !all))
        fault.process = process;
    if (kind == STALL)
        fault.number = number % 3 + 1; /* which direction */
    if (kind == CUT_AFTER)
        fault.number = (number & ~1) | (number % 3 != 0); /* bytes; odd: downwards */
    if (kind == DELAY)
        fault.number = number % (int)(table->lease_ms / 4) + 1;
    if (kind >= CUT_REQUEST && kind <= PARK_REQUEST)
        fault.number = number % 20 + 1; /* which request */
    return fault;
}

int plan_make(struct fault *plan, int room, const struct table *table, int storm_ms)
{
    uint64_t luck = table->seed ^ 0x6e656d65736973;
    int count = 0, at_ms = FIRST_MS, lull_ms = LULL_EVERY_MS;
    while (count + 2 <= room) {
        int made = 1, longest_ms;
        struct fault *one = &plan[count], *other = &plan[count + 1];
        *one = draw_fault(&luck, table, draw_kind(&luck, table, 0, SLOW_MACHINE));
        longest_ms = one->length_ms;
        if (draw_below(&luck, 4) == 0) { /* two at once: never two of the server, which may not be able to answer */
            bool server = one->kind >= STOP_SERVER;
            *other = draw_fault(&luck, table, server ? draw_kind(&luck, table, 0, STOP_SERVER)
                                                     : draw_kind(&luck, table, STOP_SERVER, SLOW_MACHINE));
            longest_ms = other->length_ms > longest_ms ? other->length_ms : longest_ms;
            made = 2;
        }
        if (at_ms > lull_ms) {
            at_ms += LULL_LEASES * (int)table->lease_ms;
            lull_ms = at_ms + LULL_EVERY_MS;
        }
        if (at_ms + longest_ms > storm_ms)
            break;
        bool failover = fault_is_failover(one) || (made == 2 && fault_is_failover(other));
        for (int i = 0; i < made; i++)
            plan[count++].at_ms = at_ms;
        at_ms += longest_ms + (failover ? OVER_MS : 100) + (int)draw_below(&luck, 700);
    }
    return count;
}
