package flow

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"

	"acescope/engine/internal/plainjson"
)

// Object types of expressions.
const (
	typeInputs = "inputs"
	typeVars   = "vars"
	typeSteps  = "steps"
	typeRun    = "run"
)

// objectTypes holds the fields of object types, by type and name.
type objectTypes map[string]map[string]*cel.Type

// provider adds object types to CEL's own.
type provider struct {
	types.Provider
	objects objectTypes
}

func (p *provider) FindStructType(name string) (*types.Type, bool) {
	if _, ok := p.objects[name]; ok {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return p.Provider.FindStructType(name)
}

func (p *provider) FindStructFieldNames(name string) ([]string, bool) {
	if fields, ok := p.objects[name]; ok {
		return slices.Sorted(maps.Keys(fields)), true
	}
	return p.Provider.FindStructFieldNames(name)
}

func (p *provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	if fields, ok := p.objects[name]; ok {
		t, ok := fields[field]
		return &types.FieldType{Type: t}, ok
	}
	return p.Provider.FindStructFieldType(name, field)
}

// adapter makes maps iterate in the order of their keys, because the order of Go's maps is random and would
// differ between replays.
type adapter struct{ types.Adapter }

func (a adapter) NativeToValue(value any) ref.Val {
	switch v := value.(type) {
	case map[string]any:
		return sortedMap{types.NewStringInterfaceMap(a, v)}
	case []any:
		return types.NewDynamicList(a, v)
	case []ref.Val:
		return types.NewRefValList(a, v)
	}
	return a.Adapter.NativeToValue(value)
}

// sortedMap iterates in the order of its keys. It hides the unordered Fold of the map.
type sortedMap struct{ traits.Mapper }

func (m sortedMap) Iterator() traits.Iterator {
	var keys []ref.Val
	for it := m.Mapper.Iterator(); it.HasNext() == types.True; {
		keys = append(keys, it.Next())
	}
	slices.SortFunc(keys, func(a, b ref.Val) int {
		return strings.Compare(fmt.Sprintf("%s %v", a.Type().TypeName(), a.Value()),
			fmt.Sprintf("%s %v", b.Type().TypeName(), b.Value()))
	})
	return types.NewRefValList(types.DefaultTypeAdapter, keys).(traits.Iterable).Iterator()
}

// sortMaps makes maps that an expression constructs iterate in the order of their keys.
func sortMaps(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if c, ok := i.(interpreter.InterpretableConstructor); ok && c.Type() == types.MapType {
		return mapConstructor{c}, nil
	}
	return i, nil
}

type mapConstructor struct {
	interpreter.InterpretableConstructor
}

func (c mapConstructor) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return sorted(c.InterpretableConstructor.Exec(frame))
}

func (c mapConstructor) Eval(vars interpreter.Activation) ref.Val {
	return sorted(c.InterpretableConstructor.Eval(vars))
}

func sorted(v ref.Val) ref.Val {
	if m, ok := v.(traits.Mapper); ok {
		return sortedMap{m}
	}
	return v
}

// native converts a value of CEL to JSON.
func native(v ref.Val) (any, error) {
	switch x := v.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(x), nil
	case types.Int:
		return int64(x), nil
	case types.Uint:
		return uint64(x), nil
	case types.Double:
		if _, err := json.Marshal(float64(x)); err != nil {
			return nil, fmt.Errorf("the number %v is not JSON", float64(x))
		}
		return float64(x), nil
	case types.String:
		return string(x), nil
	case types.Bytes:
		return base64.StdEncoding.EncodeToString(x), nil
	case types.Timestamp:
		return x.Time.UTC().Format(time.RFC3339Nano), nil
	case types.Duration:
		return x.Duration.String(), nil
	case *types.Optional:
		if !x.HasValue() {
			return nil, nil
		}
		return native(x.GetValue())
	case traits.Lister:
		return nativeList(x)
	case traits.Mapper:
		return nativeMap(x)
	case *types.Err:
		return nil, x
	}
	return nil, fmt.Errorf("a value of type %s is not JSON", v.Type().TypeName())
}

func nativeList(l traits.Lister) (any, error) {
	out := []any{}
	for it := l.Iterator(); it.HasNext() == types.True; {
		v, err := native(it.Next())
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func nativeMap(m traits.Mapper) (any, error) {
	out := map[string]any{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, fmt.Errorf("a map with the key %v is not JSON: keys must be strings", key.Value())
		}
		v, err := native(m.Get(key))
		if err != nil {
			return nil, err
		}
		out[string(name)] = v
	}
	return out, nil
}

// decodeJSON decodes JSON with whole numbers as int64, as CEL distinguishes them.
func decodeJSON(data []byte) (any, error) {
	var v any
	if err := plainjson.Unmarshal(data, &v); err != nil {
		return nil, err
	}
	return numbers(v), nil
}

func numbers(v any) any {
	switch x := v.(type) {
	case json.Number:
		if n, err := x.Int64(); err == nil {
			return n
		}
		f, _ := x.Float64()
		return f
	case []any:
		for i := range x {
			x[i] = numbers(x[i])
		}
	case map[string]any:
		for k, e := range x { //workflowcheck:ignore
			x[k] = numbers(e)
		}
	}
	return v
}

// decimal converts a whole number to a float64 for a field with floating-point numbers: JSON does not
// distinguish the two, but expressions do.
func decimal(v any) any {
	if n, ok := v.(int64); ok {
		return float64(n)
	}
	return v
}

// carried returns a copy of a value whose whole floating-point numbers have a decimal point in JSON.
func carried(v any) any {
	switch x := v.(type) {
	case float64:
		text := strconv.FormatFloat(x, 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return json.Number(text)
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = carried(x[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, e := range x { //workflowcheck:ignore
			out[k] = carried(e)
		}
		return out
	}
	return v
}

// jsonText returns a value as part of a text: a string as it is, everything else as JSON.
func jsonText(v any) (string, error) {
	if s, ok := v.(string); ok {
		return s, nil
	}
	data, err := json.Marshal(v)
	return string(data), err
}

// jsonFunctions are to_json and from_json.
func jsonFunctions() cel.EnvOption {
	toJSON := func(v ref.Val) ref.Val {
		plain, err := native(v)
		if err != nil {
			return types.WrapErr(err)
		}
		data, err := json.Marshal(plain)
		if err != nil {
			return types.WrapErr(err)
		}
		return types.String(data)
	}
	fromJSON := func(v ref.Val) ref.Val {
		plain, err := decodeJSON([]byte(v.(types.String)))
		if err != nil {
			return types.WrapErr(fmt.Errorf("not JSON: %w", err))
		}
		return adapter{types.DefaultTypeAdapter}.NativeToValue(plain)
	}
	return cel.Lib(functions{
		cel.Function("to_json", cel.Overload("to_json_dyn", []*cel.Type{cel.DynType}, cel.StringType,
			cel.UnaryBinding(toJSON))),
		cel.Function("from_json", cel.Overload("from_json_string", []*cel.Type{cel.StringType}, cel.DynType,
			cel.UnaryBinding(fromJSON))),
	})
}

type functions []cel.EnvOption

func (f functions) CompileOptions() []cel.EnvOption     { return f }
func (f functions) ProgramOptions() []cel.ProgramOption { return nil }
