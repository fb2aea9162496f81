"""Names that parts of a model file may have."""

import zipfile
from pathlib import Path

import pytest

from rareclass.model.archive import DamagedArchiveError, check_archive


@pytest.mark.parametrize(
    ("name", "is_plain"),
    [
        ("a" * 500, True),
        ("a" * 501, False),
        ("arrays/1.txt", True),
        ("../a", False),
        ("/a", False),
        ("a//b", False),
        ("a\\..\\b", False),
        ("c:a", False),
        ("a\tb", False),
    ],
)
def test_names_of_parts_are_plain_and_short(tmp_path: Path, name: str, is_plain: bool) -> None:
    path = tmp_path / "m.rareclass"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, b"")
    if is_plain:
        assert check_archive(path) == {name}
    else:
        with pytest.raises(DamagedArchiveError, match="strange name"):
            check_archive(path)
