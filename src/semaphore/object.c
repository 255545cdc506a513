/* SPDX-License-Identifier: MIT */
/* object.c - the tables of the two kinds of semaphore, counted and leased, and one public call on them */
#include "semaphore/semaphore.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(lk_sem_t) == 8 * sizeof(void *), "ABI");

enum { VALUE = LK__SPARE_OWN }; /* which spare word of a handle has the value to begin with */

static struct lk__sem *sem_of(struct lk__object *object)
{
    return LK__CONTAINER(object, struct lk__sem, object);
}

static bool init_sem(struct lk__object *object)
{
    struct lk__sem *sem = sem_of(object);
    struct lk__semblock *block = lk__sem_block(sem);
    sem->slots.tag = lk__sem_isleased(sem) ? 'p' : 's';
    if (!lk__sem_isleased(sem))
        return lk__redissonwake_make(&block->redisson, object->client, block->channel, block->beside);
    block->release.flags = lk__sem_flags(sem);
    return true;
}

static void stop_sem(struct lk__object *object)
{
    lk__redissonwake_stop(lk__sem_redisson(sem_of(object)));
    lk__anonymous_leave(object, &sem_of(object)->presence);
}

static void destroy_sem(struct lk__object *object)
{
    struct lk__sem *sem = sem_of(object);
    lk__redissonwake_free(lk__sem_redisson(sem));
    lk__slots_destroy(&sem->slots);
}

LK__ASK_QUEUE(semaphore)

/*
 * "<client id>:<owner>:<acquisition>:<n>", and behind that the explicit id of a permit to be: who knows that may give the
 * permit back, so it is told to nobody.
 */
static void read_waiter(lk_waiter_t *waiter)
{
    char *at = waiter->id;
    waiter->wants = LK_WANTS_PERMITS;
    for (int i = 0; i < 3 && at != NULL; i++) {
        at = strchr(at, ':');
        at = at != NULL ? at + 1 : NULL;
    }
    if (at == NULL)
        return;
    waiter->n = (unsigned)strtoul(at, &at, 10);
    *at = '\0';
}

#define AT(member) offsetof(struct lk__semblock, member)

static const struct lk__keyspec leased_keys[] = {
    { AT(keys.permits), "latchkey:permits", LK__KEY_OURS, false },
    { AT(keys.total), "latchkey:total", LK__KEY_OURS, false },
    { AT(keys.queue), "latchkey:queue:permits", LK__KEY_OURS, false },
    { AT(keys.alive), "latchkey:alive:permits", LK__KEY_OURS, false },
    { AT(keys.once), "latchkey:once", LK__KEY_OURS, false },
    { AT(keys.users), "latchkey:users:permits", LK__KEY_OURS, LK__IF_ANONYMOUS },
};

static struct lk__traits traits(const void *checked)
{
    const lk_semattr_t *attr = checked;
    return (struct lk__traits){ .anonymous = attr->anonymous };
}

/* The two kinds have one settings mark. */
static const char settings_key[] = "latchkey:settings:sem";
static const char *const leased_settings[] = { "leased=yes" }, *const counted_settings[] = { "leased=no" };

static const struct lk__kind leased_kind = {
    .number = LK_KIND_PERMITS,
    .noun = "semaphore",
    .commands = lk__lua_semaphore_commands,
    .long_ids = true,
    .size = sizeof(struct lk__sem),
    .block_size = sizeof(struct lk__semblock),
    .keys = leased_keys,
    .key_count = sizeof leased_keys / sizeof leased_keys[0],
    .attr_size = sizeof(lk_semattr_t),
    .check = lk__semattr_check,
    .check_script = &lk__lua_semaphore_permit_check,
    .ask_queue = ask_queue,
    .read_waiter = read_waiter,
    .keep = &lk__lua_semaphore_permit_keep,
    .end = &lk__lua_semaphore_permit_end,
    .traits = traits,
    .settings_key = settings_key,
    .settings = leased_settings,
    .init = init_sem,
    .stop = stop_sem,
    .destroy = destroy_sem,
};

static const struct lk__keyspec counted_keys[] = {
    { AT(keys.name), NULL, LK__KEY_NAME, false },
    { AT(keys.claims), "latchkey:claims", LK__KEY_OURS, false },
    { AT(keys.queue), "latchkey:queue:sem", LK__KEY_OURS, false },
    { AT(keys.alive), "latchkey:alive:sem", LK__KEY_OURS, false },
    { AT(keys.once), "latchkey:once", LK__KEY_OURS, false },
    { AT(keys.total), "latchkey:total:sem", LK__KEY_OURS, false },
    { AT(keys.users), "latchkey:users:sem", LK__KEY_OURS, LK__IF_ANONYMOUS },
    { AT(channel), "redisson_sc", LK__KEY_REDISSON, false },
    { AT(beside), LK__BESIDE "redisson_sc", LK__KEY_REDISSON, true },
};

static const struct lk__kind *variant(const void *checked);

