"""What an audit of a user's embeddings found: the figures, the numbers, and the words.

The figures are drawn once per process, before there is any audit; each audit is written into them.
"""

from __future__ import annotations

import hashlib
import html
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import holoviews as hv
import numpy as np
import pandas as pd
import panel as pn
import xarray as xr

import leakviz
from dashboards import theme
from dashboards.batteries import OWN, Battery
from dashboards.cards import card, downloads
from dashboards.figures import embeddings as figures
from dashboards.figures import whitening as spectra
from dashboards.live import Attribute, Column, Edge, Live, Slider, words
from dashboards.marks import LEGEND_CSS, mark, regime_mark
from dashboards.markup import markup
from dashboards.shelf import Audit
from dashboards.stencil import figure_pane
from leakviz import report as core
from leakviz.audit import audit_battery, audit_split, explain
from leakviz.embeddings import Embeddings, EmbeddingsInspection
from leakviz.moments import FitStatistics, fit_statistics
from leakviz.predictions.sources import quoted
from leakviz.whitening import score_histograms, sweep_shrinkage, whitening_spectrum

GATES = leakviz.stops("0.80", "1.00", "0.005")
TAUS = leakviz.stops("0.20", "1.00", "0.005")
RULE = leakviz.Rule()
SEEDS = tuple(range(figures.SEEDS))
FIGURES = {**figures.FIGURES, "histograms": "Distances from the fit set", "spectrum": "Eigenvalues"}
SOURCE = (
    'Rule: <a href="https://arxiv.org/abs/2607.19393">arXiv 2607.19393</a>, sections 4.4 and 5; computed here '
    "from your file"
)
# What a split can be known to be, where its labels do not say it: regime, on the screen.
TRUTHS = {
    "": "not known",
    "leak": "a leak: the fit set holds the class",
    "clean-novel": "clean: another source or an unseen class",
    "clean-excl": "clean: the class was left out of the fit set",
    "clean-retrained": "clean: the model was retrained without the class",
}


_INSIDE = (
    *("bin_left", "bin_right", "id_share", "ood_share", "share_end", "distance_start", "distance_end"),
    *("end", "eigenvalue", "shrunk", "eigen_start", "eigen_end", "directions_start", "directions_end"),
    *("top_left", "top_right", "bottom_left", "bottom_right"),
)


@lru_cache(maxsize=1)
def nobodys() -> Result:
    """Return an audit of made-up numbers: what the figures are drawn from, once per process.

    A user's audit is written into copies of them, so that nothing of it outlives the session.
    """
    rng, labels = np.random.default_rng(0), np.arange(120) % 3
    fit, own, other = (
        rng.normal(size=(120, 3)) + 6 * np.eye(3)[classes]
        for classes in (labels, labels % 2, np.full(120, 2))
    )
    answer = audit_split(fit, own, other, fit_labels=labels, ood_class=2, k=5, seeds=SEEDS)
    statistics = fit_statistics(fit)
    audit = Audit("", "", statistics, own, other)
    return Result(audit, answer, look_inside(statistics, own, other, answer["alpha"].item()), "leak", "")


@dataclass(frozen=True, eq=False)
class Result:
    """One audit: what the shelf keeps of it, what the core answered, and what is drawn.

    Attributes
    ----------
    audit : Audit
        Without the fit rows.
    answer : xarray.Dataset
        As `leakviz.audit_split` returns it.
    spectrum : xarray.Dataset
        `dashboards.figures.whitening.drawn` at the alpha of the audit.
    truth : str
        What the split is known to be, a regime; "" where nobody said.
    source : str
        One line of provenance, plain text.
    """

    audit: Audit
    answer: xr.Dataset = field(repr=False)
    spectrum: xr.Dataset = field(repr=False)
    truth: str
    source: str

    @property
    def truths(self) -> dict[str, str]:
        """What the split can be, as far as its labels leave it open."""
        known = self.answer.attrs["n_designated"]
        kept = ("leak",) if known > 0 else ("clean-novel", "clean-retrained") if known == 0 else tuple(TRUTHS)
        return {truth: TRUTHS[truth] for truth in kept}

    def battery(self) -> Battery | None:
        """Return the audit as a battery; None where it is not known what the split is."""
        if not self.truth:
            return None
        dataset = audit_battery(
            self.answer,
            name=self.audit.title,
            regime=self.truth if self.answer.attrs["n_designated"] <= 0 else None,
            backbone=self.audit.title,
            ood=self.audit.ood_name or None,
        )
        read = read_battery(written(dataset))
        return Battery(self.audit.name, self.audit.title, self.source, read, file=self.audit.file)


