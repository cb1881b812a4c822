"""How the end of a program is told to a model: one place for scripts, commands and checks."""

from __future__ import annotations

from collections.abc import Sequence

from satchel.context.budget import format_bytes
from satchel.execution.artifacts import printable
from satchel.execution.tracking import News
from satchel.execution.workspace import MOST_SHOWN, ProducedFile
from satchel.ports.execution import Confinement, Outcome, Stopped
from satchel.skills.oneline import one_line

_NO_NEWS = News()
_TRACEBACK = "Traceback (most recent call last)"
_STOPPED: dict[Stopped, str] = {
    "": "stopped by the host",
    "deadline": "stopped at the time limit",
    "written": "stopped because it wrote too much",
    "memory": "stopped because it used too much memory",
    "killed": "stopped by the host",
}


def render_outcome(
    title: str,
    outcome: Outcome,
    confinement: Confinement,
    *,
    news: News = _NO_NEWS,
    notes: Sequence[str] = (),
    exit_note: str = "",
) -> str:
    """``title`` says what ran, like "Ran scripts/audit.py". ``notes`` come first, what was printed is kept as it is.

    ``exit_note`` explains an exit code that is no failure. What did fail says so first: faces without a place for
    failures write "Error: " in front of the text, and a note must not pass for the error.
    """
    said = f"{title} ({how_it_ended(outcome)}, sandbox: {confinement.backend})"
    lines = [*notes, said] if outcome.exit_code == 0 or exit_note else [said, *notes]
    if exit_note:
        lines.append(exit_note)
    if confinement.gaps:
        lines.append(f"Not confined on this host: {'; '.join(confinement.gaps)}.")
    for name, captured in (("stdout", outcome.stdout), ("stderr", outcome.stderr)):
        text = captured.text
        if text.strip():
            lines += [f"{name}:", text.rstrip("\r\n")]
    if not outcome.stdout.text.strip() and not outcome.stderr.text.strip():
        lines.append("(no output)")
    return "\n".join((*lines, *file_lines("Files produced:", news.made), *since_lines(news.since)))


def since_lines(files: Sequence[ProducedFile]) -> list[str]:
    """What programs in the background wrote between two calls; [] for nothing."""
    return file_lines("Written in the background since the last call:", files)


def file_lines(title: str, files: Sequence[ProducedFile]) -> list[str]:
    """The title and a line for each file, some of them when they are many; [] when there are none."""
    if not files:
        return []
    shown = [f"- {one_line(printable(file.path))} ({format_bytes(file.bytes)})" for file in files[:MOST_SHOWN]]
    more = [f"(and {len(files) - MOST_SHOWN} more, which are not listed)"] if len(files) > MOST_SHOWN else []
    return [title, *shown, *more]


def why_it_failed(outcome: Outcome) -> str:
    """One line: what the host stopped it for, or what the program itself says first; "" when that is nothing.

    What ended a program of Python stands last, and so does what a program says below how it is used.
    """
    if outcome.exit_code is None:
        return how_it_ended(outcome)
    text = outcome.stderr.text if outcome.stderr.text.strip() else outcome.stdout.text
    lines = [text_line for text_line in text.splitlines() if text_line.strip()]
    if not lines:
        return ""
    is_last = any(said.startswith(_TRACEBACK) for said in lines) or lines[0].startswith("usage:")
    return one_line(lines[-1 if is_last else 0])


def how_it_ended(outcome: Outcome) -> str:
    """The exit code, or why and after how long the host stopped it."""
    if outcome.exit_code is not None:
        return f"exit code {outcome.exit_code}"
    return f"{_STOPPED[outcome.stopped]} after {seconds(outcome.duration_s)}"


def seconds(value: float) -> str:
    """A time for a sentence; less than one is not told as none."""
    return f"{max(value, 0.1):.1f} s" if value < 1 else f"{value:.0f} s"
