"""`ling-chat ask`: one answer on standard output."""

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from app.cli.options import engine_options, spec_of
from app.core.i18n import _

if TYPE_CHECKING:
    from app.cli.documents import Attaching
    from app.core.chat.conversation import Conversation, Turn
    from app.core.citations import Sources
    from engine_bridge.contract import EngineSpec

PATIENT_STDIN_S = 2.0


@click.command()
@click.argument("prompt", required=False)
@click.option(
    "-f",
    "--file",
    "files",
    multiple=True,
    metavar="FILE",
    help="A document: a file, a folder, or the address of a page.",
)
@click.option(
    "--pages",
    "ranges",
    multiple=True,
    metavar="RANGE",
    help="Only these pages of the document, such as 12-40, or lines where it has no pages. With"
    " several documents, once for each in their order; `all` takes everything.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object with text and figures.")
@engine_options
@click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="Longest answer.")
@click.option(
    "--temperature", type=click.FloatRange(0), metavar="X", help="0 always picks the likeliest."
)
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Makes sampling repeatable.")
@click.option(
    "--stop", multiple=True, metavar="TEXT", help="The answer ends before this; may be repeated."
)
@click.option("--preset", metavar="NAME", help="System prompt and settings kept under this name.")
@click.option("--system", default="", metavar="TEXT", help="The system prompt.")
@click.option("--no-thinking", is_flag=True, help="Ask the model to answer without thinking.")
@click.option(
    "--continue",
    "continued",
    is_flag=False,
    flag_value="last",
    metavar="[ID]",
    help="Go on with the session changed last, or with the one whose id begins so; what is said"
    " is stored in it.",
)
@click.option("--save", is_flag=True, help="Store this as a new session. Else nothing is stored.")
@click.option("-v", "--verbose", is_flag=True, help="Progress on stderr even if it is no terminal.")
def ask(
    prompt: str | None,
    files: tuple[str, ...],
    ranges: tuple[str, ...],
    as_json: bool,
    engine: str | None,
    model: str | None,
    url: str | None,
    context: int | None,
    max_tokens: int | None,
    temperature: float | None,
    seed: int | None,
    stop: tuple[str, ...],
    preset: str | None,
    system: str,
    no_thinking: bool,
    continued: str | None,
    save: bool,
    verbose: bool,
) -> None:
    """Answer PROMPT on standard output.

    What is piped in is a document, or the prompt itself where none is given.
    """
    import asyncio
    from contextlib import ExitStack, closing
    from dataclasses import replace
    from itertools import zip_longest

    from app.cli.documents import ALL, Attaching
    from app.core.chat.conversation import Conversation
    from app.core.chat.sampling import of_settings
    from app.core.settings import file as settings

    _refuse_nonsense(temperature, stop, files, ranges)
    spec = spec_of(engine, model, url, context)
    conversation = Conversation(parameters=of_settings(settings.load().chat))
    with ExitStack() as stack:
        keeping = None
        if continued or save:
            from app.cli.keeping import Keeping

            keeping = stack.enter_context(closing(Keeping()))
            if continued:
                conversation, prompt = keeping.resume(continued, prompt, _is_piped())
            else:
                keeping.begin(conversation)
        if preset is not None:
            from app.core.chat import presets

            presets.find(preset).apply(conversation)
        conversation.system = system or conversation.system
        given: dict[str, Any] = {"max_tokens": max_tokens, "temperature": temperature, "seed": seed}
        given |= {"stop": stop or None, "thinking": False if no_thinking else None}
        conversation.parameters = replace(
            conversation.parameters, **{k: v for k, v in given.items() if v is not None}
        )
        with Attaching(conversation, show=verbose or sys.stderr.isatty()) as attaching:
            for file, pages in zip_longest(files, ranges, fillvalue=ALL):
                attaching.source(file, pages)
            question = _question(prompt, attaching)
        if keeping is not None:
            keeping.shelve()
        try:
            asyncio.run(
                _answer(question, conversation, spec, as_json, verbose, told=bool(continued))
            )
        except BrokenPipeError:
            # The reader had enough, as in `ask … | head -1`: no failure, but click takes it for
            # one.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _refuse_nonsense(
    temperature: float | None,
    stop: tuple[str, ...],
    files: tuple[str, ...],
    ranges: tuple[str, ...],
) -> None:
    """Raise UsageError for what click lets pass: NaN is in no range, and in every one."""
    from math import isfinite

    from engine_bridge.errors import UsageError

    if temperature is not None and not isfinite(temperature):
        raise UsageError(_("The temperature is no number."), _("Give one from 0 to 2."))
    if not all(stop):
        raise UsageError(_("The text given to --stop is empty."), _("Write what ends the answer."))
    if not all(files):
        raise UsageError(_("The name of a document is empty."), _("Give the path of a file."))
    if len(ranges) > len(files):
        raise UsageError(
            _("There are more ranges of pages than documents."),
            _("Give --pages once for each -f, in their order."),
        )


