"""Reads Iceberg tables with iceberg-rust and DataFusion; see `duckdb_reader.py` for what it takes and writes."""

import json
import sys
from pathlib import Path

import pyarrow as pa
from datafusion import SessionContext
from pyiceberg.table import StaticTable

for request in json.loads(Path(sys.argv[1]).read_text()):
    context = SessionContext()
    condition = f" where {request['where']}" if request["where"] else ""
    try:
        context.register_table("t", StaticTable.from_metadata(request["metadata"]))
        frame = context.sql(f"select * from t{condition}")
        found = pa.Table.from_batches(frame.collect(), schema=frame.schema())
    except Exception as error:
        Path(request["out"] + ".error").write_text(f"{type(error).__name__}: {error}")
        continue
    with pa.OSFile(request["out"], "wb") as sink, pa.ipc.new_file(sink, found.schema) as writer:
        writer.write_table(found)
