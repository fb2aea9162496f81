"""No alert because a row is far: other units, later dates, words never seen; for every member."""

import numpy as np
import pandas as pd
import pytest

from draws import quick
from ensemble.quick_members import named, small_members
from rareclass import RareClassifier

N = 300
NUMBERS = ["core", "amount", "age", "noise"]
MADE = small_members(25, lams=(2.0**-2, 2.0**-6), n_majority=80)
ALONE = named(MADE, lambda member: [member])
TOGETHER = [member for member in MADE if member.package is None]


def table(seed):
    rng = np.random.default_rng(seed)
    y = np.arange(N) % 7 == 0
    numbers = rng.normal(size=(N, 5))
    numbers[y, :3] *= 0.25
    when = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 365 * 86400, N), unit="s")
    frame = pd.DataFrame(
        {
            "signal": numbers[:, 3] + 3.0 * y,
            "core": numbers[:, 0],
            "amount": np.exp(numbers[:, 1]),
            "age": 50 + 12 * numbers[:, 2],
            "noise": numbers[:, 4],
            "kind": np.where(y & (rng.random(N) < 0.7), "c", rng.choice(list("aab"), N)),
            "shop": [f"s{k}" for k in rng.integers(0, 25, N)],
            "when": when,
            "due": when + pd.to_timedelta(rng.integers(1, 40, N), unit="D"),
        }
    )
    return frame, y


def moved(frame):
    """The same rows elsewhere: by name of what was done, with what `outside` has to say."""
    later = {name: frame[name] + pd.Timedelta(days=728) for name in ("when", "due")}
    units = {
        f"{name} times {factor:g}": (frame.assign(**{name: factor * frame[name]}), [name])
        for name in NUMBERS
        for factor in (1e3, -1e3)
    }
    everywhere = frame.assign(**{name: 1e3 * frame[name] for name in NUMBERS})
    return units | {
        "signal low": (frame.assign(signal=-1e6), ["signal"]),
        "all numbers": (everywhere, NUMBERS),
        "all negative": (frame.assign(**{name: -1e6 for name in NUMBERS}), NUMBERS),
        "dates later": (frame.assign(**later), []),
        "kind": (frame.assign(kind="z"), ["kind"]),
        "shop": (frame.assign(shop="z"), ["shop"]),
        "everything": (everywhere.assign(kind="z", shop="z", **later), [*NUMBERS, "kind", "shop"]),
    }


X, Y = table(0)
NEW = table(1)[0][~table(1)[1]]
SPLITS = [(np.flatnonzero(np.arange(N) % 3 != k), np.arange(k, N, 3)) for k in range(3)]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("members", quick(5, [pytest.param(TOGETHER, id="together"), *ALONE]))
def test_majority_rows_that_are_far_are_no_more_often_called_rare(members):
    model = RareClassifier(members=members, cv=SPLITS, n_jobs=1).fit(X, Y)
    assert model.held_out_score_ > 0.6
    usual = model.score_samples(NEW)
    called = (usual > model.offset_).mean()
    rarest = max(usual.max(), model.score_samples(X).max())
    for what, (rows, columns) in moved(NEW).items():
        scores = model.score_samples(rows)
        assert (scores > model.offset_).mean() <= 3.0 * called + 0.03, what
        assert scores.max() <= rarest, what
        assert set(model.outside(rows)) >= set(columns)
