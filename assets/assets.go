// Package assets holds what the program carries inside itself: the starter
// pack, and the icon. See starter/README.md for where the pack comes from.
package assets

import _ "embed"

// StarterName is the file name under which the starter pack is unpacked.
const StarterName = "outcrop-starter.gguf"

// Starter is a complete GGUF file: a small mixture-of-experts model with a
// draft block, made for this project. It proves the card and the app.
//
//go:embed starter/starter.gguf
var Starter []byte

// StarterSHA256 is the digest of Starter, in hex.
const StarterSHA256 = "2c3d1b1bb8d64a597112ecea82f22dc22b94acf87da583fb15427324e474331e"

// Golden is the starter's known answers (starter/README.md): greedy ids that
// a correct engine gives for each prompt.
//
//go:embed starter/golden.json
var Golden []byte
