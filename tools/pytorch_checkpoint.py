#!/usr/bin/env python3
"""Turns state dicts of PyTorch into checkpoints of Gradstone's Transformer, and back.

    pytorch_checkpoint.py export --checkpoint best.h5 --output model.safetensors [--layout torch]
    pytorch_checkpoint.py import --state-dict model.safetensors --like best.h5 --output new.h5

State dicts are .safetensors files, or .pt files of torch.save(model.state_dict(), ...), for which
PyTorch must be installed. Arrays are float32 in a checkpoint: other floating-point types are
converted. Optimizer and training state are not exchanged.

Two layouts of names:
  gradstone  as in the checkpoint, with dots: encoder.layers.0.self_attention.query.weight
  torch      those of a module that holds a torch.nn.Transformer and plain modules beside it:
    transformer                           (below: i layer, S self_attention, X cross_attention)
      .encoder.layers.i.self_attn         encoder/layers/i/S: in_proj_weight (3C, C) is query, key
                                          and value one below another, out_proj is output
                       .norm1, norm2      S_norm, feed_forward_norm
                       .linear1, linear2  feed_forward/first, feed_forward/second
      .decoder.layers.i.self_attn         decoder/layers/i/S
                       .multihead_attn    decoder/layers/i/X
                       .norm1, 2, 3       S_norm, X_norm, feed_forward_norm
      .encoder.norm, .decoder.norm        the same; only with norm_first=True: for the post-norm form
                                          set both to None, which torch.nn.Transformer does not do
    source_embedding, target_embedding    torch.nn.Embedding; multiplied by sqrt(C) unless
                                          scale_embeddings is false
    positions                             torch.nn.Embedding; without learned_positions there is
                                          none, and PE[p, 2i] = sin(p / 10000^(2i / C)), cos behind it
    output                                torch.nn.Linear, with a bias if output_bias says so
Weights are (outputs, inputs) in both. Tied names (share_embeddings, tie_output) are all written;
in what is read they may be missing, and must be equal else. Ids 0 to 3 are <pad>, <s>, </s> and
<unk>; sources end with </s>, target inputs begin with <s>.

The configuration is that in the .safetensors file if it was exported from here, with the values of
--like and then of --config (JSON) in its place. What must be said: source_vocabulary,
target_vocabulary, width, heads, feed_forward_width, encoder_layers, decoder_layers. Else holds:
maximum_length 256, pre_norm true, activation "relu" (or "gelu", exact), share_embeddings false,
tie_output true, output_bias false, scale_embeddings true, learned_positions false.
"""

import argparse
import json
import sys

from exchange import checkpoint, files, names, state_dict
from exchange.files import Problem


def rename_of(text):
    old, equals, new = text.partition("=")
    if not equals or not old:
        raise argparse.ArgumentTypeError(f"needs OLD=NEW, got {text}")
    return old, new


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    take = commands.add_parser("import", help="a state dict becomes a checkpoint")
    take.add_argument("--state-dict", required=True, metavar="FILE", help=".safetensors or .pt")
    take.add_argument("--like", metavar="FILE.h5",
                      help="checkpoint whose tokenizers and configuration are taken")
    take.add_argument("--config", metavar="FILE.json", help="sizes and switches of the model")
    take.add_argument("--rename", type=rename_of, action="append", default=[], metavar="OLD=NEW",
                      help="names that begin with the parts OLD begin with NEW: generator=output")
    take.add_argument("--ignore", action="append", default=[], metavar="NAME",
                      help="leave out what begins with these parts, such as buffers")
    take.add_argument("--layout", choices=names.LAYOUTS,
                      help="of the names; by default what they look like")
    take.add_argument("--output", required=True, metavar="FILE.h5")
    give = commands.add_parser("export", help="a checkpoint becomes a state dict")
    give.add_argument("--checkpoint", required=True, metavar="FILE.h5")
    give.add_argument("--layout", choices=names.LAYOUTS, default=names.LAYOUTS[0])
    give.add_argument("--config", metavar="FILE.json", help="where to write the configuration")
    give.add_argument("--output", required=True, metavar="FILE", help=".safetensors or .pt")
    return parser.parse_args()


def read_json(path):
    try:
        found = json.loads(files.read(path))
    except ValueError as error:
        raise Problem(f"config: {path} is not JSON, {error}") from None
    if not isinstance(found, dict):
        raise Problem(f"config: {path} is not a JSON object of names and values")
    return found


def import_state_dict(arguments):
    path = arguments.state_dict
    arrays, given = state_dict.read(path)
    like = checkpoint.read(arguments.like) if arguments.like else checkpoint.Checkpoint()
    stored = like.model_config()
    given = {**given, **{name: stored[name] for name in names.CONFIG if name in stored}}
    if arguments.config:
        given.update(read_json(arguments.config))
    config = names.complete_config(given, arguments.config or arguments.like or path)
    arrays = state_dict.renamed(arrays, arguments.rename, arguments.ignore, path)
    fused = any(name.endswith("in_proj_weight") for name in arrays)
    kind = arguments.layout or ("torch" if fused else "gradstone")
    result = checkpoint.Checkpoint(
        parameters=state_dict.to_parameters(arrays, config, kind, path),
        ties=names.parameters_of(config)[1],
        config={**like.config, **names.config_texts(config)}, tokenizer=like.tokenizer)
    checkpoint.write(arguments.output, result, "gradstone pytorch_checkpoint.py")
    if not result.tokenizer:
        print("There are no tokenizers: translate needs them; give a checkpoint with --like.")
    return result.parameters


def export_checkpoint(arguments):
    state_dict.check_suffix(arguments.output)
    found = checkpoint.read(arguments.checkpoint)
    stored = found.model_config()
    config = names.complete_config({name: stored[name] for name in names.CONFIG if name in stored},
                                   arguments.checkpoint)
    arrays = state_dict.from_parameters(found, config, arguments.layout, arguments.checkpoint)
    state_dict.write(arguments.output, arrays, config)
    if arguments.config:
        files.write(arguments.config, (json.dumps(config, indent=2) + "\n").encode())
    return found.parameters


def main():
    arguments = parse_arguments()
    run = import_state_dict if arguments.command == "import" else export_checkpoint
    try:
        parameters = run(arguments)
    except Problem as problem:
        print(f"pytorch_checkpoint.py: {problem}", file=sys.stderr)
        return 2
    print(f"{arguments.output}: {len(parameters)} parameters, "
          f"{sum(values.size for values in parameters.values())} numbers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
