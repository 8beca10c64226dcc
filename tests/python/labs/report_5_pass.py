def calculate_flops_bitops_pass(graph, pass_args: dict):

    flops, macs, params = get_model_profile(model=graph.model, input_shape=tuple([8,16]))
    ...
    for node in graph.fx_graph.nodes:
        ...
        if mase_type in ["module", "module_related_func"]:
            if mase_op in ["linear", "conv2d", "conv1d"]:
                ...
                data_in_cost += sum(data_in_0_meta["precision"]) * d_size
                weights_cost += sum(w_meta["precision"]) * w_size

    # on average how many bits do we pay per value?
    data_sum_bit = data_in_cost
    w_sum_bit = weights_cost
    total_bitops = data_sum_bit+w_sum_bit
    total_flops=flops
    dict={
        "total_flops": total_flops,
        "total_bitops": total_bitops,
        }
    return graph, dict

