"""The styles that text is painted with, derived from the theme's colours."""

from dataclasses import dataclass, field, fields, replace
from typing import Any

from rich.style import Style
from textual.color import Color
from textual.theme import Theme


@dataclass(frozen=True, slots=True)
class Palette:
    """Rich styles by role, each with its background, for the lines the app draws itself."""

    text: Style
    muted: Style
    strong: Style
    heading: Style
    accent: Style
    link: Style
    code: Style
    rule: Style
    user: Style
    user_bar: Style
    good: Style
    caution: Style
    bad: Style
    block: Style
    block_label: Style
    tokens: dict[str, Style] = field(default_factory=dict, hash=False)
    """Style of code by Pygments token name ("Keyword", "Literal.String"), most general first."""

    def quiet(self) -> "Palette":
        """The same with every text muted, for thinking."""
        muted = self.muted
        changed: dict[str, Any] = {
            name: muted + Style(bold=getattr(self, name).bold, italic=getattr(self, name).italic)
            for name in ("text", "strong", "heading", "accent", "link", "code")
        }
        return replace(self, **changed)


def _style(foreground: Color, background: Color, **attributes: Any) -> Style:
    return Style(
        color=(background + foreground).rich_color, bgcolor=background.rich_color, **attributes
    )


def derive(theme: Theme) -> Palette:
    """The palette of a theme. A theme may name the roles' colours itself as variables:
    `muted`, `transcript-user-background`, `transcript-code-background`,
    `code-keyword`, `code-string`, `code-number`, `code-comment`, `code-name`."""
    generated = theme.to_color_system().generate()

    def colour(name: str, otherwise: str = "foreground") -> Color:
        value = generated.get(name) or generated[otherwise]
        return Color.parse(generated["foreground"] if value.startswith("auto") else value)

    paper = colour("background")
    ink = colour("foreground")
    muted = colour("muted") if "transcript-muted" in generated else ink.with_alpha(0.6)
    raised = colour("transcript-user-background", "surface")
    block = colour("transcript-code-background", "surface")
    primary, secondary, accent = colour("primary"), colour("secondary"), colour("accent")
    keyword = colour("code-keyword", "primary")
    string = colour("code-string", "success")
    number = colour("code-number", "accent")
    comment = colour("code-comment") if "code-comment" in generated else muted
    name = colour("code-name", "secondary")
    tokens = {
        "Comment": _style(comment, block, italic=True),
        "Keyword": _style(keyword, block),
        "Operator.Word": _style(keyword, block),
        "Literal.String": _style(string, block),
        "Literal.Number": _style(number, block),
        "Name.Function": _style(name, block),
        "Name.Class": _style(name, block),
        "Name.Tag": _style(name, block),
        "Name.Attribute": _style(number, block),
        "Name.Builtin": _style(name, block),
        "Name.Decorator": _style(number, block),
        "Generic.Deleted": _style(colour("error"), block),
        "Generic.Inserted": _style(colour("success"), block),
        "Generic.Heading": _style(name, block, bold=True),
    }
    return Palette(
        text=_style(ink, paper),
        muted=_style(muted, paper),
        strong=_style(ink, paper, bold=True),
        heading=_style(primary, paper, bold=True),
        accent=_style(accent, paper),
        link=_style(secondary, paper, underline=True),
        code=_style(colour("code-inline", "accent"), block),
        rule=_style(ink.with_alpha(0.25), paper),
        user=_style(ink, raised),
        user_bar=_style(primary, raised),
        good=_style(colour("success"), paper),
        caution=_style(colour("warning"), paper),
        bad=_style(colour("error"), paper),
        block=_style(ink, block),
        block_label=_style(muted, block),
        tokens=tokens,
    )


def unstyled() -> Palette:
    """A palette without any colour, for measuring and for tests."""
    styles: dict[str, Any] = {f.name: Style() for f in fields(Palette) if f.name != "tokens"}
    return Palette(**styles)
