from __future__ import annotations

from typing import Any

import pytest

from satchel.errors import SetupError
from satchel.ports.models import EmbeddedOptions, UpstreamOptions
from satchel.settings import Settings, load
from satchel.settings.upstreams import variable_of

A, B = "http://a:1/v1", "https://b/v1"
SECRET = "sk-secret-1"


def given(*upstreams: str, **environ: str) -> Settings:
    return load({"--upstream": upstreams}, environ)


def shape(settings: Settings) -> list[tuple[str, str, str]]:
    return [
        (options.name, options.kind, options.url)
        if isinstance(options, UpstreamOptions)
        else (options.name, "embedded", options.weights)
        for options in settings.upstreams
    ]


def keys(settings: Settings) -> list[str]:
    return [options.api_key for options in settings.upstreams if isinstance(options, UpstreamOptions)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (A, ("openai", "openai", A)),
        (A + "/", ("openai", "openai", A)),
        ("http://h/v1?a=b:c", ("openai", "openai", "http://h/v1?a=b:c")),
        (f"openai:{A}", ("openai", "openai", A)),
        (f"responses:{A}", ("responses", "responses", A)),
        ("ollama:http://h:11434", ("ollama", "ollama", "http://h:11434")),
        (f"Anthropic:{B}", ("anthropic", "anthropic", B)),
        (f"mine={A}", ("mine", "openai", A)),
        (f"my.own-1=ollama:{A}", ("my.own-1", "ollama", A)),
        ("embedded", ("embedded", "embedded", "")),
        ("embedded:", ("embedded", "embedded", "")),
        ("tiny=embedded:small", ("tiny", "embedded", "small")),
        ("embedded:/models/x.gguf", ("embedded", "embedded", "/models/x.gguf")),
    ],
)
def test_one_upstream(text: str, expected: tuple[str, str, str]):
    assert shape(given(text)) == [expected]
    assert shape(load({"--upstream": text}, {})) == [expected]
    assert shape(load({}, {"SATCHEL_UPSTREAM": f"  {text}\n"})) == [expected]


def test_several_keep_their_order_and_get_names_that_differ():
    settings = given(A, f"openai-2={B}", B, f"ollama:{A}", "embedded:small", f"OLLAMA-2={A}", f"ollama:{B}")
    names = [name for name, _, _ in shape(settings)]
    assert names == ["openai", "openai-2", "openai-3", "ollama", "embedded", "OLLAMA-2", "ollama-3"]
    assert settings.origins["models.upstreams"] == "--upstream"
    several = load({}, {"SATCHEL_UPSTREAM": f"{A}  claude=anthropic:{B}\n embedded:"})
    assert [name for name, _, _ in shape(several)] == ["openai", "claude", "embedded"]
    assert load({}, {}).upstreams == ()


@pytest.mark.parametrize(
    ("upstreams", "said", "hint"),
    [
        (("localhost:1",), "it must begin with http:// or https://", "ollama:http"),
        (("opnai:http://h",), "did you mean openai:?", "ollama:http"),
        (("x=ftp://h",), "it must begin with http:// or https://", ""),
        (("ollama:localhost:11434",), "the address after ollama: must begin with http://", ""),
        (("ollama:",), "the address after ollama: must begin with", ""),
        (("=http://h",), '"" is not a name', "letters"),
        (("a b=http://h",), '"a b" is not a name', "letters"),
        ((f"a={A}", f"a={B}"), 'the name "a" is given twice', "name of its own"),
        ((f"a-b={A}", f"A.B={B}"), 'the name "A.B" is given twice', ""),
        (("embedded:http://h",), "has no address", "embedded:large"),
        (("",), "is empty", ""),
        ((A, " "), "is empty or has an empty element", ""),
    ],
)
def test_what_cannot_be_used_is_said_with_what_could(upstreams: tuple[str, ...], said: str, hint: str):
    with pytest.raises(SetupError) as caught:
        given(*upstreams)
    assert said in caught.value.message
    assert caught.value.message.startswith("--upstream")
    assert hint in caught.value.hint
    assert caught.value.code == "setting-invalid"


