"""Events of rules and members."""

from __future__ import annotations

from typing import NamedTuple

RULE_KINDS = ("rule added", "rule pruned", "rule stored", "rule recalled")  # in the order of the kernel's constants


class RuleEvent(NamedTuple):
    """A change or a signal: the number of samples so far, its kind, the member and the rule.

    Kinds are ``rule added``, ``rule pruned`` (too little influence), ``rule stored`` (too little density), ``rule
    recalled`` (from the store), ``member added``, ``member removed``, ``member merged`` (into a better one), ``drift``
    and ``warning``. Members are numbered from 0 in order of creation. ``rule`` is None if no rule changed; ``size`` is
    the number of the member's rules, or of members, after the event.
    """

    sample: int
    kind: str
    member: int
    rule: int | None
    size: int
