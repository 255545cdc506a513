/* SPDX-License-Identifier: MIT */
/*
 * history.c - reads the tapes of a soak, and finds the holds and losses that they tell of: see check.h
 */
#include "check.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BUSY_NS (50 * NS_PER_MS) /* a call has a few such turns and ways, and a command timeout of 200 ms for all */

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
}

static bool read_tape(struct history *history, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const struct record *records = mmap(NULL, sizeof *records * TAPE_RECORDS, PROT_READ, MAP_SHARED, fd, 0);
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

/* --- holds -------------------------------------------------------------------------------------------------------- */

static int order(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_object(const void *left, const void *right)
{
    const struct hold *a = left, *b = right;
    if (a->take->object != b->take->object)
        return order(a->take->object, b->take->object);
    if (a->take->instance != b->take->instance)
        return order(a->take->instance, b->take->instance);
    return order(a->from_ns, b->from_ns);
}

/* The validity that this record knew of counts, if it is later than what was known before. */
static void follow(struct hold *hold, const struct record *record)
{
    bool asks = record->op == OP_CHECK;
    bool ends = record->op == OP_GIVE || record->op == OP_SLEEP;
    if (asks && record->code == 0 && !hold->lost && record->valid_ns > hold->until_ns)
        hold->until_ns = record->valid_ns;
    if (((asks && record->code == ESTALE) || ends) && record->invoke_ns < hold->until_ns)
        hold->until_ns = record->invoke_ns;
    hold->lost |= record->code == ESTALE;
    hold->repaired |= record->op == OP_REPAIR && record->code == 0 && record->return_ns != 0;
    if (record->op == OP_EXIT)
        hold->exit = record;
    if (ends)
        hold->give = record;
}

static struct hold *add_hold(struct history *history, const struct record *take)
{
    history->holds = grown(history->holds, &history->hold_room, history->hold_count, sizeof *history->holds);
    history->holds[history->hold_count] =
        (struct hold){ .take = take, .from_ns = take->return_ns, .until_ns = take->valid_ns };
    return &history->holds[history->hold_count++];
}

/*
 * A process that was late was disturbed as by a fault. So was everybody in the calm where a call that is one round trip
 * took long: a thread that only sleeps gets the processor first, and tells nothing of a machine that is too busy.
 */
static void add_lateness(struct history *history)
{
    for (size_t i = 0; i < history->count; i++) {
        const struct record *record = &history->records[i];
        bool busy = record->op == OP_GIVE && history->calm_ns != 0 && record->invoke_ns >= history->calm_ns &&
                    record->return_ns - record->invoke_ns > BUSY_NS;
        struct fault late = { .kind = SLOW_MACHINE,
                              .process = record->process,
                              .begin_ns = record->invoke_ns,
                              .end_ns = record->return_ns };
        if ((record->op == OP_LATE || busy) && record->return_ns != 0)
            history_fault(history, &late);
    }
}

void history_join(struct history *history)
{
    struct hold *hold = NULL;
    add_lateness(history);
    for (size_t i = 0; i < history->count; i++) {
        const struct record *record = &history->records[i];
        if (is_take(record)) {
            hold = is_granted(record) ? add_hold(history, record) : NULL;
        } else if (hold != NULL && same_hold(hold->take, record)) {
            follow(hold, record);
            if (record->op == OP_SLEEP)
                hold = is_slept(record) ? add_hold(history, record) : NULL;
        }
    }
    if (history->hold_count != 0)
        qsort(history->holds, history->hold_count, sizeof *history->holds, by_object);
}

/* --- what was done to them ---------------------------------------------------------------------------------------- */

static bool overlaps(const struct fault *fault, int64_t from_ns, int64_t until_ns)
{
    return fault->begin_ns != 0 && fault->begin_ns < until_ns && (fault->end_ns == 0 || fault->end_ns > from_ns);
}

bool quiet(const struct history *history, int64_t from_ns, int64_t until_ns)
{
    for (size_t i = 0; i < history->fault_count; i++)
        if (overlaps(&history->faults[i], from_ns, until_ns))
            return false;
    return true;
}

/* A request of an operator that was not answered may be carried out until its deadline has passed. */
static bool forced_within(const struct history *history, const struct record *record, int64_t from_ns, int64_t until_ns)
{
    int64_t done_ns = record->invoke_ns + (3 * history->command_ms + history->slack_ms) * NS_PER_MS;
    if (record->return_ns != 0 && record->code == 0)
        done_ns = record->return_ns;
    return record->invoke_ns < until_ns && done_ns > from_ns;
}

bool lost_within(const struct history *history, uint32_t object, int64_t from_ns, int64_t until_ns)
{
    for (size_t i = 0; i < history->fault_count; i++)
        if (fault_loses_data(&history->faults[i]) && overlaps(&history->faults[i], from_ns, until_ns))
            return true;
    for (size_t i = 0; kind_of(object) == ROBUST && i < history->count; i++)
        if (history->records[i].op == OP_FORCE && history->records[i].object == object &&
            forced_within(history, &history->records[i], from_ns, until_ns))
            return true;
    return false;
}

const struct record *close_of(const struct history *history, const struct record *of)
{
    for (size_t i = 0; i < history->count; i++)
        if (history->records[i].op == OP_CLOSE && same_client(&history->records[i], of))
            return &history->records[i];
    return NULL;
}
