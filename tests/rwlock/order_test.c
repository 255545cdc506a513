/* SPDX-License-Identifier: MIT */
/*
 * order_test.c - who comes in when there is room: in order of arrival, or whom the attribute prefers
 *
 * labels: threads memory noise
 * simulated: yes
 */
#include "world.h"

enum { VISITORS_MAX = 8 };

/* Who waits asks each six seconds or so: what happens within half of that was told by a message. */
enum { TOLD_MS = 3000 };

static lk_client_t *client, *other;
static lk_rwlock_t *near, *far; /* one name, two clients */

/* Who came in, in order; and how to let each of them out. */
static struct {
    int next, count;        /* atomic builtins */
    int came[VISITORS_MAX]; /* likewise */
    struct gate leave[VISITORS_MAX];
    struct worker workers[VISITORS_MAX];
    bool write[VISITORS_MAX];
} visitors;

static void open_both(struct world *w, int prefer)
{
    lk_rwlockattr_t attr = { .size = sizeof attr, .prefer = prefer };
    client = world_client(w, "lease=20s&poll=6s");
    other = world_client(w, "lease=20s&poll=6s");
    near = world_rwlock(w, client, "config", &attr);
    far = world_rwlock(w, other, "config", &attr);
    __builtin_memset(&visitors, 0, sizeof visitors);
}

static int visit(void *arg)
{
    int me = (int)((struct worker *)arg - visitors.workers);
    lk_rwlock_t *rw =
        me == 1 || me == 5 ? far : near; /* no two readers of a client come in a row: each has its place */
    int rc = visitors.write[me] ? lk_rwlock_wrlock(rw) : lk_rwlock_rdlock(rw);
    if (rc != 0)
        return rc;
    int place = __atomic_fetch_add(&visitors.next, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&visitors.came[place], me, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&visitors.count, 1, __ATOMIC_SEQ_CST);
    gate_pass(&visitors.leave[me]);
    return lk_rwlock_unlock(rw);
}

static int inside(void)
{
    return __atomic_load_n(&visitors.count, __ATOMIC_SEQ_CST);
}

/* Who was the `place`th to come in. */
static int came(int place)
{
    return __atomic_load_n(&visitors.came[place], __ATOMIC_SEQ_CST);
}

static int64_t listening(struct world *w)
{
    return world_elements(w, "PUBSUB CHANNELS latchkey:client:*");
}

/* Visitor `me` comes and has to wait; with it `waiting` do, whose clients all listen: no message passes them. */
static void queue_up(struct world *w, int me, bool write, int waiting)
{
    visitors.write[me] = write;
    worker_start(&visitors.workers[me], visit, &visitors.workers[me]);
    eventually(world_rwqueued(w, "config") == waiting, 5000);
    eventually(listening(w) >= (waiting == 1 ? 1 : 2), 5000);
}

static void let_out(int me)
{
    gate_open(&visitors.leave[me]);
    assert_int_equal(0, worker_join(&visitors.workers[me]));
}

/* "r r w r w r" behind a writer, as the threads and processes came. */
static void queue_the_six(struct world *w)
{
    assert_lk(0, lk_rwlock_wrlock(near));
    queue_up(w, 0, false, 1);
    queue_up(w, 1, false, 2);
    queue_up(w, 2, true, 3);
    queue_up(w, 3, false, 4);
    queue_up(w, 4, true, 5);
    queue_up(w, 5, false, 6);
    assert_lk(0, lk_rwlock_unlock(near));
}

/* A release lets in all readers up to the next writer, the last of them that writer, and so on. */
static void in_order_of_arrival(struct world *w)
{
    open_both(w, LK_RWLOCK_PREFER_FAIR);
    queue_the_six(w);
    eventually(inside() == 2, TOLD_MS);
    assert_int_equal(0 + 1, came(0) + came(1));
    assert_lk(EBUSY, lk_rwlock_tryrdlock(near)); /* behind the writer that waits */
    assert_lk(ETIMEDOUT, lk_rwlock_rdlockfor(near, 50));
    let_out(1);
    sleep_ms(20);
    assert_int_equal(2, inside());
    let_out(0);
    for (int i = 2; i < 6; i++) {
        eventually(inside() == i + 1, TOLD_MS);
        assert_int_equal(i, came(i));
        let_out(i);
    }
}

/* Readers that wait come in together, past writers that came before them. */
static void readers_first(struct world *w)
{
    open_both(w, LK_RWLOCK_PREFER_READER);
    queue_the_six(w);
    eventually(inside() == 4, TOLD_MS);
    for (int i = 0; i < 4; i++)
        assert_true(!visitors.write[came(i)]);
    assert_lk(0, lk_rwlock_tryrdlock(near)); /* newcomers, too */
    assert_lk(0, lk_rwlock_unlock(near));
    let_out(0);
    let_out(1);
    let_out(3);
    assert_int_equal(4, inside());
    let_out(5);
    eventually(inside() == 5, TOLD_MS);
    assert_int_equal(2, came(4));
    let_out(2);
    eventually(inside() == 6, TOLD_MS);
    let_out(4);
}

