// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package convention

import (
	"fmt"
	"slices"
	"strings"
)

// Rendered is a file as a repository should have it.
type Rendered struct {
	Kind Kind
	// Text is the whole text. Of a shared file it is what is written where the repository has no such file.
	Text       string
	Executable bool
	// Convention brings the file; of a shared file, the one that brings it first.
	Convention string
	// Regions are those of a shared file, in order.
	Regions []Region
}

// Tree is what conventions amount to: files by their paths.
type Tree map[string]*Rendered

// Render renders conventions in the order in which the repository lists them. A path in two conventions is an error,
// unless the later one replaces it, or both share it with regions of different names. Errors wrap ErrInvalid.
func Render(conventions []*Convention, given map[string]any) (Tree, error) {
	names := map[string]bool{}
	for _, c := range conventions {
		if names[c.Name] {
			return nil, invalid("convention %s is there twice", c.Name)
		}
		names[c.Name] = true
	}
	tree := Tree{}
	for _, c := range conventions {
		for _, required := range c.Requires {
			if !names[required] {
				return nil, invalid("convention %s requires convention %s, which the repository does not subscribe to",
					c.Name, required)
			}
		}
		if err := c.render(tree, given); err != nil {
			return nil, fmt.Errorf("convention %s: %w", c.Name, err)
		}
	}
	return tree, checkTree(tree)
}

func (c *Convention) render(tree Tree, given map[string]any) error {
	values, err := c.values(given)
	if err != nil {
		return err
	}
	for _, f := range c.Files {
		if f.When != "" && isEmpty(values[f.When]) {
			continue
		}
		r, err := c.renderFile(f, values)
		if err != nil {
			return err
		}
		if err := c.place(tree, f.Path, r); err != nil {
			return err
		}
	}
	return nil
}

func isEmpty(value any) bool {
	items, isList := value.([]string)
	return value == false || value == "" || value == int64(0) || isList && len(items) == 0
}

func (c *Convention) renderFile(f File, values map[string]any) (*Rendered, error) {
	text := c.contents[f.Template]
	if strings.HasSuffix(f.Template, ".tmpl") {
		var err error
		if text, err = execute(f.Template, text, values); err != nil {
			return nil, err
		}
	}
	r := &Rendered{Kind: f.Kind, Text: string(text), Executable: f.Mode == "0755", Convention: c.Name}
	if !slices.Contains(text, 0) {
		r.Text = endLine(strings.ReplaceAll(r.Text, "\r\n", "\n"))
	}
	switch f.Kind {
	case Owned:
		r.Text = withHeader(c.header(f.Path), r.Text)
	case Shared:
		pieces, err := Split(r.Text)
		if err != nil {
			return nil, invalid("%s: %w", f.Template, err)
		}
		for _, p := range pieces {
			if p.Name != "" {
				p.Convention = c.Name
				r.Regions = append(r.Regions, p.Region)
			}
		}
		if len(r.Regions) == 0 {
			return nil, invalid("%s is shared, and has no region", f.Template)
		}
	}
	return r, nil
}

// endLine ends the last line of a text.
func endLine(text string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		return text + "\n"
	}
	return text
}

func (c *Convention) place(tree Tree, path string, r *Rendered) error {
	earlier := tree[path]
	switch {
	case earlier == nil, slices.Contains(c.Replaces, earlier.Convention+"/"+path):
		tree[path] = r
		return nil
	case earlier.Kind != Shared || r.Kind != Shared:
		return invalid("%s is in convention %s as well: set replaces: [%s/%s] to take it over", path,
			earlier.Convention, earlier.Convention, path)
	}
	for _, region := range r.Regions {
		if slices.ContainsFunc(earlier.Regions, func(e Region) bool { return e.Name == region.Name }) {
			return invalid("%s: region %s is in convention %s as well", path, region.Name, earlier.Convention)
		}
		earlier.Regions = append(earlier.Regions, region)
		earlier.Text += "\n" + region.Text
	}
	return nil
}

// withFolders returns a path, and the folders on the way to it, which end with a slash.
func withFolders(path string) []string {
	out := []string{path}
	for end, r := range path {
		if r == '/' {
			out = append(out, path[:end+1])
		}
	}
	return out
}

// checkTree refuses a tree that cannot be written on every file system.
func checkTree(tree Tree) error {
	total, seen := 0, map[string]string{}
	for _, path := range sortedKeys(tree) {
		total += len(tree[path].Text)
		for _, name := range withFolders(path) {
			lower := strings.ToLower(name)
			if other, ok := seen[lower]; ok && other != name {
				return invalid("the paths %s and %s differ by case alone", other, name)
			}
			seen[lower] = name
		}
	}
	for lower, path := range seen {
		if other, ok := seen[lower+"/"]; ok {
			return invalid("%s is a file, and %s is a folder", path, other)
		}
	}
	if total > MaxBytes || len(tree) > MaxFiles {
		return invalid("what is rendered has %d files and %d bytes, and may have %d and %d", len(tree), total, MaxFiles,
			MaxBytes)
	}
	return nil
}
