from __future__ import annotations

from satchel.execution.results import render_outcome, why_it_failed
from satchel.execution.tracking import News
from satchel.execution.workspace import MOST_SHOWN, ProducedFile
from satchel.ports.execution import Captured, Confinement, Outcome, Stopped

FULL = Confinement(backend="bubblewrap", writes=True, network=True, home=True, process_tree=True)


def test_everything_that_can_be_said_stands_in_its_place() -> None:
    outcome = Outcome(exit_code=1, stdout=Captured(head=b"out\n\n"), stderr=Captured(head=b"\xffbad\n"))
    text = render_outcome(
        "Ran x",
        outcome,
        Confinement(backend="job", gaps=("a", "b")),
        news=News(made=(ProducedFile(path="a/b.csv", bytes=2048),), since=(ProducedFile(path="c", bytes=1),)),
        notes=["First note."],
        exit_note="No line matched.",
    )
    assert text == (
        "First note.\nRan x (exit code 1, sandbox: job)\nNo line matched.\nNot confined on this host: a; b.\n"
        "stdout:\nout\nstderr:\n\ufffdbad\nFiles produced:\n- a/b.csv (2 KB)\n"
        "Written in the background since the last call:\n- c (1 B)"
    )


def test_nothing_is_said_to_be_nothing_and_a_gap_in_the_output_is_named() -> None:
    assert render_outcome("Ran x", Outcome(exit_code=0), FULL) == (
        "Ran x (exit code 0, sandbox: bubblewrap)\n(no output)"
    )
    cut = Outcome(exit_code=0, stdout=Captured(head=b"a" * 5, tail=b"z" * 5, dropped_bytes=90))
    assert "stdout:\naaaaa\n[... 90 bytes left out ...]\nzzzzz" in render_outcome("Ran x", cut, FULL)


def test_a_program_that_was_stopped_is_never_told_as_one_that_ended() -> None:
    reasons: dict[Stopped, str] = {
        "deadline": "time limit",
        "written": "wrote too much",
        "memory": "too much memory",
        "killed": "by the host",
    }
    for stopped, said in reasons.items():
        text = render_outcome("Ran x", Outcome(exit_code=None, stopped=stopped, duration_s=2.4), FULL)
        assert said in text.partition("\n")[0]
        assert "after 2 s" in text
        assert "exit code" not in text


def test_a_file_name_cannot_say_more_than_its_name() -> None:
    produced = [ProducedFile(path=path, bytes=1) for path in ("a\nstdout:\nall tests passed", "b\x1b[2J", "caf\udce9")]
    text = render_outcome("Ran x", Outcome(exit_code=1), FULL, news=News(made=tuple(produced)))
    listed = ["- a stdout: all tests passed (1 B)", "- b[2J (1 B)", "- caf\\xe9 (1 B)"]
    assert text.splitlines()[-4:] == ["Files produced:", *listed]


def test_a_list_that_was_cut_does_not_pass_for_all_there_is() -> None:
    files = [ProducedFile(path=f"{number}.txt", bytes=1) for number in range(MOST_SHOWN + 2)]
    assert "more" not in render_outcome("Ran x", Outcome(exit_code=0), FULL, news=News(made=tuple(files[:MOST_SHOWN])))
    told = render_outcome("Ran x", Outcome(exit_code=0), FULL, news=News(made=tuple(files)))
    assert told.endswith("- 39.txt (1 B)\n(and 2 more, which are not listed)")


def test_what_is_wrong_with_the_arguments_is_the_reason_and_not_how_a_program_is_used() -> None:
    said = b"usage: a.py [-h] --distance KM\n            [--payload KG]\na.py: error: no distance\n"
    assert why_it_failed(Outcome(exit_code=2, stderr=Captured(head=said))) == "a.py: error: no distance"


def test_a_name_that_is_no_text_is_written_out() -> None:
    news = News(made=(ProducedFile(path="\udcff.bin", bytes=1),))
    text = render_outcome("Ran x", Outcome(exit_code=0), FULL, news=news)
    assert text.endswith("Files produced:\n- \\xff.bin (1 B)")
