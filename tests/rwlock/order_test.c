/* SPDX-License-Identifier: MIT */
/*
 * order_test.c - who comes in when there is room: in order of arrival, whom the attribute prefers, or in phase-fair order,
 * in which all readers that wait, and one writer, take turns
 *
 * labels: threads memory noise
 * simulated: yes
 */
#include "proxy.h"

enum { VISITORS = 10, CLIENTS = 4 };

/* Who listens asks each six seconds or so: what happens within half of that was told by a message. */
enum { TOLD_MS = 3000 };

/* Each visitor has a client of its own, so no reader shares a place. The main thread's is `main_lock`. */
static struct {
    int next;           /* atomic builtins */
    int came[VISITORS]; /* likewise: the order in which they came in */
    struct gate leave[VISITORS];
    struct worker workers[VISITORS];
    lk_rwlock_t *locks[VISITORS];
    bool write[VISITORS];
} visitors;

static lk_client_t *client;
static lk_rwlock_t *main_lock;

static void open_by(struct world *w, int prefer, const char *options, int robust, int count)
{
    const lk_rwlockattr_t attr = { .size = sizeof attr, .prefer = prefer, .robust = robust };
    __builtin_memset(&visitors, 0, sizeof visitors);
    client = world_client(w, options);
    main_lock = world_rwlock(w, client, "config", &attr);
    for (int i = 0; i < count; i++)
        visitors.locks[i] = world_rwlock(w, world_client(w, options), "config", &attr);
    if (robust != 0)
        world_allow(w, "latchkey:robust:*");
}

static void open_with(struct world *w, int robust, int count)
{
    open_by(w, LK_RWLOCK_PREFER_PHASE_FAIR, "lease=20s&poll=2s", robust, count);
}

static void open_listening(struct world *w, int robust, int count)
{
    open_by(w, LK_RWLOCK_PREFER_PHASE_FAIR, "lease=20s&poll=6s", robust, count);
}

static void open_preferring(struct world *w, int prefer, int count)
{
    open_by(w, prefer, "lease=20s&poll=6s", 0, count);
}

static int visit(void *arg)
{
    int me = (int)((struct worker *)arg - visitors.workers);
    lk_rwlock_t *rw = visitors.locks[me];
    int rc = visitors.write[me] ? lk_rwlock_wrlock(rw) : lk_rwlock_rdlock(rw);
    if (rc != 0)
        return rc;
    int place = __atomic_fetch_add(&visitors.next, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&visitors.came[place], me + 1, __ATOMIC_SEQ_CST);
    gate_pass(&visitors.leave[me]);
    return lk_rwlock_unlock(rw);
}

/* Who was the `place`th to come in. */
static int came(int place)
{
    return __atomic_load_n(&visitors.came[place], __ATOMIC_SEQ_CST) - 1;
}

static bool is_in(int me)
{
    for (int i = 0; i < VISITORS; i++)
        if (came(i) == me)
            return true;
    return false;
}

static int entered(void)
{
    return __atomic_load_n(&visitors.next, __ATOMIC_SEQ_CST);
}

static int64_t listening(struct world *w)
{
    return world_elements(w, "PUBSUB CHANNELS latchkey:client:*");
}

/* Visitor `me` comes, and waits as the `waiting`th; then its client listens as well. */
static void comes(struct world *w, int me, bool write, int waiting)
{
    int64_t before = listening(w);
    visitors.write[me] = write;
    worker_start(&visitors.workers[me], visit, &visitors.workers[me]);
    eventually(world_rwqueued(w, "config") == waiting, 5000);
    eventually(listening(w) > before, 5000);
}

static void reads(struct world *w, int me, int waiting)
{
    comes(w, me, false, waiting);
}

static void writes(struct world *w, int me, int waiting)
{
    comes(w, me, true, waiting);
}

static void goes(int me)
{
    gate_open(&visitors.leave[me]);
    assert_int_equal(0, worker_join(&visitors.workers[me]));
}

/* "r r w r w r" behind a writer, as the threads and processes came. */
static void queue_the_six(struct world *w)
{
    assert_lk(0, lk_rwlock_wrlock(main_lock));
    comes(w, 0, false, 1);
    comes(w, 1, false, 2);
    comes(w, 2, true, 3);
    comes(w, 3, false, 4);
    comes(w, 4, true, 5);
    comes(w, 5, false, 6);
    assert_lk(0, lk_rwlock_unlock(main_lock));
}

