"""Messages of the library in the words of the command line."""

from __future__ import annotations

import re
from collections.abc import Sequence

import click

__all__ = ["in_options"]

# A name elsewhere may be a user's, such as a column's.
_BEFORE_NAME = r"(?:(?<=^)|(?<=\bpass )|(?<=\bleave )|(?<=\band ))"


def in_options(message: str, parameters: Sequence[click.Parameter], given: Sequence[str]) -> str:
    """A message with options in place of Python's arguments, such as `--mode append` for `mode='append'`.

    Args:
        message: the message.
        parameters: the options; what is no option is left as it is.
        given: the words of the command line, which are left as they are where the message repeats them.
    """
    mistaken = {word for word in given if word in message and _translated(word, parameters) != word}
    if not mistaken:
        return _translated(message, parameters)
    parts = re.split(f"({'|'.join(map(re.escape, sorted(mistaken, key=len, reverse=True)))})", message)
    return "".join(part if number % 2 else _translated(part, parameters) for number, part in enumerate(parts))


def _translated(text: str, parameters: Sequence[click.Parameter]) -> str:
    text = text.replace("create='or_replace'", "--or-replace")
    for parameter in parameters:
        name, option = parameter.name, parameter.opts[0]
        if name is None or not option.startswith("--"):
            continue
        text = re.sub(rf"\b{name}=True", option, text)
        text = re.sub(rf"\b{name}='(\w+)'", rf"{option} \1", text)
        if "_" in name:
            text = re.sub(rf"{_BEFORE_NAME}{name}\b(?!['.])", option, text)
    return text
