"""What a hunt finds, in which order, and what it leaves on disk."""

import json
import warnings
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from draws import quick
from faults import refused
from rareclass.errors import ErrorKind, called_from
from rareclass.findings import Finding, warn, warnings_as
from rareclass.hunt import HuntSettings
from rareclass.hunt.files import check_folder, describe_in_units, typical_values, write_hunt
from rareclass.hunt.hunting import HuntTable, can_hold_out, hunt, in_settings, of_balls, words_of
from rareclass.hyperball.ball import sentence
from rareclass.review.table import LabelRoles, read_review_table

ASKED = LabelRoles(("bad",), ("good",))
QUICK = HuntSettings(kernel="none", c1=1.0, c2=1e-4, folds=3)
RARE_ROWS = range(0, 600, 15)
LISTED = ("row", "score", "sure", "ball", "found", "depth", "distance", "verdict", "note")


def ships(n_labelled=8):
    generator = np.random.default_rng(0)
    rare = np.isin(np.arange(600), RARE_ROWS)
    label = np.full(600, "", dtype=object)
    label[np.flatnonzero(rare)[:n_labelled]] = "bad"
    label[np.flatnonzero(~rare)[:30]] = "good"
    return pl.DataFrame(
        {
            "ship": [f"s-{k * 7919 % 99991}" for k in range(600)],
            "tonnes": np.where(
                rare, generator.normal(900, 15, 600), generator.normal(400, 90, 600)
            ),
            "knots": np.where(rare, generator.normal(4, 0.3, 600), generator.normal(12, 2, 600)),
            "flag": np.where(rare, "XX", generator.choice(["PA", "LR", "NO"], 600)),
            "status": label.tolist(),
        }
    )


def read(folder, table, asked=ASKED, ignored=()):
    table.write_parquet(folder / "ships.parquet")
    path = folder / "ships.parquet"
    return HuntTable.of(read_review_table(path, "status", ignored=ignored), asked)


def written(out, table, outcome, options=None):
    described = describe_in_units(table, outcome)
    return write_hunt(out, table, outcome, described, QUICK, options or {})


def described(table, outcome):
    lines = describe_in_units(table, outcome).lines
    return {row["feature"]: row for row in lines.iter_rows(named=True)}


def kinds_of(outcome):
    return [str(each.kind) for each in outcome.findings if isinstance(each, Finding)]


@pytest.fixture(scope="module")
def hunted(tmp_path_factory):
    table = read(tmp_path_factory.mktemp("hunted"), ships())
    return table, hunt(table, QUICK)


def test_finds_the_rest_of_the_category_and_nothing_labelled(hunted):
    table, outcome = hunted
    rest = set(RARE_ROWS) - set(np.flatnonzero(table.labels.y == "bad").tolist())
    assert set(outcome.ranking.rows[: len(rest)].tolist()) == rest
    assert len(outcome.ranking.rows) == 100
    assert not set(outcome.ranking.rows.tolist()) - set(table.labels.unlabelled.tolist())
    inside = set(outcome.ranking.rows[outcome.ranking.found].tolist())
    assert outcome.n_found == len(inside) >= 0.5 * len(rest)
    assert len(inside & rest) >= 0.9 * len(inside)
    estimate = outcome.estimate  # stands on the labelled rows
    assert 0 <= estimate.low <= estimate.f1 <= estimate.high <= 1
    assert (estimate.n_rare, estimate.n_cleared) == (8, 30)
    assert (outcome.chosen.C1, outcome.chosen.C2) == (1.0, 1e-4)


def test_rows_are_ranked_by_how_sure_they_are_and_depth_is_what_it_says(hunted):
    table, outcome = hunted
    ranking, (ball,) = outcome.ranking, outcome.model.balls_
    assert (np.diff(ranking.sure) <= 0).all()
    assert 0 < ranking.sure[-1] < ranking.sure[0] <= 1
    assert (np.diff(ranking.score) <= 0).all()
    X = outcome.encoder.fit_transform(table.rows.frame)
    np.testing.assert_allclose(ranking.score, outcome.order.score(X[ranking.rows]), rtol=1e-9)
    others = np.setdiff1d(table.labels.unlabelled, ranking.rows)
    assert outcome.order.score(X[others]).max() <= ranking.score[-1] + 1e-9
    apart = np.linalg.norm(X[ranking.rows] - outcome.model.center_, axis=1)
    np.testing.assert_allclose(ranking.distance, apart, rtol=1e-9)
    depth = 1 - apart**2 / ball.squared_radius
    np.testing.assert_allclose(ranking.relative_depth, depth, rtol=1e-9)
    np.testing.assert_array_equal(ranking.found, depth >= 0)


