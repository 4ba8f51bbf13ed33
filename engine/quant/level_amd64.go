package quant

import "golang.org/x/sys/cpu"

// machineLevels is what this processor has beside the plain loops, slowest
// first.
func machineLevels() (l []*kernels) {
	x := &cpu.X86
	if x.HasAVX2 && x.HasFMA && x.HasF16C && x.HasBMI2 {
		l = append(l, &avx2)
	}
	if x.HasAVX2 && x.HasFMA && x.HasF16C && x.HasBMI2 && x.HasAVXVNNI {
		l = append(l, &avxvnni)
	}
	if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX512VBMI &&
		x.HasAVX512VNNI && x.HasAVX512GFNI && x.HasAVX2 && x.HasFMA && x.HasF16C && x.HasBMI2 {
		l = append(l, &avx512)
		if hasTiles() {
			if refused = askTiles(); refused == nil {
				l = append(l, &amx)
			}
		}
	}
	return l
}

var avx512 = kernels{
	level: AVX512VNNI, vec: avx512Vec, delta: deltaAVX512, scoresMany: scoresManyAVX512, mixMany: mixManyAVX512, slab: slabs512,
	records: true, quantize: quantize512,
	rows: [typeCount]func(*gemv){
		Q4_0:      rowsQ4_0x512,
		Q4_1:      rowsQ4_1x512,
		Q5_0:      rowsQ5_0x512,
		Q5_1:      rowsQ5_1x512,
		Q8_0:      rowsQ8_0x512,
		Q2_K:      rowsQ2_Kx512,
		Q3_K:      rowsQ3_Kx512,
		Q4_K:      rowsQ4_Kx512,
		Q5_K:      rowsQ5_Kx512,
		Q6_K:      rowsQ6_Kx512,
		IQ2_XXS:   rowsIQ2_XXSx512,
		IQ2_XS:    rowsIQ2_XSx512,
		IQ3_XXS:   rowsIQ3_XXSx512,
		IQ1_S:     rowsIQ1_Sx512,
		IQ4_NL:    rowsIQ4_NLx512,
		IQ3_S:     rowsIQ3_Sx512,
		IQ2_S:     rowsIQ2_Sx512,
		IQ4_XS:    rowsIQ4_XSx512,
		IQ1_M:     rowsIQ1_Mx512,
		TQ1_0:     rowsTQ1_0x512,
		TQ2_0:     rowsTQ2_0x512,
		MXFP4:     rowsMXFP4x512,
		NVFP4:     rowsNVFP4x512,
		Q1_0:      rowsQ1_0x512,
		Q2_0:      rowsQ2_0x512,
		woven4_0:  rowsW4_0x512,
		woven4_1:  rowsW4_1x512,
		woven5_0:  rowsW5_0x512,
		woven5_1:  rowsW5_1x512,
		woven8_0:  rowsW8_0x512,
		woven2_K:  rowsW2_Kx512,
		woven3_K:  rowsW3_Kx512,
		woven4_K:  rowsW4_Kx512,
		woven5_K:  rowsW5_Kx512,
		woven6_K:  rowsW6_Kx512,
		woven4_NL: rowsW4_NLx512,
		woven4_XS: rowsW4_XSx512,
		wovenMX:   rowsWMXx512,
		woven3S:   rowsW3Sx512,
		woven3XXS: rowsW3XXSx512,
	},
	many:   many512(),
	floats: [BF16 + 1]func(*gemv){F32: rowsF32x512, F16: rowsF16x512, BF16: rowsBF16x512}, floatTails: true,
}

