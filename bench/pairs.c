/* SPDX-License-Identifier: MIT */
/*
 * pairs.c - one thread: a take and a give of each primitive, and the same scripts sent raw
 *
 * The library's pair, the raw pair and a PING take turns, so that all see the same noise.
 *
 *   ping.us                 median of a PING
 *   <kind>.us.latchkey      median of a pair
 *   <kind>.us.raw           of the same commands from a blocking connection with nothing on top
 */
#include "measure.h"
#include "record.h"
#include "subject.h"
#include "wire.h"

#include <stdio.h>

enum { SAMPLES = 20000, WARM = 100 };

static int64_t ping_ns[SAMPLES], ours_ns[SAMPLES], raw_ns[SAMPLES];

static int64_t ping(struct wire *wire)
{
    int64_t began = now_ns();
    wire_ask(wire, WORDS("PING"));
    return now_ns() - began;
}

static int64_t ours(struct subject *subject)
{
    int64_t began = now_ns();
    subject_pair(subject);
    return now_ns() - began;
}

static int64_t raw(const struct record *record, struct wire *wire, const char *name, int64_t turn)
{
    int64_t began = now_ns();
    record_run(record, wire, name, turn);
    return now_ns() - began;
}

static void measure(const struct place *place, lk_client_t *client, const struct subject_kind *kind)
{
    struct record *record = record_pair(place, client, kind);
    struct wire *wire = wire_open(place->address);
    struct subject subject;
    char own[32], replayed[32];
    int samples = 0;
    snprintf(own, sizeof own, "%s-own", kind->name);
    snprintf(replayed, sizeof replayed, "%s-raw", kind->name); /* as long as the other */
    subject_init(&subject, kind, client, own);
    int64_t end = now_ns() + place->ms * 1000000;
    for (int64_t turn = 0; samples < SAMPLES && (turn <= WARM || now_ns() < end); turn++) {
        ping_ns[samples] = ping(wire);
        raw_ns[samples] = raw(record, wire, replayed, turn);
        ours_ns[samples] = ours(&subject);
        samples += turn >= WARM; /* what came before is overwritten */
    }
    tell(median_us(ping_ns, samples), "ping.us");
    tell(median_us(ours_ns, samples), "%s.us.latchkey", kind->name);
    tell(median_us(raw_ns, samples), "%s.us.raw", kind->name);
    subject_destroy(&subject);
    wire_close(wire);
    record_free(record);
}

int main(int argc, char **argv)
{
    struct place place;
    lk_client_t *client;
    place_read(&place, argc, argv, "");
    if (lk_client_open(&client, place.url) != 0)
        fail(place.url);
    for (const struct subject_kind *kind = subject_kinds; kind->name != NULL; kind++)
        measure(&place, client, kind);
    return lk_client_close(client);
}
