"""Files as they come from a bad disk, a cut download or somebody who means harm."""

# What parsers have stumbled over: ends of text, numbers at their limits, marks of other formats.
HOSTILE = (
    b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n\n\n", b'"', b'"""', b"'", b"\\", b",,,,",
    b"\t", b"{", b"}", b"[" * 40, b"]]", b":", b"nan", b"-nan", b"inf", b"-inf", b"1e400",
    b"1e-400", b"1e39", b"9223372036854775808", b"-9223372036854775809", b"0x1F", b"1_000", b"1,5",
    b"--1", b"+", b"\xf0\x9f\x92\xa9", b"\xed\xa0\x80", b"\xc3", b"\xe2\x80\xae", b"\x1b[31m",
    b"2024-02-30", b"9999-12-31T23:59:60Z", b"true", b"null", b"None", b"=cmd|' /C calc'!A0",
    b"PK\x03\x04", b"PAR1", b"\x1f\x8b\x08", b"qid:1", b"-1:5", b"0:0", b"4294967296:1", b"#",
)  # fmt: skip


def flipped(data, rng):
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4, 16])):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def other_bytes(data, rng):
    out = bytearray(data)
    for _ in range(rng.choice([1, 2, 8])):
        out[rng.randrange(len(out))] = rng.randrange(256)
    return bytes(out)


def cut(data, rng):
    return data[: rng.randrange(len(data))]


def beheaded(data, rng):
    return data[rng.randrange(1, len(data)) :]


def hole(data, rng):
    begin = rng.randrange(len(data))
    length = rng.randrange(1, 512)
    filling = b"" if rng.random() < 0.5 else bytes(len(data[begin : begin + length]))
    return data[:begin] + filling + data[begin + length :]


def inserted(data, rng):
    out = data
    for _ in range(rng.choice([1, 1, 3])):
        place = rng.randrange(len(out) + 1)
        out = out[:place] + rng.choice(HOSTILE) + out[place:]
    return out


def repeated(data, rng):
    begin, place = rng.randrange(len(data)), rng.randrange(len(data))
    piece = data[begin : begin + rng.randrange(1, 4096)]
    return data[:place] + piece + data[place:]


CHANGES = (
    flipped, other_bytes, cut, beheaded, hole, inserted, repeated,
)  # fmt: skip
