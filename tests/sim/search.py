# SPDX-License-Identifier: MIT
"""What scripts/sim does: run seeds, and find the smallest set of faults that still breaks what a seed broke.

A seed is a whole run: it says which workload, which schedule, which network, which faults. A run that ends with another
code than 0 has failed; its rule is the first line of its output that names one.
"""
import argparse
import concurrent.futures as futures
import glob
import os
import re
import signal
import subprocess
import sys
import time

RULES = re.compile(r"^(I\d+ .*|sim: seed \d+, at .*|.*Assertion .* failed.*|\[  FAILED  \].*|.*hangs)$", re.M)
VIRTUAL = re.compile(r"^sim: seed \d+: ([\d.]+) s, (\d+) steps, .* (\d+) faults, diary ([0-9a-f]+)$", re.M)
GRANTS = re.compile(r"^ +(\d+) grants", re.M)
FAULTS = re.compile(r" operations, (\d+) faults", re.M)
LONGEST_S = 300  # of one run, in real time

# How often each is drawn; those of workloads/ as often as the soak. {seed}: the number of the run.
WORKLOADS = {
    "soak": (10, ["soak/soak", "--seed", "{seed}", "--seconds", "8"]),
    "sentinels": (3, ["soak/soak", "--sentinels", "--seed", "{seed}", "--seconds", "25"]),
    "cluster": (3, ["soak/soak", "--cluster", "--seed", "{seed}", "--seconds", "25"]),
    "scenarios": (10, []),
}
SCENARIOS = []
WHEN_ASKED = {"hour"}  # it is for measuring


class Run:
    """What one run of a seed said."""

    def __init__(self, seed, command, code, text):
        self.seed, self.command, self.code, self.text = seed, command, code, text
        virtual = VIRTUAL.search(text)
        self.virtual_s = float(virtual.group(1)) if virtual else 0.0
        self.diary = virtual.group(4) if virtual else None
        self.grants = sum(int(n) for n in GRANTS.findall(text))
        self.faults = int((FAULTS.findall(text) or [0])[-1]) or int(virtual.group(3) if virtual else 0)

    def failed(self):
        return self.code not in (0, 77)

    def rule(self):
        found = RULES.search(self.text)
        return re.sub(r"\d+", "N", found.group(1))[:60] if found else f"exit code {self.code}"

    def what(self):
        found = RULES.search(self.text)
        return found.group(1) if found else f"it ended with code {self.code}"


def add_workloads(build):
    """Those of workloads/, and the tests that are simulated, of which a seed takes one."""
    SCENARIOS.extend(open(os.path.join(build, "tests/sim/scenarios"), encoding="utf-8").read().split())
    for path in sorted(glob.glob(os.path.join(build, "tests/sim/workload_*"))):
        name = os.path.basename(path).removeprefix("workload_")
        WORKLOADS[name] = (0 if name in WHEN_ASKED else 10, ["sim/workload_" + name])


def lot_of(seed, limit):
    return (seed * 2654435761 >> 7) % limit


def workload_of(seed, wanted):
    if wanted:
        return wanted
    lot = lot_of(seed, sum(weight for weight, _ in WORKLOADS.values()))
    for name, (weight, _) in WORKLOADS.items():
        if lot < weight:
            return name
        lot -= weight
    raise AssertionError


def is_scenario(seed, options):
    return not options.program and workload_of(seed, options.workload) == "scenarios"


def command_of(seed, options):
    if options.program:
        program = options.program
    elif is_scenario(seed, options):
        program = [SCENARIOS[lot_of(seed * 31 + 7, len(SCENARIOS))]]
    else:
        program = WORKLOADS[workload_of(seed, options.workload)][1]
    tests = os.path.join(options.build, "tests")
    first = program[0] if os.path.exists(program[0]) else os.path.join(tests, program[0])
    return [os.path.abspath(first)] + [part.format(seed=seed) for part in program[1:]]


