/* SPDX-License-Identifier: MIT */
/*
 * faults.c - what is done to the world from outside while there is a storm
 *
 * Faults aim: a process pauses between two of its calls, and a connection breaks as something is sent on it. The first
 * process, which drives, is spared. Each fault has a number, so that a search can leave it out.
 */
#include "diary.h"
#include "sim.h"

#define DRIVER 1

bool sim_fault(const char *what)
{
    uint32_t number = world->fault_count++;
    bool happens = number >= FAULTS_MAX || !world->left_out[number];
    if (world->set.trace)
        diary_write("--- fault %u: %s%s", number, what, happens ? "" : ", left out");
    return happens;
}

uint64_t sim_drawtrouble(enum trouble trouble)
{
    return world->set.every[trouble] > 0 ? 1 + sim_drawabout(FAULTS, world->set.every[trouble]) : NEVER;
}

void sim_storm(bool on)
{
    if (!sim_on())
        return;
    sim_point(on ? "storm" : "calm", 0);
    world->is_storm = on;
    for (enum trouble trouble = 0; trouble < TROUBLES; trouble++)
        world->until[trouble] = sim_drawtrouble(trouble);
}

/* A trouble lasts for twice `longest_ns` at most, because workloads know TROUBLE_MS as its limit. */
static uint64_t at_most(uint64_t ns)
{
    return ns < 2 * world->set.longest_ns ? ns : 2 * world->set.longest_ns;
}

/* From a tenth of a millisecond on, with logarithms that are evenly distributed. */
static uint64_t draw_evenly(void)
{
    uint64_t ns = NS_PER_MS / 10, doublings = 0;
    while (ns << doublings < world->set.longest_ns)
        doublings++;
    ns <<= sim_drawbelow(FAULTS, doublings + 1);
    return at_most(ns + sim_drawbelow(FAULTS, ns));
}

/* Most faults are short. One in eight has any length, because late messages are too rare without. */
static uint64_t draw_length(void)
{
    uint64_t ns = NS_PER_MS / 10;
    if (sim_drawbelow(FAULTS, 8) == 0)
        return draw_evenly();
    while (ns < world->set.longest_ns && sim_drawbelow(FAULTS, 4) != 0)
        ns *= 2;
    return at_most(ns + sim_drawbelow(FAULTS, ns));
}

static bool is_due(enum trouble trouble)
{
    if (--world->until[trouble] != 0)
        return false;
    world->until[trouble] = sim_drawtrouble(trouble);
    return true;
}

void sim_pausehere(void)
{
    if (!is_due(PAUSE))
        return;
    uint64_t length_ns = draw_length();
    if (sim_proc() == DRIVER || !sim_fault("pause"))
        return;
    world->procs[sim_proc()].pauses++;
    sim_event(END_PAUSE, world->now_ns + length_ns, sim_proc(), 0);
}

/* It is silent, or deaf, or both; its connections stay. */
void sim_isolateproc(struct proc *proc, uint64_t length_ns)
{
    uint64_t way = sim_drawbelow(FAULTS, 3);
    if (way != 0)
        proc->in_held_until_ns = world->now_ns + length_ns;
    if (way != 1)
        proc->out_held_until_ns = world->now_ns + length_ns;
}

void sim_trouble(struct file *file)
{
    bool cut = is_due(CUT), hold = is_due(HOLD), alone = is_due(ISOLATE);
    if (!cut && !hold && !alone)
        return;
    struct file *peer = &world->files[file->peer];
    uint64_t length_ns = draw_length();
    uint64_t late_ns = cut && world->set.far && sim_drawbelow(FAULTS, 2) == 0 ? draw_evenly() : 0;
    if (file->is_pair || file->proc == DRIVER || peer->proc == DRIVER)
        return;
    if (hold && sim_fault("hold what is sent"))
        peer->held_until_ns = world->now_ns + length_ns;
    if (alone && sim_fault("isolate"))
        sim_isolateproc(&world->procs[sim_proc()], length_ns);
    if (cut && sim_fault(late_ns != 0 ? "cut, and what was sent arrives late" : "cut"))
        late_ns != 0 ? sim_cutlate(file, late_ns) : sim_cut(file);
}

/* --- clocks of machines ------------------------------------------------------------------------------------------- */

void sim_clocks(int64_t ppb)
{
    world->drift_ppb = ppb;
}

/* A machine's clock follows from the seed and its name, so that a program that starts again finds it as it was. */
void sim_beginmachine(uint64_t name)
{
    struct proc *proc = &world->procs[sim_proc()];
    uint64_t lot = world->set.seed * 0x9e3779b97f4a7c15ULL;
    uint32_t number = 0;
    if (world->drift_ppb == 0)
        return;
    while (number < world->machine_count && world->machines[number] != name)
        number++;
    if (number == MACHINES_MAX)
        sim_fail("more than %d machines", MACHINES_MAX);
    if (number == world->machine_count)
        world->machines[world->machine_count++] = name;
    lot = (lot ^ (number + 1)) * 0xbf58476d1ce4e5b9ULL;
    lot = (lot ^ lot >> 29) * 0x94d049bb133111ebULL;
    lot ^= lot >> 32;
    proc->rate_ppb = (int64_t)(lot % (2 * (uint64_t)world->drift_ppb + 1)) - world->drift_ppb;
    proc->offset_ns = (int64_t)((lot >> 8) % (1000 * NS_PER_S));
}

void sim_machine(uint64_t name)
{
    if (sim_on())
        sim_beginmachine(name);
}
