"""Presets, and the sampling that a model's files or its family recommend."""

import dataclasses
import json

import pytest

from app.core.chat import presets, sampling
from app.core.chat.conversation import Conversation, Parameters
from engine_bridge.chat.events import ChatRequest, Message
from engine_bridge.errors import UsageError


def test_the_apps_own_presets_can_be_read(home):
    found, problems = presets.every()
    assert not problems
    assert {"reader", "translator"} <= {preset.name for preset in found}
    assert all(preset.title and preset.description for preset in found)


def test_a_preset_is_kept_found_and_applied(home):
    talk = Conversation(system="Sag es „kurz“.\nSo:", parameters=Parameters(top_k=20, stop=("a",)))
    saved = presets.save(talk, "  Kurz & gut ")
    assert (saved.name, talk.preset) == ("kurz-gut", "kurz-gut")
    assert saved.path.stat().st_mode & 0o077 == 0
    other = Conversation()
    presets.find("Kurz & gut").apply(other)
    for name in ("system", "parameters", "preset"):
        assert getattr(other, name) == getattr(talk, name)
    assert presets.every()[0][0].name == "kurz-gut"  # the user's own stand first
    with pytest.raises(UsageError, match="There are kurz-gut, brief"):
        presets.find("nothing")
    with pytest.raises(UsageError, match="at least one letter"):
        presets.save(talk, "  ")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("title = 7", "title is no text"),
        ("=", "Invalid"),
        ("[parameters]\ntemprature = 1", "no parameter temprature"),
        ("[parameters]\ntop_k = 1.5", "top_k cannot be 1.5"),
        ("[parameters]\ntop_k = true", "top_k cannot be True"),
        ("[parameters]\nstop = 'x'", "stop is no list"),
        ("parameters = 3", "parameters is no table"),
    ],
)
def test_a_broken_preset_is_told_and_costs_no_other(home, text, why):
    presets.folder().mkdir(parents=True)
    (presets.folder() / "mine.toml").write_text(text)
    found, (problem,) = presets.every()
    assert why in problem
    assert "reader" in {preset.name for preset in found}


def test_what_the_models_own_folder_says_is_recommended(tmp_path):
    said = {"temperature": 0.6, "top_p": 0.95, "top_k": 20.0, "eos_token_id": 7, "min_p": True}
    (tmp_path / "generation_config.json").write_text(json.dumps(said))
    found = sampling.recommended("whatever", str(tmp_path))
    assert found == Parameters(temperature=0.6, top_p=0.95, top_k=20)


def test_what_a_gguf_says_is_recommended(tmp_path):
    import gguf
    import numpy

    path = tmp_path / "m.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_float32("general.sampling.temp", 0.95)
    writer.add_int32("general.sampling.top_k", 29)
    writer.add_tensor("token_embd.weight", numpy.zeros((4, 4), dtype=numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert sampling.recommended("Ling-3.0", str(path)) == Parameters(temperature=0.95, top_k=29)


def test_families_are_known_by_name(smol):
    ling = Parameters(temperature=0.6, top_p=0.95, top_k=20)
    assert sampling.recommended("Ling-3.0-flash-fp4", "/srv/models/elsewhere") == ling
    assert sampling.recommended("a", str(smol)) == Parameters(temperature=0.2, top_p=0.9)
    assert sampling.recommended("unheard-of") == Parameters()


def test_only_what_is_left_open_is_filled():
    best = Parameters(temperature=0.6, top_p=0.95, top_k=20)
    request = ChatRequest((Message("user", "x"),), top_p=0.5, stop=("END",))
    filled = sampling.filled(request, best)
    assert dataclasses.replace(filled, temperature=None, top_k=None) == request
    assert (filled.temperature, filled.top_p, filled.top_k) == (0.6, 0.5, 20)
    assert sampling.filled(Parameters(temperature=0), best) == Parameters(temperature=0)