def run(seed, options, cpu, more=(), without=""):
    """Run a seed on one processor."""
    sim = os.path.join(options.build, "tests/sim/sim")
    far = [] if options.program or is_scenario(seed, options) else ["--far"]  # tests assume one machine
    command = [os.path.abspath(sim), "--verbose", "--seed", str(seed), "--cpu", str(cpu), *far, *more,
               *command_of(seed, options)]
    environment = dict(os.environ)
    if without:
        environment["SIM_WITHOUT"] = without
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             env=environment, text=True, errors="replace", start_new_session=True)
    try:
        text, _ = child.communicate(timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        text = child.communicate()[0] + f"\nit hangs: no end within {LONGEST_S} s\n"
    return Run(seed, command, child.returncode, text)


def shrink(failed, options, cpu):
    """Leave faults out, by halves and then one by one, as long as the same rule is broken."""
    kept = list(range(failed.faults))
    out = []

    def still_fails(left_out):
        again = run(failed.seed, options, cpu, without=",".join(map(str, sorted(left_out))))
        return again.failed() and again.rule() == failed.rule()

    size = max(1, len(kept) // 2)
    while kept:
        at, smaller = 0, False
        while at < len(kept):
            candidate = kept[at:at + size]
            if still_fails(out + candidate):
                out += candidate
                del kept[at:at + size]
                smaller = True
            else:
                at += size
        if size == 1 and not smaller:
            break
        size = max(1, size // 2)
    return kept, sorted(out)


class Search:
    def __init__(self, options):
        self.options, self.began = options, time.monotonic()
        self.runs = self.failures = self.grants = self.faults = 0
        self.virtual_s = 0.0
        self.shown = 0.0

    def add(self, one):
        self.runs += 1
        self.virtual_s += one.virtual_s
        self.grants += one.grants
        self.faults += one.faults
        if one.failed():
            self.failures += 1
            self.tell_failure(one)
        self.show(False)

    def tell_failure(self, one):
        print(f"\nseed {one.seed}: {one.what()}")
        print("  " + "\n  ".join(one.text.rstrip().split("\n")[-40:]))
        if self.options.shrink and one.faults > 0 and not self.options.program:
            kept, out = shrink(one, self.options, 0)
            print(f"  of {one.faults} faults these break it: {', '.join(map(str, kept)) or 'none'}")
            print(f"  replay: SIM_WITHOUT={','.join(map(str, out))} scripts/sim --seed {one.seed}")
        else:
            print(f"  replay: scripts/sim --seed {one.seed}{self.options.again}")
        sys.stdout.flush()

    def line(self):
        hours = self.virtual_s / 3600
        return (f"[{time.monotonic() - self.began:4.0f}s] {self.runs} seeds, {hours:.2f} h of virtual time, "
                f"{self.grants} grants, {self.faults} faults, {self.failures} failures")

    def show(self, last):
        terminal = sys.stdout.isatty()
        if not last and time.monotonic() - self.shown < (1 if terminal else 30):
            return
        self.shown = time.monotonic()
        print(("\r" if terminal else "") + self.line() + ("\x1b[K" if terminal and not last else ""),
              end="" if terminal and not last else "\n", flush=True)

    def is_over(self, seed):
        late = self.options.seconds and time.monotonic() - self.began >= self.options.seconds
        return late or (self.options.seeds and seed >= self.options.first + self.options.seeds)

    def search(self):
        seed = self.options.first
        processors = os.cpu_count() or 1
        with futures.ThreadPoolExecutor(self.options.jobs) as pool:
            waiting = {}
            free = [cpu % processors for cpu in range(self.options.jobs)]
            while waiting or not self.is_over(seed):
                while free and not self.is_over(seed):
                    cpu = free.pop()
                    waiting[pool.submit(run, seed, self.options, cpu)] = cpu
                    seed += 1
                done, _ = futures.wait(waiting, return_when=futures.FIRST_COMPLETED)
                for one in done:
                    free.append(waiting.pop(one))
                    self.add(one.result())
        self.show(True)
        return self.failures == 0


def replay(options):
    more = ["--trace", options.trace] if options.trace else []
    one = run(options.seed, options, 0, more, os.environ.get("SIM_WITHOUT", ""))
    print(one.text, end="")
    if options.trace:
        print(f"the diary is in {options.trace}")
    return not one.failed()


def same(options):
    """Does each seed write the same diary twice?"""
    good = True
    for seed in range(options.first, options.first + options.seeds):
        first, second = run(seed, options, 0), run(seed, options, 1 % (os.cpu_count() or 1))
        if first.failed() or first.diary is None or first.diary != second.diary:
            print(f"seed {seed}: diaries {first.diary} and {second.diary}, {first.what()}\n{first.text}\n{second.text}")
            good = False
    print("each seed passed, and wrote the same diary twice" if good else "a seed failed, or wrote two diaries")
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--trace")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--workload")
    parser.add_argument("--no-shrink", dest="shrink", action="store_false")
    parser.add_argument("--same", action="store_true")
    parser.add_argument("program", nargs="*")
    options = parser.parse_args()
    add_workloads(options.build)
    if options.workload and options.workload not in WORKLOADS:
        parser.error(f"there is no workload {options.workload}, but {', '.join(WORKLOADS)}")
    options.again = f" --workload {options.workload}" if options.workload else ""
    if options.program:
        options.again = " -- " + " ".join(options.program)
    if options.seed is not None:
        return replay(options)
    return same(options) if options.same else Search(options).search()


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