/* Writers that wait go first, one by one; then all readers. */
static void writers_first(struct world *w)
{
    open_both(w, LK_RWLOCK_PREFER_WRITER);
    queue_the_six(w);
    eventually(inside() == 1, TOLD_MS);
    assert_int_equal(2, came(0));
    assert_lk(EBUSY, lk_rwlock_tryrdlock(near));
    let_out(2);
    eventually(inside() == 2, TOLD_MS);
    assert_int_equal(4, came(1));
    let_out(4);
    eventually(inside() == 6, TOLD_MS);
    for (int i = 0; i < 6; i++)
        if (i != 2 && i != 4)
            let_out(i);
}

/* A writer that gives up stands in nobody's way any more. */
WORK(write_for_a_while, rw, lk_rwlock_wrlockfor(rw, 1000))

static void who_gives_up_lets_the_others_pass(struct world *w)
{
    struct worker writer;
    open_both(w, LK_RWLOCK_PREFER_FAIR);
    assert_lk(0, lk_rwlock_rdlock(near));
    worker_start(&writer, write_for_a_while, far);
    eventually(world_rwqueued(w, "config") == 1, 5000);
    queue_up(w, 0, false, 2);
    int64_t began_ms = now_ms();
    assert_lk(ETIMEDOUT, worker_join(&writer));
    eventually(inside() == 1, TOLD_MS);
    assert_between(now_ms() - began_ms, 0, 1000 + SLACK_MS);
    let_out(0);
    assert_lk(0, lk_rwlock_unlock(near));
}

/*
 * A script must not run for long, so a large crowd comes in by portions, in order: who comes next is told to
 * ask, and brings the next portion. Some who do not listen stay where they are. The crowd is made by hand.
 */
static void a_crowd_comes_in_by_portions(struct world *w)
{
    enum { DEAF = 10, CROWD = 90, PORTION = 48 };
    const char *message, *last = "";
    int count = 0;
    open_both(w, LK_RWLOCK_PREFER_FAIR);
    assert_lk(0, lk_rwlock_wrlock(near));
    world_redis(w, "EVAL %s 2 latchkey:queue:readers:{config} latchkey:alive:rw:{config} %d %d",
                "local t = redis.call('TIME') local us = t[1] * 1000000 + t[2] "
                "for i = 1, ARGV[1] + ARGV[2] do "
                "local id = string.rep(i % 5 == 1 and i <= 46 and 'e' or 'f', 32) .. ':1:' .. i .. ':r' "
                "redis.call('ZADD', KEYS[1], string.format('%.0f', us + i), id) "
                "redis.call('HSET', KEYS[2], string.sub(id, 1, 32), string.format('%.0f 60000 3000 0', us / 1000 + 60000)) end",
                DEAF, CROWD);
    world_subscribe(w, "latchkey:client:ffffffffffffffffffffffffffffffff");
    assert_lk(0, lk_rwlock_unlock(near));
    assert_int_equal(PORTION, world_int(w, "ZCARD latchkey:rw:{config}"));
    assert_int_equal(CROWD - PORTION, world_rwqueued(w, "config")); /* who does not listen lost its place */
    for (; count < PORTION + 1 && (message = world_message(w, 5000)) != NULL; count++)
        last = message;
    assert_null(world_message(w, 200));
    assert_int_equal(PORTION + 1, count);
    assert_string_equal("F ffffffffffffffffffffffffffffffff:1:59:r", last);
    assert_lk(0, lk_rwlock_rdlock(far)); /* any ask brings the next portion */
    assert_int_equal(CROWD + 1, world_int(w, "ZCARD latchkey:rw:{config}"));
    assert_int_equal(0, world_rwqueued(w, "config"));
    assert_lk(0, lk_rwlock_unlock(far));
    assert_lk(0, lk_rwlock_forceunlock(near));
    world_redis(w, "DEL latchkey:queue:readers:{config} latchkey:alive:rw:{config}");
}

static const char ask_commands[][12] = { "zrange", "zscore", "hmget", "zadd", "zcard", "publish" };

static int64_t commands_so_far(struct world *w)
{
    int64_t sum = 0;
    for (size_t i = 0; i < sizeof ask_commands / sizeof *ask_commands; i++)
        sum += world_commands(w, ask_commands[i]);
    return sum;
}