/* A release lets in all readers up to the next writer, the last of them that writer, and so on. */
static void in_order_of_arrival(struct world *w)
{
    open_preferring(w, LK_RWLOCK_PREFER_FAIR, 6);
    queue_the_six(w);
    eventually(entered() == 2, TOLD_MS);
    assert_int_equal(0 + 1, came(0) + came(1));
    assert_lk(EBUSY, lk_rwlock_tryrdlock(main_lock)); /* behind the writer that waits */
    assert_lk(ETIMEDOUT, lk_rwlock_rdlockfor(main_lock, 50));
    goes(1);
    sleep_ms(20);
    assert_int_equal(2, entered());
    goes(0);
    for (int i = 2; i < 6; i++) {
        eventually(entered() == i + 1, TOLD_MS);
        assert_int_equal(i, came(i));
        goes(i);
    }
}

/* Readers that wait come in together, past writers that came before them. */
static void readers_first(struct world *w)
{
    open_preferring(w, LK_RWLOCK_PREFER_READER, 6);
    queue_the_six(w);
    eventually(entered() == 4, TOLD_MS);
    for (int i = 0; i < 4; i++)
        assert_true(!visitors.write[came(i)]);
    assert_lk(0, lk_rwlock_tryrdlock(main_lock)); /* newcomers, too */
    assert_lk(0, lk_rwlock_unlock(main_lock));
    goes(0);
    goes(1);
    goes(3);
    assert_int_equal(4, entered());
    goes(5);
    eventually(entered() == 5, TOLD_MS);
    assert_int_equal(2, came(4));
    goes(2);
    eventually(entered() == 6, TOLD_MS);
    goes(4);
}

