"""What a user should know of a ball before trusting it, each with its remedy."""

import numpy as np

from rareclass.hyperball.background import Background, spread_of
from rareclass.hyperball.ball import Ball
from rareclass.hyperball.pool import MAJORITY, UNLABELLED, Pool
from rareclass.hyperball.spaces import InputSpace
from rareclass.labels.two_classes import plain

# A ball that holds so much of everything says nothing.
_USELESS_SHARE = 0.5
# One that is wider than all the rest, and holds so much of it, neither.
_WIDE_SHARE = 0.05


def findings(
    ball: Ball, pool: Pool, background: Background, max_kept: int, by_share: bool
) -> list[str]:
    """Sentences about one ball, the gravest first.

    Parameters
    ----------
    ball : Ball
    pool : Pool
    background : Background
    max_kept : int
    by_share : bool
        Whether the border was put by the rare share.
    """
    name = f"the ball of {plain(ball.label)!r}"
    said = [
        _useless_radius(name, ball, pool, background),
        _no_majority(name, pool),
        _all_filtered(name, pool),
        _share_cut(name, pool) if by_share else "",
        _too_many_kept(name, pool, max_kept),
        _extreme_price(name, ball, pool),
    ]
    return [sentence for sentence in said if sentence]


def share_inside(ball: Ball, background: Background) -> float:
    """Share of the other rows that lies in a ball."""
    if not len(background.rows):
        return 0.0
    return float(np.average(ball.depth(background.X) >= 0.0, weights=background.weight))


def _useless_radius(name: str, ball: Ball, pool: Pool, background: Background) -> str:
    """Radius against spread: two far groups of rare rows make a ball around everything."""
    if len(background.rows) < 2:
        return ""
    spread = spread_of(ball.space.points(background.X), background.weight)
    share = share_inside(ball, background)
    is_round = isinstance(ball.space, InputSpace)
    wide = is_round and ball.radius >= spread
    # The rare rows without a label are among the others, and are to be inside.
    if not (wide and share > max(_WIDE_SHARE, 2.0 * pool.rare_share)) and share < _USELESS_SHARE:
        return ""
    remedies = ["a larger C1"] + ["a smaller C2"] * bool((ball.price[pool.kinds == 0] > 0.0).any())
    shapes = "kernel='gaussian' allows other shapes, and " if is_round else ""
    return (
        f"{name} is uselessly large: its radius is {ball.radius:.3g}, the spread of the other rows "
        f"{spread:.3g}, and it holds {share:.0%} of them. Rare rows in several far groups do that: "
        f"n_balls='auto' gives each group a ball. Otherwise {shapes}{' or '.join(remedies)} makes "
        "a smaller ball."
    )


def _no_majority(name: str, pool: Pool) -> str:
    if (pool.kinds == MAJORITY).any():
        return ""
    return (
        f"{name} knows no majority row: its label is the only one, and is taken for the rare one. "
        "It is a one-class ball of the rare and the unlabelled rows, and C1 does nothing. "
        "Labels of a few cleared rows would show where it must end."
    )


def _all_filtered(name: str, pool: Pool) -> str:
    if not pool.n_unlabelled or (pool.kinds == UNLABELLED).any():
        return ""
    return (
        f"{name}: the filter left out all {pool.n_unlabelled:,} unlabelled rows, so that only the "
        "labelled ones shape it. Pass a larger filter= (3.0 is the paper's), or filter=False."
    )


def _share_cut(name: str, pool: Pool) -> str:
    """A border by share that the kept rows do not reach."""
    wanted = int(pool.rare_share * pool.n_unlabelled)
    n_kept = int(np.count_nonzero(pool.kinds == UNLABELLED))
    if wanted <= n_kept:
        return ""
    return (
        f"{name} was to hold {wanted:,} unlabelled rows, {pool.rare_share:.2%} of them, and "
        f"{n_kept:,} are near enough to be kept: it ends at the last of these. Pass the "
        "rare_share= that you expect (that of the labelled rows is too large where cases were "
        "sought), radius='solved', or a larger max_kept= and filter=."
    )


def _too_many_kept(name: str, pool: Pool, max_kept: int) -> str:
    n_kept = int(np.count_nonzero(pool.kinds == UNLABELLED))
    if pool.n_near > n_kept:
        kind, n_rows = "unlabelled rows are near", pool.n_near
    elif pool.n_majority > np.count_nonzero(pool.kinds == MAJORITY):
        kind, n_rows = "majority rows have labels", pool.n_majority
    else:
        return ""
    return (
        f"{name}: {n_rows:,} {kind}, of which the nearest {max_kept:,} shape it. A larger "
        "max_kept= takes in more; predict judges all."
    )


def _extreme_price(name: str, ball: Ball, pool: Pool) -> str:
    """C2 so large that every unlabelled row is inside, or so small that none is."""
    unlabelled = ball.kinds == UNLABELLED
    n_unlabelled, n_inside = int(np.count_nonzero(unlabelled)), len(ball.inside)
    if n_unlabelled < 2 or 0 < n_inside < n_unlabelled:
        return ""
    C2 = float((ball.price[unlabelled] / pool.weight[unlabelled]).max())
    if C2 == 0.0:
        return ""
    half = _price_of_half(ball, pool)
    if n_inside:
        return (
            f"{name} holds all {n_unlabelled:,} unlabelled rows that were kept: C2={C2:.3g} makes "
            f"each of them too dear to leave out. C2={min(half, C2 / 2):.2g} would leave out about "
            "half."
        )
    return (
        f"{name} holds none of the {n_unlabelled:,} unlabelled rows that were kept: C2={C2:.3g} "
        f"makes them too cheap to reach for. C2={max(half, C2 * 2):.2g} would take in about half."
    )


def _price_of_half(ball: Ball, pool: Pool) -> float:
    """The C2 at which a ball about the same centre holds half of the unlabelled rows.

    There ``1 + C1 (majority rows inside) = C2 (unlabelled rows outside)``, in weights.
    """
    unlabelled = ball.kinds == UNLABELLED
    reach = np.median(ball.distances[unlabelled])
    majority_inside = (ball.kinds == MAJORITY) & (ball.distances < reach)
    pulled = 1.0 + float(ball.price[majority_inside].sum())
    return 2.0 * pulled / float(pool.weight[unlabelled].sum())
