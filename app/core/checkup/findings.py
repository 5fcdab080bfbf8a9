"""What one look of `doctor` found."""

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. `cure` is empty where nothing is amiss."""

    area: str
    health: Health
    text: str
    cure: str = ""
