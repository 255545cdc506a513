# SPDX-License-Identifier: MIT
"""figures.py - the figures of the bench: what each is made of, what it should be, and how it is shown

A sample is what a program measured in one round, by its name: {"pair.us.raw": [70.1, 69.8, ...]}. A figure is computed
for each round from samples of that round alone, for they saw the same noise; its median over the rounds is the result,
or their mean where rounds differ on purpose.
"""
import operator
import statistics

import quorums

COUNTS = (2, 8, 32, 100)  # processes that contend
COUNTED = 8  # of them, whose commands are counted
CROWDS = (8, 32, 128)  # threads of one process
REPLICATED = 32  # threads of one, whose server has a replica
OTHERS = (10, 100, 1000, 10000)  # owners that queue
READERS = (1, 100, 1000, 5000)  # that hold
OBJECTS = (10, 1000, 100000)  # of one client
WAITING = (1, 10, 100)  # for a condition, or that meet at a barrier
ORDERS = (("fair", "in order of arrival"), ("phase_fair", "phase-fair"), ("reader", "readers preferred"),
          ("writer", "writers preferred"))  # of a read-write lock
MEMBERS = (2, 4, 8)  # locks at once
PEER_MEMBERS = 4  # of them, beside others
MASTERS = quorums.NODES  # of one lock
JVMS = ("1x8", "2x8", "4x8")  # JVMs x threads that contend

CONDITIONS = {"<=": operator.le, ">=": operator.ge}


class Figure:
    """One row of the table."""

    def __init__(self, key, text, formula, unit="", must=None, stretch=None, by="median"):
        self.key, self.text, self.formula, self.unit, self.by = key, text, formula, unit, by
        self.must, self.stretch = must, stretch  # "<= 1.3": an operator and a number

    def rounds(self, samples):
        """Its value in each round; none where a sample is missing."""
        return self.formula(samples)

    def result(self, samples, reasons):
        """What the JSON file has of it; `reasons` says of which samples why they are missing: {prefix: reason}."""
        found = {"text": self.text, "unit": self.unit, "by": self.by,
                 "must": self.must, "stretch": self.stretch}
        rounds = self.rounds(samples)
        if not rounds:
            why = [reason for what, reason in reasons.items() if what in self.key]
            return {**found, "rounds": [], "median": None, "mean": None, "met": None, "reason": (why or ["not measured"])[0]}
        averages = {"median": statistics.median(rounds), "mean": statistics.fmean(rounds)}
        return {**found, "rounds": rounds, **averages, "met": meets(averages[self.by], self.must)}


def meets(value, condition):
    if condition is None:
        return None
    sign, limit = condition.split()
    return CONDITIONS[sign](value, float(limit))


def of(name):
    return lambda samples: samples.get(name, [])


def ratio(name, other):
    return lambda samples: [a / b for a, b in zip(samples.get(name, []), samples.get(other, [])) if b]


def figures():
    """All of them, in the order of the table."""
    yield Figure("pair_cpu_vs_redisson", "server CPU of an uncontended pair, pipelined / Redisson's fenced lock",
                 ratio("pipelined.us.pair", "pipelined.us.redisson"), "", "<= 1.30", "<= 1.15")
    yield Figure("pair_cpu_us", "the same", of("pipelined.us.pair"), "us")
    yield from of_one_thread()
    yield from of_threads()
    yield from clustered()
    yield from of_several()
    yield from contended()
    yield from growth()
    yield from fleet()
    yield from beside_others()


