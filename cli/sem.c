/* SPDX-License-Identifier: MIT */
#include "client.h"
#include "command.h"
#include "found.h"
#include "words.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>

typedef int sem_call(lk_sem_t *sem, struct settings *settings, unsigned n);

static int with_sem(struct settings *s, const char *name, unsigned n, sem_call *call)
{
    lk_sem_t sem;
    lk_client_t *client;
    lk_semattr_t attr = LK_SEMATTR_INIT;
    attr.leased = 1;
    int code = open_client(s, &client);
    if (code != 0)
        return code;
    int rc = lk_sem_init(&sem, client, name, 0, &attr);
    if (rc == 0) {
        rc = call(&sem, s, n);
        lk_sem_destroy(&sem);
    }
    if (rc == ENOENT)
        code = (complain("%s: there is no leased semaphore %s", s->command->name, name), EXIT_NO);
    else if (rc != 0)
        code = complain_of(s->command->name, rc);
    close_client(client);
    int written = flush_output();
    return code != 0 ? code : written;
}

static int look(lk_sem_t *sem, struct settings *s, unsigned n)
{
    lk_seminfo_t info = LK_SEMINFO_INIT;
    (void)n;
    int rc = lk_sem_info(sem, &info);
    if (rc != 0 || !info.exists)
        return rc != 0 ? rc : ENOENT;
    if (s->json) {
        json_t *object = json_pack("{s:o, s:s, s:I, s:I, s:I, s:I}", "name", text_of(sem->lk_name), "kind", "permits",
                                   "available", (json_int_t)info.available, "held", (json_int_t)info.held, "total",
                                   (json_int_t)info.total, "waiters", (json_int_t)info.waiters);
        print_json(s, object);
    } else {
        printf("%lld available, %u held, %u in all, %u waiting\n", (long long)info.available, info.held, info.total,
               info.waiters);
    }
    return 0;
}

static int resize(lk_sem_t *sem, struct settings *s, unsigned n)
{
    lk_seminfo_t info = LK_SEMINFO_INIT;
    (void)s;
    int rc = lk_sem_info(sem, &info);
    if (rc == 0 && !info.exists)
        rc = lk_sem_trysetpermits(sem, n);
    else if (rc == 0)
        rc = EEXIST;
    unsigned total = info.total;
    while (rc == EEXIST && (rc = lk_sem_setpermits(sem, &total, n)) == EEXIST)
        ;
    return rc;
}

int run_sem_status(struct settings *s, int count, char **operands)
{
    (void)count;
    return with_sem(s, operands[0], 0, look);
}

int run_sem_resize(struct settings *s, int count, char **operands)
{
    long n;
    (void)count;
    if (read_number(operands[1], 0, LK_SEM_PERMITS_MAX, &n))
        return with_sem(s, operands[0], (unsigned)n, resize);
    complain("sem resize: '%s' is not a number from 0 to %d", operands[1], LK_SEM_PERMITS_MAX);
    return EXIT_USE;
}
