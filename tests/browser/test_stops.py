"""Every stop of both sliders of the fingerprint page shows what the core answers there."""

import json
import re

import numpy as np
import pytest

import leakviz
from dashboards.names import setting_names

REGIMES = {"leak": "leak", "excluded": "clean-excl", "novel": "clean-novel"}
GROUPS = {
    "leak": "leak",
    "clean_excl": "clean-excl",
    "clean_novel_far": "clean-novel far",
    "clean_novel_near": "clean-novel near",
    "clean": "clean",
}
DEFAULT = (0.95, 0.65)

# Go to each stop as a hand does, and read everything that is on the screen there.
LOOK = """([stops, columns, attributes]) => {
  const sources = columns.map(([target]) => probe.tagged(`${target}:source`))
  const models = attributes.map(([target]) => probe.tagged(target))
  const sliders = ["oracle gate", "tau"].map(probe.slider)
  return stops.map(([gate, tau]) => {
    probe.slide("oracle gate", gate)
    probe.slide("tau", tau)
    const seen = {...probe.texts(), ...probe.attributes()}
    columns.forEach((key, i) => { seen[key.join(".")] = probe.entries(sources[i].get_column(key[1])) })
    attributes.forEach((key, i) => { seen[key.join(".")] = models[i][key[1]] })
    sliders.forEach((input) => {
      seen[`slider ${input.ariaLabel}`] = [input.ariaValueText, input.labels[0].innerText.split(" ").at(-1)]
    })
    return seen
  })
}"""


def plain(values):
    return [float(v) for v in values]


def expected(battery, sweep, pairs, gate, tau):
    """Say what the page shows at a stop, from the core's answers alone."""
    now = sweep.sel(gate=gate, tau=tau)
    fires, error = now["fired"], now["error"]
    says = {
        "box.left": [gate],
        "box.top": [tau],
        "cross.gate": [gate],
        "cross.tau": [tau],
        "edges.left": gate,
        "edges.top": tau,
        "cross_gate:glyph.location": gate,
        "cross_tau:glyph.location": tau,
        "rates_tau:glyph.location": tau,
        "contrast_tau:glyph.location": tau,
        "slider oracle gate": [f"{gate:.3f}"] * 2,
        "slider tau": [f"{tau:.3f}"] * 2,
        "leaked.fill_alpha": plain(fires.sel(setting=[f"P_{p}" for p in pairs["pair"]]).values),
        "leaked.best_unsup": plain(pairs["leaked"]),
        "excluded_pair.fill_alpha": plain(fires.sel(setting=[f"N_excl_{p}" for p in pairs["pair"]]).values),
        "excluded_pair.best_unsup": plain(pairs["excluded"]),
    }
    for name, regime in REGIMES.items():
        of = battery["regime"].values == regime
        says[f"{name}.fill_alpha"] = plain(fires.values[of])
        says[f"{name}_rings.line_alpha"] = plain(error.values[of])
        for layer in (name, f"{name}_rings"):
            says[f"{layer}.oracle_lda"] = plain(battery["oracle_lda"].values[of])
            says[f"{layer}.best_unsup"] = plain(battery["best_unsup"].values[of])
    for rate, group in (("sensitivity", "leak"), ("specificity", "clean")):
        along = sweep.sel(gate=gate, regime=group)
        says[f"{rate}.rate"] = plain(along["rate"].values)
        says[f"{rate}.tau"] = plain(sweep["tau"].values)
        says[f"{rate}_band.x"] = plain([*sweep["tau"].values, *sweep["tau"].values[::-1]])
        says[f"{rate}_band.y"] = plain([*along["low"].values, *along["high"].values[::-1]])
    for key, group in GROUPS.items():
        of = now.sel(regime=group)
        low, rate, high = float(of["low"]), float(of["rate"]), float(of["high"])
        says[f"{key}_count"] = f"{int(of['correct'])} of {int(of['n'])}"
        says[f"{key}_rate"] = f"{rate:.2f}"
        says[f"{key}_interval"] = f"{low:.2f} to {high:.2f}"
        # The rail runs from 2 to 118.
        says[f"{key}_low"], says[f"{key}_at"], says[f"{key}_high"] = (
            f"{2 + 116 * v:.1f}" for v in (low, rate, high)
        )
    leak, clean = now.sel(regime="leak"), now.sel(regime="clean")
    alarms = int(clean["fired_count"])
    two, three = (lambda v: f"{v:.2f}"), (lambda v: f"{v:.3f}")
    says |= {
        "say_gate": two(gate) if round(gate * 1000) % 10 == 0 else three(gate),
        "say_tau": two(tau) if round(tau * 1000) % 10 == 0 else three(tau),
        "leak_word": "leaks",
        "clean_n": "32",
        "alarms": str(alarms),
        "alarm_word": "false alarm" if alarms == 1 else "false alarms",
        "hit": str(int(leak["fired_count"])),
        "miss": str(20 - int(leak["fired_count"])),
        "quiet": str(32 - alarms),
        "area": f"{float(now['auroc']):.4f}",
        "area_interval": f"{float(now['auroc_low']):.3f} to {float(now['auroc_high']):.3f}",
    }
    return says


