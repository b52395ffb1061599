"""The world of a replay, sealed by the kernel.

In: a program's words and folder, and the folders that stay open. Out: the program, running in namespaces of its own,
where every folder is a copy that is made as it is written. It never knows what a trace or a recording is.
"""
