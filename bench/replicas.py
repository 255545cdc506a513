# SPDX-License-Identifier: MIT
"""replicas.py - a server with one replica, both started for a round and gone after it"""
import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time

WITHIN_S = 60  # they are up, and the replica has all


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def start(folder, port, *options):
    server = os.environ.get("LATCHKEY_TEST_SERVER", "redis-server")
    return subprocess.Popen([server, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder,
                             "--dbfilename", f"{port}.rdb", *options], stdout=subprocess.DEVNULL)


def is_acknowledging(master):
    """Does the master hear a replica acknowledge? A replica that has all is not counted before its first report."""
    try:
        with socket.create_connection(("127.0.0.1", master), 2) as wire:
            wire.sendall(b"SET synced 1\r\nWAIT 1 1000\r\n")
            answers = wire.makefile("rb")
            return [answers.readline() for _ in range(2)] == [b"+OK\r\n", b":1\r\n"]
    except OSError:
        return False


@contextlib.contextmanager
def pair():
    """HOST:PORT of the master."""
    folder, (master, replica) = tempfile.mkdtemp(), free_ports(2)
    servers = [start(folder, master, "--repl-diskless-sync-delay", "0"),
               start(folder, replica, "--replicaof", f"127.0.0.1 {master}")]
    try:
        until = time.monotonic() + WITHIN_S
        while not is_acknowledging(master):
            if time.monotonic() > until:
                raise RuntimeError("the replica acknowledges nothing")
            time.sleep(0.05)
        yield f"127.0.0.1:{master}"
    finally:
        for server in servers:
            server.kill()
            server.wait()
        shutil.rmtree(folder, ignore_errors=True)
