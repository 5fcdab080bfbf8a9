"""Markdown that is hard to stream: each text has a construct that a naive cut would get wrong."""

import random

CORPUS = {
    "heading then paragraph": "# Title\n\nSome **bold** and `code`.\nnext line\n#noheading\n",
    "setext heading": "Title\n=====\n\nSub\n---\ntext\n\n---\n",
    "tight and loose lists": "- a\n- b\n  - c\n\n    para\n- d\n\n1. e\n\n   more\n2. f\n\n\nend",
    "ordered list from seven, all ones after": "7. a\n1. b\n1. c\n\ntext\n\n3) x\n4) y",
    "list interrupted by a rule": "- a\n- b\n---\n- c\n* d\n+ e",
    "open fence": "text\n\n```python\ndef f():\n    return 1\n",
    "fence in a list": "1. first\n   ```sh\n   ls -l\n\n   cd\n   ```\n2. second",
    "long fence": "```python\n"
    + "".join(f"x{n} = {n}\n" + ("\n" if n % 7 == 0 else "") for n in range(200))
    + "```\nafter",
    "fence inside a longer fence": "````md\n```\ninner\n```\n````\nout",
    "table": "before\n| a | b |\n|--:|:-:|\n| 1 | two |\n| 中文 | `x|y` |\n\nafter",
    "long table": "| n | text |\n|---|---|\n"
    + "".join(f"| {n} | {'word ' * 20} |\n" for n in range(60)),
    "quote with list": "> a\n> - b\n> - c\nlazy\n\n> second",
    "link reference after its use": "See [it][ref].\n\nmore\n\n[ref]: https://example.org/x\n\nend",
    "long paragraph": "word " * 2_000,
    "long paragraph of Chinese": "中文没有空格。" * 900,
    "one endless word": "x" * 7_000,
    "html": "<div>\n<b>x</b>\n</div>\n\na<br>b <kbd>k</kbd>",
    "indented code": "text\n\n    code\n\n    more\n\ntext",
    "separators that are no line ends": "a\u2028b\x85c\x0bd\n\n- x\u2029y\n- z",
    "carriage returns": "a\r\n\r\nb\r\n- c\r\n",
    "emoji": "👩‍👩‍👧‍👦 family 👍🏽 ok 🇩🇪\n\n- ✔️ done\n- [x] task\n- [ ] open",
    "hostile": "a\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b2J \x1bPq\x1b\\ "
    "\u202eevil\u202c \x00\x08b\ud800",
    "nothing": "",
    "blank lines only": "\n\n\n",
}

_LINES = (
    "",
    "",
    "text one",
    "# head",
    "#",
    "-",
    "- item",
    "  - nested",
    "1. one",
    "2) two",
    "   continued",
    "    indented",
    "```",
    "```py",
    "~~~",
    "> quote",
    "---",
    "===",
    "| a | b |",
    "|---|---|",
    "| 1 | 2 |",
    "[r]: https://e.org",
    "[r] *em* `c`",
    "<div>",
    "</div>",
    "中文，标点。",
    "* star",
    "+ plus",
)


def random_text(seed: int, lines: int = 25) -> str:
    """Lines of Markdown in random order, which no author would write."""
    choose = random.Random(seed)
    return "\n".join(choose.choice(_LINES) for _ in range(lines))
