"""What authors get wrong although the skill loads. Looked for when a skill is checked, never when it is loaded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from urllib.parse import unquote

from satchel.skills.diagnostics import finding
from satchel.skills.dialect import Rule
from satchel.skills.frontmatter import parse_frontmatter, split_fences
from satchel.skills.markdown import Code, Lines, Markdown
from satchel.skills.model import Diagnostic, Skill, SkillFile
from satchel.skills.oneline import one_line
from satchel.skills.secrets import secret_shapes
from satchel.skills.substitute import find_commands
from satchel.skills.tally import Tally
from satchel.skills.tool_marks import is_tool_mark

ENTRY_TOKENS = 100
BODY_LINES = 500
BODY_TOKENS = 5000

_MAX_PATHS = 4096  # different paths that are looked for; no skill holds more files
_SHOWN = 80
_READ = 400  # characters of a text that are made fit to be shown
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
_FOLDER = re.compile(r"(?:scripts|references|reference|assets|templates|examples)/")
_BELOW = re.compile(r"[\w./-]*\w\.[A-Za-z]\w{0,7}(?![\w/*<{(\[-])")
_OWN = re.compile(r"(?:\./|\$\{?\w{0,40}SKILL_DIR\}?/)\Z")
_OWN_LENGTH = len("${SKILL_DIR}/") + 40
_NOT_BEFORE = re.compile(r"[\w./\\$~{}@:*<>%-]")
_EXAMPLE = re.compile(r"\be\.g\.|\bexamples?\b|\bsuch as\b|\blike\b", re.IGNORECASE)
_SLASH = r"[/\\]"
_HOME = r"(?:~|\$HOME|\$\{HOME\}|%USERPROFILE%|/(?:home|Users)/[\w.-]{1,64}|/root)"
_DOWN = rf"(?:[\w.-]{{1,64}}{_SLASH}){{0,6}}?"
_INSTALLED = re.compile(
    rf"(?:{_HOME}{_SLASH}\.[\w-]{{1,64}}{_SLASH}{_DOWN}|\$\{{?[A-Z][A-Z0-9_]{{0,64}}_HOME\}}?{_SLASH}{_DOWN}"
    rf"|(?<![\w.~/\\-])/(?:mnt|etc/[\w-]{{1,64}})/|(?<![\w.~/\\}}-])\.[a-z][\w-]{{0,64}}{_SLASH})"
    rf"skills{_SLASH}[\w.-]{{1,64}}{_SLASH}[\w./\\-]{{1,200}}"
)
_LINKS = {"link-outside": "The link {} leads out of the skill.", "link-missing": "The link {} leads to nothing."}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//|#|mailto:")
_PLACEHOLDER = re.compile(r"[<>{}$*|\\`]|\.\.\.|…")
_AFTER_PATH = re.compile(r"[#?]")
_EXTENSION = re.compile(r"\.[A-Za-z]\w{0,7}$")
_LONGEST_EXTENSION = 9

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
    return tuple(sorted(_Lint(subject).run(), key=lambda item: (item.line, item.column, item.rule)))


def secret_findings(text: str, path: str) -> Iterator[Diagnostic]:
    """What looks like a key or a password in the text of a file. The finding does not repeat it."""
    tally, places = Tally(), Lines(text)
    for offset, what in secret_shapes(text):
        tally.add("secret-shape", offset, partial(_secret, path, places, offset, what))
    yield from tally.findings()


def _secret(path: str, places: Lines, offset: int, what: str) -> Diagnostic:
    line, column = places.place(offset)
    return finding("secret-shape", path, f"This looks like {what}.", line=line, column=column)


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
        self._tally = Tally()
        self._looked_up: dict[str, bool] = {}
        self._not_looked_up: list[int] = []

    def run(self) -> list[Diagnostic]:
        self._description()
        self._size()
        self._links()
        self._paths()
        self._scripts()
        self._comments()
        self._commands()
        return [*self._tally.findings(), *self._beyond(), *secret_findings(self._subject.text, self._path)]

    def _add(self, rule: Rule, offset: int, message: str, shown: str = "") -> None:
        """A finding in the body; ``{}`` in the message stands for what is shown of the text there."""
        self._tally.add(rule, offset, lambda: self._finding(rule, offset, message, shown))

    def _finding(self, rule: Rule, offset: int, message: str, shown: str) -> Diagnostic:
        line, column = self._places.place(offset)
        message = message.format(_shown(shown))
        return finding(rule, self._path, message, line=line + self._line_before, column=column)

    def _add_at_key(self, rule: Rule, message: str, key: str) -> None:
        self._tally.add(rule, 0, lambda: finding(rule, self._path, message, line=self._key_lines.get(key, 1)))

    def _is_full(self) -> bool:
        return len(self._looked_up) == _MAX_PATHS

    def _exists(self, path: str) -> bool:
        """Whether there is such a file. Each costs a look at the disk, but for those that were asked for before."""
        exists = self._looked_up.get(path)
        if exists is None:
            exists = self._looked_up[path] = self._subject.exists(path)
        return exists

    def _beyond(self) -> Iterator[Diagnostic]:
        if self._not_looked_up:
            message = (
                f"{_MAX_PATHS} paths were looked for; {len(self._not_looked_up)} further links and paths were not."
            )
            yield self._finding("link-missing", min(self._not_looked_up), message, "")

    def _description(self) -> None:
        skill = self._subject.skill
        if skill.flags.model_invocable and not skill.when_to_use and not _WHEN.search(skill.description):
            self._add_at_key(
                "description-no-when", "The description does not say when to use the skill.", "description"
            )
        if self._subject.entry_tokens > ENTRY_TOKENS:
            message = f"The skill's entry costs about {self._subject.entry_tokens} tokens of every prompt."
            self._add_at_key("description-cost", message, "description")
        for key in ("name", "description"):
            markup = _MARKUP.search(skill.text(key))
            if markup:
                message = f"The {key} holds {_shown(markup.group())}, which reads like a tag."
                self._add_at_key("description-markup", message, key)
        for word in sorted(self._subject.reserved):
            if word in skill.name:
                message = f'The name holds "{word}", which a hosted service keeps for itself.'
                self._add_at_key("name-reserved", message, "name")

    def _size(self) -> None:
        lines = self._places.count()
        size = self._subject.body_tokens
        if lines > BODY_LINES or size > BODY_TOKENS:
            message = f"The instructions have {lines} lines and cost about {size} tokens when the skill is loaded."
            self._add("body-long", 0, message)

    def _links(self) -> None:
        known: dict[str, tuple[Rule, str]] = {}
        for offset, raw in self._body.links():
            judged = known.get(raw)
            if judged is None:
                if self._is_full():
                    self._not_looked_up.append(offset)
                    continue
                judged = known[raw] = self._judged_link(raw)
            rule, target = judged
            if rule:
                self._add(rule, offset, _LINKS[rule], target)

    def _judged_link(self, raw: str) -> tuple[Rule, str]:
        """``(rule, path)`` of a link; the rule is "" for one that is fine or means no file."""
        target = _file_target(raw)
        if target is None:
            return "", ""
        inner = _inside(target)
        if inner is None:
            return "link-outside", target
        return "" if self._exists(inner) else "link-missing", target

    def _paths(self) -> None:
        told: set[str] = set()
        for offset, path in _named_files(self._text):
            if path in told:
                continue
            code = self._body.code_at(offset)
            inner = _inside(path) if code and offset >= code.start else None
            if code is None or inner is None or inner in told:
                continue
            exists = self._looked_up.get(inner)
            if exists is None and self._is_full():
                self._not_looked_up.append(offset)
            elif not exists and self._means_own_file(code, inner):
                told.update((path, inner))
                if not self._exists(inner):
                    self._add("path-missing", offset, "There is no file {} in the skill.", inner)
        may_name_one = "skills/" in self._text or "skills\\" in self._text
        for match in _INSTALLED.finditer(self._text) if may_name_one else ():
            message = "The path {} exists only where one program installs skills."
            self._add("path-installed", match.start(), message, match.group())

    def _means_own_file(self, code: Code, path: str) -> bool:
        """Whether a path in code means a file of the skill: a command block may as well speak of the user's project."""
        if not code.fenced and self._text.startswith("](", code.closes):
            return False  # the text of a link, which is looked at by itself
        folder = path.partition("/")[0]
        if folder not in self._folders:
            return not code.fenced and folder in _CONVENTIONAL and not self._is_example(code)
        return code.fenced or not self._is_example(code)

    def _is_example(self, code: Code) -> bool:
        """Whether the words just before it, on the same line, say so."""
        nearby = max(0, code.start - _NEARBY)
        start = max(nearby, self._text.rfind("\n", nearby, code.start) + 1)
        return _EXAMPLE.search(self._text, start, code.start) is not None

    def _scripts(self) -> None:
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
                self._tally.add("script-interpreter", 0, partial(finding, "script-interpreter", self._path, message))

    def _comments(self) -> None:
        for offset, text in self._body.comments():
            if not is_tool_mark(text):
                self._add("comment-hidden", offset, "An HTML comment says {}.", text)

    def _commands(self) -> None:
        for offset, text in find_commands(self._text):
            message = "The command {} is run by some programs while they load the skill."
            self._add("command-injection", offset, message, text)


def _named_files(text: str) -> Iterator[tuple[int, str]]:
    """Offset and text of paths that start with a folder in which skills keep files."""
    for match in _FOLDER.finditer(text):
        start = match.start()
        before = text[start - 1 : start]
        if before == "/":
            own = _OWN.search(text, max(0, start - _OWN_LENGTH), start)
            if own is None:
                continue
            before = text[own.start() - 1 : own.start()]
        if _NOT_BEFORE.match(before):
            continue
        rest = _BELOW.match(text, match.end())
        if rest:
            yield start, text[start : rest.end()]


def _file_target(raw: str) -> str | None:
    """The path of a link that means a file, None for any other link."""
    if _SCHEME.match(raw):
        return None
    target = unquote(_AFTER_PATH.split(raw, maxsplit=1)[0])
    if not target or _PLACEHOLDER.search(target) or "\0" in target or not _looks_like_file(target):
        return None
    return target


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
    if _EXTENSION.search(target[-_LONGEST_EXTENSION:]):
        return True
    return "/" in target and not target.startswith("/")


def _shown(text: str) -> str:
    line = one_line(text.strip()[:_READ])
    return f'"{line[:_SHOWN]}{"..." if len(line) > _SHOWN else ""}"'
