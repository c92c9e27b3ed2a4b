"""Models by name, as the command line and the tables know them.

What a model needs is imported when it is built, so that listing the names costs nothing.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

# ruff: noqa: PLC0415 (see above)
Recipe = Callable[[], tuple[Callable[..., Any], dict[str, Any]]]  # a class or another function, and its options
_EXTRAS = {
    "river": "River",
    "capymoa": "CapyMOA",
    "lightgbm": "LightGBM",
}  # what peers need, by the beginning of their names


@dataclass(frozen=True)
class NamedModel:
    """What a model is, and how it is made."""

    about: str
    recipe: Recipe
    is_peer: bool = False  # of another package, with default settings: it takes no options


def _devdan(**options: Any) -> Recipe:
    def recipe() -> tuple[Any, dict[str, Any]]:
        from devdan.model.devdan import DEVDAN

        return DEVDAN, options

    return recipe


def _paper(**options: Any) -> Recipe:
    def recipe() -> tuple[Any, dict[str, Any]]:
        from devdan.model import options as table
        from devdan.model.devdan import DEVDAN

        return DEVDAN, {**table.PAPER, **options}

    return recipe


def _devdan_ensemble() -> tuple[Any, dict[str, Any]]:
    from devdan.model.ensemble import DEVDANEnsemble

    return DEVDANEnsemble, {}


def _pensemble() -> tuple[Any, dict[str, Any]]:
    from devdan.bench.pclass import PClass
    from devdan.bench.pensemble import PENsemble

    return PENsemble, {"estimator": PClass(scaling=None)}


def _pensemble_plus() -> tuple[Any, dict[str, Any]]:
    from devdan.bench.pclass import PClass
    from devdan.bench.pensemble import PENsemblePlus

    return PENsemblePlus, {"estimator": PClass(scaling=None, spread=10.0)}


def _river_logreg() -> tuple[Any, dict[str, Any]]:
    from river import linear_model, preprocessing

    return lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(), {}


def _river(module: str, kind: str, **options: Any) -> Recipe:
    return lambda: (getattr(importlib.import_module(f"river.{module}"), kind), options)


def _sklearn_sgd() -> tuple[Any, dict[str, Any]]:
    from sklearn.linear_model import SGDClassifier

    from devdan.bench.peers import StandardizedClassifier

    return lambda seed: StandardizedClassifier(SGDClassifier(loss="log_loss", random_state=seed)), {}


def _sklearn_mlp() -> tuple[Any, dict[str, Any]]:
    from sklearn.neural_network import MLPClassifier

    from devdan.bench.peers import StandardizedClassifier

    options: dict[str, Any] = {"learning_rate_init": 0.01, "batch_size": 32}
    return lambda seed: StandardizedClassifier(MLPClassifier((10,), random_state=seed, **options)), {}


def _lightgbm(window: int) -> Recipe:
    def recipe() -> tuple[Any, dict[str, Any]]:
        from lightgbm import LGBMClassifier

        from devdan.bench.peers import WindowClassifier

        return lambda seed: WindowClassifier(LGBMClassifier(random_state=seed, n_jobs=1, verbose=-1), window), {}

    return recipe


def _logreg(window: int) -> Recipe:
    def recipe() -> tuple[Any, dict[str, Any]]:
        from sklearn.impute import SimpleImputer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        from devdan.bench.peers import WindowClassifier

        filled = SimpleImputer(keep_empty_features=True)
        model = make_pipeline(filled, StandardScaler(), LogisticRegression(max_iter=1000))
        return lambda: WindowClassifier(model, window), {}

    return recipe


def _capymoa(name: str, **options: Any) -> Recipe:
    def recipe() -> tuple[Any, dict[str, Any]]:
        from devdan.bench.peers import CapyMOAClassifier

        return CapyMOAClassifier, {"name": name, **options}

    return recipe


_WINDOWS = (1000, 5000, 20_000)
_FIXED: dict[str, Any] = {"n_hidden": 10, "grow": False, "prune": False}

MODELS: dict[str, NamedModel] = {
    "devdan": NamedModel("DEVDAN with its defaults", _devdan()),
    "devdan-quick": NamedModel(
        "DEVDAN without replay: one network, which learns from each sample once", _devdan(rehearse=0)
    ),
    "devdan-ensemble": NamedModel("an ensemble of DEVDANs at six time scales", _devdan_ensemble),
    "devdan-paper": NamedModel("DEVDAN with the paper's settings, on inputs scaled to [0, 1] beforehand", _paper()),
    "devdan-paper-constant": NamedModel(
        "devdan-paper with a constant learning rate of 0.015", _paper(annealing=None, learning_rate=0.015)
    ),
    "ae": NamedModel("the paper's autoencoder with ten hidden units", _paper(**_FIXED, masking=0.0)),
    "dae": NamedModel("the paper's denoising autoencoder with ten hidden units", _paper(**_FIXED)),
    "devdan-no-generative": NamedModel("devdan-paper without the generative phase", _paper(generative=False)),
    "devdan-no-growing": NamedModel("devdan-paper without growing", _paper(grow=False)),
    "devdan-no-pruning": NamedModel("devdan-paper without pruning", _paper(prune=False)),
    # the other methods of the paper's Table 1, on inputs scaled beforehand too
    "pensemble": NamedModel("pENsemble, an evolving ensemble of fuzzy rules", _pensemble),
    "pensemble+": NamedModel("pENsemble+, which merges members and chooses which labels it uses", _pensemble_plus),
    # common alternatives with their default settings, on inputs standardised online if they need it
    "river-logreg": NamedModel(
        "River's logistic regression, scaled inputs; one-vs-rest for more than two classes", _river_logreg, is_peer=True
    ),
    "river-hat": NamedModel(
        "River's Hoeffding adaptive tree", _river("tree", "HoeffdingAdaptiveTreeClassifier"), is_peer=True
    ),
    "river-arf": NamedModel(
        "River's adaptive random forest of ten trees", _river("forest", "ARFClassifier", n_models=10), is_peer=True
    ),
    "river-srp": NamedModel(
        "River's streaming random patches of ten trees", _river("ensemble", "SRPClassifier", n_models=10), is_peer=True
    ),
    "capymoa-sgbt": NamedModel(
        "CapyMOA's streaming gradient boosted trees, a hundred rounds; missing values become the mean",
        _capymoa("StreamingGradientBoostedTrees", fill=True),
        is_peer=True,
    ),
    "capymoa-arf": NamedModel(
        "CapyMOA's adaptive random forest of a hundred trees",
        _capymoa("AdaptiveRandomForestClassifier", ensemble_size=100),
        is_peer=True,
    ),
    "capymoa-srp": NamedModel(
        "CapyMOA's streaming random patches of a hundred trees",
        _capymoa("StreamingRandomPatches", ensemble_size=100),
        is_peer=True,
    ),
    "capymoa-levbag": NamedModel(
        "CapyMOA's leveraging bagging of a hundred trees",
        _capymoa("LeveragingBagging", ensemble_size=100),
        is_peer=True,
    ),
    "sklearn-sgd": NamedModel("scikit-learn's logistic regression by SGD, scaled inputs", _sklearn_sgd, is_peer=True),
    "sklearn-mlp": NamedModel(
        "scikit-learn's network with ten hidden units, Adam 0.01, batches of 32, scaled inputs",
        _sklearn_mlp,
        is_peer=True,
    ),
    # models that cannot learn from streams, as people use them instead
    **{
        f"{name}-window-{n}": NamedModel(f"{about}, trained anew after each chunk on the latest {n:,}", make(n), True)
        for name, about, make in (
            ("lightgbm", "LightGBM's boosted trees", _lightgbm),
            ("logreg", "scikit-learn's logistic regression on scaled inputs", _logreg),
        )
        for n in _WINDOWS
    },
}
NAMES = tuple(MODELS)


def near(word: str, known: Iterable[str], are: str) -> str:
    """A hint after an unknown word: the known words nearest to it, or all of them if none is near.

    >>> near("maskin", ["masking", "grow"], "the options are"), near("x", ["masking", "grow"], "the options are")
    ('did you mean masking?', 'the options are masking, grow.')
    """
    names = list(known)
    if nearest := difflib.get_close_matches(word, names, cutoff=0.4):
        return f"did you mean {' or '.join(nearest)}?"
    return f"{are} {', '.join(names)}." if names else "there are none."


def build(
    name: str, seed: int = 0, options: dict[str, Any] | None = None, columns: dict[str, Any] | None = None
) -> Any:
    """Build the model with this name, or the class given as ``module:Class``, with these options.

    ``columns`` are options about columns, see :func:`about_columns`; in an ensemble, they are its members'.

    >>> build("devdan", seed=3, options={"n_hidden": 5})
    DEVDAN(n_hidden=5, random_state=3)
    >>> build("sklearn.naive_bayes:GaussianNB")
    GaussianNB()
    """
    from devdan.evaluation.adapters import check_model
    from devdan.model.estimator import StreamClassifier

    options = options or {}
    if options and name in MODELS and MODELS[name].is_peer:
        raise ValueError(f"{name} takes no options; to set options, use module:Class")
    kind, given = _recipe(name)
    known = inspect.signature(kind).parameters
    for option in options:
        if not _takes(kind, option):
            raise ValueError(f"{name} has no option {option!r}; {near(option, known, 'its options are')}")
    seeds = {option: seed for option in ("random_state", "seed") if option in known}
    try:
        with _named_extra(name):
            model = kind(**{**seeds, **given, **options})
    except TypeError as error:
        raise ValueError(f"{name} cannot be created: {error}") from error
    check_model(model)
    if isinstance(model, StreamClassifier):
        set_columns(model, columns or {})
    else:
        _refuse_columns(name, columns)
    return model


def options_taken(name: str, settings: Sequence[str]) -> tuple[str, ...]:
    """Those of some options, as they are typed, that a model takes; raises an error if it cannot be made here.

    >>> options_taken("devdan", ["masking=0.2", "penalty=0.4"]), options_taken("sklearn-sgd", ["masking=0.2"])
    (('masking=0.2',), ())
    """
    kind, _ = _recipe(name)
    if name in MODELS and MODELS[name].is_peer:
        return ()
    return tuple(text for text in settings if all(_takes(kind, option) for option in parse_options([text])))


def _recipe(name: str) -> tuple[Callable[..., Any], dict[str, Any]]:
    """What the model with this name is made with: a class or another function, and its options."""
    if name in MODELS:
        with _named_extra(name):
            return MODELS[name].recipe()
    if ":" not in name:
        raise ValueError(
            f"there is no model {name!r}; {near(name, NAMES, 'the models are')} Give any other class as module:Class"
        )
    kind = _imported(name)
    if not callable(kind):
        raise ValueError(f"{name} is not a class, got {kind!r}")
    return kind, {}


def _takes(kind: Callable[..., Any], option: str) -> bool:
    known = inspect.signature(kind).parameters
    return option in known or any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())


def build_fleet(
    name: str, seed: int = 0, options: dict[str, Any] | None = None, columns: dict[str, Any] | None = None
) -> Any:
    """A fleet whose networks have these options, which may also be the fleet's own.

    >>> build_fleet("devdan", seed=3, options={"masking": 0.2, "prior": False})
    DEVDANFleet(estimator=DEVDAN(masking=0.2, rehearse=0), prior=False, random_state=3)
    """
    from devdan.fleet.fleet import DEVDANFleet
    from devdan.model import options as table
    from devdan.model.devdan import DEVDAN

    if name not in ("devdan", "devdan-quick"):
        raise ValueError(f"--key makes a fleet of DEVDANs, so that --model must be devdan, got {name!r}")
    options = options or {}
    own = {row.name: options[row.name] for row in table.FLEET if row.name in options}
    known = [row.name for row in (*table.NETWORK, *table.ENCODING, *table.FLEET)]
    for option in options:
        if option not in known:
            raise ValueError(f"a fleet has no option {option!r}; {near(option, known, 'its options are')}")
    for option, value in own.items():
        table.OPTIONS[option].check(value)
    members = {option: value for option, value in options.items() if option not in own}
    fleet = DEVDANFleet(DEVDAN(**{"rehearse": 0, **members, **(columns or {})}), random_state=seed, **own)
    fleet.check_options()
    return fleet


def set_columns(model: Any, columns: dict[str, Any]) -> None:
    """Set options about columns: the model's, or its members'. Raises an error unless all options are in range."""
    if not columns:
        pass
    elif "estimator" in model.get_params(deep=False):
        from sklearn.base import clone

        model.set_params(estimator=clone(model._member).set_params(**columns))
    else:
        model.set_params(**columns)
    model.check_options()


def _refuse_columns(name: str, columns: dict[str, Any] | None) -> None:
    if columns:
        raise ValueError(
            f"--nominal, --numeric and --dates are for the models of this package; {name} gets each column as numbers"
        )


def about_columns(nominal: list[str], numeric: list[str], dates: list[str]) -> dict[str, Any]:
    """Options about columns from the command line; a date may be followed by its format.

    >>> about_columns(["zip"], [], ["sent=epoch", "born"])
    {'nominal': ['zip'], 'dates': {'sent': 'epoch', 'born': 'iso'}}
    """
    spelled = {}
    for text in dates:
        column, _, how = text.partition("=")
        spelled[column] = how or "iso"
    columns: dict[str, Any] = {"nominal": list(nominal), "numeric": list(numeric), "dates": spelled}
    return {name: value for name, value in columns.items() if value}


@contextmanager
def _named_extra(name: str) -> Iterator[None]:
    """If the package of a peer is not installed, say which extra installs it."""
    try:
        yield
    except (ImportError, OSError) as error:  # OSError: LightGBM without the system's OpenMP library
        extra = name.partition("-")[0]
        if extra not in _EXTRAS:
            raise
        if isinstance(error, OSError):
            raise ValueError(f"{name} cannot be loaded: {error}") from error
        raise ValueError(f"{name} needs {_EXTRAS[extra]}: pip install 'devdan[{extra}]'") from error


def _imported(name: str) -> Any:
    module, _, attribute = name.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")  # a user module in the current folder
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"the model {name!r} cannot be imported: {error}") from error


def parse_options(settings: Sequence[str]) -> dict[str, Any]:
    """Parse options such as ``masking=0.2``.

    >>> parse_options(["masking=0.2", "scaling=none", "grow=false", "scope=adaptive"])
    {'masking': 0.2, 'scaling': None, 'grow': False, 'scope': 'adaptive'}
    >>> parse_options(['decide={"fraud": {"missed": 50}}'])
    {'decide': {'fraud': {'missed': 50}}}
    """
    options: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"--set takes option=value, got {setting!r}")
        options[name.strip()] = _value(text.strip())
    return options


def _value(text: str) -> Any:
    if text.startswith(("{", "[")):
        try:
            return json.loads(text)
        except ValueError as error:
            raise ValueError(f"--set takes lists and dicts in JSON, got {text!r}: {error}") from None
    words = {"none": None, "null": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
