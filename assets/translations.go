package assets

import "embed"

// Translations holds one table of texts a language: translations/en.json is
// the list of all texts, English to English; another language is a copy of it
// with the right-hand side translated.
//
//go:embed translations/*.json
var Translations embed.FS
