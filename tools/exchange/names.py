"""Which parameters a Transformer has, and what they are called in state dicts of PyTorch."""

from .files import Problem

# The sizes and switches of a model, with the values that they have where nothing is said; None
# must be given.
CONFIG = {"source_vocabulary": None, "target_vocabulary": None, "width": None, "heads": None,
          "feed_forward_width": None, "encoder_layers": None, "decoder_layers": None,
          "maximum_length": 256, "pre_norm": True, "activation": "relu",
          "share_embeddings": False, "tie_output": True, "output_bias": False,
          "scale_embeddings": True, "learned_positions": False, "dropout": 0.0,
          "embedding_dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}
LAYOUTS = ("gradstone", "torch")

ATTENTIONS = {"self_attention": "self_attn", "cross_attention": "multihead_attn"}
PARTS = {"encoder": ("self_attention",), "decoder": ("self_attention", "cross_attention")}
KINDS = ("weight", "bias")


def parsed(name, value):
    """A value of the configuration, which may come as text."""
    example = 1 if CONFIG[name] is None else CONFIG[name]
    text = str(value).lower() if isinstance(value, bool) else str(value)
    try:
        if isinstance(example, bool):
            return {"true": True, "false": False}[text]
        return type(example)(text)
    except (KeyError, ValueError):
        raise Problem(f"config: {name} must be like {example}, got {value!r}") from None


def complete_config(given, title):
    """The whole configuration from the values that are given."""
    unknown = [name for name in given if name not in CONFIG]
    if unknown:
        raise Problem(f"config: {title} has unknown names ({', '.join(unknown)}); there are "
                      f"{', '.join(CONFIG)}")
    given = {"embedding_dropout": given.get("dropout", 0.0), **given}
    config = {name: parsed(name, given[name]) if name in given else value
              for name, value in CONFIG.items()}
    missing = [name for name, value in config.items() if value is None]
    if missing:
        raise Problem(f"config: {title} says nothing about {', '.join(missing)}")
    if config["heads"] < 1 or config["width"] % config["heads"] != 0:
        raise Problem(f"config: heads must divide the width, got {config['heads']} and "
                      f"{config['width']}")
    if config["activation"] not in ("relu", "gelu"):
        raise Problem(f"config: activation must be relu or gelu, got {config['activation']}")
    return config


def config_texts(config):
    """As a checkpoint holds it."""
    texts = {name: str(value).lower() if isinstance(value, bool) else f"{value:g}"
             if isinstance(value, float) and value == int(value) else str(value)
             for name, value in config.items()}
    return {f"model/{name}": text for name, text in texts.items()}


def linear(shapes, name, outputs, inputs):
    shapes[f"{name}/weight"], shapes[f"{name}/bias"] = (outputs, inputs), (outputs,)


def norm(shapes, name, width):
    shapes[f"{name}/weight"] = shapes[f"{name}/bias"] = (width,)


def parameters_of(config):
    """Shapes by path, and the ties: path -> path of the parameter that it shares."""
    width, inner = config["width"], config["feed_forward_width"]
    shapes = {"source_embedding/weight": (config["source_vocabulary"], width)}
    ties = {}
    table = "source_embedding/weight"
    if config["share_embeddings"]:
        ties["target_embedding/weight"] = table
    else:
        table = "target_embedding/weight"
        shapes[table] = (config["target_vocabulary"], width)
    if config["learned_positions"]:
        shapes["positions/weight"] = (config["maximum_length"], width)
    for stack, parts in PARTS.items():
        for layer in range(config[f"{stack}_layers"]):
            start = f"{stack}/layers/{layer}"
            for part in parts:
                for projection in ("query", "key", "value", "output"):
                    linear(shapes, f"{start}/{part}/{projection}", width, width)
                norm(shapes, f"{start}/{part}_norm", width)
            linear(shapes, f"{start}/feed_forward/first", inner, width)
            linear(shapes, f"{start}/feed_forward/second", width, inner)
            norm(shapes, f"{start}/feed_forward_norm", width)
        if config["pre_norm"]:
            norm(shapes, f"{stack}/norm", width)
    if config["tie_output"]:
        if config["output_bias"]:
            ties["output/weight"] = table
    else:
        shapes["output/weight"] = (config["target_vocabulary"], width)
    if config["output_bias"]:
        shapes["output/bias"] = (config["target_vocabulary"],)
    return shapes, ties


def torch_layers(config):
    for stack, parts in PARTS.items():
        for layer in range(config[f"{stack}_layers"]):
            ours, theirs = f"{stack}/layers/{layer}", f"transformer.{stack}.layers.{layer}"
            modules = {"feed_forward/first": "linear1", "feed_forward/second": "linear2"}
            for number, part in enumerate((*parts, "feed_forward"), start=1):
                modules[f"{part}_norm"] = f"norm{number}"
            for part in parts:
                modules[f"{part}/output"] = f"{ATTENTIONS[part]}.out_proj"
            for kind in KINDS:
                for part in parts:
                    yield (f"{theirs}.{ATTENTIONS[part]}.in_proj_{kind}",
                           [f"{ours}/{part}/{role}/{kind}" for role in ("query", "key", "value")])
                for module, name in modules.items():
                    yield f"{theirs}.{name}.{kind}", [f"{ours}/{module}/{kind}"]
        if config["pre_norm"]:
            for kind in KINDS:
                yield f"transformer.{stack}.norm.{kind}", [f"{stack}/norm/{kind}"]


def layout_of(config, kind):
    """Names of a state dict, each with the paths whose values it holds, one below another."""
    shapes, ties = parameters_of(config)
    outer = [path for path in (*shapes, *ties) if kind == "gradstone" or
             path.partition("/")[0] not in PARTS]
    layout = {path.replace("/", "."): [path] for path in outer}
    if kind == "torch":
        layout.update(torch_layers(config))
        if config["tie_output"]:  # a plain module has its own name for the table
            layout["output.weight"] = ["target_embedding/weight"]
    return layout
