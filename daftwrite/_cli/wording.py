"""Messages of the library in the words of the command line."""

from __future__ import annotations

import re
from collections.abc import Sequence

import click

__all__ = ["in_options"]


def in_options(message: str, parameters: Sequence[click.Parameter]) -> str:
    """A message with options in place of Python's arguments, such as `--mode append` for `mode='append'`.

    Args:
        message: the message.
        parameters: the options; what is no option is left as it is.
    """
    message = message.replace("create='or_replace'", "--or-replace")
    for parameter in parameters:
        name, option = parameter.name, parameter.opts[0]
        if name is None or not option.startswith("--"):
            continue
        word = rf"(?<![\w'.-]){name}"
        message = re.sub(rf"{word}=True", option, message)
        message = re.sub(rf"{word}='(\w+)'", rf"{option} \1", message)
        if "_" in name:
            message = re.sub(rf"{word}(?![\w'])", option, message)
    return message
