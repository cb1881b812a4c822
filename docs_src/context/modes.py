"""Modes: a skill says what it needs, and the program blocks the rest."""

from satchel import inline
from satchel.context import Assembler, Blocklist

MODES = [
    inline(
        name="planning",
        description="Plans before anything is edited",
        instructions="Read the code, list the files that are affected, and write the plan down.",
        allowed_tools=["read_file", "grep", "list_dir"],
    ),
    inline(
        name="editing",
        description="Carries out a plan",
        instructions="Carry out the plan one step at a time. Run the tests after every change.",
        allowed_tools=["edit_file", "run_tests", "read_file"],
    ),
]


class ModalAgent:
    """An agent that is in one mode at a time."""

    def __init__(self, tools):
        self.assembler = Assembler().register_tools(tools).register_skills(MODES)
        self.blocklist = Blocklist()

    def switch_mode(self, name):
        """From here on the mode's instructions hold, and only the tools that it names may run."""
        skill = self.assembler.activate_skill(name).get_active_skill()
        names = [tool["function"]["name"] for tool in self.assembler.get_all_tools()]
        self.blocklist.set_blocked_tools([name for name in names if name not in skill.allowed_tools])

    def step(self, llm, run, history, stage):
        """One generation in the mode of this stage, with its calls answered; what it adds to the history."""
        self.switch_mode(stage)
        request = self.assembler.set_history(history).compile()
        reply = llm(messages=request.messages, tools=request.tools)
        added = [reply]
        for call in reply.get("tool_calls") or []:
            check = self.blocklist.check_tool_call(call)
            result = run(call) if check.allowed else check.reason
            added.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        return added
