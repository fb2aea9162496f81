"""Two thresholds: above the one a row is blocked, between them it is reviewed, below it passes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.decide.chosen_threshold import ChosenThreshold
from rareclass.decide.threshold_rule import ThresholdRule
from rareclass.findings import Finding, FindingKind

BLOCK, REVIEW, PASS = "block", "review", "pass"


@dataclass(frozen=True)
class ChosenBand:
    """A threshold for blocking and one for review, which is lower unless a finding says not.

    `block` and `review` are about all rows above their own threshold: those of `review` include
    what is blocked.
    """

    block: ChosenThreshold
    review: ChosenThreshold

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Those of both thresholds."""
        return self.block.findings + self.review.findings

    def decide(self, scores: ArrayLike) -> NDArray[np.str_]:
        """ "block", "review" or "pass" for each score."""
        value = np.asarray(scores, dtype=float)
        held_up = np.where(value > self.review.threshold, REVIEW, PASS)
        return np.where(value > self.block.threshold, BLOCK, held_up)

    def approximately(self, reason: str) -> Self:
        """Both thresholds with guarantees that are not exact."""
        return replace(
            self, block=self.block.approximately(reason), review=self.review.approximately(reason)
        )

    def to_dict(self) -> dict[str, Any]:
        """Both thresholds as plain numbers."""
        return {"block": self.block.to_dict(), "review": self.review.to_dict()}


@dataclass(frozen=True)
class ReviewBand:
    """Rules for two thresholds: rows above that of `block` are blocked, above `review` looked at.

    Such as ``ReviewBand(block=ThresholdRule.min_precision(0.9),
    review=ThresholdRule.min_recall(0.95))``. The rows that `review` is about include those that
    are blocked. Where its threshold is not below the other's, blocked rows are as `block` has them
    and there is nothing to review: a finding says so.

    Each rule has its own confidence; both hold together with that of the two less one (.8 for .9
    and .9) at least.

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> y = np.arange(5000) < 100
    >>> scores = random.normal(size=5000) + 3 * y
    >>> band = ReviewBand(ThresholdRule.min_precision(0.7), ThresholdRule.min_recall(0.9))
    >>> chosen = band.choose(y, scores)
    >>> [(chosen.decide(scores) == word).sum().item() for word in ("block", "review", "pass")]
    [86, 225, 4689]
    """

    block: ThresholdRule
    review: ThresholdRule

    def __post_init__(self) -> None:
        for name in ("block", "review"):
            if not isinstance(getattr(self, name), ThresholdRule):
                raise ValueError(f"{name}={getattr(self, name)!r} must be a ThresholdRule.")

    def choose(
        self,
        y: ArrayLike,
        scores: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        costs: Mapping[str, Any] | None = None,
        time: Any = None,
    ) -> ChosenBand:
        """Both thresholds; parameters as of `ThresholdRule.choose`."""
        block, review = (
            rule.choose(y, scores, sample_weight, costs=costs, time=time)
            for rule in (self.block, self.review)
        )
        if review.threshold < block.threshold:
            return ChosenBand(block, review)
        values = {"block": block.threshold, "review": review.threshold}
        finding = Finding(FindingKind.NOTHING_TO_REVIEW, values, {"review": "a weaker rule"})
        return ChosenBand(block, replace(review, findings=(*review.findings, finding)))
