"""What the embedded model is shown: the choice of what it reads or runs next, and the answer. Pure.

Measured on small instruct models: they do not call tools by themselves, but they pick well from a list when a grammar
allows nothing else, a few example turns show the task, and "none of them" must be clearly likelier than usual. They
answer best when what was read stands in the user's own message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from satchel.chat.messages import Json, Media, Message, ToolOutput, message
from satchel.chat.request import ChatRequest, Choice, Sampling, ToolPolicy, ToolSpec
from satchel.errors import UpstreamError
from satchel.upstream.embedded.examples import (
    ACT,
    ACT_LIST,
    ACT_TURNS,
    ANSWER,
    ANSWER_FAILED,
    ANSWER_RAN,
    ANSWER_RESULT,
    LOOK,
    LOOK_LIST,
    LOOK_TURNS,
    NONE,
    NONE_LINE,
    PICK,
    PICK_LIST,
    PICK_TURNS,
    RAN,
)

_LABEL_CHARS = (320, 160, 80, 0)
_ASKED_CHARS = 2000
_EARLIER_CHARS = 300
_OPTION_TOKENS = 96
_TOP = 20

# From this share of the probability on, "nothing more" is believed even where something else is likelier.
_NONE_FROM = 0.1
_TEXT_FROM = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One call that the model may choose. ``name`` is what it writes to choose it.

    ``arguments`` is None where it writes them all; ``open`` has the schemas of those that it writes beside these.
    """

    name: str
    label: str
    tool: ToolSpec
    arguments: Mapping[str, str] | None
    open: Mapping[str, Json] = field(default_factory=dict[str, Json])


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One choice. ``otherwise`` is what the model writes to read nothing, "" when it must choose."""

    options: tuple[Option, ...]
    otherwise: str
    threshold: float
    messages: tuple[Message, ...]

    def request(self) -> ChatRequest:
        """The generation that makes the choice: a grammar allows the options' names and nothing else."""
        names = [option.name for option in self.options] + ([self.otherwise] if self.otherwise else [])
        grammar = "root ::= " + " | ".join(json.dumps(name, ensure_ascii=False) for name in names)
        extra: dict[str, Json] = {"grammar": grammar, "logprobs": True, "top_logprobs": _TOP}
        return ChatRequest(
            messages=self.messages,
            sampling=Sampling(temperature=0.0),
            max_tokens=_OPTION_TOKENS,
            extra={"openai-chat": extra},
        )

    def picked(self, text: str, likely: Mapping[str, float]) -> Option | None:
        """The option that was written, unless reading nothing was likely enough all the same.

        ``likely`` are the likeliest first tokens with their probabilities.
        """
        option = next((option for option in self.options if option.name == text), None)
        if option is None or not self.otherwise:
            return option
        nothing = something = 0.0
        for token, probability in likely.items():
            begins_option = any(other.name.startswith(token) for other in self.options)
            if self.otherwise.startswith(token) and not begins_option:
                nothing += probability
            elif begins_option:
                something += probability
        return None if nothing >= self.threshold * (nothing + something) > 0 else option


def next_step(request: ChatRequest, *, context_tokens: int) -> Step | None:
    """The choice to be made before the answer, None when there is nothing to choose."""
    policy = request.tool_choice or ToolPolicy()
    if policy.mode == "none":
        return None
    asked = open_request(request.messages)
    room = context_tokens  # in characters: a quarter of the window
    made = [(use.name, _object(use.arguments)) for item in _this_turn(request.messages) for use in item.tool_uses]
    if policy.mode in {"required", "named"}:
        options = _forced_options(request.tools, policy)
        return _pick(options, asked, room, otherwise="") if options else None
    if not made:
        options = tuple(_option(spec, choice) for spec in request.tools for choice in spec.choices)
        return _pick(options, asked, room, otherwise=NONE) if options else None
    options = tuple(
        _option(spec, choice)
        for spec in request.tools
        for choice in spec.choices
        if choice.label and _follows(choice, spec.name, made)
    )
    return _look(_once(options), request.messages, asked, room) if options else None


def answer_request(request: ChatRequest, *, default_max_tokens: int) -> ChatRequest:
    """The generation of the answer: no tools, and what tools told stands in the message that asked for it."""
    system: list[str] = []
    turns: list[tuple[str, str]] = []
    outputs: list[ToolOutput] = []
    names: dict[str, str] = {}
    for item in request.messages:
        names |= {use.call_id: use.name for use in item.tool_uses}
        if item.role in {"system", "developer"}:
            system.append(_text(item))
        elif item.role == "tool":
            outputs += [part for part in item.parts if isinstance(part, ToolOutput)]
        elif item.role == "user" or item.text:
            outputs = _fold(turns, outputs, names)
            turns.append((item.role, _text(item)))
    _fold(turns, outputs, names)
    built = [message("system", "\n\n".join(system))] if system else []
    built += [message("user" if role == "user" else "assistant", text) for role, text in turns]
    sampling = request.sampling
    # A GGUF file may bring a penalty with it.
    code: dict[str, Json] = {"repeat_penalty": 1.0} if sampling.is_code else {}
    kept = code | dict(request.extra.get("openai-chat", {}))
    dropped = {"functions", "function_call", "parallel_tool_calls", "stream_options", "max_completion_tokens", "model"}
    return ChatRequest(
        messages=tuple(built),
        sampling=Sampling(
            temperature=0.0 if sampling.temperature is None else sampling.temperature,
            top_p=sampling.top_p,
            seed=sampling.seed,
            stop=sampling.stop,
        ),
        max_tokens=default_max_tokens if request.max_tokens is None else request.max_tokens,
        extra={"openai-chat": {name: value for name, value in kept.items() if name not in dropped}},
    )


