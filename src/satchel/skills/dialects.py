"""The rows: the only module of the code in which a harness has a name."""

from __future__ import annotations

from satchel.skills.dialect import Dialect, Limits

PORTABLE = Dialect(
    id="portable",
    source="the Agent Skills specification, read leniently",
    read_on="2026-11-29",
    refuses=frozenset(
        {
            "frontmatter-missing",
            "frontmatter-unterminated",
            "frontmatter-too-large",
            "yaml-invalid",
            "yaml-duplicate-key",
            "yaml-alias",
            "yaml-not-mapping",
            "yaml-too-complex",
            "encoding-invalid",
            "manifest-too-large",
            "manifest-twice",
            "manifest-unreadable",
            "name-unusable",
            "description-missing",
            "field-shape-unsafe",
            "too-many-files",
            "skill-too-large",
        }
    ),
    ignores=frozenset({"key-unknown"}),
    understands=frozenset(
        {
            "name",
            "description",
            "license",
            "compatibility",
            "metadata",
            "allowed-tools",
            "disallowed-tools",
            "disable-model-invocation",
            "user-invocable",
            "argument-hint",
            "arguments",
            "when-to-use",
        }
    ),
    name_from="declared-or-directory",
    description_cut=None,
    limits=Limits(),
    max_depth=6,
    nested="stop",
    collision="first",
    positional=0,
    tokens="quotes",
    named=frozenset({"$name", "${name}"}),
    bare="declared",
    missing="keep",
    unknown="keep",
    escapes=frozenset({"$$", "\\$"}),
    append_unused=True,
    variables=frozenset({"SKILL_DIR", "CLAUDE_SKILL_DIR", "SESSION_ID", "CLAUDE_SESSION_ID"}),
    model_flag="enforce",
    user_flag="reject",
    listing_each=1024,
    listing_total=None,
)

DIALECTS: dict[str, Dialect] = {PORTABLE.id: PORTABLE}
