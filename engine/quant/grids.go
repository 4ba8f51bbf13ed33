package quant

import "encoding/base64"

// The i-quants with 1 to 3 bits point into tables of vectors ("grids"). Which
// vectors a grid holds was chosen by its authors by clustering real weights,
// so the sets cannot be computed; they are the tables iq2xxs_grid, iq2xs_grid,
// iq2s_grid, iq3xxs_grid, iq3s_grid and iq1s_grid of ggml's ggml-common.h (MIT
// licence, the ggml authors: NOTICE.md), which came with llama.cpp pull
// requests 4773, 4856, 5721, 5196, 5676 and 5999.
//
// Every grid is listed in ascending order when a vector is read as a number
// with its first component as the lowest digit. So a grid is no more than a
// set, kept here as one bit for each vector that it could hold, in base64.
// Four of the sets hold only vectors whose digits have an even sum; their bits
// skip the odd ones.

const setIQ2XXS = "" +
	"f/akmSCmQAAgCAYIACAATJgFYYIsCAQwBMAAAYAAaYJmAAIgAAIAACAEAAAAYEIECFIgQYAIAQAAIQAAQIKCAAIAQABAAIBAAAAAABMgAAgABQAAABAAAAgA" +
	"ACYAATEAAEAEAAAMAAAAAJgAgQAACAACCAAAAAAACIAgAAAgAAAAAAAAABAAAMCkSRQmQIAAIAqACIAIAYAEAQAEBCAEAAAAAQAAAAAmQAEAAAIAQCEAAAAC" +
	"AAKkDAAgARAAAgAAAQAAAAgAAAAAGAABAAAAIAAAAQAgJAAgAAAACAAAAAIAAAAACRAAAYAAAAgAAIAAQAAABQAAAABgAAAgAAAAAAAAAAABAAAAAAAAAAAA" +
	"AAAAmAACgAAgCAIAAAACAAAAYAoECAAgACAAQAACCBAAgAAAAAAAAQAAAAAQAAAAABIkAAAQgAAACAAAAAEAAAIIAQAAAAAQAAAAAAAAAAAAAEAAABAAAAAA" +
	"AAAAACAAQAACAAEAAAAgAAAAAAAgAAAAAAAAAAAAAAAAAAAAAAIAAAIAAAAAAAAAAAAA"

const setIQ2XS = "" +
	"/9+/eRv+z5s0Ad6EKRAB/Jt3YQK8CRMiAJhAA4AA+FMmQYA4AQKABBAgAQBA4d+8iRPgTZgAwcAFCBAAwJuwQQKACRAAAIAgAAEAADMgCCAABQAAAgAAAAgA" +
	"AP+ECRAgTIAEBAAEEAAgAJqAAQAACABCAEAQEAAAAJQhAAEEAgAAQBAAQQAAGsC/+VMmwJswAQqIGRgAAIC3YQIEARMkAAAIEYAEAAAmQBEBAEIACQgACAAA" +
	"AAC8SRMgAJgCAwAACAAEAAA4IQKEAJEAAIAEAEAAQAAiCIgAAAFAGAAAAAAAAAiACRBEEMAAAAAAAAAEAgABgQAAAAAgQAEAQAAAAAAABAAAEAAAIAAAACAA" +
	"QAQAeBMnwAB8AUICABAgAIABaQ4ECAggABAAAAggAAABQAICEAYgAgAAAAAAAgAkQhMgEBAAAQQAAQAAACCAAAoASQAAAEAAAAYAAAEAAAAAIAAAAgAQAAAA" +
	"BAAEALAhAgAAAQCABABoAQQAAQIACACAAAAAAAAAAACAAAIICwAASAIAADAAADAAAAEB"

const setIQ2S = "" +
	"/9+/f1P/zfs2Z97EL1BF/Pv/59v8b//mTfgCbcIEeF//TRE4L9qECBBGQwCA4N+9f9fm//s3b8CWKQMmwPv2b96Ef/MmTIA2YQIEgN/iTRgAb8IEBCAkQCAA" +
	"AN7XORIFzokzYQJE0BIAA/o2b8IEaBMmUAAwAQICAFAGTAAIcAIAAEAAggAgGMD/+3+mzfvzb96EedImDID/79+8Cf/mTZwAb8IECED2zZsgAd6ECRAITIAA" +
	"AAC8f//mDfg3b8IEaBMmYADwb96ECfAmTIAAYAIFAADgTZgIAcAECAAAQEAAAAige9MmSIA3YQIEBBIgEAAQbcIECAAmQAQEAgIAAAAETAAABBAEgAAAAAAA" +
	"AgCAeFvmRRmwb96ACVgHTAAA4F+8CRPgTZgAEcAEDAAAQBkwAQCIARCAAAAAAjAIEPvkTZgAZcBEAAAmQAAAgN6ECRAITIAAAFAEAAQEAJhAAQAADABQAAAA" +
	"AAAACFBFTgAAEgAEIABAggYAGtAECAAQSEAAAAAAAAACAAAICAAAEAAACCAAGBYAQAAB"

