"""Hive's metastore on Derby, from the jars that Spark has of it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from tests.catalog.servers import free_port, is_open, running

__all__ = ["hive"]

SOURCE = Path(__file__).with_name("Metastore.java")
LOGGING = """
rootLogger.level=warn
rootLogger.appenderRef.console.ref=console
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
"""


@contextmanager
def hive(folder: Path) -> Iterator[dict[str, str]]:
    """A metastore; needs the environment of the Java reader."""
    readers = os.environ.get("DAFTWRITE_READERS")
    if readers is None:
        pytest.skip("`nox -s interop` makes the environment with the metastore")
    (jars,) = Path(readers, "java", "lib").glob("python*/site-packages/pyspark/jars")
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/db;create=true",
        "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": f"{folder}/warehouse",
        "hive.async.log.enabled": "false",
    }
    pairs = "".join(f"<property><name>{k}</name><value>{escape(v)}</value></property>" for k, v in settings.items())
    (folder / "hive-site.xml").write_text(f"<configuration>{pairs}</configuration>")
    (folder / "hive-log4j2.properties").write_text(LOGGING)
    port = free_port()
    opened = [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("lang", "net", "util", "util.concurrent")]
    command = ["java", *opened, f"-Dderby.stream.error.file={folder}/derby.log", "-cp", f"{folder}:{jars}/*"]
    with running([*command, str(SOURCE), "-p", str(port)], "", folder / "log"):
        deadline = time.monotonic() + 60
        while not is_open(port):
            if time.monotonic() > deadline:
                raise RuntimeError((folder / "log").read_text()[-2000:])
            time.sleep(0.1)
        yield {"type": "hive", "uri": f"thrift://127.0.0.1:{port}", "warehouse": f"file://{folder}/warehouse"}
