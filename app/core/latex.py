"""LaTeX mathematics as text that can be read in a terminal: `\\frac{a+b}{2}` becomes `(a+b)/2`.

Reading the LaTeX is pylatexenc's; what is here is how fractions, indices and roots are written on
one line so that they keep their meaning.
"""

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pylatexenc.latex2text import LatexNodes2Text
    from pylatexenc.latexwalker import LatexWalker

LONGEST = 4_000
"""Characters of a formula that are read; a longer one stays as it is."""
_SUPERSCRIPT = dict(
    zip(
        "0123456789+-=()niTabcdefghjklmoprstuvwxyz",
        "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱᵀᵃᵇᶜᵈᵉᶠᵍʰʲᵏˡᵐᵒᵖʳˢᵗᵘᵛʷˣʸᶻ",
        strict=True,
    )
) | {"'": "′", "∗": "*", "*": "*", "′": "′", "†": "†", "°": "°", "∘": "°"}
_SUBSCRIPT = dict(
    zip("0123456789+-=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ", strict=True)
)
_INDEX = re.compile(r"(?<!\\)(\^|_)")
_SPACED = "=<>≤≥≈≠≡∼≅≃∝∈∉⊂⊆⊃⊇∪∩→←↔⇒⇐⇔⟶⟹⟺↦×·±∓∧∨≪≫≔∣"
_RELATION = re.compile(rf" *([{_SPACED}]) *")
_FUNCTION = re.compile(
    r"\b(sin|cos|tan|cot|sec|csc|arcsin|arccos|arctan|sinh|cosh|tanh|log|ln|lg|exp|lim|max|min|sup"
    r"|inf|det|dim|ker|gcd|arg|deg|hom|Pr)(?=[A-Za-zα-ωΑ-Ω])"
)
_SIGNS = "′'°!∞ₐ-ₜ₀-₎⁰-⁾ⁿⁱᵀ"
_FACTOR = rf"[√∂∛]*(?:[\d.]+|[^\W\d_]|∞)[{_SIGNS}]*|\([^()]*\)"
_ONE = re.compile(_FACTOR)
"""Text that needs no brackets to be divided by or raised to as a whole."""
_PRODUCT = re.compile(rf"(?:{_FACTOR}|\w)+")
"""Text that needs no brackets to be divided as a whole."""
_BRACKETS = re.compile(r"(?<=[(\[⟨]) +| +(?=[)\]⟩])")


def readable(source: str) -> str:
    """The formula without its delimiters, as Unicode text; several lines where it has them.

    What cannot be read as LaTeX comes back as it is.
    """
    source = source.strip()
    if len(source) > LONGEST or not _is_whole(source):
        return source
    # Its own line breaks mean nothing, and models mean no comment by a percent sign.
    marked = re.sub(r"(?<!\\)%", r"\\%", source.replace("\n", " "))
    marked = _INDEX.sub(lambda found: _MACROS[found[1]], marked)
    reader, writer = _tools()
    try:
        nodes, _, _ = _walker(reader, marked).get_latex_nodes()
        text = writer.nodelist_to_text(nodes)
    except (
        Exception
    ):  # any text may come, and the library names no single error for what it refuses
        return source
    lines = (_tidy(line) for line in text.split("\n"))
    return "\n".join(line for line in lines if line) or source


def _is_whole(source: str) -> bool:
    """Whether every brace is closed."""
    bare = re.sub(r"\\.", "", source, flags=re.DOTALL)
    return bare.count("{") == bare.count("}")


def _tidy(line: str) -> str:
    line = _RELATION.sub(r" \1 ", line.replace("\t", " "))
    line = _BRACKETS.sub("", _FUNCTION.sub(r"\1 ", line))
    # Columns are set apart by three spaces or more: of those, two stay.
    return re.sub(r" {2,}", lambda gap: "  " if len(gap[0]) > 2 else " ", line).strip()


_LAYOUT = ("!", "limits", "nolimits", "left", "right", "big", "Big", "bigl", "bigr", "displaystyle")
_MACROS = {"^": r"\lingraised ", "_": r"\linglowered "}


def _grouped(text: str, whole: re.Pattern[str] = _ONE) -> str:
    """In brackets, where it would else fall apart beside an operator."""
    text = text.strip()
    return text if not text or whole.fullmatch(text) else f"({text})"


