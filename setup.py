"""Map the folders of this checkout to the packages that are installed; everything else is in ``pyproject.toml``."""

from setuptools import find_packages, setup

#: Folder in the checkout → importable package.
FOLDERS = {"protgraph": "protgraph", "plugins": "protgraph_plugins", "datasets": "protgraph_datasets"}


def packages() -> list[str]:
    """Return every package that the wheel contains; ``plugins/template`` is a distribution of its own."""
    found = []
    for folder, package in FOLDERS.items():
        below = find_packages(folder, exclude=["template", "template.*"])
        found += [package, *(f"{package}.{name}" for name in below)]
    return found


setup(packages=packages(), package_dir={package: folder for folder, package in FOLDERS.items()})
