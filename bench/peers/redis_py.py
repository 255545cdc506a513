# SPDX-License-Identifier: MIT
"""redis_py.py ADDRESS MILLISECONDS pairs|handoffs NAME THREADS - redis-py's Lock; see ../peers.py

With its default settings: a waiter asks again every 0.1 s.
"""
import sys
import threading
import time

import redis

WARM = 20


def connect(address):
    if address.startswith("/"):
        return redis.Redis(unix_socket_path=address)
    host, port = address.rsplit(":", 1)
    return redis.Redis(host=host, port=int(port))


class Worker(threading.Thread):
    """One thread that takes its lock and gives it back until it is stopped."""

    def __init__(self, lock, start, over):
        super().__init__()
        self.lock, self.go, self.over, self.pairs, self.warm = lock, start, over, 0, threading.Event()

    def pair(self):
        self.lock.acquire()
        self.lock.release()

    def run(self):
        for _ in range(WARM):
            self.pair()
        self.warm.set()
        self.go.wait()
        while not self.over.is_set():
            self.pair()
            self.pairs += 1


def main():
    address, ms, what, name, threads = sys.argv[1:]
    start, over = threading.Event(), threading.Event()
    client = connect(address)
    names = [name if what == "handoffs" else f"{name}-{number}" for number in range(int(threads))]
    workers = [Worker(client.lock(each, timeout=30), start, over) for each in names]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.warm.wait()
    print("ready", flush=True)
    sys.stdin.readline()
    start.set()
    time.sleep(int(ms) / 1000)
    print(sum(worker.pairs for worker in workers), flush=True)
    over.set()
    for worker in workers:
        worker.join()


main()
