/* SPDX-License-Identifier: MIT */
/*
 * secured.c - one thread: a pair of a mutex by TCP, and the same by TLS to the same server
 *
 * Both take turns, so that they see the same noise.
 *
 *   tls.us.plain     median of a pair by TCP
 *   tls.us.secured   the same by TLS
 */
#include "measure.h"
#include "subject.h"

#include <stdio.h>

enum { SAMPLES = 20000, WARM = 100 };

static int64_t plain_ns[SAMPLES], secured_ns[SAMPLES];

static int64_t pair(struct subject *subject)
{
    int64_t began = now_ns();
    subject_pair(subject);
    return now_ns() - began;
}

static void measure(const struct place *place, lk_client_t *plain, lk_client_t *secured)
{
    struct subject one, other;
    int samples = 0;
    subject_init(&one, &subject_kinds[0], plain, "one-plain");
    subject_init(&other, &subject_kinds[0], secured, "one-safe!"); /* as long */
    int64_t end = now_ns() + place->ms * 1000000;
    for (int turn = 0; samples < SAMPLES && (turn <= WARM || now_ns() < end); turn++) {
        plain_ns[samples] = pair(&one);
        secured_ns[samples] = pair(&other);
        samples += turn >= WARM; /* what came before is overwritten */
    }
    tell(median_us(plain_ns, samples), "tls.us.plain");
    tell(median_us(secured_ns, samples), "tls.us.secured");
    subject_destroy(&one);
    subject_destroy(&other);
}

static lk_client_t *open_client(const char *url)
{
    lk_client_t *client;
    if (lk_client_open(&client, url) != 0)
        fail(url);
    return client;
}

int main(int argc, char **argv)
{
    struct place place;
    char plain[64], secured[320];
    int at = place_read(&place, argc, argv, "PORT TLS_PORT CACERT");
    if (argc < at + 3)
        fail("PORT TLS_PORT CACERT");
    snprintf(plain, sizeof plain, "redis://127.0.0.1:%s?connect_timeout=25s", argv[at]);
    snprintf(secured, sizeof secured, "rediss://127.0.0.1:%s?connect_timeout=25s&cacert=%s", argv[at + 1],
             argv[at + 2]);
    lk_client_t *one = open_client(plain), *other = open_client(secured);
    measure(&place, one, other);
    int rc = lk_client_close(one);
    return lk_client_close(other) != 0 || rc != 0;
}
