mg, ans = calculate_flops_bitops_pass(mg, pass_args)
print("Total BitOPs:", ans["total_bitops"])
print("Total FLOPs:", ans["total_flops"])
