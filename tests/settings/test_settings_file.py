"""The settings' file: comments stay, processes do not undo each other, limits are told."""

import os
from pathlib import Path

import pytest

from app.core.settings import file as settings
from app.core.settings.fields import Control, change, item, items
from app.core.settings.schema import Applies
from engine_bridge.errors import UsageError

WRITTEN = """# mine
[appearance]
theme = "ling-light"  # bright

[engine]
keep = true

[other]
key = 1
"""


@pytest.fixture
def file(home: Path) -> Path:
    path = settings.path()
    path.write_text(WRITTEN)
    return path


def test_only_what_is_changed_is_written(file: Path) -> None:
    settings.load().save()
    assert file.read_text() == WRITTEN
    settings.load().put("appearance.theme", "ling-dark")
    assert file.read_text() == WRITTEN.replace('"ling-light"', '"ling-dark"')
    settings.load().put("appearance.frames_per_second", 12)
    text = file.read_text()
    assert "frames_per_second = 12" in text
    assert "# bright" in text
    assert "language" not in text


def test_two_processes_do_not_undo_each_others_changes(file: Path) -> None:
    one, two = settings.load(), settings.load()
    one.put("engine.keep", False)
    two.put("appearance.theme", "ling-contrast")
    found = settings.load()
    assert found.engine.keep is False
    assert found.appearance.theme == "ling-contrast"


def test_a_theme_for_one_run_is_not_written(file: Path) -> None:
    found = settings.load()
    found.only_now("appearance.theme", "ling-mono")
    found.put("engine.keep", False)
    assert found.appearance.theme == "ling-mono"
    assert settings.load().appearance.theme == "ling-light"


def test_the_theme_of_older_files_is_understood(file: Path) -> None:
    file.write_text('theme = "ling-contrast"\n')
    assert settings.load().appearance.theme == "ling-contrast"


def test_a_value_that_does_not_fit_is_a_sentence_and_changes_nothing(file: Path) -> None:
    found = settings.load()
    for key, value, rule in (
        ("appearance.frames_per_second", "many", "A whole number from 0 to 60."),
        ("appearance.frames_per_second", "61", "A whole number from 0 to 60."),
        ("engine.backend", "vllm", "It is one of: auto, sglang, llamacpp, attach."),
        ("engine.url", "http://a b", "It has no spaces."),
    ):
        with pytest.raises(UsageError) as caught:
            change(found, key, value)
        assert caught.value.cure == rule
    with pytest.raises(UsageError, match=r"no setting engine\.none"):
        change(found, "engine.none", "x")
    assert file.read_text() == WRITTEN
    change(found, "appearance.frames_per_second", " 12 ")
    assert settings.load().appearance.frames_per_second == 12


def test_every_setting_says_what_it_is_for(home: Path) -> None:
    found = list(items())
    assert len({each.key for each in found}) == len(found) > 8
    for each in found:
        assert each.description.endswith("."), each.key
        assert each.title, each.key
        assert each.applies in set(Applies), each.key
        assert each.control is not Control.CHOICE or each.default in each.choices
    assert item("engine.keep").control is Control.SWITCH


def test_a_broken_file_is_told_with_its_place(file: Path) -> None:
    file.write_text("[appearance]\nframes_per_second = 1000\n")
    with pytest.raises(UsageError, match=r"broken at appearance\.frames_per_second"):
        settings.load()
    for text in (
        "[appearance]\ntheme =\n[chat]\n",
        '[chat]\nprompt = """never\n',
        "[engine]\n[chat",
    ):
        file.write_text(text)
        with pytest.raises(UsageError, match="broken at line 2"):
            settings.load()


def test_a_pipe_where_the_settings_should_be_is_a_sentence_and_is_not_waited_for(
    home: Path,
) -> None:
    os.mkfifo(settings.path())
    with pytest.raises(UsageError, match=r"cannot be read: .*it is no file"):
        settings.load()


def test_a_file_that_broke_while_the_app_runs_is_told_and_kept(file: Path) -> None:
    found = settings.load()
    file.write_text("[appearance]\ntheme =\n")
    with pytest.raises(UsageError, match="broken at line 2"):
        found.put("engine.keep", True)
    assert file.read_text() == "[appearance]\ntheme =\n"
    with pytest.raises(UsageError, match="broken at line 2"):
        settings.unknown()
