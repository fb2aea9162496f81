"""What fuzzing found stays found: hostile input is refused by name, or gives finite numbers.

`make fuzz` looks for more; here are a few cases of each kind, and those that ever failed.
"""

import zipfile
from types import SimpleNamespace

import numpy as np
import pytest

from fuzz import bases, changed_archives
from fuzz.changed_archives import archive_of, array_of, members_of, npy, with_header
from fuzz.outcome import outcome_of
from fuzz.targets import all_targets, run_case
from made_models import made_model
from rareclass.encoding.encoders import TypedColumns
from rareclass.ensemble.tree_sum import Tree, TreeSum
from rareclass.errors import InputError
from rareclass.model.archive import DamagedArchiveError, check_archive, seal
from rareclass.model.drift import InputSummary
from rareclass.model.model_file import load_model
from rareclass.tables.table_file import open_table


@pytest.fixture(scope="session")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound")
    bases.make_tables(folder)
    bases.make_model(folder, "rankrc")
    return folder


def tried(folder, name, number):
    case = all_targets()[name].case(folder, number)
    outcome = outcome_of(lambda: run_case(case))
    assert not outcome.is_fault, f"{name} {number} ({case.what}): {outcome.kind}: {outcome.detail}"
    return outcome


def model_with(sound, here, change):
    members = members_of((sound / "rankrc.rareclass").read_bytes())
    change(members)
    (here / "m.rareclass").write_bytes(archive_of(members))
    return here / "m.rareclass"


def array_named(members, shape):
    """An array of this shape: names are numbers that change with each run."""
    names = changed_archives.arrays_in(members)
    return next(name for name in names if array_of(members[name]).shape == shape)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("number", [0, 1, 2, 4])
def test_changed_models(sound, number):
    tried(sound, "model rankrc", number)


@pytest.mark.parametrize("name", ["rows csv score", "rows jsonl score", "rows parquet score"])
def test_changed_rows(sound, name):
    for number in range(2):
        tried(sound, name, number)


@pytest.mark.sampled(0)
def test_strange_commands(sound):
    for number in range(5):
        tried(sound, "command line", number)


@pytest.mark.thorough
@pytest.mark.parametrize("name", list(all_targets()))
def test_every_target(sound, name):
    for number in range(40):
        tried(sound, name, number)


def test_what_a_model_cannot_know_of_its_columns_is_damage_of_its_file(tmp_path):
    model = SimpleNamespace(outside=None, statistics_=SimpleNamespace(summaries=None))
    content = made_model(TypedColumns([]), model, target="y", file=tmp_path / "m.rareclass")
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"m\.rareclass is damaged .* cannot score"):
        list(content.score_batches(open_table(tmp_path / "t.csv"), (), InputSummary()))


@pytest.mark.parametrize("shape", [(2**40,), (10**6, 10**6), (-1,), (3,), ()])
def test_an_array_that_says_it_is_larger_than_it_is(sound, tmp_path, shape):
    def change(members):
        name = array_named(members, (160,))
        members[name] = with_header(members[name], shape=shape)

    path = model_with(sound, tmp_path, change)
    with pytest.raises(InputError, match="says that it is an array of shape"):
        load_model(path)


def _swap(members):
    one, other = changed_archives.arrays_in(members)[:2]
    members[one], members[other] = members[other], members[one]


def test_parts_exchanged_since_the_file_was_written(sound, tmp_path):
    path = model_with(sound, tmp_path, lambda members: None)
    seal(path)
    check_archive(path)
    with zipfile.ZipFile(path) as archive:
        comment = archive.comment
    path = model_with(sound, tmp_path, _swap)
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = comment
    with pytest.raises(DamagedArchiveError, match="not those that were written"):
        check_archive(path)


def landmarks_in(members):
    return next(n for n in changed_archives.arrays_in(members) if ".landmarks_" in n)


def _with_nan(members):
    name = landmarks_in(members)
    members[name] = npy(np.full_like(array_of(members[name]), np.nan))


def _shorter(members):
    name = landmarks_in(members)
    members[name] = npy(array_of(members[name])[:-1])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_with_nan, "holds a number that is not finite"),
        (_shorter, "does not have a number for each of"),
    ],
)
def test_what_a_model_cannot_be(sound, tmp_path, change, said):
    with pytest.raises(InputError, match=said):
        load_model(model_with(sound, tmp_path, change))


def test_a_member_that_says_it_is_larger_than_any_that_fits(sound, tmp_path):
    path = model_with(sound, tmp_path, lambda members: None)
    data = bytearray(path.read_bytes())
    place = data.rindex(b"PK\x01\x02") + 24  # of the unpacked size, in the last entry
    data[place : place + 4] = (2**31).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"more than a file of [0-9,]+ bytes can hold"):
        load_model(path)


def _stump():
    arrays = ([0, 1, 0, 0, 0], [0.5, 1, 0, 0, 0], [1, 2, -1, -1, -1], [4, 3, -1, -1, -1])
    missing, value = [True] * 5, [0.0, 0.0, 1.0, 2.0, 3.0]
    return TreeSum.of([Tree(*map(np.array, (*arrays, missing, value)))])


@pytest.mark.parametrize(
    ("name", "value"),
    [("left", 10**6), ("left", 0), ("right", -900), ("feature", -1), ("start", 7)],
)
def test_trees_that_would_be_left(name, value):
    trees = _stump()
    trees.check_parts()
    array = getattr(trees, name)
    array[-1] = value
    with pytest.raises(ValueError, match=r"a split|start|no feature"):
        trees.check_parts()


def test_trees_that_look_beyond_a_row():
    with pytest.raises(ValueError, match="rows have 1 features"):
        _stump().scores(np.zeros((3, 1)))