/* Writers that wait go first, one by one; then all readers. */
static void writers_first(struct world *w)
{
    open_preferring(w, LK_RWLOCK_PREFER_WRITER, 6);
    queue_the_six(w);
    eventually(entered() == 1, TOLD_MS);
    assert_int_equal(2, came(0));
    assert_lk(EBUSY, lk_rwlock_tryrdlock(main_lock));
    goes(2);
    eventually(entered() == 2, TOLD_MS);
    assert_int_equal(4, came(1));
    goes(4);
    eventually(entered() == 6, TOLD_MS);
    for (int i = 0; i < 6; i++)
        if (i != 2 && i != 4)
            goes(i);
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
    open_preferring(w, LK_RWLOCK_PREFER_FAIR, 2);
    assert_lk(0, lk_rwlock_wrlock(main_lock));
    world_redis(w, "EVAL %s 2 latchkey:queue:readers:{config} latchkey:alive:rw:{config} %d %d",
                "local t = redis.call('TIME') local us = t[1] * 1000000 + t[2] "
                "for i = 1, ARGV[1] + ARGV[2] do "
                "local id = string.rep(i % 5 == 1 and i <= 46 and 'e' or 'f', 32) .. ':1:' .. i .. ':r' "
                "redis.call('ZADD', KEYS[1], string.format('%.0f', us + i), id) "
                "redis.call('HSET', KEYS[2], string.sub(id, 1, 32), string.format('%.0f 60000 3000 0', us / 1000 + 60000)) end",
                DEAF, CROWD);
    world_subscribe(w, "latchkey:client:ffffffffffffffffffffffffffffffff");
    assert_lk(0, lk_rwlock_unlock(main_lock));
    assert_int_equal(PORTION, world_int(w, "ZCARD latchkey:rw:{config}"));
    assert_int_equal(CROWD - PORTION, world_rwqueued(w, "config")); /* who does not listen lost its place */
    for (; count < PORTION + 1 && (message = world_message(w, 5000)) != NULL; count++)
        last = message;
    assert_null(world_message(w, 200));
    assert_int_equal(PORTION + 1, count);
    assert_string_equal("F ffffffffffffffffffffffffffffffff:1:59:r", last);
    assert_lk(0, lk_rwlock_rdlock(visitors.locks[1])); /* any ask brings the next portion */
    assert_int_equal(CROWD + 1, world_int(w, "ZCARD latchkey:rw:{config}"));
    assert_int_equal(0, world_rwqueued(w, "config"));
    assert_lk(0, lk_rwlock_unlock(visitors.locks[1]));
    assert_lk(0, lk_rwlock_forceunlock(main_lock));
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

/* What the server does for one who is preferred and one who is not, while `main_lock` is held for reading. */
static int64_t cost_of_asks(struct world *w)
{
    int64_t before = commands_so_far(w);
    int rc = lk_rwlock_rdlockfor(visitors.locks[1], 20);
    assert_true(rc == 0 || rc == ETIMEDOUT);
    if (rc == 0)
        assert_lk(0, lk_rwlock_unlock(visitors.locks[1]));
    assert_lk(ETIMEDOUT, lk_rwlock_wrlockfor(visitors.locks[1], 20));
    assert_lk(EBUSY, lk_rwlock_trywrlock(visitors.locks[1]));
    return commands_so_far(w) - before;
}

static void cost_grows_not(struct world *w, int prefer, const char *mode)
{
    open_preferring(w, prefer, 2);
    assert_lk(0, lk_rwlock_rdlock(main_lock));
    if (mode[0] == 'r')
        writes(w, 0, 1); /* for whom they wait */
    crowd_waits(w, 0, 200, mode);
    int64_t few = cost_of_asks(w);
    crowd_waits(w, 200, 1800, mode);
    assert_between(cost_of_asks(w), 1, 2 * few); /* ten times as many wait */
    crowd_waits(w, 0, 0, mode);
    assert_lk(0, lk_rwlock_unlock(main_lock));
    if (mode[0] == 'r')
        goes(0);
    world_close(w, NULL);
}

/* Who is preferred is not looked for among all who are not, however many these are. */
static void a_crowd_that_waits_costs_nobody_anything(struct world *w)
{
    cost_grows_not(w, LK_RWLOCK_PREFER_READER, "w");
    cost_grows_not(w, LK_RWLOCK_PREFER_FAIR, "w");
    cost_grows_not(w, LK_RWLOCK_PREFER_WRITER, "r");
}

/* --- turns --------------------------------------------------------------------------------------------------------------- */

/* All that wait to read come in behind the writer, and nobody that comes while they are in; then one writer. */
static void readers_and_writers_take_turns(struct world *w)
{
    open_listening(w, 0, 9);
    assert_lk(0, lk_rwlock_wrlock(main_lock));
    reads(w, 0, 1);
    writes(w, 1, 2);
    reads(w, 2, 3);
    writes(w, 3, 4);
    reads(w, 4, 5);
    assert_lk(0, lk_rwlock_unlock(main_lock));
    eventually(entered() == 3, TOLD_MS);
    assert_true(is_in(0) && is_in(2) && is_in(4));
    reads(w, 5, 3);
    reads(w, 6, 4);
    writes(w, 7, 5);
    assert_lk(EBUSY, lk_rwlock_tryrdlock(main_lock));
    goes(0);
    goes(2);
    assert_int_equal(3, entered());
    goes(4);
    eventually(entered() == 4, TOLD_MS);
    assert_true(is_in(1));
    reads(w, 8, 5);
    goes(1);
    eventually(entered() == 7, TOLD_MS);
    assert_true(is_in(5) && is_in(6) && is_in(8));
    goes(5);
    goes(6);
    goes(8);
    eventually(entered() == 8, TOLD_MS);
    assert_true(is_in(3)); /* in order of arrival among writers */
    goes(3);
    eventually(entered() == 9, TOLD_MS);
    goes(7);
    assert_int_equal(0, world_rwqueued(w, "config"));
}

/* However many writers wait, a reader waits for one of them. */
static void a_reader_waits_for_one_writer(struct world *w)
{
    enum { WRITERS = 8 };
    open_listening(w, 0, WRITERS + 1);
    assert_lk(0, lk_rwlock_rdlock(main_lock));
    for (int i = 0; i < WRITERS; i++)
        writes(w, i, i + 1);
    reads(w, WRITERS, WRITERS + 1);
    assert_lk(0, lk_rwlock_unlock(main_lock));
    eventually(entered() == 1, TOLD_MS);
    assert_true(is_in(0));
    goes(0);
    eventually(entered() == 2, TOLD_MS);
    assert_true(is_in(WRITERS));
    goes(WRITERS);
    for (int i = 1; i < WRITERS; i++) {
        eventually(is_in(i), TOLD_MS);
        goes(i);
    }
}

WORK(write_for_a_while, rw, lk_rwlock_wrlockfor(rw, 1500))

/* A writer that gives up stands in nobody's way any more. */
static void who_gives_up_lets_the_others_pass(struct world *w)
{
    static const int prefer[] = { LK_RWLOCK_PREFER_FAIR, LK_RWLOCK_PREFER_PHASE_FAIR };
    struct worker writer;
    for (int i = 0; i < 2; i++) {
        open_preferring(w, prefer[i], 2);
        assert_lk(0, lk_rwlock_rdlock(main_lock));
        int64_t began_ms = now_ms();
        worker_start(&writer, write_for_a_while, visitors.locks[1]);
        eventually(world_rwqueued(w, "config") == 1, 5000);
        eventually(listening(w) == 1, 5000);
        reads(w, 0, 2);
        assert_lk(ETIMEDOUT, worker_join(&writer));
        eventually(is_in(0), TOLD_MS);
        assert_between(now_ms() - began_ms, 0, 1500 + SLACK_MS);
        goes(0);
        assert_lk(0, lk_rwlock_unlock(main_lock));
        world_close(w, NULL);
    }
}

/* A downgrade begins a turn of the readers: who waits comes in, who comes now waits for the writer. */
static void a_downgrade_begins_a_turn(struct world *w)
{
    for (int robust = 0; robust < 2; robust++) {
        open_listening(w, robust, 4);
        assert_lk(0, lk_rwlock_wrlock(main_lock));
        writes(w, 0, 1);
        reads(w, 1, 2);
        assert_lk(0, lk_rwlock_downgrade(main_lock));
        eventually(is_in(1), TOLD_MS);
        reads(w, 2, 2);
        assert_lk(0, lk_rwlock_unlock(main_lock));
        assert_int_equal(1, entered());
        goes(1);
        eventually(is_in(0), TOLD_MS);
        assert_int_equal(2, entered());
        goes(0);
        eventually(is_in(2), TOLD_MS);
        goes(2);
        world_close(w, NULL);
        world_redis(w, "FLUSHALL");
    }
}

static void assert_queued(struct world *w, int readers, int writers)
{
    assert_int_equal(readers, world_int(w, "ZCARD latchkey:queue:readers:{config}"));
    assert_int_equal(writers, world_int(w, "ZCARD latchkey:queue:writers:{config}"));
}

/* Who waits though nobody does: `count` of them that ask for `mode`, of a client that receives no messages if `quiet`. */
static void made_by_hand(struct world *w, char client_digit, int count, const char *mode, bool quiet)
{
    const char digit[] = { client_digit, '\0' };
    world_redis(
        w, "EVAL %s 2 latchkey:queue:%s:{config} latchkey:alive:rw:{config} %s %d %s %d",
        "local t = redis.call('TIME') local us = t[1] * 1000000 + t[2] "
        "for i = 1, ARGV[2] do local id = string.rep(ARGV[1], 32) .. ':1:' .. i .. ':' .. ARGV[3] "
        "redis.call('ZADD', KEYS[1], string.format('%.0f', us + i), id) "
        "end redis.call('HSET', KEYS[2], string.rep(ARGV[1], 32), string.format('%.0f 60000 %d %d', math.floor(us / 1000) + 60000, "
        "ARGV[4] == '1' and 300 or 3000, ARGV[4]))",
        mode[0] == 'r' ? "readers" : "writers", digit, count, mode, (int)quiet);
}

/* A turn of more readers than one script serves: who comes before all are in belongs to the next one. */
static void a_crowd_comes_in_before_the_writer(struct world *w)
{
    enum { CROWD = 90, PORTION = 48 };
    open_listening(w, 0, 3);
    assert_lk(0, lk_rwlock_wrlock(main_lock));
    made_by_hand(w, 'f', CROWD, "r", false);
    writes(w, 0, CROWD + 1);
    writes(w, 1, CROWD + 2);
    world_subscribe(w, "latchkey:client:ffffffffffffffffffffffffffffffff");
    eventually(world_listening(w, "rw:{config}"), 5000);
    sleep_ms(50); /* what asks the subscriptions of the writers caused are answered */
    assert_lk(0, lk_rwlock_unlock(main_lock));
    assert_int_equal(PORTION, world_rwholds(w, "config"));
    reads(w, 2, 3); /* its ask brings the others in */
    assert_int_equal(CROWD, world_rwholds(w, "config"));
    assert_queued(w, 1, 2);
    assert_int_equal(0, entered());
    assert_lk(0, lk_rwlock_forceunlock(main_lock));
    for (int i = 0; i < 3; i++) {
        static const int order[] = { 0, 2, 1 };
        eventually(is_in(order[i]), TOLD_MS);
        assert_int_equal(i + 1, entered());
        goes(order[i]);
    }
}

/* Readers of one client share a place, in either turn. */
static int read_briefly(int index, void *arg)
{
    (void)index;
    int rc = lk_rwlock_rdlock(arg);
    return rc != 0 ? rc : lk_rwlock_unlock(arg);
}

WORK(many_read, arg, run_threads(12, read_briefly, arg))

static void readers_of_a_client_share_a_place(struct world *w)
{
    struct worker readers;
    for (int write = 0; write < 2; write++) {
        open_with(w, 0, 2);
        assert_lk(0, write ? lk_rwlock_wrlock(main_lock) : lk_rwlock_rdlock(main_lock));
        writes(w, 0, 1);
        int64_t asks = world_commands(w, "evalsha");
        worker_start(&readers, many_read, visitors.locks[1]);
        eventually(world_commands(w, "evalsha") >= asks + 12, 5000);
        eventually(world_rwqueued(w, "config") == 2, 5000);
        assert_queued(w, 1, 1);
        assert_lk(0, lk_rwlock_unlock(main_lock));
        eventually(is_in(0), 5000);
        goes(0);
        assert_int_equal(0, worker_join(&readers));
        world_close(w, NULL);
        world_redis(w, "FLUSHALL");
    }
}

enum traffic {
    USUAL,
    UNEVEN, /* each holds for longer, and for a time of its own: those who hold together never leave together */
    CUT     /* an unlock may not be told what became of it */
};

static struct {
    struct gate stop;
    int rounds[2]; /* atomic builtins: reads, writes */
    lk_rwlock_t *locks[CLIENTS];
    int lonely; /* 1: one of eight writes, 0: one of eight reads */
    enum traffic kind;
} traffic;

static int come_and_go(int index, void *arg)
{
    bool write = (index == 0) == (traffic.lonely == 1);
    lk_rwlock_t *rw = traffic.locks[index % CLIENTS];
    (void)arg;
    while (!gate_is_open(&traffic.stop)) {
        int rc = write ? lk_rwlock_wrlock(rw) : lk_rwlock_rdlock(rw);
        if (rc == 0) {
            sleep_ms(traffic.kind == UNEVEN ? 20 + 3 * index : 2);
            rc = lk_rwlock_unlock(rw);
        }
        if (rc != 0 && !(traffic.kind == CUT && (rc == EIO || rc == ENOTCONN || rc == ESTALE)))
            return rc;
        __atomic_add_fetch(&traffic.rounds[write], 1, __ATOMIC_SEQ_CST);
    }
    return 0;
}

WORK(eight, arg, run_threads(8, come_and_go, arg))

static int rounds(int write)
{
    return __atomic_load_n(&traffic.rounds[write], __ATOMIC_SEQ_CST);
}

static void begin_traffic(struct worker *all, int lonely, enum traffic kind)
{
    __builtin_memset(&traffic, 0, sizeof traffic);
    traffic.lonely = lonely;
    traffic.kind = kind;
    for (int i = 0; i < CLIENTS; i++)
        traffic.locks[i] = visitors.locks[i];
    worker_start(all, eight, NULL);
}

static void end_traffic(struct worker *all)
{
    gate_open(&traffic.stop);
    assert_int_equal(0, worker_join(all));
}

/* Seven that come again and again, and always overlap, against one: it gets in all the time. */
static void neither_side_starves(struct world *w)
{
    struct worker all;
    for (int k = 0; k < 4; k++) {
        int lonely = k % 2;
        if (k < 2)
            open_preferring(w, LK_RWLOCK_PREFER_FAIR, CLIENTS);
        else
            open_with(w, 0, CLIENTS);
        begin_traffic(&all, lonely, USUAL);
        for (int i = 0; i < 10; i++) {
            int before = rounds(lonely);
            eventually(rounds(lonely) > before, 3000);
        }
        eventually(rounds(!lonely) > 10, 10000);
        end_traffic(&all);
        world_close(w, NULL);
        world_redis(w, "FLUSHALL");
    }
}

/* Writers that died, or hear nothing, stand before one that lives: readers do not pass that one for their sake. */
static void writers_that_do_not_answer_starve_no_other(struct world *w)
{
    static const struct {
        int count;
        bool quiet;
    } silent[] = { { 1, false }, { 3, false }, { 3, true }, { 12, true } };
    struct worker all;
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++) {
        open_with(w, 0, CLIENTS);
        made_by_hand(w, 'd', silent[i].count, "w", silent[i].quiet);
        begin_traffic(&all, 1, USUAL);
        for (int k = 0; k < 10; k++) {
            int before = rounds(1);
            eventually(rounds(1) > before, 4000);
        }
        end_traffic(&all);
        world_close(w, NULL);
        world_redis(w, "FLUSHALL");
    }
}