def _pick(options: Sequence[Option], asked: str, room: int, *, otherwise: str) -> Step:
    options, listed = _listed(_unambiguous(options, otherwise), room)
    turns = [turn for turn in PICK_TURNS if otherwise or turn[1] != NONE]
    last = f"\n{NONE_LINE}" if otherwise else ""
    return Step(
        options=options,
        otherwise=otherwise,
        threshold=_NONE_FROM,
        messages=_few_shot(PICK, PICK_LIST + last, turns, f"List:\n{listed}{last}", asked),
    )


def _look(options: Sequence[Option], messages: Sequence[Message], asked: str, room: int) -> Step:
    """What goes on with what was read: its files, and what it lets run."""
    acts = any(option.open for option in options)
    options, listed = _listed(_unambiguous(options, "text"), room // 2)
    labels = {option.label for option in options}
    read = [body_of(part.text, labels) for part in turn_outputs(messages)]
    text = _cut("\n".join(read), room * 2)
    task, example, turns = (ACT, ACT_LIST, ACT_TURNS) if acts else (LOOK, LOOK_LIST, LOOK_TURNS)
    head = "Scripts and other files" if acts else "Other files"
    return Step(
        options=options,
        otherwise="text",
        threshold=_TEXT_FROM,
        messages=_few_shot(task, example, turns, f"Text:\n{text}\n\n{head}:\n{listed}", asked),
    )


def _few_shot(
    system: str, example: str, turns: Sequence[tuple[str, str]], given: str, asked: str
) -> tuple[Message, ...]:
    """The task, its example turns (the list only before the first), and the real list with the request."""
    built = [message("system", system)]
    for number, (question, reply) in enumerate(turns):
        ask = f"Request: {question}"
        built += [message("user", ask if number else f"{example}\n\n{ask}"), message("assistant", reply)]
    return (*built, message("user", f"{given}\n\n{asked}"))


def _option(spec: ToolSpec, choice: Choice) -> Option:
    """Named by the skill for its SKILL.md, by the path for another file, also when that is to be run."""
    arguments = choice.arguments
    path = arguments.get("path", "")
    name = arguments.get("skill", "") if path in {"", "SKILL.md"} or "skill" not in arguments else path
    if "offset" in arguments:
        name = f"rest of {path}"
    if choice.open and path:
        name = f"run {path}"
    name = name or " ".join(arguments.values())
    return Option(name=name, label=choice.label, tool=spec, arguments=arguments, open=choice.open)


def _forced_options(tools: Sequence[ToolSpec], policy: ToolPolicy) -> tuple[Option, ...]:
    options: list[Option] = []
    for spec in tools:
        if policy.mode == "named" and spec.name.casefold() != policy.name.casefold():
            continue
        if spec.choices:
            options += [_option(spec, choice) for choice in spec.choices]
        else:
            options.append(Option(name=spec.name, label=spec.description, tool=spec, arguments=None))
    return tuple(options)


def _follows(choice: Choice, tool: str, made: Sequence[tuple[str, Mapping[str, Json]]]) -> bool:
    """Whether a choice goes on with the last call of this turn, and was not made yet.

    Reading leads to more reading with the same tool or to what acts, and that to the answer.
    """
    if any(choice.arguments.items() <= arguments.items() for _, arguments in made):
        return False
    name, arguments = made[-1]
    wanted = choice.arguments.get("skill")
    return wanted is not None and arguments.get("skill") == wanted and (name != tool if choice.open else name == tool)


def _once(options: Sequence[Option]) -> tuple[Option, ...]:
    """Without reading what can be run: the instructions say what it is for."""
    acts = [option.arguments for option in options if option.open]
    return tuple(option for option in options if option.open or option.arguments not in acts)


def _object(text: str) -> Mapping[str, Json]:
    try:
        raw = cast("Json", json.loads(text))
    except ValueError:
        return {}
    return raw if isinstance(raw, dict) else {}


def _unambiguous(options: Sequence[Option], otherwise: str) -> tuple[Option, ...]:
    """Options with names of their own on one line; a later one of the same name says which skill it means."""
    taken = {otherwise}
    result: list[Option] = []
    for option in options:
        name = " ".join(option.name.split()) or option.tool.name
        if name in taken and option.arguments is not None:
            name = f"{' '.join(option.arguments.get('skill', option.tool.name).split())}/{name}"
        if name not in taken:
            taken.add(name)
            label = " ".join(option.label.split())
            result.append(replace(option, name=name, label=label))
    return tuple(result)


def _listed(options: tuple[Option, ...], room: int) -> tuple[tuple[Option, ...], str]:
    """The options as a list of at most ``room`` characters: labels are shortened first, then late options go."""
    lines: list[str] = []
    for limit in _LABEL_CHARS:
        lines = [_line(option, limit) for option in options]
        if _size(lines) <= room:
            break
    while len(lines) > 1 and _size(lines) > room:
        lines.pop()
    return options[: len(lines)], "\n".join(lines)


def _size(lines: Sequence[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def _line(option: Option, limit: int) -> str:
    return f"- {option.name}: {_cut(option.label, limit)}" if limit and option.label else f"- {option.name}"


def _cut(text: str, limit: int) -> str:
    """At most about ``limit`` characters; what is left out is in the middle, where requests say least."""
    if len(text) <= limit:
        return text
    head = limit * 3 // 4
    return f"{text[:head].rstrip()} ... {text[len(text) - (limit - head) :].lstrip()}"


def open_request(messages: Sequence[Message]) -> str:
    """The request that is open, with the one before it: a follow-up makes no sense alone."""
    texts = [_text(item) for item in messages if item.role == "user"]
    asked = f"Request: {_cut(texts[-1], _ASKED_CHARS)}" if texts else "Request:"
    return f"Earlier request: {_cut(texts[-2], _EARLIER_CHARS)}\n{asked}" if len(texts) > 1 else asked


def _this_turn(messages: Sequence[Message]) -> Sequence[Message]:
    last = max((place for place, item in enumerate(messages) if item.role == "user"), default=-1)
    return messages[last + 1 :]


def turn_outputs(messages: Sequence[Message]) -> list[ToolOutput]:
    """What tools told since the last thing that the user said."""
    return [part for item in _this_turn(messages) for part in item.parts if isinstance(part, ToolOutput)]


def body_of(output: str, labels: set[str]) -> str:
    """What a file says for itself: without the header of the page, frontmatter, index and the lines that point on."""
    text = output.partition("\n\n")[2] if output.startswith("Skill: ") else output
    if text.startswith("---\n"):
        text = text.partition("\n---\n")[2] or text
    text = text.partition("\n[Files of this skill,")[0]
    lines = [line.rstrip() for line in text.splitlines()]
    return "\n".join(line for line in lines if line and " ".join(line.split()) not in labels)


def _fold(turns: list[tuple[str, str]], outputs: Sequence[ToolOutput], names: Mapping[str, str]) -> list[ToolOutput]:
    """Puts what tools told into the user's message before it; returns an empty list for what comes next."""
    if outputs:
        task, shown = _task(outputs, names)
        documents = "\n\n".join(_told(part, names) for part in shown)
        place = next((place for place in reversed(range(len(turns))) if turns[place][0] == "user"), None)
        if place is None:
            turns.append(("user", documents))
        elif task == ANSWER_RESULT and _tool(outputs[0], names) != _tool(outputs[-1], names):
            # Beside instructions that show the command, a result in the same message is answered with the command.
            asked = turns[place][1]
            read = "\n\n".join(body_of(part.text, set()) for part in outputs[:-1])
            turns[place] = ("user", f"{read}\n\nRequest: {asked}")
            turns += [("assistant", f"{RAN}\n{outputs[-1].text}"), ("user", f"{ANSWER_RAN}\nMy request was: {asked}")]
        else:
            turns[place] = ("user", f"{task}\n\n{documents}\n\nRequest: {turns[place][1]}")
    return []


def _task(outputs: Sequence[ToolOutput], names: Mapping[str, str]) -> tuple[str, Sequence[ToolOutput]]:
    """How to answer from what, the last of which decides. What failed stands alone: figures beside it get used."""
    last = outputs[-1]
    if last.is_error:
        return (ANSWER, outputs) if _tool(last, names) == _tool(outputs[0], names) else (ANSWER_FAILED, [last])
    return (ANSWER if last.text.startswith("Skill: ") else ANSWER_RESULT), outputs


def _told(part: ToolOutput, names: Mapping[str, str]) -> str:
    return part.text if part.text.startswith("Skill: ") else f"Result of {_tool(part, names)}:\n{part.text}"


def _tool(part: ToolOutput, names: Mapping[str, str]) -> str:
    return part.name or names.get(part.call_id, "a tool")


def _text(item: Message) -> str:
    if any(isinstance(part, Media) for part in item.parts):
        raise UpstreamError(
            "upstream-rejected",
            "The embedded model reads text only; the conversation holds a picture, sound or document.",
            hint="Use another model server for this, with --upstream.",
        )
    return item.text