/* Waiters made by hand, alive and deaf, who came ten seconds ago: from number `first` on; none: they are gone. */
static void crowd_waits(struct world *w, int first, int count, const char *mode)
{
    world_redis(w, "EVAL %s 2 latchkey:queue:%s:{config} latchkey:alive:rw:{config} %d %d %s",
                "local t = redis.call('TIME') local us = t[1] * 1000000 + t[2] "
                "for i = ARGV[1], ARGV[1] + 2000 do "
                "local id = string.rep('f', 32) .. ':1:' .. i .. ':' .. ARGV[3] "
                "if i < ARGV[1] + ARGV[2] then "
                "redis.call('ZADD', KEYS[1], string.format('%.0f', us - 10000000 + i), id) "
                "redis.call('HSET', KEYS[2], string.rep('f', 32), string.format('%.0f 60000 3000 0', us / 1000 + 60000)) "
                "elseif tonumber(ARGV[2]) == 0 then redis.call('ZREM', KEYS[1], id) "
                "end end",
                mode[0] == 'r' ? "readers" : "writers", first, count, mode);
}

/* What the server does for one who is preferred and one who is not, while `near` is held for reading. */
static int64_t cost_of_asks(struct world *w)
{
    int64_t before = commands_so_far(w);
    int rc = lk_rwlock_rdlockfor(far, 20);
    assert_true(rc == 0 || rc == ETIMEDOUT);
    if (rc == 0)
        assert_lk(0, lk_rwlock_unlock(far));
    assert_lk(ETIMEDOUT, lk_rwlock_wrlockfor(far, 20));
    assert_lk(EBUSY, lk_rwlock_trywrlock(far));
    return commands_so_far(w) - before;
}

static void cost_grows_not(struct world *w, int prefer, const char *mode)
{
    open_both(w, prefer);
    assert_lk(0, lk_rwlock_rdlock(near));
    if (mode[0] == 'r')
        queue_up(w, 0, true, 1); /* for whom they wait */
    crowd_waits(w, 0, 200, mode);
    int64_t few = cost_of_asks(w);
    crowd_waits(w, 200, 1800, mode);
    assert_between(cost_of_asks(w), 1, 2 * few); /* ten times as many wait */
    crowd_waits(w, 0, 0, mode);
    assert_lk(0, lk_rwlock_unlock(near));
    if (mode[0] == 'r')
        let_out(0);
    world_close(w, client);
    world_close(w, other);
}

/* Who is preferred is not looked for among all who are not, however many these are. */
static void a_crowd_that_waits_costs_nobody_anything(struct world *w)
{
    cost_grows_not(w, LK_RWLOCK_PREFER_READER, "w");
    cost_grows_not(w, LK_RWLOCK_PREFER_FAIR, "w");
    cost_grows_not(w, LK_RWLOCK_PREFER_WRITER, "r");
}

struct traffic {
    struct gate stop;
    int rounds[2]; /* atomic builtins: reads, writes */
    bool write[8];
};

static struct traffic traffic;

static int come_and_go(int index, void *arg)
{
    lk_rwlock_t *rw = index % 2 == 0 ? near : far;
    bool write = traffic.write[index];
    (void)arg;
    while (!gate_is_open(&traffic.stop)) {
        int rc = write ? lk_rwlock_wrlock(rw) : lk_rwlock_rdlock(rw);
        if (rc != 0)
            return rc;
        sleep_ms(2);
        rc = lk_rwlock_unlock(rw);
        if (rc != 0)
            return rc;
        __atomic_add_fetch(&traffic.rounds[write], 1, __ATOMIC_SEQ_CST);
    }
    return 0;
}

WORK(crowd, arg, run_threads(8, come_and_go, arg))

/* Seven that come again and again, and always overlap, against one: it gets in all the time. */
static void neither_side_starves(struct world *w)
{
    struct worker all;
    open_both(w, LK_RWLOCK_PREFER_FAIR);
    for (int lonely = 0; lonely < 2; lonely++) {
        traffic = (struct traffic){ 0 };
        for (int i = 0; i < 8; i++)
            traffic.write[i] = (i == 0) == lonely;
        worker_start(&all, crowd, NULL);
        for (int i = 0; i < 10; i++) {
            int before = __atomic_load_n(&traffic.rounds[lonely], __ATOMIC_SEQ_CST);
            eventually(__atomic_load_n(&traffic.rounds[lonely], __ATOMIC_SEQ_CST) > before, 3000);
        }
        eventually(__atomic_load_n(&traffic.rounds[!lonely], __ATOMIC_SEQ_CST) > 10, 10000);
        gate_open(&traffic.stop);
        assert_int_equal(0, worker_join(&all));
    }
}

int main(void)
{
    return world_run(in_order_of_arrival, readers_first, writers_first, who_gives_up_lets_the_others_pass,
                     a_crowd_comes_in_by_portions, a_crowd_that_waits_costs_nobody_anything, neither_side_starves);
}
