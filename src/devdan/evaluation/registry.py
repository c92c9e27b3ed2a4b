"""Models by name, as the command line and the tables know them.

What a model needs is loaded when it is built: the command line lists the names before there is anything to do.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Any

# ruff: noqa: PLC0415 (see above)
Recipe = Callable[[], tuple[Any, dict[str, Any]]]  # a class and its options


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
    from devdan.baselines import PClass, PENsemble

    return PENsemble, {"estimator": PClass(scaling=None)}


def _pensemble_plus() -> tuple[Any, dict[str, Any]]:
    from devdan.baselines import PClass, PENsemblePlus

    return PENsemblePlus, {"estimator": PClass(scaling=None, spread=10.0)}


_FIXED: dict[str, Any] = {"n_hidden": 10, "grow": False, "prune": False}

# name: what it is, and how it is made
VARIANTS: dict[str, tuple[str, Recipe]] = {
    "devdan": ("DEVDAN with its defaults", _devdan()),
    "devdan-quick": ("DEVDAN without rehearsal: one network, which learns from each sample once", _devdan(rehearse=0)),
    "devdan-deep": ("DEVDAN with as many layers as the data need", _devdan(n_layers="auto")),
    "devdan-ensemble": ("an ensemble of DEVDANs at six time scales", _devdan_ensemble),
    "devdan-paper": ("DEVDAN with the paper's settings, on inputs scaled to [0, 1] beforehand", _paper()),
    "ae": ("the paper's autoencoder with ten hidden units", _paper(**_FIXED, masking=0.0)),
    "dae": ("the paper's denoising autoencoder with ten hidden units", _paper(**_FIXED)),
    "devdan-no-generative": ("devdan-paper without the generative phase", _paper(generative=False)),
    "devdan-no-growing": ("devdan-paper without growing", _paper(grow=False)),
    "devdan-no-pruning": ("devdan-paper without pruning", _paper(prune=False)),
}

# The other methods of the paper's Table 1, whose inputs are scaled beforehand too.
BASELINES: dict[str, tuple[str, Recipe]] = {
    "pensemble": ("pENsemble, an evolving ensemble of fuzzy rules", _pensemble),
    "pensemble+": ("pENsemble+, which merges members and chooses which labels it uses", _pensemble_plus),
}


def _river_logreg(seed: int) -> Any:
    from river import linear_model, preprocessing

    return preprocessing.StandardScaler() | linear_model.LogisticRegression()


def _river_hat(seed: int) -> Any:
    from river import tree

    return tree.HoeffdingAdaptiveTreeClassifier(seed=seed)


def _river_arf(seed: int) -> Any:
    from river import forest

    return forest.ARFClassifier(n_models=10, seed=seed)


def _river_srp(seed: int) -> Any:
    from river import ensemble

    return ensemble.SRPClassifier(n_models=10, seed=seed)


def _sklearn_sgd(seed: int) -> Any:
    from sklearn.linear_model import SGDClassifier

    from devdan.evaluation.scaled import Scaled

    return Scaled(SGDClassifier(loss="log_loss", random_state=seed))


def _sklearn_mlp(seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier

    from devdan.evaluation.scaled import Scaled

    return Scaled(MLPClassifier((10,), learning_rate_init=0.01, batch_size=32, random_state=seed))


def _capymoa(name: str, **options: Any) -> Callable[[int], Any]:
    def made(seed: int) -> Any:
        from devdan.evaluation.moa import CapyMOAClassifier

        return CapyMOAClassifier(name, seed, **options)

    return made


# Common alternatives with their default settings, on inputs standardised online if they need it.
PEERS: dict[str, tuple[str, Callable[[int], Any]]] = {
    "river-logreg": (
        "River's logistic regression, scaled inputs; one-vs-rest for more than two classes",
        _river_logreg,
    ),
    "river-hat": ("River's Hoeffding adaptive tree", _river_hat),
    "river-arf": ("River's adaptive random forest of ten trees", _river_arf),
    "river-srp": ("River's streaming random patches of ten trees", _river_srp),
    "capymoa-sgbt": (
        "CapyMOA's streaming gradient boosted trees, a hundred rounds; missing values become the mean",
        _capymoa("StreamingGradientBoostedTrees", fill=True),
    ),
    "capymoa-arf": (
        "CapyMOA's adaptive random forest of a hundred trees",
        _capymoa("AdaptiveRandomForestClassifier", ensemble_size=100),
    ),
    "capymoa-srp": (
        "CapyMOA's streaming random patches of a hundred trees",
        _capymoa("StreamingRandomPatches", ensemble_size=100),
    ),
    "capymoa-levbag": (
        "CapyMOA's leveraging bagging of a hundred trees",
        _capymoa("LeveragingBagging", ensemble_size=100),
    ),
    "sklearn-sgd": ("scikit-learn's logistic regression by SGD, scaled inputs", _sklearn_sgd),
    "sklearn-mlp": (
        "scikit-learn's network with ten hidden units, Adam 0.01, batches of 32, scaled inputs",
        _sklearn_mlp,
    ),
}
_EXTRAS = {"river": "River", "capymoa": "CapyMOA"}  # what peers need, by the beginning of their names
ABOUT = {name: text for name, (text, _) in (VARIANTS | BASELINES | PEERS).items()}
NAMES = tuple(ABOUT)


def near(word: str, known: Iterable[str], are: str) -> str:
    """What to say after a word that is not known: the nearest ones that are, or all of them if none is near.

    >>> near("maskin", ["masking", "grow"], "the options are"), near("x", ["masking", "grow"], "the options are")
    ('did you mean masking?', 'the options are masking, grow.')
    """
    names = list(known)
    if nearest := difflib.get_close_matches(word, names, cutoff=0.4):
        return f"did you mean {' or '.join(nearest)}?"
    return f"{are} {', '.join(names)}." if names else "there are none."


def build(name: str, seed: int = 0, options: dict[str, Any] | None = None, told: dict[str, Any] | None = None) -> Any:
    """Build the model with this name, or the class given as ``module:Class``, with these options.

    ``told`` is what the user says about columns, see :func:`about_columns`; the members of an ensemble are told it.

    >>> build("devdan", seed=3, options={"n_hidden": 5})
    DEVDAN(n_hidden=5, random_state=3)
    >>> build("sklearn.naive_bayes:GaussianNB")
    GaussianNB()
    """
    from devdan.evaluation.learners import check_model
    from devdan.model.estimator import StreamClassifier

    options = options or {}
    if name in PEERS:
        _check_untold(name, told)
        return _peer(name, seed, options)
    if name in VARIANTS or name in BASELINES:
        kind, given = (VARIANTS | BASELINES)[name][1]()
    elif ":" in name:
        kind, given = _imported(name), {}
    else:
        raise ValueError(
            f"there is no model {name!r}; {near(name, NAMES, 'the models are')} Give any other class as module:Class"
        )
    if not callable(kind):
        raise ValueError(f"{name} is not a class, got {kind!r}")
    known = inspect.signature(kind).parameters
    anything = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
    for option in options:
        if option not in known and not anything:
            raise ValueError(f"{name} has no option {option!r}; {near(option, known, 'its options are')}")
    seeds = {option: seed for option in ("random_state", "seed") if option in known}
    try:
        model = kind(**{**seeds, **given, **options})
    except TypeError as error:
        raise ValueError(f"{name} cannot be created: {error}") from error
    check_model(model)
    if isinstance(model, StreamClassifier):
        if told:
            _tell(model, told)
        model.check_options()
    else:
        _check_untold(name, told)
    return model


def build_fleet(
    name: str, seed: int = 0, options: dict[str, Any] | None = None, told: dict[str, Any] | None = None
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
    fleet = DEVDANFleet(DEVDAN(**{"rehearse": 0, **members, **(told or {})}), random_state=seed, **own)
    fleet.check_options()
    return fleet


def _tell(model: Any, told: dict[str, Any]) -> None:
    """Set options about columns: its own, or its members'."""
    if "estimator" in model.get_params(deep=False):
        from sklearn.base import clone

        model.set_params(estimator=clone(model._member).set_params(**told))
    else:
        model.set_params(**told)


