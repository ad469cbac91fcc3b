// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/operator-framework/operator-registry/alpha/declcfg"

	"github.com/bellwether-dev/bellwether/catalogs"
)

// Mirror writes a catalog to the empty directory out, with every bundle image in another repository, by the same
// digest. It returns the original reference of each image by its new reference. The same catalog gives the same
// files. A bundle image without a digest is an error that wraps ErrNoDigest.
func Mirror(files catalogs.Files, out, repository string) (map[string]string, error) {
	sources := map[string]string{}
	err := files(func(name string, content io.Reader) error {
		var file bytes.Buffer
		err := catalogs.EachDocument(content, func(document []byte) error {
			meta := &declcfg.Meta{}
			if err := json.Unmarshal(document, meta); err != nil {
				return fmt.Errorf("%w: %w", catalogs.ErrNotCatalog, err)
			}
			blob, err := mirrorDocument(meta, repository, sources)
			if err != nil {
				return err
			}
			file.Write(blob)
			return file.WriteByte('\n')
		})
		if err != nil {
			return fmt.Errorf("mirror catalog file %q: %w", name, err)
		}
		return writeMirrored(filepath.Join(out, filepath.FromSlash(name)), file.Bytes())
	})
	return sources, err
}

// writeMirrored writes a JSON file, even if the original file was YAML.
func writeMirrored(path string, content []byte) error {
	if filepath.Ext(path) != ".json" {
		path += ".json"
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return fmt.Errorf("write catalog: %w", err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write catalog: %w", err)
	}
	_, err = file.Write(content)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write catalog: %w", err)
	}
	return nil
}

// mirrorDocument returns a document with the new image reference, and adds the original reference to sources.
// Documents without an image stay unchanged.
func mirrorDocument(meta *declcfg.Meta, repository string, sources map[string]string) ([]byte, error) {
	if meta.Schema != declcfg.SchemaBundle {
		return meta.Blob, nil
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(meta.Blob, &doc); err != nil {
		return nil, fmt.Errorf("decode bundle %q: %w", meta.Name, err)
	}
	var image string
	if raw, ok := doc["image"]; ok {
		if err := json.Unmarshal(raw, &image); err != nil {
			return nil, fmt.Errorf("decode image of bundle %q: %w", meta.Name, err)
		}
	}
	if image == "" {
		return meta.Blob, nil
	}
	digest := getDigest(image)
	if digest == "" {
		return nil, fmt.Errorf("%w: bundle %q is the image %s", ErrNoDigest, meta.Name, image)
	}
	target := repository + "@" + digest
	sources[target] = image
	if err := replaceImage(doc, image, target); err != nil {
		return nil, fmt.Errorf("bundle %q: %w", meta.Name, err)
	}
	blob, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("encode bundle %q: %w", meta.Name, err)
	}
	return blob, nil
}

// replaceImage replaces image by target in the document of a bundle: as the bundle's image, and in the related images.
func replaceImage(doc map[string]json.RawMessage, image, target string) error {
	var err error
	if doc["image"], err = json.Marshal(target); err != nil {
		return fmt.Errorf("encode image: %w", err)
	}
	raw, ok := doc["relatedImages"]
	if !ok {
		return nil
	}
	var related []declcfg.RelatedImage
	if err := json.Unmarshal(raw, &related); err != nil {
		return fmt.Errorf("decode related images: %w", err)
	}
	for i := range related {
		if related[i].Image == image {
			related[i].Image = target
		}
	}
	if doc["relatedImages"], err = json.Marshal(related); err != nil {
		return fmt.Errorf("encode related images: %w", err)
	}
	return nil
}
