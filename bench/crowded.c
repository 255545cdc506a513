/* SPDX-License-Identifier: MIT */
/*
 * crowded.c - what a call costs the server when many others queue for the object, or hold it
 *
 * The others are owners without a thread: the library's own commands, sent again with other numbers. So ten thousand
 * of them need one connection. What is told to them is heard by a second one, or they would be passed over.
 *
 *   queued.<n>     script time, us, of an ask that queues behind n waiters and the release that hands over
 *   readers.<n>    script time, us, of a read lock and its unlock beside n readers
 */
#include "measure.h"
#include "record.h"
#include "server.h"
#include "subject.h"
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AT_ONCE = 64 };

struct crowd {
    const struct place *place;
    const struct record *record;
    struct wire *wire, *asking, *hearing;
    struct wire_out out;
    char name[64];
};

static void begin(struct crowd *crowd, const char *what, int others)
{
    crowd->wire = wire_open(crowd->place->address);
    crowd->asking = wire_open(crowd->place->address);
    crowd->hearing = wire_open(crowd->place->address);
    wire_ask(crowd->hearing, WORDS("PSUBSCRIBE", "latchkey:*"));
    snprintf(crowd->name, sizeof crowd->name, "%s-%d-%lld", what, others, (long long)now_ns());
}

static void end(struct crowd *crowd)
{
    free(crowd->out.bytes);
    crowd->out = (struct wire_out){ 0 };
    wire_close(crowd->wire);
    wire_close(crowd->asking);
    wire_close(crowd->hearing);
}

/* Send what was put together, and read as many answers. */
static void flush(struct crowd *crowd, int answers)
{
    wire_send(crowd->wire, &crowd->out);
    for (int i = 0; i < answers; i++)
        wire_read(crowd->wire);
    crowd->out.length = 0;
}

static void take_all(struct crowd *crowd, int count)
{
    for (int turn = 0, put = 0; turn < count; turn++) {
        record_take(crowd->record, &crowd->out, crowd->name, turn);
        if (++put == AT_ONCE || turn == count - 1) {
            flush(crowd, put);
            put = 0;
        }
    }
}

/* The next waiter asks, and the holder gives it to the one in front. */
static void hand_on(struct crowd *crowd, int others, int64_t turn)
{
    record_take(crowd->record, &crowd->out, crowd->name, others + turn);
    record_give(crowd->record, &crowd->out, crowd->name, turn);
    flush(crowd, 2);
    wire_drain(crowd->hearing);
}

static void read_beside(struct crowd *crowd, int others, int64_t turn)
{
    record_take(crowd->record, &crowd->out, crowd->name, others + turn);
    record_give(crowd->record, &crowd->out, crowd->name, others + turn);
    flush(crowd, 2);
}

static void measure(struct crowd *crowd, const char *what, int others,
                    void (*step)(struct crowd *crowd, int others, int64_t turn))
{
    int64_t turn = 0;
    begin(crowd, what, others);
    take_all(crowd, others);
    struct server_cost before = server_cost(crowd->asking, crowd->place->server);
    int64_t until = now_ns() + crowd->place->ms * 1000000;
    for (; turn == 0 || now_ns() < until; turn++)
        step(crowd, others, turn);
    struct server_cost spent = server_spent(crowd->asking, crowd->place->server, before);
    tell((double)spent.script_us / (double)turn, "%s.%d", what, others);
    end(crowd);
}

struct question {
    const char *name, *kind;
    void (*step)(struct crowd *crowd, int others, int64_t turn);
};

static const struct question questions[] = {
    { "queued", "pair", hand_on },
    { "readers", "rdlock", read_beside },
};

int main(int argc, char **argv)
{
    struct place place;
    lk_client_t *client;
    int at = place_read(&place, argc, argv, "queued|readers OTHERS ...");
    if (lk_client_open(&client, place.url) != 0)
        fail(place.url);
    for (; at + 1 < argc; at += 2) {
        const struct question *question = &questions[strcmp(argv[at], "readers") == 0];
        struct record *record = record_pair(&place, client, subject_kind(question->kind));
        struct crowd crowd = { .place = &place, .record = record };
        measure(&crowd, question->name, (int)strtol(argv[at + 1], NULL, 10), question->step);
        record_free(record);
    }
    return lk_client_close(client);
}
