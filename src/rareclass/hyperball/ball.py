"""One ball around one rare category: fitting it, the rows that it holds, and findings about it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaincinv

from rareclass.errors import setting
from rareclass.findings import Finding, FindingKind
from rareclass.hyperball.pool import (
    MAJORITY,
    RARE,
    SHARE,
    UNLABELLED,
    Background,
    Pool,
    RACHParameters,
    spread_of,
)
from rareclass.hyperball.problem import BallProblem, BallSpace, InputSpace, Points
from rareclass.hyperball.solver import BallSolution, one_class_center, solve_ball
from rareclass.labels.partial_labels import PartialLabels
from rareclass.labels.spelling import plain

# A row on the sphere is inside, whatever rounding made of its distance.
_ROUNDING = 1e-9
# Share of a multiplier's bound: a multiplier nearer than this is at its bound.
_AT_BOUND = 1e-6


class Ball(NamedTuple):
    """A ball, the n rows that it was fitted to, and how the solver ended."""

    label: Any
    space: BallSpace
    solution: BallSolution  # of Problem 1 (with a margin, as `fit_ball` has it), for all n rows
    squared_radius: float
    is_moved: bool  # whether a margin or slack set the radius apart from that of Problem 1
    rows: np.ndarray  # numbers of the rows that entered the optimisation
    kinds: np.ndarray  # int8: 1 rare, -1 majority, 0 unlabelled
    X: Any  # these rows
    price: np.ndarray  # upper bounds of the multipliers
    distances: np.ndarray  # squared, of the rows to the centre

    @property
    def center(self) -> np.ndarray:
        """Centre in the coordinates of `space`, shape (p,)."""
        return self.solution.center

    @property
    def radius(self) -> float:
        """Radius in the units of the distances."""
        return float(np.sqrt(self.squared_radius))

    @property
    def support(self) -> np.ndarray:
        """Numbers of the rows with a multiplier above 0."""
        return self.rows[self.solution.multipliers > 0.0]

    @property
    def found(self) -> np.ndarray:
        """Numbers of the unlabelled rows inside, which are predicted rare."""
        return self.rows[self.inside]

    @property
    def inside(self) -> np.ndarray:
        """Positions in ``rows`` of the unlabelled ones inside.

        Their multiplier is below its bound; with a margin or slack they lie within the radius.
        """
        # For a row on the sphere, or of price 0, the distance decides and not the multiplier.
        inside = self.distances <= self.squared_radius
        if not self.is_moved:
            inside |= self.solution.multipliers < self.price * (1.0 - _AT_BOUND)
        return np.flatnonzero(inside & (self.kinds == UNLABELLED))

    def depth(self, X: Any) -> np.ndarray:
        """Return ``R^2 - distance^2`` of every row of X, shape (n,)."""
        return self.squared_radius - self.space.squared_distances(X, self.center)


class BallStart(NamedTuple):
    """A centre and multipliers to begin with."""

    center: np.ndarray
    multipliers: np.ndarray | None = None


def fit_ball(
    space: BallSpace,
    points: Points,
    pool: Pool,
    settings: RACHParameters,
    start: BallStart | None = None,
) -> Ball:
    """Solve Problem 1 over a pool, from the one-class ball or from a solution nearby.

    The settings are those of one category (`RACHParameters._of_ball`).

    The margin m asks for majority rows beyond ``R^2 + m``: that is Problem 1 with m more squared
    distance to the other rows, and R^2 + m for its R^2. The border lies half way, or
    where the rare share of the unlabelled rows falls inside.
    """
    C1, C2, margin = float(settings.C1), float(settings.C2), float(settings.margin)
    slack = float(settings.radius_slack)
    # Rare rows have no upper bound.
    price = np.where(pool.kinds == MAJORITY, C1, C2) * pool.weight
    price[pool.kinds == RARE] = np.inf
    start = start or one_class_start(points, pool)
    farther = np.where(pool.kinds != MAJORITY, margin, 0.0)
    seen = Points(points.features, points.residual + farther) if margin else points
    solution = _solve(seen, pool, price, start, settings)
    distances = points.squared_distances(solution.center)
    squared_radius = solution.squared_radius - 0.5 * margin
    if settings.radius == SHARE:
        squared_radius = pool.share_radius(distances, squared_radius)
    squared_radius += _ROUNDING * (abs(squared_radius) + float(distances.mean()))
    return Ball(
        label=pool.label,
        space=space,
        solution=solution,
        squared_radius=max(squared_radius + slack, 0.0),
        is_moved=bool(margin or slack or settings.radius == SHARE),
        rows=pool.rows,
        kinds=pool.kinds,
        X=pool.X,
        price=price,
        distances=distances,
    )


def _solve(
    points: Points, pool: Pool, price: np.ndarray, start: BallStart, settings: RACHParameters
) -> BallSolution:
    """Solve without the rows of price 0, whose multipliers are 0."""
    there = np.flatnonzero(price > 0.0)
    signs = np.where(pool.kinds[there] == MAJORITY, -1.0, 1.0)
    seen = points if len(there) == points.n_rows else points.take(there)
    solution = solve_ball(
        BallProblem(seen, signs, price[there]),
        start.center,
        None if start.multipliers is None else start.multipliers[there],
        tol=settings.tol,
        max_outer=settings.max_outer,
        max_inner=settings.max_inner,
    )
    whole = np.zeros(points.n_rows)
    whole[there] = solution.multipliers
    return solution._replace(multipliers=whole)


def one_class_start(points: Points, pool: Pool) -> BallStart:
    """Begin with the centre of the one-class ball of the rare rows (Algorithm 2)."""
    rare = pool.which(RARE)
    return BallStart(one_class_center(points.take(rare), pool.weight[rare])[0])


def transduced(labels: PartialLabels, balls: tuple[Ball, ...]) -> np.ndarray:
    """Return the labels of all rows; one that several balls claim goes where it lies deepest."""
    code = labels.code.copy()
    code[labels.code < 0] = np.flatnonzero(labels.classes == labels.majority)[0]
    deepest = np.full(len(code), -np.inf)
    for ball in balls:
        depth = ball.squared_radius - ball.distances[ball.inside]
        found = ball.found
        wins = depth > deepest[found]
        deepest[found[wins]] = depth[wins]
        code[found[wins]] = np.flatnonzero(labels.classes == ball.label)[0]
    return labels.classes[code]


# A ball that holds such a share of everything says nothing.
_USELESS_SHARE = 0.5
# Nor does a ball wider than all other rows that holds such a share of them.
_WIDE_SHARE = 0.05
# A ball that holds twice as many rows as there can be rare ones, at this confidence, is too large.
_TIMES_TOO_MANY, _CONFIDENCE = 2.0, 0.975

Words = Callable[[str, Any], str]
"""Words for a parameter of `RACH` and its change in the remedy of a `Finding`: a value, "larger",
"smaller", or None for the name alone; "" where the reader has no such parameter."""


def in_parameters(name: str, change: Any) -> str:
    """Word a parameter and its change as the caller writes them.

    >>> in_parameters("filter", False), in_parameters("filter", "larger"), in_parameters("C1", None)
    ('filter=False', 'a larger filter=', 'C1')
    """
    # C1 is told from the words around it; "filter" would not be.
    alone = name if name[0].isupper() else setting(name)
    if change is None:
        return alone
    if change in ("larger", "smaller"):
        return f"a {change} {alone}"
    return setting(name, change)


def ball_findings(
    ball: Ball, pool: Pool, background: Background, max_kept: int, by_share: bool
) -> list[Finding]:
    """Return the findings about one ball, gravest first; `by_share`: the share set its border."""
    n_kept, n_majority = (len(pool.which(kind)) for kind in (UNLABELLED, MAJORITY))
    found = _useless_radius(ball, pool, background)
    if not n_majority:
        found.append(finding_about(ball.label, FindingKind.NO_MAJORITY))
    if pool.n_unlabelled and not n_kept:
        values: dict[str, Any] = {"n_unlabelled": pool.n_unlabelled}
        found.append(
            finding_about(ball.label, FindingKind.ALL_FILTERED, values, {"filter": "larger"})
        )
    n_wanted = int(pool.rare_share * pool.n_unlabelled)
    if by_share and n_wanted > n_kept:
        values = {"n_wanted": n_wanted, "share": pool.rare_share, "n_kept": n_kept}
        remedy = {"rare_share": None, "radius": "solved", "max_kept": "larger", "filter": "larger"}
        found.append(finding_about(ball.label, FindingKind.SHARE_NOT_REACHED, values, remedy))
    if pool.n_near > n_kept or pool.n_majority > n_majority:
        values = {"n_rows": pool.n_majority, "which": "majority", "max_kept": max_kept}
        if pool.n_near > n_kept:
            values |= {"n_rows": pool.n_near, "which": "unlabelled"}
        found.append(
            finding_about(ball.label, FindingKind.ROWS_LEFT_ASIDE, values, {"max_kept": "larger"})
        )
    found += _extreme_price(ball)
    if not by_share and not {one.kind for one in found} & _TOO_LARGE:
        found += _beyond_share(ball, pool)
    return found


def stopped_short(ball: Ball) -> Finding:
    """Return the finding of a solver that reached its limit of steps."""
    end = ball.solution
    values = {"status": str(end.status), "gap": end.gap}
    values |= {"n_outer": end.n_outer, "n_inner": end.n_inner}
    remedy = dict.fromkeys(("max_outer", "max_inner", "tol"), "larger")
    return finding_about(ball.label, FindingKind.STOPPED_SHORT, values, remedy)


def finding_about(
    label: Any, kind: FindingKind, values: Mapping[str, Any] | None = None, remedy: Any = None
) -> Finding:
    """Return a finding about the balls of a category."""
    return Finding(kind, {"label": plain(label), **(values or {})}, remedy or {})


def _useless_radius(ball: Ball, pool: Pool, background: Background) -> list[Finding]:
    """Compare radius and spread: two far groups of rare rows make a ball around everything."""
    if len(background.rows) < 2:
        return []
    spread = spread_of(ball.space.points(background.X), background.weight)
    share = float(np.average(ball.depth(background.X) >= 0.0, weights=background.weight))
    is_round = isinstance(ball.space, InputSpace)
    wide = is_round and ball.radius >= spread
    # The rare rows without a label are among the others, and are to be inside.
    if not (wide and share > max(_WIDE_SHARE, 2.0 * pool.rare_share)) and share < _USELESS_SHARE:
        return []
    shapes = {"kernel": "gaussian"} if is_round else {}
    remedy = {"n_balls": "auto", **shapes, **_for_a_smaller_ball(ball)}
    values = {"radius": ball.radius, "spread": spread, "share": share}
    return [finding_about(ball.label, FindingKind.USELESS_RADIUS, values, remedy)]


def _for_a_smaller_ball(ball: Ball) -> dict[str, str]:
    """Return the changes of prices that make a smaller ball."""
    has_price = (ball.price[ball.kinds == UNLABELLED] > 0.0).any()
    return {"C1": "larger", "C2": "smaller"} if has_price else {"C1": "larger"}


def _beyond_share(ball: Ball, pool: Pool) -> list[Finding]:
    """Report a ball of which less than half can be rare, if labels are of rows as they came."""
    n_rare = float(pool.weight[pool.kinds == RARE].sum())
    expected = pool.rare_share * pool.weight_unlabelled
    n_found = float(pool.weight[ball.inside].sum())
    most = expected * float(gammaincinv(n_rare + 1.0, _CONFIDENCE)) / n_rare if n_rare else np.inf
    if n_found <= _TIMES_TOO_MANY * most:
        return []
    remedy = {**_for_a_smaller_ball(ball), "rare_share": None}
    values = {"n_found": n_found, "share": pool.rare_share, "n_most": most}
    return [finding_about(ball.label, FindingKind.BEYOND_SHARE, values, remedy)]


def _extreme_price(ball: Ball) -> list[Finding]:
    """Report a C2 so large that every unlabelled row is inside, or so small that none is."""
    unlabelled = ball.kinds == UNLABELLED
    n_unlabelled, n_inside = int(np.count_nonzero(unlabelled)), len(ball.inside)
    if n_unlabelled < 2 or 0 < n_inside < n_unlabelled or not ball.price[unlabelled].any():
        return []
    kind = FindingKind.ALL_INSIDE if n_inside else FindingKind.NONE_INSIDE
    change = "smaller" if n_inside else "larger"
    return [finding_about(ball.label, kind, {"n_unlabelled": n_unlabelled}, {"C2": change})]


_SENTENCES = {
    FindingKind.USELESS_RADIUS: (
        "{ball} is uselessly large: its radius is {v[radius]:.3g}, the spread of the other rows "
        "{v[spread]:.3g}, and it holds {v[share]:.0%} of them. Rare rows in several far groups do "
        "that: {to[n_balls]} gives each group a ball. Otherwise {shapes}{prices} makes a smaller "
        "ball."
    ),
    FindingKind.BEYOND_SHARE: (
        "{ball} holds {v[n_found]:,.0f} unlabelled rows. With a rare share of {v[share]:.2%} at "
        "most about {v[n_most]:,.0f} of all unlabelled rows are rare. {prices} makes a smaller "
        "ball, and RACHCV chooses one by held-out rows; pass a larger {to[rare_share]} where more "
        "are rare."
    ),
    FindingKind.NO_MAJORITY: (
        "{ball} knows no majority row: its only label counts as the rare one. "
        "It is a one-class ball of the rare and the unlabelled rows, and {C1} does nothing. Labels "
        "of a few cleared rows would show where it must end."
    ),
    FindingKind.ALL_FILTERED: (
        "{ball}: the filter left out all {v[n_unlabelled]:,} unlabelled rows, so it was fitted to "
        "labelled rows only. Pass {to[filter]} (3.0 is the paper's), or {no_filter}."
    ),
    FindingKind.SHARE_NOT_REACHED: (
        "{ball} was to hold {v[n_wanted]:,} unlabelled rows, {v[share]:.2%} of them, and "
        "{v[n_kept]:,} are near enough to be kept: it ends at the last of these. Pass the "
        "{to[rare_share]} that you expect (that of the labelled rows is too large where cases were "
        "sought), or {others}."
    ),
    FindingKind.ROWS_LEFT_ASIDE: (
        "{ball} was fitted to the nearest {v[max_kept]:,} of {v[n_rows]:,} {which} rows. {more}"
    ),
    FindingKind.ALL_INSIDE: (
        "{ball} holds all {v[n_unlabelled]:,} unlabelled rows that were kept: {to[C2]} leaves some "
        "out."
    ),
    FindingKind.NONE_INSIDE: (
        "{ball} holds none of the {v[n_unlabelled]:,} unlabelled rows that were kept: {to[C2]} "
        "takes some in."
    ),
    FindingKind.STOPPED_SHORT: (
        "{ball} {v[status]} after {v[n_outer]} outer and {v[n_inner]} inner steps (relative gap "
        "{v[gap]:.1e}). {advice}."
    ),
    FindingKind.SINGLE_ROW: (
        "{v[label]!r} has a single labelled row, which cannot be held out: how good its ball is, "
        "is not known, and it has no say in the choice. Label another."
    ),
}
KINDS = tuple(_SENTENCES)
# Findings that say already that a ball holds too much.
_TOO_LARGE = {FindingKind.USELESS_RADIUS, FindingKind.ALL_INSIDE}


def sentence(finding: Finding, words: Words = in_parameters) -> str:
    """Word a finding about a ball, its remedies in the words of the reader."""
    values, to = finding.values, {name: words(name, how) for name, how in finding.remedy.items()}
    parts = {"C1": words("C1", None), "no_filter": words("filter", False)}
    match finding.kind:
        case FindingKind.USELESS_RADIUS:
            parts["shapes"] = f"{to['kernel']} allows other shapes, and " if "kernel" in to else ""
            parts["prices"] = _or(to[name] for name in ("C1", "C2") if name in to)
        case FindingKind.BEYOND_SHARE:
            prices = _or(to[name] for name in ("C2", "C1") if name in to)
            parts["prices"] = prices[:1].upper() + prices[1:]
        case FindingKind.SHARE_NOT_REACHED:
            parts["others"] = _or(to[name] for name in ("radius", "max_kept", "filter"))
        case FindingKind.ROWS_LEFT_ASIDE:
            larger, is_majority = to["max_kept"], values["which"] == "majority"
            parts["which"] = "labelled majority" if is_majority else "unlabelled"
            more = f"A{larger[1:]} takes in more; predict classifies all rows."
            parts["more"] = more if larger else "All rows are ranked."
        case FindingKind.STOPPED_SHORT:
            limits = _or(words(name, None) for name in finding.remedy)
            raised = f"Raise {limits}; standardised features help"
            parts["advice"] = raised if limits else "Take the ball as an approximation"
    ball = f"the ball of {values['label']!r}"
    return _SENTENCES[finding.kind].format(ball=ball, v=values, to=to, **parts)


def _or(ways: Iterable[str]) -> str:
    """Join the ways that the reader has: "a", "a or b", "a, b or c"."""
    *most, last = [way for way in ways if way] or [""]
    return f"{', '.join(most)} or {last}" if most else last