var avx2 = kernels{
	level: AVX2, vec: avx2Vec, delta: deltaAVX2, scoresMany: scoresManyAVX2, mixMany: mixManyAVX2, slab: slabs256,
	many:    many256(),
	records: true, quantize: quantize256,
	floats: [BF16 + 1]func(*gemv){F32: rowsF32x256, F16: rowsF16x256, BF16: rowsBF16x256},
	rows: [typeCount]func(*gemv){
		Q4_0:      rowsQ4_0x256,
		Q4_1:      rowsQ4_1x256,
		Q5_0:      rowsQ5_0x256,
		Q5_1:      rowsQ5_1x256,
		Q8_0:      rowsQ8_0x256,
		Q2_K:      rowsQ2_Kx256,
		Q3_K:      rowsQ3_Kx256,
		Q4_K:      rowsQ4_Kx256,
		Q5_K:      rowsQ5_Kx256,
		Q6_K:      rowsQ6_Kx256,
		IQ2_XXS:   rowsIQ2_XXSx256,
		IQ2_XS:    rowsIQ2_XSx256,
		IQ3_XXS:   rowsIQ3_XXSx256,
		IQ1_S:     rowsIQ1_Sx256,
		IQ4_NL:    rowsIQ4_NLx256,
		IQ3_S:     rowsIQ3_Sx256,
		IQ2_S:     rowsIQ2_Sx256,
		IQ4_XS:    rowsIQ4_XSx256,
		IQ1_M:     rowsIQ1_Mx256,
		TQ1_0:     rowsTQ1_0x256,
		TQ2_0:     rowsTQ2_0x256,
		MXFP4:     rowsMXFP4x256,
		NVFP4:     rowsNVFP4x256,
		Q1_0:      rowsQ1_0x256,
		Q2_0:      rowsQ2_0x256,
		woven4_0:  rowsW4_0x256,
		woven4_1:  rowsW4_1x256,
		woven5_0:  rowsW5_0x256,
		woven5_1:  rowsW5_1x256,
		woven8_0:  rowsW8_0x256,
		woven2_K:  rowsW2_Kx256,
		woven3_K:  rowsW3_Kx256,
		woven4_K:  rowsW4_Kx256,
		woven5_K:  rowsW5_Kx256,
		woven6_K:  rowsW6_Kx256,
		woven4_NL: rowsW4_NLx256,
		woven4_XS: rowsW4_XSx256,
		wovenMX:   rowsWMXx256,
		woven3S:   rowsW3Sx256,
		woven3XXS: rowsW3XXSx256,
	},
}

// many512 is the slab kernels of AVX-512: 16 rows, weights 128 too large.
func many512() (m [typeCount]slabKernels) {
	for t, u := range [typeCount]func(*unpack){
		Q4_0:      unpackQ4_0x512,
		Q4_1:      unpackQ4_1x512,
		Q5_0:      unpackQ5_0x512,
		Q5_1:      unpackQ5_1x512,
		Q8_0:      unpackQ8_0x512,
		Q2_K:      unpackQ2_Kx512,
		Q3_K:      unpackQ3_Kx512,
		Q4_K:      unpackQ4_Kx512,
		Q5_K:      unpackQ5_Kx512,
		Q6_K:      unpackQ6_Kx512,
		IQ2_XXS:   unpackIQ2_XXSx512,
		IQ2_XS:    unpackIQ2_XSx512,
		IQ3_XXS:   unpackIQ3_XXSx512,
		IQ1_S:     unpackIQ1_Sx512,
		IQ4_NL:    unpackIQ4_NLx512,
		IQ3_S:     unpackIQ3_Sx512,
		IQ2_S:     unpackIQ2_Sx512,
		IQ4_XS:    unpackIQ4_XSx512,
		IQ1_M:     unpackIQ1_Mx512,
		TQ1_0:     unpackTQ1_0x512,
		TQ2_0:     unpackTQ2_0x512,
		MXFP4:     unpackMXFP4x512,
		NVFP4:     unpackNVFP4x512,
		Q1_0:      unpackQ1_0x512,
		Q2_0:      unpackQ2_0x512,
		woven4_0:  unpackW4_0x512,
		woven4_1:  unpackW4_1x512,
		woven5_0:  unpackW5_0x512,
		woven5_1:  unpackW5_1x512,
		woven8_0:  unpackW8_0x512,
		woven2_K:  unpackW2_Kx512,
		woven3_K:  unpackW3_Kx512,
		woven4_K:  unpackW4_Kx512,
		woven5_K:  unpackW5_Kx512,
		woven6_K:  unpackW6_Kx512,
		woven4_NL: unpackW4_NLx512,
		woven4_XS: unpackW4_XSx512,
		wovenMX:   unpackWMXx512,
		woven3S:   unpackW3Sx512,
		woven3XXS: unpackW3XXSx512,
	} {
		s := slabKernels{unpack: u, weave: weave32x512, rows: 16, late: t >= int(woven4_0)}
		switch {
		case parts16[t] && offsets[t]:
			s.weave, s.by4, s.by8 = weave16x512, slab16Offsetsby4x512, slab16Offsetsby8x512
		case parts16[t]:
			s.weave, s.by4, s.by8 = weave16x512, slab16by4x512, slab16by8x512
		case offsets[t]:
			s.by4, s.by8 = slab32Offsetsby4x512, slab32Offsetsby8x512
		default:
			s.by4, s.by8 = slab32by4x512, slab32by8x512
		}
		m[t] = s
	}
	return m
}

