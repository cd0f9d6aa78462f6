"""Read a file of features, or say what has to be answered before it can be read."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leakviz.embeddings.stores import MAX_BYTES, ArrayFacts, Store, open_store
from leakviz.errors import InputError
from leakviz.matrices import Progress, as_features, as_labels
from leakviz.predictions.records import Option
from leakviz.predictions.sources import quoted

Role = Literal["fit", "id_test", "ood_test", "fit_labels", "id_test_labels", "ood_class"]
TABLES: tuple[Role, ...] = ("fit", "id_test", "ood_test")
LABELS: tuple[Role, ...] = ("fit_labels", "id_test_labels")
ROLES: tuple[Role, ...] = (*TABLES, *LABELS, "ood_class")

_ASKED = {
    "fit": "Which array holds the features that the detectors are fitted on?",
    "id_test": "Which array holds the features of the in-distribution test rows?",
    "ood_test": "Which array holds the features of the rows designated as OOD?",
}


@dataclass(frozen=True)
class EmbeddingsQuestion:
    """Something about a file that must not be guessed.

    Attributes
    ----------
    role : str
        The argument of `read_embeddings` that answers it.
    text : str
        The question. Plain text, never HTML.
    options : tuple of Option
        The possible answers, in the order of the file.
    """

    role: Role
    text: str
    options: tuple[Option, ...]


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Features in their roles, read from a file.

    Attributes
    ----------
    fit, id_test, ood_test : numpy.ndarray
        Shapes (n, D), (a, D) and (b, D), in the type of the file. Read-only.
    fit_labels, id_test_labels : numpy.ndarray or None
        Shapes (n,) and (a,), whole numbers or text. Read-only.
    ood_class : tuple or None
        The designated classes, written as the labels are.
    name : str
        The file's name.
    arrays : dict of str to str
        The arrays that were read, by role.
    decided : tuple of str
        What was decided on the way, one sentence each. Plain text, never HTML.
    content_hash : str
        SHA-256 of everything above but names, in hex.
    """

    fit: NDArray[Any] = field(repr=False)
    id_test: NDArray[Any] = field(repr=False)
    ood_test: NDArray[Any] = field(repr=False)
    fit_labels: NDArray[Any] | None = field(repr=False)
    id_test_labels: NDArray[Any] | None = field(repr=False)
    ood_class: tuple[Any, ...] | None
    name: str
    arrays: dict[str, str]
    decided: tuple[str, ...]
    content_hash: str

    def arguments(self) -> dict[str, Any]:
        """Return what `leakviz.audit_split` takes: ``audit_split(**embeddings.arguments())``."""
        return {role: getattr(self, role) for role in ROLES}


@dataclass(frozen=True, eq=False)
class EmbeddingsInspection:
    """A file of arrays, opened, and what is still open about it.

    Attributes
    ----------
    name : str
        The file's name. Plain text, never HTML.
    format : {"npz", "npy", "parquet", "netcdf"}
        By the content, never by the name.
    arrays : tuple of ArrayFacts
        What the file holds.
    candidates : dict of str to tuple of str
        The arrays that can have each role, in the order of the file; for
        ``"ood_class"`` the classes of the fit labels.
    answers : dict of str to object
        What is settled: what was said, and what has its role as its name.
    questions : tuple of EmbeddingsQuestion
        What is open. Empty when the file can be read.
    decided : tuple of str
        What was decided without asking, one sentence each.
    problem : str or None
        Why the file cannot be read with these answers, or None.
    """

    name: str
    format: str
    arrays: tuple[ArrayFacts, ...]
    candidates: dict[str, tuple[str, ...]]
    answers: dict[str, Any]
    questions: tuple[EmbeddingsQuestion, ...]
    decided: tuple[str, ...]
    problem: str | None
    _store: Store = field(repr=False)
    _said: dict[str, Any] = field(repr=False)

    def answer(self, **answers: Any) -> EmbeddingsInspection:
        """Answer questions; the file is not read again.

        Parameters
        ----------
        **answers
            The roles, as for `read_embeddings`. None takes an earlier answer back.

        Returns
        -------
        EmbeddingsInspection
            With the questions that are open now.
        """
        unknown = set(answers) - set(ROLES)
        if unknown:
            raise InputError(
                f"there is no question {sorted(unknown)[0]!r}. Answer one of {', '.join(ROLES)}."
            )
        return _inspection(self._store, {**self._said, **answers})

    def read(self, *, progress: Progress | None = None) -> Embeddings:
        """Return the features.

        Parameters
        ----------
        progress : callable, optional
            Called as ``progress(done_numbers, all_numbers)`` after each array.

        Raises
        ------
        InputError
            Where a question is open, the answers do not fit the file, or an
            array is no table of finite numbers.
        """
        if self.problem is not None:
            raise InputError(self.problem)
        if self.questions:
            asked = " ".join(_in_one_line(question) for question in self.questions)
            raise InputError(f"{quoted(self.name)}: {asked}")
        return _read(self, progress)


