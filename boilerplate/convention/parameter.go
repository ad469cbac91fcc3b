// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package convention

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Types of parameters.
const (
	String  = "string"
	Boolean = "boolean"
	Integer = "integer"
	List    = "list" // of strings
)

// maxItems is the maximum number of items of a list, and maxPattern the maximum number of bytes of a pattern.
const maxItems, maxPattern = 200, 1000

// Parameter is a value that a repository must or can give to a convention.
type Parameter struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description"`

	Default any      `json:"default,omitempty"` // used if the repository has no value; nil means required
	Enum    []string `json:"enum,omitempty"`    // the permitted values, or the permitted items of a list
	Pattern string   `json:"pattern,omitempty"` // must match a whole string, or each whole item of a list
}

var parameterPattern = regexp.MustCompile(`^[a-z][A-Za-z0-9]{0,62}$`)

// validate checks the fields of the parameter.
func (p Parameter) validate() error {
	switch {
	case !parameterPattern.MatchString(p.Name):
		return newInvalidError("the name %q of a parameter may contain only letters and digits", p.Name)
	case !slices.Contains([]string{String, Boolean, Integer, List}, p.Type):
		return newInvalidError("parameter %s: the type %q is not string, boolean, integer or list", p.Name, p.Type)
	case p.Description == "":
		return newInvalidError("parameter %s has no description", p.Name)
	}
	if _, err := regexp.Compile(p.Pattern); err != nil || len(p.Pattern) > maxPattern {
		return newInvalidError("parameter %s: the pattern has %d bytes and may have at most %d, or is none: %v", p.Name,
			len(p.Pattern), maxPattern, err)
	}
	if p.Default == nil {
		return nil
	}
	_, err := p.toValue(p.Default)
	return err
}

// Parse parses a value from a command line. The items of a list are separated by commas.
func (p Parameter) Parse(text string) (any, error) {
	var given any = text
	switch p.Type {
	case Boolean, Integer:
		_ = json.Unmarshal([]byte(text), &given) // On failure the text stays, and toValue refuses it.
	case List:
		items := []any{}
		for item := range strings.SplitSeq(text, ",") {
			if item = strings.TrimSpace(item); item != "" {
				items = append(items, item)
			}
		}
		_, err := p.toValue(items)
		return items, err
	}
	return p.toValue(given)
}

// toValue checks a decoded value and returns it in the type that templates get: string, bool, int64 or []string.
func (p Parameter) toValue(given any) (any, error) {
	switch v := given.(type) {
	case string:
		if p.Type == String {
			return v, p.checkText(v)
		}
	case bool:
		if p.Type == Boolean {
			return v, nil
		}
	case []any:
		if p.Type == List {
			return p.toItems(v)
		}
	case int, int64, float64:
		number := reflect.ValueOf(v).Convert(reflect.TypeFor[float64]()).Float()
		if p.Type == Integer && number == float64(int64(number)) { // it has no fraction
			return int64(number), nil
		}
	}
	return nil, newInvalidError("parameter %s: %v is no %s", p.Name, given, p.Type)
}

// toItems checks the items of a list.
func (p Parameter) toItems(given []any) ([]string, error) {
	if len(given) > maxItems {
		return nil, newInvalidError("parameter %s: it has %d items, and may have at most %d", p.Name, len(given),
			maxItems)
	}
	out := []string{}
	for _, item := range given {
		text, ok := item.(string)
		if !ok {
			return nil, newInvalidError("parameter %s: the item %v is no string", p.Name, item)
		}
		if err := p.checkText(text); err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, nil
}

// checkText checks a string against the enumeration and the pattern.
func (p Parameter) checkText(text string) error {
	switch {
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }):
		return newInvalidError("parameter %s: the value %q is more than one line", p.Name, text)
	case len(p.Enum) > 0 && !slices.Contains(p.Enum, text):
		return newInvalidError("parameter %s: %q is none of %s", p.Name, text, strings.Join(p.Enum, ", "))
	case p.Pattern != "" && !regexp.MustCompile(`^(?:`+p.Pattern+`)$`).MatchString(text):
		return newInvalidError("parameter %s: %q does not match %s", p.Name, text, p.Pattern)
	}
	return nil
}

// Parameters returns the parameters of all conventions by name. If several conventions have a parameter of the same
// name and one of them has no default, that parameter is returned.
func Parameters(conventions []*Convention) map[string]Parameter {
	out := map[string]Parameter{}
	for _, c := range conventions {
		for _, p := range c.Parameters {
			if existing, ok := out[p.Name]; !ok || existing.Default != nil {
				out[p.Name] = p
			}
		}
	}
	return out
}

// readValues returns the value of each parameter of the convention for its templates: the given value, or the default.
func (c *Convention) readValues(given map[string]any) (map[string]any, error) {
	out := map[string]any{}
	for _, p := range c.Parameters {
		value, ok := given[p.Name]
		if !ok {
			value = p.Default
		}
		if value == nil {
			return nil, newInvalidError("parameter %s has no value: %s", p.Name, p.Description)
		}
		checked, err := p.toValue(value)
		if err != nil {
			return nil, err
		}
		out[p.Name] = checked
	}
	return out, nil
}

// sortKeys returns the sorted keys of a map.
func sortKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
