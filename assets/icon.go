package assets

import _ "embed"

// IconPNG is the program's icon, 256 x 256, drawn from icon.svg.
//
//go:embed icon.png
var IconPNG []byte
