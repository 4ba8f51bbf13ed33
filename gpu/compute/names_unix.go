//go:build !windows

package compute

var (
	openclNames = []string{"libOpenCL.so.1", "libOpenCL.so"}
	cudaNames   = []string{"libcuda.so.1", "libcuda.so"}
	zeNames     = []string{"libze_loader.so.1"}
)
