from __future__ import annotations

import pytest

from satchel.execution.declared import asked_packages, header_packages, required_packages
from satchel.execution.interpreters import allowed_endings, extension, interpreter, is_runnable
from satchel.execution.options import INTERPRETERS
from satchel.skills.files import classify
from satchel.skills.model import SkillFile


def chosen(path: str, head: bytes = b"") -> tuple[str, ...]:
    return interpreter(path, head, INTERPRETERS)


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("scripts/a.py", ("python",)),
        ("A.PY", ("python",)),
        ("a.js", ("node",)),
        ("a.mjs", ("node",)),
        ("a.sh", ("bash",)),
        ("x.tar.bash", ("bash",)),
        ("a.rb", ()),
        ("a.txt", ()),
        ("a.pyc", ()),
        ("dir.py/a", ()),
        ("a", ()),
    ],
)
def test_the_ending_chooses(path: str, command: tuple[str, ...]) -> None:
    assert chosen(path) == command


def test_a_first_line_never_overrules_an_ending() -> None:
    assert chosen("a.py", b"#!/bin/bash -eu\n") == ("python",)
    assert chosen("a.rb", b"#!/usr/bin/env python3\n") == ()


@pytest.mark.parametrize(
    ("head", "command"),
    [
        (b"#!/usr/bin/env -S python3 -u\n", ("python", "-u")),
        (b"#!/usr/bin/env -S A=1 python3.12\r\n", ("python",)),
        (b"\xef\xbb\xbf#!/usr/bin/python\n", ("python",)),
        (b"#! /bin/sh\n", ("bash",)),
        (b"#!/usr/bin/env nodejs", ("node",)),
        (b"#!/usr/bin/ruby\n", ()),
        (b"#!/usr/bin/env\n", ()),
        (b"#!/bin/bash 'open\n", ()),
        (b"#!\n", ()),
        (b"\x7fELF", ()),
        (b"# no\n#!/bin/bash\n", ()),
    ],
)
def test_without_an_ending_the_first_line_chooses_among_what_is_allowed(head: bytes, command: tuple[str, ...]) -> None:
    assert chosen("scripts/c", head) == command


@pytest.mark.parametrize(
    ("head", "options"),
    [
        (b"#!/bin/bash -eu\n", ("-eu",)),
        (b"#!/bin/bash -e -o pipefail\n", ("-e", "-o", "pipefail")),
        (b"#!/bin/bash -euo pipefail\r\n", ("-euo", "pipefail")),
        (b"#!/bin/bash -o posix\n", ()),
        (b"#!/bin/bash -c id\n", ()),
        (b"#!/bin/bash --rcfile x\n", ()),
        (b"#!/bin/bash -ei\n", ()),
        (b"#!/usr/bin/python3 -u\n", ()),
    ],
)
def test_harmless_options_of_the_same_interpreter_are_kept(head: bytes, options: tuple[str, ...]) -> None:
    assert chosen("a.sh", head) == ("bash", *options)


def test_the_table_can_be_replaced_and_cut() -> None:
    table = {".py": ("python3.12", "-I"), ".sh": ()}
    assert interpreter("a.py", b"", table) == ("python3.12", "-I")
    assert interpreter("a.sh", b"#!/bin/bash\n", table) == ()
    assert interpreter("c", b"#!/bin/bash\n", table) == ()
    assert allowed_endings(table) == ".py"
    assert allowed_endings({}) == "none"


@pytest.mark.parametrize(
    ("path", "is_text", "runnable"),
    [
        ("scripts/a.py", True, True),
        ("a.py", True, True),
        ("scripts/a.py", False, False),
        ("scripts/run", True, True),
        ("run", True, False),
        ("scripts/a.rb", True, False),
        ("references/a.md", True, False),
    ],
)
def test_what_is_offered(path: str, is_text: bool, runnable: bool) -> None:
    file = SkillFile(path=path, kind=classify(path, is_text=is_text), bytes=1, is_text=is_text)
    assert is_runnable(file, INTERPRETERS) == runnable
    assert not is_runnable(file, ())


def test_endings() -> None:
    assert [extension(path) for path in ("a.PY", "a", ".env", "a.b/c", "a\\b.Sh", "a.")] == [
        ".py",
        "",
        "",
        "",
        ".sh",
        ".",
    ]


HEADER = '# /// script\n# requires-python = ">=3.11"\n# dependencies = [\n#   "requests<3",\n#   "rich",\n# ]\n# ///\n'


@pytest.mark.parametrize(
    ("source", "packages"),
    [
        (HEADER + "print(1)\n", ("requests<3", "rich")),
        ("#!/usr/bin/env python3\n\n" + HEADER.replace("\n", "\r\n"), ("requests<3", "rich")),
        (HEADER + "\n" + HEADER, ()),
        ("# /// script\n# dependencies = [\n# ///\n", ()),
        ("# /// script\n# dependencies = 'x'\n# ///\n", ()),
        ("# /// other\n# dependencies = ['x']\n# ///\n", ()),
        ("# /// script\n# dependencies = ['x', 1, '-r y', 'z @ https://a/b.whl', 'git+https://a/b']\n# ///\n", ("x",)),
        ("print(1)\n", ()),
    ],
)
def test_packages_of_a_script_s_header(source: str, packages: tuple[str, ...]) -> None:
    assert header_packages(source) == packages


def test_packages_of_a_requirements_file() -> None:
    text = "# all\nrequests>=2  # http\n\n--index-url https://x\n-e .\nhttps://x/y.whl\nrich\nrich\n"
    assert required_packages(text) == ("requests>=2", "rich")
    assert len(required_packages("\n".join(f"p{number}" for number in range(40)))) == 16


@pytest.mark.parametrize(
    ("given", "packages"),
    [
        ("requests, rich;httpx", ("requests", "rich", "httpx")),
        ("pandas>=2,<3, numpy", ("pandas>=2,<3", "numpy")),
        ("", ()),
        ("rich -r x", ()),
    ],
)
def test_packages_that_are_asked_for(given: str, packages: tuple[str, ...]) -> None:
    assert asked_packages(given) == packages