def written(battery: xr.Dataset) -> bytes:
    """Return a battery as the bytes of a netCDF file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "battery.nc"
        leakviz.save_battery(battery, path)
        return path.read_bytes()


def read_battery(data: bytes) -> xr.Dataset:
    """Load a battery from the bytes of a netCDF file.

    Raises
    ------
    leakviz.InputError
        As `leakviz.load_battery`.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "battery.nc"
        path.write_bytes(data)
        return leakviz.load_battery(path)


def make_result(found: EmbeddingsInspection, options: Mapping[str, str], job: Any, title: str) -> Result:
    """Read a file's features and audit the split: what a thread does.

    Parameters
    ----------
    found : EmbeddingsInspection
        Without open questions.
    options : mapping
        shrinkage, k and overlap, as texts.
    job : dashboards.work.Job
        Hears how far it is.
    title : str
        Of the file.

    Raises
    ------
    leakviz.InputError
        As `leakviz.read_embeddings` and `leakviz.audit_split`.
    """
    job.text = f"Reading {title}"
    read = found.read(progress=job.progress)
    sizes = f"{read.fit.shape[0]:,} × {read.fit.shape[1]:,} fit rows"
    job.text, job.done = f"Auditing {title} ({sizes})", 0.0
    shrinkage = options["shrinkage"]
    answer = audit_split(
        **read.arguments(),
        shrinkage="ledoit-wolf" if shrinkage == "ledoit-wolf" else float(shrinkage),
        k=int(options["k"]),
        seeds=SEEDS,
        overlap="report" if options["overlap"] == "report" else "refuse",
        progress=job.progress,
    )
    job.text, job.done = f"Keeping what the Whitening page needs of {title}", None
    fit = fit_statistics(read.fit, labels=read.fit_labels)
    without = None
    if "contrast" in answer:
        assert read.fit_labels is not None  # else there is no contrast
        assert read.ood_class is not None
        rest = ~np.isin(read.fit_labels, list(read.ood_class))
        without = fit_statistics(read.fit[rest], labels=read.fit_labels[rest])
    known = answer.attrs["n_designated"]
    audit = Audit(
        name=_name(read, options),
        title=title,
        fit=fit,
        id_test=read.id_test,
        ood_test=read.ood_test,
        ood_name=answer.attrs["ood_class"] or read.arrays.get("ood_test", ""),
        without=without,
    )
    arrays = ", ".join(f"{role} is {quoted(array)}" for role, array in read.arrays.items())
    return Result(
        audit,
        answer,
        look_inside(fit, read.id_test, read.ood_test, answer["alpha"].item()),
        truth="leak" if known > 0 else "clean-novel" if known == 0 else "",
        source=f"your file {quoted(title)}: {arrays}; shrinkage {shrinkage}, k {options['k']}; SHA-256 of the "
        f"numbers {read.content_hash[:12]}",
    )


def read_from(
    result: Result, facts: Mapping[str, Any], read: str, options: Mapping[str, str | None] | None = None
) -> Result:
    """Return the same result, which says what file it was read from, and how.

    Parameters
    ----------
    result : Result
    facts : mapping
        ``name`` and ``sha256`` of the file.
    read : str
        SHA-256 of the numbers.
    options : mapping, optional
        Of the reader and of the audit; defaults are left out.
    """
    file = {
        "name": facts["name"],
        "kind": "embeddings",
        "sha256": facts["sha256"],
        "content_hash": read,
        "options": core.options_of("embeddings", options or {}),
    }
    return replace(result, audit=replace(result.audit, file=file))


def known_to_be(result: Result, truth: str) -> Result:
    """Return the same result of a split that is known to be so: one of its `truths`.

    Raises
    ------
    leakviz.InputError
        If its labels say that it cannot be.
    """
    if truth not in result.truths:
        can = ", ".join(filter(None, result.truths))
        raise leakviz.InputError(f"regime={truth!r} cannot be said of this split; it can be {can}.")
    file = result.audit.file
    if not isinstance(file, str):
        file = {
            **file,
            "options": core.options_of("embeddings", {**file["options"], "regime": truth}),
        }
    return replace(result, truth=truth, audit=replace(result.audit, file=file))


