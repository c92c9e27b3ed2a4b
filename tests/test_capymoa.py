"""DEVDAN in CapyMOA: its evaluations, pipelines and files, and instances that are not as they should be."""

import io

import numpy as np
import pytest
from machines import START_OPTIONS, Twins, in_batches, options
from networks import words

try:
    import capymoa  # noqa: F401
except (ImportError, RuntimeError) as error:  # not installed, or no Java
    pytest.skip(f"CapyMOA cannot be imported: {error}", allow_module_level=True)

from capymoa.automl import BanditClassifier, SuccessiveHalvingClassifier
from capymoa.base import ClassifierSSL, learner_from_params
from capymoa.core import Instance, LabeledInstance
from capymoa.core.io import load_model, save_model
from capymoa.drift.detectors import ADWIN
from capymoa.evaluation import prequential_evaluation, prequential_ssl_evaluation
from capymoa.stream import NumpyStream, Schema, generator, stream_from_file
from capymoa.stream.preprocessing import ClassifierPipeline, MOATransformer
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule
from moa.streams.filters import NormalisationFilter

from devdan import DEVDAN, kernel
from devdan.capymoa import DEVDANClassifier, DEVDANClassifierSSL

SCHEMA = Schema.from_custom(["a", "b", "class"], target="class", categories={"class": ["no", "yes", "maybe"]})


def samples(n, seed=0, missing=0.0):
    """Three classes, features of different scales, some of them missing."""
    X = np.random.default_rng(seed).normal(size=(n, 2))
    y = np.where(X[:, 0] > 1, 2, X[:, 0] + X[:, 1] > 0).astype(int)
    X[np.random.default_rng(seed + 1).random(X.shape) < missing] = np.nan
    return X * [1.0, 100.0], y


def instances(n, **options):
    X, y = samples(n, **options)
    return [LabeledInstance.from_array(SCHEMA, x, label) for x, label in zip(X, y, strict=True)]


def learned(n=300, kind=DEVDANClassifierSSL, **options):
    learner = kind(SCHEMA, **options)
    for instance in instances(n):
        learner.train(instance)
    return learner


def observed(learner):
    return _learned(learner, kernel.GENERATIVE)


def taught_to(learner):
    return _learned(learner, kernel.DISCRIMINATIVE)


def _learned(learner, phase):
    mixture = learner._online.mixture
    counts = set() if mixture is None else {int(net.n_learned[phase]) for net in mixture.nets}
    assert len(counts) < 2
    return counts.pop() if counts else 0


# --- Weights of classes ------------------------------------------------------------------------------------------


def test_classes_are_weighed_by_their_names_in_the_schema():
    learner = learned(class_weight={"yes": 4.0, "maybe": 0.5})
    for one in learner._online.mixture.nets:
        assert one.class_weight.tolist() == [1.0, 4.0, 0.5]
    balanced = learned(class_weight="balanced")
    for one in balanced._online.mixture.nets:
        assert one.class_count.sum() == pytest.approx(300, rel=0.02)
        assert one.class_count.argmin() == 2


# --- Evaluations -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "least"),
    [
        (generator.SEA, 86),  # a tenth of its labels are wrong
        (generator.WaveformGenerator, 80),  # three classes
        (generator.STAGGERGenerator, 98),  # nominal features
    ],
)
def test_in_the_prequential_evaluation(make, least):
    stream = make()
    learner = DEVDANClassifier(stream.get_schema())
    results = prequential_evaluation(stream, learner, max_instances=4000)
    assert results.cumulative.accuracy() > least
    assert results.learner == "DEVDANClassifier"
    assert taught_to(learner) == 4000


@pytest.mark.parametrize("delay", [0, 200])
def test_instances_without_labels_are_learned_from(delay):
    stream = generator.SEA()
    ssl, supervised = DEVDANClassifierSSL(stream.get_schema()), DEVDANClassifier(stream.get_schema())
    for learner in (ssl, supervised):
        results = prequential_ssl_evaluation(stream, learner, 3000, label_probability=0.2, delay_length=delay)
        assert results.cumulative.accuracy() > 78
    assert isinstance(ssl, ClassifierSSL)
    taught = taught_to(ssl)
    assert 400 < taught < 700
    assert observed(ssl) == 3000 + (taught if delay else 0)  # once more with its label
    assert observed(supervised) == taught_to(supervised) == taught


