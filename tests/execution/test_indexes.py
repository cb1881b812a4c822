"""Where pip and npm of a host get packages from."""

from __future__ import annotations

from pathlib import Path

import pytest

from satchel.execution.indexes import node_registry, python_index


def host(tmp_path: Path, **more: str) -> dict[str, str]:
    nowhere = str(tmp_path / "none")
    return {
        "HOME": str(tmp_path), "XDG_CONFIG_DIRS": nowhere, "NPM_CONFIG_GLOBALCONFIG": nowhere, **more,
    }  # fmt: skip


def test_what_pip_is_configured_to_use(tmp_path: Path) -> None:
    file = tmp_path / "own.conf"
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    file.write_text(
        "[global]\nindex-url = https://user:hunter2@mirror.example/simple\n"
        f"extra_index_url =\n  http://second.example:8080/simple\n  file:///srv/simple\nfind-links = {wheels} ./x\n"
        "[install]\ntrusted-host = second.example\n"
    )
    index = python_index(host(tmp_path, PIP_CONFIG_FILE=str(file)))
    assert index.url == "https://mirror.example/simple"
    assert index.more == ("http://second.example:8080/simple",)
    assert index.hosts == ("mirror.example", "http://second.example:8080")
    assert index.folders == (str(wheels),)
    assert index.trusted == ("second.example",)
    assert index.has_secret
    assert "hunter2" not in repr(index)


def test_a_variable_goes_before_a_file(tmp_path: Path) -> None:
    file = tmp_path / "own.conf"
    file.write_text("[global]\nindex-url = https://file.example/simple\n")
    given = host(tmp_path, PIP_CONFIG_FILE=str(file), PIP_INDEX_URL="https://variable.example:444/simple")
    assert python_index(given).hosts == ("variable.example:444",)


@pytest.mark.parametrize("text", ["no section = 1\n", "[global\n", "\x00\xff", "[global]\nindex-url = file:///srv\n"])
def test_a_file_that_names_no_index_leaves_the_default(tmp_path: Path, text: str) -> None:
    file = tmp_path / "own.conf"
    file.write_text(text)
    index = python_index(host(tmp_path, PIP_CONFIG_FILE=str(file)))
    assert (index.url, index.hosts) == ("", ())


def test_what_npm_is_configured_to_use(tmp_path: Path) -> None:
    (tmp_path / ".npmrc").write_text(
        "registry=https://mirror.example/npm/\n@own:registry = http://own.example:4873/\n"
        "//mirror.example/npm/:_authToken=hunter2\ncafile=/srv/ca.pem\nother=${SECRET}\n"
    )
    registry = node_registry(host(tmp_path))
    assert registry.url == "https://mirror.example/npm/"
    assert dict(registry.scopes) == {"@own": "http://own.example:4873/"}
    assert registry.hosts == ("mirror.example", "http://own.example:4873")
    assert registry.certificates == "/srv/ca.pem"
    assert "hunter2" not in repr(registry)


def test_a_password_in_the_address_of_a_registry_is_taken_out(tmp_path: Path) -> None:
    registry = node_registry(host(tmp_path, npm_config_registry="https://u:hunter2@mirror.example/"))
    assert (registry.url, registry.has_secret) == ("https://mirror.example/", True)
    assert node_registry(host(tmp_path)).url == ""


@pytest.mark.parametrize("address", ["https://[bad/simple", "https://mirror.example:port/", "file:///srv", "simple"])
def test_an_address_that_cannot_be_asked_is_not_taken_for_none(tmp_path: Path, address: str) -> None:
    given = host(tmp_path, PIP_CONFIG_FILE="/dev/null", PIP_INDEX_URL=address, NPM_CONFIG_REGISTRY=address)
    index, registry = python_index(given), node_registry(given)
    assert (index.is_unusable, index.hosts) == (True, ())
    assert (registry.is_unusable, registry.hosts) == (True, ())


def test_a_registry_that_npm_would_take_from_a_variable_is_not_taken_for_none(tmp_path: Path) -> None:
    (tmp_path / ".npmrc").write_text("registry=https://${TOKEN}@mirror.example/npm/\n")
    assert node_registry(host(tmp_path)).is_unusable
    assert not node_registry(host(tmp_path, NPM_CONFIG_REGISTRY="https://own.example/")).is_unusable


def test_an_index_that_is_switched_off_is_not_replaced_by_the_default(tmp_path: Path) -> None:
    file = tmp_path / "own.conf"
    file.write_text("[global]\nno-index = true\nextra-index-url = https://second.example/simple\n")
    index = python_index(host(tmp_path, PIP_CONFIG_FILE=str(file), PIP_INDEX_URL="https://mirror.example/simple"))
    assert (index.is_offline, index.is_unusable, index.hosts) == (True, False, ())
    assert not python_index(host(tmp_path, PIP_CONFIG_FILE=str(file), PIP_NO_INDEX="0")).is_offline
