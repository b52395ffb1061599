"""What is carried from room to room: frozen, slotted, without behaviour.

In and out: nothing but the standard library and orjson. A value knows no file, no span attribute and no SDK; identity
and storage are other rooms' business. To add one, write a frozen dataclass with a docstring under each field.
"""
