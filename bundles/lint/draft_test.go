// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/crd"
)

// draft is an unpublished next version of a published bundle; it can be edited.
type draft struct {
	documents []manifest
	// files are all that are not manifests.
	files       map[string][]byte
	version     semver.Version
	predecessor *bundles.Bundle
	// history are all published versions up to the predecessor.
	history []*bundles.Bundle
	archive *crd.Archive
	images  ImageIndex
}

// manifest is one document of a draft.
type manifest struct {
	file    string
	content map[string]any
	// text is the encoded content; nil after an edit.
	text []byte
}

// spot is a place in a document of a draft. Index is that of the document; no file is named where it is negative.
type spot struct {
	index int
	file  string
	path  []any
}

func (s spot) below(path ...any) spot {
	return spot{s.index, s.file, slices.Concat(s.path, path)}
}

// above leaves out the last steps of the path.
func (s spot) above(steps int) spot {
	return spot{s.index, s.file, s.path[: len(s.path)-steps : len(s.path)-steps]}
}

// fileSpot is a file that is no manifest.
func fileSpot(file string, path ...any) spot { return spot{-1, file, path} }

// newDraft returns the next version of a bundle of the corpus. It differs from it in nothing but its name, version, and
// what it replaces.
func newDraft(t testing.TB, c corpusBundle, lower []*bundles.Bundle) *draft {
	t.Helper()
	files := c.files(t)
	d := &draft{files: map[string][]byte{}, predecessor: readBundle(t, files), archive: crd.NewArchive()}
	for _, b := range append(slices.Clone(lower), d.predecessor) {
		d.history = append(d.history, d.archive.Reduce(b))
	}
	manifests := map[string]bool{}
	for _, o := range d.predecessor.Objects {
		d.documents = append(d.documents, manifest{file: o.File, content: runtime.DeepCopyJSON(o.Object)})
		manifests[o.File] = true
	}
	err := fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || manifests[name] {
			return err
		}
		d.files[name], err = fs.ReadFile(files, name)
		return err
	})
	d.version = d.predecessor.Version
	d.version.Patch++
	d.version.Pre, d.version.Build = nil, nil
	csv := d.csv()
	name := strings.Replace(d.predecessor.Name, d.predecessor.Version.String(), d.version.String(), 1)
	if name == d.predecessor.Name {
		name += "-next"
	}
	d.set(csv, name, "metadata", "name")
	d.set(csv, d.version.String(), "spec", "version")
	d.set(csv, d.predecessor.Name, "spec", "replaces")
	if err := errors.Join(err, d.encode()); err != nil {
		t.Fatalf("%s: %v", c.name(), err)
	}
	return d
}

// clone shares what encode has written; edit copies a document before it changes.
func (d *draft) clone() *draft {
	out := *d
	out.documents, out.files = slices.Clone(d.documents), map[string][]byte{}
	for name, text := range d.files {
		out.files[name] = text
	}
	return &out
}

func (d *draft) encode() error {
	for i := range d.documents {
		if d.documents[i].text != nil {
			continue
		}
		text, err := json.Marshal(d.documents[i].content)
		if err != nil {
			return err
		}
		d.documents[i].text = text
	}
	return nil
}

// input reads the draft as a bundle with its history. Documents of one file stay in it.
func (d *draft) input() (Input, error) {
	if err := d.encode(); err != nil {
		return Input{}, err
	}
	files := fstest.MapFS{}
	for name, text := range d.files {
		files[name] = &fstest.MapFile{Data: text}
	}
	for _, doc := range d.documents {
		if f := files[doc.file]; f != nil {
			f.Data = slices.Concat(f.Data, []byte("\n---\n"), doc.text)
			continue
		}
		files[doc.file] = &fstest.MapFile{Data: doc.text}
	}
	b, err := bundles.Read(files)
	if err != nil {
		return Input{}, err
	}
	in := Input{Bundle: b, Files: files, History: d.history, Archive: d.archive, Images: d.images}
	in.Predecessor = FindPredecessor(in.Bundle, in.History)
	return in, nil
}

