"""A saved model comes back bit for bit, and no file does harm."""

import hashlib
import json
import os

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devdan import DEVDAN, DEVDANEnsemble, ModelFileError, kernel
from devdan.kernel.state import aligned, sizes_of
from devdan.model import modelfile


def chunk(seed=0, n_samples=100):
    random = np.random.default_rng(seed)
    y = random.integers(3, size=n_samples)
    return random.normal(size=(n_samples, 4)) + y[:, None], y


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.devdan"
    DEVDAN(random_state=0).partial_fit(*chunk()).save(path)
    return path


def rewritten(path, change_header=None, change_state=None, network=0):
    """A file with a matching checksum and other contents."""
    header, states = modelfile.read(path)
    if change_state is not None:
        change_state(kernel.Network(states[sum(header["states"][:network]) :]))
    if change_header is not None:
        change_header(header)
    modelfile.write(path, header, states)
    return path


@pytest.mark.parametrize(
    ("options", "labels"),
    [
        ({}, np.array([3, 7, 9])),
        ({"scaling": "standard", "interleave": True}, np.array(["dry", "rain", "snow"])),
        ({"masking": np.float64(0.3), "n_hidden": np.int64(4)}, np.array(["x", "y", "z"], object)),
        ({"random_state": np.random.RandomState(3), "shuffle": False}, np.array([1.0, 2.0, 4.0])),
        ({"initial_weights": {"encoder": np.eye(4)}}, np.array([False, True, True])),
        ({"class_weight": "balanced"}, np.array([3, 7, 9])),
        ({"class_weight": {3: 0.5, np.int64(7): np.float32(4)}}, np.array([3, 7, 9])),
        ({"class_weight": {"dry": 2, "hail": 9}}, np.array(["dry", "rain", "snow"])),
        ({"class_weight": {True: 7.5}}, np.array([False, True, True])),
        ({"rehearse": 0}, np.array([3, 7, 9])),
        ({"rehearse": np.int64(2)}, np.array([3, 7, 9])),
    ],
)
def test_a_loaded_model_continues_bit_for_bit(tmp_path, options, labels):
    model = DEVDAN(**{"random_state": 0, **options})
    for seed in range(3):
        X, y = chunk(seed)
        model.partial_fit(X, labels[y])
    model.save(tmp_path / "m")
    loaded = DEVDAN.load(tmp_path / "m")
    assert (loaded.predict_proba(X) == model.predict_proba(X)).all()
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.events_ == model.events_
    X, y = chunk(9)
    for one, other in zip(
        model.partial_fit(X, labels[y]).mixture_.networks,
        loaded.partial_fit(X, labels[y]).mixture_.networks,
        strict=True,
    ):
        assert one.tobytes() == other.tobytes()


def test_names_of_features_and_models_without_labels_are_kept(tmp_path):
    frame = pd.DataFrame(chunk()[0], columns=list("abcd"))
    DEVDAN(random_state=0).observe(frame).save(tmp_path / "m")
    loaded = DEVDAN.load(tmp_path / "m")
    assert loaded.feature_names_in_.tolist() == list("abcd")
    assert not hasattr(loaded, "classes_")


def test_what_is_saved_is_what_the_model_does_whatever_was_set_since(path):
    model = DEVDAN.load(path)
    model.set_params(scaling="standard", masking=3).save(path)
    X, _ = chunk(1)
    assert (DEVDAN.load(path).predict_proba(X) == model.predict_proba(X)).all()


def test_others_may_read_the_file_as_the_umask_says(path):
    assert path.stat().st_mode & 0o777 == 0o666 & ~current_umask()


def current_umask():
    umask = os.umask(0)
    os.umask(umask)
    return umask


