package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"acescope/cmd/acescope/internal/cli"
)

// paramsOf makes an object of parameters of NAME=VALUE and NAME:=JSON. What kind of value a
// text is, the blueprint's schema says: where it lets a property be a number, "2" is one.
// Without a schema, and for properties that it does not know, a text is a text. A name that
// is given again adds to a list.
func paramsOf(given []string, schema json.RawMessage) (json.RawMessage, error) {
	kinds := schemaKinds(schema)
	values := map[string]json.RawMessage{}
	lists := map[string][]json.RawMessage{}
	for _, g := range given {
		name, text, raw, err := splitParam(g)
		if err != nil {
			return nil, err
		}
		k := kinds.property(name)
		switch {
		case raw:
			if !json.Valid([]byte(text)) {
				return nil, cli.UsageError("--param %s: %s is no JSON; a text needs quotes, or NAME=TEXT", cli.SafeText(g), name)
			}
			err = setParam(values, lists, name, json.RawMessage(text))
		case k.list() && !k.takesText():
			var v json.RawMessage
			if v, err = k.items().value(text); err == nil {
				lists[name] = append(lists[name], v)
			}
		default:
			var v json.RawMessage
			if v, err = k.value(text); err == nil {
				err = setParam(values, lists, name, v)
			}
		}
		if err != nil {
			return nil, cli.UsageError("--param %s: %w", cli.SafeText(g), err)
		}
	}
	for name, list := range lists {
		if _, both := values[name]; both {
			return nil, cli.UsageError("--param %s: it is given as a list and as a whole", name)
		}
		data, err := json.Marshal(list)
		if err != nil {
			return nil, err
		}
		values[name] = data
	}
	return json.Marshal(values)
}

func setParam(values map[string]json.RawMessage, lists map[string][]json.RawMessage, name string, v json.RawMessage) error {
	if _, again := values[name]; again {
		return fmt.Errorf("%s is given twice, and the schema does not say that it is a list", name)
	}
	if _, again := lists[name]; again {
		return fmt.Errorf("%s is given as a list and as a whole", name)
	}
	values[name] = v
	return nil
}

// splitParam takes NAME=TEXT and NAME:=JSON apart.
func splitParam(given string) (name, text string, raw bool, err error) {
	name, text, ok := strings.Cut(given, "=")
	if !ok {
		return "", "", false, cli.UsageError("--param %s: write NAME=VALUE, or NAME:=JSON", cli.SafeText(given))
	}
	name, raw = strings.CutSuffix(name, ":")
	if name == "" {
		return "", "", false, cli.UsageError("--param %s: it has no name: write NAME=VALUE, or NAME:=JSON", cli.SafeText(given))
	}
	return name, text, raw, nil
}

// kinds is what a schema lets a value be, as far as its own words tell: no reference out of
// the schema is followed.
type kinds struct {
	root, at map[string]json.RawMessage
}

// maxRefs bounds how far references within a schema are followed.
const maxRefs = 16

func schemaKinds(schema json.RawMessage) kinds {
	m := membersOf(schema)
	return kinds{m, m}.follow()
}

func membersOf(raw json.RawMessage) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	_ = json.Unmarshal(raw, &m) // what is no object has no members
	return m
}

// follow goes where local references lead.
func (k kinds) follow() kinds {
	for range maxRefs {
		var ref string
		if json.Unmarshal(k.at["$ref"], &ref) != nil || !strings.HasPrefix(ref, "#") {
			return k
		}
		at := k.root
		for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#"), "/") {
			if part != "" {
				at = membersOf(at[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)])
			}
		}
		k.at = at
	}
	return k
}

func (k kinds) within(raw json.RawMessage) kinds { return kinds{k.root, membersOf(raw)}.follow() }

func (k kinds) property(name string) kinds {
	if p, ok := membersOf(k.at["properties"])[name]; ok {
		return k.within(p)
	}
	for _, sub := range k.choices() {
		if p := sub.property(name); p.at != nil {
			return p
		}
	}
	return kinds{}
}

func (k kinds) items() kinds { return k.within(k.at["items"]) }

// choices are the schemas that this one is made of.
func (k kinds) choices() (out []kinds) {
	for _, word := range []string{"allOf", "anyOf", "oneOf"} {
		var list []json.RawMessage
		if json.Unmarshal(k.at[word], &list) != nil {
			continue
		}
		for _, raw := range list {
			// A schema that leads back to one that holds it would be gone through for ever.
			if m := membersOf(raw); m["$ref"] == nil {
				out = append(out, kinds{k.root, m})
			}
		}
	}
	return out
}

// types are the JSON types that a value may have, none where nothing is said.
func (k kinds) types() (out []string) {
	var one string
	if json.Unmarshal(k.at["type"], &one) == nil {
		return []string{one}
	}
	if json.Unmarshal(k.at["type"], &out) == nil {
		return out
	}
	var values []any
	if json.Unmarshal(k.at["enum"], &values) == nil {
		for _, v := range values {
			out = append(out, typeOf(v))
		}
	}
	if raw, ok := k.at["const"]; ok {
		var v any
		if json.Unmarshal(raw, &v) == nil {
			out = append(out, typeOf(v))
		}
	}
	for _, sub := range k.choices() {
		out = append(out, sub.types()...)
	}
	return out
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "string"
}

func (k kinds) list() bool { return slices.Contains(k.types(), "array") }

// takesText tells whether a text is a value as it is.
func (k kinds) takesText() bool {
	types := k.types()
	return len(types) == 0 || slices.Contains(types, "string")
}

// value is the value that a text stands for.
func (k kinds) value(text string) (json.RawMessage, error) {
	types := k.types()
	if v, t := jsonOf(text); v != nil && (slices.Contains(types, t) || t == "number" && slices.Contains(types, "integer")) {
		return v, nil
	}
	if k.takesText() {
		return json.Marshal(text)
	}
	return nil, fmt.Errorf("%s is not what its schema asks for: %s", cli.SafeText(fmt.Sprintf("%q", text)), strings.Join(types, " or "))
}

// jsonOf is a text as JSON of another type than text, with that type; nil where it is none.
func jsonOf(text string) (json.RawMessage, string) {
	dec := json.NewDecoder(strings.NewReader(text))
	var v any
	raw := json.RawMessage(bytes.TrimSpace([]byte(text)))
	if !json.Valid(raw) || dec.Decode(&v) != nil {
		return nil, ""
	}
	if t := typeOf(v); t != "string" {
		return raw, t
	}
	return nil, ""
}
