"""A session as Markdown or as one HTML page, to read elsewhere."""

import time
from collections.abc import Iterator, Sequence
from html import escape

from app.core import figures
from app.core.chat.conversation import Conversation
from app.core.chat.tree import Turn
from app.core.i18n import _
from app.core.plain import plain
from app.core.sessions.records import SessionInfo

Documents = Sequence[tuple[str, str]]

STYLE = """
body { max-width: 46rem; margin: 2rem auto; padding: 0 1rem; line-height: 1.5;
  font-family: system-ui, sans-serif; color: #1c1c1c; background: #fff; }
header, .about { color: #666; font-size: 0.9rem; }
.user { background: #eef3fb; border-radius: 0.5rem; padding: 0.2rem 1rem; white-space: pre-wrap; }
pre { background: #f5f5f5; padding: 0.8rem; overflow-x: auto; border-radius: 0.4rem; }
table { border-collapse: collapse; } td, th { border: 1px solid #ccc; padding: 0.2rem 0.6rem; }
blockquote { border-left: 3px solid #ccc; margin-left: 0; padding-left: 1rem; color: #555; }
@media (prefers-color-scheme: dark) {
  body { color: #e6e6e6; background: #16181c; } .user { background: #22304a; }
  pre { background: #23262b; } header, .about { color: #9a9a9a; } a { color: #7ab0ff; }
}
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def to_markdown(info: SessionInfo, talk: Conversation, documents: Documents) -> str:
    """The active branch. What the model wrote stands as it wrote it."""
    lines = [f"# {_title(info)}", "", f"*{_about(info, talk)}*", ""]
    if documents:
        lines += [*(f"- {plain(title)}" for _sha256, title in documents), ""]
    if talk.system.strip():
        lines += [f"## {_('Instructions')}", "", talk.system.strip(), ""]
    for turn in talk.turns:
        lines += [f"## {_speaker(turn)}", ""]
        if turn.reasoning.strip():
            lines += [f"> *{figures.thought_line(turn.timings)}*", ">"]
            lines += [f"> {line}".rstrip() for line in turn.reasoning.strip().splitlines()]
            lines.append("")
        lines += [turn.text.strip(), ""]
        lines += [line for remark in _remarks(turn) for line in (f"*{remark}*", "")]
    return "\n".join(plain(line) for line in lines)


def to_html(info: SessionInfo, talk: Conversation, documents: Documents) -> str:
    """One page that needs nothing else: no script, nothing fetched, all text escaped."""
    body = [
        f"<h1>{_e(_title(info))}</h1>",
        f"<header><p>{_e(_about(info, talk))}</p>",
        *(f"<p>{_e(title)}</p>" for _sha256, title in documents),
        "</header>",
    ]
    if talk.system.strip():
        body.append(f"<h2>{_e(_('Instructions'))}</h2><div class=user>{_e(talk.system)}</div>")
    for turn in talk.turns:
        body += _html_of(turn)
    return (
        "<!doctype html>\n"
        '<html><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_e(_title(info))}</title>\n<style>{STYLE}</style></head>\n<body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _html_of(turn: Turn) -> Iterator[str]:
    yield f"<h2>{_e(_speaker(turn))}</h2>"
    if turn.role == "user":
        yield f"<div class=user>{_e(turn.text)}</div>"
        return
    if turn.reasoning.strip():
        summary = _e(figures.thought_line(turn.timings))
        yield (
            f"<details><summary>{summary}</summary>"
            f"<blockquote>{_rendered(turn.reasoning)}</blockquote></details>"
        )
    yield _rendered(turn.text)
    for remark in _remarks(turn):
        yield f"<p class=about>{_e(remark)}</p>"


def _rendered(text: str) -> str:
    """Markdown as HTML; HTML in it is text, and pictures, which would be fetched, are links."""
    from markdown_it import MarkdownIt

    grammar = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    return str(grammar.render(plain(text)))


def _e(text: str) -> str:
    return escape(plain(text))


def _title(info: SessionInfo) -> str:
    return " ".join(info.title.split()) or info.key


def _speaker(turn: Turn) -> str:
    if turn.role == "user":
        return _("You")
    return (turn.origin.model if turn.origin else "") or _("Model")


def _about(info: SessionInfo, talk: Conversation) -> str:
    parts = [time.strftime("%Y-%m-%d %H:%M", time.localtime(info.created))]
    if talk.others:
        parts.append(_("{n} messages of other branches are not here").format(n=len(talk.others)))
    return " · ".join(parts)


def _remarks(turn: Turn) -> Iterator[str]:
    """What stands under an answer."""
    if turn.timings and (line := figures.reply_line(turn.timings)):
        yield line
    for sentence in (turn.broken, turn.note):
        if sentence:
            yield sentence
