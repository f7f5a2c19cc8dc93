"""The query engine that reads files into Arrow streams."""