def test_what_cannot_be_saved_is_said(tmp_path):
    with pytest.raises(ValueError, match="has not seen a sample"):
        DEVDAN().save(tmp_path / "m")
    with pytest.raises(FileNotFoundError):
        DEVDAN(random_state=0).partial_fit(*chunk()).save(tmp_path / "nowhere" / "m")
    with pytest.raises(FileNotFoundError):
        DEVDAN.load(tmp_path / "nothing")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_save_leaves_the_old_file_and_no_other(path, monkeypatch):
    before = path.read_bytes()

    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(modelfile.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        DEVDAN(random_state=1).partial_fit(*chunk()).save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("length", [0, 1, 7, 8, 30, 300, -1, -40])
def test_truncated_files(path, length):
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(ModelFileError, match="truncated" if length else "not a DEVDAN model"):
        DEVDAN.load(path)


@given(where=st.integers(0, 10**6), what=st.integers(1, 255))
@settings(max_examples=50)
def test_altered_files(path, where, what):
    content = bytearray(path.read_bytes())
    content[where % len(content)] ^= what
    other = path.with_name("altered")
    other.write_bytes(content)
    with pytest.raises(ModelFileError):
        DEVDAN.load(other)


@given(st.binary(max_size=400))
def test_any_bytes_get_a_clean_error(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("any") / "m"
    for prefix in (b"", modelfile.MAGIC):
        path.write_bytes(prefix + content)
        with pytest.raises(ModelFileError):
            DEVDAN.load(path)


def test_longer_newer_and_foreign_files(path):
    content = path.read_bytes()
    path.write_bytes(content + b"x")
    with pytest.raises(ModelFileError, match=r"corrupt: it has [0-9]+ bytes, its checksum is for"):
        DEVDAN.load(path)
    path.write_bytes(content[:8] + b"\x06" + content[9:])
    with pytest.raises(ModelFileError, match=r"has format 6, this devdan reads 1: it was saved by a newer devdan"):
        DEVDAN.load(path)
    path.write_text("sepal,petal\n1,2\n")
    with pytest.raises(ModelFileError, match="not a DEVDAN model"):
        DEVDAN.load(path)


def set_word(name, index, value):
    def change(net):
        assert name in net.fields()
        if index is None:
            setattr(net, name, value)
        else:
            getattr(net, name)[index] = value

    return change


OF_BOTH = [
    set_word("n_hidden", None, 10**6),
    set_word("n_hidden", None, 0),
    set_word("n_features", None, 5),
    set_word("n_classes", None, -1),
    set_word("max_hidden", None, 2**62),
    set_word("max_events", None, -5),
    set_word("n_seen", None, -5),
    set_word("n_named", None, 99),
    set_word("n_named", None, 4),
    set_word("low", 0, -np.inf),
    set_word("scale_count", 0, np.nan),
    set_word("scale_count", 0, -1.0),
    set_word("scale_count", 0, 0.5),
    set_word("encoder", (0, 0), np.nan),
    set_word("low", 0, np.nan),
    set_word("n_learned", 1, 2**62 + 1),
    set_word("averaged_since", None, 101),
    set_word("encoder", (0, 0), 1e101),
    set_word("losses", 1, -1e101),
    set_word("scaling", None, kernel.MINMAX),
    set_word("output_bias_moment", 0, -1.0),
    set_word("mean", 0, 1e151),
    set_word("low", 0, -1e151),
    set_word("class_count", 0, -1.0),
    set_word("class_count", 2, np.nan),
    set_word("class_count", 0, 1e101),
    set_word("class_weight", 0, -0.5),
    set_word("class_weight", 0, np.inf),
    set_word("weighing", None, kernel.BALANCED),
    set_word("mixed", None, 0.5),
    set_word("kind", None, 2),
    set_word("kind", None, -1),
    set_word("n_fields", None, 1),
    set_word("n_field_units", None, 2**62),
    set_word("mixed", None, np.nan),
    set_word("scaling_horizon", None, 0.0),
    set_word("max_samples", None, 2**62),
]
OF_EVOLVING = [
    set_word("kind", None, kernel.REPLAYING),
    set_word("monitors", (0, 0, kernel.COUNT), -1.0),
    set_word("surprises", (1, kernel.COUNT), 0.0),
    set_word("class_surprises", (1, kernel.COUNT), -1.0),
    set_word("class_surprises", (2, kernel.SQUARE), 0.5),
    set_word("class_surprises", (0, 3), np.inf),
    set_word("events", (0, kernel.EVENT_PHASE), 77),
    set_word("events", 0, (1, 1, -2, kernel.DRIFT, 1)),
    set_word("events", 0, (1, 1, 3, kernel.DRIFT, 1)),
    set_word("monitors", (0, 0, kernel.RESTART), 0.5),
    set_word("monitors", (0, 0, kernel.SQUARE), -0.5),
    set_word("input_square", (0, 0), -1.0),
    set_word("decoder_bias", 0, np.nan),
    set_word("max_samples", None, 7),
]
OF_REPLAYING = [
    set_word("kind", None, kernel.EVOLVING),
    set_word("replays", None, 4.0),
    set_word("replays", None, 10**6),
    set_word("replays", None, -1.0),
    set_word("n_stored", None, -1),
    set_word("buffer", (0, 0), np.inf),
    set_word("buffer_label", 99, 3),
    set_word("buffer_label", 0, -1),
    set_word("buffer_label", 0, 2**62),
    set_word("buffer_weight", 0, -1.0),
    set_word("buffer_weight", 0, np.nan),
    set_word("n_classes", None, 2),
    set_word("start", None, 23.0),
    set_word("field_places", (0, 3), np.nan),
    set_word("field_weights", (0, 0, 0), np.inf),
]
CHANGES = [(0, change) for change in OF_BOTH + OF_EVOLVING] + [(1, change) for change in OF_BOTH + OF_REPLAYING]


@pytest.mark.parametrize(("network", "change"), CHANGES)
def test_a_strangers_state_cannot_reach_beyond_its_arrays(path, change, network):
    with pytest.raises(ModelFileError, match="does not hold a valid model"):
        DEVDAN.load(rewritten(path, change_state=change, network=network))


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header["options"].update(masking=7),
        lambda header: header["options"].update(masking=10**400),
        lambda header: header["options"].update(n_hidden=10**9),
        lambda header: header["options"].update(evil="import os"),
        lambda header: header.update(options=None),
        lambda header: header.pop("classes"),
        lambda header: header.update(n_features=3),
        lambda header: header.update(outputs=[0, 1, 7]),
        lambda header: header.update(classes=[2, 1, 0]),
        lambda header: header.update(classes=[0, 1]),
        lambda header: header.update(dtype="M8[s]"),
        lambda header: header.update(dtype="no type"),
        lambda header: header.update(dtype="<f8", classes=[0.5, 1.5, 2.5]),
        lambda header: header.update(dtype="((1)i4,i4"),
        lambda header: header.update(dtype="<f16"),
        lambda header: header.update(kind=json.loads("[" * 900 + "]" * 900)),
        lambda header: header.update(classes=list(range(99)), outputs=list(range(99))),
        lambda header: header.update(dtype="<U100000000"),
        lambda header: header.update(classes=[1, 1, 1]),
        lambda header: header.update(feature_names=["a"]),
        lambda header: header["options"].update(class_weight="balanced"),
        lambda header: header["options"].update(class_weight=[[0, 2.0]]),
        lambda header: header["options"].update(class_weight=[[[0], 2.0]]),
        lambda header: header["options"].update(class_weight=[[0, -2.0]]),
        lambda header: header["options"].update(class_weight=[0]),
        lambda header: header["options"].update(rehearse=0),
        lambda header: header["options"].update(rehearse=6),
        lambda header: header["options"].update(rehearse=-1),
        lambda header: header["options"].update(rehearse=10**400),
        lambda header: header["options"].pop("rehearse"),
    ],
)
def test_a_strangers_header_is_checked(path, change):
    with pytest.raises(ModelFileError, match="does not hold a valid model"):
        DEVDAN.load(rewritten(path, change_header=change))


