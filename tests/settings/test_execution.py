"""What may run: flags and variables, and what is said of those that mean nothing by themselves."""

from __future__ import annotations

import pytest

from satchel.errors import SetupError
from satchel.execution.options import ExecutionOptions, InstallOptions
from satchel.settings import Settings, load
from satchel.settings.execution import ROWS

EVERYTHING: dict[str, object] = {
    "--skills-allow-exec": True,
    "--skills-allow-network": True,
    "--skills-grant": ("pdf=DEMO_TOKEN,LANG_X xlsx=DEMO_TOKEN", "pdf=OTHER"),
    "--skills-sandbox": "preferred",
    "--skills-sandbox-bwrap-floor": "0.12.0",
    "--code-exec": True,
    "--code-exec-allow-network": True,
    "--code-exec-allow-install": True,
    "--code-exec-install-domains": ("index.example, Files.example:8443", "http://mirror.example"),
    "--code-exec-packages": ("humanize @scope/tool", "humanize"),
    "--code-exec-unconfined": True,
    "--code-exec-read-first": True,
    "--code-exec-temperature": 0.0,
}
ALL_SET = ExecutionOptions(
    scripts=True,
    code=True,
    sandbox="preferred",
    scripts_network=True,
    code_network=True,
    unconfined=True,
    read_first=True,
    install=InstallOptions(
        enabled=True,
        hosts=("index.example", "files.example:8443", "http://mirror.example"),
        packages=("humanize", "@scope/tool"),
    ),
    temperature=0.0,
    bwrap_floor="0.12.0",
    grants={"pdf": ("DEMO_TOKEN", "LANG_X", "OTHER"), "xlsx": ("DEMO_TOKEN",)},
)
VARIABLES = {row.flag: row.variable for row in ROWS if row.flag}


def refused(flags: dict[str, object], environ: dict[str, str] | None = None) -> SetupError:
    with pytest.raises(SetupError) as caught:
        load(flags, environ or {})
    assert caught.value.code == "setting-invalid"
    return caught.value


def in_variables(**flags: str) -> Settings:
    return load({}, {VARIABLES["--" + name.replace("_", "-")]: value for name, value in flags.items()})


def test_everything_is_off_until_it_is_allowed():
    settings = load({}, {})
    assert settings.execution == ExecutionOptions()
    assert (settings.execution.scripts, settings.execution.code, settings.execution.sandbox) == (
        False,
        False,
        "required",
    )
    assert settings.warnings == ()


def test_every_flag_has_a_variable_that_means_the_same():
    assert set(EVERYTHING) == set(VARIABLES)
    settings = load(EVERYTHING, {})
    assert settings.execution == ALL_SET
    texts = {flag: "\n".join(value) if isinstance(value, tuple) else str(value) for flag, value in EVERYTHING.items()}
    by_variable = load({}, {VARIABLES[flag]: text for flag, text in texts.items()})
    assert by_variable.execution == ALL_SET
    assert by_variable.unknown_variables == {}
    assert {by_variable.origins[row.key] for row in ROWS if row.flag} == set(VARIABLES.values())


def test_installs_reach_private_networks_unless_a_variable_says_that_they_do_not():
    allowed = {"SATCHEL_CODE_EXEC": "1", "SATCHEL_CODE_EXEC_ALLOW_INSTALL": "1"}
    assert not load({}, allowed).execution.install.public_only
    assert load({}, allowed | {"SATCHEL_CODE_EXEC_INSTALL_PUBLIC_ONLY": "1"}).execution.install.public_only
    (said,) = load({}, {"SATCHEL_CODE_EXEC_INSTALL_PUBLIC_ONLY": "1"}).warnings
    assert "SATCHEL_CODE_EXEC_ALLOW_INSTALL=1" in said


@pytest.mark.parametrize(
    ("value", "is_on"),
    [("1", True), ("yes", True), ("0", False), ("", False), ("False", False), ("no", False), (" off ", False)],
)
def test_a_switch_is_on_for_anything_that_does_not_say_off(value: str, is_on: bool):
    settings = in_variables(skills_allow_exec=value, code_exec=value)
    assert (settings.execution.scripts, settings.execution.code) == (is_on, is_on)


@pytest.mark.parametrize(
    ("flags", "environ", "rounds"),
    [
        ({}, {}, 8),
        ({"--skills-allow-exec": True}, {}, 8),
        ({"--code-exec": True}, {}, 24),
        ({}, {"SATCHEL_CODE_EXEC": "1"}, 24),
        ({}, {"SATCHEL_CODE_EXEC": "0"}, 8),
        ({"--code-exec": True, "--skills-max-rounds": 8}, {}, 8),
        ({"--code-exec": True}, {"SATCHEL_SKILLS_MAX_ROUNDS": "3"}, 3),
    ],
)
def test_code_has_more_rounds_unless_the_operator_says_a_number(
    flags: dict[str, object], environ: dict[str, str], rounds: int
):
    assert load(flags, environ).loop.max_rounds == rounds


@pytest.mark.parametrize(
    ("flag", "value", "missing"),
    [
        ("--skills-allow-network", True, "--skills-allow-exec"),
        ("--skills-grant", ("pdf=DEMO",), "--skills-allow-exec"),
        ("--code-exec-allow-network", True, "--code-exec"),
        ("--code-exec-unconfined", True, "--code-exec"),
        ("--code-exec-read-first", True, "--code-exec"),
        ("--code-exec-temperature", 0.2, "--code-exec"),
        ("--code-exec-allow-install", True, "--code-exec or --skills-allow-exec"),
        ("--code-exec-install-domains", ("index.example",), "--code-exec-allow-install"),
        ("--code-exec-packages", ("humanize",), "--code-exec-allow-install"),
    ],
)
def test_what_does_nothing_alone_is_refused_as_a_flag_and_said_as_a_variable(flag: str, value: object, missing: str):
    error = refused({flag: value})
    assert error.message == f"{flag} does nothing without {missing}."
    assert error.hint == f"Add {missing}, or leave {flag} out."
    text = value[0] if isinstance(value, tuple) else str(value)
    (said,) = load({}, {VARIABLES[flag]: text}).warnings
    assert said.startswith(f"{VARIABLES[flag]} does nothing without {missing} (")
    if isinstance(value, bool):
        assert load({}, {VARIABLES[flag]: "0"}).warnings == ()