def test_it_is_devdan_on_chunks_of_one():
    learner, model = DEVDANClassifierSSL(SCHEMA, random_seed=3), DEVDAN(random_state=3, interleave=True)
    for t, instance in enumerate(instances(600, missing=0.1)):
        row = instance.x[np.newaxis]
        if t % 4 == 0:
            learner.train_on_unlabeled(instance)
            model.observe(row)
        else:
            learner.train(instance)
            model.partial_fit(row, [instance.y_index], classes=[0, 1, 2])
    for instance in instances(50, seed=5, missing=0.1):
        expected = model.predict_proba(instance.x[np.newaxis])[0]
        assert learner.predict_proba(instance) == pytest.approx(expected, abs=1e-9)
        assert learner.predict(instance) == expected.argmax()


def test_a_seed_gives_the_same_model_and_another_one_another():
    one, same, other = (words(learned(random_seed=seed)._online) for seed in (1, 1, 2))
    assert one == same != other


def test_an_ensemble_of_all_scales_is_better_than_one():
    rates = []
    for ensemble in (False, True):
        stream = generator.RandomRBFGenerator(number_of_attributes=4)
        learner = DEVDANClassifier(stream.get_schema(), ensemble=ensemble)
        rates.append(prequential_evaluation(stream, learner, max_instances=1500).cumulative.accuracy())
    assert rates[1] > rates[0]
    assert taught_to(learner) == 1500


# --- What else CapyMOA does with a learner -----------------------------------------------------------------------


def test_before_the_first_label_nothing_is_predicted():
    learner, instance = DEVDANClassifierSSL(SCHEMA), instances(1)[0]
    learner.train_on_unlabeled(instance)
    assert learner.predict_proba(instance) is None
    assert learner.predict(instance) is None
    learner.train(instance)
    probabilities = learner.predict_proba(Instance.from_array(SCHEMA, instance.x))
    assert probabilities.shape == (3,)
    assert probabilities.sum() == pytest.approx(1)


@pytest.mark.parametrize("kind", [DEVDANClassifier, DEVDANClassifierSSL])
def test_a_loaded_model_goes_on_alike(kind):
    learner, file = learned(kind=kind, n_hidden=3), io.BytesIO()
    save_model(learner, file)
    file.seek(0)
    loaded = load_model(file)
    assert type(loaded) is kind
    for instance in instances(200, seed=7):
        assert (loaded.predict_proba(instance) == learner.predict_proba(instance)).all()
        loaded.train(instance)
        learner.train(instance)
    assert words(loaded._online) == words(learner._online)


def test_its_options_are_kept_as_capymoa_keeps_them():
    learner = learned(masking=0.3, scaling="minmax", random_seed=2)
    spec = {"learner": "devdan.capymoa.DEVDANClassifierSSL", "params": learner.get_params()}
    again = learner_from_params(spec, SCHEMA, random_seed=2)
    assert again.get_params() == learner.get_params()
    assert again.get_params()["masking"] == 0.3
    for instance in instances(300):
        again.train(instance)
    assert words(again._online) == words(learner._online)


def test_in_a_pipeline_with_a_transformer_and_a_drift_detector():
    stream = generator.SEA()
    normalise = MOATransformer(stream.get_schema(), NormalisationFilter())
    pipeline = ClassifierPipeline().add_transformer(normalise)
    pipeline.add_classifier(DEVDANClassifier(normalise.get_schema()))
    detector = ADWIN()
    pipeline.add_drift_detector(detector, lambda instance, prediction: int(prediction != instance.y_index))
    results = prequential_evaluation(stream, pipeline, max_instances=3000)
    assert results.cumulative.accuracy() > 80
    assert detector.idx == 3000


@pytest.mark.parametrize("search", [BanditClassifier, SuccessiveHalvingClassifier])
def test_in_a_search_for_the_best_learner(search):
    """Few instances, since the searches compute all their measures at each."""
    stream = generator.SEA()
    schema = stream.get_schema()
    best = search(schema, base_classifiers=[DEVDANClassifier, DEVDANClassifier(schema, n_hidden=5)])
    prequential_evaluation(stream, best, max_instances=150)
    assert [type(learner) for learner in best.active_models] == [DEVDANClassifier] * 2
    assert all(taught_to(learner) > 0 for learner in best.active_models)


