"""The catalogue of assets/locale: what must be in it, and how it is brought up to date.

    python tests/i18n/catalogue.py       # adds new strings, drops old ones, compiles

`_("…")` and `ngettext` calls of app/ are found as they are. The sentences of engine_bridge are
found by their shape: texts of more than one word that are no docstring, and f-strings as templates
with a name for each gap; so are the words of its enumerations that are shown.
"""

import ast
import io
import re
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).parents[2]
PO = ROOT / "assets/locale/zh_CN/LC_MESSAGES/ling-chat.po"
MO = PO.with_suffix(".mo")
MADE = datetime(2026, 12, 1, tzinfo=UTC)
BRIDGE = "bridge"
NUMBERED = re.compile(r"\{\{(\d)\}\}")
FIELD = re.compile(r"(?<!\{)\{(\w+)[^{}]*\}(?!\})")

Message = tuple[str, str | tuple[str, str]]
"""Context ("" or BRIDGE) and text; of a plural, both forms."""


def ours() -> Iterator[tuple[Message, str]]:
    """What app/ wraps, each with where it stands."""
    for path in sorted((ROOT / "app").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id="_"), args=[ast.Constant(value=str(text))]) if text:
                    yield ("", text), _where(path, node)
                case ast.Call(
                    func=ast.Name(id="ngettext"),
                    args=[ast.Constant(value=str(one)), ast.Constant(value=str(many)), _],
                ):
                    yield ("", (one, many)), _where(path, node)
                case ast.Call(func=ast.Name(id="setting"), args=[_, *texts]):
                    for text in texts[:2]:
                        if isinstance(text, ast.Constant):
                            yield ("", str(text.value)), _where(path, node)
                case ast.keyword(arg="title", value=ast.Constant(value=str(text))):
                    if path.match("settings/schema.py"):
                        yield ("", text), _where(path, node.value)
                case ast.keyword(arg="help" | "epilog", value=ast.Constant(value=str(text))):
                    if "cli" in path.parts:
                        yield ("", text), _where(path, node.value)
                case ast.FunctionDef() if "cli" in path.parts and any(
                    "command(" in ast.unparse(each) or ".group(" in ast.unparse(each)
                    for each in node.decorator_list
                ):
                    yield ("", ast.get_docstring(node) or ""), _where(path, node)
                case ast.ClassDef(bases=[ast.Name(id="StrEnum")]):
                    if path.match("settings/schema.py"):
                        for text in _values(node):
                            yield ("", text), _where(path, node)


def unwrapped() -> Iterator[tuple[str, str]]:
    """Calls of `_` whose text is no literal: nobody could translate it, but what is listed."""
    for path in sorted((ROOT / "app").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id="_"), args=[ast.JoinedStr()]):
                    yield ast.unparse(node), _where(path, node)


CLICKS = (
    "Usage:",
    "Options",
    "Commands",
    "Show this message and exit.",
    "Show the version and exit.",
    "Try '{command} {option}' for help.",
    "Error: {message}",
    "No such option: {name}",
    "No such option {name!r}.",
    "No such command {name!r}.",
    "Missing argument",
    "Missing option",
    "Invalid value for {param_hint}: {message}",
    "Invalid value: {message}",
    "default: {default}",
    "required",
    ("Got unexpected extra argument ({args})", "Got unexpected extra arguments ({args})"),
    "Option {name!r} requires an argument.",
)
"""What click says itself, by gettext too."""
FINISHED = (
    "app/bench",
    "app/core/documents",
    "app/core/database.py",
    "app/core/salvage.py",
    "app/core/chat/presets.py",
    "app/tui/themes.py",
)
"""What of the app says finished sentences, as engine_bridge does: some of it in other processes."""
SHOWN_ENUMS = ("EngineState", "Verdict")
HEADLESS = ("sglang_plugin", "serve.py", "tasks.py")
"""What says nothing to a user: what runs inside an engine, and what an engine is asked."""
REGISTRY = "assets/models.toml"
NOT_SHOWN = re.compile(
    r"\\[wds(\[]|\.\*|SELECT|https?://|^--|^Bearer|^[\w/+-]+/[\w.+-]+(, |$)|[|]|<|^\{[^}]*\}$"
    r"|^(\(|No space left|Ignore import|Could not load any|KV cache pool|Not enough memory)"
    r"|^(Capture cuda|error: |context_length|river stone| one two|unknown model arch|OutOf)"
    r"|^(draft.lm_head|database disk|descendant|next message|engine restart|speculative slots)"
    r"|^\W*$|WHERE |addmm_cuda|The part of ling-chat|^\{SPECULATION|^open, |^mapped, "
    r"|^no (form|status|head|draft)$|ORDER BY |^id, kind, |^Tell a long story|^Count to ten"
    r"|^Question: |^Repeat these |INSERT |^xllamacpp \{|^strict: the number"
)


