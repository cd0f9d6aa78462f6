"""The detail of a setting: its histograms and curves, against independent ones and the battery's AUROCs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_curve

import leakviz
from leakviz.battery import load_backbone, rows_of
from leakviz.errors import InputError
from leakviz.setting_detail import roc_points, setting_detail

# One setting of each kind.
SETTINGS = (
    "P_vit-mnist_2",
    "N_excl_vit-mnist_2+3",
    "N_retrain_vit-mnist_2",
    "N_novel_vit-mnist_fashion-mnist",
)


@pytest.fixture(scope="module")
def computed():
    battery = leakviz.load_battery("computed")
    return battery, load_backbone(battery, "vit-mnist")


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_scores_rank_as_the_battery_says(computed, setting):
    battery, backbone = computed
    row = battery.sel(setting=setting)
    covariance = "one-class" if "retrain" in setting else "tied"
    detail = setting_detail(backbone, battery, setting, alphas=["ledoit-wolf", 0.1], covariance=covariance)
    at = {"covariance": covariance}
    expected = {"maha": row["maha_ledoit_wolf"].sel(at), "knn": row["knn"], "oracle": row["oracle_lda"]}
    for name, value in expected.items():
        area = detail[f"{name}_auroc"]
        area = area.sel(alpha="ledoit-wolf") if name == "maha" else area
        np.testing.assert_allclose(area, value, atol=1e-3, err_msg=name)
        assert (detail[f"{name}_low"] < detail[f"{name}_auroc"]).all()
        assert (detail[f"{name}_high"] >= detail[f"{name}_auroc"]).all()
        for kind in ("id", "ood"):
            np.testing.assert_allclose(detail[f"{name}_{kind}"].sum("bin"), 1)
        assert (detail[f"{name}_right"] > detail[f"{name}_left"]).all()
        area_below = np.trapezoid(detail[f"{name}_tpr"], detail[f"{name}_fpr"], axis=-1)
        np.testing.assert_allclose(area_below, detail[f"{name}_auroc"], atol=0.01)
    if not detail.attrs["alpha_is_fixed"]:
        shrunk = row["maha_by_alpha"].sel(alpha=0.1, **at)
        np.testing.assert_allclose(detail["maha_auroc"].sel(alpha="0.1"), shrunk, atol=1e-3)
    else:
        assert setting.startswith("N_retrain")
    own, other = rows_of(backbone, str(row["ood"].item()), seed=0)
    assert (detail.attrs["n_id"], detail.attrs["n_ood"]) == (own.size, other.size)


def test_what_does_not_belong_together_is_refused(computed):
    battery, backbone = computed
    with pytest.raises(InputError, match="setting must be one of the battery's 268, got 'x'"):
        setting_detail(backbone, battery, "x")
    with pytest.raises(InputError, match="belongs to the backbone 'resnet-mnist', not to 'vit-mnist'"):
        setting_detail(backbone, battery, "P_resnet-mnist_2")


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=40))
def test_points_lie_on_scikit_learns_curve(rows):
    scores, labels = (np.array(column) for column in zip(*rows, strict=True))
    if labels.all() or not labels.any():
        with pytest.raises(InputError, match="only one class"):
            roc_points(scores, labels)
        return
    fpr, tpr = roc_points(scores, labels, n_points=57)
    x, y, _ = roc_curve(labels, scores, drop_intermediate=False)
    np.testing.assert_allclose(np.diff(fpr + tpr), 2 / 56, atol=1e-12)  # even steps along the curve
    assert (fpr[0], tpr[0], fpr[-1], tpr[-1]) == (0, 0, 1, 1)
    # The curve is one to one with x + y: the exact y there.
    np.testing.assert_allclose(tpr, np.interp(fpr + tpr, x + y, y), atol=1e-12)
