// RUN: rm -rf %t && not %trainc-emit %s -o %t 2>&1 | %FileCheck %s
//
// An element type that nothing is emitted for is an internal error, not some other type.

// CHECK: error: internal error in emit: no tensor has elements of type f80

module {
  kernel.function @copy pointwise dims [16] reduced 0 outputs 1 accesses [#kernel.access<[1], 0>, #kernel.access<[1], 0>] sources [] {
  ^bb0(%x: !kernel.buffer<f80>, %y: !kernel.buffer<f80>):
    kernel.map {
      %0 = kernel.load %x : !kernel.buffer<f80> -> f80
      kernel.store %0, %y : f80, !kernel.buffer<f80>
    }
  }
  func.func @evaluate(%x: tensor<16xf80> {kernel.place = #kernel.place<activations, 0>})
      -> (tensor<16xf80> {kernel.place = #kernel.place<activations, 64>}) {
    %0 = kernel.launch @copy(%x) {places = [#kernel.place<activations, 64>]} : (tensor<16xf80>) -> tensor<16xf80>
    return %0 : tensor<16xf80>
  }
}
