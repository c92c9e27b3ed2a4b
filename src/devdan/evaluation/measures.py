"""All measures of a run, in one table: a new one is a new row.

Records, summaries, pages, tables, the console and the curves of loggers iterate over :data:`MEASURES`; nothing else
lists measures. A row says how a measure is computed, formatted and explained. Texts may contain fields such as
``{spread}``, which are filled in where they are shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from devdan.evaluation.counts import Confusion
from devdan.evaluation.histograms import MOST_CLASSES

Figures = Mapping[str, Any]  # the results of a run, as in its summary, by the measures' keys
OF_RAREST = "rarest_"  # begins the names of measures of the rarest class, if it is rare
OF_RULES = ("pensemble", "pensemble+")  # models whose hidden units are rules
_LAST = 100
_LONGEST_NAME = 60  # characters of a class in the name of a curve


def units_name(model: object) -> str:
    """What the hidden units of a model are called."""
    return "rules" if model in OF_RULES else "hidden units"


@dataclass(frozen=True)
class TileText:
    """How a measure is shown on the page of a run, where it differs from elsewhere."""

    remark: str = ""
    title: str = ""
    unit_of_measure: str = ""


@dataclass(frozen=True)
class ConsoleLine:
    """How a measure is shown on the console; lines are sorted by ``place``."""

    label: str = ""
    text: str = ""
    note: str = ""
    place: int = _LAST


@dataclass(frozen=True)
class SheetText:
    """What is said about a measure in a table of many runs, and beside the paper's figures."""

    about: str
    of_paper: str = ""
    difference: bool = False  # whether our value minus the paper's is meaningful


@dataclass(frozen=True)
class Measure:
    """A row of the table. A value that is undefined for a run is None everywhere, never 0."""

    key: str  # in summaries, in records and in the results of a table's cells
    title: str
    value: Callable[[Any], Any] | None = None  # of a Summary, and of a Record if it is ``recorded``
    recorded: bool = False  # whether each record has it too
    follows: Callable[[Figures], float | None] | None = None  # instead of ``value``: from other figures
    spread: Callable[[Any], float | None] | None = None  # of a Summary: the deviation over chunks
    spread_key: str = ""
    now: Callable[[Any], float | None] | None = None  # of a Record: the value at its end
    compared: bool = True  # whether it is one of a summary's criteria, rather than a detail
    digits: int = 3
    page_digits: int | None = None  # on pages of runs, if not as many
    form: str = "number"  # or "seconds", "short", "significant"
    unit_of_measure: str = ""
    better: int = 1  # more is better; -1: less is
    timed: bool = False  # depends on the machine
    optional: bool = False  # only some models have it; for others it is not mentioned
    tile: TileText | None = TileText()
    column: bool = True  # whether runs side by side show it
    line: ConsoleLine | None = ConsoleLine()
    criterion: str | None = ""  # its name in tables; by default its key; None: it is in none
    place: int = _LAST  # in tables
    sheet: SheetText | None = None
    curves: tuple[tuple[str, Callable[[Any, Any], float | None]], ...] = ()  # of a Record and the Summary up to it;
    # by default those of a record, if it has them

    def figure(self, figures: Figures) -> float | None:
        """Its value among the figures of a run, if it has one."""
        value = figures.get(self.key) if self.follows is None else self.follows(figures)
        return value if isinstance(value, (int, float)) else None

    def spread_in(self, figures: Figures) -> float | None:
        """Its deviation over chunks among the figures of a run."""
        value = figures.get(self.spread_key)
        return value if isinstance(value, (int, float)) else None

    def text(self, value: float | None) -> str:
        """A value with the digits of consoles and notebooks; a dash if it is not defined."""
        return "–" if value is None else f"{value:,.{self.digits}f}"

    def in_words(self, figures: Figures) -> str:
        """Its value among the figures of a run, with its deviation and its unit of measure."""
        value, spread = self.figure(figures), self.spread_in(figures)
        text = self.text(value) + (f" ± {self.text(spread)}" if spread is not None else "")
        return f"{text} {self.unit_of_measure}" if self.unit_of_measure and value is not None else text

    def curve_values(self, record: Any, summary: Any) -> dict[str, float | None]:
        """Its values for curves over the run, by their names, which end with a class where each class has one."""
        if self.curves or not self.recorded or self.value is None:
            return {name: value(record, summary) for name, value in self.curves}
        found = self.value(record)
        if not isinstance(found, list):
            return {self.key: found}
        if len(found) > MOST_CLASSES:
            return {}
        return {f"{self.key}/{c}": value for c, value in zip(map(_as_name, summary.classes), found, strict=False)}

    def computed(self, summary: Any) -> dict[str, Any]:
        """Its entries in a summary."""
        kept = {} if self.value is None else {self.key: self.value(summary)}
        return kept if self.spread is None else kept | {self.spread_key: self.spread(summary)}


