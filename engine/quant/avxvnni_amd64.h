// VPDPBUSD in its VEX form, which the Go assembler does not have: adds to each
// dword of Y(acc) the four products of bytes without sign of Y(w) and bytes with
// sign of Y(x). Intel SDM volume 2C: VEX.256.66.0F38.W0 50 /r. The prefix 3E does
// nothing; it makes the instruction as long as its EVEX form, so that a test can
// put that in its place and run the kernels on processors that have only the
// other (avxvnni_linux_amd64_test.go).
#define VNNI(x, w, acc) \
	BYTE $0x3E; \
	BYTE $0xC4; \
	BYTE $(0x42 | (1 - acc/8)<<7 | (1 - x/8)<<5); \
	BYTE $((15 - w)<<3 | 5); \
	BYTE $0x50; \
	BYTE $(0xC0 | (acc%8)<<3 | x%8)
