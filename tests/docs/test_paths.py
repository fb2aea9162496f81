"""The paths through the code that CONTRIBUTING prints are those that calls take."""

import re
import sys
from pathlib import Path

import pytest

import rareclass
from command_line import QUICK, run
from made_tables import purchases, rare_mixture
from rareclass import RankRC, RareClassifier

HOME = Path(rareclass.__file__).parent
PRINTED = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
STATION = re.compile(r"^\| `([\w/]+\.py)` \| `([\w.]+)` \| \S", re.MULTILINE)
PATHS = {
    each.partition("`")[0]: STATION.findall(each.partition("\n## ")[0])
    for each in PRINTED.partition("## Five paths")[2].split("\n### `")[1:]
}


def fit_a_classifier(folder):
    table = purchases().drop("order")
    model = RareClassifier(members=["logistic regression"], cv=2, n_jobs=1, verbose=False)
    model.fit(table.drop("fraud"), table["fraud"])


def fit(folder):
    words = ("-t", "fraud", *QUICK, "--no-baseline", "-o", folder / "m", "--overwrite")
    run("fit", folder / "t.csv", *words)


CALLS = {
    "RankRC.fit(X, y)": lambda folder: RankRC(lam=0.01).fit(*rare_mixture(120, 20)),
    "RareClassifier.fit(table, y)": fit_a_classifier,
    "rareclass fit": fit,
    "rareclass score": lambda folder: run(
        "score", folder / "m", folder / "t.csv", "-o", folder / "s.csv"
    ),
    "rareclass stream": lambda folder: run(
        "stream", folder / "t.csv", "-t", "fraud", "--checkpoint", folder / "run"
    ),
}


def entered(stations, call, *given):
    """Stations that a call enters, each time that it does."""
    found = []

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_qualname in names:
            place = Path(code.co_filename)
            if place.is_relative_to(HOME):
                found.append((place.relative_to(HOME).as_posix(), code.co_qualname))

    names = {name for _, name in stations}
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call(*given)
    finally:
        sys.setprofile(before)
    return found


@pytest.mark.parametrize("name", CALLS)
def test_a_call_enters_the_stations_of_its_path_in_order(name, tmp_path):
    assert list(PATHS) == list(CALLS)
    purchases().write_csv(tmp_path / "t.csv")
    if name == "rareclass score":
        fit(tmp_path)
    on_the_way = iter(entered(PATHS[name], CALLS[name], tmp_path))
    assert len(PATHS[name]) > 5
    assert [each for each in PATHS[name] if each not in on_the_way] == []
