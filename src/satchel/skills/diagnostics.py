"""Every rule that reading and finding skills can report, in one table."""

from __future__ import annotations

from dataclasses import dataclass, replace

from satchel.skills.dialect import Dialect, Rule
from satchel.skills.model import Diagnostic, Severity


@dataclass(frozen=True, slots=True)
class RuleInfo:
    """``severity`` is what a dialect without an opinion reports; ``hint`` says what an author can do."""

    severity: Severity
    meaning: str
    hint: str


RULES: dict[Rule, RuleInfo] = {
    # The file.
    "manifest-case": RuleInfo("warning", "The manifest is not spelled SKILL.md.", "Rename it to SKILL.md."),
    "manifest-twice": RuleInfo("error", "A directory holds several spellings of SKILL.md.", "Keep only SKILL.md."),
    "manifest-too-large": RuleInfo(
        "error", "SKILL.md is larger than a manifest may be.", "Move long parts into files under references/."
    ),
    "manifest-unreadable": RuleInfo(
        "error", "SKILL.md cannot be opened as a regular file.", "Check its permissions and where its link leads."
    ),
    "encoding-invalid": RuleInfo("error", "SKILL.md is not UTF-8 text.", "Save the file as UTF-8."),
    "hidden-characters": RuleInfo(
        "warning",
        "The file holds characters that a reader cannot see.",
        "Remove zero-width, direction-changing and tag characters.",
    ),
    "body-empty": RuleInfo("warning", "There are no instructions after the frontmatter.", "Write the instructions."),
    # The frontmatter block.
    "frontmatter-missing": RuleInfo(
        "error", "The file does not start with a frontmatter block.", "Start the file with a line of three dashes."
    ),
    "frontmatter-unterminated": RuleInfo(
        "error", "The frontmatter block is never closed.", "Close it with a line of three dashes at the left margin."
    ),
    "frontmatter-too-large": RuleInfo(
        "error", "The frontmatter block is larger than any real one.", "Move long text into the body."
    ),
    "yaml-invalid": RuleInfo(
        "error", "The frontmatter is not YAML.", "Quote values that contain ': ', '#', or start with a symbol."
    ),
    "yaml-repaired": RuleInfo(
        "warning", "A value is not YAML as written and was read as plain text.", "Put the value in quotes."
    ),
    "yaml-duplicate-key": RuleInfo("error", "A key stands twice.", "Keep one of them."),
    "yaml-alias": RuleInfo(
        "error",
        "YAML anchors and aliases are not read.",
        "Write the value out, or quote it when it starts with * or &.",
    ),
    "yaml-not-mapping": RuleInfo("error", "The frontmatter is not a mapping.", "Write it as 'key: value' lines."),
    "yaml-too-complex": RuleInfo("error", "The frontmatter is nested too deeply or too long.", "Simplify it."),
    # Fields.
    "name-missing": RuleInfo("warning", "There is no name; the directory's is used.", "Add a name."),
    "name-normalized": RuleInfo(
        "warning", "The name is not a legal skill name and was changed.", "Use a-z, 0-9 and single hyphens."
    ),
    "name-directory-mismatch": RuleInfo(
        "warning", "The name differs from the directory's.", "Give both the same name."
    ),
    "directory-name-form": RuleInfo(
        "note", "The directory is not called exactly what the skill is.", "Give both the same name, letter for letter."
    ),
    "name-long": RuleInfo("warning", "The name is longer than allowed.", "Shorten it."),
    "name-unusable": RuleInfo(
        "error", "Neither the name nor the directory's can be used.", "Use a-z, 0-9 and single hyphens."
    ),
    "description-missing": RuleInfo("error", "There is no description.", "Say what the skill does and when to use it."),
    "description-long": RuleInfo("warning", "The description is longer than allowed.", "Shorten it."),
    "compatibility-long": RuleInfo("warning", "The compatibility text is longer than allowed.", "Shorten it."),
    "argument-hint-long": RuleInfo("warning", "The argument hint is longer than allowed.", "Shorten it."),
    "version-invalid": RuleInfo("note", "The version is not a semantic version.", "Write three numbers, like 1.2.0."),
    "metadata-not-text": RuleInfo("warning", "A metadata value is not text.", "Use text values in metadata."),
    "field-shape": RuleInfo("warning", "A field has the wrong shape and does not count.", "See the field's format."),
    "field-shape-unsafe": RuleInfo(
        "error", "A field that restricts the skill has the wrong shape.", "See the field's format."
    ),
    "key-spelling": RuleInfo(
        "note", "A key is spelled in another way that is read here.", "Other programs may want the hyphens."
    ),
    "key-misspelled": RuleInfo(
        "warning", "A key is spelled in a way that is not read here.", "Use the spelling of the specification."
    ),
    "restriction-spelling": RuleInfo(
        "warning",
        "A key that restricts the skill is spelled as its harness does not read it; it counts here.",
        "Use the spelling of the specification: where the key is not read, nothing is restricted.",
    ),
    "key-unknown": RuleInfo("note", "A key has no meaning here.", "Move it under metadata."),
    # The directory.
    "too-many-files": RuleInfo("error", "The skill holds too many files.", "Split the skill, or remove build output."),
    "skill-too-large": RuleInfo("error", "The skill's files are too large together.", "Keep large data elsewhere."),
    "file-too-large": RuleInfo("warning", "A file is larger than allowed.", "Keep large data elsewhere."),
    "nested-skill": RuleInfo(
        "note", "A skill inside a skill is readable, but not registered.", "Move it beside the other skill."
    ),
    # What authors get wrong: looked for when a skill is checked, never when it is loaded.
    "description-no-when": RuleInfo(
        "warning",
        "The description does not say when to use the skill.",
        "Add a sentence like 'Use when the user asks for ...': a model decides from the description alone.",
    ),
    "description-cost": RuleInfo(
        "warning", "The entry costs every prompt more than 100 tokens.", "Shorten the description."
    ),
    "description-markup": RuleInfo(
        "warning", "The name or the description holds an XML tag.", "Write it without angle brackets."
    ),
    "name-reserved": RuleInfo(
        "warning", "The name holds a word that a hosted service keeps for itself.", "Choose another name."
    ),
    "body-long": RuleInfo(
        "warning",
        "The instructions are longer than 500 lines or 5,000 tokens.",
        "Move details into files under references/ and say when to read them.",
    ),
    "link-missing": RuleInfo(
        "warning", "A link leads to a file that the skill does not have.", "Add the file, or correct the link."
    ),
    "link-outside": RuleInfo(
        "warning", "A link leads out of the skill.", "Copy the file into the skill; nothing outside can be read."
    ),
    "path-missing": RuleInfo(
        "warning", "The instructions name a file that the skill does not have.", "Add the file, or correct the path."
    ),
    "path-installed": RuleInfo(
        "warning",
        "The instructions name the place where one program installs skills.",
        "Write paths relative to the skill, such as scripts/run.py.",
    ),
    "script-interpreter": RuleInfo(
        "warning",
        "It is not known what runs a script.",
        "Use .py, .js, .mjs, .sh or .bash, or no extension and a shebang for one of their interpreters.",
    ),
    "comment-hidden": RuleInfo(
        "warning",
        "An HTML comment that is no mark for a tool is read by a model, but not shown to people.",
        "Remove it, or say it in plain text. Marks of formatters, linters, tables of contents and generators may stay.",
    ),
    "command-injection": RuleInfo(
        "warning",
        "A command stands where some programs run it while loading the skill.",
        "Ask for the command in words; it is never run here.",
    ),
    "secret-shape": RuleInfo(
        "warning",
        "A text looks like a key or a password, by its own shape or by what it is assigned to.",
        "Remove it, revoke it, and name an environment variable.",
    ),
    # Placing arguments.
    "placeholder-unfilled": RuleInfo(
        "note", "A placeholder has no value.", "Give an argument for each placeholder, or drop the placeholder."
    ),
    # Finding.
    "root-missing": RuleInfo("warning", "A skills directory does not exist.", "Check the path."),
    "root-too-large": RuleInfo(
        "warning", "A root holds more than is looked at.", "Name the directory that holds the skills."
    ),
    "too-many-skills": RuleInfo("warning", "There are more skills than are registered.", "Use fewer roots."),
    "skill-not-entered": RuleInfo(
        "note", "A directory that is not looked into holds a SKILL.md.", "Move or rename the directory to register it."
    ),
    "skill-too-deep": RuleInfo(
        "note", "A skill lies deeper than is looked for.", "Name the directory above it as a root."
    ),
    "skill-is-root": RuleInfo(
        "note", "A root is itself a skill, which is not looked for here.", "Name the directory above it as a root."
    ),
    "directory-unreadable": RuleInfo("warning", "A directory cannot be listed.", "Check its permissions."),
    "symlink-outside": RuleInfo(
        "warning", "A link leads out of every root and is not followed.", "Add its target's directory as a root."
    ),
    "symlink-dangling": RuleInfo("warning", "A link leads to nothing.", "Remove the link or restore its target."),
    "disabled-unmatched": RuleInfo(
        "warning", "What is to be disabled is no skill.", "Give a skill's name, or the absolute path of its folder."
    ),
    "name-shadowed": RuleInfo(
        "warning", "Another skill of an earlier root has the same name.", "Rename or remove one of them."
    ),
}


def finding(
    rule: Rule, path: str, message: str, *, line: int = 0, column: int = 0, hint: str | None = None
) -> Diagnostic:
    """A finding of ``rule`` with the rule's own severity and, unless given, its hint."""
    info = RULES[rule]
    return Diagnostic(
        rule=rule,
        severity=info.severity,
        path=path,
        message=message,
        hint=info.hint if hint is None else hint,
        line=line,
        column=column,
    )


def judge(found: Diagnostic, dialect: Dialect) -> Diagnostic | None:
    """The finding as ``dialect`` sees it: an error when it refuses the rule, None when it ignores it."""
    if found.rule in dialect.refuses:
        return found if found.severity == "error" else replace(found, severity="error")
    if found.rule in dialect.ignores:
        return None
    return replace(found, severity="warning") if found.severity == "error" else found