def _as_name(label: object) -> str:
    """A class as part of a curve's name, which stores of curves restrict.

    >>> _as_name("über 5 €"), _as_name(7)
    ('über 5 _', '7')
    """
    return re.sub(r"[^\w .-]", "_", str(label))[:_LONGEST_NAME]


def _sum(*keys: str) -> Callable[[Figures], float | None]:
    def total(figures: Figures) -> float | None:
        values = [figures.get(key) for key in keys]
        return None if None in values else sum(value for value in values if value is not None)

    return total


def _labels_used(figures: Figures) -> float | None:
    labels, samples = figures.get("n_labels"), figures.get("n_samples")
    return 100 * labels / samples if labels is not None and samples else None


def _by_the_scripts(figures: Figures) -> float | None:
    """NoP as the scripts of pENsemble's authors count it: as if every rule had two inputs."""
    rules, n_classes = figures.get("hn_mean"), figures.get("n_classes")
    if rules is None or n_classes is None or figures.get("model") not in OF_RULES:
        return None
    return float(rules * (2 + 4 + 3 * n_classes))


def of_classes(drifts: Iterable[tuple[Any, int]]) -> str:
    """Which of some real drifts were of a single class, in words that follow their number.

    >>> of_classes([("fraud", 2), ("theft", 1)]), of_classes([])
    (' (2 of fraud, 1 of theft)', '')
    """
    told = ", ".join(f"{n:,} of {label}" for label, n in drifts)
    return f" ({told})" if told else ""


def about_classes(figures: Figures) -> dict[str, str]:
    """What texts say about the commonest and the rarest class."""
    counted, names = Confusion.of(figures["counts"]), figures["classes"]
    told = dict.fromkeys(("commonest", "rarest", "share", "n_rarest", "n_called", "budget", "period", "constant"), "")
    if counted.actual:
        told["commonest"] = str(names[max(counted.actual, key=lambda c: counted.actual[c])])
    if (c := counted.rarest) is not None:
        told |= {"rarest": str(names[c]), "share": f"{100 * counted.actual[c] / counted.n_samples:.2g} %"}
        told |= {"n_rarest": f"{counted.actual[c]:,}", "n_called": f"{counted.predicted.get(c, 0):,}"}
    if alerts := figures.get("alerts"):
        told |= {"budget": f"{alerts['n_alerts']:,}", "period": f"{alerts['period']:,}"}
    if costs := figures.get("costs"):
        told["constant"] = str(names[costs.index(min(costs[1:]), 1) - 1])
    return told


_MOST_TOLD = 6  # classes


def class_shares(figures: Figures) -> str:
    """The classes that were scored and their shares of these samples, the commonest first.

    >>> class_shares({"classes": ["ok", "fraud"], "counts": [(0, 0, 970), (1, 0, 20), (1, 1, 10)]})
    'ok 97 %, fraud 3 %'
    """
    counted, names = Confusion.of(figures["counts"]), figures["classes"]
    told = sorted(counted.actual, key=lambda c: (-counted.actual[c], c))
    shares = [f"{names[c]} {100 * counted.actual[c] / counted.n_samples:.2g} %" for c in told[:_MOST_TOLD]]
    return ", ".join([*shares, *([f"and {len(told) - _MOST_TOLD:,} more"] if len(told) > _MOST_TOLD else [])])


def reservation(figures: Figures) -> str:
    """What the figures of a run say nothing about: there were no labels, or only one class; empty if that is not so.

    >>> reservation({"classes": ["ok"], "n_samples": 500, "counts": []})
    'All labels are of one class, ok: there is nothing to tell apart, so that an accuracy says nothing.'
    """
    classes, n_samples = figures["classes"], figures["n_samples"]
    if not classes and n_samples:
        return f"None of the {n_samples:,} samples has a label: the model has observed them, and nothing is scored."
    if len(classes) == 1:
        return (
            f"All labels are of one class, {classes[0]}: there is nothing to tell apart, so that an accuracy says "
            "nothing."
        )
    return ""


