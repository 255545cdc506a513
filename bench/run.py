#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run.py - run the programs of the bench round by round, and show what came out; scripts/bench calls it

In each round every program measures the library and what it is compared with, one right after the other.
"""
import argparse
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # the tree stays as it is
import charts  # noqa: E402
import clusters  # noqa: E402
import figures  # noqa: E402
import peers  # noqa: E402
import quorums  # noqa: E402
import replicas  # noqa: E402
import secure  # noqa: E402

TREE = pathlib.Path(__file__).resolve().parent.parent
RIVALS = ("mixed", "latchkey", "queue", "redisson", "blpop", "fair")
PATIENCE_S = 300  # for one program
ENDS_PERIOD_S = 12.5  # in one part in five of it, asks set the ends of a queue's keys: PERIOD_US of src/acquire/queue.lua


def read_options():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--socket", required=True)
    options.add_argument("--server", required=True, help="process id")
    options.add_argument("--programs", required=True, help="folder with the programs of the bench")
    options.add_argument("--port", default="0", help="of the same server on 127.0.0.1, for peers; 0: none")
    options.add_argument("--placement", default="", help="in words, for the JSON file")
    options.add_argument("--json")
    options.add_argument("--docs", action="store_true")
    options.add_argument("--peers", action="store_true")
    options.add_argument("--growth", action="store_true")
    options.add_argument("--quick", action="store_true")
    options.add_argument("--smoke", action="store_true")
    options.add_argument("--redisson", help="a jar of redisson-all")
    options.add_argument("--redlock", help="a node_modules folder with redlock and ioredis")
    return options.parse_args()


class Bench:
    """One run: where, how long, and the samples so far."""

    def __init__(self, options):
        self.options, self.samples, self.reasons = options, {}, {}
        self.rounds = 1 if options.smoke else 5
        self.ms = 15 if options.smoke else 150 if options.quick else 600
        self.began, self.round = time.monotonic(), 0

    def say(self, text):
        print(f"[{time.monotonic() - self.began:4.0f}s] {text}", flush=True)

    def keep(self, name, value):
        self.samples.setdefault(name, []).append(value)

    def run(self, program, *args, prefix="", address=None):
        """One program of C, one round."""
        self.take([f"{self.options.programs}/bench_{program}", address or self.options.socket, self.options.server,
                   str(self.ms), *args], prefix)

    def take(self, command, prefix=""):
        """What a program tells."""
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} failed")
        means = {}
        for line in done.stdout.splitlines():  # what it tells several times counts once
            name, value = line.split()
            means.setdefault(name, []).append(float(value))
        for name, values in means.items():
            self.keep(prefix + name, sum(values) / len(values))

    def run_replicated(self, threads):
        with replicas.pair() as address:
            self.run("threads", f"+{threads}", address=address)

    def run_clustered(self):
        with clusters.beside_one() as servers:
            self.run("clustered", *(str(word) for server in servers for word in server))

    def run_several(self):
        with quorums.masters() as masters:
            self.run("several", *masters)

    def run_fleet(self, clients, nodes):
        for prefix, how in (("", ()), ("tls.", ("tls",))):
            self.take([f"{self.options.programs}/bench_fleet", str(clients), str(nodes), *how], prefix)

    def steps(self):
        """What one round consists of: (words, what to do)."""
        yield "pipelined pairs", lambda: self.run("pipelined")
        yield "one thread", lambda: self.run("pairs")
        yield "what observing costs", lambda: self.run("observed")
        yield "TLS", self.measure_tls
        for threads in (8,) if self.options.smoke else (1, *figures.CROWDS):
            yield f"threads: {threads}", lambda threads=threads: self.run("threads", str(threads))
        threads = 8 if self.options.smoke else figures.REPLICATED
        yield f"threads: {threads}, with a replica", lambda: self.run_replicated(threads)
        yield "a cluster", self.run_clustered
        yield "several locks, several masters", self.run_several
        for count in (2, 8) if self.options.smoke else figures.COUNTS:
            args = [word for rival in RIVALS for word in (rival, str(count))]
            yield f"one lock, {count} processes", lambda count=count, args=args: self.contend(count, args)
        if self.options.growth or self.options.smoke:
            yield from self.growth_steps()
        else:
            self.reasons["growth"] = "only with --growth"
        if self.options.peers:
            yield from peers.steps(self)
        else:
            self.reasons.update(dict.fromkeys(("jvm", "redispy", "node"), "peers only with --peers"))

    def contend(self, count, args):
        """Where commands are counted, each round has its own part of the period in which their number differs."""
        if count == figures.COUNTED and not self.options.smoke:
            part = (self.round - 0.8) / self.rounds * ENDS_PERIOD_S
            time.sleep((part - time.time()) % ENDS_PERIOD_S)
        self.run("handoff", *args)

    def measure_tls(self):
        with secure.Secured(self.options.socket, int(self.options.port)) as secured:
            if secured.reason:
                self.reasons["tls"] = secured.reason
            else:
                self.run("secured", *secured.arguments())

    def growth_steps(self):
        if self.options.smoke:
            yield "growth", lambda: self.run("crowded", "queued", "10", "readers", "10")
            yield "growth", lambda: self.run("growth", "objects", "10")
            yield "orders", lambda: self.run("orders")
            yield "buffer", lambda: self.run("buffer")
            yield "a fleet", lambda: self.run_fleet(1000, 2)
            return
        yield "a fleet", lambda: self.run_fleet(100000, 6)
        yield "orders of a read-write lock", lambda: self.run("orders")
        yield "a bounded buffer", lambda: self.run("buffer")
        for what, numbers in (("queued", figures.OTHERS), ("readers", figures.READERS)):
            args = [word for count in numbers for word in (what, str(count))]
            yield f"growth: {what}", lambda args=args: self.run("crowded", *args)
        for what, numbers in (("objects", figures.OBJECTS), ("renewals", (10000,)), ("far", (20000,)), ("readers", (1000,)),
                              ("permits", (1000,)), ("idle", (10,)), ("broadcast", (1000,)),
                              ("signals", figures.WAITING), ("barrier", figures.WAITING)):
            args = [word for count in numbers for word in (what, str(count))]
            yield f"growth: {what}", lambda args=args: self.run("growth", *args)

    def measure(self):
        steps = list(self.steps())
        for self.round in range(1, self.rounds + 1):
            for words, step in steps:
                self.say(f"round {self.round} of {self.rounds}: {words}")
                step()
        self.count_instructions()

    def count_instructions(self):
        """Those of the difference between a long run and a short one, so that neither start nor end counts."""
        if self.options.smoke or not shutil.which("valgrind"):
            self.reasons["instructions"] = "not in a smoke run" if self.options.smoke else "valgrind is not installed"
            return
        self.say("instructions of a pair")
        counts = {}
        for pairs in (1000, 3000):
            done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
                                   f"{self.options.programs}/bench_alone", self.options.socket, self.options.server,
                                   "0", str(pairs)], stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=True)
            counts[pairs] = int(re.search(r"Collected : (\d+)", done.stderr)[1])
        self.keep("instructions.pair", (counts[3000] - counts[1000]) / 2000)

    def results(self):
        return {figure.key: figure.result(self.samples, self.reasons) for figure in figures.figures()}


def first_line(*command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
        return done.stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return None


def machine():
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return {"processors": os.cpu_count(), "model": model[1] if model else platform.machine(),
            "kernel": platform.release(), "load": os.getloadavg()}


def server_version():
    said = first_line("redis-server", "--version") or ""  # Redis server v=7.0.15 sha=...
    found = re.match(r"(\S+).* v=(\S+)", said)
    return f"{found[1]} {found[2]}" if found else said


def versions():
    header = (TREE / "include/latchkey/version.h").read_text()
    return {"latchkey": ".".join(re.findall(r"#define LK_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header)),
            "commit": first_line("git", "-C", str(TREE), "rev-parse", "--short", "HEAD"),
            "server": server_version(), "compiler": first_line("cc", "--version")}


def write_docs(results, run, samples):
    """Put the table between its two marks in docs/performance.md, and the charts beside the page."""
    page = TREE / "docs/performance.md"
    words = (f"{run['machine']['processors']} × {run['machine']['model']}, {run['versions']['server']}; "
             f"{run['placement']}; load {run['machine']['load'][0]:.1f} at the start.")
    table = "\n".join((words, "", *figures.markdown_table(results)))
    text, count = re.subn(r"(<!-- scripts/bench: table -->\n).*?(<!-- scripts/bench: end -->)",
                          lambda found: found[1] + table + "\n" + found[2], page.read_text(), flags=re.S)
    if count != 1:
        sys.exit(f"{page}: the two marks of the table are gone")
    page.write_text(text)
    return charts.write(samples, TREE / "docs/performance")


def main():
    options = read_options()
    bench = Bench(options)
    run = {"machine": machine(), "versions": versions(), "placement": options.placement, "rounds": bench.rounds,
           "ms": bench.ms, "peers": {}}
    bench.measure()
    results = bench.results()
    print("\n".join(("", *figures.text_table(results))))
    run["peers"] = bench.reasons
    if options.json:
        pathlib.Path(options.json).write_text(
            json.dumps({**run, "figures": results, "samples": bench.samples}, indent=1) + "\n")
    if options.docs:
        why = write_docs(results, run, bench.samples)
        print(why or "docs/performance.md and its charts are written")


if __name__ == "__main__":
    main()
