"""Sessions carried out and in: our JSON, Markdown, HTML, and ChatGPT's export."""

import json
import zipfile
from pathlib import Path

import pytest

from app.core.chat.conversation import Conversation, Parameters, Turn
from app.core.chat.tree import Origin
from app.core.sessions import exchange, export
from app.core.sessions.importing import read
from app.core.sessions.records import SessionInfo
from engine_bridge.chat.events import Timings
from engine_bridge.errors import SHOWN, BridgeError, UsageError

HOSTILE = (
    "<script>alert(1)</script> <img src=x onerror=alert(1)> [link](javascript:alert(1)) "
    "![picture](https://example.org/x.png)\n\n```html\n</code><script>1</script>\n```\n\n"
    "| a | b |\n|---|---|\n| 1 | 2 |"
)
INFO = SessionInfo("k3fm7pqa", 'A "title" </title><script>', 1.0, 2.0, None, 4, "Ling")


def conversation() -> Conversation:
    talk = Conversation(
        [
            Turn("user", "Which <b>colour</b>?", created=1.0),
            Turn(
                "assistant",
                HOSTILE,
                "Let me <i>think</i>.",
                Timings(completion_tokens=120, decode_tokens_per_s=53.9, by_engine=True),
                broken="It broke.",
                created=2.0,
                origin=Origin("sglang", "Ling", {"humming": "verified"}),
            ),
        ],
        system="Be brief. </div>",
        parameters=Parameters(temperature=0.6, stop=("END",)),
    )
    talk.others.append(Turn("assistant", "Blue.", parent=talk.turns[0].id, created=3.0))
    return talk


def test_our_json_brings_everything_back(tmp_path):
    talk = conversation()
    path = tmp_path / "x.json"
    documents = [("ab" * 32, "report.pdf")]
    path.write_text(json.dumps(exchange.to_json([(INFO, talk, documents)])))
    (back,) = read(path)
    assert back.conversation == talk
    assert (back.title, back.created, back.changed) == (INFO.title, 1.0, 2.0)
    assert back.documents == tuple(documents)


def test_markdown_has_the_active_branch():
    text = export.to_markdown(INFO, conversation(), [("00", "report.pdf")])
    assert "## Ling\n\n> *thought*\n>\n> Let me <i>think</i>.\n" in text
    assert "1 messages of other branches" in text
    assert "53.9 tok/s" in text
    assert "It broke." in text
    assert "Blue." not in text


def test_html_runs_nothing_fetches_nothing_and_escapes_everything():
    page = export.to_html(INFO, conversation(), [("00", "<report>.pdf")])
    lower = page.lower()
    assert "<script" not in lower
    assert "<img" not in lower
    assert 'href="javascript' not in lower
    assert "src=" not in lower.replace("&lt;img src=x", "")
    assert "default-src 'none'" in page
    assert "<table>" in page
    assert "&lt;report&gt;.pdf" in page
    assert "Which &lt;b&gt;colour&lt;/b&gt;?" in page


def node(name, parent, children, message=None):
    return name, {"id": name, "parent": parent, "children": children, "message": message}


def said(role, *parts, kind="text", **more):
    content = {"content_type": kind, "parts": list(parts)} if parts else {"content_type": kind}
    content |= more.pop("content", {})
    return {"author": {"role": role}, "create_time": 10.0, "content": content, "metadata": more}


