package quant

// formats is the table of all types, by number.
var formats = []Format{
	{Type: F32, Name: "F32", Block: 1, Bytes: 4, Float: true, Decode: decodeF32, Encode: encodeF32, Dot: dotF32},
	{Type: F16, Name: "F16", Block: 1, Bytes: 2, Float: true, Decode: decodeF16, Encode: encodeF16, Dot: dotF16},
	blocks(Q4_0, "Q4_0", 32, 18, unpackQ4_0),
	blocks(Q4_1, "Q4_1", 32, 20, unpackQ4_1),
	blocks(Q5_0, "Q5_0", 32, 22, unpackQ5_0),
	blocks(Q5_1, "Q5_1", 32, 24, unpackQ5_1),
	blocks(Q8_0, "Q8_0", 32, 34, unpackQ8_0),
	blocks(Q2_K, "Q2_K", 256, 84, unpackQ2_K),
	blocks(Q3_K, "Q3_K", 256, 110, unpackQ3_K),
	blocks(Q4_K, "Q4_K", 256, 144, unpackQ4_K),
	blocks(Q5_K, "Q5_K", 256, 176, unpackQ5_K),
	blocks(Q6_K, "Q6_K", 256, 210, unpackQ6_K),
	{Type: I8, Name: "I8", Block: 1, Bytes: 1, Decode: decodeI8},
	{Type: I16, Name: "I16", Block: 1, Bytes: 2, Decode: decodeI16},
	{Type: I32, Name: "I32", Block: 1, Bytes: 4, Decode: decodeI32},
	{Type: I64, Name: "I64", Block: 1, Bytes: 8, Decode: decodeI64},
	{Type: F64, Name: "F64", Block: 1, Bytes: 8, Decode: decodeF64},
	{Type: BF16, Name: "BF16", Block: 1, Bytes: 2, Float: true, Decode: decodeBF16, Encode: encodeBF16, Dot: dotBF16},
}

// blocks is the entry of a format whose values are scaled integers: decoder
// and plain product come from its unpack function.
func blocks(t Type, name string, n, size int, unpack func(*tile, []byte)) Format {
	return Format{Type: t, Name: name, Block: n, Bytes: size,
		Decode: decode(n, size, unpack), Dot: dot(n, size, unpack), unpack: unpack}
}
