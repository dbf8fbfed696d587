"""What the settings of all stages have in common: their hash is part of every row."""

from __future__ import annotations

from typing import ClassVar

from perfquarry.data.records.row import Record, content_id


class StageSettings(Record):
    """Settings of one stage; equal settings have equal hashes on every machine."""

    UNHASHED: ClassVar[frozenset[str]] = frozenset()
    """Settings that decide how fast rows come, not what they say."""
    ADDED: ClassVar[frozenset[str]] = frozenset()
    """Settings younger than some homes: unhashed at their default, with which rows say what they said before."""

    def config_hash(self, *upstream: str) -> str:
        """Hash of the settings and of the hashes of the stages whose rows decide this stage's rows."""
        fields = type(self).model_fields
        unchanged = {name for name in self.ADDED if getattr(self, name) == fields[name].default}
        hashed = self.model_dump(mode="json", exclude=unchanged.union(self.UNHASHED))
        return content_id(type(self).__name__, hashed, *upstream)
