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
    "long table whose last rows are the widest": "| n | text |\n|---|---|\n"
    + "".join(f"| {n} | {'w' * (n // 3)} |\n" for n in range(120)),
    "table with a row of 20,000 characters": "| a | b | c |\n|---|---|---|\n| 1 | "
    + "long " * 4_000
    + "| end |\n| 2 | x | y |\n",
    "table with a head of 20,000 characters": "| "
    + "a | " * 5_000
    + "\n|"
    + "---|" * 5_000
    + "\n| 1 | 2 |\n",
    "mathematics": "Let $x_i^2$ and \\(y\\) be:\n$$\n\\frac{a}{b}\n+ c\n- d\n=\n$$\nthen\n"
    "\\[ z \\]\n\nand $5 or $6.\n\n$$\nnever closed\n\nend $$x$$ of\n$$it$$",
    "code with a line of 20,000 characters": "```json\n"
    + '{"a": 1}, ' * 2_000
    + "\n{}\n```\nafter",
    "deep quotes": "> " * 300 + "bottom\n\n" + ">" * 3_000 + " x",
    "deep lists": "".join("  " * n + f"- level {n}\n" for n in range(60)) + "- " * 500 + "x",
    "backticks without end": "`" * 9_000 + " a\nb\n```\nc",
    "stars without end": "*a **b " * 1_500,
    "brackets without end": "[" * 4_000 + "](" * 2_000,
    "right to left": "שלום **עולם** 123\n\n| א | b |\n|---|---|\n| مرحبا | 1 |\n",
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
    "$$",
    "$$ x $$",
    "\\[ y",
    "z \\]",
    "$a_1$ and $2 or $3",
    "| a | " + "wide " * 60 + "|",
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
