/* SPDX-License-Identifier: MIT */
/*
 * faults.c - what is done to the world at times that the seed chose, whatever the program does to itself
 */
#include "sim.h"
#include "diary.h"

static const char *const names[FAULT_KINDS] = { "pause", "cut", "hold", "slow" };

/* The lot decides among all that there are when the fault begins. */
static uint32_t some_proc(uint64_t lot)
{
    uint32_t count = 0;
    for (uint32_t i = 1; i <= world->proc_count; i++)
        count += world->procs[i].state == LIVES;
    for (uint32_t i = 1, left = count > 0 ? (uint32_t)(lot % count) : 0; i <= world->proc_count; i++)
        if (world->procs[i].state == LIVES && left-- == 0)
            return i;
    return 0;
}

static bool may_be_cut(const struct file *file)
{
    return file->type == SOCKET && file->state == CONNECTED && file->peer != 0 && !file->is_pair && file->refs > 0;
}

static uint32_t some_connection(uint64_t lot)
{
    uint32_t count = 0;
    for (uint32_t i = 1; i <= world->file_count; i++)
        count += may_be_cut(&world->files[i]);
    for (uint32_t i = 1, left = count > 0 ? (uint32_t)(lot % count) : 0; i <= world->file_count; i++)
        if (may_be_cut(&world->files[i]) && left-- == 0)
            return i;
    return 0;
}

void sim_beginfault(uint32_t number)
{
    struct fault *fault = &world->fault[number];
    fault->target = fault->kind == PAUSE ? some_proc(fault->lot) : some_connection(fault->lot);
    if (fault->target == 0)
        return;
    if (world->set.trace)
        diary_write("--- %s of %u begins, for %.3f ms", names[fault->kind], fault->target, (double)fault->length_ns / 1e6);
    struct file *file = &world->files[fault->target];
    switch ((enum fault_kind)fault->kind) {
    case PAUSE:
        world->procs[fault->target].pauses++;
        sim_event(END_FAULT, world->now_ns + fault->length_ns, number, 0);
        break;
    case CUT:
        sim_cut(file);
        break;
    case HOLD:
        file->held_until_ns = world->now_ns + fault->length_ns;
        break;
    case SLOW:
        file->last_arrival_ns = world->now_ns + fault->length_ns / 16;
        break;
    case FAULT_KINDS:
        break;
    }
}

void sim_endfault(uint32_t number)
{
    const struct fault *fault = &world->fault[number];
    struct proc *proc = &world->procs[fault->target];
    if (proc->pauses > 0)
        proc->pauses--;
    if (world->set.trace)
        diary_write("--- %s of %u ends", names[fault->kind], fault->target);
}