const setIQ3XXS = "" +
	"txMCYDM1QRAXs5BAOQQAECCAhGAJICAAAEAABNAAAgEzcxgAEwMAADMRACADEQgIBQAQAAAFCBAEAAAAAAIBADMbAgA3EQAak4NBAFEAAFAAQCAAAggBQAAA" +
	"AACDAAQAMQMQJAMRDAATBCAgECAAAAAQCCAJAkAAQIAAAgAgAAGEwKAAAAAAQACBAQkIAAQABAAQBAAEAhAAAAAANBAAACAAARAJCEAAQCAAIAIAIAAQCgAg" +
	"AhAAAAAAEAAABAIAAAQMBAABAAGAAAAEAJAAAAAABAAEACAAACAAAAIBAAAeICAAAAgBACAAJABBIAABAAEBAAMEAAAAEAAAAAAAAA=="

const setIQ3S = "" +
	"p1cjCKUKBZIXI4kiEAAiBKNJIhGkCgAJCCIFShAFgCIBiBIECQIAARQARQiiAEAIQAoAAgAEAAIVAEUIABEAABerBVIAUAIESxECCQIFAEEBpBEECSABBJIJ" +
	"ghECAAQBKBQACkQRAAACCQIFAAIAAAAAkQBQAAAACgUCIAIABAGrVYoFKgWAKQWJJBIEAgAAkgAKgQKIABIlAhQKBAFAAIIACSQCAAAkEAIEgAEIAAGFAAIA" +
	"ACACACACQAEIAQAABKoEKpQCCAIqEAoAAQABRAEEARQAAQAAAhGKAYogAAgIQgQCAAQRAAIFIAQQQAAIAEAAAAIAAAAKAAUgAAAAABEEkQQCAQABhAoEIQgi" +
	"AAAKIQIIAYAEARAKBSIAAAAABQAQgAEAAAKgAAIAAAAEAAAIABAAAAEAACEAAQgCAAAEEQQAkQRAECoEAgQAAAAEAQIIQQAIAACEAYAAEAIgCBIAAQRAAAAA" +
	"AARAAAAKAAAAAAAABAAAABQABAAAAAAAACoACgAAAQABAIEAAAAQAAAEABAEIAQBARACAAEAAAAAACAACAAEAAkAABAAAAEAIAAAAAEAAAAACgAAAAAAAJEA" +
	"BUABEAQABAIQACgAAAASQQIBAAIAAAQAACQACAAAIggBAAABAAAAAAQABAAAAAQAAAIAAAAAAQAAAAAAAAA="

