"""What settings are called on the screen; unknown names are shown as they are."""

import xarray as xr

BACKBONE = {
    "resnet50": "ResNet-50",
    "vit_b16": "ViT-B/16",
    "resnet-fashion": "ResNet on Fashion-MNIST",
    "vit-fashion": "ViT on Fashion-MNIST",
    "resnet-mnist": "ResNet on MNIST",
    "vit-mnist": "ViT on MNIST",
}
DATASET = {
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "svhn": "SVHN",
    "dtd": "DTD",
    "fashion-mnist": "Fashion-MNIST",
    "mnist": "MNIST",
    "small-digits": "8 × 8 digits",
    "inverted": "inverted images",
    "permuted": "permuted pixels",
    "noise": "noise",
}
# What was done with the class, after a setting's name.
REGIME = {
    "leak": "leaked",
    "clean-excl": "excluded",
    "clean-retrained": "retrained without",
    "clean-novel": "other source",
}
REGIME_LONG = {
    "leak": "leaked",
    "clean-excl": "excluded from the fit set",
    "clean-retrained": "backbone retrained without the class",
    "clean-novel": "clean, other source",
}
# The order of CIFAR-10's labels; 2607.19393 names only 3, "cat" (section 5.4).
CIFAR10 = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def ood_name(id_dataset: str, ood: str) -> str:
    """Return what is designated OOD: a class, a group of classes, or another source.

    Examples
    --------
    >>> ood_name("cifar10", "3"), ood_name("cifar100", "g2"), ood_name("cifar10", "svhn")
    ('cat', 'group 2', 'SVHN')
    >>> ood_name("fashion-mnist", "Coat+Sandal"), ood_name("mnist", "3")
    ('Coat + Sandal', 'digit 3')
    """
    if id_dataset == "mnist" and "+" not in ood and ood.isdigit():
        return f"digit {ood}"
    if id_dataset == "cifar10" and ood.isdigit() and int(ood) < len(CIFAR10):
        return CIFAR10[int(ood)]
    if ood[:1] == "g" and ood[1:].isdigit():
        return f"group {ood[1:]}"
    return DATASET.get(ood, ood).replace("+", " + ")


def setting_names(battery: xr.Dataset) -> list[str]:
    """Return a short name per setting: what is designated OOD, and the backbone.

    Examples
    --------
    >>> import leakviz
    >>> setting_names(leakviz.load_battery("published"))[13]
    'cat, ResNet-50'
    """
    names = []
    for id_dataset, ood, regime, backbone in zip(
        battery["id_dataset"].values,
        battery["ood"].values,
        battery["regime"].values,
        battery["backbone"].values,
        strict=True,
    ):
        what, data = ood_name(str(id_dataset), str(ood)), DATASET.get(str(id_dataset), str(id_dataset))
        if regime == "clean-novel" and not f"{BACKBONE.get(str(backbone))}".endswith(data):
            what = f"{data} to {what}"
        elif what.startswith("group "):
            what = f"{data} {what}"
        names.append(f"{what}, {BACKBONE.get(str(backbone), str(backbone))}")
    return names
