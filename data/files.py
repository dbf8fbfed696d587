"""Files that others read meanwhile: they are there as a whole, or not at all."""

from __future__ import annotations

import uuid
from pathlib import Path


def write_whole(file: Path, text: str) -> None:
    """Replaces a file at once, and makes its folder."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
    partial.write_text(text, encoding="utf-8", errors="surrogateescape")
    partial.replace(file)
