# SPDX-License-Identifier: MIT
"""charts.py - the charts of docs/performance/, drawn by gnuplot where that is installed"""
import pathlib
import shutil
import statistics
import subprocess

from figures import COUNTS, CROWDS

RIVALS = {"latchkey": "Latchkey", "queue": "bare queue", "redisson": "Redisson's protocol in C", "blpop": "BLPOP token"}

HEAD = """set terminal svg size 640,400 font 'sans-serif,12' background '#ffffff'
set output '{file}'
set title '{title}'
set xlabel '{x}'
set logscale {log}
set xtics ({ticks})
set yrange [{least}:*]
set key outside bottom center horizontal
set grid ytics
"""


def median_of(samples, name):
    return statistics.median(samples[name]) if samples.get(name) else None


def draw(file, title, x, places, lines, log="x"):
    """One chart; `lines` is {label: [value at each place]}."""
    script = HEAD.format(file=file, title=title, x=x, log=log, ticks=", ".join(map(str, places)),
                         least="*" if "y" in log else 0)
    blocks, plots = [], []
    for label, values in lines.items():
        points = [f"{place} {value}" for place, value in zip(places, values) if value is not None]
        if points:
            blocks.append(f"${len(blocks)}x << END\n".replace("$", "$line") + "\n".join(points) + "\nEND\n")
            plots.append(f"$line{len(plots)}x with linespoints linewidth 2 title \"{label}\"")
    if plots:
        subprocess.run(["gnuplot"], input="".join(blocks) + script + "plot " + ", ".join(plots) + "\n", text=True,
                       check=True)


def contended(samples, what):
    return {label: [median_of(samples, f"{what}.{rival}.{count}") for count in COUNTS]
            for rival, label in RIVALS.items()}


def write(samples, folder):
    """Draw all charts into a folder. Returns why not, or None."""
    if not shutil.which("gnuplot"):
        return "no charts: gnuplot is not installed (Debian: gnuplot-nox)"
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    draw(folder / "handoffs.svg", "One lock: hand-offs per second", "processes", COUNTS,
         contended(samples, "handoffs"), "xy")
    draw(folder / "gaps.svg", "One lock: p50 from unlock to the next holder, us", "processes", COUNTS,
         contended(samples, "gap"), "xy")
    draw(folder / "server-cpu.svg", "One lock: processor time of the server per acquire, us", "processes", COUNTS,
         contended(samples, "cpu"), "xy")
    draw(folder / "threads.svg", "A lock per thread: pairs per second", "threads", (1, *CROWDS),
         {"Latchkey, one client": [median_of(samples, f"threads.{n}.latchkey") for n in (1, *CROWDS)],
          "a blocking connection each": [median_of(samples, f"threads.{n}.conns") for n in (1, *CROWDS)]})
    return None