def bridges() -> Iterator[tuple[Message, str]]:
    """What engine_bridge says, as templates."""
    paths = [*(ROOT / "engine_bridge").rglob("*.py")]
    for each in FINISHED:
        paths += [ROOT / each] if each.endswith(".py") else (ROOT / each).rglob("*.py")
    for model in tomllib.loads((ROOT / REGISTRY).read_text("utf-8"))["models"]:
        yield (BRIDGE, model["description"]), REGISTRY
    for path in sorted(paths):
        if any(each in path.parts for each in HEADLESS):
            continue
        tree = ast.parse(path.read_text("utf-8"))
        skipped = {id(each) for node in ast.walk(tree) for each in _skipped(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name in SHOWN_ENUMS:
                for text in _values(node):
                    yield (BRIDGE, text), _where(path, node)
            if id(node) in skipped:
                continue
            if (text := _template(node)) is not None and _is_said(text):
                yield (BRIDGE, text), _where(path, node)


def _skipped(node: ast.AST) -> Iterator[ast.AST]:
    """Docstrings, parts of f-strings and of patterns, what goes to a log or a child's code."""
    match node:
        case ast.JoinedStr():
            yield from (each for each in node.values if isinstance(each, ast.Constant))
            for value in node.values:
                if isinstance(value, ast.FormattedValue) and value.format_spec is not None:
                    yield from ast.walk(value.format_spec)
        case ast.Expr(value=ast.Constant()):
            yield node.value
        case ast.Call(func=ast.Name(id="_" | "ngettext")):
            yield from ast.walk(node)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re" | "_log" | "log" | "logger"))):
            yield from ast.walk(node)
        case ast.Call(func=ast.Name(id="AssertionError" | "RuntimeError" | "ValueError")):
            yield from ast.walk(node)


def _template(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        # "{0}" is filled in later; other braces are braces.
        return NUMBERED.sub(r"{x\1}", node.value.replace("{", "{{").replace("}", "}}"))
    if not isinstance(node, ast.JoinedStr):
        return None
    parts, names = [], []
    for value in node.values:
        if isinstance(value, ast.Constant):
            parts.append(str(value.value).replace("{", "{{").replace("}", "}}"))
        elif isinstance(value, ast.FormattedValue):
            name = _name(value.value)
            while name in names:
                name += "_"
            names.append(name)
            parts.append(f"{{{name}}}")
    return "".join(parts)


def _name(node: ast.expr) -> str:
    """A word for what fills the gap."""
    words = re.findall(r"[A-Za-z_]{2,}", ast.unparse(node))
    plain = [
        each for each in words if each not in ("self", "str", "int", "len", "or", "if", "else")
    ]
    return (plain or ["x"])[-1].strip("_") or "x"


def _is_said(text: str) -> bool:
    bare = FIELD.sub("", text)
    return bool(
        re.search(r"[a-z]{2,},? \(?[a-zA-Z]|[a-z]{2}[.:;]? $|^[a-z]+ [a-z]+$", bare)
    ) and not (NOT_SHOWN.search(text) or text.count("\n") > 1)


def _values(node: ast.ClassDef) -> Iterator[str]:
    for each in node.body:
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant):
            yield str(each.value.value)


def _where(path: Path, node: ast.AST) -> str:
    return path.relative_to(ROOT).as_posix()


def wanted() -> dict[Message, list[str]]:
    """Every message with the files in which it stands."""
    found: dict[Message, list[str]] = {}
    clicks = [(("", text), "click") for text in CLICKS]
    for message, where in [*ours(), *bridges(), *clicks]:
        if where not in found.setdefault(message, []):
            found[message].append(where)
    return found


def read() -> Catalog:
    """The catalogue as it is."""
    with PO.open("rb") as file:
        return read_po(file, locale="zh_CN")


def by_message(catalogue: Catalog) -> dict[Message, str]:
    """The translation of each message."""
    found: dict[Message, str] = {}
    for each in catalogue:
        if each.id:
            text = each.string if isinstance(each.string, str) else (each.string or ("",))[0]
            key = tuple(each.id) if isinstance(each.id, (tuple, list)) else each.id
            found[(each.context or "", key)] = text
    return found


def compiled(catalogue: Catalog) -> bytes:
    """The .mo of a catalogue; untranslated messages are not in it."""
    out = io.BytesIO()
    write_mo(out, catalogue)
    return out.getvalue()


def update(more: dict[Message, str] | None = None) -> list[Message]:
    """Bring .po and .mo up to date; returns what has no translation yet."""
    known = (by_message(read()) if PO.exists() else {}) | (more or {})
    catalogue = Catalog(
        locale="zh_CN",
        project="ling-chat",
        header_comment="# ling-chat in Simplified Chinese. tests/i18n/catalogue.py compiles it.",
        creation_date=MADE,  # the same input, the same file
        revision_date=MADE,
        last_translator="ling-chat",
        language_team="zh_CN",
        fuzzy=False,
    )
    missing = []
    for (context, text), where in sorted(wanted().items(), key=lambda item: repr(item[0])):
        string = known.get((context, text), "")
        if not string:
            missing.append((context, text))
        plural = (string,) if isinstance(text, tuple) else string
        catalogue.add(
            text, plural, locations=[(each, 0) for each in where], context=context or None
        )
    PO.parent.mkdir(parents=True, exist_ok=True)
    with PO.open("wb") as file:
        write_po(file, catalogue, width=100, include_lineno=False, sort_output=False)
    MO.write_bytes(compiled(read()))
    return missing


if __name__ == "__main__":
    left = update()
    for context, text in left:
        print(f"{context or 'app'}: {text!r}")
    print(f"{len(left)} of {len(wanted())} messages have no translation.")
    sys.exit(bool(left))