def _in_percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _of_chunk(record: Any, summary: Any, measure: str) -> float | None:
    """A measure of the class that is the rarest so far, in one chunk."""
    values, c = getattr(record, measure), summary.rarest_class
    return None if c is None or c >= len(values) else values[c]


SCRIPTS = "NoP_scripts"
NO_CHANGE, MAJORITY = "no_change", "majority"
_KEPT_ONLY: dict[str, Any] = {"compared": False, "tile": None, "column": False, "line": None, "criterion": None}
_OF_CLASSES = _KEPT_ONLY | {"better": 0}  # several values, none of which is the best
_IN_TABLES_ONLY: dict[str, Any] = {"tile": None, "column": False, "line": None}
_DURATION: dict[str, Any] = {
    **{"form": "seconds", "better": -1, "timed": True},
    **{"tile": None, "line": None, "criterion": None},  # a column beside other runs, and kept
}

RATE = Measure(
    "cr_mean",
    "Classification rate",
    attrgetter("rate.mean"),
    spread=attrgetter("rate.std"),
    spread_key="cr_std",
    digits=2,
    unit_of_measure="%",
    tile=TileText("± {spread} over {scored}"),
    line=ConsoleLine(note="CR, mean ± std over chunks", place=1),
    criterion="CR",
    place=1,
    sheet=SheetText(
        "The mean accuracy of the chunks, each predicted before it is learned from; ± is the standard "
        "deviation over chunks, both averaged over seeds. Bold: the best of the runs on each stream.",
        difference=True,
    ),
    curves=(
        ("cr/chunk", lambda record, _: _in_percent(record.accuracy)),
        ("cr/mean", lambda _, summary: summary.rate.mean),
    ),
)

