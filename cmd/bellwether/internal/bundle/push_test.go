// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/build"
	"github.com/bellwether-dev/bellwether/bundles/lint"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
)

// What lint has no error for can be pushed: whoever publishes a version must not learn of a fault after all checks.
func TestPushAcceptsWhatLintAccepts(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}\n"
	for name, tc := range map[string]struct {
		files map[string]string
		// folder is another name for the folder of the manifests.
		folder string
		wrong  bool
	}{
		"nothing more": {},
		"a comment":    {files: map[string]string{"manifests/a.yaml": "---\n# A comment.\n" + object}},
		"a comment before the file": {files: map[string]string{"manifests/a.yaml": "# A comment.\n---\n" + object},
			wrong: true},
		"an empty document": {files: map[string]string{"manifests/a.yaml": "\n---\n" + object}, wrong: true},
		"an end":            {files: map[string]string{"manifests/a.yaml": object + "---\n# The end.\n"}},
		"an empty file":     {files: map[string]string{"manifests/a.yaml": ""}},
		"JSON": {files: map[string]string{"manifests/a.json": `{"apiVersion":"v1","kind":"ConfigMap",` +
			`"metadata":{"name":"a"}}`}},
		"two files with one key": {files: map[string]string{"manifests/a+b.yaml": object,
			"manifests/a-b.yaml": strings.Replace(object, "name: a", "name: b", 1)}, wrong: true},
		"a hidden manifest":     {files: map[string]string{"manifests/.a.yaml": object}, wrong: true},
		"tests":                 {files: map[string]string{"tests/scorecard/config.yaml": "kind: Configuration\n"}},
		"more annotations":      {files: map[string]string{"tests/annotations.yaml": "a: b\n"}, wrong: true},
		"another folder":        {folder: "deploy"},
		"a folder for programs": {folder: "var", wrong: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := starterBundle(t)
			for file, text := range tc.files {
				writeBundleFile(t, filepath.Join(dir, file), text)
			}
			if tc.folder != "" {
				moveManifests(t, dir, tc.folder)
			}
			if isWrong := len(lintErrors(t, dir)) > 0; isWrong != tc.wrong {
				t.Errorf("lint has errors: %t, want %t: %v", isWrong, tc.wrong, lintErrors(t, dir))
			}
			if _, err := oci.BundleImage(dir); err != nil && !tc.wrong {
				t.Errorf("push refuses what lint accepts: %v", err)
			}
		})
	}
}

// starterBundle writes the first bundle of an author into a folder.
func starterBundle(t *testing.T) string {
	t.Helper()
	o := build.StarterOptions{Package: "snack-operator", Version: "0.1.0", Group: "snacks.example.com", Kind: "Snack"}
	o.About = build.StarterAbout(o)
	r, err := build.StarterBundle(o)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range r.Files {
		writeBundleFile(t, filepath.Join(dir, name), string(text))
	}
	return dir
}

func writeBundleFile(t *testing.T, name, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o750), os.WriteFile(name, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// moveManifests gives the folder of the manifests another name, in the annotations too.
func moveManifests(t *testing.T, dir, folder string) {
	t.Helper()
	if err := os.Rename(filepath.Join(dir, bundles.ManifestsDir), filepath.Join(dir, folder)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, bundles.MetadataDir, "annotations.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	writeBundleFile(t, file, strings.ReplaceAll(string(text), "manifests/", folder+"/"))
}

func lintErrors(t *testing.T, dir string) []string {
	t.Helper()
	files := os.DirFS(dir)
	b, err := bundles.Read(files)
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	r := lint.Run(lint.Input{Bundle: b, Files: files}, lint.Options{Now: time.Unix(0, 0)})
	for _, f := range r.Findings {
		if f.Severity == lint.Error {
			out = append(out, f.Rule+": "+f.Message)
		}
	}
	return out
}
