"""What is shown of a document: its state in the engine's cache, pages, tokens, share."""

from dataclasses import dataclass

from textual.content import Content

from app.core.documents import Document, Progress
from app.core.figures import clock, short_count
from app.core.i18n import _, ngettext
from app.tui.glyphs import Glyphs
from app.tui.plain import one_line
from engine_bridge.models.progress import size_text


def parts(kind: str, count: int, is_short: bool = False) -> str:
    """How many pages, or of a folder files, it has."""
    if kind == "folder":
        return ngettext("{n:,} file", "{n:,} files", count).format(n=count)
    if is_short:
        return _("{n:,}p").format(n=count)
    return ngettext("{n:,} page", "{n:,} pages", count).format(n=count)


@dataclass(frozen=True, slots=True)
class Row:
    """One document. `warm` is cold, warming or warm; `share` how much of it is read, 0 to 1."""

    document: Document
    tokens: int | None = None
    """Exact, by the engine's tokenizer; None until it was asked."""
    context_tokens: int | None = None
    warm: str = "cold"
    share: float = 0.0
    eta_s: float | None = None

    @property
    def title(self) -> str:
        return one_line(self.document.title)

    def sign(self, glyphs: Glyphs) -> Content:
        """Cold, warming or warm."""
        match self.warm:
            case "warm":
                return Content.assemble((glyphs.on, "$success"))
            case _ if self.share:
                return Content.assemble((glyphs.partly, "$accent"))
            case _:
                return Content.assemble((glyphs.off, "$muted"))

    def size(self) -> str:
        """Pages and tokens; characters while nobody counted."""
        pages = len(self.document.pages)
        found = [parts(self.document.kind, pages, is_short=True)] if pages else []
        if self.tokens is None:
            found.append(size_text(len(self.document.text)))
        else:
            found.append(_("{n:,} tok").format(n=self.tokens))
        return " ".join(found)

    def facts(self) -> tuple[str, ...]:
        """What there is to tell in a few words, the longest first: what it takes; while the engine
        reads it, how far that is."""
        if self.warm != "warming" or not self.share:
            return (self.size(),)
        return self.state(), f"{self.share:.0%}"

    def of_context(self) -> str:
        """How much of the context it takes."""
        if self.tokens is None or not self.context_tokens:
            return ""
        share = self.tokens / self.context_tokens
        percent = f"{share:.0%}" if share >= 0.01 else "<1%"
        return _("{share} of {n}").format(share=percent, n=short_count(self.context_tokens))

    def state(self) -> str:
        """The state in words, with how far a warm-up is."""
        if self.warm == "warming":
            text = _("warming {share:.0%}").format(share=self.share)
            if self.eta_s is None:
                return text
            return f"{text}, {_('{time} left').format(time=clock(self.eta_s))}"
        if self.warm == "warm":
            return _("warm")
        return _("{share:.0%} read").format(share=self.share) if self.share else _("cold")


def progress_text(progress: Progress | None) -> str:
    """How far the reading of a document is: reading 12 of 48 pages."""
    if progress is None:
        return _("reading")
    doing = {"fetching": _("fetching"), "recognising": _("recognising")}
    verb = doing.get(progress.doing, _("reading"))
    if progress.unit == "bytes":
        done = size_text(progress.done)
        of = _(" of {size}").format(size=size_text(progress.of)) if progress.of else ""
        return f"{verb} {done}{of}"
    if not progress.of:
        return verb
    unit = (
        ngettext("{done:,} of {of:,} file", "{done:,} of {of:,} files", progress.of)
        if progress.unit == "files"
        else ngettext("{done:,} of {of:,} page", "{done:,} of {of:,} pages", progress.of)
    )
    return f"{verb} {unit.format(done=progress.done, of=progress.of)}"
