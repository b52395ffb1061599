"""The version of this package and of what it writes."""

VERSION = "0.1.0"

SCHEMA_VERSION = "1"
"""`reenact.schema_version`: the version of the attributes in docs/schema.md."""
