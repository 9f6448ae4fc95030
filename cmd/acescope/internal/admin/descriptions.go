package admin

import (
	"cmp"
	_ "embed"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/pelletier/go-toml/v2"
)

//go:embed descriptions.toml
var descriptionsFile []byte

const (
	commonFields = "common" // section of fields that mean the same in every type
	aboutType    = "_"      // entry that describes a type as a whole
)

// descriptions returns the descriptions of the JSON output, by section and field name. A section is a line's
// type, or a path to a nested object such as "summary.epochs". A struct tag jsonschema:"…" on the field comes
// first.
var descriptions = sync.OnceValue(func() (sections map[string]map[string]string) {
	if err := toml.Unmarshal(descriptionsFile, &sections); err != nil {
		panic("descriptions.toml: " + err.Error())
	}
	return sections
})

func describe(s *jsonschema.Schema, name string) {
	all := descriptions()
	s.Description = all[name][aboutType]
	for field, property := range s.Properties {
		property.Description = cmp.Or(property.Description, all[name][field], all[commonFields][field])
	}
}
