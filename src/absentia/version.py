"""The version, in one place: read by the build and by the package."""

__version__ = "0.2.0.dev0"
