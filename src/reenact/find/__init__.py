"""Finding a run that somebody named, in a store, in a file of any size or at a backend, and looking at it.

In: `last`, an id, a path, `path#id`, a user and a minute. Out: a `Run`, rows of `ls`, steps, cold cases. Known here is
where runs can lie and by which facts they are known. Never known is how one is replayed, and nothing is changed on disk
but what `keep` carries first. To add a place where runs lie, write a backend or a store; to add a look at a run, a
module.
"""
