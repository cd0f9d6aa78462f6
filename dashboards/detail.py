"""A setting of a computed battery in detail: the scores behind its AUROCs. A part that pages mount.

The core answers (`leakviz.setting_detail`), the figures draw, this module arranges. Choosing another
setting is an event of the server that ships another table; alpha is looked up in it, and moves with the
slider of the page that it is mounted on.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote

import holoviews as hv
import numpy as np
import pandas as pd
import panel as pn
import xarray as xr

from dashboards import batteries, names, theme
from dashboards.batteries import Battery
from dashboards.cards import card, downloads
from dashboards.figures import detail as figures
from dashboards.live import Attribute, Column, Live, words
from dashboards.markup import markup
from dashboards.stencil import figure_pane
from leakviz.detector_sweep import LEDOIT_WOLF, alpha_name, aurocs_by_alpha
from leakviz.setting_detail import setting_detail

# The rows of the table: variable of the battery, what it is called.
ROWS = {
    "oracle_lda": "oracle LDA",
    "maha": "Mahalanobis",
    "knn": "kNN",
    "best_unsup": "best-unsup",
    "isolation_forest": "Isolation Forest",
    "one_class_svm": "one-class SVM",
    "lof": "LOF",
}
_BY_ALPHA = ("maha", "best_unsup")
_GRID_CSS = """
:host { display: grid; grid-template-columns: repeat(auto-fit, minmax(250px, 1fr)); gap: 10px 22px; align-items: start }
"""
_HEAD_CSS = theme.css(
    """
.head { display: flex; flex-wrap: wrap; gap: 2px 18px; align-items: baseline }
.head .small { flex: 1 1 380px }
.seeds button { font-size: 12.5px; padding: 4px 3px }
.seeds button[aria-pressed=true] { color: $ink; text-decoration: underline; text-underline-offset: 3px; text-decoration-color: $accent; text-decoration-thickness: 2px }
"""
)
_TABLE_CSS = theme.css(
    """
