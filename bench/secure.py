# SPDX-License-Identifier: MIT
"""secure.py - TLS beside TCP at the server of the bench, with a certificate that is made for the run"""
import shutil
import socket
import subprocess
import tempfile


class Secured:
    """Ports of both, while it is entered; `reason` says why there are none."""

    def __init__(self, path, port=0):
        """`port`: of the server by TCP, if it has one already."""
        self.path, self.had, self.reason, self.folder = path, port, None, tempfile.TemporaryDirectory()
        self.cacert = f"{self.folder.name}/server.pem"

    def __enter__(self):
        self.port, self.tls_port = free_ports(2)
        self.port = self.had or self.port
        key = f"{self.folder.name}/server.key"
        if not shutil.which("openssl"):
            self.reason = "openssl is not installed"
        elif not done(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                       "-keyout", key, "-out", self.cacert, "-days", "2", "-subj", "/CN=localhost",
                       "-addext", "subjectAltName=IP:127.0.0.1"]):
            self.reason = "openssl makes no certificate"
        elif not self.configure(f"tls-cert-file {self.cacert} tls-key-file {key} tls-auth-clients no "
                                f"tls-port {self.tls_port} port {self.port}"):
            self.reason = "the server knows no TLS"
        return self

    def __exit__(self, *_):
        self.configure(f"tls-port 0 port {self.had}")
        self.folder.cleanup()

    def configure(self, settings):
        return done(["redis-cli", "-s", self.path, "CONFIG", "SET", *settings.split()], b"OK")

    def arguments(self):
        return [str(self.port), str(self.tls_port), self.cacert]


def done(command, says=b""):
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return run.returncode == 0 and run.stdout.startswith(says)


def free_ports(count):
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports
