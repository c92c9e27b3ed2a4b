"""The options of a model, a row each: default, range, the kernel's word for it, and what users are told about it.

Checks, the kernel's settings, what a model file keeps, docstrings, the adapters' signatures and the table in
docs/options.md follow from these rows. A new option needs a row here, an argument of ``DEVDAN`` and, if it is about
learning, a setting in the kernel.
"""

from __future__ import annotations

import inspect
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from operator import is_
from typing import Any, TypedDict, TypeVar

import numpy as np

from devdan import kernel
from devdan.arrays import Floats
from devdan.encoding.encoding import Instructions
from devdan.encoding.values import is_date_format
from devdan.kernel.state import LARGEST_LEARNED, MOST_REPLAYS
from devdan.model.classes import LARGEST_WEIGHT
from devdan.model.decision import LIKELIEST, REQUIREMENT, is_decision, remedy
from devdan.model.scales import QUICK, REPLAYING, is_scales, settings_at

_SCALINGS = {None: kernel.UNSCALED, "minmax": kernel.MINMAX, "standard": kernel.STANDARD}
_SCOPES = {"fixed": 0.0, "adaptive": 1.0}
_OPTIMIZERS = {"momentum": 0.0, "adaptive": 1.0}
_WEIGHINGS = {None: kernel.ALIKE, "balanced": kernel.BALANCED}  # or a dict
_MOST_CATEGORIES, _MOST_LABELS = 10_000, 1e9


@dataclass(frozen=True)
class Option:
    """What there is to know of an option."""

    name: str
    default: Any
    holds: Callable[[Any], bool]  # whether a value is in its range
    range: str  # in words, as in "must be …"
    about: str
    kind: str  # in docstrings, with its default
    word: str | None = None  # the kernel's setting
    value: Callable[[Any], float] = float  # of that
    is_fixed: bool = False  # must stay what it was once the model has learned
    is_online: bool = True  # the adapters, which take one sample at a time, have it
    remedy: Callable[[Any], str] = lambda _: ""  # what else to say of a value that is not in its range

    def check(self, value: Any) -> None:
        """Raise a ``ValueError`` that names the option unless the value is in its range."""
        holds = self.holds(value)
        require(holds, self.name, self.range, value, "" if holds else self.remedy(value))


# --- Ranges ------------------------------------------------------------------------------------------------------


def is_count(value: Any) -> bool:
    """Whether it is an integer of at least 1."""
    return _is_whole(value) and int(value) >= 1


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))


def is_real(value: Any) -> bool:
    """Whether it is a finite number."""
    number: Any = value
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_)) and -math.inf < number < math.inf


def is_among(value: Any, choices: Iterable[Any]) -> bool:
    """Whether it is one of the choices (strings, or None if that is a choice)."""
    return (value is None and None in choices) or (isinstance(value, str) and value in choices)


def _is_switch(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_))


def _is_below_one(value: Any) -> bool:
    return is_real(value) and 0 <= value < 1


def _is_rate(value: Any) -> bool:
    return is_real(value) and 0 <= value <= 1


def _is_weighing(value: Any) -> bool:
    if isinstance(value, dict):
        return all(is_real(weight) and 0 < weight <= LARGEST_WEIGHT for weight in value.values())
    return is_among(value, _WEIGHINGS)


def is_names(value: Any) -> bool:
    """Whether it is a list of names, or None."""
    return value is None or (isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value))


def _is_dates(value: Any) -> bool:
    if isinstance(value, dict):
        return is_names(list(value)) and all(isinstance(how, str) and is_date_format(how) for how in value.values())
    return is_names(value)


def instructions(chosen: dict[str, Any]) -> Instructions:
    """What the options say about columns."""
    return Instructions(**{option.name: chosen[option.name] for option in ENCODING})


def require(holds: bool, name: str, requirement: str, value: Any, advice: str = "") -> None:
    """Raise a ``ValueError`` that names an option and its requirement, and ends with the advice, unless it holds."""
    if not holds:
        raise ValueError(f"{name} must be {requirement}, got {value!r}{advice}")


# --- The table ---------------------------------------------------------------------------------------------------


def _switch(name: str, about: str, default: bool = True, **more: Any) -> Option:
    return Option(name, default, _is_switch, "True or False", about, f"bool, default={default}", **more)


def _rate(name: str, default: float, word: str, about: str) -> Option:
    return Option(name, default, _is_rate, "in [0, 1]", about, f"float in [0, 1], default={default}", word)


def _share(name: str, default: float, about: str, **more: Any) -> Option:
    kind = f"float in [0, 1), default={default}"
    return Option(name, default, _is_below_one, "in [0, 1)", about, kind, word=name, **more)


NETWORK = (
    Option(
        "n_hidden", 1, is_count, "an integer of at least 1",
        "Initial number of hidden units.",
        "int, default=1", word="start", is_fixed=True,
    ),
    _share(
        "masking", 0.1,
        "Share of the features that the generative phase masks (at least one feature); 0 gives a plain autoencoder.",
    ),
    Option(
        "scaling", "standard", lambda value: is_among(value, _SCALINGS), "'minmax', 'standard' or None",
        "How features are scaled, learned online from the samples seen so far; ``None`` is for data in [0, 1].",
        '{"standard", "minmax", None}, default="standard"',
        word="scaling", value=lambda value: _SCALINGS[value], is_fixed=True,
    ),
    _switch("shuffle", "Visit the samples of a chunk in random order.", is_online=False),
    _switch(
        "interleave",
        "In ``partial_fit``, alternate between observing and teaching sample by sample instead of chunk by chunk.",
        default=False, is_online=False,
    ),
    _switch("generative", "Whether unlabelled samples train the autoencoder: the generative phase.", word="generates"),
    _switch("grow", "Whether hidden units are added.", word="grows"),
    _switch("prune", "Whether hidden units are removed.", word="prunes"),
    Option(
        "scope", "fixed", lambda value: is_among(value, _SCOPES), "'fixed' or 'adaptive'",
        "Range of a new unit's random weights: fixed, or widened until the unit helps.",
        '{"fixed", "adaptive"}, default="fixed"',
        word="adaptive_scope", value=lambda value: _SCOPES[value], is_online=False,
    ),
    _rate("generative_learning_rate", 0.0003, "generative_rate", "Step size of the generative phase."),
    _rate("learning_rate", 0.04, "discriminative_rate", "Step size of the discriminative phase."),
    Option(
        "annealing", None, lambda value: value is None or (is_real(value) and 0 < value <= _MOST_LABELS),
        f"None or a number above 0 and at most {_MOST_LABELS:,.0f}",
        "Labels over which the discriminative learning rate falls: the step of label t is ``learning_rate / sqrt(1 + "
        "t / annealing)``. ``None`` keeps it constant.",
        "float, default=None", word="annealing", value=lambda value: float(value or 0.0), is_online=False,
    ),
    Option(
        "optimizer", "adaptive", lambda value: is_among(value, _OPTIMIZERS), "'adaptive' or 'momentum'",
        "Optimizer of the discriminative phase: a learning rate that adapts to each unit, or momentum.",
        '{"adaptive", "momentum"}, default="adaptive"',
        word="adaptive_rate", value=lambda value: _OPTIMIZERS[value], is_fixed=True, is_online=False,
    ),
    _share("momentum", 0.9, 'Momentum of the discriminative phase, if ``optimizer="momentum"``.', is_online=False),
    _share(
        "averaging", 0.998,
        "Decay, per labelled sample, of the exponential averages of the weights. Predictions mix the current and the "
        "averaged weights by how well each did recently; 0 turns averaging off.",
    ),
    Option(
        "class_weight", None, _is_weighing,
        f"None, 'balanced' or a dict of numbers greater than 0 and at most {LARGEST_WEIGHT:,.0f}",
        'Weights of the classes in the loss of the discriminative phase. ``"balanced"`` weighs a class by how rare it '
        "was among the latest 10,000 labels or so; a dict gives weights by class, 1 if a class is not in it.",
        '{"balanced", None} or dict, default=None',
        word="weighing", value=lambda value: kernel.GIVEN if isinstance(value, dict) else _WEIGHINGS[value],
    ),
    Option(
        "rehearse", REPLAYING.replays,
        lambda value: _is_whole(value) and 0 <= value <= MOST_REPLAYS,
        f"an integer from 0 to {MOST_REPLAYS:,}",
        "How many of the latest 1,000 labelled samples are replayed for each new one, by a second network, which "
        "starts from 24 hidden units. Predictions mix both networks by how well each did recently. 0 leaves it out: "
        "less accurate on short or curved streams, but more than twice as fast.",
        f"int, default={REPLAYING.replays}", is_fixed=True,
    ),
    _switch(
        "calibrate",
        "Whether probabilities are made as sure as predictions turned out right, by a temperature that follows recent "
        "labels. Labels are predicted as without it.",
        word="calibrates",
    ),
    Option(
        "decide", LIKELIEST, is_decision, REQUIREMENT,
        "Which label is predicted: the likeliest; or the one of least expected cost, if mistakes cost different "
        "amounts; or a class whose threshold is reached. A class costs so much each time it is ``missed``, and each "
        "time another is called it (``false``), 1 if that is left out; or ``costs`` has pairs: the true class, then "
        "the one it is called. A threshold is the one of best F1 (``'f1'``), or of at least this ``recall`` or "
        "``precision``, on the latest 5,000 labels; or the class's mean probability, so that rare classes are found "
        "as often as others (``'balanced'``); or it follows a ``budget``, the share of samples that may be called "
        "the class, which is kept ``over`` any 5,000 unless told otherwise; or it is given. Probabilities and learning "
        "do not depend on it.",
        'str or dict, default="likeliest"', remedy=remedy,
    ),
)  # fmt: skip

ENCODING = (
    Option(
        "nominal", None, is_names, "a list of column names or None",
        "Columns that hold categories although they look like numbers, dates or ids.",
        "list of str, default=None", is_fixed=True,
    ),
    Option(
        "numeric", None, is_names, "a list of column names or None",
        "Columns that hold numbers: texts are read as numbers, dates as seconds, and one that only ever rises is kept.",
        "list of str, default=None", is_fixed=True,
    ),
    Option(
        "dates", None, _is_dates, "a list of column names, a dict from names to how dates are written ('iso', "
        "'dd/mm/yyyy', '%d.%m.%y', 'epoch', 'epoch-ms'), or None",
        "Columns that hold dates, and if they are not in ISO 8601, how they are written: a dict such as "
        '``{"born": "dd/mm/yyyy", "sent": "epoch"}``.',
        "list of str or dict, default=None", is_fixed=True,
    ),
    Option(
        "drop", None, is_names, "a list of column names or None",
        "Columns that are left out.",
        "list of str, default=None", is_fixed=True,
    ),
    Option(
        "max_categories", 64, lambda value: is_count(value) and value <= _MOST_CATEGORIES,
        f"an integer from 1 to {_MOST_CATEGORIES:,}",
        "How many values of a nominal column have an input of their own; further ones share a quarter as many.",
        "int, default=64", is_fixed=True,
    ),
)  # fmt: skip

ENSEMBLE = (
    Option(
        "scales", None, lambda value: value is None or is_scales(value),
        "None or a list of (n_hidden, replays, reach, fields): integers, n_hidden at least 1, "
        "reach at least 1 unless fields and replays are 0, and fields 0 or at least 2",
        "The members: hidden units to start from, samples replayed for each new one, how many of the latest labelled "
        "samples these are drawn from, and the fields of a feature through which half of the units see it. ``None`` is "
        "``devdan.model.scales.SCALES``.",
        "list of tuples, default=None", is_fixed=True,
    ),
    Option(
        "n_jobs", -1,
        lambda value: value is None or (_is_whole(value) and value != 0), "an integer other than 0",
        "Number of threads; -1 means one per core. The result does not depend on it.",
        "int, default=-1",
    ),
    NETWORK[-1],
)  # fmt: skip

FLEET = (
    _switch(
        "prior",
        "Whether a shared network learns from all keys, and new keys start as its copy; else from nothing.",
    ),
    *ENSEMBLE[-2:],
    Option(
        "max_in_memory", None, lambda value: value is None or is_count(value), "an integer of at least 1 or None",
        "How many keys stay in memory, or as many as the latest call had; those not used for longest go to the store.",
        "int, default=None",
    ),
)  # fmt: skip

OPTIONS = {option.name: option for option in (*NETWORK, *ENCODING, *ENSEMBLE, *FLEET)}
NAMES = tuple(option.name for option in (*NETWORK, *ENCODING))
ONLINE = tuple(option.name for option in (*NETWORK, *ENCODING) if option.is_online)
PAPER: dict[str, Any] = {  # what distinguishes the paper's settings from the defaults
    "scaling": None,
    "optimizer": "momentum",
    "averaging": 0.0,
    "annealing": 500.0,
    "rehearse": 0,
    "calibrate": False,
}


def check(chosen: dict[str, Any]) -> None:
    """Raise a ``ValueError`` that names the first option that is out of range."""
    for name, value in chosen.items():
        OPTIONS[name].check(value)
    if "nominal" in chosen:
        instructions(chosen)  # no column may be named twice


def settings(chosen: dict[str, Any]) -> dict[str, float]:
    """Checked options as the kernel's settings, for a network that does not replay."""
    found = ((OPTIONS[name], value) for name, value in chosen.items())
    given = {option.word: option.value(value) for option, value in found if option.word}
    return settings_at(QUICK) | given | {"clips": float(given["scaling"] == kernel.STANDARD)}


def defaults() -> dict[str, Any]:
    """The value of each option where nothing is chosen."""
    return {name: OPTIONS[name].default for name in NAMES}


def check_leaves_decision(owner: str, member: Any) -> None:
    """Raise a ``ValueError`` if a member of several models decides for itself."""
    if member.decide != OPTIONS["decide"].default:
        raise ValueError(f"estimator must leave decide to {owner}, got {member!r}")


def differ(chosen: dict[str, Any], before: dict[str, Any]) -> bool:
    """Whether an option may have changed; almost free, since it only looks whether they are the same objects."""
    return not all(map(is_, chosen.values(), before.values()))


def check_fixed(chosen: dict[str, Any], before: dict[str, Any]) -> None:
    """Raise a ``ValueError`` that names an option which must stay what it was once the model has learned."""
    for name in fixed(chosen):
        if not same(chosen[name], before[name]):
            raise ValueError(f"{name} must stay {before[name]!r} once the model has learned; call fit to start again")


def fixed(chosen: dict[str, Any]) -> list[str]:
    """Those that must stay what they were once the model has learned."""
    return [name for name in chosen if OPTIONS[name].is_fixed]


def same(value: Any, other: Any) -> bool:
    """Whether two values of an option mean the same: tuples are lists in a model file."""
    return bool(_with_lists(value) == _with_lists(other))


def _with_lists(value: Any) -> Any:
    return [_with_lists(one) for one in value] if isinstance(value, (list, tuple)) else value


# --- What users are told -----------------------------------------------------------------------------------------

T = TypeVar("T", bound=type)
F = TypeVar("F", bound=Callable[..., Any])


def documented(kind: T) -> T:
    """Fill the places of a class's docstring that are for options, such as ``{options}``, from the table."""
    kind.__doc__ = filled(kind.__doc__ or "")
    return kind


def filled(docstring: str) -> str:
    """A docstring with its options.

    >>> print(filled("    {fleet options}").splitlines()[0])
        prior : bool, default=True
    """
    return _PLACE.sub(lambda found: _entries(_PLACES[found[2]], found[1]), docstring)


def _entries(rows: Iterable[Option], indent: str) -> str:
    """The options as NumPy's docstrings have parameters."""
    lines: list[str] = []
    for row in rows:
        lines.append(f"{indent}{row.name} : {row.kind}")
        lines += textwrap.wrap(row.about, 120, initial_indent=f"{indent}    ", subsequent_indent=f"{indent}    ")
    return "\n".join(lines)


