# SPDX-License-Identifier: MIT
"""clusters.py - a cluster of three masters, and one server by itself, started for a round and gone after it"""
import contextlib
import shutil
import socket
import tempfile
import time

import replicas

NODES, SLOTS = 3, 16384


def ask(port, *words):
    """What a server says to one command, as it is."""
    with socket.create_connection(("127.0.0.1", port), 5) as wire:
        wire.sendall(b"".join([b"*%d\r\n" % len(words), *(b"$%d\r\n%s\r\n" % (len(word), word)
                                                         for word in (str(word).encode() for word in words))]))
        return wire.recv(65536)


def answers(port):
    try:
        return ask(port, "PING") == b"+PONG\r\n"
    except OSError:
        return False


def await_all(what, ports, holds):
    until = time.monotonic() + replicas.WITHIN_S
    while not all(holds(port) for port in ports):
        if time.monotonic() > until:
            raise RuntimeError(what)
        time.sleep(0.05)


def introduce(ports, buses):
    """They have a third of the slots each, and know each other."""
    for number, port in enumerate(ports):
        ask(port, "CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        ask(port, "CLUSTER", "ADDSLOTSRANGE", number * SLOTS // NODES, (number + 1) * SLOTS // NODES - 1)
    for port, bus in zip(ports[1:], buses[1:]):
        ask(ports[0], "CLUSTER", "MEET", "127.0.0.1", port, bus)
    await_all("the nodes did not become a cluster", ports, lambda port: b"cluster_state:ok" in ask(port, "CLUSTER", "INFO"))


@contextlib.contextmanager
def beside_one():
    """(HOST:PORT, pid) of the server by itself, then those of the nodes in order of their slots."""
    folder, every = tempfile.mkdtemp(), replicas.free_ports(2 * NODES + 1)
    one, ports, buses = every[0], every[1:NODES + 1], every[NODES + 1:]
    servers = [replicas.start(folder, one)]
    servers += [replicas.start(folder, port, "--cluster-enabled", "yes", "--cluster-port", str(bus),
                               "--cluster-config-file", f"{port}.conf") for port, bus in zip(ports, buses)]
    try:
        await_all("the servers do not answer", every[:NODES + 1], answers)
        introduce(ports, buses)
        yield [(f"127.0.0.1:{port}", server.pid) for port, server in zip((one, *ports), servers)]
    finally:
        for server in servers:
            server.kill()
            server.wait()
        shutil.rmtree(folder, ignore_errors=True)
