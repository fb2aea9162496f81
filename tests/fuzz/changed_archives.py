"""Zip archives of arrays and JSON (model files, checkpoints) whose parts are not as written.

Each change opens an archive, changes what is in it and writes a sound archive again: no checksum of
the zip format notices. A digest of the whole, where a file has one, is made anew too
(`rareclass.model.archive.seal`), as somebody would who means harm.
"""

import io
import json
import zipfile

import numpy as np

Members = dict[str, bytes]
_JSON = "json.npy"
_HUGE = [(2**40,), (10**6, 10**6), (2**31, 2**31), (2**62, 4), (-1,), (2**63,), ()]
_DTYPES = ["<f8", "<f4", "<i8", "<i4", "|b1", "<U5", "|S3", "<c16", "<M8[ns]", "|V8", ">f8", "<f2"]
_WORDS = [
    "os.system", "builtins", "subprocess", "", "numpy", "../../etc/passwd", "NaN", "\0", "sklearn",
    "rareclass", "x" * 1000, "number", "category", "text", "date", "svmlight", "table", "float64",
]  # fmt: skip
_NUMBERS = [0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 1.5, float("nan"), float("inf"), 1e308]


def members_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {entry.filename: archive.read(entry) for entry in archive.infolist()}


def archive_of(members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def arrays_in(members):
    return [name for name in members if name.endswith(".npy")]


def npy(array):
    out = io.BytesIO()
    np.save(out, array, allow_pickle=True)
    return out.getvalue()


def array_of(content):
    return np.load(io.BytesIO(content))


def with_header(content, **changed):
    file = io.BytesIO(content)
    np.lib.format.read_magic(file)
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    header = {
        "shape": shape,
        "fortran_order": fortran,
        "descr": np.lib.format.dtype_to_descr(dtype),
    }
    text = repr(header | changed).encode("latin1")
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + file.read()


def _in_an_array(change):
    def changed(members, rng):
        names = arrays_in(members)
        if names:
            name = rng.choice(names)
            members[name] = change(members[name], rng)

    changed.__name__ = change.__name__.strip("_")
    return changed


def _emptied(content, rng):
    array = array_of(content)
    return npy(array[:0] if array.ndim else array.reshape(0))


def _filled(content, rng):
    array = array_of(content).copy()
    if array.dtype.names:
        name = rng.choice(array.dtype.names)
        array[name] = rng.choice([-1, 0, 1, 100])
        return npy(array)
    if array.dtype.kind not in "fiub":
        return npy(array[::-1])
    values = [np.nan, np.inf, -np.inf, 1e300, -1e300, 0] if array.dtype.kind == "f" else [-1, 0, 1]
    if array.dtype.kind in "iu":
        values += [int(np.iinfo(array.dtype).max), int(np.iinfo(array.dtype).min), 10_000]
    with np.errstate(all="ignore"):
        value = np.array(rng.choice(values)).astype(array.dtype)
    if array.ndim and rng.random() < 0.5 and array.size:
        array.reshape(-1)[rng.randrange(array.size)] = value
    else:
        array[...] = value
    return npy(array)


def _reshaped(content, rng):
    array = array_of(content)
    ways = [array.reshape(-1), array.reshape(1, -1), array.reshape(-1, 1), array.T,
            np.atleast_1d(array)[1:], np.concatenate([np.atleast_1d(array)] * 2),
            array[..., None], np.float64(1.0) * 3]  # fmt: skip
    return npy(np.asarray(rng.choice(ways)))


def _permuted(content, rng):
    array = np.atleast_1d(array_of(content))
    return npy(array[np.random.default_rng(rng.randrange(2**32)).permutation(len(array))])


def _other_dtype(content, rng):
    array = array_of(content)
    with np.errstate(all="ignore"):
        try:
            return npy(array.astype(rng.choice(_DTYPES)))
        except (TypeError, ValueError):
            return npy(np.zeros(array.shape, "<U3"))


def _of_objects(content, rng):
    return npy(np.array([{"a": 1}, None, "x"], dtype=object))


def _declares_huge_shape(content, rng):
    return with_header(content, shape=rng.choice(_HUGE))


def _declares_other_type(content, rng):
    return with_header(content, descr=rng.choice([*_DTYPES, "|O", "<U1000000000"]))


def _header_is_damaged(content, rng):
    out = bytearray(content)
    out[rng.randrange(min(len(out), 128))] = rng.randrange(256)
    return bytes(out)


def members_swapped(members, rng):
    names = arrays_in(members) if rng.random() < 0.9 else list(members)
    if len(names) > 1:
        one, other = rng.sample(names, 2)
        members[one], members[other] = members[other], members[one]


def member_removed(members, rng):
    del members[rng.choice(list(members))]


def member_cut(members, rng):
    name = rng.choice(list(members))
    members[name] = members[name][: rng.randrange(len(members[name]) + 1)]


def member_strange(members, rng):
    name = rng.choice(["../../evil.npy", "/etc/passwd", "C:\\evil", "a/../../b", " ", "x" * 5000])
    content = members.pop(rng.choice(list(members))) if rng.random() < 0.5 else b"evil"
    members[name] = content


def bomb(members, rng):
    size = 2**28 if rng.random() < 0.3 else 2**25
    if rng.random() < 0.5:
        members["bomb.npy"] = npy(np.zeros(8))[:128] + bytes(size)
    else:
        names = arrays_in(members) or list(members)
        members[rng.choice(names)] = npy(np.zeros(size // 8))


def _nodes(value, found):
    if isinstance(value, dict | list):
        found.append(value)
        for each in value.values() if isinstance(value, dict) else value:
            _nodes(each, found)
    return found


def json_edited(members, rng):
    if _JSON not in members:
        return
    tree = json.loads(array_of(members[_JSON]).tobytes())
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        _edit(tree, rng)
    members[_JSON] = npy(np.frombuffer(json.dumps(tree).encode(), np.uint8))


def _edit(tree, rng):
    nodes = [node for node in _nodes(tree, []) if node]
    if not nodes:
        return
    node = rng.choice(nodes)
    key = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
    old, way = node[key], rng.random()
    if way < 0.2:
        del node[key]
    elif way < 0.35:
        other = rng.choice(nodes)
        node[key] = rng.choice(list(other.values()) if isinstance(other, dict) else other)
    elif way < 0.7:
        node[key] = rng.choice([None, True, [], {}, "", *_NUMBERS])
    elif way < 0.85:
        node[key] = rng.choice(_WORDS)
    else:
        node[key] = [old] if rng.random() < 0.5 else {"a": old}
    try:
        json.dumps(tree)
    except (ValueError, RecursionError):  # a part of itself
        node[key] = old


def json_deep(members, rng):
    text = b"[" * 100_000 if rng.random() < 0.5 else b'{"a":' * 50_000
    if _JSON in members:
        members[_JSON] = npy(np.frombuffer(text, np.uint8))


CHANGES = (
    *map(_in_an_array, (
        _emptied, _filled, _filled, _reshaped, _permuted, _other_dtype, _of_objects,
        _declares_huge_shape, _declares_other_type, _header_is_damaged,
    )),
    members_swapped, members_swapped, member_removed, member_cut, member_strange, bomb,
    json_edited, json_edited, json_edited, json_edited, json_edited, json_deep,
)  # fmt: skip


def changed(data, rng):
    members, names = members_of(data), []
    for _ in range(rng.choice([1, 1, 1, 2])):
        change = rng.choice(CHANGES)
        if members:
            try:
                change(members, rng)
            except (MemoryError, ValueError, OSError, RecursionError):  # unreadable by now
                continue
            names.append(change.__name__)
    return "+".join(names), archive_of(members)
