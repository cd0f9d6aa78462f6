"""The pages written the usual Panel way: the reference of ``drag.py``.

    panel serve benchmarks/bound.py     # then /bound?page=fingerprint, purity, calibration, whitening, audit, lodo or learn

`pn.bind` makes the functions follow the widgets; they return new figures and new HTML. The
functions of leakviz and of ``dashboards.figures``, the layout, the template and the server's
settings are those of the app, and the answers of all stops are computed once per process, so what a
step costs here is what drawing a figure anew costs.
"""

import sys
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs

import panel as pn

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bound_audit import build_audit
from bound_blind import build_calibration, build_purity
from bound_fingerprint import build_fingerprint
from bound_lodo import build_lodo
from bound_mechanism import build_learn
from bound_whitening import build_whitening

from app import framed
from dashboards import server
from dashboards.shell import Shell

BUILDS = {
    "fingerprint": build_fingerprint,
    "computed": build_fingerprint,  # with another battery
    "purity": build_purity,
    "calibration": build_calibration,
    "whitening": build_whitening,
    "audit": build_audit,
    "lodo": build_lodo,
    "learn": build_learn,
}

if pn.state.served:
    server.prepare()
    pn.state.onload(partial(server.no_delay, pn.state.curdoc.session_context))
    query = pn.state.location.search or "?page=fingerprint"
    name = parse_qs(query.lstrip("?"))["page"][0]
    framed(Shell(pages=[["bound", f"{name}, bound"]], page="bound"), BUILDS[name](query)).servable(
        title="bound"
    )
