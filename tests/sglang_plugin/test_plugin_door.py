"""The plugin's door: what opens it, what it refuses, and what it needs to be imported."""

import ast
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

import engine_bridge.sglang_plugin as plugin
from engine_bridge.sglang_plugin import verify
from engine_bridge.sglang_plugin.evidence import Evidence
from engine_bridge.sglang_plugin.hooks import check_version
from engine_bridge.sglang_plugin.refusal import Refused
from engine_bridge.sglang_plugin.request import Request

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "engine_bridge" / "sglang_plugin").glob("*.py"))
ALLOWED = {"torch", "triton", "sglang", "humming", *sys.stdlib_module_names}
HUMMING = {"layers": 40, "humming": 40, "backends": {"humming": 40}}


def facts(**changes):
    """The evidence of an engine in which everything is on, with changes."""
    head = {"dtype": "float8_e4m3fn", "method": "Fp8HeadMethod", "shared_with_draft": True}
    return {
        "hooks": {"a.b": "applied"},
        "experts": {
            "target": HUMMING,
            "draft": {"layers": 1, "humming": 1, "backends": {"humming": 1}},
        },
        "head": head,
        "clamp": {"expected_layers": [35, 36], "applied_layers": [35, 36], "calls": 4},
        "speculation": {"algorithm": "EAGLE", "steps": 3, "topk": 1, "draft_tokens": 4},
        "split_verify": {"block": [16, 32, 8], "calls": {"target": 14, "draft": 2}},
        "cuda_graphs": {"batch_sizes": [1], "memory_gb": {}},
    } | changes


def refused(request, found):
    return [str(each) for each in Evidence(request).refusals(found, None)]


def test_sglang_finds_the_plugin_by_its_entry_point():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    entry = project["entry-points"]["sglang.srt.plugins"]
    assert entry == {"ling_chat": "engine_bridge.sglang_plugin:register"}
    assert project["version"] == plugin.__version__


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_the_plugin_imports_nothing_but_the_engines_own_libraries(path):
    for node in ast.walk(ast.parse(path.read_text())):
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names = [node.module]
        for name in names:
            inside = name.startswith("engine_bridge.sglang_plugin")
            assert inside or name.split(".")[0] in ALLOWED, name


def test_without_a_request_the_plugin_does_nothing(monkeypatch):
    monkeypatch.delenv(plugin.ENVIRONMENT, raising=False)
    code = (
        "import json, sys; import engine_bridge.sglang_plugin as plugin; plugin.register();"
        "print(json.dumps(list(sys.modules)))"
    )
    loaded = json.loads(subprocess.check_output([sys.executable, "-c", code], text=True))
    assert not {"torch", "triton", "sglang", "humming"} & set(loaded)
    assert "engine_bridge.sglang_plugin.hooks" not in loaded


@pytest.mark.parametrize(
    "request_text", ["{", "[]", "3", '{"warp_drive": true}', '{"fp8_head": "yes"}', '{"clamp": 1}']
)
def test_a_request_that_cannot_be_read_ends_the_start_with_a_sentence(monkeypatch, request_text):
    monkeypatch.setenv(plugin.ENVIRONMENT, request_text)
    with pytest.raises(SystemExit, match=r"^ling-chat: the plugin was requested and is not on: "):
        plugin.register()


def test_a_request_is_read():
    wanted = {"fp8_head": True, "nextn": False, "humming": True, "split_verify": True}
    read = Request.parse(json.dumps(wanted | {"evidence": "/e.json"}))
    assert read == Request(**wanted, evidence=Path("/e.json"))
    assert Request.parse("{}") == Request()


@pytest.mark.parametrize("version", ["0.5.19", "0.5.20", "0.5.23", "0.5.23+cu130", "0.5.22.post1"])
def test_known_releases_of_sglang_are_taken(version):
    check_version(version)


@pytest.mark.parametrize("version", ["0.5.18", "0.5.24", "0.6.0", "1.0", "0.5", "0.5.23rc1", "dev"])
def test_other_releases_are_refused(version):
    with pytest.raises(Refused, match=r"knows SGLang 0\.5\.19 to 0\.5\.23, this is"):
        check_version(version)


def test_an_engine_with_everything_on_is_not_refused():
    assert refused(Request(nextn=True, humming=True, clamp=True), facts()) == []


def test_a_hook_that_was_not_applied_is_refused_by_name():
    found = facts(hooks={"a.b": "applied", "c.d": "registered, but SGLang did not apply it"})
    assert refused(Request(), found) == [
        "ling-chat: c.d was requested and is not on: registered, but SGLang did not apply it"
    ]


def test_one_expert_layer_on_another_backend_is_refused():
    mixed = {"layers": 40, "humming": 39, "backends": {"humming": 39, "Fp8MoEMethod": 1}}
    [sentence] = refused(Request(humming=True), facts(experts={"target": mixed, "draft": None}))
    assert "Humming was requested and is not on" in sentence
    assert "39 on humming, 1 on Fp8MoEMethod" in sentence


def test_a_draft_that_fell_back_is_refused_too():
    draft = {"layers": 1, "humming": 0, "backends": {"Mxfp4MarlinMoEMethod": 1}}
    [sentence] = refused(Request(humming=True), facts(experts={"target": HUMMING, "draft": draft}))
    assert "1 on Mxfp4MarlinMoEMethod" in sentence


def test_a_model_without_experts_has_no_humming():
    none = {"layers": 0, "humming": 0, "backends": {}}
    [sentence] = refused(Request(humming=True), facts(experts={"target": none, "draft": None}))
    assert "none found" in sentence


def test_a_layer_that_was_captured_without_the_clamp_is_refused():
    clamp = {"expected_layers": [35, 36], "applied_layers": [35], "calls": 1}
    [sentence] = refused(Request(clamp=True), facts(clamp=clamp))
    assert "layers [36] ran without it" in sentence


def test_without_graphs_no_layer_has_run_yet_and_none_is_missed():
    clamp = {"expected_layers": [35, 36], "applied_layers": [], "calls": 0}
    assert refused(Request(clamp=True), facts(clamp=clamp, cuda_graphs=None)) == []


def test_drafts_that_another_kernel_checks_are_refused():
    other = {"block": [16, 32, 8], "calls": {"draft": 2, "target_declined": 14}}
    for seen in (None, other):
        [sentence] = refused(Request(split_verify=True), facts(split_verify=seen))
        assert sentence.startswith("ling-chat: split verification was requested and is not on")
    assert refused(Request(split_verify=True), facts()) == []
    assert refused(Request(split_verify=True), facts(split_verify=None, cuda_graphs=None)) == []


def test_a_triton_backend_without_the_split_kernel_is_refused_and_another_model_left_alone():
    def init(backend, use_mla):
        backend.use_mla, backend.topk = use_mla, 1

    verify.prepare(init, SimpleNamespace(), False)
    with pytest.raises(Refused, match="split verification was requested and is not on"):
        verify.prepare(init, SimpleNamespace(), True)


def test_a_model_without_limits_needs_no_clamp():
    clamp = {"expected_layers": [], "applied_layers": [], "calls": 0}
    assert refused(Request(clamp=True), facts(clamp=clamp)) == []


@pytest.mark.parametrize(
    "changes",
    [{"speculation": None}, {"head": {"shared_with_draft": False}}],
    ids=["no speculation", "a head of its own"],
)
def test_speculation_that_is_not_there_or_drafts_noise_is_refused(changes):
    [sentence] = refused(Request(nextn=True), facts(**changes))
    assert sentence.startswith("ling-chat: NEXTN was requested and is not on: ")