/* Who hears no message has its turns, whether it reads or writes; others come again and again, and always overlap. */
static void who_hears_no_message_gets_in(struct world *w)
{
    const lk_rwlockattr_t attr = { .size = sizeof attr, .prefer = LK_RWLOCK_PREFER_PHASE_FAIR };
    struct worker all;
    for (int lonely = 0; lonely < 2; lonely++) {
        open_with(w, 0, CLIENTS);
        visitors.locks[0] =
            world_rwlock(w, world_client(w, "lease=20s&poll=300ms&pubsub=no"), "config", &attr);
        begin_traffic(&all, lonely, lonely ? UNEVEN : USUAL);
        for (int i = 0; i < (lonely ? 3 : 1); i++) { /* a turn may be missed, then the next one is 20 s away */
            int before = rounds(lonely);
            eventually(rounds(lonely) > before, 45000);
        }
        end_traffic(&all);
        world_close(w, NULL);
        world_redis(w, "FLUSHALL");
    }
}

/* The server forgets the queue: whoever waited comes back, and is served. */
static void a_lost_queue_is_found_again(struct world *w)
{
    open_with(w, 0, 5);
    assert_lk(0, lk_rwlock_rdlock(main_lock));
    for (int i = 0; i < 5; i++)
        comes(w, i, i % 2 == 0, i + 1);
    world_redis(w, "DEL latchkey:queue:readers:{config} latchkey:queue:writers:{config} latchkey:alive:rw:{config}");
    assert_lk(0, lk_rwlock_unlock(main_lock));
    for (int i = 0; i < 5; i++)
        gate_open(&visitors.leave[i]);
    for (int i = 0; i < 5; i++)
        assert_int_equal(0, worker_join(&visitors.workers[i]));
    assert_int_equal(0, world_rwholds(w, "config"));
}