@pytest.fixture
def towns(tmp_path):
    path = tmp_path / "towns.devdan"
    rows = [{"size": float(k % 3), "town": "Bonn" if k % 2 else "Ulm", "at": f"2024-05-{1 + k:02}"} for k in range(20)]
    DEVDAN(random_state=0).partial_fit(rows, np.arange(20) % 2).save(path)
    return path


@pytest.mark.parametrize(
    ("column", "change"),
    [
        ("size", {"inputs": [["value", "7", 0]]}),
        ("size", {"inputs": [["open", "", 0]]}),
        ("size", {"kind": "nominal"}),
        ("size", {"kind": ""}),
        ("size", {"left_out": "for fun"}),
        ("town", {"kind": "number"}),
        ("at", {"inputs": [["sine", "day of week", 3], ["sine", "day of year", 4]]}),
        ("at", {"inputs": [["sine", "moon", 3], ["cosine", "moon", 4]]}),
        ("at", {"kind": "time"}),
    ],
)
def test_a_column_has_the_inputs_of_its_kind(towns, column, change):
    def alter(header):
        (own,) = [each for each in header["encoding"]["columns"] if each["name"] == column]
        own.update(change)

    with pytest.raises(ModelFileError, match=f"the column '{column}' has other inputs than one of its kind"):
        DEVDAN.load(rewritten(towns, alter))


@pytest.mark.parametrize("names", [["size", "at", "town"], "abc", 0, [1, 2, 3]])
def test_feature_names_are_those_of_the_columns(towns, names):
    with pytest.raises(ModelFileError, match="feature names"):
        DEVDAN.load(rewritten(towns, lambda header: header.update(feature_names=names)))


def test_options_name_columns_that_are_there(towns):
    with pytest.raises(ModelFileError, match="numeric names the column 'length'"):
        DEVDAN.load(rewritten(towns, lambda header: header["options"].update(numeric=["length"])))


