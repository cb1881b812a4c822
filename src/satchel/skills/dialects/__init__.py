"""The rows: the only package of the code in which a harness has a name."""

from __future__ import annotations

from satchel.errors import SetupError
from satchel.skills.dialect import Dialect
from satchel.skills.dialects.harnesses import ANTHROPIC_API, CLAUDE_CODE, CODEX, GEMINI_CLI, MCP, OPENAI_API, OPENCODE
from satchel.skills.dialects.ours import AGENTSKILLS, PORTABLE
from satchel.skills.dialects.seeds import AGENT_SH, CONTEXTCHEF, FLOWCRAFT, TENSORSHARP, TNSAI
from satchel.skills.names import near_names

DIALECTS: dict[str, Dialect] = {
    row.id: row
    for row in (
        PORTABLE,
        AGENTSKILLS,
        AGENT_SH,
        TENSORSHARP,
        FLOWCRAFT,
        TNSAI,
        CONTEXTCHEF,
        CLAUDE_CODE,
        CODEX,
        GEMINI_CLI,
        OPENCODE,
        OPENAI_API,
        ANTHROPIC_API,
        MCP,
    )
}


def find_dialect(dialect: str | Dialect) -> Dialect:
    """The row of that id; a row is taken as it is.

    Raises:
        SetupError: "setting-invalid".
    """
    row = dialect if isinstance(dialect, Dialect) else DIALECTS.get(dialect)
    if row is None:
        near = near_names(str(dialect), DIALECTS)
        hint = f"Did you mean {', '.join(near)}?" if near else f"Known are {', '.join(DIALECTS)}."
        raise SetupError("setting-invalid", f'There is no dialect called "{dialect}".', hint=hint)
    return row


__all__ = [
    "AGENTSKILLS",
    "AGENT_SH",
    "ANTHROPIC_API",
    "CLAUDE_CODE",
    "CODEX",
    "CONTEXTCHEF",
    "DIALECTS",
    "FLOWCRAFT",
    "GEMINI_CLI",
    "MCP",
    "OPENAI_API",
    "OPENCODE",
    "PORTABLE",
    "TENSORSHARP",
    "TNSAI",
    "find_dialect",
]
