"""What becomes of rules and members."""

from __future__ import annotations

from typing import NamedTuple

RULE_KINDS = ("rule added", "rule pruned", "rule stored", "rule recalled")  # in the order of the kernel's


class RuleEvent(NamedTuple):
    """A change, or a signal: after how many samples, of what kind, in which member and of which of its rules.

    Kinds are ``rule added``, ``rule pruned`` (for want of influence), ``rule stored`` (for want of density), ``rule
    recalled`` (from the store), ``member added``, ``member removed``, ``member merged`` (into another that is better),
    ``drift`` and ``warning``. Members are numbered from 0 as they come. ``rule`` is None where no rule changed, and
    ``size`` counts what there is now: the member's rules, or the members.
    """

    sample: int
    kind: str
    member: int
    rule: int | None
    size: int
