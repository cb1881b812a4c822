"""What is read out of a command line, what stands there instead, and what is refused with which next step."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.execution.options import ExecutionOptions, InstallOptions
from satchel.execution.requests import CommandPlan, plan_command

FILES = {
    "requirements.txt": "# pins\nsix==1.16.0  # why\n\nrequests>=2; python_version > '3'\n",
    "dev/requirements.txt": "black\n",
    "options.txt": "six\n--index-url http://x\n",
    "hashes.txt": "six==1.16.0 --hash=sha256:00\n",
    "address.txt": "six @ http://x/six.whl\n",
    "empty.txt": "# nothing\n",
    "package.json": '{"dependencies": {"left": "^1.0.0"}, "devDependencies": {"@s/right": "latest"}}',
    "long.txt": "six\n" * 80_000,
    "many.txt": "".join(f"p{n}\n" for n in range(101)),
    "git/package.json": '{"dependencies": {"a": "git+ssh://git@host/a.git"}}',
    "list/package.json": "[]",
    "bare/package.json": "{}",
}


def plan(command: str, *, network: bool = False, packages: tuple[str, ...] = (), off: bool = False) -> CommandPlan:
    install = InstallOptions(enabled=not off, packages=packages)
    options = ExecutionOptions(code=True, code_network=network, install=install)
    return plan_command(command, options=options, read_file=FILES.get)


def specs(made: CommandPlan) -> list[str]:
    return [package.spec for request in made.requests for package in request.packages]


@pytest.mark.parametrize(
    ("command", "expected", "line"),
    [
        ("pip install x && python y.py", ["x"], "true && python y.py"),
        ("pip -q install x", ["x"], "true"),
        ("pip3.11 install -qU x y", ["x", "y"], "true"),
        ("python3 -m pip --disable-pip-version-check install x", ["x"], "true"),
        ("python -I -m pip install x", ["x"], "true"),
        ("python -X utf8 -W ignore -m pip install x", ["x"], "true"),
        ("py -3.11 -Wd -m pip install x", ["x"], "true"),
        ("sudo LANG=C pip install x", ["x"], "true"),
        ("stdbuf -oL pip install x", ["x"], "true"),
        ("function f { pip install x; }; f", ["x"], "function f { true; }; f"),
        ("cat requirements.txt && cp requirements.txt b && pip install -r dev/requirements.txt", ["black"],
         "cat requirements.txt && cp requirements.txt b && true"),
        (".venv/bin/python -m pip install x", ["x"], "true"),
        ("$VENV/bin/pip install x", ["x"], "true"),
        ("npm --silent install x", ["x"], "true"),
        ("npm i -D @scope/tool@1.2.3 typescript@latest", ["@scope/tool@1.2.3", "typescript@latest"], "true"),
        ("pnpm add x", ["x"], "true"),
        ("yarn add x@^2", ["x@^2"], "true"),
        ("pip install x 2>&1 | tail -5", ["x"], "true 2>&1 | tail -5"),
        ("pip install x >log.txt 2>/dev/null", ["x"], "true >log.txt 2>/dev/null"),
        ("pip install 2>&1 x", ["x"], "true 2>&1 "),
        ("pip install x \\\n  y && z", ["x", "y"], "true && z"),
        ("pip install 'x[a,b]>=1,<2' \"y==1.*\"", ["x[a,b]>=1,<2", "y==1.*"], "true"),
        ("pip install --timeout 60 --retries=3 --user --no-cache-dir x", ["x"], "true"),
        ("sudo -H pip install x; exit", ["x"], "true; exit"),
        ("DEBUG=1 timeout 60 pip install x", ["x"], "DEBUG=1 true"),
        ("if ! python -c 'import x'; then pip install x; fi", ["x"], "if ! python -c 'import x'; then true; fi"),
        ("sudo -u me nice -n 5 pip install x", ["x"], "true"),
        ("(pip install x)", ["x"], "(true)"),
        ("pip install x # and y", ["x"], "true # and y"),
        ("pip install x\npython y.py", ["x"], "true\npython y.py"),
        ("pip install x && npm i y", ["x", "y"], "true && true"),
        ("pip install -r requirements.txt && p", ["six==1.16.0", "requests>=2; python_version > '3'"], "true && p"),
        ("pip install --requirement=requirements.txt x", ["x", "six==1.16.0", "requests>=2; python_version > '3'"], "true"),
        ("cd dev && pip install -rrequirements.txt", ["black"], "cd dev && true"),
        ("echo $(cd dev && pwd) && pip install -r requirements.txt", ["six==1.16.0", "requests>=2; python_version > '3'"],
         "echo $(cd dev && pwd) && true"),
        ("npm install", ["left@^1.0.0", "@s/right@latest"], "true"),
        ("yarn", ["left@^1.0.0", "@s/right@latest"], "true"),
        ("cd bare && npm install", [], "cd bare && true"),
    ],
)  # fmt: skip
def test_requests_are_read_and_true_stands_in_their_place(command: str, expected: list[str], line: str) -> None:
    made = plan(command)
    assert (made.refusal, specs(made), made.command) == ("", expected, line)


def test_npm_ci_says_that_the_lock_file_was_not_read() -> None:
    made = plan("npm ci")
    assert specs(made) == ["left@^1.0.0", "@s/right@latest"]
    assert "the lock file was not read" in made.notes[0]


@pytest.mark.parametrize(
    "command",
    [
        "false | tail -5",
        "pip --version",
        "pip install --help",
        "npx --version",
        "uvx --help",
        "uv --version",
        "npm exec --help",
        "yarn --version",
        "pip list",
        "pip show x",
        "npm run build",
        "npm test",
        "npm init -y",
        "cargo build",
        "echo 'pip install x'",
        'grep "pip install" README.md',
        "git commit -m 'npm install x'",
        "cat <<'EOF' > notes.md\npip install x\nnpx y\nEOF\ncat notes.md",
        "cat <<-END\n\tnpm i x\n\tEND",
        "# pip install x",
        "echo x # pip install y",
        "python -c 'import pip; print(1)'",
        "for tool in pip npm; do echo $tool install; done",
        "ls pip install",
        "pip install 'x",
    ],
)
def test_what_installs_nothing_is_left_as_it_is(command: str) -> None:
    made = plan(command)
    assert made == CommandPlan(command=command)
    assert plan(command, off=True) == made


@pytest.mark.parametrize(
    ("command", "cause", "next_step"),
    [
        ("pip install --index-url http://x y", "--index-url is not an option", "Write `pip install y` without it."),
        ("pip install -i http://x y", "-i is not an option", "Write `pip install"),
        ("pip install --find-links=. y", "--find-links is not an option", "Write `pip install y` without it."),
        ("pip --proxy http://u install y", "--proxy is not an option", "Write `pip install y` without it."),
        ("pip install -e .", "-e is not an option", "Write `pip install NAME` without it."),
        ("pip install --target x y", "--target is not an option", "Write `pip install x y` without it."),
        ("pip install --no-deps 'x>=1'", "--no-deps is not an option", "Write `pip install 'x>=1'` without it."),
        ("npm -g install x", "-g is not an option", "Write `npm install x` without it."),
        ("npm install x --registry http://y", "--registry is not an option", "without it."),
        ("yarn global add x", "global is not an option", "Write `yarn add x` without it."),
        ("pip install", "names no package", "Write `pip install NAME` or `pip install -r FILE`."),
        ("pip install -r", "-r names no file", "Write `pip install -r requirements.txt`."),
        ("pip install -r gone.txt", "gone.txt cannot be read", "Write the file in an earlier call"),
        ("cd gone && npm install", "package.json cannot be read", "name the packages: `npm install NAME`"),
        ("echo y > requirements.txt; pip install -r requirements.txt", "requirements.txt cannot be", "an earlier call"),
        ("cat <<E >>dev/requirements.txt\ny\nE\ncd dev; pip install -r requirements.txt", "cannot be read", "earlier call"),
        ("echo y | tee requirements.txt && pip install -r requirements.txt", "cannot be read", "an earlier call"),
        ("sed -i s/x/y/ requirements.txt && pip install -r requirements.txt", "cannot be read", "an earlier call"),
        ("cp dev/requirements.txt requirements.txt && pip install -r requirements.txt", "cannot be", "an earlier call"),
        ("echo {} > package.json && npm install", "package.json cannot be read", "an earlier call"),
        ("sudo PIP_INDEX_URL=h pip install x", "PIP_INDEX_URL is not a setting", "Write the install without it."),
        ("pip install -r options.txt", "options.txt: --index-url is not an option", "Leave it out of the file"),
        ("pip install -r hashes.txt", "hashes.txt: --hash is not an option", "Leave it out of the file"),
        ("pip install -r address.txt", "address.txt: 'six @ http://x/six.whl' is an address", "Name the package"),
        ("pip install -r long.txt", "long.txt is too long to be read", "Name the packages: `pip install NAME`."),
        ("pip install -r many.txt", "101 packages at once are too many", "name at most 100"),
        ("pip install -r empty.txt", "names no package", "Write `pip install NAME`"),
        ("cd git && npm install", "package.json: 'a@git+ssh://git@host/a.git' is", "Name the package"),
        ("cd list && npm install", "package.json is not a JSON object", "Correct it"),
        ("pip install git+https://x/y", "is a repository", "Name the package, like 'name>=1.2'."),
        ("pip install https://x/y.whl", "is an address", "Name the package"),
        ("pip install ./x", "is a path", "Name the package"),
        ("pip install x.whl", "is a path", "Name the package"),
        ("pip install 'x @ file:///etc'", "is an address", "Name the package"),
        ("npm i a@npm:b", "is an alias", "Name the package, like name@1.2.3."),
        ("npm i github:a/b", "is a repository", "Name the package"),
        ("npm i a/b", "is a path or a repository", "Name the package"),
        ("npm i ../x", "is a path", "Name the package"),
        ("npm i https://x/y.tgz", "is an address", "Name the package"),
        ("npm i UPPER", "is not the name of a package", "write it like name@1.2.3"),
        ("pip install x>=2", "redirection into a file", "in quotes: `pip install 'x>=2'`"),
        ("pip install x<2", "redirection into a file", "in quotes: `pip install 'x<2'`"),
        ("for p in a b; do pip install $p; done", "$p is not known", "Write the names of the packages themselves"),
        ("pip install $(cat names)", "is not known", "Write the names of the packages themselves"),
        ("cat names | xargs pip install", "xargs gives to pip", "`pip install -r requirements.txt` as a command"),
        ("OUT=$(pip install x)", "cannot be performed there", "Write `pip install x` as a command of its own"),
        ("bash -c 'pip install x && y'", "cannot be performed there", "Write `pip install x` as a command of its own"),
        ("eval pip install x", "cannot be performed there", "Write `pip install x` as a command of its own"),
        ("cat <(npm i x)", "cannot be performed there", "Write `npm i x` as a command of its own"),
        ("PIP_INDEX_URL=h pip install x", "PIP_INDEX_URL is not a setting", "Write the install without it."),
        ("env npm_config_registry=h npm i x", "npm_config_registry is not a setting", "Write the install without it."),
        ("export HTTPS_PROXY=h; pip install x", "HTTPS_PROXY is not a setting", "Write the install without it."),
        ("npx -y cowsay hi", "npx is an installer that the host cannot perform", "(after `npm install cowsay`)"),
        ("npx cowsay --version", "npx is an installer that the host cannot perform", "(after `npm install cowsay`)"),
        ("npx $TOOL", "npx is an installer that the host cannot perform", "node_modules/.bin/ (after `npm install NAME`)"),
        ("uvx ruff check", "uvx is an installer that the host cannot perform", "`python -m ruff`"),
        ("npm exec -- x", "npm exec fetches a package in order to run it", "(`npm install x`)"),
        ("npm x -- y", "npm x fetches a package", "node_modules/.bin/"),
        ("npm init vite", "npm init fetches a package", "node_modules/.bin/"),
        ("pnpm dlx x", "pnpm dlx fetches a package", "node_modules/.bin/"),
        ("npm update", "npm update is not something the host does", "`npm install NAME@latest`"),
        ("npm update x", "npm update is not something the host does", "`npm install NAME@latest`"),
        ("pnpm update", "pnpm update is not something the host does", "`pnpm install NAME@latest`"),
        ("yarn up x", "yarn up is not something the host does", "`yarn add NAME@latest`"),
        ("pip download x", "pip download is refused", "Write `pip install NAME`."),
        ("pip wheel x", "pip wheel is refused", "Write `pip install NAME`."),
        ("uv pip install x", "uv is an installer", "Write `pip install x`"),
        ("easy_install x", "easy_install is an installer", "Write `pip install x`"),
        ("uv add ruff", "uv is an installer", "Write `pip install ruff`"),
        ("poetry add x", "poetry is an installer", "Write `pip install x`"),
        ("python -m uv pip install x", "uv is an installer", "Write `pip install x`"),
        ("gem install x", "gem is an installer", "write `pip install NAME` or `npm install NAME`"),
        ("cargo install x", "cargo is an installer", "write `pip install NAME` or `npm install NAME`"),
        ("sudo apt-get install -y x", "apt-get is an installer", "write `pip install NAME`"),
        ("bun add x", "bun is an installer", "Write `npm install NAME`"),
    ],
)  # fmt: skip
def test_refusals_name_their_cause_and_the_next_step(command: str, cause: str, next_step: str) -> None:
    made = plan(f"{command}")
    assert cause in made.refusal
    assert next_step in made.refusal
    assert made.refusal.endswith("Nothing of this command ran.")
    assert (made.requests, made.command) == ((), command)


@pytest.mark.parametrize(
    "command", ["pip install x | tail -1", "npx x", "uv add x", "npm exec x", "gem install x", "npm ci"]
)
def test_without_installs_every_request_gets_the_same_answer(command: str) -> None:
    made = plan(command, off=True)
    assert made.refusal.startswith("Installing packages is not enabled here.")
    assert "tell the user which packages are needed" in made.refusal
    assert made.requests == ()


@pytest.mark.parametrize(
    "command", ["npx cowsay hi", "uvx ruff check", "npm exec -- cowsay", "pnpm dlx x", "npm init vite"]
)
def test_runners_run_only_where_everything_may_be_fetched(command: str) -> None:
    assert plan(command, network=True) == CommandPlan(command=command)
    assert plan(command, network=True, packages=("x",)).refusal
    assert plan(command, network=True, off=True).refusal.startswith("Installing packages is not enabled here.")


def test_an_open_network_still_leaves_installs_to_the_host() -> None:
    assert specs(plan("pip install x", network=True)) == ["x"]
    assert "gem is an installer" in plan("gem install x", network=True).refusal


@pytest.mark.parametrize("spelling", ["pip install Foo_Bar", "python3 -m pip install 'foo.bar>=1'"])
def test_the_list_of_packages_knows_every_spelling(spelling: str) -> None:
    assert specs(plan(spelling, packages=("foo-bar",)))
    refused = plan(spelling.replace("oo", "ox"), packages=("foo-bar",)).refusal
    assert "not among the packages that may be installed here. Allowed: foo-bar." in refused


def test_of_a_list_that_is_not_allowed_as_a_whole_the_rest_is_named_as_it_works() -> None:
    made = plan("pip install bad 'good>=1,<2' Worse Good", packages=("good", "fine"))
    assert made.requests == ()
    assert made.refusal == (
        "bad, Worse are not among the packages that may be installed here. Allowed: good, fine. "
        "Write `pip install 'good>=1,<2' Good`, or write it with what is installed. Nothing of this command ran."
    )


def test_one_refusal_stops_the_whole_line() -> None:
    made = plan("pip install good && pip install ./bad && python y.py")
    assert made.requests == ()
    assert made.refusal


@pytest.mark.parametrize("form", ['echo "$({})"', "echo $({})", "bash -c {}"])
def test_no_nesting_is_too_deep_to_be_read_or_refused(form: str) -> None:
    install, other = "pip install x", "ls"
    for depth in range(1, 10):
        install, other = (form.format(shlex.quote(text) if "-c" in form else text) for text in (install, other))
        assert ("nested too deeply" in plan(install).refusal) == (depth > 4)
        assert plan(install).requests == ()
        assert plan(install).refusal
        assert plan(other) == CommandPlan(command=other)
    deep = "$(" * 2000 + "pip install x" + ")" * 2000
    assert plan(deep).requests == ()


@given(st.text(alphabet="pi nstalxm-rcd'\"\\$(){}`;|&<>#=\n\t0@/.~!*", max_size=120))
def test_any_line_can_be_planned(text: str) -> None:
    made = plan(text)
    if not made.requests and not made.refusal and "true" not in made.command:
        assert made.command == text


@given(st.dictionaries(st.sampled_from(list(FILES)), st.text(max_size=60)))
def test_any_file_can_be_read(files: Mapping[str, str]) -> None:
    options = ExecutionOptions(code=True, install=InstallOptions(enabled=True))
    for command in ("pip install -r requirements.txt", "npm install"):
        made = plan_command(command, options=options, read_file=files.get)
        assert all(not package.spec.startswith("-") for request in made.requests for package in request.packages)
