package compute

import (
	"fmt"
	"strings"
)

// registers limits the registers of kernels by name in a PTX text (.maxnreg).
func registers(ptx []byte, most map[string]int) []byte {
	text := string(ptx)
	for name, n := range most {
		at := strings.Index(text, ".entry "+name+"(")
		if at < 0 {
			continue
		}
		if body := strings.Index(text[at:], "\n{"); body > 0 {
			text = text[:at+body] + fmt.Sprintf("\n.maxnreg %d", n) + text[at+body:]
		}
	}
	return []byte(text)
}
