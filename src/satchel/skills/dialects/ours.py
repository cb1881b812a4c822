"""Our own row, the specification's, and what every row has in common."""

from __future__ import annotations

from dataclasses import replace

from satchel.skills.dialect import HIDDEN, Dialect, Limits

ALWAYS_REFUSED = frozenset(
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
        "manifest-unreadable",
        "name-unusable",
        "description-missing",
        "field-shape-unsafe",
        "too-many-files",
        "skill-too-large",
    }
)
"""Without these there is nothing to be lenient with, or reading on would widen what a skill may do."""

SPECIFIED = frozenset({"name", "description", "license", "compatibility", "metadata", "allowed-tools"})
"""The six fields of the specification."""

PORTABLE = Dialect(
    id="portable",
    source="Satchel's own reading: the Agent Skills specification, read leniently",
    read_on="2026-11-29",
    refuses=ALWAYS_REFUSED | {"manifest-twice"},
    ignores=frozenset({"key-unknown", "directory-name-form"}),
    understands=SPECIFIED
    | {
        "version",
        "disallowed-tools",
        "disable-model-invocation",
        "user-invocable",
        "argument-hint",
        "arguments",
        "when-to-use",
        "paths",
    },
    spellings=frozenset({"snake", "camel"}),
    name_from="declared-or-directory",
    reserved=frozenset(),
    description_cut=None,
    text_as_list="split",
    body_newlines="keep",
    body_edges="keep",
    limits=Limits(),
    min_depth=0,
    max_depth=6,
    nested="stop",
    skips=frozenset({HIDDEN, "node_modules", "__pycache__", "vendor", "dist", "build"}),
    collision="first",
    lookup="folded",
    positional=0,
    tokens="quotes",
    whole="given",
    named=frozenset({"$name", "${name}"}),
    names_have_places=True,
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
    on_path_match="propose",
)

AGENTSKILLS = Dialect(
    id="agentskills",
    source="agentskills.io specification at 69ef37e with its guide for clients, and skills-ref 0.1",
    read_on="2026-11-29",
    refuses=ALWAYS_REFUSED
    | {
        "yaml-repaired",
        "name-normalized",
        "name-directory-mismatch",
        "directory-name-form",
        "description-long",
        "compatibility-long",
        "key-unknown",
        "restriction-spelling",
    },
    ignores=frozenset({"manifest-twice", "body-empty"}),
    understands=SPECIFIED,
    spellings=frozenset(),
    name_from="declared",
    reserved=frozenset(),
    description_cut=None,
    text_as_list="blanks",
    body_newlines="keep",
    body_edges="keep",
    limits=Limits(directories=2000),
    min_depth=0,
    max_depth=6,
    nested="stop",
    skips=frozenset({".git", "node_modules"}),
    collision="first",
    lookup="exact",
    positional=None,
    tokens="blanks",
    whole="given",
    named=frozenset(),
    names_have_places=False,
    bare="always",
    missing="keep",
    unknown="keep",
    escapes=frozenset(),
    append_unused=False,
    variables=frozenset(),
    model_flag="ignore",
    user_flag="ignore",
    listing_each=None,
    listing_total=None,
    on_path_match="propose",
)

UPLOADED = replace(
    AGENTSKILLS,
    refuses=ALWAYS_REFUSED
    | {"yaml-repaired", "name-normalized", "description-long", "compatibility-long", "manifest-twice"},
    ignores=frozenset({"body-empty", "key-unknown", "directory-name-form"}),
    limits=Limits(),
    max_depth=1,
    skips=frozenset(),
)
"""A skill that is sent to a service as one folder, in the specification's words. No row by itself."""
