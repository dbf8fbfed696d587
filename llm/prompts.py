"""Prompts are files: `NAME.VERSION.jinja` with a block `system` and a block `user`."""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from jinja2 import Environment, StrictUndefined, Template, TemplateError
from pydantic import BaseModel

from perfquarry.data.errors import InputError
from perfquarry.llm.fences import Fenced, fence
from perfquarry.llm.request import Message, Purpose, Request

T = TypeVar("T", bound=BaseModel)


class Rendered(NamedTuple):
    """The two texts of a prompt."""

    system: str
    user: str


def _checked(value: Any) -> Any:
    """What a template may put out: fenced text, numbers, nothing; a plain string is a stranger's until fenced."""
    if value is None or isinstance(value, (Fenced, bool, int, float)):
        return value
    raise InputError(
        f"a prompt puts out {type(value).__name__} {str(value)[:40]!r} unfenced: use {{{{ x | fence('kind') }}}}"
    )


def _environment() -> Environment:
    environment = Environment(  # noqa: S701 - prompts are no HTML; `_checked` guards what goes in
        undefined=StrictUndefined, finalize=_checked, trim_blocks=True, lstrip_blocks=True, auto_reload=False
    )
    environment.filters["fence"] = fence
    return environment


class Prompt:
    """A template of one version. A version's file never changes once answers to it are kept.

    Raises:
        InputError: no such file, or it is no template with the two blocks.
    """

    def __init__(self, folder: Path, name: str, version: str) -> None:
        self.name, self.version = name, version
        path = folder / f"{name}.{version}.jinja"
        try:
            self._source = path.read_text()
            blocks = self._template.blocks
        except OSError as error:
            there = ", ".join(sorted(one.name for one in folder.glob("*.jinja"))) or "none"
            raise InputError(f"no prompt {name} of version {version} in {folder}: {there}") from error
        except TemplateError as error:
            raise InputError(f"the prompt {path} is no template: {error}") from error
        if missing := {"system", "user"} - set(blocks):
            raise InputError(f"the prompt {path} has no block {', '.join(sorted(missing))}")

    @cached_property
    def _template(self) -> Template:
        return _environment().from_string(self._source)

    @property
    def hash(self) -> str:
        """Content address of the file."""
        return hashlib.sha256(self._source.encode()).hexdigest()[:16]

    def render(self, **values: Any) -> Rendered:
        """The texts for some values; strings have to be fenced in the template.

        Raises:
            InputError: a value is missing, or would go in unfenced.
        """
        try:
            context = self._template.new_context(values)
            system, user = ("".join(self._template.blocks[block](context)).strip() for block in ("system", "user"))
        except TemplateError as error:
            raise InputError(f"the prompt {self.name} {self.version}: {error}") from error
        return Rendered(system, user)

    def request(
        self, answer: type[T], stage: str, change_id: str, *, values: dict[str, Any], **options: Any
    ) -> Request[T]:
        """A request with this prompt. `options`: those of `Request` (model, temperature, max_tokens, seed)."""
        texts = self.render(**values)
        purpose = Purpose(
            stage=stage, change_id=change_id, prompt=self.name, prompt_version=self.version, prompt_hash=self.hash
        )
        messages = (Message(role="user", text=texts.user),)
        return Request(messages=messages, answer=answer, purpose=purpose, system=texts.system, **options)