MEASURES = (
    Measure(
        "rarest_average_precision",
        "Average precision, rarest class",
        lambda summary: summary.of_rarest(summary.ranking.average_precision),
        optional=True,
        tile=TileText("{share} of the samples, and by chance", "Average precision of {rarest}"),
        line=ConsoleLine("average precision of {rarest}", note="{share} by chance", place=1),
        place=11,
        sheet=SheetText(
            "How well the probabilities find the rarest class, where it is under 20 % of the samples: the precision at "
            "each threshold, weighted by the recall that it adds; by chance it is the share of the class. Models "
            "without probabilities have none."
        ),
        curves=(("rarest/average_precision", lambda record, summary: _of_chunk(record, summary, "average_precision")),),
    ),
    Measure(
        "rarest_recall",
        "Recall, rarest class",
        lambda summary: summary.of_rarest(summary.confusion.recall),
        optional=True,
        tile=TileText("of {n_rarest} were found", "Recall of {rarest}"),
        line=ConsoleLine("recall, precision, F1", "{rarest_recall}, {rarest_precision}, {rarest_f1}", place=1),
        place=12,
        sheet=SheetText("The share of the samples of the rarest class that were predicted as that class."),
        curves=(("rarest/recall", lambda record, summary: _of_chunk(record, summary, "recall")),),
    ),
    Measure(
        "rarest_precision",
        "Precision, rarest class",
        lambda summary: summary.of_rarest(summary.confusion.precision),
        optional=True,
        tile=TileText("of {n_called} predictions were right", "Precision of {rarest}"),
        line=None,  # it is beside the recall
        place=13,
        sheet=SheetText("The share of the predictions of the rarest class that were right."),
        curves=(("rarest/precision", lambda record, summary: _of_chunk(record, summary, "precision")),),
    ),
    Measure(
        "rarest_f1",
        "F1, rarest class",
        lambda summary: summary.of_rarest(summary.confusion.f1),
        optional=True,
        tile=None,  # it is in the table of classes
        line=None,  # it is beside the recall
        place=14,
        curves=(("rarest/f1", lambda record, summary: _of_chunk(record, summary, "f1")),),
    ),
    Measure(
        "rarest_alert_recall",
        "Recall of alerts, rarest class",
        lambda summary: summary.of_alerts("recall"),
        optional=True,
        tile=TileText(
            "by the {budget} highest scores of each {period} samples, of which {rarest_alert_precision} were right",
            "Recall of alerts, {rarest}",
        ),
        line=ConsoleLine(
            "alerts: recall, precision",
            "{rarest_alert_recall}, {rarest_alert_precision}",
            note="of the {budget} highest scores of each {period} samples",
            place=1,
        ),
        place=15,
        sheet=SheetText(
            "The share of the samples of the rarest class that are among the highest scores of their period: 10 of "
            "1,000 samples."
        ),
        curves=(("rarest/alert_recall", lambda record, summary: _of_chunk(record, summary, "alert_recall")),),
    ),
    Measure(
        "rarest_alert_precision",
        "Precision of alerts, rarest class",
        lambda summary: summary.of_alerts("precision"),
        optional=True,
        tile=None,  # it is beside their recall
        line=None,
        place=16,
        sheet=SheetText("The share of these highest scores that are of the rarest class."),
        curves=(("rarest/alert_precision", lambda record, summary: _of_chunk(record, summary, "alert_precision")),),
    ),
    Measure(
        "cost",
        "Cost",
        attrgetter("cost"),
        recorded=True,
        better=-1,
        optional=True,
        tile=TileText("per sample, by the costs in decide; always calling {constant} costs {constant_cost}"),
        line=ConsoleLine(note="per sample; always calling {constant} costs {constant_cost}", place=1),
        place=17,
        sheet=SheetText("What the predictions cost per sample, for models that decide by costs."),
    ),
    Measure(
        "constant_cost",
        "Cost of one class",
        attrgetter("constant_cost"),
        better=0,
        optional=True,
        tile=None,  # it is beside the cost
        line=None,
        place=18,
    ),
    RATE,
    Measure(
        "majority_rate",
        "Majority",
        lambda of: _in_percent(of.majority),
        recorded=True,
        digits=2,
        unit_of_measure="%",
        better=0,
        optional=True,
        tile=TileText("accuracy of always predicting {commonest}"),
        line=ConsoleLine(note="accuracy of always predicting {commonest}; of no change {no_change_rate} %", place=2),
        criterion=MAJORITY,
        place=3,
        curves=(("baseline/majority", lambda _, summary: _in_percent(summary.majority)),),
    ),
    Measure("accuracy", "Accuracy", attrgetter("confusion.accuracy"), recorded=True, **_KEPT_ONLY),
    Measure(
        "kappa",
        "Kappa",
        attrgetter("confusion.kappa"),
        recorded=True,
        tile=TileText("0 is chance, 1 is perfect; Matthews' coefficient {mcc}"),
        line=ConsoleLine(note="vs. no-change predictor {kappa_no_change}", place=6),
    ),
    Measure(
        "f1_macro",
        "Macro F1",
        attrgetter("confusion.f1_macro"),
        recorded=True,
        tile=TileText("mean over {classes}"),
        line=ConsoleLine("macro F1, G-mean", "{f1_macro}, {g_mean}", place=7),
    ),
    Measure(
        "g_mean",
        "G-mean",
        attrgetter("confusion.g_mean"),
        recorded=True,
        tile=TileText("geometric mean of the recalls; their mean, the balanced accuracy, is {balanced_accuracy}"),
        line=None,  # it is beside macro F1
    ),
    Measure(
        "balanced_accuracy",
        "Balanced accuracy",
        attrgetter("confusion.balanced_accuracy"),
        recorded=True,
        tile=None,  # it is beside the G-mean
        line=ConsoleLine("balanced accuracy, Matthews", "{balanced_accuracy}, {mcc}", place=9),
    ),
    Measure(
        "mcc",
        "Matthews' coefficient",
        attrgetter("confusion.mcc"),
        recorded=True,
        tile=None,  # it is beside kappa
        line=None,  # it is beside balanced accuracy
    ),
    Measure(
        "roc_auc",
        "ROC-AUC",
        attrgetter("roc_auc"),
        recorded=True,
        optional=True,
        tile=TileText("0.5 is chance, 1 is perfect"),
        line=ConsoleLine("ROC-AUC", place=9),
    ),
    Measure(
        "log_loss",
        "Log loss",
        attrgetter("log_loss"),
        recorded=True,
        better=-1,
        optional=True,
        tile=None,  # it is beside the calibration error, as is the next
        line=ConsoleLine("log loss, Brier score", "{log_loss}, {brier}", place=10),
    ),
    Measure(
        "brier",
        "Brier score",
        attrgetter("brier"),
        recorded=True,
        better=-1,
        optional=True,
        tile=None,
        line=None,  # it is beside the log loss
    ),
    Measure(
        "kappa_no_change",
        "Kappa vs no-change",
        attrgetter("kappa_no_change"),
        recorded=True,
        compared=False,
        tile=TileText("no-change predictor: {no_change}"),
        line=None,  # it is beside kappa
        place=2,
        sheet=SheetText(
            "0 is as good as predicting the label of the sample before, 1 is perfect; below 0, not learning at all "
            "would be better. That predictor has the label of every sample before; in chunks, models have those of the "
            "chunks before. Averaged over seeds."
        ),
    ),
    Measure(
        "no_change_rate",
        "No change",
        lambda summary: _in_percent(summary.no_change),
        digits=2,
        unit_of_measure="%",
        better=0,
        criterion=NO_CHANGE,
        place=3,
        curves=(("baseline/no_change", lambda _, summary: _in_percent(summary.no_change)),),
        **_IN_TABLES_ONLY,
    ),
    Measure(
        "calibration_error",
        "Calibration error",
        attrgetter("calibration_error"),
        recorded=True,
        better=-1,
        optional=True,
        tile=TileText("0 is perfectly calibrated; Brier score {brier}, log loss {log_loss}"),
        line=ConsoleLine(note="ECE, of the confidences", place=8),
        criterion="ECE",
        place=10,
        sheet=SheetText(
            "The expected calibration error: predictions are sorted by their confidence into twenty classes, and the "
            "gaps between the confidence and the share of right predictions of each are averaged. 0 is best. Models "
            "that tell no probabilities, or only at the price of a second prediction, have none."
        ),
    ),
    Measure(
        "hn_mean",
        "Hidden units",
        attrgetter("hidden.mean"),
        spread=attrgetter("hidden.std"),
        spread_key="hn_std",
        now=attrgetter("n_hidden"),
        digits=2,
        page_digits=1,
        better=-1,
        optional=True,
        tile=TileText("± {spread} over time, {now} now{replaying}", "{Units}"),
        line=ConsoleLine("{units}", note="HN", place=3),
        criterion="HN",
        place=5,
        sheet=SheetText(
            "On average over the chunks; ± is the standard deviation over chunks. Models without a hidden layer have "
            "none. "
            "For pENsemble and pENsemble+, rules are counted.",
            "The paper's HN for pENsemble and pENsemble+ may count members.",
            difference=True,
        ),
        curves=(("n_hidden", lambda record, _: record.n_hidden),),
    ),
    Measure(
        "members_mean",
        "Members",
        attrgetter("members.mean"),
        now=attrgetter("n_members"),
        compared=False,
        digits=2,
        page_digits=1,
        better=0,
        optional=True,
        tile=TileText("{now} now"),
        column=False,
        line=ConsoleLine(place=4),
        criterion="members",
        place=8,
        sheet=SheetText("Members of ensembles, on average over the chunks."),
    ),
    Measure(
        "nop_mean",
        "Parameters",
        attrgetter("parameters.mean"),
        now=attrgetter("n_parameters"),
        digits=1,
        page_digits=0,
        better=-1,
        optional=True,
        tile=TileText("on average, {now} now"),
        line=ConsoleLine(note="NoP", place=5),
        criterion="NoP",
        place=6,
        sheet=SheetText(
            "Of the network, or of the rules, on average over the chunks. Other kinds of models have no such count.",
            "The paper's pENsemble and pENsemble+ are counted as if every rule had two inputs.",
            difference=True,
        ),
        curves=(("n_parameters", lambda record, _: record.n_parameters),),
    ),
    Measure(
        SCRIPTS, "Parameters", follows=_by_the_scripts, digits=1, better=-1, optional=True, place=7, **_IN_TABLES_ONLY
    ),
    Measure("train_seconds", "Training", attrgetter("train_seconds"), **_DURATION),
    Measure("test_seconds", "Testing", attrgetter("test_seconds"), **_DURATION),
    Measure(
        "seconds",
        "Execution time",
        follows=_sum("train_seconds", "test_seconds"),
        digits=2,
        form="significant",
        unit_of_measure="s",
        better=-1,
        timed=True,
        tile=None,
        column=False,
        line=ConsoleLine(
            text="{seconds} s, {samples_per_second} samples/s", note="ET, learning and predicting", place=2
        ),
        criterion="ET",
        place=4,
        sheet=SheetText(
            "Training and testing together, averaged over seeds. Times are only comparable within one run of the "
            "table.",
            "The paper's were measured on another machine, with MATLAB, so no difference is given.",
        ),
    ),
    Measure(
        "samples_per_second",
        "Samples/s",
        attrgetter("samples_per_second"),
        digits=0,
        form="short",
        timed=True,
        tile=TileText("{training} training, {testing} testing", "Speed", "samples/s"),
        line=None,  # it is beside the time
    ),
    Measure(
        "labels_used",
        "Labels used",
        follows=_labels_used,
        digits=1,
        unit_of_measure="%",
        better=0,
        criterion="labels",
        place=9,
        sheet=SheetText(
            "Share of all samples, for models that choose which labels they use; the others use all labels they are "
            "given."
        ),
        **_IN_TABLES_ONLY,
    ),
    Measure("rarest", "Rarest class", attrgetter("rarest"), **_OF_CLASSES),
    Measure("recall", "Recall of each class", attrgetter("recall"), recorded=True, **_OF_CLASSES),
    Measure("precision", "Precision of each class", attrgetter("precision"), recorded=True, **_OF_CLASSES),
    Measure("f1", "F1 of each class", attrgetter("f1"), recorded=True, **_OF_CLASSES),
    Measure("alert_recall", "Recall of alerts of each class", attrgetter("alert_recall"), recorded=True, **_OF_CLASSES),
    Measure(
        "alert_precision",
        "Precision of alerts of each class",
        attrgetter("alert_precision"),
        recorded=True,
        **_OF_CLASSES,
    ),
    Measure(
        "average_precision",
        "Average precision of each class",
        attrgetter("average_precision"),
        recorded=True,
        **_OF_CLASSES,
    ),
)


