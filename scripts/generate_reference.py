"""Writes dialects.md, rules.md, settings.md and upstreams.md of docs/reference from the tables in the code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import cast

from satchel.chat.codec.anthropic import DEFAULT_MAX_TOKENS
from satchel.settings.load import TABLE
from satchel.settings.row import Row
from satchel.skills.diagnostics import RULES
from satchel.skills.dialect import Dialect, Limits
from satchel.skills.dialects import DIALECTS
from satchel.upstream.families import FAMILIES

ROOT = Path(__file__).resolve().parents[1]

ABOUT_FINDING = """\
Where skills may lie, and which of several with one name counts. Depth 0 is the root itself; `.*` stands for all names
that start with a dot. No row follows a link out of the roots, and in no row does a broken skill hide a good one."""
ABOUT_READING = """\
What a SKILL.md becomes. Keys outside `understands` are kept as they are and never checked. `spellings` are those
that the harness reads besides kebab-case: `snake` and `camel` stand for every key in that case. A key in any other
spelling is kept and means nothing, as in the harness, with one exception: a key that restricts a skill
(`allowed-tools`, `disallowed-tools`, `disable-model-invocation`, `user-invocable`) counts in every spelling, so that
`allowedTools` is never lost. [restriction-spelling](rules.md) then says that the harness itself ignores it. Where
the harness's own spelling stands there too, that one counts, unless the other is a switch that takes something away."""
ABOUT_ARGUMENTS = """\
How placeholders in the instructions are filled. A row without `positional` and `named` places no arguments. In every
row `$ARGUMENTS[N]` counts from 0, what was inserted is never read again, and no arguments are not an empty text."""
ABOUT_DIALECTS = """\
A dialect says how one harness reads skills. There is one lenient reader; a row decides which of its findings refuse a
skill, which are not reported, and what changes from harness to harness. The meaning of every column stands in
`satchel.skills.dialect.Dialect`; the rules stand in [rules.md](rules.md)."""
ABOUT_LIMITS = """\
Lengths in characters, sizes in bytes; `-` is no limit. A caller may replace them:
`discover(roots, dialect=row, limits=replace(row.limits, skills=100))`."""
ABOUT_RULES = """\
Everything that reading, finding and checking skills can report. The severity is what a rule has by itself: a
[dialect](dialects.md) that refuses it makes it an error, and one that does not refuse it makes an error a warning."""

# Every field of a row stands in exactly one of these, or has a table of its own.
GROUPS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "Reading": (
        ABOUT_READING,
        ("name_from", "spellings", "reserved", "description_cut", "text_as_list", "body_newlines", "body_edges"),
    ),
    "Finding": (ABOUT_FINDING, ("min_depth", "max_depth", "nested", "skips", "collision", "lookup")),
    "Placing arguments": (
        ABOUT_ARGUMENTS,
        (
            "positional",
            "tokens",
            "whole",
            "named",
            "names_have_places",
            "bare",
            "missing",
            "unknown",
            "escapes",
            "append_unused",
            "variables",
        ),
    ),
    "Offering": (
        "Who may load a skill, how many characters a listing may have, and what a match of `paths` does.",
        ("model_flag", "user_flag", "listing_each", "listing_total", "on_path_match"),
    ),
}
_OWN_TABLES = ("id", "source", "read_on", "understands", "refuses", "ignores", "limits")
_NOTE = "<!-- Made by scripts/generate_reference.py from the code; change it there. -->"


