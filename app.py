"""The app: ``panel serve app.py``. Template, navigation, URL state; no science, no figure."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

import panel as pn

from dashboards import (
    audit,
    calibration,
    embeddings,
    fingerprint,
    lodo,
    mechanism,
    predictions,
    purity,
    report,
    server,
    theme,
    whitening,
)
from dashboards.page_file import LEFT_OUT, page_file
from dashboards.shelf import Shelf, new_names
from dashboards.shell import FRAME_CSS, HEAD_SCRIPT, Shell

# name in the URL: (title in the navigation, how the page is made from a query string and a shelf)
PAGES: dict[str, tuple[str, Callable[[str, Shelf], Any]]] = {
    "fingerprint": (fingerprint.TITLE, fingerprint.FingerprintPage),
    "whitening": (whitening.TITLE, whitening.WhiteningPage),
    "audit": (audit.TITLE, audit.AuditPage),
    "purity": (purity.TITLE, purity.PurityPage),
    "calibration": (calibration.TITLE, calibration.CalibrationPage),
    "lodo": (lodo.TITLE, lodo.LodoPage),
    "embeddings": (embeddings.TITLE, embeddings.EmbeddingsPage),
    "predictions": (predictions.TITLE, predictions.PredictionsPage),
    "report": (report.TITLE, report.ReportPage),
    "learn": (mechanism.TITLE, mechanism.MechanismPage),
}
FIRST = "fingerprint"
BRING = ("predictions", "embeddings")
"""The pages on which files are brought for others."""

TEMPLATE = (
    """
{% extends base %}
{% block preamble %}
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<style>"""
    + theme.root_css()
    + FRAME_CSS
    + """</style>
<script>"""
    + HEAD_SCRIPT
    + """</script>
{% endblock %}
{% block contents %}
<div id="shell">{{ embed(roots.shell) }}</div>
<main id="main">{{ embed(roots.page) }}</main>
{% endblock %}
"""
)


def page_of(query: str) -> str:
    """Return the page that a query string names, or the first."""
    name = parse_qs(query.lstrip("?")).get("page", [FIRST])[-1]
    return name if name in PAGES else FIRST


class App:
    """One session: the shell, and the pages that have been visited.

    Parameters
    ----------
    query : str
        Of the address.
    file : str
        A file of predictions to open, from the command line, or "".
    """

    def __init__(self, query: str, file: str = ""):
        self.made: dict[str, Any] = {}
        self.going_back = False
        self.before = ""  # the page that was seen before this one
        self.shelf = Shelf(file=file)
        if file and "page" not in parse_qs(query.lstrip("?")):
            query = "page=predictions"
        self.shell = Shell(
            pages=[[name, title] for name, (title, _) in PAGES.items()],
            saves=list(LEFT_OUT),
            save=self._save,
        )
        self.body = pn.Column(sizing_mode="stretch_width", margin=0)
        self.visit(query)
        state = self.made[self.shell.page].state
        if (
            state.told and state.entries and not state.waiting
        ):  # a step that is not there is no place to come back to
            self.shell.go(self._query(self.shell.page))
        self.shell.param.watch(self._asked, "wanted")
        # When the pages have taken what came, and have told it.
        self.shelf.param.watch(self._came, ["own", "batteries", "audits"], precedence=4)

    def visit(self, query: str) -> None:
        """Show the page that `query` names, in the state that it asks for."""
        name = page_of(query)
        asked = parse_qs(query.lstrip("?")).get("page", [FIRST])[-1]
        query = query if asked == name else ""  # what it says is about a page that there is not
        if name != self.shell.page:
            self.before = self.shell.page
        if name not in self.made:
            page = self.made[name] = PAGES[name][1](query, self.shelf)
            if isinstance(page, report.ReportPage):
                page.made = self.made  # added as they were left
            page.state.param.watch(lambda *events: self._changed(name, *events), page.state.names())
            self.body.append(page.__panel__())
        for other, page in self.made.items():
            page.__panel__().visible = other == name
        if asked != name:
            title = PAGES[name][0]
            self.made[name].state.told = [
                f"The link names the page “{asked[:60]}”, which is not here; {title} is shown."
            ]
        self.shell.param.update(page=name, subject=self.made[name].subject)

    def _asked(self, event: Any) -> None:
        query = event.new.strip()
        back = event.new != query  # the browser's Back marks itself: the address is there already
        # a link to a page in a state, not to the page as it was left
        more = len(parse_qs(query.lstrip("?"))) > 1
        known = page_of(query) in self.made
        with pn.io.hold():
            self.visit(query)
            if known and (back or more):
                self.going_back = back
                try:
                    self.made[page_of(query)].state.read(query)
                finally:
                    self.going_back = False
            if not back:
                self.shell.go(self._query(page_of(query)), push=True)

    def _came(self, *events: Any) -> None:
        """Go back to the page from which a file was asked for, when its link has all that it waited for."""
        page = self.made.get(self.before)
        if page is None or self.shell.page not in BRING or page.state.missing:
            return
        if new_names(events) & set(page.state.came):
            with pn.io.hold():
                back = self.before
                self.visit(f"?page={back}")
                self.shell.go(self._query(back), push=True)

    def _changed(self, name: str, *events: Any) -> None:
        if name == self.shell.page:
            page = self.made[name]
            self.shell.subject = page.subject
            entered = any(event.name in page.state.entries for event in events)
            self.shell.go(self._query(name), push=entered and not self.going_back)

    def _save(self, name: str) -> tuple[str, str]:
        """Return the page as a file, at the state in which it is seen: what it is called, and what is in it."""
        title, make = PAGES[name]
        page = self.made[name]
        saved = page_file(name, make, page.state.query(), title=title, shelf=self.shelf, like=page)
        return saved.filename, saved.html

    def _query(self, name: str) -> str:
        own = self.made[name].state.address()
        return f"page={name}&{own}" if own else f"page={name}"


def framed(shell: Shell, body: pn.Column) -> pn.Template:
    """Put the shell and the pages into the template."""
    template = pn.Template(TEMPLATE)
    template.add_panel("shell", shell)
    template.add_panel("page", body)
    return template


def main() -> None:
    """Build one session."""
    server.prepare()
    if pn.state.curdoc:
        server.own_styles(pn.state.curdoc)
    file = sys.argv[1] if len(sys.argv) > 1 else ""  # panel serve app.py --args preds.parquet
    app = App(pn.state.location.search or "" if pn.state.location else "", file)
    context = pn.state.curdoc.session_context if pn.state.curdoc else None
    pn.state.onload(lambda: server.no_delay(context))
    framed(app.shell, app.body).servable(title="leakviz")


if pn.state.served:
    main()
