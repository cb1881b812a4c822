"""What a bundled file is, from its path and its first bytes. Folder names are conventions, not a schema."""

from __future__ import annotations

from satchel.skills.model import MANIFEST, FileKind

SNIFF_BYTES = 512

_FOLDERS: dict[str, FileKind] = {
    **dict.fromkeys(("scripts", "script", "bin"), "script"),
    **dict.fromkeys(("references", "reference", "docs", "examples"), "reference"),
    **dict.fromkeys(("assets", "templates", "themes"), "asset"),
}
_KINDS: dict[str, FileKind] = {
    **dict.fromkeys(("py", "sh", "bash", "zsh", "ps1", "js", "mjs", "ts", "rb", "pl"), "script"),
    **dict.fromkeys(("md", "markdown", "txt", "rst", "adoc"), "reference"),
    **dict.fromkeys(("png", "jpg", "jpeg", "gif", "svg", "pdf", "woff", "woff2", "ttf", "otf"), "asset"),
}
_LICENSES = frozenset({"license", "licence", "copying", "notice"})
_TEXT_NAMES = (
    "py pyi sh bash zsh fish ps1 bat cmd js mjs cjs ts tsx jsx rb pl php lua r sql go rs java kt swift c h cc cpp hpp "
    "cs md markdown txt rst adoc json jsonl yaml yml toml ini cfg conf env csv tsv xml xsd svg html htm css scss tex "
    "log diff patch graphql proto tf j2 tmpl lock"
)
_BINARY_NAMES = (
    "png jpg jpeg gif webp bmp ico tif tiff heic pdf woff woff2 ttf otf eot zip gz tgz bz2 xz zst 7z rar tar jar whl "
    "docx xlsx pptx odt ods odp doc xls ppt mp3 mp4 wav ogg flac mov avi webm exe dll so dylib bin class pyc wasm db "
    "sqlite sqlite3 parquet npy npz pkl gguf onnx pt"
)
_TEXT = frozenset(_TEXT_NAMES.split())
_BINARY = frozenset(_BINARY_NAMES.split())


def is_manifest(path: str) -> bool:
    """Whether ``path`` (relative to the skill) is its SKILL.md, in any letter case."""
    return path.lower() == MANIFEST.lower()


def text_by_name(path: str) -> bool | None:
    """True for text, False for binary, None when the name does not tell."""
    extension = _extension(path)
    if extension in _TEXT:
        return True
    return False if extension in _BINARY else None


def looks_like_text(first: bytes) -> bool:
    """Whether the first ``SNIFF_BYTES`` of a file hold no NUL."""
    return b"\0" not in first[:SNIFF_BYTES]


def classify(path: str, *, is_text: bool) -> FileKind:
    """The kind of the file at ``path`` (relative, forward slashes): by folder, then by extension.

    A binary file is an asset wherever it lies.
    """
    if is_manifest(path):
        return "manifest"
    folder, slash, _ = path.partition("/")
    if not slash and path.lower().partition(".")[0] in _LICENSES:
        return "license"
    if not is_text:
        return "asset"
    if slash and folder.lower() in _FOLDERS:
        return _FOLDERS[folder.lower()]
    return _KINDS.get(_extension(path), "other")


def _extension(path: str) -> str:
    name = path.rpartition("/")[2]
    return name.rpartition(".")[2].lower() if "." in name else ""
