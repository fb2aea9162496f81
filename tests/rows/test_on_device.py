"""Rows on a device: what is sent when, what stays, and what is said where it does not fit."""

import pickle
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from rareclass.rows import Budget, RowValues, as_source
from rareclass.rows.devices import ArrayLibrary, Arrived, Cuda, find_device
from rareclass.rows.on_device import DeviceRows, rows_on_device


class Recorder:
    """numpy as a device that writes down what it is sent."""

    full = (MemoryError,)

    def __init__(self, memory=10**9):
        self.memory, self.log, self.n_put = memory, [], 0

    def __str__(self):
        return "recorder"

    def put(self, array):
        self.n_put += 1
        return array

    def send(self, array):
        self.log.append(("send", int(array[0, 0])))
        return Arrived(array)

    def free_bytes(self):
        return self.memory


def look(block, device):
    device.log.append(("work", block.start))
    return (block.X.sum(),)


def do_not_look(block, device):
    device.log.append(("work", block.start))
    return (0.0,)


def passes(fns, **settings):
    device = Recorder()
    rows = DeviceRows(device, as_source(np.arange(6.0)[:, None]), block_rows=2, **settings)
    for fn in fns:
        device.log.append("pass")
        rows.sum(fn, device)
    return device.log[1:]


ONE_AHEAD = [("send", 0), ("send", 2), ("work", 0), ("send", 4), ("work", 2), ("work", 4)]
WORK = [("work", 0), ("work", 2), ("work", 4)]


def test_rows_that_are_held_are_sent_once():
    assert passes([look, look]) == [*ONE_AHEAD, "pass", *WORK]


def test_rows_that_are_not_held_are_sent_one_block_ahead_in_each_pass():
    assert passes([look, look], holds_rows=False) == [*ONE_AHEAD, "pass", *ONE_AHEAD]


def test_rows_that_the_last_pass_did_not_read_are_sent_when_they_are_asked_for():
    *_, second, third = split(passes([do_not_look, do_not_look, look], holds_rows=False))
    assert second == WORK
    in_turn = [(what, row) for row in (0, 2, 4) for what in ("work", "send")]
    assert third == in_turn


def split(log):
    parts = [[]]
    for entry in log:
        if entry == "pass":
            parts.append([])
        else:
            parts[-1].append(entry)
    return parts


def test_what_never_changes_is_sent_once():
    device = Recorder()
    rows = DeviceRows(device, as_source(np.ones((6, 1))), block_rows=2)
    values = RowValues(np.arange(6.0))
    assert rows.sum(total, values) == (15.0,)
    before = device.n_put
    assert rows.sum(total, values) == (15.0,)
    assert device.n_put == before


def total(block, values):
    return (values.of(block).sum(),)


def test_memory_is_shared_out_before_rows_are_sent():
    X = np.ones((100_000, 4))  # 3.2 MB, and 0.8 MB of weights
    held = rows_on_device(Recorder(10**7), as_source(X), n_landmarks=50)
    assert held._holds_rows
    assert held.n_blocks >= 25  # at least 4,096 rows a block
    sent = rows_on_device(Recorder(7 * 10**6), as_source(X), n_landmarks=50)
    assert not sent._holds_rows
    for rows in (held, sent):
        used = 8 * 10**5 + rows._holds_rows * 32 * 10**5 + rows._work_bytes + rows.budget.total
        assert used <= 0.8 * rows.device.memory + 1
        assert rows.budget.total > 0


def test_full_memory_is_told_with_what_takes_it():
    rows = DeviceRows(Recorder(), as_source(np.ones((10, 4))), budget=Budget(0), work_bytes=2**20)

    def full(block):
        block.X  # noqa: B018 - now it holds them
        raise MemoryError("wanted 7 bytes")

    with pytest.raises(ValueError, match=r"device recorder is full \(wanted 7 bytes\)") as error:
        rows.sum(full)
    assert "it holds 320 bytes of rows and 0 bytes of kernels" in str(error.value)
    assert "a block of 10 rows takes 1.0 MiB" in str(error.value)
    assert "landmarks=('rare', 1000)" in str(error.value)


