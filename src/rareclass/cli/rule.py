"""The options that say what a threshold is to keep."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rareclass.errors import ErrorKind, setting
from rareclass.parameters import COSTS, check_prevalence, opt, read_costs, read_limited, read_rate

if TYPE_CHECKING:
    from rareclass.model.threshold import DecisionRule

PANEL = "Threshold: one of"


def rule_option(help: str, *names: str, **more: Any) -> Any:
    """Option among those of which one sets the threshold."""
    return opt(help, names=names, rich_help_panel=PANEL, **more)


@dataclass(frozen=True, kw_only=True)
class RuleOptions:
    """Options on what a threshold is to keep; None where the user gave none."""

    alerts: str | None = rule_option(
        "At most so many alerts: 50/day (or hour, week), which needs --time; or 50/10000 in as "
        "many rows."
    )
    min_precision: float | None = rule_option(
        "The highest recall with a precision of at least this, such as 0.3."
    )
    min_recall: float | None = rule_option(
        "The highest precision with a recall of at least this, such as 0.9."
    )
    max_fpr: float | None = rule_option(
        "The highest recall with a false-positive rate of at most this, such as 0.01."
    )
    cost: str | None = rule_option(f"The lowest cost: {COSTS}")
    confidence: str | None = rule_option(
        "Probability that new rows keep the rule: 0.9 means in at least 9 of 10 samples; none "
        "gives no guarantee.",
        show_default="0.9",
    )
    prevalence: float | None = rule_option(
        "Share of rare rows where the model will be used, if it differs from the share here; "
        "probabilities are adjusted to it as well."
    )

    def rule(self, time: str | None, threshold: float | None = None) -> "DecisionRule | None":
        """Return the rule that the options name, None for none or where a `threshold` is given.

        `time` is a column of times.
        """
        check_prevalence(self.prevalence)
        given = {"threshold": threshold, **vars(self)}
        given = {name: value for name, value in given.items() if value is not None}
        sure = {name: given.pop(name) for name in ("confidence", "prevalence") if name in given}
        if len(given) > 1:
            first, second = list(given)[:2]
            raise ErrorKind.COMBINATION.error(
                f"{setting(first)} and {setting(second)} both set the threshold.",
                "Give one of them.",
            )
        if not given or threshold is not None:
            if "confidence" in sure:
                raise ErrorKind.COMBINATION.error(
                    "--confidence needs a rule for the threshold.",
                    "Give --alerts, --min-precision, --min-recall, --max-fpr or --cost as well.",
                )
            return None
        from rareclass.model.threshold import DecisionRule

        [(name, value)] = given.items()
        rule = DecisionRule(self._threshold_rule(name, value))
        if rule.needs_time and time is None:
            raise ErrorKind.COMBINATION.error(
                f"--alerts {value} needs to know the time of each row.",
                "Name the column with --time, or give alerts for so many rows, as in 50/10000.",
            )
        return rule

    def _threshold_rule(self, name: str, value: Any) -> Any:
        from rareclass.decide.threshold_rule import ThresholdRule

        if name == "cost":
            costs: dict[str, Any] = read_costs("--cost", value)
            return ThresholdRule.least_cost(**costs, prevalence=self.prevalence)
        text = (self.confidence or "0.9").strip().lower()
        sure = None if text == "none" else read_limited("--confidence", text)
        shared = {"confidence": sure, "prevalence": self.prevalence}
        if name == "alerts":
            number, rows = _alerts(value)
            wanted: dict[str, Any] = {"per" if isinstance(rows, str) else "rows": rows, **shared}
            return ThresholdRule.max_alerts(number, **wanted)
        return getattr(ThresholdRule, name)(value, **shared)


@dataclass(frozen=True, kw_only=True)
class FitRuleOptions(RuleOptions):
    """Options on the threshold of a new model; ``--cost`` may also be a parameter of MIBC."""

    cost: str | None = rule_option(
        f"The lowest cost: {COSTS} With --method mibc instead a number: its parameter C, such as "
        "0.1, 10^-2, or inf; auto cross-validates."
    )


def _alerts(text: str) -> tuple[int, int | str]:
    """Alerts, and in how many rows, or in which period."""
    rate = read_rate(text)
    if rate is None or 0 in rate:
        raise ErrorKind.SETTING.error(
            f"--alerts {text} cannot be read.",
            "Give a number per hour, day or week, such as 50/day, or per rows, such as 50/10000.",
        )
    return rate
