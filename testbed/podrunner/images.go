// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package podrunner

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Image is the program that stands for a container image.
type Image struct {
	// Path is the program's binary on this machine.
	Path string `json:"path"`
	// Missing says that no registry has the image: a container of it waits for it for ever.
	Missing bool `json:"missing,omitempty"`
}

// UnmarshalJSON also takes a plain string as the path.
func (i *Image) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &i.Path); err == nil {
		return nil
	}
	type plain Image
	return json.Unmarshal(data, (*plain)(i))
}

// Images says which program stands for which image. A name with a tag or a
// digest stands for just that one, a name without for every one of the repository.
type Images map[string]Image

// ReadImages reads a table from a JSON file. A relative path in it is relative
// to the file's folder.
func ReadImages(file string) (Images, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read images: %w", err)
	}
	var images Images
	if err := json.Unmarshal(data, &images); err != nil {
		return nil, fmt.Errorf("parse images in %s: %w", file, err)
	}
	for name, image := range images {
		if !image.Missing && !filepath.IsAbs(image.Path) {
			image.Path = filepath.Join(filepath.Dir(file), image.Path)
			images[name] = image
		}
	}
	return images, nil
}

// Lookup returns the program for an image; the full name goes before the
// repository.
func (images Images) Lookup(name string) (Image, bool) {
	if image, ok := images[name]; ok {
		return image, true
	}
	image, ok := images[repository(name)]
	return image, ok
}

// repository cuts the digest and the tag off an image name. A colon before the
// last slash belongs to the registry's port.
func repository(name string) string {
	name, _, _ = strings.Cut(name, "@")
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		name = name[:colon]
	}
	return name
}
