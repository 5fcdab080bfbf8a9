"""The number in an answer to a GSM8K question, read strictly and leniently.

Both readings and the comparison are those of lm-evaluation-harness's task `gsm8k`: strict-match
takes the number after `####`, flexible-extract the last number of the text; before comparing,
commas, dollar signs and a full stop at the end are dropped.
"""

import re

MARKED = re.compile(r"#### (-?[0-9.,]+)")
NUMBER = re.compile(r"(-?[$0-9.,]{2,})|(-?[0-9]+)")


def strict(text: str) -> str | None:
    """The first number after `#### `; None where the answer does not keep to that form."""
    found = MARKED.search(text)
    return found.group(1) if found else None


def lenient(text: str) -> str | None:
    """The last number anywhere; None where there is none."""
    found = [whole for match in NUMBER.finditer(text) if (whole := match.group(0))]
    return found[-1] if found else None


def reference(answer: str) -> str:
    """The number of a reference answer: what follows its `####`, or all of it."""
    return answer.rpartition("####")[2].strip()


def equal(found: str | None, answer: str) -> bool:
    """Whether a reading is the reference's number, as written."""
    return found is not None and _plain(found) == _plain(answer)


def equal_by_value(found: str | None, answer: str) -> bool:
    """Whether a reading has the reference's value: 57.00 is 57 here."""
    try:
        return found is not None and float(_plain(found)) == float(_plain(answer))
    except ValueError:
        return False


def _plain(number: str) -> str:
    return re.sub(r"\.$", "", number.replace(",", "").replace("$", "")).strip()
