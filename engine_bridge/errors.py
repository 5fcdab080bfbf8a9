"""Errors a person can act on: one sentence for what happened, one for its cure."""

SHOWN = 300
"""Characters of an error that nobody foresaw."""


class BridgeError(Exception):
    """The work failed. `exit_code` is what the command line returns for it."""

    exit_code = 1

    def __init__(self, reason: str, cure: str = "") -> None:
        super().__init__(f"{reason} {cure}".strip())
        self.reason = reason
        self.cure = cure


def brief(error: BaseException) -> str:
    """An error that nobody foresaw, for a sentence: what it is of may hold a whole document."""
    told = repr(error)
    return told if len(told) <= SHOWN else f"{told[:SHOWN]}…"


class UsageError(BridgeError):
    """The user asked for something that does not exist or does not fit together."""

    exit_code = 2


class UnavailableError(BridgeError):
    """No engine or no model could be had."""

    exit_code = 3
