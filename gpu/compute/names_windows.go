//go:build windows

package compute

var (
	openclNames = []string{"OpenCL.dll"}
	cudaNames   = []string{"nvcuda.dll"}
	zeNames     = []string{"ze_loader.dll"}
)
