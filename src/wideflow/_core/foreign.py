"""Objects of other libraries told by their classes' names, so that the library need not be imported to ask."""


def is_torch_module(thing) -> bool:
    """Whether it is a `torch.nn.Module`.

    >>> is_torch_module(lambda x: x)
    False
    """
    kinds = type(thing).__mro__
    return any(
        (kind.__module__, kind.__name__) == ("torch.nn.modules.module", "Module") for kind in kinds
    )