def test_found_is_what_the_model_predicts_for_rows_that_shaped_it_or_not(tmp_path):
    generator = np.random.default_rng(3)
    status = ["bad"] * 6 + ["good"] * 20 + [""] * 774
    cells = {name: generator.uniform(-1, 1, 800) for name in "abc"}
    for name in "abc":
        cells[name][:6] *= 0.4
    table = read(tmp_path, pl.DataFrame(cells | {"status": status}))
    settings = HuntSettings(kernel="none", c1=0.01, c2=5e-4, n_balls=1, top=774)
    outcome = hunt(table, settings)
    X = outcome.encoder.fit_transform(table.rows.frame)[26:]
    called = outcome.model.balls_[0].depth(X) >= 0
    assert 50 < called.sum() < 500
    inside = outcome.ranking.rows[outcome.ranking.found]
    assert sorted(inside) == (26 + np.flatnonzero(called)).tolist()


@pytest.mark.sampled(0)
def test_so_many_of_the_surest_rows_are_written_as_were_asked_for(hunted):
    table, outcome = hunted
    more = hunt(table, replace(QUICK, top=1_000))
    assert len(more.ranking.rows) == table.labels.unlabelled.size
    assert more.n_found == outcome.n_found == more.ranking.found.sum()
    assert more.ranking.rows[:100].tolist() == outcome.ranking.rows.tolist()
    few = hunt(table, replace(QUICK, top=5))
    assert few.ranking.rows.tolist() == outcome.ranking.rows[:5].tolist()
    assert few.order.offset_ < few.ranking.score[-1]
    assert few.order.offset_ >= outcome.ranking.score[5]
    shared = hunt(table, replace(QUICK, share=0.05))
    assert len(shared.ranking.rows) == round(0.05 * table.labels.unlabelled.size)


@pytest.mark.parametrize(
    ("n_rare", "cleared", "said"),
    [(1, ("good",), "only 1 row is known to be bad"), (4, (), "no row is known to be cleared")],
)
def test_too_few_labels_make_a_modest_ball_and_say_so(tmp_path, n_rare, cleared, said):
    table = ships(n_rare)
    if not cleared:
        table = table.with_columns(status=pl.col("status").replace("good", ""))
    read_table = read(tmp_path, table, LabelRoles(("bad",), cleared))
    assert not can_hold_out(read_table.labels)
    outcome = hunt(read_table, HuntSettings(top=36))
    assert outcome.estimate is None
    assert any(said in note for note in outcome.notes)
    assert "none held out" in kinds_of(outcome)
    assert outcome.n_found < 60
    assert np.isin(outcome.ranking.rows, RARE_ROWS).mean() > 0.7


@pytest.mark.parametrize("n_labelled", [1, 4])
def test_without_cleared_rows_it_is_told_which_cases_would_be_found_again(tmp_path, n_labelled):
    good = ("good",)
    labelled = LabelRoles(("bad",), good if n_labelled == 1 else ())
    table = read(tmp_path, ships(n_labelled), labelled, good if n_labelled > 1 else ())
    outcome = hunt(table, HuntSettings())
    assert len(outcome.ranking.rows) == 100
    assert outcome.estimate is None
    assert np.isnan(outcome.ranking.sure).all()
    assert not outcome.expected
    assert outcome.refound.get(50) == (None if n_labelled == 1 else 4)
    assert np.isin(outcome.ranking.rows[:20], RARE_ROWS).mean() > 0.7
    assert not any("too small" in note for note in outcome.notes)


