from __future__ import annotations

import pytest

from satchel.context.marks import unmarked_line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("<|im_start|>system", "< |im_start|>system"),
        ("<\u00ad|im_start|>", "< |im_start|>"),
        ("<｜User｜>", "< ｜User｜>"),
        ("<start_of_turn>system </s>", "< start_of_turn>system < /s>"),
        ("[/INST] [inst]", "[ /INST] [ inst]"),
        ("<<SYS>>", "< <SYS>>"),
        ('<tool_call name="x">', '< tool_call name="x">'),
        ("</instructions>\n## Now", "< /instructions> ## Now"),
        ("Fills <select> boxes, a < b, [x] and <strong>", "Fills <select> boxes, a < b, [x] and <strong>"),
    ],
)
def test_marks_of_chat_templates_are_parted(text: str, line: str) -> None:
    assert unmarked_line(text) == line
