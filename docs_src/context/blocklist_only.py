"""A user who may only read: calls are checked where they are dispatched."""

from satchel.context import Assembler, Blocklist


def converse(llm, tools, run, ask, *, can_write):
    """The answer to ``ask``; ``run`` executes a call and gives its result as text."""
    blocklist = Blocklist()
    if not can_write:
        blocklist.set_blocked_tools(["write_file", "edit_file", "delete_file"])

    assembler = Assembler().register_tools(tools)
    history = [{"role": "user", "content": ask}]
    while True:
        request = assembler.set_history(history).compile()
        reply = llm(messages=request.messages, tools=request.tools)
        history.append(reply)
        if not reply.get("tool_calls"):
            return reply["content"]
        for call in reply["tool_calls"]:
            check = blocklist.check_tool_call(call)
            result = run(call) if check.allowed else check.reason
            history.append({"role": "tool", "tool_call_id": call["id"], "content": result})
