package quant

// formats is the table of all types, by number.
var formats = []Format{
	{Type: F32, Name: "F32", Block: 1, Bytes: 4, Float: true, Decode: decodeF32, Encode: encodeF32, Dot: dotF32},
	{Type: F16, Name: "F16", Block: 1, Bytes: 2, Float: true, Decode: decodeF16, Encode: encodeF16, Dot: dotF16},
	blocks(Q4_0, "Q4_0", 32, 18, unpackQ4_0).dot(dotQ4_0).encode(encodeQ4_0),
	blocks(Q4_1, "Q4_1", 32, 20, unpackQ4_1).dot(dotQ4_1).encode(encodeQ4_1),
	blocks(Q5_0, "Q5_0", 32, 22, unpackQ5_0).encode(encodeQ5_0),
	blocks(Q5_1, "Q5_1", 32, 24, unpackQ5_1).encode(encodeQ5_1),
	blocks(Q8_0, "Q8_0", 32, 34, unpackQ8_0).dot(dotQ8_0).encode(encodeQ8_0),
	blocks(Q2_K, "Q2_K", 256, 84, unpackQ2_K),
	blocks(Q3_K, "Q3_K", 256, 110, unpackQ3_K),
	blocks(Q4_K, "Q4_K", 256, 144, unpackQ4_K).dot(dotQ4_K).encode(encodeQ4_K),
	blocks(Q5_K, "Q5_K", 256, 176, unpackQ5_K).dot(dotQ5_K),
	blocks(Q6_K, "Q6_K", 256, 210, unpackQ6_K).dot(dotQ6_K).encode(encodeQ6_K),
	blocks(IQ2_XXS, "IQ2_XXS", 256, 66, unpackIQ2_XXS),
	blocks(IQ2_XS, "IQ2_XS", 256, 74, unpackIQ2_XS),
	blocks(IQ3_XXS, "IQ3_XXS", 256, 98, unpackIQ3_XXS),
	blocks(IQ1_S, "IQ1_S", 256, 50, unpackIQ1_S),
	blocks(IQ4_NL, "IQ4_NL", 32, 18, unpackIQ4_NL),
	blocks(IQ3_S, "IQ3_S", 256, 110, unpackIQ3_S),
	blocks(IQ2_S, "IQ2_S", 256, 82, unpackIQ2_S),
	blocks(IQ4_XS, "IQ4_XS", 256, 136, unpackIQ4_XS),
	{Type: I8, Name: "I8", Block: 1, Bytes: 1, Decode: decodeI8},
	{Type: I16, Name: "I16", Block: 1, Bytes: 2, Decode: decodeI16},
	{Type: I32, Name: "I32", Block: 1, Bytes: 4, Decode: decodeI32},
	{Type: I64, Name: "I64", Block: 1, Bytes: 8, Decode: decodeI64},
	{Type: F64, Name: "F64", Block: 1, Bytes: 8, Decode: decodeF64},
	blocks(IQ1_M, "IQ1_M", 256, 56, unpackIQ1_M),
	{Type: BF16, Name: "BF16", Block: 1, Bytes: 2, Float: true, Decode: decodeBF16, Encode: encodeBF16, Dot: dotBF16},
	blocks(TQ1_0, "TQ1_0", 256, 54, unpackTQ1_0),
	blocks(TQ2_0, "TQ2_0", 256, 66, unpackTQ2_0),
	blocks(MXFP4, "MXFP4", 32, 17, unpackMXFP4),
	blocks(NVFP4, "NVFP4", 64, 36, unpackNVFP4),
	blocks(Q1_0, "Q1_0", 128, 18, unpackQ1_0),
	blocks(Q2_0, "Q2_0", 64, 18, unpackQ2_0),
}

// blocks is the entry of a format whose values are scaled integers: decoder
// and plain product come from its unpack function.
func blocks(t Type, name string, n, size int, unpack func(*tile, []byte)) Format {
	return Format{Type: t, Name: name, Block: n, Bytes: size,
		Decode: decode(n, size, unpack), Dot: dot(n, size, unpack), unpack: unpack}
}

// dot replaces the plain product by a faster plain one.
func (f Format) dot(fn func([]byte, *Acts, int) float32) Format {
	f.Dot = fn
	return f
}

// encode adds an encoder.
func (f Format) encode(fn func([]byte, []float32)) Format {
	f.Encode = fn
	return f
}
