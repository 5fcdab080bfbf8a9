"""Keys by id: remapped, told where they cannot be, and shown as they are."""

import re
from pathlib import Path

from settings_apps import running
from textual.widgets._footer import FooterKey

from app.core.settings.file import Settings
from app.tui import keymap
from app.tui.screens.keys import KeysScreen


def test_every_binding_of_the_app_has_an_id_of_its_own():
    keymap.every_binding()
    bindings = list(keymap._bound(keymap.DOMNode))
    ids = [each.id for each in bindings]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z]+\.[a-z_0-9]+", each) for each in ids)
    assert {"chat.regenerate", "composer.send", "app.start_engine", "engine.restart"} <= set(ids)


def test_unknown_ids_wrong_keys_and_clashes_are_a_sentence_each():
    good, problems = keymap.check(
        {
            "chat.regenerate": "alt+g,f11",
            "chat.nothing": "f4",
            "chat.new_chat": "ctlr+n",
            "chat.panel": "",
            "chat.thinking": "ctrl+q",
        }
    )
    assert good == {"chat.regenerate": "alt+g,f11"}
    text = "\n".join(problems)
    assert "chat.nothing, which does not exist" in text
    assert "ctlr+n is no key" in text
    assert "Ctrl+Q is the key of both chat.thinking and app.quit" in text
    assert all(each.endswith(".") for each in problems)


def test_two_bindings_may_swap_their_keys_and_screens_may_share_one():
    swap = {"chat.copy": "ctrl+r", "chat.regenerate": "ctrl+y", "engine.stop": "x"}
    assert keymap.check(swap) == (swap, [])


def test_keys_read_as_people_write_them():
    assert keymap.display("ctrl+r") == "Ctrl+R"
    assert keymap.display("ctrl+r", long=False) == "^r"
    assert keymap.display("shift+enter") == "Shift+Enter"
    assert keymap.display("f5") == "F5"
    assert keymap.display("question_mark") == "?"
    assert keymap.display("slash", long=False) == "/"
    assert keymap.display("plus") == "+"
    assert keymap.display("G") == "G"
    assert keymap.display("pagedown", long=False) == "PgDn"


async def test_a_remapped_key_acts_and_the_old_one_does_not(home: Path) -> None:
    settings = Settings(keys={"chat.panel": "alt+p", "app.help": "f11", "app.no": "x"})
    async with running(settings) as (app, pilot):
        panel = app.screen.query_one("#panel")
        assert panel.display
        await pilot.press("f3")
        assert panel.display
        await pilot.press("alt+p")
        assert not panel.display
        assert "F11" in [each.key_display for each in app.screen.query(FooterKey)]
        assert keymap.key("chat.panel") == "Alt+P"
        await pilot.press("f11")
        assert isinstance(app.screen, KeysScreen)
        while not app.screen.query(".keys"):
            await pilot.pause(0.05)
        await pilot.pause(0.2)
        page = "\n".join(str(each.render()) for each in app.screen.query(".keys"))
        assert re.search(r"Alt\+P +Show or hide the panel +chat\.panel", page)
        assert "F3 " not in page
        assert any("app.no, which does not exist" in each.message for each in app._notifications)
