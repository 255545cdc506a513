/* SPDX-License-Identifier: MIT */
/*
 * observed.c - one thread: a pair of a mutex that nobody observes, and one whose client tells of long waits and holds
 *
 * Both take turns, so that they see the same noise.
 *
 *   observed.us.without   median of a pair with warn_wait=no
 *   observed.us.with      the same with warn_wait, warn_hold and a listener
 *   observed.us.metrics   median of lk_client_metrics() with a hundred objects by name
 */
#include "measure.h"
#include "subject.h"

#include <stdio.h>

enum { OBJECTS = 100, PAGES = 200 };

static int64_t page_ns[PAGES];

static void hear(const lk_event_t *event, void *arg)
{
    (void)event;
    (void)arg;
}

static lk_client_t *open_at(const struct place *place, const char *options)
{
    char url[320];
    snprintf(url, sizeof url, "%s&%s", place->url, options);
    return open_client(url);
}

static void measure_pages(lk_client_t *client)
{
    struct subject subjects[OBJECTS];
    char name[32];
    for (int i = 0; i < OBJECTS; i++) {
        snprintf(name, sizeof name, "object-%d", i);
        subject_init(&subjects[i], &subject_kinds[0], client, name);
    }
    for (int i = 0; i < PAGES; i++) {
        char *text;
        int64_t began = now_ns();
        if (lk_client_metrics(client, OBJECTS, &text) != 0)
            fail("lk_client_metrics");
        page_ns[i] = now_ns() - began;
        lk_free(text);
    }
    tell(median_us(page_ns, PAGES), "observed.us.metrics");
    for (int i = 0; i < OBJECTS; i++)
        subject_destroy(&subjects[i]);
}

int main(int argc, char **argv)
{
    struct place place;
    place_read(&place, argc, argv, "");
    lk_client_t *without = open_at(&place, "warn_wait=no"), *with = open_at(&place, "warn_wait=1s&warn_hold=10s");
    if (lk_client_addlistener(with, hear, NULL, NULL) != 0)
        fail("lk_client_addlistener");
    compare_sides((const struct side[2]){ { without, "one-without", "observed.us.without" },
                                          { with, "one-told-of", "observed.us.with" } },
                  place.ms);
    measure_pages(with);
    return lk_client_close(without) | lk_client_close(with);
}