:host { overflow-x: auto }
.beside { display: flex; flex-wrap: wrap; gap: 10px 44px; align-items: flex-start }
.notes { flex: 1 1 300px; max-width: 520px }
.notes p { padding-top: 5px }
table { width: auto }
td, th { padding: 4px 18px 4px 0 }
th.n { color: $muted }
@media (max-width: 420px) { td, th { padding-right: 7px } .n { padding-left: 4px } }
"""
)


class Subject(NamedTuple):
    """Which setting, under which detector."""

    setting: str = ""
    covariance: str = "one-class"
    detector: str = "max"


class DetailView(pn.viewable.Viewer):
    """Score histograms, ROC curves and per-seed values of one setting of a computed battery.

    Parameters
    ----------
    battery : Battery
        With backbones.
    alphas : sequence of float or "ledoit-wolf"
        The stops of alpha.
    leader : Live, optional
        The hand of the page: where it moves ``alpha``, by the same stops, the detail moves along.

    Attributes
    ----------
    subject : Subject
        What is shown; nothing while its setting is "".
    live : Live
        The table of this setting, with the dims ``alpha`` and ``seed``.

    Examples
    --------
    >>> view = DetailView(batteries.computed(), ["ledoit-wolf", 0.1])
    >>> view.show_setting("P_vit-mnist_2")
    >>> view.live.at()["knn_says"].item()[:5] == f"{float(view.detail.knn_auroc[0]):.3f}"
    True
    """

    def __init__(
        self,
        battery: Battery,
        alphas: Sequence[float | str],
        *,
        leader: Live | None = None,
        **params: Any,
    ):
        super().__init__(**params)
        self.battery = battery
        self.alphas = list(alphas)
        self.subject = Subject()
        self._root: pn.Column | None = None
        table = detail_answers(battery, self.subject, self.alphas)
        self.live = Live(
            table,
            sliders=[],
            columns=_columns(),
            attributes=_attributes(),
            start={"alpha": alpha_name(LEDOIT_WOLF), "seed": int(table["seed"].values[0])},
            leader=leader,
            width=0,
            height=0,
            margin=0,
            sizing_mode="fixed",
        )

    def show_setting(
        self, setting: str, *, covariance: str = "one-class", detector: str = "max", alpha: str | None = None
    ) -> None:
        """Show a setting, or nothing.

        Parameters
        ----------
        setting : str
            One of the battery's, or "".
        covariance, detector
            As for `leakviz.detector_sweep.use_detector`.
        alpha : str, optional
            The stop to stand at; by default it stays.
        """
        subject = Subject(setting, covariance, detector)
        with pn.io.hold():
            if subject != self.subject:
                self.subject = subject
                self.live.update_answers(detail_answers(self.battery, subject, self.alphas))
            if alpha is not None and alpha != self.live.value("alpha"):
                self.live.go(alpha=alpha)
            if self._root is not None:
                self._root.visible = bool(setting)

    @property
    def detail(self) -> xr.Dataset | None:
        """What the core says of the setting, at every stop; None while nothing is shown."""
        return _detail(self.battery, self.subject, tuple(self.alphas)) if self.subject.setting else None

    def data(self, name: str) -> pd.DataFrame:
        """Return the numbers behind a figure at the present seed and alpha.

        Parameters
        ----------
        name : {"maha", "knn", "oracle", "roc"}
        """
        detail = self.detail
        if detail is None:
            raise ValueError("no setting is shown")
        now = detail.sel(seed=self.live.value("seed"), alpha=self.live.value("alpha"))
        keys: dict[str, Any] = {
            "setting": self.subject.setting,
            "seed": int(now["seed"]),
            "alpha": str(now["alpha"].item()),
        }
        if name == "roc":
            curves = [
                pd.DataFrame({"detector": d, "fpr": now[f"{d}_fpr"].values, "tpr": now[f"{d}_tpr"].values})
                for d in figures.DETECTORS
            ]
            return pd.concat(curves, ignore_index=True).assign(**keys)
        columns = {c: now[f"{name}_{c}"].values for c in ("left", "right", "id", "ood")}
        return pd.DataFrame(columns).assign(**keys)

    def figure(self, name: str, backend: str = "bokeh", hooks: dict | None = None) -> hv.Overlay:
        """Return a figure at the present seed and alpha as a HoloViews element.

        Parameters
        ----------
        name : {"maha", "knn", "oracle", "roc"}
        backend : {"bokeh", "matplotlib"}
        hooks : dict, optional
            Hooks per layer.
        """
        now = self.live.at()
        if name == "roc":
            return figures.roc(now, hooks=hooks, backend=backend)
        return figures.histogram(name, now, hooks=hooks, backend=backend)

    figures = tuple(figures.FIGURES)

    def says(self) -> str:
        """Return the source and the state as plain text, for the figures' files."""
        return (
            f"{self.battery.title}. Source: {self.battery.source}. State: setting {self.subject.setting}, "
            f"seed {self.live.value('seed')}, alpha {self.live.value('alpha')}, {self.subject.covariance} covariance."
        )

    def card(self, name: str) -> pn.Column:
        """Return a figure with its heading and links.

        Parameters
        ----------
        name : {"maha", "knn", "oracle", "roc"}
        """
        live = self.live
        if name == "roc":
            hooks = {d: [live.tag(f"roc_{d}", "source", "glyph")] for d in figures.DETECTORS}
            caption = "Solid: Mahalanobis. Dashed: kNN. Dotted: oracle LDA."
        else:
            hooks = {kind: [live.tag(f"{name}_{kind}", "source", "glyph")] for kind in ("id", "ood")}
            hooks["figure"] = [live.tag(name, "x_range", "y_range")]
            caption = f"AUROC {live.text(f'{name}_says')}"
        pane = figure_pane(
            ("detail", name),
            live,
            lambda: self.figure(name, hooks=hooks),
            sizing_mode="stretch_both",
            margin=0,
        )
        title = "ROC" if name == "roc" else figures.DETECTORS[name][0]
        links = downloads(
            f"detail-{name}",
            lambda backend: self.figure(name, backend),
            lambda: self.data(name),
            size=(100, 75),
            page=self,
        )
        return card(title, pane, caption, links=links, height=210)

    def _head(self) -> str:
        t, seeds = self.live.text, self.live.answers["seed"].values
        buttons = "".join(self.live.button("seed", i, f"seed {seed}") for i, seed in enumerate(seeds))
        link = self.live.attrs(href="whitening")
        return (
            f'<h2>{t("title")}</h2><div class="head"><p class="small">{t("rows_say")} Grey: ID test. '
            f"Colour: OOD. {t('fixed_says')}</p>"
            f'<span class="seeds" role="group" aria-label="probe seed">{buttons}</span>'
            f'<a class="small" {link}>open in Whitening</a></div>'
        )

    def _table(self) -> str:
        t, seeds = self.live.text, self.live.answers["seed"].values
        head = "".join(f'<th scope="col" class="n">seed {seed}</th>' for seed in seeds)
        rows = [
            f'<tr><th scope="row">{title}</th>'
            + "".join(f'<td class="n">{t(f"{name}_{end}")}</td>' for end in (*map(str, seeds), "mean"))
            + "</tr>"
            for name, title in ROWS.items()
        ]
        return (
            f'<div class="beside"><table aria-label="AUROC by seed"><tr><th scope="col">AUROC</th>{head}'
            f'<th scope="col" class="n">mean</th></tr>{"".join(rows)}</table>'
            f'<div class="notes"><p class="small">{t("overlap_says")}</p>'
            '<p class="small">The rule sees the means. Isolation Forest, one-class SVM and LOF are scikit-learn’s, at '
            "their defaults, fitted on at most 2,000 rows of the fit set; they are no part of best-unsup.</p></div></div>"
        )

    def __panel__(self) -> pn.Column:
        """Build the part once; it is not seen while nothing is shown."""
        if self._root is None:
            grid = pn.Column(
                *(self.card(name) for name in self.figures),
                stylesheets=[_GRID_CSS],
                sizing_mode="stretch_width",
                margin=0,
            )
            self._root = pn.Column(
                markup(self._head(), css=_HEAD_CSS),
                grid,
                markup(self._table(), css=_TABLE_CSS),
                self.live,
                visible=bool(self.subject.setting),
                sizing_mode="stretch_width",
                margin=0,
                stylesheets=[":host { gap: 10px }"],
            )
        return self._root


