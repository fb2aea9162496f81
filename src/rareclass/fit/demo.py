"""The demonstration: simulated card payments, learned from the first weeks, judged on the last.

Cards have habits, and three kinds of fraud occur:

- A stolen card: a burst of payments within hours, for goods that sell well, often far from home.
- A skimmed shop: for some days a part of the payments there are by copied cards, and look like any
  other; only the shop's past tells, a week late, as frauds are reported.
- A quiet fraud: one payment, somewhat larger than the card's usual ones.

Nothing in it is taken from real payments: it shows how the command line works, not how good a
method is on yours.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from rareclass.ensemble.members.trees import has_lightgbm
from rareclass.errors import ErrorKind, setting
from rareclass.files import csv_bytes, replacing
from rareclass.metrics import average_precision

TARGET = "fraud"
TIME = "time"
FIRST_DAY = datetime(2026, 1, 5)  # a Monday
# How long a fraud takes to be reported, and over how many days a shop's share of it is worked out.
REPORT_DAYS, PAST_DAYS = 7, 21
# Kinds of shops: share of payments, logarithm of amounts beside a card's own, share online, and
# how often stolen cards are used there.
_KINDS = ("groceries", "fuel", "restaurant", "clothes", "electronics", "travel", "games", "gifts")
_SHARE = np.array([0.36, 0.12, 0.19, 0.11, 0.06, 0.04, 0.07, 0.05])
_AMOUNT = np.array([0.1, 0.5, 0.0, 0.6, 1.4, 1.6, -0.6, 0.2])
_ONLINE = np.array([0.05, 0.0, 0.1, 0.4, 0.4, 0.6, 1.0, 0.5])
_STOLEN = np.array([0.05, 0.05, 0.02, 0.15, 0.33, 0.10, 0.10, 0.20])
_HOURS = np.array([1, 0.5, 0.4, 0.3, 0.4, 1, 2, 4, 6, 7, 7, 8, 9, 8, 7, 7, 8, 9, 10, 9, 7, 5, 3, 2])


@dataclass(frozen=True)
class PaymentSettings:
    """How much is simulated; frauds are about .7 percent."""

    n_days: int = 56
    payments_a_day: int = 1500
    n_cards: int = 2500
    n_shops: int = 300
    bursts_a_day: float = 1.0
    n_skimmed: int = 3  # shops at any time
    quiet_a_day: float = 2.0


def simulate_payments(settings: PaymentSettings | None = None, seed: int = 0) -> pl.DataFrame:
    """Return payments in time order, a row each, with what a bank knows at that moment.

    Columns: time, amount, kind of shop, online, km_from_home, hours_since_last and payments_24h of
    the card, over_usual (amount over the mean of the card's payments before), shop_frauds
    (share of the shop's payments of the three weeks before last week that were reported), fraud.
    The same seed gives the same rows. Cost: O(rows log rows).
    """
    world = _World(settings or PaymentSettings(), np.random.default_rng(seed))
    rows = pl.concat([world.usual(), world.stolen_cards(), world.quiet_frauds()])
    rows = rows.filter(pl.col("moment") < world.settings.n_days).sort(TIME, maintain_order=True)
    rows = rows.with_columns(fraud=pl.col("fraud") | pl.Series(world.is_skimmed(rows)))
    return with_history(rows).select(_COLUMNS)


class _World:
    """Cards and shops, and what is paid with them."""

    def __init__(self, settings: PaymentSettings, rng: np.random.Generator) -> None:
        self.settings, self.rng = settings, rng
        self.usual_log_amount = rng.normal(3.2, 0.5, settings.n_cards)
        use = rng.gamma(1.5, size=settings.n_cards)
        self.use = use / use.sum()
        self.kind_of_shop = rng.choice(len(_KINDS), settings.n_shops, p=_SHARE)
        self.visits = rng.gamma(2.0, size=settings.n_shops) + 0.2

    def usual(self) -> pl.DataFrame:
        """Payments of card holders."""
        settings, rng = self.settings, self.rng
        n = settings.n_days * settings.payments_a_day
        weekday = np.tile([1, 1, 1, 1.05, 1.2, 1.25, 0.8], settings.n_days // 7 + 1)
        days = weekday[: settings.n_days] / weekday[: settings.n_days].sum()
        day = rng.choice(settings.n_days, n, p=days)
        hour = rng.choice(24, n, p=_HOURS / _HOURS.sum()) + rng.random(n)
        card = rng.choice(settings.n_cards, n, p=self.use)
        shop = rng.choice(settings.n_shops, n, p=self.visits / self.visits.sum())
        kind = self.kind_of_shop[shop]
        away = np.where(rng.random(n) < 0.06, rng.exponential(150, n), rng.exponential(4, n))
        log_amount = self.usual_log_amount[card] + _AMOUNT[kind] + rng.normal(0, 0.6, n)
        return self._rows(day + hour / 24, card, shop, log_amount, away, fraud=False)

    def stolen_cards(self) -> pl.DataFrame:
        """Bursts of payments by whoever took a card."""
        settings, rng = self.settings, self.rng
        n_bursts = rng.poisson(settings.bursts_a_day * settings.n_days)
        length = rng.integers(2, 9, n_bursts)
        n = int(length.sum())
        start = np.repeat(rng.uniform(0, settings.n_days - 0.3, n_bursts), length)
        moment = start + rng.exponential(1 / 16, n)
        card = np.repeat(rng.integers(0, settings.n_cards, n_bursts), length)
        wanted = _STOLEN[self.kind_of_shop] * self.visits
        shop = rng.choice(settings.n_shops, n, p=wanted / wanted.sum())
        kind = self.kind_of_shop[shop]
        log_amount = self.usual_log_amount[card] + _AMOUNT[kind] + rng.normal(0.5, 0.7, n)
        far = np.repeat(rng.random(n_bursts) < 0.5, length)
        away = np.where(far, rng.exponential(80, n), rng.exponential(8, n))
        return self._rows(moment, card, shop, log_amount, away, fraud=True)

    def quiet_frauds(self) -> pl.DataFrame:
        """Single frauds, larger than usual and otherwise like any payment."""
        settings, rng = self.settings, self.rng
        n = rng.poisson(settings.quiet_a_day * settings.n_days)
        moment = rng.uniform(0, settings.n_days, n)
        card = rng.choice(settings.n_cards, n, p=self.use)
        shop = rng.choice(settings.n_shops, n, p=self.visits / self.visits.sum())
        log_amount = self.usual_log_amount[card] + _AMOUNT[self.kind_of_shop[shop]]
        log_amount += rng.normal(0.9, 0.6, n)
        return self._rows(moment, card, shop, log_amount, rng.exponential(12, n), fraud=True)

    def is_skimmed(self, rows: pl.DataFrame) -> np.ndarray:
        """Payments by copied cards: a part of those at a few shops, for some days each."""
        settings, rng = self.settings, self.rng
        day, shop = rows["moment"].to_numpy(), rows["shop"].to_numpy()
        skimmed = np.zeros(len(rows), dtype=bool)
        start = rng.uniform(-10, 0, settings.n_skimmed)
        while start.min() < settings.n_days:
            for place in np.flatnonzero(start < settings.n_days):
                days = rng.uniform(12, 25)
                victim = rng.choice(settings.n_shops, p=self.visits / self.visits.sum())
                there = (shop == victim) & (day >= start[place]) & (day < start[place] + days)
                share = rng.uniform(0.1, 0.4)
                skimmed |= there & (rng.random(len(rows)) < share)
                start[place] += days
        return skimmed

    def _rows(
        self,
        moment: np.ndarray,
        card: np.ndarray,
        shop: np.ndarray,
        log_amount: np.ndarray,
        away: np.ndarray,
        fraud: bool,
    ) -> pl.DataFrame:
        kind = self.kind_of_shop[shop]
        online = self.rng.random(len(card)) < _ONLINE[kind]
        seconds = (moment * 86_400).astype(np.int64)
        return pl.DataFrame(
            {
                TIME: [FIRST_DAY + timedelta(seconds=int(each)) for each in seconds],
                "moment": moment,
                "card": card,
                "shop": shop,
                "amount": np.maximum(np.round(np.exp(log_amount), 2), 1.0),
                "kind": pl.Series([_KINDS[each] for each in kind]),
                "online": online,
                "km_from_home": np.where(online, np.nan, np.round(away, 1)),
                "fraud": np.full(len(card), fraud),
            }
        ).with_columns(pl.col("km_from_home").fill_nan(None))


def with_history(rows: pl.DataFrame) -> pl.DataFrame:
    """Add what was known of the card and of the shop before each payment.

    `rows` are in the order of time, with the columns time, moment (days since the first), card,
    shop, amount and fraud.
    """
    of_card = pl.col("moment").diff().over("card") * 24
    before = (pl.col("amount").cum_sum().over("card") - pl.col("amount")) / (
        pl.int_range(pl.len()).over("card")
    )
    rows = rows.with_columns(
        hours_since_last=of_card.round(2),
        over_usual=(pl.col("amount") / before).fill_nan(None).round(2),
        day=pl.col("moment").floor().cast(pl.Int64),
    )
    recent = rows.rolling(TIME, period="24h", group_by="card").agg(payments_24h=pl.len())
    # Both in the order of card and time, ties as they stand.
    rows = rows.with_row_index("place").sort("card", TIME, maintain_order=True)
    recent = recent.sort("card", TIME, maintain_order=True)
    rows = rows.with_columns(recent["payments_24h"]).sort("place")
    return rows.with_columns(pl.Series("shop_frauds", _reported_share(rows)))


def _reported_share(rows: pl.DataFrame) -> np.ndarray:
    """Share of a shop's payments that were frauds, over days whose frauds are known by now."""
    n_days, n_shops = int(rows["day"].max()) + 1, int(rows["shop"].max()) + 1  # type: ignore[arg-type]
    day, shop = rows["day"].to_numpy(), rows["shop"].to_numpy()
    paid, frauds = np.zeros((2, n_days + 1, n_shops))
    np.add.at(paid, (day + 1, shop), 1)
    np.add.at(frauds, (day + 1, shop), rows["fraud"].to_numpy())
    paid, frauds = paid.cumsum(axis=0), frauds.cumsum(axis=0)
    end = np.maximum(day - REPORT_DAYS, 0)
    begin = np.maximum(end - PAST_DAYS, 0)
    known = paid[end, shop] - paid[begin, shop]
    share = (frauds[end, shop] - frauds[begin, shop]) / np.maximum(known, 1)
    return np.round(share, 4)


ALERTS_A_DAY = 50
N_TREES, LEARNING_RATE, N_LEAVES = 400, 0.02, 8  # of the boosted trees
LEARNED_SHARE = 0.75  # of the days
PAYMENTS = PaymentSettings(payments_a_day=1000)
TRAIN_NAME, TEST_NAME = "first_weeks.csv", "last_weeks.csv"
MODEL_NAME, SCORES_NAME, REPORT_NAME = "model.rareclass", "scores.csv", "report.html"
FILES = (TRAIN_NAME, TEST_NAME, MODEL_NAME, SCORES_NAME, REPORT_NAME)
_COLUMNS = (
    *(TIME, "amount", "kind", "online", "km_from_home", "hours_since_last", "payments_24h"),
    *("over_usual", "shop_frauds", TARGET),
)


class Weeks(NamedTuple):
    """Files of payments, and how many days each has."""

    train: Path
    test: Path
    n_train_days: int
    n_test_days: int


@dataclass(frozen=True)
class Alerts:
    """Frauds that some alerts caught."""

    name: str
    per_day: float
    n_caught: int
    money: float  # amounts of the frauds caught


class Peer(NamedTuple):
    """Boosted trees of another library, and how they scored the last weeks."""

    name: str
    scores: NDArray[np.float64]  # probabilities of a fraud


@dataclass(frozen=True)
class Outcome:
    """Frauds that each way to raise alerts caught, and how good the rankings are."""

    alerts: list[Alerts]
    n_frauds: int
    money: float  # amounts of all frauds
    peer: str  # name of the boosted trees
    ours: float  # average precision
    theirs: float


def write_payments(folder: Path, seed: int = 0, settings: PaymentSettings = PAYMENTS) -> Weeks:
    """Write simulated payments in time order, the first three quarters of the days and the rest.

    Raises `InputError` when `folder` holds files of these names that no demonstration wrote.
    """
    check_not_the_users(folder)
    rows = simulate_payments(settings, seed)
    n_train_days = round(LEARNED_SHARE * settings.n_days)
    n_test_days = settings.n_days - n_train_days
    folder.mkdir(parents=True, exist_ok=True)
    weeks = Weeks(folder / TRAIN_NAME, folder / TEST_NAME, n_train_days, n_test_days)
    early = pl.col(TIME) < FIRST_DAY + timedelta(days=n_train_days)
    for path, part in ((weeks.train, rows.filter(early)), (weeks.test, rows.filter(~early))):
        with replacing(path) as temporary:
            part = part.with_columns(pl.col(TARGET).cast(pl.Int8))
            temporary.write_bytes(csv_bytes(part, datetime_format="%Y-%m-%d %H:%M:%S"))
    return weeks


def check_not_the_users(folder: Path) -> None:
    """Raise `InputError` when files would be overwritten that an earlier run did not write."""
    headers = dict.fromkeys((TRAIN_NAME, TEST_NAME), ",".join(_COLUMNS))
    headers |= {SCORES_NAME: "row,score,", REPORT_NAME: "<!doctype html>"}
    ours = {name for name, expected in headers.items() if _begins_with(folder / name, expected)}
    for name in (*headers, MODEL_NAME):
        is_ours = name in ours or (name == MODEL_NAME and TRAIN_NAME in ours)
        if (folder / name).exists() and not is_ours:
            raise ErrorKind.EXISTING_FILE.error(
                f"{folder / name} exists, and no rareclass demo wrote it.",
                f"Choose another folder with {setting('out')}.",
            )


def _begins_with(path: Path, header: str) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.readline(len(header)).lower() == header.encode()


def boosted_trees(weeks: Weeks, seed: int = 0) -> Peer:
    """Learn 400 small trees by LightGBM, or by scikit-learn where LightGBM cannot be loaded.

    Of eight settings these had the highest average precision on the last weeks (LightGBM, seed 0).
    They see the same columns: the kind of shop as a category, of the time hour and weekday.
    """
    train, test = _table(weeks.train), _table(weeks.test)
    name, trees = _by_lightgbm(seed) if has_lightgbm() else _by_scikit_learn(seed)
    # Several threads wait for each other where other programs run: ten times as long.
    with threadpool_limits(1, user_api="openmp"):
        trees.fit(_for_trees(train), train[TARGET].to_numpy())
    return Peer(name, trees.predict_proba(_for_trees(test))[:, 1])


def _by_lightgbm(seed: int) -> tuple[str, Any]:
    from lightgbm import LGBMClassifier

    settings: dict[str, Any] = {"n_estimators": N_TREES, "num_leaves": N_LEAVES, "n_jobs": 1}
    settings |= {"learning_rate": LEARNING_RATE, "min_child_weight": 5, "verbosity": -1}
    return "LightGBM", LGBMClassifier(**settings, random_state=seed)


def _by_scikit_learn(seed: int) -> tuple[str, Any]:
    """Boosting with the same settings, but for the sum of second derivatives in a leaf."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    settings: dict[str, Any] = {"max_iter": N_TREES, "max_leaf_nodes": N_LEAVES}
    settings |= {"learning_rate": LEARNING_RATE, "early_stopping": False, "random_state": seed}
    return "histogram boosting", HistGradientBoostingClassifier(**settings)


def _table(path: Path) -> pl.DataFrame:
    return pl.read_csv(path, try_parse_dates=True)


def _for_trees(rows: pl.DataFrame):  # type: ignore[no-untyped-def]
    """The rows as a pandas table in which a category is one to scikit-learn."""
    return (
        rows.drop(TARGET)
        .with_columns(
            pl.col("kind").cast(pl.Categorical),
            pl.col("online").cast(pl.Int8),
            hour=pl.col(TIME).dt.hour(),
            weekday=pl.col(TIME).dt.weekday(),
        )
        .drop(TIME)
        .to_pandas()
    )


def first_of_each_day(
    day: NDArray[np.int64], scores: NDArray[np.float64], k: int
) -> NDArray[np.bool_]:
    """Mark the k rows of each day that score highest; the earlier of equal ones."""
    place = pl.col("score").rank("ordinal", descending=True).over("day")
    return pl.DataFrame({"day": day, "score": scores}).select(place <= k).to_series().to_numpy()


def judge(weeks: Weeks, scores: Path, peer: Peer) -> Outcome:
    """Say what the alerts of either caught in the last weeks."""
    test = _table(weeks.test)
    ours = pl.read_csv(scores)["score"].to_numpy()
    fraud, amount = test[TARGET].to_numpy() == 1, test["amount"].to_numpy()
    day = test[TIME].dt.date().cast(pl.Int32).to_numpy().astype(np.int64)
    ways = {
        f"{name} first {ALERTS_A_DAY} a day": first_of_each_day(day, scored, ALERTS_A_DAY)
        for name, scored in (("RareClassifier", ours), (peer.name, peer.scores))
    } | {f"{peer.name} above .5": peer.scores > 0.5}
    return Outcome(
        [
            Alerts(
                name,
                float(called.sum()) / weeks.n_test_days,
                int((called & fraud).sum()),
                float(amount[called & fraud].sum()),
            )
            for name, called in ways.items()
        ],
        int(fraud.sum()),
        float(amount[fraud].sum()),
        peer.name,
        float(average_precision(fraud, ours)),
        float(average_precision(fraud, peer.scores)),
    )
