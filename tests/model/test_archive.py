"""Names that parts of a model file may have, and what is told of those that cannot be read."""

import zipfile

import pytest

from rareclass.model.archive import DamagedArchiveError, check_archive, in_brief

PLAIN = ("a" * 500, "arrays/1.txt")
STRANGE = ("a" * 501, "../a", "/a", "a//b", "a\\..\\b", "c:a", "a\tb")


@pytest.mark.parametrize("name", [*PLAIN, *STRANGE])
def test_names_of_parts_are_plain_and_short(tmp_path, name):
    path = tmp_path / "m.rareclass"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, b"")
    if name in PLAIN:
        assert check_archive(path) == {name}
    else:
        with pytest.raises(DamagedArchiveError, match="strange name"):
            check_archive(path)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("Not this way.\nBut that."), "Not this way"),
        (ValueError(), "ValueError"),
        (KeyError("part"), "KeyError 'part'"),
        (ValueError("a" * 300), "a" * 200),
    ],
)
def test_an_error_is_told_by_its_first_line_or_its_type(error, told):
    assert in_brief(error).strip() == told
