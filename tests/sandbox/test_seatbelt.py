"""Seatbelt profiles as text: they cannot be applied here, so every allowance and its place is read."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.errors import SandboxError
from satchel.ports.execution import Launch, Limits, Network
from satchel.sandbox import seatbelt
from satchel.sandbox.seatbelt import Policy, SeatbeltExecutor, command, policy_of, profile

TOKEN = re.compile(r'#"[^"]*"|"(?:\\.|[^"\\])*"|[()]|[^\s()"]+')
GOLDEN = Path(__file__).resolve().parent / "golden"

OFFLINE = Policy(
    readable=("/Users/ann/skills/report", "/Users/ann/.local/python"),
    writable=("/private/var/folders/xy/abc/T/satchel/work", "/private/tmp/session/tmp"),
    user_temporary="/private/var/folders/xy/abc/T",
)
OPEN = Policy(writable=("/Users/ann/work",), network=Network(mode="open"))
PINNED = Policy(writable=("/Users/ann/work",), network=Network(mode="hosts", hosts=("a.example",)), proxy_port=3128)


def parsed(text: str) -> list[Any]:
    """The profile as nested lists; strings stay quoted, so that they differ from words."""
    tokens = TOKEN.findall(text)
    assert not TOKEN.sub("", text).strip()
    stack: list[list[Any]] = [[]]
    for token in tokens:
        if token == "(":
            stack.append([])
        elif token == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(token)
    assert len(stack) == 1, "unbalanced"
    return stack[0]


def decides(text: str, operation: str, path: str) -> str:
    """What the last rule that matches an operation on a file says."""
    verdict = "deny"
    for action, *rest in parsed(text):
        if action not in {"allow", "deny"}:
            continue
        operations = [word for word in rest if isinstance(word, str)]
        filters = [item for item in rest if isinstance(item, list)]
        named = any(word == operation or (word[-1] == "*" and operation.startswith(word[:-1])) for word in operations)
        if not named or not operations:
            continue
        for kind, *values in filters:
            value = (
                values[0].strip('"').replace('\\"', '"').replace("\\\\", "\\")
                if values and isinstance(values[0], str)
                else ""
            )
            if (kind == "literal" and path == value) or (
                kind == "subpath" and (path == value or path.startswith(f"{value}/"))
            ):
                verdict = action
        if not filters:
            verdict = action
    return verdict


@pytest.mark.parametrize(("name", "policy"), [("offline", OFFLINE), ("open", OPEN), ("pinned", PINNED)])
def test_the_profile_is_the_one_that_was_read_through(name: str, policy: Policy) -> None:
    assert profile(policy) == (GOLDEN / f"seatbelt-{name}.sb").read_text(encoding="utf-8")


@pytest.mark.parametrize("policy", [OFFLINE, OPEN, PINNED])
def test_everything_is_denied_first(policy: Policy) -> None:
    rules = parsed(profile(policy))
    assert rules[:2] == [["version", "1"], ["deny", "default"]]
    assert not [rule for rule in rules if rule in (["allow", "default"], ["allow", "file*"], ["allow", "mach-lookup"])]


@pytest.mark.parametrize(
    ("operation", "path", "verdict"),
    [
        ("file-read-data", "/usr/lib/libSystem.dylib", "allow"),
        ("file-read-data", "/private/etc/passwd", "allow"),
        ("file-read-data", "/etc/passwd", "allow"),
        ("file-read-data", "/private/etc/master.passwd", "deny"),
        ("file-write-data", "/private/etc/passwd", "deny"),
        ("file-write-data", "/usr/local/bin/tool", "deny"),
        ("file-read-data", "/Users/ann/.ssh/id_rsa", "deny"),
        ("file-read-metadata", "/Users/ann/.ssh/id_rsa", "deny"),
        ("file-read-data", "/Users/ann", "deny"),
        ("file-read-metadata", "/Users/ann", "allow"),
        ("file-read-data", "/Users/ann/skills/other/SKILL.md", "deny"),
        ("file-read-data", "/Users/ann/skills/report/SKILL.md", "allow"),
        ("file-write-data", "/Users/ann/skills/report/SKILL.md", "deny"),
        ("file-read-data", "/Volumes/Backup/x", "deny"),
        ("file-write-create", "/private/tmp/OSL_PIPE_501_SingleOfficeIPC_1", "allow"),
        ("file-write-create", "/tmp/scratch", "allow"),
        ("file-write-create", "/private/var/folders/xy/abc/T/scratch", "allow"),
        ("file-write-create", "/var/folders/xy/abc/T/scratch", "allow"),
        ("file-write-create", "/private/var/folders/xy/abc/C/scratch", "deny"),
        ("file-read-data", "/private/var/folders/zz/other/T/scratch", "deny"),
        ("file-write-unlink", "/private/var/folders/xy/abc/T/satchel/work/out", "allow"),
        ("file-write-unlink", "/private/var/folders/xy/abc/T/satchel/work", "deny"),
        ("file-write-unlink", "/var/folders/xy/abc/T/satchel/work", "deny"),
        ("file-write-unlink", "/private/var/folders/xy/abc/T/satchel", "deny"),
        ("file-write-unlink", "/private/tmp/session", "deny"),
        ("file-write-setugid", "/private/tmp/session/tmp/tool", "deny"),
        ("process-exec", "/private/tmp/session/tmp/tool", "allow"),
        ("network-outbound", "/anything", "deny"),
    ],
)
def test_a_file_is_decided_by_the_last_rule(operation: str, path: str, verdict: str) -> None:
    assert decides(profile(OFFLINE), operation, path) == verdict


def test_a_skill_in_a_shared_temporary_directory_stays_as_it_is() -> None:
    text = profile(Policy(readable=("/private/tmp/skills/a",), writable=("/private/tmp/work",)))
    assert decides(text, "file-write-data", "/private/tmp/skills/a/SKILL.md") == "deny"
    assert decides(text, "file-write-data", "/tmp/skills/a/SKILL.md") == "deny"
    assert decides(text, "file-write-unlink", "/private/tmp/skills") == "deny"
    assert decides(text, "file-write-data", "/private/tmp/other") == "allow"


def test_a_work_directory_in_a_readable_one_is_writable() -> None:
    text = profile(Policy(readable=("/Users/ann/project",), writable=("/Users/ann/project/out",)))
    assert decides(text, "file-write-create", "/Users/ann/project/out/a") == "allow"
    assert decides(text, "file-write-create", "/Users/ann/project/a") == "deny"


@pytest.mark.parametrize(
    "rule",
    [
        ["allow", "signal", "process-info*", ["target", "same-sandbox"]],
        ["allow", "mach-register", ["global-name-regex", '#"[0-9]+$"']],
        [
            "allow",
            "iokit-open",
            ["iokit-user-client-class", '"RootDomainUserClient"'],
            ["iokit-user-client-class", '"IOSurfaceRootUserClient"'],
        ],
        ["allow", "network-outbound", ["remote", "unix-socket", ["subpath", '"/private/tmp"']]],
        ["deny", "network-outbound", ["regex", '#"^(/private)?/tmp/com\\.apple\\.launchd"']],
    ],
)
@pytest.mark.parametrize("policy", [OFFLINE, OPEN, PINNED])
def test_what_native_programs_need_is_allowed_and_no_more(policy: Policy, rule: list[Any]) -> None:
    rules = parsed(profile(policy))
    assert rules.count(rule) == 1
    launchd = next(at for at, one in enumerate(rules) if one[0] == "deny" and "launchd" in str(one))
    assert launchd == len(rules) - 1


def test_the_network_is_closed_pinned_or_open() -> None:
    def outbound(policy: Policy) -> list[Any]:
        return [
            rule[-1]
            for rule in parsed(profile(policy))
            if rule[0] == "allow" and rule[1] == "network-outbound" and "unix-socket" not in str(rule)
        ]

    assert outbound(OFFLINE) == []
    assert ["deny", "network*"] in parsed(profile(OFFLINE))
    assert outbound(PINNED) == [["remote", "ip", '"localhost:3128"']]
    assert outbound(OPEN) == [["remote", "ip", '"*:*"'], ["literal", '"/private/var/run/mDNSResponder"']]
    assert "network-inbound" not in profile(PINNED)
    assert "com.apple.networkd" not in profile(OFFLINE)


def test_hosts_without_a_proxy_are_refused() -> None:
    with pytest.raises(SandboxError) as caught:
        profile(Policy(network=Network(mode="hosts", hosts=("a.example",))))
    assert caught.value.code == "launch-failed"


@given(st.text(st.characters(exclude_categories=("Cs",), min_codepoint=32), min_size=1, max_size=40))
def test_no_path_ends_its_own_text(name: str) -> None:
    path = "/w/" + name.replace("/", "_")
    (rule,) = [rule for rule in parsed(profile(Policy(writable=(path,)))) if rule[:2] == ["deny", "file-write-unlink"]]
    written = [item[1][1:-1] for item in rule[2:] if item[0] == "literal"]
    assert path in [text.replace("\\\\", "\0").replace('\\"', '"').replace("\0", "\\") for text in written]


def test_signs_that_end_lines_are_written_out() -> None:
    text = profile(Policy(writable=('/w/a"b\\c\nd\te',)))
    assert '(subpath "/w/a\\"b\\\\c\\nd\\te")' in text
    for sign in "\0\x07\x1b":
        with pytest.raises(SandboxError):
            profile(Policy(writable=(f"/w/{sign}",)))


def launch(tmp_path: Path, **fields) -> Launch:
    work = str(tmp_path)
    return Launch(command=("node", "a b", "$(x)", "-c"), purpose="script", cwd=work, writable=(work,), **fields)


def test_the_arguments_of_a_program_are_no_text_of_a_shell(tmp_path: Path) -> None:
    argv = command(launch(tmp_path, limits=Limits(cpu_s=9, file_bytes=1024, open_files=64)), "PROFILE")
    assert argv[:4] == ("/usr/bin/sandbox-exec", "-p", "PROFILE", "--")
    assert argv[4:6] == ("/bin/sh", "-c")
    assert argv[6].endswith('exec "$@"')
    assert [bound in argv[6] for bound in ("ulimit -t 9 ", "ulimit -f 2 ", "ulimit -n 64 ", "ulimit -c 0")] == [
        True
    ] * 4
    assert argv[7:] == ("sh", "node", "a b", "$(x)", "-c")
    assert "$(x)" not in argv[6]


def test_the_policy_of_a_launch_names_both_ends_of_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    (tmp_path / "skill").mkdir()
    policy = policy_of(
        Launch(
            command=("x",), purpose="script", cwd=str(link), writable=(str(link),), readable=(str(tmp_path / "skill"),)
        )
    )
    assert policy.writable == (str(link), str(real))
    assert str(Path.home().resolve()) in policy.homes
    with pytest.raises(SandboxError):
        policy_of(Launch(command=("x",), purpose="script", cwd=str(link), writable=(str(link),), readable=(str(real),)))


@pytest.mark.parametrize(
    ("proxy", "mode", "port"),
    [
        ("http://127.0.0.1:3128", "hosts", 3128),
        ("http://localhost:80/", "hosts", 80),
        ("http://user:key@127.0.0.1:3128", "hosts", 0),
        ("http://proxy.example:3128", "hosts", 0),
        ("http://127.0.0.1:3128", "open", 0),
    ],
)
def test_the_port_of_the_proxy_is_read_from_the_environment(tmp_path: Path, proxy: str, mode: str, port: int) -> None:
    network = Network(mode=mode)  # pyright: ignore[reportArgumentType]
    assert policy_of(launch(tmp_path, env={"HTTPS_PROXY": proxy}, network=network)).proxy_port == port


@pytest.mark.skipif(sys.platform == "darwin", reason="there it is available")
async def test_elsewhere_it_says_that_it_is_not_there(tmp_path: Path) -> None:
    executor = SeatbeltExecutor()
    assert "macOS" in executor.unavailable_reason
    with pytest.raises(SandboxError) as caught:
        await executor.run(launch(tmp_path))
    assert caught.value.code == "sandbox-unavailable"


def test_what_it_leaves_open_is_told() -> None:
    confinement = SeatbeltExecutor().confinement
    assert (confinement.writes, confinement.network, confinement.home) == (True, True, True)
    assert not confinement.process_tree
    assert any("outlive" in gap for gap in confinement.gaps)
    assert any("temporary" in gap for gap in confinement.gaps)
    assert seatbelt.PROGRAM.startswith("/usr/bin/")
