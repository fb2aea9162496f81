"""Simulated payments, what is known of card and shop by a slow computation, and alerts of them."""

from datetime import timedelta
from io import StringIO

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from draws import draws
from rareclass.cli.demo import _print_outcome
from rareclass.fit.demo import (
    FIRST_DAY,
    PAST_DAYS,
    REPORT_DAYS,
    Alerts,
    Outcome,
    PaymentSettings,
    Peer,
    boosted_trees,
    first_of_each_day,
    judge,
    simulate_payments,
    with_history,
    write_payments,
)

FEW = PaymentSettings(n_days=35, payments_a_day=40, n_cards=30, n_shops=8)


@pytest.fixture(scope="module")
def payments():
    return simulate_payments(FEW, seed=3)


def test_they_are_in_time_order_and_the_seed_decides(payments):
    assert payments["time"].is_sorted()
    assert payments["time"].min() >= FIRST_DAY
    assert payments["time"].max() < FIRST_DAY + timedelta(days=FEW.n_days)
    assert payments.equals(simulate_payments(FEW, seed=3))
    assert not payments.equals(simulate_payments(FEW, seed=4))


def test_about_one_in_a_hundred_is_a_fraud_of_more_than_usual():
    payments = simulate_payments(PaymentSettings(n_days=28))
    assert 0.004 < payments["fraud"].mean() < 0.02
    frauds, others = payments.filter("fraud"), payments.filter(~pl.col("fraud"))
    assert frauds["amount"].median() > others["amount"].median()
    assert frauds["shop_frauds"].mean() > others["shop_frauds"].mean()
    assert payments.filter("online")["km_from_home"].null_count() == payments["online"].sum()


def made_rows(seed, n=150):
    rng = np.random.default_rng(seed)
    moment = np.sort(rng.uniform(0, 40, n))
    moment[10] = moment[9]  # at the same time
    return pl.DataFrame(
        {
            "time": [FIRST_DAY + timedelta(seconds=int(each * 86400)) for each in moment],
            "moment": moment,
            "card": rng.integers(0, 5, n),
            "shop": rng.integers(0, 3, n),
            "amount": rng.integers(1, 50, n).astype(float),
            "fraud": rng.random(n) < 0.3,
        }
    )


@pytest.mark.parametrize("seed", [0, 1])
def test_the_past_of_card_and_shop_is_what_was_known(seed):
    rows = made_rows(seed)
    known = with_history(rows).to_dicts()
    for place, row in enumerate(known):
        card = [each for each in known[:place] if each["card"] == row["card"]]
        if card:
            hours = (row["moment"] - card[-1]["moment"]) * 24
            assert row["hours_since_last"] == pytest.approx(hours, abs=0.01)
            mean = np.mean([each["amount"] for each in card])
            assert row["over_usual"] == pytest.approx(row["amount"] / mean, abs=0.01)
        else:
            assert (row["hours_since_last"], row["over_usual"]) == (None, None)
        day_ago, of_card = row["time"] - timedelta(hours=24), row["card"]
        recent = [each["time"] for each in known if each["card"] == of_card]
        assert row["payments_24h"] == sum(day_ago < each <= row["time"] for each in recent)
        end = int(row["moment"]) - REPORT_DAYS
        days, shop = range(max(end - PAST_DAYS, 0), max(end, 0)), row["shop"]
        there = [each for each in known if each["shop"] == shop]
        shop = [each["fraud"] for each in there if int(each["moment"]) in days]
        share = np.mean(shop) if shop else 0.0
        assert row["shop_frauds"] == pytest.approx(share, abs=1e-4)


@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=30),
    k=st.integers(1, 5),
)
@draws(30)
def test_the_first_of_each_day(rows, k):
    day = np.array([each for each, _ in rows], dtype=np.int64)
    scores = np.array([float(each) for _, each in rows])
    expected = np.zeros(len(rows), dtype=bool)
    for each in set(day.tolist()):
        places = [place for place in range(len(rows)) if day[place] == each]
        for place in sorted(places, key=lambda place: (-scores[place], place))[:k]:
            expected[place] = True
    assert first_of_each_day(day, scores, k).tolist() == expected.tolist()


def test_alerts_are_judged_by_frauds_and_money(tmp_path):
    weeks = write_payments(tmp_path, settings=FEW)
    test = pl.read_csv(weeks.test)
    fraud, amount = test["fraud"].to_numpy() == 1, test["amount"].to_numpy()
    scores = tmp_path / "scores.csv"
    pl.DataFrame({"row": np.arange(len(test)), "score": fraud.astype(float)}).write_csv(scores)
    outcome = judge(weeks, scores, Peer("LightGBM", np.where(fraud, 0.4, 0.6)))
    ours, _, above = outcome.alerts
    assert ours.n_caught == outcome.n_frauds == fraud.sum()  # at most 50 a day of 40 and some
    assert ours.money == pytest.approx(outcome.money) == pytest.approx(amount[fraud].sum())
    assert above == Alerts("LightGBM above .5", (~fraud).sum() / weeks.n_test_days, 0, 0.0)
    assert outcome.ours == 1.0 > outcome.theirs


def test_both_libraries_learn_nearly_the_same_trees(tmp_path, monkeypatch):
    pytest.importorskip("lightgbm")
    weeks, peers = write_payments(tmp_path, settings=FEW), {}
    for is_there in (True, False):
        monkeypatch.setattr("rareclass.fit.demo.has_lightgbm", lambda there=is_there: there)
        peers |= [boosted_trees(weeks)]
    assert [*peers] == ["LightGBM", "histogram boosting"]
    assert np.corrcoef([*peers.values()])[0, 1] > 0.945  # .937 with 100 trees, .91 with 31 leaves


@pytest.mark.parametrize("width", [40, 59, 60, 80])
def test_narrow_screens_have_every_figure(width):
    alerts = [Alerts("RareClassifier first 50 a day", 50.0, 189, 11107.4)] * 3
    console = Console(width=width, file=StringIO())
    _print_outcome(console, Outcome(alerts, 300, 17960.0, "LightGBM", 0.3, 0.2))
    shown = console.file.getvalue()
    words = "RareClassifier 50 189 11,107 Alerts Frauds Money tested"
    assert [word for word in words.split() if word not in shown] == []
    assert "…" not in shown
