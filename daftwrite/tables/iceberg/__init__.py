"""Iceberg tables, through pyiceberg's catalogs and metadata."""
