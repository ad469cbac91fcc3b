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
	Kind       Kind
	Text       string // the whole text; of a shared file, what is written where the repository has no such file
	Executable bool
	Convention string   // the one that brings the file; of a shared file, the one that brings it first
	Regions    []Region // those of a shared file, in order
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
	r := &renderer{tree: Tree{}}
	for _, c := range conventions {
		if missing := sets.New(c.Requires...).Difference(names); missing.Len() > 0 {
			return nil, invalid("convention %s requires convention %s, which the repository does not subscribe to",
				c.Name, strings.Join(sets.List(missing), ", "))
		}
		if err := r.render(c, given); err != nil {
			return nil, fmt.Errorf("convention %s: %w", c.Name, err)
		}
	}
	return r.tree, checkTree(r.tree)
}

// renderer renders one tree.
type renderer struct {
	tree        Tree
	bytes, work int // those of all texts, and what templates have done so far
}

func (r *renderer) render(c *Convention, given map[string]any) error {
	values, err := c.values(given)
	if err != nil {
		return err
	}
	for _, f := range c.Files {
		if isTrue, _ := template.IsTrue(values[f.When]); f.When != "" && !isTrue {
			continue
		}
		file, err := r.file(c, f, values)
		if err == nil {
			err = c.place(r.tree, f.Path, file)
		}
		if err != nil {
			return err
		}
		if r.bytes += len(file.Text); r.bytes > MaxBytes || len(r.tree) > MaxFiles {
			return invalid("what is rendered has more than %d files or %d bytes", MaxFiles, MaxBytes)
		}
	}
	return nil
}

func (r *renderer) file(c *Convention, f File, values map[string]any) (*Rendered, error) {
	text := c.contents[f.Template]
	if strings.HasSuffix(f.Template, ".tmpl") {
		var err error
		if text, err = r.execute(f.Template, text, values); err != nil {
			return nil, err
		}
	}
	out := &Rendered{Kind: f.Kind, Text: string(text), Executable: f.Mode == "0755", Convention: c.Name}
	if !slices.Contains(text, 0) {
		out.Text = EndLine(strings.ReplaceAll(out.Text, "\r\n", "\n"))
	}
	switch f.Kind {
	case Owned:
		out.Text = withHeader(c.header(f.Path), out.Text)
	case Shared:
		regions, err := Split(out.Text)
		if err != nil {
			return nil, invalid("%s: %w", f.Template, err)
		}
		for _, region := range regions {
			if region.Name != "" {
				region.Convention = c.Name
				out.Regions = append(out.Regions, region)
			}
		}
		if len(out.Regions) == 0 {
			return nil, invalid("%s is shared, and has no region", f.Template)
		}
	}
	return out, nil
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
	seen := map[string]string{}
	for _, file := range sortedKeys(tree) {
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
	return nil
}
