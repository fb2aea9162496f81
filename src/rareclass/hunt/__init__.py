"""Rows that belong with a few labelled ones: a list of them, and balls around the cases."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

from rareclass.errors import ErrorKind, setting
from rareclass.parameters import LARGEST_SEED, opt, parse_number

_read_balls = partial(
    parse_number,
    words={"auto": "auto"},
    remedy="Give a whole number above zero, or auto.",
    is_whole=True,
)
_read_filter = partial(
    parse_number, words={"yes": True, "no": False}, remedy="Give yes, no or a number."
)


@dataclass(frozen=True, kw_only=True)
class HuntSettings:
    """Settings of a hunt; None: chosen on held-out rows where it can be."""

    top: int | None = opt(
        "Number of rows to write, the most likely cases first.",
        min=1,
        show_default="100, or as many cases as the share says",
    )
    kernel: Literal["none", "gaussian"] | None = opt(
        "none: the ball is a sphere; gaussian: it can take any shape.",
        show_default="both are tried",
    )
    c1: float | None = opt(
        "Penalty of a cleared row inside; larger: smaller balls.",
        reads=parse_number,
        show_default="chosen",
    )
    c2: float | None = opt(
        "Penalty of an unlabelled row outside; larger: larger balls.",
        reads=parse_number,
        show_default="0",
    )
    width: float | None = opt(
        "Sigma of the gaussian kernel, in standard deviations; implies that kernel.",
        reads=parse_number,
        show_default="chosen",
    )
    share: float | None = opt(
        "Share of cases among the unlabelled rows, if it is known.", min=0, max=1
    )
    n_balls: int | str | None = opt(
        "Balls for each rare label: a number, or auto.",
        reads=_read_balls,
        show_default="1 to 3, chosen",
    )
    filter: bool | float = opt(
        "Leave out unlabelled rows far from every case before the ball is fitted: yes, no, or a "
        "distance; yes is 3.",
        True,
        reads=_read_filter,
        show_default="yes",
    )
    folds: int = opt("Folds of the cross-validation.", 5, min=2)
    seed: int = opt("Same seed, same rows.", 0, min=0, max=LARGEST_SEED)

    def check(self) -> None:
        """Raise `InputError` on settings that do not go together."""
        if self.width is not None and self.kernel == "none":
            raise ErrorKind.COMBINATION.error(
                f"{setting('width', self.width)} belongs to {setting('kernel', 'gaussian')}.",
                "Leave one of the two out.",
            )
        if self.share == 0:
            raise ErrorKind.SETTING.error(
                f"{setting('share', 0)} leaves nothing to find.", "Give a share such as 0.001."
            )

    @property
    def kernels(self) -> tuple[str | None, ...]:
        """RACH's names of the shapes to try; the first is the default."""
        if self.kernel is not None:
            return (None if self.kernel == "none" else self.kernel,)
        return (None, "gaussian") if self.width is None else ("gaussian",)

    def given(self) -> dict[str, float]:
        """Return the given prices and width, by the names of RACH's parameters."""
        known = {"C1": self.c1, "C2": self.c2, "width": self.width}
        return {name: value for name, value in known.items() if value is not None}
