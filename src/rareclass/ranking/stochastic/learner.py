"""A function learned so far, and how a mini-batch changes it."""

from typing import NamedTuple, Self

import numpy as np

from rareclass.ranking.losses import PairLoss
from rareclass.ranking.stochastic.landmark_space import LandmarkSpace, check_memory, widened
from rareclass.ranking.stochastic.mini_batch import HeldRare, MiniBatch
from rareclass.ranking.stochastic.running_model import RunningModel
from rareclass.ranking.stochastic.weighted_rows import WeightedRows

# Rise of the value of a mini-batch that is taken for its noise.
_NOISE = 0.01
# Once there were more, the average is over the last so many passes: over a whole number of them
# much of the noise of mini-batches cancels.
_PASSES_IN_AVERAGE = 2.0


class Settings(NamedTuple):
    """What does not move."""

    loss: PairLoss
    lam: float
    n_jobs: int | None
    most_landmarks: float  # rare rows that come later become landmarks up to so many
    memory: int  # bytes for landmarks and rare rows


class Learned(NamedTuple):
    """A function in the span of landmarks and what it was learned from."""

    space: LandmarkSpace
    width: float  # sigma
    rare: HeldRare
    model: RunningModel  # of the objective
    w: np.ndarray  # shape (rank,): where the last batch was looked at
    # from there to the minimum of the model: the function that is learned is w + step
    step: np.ndarray
    n_batches: int = 0

    @classmethod
    def start(cls, space: LandmarkSpace, width: float, rare: WeightedRows) -> Self:
        """The zero function."""
        zero = np.zeros(space.rank)
        held = HeldRare(rare, space.features(rare.X))
        return cls(space, width, held, RunningModel.empty(space.rank), zero, zero)

    @property
    def weights(self) -> np.ndarray:
        """Of the function learned, in whitened coordinates."""
        return self.w + self.step

    @property
    def coefficients(self) -> np.ndarray:
        """Of the function learned, one a landmark."""
        return self.space.whitener @ self.weights

    def objective(self, lam: float) -> float:
        """The objective, as the model knows it."""
        return self.model.value(self.weights, lam)

    def relative_gap(self, lam: float) -> float:
        """Estimated distance of the objective from its minimum, relative to it."""
        value = self.objective(lam)
        return self.model.gap / value if value > 0.0 else np.inf

    def after(
        self,
        rows: WeightedRows,
        settings: Settings,
        rng: np.random.Generator,
        whole: float = np.inf,
    ) -> Self:
        """One step: the batch judges the last step, joins the model, and a new step is found.

        The rows are of the majority, of weight above 0; `rng` draws the pairs for the curvature,
        and `whole` is the weight of all majority rows, where they are finitely many and visited
        again.
        """
        batch = MiniBatch(settings.loss, settings.lam, self.space, self.rare, rows, settings.n_jobs)
        weight = float(rows.weight.sum())
        share = self.model.share_of(weight, _least_share(weight, whole))
        step = batch.step(self.w, self.step)
        # Where the batch is all there is, it has no noise.
        t = batch.length(step, _NOISE if share < 1.0 else 0.0) if self.step.any() else 1.0
        w, at = step.taken(t)
        model = self.model.updated(batch.model(at, share, rng), w, weight, share)
        found = model.minimum(w, settings.lam)
        return self._replace(
            model=model.noted(found.decrease), w=w, step=found.w - w, n_batches=self.n_batches + 1
        )

    def with_rare(self, more: WeightedRows, settings: Settings) -> Self:
        """With further rare rows: all of them in the loss, some as landmarks."""
        rows = self.rare.rows.joined(more)
        check_memory(self.space.expansion.landmarks, len(rows), settings.memory)
        space = widened(self.space, more.X, settings.most_landmarks)
        before = float(self.rare.rows.weight.sum())
        model = self.model.discounted(before / float(rows.weight.sum()))
        w, step = self.w, self.step
        if space is self.space:
            features = np.concatenate([self.rare.features, space.features(more.X)])
        else:
            features = space.features(rows.X)
            model = model.widened(space.rank)
            w, step = (np.pad(v, (0, space.rank - len(v))) for v in (w, step))
        return self._replace(
            space=space, rare=HeldRare(rows, features), model=model, w=w, step=step
        )


def _least_share(weight: float, whole: float) -> float:
    """What a batch weighs at least: all, where it is the whole; nothing, in an endless stream."""
    return 1.0 if weight >= whole else weight / (_PASSES_IN_AVERAGE * whole)
