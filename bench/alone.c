/* SPDX-License-Identifier: MIT */
/* alone.c - so many pairs of a mutex and nothing else, for a tool that counts instructions */
#include "measure.h"
#include "subject.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
    struct place place;
    struct subject mutex;
    lk_client_t *client;
    int at = place_read(&place, argc, argv, "PAIRS");
    if (lk_client_open(&client, place.url) != 0)
        fail(place.url);
    subject_init(&mutex, &subject_kinds[0], client, "alone");
    for (long pairs = at < argc ? strtol(argv[at], NULL, 10) : 1; pairs > 0; pairs--)
        subject_pair(&mutex);
    subject_destroy(&mutex);
    return lk_client_close(client);
}
