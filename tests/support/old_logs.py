"""Logs of older formats, made from new ones, and what a log's tables look like."""

from devdan.service import sql

# What a log of each format lacked that the next one has: statements that make a log one of that format.
OLDER = {
    1: ("DROP TABLE forgotten", "DROP TABLE audit", "UPDATE format SET version = 1"),
    2: (
        "DROP TABLE networks",
        "ALTER TABLE streams DROP COLUMN n_keys",
        "ALTER TABLE snapshots DROP COLUMN previous",
        "UPDATE format SET version = 2",
    ),
}


def age(connection, to):
    """Make a log one of an older format."""
    with connection.transaction():
        for before in range(sql.FORMAT - 1, to - 1, -1):
            for statement in OLDER[before]:
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
