"""Files beside a skill: read beforehand, or when the model asks for them."""

from satchel import discover
from satchel.context import Assembler
from satchel.errors import PathError

READ_FILE = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Read a file that the active skill refers to, by the path that its instructions give.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}


def eager(skills_dir, system):
    """An assembler whose prompt holds the file already."""
    library = discover([skills_dir])
    schema = library.read("db-debug", "docs/db-schema.md").text
    skill = library.load("db-debug")
    return Assembler().set_system_prompt(f"{system}\n\n## DB schema\n{schema}").activate_skill(skill)


def lazy(skills_dir, system):
    """An assembler, and what answers the model's calls to ``read_file``."""
    library = discover([skills_dir])
    assembler = Assembler().set_system_prompt(system).activate_skill(library.load("db-debug"))

    def read_file(path):
        try:
            return library.read("db-debug", path).text
        except PathError as error:
            return f"{error.message} {error.hint}".strip()

    return assembler.register_tools([READ_FILE]), read_file
