/* SPDX-License-Identifier: MIT */
/* library.c - what client/two_libraries loads twice: a library that uses latchkey, as if it were the only one to do so */
#include <latchkey/latchkey.h>

#include <string.h>

int library_begin(void);
int library_use(void);
int library_lose(int (*drop)(const char *name));
int library_heard(void);
int library_lines(void);
int library_end(void);

static lk_mutex_t own = LK_MUTEX_INITIALIZER(LIBRARY);
static lk_client_t *client;
static uint64_t listener, log_handle;
static int heard, lines; /* atomic builtins */

static void hear(const lk_event_t *event, void *arg)
{
    (void)arg;
    if (event->type == LK_EVENT_LOST)
        __atomic_add_fetch(&heard, 1, __ATOMIC_SEQ_CST);
}

static void take_line(void *arg, int level, const char *line)
{
    (void)arg;
    (void)level;
    if (strstr(line, "no mutex was given") != NULL)
        __atomic_add_fetch(&lines, 1, __ATOMIC_SEQ_CST);
}

int library_begin(void)
{
    int rc = lk_addlog(take_line, LK_LOG_DEBUG, NULL, &log_handle);
    if (rc == 0)
        rc = lk_client_default(&client);
    return rc != 0 ? rc : lk_client_addlistener(client, hear, NULL, &listener);
}

/* Each call also fails at something, of which each log is told. */
int library_use(void)
{
    int rc = lk_mutex_lock(&own);
    rc = rc != 0 ? rc : lk_mutex_unlock(&own);
    return rc != 0 ? rc : lk_mutex_unlock(NULL) == EINVAL ? 0 : -1;
}

/* `drop` makes the server forget the hold. */
int library_lose(int (*drop)(const char *name))
{
    int rc = lk_mutex_lock(&own);
    if (rc != 0 || (rc = drop(LIBRARY)) != 0)
        return rc;
    return lk_mutex_check(&own) == ESTALE && lk_mutex_unlock(&own) == ESTALE ? 0 : -1;
}

int library_heard(void)
{
    return __atomic_load_n(&heard, __ATOMIC_SEQ_CST);
}

int library_lines(void)
{
    return __atomic_load_n(&lines, __ATOMIC_SEQ_CST);
}

int library_end(void)
{
    int rc = lk_client_removelistener(client, listener);
    rc = rc != 0 ? rc : lk_mutex_destroy(&own);
    rc = rc != 0 ? rc : lk_client_close(client);
    return rc != 0 ? rc : lk_removelog(log_handle);
}
