"""RareClassifier beside other libraries: ranks, headline, tables, estimates."""

import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from benchmarks import paired_test
from benchmarks.tabular import estimates, figures, headline, sets
from benchmarks.tabular.preparation import Filled
from draws import draws
from rareclass.metrics import interval

pytestmark = pytest.mark.sampled(0)


@draws(40)
@given(
    st.lists(st.lists(st.sampled_from([None, 0.1, 0.5, 0.9]), min_size=4, max_size=4), min_size=1)
)
def test_mean_ranks_by_counting(rows):
    labels = "abcd"
    found = figures.mean_ranks(
        {str(k): dict(zip(labels, row, strict=True)) for k, row in enumerate(rows)}
    )
    for column, label in enumerate(labels):
        ranks = []
        for row in rows:
            values = [-1.0 if value is None else value for value in row]
            above = sum(value > values[column] for value in values)
            level = sum(value == values[column] for value in values)
            ranks.append(above + (level + 1) / 2)
        assert found[label] == pytest.approx(np.mean(ranks))


def run(name, label, repeat, auc, **more):
    about = {"key": f"{name} / {label}", "method": label.partition(",")[0], "set": name}
    about |= {"label": label, "repeat": repeat, "status": "ok", "seconds": 1.0, "auc": auc}
    about |= {"average_precision": auc / 2, "log_loss": 1 - auc, "rows": 2, "test_rows": 1}
    return about | more


def test_the_headline_ranks_methods_on_the_splits_that_all_of_them_finished():
    runs = [
        run("oil", "rareclass, 60 s", 0, 0.9, seconds=9.0),
        run("oil", "rareclass, 60 s", 1, 0.1, seconds=9.0),  # the peer has no such split
        run("oil", "lightgbm", 0, 0.8),
        run("ecoli", "rareclass, 60 s", 0, 0.7, seconds=5.0),
        run("ecoli", "lightgbm", 0, 0.7),
        run("coil", "rareclass, 60 s", 0, 0.7),
        run("coil", "lightgbm", 0, 0.7, status="failed"),
    ]
    found = headline.headline(runs)
    assert found.sets == ("oil", "ecoli")
    assert found.methods["rareclass"].means["auc"] == pytest.approx(0.8)
    assert found.methods["rareclass"].ranks["auc"] == 1.25
    assert found.methods["rareclass"].seconds == 7.0
    assert found.best_peer == "lightgbm"
    line = "| RareClassifier | 80.0 (1.25) | 40.0 (1.25) | 0.200 (1.25) | 7.0 |"
    assert line in headline.headline_table(found)
    # A method that was run on few of the sets is left out, and does not narrow them.
    few = [run("oil", "xgboost", 0, 0.9)]
    assert headline.headline([*runs, *few]).methods.keys() == found.methods.keys()


def test_the_headline_marks_what_is_significantly_behind_over_tables():
    """Nine tables on which one peer is behind, one ahead and one level: Holm over three peers."""
    gains = {
        "lightgbm": lambda k: (k + 1) / 1000 - 0.1,
        "catboost": lambda k: (k + 1) / 1000 + 0.05,
        "xgboost": lambda k: (k + 1) / 1000 * (-1) ** k,
        "rareclass": lambda k: 0.0,
    }
    means = {m: [0.7 + k / 100 + gain(k) for k in range(9)] for m, gain in gains.items()}
    runs = [run(f"s{k}", m, 0, auc) for m in gains for k, auc in enumerate(means[m])]
    found = headline.headline(runs)
    tests = {peer: found.methods[peer].against["auc"] for peer in list(gains)[:3]}
    assert [one.mark for one in tests.values()] == [" ↓", " ↑", ""]
    assert tests["lightgbm"].p == pytest.approx(3 * 2 / 2**9)
    assert (tests["xgboost"].wins, tests["xgboost"].losses) == (4, 5)
    words = "ahead of LightGBM; level with XGBoost; behind CatBoost"
    assert headline.verdict(found, "log_loss") == words
    groups = "CatBoost; XGBoost, RareClassifier; LightGBM"
    assert [headline.groups_words(found, m) for m in headline.MEASURES] == [groups] * 3


@pytest.mark.parametrize("seed", range(5))
def test_groups_are_the_longest_runs_of_methods_that_no_test_tells_apart(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(12, 5)) + rng.choice([0.0, 0.5, 2.0], size=5)
    means = {str(k): dict(zip("abcde", row, strict=True)) for k, row in enumerate(values)}
    order = sorted("abcde", key=lambda m: -values[:, "abcde".index(m)].mean())
    pairs = list(itertools.combinations("abcde", 2))
    samples = [[one[a] - one[b] for one in means.values()] for a, b in pairs]
    tests = paired_test.holm([stats.wilcoxon(one, method="exact").pvalue for one in samples])
    level = {frozenset(pair) for pair, p in zip(pairs, tests, strict=True) if p >= 0.05}
    runs = [order[i:j] for i, j in itertools.combinations(range(6), 2)]
    whole = [r for r in runs if all(frozenset(p) in level for p in itertools.combinations(r, 2))]
    longest = [r for r in whole if not any(set(r) < set(other) for other in whole)]
    assert headline.level_groups(means, {m: k for k, m in enumerate(order)}) == longest


def test_parts_share_no_set_and_have_all():
    named = [name for names in sets.SET_PARTS.values() for name in names]
    assert sorted(named) == sorted(sets.SETS)


def test_right_intervals_have_the_expected_coverage():
    """Scores that learn nothing of their rows: two samples of one law, a large and a small one."""
    rng = np.random.default_rng(0)

    def figure(n_rare, n_majority):
        y = np.repeat([1, 0], [n_rare, n_majority])
        return list(interval("average_precision", y, rng.normal(size=len(y)) + 1.5 * y))

    tables = [
        [{"estimate": figure(60, 600), "on_test_rows": figure(30, 300)} for _ in range(5)]
        for _ in range(60)
    ]
    found = estimates.agreement([*tables, []])
    assert (found.tables, found.splits) == (60, 300)
    assert abs(found.bias) < 4.0 * found.error
    assert abs(found.holds - found.expected) < 0.1
    worse = [[{**each, "estimate": [v + 0.1 for v in each["estimate"]]} for each in runs]
             for runs in tables]  # fmt: skip
    assert estimates.agreement(worse).bias == pytest.approx(found.bias + 10.0)
    assert estimates.agreement([[{}], []]) is None


def test_filled_rows_have_the_medians_of_training_and_say_where_cells_were_missing():
    filled, columns = Filled(), ["age", "job", "age, missing"]
    train = pl.DataFrame({"age": [30, None, 40, 90], "job": ["clerk", None, "smith", "clerk"]})
    assert filled.fit_transform(train).select(columns).rows()[:2] == [
        (30.0, "clerk", 0.0),
        (40.0, "(missing)", 1.0),
    ]
    later = pl.DataFrame({"age": [None, 7], "job": ["clerk", "cook"]}, schema=train.schema)
    assert filled.transform(later).rows() == [(40.0, "clerk", 1.0), (7.0, "cook", 0.0)]