_BY_KEY = {measure.key: measure for measure in MEASURES}


def of_key(key: str) -> Measure:
    """The measure with this key."""
    return _BY_KEY[key]


def in_tables() -> dict[str, Measure]:
    """The measures that tables of many runs have, by their names there, in their order there."""
    listed = [measure for measure in MEASURES if measure.criterion is not None]
    return {measure.criterion or measure.key: measure for measure in sorted(listed, key=lambda m: m.place)}


# --- What runs are compared by -----------------------------------------------------------------------------------


_OF_ACCURACY = (RATE.key, "accuracy")
_LEADING = ("rarest_average_precision", "rarest_f1")  # of a rare class: of the probabilities, and of the predictions


def named(name: str, among: Iterable[Measure]) -> Measure:
    """The measure of this name, as in tables or in summaries, among those by which runs can be told better or worse."""
    known = {measure.criterion or measure.key: measure for measure in among if measure.better}
    spelt = {text.lower(): measure for own, measure in known.items() for text in (own, measure.key)}
    if (found := spelt.get(name.lower().replace("-", "_"))) is None:
        raise ValueError(f"by must be a measure, got {name!r}: name one of {', '.join(known)}")
    return found


def leading(runs: Sequence[Figures]) -> list[Measure]:
    """What runs on a stream are compared by: the classification rate or, where a class is rare, how well it is found.

    >>> rare = {"rarest_average_precision": 0.3, "rarest_f1": 0.2}
    >>> [[measure.key for measure in leading(runs)] for runs in ([rare, rare], [rare, {"rarest_f1": 0.1}], [rare, {}])]
    [['rarest_average_precision', 'rarest_f1'], ['rarest_f1'], ['cr_mean']]
    """
    told = [
        measure for measure in map(of_key, _LEADING) if runs and all(measure.figure(own) is not None for own in runs)
    ]
    return told or [RATE]


def beats_majority(measure: Measure, figures: Figures) -> bool:
    """Whether an accuracy is better than that of always predicting the commonest class; other measures do not ask."""
    value, majority = measure.figure(figures), figures.get("majority_rate")
    if measure.key not in _OF_ACCURACY or value is None or majority is None:
        return True
    return float(value if measure is RATE else 100 * value) > float(majority)