def test_what_is_needed_may_come_from_either_side():
    assert load({"--skills-allow-network": True}, {"SATCHEL_SKILLS_ALLOW_EXEC": "1"}).execution.scripts_network
    assert load({"--code-exec-allow-install": True, "--skills-allow-exec": True}, {}).execution.install.enabled
    assert load({"--code-exec-allow-install": True, "--code-exec": True}, {}).warnings == ()


def test_code_without_a_sandbox_takes_the_word_for_it():
    flags: dict[str, object] = {"--code-exec": True, "--skills-sandbox": "off"}
    assert "--code-exec-unconfined is missing" in refused(flags).message
    assert refused({}, {"SATCHEL_CODE_EXEC": "1", "SATCHEL_SKILLS_SANDBOX": "off"}).message.startswith(
        "SATCHEL_SKILLS_SANDBOX off"
    )
    assert load({**flags, "--code-exec-unconfined": True}, {}).execution.sandbox == "off"
    assert load({"--skills-allow-exec": True, "--skills-sandbox": "off"}, {}).execution.sandbox == "off"


def test_lists_that_bound_nothing_are_named():
    flags: dict[str, object] = {"--code-exec": True, "--code-exec-allow-install": True, "--code-exec-packages": ("a",)}
    assert load(flags, {}).warnings == ()
    (said,) = load({**flags, "--code-exec-allow-network": True}, {}).warnings
    assert "whatever --code-exec-packages lists" in said


@pytest.mark.parametrize(
    ("flag", "value", "said"),
    [
        ("--skills-sandbox", "on", "'required', 'preferred' or 'off'"),
        ("--skills-sandbox-bwrap-floor", "newest", "it is not a version like 0.12.0"),
        ("--code-exec-temperature", "3", "less than or equal to 2"),
        ("--code-exec-temperature", "nan", "less than or equal to 2"),
        ("--code-exec-temperature", "-0.1", "greater than or equal to 0"),
        ("--code-exec-install-domains", "*.example", '"*.example" is not a host'),
        ("--code-exec-install-domains", "https://index.example/simple", "is not a host"),
        ("--code-exec-install-domains", "user@index.example", "is not a host"),
        ("--code-exec-install-domains", ",", "it lists nothing"),
        ("--code-exec-packages", "humanize==4.0", "write names without versions"),
        ("--code-exec-packages", "humanize,../wheels", "is not the name of a package"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_with_what_it_may_be(flag: str, value: str, said: str):
    for error in (refused({flag: value}), refused({}, {VARIABLES[flag]: value})):
        assert said in error.message
    assert VARIABLES[flag] in error.message


@pytest.mark.parametrize("flag", ["--code-exec-packages", "--code-exec-install-domains"])
def test_an_empty_list_never_opens_everything(flag: str):
    assert "is empty" in refused({}, {VARIABLES[flag]: ""}).message


@pytest.mark.parametrize("text", ["pdf", "pdf=", "=DEMO", "pdf=A-B", "pdf=A;B", "pdf=,"])
def test_a_grant_that_is_none_is_refused(text: str):
    message = refused({"--skills-allow-exec": True, "--skills-grant": (text,)}).message
    assert f'"{text}" is no grant: write SKILL=NAME or SKILL=NAME,NAME' in message


def test_a_key_of_a_provider_is_said_to_be_held_back_until_it_is_forced():
    grant = {"SATCHEL_SKILLS_ALLOW_EXEC": "1", "SATCHEL_SKILLS_GRANT": "pdf=OPENAI_API_KEY,DEMO_TOKEN"}
    (said,) = load({}, grant).warnings
    assert said.startswith("OPENAI_API_KEY is a key of a model provider: scripts of pdf get it only with ")
    forced = load({}, grant | {"SATCHEL_SKILLS_GRANT_PROVIDER_KEYS": "1"})
    assert (forced.warnings, forced.execution.grants_provider_keys) == ((), True)
    assert "does nothing without --skills-grant" in load({}, {"SATCHEL_SKILLS_GRANT_PROVIDER_KEYS": "1"}).warnings[0]


def test_rows_of_the_table_of_interpreters_are_replaced_and_taken_out():
    table = {"SATCHEL_SKILLS_ALLOW_EXEC": "1", "SATCHEL_SKILLS_INTERPRETERS": ".PY=/opt/py/python -I 'a b'; .js=;"}
    assert load({}, table).execution.interpreters == {
        ".py": ("/opt/py/python", "-I", "a b"),
        ".mjs": ("node",),
        ".sh": ("bash",),
        ".bash": ("bash",),
    }
    for text in ("python3", "py=python3", ".py", ".p y=x", ".py='"):
        assert "SATCHEL_SKILLS_INTERPRETERS" in refused({}, {"SATCHEL_SKILLS_INTERPRETERS": text}).message


def test_scripts_are_said_to_do_nothing_while_skills_are_off():
    (said,) = load({"--skills-allow-exec": True, "--no-skills": True}, {}).warnings
    assert said == "--skills-allow-exec does nothing while skills are off (--no-skills)."
