"""What authors get wrong although the skill loads. Looked for when a skill is checked, never when it is loaded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from urllib.parse import unquote

from satchel.skills.diagnostics import finding
from satchel.skills.dialect import Rule
from satchel.skills.frontmatter import parse_frontmatter, split_fences
from satchel.skills.markdown import Lines, Markdown, Piece
from satchel.skills.model import Diagnostic, Skill, SkillFile
from satchel.skills.oneline import one_line
from satchel.skills.secrets import secret_shapes
from satchel.skills.substitute import find_commands

ENTRY_TOKENS = 100
BODY_LINES = 500
BODY_TOKENS = 5000

_MAX_EACH = 8  # findings of one rule; the last one says how many there were
_SHOWN = 80
_NEARBY = 120

_WHEN = re.compile(
    r"\b(?:when|whenever|if|while|before|after|during|unless|triggers?|triggered|activates?|invoke[ds]?|proactively"
    r"|use[ds]?\s+(?:this|it|for|to|in|on|with|proactively)|useful|helpful|ideal|suitable|any\s*time|every\s*time"
    r"|(?:load|apply|read|run|call|consult|tasks|not|is|best|designed|meant|intended)\s+for"
    r"|wenn|falls|sobald|cuando|si|quando|se|quand|lorsque|wanneer|когда|если|gdy|jeśli)\b|[.:;!]\s+for\b"
    r"|[时時]|当|若|如果|场景|場景|适用|適用|用于|用於|使用|触发|觸發|とき|場合|際|때|경우|시\b|사용",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"<[A-Za-z/!?][^<>]{0,200}>")

_CONVENTIONAL = frozenset({"scripts", "references", "reference", "assets"})
_NAMED = re.compile(
    r"(?<![\w./\\$~{}@:*<>%-])(?:\./|\$\{?\w{0,40}SKILL_DIR\}?/)?"
    r"((?:scripts|references|reference|assets|templates|examples)/[\w./-]*\w\.[A-Za-z]\w{0,7})(?![\w/*<{(\[-])"
)
_EXAMPLE = re.compile(r"\be\.g\.|\bexamples?\b|\bsuch as\b|\blike\b", re.IGNORECASE)
_SLASH = r"[/\\]"
_HOME = r"(?:~|\$HOME|\$\{HOME\}|%USERPROFILE%|/(?:home|Users)/[\w.-]{1,64}|/root)"
_DOWN = rf"(?:[\w.-]{{1,64}}{_SLASH}){{0,6}}?"
_INSTALLED = re.compile(
    rf"(?:{_HOME}{_SLASH}\.[\w-]{{1,64}}{_SLASH}{_DOWN}|\$\{{?[A-Z][A-Z0-9_]{{0,64}}_HOME\}}?{_SLASH}{_DOWN}"
    rf"|(?<![\w.~/\\-])/(?:mnt|etc/[\w-]{{1,64}})/|(?<![\w.~/\\}}-])\.[a-z][\w-]{{0,64}}{_SLASH})"
    rf"skills{_SLASH}[\w.-]{{1,64}}{_SLASH}[\w./\\-]{{1,200}}"
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//|#|mailto:")
_PLACEHOLDER = re.compile(r"[<>{}$*|\\`]|\.\.\.|…")
# Marks for tools: one word without a path, or the licence's identifier. Anything longer could instruct a model.
_MARK = re.compile(r"\s*(?:/?[\w:.-]*|SPDX-[\w-]+:[ \t]*[\w.-]+|markdownlint-(?:dis|en)able[\w -]{0,80})\s*")

# Scripts that are run lie in these; what lies deeper belongs to them.
_SCRIPT_FOLDERS = frozenset({"scripts", "script", "bin"})
_RUNNABLE = frozenset({"py", "js", "mjs", "sh", "bash"})
_OTHER_LANGUAGES = (
    "ts tsx mts cts cjs jsx rb pl php lua ps1 bat cmd zsh fish r jl go rs java kt kts swift scala groovy awk tcl exs"
)
_PROGRAMS = frozenset(_OTHER_LANGUAGES.split())
_NO_PROGRAMS = frozenset({"makefile", "dockerfile", "license", "licence", "readme", "gemfile", "procfile", "rakefile"})
_SHEBANG = re.compile(r"#![ \t]*(?:\S*/)?(?:env[ \t]+(?:-S[ \t]+)?)?(?:python[0-9.]*|node|nodejs|sh|bash)(?:\s|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A skill that loads, and what is known about it.

    ``path`` stands in the findings, ``text`` is its whole SKILL.md without a byte order mark. ``entry_tokens`` is what
    its line in a catalogue costs, ``body_tokens`` its body. ``reserved`` are words that some harness accepts in no
    name. ``first_lines`` holds the first line of each script without an extension, by path; ``exists`` says whether a
    path inside the skill leads to a file or a directory.
    """

    path: str
    text: str
    skill: Skill
    files: tuple[SkillFile, ...]
    entry_tokens: int
    body_tokens: int
    reserved: frozenset[str]
    first_lines: Mapping[str, str]
    exists: Callable[[str], bool]


