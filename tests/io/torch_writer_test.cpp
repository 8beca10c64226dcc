// SPDX-License-Identifier: Apache-2.0
#include "mase/io/networks/checkpoint.h"
#include "support/support.h"

namespace mase::torch_writer_test {
namespace {

TEST(TorchWriter, SameContentGivesTheSameBytes) {
  const TensorTable state = {{"a.weight", Tensor::of({2, 2}, std::vector<float>{1, 2, 3, 4})}};
  const std::string folder = test::temporary_folder();
  save_lightning(folder + "/a.ckpt", state, Dict{{"epoch", 3}});
  save_lightning(folder + "/b.ckpt", state, Dict{{"epoch", 3}});
  EXPECT_EQ(test::read(folder + "/a.ckpt"), test::read(folder + "/b.ckpt"));
  const std::string content = test::read(folder + "/a.ckpt");
  EXPECT_EQ(content.substr(64, 2), "\x80\x02");  // the pickle, aligned
}

// What PyTorch itself makes of our files.
TEST(TorchWriter, PyTorchReadsIt) {
  if (test::run({"/usr/bin/python3", "-c", "import torch"}).exit_code != 0)
    GTEST_SKIP() << "python3-torch is not installed";
  const std::string folder = test::temporary_folder();
  const Tensor tied = Tensor::of({3}, std::vector<float>{1, -2, 0.5f});
  const TensorTable state = {
      {"seq_blocks.0.weight", Tensor::of({2, 2}, std::vector<float>{1, 2, 3, 4})},
      {"seq_blocks.0.num_batches_tracked", Tensor::of<int64_t>({}, std::vector<int64_t>{7})},
      {"a", tied},
      {"b", tied},
      {"empty", Tensor({0, 3})},
      {"half", tied.to(DType::f16)},
      {"flags", Tensor::of({2}, std::vector<float>{1, 0}).to(DType::boolean)}};
  save_lightning(folder + "/a.ckpt", state,
                 Dict{{"epoch", 3},
                      {"big", int64_t{1} << 40},
                      {"negative", -5},
                      {"nothing", nullptr},
                      {"rate", 0.1},
                      {"words", List{"a", "\xc3\xa9", true}},
                      {"optimizer_states",
                       List{Dict{{"state", Dict()}, {"param_groups", List{Dict{{"lr", 0.01}}}}}}}},
                 {{"optimizer_states.0.state.0.exp_avg", tied}, {"random.state", tied}});
  save_state_dict(folder + "/a.pt", state);
  // As the trainer writes: no floating-point opcode, which PyTorch 1.13's weights_only lacks.
  save_lightning(folder + "/safe.ckpt", state,
                 Dict{{"epoch", 3}, {"mase", to_json(Dict{{"rate", 0.1}})}},
                 {{"optimizer_states.0.state.0.step", Tensor::scalar(40)}});
  EXPECT_EQ(load_checkpoint(folder + "/safe.ckpt").contents["mase"]["rate"], Value(0.1));
  // PyTorch 1.13's weights_only knows no floating-point opcode, so the .ckpt is opened that way
  // from 2.0 on; the list below holds what every later release's weights_only knows.
  const char* script = R"(
import torch, sys, zipfile, pickletools
modern = int(torch.__version__.split('.')[0]) >= 2
for safe in ((False, True) if modern else (False,)):
    c = torch.load('a.ckpt', weights_only=safe)
    s = c['state_dict']
    assert list(s) == ['model.seq_blocks.0.weight', 'model.seq_blocks.0.num_batches_tracked',
                       'model.a', 'model.b', 'model.empty', 'model.half', 'model.flags'], list(s)
    assert type(s).__name__ == 'OrderedDict'
    assert s['model.seq_blocks.0.weight'].tolist() == [[1, 2], [3, 4]]
    assert s['model.seq_blocks.0.num_batches_tracked'].item() == 7
    assert s['model.a'].data_ptr() == s['model.b'].data_ptr()
    assert s['model.empty'].shape == (0, 3)
    assert s['model.half'].dtype == torch.float16 and s['model.half'].tolist() == [1, -2, 0.5]
    assert s['model.flags'].tolist() == [True, False]
    assert c['epoch'] == 3 and c['big'] == 2 ** 40 and c['negative'] == -5 and c['nothing'] is None
    assert c['rate'] == 0.1 and c['words'] == ['a', '\u00e9', True]
    o = c['optimizer_states'][0]
    assert o['state'][0]['exp_avg'].tolist() == [1, -2, 0.5] and o['param_groups'][0]['lr'] == 0.01
    assert c['random']['state'].tolist() == [1, -2, 0.5]
    assert c['loops'] == {} and c['lr_schedulers'] == []
c = torch.load('safe.ckpt', weights_only=True)
assert c['state_dict']['model.a'].tolist() == [1, -2, 0.5]
assert c['optimizer_states'][0]['state'][0]['step'].item() == 40
p = torch.load('a.pt', weights_only=True)
assert p['a'].tolist() == [1, -2, 0.5] and len(p) == 7
known = {'PROTO', 'EMPTY_DICT', 'MARK', 'BINUNICODE', 'BININT', 'BININT1', 'LONG1', 'BINFLOAT', 'NONE',
         'NEWTRUE', 'NEWFALSE', 'EMPTY_LIST', 'APPENDS', 'EMPTY_TUPLE', 'TUPLE', 'REDUCE', 'GLOBAL',
         'BINPUT', 'BINGET', 'BINPERSID', 'SETITEMS', 'STOP'}
used = {op.name for op, _, _ in pickletools.genops(zipfile.ZipFile('a.ckpt').read('archive/data.pkl'))}
assert used <= known, used - known
assert zipfile.ZipFile('a.ckpt').testzip() is None
)";
  const test::RunResult result = test::run({"/usr/bin/python3", "-c", script}, folder);
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

}  // namespace
}  // namespace mase::torch_writer_test
