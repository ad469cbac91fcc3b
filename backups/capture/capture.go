// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package capture reads the objects of a cluster for a backup. It reads pages and decodes one object at a time, so
// its memory is limited by the largest object. All objects of a resource are from the same point in time.
package capture

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"

	"github.com/bellwether-dev/bellwether/backups/archive"
)

// pageSize is how many objects one request returns.
const pageSize = 500

// Pages opens a page of a list: a List as JSON. next is the continue token of the previous page; empty for the first
// page.
type Pages interface {
	Page(ctx context.Context, r archive.Resource, selector string, limit int, next string) (io.ReadCloser, error)
}

// Request is a resource to read. A selector restricts it to objects with matching labels.
type Request struct {
	archive.Resource
	Selector string
}

// ReadObjects reads all objects of the requests and calls add with each object as a line of JSON. It returns the
// resources with their counts.
func ReadObjects(ctx context.Context, pages Pages, requests []Request, add func(line []byte) error) ([]archive.Resource,
	error) {
	var out []archive.Resource
	for _, request := range requests {
		resource, err := readResource(ctx, pages, request, add)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", request.Name(), err)
		}
		out = append(out, resource)
	}
	return out, nil
}

// readResource reads all pages of one resource, calls add with each object as a line of JSON, and returns the resource
// with its counts. Objects that are being deleted are skipped.
func readResource(ctx context.Context, pages Pages, request Request,
	add func(line []byte) error) (archive.Resource, error) {
	resource := request.Resource
	resource.Objects, resource.Skipped = 0, 0
	each := func(raw []byte) error {
		line, err := EncodeLine(raw, resource)
		switch {
		case err != nil:
			return err
		case line == nil:
			resource.Skipped++
			return nil
		}
		resource.Objects++
		return add(line)
	}
	for next := ""; ; {
		page, err := pages.Page(ctx, resource, request.Selector, pageSize, next)
		if err != nil {
			return resource, err
		}
		next, err = decodePage(page, each)
		_ = page.Close() // it was only read
		if err != nil || next == "" {
			return resource, err
		}
	}
}

// decodePage calls each for every object of a List, and returns the continue token of the next page; empty for the
// last page.
func decodePage(r io.Reader, each func(raw []byte) error) (next string, err error) {
	decoder := json.NewDecoder(r)
	if err := expectDelim(decoder, json.Delim('{')); err != nil {
		return "", err
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return "", fmt.Errorf("decode list: %w", err)
		}
		switch key {
		case "items":
			err = decodeItems(decoder, each)
		case "metadata":
			var meta metav1.ListMeta
			err = decoder.Decode(&meta)
			next = meta.Continue
		default: // such as kind and apiVersion
			var skipped json.RawMessage
			err = decoder.Decode(&skipped)
		}
		if err != nil {
			return "", fmt.Errorf("decode list: %w", err)
		}
	}
	return next, expectDelim(decoder, json.Delim('}'))
}

// decodeItems calls each for every object of a JSON list.
func decodeItems(decoder *json.Decoder, each func(raw []byte) error) error {
	if err := expectDelim(decoder, json.Delim('[')); err != nil {
		return err
	}
	for decoder.More() {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return err
		}
		if err := each(raw); err != nil {
			return err
		}
	}
	return expectDelim(decoder, json.Delim(']'))
}

// expectDelim returns an error if the next token is not the wanted delimiter.
func expectDelim(decoder *json.Decoder, want json.Delim) error {
	token, err := decoder.Token()
	if err != nil {
		return fmt.Errorf("decode list: %w", err)
	}
	if token != want {
		return fmt.Errorf("decode list: found %v, want %v", token, want)
	}
	return nil
}

// keptMetadata are the fields of an object's metadata that a backup keeps. A restore needs the UID to find owners.
var keptMetadata = []string{"name", "namespace", "uid", "labels", "annotations", "finalizers", "ownerReferences",
	"creationTimestamp"}

// EncodeLine returns the parts of an object that a backup keeps, as one line of JSON; nil for an object that is
// being deleted.
func EncodeLine(raw []byte, r archive.Resource) ([]byte, error) {
	var object map[string]any
	if err := kjson.Unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("decode object: %w", err)
	}
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("decode object: it has no metadata")
	}
	if metadata["deletionTimestamp"] != nil {
		return nil, nil
	}
	kept := map[string]any{}
	for _, field := range keptMetadata {
		if value, ok := metadata[field]; ok {
			kept[field] = value
		}
	}
	object["metadata"], object["apiVersion"], object["kind"] = kept, r.APIVersion(), r.Kind
	line, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode object: %w", err)
	}
	return line, nil
}

// REST reads pages from an API server.
type REST struct{ Client rest.Interface }

// Page implements Pages.
func (c REST) Page(ctx context.Context, r archive.Resource, selector string, limit int, next string) (io.ReadCloser,
	error) {
	prefix := []string{"apis", r.Group, r.Version, r.Plural}
	if r.Group == "" {
		prefix = []string{"api", r.Version, r.Plural}
	}
	request := c.Client.Get().AbsPath(prefix...).SetHeader("Accept", "application/json").
		Param("limit", strconv.Itoa(limit))
	if selector != "" {
		request = request.Param("labelSelector", selector)
	}
	if next != "" {
		request = request.Param("continue", next)
	}
	return request.Stream(ctx)
}