def look_inside(fit: FitStatistics, id_test: Any, ood_test: Any, alpha: float) -> xr.Dataset:
    """Return what is drawn of the distances and of the eigenvalues at one alpha."""
    asked: dict[str, Any] = {"alphas": [alpha]}
    drawn = spectra.drawn(
        whitening_spectrum(fit, ood_test, **asked),
        sweep_shrinkage(fit, id_test, ood_test, **asked),
        score_histograms(fit, id_test, ood_test, n_bins=spectra.BINS, **asked),
        marks={},
    )
    return drawn[list(_INSIDE)].isel(alpha=0, drop=True)


def _name(read: Embeddings, options: Mapping[str, str]) -> str:
    what = f"{read.content_hash} {options['shrinkage']} {options['k']}"
    return OWN + hashlib.sha256(what.encode()).hexdigest()[:12]


def renamed(result: Result, title: str) -> Result:
    """Return the same result under another title."""
    return replace(result, audit=replace(result.audit, title=title))


# ---- the table


def result_answers(result: Result) -> xr.Dataset:
    """Return everything that the result shows, for every stop of gate and tau."""
    audit = result.answer
    table = figures.drawn(audit, result.truth, gates=GATES, taus=TAUS)
    spectrum = result.spectrum
    table = table.assign({f"w_{name}": variable for name, variable in spectrum.data_vars.items()})
    gate, tau = table["gate"], table["tau"]
    oracle, best = audit["oracle_lda"].values, audit["best_unsup"].values
    runs = (oracle >= gate.values[:, None, None]) & (best < tau.values[:, None])
    count = xr.DataArray(runs.sum(axis=-1), {"gate": gate, "tau": tau}, ("gate", "tau"))
    fires = table["split_fill"].isel(one=0)
    texts: dict[str, Any] = {
        "say_gate": words(lambda v: f"{v:.3f}".removesuffix("0"), gate),
        "say_tau": words(lambda v: f"{v:.3f}".removesuffix("0"), tau),
        "say_fires": words(lambda f: "fires" if f else "does not fire", fires.astype(int)),
        "say_runs": words(lambda k: f"{k} of {len(SEEDS)} seeds", count),
    }
    texts |= {name: ((), text) for name, text in _numbers(audit).items()}
    lines = {"gate_line": gate.variable, "tau_line": tau.variable}
    return table.assign({**texts, **lines})


def _numbers(audit: xr.Dataset) -> dict[str, str]:
    """Return the read-outs that no slider moves."""
    texts: dict[str, str] = {}
    for score in figures.SCORES:
        for kind in ("", "_excluded"):
            name = score if score == "oracle_lda" else f"{score}{kind}"
            if kind and "contrast" not in audit:
                texts[f"{score}{kind}_at"] = ""
                continue
            values = audit[name].values
            texts[f"{score}{kind}_at"] = f"{values.mean():.3f}"
            if f"{name}_low" in audit:
                low, high = (float(audit[f"{name}_{end}"].mean()) for end in ("low", "high"))
                texts[f"{score}{kind}_interval"] = f"{low:.3f} to {high:.3f}"
            else:  # best-unsup: a maximum has no interval of its own
                texts[f"{score}{kind}_interval"] = f"seeds {values.min():.3f} to {values.max():.3f}"
    if "contrast" in audit:
        values = audit["contrast"].values
        texts["contrast"] = _signed(values.mean())
        texts["contrast_seeds"] = f"seeds {_signed(values.min())} to {_signed(values.max())}"
    else:
        texts["contrast"] = "not there"
        texts["contrast_seeds"] = "needs fit labels and the designated class among them"
    index = audit.get("neighbourhood_leakage")
    texts["index"] = "not there" if index is None else f"{float(index):.3f}"
    texts["alpha"] = f"{float(audit['alpha']):.3g}"
    facts = audit.attrs
    texts["rows"] = (
        f"{facts['n_fit']:,} fit, {facts['n_id']:,} ID test, {facts['n_ood']:,} OOD rows of "
        f"{facts['n_features']:,} features"
    )
    shared = sum(facts[key] for key in ("n_overlap_fit_id", "n_overlap_fit_ood", "n_overlap_id_ood"))
    texts["overlap"] = "no row is in two sets" if not shared else f"{shared:,} rows are in two sets"
    return texts