def _columns() -> list[Column]:
    columns = []
    for name in figures.DETECTORS:
        for kind in ("id", "ood"):
            columns += [Column(f"{name}_{kind}:source", e, f"{name}_{e}") for e in ("left", "right")]
            columns.append(Column(f"{name}_{kind}:source", "top", f"{name}_{kind}"))
        columns += [Column(f"roc_{name}:source", axis, f"{name}_{axis}") for axis in ("fpr", "tpr")]
    return columns


def _attributes() -> list[Attribute]:
    found = []
    for name in figures.DETECTORS:
        for reset in ("", "reset_"):
            found += [Attribute(f"{name}:x_range", f"{reset}{e}", f"{name}_{e}") for e in ("start", "end")]
            found.append(Attribute(f"{name}:y_range", f"{reset}end", f"{name}_top"))
        found.append(Attribute(f"{name}_ood:glyph", "fill_color", "ood_color"))
        if name != "oracle":
            found.append(Attribute(f"roc_{name}:glyph", "line_color", "ood_color"))
    return found


@lru_cache(maxsize=64)
def _detail(battery: Battery, subject: Subject, alphas: tuple[float | str, ...]) -> xr.Dataset:
    """Ask the core, once per process: the batteries that have backbones are shared."""
    backbone = batteries.backbone(str(battery.dataset["backbone"].sel(setting=subject.setting).item()))
    return setting_detail(
        backbone,
        battery.dataset,
        subject.setting,
        alphas=alphas,
        covariance=subject.covariance,  # type: ignore[arg-type]
        n_bins=figures.BINS,
        n_points=figures.POINTS,
    )