// unpack256 are the unpacks of AVX2 and what makes of 128 what their weights are
// too large, as a shift; signed ones have a sign instead.
var unpack256 = [typeCount]struct {
	unpack func(*unpack)
	shift  uint64
	bits   int // of a weight: at most
}{
	Q4_0:      {unpackQ4_0x256, 4, 5},
	Q4_1:      {unpackQ4_1x256, 0, 5},
	Q5_0:      {unpackQ5_0x256, 3, 5},
	Q5_1:      {unpackQ5_1x256, 0, 5},
	Q8_0:      {unpackQ8_0x256, 0, signed},
	Q2_K:      {unpackQ2_Kx256, 0, 5},
	Q3_K:      {unpackQ3_Kx256, 5, 5},
	Q4_K:      {unpackQ4_Kx256, 0, 5},
	Q5_K:      {unpackQ5_Kx256, 0, 5},
	Q6_K:      {unpackQ6_Kx256, 2, 7},
	IQ2_XXS:   {unpackIQ2_XXSx256, 1, 7},
	IQ2_XS:    {unpackIQ2_XSx256, 1, 7},
	IQ3_XXS:   {unpackIQ3_XXSx256, 1, 7},
	IQ1_S:     {unpackIQ1_Sx256, 3, 5},
	IQ4_NL:    {unpackIQ4_NLx256, 0, signed},
	IQ3_S:     {unpackIQ3_Sx256, 1, 7},
	IQ2_S:     {unpackIQ2_Sx256, 1, 7},
	IQ4_XS:    {unpackIQ4_XSx256, 0, signed},
	IQ1_M:     {unpackIQ1_Mx256, 3, 5},
	TQ1_0:     {unpackTQ1_0x256, 7, 5},
	TQ2_0:     {unpackTQ2_0x256, 7, 5},
	MXFP4:     {unpackMXFP4x256, 3, 5},
	NVFP4:     {unpackNVFP4x256, 3, 5},
	Q1_0:      {unpackQ1_0x256, 7, 5},
	Q2_0:      {unpackQ2_0x256, 7, 5},
	woven4_0:  {unpackW4_0x256, 4, 5},
	woven4_1:  {unpackW4_1x256, 0, 5},
	woven5_0:  {unpackW5_0x256, 3, 5},
	woven5_1:  {unpackW5_1x256, 0, 5},
	woven8_0:  {unpackW8_0x256, 0, signed},
	woven2_K:  {unpackW2_Kx256, 0, 5},
	woven3_K:  {unpackW3_Kx256, 5, 5},
	woven4_K:  {unpackW4_Kx256, 0, 5},
	woven5_K:  {unpackW5_Kx256, 0, 5},
	woven6_K:  {unpackW6_Kx256, 2, 7},
	woven4_NL: {unpackW4_NLx256, 0, signed},
	woven4_XS: {unpackW4_XSx256, 0, signed},
	wovenMX:   {unpackWMXx256, 3, 5},
	woven3S:   {unpackW3Sx256, 3, 5},
	woven3XXS: {unpackW3XXSx256, 1, 7},
}

const signed = 8

