package ace

import "strings"

// blueprintPrefix begins the name of a provider whose steps are runs of a blueprint.
const blueprintPrefix = "blueprint:"

// BlueprintProvider is the name of the provider whose steps are runs of the blueprint.
func BlueprintProvider(blueprint string) string { return blueprintPrefix + blueprint }

// BlueprintOf is the blueprint whose runs serve the steps of a provider; false for other
// providers.
func BlueprintOf(provider string) (string, bool) { return strings.CutPrefix(provider, blueprintPrefix) }
