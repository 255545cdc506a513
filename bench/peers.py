# SPDX-License-Identifier: MIT
"""peers.py - other libraries' locks, in the same rounds on the same server: redis-py, node-redlock, Redisson

A peer is a program in peers/ that is started as

    PEER ADDRESS MILLISECONDS pairs|handoffs NAME THREADS

It connects, warms up, says `ready`, waits for a line on stdin, works for that time, and prints how many it did. For
`pairs` each thread has a lock of its own; for `handoffs` all want the lock NAME. Where it can do that: a NAME such as
a+b+c is several locks at once, ADDRESSes with commas between them are masters of one lock.
"""
import os
import pathlib
import shutil
import subprocess
import sys

import figures
import quorums

FOLDER = pathlib.Path(__file__).resolve().parent / "peers"


def crowd(command, args, processes, seconds):
    """Start so many processes of a peer, let them go together; returns how many they did per second."""
    started = [subprocess.Popen([*command, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
               for _ in range(processes)]
    try:
        for process in started:
            if process.stdout.readline().strip() != "ready":
                sys.exit(f"{' '.join(command)} did not get ready")
        for process in started:
            process.stdin.write("go\n")
            process.stdin.flush()
        return sum(float(process.stdout.readline()) for process in started) / seconds
    finally:
        for process in started:
            process.stdin.close()
            process.stdout.close()
            process.wait()


def steps(bench):
    """The steps of each peer that is here; of the others, `bench.reasons` says why not."""
    for name, find in (("redispy", find_redispy), ("node", find_node), ("jvm", find_jvm)):
        command, why = find(bench)
        if command is None:
            bench.reasons[name] = why
        elif name == "jvm":
            yield from steps_of_jvm(bench, command)
        else:
            yield from steps_of_scripted(bench, name, command)


def work(bench, command, sample, what, processes, threads, address, name=None):
    """One measurement of a peer, kept as `sample`."""
    ms = max(bench.ms, 500)  # less says little of those who ask again after a pause
    name = name or f"peer-{sample}"
    bench.keep(sample, crowd(command, [address, str(ms), what, name, str(threads)], processes, ms / 1000))


def steps_of_several(bench, peer, command, address):
    """Several locks at once, then one lock on several masters, and the library likewise right beside it."""
    def at_once(count=figures.PEER_MEMBERS):
        names = "+".join(f"peer-{number}" for number in range(count))
        work(bench, command, f"multi.{count}.{peer}", "pairs", 1, 1, address, names)

    def all_of_it():
        with quorums.masters() as masters:
            at_once()
            for count in figures.MASTERS:
                work(bench, command, f"redlock.{count}.{peer}", "pairs", 1, 1, ",".join(masters[:count]))
            bench.run("several", *masters, prefix=f"{peer}.", address=address)
    yield f"{peer}, several locks, several masters", all_of_it


def steps_of_scripted(bench, name, command):
    address = bench.options.socket
    yield f"{name}, one thread", lambda: work(bench, command, f"threads.1.{name}", "pairs", 1, 1, address)
    yield f"{name}, one lock, 8 processes", lambda: work(bench, command, f"handoffs.{name}.8", "handoffs", 8, 1, address)
    if name == "node":
        yield from steps_of_several(bench, name, command, address)


def steps_of_jvm(bench, command):
    """Redisson by TCP, and the library likewise right beside it."""
    address = f"127.0.0.1:{bench.options.port}"
    for threads in (1, 8, 32):
        def pairs(threads=threads):
            work(bench, command, f"threads.{threads}.jvm", "pairs", 1, threads, address)
            bench.run("threads", f"-{threads}", prefix="tcp.", address=address)
        yield f"Redisson, {threads} threads", pairs
    yield from steps_of_several(bench, "jvm", command, address)
    for shape in figures.JVMS:
        def handoffs(shape=shape):
            processes, threads = map(int, shape.split("x"))
            work(bench, command, f"handoffs.jvm.{shape}", "handoffs", processes, threads, address)
            bench.run("handoff", "latchkey", shape, prefix="tcp.", address=address)
        yield f"Redisson, one lock, {shape} JVMs x threads", handoffs


# --- what is here ------------------------------------------------------------------------------------------------


def find_redispy(_):
    """Any Python that has redis-py; Debian's, where another one comes first in $PATH."""
    for python in ("/usr/bin/python3", sys.executable):
        if os.path.exists(python) and subprocess.run([python, "-c", "import redis"], stderr=subprocess.DEVNULL,
                                                     check=False).returncode == 0:
            return [python, str(FOLDER / "redis_py.py")], None
    return None, "redis-py is not installed (Debian: python3-redis)"


def find_node(bench):
    modules = bench.options.redlock
    if not shutil.which("node"):
        return None, "node is not installed"
    if not modules or not os.path.isdir(f"{modules}/redlock"):
        return None, "redlock is not there: --redlock FOLDER"
    return ["env", f"NODE_PATH={modules}", "node", str(FOLDER / "redlock.js")], None


def find_jvm(bench):
    jar = bench.options.redisson
    if not shutil.which("java") or not shutil.which("javac"):
        return None, "java is not installed"
    if not jar or not os.path.exists(jar):
        return None, "Redisson is not there: --redisson JAR"
    if bench.options.port == "0":
        return None, "the server has no port"
    classes = pathlib.Path(bench.options.programs) / "peers"
    classes.mkdir(exist_ok=True)
    built = subprocess.run(["javac", "-cp", jar, "-d", str(classes), str(FOLDER / "RedissonPeer.java")], check=False)
    if built.returncode != 0:
        return None, "the Java program does not compile with this jar"
    return ["java", "-Xms256m", "-Xmx256m", "-XX:+UseSerialGC", "-cp", f"{jar}:{classes}", "RedissonPeer"], None
