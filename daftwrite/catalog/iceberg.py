"""Finding Iceberg tables by name, in a configured catalog or the embedded one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daftwrite.errors import ConfigError, MissingDependency, TableNotFound

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

__all__ = ["EMBEDDED_WAREHOUSE", "embedded_catalog", "refuse_memory_of_one_thread", "resolve_identifier"]

EMBEDDED_WAREHOUSE = "warehouse"


def require_pyiceberg() -> None:
    """Refuse with a hint when pyiceberg isn't installed."""
    try:
        import pyiceberg  # noqa: F401  # asks only whether it can be imported
    except ImportError as error:
        raise MissingDependency("pyiceberg", "iceberg") from error


def embedded_catalog(folder: str | os.PathLike[str] = EMBEDDED_WAREHOUSE) -> Catalog:
    """Open the embedded catalog: a SQLite file and a warehouse in one local folder, made when missing.

    Args:
        folder: the folder, relative to the current directory.
    """
    require_pyiceberg()
    from pyiceberg.catalog.sql import SqlCatalog

    path = Path(folder).resolve()
    path.mkdir(parents=True, exist_ok=True)
    return SqlCatalog("embedded", uri=f"sqlite:///{path / 'catalog.db'}", warehouse=f"file://{path}")


def resolve_identifier(
    identifier: str, catalog: Catalog | None = None, *, create: bool = False
) -> tuple[Catalog, tuple[str, ...]]:
    """Find the catalog and the table name of an identifier.

    Args:
        identifier: `"namespace.table"`, or `"catalog.namespace.table"` where `catalog` is configured for pyiceberg.
        catalog: a catalog to use instead of looking for one; the identifier is then a name within it.
        create: whether the embedded catalog is made when it is missing.

    Returns:
        The catalog, and namespace and table as a tuple.

    Raises:
        ConfigError: when the identifier has no namespace.
        TableNotFound: when the embedded catalog would have to be made.
    """
    parts = tuple(identifier.split("."))
    if len(parts) < 2 or not all(parts):
        raise ConfigError(
            f"an Iceberg identifier is 'namespace.table' or 'catalog.namespace.table', not {identifier!r}"
        )
    if catalog is not None:
        return catalog, parts
    require_pyiceberg()
    from pyiceberg.catalog import load_catalog

    configured = _configured_catalogs()
    if len(parts) > 2 and parts[0] in configured:
        return load_catalog(parts[0]), parts[1:]
    if not configured:
        if not create and not Path(EMBEDDED_WAREHOUSE).is_dir():
            raise TableNotFound(
                f"table {identifier} doesn't exist: no catalog is configured, and there is no {EMBEDDED_WAREHOUSE}/; "
                "pass create=True to make it"
            )
        return embedded_catalog(), parts
    default = _default_name()
    if default not in configured:
        raise ConfigError(
            f"identifier {identifier!r} names none of the configured catalogs {', '.join(sorted(configured))}, and "
            f"there is no default one '{default}'"
        )
    return load_catalog(default), parts


def refuse_memory_of_one_thread(catalog: Catalog) -> None:
    """Refuse a catalog in a SQLite memory that only its own thread sees; catalogs are called from worker threads.

    Raises:
        ConfigError: with the address under which all threads see the same memory.
    """
    engine = getattr(catalog, "engine", None)
    if engine is not None and engine.dialect.name == "sqlite" and engine.url.database in (None, "", ":memory:"):
        raise ConfigError(
            f"catalog {catalog.name} is in a memory that only one thread sees ({engine.url.render_as_string()}); "
            f"give it uri='sqlite:///file:{catalog.name}?mode=memory&cache=shared&uri=true'"
        )


def _configured_catalogs() -> set[str]:
    from pyiceberg.utils.config import Config

    catalogs: Any = Config().config.get("catalog", {})
    return set(catalogs)


def _default_name() -> str:
    from pyiceberg.utils.config import Config

    return Config().get_default_catalog_name()
