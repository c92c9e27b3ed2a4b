"""What a query remembers, read segment by segment: the newest entry of a name counts."""

from devdan.spark import statebytes
from devdan.spark.segments import unpacked

FAMILIES = {"networks": (statebytes.NETWORKS, ("key",)), "samples": (statebytes.SAMPLES, ("key", "id"))}


def entries(shared, parts, kind):
    """The entries of a shard by name: ``shared`` and ``parts``, by kind, number and place, as the engine keeps them."""
    header, _ = statebytes.unpack_shared(shared)
    schema, names = FAMILIES[kind]
    found = {}
    for number, n_entries, n_parts, newest, _ in header[kind]:
        content = b"".join(bytes(parts[kind, number, part]) for part in range(n_parts))
        batch = unpacked(content, schema, kind)
        assert batch.num_rows == n_entries
        assert max(batch["time"].to_pylist()) == newest
        for row in range(n_entries):
            found[tuple(batch[name][row].as_py() for name in names)] = batch.slice(row, 1)
    return found


def networks(shared, parts):
    """What is kept of each key, and when it was seen."""
    found = {}
    for (key,), entry in entries(shared, parts, "networks").items():
        ((_, time, kept),) = statebytes.unpack_networks(entry)
        found[key] = kept, time
    return found


def samples(shared, parts):
    """What is known of each sample, by key and id."""
    return {name: statebytes.samples_of(entry)[0] for name, entry in entries(shared, parts, "samples").items()}