def detail_answers(battery: Battery, subject: Subject, alphas: Sequence[float | str]) -> xr.Dataset:
    """Return what the detail draws and says, for every stop of alpha and seed.

    Parameters
    ----------
    battery : Battery
    subject : Subject
    alphas : sequence of float or "ledoit-wolf"

    Returns
    -------
    xarray.Dataset
        `figures.drawn` and the texts.
    """
    seeds = [int(seed) for seed in battery.dataset["seed"].values]
    stops = [alpha_name(alpha) for alpha in alphas]
    if not subject.setting:
        blank = figures.drawn(None, color=theme.REGIME_COLOR["leak"], alphas=stops, seeds=seeds)
        return blank.assign(_texts(None, None, stops, seeds))
    row = battery.dataset.sel(setting=[subject.setting])
    detail = _detail(battery, subject, tuple(alphas))
    color = theme.REGIME_COLOR[str(row["regime"].item())]
    table = figures.drawn(detail, color=color, alphas=stops, seeds=seeds)
    texts = _texts(detail, row, stops, seeds)
    return table.assign(texts | _cells(row, subject, alphas, seeds))


def _texts(
    detail: xr.Dataset | None, row: xr.Dataset | None, stops: list[str], seeds: list[int]
) -> dict[str, Any]:
    """Say what is drawn."""
    texts: dict[str, Any] = {}
    for name in figures.DETECTORS:
        if detail is None:
            texts[f"{name}_says"] = ((), "")
            continue
        texts[f"{name}_says"] = words(
            lambda area, low, high: f"{area:.3f}, 95 % interval {low:.3f} to {high:.3f}",
            *(
                detail[f"{name}_{end}"].drop_vars(("seed", "alpha"), errors="ignore")
                for end in ("auroc", "low", "high")
            ),
        )
    if detail is None or row is None:
        empty: dict[str, Any] = dict.fromkeys(
            ("title", "rows_say", "fixed_says", "whitening", "overlap_says"), ((), "")
        )
        cells: dict[str, Any] = {
            f"{name}_{end}": ((), "") for name in ROWS for end in (*map(str, seeds), "mean")
        }
        return texts | empty | cells
    setting, regime = detail.attrs["setting"], str(row["regime"].item())
    facts = detail.attrs
    fit = f"Fit set of {facts['n_fit']:,} rows. " if facts["n_fit"] else ""
    texts["title"] = ((), f"{names.setting_names(row)[0]}: {names.REGIME_LONG[regime]}")
    texts["rows_say"] = (
        (),
        f"{fit}Drawn are the {facts['n_id']:,} ID and {facts['n_ood']:,} OOD rows that a probe seed holds out.",
    )
    fixed = "Of a backbone trained again only the scores at Ledoit-Wolf, one-class, are kept: alpha moves the table alone."
    texts["fixed_says"] = ((), fixed if facts["alpha_is_fixed"] else "")
    texts["whitening"] = ((), f"?page=whitening&setting={quote(setting)}")
    overlap = float(row["neighbourhood_leakage"].item())
    texts["overlap_says"] = (
        (),
        f"Neighbourhood index (k 50): {overlap:.3f} of an OOD row's neighbours are ID rows; it never looks at the fit set.",
    )
    return texts


def _cells(
    row: xr.Dataset, subject: Subject, alphas: Sequence[float | str], seeds: list[int]
) -> dict[str, Any]:
    """Write the table's cells; those of Mahalanobis and of best-unsup follow alpha."""
    at = aurocs_by_alpha(
        row,
        alphas=alphas,
        covariance=subject.covariance,  # type: ignore[arg-type]
        detector=subject.detector,  # type: ignore[arg-type]
    )
    cells: dict[str, Any] = {}
    for name in ROWS:
        if name not in row:
            cells |= {f"{name}_{end}": ((), "none") for end in (*map(str, seeds), "mean")}
            continue
        found = at[name] if name in _BY_ALPHA else row[name].expand_dims("alpha")
        values = found.transpose("alpha", "setting", "seed").values[:, 0]
        for end, column in zip((*map(str, seeds), "mean"), (*values.T, values.mean(axis=1)), strict=True):
            written = np.array([f"{value:.3f}" for value in column], dtype=object)
            cells[f"{name}_{end}"] = ("alpha", written) if name in _BY_ALPHA else ((), written[0])
    return cells
