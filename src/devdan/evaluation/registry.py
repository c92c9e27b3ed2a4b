"""Models by name, as the command line and the tables know them."""

from __future__ import annotations

import difflib
import importlib
import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from devdan.baselines import PClass, PENsemble, PENsemblePlus
from devdan.evaluation.learners import check_model
from devdan.model.devdan import DEVDAN, options_of_the_paper
from devdan.model.ensemble import DEVDANEnsemble
from devdan.model.estimator import StreamClassifier

_PAPER = options_of_the_paper()
_FIXED: dict[str, Any] = {**_PAPER, "n_hidden": 10, "grow": False, "prune": False}

# name: what it is, and its options
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "devdan": ("DEVDAN as you get it by default", {}),
    "devdan-deep": ("DEVDAN with as many layers as the data ask for", {"n_layers": "auto"}),
    "devdan-ensemble": ("an ensemble of ten DEVDANs", {}),
    "devdan-paper": ("DEVDAN with the paper's settings, on inputs scaled to [0, 1] beforehand", _PAPER),
    "ae": ("the paper's autoencoder with ten hidden units", {**_FIXED, "masking": 0.0}),
    "dae": ("the paper's denoising autoencoder with ten hidden units", _FIXED),
    "devdan-no-generative": ("devdan-paper without its generative phase", {**_PAPER, "generative": False}),
    "devdan-no-growing": ("devdan-paper that never grows", {**_PAPER, "grow": False}),
    "devdan-no-pruning": ("devdan-paper that never prunes", {**_PAPER, "prune": False}),
}

# The other methods of the paper's Table 1, whose inputs are scaled beforehand too.
BASELINES: dict[str, tuple[str, dict[str, Any]]] = {
    "pensemble": ("pENsemble, an evolving ensemble of fuzzy rules", {"estimator": PClass(scaling=None)}),
    "pensemble+": (
        "pENsemble+, which merges members and chooses its labels",
        {"estimator": PClass(scaling=None, spread=10.0)},
    ),
}
_KINDS = {"devdan-ensemble": DEVDANEnsemble, "pensemble": PENsemble, "pensemble+": PENsemblePlus}  # others are DEVDANs


def _river_logreg(seed: int) -> Any:
    from river import linear_model, preprocessing  # noqa: PLC0415 (an optional extra)

    return preprocessing.StandardScaler() | linear_model.LogisticRegression()


def _river_hat(seed: int) -> Any:
    from river import tree  # noqa: PLC0415

    return tree.HoeffdingAdaptiveTreeClassifier(seed=seed)


def _river_arf(seed: int) -> Any:
    from river import forest  # noqa: PLC0415

    return forest.ARFClassifier(n_models=10, seed=seed)


def _river_srp(seed: int) -> Any:
    from river import ensemble  # noqa: PLC0415

    return ensemble.SRPClassifier(n_models=10, seed=seed)


def _sklearn_sgd(seed: int) -> Any:
    return Scaled(SGDClassifier(loss="log_loss", random_state=seed))


def _sklearn_mlp(seed: int) -> Any:
    return Scaled(MLPClassifier((10,), learning_rate_init=0.01, batch_size=32, random_state=seed))


# What users would pick instead, with its makers' settings, on inputs standardised online where it needs them.
PEERS: dict[str, tuple[str, Callable[[int], Any]]] = {
    "river-logreg": (
        "River's logistic regression, scaled; of more than two classes, one against the rest",
        _river_logreg,
    ),
    "river-hat": ("River's Hoeffding adaptive tree", _river_hat),
    "river-arf": ("River's adaptive random forest of ten trees", _river_arf),
    "river-srp": ("River's streaming random patches of ten trees", _river_srp),
    "sklearn-sgd": ("scikit-learn's logistic regression by SGD, scaled", _sklearn_sgd),
    "sklearn-mlp": ("scikit-learn's network of ten hidden units, Adam 0.01, batches of 32, scaled", _sklearn_mlp),
}
ABOUT = {name: text for name, (text, _) in (VARIANTS | BASELINES | PEERS).items()}
NAMES = tuple(ABOUT)


class Scaled:
    """A classifier of scikit-learn's on inputs standardised by what was seen so far; what is missing is the mean."""

    def __init__(self, model: Any) -> None:
        self.model, self.scaler = model, StandardScaler()
        if not hasattr(model, "predict_proba"):
            raise ValueError(f"{model} has no predict_proba")

    @property
    def coefs_(self) -> list[Any]:
        return list(getattr(self.model, "coefs_", [self.model.coef_] if hasattr(self.model, "coef_") else []))

    @property
    def intercepts_(self) -> list[Any]:
        return list(getattr(self.model, "intercepts_", [self.model.intercept_] if hasattr(self.model, "coef_") else []))

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Scaled:
        """Learn the scale, then the labels."""
        self.scaler.partial_fit(X)
        self.model.partial_fit(self._scaled(X), y, **({} if classes is None else {"classes": classes}))
        return self

    def predict(self, X: Any) -> Any:
        """Labels."""
        return self.model.predict(self._scaled(X))

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes."""
        return self.model.predict_proba(self._scaled(X))

    def _scaled(self, X: Any) -> Any:
        return np.nan_to_num(self.scaler.transform(X))


def near(word: str, known: Iterable[str], are: str) -> str:
    """What to say after a word that is not known: the nearest ones that are, or all of them if none is near.

    >>> near("maskin", ["masking", "grow"], "the options are"), near("x", ["masking", "grow"], "the options are")
    ('did you mean masking?', 'the options are masking, grow.')
    """
    names = list(known)
    if nearest := difflib.get_close_matches(word, names, cutoff=0.4):
        return f"did you mean {' or '.join(nearest)}?"
    return f"{are} {', '.join(names)}." if names else "there are none."


def build(name: str, seed: int = 0, options: dict[str, Any] | None = None) -> Any:
    """The model of this name, or of the class that ``module:Class`` names, with some options changed.

    >>> build("devdan", seed=3, options={"n_hidden": 5})
    DEVDAN(n_hidden=5, random_state=3)
    >>> build("sklearn.naive_bayes:GaussianNB")
    GaussianNB()
    """
    options = options or {}
    if name in PEERS:
        return _peer(name, seed, options)
    if name in VARIANTS or name in BASELINES:
        kind: Any = _KINDS.get(name, DEVDAN)
        given = (VARIANTS | BASELINES)[name][1]
    elif ":" in name:
        kind, given = _imported(name), {}
    else:
        raise ValueError(
            f"there is no model {name!r}; {near(name, NAMES, 'the models are')} "
            "A class of any package goes by module:Class"
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
        raise ValueError(f"{name} cannot be made: {error}") from error
    check_model(model)
    if isinstance(model, StreamClassifier):
        model.check_options()
    return model


def _peer(name: str, seed: int, options: dict[str, Any]) -> Any:
    if options:
        raise ValueError(f"{name} takes no options; a class with options goes by module:Class")
    try:
        return PEERS[name][1](seed)
    except ImportError as error:
        raise ValueError(f"{name} needs River: pip install 'devdan[river]'") from error


def _imported(name: str) -> Any:
    module, _, attribute = name.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")  # a module of the user's own, in the current folder
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"the model {name!r} cannot be imported: {error}") from error


def parse_options(settings: list[str]) -> dict[str, Any]:
    """Options from texts like ``masking=0.2``.

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
