"""Logs of an older format, made from new ones, and what a log's tables look like."""

from devdan.service import database as log_database

BEFORE = log_database.FORMAT - 1  # a format that never was, without what these statements take away
_MISSING = ("DROP TABLE audit", "ALTER TABLE streams DROP COLUMN n_keys")
MIGRATIONS = {BEFORE: ("ALTER TABLE streams ADD COLUMN n_keys BIGINT NOT NULL DEFAULT 0",)}  # missing tables are made


def age(connection):
    """Make a log one of that format."""
    with connection.transaction():
        for statement in (*_MISSING, f"UPDATE format SET version = {BEFORE}"):
            connection.execute(statement)


def tables(connection):
    """Tables, with the columns, and indexes: of SQLite, and else of PostgreSQL."""
    if connection.has_clock.count("sqlite_master"):
        names = connection.execute("SELECT name FROM sqlite_master ORDER BY name")
        return {name: connection.execute(f"PRAGMA table_xinfo({name})") for (name,) in names}
    columns = connection.execute(
        "SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns "
        "WHERE table_schema = ANY (current_schemas(false))"
    )
    indexes = connection.execute("SELECT indexdef FROM pg_indexes WHERE schemaname = ANY (current_schemas(false))")
    return {"columns": sorted(columns, key=str), "indexes": sorted(indexes)}