def of_one_thread():
    yield Figure("ping_us", "one thread: PING, p50", of("ping.us"), "us")
    yield Figure("pair_us", "one thread: pair of a mutex, p50", of("pair.us.latchkey"), "us")
    yield Figure("pair_vs_raw", "the same / the same two scripts sent raw", ratio("pair.us.latchkey", "pair.us.raw"),
                 "", "<= 1.08", "<= 1.03")
    for kind, text in (("rdlock", "read lock"), ("wrlock", "write lock"), ("fair", "fair mutex"),
                       ("sem", "counting semaphore"), ("permit", "leased semaphore")):
        yield Figure(f"{kind}_vs_raw", f"{text}: pair / raw", ratio(f"{kind}.us.latchkey", f"{kind}.us.raw"),
                     "", "<= 1.10")
    yield Figure("observed_pair_vs_not", "pair of a mutex with warn_wait, warn_hold and a listener / without",
                 ratio("observed.us.with", "observed.us.without"), "", "<= 1.05")
    yield Figure("metrics_us", "lk_client_metrics() with a hundred objects by name, p50", of("observed.us.metrics"), "us")
    yield Figure("tls_pair_us", "pair of a mutex by TLS, p50", of("tls.us.secured"), "us")
    yield Figure("tls_pair_vs_tcp", "the same / by TCP to the same server", ratio("tls.us.secured", "tls.us.plain"),
                 "", "<= 1.5")
    yield Figure("pair_instructions", "client: instructions of a pair, by callgrind", of("instructions.pair"))


def of_threads():
    for threads, must in zip(CROWDS, (">= 1.25", ">= 1.35", ">= 1.5")):
        yield Figure(f"pairs_vs_conns_{threads}", f"pairs/s of {threads} threads / a blocking connection each",
                     ratio(f"threads.{threads}.latchkey", f"threads.{threads}.conns"), "", must,
                     ">= 1.9" if threads == CROWDS[-1] else None)
    yield Figure(f"pairs_acknowledged_{REPLICATED}",
                 f"pairs/s of {REPLICATED} threads with wait_replicas=1 / without, of a server that has a replica",
                 ratio(f"threads.{REPLICATED}.acknowledged", f"threads.{REPLICATED}.replicated"), "", ">= 0.5")


def clustered():
    yield Figure("cluster_pair_cpu_vs_one", "server CPU of a pair of 32 threads, in a cluster / at one server",
                 ratio("cluster.us.1", "cluster.us.one"), "", "<= 1.15")
    yield Figure("cluster_cpu_per_node", "the same, 32 threads for each of three masters / for one of them",
                 ratio("cluster.us.3", "cluster.us.1"), "", "<= 1.15")
    yield Figure("cluster_pairs_vs_one", "pairs/s over three masters / at one server",
                 ratio("cluster.pairs.3", "cluster.pairs.one"))


def of_several():
    for count in MEMBERS:
        yield Figure(f"multi_vs_one_{count}", f"one thread: pair of {count} mutexes at once / of one, p50",
                     ratio(f"multi.us.{count}", "multi.us.1"))
    for count in MASTERS:
        yield Figure(f"redlock_vs_one_{count}", f"one thread: pair of a redlock on {count} masters / of a mutex on one, p50",
                     ratio(f"redlock.us.{count}", "redlock.us.one"), "", "<= 1.6")


def contended():
    for count, must in ((2, "<= 33"), (8, "<= 34"), (100, "<= 45")):
        yield Figure(f"contended_script_us_{count - 1}", f"script time of a contended acquire, {count - 1} waiting",
                     of(f"script.latchkey.{count}"), "us", must, "<= 28")
    yield Figure("contended_inner_commands", "commands inside these scripts, 7 waiting; mean", of("inner.latchkey.8"), "",
                 "<= 17", "<= 15", by="mean")
    for count, must, stretch in ((2, "<= 40", "<= 38"), (8, "<= 42", "<= 38"), (100, "<= 55", "<= 40")):
        yield Figure(f"contended_cpu_us_{count}", f"server CPU of a contended acquire, {count} processes",
                     of(f"cpu.latchkey.{count}"), "us", must, stretch)
    for rival, text, musts, stretch in (
            ("queue", "a bare queue", (0.65, 0.65, 0.6, 0.5), ">= 0.7"),
            ("redisson", "Redisson's protocol in C", (0.95, 1.6, 8, 15), None)):
        for count, must in zip(COUNTS, musts):
            yield Figure(f"handoffs_vs_{rival}_{count}", f"hand-offs/s, {count} processes / {text}",
                         ratio(f"handoffs.latchkey.{count}", f"handoffs.{rival}.{count}"), "", f">= {must}", stretch)
    for count in COUNTS:
        yield Figure(f"handoffs_vs_blpop_{count}", f"hand-offs/s, {count} processes / BLPOP of a token",
                     ratio(f"handoffs.latchkey.{count}", f"handoffs.blpop.{count}"))
    for count in COUNTS:
        yield Figure(f"handoffs_mixed_{count}", f"hand-offs/s, {count} processes with redisson=yes and no Java / without",
                     ratio(f"handoffs.mixed.{count}", f"handoffs.latchkey.{count}"), "", ">= 0.9")
    for count, must, stretch in ((2, "<= 50", "<= 44"), (8, "<= 53", "<= 47"), (100, "<= 70", "<= 52")):
        yield Figure(f"handoff_gap_us_{count}", f"hand-off gap p50, {count} processes",
                     of(f"gap.latchkey.{count}"), "us", must, stretch)
    for count in COUNTS:
        yield Figure(f"commands_per_acquire_{count}", f"commands per contended acquire, {count} processes",
                     of(f"asked.latchkey.{count}"), "", "<= 2.1")
    for count in COUNTS:
        yield Figure(f"fairness_{count}", f"fairness min/max, {count} processes",
                     of(f"fairness.latchkey.{count}"), "", ">= 0.98")