// many256 is the slab kernels of AVX2: 8 rows.
func many256() (m [typeCount]slabKernels) {
	for t, u := range unpack256 {
		s := slabKernels{unpack: u.unpack, shift: u.shift, weave: weave32x256, rows: 8}
		if parts16[t] {
			s.weave = weave16x256
		}
		switch {
		case u.bits == signed:
			s.by4 = slab32by4_Sx256
		case parts16[t] && offsets[t]:
			s.by4 = slab16Offsetsby4_5x256
		case parts16[t] && u.bits == 7:
			s.by4 = slab16by4_7x256
		case parts16[t]:
			s.by4 = slab16by4_5x256
		case offsets[t]:
			s.by4 = slab32Offsetsby4_5x256
		case u.bits == 7:
			s.by4 = slab32by4_7x256
		default:
			s.by4 = slab32by4_5x256
		}
		m[t] = s
	}
	return m
}

var avxvnni = kernels{
	level: AVXVNNI, vec: avx2Vec, delta: deltaAVX2, scoresMany: scoresManyAVX2, mixMany: mixManyAVX2, slab: slabsVNNI,
	many:    manyVNNI(),
	records: true, quantize: quantize256,
	floats: [BF16 + 1]func(*gemv){F32: rowsF32x256, F16: rowsF16x256, BF16: rowsBF16x256},
	rows: [typeCount]func(*gemv){
		Q4_0:      rowsQ4_0xVNNI,
		Q4_1:      rowsQ4_1xVNNI,
		Q5_0:      rowsQ5_0xVNNI,
		Q5_1:      rowsQ5_1xVNNI,
		Q8_0:      rowsQ8_0xVNNI,
		Q2_K:      rowsQ2_KxVNNI,
		Q3_K:      rowsQ3_KxVNNI,
		Q4_K:      rowsQ4_KxVNNI,
		Q5_K:      rowsQ5_KxVNNI,
		Q6_K:      rowsQ6_KxVNNI,
		IQ2_XXS:   rowsIQ2_XXSxVNNI,
		IQ2_XS:    rowsIQ2_XSxVNNI,
		IQ3_XXS:   rowsIQ3_XXSxVNNI,
		IQ1_S:     rowsIQ1_SxVNNI,
		IQ4_NL:    rowsIQ4_NLxVNNI,
		IQ3_S:     rowsIQ3_SxVNNI,
		IQ2_S:     rowsIQ2_SxVNNI,
		IQ4_XS:    rowsIQ4_XSxVNNI,
		IQ1_M:     rowsIQ1_MxVNNI,
		TQ1_0:     rowsTQ1_0xVNNI,
		TQ2_0:     rowsTQ2_0xVNNI,
		MXFP4:     rowsMXFP4xVNNI,
		NVFP4:     rowsNVFP4xVNNI,
		Q1_0:      rowsQ1_0xVNNI,
		Q2_0:      rowsQ2_0xVNNI,
		woven4_0:  rowsW4_0xVNNI,
		woven4_1:  rowsW4_1xVNNI,
		woven5_0:  rowsW5_0xVNNI,
		woven5_1:  rowsW5_1xVNNI,
		woven8_0:  rowsW8_0xVNNI,
		woven2_K:  rowsW2_KxVNNI,
		woven3_K:  rowsW3_KxVNNI,
		woven4_K:  rowsW4_KxVNNI,
		woven5_K:  rowsW5_KxVNNI,
		woven6_K:  rowsW6_KxVNNI,
		woven4_NL: rowsW4_NLxVNNI,
		woven4_XS: rowsW4_XSxVNNI,
		wovenMX:   rowsWMXxVNNI,
		woven3S:   rowsW3SxVNNI,
		woven3XXS: rowsW3XXSxVNNI,
	},
}

// manyVNNI is the slab kernels of AVX2 with VPDPBUSD, which has no sum that could
// become too large.
func manyVNNI() (m [typeCount]slabKernels) {
	for t, u := range unpack256 {
		s := slabKernels{unpack: u.unpack, shift: u.shift, weave: weave32x256, rows: 8}
		if u.bits == signed {
			s.flip = 0x80
		}
		switch {
		case parts16[t] && offsets[t]:
			s.weave, s.by4 = weave16x256, slab16Offsetsby4xVNNI
		case parts16[t]:
			s.weave, s.by4 = weave16x256, slab16by4xVNNI
		case offsets[t]:
			s.by4 = slab32Offsetsby4xVNNI
		default:
			s.by4 = slab32by4xVNNI
		}
		m[t] = s
	}
	return m
}
