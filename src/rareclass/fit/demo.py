"""The demonstration: simulated payments, learned from the first weeks and judged on the last."""

import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from rareclass.errors import ErrorKind, InputError
from rareclass.files import replacing
from rareclass.fit.payments import FIRST_DAY, TARGET, TIME, PaymentSettings, simulate_payments
from rareclass.metrics import PairedDifference, average_precision, paired_difference

SECONDS = 15  # to learn in, at most
ALERTS_A_DAY = 50
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
    """What some alerts caught."""

    name: str
    per_day: float
    n_caught: int
    money: float  # amounts of the frauds caught


@dataclass(frozen=True)
class Peer:
    """How the boosted trees scored the last weeks."""

    scores: NDArray[np.float64]  # probabilities of a fraud, at equal classes
    seconds: float  # of learning


@dataclass(frozen=True)
class Outcome:
    """What each way to raise alerts caught, and whether the rankings are told apart."""

    alerts: list[Alerts]
    n_frauds: int
    money: float  # amounts of all frauds
    ours: float  # average precision
    theirs: float
    difference: PairedDifference  # of average precision; the payments of a day together


def write_payments(folder: Path, seed: int = 0, settings: PaymentSettings | None = None) -> Weeks:
    """Write simulated payments in time order, the first three quarters of the days and the rest.

    Raises `InputError` when `folder` holds files of these names that no demonstration wrote.
    """
    check_not_the_users(folder)
    settings = settings or PAYMENTS
    rows = simulate_payments(settings, seed)
    n_train_days = round(LEARNED_SHARE * settings.n_days)
    end = FIRST_DAY + timedelta(days=n_train_days)
    folder.mkdir(parents=True, exist_ok=True)
    weeks = Weeks(
        folder / TRAIN_NAME, folder / TEST_NAME, n_train_days, settings.n_days - n_train_days
    )
    for path, part in (
        (weeks.train, rows.filter(pl.col(TIME) < end)),
        (weeks.test, rows.filter(pl.col(TIME) >= end)),
    ):
        with replacing(path) as temporary:
            part.with_columns(pl.col(TARGET).cast(pl.Int8)).write_csv(
                temporary, datetime_format="%Y-%m-%d %H:%M:%S"
            )
    return weeks


def check_not_the_users(folder: Path) -> None:
    """Raise `InputError` when files would be overwritten that an earlier run did not write."""
    headers = {
        TRAIN_NAME: ",".join(_COLUMNS),
        TEST_NAME: ",".join(_COLUMNS),
        SCORES_NAME: "row,score,",
        REPORT_NAME: "<!doctype html>",
    }
    ours = {name for name, expected in headers.items() if _begins_with(folder / name, expected)}
    for name in (*headers, MODEL_NAME):
        is_ours = name in ours or (name == MODEL_NAME and TRAIN_NAME in ours)
        if (folder / name).exists() and not is_ours:
            raise InputError(
                f"{folder / name} exists, and no rareclass demo wrote it.",
                "Choose another folder with --out.",
                ErrorKind.EXISTING_FILE,
            )


def _begins_with(path: Path, header: str) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.readline(len(header)).lower() == header.encode()


def boosted_trees(weeks: Weeks, seed: int = 0) -> Peer:
    """Learn scikit-learn's boosted trees, with balanced classes and their other defaults.

    They see the same columns: the kind of shop as a category, of the time the hour and the weekday.
    """
    train, test = _table(weeks.train), _table(weeks.test)
    started = time.perf_counter()
    trees = HistGradientBoostingClassifier(class_weight="balanced", random_state=seed)
    # Several threads wait for each other where other programs run: ten times as long.
    with threadpool_limits(1, user_api="openmp"):
        trees.fit(_for_trees(train), train[TARGET].to_numpy())
    seconds = time.perf_counter() - started
    return Peer(trees.predict_proba(_for_trees(test))[:, 1], seconds)


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
    order = np.lexsort((np.arange(len(day)), -scores, day))
    ordered = day[order]
    place = np.arange(len(day)) - np.searchsorted(ordered, ordered)
    chosen = np.zeros(len(day), dtype=bool)
    chosen[order[place < k]] = True
    return chosen


def judge(weeks: Weeks, scores: Path, peer: Peer) -> Outcome:
    """Say what the alerts of either caught in the last weeks."""
    test = _table(weeks.test)
    ours = pl.read_csv(scores)["score"].to_numpy()
    fraud, amount = test[TARGET].to_numpy() == 1, test["amount"].to_numpy()
    day = test[TIME].dt.date().cast(pl.Int32).to_numpy().astype(np.int64)
    ways = {
        f"RareClassifier first {ALERTS_A_DAY} a day": first_of_each_day(day, ours, ALERTS_A_DAY),
        f"boosted trees first {ALERTS_A_DAY} a day": first_of_each_day(
            day, peer.scores, ALERTS_A_DAY
        ),
        "boosted trees above .5": peer.scores > 0.5,
    }
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
        float(average_precision(fraud, ours)),
        float(average_precision(fraud, peer.scores)),
        paired_difference(fraud, ours, peer.scores, "average_precision", groups=day),
    )
