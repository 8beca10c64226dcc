for ori_n, n in zip(ori_mg.fx_graph.nodes, mg.fx_graph.nodes):
    if (type(get_node_actual_target(n)) != type(get_node_actual_target(ori_n))):
        print(f'difference found at name: {n.name}, mase_type: {get_mase_type(n)}, mase_op: {get_mase_op(n)}\n original module: {type(get_node_actual_target(ori_n))} --> new module {type(get_node_actual_target(n))}')
        print(f'weight of original module: {get_node_actual_target(ori_n).weight}')
        print(f'weight of quantized module: {get_node_actual_target(n).weight}')
        test_input = torch.randn(get_node_actual_target(n).in_features)
        print(f'random generated test input: {test_input}')
        print(f'output for original module: {get_node_actual_target(ori_n)(test_input)}')
        print(f'output for quantized module: {get_node_actual_target(n)(test_input)}')
