"""The rows: the only package of the code in which a harness has a name."""

from __future__ import annotations

from satchel.skills.dialect import Dialect
from satchel.skills.dialects.harnesses import ANTHROPIC_API, CLAUDE_CODE, CODEX, GEMINI_CLI, MCP, OPENAI_API, OPENCODE
from satchel.skills.dialects.ours import AGENTSKILLS, PORTABLE
from satchel.skills.dialects.seeds import AGENT_SH, CONTEXTCHEF, FLOWCRAFT, TENSORSHARP, TNSAI

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
]