@pytest.mark.sampled(0)
def test_several_values_get_a_ball_each(tmp_path):
    table = ships()
    status = table["status"].to_list()
    status[31:60:4] = ["ugly"] * 8
    table = table.with_columns(
        status=pl.Series(status),
        knots=pl.when(pl.int_range(600) % 4 == 3).then(60.0).otherwise(pl.col("knots")),
    )
    asked = LabelRoles(("bad", "ugly"), ("good",))
    outcome = hunt(read(tmp_path, table, asked), QUICK)
    assert {ball.name for ball in outcome.balls} == {"bad", "ugly"}
    for number, ball in enumerate(outcome.balls):
        assert ball.n_found > 10
        mine = outcome.ranking.rows[outcome.ranking.found & (outcome.ranking.ball == number)]
        assert len(mine) > 10
        wanted = np.isin(mine, RARE_ROWS) if ball.name == "bad" else mine % 4 == 3
        assert wanted.mean() > 0.7


@pytest.mark.sampled(0)
def test_cases_in_two_far_groups_get_two_balls(tmp_path):
    """Half of the heavy, slow ships are light and fast instead; all others are in between."""
    table = ships(12).with_columns(
        *(
            pl.when(pl.int_range(600) % 30 == 0).then(swapped).otherwise(pl.col(name)).alias(name)
            for name, swapped in (("tonnes", pl.lit(5.0)), ("knots", pl.lit(30.0)))
        ),
        flag=pl.lit("PA"),
    )
    settings = HuntSettings(kernel="none", c1=0.3, folds=3)
    outcome = hunt(read(tmp_path, table), settings)
    assert [ball.name for ball in outcome.balls] == ["bad (1)", "bad (2)"]
    assert outcome.chosen.n_balls == 2
    assert np.isin(outcome.ranking.rows[:28], RARE_ROWS).all()
    inside = [outcome.ranking.found & (outcome.ranking.ball == k) for k in (0, 1)]
    groups = [outcome.ranking.rows[each] % 30 == 0 for each in inside]
    assert sorted(round(float(group.mean()), 1) for group in groups) == [0.0, 1.0]
    one = hunt(read(tmp_path, table), replace(settings, n_balls=1, top=600))
    assert np.isin(one.ranking.rows[one.ranking.found], RARE_ROWS).mean() < 0.7


def test_description_speaks_the_language_of_the_table(hunted):
    table, outcome = hunted
    by_name = described(table, outcome)
    assert set(by_name) == {"tonnes", "knots", "flag"}
    assert 850 < by_name["tonnes"]["inside_low"] < by_name["tonnes"]["inside_high"] < 950
    assert by_name["knots"]["inside_high"] < 6 < by_name["knots"]["outside_low"]
    assert by_name["tonnes"]["center"] == pytest.approx(900, abs=40)
    (value,) = typical_values(table, outcome)
    assert (value["feature"], value["value"]) == ("flag", "XX")
    assert value["share_inside"] > 0.95
    assert value["share_outside"] < 0.05
    assert by_name["flag"]["overlap"] == value["overlap"] < 0.1


@pytest.mark.sampled(0)
@pytest.mark.parametrize("suffix", quick(1, ["parquet", "csv"]))
def test_files_hold_the_rows_as_they_are_in_the_table(tmp_path, suffix):
    source = ships().rename({"tonnes": "depth"})
    path = tmp_path / f"ships.{suffix}"
    source.write_csv(path) if suffix == "csv" else source.write_parquet(path)
    table = HuntTable.of(read_review_table(path, "status"), ASKED)
    outcome = hunt(table, QUICK)
    files = written(tmp_path / "found", table, outcome, {"data": str(path)})
    assert {file.name for file in files} == {file.name for file in (tmp_path / "found").iterdir()}
    read_back = pl.read_csv if suffix == "csv" else pl.read_parquet
    found = read_back(tmp_path / "found" / f"found.{suffix}")
    assert found.columns == [*(f"review {name}" for name in LISTED), *source.drop("status").columns]
    assert found["review row"].cast(pl.Int64).to_list() == (outcome.ranking.rows + 1).tolist()
    assert found["ship"].to_list() == source["ship"][outcome.ranking.rows].to_list()
    summary = json.loads((tmp_path / "found" / "hunt.json").read_text())
    assert summary["counts"]["rows"] == 600
    assert summary["counts"]["rare"] == {"bad": 8}
    assert summary["counts"]["found"] == outcome.n_found
    assert [one["first"] for one in summary["expected"]] == [10, 50, 100]
    assert [one["share"] for one in summary["expected"]] == found["review sure"][
        [9, 49, -1]
    ].to_list()
    assert summary["held_out"]["f1"] == outcome.estimate.f1
    assert set(summary["files"]) | {"hunt.json"} == {file.name for file in files}
    assert (tmp_path / "found" / "ball.png").read_bytes().startswith(b"\x89PNG")
    table_of_it = pl.read_csv(tmp_path / "found" / "description.csv")
    assert set(table_of_it["feature"]) == {"depth", "knots", "flag"}


