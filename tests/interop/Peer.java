// SPDX-License-Identifier: MIT
/*
 * Peer.java - a process that runs Redisson and does what the tests say: see tests/support/java.h
 *
 * Input    one line each: WHO VERB ARGUMENTS. WHO is a thread of its own, with its own holds; what it is told while
 *          it waits for a lock comes after that. "- open URL WATCHDOG_MS" is for none of them: connect anew, and have
 *          new threads. "- join URL,URL WATCHDOG_MS USER PASSWORD": likewise, to a cluster. "- quorum URL WATCHDOG_MS":
 *          connect to these servers as well, each by itself.
 * Names    of locks: "orders" is one, "a+b" a multi-lock of two, "orders*" a RedLock at all servers of the quorum.
 * Output   WHO and a word or number, one line for each of the input. An exception is "error", and what it says.
 * End      with its input, at once: what it holds stays held.
 */

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.redisson.Redisson;
import org.redisson.RedissonMultiLock;
import org.redisson.RedissonRedLock;
import org.redisson.api.RBucket;
import org.redisson.api.RLock;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

public class Peer {
    private static RedissonClient redisson;
    private static List<RedissonClient> quorum = List.of();
    private static Map<String, ExecutorService> threads = new HashMap<>();

    public static void main(String[] args) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = input.readLine()) != null;) {
            String[] words = line.split(" ");
            if (words[0].equals("-"))
                say(words[0], begin(words));
            else
                threads.computeIfAbsent(words[0], who -> Executors.newSingleThreadExecutor())
                    .execute(() -> say(words[0], tryTo(words)));
        }
        Runtime.getRuntime().halt(0);
    }

    private static String begin(String[] words) {
        if (words[1].equals("quorum"))
            openQuorum(words);
        else
            open(words[1].equals("join") ? cluster(words) : single(words[2], words));
        return "ok";
    }

    /* The old connections stay until their server ends: whoever still waits there is of no interest any more. */
    private static void close(Stream<RedissonClient> clients) {
        clients.forEach(client -> new Thread(client::shutdown).start());
    }

    private static void open(Config config) {
        close(Stream.ofNullable(redisson));
        redisson = Redisson.create(config);
        threads = new HashMap<>();
    }

    private static void openQuorum(String[] words) {
        close(quorum.stream());
        quorum = Arrays.stream(words[2].replaceAll("redis-quorum://|\\?.*", "").split(","))
            .map(address -> Redisson.create(single("redis://" + address, words))).collect(Collectors.toList());
    }

    private static Config small(String[] words) {
        return new Config().setLockWatchdogTimeout(Long.parseLong(words[3])).setThreads(4).setNettyThreads(4);
    }

    private static Config cluster(String[] words) {
        Config config = small(words);
        config.useClusterServers().addNodeAddress(words[2].split(",")).setUsername(words[4]).setPassword(words[5])
            .setTimeout(30000).setScanInterval(1000).setMasterConnectionPoolSize(8).setMasterConnectionMinimumIdleSize(1)
            .setSubscriptionConnectionPoolSize(4).setSubscriptionConnectionMinimumIdleSize(1);
        return config;
    }

    private static Config single(String address, String[] words) {
        Config config = small(words);
        config.useSingleServer().setAddress(address).setTimeout(30000).setConnectionPoolSize(8).setConnectionMinimumIdleSize(1)
            .setSubscriptionConnectionPoolSize(4).setSubscriptionConnectionMinimumIdleSize(1);
        return config;
    }

    private static synchronized void say(String who, Object words) {
        System.out.println(who + " " + words);
        System.out.flush();
    }

    private static Object tryTo(String[] words) {
        try {
            return carryOut(words[1], words[2], words.length > 3 ? Long.parseLong(words[3]) : 0,
                            words.length > 4 ? Long.parseLong(words[4]) : 0);
        } catch (Exception e) {
            return "error " + e.getClass().getSimpleName() + " " + e.getMessage();
        }
    }

    private static RLock lock(String name) {
        if (name.endsWith("*"))
            return new RedissonRedLock(quorum.stream().map(each -> each.getLock(name.substring(0, name.length() - 1)))
                                           .toArray(RLock[]::new));
        if (name.contains("+"))
            return new RedissonMultiLock(Arrays.stream(name.split("\\+")).map(redisson::getLock).toArray(RLock[]::new));
        return redisson.getLock(name);
    }

    /* A lease of -1 is Redisson's watchdog's; a wait of -1 is none. */
    private static Object carryOut(String verb, String name, long n, long leaseMs) throws Exception {
        switch (verb) {
        case "lock": lock(name).lock(n, TimeUnit.MILLISECONDS); return "ok";
        case "trylock": return lock(name).tryLock(n, leaseMs, TimeUnit.MILLISECONDS);
        case "unlock": lock(name).unlock(); return "ok";
        case "forceunlock": return redisson.getLock(name).forceUnlock();
        case "locked": return redisson.getLock(name).isLocked();
        case "mine": return redisson.getLock(name).isHeldByCurrentThread();
        case "left": return redisson.getLock(name).remainTimeToLive();
        case "token": return redisson.getFencedLock(name).lockAndGetToken();
        case "tryfair": return redisson.getFairLock(name).tryLock();

        case "set": return redisson.getSemaphore(name).trySetPermits((int)n);
        case "acquire": redisson.getSemaphore(name).acquire((int)n); return "ok";
        case "tryacquire": return redisson.getSemaphore(name).tryAcquire((int)n);
        case "release": redisson.getSemaphore(name).release((int)n); return "ok";
        case "permits": return redisson.getSemaphore(name).availablePermits();

        case "setcount": return redisson.getCountDownLatch(name).trySetCount(n);
        case "countdown": redisson.getCountDownLatch(name).countDown(); return "ok";
        case "await": redisson.getCountDownLatch(name).await(); return "ok";
        case "count": return redisson.getCountDownLatch(name).getCount();

        case "lockturns": return turns(lock(name), n, leaseMs);
        case "tokenturns": return tokenTurns(name, n);
        case "semturns": return semaphoreTurns(redisson.getSemaphore(name), n);
        default: return "error no such verb";
        }
    }

    private static RBucket<String> text(String key) {
        return redisson.getBucket(key, StringCodec.INSTANCE);
    }

    /* What turn() of turns_test.c does: count, in a way that loses turns if two are in here. */
    private static boolean turn(long most, long token) {
        String n = text("turns").get();
        long before = n == null ? 0 : Long.parseLong(n);
        if (before == most)
            return false;
        redisson.getList("trace", StringCodec.INSTANCE).add("J " + token);
        text("turns").set(Long.toString(before + 1));
        return true;
    }

    private static String turns(RLock lock, long most, long restMs) throws Exception {
        boolean more = true;
        while (more) {
            lock.lock();
            try {
                more = turn(most, 0);
            } finally {
                lock.unlock();
            }
            Thread.sleep(restMs);
        }
        return "ok";
    }

    private static String tokenTurns(String name, long most) {
        boolean more = true;
        while (more) {
            long token = redisson.getFencedLock(name).lockAndGetToken();
            try {
                more = turn(most, token);
            } finally {
                redisson.getFencedLock(name).unlock();
            }
        }
        return "ok";
    }

    /* Likewise where several may be in; the trace has how many were. */
    private static String semaphoreTurns(RSemaphore semaphore, long most) throws Exception {
        boolean more = true;
        while (more) {
            semaphore.acquire();
            long inside = redisson.getAtomicLong("inside").incrementAndGet();
            more = redisson.getAtomicLong("turns").incrementAndGet() <= most;
            if (more)
                redisson.getList("trace", StringCodec.INSTANCE).add("J " + inside);
            redisson.getAtomicLong("inside").decrementAndGet();
            semaphore.release();
        }
        return "ok";
    }
}
