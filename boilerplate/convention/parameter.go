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

// maxItems bounds the items of a list, and maxPattern the bytes of a pattern.
const maxItems, maxPattern = 200, 1000

// Parameter is a value that a convention asks the repository for.
type Parameter struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description"`

	Default any      `json:"default,omitempty"` // where the repository has no value; without it, one is required
	Enum    []string `json:"enum,omitempty"`    // the values that are permitted; of a list, those of its items
	Pattern string   `json:"pattern,omitempty"` // what a string, or each item of a list, matches as a whole
}

var parameterForm = regexp.MustCompile(`^[a-z][A-Za-z0-9]{0,62}$`)

func (p Parameter) check() error {
	switch {
	case !parameterForm.MatchString(p.Name):
		return invalid("the name %q of a parameter is not one of letters and digits", p.Name)
	case !slices.Contains([]string{String, Boolean, Integer, List}, p.Type):
		return invalid("parameter %s: the type %q is not string, boolean, integer or list", p.Name, p.Type)
	case p.Description == "":
		return invalid("parameter %s has no description", p.Name)
	}
	if _, err := regexp.Compile(p.Pattern); err != nil || len(p.Pattern) > maxPattern {
		return invalid("parameter %s: the pattern has %d bytes and may have %d, or is none: %v", p.Name,
			len(p.Pattern), maxPattern, err)
	}
	if p.Default == nil {
		return nil
	}
	_, err := p.value(p.Default)
	return err
}

// Parse reads the value of a parameter as it is written on a command line; the items of a list are separated by commas.
func (p Parameter) Parse(text string) (any, error) {
	var given any = text
	switch p.Type {
	case Boolean, Integer:
		_ = json.Unmarshal([]byte(text), &given) // What is neither stays text, and is refused below.
	case List:
		items := []any{}
		for item := range strings.SplitSeq(text, ",") {
			if item = strings.TrimSpace(item); item != "" {
				items = append(items, item)
			}
		}
		_, err := p.value(items)
		return items, err
	}
	return p.value(given)
}

// value checks a value as it was decoded, and returns it as templates see it.
func (p Parameter) value(given any) (any, error) {
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
			return p.items(v)
		}
	case int, int64, float64:
		number := reflect.ValueOf(v).Convert(reflect.TypeFor[float64]()).Float()
		if p.Type == Integer && number == float64(int64(number)) {
			return int64(number), nil
		}
	}
	return nil, invalid("parameter %s: %v is no %s", p.Name, given, p.Type)
}

func (p Parameter) items(given []any) ([]string, error) {
	if len(given) > maxItems {
		return nil, invalid("parameter %s: it has %d items, and may have %d", p.Name, len(given), maxItems)
	}
	out := []string{}
	for _, item := range given {
		text, ok := item.(string)
		if !ok {
			return nil, invalid("parameter %s: the item %v is no string", p.Name, item)
		}
		if err := p.checkText(text); err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, nil
}

func (p Parameter) checkText(text string) error {
	switch {
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }):
		return invalid("parameter %s: the value %q is more than one line", p.Name, text)
	case len(p.Enum) > 0 && !slices.Contains(p.Enum, text):
		return invalid("parameter %s: %q is none of %s", p.Name, text, strings.Join(p.Enum, ", "))
	case p.Pattern != "" && !regexp.MustCompile(`^(?:`+p.Pattern+`)$`).MatchString(text):
		return invalid("parameter %s: %q does not match %s", p.Name, text, p.Pattern)
	}
	return nil
}

// Parameters returns the parameters of all conventions by their names. Of those with one name, it is one that is
// required if any is.
func Parameters(conventions []*Convention) map[string]Parameter {
	out := map[string]Parameter{}
	for _, c := range conventions {
		for _, p := range c.Parameters {
			if known, ok := out[p.Name]; !ok || known.Default != nil {
				out[p.Name] = p
			}
		}
	}
	return out
}

// values are the values of a convention's parameters as its templates see them.
func (c *Convention) values(given map[string]any) (map[string]any, error) {
	out := map[string]any{}
	for _, p := range c.Parameters {
		value, ok := given[p.Name]
		if !ok {
			value = p.Default
		}
		if value == nil {
			return nil, invalid("parameter %s has no value: %s", p.Name, p.Description)
		}
		checked, err := p.value(value)
		if err != nil {
			return nil, err
		}
		out[p.Name] = checked
	}
	return out, nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
