#!/usr/bin/env python3
"""Beam search of Gradstone's `translate` beside the same model in PyTorch and CTranslate2.

All read one checkpoint and translate the same lines, in turn, in several rounds; printed are the
sentences a second of each (median), the ratios, and how many outputs agree. PyTorch runs a batched
beam search by hand: cached keys and values, finished sentences leave the batch, the scoring and the
end of a search are Gradstone's. Its time counts from lines to lines; that of Gradstone is that of
the whole program, start and loading included. CTranslate2, where it is installed, ends a search
when as many hypotheses as the beam has are complete, which is sooner.

    pip install torch h5py numpy            # and, as a third peer, ctranslate2
    python3 tools/benchmark/compare_decoding.py --model runs/toy/best.h5 --input lines.txt
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from exchange.checkpoint import read as read_checkpoint

PADDING, BEGIN, END, UNKNOWN = 0, 1, 2, 3


class Vocabulary:
    def __init__(self, data):
        assert data[:8] == b"GSVOCAB\n", "not a vocabulary of Gradstone"
        unit, count = (int.from_bytes(data[i:i + 4], "little") for i in (12, 16))
        self.words, self.tokens, place = unit == 0, ["<pad>", "<s>", "</s>", "<unk>"], 20
        for _ in range(count):
            size = int.from_bytes(data[place:place + 4], "little")
            self.tokens.append(data[place + 4:place + 4 + size].decode())
            place += 4 + size
        self.ids = {token: i for i, token in enumerate(self.tokens) if i > UNKNOWN}

    def split(self, line):
        return line.split() if self.words else list(line)

    def encode(self, line):
        return [self.ids.get(token, UNKNOWN) for token in self.split(line)]

    def decode(self, ids):
        return (" " if self.words else "").join(self.tokens[i] for i in ids if i >= UNKNOWN)


class Checkpoint:
    def __init__(self, path):
        stored = read_checkpoint(path)
        text, self.parameters = stored.model_config(), stored.parameters
        self.source, self.target = (Vocabulary(stored.tokenizer[name]) for name in
                                    ("source_vocabulary", "target_vocabulary"))
        number = lambda name: int(text[name])
        yes = lambda name: text[name] == "true"
        self.width, self.heads = number("width"), number("heads")
        self.encoder_layers, self.decoder_layers = (
            number("encoder_layers"), number("decoder_layers"))
        self.head_width = self.width // self.heads
        self.maximum_length, self.pre_norm = number("maximum_length"), yes("pre_norm")
        self.activation = text["activation"]
        self.scale = math.sqrt(self.width) if yes("scale_embeddings") else 1.0
        table = self.parameters
        self.source_table = table["source_embedding/weight"]
        self.target_table = table.get("target_embedding/weight", self.source_table)
        self.output = table.get("output/weight", self.target_table)
        self.output_bias = table.get("output/bias")
        self.positions = table["positions/weight"] if yes("learned_positions") else self.sinusoids()

    def sinusoids(self):
        place = np.arange(self.maximum_length)[:, None]
        column = np.arange(self.width)[None, :]
        angle = place / np.power(10000.0, (column - column % 2) / self.width)
        return np.where(column % 2 == 0, np.sin(angle), np.cos(angle)).astype(np.float32)


class Model:
    """The Transformer with padded batches (B, T, C) and caches of keys and values."""

    def __init__(self, checkpoint):
        c = self.c = checkpoint
        self.p = {name: torch.from_numpy(np.asarray(v)) for name, v in c.parameters.items()}
        for name in [n for n in self.p if n.endswith("self_attention/query/weight")]:
            start = name[:-len("query/weight")]
            for kind in ("weight", "bias"):
                self.p[start + "all/" + kind] = torch.cat(
                    [self.p[f"{start}{part}/{kind}"] for part in ("query", "key", "value")])
        tensor = lambda array: None if array is None else torch.from_numpy(np.asarray(array))
        self.source_table, self.target_table = tensor(c.source_table), tensor(c.target_table)
        self.output, self.output_bias = tensor(c.output), tensor(c.output_bias)
        self.positions = tensor(c.positions)
        self.activation = F.relu if c.activation == "relu" else F.gelu

    def linear(self, name, x):
        return F.linear(x, self.p[name + "/weight"], self.p[name + "/bias"])

    def norm(self, name, x):
        return F.layer_norm(x, (self.c.width,), self.p[name + "/weight"], self.p[name + "/bias"])

    def split(self, x):  # (B, T, C) -> (B, H, T, D)
        return x.unflatten(-1, (self.c.heads, -1)).transpose(1, 2)

    def residual(self, norm, x, function):
        if self.c.pre_norm:
            return x + function(self.norm(norm, x))
        return self.norm(norm, x + function(x))

    def feed_forward(self, layer, x):
        inner = self.activation(self.linear(layer + "feed_forward/first", x))
        return self.linear(layer + "feed_forward/second", inner)

    def attend(self, name, query, key, value, mask=None):
        y = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return self.linear(name + "output", y.transpose(1, 2).flatten(2))

    def encode(self, tokens, mask):  # (B, S), (B, 1, 1, S)
        x = F.embedding(tokens, self.source_table) * self.c.scale
        x = x + self.positions[:tokens.size(1)]
        for i in range(self.c.encoder_layers):
            layer = f"encoder/layers/{i}/"

            def attention(h):
                parts = self.linear(layer + "self_attention/all", h).chunk(3, -1)
                return self.attend(layer + "self_attention/", *map(self.split, parts), mask)
            x = self.residual(layer + "self_attention_norm", x, attention)
            x = self.residual(layer + "feed_forward_norm", x, lambda h: self.feed_forward(layer, h))
        return self.norm("encoder/norm", x) if self.c.pre_norm else x

    def project_memory(self, memory):  # keys and values of each layer, (B, H, S, D)
        names = [f"decoder/layers/{i}/cross_attention/" for i in range(self.c.decoder_layers)]
        return [[self.split(self.linear(name + part, memory)) for part in ("key", "value")]
                for name in names]

    def step(self, tokens, position, cache, memory, mask):
        """Logits (B * K, V) after tokens (B, K); cache of each layer (T, 2, B * K, H, D)."""
        batch, beam = tokens.shape
        x = F.embedding(tokens.reshape(-1, 1), self.target_table) * self.c.scale
        x = x + self.positions[position]
        for i in range(self.c.decoder_layers):
            layer = f"decoder/layers/{i}/"

            def own(h):
                query, key, value = self.linear(layer + "self_attention/all", h).chunk(3, -1)
                for kind, new in enumerate((key, value)):
                    cache[i][position, kind] = new.view(-1, self.c.heads, self.c.head_width)
                keys, values = cache[i][:position + 1].permute(1, 2, 3, 0, 4)
                return self.attend(layer + "self_attention/", self.split(query), keys, values)

            def theirs(h):  # the hypotheses of a sentence ask as if they were one sequence
                query = self.split(self.linear(layer + "cross_attention/query", h)
                                   .view(batch, beam, -1))
                y = self.attend(layer + "cross_attention/", query, *memory[i], mask)
                return y.view(batch * beam, 1, -1)
            x = self.residual(layer + "self_attention_norm", x, own)
            x = self.residual(layer + "cross_attention_norm", x, theirs)
            x = self.residual(layer + "feed_forward_norm", x, lambda h: self.feed_forward(layer, h))
        x = self.norm("decoder/norm", x) if self.c.pre_norm else x
        return F.linear(x.squeeze(1), self.output, self.output_bias)


def search_batch(model, sources, beam, alpha):
    """The best hypothesis of each source, token ids without the end mark."""
    c, batch = model.c, len(sources)
    lengths = torch.tensor([len(source) for source in sources])
    padded = torch.nn.utils.rnn.pad_sequence([torch.tensor(s) for s in sources], batch_first=True)
    mask = (torch.arange(padded.size(1)) < lengths[:, None])[:, None, None]
    memory = model.project_memory(model.encode(padded, mask))
    limits = (2 * lengths + 10).clamp(max=c.maximum_length - 1)
    longest = int(limits.max()) + 1
    cache = [torch.empty(longest, 2, batch * beam, c.heads, c.head_width)
             for _ in range(c.decoder_layers)]
    numbers = torch.arange(batch)  # of the sentences that are left
    tokens = torch.full((batch, beam), BEGIN)
    scores = torch.full((batch, beam), -math.inf, dtype=torch.float64)
    scores[:, 0] = 0
    history = torch.empty(batch, beam, longest, dtype=torch.long)
    best = torch.full((batch,), -math.inf, dtype=torch.float64)
    results = [None] * batch
    for position in range(longest):
        batch = len(numbers)
        logits = model.step(tokens, position, cache, memory, mask)
        total = logits.logsumexp(-1, keepdim=True)
        logits[:, [PADDING, BEGIN]] = -math.inf
        top, classes = logits.topk(min(2 * beam, logits.size(1)))
        sums = (scores.view(-1, 1) + (top - total)).view(batch, -1)
        sums, places = sums.topk(2 * beam)
        parents = places // classes.size(1)
        chosen = classes.view(batch, -1).gather(1, places)
        full = limits == position
        ends = chosen == END
        # The first `beam` ways to go on may end a hypothesis.
        ended = sums[:, :beam].masked_fill(~ends[:, :beam], -math.inf)
        top_end, place = (ended / (position + 1) ** alpha).max(1)
        for b in (top_end > best).nonzero().flatten().tolist():
            results[numbers[b]] = history[b, parents[b, place[b]], :position].clone()
        best = torch.maximum(best, top_end)
        for b in (full & best.isneginf()).nonzero().flatten().tolist():
            results[numbers[b]] = history[b, 0, :position].clone()  # cut at the limit
        follow = ends.to(torch.int8).argsort(dim=1, stable=True)[:, :beam]
        scores, parents = sums.gather(1, follow), parents.gather(1, follow)
        tokens = chosen.gather(1, follow)
        decided = full | (scores[:, 0] / (limits + 1) ** alpha <= best)
        if bool(decided.all()):
            break
        left = (~decided).nonzero().flatten()
        rows = (left[:, None] * beam + parents[left]).flatten()
        if len(left) < batch:
            numbers, limits, best, mask = numbers[left], limits[left], best[left], mask[left]
            tokens, scores = tokens[left], scores[left]
            memory = [[part[left] for part in layer] for layer in memory]
        history = history.flatten(0, 1)[rows].view(len(left), beam, -1)
        history[:, :, position] = tokens
        if len(left) < batch or not torch.equal(rows, torch.arange(len(rows))):
            for i, old in enumerate(cache):
                cache[i] = old.new_empty(longest, 2, len(rows), *old.shape[3:])
                torch.index_select(old[:position + 1], 2, rows, out=cache[i][:position + 1])
    return [result.tolist() for result in results]


def in_batches(lines, encode, batch_sentences, translate):
    """Translations in the order of the lines, sentences of similar length together."""
    sources = [encode(line) for line in lines]
    order = sorted((i for i, s in enumerate(sources) if s), key=lambda i: len(sources[i]))
    results = [""] * len(lines)
    for start in range(0, len(order), batch_sentences):
        batch = order[start:start + batch_sentences]
        for i, text in zip(batch, translate([sources[i] for i in batch])):
            results[i] = text
    return results


def pytorch_peer(checkpoint, arguments):
    torch.set_num_threads(arguments.threads)
    model = Model(checkpoint)

    @torch.inference_mode()
    def translate(lines):
        decode = checkpoint.target.decode
        def encode(line):
            ids = checkpoint.source.encode(line)
            return ids + [END] if ids else []
        return in_batches(lines, encode, arguments.batch_sentences,
                          lambda sources: [decode(ids) for ids in search_batch(
                              model, sources, arguments.beam, arguments.alpha)])
    return translate


def ctranslate2_peer(checkpoint, arguments):
    import ctranslate2
    from ctranslate2.specs import common_spec, transformer_spec
    c = checkpoint
    gelu = common_spec.Activation.GELU
    spec = transformer_spec.TransformerSpec.from_config(
        (c.encoder_layers, c.decoder_layers), c.heads, pre_norm=c.pre_norm,
        activation=common_spec.Activation.RELU if c.activation == "relu" else gelu)

    def fill(item, *names):
        for kind in ("weight", "bias"):
            setattr(item, kind, np.concatenate([c.parameters[f"{n}/{kind}"] for n in names]))

    def fill_norm(item, name):
        item.gamma, item.beta = (c.parameters[f"{name}/{kind}"] for kind in ("weight", "bias"))

    def fill_stack(stack, name):
        stack.scale_embeddings = c.scale != 1
        stack.position_encodings.encodings = np.asarray(c.positions)
        if c.pre_norm:
            fill_norm(stack.layer_norm, name + "/norm")
        for i, layer in enumerate(stack.layer):
            start = f"{name}/layers/{i}/"
            own = start + "self_attention/"
            fill(layer.self_attention.linear[0], own + "query", own + "key", own + "value")
            fill(layer.self_attention.linear[1], own + "output")
            fill_norm(layer.self_attention.layer_norm, start + "self_attention_norm")
            if name == "decoder":
                cross = start + "cross_attention/"
                fill(layer.attention.linear[0], cross + "query")
                fill(layer.attention.linear[1], cross + "key", cross + "value")
                fill(layer.attention.linear[2], cross + "output")
                fill_norm(layer.attention.layer_norm, start + "cross_attention_norm")
            fill(layer.ffn.linear_0, start + "feed_forward/first")
            fill(layer.ffn.linear_1, start + "feed_forward/second")
            fill_norm(layer.ffn.layer_norm, start + "feed_forward_norm")

    fill_stack(spec.encoder, "encoder")
    fill_stack(spec.decoder, "decoder")
    spec.encoder.embeddings[0].weight = c.source_table
    spec.decoder.embeddings.weight = c.target_table
    spec.decoder.projection.weight = np.array(c.output)
    if c.output_bias is not None:
        spec.decoder.projection.bias = c.output_bias
    # Words that look like marks would repeat them.
    unique = lambda tokens: [t if i < 4 or t not in tokens[:4] else t + "#"
                             for i, t in enumerate(tokens)]
    spec.register_source_vocabulary(unique(c.source.tokens))
    spec.register_target_vocabulary(unique(c.target.tokens))
    spec.config.add_source_eos = True
    with tempfile.TemporaryDirectory() as folder:
        spec.validate()
        spec.save(folder)
        translator = ctranslate2.Translator(folder, compute_type="float32", intra_threads=1,
                                            inter_threads=arguments.threads)

    def translate(lines):
        sources = [c.source.split(line) for line in lines]
        found = translator.translate_batch(
            sources, beam_size=arguments.beam, length_penalty=arguments.alpha,
            max_batch_size=arguments.batch_sentences, max_input_length=0)
        join = (" " if c.target.words else "").join
        return [join(result.hypotheses[0]) for result in found]
    return translate


def gradstone_peer(arguments):
    environment = dict(os.environ, OMP_NUM_THREADS=str(arguments.threads))

    def translate(lines):
        command = [arguments.translate, "--model", arguments.model, "--beam", str(arguments.beam),
                   "--alpha", str(arguments.alpha), "--threads", str(arguments.threads)]
        text = "".join(line + "\n" for line in lines)
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True,
                              env=environment)
        return done.stdout.split("\n")[:-1]
    return translate


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="checkpoint of Gradstone")
    parser.add_argument("--input", required=True, help="lines to translate")
    parser.add_argument("--translate", default="build/release/bin/translate")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--alpha", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lines", type=int, default=1000, help="most lines that are read")
    parser.add_argument("--batch-sentences", type=int, default=64, help="of the peers")
    parser.add_argument("--json", help="write the figures here")
    arguments = parser.parse_args()
    for path in (arguments.model, arguments.input, arguments.translate):
        if not os.path.exists(path):
            parser.error(f"there is no {path}")
    with open(arguments.input, encoding="utf-8") as file:
        lines = file.read().split("\n")[:arguments.lines]
    while lines and not lines[-1]:
        lines.pop()
    checkpoint = Checkpoint(arguments.model)
    peers = {"gradstone": gradstone_peer(arguments), "pytorch": pytorch_peer(checkpoint, arguments)}
    try:
        peers["ctranslate2"] = ctranslate2_peer(checkpoint, arguments)
    except ImportError:
        print("ctranslate2 is not installed; left out")
    outputs = {name: translate(lines) for name, translate in peers.items()}  # warms up
    seconds = {name: [] for name in peers}
    for _ in range(arguments.rounds):
        for name, translate in peers.items():
            start = time.perf_counter()
            translate(lines)
            seconds[name].append(time.perf_counter() - start)
    figures = {"sentences": len(lines), "beam": arguments.beam, "threads": arguments.threads,
               "rounds": arguments.rounds, "torch": torch.__version__, "peers": {}}
    for name, times in seconds.items():
        ratios = [other / own for other, own in zip(times, seconds["gradstone"])]
        agree = sum(a == b for a, b in zip(outputs[name], outputs["gradstone"]))
        figures["peers"][name] = {
            "sentences_per_second": len(lines) / statistics.median(times),
            "fastest_sentences_per_second": len(lines) / min(times),
            "gradstone_is_faster_by": statistics.median(ratios), "outputs_that_agree": agree}
        print(f"{name:12} {len(lines) / statistics.median(times):9.1f} sentences/s"
              f"  (best {len(lines) / min(times):9.1f})"
              f"  gradstone / this {statistics.median(ratios):6.2f}"
              f"  outputs that agree {agree} of {len(lines)}")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=2)
            file.write("\n")


if __name__ == "__main__":
    main()
