"""The rules of the house that a program can check."""

import ast
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [
    path
    for folder in ("app", "engine_bridge", "themes", "assets")
    for path in ROOT.glob(f"{folder}/**/*.py")
]
LONGEST_MODULE = 400
HEAVY = (
    "textual",
    "rich",
    "httpx",
    "pydantic",
    "gguf",
    "numpy",
    "huggingface_hub",
    "keyring",
    "xllamacpp",
)


def python(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd="/"
    ).stdout


@pytest.mark.parametrize("module", ["app", "app.cli.main"])
def test_importing_the_command_line_loads_nothing_heavy(module):
    loaded = json.loads(python(f"import {module}, sys, json; print(json.dumps(list(sys.modules)))"))
    assert not {each for each in HEAVY if each in loaded}


def test_the_engine_bridge_imports_without_the_spark_extra_or_a_screen():
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in SOURCES
        if path.parts[len(ROOT.parts)] == "engine_bridge" and path.name != "__main__.py"
    ]
    # What the plugin does runs in the engine's own environment; only its door must open here.
    names = [name for name in names if not name.startswith("engine_bridge.sglang_plugin.")]
    imports = "".join(f"import {name}\n" for name in names)
    code = imports + "import sys, json; print(json.dumps(list(sys.modules)))"
    loaded = json.loads(python(code))
    assert not {"torch", "sglang", "humming", "textual", "rich"} & set(loaded)


def test_modules_stay_short():
    lengths = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in SOURCES}
    assert {name: n for name, n in lengths.items() if n > LONGEST_MODULE} == {}


def test_every_module_says_what_it_is_for():
    silent = [
        str(p.relative_to(ROOT)) for p in SOURCES if not ast.get_docstring(ast.parse(p.read_text()))
    ]
    assert silent == []


def test_the_spark_extra_is_pinned_as_the_engine_needs_it():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert extras["spark"] == ["torch", "sglang==0.5.23", "humming-kernels==0.1.12"]
