package quant

import "unsafe"

//go:noescape
func query8x512(a *slabCall)

//go:noescape
func query4x512(a *slabCall)

//go:noescape
func scores8x512(a *slabCall)

//go:noescape
func scores4x512(a *slabCall)

//go:noescape
func scales8x512(a *slabCall)

//go:noescape
func scales4x512(a *slabCall)

//go:noescape
func weights8x512(a *slabCall)

//go:noescape
func weights4x512(a *slabCall)

//go:noescape
func mix8by1x512(a *slabCall)

//go:noescape
func mix8by2x512(a *slabCall)

//go:noescape
func mix8by3x512(a *slabCall)

//go:noescape
func mix4by1x512(a *slabCall)

//go:noescape
func mix4by2x512(a *slabCall)

//go:noescape
func mix4by3x512(a *slabCall)

//go:noescape
func mix4by4x512(a *slabCall)

//go:noescape
func mix4by6x512(a *slabCall)

var slabs512 = [2]slabOps{
	Cache8: {query8x512, scores8x512, scales8x512, weights8x512, mix8AVX512},
	Cache4: {query4x512, scores4x512, scales4x512, weights4x512, mix4AVX512},
}

// mix8AVX512 takes up to three queries at a time: 24 registers of sums.
func mix8AVX512(a *slabCall) {
	a.share((a.nq+2)/3, weightsFetch)
	a.byThree(mix8by1x512, mix8by2x512, mix8by3x512)
}

// weightsFetch is how many bytes weights8x512 and weights4x512 fetch.
const weightsFetch = 256

// mix4AVX512 takes up to six.
func mix4AVX512(a *slabCall) {
	a.share((a.nq+5)/6, weightsFetch)
	for left := a.nq; left > 0; {
		n := min(left, 6)
		switch left {
		case 5:
			n = 3
		case 7, 8:
			n = 4
		}
		switch n {
		case 1:
			mix4by1x512(a)
		case 2:
			mix4by2x512(a)
		case 3:
			mix4by3x512(a)
		case 4:
			mix4by4x512(a)
		default:
			mix4by6x512(a)
		}
		if left -= n; left > 0 { // or the pointers would lead past what there is
			a.pass(n)
		}
	}
}

// share has what is still to be fetched, for the groups that are left, shared out
// over calls for each group, so that none waits for it; weights of a query fetch
// so many bytes themselves.
func (a *slabCall) share(calls, weights int) {
	left := int(a.end - a.fetch)
	if a.end <= a.fetch {
		left = 0
	}
	left -= (a.groups - 1 - a.group) * a.nq * weights
	a.pace(max(0, left)/((a.groups-a.group)*4*calls*a.count) + 1)
}

// pass goes on by n queries.
func (a *slabCall) pass(n int) {
	a.x = unsafe.Add(a.x, n*int(unsafe.Sizeof(slabWeights{})))
	a.dst = unsafe.Add(a.dst, n*int(a.ldd))
}