def growth():
    for what, text, numbers in (("queued", "script time of a contended acquire, {} queued", OTHERS),
                                ("readers", "script time of a read lock and its unlock beside {} readers", READERS),
                                ("objects", "one thread: pair of a mutex, p50, {} objects", OBJECTS)):
        for count in numbers:
            yield Figure(f"growth_{what}_us_{count}", text.format(f"{count:,}"), of(f"{what}.{count}"), "us")
        yield Figure(f"growth_{what}", "the last of these / the first",
                     ratio(f"{what}.{numbers[-1]}", f"{what}.{numbers[0]}"), "", "<= 1.5")
    yield Figure("growth_renewal_cpu_us", "server CPU of renewing one of 10,000 holds", of("renewal.cpu.10000"), "us")
    yield Figure("growth_renewal_stall_us", "meanwhile the longest PING of a bystander", of("renewal.stall.10000"), "us",
                 "<= 2000")
    yield Figure("growth_lost_of_20000", "holds lost of 20,000 of 6 s, at a round trip of 100 ms", of("far.lost.20000"),
                 "", "<= 0")
    for what, text in (("reading", "wait to read"), ("permits", "wait for a permit"),
                       ("broadcast", "wait for a condition")):
        yield Figure(f"growth_{what}_cpu_percent", f"server CPU while 1,000 threads of a process {text}",
                     of(f"{what}.cpu.1000"), "%")
        yield Figure(f"growth_{what}_script_us", "longest script while they are let in", of(f"{what}.script.1000"), "us",
                     "<= 2000")
        yield Figure(f"growth_{what}_stall_us", "longest PING of a bystander meanwhile", of(f"{what}.stall.1000"), "us")
    yield Figure("growth_broadcast_commands", "commands of each of these, with those of the broadcast",
                 of("broadcast.asked.1000"), "", "<= 4")
    for what, text in (("signal", "commands of a signal, its unlock and the thread that it wakes, {} waiting"),
                       ("barrier", "commands of each party in a round of a barrier, {} parties")):
        for count in WAITING:
            yield Figure(f"growth_{what}_commands_{count}", text.format(count), of(f"{what}.asked.{count}"))
        yield Figure(f"growth_{what}_commands", "the last of these / the first",
                     ratio(f"{what}.asked.{WAITING[-1]}", f"{what}.asked.{WAITING[0]}"), "", "<= 1.5")
    yield Figure("growth_idle_asks_per_s", "commands per second of a client that waits", of("idle.asks"), "", "<= 0.2")
    yield Figure("growth_idle_connections", "connections of a client while nobody waits", of("idle.connections"), "",
                 "<= 2")
    for order, words in ORDERS:
        text = f"16 readers, 8 writers, holds of 2 ms, {words}: "
        for sample, key, what, unit in (("together", "together", "readers in at once", ""),
                                        ("reads", "reads", "reads/s", ""), ("writes", "writes", "writes/s", ""),
                                        ("wait.read", "reader_wait_ms", "longest wait to read", "ms"),
                                        ("wait.write", "writer_wait_ms", "longest wait to write", "ms")):
            yield Figure(f"growth_order_{key}_{order}", text + what, of(f"{sample}.{order}"), unit)
    yield Figure("growth_items_vs_polling", "items/s through a buffer of ten, 8 processes of 4 threads / with polling",
                 ratio("items.cond", "items.polling"))
    yield Figure("growth_items_late_vs_polling", "the same, signalled after the unlock / with polling",
                 ratio("items.late", "items.polling"))
    yield Figure("growth_items_commands", "signalled before the unlock: commands per item", of("asked.cond"), "", "<= 8")
    yield Figure("growth_items_cpu_vs_polling", "signalled before the unlock: server CPU per item / with polling",
                 ratio("itemcpu.cond", "itemcpu.polling"))