// get returns the value at a place; nil if there is none.
func (d *draft) get(s spot, below ...any) any {
	var value any = d.documents[s.index].content
	for _, step := range slices.Concat(s.path, below) {
		switch at := value.(type) {
		case map[string]any:
			name, _ := step.(string)
			value = at[name]
		case []any:
			i, ok := step.(int)
			if !ok || i >= len(at) {
				return nil
			}
			value = at[i]
		default:
			return nil
		}
	}
	return value
}

func (d *draft) text(s spot, below ...any) string {
	text, _ := d.get(s, below...).(string)
	return text
}

func (d *draft) list(s spot, below ...any) []any {
	list, _ := d.get(s, below...).([]any)
	return list
}

func (d *draft) fields(s spot, below ...any) map[string]any {
	fields, _ := d.get(s, below...).(map[string]any)
	return fields
}

// edit returns the object at a place, which may be changed. Objects that are missing on the way are created.
func (d *draft) edit(s spot, below ...any) map[string]any {
	doc := &d.documents[s.index]
	if doc.text != nil {
		doc.content, doc.text = runtime.DeepCopyJSON(doc.content), nil
	}
	at := any(doc.content)
	for _, step := range slices.Concat(s.path, below) {
		if list, ok := at.([]any); ok {
			at = list[step.(int)]
			continue
		}
		parent := at.(map[string]any)
		if parent[step.(string)] == nil {
			parent[step.(string)] = map[string]any{}
		}
		at = parent[step.(string)]
	}
	return at.(map[string]any)
}

// set sets the field at the end of a path below a place, and returns the place of the field.
func (d *draft) set(s spot, value any, below ...any) spot {
	whole := s.below(below...)
	last := len(whole.path) - 1
	parent := d.edit(spot{index: s.index}, whole.path[:last]...)
	if value == nil {
		delete(parent, whole.path[last].(string))
	} else {
		parent[whole.path[last].(string)] = value
	}
	return whole
}

// add appends to the list at the end of a path below a place, and returns the place of the new element.
func (d *draft) add(s spot, value any, below ...any) spot {
	list := d.list(s, below...)
	return d.set(s, append(slices.Clone(list), value), below...).below(len(list))
}

// addObject adds a manifest, written as YAML, in a file of its own, or in that of another one.
func (d *draft) addObject(text, file string) spot {
	var content map[string]any
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		panic(err) // the text is a constant of a test
	}
	encoded, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	d.documents = append(d.documents, manifest{file: file, content: content, text: encoded})
	return spot{len(d.documents) - 1, file, nil}
}

// newFile is a file that no corpus bundle has.
func (d *draft) newFile() string {
	return path.Join(bundles.ManifestsFolder(d.predecessor.Annotations), "planted.yaml")
}

// metadata changes a list or the annotations in a file of metadata.
func (d *draft) metadata(file string, change func(map[string]any)) {
	content := map[string]any{}
	if err := yaml.Unmarshal(d.files[file], &content); err != nil {
		panic(err) // it was read as part of a bundle before
	}
	change(content)
	text, err := yaml.Marshal(content)
	if err != nil {
		panic(err)
	}
	d.files[file] = text
}

// ofKind are the documents of a kind; an empty version is any.
func (d *draft) ofKind(kind, apiVersion string) []spot {
	var out []spot
	for i, doc := range d.documents {
		if doc.content["kind"] == kind && (apiVersion == "" || doc.content["apiVersion"] == apiVersion) {
			out = append(out, spot{i, doc.file, nil})
		}
	}
	return out
}

func (d *draft) csv() spot { return d.ofKind("ClusterServiceVersion", "")[0] }

// crds are the definitions that Kubernetes still serves.
func (d *draft) crds() []spot { return d.ofKind("CustomResourceDefinition", "apiextensions.k8s.io/v1") }

// each are the elements of a list below a place.
func (d *draft) each(s spot, below ...any) []spot {
	var out []spot
	for i := range d.list(s, below...) {
		out = append(out, s.below(below...).below(i))
	}
	return out
}
