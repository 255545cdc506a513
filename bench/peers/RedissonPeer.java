// SPDX-License-Identifier: MIT
// RedissonPeer ADDRESS[,ADDRESS...] MILLISECONDS pairs|handoffs NAME[+NAME...] THREADS - Redisson's RLock on a single server,
// its RedLock on several, its multi-lock of several names; see ../peers.py
//
// With its default settings: a lease that its watchdog renews. Ten seconds to warm up, or a tenth of that for a short
// measurement, as the first calls run before the compiler of the JVM has seen them.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.redisson.Redisson;
import org.redisson.RedissonMultiLock;
import org.redisson.RedissonRedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

public class RedissonPeer {
    private static final AtomicLong pairs = new AtomicLong();
    private static volatile boolean over;

    private static void pair(RLock lock) {
        lock.lock();
        lock.unlock();
    }

    private static void work(RLock lock, long warmMs, CountDownLatch warm, CountDownLatch go) {
        for (long end = System.nanoTime() + warmMs * 1000000; System.nanoTime() < end;)
            pair(lock);
        warm.countDown();
        try {
            go.await();
        } catch (InterruptedException e) {
            return;
        }
        while (!over) {
            pair(lock);
            pairs.incrementAndGet();
        }
    }

    private static RedissonClient connect(String address) {
        Config config = new Config();
        config.useSingleServer().setAddress("redis://" + address);
        return Redisson.create(config);
    }

    private static RLock lock(List<RedissonClient> clients, String names) {
        List<RLock> locks = new ArrayList<>();
        for (RedissonClient client : clients)
            for (String name : names.split("\\+"))
                locks.add(client.getLock(name));
        if (locks.size() == 1)
            return locks.get(0);
        RLock[] all = locks.toArray(new RLock[0]);
        return clients.size() > 1 ? new RedissonRedLock(all) : new RedissonMultiLock(all);
    }

    public static void main(String[] args) throws Exception {
        long ms = Long.parseLong(args[1]), warmMs = Math.min(10000, 10 * ms);
        int threads = Integer.parseInt(args[4]);
        List<RedissonClient> clients = new ArrayList<>();
        for (String address : args[0].split(","))
            clients.add(connect(address));
        CountDownLatch warm = new CountDownLatch(threads), go = new CountDownLatch(1);
        List<Thread> workers = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            RLock lock = lock(clients, args[2].equals("handoffs") ? args[3] : args[3] + "-" + i);
            workers.add(new Thread(() -> work(lock, warmMs, warm, go)));
        }
        for (Thread worker : workers)
            worker.start();
        warm.await();
        System.out.println("ready");
        new BufferedReader(new InputStreamReader(System.in)).readLine();
        go.countDown();
        Thread.sleep(ms);
        System.out.println(pairs.get());
        over = true;
        for (Thread worker : workers)
            worker.join();
        clients.forEach(RedissonClient::shutdown);
    }
}
