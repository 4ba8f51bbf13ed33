//go:build slow

package recipe_test

// thorough crosses all facts in the search for contradictions.
const thorough = true