const setIQ1S = "" +
	"VSUUhaACQlEIRTGohiCKohoIKiAUhVAUgiBERSUVBaACgiCIGAAIgqADKqCIu6oKkKoLACIACqqMgqAIQFEIRSGIgFAUQlEIijAImKAIgCoIRSEUhSBIQlUI" +
	"RQEswqAgiiYAKiSoqqII4q8ICCgoAKACQiiqKCCogCAKmwi5uqggyq6Joq6qOnzr6rq7gg64IrrK0w6SAiIAIiCoiroKggIIACpK4KI7IiArogCBQIGqiigI" +
	"IgEUhVAVgiAJRSFUhaAIAiOoOiCEgiBUQlEIoiAIlVAUAioIuKiCgKBIAiAIgqJoogIoqyoIhSAIgjAIRUAARSEUhaAAQlEARQEpggCKgioIoTAUBVAUgigI" +
	"RSEUhSACAiCqKgAgErGKriiouqGqqHAAggoIAigiAoQAggBIgKDqsCqqwiCLuiLq2qeLi26okrAqqnKLikQMKiBIhEAoiioIqiDIzKIioq+aoOioAgACACqo" +
	"iAAggKCLoqIouqCAgjIKur64uv7roqArogiKCijqogChMgIM+qTq3u8rqC6Nvn7r+vd/v+Z9ut5p+yf/vyb6EunhiiIQqr4OhKoIsqgLgq7/uiTpg4AEYixo" +
	"8qgKpCsAAioICOKqEgACgioKpiDJgomQgigAogCMgBMAgggIAGyKqqq7Aqa+iqDKAoBrly7QsukQghAuqt4oFdGlBAAKggCKgiAIAaEggqo5uiIyhKAJgBgA" +
	"iqJiAoEURFEARSGsglAUQlEIqiAoqocKEioIRSEUBaAIQlEIRQEgAqBAoiIAiAAIoghqim64qqqAACAKguLIIiEIRFAUQlEJiiAVhVAUhgoIqioqgAAKQlEI" +
	"RSGoAFAUQlEI4iCIggoYgioIqqKqirCLAgoqqiAogoCqCigIKACpiAIioL4LKLgIirpLsq7/uqT4rqogUihotqAw5oAKAigIImpigCAKAqqqK6rqoqmgoggI" +
	"ECCgiiIAgg4ARSEUhaAKQFEIRSGpBgBKqgIIpQAQDUQUgigIRSEUBQAIgoKs8iAAAACqCigKuiDqogIAgkgJKOkUABFLRVEARQGoAlAUQlEIiCQIiCgKQAgA" +
	"RQEUBaACQFEIRQE="

// Levels of the components, by digit.
var (
	levels2 = []int8{8, 25, 43}                     // IQ2_*
	levels3 = []int8{4, 12, 20, 28, 36, 44, 52, 62} // IQ3_XXS
	levelsS = []int8{1, 3, 5, 7, 9, 11, 13, 15}     // IQ3_S
	levels1 = []int8{-1, 0, 1}                      // IQ1_*
)

// The grids: component i of a vector is byte i, counted from the lowest.
var (
	gridIQ2XXS = [256]uint64(grid(setIQ2XXS, levels2, 8, true))
	gridIQ2XS  = [512]uint64(grid(setIQ2XS, levels2, 8, true))
	gridIQ2S   = [1024]uint64(grid(setIQ2S, levels2, 8, true))
	gridIQ3XXS = [256]uint32(narrow(grid(setIQ3XXS, levels3, 4, true)))
	gridIQ3S   = [512]uint32(narrow(grid(setIQ3S, levelsS, 4, false)))
	gridIQ1    = [2048]uint64(grid(setIQ1S, levels1, 8, false))
)

// grid lists the vectors of a set of dim components.
func grid(set string, levels []int8, dim int, even bool) []uint64 {
	bits, err := base64.StdEncoding.DecodeString(set)
	if err != nil {
		panic("quant: the constant of a grid is damaged: " + err.Error()) // a constant: tests read all of them
	}
	var list []uint64
	digits := make([]int, dim)
	for bit := 0; bit < 8*len(bits); {
		sum := 0
		var v uint64
		for i, d := range digits {
			sum += d
			v |= uint64(uint8(levels[d])) << (8 * i)
		}
		if !even || sum%2 == 0 {
			if bits[bit/8]>>(bit%8)&1 != 0 {
				list = append(list, v)
			}
			bit++
		}
		for i := range digits { // count up; past the last vector only unset bits follow
			digits[i]++
			if digits[i] < len(levels) {
				break
			}
			digits[i] = 0
		}
	}
	return list
}

// narrow keeps the low halves: vectors of four components.
func narrow(v []uint64) []uint32 {
	n := make([]uint32, len(v))
	for i := range v {
		n[i] = uint32(v[i])
	}
	return n
}

// signs7 completes seven sign bits to eight: the number of minus signs in the
// stored formats is even, so the last one follows from the others (ksigns_iq2xs).
var signs7 = func() (t [128]uint8) {
	for i := range t {
		p := i ^ i>>4
		p ^= p >> 2
		p ^= p >> 1
		t[i] = uint8(i | p&1<<7)
	}
	return t
}()

// negate gives the eight magnitudes of v, each 1..127, with a minus where a bit
// of signs is set (lowest bit: first byte).
func negate(v uint64, signs uint8) uint64 {
	m := bits8(signs)
	return (v ^ m*255) + m // -x is ^x + 1, and ^x is under 255 here: no carry
}