# --- Input that is not as it should be ---------------------------------------------------------------------------


def test_values_that_are_missing_in_a_file(tmp_path):
    lines = ["@relation r", "@attribute size numeric", "@attribute colour {red,green}", "@attribute class {no,yes}"]
    rows = ["1.5,red,yes", "?,green,no", "2.5,?,yes", "3,red,?", "?,?,no"]
    path = tmp_path / "missing.arff"
    path.write_text("\n".join([*lines, "@data", *rows]))
    stream = stream_from_file(path)
    learner = DEVDANClassifierSSL(stream.get_schema())
    for instance in stream:
        learner.train(instance)
        assert np.isfinite(learner.predict_proba(instance)).all()
    assert observed(learner) == 5
    assert taught_to(learner) == 4  # one label is missing


def test_missing_values_do_not_keep_it_from_learning():
    X, y = samples(3000, missing=0.1)
    stream = NumpyStream(X, y)
    learner = DEVDANClassifier(stream.get_schema())
    assert prequential_evaluation(stream, learner).cumulative.accuracy() > 80


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([1.0], 0, "x must have the schema's 2 features"),
        ([1.0, 2.0, 3.0], 0, "x must have the schema's 2 features"),
        ([[1.0, 2.0]], 0, "x must have the schema's 2 features"),
        ([1.0, np.inf], 0, "x contains infinity"),
        ([1.0, 2.0], 3, "y_index must be less than 3"),
    ],
)
def test_what_it_cannot_take_leaves_it_as_it_was(x, y, message):
    learner = learned()
    before = words(learner._online)
    with pytest.raises(ValueError, match=message):
        learner.train(LabeledInstance.from_array(SCHEMA, np.array(x), y))
    assert words(learner._online) == before
    learner.train(instances(1)[0])


@pytest.mark.parametrize(
    "schema",
    [
        None,
        Schema.from_custom(["a", "target"], target="target"),
        Schema.from_custom(["class"], target="class", categories={"class": ["no", "yes"]}),
    ],
    ids=["none", "regression", "no features"],
)
def test_a_schema_without_features_and_classes(schema):
    with pytest.raises(ValueError, match="schema must describe a stream with features and classes"):
        DEVDANClassifier(schema)


@pytest.mark.parametrize("options", [{"masking": 2}, {"n_hidden": 0}, {"scaling": "log"}, {"random_seed": -1}])
def test_options_out_of_range(options):
    with pytest.raises(ValueError, match="must be"):
        DEVDANClassifier(SCHEMA, **options)


# --- All verbs in any order --------------------------------------------------------------------------------------

ROWS = st.lists(st.floats(width=64), min_size=1, max_size=3)  # now and then as many as the schema says
LABELS = st.integers(-1, 4)


class CapyMOAFace(Twins):
    """Instances of all kinds; a copy is what was saved and loaded."""

    started = ("n_hidden", "masking", "scaling", "averaging", "rehearse")

    @initialize(chosen=options({name: START_OPTIONS[name] for name in started}))
    def begin(self, chosen):
        self.model, self.twin = (DEVDANClassifierSSL(SCHEMA, **chosen) for _ in range(2))

    def words(self, model):
        return words(model._online)

    def states(self):
        mixture = self.model._online.mixture
        return [] if mixture is None else mixture.networks

    def copies(self):
        file = io.BytesIO()
        save_model(self.model, file)
        file.seek(0)
        return [load_model(file)]

    @rule(x=ROWS, y=LABELS)
    def train(self, x, y):
        self.attempt("train", LabeledInstance.from_array(SCHEMA, np.array(x), y))

    @rule(x=ROWS, verb=st.sampled_from(["train_on_unlabeled", "predict", "predict_proba"]))
    def use(self, x, verb):
        self.attempt(verb, Instance.from_array(SCHEMA, np.array(x)))

    @rule(x=st.tuples(*[st.floats(-5, 5) | st.just(np.nan)] * 2))
    @precondition(lambda self: taught_to(self.model) > 0)
    def predictions_are_probabilities(self, x):
        probabilities = self.model.predict_proba(Instance.from_array(SCHEMA, np.array(x)))
        assert (probabilities >= 0).all()
        assert probabilities.sum() == pytest.approx(1)


test_all_verbs_in_any_order = in_batches(CapyMOAFace)
