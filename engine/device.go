package engine

// What runs where, when a model uses graphics devices.
//
// Layers are cut into runs. A run lies on one device, or on the CPU; runs follow
// each other in the order of layers, and the residual stream goes from one to
// the next through pinned host memory. Within a run on a device everything stays
// there: weights, repacked at load as the kernels want them (gpu/compute/ops),
// keys and values, recurrent state, activations. The host writes the embedded
// tokens, their rotations and the position, and reads the logits.
//
// Routed experts of a run may stay with the CPU: then the normed hidden state is
// read back once a layer, the worker pool computes the experts beside the shared
// one on the device, and their sum goes back.
