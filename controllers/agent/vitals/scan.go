// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package vitals

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/bellwether-dev/bellwether/alerts/vitals"
)

// errNotAList means that an API server returned something other than a list.
var errNotAList = errors.New("not a list")

// listMeta is the metadata of a page: the continue token, and how many items follow this page.
// Both are empty if visit returned false.
type listMeta struct {
	Continue           string `json:"continue"`
	RemainingItemCount int    `json:"remainingItemCount"`
}

// scanList reads a JSON list item by item and calls visit with each item, so that
// only one item is in memory.
func scanList(r io.Reader, visit func(*vitals.Operand) bool) (listMeta, error) {
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
			if wantsMore, err := scanItems(decoder, visit); err != nil || !wantsMore {
				return listMeta{}, err
			}
			continue
		}
		// The other fields of a list are small.
		var value listMeta
		if err := decodeValue(decoder, &value); err != nil {
			return listMeta{}, err
		}
		if key == "metadata" {
			metadata = value
		}
	}
	return metadata, expectToken(decoder, json.Delim('}'))
}

// scanItems reads the items. It returns false if visit returned false.
func scanItems(decoder *json.Decoder, visit func(*vitals.Operand) bool) (bool, error) {
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
		var operand vitals.Operand
		if err := decodeValue(decoder, &operand); err != nil {
			return false, err
		}
		if !visit(&operand) {
			return false, nil
		}
	}
	return true, expectToken(decoder, json.Delim(']'))
}

// decodeValue decodes one JSON value. A field of an unexpected type stays empty, because
// operators choose the structure of their status.
func decodeValue(decoder *json.Decoder, into any) error {
	var shape *json.UnmarshalTypeError
	if err := decoder.Decode(into); err != nil && !errors.As(err, &shape) {
		return fmt.Errorf("read list: %w", err)
	}
	return nil
}

// expectToken returns an error unless the next JSON token is the delimiter.
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
