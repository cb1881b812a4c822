"""The rows of other harnesses that skills are written for, as far as public sources tell."""

from __future__ import annotations

from dataclasses import replace

from satchel.skills.dialect import HIDDEN, Dialect, Limits
from satchel.skills.dialects.ours import AGENTSKILLS, ALWAYS_REFUSED, SPECIFIED, UPLOADED

_MIB = 1024 * 1024
_UNCHECKED = frozenset(
    {
        "body-empty",
        "directory-name-form",
        "key-unknown",
        "manifest-twice",
        "name-directory-mismatch",
    }
)

CLAUDE_CODE = Dialect(
    id="claude-code",
    source="Claude Code documentation of skills (September 2026, in quotation) and anthropics/claude-code#78270",
    read_on="2026-11-29",
    refuses=ALWAYS_REFUSED | {"manifest-case", "yaml-repaired"},
    ignores=_UNCHECKED | {"key-spelling"},
    understands=SPECIFIED
    | {
        "when-to-use",
        "argument-hint",
        "arguments",
        "disable-model-invocation",
        "user-invocable",
        "disallowed-tools",
        "paths",
        "model",
        "effort",
        "context",
        "agent",
        "background",
        "shell",
        "hooks",
    },
    spellings=frozenset({"when_to_use"}),
    name_from="directory",
    reserved=frozenset(),
    description_cut=None,
    text_as_list="split",
    body_newlines="keep",
    body_edges="keep",
    limits=Limits(name=None, description=None),
    min_depth=1,
    max_depth=1,
    nested="stop",
    skips=frozenset(),
    collision="first",
    lookup="exact",
    positional=0,
    tokens="posix",
    whole="given",
    named=frozenset({"$name"}),
    names_have_places=True,
    bare="always",
    missing="keep",
    unknown="keep",
    escapes=frozenset({"\\$"}),
    append_unused=True,
    variables=frozenset(
        {
            "CLAUDE_SKILL_DIR",
            "CLAUDE_PROJECT_DIR",
            "CLAUDE_SESSION_ID",
            "CLAUDE_EFFORT",
            "CLAUDE_PLUGIN_ROOT",
            "CLAUDE_PLUGIN_DATA",
        }
    ),
    model_flag="enforce",
    user_flag="hide",
    listing_each=1536,
    listing_total=8000,
    on_path_match="propose",
)

CODEX = replace(
    AGENTSKILLS,
    id="codex",
    source="codex-rs: core-skills loader (033d1d07), discovery (6162409b), render (0899b7c4), model_visible (428dd6c6)",
    refuses=ALWAYS_REFUSED | {"manifest-case", "name-long", "yaml-repaired"},
    ignores=_UNCHECKED | {"metadata-not-text", "name-missing"},
    understands=frozenset({"name", "description", "metadata"}),
    name_from="verbatim-or-directory",
    text_as_list="split",
    limits=Limits(directories=2000, entries=20_000),
    nested="descend",
    skips=frozenset({HIDDEN}),
    collision="all",
    listing_each=1024,
    listing_total=8000,
)

GEMINI_CLI = replace(
    AGENTSKILLS,
    id="gemini-cli",
    source="gemini-cli skill loader (04fbf507)",
    refuses=ALWAYS_REFUSED | {"manifest-case"},
    ignores=_UNCHECKED,
    understands=frozenset({"name", "description"}),
    name_from="declared-verbatim",
    text_as_list="split",
    body_edges="trim",
    limits=Limits(name=None, description=None),
    max_depth=1,
    nested="descend",
)

OPENCODE = replace(
    AGENTSKILLS,
    id="opencode",
    source="opencode V2 documentation of skills (in quotation) and its skill tool (097ed81e)",
    refuses=ALWAYS_REFUSED | {"manifest-case", "yaml-repaired"},
    ignores=_UNCHECKED,
    understands=frozenset({"name", "description", "license", "compatibility", "metadata"}),
    name_from="directory",
    text_as_list="split",
    limits=Limits(name=None, description=None),
    max_depth=None,
    nested="descend",
    collision="last",
)

OPENAI_API = replace(
    UPLOADED,
    id="openai-api",
    source="OpenAI API guide to skills and the types of openai-python 3.3.1",
    refuses=UPLOADED.refuses | {"nested-skill", "file-too-large"},
    ignores=UPLOADED.ignores | {"manifest-case"},
    limits=Limits(files=500, file_bytes=25 * _MIB, skill_bytes=50 * _MIB),
    collision="all",
    listing_each=1024,
)

ANTHROPIC_API = replace(
    UPLOADED,
    id="anthropic-api",
    source="Anthropic API guide to skills and its Python SDK 0.121.0",
    refuses=UPLOADED.refuses | {"key-unknown", "restriction-spelling", "name-reserved", "description-markup"},
    ignores=frozenset({"body-empty", "directory-name-form"}),
    reserved=frozenset({"anthropic", "claude"}),
    limits=Limits(skill_bytes=30 * _MIB),
    listing_each=1024,
)

MCP = replace(
    AGENTSKILLS,
    id="mcp",
    source="MCP Skills extension, SEP-2640 (io.modelcontextprotocol/skills), final of 2026-09-13",
    refuses=ALWAYS_REFUSED
    | {"manifest-case", "name-normalized", "name-directory-mismatch", "directory-name-form", "yaml-repaired"},
    ignores=frozenset({"body-empty", "key-unknown", "manifest-twice"}),
    understands=SPECIFIED - {"allowed-tools"},
    text_as_list="split",
    limits=Limits(files=512, skill_bytes=16 * _MIB),
    max_depth=None,
    nested="descend",
    skips=frozenset({HIDDEN}),
    collision="namespace",
)