def _signed(value: float) -> str:
    """Write a difference with its sign.

    Examples
    --------
    >>> _signed(-0.25)
    '−0.250'
    """
    return f"{value:+.3f}".replace("-", "−")


_TABLE_CSS = theme.css(
    """
td, th { white-space: normal; vertical-align: baseline; padding: 4px 0 }
td { white-space: nowrap }
td + td { padding-left: 14px }
thead th { color: $muted; font-size: 12.5px }
.wrap { white-space: normal }
@media (max-width: 420px) { td, th { font-size: 12.5px; white-space: normal } td + td { padding-left: 8px } }
h2 { margin-bottom: 4px }
"""
)
# The strip for the file ends with the hairline that stands above the sliders.
_STRIP_CSS = theme.css(":host { margin-top: -6px; border-bottom: 1px solid $hair; padding: 0 0 12px }")
_WORDS_CSS = "p { margin-top: 6px !important; max-width: 900px; overflow-wrap: anywhere }"
_PAIR_CSS = theme.css(
    """
:host { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 0 36px; align-items: start }
@media (max-width: $narrow) { :host { grid-template-columns: minmax(0, 1fr); gap: 26px } }
"""
)
_SAVE_CSS = theme.css(
    """
:host { width: auto; flex: 0 0 auto }
.bk-btn, .bk-btn.bk-btn-default { background: none !important; border: 1px solid $hair !important; box-shadow: none; border-radius: 6px; color: $ink !important; font: 13px/1.4 $font; padding: 5px 10px; min-height: 30px; text-transform: none }
.bk-btn:hover { border-color: $muted !important }
.bk-btn a, .bk-btn svg { color: inherit }
.bk-btn:focus-visible, :host(:focus-visible) .bk-btn, a:focus-visible { outline: 2px solid $accent; outline-offset: 1px; border-radius: 6px }
"""
)
_ROW_CSS = ":host { display: flex; flex-wrap: wrap; gap: 8px 16px; align-items: flex-end; width: 100% }"


