"""Resident memory of a process over a run: whether it still grows in the last third."""

from statistics import median

from benchmarks.serving import resident

_MOST_GROWTH = 0.05


class Memory:
    """Readings of a process, one after the other."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.readings: list[int] = []

    def read(self) -> None:
        """Add a reading, and print it."""
        self.readings.append(resident(self._pid))
        print(f"{self.readings[-1] / 2**20:,.1f} MiB", flush=True)

    @property
    def thirds(self) -> tuple[float, float]:
        """Medians of the middle third of the run and of the last, in bytes."""
        third = len(self.readings) // 3
        return median(self.readings[third : 2 * third]), median(self.readings[2 * third :])

    @property
    def grows(self) -> bool:
        """Whether the last third has more than 5 percent more than the middle third."""
        middle, last = self.thirds
        return last > (1.0 + _MOST_GROWTH) * middle

    def __str__(self) -> str:
        middle, last = (size / 2**20 for size in self.thirds)
        return f"{middle:,.1f} MiB in the middle third of the run, {last:,.1f} MiB in the last"


def pause_of(minutes: float) -> float:
    """Seconds between two readings, of which a run has six at least."""
    return min(max(0.5, 0.5 * minutes), 10.0 * minutes)
