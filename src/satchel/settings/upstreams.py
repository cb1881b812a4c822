"""Reads what names a model server: ``[NAME=][KIND:]URL``, or ``[NAME=]embedded[:WEIGHTS]``; and the keys for them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, get_args

from satchel.errors import SetupError
from satchel.ports.models import EmbeddedOptions, UpstreamOptions
from satchel.skills.names import near_names

KEY_VARIABLE = "SATCHEL_UPSTREAM_KEY"

_Kind = Literal["openai", "responses", "ollama", "anthropic"]
_KINDS: dict[str, _Kind] = {kind: kind for kind in get_args(_Kind)}
_EMBEDDED = "embedded"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HINT = "For example http://127.0.0.1:8080/v1, ollama:http://127.0.0.1:11434 or claude=anthropic:https://HOST."

Upstream = UpstreamOptions | EmbeddedOptions


def read_upstreams(
    given: Sequence[str], *, origin: str, common: UpstreamOptions, embedded: EmbeddedOptions
) -> tuple[Upstream, ...]:
    """The options of each, with names that are all different: the given one, else its kind with a number if need be.

    ``common`` and ``embedded`` hold what is not said there. ``origin`` is what gave them, for messages. Raises
    ``SetupError``.
    """
    read = [_read(text, origin, common, embedded) for text in given]
    taken: set[str] = set()
    for name in (name for name, _ in read if name):
        if variable_of(name) in taken:
            raise _unusable(origin, f'the name "{name}" is given twice', "Give each upstream a name of its own.")
        taken.add(variable_of(name))
    named: list[Upstream] = []
    for given_name, options in read:
        name = given_name or _free(options.kind if isinstance(options, UpstreamOptions) else _EMBEDDED, taken)
        taken.add(variable_of(name))
        named.append(replace(options, name=name))
    return tuple(named)


def variable_of(name: str) -> str:
    """The variable that holds the key of one: SATCHEL_UPSTREAM_KEY_MY_SERVER for "my-server"."""
    return f"{KEY_VARIABLE}_{re.sub('[^A-Z0-9]', '_', name.upper())}"


def with_keys(
    upstreams: Sequence[Upstream], default_key: str, environ: Mapping[str, str]
) -> tuple[tuple[Upstream, ...], dict[str, str]]:
    """The options with their keys, and the variable that each key of its own came from, by name.

    ``default_key`` is for the first server alone: a key goes nowhere that it was not meant for. Raises ``SetupError``.
    """
    keyed: list[Upstream] = []
    origins: dict[str, str] = {}
    for options in upstreams:
        if isinstance(options, EmbeddedOptions):
            keyed.append(options)
            continue
        variable = variable_of(options.name)
        key = environ.get(variable, "")
        if key and not key.strip():
            raise SetupError("setting-invalid", f"{variable} is blank.", hint="Leave it out, or give it a value.")
        if key:
            origins[options.name] = variable
        is_first = not any(isinstance(before, UpstreamOptions) for before in keyed)
        keyed.append(replace(options, api_key=key or (default_key if is_first else "")))
    return tuple(keyed), origins


def _read(
    text: str, origin: str, common: UpstreamOptions, embedded: EmbeddedOptions
) -> tuple[str, UpstreamOptions | EmbeddedOptions]:
    name, rest = _split_name(text, origin)
    kind, colon, address = rest.partition(":")
    kind = kind.strip().casefold()
    if kind == _EMBEDDED:
        if "://" in address:
            raise _unusable(
                origin,
                "the embedded model runs in this process and has no address",
                "embedded:, embedded:large, embedded:small or embedded:FILE.gguf",
            )
        return name, replace(embedded, weights=address or embedded.weights)
    if kind in _KINDS:
        rest = address
    elif kind not in {"http", "https"}:
        near = near_names(kind, [*_KINDS, _EMBEDDED], 1) if colon else ()
        meant = "".join(f"did you mean {known}:? " for known in near)
        kinds = ", ".join(f"{known}:" for known in (*_KINDS, _EMBEDDED))
        raise _unusable(origin, f"{meant}it must begin with http:// or https://, or with one of {kinds}", _HINT)
    if not rest.startswith(("http://", "https://")):
        raise _unusable(origin, f"the address after {kind}: must begin with http:// or https://", _HINT)
    return name, replace(common, kind=_KINDS.get(kind, "openai"), url=rest.rstrip("/"))


def _split_name(text: str, origin: str) -> tuple[str, str]:
    head, equals, rest = text.partition("=")
    if not equals or ":" in head or "/" in head:
        return "", text
    if not _NAME.fullmatch(head):
        raise _unusable(
            origin,
            f'"{head}" is not a name',
            "A name has letters, digits, dots, hyphens and underscores, such as local=ollama:http://127.0.0.1:11434.",
        )
    return head, rest


def _free(kind: str, taken: set[str]) -> str:
    number = 1
    name = kind
    while variable_of(name) in taken:
        number += 1
        name = f"{kind}-{number}"
    return name


def _unusable(origin: str, why: str, hint: str) -> SetupError:
    return SetupError(
        "setting-invalid", f"{origin} cannot be used: {why}.", hint=hint, data={"key": "models.upstreams"}
    )
