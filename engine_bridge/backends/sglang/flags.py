"""Checks a launch against the installed SGLang's own argument parser, before anything starts.

A release that renames a flag is then one clear sentence, not a crash minutes later. The parser
is asked once per interpreter and version (20 s: SGLang imports torch); its answer is kept.
"""

import difflib
import hashlib
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine_bridge import files, paths
from engine_bridge.backends.base import Phase, Report
from engine_bridge.backends.sglang.interpreter import Interpreter
from engine_bridge.errors import BridgeError, UnavailableError

_MARK = "ling-chat-flags:"
_ASK = f"""
import argparse, json
from sglang.srt.server_args import ServerArgs
parser = argparse.ArgumentParser(allow_abbrev=False)
ServerArgs.add_cli_args(parser)
options = {{
    name: {{
        "bare": action.nargs == 0,
        "choices": None if action.choices is None else sorted(map(str, action.choices)),
    }}
    for name, action in parser._option_string_actions.items()
}}
print({_MARK!r} + json.dumps(options))
"""
LONGEST_S = 300.0

Options = dict[str, dict[str, Any]]
"""Flag → {"bare": takes no value, "choices": the values it knows, or None}."""


def check(argv: Sequence[str], engine: Interpreter, report: Report) -> None:
    """Raise BridgeError, naming the flag, unless this SGLang knows every flag of `argv`."""
    problem = first_problem(argv, options_of(engine, report))
    if problem:
        raise BridgeError(
            f"SGLang {engine.sglang} {problem}.",
            "Install the SGLang that ling-chat was made for: pip install 'ling-chat[spark]'.",
        )


def first_problem(argv: Sequence[str], options: Options) -> str:
    """What is wrong with the first flag that this parser would refuse, or nothing."""
    flag = ""
    for word in argv:
        if not word.startswith("--"):
            choices = options[flag]["choices"] if flag else None
            if choices is not None and word not in choices:
                return f"knows no {word!r} for {flag}, only {', '.join(choices)}"
            continue
        flag, _, value = word.partition("=")
        if flag not in options:
            near = difflib.get_close_matches(flag, options, n=1)
            return f"has no flag {flag}" + (f" (perhaps it is now {near[0]})" if near else "")
        if options[flag]["bare"] and value:
            return f"takes no value for {flag}"
    return ""


def options_of(engine: Interpreter, report: Report) -> Options:
    """All flags of this interpreter's SGLang. Raises UnavailableError if it cannot be imported."""
    book = _book(engine)
    if known := files.read_object(book):
        return known
    report(Phase("asking SGLang for its flags"))
    options = _ask(engine)
    new = book.with_suffix(".new")
    new.write_text(json.dumps(options), encoding="utf-8")
    new.replace(book)
    return options


def _ask(engine: Interpreter) -> Options:
    try:
        answer = subprocess.run(
            [engine.path, "-c", _ASK],
            check=False,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            cwd=Path.home(),
            env={**os.environ, "SGLANG_SKIP_SGL_KERNEL_VERSION_CHECK": "1"},
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise UnavailableError(
            f"SGLang cannot be asked for its flags: {type(error).__name__}.", "Try again."
        ) from error
    for line in answer.stdout.splitlines():
        if line.startswith(_MARK):
            options: Options = json.loads(line.removeprefix(_MARK))
            return options
    last = next((x for x in reversed(answer.stderr.splitlines()) if x.strip()), "it said nothing")
    raise UnavailableError(
        f"SGLang {engine.sglang} cannot be imported: {last.strip()[:200]}.",
        f"Try it yourself: {engine.path} -c 'import sglang.srt.server_args'",
    )


def _book(engine: Interpreter) -> Path:
    folder = paths.state_dir() / "sglang-flags"
    folder.mkdir(exist_ok=True)
    versions = json.dumps([engine.path, engine.versions], sort_keys=True)
    return folder / f"{hashlib.sha256(versions.encode()).hexdigest()[:16]}.json"