def test_a_replaying_network_without_room_for_its_units(path):
    """Once it was given twice as much room for ever, which was none."""
    header, words = modelfile.read(path)
    state = words[header["states"][0] :]
    room = sizes_of(state)._replace(hidden=0, field_units=0, fields=0)
    empty, net = aligned(kernel.Replaying.n_words(room)), kernel.Network(state)
    small = kernel.Replaying.empty(room, empty)
    for name in (
        "kind",
        "n_features",
        "n_classes",
        "n_seen",
        "scaling",
        "scaling_horizon",
        "clips",
        "replays",
        "mixed",
    ):
        setattr(small, name, getattr(net, name))
    modelfile.write(
        path, header | {"states": [header["states"][0], len(empty)]}, np.append(words[: header["states"][0]], empty)
    )
    with pytest.raises(ModelFileError, match="does not hold a valid model"):
        DEVDAN.load(path)


@pytest.mark.parametrize("text", [b"\xff\xfe", b"[1, 2]", b"{", b'{"options": NaN}', 200_000 * b"["], ids=range(5))
def test_a_header_that_is_no_header(path, text):
    content = modelfile._PREFIX.pack(modelfile.MAGIC, modelfile.VERSION, len(text), 0) + text
    path.write_bytes(content + hashlib.sha256(content).digest())
    with pytest.raises(ModelFileError, match="no readable header"):
        DEVDAN.load(path)
    content = modelfile._PREFIX.pack(modelfile.MAGIC, modelfile.VERSION, 2, 0) + json.dumps({}).encode()
    path.write_bytes(content + hashlib.sha256(content).digest())
    with pytest.raises(ModelFileError, match="not a DEVDAN"):
        DEVDAN.load(path)


@pytest.mark.parametrize("sizes", [None, [], [0], ["x"], [10**9], [1, 2]])
def test_sizes_that_do_not_fit_the_words(path, sizes):
    with pytest.raises(ModelFileError, match="sizes of its states"):
        DEVDAN.load(rewritten(path, lambda header: header.update(states=sizes)))


def test_a_file_with_too_few_words_for_a_header(path):
    header, _ = modelfile.read(path)
    modelfile.write(path, header | {"states": [3]}, np.zeros(3))
    with pytest.raises(ModelFileError, match="no header"):
        DEVDAN.load(path)


def test_a_model_of_another_kind(path):
    with pytest.raises(ModelFileError, match="a DEVDAN, not a DEVDANEnsemble"):
        DEVDANEnsemble.load(path)


def test_what_has_no_end_is_not_read_to_its_end():
    if not os.path.exists("/dev/zero"):
        pytest.skip("there is no /dev/zero")
    with pytest.raises(ModelFileError, match="not a DEVDAN model"):
        DEVDAN.load("/dev/zero")


def sparse(path, n_bytes, start=b""):
    with path.open("wb") as file:
        file.write(start)
        file.truncate(n_bytes)


def test_a_large_file_that_is_no_model_is_not_read(path, tmp_path, monkeypatch):
    """Sixty gigabytes that take no room on the disk would take all of the memory."""
    n_bytes, place = 60 * 10**9, tmp_path / "sparse"
    prefix = path.read_bytes()[: modelfile._PREFIX.size]
    n_words, n_text = divmod(n_bytes - 32 - len(prefix), 8)
    wrong = {
        "is not a DEVDAN model": b"",
        "has format 0": modelfile.MAGIC,
        "corrupt: it has 60000000000 bytes": prefix,
        "is too large: 60000000000 bytes": modelfile._PREFIX.pack(modelfile.MAGIC, 1, n_text, n_words),
    }  # fmt: skip
    monkeypatch.setattr(modelfile, "_memory", lambda: 16e9)
    try:
        for message, start in wrong.items():
            sparse(place, n_bytes, start)
            with pytest.raises(ModelFileError, match=message) as error:
                DEVDAN.load(place)
            assert "\n" not in str(error.value)
    finally:
        place.unlink()


def test_one_long_class_among_many_does_not_make_all_of_them_long(tmp_path):
    """An array of text gives each as much room as the longest; a small file could ask for any amount of memory."""
    labels = np.array([*(f"{k:04}" for k in range(2000)), "x" * 10_000], dtype=object)
    model = DEVDAN(random_state=0).teach([[0.0]], labels[:1], classes=labels)
    model.save(tmp_path / "m")
    rewritten(tmp_path / "m", lambda header: header.update(dtype="<U10000"))
    loaded = DEVDAN.load(tmp_path / "m")
    assert loaded.classes_.dtype == object
    assert loaded.classes_.tolist() == model.classes_.tolist()
