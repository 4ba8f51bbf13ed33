package compute

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"

	"outcrop/gpu/kernels"
)

// TestPTXAssembles has the driver of an NVIDIA card make machine code of all that is
// embedded, for cards that are not there too. With -short a fourth of it.
func TestPTXAssembles(t *testing.T) {
	if os.Getenv("OUTCROP_TEST_GPU") == "" {
		t.Skip("wants a card: set OUTCROP_TEST_GPU=1")
	}
	infos, err := cudaDriver{}.Devices()
	if err != nil || len(infos) == 0 {
		t.Skip("the CUDA driver names no card: ", err)
	}
	runtime.LockOSThread() // contexts belong to threads
	defer runtime.UnlockOSThread()
	back, err := cudaDriver{}.open(infos[0], Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := back.(*cudaBackend)
	defer b.close()
	if b.cu.links == nil {
		t.Skip("this CUDA driver has no cuLinkCreate")
	}
	type job struct {
		m          kernels.Module
		capability int
	}
	var list []job
	for _, capability := range []int{61, 75, 86, 89, 120, 0} {
		for i, m := range append(kernels.All(32), kernels.Units()...) {
			if _, err := kernels.PTX(m, max(capability, 61)); err != nil && capability < 80 {
				continue // matrix units
			}
			if !testing.Short() || (i+capability)%4 == 0 {
				list = append(list, job{m, capability})
			}
		}
	}
	jobs := make(chan job)
	var all sync.WaitGroup
	var mu sync.Mutex
	made := map[int]int{}
	for range runtime.GOMAXPROCS(0) {
		all.Add(1)
		go func() {
			defer all.Done()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			detach, err := b.attach()
			if err != nil {
				t.Error(err)
			} else {
				defer detach()
			}
			for j := range jobs {
				capability := j.capability
				if capability == 0 {
					capability = infos[0].Features.Nvidia
				}
				ptx, err := kernels.PTX(j.m, capability)
				if err == nil {
					_, err = b.cu.link(ptx, j.capability)
				}
				if err != nil {
					t.Errorf("%s for capability %d: %v", j.m.Name, capability, err)
					continue
				}
				mu.Lock()
				made[capability]++
				mu.Unlock()
			}
		}()
	}
	for _, j := range list {
		jobs <- j
	}
	close(jobs)
	all.Wait()
	t.Log("modules by capability: " + fmt.Sprint(made))
	// What is not PTX is refused with the assembler's words.
	text := ".version 7.0\n.target sm_80\n.address_size 64\nnonsense\n"
	if _, err := b.cu.link([]byte(text), 0); !errors.Is(err, ErrBuild) {
		t.Errorf("nonsense: %v, want ErrBuild", err)
	}
}
