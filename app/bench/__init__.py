"""Measuring, headless: benchmarks, comparisons, losslessness, the roofline and their ledger."""
