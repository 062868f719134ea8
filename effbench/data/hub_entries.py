"""The data sets of the hub that effbench knows by name, each pinned to a commit of its repository."""

from __future__ import annotations

import functools

from effbench.data.hub import HubEntry, hub_source
from effbench.data.hub_decoders import images, sentences, stream
from effbench.data.images import normalise
from effbench.data.source import DataSource
from effbench.data.splitting import unpack
from effbench.data.text import unpack_bytes
from effbench.data.words import unpack_words

CIFAR10 = HubEntry(
    name="cifar10",
    summary="60,000 colour photographs of 32x32 pixels in ten classes",
    task="image classification",
    licence="none stated: Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
    size_mib=175.9,
    repository="uoft-cs/cifar10",
    revision="0b2714987fa478483af9968de7c934580d0bb9a2",
    config="plain_text",
    splits={"train": "train", "test": "test"},
    decode=images("img", "label", mode="RGB", validation=5000),
    unpack=functools.partial(unpack, to_inputs=normalise(0.473, 0.251), classes=10),
)

FASHION_MNIST = HubEntry(
    name="fashion_mnist",
    summary="70,000 pictures of clothes, 28x28 grey pixels, in ten classes",
    task="image classification",
    licence="MIT: Zalando SE",
    size_mib=52.5,
    repository="zalando-datasets/fashion_mnist",
    revision="531be5e2ccc9dba0c201ad3ae567a4f3d16ecdd2",
    config="fashion_mnist",
    splits={"train": "train", "test": "test"},
    decode=images("image", "label", mode="L", validation=5000),
    unpack=functools.partial(unpack, to_inputs=normalise(0.286, 0.353), classes=10),
)

WIKITEXT2 = HubEntry(
    name="wikitext2",
    summary="2 million words of good Wikipedia articles; predict the next byte",
    task="language modelling",
    licence="CC BY-SA 3.0 and GFDL",
    size_mib=12.7,
    repository="Salesforce/wikitext",
    revision="b08601e04326c79dfdd32d625aee71d232d685c3",
    config="wikitext-2-raw-v1",
    splits={"train": "train", "validation": "validation", "test": "test"},
    decode=stream("text"),
    unpack=functools.partial(unpack_bytes, length=256),
)

TINYSTORIES = HubEntry(
    name="tinystories",
    summary="the first 32 MB of simple stories written by GPT-4; predict the next byte",
    task="language modelling",
    licence="CDLA-Sharing-1.0",
    size_mib=31.9,
    repository="roneneldan/TinyStories",
    revision="f54c09fd23315a6f9c86f9dc80f725de7d8f9c64",
    config=None,
    splits={"train": "train", "test": "validation"},
    files={"train": "data/train-00000-of-00004-*.parquet", "validation": "data/validation-*.parquet"},
    decode=stream("text", between="\n\n", most={"train": 32_000_000, "validation": 500_000, "test": 1_000_000}),
    unpack=functools.partial(unpack_bytes, length=256),
)

SST2 = HubEntry(
    name="sst2",
    summary="sentences and phrases of film reviews; tell whether they praise",
    task="sequence classification",
    licence="as GLUE states: see the source data set, Socher et al. 2013",
    size_mib=8.6,
    repository="nyu-mll/glue",
    revision="bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c",
    config="sst2",
    splits={"train": "train", "test": "validation"},  # the labels of GLUE's own test split are secret
    decode=sentences("sentence", "label", vocabulary=16_000, length=64, validation=1000),
    unpack=functools.partial(unpack_words, classes=2),
)

AG_NEWS = HubEntry(
    name="ag_news",
    summary="127,600 news items in four classes: world, sports, business, technology",
    task="sequence classification",
    licence="for non-commercial use: Zhang, Zhao & LeCun, arXiv:1509.01626",
    size_mib=16.0,
    repository="fancyzhx/ag_news",
    revision="eb185aade064a813bc0b7f42de02595523103ca4",
    config=None,
    splits={"train": "train", "test": "test"},
    decode=sentences("text", "label", vocabulary=30_000, length=64, validation=2000),
    unpack=functools.partial(unpack_words, classes=4),
)

HUB_SOURCES: tuple[DataSource, ...] = tuple(
    hub_source(entry) for entry in (CIFAR10, FASHION_MNIST, WIKITEXT2, TINYSTORIES, SST2, AG_NEWS)
)