def lint(subject: Subject) -> tuple[Diagnostic, ...]:
    """Everything that is worth changing, in the order of the file; at most a handful of findings a rule."""
    found = list(_Lint(subject).run())
    totals = Counter(item.rule for item in found)
    seen: Counter[Rule] = Counter()
    kept: list[Diagnostic] = []
    for item in sorted(found, key=lambda item: (item.line, item.column, item.rule)):
        seen[item.rule] += 1
        if seen[item.rule] == _MAX_EACH and totals[item.rule] > _MAX_EACH:
            kept.append(replace(item, message=f"{item.message} There are {totals[item.rule] - _MAX_EACH} more."))
        elif seen[item.rule] <= _MAX_EACH:
            kept.append(item)
    return tuple(kept)


def secret_findings(text: str, path: str) -> Iterator[Diagnostic]:
    """What looks like a key in the text of a file. The finding does not repeat it."""
    places: Lines | None = None
    for offset, what in secret_shapes(text):
        places = places or Lines(text)
        line, column = places.place(offset)
        yield finding("secret-shape", path, f"This looks like {what}.", line=line, column=column)


def needs_first_line(file: SkillFile) -> bool:
    """Whether only a file's first line can tell what runs it: a script without an extension."""
    folder, _, name = file.path.rpartition("/")
    return folder in _SCRIPT_FOLDERS and file.is_text and "." not in name and name.lower() not in _NO_PROGRAMS