def test_sparse_rows_and_clusters_are_refused():
    with pytest.raises(ValueError, match=r"dense rows; these are sparse\. Pass X.toarray\(\)"):
        rows_on_device(Recorder(), as_source(sparse.csr_array(np.eye(3))), n_landmarks=1)
    source = as_source(np.eye(3))
    source.as_rows = DeviceRows
    with pytest.raises(ValueError, match="not on those of a cluster"):
        rows_on_device(Recorder(), source, n_landmarks=1)


def test_devices_by_name():
    assert find_device(None) is find_device("cpu") is None
    assert find_device("cuda:3") == Cuda(3)
    library = ArrayLibrary("numpy")
    assert find_device(library) is library
    for wrong in ("cuda:", "cuda:a", "tpu", 3):
        with pytest.raises(ValueError, match="is not one of None, 'cpu', 'cuda'"):
            find_device(wrong)


class Stream:
    """A stream of CUDA that does what it is asked at the last moment: when it is waited for."""

    def __init__(self, non_blocking=False):
        self.left = []

    def record(self):
        return SimpleNamespace(stream=self, synchronize=self.finish)

    def wait_event(self, event):
        event.synchronize()

    def finish(self):
        while self.left:
            self.left.pop(0)()


class OnCuda(np.ndarray):
    def set(self, array, stream):
        stream.left.append(lambda: np.copyto(self, array))


@pytest.fixture
def cupy(monkeypatch):
    """As much of CuPy as rows need, on numpy."""
    module, current = ModuleType("cupy"), Stream()
    module.empty = lambda shape, dtype: np.full(shape, -1, dtype).view(OnCuda)
    module.asarray = np.asarray
    module.get_default_memory_pool = lambda: SimpleNamespace(free_bytes=lambda: 5)
    error = type("CUDARuntimeError", (RuntimeError,), {})
    module.used = []
    module.cuda = SimpleNamespace(
        Stream=Stream,
        Device=lambda k: SimpleNamespace(use=lambda: module.used.append(k)),
        alloc_pinned_memory=bytearray,
        get_current_stream=lambda: current,
        runtime=SimpleNamespace(
            CUDARuntimeError=error, getDeviceCount=lambda: 2, memGetInfo=lambda: (100, 200)
        ),
    )
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


def test_rows_go_through_two_stretches_of_pinned_memory(cupy):
    device, rng = Cuda(1), np.random.default_rng(0)
    rows = [rng.normal(size=(n, 3)) for n in (4, 9, 2, 9, 5)]
    on_their_way = []
    for k, array in enumerate(rows):
        on_their_way.append(device.send(array))
        if k:  # the one before is worked on while this one is copied
            np.testing.assert_array_equal(on_their_way[k - 1].wait(), rows[k - 1])
    for arriving, array in zip(on_their_way, rows, strict=True):
        np.testing.assert_array_equal(arriving.wait(), array)
    assert device.free_bytes() == 105
    assert set(cupy.used) == {1}
    assert pickle.loads(pickle.dumps(device)) == device


def test_a_device_that_is_not_there_is_told(cupy):
    with pytest.raises(ValueError, match=r"cuda:2.*has 2 devices.*device='cuda:1'"):
        Cuda(2).free_bytes()

    def fails():
        raise cupy.cuda.runtime.CUDARuntimeError("no driver")

    cupy.cuda.runtime.getDeviceCount = fails
    with pytest.raises(ValueError, match=r"finds no device here \(no driver\)\. Leave device=None"):
        Cuda().free_bytes()


def test_without_cupy_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ImportError, match=r'pip install "rareclass\[gpu\]"'):
        Cuda().put(np.ones(1))
