"""The rules of the house: who may import what, where colours and JavaScript are, what installs."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import leakviz

ROOT = Path(__file__).parents[2]
SCREEN = ("panel", "bokeh", "holoviews", "dashboards")  # what the core does not know
DASHBOARDS = [ROOT / "app.py", *sorted((ROOT / "dashboards").rglob("*.py"))]
CORE = sorted((ROOT / "leakviz").rglob("*.py"))


def named(path):
    return str(path.relative_to(ROOT))


def repository():
    """Return every file that is, or would be, in the repository."""
    command = [
        "git",
        "-c",
        "safe.directory=*",
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return [ROOT / name for name in sorted(set(listed.split("\0"))) if name and (ROOT / name).is_file()]


def imported(path):
    """Return the top names of every import in a file, inside functions too."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add((node.module or "").split(".")[0])
    return names


# What installs


def test_environment_yml_asks_for_what_pyproject_asks_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    conda = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    extras = project["optional-dependencies"]
    wanted = {*project["dependencies"], *extras["figures"], *extras["excel"]}
    wanted |= {f"python{project['requires-python']}", "pip"}
    assert {line for line in conda if isinstance(line, str)} == wanted
    assert [line for line in conda if not isinstance(line, str)] == [{"pip": ["--editable ."]}]


@pytest.mark.parametrize("path", [*CORE, *DASHBOARDS], ids=named)
def test_what_is_imported_is_asked_for(path):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *extras["figures"], *extras["excel"], *extras["battery"]]
    wanted = {re.match(r"[\w-]+", line).group() for line in lines} | {"sklearn"}
    own = {"leakviz", "dashboards", "app"}
    assert imported(path) - set(sys.stdlib_module_names) - own <= wanted


def test_makefile_has_every_target_that_it_and_readme_name():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    rules = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    (phony,) = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert set(phony.split()) == rules
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named_there = set(re.findall(r"(?:^\s+|`)make ([a-z][\w-]*)", readme, re.MULTILINE))
    assert {"serve", "test"} <= named_there <= rules


def test_readme_links_to_what_is_there():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", readme) if "://" not in link]
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_ci_calls_make_test():
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111, "not executable"
    lines = [
        s for line in script.read_text(encoding="utf-8").splitlines() if (s := line.strip()) and s[0] != "#"
    ]
    assert lines[-1] == "exec make test"


# Who may import what


@pytest.mark.parametrize("path", CORE, ids=named)
def test_the_core_imports_nothing_of_the_screen(path):
    assert imported(path).isdisjoint({*SCREEN, "matplotlib"})


def test_the_core_works_where_neither_the_screen_nor_pytorch_is_installed():
    script = f"""
import sys, pkgutil, importlib

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {(*SCREEN, "torch")}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
import leakviz
for module in pkgutil.walk_packages(leakviz.__path__, "leakviz."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:  # what trains backbones is nothing without it
            if error.name != "torch" or not module.name.startswith("leakviz.battery."):
                raise
score = leakviz.score_battery(leakviz.load_battery("published"), leakviz.Rule())
print(score.correct.sel(regime="leak").item())
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("18\n", 0), done.stderr


@pytest.mark.parametrize("path", sorted((ROOT / "dashboards" / "figures").glob("*.py")), ids=named)
def test_figures_know_no_panel(path):
    assert "panel" not in imported(path)


def test_states_know_no_panel():
    assert imported(ROOT / "dashboards" / "state.py").isdisjoint({"panel", "bokeh", "holoviews"})


# Where things are


@pytest.mark.parametrize("path", DASHBOARDS, ids=named)
def test_colours_are_named_in_the_theme_alone(path):
    if path.name != "theme.py":
        source = path.read_text(encoding="utf-8")
        assert re.findall(r"#[0-9a-fA-F]{6}\b|\brgba?\(", source) == []


@pytest.mark.parametrize("path", DASHBOARDS, ids=named)
def test_javascript_has_files_of_its_own(path):
    source = path.read_text(encoding="utf-8")
    if path.name != "live.py":
        assert re.findall(r"\bCustomJS\b|\bjs_on_\w+|\bjscallback\b|\bjslink\b", source) == []
    for loaded in re.findall(r"^\s*_esm\b.*$", source, re.MULTILINE):
        assert loaded.strip() == f'_esm = Path(__file__).with_name("{path.stem}.js")'
        assert path.with_suffix(".js").is_file()


def test_every_javascript_file_belongs_to_a_module():
    for script in (ROOT / "dashboards").rglob("*.js"):
        assert f'with_name("{script.name}")' in script.with_suffix(".py").read_text(encoding="utf-8")


def test_no_file_is_large_or_names_what_is_not_ours():
    # Written in parts, so that this file does not name them.
    hosts = [
        "pypi" + ".org",
        "python" + "hosted.org",
        "anaconda" + ".org",
        "npm" + "js",
        "jsdeli" + "vr",
        "unp" + "kg",
    ]
    words = ["/wo" + "rk/", "TO" + "DO", "FIX" + "ME", *hosts]
    wrong = []
    for path in repository():
        if path.stat().st_size > 5_000_000:
            wrong.append(f"{named(path)} has {path.stat().st_size:,} bytes")
        data = path.read_bytes()
        if b"\0" not in data[:8000]:
            wrong += [f"{named(path)} says {word}" for word in words if word.encode() in data]
    assert wrong == []


# What is public


@pytest.mark.parametrize("name", leakviz.__all__)
def test_what_is_public_is_documented_with_an_example(name):
    thing = getattr(leakviz, name)
    text = inspect.getdoc(thing) or ""
    assert len(text.splitlines()[0]) > 20
    assert ">>> " in text
    if inspect.isfunction(thing):
        signature = inspect.signature(thing)
        assert "Parameters\n---" in text
        assert "Returns\n---" in text or signature.return_annotation is None
        # All is keyword-only after the data.
        kinds = [p.kind for p in signature.parameters.values() if p.default is not p.empty]
        assert set(kinds) <= {inspect.Parameter.KEYWORD_ONLY}


def test_all_is_sorted_and_there():
    assert leakviz.__all__ == sorted(leakviz.__all__)
    assert all(hasattr(importlib.import_module("leakviz"), name) for name in leakviz.__all__)