class _Lint:
    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._path = subject.path
        fenced = split_fences(subject.text)
        self._key_lines = parse_frontmatter(fenced.yaml).lines
        self._text = fenced.body
        self._line_before = Lines(subject.text).place(len(subject.text) - len(fenced.body))[0] - 1
        self._body = Markdown(fenced.body)
        self._folders = {file.path.partition("/")[0] for file in subject.files if "/" in file.path}
        self._places = Lines(fenced.body)

    def run(self) -> Iterator[Diagnostic]:
        yield from self._description()
        yield from self._size()
        yield from self._links()
        yield from self._paths()
        yield from self._scripts()
        yield from self._comments()
        yield from self._commands()
        yield from self._secrets()

    def _at(self, rule: Rule, message: str, offset: int) -> Diagnostic:
        line, column = self._places.place(offset)
        return finding(rule, self._path, message, line=line + self._line_before, column=column)

    def _at_key(self, rule: Rule, message: str, key: str) -> Diagnostic:
        return finding(rule, self._path, message, line=self._key_lines.get(key, 1))

    def _description(self) -> Iterator[Diagnostic]:
        skill = self._subject.skill
        if skill.flags.model_invocable and not skill.when_to_use and not _WHEN.search(skill.description):
            yield self._at_key(
                "description-no-when", "The description does not say when to use the skill.", "description"
            )
        if self._subject.entry_tokens > ENTRY_TOKENS:
            message = f"The skill's entry costs about {self._subject.entry_tokens} tokens of every prompt."
            yield self._at_key("description-cost", message, "description")
        for key in ("name", "description"):
            markup = _MARKUP.search(skill.text(key))
            if markup:
                message = f"The {key} holds {_shown(markup.group())}, which reads like a tag."
                yield self._at_key("description-markup", message, key)
        for word in sorted(self._subject.reserved):
            if word in skill.name:
                message = f'The name holds "{word}", which a hosted service keeps for itself.'
                yield self._at_key("name-reserved", message, "name")

    def _size(self) -> Iterator[Diagnostic]:
        lines = len(self._text.splitlines())
        size = self._subject.body_tokens
        if lines > BODY_LINES or size > BODY_TOKENS:
            message = f"The instructions have {lines} lines and cost about {size} tokens when the skill is loaded."
            yield self._at("body-long", message, 0)

    def _links(self) -> Iterator[Diagnostic]:
        for offset, raw, _ in self._body.links():
            target = unquote(re.split(r"[#?]", raw, maxsplit=1)[0])
            if not target or _SCHEME.match(raw) or _PLACEHOLDER.search(target) or "\0" in target:
                continue
            if not _looks_like_file(target):
                continue
            inner = _inside(target)
            if inner is None:
                yield self._at("link-outside", f"The link {_shown(target)} leads out of the skill.", offset)
            elif not self._subject.exists(inner):
                yield self._at("link-missing", f"The link {_shown(target)} leads to nothing.", offset)

    def _paths(self) -> Iterator[Diagnostic]:
        told: set[str] = set()
        for piece in self._body.code:
            for match in _NAMED.finditer(piece.text):
                inner = _inside(match.group(1))
                if inner is None or inner in told or not self._means_own_file(piece, inner):
                    continue
                told.add(inner)
                if not self._subject.exists(inner):
                    message = f"There is no file {_shown(inner)} in the skill."
                    yield self._at("path-missing", message, piece.offset + match.start(1))
        for match in _INSTALLED.finditer(self._text):
            message = f"The path {_shown(match.group())} exists only where one program installs skills."
            yield self._at("path-installed", message, match.start())

    def _means_own_file(self, piece: Piece, path: str) -> bool:
        """Whether a path in code means a file of the skill: a command block may as well speak of the user's project."""
        if self._text.startswith("](", piece.offset + len(piece.text) + 1):
            return False  # the text of a link, which is looked at by itself
        folder = path.partition("/")[0]
        if folder not in self._folders:
            return not piece.fenced and folder in _CONVENTIONAL and not self._is_example(piece)
        return piece.fenced or not self._is_example(piece)

    def _is_example(self, piece: Piece) -> bool:
        """Whether the words just before it, on the same line, say so."""
        nearby = max(0, piece.offset - _NEARBY)
        start = max(nearby, self._text.rfind("\n", nearby, piece.offset) + 1)
        return _EXAMPLE.search(self._text, start, piece.offset) is not None

    def _scripts(self) -> Iterator[Diagnostic]:
        for file in self._subject.files:
            folder, _, name = file.path.rpartition("/")
            extension = name.rpartition(".")[2].lower()
            if folder not in _SCRIPT_FOLDERS or extension in _RUNNABLE or name.endswith(".d.ts"):
                continue
            message = ""
            if needs_first_line(file):
                if not _SHEBANG.match(self._subject.first_lines.get(file.path, "")):
                    message = f"{file.path[:_SHOWN]} has no extension and no shebang of a known interpreter."
            elif extension in _PROGRAMS:
                message = f"No interpreter is known for {file.path[:_SHOWN]}."
            if message:
                yield finding("script-interpreter", self._path, message)

    def _comments(self) -> Iterator[Diagnostic]:
        for offset, text, _ in self._body.comments():
            if not _MARK.fullmatch(text):
                yield self._at("comment-hidden", f"An HTML comment says {_shown(text)}.", offset)

    def _commands(self) -> Iterator[Diagnostic]:
        for mark in find_commands(self._text):
            message = f"The command {_shown(mark.text)} is run by some programs while they load the skill."
            yield finding("command-injection", self._path, message, line=mark.line + self._line_before)

    def _secrets(self) -> Iterator[Diagnostic]:
        yield from secret_findings(self._subject.text, self._path)


def _inside(path: str) -> str | None:
    """The path without ``.`` and ``..``; None when it leads out of the skill."""
    parts: list[str] = []
    if path.startswith(("/", "~")):
        return None
    for part in path.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return "/".join(parts)


def _looks_like_file(target: str) -> bool:
    """Whether a link means a file: ``[text](url)`` is an example, and ``/name`` may be a command or a web page."""
    if re.search(r"\.[A-Za-z]\w{0,7}$", target):
        return True
    return "/" in target and not target.startswith("/")


def _shown(text: str) -> str:
    line = one_line(text)
    return f'"{line[:_SHOWN]}{"..." if len(line) > _SHOWN else ""}"'
