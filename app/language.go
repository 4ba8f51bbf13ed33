package app

import (
	"fmt"
	"strings"

	"fyne.io/fyne/v2/lang"

	"outcrop/assets"
)

// languages are the tables of texts there are, by the name of their file.
func languages() []string {
	files, err := assets.Translations.ReadDir("translations")
	if err != nil {
		return nil
	}
	var out []string
	for _, f := range files {
		out = append(out, strings.TrimSuffix(f.Name(), ".json"))
	}
	return out
}

// LoadLanguage puts a table of texts into force; "" is English. The toolkit
// follows the system's language and cannot be told another, so the table is
// registered under the system's own: otherwise the few words that the toolkit
// translates itself would stand out.
func LoadLanguage(name string) error {
	if name == "" {
		name = "en"
	}
	table, err := assets.Translations.ReadFile("translations/" + name + ".json")
	if err != nil {
		return fmt.Errorf("language %q: there is no such table; there are %s", name, strings.Join(languages(), ", "))
	}
	if err := lang.AddTranslationsForLocale(table, lang.SystemLocale()); err != nil {
		return fmt.Errorf("language %q: %w", name, err)
	}
	return nil
}

// PreferredLanguage is the preference that holds the language's name.
const PreferredLanguage = "language"
