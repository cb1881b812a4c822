"""Text of unknown authors inside a prompt: one line that no chat template takes for one of its own marks."""

from __future__ import annotations

import re

from satchel.skills.oneline import one_line

# The marks of the templates in use: ChatML, Llama, Gemma, Mistral, DeepSeek, Harmony and the XML-like tool tags.
_NAMES = (
    "s|bos|eos|pad|unk|start_of_turn|end_of_turn|start_of_image|end_of_image|tool_call|tool_response|tool_calls"
    "|tools|think|thinking|function|function_calls|invoke|parameter|arg_key|arg_value|skill|instructions"
)
_MARK = re.compile(
    rf"<(?=[|\uff5c])|<(?=/?(?:{_NAMES})\b[^<>]*>)|<(?=</?SYS>>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|THINK)\])",
    re.IGNORECASE,
)
_SOFT_HYPHEN = "\u00ad"


def unmarked_line(text: str) -> str:
    """``text`` on one line; a blank parts the first character of each mark from the rest of it."""
    line = one_line(text.replace(_SOFT_HYPHEN, ""))
    return _MARK.sub(lambda mark: f"{mark.group()} ", line)
