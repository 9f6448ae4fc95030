package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"acescope/cmd/acescope/internal/cli"
)

// parseParams returns parameters in the form NAME=VALUE or NAME:=JSON as an object. The blueprint's schema decides the
// type of a VALUE: "2" is a number if the schema allows a number. Without a type in the schema a VALUE is a text. A
// repeated name adds to a list.
func parseParams(params []string, schema json.RawMessage) (json.RawMessage, error) {
	var root schemaNode
	if json.Valid(schema) {
		root.root = gjson.ParseBytes(schema)
		root = root.at(root.root)
	}
	values := map[string]any{} // json.RawMessage, or []json.RawMessage for a list that is given by its items
	for _, param := range params {
		name, text, isJSON, err := splitParam(param)
		if err != nil {
			return nil, err
		}
		if err := addParam(values, root.property(name), name, text, isJSON); err != nil {
			return nil, cli.UsageError("--param %s: %w", cli.SafeText(param), err)
		}
	}
	return json.Marshal(values)
}

// splitParam splits NAME=TEXT and NAME:=JSON.
func splitParam(param string) (name, text string, isJSON bool, err error) {
	name, text, ok := strings.Cut(param, "=")
	name, isJSON = strings.CutSuffix(name, ":")
	if !ok || name == "" {
		err = cli.UsageError("--param %s: write NAME=VALUE or NAME:=JSON", cli.SafeText(param))
	}
	return name, text, isJSON, err
}

func addParam(values map[string]any, node schemaNode, name, text string, isJSON bool) (err error) {
	before, repeated := values[name]
	items, isItems := before.([]json.RawMessage)
	var value json.RawMessage
	switch {
	case isJSON && !json.Valid([]byte(text)):
		return fmt.Errorf("%s is not JSON; quote a text, or write NAME=TEXT", name)
	case isJSON:
		value = json.RawMessage(text)
	case node.isList():
		if repeated && !isItems {
			break
		}
		value, err = node.at(node.here.Get("items")).value(text)
		values[name] = append(items, value)
		return err
	default:
		value, err = node.value(text)
	}
	switch {
	case err != nil:
		return err
	case isItems, repeated && node.isList():
		return fmt.Errorf("%s is given both by its items and as a whole list", name)
	case repeated:
		return fmt.Errorf("%s is repeated, but its schema is not a list", name)
	}
	values[name] = value
	return nil
}

// schemaNode is a part of a JSON Schema. It answers from keywords only and resolves references within the schema.
type schemaNode struct{ root, here gjson.Result }

// maxRefs bounds how many references are followed.
const maxRefs = 16

// at returns the node of a part of the schema, or of the part that it refers to.
func (n schemaNode) at(part gjson.Result) schemaNode {
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for range maxRefs {
		path, local := strings.CutPrefix(part.Get("$ref").Str, "#")
		if !local {
			break
		}
		part = n.root
		for name := range strings.SplitSeq(path, "/") {
			if name != "" {
				part = part.Get(gjson.Escape(unescape.Replace(name)))
			}
		}
	}
	return schemaNode{n.root, part}
}

// property returns the schema of a property, or an empty node.
func (n schemaNode) property(name string) schemaNode {
	if p := n.here.Get("properties").Get(gjson.Escape(name)); p.Exists() {
		return n.at(p)
	}
	for _, sub := range n.subschemas() {
		if p := sub.property(name); p.here.Exists() {
			return p
		}
	}
	return schemaNode{}
}

// subschemas returns the schemas in allOf, anyOf and oneOf. It leaves out references, which may be circular.
func (n schemaNode) subschemas() (out []schemaNode) {
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		for _, sub := range n.here.Get(keyword).Array() {
			if !sub.Get("$ref").Exists() {
				out = append(out, schemaNode{n.root, sub})
			}
		}
	}
	return out
}

// types returns the JSON types that a value may have, or nil if the schema does not say.
func (n schemaNode) types() (out []string) {
	for _, t := range n.here.Get("type").Array() {
		out = append(out, t.String())
	}
	if len(out) > 0 {
		return out
	}
	for _, v := range n.here.Get("enum").Array() {
		out = append(out, typeOf(v))
	}
	if v := n.here.Get("const"); v.Exists() {
		out = append(out, typeOf(v))
	}
	for _, sub := range n.subschemas() {
		out = append(out, sub.types()...)
	}
	return out
}

func typeOf(v gjson.Result) string {
	switch {
	case v.IsArray():
		return "array"
	case v.IsObject():
		return "object"
	case v.IsBool():
		return "boolean"
	}
	return map[gjson.Type]string{gjson.Null: "null", gjson.Number: "number", gjson.String: "string"}[v.Type]
}

// isText reports whether any text is a value.
func (n schemaNode) isText() bool {
	types := n.types()
	return len(types) == 0 || slices.Contains(types, "string")
}

func (n schemaNode) isList() bool { return !n.isText() && slices.Contains(n.types(), "array") }

// value returns the value that a text stands for.
func (n schemaNode) value(text string) (json.RawMessage, error) {
	types := n.types()
	t := typeOf(gjson.Parse(text))
	ok := slices.Contains(types, t) || t == "number" && slices.Contains(types, "integer")
	if ok && t != "string" && json.Valid([]byte(text)) { // a text is a value without quotes
		return json.RawMessage(strings.TrimSpace(text)), nil
	}
	if n.isText() {
		return json.Marshal(text)
	}
	return nil, errors.New(cli.SafeText(fmt.Sprintf("%q does not match the schema, which requires: %s", text,
		strings.Join(types, " or "))))
}