class ResultView:
    """The section of the page that shows one audit; not there before the first, hidden while there is none.

    Parameters
    ----------
    said : callable
        Called with a regime when the user says what the split is.

    Attributes
    ----------
    root : panel.Column or None
        What the page mounts.
    """

    def __init__(self, said: Callable[[str], object]):
        self.result: Result | None = None
        self._said = said
        self._telling = False
        self.live = self._make_live()
        self.panes: dict[str, pn.pane.Bokeh] = {}
        self.root: pn.Column | None = None
        self.words = markup("", css=_WORDS_CSS)
        self.key = markup("", css=LEGEND_CSS)
        self.truth = pn.widgets.Select(
            label="what the split is known to be",
            options={"not known": ""},
            width=330,
            margin=0,
            stylesheets=[theme.FIELD_CSS],
        )
        self.truth.param.watch(self._truth_chosen, "value")
        self.save = pn.widgets.FileDownload(
            callback=self._file,
            filename="audit.nc",
            label="Save as a battery file (.nc)",
            icon=None,
            embed=False,
            auto=True,
            margin=0,
            stylesheets=[_SAVE_CSS],
        )

    def prepare(self, name: str) -> None:
        """Make one figure; the first of a process takes a third of a second, which others would wait for."""
        if name not in self.panes:
            self.panes[name] = self._pane(name)

    def show(self, result: Result) -> None:
        """Write an audit into the figures and the texts."""
        for name in FIGURES:
            self.prepare(name)
        self.result = result
        self.live.update_answers(result_answers(result))
        self.live.state = dict(self.live.starts)
        for pane in self.panes.values():
            self.live.apply(pane.object)
        if self.root is None:
            self.root = self._layout()  # its texts are of this audit from the start
        self._telling = True
        self.truth.param.update(
            options={text: truth for truth, text in result.truths.items()}, value=result.truth
        )
        self._telling = False
        self.truth.visible = len(result.truths) > 1
        self.key.object = _key(result.truth, "contrast" in result.answer)
        self.save.visible = bool(result.truth)
        self.save.filename = f"{_stem(result.audit.title)}-audit.nc"
        self.words.object = self._words(result)
        self.root.visible = True

    def hide(self) -> None:
        """Hide the section and forget the audit."""
        self.result = None
        if self.root is not None:
            self.root.visible = False

    def heading(self) -> str:
        """Return the sentence that follows the hand, as HTML."""
        t = self.live.text
        title = html.escape(self.result.audit.title if self.result else "")
        return (
            f"At gate <b>{t('say_gate')}</b> and tau <b>{t('say_tau')}</b> the split of {title} "
            f"<b>{t('say_fires')}</b> ({t('say_runs')})."
        )

    def data(self, name: str) -> pd.DataFrame:
        """Return the numbers behind a figure.

        Parameters
        ----------
        name : {"box", "contrast", "histograms", "spectrum"}
        """
        if self.result is None:
            raise ValueError("there is no audit yet")
        audit, now = self.result.answer, self.live.at()
        scores = [n for n in audit.data_vars if audit[n].dims == ("seed",)]
        if name in ("box", "contrast"):
            return (
                audit[scores]
                .to_dataframe()
                .reset_index()
                .drop(columns="fired")
                .assign(gate=self.live.value("gate"), tau=self.live.value("tau"))
            )
        columns = {
            "histograms": ("bin_left", "bin_right", "id_share", "ood_share"),
            "spectrum": ("end", "eigenvalue", "shrunk"),
        }
        if name not in columns:
            raise ValueError(f"no figure is called {name!r}; there are {', '.join(FIGURES)}")
        frame = pd.DataFrame({column: now[f"w_{column}"].values for column in columns[name]})
        return frame.dropna(how="all").assign(alpha=float(audit["alpha"]))

    def figure(self, name: str, backend: str = "bokeh", hooks: dict | None = None) -> hv.Overlay:
        """Return a figure at the present stop as a HoloViews element.

        Parameters
        ----------
        name : {"box", "contrast", "histograms", "spectrum"}
        backend : {"bokeh", "matplotlib"}
        hooks : dict, optional
            Hooks per layer.
        """
        now = self.live.at()
        if name == "box":
            return figures.box(now, hooks=hooks, backend=backend)
        if name == "contrast":
            return figures.contrast(now, hooks=hooks, backend=backend)
        if name not in FIGURES:
            raise ValueError(f"no figure is called {name!r}; there are {', '.join(FIGURES)}")
        own = now[[n for n in now.data_vars if str(n).startswith("w_")]]
        own = own.rename({n: str(n).removeprefix("w_") for n in own.data_vars})
        draw = spectra.histograms if name == "histograms" else spectra.eigenvalues
        return draw(own, color=now["color"].item(), hooks=hooks, backend=backend)

    def says(self) -> str:
        """Return the source and the state as plain text, for the figures' files."""
        source = f"Source: {self.result.source}. " if self.result else ""
        return f"{source}State: gate {self.live.value('gate'):g}, tau {self.live.value('tau'):g}."

    # ---- wiring

    def _make_live(self) -> Live:
        columns = [
            Column("box:source", "left", "box_left"),
            Column("box:source", "top", "box_top"),
            *(Column("link:source", end, f"link_{end}") for end in ("x0", "y0", "x1", "y1")),
        ]
        attributes = [
            *(Attribute("box:x_range", f"{reset}start", "x_start") for reset in ("", "reset_")),
        ]
        for name in ("split", "other"):
            for axis in ("x", "y"):
                columns.append(Column(f"{name}:source", axis, f"{name}_{axis}"))
                columns.append(Column(f"{name}_runs:source", axis, f"{name}_runs_{axis}"))
            columns.append(Column(f"{name}:source", "fill_alpha", f"{name}_fill"))
        for name in ("given", "without"):
            columns.append(Column(f"{name}:source", "x", f"{name}_at"))
            columns += [
                Column(f"{name}_interval:source", f"x{i}", f"{name}_{e}")
                for i, e in enumerate(("low", "high"))
            ]
        for kind in ("id", "ood"):
            columns += [
                Column(f"{kind}:source", column, f"w_{variable}")
                for column, variable in (
                    ("left", "bin_left"),
                    ("right", "bin_right"),
                    ("top", f"{kind}_share"),
                )
            ]
        for layer in ("eigenvalue", "shrunk"):
            columns += [
                Column(f"{layer}:source", "end", "w_end"),
                Column(f"{layer}:source", layer, f"w_{layer}"),
            ]
        columns += [
            Column(f"spectrum_{end}:source", side, f"w_{end}_{side}")
            for end in ("top", "bottom")
            for side in ("left", "right")
        ]
        for figure, axis, variable in (
            ("spectrum", "x", "directions"),
            ("spectrum", "y", "eigen"),
            ("histograms", "x", "distance"),
        ):
            attributes += [
                Attribute(f"{figure}:{axis}_range", f"{reset}{end}", f"w_{variable}_{end}")
                for end in ("start", "end")
                for reset in ("", "reset_")
            ]
        attributes += [
            *(Attribute("histograms:y_range", f"{reset}end", "w_share_end") for reset in ("", "reset_")),
            Attribute("ood:glyph", "fill_color", "color"),
            Attribute("shrunk:glyph", "line_color", "color"),
            Attribute("given_interval:glyph", "line_color", "color"),
            *(
                Attribute(f"{layer}:glyph", attribute, "color")
                for layer in ("split", "given", "split_runs")
                for attribute in ("line_color", "fill_color")
            ),
            *(Attribute(f"{layer}:glyph", "marker", "mark") for layer in ("split", "given")),
        ]
        return Live(
            result_answers(nobodys()),
            sliders=[
                Slider("gate", "oracle gate", "probe AUROC needed to fire, default 0.95"),
                Slider("tau", "tau", "detection collapses below it, default 0.65"),
            ],
            columns=columns,
            attributes=attributes,
            grips=[Edge("edges", "left", "gate"), Edge("edges", "top", "tau")],
            start={"gate": RULE.gate, "tau": RULE.tau},
            sizing_mode="stretch_width",
            margin=0,
        )

    def _hooks(self) -> dict[str, dict[str, list]]:
        live = self.live
        point = ("source", "glyph")
        return {
            "box": {
                "figure": [live.edges("edges", left="gate_line", top="tau_line"), live.tag("box", "x_range")],
                **{layer: [live.tag(layer, *point)] for layer in ("box", "link", "split", "other")},
                **{f"{layer}_runs": [live.tag(f"{layer}_runs", *point)] for layer in ("split", "other")},
            },
            "contrast": {
                layer: [live.tag(layer, *point)]
                for layer in ("given", "without", "given_interval", "without_interval")
            },
            "histograms": {
                "id": [live.tag("id", "source")],
                "ood": [live.tag("ood", *point)],
                "figure": [live.tag("histograms", "x_range", "y_range")],
            },
            "spectrum": {
                **{layer: [live.tag(layer, *point)] for layer in ("eigenvalue", "shrunk")},
                **{end: [live.tag(f"spectrum_{end}", "source")] for end in ("top", "bottom")},
                "figure": [live.tag("spectrum", "x_range", "y_range")],
            },
        }

    # ---- what is seen

    def _pane(self, name: str) -> pn.pane.Bokeh:
        hooks = self._hooks()[name]
        return figure_pane(
            ("embeddings", name),
            self.live,
            lambda: self.figure(name, hooks=hooks),
            sizing_mode="stretch_both",
            margin=0,
        )

    def _card(
        self, name: str, caption: str, *, height: int, size: tuple[float, float], extra: Any = None
    ) -> pn.Column:
        links = downloads(
            f"audit-{name}",
            lambda backend: self.figure(name, backend),
            lambda: self.data(name),
            size=size,
            page=self,
        )
        body = card(FIGURES[name], self.panes[name], caption, links=links, height=height)
        if extra is not None:
            body.insert(1, extra)
        return body

    def _layout(self) -> pn.Column:
        box = self._card(
            "box",
            f"Large marks: mean of three seeds; dots: the seeds. Drag the box’s edges or the sliders. {SOURCE}.",
            height=430,
            size=(120, 95),
            extra=self.key,
        )
        contrast = self._card(
            "contrast",
            "The oracle cannot move: the probe never sees the fit set. Lines: 95 % intervals (DeLong), mean of the seeds.",
            height=190,
            size=(120, 65),
        )
        histograms = self._card(
            "histograms",
            "Grey: ID test rows. Colour: OOD rows. Where the two lie on each other, or OOD lies left, the detector cannot "
            "see the class.",
            height=230,
            size=(110, 75),
        )
        spectrum = self._card(
            "spectrum",
            "Dashed: of the fit set. Solid: shrunk at the alpha in use. Shaded: the tenths of the directions with the "
            "most and the least variance. The Whitening page moves alpha.",
            height=230,
            size=(110, 75),
        )
        right = pn.Column(
            markup(self._table(), css=_TABLE_CSS),
            contrast,
            sizing_mode="stretch_width",
            margin=0,
            stylesheets=[":host { gap: 14px }"],
        )
        pair = {"sizing_mode": "stretch_width", "margin": 0}
        return pn.Column(
            pn.Column(self.live, stylesheets=[_STRIP_CSS], **pair),
            pn.Column(box, right, stylesheets=[theme.TWO_CSS, ":host { row-gap: 0 }"], **pair),
            pn.Column(histograms, spectrum, stylesheets=[_PAIR_CSS], **pair),
            self.words,
            pn.Row(self.truth, self.save, stylesheets=[_ROW_CSS], **pair),
            stylesheets=[":host { gap: 18px }"],
            **pair,
        )

    def _table(self) -> str:
        t = self.live.text

        def row(score: str, label: str) -> str:
            return (
                f'<tr><th scope="row">{label}</th><td class="n">{t(f"{score}_at")}</td>'
                f'<td class="n m">{t(f"{score}_interval")}</td><td class="n">{t(f"{score}_excluded_at")}</td></tr>'
            )

        return (
            '<h2>What the scores see <span class="aside">AUROC, mean of three seeds</span></h2>'
            '<table aria-label="AUROC of every score, with 95 % intervals"><thead><tr><th></th>'
            '<th scope="col" class="n">as given</th><th scope="col" class="n">95 % interval</th>'
            '<th scope="col" class="n">without class</th></tr></thead><tbody>'
            + "".join(row(score, label) for score, label in figures.SCORES.items())
            + '<tr><th scope="row">exclusion contrast</th>'
            f'<td class="n">{t("contrast")}</td><td class="n m wrap" colspan="2">{t("contrast_seeds")}</td></tr>'
            '<tr><th scope="row">neighbourhood index</th>'
            f'<td class="n">{t("index")}</td><td class="n m wrap" colspan="2">never looks at the fit set</td></tr>'
            "</tbody></table>"
            f'<p class="small">{t("rows")}; {t("overlap")}; shrinkage alpha {t("alpha")}.</p>'
        )

    def _words(self, result: Result) -> str:
        paragraphs = explain(result.answer).split("\n\n")[1:]  # the first stands on top of the page
        name = result.audit.name
        links = [f'<a href="?page=whitening&features={name}">Move its shrinkage on the Whitening page</a>']
        if result.truth:
            links.append(f'<a href="?page=fingerprint&battery={name}">Open it on the Fingerprint page</a>')
        return (
            "<h2>What this says, and what it cannot know</h2>"
            + "".join(f'<p class="note">{html.escape(p)}</p>' for p in paragraphs)
            + f'<p class="small">{" · ".join(links)}</p>'
        )

    # ---- the hand

    def _truth_chosen(self, event: Any) -> None:
        if not self._telling and self.result is not None:
            self._said(event.new)

    def _file(self) -> Any:
        import io

        battery = self.result.battery() if self.result else None
        if battery is None:
            raise ValueError("say what the split is known to be first")
        return io.BytesIO(written(battery.dataset))


def _key(truth: str, both: bool) -> str:
    """Return the legend of the box: what has the colour of the split, and what has the other."""
    color, shape, name = figures.look(truth)
    other = (
        f"<span>{regime_mark('clean-excl', filled=True)}without the designated class</span>" if both else ""
    )
    return (
        f'<div class="legend"><span>{mark(shape, color, filled=True)}as given ({name})</span>{other}'
        "<span>filled: fires</span></div>"
    )


def _stem(title: str) -> str:
    """Return a file name without its ending, in characters that any disk takes.

    Examples
    --------
    >>> _stem("my emb/2.npz")
    'my_emb_2'
    """
    stem = title.rsplit(".", 1)[0] if "." in title else title
    return "".join(c if c.isalnum() or c in "-_" else "_" for c in stem)[:60] or "split"
