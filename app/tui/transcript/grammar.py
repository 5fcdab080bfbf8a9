"""The Markdown that models write: CommonMark with tables, strikethrough, LaTeX mathematics, and
emphasis that works beside Chinese and Japanese text."""

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline

LONGEST_FORMULA = 1_000
"""Characters within which an inline formula must end."""
_CLOSERS = {"$$": "$$", "\\[": "\\]", "\\(": "\\)", "$": "$"}
_MONEY = re.compile(r"\d[\d.,]*[^\\^_=]*[^\W\d_]{2}[^\\^_=]*")
"""`$5 for the book, or 6$` is no formula: an amount, and words."""
_WIDE = re.compile(
    "[\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff“”‘’]"
)


@lru_cache(maxsize=1)
def parser() -> "MarkdownIt":
    """Parses blocks and what is in them."""
    return _grammar()


@lru_cache(maxsize=1)
def outline() -> "MarkdownIt":
    """The same grammar, blocks only."""
    return _grammar().disable(["inline"])


def _grammar() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # not needed for the first frame

    grammar = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    interrupts = ["paragraph", "reference", "blockquote", "list"]
    grammar.block.ruler.before("fence", "math_block", _block_formula, {"alt": interrupts})
    grammar.inline.ruler.before("escape", "math_inline", _inline_formula)
    grammar.inline.ruler.at("emphasis", _emphasis)
    return grammar


def _block_formula(state: "StateBlock", first: int, last: int, silent: bool) -> bool:
    """`$$ … $$` or `\\[ … \\]` that begins a line and ends one, without an empty line in it.

    One that is not closed yet is a formula too, so that a text is cut alike however it arrives.
    """
    start = state.bMarks[first] + state.tShift[first]
    opener = state.src[start : start + 2]
    if opener not in ("$$", "\\[") or state.is_code_block(first):
        return False
    closer = _CLOSERS[opener]
    text = state.src[start + 2 : state.eMarks[first]]
    if text.startswith("$"):
        return False
    line, inside = first, [text]
    while closer not in text:
        line += 1
        if line >= last or state.isEmpty(line) or state.sCount[line] < state.blkIndent:
            break
        text = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]
        inside.append(text)
    before, closed, after = text.partition(closer)
    is_sentence = bool(after.strip(" \t.,;:，。；："))
    if line == first and is_sentence:
        return False  # a formula within a paragraph
    if silent:
        return True
    token = state.push("math_block", "math", 0)
    is_whole = bool(closed) and not is_sentence
    token.block, token.markup, token.info = True, opener, "closed" if is_whole else "open"
    if is_whole:
        inside[-1] = before
    if closed:
        line += 1
    token.content = "\n".join(inside)
    token.map = [first, line]
    state.line = line
    return True


def _inline_formula(state: "StateInline", silent: bool) -> bool:
    source, start = state.src, state.pos
    if source[start] not in "$\\":
        return False
    opener = source[start : start + 2]
    if opener not in _CLOSERS:
        opener = source[start]
    if opener not in _CLOSERS:
        return False
    closer, begin = _CLOSERS[opener], start + len(opener)
    end = source.find(closer, begin, begin + LONGEST_FORMULA)
    while end > 0 and source[end - 1] == "\\" and opener in ("$", "$$"):
        end = source.find(closer, end + 1, begin + LONGEST_FORMULA)
    content = source[begin : max(begin, end)]
    after = end + len(closer)
    if not content.strip() or (opener == "$" and not _is_formula(source, start, content, after)):
        return False
    if not silent:
        token = state.push("math_inline", "math", 0)
        token.markup, token.content = opener, content
    state.pos = after
    return True


def _is_formula(source: str, start: int, content: str, after: int) -> bool:
    """Whether a text between two dollar signs is one, and not two prices or two variables."""
    glued = _is_word(source[start - 1 : start]) or _is_word(source[after : after + 1])
    spaced = content[0].isspace() or content[-1].isspace()
    return not (glued or spaced or "`" in content or "\n\n" in content or _MONEY.fullmatch(content))


def _is_word(letter: str) -> bool:
    return letter.isascii() and letter.isalnum()


def _emphasis(state: "StateInline", silent: bool) -> bool:
    """CommonMark's own rule, but a wide character beside the stars counts like a space: Chinese
    sets no spaces around `**bold，**`."""
    from markdown_it.rules_inline.state_inline import Delimiter

    marker = state.src[state.pos]
    if silent or marker not in "*_":
        return False
    found = state.scanDelims(state.pos, marker == "*")
    opens, closes = found.can_open, found.can_close
    if marker == "*":
        before = state.src[state.pos - 1 : state.pos] if state.pos else " "
        after = state.src[state.pos + found.length :][:1] or " "
        is_wide = bool(_WIDE.match(before) or _WIDE.match(after))
        opens = opens or (is_wide and not after.isspace())
        closes = closes or (is_wide and not before.isspace())
    for _ in range(found.length):
        token = state.push("text", "", 0)
        token.content = marker
        at = len(state.tokens) - 1
        state.delimiters.append(Delimiter(ord(marker), found.length, at, -1, opens, closes))
    state.pos += found.length
    return True
