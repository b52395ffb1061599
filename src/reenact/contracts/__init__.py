"""What each family promises: protocols and frozen declarations, no logic.

In: values. Out: the types that `discover.members` looks for (`Shape`, `Dialect`, `Format`) and that rooms are handed
(`Doorman`, `Redactor`). To add a family, declare its constant's type here and give it a folder of its own.
"""
