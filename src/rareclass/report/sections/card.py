"""The last sections: what the model is and is not for, and how it was made."""

from collections.abc import Sequence

from rareclass.report.page.document import Block, Facts, Heading, Listing, Section


def card_section(meant: Sequence[str], not_meant: Sequence[str]) -> Section:
    """What the numbers of this page carry, and what they do not."""
    blocks: list[Block] = [Heading("What it rests on"), Listing(tuple(meant))]
    if not_meant:
        blocks += [Heading("What it is not for"), Listing(tuple(not_meant))]
    return Section(
        "card",
        "Model card",
        "Derived from the model file and the rows of this page; nobody's intentions are in it.",
        tuple(blocks),
    )


def settings_section(facts: Sequence[tuple[str, str]]) -> Section:
    """Settings, versions, seed and date."""
    return Section("settings", "Settings", "What it takes to do it again.", (Facts(tuple(facts)),))