def _check_untold(name: str, told: dict[str, Any] | None) -> None:
    if told:
        raise ValueError(
            f"--nominal, --numeric and --dates are for the models of this package; {name} gets each column as numbers"
        )


def about_columns(nominal: list[str], numeric: list[str], dates: list[str]) -> dict[str, Any]:
    """What the user says about columns, as options of a model; dates may be followed by how they are written.

    >>> about_columns(["zip"], [], ["sent=epoch", "born"])
    {'nominal': ['zip'], 'dates': {'sent': 'epoch', 'born': 'iso'}}
    """
    spelled = {}
    for text in dates:
        column, _, how = text.partition("=")
        spelled[column] = how or "iso"
    told: dict[str, Any] = {"nominal": list(nominal), "numeric": list(numeric), "dates": spelled}
    return {name: value for name, value in told.items() if value}


def _peer(name: str, seed: int, options: dict[str, Any]) -> Any:
    if options:
        raise ValueError(f"{name} takes no options; to set options, use module:Class")
    try:
        return PEERS[name][1](seed)
    except ImportError as error:
        extra = name.partition("-")[0]
        if extra not in _EXTRAS:
            raise
        raise ValueError(f"{name} needs {_EXTRAS[extra]}: pip install 'devdan[{extra}]'") from error


def _imported(name: str) -> Any:
    module, _, attribute = name.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")  # a user module in the current folder
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"the model {name!r} cannot be imported: {error}") from error


def parse_options(settings: list[str]) -> dict[str, Any]:
    """Parse options such as ``masking=0.2``.

    >>> parse_options(["masking=0.2", "scaling=none", "grow=false", "scope=adaptive"])
    {'masking': 0.2, 'scaling': None, 'grow': False, 'scope': 'adaptive'}
    """
    options: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"--set takes option=value, got {setting!r}")
        options[name.strip()] = _value(text.strip())
    return options


def _value(text: str) -> Any:
    words = {"none": None, "null": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
