"""What was written is read by every later version: files of this one, and those kept of releases."""

import json

import pytest
from released import FOLDER, KINDS, keep, told

RELEASES = sorted(path.name for path in FOLDER.glob("*"))
MOST_BYTES = 80_000  # of a kind, in the repository


def same(now, then):
    """The same; numbers up to what another processor rounds."""
    if isinstance(then, dict):
        return now.keys() == then.keys() and all(same(now[name], then[name]) for name in then)
    if isinstance(then, list):
        return len(now) == len(then) and all(map(same, now, then))
    return now == pytest.approx(then, abs=1e-6) if isinstance(then, float) else now == then


def then(folder, name):
    return json.loads((folder / f"{name}.json").read_text())


def needed(name):
    pytest.importorskip(KINDS[name].needs, reason="pip install 'devdan[spark]'")


@pytest.mark.parametrize("name", KINDS)
def test_what_this_version_writes_is_read_and_goes_on(name, tmp_path):
    """It tells the same whenever it is read, and all of a release is small enough to be kept."""
    needed(name)
    folder, again = tmp_path / "kept", tmp_path / "again"
    keep(folder, tmp_path, [name])
    assert same(told(folder, name, again), then(folder, name))
    assert (folder / f"{name}.tar.xz").stat().st_size < MOST_BYTES


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("release", RELEASES)
def test_what_a_release_wrote_is_read_and_goes_on(release, name, tmp_path):
    needed(name)
    assert same(told(FOLDER / release, name, tmp_path), then(FOLDER / release, name))
