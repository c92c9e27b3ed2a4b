"""The rules by which each id counts once, in all cases and in all orders."""

from itertools import permutations

import pytest

from devdan.label_join import KnownId, Verdict, join_features, join_label, other_label

NEW, LEARNED, EARLY = Verdict.NEW, Verdict.LEARNED, Verdict.EARLY
CORRECTED, EXPIRED = Verdict.CORRECTED, Verdict.EXPIRED
REPEATED, CONTRADICTING = Verdict.REPEATED, Verdict.CONTRADICTING


def features(known, value, before, **options):
    return join_features(known, value == before, **options)


@pytest.mark.parametrize(
    ("known", "of_features", "of_yes", "of_no", "of_no_instead"),
    [
        (KnownId(), NEW, EARLY, EARLY, EARLY),
        (KnownId(label="yes"), NEW, REPEATED, CONTRADICTING, EARLY),
        (KnownId(True), REPEATED, LEARNED, LEARNED, LEARNED),
        (KnownId(True, is_expired=True), REPEATED, EXPIRED, EXPIRED, EXPIRED),
        (KnownId(True, "yes"), REPEATED, REPEATED, CONTRADICTING, CORRECTED),
        (KnownId(True, "yes", True), REPEATED, REPEATED, CONTRADICTING, CORRECTED),
    ],
)
def test_what_becomes_of_features_and_labels_in_each_case(known, of_features, of_yes, of_no, of_no_instead):
    assert features(known, 1.0, 1.0) is of_features
    assert features(known, 2.0, 1.0) is (CONTRADICTING if known.has_features else NEW)
    assert (join_label(known, "yes"), join_label(known, "no")) == (of_yes, of_no)
    assert join_label(known, "yes", replaces=True) is of_yes
    assert join_label(known, "no", replaces=True) is of_no_instead


@pytest.mark.parametrize("known", [KnownId(), KnownId(True), KnownId(True, is_expired=True)])
def test_what_is_read_again_is_not_new_even_if_it_was_forgotten(known):
    assert features(known, 1.0, 1.0, reread=True) is REPEATED
    assert join_label(known, "yes", reread=True) is REPEATED


def test_what_is_read_again_contradicts_as_it_did():
    known = KnownId(True, "yes")
    assert features(known, 2.0, 1.0, reread=True) is CONTRADICTING
    assert join_label(known, "no", reread=True) is CONTRADICTING


def test_what_is_read_again_does_not_contradict_a_label_that_has_replaced_it():
    known = KnownId(True, "yes", replaced=["no", "maybe"])
    assert [join_label(known, label, reread=True) for label in ("no", "maybe", "other")] == [
        REPEATED, REPEATED, CONTRADICTING,
    ]  # fmt: skip
    assert join_label(known, "no", replaces=True, reread=True) is REPEATED, "else it would be undone"
    assert join_label(known, "no") is CONTRADICTING


def test_a_label_that_is_false_or_zero_is_a_label():
    for label in (False, 0, ""):
        assert join_label(KnownId(True, label), label) is REPEATED


def test_a_contradiction_names_the_label_that_came_first():
    assert other_label(KnownId(True, "yes")) == "its label is 'yes', which came before"


@pytest.mark.parametrize("order", sorted(set(permutations(["f1", "f1", "f2", "yes", "yes", "no"]))))
def test_in_any_order_the_first_features_and_the_first_label_count_and_only_once(order):
    known, before, learned = KnownId(), None, []
    verdicts = []
    for event in order:
        if event[0] == "f":
            verdict = features(known, event, before)
            if verdict is NEW:
                known, before = known._replace(has_features=True), event
                learned += [known.label] if known.label else []
        else:
            verdict = join_label(known, event)
            if verdict in (LEARNED, EARLY):
                known = known._replace(label=event)
                learned += [event] if verdict is LEARNED else []
        verdicts.append(verdict)
    firsts = [next(event for event in order if event in some) for some in (("f1", "f2"), ("yes", "no"))]
    assert (before, known.label) == tuple(firsts)
    assert learned == [firsts[1]]
    assert verdicts.count(NEW) == verdicts.count(LEARNED) + verdicts.count(EARLY) == 1
    for event, verdict in zip(order, verdicts, strict=True):
        assert (verdict is CONTRADICTING) == (event not in firsts)
