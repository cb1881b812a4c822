"""Request fields that are ours on every surface, and how every surface reads and refuses a body."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from satchel.chat.messages import Json
from satchel.engine.request import SkillSelection
from satchel.errors import RequestError
from satchel.skills.names import near_names

MAX_MESSAGES = 20_000
MAX_PARTS = 20_000
"""Most content parts, and most tool calls, of all messages together."""
MAX_TOOLS = 1024
MAX_SKILLS = 512

OURS = frozenset({"skills", "skills_discovery", "skills_continuation", "multi_agent"})
"""Fields that end here: strict model servers refuse what they do not know."""

UNNAMED = "default"
"""What answers call the model of a request that names none."""

SkillName = Annotated[str, StringConstraints(max_length=256)]


class SkillFields(BaseModel):
    """The part of a body that is ours. Unknown fields are allowed and handed on."""

    model_config = ConfigDict(extra="allow", strict=True)

    skills: list[SkillName] | None = Field(
        default=None, max_length=MAX_SKILLS, description="Names of skills that this request selects."
    )
    skills_discovery: bool | None = Field(
        default=None, description="Whether skills that were not selected are offered to the model too; true if absent."
    )
    skills_continuation: Annotated[str, StringConstraints(max_length=256)] | None = Field(
        default=None,
        description="The continuation of an earlier answer, which gives the model back what it read for that answer.",
    )
    multi_agent: bool | None = Field(default=None, description="false turns delegation off for this request.")

    @model_validator(mode="before")
    @classmethod
    def _knows_ours(cls, body: Mapping[str, object]) -> Mapping[str, object]:
        """Fields that begin with "skills" end here, so one that is not known was meant for us and misspelled."""
        for name in body:
            if name.startswith("skills") and name not in OURS:
                known = sorted(field for field in OURS if field.startswith("skills"))
                near = near_names(name, known) or known
                why = f"There is no such field. Did you mean {' or '.join(near)}?"
                raise refused(name[:64], why)
        return body

    def selection(self, more: Iterable[str] = ()) -> SkillSelection:
        """What the request opens; ``more`` are names that it selects in its vendor's own way."""
        names = dict.fromkeys((*(self.skills or ()), *more))
        return SkillSelection(names=tuple(names), discovery=self.skills_discovery is not False)


Body = TypeVar("Body", bound=BaseModel)


def read_fields(kind: type[Body], body: Mapping[str, Json]) -> Body:
    """``body`` as ``kind``. Raises ``RequestError`` "invalid-request", whose ``data["field"]`` names the field."""
    try:
        return kind.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        raise refused(_place(first["loc"]), f"{first['msg']}.") from None


def refused(field: str, why: str) -> RequestError:
    """The refusal of one field."""
    return RequestError("invalid-request", f"{field}: {why}" if field else why, data={"field": field})


def check_parts(messages: Iterable[Mapping[str, object]], field: str, *, name: str = "messages") -> None:
    """Refuses more than ``MAX_PARTS`` items in the lists that ``field`` holds in all of ``messages``."""
    total = 0
    for position, item in enumerate(messages):
        parts = item.get(field)
        total += len(parts) if isinstance(parts, list) else 0  # pyright: ignore[reportUnknownArgumentType]
        if total > MAX_PARTS:
            raise refused(f"{name}[{position}].{field}", f"All {name} together may hold {MAX_PARTS} items here.")


def _place(path: Iterable[int | str]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