def _question(prompt: str | None, attaching: "Attaching") -> str:
    """The prompt, with standard input as one more document or in the prompt's place."""
    from engine_bridge.errors import UsageError

    if prompt is not None and not prompt.strip():
        raise UsageError(_("The prompt is empty."), _("Write the question in it."))
    piped = _piped(note=prompt is not None)
    if prompt is None and not piped.strip():
        raise UsageError(
            _("There is no prompt."), _('Give one, as in: ling-chat ask "What is a prefix cache?"')
        )
    if not piped.strip():
        return prompt or ""
    document = attaching.piped(piped, _("standard input"))
    if prompt is None:
        return document.text
    attaching.add(document)
    return prompt


def _is_piped() -> bool:
    import stat

    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return False
    try:
        return not stat.S_ISCHR(os.fstat(sys.stdin.fileno()).st_mode)  # /dev/null and the like
    except (OSError, ValueError):
        return True  # no file at all: a test's own stream


def _piped(note: bool) -> bytes:
    """All of standard input where it is a pipe or a file, else nothing.

    `note` says on stderr after a while what is being waited for: a pipe that nobody writes to
    or closes would look like a hang.
    """
    import threading

    from app.core.documents import MAX_BYTES

    if not _is_piped():
        return b""
    hint = _("ling-chat: reading the document from standard input (</dev/null to do without)")
    timer = threading.Timer(PATIENT_STDIN_S, click.echo, (hint,), {"err": True})
    timer.daemon = True
    if note:
        timer.start()
    try:
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    except OSError:
        return b""
    finally:
        timer.cancel()


async def _answer(
    question: str,
    conversation: "Conversation",
    spec: "EngineSpec",
    as_json: bool,
    verbose: bool,
    told: bool,
) -> None:
    from contextlib import aclosing

    from app.cli.documents import doubts
    from app.cli.notes import Notes
    from app.cli.progress import StartProgress
    from engine_bridge.chat.failures import StreamBroken
    from engine_bridge.engine import open_engine, wait_until_ready

    show = verbose or sys.stderr.isatty()
    engine = await open_engine(spec)
    try:
        with StartProgress(quiet=not show) as progress:
            await engine.start(spec)
            progress.follow(engine)
            status = await wait_until_ready(engine)
        if told:
            from app.cli.keeping import say_other_engine

            say_other_engine(conversation, status, spec)
        printer = Printer(quiet=as_json)
        with Notes(quiet=not show, aside=as_json or not sys.stdout.isatty()) as notes:
            try:
                async with aclosing(conversation.ask(question, engine)) as events:
                    async for event in events:
                        notes.take(event)
                        printer.take(event)
            except StreamBroken:
                printer.end(conversation, as_json)
                raise
            sources = printer.end(conversation, as_json)
        if show:
            for doubt in doubts(sources):
                click.echo(doubt, err=True)
    finally:
        await engine.close()


class Printer:
    """The answer on standard output, as it comes; nothing in it can command the terminal."""

    def __init__(self, quiet: bool) -> None:
        from app.core.plain import Plain

        self._quiet = quiet
        self._plain = Plain()
        self._last = "\n"
        if reconfigure := getattr(sys.stdout, "reconfigure", None):
            reconfigure(errors="replace")  # a locale that cannot write what the model says

    def take(self, event: object) -> None:
        from engine_bridge.chat.events import Text

        if isinstance(event, Text) and not self._quiet:
            self._write(self._plain.feed(event.text))

    def end(self, conversation: "Conversation", as_json: bool) -> "Sources":
        """Finish the last answer's output; what it cites and quotes has been looked up."""
        from app.cli import documents

        sources = documents.check(conversation)
        if as_json:
            import json

            known = documents.as_object(sources) if conversation.documents else {}
            self._write(json.dumps(as_object(conversation.turns[-1]) | known))
        else:
            self._write(self._plain.end())
        if self._last != "\n":
            self._write("\n")
        return sources

    def _write(self, text: str) -> None:
        if text:
            self._last = text[-1]
            sys.stdout.write(text)
            sys.stdout.flush()


TIMINGS = (
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
    "ttft_s",
    "queue_s",
    "prefill_s",
    "first_token_s",
    "prefill_tokens_per_s",
    "decode_tokens_per_s",
    "thought_s",
    "thought_tokens",
    "accept_length",
)


def as_object(answer: "Turn") -> dict[str, object]:
    """What --json prints: text and figures; `error` only where the answer broke off."""
    found: dict[str, object] = {
        "text": answer.text,
        "reasoning": answer.reasoning,
        "finish_reason": answer.finish_reason or None,
        "timings": {name: getattr(answer.timings, name, None) for name in TIMINGS},
    }
    return found | ({"error": answer.broken} if answer.broken else {})
