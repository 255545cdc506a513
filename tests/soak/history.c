/* SPDX-License-Identifier: MIT */
/*
 * history.c - see history.h
 */
#include "history.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void *grown(void *array, size_t *room, size_t count, size_t size)
{
    if (count < *room)
        return array;
    *room = *room != 0 ? *room * 2 : 1024;
    array = realloc(array, *room * size);
    if (array == NULL)
        abort();
    return array;
}

void history_record(struct history *history, const struct record *record)
{
    history->records = grown(history->records, &history->room, history->count, sizeof *record);
    history->records[history->count++] = *record;
}

void history_fault(struct history *history, const struct fault *fault)
{
    history->faults = grown(history->faults, &history->fault_room, history->fault_count, sizeof *fault);
    history->faults[history->fault_count++] = *fault;
}

void history_free(struct history *history)
{
    free(history->records);
    free(history->faults);
    free(history->holds);
    free(history->losses);
}

static bool read_tape(struct history *history, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    const struct record *records;
    if (fd < 0)
        return false;
    records = mmap(NULL, sizeof *records * TAPE_RECORDS, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (records == MAP_FAILED)
        return false;
    for (size_t i = 0; i < TAPE_RECORDS && records[i].invoke_ns != 0; i++)
        history_record(history, &records[i]);
    munmap((void *)records, sizeof *records * TAPE_RECORDS);
    return true;
}

static bool read_faults(struct history *history, const char *path)
{
    struct fault fault;
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    while (fread(&fault, sizeof fault, 1, file) == 1)
        history_fault(history, &fault);
    return fclose(file) == 0;
}

bool fault_write(const char *dir, const struct fault *fault)
{
    char path[600];
    snprintf(path, sizeof path, "%s/faults", dir);
    FILE *file = fopen(path, "a");
    if (file == NULL)
        return false;
    bool written = fwrite(fault, sizeof *fault, 1, file) == 1;
    return fclose(file) == 0 && written;
}

bool history_read(struct history *history, const char *dir)
{
    char path[600];
    DIR *folder = opendir(dir);
    bool good = folder != NULL;
    for (const struct dirent *entry; good && (entry = readdir(folder)) != NULL;) {
        const char *end = strrchr(entry->d_name, '.');
        snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
        if (strcmp(entry->d_name, "faults") == 0)
            good = read_faults(history, path);
        else if (end != NULL && strcmp(end, ".tape") == 0)
            good = read_tape(history, path);
    }
    if (folder != NULL)
        closedir(folder);
    return good;
}

/* --- holds ------------------------------------------------------------------------------------------ */

static int compare_times(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_object(const void *left, const void *right)
{
    const struct hold *a = left, *b = right;
    if (a->take->object != b->take->object)
        return compare_times(a->take->object, b->take->object);
    if (a->take->instance != b->take->instance)
        return compare_times(a->take->instance, b->take->instance);
    return compare_times(a->from_ns, b->from_ns);
}

/* Its lease may be shorter from then on, and what was known before is no promise any more. */
static void extend(struct hold *hold, const struct record *record)
{
    hold->until_ns = record->valid_ns != 0 && record->return_ns != 0 ? record->valid_ns : record->invoke_ns;
}

/* The validity that this record knew of counts, if it is later than what was known before. */
static void follow(struct hold *hold, const struct record *record)
{
    if (record->op == OP_EXTEND && !hold->lost)
        extend(hold, record);
    if ((record->op == OP_CHECK || record->op == OP_ASK) && record->code == ESTALE &&
        record->invoke_ns < hold->until_ns)
        hold->until_ns = record->invoke_ns;
    if (record->code == ESTALE)
        hold->lost = true;
    if (record->op == OP_CHECK && record->code == 0 && !hold->lost && record->valid_ns > hold->until_ns)
        hold->until_ns = record->valid_ns;
    if (record->op == OP_REPAIR && record->code == 0 && record->return_ns != 0)
        hold->repaired = true;
    if (record->op == OP_EXIT)
        hold->exit = record;
    if (record->op == OP_GIVE || record->op == OP_SLEEP || is_downgraded(record)) {
        hold->give = record;
        if (record->invoke_ns < hold->until_ns)
            hold->until_ns = record->invoke_ns;
    }
}

static struct hold *add_hold(struct history *history, size_t *room, const struct record *take)
{
    history->holds = grown(history->holds, room, history->hold_count, sizeof *history->holds);
    struct hold *hold = &history->holds[history->hold_count++];
    *hold = (struct hold){ .take = take, .from_ns = take->return_ns, .until_ns = take->valid_ns };
    return hold;
}

/* A process that was late, or had to wait for others that work, was disturbed as by a fault. */
static void add_lateness(struct history *history)
{
    for (size_t i = 0; i < history->count; i++) {
        const struct record *record = &history->records[i];
        struct fault late = { .kind = record->op == OP_BUSY ? BUSY_MACHINE : SLOW_MACHINE,
                              .process = record->process,
                              .begin_ns = record->invoke_ns,
                              .end_ns = record->return_ns,
                              .length_ms = (int)((record->return_ns - record->invoke_ns) / NS_PER_MS) };
        if ((record->op == OP_LATE || record->op == OP_BUSY) && record->return_ns != 0)
            history_fault(history, &late);
    }
}

static struct loss *add_loss(struct history *history, size_t *room, int64_t begin_ns, int64_t end_ns, uint32_t object)
{
    history->losses = grown(history->losses, room, history->loss_count, sizeof *history->losses);
    history->losses[history->loss_count] = (struct loss){ .begin_ns = begin_ns, .end_ns = end_ns, .object = object };
    return &history->losses[history->loss_count++];
}

/* A request without an answer may be carried out until its deadline has passed. */
static void add_losses(struct history *history)
{
    size_t room = 0;
    for (size_t i = 0; i < history->fault_count; i++) {
        const struct fault *fault = &history->faults[i];
        if (fault_loses_data(fault) && fault->begin_ns != 0)
            add_loss(history, &room, fault->begin_ns, fault->end_ns != 0 ? fault->end_ns : INT64_MAX, EVERYTHING)
                ->failover = fault_is_failover(fault);
    }
    for (size_t i = 0; i < history->count; i++) {
        const struct record *record = &history->records[i];
        if (record->op == OP_FORCE && record->return_ns != 0 && record->code == ENOENT)
            continue; /* there was nothing to delete */
        if (record->op == OP_FORCE && record->return_ns != 0 && record->code == 0)
            add_loss(history, &room, record->invoke_ns, record->return_ns, record->object);
        else if (record->op == OP_FORCE)
            add_loss(history, &room, record->invoke_ns,
                     record->invoke_ns + (3 * history->command_ms + history->slack_ms) * NS_PER_MS, record->object);
    }
}

/* A thread that was cancelled as it began to sleep never gave the mutex back: what it had it has. */
static bool is_awake(const struct hold *hold, const struct record *record)
{
    return record->op == OP_SLEEP && record->code == ECANCELED && record->token == hold->take->token;
}

void history_join(struct history *history)
{
    add_lateness(history);
    add_losses(history);
    struct hold *hold = NULL;
    size_t room = 0;
    for (size_t i = 0; i < history->count; i++) {
        const struct record *record = &history->records[i];
        if (is_take(record)) {
            hold = NULL;
            if (!is_granted(record))
                continue;
            hold = add_hold(history, &room, record);
        } else if (hold != NULL && same_tape(hold->take, record) && record->hold == hold->take->hold &&
                   same_instance(hold->take, record) && !is_awake(hold, record)) {
            follow(hold, record);
            if (is_downgraded(record) || is_slept(record))
                hold = add_hold(history, &room, record);
            else if (record->op == OP_SLEEP)
                hold = NULL;
        }
    }
    if (history->hold_count != 0)
        qsort(history->holds, history->hold_count, sizeof *history->holds, by_object);
}

/* --- faults ----------------------------------------------------------------------------------------- */

static bool overlaps(const struct fault *fault, int64_t from_ns, int64_t until_ns)
{
    return fault->begin_ns != 0 && fault->begin_ns < until_ns && (fault->end_ns == 0 || fault->end_ns > from_ns);
}

static bool meets(const struct fault *fault, int process)
{
    return fault->process == EVERYBODY || fault->process == process;
}

bool disturbed(const struct history *history, int process, int64_t from_ns, int64_t until_ns)
{
    for (size_t i = 0; i < history->fault_count; i++)
        if (meets(&history->faults[i], process) && overlaps(&history->faults[i], from_ns, until_ns))
            return true;
    return false;
}

bool anybody_disturbed(const struct history *history, int64_t from_ns, int64_t until_ns)
{
    for (size_t i = 0; i < history->fault_count; i++)
        if (history->faults[i].kind != BUSY_MACHINE && overlaps(&history->faults[i], from_ns, until_ns))
            return true;
    return false;
}

bool machine_slow(const struct history *history, int64_t from_ns, int64_t until_ns)
{
    for (size_t i = 0; i < history->fault_count; i++)
        if (history->faults[i].kind >= SLOW_MACHINE && overlaps(&history->faults[i], from_ns, until_ns))
            return true;
    return false;
}

static bool is_sleep(const struct fault *fault, int process)
{
    return (fault->kind == STOP_PROCESS || fault->kind == SLOW_MACHINE) && meets(fault, process) &&
           fault->begin_ns != 0;
}

/* Until when it sleeps if it does at that moment; else 0, and `*next_ns` is when it does again. */
static int64_t sleep_end(const struct history *history, int process, int64_t at_ns, int64_t *next_ns)
{
    int64_t end_ns = 0;
    *next_ns = INT64_MAX;
    for (size_t i = 0; i < history->fault_count; i++) {
        const struct fault *fault = &history->faults[i];
        if (!is_sleep(fault, process))
            continue;
        if (fault->begin_ns > at_ns && fault->begin_ns < *next_ns)
            *next_ns = fault->begin_ns;
        if (fault->begin_ns <= at_ns && fault->end_ns > at_ns && fault->end_ns > end_ns)
            end_ns = fault->end_ns;
    }
    return end_ns;
}

int64_t asleep_ns(const struct history *history, int process, int64_t from_ns, int64_t until_ns)
{
    int64_t asleep = 0, next_ns;
    while (from_ns < until_ns) {
        int64_t end_ns = sleep_end(history, process, from_ns, &next_ns);
        if (end_ns > until_ns)
            end_ns = until_ns;
        if (end_ns != 0)
            asleep += end_ns - from_ns;
        from_ns = end_ns != 0 ? end_ns : next_ns;
    }
    return asleep;
}

bool lost_within(const struct history *history, uint32_t object, int64_t from_ns, int64_t until_ns)
{
    for (size_t i = 0; i < history->loss_count; i++)
        if (loses(&history->losses[i], object) && history->losses[i].begin_ns < until_ns &&
            history->losses[i].end_ns > from_ns)
            return true;
    return false;
}
