"""The measuring itself: it draws what it says it measures. Nothing here looks at a time."""

from app.tui import bench_ui
from app.tui.transcript.entries import Reply


async def test_it_streams_resizes_and_opens_what_it_measures() -> None:
    assert await bench_ui.flush_ms(500) > 0
    assert await bench_ui.resize_ms(2_000) > 0
    assert await bench_ui.open_ms(40) > 0


def test_its_sample_has_every_construct_and_the_length_asked_for() -> None:
    text = bench_ui.sample(5_000)
    assert len(text) == 5_000
    for construct in ("## ", "1. ", "   - ", "```python", "| a | b |", "$x_", "中文", "]("):
        assert construct in text
    entries = bench_ui.conversation(10)
    assert len(entries) == 10
    assert sum(isinstance(entry, Reply) and entry.is_folded for entry in entries) == 5
