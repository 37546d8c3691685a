#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Event files as the `tensorboard` package reads them, of a run that is killed 20 times (KILLS), and of one with
# histograms. PYTHON names a Python that has the package:
#
#   python3 -m venv venv && venv/bin/pip install tensorboard
#   PYTHON=venv/bin/python tests/train/tensorboard_package.sh
. "$(dirname "$0")/harness.sh"
: "${PYTHON:?names a Python with the tensorboard package}"
PYTHON=$(cd "$OLDPWD" && realpath -s "$PYTHON")

cp "${TRAINC_TOY:-$(dirname "$TRAINC")/toy_trainer}" trainer
toy_files
train=(./trainer train --tokens text.bin --no-progress --learning-rate 0.5 --run run --resume auto
  --checkpoint-every 7 --holdout 0.1 --evaluate-every 7 --sample-every 7 --length 20)
for kill in $(seq "${KILLS:-20}"); do
  before=$(log_lines run)
  "${train[@]}" --steps 100000000 >run.txt 2>&1 &
  wait_for_steps run $((before + 20))
  sleep "0.$((RANDOM % 10))"
  kill -KILL $!
  wait $! || true
done
last=$(($(log_lines run) / 7 * 7 + 14))
quietly "${train[@]}" --steps "$last"
"$PYTHON" - "$last" <<'END'
import sys
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.plugins.hparams import metadata
import glob

last = int(sys.argv[1])
for path in glob.glob("run/tensorboard/*"):
    list(EventFileLoader(path).Load())  # which throws where a record is damaged
events = event_accumulator.EventAccumulator("run/tensorboard", size_guidance={"scalars": 0, "tensors": 0})
events.Reload()
tags = events.Tags()
assert set(tags["scalars"]) >= {"train/loss", "train/gradient_norm", "train/learning_rate", "train/skipped_steps",
                                "speed/milliseconds", "speed/samples_per_second", "speed/tokens_per_second",
                                "memory/resident_bytes", "held_out/loss"}, tags
for tag in tags["scalars"]:
    steps = [event.step for event in events.Scalars(tag)]
    if tag.startswith("held_out/"):
        assert steps == list(range(7, last + 1, 7)), (tag, steps)
    elif tag != "speed/share_of_product":
        assert steps == list(range(1, last + 1)), (tag, len(steps), last)
assert [event.step for event in events.Tensors("sample")] == list(range(7, last + 1, 7))
text = events.Tensors("configuration")[0].tensor_proto.string_val[0].decode()
assert "| --learning-rate | `0.5` |" in text, text
content = events.SummaryMetadata(metadata.SESSION_START_INFO_TAG).plugin_data.content
rate = metadata.parse_session_start_info_plugin_data(content).hparams["learning-rate"]
assert rate.number_value == 0.5, rate
print(f"{last} steps, {len(tags['scalars'])} scalars, {len(glob.glob('run/tensorboard/*'))} files")
END

compile nanogpt_dynamo20_static out
train out 4 --run histograms --histograms-every 2
"$PYTHON" - <<'END'
import glob

from tensorboard.backend.event_processing import event_accumulator, plugin_event_accumulator
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.util import tensor_util

old = event_accumulator.EventAccumulator("histograms/tensorboard", size_guidance={"histograms": 0})
new = plugin_event_accumulator.EventAccumulator("histograms/tensorboard", size_guidance={"tensors": 0})
old.Reload()
new.Reload()
tags = old.Tags()["histograms"]
assert len(tags) > 30 and {tag.split("/")[0] for tag in tags} == {"parameters", "gradients", "updates"}, tags
assert set(tags) == set(new.PluginTagToContent("histograms")), "the new loader"
for tag in tags:
    assert [event.step for event in old.Histograms(tag)] == [2, 4], tag
    for event, of_new in zip(old.Histograms(tag), new.Tensors(tag)):
        value = event.histogram_value
        assert value.num == sum(value.bucket) > 0 and value.min <= value.sum / value.num <= value.max, value
        rows = tensor_util.make_ndarray(of_new.tensor_proto)  # left end, right end, count
        assert rows[0][0] == value.min and rows[-1][1] == value.max and rows[:, 2].sum() == value.num, rows
        assert (rows[:, 0] <= rows[:, 1]).all(), rows
print(f"{len(tags)} histograms of 2 steps")
END
