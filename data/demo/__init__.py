"""The demo history: a small library whose true improvements and decoys are known. Start reading in `expected.toml`."""

from data.demo.build import build_demo
from data.demo.expectations import Expected, expected

__all__ = ["Expected", "build_demo", "expected"]
