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

// Rendered is the wanted content of a file in a repository.
type Rendered struct {
	Kind       Kind
	Text       string // the whole text; for a shared file, the text if the repository has no such file
	Executable bool
	Convention string   // the convention that brings the file; for a shared file, the first one
	Regions    []Region // the regions of a shared file, in order
}

// Tree are the files that a list of conventions brings, by path.
type Tree map[string]*Rendered

// Render renders conventions in the order in which the repository lists them. It is an error if two conventions bring
// the same path, unless the later convention replaces it, or both share it with regions of different names. Errors
// wrap ErrInvalid.
func Render(conventions []*Convention, given map[string]any) (Tree, error) {
	names := sets.New[string]()
	for _, c := range conventions {
		if names.Has(c.Name) {
			return nil, newInvalidError("convention %s is there twice", c.Name)
		}
		names.Insert(c.Name)
	}
	r := &renderer{tree: Tree{}}
	for _, c := range conventions {
		if missing := sets.New(c.Requires...).Difference(names); missing.Len() > 0 {
			return nil, newInvalidError("convention %s requires convention %s, which the repository does not "+
				"subscribe to", c.Name, strings.Join(sets.List(missing), ", "))
		}
		if err := r.renderConvention(c, given); err != nil {
			return nil, fmt.Errorf("convention %s: %w", c.Name, err)
		}
	}
	return r.tree, checkTree(r.tree)
}

// renderer renders one tree.
type renderer struct {
	tree        Tree
	bytes, work int // the size of all texts, and the work of templates until now
}

// renderConvention renders the files of a convention and adds them to the tree.
func (r *renderer) renderConvention(c *Convention, given map[string]any) error {
	values, err := c.readValues(given)
	if err != nil {
		return err
	}
	for _, f := range c.Files {
		if isTrue, _ := template.IsTrue(values[f.When]); f.When != "" && !isTrue {
			continue
		}
		file, err := r.renderFile(c, f, values)
		if err == nil {
			err = c.addToTree(r.tree, f.Path, file)
		}
		if err != nil {
			return err
		}
		if r.bytes += len(file.Text); r.bytes > MaxBytes || len(r.tree) > MaxFiles {
			return newInvalidError("what is rendered has more than %d files or %d bytes", MaxFiles, MaxBytes)
		}
	}
	return nil
}

// renderFile renders one file. It adds the header of an owned file, and finds the regions of a shared file.
func (r *renderer) renderFile(c *Convention, f File, values map[string]any) (*Rendered, error) {
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
		out.Text = addHeader(c.formatHeader(f.Path), out.Text)
	case Shared:
		regions, err := Split(out.Text)
		if err != nil {
			return nil, newInvalidError("%s: %w", f.Template, err)
		}
		for _, region := range regions {
			if region.Name != "" {
				region.Convention = c.Name
				out.Regions = append(out.Regions, region)
			}
		}
		if len(out.Regions) == 0 {
			return nil, newInvalidError("%s is shared, and has no region", f.Template)
		}
	}
	return out, nil
}

// EndLine adds a line break at the end of a text if it is missing and the text is not empty.
func EndLine(text string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		return text + "\n"
	}
	return text
}

// addToTree adds a rendered file to the tree, replaces the file of an earlier convention, or adds regions to its file.
func (c *Convention) addToTree(tree Tree, file string, r *Rendered) error {
	earlier := tree[file]
	switch {
	case earlier == nil, slices.Contains(c.Replaces, earlier.Convention+"/"+file):
		tree[file] = r
		return nil
	case earlier.Kind != Shared || r.Kind != Shared:
		return newInvalidError("%s is in convention %s as well: set replaces: [%s/%s] to take it over", file,
			earlier.Convention, earlier.Convention, file)
	}
	for _, region := range r.Regions {
		if slices.ContainsFunc(earlier.Regions, func(e Region) bool { return e.Name == region.Name }) {
			return newInvalidError("%s: region %s is in convention %s as well", file, region.Name, earlier.Convention)
		}
		earlier.Regions = append(earlier.Regions, region)
		earlier.Text += "\n" + region.Text
	}
	return nil
}

// checkTree returns an error for a tree that cannot be written on every file system.
func checkTree(tree Tree) error {
	names := map[string]string{} // the paths of files and folders, by their lower-case form
	for _, file := range sortKeys(tree) {
		for name := file; name != "."; name = path.Dir(name) {
			lower := strings.ToLower(name)
			if earlier, ok := names[lower]; ok && earlier != name {
				return newInvalidError("the paths %s and %s differ by case alone", earlier, name)
			}
			if names[lower] = name; name != file && tree[name] != nil {
				return newInvalidError("%s is a file, and is a folder for %s", name, file)
			}
		}
	}
	return nil
}
