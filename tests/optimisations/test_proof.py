"""Requested, resolved, observed: on live engines of the real model."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_engine import LiveEngine, live_engine

from engine_bridge.backends.llamacpp import convert, probe, proof, switches
from engine_bridge.backends.llamacpp.probe import Finding, Form
from engine_bridge.contract import Effect, EngineSpec, Load, Optimisation, Verdict
from engine_bridge.errors import BridgeError
from engine_bridge.models import tensors

ALL_ON = EngineSpec(optimisations={"cpu-layout": True, "light-head": True, "ngram": True})
ALL_OFF = EngineSpec(optimisations={"cpu-layout": False, "light-head": False, "ngram": False})


def quiet(_: object) -> None:
    pass


def found(form: Form):
    """A trial that found `form`; what comes of it is real."""
    return lambda *_: Finding(form, Effect(prefill_ratio=1.5, decode_ratio=1.1, how="given"))


@pytest.fixture
def given_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    findings = {
        "cpu-layout": found(Form("Q8_0", layers="Q8_0")),
        "light-head": found(Form("head Q4_0", head="Q4_0")),
    }
    monkeypatch.setattr(switches, "_MEASURES", findings)


def prove(optimisations: tuple[Optimisation, ...], engine: LiveEngine) -> dict[str, Optimisation]:
    proven = asyncio.run(proof.prove(optimisations, engine.pid, engine.endpoint))
    return {o.id: o for o in proven}


def run(choice: switches.Choice):
    return live_engine(
        choice.model_path,
        no_extra_bufts=choice.no_extra_bufts,
        speculation=choice.speculation,
        draft_match=choice.draft_match,
        draft_tokens=choice.draft_tokens,
    )


@pytest.fixture(scope="module")
def plain(smol: Path) -> Iterator[LiveEngine]:
    """The model as shipped, without speculation."""
    with live_engine(smol) as engine:
        yield engine


def test_only_speculation_is_on_by_default() -> None:
    switched = {o.id: o.requested for o in switches.declare(EngineSpec())}
    assert switched == {"cpu-layout": False, "light-head": False, "ngram": True}


def test_all_three_are_verified_inside_the_engine(
    home: Path, smol: Path, given_findings: None
) -> None:
    choice = switches.resolve(ALL_ON, smol, 2, quiet)
    assert choice.speculation == "ngram-simple"
    with run(choice) as engine:
        proven = prove(choice.optimisations, engine)
    assert {o.verdict for o in proven.values()} == {Verdict.VERIFIED}
    layout, head, ngram = proven["cpu-layout"], proven["light-head"], proven["ngram"]
    assert layout.resolved == "Q8_0"
    assert layout.observed == "layers Q8_0"
    assert head.observed == "head Q4_0"
    assert Path(layout.evidence["file"]).name == choice.model_path.name != smol.name
    assert ngram.evidence["slots.speculative.types"] == "ngram-simple"
    assert ngram.evidence["drafted_tokens"] > 0
    assert ngram.evidence["accepted_tokens"] > 0
    assert layout.effect
    assert layout.effect.prefill_ratio == 1.5


def test_an_engine_started_with_the_original_in_spite_of_the_request_fell_back(
    home: Path, smol: Path, given_findings: None, plain: LiveEngine
) -> None:
    choice = switches.resolve(ALL_ON, smol, 2, quiet)
    proven = prove(choice.optimisations, plain)
    assert {o.verdict for o in proven.values()} == {Verdict.FELL_BACK}
    assert proven["cpu-layout"].note == (
        "The engine has a file open whose layers are Q4_1, not Q8_0."
    )
    assert proven["light-head"].observed == "head Q8_0"
    assert proven["ngram"].observed == "slots without speculation"


def test_switched_off_is_off_and_still_says_what_is_there(
    home: Path, smol: Path, plain: LiveEngine
) -> None:
    choice = switches.resolve(ALL_OFF, smol, 2, quiet)
    assert (choice.model_path, choice.speculation) == (smol, "none")
    proven = prove(choice.optimisations, plain)
    assert {o.verdict for o in proven.values()} == {Verdict.OFF}
    assert proven["cpu-layout"].observed == "layers Q4_1"


def test_a_failed_trial_starts_the_original_and_says_why(
    home: Path, smol: Path, plain: LiveEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> Finding:
        raise BridgeError("No room for the trial.", "Make some.")

    monkeypatch.setattr(switches, "_MEASURES", {"cpu-layout": fails})
    choice = switches.resolve(ALL_ON, smol, 2, quiet)
    assert choice.model_path == smol
    layout = prove(choice.optimisations, plain)["cpu-layout"]
    assert (layout.verdict, layout.note) == (Verdict.FELL_BACK, "No room for the trial. Make some.")


def test_a_failed_conversion_starts_the_original_and_says_why(
    home: Path, smol: Path, given_findings: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(needed: int, folder: Path) -> None:
        raise BridgeError("The disk is full.", "Free some space.")

    monkeypatch.setattr(convert, "check_space", full)
    choice = switches.resolve(ALL_ON, smol, 2, quiet)
    assert choice.model_path == smol
    fell = {o.id: o.verdict for o in choice.optimisations}
    assert fell["cpu-layout"] is fell["light-head"] is Verdict.FELL_BACK
    assert choice.speculation == "ngram-simple"


def test_stopping_is_not_falling_back(home: Path, smol: Path) -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(convert.StoppedError):
        switches.resolve(ALL_ON, smol, 2, quiet, stop)


def test_as_shipped_is_a_finding_too(
    home: Path, smol: Path, plain: LiveEngine, monkeypatch
) -> None:
    best = Finding(probe.SHIPPED, Effect(prefill_ratio=1.0), "as shipped is best here")
    monkeypatch.setattr(switches, "_MEASURES", {"cpu-layout": lambda *_: best})
    choice = switches.resolve(EngineSpec(optimisations={"cpu-layout": True}), smol, 2, quiet)
    assert choice.model_path == smol
    layout = prove(choice.optimisations, plain)["cpu-layout"]
    assert (layout.verdict, layout.note) == (Verdict.VERIFIED, "as shipped is best here")


def test_what_cannot_be_rewritten_is_not_supported_here(home: Path, smol: Path) -> None:
    done = convert.convert(smol, convert.Recipe(layers="Q8_0", head="Q4_0"), quiet)
    spec = EngineSpec(optimisations={"cpu-layout": True, "light-head": True})
    declared = {o.id: o for o in switches.declare(spec, done)}
    assert declared["cpu-layout"].verdict is Verdict.NOT_SUPPORTED
    assert declared["cpu-layout"].note == "The layers are Q8_0: nothing to rewrite."
    assert declared["light-head"].note == "The output head is Q4_0 already."
    assert switches.resolve(spec, done, 2, quiet).model_path == done


def test_the_proof_of_speculation_makes_the_engines_own_counters_move(
    home: Path, smol: Path
) -> None:
    choice = switches.resolve(EngineSpec(), smol, 2, quiet)
    with run(choice) as engine:
        first = prove(choice.optimisations, engine)["ngram"]
        again = prove(choice.optimisations, engine)["ngram"]
    assert first.verdict is again.verdict is Verdict.VERIFIED
    assert again.observed == first.observed
    # proven once, the engine is not asked again: a warm document stays in its cache
    assert again.evidence["draft_rounds"] == first.evidence["draft_rounds"] > 0


def test_an_engine_that_does_not_answer_leaves_it_unproven(home: Path, smol: Path) -> None:
    choice = switches.resolve(EngineSpec(), smol, 2, quiet)
    with run(choice) as engine:
        pass
    ngram = prove(choice.optimisations, engine)["ngram"]
    assert ngram.verdict is Verdict.UNPROVEN
    assert "did not answer" in ngram.note


@pytest.mark.parametrize(
    ("after", "note", "length"),
    [
        ({"predicted_tokens": 160, "drafted_tokens": 60, "accepted_tokens": 60}, "", 5.0),
        (
            {"predicted_tokens": 160, "drafted_tokens": 20, "accepted_tokens": 20},
            "nothing to draft here",
            1.0,
        ),
    ],
)
def test_a_reply_says_whether_there_was_something_to_draft(
    after: dict[str, float], note: str, length: float
) -> None:
    before = {"predicted_tokens": 110, "drafted_tokens": 20, "accepted_tokens": 20}
    ngram = Optimisation(
        id="ngram", title="", summary="", requested=True, verdict=Verdict.VERIFIED, note="old"
    )
    changed = proof.watch((ngram,), Load(counters=before), Load(counters=after))
    assert changed
    assert changed[0].verdict is Verdict.VERIFIED
    assert changed[0].note == note
    assert changed[0].evidence["accept_length"] == length
    assert proof.watch(changed, Load(counters=after), Load(counters=after)) is None


def test_the_header_of_a_ling_model_without_its_limits_earns_a_warning(
    smol: Path, tmp_path: Path
) -> None:
    assert switches.caveat(smol) == ""
    ling = tmp_path / "ling.gguf"
    ling.write_bytes(_renamed(smol))
    assert tensors.read(ling).architecture == "bailingmoe3"
    assert "swiglu_clamp_exp" in switches.caveat(ling)


def _renamed(smol: Path) -> bytes:
    raw = smol.read_bytes()
    key = b"general.architecture" + (8).to_bytes(4, "little")
    old = key + (5).to_bytes(8, "little") + b"llama"
    new = key + (11).to_bytes(8, "little") + b"bailingmoe3"
    return raw.replace(old, new) + b"\0" * 64
