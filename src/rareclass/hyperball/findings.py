"""Findings about a ball that a user should know before trusting it, and their wording."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from rareclass.findings import Finding, FindingKind, Status
from rareclass.hyperball.ball import Ball
from rareclass.hyperball.pool import MAJORITY, UNLABELLED, Background, Pool, spread_of
from rareclass.hyperball.problem import InputSpace
from rareclass.labels.two_classes import plain

# A ball that holds such a share of everything says nothing.
_USELESS_SHARE = 0.5
# Nor does a ball wider than all other rows that holds such a share of them.
_WIDE_SHARE = 0.05

Words = Callable[[str, Any], str]
"""Words for a parameter of `RACH` and its change in the remedy of a `Finding`: a value, "larger",
"smaller", or None for the name alone; "" where the reader has no such parameter."""


def in_parameters(name: str, change: Any) -> str:
    """Word a parameter and its change as Python users write them.

    >>> in_parameters("C2", 0.5), in_parameters("filter", "larger"), in_parameters("C1", None)
    ('C2=0.5', 'a larger filter=', 'C1')
    """
    # C1 is told from the words around it; "filter" would not be.
    alone = name if name[0].isupper() else f"{name}="
    if change is None:
        return alone
    if change in ("larger", "smaller"):
        return f"a {change} {alone}"
    return f"{name}={change:.3g}" if type(change) is float else f"{name}={change!r}"


def sentence(finding: Finding, words: Words = in_parameters) -> str:
    """Word a finding about a ball, its remedies in the words of the reader."""
    return _SENTENCES[finding.kind](finding.values, finding.remedy, words)


def ball_findings(
    ball: Ball, pool: Pool, background: Background, max_kept: int, by_share: bool
) -> list[Finding]:
    """Return the findings about one ball, gravest first; `by_share`: the share set its border."""
    found = [
        _useless_radius(ball, pool, background),
        None if (pool.kinds == MAJORITY).any() else _of(ball.label, FindingKind.NO_MAJORITY),
        _all_filtered(ball, pool),
        _share_cut(ball, pool) if by_share else None,
        _too_many_kept(ball, pool, max_kept),
        _extreme_price(ball, pool),
    ]
    return [finding for finding in found if finding is not None]


def stopped_short(ball: Ball) -> Finding | None:
    """Report a solver that reached its limit of steps."""
    if ball.status != Status.MAX_ITER:
        return None
    values = {"status": str(ball.status), "gap": ball.gap}
    values |= {"n_outer": ball.n_outer, "n_inner": ball.n_inner}
    remedy = dict.fromkeys(("max_outer", "max_inner", "tol"), "larger")
    return _of(ball.label, FindingKind.STOPPED_SHORT, values, remedy)


def single_row(label: Any) -> Finding:
    """Report a category that has no row to hold out."""
    return _of(label, FindingKind.SINGLE_ROW)


def share_inside(ball: Ball, background: Background) -> float:
    """Return the share of the other rows that lies in a ball."""
    if not len(background.rows):
        return 0.0
    return float(np.average(ball.depth(background.X) >= 0.0, weights=background.weight))


def _of(
    label: Any, kind: FindingKind, values: Mapping[str, Any] | None = None, remedy: Any = None
) -> Finding:
    return Finding(kind, {"label": plain(label), **(values or {})}, remedy or {})


def _useless_radius(ball: Ball, pool: Pool, background: Background) -> Finding | None:
    """Compare radius and spread: two far groups of rare rows make a ball around everything."""
    if len(background.rows) < 2:
        return None
    spread = spread_of(ball.space.points(background.X), background.weight)
    share = share_inside(ball, background)
    is_round = isinstance(ball.space, InputSpace)
    wide = is_round and ball.radius >= spread
    # The rare rows without a label are among the others, and are to be inside.
    if not (wide and share > max(_WIDE_SHARE, 2.0 * pool.rare_share)) and share < _USELESS_SHARE:
        return None
    remedy: dict[str, Any] = {"n_balls": "auto"}
    if is_round:
        remedy["kernel"] = "gaussian"
    remedy["C1"] = "larger"
    if (ball.price[pool.kinds == UNLABELLED] > 0.0).any():
        remedy["C2"] = "smaller"
    values = {"radius": ball.radius, "spread": spread, "share": share}
    return _of(ball.label, FindingKind.USELESS_RADIUS, values, remedy)


def _say_useless_radius(v: Mapping[str, Any], remedy: Mapping[str, Any], words: Words) -> str:
    prices = [words(name, remedy[name]) for name in ("C1", "C2") if name in remedy]
    shapes = ""
    if "kernel" in remedy:
        shapes = f"{words('kernel', remedy['kernel'])} allows other shapes, and "
    return (
        f"{_name(v)} is uselessly large: its radius is {v['radius']:.3g}, the spread of the other "
        f"rows {v['spread']:.3g}, and it holds {v['share']:.0%} of them. Rare rows in several far "
        f"groups do that: {words('n_balls', remedy['n_balls'])} gives each group a ball. Otherwise "
        f"{shapes}{_or(prices)} makes a smaller ball."
    )


def _say_no_majority(v: Mapping[str, Any], _: Mapping[str, Any], words: Words) -> str:
    return (
        f"{_name(v)} knows no majority row: its label is the only one, and is taken for the rare "
        f"one. It is a one-class ball of the rare and the unlabelled rows, and {words('C1', None)} "
        "does nothing. Labels of a few cleared rows would show where it must end."
    )


def _all_filtered(ball: Ball, pool: Pool) -> Finding | None:
    if not pool.n_unlabelled or (pool.kinds == UNLABELLED).any():
        return None
    values = {"n_unlabelled": pool.n_unlabelled}
    return _of(ball.label, FindingKind.ALL_FILTERED, values, {"filter": "larger"})


def _say_all_filtered(v: Mapping[str, Any], remedy: Mapping[str, Any], words: Words) -> str:
    return (
        f"{_name(v)}: the filter left out all {v['n_unlabelled']:,} unlabelled rows, so that only "
        f"the labelled ones shape it. Pass {words('filter', remedy['filter'])} (3.0 is the "
        f"paper's), or {words('filter', False)}."
    )


def _share_cut(ball: Ball, pool: Pool) -> Finding | None:
    """Report a border by share that the kept rows do not reach."""
    wanted = int(pool.rare_share * pool.n_unlabelled)
    n_kept = int(np.count_nonzero(pool.kinds == UNLABELLED))
    if wanted <= n_kept:
        return None
    values = {"n_wanted": wanted, "share": pool.rare_share, "n_kept": n_kept}
    remedy = {"rare_share": None, "radius": "solved", "max_kept": "larger", "filter": "larger"}
    return _of(ball.label, FindingKind.SHARE_NOT_REACHED, values, remedy)


def _say_share_cut(v: Mapping[str, Any], remedy: Mapping[str, Any], words: Words) -> str:
    others = [words(name, remedy[name]) for name in ("radius", "max_kept", "filter")]
    return (
        f"{_name(v)} was to hold {v['n_wanted']:,} unlabelled rows, {v['share']:.2%} of them, and "
        f"{v['n_kept']:,} are near enough to be kept: it ends at the last of these. Pass the "
        f"{words('rare_share', None)} that you expect (that of the labelled rows is too large "
        f"where cases were sought), or {_or(others)}."
    )


def _too_many_kept(ball: Ball, pool: Pool, max_kept: int) -> Finding | None:
    n_kept = int(np.count_nonzero(pool.kinds == UNLABELLED))
    if pool.n_near > n_kept:
        values = {"n_rows": pool.n_near, "which": "unlabelled"}
    elif pool.n_majority > np.count_nonzero(pool.kinds == MAJORITY):
        values = {"n_rows": pool.n_majority, "which": "majority"}
    else:
        return None
    values["max_kept"] = max_kept
    return _of(ball.label, FindingKind.ROWS_LEFT_ASIDE, values, {"max_kept": "larger"})


def _say_too_many_kept(v: Mapping[str, Any], remedy: Mapping[str, Any], words: Words) -> str:
    larger = words("max_kept", remedy["max_kept"])
    more = f"A{larger[1:]} takes in more; predict judges all." if larger else "All rows are judged."
    what = "unlabelled rows are near" if v["which"] == "unlabelled" else "majority rows have labels"
    return (
        f"{_name(v)}: {v['n_rows']:,} {what}, of which the nearest {v['max_kept']:,} shape it. "
        f"{more}"
    )


def _extreme_price(ball: Ball, pool: Pool) -> Finding | None:
    """Report a C2 so large that every unlabelled row is inside, or so small that none is."""
    unlabelled = ball.kinds == UNLABELLED
    n_unlabelled, n_inside = int(np.count_nonzero(unlabelled)), len(ball.inside)
    if n_unlabelled < 2 or 0 < n_inside < n_unlabelled:
        return None
    C2 = float((ball.price[unlabelled] / pool.weight[unlabelled]).max())
    if C2 == 0.0:
        return None
    half = _price_of_half(ball, pool)
    advised = min(half, C2 / 2) if n_inside else max(half, C2 * 2)
    return _of(
        ball.label,
        FindingKind.ALL_INSIDE if n_inside else FindingKind.NONE_INSIDE,
        {"n_unlabelled": n_unlabelled, "C2": C2},
        {"C2": float(f"{advised:.2g}")},
    )


def _say_all_inside(v: Mapping[str, Any], remedy: Mapping[str, Any], words: Words) -> str:
    return (
        f"{_name(v)} holds all {v['n_unlabelled']:,} unlabelled rows that were kept: "
        f"{words('C2', v['C2'])} makes each of them too dear to leave out. "
        f"{words('C2', remedy['C2'])} would leave out about half."
    )


def _say_none_inside(v: Mapping[str, Any], remedy: Mapping[str, Any], words: Words) -> str:
    return (
        f"{_name(v)} holds none of the {v['n_unlabelled']:,} unlabelled rows that were kept: "
        f"{words('C2', v['C2'])} makes them too cheap to reach for. {words('C2', remedy['C2'])} "
        "would take in about half."
    )


def _price_of_half(ball: Ball, pool: Pool) -> float:
    """Return the C2 at which a ball about the same centre holds half of the unlabelled rows.

    There ``1 + C1 (majority rows inside) = C2 (unlabelled rows outside)``, in weights.
    """
    unlabelled = ball.kinds == UNLABELLED
    reach = np.median(ball.distances[unlabelled])
    majority_inside = (ball.kinds == MAJORITY) & (ball.distances < reach)
    pulled = 1.0 + float(ball.price[majority_inside].sum())
    return 2.0 * pulled / float(pool.weight[unlabelled].sum())


def _say_stopped_short(v: Mapping[str, Any], remedy: Mapping[str, Any], words: Words) -> str:
    limits = _or(words(name, None) for name in remedy)
    advice = "Take the ball as an approximation"
    if limits:
        advice = f"Raise {limits}; standardised features help"
    return (
        f"{_name(v)} {v['status']} after {v['n_outer']} outer and {v['n_inner']} inner steps "
        f"(relative gap {v['gap']:.1e}). {advice}."
    )


def _say_single_row(v: Mapping[str, Any], _: Mapping[str, Any], words: Words) -> str:
    return (
        f"{v['label']!r} has a single labelled row, which cannot be held out: how good its ball "
        "is, is not known, and it has no say in the choice. Label another."
    )


def _name(values: Mapping[str, Any]) -> str:
    return f"the ball of {values['label']!r}"


def _or(ways: Iterable[str]) -> str:
    """Join the ways that the reader has: "a", "a or b", "a, b or c"."""
    *most, last = [way for way in ways if way] or [""]
    return f"{', '.join(most)} or {last}" if most else last


_SENTENCES: dict[FindingKind, Callable[[Mapping[str, Any], Mapping[str, Any], Words], str]] = {
    FindingKind.USELESS_RADIUS: _say_useless_radius,
    FindingKind.NO_MAJORITY: _say_no_majority,
    FindingKind.ALL_FILTERED: _say_all_filtered,
    FindingKind.SHARE_NOT_REACHED: _say_share_cut,
    FindingKind.ROWS_LEFT_ASIDE: _say_too_many_kept,
    FindingKind.ALL_INSIDE: _say_all_inside,
    FindingKind.NONE_INSIDE: _say_none_inside,
    FindingKind.STOPPED_SHORT: _say_stopped_short,
    FindingKind.SINGLE_ROW: _say_single_row,
}
KINDS = tuple(_SENTENCES)