def chatgpt() -> list[dict]:
    """An export with all that is odd about them."""
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"}
    spoken = {"content_type": "audio_transcription", "text": "spoken words"}
    thoughts = {"thoughts": [{"summary": "Look", "content": "at the picture"}]}
    mapping = dict(
        [
            node("root", None, ["hidden"]),
            node(
                "hidden",
                "root",
                ["context"],
                said("system", "", is_visually_hidden_from_conversation=True),
            ),
            node("context", "hidden", ["q1"], said("user", kind="user_editable_context")),
            node(
                "q1",
                "context",
                ["think", "a1b"],
                said("user", picture, spoken, "What is it?", kind="multimodal_text"),
            ),
            node("think", "q1", ["code"], said("assistant", kind="thoughts", content=thoughts)),
            node(
                "code",
                "think",
                ["ran"],
                said(
                    "assistant",
                    kind="code",
                    content={"language": "python", "text": "print(1)"},
                    model_slug="gpt-x",
                ),
            ),
            node(
                "ran", "code", ["a1"], said("tool", kind="execution_output", content={"text": "1"})
            ),
            node("a1", "ran", ["q2"], said("assistant", "It is a bridge.", model_slug="gpt-x")),
            node("a1b", "q1", [], said("assistant", "Another answer.")),
            node("q2", "a1", [], said("user", "Thanks")),
        ]
    )
    return [
        {
            "title": "A bridge",
            "create_time": 1.0,
            "update_time": 2.0,
            "mapping": mapping,
            "current_node": "q2",
        },
        {"title": "Empty", "mapping": dict([node("root", None, [])]), "current_node": "root"},
    ]


@pytest.mark.parametrize("as_zip", [False, True])
def test_a_chatgpt_export_becomes_branches(tmp_path, as_zip):
    path = tmp_path / ("export.zip" if as_zip else "conversations.json")
    if as_zip:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("user.json", "{}")
            archive.writestr("conversations.json", json.dumps(chatgpt()))
    else:
        path.write_text(json.dumps(chatgpt()))
    (found,) = read(path)
    talk = found.conversation
    assert (found.title, found.created, found.changed) == ("A bridge", 1.0, 2.0)
    question, answer, thanks = talk.turns
    assert question.text == "[image]\n\nspoken words\n\nWhat is it?"
    assert answer.text == "```python\nprint(1)\n```\n\n```\n1\n```\n\nIt is a bridge."
    assert answer.reasoning.startswith("Look\nat the picture")
    assert answer.origin == Origin("ChatGPT", "gpt-x")
    assert thanks.text == "Thanks"
    assert [turn.text for turn in talk.others] == ["Another answer."]
    assert talk.siblings(answer) == [answer, talk.others[0]]
    assert [message.role for message in talk.messages()] == ["user", "assistant", "user"]


BAD = {
    "no json": ("{", "no JSON"),
    "deep": ("[" * 100_000, "no JSON"),
    "something else": ('{"a": 1}', "no sessions"),
    "a number": ("7", "no sessions"),
    "newer": ('{"format": "ling-chat-sessions", "version": 9}', "newer"),
    "no turns": ('{"format": "ling-chat-sessions", "version": 1, "sessions": [{}]}', "damaged"),
    "a bad role": (
        '{"format": "ling-chat-sessions", "version": 1,'
        ' "sessions": [{"turns": [{"id": "1", "role": "root"}]}]}',
        "damaged",
    ),
    "a role of a page": (
        '{"format": "ling-chat-sessions", "version": 1,'
        f' "sessions": [{{"turns": [{{"id": "1", "role": "{"word " * 2_000}"}}]}}]}}',
        "damaged",
    ),
    "a bad node": (
        '[{"mapping": {"a": {"message": {"author": 7, "content": {"parts": ["x"]}}}}}]',
        "damaged",
    ),
    "a bad child": ('[{"mapping": {"a": {"parent": null, "children": 7}}}]', "damaged"),
    "not a zip": ("PK\x03\x04", "no JSON"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_one_sentence(tmp_path: Path, name: str) -> None:
    text, why = BAD[name]
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=why) as told:
        read(path)
    assert len(str(told.value)) < 2 * SHOWN


def test_other_zips_and_missing_files_are_one_sentence(tmp_path):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(UsageError, match=r"no conversations\.json"):
        read(path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(UsageError):
        read(path)
    with pytest.raises(UsageError, match="no file"):
        read(tmp_path / "gone.json")
    with pytest.raises(BridgeError, match="cannot be read"):
        read(tmp_path)