def sentence_of_the_gate(battery, gate, tau):
    """Say which numbers the sentence about the gate holds: leaks and clean settings it keeps from firing."""
    silenced = (battery["best_unsup"].values < tau) & (battery["oracle_lda"].values < gate)
    leak = battery["regime"].values == "leak"
    counts = [int((silenced & leak).sum()), int((silenced & ~leak).sum())]
    return [str(c) for c in counts if c] or ["52"]


def named_errors(battery, error):
    """Return the names of missed leaks and of false alarms."""
    names, leak = np.array(setting_names(battery)), battery["regime"].values == "leak"
    return sorted(names[error & leak]), sorted(names[error & ~leak])


def read_errors(text):
    """Read the list of errors below the scatter."""
    if text == "No errors at these cuts.":
        return [], []
    found = re.fullmatch(r"(?:Missed: (.*?)\.)? ?(?:False alarms?: (.*)\.)?", text)
    assert found, text
    missed, alarms = (sorted(part.split("; ")) if part else [] for part in found.groups())
    return missed, alarms


def stops_of(which, sweep):
    gates, taus = range(sweep.sizes["gate"]), range(sweep.sizes["tau"])
    gate, tau = (
        int(np.argmin(abs(sweep[d].values - v))) for d, v in zip(("gate", "tau"), DEFAULT, strict=True)
    )
    if which == "tau":
        return [(gate, t) for t in taus]
    if which == "gate":
        return [(g, tau) for g in gates]
    # Both at once, in an order in which one, the other or both move, ends of the range included.
    return [(g, t) for g in gates[::4] for t in (*taus[::13], taus[-1])][::-1]


@pytest.mark.parametrize("which", ["tau", "gate", "both"])
def test_every_stop_shows_what_the_core_answers(reset, battery, every_stop, which):
    pairs = leakviz.contrast(battery).sort_values("difference", ascending=False, ignore_index=True)
    targets = [what.split(".") for what in expected(battery, every_stop, pairs, *DEFAULT) if "." in what]
    attributes = [t for t in targets if ":" in t[0] or t[0] == "edges"]
    columns = [t for t in targets if t not in attributes] + [["link", "x0"]]
    columns += [[f"{r}_names", "text_alpha"] for r in REGIMES]
    stops = stops_of(which, every_stop)
    wrong = []
    for (g, t), now in zip(stops, reset.evaluate(LOOK, [stops, columns, attributes]), strict=True):
        gate, tau = every_stop["gate"].values[g].item(), every_stop["tau"].values[t].item()
        at = f"gate {gate:g}, tau {tau:g}"
        for what, value in expected(battery, every_stop, pairs, gate, tau).items():
            if now[what] != value:
                wrong.append(f"{at}: {what} is {json.dumps(now[what])[:200]}, not {json.dumps(value)[:200]}")
        if re.findall(r"\d+(?:\.\d+)?", now["gate_says"]) != sentence_of_the_gate(battery, gate, tau):
            wrong.append(f"{at}: {now['gate_says']}")
        error = every_stop["error"].values[g, t]
        if read_errors(now["errors"]) != named_errors(battery, error):
            wrong.append(f"{at}: {now['errors']}, not {named_errors(battery, error)}")
        for name, regime in REGIMES.items():
            mistaken = error[battery["regime"].values == regime]
            if (np.array(now[f"{name}_names.text_alpha"]) > mistaken).any():
                wrong.append(f"{at}: a name stands beside a setting that is no error")
        if not np.isnan(now["link.x0"]).all():
            wrong.append(f"{at}: a line to a partner is drawn, none was chosen")
    assert not wrong, f"{len(wrong)} disagree, the first:\n" + "\n".join(wrong[:10])


def test_the_map_holds_every_answer_and_stays(reset, every_stop):
    for metric, variable in (
        ("balanced", "balanced_accuracy"),
        ("sensitivity", "sensitivity"),
        ("specificity", "specificity"),
    ):
        (pixels,) = reset.evaluate(f"probe.column('heat_{metric}', 'image')")
        shown = np.array(pixels).reshape(161, 41)  # a row per tau, from the bottom
        np.testing.assert_array_equal(shown, every_stop[variable].values.T, err_msg=metric)


def test_the_three_errors_of_the_published_rule_are_named_in_the_figure(reset, battery):
    reset.evaluate("probe.slide('oracle gate', 30), probe.slide('tau', 90)")
    named = []
    for name, regime in REGIMES.items():
        of = np.flatnonzero(battery["regime"].values == regime)
        named += of[np.flatnonzero(reset.evaluate(f"probe.column('{name}_names', 'text_alpha')"))].tolist()
    # 2607.19393, section 5.3: both misses are class 3, the false alarm is CIFAR-100 to CIFAR-10.
    assert set(battery["setting"].values[named]) == {"P_c10_rn_3", "P_c10_vit_3", "N_c100_rn_cross"}
    assert "cat, ResNet-50" in reset.evaluate("probe.column('leak_names', 'text')")
