import pandas as pd
from chop.passes.graph.transforms.quantize.summary import graph_iterator_compare_nodes

...
mg, _ = quantize_transform_pass(mg, pass_args1)
summarize_quantization_analysis_pass(ori_mg, mg, save_dir="quantize_summary")

df = graph_iterator_compare_nodes(ori_mg, mg, save_path=None, silent=False)
pd.set_option('display.max_columns', None)
print(df)
...