def _index(text: str, signs: dict[str, str], mark: str) -> str:
    text = text.strip()
    packed = text.replace(" ", "")
    if packed and all(letter in signs for letter in packed):
        return "".join(signs[letter] for letter in packed)
    return mark + _grouped(text)


def _argument(node: Any, number: int, writer: Any) -> str:
    arguments = node.nodeargd.argnlist if node.nodeargd is not None else []
    if number >= len(arguments) or arguments[number] is None:
        return ""
    return str(writer.nodelist_to_text([arguments[number]])).strip()


def _fraction(node: Any, l2tobj: Any) -> str:
    above, below = _argument(node, 0, l2tobj), _argument(node, 1, l2tobj)
    return f"{_grouped(above, _PRODUCT)}/{_grouped(below)}"


def _binomial(node: Any, l2tobj: Any) -> str:
    return f"C({_argument(node, 0, l2tobj)}, {_argument(node, 1, l2tobj)})"


def _root(node: Any, l2tobj: Any) -> str:
    degree, inner = _argument(node, 0, l2tobj), _argument(node, 1, l2tobj)
    sign = {"": "√", "2": "√", "3": "∛", "4": "∜"}.get(degree)
    if sign is None:
        sign = _index(degree, _SUPERSCRIPT, "") + "√"
    return sign + (inner if re.fullmatch(r"\w+", inner) else f"({inner})")


def _raised(node: Any, l2tobj: Any) -> str:
    return _index(_argument(node, 0, l2tobj), _SUPERSCRIPT, "^")


def _lowered(node: Any, l2tobj: Any) -> str:
    return _index(_argument(node, 0, l2tobj), _SUBSCRIPT, "_")


def _bare(node: Any, l2tobj: Any) -> str:
    return _argument(node, 0, l2tobj)


def _braced(node: Any, l2tobj: Any) -> str:
    return _grouped(_argument(node, 0, l2tobj))


def _overlined(node: Any, l2tobj: Any) -> str:
    return "".join(letter + "\u0305" for letter in _argument(node, 0, l2tobj))


def _unknown(node: Any) -> str:
    return f"\\{node.macroname} "


@lru_cache(maxsize=1)
def _tools() -> "tuple[Any, LatexNodes2Text]":
    """What reads LaTeX, and what writes its nodes as text."""
    from pylatexenc import latex2text, latexwalker
    from pylatexenc.macrospec import std_macro

    ours = {
        "frac": ("{{", _fraction),
        "dfrac": ("{{", _fraction),
        "tfrac": ("{{", _fraction),
        "cfrac": ("{{", _fraction),
        "binom": ("{{", _binomial),
        "dbinom": ("{{", _binomial),
        "tbinom": ("{{", _binomial),
        "sqrt": ("[{", _root),
        "boxed": ("{", _bare),
        "underbrace": ("{", _braced),
        "overbrace": ("{", _braced),
        "overline": ("{", _overlined),
        "operatorname": ("*{", lambda node, l2tobj: _argument(node, 1, l2tobj)),
        "lingraised": ("{", _raised),
        "linglowered": ("{", _lowered),
    }
    walker = latexwalker.get_default_latex_context_db()
    walker.add_context_category(
        "ling", macros=[std_macro(name, spec) for name, (spec, _) in ours.items()], prepend=True
    )
    writer = latex2text.get_default_latex_context_db()
    writer.add_context_category(
        "ling",
        macros=[
            *(latex2text.MacroTextSpec(name, repl) for name, (_, repl) in ours.items()),
            *(latex2text.MacroTextSpec(name, " ") for name in (",", ";", ":", " ")),
            *(latex2text.MacroTextSpec(name, "") for name in _LAYOUT),
            latex2text.MacroTextSpec("mid", " | "),
        ],
        prepend=True,
    )
    writer.set_unknown_macro_spec(latex2text.MacroTextSpec("", _unknown))
    return walker, latex2text.LatexNodes2Text(latex_context=writer, math_mode="text")


def _walker(context: Any, source: str) -> "LatexWalker":
    from pylatexenc.latexwalker import LatexWalker

    # In math mode from the start: the delimiters are off already.
    walker = LatexWalker(source, latex_context=context, tolerant_parsing=True)
    walker.default_parsing_state.in_math_mode = True
    return walker
