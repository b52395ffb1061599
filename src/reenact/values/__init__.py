"""What is carried from room to room: frozen, slotted, without behaviour.

In and out: nothing but the standard library and orjson. A value knows no file, no database, no network and no SDK: a
contract forbids what it would take. How attributes of this package's own spans are spelled is known here (`evidence`,
`query`, `unit`); how others spell theirs is `foreign`'s business, and storage is `disk`'s. To add one, write a frozen
dataclass with a docstring under each field.
"""