def test_same_seed_same_hunt(tmp_path, hunted):
    table, first = hunted
    second = hunt(table, QUICK)
    np.testing.assert_array_equal(first.ranking.rows, second.ranking.rows)
    np.testing.assert_array_equal(first.ranking.relative_depth, second.ranking.relative_depth)


@pytest.mark.sampled(0)
def test_folder_is_replaced_as_a_whole(tmp_path, hunted):
    table, outcome = hunted
    out = tmp_path / "found"
    written(out, table, outcome)
    (out / "ball-old.png").write_bytes(b"")
    check_folder(out, overwrite=True)
    written(out, table, outcome)
    assert not (out / "ball-old.png").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["found"]


def test_folders_of_others_are_left_alone(tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("new", "a/b", "empty"):
        check_folder(tmp_path / name, False)
    (tmp_path / "thesis.tex").write_text("years of work")
    earlier = tmp_path / "earlier"
    earlier.mkdir()
    (earlier / "hunt.json").write_text("{}")
    there, no = ErrorKind.EXISTING_FILE, ErrorKind.UNWRITABLE
    for kind, out, overwrite, says in (
        (there, tmp_path / "thesis.tex", False, "is a file"),
        (no, tmp_path / "thesis.tex" / "found", False, "is not a folder"),
        (there, tmp_path, False, "such as 'earlier'"),
        (there, tmp_path, True, "such as 'earlier'"),
        (there, earlier, False, "overwrite="),
    ):
        with refused(kind, says=says):
            check_folder(out, overwrite)
    check_folder(earlier, True)
    (earlier / "notes.txt").write_text("mine")
    with refused(there, says="such as 'notes.txt'"):
        check_folder(earlier, True)


def names_clash(kind):
    """Ships with a column that is called as a coordinate of another column is."""
    table, generator = ships(), np.random.default_rng(1)
    number = pl.Series(generator.normal(size=600))
    if kind == "value":
        return table.with_columns(number.alias("flag_XX"))
    if kind == "gaps":
        empty = generator.random(600) < 0.2
        knots = pl.when(pl.Series(empty)).then(None).otherwise(pl.col("knots"))
        return table.with_columns(number.alias("knots is empty"), knots=knots)
    days = pl.Series(generator.integers(0, 4000, 600)).cast(pl.Date)
    return table.with_columns(days.alias("built"), number.alias("built (year)"))


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    ("kind", "name"),
    quick(1, [("value", "flag_XX"), ("gaps", "knots is empty"), ("date", "built (year)")]),
)
def test_coordinates_called_as_a_column_is_are_told_apart(tmp_path, kind, name):
    table = read(tmp_path, names_clash(kind))
    outcome = hunt(table, QUICK)
    names = [feature.name for feature in outcome.encoder.coordinates_]
    assert len(set(names)) == len(names)
    owner = {feature.name: feature.column for feature in outcome.encoder.coordinates_}
    assert owner[name] == name
    assert owner[f"{name} (2)"] != name
    by_name = described(table, outcome)
    outside = np.quantile(table.rows.frame[name].to_numpy(), [0.05, 0.95])
    assert by_name[name]["outside_low"] == pytest.approx(outside[0], abs=0.2)
    assert by_name[name]["outside_high"] == pytest.approx(outside[1], abs=0.2)
    files = written(tmp_path / "found", table, outcome)
    assert all(file.exists() for file in files)


def test_name_that_is_taken_twice_gets_the_next_number(tmp_path):
    taken = pl.col("knots is empty").sqrt().fill_nan(0.5).alias("knots is empty (2)")
    outcome = hunt(read(tmp_path, names_clash("gaps").with_columns(taken)), QUICK)
    owner = {feature.name: feature.column for feature in outcome.encoder.coordinates_}
    assert owner["knots is empty (2)"] == "knots is empty (2)"
    assert owner["knots is empty (3)"] == "knots"


