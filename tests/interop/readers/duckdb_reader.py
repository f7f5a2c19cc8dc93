"""Reads Iceberg tables with DuckDB's extension; runs in an environment of its own.

Takes a file with requests, a JSON array of {"metadata", "where", "out"}, and writes each result as an Arrow file, or the
error as text beside it.
"""

import json
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
from duckdb_extensions import import_extension

import_extension("avro")
import_extension("iceberg")
connection = duckdb.connect()
connection.execute("load avro")
connection.execute("load iceberg")
connection.execute("set timezone = 'UTC'")
for request in json.loads(Path(sys.argv[1]).read_text()):
    location = request["metadata"].removeprefix("file://")
    condition = f" where {request['where']}" if request["where"] else ""
    try:
        found = connection.execute(f"select * from iceberg_scan('{location}'){condition}").fetch_arrow_table()
    except duckdb.Error as error:
        Path(request["out"] + ".error").write_text(str(error))
        continue
    with pa.OSFile(request["out"], "wb") as sink, pa.ipc.new_file(sink, found.schema) as writer:
        writer.write_table(found)
