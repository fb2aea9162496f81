"""The balls of a hunt as a model that scores new rows in the order of its list."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rareclass.hunt.hunting import Hunt
from rareclass.hunt.sureness import ListOrder
from rareclass.hunt.table import HuntTable
from rareclass.hyperball.problem import InputSpace, KernelSpace
from rareclass.kernels.kernels import make_kernel
from rareclass.model.facts import BallFacts, ModelFacts, RareClassFacts
from rareclass.model.model import Model
from rareclass.model.model_file import save_model
from rareclass.model.soundness import finite_vector


class PlainBall(NamedTuple):
    """A ball by the numbers that distances need."""

    name: str
    squared_radius: float
    # (n_coordinates,), or with a kernel the weights of the landmarks
    center: NDArray[np.float64]
    landmarks: NDArray[np.float64] | None = None  # (n_landmarks, n_coordinates)
    kernel: str | None = None
    width: float = 1.0
    squared_norm: float = 0.0  # of the centre in the space of the kernel

    def check_parts(self) -> None:
        """Raise `ValueError` where the parts of a ball are not of one size."""
        center = finite_vector(self.center, "center")
        if self.landmarks is not None and self.landmarks.shape[0] != len(center):
            raise ValueError("center does not have a weight for each landmark")
        if not np.isfinite([self.squared_radius, self.width, self.squared_norm]).all():
            raise ValueError("a ball has no finite radius")

    def squared_distances(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return ``|x - c|^2`` of every row, or ``k(x, x) - 2 b . k(Z, x) + |c|^2``."""
        X = np.asarray(X, dtype=np.float64)
        if self.kernel is None or self.landmarks is None:
            apart = X - self.center
            return np.einsum("ij,ij->i", apart, apart)
        kernel = make_kernel(self.kernel, self.width)
        inner = kernel.block(X, self.landmarks) @ self.center
        return np.maximum(kernel.diag(X) - 2.0 * inner + self.squared_norm, 0.0)


class HuntBalls:
    """Balls of a hunt, as a model that scores rows.

    ``offset_`` is the greatest number below 0: rows on the sphere belong to a ball.
    """

    offset_ = float(np.nextafter(0.0, -1.0))

    def __init__(self, balls: list[PlainBall], order: ListOrder) -> None:
        self.balls, self.order = balls, order

    def check_parts(self) -> None:
        """Raise `ValueError` where balls and list are not of one hunt."""
        if len(self.order.key.deep) != len(self.balls):
            raise ValueError("there are not counts for each ball")
        width = self.order.key.known.shape[1]
        places = [one.center if one.landmarks is None else one.landmarks for one in self.balls]
        if any(place.shape[-1] != width for place in places):
            raise ValueError("balls and labelled rows are not in one space")

    def score_samples(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return scores that fall down the list of the hunt (`ListOrder`), above 0 in a ball."""
        squared = np.column_stack([ball.squared_distances(X) for ball in self.balls])
        radius = np.array([ball.squared_radius for ball in self.balls])
        deepest = (radius - squared).argmax(axis=1)
        distance = squared[np.arange(len(squared)), deepest]
        return self.order.scores(X, deepest, radius[deepest] - distance)

    def sure(self, scores: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return the expected share of cases among rows as sure; see `ListOrder.sure`."""
        return self.order.sure(scores)


def plain_balls(hunt: Hunt) -> list[PlainBall]:
    """Return the fitted balls without the rows that they were fitted to."""
    plain = []
    for fitted, found in zip(hunt.model.balls_, hunt.balls, strict=True):
        space, center = fitted.space, np.asarray(fitted.center, dtype=np.float64)
        if isinstance(space, KernelSpace):
            ball = PlainBall(
                found.name,
                fitted.squared_radius,
                space.coefficients(center),
                np.asarray(space.landmarks, dtype=np.float64),
                str(hunt.model.kernel),
                float(hunt.model.width_ or 1.0),
                float(center @ center),
            )
        else:
            assert isinstance(space, InputSpace)
            ball = PlainBall(found.name, fitted.squared_radius, space.input_center(center))
        plain.append(ball)
    return plain


def write_balls(path: Path, table: HuntTable, hunt: Hunt, target: str) -> None:
    """Write what scores new rows as a model file: encoder, balls, order of the list, quantiles."""
    facts = ModelFacts(
        format="table",
        target=RareClassFacts(target, " or ".join(table.labels.rare), "others"),
        columns=tuple(table.columns),
        quantiles=tuple(hunt.order.quantiles(1001).tolist()),
        method=BallFacts(),
    )
    balls = HuntBalls(plain_balls(hunt), hunt.order.thinned())
    save_model(path, Model(hunt.encoder, balls, facts, np.array([balls.offset_])))