const struct lk__kind lk__sem_kind = {
    .number = LK_KIND_SEM,
    .noun = "semaphore",
    .commands = lk__lua_semaphore_commands,
    .counted = true,
    .size = sizeof(struct lk__sem),
    .block_size = sizeof(struct lk__semblock),
    .keys = counted_keys,
    .key_count = sizeof counted_keys / sizeof counted_keys[0],
    .attr_size = sizeof(lk_semattr_t),
    .check = lk__semattr_check,
    .keep = &lk__lua_semaphore_keep,
    .end = &lk__lua_semaphore_end,
    .traits = traits,
    .settings_key = settings_key,
    .settings = counted_settings,
    .variant = variant,
    .ask_queue = ask_queue,
    .read_waiter = read_waiter,
    .init = init_sem,
    .stop = stop_sem,
    .destroy = destroy_sem,
};

static const struct lk__kind *variant(const void *checked)
{
    const lk_semattr_t *attr = checked;
    return attr->leased ? &leased_kind : &lk__sem_kind;
}

/* An anonymous one is there before its first request, so none makes it. */
static int use_anonymous(struct lk__semcall *call)
{
    const struct lk__semaphore_begin_args args = { .initial = call->value };
    const struct lk__semaphore_permit_begin_args permit_args = { .initial = call->value };
    const struct lk__object *object = call->op.object;
    const struct lk__command begin = lk__sem_isleased(call->sem)
                                         ? lk__object_command(object, &lk__lua_semaphore_permit_begin, &permit_args)
                                         : lk__object_command(object, &lk__lua_semaphore_begin, &args);
    call->value = 0;
    return lk__anonymous_use(&call->op, &call->sem->presence, &begin);
}

int lk__sem_waited(const struct lk__semcall *call, int code)
{
    if (code != ECANCELED || !call->absent || !call->attr->anonymous)
        return code;
    return lk__anonymous_waited(call->op.object, &call->sem->presence, code);
}

/* `gives`: of a leased one that is over a permit can still be given back. */
static int enter(lk_sem_t *s, int64_t limit_us, bool gives, struct lk__semcall *call)
{
    int rc = lk__op_enterby(&call->op, LK__HANDLE(s), &lk__sem_kind, limit_us);
    if (rc != 0)
        return rc;
    call->sem = sem_of(call->op.object);
    call->what = call->op.object->what;
    call->attr = call->op.attr;
    call->value = (int64_t)s->lk_spare[VALUE];
    call->over = call->absent = false;
    rc = lk__sem_valuecheck(call->attr, s->lk_spare[VALUE]);
    if (rc == 0 && call->attr->anonymous)
        rc = use_anonymous(call);
    call->over = rc == ESTALE;
    if (call->over && gives && call->attr->leased)
        rc = 0;
    return rc == 0 ? 0 : lk__op_leave(&call->op, rc);
}

int lk__sem_enter(lk_sem_t *s, int64_t limit_us, struct lk__semcall *call)
{
    return enter(s, limit_us, false, call);
}

int lk__sem_entergiver(lk_sem_t *s, lk_owner_t *owner, struct lk__semcall *call)
{
    int rc = enter(s, LK__NEVER, true, call);
    if (rc != 0)
        return rc;
    rc = owner != NULL ? lk__op_leasedonly(&call->op) : 0;
    if (rc == 0)
        rc = lk__op_beginhold(&call->op, owner);
    return rc == 0 ? 0 : lk__op_leave(&call->op, rc);
}

int lk__sem_gave(struct lk__semcall *call, int code)
{
    if (call->over && (code == 0 || code == EPERM))
        code = lk__fail(ESTALE, "%s: its lease was lost, and an anonymous semaphore ends with that", call->what);
    return lk__op_leave(&call->op, code);
}

bool lk__sem_isinherited(lk_sem_t *s)
{
    return s != NULL && lk__handle_isinherited(LK__HANDLE(s)) && lk__handle_isreadable(LK__HANDLE(s)) &&
           s->lk_attr != NULL && s->lk_attr->leased;
}

int lk__sem_idempotent(const struct lk__semcall *call, struct lk__idempotent *once, enum lk__verdict *verdict)
{
    once->command.keys = once->undone.keys = &lk__sem_block(call->sem)->keys;
    return lk__idempotent(&call->op, &call->sem->slots, once, verdict);
}

void lk__sem_setvalue(lk_sem_t *s, unsigned value)
{
    s->lk_spare[VALUE] = value;
}

int lk_sem_init(lk_sem_t *s, lk_client_t *client, const char *name, unsigned value, const lk_semattr_t *attr)
{
    lk_semattr_t checked = { 0 };
    if (s == NULL)
        return lk__fail(EINVAL, "lk_sem_init: no semaphore was given");
    struct lk__apistate api = lk__api_enter();
    int rc = lk__semattr_check(&checked, attr);
    if (rc == 0)
        rc = lk__sem_valuecheck(&checked, value);
    if (rc == 0)
        rc = lk__anonymous_init(LK__HANDLE(s), &lk__sem_kind, client, name, attr, checked.anonymous);
    if (rc == 0)
        lk__sem_setvalue(s, value);
    return lk__api_leave(&api, rc);
}

LK__DESTROY_CALL(sem)
LK__HOLDER_CALLS(sem)
LK__EXTEND_CALLS(sem)
