//go:build !slow

package recipe_test

// thorough crosses all facts in the search for contradictions; the quick tests
// take the telling ones.
const thorough = false
