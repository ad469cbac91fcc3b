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

// errNotAList says that an API server returned something other than a list.
var errNotAList = errors.New("not a list")

// listMeta is what scanList returns of a list: the continue token, which is
// empty if see returned false, and how many items come after this page.
type listMeta struct {
	Continue           string `json:"continue"`
	RemainingItemCount int    `json:"remainingItemCount"`
}

// scanList reads a JSON list item by item, so that it needs memory for one item
// only.
func scanList(r io.Reader, see func(*plan.Operand) bool) (listMeta, error) {
	decoder := json.NewDecoder(r)
	if err := expectToken(decoder, json.Delim('{')); err != nil {
		return listMeta{}, err
	}
	var metadata listMeta
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return listMeta{}, fmt.Errorf("read list: %w", err)
		}
		if key == "items" {
			if wanted, err := scanItems(decoder, see); err != nil || !wanted {
				return listMeta{}, err
			}
			continue
		}
		// The other fields of a list are small.
		var value listMeta
		if err := decode(decoder, &value); err != nil {
			return listMeta{}, err
		}
		if key == "metadata" {
			metadata = value
		}
	}
	return metadata, expectToken(decoder, json.Delim('}'))
}

// scanItems reads the items and returns whether see wants more.
func scanItems(decoder *json.Decoder, see func(*plan.Operand) bool) (bool, error) {
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
	return true, expectToken(decoder, json.Delim(']'))
}

// decode reads one value. A field of an unexpected type is left empty, because
// operators choose the shape of their status.
func decode(decoder *json.Decoder, into any) error {
	var shape *json.UnmarshalTypeError
	if err := decoder.Decode(into); err != nil && !errors.As(err, &shape) {
		return fmt.Errorf("read list: %w", err)
	}
	return nil
}

func expectToken(decoder *json.Decoder, want json.Delim) error {
	token, err := decoder.Token()
	if err != nil {
		return fmt.Errorf("read list: %w", err)
	}
	if token != want {
		return fmt.Errorf("read list: %w", errNotAList)
	}
	return nil
}
