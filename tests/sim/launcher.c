/* SPDX-License-Identifier: MIT */
/* launcher.c - what only those in the world do, for the program that begins it */
#include "sim.h"

void sim_takesignals(void)
{
}

void sim_deliver(uint32_t file, uint32_t generation)
{
    (void)file;
    (void)generation;
}

void sim_connected(uint32_t file, uint32_t generation)
{
    (void)file;
    (void)generation;
}

void sim_timerdue(uint32_t file, uint32_t generation)
{
    (void)file;
    (void)generation;
}

void sim_cut(struct file *file)
{
    (void)file;
}

void sim_cutlate(struct file *file, uint64_t late_ns)
{
    (void)file;
    (void)late_ns;
}

void sim_alarmdue(uint32_t proc, uint32_t generation)
{
    (void)proc;
    (void)generation;
}

int64_t sim_servershift_us(void)
{
    return 0;
}