def cell(value: object) -> str:
    """One value as a table cell."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, frozenset):
        words = sorted(str(word) for word in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return ", ".join(f"`{word}`" for word in words) or "-"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value).replace("|", "\\|").replace("<", "&lt;")


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    titles = list(head)
    lines = [titles, ["---"] * len(titles), *(list(row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def by_row(names: Iterable[str], dialects: Iterable[Dialect]) -> str:
    """One line a dialect, one column a field."""
    columns = list(names)
    head = ["dialect", *(f"`{name}`" for name in columns)]
    return table(head, ([f"`{row.id}`", *(cell(getattr(row, name)) for name in columns)] for row in dialects))


def dialects_page() -> str:
    """docs/reference/dialects.md."""
    rows = list(DIALECTS.values())
    common = frozenset[str].intersection(*(row.refuses for row in rows))
    quiet = frozenset[str].intersection(*(row.ignores for row in rows))
    refused = ([f"`{row.id}`", cell(row.refuses - common), cell(row.ignores - quiet)] for row in rows)
    limits = [field.name for field in fields(Limits)]
    parts = [
        "# Dialects",
        _NOTE,
        ABOUT_DIALECTS,
        "## Sources",
        table(
            ["dialect", "source", "read on"],
            ([f"`{row.id}`", cell(row.source), row.read_on] for row in rows),
        ),
        "## Refusing",
        f"Every dialect refuses {cell(common)}." + (f" None reports {cell(quiet)}." if quiet else ""),
        table(["dialect", "refuses too", "does not report"], refused),
        "## Keys",
        by_row(["understands"], rows),
    ]
    for title, (about, names) in GROUPS.items():
        parts += [f"## {title}", about, by_row(names, rows)]
    parts += [
        "## Limits",
        ABOUT_LIMITS,
        table(
            ["dialect", *(f"`{name}`" for name in limits)],
            ([f"`{row.id}`", *(cell(getattr(row.limits, name)) for name in limits)] for row in rows),
        ),
    ]
    return "\n\n".join(parts) + "\n"


def rules_page() -> str:
    """docs/reference/rules.md."""
    rows = list(DIALECTS.values())

    def where(ids: list[str]) -> str:
        return "all" if len(ids) == len(rows) else ", ".join(f"`{name}`" for name in ids) or "-"

    lines = (
        [
            f"`{rule}`",
            info.severity,
            cell(info.meaning),
            cell(info.hint),
            where([row.id for row in rows if rule in row.refuses]),
            where([row.id for row in rows if rule in row.ignores]),
        ]
        for rule, info in RULES.items()
    )
    parts = [
        "# Rules",
        _NOTE,
        ABOUT_RULES,
        table(["rule", "severity", "meaning", "what to do", "refused in", "not reported in"], lines),
    ]
    return "\n\n".join(parts) + "\n"


ABOUT_UPSTREAMS = """\
How Satchel speaks to the model servers that [`--upstream`](cli.md#model-servers) names. Every generation is streamed;
an answer that comes in one piece all the same is read too. Requests are sent as clients made them, and with what the
table says."""
ABOUT_FAILURES = """\
An answer ends when its format says so: with the finish reason or `[DONE]`, `response.completed`, `"done": true`,
`message_stop`. A connection that ends before is the failure `upstream-cut-off`, and so is nothing at all. A refusal
keeps its status where clients can act on it (400, 429 with `Retry-After`). Nothing is asked again after a failure,
except once without a field that the server gave as its reason. A key never shows in a message."""
ABOUT_FAMILIES = """\
Offering a tool takes two halves: the server renders the declaration, and it reads the call out of the reply. Where one
is missing, no tools are offered and skills are written into the prompt. Servers that speak OpenAI's or Anthropic's API
do both for any model, unless a row of this table says otherwise. Ollama says itself what a model can do
(`capabilities` of `/api/show`); where it does not, the row decides, and a model without a row gets no tools.
`--model-tools` decides before all of that, and `satchel doctor --probe` looks. `names` is a pattern for the start of a
model's name, without its publisher; the first row that fits holds. A diffusion model refuses a request that declares
tools of its own."""

_ADDED_CHAT = """\
`stream_options.include_usage`, unless the server refuses it; `max_completion_tokens` in place of `max_tokens` for
models that refuse that."""
_ADDED_RESPONSES = """\
`store` false unless the client says how the response is kept; then also `include: reasoning.encrypted_content`, so that
reasoning can be sent back."""
_ADDED_ANTHROPIC = f"""\
`anthropic-version`, `anthropic-beta` as the client sent it, and `max_tokens` {DEFAULT_MAX_TOKENS:,} when the client set
none. `thinking.budget_tokens` is kept below `max_tokens`, which shrinks from round to round."""
_BEARER = "`Authorization: Bearer`"
_SENT = (
    ("`openai`", "`/chat/completions`, `/models`", _BEARER, _ADDED_CHAT),
    ("`responses`", "`/responses`, `/models`", _BEARER, _ADDED_RESPONSES),
    (
        "`ollama`",
        "`/api/chat`, `/api/tags`, `/api/show`",
        _BEARER,
        "`stream` true. No tools when none may be called, since this format has no `tool_choice`.",
    ),
    ("`anthropic`", "`/v1/messages`, `/v1/models`", "`x-api-key`", _ADDED_ANTHROPIC),
)


def upstreams_page() -> str:
    """docs/reference/upstreams.md."""
    rows = (
        [
            f"`{row.id}`",
            "`" + row.names.replace("|", "\\|") + "`",
            row.tools,
            cell(row.tool_role),
            row.reasoning_replay,
            cell(row.diffusion),
        ]
        for row in FAMILIES
    )
    parts = [
        "# Model servers",
        _NOTE,
        ABOUT_UPSTREAMS,
        table(
            ["kind", "paths", "key", "what is added"], ([field.replace("\n", " ") for field in row] for row in _SENT)
        ),
        "## Failures",
        ABOUT_FAILURES,
        "## Model families",
        ABOUT_FAMILIES,
        table(["family", "names", "tools", "tool role", "reasoning goes back as", "diffusion"], rows),
    ]
    return "\n\n".join(parts) + "\n"


ABOUT_SETTINGS = """\
Every setting by its key, which `satchel doctor` and failures name; `-` is none. A flag wins over its variable, the
variable over the default. A variable that is set and empty counts as left out, except where "never empty" stands. What
each means stands in [cli.md](cli.md)."""


def settings_page() -> str:
    """docs/reference/settings.md."""
    rows = (
        [
            f"`{row.key}`",
            f"`{row.flag}`" if row.flag else "-",
            f"`{row.variable}`" if row.variable else "-",
            _default(row.default),
            "; ".join(_notes(row)) or "-",
        ]
        for row in TABLE
    )
    parts = [
        "# Settings",
        _NOTE,
        ABOUT_SETTINGS,
        table(["key", "flag", "variable", "default", "notes"], rows),
    ]
    return "\n\n".join(parts) + "\n"


def _default(value: object) -> str:
    if isinstance(value, Mapping):
        entries = cast("Mapping[str, Sequence[str]]", value).items()
        return "; ".join(f"`{key}={' '.join(words)}`" for key, words in entries) or "-"
    if value is None or value in ("", ()):
        return "-"
    return cell(value) if isinstance(value, bool) else f"`{value}`"


def _notes(row: Row) -> Iterator[str]:
    if row.inverted:
        yield "flag and variable turn it off"
    if row.is_secret:
        yield "never shown"
    if row.is_never_empty:
        yield "never empty"


def pages() -> dict[Path, str]:
    """Every page by its path."""
    reference = ROOT / "docs" / "reference"
    return {
        reference / "dialects.md": dialects_page(),
        reference / "rules.md": rules_page(),
        reference / "settings.md": settings_page(),
        reference / "upstreams.md": upstreams_page(),
    }


def fields_shown() -> list[str]:
    """The fields of a row that the page shows."""
    return [*_OWN_TABLES, *(name for _, names in GROUPS.values() for name in names)]


def main() -> None:
    for path, text in pages().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