def inspect_embeddings(
    file: Any,
    *,
    fit: str | None = None,
    id_test: str | None = None,
    ood_test: str | None = None,
    fit_labels: str | None = None,
    id_test_labels: str | None = None,
    ood_class: object = None,
    role_column: str | None = None,
    label_column: str | None = None,
    name: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> EmbeddingsInspection:
    """Open a file of features and say what is known and what is open; features are not loaded.

    Parameters
    ----------
    file, fit, id_test, ood_test, fit_labels, id_test_labels, ood_class, role_column, label_column, name, max_bytes
        As for `read_embeddings`; whatever is given here is not asked.

    Returns
    -------
    EmbeddingsInspection
        Its `questions` are to be answered with `EmbeddingsInspection.answer`,
        until `EmbeddingsInspection.read` can be called.

    Raises
    ------
    InputError
        Where the file cannot be opened. What is wrong with an array is in `problem`.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> np.savez(file, train=np.ones((9, 2)), id_test=np.ones((5, 2)), ood_test=np.zeros((5, 2)))
    >>> found = inspect_embeddings(file, name="emb.npz")
    >>> [(question.role, [option.value for option in question.options]) for question in found.questions]
    [('fit', ['train'])]
    >>> found.answer(fit="train").questions
    ()
    """
    said = {
        "fit": fit,
        "id_test": id_test,
        "ood_test": ood_test,
        "fit_labels": fit_labels,
        "id_test_labels": id_test_labels,
        "ood_class": ood_class,
    }
    store = open_store(
        file, name=name, max_bytes=max_bytes, role_column=role_column, label_column=label_column
    )
    return _inspection(store, said)


def read_embeddings(
    file: Any,
    *,
    fit: str | None = None,
    id_test: str | None = None,
    ood_test: str | None = None,
    fit_labels: str | None = None,
    id_test_labels: str | None = None,
    ood_class: object = None,
    role_column: str | None = None,
    label_column: str | None = None,
    name: str | None = None,
    progress: Progress | None = None,
    max_bytes: int = MAX_BYTES,
) -> Embeddings:
    """Read features in their roles from a file, and guess nothing.

    Arrays named as their role are taken as such. Where no array has the role
    ``ood_test``, but `ood_class` and labels of the test rows are there, the test
    rows of that class are the OOD rows.

    Parameters
    ----------
    file : path, bytes, binary file object, or dict of role to such
        .npz; Parquet (one column that names each row's role, an optional column
        of labels, and the features, in floating-point columns or one column of
        lists); netCDF-4 or other HDF5; recognised by its content. A dict gives
        one .npy per role. Pickles, and arrays of Python objects, which are
        pickles inside, are refused.
    fit, id_test, ood_test : str, optional
        The names of the arrays (in Parquet: the values of the role column) with
        the features of the fit rows, the ID test rows and the OOD rows.
    fit_labels, id_test_labels : str, optional
        The names of the arrays with the classes of the fit and ID test rows.
    ood_class : label or list of labels, optional
        The class that the OOD rows were designated from. By default what an
        array of that name says.
    role_column, label_column : str, optional
        Of Parquet; by default the columns named role or split, and label.
    name : str, optional
        What to call the file, for bytes and file objects.
    progress : callable, optional
        Called as ``progress(done_numbers, all_numbers)`` after each array.
    max_bytes : int, default 4_000_000_000
        Limit for the size of the file and for what it unpacks to, in bytes.

    Returns
    -------
    Embeddings

    Raises
    ------
    InputError
        Where the file cannot be opened, a role has no array or could have
        several, or an array is no table of finite numbers.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> np.savez(file, fit=np.ones((9, 2)), id_test=np.ones((5, 2)), ood_test=np.zeros((5, 2)))
    >>> embeddings = read_embeddings(file, name="emb.npz")
    >>> embeddings.fit.shape, embeddings.ood_test.shape
    ((9, 2), (5, 2))
    >>> embeddings.decided
    ('fit, id_test and ood_test are the arrays of that name.',)
    """
    found = inspect_embeddings(
        file,
        fit=fit,
        id_test=id_test,
        ood_test=ood_test,
        fit_labels=fit_labels,
        id_test_labels=id_test_labels,
        ood_class=ood_class,
        role_column=role_column,
        label_column=label_column,
        name=name,
        max_bytes=max_bytes,
    )
    return found.read(progress=progress)


def _in_one_line(question: EmbeddingsQuestion) -> str:
    options = "; ".join(option.text for option in question.options)
    return f"{question.text} Say {question.role}='...': {options or 'the file holds none that could be it'}."


def _inspection(store: Store, said: dict[str, Any]) -> EmbeddingsInspection:
    answers: dict[str, Any] = {role: value for role, value in said.items() if value is not None}
    tables = tuple(f.name for f in store.facts.values() if len(f.shape) == 2 and f.dtype != "text")
    labels = tuple(f.name for f in store.facts.values() if len(f.shape) == 1)
    candidates: dict[str, tuple[str, ...]] = {
        role: tables if role in TABLES else labels for role in ROLES if role != "ood_class"
    }
    decided, questions = list(store.words), []
    problem = None
    named = [role for role in (*TABLES, *LABELS) if role not in answers and role in store.facts]
    answers.update({role: role for role in named})
    if named:
        listed = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
        decided.append(f"{listed} {'is the array' if len(named) == 1 else 'are the arrays'} of that name.")
    if "ood_class" in store.facts and "ood_class" not in answers:
        answers["ood_class"] = "ood_class"
        decided.append("ood_class is what the array of that name says.")
    try:
        _check_answers(store, answers)
        answers, classes = _settle_class(store, answers, said)
        candidates["ood_class"] = tuple(map(str, classes))
        from_test = "ood_test" not in answers and {"ood_class", "id_test_labels"} <= answers.keys()
        decided += _unlabelled(store, answers)
        if from_test:
            decided.append(
                "The OOD rows are those test rows whose label is "
                f"{' or '.join(map(repr, answers['ood_class']))}; the others are the ID test rows."
            )
        for role in TABLES:
            if role in answers or (role == "ood_test" and from_test):
                continue
            taken = {answers.get(other) for other in TABLES}
            options = [store.facts[t] for t in tables if t not in taken]
            questions.append(
                EmbeddingsQuestion(role, _ASKED[role], tuple(Option(f.name, _described(f)) for f in options))
            )
    except InputError as error:
        problem = f"{quoted(store.name)}: {error}"
        candidates.setdefault("ood_class", ())
    return EmbeddingsInspection(
        name=store.name,
        format=store.format,
        arrays=tuple(store.facts.values()),
        candidates=candidates,
        answers=answers,
        questions=tuple(questions),
        decided=tuple(decided),
        problem=problem,
        _store=store,
        _said=said,
    )


def _described(facts: ArrayFacts) -> str:
    rows, width = facts.shape
    return f"{quoted(facts.name)}, {rows:,} rows of {width:,} features ({facts.dtype})"


def _check_answers(store: Store, answers: dict[str, Any]) -> None:
    for role in (*TABLES, *LABELS):
        if role not in answers:
            continue
        facts = store.facts.get(answers[role])
        if facts is None:
            held = ", ".join(quoted(n) for n in list(store.facts)[:10])
            raise InputError(f"{role} is {answers[role]!r}, which is no array of the file; it holds {held}.")
        if facts.problem is not None:
            raise InputError(f"{role}: {facts.problem}")
        wanted = 2 if role in TABLES else 1
        if len(facts.shape) != wanted:
            kind = "(rows, features)" if wanted == 2 else "(rows,)"
            raise InputError(f"{role}, {quoted(facts.name)}, must have the shape {kind}, got {facts.shape}.")
    used = [answers[role] for role in TABLES if role in answers]
    for value in used:
        if used.count(value) > 1:
            roles = [role for role in TABLES if answers.get(role) == value]
            raise InputError(f"{roles[0]} and {roles[1]} are both {value!r}; every role has its own rows.")
    _check_sizes({role: store.facts[answers[role]] for role in (*TABLES, *LABELS) if role in answers})


def _check_sizes(facts: dict[Role, ArrayFacts]) -> None:
    """Refuse arrays that cannot belong together: what their shapes say needs no reading."""
    for role in TABLES[1:]:
        if role in facts and "fit" in facts and facts[role].shape[1] != facts["fit"].shape[1]:
            raise InputError(
                f"{role} has {facts[role].shape[1]:,} features and the fit set {facts['fit'].shape[1]:,}: all rows must "
                f"come from one layer of one model. Choose another array than {quoted(facts[role].name)}, or mend the file."
            )
    for labels, rows in zip(LABELS, TABLES, strict=False):
        if labels in facts and rows in facts and facts[labels].shape[0] != facts[rows].shape[0]:
            raise InputError(
                f"{labels} has {facts[labels].shape[0]:,} labels and {rows} has {facts[rows].shape[0]:,} rows: every row "
                f"needs one, in the same order. Choose another array than {quoted(facts[labels].name)}, or mend the file."
            )


def _unlabelled(store: Store, answers: dict[str, Any]) -> list[str]:
    """Say where a label is -1, as rows without a label often are: nothing is guessed, it counts as a class."""
    told = []
    for role in LABELS:
        if role in answers and store.facts[answers[role]].dtype != "text":
            marks = np.asarray(store.load(answers[role]))
            count = int((marks == -1).sum()) if marks.dtype.kind in "if" else 0
            if 0 < count < marks.size and marks.min() == -1:
                rows = role.removesuffix("_labels")
                told.append(
                    f"{role} is -1 in {count:,} of {marks.size:,} rows, which count as a class called -1. If they are "
                    f"rows without a label, leave them out of {rows} and of {role}, or leave {role} out."
                )
    return told


def _settle_class(
    store: Store, answers: dict[str, Any], said: dict[str, Any]
) -> tuple[dict[str, Any], list[Any]]:
    """Return the answers with the designated classes written as the labels are, and the fit set's classes."""
    classes: list[Any] = []
    known: list[Any] = []  # of the fit rows, or, where these have none, of the test rows
    for role in LABELS:
        if role in answers:
            facts = store.facts[answers[role]]
            marks = as_labels(store.load(answers[role]), role, rows=facts.shape[0], of="itself")
            found = np.unique(marks).tolist()
            classes = found if role == "fit_labels" else classes
            known += found
    if "ood_class" not in answers:
        return answers, classes
    if said.get("ood_class") is None:
        facts = store.facts["ood_class"]
        if facts.problem is not None:
            raise InputError(f"ood_class: {facts.problem}")
        value: Any = np.atleast_1d(store.load("ood_class"))
        wanted = as_labels(value.ravel(), "ood_class", rows=value.size, of="itself").tolist()
    else:
        given = answers["ood_class"]
        wanted = list(given) if isinstance(given, (list, tuple, set, np.ndarray)) else [given]
    if not wanted:
        raise InputError("ood_class is empty; name at least one class.")
    # A class named in words, on a command line or a form, is the whole number that is written so.
    numbers = {str(label): label for label in known if isinstance(label, int)}
    settled = tuple(numbers.get(label, label) if isinstance(label, str) else label for label in wanted)
    return {**answers, "ood_class": settled}, classes


def _read(found: EmbeddingsInspection, progress: Progress | None) -> Embeddings:
    store, answers = found._store, found.answers
    roles = [role for role in (*TABLES, *LABELS) if role in answers]
    sizes = [int(np.prod(store.facts[answers[role]].shape)) for role in roles]
    arrays: dict[str, Any] = {}
    for place, role in enumerate(roles):
        arrays[role] = store.load(answers[role])
        if progress is not None:
            progress(sum(sizes[: place + 1]), sum(sizes))
    name = quoted(found.name)
    try:
        width = as_features(arrays["fit"], "fit").shape[1]
        for role in TABLES[1:]:
            if role in arrays:
                arrays[role] = as_features(arrays[role], role, width=width)
        for role in LABELS:
            if role in arrays:
                of = role.removesuffix("_labels")
                arrays[role] = as_labels(arrays[role], role, rows=arrays[of].shape[0], of=of)
        if "ood_test" not in arrays:
            _split_test(arrays, answers["ood_class"])
    except InputError as error:
        raise InputError(f"{name}: {error}") from error

    content = hashlib.sha256()
    for role in (*TABLES, *LABELS):
        array = arrays.get(role)
        if array is not None:
            array = np.ascontiguousarray(array)
            array.flags.writeable = False
            arrays[role] = array
            content.update(f"{role} {array.dtype.str} {array.shape}".encode())
            content.update(array.data if array.dtype.kind != "U" else "\0".join(array.tolist()).encode())
    content.update(repr(answers.get("ood_class")).encode())
    return Embeddings(
        fit=arrays["fit"],
        id_test=arrays["id_test"],
        ood_test=arrays["ood_test"],
        fit_labels=arrays.get("fit_labels"),
        id_test_labels=arrays.get("id_test_labels"),
        ood_class=answers.get("ood_class"),
        name=found.name,
        arrays={role: answers[role] for role in roles},
        decided=found.decided,
        content_hash=content.hexdigest(),
    )


def _split_test(arrays: dict[str, Any], ood_class: tuple[Any, ...]) -> None:
    """Take the rows of the designated class out of the test rows."""
    designated = np.isin(arrays["id_test_labels"], list(ood_class))
    if not designated.any() or designated.all():
        which = "no" if not designated.any() else "every"
        raise InputError(
            f"{which} test row has the label {' or '.join(map(repr, ood_class))}, so the test rows cannot be "
            "split by it; name ood_test, or mend ood_class."
        )
    arrays["ood_test"] = arrays["id_test"][designated]
    arrays["id_test"] = arrays["id_test"][~designated]
    arrays["id_test_labels"] = arrays["id_test_labels"][~designated]
