// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package convention

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/util/sets"
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
	names := sets.New[string]()
	for _, c := range conventions {
		if names.Has(c.Name) {
			return nil, invalid("convention %s is there twice", c.Name)
		}
		names.Insert(c.Name)
	}
	tree := Tree{}
	for _, c := range conventions {
		if missing := sets.New(c.Requires...).Difference(names); missing.Len() > 0 {
			return nil, invalid("convention %s requires convention %s, which the repository does not subscribe to",
				c.Name, strings.Join(sets.List(missing), ", "))
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
		if isTrue, _ := template.IsTrue(values[f.When]); f.When != "" && !isTrue {
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
		r.Text = EndLine(strings.ReplaceAll(r.Text, "\r\n", "\n"))
	}
	switch f.Kind {
	case Owned:
		r.Text = withHeader(c.header(f.Path), r.Text)
	case Shared:
		regions, err := Split(r.Text)
		if err != nil {
			return nil, invalid("%s: %w", f.Template, err)
		}
		for _, region := range regions {
			if region.Name != "" {
				region.Convention = c.Name
				r.Regions = append(r.Regions, region)
			}
		}
		if len(r.Regions) == 0 {
			return nil, invalid("%s is shared, and has no region", f.Template)
		}
	}
	return r, nil
}

// EndLine ends the last line of a text.
func EndLine(text string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		return text + "\n"
	}
	return text
}

func (c *Convention) place(tree Tree, file string, r *Rendered) error {
	earlier := tree[file]
	switch {
	case earlier == nil, slices.Contains(c.Replaces, earlier.Convention+"/"+file):
		tree[file] = r
		return nil
	case earlier.Kind != Shared || r.Kind != Shared:
		return invalid("%s is in convention %s as well: set replaces: [%s/%s] to take it over", file,
			earlier.Convention, earlier.Convention, file)
	}
	for _, region := range r.Regions {
		if slices.ContainsFunc(earlier.Regions, func(e Region) bool { return e.Name == region.Name }) {
			return invalid("%s: region %s is in convention %s as well", file, region.Name, earlier.Convention)
		}
		earlier.Regions = append(earlier.Regions, region)
		earlier.Text += "\n" + region.Text
	}
	return nil
}

// checkTree refuses a tree that cannot be written on every file system.
func checkTree(tree Tree) error {
	total, seen := 0, map[string]string{}
	for _, file := range sortedKeys(tree) {
		total += len(tree[file].Text)
		for name := file; name != "."; name = path.Dir(name) {
			lower := strings.ToLower(name)
			if other, ok := seen[lower]; ok && other != name {
				return invalid("the paths %s and %s differ by case alone", other, name)
			}
			if seen[lower] = name; name != file && tree[name] != nil {
				return invalid("%s is a file, and is a folder for %s", name, file)
			}
		}
	}
	if total > MaxBytes || len(tree) > MaxFiles {
		return invalid("what is rendered has %d files and %d bytes, and may have %d and %d", len(tree), total, MaxFiles,
			MaxBytes)
	}
	return nil
}
