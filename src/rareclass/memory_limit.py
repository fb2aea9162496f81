"""How much memory this process may still take."""

import os
from pathlib import Path

_CGROUP_2 = Path("/sys/fs/cgroup")
_CGROUP_1 = Path("/sys/fs/cgroup/memory")


def available_memory() -> int:
    """Return the bytes that this process may still take.

    The least of what the machine has free and what the container's limit leaves.
    """
    limits = [_free_on_machine()]
    for folder, limit, used in (
        (_CGROUP_2, "memory.max", "memory.current"),
        (_CGROUP_1, "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        most, taken = _number_in(folder / limit), _number_in(folder / used)
        if most is not None:
            # The page cache counts as used although it is given up on demand.
            cache = _page_cache(folder / "memory.stat")
            limits.append(most - max(0, (taken or 0) - cache))
    return max(0, min(limits))


def _free_on_machine() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        # Not Linux: all of the memory is the best that is known.
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 1 << 62


def _number_in(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _page_cache(path: Path) -> int:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    fields = dict(line.split(maxsplit=1) for line in lines if " " in line)
    return int(fields.get("inactive_file", fields.get("total_inactive_file", "0")))
