"""`rareclass fit` and `RareClassifier` learn the same model from the same rows, bit for bit."""

import numpy as np
import pandas as pd
import pytest

from command_line import invoke
from rareclass import RareClassifier, load

MEMBERS = ["logistic regression", "extra trees"]


def table(seed, n=400):
    """Numbers, words and a switch; by the seed codes, dates, row numbers, gaps and duplicates."""
    rng = np.random.default_rng(seed)
    found = pd.DataFrame(
        {
            "amount": rng.normal(50, 10, n).round(2),
            "count": rng.poisson(3, n),
            "shop": rng.choice([f"s{k}" for k in range(30)], n),
            "is_new": rng.random(n) < 0.4,
        }
    )
    odds = (found["amount"] - 60) / 6 + (found["shop"] < "s12") - 1.5
    if seed % 3 == 0:
        found["code"] = rng.integers(1000, 1040, n)
        odds += (found["code"] % 7 == 0) * 1.5
    if seed % 4 == 1:
        seconds = np.sort(rng.integers(0, 5_000_000, n))
        found["when"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(seconds, unit="s")
    if seed % 5 == 2:
        found["part"] = [f"{k:05d}" for k in rng.integers(0, 300, n)]
    if seed % 7 == 4:
        found.loc[rng.random(n) < 0.1, "amount"] = np.nan
        found["word"] = rng.choice(["yes", "no", "NA", ""], n)
    kinds = np.array(["bad", "worse"])[rng.integers(0, 1 + (seed % 6 == 5), n)]
    found["y"] = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), kinds, "good")
    if seed % 2 == 0:
        again = rng.choice(n, 150), rng.choice(np.flatnonzero(found["y"] != "good"), 30)
        found = found.iloc[np.concatenate([np.arange(n), *again])]
    if seed % 4 == 0:
        found = found.sample(frac=1, random_state=seed)
    if seed % 5 == 3:
        found["row_id"] = np.arange(len(found))
    return found.reset_index(drop=True)


@pytest.mark.sampled(1)
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("seed", range(20))
def test_the_command_line_and_python_learn_the_same_model(seed, tmp_path):
    rows = table(seed)
    X, path, out = rows.drop(columns="y"), tmp_path / "t", tmp_path / "m.rareclass"
    rows.to_csv(path, index=False) if seed % 3 else rows.to_parquet(path)
    command = "fit", path, "--target", "y", "--out", out, "--members", ",".join(MEMBERS)
    done = invoke(*command, "--effort", "quick")
    assert done.exit_code == 0, done.output
    model = RareClassifier("quick", members=MEMBERS).fit(X, rows["y"])
    np.testing.assert_array_equal(load(out).score_samples(X), model.score_samples(X))
    # Every row as given has a held-out score, equal ones the same.
    held_out = model.held_out_
    assert held_out["row"].tolist() == list(range(len(rows)))
    np.testing.assert_array_equal(held_out["rare"], rows["y"] != "good")
    assert sum(held_out.get("weight", [len(rows)])) == pytest.approx(len(rows))
    equal = rows.drop(columns="row_id", errors="ignore").astype(str)
    scores = pd.Series(held_out["score"]).groupby([equal[name] for name in equal])
    assert (scores.nunique() == 1).all()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", [0, 2])
def test_copies_are_weights_and_stand_where_the_first_of_them_does(seed):
    """Rows given once, by weight, in the order in which they first appear."""
    rows, settings = table(seed), {"members": MEMBERS[:1], "n_jobs": 1}
    model = RareClassifier("quick", **settings).fit(rows.drop(columns="y"), rows["y"])
    once, n_copies = rows.drop_duplicates(), rows.groupby(list(rows), sort=False).size()
    assert n_copies.max() > 1
    other = RareClassifier("quick", **settings)
    other.fit(once.drop(columns="y"), once["y"], n_copies.to_numpy())
    X = rows.drop(columns="y")
    np.testing.assert_array_equal(model.score_samples(X), other.score_samples(X))
