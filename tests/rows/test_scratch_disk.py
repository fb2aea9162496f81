"""The nameless file of rows: reading, threads, a full disk, nothing left behind."""

import errno
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rareclass import scratch_file as scratch_module
from rareclass.errors import InputError
from rareclass.rows.decoding import ScratchRows
from rareclass.scratch_file import Scratch, scratch_folder

X = np.random.default_rng(0).normal(size=(997, 7)).astype(np.float32)


def written(rows=X, folder=None):
    scratch = ScratchRows(rows.shape[1], rows.dtype, folder)
    for start in range(0, len(rows), 100):
        scratch.append(rows[start : start + 100])
    return scratch


@given(st.lists(st.integers(0, 996), max_size=60), st.integers(1, 40), st.integers(1, 500))
@example([3, 3, 5], 1, 1)
def test_any_choice_of_rows_is_read_back(index, gap, span):
    scratch = written()
    scratch._gap, scratch._span = gap, span
    np.testing.assert_array_equal(scratch.take(np.array(index, dtype=int)), X[index])


@given(st.slices(997))
def test_any_slice_is_read_back(rows):
    np.testing.assert_array_equal(written().take(rows), X[rows])


def test_nearly_contiguous_rows_are_one_request(monkeypatch):
    scratch = written()
    asked = []
    read = Scratch.read_into
    monkeypatch.setattr(
        Scratch, "read_into", lambda self, *to: (asked.append(to[1]), read(self, *to))
    )
    index = np.delete(np.arange(100, 600), [50, 51, 300])
    np.testing.assert_array_equal(scratch.take(index), X[index])
    assert len(asked) == 1
    scratch._gap = 1
    np.testing.assert_array_equal(scratch.take(np.array([3, 4, 900])), X[[3, 4, 900]])
    assert len(asked) == 3


@pytest.mark.sampled(1)
@pytest.mark.parametrize("has_preadv", [True, False])
def test_threads_do_not_mix(monkeypatch, has_preadv):
    monkeypatch.setattr(scratch_module, "_HAS_PREADV", has_preadv)
    scratch = written()

    def check(start):
        np.testing.assert_array_equal(scratch.take(slice(start, start + 3)), X[start : start + 3])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(check, [k % 990 for k in range(2000)]))


def test_rows_outside_are_refused():
    scratch = written()
    for index in ([997], [-1]):
        with pytest.raises(IndexError, match="between 0 and 996"):
            scratch.take(np.array(index))


def test_the_file_has_no_name_and_goes_with_the_rows(tmp_path):
    scratch = written(folder=tmp_path)
    assert list(tmp_path.iterdir()) == []
    handle = scratch._scratch.file
    del scratch
    assert handle.closed


def test_where_scratch_files_go(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert scratch_folder() == tmp_path
    monkeypatch.delenv("TMPDIR")
    monkeypatch.setattr(tempfile, "tempdir", None)
    if Path("/var/tmp").is_dir():
        assert scratch_folder() == Path("/var/tmp")
    with pytest.raises(InputError, match=r"scratch=.*is not a folder"):
        scratch_folder(tmp_path / "none")


def test_too_little_room_is_said_at_once(tmp_path):
    with pytest.raises(InputError) as caught:
        ScratchRows(1000, "float64", tmp_path, expected_rows=10**12)
    assert str(tmp_path) in str(caught.value)
    assert "8,000,000,000,000,000 bytes" in str(caught.value)
    assert "scratch=" in str(caught.value)


@pytest.mark.parametrize(
    ("number", "said"), [(errno.ENOSPC, "more than 2,800 bytes"), (errno.EIO, "Cannot write rows")]
)
def test_a_disk_that_fills_up_on_the_way(tmp_path, monkeypatch, number, said):
    scratch = ScratchRows(7, "float32", tmp_path)
    scratch.append(X[:100])

    class Full:
        def write(self, data):
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(scratch._scratch, "file", Full())
    with pytest.raises(InputError, match=said) as caught:
        scratch.append(X)
    assert str(tmp_path) in str(caught.value)


def test_a_short_file_is_an_error_and_not_garbage(tmp_path):
    scratch = written(folder=tmp_path)
    scratch._scratch.file.truncate(1000)
    with pytest.raises(OSError, match=r"ended at byte 1,000"):
        scratch.take(slice(0, 997))
    assert scratch_module.Scratch(tmp_path).size == 0
