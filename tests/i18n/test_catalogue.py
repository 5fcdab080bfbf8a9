"""The catalogue is whole, as compiled, and its translations fit what they translate."""

import re

import catalogue
import pytest

from app.core.i18n import Catalogue, shown, use
from app.core.i18n import catalogue as in_use

FIELD = re.compile(r"(?<!\{)\{(\w*)([^{}]*)\}(?!\})")


def test_every_message_is_in_the_catalogue_and_translated():
    known = catalogue.by_message(catalogue.read())
    missing = [message for message in catalogue.wanted() if not known.get(message)]
    assert missing == [], "run tests/i18n/catalogue.py, and translate what it lists"
    assert set(known) == set(catalogue.wanted()), "run tests/i18n/catalogue.py"


def test_the_compiled_catalogue_is_that_of_the_source():
    assert catalogue.MO.read_bytes() == catalogue.compiled(catalogue.read())


def test_the_gaps_of_a_translation_are_those_of_the_message():
    for (_, text), translation in catalogue.by_message(catalogue.read()).items():
        source = text[-1] if isinstance(text, tuple) else text
        assert sorted(FIELD.findall(translation)) == sorted(FIELD.findall(source)), source


def test_nothing_is_wrapped_that_nobody_could_translate():
    assert list(catalogue.unwrapped()) == []


@pytest.fixture
def chinese():
    use("zh_CN")
    yield in_use()
    use("en")


def test_a_finished_sentence_is_found_by_its_template(chinese: Catalogue):
    assert shown("loading weights") == "正在加载权重"
    assert shown("The model needs 5 GiB and the GPU has 4.") == "模型需要 5 GiB，而 GPU 有 4。"
    assert shown("Start the engine again. Try again.") == "请重新启动引擎。请重试。"
    nested = "Close other programs or choose a smaller model (--model a/b)"
    assert "选择更小的模型（--model a/b）" in shown(
        f"{nested}; LING_CHAT_SKIP_MEMORY_CHECK=1 tries all the same."
    )
    assert shown("Something that nobody says here.") == "Something that nobody says here."
    assert shown("") == ""


def test_what_nobody_translated_stays_as_it_is_in_part(chinese: Catalogue):
    assert shown("Strange things happened. Try again.") == "Strange things happened. 请重试。"


def test_english_costs_no_catalogue():
    use("en")
    assert in_use() is None
    assert shown("loading weights") == "loading weights"
