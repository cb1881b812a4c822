"""Skills for a program of one's own: a chat client that leaves the loop to a Satchel server, or runs it here."""

from satchel.client.client import SkillsChatClient
from satchel.client.records import SkillsChatRequest, SkillsChatResponse, SkillToolInvocation
from satchel.client.stream import SkillsChatStream

__all__ = [
    "SkillToolInvocation",
    "SkillsChatClient",
    "SkillsChatRequest",
    "SkillsChatResponse",
    "SkillsChatStream",
]
