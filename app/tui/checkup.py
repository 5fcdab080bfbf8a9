"""What `doctor` looks at of the interface: keys and themes of the user's own."""

from collections.abc import Iterator

from app.core.checkup.findings import Finding, Health
from app.core.i18n import _, shown
from app.core.settings import file as settings_file
from app.tui import keymap, themes
from engine_bridge.errors import BridgeError


def examine() -> Iterator[Finding]:
    """What is wrong with them; nothing where nothing is. Never raises BridgeError."""
    try:
        settings = settings_file.load()
    except BridgeError:  # has a finding of its own
        return
    if settings.keys:
        _good, problems = keymap.check(settings.keys)
        cure = _("Correct it under [keys] in the settings.")
        yield from (Finding("settings", Health.WARNING, each, cure) for each in problems)
    found, broken = themes.load([*themes.our_files(), *themes.user_files()])
    yield from (
        Finding("settings", Health.WARNING, shown(each.reason), shown(each.cure)) for each in broken
    )
    wanted = settings.appearance.theme
    if wanted not in {each.name for each in found}:
        yield Finding(
            "settings",
            Health.WARNING,
            _("There is no theme {name}.").format(name=wanted),
            _("There are: {names}.").format(names=", ".join(each.name for each in found)),
        )