def fleet():
    for prefix, key, text in (("", "", "100,000 clients on 6 masters, simulated: "),
                              ("tls.", "tls_", "the same with TLS: ")):
        for sample, what, unit in (("busy.percent", "a master is busy", "%"),
                                   ("queue.max_ms", "longest wait of a request in its queue", "ms"),
                                   ("herd.max_ms", "the same when a master was replaced", "ms"),
                                   ("herd.all_s", "until all its clients are connected again", "s"),
                                   ("lost", "holds lost by that", "")):
            name = sample.replace(".", "_")
            yield Figure(f"growth_fleet_{key}{name}", text + what, of(f"{prefix}fleet.{sample}"), unit)


def beside_others():
    for threads, must in ((1, ">= 2.5"), (8, ">= 4"), (32, ">= 4")):
        yield Figure(f"pairs_vs_jvm_{threads}", f"pairs/s of {threads} {'thread' if threads == 1 else 'threads'} / Redisson",
                     ratio(f"tcp.threads.{threads}.latchkey", f"threads.{threads}.jvm"), "", must)
    for crowd, must in zip(JVMS, (">= 5", ">= 5", ">= 20")):
        yield Figure(f"handoffs_vs_jvm_{crowd}", f"acquires/s of one lock, {crowd} JVMs x threads / Redisson",
                     ratio(f"tcp.handoffs.latchkey.{crowd}", f"handoffs.jvm.{crowd}"), "", must)
    for peer, text in (("jvm", "Redisson"), ("node", "node-redlock")):
        yield Figure(f"multi_vs_{peer}_{PEER_MEMBERS}", f"pairs/s of {PEER_MEMBERS} locks at once / {text}",
                     ratio(f"{peer}.multi.pairs.{PEER_MEMBERS}", f"multi.{PEER_MEMBERS}.{peer}"))
        for count in MASTERS:
            yield Figure(f"redlock_vs_{peer}_{count}", f"pairs/s of one lock on {count} masters / {text}",
                         ratio(f"{peer}.redlock.pairs.{count}", f"redlock.{count}.{peer}"))
    for peer, text in (("redispy", "redis-py's Lock"), ("node", "node-redlock")):
        yield Figure(f"pairs_vs_{peer}_1", f"pairs/s of one thread / {text}",
                     ratio("threads.1.latchkey", f"threads.1.{peer}"))
        yield Figure(f"handoffs_vs_{peer}_8", f"acquires/s of one lock, 8 processes / {text}",
                     ratio("handoffs.latchkey.8", f"handoffs.{peer}.8"))


# --- the table ---------------------------------------------------------------------------------------------------


def number(value, unit=""):
    if value is None:
        return "-"
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f}" + (f" {unit}" if unit else "")


def rows(results):
    """(key, text, result, must, stretch, remark) of each figure, as texts."""
    for key, found in results.items():
        met = {True: "met", False: "missed", None: ""}[found["met"]]
        yield (key, found["text"], number(found[found["by"]], found["unit"]), found["must"] or "",
               found["stretch"] or "", found.get("reason", met))


def text_table(results):
    lines = [("figure", "", "median", "must", "stretch", ""), *rows(results)]
    widths = [max(len(line[column]) for line in lines) for column in range(6)]
    for line in lines:
        yield "  ".join(cell.rjust(width) if column == 2 else cell.ljust(width)
                        for column, (cell, width) in enumerate(zip(line, widths))).rstrip()


def markdown_table(results):
    yield "| figure | JSON key | median | must | stretch | |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for key, *cells in rows(results):
        yield f"| {cells[0]} | `{key}` | " + " | ".join(cells[1:]) + " |"
