#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what Hugging Face's tokenizers make of a text with a small byte-pair vocabulary.

    python3 tests/models/make/bpe_reference.py

Writes data/bpe_vocab.json and bpe_merges.txt (trained here, in GPT-2's format), bpe_text.bin and
bpe_ids.json, which tests/train/data/trainc_data.test reads. Needs the package tokenizers.
"""
import json
import pathlib

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

data = pathlib.Path(__file__).parents[1] / "data"
text = pathlib.Path("/usr/share/common-licenses/GPL-3").read_text()[:20000]
text += "".join(
    ["I'll say we've 12345 things; they're John's, isn't it?  Two  spaces, a\ttab\r\nand\n\n\nlines.\n",
     "Größe, naïve, Ελληνικά, русский, 日本語, \U0001f600\U0001f44d, 1½ №5 ٣٤\n", "  \n   x   \n\t\ty ", "'s'S ''\n"])

tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
trainer = trainers.BpeTrainer(vocab_size=500, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                              show_progress=False)
tokenizer.train_from_iterator([text], trainer)
model = json.loads(tokenizer.to_str())["model"]
vocabulary = dict(sorted(model["vocab"].items(), key=lambda item: item[1]))
vocabulary["<|endoftext|>"] = len(vocabulary)
merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]]
(data / "bpe_vocab.json").write_text(json.dumps(vocabulary))
(data / "bpe_merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n")
(data / "bpe_text.bin").write_bytes(text.encode())
(data / "bpe_ids.json").write_text(json.dumps(tokenizer.encode(text).ids, separators=(",", ":")))
