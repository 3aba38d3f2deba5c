"""A configuration that cannot be changed without guessing, and the place in it that a person has to look at."""

BYTE_ORDER_MARK = "\ufeff"


class Misfit(ValueError):
    """The text is not what it would have to be. `line` and `column` count from 1, columns in code points."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.message, self.line, self.column = message, line, column


def misfit_at(text: str, offset: int, message: str) -> Misfit:
    """A misfit at an offset of the text."""
    line_start = text.rfind("\n", 0, offset) + 1
    marks = text.startswith(BYTE_ORDER_MARK) and line_start == 0 and offset > 0
    return Misfit(message, text.count("\n", 0, offset) + 1, offset - line_start + 1 - marks)