FAR = Finding(
    "useless radius",
    {"label": "C1=2", "radius": 9.0, "spread": 3.0, "share": 0.7},
    {"n_balls": "auto", "kernel": "gaussian", "C1": "larger", "C2": "smaller"},
)
SHARE = Finding(
    "share not reached",
    {"label": "bad", "n_wanted": 90, "share": 0.3, "n_kept": 40},
    {"rare_share": None, "radius": "solved", "max_kept": "larger", "filter": "larger"},
)
DEAR = Finding("all inside", {"label": "bad", "n_unlabelled": 9}, {"C2": "smaller"})
CHEAP = Finding("none inside", {"label": "bad", "n_unlabelled": 9}, {"C2": "larger"})
FILTERED = Finding("all filtered", {"label": "bad", "n_unlabelled": 9}, {"filter": "larger"})
ASIDE = Finding(
    "rows left aside",
    {"label": "bad", "n_rows": 5_500, "which": "majority", "max_kept": 5_000},
    {"max_kept": "larger"},
)
SHORT = Finding(
    "stopped short",
    {"label": "bad", "status": "reached max_iter", "gap": 0.01, "n_outer": 3, "n_inner": 40},
    {"max_outer": "larger", "max_inner": "larger", "tol": "larger"},
)


@pytest.mark.parametrize(
    ("finding", "in_library", "in_hunt"),
    [
        (FAR, "the ball of 'C1=2' is uselessly large: its radius is 9, the spread of the other "
         "rows 3, and it holds 70% of them. Rare rows in several far groups do that: "
         "n_balls='auto' gives each group a ball. Otherwise kernel='gaussian' allows other "
         "shapes, and a larger C1 or a smaller C2 makes a smaller ball.",
         "do that: --balls auto gives each group a ball. Otherwise --kernel gaussian allows other "
         "shapes, and a larger --c1 or a smaller --c2 makes a smaller ball."),
        (DEAR, "that were kept: a smaller C2 leaves", "that were kept: a smaller --c2 leaves"),
        (CHEAP, "that were kept: a larger C2 takes", "that were kept: a larger --c2 takes"),
        (FILTERED, "Pass a larger filter= (3.0 is the paper's), or filter=False.",
         "or --filter no."),
        (SHARE, "Pass the rare_share= that you expect (that of the labelled rows is too large "
         "where cases were sought), or radius='solved', a larger max_kept= or a larger filter=.",
         "were sought), or no --share or a larger --filter."),
        (ASIDE, "labelled majority rows. A larger max_kept= takes in more; predict classifies all "
         "rows.", "majority rows."),
        (SHORT, "Raise max_outer=, max_inner= or tol=; standard", "gap 1.0e-02). Take the ball"),
        (Finding("no majority", {"label": "bad"}),
         "and C1 does nothing. Labels of a few cleared", "and --c1 does nothing. Labels"),
        (Finding("single row", {"label": "bad"}), "'bad' has a single labelled row", "'bad' has"),
    ],
)  # fmt: skip
def test_each_reader_is_told_in_words_of_its_own(finding, in_library, in_hunt):
    assert in_library in sentence(finding)
    with called_from("command line"):
        assert in_hunt in sentence(finding, in_settings)


def test_a_hunt_says_what_findings_are_about_in_settings(tmp_path, monkeypatch):
    found = [FAR, SHARE, ASIDE]
    monkeypatch.setattr("rareclass.hyperball.rach.ball_findings", lambda *_: list(found))
    table = read(tmp_path, ships(1), LabelRoles(("bad",)), ("good",))
    outcome = hunt(table, HuntSettings())
    assert outcome.findings[:3] == found
    assert outcome.notes[:3] == [sentence(finding, in_settings) for finding in found]


def test_warnings_without_a_finding_or_of_another_kind_keep_their_text():
    notes = []
    with warnings_as(notes, of_balls):
        warnings.warn("the disk is slow: C2=1", UserWarning, stacklevel=1)
        warn("folds are few", UserWarning, Finding("few folds"))
        warn("never seen", UserWarning, ASIDE)
    assert notes == ["the disk is slow: C2=1", "folds are few", ASIDE]
    assert words_of(ASIDE) == sentence(ASIDE, in_settings)


def test_width_makes_the_ball_gaussian():
    assert HuntSettings(width=2.0).kernels == ("gaussian",)
    assert HuntSettings().kernels == (None, "gaussian")
    assert HuntSettings(kernel="none").kernels == (None,)
