from __future__ import annotations

from typing import Any

import pytest

from satchel.ports.models import UpstreamOptions
from satchel.upstream.families import FAMILIES, capabilities_of, family_of

KINDS: tuple[Any, ...] = ("openai", "responses", "ollama", "anthropic")
NAMES = {
    "mistral3": ("mistral3", "Mistral-3-24B-Instruct", "mistralai/mistral3:latest", "mistral-3.1"),
    "hunyuan-dense": ("hunyuan-dense", "tencent/Hunyuan-7B-Instruct", "hunyuan_v1_dense"),
    "diffusion-gemma": ("DiffusionGemma-4b", "google/diffusion-gemma"),
    "qwen35": ("qwen3.5-9b", "Qwen/Qwen3.6-35B-A3B", "qwen35moe", "qwen3-next-80b", "qwen3-vl-8b", "bonsai2"),
    "qwen4exp": ("qwen3.8-flash-next", "qwen4exp"),
    "gemma4": ("gemma-4-E4B-it-Q8_0.gguf", "gemma4:27b"),
    "gpt-oss": ("gpt-oss:20b", "openai/gpt-oss-120b"),
    "nemotron-h": ("nemotron-h-8b", "nvidia/Nemotron-Nano-9B-v2"),
    "muse-glimmer": ("muse-glimmer",),
    "deepseek4": ("deepseek-v4", "deepseek-v4.1-flash", "DeepSeek4"),
    "glm5": ("glm-5.1", "zai-org/GLM-5"),
    "gpt": ("gpt-5.6", "openai/gpt-4o-mini", "chatgpt-4o-latest"),
    "o": ("o3", "o4-mini", "openai/o1"),
    "claude": ("claude-sonnet-4-5", "anthropic/claude-opus-4"),
    "gemini": ("gemini-2.5-pro", "models/gemini-3-flash"),
    "grok": ("grok-4",),
    "deepseek": ("deepseek-chat", "deepseek-r1:8b"),
    "qwen": ("qwen3:8b", "Qwen/Qwen2.5-Coder-7B", "qwen-max", "qwq"),
    "llama": ("llama3.1:8b", "meta-llama/Llama-4-Scout"),
    "mistral": ("mistral-large-latest", "ministral-3b-latest", "devstral-small-2", "mistral-nemo"),
    "kimi": ("kimi-k2", "moonshotai/Kimi-K2-Instruct"),
    "glm": ("glm-4.6",),
    "minimax": ("MiniMax-M2",),
    "command": ("command-r-plus", "command-a-03-2025"),
    "granite": ("granite3.3:8b", "ibm/granite-4-h-small"),
}


def test_every_row_has_a_name_here():
    assert [row.id for row in FAMILIES] == list(dict.fromkeys(row.id for row in FAMILIES))
    assert set(NAMES) == {row.id for row in FAMILIES}


@pytest.mark.parametrize("row", FAMILIES, ids=lambda row: row.id)
def test_a_row_is_found_and_tools_are_offered_only_when_both_halves_are_there(row: Any):
    for name in NAMES[row.id]:
        assert family_of(name) == row, name
        for kind in KINDS:
            found = capabilities_of(name, UpstreamOptions(kind=kind))
            assert found.tools == ("native" if row.declared and row.parsed else "none"), (name, kind)
            assert found.tool_role == row.tool_role
            assert found.client_tools != row.diffusion


@pytest.mark.parametrize("row", FAMILIES, ids=lambda row: row.id)
def test_no_row_says_that_one_half_alone_is_enough(row: Any):
    assert row.declared == row.parsed
    assert row.tool_role or not row.parsed
    assert not row.diffusion or not row.declared


@pytest.mark.parametrize(
    "name", ["mistral-3b", "mistral3b-x", "ministral-3b-2410", "mistral-small-3.2", "hunyuan-a13b", "hunyuan-turbos"]
)
def test_names_that_only_look_like_a_family_without_tools(name: str):
    assert capabilities_of(name, UpstreamOptions()).tools == "native"


@pytest.mark.parametrize("name", ["", "unheard-of", "x" * 5000, "a/" * 500])
def test_of_an_unknown_model_the_server_is_believed_unless_it_is_ollama(name: str):
    tools = {kind: capabilities_of(name, UpstreamOptions(kind=kind)).tools for kind in KINDS}
    assert tools == {"openai": "native", "responses": "native", "ollama": "none", "anthropic": "native"}


def test_the_server_is_believed_before_a_row_and_a_setting_before_both():
    ollama = UpstreamOptions(kind="ollama")
    assert capabilities_of("diffusiongemma", ollama, said=["completion"]).client_tools is False
    can = capabilities_of("mistral3", ollama, said=["completion", "tools"])
    assert (can.tools, can.tool_role) == ("native", True)
    assert capabilities_of("qwen3", ollama, said=["completion"]).tools == "none"
    for tools in ("native", "none"):
        forced = UpstreamOptions(kind="ollama", tools=tools)
        for name, said in (("qwen3", ["tools"]), ("mistral3", []), ("unheard-of", None)):
            assert capabilities_of(name, forced, said=said).tools == tools
    forced = capabilities_of("diffusiongemma", UpstreamOptions(tools="native"))
    assert (forced.client_tools, forced.tool_role) == (True, True)


def test_reasoning_goes_back_as_its_wire_format_carries_it():
    replay = {kind: capabilities_of("deepseek-chat", UpstreamOptions(kind=kind)).reasoning_replay for kind in KINDS}
    assert replay == {"openai": "text", "responses": "opaque", "ollama": "text", "anthropic": "opaque"}
    assert capabilities_of("gpt-5", UpstreamOptions()).reasoning_replay == "opaque"
    assert capabilities_of("diffusiongemma", UpstreamOptions(kind="anthropic")).reasoning_replay == "drop"
