package quant

//go:noescape
func query8x256(a *slabCall)

//go:noescape
func query4x256(a *slabCall)

//go:noescape
func scales8x256(a *slabCall)

//go:noescape
func scales4x256(a *slabCall)

//go:noescape
func weights8x256(a *slabCall)

//go:noescape
func weights4x256(a *slabCall)

//go:noescape
func scores8x256(a *slabCall)

//go:noescape
func scores4x256(a *slabCall)

//go:noescape
func mix8by1x256(a *slabCall)

//go:noescape
func mix8by2x256(a *slabCall)

//go:noescape
func mix8by3x256(a *slabCall)

//go:noescape
func mix4by1x256(a *slabCall)

//go:noescape
func mix4by2x256(a *slabCall)

//go:noescape
func mix4by3x256(a *slabCall)

//go:noescape
func scores4xVNNI(a *slabCall)

//go:noescape
func mix4by1xVNNI(a *slabCall)

//go:noescape
func mix4by2xVNNI(a *slabCall)

//go:noescape
func mix4by3xVNNI(a *slabCall)

var (
	slabs256 = [2]slabOps{
		Cache8: {query8x256, scores8x256, scales8x256, weights8x256, mix8AVX2},
		Cache4: {query4x256, scores4x256, scales4x256, weights4x256, mix4AVX2},
	}
	slabsVNNI = [2]slabOps{
		Cache8: {query8x256, scores8x256, scales8x256, weights8x256, mix8AVX2},
		Cache4: {query4x256, scores4xVNNI, scales4x256, weights4x256, mix4VNNI},
	}
)

func mix8AVX2(a *slabCall) {
	a.share(2*(a.nq+2)/3, 0)
	a.byThree(mix8by1x256, mix8by2x256, mix8by3x256)
}

func mix4AVX2(a *slabCall) {
	a.share(2*(a.nq+2)/3, 0)
	a.byThree(mix4by1x256, mix4by2x256, mix4by3x256)
}

func mix4VNNI(a *slabCall) {
	a.share(2*(a.nq+2)/3, 0)
	a.byThree(mix4by1xVNNI, mix4by2xVNNI, mix4by3xVNNI)
}

// byThree takes up to three queries at a time.
func (a *slabCall) byThree(one, two, three func(*slabCall)) {
	for left := a.nq; left > 0; {
		n := min(left, 3)
		if left == 4 {
			n = 2
		}
		switch n {
		case 1:
			one(a)
		case 2:
			two(a)
		default:
			three(a)
		}
		if left -= n; left > 0 { // or the pointers would lead past what there is
			a.pass(n)
		}
	}
}
