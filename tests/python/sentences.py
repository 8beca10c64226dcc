# SPDX-License-Identifier: Apache-2.0
"""A small encoder of sentences written as transformers writes its own: it asks about its inputs, makes masks of them, computes a
loss where labels are given and answers with a table; and sentences that can be told apart."""
import math
import os
import random

import torch
from torch import nn


class Config:
    def __init__(self, **changes):
        self.vocab_size, self.hidden_size, self.num_hidden_layers, self.num_attention_heads = 60, 32, 2, 2
        self.intermediate_size, self.num_labels, self.type_vocab_size, self.max_position_embeddings = 64, 2, 2, 64
        self.problem_type, self.dropout = None, 0.1
        self.__dict__.update(changes)


class SelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads, self.size = config.num_attention_heads, config.hidden_size // config.num_attention_heads
        self.query, self.key, self.value = (nn.Linear(config.hidden_size, config.hidden_size) for _ in range(3))
        self.dropout = nn.Dropout(config.dropout)

    def split(self, x):
        return x.view(x.size()[:-1] + (self.heads, self.size)).permute(0, 2, 1, 3)

    def forward(self, x, mask=None):
        query, key, value = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(self.size)
        if mask is not None:
            scores = scores + mask
        y = torch.matmul(self.dropout(nn.functional.softmax(scores, dim=-1)), value).permute(0, 2, 1, 3).contiguous()
        return y.view(y.size()[:-2] + (self.heads * self.size,))


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention, self.dense = SelfAttention(config), nn.Linear(config.hidden_size, config.hidden_size)
        self.norm, self.norm2 = nn.LayerNorm(config.hidden_size), nn.LayerNorm(config.hidden_size)
        self.up, self.down = nn.Linear(config.hidden_size, config.intermediate_size), nn.Linear(config.intermediate_size, config.hidden_size)
        self.rate = config.dropout

    def forward(self, x, mask):
        y = nn.functional.dropout(self.dense(self.attention(x, mask)), p=self.rate, training=self.training)
        x = self.norm(x + y)
        return self.norm2(x + self.down(nn.functional.gelu(self.up(x))))


class Embeddings(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.word, self.types = nn.Embedding(config.vocab_size, config.hidden_size), nn.Embedding(2, config.hidden_size)
        self.position = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.norm, self.dropout = nn.LayerNorm(config.hidden_size), nn.Dropout(config.dropout)
        self.register_buffer("position_ids", torch.arange(config.max_position_embeddings)[None], persistent=False)

    def forward(self, ids, types=None):
        batch, length = ids.size()
        if types is None:
            types = torch.zeros((batch, length), dtype=torch.long, device=ids.device)
        return self.dropout(self.norm(self.word(ids) + self.types(types) + self.position(self.position_ids[:, :length])))


class Encoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embeddings, self.layers = Embeddings(config), nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.pooler = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, ids, mask=None, types=None):
        if mask is None:
            mask = torch.ones(ids.shape, device=ids.device)
        if mask.dim() == 2:
            mask = mask[:, None, None, :]
        mask = (1.0 - mask.to(torch.float32)) * torch.finfo(torch.float32).min
        x = self.embeddings(ids, types)
        for layer in self.layers:
            x = layer(x, mask)
        return torch.tanh(self.pooler(x[:, 0]))


class SentenceClassifier(nn.Module):
    main_input_name = "input_ids"

    def __init__(self, config=None):
        super().__init__()
        self.config = config or Config()
        self.bert, self.dropout = Encoder(self.config), nn.Dropout(self.config.dropout)
        self.classifier = nn.Linear(self.config.hidden_size, self.config.num_labels)

    def forward(self, input_ids=None, attention_mask=None, token_type_ids=None, labels=None):
        if input_ids is None:
            raise ValueError("input_ids is missing")
        logits = self.classifier(self.dropout(self.bert(input_ids, attention_mask, token_type_ids)))
        if labels is None:
            return {"logits": logits}
        if self.config.problem_type is None:
            self.config.problem_type = "single_label_classification" if labels.dtype == torch.long else "regression"
        return {"loss": nn.CrossEntropyLoss()(logits.view(-1, self.config.num_labels), labels.view(-1)), "logits": logits}


GOOD, BAD = "good fine nice great lovely happy".split(), "bad poor awful dull sad weak".split()
PLAIN = "the a film it was is and story with of this that plot cast".split()


def write_sentences(folder, train=160, test=60, seed=1):
    """folder/imdb/{train,test}/{pos,neg}/*.txt, as the published reviews lie, and folder/words/vocab.txt."""
    draw = random.Random(seed)
    for split, count in (("train", train), ("test", test)):
        for row in range(count):
            kind = "pos" if row % 2 else "neg"
            words = draw.choices(PLAIN, k=draw.randint(2, 9)) + draw.choices(GOOD if row % 2 else BAD, k=2)
            draw.shuffle(words)
            place = os.path.join(folder, "imdb", split, kind)
            os.makedirs(place, exist_ok=True)
            with open(os.path.join(place, f"{row}.txt"), "w") as file:
                file.write(" ".join(words))
    os.makedirs(os.path.join(folder, "words"), exist_ok=True)
    with open(os.path.join(folder, "words", "vocab.txt"), "w") as file:
        file.write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *PLAIN, *GOOD, *BAD]) + "\n")
