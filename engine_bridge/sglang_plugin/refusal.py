"""How the plugin refuses: one sentence that names what was requested and why it is not on."""


class Refused(RuntimeError):  # noqa: N818  (a refusal is meant, not an accident)
    """Something was requested and is not there; the engine must not start without it."""

    def __init__(self, what: str, why: str) -> None:
        self.what = what
        self.why = why
        super().__init__(f"ling-chat: {what} was requested and is not on: {why}")