def test_a_variable_is_named_when_it_is_wrong():
    with pytest.raises(SetupError) as caught:
        load({}, {"SATCHEL_UPSTREAM": f"{A} nothing"})
    assert caught.value.message.startswith("SATCHEL_UPSTREAM cannot be used")
    with pytest.raises(SetupError) as caught:
        load({}, {"SATCHEL_UPSTREAM": "   "})
    assert "SATCHEL_UPSTREAM is empty" in caught.value.message


def test_a_message_shows_no_password():
    for text in (f"x:http://u:{SECRET}@h", f"ollama:u:{SECRET}@h", f"{SECRET}@h"):
        with pytest.raises(SetupError) as caught:
            given(text)
        assert SECRET not in str(caught.value.to_dict())


def test_keys_go_to_the_one_they_are_for():
    environ = {
        "SATCHEL_UPSTREAM_KEY": "first",
        "SATCHEL_UPSTREAM_KEY_CLAUDE": SECRET,
        "SATCHEL_UPSTREAM_KEY_MY_OWN": "own",
        "SATCHEL_UPSTREAM_KEY_CLAUD": "typo",
    }
    settings = load({"--upstream": ("embedded:", A, f"claude=anthropic:{B}", f"my.own={B}", f"ollama:{A}")}, environ)
    assert keys(settings) == ["first", SECRET, "own", ""]
    assert settings.origins["models.upstream_key.claude"] == "SATCHEL_UPSTREAM_KEY_CLAUDE"
    assert settings.unknown_variables == {"SATCHEL_UPSTREAM_KEY_CLAUD": "SATCHEL_UPSTREAM_KEY_CLAUDE"}
    assert SECRET not in repr(settings)
    assert keys(given(A, SATCHEL_UPSTREAM_KEY="k", SATCHEL_UPSTREAM_KEY_OPENAI="own")) == ["own"]
    assert keys(given(A, SATCHEL_UPSTREAM_KEY="k")) == ["k"]
    assert variable_of("my.own-1") == "SATCHEL_UPSTREAM_KEY_MY_OWN_1"
    with pytest.raises(SetupError) as caught:
        given(A, SATCHEL_UPSTREAM_KEY_OPENAI="  ")
    assert "SATCHEL_UPSTREAM_KEY_OPENAI is blank" in caught.value.message


@pytest.mark.parametrize("tools", ["auto", "native", "none"])
def test_whether_models_get_tools_can_be_set_for_all(tools: Any):
    settings = load({"--upstream": (A, f"ollama:{B}", "embedded:"), "--model-tools": tools}, {})
    assert [options.tools for options in settings.upstreams if isinstance(options, UpstreamOptions)] == [tools] * 2
    with pytest.raises(SetupError) as caught:
        load({}, {"SATCHEL_MODEL_TOOLS": "some"})
    assert "SATCHEL_MODEL_TOOLS" in caught.value.message


def test_an_embedded_one_takes_the_settings_of_the_embedded_model():
    environ = {"SATCHEL_THREADS": "3", "SATCHEL_CACHE_DIR": "/c", "SATCHEL_GGUF": "/w.gguf"}
    settings = load({"--upstream": (A, "embedded:", "embedded:small")}, environ)
    assert settings.upstreams[1:] == (
        EmbeddedOptions(name="embedded", weights="/w.gguf", cache_dir="/c", threads=3),
        EmbeddedOptions(name="embedded-2", weights="small", cache_dir="/c", threads=3),
    )


@pytest.mark.parametrize("value", ["", " ", ",", "a,"])
def test_keys_of_the_server_that_are_none_are_refused(value: str):
    with pytest.raises(SetupError, match="SATCHEL_KEYS is empty or has an empty element"):
        given(A, SATCHEL_KEYS=value)
