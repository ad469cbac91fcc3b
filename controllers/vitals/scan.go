// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package vitals

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/bellwether-dev/bellwether/controllers/vitals/plan"
)

// errNotAList says that an API server answered with something else.
var errNotAList = errors.New("not a list")

// scan reads a list in JSON item by item, so that the memory it takes is that
// of one item, and returns the list's continue token: empty when see wanted no
// more.
func scan(r io.Reader, see func(*plan.Operand) bool) (next string, err error) {
	decoder := json.NewDecoder(r)
	if err := expect(decoder, json.Delim('{')); err != nil {
		return "", err
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return "", fmt.Errorf("read list: %w", err)
		}
		if key == "items" {
			if wanted, err := items(decoder, see); err != nil || !wanted {
				return "", err
			}
			continue
		}
		// All other fields of a list are small.
		var metadata struct {
			Continue string `json:"continue"`
		}
		if err := decode(decoder, &metadata); err != nil {
			return "", err
		}
		if key == "metadata" {
			next = metadata.Continue
		}
	}
	return next, expect(decoder, json.Delim('}'))
}

// items reads the items and tells whether see wants more.
func items(decoder *json.Decoder, see func(*plan.Operand) bool) (bool, error) {
	begin, err := decoder.Token()
	if err != nil {
		return false, fmt.Errorf("read items: %w", err)
	}
	if begin == nil { // an empty list of some API servers
		return true, nil
	}
	if begin != json.Delim('[') {
		return false, fmt.Errorf("read items: %w", errNotAList)
	}
	for decoder.More() {
		var operand plan.Operand
		if err := decode(decoder, &operand); err != nil {
			return false, err
		}
		if !see(&operand) {
			return false, nil
		}
	}
	return true, expect(decoder, json.Delim(']'))
}

// decode reads one value. A field of another type is taken for absent:
// operators shape their status as they like.
func decode(decoder *json.Decoder, into any) error {
	var shape *json.UnmarshalTypeError
	if err := decoder.Decode(into); err != nil && !errors.As(err, &shape) {
		return fmt.Errorf("read list: %w", err)
	}
	return nil
}

func expect(decoder *json.Decoder, want json.Delim) error {
	token, err := decoder.Token()
	if err != nil {
		return fmt.Errorf("read list: %w", err)
	}
	if token != want {
		return fmt.Errorf("read list: %w", errNotAList)
	}
	return nil
}