_PLACES = {
    "options": (*NETWORK, *ENCODING),
    "online options": tuple(row for row in (*NETWORK, *ENCODING) if row.is_online),
    "ensemble options": ENSEMBLE,
    "fleet options": FLEET,
}
_PLACE = re.compile(rf"^( *)\{{({'|'.join(_PLACES)})\}}$", re.MULTILINE)


class OnlineOptions(TypedDict, total=False):
    """The options of the adapters, for type checkers and editors."""

    n_hidden: int
    masking: float
    scaling: str | None
    generative: bool
    grow: bool
    prune: bool
    generative_learning_rate: float
    learning_rate: float
    averaging: float
    class_weight: str | dict[Any, float] | None
    rehearse: int
    calibrate: bool
    decide: str | Mapping[Any, Any]
    nominal: Sequence[str] | None
    numeric: Sequence[str] | None
    dates: Sequence[str] | Mapping[str, str] | None
    drop: Sequence[str] | None
    max_categories: int


def takes_options(method: F) -> F:
    """Let a method with ``**chosen`` show in its signature which options that may be, for help and for cloning."""
    shown = inspect.signature(method)
    named = [one for one in shown.parameters.values() if one.kind is not one.VAR_KEYWORD]
    rows = [
        inspect.Parameter(row.name, inspect.Parameter.KEYWORD_ONLY, default=row.default)
        for row in _PLACES["online options"]
    ]
    method.__signature__ = shown.replace(parameters=[*named, *rows])  # type: ignore[attr-defined]
    return method


def online(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """All options of an adapter, as chosen or by default; a ``TypeError`` names one that does not exist."""
    for name in chosen:
        if name not in ONLINE:
            raise TypeError(f"{name!r} is not an option; there are {', '.join(ONLINE)}")
    return {name: chosen.get(name, OPTIONS[name].default) for name in ONLINE}


def markdown() -> str:
    """The options as a table for the documentation."""
    rows = ["| option | default | must be | what it does |", "|---|---|---|---|"]
    for option in (*NETWORK, *ENCODING):
        about = option.about.replace("``", "`")
        rows.append(f"| `{option.name}` | `{option.default!r}` | {option.range} | {about} |")
    return "\n".join(rows) + "\n"


# --- Weights to start from ---------------------------------------------------------------------------------------

_SHAPES = {
    "encoder": ("n_features", "n_hidden"),
    "encoder_bias": ("n_hidden",),
    "decoder_bias": ("n_features",),
    "output": ("n_hidden", "n_classes"),
    "output_bias": ("n_classes",),
}


def check_initial_weights(weights: Any, n_features: int, n_classes: int) -> dict[str, Floats]:
    """The initial weights as arrays; the model chooses those that are not given, except the encoder."""
    if not isinstance(weights, dict) or "encoder" not in weights or not set(weights) <= set(_SHAPES):
        got = list(weights) if isinstance(weights, dict) else weights
        raise ValueError(f"initial_weights must be a dict with 'encoder' and any of {list(_SHAPES)[1:]}, got {got!r}")
    arrays = {name: np.asarray(value, dtype=np.float64) for name, value in weights.items()}
    n_hidden = arrays["encoder"].shape[1] if arrays["encoder"].ndim == 2 else 0
    sizes = {"n_features": n_features, "n_hidden": n_hidden, "n_classes": n_classes}
    for name, array in arrays.items():
        shape = tuple(sizes[size] for size in _SHAPES[name])
        if array.shape != shape or n_hidden < 1:
            remedy = "" if "output" not in name else "; start with partial_fit or teach, and pass classes= there"
            raise ValueError(
                f"initial_weights[{name!r}] must have shape ({', '.join(_SHAPES[name])}), here {shape}, got "
                f"{array.shape}{remedy}"
            )
        if not (np.abs(array) <= LARGEST_LEARNED).all():
            raise ValueError(f"initial_weights[{name!r}] must be finite, and at most {LARGEST_LEARNED}")
    return arrays
