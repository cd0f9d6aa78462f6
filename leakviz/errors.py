"""The errors that bad input raises, worded for the person who has to act on them."""


class InputError(ValueError):
    """Input that cannot be answered with a number.

    The message names the argument, the first bad row and how many there are,
    and says what to do.

    Examples
    --------
    >>> from leakviz import Rule
    >>> try:
    ...     Rule(tau=7)
    ... except InputError as error:
    ...     print(error)
    tau must lie between 0 and 1, got 7
    """
