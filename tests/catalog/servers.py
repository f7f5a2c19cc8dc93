"""Real servers for catalogs: PostgreSQL, SeaweedFS with its REST catalog and S3, and moto's Glue."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["KEYS", "free_port", "glue", "is_open", "postgres", "running", "seaweed"]

KEYS = {"s3.access-key-id": "someone", "s3.secret-access-key": "something", "s3.region": "us-east-1"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port_with_grpc() -> int:
    """SeaweedFS takes the port and the one 10,000 above it."""
    while True:
        port = free_port()
        if port < 55_000 and not is_open(port + 10_000):
            return port


@contextmanager
def running(command: list[str], ready: str, log: Path, user: str | None = None) -> Iterator[str]:
    """A server from the line that tells it is ready to its end; gives what it printed until then."""
    with log.open("w") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, user=user, start_new_session=True, cwd=log.parent
        )
    try:
        deadline = time.monotonic() + 60
        while not re.search(ready, log.read_text()):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{command[0]} did not start: {log.read_text()[-2000:]}")
            time.sleep(0.1)
        yield log.read_text()
    finally:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def postgres(folder: Path) -> Iterator[dict[str, str]]:
    """PostgreSQL, which refuses to run as root, as the user that its package made."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin")) or [Path(shutil.which("initdb") or "/none").parent]
    binaries = found[-1]
    if not (binaries / "initdb").exists():
        pytest.skip("PostgreSQL is not installed")  # no package index of Python has the server
    user = "postgres" if os.geteuid() == 0 else None
    # The folders of pytest are closed to other users.
    data = Path(f"/var/tmp/daftwrite-{os.getpid()}-{free_port()}")
    data.mkdir()
    if user:
        entry = pwd.getpwnam(user)
        os.chown(data, entry.pw_uid, entry.pw_gid)
    try:
        init = [str(binaries / "initdb"), "-D", str(data / "db"), "-A", "trust", "-U", "daftwrite"]
        subprocess.run(init, check=True, capture_output=True, user=user, cwd=data)
        port = free_port()
        command = [
            str(binaries / "postgres"),
            "-D",
            str(data / "db"),
            "-h",
            "127.0.0.1",
            "-p",
            str(port),
            "-k",
            str(data),
        ]
        with running(command, "ready to accept connections", data / "log", user):
            yield {
                "type": "sql",
                "uri": f"postgresql+psycopg2://daftwrite@127.0.0.1:{port}/postgres",
                "warehouse": f"file://{folder}",
            }
    finally:
        shutil.rmtree(data, ignore_errors=True)


@contextmanager
def seaweed(folder: Path) -> Iterator[dict[str, str]]:
    """SeaweedFS: S3 and a REST catalog."""
    binary = str(Path(sys.executable).with_name("weed"))
    config = folder / "s3.json"
    credentials = [{"accessKey": KEYS["s3.access-key-id"], "secretKey": KEYS["s3.secret-access-key"]}]
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    config.write_text(json.dumps({"identities": [{"name": "one", "credentials": credentials, "actions": actions}]}))
    ports = {name: free_port_with_grpc() for name in ("s3.port", "master.port", "volume.port", "filer.port")}
    rest = free_port_with_grpc()
    options = [f"-{name}={port}" for name, port in ports.items()]
    command = [
        *(binary, "mini", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.telemetry=false"),
        *(f"-s3.config={config}", "-admin.ui=false", "-webdav=false", "-bucket=data", "-tableBucket=warehouse"),
        *(f"-s3.port.iceberg={rest}", *options),
    ]
    with running(command, r"Iceberg Catalog:?\s+\S+:\d+", folder / "log") as banner:
        found = re.search(r"Iceberg Catalog:?\s+(?:http://)?[\w.]+:(\d+)", banner)
        assert found is not None, banner
        yield {
            "type": "rest",
            "uri": f"http://127.0.0.1:{found.group(1)}",
            "warehouse": "s3://warehouse",
            "rest.sigv4-enabled": "true",
            "rest.signing-name": "s3tables",
            "rest.signing-region": "us-east-1",
            "client.access-key-id": KEYS["s3.access-key-id"],
            "client.secret-access-key": KEYS["s3.secret-access-key"],
            "s3.endpoint": f"http://127.0.0.1:{ports['s3.port']}",
            "s3.path-style-access": "true",
            **KEYS,
        }


@contextmanager
def glue() -> Iterator[dict[str, str]]:
    """Moto's Glue and S3."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        client = boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id=KEYS["s3.access-key-id"],
            aws_secret_access_key=KEYS["s3.secret-access-key"],
        )
        client.create_bucket(Bucket="lake")
        yield {
            "type": "glue",
            "warehouse": "s3://lake/warehouse",
            "glue.endpoint": endpoint,
            "glue.region": "us-east-1",
            "glue.access-key-id": KEYS["s3.access-key-id"],
            "glue.secret-access-key": KEYS["s3.secret-access-key"],
            "s3.endpoint": endpoint,
            **KEYS,
        }
    finally:
        server.stop()
