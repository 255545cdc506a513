# SPDX-License-Identifier: MIT
"""quorums.py - masters that know nothing of each other, started for a round and gone after it"""
import contextlib
import os
import shutil
import tempfile

import clusters
import replicas

NODES = (3, 5)


@contextlib.contextmanager
def masters(count=NODES[-1]):
    """HOST:PORT of each. They have all processors: on one of them they would work one after the other."""
    folder, ports = tempfile.mkdtemp(), replicas.free_ports(count)
    servers = [replicas.start(folder, port) for port in ports]
    try:
        for server in servers:
            os.sched_setaffinity(server.pid, range(os.cpu_count()))
        clusters.await_all("the masters do not answer", ports, clusters.answers)
        yield [f"127.0.0.1:{port}" for port in ports]
    finally:
        for server in servers:
            server.kill()
            server.wait()
        shutil.rmtree(folder, ignore_errors=True)
