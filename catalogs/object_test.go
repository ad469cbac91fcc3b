// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"testing"
)

// TestDecodeObject decodes one manifest in every form that JSON allows, and in some invalid forms.
func TestDecodeObject(t *testing.T) {
	const want = `{"a":"b"}`
	for name, test := range map[string]struct {
		value string
		fails bool
	}{
		"shortest":          {value: `{"data":"eyJhIjoiYiJ9"}`},
		"white space":       {value: `{ "data" : "eyJhIjoiYiJ9" }`},
		"escaped":           {value: `{"data":"eyJhIjoi\u0059iJ9"}`},
		"another field":     {value: `{"x":"y","data":"eyJhIjoiYiJ9"}`},
		"a field behind it": {value: `{"data":"eyJhIjoiYiJ9","x":"y"}`},
		"YAML":              {value: `{"data":"YTogYg=="}`},
		"not base64":        {value: `{"data":"eyJhIjoiYiJ"}`, fails: true},
		"a raw line break":  {value: "{\"data\":\"eyJhIjoi\nYiJ9\"}", fails: true},
		"a number":          {value: `{"data":1}`, fails: true},
		"a list":            {value: `["data"]`, fails: true},
		"broken":            {value: `{"data":"eyJhIjoiYiJ9"`, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decodeObject([]byte(test.value))
			if (err != nil) != test.fails || (err == nil && string(got) != want) {
				t.Errorf("%q, error %v", got, err)
			}
		})
	}
}