/* Requests and answers are cut off at any moment; nobody is lost, and nobody stays. */
static void cuts_lose_nobody(struct world *w)
{
    const lk_rwlockattr_t attr = { .size = sizeof attr, .prefer = LK_RWLOCK_PREFER_PHASE_FAIR };
    struct proxy *p = proxy_begin(w);
    struct worker all;
    open_with(w, 0, CLIENTS);
    for (int i = 0; i < 2; i++)
        visitors.locks[i] = world_rwlock(w, proxy_client(p, "lease=5s&poll=300ms"), "config", &attr);
    begin_traffic(&all, 0, CUT);
    for (int i = 0; i < 20; i++) {
        proxy_cut(p);
        sleep_ms(30);
    }
    int before[] = { rounds(0), rounds(1) };
    eventually(rounds(0) > before[0] && rounds(1) > before[1], 10000);
    end_traffic(&all);
    eventually(world_rwholds(w, "config") == 0 && world_rwqueued(w, "config") == 0, 10000);
}

int main(void)
{
    return world_run(in_order_of_arrival, readers_first, writers_first, a_crowd_comes_in_by_portions,
                     a_crowd_that_waits_costs_nobody_anything, readers_and_writers_take_turns,
                     a_reader_waits_for_one_writer, who_gives_up_lets_the_others_pass, a_downgrade_begins_a_turn,
                     a_crowd_comes_in_before_the_writer, readers_of_a_client_share_a_place, neither_side_starves,
                     writers_that_do_not_answer_starve_no_other, who_hears_no_message_gets_in,
                     a_lost_queue_is_found_again, cuts_lose_nobody);
}
