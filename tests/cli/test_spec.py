"""Which engine is wanted, from settings, command line and machine."""

import pytest

from app.core import spec
from app.core.settings.file import Settings
from app.core.settings.schema import EngineSettings


@pytest.fixture
def _gpu(tmp_path, monkeypatch):
    """A machine with an NVIDIA GPU, as far as its device files tell."""
    monkeypatch.setattr(spec, "NVIDIA_DEVICES", (tmp_path,))


SPARK = Settings(engine=EngineSettings(python="/opt/sglang/bin/python"))


def test_without_a_gpu_the_embedded_engine_is_chosen(monkeypatch):
    monkeypatch.setattr(spec, "NVIDIA_DEVICES", ())
    assert spec.wanted(SPARK).backend == "llamacpp"


@pytest.mark.usefixtures("_gpu")
def test_with_a_gpu_and_sglang_it_is_sglang_unless_a_gguf_is_asked_for(home):
    assert spec.wanted(SPARK).backend == "sglang"
    assert spec.wanted(SPARK).python == "/opt/sglang/bin/python"
    assert spec.wanted(SPARK, model="some/checkpoint").backend == "sglang"
    assert spec.wanted(SPARK, model="x.gguf").backend == "llamacpp"
    assert spec.wanted(SPARK, model="smollm2-135m").backend == "llamacpp"
    assert spec.wanted(SPARK, engine="llamacpp").backend == "llamacpp"


def test_a_url_means_attaching_and_leaves_the_server_its_model():
    settings = Settings(engine=EngineSettings(model="smollm2-135m"))
    found = spec.wanted(settings, url="http://spark:30000")
    assert (found.backend, found.url, found.model) == ("attach", "http://spark:30000", "")


def test_a_path_means_the_same_file_in_another_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert spec.wanted(Settings(), model="m.gguf").model == str(tmp_path / "m.gguf")
    assert spec.wanted(Settings(), model="smollm2-135m").model == "smollm2-135m"
    assert spec.wanted(Settings(), model="org/name").model == "org/name"
